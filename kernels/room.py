"""What memory is left, on the host and on GPUs, and whether something fits it."""

from __future__ import annotations

import importlib
import os
import sys
from pathlib import Path

from semiring.algebra.errors import TooLargeError
from semiring.kernels.devices import gpu_number, is_gpu

__all__ = ["ALWAYS_FITS", "fits", "format_bytes", "free_on", "require_room", "with_scratch"]

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


def format_bytes(size: int) -> str:
    """A number of bytes in words, in the unit in which it is neither 0.0 nor very long."""
    for unit, name in ((30, "GiB"), (20, "MiB"), (10, "KiB")):
        if size >= 100 << unit - 10:
            return f"{size / (1 << unit):,.1f} {name}"
    return f"{size} byte{'s' * (size != 1)}"
