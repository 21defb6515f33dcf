"""The paths of one source on the matrix itself, where rounding has spoiled the construction matrix.

Bellman's and Ford's algorithm, one edge a round, which remembers when each vertex changed: a path is read backwards through ever earlier
rounds, so it ends even where rounding makes a cycle improve; such loops are then erased.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from semiring.algebra.definition import Semiring
from semiring.algorithms.cycles import exact_weight, rounding
from semiring.algorithms.extraction import erase_loops
from semiring.algorithms.relaxation import relaxation

__all__ = ["SingleSource", "weighs"]

Array = np.ndarray[Any, Any]
Values = tuple[Array, ...]


class SingleSource:
    """The best paths of at least one edge from a vertex to all.

    Parameters
    ----------
    semiring : Semiring
        With a selective ⊕.
    values : tuple of arrays of shape (n, n)
        The matrix, not its closure.
    source : int

    Notes
    -----
    At most n rounds of O(n) steps for each vertex that changed; floats in double precision.
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
        """The vertices of the path to `target` (a cycle for the source itself); empty where there is none."""
        walk, v = [target], target
        for vertices, predecessors in reversed(self._rounds):
            i = int(np.searchsorted(vertices, v))
            if i < len(vertices) and vertices[i] == v:
                v = int(predecessors[i])
                walk.append(v)
        return erase_loops(walk[::-1]) if len(walk) > 1 else []


def weighs(semiring: Semiring, values: Values, path: Sequence[int], element: Sequence[Any]) -> bool:
    """Whether a path of the matrix has the weight `element`, as far as rounding may tell: else the matrix is another one."""
    weight = exact_weight(semiring, values, path)
    first = weight[0] if isinstance(weight, tuple) else weight
    if values[0].dtype.kind != "f":
        return bool(first == element[0])
    return bool(abs(float(first) - float(element[0])) <= 4 * rounding(values))
