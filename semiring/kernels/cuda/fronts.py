"""The elimination of a sparse graph's fronts in GPU memory, and sweeps through the panels that it leaves.

Fronts are eliminated a level of the tree at once, one pivot block after the other.

With K a pivot block of a front's own vertices, I and J everything else in the front, and ⊕ idempotent, a step is a step of
the blocked closure:

    A_KK ← A_KK*,  A_KJ ← A_KJ ⊕ A_KK A_KJ,  A_IK ← A_IK ⊕ A_IK A_KK,  A_IJ ← A_IJ ⊕ A_IK A_KJ.

By star, the step is A_KK ← A_KK*, A_IK ← A_IK A_KK, A_IJ ← A_IJ ⊕ A_IK A_KJ, A_KJ ← A_KK A_KJ. A step covers all fronts of a level with
pivot blocks left. The host plans the launches and their fronts, once for all fronts.

Sweeps compute rows and columns of the closure, 32 per warp. A warp goes through all supernodes alone, and never waits for other warps. Its
vectors lie in global memory, with a row of 32 lanes for each place. Finished vectors go through shared memory into the caller's order.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from semiring.algebra.definition import Semiring
from semiring.arrays.conversion import Array
from semiring.arrays.devices import gpu_name, on_device
from semiring.arrays.memory import free_on
from semiring.common.errors import DivergentPivot
from semiring.kernels.compressed import EliminationPanels, Supernodes
from semiring.kernels.cuda.arguments import Fronts, Sweeps, flat
from semiring.kernels.cuda.blocks import by_value, download, upload
from semiring.kernels.cuda.compiler import pointer_to, semiring_kernel_for
from semiring.kernels.cuda.elements import NO_DIVERGENCE, of_bytes, read_back
from semiring.kernels.cuda.kernels import pivot_threads, pivot_tile, step_for
from semiring.kernels.cuda.representation import Representation, represent
from semiring.kernels.cuda.source import summing_source
from semiring.kernels.hardware import device
from semiring.kernels.limits import DTypes, threshold

__all__ = ["CudaFronts", "CudaSweeps", "front_bytes", "fronts_source", "sweep_source"]

Values = tuple[Any, ...]

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

    star = str(by_star).lower()
    found = {name: (f"{name}<Summed>", _THREADS) for name in ("locate_rows", "clear_band", "extend_band", "keep_band")}
    found["enter_edges"] = f"enter_edges<Summed, {str(not by_star).lower()}>", _THREADS
    found["close_pivots"] = f"close_pivots<Summed, {side}, {pivot}, {own_rows}, {own_columns}, {star}>", pivot_threads(r, pivot)
    for part in ("rest", "rows", "columns") if by_star else ("rest", "both"):
        add = str(part in ("rest", "both")).lower()
        found[f"update_{part}"] = f"update_tile<Summed, {side}, {rows}, Part::{part}, {add}>", threads
    return found


def fronts_source(semiring: Semiring, dtypes: DTypes, arch: int, by_star: bool) -> str:
    """Return the CUDA C++ of all kernels of fronts."""
    r = represent(semiring, dtypes)
    kernels, step = _kernels(r, by_star=by_star), step_for(r, arch, ordered_bits=False)
    return summing_source(semiring, dtypes, "fronts", kernels, step=step, star=by_star)


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
        import cupy

        count = len(self._widths)
        if not count:
            return
        if due is None:
            if not self._fronts:
                self._targets = cupy.empty(max(1, self._structure[2].size), np.int32)
                self._fronts = tuple([cupy.empty(int(self._front_starts[-1]), d) for d in self.dtypes])
            plan = self._every = self._every or self._plan(np.ones(count, bool))
        else:
            plan = self._plan(due)
        there = tuple([upload(w, d) for w, d in zip(weights, self.dtypes, strict=True)])
        divergent, r = of_bytes(plan.most, NO_DIVERGENCE & 0xFF), self._representation
        *nodes, starts = [v.data.ptr for v in self._structure]
        arrays = (tuple([v.data.ptr for v in values]) for values in (there, self._fronts, upper, lower))
        limit = threshold(int(r.zero[0]), signed=signed) if r.clamped else 0
        whole = *nodes, count, starts, self._targets.data.ptr, *arrays, divergent.data.ptr, limit, *[0] * len(_OWN)
        self._launch(plan, Fronts._make(whole))
        least = int(read_back(divergent).min(initial=NO_DIVERGENCE))
        if least != NO_DIVERGENCE:
            raise DivergentPivot(least)

    def _launch(self, plan: _Plan, whole: Fronts) -> None:
        fields = np.array([0, *flat(whole)], np.int64)
        argument, own = pointer_to(fields), slice(len(fields) - len(_OWN), None)
        how = self.number, fronts_source, self.semiring, self.dtypes, device(self.number).arch, self.by_star
        each = _kernels(self._representation, by_star=self.by_star).items()
        kernels = {name: (semiring_kernel_for(name, *how), threads) for name, (_, threads) in each}
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


# Sweeps.

_LANES = 32  # sources of a warp
_WARPS = 12  # the most warps per multiprocessor; each has memory for its vectors
_GAP = 1 << 15  # entries of a panel that are copied faster than another copy starts
_SHARE = 2  # vectors take at most 1 / _SHARE of the free memory


def sweep_source(semiring: Semiring, dtypes: DTypes, backward: bool) -> str:
    """Return the CUDA C++ of the kernel ``sweep``, for rows or, `backward`, for columns."""
    return summing_source(semiring, dtypes, "sweeps", {"sweep": (f"sweep_sources<Summed, {str(backward).lower()}>", _LANES)})


class CudaSweeps:
    """The panels of one elimination on a GPU, and sweeps through them.

    `parents` holds each supernode's parent, or their number for none.
    """

    def __init__(self, semiring: Semiring, dtypes: DTypes, number: int, nodes: Supernodes, parents: Array) -> None:
        self.semiring, self.dtypes, self.number = semiring, dtypes, number
        self._representation = represent(semiring, dtypes)
        widths = np.diff(nodes.columns)
        self._n, self._widest, self._count = int(nodes.columns[-1]), int(widths.max(initial=0)), len(widths)
        numbers = nodes.columns, nodes.row_starts, nodes.rows, nodes.panel_starts, parents, np.repeat(np.arange(self._count), widths)
        kinds = np.int32, np.int64, np.int32, np.int64, np.int32, np.int32
        self._structure = [upload(v, kind) for v, kind in zip(numbers, kinds, strict=True)]
        self._starts_of_panels = nodes.panel_starts
        self._upper: Values = ()
        self._lower: Values = ()

    @property
    def panels(self) -> tuple[Values, Values]:
        """The upper and the lower panels on the GPU, allocated at the first use."""
        import cupy

        if not self._upper:
            self._upper, self._lower = (tuple(cupy.empty(int(self._starts_of_panels[-1]), d) for d in self.dtypes) for _ in range(2))
        return self._upper, self._lower

    def hold(self, panels: EliminationPanels, changed: Array | None = None) -> None:
        """Copy the panels to the GPU: all, or only those of changed supernodes."""
        if changed is None or not self._upper:
            self._upper, self._lower = (tuple(upload(v) for v in panel) for panel in panels)
            return
        for there, here in self._pairs(panels, changed):
            there.set(here)

    def fetch(self, panels: EliminationPanels, changed: Array) -> None:
        """Copy the panels of changed supernodes to the host."""
        with on_device(gpu_name(self.number)):
            for there, here in self._pairs(panels, changed):
                download(there, here)

    def _pairs(self, panels: EliminationPanels, changed: Array) -> Iterator[tuple[Any, Array]]:
        """Yield parts of all panels on the GPU and on the host: changed supernodes, joined across gaps that are copied fast."""
        starts, marks = self._starts_of_panels, np.concatenate([[False], changed, [False]])
        first, last = starts[np.flatnonzero(~marks[:-1] & marks[1:])], starts[np.flatnonzero(marks[:-1] & ~marks[1:])]
        apart = first[1:] - last[:-1] > _GAP
        for part in map(slice, first[np.append(True, apart)].tolist(), last[np.append(apart, True)].tolist()):
            for there, here in zip((*self._upper, *self._lower), (*panels[0], *panels[1]), strict=True):
                yield there[part], here[part]

    def run(self, starts: Array, ends: Array, down: Array, out: Values, *, backward: bool, signed: bool) -> None:
        """Compute rows of the closure from the places `starts` to the places `ends`; `backward`, columns.

        `down` lists the supernodes of the ends and all above them, descending. `out` are C-contiguous arrays of shape (starts, ends). See
        `Engine` for `signed`.
        """
        import cupy

        order = np.argsort(starts, kind="stable")  # neighbouring sources share most of their ancestors
        below, sources, rows_of, at = (upload(v, np.int32) for v in (down, starts[order], order, ends))
        groups = -(-len(starts) // _LANES)
        each = _LANES * (self._n + self._widest) * sum(d.itemsize for d in self.dtypes) + 4 * self._count
        free = free_on(gpu_name(self.number)) or 0
        blocks = max(1, min(groups, _WARPS * device(self.number).multiprocessors, free // (_SHARE * max(1, each))))
        x, own = (tuple(cupy.empty((blocks, n, _LANES), d) for d in self.dtypes) for n in (self._n, max(1, self._widest)))
        marks = cupy.empty((blocks, max(1, self._count)), np.int32)
        r = self._representation
        structure = [v.data.ptr for v in self._structure]
        lists = below.data.ptr, len(down), sources.data.ptr, rows_of.data.ptr, len(starts), at.data.ptr, len(ends), out[0].shape[1]
        limit = threshold(int(r.zero[0]), signed=signed) if r.clamped else 0
        upper, lower, vectors, widest, found = (tuple([v.data.ptr for v in values]) for values in (self._upper, self._lower, x, own, out))
        panels = upper, lower, vectors, widest, marks.data.ptr, found
        sweep = Sweeps._make((*structure, self._count, self._n, self._widest, *lists, limit, *panels))
        kernel = semiring_kernel_for("sweep", self.number, sweep_source, self.semiring, self.dtypes, backward)
        kernel((blocks, 1, 1), (_LANES, 1, 1), (by_value(sweep),))
