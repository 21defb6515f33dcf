"""Closures within functions that JAX traces: derivatives against naive eliminations and inverses, and PyTorch's gradients."""

from __future__ import annotations

import functools
import math
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import semiring as sr
from tests.face.derivatives import DUAL, EINSTEIN, INF, SOFT_CLOSED, alike, distinct

jax = pytest.importorskip("jax")
check_grads = pytest.importorskip("jax.test_util").check_grads
jnp = jax.numpy
pytestmark = pytest.mark.jax


SELECTIVE: dict[str, tuple[sr.Semiring, Any, Any]] = {
    "min-plus": (sr.MIN_PLUS, jnp.minimum, jnp.add),
    "max-plus": (sr.MAX_PLUS, jnp.maximum, jnp.add),
    "max-times": (sr.MAX_TIMES, jnp.maximum, jnp.multiply),
    "max-min": (sr.MAX_MIN, jnp.maximum, jnp.minimum),
    "einstein": (EINSTEIN, jnp.maximum, lambda x, y: x * y / (2 - (x + y - x * y))),
}
"""Semirings with ⊕ and ⊗ on arrays."""
EXPONENTIAL = {"log": (sr.LOG, 1), "soft-min": (SOFT_CLOSED, -2)}
SEMIRINGS = {**{name: s for name, (s, *_) in (SELECTIVE | EXPONENTIAL).items()}, "plus-times": sr.PLUS_TIMES}
SMOOTH = ["log", "soft-min", "plus-times"]
BY_TURNS = [*[(name, i % 2 == 0) for i, name in enumerate(SEMIRINGS)], ("max-times", False), ("einstein", False)]
"""Each semiring with or without the empty path: the compiler of JAX takes seconds for each. Some ⊗ whose operands are read have both."""


@pytest.fixture(autouse=True)
def wide() -> Iterator[None]:
    with jax.enable_x64(True):
        yield


def weights(name: str, *shape: int, seed: int = 0, dtype: Any = np.float64) -> Any:
    """Numbers in (0.1, 1), no two alike, as weights whose cycles converge."""
    x = 0.1 + 0.9 * distinct(*shape, seed=seed)
    if name == "max-plus":
        x = -x
    if name == "plus-times":
        x = x / (1.5 * shape[-1])
    if name in EXPONENTIAL:
        x = (x - 2 - math.log(shape[-1])) / EXPONENTIAL[name][1]
    return jnp.asarray(x.astype(dtype))


def naive(name: str, a: Any, reflexive: bool = True) -> Any:
    """Close by an elimination or an inverse."""
    n = a.shape[-1]
    eye = jnp.eye(n, dtype=a.dtype)
    if name == "plus-times":
        return jnp.linalg.inv(eye - a) - (0 if reflexive else eye)
    if name in EXPONENTIAL:
        scale = EXPONENTIAL[name][1]
        found = jnp.linalg.inv(eye - jnp.exp(scale * a))
        return jnp.log(found if reflexive else found @ jnp.exp(scale * a)) / scale
    semiring, add, mul = SELECTIVE[name]
    for k in range(n):
        others = np.arange(n) != k
        a = jnp.where(others[:, None] & others, add(a, mul(a[..., :, k, None], a[..., None, k, :])), a)
    return jnp.where(eye == 1, float(semiring.one), a) if reflexive else a


def closed(name: str, **options: Any) -> Callable[[Any], Any]:
    return lambda a: sr.closure(a, SEMIRINGS[name], **options)


def weighed(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A sum of different multiples of all finite elements."""

    def total(a: Any) -> Any:
        found = function(a)
        factors = 1 + np.arange(found.size).reshape(found.shape) % 7
        return (factors * jnp.where(jnp.isinf(found), 0, found)).sum()

    return total


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("name", "reflexive"), BY_TURNS)
def test_against_a_naive_closure(name: str, reflexive: bool) -> None:
    a, x = weights(name, 2, 4, 4), weights("min-plus", 2, 4, 4, seed=1)

    def everything(function: Callable[[Any], Any]) -> Callable[..., Any]:
        def found(a: Any, x: Any) -> Any:
            total = weighed(function)
            stacks = jax.vmap(jax.value_and_grad(total), 1)(jnp.moveaxis(a, 0, 1))
            looped = jax.lax.map(jax.grad(total), a)
            return jax.jvp(total, (a,), (x,)), jax.grad(total)(a), jax.jacrev(function)(a[0]), stacks, looped

        return found

    expected = jax.jit(everything(lambda a: naive(name, a, reflexive)))(a, x)
    alike(jax.jit(everything(closed(name, reflexive=reflexive)))(a, x), expected)


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("n", "dtype"), [(0, np.float64), (1, np.float32), (31, np.float64), (33, np.float32)])
@pytest.mark.parametrize("name", ["min-plus", "max-times", "log", "plus-times"])
def test_sizes(name: str, n: int, dtype: Any) -> None:
    a = weights(name, 2, n, n, dtype=dtype) if n else jnp.zeros((2, 0, 0), dtype)
    a = jnp.where(np.random.default_rng(1).random(a.shape) < 0.7, float(SEMIRINGS[name].zero), a)
    for reflexive in (True, False):
        torch, function = pytest.importorskip("torch"), closed(name, reflexive=reflexive)
        alike(jax.jit(function)(a), function(np.asarray(a)), 0)
        parameter = torch.tensor(np.asarray(a), requires_grad=True)
        values = function(parameter)
        factors = torch.from_numpy(1 + np.arange(values.numel()).reshape(values.shape) % 7)
        (factors * values.masked_fill(values.isinf(), 0)).sum().backward()
        expected = parameter.grad.numpy()
        alike(jax.jit(jax.grad(weighed(function)))(a), expected, 1e-4 if dtype == np.float32 else 1e-9)


@pytest.mark.exhaustive
@pytest.mark.parametrize(("name", "reflexive"), [turn for turn in BY_TURNS if turn[0] in ("einstein", *SMOOTH)])
def test_differences(name: str, reflexive: bool) -> None:
    a, total = weights(name, 4, 4), weighed(closed(name, reflexive=reflexive))
    check_grads(jax.jit(total), (a,), 2 if name in SMOOTH else 1, modes=["fwd", "rev"], atol=1e-4, rtol=1e-4, eps=1e-5)


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", ["max-times", *SMOOTH])
def test_second_derivatives(name: str) -> None:
    a = weights(name, 3, 3)

    def hessian(function: Callable[[Any], Any]) -> Any:
        return jax.jit(jax.hessian(lambda a: (weighed(function)(a)) ** 2))(a)

    for reflexive in (True, False):
        expected = hessian(functools.partial(naive, name, reflexive=reflexive))
        alike(hessian(closed(name, reflexive=reflexive)), expected, 1e-7)


def test_ties_and_cycles_without_weight() -> None:
    """The gradient follows the trees of PyTorch's gradient, also where many paths tie and cycles weigh 0."""
    torch, rng = pytest.importorskip("torch"), np.random.default_rng(0)
    for n in (6, 17):
        a = np.where(rng.random((3, n, n)) < 0.4, rng.integers(0, 2, (3, n, n)).astype(float), INF)
        for reflexive in (True, False):
            function = closed("min-plus", reflexive=reflexive)
            parameter = torch.tensor(a, requires_grad=True)
            found = function(parameter)
            found[found.isfinite()].sum().backward()
            gradient = jax.jit(jax.grad(lambda a, f=function: (lambda d: jnp.where(jnp.isinf(d), 0, d).sum())(f(a))))(a)
            np.testing.assert_array_equal(gradient, parameter.grad)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("reflexive", [True, False])
@pytest.mark.parametrize("name", ["min-plus", "max-times", "log", "soft-min"])
def test_unreachable_pairs_pass_nothing(name: str, reflexive: bool) -> None:
    zero = float(SEMIRINGS[name].zero)
    a = weights(name, 6, 6).at[:3, 3:].set(zero).at[5].set(zero)
    function = closed(name, reflexive=reflexive)
    reached = np.asarray(function(a)) != zero
    pull = jax.jit(lambda g: jax.vjp(function, a)[1](g)[0])
    for bad in (INF, math.nan):
        found = pull(jnp.where(reached, 1.0, bad))
        assert np.isfinite(found).all()
        assert np.array_equal(found, pull(jnp.asarray(reached.astype(float))))
        assert not found[:3, 3:].any()
    pushed = jax.jvp(function, (a,), (jnp.full_like(a, 2.0),))[1]
    assert not pushed[~reached].any()


def test_the_empty_path_has_no_gradient() -> None:
    a = weights("min-plus", 4, 4)
    diagonal = jax.grad(lambda a: jnp.trace(sr.apsp(a)))(a)
    assert not diagonal.any()
    cycles = jax.grad(lambda a: jnp.trace(sr.closure(a, sr.MIN_PLUS, reflexive=False)))(a)
    assert cycles.sum() >= 4


def _then(first: Callable[[Any], Any], second: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda a: second(first(a))


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", ["min-plus", "log"])
def test_sources_and_targets(name: str) -> None:
    a = weights(name, 2, 6, 6)
    whole = closed(name)
    choices: list[tuple[Any, Any, Callable[[Any], Any]]] = [
        (2, None, lambda v: v[:, 2]),
        ([4, 1, 4], None, lambda v: v[:, [4, 1, 4]]),
        (None, np.array([5, 0]), lambda v: v[:, :, [5, 0]]),
        ([3, 0], 1, lambda v: v[:, [3, 0], 1]),
        (0, 5, lambda v: v[:, 0, 5]),
        ([], None, lambda v: v[:, :0]),
    ]
    for sources, targets, part in choices:
        some = closed(name, sources=sources, targets=targets)
        alike(jax.jit(some)(a), sr.closure(np.asarray(a), SEMIRINGS[name], sources=sources, targets=targets))
        alike(jax.jit(jax.grad(weighed(some)))(a), jax.grad(weighed(_then(whole, part)))(a))
    cycles = {"sources": [3, 1], "reflexive": False}
    expected = jax.grad(weighed(lambda a: closed(name, reflexive=False)(a)[:, [3, 1]]))(a)
    alike(jax.jit(jax.grad(weighed(closed(name, **cycles))))(a), expected)


@pytest.mark.parametrize("nonedge", [0.0, math.nan, -1])
def test_entries_for_no_edge(nonedge: float) -> None:
    for name in ("min-plus", "log"):
        a = weights(name, 5, 5)
        some = a.at[:2, 2:].set(nonedge).at[3, 1].set(nonedge)
        missing = a.at[:2, 2:].set(SEMIRINGS[name].zero).at[3, 1].set(SEMIRINGS[name].zero)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            found = jax.jit(jax.value_and_grad(weighed(closed(name, nonedge=nonedge))))(some)
        alike(found, jax.value_and_grad(weighed(closed(name)))(missing))
        assert not found[1][:2, 2:].any()
    whole = jnp.asarray([[0, 3, 0], [0, 0, 4], [0, 0, 0]])
    expected = sr.apsp(np.asarray(whole), nonedge=0)
    assert jax.jit(lambda a: sr.apsp(a, nonedge=np.int64(0)))(whole).tolist() == expected.tolist()
    reached = sr.transitive_closure(np.array([[INF, 0.0], [INF, INF]]), nonedge=INF)  # 0 is an edge
    assert jax.jit(lambda a: sr.transitive_closure(a, nonedge=INF))(jnp.asarray([[INF, 0.0], [INF, INF]])).tolist() == reached.tolist()


def test_structured_elements() -> None:
    hops = weights("min-plus", 2, 5, 5), jnp.ones((5, 5))
    found = jax.jit(jax.vmap(lambda d, h: sr.closure((d, h), sr.DISTANCE_HOPS), (0, None)))(*hops)
    alike(found, sr.closure((hops[0], jnp.stack([hops[1]] * 2)), sr.DISTANCE_HOPS))
    torch, d, e = pytest.importorskip("torch"), weights("max-times", 6, 6), weights("min-plus", 6, 6, seed=1)
    for semiring in (sr.DISTANCE_HOPS, DUAL):

        def total(d: Any, e: Any, semiring: Any = semiring) -> Any:
            x, y = sr.closure((d, e), semiring, reflexive=False)
            return (x * y + 3 * y).sum()

        tensors = [torch.tensor(np.asarray(v), requires_grad=True) for v in (d, e)]
        total(*tensors).backward()
        for x, y in zip(jax.jit(jax.grad(total, (0, 1)))(d, e), tensors, strict=True):
            np.testing.assert_allclose(x, y.grad, rtol=1e-10)
        check_grads(jax.jit(total), (d, e), 1, modes=["fwd", "rev"], atol=1e-4, rtol=1e-4)
    counts = jax.jit(lambda d: sr.closure((d, jnp.ones_like(d)), sr.DISTANCE_COUNT))(d)  # ⊕ without a derivative
    alike(counts, sr.closure((d, jnp.ones_like(d)), sr.DISTANCE_COUNT))


def test_dtypes() -> None:
    half = weights("min-plus", 5, 5, dtype=np.float16)
    found, gradient = jax.jit(jax.value_and_grad(lambda a: sr.apsp(a).sum()))(half)
    assert (found.dtype, gradient.dtype) == (np.float32, np.float16)
    for dtype in (np.int8, np.int32, np.int64):
        whole = jnp.asarray(np.random.default_rng(0).integers(1, 9, (2, 6, 6)), dtype)
        alike(jax.jit(sr.apsp)(whole), sr.apsp(np.asarray(whole)))
    truths = np.random.default_rng(0).random((2, 20, 20)) < 0.08
    for reflexive in (True, False):
        found = jax.jit(lambda a, r=reflexive: sr.transitive_closure(a, reflexive=r))(truths)
        alike(found, sr.transitive_closure(truths, reflexive=reflexive))
    with jax.enable_x64(False), pytest.raises(sr.DTypeError, match="jax_enable_x64"):
        jax.jit(lambda a: sr.apsp(np.ones((2, 2))) + sr.closure((a, np.ones((2, 2))), sr.DISTANCE_HOPS)[0])(jnp.ones((2, 2), np.float32))


def test_without_jit_and_in_loops() -> None:
    a = weights("min-plus", 5, 5)
    with jax.disable_jit():
        alike(jax.grad(weighed(sr.apsp))(a), jax.grad(weighed(lambda a: naive("min-plus", a)))(a))

    def walked(a: Any) -> Any:
        return jax.lax.fori_loop(0, 3, lambda _, d: sr.apsp(d * 0.9), a)

    alike(jax.jit(walked)(a), naive("min-plus", naive("min-plus", naive("min-plus", a * 0.9) * 0.9) * 0.9))


def test_semirings_of_one_name() -> None:
    """Semirings that differ in the star or the carrier alone have two closures, with the same numbers in each process."""
    code = (
        "import semiring as sr; from semiring.execution import traced, traced_closure; from semiring.planning.options import Options; "
        "number = traced._asked.number; "
        "print([number(traced_closure._Closure(s, Options(), r, False)) for s in (sr.LOG, sr.MIN_PLUS) for r in (True, False)])"
    )
    first, second = (subprocess.check_output([sys.executable, "-c", code], text=True) for _ in range(2))
    assert first == second
    assert len(set(first.split())) == 4
    add, mul = (lambda a, b: a + b), (lambda a, b: a * b)
    own = [sr.Semiring("own", add, mul, 0, 1, star=star) for star in (lambda a: 1 / (1 - a), None)]
    closures = [jax.jit(lambda a, s=s: sr.closure(a, s)) for s in own]
    assert closures[0](jnp.full((1, 1), 0.5)).item() == 2
    with pytest.raises(jax.errors.JaxRuntimeError, match="DivergenceError"):
        closures[1](jnp.full((1, 1), 0.5)).block_until_ready()
    within = [sr.Semiring("within", min, lambda a, b: a + b, INF, 0, domain=domain) for domain in ((0, INF), (-5, INF))]
    found = [jax.jit(lambda a, s=s: sr.closure(a, s, reflexive=False)) for s in within]
    a = jnp.asarray([[INF, -1.0], [INF, INF]])
    assert found[1](a)[0, 1] == -1
    with pytest.raises(jax.errors.JaxRuntimeError, match="DomainError"):
        found[0](a).block_until_ready()


def test_errors() -> None:
    a = weights("min-plus", 3, 3)
    refused: list[tuple[str, Any]] = [
        ("paths", True),
        ("limit", 3),
        ("k", 2),
        ("node_weight", np.ones(3)),
        ("dtype", float),
        ("overwrite", True),
    ]
    for name, value in refused:
        with pytest.raises(sr.GraphError, match=f"JAX is tracing a function, in which closures do not take {name}=; leave it out"):
            jax.jit(lambda a, o={name: value}: sr.apsp(a, **o))(a)
    with pytest.raises(sr.GraphError, match="do not take paths="):
        jax.jit(lambda a: sr.closure(a, sr.TROPICAL_ARGMIN))(a)
    with pytest.raises(sr.GraphError, match="a closure computes on the CPU; device is 'cuda'"):
        jax.jit(lambda a: sr.apsp(a, device="cuda"))(a)
    with pytest.raises(sr.GraphError, match="the graph is a list; pass an array of JAX or NumPy"):
        jax.jit(lambda a: sr.apsp([a, a]))(a)
    with pytest.raises(sr.GraphError, match="nonedge depends on its arguments"):
        jax.jit(lambda a: sr.apsp(a, nonedge=a[0, 0]))(a)
    with pytest.raises(sr.GraphError, match="no vertex 7"):
        jax.jit(lambda a: sr.apsp(a, sources=7))(a)
    with pytest.raises(sr.ShapeError, match="square matrix"):
        jax.jit(sr.apsp)(a[:2])
    with pytest.raises(sr.GraphError, match=r"JAX takes a derivative, but no gradient passes through closures over this ⊕.*stop_gradient"):
        jax.grad(lambda a: sr.closure((a, a), sr.DISTANCE_COUNT)[0].sum())(a)
    with pytest.raises(sr.DTypeError, match="the graph has dtype int64; convert the graph"):
        jax.grad(lambda a: sr.closure((a, jnp.ones((3, 3), int)), sr.DISTANCE_HOPS)[0].sum())(a)
    with pytest.raises(jax.errors.JaxRuntimeError, match="NegativeCycleError"):
        jax.jit(sr.apsp)(-a).block_until_ready()
    with pytest.raises(jax.errors.JaxRuntimeError, match="DivergenceError"):
        jax.jit(closed("log"))(jnp.ones((2, 2))).block_until_ready()
    alike(jax.jit(sr.apsp)(a), sr.apsp(a))
