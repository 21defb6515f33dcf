"""What the ranks of a test do with sparse graphs, which they search, and statistics; it runs the cases of `tests.mpi.program` too."""

from __future__ import annotations

import inspect
import itertools
import math
import sys
import tempfile
from collections.abc import Callable
from typing import Any

import networkx as nx
import numpy as np
import scipy.sparse
from scipy.sparse import csgraph

import semiring as sr
from semiring.algorithms import search
from semiring.algorithms.rows_of_edges import rows_of_edges
from semiring.graphs import edges_of
from tests.mpi import program
from tests.mpi.program import differs, main, matrix, raises

Array = np.ndarray[Any, Any]
INF = np.inf


def sparse(n: int, kind: str = "f", seed: int = 0) -> Any:
    """A sparse array of SciPy's in four parts, with weights that round or are whole numbers, some of them 0."""
    rng = np.random.default_rng(seed)
    tails, heads = rng.integers(0, n, (2, 4 * n))
    places = np.unique((tails * n + heads)[tails % 4 == heads % 4])
    weights = rng.integers(0, 9, len(places)) if kind == "i" else rng.random(len(places)) * (rng.random(len(places)) < 0.9)
    return scipy.sparse.csr_array((weights, (places // n, places % n)), shape=(n, n))


def negative(n: int) -> Any:
    """The same with weights below 0 too, and no negative cycle."""
    graph = sparse(n, "i").tocoo()
    potential = np.random.default_rng(1).integers(0, 40, n)
    graph.data = graph.data + potential[graph.row] - potential[graph.col]
    return graph.tocsr()


def rows(graph: Any, semiring: sr.Semiring = sr.MIN_PLUS, *, reflexive: bool = True) -> Array:
    """All rows of a closure by the searches of one process."""
    listed = edges_of(graph, semiring)
    assert listed is not None
    return rows_of_edges(semiring, listed[0], np.arange(listed[0].n), reflexive=reflexive)[0]


def is_searched(comm: Any, graph: Any) -> bool:
    """Tell whether ranks search the graph; one rank may close the whole matrix, if its processor does that sooner."""
    return sr.explain(graph, sr.MIN_PLUS, ranks=comm.size).strategy == "search" or comm.size > 1


def other_rows(comm: Any, graph: Any, found: Any, semiring: sr.Semiring = sr.MIN_PLUS, *, reflexive: bool = True) -> str | None:
    """Whether a closure has other elements than one process finds: to the last bit where ranks search, as several do from 100 vertices."""
    plan, expected = sr.explain(graph, semiring, ranks=comm.size), rows(graph, semiring, reflexive=reflexive)
    if plan.strategy == "search":
        return differs(comm, found, expected)
    if comm.size > 1 and expected.shape[0] >= 100:
        return f"{plan.strategy} by {dict(plan.considered)}"
    return None if np.allclose(found[:], expected, rtol=1e-14) else "other values"


def case_searches(comm: Any) -> str | None:
    for n, kind in itertools.product([1, 2, 3, 5, 150, 301], "fi"):
        graph = sparse(n, kind)
        found = sr.apsp(graph, comm=comm)
        if complaint := other_rows(comm, graph, found):
            return f"n = {n}, {kind}: {complaint}"
        expected = csgraph.shortest_path(graph, method="D")
        far = found[:].astype(float)
        if not np.allclose(np.where(far >= np.iinfo(int).max, INF, far), expected):
            return f"n = {n}, {kind}: not what SciPy finds"
    return None


def case_rounds(comm: Any) -> str | None:
    graph = negative(200)
    expected = csgraph.johnson(graph.astype(float))
    if complaint := differs(comm, sr.apsp(graph, comm=comm), rows(graph)):
        return complaint
    return None if np.array_equal(sr.apsp(graph.astype(float), comm=comm)[:], expected) else "not what SciPy finds"


def case_other_semirings(comm: Any) -> str | None:
    graph = sparse(120)
    for semiring, reflexive in itertools.product([sr.MAX_MIN, sr.MIN_MAX], (True, False)):
        found = sr.closure(graph, semiring, comm=comm, reflexive=reflexive)
        if complaint := other_rows(comm, graph, found, semiring, reflexive=reflexive):
            return f"{semiring.name}, reflexive={reflexive}: {complaint}"
    for reflexive in (True, False):
        found = sr.transitive_closure(graph, comm=comm, reflexive=reflexive)
        if complaint := differs(comm, found, sr.transitive_closure(graph, reflexive=reflexive)):
            return f"reachability, reflexive={reflexive}: {complaint}"
    return None


def case_structured(comm: Any) -> str | None:
    ways = [(int(u), int(v), (float(w), 1.0)) for u, v, w in zip(*scipy.sparse.find(sparse(80)), strict=True)]
    graph = sr.edges(ways, nodes=range(80))
    found, expected = (sr.closure(graph, sr.DISTANCE_HOPS, **how) for how in ({"comm": comm}, {}))
    same = all(np.allclose(f[:], e) for f, e in zip(found, expected, strict=True))
    return None if same else "other values"


def case_labels(comm: Any) -> str | None:
    graph = nx.relabel_nodes(nx.gnp_random_graph(150, 0.02, seed=2, directed=True), {v: f"v{v}" for v in range(150)})
    listed = sr.edges([("a", "b", 1.5), ("b", "c", 0.0), ("d", "a", 2.0)])
    for each in (graph, listed):
        given = each if comm.rank == comm.size - 1 else None
        found, expected = sr.apsp(given, comm=comm, paths=True), sr.apsp(each, paths=True)
        if found.nodes != expected.nodes or not np.allclose(found.values[:], expected.values):
            return "other labels or values"
        one, other = found.nodes[0], found.nodes[2]
        if found[one, other] != expected[one, other] or found.distance(one, other) != found[one, other]:
            return "another distance"
    return differs(comm, np.array(found.path("d", "c")), np.array(["d", "a", "b", "c"]))


def case_paths(comm: Any) -> str | None:
    for n, graph in [(150, sparse(150)), (3, sparse(3)), (160, negative(160)), (140, sparse(140, "i"))]:
        found, expected = sr.apsp(graph, comm=comm, paths=True), sr.apsp(graph, sources=range(n), paths=True)
        pairs = list(itertools.product(range(0, n, 7), range(0, n, 11)))
        lengths = [sum(graph[u, v] for u, v in itertools.pairwise(path)) for path in found.paths(pairs)]
        far = [expected[pair] if path else 0 for pair, path in zip(pairs, found.paths(pairs), strict=True)]
        if not np.allclose(lengths, far) or [not p for p in found.paths(pairs)] != [not p for p in expected.paths(pairs)]:
            return f"n = {n}: other paths"
        if found.paths([]) != [] or found.path(n - 1, n - 1) != [n - 1] or found.paths_from(0) != [found.path(0, v) for v in range(n)]:
            return f"n = {n}: a path that differs"
        expanded = sr.Paths(sr.MIN_PLUS, (found.values[:],), found.via[:])
        if not np.array_equal(found.predecessors(), expected.predecessors()) or not np.array_equal(found.next_hops(), expanded.next_hops()):
            return f"n = {n}: other trees"
        if not isinstance(found.via, sr.DistributedMatrix) or expanded.path(0, n // 2) != found.path(0, n // 2):
            return f"n = {n}: another construction matrix"
        if not np.allclose([pair.distance for pair in found.farthest()], [pair.distance for pair in expected.farthest()][:1]):
            return f"n = {n}: {found.farthest()}"
    closed = sr.apsp(matrix(60), comm=comm, block=20, paths=True)  # by block rows, of which trees are made too
    whole = sr.Paths(sr.MIN_PLUS, (closed.values[:],), closed.via[:])
    if not (np.array_equal(closed.predecessors(), whole.predecessors()) and np.array_equal(closed.next_hops(), whole.next_hops())):
        return "other trees"
    return raises(comm, sr.GraphError, "there is no vertex 999", lambda: found.path(0, 999))


def case_sources(comm: Any) -> str | None:
    graph, sources, targets = sparse(200), [150, 3, 3, 77, 12], [5, 150, 7]
    found = sr.apsp(graph, comm=comm, sources=sources, targets=targets, paths=True)
    expected = sr.apsp(graph, sources=sources, targets=targets, paths=True)
    if complaint := differs(comm, found.values, rows(graph)[np.ix_(sources, targets)]):
        return complaint
    if found.sources != expected.sources or found.targets != expected.targets or found.path(3, 7) != expected.path(3, 7):
        return "other paths"
    whole = rows(graph)
    for some in (range(200), [4], [], np.array([9, 8])):
        if complaint := differs(comm, sr.apsp(graph, comm=comm, sources=some), whole[list(some)]):
            return f"sources={some}: {complaint}"
    one = sr.apsp(graph, comm=comm, sources=6)
    if one.shape != (1, 200) or not np.array_equal(one[0], whole[6]):
        return "the row of one source"
    dense = graph.toarray()
    calls: list[tuple[type[BaseException], str, Callable[[], Any]]] = [
        (sr.SemiringError, "without comm=", lambda: sr.apsp(dense, comm=comm, sources=[1], nonedge=0)),
        (sr.SemiringError, "needs sources=", lambda: sr.apsp(graph, comm=comm, targets=[1])),
        (sr.GraphError, "no vertex 200", lambda: sr.apsp(graph, comm=comm, sources=[200])),
        (sr.SemiringError, "memory_limit", lambda: sr.apsp(graph, comm=comm, sources=[1], memory_limit="1GB")),
    ]
    if comm.size > 1:
        calls.append((sr.SemiringError, "sources", lambda: sr.apsp(graph, comm=comm, sources=np.array([comm.rank]))))
    return next((f"{text}: {c}" for kind, text, call in calls if (c := raises(comm, kind, text, call))), None)


def case_outputs(comm: Any) -> str | None:
    graph, folder = sparse(150, "i"), comm.bcast(tempfile.mkdtemp() if comm.rank == 0 else None)
    found, expected = sr.apsp(graph, comm=comm), rows(graph)
    found.to_npy(f"{folder}/far.npy")
    found.to_zarr(f"{folder}/far.zarr")
    comm.barrier()
    import zarr

    same = np.array_equal(np.load(f"{folder}/far.npy"), expected) and np.array_equal(zarr.open_array(f"{folder}/far.zarr")[:], expected)
    own = np.concatenate([expected[r] for r in found.own_rows] or [expected[:0]])
    return None if same and np.array_equal(found.local, own) and np.array_equal(found.diagonal(), np.zeros(150)) else "other elements"


def case_progress(comm: Any) -> str | None:
    told: list[sr.Progress] = []
    graph = sparse(300)
    sr.apsp(graph, comm=comm, progress=told.append)
    if comm.rank:
        return None if not told else "told on another rank"
    steps = 300 * (300 + graph.nnz) if is_searched(comm, graph) else 300**3
    return None if told[0].done == 0 and told[-1].done == told[-1].total == steps else f"{told[:1]} … {told[-1:]}"


# Faults, after each of which the communicator is used again.


def case_negative_cycle(comm: Any) -> str | None:
    graph = negative(200).tolil()
    graph[150, 190], graph[190, 150] = 3, -4
    graph = graph.tocsr()
    try:
        sr.apsp(graph, comm=comm)
    except sr.NegativeCycleError as error:
        cycles = comm.allgather(error.cycle)
        weight = sum(graph[u, v] for u, v in itertools.pairwise([*cycles[0], cycles[0][0]]))
        return None if weight < 0 and cycles.count(cycles[0]) == comm.size else f"{cycles} of weight {weight}"
    return "nothing was raised"


def case_raised_on_one(comm: Any) -> str | None:
    graph, do = sparse(300), search.Searches.rows
    if not is_searched(comm, graph):
        return None

    def broken(self: Any, *args: Any, **kwargs: Any) -> Any:
        raise MemoryError("no memory")

    for rank, call in itertools.product(range(comm.size), (sr.apsp, sr.statistics)):
        if comm.rank == rank:
            search.Searches.rows = broken  # type: ignore[method-assign]
        try:
            complaint = raises(comm, MemoryError, "no memory", lambda call=call: call(graph, comm=comm))  # type: ignore[misc]
        finally:
            search.Searches.rows = do  # type: ignore[method-assign]
        if complaint := complaint or differs(comm, sr.apsp(graph, comm=comm), rows(graph)):
            return f"rank {rank}, {call.__name__}: {complaint}"
    return None


def case_interrupted(comm: Any) -> str | None:
    def stop(now: sr.Progress) -> None:
        if now.done > now.total // 2:
            raise KeyboardInterrupt

    return raises(comm, KeyboardInterrupt, "", lambda: sr.apsp(sparse(500), comm=comm, progress=stop))


# Statistics.


def other(found: sr.Statistics, expected: sr.Statistics, *, exactly: bool = True) -> str | None:
    """Where two statistics differ, `exactly` or but for rounding."""
    close: Callable[[Any, Any], bool] = np.array_equal if exactly else np.allclose
    same = {
        "nodes": found.nodes == expected.nodes,
        "eccentricities": close(found.eccentricities, expected.eccentricities),
        "connected": found.connected == expected.connected,
        "total": close(found.total, expected.total),
        "counts": not exactly or np.array_equal(found.counts, expected.counts),
        "bins": found.counts.sum() == expected.counts.sum() and close(found.bins, expected.bins),
        "farthest": found.farthest == expected.farthest or (not exactly and math.isclose(found.largest, expected.largest, rel_tol=1e-6)),
    }
    return next((name for name, equal in same.items() if not equal), None)


def case_statistics(comm: Any) -> str | None:
    dense, folder = matrix(150), comm.bcast(tempfile.mkdtemp() if comm.rank == 0 else None)
    if comm.rank == 0:
        np.save(f"{folder}/a.npy", dense)
    comm.barrier()
    labelled = nx.relabel_nodes(nx.gnp_random_graph(150, 0.02, seed=2, directed=True), {v: f"v{v}" for v in range(150)})
    graphs: dict[str, tuple[Any, Any]] = {
        "floats": (sparse(300), None),
        "whole numbers": (sparse(150, "i"), None),
        "negative": (negative(200), None),
        "labels": (labelled, None),
        "few": (sparse(3), None),
        "one": (np.zeros((1, 1)), None),
        "none": (np.zeros((0, 0)), None),
        "no edges": (scipy.sparse.csr_array((5, 5)), None),
        "dense": (matrix(150, dtype="i4"), None),
        "the name of a file": (f"{folder}/a.npy", dense),
        "one rank's": (dense if comm.rank == comm.size - 1 else None, dense),
    }
    for (name, (graph, same)), bins in itertools.product(graphs.items(), (64, 3, [0, 0.5, 2, 7])):
        found = sr.statistics(graph, bins=bins, comm=comm)
        exactly = same is None and name != "floats"  # else rounding differs with the strategy
        if complaint := other(found, sr.statistics(graph if same is None else same, bins=bins), exactly=exactly):
            return f"{name}, bins={bins}: other {complaint}"
        if len({repr(each) for each in comm.allgather(found)}) > 1:
            return f"{name}: not the same on all ranks"
    return None


def case_statistics_with_a_checkpoint(comm: Any) -> str | None:
    dense, folder = matrix(150), comm.bcast(tempfile.mkdtemp() if comm.rank == 0 else None) + "/work"
    return next(
        (c for _ in range(2) if (c := other(sr.statistics(dense, comm=comm, checkpoint=folder), sr.statistics(dense), exactly=False))), None
    )


def case_statistics_refused(comm: Any) -> str | None:
    graph = sparse(100)
    odd = comm.rank == comm.size - 1
    calls: list[tuple[type[BaseException], str, Callable[[], Any]]] = [
        (sr.GraphError, "at least 2", lambda: sr.statistics(graph, comm=comm, bins=1 if odd else 9)),
        (sr.SemiringError, "one matrix", lambda: sr.statistics(np.zeros((2, 3, 3)), comm=comm)),
    ]
    if comm.size > 1:
        calls.append((sr.SemiringError, "bins", lambda: sr.statistics(graph, comm=comm, bins=8 + odd)))
    return next((f"{text}: {c}" for kind, text, call in calls if (c := raises(comm, kind, text, call))), None)


CASES = {name.removeprefix("case_"): case for name, case in globals().items() if name.startswith("case_") and inspect.isfunction(case)}

if __name__ == "__main__":
    main(sys.argv[1:], program.CASES | {f"sparse_{name}": case for name, case in CASES.items()})
