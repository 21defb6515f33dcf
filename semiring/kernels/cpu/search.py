"""Best-first and label-correcting search of a sparse graph, generated for a semiring whose ⊕ selects.

Rows of the closure are found one after the other: the best elements from a vertex to all, edge by edge. ``search_best`` is best-first, with
a priority queue (`Heap`), as Dijkstra (1959); where no edge improves on 1, each vertex is final when it comes out. ``search_rounds`` is
label-correcting, in rounds (`Rounds`), each of walks with one more edge, as Bellman and Ford. Both are instances of Mohri's generic search
(2002) with different queues.

The queue holds vertices, each with the element of a walk to the vertex. A better walk pushes its vertex again; a popped entry is stale if
its element differs from the vertex's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

from semiring.kernels.cpu.arguments import Arguments
from semiring.kernels.cpu.emitter import ENTRY, I64, Emitter, Scalar
from semiring.kernels.cpu.lowering import Lowering, Value, improve, load_elements
from semiring.kernels.cpu.representation import Representation
from semiring.kernels.hardware import Target

__all__ = ["Rounds", "SearchArrays", "SearchKernel", "SearchWords", "search_name"]

Better = Callable[[Sequence[Value], Sequence[Value]], str]
"""Emits whether one element is strictly better than another."""

Entry = tuple[str, list[Value]]
"""A place or a vertex, and an element."""

_CHILDREN = 4
"""Children of an entry of the heap: their elements fill less than a cache line."""


class Queue(Protocol):
    """The queue of a search: entries of a vertex and an element, and what is emitted to push and to pop them."""

    def begin(self, vertex: str, element: Sequence[Value]) -> None:
        """Start a search with one entry, in an empty queue."""

    def push(self, vertex: str, element: Sequence[Value]) -> None:
        """Push an entry; where there is no room the function ends."""

    def filled(self) -> str:
        """Emit True if the queue has an entry."""
        ...

    def pop(self) -> tuple[str, list[Value]]:
        """Pop an entry of a queue that has one."""
        ...


class _Entries:
    """The memory of a queue: an array of vertices, and one for each component of an element."""

    def __init__(self, em: Emitter, scalars: Sequence[Scalar], start: str, room: str) -> None:
        self.em, self.scalars = em, scalars
        self.vertices, *self.elements = em.side_by_side(start, (I64, *scalars), room)

    def load(self, at: str) -> tuple[str, list[Value]]:
        """The entry at a place."""
        return self.vertex(at), self.element(at)

    def vertex(self, at: str) -> str:
        """Its vertex."""
        return self.em.load("i64", self.em.at("i64", self.vertices, at), 8)

    def element(self, at: str) -> list[Value]:
        """Its element."""
        em = self.em
        return [Value(em.load(s.ir, em.at(s.ir, a, at), s.bytes), s) for s, a in zip(self.scalars, self.elements, strict=True)]

    def store(self, at: str, vertex: str, element: Sequence[Value]) -> None:
        """Write an entry to a place."""
        em = self.em
        em.store("i64", vertex, em.at("i64", self.vertices, at), 8)
        for s, array, value in zip(self.scalars, self.elements, element, strict=True):
            em.store(s.ir, value.name, em.at(s.ir, array, at), s.bytes)


class Heap:
    """A priority queue, as a heap of four children: the best element comes out first.

    Parameters
    ----------
    low : Lowering
        Of single elements.
    scalars : sequence of Scalar
    start, room : str
        The address of the entries, and how many there may be.
    better : callable
    """

    def __init__(self, low: Lowering, scalars: Sequence[Scalar], start: str, room: str, better: Better) -> None:
        self.low, self.scalars, self.room, self.better = low, scalars, room, better
        self.entries = _Entries(low.em, scalars, start, room)
        self.size = low.em.variable(0)

    def begin(self, vertex: str, element: Sequence[Value]) -> None:
        """Start a search with one entry, in an empty queue."""
        self.push(vertex, element)

    def push(self, vertex: str, element: Sequence[Value]) -> None:
        """Push an entry; where there is no room the function ends."""
        em = self.low.em
        size = em.load("i64", self.size, 8)
        em.returning(em.let(f"icmp sge i64 {size}, {self.room}"))
        em.store("i64", str(em.add(size, 1)), self.size, 8)

        def parent(i: str) -> str:
            return em.let(f"sdiv i64 {em.sub(i, 1)}, {_CHILDREN}")  # of the first entry: itself

        def above(i: list[str]) -> str:
            better = self.better(element, self.entries.element(parent(*i)))
            return em.let(f"and i1 {better}, {em.let(f'icmp sgt i64 {i[0]}, 0')}")

        def rise(i: list[str]) -> list[str]:
            up = parent(*i)
            self.entries.store(i[0], *self.entries.load(up))
            return [up]

        (place,) = em.repeat([("i64", size)], above, rise)
        self.entries.store(place, vertex, element)

    def filled(self) -> str:
        """Emit True if the queue has an entry."""
        em = self.low.em
        return em.let(f"icmp ne i64 {em.load('i64', self.size, 8)}, 0")

    def pop(self) -> tuple[str, list[Value]]:
        """Pop the best entry."""
        em = self.low.em
        first = self.entries.load("0")
        last = str(em.sub(em.load("i64", self.size, 8), 1))
        em.store("i64", last, self.size, 8)
        vertex, element = self.entries.load(last)

        def below(i: str) -> list[str]:
            """Emit a place, its best child, and the element of the child."""
            # Beyond the end is the last entry, where it still stands, and it is not better than itself.
            first = em.add(em.mul(i, _CHILDREN), 1)
            rivals = [(place, self.entries.element(place)) for place in (em.smin(em.add(first, c), last) for c in range(_CHILDREN))]
            while len(rivals) > 1:  # a knockout: two comparisons one after the other instead of three
                rivals = [self._winner(*pair) for pair in zip(rivals[::2], rivals[1::2], strict=True)]
            ((child, best),) = rivals
            return [i, child, *(v.name for v in best)]

        def element_of(values: list[str]) -> list[Value]:
            return [Value(name, s) for name, s in zip(values[2:], self.scalars, strict=True)]

        def sink(values: list[str]) -> list[str]:
            i, child = values[:2]
            self.entries.store(i, self.entries.vertex(child), element_of(values))
            return below(child)

        def deeper(values: list[str]) -> str:
            # Where no entry is below, the best child is the entry itself, and a NaN that ⊕ made may seem better than itself.
            better = self.better(element_of(values), element)
            return em.let(f"and i1 {better}, {em.let(f'icmp sgt i64 {values[1]}, {values[0]}')}")

        carried = list(zip(("i64", "i64", *(s.ir for s in self.scalars)), below("0"), strict=True))
        place, *_ = em.repeat(carried, deeper, sink)
        self.entries.store(place, vertex, element)
        return first

    def _winner(self, one: Entry, other: Entry) -> Entry:
        """The better of two places with their elements, among equals the first."""
        (here, element), (there, rival) = one, other
        better = self.better(rival, element)
        best = [Value(self.low.select(better, s, r.name, e.name), s) for s, r, e in zip(self.scalars, rival, element, strict=True)]
        return self.low.em.select_i64(better, there, here, unpredictable=True), best


class Rounds:
    """A queue for label-correcting in rounds: what came in during one comes out in the next, in the same order; so many rounds at most.

    Parameters
    ----------
    low, scalars, start, room
        See `Heap`; there is as much room twice.
    rounds : str
    """

    def __init__(self, low: Lowering, scalars: Sequence[Scalar], start: str, room: str, rounds: str) -> None:
        em = self.em = low.em
        self.room, self.rounds = room, rounds
        self.entries = _Entries(em, scalars, start, str(em.mul(room, 2)))
        self.now, self.there, self.coming, self.taken, self.round = (em.variable(0) for _ in range(5))

    def begin(self, vertex: str, element: Sequence[Value]) -> None:
        """Start a search with one entry, in an empty queue."""
        self.em.store("i64", "0", self.round, 8)
        self.push(vertex, element)

    def push(self, vertex: str, element: Sequence[Value]) -> None:
        """Push an entry; where there is no room the function ends."""
        em = self.em
        coming = em.load("i64", self.coming, 8)
        em.returning(em.let(f"icmp sge i64 {coming}, {self.room}"))
        em.store("i64", str(em.add(coming, 1)), self.coming, 8)
        self.entries.store(str(em.add(self._next(), coming)), vertex, element)

    def filled(self) -> str:
        """Emit True if the queue has an entry."""
        em = self.em
        coming = em.let(f"icmp ne i64 {em.load('i64', self.coming, 8)}, 0")
        return em.let(f"select i1 {self._round_over()}, i1 {coming}, i1 true")

    def pop(self) -> tuple[str, list[Value]]:
        """Pop the next entry."""
        em = self.em

        def turn_over() -> None:
            coming = em.load("i64", self.coming, 8)
            number = em.load("i64", self.round, 8)
            em.returning(em.let(f"icmp sge i64 {number}, {self.rounds}"))
            for variable, value in (
                (self.round, em.add(number, 1)),
                (self.now, self._next()),
                (self.there, coming),
                (self.coming, 0),
                (self.taken, 0),
            ):
                em.store("i64", str(value), variable, 8)

        em.branch(self._round_over(), turn_over)
        taken = em.load("i64", self.taken, 8)
        em.store("i64", str(em.add(taken, 1)), self.taken, 8)
        return self.entries.load(str(em.add(em.load("i64", self.now, 8), taken)))

    def _round_over(self) -> str:
        """Emit True if all entries of this round were taken."""
        em = self.em
        return em.let(f"icmp eq i64 {em.load('i64', self.taken, 8)}, {em.load('i64', self.there, 8)}")

    def _next(self) -> str:
        """Emit the begin of the next round's entries."""
        return str(self.em.sub(self.room, self.em.load("i64", self.now, 8)))


class SearchWords(NamedTuple):
    """The arguments, before `SearchArrays` for each component.

    `sources` has the source of each row. Rows `first` … `last` − 1 are found; with `reflexive` the source begins with 1. `room` is the
    capacity of a queue, `turns` the limit of popped entries, and `rounds` the limit of rounds. `tree` is 0, or the output of the vertex
    before each vertex. `complete` receives the number of the first row that a limit stopped, or else `last`; `seen` receives the number of
    edges that all earlier searches visited.
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


class SearchArrays(NamedTuple):
    """The addresses of one component: the weights of the edges, and the rows of the result."""

    weights: int
    values: int


_POINTERS = {"sources", "starts", "heads", "queue"}


def search_name(*, best_first: bool, backward: bool) -> str:
    """The name of one of four functions; `backward` puts edges before walks."""
    return f"search_{'best' if best_first else 'rounds'}{'_backward' if backward else ''}"


class SearchKernel:
    """Generates the function called `name`."""

    def __init__(self, rep: Representation, target: Target, name: str) -> None:
        self.rep, self.name = rep, name
        self.em = Emitter(name, ENTRY)
        self.low = Lowering(self.em, target, 1, infinities=rep.inner_infinities)

    def functions(self) -> list[Emitter]:
        """The function."""
        em, rep = self.em, self.rep
        args = Arguments(SearchWords, SearchArrays, len(rep.outer))
        x = {name: (args.pointer if name in _POINTERS else args.load)(em, name) for name in SearchWords._fields}
        weights, values = ([args.pointer(em, (name, c)) for c in range(len(rep.outer))] for name in SearchArrays._fields)
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
            em.store("i64", em.load("i64", seen, 8), args.place(em, "seen"), 8)
            em.returning(queue.filled())
            em.store("i64", str(em.add(i, 1)), args.place(em, "complete"), 8)

        em.loop(x["first"], x["last"], 1, search)
        em.line("ret void")
        return [em]

    def _load(self, arrays: Sequence[str], i: str) -> list[Value]:
        """The element at a place of arrays, one a component."""
        return load_elements(self.low, self.rep.outer, arrays, i)

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
        """Emit True if old ⊕ new is not old."""
        return improve(self.low, self.rep.add, self.rep.outer, self.rep.extremum, old, new)[1]()

    def _improves(self, offer: Sequence[Value], old: Sequence[Value]) -> str:
        """Emit True if an offer is taken; tropical integers from half of ∞ on are ∞, so that no sum wraps."""
        better = self._better(offer, old)
        if self.rep.kind != "clamped":
            return better
        (s,), (o,) = self.rep.outer, offer
        finite = self.low.compare(
            "lt" if self.rep.extremum == "min" else "gt", s, o.name, s.constant(self.rep.inner_zero[0], self.low.width)
        )
        return self.low.all_of([better, finite])
