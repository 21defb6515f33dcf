"""Products inside functions that PyTorch compiles, with gradients."""

from __future__ import annotations

from typing import Any

import pytest

import semiring as sr
from semiring.execution import compiled as compiling

torch = pytest.importorskip("torch")
DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)]
SHAPES = [((3, 4), (4, 5)), ((2, 3, 4), (4, 5)), ((2, 1, 3, 4), (3, 4, 5)), ((4,), (4, 5)), ((3, 4), (4,)), ((0, 4), (4, 5))]
pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore")]  # PyTorch's compiler imports deprecated modules


def compiled(function: Any, **options: Any) -> Any:
    torch._dynamo.reset()
    return torch.compile(function, fullgraph=True, backend="aot_eager", **options)


def squared(a: Any, b: Any, semiring: Any) -> Any:
    return sr.matmul(a + 1, b, semiring).square().sum()


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("semiring", [sr.MIN_PLUS, "max-times", sr.LOG, sr.PLUS_TIMES], ids=str)
def test_gradients(semiring: Any, device: str) -> None:
    for left, right in SHAPES:
        a, b = torch.rand(left, device=device, requires_grad=True), torch.rand(right, device=device, requires_grad=True)
        found = torch.autograd.grad(compiled(squared)(a, b, semiring), (a, b))
        torch.testing.assert_close(found, torch.autograd.grad(squared(a, b, semiring), (a, b)))


def test_structured_elements_and_witnesses() -> None:
    a, b = torch.rand(3, 4), torch.rand(4, 5)
    pair = (a, torch.ones(3, 4)), (b, torch.ones(4, 5))
    found = compiled(lambda x, y: sr.matmul(x, y, "distance-hops"))(*pair)
    assert all(map(torch.equal, found, sr.matmul(*pair, "distance-hops")))
    found = compiled(lambda a, b: sr.matmul(a, b, sr.MIN_PLUS, witness=True))(a, b)
    assert torch.equal(found.witness, sr.matmul(a, b, sr.MIN_PLUS, witness=True).witness)
    assert torch.equal(compiled(lambda a, b: sr.matmul(a > 0.5, b > 0.5, sr.BOOLEAN))(a, b), sr.matmul(a > 0.5, b > 0.5, sr.BOOLEAN))


def test_any_lengths() -> None:
    product = compiled(lambda a, b: sr.matmul(a, b, sr.MIN_PLUS), dynamic=True)
    for n in (3, 4, 7):
        a, b = torch.rand(n, n + 1), torch.rand(n + 1, 2)
        assert torch.equal(product(a, b), sr.matmul(a, b, sr.MIN_PLUS))


def test_vmap() -> None:
    a, b = torch.rand(2, 3, 4), torch.rand(4, 5)
    product = compiled(torch.vmap(lambda a, b: sr.matmul(a, b, sr.MIN_PLUS), in_dims=(0, None)))
    assert torch.equal(product(a, b), sr.matmul(a, b, sr.MIN_PLUS))


def test_refused() -> None:
    a = torch.rand(3, 3)
    with pytest.raises(Exception, match=r"inside torch\.compile, matmul takes no c"):
        compiled(lambda a: sr.matmul(a, a, sr.MIN_PLUS, c=a))(a)


def test_operators() -> None:
    a, b = (torch.rand(3, 3, dtype=torch.float64, requires_grad=True) for _ in range(2))
    compiled(squared)(a, b, sr.LOG)
    number, *_ = compiling._number_of("log", (False, "auto", None, True))
    torch.library.opcheck(torch.ops.semiring.product.default, ([a], [b], number))
