"""Sparse patterns in compressed rows, as compiled loops over int64: transpose, symmetry, elimination tree, postorder and row subtrees.

``transpose`` is a counting sort. ``tree`` finds each vertex's parent in the elimination tree of a symmetric pattern, with path compression
(Liu, 1990). Vertices are eliminated in the order of their numbers, and the parent is the next vertex in the factor's column. ``postorder``
numbers a tree so that each subtree has consecutive numbers, the root's the last. ``row_subtrees`` walks up to i from the entries of row i
left of the diagonal. The nodes on the way are the factor's columns with an entry in row i. The walk counts these entries, or lists them in
ascending order (Davis, Direct methods for sparse linear systems, 2006, ch. 4).
"""

from __future__ import annotations

import functools
from collections import namedtuple
from typing import Any

import numpy as np

from semiring.arrays.overlap import address
from semiring.kernels.cpu.arguments import pack
from semiring.kernels.cpu.body import Body
from semiring.kernels.cpu.compiler import Function, compile_library, link
from semiring.kernels.cpu.emitter import Emitter
from semiring.kernels.hardware import host

__all__ = ["elimination_tree", "is_symmetric", "postorder", "row_subtrees", "transposition"]

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
    _function(f"symmetric_{entries.itemsize}")(arguments, 10 * len(heads))
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


@functools.cache
def _function(name: str) -> Function:
    if name.startswith("symmetric"):
        return compile_library((name,), host(), lambda: link([_symmetric(name)])).function(name)
    library = compile_library(("patterns",), host(), lambda: link([_transpose(), _tree(), _postorder(), _row_subtrees()]))
    return library.function(name)


def _body(name: str, words: Any) -> Body:
    return Body(name, words, "n", **dict.fromkeys(words._fields, np.int64))


def _transpose() -> Emitter:
    b = _body("transpose", _TransposeWords)
    em = b.em

    def row(u: str, _: list[str]) -> None:
        def entry(e: str, _: list[str]) -> None:
            v = b.get("heads", e)
            at = b.get("place", v)
            b.put("tails", at, u)
            b.put("entries", at, e)
            b.put("place", v, em.add(at, 1))

        em.loop(b.get("starts", u), b.get("starts", em.add(u, 1)), 1, entry)

    em.loop(0, b["n"], 1, row)
    return b.done()


def _symmetric(name: str) -> Emitter:
    """Emit a comparison of rows with columns, side by side, up to the first entry without its mirror image."""
    bits = f"u{name.rpartition('_')[2]}"
    b = Body(name, _SymmetricWords, "n symmetric", **dict.fromkeys(("starts", "heads", "place"), np.int64), entries=bits)
    em = b.em
    last = em.sub(b.get("starts", b["n"]), 1)

    def row(u: str, _: list[str]) -> None:
        def entry(e: str, _: list[str]) -> None:
            v = b.get("heads", e)
            at = b.get("place", v)
            b.put("place", v, em.add(at, 1))
            opposite = em.smin(at, last)  # beyond the end of a row is another row's entry; the final check of `place` finds that
            em.returning(b.is_("ne", b.get("heads", opposite), u))
            here, back = b.get("entries", e), b.get("entries", opposite)
            em.returning(em.let(f"icmp ne i{8 * np.dtype(bits).itemsize} {here}, {back}"))

        em.loop(b.get("starts", u), b.get("starts", em.add(u, 1)), 1, entry)

    em.loop(0, b["n"], 1, row)
    em.store("i64", "1", b.arguments.place(em, "symmetric"), 8)
    return b.done()


def _tree() -> Emitter:
    b = _body("tree", _TreeWords)
    em = b.em

    def vertex(k: str, _: list[str]) -> None:
        def entry(e: str, _: list[str]) -> None:
            def step(values: list[str]) -> list[str]:
                (i,) = values
                above = b.get("ancestor", i)
                b.put("ancestor", i, k)
                em.branch(b.is_("eq", above, b["n"]), lambda: b.put("parent", i, k))
                return [above]

            # Ancestors found so far are below k; only k itself and n (none yet) end the walk.
            em.repeat([("i64", b.get("heads", e))], lambda values: b.is_("slt", values[0], k), step)

        em.loop(b.get("starts", k), b.get("starts", em.add(k, 1)), 1, entry)

    em.loop(0, b["n"], 1, vertex)
    return b.done()


def _postorder() -> Emitter:
    """Emit the sizes of subtrees from the leaves up, then their places from the roots down, the last child first."""
    b = _body("postorder", _OrderWords)
    em, n = b.em, b["n"]

    def grow(v: str, _: list[str]) -> None:
        above = b.get("parent", v)
        b.put("size", above, em.add(b.get("size", above), b.get("size", v)))

    def put(turn: str, _: list[str]) -> None:
        # While a subtree is placed before its root, the root's place is counted down by the subtree's size; `restore` adds that again.
        v = str(em.sub(em.sub(n, turn), 1))
        above = b.get("parent", v)
        end = em.sub(b.get("place", above), 1)
        b.put("place", above, em.sub(b.get("place", above), b.get("size", v)))
        b.put("place", v, end)

    def restore(v: str, _: list[str]) -> None:
        b.put("place", v, em.add(b.get("place", v), em.sub(b.get("size", v), 1)))

    for step in (grow, put, restore):
        em.loop(0, n, 1, step)
    return b.done()


def _row_subtrees() -> Emitter:
    b = _body("row_subtrees", _SubtreeWords)
    em = b.em
    listed = b.is_("ne", em.let(f"ptrtoint ptr {b['rows']} to i64"), 0)

    def row(i: str, _: list[str]) -> None:
        b.put("mark", b.get("node", i), i)

        def entry(e: str, _: list[str]) -> None:
            j = b.get("heads", e)

            def step(values: list[str]) -> list[str]:
                (s,) = values
                b.put("mark", s, i)
                here = b.get("place", s)
                b.put("place", s, em.add(here, 1))
                em.branch(listed, lambda: b.put("rows", here, i))
                return [b.get("parent", s)]

            def walk() -> None:
                em.repeat([("i64", b.get("node", j))], lambda values: b.is_("ne", b.get("mark", values[0]), i), step)

            em.branch(b.is_("slt", j, i), walk)

        em.loop(b.get("starts", i), b.get("starts", em.add(i, 1)), 1, entry)

    em.loop(0, b["n"], 1, row)
    return b.done()
