"""Free memory of the host and of GPUs; allocations that cannot fit are refused in advance."""

from __future__ import annotations

import importlib
import math
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from semiring.arrays.devices import gpu_number, is_gpu
from semiring.common.errors import TooLargeError
from semiring.common.units import format_bytes

__all__ = [
    "ALWAYS_FITS", "entry_bytes", "fits", "free_on", "require_bytes", "require_memory", "require_room", "require_row_starts",
    "with_scratch",
]  # fmt: skip

ALWAYS_FITS = 1 << 26
"""Bytes below which a check would cost more than it is worth."""

_MEMORY_INFO = Path("/proc/meminfo")
_LIMITS = Path("/sys/fs/cgroup")


def fits(needed: int, device: str) -> bool:
    """Return True if so many bytes fit a GPU ("cuda:0" and so on) or, for any other device, the host, or if the free memory is unknown."""
    if needed <= ALWAYS_FITS:
        return True
    free = free_on(device)
    return free is None or needed <= free


def free_on(device: str) -> int | None:
    """Return the free bytes of a device, 0 or more; None if the system does not tell."""
    free = free_on_gpu(gpu_number(device)) if is_gpu(device) else free_on_host()
    return None if free is None else max(free, 0)


def free_on_gpu(number: int) -> int:
    """Return the free memory of a GPU's driver and of CuPy's pool."""
    import cupy

    with cupy.cuda.Device(number):
        free, _ = cupy.cuda.runtime.memGetInfo()
        pool = cupy.get_default_memory_pool()
        limit = pool.get_limit()
        left = free + pool.free_bytes()
        return int(min(left, limit - pool.used_bytes()) if limit else left)


def free_on_host() -> int | None:
    """Return the bytes that this process can allocate without swapping."""
    return min((free for free in (_system(), _container()) if free is not None), default=None)


def _system() -> int | None:
    try:
        for line in _MEMORY_INFO.read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    try:
        return int(importlib.import_module("psutil").virtual_memory().available)
    except ImportError:
        pass
    if sys.platform == "win32":
        return None
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (OSError, ValueError):
        return None


def _container() -> int | None:
    """Return the rest of the limit of a Linux container (cgroup 2), if one is set."""
    try:
        limit, used = ((_LIMITS / f"memory.{what}").read_text().strip() for what in ("max", "current"))
        reclaimable = dict(line.split() for line in (_LIMITS / "memory.stat").read_text().splitlines())
        return int(limit) - int(used) + int(reclaimable.get("inactive_file", 0))
    except (OSError, ValueError):
        return None


def with_scratch(size: int) -> int:
    """Add an algorithm's scratch to the bytes of matrices on a GPU."""
    return size + max(ALWAYS_FITS, size // 25)


def require_room(device: str, needed: int, advice: str) -> None:
    """Refuse what does not fit a GPU; other devices fit everything. The `TooLargeError` has both sizes and the advice."""
    if is_gpu(device) and not fits(needed, device):
        raise TooLargeError(f"this takes {format_bytes(needed)} on {device}, where {format_bytes(free_on(device) or 0)} are free; {advice}")


def require_bytes(needed: int, what: str, advice: str, device: str = "cpu") -> None:
    """Refuse an allocation that does not fit the memory of a device.

    `what` is the subject with its verb ("the answer takes"), `advice` the remedy; the `TooLargeError` has both sizes too.
    """
    if not fits(needed, device):
        free = format_bytes(free_on(device) or 0)
        raise TooLargeError(f"{what} {format_bytes(needed)}, but {free} of memory are available; {advice}")


def require_row_starts(
    count: int, owner: str, device: str = "cpu", *, rows: str = "rows", entries: str = "entries", advice: str = ""
) -> None:
    """Refuse so many rows, or columns, that even the offsets of their entries do not fit the memory."""
    what = f"{owner} has {count:,} {rows}, and the offsets of their {entries} take"
    require_bytes(_START_BYTES * (count + 1), what, f"leave out {rows} without {entries}{advice}", device)


_VIA_BYTES, _START_BYTES = np.dtype(np.int32).itemsize, np.dtype(np.int64).itemsize


def entry_bytes(dtypes: Sequence[np.dtype[Any]], *, via: bool) -> int:
    """Return the bytes of one entry of a matrix in all components and, with `via`, in the construction matrix."""
    return sum(d.itemsize for d in dtypes) + _VIA_BYTES * via


def require_memory(
    n: int,
    dtypes: Sequence[np.dtype[Any]],
    *,
    via: bool = False,
    batch: tuple[int, ...] = (),
    device: str = "cpu",
    overwriting_helps: bool = False,
) -> None:
    """Refuse a dense n × n matrix that does not fit the available memory of a device.

    `dtypes` are those of the components, none if the matrix itself needs no new memory. `via` adds the construction matrix (int32), `batch`
    has leading axes. With `overwriting_helps`, the matrix itself would need no new memory after ``overwrite=True``. The `TooLargeError` has
    the size, the available memory and what would work.
    """
    entries = math.prod(batch) * n * n
    itemsize, without = (entry_bytes(dtypes, via=some) for some in (via, False))
    needed = entries * itemsize
    if needed <= ALWAYS_FITS:
        return
    gpu = is_gpu(device)
    if gpu:
        needed = with_scratch(needed)
    if fits(needed, device):
        return
    free = free_on(device) or 0
    single = sum(min(d.itemsize, 4) for d in dtypes)
    candidates = {"dtype=float32 or int32": single + itemsize - without, "no paths": without, "dtype=float32 or int32 and no paths": single}
    if overwriting_helps and dtypes:
        candidates = {"overwrite=True": itemsize - without, **candidates, "overwrite=True and no paths": 0}
    taken = {how: with_scratch(entries * size) if gpu else entries * size for how, size in candidates.items() if size < itemsize}
    fitting = {how: size for how, size in taken.items() if size <= free}
    remedies = [f"{how} ({format_bytes(size)})" for how, size in list(fitting.items())[:1]]
    if gpu:
        remedies.append("the memory of the host (device='cpu', with an array of the host)")
    remedies += [
        "one connected component at a time (scipy.sparse.csgraph.connected_components)",
        "of a sparse graph some rows at a time (sources=…, sr.factor(graph).blocks()), or summaries (sr.statistics, sr.reachability)",
    ]
    if not gpu and not batch:
        remedies.append("for a matrix in a file (numpy.memmap, Zarr), checkpoint=folder, where the result is a file too")
    what = f"{' × '.join(map(str, batch))} dense matrices" if batch else "a dense matrix"
    kinds = " and ".join(dict.fromkeys(map(str, dtypes)))
    of = f" of {kinds}" if kinds else ""
    with_paths = " with the construction matrix of its paths" if via else ""
    raise TooLargeError(
        f"{what} of {n:,} × {n:,} entries{of}{with_paths} would take {format_bytes(needed)}, but {format_bytes(free)} of memory are "
        f"available{f' on {device}' if gpu else ''}; what would work: {'; '.join(remedies)}"
    )
