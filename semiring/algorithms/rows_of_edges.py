"""Single-source best paths in a sparse graph: best-first search (Dijkstra), breadth-first search, or label-correcting rounds.

A row of the closure holds the weights of best paths from one source. D ← I ⊕ Δ with Δ = I at first; then Δ ← Δ ⊗ A and D ← D ⊕ Δ, and Δ
keeps only the entries that changed D. If D_v ⊕ Δ_v = D_v, then by distributivity no continuation of Δ_v changes a continuation of D_v.
After k rounds Δ has walks of exactly k edges. Without a cycle c of 1 ⊕ c ≠ 1, Δ is empty after n rounds: every longer walk repeats a
vertex, and the walk without the cycle absorbs it. ⊕ need not be idempotent. For distances these label-correcting rounds are the algorithm
of Bellman and Ford, and for reachability breadth-first search.

Compiled searches (`semiring.algorithms.search`) do the same, and extend one walk at a time if ⊕ selects a walk and no edge improves on 1:
for distances Dijkstra's algorithm. Components are searched one after the other if ⊕ selects no walk, or if rounds take long. Equal edges
w need no priority queue: w^k ⊕ w^(k+1) = w^k makes the rounds a breadth-first search. Compiled searches do not diagnose cycles: the rounds
above compute an incomplete row again, and find the cycle.

Examples
--------
>>> from semiring import MIN_PLUS
>>> from semiring.algorithms.search import searches_for
>>> tails, heads, lengths = np.array([0, 0, 1, 1, 2, 2, 3]), np.array([1, 3, 0, 2, 0, 3, 0]), np.array([3.0, 7, 8, 2, 5, 1, 2])
>>> edges = CSR.of(tails, heads, (lengths,), 4, (np.inf,))
>>> search_order(MIN_PLUS, edges)
'best'
>>> sources, tree = np.array([1, 0]), np.full((2, 4), -1, dtype=np.int32)
>>> rows_of_edges(MIN_PLUS, edges, sources, tree=tree, searches=searches_for(MIN_PLUS, edges.dtypes, "cpu"))
(array([[5., 0., 2., 3.],
       [0., 3., 5., 6.]]),)
>>> tree  # the vertex before each one
array([[ 3, -1,  1,  2],
       [-1,  0,  1,  2]], dtype=int32)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Literal, NamedTuple

import numpy as np

from semiring.algebra.definition import Semiring
from semiring.algorithms.bellman_ford import (
    adds_along_paths,
    better,
    compared,
    exact_weight,
    filled,
    find_cycle,
    inverse,
    potentials_by_components,
    reweighed,
)
from semiring.algorithms.csr import CSR, combine_runs, present
from semiring.algorithms.divergence import Diagnosis, extremum_of
from semiring.algorithms.predecessors import roots_of
from semiring.algorithms.search import Searches, searches_for
from semiring.algorithms.tight_edges import trees_along_tight_edges
from semiring.arrays.conversion import Array, Values
from semiring.arrays.pieces import HOST, slices
from semiring.common.forks import cached_property
from semiring.common.progress import Meter
from semiring.kernels.limits import half_range
from semiring.kernels.machine import FEW_STEPS, HOPS
from semiring.kernels.operations import Operations, operations_for
from semiring.kernels.overflow.closures import guard_for, statistics_of

__all__ = ["MANY", "Order", "Reach", "best_path", "grow_trees", "pays", "reach", "rows_of_edges", "search_order"]

Order = Literal["best", "levels", "rounds"]  # best first, breadth first, or label-correcting rounds

MANY = 64
"""Number of searches beyond which a sample of searches costs little."""

_SAMPLE, _FEW = 8, 4
"""Searches in a sample; half as many in a graph with more than `_FEW` edges a vertex."""

_SHORT_PATIENCE = 4
"""Queue entries per edge after which a search in rounds gives up for potentials."""

_PATIENCE = 32
"""Rounds before the search for a divergent cycle."""


def rows_of_edges(
    semiring: Semiring,  # with the laws of a closure and no star: all cycles within reach have 1 ⊕ c = 1
    edges: CSR,
    sources: Array,
    *,
    reflexive: bool = True,
    backward: bool = False,  # find columns instead, as rows of the result: the elements from all vertices to each source
    tree: Array | None = None,  # output, int32 of shape (s, n)
    name: Callable[[int], Any] = int,  # the caller's name of a vertex, for errors
    searches: Searches | None = None,  # compiled searches, see `searches_for`
    order: Order | None = None,  # the result of `search_order`, if known
    meter: Meter | None = None,  # counts n + m steps for each search
    limit: tuple[Any, ...] | None = None,  # the worst element that is wanted; best-first searches end there
    tolerance: float = 0.0,  # see `Diagnosis`
) -> Values:
    """Find best paths from each of s sources: rows of A*, or of A⁺, of shape (s, n).

    `tree` receives the vertex before each vertex on the path from the source (`backward`: after), −1 for none. Rows are trees whose roots
    are the sources; ⊕ must be selective. A divergent cycle within reach raises `DivergenceError`, and for min-plus `NegativeCycleError`;
    `OverflowRiskError` is raised as for the closure.

    Steps a source: O(m log m) by best-first search, O(m) by breadth-first search, and O(r·m) or fewer by rounds. Paths have at most
    r edges. Memory for the result, and scratch for the edges on each thread (without compiled searches for up to a million edges). Compiled
    searches and rounds give the same elements, floats bit for bit unless rounding makes a cycle improve; tying paths may differ. Floats
    with negative weights are within n·ε of the largest magnitude, as in the closure. If only rounding makes a cycle improve, compiled
    searches go by potentials, and rounds stop after n.
    """
    guard = guard_for(semiring, edges.dtypes, edges.n - 1 if reflexive else edges.n)
    guard.before(edges.statistics or statistics_of(semiring, edges.weights))
    search = _Search(semiring, edges, reflexive, backward, name, order or search_order(semiring, edges), limit, tolerance)
    shape = len(sources), edges.n
    if len(edges.heads) and searches is not None:
        results = tuple([np.empty(shape, d) for d in edges.dtypes])
        rest: Sequence[int] = search.compiled(searches, sources, results, tree, meter)
        if search.doubtful:
            rest = search.by_potentials(searches, rest, sources, results, tree, meter)
        left = [slice(i, i + 1) for i in rest]
    else:
        results = tuple([filled(shape, z, d) for z, d in zip(edges.zero, edges.dtypes, strict=True)])
        left = list(slices(len(sources), max(edges.n, len(edges.heads)), HOST))
    for rows in left:
        search.run(sources[rows], tuple(v[rows] for v in results), None if tree is None else tree[rows])
        if meter is not None:
            meter.add((rows.stop - rows.start) * (edges.n + len(edges.heads)))
    if tree is not None and reflexive and search.doubtful and any(d.kind == "f" for d in edges.dtypes):
        search.mend(sources, results, tree, searches)
    guard.after(results, tree)
    return results


def search_order(semiring: Semiring, edges: CSR) -> Order:
    """Return the order of searches: "levels" for equal edges, "best" for edges that do not improve on 1, else "rounds".

    If 1 ⊕ a = 1 for each edge, the same holds for products of edges, so no cycle diverges.
    """
    if not len(edges.heads):
        return "best"
    if edges.statistics and (extremum := extremum_of(semiring)) is not None:
        (found,), (one,) = edges.statistics, semiring.identities(edges.dtypes)[1]
        if found.finite is not None and not (found.positive_infinity or found.negative_infinity):
            least, greatest = found.finite
            if least < one if extremum is np.fmin else greatest > one:
                return "rounds"
            return "levels" if least == greatest else "best"
    if not operations_for(semiring, edges.dtypes).harmless(edges.weights):
        return "rounds"
    return "levels" if all(bool((w == w[0]).all()) for w in edges.weights) else "best"


class Reach(NamedTuple):
    """The part of a graph that searches visit."""

    found: float = 1.0  # share of all vertices that a search finds
    seen: float | None = None  # average visits of a search to each edge; None if unknown


def reach(
    semiring: Semiring,
    edges: CSR,
    count: int,
    order: Order,
    device: str = "cpu",
    threads: int | None = None,
    limit: tuple[Any, ...] | None = None,
) -> Reach:
    """Measure the part of the graph that searches visit, by a few of `count` searches; unknown if `count` is small."""
    if count <= MANY:
        return Reach()
    sample = min(_SAMPLE if len(edges.heads) <= _FEW * edges.n else _SAMPLE // 2, count // 16)
    searches = searches_for(semiring, edges.dtypes, device, threads)
    if order == "levels" and searches is not None:
        sample = MANY  # searched together, a bit for each source
    sources = (2 * np.arange(sample) + 1) * edges.n // (2 * sample)
    if searches is None:
        return Reach(sum(len(edges.reachable(sources[i : i + 1])) for i in range(sample)) / (edges.n * sample))
    found = tuple([np.empty((sample, edges.n), d) for d in edges.dtypes])
    search = _Search(semiring, edges, True, False, int, order, limit)
    if search.compiled(searches, sources, found, None):
        return Reach()  # a cycle improves; the searches will report the cycle
    return Reach(float(present(found, edges.zero).mean()), search.seen / (sample * max(1, len(edges.heads))))


class _Search:
    """Label-correcting rounds from several sources at a time. A place is the number of an entry of the result: row · n + vertex."""

    seen = 0  # edges visited by compiled searches

    def __init__(
        self,
        semiring: Semiring,
        edges: CSR,
        reflexive: bool,
        backward: bool,
        name: Callable[[int], Any],
        order: Order,
        limit: tuple[Any, ...] | None = None,
        tolerance: float = 0.0,
    ) -> None:
        self.tolerance = tolerance
        self.order, self.doubtful = order, order == "rounds"  # only then a cycle may diverge
        self.limit = None if self.doubtful else limit  # a path may exceed a limit, and return
        if self.limit is not None:
            self.order = "best"
        self.semiring, self.given, self.reflexive, self.backward, self.name = semiring, edges, reflexive, backward, name
        self.edges = edges.transposed() if backward else edges

    @cached_property
    def operations(self) -> Operations:
        return operations_for(self.semiring, self.edges.dtypes)

    def compiled(self, searches: Searches, sources: Array, results: Values, tree: Array | None, meter: Meter | None = None) -> range:
        """Fill rows by compiled searches; return the rows left as zeros because a cycle may diverge."""
        graph = self.edges.starts, self.edges.heads, self.edges.weights
        how: dict[str, Any] = {"reflexive": self.reflexive, "meter": meter}
        many = len(sources) >= HOPS and len(sources) * (self.edges.n + len(self.edges.heads)) > FEW_STEPS
        if self.order == "levels" and searches.selective and tree is None and many:

            def by_hops(most: int) -> Values:  # the elements of no path and of paths of 0 to `most` edges, all equal
                line = searches.line(tuple([w[:1].repeat(most) for w in self.edges.weights]), backward=self.backward)
                return tuple([np.append(v.dtype.type(z), v) for z, v in zip(self.edges.zero, line, strict=True)])

            looked = searches.by_hops(graph[:2], sources, results, by_hops, **how)
            if looked is not None:
                self.seen = looked
                return range(0)
        how["backward"] = self.backward
        quick = _SHORT_PATIENCE if self.doubtful else None
        order: Any = "components" if not searches.selective else "best" if self.order == "best" else "rounds"
        complete, self.seen = searches.rows(graph, sources, results, tree, order=order, patience=quick, limit=self.limit, **how)
        if complete < len(sources) and self.doubtful:  # in topological order; potentials serve long searches better
            patience, rest = _SHORT_PATIENCE if adds_along_paths(self.semiring) else None, slice(complete, None)
            values, trees = tuple([v[rest] for v in results]), None if tree is None else tree[rest]
            if trees is not None:
                trees[...] = -1
            more, seen = searches.rows(graph, sources[rest], values, trees, order="components", patience=patience, **how)
            complete, self.seen = complete + more, self.seen + seen
        if complete == len(sources):
            return range(0)
        left = slice(complete, None)
        _put(results, left, self.operations.zero)
        if tree is not None:
            tree[left] = -1
        return range(complete, len(sources))

    def by_potentials(
        self, searches: Searches, rest: Sequence[int], sources: Array, results: Values, tree: Array | None, meter: Meter | None
    ) -> Sequence[int]:
        """Fill rows whose search takes too long, by potentials (Johnson, 1977); return the rows left because no potentials are found.

        No reweighed edge improves on 1, and rounding cannot make a cycle improve.
        """
        if not rest:
            return rest
        left = np.array(rest, dtype=np.intp)
        vertices = self.edges.reachable(sources[left])
        ahead, tolerated = potentials_by_components(self.semiring, self.edges.induced(vertices), searches), False
        if ahead is not None:
            found: Values = (ahead,)
        elif all(d.kind == "f" for d in self.edges.dtypes):
            diagnosis, arrays, start = self._reached(sources[left])
            found = diagnosis.potentials(start, arrays, None, np.arange(len(vertices)))
            tolerated = diagnosis.tolerated
        else:
            return rest
        inverted = inverse(self.semiring, found)
        if inverted is None:
            return rest
        if ahead is None and self.backward:  # the diagnosis reads the given graph, not its transpose
            found, inverted = inverted, found
        p, back = (tuple(np.full(self.edges.n, o, v.dtype) for o, v in zip(self.operations.one, found, strict=True)) for _ in range(2))
        _put(p, vertices, found)
        _put(back, vertices, inverted)
        graph = reweighed(self.semiring, self.edges, p, back)
        how: dict[str, Any] = {"searches": searches, "order": "best", "meter": meter}
        for part in slices(len(left), self.edges.n, HOST):
            some, ends = left[part], sources[left[part]]
            trees = np.full((len(some), self.edges.n), -1, np.int32) if tolerated else None if tree is None else tree[some]
            rows = rows_of_edges(self.semiring, graph, ends, reflexive=self.reflexive, tree=trees, **how)
            moved = self._lengthened(self._lengthened(tuple(v[ends, None] for v in back), rows), p)
            if tolerated and trees is not None:  # some reweighed edges improved on 1, which their potentials do not cancel
                moved = self._along(trees, ends, moved)
            there = present(rows, self.edges.zero)
            _put(results, some, tuple(np.where(there, m, v) for v, m in zip(rows, moved, strict=True)))
            if self.reflexive:  # p⁻¹ ⊗ p may be rounded
                _put(results, (some, ends), self.operations.one)
            if tree is not None:
                tree[some] = trees
        return ()

    def _along(self, trees: Array, roots: Array, rows: Values) -> Values:
        """Return rows with the elements of the paths in their trees, edge by edge; O(s·n) for each edge of the longest path."""
        i, v = np.nonzero(trees >= 0)
        u = trees[i, v]
        edges = tuple([w[np.searchsorted(self.edges.places, u.astype(np.int64) * self.edges.n + v)] for w in self.edges.weights])
        rows, walks, known = tuple([w.copy() for w in rows]), tuple([w.copy() for w in rows]), np.zeros(trees.shape, bool)
        known[np.arange(len(roots)), roots] = True
        for walk, one in zip(walks, self.operations.one, strict=True):
            walk[known] = one
        while len(i):
            ready = known[i, u]
            if not ready.any():  # rounding has bent the rest into a circle
                break
            at, left = (i[ready], v[ready]), ~ready
            offers = self._lengthened(tuple([w[i[ready], u[ready]] for w in walks]), tuple([e[ready] for e in edges]))
            for row, walk, offer in zip(rows, walks, offers, strict=True):
                row[at] = offer
                walk[at] = np.where(v[ready] == roots[i[ready]], walk[at], offer)
            known[at] = True
            i, v, u, edges = i[left], v[left], u[left], tuple([e[left] for e in edges])
        return rows

    def run(self, sources: Array, results: Values, tree: Array | None) -> None:
        """Fill contiguous rows of zeros with the elements from each source."""
        n = self.edges.n
        values = tuple(v.reshape(-1) for v in results)
        parents = None if tree is None else tree.reshape(-1)
        places = np.arange(len(sources)) * n + sources
        delta = tuple(filled(len(sources), o, v.dtype) for o, v in zip(self.operations.one, values, strict=True))
        if self.reflexive:
            _put(values, places, delta)
        for number in range(1, n + 2):
            places, delta = self._round(places, delta, values, parents)
            if not len(places):
                return
            if number == _PATIENCE and self.doubtful:
                diagnosis, arrays, start = self._reached(sources[places[:1] // n])
                cycle, _ = find_cycle(self.semiring, arrays, start)
                if cycle is not None and self.tolerance:
                    diagnosis.potentials(start, arrays, None, np.arange(arrays[0].shape[0]))
                elif cycle is not None:
                    raise diagnosis.error(cycle, exact_weight(self.semiring, arrays, [*cycle, cycle[0]]))
        if self.doubtful:  # if only rounding keeps the rounds going, walks of n edges are as exact as the arithmetic; else this raises
            diagnosis, arrays, start = self._reached(sources[places[:1] // n])
            diagnosis.potentials(0, arrays, None, np.array([start]))

    def _round(self, places: Array, delta: Values, values: Values, parents: Array | None) -> tuple[Array, Values]:
        """Extend each walk of the last round by an edge; return the changed places and the new walks."""
        tails = places % self.edges.n
        position, number = self.edges.leaving(tails)
        ends = (places - tails)[position] + self.edges.heads[number]
        offers = self._lengthened(tuple(d[position] for d in delta), tuple(w[number] for w in self.edges.weights))
        changed, _ = compared(self.operations, tuple(v[ends] for v in values), offers)
        order = np.flatnonzero(changed)
        order = order[np.argsort(ends[order], kind="stable")]
        ends, offers = ends[order], tuple(o[order] for o in offers)
        if parents is None:
            ends, offers = combine_runs(ends, offers, self._sum)
        else:
            ends, (*best, winners) = combine_runs(ends, (*offers, tails[position[order]]), partial(better, self.operations))
            parents[ends] = winners
            offers = tuple(best)
        _put(values, ends, self._sum(tuple(v[ends] for v in values), offers))
        return ends, offers

    def _sum(self, x: Values, y: Values) -> Values:
        with np.errstate(all="ignore"):
            return self.operations.add(x, y)

    def _lengthened(self, walks: Values, weights: Values) -> Values:
        with np.errstate(all="ignore"):
            return self.operations.mul(weights, walks) if self.backward else self.operations.mul(walks, weights)

    def mend(self, sources: Array, results: Values, tree: Array, searches: Searches | None) -> None:
        """Search again each tree that rounding bent into a circle, with its row as potentials: no edge then improves on 1."""
        n, zero, one = self.edges.n, self.edges.zero, self.operations.one
        for rows in slices(len(sources), n, HOST):
            some = tree[rows]
            lost = (roots_of(some) != sources[rows, None]) & (some >= 0)
            for i in (rows.start + np.flatnonzero(lost.any(axis=1))).tolist():
                row = tuple(v[i] for v in results)
                there = present(row, zero)
                p = tuple(np.where(there, v, o).astype(v.dtype) for v, o in zip(row, one, strict=True))
                back = inverse(self.semiring, p)
                if back is None:
                    return
                tree[i] = -1
                graph, where = reweighed(self.semiring, self.edges, p, back), slice(i, i + 1)
                rows_of_edges(self.semiring, graph, sources[where], tree=tree[where], searches=searches, order="best")

    def _reached(self, sources: Array) -> tuple[Diagnosis, tuple[Any, ...], int]:
        """Return the diagnosis, the edges between vertices that the sources reach, and the number of the first source among these."""
        vertices = self.edges.reachable(sources)
        arrays = self.given.induced(vertices).arrays()
        diagnosis = Diagnosis(self.semiring, lambda: arrays, lambda v: self.name(int(vertices[v])), self.tolerance)
        return diagnosis, arrays, int(np.searchsorted(vertices, sources[0]))


def _put(values: Values, places: Any, elements: tuple[Any, ...]) -> None:
    for array, entries in zip(values, elements, strict=True):
        array[places] = entries


def best_path(edges: CSR, source: int, target: int, searches: Searches) -> tuple[Array, tuple[Any, ...]]:
    """Find the vertices of a best path between two different vertices, none without a path, and its element.

    No edge may improve on 1. The element is multiplied up from the source, edge by edge, as in rows of the closure. O(m) steps
    once for the reversed graph.
    """
    back = edges.transposed()
    ahead, behind = ((g.starts, g.heads, g.weights) for g in (edges, back))
    vertices, element, _ = searches.path(ahead, behind, source, target)
    return (np.zeros(0, np.int64), edges.zero) if vertices is None else (vertices, element)


def pays(edges: CSR) -> bool:
    """Return True if a search from both ends is right and fast.

    Right: all paths stay far from the ends of the dtype, so that vertices without a path are known. Fast: with few edges a vertex, a
    search from one end takes less time than the transposition.
    """
    if not (2 * len(edges.heads) > 3 * edges.n or edges.symmetric):
        return False
    if all(d.kind == "b" for d in edges.dtypes):
        return True
    known = len(edges.dtypes) == len(edges.statistics) == 1 and edges.statistics[0].finite is not None
    return known and edges.n * max(map(abs, edges.statistics[0].finite or (0,))) < half_range(edges.dtypes[0])


def grow_trees(
    semiring: Semiring, edges: CSR, roots: Array, values: Values, *, backward: bool = False, threads: int | None = None
) -> Array:
    """Return the predecessor of each vertex on a best path from each root (`backward`: the successor, to the root), −1 for none.

    `values` holds the rows of the closure (`backward`: columns, as rows), of shape (s, n) for s roots; the result of a search overwrites
    the row. O(n + m) a row; ⊕ must be selective.

    Trees grow along tight edges (`semiring.algorithms.tight_edges`). If rounding hides tight edges, the row is searched instead.

    Examples
    --------
    >>> from semiring import MIN_PLUS
    >>> tails, heads, lengths = np.array([0, 0, 1, 2]), np.array([1, 2, 2, 3]), np.array([1.0, 5, 2, 1])
    >>> edges = CSR.of(tails, heads, (lengths,), 4, (np.inf,))
    >>> grow_trees(MIN_PLUS, edges, np.array([0]), (np.array([[0.0, 1, 3, 4]]),))
    array([[-1,  0,  1,  2]], dtype=int32)
    """
    graph, back = (edges.transposed(), edges) if backward else (edges, edges.transposed())
    trees = np.full(values[0].shape, -1, np.int32)
    searches = searches_for(semiring, edges.dtypes, "cpu", threads)
    if searches is not None:
        there, reverse = ((g.starts, g.heads, g.weights) for g in (graph, back))
        grown = trees_along_tight_edges(semiring, there, reverse, roots, values, trees, backward=backward, threads=threads)
    else:
        # The edges without loops, sorted by head, out of the reversed graph.
        kept = back.tails != back.heads
        others = back.heads[kept], back.tails[kept], tuple(w[kept] for w in back.weights)
        rows = zip(roots.tolist(), trees, *values, strict=True)
        grown = np.array([_grown(semiring, back.zero, others, *row, backward=backward) for row in rows], bool)
    for i in np.flatnonzero(~grown).tolist():
        trees[i] = -1
        some = slice(i, i + 1)
        found = rows_of_edges(semiring, edges, roots[some], backward=backward, tree=trees[some], searches=searches)
        for v, new in zip(values, found, strict=True):
            v[some] = new
    return trees


def _grown(
    semiring: Semiring,
    zero: tuple[Any, ...],
    edges: tuple[Array, Array, Values],
    root: int,
    tree: Array,
    *row: Array,
    backward: bool,
) -> bool:
    """Grow a tree with NumPy; return True if all paths lead to the root."""
    there = present(row, zero)
    _take_tight(semiring, edges, row, tree, backward=backward)
    tree[~there] = -1
    tree[root] = -1
    return bool((roots_of(tree[None])[0, there] == root).all())


def _take_tight(semiring: Semiring, edges: tuple[Array, Array, Values], row: Values, tree: Array, *, backward: bool) -> None:
    """Write the tail of the first best edge of each vertex into the tree; edges are sorted by head."""
    tails, heads, weights = edges
    if not len(heads):
        return
    operations = operations_for(semiring, tuple(v.dtype for v in row))
    walks = tuple(v[tails] for v in row)
    with np.errstate(all="ignore"):
        offers = operations.mul(weights, walks) if backward else operations.mul(walks, weights)
    extremum = extremum_of(semiring)
    if extremum is None:
        heads, (*_, tails) = combine_runs(heads, (*offers, tails), partial(better, operations))
    else:
        starts = np.flatnonzero(np.concatenate([[True], heads[1:] != heads[:-1]]))
        best = extremum.reduceat(offers[0], starts)
        tight = np.flatnonzero(offers[0] == np.repeat(best, np.diff(np.append(starts, len(heads)))))
        first = np.concatenate([[True], heads[tight][1:] != heads[tight][:-1]])
        heads, tails = heads[tight[first]], tails[tight[first]]
    tree[heads] = tails
