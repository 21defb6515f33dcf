"""Going through a matrix in stripes, and what it says about its missing edges."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from semiring.algebra.conversion import Array, nan
from semiring.algebra.errors import GraphError

__all__ = ["matches", "place", "stripes"]

_STRIPE = 1 << 17
"""Entries handled at a time: a stripe and its temporaries stay within a few MiB."""


def stripes(shape: tuple[int, ...]) -> Iterator[slice]:
    """Slices of the first axis, together all of it."""
    rows = max(1, _STRIPE // max(1, math.prod(shape[1:])))
    for start in range(0, shape[0], rows):
        yield slice(start, min(shape[0], start + rows))


def place(index: tuple[int, ...]) -> str:
    """How a message names an entry of the caller's matrix."""
    return f"graph[{', '.join(map(str, index))}]"


def matches(entries: Array, nonedge: Any) -> Array:
    """Where `entries` equal `nonedge` (NaN equals NaN here).

    Raises
    ------
    GraphError
        Where `nonedge` is no number and the entries are.
    """
    if entries.dtype.kind != "O" and (isinstance(nonedge, str | bytes) or not hasattr(nonedge, "__float__")):
        raise GraphError(f"nonedge is {nonedge!r}, which no entry of a {entries.dtype} matrix can be; pass a number such as 0, nan or inf")
    return nan(entries) if nonedge != nonedge else np.asarray(entries == nonedge, dtype=bool)
