"""Predecessor trees of rows of the closure of a sparse graph, generated for a semiring whose ⊕ selects.

In a row d from a source, d_v is the best offer d_u ⊗ a_uv over the edges to v, up to rounding. The edge of the best offer is tight.

``tight_trees`` takes several rows, one per lane, and finds for each v the tail u of the first tight edge. If each d_u is strictly better
than d_v, no vertex precedes itself, and the result is a tree; positive edges of distances guarantee that. ``tight_search`` takes a row
without such a tree, for example with edges of weight 0, and grows a tree from the source along tight edges, breadth-first. Rounding can
hide a tight edge; a row whose search then misses a vertex stays without a tree.
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Iterable, Sequence

from semiring.kernels.cpu.body import Variable
from semiring.kernels.cpu.emitter import I32, Emitter, Scalar
from semiring.kernels.cpu.lowering import Lowering, Value, values
from semiring.kernels.cpu.representation import Representation
from semiring.kernels.cpu.search import SearchKernel
from semiring.kernels.hardware import Target

__all__ = ["TightArrays", "TightKernel", "TightWords", "tight_lanes", "tight_name"]

TightWords = namedtuple("TightWords", "n first last roots starts heads back_starts tails queue tree grown")
"""The arguments, before `TightArrays` for each component.

Trees are grown for the rows `first` … `last` − 1: as many as lanes by `tight_trees`, one by `tight_search`. `roots` has the source of
each row. `starts` and `heads` are the graph's compressed rows, `back_starts` and `tails` the reversed graph's. `queue` has room for n
vertices, or for a square of lanes. `tree` receives predecessors, −1 for none; `grown` receives 1 for a row with a tree, else 0.
Vertices have 32 bits. `roots` and `grown` are padded to a whole number of lanes."""

TightArrays = namedtuple("TightArrays", "weights back_weights values scratch")
"""The addresses of one component: the weights of the edges and of the reversed edges, the rows, and scratch.

The scratch has room for n elements of each row: the rows vertex by vertex, or the best offers."""


def tight_name(kind: str, *, backward: bool) -> str:
    """Return the name of one of four functions, by the kind "trees" or "search"; `backward` puts edges before walks."""
    return f"tight_{kind}{'_backward' if backward else ''}"


def tight_lanes(rep: Representation, target: Target) -> int:
    """Return the number of rows that `tight_trees` takes at once."""
    return max(2, target.vector_bytes // max(4, *(s.bytes for s in rep.outer)))


class TightKernel(SearchKernel):
    """Generates the function called `name`."""

    def __init__(self, rep: Representation, target: Target, name: str) -> None:
        super().__init__(rep, target, name)
        self.width = tight_lanes(rep, target) if name.startswith("tight_trees") else 1
        self.low = Lowering(self.em, target, self.width, infinities=rep.inner_infinities)
        _, self.x, arrays = self._arguments(TightWords, TightArrays, {"n", "first", "last"})
        self.weights, self.back, self.values, self.scratch = arrays.values()
        self.zero = [Value(s.constant(v, self.width), s) for v, s in zip(rep.zero, rep.outer, strict=True)]

    def functions(self) -> list[Emitter]:
        """Emit the function."""
        if self.width > 1:
            self._trees()
        else:
            self._search()
        return [self.em.done()]

    def _vertex(self, array: str, i: str) -> str:
        return self.em.let(f"sext i32 {self.em.load('i32', self.em.at('i32', array, i), 4)} to i64")

    def _put(self, array: str, i: str, v: str) -> None:
        self.em.put(I32, self.em.let(f"trunc i64 {v} to i32"), array, i)

    def _chosen(self, better: str, new: Sequence[Value], old: Sequence[Value]) -> list[str]:
        """Select the new element where it is better, else the old one."""
        return [self.low.select(better, s, b.name, a.name) for s, a, b in zip(self.rep.outer, old, new, strict=True)]

    def _trees(self) -> None:
        """Grow the trees of the rows from the first to the last; surplus lanes repeat the last row."""
        em, x, width, n = self.em, self.x, self.width, self.x["n"]
        final = em.sub(x["last"], 1)
        rows = [em.mul(em.smin(em.add(x["first"], r), final), n) for r in range(width)]
        mask, lanes = self.low.mask, I32.vector(width)
        roots = em.get(I32, x["roots"], x["first"], width)
        within = em.sub(n, width)  # the last square of vertices overlaps the square before

        def turn(v: str, _: list[str]) -> None:
            begin = em.smin(v, within)
            for s, array, panel in zip(self.rep.outer, self.values, self.scratch, strict=True):
                given = [em.get(s, array, em.add(row, begin), width) for row in rows]
                for j, column in enumerate(em.transposed(given, s)):
                    em.store(s.vector(width), column, em.at(s.vector(width), panel, em.add(begin, j)), s.bytes)

        em.loop(0, n, width, turn)

        def square(v: str, carried: list[str]) -> list[str]:
            begin = em.smin(v, within)

            def one(j: str, held: list[str]) -> list[str]:
                before, strict = self._before(em.add(begin, j), roots)
                em.store(lanes, before, em.at(lanes, x["queue"], j), 4)
                return [em.let(f"and {mask} {held[0]}, {strict}")]

            strict = em.loop(0, width, 1, one, [(mask, carried[0])])
            found = [em.load(lanes, em.at(lanes, x["queue"], j), 4) for j in range(width)]
            for row, part in zip(rows, em.transposed(found, I32), strict=True):
                em.put(I32, part, x["tree"], em.add(row, begin), width)
            return strict

        (strict,) = em.loop(0, n, width, square, [(mask, "splat (i1 true)")])
        em.store(f"<{width} x i8>", em.let(f"zext {mask} {strict} to <{width} x i8>"), em.at("i8", x["grown"], x["first"]), 1)

    def _before(self, v: str | int, roots: str) -> tuple[str, str]:
        """Return v's predecessor in each lane (−1: none), and a mask of lanes in which the predecessor is better than v, or not needed."""
        em, low, count, lanes = self.em, self.low, len(self.rep.outer), I32.vector(self.width)

        def panel(u: str) -> list[Value]:
            return self._load(self.scratch, str(em.mul(u, self.width)))

        def offer(e: str, held: list[str]) -> list[str]:
            u, best, walk = held[0], values(held[1 : 1 + count], self.rep.outer), values(held[1 + count :], self.rep.outer)
            tail = self._vertex(self.x["tails"], e)
            along = panel(tail)
            weight = [Value(em.splat(em.get(s, a, e), s, self.width), s) for s, a in self._each(self.back)]
            new = self._lengthened(along, weight)
            better = low.all_of([self._improves(new, best), self._better(along, self.zero)])  # ∞ plus a weight might wrap
            tails = em.splat_word(tail, I32, self.width)
            return [low.select(better, I32, tails, u), *self._chosen(better, new, best), *self._chosen(better, along, walk)]

        nothing = [(s.vector(self.width), z.name) for s, z in zip(self.rep.outer, self.zero, strict=True)]
        none = I32.constant(-1, self.width)
        u, *names = em.loop(*self._edges(self.x["back_starts"], str(v)), 1, offer, [(lanes, none), *nothing, *nothing])
        own = panel(str(v))
        other = low.compare("ne", I32, em.splat_word(str(v), I32, self.width), roots)
        there = low.all_of([self._better(own, self.zero), other])
        nearer = self._better(values(names[count:], self.rep.outer), own)
        return low.select(there, I32, u, none), low.any_of([nearer, low.negated(there)])

    def _each(self, arrays: Sequence[str]) -> Iterable[tuple[Scalar, str]]:
        return zip(self.rep.outer, arrays, strict=True)

    def _search(self) -> None:
        """Grow the tree of one row from its source along tight edges, breadth-first."""
        em, x, n = self.em, self.x, self.x["n"]
        begin = em.mul(x["first"], n)
        row = [em.at(s.ir, array, begin) for s, array in self._each(self.values)]
        tree, root = em.at("i32", x["tree"], begin), self._vertex(x["roots"], x["first"])
        reached, taken = Variable(em, 1), Variable(em, 1)

        def is_other(v: str) -> str:
            return em.let(f"icmp ne i64 {v}, {root}")

        def begun(v: str, _: list[str]) -> None:
            def offer(e: str, held: list[str]) -> list[str]:
                best, walk = values(held, self.rep.outer), self._load(row, self._vertex(x["tails"], e))
                new = self._lengthened(walk, self._load(self.back, e))
                better = self.low.all_of([self._improves(new, best), self._better(walk, self.zero)])  # ∞ plus a weight might wrap
                return self._chosen(better, new, best)

            nothing = [(s.ir, z.name) for s, z in zip(self.rep.outer, self.zero, strict=True)]
            best = em.loop(*self._edges(x["back_starts"], v), 1, offer, nothing)
            self._store(self.scratch, v, values(best, self.rep.outer))
            self._put(tree, v, "-1")
            em.branch(self.low.all_of([self._better(self._load(row, v), self.zero), is_other(v)]), lambda: reached.add(1))

        em.loop(0, n, 1, begun)
        self._put(x["queue"], "0", root)

        def leave(turn: list[str]) -> list[str]:
            u = self._vertex(x["queue"], turn[0])
            walk = self._load(row, u)

            def follow(e: str, _: list[str]) -> None:
                v = self._vertex(x["heads"], e)

                def look() -> None:
                    offer = self._lengthened(walk, self._load(self.weights, e))
                    tight = self.low.negated(self._better(self._load(self.scratch, v), offer))

                    def take() -> None:
                        self._put(tree, v, u)
                        self._put(x["queue"], taken.get(), v)
                        taken.add(1)

                    em.branch(self.low.all_of([tight, self._improves(offer, self.zero)]), take)

                em.branch(self.low.all_of([em.let(f"icmp slt i64 {self._vertex(tree, v)}, 0"), is_other(v)]), look)

            em.loop(*self._edges(x["starts"], u), 1, follow)
            return [str(em.add(turn[0], 1))]

        em.repeat([("i64", "0")], lambda turn: em.let(f"icmp slt i64 {turn[0]}, {taken.get()}"), leave)
        every = em.let(f"icmp eq i64 {taken.get()}, {reached.get()}")
        em.store("i8", em.let(f"zext i1 {every} to i8"), em.at("i8", x["grown"], x["first"]), 1)
