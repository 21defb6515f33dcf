"""Strongly connected components of a sparse graph, and the set of components reached from each component, as compiled integer loops.

``components`` is Tarjan's algorithm (1972) with a stack instead of recursion. Components are finished in reverse topological order, so
edges lead to the same or lower numbers. In this order, ``unite`` unites the set of a component with the set of each head of its edges,
unless the head is in the set already. A set is a list of numbers or a row of bits, whichever takes less memory.
"""

from __future__ import annotations

import functools
from collections import namedtuple
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from semiring.arrays.overlap import address
from semiring.kernels.cpu.arguments import Arguments, pack
from semiring.kernels.cpu.body import Body, Variable
from semiring.kernels.cpu.compiler import Function, compile_library, link
from semiring.kernels.cpu.emitter import ENTRY, Emitter
from semiring.kernels.hardware import host

__all__ = ["Sets", "reached_components", "row_words", "strong_components"]

Array = np.ndarray[Any, Any]

_ComponentWords = namedtuple("_ComponentWords", "n starts heads found low component place open path components", defaults=(0,))
"""The arguments of ``components``: a graph, and arrays of n vertices. `found` and `component` are −1 at first, `place` is `starts`."""

_UniteWords = namedtuple(
    "_UniteWords", "components first used room starts heads component order begins sizes several bits listed pool places lengths reached"
)
"""The arguments of ``unite``.

`order` has the vertices sorted by component; `begins` and `sizes` have each component's first place and number of vertices. `several` has
a bit for each component of more than one vertex. The other arrays belong to `Sets`. `bits` has a zero bit for each component, and `listed`
room for as many numbers. The function continues from component `first` and place `used` while `pool` has `room`, and updates both."""

_FIRST, _USED, _ROOM, _POOL = map(_UniteWords._fields.index, ("first", "used", "room", "pool"))


class Sets(NamedTuple):
    """The set of reached components for each component, which contains the component itself.

    The int32 `pool` has all sets, each from an even place on (`places`): numbers in any order, or ``row_words(c)`` words of bits. `lengths`
    has the number of components in each set; a set of more components than ``row_words(c)`` is a row of bits. `reached` has the number of
    vertices of all components in each set.
    """

    pool: Array
    places: Array
    lengths: Array
    reached: Array


def row_words(c: Any) -> Any:
    """Return the 32-bit words of a row of bits for component c (or several): two for each 64 components up to c."""
    return 2 * ((c >> 6) + 1)


def strong_components(starts: Array, heads: Array) -> tuple[int, Array]:
    """Return the number of strongly connected components, and each vertex's component; edges lead to the same or lower numbers. O(n + m).

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


def reached_components(starts: Array, heads: Array, count: int, component: Array, require: Callable[[int], None]) -> Sets:
    """Return the set of components reached from each component. O(m · count / 32) at most, in the memory of the sets.

    For `count` and `component` see `strong_components`. `require` raises an error if the sets' bytes do not fit the memory.
    """
    starts, heads = (np.ascontiguousarray(v, np.int64) for v in (starts, heads))
    order = np.argsort(component, kind="stable")
    sizes = np.bincount(component, minlength=count)
    begins = np.zeros(count + 1, np.int64)
    np.cumsum(sizes, out=begins[1:])
    several = np.packbits(np.pad(sizes > 1, (0, -count % 64)), bitorder="little").view(np.uint64)
    bits, listed = np.zeros_like(several), np.empty(count, np.int32)
    places, lengths, reached = np.empty((3, count), np.int64)
    most, more = int(row_words(np.arange(count)).sum()), 4 * count + int(row_words(count))
    pool = np.empty(0, np.int32)
    fixed = map(address, (starts, heads, component, order, begins, sizes, several, bits, listed))
    made = map(address, (places, lengths, reached))
    words = pack(_UniteWords._make((count, 0, 0, 0, *fixed, 0, *made)))
    while words[_FIRST] < count:
        size = min(most, 2 * len(pool) + more)
        require(4 * size)
        pool = np.concatenate([pool[: words[_USED]], np.empty(size - words[_USED], np.int32)])
        words[_ROOM], words[_POOL] = size, address(pool)
        _function("unite")(words, len(heads) + size)
    return Sets(pool, places, lengths, reached)


@functools.cache
def _function(name: str) -> Function:
    return compile_library(("strong_components",), host(), lambda: link([_components(), _unite()])).function(name)


def _components() -> Emitter:
    b = Body("components", _ComponentWords, "n components", **dict.fromkeys(_ComponentWords._fields[1:-1], np.int64))
    em, get, put = b.em, b.get, b.put
    visited, opened, depth, count = (Variable(em) for _ in range(4))

    def step(variable: Variable, by: int) -> str:
        """Change a variable and return its old value."""
        before = variable.get()
        variable.set(em.add(before, by))
        return before

    def lower(v: str, other: str) -> None:
        put("low", v, em.smin(get("low", v), other))

    def visit(v: str) -> None:
        number = step(visited, 1)
        put("found", v, number)
        put("low", v, number)
        put("open", step(opened, 1), v)
        put("path", step(depth, 1), v)

    def close(u: str) -> None:
        """Make a component of all vertices opened since u."""
        number = step(count, 1)

        def take(_: list[str]) -> list[str]:
            v = get("open", em.sub(step(opened, -1), 1))
            put("component", v, number)
            return [v]

        em.repeat([("i64", take([])[0])], lambda values: b.is_("ne", values[0], u), take)

    def turn(_: list[str]) -> list[str]:
        here = str(em.sub(depth.get(), 1))
        u = get("path", here)
        e = get("place", u)

        def edge() -> None:
            put("place", u, em.add(e, 1))
            v = get("heads", e)

            def known() -> None:
                em.branch(b.is_("slt", get("component", v), 0), lambda: lower(u, get("found", v)))

            em.branch(b.is_("slt", get("found", v), 0), lambda: visit(v), known)

        def leave() -> None:
            em.branch(b.is_("eq", get("low", u), get("found", u)), lambda: close(u))
            depth.add(-1)
            em.branch(b.is_("sgt", here, 0), lambda: lower(get("path", em.sub(here, 1)), get("low", u)))

        em.branch(b.is_("slt", e, get("starts", em.add(u, 1))), edge, leave)
        return []

    def root(r: str, _: list[str]) -> None:
        def search() -> None:
            visit(r)
            em.repeat([], lambda _: b.is_("sgt", depth.get(), 0), turn)

        em.branch(b.is_("slt", get("found", r), 0), search)

    em.loop(0, b["n"], 1, root)
    em.store("i64", count.get(), b.arguments.place(em, "components"), 8)
    return b.done()


def _unite() -> Emitter:
    em, args = Emitter("unite", ENTRY), Arguments(_UniteWords)
    count, room = (args.load(em, name) for name in ("components", "room"))
    arrays = (args.pointer(em, name) for name in _UniteWords._fields[4:])
    starts, heads, component, order, begins, sizes, several, bits, listed, pool, places, lengths, reached = arrays
    size, mixed, total, written = (Variable(em) for _ in range(4))

    def get(array: str, i: str | int, ir: str = "i64") -> str:
        value = em.load(ir, em.at(ir, array, i), 8 if ir == "i64" else 4)
        return value if ir == "i64" else em.let(f"sext {ir} {value} to i64")

    def put(array: str, i: str | int, value: str | int, ir: str = "i64") -> None:
        value = value if ir == "i64" else em.let(f"trunc i64 {value} to {ir}")
        em.store(ir, str(value), em.at(ir, array, i), 8 if ir == "i64" else 4)

    def words_of(c: str) -> str:
        """Return the 64-bit words of a component's row."""
        return str(em.add(em.let(f"lshr i64 {c}, 6"), 1))

    def place_of(d: str) -> tuple[str, str]:
        """Return the word of a component's bit, and the bit."""
        return em.let(f"lshr i64 {d}, 6"), em.let(f"shl i64 1, {em.let(f'and i64 {d}, 63')}")

    def is_in(d: str) -> str:
        word, bit = place_of(d)
        return em.let(f"icmp ne i64 {em.let(f'and i64 {get(bits, word)}, {bit}')}, 0")

    def take(d: str) -> None:
        word, bit = place_of(d)
        put(bits, word, em.let(f"or i64 {get(bits, word)}, {bit}"))
        put(listed, size.get(), d, "i32")
        size.add(1)

    def is_row(c: str, length: str) -> str:
        return em.let(f"icmp sgt i64 {length}, {em.mul(words_of(c), 2)}")

    def unite(d: str) -> None:
        place, length = get(places, d), get(lengths, d)

        def row() -> None:
            begin = em.at("i32", pool, place)
            mixed.set(1)

            def word(w: str, _: list[str]) -> None:
                here, there = get(bits, w), get(begin, w)
                new = em.let(f"and i64 {there}, {em.let(f'xor i64 {here}, -1')}")
                size.add(em.call("ctpop.i64", "i64", ("i64", new)))
                put(bits, w, em.let(f"or i64 {here}, {there}"))

            em.loop(0, words_of(d), 1, word)

        def numbers() -> None:
            def number(j: str, _: list[str]) -> None:
                x = get(pool, em.add(place, j), "i32")
                em.branch(is_in(x), lambda: None, lambda: take(x))

            em.loop(0, length, 1, number)

        em.branch(is_row(d, length), row, numbers)

    def each_bit(w: str, word: str, body: Callable[[str], None]) -> None:
        """Emit ``body(d)`` for each component of a word of bits."""
        base = em.let(f"shl i64 {w}, 6")

        def turn(values: list[str]) -> list[str]:
            lowest = em.call("cttz.i64", "i64", ("i64", values[0]), ("i1", "true"))
            body(str(em.add(base, lowest)))
            return [em.let(f"and i64 {values[0]}, {em.let(f'sub i64 {values[0]}, 1')}")]

        em.repeat([("i64", word)], lambda values: em.let(f"icmp ne i64 {values[0]}, 0"), turn)

    def keep_row(c: str, place: str) -> None:
        """Write the set as a row of bits, and clear the bits."""
        begin = em.at("i32", pool, place)

        def word(w: str, _: list[str]) -> None:
            found = get(bits, w)
            put(begin, w, found)
            put(bits, w, 0)
            total.add(em.call("ctpop.i64", "i64", ("i64", found)))
            each_bit(w, em.let(f"and i64 {found}, {get(several, w)}"), lambda d: total.add(em.sub(get(sizes, d), 1)))

        em.loop(0, words_of(c), 1, word)
        written.set(em.mul(words_of(c), 2))

    def keep_number(place: str, d: str) -> None:
        put(pool, em.add(place, written.get()), d, "i32")
        written.add(1)
        total.add(get(sizes, d))

    def keep_bits(c: str, place: str) -> None:
        """Write the set as numbers from the bits, and clear the bits."""

        def word(w: str, _: list[str]) -> None:
            each_bit(w, get(bits, w), lambda d: keep_number(place, d))
            put(bits, w, 0)

        em.loop(0, words_of(c), 1, word)

    def keep_numbers(place: str) -> None:
        """Write the set as the listed numbers, and clear their bits."""

        def number(j: str, _: list[str]) -> None:
            d = get(listed, j, "i32")
            keep_number(place, d)
            put(bits, place_of(d)[0], 0)

        em.loop(0, size.get(), 1, number)

    def turn(values: list[str]) -> list[str]:
        c, place = values
        for variable in (size, mixed, total, written):
            variable.set(0)
        take(c)

        def member(i: str, _: list[str]) -> None:
            u = get(order, i)

            def edge(e: str, _: list[str]) -> None:
                d = get(component, get(heads, e))
                em.branch(is_in(d), lambda: None, lambda: unite(d))

            em.loop(get(starts, u), get(starts, em.add(u, 1)), 1, edge)

        em.loop(get(begins, c), get(begins, em.add(c, 1)), 1, member)
        put(places, c, place)
        put(lengths, c, size.get())
        by_bits = em.let(f"icmp ne i64 {mixed.get()}, 0")
        em.branch(
            is_row(c, size.get()),
            lambda: keep_row(c, place),
            lambda: em.branch(by_bits, lambda: keep_bits(c, place), lambda: keep_numbers(place)),
        )
        put(reached, c, total.get())
        return [str(em.add(c, 1)), str(em.add(place, em.round_up(written.get(), 2)))]

    def more(values: list[str]) -> str:
        """Test if a component is left, and room for its row of bits."""
        c, place = values
        need = em.add(place, em.mul(words_of(c), 2))
        return em.let(f"and i1 {em.let(f'icmp slt i64 {c}, {count}')}, {em.let(f'icmp sle i64 {need}, {room}')}")

    carried = [("i64", args.load(em, "first")), ("i64", args.load(em, "used"))]
    for name, value in zip(("first", "used"), em.repeat(carried, more, turn), strict=True):
        em.store("i64", value, args.place(em, name), 8)
    return em.done()
