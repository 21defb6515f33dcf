"""Strongly connected components of a sparse graph: Tarjan's algorithm (1972).

A stack replaces the recursion, and one number for each vertex is first its low-link, then its component (Pearce, 2016). Components are
finished in reverse topological order, so edges lead to the same or lower numbers.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from semiring.kernels.cpu.loops import Ints, loop

__all__ = ["strong_components"]

Array = np.ndarray[Any, Any]


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
    found, waiting, path = np.empty((3, n), np.int64)
    count = tarjan.bind(n, starts, heads, starts[:-1].copy(), low, found, waiting, path)(20 * (n + len(heads)))
    return count, low


@loop
def tarjan(n: int, starts: Ints, heads: Ints, edge: Ints, low: Ints, found: Ints, waiting: Ints, path: Ints) -> int:
    """Write the component of each vertex to `low`, and return the number of components.

    Visited vertices are numbered from −n on (`found`). Until the component is known, `low` is the least number that a vertex is known to
    reach; −n − 1 before the visit. `edge`, the next edge of each vertex, is `starts` at first. `waiting` has the visited vertices without
    a component.
    """
    visited, waits, count = -n, 0, 0
    for root in range(n):
        path[0] = root
        depth = 1 if low[root] < -n else 0
        while depth > 0:
            u = path[depth - 1]
            if low[u] < -n:
                low[u], found[u], waiting[waits] = visited, visited, u
                visited, waits = visited + 1, waits + 1
            e, end, least = edge[u], starts[u + 1], low[u]
            while e < end and low[heads[e]] >= -n:
                least = min(least, low[heads[e]])  # components change nothing, as their numbers are not negative
                e += 1
            edge[u], low[u] = e, least
            if e < end:  # the edge is read again after the visit of its head
                path[depth] = heads[e]
                depth += 1
                continue
            depth -= 1
            if least == found[u]:  # the vertices that wait since the visit of u are a component
                while low[u] < 0:
                    waits -= 1
                    low[waiting[waits]] = count
                count += 1
    return count
