"""The farthest pairs, the longest pairs and the center of a graph: extremes of all elements, found stripe by stripe.

The farthest pair has the least preferred element: the greatest if ⊕ is a minimum, as for distances, and the least if ⊕ is a maximum, as for
the width of paths. The longest pair has the greatest element for every ⊕. Zero, meaning no path, never counts.
"""

from __future__ import annotations

import contextlib
import math
import operator
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from semiring.algorithms.divergence import extremum_of
from semiring.arrays.conversion import Array
from semiring.arrays.devices import host, namespace
from semiring.arrays.pieces import GPU, slices
from semiring.common.errors import DTypeError, GraphError, SemiringError
from semiring.results.store import Store

__all__ = ["FarthestPair", "Greatest", "center", "extremes"]


class FarthestPair(NamedTuple):
    """Two vertices with a path from one to the other, and the distance.

    Examples
    --------
    >>> import semiring as sr
    >>> paths = sr.apsp(sr.edges([("a", "b", 1.0), ("b", "c", 2.0)]), paths=True)
    >>> source, target, distance = paths.farthest()[0]
    >>> source, target, distance
    ('a', 'c', 3.0)

    Attributes
    ----------
    source, target : vertex
        The names of the vertices.
    distance : scalar
        The element of the pair; for shortest paths the distance.
    """

    source: Any
    target: Any
    distance: Any


class Greatest:
    """The greatest (or least) elements of stripes: `rows`, `columns` and `values` on the host, best first; of equal ones the first."""

    def __init__(self, count: int, *, least: bool = False) -> None:
        self._count, self._least = count, least
        self.rows = self.columns = np.empty(0, np.intp)
        self.values: Array = np.empty(0)

    def add(self, values: Any, wanted: Any, first: int = 0) -> None:
        """Add the wanted elements of a stripe that begins at row `first`."""
        xp, count = namespace(values), self._count
        if len(self.values) == count:  # equal elements come too late
            wanted = wanted & (values < self.values[-1] if self._least else values > self.values[-1]).astype(bool)
        places, some = xp.flatnonzero(wanted), values[wanted]
        if len(some) > count:
            last = count - 1 if self._least else len(some) - count
            bound = xp.partition(some, last)[last]
            near = (some <= bound if self._least else some >= bound).astype(bool)
            places, some = places[near], some[near]
        order = self._order(some)
        rows, columns = np.divmod(host(places[order]), values.shape[1])
        self.join(rows + first, columns, host(some[order]))

    def merge(self, other: Greatest) -> None:
        """Add the elements of other rows, in any order of the rows."""
        self.join(other.rows, other.columns, other.values)

    def join(self, rows: Array, columns: Array, values: Array) -> None:
        """Add elements; of equal ones the first rows are kept."""
        if len(self.values):
            rows, columns, values = np.append(self.rows, rows), np.append(self.columns, columns), np.append(self.values, values)
            there = np.lexsort((columns, rows))
            order = there[self._order(values[there])]
            rows, columns, values = rows[order], columns[order], values[order]
        self.rows, self.columns, self.values = rows, columns, values

    def _order(self, values: Any) -> Any:
        """Return the places of the first `count` elements, in order."""
        xp = namespace(values)
        if self._least:
            return xp.argsort(values, kind="stable")[: self._count]
        return (len(values) - 1 - xp.argsort(values[::-1], kind="stable")[::-1])[: self._count]


def extremes(found: Store, k: int, method: str) -> list[FarthestPair]:
    """See the methods "farthest" and "longest" of `Paths`."""
    least = _least(found, method) and method == "farthest"
    try:
        count = operator.index(k)
    except TypeError:
        count = 0
    if count < 1:
        raise GraphError(f"k is {k!r}; it is the number of pairs, a whole number from 1")
    greatest = Greatest(count, least=least)
    with _comparing(), found.device():
        apart = operator.lt if _symmetric(found) else operator.ne
        for rows, values, sources, targets in _rows(found):
            greatest.add(values, found.there((values,)) & apart(sources, targets), rows.start)
    ends = map(found.names.of, (e.tolist() for e in found.ends(greatest.rows, greatest.columns)))
    return [FarthestPair(*pair) for pair in zip(*ends, greatest.values.tolist(), strict=True)]


def center(found: Store) -> list[Any]:
    """See `Paths.center`."""
    least = _least(found, "center")
    sources = found.names.of(found.sources.numbers.tolist())
    if 0 in found.shape:
        return sources
    with _comparing(), found.device():
        eccentricities = np.concatenate([_eccentricities(*some, least=least) for _, *some in _rows(found)])
        if found.there((eccentricities,)).any():
            nearest = eccentricities.max() if least else eccentricities.min()
            return [sources[i] for i in np.flatnonzero(eccentricities == nearest).tolist()]
        counts = np.concatenate([host((found.there((values,)) & (own != targets)).sum(axis=1)) for _, values, own, targets in _rows(found)])
    most = int(counts.argmax())
    raise GraphError(
        f"no vertex reaches all others, so that no eccentricity is finite and there is no center; {sources[most]!r} reaches the most, "
        f"{counts[most]:,} of {max(found.shape) - 1:,}: pass the largest component, found by networkx.strongly_connected_components or "
        f"scipy.sparse.csgraph.connected_components"
    )


def _least(found: Store, method: str) -> bool:
    """Return True if the least element is the farthest; refuse a ⊕ without an order."""
    extremum = extremum_of(found.semiring)
    if extremum is None:
        raise SemiringError(
            f"{method}() is for semirings whose ⊕ is a minimum or a maximum of numbers, such as min-plus or max-min; "
            f"{found.semiring.name} has no such order; .values has the elements"
        )
    return extremum is np.fmax


def _rows(found: Store) -> Iterator[tuple[slice, Any, Any, Any]]:
    """Iterate over stripes: slice, elements, and numbers of sources and targets, which broadcast to the elements."""
    xp = namespace(found.values[0])
    sources, targets = xp.asarray(found.sources.numbers), xp.asarray(found.targets.numbers)
    for rows in found.stripes():
        yield rows, found.values[0][rows], sources[rows, None], targets


def _eccentricities(values: Any, sources: Any, targets: Any, *, least: bool) -> Array:
    """Return the farthest element of each row, without the element of a vertex and itself."""
    kind, others = values.dtype.kind, values.copy()
    low, high = (False, True) if kind == "b" else (-math.inf, math.inf)
    if kind in "iu":
        low, high = int(np.iinfo(values.dtype).min), int(np.iinfo(values.dtype).max)
    others[sources == targets] = high if least else low
    return host(others.min(axis=1) if least else others.max(axis=1))


def _symmetric(found: Store) -> bool:
    """Return True if all distances are the same both ways, up to rounding: searches add from the source."""
    if not found.complete:
        return False
    values, n = found.values[0], found.shape[0]
    xp, floats = namespace(values), values.dtype.kind == "f"
    eps = float(np.finfo(values.dtype).eps) if floats else 0.0
    rounding = min(n * eps, math.sqrt(eps))
    parts = list(slices(n, math.isqrt(GPU), GPU))
    with np.errstate(all="ignore"):
        for i, rows in enumerate(parts):
            for columns in parts[i:]:
                there, back = values[rows, columns], values[columns, rows].T
                same = there == back
                if floats:  # ∞ − ∞ is no number, and ∞ − 1 is no rounding
                    same |= abs(there - back) <= rounding * xp.minimum(abs(there), abs(back))
                if not same.all():
                    return False
    return True


@contextlib.contextmanager
def _comparing() -> Iterator[None]:
    """Translate the TypeError of symbols, which have no order."""
    try:
        yield
    except TypeError as error:
        raise DTypeError(f"the elements have no order: {error}; they are in .values") from None
