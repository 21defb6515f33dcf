"""Statistics of a graph: diameter, radius, eccentricities, average path length and the histogram of distances, without n² numbers."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from typing import Any, Unpack

import numpy as np

from semiring.algebra.catalogue import MIN_PLUS
from semiring.algorithms.csr import CSR
from semiring.algorithms.distances import distance_sums
from semiring.algorithms.rows_of_edges import search_order
from semiring.arrays.devices import device_of, host
from semiring.arrays.exchange import borrowed, lends_memory
from semiring.arrays.memory import fits
from semiring.arrays.pieces import HOST, slices
from semiring.common.docstrings import described_by
from semiring.common.errors import GraphError, noted, raised_here
from semiring.execution.closure import close_in_blocks, solve
from semiring.execution.reporting import reporting
from semiring.execution.rows import block_of_rows
from semiring.execution.searches import eliminated, search_steps
from semiring.graphs import Graph, edges_of, read_graph
from semiring.planning import Plan, closure_problem, edges_problem, plan
from semiring.planning.options import ComputationOptions, Options, takes
from semiring.results.running import BINS, RunningDistances
from semiring.results.statistics import Statistics, add_by_elimination, statistics_from
from semiring.results.views import as_floats
from semiring.solve import apsp

__all__ = ["Statistics", "statistics"]

Array = np.ndarray[Any, Any]


@raised_here
@described_by(apsp)
@takes(ComputationOptions)
def statistics(graph: Any, *, bins: int | Sequence[float] | Array | None = BINS, **options: Unpack[ComputationOptions]) -> Statistics:
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
    bins : int, increasing sequence of numbers, or None
        The edges of the histogram's bins, as for `numpy.histogram`; what lies outside of them is not counted. A number from 2: at most so
        many bins of one width, a power of two, which are chosen by the distances; where all of these are whole numbers it is at least 1.
        None for no histogram, which takes half the time where the graph is eliminated.
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
    float64, row by row, so that of the same distances all numbers are the same to the last bit, by however many processes. Those of sparse
    graphs that are eliminated are summed in the order of elimination. Where all edges of a sparse graph are equal, hops are counted without
    a row. `diameter` and `radius` take a few searches. More: How it works, Planning.
    """
    given = Options.of(options, "statistics", ComputationOptions)
    with noted("the statistics", MIN_PLUS, graph):
        labels, n, found = (_by_one if given.comm is None else _by_ranks)(graph, bins, given)
    return statistics_from(found, tuple(range(n)) if labels is None else tuple(labels))


def _by_one(graph: Any, bins: Any, options: Options) -> tuple[Sequence[Hashable] | None, int, RunningDistances]:
    """The labels, the number of vertices, and what their distances come to."""
    found = RunningDistances(bins)
    labels, n = _look(found, graph, options)
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


def _look(found: RunningDistances, graph: Any, options: Options) -> tuple[Sequence[Hashable] | None, int]:
    """Look at all distances, some rows at a time: the labels and the number of vertices."""
    if not isinstance(graph, np.ndarray) and lends_memory(graph):  # a sum is no array, so that its library need not have `dtype`
        lent = borrowed(graph)
        graph, options = lent.array, options._replace(overwrite=options.overwrite and not lent.constant)
    listed = edges_of(graph, MIN_PLUS, **_reading(options))
    if listed is not None:
        edges, labels = listed
        _look_along_edges(found, edges, labels, options)
        return labels, edges.n
    if options.overwrite or options.needs_block_rows:
        labels, given, rest = None, graph, options
    else:
        read = read_graph(graph, MIN_PLUS, **_reading(options))
        if read.batch:
            raise GraphError(f"statistics are of one graph, not of a batch of shape {read.batch}; pass one at a time")
        how = plan(closure_problem(MIN_PLUS, read.dtypes, (read.n, read.n), options, place=device_of(read.values[0])))
        if not _whole_is_the_way(how):
            _look_at_rows(found, read, how, options)
            return read.labels, read.n
        # What is read already need not be read again: what is missing is ∞ by now, and was warned of.
        labels, given, rest = read.labels, read.values[0], options._replace(nonedge=math.inf, dtype=None)
    whole = solve(given, MIN_PLUS, rest, reflexive=True)
    if hasattr(whole, "to_numpy"):  # a DataFrame
        labels, whole = tuple(whole.index), whole.to_numpy()
    if len(whole.shape) != 2:
        raise GraphError(f"statistics are of one graph, not of a batch of shape {tuple(whole.shape[:-2])}; pass one at a time")
    n = int(whole.shape[0])
    for some in slices(n, n, HOST):
        found.add(some.start, as_floats(host(whole[some]), MIN_PLUS))
    return labels, n


def _look_along_edges(found: RunningDistances, edges: CSR, labels: Sequence[Hashable] | None, options: Options) -> None:
    """The same of a sparse graph: hops are counted, what elimination finds is tallied, or rows come by."""
    if not (options.overwrite or options.needs_block_rows) and _count_hops(edges, options, found):
        return
    how = plan(edges_problem(MIN_PLUS, edges, options, tallied=True))
    if how.strategy != "elimination":
        for first, rows in close_in_blocks(how, edges, labels, options):
            found.add(first, as_floats(rows, MIN_PLUS))
        return
    with reporting(options.progress, how) as meter:
        if meter is not None:
            meter.expect(search_steps(edges, edges.n))
        add_by_elimination(found, eliminated(how, edges, labels), meter)


def _look_at_rows(found: RunningDistances, graph: Graph, how: Plan, options: Options) -> None:
    """Look at the distances from some vertices of a dense graph at a time."""
    n = graph.n
    with reporting(options.progress, how) as meter:
        if meter is not None:
            meter.expect(n**3)
        for some in slices(n, n, HOST):
            rows = block_of_rows(graph, MIN_PLUS, options, range(n)[some])
            found.add(some.start, as_floats(host(rows), MIN_PLUS))
            if meter is not None:
                meter.add((some.stop - some.start) * n * n)


def _whole_is_the_way(how: Plan) -> bool:
    """Whether the closure of a dense graph is the way to all of its rows: it fits half of the free memory."""
    return fits(2 * how.problem.result_bytes, how.problem.place)
