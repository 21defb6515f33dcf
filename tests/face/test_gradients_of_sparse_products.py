"""Gradients of products of a sparse matrix and PyTorch's tensors, against those of the dense product."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import semiring as sr
from semiring import ops
from semiring.execution import sparse_gradients

torch = pytest.importorskip("torch")
pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore::FutureWarning")]  # PyTorch's imports call deprecated functions
SKEWED = sr.Semiring("skewed", max, lambda a, b: a * b / (1 + b), 0, 1, domain=(0, 1e6))
SOFT = sr.Semiring("soft-min", lambda a, b: -ops.logaddexp(-2 * a, -2 * b) / 2, lambda a, b: a + b, np.inf, 0)
SEMIRINGS = [sr.MIN_PLUS, sr.MAX_TIMES, sr.MAX_MIN, sr.LOG, SOFT, sr.PLUS_TIMES, SKEWED]


def drawn(semiring: sr.Semiring, m: int, k: int, form: str, seed: int = 0) -> tuple[Any, Any]:
    """Return a sparse matrix, and the same as a dense tensor."""
    rng = np.random.default_rng(seed)
    stored, values = rng.random((m, k)) < 0.5, rng.random((m, k)) + 0.1
    stored[:, -1] = True  # every row reaches something
    rows, columns = np.nonzero(stored)
    sparse = sp.coo_array((values[stored], (rows, columns)), shape=(m, k)).asformat(form)
    return sparse, torch.from_numpy(np.where(stored, values, float(semiring.zero)))


def same(sparse: Any, dense: Any, *operands: Any, g: Any) -> None:
    results = []
    for function in (sparse, dense):
        own = [x.clone().requires_grad_() for x in operands]
        results.append(torch.autograd.grad(function(*own), own, g))
    torch.testing.assert_close(*results)


@pytest.mark.parametrize("entries", [7, 1 << 21])
@pytest.mark.parametrize("form", ["csr", "csc", "coo"])
@pytest.mark.parametrize("semiring", SEMIRINGS, ids=str)
def test_dense_products(semiring: sr.Semiring, form: str, entries: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sparse_gradients, "ENTRIES", entries)
    sparse, dense = drawn(semiring, 7, 5, form)
    numbers = torch.Generator().manual_seed(0)
    for shape in ((5, 4), (2, 5, 3), (5,)):
        x = torch.rand(shape, dtype=torch.float64, generator=numbers)
        g = torch.rand(sr.matmul(sparse, x, semiring).shape, dtype=torch.float64, generator=numbers)
        same(lambda x: sr.matmul(sparse, x, semiring), lambda x: sr.matmul(dense, x, semiring), x, g=g)
        same(
            lambda x: sr.matmul(x, sparse.T, semiring),
            lambda x: sr.matmul(x, dense.mT, semiring),
            x.mT if x.ndim > 1 else x,
            g=g.mT if g.ndim > 1 else g,
        )


@pytest.mark.parametrize("semiring", SEMIRINGS, ids=str)
def test_differences(semiring: sr.Semiring) -> None:
    sparse, _ = drawn(semiring, 4, 3, "csr")
    x = torch.rand(3, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(1)).requires_grad_()

    def product(x: Any) -> Any:
        return sr.matmul(sparse, x, semiring)

    assert torch.autograd.gradcheck(product, x, check_forward_ad=True, check_batched_grad=True)
    if semiring.program.exponential is not None or semiring is sr.PLUS_TIMES:
        assert torch.autograd.gradgradcheck(product, x)
    stack = torch.rand(2, 3, 2, dtype=torch.float64)
    torch.testing.assert_close(
        torch.vmap(torch.func.grad(lambda x: product(x).sum()))(stack)[1], torch.func.grad(lambda x: product(x).sum())(stack[1])
    )


@pytest.mark.parametrize("left", [False, True])
@pytest.mark.parametrize("semiring", SEMIRINGS, ids=str)
def test_changes_in_place_after_the_product(semiring: sr.Semiring, left: bool) -> None:
    sparse, dense = drawn(semiring, 4, 3, "csr")
    x = torch.rand((2, 4) if left else (3, 2), dtype=torch.float64, generator=torch.Generator().manual_seed(2)).requires_grad_()
    changed = x * 1
    result = sr.matmul(changed, sparse, semiring) if left else sr.matmul(sparse, changed, semiring)
    changed.mul_(-3)
    if semiring in (sr.MIN_PLUS, sr.MAX_TIMES, sr.PLUS_TIMES) or (semiring is SKEWED and left):  # ∂⊗/∂left is b / (1 + b)
        expected = sr.matmul(x, dense, semiring) if left else sr.matmul(dense, x, semiring)
        torch.testing.assert_close(torch.autograd.grad(result.add_(1).sum(), x), torch.autograd.grad(expected.sum(), x))
        return
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        result.sum().backward()


@pytest.mark.parametrize("semiring", [sr.MIN_PLUS, sr.LOG, sr.PLUS_TIMES], ids=str)
def test_empty_rows_and_arrays(semiring: sr.Semiring) -> None:
    sparse = sp.csr_array((np.array([1.0]), ([0], [1])), shape=(3, 2))
    x = torch.ones(2, 2, requires_grad=True)
    g = torch.tensor([[1.0, 2.0], [np.nan, np.inf], [1.0, 1.0]], dtype=torch.float64)
    (found,) = torch.autograd.grad(sr.matmul(sparse, x, semiring), x, g)
    assert found.tolist() == [[0, 0], [1, 2]]
    for m, k, n in ((0, 2, 2), (2, 0, 2), (2, 2, 0)):
        x = torch.ones(k, n, requires_grad=True)
        product = sr.matmul(sp.csr_array((m, k)), x, semiring)
        assert torch.autograd.grad(product.sum(), x)[0].shape == x.shape


def test_witnesses_and_dtypes() -> None:
    sparse, _ = drawn(sr.MIN_PLUS, 4, 3, "csr")
    x = torch.rand(3, 2, requires_grad=True)
    found = sr.matmul(sparse, x, sr.MIN_PLUS, witness=True)
    expected = sr.matmul(sparse, x.detach(), sr.MIN_PLUS, witness=True)
    assert torch.equal(found.witness, expected.witness)
    assert found.values.dtype == expected.values.dtype
    found.values.sum().backward()
    assert x.grad.dtype == torch.float32


@pytest.mark.gpu
@pytest.mark.parametrize("semiring", SEMIRINGS, ids=str)
def test_on_a_gpu(semiring: sr.Semiring) -> None:
    cupyx = pytest.importorskip("cupyx.scipy.sparse")
    sparse, dense = drawn(semiring, 70, 50, "csr")
    x, g = torch.rand(50, 33, dtype=torch.float64), torch.rand(70, 33, dtype=torch.float64)
    own, theirs = x.cuda().requires_grad_(), x.clone().requires_grad_()
    found = [torch.autograd.grad(sr.matmul(cupyx.csr_matrix(sparse), own, semiring), own, g.cuda())[0] for _ in range(2)]
    assert torch.equal(*found)
    torch.testing.assert_close(found[0].cpu(), torch.autograd.grad(sr.matmul(dense, theirs, semiring), theirs, g)[0])


def test_refused() -> None:
    sparse, x = sp.csr_array(np.eye(3)), torch.ones(3, 3, requires_grad=True)
    with pytest.raises(sr.GraphError, match=r"without c, out and mask; pass \.detach\(\)"):
        sr.matmul(sparse, x, sr.MIN_PLUS, c=x.detach())
    with pytest.raises(sr.GraphError, match="products with a sparse array propagate"):
        sr.matmul((sparse, sparse), (x, x), sr.DISTANCE_HOPS)
    twice = sp.csr_array((np.ones(2), np.array([0, 0]), np.array([0, 2, 2, 2])), shape=(3, 3))
    with pytest.raises(sr.GraphError, match="a stores an entry more than once"):
        sr.matmul(twice, x, sr.MIN_PLUS)
    assert torch.autograd.grad(sr.matmul(twice, x, sr.PLUS_TIMES).sum(), x)[0][0].tolist() == [2, 2, 2]


@pytest.mark.parametrize("semiring", [sr.PLUS_TIMES, sr.LOG, sr.MAX_TIMES], ids=str)
def test_a_sparse_array_that_changes_later(semiring: sr.Semiring) -> None:
    sparse, x = sp.csr_array(np.array([[1.0, 2], [4, 5]])), torch.ones(2, dtype=torch.float64, requires_grad=True)
    (expected,) = torch.autograd.grad(sr.matmul(sparse, x, semiring).sum(), x)
    product = sr.matmul(sparse, x, semiring)
    sparse.data[:], sparse.indices[:] = 7, 0
    assert torch.equal(torch.autograd.grad(product.sum(), x)[0], expected)
