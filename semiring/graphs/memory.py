"""Refusing, before anything is allocated, a dense matrix that cannot fit."""

from __future__ import annotations

import importlib
import math
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from semiring.algebra.errors import TooLargeError
from semiring.kernels.room import ALWAYS_FITS, free_memory, gib, with_scratch

__all__ = ["available_memory", "free_on", "require_memory"]

_VIA_BYTES = 4
_MEMORY_INFO = Path("/proc/meminfo")
_LIMITS = Path("/sys/fs/cgroup")


def available_memory() -> int | None:
    """Bytes that this process can still allocate without swapping, as far as the system tells."""
    free = [f for f in (_system(), _container()) if f is not None]
    return min(free) if free else None


def free_on(device: str) -> int | None:
    """Bytes that can still be allocated on "cuda:0" and so on, or for any other device on the host, as far as the system tells."""
    return free_memory(int(device[5:])) if device.startswith("cuda:") else available_memory()


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
    itemsize = sum(d.itemsize for d in dtypes) + _VIA_BYTES * via
    needed = entries * itemsize
    if needed <= ALWAYS_FITS:
        return
    gpu = device.startswith("cuda:")
    free = free_on(device)
    if gpu:
        needed = with_scratch(needed)
    if free is None or needed <= free:
        return
    without = itemsize - _VIA_BYTES * via
    single = sum(min(d.itemsize, 4) for d in dtypes)
    candidates = {"dtype=float32 or int32": single + itemsize - without, "no paths": without, "dtype=float32 or int32 and no paths": single}
    if overwriting_helps and dtypes:
        candidates = {"overwrite=True": itemsize - without, **candidates, "overwrite=True and no paths": 0}
    taken = {how: with_scratch(entries * size) if gpu else entries * size for how, size in candidates.items() if size < itemsize}
    fitting = {how: size for how, size in taken.items() if size <= free}
    remedies = [f"{how} ({gib(size)})" for how, size in list(fitting.items())[:1]]
    if gpu:
        remedies.append("the memory of the host (device='cpu', and an array that lies there)")
    remedies += [
        "one connected component at a time (scipy.sparse.csgraph.connected_components)",
        "some rows at a time (sources=…), which leaves a sparse graph sparse",
    ]
    if not gpu and not batch:
        remedies.append("for a matrix in a file (numpy.memmap, Zarr), checkpoint=folder, where the result is a file too")
    what = f"{' × '.join(map(str, batch))} dense matrices" if batch else "a dense matrix"
    kinds = " and ".join(dict.fromkeys(map(str, dtypes)))
    of = f" of {kinds}" if kinds else ""
    with_paths = " with the construction matrix of its paths" if via else ""
    raise TooLargeError(
        f"{what} of {n:,} × {n:,} entries{of}{with_paths} would take {gib(needed)}, but {gib(max(free, 0))} of memory are available"
        f"{f' on {device}' if gpu else ''}; what would work: {'; '.join(remedies)}"
    )
