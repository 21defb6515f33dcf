"""Gradients of products of PyTorch's tensors: by differences, and against PyTorch's own through arrays of all terms."""

from __future__ import annotations

import itertools
import math
import sys
import warnings
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import semiring as sr
from semiring import ops
from semiring.algebra.derivatives import derivative_of_product
from semiring.algorithms import adjoints
from semiring.arrays.followed import is_compiling
from semiring.kernels.cpu import gradients as loop_by_witness
from semiring.kernels.cpu.loops import interpreted
from tests.face.derivatives import DOUBLED, INF, SHARED, SKEWED, SOFT

torch = pytest.importorskip("torch")
dispatch = pytest.importorskip("torch.utils._python_dispatch")
pytestmark = pytest.mark.torch
check, check_twice = torch.autograd.gradcheck, torch.autograd.gradgradcheck

HYPOT = sr.Semiring("hypot", lambda a, b: ops.sqrt(a * a + b * b), lambda a, b: a * b, 0, 1, domain=(0, 1e9))

TERMS: dict[str, tuple[sr.Semiring, Callable[[Any, Any], Any], Callable[[Any], Any]]] = {
    "min-plus": (sr.MIN_PLUS, lambda x, y: x + y, lambda t: t.amin(-2)),
    "max-plus": (sr.MAX_PLUS, lambda x, y: x + y, lambda t: t.amax(-2)),
    "max-times": (sr.MAX_TIMES, lambda x, y: x * y, lambda t: t.amax(-2)),
    "max-min": (sr.MAX_MIN, torch.minimum, lambda t: t.amax(-2)),
    "doubled": (DOUBLED, lambda x, y: x + 2 * y, lambda t: t.amin(-2)),
    "skewed": (SKEWED, lambda x, y: x * y / (1 + y), lambda t: t.amax(-2)),
    "log": (sr.LOG, lambda x, y: x + y, lambda t: t.logsumexp(-2)),
    "soft-min": (SOFT, lambda x, y: x + y, lambda t: -(-2 * t).logsumexp(-2) / 2),
    "plus-times": (sr.PLUS_TIMES, lambda x, y: x * y, lambda t: t.sum(-2)),
    "hypot": (HYPOT, lambda x, y: x * y, lambda t: t.square().sum(-2).sqrt()),
    "shared": (SHARED, lambda x, y: torch.minimum(x, 2 * y), lambda t: t.sum(-2)),
}
"""Semirings with ⊗ and ⊕ on tensors of all terms."""
EXPONENTIAL = {"log": 1, "soft-min": -2}
SHAPES = [((3, 4), (4, 5)), ((2, 1, 3, 4), (3, 4, 2)), ((4,), (4, 3)), ((3, 4), (4,)), ((4,), (4,)), ((4,), (2, 4, 3)), ((1, 1), (1, 1))]


def tensor(*shape: int, seed: int = 0, dtype: Any = torch.float64) -> Any:
    """Positive numbers, no two alike."""
    rng = np.random.default_rng(seed)
    return torch.from_numpy(rng.permutation(np.arange(1, math.prod(shape) + 1) + rng.random(math.prod(shape)) / 2).reshape(shape) / 7).to(
        dtype
    )


def naive(name: str, a: Any, b: Any) -> Any:
    _, mul, add = TERMS[name]
    x, y = a if a.ndim > 1 else a[None], b if b.ndim > 1 else b[:, None]
    found = add(mul(x[..., :, :, None], y[..., None, :, :]))
    found = found if a.ndim > 1 else found.squeeze(-2)
    return found if b.ndim > 1 else found.squeeze(-1)


def gradients(function: Callable[..., Any], *operands: Any, gradient: Any = None) -> list[Any]:
    own = [x.detach().requires_grad_() for x in operands]
    found = function(*own)
    return list(torch.autograd.grad(found, own, torch.ones_like(found) if gradient is None else gradient))


def product(name: str) -> Callable[..., Any]:
    return lambda a, b: sr.matmul(a, b, TERMS[name][0])


@pytest.mark.sampled(25)
@pytest.mark.parametrize("name", TERMS)
@pytest.mark.parametrize("shapes", SHAPES, ids=str)
def test_differences(name: str, shapes: tuple[tuple[int, ...], tuple[int, ...]]) -> None:
    a, b = (tensor(*shape, seed=i).requires_grad_() for i, shape in enumerate(shapes))
    np.testing.assert_allclose(sr.matmul(a, b, TERMS[name][0]).detach(), naive(name, a, b).detach(), rtol=1e-13)
    assert check(product(name), (a, b), atol=1e-6)
    for x, y in ((a.detach(), b), (a, b.detach())):
        assert check(product(name), (x, y), atol=1e-6)


@pytest.mark.parametrize("name", TERMS)
def test_second_derivatives(name: str) -> None:
    a, b = tensor(2, 3, 4).requires_grad_(), tensor(4, 3, seed=1).requires_grad_()
    assert check_twice(product(name), (a, b), atol=1e-5)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("name", TERMS)
def test_against_all_terms(name: str, dtype: Any) -> None:
    a, b = tensor(2, 30, 41, dtype=dtype), tensor(41, 20, seed=1, dtype=dtype)
    a, b = (a / 9, b / 9) if name in EXPONENTIAL else (a, b)
    g = torch.from_numpy(np.random.default_rng(2).normal(size=(2, 30, 20))).to(dtype)
    # Transposed and stepped layouts, with the same numbers.
    a_, b_ = a.mT.contiguous().mT, torch.stack([b, b], -1)[..., 0]
    found = gradients(product(name), a_, b_, gradient=g.mT.contiguous().mT)
    for x, y in zip(found, gradients(lambda a, b: naive(name, a, b), a.double(), b.double(), gradient=g.double()), strict=True):
        assert x.dtype == dtype
        torch.testing.assert_close(x.double(), y, rtol=1e-4 if dtype == torch.float32 else 1e-9, atol=1e-5)


@pytest.mark.parametrize("name", ["min-plus", "max-plus", "max-times", "max-min", "log", "soft-min"])
def test_unreachable_pairs_pass_nothing(name: str) -> None:
    semiring = TERMS[name][0]
    zero = float(semiring.zero)
    a, b = tensor(4, 5), tensor(5, 4, seed=1)
    a[1] = b[:, 2] = zero
    a[0, 3] = b[2, 0] = zero
    reached = torch.ones(4, 4, dtype=torch.bool)
    reached[1] = reached[:, 2] = False
    for bad in (INF, -INF, math.nan):
        found = gradients(product(name), a, b, gradient=torch.where(reached, 1.0, bad).double())
        for x, y in zip(found, gradients(product(name), a, b, gradient=reached.double()), strict=True):
            assert torch.isfinite(x).all()
            assert torch.equal(x, y)
        assert not found[0][1].any()
        assert not found[1][:, 2].any()


def test_infinite_gradients_of_reachable_pairs_stay_in_their_row_and_column() -> None:
    a, b, g = tensor(3, 3), tensor(3, 3, seed=1), torch.ones(3, 3, dtype=torch.float64)
    g[1, 1] = INF
    for name in ("min-plus", "log"):
        of_a, of_b = gradients(product(name), a, b, gradient=g)
        assert torch.isfinite(of_a[[0, 2]]).all()
        assert torch.isfinite(of_b[:, [0, 2]]).all()
        assert of_a[1].max() == of_b[:, 1].max() == INF


def test_ties_follow_the_witness() -> None:
    a, b = torch.zeros(2, 3), torch.zeros(3, 2)
    of_a, of_b = gradients(product("min-plus"), a, b)
    assert of_a.tolist() == [[2, 0, 0]] * 2
    assert of_b.tolist() == [[2, 2], [0, 0], [0, 0]]
    x = torch.ones(1, 1)
    assert [v.item() for v in gradients(product("max-min"), x, x)] == [1, 0]  # ⊗ returns its first argument


@pytest.mark.parametrize("name", ["min-plus", "max-plus", "max-times", "max-min", "doubled"])
@pytest.mark.parametrize("entries", [1, 1 << 21])
def test_ties_that_share(name: str, entries: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(adjoints, "ENTRIES", entries)
    rng = np.random.default_rng(0)
    a, b = (torch.from_numpy(rng.integers(1, 3, s).astype(float)) for s in ((2, 4, 5), (5, 3)))
    if name == "max-min":  # ⊗ has ties too
        b = b + 0.5
    a[0, 0] = float(TERMS[name][0].zero)
    g = torch.from_numpy(rng.random((2, 4, 3)))
    g[0, 0] = math.nan
    found = gradients(lambda a, b: sr.matmul(a, b, TERMS[name][0], ties="split"), a, b, gradient=g)
    g[0, 0] = 0
    torch.testing.assert_close(found, gradients(lambda a, b: naive(name, a, b), a, b, gradient=g))  # amin and amax share too


def test_counts_of_shortest_paths() -> None:
    lengths, counts = torch.tensor([[0.0, 1.0], [INF, 0.0]]).double(), torch.tensor([[1.0, 2.0], [0.0, 1.0]]).double()
    own = lengths.requires_grad_(), counts.requires_grad_()
    found = sr.matmul(own, own, sr.DISTANCE_COUNT)
    assert found[1].tolist() == [[1, 4], [0, 1]]
    of_lengths, of_counts = torch.autograd.grad(found[1], own, torch.tensor([[1.0, 1.0], [math.nan, 1.0]]).double())
    assert not of_lengths.any()
    assert of_counts.tolist() == [[4, 2], [0, 4]]
    parts = [tensor(3, 4), tensor(3, 4, seed=1), tensor(4, 2, seed=2), tensor(4, 2, seed=3)]
    assert check(lambda *x: sr.matmul(x[:2], x[2:], sr.DISTANCE_COUNT), [x.requires_grad_() for x in parts])


def test_a_witness_and_a_gradient() -> None:
    a, b = tensor(3, 4).requires_grad_(), tensor(4, 2, seed=1)
    for found in (sr.matmul(a, b, sr.MIN_PLUS, witness=True), sr.matmul(a, b, sr.TROPICAL_ARGMIN)):
        expected = sr.matmul(a.detach(), b, sr.MIN_PLUS, witness=True)
        assert torch.equal(found.values.detach(), expected.values)
        assert torch.equal(found.witness, expected.witness)
        assert found.values.requires_grad
        assert not found.witness.requires_grad
    found.values.sum().backward()
    assert a.grad.sum() == 6


@pytest.mark.sampled(50)
@pytest.mark.parametrize("name", TERMS)
@pytest.mark.parametrize(("m", "k", "n"), [t for t in itertools.product((0, 1, 2), repeat=3) if 0 in t])
def test_empty(name: str, m: int, k: int, n: int) -> None:
    a, b = torch.ones(m, k), torch.ones(k, n)
    for x, y in zip(gradients(product(name), a, b), (a, b), strict=True):
        assert torch.equal(x, torch.zeros_like(y))


@pytest.mark.parametrize("name", TERMS)
def test_the_same_bits_again(name: str) -> None:
    a, b, g = tensor(150, 90, dtype=torch.float32), tensor(90, 170, seed=1, dtype=torch.float32), torch.rand(150, 170)
    a, b = torch.round(a) % 7 + 1, torch.round(b) % 5 + 1  # many ties
    first = gradients(product(name), a, b, gradient=g)
    for _ in range(3):
        assert all(map(torch.equal, gradients(product(name), a, b, gradient=g), first))


@pytest.mark.parametrize("shapes", [((5, 7), (7, 3)), ((4, 5, 7), (4, 7, 3)), ((1, 6), (6, 1)), ((3, 1, 1), (3, 1, 1))], ids=str)
@pytest.mark.parametrize("name", ["min-plus", "max-times", "max-min", "skewed"])
def test_the_loop_by_the_witness(name: str, shapes: tuple[Any, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """The compiled loop, by any number of threads, has the sums of PyTorch's operations; as Python it has the same bits."""
    a, b = (torch.round(tensor(*shape, seed=i)) % 7 + 1 for i, shape in enumerate(shapes))
    if len(shapes[0]) < 3:
        a[0], b[:, 0] = float(TERMS[name][0].zero), float(TERMS[name][0].zero)
    g = torch.rand(*a.shape[:-1], b.shape[-1], dtype=torch.float64)
    monkeypatch.setattr(adjoints, "selected_sums", lambda *_: None)
    expected = gradients(product(name), a, b, gradient=g)
    monkeypatch.undo()
    monkeypatch.setattr(loop_by_witness, "_ENOUGH", 1)
    first = gradients(product(name), a, b, gradient=g)
    for threads in range(1, 5):
        monkeypatch.setattr(loop_by_witness, "thread_count", lambda threads=threads: threads)
        found = gradients(product(name), a, b, gradient=g)
        torch.testing.assert_close(found, expected, rtol=1e-13, atol=0)
        assert all(map(torch.equal, found, first))
    _, witness = sr.matmul(a, b, TERMS[name][0], witness=True)
    with interpreted():
        weights = derivative_of_product(TERMS[name][0]).jacobian[0]
        again = loop_by_witness.selected_on_cpu(weights, (g, witness, a, b), (True, True))
    assert again is not None
    assert all(map(torch.equal, again, first))


class Largest(dispatch.TorchDispatchMode):  # type: ignore[misc, name-defined, unused-ignore]
    """The most entries of a result of PyTorch's operations."""

    entries = 0

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        found = function(*args, **(kwargs or {}))
        for x in found if isinstance(found, tuple | list) else [found]:
            if isinstance(x, torch.Tensor) and x.stride()[-1:] != (0,):
                self.entries = max(self.entries, x.untyped_storage().nbytes() // x.itemsize)
        return found


@pytest.mark.parametrize("name", TERMS)
def test_memory(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    n = 80 if name == "hypot" else 300
    monkeypatch.setattr(adjoints, "ENTRIES", 4 * n * n)
    a, b = ((tensor(n, n, seed=i) / 1000).requires_grad_() for i in range(2))
    found = sr.matmul(a, b, TERMS[name][0])
    with Largest() as largest:
        found.sum().backward()
        sr.matmul(a.reshape(-1, 5, n), b, TERMS[name][0]).sum().backward()
    assert largest.entries <= 4 * n * n


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("spread", [3, 60, 300, 3000])
@pytest.mark.parametrize("name", EXPONENTIAL)
def test_wide_ranges(name: str, spread: float, dtype: Any) -> None:
    rng = np.random.default_rng(0)
    scale = EXPONENTIAL[name]
    a, b = (torch.from_numpy(spread * rng.normal(size=s) / scale).to(dtype) for s in ((2, 12, 9), (9, 11)))
    a[0, 3, 4:] = a[1, 5] = -INF * scale
    g = torch.from_numpy(rng.normal(size=(2, 12, 11))).to(dtype)
    c = sr.matmul(a, b, TERMS[name][0])
    taken = adjoints.deficit(Fraction(scale), a, b.expand(2, 9, 11), c)
    assert (taken > 32) == (spread > 3)
    assert (taken > 256) == (spread > 60)
    terms = torch.exp(scale * (a[..., None].double() + b[..., None, :, :].double() - c[..., None, :].double()).nan_to_num(nan=-INF * scale))
    terms = g[..., None, :].double() * terms
    of_a, of_b = gradients(product(name), a, b, gradient=g)
    # An exponential of x has the rounding errors of x: those of a, b and c, and of sums of theirs.
    tolerance = 8 * torch.finfo(dtype).eps * max(1, 8 * spread)
    torch.testing.assert_close(of_a.double(), terms.sum(-1), rtol=tolerance, atol=tolerance)
    torch.testing.assert_close(of_b.double(), terms.sum(-3).sum(0), rtol=tolerance, atol=tolerance)


def test_huge_gradients() -> None:
    a, b = torch.zeros(4, 4), torch.zeros(4, 4)
    a[:, 0] = b[1:] = -30.0
    g = torch.full((4, 4), 1e37)
    for x in gradients(product("log"), a, b, gradient=g):
        assert torch.isfinite(x).all()
    small = gradients(product("log"), a, b, gradient=1e-37 * torch.ones(4, 4))
    torch.testing.assert_close([1e37 * x for x in small], gradients(product("log"), a, b))


def test_structured_elements() -> None:
    a, b = [(tensor(*s, seed=i), torch.ones(s, dtype=torch.float64)) for i, s in enumerate([(3, 4), (4, 2)])]

    def both(*parts: Any) -> Any:
        return sr.matmul(parts[:2], parts[2:], sr.DISTANCE_HOPS)

    assert check(both, tuple(x.clone().requires_grad_() for x in (*a, *b)))
    found = sr.matmul((a[0].requires_grad_(), a[1]), b, sr.DISTANCE_HOPS, witness=True)
    (3 * found.values[0].sum() + found.values[1].sum()).backward()
    assert a[0].grad.sum() == 18


def test_dtypes_and_arrays() -> None:
    a = tensor(3, 4, dtype=torch.float32).requires_grad_()
    found = sr.matmul(a, tensor(4, 2, seed=1), sr.MAX_TIMES)
    assert found.dtype == torch.float64
    found.sum().backward()
    assert a.grad.dtype == torch.float32
    half = tensor(3, 4, dtype=torch.float16).requires_grad_()
    found = sr.matmul(half, tensor(4, 2, seed=1, dtype=torch.float16), sr.MIN_PLUS)
    assert found.dtype == torch.float32  # as without a gradient
    assert gradients(product("min-plus"), half, half.mT)[0].dtype == torch.float16
    other = np.random.default_rng(0).random((4, 2))
    assert torch.equal(sr.matmul(a, other, sr.MIN_PLUS), sr.matmul(a, torch.from_numpy(other), sr.MIN_PLUS))
    layer = torch.nn.Parameter(torch.ones(4, 4))
    with torch.no_grad():
        assert not sr.matmul(layer, layer, sr.MIN_PLUS).requires_grad


@pytest.mark.parametrize("name", TERMS)
def test_functions_of_torch_func(name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # its import calls deprecated functions
        func = pytest.importorskip("torch.func")
    grad, jacrev, vmap = func.grad, func.jacrev, func.vmap
    a, b = tensor(3, 4), tensor(2, 4, 5, seed=1)
    if name in EXPONENTIAL:
        b = 40 * b / EXPONENTIAL[name]  # the backward pass adds in float64, or term by term
    every = vmap(grad(lambda a, b: naive(name, a, b).sum()), in_dims=(None, 0))(a, b)
    found = vmap(grad(lambda a, b: product(name)(a, b).sum()), in_dims=(None, 0))(a, b)
    torch.testing.assert_close(found, every, rtol=1e-7, atol=1e-7)
    found = vmap(grad(lambda a, b: product(name)(a, b).sum()), in_dims=(None, 2))(a, b.movedim(0, 2))
    torch.testing.assert_close(found, every, rtol=1e-7, atol=1e-7)
    jacobian = jacrev(lambda a: product(name)(a, b[0]))(a)
    torch.testing.assert_close(jacobian.sum((0, 1)), every[0], rtol=1e-7, atol=1e-7)


@pytest.mark.filterwarnings("ignore::FutureWarning")  # PyTorch's imports call deprecated functions
@pytest.mark.parametrize("name", TERMS)
def test_forward_mode(name: str) -> None:
    func = pytest.importorskip("torch.func")
    a, b = tensor(3, 4), tensor(4, 5, seed=1)
    assert check(product(name), (a.clone().requires_grad_(), b.clone().requires_grad_()), check_forward_ad=True, atol=1e-6)
    for function in (func.jacfwd, func.hessian):
        expected = function(lambda a: (naive(name, a, b) ** 2).sum())(a)
        torch.testing.assert_close(function(lambda a: (product(name)(a, b) ** 2).sum())(a), expected, rtol=1e-7, atol=1e-7)
    empty = torch.ones(2, 0, dtype=torch.float64)
    values, tangents = func.jvp(lambda x: product(name)(x, empty.mT), (empty,), (empty,))
    assert values.shape == tangents.shape == (2, 2)
    assert not tangents.any()


def test_vmap_without_a_gradient() -> None:
    a, b = tensor(2, 3, 4), tensor(4, 5, seed=1)
    integers, bits = (10 * a).int(), a > 5
    for x, y, semiring in ((a, b, sr.MIN_PLUS), (integers, integers[0].mT, sr.MAX_PLUS), (bits, bits[0].mT, sr.BOOLEAN)):
        found = torch.vmap(lambda x, y, semiring=semiring: sr.matmul(x, y, semiring), in_dims=(0, None))(x, y)
        assert torch.equal(found, sr.matmul(x, y, semiring))


@pytest.mark.parametrize("create_graph", [False, True])
@pytest.mark.parametrize(
    "shapes", [((3, 4), (4, 5)), ((2, 1, 3, 4), (3, 4, 2)), ((2, 3, 4), (4, 2)), ((4,), (4, 3)), ((3, 4), (4,))], ids=str
)
@pytest.mark.parametrize("name", TERMS)
def test_changes_in_place_after_the_product(name: str, shapes: tuple[Any, Any], create_graph: bool) -> None:
    """An operand may change unless the gradient reads its entries."""
    own = [tensor(*shape, seed=i).requires_grad_() for i, shape in enumerate(shapes)]
    expected, changed = gradients(product(name), *own), [x * 1 for x in own]
    result = product(name)(*changed)
    for x in changed:
        x.mul_(-3)
    if name in ("min-plus", "max-plus", "doubled"):
        found = torch.autograd.grad(result.sum(), own, create_graph=create_graph)
        assert all(map(torch.equal, found, expected))
        return
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        torch.autograd.grad(result.sum(), own, create_graph=create_graph)


def test_operands_that_no_gradient_reads_are_not_kept() -> None:
    a, b = tensor(30, 40).requires_grad_(), tensor(40, 20, seed=1).requires_grad_()
    for x, y, semiring in ((a, b, sr.MIN_PLUS), ((a, a), (b, b), sr.DISTANCE_HOPS)):
        kept, shapes = sr.matmul(x, y, semiring), list[Any]()
        node = (kept[0] if isinstance(kept, tuple) else kept).grad_fn
        shapes.extend(tuple(x.shape) for x in node.saved_tensors)
        assert shapes == [(30, 20)]
    split = a * 1
    result = sr.matmul(split, b, sr.MIN_PLUS, ties="split")
    split.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        result.sum().backward()


@pytest.mark.filterwarnings("ignore::FutureWarning")  # PyTorch's imports call deprecated functions
def test_forward_derivatives_without_a_gradient_are_refused() -> None:
    a = tensor(2, 2)
    for function, reason in (
        (lambda x: sr.matmul((x, x), (a, a), sr.DISTANCE_HOPS, ties="split")[0], "structured elements are not split"),
        (lambda x: sr.closure((x, a), sr.DISTANCE_COUNT)[0], "it has to select"),
    ):
        with pytest.raises(sr.GraphError, match=reason):
            torch.func.jvp(function, (a,), (a,))
        torch.func.jvp(lambda x, function=function: function(a) * 1.0 + x, (a,), (a,))  # a constant


@pytest.mark.parametrize("name", ["min-plus", "max-times", "log", "soft-min", "plus-times"])
def test_chains_and_contractions(name: str) -> None:
    a, b, c = tensor(3, 4) / 9, tensor(4, 5, seed=1) / 9, tensor(5, 2, seed=2) / 9
    own = [x.clone().requires_grad_() for x in (a, b, c)]
    semiring = TERMS[name][0]
    expected = gradients(lambda a, b, c: naive(name, naive(name, a, b), c), a, b, c)
    for function in (
        lambda *x: sr.multi_dot(x, semiring),
        lambda *x: sr.einsum("ij,jk,kl->li", *x, semiring=semiring),
        sr.contract_expression("ij,jk,kl->il", (3, 4), (4, 5), (5, 2), semiring=semiring, dtype="float64"),
    ):
        assert check(function, own, atol=1e-6)
        torch.testing.assert_close(gradients(function, a, b, c), expected)
    for subscripts, x in (("ii->i", tensor(3, 3)), ("ij->", a), ("ij->ji", a), ("aij->aj", tensor(2, 3, 4) / 9)):
        assert check(lambda x, subscripts=subscripts: sr.einsum(subscripts, x, semiring=semiring), [x.clone().requires_grad_()], atol=1e-6)
    mixed = sr.multi_dot([own[0], b.float(), c.numpy()], semiring)
    assert mixed.dtype == torch.float64
    assert mixed.requires_grad


def test_a_contraction_of_structured_elements() -> None:
    parts = [(tensor(*s, seed=i), torch.ones(s, dtype=torch.float64)) for i, s in enumerate([(3, 4), (4, 2), (2, 3)])]
    own = [(x.requires_grad_(), hops) for x, hops in parts]
    lengths, hops = sr.einsum("ij,jk,kl->il", *own, semiring=sr.DISTANCE_HOPS)
    assert torch.equal(hops.detach(), torch.full((3, 3), 3.0, dtype=torch.float64))
    lengths.sum().backward()
    assert [x.grad.sum().item() for x, _ in own] == [9, 9, 9]


def test_automatic_casts() -> None:
    a, b = tensor(3, 4).bfloat16(), tensor(4, 5, seed=1).bfloat16()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        for x in (a, a.clone().requires_grad_()):
            found = sr.matmul(x, b, sr.MIN_PLUS)
            assert found.dtype == torch.float32
            assert torch.equal(found.detach(), sr.matmul(a.float(), b.float(), sr.MIN_PLUS))
    found.sum().backward()
    assert x.grad.dtype == torch.bfloat16


@pytest.mark.gpu
@pytest.mark.filterwarnings("ignore:Attempting to run cuBLAS")  # PyTorch's, where the first work of its backward thread is a product
@pytest.mark.parametrize("name", TERMS)
def test_on_a_gpu(name: str) -> None:
    for shapes in [*SHAPES, ((2, 90, 130), (130, 70)), ((2, 2, 33, 40), (2, 2, 40, 31)), ((9, 5000), (5000, 3))]:
        a, b = (tensor(*shape, seed=i) / 20 for i, shape in enumerate(shapes))
        if name in EXPONENTIAL:
            a, b = a / 100, b / 100
        on_gpu = gradients(product(name), a.cuda(), b.cuda())
        assert all(x.is_cuda for x in on_gpu)
        for x, y in zip(on_gpu, gradients(product(name), a, b), strict=True):
            torch.testing.assert_close(x.cpu(), y)
        assert all(map(torch.equal, gradients(product(name), a.cuda(), b.cuda()), on_gpu))
        mixed = gradients(lambda a, b=b: sr.matmul(a, b.numpy(), TERMS[name][0]), a.cuda())
        torch.testing.assert_close(mixed[0].cpu(), on_gpu[0].cpu())
    x, y = tensor(3, 4).cuda().requires_grad_(), tensor(4, 5, seed=1).cuda().requires_grad_()
    assert check(product(name), (x, y), atol=1e-6)


def test_tensors_that_stand_for_others_are_not_read() -> None:
    """Numbers and arrays without a gradient path are read from no tensor of `torch.func`, which has no memory."""
    a = torch.rand(3, 3)
    refused: list[tuple[str, Any, Any]] = [
        ("lengths", lambda x: sr.scan(a, sr.LOG, lengths=x), torch.tensor([1, 2])),
        ("sources", lambda x: sr.apsp(a, sources=x), torch.tensor([1, 2])),
        ("targets", lambda x: sr.apsp(a, targets=[x]), torch.tensor([1, 2])),
        ("a tensor", sr.pairwise, torch.rand(2, 3, 3)),
    ]
    for name, function, given in refused:
        with pytest.raises(sr.GraphError, match=rf"{name} stands for others within torch\.func, and has no entries to read"):
            torch.func.vmap(function)(given)
        with pytest.raises(sr.GraphError, match=f"{name} stands for others"):
            torch.func.functionalize(function)(given[0])


def test_refused() -> None:
    a = torch.ones(2, 2).requires_grad_()
    plain = torch.ones(2, 2)
    refused: list[dict[str, Any]] = [{"c": plain}, {"out": plain}, {"dtype": "float64"}, {"mask": np.ones((2, 2), bool)}]
    for options in refused:
        with pytest.raises(sr.GraphError, match=r"requires a gradient, which .* do not propagate; pass \.detach\(\)"):
            sr.matmul(a, plain, sr.MIN_PLUS, **options)
    with pytest.raises(sr.GraphError, match=r"structured elements are not split.*; pass \.detach\(\)"):
        sr.matmul((a, a), (plain, plain), sr.DISTANCE_HOPS, ties="split")
    with pytest.raises(sr.SemiringError, match="ties is 'all'; it must be 'first' or 'split'"):
        sr.matmul(a, plain, sr.MIN_PLUS, ties="all")
    with pytest.raises(sr.GraphError, match="'and' has no derivative"):
        sr.matmul(a, plain, sr.BOOLEAN)
    with pytest.raises(sr.DTypeError, match=r"b has dtype torch\.int64"):
        sr.matmul(a, plain.long(), sr.MIN_PLUS)
    with pytest.raises(sr.GraphError, match="b is a list; pass a tensor"):
        sr.matmul(a, [[1.0, 2.0], [3.0, 4.0]], sr.MIN_PLUS)
    x = torch.tensor(1.0, requires_grad=True)
    for nested in (
        lambda: sr.matmul([[x, x]], plain, sr.LOG),
        lambda: sr.multi_dot([plain, [[x], [x]]], sr.LOG),
        lambda: sr.einsum("ij->", [[x, x]], semiring=sr.LOG),
        lambda: sr.apsp([[x, x], [x, x]]),
        lambda: sr.scan([[x, x], [x, x]], sr.LOG, lengths=2),
        lambda: sr.pairwise([[x, x]]),
    ):
        with pytest.raises(sr.GraphError, match=r"nested list has tensors .*requires grad.*such as torch\.stack"):
            nested()
    with pytest.raises(sr.GraphError, match=r"b is a list; pass a tensor, such as torch\.stack"):
        sr.matmul(a, [[x], [x]], sr.LOG)
    with pytest.raises(sr.GraphError, match="sparse"):
        sr.matmul(a, plain.to_sparse(), sr.MIN_PLUS)
    with pytest.raises(sr.ShapeError, match="do not fit"):
        sr.matmul(a, torch.ones(3, 2), sr.MIN_PLUS)
    with pytest.raises(sr.ShapeError, match="at least one axis"):
        sr.matmul(a, torch.tensor(1.0), sr.MIN_PLUS)
    with pytest.raises(sr.ShapeError, match="a tuple of 2 arrays"):
        sr.matmul((a, a), (plain, torch.ones(1, 2)), sr.DISTANCE_HOPS)
    with pytest.raises(sr.LawError, match="no witness"):
        sr.matmul(a, plain, sr.LOG, witness=True)
    with pytest.raises(sr.DomainError):
        sr.matmul(a, plain * math.nan, sr.MIN_PLUS)
    for function in (sr.statistics, lambda x: sr.pairwise(x, x), lambda x: sr.matmul(x, x, sr.MIN_PLUS, k=1)):
        with pytest.raises(sr.GraphError, match=r"requires a gradient, which this function does not propagate; pass \.detach\(\)"):
            function(a)
    for contraction in (
        lambda: sr.multi_dot([a, a], sr.MIN_PLUS, out=plain),
        lambda: sr.einsum("ij,jk->ik", a, a, semiring=sr.MIN_PLUS, witness=True),
        lambda: sr.einsum("ij,jk->ik", a, a, semiring=sr.MIN_PLUS, memory_limit=1),
    ):
        with pytest.raises((sr.GraphError, sr.TooLargeError)):
            contraction()


@pytest.mark.parametrize("temperature", [1e-30, 1e-20])
@pytest.mark.parametrize("cost", [1e3, 1e19])
def test_gradients_at_a_temperature_near_zero(temperature: float, cost: float) -> None:
    costs = torch.tensor([[1.0, 2.0]]) * cost
    (found,) = gradients(lambda a: sr.matmul(a, torch.zeros(2, 1), sr.MIN_PLUS.smooth(temperature)), costs)
    assert found.tolist() == [[1, 0]]


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
@pytest.mark.parametrize("name", ["min-plus", "log", "plus-times"])
def test_batched_gradients(name: str, device: str) -> None:
    a = tensor(3, 3).to(device).requires_grad_()
    g = torch.rand(4, 3, 3, dtype=torch.float64, device=device)
    (found,) = torch.autograd.grad(product(name)(a, a), a, g, is_grads_batched=True)
    torch.testing.assert_close(found[2], torch.autograd.grad(product(name)(a, a), a, g[2])[0])
    for own in (lambda x: product(name)(x, a.detach()), lambda x: product(name)(a.detach(), x)):
        (found,) = torch.autograd.grad(own(a), a, g, is_grads_batched=True)
        torch.testing.assert_close(found[2], torch.autograd.grad(own(a), a, g[2])[0])


def test_a_gradient_of_zeros_without_memory() -> None:
    a = tensor(3, 3).requires_grad_()
    (found,) = torch.autograd.grad(sr.matmul(a, a, sr.MIN_PLUS), a, torch._efficientzerotensor(3, 3, dtype=torch.float64))
    assert not found.any()


def test_nested_lists_of_numbers_are_not_searched_for_tensors() -> None:
    calls = []
    rows = np.ones((40, 40)).tolist()
    sys.setprofile(lambda frame, event, _: calls.append(frame.f_code.co_name) if event == "call" else None)
    try:
        found = is_compiling(rows, [rows])
    finally:
        sys.setprofile(None)
    assert not found
    assert len(calls) < 10


@pytest.mark.filterwarnings("ignore::FutureWarning")  # PyTorch's imports call deprecated functions
def test_forward_derivatives_of_forward_derivatives_are_refused() -> None:
    a = tensor(2, 2)
    for function in (lambda x: sr.matmul(x, x, sr.LOG), sr.apsp, lambda x: sr.scan(x, sr.LOG, lengths=2)):
        with pytest.raises(sr.GraphError, match=r"take jacfwd of jacrev, or torch\.func\.hessian"):
            torch.func.jacfwd(torch.func.jacfwd(function))(a)


def test_parameters_without_a_gradient() -> None:
    a = torch.nn.Parameter(torch.rand(3, 3))
    plain = a.detach().clone()
    functions: list[Callable[[Any], Any]] = [
        lambda x: sr.matmul(x, x, sr.MIN_PLUS, c=x),
        lambda x: sr.matmul(x, x, sr.MIN_PLUS, k=2).values,
        lambda x: sr.power(x, 3, sr.MIN_PLUS),
        lambda x: sr.apsp(x, paths=True).values,
        lambda x: sr.pairwise(x, x),
        lambda x: sr.scan(x, sr.LOG, lengths=3, sample=1).values,
    ]
    with torch.no_grad():
        for function in functions:
            assert torch.equal(torch.as_tensor(function(a)), torch.as_tensor(function(plain)))
