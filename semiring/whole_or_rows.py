"""Whether rows of a closure are found by themselves or cut out of the whole one: by the time that both take, and by memory."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from semiring.algebra.errors import TooLargeError
from semiring.algorithms.edges import Edges
from semiring.graphs import Graph
from semiring.graphs.memory import entry_bytes
from semiring.kernels.devices import device_of
from semiring.kernels.room import fits, format_bytes, free_on

__all__ = ["prefers_whole", "require_rows", "steps_of", "whole_fits", "whole_is_faster"]

_ROUNDS = 20
"""How many products of a few rows the closure of as many vertices is worth, as measured: paths of a dense graph have few edges."""

_STEPS, _EDGES = 3e10, 3e7
"""Steps of a closure and edges of a compiled search that are done in a second."""

_NUMPY_EDGES = 3e6
"""Edges of a search by NumPy."""

_EXACT_STEPS, _EXACT_EDGES = 3e6, 3e5
"""Steps and edges of Python's own numbers."""

DTypes = tuple[np.dtype[Any], ...]


def whole_is_faster(n: int, sources: int, edges: int | None = None, *, exact: bool = False, compiled: bool = True) -> bool:
    """Whether the closure of all n vertices is predicted to take less time than rows of it for some sources.

    Parameters
    ----------
    n, sources : int
    edges : int, optional
        Of a sparse graph, whose rows are found edge by edge; those of a dense one by products.
    exact : bool
        Whether elements are Python's own numbers.
    compiled : bool
        Whether there are compiled searches, see `searches_for`; never for `exact`.
    """
    if edges is None:
        return sources * _ROUNDS >= n
    steps, searched = (_EXACT_STEPS, _EXACT_EDGES) if exact else (_STEPS, _EDGES if compiled else _NUMPY_EDGES)
    return n**3 / steps < sources * edges / searched


def steps_of(n: int, sources: int) -> float:
    """Steps that rows of a dense matrix are predicted to take, by whichever way is faster."""
    return float(min(_ROUNDS * sources, n)) * n**2


def whole_fits(n: int, dtypes: DTypes, device: str, *, paths: bool) -> bool:
    """Whether the closure of n vertices fits half of the memory that is free."""
    return fits(2 * n * n * entry_bytes(dtypes, via=paths), device)


def prefers_whole(graph: Edges | Graph) -> bool:
    """Whether the closure of all vertices is the way to all of its rows: it fits, and of a sparse graph it is predicted to be faster."""
    if isinstance(graph, Edges):
        exact = any(d.kind == "O" for d in graph.dtypes)
        return whole_is_faster(graph.n, graph.n, len(graph.heads), exact=exact) and whole_fits(graph.n, graph.dtypes, "cpu", paths=False)
    return whole_fits(graph.n, graph.dtypes, device_of(graph.values[0]), paths=False)


def require_rows(shape: tuple[int, ...], dtypes: DTypes, device: str, *, paths: bool, backward: bool) -> None:
    """Refuse rows that the memory has no room for.

    Parameters
    ----------
    shape : tuple of int
        Of the rows, or `backward` of the columns, with leading axes for a batch.
    dtypes : tuple of numpy.dtype
    device : str
        Whose memory: "cpu", or "cuda:0" and so on.
    paths : bool
        Whether the trees of their paths come along.
    backward : bool

    Raises
    ------
    TooLargeError
    """
    needed = math.prod(shape) * entry_bytes(dtypes, via=paths)
    if not fits(needed, device):
        what, count, n = ("targets", shape[-1], shape[-2]) if backward else ("sources", shape[-2], shape[-1])
        raise TooLargeError(
            f"rows for {count:,} {what} among {n:,} vertices take {format_bytes(needed)}, but "
            f"{format_bytes(free_on(device) or 0)} of memory are available; name fewer {what} at a time"
        )
