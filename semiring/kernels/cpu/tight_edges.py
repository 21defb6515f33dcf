"""Predecessor trees of several rows of the closure at once, a row to a lane, along tight edges; see `semiring.algorithms.tight_edges`.

``tight_trees`` finds for each vertex v the tail u of the first tight edge. If each d_u is strictly better than d_v, no vertex precedes
itself, and the result is a tree; positive edges of distances guarantee that.
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Sequence

from semiring.kernels.cpu.arguments import Arguments
from semiring.kernels.cpu.emitter import ENTRY, I32, I64, Emitter
from semiring.kernels.cpu.lowering import Lowering, Value, chosen, constants, empty_sums, improve, load_elements, spread, values
from semiring.kernels.cpu.representation import Representation
from semiring.kernels.hardware import Target

__all__ = ["TightArrays", "TightKernel", "TightWords", "tight_lanes"]

TightWords = namedtuple("TightWords", "n first last roots starts tails queue tree grown")
"""The arguments, before `TightArrays` for each component.

Trees are grown for the rows `first` … `last` − 1, as many as lanes. `roots` has the source of each row. `starts` and `tails` are the
compressed rows of the reversed graph. `queue` has room for a square of lanes. `tree` receives predecessors, −1 for none; `grown` receives 1
for a row with a tree, else 0. Vertices have 32 bits. `roots` and `grown` are padded to a whole number of lanes."""

TightArrays = namedtuple("TightArrays", "weights values scratch")
"""The addresses of one component: the weights of the reversed edges, the rows, and room for the rows vertex by vertex."""


def tight_lanes(rep: Representation, target: Target) -> int:
    """Return the number of rows that ``tight_trees`` takes at once."""
    return max(2, target.vector_bytes // max(4, *(s.bytes for s in rep.outer)))


class TightKernel:
    """Generates the function called `name`; ``tight_trees_backward`` puts edges before walks."""

    def __init__(self, rep: Representation, target: Target, name: str) -> None:
        self.rep, self.backward, self.width = rep, name.endswith("_backward"), tight_lanes(rep, target)
        self.em = em = Emitter(name, ENTRY)
        self.low, self.single = (Lowering(em, target, w, infinities=rep.inner_infinities) for w in (self.width, 1))
        args = Arguments(TightWords, TightArrays, len(rep.outer))
        self.x, (self.weights, self.values, self.scratch) = args.words(em, "n first last"), args.addresses(em).values()
        self.zero = constants(self.low, rep.outer, rep.zero)

    def functions(self) -> list[Emitter]:
        """Emit the function; surplus lanes repeat the last row."""
        em, x, width, n = self.em, self.x, self.width, self.x["n"]
        final = em.sub(x["last"], 1)
        rows = [em.mul(em.smin(em.add(x["first"], r), final), n) for r in range(width)]
        mask, lanes = self.low.mask, I32.vector(width)
        roots = em.get(I32, x["roots"], x["first"], width)
        within = em.sub(n, width)  # the last square of vertices overlaps the square before
        with em.each(0, n, width) as v:
            begin = em.smin(v, within)
            for s, array, panel in zip(self.rep.outer, self.values, self.scratch, strict=True):
                given = [em.get(s, array, em.add(row, begin), width) for row in rows]
                for j, column in enumerate(em.transposed(given, s)):
                    em.store(s.vector(width), column, em.at(s.vector(width), panel, em.add(begin, j)), s.bytes)

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
        return [em.done()]

    def _before(self, v: str | int, roots: str) -> tuple[str, str]:
        """Return v's predecessor in each lane (−1: none), and a mask of lanes in which the predecessor is better than v, or not needed."""
        em, low, count, lanes = self.em, self.low, len(self.rep.outer), I32.vector(self.width)

        def panel(u: str) -> list[Value]:
            return load_elements(low, self.rep.outer, self.scratch, em.mul(u, self.width))

        def offer(e: str, held: list[str]) -> list[str]:
            u, best, walk = held[0], values(held[1 : 1 + count], self.rep.outer), values(held[1 + count :], self.rep.outer)
            tail = em.let(f"sext i32 {em.get(I32, self.x['tails'], e)} to i64")
            along = panel(tail)
            weight = spread(low, self.rep.outer, load_elements(self.single, self.rep.outer, self.weights, e))
            new, better = self._offered(along, weight, best)
            found = [*chosen(low, self.rep.outer, better, new, best), *chosen(low, self.rep.outer, better, along, walk)]
            return [low.select(better, I32, em.splat_word(tail, I32, self.width), u), *(v.name for v in found)]

        nothing, none = empty_sums(self.rep.outer, self.rep.zero, self.width), I32.constant(-1, self.width)
        begin, end = (em.get(I64, self.x["starts"], place) for place in (v, em.add(v, 1)))
        u, *names = em.loop(begin, end, 1, offer, [(lanes, none), *nothing, *nothing])
        own = panel(str(v))
        other = low.compare("ne", I32, em.splat_word(str(v), I32, self.width), roots)
        there = low.all_of([self._better(own, self.zero), other])
        nearer = self._better(values(names[count:], self.rep.outer), own)
        return low.select(there, I32, u, none), low.any_of([nearer, low.negated(there)])

    def _offered(self, walk: list[Value], weight: list[Value], best: Sequence[Value]) -> tuple[list[Value], str]:
        """Return the offer of an edge after a walk, and if the offer is better than the best one so far."""
        low, rep = self.low, self.rep
        new = low.evaluate(rep.mul, *((weight, walk) if self.backward else (walk, weight)), rep.outer)
        tests = [self._better(new, best), self._better(walk, self.zero)]  # ∞ plus a weight might wrap
        if rep.kind == "clamped":  # tropical integers are ∞ from half the range on
            half = rep.outer[0].constant(rep.inner_zero[0], low.width)
            tests.append(low.compare("lt" if rep.extremum == "min" else "gt", rep.outer[0], new[0].name, half))
        return new, low.all_of(tests)

    def _better(self, new: Sequence[Value], old: Sequence[Value]) -> str:
        return improve(self.low, self.rep.add, self.rep.outer, self.rep.extremum, old, new)[1]()
