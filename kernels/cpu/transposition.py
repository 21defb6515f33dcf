"""The transposition of a sparse matrix in compressed rows, as a compiled loop: a stable counting sort of its columns."""

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
    """The arguments: compressed rows, where the next entry of each column is put, and the rows and numbers of entries by columns."""

    n: int
    starts: int
    heads: int
    place: int
    tails: int
    order: int


def transposition(starts: Array, heads: Array) -> tuple[Array, Array, Array]:
    """Compressed columns of compressed rows, all int64: where each begins, and the row of each entry and its number. O(n + m)."""
    n = len(starts) - 1
    places = np.zeros(n + 1, np.int64)
    np.bincount(heads, minlength=n).cumsum(out=places[1:])
    tails, order, ahead = np.empty(len(heads), np.int64), np.empty(len(heads), np.int64), places[:-1].copy()
    words = pack(_Words(n, *map(address, (starts, heads, ahead, tails, order))))
    _function()(words.buffer_info()[0])
    return places, tails, order


@functools.cache
def _function() -> Callable[[int], None]:
    """``transpose(args)``, compiled or from the cache."""
    return compile_library(("transposition",), host(), lambda: link([_transpose()])).function("transpose")


def _transpose() -> Emitter:
    em, args = Emitter("transpose", "ptr %args"), Arguments(_Words)
    n = args.load(em, "n")
    starts, heads, place, tails, order = (args.pointer(em, name) for name in _Words._fields[1:])

    def word(array: str, i: str | int) -> str:
        return em.load("i64", em.at("i64", array, i), 8)

    def put(array: str, i: str, value: str | int) -> None:
        em.store("i64", str(value), em.at("i64", array, i), 8)

    def row(u: str, _: list[str]) -> None:
        def entry(e: str, _: list[str]) -> None:
            v = word(heads, e)
            at = word(place, v)
            put(tails, at, u)
            put(order, at, e)
            put(place, v, em.add(at, 1))

        em.loop(word(starts, u), word(starts, em.add(u, 1)), 1, entry)

    em.loop(0, n, 1, row)
    em.line("ret void")
    return em
