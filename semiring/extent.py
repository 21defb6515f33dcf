"""Diameter and radius of a graph, by a few searches where bounds suffice."""

from __future__ import annotations

from typing import Any, Unpack

from semiring.algebra.catalogue import MIN_PLUS
from semiring.algorithms.distances import extreme_eccentricity
from semiring.common.docstrings import described_by
from semiring.common.errors import noted, raised_here
from semiring.graphs import edges_of
from semiring.planning.options import ComputationOptions, Options, takes
from semiring.solve import apsp
from semiring.summary import statistics

__all__ = ["diameter", "radius"]


@raised_here
@described_by(apsp)
@takes(ComputationOptions)
def diameter(graph: Any, **options: Unpack[ComputationOptions]) -> float:
    """The diameter of a graph: the greatest of all its shortest distances, by a few searches of a sparse graph.

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
    Each search bounds the eccentricities of all vertices (Takes and Kosters, 2011), until no other one can be greater. Where that takes
    many, and of dense graphs, it is that of `statistics`. Which pair is so far apart: `Statistics.farthest`.
    """
    return _extreme(graph, Options.of(options, "diameter", ComputationOptions), greatest=True)


@raised_here
@described_by(apsp)
@takes(ComputationOptions)
def radius(graph: Any, **options: Unpack[ComputationOptions]) -> float:
    """The radius of a graph: how far the farthest vertex is from the most central one, by a few searches of a sparse graph.

    Examples
    --------
    >>> import semiring as sr
    >>> ways = sr.edges([("a", "b", 1.5), ("b", "c", 2.0)], directed=False)
    >>> sr.radius(ways)
    2.0

    Parameters
    ----------
    graph : array of shape (n, n), sparse array, graph of another library, or what `edges` gives
        See `apsp`.
    weight, nonedge, dtype
        As for `apsp`.

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
    As for `diameter`. The most central vertices: `Paths.center`.
    """
    return _extreme(graph, Options.of(options, "radius", ComputationOptions), greatest=False)


def _extreme(graph: Any, options: Options, *, greatest: bool) -> float:
    """The greatest or the least eccentricity."""
    by_searches = str(options.device) in ("auto", "cpu") and not (options.overwrite or options.needs_block_rows or options.comm is not None)
    if by_searches:
        with noted("the diameter" if greatest else "the radius", MIN_PLUS, graph):
            listed = edges_of(graph, MIN_PLUS, weight=options.weight, nonedge=options.nonedge, dtype=options.dtype)
            found = None if listed is None else extreme_eccentricity(listed[0], greatest=greatest, every=False, threads=options.threads)
        if found is not None:
            return found[0]
    given = {name: getattr(options, name) for name in ComputationOptions.__optional_keys__}
    whole = statistics(graph, **given)
    return whole.diameter if greatest else whole.radius
