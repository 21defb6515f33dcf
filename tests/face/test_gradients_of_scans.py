"""Gradients of scans of PyTorch's tensors: by differences, and against PyTorch's own through a loop over time."""

from __future__ import annotations

import itertools
import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import semiring as sr
from tests.face.derivatives import DOUBLED, FORMS, INF, SHARED, SKEWED, SOFT, distinct

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch
dispatch = pytest.importorskip("torch.utils._python_dispatch")
check, check_twice = torch.autograd.gradcheck, torch.autograd.gradgradcheck


TERMS: dict[str, tuple[sr.Semiring, Callable[[Any, Any], Any], Callable[[Any, int], Any]]] = {
    "log": (sr.LOG, lambda x, y: x + y, lambda t, axis: t.logsumexp(axis)),
    "soft-min": (SOFT, lambda x, y: x + y, lambda t, axis: -(-2 * t).logsumexp(axis) / 2),
    "max-plus": (sr.MAX_PLUS, lambda x, y: x + y, lambda t, axis: t.amax(axis)),
    "min-plus": (sr.MIN_PLUS, lambda x, y: x + y, lambda t, axis: t.amin(axis)),
    "max-times": (sr.MAX_TIMES, lambda x, y: x * y, lambda t, axis: t.amax(axis)),
    "max-min": (sr.MAX_MIN, torch.minimum, lambda t, axis: t.amax(axis)),
    "doubled": (DOUBLED, lambda x, y: x + 2 * y, lambda t, axis: t.amin(axis)),
    "skewed": (SKEWED, lambda x, y: x * y / (1 + y), lambda t, axis: t.amax(axis)),
    "plus-times": (sr.PLUS_TIMES, lambda x, y: x * y, lambda t, axis: t.sum(axis)),
    "shared": (SHARED, lambda x, y: torch.minimum(x, 2 * y), lambda t, axis: t.sum(axis)),
}
"""Semirings with ⊗ and ⊕ on tensors of all terms."""
DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)]


def tensor(*shape: int, seed: int = 0, dtype: Any = torch.float64) -> Any:
    """Numbers from 1/2 to 2, no two alike."""
    return torch.from_numpy(0.5 + 1.5 * distinct(*shape, seed=seed)).to(dtype)


def operands(form: str, dtype: Any = torch.float64, device: str = "cpu") -> list[Any]:
    return [None if shape is None else tensor(*shape, seed=i, dtype=dtype).to(device) for i, shape in enumerate(FORMS[form])]


def naive(name: str, a: Any, w: Any, v: Any, *, lengths: Any = None, reverse: bool = False, last: bool = False) -> Any:
    """The scan step by step, with all terms of a step."""
    semiring, mul, add = TERMS[name]
    a = a if a.ndim > 2 else a[None]
    steps = max(a.shape[-3], 1 if w is None else w.shape[-2])
    shapes = [a.shape[:-3], v.shape[:-1], () if w is None else w.shape[:-2]]
    batch = torch.broadcast_shapes(*shapes, () if lengths is None else np.shape(lengths))
    counts = torch.as_tensor(steps if lengths is None else lengths, device=a.device).expand(batch)[..., None]
    zero = float(semiring.zero)
    vector, rows = v.expand(*batch, v.shape[-1]), list[Any]()
    for t in range(steps, -1, -1) if reverse else range(steps + 1):
        step = t if reverse else t - 1
        if rows:
            matrix = a[..., min(step, a.shape[-3] - 1), :, :]
            weight = None if w is None else w[..., min(step, w.shape[-2] - 1), :]
            if reverse:
                weighed = vector if weight is None else mul(weight, vector)
                new = add(mul(matrix, weighed[..., None, :]), -1)
            else:
                new = add(mul(vector[..., :, None], matrix), -2)
                new = new if weight is None else mul(new, weight)
            vector = torch.where(counts > t, new, vector) if reverse else torch.where(counts >= t, new, vector)
        rows.append(torch.where(counts >= t, vector, zero))
    if last:
        return vector
    return torch.stack(rows[::-1] if reverse else rows, -2)


def scanned(name: str, **options: Any) -> Callable[..., Any]:
    return lambda a, w, v: sr.scan(a, TERMS[name][0], v, weights=w, **options)


def gradients(function: Callable[..., Any], given: list[Any], gradient: Any = None) -> list[Any]:
    own = [None if x is None else x.detach().requires_grad_() for x in given]
    found = function(*own)
    gradient = torch.ones_like(found) if gradient is None else gradient
    return list(torch.autograd.grad(found, [x for x in own if x is not None], gradient, allow_unused=True, materialize_grads=True))


def normal(like: Any, seed: int = 9) -> Any:
    return torch.from_numpy(np.random.default_rng(seed).normal(size=like.shape)).to(like)


@pytest.mark.sampled(61)
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(
    ("name", "form", "reverse"),
    [  # each form in both directions, and so each semiring
        pytest.param(name, form, (i + j) % 2 > 0, id=f"{name}-{form}-{'reverse' if (i + j) % 2 else 'forward'}")
        for (i, name), (j, form) in itertools.product(enumerate(TERMS), enumerate(FORMS))
    ],
)
def test_against_a_loop(name: str, form: str, reverse: bool, device: str) -> None:
    given = operands(form, device=device)
    options: list[dict[str, Any]] = [{}, {"last": True}]
    if form in ("one matrix, a batch", "a matrix each step"):
        options += [{"lengths": [3, 0]}, {"lengths": [4, 2], "last": True}]
    for option in options:
        expected = naive(name, *given, reverse=reverse, **option)
        function = scanned(name, reverse=reverse, **option)
        torch.testing.assert_close(function(*[x if x is None else x.clone().requires_grad_() for x in given]).detach(), expected)
        g = normal(expected)
        theirs = gradients(lambda *x, o=option: naive(name, *x, reverse=reverse, **o), given, g)
        for x, y in zip(gradients(function, given, g), theirs, strict=True):
            torch.testing.assert_close(x, y)


@pytest.mark.sampled(12)
@pytest.mark.parametrize("reverse", [False, True], ids=["forward", "reverse"])
@pytest.mark.parametrize("last", [False, True], ids=["all", "last"])
@pytest.mark.parametrize("name", TERMS)
def test_differences(name: str, last: bool, reverse: bool) -> None:
    given = [x.requires_grad_() for x in (tensor(2, 2), tensor(2, 3, 2, seed=1), tensor(2, seed=2))]
    function = scanned(name, last=last, reverse=reverse)
    assert check(function, given, atol=1e-6)
    assert check_twice(function, [given[0], given[1][0, :2], given[2]], atol=1e-5)


@pytest.mark.parametrize("name", TERMS)
def test_some_operands_require_a_gradient(name: str) -> None:
    given = operands("a matrix each step")
    for reverse in (False, True):
        function = scanned(name, reverse=reverse)
        every = gradients(function, given)
        for needed in itertools.product((False, True), repeat=3):
            own = [x.clone().requires_grad_(asked) for x, asked in zip(given, needed, strict=True)]
            found = function(*own)
            assert found.requires_grad == any(needed)
            if any(needed):
                found.sum().backward()
            for x, expected in zip(own, every, strict=True):
                assert x.grad is None if not x.requires_grad else torch.allclose(x.grad, expected, rtol=1e-12)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", ["log", "soft-min", "max-plus", "plus-times"])
def test_many_steps_of_single_precision(name: str, device: str) -> None:
    """Vectors grow with time, and gradients do not lose digits to their size."""
    rng = np.random.default_rng(0)
    shapes = [(9, 9), (3, 300, 9), (3, 9)]
    given = [torch.from_numpy(rng.normal(size=s)).to(device) for s in shapes]
    if name == "plus-times":
        given = [given[0].abs().softmax(-1), given[1].abs().softmax(-1) * 9, given[2].abs()]
    for last in (False, True):
        expected = naive(name, *given, last=last)
        g = normal(expected)
        ours = gradients(scanned(name, last=last), [x.float() for x in given], g.float())
        for x, y in zip(ours, gradients(lambda *own, one=last: naive(name, *own, last=one), given, g), strict=True):
            assert x.dtype == torch.float32
            torch.testing.assert_close(x.double(), y, rtol=2e-3, atol=2e-4 * float(y.abs().max()))


@pytest.mark.parametrize("spread", [3, 60, 300, 3000])
@pytest.mark.parametrize("shared", [False, True])
def test_wide_ranges(spread: float, shared: bool) -> None:
    rng = np.random.default_rng(1)
    given = [torch.from_numpy(spread * rng.normal(size=s)) for s in ((4, 4) if shared else (6, 4, 4), (2, 6, 4), (4,))]
    given[0][..., 1, 2] = given[1][0, 3, 1] = given[2][0] = -INF
    values = naive("log", *given)
    g = torch.where(values == -INF, 0, normal(values))
    finite = [x.clamp(min=-1e7) for x in given]  # PyTorch's own gradients are NaN beside −∞
    for x, y in zip(gradients(scanned("log"), given, g), gradients(lambda *own: naive("log", *own), finite, g), strict=True):
        torch.testing.assert_close(x, y, rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize("reverse", [False, True], ids=["forward", "reverse"])
@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("name", ["log", "soft-min", "max-plus", "min-plus", "doubled", "max-times"])
def test_unreachable_states_pass_nothing(name: str, shared: bool, reverse: bool) -> None:
    zero = float(TERMS[name][0].zero)
    a, w, v = tensor(4, 4) if shared else tensor(5, 4, 4), tensor(2, 5, 4, seed=1), tensor(4, seed=2)
    a[..., 3, :3] = a[..., :3, 3] = v[3] = zero  # state 3 has no way in
    w[0, 2, 0] = w[1, 4] = zero
    values = sr.scan(a, TERMS[name][0], v, weights=w, reverse=reverse)
    reached = values != zero
    assert not reached.all()
    assert reached.any()
    good = gradients(scanned(name, reverse=reverse), [a, w, v], reached.double())
    for bad in (INF, -INF, math.nan):
        found = gradients(scanned(name, reverse=reverse), [a, w, v], torch.where(reached, 1.0, bad).double())
        for x, y in zip(found, good, strict=True):
            assert torch.isfinite(x).all()
            assert torch.equal(x, y)
    if not reverse:
        assert not good[2][3]


@pytest.mark.parametrize("reverse", [False, True], ids=["forward", "reverse"])
@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("name", TERMS)
def test_entries_beyond_the_lengths_pass_nothing(name: str, shared: bool, reverse: bool) -> None:
    a, w, v = tensor(4, 4) if shared else tensor(2, 5, 4, 4), tensor(2, 5, 4, seed=1), tensor(4, seed=2)
    lengths = np.array([3, 1])
    clean = gradients(scanned(name, reverse=reverse, lengths=lengths), [a, w, v])
    for b, length in enumerate(lengths):
        w[b, length:] = math.nan
        if not shared:
            a[b, length:] = math.nan
    g = torch.ones(2, 6, 4, dtype=torch.float64)
    g[0, 4:] = g[1, 2:] = math.nan
    found = gradients(scanned(name, reverse=reverse, lengths=lengths), [a, w, v], g)
    for x, y in zip(found, clean, strict=True):
        torch.testing.assert_close(x, y)
    assert not found[1][0, 3:].any()
    assert not found[1][1, 1:].any()


@pytest.mark.parametrize("shape", [(0, 3, 3), (0, 0, 0), (2, 0, 0), (0, 2, 2, 2)], ids=str)
@pytest.mark.parametrize("name", TERMS)
def test_empty(name: str, shape: tuple[int, ...]) -> None:
    a, w = torch.ones(shape, dtype=torch.float64), torch.ones(shape[:-1], dtype=torch.float64)
    v = torch.ones(shape[-1], dtype=torch.float64)
    for option, reverse in itertools.product((False, True), repeat=2):
        found = gradients(scanned(name, last=option, reverse=reverse), [a, w, v])
        assert [x.shape for x in found] == [a.shape, w.shape, v.shape]
        assert torch.equal(found[2], torch.ones_like(v) * (0 if shape[0] == 0 < len(shape) - 3 else 1))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", TERMS)
def test_the_same_bits_again(name: str, device: str) -> None:
    given = [torch.round(4 * x) / 4 for x in (tensor(7, 7), tensor(3, 40, 7, seed=1), tensor(7, seed=2))]  # many ties
    given = [x.float().to(device) for x in given]
    if name in ("plus-times", "max-times", "skewed"):
        given = [x / 4 for x in given]
    function = scanned(name)
    first = gradients(function, given)
    for _ in range(3):
        assert all(map(torch.equal, gradients(function, given), first))


def test_layouts() -> None:
    given = operands("a matrix each step")
    stepped = [torch.stack([x, x], -1)[..., 0] for x in given]
    stepped[0] = given[0].mT.contiguous().mT
    for name in TERMS:
        expected = naive(name, *given)
        g = normal(expected).mT.contiguous().mT
        for x, y in zip(gradients(scanned(name), stepped, g), gradients(scanned(name), given, g.contiguous()), strict=True):
            torch.testing.assert_close(x, y, rtol=1e-12, atol=1e-12)


class Largest(dispatch.TorchDispatchMode):  # type: ignore[misc, name-defined, unused-ignore]
    """The most entries of a result of PyTorch's operations."""

    entries = 0

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        found = function(*args, **(kwargs or {}))
        for x in found if isinstance(found, tuple | list) else [found]:
            if isinstance(x, torch.Tensor):
                self.entries = max(self.entries, x.untyped_storage().nbytes() // x.itemsize)
        return found


@pytest.mark.parametrize("name", ["log", "soft-min", "max-plus", "max-times", "plus-times"])
def test_memory_without_an_array_of_all_terms(name: str) -> None:
    steps, states = 400, 20
    given = [tensor(states, states) / states, tensor(2, steps, states, seed=1), tensor(states, seed=2)]
    for last in (False, True):
        own = [x.clone().requires_grad_() for x in given]
        found = scanned(name, last=last)(*own)
        with Largest() as largest:
            found.sum().backward()
        assert largest.entries <= 2 * 2 * (steps + 1) * (states + 1)


def test_posterior_marginals_are_gradients() -> None:
    """Against the sum over all paths of a hidden Markov model."""
    rng = np.random.default_rng(4)
    states, steps = 3, 4
    start, switch, seen = (np.log(rng.dirichlet(np.ones(states), size=n)) for n in ((), states, steps))
    a, w, v = (torch.from_numpy(np.array(x)).requires_grad_() for x in (switch, seen, start))
    likelihood = sr.scan(a, sr.LOG, v, weights=w, last=True).logsumexp(-1)
    likelihood.backward()
    each, pairs, total = np.zeros((steps + 1, states)), np.zeros((states, states)), 0.0
    for path in itertools.product(range(states), repeat=steps + 1):
        weight = math.exp(start[path[0]] + sum(switch[i, j] + seen[t, j] for t, (i, j) in enumerate(itertools.pairwise(path))))
        total += weight
        for t, i in enumerate(path):
            each[t, i] += weight
        for i, j in itertools.pairwise(path):
            pairs[i, j] += weight
    assert math.isclose(likelihood.item(), math.log(total), rel_tol=1e-12)
    np.testing.assert_allclose(v.grad, each[0] / total, rtol=1e-10)
    np.testing.assert_allclose(w.grad, each[1:] / total, rtol=1e-10)
    np.testing.assert_allclose(a.grad, pairs / total, rtol=1e-10)


def test_states_and_a_gradient() -> None:
    given = operands("one matrix, a batch")
    plain = sr.scan(given[0], sr.MAX_PLUS, given[2], weights=given[1], witness=True)
    for last in (False, True):
        own = [x.clone().requires_grad_() for x in given]
        found = sr.scan(own[0], sr.MAX_PLUS, own[2], weights=own[1], witness=True, last=last)
        assert torch.equal(found.states, plain.states)
        assert torch.equal(found.witness, plain.witness)
        assert torch.equal(found.values.detach(), plain.values[..., -1, :] if last else plain.values)
        best = found.values if last else found.values[..., -1, :]
        best.amax(-1).sum().backward()
        # The best path alone is in the gradient.
        assert torch.equal(own[1].grad.argmax(-1).int(), plain.states[:, 1:])
        assert own[1].grad.sum() == own[1].shape[0] * own[1].shape[1]
    assert not found.states.requires_grad


@pytest.mark.parametrize("reverse", [False, True], ids=["forward", "reverse"])
def test_structured_elements(reverse: bool) -> None:
    def pair(*shape: int, seed: int) -> tuple[Any, Any]:
        return tensor(*shape, seed=seed), torch.ones(shape, dtype=torch.float64)

    parts = [*pair(3, 3, seed=0), *pair(4, 3, seed=1), *pair(3, seed=2)]

    def both(*x: Any) -> Any:
        return sr.scan(tuple(x[:2]), sr.DISTANCE_HOPS, tuple(x[4:]), weights=tuple(x[2:4]), reverse=reverse)

    own = [x.requires_grad_() for x in parts]
    assert check(both, own)
    distances = [x.detach().clone().requires_grad_() for x in parts[::2]]
    naive("min-plus", *distances, reverse=reverse).sum().backward()
    both(*own)[0].sum().backward()
    for x, y in zip(own[::2], distances, strict=True):
        torch.testing.assert_close(x.grad, y.grad)


def test_a_structured_sum() -> None:
    a, w = tensor(2, 2), tensor(2, 2, seed=1)
    counts = torch.full((2, 2), 2.0, dtype=torch.float64)
    given = [x.requires_grad_() for x in (a, counts, w, counts.clone())]
    for reverse in (False, True):
        for part in range(2):
            assert check(lambda *x, r=reverse, p=part: sr.scan(x[:2], sr.DISTANCE_COUNT, weights=x[2:], reverse=r)[p], given)


def test_dtypes_and_arrays() -> None:
    a, w, v = operands("a matrix each step")
    own = a.half().requires_grad_()
    found = sr.scan(own, sr.LOG, v.half(), weights=w.half())
    assert found.dtype == torch.float32  # as without a gradient
    found.sum().backward()
    assert own.grad.dtype == torch.float16
    own = a.float().requires_grad_()
    found = sr.scan(own, sr.LOG, v.numpy(), weights=w.numpy())
    assert found.dtype == torch.float64
    found.sum().backward()
    assert own.grad.dtype == torch.float32
    with torch.no_grad():
        assert not sr.scan(own, sr.LOG).requires_grad
    alone = torch.zeros(2, 2, requires_grad=True)
    assert sr.scan(alone, sr.LOG, lengths=5).shape == (6, 2)
    sr.scan(alone, sr.LOG, lengths=5, last=True).logsumexp(-1).backward()
    torch.testing.assert_close(alone.grad, torch.full((2, 2), 1.25))


@pytest.mark.filterwarnings("ignore::FutureWarning")  # forward mode calls deprecated functions at first
@pytest.mark.parametrize("name", ["log", "max-plus", "max-times", "plus-times", "shared"])
def test_functions_of_torch_func(name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # its import calls deprecated functions
        func = pytest.importorskip("torch.func")
    a, w, v = operands("a matrix each sequence")

    def ours(*given: Any) -> Any:
        return scanned(name)(*given).square().sum()

    def theirs(*given: Any) -> Any:
        return naive(name, *given).square().sum()

    for argument in range(3):
        torch.testing.assert_close(func.grad(ours, argument)(a, w, v), func.grad(theirs, argument)(a, w, v))
    many = tensor(3, 3, 3, seed=5)
    for axes in ((0, None, None), (1, None, None)):
        each = func.vmap(func.grad(ours, (0, 1)), in_dims=axes)(many, w, v)
        torch.testing.assert_close(each, func.vmap(func.grad(theirs, (0, 1)), in_dims=axes)(many, w, v))
    tangents = tuple(tensor(*x.shape, seed=6) for x in (a, w, v))
    torch.testing.assert_close(func.jvp(scanned(name), (a, w, v), tangents), func.jvp(lambda *x: naive(name, *x), (a, w, v), tangents))
    one = func.jvp(lambda x: scanned(name, last=True)(a, x, v), (w,), tangents[1:2])
    torch.testing.assert_close(one, func.jvp(lambda x: naive(name, a, x, v, last=True), (w,), tangents[1:2]))
    forward = func.jacfwd(lambda x: scanned(name)(a, w, x))(v)
    torch.testing.assert_close(forward, func.jacrev(lambda x: naive(name, a, w, x))(v))
    hessian = func.jacrev(func.jacrev(ours, 2), 2)(a, w, v)
    torch.testing.assert_close(hessian, func.jacrev(func.jacrev(theirs, 2), 2)(a, w, v))


def test_refused() -> None:
    a = torch.ones(2, 2, requires_grad=True)
    with pytest.raises(sr.GraphError, match="'and' has no derivative"):
        sr.scan(a, sr.BOOLEAN, lengths=2)
    with pytest.raises(sr.DTypeError, match=r"weights has dtype torch\.int64"):
        sr.scan(a, sr.LOG, weights=torch.ones(3, 2).long())
    with pytest.raises(sr.ShapeError, match=r"matrices must be square"):
        sr.scan(torch.ones(2, 3, requires_grad=True), sr.LOG, lengths=2)
    with pytest.raises(sr.ShapeError, match="does not tell the number of steps"):
        sr.scan(a, sr.LOG)
    with pytest.raises(sr.LawError, match="no witness"):
        sr.scan(a, sr.LOG, lengths=2, witness=True)
    with pytest.raises(sr.DomainError):
        sr.scan(a * math.nan, sr.MIN_PLUS, lengths=2)


@pytest.mark.filterwarnings("ignore::FutureWarning")  # PyTorch's imports call deprecated functions
@pytest.mark.parametrize("options", [{}, {"last": True}, {"reverse": True}], ids=str)
@pytest.mark.parametrize("semiring", [sr.LOG, sr.MAX_PLUS, sr.PLUS_TIMES], ids=str)
def test_hessians(semiring: sr.Semiring, options: dict[str, Any]) -> None:
    numbers = torch.Generator().manual_seed(0)
    a, w = (torch.rand(s, dtype=torch.float64, generator=numbers) for s in ((3, 2, 2), (3, 2)))

    def loss(a: Any, w: Any) -> Any:
        return sr.scan(a, semiring, weights=w, **options).square().sum()

    forward = torch.func.hessian(loss, argnums=(0, 1))(a, w)
    torch.testing.assert_close(forward, torch.func.jacrev(torch.func.jacrev(loss, argnums=(0, 1)), argnums=(0, 1))(a, w))


@pytest.mark.filterwarnings("ignore::FutureWarning")  # PyTorch's imports call deprecated functions
@pytest.mark.parametrize("options", [{}, {"last": True}, {"reverse": True}, {"lengths": [3, 1]}], ids=str)
@pytest.mark.parametrize("semiring", [sr.LOG, sr.MIN_PLUS, sr.MAX_TIMES, sr.PLUS_TIMES], ids=str)
def test_stacks_of_gradients(semiring: sr.Semiring, options: dict[str, Any]) -> None:
    a, w, v = (tensor(*shape, seed=i).requires_grad_() for i, shape in enumerate([(3, 2, 2), (2, 3, 2), (2,)]))

    def scanned(*given: Any) -> Any:
        return sr.scan(given[0], semiring, given[2], weights=given[1], **options).nan_to_num(posinf=0, neginf=0)

    assert torch.autograd.gradcheck(scanned, (a, w, v), check_batched_grad=True)
    found = scanned(a, w, v)
    g = torch.randn(5, *found.shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    stacks = torch.autograd.grad(found, (a, w, v), g, is_grads_batched=True, retain_graph=True)
    each = [torch.autograd.grad(found, (a, w, v), one, retain_graph=True) for one in g]
    torch.testing.assert_close(stacks, tuple(torch.stack(x) for x in zip(*each, strict=True)))
    given = a.detach(), w.detach(), v.detach()
    torch.testing.assert_close(torch.func.vmap(torch.func.vjp(scanned, *given)[1])(g), stacks)
    (some,) = torch.autograd.grad(scanned(given[0], w, given[2]), w, g, is_grads_batched=True)
    torch.testing.assert_close(some, stacks[1])
