"""Gradients of products and closures of PyTorch's tensors: by their sums over terms, and by Euler's theorem for shortest paths.

Without PyTorch there are no such cases.
"""

from __future__ import annotations

import importlib
import importlib.util
from typing import Any

import numpy as np

import semiring as sr
from tests.campaign.cases import Case, Complaint, Entry, attempt, compared, judged
from tests.campaign.lawful import catalogue
from tests.campaign.products import draw_size
from tests.campaign.subjects import Array, Rng, Subject

__all__ = ["ENTRIES"]

_PRODUCTS = ("MIN_PLUS", "MAX_PLUS", "MAX_TIMES", "MAX_MIN", "LOG", "PLUS_TIMES")
_AXES: tuple[tuple[tuple[str, ...], tuple[str, ...]], ...] = (
    (("m", "k"), ("k", "n")), (("k",), ("k", "n")), (("m", "k"), ("k",)), (("k",), ("k",)), (("p", "m", "k"), ("k", "n")),
    (("m", "k"), ("p", "k", "n")), (("p", "m", "k"), ("p", "k", "n")), (("q", "one", "m", "k"), ("p", "k", "n")),
)  # fmt: skip


def _draw(rng: Rng, _: Subject, device: str) -> Case:
    closed = rng.random() < 0.3
    name, dtype = str(rng.choice(_PRODUCTS[:2] if closed else _PRODUCTS)), str(rng.choice(["float32", "float64"]))
    subject, most = catalogue(name, dtype), 20 if rng.random() < 0.8 else 70
    lengths = {axis: draw_size(rng, most) for axis in "mkn"} | {"p": int(rng.integers(1, 4)), "q": int(rng.integers(1, 3)), "one": 1}
    axes = dict(zip("ab", (("k", "k"), ()) if closed else _AXES[rng.integers(len(_AXES))], strict=True))
    arrays = {x: subject.draw(rng, tuple(lengths[axis] for axis in axes[x]), harmless=closed) for x in ("a" if closed else "ab")}
    options: dict[str, Any] = {"reflexive": bool(rng.random() < 0.5)} if closed else {"wanted": str(rng.choice(["a", "b", "ab"]))}
    options["seed"] = int(rng.integers(1 << 30))
    return Case("gradient", subject, arrays, {x: axes[x] for x in arrays}, {}, options, device)


def _check(case: Case) -> Complaint | None:
    torch = importlib.import_module("torch")
    place, semiring = "cuda" if case.device.startswith("cuda") else "cpu", case.subject.semiring
    closed = "reflexive" in case.options
    wanted = "a" if closed else case.options["wanted"]
    given = {name: torch.from_numpy(v.copy()).to(place).requires_grad_(name in wanted) for name, (v,) in case.arrays.items()}
    options = {"reflexive": case.options["reflexive"]} if closed else {}
    function: Any = sr.closure if closed else sr.matmul
    found = attempt(function, *given.values(), semiring, **options)
    if (complaint := judged(found, {sr.OverflowRiskError: False}, {})) is not None or found.error is not None:
        return complaint
    rng = np.random.default_rng(case.options["seed"])
    g = rng.integers(-4, 5, tuple(found.result.shape)).astype(case.subject.dtypes[0])
    own = [given[name] for name in wanted]
    pulled = attempt(torch.autograd.grad, found.result, own, torch.from_numpy(g).to(place), allow_unused=True)
    if (complaint := judged(pulled, {}, {})) is not None:
        return complaint
    again = torch.autograd.grad(
        (sr.closure if closed else sr.matmul)(*given.values(), semiring, **options), own, torch.from_numpy(g).to(place)
    )
    values = found.result.detach().cpu().numpy()
    for name, x, y in zip(wanted, pulled.result, again, strict=True):
        if not torch.equal(x, y):
            return Complaint("bits", f"two gradients of {name} differ")
        gradient, entries = x.cpu().numpy(), case.arrays[name][0]
        if closed:
            complaint = _by_euler(gradient, entries, g, values)
        else:
            want = _by_terms(case, values.astype(np.float64), g.astype(np.float64))[name]
            slack = (1e-4 if g.dtype == np.float32 else 1e-10) * max(1.0, float(np.abs(want).max(initial=0)))
            complaint = compared(gradient, want, entries.dtype, lambda a, b, slack=slack: np.isclose(a, b, rtol=slack, atol=slack))  # type: ignore[misc]
        if complaint is not None:
            return complaint
    return None


def _by_euler(gradient: Array, entries: Array, g: Array, values: Array) -> Complaint | None:
    """Lengths of paths are homogeneous: the sum of gradient times entry is that of G times value. Dyadic numbers make both exact."""
    finite = np.isfinite(values)
    left = float(np.where(gradient != 0, gradient * np.where(np.isfinite(entries), entries, 0), 0).astype(float).sum())
    right = float((g[finite].astype(float) * values[finite]).sum())
    if (gradient[~np.isfinite(entries)] != 0).any():
        return Complaint("values", "an absent edge has a gradient")
    return (
        None if abs(left - right) <= 1e-4 * max(1.0, abs(right)) else Complaint("values", f"gradient × entry is {left} in place of {right}")
    )


def _by_terms(case: Case, values: Array, g: Array) -> dict[str, Array]:
    """The gradients of both operands through the array of all terms, of the first one that is the value where ⊕ selects."""
    (a,), (b,) = (tuple(v.astype(np.float64) for v in case.arrays[name]) for name in "ab")
    x, y = a if a.ndim > 1 else a[None], b if b.ndim > 1 else b[:, None]
    x, y = x[..., :, :, None], y[..., None, :, :]
    shape = np.broadcast_shapes(x.shape, y.shape)
    c, g = (v.reshape(*shape[:-2], shape[-1])[..., :, None, :] for v in (values, g))
    name = case.subject.semiring.name
    with np.errstate(all="ignore"):
        terms = x * y if name.endswith("times") else np.minimum(x, y) if name == "max-min" else x + y
        if name == "log":
            share = np.where(np.isneginf(c), 0, np.exp(terms - np.where(np.isneginf(c), 0, c)))
        elif name == "plus-times":
            share = np.ones(shape)
        else:
            order = terms if name == "min-plus" else -terms
            first = np.zeros(shape, bool)
            if shape[-2]:
                np.put_along_axis(first, order.argmin(-2, keepdims=True), True, -2)
            share = np.where(first & (c != case.subject.zero[0]), 1.0, 0.0)
        if name.endswith("times"):
            of_x, of_y = y, x
        elif name == "max-min":
            of_x, of_y = (y >= x).astype(float), (y < x).astype(float)
        else:
            of_x = of_y = np.ones(())
        pulled = (np.where(share == 0, 0, share * g * d) for d in (of_x, of_y))
    return {name: _summed(p, v.shape, operand) for name, p, v, operand in zip("ab", pulled, (x, y), (a, b), strict=True)}


def _summed(terms: Array, shape: tuple[int, ...], operand: Array) -> Array:
    """Sum the axes along which an operand was repeated."""
    extra = terms.ndim - len(shape)
    terms = terms.sum(tuple(range(extra)))
    repeated = tuple(i for i, n in enumerate(shape) if n == 1 and terms.shape[i] != 1)
    return np.asarray(terms.sum(repeated, keepdims=True).reshape(operand.shape))


ENTRIES = {"gradient": Entry(1, _draw, _check)} if importlib.util.find_spec("torch") else {}
