"""Free memory of the host and of GPUs; what cannot fit is refused before anything is allocated."""

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
"""Bytes below which asking would take longer than it is worth."""

_MEMORY_INFO = Path("/proc/meminfo")
_LIMITS = Path("/sys/fs/cgroup")


def fits(needed: int, device: str) -> bool:
    """Whether there is room for so many bytes on "cuda:0" and so on, or for any other device on the host, as far as is known."""
    if needed <= ALWAYS_FITS:
        return True
    free = free_on(device)
    return free is None or needed <= free


def free_on(device: str) -> int | None:
    """Bytes that can still be allocated there, 0 or more; None where the system does not tell."""
    free = free_on_gpu(gpu_number(device)) if is_gpu(device) else free_on_host()
    return None if free is None else max(free, 0)


def free_on_gpu(number: int) -> int:
    """What the driver of a GPU has left, and what CuPy's pool holds unused."""
    import cupy

    with cupy.cuda.Device(number):
        free, _ = cupy.cuda.runtime.memGetInfo()
        pool = cupy.get_default_memory_pool()
        limit = pool.get_limit()
        left = free + pool.free_bytes()
        return int(min(left, limit - pool.used_bytes()) if limit else left)


def free_on_host() -> int | None:
    """What this process can still allocate without swapping."""
    free = [f for f in (_system(), _container()) if f is not None]
    return min(free) if free else None


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
    """What is left of the limit of a Linux container (cgroup 2), where there is one."""
    try:
        limit, used = ((_LIMITS / f"memory.{what}").read_text().strip() for what in ("max", "current"))
        reclaimable = dict(line.split() for line in (_LIMITS / "memory.stat").read_text().splitlines())
        return int(limit) - int(used) + int(reclaimable.get("inactive_file", 0))
    except (OSError, ValueError):
        return None


def with_scratch(size: int) -> int:
    """Bytes of matrices on a GPU, and what an algorithm takes beside them."""
    return size + max(ALWAYS_FITS, size // 25)


def require_room(device: str, needed: int, advice: str) -> None:
    """Refuse what does not fit a GPU; anything fits another device.

    Raises
    ------
    TooLargeError
        With both sizes and the advice.
    """
    if is_gpu(device) and not fits(needed, device):
        raise TooLargeError(f"this takes {format_bytes(needed)} on {device}, where {format_bytes(free_on(device) or 0)} are free; {advice}")


def require_bytes(needed: int, what: str, advice: str, device: str = "cpu") -> None:
    """Refuse what the memory of a device has no room for.

    Parameters
    ----------
    needed : int
    what : str
        What takes so many bytes, with its verb: "the answer takes".
    advice : str
        What would work.
    device : str
        Whose memory: "cpu", or "cuda:0" and so on.

    Raises
    ------
    TooLargeError
        With both sizes and the advice.
    """
    if not fits(needed, device):
        free = format_bytes(free_on(device) or 0)
        raise TooLargeError(f"{what} {format_bytes(needed)}, but {free} of memory are available; {advice}")


def require_row_starts(
    count: int, owner: str, device: str = "cpu", *, rows: str = "rows", entries: str = "entries", advice: str = ""
) -> None:
    """Refuse what has so many rows, or columns, that there is no memory even to say where the entries of each begin.

    Raises
    ------
    TooLargeError
    """
    what = f"{owner} has {count:,} {rows}, and to say where the {entries} of each begin takes"
    require_bytes(_START_BYTES * (count + 1), what, f"leave out {rows} without {entries}{advice}", device)


_VIA_BYTES, _START_BYTES = np.dtype(np.int32).itemsize, np.dtype(np.int64).itemsize


def entry_bytes(dtypes: Sequence[np.dtype[Any]], *, via: bool) -> int:
    """Bytes of one entry of a matrix, of all components and, with `via`, of the construction matrix."""
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
    """Refuse a dense matrix that does not fit the available memory.

    Parameters
    ----------
    n : int
        Vertices.
    dtypes : sequence of numpy.dtype
        One for each component; none where the matrix itself needs no new memory.
    via : bool
        Whether the construction matrix (int32) comes along.
    batch : tuple of int
        Leading axes.
    device : str
        Whose memory: "cpu", or "cuda:0" and so on.
    overwriting_helps : bool
        Whether the matrix itself would need no new memory with ``overwrite=True``.

    Raises
    ------
    TooLargeError
        Naming the size, the available memory and what would work.
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
        remedies.append("the memory of the host (device='cpu', and an array that lies there)")
    remedies += [
        "one connected component at a time (scipy.sparse.csgraph.connected_components)",
        "of a sparse graph some rows at a time (sources=…, sr.factor(graph).blocks()), or what all say (sr.statistics, sr.reachability)",
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
