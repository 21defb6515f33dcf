"""Gradients of closures of PyTorch's tensors: by differences, and against PyTorch's own through naive eliminations and inverses."""

from __future__ import annotations

import functools
import itertools
import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import semiring as sr
from semiring.algorithms import closure_adjoints
from tests.face.derivatives import DUAL, EINSTEIN, INF, SOFT_CLOSED, distinct

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch
dispatch = pytest.importorskip("torch.utils._python_dispatch")
check, check_twice = torch.autograd.gradcheck, torch.autograd.gradgradcheck

DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)]


BOUNDED = sr.Semiring("lukasiewicz", max, lambda a, b: max(a + b - 1, 0), 0, 1, domain=(0, 1))


SCALED = sr.Semiring("scaled", lambda a, b: a + b, lambda a, b: 2 * a * b, 0, 0.5, star=lambda a: 0.25 / (0.5 - a))

SELECTIVE: dict[str, tuple[sr.Semiring, Callable[[Any, Any], Any], Callable[[Any, Any], Any]]] = {
    "min-plus": (sr.MIN_PLUS, torch.minimum, torch.add),
    "max-plus": (sr.MAX_PLUS, torch.maximum, torch.add),
    "max-times": (sr.MAX_TIMES, torch.maximum, torch.mul),
    "max-min": (sr.MAX_MIN, torch.maximum, torch.minimum),
    "min-max": (sr.MIN_MAX, torch.minimum, torch.maximum),
    "lukasiewicz": (BOUNDED, torch.maximum, lambda x, y: (x + y - 1).clamp(min=0)),
    "einstein": (EINSTEIN, torch.maximum, lambda x, y: x * y / (2 - (x + y - x * y))),
}
"""Semirings with ⊕ and ⊗ on tensors."""
EXPONENTIAL = {"log": (sr.LOG, 1), "soft-min": (SOFT_CLOSED, -2)}
SEMIRINGS: dict[str, sr.Semiring] = {
    **{name: entry[0] for name, entry in SELECTIVE.items()},
    **{name: entry[0] for name, entry in EXPONENTIAL.items()},
    "plus-times": sr.PLUS_TIMES,
}


def weights(name: str, *shape: int, seed: int = 0, dtype: Any = torch.float64, device: str = "cpu") -> Any:
    """Numbers in (0.1, 1), no two alike, as weights whose cycles converge."""
    x = torch.from_numpy(0.1 + 0.9 * distinct(*shape, seed=seed)).to(dtype).to(device)
    if name in ("lukasiewicz", "max-times", "einstein"):
        return torch.floor((0.5 + 0.49 * x) * 2**16) / 2**16  # sums without rounding
    if name == "max-plus":
        return -x
    if name == "plus-times":
        return x / (1.5 * shape[-1])
    if name in EXPONENTIAL:
        return (x - 2 - math.log(max(1, shape[-1]))) / EXPONENTIAL[name][1]
    return x


def naive(name: str, a: Any, reflexive: bool = True) -> Any:
    """Close by an elimination or an inverse in PyTorch."""
    n = a.shape[-1]
    one = torch.eye(n, dtype=bool, device=a.device)
    eye = one.to(a.dtype)
    if name == "plus-times":
        return torch.linalg.inv(eye - a) - (0 if reflexive else eye)
    if name in EXPONENTIAL:
        scale = EXPONENTIAL[name][1]
        found = torch.linalg.inv(eye - torch.exp(scale * a))
        return torch.log(found if reflexive else found @ torch.exp(scale * a)) / scale
    semiring, add, mul = SELECTIVE[name]
    for k in range(n):
        others = torch.arange(n, device=a.device) != k
        a = torch.where(others[:, None] & others, add(a, mul(a[..., :, k, None], a[..., None, k, :])), a)
    return torch.where(one, float(semiring.one), a) if reflexive else a


def closure(name: str, **options: Any) -> Callable[..., Any]:
    return lambda a: sr.closure(a, SEMIRINGS[name], **options)


def finite(name: str, **options: Any) -> Callable[..., Any]:
    """Close, and replace ∞ by 0, which differences need."""
    return lambda a: closure(name, **options)(a).nan_to_num(posinf=0, neginf=0)


def gradient(function: Callable[..., Any], a: Any, g: Any = None) -> Any:
    own = a.detach().requires_grad_()
    found = function(own)
    return torch.autograd.grad(found, own, torch.ones_like(found) if g is None else g)[0]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("reflexive", [True, False])
@pytest.mark.parametrize("name", SEMIRINGS)
def test_differences(name: str, reflexive: bool, device: str) -> None:
    for shape in ((1, 1), (2, 2), (4, 4), (2, 1, 3, 3)):
        a = weights(name, *shape, device=device).requires_grad_()
        before = a.detach().clone()
        assert check(finite(name, reflexive=reflexive), a)
        assert torch.equal(a.detach(), before)
    a = weights(name, 3, 3, device=device).requires_grad_()
    assert check_twice(finite(name, reflexive=reflexive), a)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("reflexive", [True, False])
@pytest.mark.parametrize("name", SEMIRINGS)
def test_against_pytorch(name: str, reflexive: bool, dtype: Any, device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    a = weights(name, 2, 31, 31, dtype=dtype, device=device)
    a = a.mT.contiguous().mT if dtype == torch.float32 else torch.stack([a, a], -1)[..., 0]
    g = torch.from_numpy(np.random.default_rng(1).normal(size=(2, 31, 31))).to(dtype).to(device).mT
    expected = gradient(lambda a: naive(name, a, reflexive), a.double(), g.double())
    closed = closure(name, reflexive=reflexive)
    found = gradient(closed, a, g)
    assert found.dtype == dtype
    tolerance = 1e-3 if dtype == torch.float32 else 1e-9
    torch.testing.assert_close(closed(a.clone().requires_grad_()).detach(), closed(a), rtol=1e-6, atol=0)
    torch.testing.assert_close(found.double(), expected, rtol=tolerance, atol=tolerance)
    assert all(torch.equal(gradient(closed, a, g), found) for _ in range(2))
    torch.testing.assert_close(gradient(closed, a[1], g[1]).double(), expected[1], rtol=tolerance, atol=tolerance)
    monkeypatch.setattr(closure_adjoints, "_NODES", 500)  # some trees at a time
    torch.testing.assert_close(gradient(closed, a, g), found)


CHOSEN: list[tuple[dict[str, Any], tuple[Any, ...]]] = [
    ({"sources": [3, 1, 1]}, (..., [3, 1, 1], slice(None))),
    ({"targets": 3}, (..., 3)),
    ({"sources": 2, "targets": [0, 2]}, (..., 2, [0, 2])),
    ({"sources": 0, "targets": 1}, (..., 0, 1)),
]


@pytest.mark.parametrize("reflexive", [True, False])
@pytest.mark.parametrize("name", SEMIRINGS)
def test_sources_and_targets(name: str, reflexive: bool) -> None:
    a = weights(name, 2, 5, 5)
    for (options, index), x in itertools.product(CHOSEN, (a, a[0])):
        chosen = closure(name, reflexive=reflexive, **options)
        torch.testing.assert_close(chosen(x.clone().requires_grad_()).detach(), chosen(x))
        found = gradient(lambda x, chosen=chosen: chosen(x).square(), x)
        every = gradient(lambda x, index=index: closure(name, reflexive=reflexive)(x)[index].square(), x)
        torch.testing.assert_close(found, every)
    assert closure(name, sources=[])(a.requires_grad_()).shape == (2, 0, 5)
    assert not gradient(closure(name, sources=[]), a).any()


@pytest.mark.parametrize("reflexive", [True, False])
@pytest.mark.parametrize("name", [name for name in SEMIRINGS if name != "plus-times"])
def test_pairs_without_a_path(name: str, reflexive: bool) -> None:
    zero = float(SEMIRINGS[name].zero)
    a = weights(name, 7, 7)
    if name == "lukasiewicz":
        a = 0.9 + a / 10
    edges = torch.ones(7, 7, dtype=bool).triu(1)
    edges[5, 5] = edges[4, 3] = True  # a loop, and a cycle of two edges
    a = torch.where(edges, a, zero)
    a[:, 2] = a[2] = zero
    reached = sr.closure(a, SEMIRINGS[name], reflexive=reflexive) != zero
    assert 9 < reached.sum() < 36
    for bad in (INF, -INF, math.nan):
        found = gradient(closure(name, reflexive=reflexive), a, torch.where(reached, 1.0, bad).double())
        assert torch.isfinite(found).all()
        assert torch.equal(found, gradient(closure(name, reflexive=reflexive), a, reached.double()))
        assert not found[2].any()
        assert not found[:, 2].any()
        if name in EXPONENTIAL:
            assert not found[a == zero].any()
    # Differences of the edges that are there.
    edges = a[a != zero].requires_grad_()
    closed = finite(name, reflexive=reflexive)

    def of_edges(edges: Any) -> Any:
        return closed(torch.full_like(a, zero).masked_scatter(a != zero, edges))

    if name != "lukasiewicz":  # which has many paths of weight 0
        assert check(of_edges, edges)
        assert not reflexive or check_twice(of_edges, edges)


def test_unreachable_pairs_over_sums_open_paths() -> None:
    a = torch.zeros(3, 3, dtype=torch.float64)
    a[0, 1] = 0.5
    assert gradient(closure("plus-times"), a)[1, 2] == 1.5


@pytest.mark.parametrize("reflexive", [True, False])
def test_cycles_of_weight_zero(reflexive: bool) -> None:
    a = torch.full((5, 5), INF, dtype=torch.float64)
    a[4, 3], a[3, 0], a[0, 2], a[2, 0] = 1, 0, 0, 0
    g = torch.zeros(5, 5, dtype=torch.float64)
    g[4, 2] = 1
    found = gradient(closure("min-plus", reflexive=reflexive), a, g)
    assert sorted(map(tuple, found.nonzero().tolist())) == [(0, 2), (3, 0), (4, 3)]
    assert found.sum() == 3
    of_all = gradient(closure("min-plus", reflexive=reflexive, nonedge=INF), torch.zeros(6, 6))
    assert (of_all >= 0).all()
    assert of_all.sum() >= (30 if reflexive else 36)


@pytest.mark.parametrize("reflexive", [True, False])
def test_ties_have_a_subgradient(reflexive: bool) -> None:
    rng = np.random.default_rng(0)
    potential = rng.integers(0, 9, 23)
    a = torch.from_numpy(rng.integers(0, 4, (23, 23)) + potential - potential[:, None]).double()  # negative edges, no negative cycle
    a[torch.from_numpy(rng.random((23, 23)) < 0.7)] = INF
    closed = closure("min-plus", reflexive=reflexive)
    there = closed(a) < INF
    g = torch.from_numpy(rng.integers(1, 9, (23, 23))).double() * there
    found = gradient(closed, a, g)

    def total(a: Any) -> Any:
        return (g * closed(a).nan_to_num(posinf=0)).sum()

    assert (a.nan_to_num(posinf=0) * found).sum() == total(a)  # a distance is the sum of its edges
    for seed in range(5):
        h = torch.from_numpy(np.random.default_rng(seed).random((23, 23)))
        assert total(a + h) <= total(a) + (found * h).sum() + 1e-9  # distances are concave


def test_long_paths() -> None:
    n = 211
    a = torch.full((n, n), INF)
    order = torch.randperm(n, generator=torch.Generator().manual_seed(0))
    a[order[:-1], order[1:]] = 1.0
    found = gradient(lambda a: sr.apsp(a).nan_to_num(posinf=0), a)
    i = torch.arange(1, n)
    assert torch.equal(found[order[:-1], order[1:]], (i * (n - i)).float())
    assert found.sum() == (i * (n - i)).sum()


class Largest(dispatch.TorchDispatchMode):  # type: ignore[misc, name-defined, unused-ignore]
    """The most bytes of a result of PyTorch's operations."""

    most = 0

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        found = function(*args, **(kwargs or {}))
        if isinstance(found, torch.Tensor):
            self.most = max(self.most, found.untyped_storage().nbytes())
        return found


@pytest.mark.parametrize("name", SELECTIVE)
def test_memory(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    a = weights(name, 97, 97).requires_grad_()
    monkeypatch.setattr(closure_adjoints, "_NODES", 1000)
    found = closure(name)(a)
    with Largest() as largest:
        found.backward(torch.ones_like(found))
    assert largest.most <= 8 * a.numel()


@pytest.mark.parametrize("reflexive", [True, False])
def test_structured_elements(reflexive: bool) -> None:
    lengths, ones = weights("min-plus", 2, 5, 5), torch.ones(2, 5, 5, dtype=torch.float64)
    assert check(lambda *a: sr.closure(a, sr.DISTANCE_HOPS, reflexive=reflexive), (lengths.requires_grad_(), ones.requires_grad_()))
    p, q = weights("max-times", 6, 6).requires_grad_(), weights("max-min", 6, 6, seed=1).requires_grad_()
    assert check(lambda *a: sr.closure(a, DUAL, reflexive=reflexive), (p, q))
    assert check(lambda *a: sr.closure(a, DUAL, reflexive=reflexive, sources=[4, 1], targets=2), (p, q))
    found = sr.closure((p, q.detach().numpy()), DUAL)
    found[1].sum().backward()
    assert p.grad.shape == (6, 6)


@pytest.mark.parametrize("name", SEMIRINGS)
@pytest.mark.parametrize("shape", [(0, 0), (3, 0, 0), (0, 4, 4)])
def test_empty(name: str, shape: tuple[int, ...]) -> None:
    assert gradient(closure(name), torch.ones(shape)).shape == shape
    assert gradient(closure(name, reflexive=False), torch.ones(shape)).shape == shape


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("spread", [3, 60, 300, 3000])
@pytest.mark.parametrize("reflexive", [True, False])
@pytest.mark.parametrize("name", EXPONENTIAL)
def test_wide_ranges(name: str, reflexive: bool, spread: float, dtype: Any) -> None:
    semiring, scale = EXPONENTIAL[name]
    a = (-spread * (1 + torch.rand(2, 9, 9, generator=torch.Generator().manual_seed(0), dtype=torch.float64)) / scale).to(dtype)
    a[0, 2, 4:] = a[0, :, 6] = -INF * scale
    g = torch.randn(2, 9, 9, generator=torch.Generator().manual_seed(1), dtype=torch.float64).to(dtype)
    found = sr.closure(a, semiring, reflexive=reflexive)
    taken = closure_adjoints.deficits(scale, a, found, reflexive=reflexive)  # type: ignore[arg-type]
    assert (max(taken) > 256) == (spread > 60)
    c, star = scale * found.double(), scale * sr.closure(a, semiring).double()
    weight = torch.where(c > -INF, g, 0).double()
    exponent = star[:, :, :, None, None] + (scale * a.double())[:, None, :, :, None] + star[:, None, None] - c[:, :, None, None, :]
    expected = (weight[:, :, None, None, :] * exponent.nan_to_num(nan=-INF, posinf=-INF).exp()).sum((1, 4))
    tolerance = 8 * torch.finfo(dtype).eps * max(1, 8 * spread)
    torch.testing.assert_close(gradient(closure(name, reflexive=reflexive), a, g).double(), expected, rtol=tolerance, atol=tolerance)


def test_no_edge() -> None:
    a = torch.tensor([[0.0, 2.0, 9.0], [0.0, 0.0, 3.0], [0.0, 0.0, 0.0]], requires_grad=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = sr.apsp(a, nonedge=0)
    assert found.tolist() == [[0, 2, 5], [INF, 0, 3], [INF, INF, 0]]
    found[0, 2].backward()
    assert a.grad.tolist() == [[0, 1, 0], [0, 0, 1], [0, 0, 0]]
    b = torch.tensor([[0.25, 0.5], [math.nan, 0.25]], dtype=torch.float64, requires_grad=True)
    assert gradient(lambda x: sr.closure(x, sr.PLUS_TIMES, nonedge=math.nan), b)[1, 0] == 0
    pair = a.detach().clone().requires_grad_(), torch.ones(3, 3)
    assert sr.closure(pair, sr.DISTANCE_HOPS, nonedge=(0, 1))[1].tolist() == [[0, 1, 2], [INF, 0, 1], [INF, INF, 0]]


def test_dtypes() -> None:
    half = weights("min-plus", 4, 4, dtype=torch.float16)
    assert sr.apsp(half.requires_grad_()).dtype == torch.float32
    assert gradient(sr.apsp, half).dtype == torch.float16
    layer = torch.nn.Parameter(weights("min-plus", 4, 4))
    with torch.no_grad():
        assert not sr.apsp(layer).requires_grad
    sr.apsp(layer, method="blocked", block=2, device="cpu", threads=1, memory_limit="1GiB", tolerance=1e-12).sum().backward()
    assert torch.equal(layer.grad, gradient(sr.apsp, layer))


@pytest.mark.parametrize("reflexive", [True, False])
@pytest.mark.parametrize("name", SEMIRINGS)
def test_functions_of_torch_func(name: str, reflexive: bool) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # its import calls deprecated functions
        func = pytest.importorskip("torch.func")
    a, closed = weights(name, 3, 5, 5), finite(name, reflexive=reflexive)

    def loss(a: Any) -> Any:
        return closed(a).square().sum()

    expected = gradient(loss, a)
    torch.testing.assert_close(func.grad(loss)(a), expected)
    torch.testing.assert_close(func.vmap(func.grad(loss))(a), expected)
    torch.testing.assert_close(func.vmap(func.grad(loss), in_dims=2)(a.movedim(0, 2)), expected)
    torch.testing.assert_close(func.jacrev(func.grad(loss))(a[0]), torch.autograd.functional.hessian(loss, a[0]))


def test_a_closure_in_a_larger_graph() -> None:
    lengths = torch.tensor([1.0, 2.0, 4.0], requires_grad=True)
    a = torch.full((3, 3), INF).index_put((torch.tensor([0, 1, 0]), torch.tensor([1, 2, 2])), lengths)
    (sr.apsp(a)[0, 2] ** 2).backward()
    assert lengths.grad.tolist() == [6, 6, 0]


@pytest.mark.parametrize("reflexive", [True, False])
@pytest.mark.parametrize(("name", "kept"), [("min-plus", False), ("plus-times", False), ("max-times", True), ("log", True)])
def test_changes_in_place_after_the_closure(name: str, kept: bool, reflexive: bool) -> None:
    function, own = closure(name, reflexive=reflexive), weights(name, 6, 6).requires_grad_()
    changed = own * 1
    found = function(changed)
    changed.mul_(-3)
    if kept:
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            found.sum().backward()
        return
    assert torch.equal(torch.autograd.grad(found.sum(), own)[0], gradient(function, own))


def test_refused() -> None:
    a = weights("min-plus", 3, 3).requires_grad_()
    refused: list[dict[str, Any]] = [
        {"paths": True}, {"limit": 0.0}, {"k": 1}, {"weight": 1.0}, {"node_weight": np.ones(3)}, {"dtype": "float64"}, {"overwrite": True},
        {"checkpoint": "folder"}, {"comm": object()},
    ]  # fmt: skip
    for options in refused:
        (name,) = options
        with pytest.raises(sr.GraphError, match=rf"requires a gradient, which {name}= does not propagate; .*\.detach\(\)"):
            sr.apsp(a, **options)
    with pytest.raises(sr.GraphError, match="paths= does not"):
        sr.closure(a, sr.TROPICAL_ARGMIN)
    for semiring in (sr.DISTANCE_COUNT, sr.k_best(2)):
        parts = (a,) * semiring.components
        with pytest.raises(sr.GraphError, match=r"has to select.*or to be log Σ exp or \+; pass \.detach\(\)"):
            sr.closure(parts, semiring)
    for semiring in (sr.BOOLEAN, sr.GF2, sr.BITSET):
        with pytest.raises(sr.GraphError, match=r"has no derivative; pass \.detach\(\)"):
            sr.closure(a, semiring)
    with pytest.raises(sr.GraphError, match=r"has no derivative; pass \.detach\(\)"):
        sr.transitive_closure(a)
    with pytest.raises(sr.GraphError, match="another ⊗ than a product"):
        sr.closure(a, SCALED)
    with pytest.raises(sr.ShapeError, match="a tuple of 2 arrays"):
        sr.closure(a, sr.DISTANCE_HOPS)
    with pytest.raises(sr.GraphError, match="sparse"):
        sr.apsp(a.to_sparse())
    for wrong in (a[0], a[0, 0], a[:2]):
        with pytest.raises(sr.ShapeError, match="a square matrix"):
            sr.apsp(wrong)
    with pytest.raises(sr.GraphError, match="there is no vertex 3"):
        sr.apsp(a, sources=3)
    with pytest.raises(sr.NegativeCycleError):
        sr.apsp(a - 1)
    assert sr.apsp(a.bfloat16()).dtype == torch.float32
    with pytest.raises(sr.GraphError, match="requires a gradient"):
        sr.apsp(a.detach(), node_weight=a[0])


def test_every_semiring_of_the_catalogue() -> None:
    """A closure of numbers has a gradient, or the reason against it is tested above."""
    refused = {"boolean", "gf2", "bitset", "distance-count"}
    assert {s.name for s in sr.semirings().values()} <= {*SEMIRINGS, *refused, "distance-hops"}


@pytest.mark.filterwarnings("ignore::FutureWarning")  # PyTorch's imports call deprecated functions
@pytest.mark.parametrize("reflexive", [True, False])
@pytest.mark.parametrize("semiring", [sr.MIN_PLUS, sr.MAX_TIMES, sr.LOG, sr.PLUS_TIMES], ids=str)
def test_forward_mode(semiring: sr.Semiring, reflexive: bool) -> None:
    weights = torch.rand(2, 4, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0)) / 8
    weights = weights - 4 if semiring is sr.LOG else weights
    closed = functools.partial(sr.closure, semiring=semiring, reflexive=reflexive)
    assert torch.autograd.gradcheck(closed, weights.clone().requires_grad_(), check_forward_ad=True)
    torch.testing.assert_close(torch.func.jacfwd(closed)(weights), torch.func.jacrev(closed)(weights))
    empty = torch.ones(0, 0, dtype=torch.float64)
    assert torch.func.jvp(closed, (empty,), (empty,))[1].shape == (0, 0)
    assert torch.equal(torch.vmap(closed)(weights), closed(weights))


@pytest.mark.filterwarnings("ignore::FutureWarning")  # PyTorch's imports call deprecated functions
@pytest.mark.parametrize("reflexive", [True, False])
@pytest.mark.parametrize("name", SEMIRINGS)
def test_stacks_of_gradients(name: str, reflexive: bool) -> None:
    closed = finite(name, reflexive=reflexive)
    for shape in ((3, 3), (2, 3, 3)):
        assert check(closed, weights(name, *shape).requires_grad_(), check_batched_grad=True)
    assert check_twice(closed, weights(name, 2, 2).requires_grad_(), check_batched_grad=True)
    a, g = weights(name, 4, 4).requires_grad_(), torch.randn(5, 4, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    (found,) = torch.autograd.grad(closed(a), a, g, is_grads_batched=True)
    expected = torch.stack([gradient(closed, a, one) for one in g])
    torch.testing.assert_close(found, expected)
    pull = torch.func.vjp(closed, a.detach())[1]
    torch.testing.assert_close(torch.func.vmap(pull)(g)[0], expected)
    jacobian = torch.autograd.functional.jacobian(closed, a, vectorize=True)
    torch.testing.assert_close(jacobian, torch.func.jacrev(closed)(a.detach()))
    jacobian = torch.autograd.functional.jacobian(closed, a.detach(), vectorize=True, strategy="forward-mode")
    torch.testing.assert_close(jacobian, torch.func.jacrev(closed)(a.detach()))
    each = torch.func.vmap(torch.func.jacrev(closed))(weights(name, 3, 4, 4))
    torch.testing.assert_close(each[1], torch.func.jacrev(closed)(weights(name, 3, 4, 4)[1]))


@pytest.mark.parametrize("sizes", [(3, 3), (4, 1, 0, 4), (2, 3, 2)])
@pytest.mark.parametrize("name", SEMIRINGS)
def test_lists(name: str, sizes: tuple[int, ...]) -> None:
    graphs = [weights(name, n, n, seed=i).requires_grad_() for i, n in enumerate(sizes)]
    graphs[1] = graphs[1].detach()
    for given in (graphs, tuple(graphs)):
        found = sr.closure(given, SEMIRINGS[name])
        assert isinstance(found, list)
        assert all(torch.equal(x.detach(), sr.closure(g.detach(), SEMIRINGS[name])) for x, g in zip(found, graphs, strict=True))
    torch.stack([x.nan_to_num(posinf=0, neginf=0).sum() for x in found]).sum().backward()
    for i, a in enumerate(graphs):
        assert a.grad is None if i == 1 else torch.equal(a.grad, gradient(finite(name), a))


def test_lists_of_other_graphs() -> None:
    a = weights("min-plus", 3, 3).requires_grad_()
    for other in (a.detach().numpy(), sr.edges([(0, 1, 2.0)]), a.detach().tolist()):
        first, second = sr.apsp([other, a], sources=0)
        assert first.tolist() == sr.apsp(other, sources=0).tolist()
        assert torch.equal(torch.autograd.grad(second.sum(), a)[0], gradient(lambda a: sr.apsp(a, sources=0), a))
    pair = a, torch.ones(3, 3, dtype=torch.float64)
    (lengths, hops), _ = sr.closure([pair, pair], sr.DISTANCE_HOPS)
    assert torch.equal(torch.autograd.grad(lengths.sum(), a, retain_graph=True)[0], gradient(sr.apsp, a))
    assert not hops.requires_grad or not torch.autograd.grad(hops.sum(), a)[0].any()
    with pytest.raises(sr.NegativeCycleError, match="at index 1 of the list"):
        sr.apsp([a, a - 1])
    with pytest.raises(sr.GraphError, match=r"paths= does not propagate.*at index 0 of the list"):
        sr.apsp([a, a], paths=True)
    with pytest.raises(sr.GraphError, match="the graph is a list"):
        sr.apsp([a[0], a[1], a[2]])


def test_place_of_warnings() -> None:
    a = torch.zeros(3, 3, requires_grad=True)
    functions: list[Callable[[], Any]] = [
        lambda: sr.apsp(a),
        lambda: sr.apsp([a, a]),
        lambda: torch.func.vmap(sr.apsp)(a[None]),
        lambda: torch.func.vmap(lambda a: sr.apsp(a))(a[None]),
        lambda: torch.func.jacrev(sr.apsp)(a.detach()),
    ]
    for function in functions:
        with pytest.warns(sr.NonEdgeWarning) as caught:
            function()
        assert {(found.filename, found.lineno) for found in caught} == {(__file__, function.__code__.co_firstlineno)}
