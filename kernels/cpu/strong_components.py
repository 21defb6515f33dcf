"""Strongly connected components of a sparse graph, and which of them reach which, as compiled loops over integers.

``components`` is Tarjan's algorithm (1972) with a stack of its own in the place of recursion. It finishes a component after all those that
it reaches, so that in the order of their numbers edges lead down. ``unite`` follows that order: what a component reaches is itself and what
those reach that its edges lead to, unions of rows of bits, of which those that are part of the row already are left out.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy as np

from semiring.arrays.overlap import address
from semiring.kernels.cpu.arguments import Arguments, pack
from semiring.kernels.cpu.compiler import Function, compile_library, link
from semiring.kernels.cpu.emitter import ENTRY, Emitter
from semiring.kernels.hardware import host

__all__ = ["reached_components", "strong_components"]

Array = np.ndarray[Any, Any]


class _ComponentWords(NamedTuple):
    """The arguments of ``components``: a graph, and arrays of n vertices. `found` and `component` are −1 at first, `place` is `starts`."""

    n: int
    starts: int
    heads: int
    found: int
    low: int
    component: int
    place: int
    open: int
    path: int
    components: int = 0


class _UniteWords(NamedTuple):
    """Those of ``unite``: the vertices in the order of their components, where those of each begin, and rows of words, which are 0."""

    components: int
    starts: int
    heads: int
    component: int
    order: int
    begins: int
    rows: int
    words: int


def strong_components(starts: Array, heads: Array) -> tuple[int, Array]:
    """How many strongly connected components a graph has, and the number of each vertex's; edges lead to the same or lower ones. O(n + m).

    Examples
    --------
    >>> strong_components(np.array([0, 1, 3, 3]), np.array([1, 0, 2]))  # 0 → 1, 1 → 0, 1 → 2
    (2, array([1, 1, 0]))
    """
    starts, heads = (np.ascontiguousarray(v, np.int64) for v in (starts, heads))
    n = len(starts) - 1
    found, component = np.full((2, n), -1, np.int64)
    low, waiting, path = np.empty((3, n), np.int64)
    place = starts[:-1].copy()
    arguments = pack(_ComponentWords(n, *map(address, (starts, heads, found, low, component, place, waiting, path))))
    _function("components")(arguments, 20 * (n + len(heads)))
    return arguments[-1], component


def reached_components(starts: Array, heads: Array, count: int, component: Array) -> Array:
    """A row of bits for each component, in 64-bit words: itself, and the components that it reaches. O(m · count / 64) at most."""
    starts, heads = (np.ascontiguousarray(v, np.int64) for v in (starts, heads))
    order = np.argsort(component, kind="stable")
    begins = np.zeros(count + 1, np.int64)
    np.cumsum(np.bincount(component, minlength=count), out=begins[1:])
    words = -(-count // 64)
    rows = np.zeros((count, words), np.uint64)
    given = [count, *map(address, (starts, heads, component, order, begins, rows)), words]
    arguments = pack(_UniteWords(*given))
    _function("unite")(arguments, rows.size + len(heads) * words / 4)
    return rows


@functools.cache
def _function(name: str) -> Function:
    """A function, compiled or from the cache."""
    return compile_library(("strong_components",), host(), lambda: link([_components(), _unite()])).function(name)


def _components() -> Emitter:
    """``components(args)``."""
    em, args = Emitter("components", ENTRY), Arguments(_ComponentWords)
    n = args.load(em, "n")
    starts, heads, found, low, component, place, waiting, path = (args.pointer(em, name) for name in _ComponentWords._fields[1:-1])
    visited, opened, depth, count = (em.variable(0) for _ in range(4))

    def get(array: str, i: str | int) -> str:
        return em.load("i64", em.at("i64", array, i), 8)

    def put(array: str, i: str | int, value: str | int) -> None:
        em.store("i64", str(value), em.at("i64", array, i), 8)

    def step(variable: str, by: int) -> str:
        """Count a variable up or down: what it was before."""
        before = em.load("i64", variable, 8)
        em.store("i64", str(em.add(before, by)), variable, 8)
        return before

    def lower(v: str, other: str) -> None:
        put(low, v, em.smin(get(low, v), other))

    def visit(v: str) -> None:
        number = step(visited, 1)
        put(found, v, number)
        put(low, v, number)
        put(waiting, step(opened, 1), v)
        put(path, step(depth, 1), v)

    def close(u: str) -> None:
        """All that was opened since u is a component."""
        number = step(count, 1)

        def take(_: list[str]) -> list[str]:
            v = get(waiting, str(em.sub(step(opened, -1), 1)))
            put(component, v, number)
            return [v]

        em.repeat([("i64", take([])[0])], lambda values: em.let(f"icmp ne i64 {values[0]}, {u}"), take)

    def turn(_: list[str]) -> list[str]:
        here = str(em.sub(em.load("i64", depth, 8), 1))
        u = get(path, here)
        e = get(place, u)

        def edge() -> None:
            put(place, u, em.add(e, 1))
            v = get(heads, e)
            em.branch(
                em.let(f"icmp slt i64 {get(found, v)}, 0"),
                lambda: visit(v),
                lambda: em.branch(em.let(f"icmp slt i64 {get(component, v)}, 0"), lambda: lower(u, get(found, v))),
            )

        def leave() -> None:
            em.branch(em.let(f"icmp eq i64 {get(low, u)}, {get(found, u)}"), lambda: close(u))
            step(depth, -1)
            em.branch(em.let(f"icmp sgt i64 {here}, 0"), lambda: lower(get(path, str(em.sub(here, 1))), get(low, u)))

        em.branch(em.let(f"icmp slt i64 {e}, {get(starts, str(em.add(u, 1)))}"), edge, leave)
        return []

    def root(r: str, _: list[str]) -> None:
        def search() -> None:
            visit(r)
            em.repeat([], lambda _: em.let(f"icmp sgt i64 {em.load('i64', depth, 8)}, 0"), turn)

        em.branch(em.let(f"icmp slt i64 {get(found, r)}, 0"), search)

    em.loop(0, n, 1, root)
    em.store("i64", em.load("i64", count, 8), args.place(em, "components"), 8)
    em.line("ret void")
    return em


def _unite() -> Emitter:
    """``unite(args)``."""
    em, args = Emitter("unite", ENTRY), Arguments(_UniteWords)
    count, words = args.load(em, "components"), args.load(em, "words")
    starts, heads, component, order, begins, rows = (args.pointer(em, name) for name in _UniteWords._fields[1:-1])

    def get(array: str, i: str | int) -> str:
        return em.load("i64", em.at("i64", array, i), 8)

    def row(c: str, _: list[str]) -> None:
        here = em.at("i64", rows, em.mul(c, words))

        def bit_of(d: str) -> tuple[str, str]:
            """Where the bit of a component is, and the bit."""
            word = em.at("i64", here, em.let(f"lshr i64 {d}, 6"))
            return word, em.let(f"shl i64 1, {em.let(f'and i64 {d}, 63')}")

        own, bit = bit_of(c)
        em.store("i64", em.let(f"or i64 {em.load('i64', own, 8)}, {bit}"), own, 8)

        def member(i: str, _: list[str]) -> None:
            u = get(order, i)

            def edge(e: str, _: list[str]) -> None:
                d = get(component, get(heads, e))
                word, bit = bit_of(d)
                there = em.let(f"and i64 {em.load('i64', word, 8)}, {bit}")

                def unite() -> None:
                    other = em.at("i64", rows, em.mul(d, words))

                    def word(w: str, _: list[str]) -> None:
                        em.store("i64", em.let(f"or i64 {get(here, w)}, {get(other, w)}"), em.at("i64", here, w), 8)

                    em.loop(0, str(em.add(em.let(f"lshr i64 {d}, 6"), 1)), 1, word)

                em.branch(em.let(f"icmp eq i64 {there}, 0"), unite)

            first, last = get(starts, u), get(starts, str(em.add(u, 1)))
            em.loop(first, last, 1, edge)

        em.loop(get(begins, c), get(begins, str(em.add(c, 1))), 1, member)

    em.loop(0, count, 1, row)
    em.line("ret void")
    return em
