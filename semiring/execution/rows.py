"""Rows of the closure of a matrix: by products until a fixed point, or out of the closure of what they reach."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from semiring.algorithms.closure import closure
from semiring.algorithms.divergence import extremum_of, may_improve
from semiring.algorithms.rows_of_matrix import reachable, rows_of_matrix
from semiring.algorithms.spanning_tree import SpanningForest, is_symmetric
from semiring.arrays.conversion import Array
from semiring.arrays.devices import host, is_gpu, namespace, on_device, on_gpu
from semiring.arrays.memory import require_memory
from semiring.common.errors import SemiringError, in_stack
from semiring.common.progress import Meter
from semiring.execution.question import GivenGraph, Question, Selection, Values, answer_rows
from semiring.execution.row_solvers import require_rows, rows_of_forest
from semiring.graphs import Graph
from semiring.kernels.limits import ValueStatistics
from semiring.kernels.machine import PART
from semiring.kernels.overflow.closures import guard_for, statistics_of
from semiring.kernels.select import engine_for
from semiring.planning import Plan
from semiring.results.paths import Paths

__all__ = ["close"]


def close(how: Plan, given: GivenGraph, question: Question, selection: Selection | None, meter: Meter | None) -> Any:
    """Run a plan that finds some rows of a dense matrix, or of a sparse graph by the closure of what they reach."""
    assert selection is not None
    task = _Task(how, question, selection, given.labels, meter)
    edges = given.edges
    if edges is None:
        g = given.read()
        return answer_rows(question, selection, g, *task.of_matrices(g), lambda: g.values)
    if task.all_suffice(edges.statistics):
        found = task.of_closure(edges.dense, selection.roots, given.vertices)
    else:
        vertices = (edges.transposed() if selection.backward else edges).reachable(selection.roots)
        require_memory(len(vertices), edges.dtypes, via=how.paths)
        found = task.of_part(edges.induced(vertices).dense, vertices, edges.zero)
    return answer_rows(question, selection, Graph((), owned=True, labels=given.vertices), *found, edges.arrays)


class _Task:
    """The rows of one matrix, or of each matrix of a stack, by a plan."""

    def __init__(self, how: Plan, question: Question, selection: Selection, labels: Sequence[Any] | None, meter: Meter | None) -> None:
        self.plan, self.question, self.selection, self.labels, self.meter = how, question, selection, labels, meter
        self.semiring, self.reflexive, self.paths = how.semiring, question.reflexive, how.paths
        self.backward, self.shape = selection.backward, selection.shape

    def of_matrices(self, g: Graph) -> tuple[Values, Any]:
        """Find rows of each matrix, and the trees of their paths."""
        where = self.plan.device
        shape = (*g.batch, *self.shape)
        require_rows(shape, g.dtypes, where, paths=self.paths, backward=self.backward)
        with on_device(where):
            statistics = () if g.verify is None else g.verify()
            if g.batch and not on_gpu(g.values[0]):
                statistics = ()  # of each matrix by itself
            given, sent = g.values, is_gpu(where) and not on_gpu(g.values[0])
            if sent:
                from semiring.kernels.cuda.blocks import upload

                require_memory(g.n, g.dtypes, batch=g.batch, device=where)
                given = tuple(map(upload, given))
            if not g.batch:
                values, tree = self.of_matrix(given, statistics)
            else:
                values, tree = self._of_stack(given, g.batch, statistics)
            if sent:
                values, tree = tuple(map(host, values)), None if tree is None else host(tree)
        return values, tree

    def _of_stack(self, given: Values, batch: tuple[int, ...], statistics: Sequence[ValueStatistics]) -> tuple[Values, Any]:
        xp, shape = namespace(given[0]), (*batch, *self.shape)
        values = tuple(xp.empty(shape, dtype=v.dtype) for v in given)
        tree = xp.empty(shape, dtype=np.int32) if self.paths else None
        for index in np.ndindex(batch):
            try:
                found, grown = self.of_matrix(tuple(v[index] for v in given), statistics)
            except SemiringError as error:
                in_stack(error, index)
                raise
            for array, part in zip(values, found, strict=True):
                array[index] = part
            if tree is not None:
                tree[index] = grown
        return values, tree

    def of_matrix(self, values: Values, statistics: Sequence[ValueStatistics]) -> tuple[Values, Any]:
        """Find rows of one matrix, and the trees of their paths."""
        how, roots = self.plan, self.selection.roots
        if how.spanning is not None and how.dtypes[0].kind != "O" and is_symmetric(values[0]):
            (matrix,), ((zero,), (one,)) = map(np.ascontiguousarray, values), self.semiring.identities(how.dtypes)
            forest = SpanningForest.of_matrix(matrix, zero, one, smallest=extremum_of(self.semiring) is np.fmin)
            return rows_of_forest(how, forest, matrix, roots, reflexive=self.reflexive, backward=self.backward)
        if how.strategy == "rows by products":
            whole, speed = dict(how.considered).get("whole", math.inf), how.speed
            found = self._by_products(values, statistics, steps=math.inf if speed is None else whole * speed.steps)
            if found is not None:
                return found
        if self.all_suffice(statistics):
            return self.of_closure(lambda: tuple(v.copy() for v in values), roots, self.labels, statistics)
        zero, _ = self.semiring.identities(how.dtypes)
        vertices = reachable(values, zero, roots, backward=self.backward)
        require_memory(len(vertices), how.dtypes, via=self.paths, device=how.device)
        index = namespace(values[0]).asarray(vertices)
        return self.of_part(lambda: tuple(v[index[:, None], index] for v in values), vertices, zero)

    def all_suffice(self, statistics: Sequence[ValueStatistics]) -> bool:
        """Return True if the whole closure takes less than a look at what is reached, and no cycle of the rest can diverge."""
        return self.selection.n <= PART and bool(statistics) and not may_improve(self.semiring, statistics)

    def _by_products(self, values: Values, statistics: Sequence[ValueStatistics], *, steps: float) -> tuple[Values, Any] | None:
        """Multiply rows by the matrix until a fixed point; None if that takes more than `steps`, the steps of the closure."""
        n, dtypes = self.selection.n, tuple(v.dtype for v in values)
        guard = guard_for(self.semiring, dtypes, n - 1 if self.reflexive else n, check=self.question.options.check)
        statistics = statistics or statistics_of(self.semiring, values)
        guard.before(statistics)
        engine = engine_for(self.semiring, dtypes, self.plan.device, self.question.options.threads, witness=True)
        engine.signed, engine.statistics, engine.meter = guard.signed, statistics[0], self.meter
        tree = namespace(values[0]).full(self.shape, -1, dtype=np.int32) if self.paths else None
        roots, reflexive, backward = self.selection.roots, self.reflexive, self.backward
        found = rows_of_matrix(engine, values, roots, reflexive=reflexive, backward=backward, tree=tree, steps=steps)
        if found is None:
            return None
        guard.after(found, tree)
        return found, tree

    def of_part(self, part: Callable[[], Values], vertices: Array, zero: tuple[Any, ...]) -> tuple[Values, Any]:
        """Find rows of the closure of the vertices that the roots reach; no other vertex changes them.

        `part` gives the matrix between these `vertices`, ascending, in new arrays each time. All other entries become `zero`.
        """
        roots, names = self.selection.roots, vertices.tolist()
        if self.labels is not None:
            names = [self.labels[v] for v in names]
        found, grown = self.of_closure(part, np.searchsorted(vertices, roots), names)
        xp = namespace(found[0])
        columns, every = xp.asarray(vertices), xp.arange(len(roots))
        target = (columns[:, None], every) if self.backward else (every[:, None], columns)
        values = []
        for array, nothing in zip(found, zero, strict=True):
            result = xp.empty(self.shape, dtype=array.dtype)
            result.fill(nothing)
            result[target] = array
            values.append(result)
        if grown is None:
            return tuple(values), None
        tree = xp.full(self.shape, -1, dtype=np.int32)
        tree[target] = xp.where(grown < 0, np.int32(-1), columns[xp.maximum(grown, 0)].astype(np.int32))
        return tuple(values), tree

    def of_closure(
        self,
        matrix: Callable[[], Values],
        roots: Array,
        names: Sequence[Any] | None,
        statistics: Sequence[ValueStatistics] = (),
    ) -> tuple[Values, Any]:
        """Take rows (`backward`: columns) out of the whole closure of a matrix, and grow the trees of their paths.

        `matrix` gives the matrix in new arrays each time; `statistics` are its value statistics, if known. `roots` are the numbers of the
        rows, and `names` the caller's names of the vertices.
        """
        values, options = matrix(), self.question.options
        xp = namespace(values[0])
        via = xp.full(values[0].shape, -1, dtype=np.int32) if self.paths else None
        engine = self.plan.engine()
        engine.meter = self.meter
        closure(
            engine,
            values,
            via,
            method=options.method,
            block=options.block,
            reflexive=self.reflexive,
            kept=matrix,
            names=names,
            verify=(lambda: statistics) if statistics else None,
            check=options.check,
            tolerance=self.plan.problem.tolerance,
        )
        rows = (slice(None), xp.asarray(roots)) if self.backward else (xp.asarray(roots),)
        found = tuple([v[rows] for v in values])
        if via is None:
            return found, None
        grown = self._grown(Paths(self.semiring, values, via, reflexive=self.reflexive, kept=matrix), roots, rows)
        return found, xp.maximum(grown, np.int32(-1))  # −9999 stands for no vertex

    def _grown(self, paths: Paths, roots: Array, source: tuple[Any, ...]) -> Any:
        """Grow the tree of each root; for A⁺ the entry of the root is the last step (`backward`: the first) of a cycle."""
        trees = (paths.next_hops() if self.backward else paths.predecessors())[source]
        if not self.reflexive:
            for i, (v, cycle) in enumerate(zip(roots.tolist(), paths.paths((v, v) for v in roots.tolist()), strict=True)):
                if cycle:
                    trees[(v, i) if self.backward else (i, v)] = cycle[1 if self.backward else -2]
        return trees
