"""Scans within functions that JAX traces: values and derivatives against a loop over time, and against PyTorch's gradients."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import semiring as sr
from tests.face.derivatives import FORMS, SHARED, SKEWED, SOFT, alike, distinct

jax = pytest.importorskip("jax")
check_grads = pytest.importorskip("jax.test_util").check_grads
jnp = jax.numpy
pytestmark = pytest.mark.jax


TERMS: dict[str, tuple[sr.Semiring, Callable[[Any, Any], Any], Callable[[Any, int], Any]]] = {
    "log": (sr.LOG, lambda x, y: x + y, jax.nn.logsumexp),
    "soft-min": (SOFT, lambda x, y: x + y, lambda t, axis: -jax.nn.logsumexp(-2 * t, axis) / 2),
    "max-plus": (sr.MAX_PLUS, lambda x, y: x + y, lambda t, axis: t.max(axis)),
    "max-times": (sr.MAX_TIMES, lambda x, y: x * y, lambda t, axis: t.max(axis)),
    "skewed": (SKEWED, lambda x, y: x * y / (1 + y), lambda t, axis: t.max(axis)),
    "plus-times": (sr.PLUS_TIMES, lambda x, y: x * y, lambda t, axis: t.sum(axis)),
    "shared": (SHARED, lambda x, y: jnp.minimum(x, 2 * y), lambda t, axis: t.sum(axis)),
}
"""Semirings with ⊗ and ⊕ on arrays of all terms."""


@pytest.fixture(autouse=True)
def wide() -> Iterator[None]:
    with jax.enable_x64(True):
        yield


def numbers(*shape: int, seed: int = 0) -> Any:
    """Numbers from 1/2 to 2, no two alike."""
    return jnp.asarray(0.5 + 1.5 * distinct(*shape, seed=seed))


def operands(form: str) -> list[Any]:
    return [None if shape is None else numbers(*shape, seed=i) for i, shape in enumerate(FORMS[form])]


def naive(name: str, a: Any, w: Any, v: Any, reverse: bool = False, last: bool = False) -> Any:
    """The scan step by step, with all terms of a step."""
    _, mul, add = TERMS[name]
    a = a if a.ndim > 2 else a[None]
    steps = max(a.shape[-3], 1 if w is None else w.shape[-2])
    batch = np.broadcast_shapes(a.shape[:-3], v.shape[:-1], () if w is None else w.shape[:-2])
    rows = [jnp.broadcast_to(v, (*batch, v.shape[-1]))]
    for t in range(steps)[:: -1 if reverse else 1]:
        matrix = a[..., min(t, a.shape[-3] - 1), :, :]
        weight = None if w is None else w[..., min(t, w.shape[-2] - 1), :]
        if reverse:
            vector = rows[-1] if weight is None else mul(weight, rows[-1])
            rows.append(add(mul(matrix, vector[..., None, :]), -1))
        else:
            vector = add(mul(rows[-1][..., :, None], matrix), -2)
            rows.append(vector if weight is None else mul(vector, weight))
    return rows[-1] if last else jnp.stack(rows[::-1] if reverse else rows, -2)


def scanned(name: str, **options: Any) -> Callable[..., Any]:
    return lambda a, w, v: sr.scan(a, TERMS[name][0], v, weights=w, **options)


def weighed(function: Callable[..., Any]) -> Callable[..., Any]:
    """A sum of different multiples of all elements."""

    def total(*given: Any) -> Any:
        found = function(*given)
        return (found * (1 + np.arange(found.size).reshape(found.shape) % 7)).sum()

    return total


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("name", "form", "reverse", "last"),
    # Each form with some semirings, and each semiring with some forms: the compiler of JAX takes seconds for each pair.
    [
        (name, form, (i + j) % 2 > 0, (i + j) // 2 % 2 > 0)
        for (i, name), (j, form) in itertools.product(enumerate(TERMS), enumerate(FORMS))
        if (i + j) % 3 == 0
    ],
)
def test_against_a_loop(name: str, form: str, reverse: bool, last: bool) -> None:
    given = operands(form)
    kept = [i for i, x in enumerate(given) if x is not None]
    tangents = tuple(numbers(*given[i].shape, seed=7 + i) for i in kept)

    def everything(function: Callable[..., Any]) -> Any:
        def some(*present: Any) -> Any:
            every = dict(zip(kept, present, strict=True))
            return function(*(every.get(i) for i in range(3)))

        def found(*present: Any) -> Any:
            stacks = jax.vmap(jax.grad(weighed(some)), (0, *(None for _ in present[1:])))(
                jnp.stack([present[0], present[0] / 2]), *present[1:]
            )
            gradient = jax.grad(weighed(some), tuple(range(len(present))))(*present)
            return some(*present), gradient, jax.jvp(some, present, tangents)[1], stacks

        return jax.jit(found)(*(given[i] for i in kept))

    expected = everything(lambda a, w, v: naive(name, a, w, v, reverse, last))
    alike(everything(scanned(name, reverse=reverse, last=last)), expected)


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("name", "form", "reverse", "last"),
    [  # each form and each semiring with each direction and each kind of result
        (name, form, (i + j) % 2 > 0, (i + j) // 2 % 2 > 0)
        for (i, name), (j, form) in itertools.product(
            enumerate(["log", "max-times", "plus-times"]),
            enumerate(["one matrix, a batch", "a matrix each step", "a matrix each sequence", "no weights"]),
        )
    ],
)
def test_lengths_against_pytorch(name: str, form: str, reverse: bool, last: bool) -> None:
    """Entries beyond the lengths are NaN, and have gradients of exactly 0; so have elements without a term, whatever their gradients."""
    torch, (semiring, *_) = pytest.importorskip("torch"), TERMS[name]
    given: list[Any] = [x if x is None else np.array(x) for x in operands(form)]
    a, w, v = given
    steps, zero = max(a.shape[-3] if a.ndim > 2 else 1, 1 if w is None else w.shape[-2]), float(semiring.zero)
    lengths = np.array([steps, 1])
    for x in (a, w):
        if x is not None and len(x) == 2 and x.shape[1] == steps:
            x[1, 1:] = math.nan
    v[..., 0] = zero
    (w if w is not None else a)[..., 0, 1] = zero
    given = [x for x in given if x is not None]

    def found(*present: Any, lengths: Any = lengths) -> Any:
        matrices, *middle, initial = present
        weights = middle[0] if middle else None
        return sr.scan(matrices, semiring, initial, weights=weights, lengths=lengths, reverse=reverse, last=last)

    tensors = [torch.tensor(x, requires_grad=True) for x in given]
    values = found(*tensors)
    g = np.random.default_rng(0).normal(size=values.shape)
    if name != "plus-times":
        g[values.detach().numpy() == zero] = math.nan
    values.backward(torch.tensor(g))
    value, pull = jax.vjp(jax.jit(found), *given)
    np.testing.assert_allclose(value, values.detach(), rtol=1e-12)
    traced = jax.jit(lambda lengths, g: jax.vjp(lambda *x: found(*x, lengths=lengths), *given)[1](g))(lengths, g)
    for x, y, t in zip(pull(g), traced, tensors, strict=True):
        np.testing.assert_allclose(x, t.grad, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(y, t.grad, rtol=1e-9, atol=1e-12)


def test_posterior_marginals() -> None:
    """The gradient of the log-likelihood of a conditional random field has the probabilities of states, also one sequence at a time."""
    torch, a, w, v = pytest.importorskip("torch"), numbers(4, 4), numbers(3, 6, 4, seed=1), numbers(4, seed=2)
    lengths = np.array([6, 2, 4])

    def likelihood(w: Any, lengths: Any) -> Any:
        return jax.nn.logsumexp(sr.scan(a, sr.LOG, v, weights=w, lengths=lengths, last=True), -1).sum()

    marginals = jax.jit(jax.grad(likelihood))(w, lengths)
    assert np.allclose(marginals.sum(-1), np.arange(1, 7) <= lengths[:, None])
    parameter = torch.tensor(np.asarray(w), requires_grad=True)
    sr.scan(np.asarray(a), sr.LOG, np.asarray(v), weights=parameter, lengths=lengths, last=True).logsumexp(-1).sum().backward()
    np.testing.assert_allclose(marginals, parameter.grad, rtol=1e-10, atol=1e-14)
    alike(jax.jit(jax.vmap(jax.grad(likelihood)))(w, lengths), marginals)
    alike(jax.lax.map(lambda x: jax.grad(likelihood)(*x), (w, jnp.asarray(lengths))), marginals)


@pytest.mark.exhaustive
@pytest.mark.parametrize(("name", "reverse"), [("soft-min", False), ("max-times", True), ("plus-times", False), ("shared", True)])
def test_differences(name: str, reverse: bool) -> None:
    given = [numbers(2, 2), numbers(3, 2, seed=1), numbers(2, seed=2)]
    total = jax.jit(weighed(scanned(name, reverse=reverse)))
    check_grads(total, given, 2, modes=["fwd", "rev"], atol=1e-3, rtol=1e-4, eps=1e-5)


@pytest.mark.exhaustive
def test_structured_elements() -> None:
    torch = pytest.importorskip("torch")
    parts = [
        numbers(3, 3),
        numbers(3, 3, seed=1),
        numbers(2, 4, 3, seed=2),
        numbers(2, 4, 3, seed=3),
        numbers(3, seed=4),
        numbers(3, seed=5),
    ]
    for semiring, reverse in ((sr.DISTANCE_HOPS, False), (sr.DISTANCE_COUNT, True)):

        def total(*x: Any, semiring: Any = semiring, reverse: bool = reverse) -> Any:
            d, e = sr.scan(x[:2], semiring, x[4:], weights=x[2:4], reverse=reverse)
            return (d * e + 2 * e).sum()

        tensors = [torch.tensor(np.asarray(x), requires_grad=True) for x in parts]
        total(*tensors).backward()
        for x, y in zip(jax.jit(jax.grad(total, tuple(range(6))))(*parts), tensors, strict=True):
            np.testing.assert_allclose(x, y.grad, rtol=1e-10)


def test_a_witness() -> None:
    a, w = numbers(2, 5, 3, 3), numbers(2, 5, 3, seed=1)
    for lengths, reverse in ((None, False), ([3, 5], False), ([5, 1], True)):

        def decoded(a: Any, w: Any, lengths: Any = lengths, reverse: bool = reverse) -> Any:
            return sr.scan(a, sr.MAX_PLUS, weights=w, lengths=lengths, reverse=reverse, witness=True)

        expected, found = decoded(np.asarray(a), np.asarray(w)), jax.jit(decoded)(a, w)
        assert type(found) is type(expected)
        alike(tuple(found), tuple(expected))
        if lengths is None:
            alike(tuple(jax.vmap(decoded)(a, w)), tuple(expected))
    gradient = jax.grad(lambda a: sr.scan(a, sr.MAX_PLUS, witness=True, last=True).values.max())(a)
    assert gradient.sum() == 5
    argmax = sr.MAX_PLUS.with_witness()
    alike(jax.jit(lambda a: sr.scan(a, argmax).states)(a), sr.scan(np.asarray(a), sr.MAX_PLUS, witness=True).states)


@pytest.mark.parametrize("name", ["log", "max-plus", "plus-times"])
def test_empty(name: str) -> None:
    semiring = TERMS[name][0]
    for shape in ((2, 0, 3, 3), (0, 4, 3, 3), (4, 0, 0), (0, 0, 0, 0)):
        a = jnp.ones(shape)
        value, found = jax.jit(jax.value_and_grad(lambda a: sr.scan(a, semiring).sum()))(a)
        assert value == sr.scan(np.ones(shape), semiring).sum()
        assert found.shape == shape
    one = jnp.ones((2, 2))
    alike(jax.jit(lambda a: sr.scan(a, semiring, lengths=0))(one), sr.scan(np.ones((2, 2)), semiring, lengths=0))
    gradient = jax.grad(
        lambda v: (sr.scan(one, semiring, v, lengths=[0, 1])[0] * jnp.arange(1, 3)[:, None]).sum(where=np.array([[True], [False]]))
    )
    assert gradient(jnp.ones(2)).tolist() == [1, 1]


def test_memory() -> None:
    """No array of T·S² entries is kept for the gradient of one matrix."""
    steps, states = 200, 30
    w = numbers(steps, states)
    lowered = jax.jit(jax.grad(lambda a: sr.scan(a, sr.LOG, weights=w, last=True).sum())).lower(numbers(states, states)).compile()
    assert lowered.memory_analysis().temp_size_in_bytes < 8 * steps * states * states / 3


def test_dtypes() -> None:
    half = numbers(4, 3, 3).astype(np.float16)
    value, gradient = jax.jit(jax.value_and_grad(lambda a: sr.scan(a, sr.LOG).sum()))(half)
    assert (value.dtype, gradient.dtype) == (np.float32, np.float16)
    for dtype, semiring in ((np.int32, sr.MIN_PLUS), (bool, sr.BOOLEAN)):
        whole = (np.random.default_rng(0).random((2, 5, 4, 4)) * 3).astype(dtype)
        alike(jax.jit(lambda a, s=semiring: sr.scan(a, s, lengths=[2, 5]))(whole), sr.scan(whole, semiring, lengths=[2, 5]))


def test_errors() -> None:
    a = numbers(4, 3, 3)
    with pytest.raises(sr.GraphError, match="in which scan takes no sample"):
        jax.jit(lambda a: sr.scan(a, sr.LOG, sample=1))(a)
    with pytest.raises(sr.GraphError, match="scan computes on the CPU; device is 'cuda'"):
        jax.jit(lambda a: sr.scan(a, sr.LOG, device="cuda"))(a)
    with pytest.raises(sr.GraphError, match="the lengths alone tell the number of steps; pass numbers, or weights"):
        jax.jit(lambda a, n: sr.scan(a[0], sr.LOG, lengths=n))(a, 3)
    with pytest.raises(sr.DTypeError, match="lengths must be integers; they are float64"):
        jax.jit(lambda a, n: sr.scan(a, sr.LOG, lengths=n))(a, 3.0)
    with pytest.raises(sr.ShapeError, match="lengths must be from 0 to 4"):
        jax.jit(lambda a: sr.scan(a, sr.LOG, lengths=5))(a)
    with pytest.raises(jax.errors.JaxRuntimeError, match="ShapeError: lengths must be from 0 to 4"):
        jax.jit(lambda a, n: sr.scan(a, sr.LOG, lengths=n))(a, 5).block_until_ready()
    with pytest.raises(sr.LawError, match="no witness"):
        jax.jit(lambda a: sr.scan(a, sr.LOG, witness=True))(a)
    with pytest.raises(jax.errors.JaxRuntimeError, match="DomainError"):
        jax.jit(lambda a: sr.scan(a, sr.LOG))(a.at[0].set(math.nan)).block_until_ready()
