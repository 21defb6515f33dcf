"""A matrix as its edges, beside the matrix itself and SciPy's compressed rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csgraph

from semiring.algorithms.csr import CSR, is_mirrored, is_symmetric, transpose, transposition
from semiring.algorithms.rows_of_matrix import reachable
from semiring.kernels.cpu.loops import interpreted
from tests.kernels.test_loops import both

Array = np.ndarray[Any, Any]


def edges_of(matrix: Array) -> CSR:
    tails, heads = np.nonzero(matrix)
    return CSR.of(tails, heads, (matrix[tails, heads],), len(matrix), (0,))


def matrices() -> Any:
    """Square matrices of small integers, most of them 0; with loops."""
    return st.integers(0, 6).flatmap(
        lambda n: st.lists(st.sampled_from([0, 0, 0, 1, 2, -3]), min_size=n * n, max_size=n * n).map(
            lambda entries: np.array(entries, dtype=np.int64).reshape(n, n)
        )
    )


def some(n: int) -> Any:
    return (
        st.lists(st.integers(0, n - 1), unique=True).map(lambda v: np.array(sorted(v), dtype=np.intp))
        if n
        else st.just(np.zeros(0, np.intp))
    )


@given(matrices())
def test_the_matrix_and_back(matrix: Array) -> None:
    edges = edges_of(matrix)
    rows = sp.csr_array(matrix)
    assert np.array_equal(edges.starts, rows.indptr)
    assert np.array_equal(edges.heads, rows.indices)
    assert np.array_equal(edges.tails, np.nonzero(matrix)[0])
    assert np.array_equal(edges.dense()[0], matrix)
    assert np.array_equal(edges.transposed().dense()[0], matrix.T)
    assert np.array_equal(edges.transposed().transposed().heads, edges.heads)
    assert edges.dtypes == (np.dtype(np.int64),)


@given(matrices(), st.booleans())
def test_what_is_symmetric_is_its_own_transpose(matrix: Array, mirrored: bool) -> None:
    if mirrored:
        matrix = matrix + matrix.T
    edges = edges_of(matrix)
    assert edges.symmetric == np.array_equal(matrix, matrix.T)
    assert (edges.transposed() is edges) == edges.symmetric


@given(st.integers(0, 6), st.data())
def test_transposes_of_rows_in_any_order(n: int, data: st.DataObject) -> None:
    """Parallel edges, and rows that are not ascending."""
    edges = data.draw(st.lists(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)), max_size=12)) if n else []
    tails, heads = np.array(sorted(edges, key=lambda edge: edge[0]), np.int64).reshape(-1, 2).T
    starts, heads = np.append(0, np.cumsum(np.bincount(tails, minlength=n))), heads.copy()
    begins, columns, numbers = transposition(starts, heads)
    assert np.array_equal(begins, np.append(0, np.cumsum(np.bincount(heads, minlength=n))))
    assert np.array_equal(numbers, np.argsort(heads, kind="stable"))
    assert np.array_equal(columns, tails[numbers])
    both(transpose, n, starts, heads, begins.copy(), np.zeros_like(heads), np.zeros_like(heads))


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16, np.int8, np.bool_])
@given(matrices(), st.sampled_from(["drawn", "mirrored", "nearly"]))
def test_symmetry(dtype: Any, matrix: Array, kind: str) -> None:
    matrix = (matrix if kind == "drawn" else matrix + matrix.T).astype(dtype)
    if kind == "nearly" and matrix.any():
        matrix[tuple(np.argwhere(matrix)[-1])] += dtype(1)
    edges = edges_of(matrix)
    (weights,) = edges.weights
    assert is_symmetric(edges.starts, edges.heads, weights) == np.array_equal(matrix, matrix.T)
    with interpreted():
        assert is_symmetric(edges.starts, edges.heads, weights) == np.array_equal(matrix, matrix.T)
    both(is_mirrored, edges.n, edges.starts, edges.heads.copy(), edges.starts[:-1].copy(), (weights.view(f"u{weights.itemsize}"),))


def test_symmetry_is_that_of_bits() -> None:
    starts, heads = np.array([0, 1, 2]), np.array([1, 0])
    for values, same in (([np.nan, np.nan], True), ([0.0, -0.0], False), ([-0.0, -0.0], True), ([np.nan, -np.nan], False)):
        weights = np.array(values)
        assert is_symmetric(starts, heads, weights) == same
        with interpreted():
            assert is_symmetric(starts, heads, weights) == same


@given(st.data())
def test_parts(data: st.DataObject) -> None:
    matrix = data.draw(matrices())
    n, edges = len(matrix), edges_of(matrix)
    vertices = data.draw(some(n))
    position, number = edges.leaving(vertices)
    assert list(zip(vertices[position].tolist(), edges.heads[number].tolist(), strict=True)) == [
        (u, v) for u in vertices.tolist() for v in np.flatnonzero(matrix[u]).tolist()
    ]
    part = edges.induced(vertices)
    assert part.n == len(vertices)
    assert np.array_equal(part.dense()[0], matrix[np.ix_(vertices, vertices)])


@given(st.data())
def test_what_is_reachable(data: st.DataObject) -> None:
    matrix = data.draw(matrices())
    sources = data.draw(some(len(matrix)))
    reached = {v for s in sources for v in csgraph.breadth_first_order(sp.csr_array(matrix), s, return_predecessors=False).tolist()}
    assert edges_of(matrix).reachable(sources).tolist() == sorted(reached)
    assert reachable((matrix,), (0,), sources).tolist() == sorted(reached)
    assert reachable((matrix.T,), (0,), sources, backward=True).tolist() == sorted(reached)


@given(matrices())
def test_it_is_read_like_an_array(matrix: Array) -> None:
    n = len(matrix)
    (array,) = edges_of(matrix).arrays()
    assert len(array) == n
    assert array.shape == (n, n)
    assert array.dtype == matrix.dtype
    assert [row.tolist() for row in array] == matrix.tolist()
    assert np.array_equal(array.diagonal(), matrix.diagonal())
    assert all(array[u, v] == matrix[u, v] for u in range(n) for v in range(n))
    again = np.arange(n)[::-1].repeat(2)
    assert np.array_equal(array[again], matrix[again])
    keys: list[Any] = [np.s_[:], np.s_[..., :, :1], np.s_[::-1, again], (again, again[::-1]), *([-1, (-1, 0), (0, again)] if n else [])]
    assert all(np.array_equal(array[key], matrix[key]) for key in keys)
    assert np.array_equal(array.transposed(), matrix.T)


def test_a_chain_is_followed_to_its_end() -> None:
    n = 1000
    chain = np.eye(n, k=1)
    for found in (edges_of(chain).reachable(np.array([400])), reachable((chain,), (0,), np.array([400]))):
        assert found.tolist() == list(range(400, n))


@pytest.mark.parametrize("components", [1, 2])
def test_components(components: int) -> None:
    """Each has its own array; an edge may have the zero in one of them."""
    weights = tuple(np.arange(3) + c for c in range(components))
    edges = CSR.of(np.array([0, 0, 2]), np.array([1, 2, 2]), weights, 3, (0,) * components)
    assert edges.leaving(np.array([2, 0]))[1].tolist() == [2, 0, 1]
    assert [v.tolist() for v in edges.dense()] == [[[0, c, 1 + c], [0, 0, 0], [0, 0, 2 + c]] for c in range(components)]
    assert [a[0, 1] for a in edges.arrays()] == list(range(components))
