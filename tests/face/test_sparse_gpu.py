"""Products of CuPy's sparse matrices with dense ones and with each other, and their powers, against the CPU's."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import semiring as sr
from semiring.algebra.laws import is_selective
from semiring.kernels.compressed import CompressedRows, Mask
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


@pytest.mark.sampled(4)
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
    pairs = [(A, X, a, x), (A, x, a, x), (Y, A, y, a), (A, X[:, 0], a, x[:, 0]), (A, X[::-1], a, x[::-1]), (Y[0], A, y[0], a)]
    for left, right, first, second in pairs:
        np.testing.assert_array_equal(sr.matmul(left, right, sr.MIN_PLUS).get(), sr.matmul(first, second, sr.MIN_PLUS))
        found = sr.matmul(left, right, sr.MIN_PLUS, witness=True)
        expected = sr.matmul(first, second, sr.MIN_PLUS, witness=True)
        assert isinstance(found.values, cupy.ndarray)
        np.testing.assert_array_equal(found.values.get(), expected.values)
        np.testing.assert_array_equal(found.witness.get(), expected.witness)
    out = cupy.empty((40, n))
    assert sr.matmul(A, X, sr.PLUS_TIMES, out=out) is out
    np.testing.assert_allclose(out.get(), a @ x)


def ragged(rng: np.random.Generator, m: int, k: int) -> sp.csr_array:
    """Rows of which few have most entries, some of them more than a tile has, and most have none."""
    lengths = np.where(rng.random(m) < 0.02, rng.integers(k // 2, k + 1, m), rng.integers(0, 5, m) * (rng.random(m) < 0.4))
    columns = np.concatenate([np.sort(rng.choice(k, n, replace=False)) for n in lengths])
    return sp.csr_array((rng.random(len(columns)), columns, np.append(0, lengths.cumsum())), shape=(m, k))


@pytest.mark.parametrize("n", [1, 3, 32, 70])
def test_rows_of_all_lengths(n: int) -> None:
    """Rows that are cut, of c ⊕ a product too."""
    import cupy

    rng = np.random.default_rng(n)
    a, x, c = ragged(rng, 600, 9000), rng.random((9000, n)), 0.3 * rng.random((600, n))
    A, X, old = on_the_gpu(a), cupy.asarray(x), cupy.asarray(c)
    for semiring in (sr.MIN_PLUS, sr.PLUS_TIMES):
        np.testing.assert_allclose(sr.matmul(A, X, semiring).get(), sr.matmul(a, x, semiring), rtol=1e-12)
        np.testing.assert_allclose(sr.matmul(A, X, semiring, c=old).get(), sr.matmul(a, x, semiring, c=c), rtol=1e-12)
    found, expected = sr.matmul(A, X, sr.MIN_PLUS, c=old, witness=True), sr.matmul(a, x, sr.MIN_PLUS, c=c, witness=True)
    np.testing.assert_array_equal(found.values.get(), expected.values)
    np.testing.assert_array_equal(found.witness.get(), expected.witness)
    np.testing.assert_array_equal(old.get(), c)
    # From the left, where the sparse matrix stands by columns.
    y = rng.random((n, 600))
    found, expected = sr.matmul(cupy.asarray(y), A.tocsc(), sr.MIN_PLUS, c=X.T), sr.matmul(y, a.tocsc(), sr.MIN_PLUS, c=x.T)
    np.testing.assert_array_equal(found.get(), expected)


def test_numbers_are_looked_at_on_the_way() -> None:
    """One that needs a closer look is found wherever it stands, in elements of the dense matrix too that no entry meets."""
    import cupy

    a, x = sp.csr_array(np.array([[1.0, 0.0, 2.0]] * 50)), np.ones((3, 4))
    A = on_the_gpu(a)
    for place in ((1, 3), (2, 0)):
        X = cupy.array(x)
        X[place] = np.nan
        for right in (X, X[:, place[1]]):
            with pytest.raises(sr.DomainError, match=r"b\["):
                sr.matmul(A, right, sr.MIN_PLUS)
    with pytest.raises(sr.DomainError, match=r"c\["):
        sr.matmul(A, cupy.asarray(x), sr.MIN_PLUS, c=cupy.full((50, 4), np.nan))


@pytest.mark.sampled(3)
@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{name(case[0])}-{name(case[1])}")
def test_two_sparse_matrices(case: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    import cupy

    semiring, dtypes = case
    rng = np.random.default_rng(0)
    host, device = CpuSparseProducts(semiring, dtypes), CudaSparseProducts(semiring, dtypes, 0)
    (_, A), (_, B) = operand(case, (40, 30), rng, 0.2), operand(case, (30, 50), rng, 0.3)
    pattern = operand(case, (40, 50), rng, 0.4)[1]._replace(values=())

    def there(x: CompressedRows) -> CompressedRows:
        return x._replace(starts=cupy.asarray(x.starts), columns=cupy.asarray(x.columns), values=tuple(map(cupy.asarray, x.values)))

    witness = is_selective(semiring, dtypes)
    for mask, swapped in ((None, False), (Mask(pattern), True), (Mask(pattern, complement=True), False)):
        on_it = None if mask is None else Mask(there(mask.pattern), mask.complement)
        expected, via = host.times_sparse(A, B, lambda _: None, mask, witness=witness, swapped=swapped, signed=True)
        for terms in (1 << 26, 200):  # at once, and some rows at a time
            monkeypatch.setattr("semiring.kernels.cuda.sparse._SORTED", terms)
            found: Any
            found, codes = device.times_sparse(there(A), there(B), lambda _: None, on_it, witness=witness, swapped=swapped, signed=True)
            np.testing.assert_array_equal(found.starts.get(), expected.starts)
            np.testing.assert_array_equal(found.columns.get(), expected.columns)
            assert_equal(case, tuple(v.get() for v in found.values), expected.values)
            if via is not None:
                np.testing.assert_array_equal(codes.get(), via)


@pytest.mark.parametrize("kind", ["csr", "csc"])
def test_matmul_and_power_of_sparse_matrices(kind: str) -> None:
    a, b = (sp.random_array((40, 40), density=0.1, rng=np.random.default_rng(seed), format=kind) for seed in (0, 1))
    A, B = on_the_gpu(a), on_the_gpu(b)
    found, expected = sr.matmul(A, B, sr.MIN_PLUS, witness=True), sr.matmul(a, b, sr.MIN_PLUS, witness=True)
    for x, y in zip(found, expected, strict=True):
        assert x.format == kind
        np.testing.assert_array_equal(x.get().toarray(), y.toarray())
    for mask in (a, A, a.toarray() != 0, A.toarray() != 0):
        masked = sr.matmul(A, B, sr.PLUS_TIMES, mask=mask, complement=True)
        np.testing.assert_allclose(masked.get().toarray(), sr.matmul(a, b, sr.PLUS_TIMES, mask=a, complement=True).toarray(), rtol=1e-12)
    for k in (0, 1, 5):
        raised = sr.power(A, k, sr.MIN_PLUS)
        assert type(raised).__module__.startswith("cupyx")
        np.testing.assert_allclose(raised.get().toarray(), sr.power(a, k, sr.MIN_PLUS).toarray(), rtol=1e-12)


def test_what_is_refused() -> None:
    import cupy

    a = on_the_gpu(sp.csr_array(np.array([[1.0, 2.0], [0.0, 3.0]])))
    x = cupy.zeros(2)
    with pytest.raises(sr.ShapeError, match=r"one .*sparse array.* is on the host"):
        sr.matmul(a, a.get(), sr.MIN_PLUS)
    with pytest.raises(sr.GraphError, match="host"):
        sr.power(a, 2, sr.MIN_PLUS, nonedge=0)
    with pytest.raises(sr.ShapeError, match="is on the GPU"):
        sr.matmul(a.get(), x, sr.MIN_PLUS)
    with pytest.raises(sr.SemiringError, match="cannot reach"):
        sr.matmul(a, x, sr.MIN_PLUS, device="cpu")
    a.data[1] = np.nan
    with pytest.raises(sr.DomainError, match=r"a\.data\[1\]"):
        sr.matmul(a, x, sr.MIN_PLUS)
    a.data[1] = 2.0
    a.indices[1] = 7
    for product in (lambda: sr.matmul(a, x, sr.MIN_PLUS), lambda: sr.matmul(a, a, sr.MIN_PLUS), lambda: sr.power(a, 2, sr.MIN_PLUS)):
        with pytest.raises(sr.GraphError, match="outside its shape"):
            product()
    a.indices[1], a.indptr[1] = 1, 9
    for product in (lambda: sr.matmul(a, x, sr.MIN_PLUS), lambda: sr.matmul(a, a, sr.MIN_PLUS)):
        with pytest.raises(sr.GraphError, match="outside its shape"):
            product()
