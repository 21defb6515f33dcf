"""Products within functions that JAX traces: values and derivatives against JAX's own, through arrays of all terms."""

from __future__ import annotations

import functools
import math
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import semiring as sr
from semiring.algorithms import tangents
from tests.face.derivatives import INF, SHARED, SKEWED, SOFT, alike

jax = pytest.importorskip("jax")
check_grads = pytest.importorskip("jax.test_util").check_grads
jnp = jax.numpy
pytestmark = pytest.mark.jax


TERMS: dict[str, tuple[sr.Semiring, Callable[[Any, Any], Any], Callable[[Any], Any]]] = {
    "min-plus": (sr.MIN_PLUS, lambda x, y: x + y, lambda t: t.min(-2)),
    "max-times": (sr.MAX_TIMES, lambda x, y: x * y, lambda t: t.max(-2)),
    "max-min": (sr.MAX_MIN, jnp.minimum, lambda t: t.max(-2)),
    "skewed": (SKEWED, lambda x, y: x * y / (1 + y), lambda t: t.max(-2)),
    "log": (sr.LOG, lambda x, y: x + y, lambda t: jax.nn.logsumexp(t, -2)),
    "soft-min": (SOFT, lambda x, y: x + y, lambda t: -jax.nn.logsumexp(-2 * t, -2) / 2),
    "plus-times": (sr.PLUS_TIMES, lambda x, y: x * y, lambda t: t.sum(-2)),
    "shared": (SHARED, lambda x, y: jnp.minimum(x, 2 * y), lambda t: t.sum(-2)),
}
"""Semirings with ⊗ and ⊕ on arrays of all terms."""
EXPONENTIAL = {"log": 1, "soft-min": -2}
SHAPES = [((2, 1, 3, 4), (3, 4, 2)), ((4,), (4, 3)), ((3, 4), (4,)), ((4,), (4,)), ((4,), (2, 4, 3)), ((1, 1), (1, 1))]


@pytest.fixture(params=["float32", "float64"])
def dtype(request: pytest.FixtureRequest) -> Iterator[Any]:
    with jax.enable_x64(request.param == "float64"):
        yield np.dtype(request.param)


@pytest.fixture
def wide() -> Iterator[None]:
    with jax.enable_x64(True):
        yield


def numbers(*shape: int, seed: int = 0, dtype: Any = np.float64) -> Any:
    """Positive numbers, no two alike."""
    rng, size = np.random.default_rng(seed), math.prod(shape)
    return jnp.asarray((rng.permutation(np.arange(1, size + 1) + rng.random(size) / 2).reshape(shape) / 7).astype(dtype))


def naive(name: str, a: Any, b: Any) -> Any:
    _, mul, add = TERMS[name]
    x, y = a if a.ndim > 1 else a[None], b if b.ndim > 1 else b[:, None]
    found = add(mul(x[..., :, :, None], y[..., None, :, :]))
    found = found if a.ndim > 1 else found.squeeze(-2)
    return found if b.ndim > 1 else found.squeeze(-1)


def product(name: str) -> Callable[..., Any]:
    return lambda a, b: sr.matmul(a, b, TERMS[name][0])


def summed(function: Callable[..., Any], weight: Any = 1.0) -> Callable[..., Any]:
    return lambda *operands: (weight * function(*operands)).sum()


def gradients(function: Callable[..., Any], *operands: Any, gradient: Any = 1.0) -> Any:
    return jax.jit(jax.grad(summed(function, gradient), tuple(range(len(operands)))))(*operands)


@pytest.mark.sampled(5)
@pytest.mark.parametrize("name", TERMS)
def test_against_all_terms(name: str, dtype: Any) -> None:
    a, b = (numbers(*s, seed=i, dtype=dtype) / 9 for i, s in enumerate([(2, 5, 6), (6, 4)]))
    x, y = numbers(2, 5, 6, seed=2, dtype=dtype), numbers(6, 4, seed=3, dtype=dtype)
    tolerance = 1e-4 if dtype == np.float32 else 1e-11

    def everything(function: Callable[..., Any]) -> Callable[..., Any]:
        def found(a: Any, b: Any, x: Any, y: Any) -> Any:
            pushed = jax.jvp(function, (a, b), (x, y))
            half = jax.jvp(lambda b: function(a, b), (b,), (y,))
            value, pull = jax.vjp(function, a, b)
            of_one = jax.grad(summed(function))(a, b)
            one_by_one = jax.vmap(jax.grad(summed(function, 0.5), (0, 1)), (0, None))(a, b)
            return pushed, half, pull(value), of_one, one_by_one, jax.vmap(function, (None, 1), 2)(a[0], b[:, :, None])

        return found

    alike(jax.jit(everything(product(name)))(a, b, x, y), jax.jit(everything(functools.partial(naive, name)))(a, b, x, y), tolerance)


def test_without_jit(wide: None) -> None:
    a, b = numbers(3, 4), numbers(4, 5, seed=1)
    expected = functools.partial(naive, "min-plus")
    of_a = jax.jit(jax.grad(summed(expected)))(a, b)
    alike(jax.value_and_grad(summed(product("min-plus")))(a, b), (expected(a, b).sum(), of_a))
    value, linear = jax.linearize(product("min-plus"), a, b)
    alike((value, linear(a, b)), jax.jvp(expected, (a, b), (a, b)))
    with jax.disable_jit():
        alike(jax.grad(summed(product("min-plus")))(a, b), of_a)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("shapes", SHAPES, ids=str)
@pytest.mark.parametrize("name", ["max-times", "log"])
def test_shapes(name: str, shapes: tuple[tuple[int, ...], tuple[int, ...]], wide: None) -> None:
    a, b = (numbers(*shape, seed=i) for i, shape in enumerate(shapes))

    def both(function: Callable[..., Any]) -> Any:
        return jax.jit(lambda a, b: (function(a, b), jax.grad(summed(function), (0, 1))(a, b)))(a, b)

    alike(both(product(name)), both(functools.partial(naive, name)))


@pytest.mark.parametrize("name", ["skewed", "soft-min", "shared"])
def test_differences(name: str, wide: None) -> None:
    a, b = numbers(2, 3), numbers(3, 2, seed=1)
    check_grads(jax.jit(product(name)), (a, b), 1, modes=["fwd", "rev"], atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("name", ["max-times", "soft-min", "plus-times"])
def test_second_derivatives(name: str, wide: None) -> None:
    a, b = numbers(2, 3), numbers(3, 2, seed=1)

    def hessian(function: Callable[..., Any]) -> Any:
        cubes = summed(lambda a, b: function(a, b) ** 3)
        return jax.jit(lambda a, b: (jax.jacfwd(jax.jacrev(cubes, (0, 1)), (0, 1))(a, b), jax.jacrev(jax.jacfwd(function))(a, b)))(a, b)

    alike(hessian(product(name)), hessian(functools.partial(naive, name)))


@pytest.mark.parametrize("name", ["max-times", "soft-min"])
def test_unreachable_pairs_pass_nothing(name: str, wide: None) -> None:
    zero = float(TERMS[name][0].zero)
    a, b = numbers(4, 5).at[1].set(zero).at[0, 3].set(zero), numbers(5, 4, seed=1).at[:, 2].set(zero).at[2, 0].set(zero)
    reached = np.ones((4, 4), bool)
    reached[1] = reached[:, 2] = False
    pull = jax.jit(lambda g: jax.vjp(product(name), a, b)[1](g))
    expected = pull(jnp.asarray(reached.astype(float)))
    for bad in (INF, -INF, math.nan):
        found = pull(jnp.where(reached, 1.0, bad))
        assert all(np.isfinite(x).all() and np.array_equal(x, y) for x, y in zip(found, expected, strict=True))
        assert not found[0][1].any()
        assert not found[1][:, 2].any()
    for tangents_given in ((INF, 1.0), (1.0, INF)):
        pushed = jax.jvp(product(name), (a, b), tuple(map(jnp.full_like, (a, b), tangents_given)))[1]
        assert not pushed[~reached].any()


def test_ties_follow_the_witness() -> None:
    a, b = jnp.zeros((2, 3)), jnp.zeros((3, 2))
    of_a, of_b = gradients(product("min-plus"), a, b)
    assert of_a.tolist() == [[2, 0, 0]] * 2
    assert of_b.tolist() == [[2, 2], [0, 0], [0, 0]]
    x = jnp.ones((1, 1))
    assert [v.item() for v in gradients(product("max-min"), x, x)] == [1, 0]  # ⊗ returns its first argument


def test_a_witness() -> None:
    a, b = numbers(3, 4, dtype=np.float32), numbers(4, 2, seed=1, dtype=np.float32)
    expected = sr.matmul(a, b, sr.MIN_PLUS, witness=True)
    for semiring in (sr.TROPICAL_ARGMIN, sr.MIN_PLUS):
        found = jax.jit(lambda a, b, semiring=semiring: sr.matmul(a, b, semiring, witness=True))(a, b)
        assert isinstance(found, sr.Witnessed)
        alike(tuple(found), tuple(expected))
    of_a = jax.jit(jax.grad(lambda a: sr.matmul(a, b, sr.TROPICAL_ARGMIN).values.sum()))(a)
    assert of_a.sum() == 6


@pytest.mark.parametrize("name", ["min-plus", "log", "shared", "plus-times"])
def test_empty(name: str) -> None:
    for m, k, n in ((0, 2, 1), (2, 0, 3), (1, 2, 0), (0, 0, 0)):
        a, b = jnp.ones((m, k)), jnp.ones((k, n))
        value, found = jax.jit(jax.value_and_grad(summed(product(name)), (0, 1)))(a, b)
        assert value == (0 if not m * n else float(TERMS[name][0].zero) * m * n)
        for x, y in zip(found, (a, b), strict=True):
            np.testing.assert_array_equal(x, jnp.zeros_like(y))


@pytest.mark.sampled(6)
@pytest.mark.parametrize("spread", [3, 60, 300])
@pytest.mark.parametrize("name", EXPONENTIAL)
def test_wide_ranges(name: str, spread: float, dtype: Any) -> None:
    """Numbers of three ranges: those of products in the dtype, of products in float64, and of sums term by term."""
    rng, scale = np.random.default_rng(0), EXPONENTIAL[name]
    a, b = ((spread * rng.normal(size=s) / scale).astype(dtype) for s in ((2, 24, 9), (9, 11)))
    a[0, 3, 4:] = a[1, 5] = -INF * scale
    g = rng.normal(size=(2, 24, 11))
    c = sr.matmul(a, b, TERMS[name][0]).astype(np.float64)
    with np.errstate(invalid="ignore", over="ignore"):  # ∞ − ∞ where no term is finite
        exponents = a[..., None].astype(np.float64) + b[..., None, :, :] - c[..., None, :]
        terms = g[..., None, :] * np.exp(scale * np.nan_to_num(exponents, nan=-INF * scale))
    x, y = jnp.asarray(a), jnp.asarray(b)
    tolerance = 8 * np.finfo(dtype).eps * max(1, 8 * spread)
    weight = jnp.asarray(g.astype(dtype))
    for found in (
        gradients(product(name), x, y, gradient=jnp.where(np.isinf(c), 0, 1) * weight),
        jax.jit(lambda x, y: jax.vjp(jax.vmap(product(name), (0, None)), x, y)[1](weight))(x, y),
    ):
        np.testing.assert_allclose(found[0], terms.sum(-1), rtol=tolerance, atol=tolerance)
        np.testing.assert_allclose(found[1], terms.sum(-3).sum(0), rtol=tolerance, atol=tolerance)


def test_a_stack_takes_one_way() -> None:
    """`jax.vmap` keeps the choice by the range a choice; a selection would compute all ways."""
    a, b = numbers(2, 30, 40, dtype=np.float32), numbers(40, 5, seed=1, dtype=np.float32)
    text = str(jax.make_jaxpr(jax.vmap(jax.grad(summed(product("log"))), (0, None)))(a, b))
    assert "cond[" in text


@pytest.mark.parametrize("name", ["min-plus", "log", "shared", "plus-times"])
def test_memory(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    n = 60
    monkeypatch.setattr(tangents, "ENTRIES", 2 * n * n)
    a, b = (numbers(n, n, seed=i, dtype=np.float32) / 1000 for i in range(2))
    traced = jax.make_jaxpr(jax.grad(summed(product(name)), (0, 1)))(a, b)
    assert max(sizes(traced.jaxpr)) <= 2 * n * n
    alike(gradients(product(name), a, b), gradients(functools.partial(naive, name), a, b), 1e-3)


def sizes(jaxpr: Any) -> Iterator[int]:
    """The entries of all arrays of a traced function."""
    for equation in jaxpr.eqns:
        yield from (math.prod(v.aval.shape) for v in equation.outvars if hasattr(v.aval, "shape"))
        for inner in jax.tree.leaves(list(equation.params.values()), is_leaf=lambda v: hasattr(v, "eqns") or hasattr(v, "jaxpr")):
            if hasattr(inner, "eqns") or hasattr(inner, "jaxpr"):
                yield from sizes(getattr(inner, "jaxpr", inner))


def test_structured_elements(wide: None) -> None:
    a, b = [(numbers(*s, seed=i), jnp.ones(s)) for i, s in enumerate([(3, 4), (4, 2)])]

    def both(*parts: Any) -> Any:
        return sr.matmul(parts[:2], parts[2:], sr.DISTANCE_HOPS)

    expected = sr.matmul(a, b, sr.DISTANCE_HOPS)
    alike(jax.jit(both)(*a, *b), expected)
    alike(jax.vmap(both)(*(jnp.stack([x, x]) for x in (*a, *b))), [jnp.stack([x, x]) for x in expected])
    check_grads(jax.jit(both), (*a, *b), 1, modes=["fwd", "rev"], atol=1e-6)
    counts = jax.jit(lambda *parts: sr.matmul(parts[:2], parts[2:], sr.DISTANCE_COUNT))(*a, *b)  # ⊕ without a derivative
    alike(counts, sr.matmul(a, b, sr.DISTANCE_COUNT))


def test_truth_values_and_integers() -> None:
    a = np.random.default_rng(0).random((2, 20, 20)) < 0.1
    for given, semiring in ((a, sr.BOOLEAN), (a.astype(np.int32), sr.PLUS_TIMES), (a.astype(np.int32), sr.MIN_PLUS)):
        x = jnp.asarray(given)
        expected = sr.matmul(x, x, semiring)
        alike(jax.jit(lambda x, semiring=semiring: sr.matmul(x, x, semiring))(x), expected)
        alike(jax.vmap(lambda x, semiring=semiring: sr.matmul(x, x, semiring))(x), expected)
    apart = jnp.asarray([[0, np.iinfo(np.int32).max]], np.int32)  # ∞ stays ∞
    assert jax.jit(lambda x: sr.matmul(x, x.T, sr.MIN_PLUS))(apart).tolist() == [[0]]

    def masked(x: Any) -> Any:  # the mask depends on x, and has no derivative
        reached = sr.matmul(x > 1, x > 1, sr.BOOLEAN)
        return jnp.where(reached, x, 0).sum()

    assert jax.jit(jax.grad(masked))(jnp.full((2, 2), 2.0)).tolist() == [[1, 1], [1, 1]]


def test_dtypes() -> None:
    half = numbers(3, 4, dtype=np.float16)
    found, of_half = jax.jit(jax.value_and_grad(lambda x: sr.matmul(x, x.T, sr.MIN_PLUS).sum()))(half)
    assert (found.dtype, of_half.dtype) == (np.float32, np.float16)  # as outside of JAX's functions
    single = half.astype(np.float32)
    alike(jax.jit(product("min-plus"))(half, np.ones((4, 2), np.float32)), sr.matmul(single, jnp.ones((4, 2)), sr.MIN_PLUS))
    with pytest.raises(sr.DTypeError, match="bfloat16 is not supported; convert to float32"):
        jax.jit(product("min-plus"))(half.astype(jnp.bfloat16), half.T)
    with pytest.raises(sr.DTypeError, match="jax_enable_x64"):
        jax.jit(lambda x: sr.matmul(x, np.ones((4, 2)), sr.MIN_PLUS))(single)
    with jax.enable_x64(True):
        mixed = jax.jit(jax.grad(summed(product("max-times"))))(single, jnp.ones((4, 2), np.float64))
        assert mixed.dtype == np.float32
        assert jax.jit(product("max-times"))(single, np.ones((4, 2))).dtype == np.float64


def test_refused() -> None:
    a = jnp.ones((2, 2))
    refused: list[dict[str, Any]] = [{"c": a}, {"out": np.ones((2, 2))}, {"dtype": "float64"}, {"mask": np.ones((2, 2), bool)}]
    for options in refused:
        with pytest.raises(sr.GraphError, match="JAX is tracing a function, in which matmul takes no c, out"):
            jax.jit(lambda x, options=options: sr.matmul(x, x, sr.MIN_PLUS, **options))(a)
    with pytest.raises(sr.GraphError, match="on the CPU; device is 'cuda'"):
        jax.jit(lambda x: sr.matmul(x, x, sr.MIN_PLUS, device="cuda"))(a)
    for function in (sr.diameter, lambda x: sr.multi_dot([x, x, x], sr.MIN_PLUS), lambda x: sr.matmul(x, x, sr.MIN_PLUS, k=1)):
        with pytest.raises(sr.GraphError, match="JAX is tracing a function, in which only matmul, closures and scan of dense arrays work"):
            jax.jit(function)(a)
    with pytest.raises(sr.GraphError, match="b is a list; pass an array of JAX or NumPy"):
        jax.jit(lambda x: sr.matmul(x, [1.0, 2.0], sr.LOG))(a)
    with pytest.raises(sr.ShapeError, match="do not fit"):
        jax.jit(product("min-plus"))(a, jnp.ones((3, 2)))
    with pytest.raises(sr.ShapeError, match="at least one axis"):
        jax.jit(product("min-plus"))(a, 1.0)
    with pytest.raises(sr.ShapeError, match="a tuple of 2 arrays"):
        jax.jit(lambda x: sr.matmul((x, x), (x,), sr.DISTANCE_HOPS))(a)
    with pytest.raises(sr.LawError, match="no witness"):
        jax.jit(lambda x: sr.matmul(x, x, sr.LOG, witness=True))(a)


def test_without_a_derivative() -> None:
    a = jnp.ones((2, 2))
    with pytest.raises(sr.GraphError, match=r"derivative, but ties of structured elements are not split.*stop_gradient"):
        jax.grad(lambda x: sr.matmul((x, x), (x, x), sr.DISTANCE_HOPS, ties="split")[0].sum())(a)
    whole = jnp.ones((2, 2), np.int32)
    with jax.enable_x64(True), pytest.raises(sr.DTypeError, match=r"takes a derivative, and b has dtype int32; convert b"):
        jax.jit(jax.grad(lambda x: sr.matmul(x, whole, sr.MIN_PLUS).sum()))(a)


def test_errors_within_compiled_functions() -> None:
    compiled = jax.jit(product("min-plus"))
    with pytest.raises(jax.errors.JaxRuntimeError, match=r"DomainError: .*NaN") as caught:
        compiled(jnp.full((2, 2), math.nan), jnp.ones((2, 2))).block_until_ready()
    assert "INVALID_ARGUMENT" in str(caught.value)
    alike(compiled(jnp.ones((2, 2)), jnp.ones((2, 2))), jnp.full((2, 2), 2.0))
    unchecked = jax.jit(lambda a: sr.matmul(a, a, sr.MIN_PLUS, check=False, threads=1))
    unchecked(jnp.full((2, 2), math.nan)).block_until_ready()


@pytest.mark.exhaustive
@pytest.mark.parametrize("entries", [1, 1 << 21])
def test_any_other_sum(entries: int, wide: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """⊕ that is none of the others: terms are computed again, in rows."""
    monkeypatch.setattr(tangents, "ENTRIES", entries)
    either = sr.Semiring("noisy or", lambda a, b: a + b - a * b, lambda a, b: a * b, 0, 1, domain=(0, 1))
    a, b = numbers(2, 3, 5) / 9, numbers(5, 4, seed=1) / 9

    def expected(a: Any, b: Any) -> Any:
        return 1 - (1 - a[..., :, :, None] * b[..., None, :, :]).prod(-2)

    def found(a: Any, b: Any) -> Any:
        return sr.matmul(a, b, either)

    alike(gradients(found, a, b), gradients(expected, a, b))
    check_grads(jax.jit(found), (a, b), 2, modes=["fwd", "rev"], atol=1e-4, rtol=1e-4)
    apart = a.at[:, 1].set(0)  # a pair without a term
    pull = jax.jit(lambda g: jax.vjp(found, apart, b)[1](g))
    for x, y in zip(pull(jnp.full((2, 3, 4), 1.0).at[:, 1].set(math.nan)), pull(jnp.full((2, 3, 4), 1.0)), strict=True):
        assert np.isfinite(x).all()
        alike(x, y)


@pytest.mark.exhaustive
def test_counts_of_shortest_paths(wide: None) -> None:
    torch = pytest.importorskip("torch")
    a, b = (np.round(numbers(*s, seed=i) / 2) for i, s in enumerate([(3, 6), (6, 4)]))
    given = [np.asarray(x) for x in (a, 1 + a / 9, b, 2 + b / 9)]

    def weighed(distance: Any, count: Any) -> Any:
        return (3 * distance + distance * count).sum()

    tensors = [torch.tensor(x, requires_grad=True) for x in given]
    weighed(*sr.matmul(tuple(tensors[:2]), tuple(tensors[2:]), sr.DISTANCE_COUNT)).backward()
    found = jax.jit(jax.grad(lambda *x: weighed(*sr.matmul(x[:2], x[2:], sr.DISTANCE_COUNT)), (0, 1, 2, 3)))(*given)
    for x, y in zip(found, tensors, strict=True):
        np.testing.assert_allclose(x, y.grad, rtol=1e-12)


@pytest.mark.parametrize("entries", [1, 1 << 21])
def test_ties_that_are_split(entries: int, wide: None, monkeypatch: pytest.MonkeyPatch) -> None:
    torch = pytest.importorskip("torch")
    monkeypatch.setattr(tangents, "ENTRIES", entries)
    rng = np.random.default_rng(0)
    for semiring in (sr.MIN_PLUS, sr.MAX_TIMES, sr.MAX_MIN):
        a, b, g = rng.integers(0, 3, (2, 4, 6)).astype(float), rng.integers(0, 3, (6, 5)).astype(float), rng.random((2, 4, 5))
        x, y = (torch.tensor(v, requires_grad=True) for v in (a, b))
        (sr.matmul(x, y, semiring, ties="split") * torch.tensor(g)).sum().backward()
        found = gradients(lambda a, b, s=semiring: sr.matmul(a, b, s, ties="split"), a, b, gradient=g)
        np.testing.assert_allclose(found[0], x.grad, rtol=1e-12)
        np.testing.assert_allclose(found[1], y.grad, rtol=1e-12)


def test_a_gpu_is_refused_before_it_computes() -> None:
    traced = jax.jit(product("min-plus")).trace(jnp.ones((2, 2)), jnp.ones((2, 2)))
    with pytest.raises(sr.GraphError, match=r"on the CPU alone; on a GPU, call it outside of jax\.jit"):
        traced.lower(lowering_platforms=("cuda",))


def test_threads_and_loops() -> None:
    """Compiled functions run at once in several threads, with two products in one function, and products in loops."""
    a, b = (numbers(40, 40, seed=i, dtype=np.float32) for i in range(2))
    multiply = product("min-plus")

    def steps(a: Any, b: Any) -> Any:
        scanned = jax.lax.scan(lambda c, _: (multiply(c, b), None), a, None, length=5)[0]
        return scanned, jax.lax.fori_loop(0, 5, lambda _, c: multiply(c, b), a), multiply(a, b) + multiply(b, a)

    compiled = jax.jit(steps)
    x, y = np.asarray(a), np.asarray(b)
    walked = functools.reduce(multiply, [y] * 5, x)
    expected = (walked, walked, multiply(x, y) + multiply(y, x))
    errors: list[BaseException] = []

    def work() -> None:
        try:
            for _ in range(10):
                found = compiled(a, b)
                sr.matmul(found[0], found[1], sr.MIN_PLUS)  # reads results by DLPack, maybe before XLA has computed them
                alike(found, expected, 1e-6)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    work()
    for thread in threads:
        thread.join(120)
    assert not any(thread.is_alive() for thread in threads)
    assert not errors


def test_numbers_of_products() -> None:
    """Two semirings of the same recording and another domain are two products, in each process with the same number."""
    code = (
        "import semiring as sr; from semiring.execution import traced, traced_product; "
        "print(traced._asked.number(traced_product._Product(sr.LOG, (False, 'cpu', None, True))))"
    )
    first, second = (subprocess.check_output([sys.executable, "-c", code], text=True) for _ in range(2))
    assert first == second
    within = [sr.Semiring("within", min, lambda a, b: a + b, INF, 0, domain=domain) for domain in ((0, INF), (-5, INF))]
    found = [jax.jit(lambda a, s=s: sr.matmul(a, a, s)) for s in within]
    assert found[1](-jnp.ones((1, 1))).item() == -2
    with pytest.raises(jax.errors.JaxRuntimeError, match="DomainError"):
        found[0](-jnp.ones((1, 1))).block_until_ready()


def test_library_without_jax() -> None:
    """Neither the library nor its products import JAX."""
    code = "import numpy as np, sys, semiring as sr; sr.matmul(np.eye(2), np.eye(2).tolist(), sr.LOG); print('jax' in sys.modules)"
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "False"


def test_scale_is_that_of_the_recording() -> None:
    assert SOFT.program.exponential == Fraction(-2)
