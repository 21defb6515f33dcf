"""What the ranks of a test do: ``mpiexec -n 3 python -m tests.mpi.program`` prints what came of each case, on rank 0.

Every case is a function that all ranks call with the communicator, and returns a complaint or None on each of them.
"""

from __future__ import annotations

import contextlib
import faulthandler
import functools
import inspect
import itertools
import json
import os
import pickle
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import zarr
from mpi4py import MPI

import semiring as sr
from semiring.algorithms import block_rows
from semiring.arrays.devices import gpus
from semiring.mpi.ranks import Ranks
from semiring.streaming import checkpoint, closure, snapshots, storage

Array = np.ndarray[Any, Any]
INF = np.inf
MINE = sr.Semiring("mine", add=max, mul=lambda a, b: max(a + b - 1, 0), zero=0, one=1, domain=(0, 1))


def matrix(n: int, semiring: sr.Semiring = sr.MIN_PLUS, dtype: Any = "f4", seed: int = 0) -> Array:
    """Elements whose sums round, and about half of them zero."""
    rng = np.random.default_rng(seed)
    edge = rng.random((n, n)) < 0.4
    if semiring is sr.BOOLEAN:
        return edge & (rng.random((n, n)) < 0.1)
    if np.dtype(dtype).kind == "i":
        return np.where(edge, rng.integers(0, 50, (n, n)), np.iinfo(dtype).max).astype(dtype)
    return np.where(edge, rng.random((n, n)) ** 3 * 0.99 + 1e-3, semiring.zero).astype(dtype)


def one_process(a: Any, semiring: sr.Semiring, block: int, **how: Any) -> Any:
    """The same closure by one process, at that block and on the same kind of device, on which rounding may depend."""
    return sr.closure(a, semiring, method="blocked", block=block, device="cuda:0" if gpus() else "cpu", **how)


def differs(comm: Any, found: Any, expected: Any) -> str | None:
    """Whether a distributed matrix is not this array to the last bit. All ranks come to the same, and go on together."""
    whole: Any = found.gather(0) if isinstance(found, sr.DistributedMatrix) else np.asarray(found)
    same = comm.rank > 0 or (whole.dtype == expected.dtype and whole.tobytes() == expected.tobytes())
    return None if all(comm.allgather(same)) else "other values"


def raises(comm: Any, kind: type[BaseException], text: str, call: Callable[[], Any]) -> str | None:
    """Whether a call does not raise what it should, on any rank."""
    outcome: str | None = "nothing was raised"
    try:
        call()
    except BaseException as error:
        outcome = None if type(error) is kind and text in str(error) else f"{type(error).__name__}: {error}"
    return next((f"rank {rank}: {other}" for rank, other in enumerate(comm.allgather(outcome)) if other), None)


# Results.


def case_semirings(comm: Any) -> str | None:
    for semiring, dtype in [
        (sr.MIN_PLUS, "f4"),
        (sr.MIN_PLUS, "f8"),
        (sr.MIN_PLUS, "i4"),
        (sr.MAX_MIN, "f4"),
        (sr.BOOLEAN, "?"),
        (MINE, "f8"),
    ]:
        a = matrix(150, semiring, dtype)
        for reflexive in (True, False):
            found = sr.closure(a, semiring, comm=comm, block=40, reflexive=reflexive)
            if complaint := differs(comm, found, one_process(a, semiring, 40, reflexive=reflexive)):
                return f"{semiring.name} in {dtype}, reflexive={reflexive}: {complaint}"
    return None


def case_structured(comm: Any) -> str | None:
    a = matrix(90)
    hops = np.where(np.isfinite(a), 1, INF).astype("f4")
    found = sr.closure((a, hops), sr.DISTANCE_HOPS, comm=comm, block=32)
    expected = one_process((a, hops), sr.DISTANCE_HOPS, 32)
    return next((c for f, e in zip(found, expected, strict=True) if (c := differs(comm, f, e))), None)


def case_sizes(comm: Any) -> str | None:
    for n, block in [(1, 4), (2, 4), (3, 1), (4, 4), (7, 4), (8, 4), (9, 4), (13, 5), (64, 64), (65, 64)]:
        a = matrix(n)
        if complaint := differs(comm, sr.apsp(a, comm=comm, block=block), one_process(a, sr.MIN_PLUS, block)):
            return f"n = {n}, block = {block}: {complaint}"
    empty = sr.apsp(np.empty((0, 0)), comm=comm)
    return None if empty.shape == (0, 0) and empty.local.shape == (0, 0) else "n = 0"


def case_paths(comm: Any) -> str | None:
    for a, block in [(matrix(120), 32), (matrix(120, dtype="i4"), 25)]:
        found, expected = sr.apsp(a, comm=comm, block=block, paths=True), one_process(a, sr.MIN_PLUS, block, paths=True)
        complaint = differs(comm, found.values, expected.values) or differs(comm, found.via, expected.via)
        pairs = list(itertools.product(range(0, 120, 17), range(0, 120, 13)))
        if complaint or found.paths(pairs) != expected.paths(pairs) or found[3, 5] != expected[3, 5]:
            return complaint or "other paths"
        if "vertices" not in repr(found):
            return repr(found)
    return None


def case_negative_edges(comm: Any) -> str | None:
    rng = np.random.default_rng(3)
    potential = rng.integers(0, 30, 100)
    a = (matrix(100, dtype="f8") * 8).round() + potential[:, None] - potential
    return differs(comm, sr.apsp(a, comm=comm, block=24), one_process(a, sr.MIN_PLUS, 24))


def case_of_a_graph_with_labels(comm: Any) -> str | None:
    graph = nx.relabel_nodes(nx.gnp_random_graph(60, 0.1, seed=2, directed=True), {v: f"v{v}" for v in range(60)})
    found = sr.closure(graph if comm.rank == comm.size - 1 else None, sr.MAX_MIN, comm=comm, block=16, paths=True)
    expected = one_process(graph, sr.MAX_MIN, 16, paths=True)
    return differs(comm, found.values, expected.values) or (None if found.nodes == expected.nodes else "other labels")


# Inputs.


def case_inputs(comm: Any) -> str | None:
    a, block = matrix(100), 30
    expected = one_process(a, sr.MIN_PLUS, block)
    folder = comm.bcast(tempfile.mkdtemp() if comm.rank == 0 else None)
    if comm.rank == 0:
        np.save(f"{folder}/a.npy", a)
        zarr.create_array(store=f"{folder}/a.zarr", data=a, chunks=(30, 50))
    comm.barrier()
    last = comm.size - 1
    inputs = {
        "the same array": a,
        "Fortran order": np.asfortranarray(a),
        "one rank's array": a if comm.rank == last else None,
        "numpy.memmap": np.load(f"{folder}/a.npy", mmap_mode="r"),
        "the name of a file": f"{folder}/a.npy",
        "Zarr": zarr.open_array(f"{folder}/a.zarr", mode="r"),
        "the name of a Zarr array": f"{folder}/a.zarr",
        "a function": lambda start, stop: a[start:stop],
        "a list": a.tolist(),
        "edges": sr.edges([(int(u), int(v), float(a[u, v])) for u, v in zip(*np.nonzero(np.isfinite(a)), strict=True)], nodes=range(100)),
    }
    for name, graph in inputs.items():
        found = sr.apsp(graph, comm=comm, block=block, dtype="f4")
        if complaint := differs(comm, found, expected):
            return f"{name}: {complaint}"
    zeros = np.where(np.isinf(a), 0, a)
    return differs(comm, sr.apsp(lambda start, stop: zeros[start:stop], comm=comm, block=block, nonedge=0), expected)


def case_outputs(comm: Any) -> str | None:
    a = matrix(100)
    found, expected = sr.apsp(a, comm=comm, block=30), one_process(a, sr.MIN_PLUS, 30)
    folder = comm.bcast(tempfile.mkdtemp() if comm.rank == 0 else None)
    found.to_npy(f"{folder}/far.npy")
    found.to_zarr(f"{folder}/far.zarr")
    comm.barrier()
    index = np.array([3, 99, 0, 31])
    rows = np.concatenate([expected[r] for r in found.own_rows] or [expected[:0]])
    same = {
        "npy": np.load(f"{folder}/far.npy"), "zarr": zarr.open_array(f"{folder}/far.zarr", mode="r")[:], "slice": found[:],
    }  # fmt: skip
    parts = {
        "element": (found[3, 5], expected[3, 5]),
        "row": (found.rows(7), expected[7]),
        "rows": (found.rows(index), expected[index]),
        "pairs": (found[index, index[::-1]], expected[index, index[::-1]]),
        "block": (found[20:40, 90:], expected[20:40, 90:]),
        "column": (found[:, 4], expected[:, 4]),
        "negative": (found[-1], expected[-1]),
        "diagonal": (found.diagonal(), expected.diagonal()),
        "local": (found.local, rows),
        "rows of rows": (found[np.array([[0, 1], [2, 3]])], expected[np.array([[0, 1], [2, 3]])]),
        "a list": (found.rows((1, 2)), expected[[1, 2]]),
    }
    wrong = [name for name, whole in same.items() if not np.array_equal(whole, expected)]
    wrong += [name for name, (x, y) in parts.items() if not np.array_equal(x, y)]
    calls: list[tuple[type[BaseException], str, Callable[[], Any]]] = [
        (IndexError, "out of bounds", lambda: found[100]),
        (IndexError, "two axes", lambda: found[1, 2, 3]),
        (sr.SemiringError, "root is", lambda: found.gather(comm.size)),
        (sr.SemiringError, "pickled", lambda: pickle.dumps(found)),
        (sr.SemiringError, "no array of one rank", lambda: np.asarray(found)),
        (sr.GraphError, "several processes", lambda: sr.apsp(a, comm=comm, paths=True).save("no.npz")),
    ]
    wrong += [complaint for kind, text, call in calls if (complaint := raises(comm, kind, text, call))]
    paths = sr.apsp(a, comm=comm, paths=True)
    if comm.rank == 0 and "several processes" not in paths._repr_html_():  # which is not collective
        wrong.append("HTML")
    return ", ".join(wrong) or None


def case_transitive_closure(comm: Any) -> str | None:
    a = matrix(130, sr.BOOLEAN)
    found = sr.transitive_closure(a, comm=comm, block=50)
    return differs(comm, found, sr.transitive_closure(a))


def case_default_block(comm: Any) -> str | None:
    a = matrix(300)
    found = sr.apsp(a, comm=comm)
    side = sr.explain(300, dtype="f4", ranks=comm.size).block
    return differs(comm, found, one_process(a, sr.MIN_PLUS, side))


def case_part_of_the_ranks(comm: Any) -> str | None:
    part = comm.Split(comm.rank % 2, comm.rank)
    a = matrix(70, seed=comm.rank % 2)
    return differs(part, sr.apsp(a, comm=part, block=20), one_process(a, sr.MIN_PLUS, 20))


def case_several_hosts(comm: Any) -> str | None:
    """As if every second rank, or every one, were on another host, so that row panels go from host to host."""
    a = matrix(130)
    expected, together = one_process(a, sr.MIN_PLUS, 20), Ranks.ranks_of_host
    for hosts in (2, comm.size):
        Ranks.ranks_of_host = staticmethod(lambda some, hosts=hosts: some.Split(some.rank % hosts, some.rank))  # type: ignore[assignment]
        try:
            apart = comm.Dup()
            found = sr.apsp(a, comm=apart, block=20)
        finally:
            Ranks.ranks_of_host = together  # type: ignore[method-assign]
        if complaint := differs(comm, found, expected):
            return f"{hosts} hosts: {complaint}"
        # A rank that believes to be alone on its host takes all GPUs of it: then others may have no block row, and nothing to raise.
        reading = comm.allgather(any(rows.start > 0 for rows in found.own_rows))
        for rank in (rank for rank, reads in enumerate(reading) if reads):

            def rows(start: int, stop: int, rank: int = rank) -> Array:
                if comm.rank == rank and start > 0:
                    raise OSError(5, "Input/output error")
                return a[start:stop]

            if complaint := raises(comm, OSError, "Input/output", functools.partial(sr.apsp, rows, comm=apart, block=20)):
                return f"{hosts} hosts, rank {rank} raises: {complaint}"
            with breaking(comm.rank == rank, lambda step: isinstance(step, block_rows.UpdateRest) and step.k == 2):
                complaint = raises(comm, MemoryError, "no memory", functools.partial(sr.apsp, a, comm=apart, block=20))
            if complaint:
                return f"{hosts} hosts, rank {rank} breaks: {complaint}"
        if complaint := differs(comm, sr.apsp(a, comm=apart, block=20), expected):
            return f"{hosts} hosts, afterwards: {complaint}"
    return None


@contextlib.contextmanager
def breaking(here: bool, at: Callable[[Any], bool]) -> Iterator[None]:
    """Steps of block rows that raise: those of this rank, if it is meant, that `at` chooses."""
    do = closure._Worker._do

    def broken(self: Any, step: Any) -> None:
        if here and at(step):
            raise MemoryError("no memory")
        do(self, step)

    closure._Worker._do = broken  # type: ignore[method-assign]
    try:
        yield
    finally:
        closure._Worker._do = do  # type: ignore[method-assign]


def case_progress(comm: Any) -> str | None:
    told: list[sr.Progress] = []
    sr.apsp(matrix(100), comm=comm, block=20, progress=told.append)
    if comm.rank:
        return None if not told else "told on another rank"
    return None if told[-1].done == told[-1].total == 100**3 and told[0].done == 0 else f"{told[:1]} … {told[-1:]}"


def case_warns_once(comm: Any) -> str | None:
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        sr.apsp(np.where(np.isinf(a := matrix(50)), 0, a), comm=comm, block=16)
    return None if len(seen) == (comm.rank == 0) else f"{[str(w.message) for w in seen]}"


# Faults, after each of which the communicator is used again.


def case_negative_cycle(comm: Any) -> str | None:
    a = matrix(100, dtype="f8")
    a[90, 31] = -9
    try:
        sr.apsp(a, comm=comm, block=30)
    except sr.NegativeCycleError as error:
        cycles = comm.allgather(error.cycle)
        weight = sum(a[u, v] for u, v in itertools.pairwise([*cycles[0], cycles[0][0]]))
        return None if weight < 0 and cycles.count(cycles[0]) == comm.size else f"{cycles} of weight {weight}"
    return "nothing was raised"


def case_raised_elsewhere(comm: Any) -> str | None:
    def rows(start: int, stop: int) -> Array:
        if comm.rank == comm.size - 1 and start > 0:
            raise OSError(28, "No space left on device")
        return a[start:stop]

    a = matrix(400)
    return raises(comm, OSError, "No space left", lambda: sr.apsp(rows, comm=comm, block=20))


def case_raised_at_any_step(comm: Any) -> str | None:
    a = matrix(160)
    expected = one_process(a, sr.MIN_PLUS, 20)
    for rank, step in itertools.product({0, comm.size - 1}, ["A00 ←", "A3", "broadcast A5", "store A7", "release A2"]):
        with breaking(comm.rank == rank, lambda each, step=step: str(each).startswith(step)):  # type: ignore[misc]  # no default for mypy
            outcome = raises(comm, MemoryError, "no memory", lambda: sr.apsp(a, comm=comm, block=20))
        if outcome not in (None, *(f"rank {other}: nothing was raised" for other in range(comm.size))):  # not each rank has each step
            return f"rank {rank} at {step!r}: {outcome}"
        if complaint := differs(comm, sr.apsp(a, comm=comm, block=20), expected):
            return f"after rank {rank} at {step!r}: {complaint}"
    return None


def case_interrupted(comm: Any) -> str | None:
    def stop(now: sr.Progress) -> None:
        if now.done > now.total // 2:
            raise KeyboardInterrupt

    return raises(comm, KeyboardInterrupt, "", lambda: sr.apsp(matrix(200), comm=comm, block=20, progress=stop))


def case_who_is_told_raises(comm: Any) -> str | None:
    a = matrix(100)
    for last in (False, True):

        def stop(now: sr.Progress, last: bool = last) -> None:
            if (now.done == now.total) == last:
                raise ValueError("told")

        if complaint := raises(comm, ValueError, "told", functools.partial(sr.apsp, a, comm=comm, block=20, progress=stop)):
            return f"last = {last}: {complaint}"
    return differs(comm, sr.apsp(a, comm=comm, block=20), one_process(a, sr.MIN_PLUS, 20))


def case_overflow(comm: Any) -> str | None:
    a = np.full((150, 150), np.iinfo("i2").max, "i2")
    a[np.arange(149), np.arange(1, 150)] = 120
    return raises(comm, sr.OverflowRiskError, "int16", lambda: sr.apsp(a, comm=comm, block=40))


def case_not_the_same_call(comm: Any) -> str | None:
    if comm.size == 1:
        return None
    a, odd = matrix(40), comm.rank == comm.size - 1
    own = sr.Semiring("mine", add=max, mul=(lambda a, b: a * b) if odd else (lambda a, b: a + b), zero=0, one=1)
    calls: list[tuple[type[BaseException], str, Callable[[], Any]]] = [
        (sr.SemiringError, "the semiring", lambda: sr.closure(a, "max-min" if odd else "min-plus", comm=comm)),
        (sr.SemiringError, "the semiring", lambda: sr.closure(a, own, comm=comm)),
        (sr.SemiringError, "block", lambda: sr.apsp(a, comm=comm, block=5 + odd)),
        (sr.SemiringError, "paths", lambda: sr.apsp(a, comm=comm, paths=odd)),
        (sr.SemiringError, "the graph", lambda: sr.apsp(a + odd, comm=comm)),
        (sr.SemiringError, "the graph", lambda: sr.apsp(a[: 40 - odd, : 40 - odd], comm=comm)),
        (sr.GraphError, "no rank", lambda: sr.apsp(None, comm=comm)),
    ]
    if comm.size > 2:
        calls.append((sr.GraphError, "the same kind", lambda: sr.apsp("a.npy" if odd else a, comm=comm)))
    return next((f"{text}: {c}" for kind, text, call in calls if (c := raises(comm, kind, text, call))), None)


def case_refused(comm: Any) -> str | None:
    a = matrix(40)
    calls: list[tuple[type[BaseException], str, Callable[[], Any]]] = [
        (sr.SemiringError, "not idempotent", lambda: sr.closure(a, sr.PLUS_TIMES, comm=comm)),
        (sr.SemiringError, "communicator", lambda: sr.apsp(a, comm="world")),
        (sr.SemiringError, "one matrix", lambda: sr.apsp(np.stack([a, a]), comm=comm)),
        (sr.SemiringError, "as a whole", lambda: sr.apsp(a, comm=comm, method="recursive")),
        (sr.DomainError, "NaN", lambda: sr.apsp(np.where(a == a.min(), np.nan, a), comm=comm)),
        (sr.ShapeError, "rows(0, 10)", lambda: sr.apsp(lambda start, stop: a[start : stop - (stop > 1)], comm=comm, block=10)),
        (FileNotFoundError, "none.npy", lambda: sr.apsp("none.npy", comm=comm)),
    ]
    return next((f"{text}: {c}" for kind, text, call in calls if (c := raises(comm, kind, text, call))), None)


# Checkpoints.


def folder_for(comm: Any) -> str:
    """A new folder that all ranks know, with nothing in it."""
    return str(comm.bcast(tempfile.mkdtemp() if comm.rank == 0 else None)) + "/work"


JOURNAL: dict[str, Any] = {"memory_limit": "400 MB"}
"""What makes a closure keep its matrix on disk, with a journal, and not snapshots of one in memory."""


def until_kept(folder: str, rounds: int) -> Callable[[sr.Progress], None]:
    """Interrupts a closure when the folder says that so many rounds more are done than before."""
    begun: list[int] = []

    def look(now: sr.Progress) -> None:
        time.sleep(0.002)  # so that there are snapshots before the end
        state = json.loads(Path(folder, "state.json").read_text(encoding="utf-8"))
        begun.append(state["round"])
        if begun[-1] >= begun[0] + rounds:
            raise KeyboardInterrupt

    return look


def alone(a: Array, folder: str) -> Any:
    """The same closure by one process without a communicator."""
    return sr.apsp(a, checkpoint=folder, paths=True, device="cpu")


def _refuse(a: Array, folder: str) -> None:
    raise sr.CheckpointError("not finished")


def case_checkpoint(comm: Any) -> str | None:
    a = matrix(200)
    expected = one_process(a, sr.MIN_PLUS, 8, paths=True)
    for kept, how in {"snapshots": {}, "a journal": JOURNAL}.items():
        folder = folder_for(comm)
        again: dict[str, Any] = {"comm": comm, "checkpoint": folder, "paths": True, **how}
        refusals: list[tuple[type[BaseException], str, Array, dict[str, Any]]] = [
            (KeyboardInterrupt, "", a, {"block": 8, "progress": until_kept(folder, 4)}),
            (sr.CheckpointError, "another closure", a + 1, {}),
            (sr.CheckpointError, "block", a, {"block": 9}),
            (KeyboardInterrupt, "", a, {"progress": until_kept(folder, 4)}),
        ]
        for kind, text, graph, more in refusals:
            if complaint := raises(comm, kind, text, functools.partial(sr.apsp, graph, **again, **more)):
                return f"{kept}: {complaint}"
        if (found := json.loads(Path(folder, "state.json").read_text(encoding="utf-8"))["closure"]["kept"]) != kept:
            return f"{found} instead of {kept}"
        one = functools.partial(alone if comm.rank == 0 and kept == "snapshots" else _refuse, a, folder)  # one at a time
        if complaint := raises(comm, sr.CheckpointError, "not finished", one):
            return complaint
        comm.barrier()
        for _ in range(2):
            result = sr.apsp(a, **again)
            if not (np.array_equal(result.values, expected.values) and np.array_equal(result.via, expected.via)):
                return f"{kept}: other values"
        comm.barrier()
        if comm.rank == 0 and not np.array_equal(alone(a, folder).via, expected.via):
            return "other values without comm="
        comm.barrier()  # opening a checkpoint writes files beside the kept ones for a moment
        if (left := set(os.listdir(folder))) != {"lock", "state.json", "values.npy", "via.npy"}:
            return f"{left} are left"
        comm.barrier()
        if comm.rank == 0:
            np.load(f"{folder}/values.npy", mmap_mode="r+")[3, 5] += 1
        comm.barrier()
        if complaint := raises(comm, sr.CheckpointError, "have been changed", functools.partial(sr.apsp, a, **again)):
            return complaint
    return None


def case_checkpoint_of_integers(comm: Any) -> str | None:
    a = matrix(200, dtype="i4")
    expected, folder = one_process(a, sr.MIN_PLUS, 8), folder_for(comm)
    for _ in range(30):  # cut short again and again
        try:
            found = sr.apsp(a, comm=comm, block=8, checkpoint=folder, progress=until_kept(folder, 3))
        except KeyboardInterrupt:
            continue
        return differs(comm, found, expected)
    return "never through"


def case_full_disk(comm: Any) -> str | None:
    a = matrix(150)
    expected = one_process(a, sr.MIN_PLUS, 20)
    kinds: list[tuple[Any, int, dict[str, Any]]] = [(checkpoint.Stream, 3, JOURNAL), (storage.FileRows, 0, {})]
    for kind, left, how in kinds:
        folder, write, count = folder_for(comm), kind.write, itertools.count()

        def full(self: Any, rows: slice, array: Array, write: Any = write, count: Any = count, left: int = left) -> None:
            if comm.rank == comm.size - 1 and next(count) == left:
                raise OSError(28, "No space left on device")
            write(self, rows, array)

        kind.write = full
        try:
            complaint = raises(comm, OSError, "No space left", functools.partial(sr.apsp, a, comm=comm, block=20, checkpoint=folder, **how))
        finally:
            kind.write = write
        if complaint := complaint or differs(comm, sr.apsp(a, comm=comm, checkpoint=folder, **how), expected):
            return complaint
    return None


CASES = {name.removeprefix("case_"): case for name, case in globals().items() if name.startswith("case_") and inspect.isfunction(case)}


def main(names: list[str], cases: Mapping[str, Callable[[Any], str | None]]) -> None:
    """Run some of the cases, or all, and print what came of each."""
    comm = MPI.COMM_WORLD
    snapshots.EVERY = snapshots.SHARE = 0  # one after the other
    faulthandler.dump_traceback_later(float(os.environ.get("PATIENCE", "280")), exit=True)  # what hangs says where
    for name in names or cases:
        begun = time.perf_counter()
        try:
            complaint = cases[name](comm)
        except BaseException:
            complaint = traceback.format_exc()
        if complaint:  # said at once, as the other ranks may wait for this one
            print(f"{name}, rank {comm.rank}: {complaint}", file=sys.stderr, flush=True)
        complaints = comm.gather(complaint)
        if complaints is not None:
            told = {f"rank {rank}": c for rank, c in enumerate(complaints) if c}
            print(json.dumps({"case": name, "seconds": round(time.perf_counter() - begun, 2), "complaints": told}), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:], CASES)
