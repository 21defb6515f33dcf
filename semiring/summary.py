"""`statistics`, `diameter` and `radius`: summaries of all shortest distances of a graph, without an n × n matrix where possible."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Unpack

from semiring.algebra.catalogue import MIN_PLUS
from semiring.arrays.conversion import Array
from semiring.common.docstrings import described_by
from semiring.common.errors import noted, raised_here
from semiring.execution.sums import add_chosen_distances, add_distances, add_distances_of_ranks, extreme_distance
from semiring.planning.options import ComputationOptions, Options, SummaryOptions, takes
from semiring.results.statistics import BINS, RunningDistances, Statistics
from semiring.solve import apsp

__all__ = ["Statistics", "diameter", "radius", "statistics"]


@raised_here
@described_by(apsp)
@takes(SummaryOptions)
def statistics(graph: Any, *, bins: int | Sequence[float] | Array | None = BINS, **options: Unpack[SummaryOptions]) -> Statistics:
    """Return diameter, radius, eccentricities, average path length and histogram of all or some shortest distances of a graph.

    Examples
    --------
    >>> import semiring as sr
    >>> ways = sr.edges([("a", "b"), ("b", "c"), ("c", "d")], directed=False)
    >>> line = sr.statistics(ways)
    >>> line
    <distances of 4 vertices: 12 of 12 pairs connected, average 1.66667, radius 2, diameter 3>
    >>> line.eccentricities, line.counts, line.bins
    (array([3., 2., 2., 3.]), array([6, 4, 2]), array([1., 2., 3., 4.]))
    >>> sr.statistics(ways, sources="a", limit=2).connected
    2

    Parameters
    ----------
    graph : array of shape (n, n), sparse array, graph of another library, or what `edges` gives
        See `apsp`.
    bins : int, increasing sequence of numbers, or None
        The bin edges of the histogram, as for `numpy.histogram`; distances outside are not counted. A number from 2 gives at most so many
        bins, chosen by the distances. The bins have one width, a power of two, at least 1 if all distances are whole numbers. None omits
        the histogram, which takes half the time if the graph is eliminated.
    sources, targets : vertex or sequence of vertices, optional
        The pairs to summarize; each vertex counts once.
    limit : scalar, optional
        Pairs farther apart count as pairs without a path: eccentricities become ∞, and the other numbers omit the pair.
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
    Distances are computed some rows at a time where this is predicted to be faster than the closure, or the closure does not fit. Those of
    chosen vertices are found as by `apsp`. They are summed as float64 row by row, so all numbers of processes give the same bits.
    Eliminated graphs are summed in the order of elimination. A sparse graph with equal edges needs only hop counts. More: How it
    works, Planning.
    """
    given = Options.of(options, "statistics", SummaryOptions)
    with noted("the statistics", MIN_PLUS, graph):
        if given.sources is not None or given.targets is not None or given.limit is not None:
            return add_chosen_distances(RunningDistances(bins), graph, given)
        if given.comm is None:
            found = RunningDistances(bins)
            labels, n = add_distances(found, graph, given)
        else:
            labels, n, found = add_distances_of_ranks(graph, bins, given)
    return found.summary(tuple(range(n)) if labels is None else tuple(labels))


@raised_here
@described_by(statistics)
@takes(ComputationOptions)
def diameter(graph: Any, **options: Unpack[ComputationOptions]) -> float:
    """Return the diameter of a graph: the greatest of all shortest distances.

    Examples
    --------
    >>> import semiring as sr
    >>> ways = sr.edges([("a", "b", 1.5), ("b", "c", 2.0)], directed=False)
    >>> sr.diameter(ways)
    3.5

    Returns
    -------
    float
        ∞ unless every vertex reaches every other one; NaN for a graph without vertices.

    Raises
    ------
    GraphError, NegativeCycleError, SemiringError
        As for `statistics`.

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

    Returns
    -------
    float
        ∞ unless some vertex reaches every other one; NaN for a graph without vertices.

    Notes
    -----
    The method is the same as for `diameter`. `Paths.center` names the most central vertices.
    """
    return _extreme(graph, Options.of(options, "radius", ComputationOptions), greatest=False)


def _extreme(graph: Any, options: Options, *, greatest: bool) -> float:
    """Return the greatest or the least eccentricity, by searches of a sparse graph or from all distances."""
    if options.comm is None:
        with noted("the diameter" if greatest else "the radius", MIN_PLUS, graph):
            found = extreme_distance(graph, options, greatest=greatest)
        if found is not None:
            return found
    whole = statistics(graph, **{name: getattr(options, name) for name in ComputationOptions.__optional_keys__})
    return whole.diameter if greatest else whole.radius
