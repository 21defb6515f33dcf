"""`statistics`, `diameter` and `radius`: summaries of all shortest distances of a graph, without an n × n matrix where possible."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Unpack

import numpy as np

from semiring.algebra.catalogue import MIN_PLUS
from semiring.algorithms.csr import CSR
from semiring.algorithms.eccentricities import extreme_eccentricity
from semiring.algorithms.hops import distance_sums
from semiring.algorithms.rows_of_edges import search_order
from semiring.arrays.devices import device_of, host
from semiring.arrays.exchange import borrowed, lends_memory
from semiring.arrays.memory import fits
from semiring.arrays.pieces import HOST, slices
from semiring.common.docstrings import described_by
from semiring.common.errors import noted, raised_here
from semiring.execution.sums import add_distances, add_distances_of_ranks, extreme_distance
from semiring.planning.options import ComputationOptions, Options, takes
from semiring.results.statistics import BINS, RunningDistances, Statistics, statistics_from
from semiring.solve import apsp

__all__ = ["Statistics", "diameter", "radius", "statistics"]

Array = np.ndarray[Any, Any]


@raised_here
@described_by(apsp)
@takes(ComputationOptions)
def statistics(graph: Any, *, bins: int | Sequence[float] | Array | None = BINS, **options: Unpack[ComputationOptions]) -> Statistics:
    """Return diameter, radius, eccentricities, average path length and histogram of all shortest distances of a graph.

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
        The bin edges of the histogram, as for `numpy.histogram`; distances outside are not counted. A number from 2 gives at most so many
        bins, chosen by the distances. The bins have one width, a power of two, at least 1 if all distances are whole numbers. None omits
        the histogram, which takes half the time if the graph is eliminated.
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
        If the argument holds several graphs, or the bins do not increase.
    NegativeCycleError, SemiringError
        As for `apsp`.

    Notes
    -----
    The distances are computed some rows at a time if this is predicted to be faster than the closure, or the closure does not fit. They are
    summed as float64 row by row, so any number of processes gives the same result to the last bit. Eliminated graphs are summed in the
    order of elimination. A sparse graph with equal edges needs only hop counts. `diameter` and `radius` take a few searches. More: How it
    works, Planning.
    """
    given = Options.of(options, "statistics", ComputationOptions)
    with noted("the statistics", MIN_PLUS, graph):
        if given.comm is None:
            found = RunningDistances(bins)
            labels, n = _look(found, graph, given)
        else:
            labels, n, found = _by_ranks(graph, bins, given)
    return statistics_from(found, tuple(range(n)) if labels is None else tuple(labels))


@raised_here
@described_by(apsp)
@takes(ComputationOptions)
def diameter(graph: Any, **options: Unpack[ComputationOptions]) -> float:
    """Return the diameter of a graph: the greatest of all shortest distances.

    Examples
    --------
    >>> import semiring as sr
    >>> ways = sr.edges([("a", "b", 1.5), ("b", "c", 2.0)], directed=False)
    >>> sr.diameter(ways)
    3.5

    Parameters
    ----------
    graph : array of shape (n, n), sparse array, graph of another library, or what `edges` gives
        See `apsp`.
    weight, nonedge, dtype
        As for `apsp`.

    Returns
    -------
    float
        ∞ unless every vertex reaches every other one; NaN for a graph without vertices.

    Other Parameters
    ----------------
    device, threads, overwrite, memory_limit, checkpoint, progress, comm
        As for `apsp`.

    Raises
    ------
    NegativeCycleError, SemiringError
        As for `apsp`.

    Notes
    -----
    Each search of a sparse graph bounds the eccentricities of all vertices (Takes and Kosters, 2011), until no other vertex can have a
    greater one. Dense graphs, and graphs that need many searches, take as long as `statistics`. `Statistics.farthest` names the pair.
    """
    return _extreme(graph, Options.of(options, "diameter", ComputationOptions), greatest=True)


@raised_here
@described_by(diameter)
@takes(ComputationOptions)
def radius(graph: Any, **options: Unpack[ComputationOptions]) -> float:
    """Return the radius of a graph: the distance from the most central vertex to the vertex farthest from it.

    Examples
    --------
    >>> import semiring as sr
    >>> ways = sr.edges([("a", "b", 1.5), ("b", "c", 2.0)], directed=False)
    >>> sr.radius(ways)
    2.0

    Parameters
    ----------
    graph, weight, nonedge, dtype
        As for `diameter`.

    Returns
    -------
    float
        ∞ unless some vertex reaches every other one; NaN for a graph without vertices.

    Other Parameters
    ----------------
    device, threads, overwrite, memory_limit, checkpoint, progress, comm
        As for `apsp`.

    Raises
    ------
    NegativeCycleError, SemiringError
        As for `apsp`.

    Notes
    -----
    The method is the same as for `diameter`. `Paths.center` names the most central vertices.
    """
    return _extreme(graph, Options.of(options, "radius", ComputationOptions), greatest=False)


def _extreme(graph: Any, options: Options, *, greatest: bool) -> float:
    """Return the greatest or the least eccentricity, by searches of a sparse graph or from all distances."""
    by_searches = str(options.device) in ("auto", "cpu") and not (options.overwrite or options.needs_block_rows or options.comm is not None)
    if by_searches:
        with noted("the diameter" if greatest else "the radius", MIN_PLUS, graph):
            listed = edges_of(graph, MIN_PLUS, **_reading(options))
            found = None if listed is None else extreme_eccentricity(listed[0], greatest=greatest, every=False, threads=options.threads)
        if found is not None:
            return found[0]
    whole = statistics(graph, **{name: getattr(options, name) for name in ComputationOptions.__optional_keys__})
    return whole.diameter if greatest else whole.radius


def _reading(options: Options) -> dict[str, Any]:
    return {"weight": options.weight, "nonedge": options.nonedge, "dtype": options.dtype}


def _count_hops(edges: CSR, options: Options, found: RunningDistances) -> bool:
    """Count the pairs at each number of hops if all edges have one length, and return True if so."""
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
    """Let each rank of a communicator tally the rows that it computes, and merge the tallies."""
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
    """Tally all distances, some rows at a time, and return the labels and the number of vertices."""
    if not isinstance(graph, np.ndarray) and lends_memory(graph):  # no array is returned, so any `dtype` will do
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
        _refuse_batch(read.batch)
        how = plan(closure_problem(MIN_PLUS, read.dtypes, (read.n, read.n), options, place=device_of(read.values[0])))
        if not _whole_is_the_way(how):
            _look_at_rows(found, read, how, options)
            return read.labels, read.n
        # The matrix has been read: missing edges are ∞ by now, and any warning has been given.
        labels, given, rest = read.labels, read.values[0], options._replace(nonedge=math.inf, dtype=None)
    whole = solve(given, MIN_PLUS, rest, reflexive=True)
    if hasattr(whole, "to_numpy"):  # a DataFrame
        labels, whole = tuple(whole.index), whole.to_numpy()
    _refuse_batch(tuple(whole.shape[:-2]))
    n = int(whole.shape[0])
    for some in slices(n, n, HOST):
        found.add(some.start, as_floats(host(whole[some]), MIN_PLUS))
    return labels, n


def _refuse_batch(batch: tuple[int, ...]) -> None:
    if batch:
        raise GraphError(f"statistics takes one graph, not a batch of shape {batch}; pass one graph at a time")


def _look_along_edges(found: RunningDistances, edges: CSR, labels: Sequence[Hashable] | None, options: Options) -> None:
    """Tally the distances of a sparse graph by hop counts, by elimination, or row by row."""
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
    """Tally the distances of a dense graph from some vertices at a time."""
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
    """Return True if the closure of a dense graph fits into half of the free memory, so that it gives all rows."""
    return fits(2 * how.problem.result_bytes, how.problem.place)
