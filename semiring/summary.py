"""Statistics of a graph: diameter, radius, eccentricities, average path length and the histogram of distances, without n² numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Unpack

import numpy as np

from semiring.algebra.catalogue import MIN_PLUS
from semiring.common.docstrings import described_by
from semiring.common.errors import noted, raised_here
from semiring.execution.sums import add_distances, add_distances_of_ranks
from semiring.planning.options import ComputationOptions, Options, takes
from semiring.results.statistics import BINS, RunningDistances, Statistics, statistics_from
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
        if given.comm is None:
            found = RunningDistances(bins)
            labels, n = add_distances(found, graph, given)
        else:
            labels, n, found = add_distances_of_ranks(graph, bins, given)
    return statistics_from(found, tuple(range(n)) if labels is None else tuple(labels))
