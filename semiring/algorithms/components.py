"""Closure by connected components: pairs without a path need no products.

- Weakly connected components (`weak`, `groups`, `close_groups`): with the vertices sorted by component, the matrix is block diagonal, and
  each block is closed alone, over every semiring.
- Strongly connected components, for reachability alone (`condense`, `close_condensed`): the vertices of a component reach the same
  vertices, so the *condensation*, the graph of the components, is closed instead.

Both are found by passes over blocks of rows, without recursion and without a second matrix.

Examples
--------
>>> inf = np.inf
>>> roads = np.array([[0, inf, 2, inf], [inf, 0, inf, 1], [inf, inf, 0, inf], [inf, inf, inf, 0]])
>>> label = weak((roads,), (inf,))
>>> label  # 0 → 2, and 1 → 3
array([0, 1, 0, 1], dtype=int32)
>>> order, ranges = groups(label, 2)
>>> order, ranges
(array([0, 2, 1, 3]), [slice(0, 2, None), slice(2, 4, None)])
>>> permute(roads, order)
>>> roads
array([[ 0.,  2., inf, inf],
       [inf,  0., inf, inf],
       [inf, inf,  0.,  1.],
       [inf, inf, inf,  0.]])
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from semiring.algorithms.csr import present
from semiring.arrays.conversion import Array
from semiring.arrays.pieces import HOST, slices

__all__ = ["close_condensed", "close_groups", "condense", "groups", "permute", "share", "weak", "weak_of_edges"]

Close = Callable[[tuple[Array, ...], Array | None, Array], None]
"""Closes a matrix in place, given its construction matrix or None, and the vertex of each row."""


def weak(values: tuple[Array, ...], zero: tuple[Any, ...]) -> Array | None:
    """Label each vertex with the lowest vertex of its weakly connected component; None for one component. `zero` means "no edge"."""
    n = len(values[0])
    label = np.arange(n, dtype=np.int32)
    start, size = 0, 8
    while start < n:
        stop = min(n, start + size)
        edges = present(tuple(v[start:stop] for v in values), zero)
        edges &= label[start:stop, None] != label  # only edges between two labels matter
        source, target = np.nonzero(edges)
        _unite(label, source + start, target)
        if not label.any():
            return None
        start, size = stop, max(1, min(2 * size, HOST // n))
    return label


def weak_of_edges(n: int, tails: Array, heads: Array) -> Array:
    """Label each vertex with the lowest vertex of its weakly connected component, given the ends of all edges."""
    label = np.arange(n, dtype=np.int32)
    _unite(label, tails, heads)
    return label


def share(n: int, tails: Array, heads: Array) -> float:
    """Return the steps of a closure by weakly connected components, as a share of the n³ of the whole matrix."""
    label = weak_of_edges(n, tails, heads)
    found = float(((np.bincount(label) / n) ** 3).sum())
    return found if 2 * found <= 1 else 1.0


def _unite(label: Array, u: Array, v: Array) -> None:
    """Join the components at both ends of every edge; `label` always points straight at a component's lowest vertex."""
    while True:
        low, high = np.minimum(label[u], label[v]), np.maximum(label[u], label[v])
        differ = low != high
        if not differ.any():
            return
        u, v = u[differ], v[differ]
        np.minimum.at(label, high[differ], low[differ])
        while (label[label] != label).any():
            label[:] = label[label]


def groups(label: Array, least: int) -> tuple[Array, list[slice]] | None:
    """Order the vertices by component and return the order and its ranges; None where that would not pay.

    Components are joined until a range has `least` vertices: small matrices are not worth a call each. Vertices ascend within a range.
    """
    n = len(label)
    sizes = np.bincount(label, minlength=n)
    ranges: list[slice] = []
    start = end = 0
    rank = np.zeros(n, dtype=np.intp)
    for component in np.flatnonzero(sizes).tolist():
        rank[component] = len(ranges)
        end += int(sizes[component])
        if end - start >= least:
            ranges.append(slice(start, end))
            start = end
    if start < end:
        ranges.append(slice(start, end))
    if 2 * sum((r.stop - r.start) ** 3 for r in ranges) > n**3:
        return None
    return np.argsort(rank[label], kind="stable"), ranges


def permute(array: Array, order: Array) -> None:
    """array ← array[order][:, order], in place: columns by blocks of rows, then rows along the cycles of the permutation."""
    n = len(order)
    for rows in slices(n, n, HOST):
        array[rows] = np.take(array[rows], order, axis=1, mode="clip")  # 5 times as fast as an index
    seen = np.zeros(n, dtype=bool)
    for first in range(n):
        if seen[first] or order[first] == first:
            continue
        held, row = array[first].copy(), first
        while (source := int(order[row])) != first:
            array[row] = array[source]
            seen[row] = True
            row = source
        array[row], seen[row] = held, True


def close_groups(values: tuple[Array, ...], via: Array | None, order: Array, ranges: list[slice], close: Close) -> None:
    """Close the diagonal blocks of a matrix sorted by the `groups` of its vertices."""
    matrices = values if via is None else (*values, via)
    for matrix in matrices:
        permute(matrix, order)
    for r in ranges:
        block = tuple(v[r, r] for v in values)
        if via is None:
            close(block, None, order[r])
        else:
            close(block, via[r, r], order[r])
            for row in via[r, r]:
                row[row >= 0] = order[r][row[row >= 0]]
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    for matrix in matrices:
        permute(matrix, place)


def condense(edges: Array) -> tuple[Array, Array] | None:
    """Find the strongly connected components of a Boolean matrix, and return the number of each vertex and the matrix of the components.

    Searches forward and backward from well connected vertices find large components, which come first. Every other vertex counts as a
    component by itself, even if strongly connected to another, which is as good for a closure. None where that would not pay.
    """
    n = len(edges)
    packed = np.packbits(edges, axis=1)
    # A well connected vertex has large degrees both ways; the in-degree is estimated from some rows.
    weight = np.bitwise_count(packed).sum(axis=1, dtype=np.int64) * edges[:: max(1, n // 256)].sum(axis=0, dtype=np.int64)
    component = np.full(n, -1, dtype=np.intp)
    large: list[Array] = []
    left = n
    while left:
        weight[component >= 0] = -1
        root = int(weight.argmax())
        both = _reachable(packed, root, forward=True) & _reachable(packed, root, forward=False)
        if 8 * both.sum() < left:
            break
        component[both] = len(large)
        large.append(both)
        left -= int(both.sum())
    if 3 * (len(large) + left) > n:
        return None
    alone = np.flatnonzero(component < 0)
    component[alone] = np.arange(len(large), len(large) + left)
    return component, _between(edges, packed, large, alone)


def close_condensed(edges: Array, component: Array, between: Array, close: Close) -> None:
    """Close the condensation that `condense` returns, and copy the rows of components to their vertices."""
    # Members of a component reach each other; a single vertex reaches itself only by a loop.
    size = np.bincount(component)
    between[np.diag_indices(len(between))] |= size > 1
    close((between,), None, np.arange(len(between)))
    for c in range(len(between)):
        edges[component == c if size[c] > 1 else np.flatnonzero(component == c)] = between[c, component]


def _between(edges: Array, packed: Array, large: list[Array], alone: Array) -> Array:
    count = len(large) + len(alone)
    between = np.zeros((count, count), dtype=bool)
    for c, members in enumerate(large):
        reached = np.unpackbits(np.bitwise_or.reduce(packed[members], axis=0), count=len(edges)).astype(bool)
        between[c, : len(large)] = [bool((reached & other).any()) for other in large]
        between[c, len(large) :] = reached[alone]
        mask = np.packbits(members)
        for rows in slices(len(alone), len(edges), 8 * HOST):
            between[len(large) :, c][rows] = (packed[alone[rows]] & mask).any(axis=1)
    for rows in slices(len(alone), len(edges), HOST):
        between[len(large) :, len(large) :][rows] = edges[np.ix_(alone[rows], alone)]
    return between


def _reachable(packed: Array, root: int, *, forward: bool) -> Array:
    """Mark the vertices that `root` reaches, or that reach `root`, breadth first over rows of bits."""
    n = len(packed)
    reached = np.zeros(n, dtype=bool)
    reached[root] = True
    frontier = np.array([root])
    while len(frontier):
        if forward:
            bits = np.bitwise_or.reduce(packed[frontier], axis=0)
            now = np.unpackbits(bits, count=n).astype(bool)
        else:
            mask = np.zeros(n, dtype=bool)
            mask[frontier] = True
            columns = np.packbits(mask)
            used = np.flatnonzero(columns)
            now = np.zeros(n, dtype=bool)
            rest = np.flatnonzero(~reached)
            for some in slices(len(rest), n, 8 * HOST):
                rows = rest[some]
                now[rows] = (packed[np.ix_(rows, used)] & columns[used]).any(axis=1)
        frontier = np.flatnonzero(now & ~reached)
        reached[frontier] = True
    return reached
