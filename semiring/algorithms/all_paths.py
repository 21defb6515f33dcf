"""Simple paths with the best element between two vertices, all of them: iterated over, or counted.

An edge u → v is *tight* if d_u ⊗ a_uv = d_v, for the best elements d from a source. Where ⊗ adds or multiplies, a path from the source has
the best element exactly if all its edges are tight. Where ⊗ is a minimum or a maximum, a path to t has the best element if no edge is worse
than d_t. The paths to a vertex follow these edges back to the source.

Without a cycle of such edges the number of paths is a sum over predecessors, in topological order. With a cycle, each step back first makes
sure of a way from the source through unvisited vertices. So paths follow each other in polynomial time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from semiring.algebra.definition import Semiring
from semiring.algebra.expression import is_operation
from semiring.algorithms.bellman_ford import compared
from semiring.algorithms.csr import CSR, present, starts_of
from semiring.algorithms.rows_of_edges import rows_of_edges
from semiring.algorithms.search import Searches
from semiring.arrays.conversion import Array
from semiring.common.errors import GraphError, LawError
from semiring.kernels.operations import operations_for

__all__ = ["AllPaths"]


class AllPaths:
    """The best paths from one source of a sparse graph.

    Examples
    --------
    >>> from semiring import MIN_PLUS
    >>> edges = CSR.of(np.array([0, 0, 1, 2]), np.array([1, 2, 3, 3]), (np.array([1, 2, 2, 1]),), 4, (np.iinfo(int).max,))
    >>> found = AllPaths(MIN_PLUS, edges, 0)
    >>> list(found.paths(3)), found.count(3)
    ([[0, 1, 3], [0, 2, 3]], 2)

    Parameters
    ----------
    semiring : Semiring
        With a selective ⊕. ⊗ adds, multiplies, or takes the minimum or maximum, component by component.
    edges : CSR
    source : int
    reflexive : bool
        The best path from the source to itself is the empty one, not a cycle.
    searches : Searches, optional
    name : callable
        The caller's name of a vertex, for errors.
    """

    def __init__(
        self,
        semiring: Semiring,
        edges: CSR,
        source: int,
        *,
        reflexive: bool = True,
        searches: Searches | None = None,
        name: Callable[[int], Any] = int,
    ) -> None:
        parts = semiring.program.mul
        self._bottleneck = len(parts) == 1 and is_operation(parts[0], ("min", "max", "and", "or"))
        if not self._bottleneck and not all(is_operation(part, ("add", "mul"), c) for c, part in enumerate(parts)):
            raise LawError(f"all_paths needs a ⊗ of sums, products, or one minimum or maximum, unlike {semiring.name}; path finds one path")
        self.semiring, self.edges, self.source, self.reflexive, self.name = semiring, edges, source, reflexive, name
        self._row = tuple([v[0] for v in rows_of_edges(semiring, edges, np.array([source]), reflexive=reflexive, searches=searches)])
        self._tight: tuple[Array, Array] | None = None

    def paths(self, target: int) -> Iterator[list[int]]:
        """Iterate over the paths, each once; a path from the source to itself ends where it began unless it is empty."""
        if target == self.source and self.reflexive:
            yield [target]
            return
        before = self._tails(target)
        cyclic = self._ordered(before, target)[1] is not None
        path, visited = [target], {target}
        turns = [iter(before.get(target, ()))]
        while turns:
            u = next(turns[-1], None)
            if u is None:
                turns.pop()
                visited.discard(path.pop())
            elif u == self.source:
                yield [u, *path[::-1]]
            elif u not in visited and (not cyclic or self._leads_back(before, u, visited)):
                path.append(u)
                visited.add(u)
                turns.append(iter(before[u]))

    def lists(self, names: Sequence[Any]) -> Iterator[tuple[int, list[list[Any]]]]:
        """Yield each vertex with a path, and all paths to the vertex, by the names of vertices; faster than target by target.

        ⊗ adds, and paths to a vertex are made of the paths to predecessors if no edge on a best path has weight 0.
        """
        starts, tails = self._best_edges(self.source)
        (row,) = self._row
        heads = np.arange(len(row)).repeat(np.diff(starts))
        inner = heads != self.source
        reached = np.flatnonzero(row != self.edges.zero[0])
        if not (row[tails[inner]] < row[heads[inner]]).all():
            yield from ((v, [[names[u] for u in path] for path in self.paths(v)]) for v in reached.tolist())
            return
        found = {self.source: [[names[self.source]]]}
        yield self.source, found[self.source]
        for v in reached[np.argsort(row[reached], kind="stable")].tolist():
            if v != self.source:
                before = tails[starts[v] : starts[v + 1]].tolist()
                found[v] = [[*path, names[v]] for u in before for path in found[u]]
                yield v, found[v]

    def count(self, target: int) -> int:
        """Count the paths; refuse a target to which a walk with the best element has a cycle.

        Raises
        ------
        GraphError
            If cycles make the number of walks infinite; a cycle is named.
        """
        if target == self.source and self.reflexive:
            return 1
        before = self._tails(target)
        order, cycle = self._ordered(before, target)
        if cycle is not None:
            around = " → ".join(repr(self.name(v)) for v in [*cycle, cycle[0]])
            raise GraphError(
                f"best walks to {self.name(target)!r} may go around the cycle {around} any number of times; all_paths iterates over the "
                f"simple paths"
            )
        counts = {self.source: 1}
        for v in order:
            counts[v] = sum(counts[u] for u in before[v])
        return sum(counts[u] for u in before.get(target, ()))

    def _tails(self, target: int) -> dict[int, list[int]]:
        """Return the tails of the edges on best paths to a target, for each vertex that leads to the target; the source has none."""
        starts, tails = self._tight or self._best_edges(target)
        if not self._bottleneck:
            self._tight = starts, tails  # for every target
        before: dict[int, list[int]] = {}
        waiting = [target] if starts[target] < starts[target + 1] else []
        while waiting:
            v = waiting.pop()
            if v not in before:
                before[v] = tails[starts[v] : starts[v + 1]].tolist()
                waiting += [u for u in before[v] if u != self.source]
        return before

    def _best_edges(self, target: int) -> tuple[Array, Array]:
        """Return the edges that best paths may have, without loops, in compressed columns."""
        edges, row, operations = self.edges, self._row, operations_for(self.semiring, self.edges.dtypes)
        tails, heads = edges.tails, edges.heads
        if self._bottleneck:
            _, wins = compared(
                operations, tuple([np.full_like(w, v[target]) for v, w in zip(row, edges.weights, strict=True)]), edges.weights
            )
            best = wins & (row[0][target] != edges.zero[0])
        else:
            walks = tuple([v.copy() for v in row])
            for v, o in zip(walks, operations.one, strict=True):
                v[self.source] = o
            with np.errstate(all="ignore"):
                offers = operations.mul(tuple([v[tails] for v in walks]), edges.weights)
            best = np.logical_and.reduce([o == v[heads] for o, v in zip(offers, row, strict=True)])
            best &= present(tuple([v[heads] for v in row]), edges.zero)
        best &= (tails != heads) | (tails == self.source)
        number = np.flatnonzero(best)
        number = number[np.argsort(heads[number], kind="stable")]
        return starts_of(heads[number], edges.n), tails[number]

    def _ordered(self, before: dict[int, list[int]], target: int) -> tuple[list[int], list[int] | None]:
        """Return the vertices but the source and the target in topological order, and None; or some of them, and a cycle."""
        order, done = list[int](), set[int]()
        for root in before:
            if root in done:
                continue
            path, place, turns = [root], {root: 0}, [iter(before[root])]
            while turns:
                u = next(turns[-1], None)
                if u is None:
                    turns.pop()
                    v = path.pop()
                    del place[v]
                    done.add(v)
                    if v != target:
                        order.append(v)
                elif u in place:
                    return order, path[place[u] :][::-1]
                elif u != self.source and u not in done:
                    place[u] = len(path)
                    path.append(u)
                    turns.append(iter(before[u]))
        return order, None

    def _leads_back(self, before: dict[int, list[int]], v: int, visited: set[int]) -> bool:
        """Return True if a vertex is reached from the source without visited vertices."""
        seen, waiting = {v, *visited}, [v]
        while waiting:
            for u in before[waiting.pop()]:
                if u == self.source:
                    return True
                if u not in seen:
                    seen.add(u)
                    waiting.append(u)
        return False
