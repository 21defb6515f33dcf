"""Elementary cycles of a sparse graph, each once: Johnson's algorithm (1975).

The cycles through one vertex of a strongly connected component are found first. The rest of the component falls into components again.
A vertex from which no way back was found is blocked until a vertex ahead of it is on a cycle. So cycles follow each other within O(n + m)
steps.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

import numpy as np

from semiring.algorithms.csr import CSR, starts_of
from semiring.algorithms.strong_components import strong_components
from semiring.arrays.conversion import Array

__all__ = ["elementary_cycles"]


def elementary_cycles(graph: CSR) -> Iterator[list[int]]:
    """Iterate over the cycles without a repeated vertex, as vertices in order; loops first. Memory of O(n + m).

    Examples
    --------
    >>> graph = CSR.of(np.array([0, 1, 1, 2, 2]), np.array([1, 0, 2, 0, 2]), (), 3, ())
    >>> list(elementary_cycles(graph))
    [[2], [0, 1], [0, 1, 2]]
    """
    yield from ([v] for v in graph.tails[graph.tails == graph.heads].tolist())
    waiting = [(np.arange(graph.n), graph.tails, graph.heads)]
    while waiting:
        names, tails, heads = waiting.pop()
        starts = starts_of(tails, len(names))
        count, component = strong_components(starts, heads)
        inside = (component[tails] == component[heads]) & (tails != heads)
        # The vertices of a component become neighbours in number, and its edges in place.
        order = np.argsort(component, kind="stable")
        number = np.argsort(order)
        tails, heads = number[tails[inside]], number[heads[inside]]
        sorted_edges = np.argsort(tails, kind="stable")
        tails, heads = tails[sorted_edges], heads[sorted_edges]
        first = starts_of(component, count)
        for c in np.flatnonzero(np.diff(first) > 1)[::-1].tolist():
            begin, end = first[c : c + 2].tolist()
            edges = slice(*np.searchsorted(tails, (begin, end)).tolist())
            some, own = names[order[begin:end]], (tails[edges] - begin, heads[edges] - begin)
            called = some.tolist().__getitem__
            yield from (list(map(called, cycle)) for cycle in _through_first(len(some), *own))
            rest = (own[0] > 0) & (own[1] > 0)
            waiting.append((some[1:], own[0][rest] - 1, own[1][rest] - 1))


def _through_first(n: int, tails: Array, heads: Array) -> Iterator[list[int]]:
    """Iterate over the cycles through vertex 0 of a strongly connected graph without loops."""
    following = [some.tolist() for some in np.split(heads, np.searchsorted(tails, np.arange(1, n)))]
    path, blocked, closed, turns = [0], {0}, [False], [iter(following[0])]
    behind: defaultdict[int, set[int]] = defaultdict(set)  # blocked vertices that a vertex unblocks
    while turns:
        v = next(turns[-1], None)
        if v == 0:
            yield path.copy()
            closed[-1] = True
        elif v is None:
            turns.pop()
            u = path.pop()
            if not closed.pop():
                for w in following[u]:
                    behind[w].add(u)
                continue
            free = {u}
            while free:
                w = free.pop()
                if w in blocked:
                    blocked.discard(w)
                    free |= behind.pop(w, set())
            if closed:
                closed[-1] = True
        elif v not in blocked:
            path.append(v)
            blocked.add(v)
            closed.append(False)
            turns.append(iter(following[v]))
