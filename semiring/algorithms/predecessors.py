"""Paths, predecessors and next hops out of a construction matrix; and the paths of one source without a construction matrix.

Paths (`expand`): Matsumoto, Nakasato and Sedukhin (2012), Algorithm 2. The path from i to j is the edge itself if via[i, j] is −1.
Otherwise it is the path from i to k = via[i, j] followed by the path from k to j. The walks need not be simple: blocked and recursive
schedules go around cycles of weight 1 (zero, for shortest paths) on every level. Rounding of negative floats, or a damaged file, may bend
`via` into a circle. Such a path is given up, and `SingleSource` finds the path again in the matrix.

Trees (`predecessors`): column j, followed from x to via[x, j] until −1, gives the last vertex before j. If elements tie, predecessors may
run in a circle of weight 1, so every tree is checked. A vertex v that does not lead to the root is attached to a vertex u that does,
by a tying edge, d(root, u) ⊗ a_uv = d(root, v). Whole paths serve if rounding hides all such edges. Next hops are the predecessors of the
transposed matrices, with the operands of ⊗ swapped.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from semiring.algebra.definition import Semiring
from semiring.algorithms.bellman_ford import exact_weight, relaxation, rounding
from semiring.algorithms.csr import consecutive, present
from semiring.arrays.conversion import Array, Values
from semiring.arrays.devices import entries, host, on_gpu, to_gpu
from semiring.arrays.pieces import CACHE, HOST, slices
from semiring.common.errors import GraphError
from semiring.common.forks import cached_property
from semiring.kernels.cpu.loops import Ints, Rows, ShortInts, ShortRows, loop
from semiring.kernels.operations import Operations

__all__ = [
    "NONE", "SingleSource", "cycle_through", "erase_loops", "expand", "follow", "multiply_along", "predecessors", "roots_of", "weighs",
]  # fmt: skip

PathFinder = Callable[[Array, Array], list[list[int]]]
"""Returns simple paths for pairs of vertices, given as arrays of sources and targets."""

NONE = -9999
"""SciPy's number for "no predecessor"."""

_CIRCLES = 2
"""Attempts that mend circles alone, enough for few circles; afterwards all lost vertices are attached at once."""


def expand(via: Array, sources: Array, targets: Array) -> list[list[int] | None]:
    """Return a simple path for each pair of vertices, as a list of vertices; None if the path was given up.

    The element of each pair must not be zero. A pair of equal vertices gives a cycle, which ends at its first vertex. Each pass is linear
    in the number of vertices on the paths so far. Passes are the generations of `via`: at most n for the iterative schedule,
    and usually about log₂ of a path's edges. Only the needed entries of a `via` on a GPU come to the host.
    """
    if on_gpu(via):
        from semiring.kernels.cuda import paths

        found = [None if walk is None else erase_loops(walk) for walk in paths.expand_paths(via, sources, targets)]
        long = np.array([pair for pair, path in enumerate(found) if path is None], dtype=np.intp)
        for pair, path in zip(long.tolist(), _expand(via, sources[long], targets[long]), strict=True):
            found[pair] = path
        return found
    return _expand(via, sources, targets)


def _expand(via: Array, sources: Array, targets: Array) -> list[list[int] | None]:
    """Expand the segments of all pairs at once, and erase loops where a walk is too long."""
    n, m = len(via), len(sources)
    owner, tail, head = np.arange(m), np.array(sources, dtype=np.intp), np.array(targets, dtype=np.intp)
    unsettled, circular = np.ones(m, dtype=bool), np.zeros(m, dtype=bool)
    checked = False
    for _ in range(_generations(n)):
        middle = np.full(len(owner), -1, dtype=np.intp)
        middle[unsettled] = entries(via, tail[unsettled], head[unsettled])
        split = middle >= 0
        unsettled &= split
        if not split.any():
            break
        # Segment s becomes tail → middle and middle → head.
        copies = np.repeat(np.arange(len(owner)), 1 + split)
        first = (np.cumsum(1 + split) - 1 - split)[split]
        owner, tail, head, unsettled = owner[copies], tail[copies], head[copies], split[copies]
        head[first] = tail[first + 1] = middle[split]
        if (np.bincount(owner) > n).any():
            if not checked:
                checked, circular = True, _circular(via, sources, targets)
            straight = np.flatnonzero(~circular[owner])
            left = straight[_without_loops(owner[straight], tail[straight], targets, n)]
            owner, tail, unsettled = owner[left], tail[left], unsettled[left]
            last = np.append(owner[1:] != owner[:-1], True)
            head = np.where(last, np.asarray(targets)[owner], np.append(tail[1:], 0))
    given_up = circular | (np.bincount(owner[unsettled], minlength=m) > 0)
    ends = np.searchsorted(owner, np.arange(m + 1)).tolist()
    vertices, goals = tail.tolist(), np.asarray(targets).tolist()
    return [None if given_up[pair] else erase_loops([*vertices[ends[pair] : ends[pair + 1]], goals[pair]]) for pair in range(m)]


def _generations(n: int) -> int:
    return 2 * n + 64


def _circular(via: Array, sources: Array, targets: Array) -> Array:
    """Mark each pair whose walk never ends, because splitting the pair leads back to an earlier one."""
    n = len(via)
    wanted = np.asarray(sources, dtype=np.int64) * n + targets
    pairs = fresh = np.unique(wanted)
    while len(fresh):
        tail, head = np.divmod(fresh, n)
        middle = np.asarray(entries(via, tail, head), dtype=np.int64)
        tail, head, middle = (v[middle >= 0] for v in (tail, head, middle))
        fresh = np.setdiff1d(np.concatenate([tail * n + middle, middle * n + head]), pairs)
        pairs = np.union1d(pairs, fresh)
    tail, head = np.divmod(pairs, n)
    middle = np.asarray(entries(via, tail, head), dtype=np.int64)
    ends = middle < 0
    split = np.flatnonzero(~ends)
    halves = [np.searchsorted(pairs, half) for half in (tail * n + middle, middle * n + head)]
    for _ in range(_generations(n)):
        settled = split[ends[halves[0][split]] & ends[halves[1][split]]]
        if not len(settled):
            break
        ends[settled] = True
        split = split[~ends[split]]
    return np.asarray(~ends[np.searchsorted(pairs, wanted)])


def _without_loops(owner: Array, tail: Array, targets: Array, n: int) -> Array:
    """Return the segments left after every walk of more than n segments drops its loops."""
    left: list[int] = []
    for pair in np.unique(owner).tolist():
        start, end = np.searchsorted(owner, [pair, pair + 1]).tolist()
        walk = [*tail[start:end].tolist(), int(targets[pair])]
        left += range(start, end) if end - start <= n else [start + i for i in _last_visits(walk)[:-1]]
    return np.array(left, dtype=np.intp)


def erase_loops(walk: Sequence[int]) -> list[int]:
    """Drop everything between two visits of a vertex; a closed walk leaves a cycle."""
    closed = len(walk) > 1 and walk[0] == walk[-1]
    return list(walk) if len(set(walk)) == len(walk) - closed else [walk[i] for i in _last_visits(walk)]


def _last_visits(walk: Sequence[int]) -> list[int]:
    """Return the positions in a walk that remain without its loops, for each vertex of the last visit; a closed walk leaves a cycle."""
    place: dict[int, int] = {}
    path: list[int] = []
    end = len(walk) - 1 if walk[0] == walk[-1] else None  # a cycle visits the first vertex again
    for i, v in enumerate(walk):
        if v in place and i != end and (start := place[v]) < len(path) and walk[path[start]] == v:  # else this visit was dropped
            del path[start:]
        place[v] = len(path)
        path.append(i)
    return path


def cycle_through(via: Array, vertex: int) -> list[int] | None:
    """Return the cycle that the construction matrix holds for (vertex, vertex), each vertex once; None if given up."""
    (path,) = expand(via, np.array([vertex]), np.array([vertex]))
    return None if path is None else path[:-1]


def predecessors(
    semiring: Semiring, values: Values, via: Array, paths: Callable[[tuple[int, ...]], PathFinder], *, backward: bool = False
) -> Array:
    """Return the vertex before j on a best path from i to j, as an int32 matrix; −9999 on the diagonal and without a path.

    Row i is a tree with root i, and its paths are best paths all along. `paths` returns a `PathFinder` for the index of a matrix of a
    batch. O(n² log h) steps for paths of h edges, in blocks with little memory beyond the result; more if elements tie.

    Next hops (`backward`) are the vertices after i instead: column j is a tree with root j.
    """

    def grower(index: tuple[int, ...]) -> _Grower:
        find = paths(index)

        def reversed_paths(roots: Array, ends: Array) -> list[list[int]]:
            """Paths to the roots, from their other ends, as paths of the transposed matrix."""
            return [path[::-1] for path in find(ends, roots)]

        *elements, between = (_turned(host(v[index]), backward) for v in (*values, via))
        return _Grower(semiring, tuple(elements), between, reversed_paths if backward else find, backward=backward)

    if on_gpu(via):
        return _grow_there(semiring, values, via, grower, backward=backward)
    result = np.empty(via.shape, dtype=np.int32)
    for index in np.ndindex(via.shape[:-2]):
        grower(index).grow(_turned(result[index], backward))
    return result


def _grow_there(semiring: Semiring, values: Values, via: Array, grower: Callable[[tuple[int, ...]], _Grower], *, backward: bool) -> Array:
    """Grow trees on a GPU; trees in which rounding hides the ties come to the host, to be attached by whole paths."""
    from semiring.kernels.cuda import paths

    result: Array
    result, remaining = paths.predecessor_trees(semiring, values, via, backward=backward, circles=_CIRCLES)
    matrix, row = np.divmod(remaining, max(1, via.shape[-1]))
    for one in np.unique(matrix).tolist():
        index = tuple(map(int, np.unravel_index(one, via.shape[:-2])))
        trees, rows = _turned(result[index], backward), row[matrix == one]
        some = host(trees[to_gpu(rows)])
        grower(index).mend(some, some != NONE, rows, _CIRCLES)
        trees[to_gpu(rows)] = to_gpu(some)
    return result


def _turned(matrix: Array, backward: bool) -> Array:
    return matrix.T if backward else matrix


class _Grower:
    """Grows the predecessor trees of one matrix (`backward`: of a transposed one, with the operands of ⊗ swapped)."""

    def __init__(self, semiring: Semiring, values: Values, via: Array, paths: PathFinder, *, backward: bool) -> None:
        self.operations = Operations(semiring, tuple(v.dtype for v in values))
        self.values, self.via, self.paths, self.backward = values, via, paths, backward
        self.n = len(via)

    def grow(self, result: Array) -> None:
        """Fill `result` with the predecessor tree of each row, its root."""
        n = self.n
        everyone = np.arange(n, dtype=np.int32)
        for columns in slices(n, n, CACHE):
            down = np.ascontiguousarray(self.via[:, columns].T)
            last = follow(np.where(down < 0, everyone, down))
            # If rounding has bent `via` into a circle, j becomes its own predecessor, which the check finds.
            bent = np.take_along_axis(down, last, axis=1) >= 0
            result[:, columns] = np.where(bent, everyone[columns, None], last).T
        for rows in slices(n, n, CACHE):
            roots = np.arange(n)[rows]
            reached = self.connected(rows, slice(None))
            reached[np.arange(len(roots)), roots] = False
            trees = result[rows]
            trees[~reached] = NONE
            self.mend(trees, reached, roots)

    def connected(self, rows: slice, columns: slice) -> Array:
        """Mark the elements that are not zero."""
        return present(tuple(v[rows, columns] for v in self.values), self.operations.zero)

    @cached_property
    def direct(self) -> tuple[Array, Array]:
        """Return the edges that are best paths: those into v are sources[starts[v] : starts[v + 1]]."""
        sources, counts = [], [np.zeros(1, dtype=np.intp)]
        for columns in slices(self.n, self.n, CACHE):
            edges = ((self.via[:, columns] < 0) & self.connected(slice(None), columns)).T
            sources.append(np.nonzero(edges)[1].astype(np.int32))
            counts.append(edges.sum(axis=1))
        return np.concatenate(sources), np.cumsum(np.concatenate(counts))

    def mend(self, trees: Array, reached: Array, roots: Array, first: int = 0) -> None:
        """Attach again reached vertices that do not lead back to the root of their row; attempts are counted from `first`.

        Raises
        ------
        GraphError
            If elements and construction matrix contradict each other, as in a damaged file.
        """
        everyone = np.arange(self.n, dtype=np.int32)
        rows = np.arange(len(roots))
        before = math.inf
        for attempt in itertools.count(first):
            end = follow(np.where(reached[rows], trees[rows], everyone))
            loose = end != roots[rows, None]
            lost = reached[rows] & loose
            bad = lost.any(axis=1)
            if not bad.any():
                return
            rows, end, loose, lost = rows[bad], end[bad], loose[bad], lost[bad]
            wanted = lost
            if attempt < _CIRCLES:
                # Attaching one vertex of a circle attaches all vertices that lead to the circle.
                wanted = np.zeros_like(lost)
                np.put_along_axis(wanted, end, lost, axis=1)
            elif (left := int(lost.sum())) < before:
                before = left
            else:
                raise GraphError(
                    f"the elements and the construction matrix contradict each other: the path between vertices {roots[rows[0]]} and "
                    f"{lost[0].argmax()} leads over a vertex without one; compute both again"
                )
            some = trees[rows]
            if not self.attach_by_ties(some, loose, wanted, roots[rows]) and attempt >= _CIRCLES:
                self.attach_by_paths(some, loose, lost.argmax(axis=1), roots[rows])
            trees[rows] = some

    def attach_by_ties(self, trees: Array, loose: Array, wanted: Array, roots: Array) -> bool:
        """Attach wanted vertices by tying edges, d(root, u) ⊗ a_uv = d(root, v), from u that lead to the root; True if any was."""
        sources, starts = self.direct
        degree = np.diff(starts)
        edges = np.cumsum(wanted @ degree)
        progress = False
        for rows in np.split(np.arange(len(roots)), np.unique(np.searchsorted(edges, np.arange(HOST, edges[-1], HOST)))):
            row, v = np.nonzero(wanted[rows])
            row += rows[0] if len(rows) else 0
            pair, edge = consecutive(starts[v], degree[v])
            row, u, v = row[pair], sources[edge], v[pair]
            ties = self._ties(roots[row], u, v)
            progress |= _attach(trees, loose, row[ties], u[ties], v[ties])
        return progress

    def _ties(self, root: Array, u: Array, v: Array) -> Array:
        """Mark where the path to u and the edge u → v are as good as the path to v; the root needs no path."""
        to_u, edge, to_v = (tuple(a[at] for a in self.values) for at in ((root, u), (u, v), (root, v)))
        with np.errstate(all="ignore"):
            total = self.operations.mul(edge, to_u) if self.backward else self.operations.mul(to_u, edge)
        equal = np.ones(len(root), dtype=bool)
        begins = root == u
        for t, e, d in zip(total, edge, to_v, strict=True):
            equal &= np.where(begins, np.asarray(e == d, dtype=bool), np.asarray(t == d, dtype=bool))
        return np.asarray(equal & (u != v))

    def attach_by_paths(self, trees: Array, loose: Array, targets: Array, roots: Array) -> None:
        """Attach one loose vertex of each row by a path, after the last path vertex in the tree."""
        for i, path in enumerate(self.paths(roots, targets)):
            last = len(path) - 1
            while loose[i, path[last]]:
                last -= 1
            trees[i, path[last + 1 :]] = path[last:-1]


def _attach(trees: Array, loose: Array, row: Array, u: Array, v: Array) -> bool:
    """Attach, breadth first, all vertices reached by edges u → v from vertices that lead to the root; True if any was."""
    n = loose.shape[1]
    order = np.argsort(row * n + u, kind="stable")
    tail, head = (row * n + u)[order], (row * n + v)[order]
    flat, parents = loose.reshape(-1), trees.reshape(-1)
    edges = np.flatnonzero(~flat[tail] & flat[head])
    progress = len(edges) > 0
    while len(edges):
        parents[head[edges]] = tail[edges] % n
        flat[head[edges]] = False
        frontier = np.unique(head[edges])
        first, last = np.searchsorted(tail, frontier, side="left"), np.searchsorted(tail, frontier, side="right")
        _, edges = consecutive(first, last - first)
        edges = edges[flat[head[edges]]]
    return progress


def follow(pointer: Array) -> Array:
    """Return the end of each pointer of a row, by doubling; a vertex of the circle for a pointer that never ends."""
    rows, n = pointer.shape
    offset = np.arange(0, rows * n, n, dtype=np.intp)[:, None]
    at = (pointer + offset).ravel()
    for _ in range(n.bit_length()):
        further = at[at]
        if np.array_equal(further, at):
            break
        at = further
    return np.asarray(at.reshape(rows, n) - offset)


@loop
def multiply_along(
    count: int, n: int, trees: ShortRows, values: Rows, done: Ints, stack: ShortInts, *, semiring: Any, backward: bool
) -> bool:
    """values_iv ← values_iu ⊗ values_iv for u = trees_iv, from the root on (`backward`: swapped); return False for a circle.

    An edge from a root, whose tree entry is negative, keeps its element. `done` is zero; `stack` is scratch.
    """
    for i in range(count):
        tree, row = trees[i], values[i]
        for v in range(n):
            u, top = v, 0
            while tree[u] >= 0 and done[u] != i + 1:
                if top == n:
                    return False
                stack[top] = u
                top += 1
                u = tree[u]
            while top > 0:
                top -= 1
                w = stack[top]
                u = tree[w]
                if tree[u] >= 0:
                    row[w] = semiring.mul(row[w], row[u]) if backward else semiring.mul(row[u], row[w])
                done[w] = i + 1
    return True


def roots_of(trees: Array) -> Array:
    """Return the root to which each vertex of a predecessor tree, a row of `trees`, leads back; or a vertex on a circle."""
    return follow(np.where(trees < 0, np.arange(trees.shape[1]), trees))


class SingleSource:
    """The best paths of one or more edges from a source to every vertex, by Bellman–Ford, for a selective ⊕.

    `values` are dense arrays of shape (n, n), or the components of a sparse matrix. At most n rounds of O(n) steps for each changed vertex;
    floats in double precision. A path is read backwards through earlier and earlier rounds, so it ends even if rounding makes a cycle
    improve; such loops are then erased.
    """

    def __init__(self, semiring: Semiring, values: Values, source: int) -> None:
        graph = relaxation(semiring, values)
        p = tuple(row[0] for row in graph.rows(np.array([source])))
        nothing = graph.everywhere(graph.operations.zero)
        active = np.flatnonzero(graph.changes(nothing, p))
        self._rounds = [(active, np.full(len(active), source))]
        for _ in range(graph.n - 1):
            changed = np.zeros(graph.n, dtype=bool)
            predecessor = np.full(graph.n, -1)
            for offer, who in graph.offers(tuple(v.copy() for v in p), active):
                changed |= graph.take(p, offer, who, predecessor)
            active = np.flatnonzero(changed)
            if not len(active):
                break
            self._rounds.append((active, predecessor[active]))

    def path(self, target: int) -> list[int]:
        """Return the vertices of the path to `target` (a cycle for the source itself); empty without a path."""
        walk, v = [target], target
        for vertices, predecessors in reversed(self._rounds):
            i = int(np.searchsorted(vertices, v))
            if i < len(vertices) and vertices[i] == v:
                v = int(predecessors[i])
                walk.append(v)
        return erase_loops(walk[::-1]) if len(walk) > 1 else []


def weighs(semiring: Semiring, values: Values, path: Sequence[int], element: Sequence[Any]) -> bool:
    """Return True if a path has the weight `element`, up to rounding; otherwise the matrix is another one."""
    weight = exact_weight(semiring, values, path)
    first = weight[0] if isinstance(weight, tuple) else weight
    if values[0].dtype.kind != "f":
        return bool(first == element[0])
    try:
        return bool(abs(float(first) - float(element[0])) <= 4 * rounding(values))
    except OverflowError:  # no element is so large
        return False
