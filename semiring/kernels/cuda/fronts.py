"""The elimination of a sparse graph's fronts in GPU memory: each level of the tree at once, one pivot block after the other.

With K a pivot block of a front's own vertices, I and J everything else in the front, and ⊕ idempotent, a step is a step of
the blocked closure:

    A_KK ← A_KK*,  A_KJ ← A_KJ ⊕ A_KK A_KJ,  A_IK ← A_IK ⊕ A_IK A_KK,  A_IJ ← A_IJ ⊕ A_IK A_KJ.

By star, the step is A_KK ← A_KK*, A_IK ← A_IK A_KK, A_IJ ← A_IJ ⊕ A_IK A_KJ, A_KJ ← A_KK A_KJ. A step covers all fronts of a level with
pivot blocks left. The host plans the launches and their fronts, once for all fronts.
"""

from __future__ import annotations

import functools
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from semiring.algebra.definition import Semiring
from semiring.common.errors import DivergentPivot
from semiring.kernels import cache
from semiring.kernels.compressed import Supernodes
from semiring.kernels.cuda.arguments import Fronts, flat
from semiring.kernels.cuda.blocks import upload
from semiring.kernels.cuda.compiler import Kernel, pointer_to
from semiring.kernels.cuda.elements import NO_DIVERGENCE, no_divergence, read_back
from semiring.kernels.cuda.kernels import pivot_threads, pivot_tile, step_for
from semiring.kernels.cuda.representation import Representation, represent
from semiring.kernels.cuda.source import summing_structs
from semiring.kernels.hardware import device
from semiring.kernels.limits import threshold

__all__ = ["CudaFronts", "front_bytes", "fronts_source"]

Array = np.ndarray[Any, Any]
Values = tuple[Any, ...]
DTypes = tuple[np.dtype[Any], ...]

_BAND = 16  # rows of a band, as in ``fronts.cuh``
_THREADS = 256  # per block of bands, or of a front's edges

_OWN = Fronts._fields[-5:]
"""The fields that differ between launches: `list`, `starts`, `listed`, `base` and `step`."""

_CLOSING = ("update_both", 1), ("update_rest", 2)
_BY_STAR = ("update_columns", 0), ("update_rest", 2), ("update_rows", 0)
"""Kernels after a closed pivot block, each with the row of a list's starts that counts the blocks."""


class _Launch(NamedTuple):
    """A launch of a kernel for part of a list of fronts."""

    name: str
    first: int  # start of the part, and its length
    listed: int
    base: int  # number of the first block, and how many blocks
    blocks: int
    step: int  # number of the pivot block
    which: int  # row of the list's starts; −1 for one block per front


class _Plan(NamedTuple):
    """A sequence of launches, the lists of fronts, and the first block of each front."""

    launches: list[_Launch]
    fronts: Any
    starts: Any
    most: int


def front_bytes(nodes: Supernodes, dtypes: DTypes) -> int:
    """Return the bytes of all fronts and panels on a GPU."""
    sides = np.diff(nodes.columns) + np.diff(nodes.row_starts)
    return int((sides**2).sum() + 2 * nodes.panel_starts[-1]) * sum(d.itemsize for d in dtypes)


def _side(r: Representation) -> int:
    """Return the side of pivot blocks and tiles; two of them fit shared memory."""
    return 64 if r.size <= 4 else 32 if r.size <= 16 else 16


def _kernels(r: Representation, *, by_star: bool) -> dict[str, tuple[str, int]]:
    """Return each kernel's template, and the threads of its blocks, by name."""
    side = _side(r)
    pivot, rows = max(32, side), 8 if r.size <= 4 else 4
    threads = side // rows * (side // 4)
    own_rows, own_columns = pivot_tile(r, pivot)

    def tile(part: str, *, add: bool) -> tuple[str, int]:
        return f"update_tile<Summed, {side}, {rows}, Part::{part}, {str(add).lower()}>", threads

    star = str(by_star).lower()
    found = {
        "locate_rows": ("locate_rows<Summed>", _THREADS),
        "clear_band": ("clear_band<Summed>", _THREADS),
        "enter_edges": (f"enter_edges<Summed, {str(not by_star).lower()}>", _THREADS),
        "extend_band": ("extend_band<Summed>", _THREADS),
        "keep_band": ("keep_band<Summed>", _THREADS),
        "close_pivots": (f"close_pivots<Summed, {side}, {pivot}, {own_rows}, {own_columns}, {star}>", pivot_threads(r, pivot)),
        "update_rest": tile("rest", add=True),
    }
    if by_star:
        return found | {"update_rows": tile("rows", add=False), "update_columns": tile("columns", add=False)}
    return found | {"update_both": tile("both", add=True)}


def fronts_source(semiring: Semiring, dtypes: DTypes, arch: int, *, by_star: bool) -> str:
    """Return the CUDA C++ of all kernels of fronts."""
    r = represent(semiring, dtypes)
    step = step_for(r, arch, ordered_bits=False)
    lines = ['#include "fronts.cuh"', "", summing_structs(semiring, dtypes, step=step, star=by_star)]
    for name, (call, threads) in _kernels(r, by_star=by_star).items():
        lines += [
            f'extern "C" __global__ void __launch_bounds__({threads}) {name}(const __grid_constant__ Fronts<Summed> fronts) {{',
            f"  {call}(fronts);",
            "}",
        ]
    return "\n".join(lines) + "\n"


class CudaFronts:
    """The fronts of one elimination on a GPU.

    `parents` holds each supernode's parent, or their number for none. `entries` holds the numbers of the edges in the order of `nodes`.
    `by_star` eliminates by star(pivot), for any closed semiring; otherwise ⊕ must be idempotent.
    """

    def __init__(
        self, semiring: Semiring, dtypes: DTypes, number: int, nodes: Supernodes, parents: Array, entries: Array, *, by_star: bool
    ) -> None:
        self.semiring, self.dtypes, self.number, self.by_star = semiring, dtypes, number, by_star
        self._representation = represent(semiring, dtypes)
        self._widths = np.diff(nodes.columns)
        self._sides = self._widths + np.diff(nodes.row_starts)
        self._leaf = np.diff(nodes.child_starts) == 0
        self._depths = _depths(parents)
        self._front_starts = np.concatenate([[0], np.cumsum(self._sides**2)])
        kinds = np.int32, np.int64, np.int32, np.int64, *[np.int32] * 5
        self._structure = [upload(v, kind) for v, kind in zip(nodes, kinds, strict=True)]
        self._structure += [upload(entries, np.int32), upload(parents, np.int32), upload(self._front_starts, np.int64)]
        self._fronts: Values = ()
        self._targets: Any = None
        self._every: _Plan | None = None

    def run(self, weights: Values, due: Array | None, upper: Values, lower: Values, *, signed: bool) -> None:
        """Eliminate all fronts, or the fronts that are due, and wait for the GPU.

        `weights` are those of the edges, in the order of the graph. `due` marks supernodes to eliminate anew, with all supernodes above
        them, after all have been eliminated. The panels `upper` and `lower` are filled. See `Engine` for `signed`. Raises DivergentPivot
        with the place of the pivot.
        """
        count = len(self._widths)
        if not count:
            return
        if due is None:
            self._allocate()
            plan = self._every = self._every or self._plan(np.ones(count, bool))
        else:
            plan = self._plan(due)
        there = tuple([upload(w, d) for w, d in zip(weights, self.dtypes, strict=True)])
        divergent, r = no_divergence(plan.most), self._representation
        *nodes, starts = [v.data.ptr for v in self._structure]
        arrays = (tuple([v.data.ptr for v in values]) for values in (there, self._fronts, upper, lower))
        limit = threshold(int(r.zero[0]), signed=signed) if r.clamped else 0
        whole = *nodes, count, starts, self._targets.data.ptr, *arrays, divergent.data.ptr, limit, *[0] * len(_OWN)
        self._launch(plan, Fronts._make(whole))
        least = int(read_back(divergent).min(initial=NO_DIVERGENCE))
        if least != NO_DIVERGENCE:
            raise DivergentPivot(least)

    def _allocate(self) -> None:
        import cupy

        if not self._fronts:
            self._targets = cupy.empty(max(1, self._structure[2].size), np.int32)
            self._fronts = tuple([cupy.empty(int(self._front_starts[-1]), d) for d in self.dtypes])

    def _launch(self, plan: _Plan, whole: Fronts) -> None:
        fields = np.array([0, *flat(whole)], np.int64)
        argument, own = pointer_to(fields), slice(len(fields) - len(_OWN), None)
        kernels = _loaded(self.semiring, self.dtypes, self.number, self.by_star)
        fronts, starts, length = plan.fronts.data.ptr, plan.starts.data.ptr, plan.starts.shape[1]
        for name, first, listed, base, blocks, step, which in plan.launches:
            begin = starts + plan.starts.itemsize * (length * max(which, 0) + first)
            fields[own] = fronts + plan.fronts.itemsize * first, begin, listed, base, step
            kernel, threads = kernels[name]
            kernel.start((blocks, 1, 1), (threads, 1, 1), argument)

    @property
    def nbytes(self) -> int:
        """Bytes of the fronts."""
        return sum(v.nbytes for v in self._fronts)

    def _plan(self, due: Array) -> _Plan:
        side = _side(self._representation)
        some = np.flatnonzero(due)
        some = some[np.argsort(-self._depths[some], kind="stable")]  # farthest from the root first
        bands = -(-self._sides[some] // _BAND)
        # Fronts repeat once per pivot block, sorted by level, then by the block's number.
        pivots = -(-self._widths[some] // side)
        fronts = np.repeat(some, pivots)
        steps = np.arange(len(fronts)) - np.repeat(np.cumsum(pivots) - pivots, pivots)
        order = np.lexsort((steps, -self._depths[fronts]))
        fronts, steps = fronts[order], steps[order]
        after = np.minimum((steps + 1) * side, self._widths[fronts])
        tiles = steps - -(self._sides[fronts] - after) // side  # outside the pivot block
        # Block counts per front and step: bands; or tiles in a row, in a row and a column, and in the rest.
        sizes = np.zeros((3, len(some) + 1 + len(fronts)), np.int64)
        sizes[0, : len(some)] = bands
        sizes[:, len(some) + 1 :] = tiles, 2 * tiles, tiles**2
        starts = np.concatenate([np.zeros((3, 1), np.int64), np.cumsum(sizes, axis=1)], axis=1)

        def launch(name: str, first: int, last: int, which: int, step: int = 0) -> None:
            base, end = (first, last) if which < 0 else (int(starts[which, first]), int(starts[which, last]))
            if end > base:
                launches.append(_Launch(name, first, last - first, base, end - base, step, which))

        # The positions of rows in the parent's front are found whenever all fronts are eliminated.
        launches = [_Launch("locate_rows", 0, len(some), 0, len(some), 0, -1)] if due.all() else []
        launch("clear_band", 0, len(some), 0)
        launch("enter_edges", 0, len(some), -1)
        offset, first, levels = len(some) + 1, 0, iter(_ends(self._depths[some]).tolist())
        for begin, end in pairwise([0, *_ends(self._depths[fronts] * (1 + int(pivots.max())) - steps).tolist()]):
            step = int(steps[begin])
            if step == 0:  # a level begins
                last = next(levels)
                if not self._leaf[some[first:last]].all():
                    launch("extend_band", first, last, 0)
                first = last
            launch("close_pivots", offset + begin, offset + end, -1, step)
            for name, which in _BY_STAR if self.by_star else _CLOSING:
                launch(name, offset + begin, offset + end, which, step)
        launch("keep_band", 0, len(some), 0)
        listed = np.concatenate([some, [0], fronts])
        return _Plan(launches, upload(listed, np.int32), upload(starts, np.int64), len(some))


def _ends(keys: Array) -> Array:
    """Return the ends of runs of equal numbers."""
    return np.append(np.flatnonzero(keys[1:] != keys[:-1]) + 1, len(keys))


def _depths(parents: Array) -> Array:
    count = len(parents)
    depths = [-1] * (count + 1)
    for s in range(count - 1, -1, -1):
        depths[s] = depths[parents[s]] + 1
    return np.array(depths[:-1], np.int64)


@functools.lru_cache(maxsize=cache.LOADED)
def _loaded(semiring: Semiring, dtypes: DTypes, number: int, by_star: bool) -> dict[str, tuple[Kernel, int]]:

    def source() -> str:
        return fronts_source(semiring, dtypes, device(number).arch, by_star=by_star)

    return {
        name: (Kernel(name, source, number), threads)
        for name, (_, threads) in _kernels(represent(semiring, dtypes), by_star=by_star).items()
    }
