"""What memory a GPU has left, and the refusal of what does not fit it."""

from __future__ import annotations

from semiring.algebra.errors import TooLargeError

__all__ = ["ALWAYS_FITS", "free_memory", "gib", "require_room", "with_scratch"]

ALWAYS_FITS = 1 << 26
"""Bytes below which asking would take longer than it is worth."""


def free_memory(number: int) -> int:
    """Bytes that can still be allocated on a GPU: what its driver has left, and what CuPy's pool holds unused."""
    import cupy

    with cupy.cuda.Device(number):
        free, _ = cupy.cuda.runtime.memGetInfo()
        pool = cupy.get_default_memory_pool()
        limit = pool.get_limit()
        left = free + pool.free_bytes()
        return int(min(left, limit - pool.used_bytes()) if limit else left)


def with_scratch(size: int) -> int:
    """Bytes of matrices, and what an algorithm takes beside them."""
    return size + max(ALWAYS_FITS, size // 25)


def require_room(device: str, needed: int, advice: str) -> None:
    """Refuse what does not fit a GPU; anything fits another device.

    Raises
    ------
    TooLargeError
        With both sizes and the advice.
    """
    if not device.startswith("cuda:") or needed <= ALWAYS_FITS or needed <= (free := free_memory(int(device[5:]))):
        return
    raise TooLargeError(f"this takes {gib(needed)} on {device}, where {gib(max(free, 0))} are free; {advice}")


def gib(size: int) -> str:
    """A number of bytes in words."""
    return f"{size / 2**30:,.1f} GiB" if size >= 100 << 20 else f"{size / 2**20:,.1f} MiB"
