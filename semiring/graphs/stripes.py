"""Going through a matrix in stripes, and what it says about its missing edges."""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from semiring.algebra.conversion import Array, nan
from semiring.algebra.errors import GraphError
from semiring.algebra.namespace import equal, namespace, on_gpu

__all__ = ["entry_name", "matches", "nonedges", "stripes"]

_STRIPE = 1 << 17
"""Entries handled at a time: a stripe and its temporaries stay within a few MiB."""

_GPU_STRIPE = 1 << 22
"""The same on a GPU, which takes as long to start as for a million entries."""


def stripes(array: Array) -> Iterator[slice]:
    """Slices of the first axis, together all of it."""
    rows = max(1, (_GPU_STRIPE if on_gpu(array) else _STRIPE) // max(1, math.prod(array.shape[1:])))
    for start in range(0, len(array), rows):
        yield slice(start, min(len(array), start + rows))


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
