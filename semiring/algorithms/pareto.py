"""Pareto-optimal paths between two vertices: no other path is at least as good over two semirings, and better over one.

A *label* is a walk from the source, with its two elements. Labels leave a queue in the order of their first elements. A label is
*dominated* if another label of the vertex is at least as good in both elements. Only labels that are not dominated are expanded (Martins,
"On a multicriteria shortest path problem", 1984).

If no edge improves on 1, labels arrive at a vertex in the order of their first elements. Then the newest label of the vertex decides alone
(Hernández et al., "Simple and efficient bi-objective search algorithms via fast dominance checks", 2023). Otherwise all labels of a vertex
are compared, and labels grow along simple paths.

The best elements from each vertex to the target bound each label: if a path of the front dominates the bound, the label is dropped.

Examples
--------
>>> from semiring import MIN_PLUS
>>> edges = CSR.of(np.array([0, 0, 1]), np.array([1, 2, 2]), (np.array([1.0, 5.0, 1.0]),), 3, (np.inf,))
>>> pareto_front(MIN_PLUS, MIN_PLUS, edges, (np.array([4.0, 1.0, 4.0]),), 0, 2, most=100)
[((2.0,), (8.0,), [0, 1, 2]), ((5.0,), (1.0,), [0, 2])]
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from semiring.algebra.definition import Semiring
from semiring.algorithms.csr import CSR, combine_runs, in_order
from semiring.algorithms.heap import pop, push
from semiring.algorithms.rows_of_edges import rows_of_edges, search_order
from semiring.algorithms.search import Edges, Queue, searches_for
from semiring.arrays.conversion import Values
from semiring.arrays.memory import require_bytes
from semiring.common.errors import TooLargeError
from semiring.kernels.cpu.loops import Element, Elements, Ints, loop
from semiring.kernels.operations import operations_for
from semiring.kernels.select import element_operations

__all__ = ["pareto_front"]

Point = tuple[tuple[Any, ...], tuple[Any, ...], list[int]]
"""The two elements of a path, and its vertices."""

_LABELS = 1 << 12
"""Labels with room at first."""


class Labels(NamedTuple):
    """Walks from the source: the last vertex, the label without the last edge, an older label of the vertex, and the two elements."""

    vertices: Ints
    before: Ints
    older: Ints
    firsts: Elements
    seconds: Elements

    @classmethod
    def of(cls, room: int, *dtypes: Sequence[np.dtype[Any]]) -> Labels:
        """Allocate labels."""
        firsts, seconds = (tuple([np.empty(room, d) for d in each]) for each in dtypes)
        vertices, before, older = np.empty((3, room), np.int64)
        return cls(vertices, before, older, firsts, seconds)

    def path(self, label: int) -> list[int]:
        """Return the vertices of a walk."""
        path = []
        while label >= 0:
            path.append(int(self.vertices[label]))
            label = int(self.before[label])
        return path[::-1]


@loop
def is_dominated(labels: Labels, label: int, a: Element, b: Element, ordered: bool, *, first: Any, second: Any) -> bool:
    """Return True if a label, or an older one, is at least as good as two elements; if `ordered`, by the newest label's second element."""
    found = False
    while label >= 0 and not found:
        found = (ordered or not first.better(a, labels.firsts[label])) and not second.better(b, labels.seconds[label])
        label = -1 if ordered else labels.older[label]
    return found


@loop
def search_labels(
    edges: Edges,
    others: Elements,
    first_rest: Elements,
    second_rest: Elements,
    labels: Labels,
    newest: Ints,
    sizes: Ints,
    queue: Queue,
    count: int,
    size: int,
    target: int,
    most: int,
    ordered: bool,
    *,
    first: Any,
    second: Any,
) -> tuple[int, int, int]:
    """Expand labels until the queue is empty, or room is short; return the numbers of labels and of entries, and a vertex or −1.

    The vertex has more than `most` labels. `others` are the edges' second elements; `first_rest` and `second_rest` the best elements from
    each vertex to the target. `newest` has a label of each vertex, or −1, and `sizes` how many of its labels are not dominated.
    """
    vertices, walks = queue.vertices, queue.walks
    for _ in range(queue.room):
        if size == 0:
            break
        label = vertices[0]
        u = labels.vertices[label]
        if count + edges.starts[u + 1] - edges.starts[u] > queue.room:
            break
        size = pop(vertices, walks, size, before=first.better)
        a, b = labels.firsts[label], labels.seconds[label]
        if is_dominated(labels, int(newest[u]), a, b, ordered, first=first, second=second):
            continue
        before, other = -1, newest[u]
        while other >= 0:
            older = labels.older[other]
            if first.better(labels.firsts[other], a) or second.better(labels.seconds[other], b):
                before = other
                if ordered:
                    older = -1
            else:  # the label dominates the other one
                sizes[u] -= 1
                if before < 0:
                    newest[u] = older
                else:
                    labels.older[before] = older
            other = older
        labels.older[label] = newest[u]
        newest[u] = label
        sizes[u] += 1
        if sizes[u] > most:
            return count, size, int(u)
        if u == target:
            continue
        for e in range(edges.starts[u], edges.starts[u + 1]):
            v = edges.heads[e]
            x, y = first.mul(a, edges.weights[e]), second.mul(b, others[e])
            whole, other_whole = first.mul(x, first_rest[v]), second.mul(y, second_rest[v])
            if not first.improves(whole, first.zero) or not second.improves(other_whole, second.zero):
                continue
            dominated = is_dominated(labels, int(newest[v]), x, y, ordered, first=first, second=second)
            dominated = dominated or is_dominated(labels, int(newest[target]), whole, other_whole, ordered, first=first, second=second)
            if not dominated and not ordered:
                walk = label
                while walk >= 0 and labels.vertices[walk] != v:
                    walk = labels.before[walk]
                dominated = walk >= 0
            if not dominated:
                labels.vertices[count] = v
                labels.before[count] = label
                labels.firsts[count] = x
                labels.seconds[count] = y
                size = push(vertices, walks, size, count, whole, before=first.better)
                count += 1
    return count, size, -1


def pareto_front(
    first: Semiring,
    second: Semiring,
    edges: CSR,
    others: Values,
    source: int,
    target: int,
    *,
    most: int,
    name: Callable[[int], Any] = int,
) -> list[Point]:
    """Find the elements and a path for each point of the Pareto front between two vertices, in the order of the first element.

    Compiled loops compute ⊕ and ⊗ of both semirings, and both ⊕ select. `edges` may be parallel; `others` are their elements over `second`.

    Raises
    ------
    TooLargeError
        If a vertex has more than `most` labels that are not dominated, or the memory is short.
    DivergenceError
        If a cycle that leads to the target improves over one of the semirings.

    Notes
    -----
    O(k·m log(k·m)) steps for m edges and k labels at each vertex, if no edge improves on 1; otherwise more. Memory for two elements and
    four integers for each label.
    """
    graphs = (first, _best_edges(first, edges, edges.weights)), (second, _best_edges(second, edges, others))
    rest, ordered = [], True
    for semiring, graph in graphs:
        searches, order = searches_for(semiring, graph.dtypes, "cpu"), search_order(semiring, graph)
        rows = rows_of_edges(semiring, graph, np.array([target]), backward=True, name=name, searches=searches, order=order)
        rest.append(tuple([row[0] for row in rows]))
        ordered = ordered and order != "rounds"
    one, other = (element_operations(semiring, graph.dtypes) for semiring, graph in graphs)
    forward, others = Edges.of((edges.starts, edges.heads, edges.weights)), tuple(map(np.ascontiguousarray, others))
    most_edges = int(np.diff(edges.starts).max(initial=0))
    labels = Labels.of(_LABELS + most_edges, one.dtypes, other.dtypes)
    queue, newest, sizes = Queue.of(forward, _LABELS + most_edges), np.full(edges.n, -1, np.int64), np.zeros(edges.n, np.int64)
    labels.vertices[0], labels.before[0], queue.vertices[0] = source, -1, 0
    for array, unit in zip((*labels.firsts, *queue.walks, *labels.seconds), (*one.one, *one.one, *other.one), strict=True):
        array[0] = unit
    count, size = 1, 1
    while size:
        if count + most_edges > queue.room:
            needed = sum(array.nbytes for array in (*labels[:3], *labels.firsts, *labels.seconds, queue.vertices, *queue.walks))
            require_bytes(2 * needed, "the Pareto-optimal paths to all vertices take", "round the weights, or pass a lower bound=")
            labels, queue = Labels(*map(_doubled, labels)), Queue(_doubled(queue.vertices), _doubled(queue.walks), 2 * queue.room)
        search = search_labels.bind(
            forward, others, rest[0], rest[1], labels, newest, sizes, queue, count, size, target, most, ordered, first=one, second=other
        )
        count, size, full = search(1e9)
        if full >= 0:
            raise TooLargeError(f"more than bound={most} paths to vertex {name(full)!r} are Pareto-optimal; pass a higher bound")
    front: list[Point] = []
    label = int(newest[target])
    while label >= 0:
        a, b = (tuple([v[label].item() for v in values]) for values in (labels.firsts, labels.seconds))
        front.append((a, b, labels.path(label)))
        label = int(labels.older[label])

    def preference(x: Point, y: Point) -> int:
        return -1 if one.better(x[0], y[0]) else 1

    return sorted(front, key=functools.cmp_to_key(preference))


def _best_edges(semiring: Semiring, edges: CSR, weights: Values) -> CSR:
    """Combine parallel edges, in the order that searches need."""
    dtypes = tuple([v.dtype for v in weights])
    add, (zero, _) = operations_for(semiring, dtypes).add, semiring.identities(dtypes)
    tails, heads, best = in_order(edges.n, edges.tails, edges.heads, weights, lambda places, given: combine_runs(places, given, add))
    return CSR.of(tails, heads, best, edges.n, zero)


def _doubled(array: Any) -> Any:
    if isinstance(array, tuple):
        return tuple(map(_doubled, array))
    return np.concatenate([array, np.empty_like(array)])
