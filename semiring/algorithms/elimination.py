"""Sparse elimination: the closure of a sparse graph as panels of few entries, from which two sweeps compute any rows or columns.

Eliminating a vertex joins its neighbours by the paths through the vertex: Gaussian elimination over a closed semiring (Backhouse and
Carré, 1975). For a supernode S, the vertices R joined with S, and the front A of both,

    D ← A_SS*,  A_SR ← D A_SR,  A_RR ← A_RR ⊕ A_RS A_SR,  A_RS ← A_RS D,

the first four assignments of the recursive closure. The Schur complement at R goes to the front of the supernode above (multifrontal: Duff
and Reid, 1983). With dense products this is the superFW of Sao, Kannan, Gera and Vuduc (2020).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from semiring.algorithms.recursive import close_first, eliminate_first
from semiring.algorithms.symbolic import Symbolic
from semiring.arrays.conversion import Array, Values
from semiring.arrays.devices import on_gpu
from semiring.arrays.threads import run
from semiring.common.errors import DivergentPivot
from semiring.kernels.compressed import EliminationPanels, SweepLayout
from semiring.kernels.engine import Block, Engine, Primitives

__all__ = ["Elimination", "eliminate_front"]

_SMALL = 192
"""The largest side of a front that is eliminated vertex by vertex."""

_SHARES, _TASK = 64, 1 << 22
"""A task has up to 1/_SHARES of all steps, for busy threads and little work after small changes, or up to _TASK if that is more."""


def eliminate_front(engine: Primitives, A: Block, w: int, base: int, *, by_star: bool) -> None:
    """Eliminate the first w vertices of a front, by the equations of the module. w m² steps.

    Examples
    --------
    The path from 1 to 2 leads through 0, which is eliminated:

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
    first_half = eliminate_first if by_star else close_first
    first_half(engine, A[S, S], A[S, R], A[R, S], A[R, R], base)


class Elimination:
    """The panels of a graph, and the parts kept for new weights: Schur complements from large subtrees upwards, or all fronts on a GPU."""

    def __init__(
        self,
        engine: Engine,  # for large fronts
        kernels: Any,  # Eliminations, for small fronts and the sweeps
        found: Symbolic,
        *,
        by_star: bool,  # eliminate by star(pivot), for any closed semiring; else ⊕ must be idempotent
        panels: EliminationPanels | None = None,  # of an earlier elimination of the same graph
        sweeps: Any = None,  # CudaSweeps, with panels on a GPU too, for rows and columns there
        fronts: Any = None,  # CudaFronts, for the elimination on a GPU
    ) -> None:
        self.engine, self.kernels, self.found, self.by_star, self.sweeps, self.fronts = engine, kernels, found, by_star, sweeps, fronts
        size = found.fill.panels
        upper, lower = panels or (tuple(np.empty(size, d) for d in kernels.dtypes) for _ in range(2))
        self._panels = EliminationPanels(upper, lower)
        self._behind = np.zeros(len(found.parent), bool)  # supernodes with panels on the GPU alone
        self._complements = np.zeros((len(found.parent), len(kernels.dtypes)), np.int64)
        self._held: dict[int, Values] = {}
        self._subtrees, self._above = _subtrees(found)
        if sweeps is not None and panels is not None:
            sweeps.hold(panels)
        numbers = np.arange(found.n)
        self._layout = SweepLayout(numbers, numbers, found.nodes.rows)

    @property
    def panels(self) -> EliminationPanels:
        """Return the panels on the host, fetched from the GPU if newer there."""
        if self._behind.any():
            self.sweeps.fetch(self._panels, self._behind)
            self._behind[:] = False
        return self._panels

    @property
    def nbytes(self) -> int:
        """Count the bytes of the panels, the analysis and the kept parts."""
        arrays = (*self._panels.upper, *self._panels.lower, *(v for values in self._held.values() for v in values))
        kept = 0 if self.fronts is None else self.fronts.nbytes
        return sum(v.nbytes for v in arrays) + sum(v.nbytes for v in self.found.nodes) + kept

    @property
    def together(self) -> int:
        """Return the number of rows that fill all threads and lanes."""
        return int(self.kernels.lanes * self.kernels.threads)

    def run(self, weights: Values, changed: Array | None = None) -> None:
        """Eliminate all supernodes, or only the supernodes that depend on changed edges.

        `weights` are in the order of the graph, and `changed` numbers the changed edges. A GPU goes level by level. On the host each thread
        eliminates subtrees of small fronts; larger fronts follow, by products on all threads.

        Raises
        ------
        DivergentPivot
            With the vertex of the pivot. The panels are then useless.
        """
        kept = self._held if self.fronts is None else self.fronts.nbytes
        due = self._above_edges(changed) if changed is not None and kept else None
        try:
            if self.fronts is None:
                self._run_here(weights, due)
            else:
                upper, lower = self.sweeps.panels
                self.fronts.run(weights, due, upper, lower, signed=self.engine.signed)
        except DivergentPivot as stop:
            raise DivergentPivot(int(self.found.order[stop.vertex])) from None
        if self.fronts is not None:
            self._behind |= True if due is None else due
        elif self.sweeps is not None:
            self.sweeps.hold(self.panels, due)

    def _above_edges(self, changed: Array) -> Array:
        """Mark the supernodes that depend on changed edges."""
        found, due = self.found, np.zeros(len(self.found.parent), bool)
        position = found.positions[changed]
        due[found.ancestors(np.minimum(found.nodes.entry_rows[position], found.nodes.entry_columns[position]))] = True
        return due

    def _run_here(self, weights: Values, due: Array | None) -> None:
        found, nodes = self.found, self.found.nodes
        weights = tuple(w[found.entries] for w in weights)
        if due is None:
            due = np.ones(len(found.parent), bool)
        how: dict[str, Any] = {"by_star": self.by_star, "signed": self.engine.signed}
        subtrees = [(first, last + 1, _stack(found, first, last)) for first, last in self._subtrees if due[first : last + 1].any()]
        self.kernels.fronts(nodes, weights, self._panels, self._complements, subtrees, self._keep_first, **how)
        for s in self._above:
            if due[s]:
                self._front(s, weights, how)

    def _front(self, s: int, weights: Values, how: dict[str, Any]) -> None:
        nodes, w, m = self.found.nodes, int(self.found.widths[s]), int(self.found.sides[s])
        if m <= _SMALL:
            self.kernels.fronts(nodes, weights, self._panels, self._complements, [(s, s + 1, m * m)], self._keep_first, **how)
            return
        front = tuple(np.empty((m, m), d) for d in self.kernels.dtypes)
        self.kernels.assemble(nodes, weights, self._complements, s, front, by_star=self.by_star)
        try:
            eliminate_front(self.engine, self.engine.load(front), w, self.engine.pivot, by_star=self.by_star)
        except DivergentPivot as stop:
            raise DivergentPivot(int(nodes.columns[s]) + stop.vertex) from None
        own = slice(*nodes.panel_starts[s : s + 2])
        for v, upper, lower in zip(front, *self._panels, strict=True):
            upper[own].reshape(w, m)[...] = v[:w]
            lower[own].reshape(m, w)[...] = v[:, :w]
        self._keep(s, tuple(np.ascontiguousarray(v[w:, w:]) for v in front))

    def _keep_first(self, s: int, stack: Values) -> None:
        self._keep(s, tuple(v[: int(self.found.beyond[s]) ** 2].copy() for v in stack))

    def _keep(self, s: int, complement: Values) -> None:
        self._held[s] = complement
        self._complements[s] = [v.ctypes.data for v in complement]

    def rows(self, sources: Array, targets: Array | None, out: Values, *, backward: bool = False, tell: Callable[[int, int], None]) -> None:
        """Compute rows of the closure from some vertices (`backward`: columns to them), at some targets or all, by both sweeps.

        `out` holds contiguous arrays of shape (k, l) for k sources and l targets, or `backward` (l, k), by columns on a GPU. `tell`
        receives the number of finished rows, and the worker.
        """
        found, kernels = self.found, self.kernels
        places, signed = found.place[sources], self.engine.signed
        ends = found.place if targets is None else found.place[targets]
        down = self._down(None if targets is None else ends)
        if on_gpu(out[0]):
            self.sweeps.run(places, ends, down, tuple(v.T for v in out) if backward else out, backward=backward, signed=signed)
            tell(len(places), 0)
            return
        order = np.argsort(places, kind="stable")  # neighbours in the tree share most ancestors
        buffers: dict[int, Values] = {}
        panels = self.panels

        def some(first: int, worker: int) -> None:
            numbers = order[first : first + kernels.lanes]
            if worker not in buffers:
                buffers[worker] = kernels.buffer(found.n)
            x = buffers[worker]
            starts = places[numbers]
            up = found.ancestors(starts)
            kernels.sweep(found.nodes, panels, self._layout, starts, up, down, x, backward=backward, signed=signed)
            if backward:
                for v, o in zip(x, out, strict=True):
                    o[:, numbers] = v[ends, : len(numbers)]
            else:
                kernels.gather(x, ends, out, numbers)
            tell(len(numbers), worker)

        run(some, range(0, len(order), kernels.lanes), kernels.threads)

    def solve(self, b: Values, *, transposed: bool = False) -> Values:
        """Return A* ⊗ b for matrices b of n rows, the least solution of x = A ⊗ x ⊕ b; `transposed`: the transpose of bᵀ ⊗ A*."""
        found, kernels = self.found, self.kernels
        n, k = b[0].shape
        result = tuple(np.empty((n, k), d) for d in kernels.dtypes)
        zero, _ = self.engine.semiring.identities(kernels.dtypes)
        up, down, panels = np.arange(len(found.parent)), self._down(None), self.panels

        def some(first: int, worker: int) -> None:
            x, own, lanes = kernels.buffer(n), kernels.buffer(n), slice(first, min(first + kernels.lanes, k))
            for v, given, z in zip(own, b, zero, strict=True):
                v[...] = z
                v[found.place, : lanes.stop - first] = given[:, lanes]
            kernels.sweep(found.nodes, panels, self._layout, own, up, down, x, backward=not transposed, signed=self.engine.signed)
            for v, out in zip(x, result, strict=True):
                out[:, lanes] = v[found.place, : lanes.stop - first]

        run(some, range(0, k, kernels.lanes), kernels.threads)
        return result

    def _down(self, places: Array | None) -> Array:
        """List the supernodes of the sweep down to some places, or all."""
        every = np.arange(len(self.found.parent)) if places is None else self.found.ancestors(places)
        return np.ascontiguousarray(every[::-1])


def _subtrees(found: Symbolic) -> tuple[list[tuple[int, int]], list[int]]:
    """Return the first and last supernode of each task of small fronts, and the supernodes above them.

    A task is a subtree, as large as a task may be, or a run of whole components, which leave no Schur complements.
    """
    parent, count = found.parent.tolist(), len(found.parent)
    steps, first = (found.widths * found.sides**2).tolist(), list(range(count))
    small = (found.sides <= _SMALL).tolist()
    for s, above in enumerate(parent):
        if above < count:
            steps[above] += steps[s]
            small[above] = small[above] and small[s]
            first[above] = min(first[above], first[s])
    most = max(_TASK, found.fill.steps // _SHARES)
    inside = [a and b <= most for a, b in zip(small, steps, strict=True)]
    tops = [s for s in range(count) if inside[s] and not (parent[s] < count and inside[parent[s]])]
    tasks: list[tuple[int, int]] = []
    total = most + 1
    for s in tops:
        total += steps[s]
        if total <= most and parent[tasks[-1][1]] == count and tasks[-1][1] + 1 == first[s]:
            tasks[-1] = tasks[-1][0], s
        else:
            tasks.append((first[s], s))
            total = steps[s]
    return tasks, [s for s in range(count) if not inside[s]]


def _stack(found: Symbolic, first: int, last: int) -> int:
    """Return the peak number of elements of the fronts and Schur complements of a subtree."""
    some = slice(first, last + 1)
    left = found.beyond[some] ** 2
    parent = found.parent[some] - first
    inside = parent < len(left)
    taken = np.zeros(len(left), np.int64)
    np.add.at(taken, parent[inside], left[inside])
    before = np.cumsum(left - taken) - (left - taken)
    return int((before + found.sides[some] ** 2).max())
