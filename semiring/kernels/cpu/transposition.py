"""The transpose of a sparse pattern in compressed rows, as a compiled counting sort, and whether a sparse matrix is its own: O(n + m)."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy as np

from semiring.arrays.overlap import address
from semiring.kernels.cpu.arguments import Arguments, pack
from semiring.kernels.cpu.compiler import Function, compile_library, link
from semiring.kernels.cpu.emitter import ENTRY, Emitter
from semiring.kernels.hardware import host

__all__ = ["is_symmetric", "transposition"]

Array = np.ndarray[Any, Any]


class _TransposeWords(NamedTuple):
    """The arguments of ``transpose``: a pattern, and of its transpose where the next entry of each row goes, columns, and numbers here."""

    n: int
    starts: int
    heads: int
    place: int
    tails: int
    numbers: int


class _SymmetricWords(NamedTuple):
    """Arguments of ``symmetric_8`` etc., for entries of 8 bytes etc.; `place` has the start of each row, and receives its end."""

    n: int
    starts: int
    heads: int
    entries: int
    place: int
    symmetric: int = 0


def transposition(starts: Array, heads: Array) -> tuple[Array, Array, Array]:
    """Transpose a pattern: return the starts of rows, the columns, and the number of each entry in the pattern.

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
    arguments = pack(_TransposeWords(n, *map(address, (starts, heads, place, tails, numbers))))
    _function("transpose")(arguments, 10 * len(heads))
    return begins, tails, numbers


def is_symmetric(starts: Array, heads: Array, entries: Array) -> bool:
    """Return True if each entry of a matrix with ascending rows has the same bits as its mirror entry.

    Examples
    --------
    >>> is_symmetric(np.array([0, 1, 2]), np.array([1, 0]), np.array([2.5, 2.5]))
    True
    """
    starts, heads = (np.ascontiguousarray(v, np.int64) for v in (starts, heads))
    entries, place = np.ascontiguousarray(entries), starts[:-1].copy()
    arguments = pack(_SymmetricWords(len(place), *map(address, (starts, heads, entries, place))))
    _function(f"symmetric_{entries.itemsize}")(arguments, 10 * len(heads))
    return bool(arguments[-1]) and np.array_equal(place, starts[1:])


@functools.cache
def _function(name: str) -> Function:
    """A function, compiled or from the cache."""
    return compile_library((name,), host(), lambda: link([_transpose() if name == "transpose" else _symmetric(name)])).function(name)


def _transpose() -> Emitter:
    """``transpose(args)``."""
    em, args = Emitter("transpose", ENTRY), Arguments(_TransposeWords)
    starts, heads, place, tails, numbers = (args.pointer(em, name) for name in _TransposeWords._fields[1:])

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


def _symmetric(name: str) -> Emitter:
    """``symmetric_8(args)`` and so on: rows and columns are gone through side by side, up to the first entry that is not there."""
    em, args = Emitter(name, ENTRY), Arguments(_SymmetricWords)
    starts, heads, entries, place = (args.pointer(em, word) for word in _SymmetricWords._fields[1:-1])
    n, size = args.load(em, "n"), int(name.rpartition("_")[2])
    last = em.sub(em.load("i64", em.at("i64", starts, n), 8), 1)

    def row(u: str, _: list[str]) -> None:
        def entry(e: str, _: list[str]) -> None:
            there = em.at("i64", place, em.load("i64", em.at("i64", heads, e), 8))
            at = em.load("i64", there, 8)
            em.store("i64", str(em.add(at, 1)), there, 8)
            opposite = em.smin(at, last)  # beyond the end of a row it is another one's, which the ends of all rows tell at last
            em.returning(em.let(f"icmp ne i64 {em.load('i64', em.at('i64', heads, opposite), 8)}, {u}"))
            here, back = (em.load(f"i{8 * size}", em.at(f"i{8 * size}", entries, i), size) for i in (e, opposite))
            em.returning(em.let(f"icmp ne i{8 * size} {here}, {back}"))

        first, end = (em.load("i64", em.at("i64", starts, i), 8) for i in (u, em.add(u, 1)))
        em.loop(first, end, 1, entry)

    em.loop(0, n, 1, row)
    em.store("i64", "1", args.place(em, "symmetric"), 8)
    em.line("ret void")
    return em
