"""The executor of plans that follow the edges of a sparse graph: rows by a `RowSolver`, or one path by search from both ends.

`row_solver` chooses the class of a strategy. `RowSolver.rows` finds some rows, with the trees of their paths; `blocks` yields all rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Any

import numpy as np

from semiring.algorithms.csr import CSR
from semiring.algorithms.factorization import Factorization
from semiring.algorithms.reachability import Condensation
from semiring.algorithms.rows_of_edges import best_path, grow_trees, rows_of_edges
from semiring.algorithms.spanning_tree import SpanningForest
from semiring.algorithms.symbolic import analysed
from semiring.arrays.conversion import Array, Values
from semiring.arrays.memory import entry_bytes, require_bytes, require_memory
from semiring.arrays.pieces import HOST, slices
from semiring.common.forks import cached_property
from semiring.common.progress import Meter
from semiring.execution.question import GivenGraph, Question, Selection, answer_rows
from semiring.graphs import Graph
from semiring.planning import Plan

__all__ = ["EliminationSolver", "RowSolver", "close", "require_rows", "row_solver", "rows_of_forest", "search_steps"]

Rows = tuple[Values, Any]
"""Rows of the closure, and the trees of their paths or None."""


def close(how: Plan, given: GivenGraph, question: Question, selection: Selection | None, meter: Meter | None) -> Any:
    """Run a plan that finds rows by the edges of a sparse graph."""
    edges, labels, reflexive = given.edges, given.vertices, question.reflexive
    assert edges is not None
    every = selection is None
    if selection is None:
        selection = Selection.all_of(edges.n)
        require_memory(edges.n, edges.dtypes, via=how.paths)
    else:
        require_rows(selection.shape, edges.dtypes, "cpu", paths=how.paths, backward=selection.backward)
    if meter is not None:
        meter.expect(search_steps(edges, len(selection.roots)))
    roots = selection.roots
    g = Graph((), owned=True, labels=labels)
    if how.strategy == "search from both ends":
        values, tree = _pair(how, edges, selection)

        def whole() -> Array:
            """Grow the tree of all vertices."""
            tree: Array = RowSolver(how, edges, labels).rows(roots, None, reflexive=reflexive)[1]
            return tree

        return answer_rows(question, selection, g, values, tree, edges.arrays, whole=whole)
    values, tree = row_solver(how, edges, labels).rows(roots, meter, reflexive=reflexive, backward=selection.backward)
    return answer_rows(question, selection, g, values, tree, edges.arrays, graph=edges if every else None)


def _pair(how: Plan, edges: CSR, selection: Selection) -> tuple[Values, Array | None]:
    """Find one path by search from both ends: the element of the pair in a row, and the tree of the path."""
    assert how.searches is not None
    (source,), (target,) = selection.sources.numbers.tolist(), selection.targets.numbers.tolist()
    path, element = best_path(edges, source, target, how.searches)
    values = tuple([np.full((1, edges.n), e, d) for e, d in zip(element, edges.dtypes, strict=True)])
    if not how.paths:
        return values, None
    tree = np.full((1, edges.n), -1, np.int32)
    tree[0, path[1:]] = path[:-1]
    return values, tree


class RowSolver:
    """Rows of the closure of a sparse graph by searches from their vertices; `labels` are the caller's names of all vertices."""

    def __init__(self, how: Plan, edges: CSR, labels: Sequence[Hashable] | None) -> None:
        self.plan, self.edges = how, edges
        self.name: Callable[[int], Any] = int if labels is None else labels.__getitem__

    def rows(self, roots: Array, meter: Meter | None, *, reflexive: bool = True, backward: bool = False, nothing: int = -1) -> Rows:
        """Find the rows of some vertices (`backward`: the columns), and the trees of their paths if the plan has paths.

        The meter expects the `search_steps` already. Compiled searches leave `nothing` where a tree has no vertex.
        """
        how, n = self.plan, self.edges.n
        tree = np.full((len(roots), n), nothing, dtype=np.int32) if how.paths else None
        values = rows_of_edges(
            how.semiring,
            self.edges,
            roots,
            reflexive=reflexive,
            backward=backward,
            tree=tree,
            name=self.name,
            searches=how.searches,
            order=how.problem.order,
            meter=meter,
            limit=how.problem.limit,
            tolerance=how.problem.tolerance,
        )
        if backward:
            return tuple(v.T for v in values), None if tree is None else tree.T
        return values, tree

    def blocks(self, meter: Meter | None) -> Iterator[tuple[int, Values]]:
        """Yield all rows, some at a time, with the number of the first one."""
        every = np.arange(self.edges.n)
        for some in slices(self.edges.n, self.edges.n, HOST):
            yield some.start, self.rows(every[some], meter)[0]


class EliminationSolver(RowSolver):
    """Rows by elimination of the graph; the trees of paths are grown from the rows."""

    @cached_property
    def factorization(self) -> Factorization:
        """The factors of the graph."""
        how = self.plan
        return Factorization(how.semiring, self.edges, analysed(self.edges), self.name, threads=how.problem.threads)

    def rows(self, roots: Array, meter: Meter | None, *, reflexive: bool = True, backward: bool = False, nothing: int = -1) -> Rows:
        """Find rows by sweeps of the factors."""
        how, edges, every = self.plan, self.edges, np.arange(self.edges.n)
        some = not np.array_equal(roots, every)
        ends = (every, roots) if backward else (roots, every)
        values = self.factorization.between(*ends, every_source=backward or not some, every_target=not (backward and some), meter=meter)
        if not how.paths:
            return values, None
        rows = tuple([np.ascontiguousarray(v.T) for v in values]) if backward else values
        tree = grow_trees(how.semiring, edges, roots, rows, backward=backward, threads=how.problem.threads)
        return (tuple([v.T for v in rows]), tree.T) if backward else (rows, tree)

    def blocks(self, meter: Meter | None) -> Iterator[tuple[int, Values]]:
        """Yield all rows, as many at a time as a sweep has lanes."""
        yield from self.factorization.blocks(meter)


class CondensationSolver(RowSolver):
    """Rows of a transitive closure by strong components, always all of them."""

    def rows(self, roots: Array, meter: Meter | None, *, reflexive: bool = True, backward: bool = False, nothing: int = -1) -> Rows:
        """Find all rows."""
        return (Condensation.of(self.edges).matrix(reflexive=reflexive),), None


class SpanningTreeSolver(RowSolver):
    """Rows of a bottleneck closure of a symmetric graph, read off a spanning forest."""

    @cached_property
    def forest(self) -> SpanningForest:
        return SpanningForest.of_edges(self.plan.semiring, self.edges)

    def rows(self, roots: Array, meter: Meter | None, *, reflexive: bool = True, backward: bool = False, nothing: int = -1) -> Rows:
        """Find rows along the line of the forest."""
        found = rows_of_forest(self.plan, self.forest, self.edges, roots, reflexive=reflexive, backward=backward)
        if meter is not None:
            meter.add(search_steps(self.edges, len(roots)))
        return found


_SOLVERS = {"elimination": EliminationSolver, "condensation": CondensationSolver, "spanning tree": SpanningTreeSolver}


def row_solver(how: Plan, edges: CSR, labels: Sequence[Hashable] | None) -> RowSolver:
    """Prepare the strategy of a plan for a sparse graph."""
    return _SOLVERS.get(how.strategy, RowSolver)(how, edges, labels)


def rows_of_forest(how: Plan, forest: SpanningForest, edges: CSR | Array, roots: Array, *, reflexive: bool, backward: bool = False) -> Rows:
    """Read rows off a spanning forest of a symmetric graph, given by edges or by a dense matrix; see `RowSolver.rows`."""

    def edges_of(vertex: int) -> tuple[Array, Array]:
        if not isinstance(edges, CSR):
            return edges[vertex], np.arange(len(edges))
        some = slice(edges.starts[vertex], edges.starts[vertex + 1])
        return edges.weights[0][some], edges.heads[some]

    rows, trees = forest.rows(roots, edges_of, reflexive=reflexive, paths=how.paths, threads=how.problem.threads)
    return ((rows.T,), None if trees is None else trees.T) if backward else ((rows,), trees)


def search_steps(edges: CSR, count: int) -> int:
    """Count the steps of some searches or sweeps for a meter: the vertices and edges of the graph, for each."""
    return count * (edges.n + len(edges.heads))


def require_rows(shape: tuple[int, ...], dtypes: tuple[np.dtype[Any], ...], device: str, *, paths: bool, backward: bool) -> None:
    """Raise `TooLargeError` for rows (`backward`: columns) of a shape, with their trees if `paths`, that exceed the memory of a device."""
    needed = math.prod(shape) * entry_bytes(dtypes, via=paths)
    what, count, n = ("targets", shape[-1], shape[-2]) if backward else ("sources", shape[-2], shape[-1])
    require_bytes(needed, f"rows for {count:,} {what} among {n:,} vertices take", f"name fewer {what} at a time", device)
