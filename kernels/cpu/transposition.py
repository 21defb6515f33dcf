"""The transpose of a sparse pattern in compressed rows, as a compiled counting sort: O(n + m), and rows stay in ascending order."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from semiring.arrays.overlap import address
from semiring.kernels.cpu.compiler import compile_library, link
from semiring.kernels.cpu.emitter import Arguments, Emitter, pack
from semiring.kernels.hardware import host

__all__ = ["transposition"]

Array = np.ndarray[Any, Any]


class _Words(NamedTuple):
    """The arguments: a pattern, and of its transpose where the next entry of each row goes, its columns, and their numbers here."""

    n: int
    starts: int
    heads: int
    place: int
    tails: int
    numbers: int


def transposition(starts: Array, heads: Array) -> tuple[Array, Array, Array]:
    """The transpose of a pattern: where its rows begin, their columns, and the number that each of these entries has in the pattern.

    Examples
    --------
    >>> transposition(np.array([0, 2, 3, 3]), np.array([1, 2, 2]))  # 0 → 1, 0 → 2, 1 → 2
    (array([0, 0, 1, 3]), array([0, 0, 1]), array([0, 1, 2]))
    """
    starts, heads = (np.ascontiguousarray(v, np.int64) for v in (starts, heads))
    n = len(starts) - 1
    begins = np.zeros(n + 1, np.int64)
    np.cumsum(np.bincount(heads, minlength=n), out=begins[1:])
    place, tails, numbers = begins.copy(), np.empty_like(heads), np.empty_like(heads)
    arguments = pack(_Words(n, *map(address, (starts, heads, place, tails, numbers))))
    _function()(arguments.buffer_info()[0])
    return begins, tails, numbers


@functools.cache
def _function() -> Callable[[int], None]:
    """The function, compiled or from the cache."""
    return compile_library(("transpose",), host(), lambda: link([_transpose()])).function("transpose")


def _transpose() -> Emitter:
    """``transpose(args)``."""
    em, args = Emitter("transpose", "ptr %args"), Arguments(_Words)
    starts, heads, place, tails, numbers = (args.pointer(em, name) for name in _Words._fields[1:])

    def row(u: str, _: list[str]) -> None:
        def entry(e: str, _: list[str]) -> None:
            there = em.at("i64", place, em.load("i64", em.at("i64", heads, e), 8))
            at = em.load("i64", there, 8)
            em.store("i64", u, em.at("i64", tails, at), 8)
            em.store("i64", e, em.at("i64", numbers, at), 8)
            em.store("i64", str(em.add(at, 1)), there, 8)

        first, last = (em.load("i64", em.at("i64", starts, e), 8) for e in (u, em.add(u, 1)))
        em.loop(first, last, 1, entry)

    em.loop(0, args.load(em, "n"), 1, row)
    em.line("ret void")
    return em
