"""Statistics of a graph: diameter, radius, eccentricities, average path length and the histogram of distances, without n² numbers."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Unpack

import numpy as np

from semiring.algebra.catalogue import MIN_PLUS
from semiring.algorithms.csr import CSR
from semiring.algorithms.hops import distance_sums
from semiring.algorithms.rows_of_edges import search_order
from semiring.arrays.devices import device_of, host
from semiring.arrays.exchange import borrowed, lends_memory
from semiring.arrays.memory import fits
from semiring.arrays.pieces import HOST, slices
from semiring.common.docstrings import described_by
from semiring.common.errors import GraphError, noted, raised_here
from semiring.common.html import BAR, Shown, beside
from semiring.execution.closure import close_edges, solve
from semiring.execution.reporting import reporting
from semiring.execution.rows import block_of_rows
from semiring.execution.searches import eliminated
from semiring.graphs import Graph, edges_of, read_graph
from semiring.planning import Plan, closure_problem, edges_problem, plan
from semiring.planning.options import ComputationOptions, Options, takes
from semiring.results.farthest import FarthestPair
from semiring.results.running import RunningDistances
from semiring.results.views import as_floats
from semiring.solve import apsp

__all__ = ["Statistics", "statistics"]

Array = np.ndarray[Any, Any]

_BINS = 64
"""Bins of the histogram at most, where nobody names them, and bars of its picture."""


@dataclass(frozen=True, eq=False, repr=False)
class Statistics(Shown):
    """What the distances of a graph are, all together; `statistics` makes it.

    Pairs are ordered, and of different vertices: in an undirected graph every two vertices count twice.

    Examples
    --------
    >>> import semiring as sr
    >>> ways = sr.edges([("a", "b", 1.5), ("b", "c", 2.0)], directed=False)
    >>> line = sr.statistics(ways)
    >>> line.diameter, line.radius, line.average, line.connected
    (3.5, 2.0, 2.3333333333333335, 6)

    Attributes
    ----------
    nodes : tuple
        The vertices.
    eccentricities : float64 array of shape (n,)
        For each vertex the distance to the farthest one; ∞ where it does not reach all.
    connected : int
        Pairs between which there is a path.
    total : float
        The sum of their distances (of an undirected graph twice the Wiener index).
    counts : int64 array of shape (k,)
        How many distances of connected pairs lie in each bin.
    bins : float64 array of shape (k + 1,)
        The edges of the bins, each of which has its lower edge, and the last one also its upper edge.
    farthest : FarthestPair or None
        The source, the target and the distance of the pair that is the farthest apart of all connected ones; of several, that of the
        first row. None where no pair is connected.
    """

    nodes: tuple[Any, ...]
    eccentricities: Array
    connected: int
    total: float
    counts: Array
    bins: Array
    farthest: FarthestPair | None = None

    @property
    def radius(self) -> float:
        """The least eccentricity; NaN for a graph without vertices."""
        return float(self.eccentricities.min()) if self.eccentricities.size else math.nan

    @property
    def diameter(self) -> float:
        """The greatest eccentricity, ∞ unless every vertex reaches every other one; NaN for a graph without vertices."""
        return float(self.eccentricities.max()) if self.eccentricities.size else math.nan

    @property
    def largest(self) -> float:
        """The greatest finite distance, that of `farthest`; NaN where no pair is connected."""
        return math.nan if self.farthest is None else float(self.farthest.distance)

    @property
    def average(self) -> float:
        """The average distance of connected pairs; NaN where there is none."""
        return self.total / self.connected if self.connected else math.nan

    def facts(self) -> tuple[str, list[tuple[str, str]]]:
        """What Jupyter shows."""
        n = len(self.nodes)
        facts = [
            ("connected", f"{self.connected:,} of {n * (n - 1):,} pairs"),
            ("average", f"{self.average:.6g}"),
            ("radius", f"{self.radius:.6g}"),
            ("diameter", f"{self.diameter:.6g}"),
        ]
        if self.farthest is not None:
            source, target, distance = self.farthest
            facts.append(("largest finite distance", f"{distance:.6g}, from {source!r} to {target!r}"))
        return f"distances of {n:,} vertices", facts

    def __repr__(self) -> str:
        title, ((_, connected), *figures) = self.facts()
        if math.isfinite(self.diameter):  # which is the largest finite distance
            figures = figures[:3]
        return f"<{title}: {connected} connected, {', '.join(f'{name} {text}' for name, text in figures)}>"

    def _repr_html_(self) -> str:
        return beside(super()._repr_html_(), self._histogram())

    def _histogram(self) -> str:
        """The histogram as HTML: a bar for each bin."""
        if not self.connected or not self.counts.any():
            return ""
        joined = -(-len(self.counts) // _BINS)  # bins for a bar
        starts = np.arange(0, len(self.counts), joined)
        counts, edges = np.add.reduceat(self.counts, starts).tolist(), np.append(self.bins[starts], self.bins[-1]).tolist()
        bars = "".join(
            f"<div title='{count:,} from {low:.6g} to {high:.6g}' style='flex:1{_bar(count / max(counts))}'></div>"
            for count, (low, high) in zip(counts, pairwise(edges), strict=True)
        )
        base = "display:flex;align-items:flex-end;gap:1px;height:7em;border-bottom:1px solid rgba(128,128,128,0.35)"
        axis = f"<span>{edges[0]:.4g}</span><span style='opacity:0.7'>distance</span><span>{edges[-1]:.4g}</span>"
        below = f"<div style='display:flex;justify-content:space-between;font-size:85%'>{axis}</div>"
        return f"<div style='width:20em;padding-top:0.5em'><div style='{base}'>{bars}</div>{below}</div>"


def _bar(part: float) -> str:
    """The style of a bar that is so high beside the highest one; a single pair is seen too."""
    return f";height:{100 * part:.3g}%;min-height:1px;background:{BAR}" if part else ""


@raised_here
@described_by(apsp)
@takes(ComputationOptions)
def statistics(graph: Any, *, bins: int | Sequence[float] | Array = _BINS, **options: Unpack[ComputationOptions]) -> Statistics:
    """Diameter, radius, eccentricities, average path length and histogram of all shortest distances of a graph.

    Examples
    --------
    >>> import semiring as sr
    >>> ways = sr.edges([("a", "b"), ("b", "c"), ("c", "d")], directed=False)
    >>> line = sr.statistics(ways)
    >>> line
    <distances of 4 vertices: 12 of 12 pairs connected, average 1.66667, radius 2, diameter 3>
    >>> line.eccentricities, line.counts, line.bins
    (array([3., 2., 2., 3.]), array([6, 4, 2]), array([1., 2., 3., 4.]))

    Parameters
    ----------
    graph : array of shape (n, n), sparse array, graph of another library, or what `edges` gives
        See `apsp`.
    bins : int or increasing sequence of numbers
        The edges of the histogram's bins, as for `numpy.histogram`; what lies outside of them is not counted. A number from 2: at most so
        many bins of one width, a power of two, which are chosen by the distances; where all of these are whole numbers it is at least 1.
    weight, nonedge, dtype
        As for `apsp`.

    Returns
    -------
    Statistics

    Other Parameters
    ----------------
    device, threads, overwrite, memory_limit, checkpoint, progress, comm
        As for `apsp`.

    Raises
    ------
    GraphError
        For several graphs, or bins that do not increase.
    NegativeCycleError, SemiringError
        As for `apsp`.

    Notes
    -----
    Distances are found some rows at a time where that is predicted to be faster than the closure, or that does not fit, and are summed as
    float64, row by row, so that of the same distances all numbers are the same to the last bit, by however many processes. Where all edges
    of a sparse graph are equal, hops are counted without a row. `diameter` and `radius` take a few searches. More: How it works, Planning.
    """
    given = Options.of(options, "statistics", ComputationOptions)
    with noted("the statistics", MIN_PLUS, graph):
        labels, n, found = (_by_one if given.comm is None else _by_ranks)(graph, bins, given)
    nodes = tuple(range(n)) if labels is None else tuple(labels)
    farthest = None if found.farthest is None else FarthestPair(nodes[found.farthest[0]], nodes[found.farthest[1]], found.farthest[2])
    return Statistics(nodes, found.eccentricities, found.connected, found.total, *found.histogram(), farthest)


def _by_one(graph: Any, bins: Any, options: Options) -> tuple[Sequence[Hashable] | None, int, RunningDistances]:
    """The labels, the number of vertices, and what their distances come to."""
    found = RunningDistances(bins)
    if not isinstance(graph, np.ndarray) and lends_memory(graph):  # a sum is no array, so that its library need not have `dtype`
        lent = borrowed(graph)
        graph, options = lent.array, options._replace(overwrite=options.overwrite and not lent.constant)
    listed = edges_of(graph, MIN_PLUS, **_reading(options))
    if listed is not None and not (options.overwrite or options.needs_block_rows) and _count_hops(listed[0], options, found):
        return listed[1], listed[0].n, found
    labels, n, blocks = _rows(graph, listed, options)
    for first, rows in blocks:
        found.add(first, as_floats(host(rows), MIN_PLUS))
    return labels, n, found


def _reading(options: Options) -> dict[str, Any]:
    """How a graph is to be read."""
    return {"weight": options.weight, "nonedge": options.nonedge, "dtype": options.dtype}


def _count_hops(edges: CSR, options: Options, found: RunningDistances) -> bool:
    """Count how many pairs are so many hops apart, without a row, where all edges are equally long; whether they are."""
    if str(options.device) not in ("auto", "cpu") or search_order(MIN_PLUS, edges) != "levels":
        return False
    n, m = edges.n, len(edges.heads)
    how = plan(closure_problem(MIN_PLUS, edges.dtypes, (n, n), options._replace(device="cpu"), edges=m, order="levels"))
    with reporting(options.progress, how) as meter:
        if meter is not None:
            meter.expect(n * (n + m))
        sums = distance_sums(edges, threads=options.threads, meter=meter)
    if sums is None:
        return False
    row = int(np.where(sums.connected > 0, sums.farthest, -1).argmax())
    found.add_sums(sums, row, as_floats(block_of_rows(edges, MIN_PLUS, options, range(row, row + 1)), MIN_PLUS))
    return True


def _by_ranks(graph: Any, bins: Any, options: Options) -> tuple[Sequence[Hashable] | None, int, RunningDistances]:
    """The same by the ranks of a communicator, of which each looks at the rows that it finds."""
    from semiring.execution.ranks import rows_by_ranks
    from semiring.mpi.ranks import Ranks

    ranks = Ranks.of(options.comm)
    with ranks.together():
        found = RunningDistances(bins)
    ranks.same(bins=found.asked)
    given, blocks = rows_by_ranks(graph, MIN_PLUS, options)
    with ranks.together():
        for first, rows in blocks:
            found.add(first, as_floats(rows, MIN_PLUS))
    found, *others = ranks.allgather(found)
    for other in others:
        found.merge(other)
    return given.labels, given.n, found


def _rows(
    graph: Any, listed: tuple[CSR, Sequence[Hashable] | None] | None, options: Options
) -> tuple[Sequence[Hashable] | None, int, Iterator[tuple[int, Any]]]:
    """The labels, the number of vertices, and the distances from some vertices at a time, with the first of these."""
    forced = options.overwrite or options.needs_block_rows
    if listed is not None:
        read: Any = listed[0]
        n, labels = read.n, listed[1]
        how = None if forced else _planned(read, options)
    elif forced:
        read, labels, n, how = None, None, -1, None
    else:
        read = read_graph(graph, MIN_PLUS, **_reading(options))
        if read.batch:
            raise GraphError(f"statistics are of one graph, not of a batch of shape {read.batch}; pass one at a time")
        n, labels = read.n, read.labels
        how = _planned(read, options)
    if how is not None and not _whole_is_the_way(how):
        return labels, n, _blocks(read, how, options)
    # What is read already need not be read again.
    if isinstance(read, CSR):
        found = close_edges(read, labels, MIN_PLUS, options, reflexive=True)
    else:
        given, rest = (read.values[0], options._replace(nonedge=None, dtype=None)) if isinstance(read, Graph) else (graph, options)
        found = solve(given, MIN_PLUS, rest, reflexive=True)
    if listed is None and forced and hasattr(found, "to_numpy"):  # a DataFrame
        labels, found = tuple(found.index), found.to_numpy()
    if len(found.shape) != 2:
        raise GraphError(f"statistics are of one graph, not of a batch of shape {tuple(found.shape[:-2])}; pass one at a time")
    n = int(found.shape[0])
    return labels, n, ((some.start, found[some]) for some in slices(n, n, HOST))


def _blocks(graph: CSR | Graph, how: Plan, options: Options) -> Iterator[tuple[int, Any]]:
    """The distances from some vertices at a time, with the first of these."""
    n = graph.n
    steps = n + (len(graph.heads) if isinstance(graph, CSR) else n * n)
    with reporting(options.progress, how) as meter:
        if meter is not None:
            meter.expect(n * steps)
        rows, together = _finder(graph, how, options)
        for some in slices(n, 1, together):
            yield some.start, rows(range(n)[some])
            if meter is not None:
                meter.add((some.stop - some.start) * steps)


def _finder(graph: CSR | Graph, how: Plan, options: Options) -> tuple[Callable[[range], Any], int]:
    """What finds the distances from some vertices, and from how many at a time."""
    if not isinstance(graph, CSR) or how.strategy != "elimination":
        return lambda sources: block_of_rows(graph, MIN_PLUS, options, sources), max(1, HOST // max(1, graph.n))
    matrix, every = eliminated(how, graph, None), np.arange(graph.n)
    return lambda sources: matrix.between(np.array(sources), every, every_target=True)[0], matrix.elimination.together


def _planned(graph: CSR | Graph, options: Options) -> Plan:
    """The plan for the closure of all vertices."""
    if isinstance(graph, CSR):
        return plan(edges_problem(MIN_PLUS, graph, options))
    return plan(closure_problem(MIN_PLUS, graph.dtypes, (graph.n, graph.n), options, place=device_of(graph.values[0])))


def _whole_is_the_way(how: Plan) -> bool:
    """Whether the closure of all vertices is the way to all of its rows: it is planned for them, and fits half of the free memory."""
    return not how.by_edges and fits(2 * how.problem.result_bytes, how.problem.place)
