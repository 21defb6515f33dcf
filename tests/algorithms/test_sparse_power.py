"""Powers of sparse arrays: against those of the dense matrix, of every kind, whether they fill or not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

import semiring as sr
from semiring.kernels import machine
from tests.kernels.samples import examples

KINDS = [sr.MIN_PLUS, sr.PLUS_TIMES, sr.BOOLEAN, sr.MAX_MIN, sr.LOG, sr.DISTANCE_COUNT]


def full(semiring: sr.Semiring, power: Any) -> tuple[Any, ...]:
    """What a sparse power stores, in all its places."""
    parts = power if isinstance(power, tuple) else (power,)
    zero, _ = semiring.identities(tuple(p.dtype for p in parts))
    out = []
    for p, z in zip(parts, zero, strict=True):
        coo = p.tocoo()
        matrix = np.full(p.shape, z, p.dtype)
        matrix[coo.row, coo.col] = coo.data
        out.append(matrix)
    return tuple(out)


@examples(40)
@given(
    st.sampled_from(KINDS),
    st.sampled_from([1, 2, 7, 30]),
    st.integers(0, 9),
    st.sampled_from(["csr", "csc", "coo"]),
    st.sampled_from([1e-12, 1.0]),
    st.integers(0, 99),
)
def test_as_of_the_dense_matrix(semiring: sr.Semiring, n: int, k: int, kind: str, term: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    a = sp.random_array((n, n), density=0.15, rng=rng, format=kind)
    a.data[:] = 1 if semiring is sr.BOOLEAN else rng.random(a.nnz) if semiring is sr.LOG else rng.integers(1, 9, a.nnz)
    coo = a.tocoo()
    expected = sr.power(
        sr.edges([(int(u), int(v), w) for u, v, w in zip(coo.row, coo.col, coo.data, strict=True)], nodes=range(n)), k, semiring
    )
    before, machine.SPARSE_TERM = machine.SPARSE_TERM, term
    try:
        power = sr.power(a, k, semiring)
    finally:
        machine.SPARSE_TERM = before
    first = power[0] if isinstance(power, tuple) else power
    assert isinstance(first, sp.csr_array)
    for x, y in zip(full(semiring, power), expected if isinstance(expected, tuple) else (expected,), strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-12)


@pytest.mark.parametrize("kind", ["csr", "csc", "coo", "lil"])
def test_structured_elements_are_a_tuple_of_sparse_arrays(kind: str) -> None:
    rng = np.random.default_rng(3)
    lengths: Any = sp.random_array((12, 12), density=0.3, rng=rng, format="csr")
    lengths.data[:] = rng.integers(1, 9, lengths.nnz)
    counts = sp.csr_array((rng.integers(1, 4, lengths.nnz).astype(float), lengths.indices, lengths.indptr), shape=lengths.shape)
    graph = lengths.asformat(kind), counts.asformat(kind)
    dense = full(sr.DISTANCE_COUNT, (lengths, counts))
    for x, y in zip(full(sr.DISTANCE_COUNT, sr.power(graph, 3, sr.DISTANCE_COUNT)), sr.power(dense, 3, sr.DISTANCE_COUNT), strict=True):
        np.testing.assert_array_equal(x, y)
    for closed in (sr.closure(graph, sr.DISTANCE_COUNT), sr.factor(graph, sr.DISTANCE_COUNT).closure()):
        for x, y in zip(closed, sr.closure(dense, sr.DISTANCE_COUNT), strict=True):
            np.testing.assert_array_equal(x, y)
    with pytest.raises(sr.ShapeError, match="tuple of 2 sparse arrays, and not of csr_array, ndarray"):
        sr.power((lengths, counts.toarray()), 2, sr.DISTANCE_COUNT)
    with pytest.raises(sr.ShapeError, match="entries in the same places"):
        sr.closure((lengths, counts.T), sr.DISTANCE_COUNT)


def test_a_long_path_stays_sparse() -> None:
    n = 200_000  # whose dense matrix has no room
    path = sp.csr_array((np.ones(n - 1), np.arange(1, n), np.append(np.arange(n), n - 1)), shape=(n, n))
    power = sr.power(path, 1000, sr.MIN_PLUS)
    assert power.nnz == n - 1000
    assert set(power.data.tolist()) == {1000.0}


def test_a_power_outside_the_carrier_is_named() -> None:
    a = sp.csr_array(np.diag([0.5, 1e200]))
    with pytest.raises(sr.DomainError, match=r"^power 2 of the matrix has the element inf at \[1, 1\]"):
        sr.power(a, 4, sr.PLUS_TIMES)


def test_zeros_that_arise_are_not_stored() -> None:
    a = sp.csr_array(np.array([[0.0, 1.0, -1.0], [0, 0, 1], [0, 0, 1]]))
    assert sr.power(a, 2, sr.PLUS_TIMES).nnz == 2


@pytest.mark.parametrize("place", ["indices", "indptr"])
def test_indices_of_no_matrix_are_refused(place: str) -> None:
    a = sp.csr_array(np.array([[1.0, 2.0], [0, 3]]))
    getattr(a, place)[1] = 9
    with pytest.raises(sr.GraphError, match="outside its shape"):
        sr.power(a, 2, sr.PLUS_TIMES)
