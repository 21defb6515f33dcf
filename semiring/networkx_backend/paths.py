"""Shortest paths between all pairs or from the nearest of several nodes, and reachability, in the form that NetworkX returns.

NetworkX's generators yield the rows of all pairs one after the other, and so does `row_by_row`. NetworkX's own searches find the first
rows, until the searches have taken as long as this library takes to read the graph. So a few rows, or rows with a short cutoff, cost as
much as in NetworkX. This library finds the other rows, in blocks of doubling size, and all remaining rows at once when NetworkX would have
taken longer.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Iterator
from itertools import chain, islice
from typing import Any

import networkx as nx
import numpy as np

from semiring.algebra.catalogue import BOOLEAN, MIN_PLUS
from semiring.algorithms.all_paths import AllPaths
from semiring.algorithms.csr import SparseArray
from semiring.algorithms.nearest import nearest_sources
from semiring.algorithms.search import searches_for
from semiring.algorithms.simple_paths import simple_paths
from semiring.common.errors import NegativeCycleError, SemiringError
from semiring.execution.question import GivenGraph, Question
from semiring.execution.strategy import solve
from semiring.graphs.dense import Reading
from semiring.networkx_backend.costs import preparation, reading, theirs
from semiring.networkx_backend.distances import (
    Distances,
    NearDistances,
    algorithm,
    compressed,
    distances,
    extend,
    searched_edges,
    sparse,
    total_distance,
    truth,
)
from semiring.planning.options import Options
from semiring.product import matmul
from semiring.solve import transitive_closure as reachability

__all__ = [
    "all_pairs_all_shortest_paths", "all_pairs_bellman_ford_path", "all_pairs_bellman_ford_path_length", "all_pairs_dijkstra",
    "all_pairs_dijkstra_path", "all_pairs_dijkstra_path_length", "all_pairs_shortest_path", "all_pairs_shortest_path_length",
    "all_shortest_paths", "average_shortest_path_length", "floyd_warshall", "floyd_warshall_numpy",
    "floyd_warshall_predecessor_and_distance", "has_path", "is_strongly_connected", "johnson", "multi_source_dijkstra",
    "multi_source_dijkstra_path", "multi_source_dijkstra_path_length", "shortest_path", "shortest_path_length", "shortest_simple_paths",
    "single_source_all_shortest_paths", "transitive_closure", "transitive_closure_dag", "transitive_reduction", "voronoi_cells",
]  # fmt: skip

Named = Iterator[tuple[Any, Any]]

_PYTHONS = {int, float, list}
"""Types of lengths and paths in the rows of this library."""


# Rows of all pairs, one after the other.


def _lengths(block: Distances, i: int) -> dict[Any, Any]:
    return block.lengths(i)


def _paths(block: Distances, i: int) -> dict[Any, list[Any]]:
    return block.paths(i)


def row_by_row(
    name: str, G: Any, row: Callable[[Distances, int], Any], method: str, *, paths: bool, cutoff: float | None = None, **given: Any
) -> Named:
    """Yield each node with its row, like NetworkX's function of this name, with the arguments `cutoff` and `given`.

    `row` makes the row of a node number from a block of distances, which has predecessors if `paths`. See `sparse` for `method`.
    """
    if cutoff is not None:
        given["cutoff"] = cutoff
    drawn, many = yield from _first_rows(name, G, given)
    if method == "unweighted" and cutoff is not None and not math.isinf(cutoff):
        cutoff = math.ceil(cutoff)  # NetworkX's search starts another level below the cutoff: 1.5 reaches two edges
    if cutoff is not None and 0 <= cutoff < math.inf:
        blocks = _near(G, given.get("weight"), method, drawn, cutoff, paths=paths)
    else:
        blocks = _blocks(G, given.get("weight"), method, drawn, many, paths=paths)
    nodes = list(G)
    while drawn < len(nodes):
        try:
            block = next(blocks).within(cutoff)
        except (NotImplementedError, SemiringError):  # only NetworkX can answer, for example after a negative cycle
            yield from islice(_by_networkx(name, G, given), drawn, None)
            return
        count = block.matrix.shape[0]
        for i in range(drawn, drawn + count):
            yield nodes[i], row(block, i)
        drawn += count


def _by_networkx(name: str, G: Any, given: dict[str, Any]) -> Named:
    found: Named = getattr(nx, name)(G, backend="networkx", **given)
    return found


def _first_rows(name: str, G: Any, given: dict[str, Any]) -> Generator[tuple[Any, Any], None, tuple[int, int]]:
    """Yield rows by NetworkX's own searches as long as these are worthwhile.

    A row with numbers that are not Python's ends the search, because this library returns Python numbers. Searches go on to the last row
    if the rest takes less time than all distances here. Returns the number of rows yielded, and the number of rows after which NetworkX
    would take twice as long as all distances here.
    """
    drawn, seconds, patience = 0, 0.0, 0.0
    n, m, whole = 0, 0, 0.0
    for node, row in _by_networkx(name, G, given):
        reached = row[0] if isinstance(row, tuple) else row
        if given.get("weight") is not None and not _PYTHONS.issuperset(map(type, reached.values())):
            break
        yield node, row
        if not drawn:
            n, m, whole = theirs(name, G, given)
            patience = reading(n, m)
        drawn += 1
        seconds += whole * len(reached) / n**2
        if seconds > patience:
            each, here = seconds / drawn, preparation(n, m)
            if each * (n - drawn) > here:
                return drawn, math.ceil(2 * here / each)
            patience = math.inf
    return drawn, drawn


def _blocks(G: Any, weight: Any, method: str, drawn: int, many: int, *, paths: bool) -> Iterator[Distances]:
    """Yield distances from the nodes after the first `drawn`, in blocks that double until `many` rows are drawn."""
    edges, nodes, options = sparse(G, weight, method), list(G), Options(paths=paths, progress=False)
    while drawn < edges.n:
        count = min(drawn, edges.n - drawn) if drawn < many else edges.n - drawn
        some = None if count == edges.n else range(drawn, drawn + count)
        found = solve(GivenGraph(edges), Question(MIN_PLUS, options._replace(sources=some)))
        yield Distances(nodes, found.values, found.predecessors(), drawn) if paths else Distances(nodes, found, None, drawn)
        drawn += count


def _near(G: Any, weight: Any, method: str, drawn: int, cutoff: float, *, paths: bool) -> Iterator[Distances]:
    """Yield the distances within a cutoff from the nodes after the first `drawn`."""
    edges = sparse(G, weight, method)
    options = Options(paths=paths, progress=False, limit=cutoff, sources=range(drawn, edges.n))
    found = solve(GivenGraph(edges), Question(MIN_PLUS, options))
    matrix = SparseArray.of_scipy(found.values if paths else found, np.inf)
    yield NearDistances(list(G), matrix, found._store.tree if paths else None, drawn)


# Shortest paths between all pairs.


@algorithm
def floyd_warshall(G: Any, weight: Any = "weight") -> dict[Any, dict[Any, Any]]:
    return _complete(distances(G, weight, "floyd-warshall"))


@algorithm
def floyd_warshall_predecessor_and_distance(G: Any, weight: Any = "weight") -> tuple[dict[Any, dict[Any, Any]], dict[Any, dict[Any, Any]]]:
    found = distances(G, weight, "floyd-warshall", paths=True)
    assert found.predecessors is not None
    before = {}
    for i, (u, row) in enumerate(zip(found.nodes, found.predecessors, strict=True)):
        targets = np.flatnonzero(row >= 0)
        entries = {found.nodes[v]: found.nodes[p] for v, p in zip(targets.tolist(), row[targets].tolist(), strict=True)}
        if G.has_edge(u, u):
            entries[found.nodes[i]] = u  # a loop has a predecessor even if no shortest path takes the loop
        if entries:
            before[u] = entries
    return before, _complete(found)


def _complete(found: Distances) -> dict[Any, dict[Any, Any]]:
    """Map every node to its distances to all nodes, ∞ without a path."""
    nodes = found.nodes
    if found.reached.all():
        return {u: dict(zip(nodes, row.tolist(), strict=True)) for u, row in zip(nodes, found.matrix, strict=True)}
    unreached = dict.fromkeys(nodes, math.inf)
    return {u: unreached | found.lengths(i) for i, u in enumerate(nodes)}


@algorithm
def floyd_warshall_numpy(G: Any, nodelist: Any = None, weight: Any = "weight") -> np.ndarray[Any, Any]:
    if nodelist is not None and not (len(nodelist) == len(G) == len(set(nodelist))):
        raise nx.NetworkXError(
            "nodelist must contain every node in G with no repeats. If you wanted a subgraph of G use G.subgraph(nodelist)"
        )
    matrix = nx.to_numpy_array(G, nodelist, multigraph_weight=min, weight=weight, nonedge=np.inf, backend="networkx")
    if (matrix.diagonal() < 0).any():
        raise NotImplementedError("an edge from a node to itself is negative, which versions of NetworkX handle differently")
    np.fill_diagonal(matrix, np.inf)  # a loop never shortens a path
    if not (matrix > -np.inf).all():
        raise NotImplementedError("a weight is −∞ or not a number")
    tails, heads = np.nonzero(matrix < np.inf)
    edges = compressed(tails, heads, matrix[tails, heads], len(matrix))
    return np.asarray(solve(GivenGraph(edges), Question(MIN_PLUS)))


@algorithm
def all_pairs_shortest_path_length(G: Any, cutoff: float | None = None) -> Named:
    return row_by_row("all_pairs_shortest_path_length", G, _lengths, "unweighted", paths=False, cutoff=cutoff)


@algorithm
def all_pairs_shortest_path(G: Any, cutoff: float | None = None) -> Named:
    return row_by_row("all_pairs_shortest_path", G, _paths, "unweighted", paths=True, cutoff=cutoff)


@algorithm
def all_pairs_dijkstra(G: Any, cutoff: float | None = None, weight: Any = "weight") -> Named:
    def both(found: Distances, i: int) -> tuple[dict[Any, Any], dict[Any, list[Any]]]:
        return found.lengths(i), found.paths(i)

    return row_by_row("all_pairs_dijkstra", G, both, "dijkstra", paths=True, cutoff=cutoff, weight=weight)


@algorithm
def all_pairs_dijkstra_path_length(G: Any, cutoff: float | None = None, weight: Any = "weight") -> Named:
    return row_by_row("all_pairs_dijkstra_path_length", G, _lengths, "dijkstra", paths=False, cutoff=cutoff, weight=weight)


@algorithm
def all_pairs_dijkstra_path(G: Any, cutoff: float | None = None, weight: Any = "weight") -> Named:
    return row_by_row("all_pairs_dijkstra_path", G, _paths, "dijkstra", paths=True, cutoff=cutoff, weight=weight)


@algorithm
def all_pairs_bellman_ford_path_length(G: Any, weight: Any = "weight") -> Named:
    return row_by_row("all_pairs_bellman_ford_path_length", G, _lengths, "bellman-ford", paths=False, weight=weight)


@algorithm
def all_pairs_bellman_ford_path(G: Any, weight: Any = "weight") -> Named:
    return row_by_row("all_pairs_bellman_ford_path", G, _paths, "bellman-ford", paths=True, weight=weight)


@algorithm
def johnson(G: Any, weight: Any = "weight") -> dict[Any, dict[Any, list[Any]]]:
    try:
        found = distances(G, weight, "bellman-ford", paths=True)
    except NegativeCycleError as error:
        raise nx.NetworkXUnbounded("Negative cycle detected.") from error
    return {node: found.paths(i) for i, node in enumerate(found.nodes)}


def shortest_path(G: Any, source: None = None, target: None = None, weight: Any = None, method: str = "dijkstra") -> Any:
    """See `networkx.shortest_path`; for all pairs."""
    weighted = {"dijkstra": all_pairs_dijkstra_path, "bellman-ford": all_pairs_bellman_ford_path}
    return _by_method(G, weight, method, all_pairs_shortest_path, weighted)


def shortest_path_length(G: Any, source: None = None, target: None = None, weight: Any = None, method: str = "dijkstra") -> Any:
    """See `networkx.shortest_path_length`; for all pairs."""
    weighted = {"dijkstra": all_pairs_dijkstra_path_length, "bellman-ford": all_pairs_bellman_ford_path_length}
    return _by_method(G, weight, method, all_pairs_shortest_path_length, weighted)


def _by_method(G: Any, weight: Any, method: str, unweighted: Callable[..., Named], weighted: dict[str, Callable[..., Named]]) -> Named:
    if method not in weighted:
        raise ValueError(f"method not supported: {method}")
    return unweighted(G) if weight is None else weighted[method](G, weight=weight)


@algorithm
def average_shortest_path_length(G: Any, weight: Any = None, method: str | None = None) -> float:
    method = method or ("unweighted" if weight is None else "dijkstra")
    if method not in ("unweighted", "dijkstra", "bellman-ford", "floyd-warshall", "floyd-warshall-numpy"):
        raise ValueError(f"method not supported: {method}")
    n = len(G)
    if n == 0:
        raise nx.NetworkXPointlessConcept("the null graph has no paths, thus there is no average shortest path length")
    if n == 1:
        return 0
    if G.is_directed() and not nx.is_strongly_connected(G, backend="networkx"):
        raise nx.NetworkXError("Graph is not strongly connected.")
    if not G.is_directed() and not nx.is_connected(G, backend="networkx"):
        raise nx.NetworkXError("Graph is not connected.")
    try:
        total = total_distance(sparse(G, weight, method))
    except NegativeCycleError as error:
        if method != "bellman-ford":
            raise
        raise nx.NetworkXUnbounded("Negative cycle detected.") from error
    return float(total / (n * (n - 1)))


@algorithm
def shortest_simple_paths(G: Any, source: Any, target: Any, weight: Any = None) -> Iterator[list[Any]]:
    if G.is_multigraph():
        raise nx.NetworkXNotImplemented("not implemented for multigraph type")
    edges = searched_edges(G, weight).csr(MIN_PLUS, Reading(dtype=np.float64))

    def found() -> Iterator[list[Any]]:
        # Like NetworkX, check the nodes on the first request for a path.
        nodes = list(G)
        for end, what in ((source, "source"), (target, "target")):
            if end not in G:
                raise nx.NodeNotFound(f"{what} node {end} not in graph")
        none = True
        for _, path in simple_paths(edges, nodes.index(source), nodes.index(target)):
            none = False
            yield [nodes[v] for v in path]
        if none:
            raise nx.NetworkXNoPath(f"No path between {source} and {target}.")

    return found()


def _tied(G: Any, weight: Any, method: str) -> Callable[[Any], AllPaths]:
    """Read a graph, and return a function that finds all shortest paths from a node."""
    method = "unweighted" if weight is None else method
    if method not in ("unweighted", "dijkstra", "bellman-ford"):
        raise ValueError(f"method not supported: {method}")
    edges = sparse(G, weight, method)
    if (edges.weights[0] < 0).any():
        raise NotImplementedError("a weight is negative, and sums of floats in another order may tie differently")
    number, searches = {node: i for i, node in enumerate(G)}, searches_for(MIN_PLUS, edges.dtypes, "cpu")

    def found(source: Any) -> AllPaths:
        if source not in G:
            raise nx.NodeNotFound(f"Node {source} not found in graph")
        return AllPaths(MIN_PLUS, edges, number[source], searches=searches)

    return found


@algorithm
def all_shortest_paths(G: Any, source: Any, target: Any, weight: Any = None, method: str = "dijkstra") -> Iterator[list[Any]]:
    found, nodes = _tied(G, weight, method)(source), list(G)

    def paths() -> Iterator[list[Any]]:
        # Like NetworkX, look for the target on the first request for a path.
        walks = found.paths(nodes.index(target)) if target in G else iter(())
        first = next(walks, None)
        if first is None:
            raise nx.NetworkXNoPath(f"Target {target} cannot be reached from given sources")
        for path in chain([first], walks):
            yield [nodes[v] for v in path]

    return paths()


@algorithm
def single_source_all_shortest_paths(G: Any, source: Any, weight: Any = None, method: str = "dijkstra") -> Named:
    nodes = list(G)
    return ((nodes[v], paths) for v, paths in _tied(G, weight, method)(source).lists(nodes))


@algorithm
def all_pairs_all_shortest_paths(G: Any, weight: Any = None, method: str = "dijkstra") -> Named:
    nodes = list(G)
    if not nodes:
        return iter(())  # whatever the method
    found = _tied(G, weight, method)
    return ((source, {nodes[v]: paths for v, paths in found(source).lists(nodes)}) for source in nodes)


# Shortest paths from the nearest of several nodes.


class _FromNearest:
    """Distances and paths from the nearest of several nodes, by one search from all of them together; weights are at least 0."""

    def __init__(self, G: Any, sources: Any, weight: Any, cutoff: float | None = None) -> None:
        edges, self.nodes = sparse(G, weight, "dijkstra"), list(G)
        self.number = {node: i for i, node in enumerate(self.nodes)}
        self.sources = {self.number[source]: source for source in dict.fromkeys(sources)}
        for i, source in self.sources.items():
            self.nodes[i] = source  # the caller's object in the result, as in NetworkX
        some = np.array(list(self.sources))
        self.found = found = nearest_sources(MIN_PLUS, edges, some, 1, searches_for(MIN_PLUS, edges.dtypes, "cpu"))
        (self.values,), self.before, self.nearest = [v[:, 0] for v in found.values], found.tree[:, 0], found.sources[:, 0]
        self.reached = self.nearest >= 0 if cutoff is None else (self.nearest >= 0) & (self.values <= cutoff)
        self.reached[some] = False
        near = np.flatnonzero(self.reached)
        self.others = near[self.values[near].argsort(kind="stable")]  # nearest first, after the sources

    def lengths(self) -> dict[Any, Any]:
        lengths: dict[Any, Any] = dict.fromkeys(self.sources.values(), 0)
        lengths.update(zip(map(self.nodes.__getitem__, self.others.tolist()), self.values[self.others].tolist(), strict=True))
        return lengths

    def paths(self) -> dict[Any, list[Any]]:
        found: list[Any] = [None] * len(self.nodes)
        for i, source in self.sources.items():
            found[i] = [source]
        order = self.others.tolist()
        extend(found, self.before.tolist(), self.nodes, order)
        return {self.nodes[i]: found[i] for i in chain(self.sources, order)}

    def one(self, target: Any) -> tuple[Any, list[Any]]:
        i = self.number.get(target, -1)
        if i < 0 or not self.reached[i]:
            raise nx.NetworkXNoPath(f"No path to {target}.")
        *before, _ = self.found.path(i)
        return self.values[i].item(), [*(self.nodes[v] for v in before), target]


def _require_sources(G: Any, sources: Any) -> None:
    if not sources:
        raise ValueError("sources must not be empty")
    for source in sources:
        if source not in G:
            raise nx.NodeNotFound(f"Node {source} not found in graph")


@algorithm
def multi_source_dijkstra(G: Any, sources: Any, target: Any = None, cutoff: float | None = None, weight: Any = "weight") -> Any:
    _require_sources(G, sources)
    if target in sources:
        return 0, [target]
    found = _FromNearest(G, sources, weight, cutoff)
    return (found.lengths(), found.paths()) if target is None else found.one(target)


@algorithm
def multi_source_dijkstra_path(G: Any, sources: Any, cutoff: float | None = None, weight: Any = "weight") -> dict[Any, list[Any]]:
    _require_sources(G, sources)
    return _FromNearest(G, sources, weight, cutoff).paths()


@algorithm
def multi_source_dijkstra_path_length(G: Any, sources: Any, cutoff: float | None = None, weight: Any = "weight") -> dict[Any, Any]:
    _require_sources(G, sources)
    return _FromNearest(G, sources, weight, cutoff).lengths()


@algorithm
def voronoi_cells(G: Any, center_nodes: Any, weight: Any = "weight") -> dict[Any, set[Any]]:
    _require_sources(G, center_nodes)
    found = _FromNearest(G, center_nodes, weight)
    cells: dict[int, set[Any]] = {i: set() for i in found.sources}
    rest: set[Any] = set()
    for node, i in zip(found.nodes, found.nearest.tolist(), strict=True):
        cells.get(i, rest).add(node)
    named: dict[Any, set[Any]] = {found.nodes[i]: cell for i, cell in cells.items()}
    return named | {"unreachable": rest} if rest else named


# Reachability.


@algorithm
def transitive_closure(G: Any, reflexive: bool | None = False) -> Any:
    if reflexive not in {None, True, False}:
        raise nx.NetworkXError("Incorrect value for the parameter `reflexive`")
    nodes, edges = truth(G)
    reached = reachability(edges)
    if reflexive is True:
        np.fill_diagonal(reached, True)
    elif reflexive is not None and reflexive is not False:
        return G.copy()  # 1 and 0 pass NetworkX's check, but then act as neither True nor False
    elif reflexive is None or not G.is_directed():
        # NetworkX's search takes an undirected edge only once, so no walk returns to its first node.
        np.fill_diagonal(reached, False)
    added = reached & ~edges
    return _add_edges(G.copy(), nodes, added if G.is_directed() else np.triu(added))


@algorithm
def transitive_closure_dag(G: Any, topo_order: None = None) -> Any:
    nodes, edges = truth(G)
    reached = reachability(edges)
    if reached.diagonal().any():
        raise nx.NetworkXUnfeasible("Graph contains a cycle or graph changed during iteration")
    return _add_edges(G.copy(), nodes, reached & ~edges)


def _add_edges(graph: Any, nodes: list[Any], matrix: np.ndarray[Any, Any]) -> Any:
    for u, row in zip(nodes, matrix, strict=True):
        graph.add_edges_from((u, nodes[v]) for v in np.flatnonzero(row).tolist())
    return graph


@algorithm
def transitive_reduction(G: Any) -> Any:
    nodes, edges = truth(G)
    reached = reachability(edges)
    if reached.diagonal().any():
        raise nx.NetworkXError("Directed Acyclic Graph required for transitive_reduction")
    needed = edges & ~matmul(edges, reached, BOOLEAN)
    reduction = nx.DiGraph()
    reduction.add_nodes_from(nodes)
    return _add_edges(reduction, nodes, needed)


@algorithm
def has_path(G: Any, source: Any, target: Any) -> bool:
    for end, what in ((source, "Source"), (target, "Target")):
        if end not in G:
            raise nx.NodeNotFound(f"{what} {end} is not in G")
    nodes, edges = truth(G)
    return bool(reachability(edges, reflexive=True)[nodes.index(source), nodes.index(target)])


@algorithm
def is_strongly_connected(G: Any) -> bool:
    if len(G) == 0:
        raise nx.NetworkXPointlessConcept("Connectivity is undefined for the null graph.")
    return bool(reachability(truth(G)[1], reflexive=True).all())
