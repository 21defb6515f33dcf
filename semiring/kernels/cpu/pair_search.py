"""Best-first search from both ends of one path, generated for a semiring whose ⊕ selects: ``search_pair``.

Walks from the source and walks to the target grow by turns, in the search whose queue is shorter (Pohl, 1971). A vertex that both have
reached joins two of them to a path. The best of these paths is final when the best walks of both queues, joined, are no better. Any
other path has an edge that neither search has visited: one part is at least a walk of one queue, the other at least a walk of the other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from semiring.kernels.cpu.arguments import Arguments
from semiring.kernels.cpu.emitter import Emitter
from semiring.kernels.cpu.lowering import Value, store_elements
from semiring.kernels.cpu.search import Heap, SearchKernel

__all__ = ["PairArrays", "PairKernel", "PairWords"]


class PairWords(NamedTuple):
    """The arguments, before `PairArrays` for each component; what begins with `back` is of the reversed graph.

    Each of the two queues has `room` entries. For each vertex that the search from the source reaches, `before` gets the vertex before it
    on the way. For each vertex that the search to the target reaches, `after` gets the next vertex, and `edges` the number of the edge
    between them in the reversed graph. `way` receives the path from the meeting vertex: `first` vertices back to the source, and from
    place n on `last` vertices to the target; both are 0 without a path. `seen` receives the number of visited edges.
    """

    n: int
    source: int
    target: int
    starts: int
    heads: int
    back_starts: int
    back_heads: int
    queue: int
    back_queue: int
    room: int
    before: int
    after: int
    edges: int
    way: int
    first: int = 0
    last: int = 0
    seen: int = 0


class PairArrays(NamedTuple):
    """The addresses of one component: the weights of the edges, n elements for each search, and the element of the best path."""

    weights: int
    back_weights: int
    values: int
    back_values: int
    best: int


class _SearchSide(NamedTuple):
    """One of the two searches: graph, queue, elements of walks, and the vertex before (or after) each vertex."""

    starts: str
    heads: str
    weights: list[str]
    queue: Heap
    row: list[str]
    links: str
    backward: bool


class PairKernel(SearchKernel):
    """Generates the function called `name`."""

    def functions(self) -> list[Emitter]:
        """The function."""
        em, rep = self.em, self.rep
        args = Arguments(PairWords, PairArrays, len(rep.outer))
        numbers = {"n", "source", "target", "room"}
        x = {name: (args.load if name in numbers else args.pointer)(em, name) for name in PairWords._fields[:-3]}
        arrays = {name: [args.pointer(em, (name, c)) for c in range(len(rep.outer))] for name in PairArrays._fields}
        sides = [
            _SearchSide(
                x[back + "starts"],
                x[back + "heads"],
                arrays[back + "weights"],
                Heap(self.low, rep.outer, x[back + "queue"], x["room"], self._better),
                arrays[back + "values"],
                x["after" if back else "before"],
                bool(back),
            )
            for back in ("", "back_")
        ]
        there, back = sides
        best, meet, seen = arrays["best"], em.variable(-1), em.variable(0)
        zero, one = ([Value(s.literal(v), s) for v, s in zip(unit, rep.outer, strict=True)] for unit in (rep.zero, rep.one))
        for side, root in zip(sides, (x["source"], x["target"]), strict=True):
            em.loop(0, x["n"], 1, lambda v, _, side=side: self._store(side.row, v, zero))  # type: ignore[misc]  # the default of a lambda
            self._store(side.row, root, one)
            side.queue.push(root, one)
        self._store(best, 0, zero)

        def join(v: str, walk: list[Value], rest: list[Value], *, backward: bool) -> None:
            path = self._product(walk, rest, backward=backward)

            def take() -> None:
                self._store(best, 0, path)
                em.store("i64", v, meet, 8)

            em.branch(self._improves(path, self._load(best, "0")), take)

        def expand(side: _SearchSide, other: _SearchSide) -> None:
            u, walk = side.queue.pop()

            def edge(e: str, _: list[str]) -> None:
                v = em.load("i64", em.at("i64", side.heads, e), 8)
                offer = self._product(walk, self._load(side.weights, e), backward=side.backward)

                def take() -> None:
                    self._store(side.row, v, offer)
                    em.store("i64", u, em.at("i64", side.links, v), 8)
                    if side.backward:
                        em.store("i64", e, em.at("i64", x["edges"], v), 8)
                    side.queue.push(v, offer)
                    rest = self._load(other.row, v)
                    em.branch(self._better(rest, zero), lambda: join(v, offer, rest, backward=side.backward))

                em.branch(self._improves(offer, self._load(side.row, v)), take)

            def leave() -> None:
                first, last = (em.load("i64", em.at("i64", side.starts, i), 8) for i in (u, em.add(u, 1)))
                em.store("i64", str(em.add(em.load("i64", seen, 8), str(em.sub(last, first)))), seen, 8)
                em.loop(first, last, 1, edge)

            stale = self._better(self._load(side.row, u), walk)
            em.branch(em.let(f"xor i1 {stale}, true"), leave)

        def more(_: list[str]) -> str:
            walks = [side.queue.entries.element("0") for side in sides]
            better = self._better(self._product(*walks, backward=False), self._load(best, "0"))
            return self.low.all_of([*(side.queue.filled() for side in sides), better])

        def turn(_: list[str]) -> list[str]:
            sizes = (em.load("i64", side.queue.size, 8) for side in sides)
            em.branch(em.let(f"icmp sle i64 {', '.join(sizes)}"), lambda: expand(there, back), lambda: expand(back, there))
            return []

        em.repeat([], more, turn)
        em.store("i64", em.load("i64", seen, 8), args.place(em, "seen"), 8)
        middle = em.load("i64", meet, 8)
        em.returning(em.let(f"icmp slt i64 {middle}, 0"))
        # The element of the path is multiplied from the source on, edge by edge, as those of rows are.
        self._store(best, 0, self._load(there.row, middle))
        for word, side, root, begin in (("first", there, x["source"], "0"), ("last", back, x["target"], x["n"])):

            def keep(v: str, count: str, begin: str = begin) -> None:
                em.store("i64", v, em.at("i64", x["way"], em.add(begin, count)), 8)

            def follow(carried: list[str], side: _SearchSide = side, keep: Callable[[str, str], None] = keep) -> list[str]:
                v, count = carried
                keep(v, count)
                if side.backward:
                    weight = self._load(side.weights, em.load("i64", em.at("i64", x["edges"], v), 8))
                    self._store(best, 0, self._product(self._load(best, "0"), weight, backward=False))
                return [em.load("i64", em.at("i64", side.links, v), 8), str(em.add(count, 1))]

            def elsewhere(pair: list[str], root: str = root) -> str:
                return em.let(f"icmp ne i64 {pair[0]}, {root}")

            last, count = em.repeat([("i64", middle), ("i64", "0")], elsewhere, follow)
            keep(last, count)
            em.store("i64", str(em.add(count, 1)), args.place(em, word), 8)
        em.line("ret void")
        return [em]

    def _store(self, arrays: Sequence[str], at: str | int, element: Sequence[Value]) -> None:
        """Write an element to a place of arrays, one a component."""
        store_elements(self.low, self.rep.outer, arrays, at, element)

    def _product(self, walk: list[Value], rest: list[Value], *, backward: bool) -> list[Value]:
        """A walk that goes on."""
        factors = (rest, walk) if backward else (walk, rest)
        return self.low.evaluate(self.rep.mul, *factors, self.rep.outer)
