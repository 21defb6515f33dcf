"""Predecessor trees of rows of the closure of a sparse graph, generated for a semiring whose ⊕ selects: ``tight_edges``.

In a row d from a source, the best of all offers d_u ⊗ a_uv along the edges to v is d_v, but for rounding, and an edge that makes it is tight.
The vertex before v is the u of the first of those. Where each d_u is strictly better than its d_v, no vertex comes before itself, and that
is a tree: as where all edges of distances are positive. Otherwise, as where edges weigh zero, the tree is grown from the source along tight
edges, breadth first. What they do not reach, as rounding hides some, leaves a row without a tree.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from semiring.kernels.cpu.emitter import Arguments, Emitter
from semiring.kernels.cpu.lowering import Value, store_elements
from semiring.kernels.cpu.search import SearchKernel

__all__ = ["TightArrays", "TightKernel", "TightWords", "tight_name"]


class TightWords(NamedTuple):
    """The arguments, before `TightArrays` for each component.

    `roots` has the source of each row; trees are grown of those from `first` on, up to `last`. `starts` and `heads` are the graph's
    compressed rows, `back_starts` and `tails` those of the edges the other way round, with 32 bits for a vertex. `queue` has room for n
    vertices of 32 bits. `tree` gets the vertex before each one, −1 for none, and `grown` of each row 1 if that is a tree, or else 0.
    """

    n: int
    first: int
    last: int
    roots: int
    starts: int
    heads: int
    back_starts: int
    tails: int
    queue: int
    tree: int
    grown: int


class TightArrays(NamedTuple):
    """The addresses of one component: the weights of the edges, those of the edges the other way round, the rows, and n best offers."""

    weights: int
    back_weights: int
    values: int
    best: int


def tight_name(*, backward: bool) -> str:
    """The name of one of two functions; `backward` puts edges before walks."""
    return f"tight_edges{'_backward' if backward else ''}"


class TightKernel(SearchKernel):
    """Generates the function called `name`."""

    def functions(self) -> list[Emitter]:
        """The function."""
        em, rep = self.em, self.rep
        args = Arguments(TightWords, TightArrays, len(rep.outer))
        numbers = {"n", "first", "last"}
        x = {name: (args.load if name in numbers else args.pointer)(em, name) for name in TightWords._fields}
        weights, back, values, best = ([args.pointer(em, (name, c)) for c in range(len(rep.outer))] for name in TightArrays._fields)
        zero = [Value(s.literal(v), s) for v, s in zip(rep.zero, rep.outer, strict=True)]
        reached, strict, taken = em.variable(0), em.variable(0), em.variable(0)

        def vertex(array: str, i: str) -> str:
            return em.let(f"sext i32 {em.load('i32', em.at('i32', array, i), 4)} to i64")

        def put(array: str, i: str, v: str) -> None:
            em.store("i32", em.let(f"trunc i64 {v} to i32"), em.at("i32", array, i), 4)

        def edges(starts: str, v: str) -> tuple[str, str]:
            first, last = (em.load("i64", em.at("i64", starts, i), 8) for i in (v, em.add(v, 1)))
            return first, last

        def count(variable: str) -> None:
            em.store("i64", str(em.add(em.load("i64", variable, 8), 1)), variable, 8)

        def grow(i: str, _: list[str]) -> None:
            begin = em.mul(i, x["n"])
            row = [em.at(s.ir, array, begin) for s, array in zip(rep.outer, values, strict=True)]
            tree = em.at("i32", x["tree"], begin)
            root = em.load("i64", em.at("i64", x["roots"], i), 8)
            em.store("i64", "0", reached, 8)
            em.store("i64", "1", strict, 8)

            def offers(v: str, _: list[str]) -> None:
                def offer(e: str, held: list[str]) -> list[str]:
                    u, *names = held
                    old = [Value(name, s) for name, s in zip(names, rep.outer, strict=True)]
                    tail = vertex(x["tails"], e)
                    walk = self._load(row, tail)
                    new = self._lengthened(walk, self._load(back, e))
                    better = self.low.all_of([self._improves(new, old), self._better(walk, zero)])  # what is no walk might wrap
                    chosen = [self.low.select(better, s, b.name, a.name) for s, a, b in zip(rep.outer, old, new, strict=True)]
                    return [em.select_i64(better, tail, u, unpredictable=True), *chosen]

                carried = [("i64", "-1"), *((s.ir, z.name) for s, z in zip(rep.outer, zero, strict=True))]
                u, *names = em.loop(*edges(x["back_starts"], v), 1, offer, carried)
                put(tree, v, u)
                self._store(best, v, [Value(name, s) for name, s in zip(names, rep.outer, strict=True)])
                there = em.let(f"and i1 {self._better(self._load(row, v), zero)}, {em.let(f'icmp ne i64 {v}, {root}')}")

                def check() -> None:
                    count(reached)
                    before = em.select_i64(em.let(f"icmp slt i64 {u}, 0"), v, u)
                    nearer = em.let(f"zext i1 {self._better(self._load(row, before), self._load(row, v))} to i64")
                    em.store("i64", em.let(f"and i64 {em.load('i64', strict, 8)}, {nearer}"), strict, 8)

                em.branch(there, check, lambda: put(tree, v, "-1"))

            em.loop(0, x["n"], 1, offers)

            def search() -> None:
                em.loop(0, x["n"], 1, lambda v, _: put(tree, v, "-1"))
                put(x["queue"], "0", root)
                em.store("i64", "1", taken, 8)

                def leave(turn: list[str]) -> list[str]:
                    u = vertex(x["queue"], turn[0])
                    walk = self._load(row, u)

                    def follow(e: str, _: list[str]) -> None:
                        v = vertex(x["heads"], e)

                        def look() -> None:
                            offer = self._lengthened(walk, self._load(weights, e))
                            worse = self._better(self._load(best, v), offer)
                            tight = em.let(f"xor i1 {worse}, true")

                            def take() -> None:
                                put(tree, v, u)
                                put(x["queue"], em.load("i64", taken, 8), v)
                                count(taken)

                            em.branch(self.low.all_of([tight, self._improves(offer, zero)]), take)

                        new = em.let(f"icmp slt i64 {vertex(tree, v)}, 0")
                        em.branch(self.low.all_of([new, em.let(f"icmp ne i64 {v}, {root}")]), look)

                    em.loop(*edges(x["starts"], u), 1, follow)
                    return [str(em.add(turn[0], 1))]

                em.repeat([("i64", "0")], lambda turn: em.let(f"icmp slt i64 {turn[0]}, {em.load('i64', taken, 8)}"), leave)

            done = em.at("i8", x["grown"], i)
            em.store("i8", "1", done, 1)

            def by_search() -> None:
                search()
                every = em.let(f"icmp sgt i64 {em.load('i64', taken, 8)}, {em.load('i64', reached, 8)}")
                em.store("i8", em.let(f"zext i1 {every} to i8"), done, 1)

            em.branch(em.let(f"icmp eq i64 {em.load('i64', strict, 8)}, 0"), by_search)

        em.loop(x["first"], x["last"], 1, grow)
        em.line("ret void")
        return [em]

    def _store(self, arrays: Sequence[str], at: str, element: Sequence[Value]) -> None:
        """Write an element to a place of arrays, one a component."""
        store_elements(self.low, self.rep.outer, arrays, at, element)
