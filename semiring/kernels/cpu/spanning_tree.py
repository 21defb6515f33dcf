"""Spanning forests of symmetric graphs, and weights of paths along them for a ⊗ that keeps the worse edge, as compiled loops.

``prim`` grows the forest of a dense matrix vertex by vertex (Prim, 1957); ``kruskal`` joins the trees of a sparse graph edge by edge
(Kruskal, 1956). Both write the vertices in a line such that a best path between two vertices weighs the worst edge between their places.
Prim's algorithm leaves a cluster only when nothing better leads on, and Kruskal's joins two lines at their ends. ``rows`` reads the line in
both directions from each source, and roots the source's tree there.
"""

from __future__ import annotations

import functools
from collections import namedtuple
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from semiring.arrays.overlap import address
from semiring.arrays.threads import run
from semiring.kernels.cpu.arguments import pack
from semiring.kernels.cpu.body import Body, Variable
from semiring.kernels.cpu.compiler import Function, compile_library, link
from semiring.kernels.cpu.emitter import I64, Emitter, Scalar, scalar_type
from semiring.kernels.hardware import host

__all__ = ["kruskal", "prim", "rows_of_line"]

Array = np.ndarray[Any, Any]

_TASK = 1 << 16
"""The entries of rows per task."""

_PrimWords = namedtuple("_PrimWords", "n stride matrix order gaps parents")
"""The arguments of ``prim``: a matrix whose rows are `stride` elements apart, and arrays by places in the line."""

_KruskalWords = namedtuple("_KruskalWords", "n m tails heads ranks parents order gaps line after last size entry")
"""The arguments of ``kruskal``: the forest, and lines by their first vertices; `entry` is the edge before a line."""

_RowWords = namedtuple("_RowWords", "n first stop stride sources order position gaps parents one rows trees")
"""The arguments of ``rows``: sources `first` … `stop` − 1, the line, its forest, the one, and the rows; `trees` may be 0."""


def prim(matrix: Array, zero: Any, *, smallest: bool) -> tuple[Array, Array, Array]:
    """Return the line of a symmetric matrix, the edge before each vertex of the line, and each vertex's parent in the forest. O(n²).

    The matrix has contiguous rows. `zero` is the element of no edge, also written before the first vertex of each tree. If `smallest`,
    smaller edges are better.

    Examples
    --------
    >>> prim(np.array([[9, 4, 2], [4, 9, 3], [2, 3, 9]]), 9, smallest=True)
    (array([0, 2, 1]), array([9, 2, 3]), array([-1,  2,  0], dtype=int32))
    """
    n = len(matrix)
    order, gaps, found = np.arange(n), np.full(n, zero, matrix.dtype), np.full(n, -1, np.int32)
    words = pack(_PrimWords(n, matrix.strides[0] // matrix.itemsize, *map(address, (matrix, order, gaps, found))))
    _function("prim", scalar_type(matrix.dtype), smallest)(words, n * n)
    parents = np.empty_like(found)
    parents[order] = found
    return order, gaps, parents


def kruskal(n: int, tails: Array, heads: Array, ranks: Array) -> tuple[Array, Array, Array]:
    """Return the line and the forest of a sparse graph, with edges by their numbers, −1 for none. O(m + n log n).

    `ranks` lists the numbers of the edges, best first.

    Examples
    --------
    >>> kruskal(3, np.array([0, 0, 1]), np.array([1, 2, 2]), np.array([1, 2, 0]))  # 0 – 2, 1 – 2, 0 – 1
    (array([0, 2, 1]), array([-1,  1,  2]), array([-1,  2,  0], dtype=int32))
    """
    tails, heads, ranks = (np.ascontiguousarray(v, np.int64) for v in (tails, heads, ranks))
    parents = np.full(n, -1, np.int32)
    order, gaps = np.empty((2, n), np.int64)
    line, last, after, size, entry = np.arange(n), np.arange(n), np.full(n, -1), np.ones(n, np.int64), np.full(n, -1)
    arrays: list[Array] = [tails, heads, ranks, parents, order, gaps, line, after, last, size, entry]
    words = pack(_KruskalWords(n, len(ranks), *map(address, arrays)))
    _function("kruskal")(words, 20 * (n + len(ranks)))
    return order, gaps, parents


def rows_of_line(
    sources: Array, line: tuple[Array, Array, Array, Array], one: Any, rows: Array, trees: Array | None, threads: int, *, smallest: bool
) -> None:
    """Fill rows with the weights of best paths from their sources, and trees with the predecessors. O(n) for each row.

    `line` has the line and each vertex's position (int64), the edge before each vertex of the line, and the parents (int32). `one` is
    the element of the empty path. `rows` have contiguous rows; `trees` are contiguous and int32.
    """
    n, count, first = len(line[0]), len(sources), np.array([one], rows.dtype)
    if trees is not None:
        trees[...] = line[-1]
    *arrays, last = map(address, (sources, *line, first, rows, rows if trees is None else trees))
    words = _RowWords._make((n, 0, 0, rows.strides[0] // rows.itemsize, *arrays, 0 if trees is None else last))
    function, step = _function("rows", scalar_type(rows.dtype), smallest), max(1, _TASK // max(1, n))

    def fill(start: int, _: int) -> None:
        function(pack(words._replace(first=start, stop=min(start + step, count))), step * n)

    run(fill, range(0, count, step), threads)


@functools.cache
def _function(name: str, scalar: Scalar = I64, smallest: bool = True) -> Function:
    write = {"prim": _prim, "kruskal": _kruskal, "rows": _rows}[name]
    key = "spanning tree", name, scalar, smallest
    return compile_library(key, host(), lambda: link([write(_Elements(scalar, smallest))])).function(name)


class _Elements(NamedTuple):
    """The type and the order of elements; signed integers are i64 in registers, see `Body`."""

    scalar: Scalar
    smallest: bool

    @property
    def ir(self) -> str:
        return "i64" if self.scalar.kind == "i" else self.scalar.ir

    def better(self, em: Emitter, x: str, y: str) -> str:
        relation = {"f": "fcmp o", "i": "icmp s", "u": "icmp u"}[self.scalar.kind] + ("lt" if self.smallest else "gt")
        return em.let(f"{relation} {self.ir} {x}, {y}")

    def select(self, em: Emitter, condition: str, x: str, y: str) -> str:
        return em.let(f"select i1 {condition}, {self.ir} {x}, {self.ir} {y}")


def _prim(of: _Elements) -> Emitter:
    """Emit ``prim``: vertices behind place k wait, each with its best edge so far."""
    element = of.scalar.dtype
    b = Body("prim", _PrimWords, "n stride", matrix=element, order=np.int64, gaps=element, parents=np.int32)
    em, n = b.em, b["n"]
    with em.each(1, n) as k:
        v = b.get("order", em.sub(k, 1))
        row = em.mul(v, b["stride"])

        def waiting(j: str, carried: list[str]) -> list[str]:
            best, at = carried
            edge, known = b.get("matrix", em.add(row, b.get("order", j))), b.get("gaps", j)
            nearer = of.better(em, edge, known)
            now = of.select(em, nearer, edge, known)
            b.put("gaps", j, now)
            b.put("parents", j, em.select_i64(nearer, v, b.get("parents", j)))
            ahead = of.better(em, now, best)
            return [of.select(em, ahead, now, best), em.select_i64(ahead, j, at)]

        at = em.loop(k, n, 1, waiting, [(of.ir, b.get("gaps", k)), ("i64", k)])[1]
        for array in ("order", "gaps", "parents"):
            here, there = b.get(array, k), b.get(array, at)
            b.put(array, k, there)
            b.put(array, at, here)
    return b.done()


def _kruskal(_: _Elements) -> Emitter:
    """Emit ``kruskal``: an edge appends the shorter line to the longer one, and roots the shorter line's tree at the edge."""
    arrays = dict.fromkeys(_KruskalWords._fields[2:], np.int64) | {"parents": np.int32}
    b = Body("kruskal", _KruskalWords, "n m", **arrays)
    em = b.em
    above, place = Variable(em), Variable(em)

    @contextmanager
    def along(first: str, array: str) -> Iterator[str]:
        with em.turns([("i64", first)], lambda values: b.is_("sge", values[0], 0)) as ((v,), new):
            new.append(b.get(array, v))
            yield v

    with em.each(0, b["m"]) as i:
        e = b.get("ranks", i)
        ends = b.get("tails", e), b.get("heads", e)
        lines = [b.get("line", v) for v in ends]
        with em.when(b.is_("ne", *lines)):
            sizes = [b.get("size", line) for line in lines]
            longer = b.is_("sge", *sizes)
            u, v = em.select_i64(longer, *ends), em.select_i64(longer, *ends[::-1])
            into, moved = em.select_i64(longer, *lines), em.select_i64(longer, *lines[::-1])
            above.set(u)
            with along(v, "parents") as x:
                b.put("parents", x, above.get())
                above.set(x)
            with along(moved, "after") as x:
                b.put("line", x, into)
            b.put("entry", moved, e)
            b.put("after", b.get("last", into), moved)
            b.put("last", into, b.get("last", moved))
            b.put("size", into, em.add(*sizes))
    with em.each(0, b["n"]) as first, em.when(b.is_("eq", b.get("line", first), first)), along(first, "after") as v:
        b.put("order", place.get(), v)
        b.put("gaps", place.get(), b.get("entry", v))
        place.add(1)
    return b.done()


def _rows(of: _Elements) -> Emitter:
    element = of.scalar.dtype
    arrays = dict.fromkeys(("sources", "order", "position"), np.int64) | dict.fromkeys(("gaps", "one", "rows"), element)
    b = Body("rows", _RowWords, "n first stop stride", **arrays, parents=np.int32, trees=np.int32)
    em, n = b.em, b["n"]
    one, rooted = b.get("one", 0), b.is_given("trees")
    with em.each(b["first"], b["stop"]) as i:
        source, start = b.get("sources", i), em.mul(i, b["stride"])
        place = b.get("position", source)

        def read(j: str, gap: str, worst: str) -> str:
            wide = b.get("gaps", gap)
            now = of.select(em, of.better(em, worst, wide), wide, worst)
            b.put("rows", em.add(start, b.get("order", j)), now)
            return now

        b.put("rows", em.add(start, source), one)
        with em.turns([("i64", place), (of.ir, one)], lambda values: b.is_("sgt", values[0], 0)) as ((j, worst), new):
            before = str(em.sub(j, 1))
            new += [before, read(before, j, worst)]
        em.loop(em.add(place, 1), n, 1, lambda j, values: [read(j, j, values[0])], [(of.ir, one)])
        with em.when(rooted):
            tree = em.mul(i, n)
            with em.turns([("i64", source), ("i64", "-1")], lambda values: b.is_("sge", values[0], 0)) as ((v, below), new):
                b.put("trees", em.add(tree, v), below)
                new += [b.get("parents", v), v]
    return b.done()
