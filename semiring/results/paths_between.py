"""`PathsBetween`: a closure with paths between chosen sources and targets."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from semiring.common.forks import cached_property
from semiring.results.paths import Paths
from semiring.results.store import Store

__all__ = ["PathsBetween", "paths_in"]

Array = np.ndarray[Any, Any]


class PathsBetween(Paths):
    """The elements between chosen sources and targets, and a tree of paths for each source (or each target).

    The methods of `Paths` answer for these pairs alone. `values` has a row for each source and a column for each target, in the given
    order. Instead of a construction matrix, each source has a tree, `predecessors`; if only targets were named, each target, `next_hops`.
    `to_scipy` returns SciPy's result with ``indices``; `to_networkx` and `save` are for all pairs only.

    Examples
    --------
    >>> import semiring as sr
    >>> streets = sr.edges([("a", "b", 1.0), ("b", "c", 2.0), ("a", "c", 9.0)])
    >>> paths = sr.apsp(streets, sources=["a"], targets=["c", "b"], paths=True)
    >>> paths
    <paths over min-plus: 1 source × 2 targets, 2 pairs connected>
    >>> paths.distances, paths.path("a", "c")
    (array([[3., 1.]]), ['a', 'b', 'c'])
    >>> paths.predecessors()
    array([[-9999,     0,     1]], dtype=int32)

    Attributes
    ----------
    sources, targets : tuple
        The vertices of the rows and of the columns.
    """

    @cached_property
    def sources(self) -> tuple[Any, ...]:
        """The vertices of the rows."""
        return tuple(self._store.names.of(self._store.sources.numbers.tolist()))

    @cached_property
    def targets(self) -> tuple[Any, ...]:
        """The vertices of the columns."""
        return tuple(self._store.names.of(self._store.targets.numbers.tolist()))


def paths_in(store: Store, restore: Callable[[Array], Any] | None = None, library: Callable[[Array], Any] | None = None) -> Paths:
    """Wrap a store for the caller: `Paths` of all pairs, or `PathsBetween` of some."""
    return (Paths if store.complete else PathsBetween)._of(store, restore, library)
