"""Answers in the caller's own kind: rows and columns of a closure in the order that was asked for, and paths over them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from semiring.algorithms.csr import CSR
from semiring.arrays.devices import namespace
from semiring.execution.question import Question, Selection
from semiring.graphs import Graph
from semiring.graphs.vertices import Vertices
from semiring.results.paths import paths_in
from semiring.results.store import Names, PredecessorTrees, shown

__all__ = ["answer_rows"]

Array = np.ndarray[Any, Any]
Values = tuple[Any, ...]


def answer_rows(
    question: Question,
    selection: Selection,
    g: Graph,
    values: Values,
    tree: Any,
    kept: Callable[[], Values],
    *,
    graph: CSR | None = None,
    whole: Callable[[], Array] | None = None,
) -> Any:
    """Return rows and columns in the order in which the caller named them, or the paths of a tree for each root.

    Parameters
    ----------
    question, selection
    g : Graph
        The labels, and how results become the caller's kind.
    values, tree
        A row for each root (`backward`: a column).
    kept : callable
        Gives the caller's matrix or edges, on which paths are checked.
    graph : CSR, optional
        The sparse graph, where all its vertices are rows and columns.
    whole : callable, optional
        Gives the tree of all vertices, where `tree` has one path of it.
    """
    sources, targets, n = selection.sources, selection.targets, selection.n
    own = _positions(selection.roots, targets if selection.backward else sources)
    if selection.backward:
        row, column = None if sources.every else sources.numbers, own
    else:
        row, column = own, None if targets.every else targets.numbers
    values = tuple([_part(v, row, column) for v in values])
    restore = g.restore_part(sources.numbers, targets.numbers)
    if tree is None:
        return shown(values, sources, targets, restore)
    tree = _part(tree, None, own) if selection.backward else _part(tree, own, None)
    names, backward = Names(g.labels, n), selection.backward
    store = PredecessorTrees(
        question.semiring, values, names, sources, targets, question.reflexive, kept, tree, backward, graph=graph, whole=whole
    )
    return paths_in(store, restore, g.library)


def _positions(roots: Array, ends: Vertices) -> Array | None:
    """Return the position of each named vertex among the roots; None where both are the same."""
    return None if ends.numbers is roots or np.array_equal(ends.numbers, roots) else np.searchsorted(roots, ends.numbers)


def _part(array: Any, rows: Array | None, columns: Array | None) -> Any:
    """Return some rows and columns of an array of shape (…, m, n), None for all of them."""
    xp = namespace(array)
    for axis, some in ((-2, rows), (-1, columns)):
        if some is not None:
            array = array.take(xp.asarray(some), axis=axis)
    return xp.ascontiguousarray(array)
