"""Strongly connected components of a sparse graph: Tarjan's algorithm (1972).

A stack replaces the recursion, and one number for each vertex is first its low-link, then its component (Pearce, 2016). Components are
finished in reverse topological order, so edges lead to the same or lower numbers.
"""

from __future__ import annotations

import numpy as np

from semiring.arrays.conversion import Array
from semiring.kernels.cpu.loops import Ints, loop

__all__ = ["strong_components"]


def strong_components(starts: Array, heads: Array) -> tuple[int, Array]:
    """Return the number of strongly connected components, and each vertex's component; edges lead to the same or lower numbers. O(n + m).

    Examples
    --------
    >>> strong_components(np.array([0, 1, 3, 3]), np.array([1, 0, 2]))  # 0 → 1, 1 → 0, 1 → 2
    (2, array([1, 1, 0]))
    """
    starts, heads = (np.ascontiguousarray(v, np.int64) for v in (starts, heads))
    n = len(starts) - 1
    low = np.full(n, -n - 1, np.int64)
    waiting, path = np.empty((2, n), np.int64)
    return tarjan.bind(n, starts, heads, starts[:-1].copy(), low, waiting, path)(20 * (n + len(heads))), low


@loop
def tarjan(n: int, starts: Ints, heads: Ints, edge: Ints, low: Ints, waiting: Ints, path: Ints) -> int:
    """Write the component of each vertex to `low`, and return the number of components.

    `waiting` has the visited vertices without a component, in the order of their visits, and `path` the vertices on the path from the
    root. `edge`, the next edge of each vertex, is `starts` at first. Before the visit of a vertex, `low` is −n − 1; then it is n less than
    the lowest place in `waiting` that the vertex is known to reach, and so less than all components.
    """
    waits, count = 0, 0
    for root in range(n):
        path[0] = root
        depth = 1 if low[root] < -n else 0
        while depth > 0:
            u = path[depth - 1]
            if low[u] < -n:
                low[u], waiting[waits] = waits - n, u
                waits += 1
            e, end, least = edge[u], starts[u + 1], low[u]
            while e < end and low[heads[e]] >= -n:
                least = min(least, low[heads[e]])
                e += 1
            edge[u], low[u] = e, least
            if e < end:  # the edge is read again after the visit of its head
                path[depth] = heads[e]
                depth += 1
                continue
            depth -= 1
            if waiting[n + least] == u:  # nothing before u is reached, so all that waits from u on is a component
                waits -= 1
                while waiting[waits] != u:
                    low[waiting[waits]] = count
                    waits -= 1
                low[u] = count
                count += 1
    return count
