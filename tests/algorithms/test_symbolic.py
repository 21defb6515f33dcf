"""Elimination trees and row subtrees, beside elimination itself; compiled loops beside the same loops run as Python."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from semiring.algorithms import symbolic
from semiring.algorithms.symbolic import elimination_tree, postorder, row_subtrees
from tests.kernels.test_loops import both

Array = np.ndarray[Any, Any]


@st.composite
def patterns(draw: st.DrawFn) -> Array:
    """Symmetric patterns of 0 to 9 vertices, with or without entries on the diagonal."""
    n = draw(st.integers(0, 9))
    entries = draw(st.lists(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)), max_size=2 * n)) if n else []
    matrix = np.zeros((n, n), dtype=bool)
    for u, v in entries:
        matrix[u, v] = matrix[v, u] = True
    return matrix


def rows_of(matrix: Array) -> tuple[Array, Array]:
    return np.append(0, np.cumsum(matrix.sum(axis=1))), np.nonzero(matrix)[1].copy()


def eliminated(matrix: Array) -> Array:
    """The entries of the factor right of the diagonal, with the fill."""
    matrix = matrix.copy()
    for k in range(len(matrix)):
        later = np.flatnonzero(matrix[k, k + 1 :]) + k + 1
        matrix[np.ix_(later, later)] = True
    return np.triu(matrix, 1)


def parents(factor: Array) -> list[int]:
    return [int(row.argmax()) if row.any() else len(factor) for row in factor]


@given(patterns())
def test_the_parent_is_the_next_vertex_of_the_column(matrix: Array) -> None:
    n, (starts, heads) = len(matrix), rows_of(matrix)
    assert elimination_tree(starts, heads).tolist() == parents(eliminated(matrix))
    both(symbolic.find_parents, n, starts, heads, np.full(n, n), np.full(n, n))


@given(patterns())
def test_a_postorder_numbers_subtrees_in_runs(matrix: Array) -> None:
    n, parent = len(matrix), elimination_tree(*rows_of(matrix))
    number = postorder(parent)
    assert sorted(number.tolist()) == list(range(n))
    below = [{v} for v in range(n + 1)]
    for v in range(n):
        below[parent[v]] |= below[v]
        assert {int(number[u]) for u in below[v]} == set(range(number[v] + 1 - len(below[v]), number[v] + 1))
    both(symbolic.number_subtrees, n, parent, np.ones(n + 1, np.int64), np.full(n + 1, n))


@given(patterns(), st.data())
def test_row_subtrees_have_the_rows_of_the_factor(matrix: Array, data: st.DataObject) -> None:
    n, (starts, heads) = len(matrix), rows_of(matrix)
    factor = eliminated(matrix)
    parent, counts = elimination_tree(starts, heads), np.zeros(n, np.int64)
    row_subtrees(starts, heads, np.arange(n), parent, counts, None)
    assert counts.tolist() == factor.sum(axis=1).tolist()
    # Nodes of several vertices: runs in which each vertex but the last has the next as its parent, with one row less.
    joins = [parent[v] == v + 1 and counts[v] == counts[v + 1] + 1 and data.draw(st.booleans()) for v in range(n - 1)]
    node = np.cumsum(np.append(0, np.logical_not(joins)))[:n].astype(np.int64)
    last = np.flatnonzero(np.append(node[1:] != node[:-1], True))[: node.max(initial=-1) + 1]
    above = np.append(node, len(last))[parent[last]]
    begins = np.append(0, np.cumsum(counts[last]))
    rows, place = np.full(begins[-1], -1), begins[:-1].copy()
    row_subtrees(starts, heads, node, above, place, rows)
    assert np.array_equal(place, begins[1:])
    assert rows.tolist() == [i for v in last for i in np.flatnonzero(factor[v]).tolist()]
    for listed in (None, np.full_like(rows, -1)):
        both(symbolic.walk_subtrees, n, starts, heads, node, above, np.full(len(last), -1), begins[:-1].copy(), listed)
