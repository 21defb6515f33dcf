"""Best-first and label-correcting search of a sparse graph, generated for a semiring whose ⊕ selects.

The kernels find rows of the closure one by one: the best elements from a vertex to all, edge by edge. ``search_best`` is best-first, with a
priority queue (`Heap`), as Dijkstra (1959): if no edge improves on 1, a popped vertex is final. ``search_rounds`` is label-correcting in
rounds (`Rounds`), each of walks with one more edge, as Bellman and Ford. Both are Mohri's generic search (2002), with different queues.

A queue entry is a vertex and the element of a walk to this vertex. A better walk pushes the vertex again; an entry is stale if its element
is no longer the vertex's element.
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from semiring.kernels.cpu.arguments import Arguments
from semiring.kernels.cpu.body import Variable
from semiring.kernels.cpu.emitter import ENTRY, I64, Emitter, Scalar
from semiring.kernels.cpu.lowering import Lowering, Value, improve, load_elements, store_elements, values
from semiring.kernels.cpu.representation import Representation
from semiring.kernels.hardware import Target

__all__ = ["Rounds", "SearchArrays", "SearchKernel", "SearchWords", "search_name"]

Better = Callable[[Sequence[Value], Sequence[Value]], str]
"""Emits a test: the first element is strictly better than the second."""

Entry = tuple[str, list[Value]]
"""A place or a vertex, and an element."""

_CHILDREN = 4
"""The children of a heap entry: their elements fill less than a cache line."""


class _Entries:
    """The memory of a queue: an array of vertices, and an array for each component of an element."""

    def __init__(self, low: Lowering, scalars: Sequence[Scalar], start: str, room: str) -> None:
        self.low, self.scalars = low, scalars
        self.vertices, *self.elements = low.em.side_by_side(start, (I64, *scalars), room)

    def load(self, at: str) -> Entry:
        return self.vertex(at), self.element(at)

    def vertex(self, at: str) -> str:
        return self.low.em.get(I64, self.vertices, at)

    def element(self, at: str) -> list[Value]:
        return load_elements(self.low, self.scalars, self.elements, at)

    def store(self, at: str, vertex: str, element: Sequence[Value]) -> None:
        self.low.em.put(I64, vertex, self.vertices, at)
        store_elements(self.low, self.scalars, self.elements, at, element)


class Heap:
    """A priority queue, as a heap with four children per entry: the best element comes out first.

    The address `start` has memory for `room` entries, of a vertex and elements of the types `scalars`. `low` has width 1.
    """

    def __init__(self, low: Lowering, scalars: Sequence[Scalar], start: str, room: str, better: Better) -> None:
        self.low, self.scalars, self.room, self.better = low, scalars, room, better
        self.entries = _Entries(low, scalars, start, room)
        self.size = Variable(low.em)

    def push(self, vertex: str, element: Sequence[Value]) -> None:
        """Push an entry; without room, return from the function."""
        em, size = self.low.em, self.size.get()
        em.returning(em.let(f"icmp sge i64 {size}, {self.room}"))
        self.size.set(em.add(size, 1))

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

    begin = push

    def filled(self) -> str:
        """Test for an entry."""
        return self.low.em.let(f"icmp ne i64 {self.size.get()}, 0")

    def pop(self) -> Entry:
        """Pop the best entry of a queue that is not empty."""
        em, first = self.low.em, self.entries.load("0")
        last = str(em.sub(self.size.get(), 1))
        self.size.set(last)
        vertex, element = self.entries.load(last)

        def below(i: str) -> list[str]:
            """Return a place, its best child, and the child's element."""
            # Places beyond the end are clamped to the last entry, still in memory and no better than itself.
            first = em.add(em.mul(i, _CHILDREN), 1)
            rivals = [(place, self.entries.element(place)) for place in (em.smin(em.add(first, c), last) for c in range(_CHILDREN))]
            while len(rivals) > 1:  # a knockout: two dependent comparisons instead of three
                rivals = [self._winner(*pair) for pair in zip(rivals[::2], rivals[1::2], strict=True)]
            ((child, best),) = rivals
            return [i, child, *(v.name for v in best)]

        def sink(carried: list[str]) -> list[str]:
            i, child, *best = carried
            self.entries.store(i, self.entries.vertex(child), values(best, self.scalars))
            return below(child)

        def deeper(carried: list[str]) -> str:
            # At a leaf the best child is the entry itself, and a NaN made by ⊕ may compare as better than itself.
            i, child, *best = carried
            better = self.better(values(best, self.scalars), element)
            return em.let(f"and i1 {better}, {em.let(f'icmp sgt i64 {child}, {i}')}")

        carried = list(zip(("i64", "i64", *(s.ir for s in self.scalars)), below("0"), strict=True))
        place, *_ = em.repeat(carried, deeper, sink)
        self.entries.store(place, vertex, element)
        return first

    def _winner(self, one: Entry, other: Entry) -> Entry:
        """Return the better of two places with their elements, the first if equal."""
        (here, element), (there, rival) = one, other
        better = self.better(rival, element)
        best = [Value(self.low.select(better, s, r.name, e.name), s) for s, r, e in zip(self.scalars, rival, element, strict=True)]
        return self.low.em.select_i64(better, there, here, unpredictable=True), best


class Rounds:
    """A queue for label-correcting in at most `rounds` rounds: entries pushed in one round are popped in the next, in the same order.

    The address `start` has memory for twice `room` entries, see `Heap`.
    """

    def __init__(self, low: Lowering, scalars: Sequence[Scalar], start: str, room: str, rounds: str) -> None:
        em = self.em = low.em
        self.room, self.rounds = room, rounds
        self.entries = _Entries(low, scalars, start, str(em.mul(room, 2)))
        self.now, self.there, self.coming, self.taken, self.round = (Variable(em) for _ in range(5))

    def begin(self, vertex: str, element: Sequence[Value]) -> None:
        """Start a search with one entry, in an empty queue."""
        self.round.set(0)
        self.push(vertex, element)

    def push(self, vertex: str, element: Sequence[Value]) -> None:
        """Push an entry; without room, return from the function."""
        em, coming = self.em, self.coming.get()
        em.returning(em.let(f"icmp sge i64 {coming}, {self.room}"))
        self.coming.set(em.add(coming, 1))
        self.entries.store(str(em.add(self._next(), coming)), vertex, element)

    def filled(self) -> str:
        """Test for an entry."""
        coming = self.em.let(f"icmp ne i64 {self.coming.get()}, 0")
        return self.em.let(f"select i1 {self._round_over()}, i1 {coming}, i1 true")

    def pop(self) -> Entry:
        """Pop the next entry; without a round left, return from the function."""
        em = self.em

        def turn_over() -> None:
            coming, number = self.coming.get(), self.round.get()
            em.returning(em.let(f"icmp sge i64 {number}, {self.rounds}"))
            self.round.set(em.add(number, 1))
            self.now.set(self._next())
            self.there.set(coming)
            self.coming.set(0)
            self.taken.set(0)

        em.branch(self._round_over(), turn_over)
        taken = self.taken.get()
        self.taken.set(em.add(taken, 1))
        return self.entries.load(str(em.add(self.now.get(), taken)))

    def _round_over(self) -> str:
        return self.em.let(f"icmp eq i64 {self.taken.get()}, {self.there.get()}")

    def _next(self) -> str:
        """Return the place where the next round's entries begin."""
        return str(self.em.sub(self.room, self.now.get()))


SearchWords = namedtuple(
    "SearchWords", "sources first last n reflexive starts heads queue room turns rounds tree complete seen", defaults=(0,)
)
"""The arguments, before `SearchArrays` for each component.

Rows `first` … `last` − 1 are found, each from the vertex in `sources`, whose element starts as 1 if `reflexive`. A queue has `room`
entries; a search ends after `turns` pops, or after `rounds` rounds. `tree`, unless 0, receives each vertex's predecessor. `complete`
becomes the first row stopped by a limit, or else `last`; `seen` the number of edges seen by all searches."""

SearchArrays = namedtuple("SearchArrays", "weights values")
"""The addresses of one component: the weights of the edges, and the rows of the result."""


def search_name(*, best_first: bool, backward: bool) -> str:
    """Return the name of one of four functions; `backward` puts edges before walks."""
    return f"search_{'best' if best_first else 'rounds'}{'_backward' if backward else ''}"


class SearchKernel:
    """Generates the function called `name`."""

    def __init__(self, rep: Representation, target: Target, name: str) -> None:
        self.rep, self.name = rep, name
        self.em = Emitter(name, ENTRY)
        self.low = Lowering(self.em, target, 1, infinities=rep.inner_infinities)

    def functions(self) -> list[Emitter]:
        """Emit the function."""
        em, rep = self.em, self.rep
        numbers = set(SearchWords._fields) - {"sources", "starts", "heads", "queue"}
        args, x, arrays = self._arguments(SearchWords, SearchArrays, numbers)
        weights, results = arrays.values()
        memory = self.low, rep.outer, x["queue"], x["room"]
        queue = Heap(*memory, self._better) if "best" in self.name else Rounds(*memory, x["rounds"])
        turns, seen = x["turns"], Variable(em)
        zero, one = self._units()

        def search(i: str, _: list[str]) -> None:
            begin = em.mul(i, x["n"])
            row = [em.at(s.ir, array, begin) for s, array in zip(rep.outer, results, strict=True)]
            source = em.get(I64, x["sources"], i)
            em.loop(0, x["n"], 1, lambda v, _: self._store(row, v, zero))
            em.branch(em.let(f"icmp ne i64 {x['reflexive']}, 0"), lambda: self._store(row, source, one))
            queue.begin(source, one)

            def turn(taken: list[str]) -> list[str]:
                u, walk = queue.pop()

                def edge(e: str, _: list[str]) -> None:
                    v = em.get(I64, x["heads"], e)
                    offer = self._lengthened(walk, self._load(weights, e))

                    def take() -> None:
                        self._store(row, v, offer)
                        em.branch(em.let(f"icmp ne i64 {x['tree']}, 0"), lambda: self._remember(x["tree"], em.add(begin, v), u))
                        queue.push(v, offer)

                    em.branch(self._improves(offer, self._load(row, v)), take)

                self._expand((u, walk), row, x["starts"], seen, edge)
                return [str(em.add(taken[0], 1))]

            def more(taken: list[str]) -> str:
                return em.let(f"and i1 {queue.filled()}, {em.let(f'icmp slt i64 {taken[0]}, {turns}')}")

            em.repeat([("i64", "0")], more, turn)
            em.store("i64", seen.get(), args.place(em, "seen"), 8)
            em.returning(queue.filled())
            em.store("i64", str(em.add(i, 1)), args.place(em, "complete"), 8)

        em.loop(x["first"], x["last"], 1, search)
        return [em.done()]

    def _arguments(self, words: Any, arrays: Any, numbers: set[str]) -> tuple[Arguments, dict[str, str], dict[str, list[str]]]:
        """Load the words, and the addresses of all components' arrays."""
        args, components = Arguments(words, arrays, len(self.rep.outer)), range(len(self.rep.outer))
        x = {name: (args.load if name in numbers else args.pointer)(self.em, name) for name in words._fields}
        return args, x, {name: [args.pointer(self.em, (name, c)) for c in components] for name in arrays._fields}

    def _units(self) -> Iterator[list[Value]]:
        return ([Value(s.literal(v), s) for v, s in zip(unit, self.rep.outer, strict=True)] for unit in (self.rep.zero, self.rep.one))

    def _edges(self, starts: str, u: str) -> tuple[str, str]:
        first, last = (self.em.get(I64, starts, i) for i in (u, self.em.add(u, 1)))
        return first, last

    def _load(self, arrays: Sequence[str], i: str) -> list[Value]:
        return load_elements(self.low, self.rep.outer, arrays, i)

    def _store(self, arrays: Sequence[str], i: str | int, element: Sequence[Value]) -> None:
        store_elements(self.low, self.rep.outer, arrays, i, element)

    def _expand(self, entry: Entry, row: Sequence[str], starts: str, seen: Variable, edge: Callable[[str, list[str]], None]) -> None:
        """Loop over the edges of a popped vertex, unless the entry is stale, and add their number to `seen`."""
        em, (u, walk) = self.em, entry

        def leave() -> None:
            first, last = self._edges(starts, u)
            seen.add(em.sub(last, first))
            em.loop(first, last, 1, edge)

        em.branch(em.let(f"xor i1 {self._better(self._load(row, u), walk)}, true"), leave)

    def _remember(self, tree: str, entry: str | int, u: str) -> None:
        """Store u as the predecessor in an entry of the trees."""
        em = self.em
        place = em.at("i32", em.let(f"inttoptr i64 {tree} to ptr"), entry)
        em.store("i32", em.let(f"trunc i64 {u} to i32"), place, 4)

    def _lengthened(self, walk: list[Value], weight: list[Value]) -> list[Value]:
        return self._product(walk, weight, backward=self.name.endswith("_backward"))

    def _product(self, walk: list[Value], rest: list[Value], *, backward: bool) -> list[Value]:
        factors = (rest, walk) if backward else (walk, rest)
        return self.low.evaluate(self.rep.mul, *factors, self.rep.outer)

    def _better(self, new: Sequence[Value], old: Sequence[Value]) -> str:
        """Test if old ⊕ new is not old."""
        return improve(self.low, self.rep.add, self.rep.outer, self.rep.extremum, old, new)[1]()

    def _improves(self, offer: Sequence[Value], old: Sequence[Value]) -> str:
        """Test if an offer is taken; tropical integers are ∞ from half the range on, so that no sum of two wraps."""
        better = self._better(offer, old)
        if self.rep.kind != "clamped":
            return better
        (s,), (o,), order = self.rep.outer, offer, "lt" if self.rep.extremum == "min" else "gt"
        finite = self.low.compare(order, s, o.name, s.constant(self.rep.inner_zero[0], self.low.width))
        return self.low.all_of([better, finite])
