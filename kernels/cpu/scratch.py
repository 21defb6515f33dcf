"""Scratch memory of workers, kept from call to call.

Whoever needs some takes it for itself alone, also where the handler of a signal computes in the middle of another product.
"""

from __future__ import annotations

from collections import deque
from typing import Any, NamedTuple

import numpy as np

from semiring.kernels.overlap import address

__all__ = ["Scratch", "give_back", "take"]

_LINE = 64
"""Bytes of a cache line, on which scratch begins."""

_LARGEST = 8 << 20
"""Bytes of what is kept at most: the product that needs more takes so long that new memory does not count."""

_MOST = 256
"""Pieces that are kept at most; there are as many as workers that have run at once."""


class Scratch(NamedTuple):
    """A piece of memory: its bytes, where it begins, and the array that owns it."""

    size: int
    address: int
    owner: np.ndarray[Any, Any]


# The last one first, which a cache may still have. Taking and giving back are atomic.
_free: deque[Scratch] = deque(maxlen=_MOST)


def take(size: int) -> Scratch:
    """At least `size` bytes, with anything in them."""
    if size > _LARGEST:
        return _made(size)
    try:
        scratch = _free.pop()
    except IndexError:
        return _made(size)
    return scratch if scratch.size >= size else _made(size)


def _made(size: int) -> Scratch:
    owner = np.empty(size + _LINE, dtype=np.uint8)
    start = address(owner)
    return Scratch(size, start + -start % _LINE, owner)


def give_back(scratch: Scratch) -> None:
    """Keep it for whoever needs some next."""
    if scratch.size <= _LARGEST:
        _free.append(scratch)
