"""The elimination tree of a sparse symmetric pattern, its postorder, and its row subtrees, as compiled loops over integers.

Vertices are eliminated in the order of their numbers. ``tree`` finds the parent of each vertex, the next vertex of its column of the
factor, by path compression (Liu, 1990). ``postorder`` numbers a tree so that each subtree has consecutive numbers, with the root last.
``row_subtrees`` walks, for each row i, from the entries left of the diagonal up to i. The columns of the visited nodes have an entry in row
i; the walk counts or lists these entries (Davis, Direct methods for sparse linear systems, 2006, ch. 4). All arrays are int64.
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

__all__ = ["elimination_tree", "postorder", "row_subtrees"]

Array = np.ndarray[Any, Any]


class _TreeWords(NamedTuple):
    """The arguments of ``tree``: a pattern in compressed rows, and arrays of n vertices."""

    n: int
    starts: int
    heads: int
    parent: int
    ancestor: int


class _OrderWords(NamedTuple):
    """Arguments of ``postorder``; the arrays have another place, for a root of all roots."""

    n: int
    parent: int
    size: int
    place: int


class _SubtreeWords(NamedTuple):
    """Arguments of ``row_subtrees``: the `node` of each vertex; for each node the parent, a mark, and the place of its next row.

    `rows` is 0 if rows are only counted.
    """

    n: int
    starts: int
    heads: int
    node: int
    parent: int
    mark: int
    place: int
    rows: int


def elimination_tree(starts: Array, heads: Array) -> Array:
    """The parent of each vertex in the elimination tree of a symmetric pattern in compressed rows; n for a root. O(m log n)."""
    n = len(starts) - 1
    parent, ancestor = np.full(n, n, np.int64), np.full(n, n, np.int64)
    _call("tree", _TreeWords(n, *map(address, (starts, heads, parent, ancestor))), n + len(heads))
    return parent


def postorder(parent: Array) -> Array:
    """The number of each vertex of a forest in postorder; parents have larger numbers than children, and n is that of none. O(n)."""
    n = len(parent)
    size, place = np.ones(n + 1, np.int64), np.full(n + 1, n, np.int64)
    _call("postorder", _OrderWords(n, *map(address, (parent, size, place))), n)
    return place[:n]


def row_subtrees(starts: Array, heads: Array, node: Array, parent: Array, place: Array, rows: Array | None) -> None:
    """Walk all row subtrees of a pattern, whose vertices belong to nodes of a tree; O(entries of the factor).

    Parameters
    ----------
    starts, heads : int64 arrays
        The pattern in compressed rows.
    node : int64 array
        The node of each vertex; consecutive vertices may share a node.
    parent : int64 array
        The parent of each node.
    place : int64 array
        Increased by one for each row of a node outside the node.
    rows : int64 array, optional
        Output: these rows, from the `place` of each node on.
    """
    mark = np.full(len(parent), -1, np.int64)
    words = len(starts) - 1, *map(address, (starts, heads, node, parent, mark, place)), 0 if rows is None else address(rows)
    _call("row_subtrees", _SubtreeWords._make(words), len(starts) + len(heads) + (0 if rows is None else len(rows)))


def _call(name: str, words: tuple[int, ...], steps: int) -> None:
    """Call one of the functions, which goes through about so many vertices and edges."""
    packed = pack(words)
    _function(name)(packed, 20 * steps)


@functools.cache
def _function(name: str) -> Function:
    """A function, compiled or from the cache."""
    target = host()
    library = compile_library(("elimination_tree",), target, lambda: link([_tree(), _postorder(), _row_subtrees()]))
    return library.function(name)


def _word(em: Emitter, array: str, i: str | int) -> str:
    """An element of an array of int64."""
    return em.load("i64", em.at("i64", array, i), 8)


def _put(em: Emitter, array: str, i: str | int, value: str | int) -> None:
    """Write it."""
    em.store("i64", str(value), em.at("i64", array, i), 8)


def _tree() -> Emitter:
    """``tree(args)``."""
    em, args = Emitter("tree", ENTRY), Arguments(_TreeWords)
    n = args.load(em, "n")
    starts, heads, parent, ancestor = (args.pointer(em, name) for name in _TreeWords._fields[1:])

    def vertex(k: str, _: list[str]) -> None:
        def entry(e: str, _: list[str]) -> None:
            def step(values: list[str]) -> list[str]:
                (i,) = values
                above = _word(em, ancestor, i)
                _put(em, ancestor, i, k)
                em.branch(em.let(f"icmp eq i64 {above}, {n}"), lambda: _put(em, parent, i, k))
                return [above]

            # k is above all entries left in its row, and above their ancestors.
            em.repeat([("i64", _word(em, heads, e))], lambda values: em.let(f"icmp slt i64 {values[0]}, {k}"), step)

        em.loop(_word(em, starts, k), _word(em, starts, em.add(k, 1)), 1, entry)

    em.loop(0, n, 1, vertex)
    em.line("ret void")
    return em


def _postorder() -> Emitter:
    """``postorder(args)``: the sizes of subtrees from the leaves up, then their places from the roots down, the last child first."""
    em, args = Emitter("postorder", ENTRY), Arguments(_OrderWords)
    n = args.load(em, "n")
    parent, size, place = (args.pointer(em, name) for name in _OrderWords._fields[1:])

    def grow(v: str, _: list[str]) -> None:
        above = _word(em, parent, v)
        _put(em, size, above, em.add(_word(em, size, above), _word(em, size, v)))

    def put(turn: str, _: list[str]) -> None:
        # The place of a vertex counts down while its subtree is placed before; the size of the subtree then corrects the place.
        v = str(em.sub(em.sub(n, turn), 1))
        above = _word(em, parent, v)
        end = em.sub(_word(em, place, above), 1)
        _put(em, place, above, em.sub(_word(em, place, above), _word(em, size, v)))
        _put(em, place, v, end)

    def restore(v: str, _: list[str]) -> None:
        _put(em, place, v, em.add(_word(em, place, v), em.sub(_word(em, size, v), 1)))

    em.loop(0, n, 1, grow)
    em.loop(0, n, 1, put)
    em.loop(0, n, 1, restore)
    em.line("ret void")
    return em


def _row_subtrees() -> Emitter:
    """``row_subtrees(args)``."""
    em, args = Emitter("row_subtrees", ENTRY), Arguments(_SubtreeWords)
    n, listed = args.load(em, "n"), em.let(f"icmp ne i64 {args.load(em, 'rows')}, 0")
    starts, heads, node, parent, mark, place, rows = (args.pointer(em, name) for name in _SubtreeWords._fields[1:])

    def row(i: str, _: list[str]) -> None:
        _put(em, mark, _word(em, node, i), i)

        def entry(e: str, _: list[str]) -> None:
            j = _word(em, heads, e)

            def step(values: list[str]) -> list[str]:
                (s,) = values
                _put(em, mark, s, i)
                here = _word(em, place, s)
                _put(em, place, s, em.add(here, 1))
                em.branch(listed, lambda: _put(em, rows, here, i))
                return [_word(em, parent, s)]

            def walk() -> None:
                em.repeat([("i64", _word(em, node, j))], lambda values: em.let(f"icmp ne i64 {_word(em, mark, values[0])}, {i}"), step)

            em.branch(em.let(f"icmp slt i64 {j}, {i}"), walk)

        em.loop(_word(em, starts, i), _word(em, starts, em.add(i, 1)), 1, entry)

    em.loop(0, n, 1, row)
    em.line("ret void")
    return em
