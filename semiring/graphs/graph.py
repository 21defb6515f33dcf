"""`Graph`: a dense matrix for each component of an element, and the labels; `Reading`: the options; and the test for non-edges."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from semiring.arrays.conversion import nan
from semiring.arrays.devices import equal, namespace, on_gpu
from semiring.common.errors import GraphError
from semiring.kernels.limits import ValueStatistics

__all__ = ["Graph", "NonEdgeWarning", "Reading", "entry_name", "matches", "nonedges"]

Array = np.ndarray[Any, Any]


class Reading(NamedTuple):
    """The options of `read_graph`; `closed` keeps edges whose weight is the semiring's zero."""

    nonedge: Any
    dtype: Any
    overwrite: bool
    presence: bool
    paths: bool
    check: bool = True
    closed: bool = False


@dataclass(eq=False, slots=True)
class Graph:
    """A matrix over a semiring, read from the caller's graph."""

    # one array of shape (…, n, n) for each component of an element; any strides. A missing edge is the semiring's zero
    values: tuple[np.ndarray[Any, Any], ...]
    owned: bool  # the arrays may be overwritten. Otherwise they are the caller's memory
    labels: tuple[Hashable, ...] | None = None  # the vertices in the order of the rows; None for 0 … n − 1
    # converts a result to the caller's type; None for arrays
    restore: Callable[[np.ndarray[Any, Any]], Any] | None = field(default=None, repr=False)
    # converts any array, such as a construction matrix, to an array of the caller's library
    library: Callable[[np.ndarray[Any, Any]], Any] | None = field(default=None, repr=False)
    # returns the value statistics of each component and raises their errors, before a result is made: a GPU may still be computing them.
    # None without statistics
    verify: Callable[[], Sequence[ValueStatistics]] | None = field(default=None, repr=False)

    @property
    def n(self) -> int:
        """The number of vertices."""
        return int(self.values[0].shape[-1])

    @property
    def batch(self) -> tuple[int, ...]:
        """The leading axes of several graphs in one array."""
        return tuple(self.values[0].shape[:-2])

    @property
    def dtypes(self) -> tuple[np.dtype[Any], ...]:
        """The dtype of each component."""
        return tuple(v.dtype for v in self.values)

    def working(self) -> tuple[np.ndarray[Any, Any], ...]:
        """Return arrays that a closure may overwrite: `values` if owned, else C-contiguous copies."""
        return self.values if self.owned else tuple(map(_copy, self.values))

    def restore_part(self, rows: Array, columns: Array) -> Callable[[Array], Any] | None:
        """Return `restore` for some rows and columns of a result."""
        part = getattr(self.restore, "part", None)
        return self.restore if part is None else part(rows, columns)

    def answer(self, *results: np.ndarray[Any, Any]) -> Any:
        """Convert a result to the caller's type: an array, or a tuple of arrays for structured elements."""
        restored = results if self.restore is None else tuple(self.restore(r) for r in results)
        return restored[0] if len(restored) == 1 else restored


def _copy(array: Any) -> Any:
    copy = namespace(array).empty(array.shape, array.dtype)
    if on_gpu(array):
        from semiring.kernels.cuda.blocks import copy_into

        copy_into(array, copy)
    else:
        np.copyto(copy, array)
    return copy


def entry_name(index: tuple[int, ...]) -> str:
    """Name an entry of the caller's matrix in a message."""
    return f"graph[{', '.join(map(str, index))}]"


def nonedges(parts: Sequence[Array], nonedge: Any) -> Array:
    """Return a mask of the elements equal to `nonedge`: a scalar, or a tuple of one a component; no entry equals None."""
    if nonedge is None:
        nowhere: Array = namespace(parts[0]).zeros(parts[0].shape, dtype=bool)
        return nowhere
    scalars = nonedge if isinstance(nonedge, tuple) else (nonedge,)
    return functools.reduce(operator.and_, [matches(p, s) for p, s in zip(parts, scalars, strict=True)])


def matches(entries: Array, nonedge: Any) -> Array:
    """Return a mask of the entries equal to `nonedge` (NaN equals NaN here).

    An integer equals a float only exactly: 2⁵³ + 1 is not 2.0**53, unlike in NumPy, which rounds. Raises GraphError if the entries are
    numbers and `nonedge` is not.
    """
    if entries.dtype.kind != "O" and (isinstance(nonedge, str | bytes) or not hasattr(nonedge, "__float__")):
        raise GraphError(f"nonedge is {nonedge!r}, which no entry of a {entries.dtype} matrix can be; pass a number such as 0, nan or inf")
    if nonedge != nonedge:
        return nan(entries)
    xp = namespace(entries)
    nowhere: Array = xp.zeros(entries.shape, dtype=bool)
    if entries.dtype.kind in "iu" and isinstance(nonedge, float | np.floating):
        if not float(nonedge).is_integer():
            return nowhere
        nonedge = int(nonedge)
    try:
        found: Array = xp.asarray(equal(entries, nonedge), dtype=bool)
    except OverflowError:  # from CuPy, for a number beyond an integer dtype
        return nowhere
    return found


class NonEdgeWarning(UserWarning):
    """A dense matrix has no missing edge, but zeros, or infinities of the other sign, that look like missing edges."""
