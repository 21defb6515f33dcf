"""Sparse elimination: the closure of a sparse graph as panels of a few entries, from which any rows and columns of it follow in two sweeps.

Eliminating a vertex takes it out of the graph and joins its neighbours by the paths through it: Gaussian elimination over a closed semiring
(Backhouse and Carré, 1975). With S a supernode, R what it is joined with, and A the front of both,

    D ← A_SS*,  U ← D A_SR,  L ← A_RS D,  A_RR ← A_RR ⊕ L A_SR,

which are the first four assignments of the recursive closure. What remains at R, its Schur complement, goes to the front of the supernode
above (multifrontal: Duff and Reid, 1983), and with products as dense matrices it is the superFW of Sao, Kannan, Gera and Vuduc (2020).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from semiring.algebra.definition import Semiring
from semiring.algorithms.recursive import recursive, recursive_elimination
from semiring.algorithms.symbolic import Symbolic
from semiring.kernels.cpu.eliminations import Eliminations, Panels
from semiring.common.errors import DivergentPivot
from semiring.kernels.engine import Block, Engine, Primitives

__all__ = ["eliminate", "eliminate_front"]

Array = np.ndarray[Any, Any]
Values = tuple[Array, ...]

_SMALL = 192
"""The largest side of a front that is eliminated vertex by vertex."""

_SHARES, _TASK = 8, 1 << 22
"""Subtrees for each thread at least, and steps that are worth one of their own."""


def eliminate_front(engine: Primitives, A: Block, w: int, base: int, *, by_star: bool) -> None:
    """Eliminate the first w vertices of a front; see the module. w m² steps.

    Examples
    --------
    The way from 1 to 2 goes through 0, which is eliminated:

    >>> from semiring import MIN_PLUS
    >>> from semiring.kernels import engine_for
    >>> front = np.array([[0, np.inf, 2.0], [3.0, np.inf, np.inf], [np.inf, np.inf, np.inf]])
    >>> engine = engine_for(MIN_PLUS, (front.dtype,), "reference")
    >>> eliminate_front(engine, engine.load((front,)), 1, 1, by_star=False)
    >>> front
    array([[ 0., inf,  2.],
           [ 3., inf,  5.],
           [inf, inf, inf]])
    """
    S, R = slice(0, w), slice(w, A.shape[0])
    if by_star:
        recursive_elimination(engine, A[S, S], base)
    else:
        recursive(engine, A[S, S], base)
    if not A.shape[0] > w:
        return
    if by_star:
        engine.multiply(A[S, S], A[S, R], A[S, R])
        engine.multiply_add(A[R, S], A[S, R], A[R, R])
        engine.multiply(A[R, S], A[S, S], A[R, S])
    else:
        engine.multiply_add(A[S, S], A[S, R], A[S, R])
        engine.multiply_add(A[R, S], A[S, S], A[R, S])
        engine.multiply_add(A[R, S], A[S, R], A[R, R])


def eliminate(engine: Engine, kernels: Eliminations, found: Symbolic, weights: Values, *, by_star: bool) -> Panels:
    """The panels of a graph whose edges weigh `weights`, in the order of the graph.

    Subtrees of small fronts are eliminated by compiled code, one a thread; larger fronts by products on all threads, one after the other.

    Raises
    ------
    DivergentPivot
        With the number of a vertex on a divergent cycle.
    """
    nodes, count = found.nodes, len(found.parent)
    weights = tuple(w[found.entries] for w in weights)
    size = int(nodes.panel_starts[-1])
    upper, lower = (tuple(np.empty(size, d) for d in kernels.dtypes) for _ in range(2))
    panels, complements = Panels(upper, lower), np.zeros((count, len(weights)), np.int64)
    held: dict[int, Values] = {}
    try:
        subtrees, above = _subtrees(found, kernels.threads)
        tasks = [(first, last + 1, _stack(found, first, last, kernels.dtypes)) for first, last in subtrees]
        kernels.fronts(nodes, weights, panels, complements, tasks, eliminate=by_star, signed=engine.signed)
        for first, last, stack in tasks:
            held[last - 1] = tuple(v[: int(found.beyond[last - 1]) ** 2].copy() for v in stack)
            _told(complements, last - 1, held)
        del tasks
        for s in above:
            w, m = int(found.widths[s]), int(found.sides[s])
            front = tuple(np.empty((m, m), d) for d in kernels.dtypes)
            if m <= _SMALL:
                kernels.fronts(nodes, weights, panels, complements, [(s, s + 1, front)], eliminate=by_star, signed=engine.signed)
                held[s] = tuple(v.reshape(-1)[: (m - w) ** 2].copy() for v in front)
            else:
                kernels.assemble(nodes, weights, complements, s, front, eliminate=by_star)
                try:
                    eliminate_front(engine, engine.load(front), w, engine.pivot, by_star=by_star)
                except DivergentPivot as stop:
                    raise DivergentPivot(int(nodes.columns[s]) + stop.vertex) from None
                start, stop = nodes.panel_starts[s : s + 2]
                for v, u, low in zip(front, upper, lower, strict=True):
                    u[start:stop].reshape(w, m)[...] = v[:w]
                    low[start:stop].reshape(m, w)[...] = v[:, :w]
                held[s] = tuple(np.ascontiguousarray(v[w:, w:]) for v in front)
            _told(complements, s, held)
            for child in nodes.children[nodes.child_starts[s] : nodes.child_starts[s + 1]].tolist():
                del held[child]
    except DivergentPivot as stop:
        raise DivergentPivot(int(found.order[stop.vertex])) from None
    return panels


def _told(complements: Array, s: int, held: dict[int, Values]) -> None:
    """Say where the Schur complement of a supernode lies."""
    complements[s] = [v.ctypes.data for v in held[s]]


def _subtrees(found: Symbolic, threads: int) -> tuple[list[tuple[int, int]], list[int]]:
    """The first and last supernodes of the largest subtrees of small fronts that are worth a task, and the supernodes above them."""
    parent, count = found.parent.tolist(), len(found.parent)
    steps, first = (found.widths * found.sides**2).tolist(), list(range(count))
    small = (found.sides <= _SMALL).tolist()
    for s, above in enumerate(parent):
        if above < count:
            steps[above] += steps[s]
            small[above] = small[above] and small[s]
            first[above] = min(first[above], first[s])
    most = max(_TASK, found.steps // (_SHARES * threads))
    inside = [a and b <= most for a, b in zip(small, steps, strict=True)]
    tops = [s for s in range(count) if inside[s] and not (parent[s] < count and inside[parent[s]])]
    return [(first[s], s) for s in tops], [s for s in range(count) if not inside[s]]


def _stack(found: Symbolic, first: int, last: int, dtypes: tuple[np.dtype[Any], ...]) -> Values:
    """Memory for the fronts and Schur complements of a subtree."""
    some = slice(first, last + 1)
    left = found.beyond[some] ** 2
    parent = found.parent[some] - first
    inside = parent < len(left)
    taken = np.zeros(len(left), np.int64)
    np.add.at(taken, parent[inside], left[inside])
    before = np.cumsum(left - taken) - (left - taken)
    need = int((before + found.sides[some] ** 2).max())
    return tuple(np.empty(need, d) for d in dtypes)
