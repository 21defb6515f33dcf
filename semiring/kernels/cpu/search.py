"""Searches of a sparse graph, generated for a semiring whose ⊕ selects: best-first, in rounds, from both ends, and along tight edges.

The kernels find rows of the closure one by one: the best elements from a vertex to all, edge by edge. ``search_best`` is best-first, with a
priority queue (`Heap`), as Dijkstra (1959): if no edge improves on 1, a popped vertex is final. ``search_rounds`` is label-correcting in
rounds (`Rounds`), each of walks with one more edge, as Bellman and Ford. Both are Mohri's generic search (2002), with different queues.

A queue entry is a vertex and the element of a walk to this vertex. A better walk pushes the vertex again; an entry is stale if its element
is no longer the vertex's element.
"""

from __future__ import annotations

import functools
from collections import namedtuple
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from semiring.kernels.cpu.arguments import Arguments
from semiring.kernels.cpu.body import Variable
from semiring.kernels.cpu.emitter import ENTRY, I32, I64, Emitter, Scalar
from semiring.kernels.cpu.lowering import Lowering, Value, chosen, constants, improve, load_elements, store_elements, values
from semiring.kernels.cpu.representation import Representation
from semiring.kernels.hardware import Target

__all__ = [
    "Heap", "PairArrays", "PairKernel", "PairWords", "Rounds", "SearchArrays", "SearchKernel", "SearchWords", "TightArrays", "TightKernel",
    "TightWords", "search_name", "tight_lanes", "tight_name",
]  # fmt: skip

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

        with em.turns([("i64", size)], above) as ((place,), new):
            up = parent(place)
            self.entries.store(place, *self.entries.load(up))
            new.append(up)
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

        def deeper(carried: list[str]) -> str:
            # At a leaf the best child is the entry itself, and a NaN made by ⊕ may compare as better than itself.
            i, child, *best = carried
            better = self.better(values(best, self.scalars), element)
            return em.let(f"and i1 {better}, {em.let(f'icmp sgt i64 {child}, {i}')}")

        carried = list(zip(("i64", "i64", *(s.ir for s in self.scalars)), below("0"), strict=True))
        with em.turns(carried, deeper) as ((place, child, *best), new):
            self.entries.store(place, self.entries.vertex(child), values(best, self.scalars))
            new += below(child)
        self.entries.store(place, vertex, element)
        return first

    def _winner(self, one: Entry, other: Entry) -> Entry:
        """Return the better of two places with their elements, the first if equal."""
        (here, element), (there, rival) = one, other
        better = self.better(rival, element)
        return self.low.em.select_i64(better, there, here, unpredictable=True), chosen(self.low, self.scalars, better, rival, element)


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
        with em.when(self._round_over()):
            coming, number = self.coming.get(), self.round.get()
            em.returning(em.let(f"icmp sge i64 {number}, {self.rounds}"))
            self.round.set(em.add(number, 1))
            self.now.set(self._next())
            self.there.set(coming)
            self.coming.set(0)
            self.taken.set(0)
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

    words: Any = SearchWords
    arrays: Any = SearchArrays
    numbers = "first last n reflexive room turns rounds"

    def __init__(self, rep: Representation, target: Target, name: str, width: int = 1) -> None:
        self.rep, self.name = rep, name
        self.em = em = Emitter(name, ENTRY)
        self.low = Lowering(em, target, width, infinities=rep.inner_infinities)
        self.args = Arguments(self.words, self.arrays, len(rep.outer))
        self.x, self.each = self.args.words(em, self.numbers), self.args.addresses(em)
        self.zero, self.one = (constants(self.low, rep.outer, unit) for unit in (rep.zero, rep.one))

    def functions(self) -> list[Emitter]:
        """Emit the function."""
        em, x, rep = self.em, self.x, self.rep
        memory = self.low, rep.outer, x["queue"], x["room"]
        queue = Heap(*memory, self._better) if "best" in self.name else Rounds(*memory, x["rounds"])
        seen = Variable(em)
        with em.each(x["first"], x["last"]) as i:
            begin = em.mul(i, x["n"])
            row = [em.at(s.ir, array, begin) for s, array in zip(rep.outer, self.each["values"], strict=True)]
            source, turns = em.get(I64, x["sources"], i), x["turns"]
            with em.each(0, x["n"]) as v:
                self._store(row, v, self.zero)
            with em.when(em.let(f"icmp ne i64 {x['reflexive']}, 0")):
                self._store(row, source, self.one)
            queue.begin(source, self.one)

            def more(taken: list[str]) -> str:
                return em.let(f"and i1 {queue.filled()}, {em.let(f'icmp slt i64 {taken[0]}, {turns}')}")

            with em.turns([("i64", "0")], more) as ((taken,), new):
                u, walk = queue.pop()
                with self._expanded((u, walk), row, x["starts"], seen) as e:
                    v = em.get(I64, x["heads"], e)
                    offer = self._lengthened(walk, self._load(self.each["weights"], e))
                    with em.when(self._improves(offer, self._load(row, v))):
                        self._store(row, v, offer)
                        with em.when(em.let(f"icmp ne ptr {x['tree']}, null")):
                            self._put(x["tree"], em.add(begin, v), u)
                        queue.push(v, offer)
                new.append(str(em.add(taken, 1)))
            self._answer("seen", seen.get())
            em.returning(queue.filled())
            self._answer("complete", em.add(i, 1))
        return [em.done()]

    def _answer(self, word: str, value: str | int) -> None:
        self.em.store("i64", str(value), self.args.place(self.em, word), 8)

    def _is_not(self, root: str, values: Sequence[str]) -> str:
        return self.em.let(f"icmp ne i64 {values[0]}, {root}")

    def _edges(self, starts: str, u: str) -> tuple[str, str]:
        return self.em.get(I64, starts, u), self.em.get(I64, starts, self.em.add(u, 1))

    def _load(self, arrays: Sequence[str], i: str) -> list[Value]:
        return load_elements(self.low, self.rep.outer, arrays, i)

    def _store(self, arrays: Sequence[str], i: str | int, element: Sequence[Value]) -> None:
        store_elements(self.low, self.rep.outer, arrays, i, element)

    def _put(self, array: str, i: str | int, v: str) -> None:
        """Store the number of a vertex with 32 bits."""
        self.em.put(I32, self.em.let(f"trunc i64 {v} to i32"), array, i)

    @contextmanager
    def _expanded(self, entry: Entry, row: Sequence[str], starts: str, seen: Variable) -> Iterator[str]:
        """Emit the body for the edges of a popped vertex, unless the entry is stale, and add their number to `seen`."""
        em, (u, walk) = self.em, entry
        with em.when(em.let(f"xor i1 {self._better(self._load(row, u), walk)}, true")):
            first, last = self._edges(starts, u)
            seen.add(em.sub(last, first))
            with em.each(first, last) as e:
                yield e

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
    """Generates ``search_pair``: bidirectional best-first search for one path.

    Walks from the source and walks to the target grow by turns, always in the search with the shorter queue (Pohl, 1971). A vertex that
    both searches have reached joins two walks to a path. The best path is final once the best walks of both queues, joined, would be no
    better. Any other path has an unseen edge, so its two ends are walks no better than the best of each queue.
    """

    words, arrays, numbers = PairWords, PairArrays, "n source target room"

    def functions(self) -> list[Emitter]:
        """Emit the function."""
        em, x, arrays, zero = self.em, self.x, self.each, self.zero

        def half(prefix: str, links: str) -> _HalfSearch:
            graph = x[prefix + "starts"], x[prefix + "heads"], arrays[prefix + "weights"]
            queue = Heap(self.low, self.rep.outer, x[prefix + "queue"], x["room"], self._better)
            return _HalfSearch(*graph, queue, arrays[prefix + "values"], x[links], bool(prefix))

        there, back = sides = half("", "before"), half("back_", "after")
        best, meet, seen = arrays["best"], Variable(em, -1), Variable(em)
        for side, root in zip(sides, (x["source"], x["target"]), strict=True):
            with em.each(0, x["n"]) as v:
                self._store(side.row, v, zero)
            self._store(side.row, root, self.one)
            side.queue.push(root, self.one)
        self._store(best, 0, zero)

        def expand(side: _HalfSearch, other: _HalfSearch) -> None:
            u, walk = side.queue.pop()
            with self._expanded((u, walk), side.row, side.starts, seen) as e:
                v = em.get(I64, side.heads, e)
                offer = self._product(walk, self._load(side.weights, e), backward=side.backward)
                with em.when(self._improves(offer, self._load(side.row, v))):
                    self._store(side.row, v, offer)
                    em.put(I64, u, side.links, v)
                    if side.backward:
                        em.put(I64, e, x["edges"], v)
                    side.queue.push(v, offer)
                    rest = self._load(other.row, v)
                    with em.when(self._better(rest, zero)):
                        path = self._product(offer, rest, backward=side.backward)
                        with em.when(self._improves(path, self._load(best, "0"))):
                            self._store(best, 0, path)
                            meet.set(v)

        def more(_: list[str]) -> str:
            walks = [side.queue.entries.element("0") for side in sides]
            better = self._better(self._product(*walks, backward=False), self._load(best, "0"))
            return self.low.all_of([*(side.queue.filled() for side in sides), better])

        with em.turns([], more):
            sizes = (side.queue.size.get() for side in sides)
            with em.when(em.let(f"icmp sle i64 {', '.join(sizes)}")):
                expand(there, back)
            with em.otherwise():
                expand(back, there)
        self._answer("seen", seen.get())
        middle = meet.get()
        em.returning(em.let(f"icmp slt i64 {middle}, 0"))
        # The path's element is multiplied edge by edge from the source on, as in rows, so that both round alike.
        self._store(best, 0, self._load(there.row, middle))
        for word, side, root, begin in (("first", there, x["source"], "0"), ("last", back, x["target"], x["n"])):
            with em.turns([("i64", middle), ("i64", "0")], functools.partial(self._is_not, root)) as ((v, count), new):
                em.put(I64, v, x["way"], em.add(begin, count))
                if side.backward:
                    weight = self._load(side.weights, em.get(I64, x["edges"], v))
                    self._store(best, 0, self._product(self._load(best, "0"), weight, backward=False))
                new += [em.get(I64, side.links, v), str(em.add(count, 1))]
            em.put(I64, v, x["way"], em.add(begin, count))
            self._answer(word, em.add(count, 1))
        return [em.done()]


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
    """Generates predecessor trees of rows of the closure.

    In a row d from a source, d_v is the best offer d_u ⊗ a_uv over the edges to v, up to rounding. The edge of the best offer is tight.

    ``tight_trees`` takes several rows, one per lane, and finds for each v the tail u of the first tight edge. If each d_u is strictly
    better than d_v, no vertex precedes itself, and the result is a tree; positive edges of distances guarantee that. ``tight_search``
    takes a row without such a tree, for example with edges of weight 0, and grows a tree from the source along tight edges, breadth-first.
    Rounding can hide a tight edge; a row whose search then misses a vertex stays without a tree.
    """

    words, arrays, numbers = TightWords, TightArrays, "n first last"

    def __init__(self, rep: Representation, target: Target, name: str) -> None:
        self.width = tight_lanes(rep, target) if name.startswith("tight_trees") else 1
        super().__init__(rep, target, name, self.width)
        self.weights, self.back, self.values, self.scratch = self.each.values()

    def functions(self) -> list[Emitter]:
        """Emit the function."""
        if self.width > 1:
            self._trees()
        else:
            self._search()
        return [self.em.done()]

    def _vertex(self, array: str, i: str) -> str:
        return self.em.let(f"sext i32 {self.em.get(I32, array, i)} to i64")

    def _trees(self) -> None:
        """Grow the trees of the rows from the first to the last; surplus lanes repeat the last row."""
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

    def _before(self, v: str | int, roots: str) -> tuple[str, str]:
        """Return v's predecessor in each lane (−1: none), and a mask of lanes in which the predecessor is better than v, or not needed."""
        em, low, count, lanes = self.em, self.low, len(self.rep.outer), I32.vector(self.width)

        def panel(u: str) -> list[Value]:
            return self._load(self.scratch, str(em.mul(u, self.width)))

        def offer(e: str, held: list[str]) -> list[str]:
            u, best, walk = held[0], values(held[1 : 1 + count], self.rep.outer), values(held[1 + count :], self.rep.outer)
            tail = self._vertex(self.x["tails"], e)
            along = panel(tail)
            weight = [Value(em.splat(em.get(s, a, e), s, self.width), s) for s, a in zip(self.rep.outer, self.back, strict=True)]
            new, better = self._offered(along, weight, best)
            found = [*chosen(low, self.rep.outer, better, new, best), *chosen(low, self.rep.outer, better, along, walk)]
            return [low.select(better, I32, em.splat_word(tail, I32, self.width), u), *(v.name for v in found)]

        nothing = [(s.vector(self.width), z.name) for s, z in zip(self.rep.outer, self.zero, strict=True)]
        none = I32.constant(-1, self.width)
        u, *names = em.loop(*self._edges(self.x["back_starts"], str(v)), 1, offer, [(lanes, none), *nothing, *nothing])
        own = panel(str(v))
        other = low.compare("ne", I32, em.splat_word(str(v), I32, self.width), roots)
        there = low.all_of([self._better(own, self.zero), other])
        nearer = self._better(values(names[count:], self.rep.outer), own)
        return low.select(there, I32, u, none), low.any_of([nearer, low.negated(there)])

    def _offered(self, walk: list[Value], weight: list[Value], best: Sequence[Value]) -> tuple[list[Value], str]:
        """Return the offer of an edge after a walk, and if the offer is better than the best one so far."""
        new = self._lengthened(walk, weight)
        return new, self.low.all_of([self._improves(new, best), self._better(walk, self.zero)])  # ∞ plus a weight might wrap

    def _search(self) -> None:
        """Grow the tree of one row from its source along tight edges, breadth-first."""
        em, x, low, n = self.em, self.x, self.low, self.x["n"]
        begin = em.mul(x["first"], n)
        row = [em.at(s.ir, array, begin) for s, array in zip(self.rep.outer, self.values, strict=True)]
        tree, root = em.at("i32", x["tree"], begin), self._vertex(x["roots"], x["first"])
        reached, taken = Variable(em, 1), Variable(em, 1)

        def offer(e: str, held: list[str]) -> list[str]:
            best, walk = values(held, self.rep.outer), self._load(row, self._vertex(x["tails"], e))
            new, better = self._offered(walk, self._load(self.back, e), best)
            return [v.name for v in chosen(low, self.rep.outer, better, new, best)]

        with em.each(0, n) as v:
            nothing = [(s.ir, z.name) for s, z in zip(self.rep.outer, self.zero, strict=True)]
            best = em.loop(*self._edges(x["back_starts"], v), 1, offer, nothing)
            self._store(self.scratch, v, values(best, self.rep.outer))
            self._put(tree, v, "-1")
            with em.when(low.all_of([self._better(self._load(row, v), self.zero), self._is_not(root, [v])])):
                reached.add(1)
        self._put(x["queue"], "0", root)
        with em.turns([("i64", "0")], lambda place: em.let(f"icmp slt i64 {place[0]}, {taken.get()}")) as ((place,), new):
            u = self._vertex(x["queue"], place)
            walk = self._load(row, u)
            with em.each(*self._edges(x["starts"], u)) as e:
                v = self._vertex(x["heads"], e)
                with em.when(low.all_of([em.let(f"icmp slt i64 {self._vertex(tree, v)}, 0"), self._is_not(root, [v])])):
                    along = self._lengthened(walk, self._load(self.weights, e))
                    tight = low.negated(self._better(self._load(self.scratch, v), along))
                    with em.when(low.all_of([tight, self._improves(along, self.zero)])):
                        self._put(tree, v, u)
                        self._put(x["queue"], taken.get(), v)
                        taken.add(1)
            new.append(str(em.add(place, 1)))
        every = em.let(f"icmp eq i64 {taken.get()}, {reached.get()}")
        em.store("i8", em.let(f"zext i1 {every} to i8"), em.at("i8", x["grown"], x["first"]), 1)
