"""Rows of the closure of a sparse graph, one after the other: the best elements from a vertex to all, edge by edge.

``search_best`` takes the vertices with the best element first, as Dijkstra (1959) does; where no edge improves on 1, each is final when
its turn comes. ``search_rounds`` takes them in rounds, each of walks with one more edge, as Bellman and Ford do. Both are Mohri's generic
search (2002) with a queue of its own, for a ⊕ that selects.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from semiring.kernels.cpu.emitter import Emitter
from semiring.kernels.cpu.lowering import Lowering, Value
from semiring.kernels.cpu.queues import Heap, Queue, Rounds
from semiring.kernels.cpu.representation import Representation
from semiring.kernels.cpu.target import Target
from semiring.kernels.cpu.update import improve

__all__ = ["SearchKernel", "Words", "search_name"]


class Words(NamedTuple):
    """The arguments, before a pair of addresses for each component: the weights of the edges, and the rows of the result.

    `sources` has the vertex that each row begins at; rows are found from `first` on, up to `last`; `reflexive` ones have 1 there to begin
    with. `room` says how many entries a queue has, `turns` how many may be taken out of it, and `rounds` in how many rounds. `tree` is 0,
    or where the vertex before each one is put. `complete` becomes the number of the first row whose search one of these stopped, or else
    `last`; and `seen` how many edges all searches before that looked at.
    """

    sources: int
    first: int
    last: int
    n: int
    reflexive: int
    starts: int
    heads: int
    queue: int
    room: int
    turns: int
    rounds: int
    tree: int
    complete: int
    seen: int = 0


_POINTERS = {"sources", "starts", "heads", "queue"}


def search_name(*, best_first: bool, backward: bool) -> str:
    """The name of one of four functions; `backward` puts edges before walks."""
    return f"search_{'best' if best_first else 'rounds'}{'_backward' if backward else ''}"


class SearchKernel:
    """Generates the function called `name`."""

    def __init__(self, rep: Representation, target: Target, name: str) -> None:
        self.rep, self.name = rep, name
        self.em = Emitter(name, "ptr %args")
        self.low = Lowering(self.em, target, 1, infinities=rep.inner_infinities)

    def functions(self) -> list[Emitter]:
        """The function."""
        em, rep = self.em, self.rep
        x = {n: em.load("ptr" if n in _POINTERS else "i64", em.at("i64", "%args", i), 8) for i, n in enumerate(Words._fields)}
        weights, values = (
            [em.load("ptr", em.at("i64", "%args", len(Words._fields) + 2 * c + i), 8) for c in range(len(rep.outer))] for i in (0, 1)
        )
        queue: Queue = (
            Heap(self.low, rep.outer, x["queue"], x["room"], self._better)
            if "best" in self.name
            else Rounds(self.low, rep.outer, x["queue"], x["room"], x["rounds"])
        )
        turns, seen = x["turns"], em.variable(0)
        zero, one = ([Value(s.literal(v), s) for v, s in zip(unit, rep.outer, strict=True)] for unit in (rep.zero, rep.one))

        def search(i: str, _: list[str]) -> None:
            begin = em.mul(i, x["n"])
            row = [em.at(s.ir, array, begin) for s, array in zip(rep.outer, values, strict=True)]
            source = em.load("i64", em.at("i64", x["sources"], i), 8)

            def put(at: str, element: Sequence[Value]) -> None:
                for s, array, value in zip(rep.outer, row, element, strict=True):
                    em.store(s.ir, value.name, em.at(s.ir, array, at), s.bytes)

            em.loop(0, x["n"], 1, lambda v, _: put(v, zero))
            em.branch(em.let(f"icmp ne i64 {x['reflexive']}, 0"), lambda: put(source, one))
            queue.begin(source, one)

            def turn(taken: list[str]) -> list[str]:
                u, walk = queue.pop()

                def edge(e: str, _: list[str]) -> None:
                    v = em.load("i64", em.at("i64", x["heads"], e), 8)
                    offer = self._lengthened(walk, self._load(weights, e))

                    def take() -> None:
                        put(v, offer)
                        em.branch(em.let(f"icmp ne i64 {x['tree']}, 0"), lambda: self._remember(x["tree"], em.add(begin, v), u))
                        queue.push(v, offer)

                    em.branch(self._improves(offer, self._load(row, v)), take)

                def leave() -> None:
                    first, last = (em.load("i64", em.at("i64", x["starts"], i), 8) for i in (u, em.add(u, 1)))
                    em.store("i64", str(em.add(em.load("i64", seen, 8), str(em.sub(last, first)))), seen, 8)
                    em.loop(first, last, 1, edge)

                stale = self._better(self._load(row, u), walk)
                em.branch(em.let(f"xor i1 {stale}, true"), leave)
                return [str(em.add(taken[0], 1))]

            def more(taken: list[str]) -> str:
                return em.let(f"and i1 {queue.filled()}, {em.let(f'icmp slt i64 {taken[0]}, {turns}')}")

            em.repeat([("i64", "0")], more, turn)
            em.store("i64", em.load("i64", seen, 8), em.at("i64", "%args", Words._fields.index("seen")), 8)
            em.returning(queue.filled())
            em.store("i64", str(em.add(i, 1)), em.at("i64", "%args", Words._fields.index("complete")), 8)

        em.loop(x["first"], x["last"], 1, search)
        em.line("ret void")
        return [em]

    def _load(self, arrays: Sequence[str], i: str) -> list[Value]:
        em = self.em
        return [Value(em.load(s.ir, em.at(s.ir, a, i), s.bytes), s) for s, a in zip(self.rep.outer, arrays, strict=True)]

    def _remember(self, tree: str, entry: str | int, u: str) -> None:
        """The vertex before that of an entry is u."""
        em = self.em
        place = em.at("i32", em.let(f"inttoptr i64 {tree} to ptr"), entry)
        em.store("i32", em.let(f"trunc i64 {u} to i32"), place, 4)

    def _lengthened(self, walk: list[Value], weight: list[Value]) -> list[Value]:
        """A walk with one more edge."""
        factors = (weight, walk) if self.name.endswith("_backward") else (walk, weight)
        return self.low.evaluate(self.rep.mul, *factors, self.rep.outer)

    def _better(self, new: Sequence[Value], old: Sequence[Value]) -> str:
        """Whether old ⊕ new is not old."""
        return improve(self.low, self.rep.add, self.rep.outer, self.rep.extremum, old, new)[1]()

    def _improves(self, offer: Sequence[Value], old: Sequence[Value]) -> str:
        """Whether an offer is taken; tropical integers from half of ∞ on are ∞, so that no sum of two wraps."""
        better = self._better(offer, old)
        if self.rep.kind != "infinity":
            return better
        (s,), (o,) = self.rep.outer, offer
        finite = self.low.compare("lt" if self.rep.extremum == "min" else "gt", s, o.name, s.literal(self.rep.inner_zero[0]))
        return self.low.all_of([better, finite])
