"""Bidirectional best-first search for one path, generated for a semiring whose ⊕ selects: ``search_pair``.

Walks from the source and walks to the target grow by turns, always in the search with the shorter queue (Pohl, 1971). A vertex that both
searches have reached joins two walks to a path. The best path is final once the best walks of both queues, joined, would be no better. Any
other path has an unseen edge, so its two ends are walks no better than the best of each queue.
"""

from __future__ import annotations

from collections import namedtuple
from typing import NamedTuple

from semiring.kernels.cpu.body import Variable
from semiring.kernels.cpu.emitter import I64, Emitter
from semiring.kernels.cpu.lowering import Value
from semiring.kernels.cpu.search import Heap, SearchKernel

__all__ = ["PairArrays", "PairKernel", "PairWords"]

PairWords = namedtuple(
    "PairWords",
    "n source target starts heads back_starts back_heads queue back_queue room before after edges way first last seen",
    defaults=(0, 0, 0),
)
"""The arguments, before `PairArrays` for each component; names with `back` belong to the reversed graph.

Each of the two queues has `room` entries. For vertices that the search from the source reaches, `before` receives the predecessor. For
vertices that the search to the target reaches, `after` receives the successor, and `edges` the number of the edge between in the
reversed graph. `way` receives the path from the meeting vertex on: `first` vertices back to the source, and from place n on `last`
vertices to the target. Both counts are 0 without a path. `seen` becomes the number of edges seen."""

PairArrays = namedtuple("PairArrays", "weights back_weights values back_values best")
"""The addresses of one component: the weights of the edges, n elements for each search, and the element of the best path."""


class _HalfSearch(NamedTuple):
    """One of the two searches: graph, queue, elements of the walks, and the predecessor (or successor) of each vertex."""

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
        """Emit the function."""
        em = self.em
        args, x, arrays = self._arguments(PairWords, PairArrays, {"n", "source", "target", "room"})

        def half(prefix: str, links: str) -> _HalfSearch:
            graph = x[prefix + "starts"], x[prefix + "heads"], arrays[prefix + "weights"]
            queue = Heap(self.low, self.rep.outer, x[prefix + "queue"], x["room"], self._better)
            return _HalfSearch(*graph, queue, arrays[prefix + "values"], x[links], bool(prefix))

        there, back = sides = half("", "before"), half("back_", "after")
        best, meet, seen = arrays["best"], Variable(em, -1), Variable(em)
        zero, one = self._units()
        for side, root in zip(sides, (x["source"], x["target"]), strict=True):
            em.loop(0, x["n"], 1, lambda v, _: self._store(side.row, v, zero))
            self._store(side.row, root, one)
            side.queue.push(root, one)
        self._store(best, 0, zero)

        def join(v: str, walk: list[Value], rest: list[Value], *, backward: bool) -> None:
            path = self._product(walk, rest, backward=backward)

            def take() -> None:
                self._store(best, 0, path)
                meet.set(v)

            em.branch(self._improves(path, self._load(best, "0")), take)

        def expand(side: _HalfSearch, other: _HalfSearch) -> None:
            u, walk = side.queue.pop()

            def edge(e: str, _: list[str]) -> None:
                v = em.get(I64, side.heads, e)
                offer = self._product(walk, self._load(side.weights, e), backward=side.backward)

                def take() -> None:
                    self._store(side.row, v, offer)
                    em.put(I64, u, side.links, v)
                    if side.backward:
                        em.put(I64, e, x["edges"], v)
                    side.queue.push(v, offer)
                    rest = self._load(other.row, v)
                    em.branch(self._better(rest, zero), lambda: join(v, offer, rest, backward=side.backward))

                em.branch(self._improves(offer, self._load(side.row, v)), take)

            self._expand((u, walk), side.row, side.starts, seen, edge)

        def more(_: list[str]) -> str:
            walks = [side.queue.entries.element("0") for side in sides]
            better = self._better(self._product(*walks, backward=False), self._load(best, "0"))
            return self.low.all_of([*(side.queue.filled() for side in sides), better])

        def turn(_: list[str]) -> list[str]:
            sizes = (side.queue.size.get() for side in sides)
            em.branch(em.let(f"icmp sle i64 {', '.join(sizes)}"), lambda: expand(there, back), lambda: expand(back, there))
            return []

        em.repeat([], more, turn)
        em.store("i64", seen.get(), args.place(em, "seen"), 8)
        middle = meet.get()
        em.returning(em.let(f"icmp slt i64 {middle}, 0"))
        # The path's element is multiplied edge by edge from the source on, as in rows, so that both round alike.
        self._store(best, 0, self._load(there.row, middle))
        for word, side, root, begin in (("first", there, x["source"], "0"), ("last", back, x["target"], x["n"])):

            def keep(v: str, count: str) -> None:
                em.put(I64, v, x["way"], em.add(begin, count))

            def follow(carried: list[str]) -> list[str]:
                v, count = carried
                keep(v, count)
                if side.backward:
                    weight = self._load(side.weights, em.get(I64, x["edges"], v))
                    self._store(best, 0, self._product(self._load(best, "0"), weight, backward=False))
                return [em.get(I64, side.links, v), str(em.add(count, 1))]

            last, count = em.repeat([("i64", middle), ("i64", "0")], lambda pair: em.let(f"icmp ne i64 {pair[0]}, {root}"), follow)
            keep(last, count)
            em.store("i64", str(em.add(count, 1)), args.place(em, word), 8)
        return [em.done()]
