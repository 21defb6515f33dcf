"""Sparse patterns in compressed rows, as compiled loops over int64: orders, trees, strong components, and sets of reached components.

``transpose`` is a counting sort. ``tree`` finds each vertex's parent in the elimination tree of a symmetric pattern, with path compression
(Liu, 1990). Vertices are eliminated in the order of their numbers, and the parent is the next vertex in the factor's column. ``postorder``
numbers a tree so that each subtree has consecutive numbers, the root's the last. ``row_subtrees`` walks up to i from the entries of row i
left of the diagonal. The nodes on the way are the factor's columns with an entry in row i. The walk counts these entries, or lists them in
ascending order (Davis, Direct methods for sparse linear systems, 2006, ch. 4).

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
from semiring.kernels.cpu.arguments import pack
from semiring.kernels.cpu.body import Body, Variable, bit_of, compiled, each_bit
from semiring.kernels.cpu.compiler import Function
from semiring.kernels.cpu.emitter import I64, Emitter

__all__ = [
    "Sets", "elimination_tree", "is_symmetric", "postorder", "reached_components", "row_subtrees", "row_words", "strong_components",
    "transposition",
]  # fmt: skip

Array = np.ndarray[Any, Any]

_TransposeWords = namedtuple("_TransposeWords", "n starts heads place tails entries")
"""The arguments of ``transpose``: a pattern, and the transpose's next place per row, its columns, and the entries' old numbers."""

_SymmetricWords = namedtuple("_SymmetricWords", "n starts heads entries place symmetric", defaults=(0,))
"""The arguments of ``symmetric_8`` and so on, named by the bytes of an entry; `place` moves from the begin of each row to its end."""

_TreeWords = namedtuple("_TreeWords", "n starts heads parent ancestor")
"""The arguments of ``tree``: a pattern in compressed rows, and arrays of n vertices."""

_OrderWords = namedtuple("_OrderWords", "n parent size place")
"""The arguments of ``postorder``; the arrays have a place more, for a root of all roots."""

_SubtreeWords = namedtuple("_SubtreeWords", "n starts heads node parent mark place rows")
"""The arguments of ``row_subtrees``: each vertex's `node`, and each node's parent, mark and next place in `rows` (0: only count)."""

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


def transposition(starts: Array, heads: Array) -> tuple[Array, Array, Array]:
    """Transpose a pattern: return the starts and columns of its rows, and each entry's number in the given pattern. O(n + m).

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
    """Return True if a matrix with ascending rows equals its transpose, bit for bit. O(n + m).

    Examples
    --------
    >>> is_symmetric(np.array([0, 1, 2]), np.array([1, 0]), np.array([2.5, 2.5]))
    True
    """
    starts, heads = (np.ascontiguousarray(v, np.int64) for v in (starts, heads))
    entries, place = np.ascontiguousarray(entries), starts[:-1].copy()
    arguments = pack(_SymmetricWords(len(place), *map(address, (starts, heads, entries, place))))
    _symmetric_function(entries.itemsize)(arguments, 10 * len(heads))
    return bool(arguments[-1]) and np.array_equal(place, starts[1:])


def elimination_tree(starts: Array, heads: Array) -> Array:
    """Return each vertex's parent in the elimination tree of a symmetric pattern in compressed rows; n for a root. O(m log n)."""
    n = len(starts) - 1
    parent, ancestor = np.full(n, n, np.int64), np.full(n, n, np.int64)
    arguments = pack(_TreeWords(n, *map(address, (starts, heads, parent, ancestor))))
    _function("tree")(arguments, 20 * (n + len(heads)))
    return parent


def postorder(parent: Array) -> Array:
    """Return each vertex's number in a postorder of a forest whose parents have larger numbers than children; n is no parent. O(n)."""
    n = len(parent)
    size, place = np.ones(n + 1, np.int64), np.full(n + 1, n, np.int64)
    _function("postorder")(pack(_OrderWords(n, *map(address, (parent, size, place)))), 20 * n)
    return place[:n]


def row_subtrees(starts: Array, heads: Array, node: Array, parent: Array, place: Array, rows: Array | None) -> None:
    """Walk all row subtrees of a pattern in compressed rows, whose vertices belong to nodes of a tree; O(entries of the factor).

    All arrays are int64. `node` is the node of each vertex (consecutive vertices may share one), and `parent` the parent of each node.
    `place` grows by one for each row that a node has outside of itself. `rows`, if given, receives these rows, from `place` on for each
    node.
    """
    mark = np.full(len(parent), -1, np.int64)
    words = len(starts) - 1, *map(address, (starts, heads, node, parent, mark, place)), 0 if rows is None else address(rows)
    steps = len(starts) + len(heads) + (0 if rows is None else len(rows))
    _function("row_subtrees")(pack(_SubtreeWords._make(words)), 20 * steps)


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
    _component_function("components")(arguments, 20 * (n + len(heads)))
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
        _component_function("unite")(words, len(heads) + size)
    return Sets(pool, places, lengths, reached)


def _body(name: str, words: Any) -> Body:
    return Body(name, words, "n", **dict.fromkeys(words._fields, np.int64))


def _transpose() -> Emitter:
    b = _body("transpose", _TransposeWords)
    em = b.em
    with em.each(0, b["n"]) as u, em.each(*b.row(u)) as e:
        v = b.get("heads", e)
        at = b.get("place", v)
        b.put("tails", at, u)
        b.put("entries", at, e)
        b.put("place", v, em.add(at, 1))
    return b.done()


@functools.cache
def _symmetric_function(size: int) -> Function:
    return compiled(f"symmetric_{size}", lambda: _symmetric(size))(f"symmetric_{size}")


def _symmetric(size: int) -> Emitter:
    """Emit a comparison of rows with columns, side by side, up to the first entry without its mirror image."""
    arrays = dict.fromkeys(("starts", "heads", "place"), np.int64)
    b = Body(f"symmetric_{size}", _SymmetricWords, "n symmetric", **arrays, entries=f"u{size}")
    em = b.em
    last = em.sub(b.get("starts", b["n"]), 1)
    with em.each(0, b["n"]) as u, em.each(*b.row(u)) as e:
        v = b.get("heads", e)
        at = b.get("place", v)
        b.put("place", v, em.add(at, 1))
        opposite = em.smin(at, last)  # beyond the end of a row is another row's entry; the final check of `place` finds that
        em.returning(b.is_("ne", b.get("heads", opposite), u))
        here, back = b.get("entries", e), b.get("entries", opposite)
        em.returning(em.let(f"icmp ne i{8 * size} {here}, {back}"))
    b.answer("symmetric", "1")
    return b.done()


def _tree() -> Emitter:
    b = _body("tree", _TreeWords)
    em = b.em
    with (
        em.each(0, b["n"]) as k,
        em.each(*b.row(k)) as e,
        # Ancestors found so far are below k; only k itself and n (none yet) end the walk.
        em.turns([("i64", b.get("heads", e))], lambda values: b.is_("slt", values[0], k)) as ((i,), new),
    ):
        above = b.get("ancestor", i)
        b.put("ancestor", i, k)
        with em.when(b.is_("eq", above, b["n"])):
            b.put("parent", i, k)
        new.append(above)
    return b.done()


def _postorder() -> Emitter:
    """Emit the sizes of subtrees from the leaves up, then their places from the roots down, the last child first."""
    b = _body("postorder", _OrderWords)
    em, n = b.em, b["n"]
    with em.each(0, n) as v:
        above = b.get("parent", v)
        b.put("size", above, em.add(b.get("size", above), b.get("size", v)))
    with em.each(0, n) as turn:
        # While a subtree is placed before its root, the root's place is counted down by the subtree's size, added again below.
        v = str(em.sub(em.sub(n, turn), 1))
        above = b.get("parent", v)
        end = em.sub(b.get("place", above), 1)
        b.put("place", above, em.sub(b.get("place", above), b.get("size", v)))
        b.put("place", v, end)
    with em.each(0, n) as v:
        b.put("place", v, em.add(b.get("place", v), em.sub(b.get("size", v), 1)))
    return b.done()


def _row_subtrees() -> Emitter:
    b = _body("row_subtrees", _SubtreeWords)
    em, listed = b.em, b.is_given("rows")
    with em.each(0, b["n"]) as i:
        b.put("mark", b.get("node", i), i)
        with em.each(*b.row(i)) as e:
            j = b.get("heads", e)
            with (
                em.when(b.is_("slt", j, i)),
                em.turns([("i64", b.get("node", j))], lambda values: b.is_("ne", b.get("mark", values[0]), i)) as ((s,), new),
            ):
                b.put("mark", s, i)
                here = b.get("place", s)
                b.put("place", s, em.add(here, 1))
                with em.when(listed):
                    b.put("rows", here, i)
                new.append(b.get("parent", s))
    return b.done()


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

    def take(number: str) -> str:
        """Put the last opened vertex into a component."""
        v = get("open", em.sub(step(opened, -1), 1))
        put("component", v, number)
        return v

    with em.each(0, b["n"]) as r, em.when(b.is_("slt", get("found", r), 0)):
        visit(r)
        with em.turns([], lambda _: b.is_("sgt", depth.get(), 0)):
            here = str(em.sub(depth.get(), 1))
            u = get("path", here)
            e = get("place", u)
            with em.when(b.is_("slt", e, get("starts", em.add(u, 1)))):
                put("place", u, em.add(e, 1))
                v = get("heads", e)
                with em.when(b.is_("slt", get("found", v), 0)):
                    visit(v)
                with em.otherwise(), em.when(b.is_("slt", get("component", v), 0)):
                    lower(u, get("found", v))
            with em.otherwise():
                with em.when(b.is_("eq", get("low", u), get("found", u))):  # all vertices opened since u are a component
                    number = step(count, 1)
                    em.repeat([("i64", take(number))], lambda values: b.is_("ne", values[0], u), lambda _: [take(number)])
                depth.add(-1)
                with em.when(b.is_("sgt", here, 0)):
                    lower(get("path", em.sub(here, 1)), get("low", u))
    b.answer("components", count.get())
    return b.done()


def _unite() -> Emitter:
    wide, narrow = (dict.fromkeys(names, dtype) for names, dtype in ((_UniteWords._fields[4:], np.int64), (("listed", "pool"), np.int32)))
    b = Body("unite", _UniteWords, "components first used room", **wide | narrow)
    em, get, put = b.em, b.get, b.put
    size, mixed, total, written = (Variable(em) for _ in range(4))

    def words_of(c: str) -> str:
        """Return the 64-bit words of a component's row."""
        return str(em.add(em.let(f"lshr i64 {c}, 6"), 1))

    def is_new(d: str) -> str:
        word, bit = bit_of(em, d)
        return b.is_("eq", em.let(f"and i64 {get('bits', word)}, {bit}"), 0)

    def take(d: str) -> None:
        word, bit = bit_of(em, d)
        put("bits", word, em.let(f"or i64 {get('bits', word)}, {bit}"))
        put("listed", size.get(), d)
        size.add(1)

    def is_row(c: str, length: str) -> str:
        return em.let(f"icmp sgt i64 {length}, {em.mul(words_of(c), 2)}")

    def unite(d: str) -> None:
        place, length = get("places", d), get("lengths", d)
        with em.when(is_row(d, length)):
            begin = em.at("i32", b["pool"], place)
            mixed.set(1)
            with em.each(0, words_of(d)) as w:
                here, there = get("bits", w), em.get(I64, begin, w)
                new = em.let(f"and i64 {there}, {em.let(f'xor i64 {here}, -1')}")
                size.add(em.call("ctpop.i64", "i64", ("i64", new)))
                put("bits", w, em.let(f"or i64 {here}, {there}"))
        with em.otherwise(), em.each(0, length) as j:
            x = get("pool", em.add(place, j))
            with em.when(is_new(x)):
                take(x)

    def keep_number(place: str, d: str) -> None:
        put("pool", em.add(place, written.get()), d)
        written.add(1)
        total.add(get("sizes", d))

    def keep_row(c: str, place: str) -> None:
        """Write the set as a row of bits, and clear the bits."""
        begin = em.at("i32", b["pool"], place)
        with em.each(0, words_of(c)) as w:
            found = get("bits", w)
            em.put(I64, found, begin, w)
            put("bits", w, 0)
            total.add(em.call("ctpop.i64", "i64", ("i64", found)))
            base = em.let(f"shl i64 {w}, 6")
            with each_bit(em, em.let(f"and i64 {found}, {get('several', w)}")) as bit:
                total.add(em.sub(get("sizes", em.add(base, bit)), 1))
        written.set(em.mul(words_of(c), 2))

    def keep_numbers(c: str, place: str) -> None:
        """Write the set as numbers, from the bits of rows or else from the list, and clear the bits."""
        with em.when(em.let(f"icmp ne i64 {mixed.get()}, 0")), em.each(0, words_of(c)) as w:
            base = em.let(f"shl i64 {w}, 6")
            with each_bit(em, get("bits", w)) as bit:
                keep_number(place, str(em.add(base, bit)))
            put("bits", w, 0)
        with em.otherwise(), em.each(0, size.get()) as j:
            d = get("listed", j)
            keep_number(place, d)
            put("bits", bit_of(em, d)[0], 0)

    def more(values: list[str]) -> str:
        """Test if a component is left, and room for its row of bits."""
        c, place = values
        need = em.add(place, em.mul(words_of(c), 2))
        return b.both(b.is_("slt", c, b["components"]), b.is_("sle", need, b["room"]))

    with em.turns([("i64", b["first"]), ("i64", b["used"])], more) as (ends, new):
        c, place = ends
        for variable in (size, mixed, total, written):
            variable.set(0)
        take(c)
        with em.each(get("begins", c), get("begins", em.add(c, 1))) as i, em.each(*b.row(get("order", i))) as e:
            d = get("component", get("heads", e))
            with em.when(is_new(d)):
                unite(d)
        put("places", c, place)
        put("lengths", c, size.get())
        with em.when(is_row(c, size.get())):
            keep_row(c, place)
        with em.otherwise():
            keep_numbers(c, place)
        put("reached", c, total.get())
        new += [str(em.add(c, 1)), str(em.add(place, em.round_up(written.get(), 2)))]
    for name, value in zip(("first", "used"), ends, strict=True):
        b.answer(name, value)
    return b.done()


_function = compiled("patterns", _transpose, _tree, _postorder, _row_subtrees)
_component_function = compiled("strong_components", _components, _unite)
