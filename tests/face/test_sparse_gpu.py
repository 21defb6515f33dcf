"""Products of CuPy's sparse matrices with dense ones, against the CPU's."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import semiring as sr
from semiring.algebra.laws import is_selective
from semiring.kernels.cpu.sparse_products import CpuSparseProducts
from semiring.kernels.cuda.sparse import CudaSparseProducts
from tests.kernels.samples import CASES, elements, name
from tests.kernels.test_sparse_products import assert_equal, operand

pytestmark = pytest.mark.gpu

INF = np.inf


def on_the_gpu(a: Any) -> Any:
    """A sparse array of SciPy as CuPy's, with its explicit zeros."""
    import cupy

    sparse: Any = importlib.import_module("cupyx.scipy.sparse")
    kind = {"csr": sparse.csr_matrix, "csc": sparse.csc_matrix}[a.format]
    return kind(tuple(map(cupy.asarray, (a.data, a.indices, a.indptr))), shape=a.shape)


SHAPES = [((50, 40, 1), 0.1, np.int32), ((70, 300, 1), 0.9, np.int64), ((45, 60, 5), 0.2, np.int32), ((33, 50, 130), 0.3, np.int64)]


@pytest.mark.sampled(6)
@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{name(case[0])}-{name(case[1])}")
def test_all_semirings(case: Any) -> None:
    import cupy

    semiring, dtypes = case
    rng = np.random.default_rng(0)
    host, device = CpuSparseProducts(semiring, dtypes), CudaSparseProducts(semiring, dtypes, 0)
    for (m, k, n), density, index in SHAPES:
        _, A = operand(case, (m, k), rng, density, index)
        b = elements(semiring, dtypes, (k, n), rng)
        there = A._replace(starts=cupy.asarray(A.starts), columns=cupy.asarray(A.columns), values=tuple(map(cupy.asarray, A.values)))
        right = tuple(map(cupy.asarray, b))
        for witness in {False, is_selective(semiring, dtypes)}:
            for swapped in (False, True):
                expected, via = tuple(np.empty((m, n), d) for d in dtypes), np.empty((m, n), np.int32) if witness else None
                host.times_dense(A, b, expected, via, swapped=swapped, signed=True)
                found, codes = tuple(cupy.empty((m, n), d) for d in dtypes), cupy.empty((m, n), np.int32) if witness else None
                device.times_dense(there, right, found, codes, swapped=swapped, signed=True)
                assert_equal(case, tuple(v.get() for v in found), expected)
                if codes is not None:
                    np.testing.assert_array_equal(codes.get(), via)


@pytest.mark.parametrize("kind", ["csr", "csc", "coo"])
@pytest.mark.parametrize("n", [1, 20])
def test_matmul(kind: str, n: int) -> None:
    import cupy

    a = sp.random_array((40, 30), density=0.2, rng=np.random.default_rng(0), format="csr")
    x, y = np.random.default_rng(1).random((30, n)), np.random.default_rng(2).random((n, 40))
    A = on_the_gpu(a.asformat("csr" if kind == "coo" else kind))
    A = A.tocoo() if kind == "coo" else A
    X, Y = cupy.asarray(x), cupy.asarray(y)
    for left, right, first, second in ((A, X, a, x), (A, x, a, x), (Y, A, y, a), (A, X[:, 0], a, x[:, 0])):
        found = sr.matmul(left, right, sr.MIN_PLUS, witness=True)
        expected = sr.matmul(first, second, sr.MIN_PLUS, witness=True)
        assert isinstance(found.values, cupy.ndarray)
        np.testing.assert_array_equal(found.values.get(), expected.values)
        np.testing.assert_array_equal(found.witness.get(), expected.witness)
    out = cupy.empty((40, n))
    assert sr.matmul(A, X, sr.PLUS_TIMES, out=out) is out
    np.testing.assert_allclose(out.get(), a @ x)


def test_what_is_refused() -> None:
    import cupy

    a = on_the_gpu(sp.csr_array(np.array([[1.0, 2.0], [0.0, 3.0]])))
    x = cupy.zeros(2)
    with pytest.raises(sr.GraphError, match="two sparse arrays"):
        sr.matmul(a, a, sr.MIN_PLUS)
    with pytest.raises(sr.ShapeError, match="lies on a GPU"):
        sr.matmul(a.get(), x, sr.MIN_PLUS)
    with pytest.raises(sr.SemiringError, match="cannot reach"):
        sr.matmul(a, x, sr.MIN_PLUS, device="cpu")
    a.data[1] = np.nan
    with pytest.raises(sr.DomainError, match=r"a\.data\[1\]"):
        sr.matmul(a, x, sr.MIN_PLUS)
    a.data[1] = 2.0
    a.indices[1] = 7
    with pytest.raises(sr.GraphError, match="do not belong"):
        sr.matmul(a, x, sr.MIN_PLUS)
