"""Who computes a call: this library's closure of the whole matrix, or SciPy's searches, one for each source.

The closure takes n³ steps however few edges and sources there are, several 10¹⁰ a second; a search visits the edges, some 10⁸ a second.
What both take is predicted from the constants below, which `python -m benchmarks.csgraph` measures. They are those of one machine; others
shift both sides much alike, and the choice only matters where the two differ widely.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from semiring.kernels.cpu.threads import thread_count
from semiring.kernels.prediction import faster_on_gpu, seconds_on_gpu
from semiring.kernels.room import fits, with_scratch

__all__ = ["Choice", "Size", "choose"]

_START = 2e-4
"""Seconds that any closure takes."""

_BYTES = 2e11
"""Bytes of entries a thread combines a second: 2.5e10 steps of float64, twice as many of float32."""

_WITNESS, _TREE = 1.75, 2e-8
"""How much longer the closure takes that remembers its paths; seconds for each entry of the predecessors."""

_READY = 1.5e-9
"""Seconds of SciPy's Dijkstra for each vertex before it begins."""

_QUEUE, _EDGE, _ROUND = 5.5e-9, 8e-10, 9e-10
"""Its seconds for a vertex that it finds, times log₂ n · log₂(1 + degree), and for an edge; of an edge in a round of Bellman–Ford."""


@dataclass(frozen=True)
class Size:
    """What the time of a call depends on.

    Attributes
    ----------
    n, edges : int
    sources : int
        How many searches SciPy would make: 1 with ``min_only=True``.
    paths : bool
        Whether predecessors are wanted.
    negative : bool
        Whether an edge is negative, so that SciPy's way is Johnson's, n rounds over all edges first.
    dtype : numpy.dtype
        Of the result.
    reach : float
        The share of the vertices that a search finds.
    """

    n: int
    edges: int
    sources: int
    paths: bool
    negative: bool
    dtype: np.dtype[Any]
    reach: float = 1.0

    @property
    def bytes(self) -> int:
        """What the closure needs: the matrix, and the construction matrix and the predecessors of its paths."""
        return self.n**2 * (self.dtype.itemsize + 8 * self.paths)

    def closure_seconds(self, device: str) -> float:
        """Predicted time of the closure on the CPU or on a GPU."""
        if "cuda" in device:
            return seconds_on_gpu(self.n**3, self.bytes)
        steps = self.n**3 * self.dtype.itemsize / (_BYTES * thread_count())
        return _START + steps * (_WITNESS if self.paths else 1) + self.n**2 * _TREE * self.paths

    def search_seconds(self) -> float:
        """Predicted time of SciPy's searches."""
        degree = self.edges / max(1, self.n)
        search = self.n * _QUEUE * math.log2(self.n + 1) * math.log2(1 + degree) + self.edges * _EDGE
        return self.sources * (self.reach * search + self.n * _READY) + self.negative * self.n * self.edges * _ROUND


@dataclass(frozen=True)
class Choice:
    """Who computes a call, and why; `explain` gives it.

    Attributes
    ----------
    engine : {"semiring", "scipy"}
    device : str
        Where: "cpu", "cuda:0", or whatever the caller named.
    algorithm : str
        "closure", "dijkstra" or "johnson".
    closure_seconds, search_seconds : float
        What a closure here and SciPy's searches are predicted to take.
    reason : str
    """

    engine: str
    device: Any
    algorithm: str
    closure_seconds: float
    search_seconds: float
    reason: str

    def __str__(self) -> str:
        who = f"semiring: closure on {self.device}" if self.engine == "semiring" else f"SciPy: {self.algorithm}"
        return f"{who}, because {self.reason} (predicted: closure {_time(self.closure_seconds)}, SciPy {_time(self.search_seconds)})"


def choose(size: Size, device: Any, *, one_search: bool = False) -> Choice:
    """Who computes a call of this size.

    Parameters
    ----------
    size : Size
    device : "auto", or where this library is to compute
    one_search : bool
        Whether a single search from several sources (``min_only=True``) answers it, which no closure can.
    """
    automatic = isinstance(device, str) and device == "auto"
    where = device
    if automatic:
        where = "cuda:0" if faster_on_gpu(size.n**3, size.bytes, with_scratch(size.bytes)) else "cpu"
    closure, search = size.closure_seconds(str(where)), size.search_seconds()

    def chosen(engine: str, reason: str) -> Choice:
        searching = "johnson" if size.negative else "dijkstra"
        own = engine == "semiring"
        return Choice(engine, where if own else "cpu", "closure" if own else searching, closure, search, reason)

    if one_search:
        return chosen("scipy", "min_only=True is one search, whatever device= says")
    if not automatic:
        return chosen("semiring", f"device={device!r} asks for it")
    if where == "cpu" and not fits(size.bytes, where):
        return chosen("scipy", f"a dense matrix of {size.n:,} vertices does not fit the memory")
    edges = f"{_count(size.n, 'vertex', 'vertices')}, {_count(size.edges, 'edge', 'edges')} and {_count(size.sources, 'source', 'sources')}"
    if search < closure:
        return chosen("scipy", f"searches are predicted to be faster for {edges}")
    return chosen("semiring", f"the closure is predicted to be faster for {edges}")


def _count(number: int, one: str, many: str) -> str:
    return f"{number:,} {one if number == 1 else many}"


def _time(seconds: float) -> str:
    if seconds >= 100:
        return f"{seconds:,.0f} s"
    return f"{seconds:.3g} s" if seconds >= 1 else f"{1e3 * seconds:.3g} ms"
