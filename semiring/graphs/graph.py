"""A graph as the algorithms take it: a dense matrix for each component of an element, and the labels of its vertices.

`Reading` says how one is to be read, and `nonedges` which of its entries are no edges.
"""

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
    """How a graph is to be read: the arguments of `read_graph`, and whether edges are kept whose weight is the semiring's zero."""

    nonedge: Any
    dtype: Any
    overwrite: bool
    presence: bool
    paths: bool
    check: bool = True
    closed: bool = False


@dataclass(eq=False, slots=True)
class Graph:
    """A matrix over a semiring, read from what the caller passed.

    Attributes
    ----------
    values : tuple of arrays
        One array of shape (…, n, n) for each component of an element; any strides. A missing edge is the semiring's zero.
    owned : bool
        Whether the arrays may be overwritten. Otherwise they are the caller's memory.
    labels : tuple or None
        The vertices in the order of the rows; None where they are 0 … n − 1.
    restore : callable or None
        Turns a result into the caller's kind; None for arrays.
    library : callable or None
        Makes any array, such as a construction matrix, one of the caller's library.
    verify : callable or None
        Gives the value statistics of each component, and raises what they tell: a GPU may still be computing them when a graph has been
        read. To be called before a result is made of the values; None where nobody computes them.
    """

    values: tuple[np.ndarray[Any, Any], ...]
    owned: bool
    labels: tuple[Hashable, ...] | None = None
    restore: Callable[[np.ndarray[Any, Any]], Any] | None = field(default=None, repr=False)
    library: Callable[[np.ndarray[Any, Any]], Any] | None = field(default=None, repr=False)
    verify: Callable[[], Sequence[ValueStatistics]] | None = field(default=None, repr=False)

    @property
    def n(self) -> int:
        """The number of vertices."""
        return int(self.values[0].shape[-1])

    @property
    def batch(self) -> tuple[int, ...]:
        """The leading axes: several graphs of n vertices in one array."""
        return tuple(self.values[0].shape[:-2])

    @property
    def dtypes(self) -> tuple[np.dtype[Any], ...]:
        """The dtype of each component."""
        return tuple(v.dtype for v in self.values)

    def working(self) -> tuple[np.ndarray[Any, Any], ...]:
        """Arrays that a closure may overwrite: `values` where they are owned, C-contiguous copies otherwise."""
        return self.values if self.owned else tuple(map(_copy, self.values))

    def restore_part(self, rows: Array, columns: Array) -> Callable[[Array], Any] | None:
        """What `restore` is for some rows and columns of a result."""
        part = getattr(self.restore, "part", None)
        return self.restore if part is None else part(rows, columns)

    def answer(self, *results: np.ndarray[Any, Any]) -> Any:
        """A result in the caller's own kind: an array, or a tuple of arrays where elements are structured."""
        restored = results if self.restore is None else tuple(self.restore(r) for r in results)
        return restored[0] if len(restored) == 1 else restored


def _copy(array: Any) -> Any:
    """A C-contiguous copy."""
    copy = namespace(array).empty(array.shape, array.dtype)
    if on_gpu(array):
        from semiring.kernels.cuda.blocks import copy_into

        copy_into(array, copy)
    else:
        np.copyto(copy, array)
    return copy


def entry_name(index: tuple[int, ...]) -> str:
    """How a message names an entry of the caller's matrix."""
    return f"graph[{', '.join(map(str, index))}]"


def nonedges(parts: Sequence[Array], nonedge: Any) -> Array:
    """Where elements, given by their components, equal `nonedge`: one scalar, or a tuple of one a component; nowhere if it is None."""
    if nonedge is None:
        nowhere: Array = namespace(parts[0]).zeros(parts[0].shape, dtype=bool)
        return nowhere
    scalars = nonedge if isinstance(nonedge, tuple) else (nonedge,)
    return functools.reduce(operator.and_, [matches(p, s) for p, s in zip(parts, scalars, strict=True)])


def matches(entries: Array, nonedge: Any) -> Array:
    """Where `entries` equal `nonedge` (NaN equals NaN here).

    Raises
    ------
    GraphError
        Where `nonedge` is no number and the entries are.

    Notes
    -----
    An integer equals a float only exactly: 2⁵³ + 1 is not 2.0**53, though NumPy, which rounds it, says so.
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
    except OverflowError:  # CuPy's, for a number beyond an integer dtype
        return nowhere
    return found


class NonEdgeWarning(UserWarning):
    """A dense matrix has no missing edge, and zeros, or infinities of the other sign, that look like missing edges."""
