"""The executor of plans that follow the edges of a sparse graph: rows by a `RowSolver`, or one path by search from both ends."""

from __future__ import annotations

from typing import Any

import numpy as np

from semiring.algorithms.csr import CSR
from semiring.algorithms.rows_of_edges import best_path
from semiring.arrays.memory import require_memory
from semiring.common.progress import Meter
from semiring.execution.answer import answer_rows
from semiring.execution.question import GivenGraph, Question, Selection
from semiring.execution.row_solvers import RowSolver, require_rows, row_solver, search_steps
from semiring.graphs import Graph
from semiring.planning import Plan

__all__ = ["close"]

Array = np.ndarray[Any, Any]
Values = tuple[Array, ...]


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
