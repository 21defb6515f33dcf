"""Sweeps through the panels of a sparse elimination on a GPU: rows and columns of the closure, 32 per warp.

A warp goes through all supernodes alone, and never waits for other warps. Its vectors lie in global memory, with a row of 32 lanes for each
place. Finished vectors go through shared memory into the caller's order.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from semiring.algebra.definition import Semiring
from semiring.arrays.devices import gpu_name, on_device
from semiring.arrays.memory import free_on
from semiring.kernels.compressed import EliminationPanels, Supernodes
from semiring.kernels.cuda.arguments import Sweep
from semiring.kernels.cuda.blocks import by_value, download, upload
from semiring.kernels.cuda.compiler import semiring_kernel_for
from semiring.kernels.cuda.representation import represent
from semiring.kernels.cuda.source import summing_source
from semiring.kernels.hardware import device
from semiring.kernels.limits import threshold

__all__ = ["CudaSweeps", "sweep_source"]

Array = np.ndarray[Any, Any]
Values = tuple[Any, ...]

_LANES = 32  # sources of a warp
_WARPS = 12  # the most warps per multiprocessor; each has memory for its vectors
_GAP = 1 << 15  # entries of a panel that are copied faster than another copy starts
_SHARE = 2  # vectors take at most 1 / _SHARE of the free memory


def sweep_source(semiring: Semiring, dtypes: tuple[np.dtype[Any], ...], backward: bool) -> str:
    """Return the CUDA C++ of the kernel ``sweep``, for rows or, `backward`, for columns."""
    return summing_source(semiring, dtypes, "sweeps.cuh", "sweep", f"sweep_sources<Summed, {str(backward).lower()}>", _LANES)


class CudaSweeps:
    """The panels of one elimination on a GPU, and sweeps through them.

    `parents` holds each supernode's parent, or their number for none.
    """

    def __init__(self, semiring: Semiring, dtypes: tuple[np.dtype[Any], ...], number: int, nodes: Supernodes, parents: Array) -> None:
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
        upper, lower = panels
        if changed is None or not self._upper:
            self._upper, self._lower = (tuple(upload(v) for v in panel) for panel in (upper, lower))
            return
        for first, last in self._runs(changed):
            for there, panel in zip((*self._upper, *self._lower), (*upper, *lower), strict=True):
                there[first:last].set(panel[first:last])

    def fetch(self, panels: EliminationPanels, changed: Array) -> None:
        """Copy the panels of changed supernodes to the host."""
        upper, lower = panels
        with on_device(gpu_name(self.number)):
            for first, last in self._runs(changed):
                for there, panel in zip((*self._upper, *self._lower), (*upper, *lower), strict=True):
                    download(there[first:last], panel[first:last])

    def _runs(self, changed: Array) -> list[tuple[int, int]]:
        """Return ranges of entries of changed supernodes, joined across gaps that are copied faster than another copy starts."""
        starts, marks = self._starts_of_panels, np.concatenate([[False], changed, [False]])
        first, last = starts[np.flatnonzero(~marks[:-1] & marks[1:])], starts[np.flatnonzero(marks[:-1] & ~marks[1:])]
        apart = first[1:] - last[:-1] > _GAP
        return list(zip(first[np.append(True, apart)].tolist(), last[np.append(apart, True)].tolist(), strict=True))

    def run(self, starts: Array, ends: Array, down: Array, out: Values, *, backward: bool, signed: bool) -> None:
        """Compute rows of the closure from the places `starts` to the places `ends`; `backward`, columns.

        `down` lists the supernodes of the ends and all above them, descending. `out` are C-contiguous arrays of shape (starts, ends). See
        `Engine` for `signed`.
        """
        import cupy

        order = np.argsort(starts, kind="stable")  # neighbouring sources share most of their ancestors
        lists = [upload(v, np.int32) for v in (down, starts[order], order, ends)]
        groups = -(-len(starts) // _LANES)
        each = _LANES * (self._n + self._widest) * sum(d.itemsize for d in self.dtypes) + 4 * self._count
        free = free_on(gpu_name(self.number)) or 0
        blocks = max(1, min(groups, _WARPS * device(self.number).multiprocessors, free // (_SHARE * max(1, each))))
        x, own = (tuple(cupy.empty((blocks, n, _LANES), d) for d in self.dtypes) for n in (self._n, max(1, self._widest)))
        marks = cupy.empty((blocks, max(1, self._count)), np.int32)
        r, (below, places, rows_of, at) = self._representation, lists
        upper, lower, vectors, of_widest = (tuple([v.data.ptr for v in values]) for values in (self._upper, self._lower, x, own))
        columns, row_starts, rows, panel_starts, parents, supernode_of = (v.data.ptr for v in self._structure)
        sweep = Sweep(
            columns=columns,
            row_starts=row_starts,
            rows=rows,
            panel_starts=panel_starts,
            parents=parents,
            supernode_of=supernode_of,
            supernodes=self._count,
            n=self._n,
            widest=self._widest,
            down=below.data.ptr,
            downs=len(down),
            starts=places.data.ptr,
            rows_of=rows_of.data.ptr,
            sources=len(starts),
            ends=at.data.ptr,
            targets=len(ends),
            stride=out[0].shape[1],
            threshold=threshold(int(r.zero[0]), signed=signed) if r.clamped else 0,
            upper=upper,
            lower=lower,
            x=vectors,
            own=of_widest,
            marks=marks.data.ptr,
            out=tuple([v.data.ptr for v in out]),
        )
        semiring_kernel_for("sweep", self.number, sweep_source, self.semiring, self.dtypes, backward)(
            (blocks, 1, 1), (_LANES, 1, 1), (by_value(sweep),)
        )
