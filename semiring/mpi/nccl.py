"""Row panels from GPU to GPU by NCCL, if every rank has its own GPU."""

from __future__ import annotations

import importlib
import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from semiring.mpi.panels import SLOTS, Panels
from semiring.mpi.ranks import Ranks

__all__ = ["NcclPanels", "has_nccl", "nccl_enabled"]

_ALIGNMENT = 16
"""Rows of a panel begin at multiples of this many bytes."""

_BYTES = 0
"""NCCL's number for bytes, ncclInt8."""


def nccl_enabled() -> bool:
    """Return False if the environment variable ``SEMIRING_NCCL=0`` forbids NCCL."""
    return os.environ.get("SEMIRING_NCCL") != "0"


def has_nccl(ranks: Ranks, gpu: int | None) -> bool:
    """Return True if each rank has its own GPU, and NCCL is installed and allowed. All ranks call it.

    `gpu` is the only GPU of this rank, or None.
    """
    place: Any = None
    if gpu is not None and nccl_enabled():
        try:
            import cupy

            nccl = importlib.import_module("cupy.cuda.nccl")
            place = nccl.get_version() and (ranks.hosts[ranks.rank], cupy.cuda.runtime.deviceGetPCIBusId(gpu))
        except (ImportError, AttributeError):
            place = None
    places = ranks.allgather(place)
    return all(places) and len(set(places)) == ranks.size > 1


class NcclPanels(Panels):
    """Row panels of at most `rows` rows in GPU memory, broadcast by NCCL on `device` and `stream`. Each GPU holds two panels.

    A broadcast's kernel occupies multiprocessors while it waits for other ranks' kernels, so no rank begins before all can.
    """

    def __init__(self, ranks: Ranks, owners: dict[int, int], rows: int, n: int, dtypes: Sequence[np.dtype[Any]], gpu: int) -> None:
        import cupy

        super().__init__(ranks, owners)
        self._cupy, self.device = cupy, cupy.cuda.Device(gpu)
        with ranks.together(), self.device:
            widths = [-(-n * d.itemsize // _ALIGNMENT) * _ALIGNMENT // d.itemsize for d in dtypes]
            self._memory = [[cupy.empty((rows, width), d) for width, d in zip(widths, dtypes, strict=True)] for _ in range(SLOTS)]
            self._n, self.stream = n, cupy.cuda.Stream(non_blocking=True)
            self._token = np.zeros(1, np.uint8)
        self._communicator = _communicator(ranks, gpu)

    def slot_of(self, turn: int) -> tuple[Any, ...]:
        """Return the arrays of a slot, one for each component."""
        return tuple(array[:, : self._n] for array in self._memory[turn])

    def begin(self, turn: int, owner: int, stage: int) -> list[Any]:
        """Tell all ranks that the owner's panel is in its slot (stage 1), or begin the broadcast (2)."""
        if stage == 1:
            return [self.ranks.all.Ibcast(self._token, root=owner)]
        with self.device:
            for array in self._memory[turn]:
                self._communicator.bcast(array.data.ptr, array.nbytes, _BYTES, owner, self.stream.ptr)
            event = self._cupy.cuda.Event(disable_timing=True)
            event.record(self.stream)
        return [_Recorded(event)]

    def close(self) -> None:
        """Free the memory."""
        self._memory.clear()


class _Recorded:
    """An event of a GPU with the interface of an MPI request."""

    def __init__(self, event: Any) -> None:
        self._event = event

    def Test(self) -> bool:  # the name of MPI's method
        """Return True if the GPU has reached the event."""
        return bool(self._event.done)


def _communicator(ranks: Ranks, gpu: int) -> Any:
    """Return NCCL's communicator of these ranks, cached because its creation takes seconds."""
    import cupy

    nccl = importlib.import_module("cupy.cuda.nccl")
    if not all(ranks.allgather(gpu in ranks.nccl)):
        identity = ranks.allgather(nccl.get_unique_id() if ranks.rank == 0 else None)[0]
        with ranks.together(), cupy.cuda.Device(gpu):
            ranks.nccl[gpu] = nccl.NcclCommunicator(ranks.size, identity, ranks.rank)
    return ranks.nccl[gpu]
