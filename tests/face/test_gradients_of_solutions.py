"""Gradients of `Factor.solve` with respect to b: by differences, and against PyTorch's own through naive walks and inverses."""

from __future__ import annotations

import contextlib
import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import semiring as sr
from semiring import ops
from semiring.algorithms.factorization import Factorization

torch = pytest.importorskip("torch")
pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore::FutureWarning")]  # PyTorch's imports call deprecated functions
check, check_twice = torch.autograd.gradcheck, torch.autograd.gradgradcheck

INF = math.inf
DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)]

SOFT = sr.Semiring(
    "soft-min",
    lambda a, b: -ops.logaddexp(-2 * a, -2 * b) / 2,
    lambda a, b: a + b,
    INF,
    0,
    star=lambda a: ops.log(-ops.expm1(-2 * a)) / 2,
)
SEMIRINGS = {
    "min-plus": sr.MIN_PLUS,
    "max-plus": sr.MAX_PLUS,
    "max-times": sr.MAX_TIMES,
    "max-min": sr.MAX_MIN,
    "log": sr.LOG,
    "soft-min": SOFT,
    "plus-times": sr.PLUS_TIMES,
}
SELECTIVE: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "min-plus": (torch.amin, torch.add),
    "max-plus": (torch.amax, torch.add),
    "max-times": (torch.amax, torch.mul),
    "max-min": (torch.amax, torch.minimum),
}
EXPONENTIAL = {"log": 1, "soft-min": -2}


def graph(name: str, n: int, *, seed: int = 0, density: float = 0.5, dtype: Any = torch.float64) -> Any:
    """Edges of weights in (0.1, 1), no two alike, whose cycles converge; other entries are zero."""
    rng = np.random.default_rng(seed)
    x = torch.from_numpy(0.1 + 0.9 * (rng.permutation(n * n) + rng.random(n * n) / 2).reshape(n, n) / max(1, n * n))
    x = {"max-plus": -x, "plus-times": x / (1.5 * max(1, n))}.get(name, x)
    if name in EXPONENTIAL:
        x = (x - 2 - math.log(max(1, n))) / EXPONENTIAL[name]
    return torch.where(torch.from_numpy(rng.random((n, n)) < density), x, float(SEMIRINGS[name].zero)).to(dtype)


def right(*shape: int, seed: int = 1, dtype: Any = torch.float64, device: str = "cpu") -> Any:
    return torch.from_numpy(np.asarray(0.1 + np.random.default_rng(seed).random(shape))).to(dtype).to(device).requires_grad_()


def naive(name: str, a: Any, b: Any) -> Any:
    """Solve by rounds x ← A ⊗ x ⊕ b, or by an inverse, in PyTorch."""
    eye = torch.eye(len(a), dtype=a.dtype)
    if name == "plus-times":
        return torch.linalg.inv(eye - a) @ b
    if name in EXPONENTIAL:
        s = EXPONENTIAL[name]
        return torch.log(torch.linalg.inv(eye - torch.exp(s * a)) @ torch.exp(s * b)) / s
    best, mul = SELECTIVE[name]
    x = b
    for _ in range(len(a)):
        x = best(torch.cat([mul(a[:, :, None], x[None]), b[:, None]], 1), 1)
    return x


def factor(name: str, a: Any, **options: Any) -> Any:
    return sr.factor(a, SEMIRINGS[name], nonedge=SEMIRINGS[name].zero, **options)


def gradient(solve: Callable[..., Any], b: Any, g: Any) -> Any:
    own = b.detach().requires_grad_()
    return torch.autograd.grad(solve(own), own, g)[0]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", SEMIRINGS)
def test_differences(name: str, device: str) -> None:
    f = factor(name, graph(name, 5))
    for shape in ((5,), (5, 1), (5, 3)):
        b = right(*shape, device=device)
        before = b.detach().clone()
        assert check(f.solve, b, check_batched_grad=True, check_forward_ad=True)
        assert check_twice(f.solve, b, check_batched_grad=True, check_fwd_over_rev=True)
        assert torch.equal(b.detach(), before)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("density", [0.02, 0.2])
@pytest.mark.parametrize("name", SEMIRINGS)
def test_against_pytorch(name: str, density: float, dtype: Any, device: str) -> None:
    a = graph(name, 67, density=density, dtype=dtype)
    f = factor(name, a, device=device)
    b = right(67, 4, dtype=dtype, device=device)
    strided = torch.stack([b, b], -1)[..., 0]
    g = torch.from_numpy(np.random.default_rng(2).normal(size=(4, 67))).to(dtype).to(device).mT
    tolerance = 1e-4 if dtype == torch.float32 else 1e-10
    expected = naive(name, a.double(), b.detach().double().cpu())
    x = f.solve(strided)
    assert (x.dtype, x.device) == (b.dtype, b.device)
    torch.testing.assert_close(x.detach().double().cpu(), expected, rtol=tolerance, atol=tolerance)
    expected = gradient(lambda b: naive(name, a.double(), b), b.double().cpu(), g.double().cpu())
    found = gradient(f.solve, b, g)
    torch.testing.assert_close(found.double().cpu(), expected, rtol=tolerance, atol=tolerance)
    torch.testing.assert_close(torch.autograd.grad(x, b, g)[0], found, rtol=0, atol=0)  # the same bits
    torch.testing.assert_close(gradient(f.solve, b[:, 1], g[:, 1]), found[:, 1], rtol=tolerance, atol=tolerance)


def transformations() -> dict[str, Callable[[Callable[..., Any]], Callable[..., Any]]]:
    f, jacobian = torch.func, torch.autograd.functional.jacobian
    return {
        "jacrev": f.jacrev,
        "jacfwd": f.jacfwd,
        "hessian": lambda solve: f.hessian(lambda b: solve(b).pow(3).sum()),
        "jacrev of jacrev": lambda solve: f.jacrev(f.jacrev(lambda b: solve(b).pow(3).sum())),
        "stacks of tangents": lambda solve: functools.partial(jacobian, solve, vectorize=True, strategy="forward-mode"),
        "vmap": lambda solve: f.vmap(solve, in_dims=1, out_dims=1),
        "vmap of jacrev": lambda solve: f.vmap(f.jacrev(solve), in_dims=1),
    }


@pytest.mark.parametrize("how", transformations())
@pytest.mark.parametrize("name", SEMIRINGS)
def test_transformations(name: str, how: str) -> None:
    a = graph(name, 5)
    b, transformed = right(5, 2).detach(), transformations()[how]
    found = transformed(factor(name, a).solve)(b)
    torch.testing.assert_close(found, transformed(lambda b: sr.matmul(sr.closure(a, SEMIRINGS[name]), b, SEMIRINGS[name]))(b))


@pytest.mark.parametrize("name", [name for name in SEMIRINGS if name != "plus-times"])
def test_unreachable(name: str) -> None:
    zero = float(SEMIRINGS[name].zero)
    a = graph(name, 9, density=0.4)
    a[2] = a[:, 2] = a[5] = a[:, 7] = zero
    b = right(9, 3).detach()
    b[2] = b[5, :2] = zero
    b[:, 2] = zero
    b = b.requires_grad_()
    f = factor(name, a)
    reached = f.solve(b) != zero
    assert not reached[2].any()
    assert not reached[:, 2].any()
    assert 9 < reached.sum() < 18
    clean = gradient(f.solve, b, reached.double())
    assert torch.isfinite(clean).all()
    assert not clean[b == zero].any()
    for bad in (INF, -INF, math.nan):
        assert torch.equal(gradient(f.solve, b, torch.where(reached, 1.0, bad).double()), clean)
        g = reached.double()
        g[3, 0] = bad  # reached
        found = gradient(f.solve, b, g)
        assert not torch.isfinite(found[:, 0]).all()
        assert torch.equal(found[:, 1:], clean[:, 1:])
        assert torch.equal(found[7], clean[7])  # which reaches others, and no other reaches it


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("name", ["min-plus", "max-min"])
def test_ties_and_cycles_of_weight_zero(name: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    n, zero = int(rng.integers(1, 50)), float(SEMIRINGS[name].zero)
    potential = rng.integers(0, 5, n) if name == "min-plus" else np.zeros(n, int)
    a = torch.from_numpy(rng.integers(0, 3, (n, n)) + potential - potential[:, None]).double()  # many cycles of weight 0
    a[torch.from_numpy(rng.random((n, n)) < 1 - 2 / n)] = zero
    b = torch.from_numpy(rng.integers(0, 6, (n, 3))).double()
    b[torch.from_numpy(rng.random((n, 3)) < 0.5)] = zero
    f = factor(name, a)
    x, g = f.solve(b), torch.from_numpy(rng.integers(1, 9, (n, 3))).double()
    g = torch.where(x == zero, 0, g)
    found = gradient(f.solve, b, g)
    star = sr.closure(a, SEMIRINGS[name], nonedge=zero)
    ends, weights = f._matrix.origins((b.numpy(),), (x.numpy(),))
    for i, c in np.argwhere((x != zero).numpy()):
        j = ends[i, c]
        walk, end = float(weights[0][i, c]), float(b[j, c])
        assert x[i, c] == (walk + end if name == "min-plus" else min(walk, end))
        assert walk == star[i, j] or (name == "max-min" and end <= walk < star[i, j])  # a tie inside ⊗
    assert (ends[(x == zero).numpy()] == -1).all()
    if name == "min-plus":
        assert torch.equal(found.sum(0), g.sum(0))
        h = torch.from_numpy(rng.random((n, 3)))
        at, moved = (f.solve(v).nan_to_num(posinf=0) for v in (b, b + h))
        assert (g * moved).sum() <= (g * at).sum() + (found * h).sum() + 1e-9  # x is concave in b


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("spread", [3, 60, 300, 3000, 1e5])
@pytest.mark.parametrize("name", EXPONENTIAL)
def test_wide_ranges(name: str, spread: float, dtype: Any) -> None:
    s, rng = EXPONENTIAL[name], torch.Generator().manual_seed(0)
    a = (-spread * (1 + torch.rand(9, 9, generator=rng, dtype=torch.float64)) / s).to(dtype)
    a[2, 4:] = a[:, 6] = a[7] = -INF * s
    b = (spread * torch.randn(9, 3, generator=rng, dtype=torch.float64) / s).to(dtype)
    b[7] = -INF * s
    g = torch.randn(9, 3, generator=rng, dtype=torch.float64).to(dtype)
    exponents = s * sr.closure(a.double(), SEMIRINGS[name])[:, :, None] + s * b.double()
    total = exponents.logsumexp(1, keepdim=True)
    share = torch.where(total > -INF, torch.exp(exponents - total), 0)
    found = gradient(factor(name, a).solve, b, g)
    tolerance = 8 * torch.finfo(dtype).eps * max(1, spread)
    torch.testing.assert_close(found.double(), (share * g.double()[:, None]).sum(0), rtol=tolerance, atol=tolerance)
    for huge in (1e30, 1e-30):
        torch.testing.assert_close(gradient(factor(name, a).solve, b, g * huge), found * huge, rtol=1e-4, atol=huge * 8 * tolerance)


@pytest.mark.parametrize("name", SEMIRINGS)
@pytest.mark.parametrize("shape", [(0,), (0, 2), (3, 0), (1,), (1, 2)])
def test_few(name: str, shape: tuple[int, ...]) -> None:
    b = right(*shape)
    x = factor(name, graph(name, shape[0], density=1)).solve(b)
    x.sum().backward()
    assert x.shape == b.grad.shape == shape


def test_structured_elements() -> None:
    rng = np.random.default_rng(0)
    f = sr.factor((rng.random((6, 6)), np.ones((6, 6))), sr.DISTANCE_HOPS)
    b = right(6, 2), right(6, 2, seed=2)
    assert check(lambda *b: f.solve(b), b, check_batched_grad=True)
    found = f.solve((b[0], np.zeros((6, 2))))
    (found[0].sum() + found[1].sum()).backward()
    assert b[0].grad.sum() == 12
    assert b[1].grad is None


def test_potentials_of_cycles_that_rounding_makes_improve() -> None:
    rng = np.random.default_rng(3)
    p = rng.random(40)
    a = torch.from_numpy(p - p[:, None])  # all cycles have weight 0, up to rounding
    f, b = sr.factor(a), right(40, 2)
    found = gradient(f.solve, b, torch.ones(40, 2, dtype=torch.float64))
    best = (b.detach() + torch.from_numpy(p)[:, None]).argmin(0)
    assert found[best, [0, 1]].tolist() == [40, 40]
    assert found.sum() == 80


def test_rounding_that_hides_best_edges(monkeypatch: pytest.MonkeyPatch) -> None:
    searched, search = list[Any](), Factorization._tree_edges

    def watched(self: Factorization, offers: Any) -> Any:
        searched.append(offers)
        return search(self, offers)

    monkeypatch.setattr(Factorization, "_tree_edges", watched)
    for seed in (14, 108, 118, 170, 186, 218, 298, *range(100)):  # rounding depends on the order of elimination, and this on the machine
        rng = np.random.default_rng(seed)
        n = int(rng.integers(3, 60))
        p = rng.random(n) * 10.0 ** rng.integers(-2, 4)
        a = p - p[:, None]  # all cycles have weight 0, up to rounding
        a = np.where(rng.random((n, n)) < 3 / n, a, INF) if seed % 3 else a
        b = torch.from_numpy(rng.random((n, 2))).requires_grad_()
        with contextlib.suppress(sr.NegativeCycleError):
            f = sr.factor(a)
            x = f.solve(b)
            found = torch.autograd.grad(x.sum(), b)[0]
            ends, weights = f._matrix.origins((b.detach().numpy(),), (x.detach().numpy(),))
            np.testing.assert_allclose(weights[0] + b.detach().numpy()[ends, [0, 1]], x.detach(), atol=1e-12 * p.max())
            assert (found.sum(0) == n).all()
            assert (found == (torch.from_numpy(ends)[None] == torch.arange(n)[:, None, None]).sum(1)).all()
        if len(searched) > 5:
            return
    raise AssertionError("no rounding hid a best edge")


@pytest.mark.parametrize("create_graph", [False, True])
@pytest.mark.parametrize(("name", "kept"), [("min-plus", False), ("plus-times", False), ("max-times", True), ("log", True)])
def test_changes_in_place_after_the_solution(name: str, kept: bool, create_graph: bool) -> None:
    f, b = factor(name, graph(name, 7)), right(7, 2)
    g = torch.arange(14.0, dtype=torch.float64).reshape(7, 2).requires_grad_()
    expected, own = gradient(f.solve, b, g), b.detach().clone().requires_grad_()
    changed = own * 1
    x = f.solve(changed)
    changed.mul_(-3)
    if kept:
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            torch.autograd.grad(x, own, g)
        return
    found = torch.autograd.grad(x, own, g, create_graph=create_graph)[0]
    assert torch.equal(found, expected)
    if create_graph:
        assert torch.equal(
            torch.autograd.grad(found.pow(2).sum(), g)[0], 2 * f.solve(expected) if name == "plus-times" else 2 * through(x, own, expected)
        )


def through(x: Any, b: Any, v: Any) -> Any:
    """Multiply the Jacobian of x by b with a vector, row by row."""
    rows = [torch.autograd.grad(entry, b, retain_graph=True)[0] for entry in x.flatten()]
    return torch.stack([(row * v).sum() for row in rows]).reshape(x.shape)


def test_pivoting() -> None:
    pytest.importorskip("scipy")
    a = torch.from_numpy(np.random.default_rng(0).normal(size=(60, 60)))
    a.fill_diagonal_(1 - 1e-13)  # a first pivot near 1, without which no digit would be lost
    f, b = factor("plus-times", a), right(60, 2)
    assert f._matrix._pivoted() is not None
    g = torch.arange(120.0, dtype=torch.float64).reshape(60, 2)
    torch.testing.assert_close(gradient(f.solve, b, g), gradient(lambda b: naive("plus-times", a, b), b, g), rtol=1e-9, atol=1e-9)


def test_vmap_without_a_gradient() -> None:
    vmap, lengths = torch.func.vmap, np.array([[0, 3, 9], [8, 0, 2], [1, 7, 0]])
    stack = torch.tensor([[[1, 2], [3, 4], [5, 6]], [[9, 1], [9, 1], [0, 0]]])
    for f in (sr.factor(lengths), sr.factor(lengths.astype(float))):
        for b in (stack, stack.int(), stack.double(), stack.float()):
            found = vmap(f.solve)(b)
            expected = torch.stack([torch.as_tensor(f.solve(part)) for part in b])
            assert found.dtype == expected.dtype
            assert torch.equal(found, expected)
    with pytest.raises(sr.DTypeError, match=r"b\[0.*\] is 0.5, which int64 cannot hold"):
        vmap(sr.factor(lengths).solve)(stack / 2)
    f, pair = sr.factor((np.ones((3, 3)), np.ones((3, 3))), sr.DISTANCE_COUNT), (stack.double(), stack.double())
    for x, parts in zip(vmap(lambda *b: f.solve(b))(*pair), zip(*map(f.solve, zip(*pair, strict=True)), strict=True), strict=True):
        assert torch.equal(x, torch.stack(parts))
    with pytest.raises(sr.GraphError, match="this ⊕; it has to select"):
        torch.func.jvp(lambda *b: f.solve(b), *[tuple(x[0] for x in pair)] * 2)


@pytest.mark.parametrize("kind", [list, tuple])
def test_rows_of_tensors(kind: Any) -> None:
    f, b = factor("min-plus", graph("min-plus", 3)), right(3, 2)
    rows = b[0], b[1].detach(), b[2].detach().numpy()
    x = f.solve(kind(rows))
    assert torch.equal(x, f.solve(b))
    assert torch.equal(torch.autograd.grad(x.sum(), b)[0][0], gradient(f.solve, b, torch.ones_like(b))[0])
    assert torch.equal(f.solve(kind([b[0, 0], 0.1, 0.2])), f.solve(torch.tensor([b[0, 0].item(), 0.1, 0.2], dtype=torch.float64)))
    with pytest.raises(sr.ShapeError, match=r"shape \(3,\) or \(3, k\)"):
        f.solve(kind(rows[:2]))


def test_updates() -> None:
    for name in ("min-plus", "log", "plus-times"):
        a = graph(name, 5, density=1)
        f, b = factor(name, a), right(5)
        expected = gradient(factor(name, a).solve, b, torch.ones(5, dtype=torch.float64))
        x = f.solve(b)
        f.update((2 * a if name == "log" else a / 2).numpy())
        if name == "min-plus":
            assert torch.equal(torch.autograd.grad(x.sum(), b)[0], expected)
        else:
            with pytest.raises(sr.GraphError, match=r"updated after the solution; take the gradient before f\.update"):
                x.sum().backward()
        assert not torch.equal(gradient(f.solve, b, torch.arange(5.0).double()), expected)


def test_tensors_without_a_gradient() -> None:
    f = sr.factor(sr.edges([("home", "north", 3.0), ("home", "south", 9.0)]))
    b = torch.tensor([INF, 5.0, 1.0], requires_grad=True)
    x = f.solve(b)
    assert (x.dtype, x.tolist()) == (torch.float64, [8, 5, 1])
    x.backward(torch.tensor([2.0, 3.0, 4.0]))
    assert (b.grad.dtype, b.grad.tolist()) == (torch.float32, [0, 5, 4])
    with torch.no_grad():
        assert torch.equal(f.solve(b), x)
    for plain in (b.detach(), torch.tensor([2**31 - 1, 5, 1], dtype=torch.int32)):
        assert torch.equal(f.solve(plain), x)
    assert isinstance(f.solve(b.detach().numpy()), np.ndarray)
    assert f.solve(b.bfloat16()).dtype == torch.float64


def test_refusals() -> None:
    a, b = graph("min-plus", 3), right(3)
    f = sr.factor(a)
    with pytest.raises(sr.GraphError, match=r"a factor does not propagate; pass \.detach.*apsp or closure with the dense tensor"):
        sr.factor(a.requires_grad_())
    with pytest.raises(sr.GraphError, match=r"requires a gradient.*detach"):
        f.update(a)
    for shape in ((2,), (3, 1, 1), ()):
        with pytest.raises(sr.ShapeError, match=r"shape \(3,\) or \(3, k\)"):
            f.solve(right(*shape))
    with pytest.raises(sr.DomainError, match=r"b\[1.*nan"):
        f.solve(torch.tensor([0, math.nan, 0]).requires_grad_())
    with pytest.raises(sr.DTypeError, match="float64 for a factor of int64; both have to be floats"):
        sr.factor(np.ones((3, 3), int)).solve(b)
    with pytest.raises(sr.GraphError, match="this ⊕; it has to select"):
        sr.factor((np.ones((3, 3)), np.ones((3, 3))), sr.DISTANCE_COUNT).solve((b, b))
    scaled = sr.Semiring("scaled", lambda a, b: a + b, lambda a, b: 2 * a * b, 0, 0.5, star=lambda a: 0.25 / (0.5 - a))
    with pytest.raises(sr.GraphError, match="another ⊗ than a product"):
        sr.factor(np.full((3, 3), 0.01), scaled).solve(b)
    for wrong in (b, (b,), [b, b], (b, b, b)):
        with pytest.raises(sr.GraphError, match="b over distance-hops are a tuple of 2 arrays"):
            sr.factor((np.ones((3, 3)), np.ones((3, 3))), sr.DISTANCE_HOPS).solve(wrong)
