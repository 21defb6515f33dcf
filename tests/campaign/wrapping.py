"""Products of integers in all dtypes: those that wrap have NumPy's bits, and those that are checked are exact or refused."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import semiring as sr
from tests.campaign.cases import Case, Complaint, Entry, Unjudged, attempt, changed, compared, judged
from tests.campaign.lawful import catalogue
from tests.campaign.layouts import LAYOUTS, WRITABLE, host
from tests.campaign.oracles import product_could_overflow
from tests.campaign.products import draw_device, draw_layouts, draw_size, on_gpu, result_axes
from tests.campaign.subjects import Array, Rng, Subject

__all__ = ["ENTRIES"]

_DTYPES = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
_AXES: tuple[tuple[tuple[str, ...], tuple[str, ...]], ...] = (
    (("m", "k"), ("k", "n")), (("k",), ("k", "n")), (("m", "k"), ("k",)), (("k",), ("k",)), (("p", "m", "k"), ("k", "n")),
    (("m", "k"), ("p", "k", "n")), (("p", "m", "k"), ("p", "k", "n")), (("q", "one", "m", "k"), ("p", "k", "n")),
)  # fmt: skip


def _draw(rng: Rng, _: Subject, device: str) -> Case:
    most = 33 if rng.random() < 0.8 else 129
    lengths = {axis: draw_size(rng, most) for axis in "mkn"} | {"p": int(rng.integers(0, 4)), "q": int(rng.integers(1, 3)), "one": 1}
    while lengths["m"] * lengths["k"] * lengths["n"] > 60_000:  # which Python's integers multiply too
        lengths |= {axis: (lengths[axis] + 1) // 2 for axis in "mkn"}
    left, right = (str(rng.choice(_DTYPES)) for _ in range(2))
    right = left if rng.random() < 0.5 else right
    overflow = "wrap" if rng.random() < 0.6 else "check"
    options: dict[str, Any] = {"overflow": overflow, "dtypes": {"a": (left,), "b": (right,)}}
    if rng.random() < 0.5:
        fitting = [d for d in _DTYPES if np.can_cast(left, d) and np.can_cast(right, d)]
        options["dtype"] = str(rng.choice(fitting if fitting and rng.random() < 0.9 else _DTYPES))
        if overflow == "check" and device == "cpu" and rng.random() < 0.15:
            options["dtype"] = "object"
    result = _result(left, right, options)
    chosen = _AXES[0] if rng.random() < 0.6 else _AXES[rng.integers(len(_AXES))]
    axes = dict(zip("ab", chosen, strict=True))
    top = math.isqrt(np.iinfo(result).max // max(1, lengths["k"])) if overflow == "check" and result.kind in "iu" else None
    arrays = {name: (_integers(rng, kind, tuple(lengths[x] for x in axes[name]), top),) for name, kind in (("a", left), ("b", right))}
    shape = tuple(lengths[x] for x in result_axes(*chosen))
    if result.kind in "iu" and rng.random() < 0.25:
        arrays["c"], axes["c"] = (_integers(rng, str(result), shape, top),), result_axes(*chosen)
        options["dtypes"]["c"] = (str(result),)
    if result.kind in "iu" and rng.random() < 0.2:
        options["out"] = True
    if rng.random() < 0.2:
        options["threads"] = int(rng.integers(1, 4))
    options |= on_gpu(rng, device)
    layouts = draw_layouts(rng, arrays, LAYOUTS) | draw_layouts(rng, ["out"], WRITABLE)
    return Case("integers", catalogue("PLUS_TIMES", str(result)), arrays, axes, layouts, options, draw_device(rng, device))


def _result(left: Any, right: Any, options: Any) -> np.dtype[Any]:
    """Return the dtype of the product: the one asked for, or NumPy's; without a request, int8 is computed in int16 unless it wraps."""
    asked = options.get("dtype")
    common: np.dtype[Any] = np.result_type(np.dtype(left), np.dtype(right)) if asked is None else np.dtype(asked)
    if asked is None and options.get("overflow", "check") == "check" and str(common) == "int8":
        return np.dtype(np.int16)
    return common


def _integers(rng: Rng, dtype: str, shape: tuple[int, ...], top: int | None) -> Array:
    """Draw numbers of the whole range, many of them at its ends; or numbers around ±`top`, below which sums of products are in range."""
    info = np.iinfo(dtype)
    low, high = int(info.min), int(info.max)
    if top is not None and rng.random() < 0.9:
        reach = max(1, int(top * rng.choice([0.3, 0.9, 1.0, 1.1])))
        low, high = max(low, -reach), min(high, reach)
    values = rng.integers(low, high, shape, dtype=dtype, endpoint=True)
    return np.where(rng.random(shape) < 0.3, rng.choice(np.array([low, high], dtype), shape), values)


def _check(case: Case) -> Complaint | None:
    options = case.options
    given = {name: case.placed(name) for name in case.arrays}
    a, b, *rest = (np.array(host(v)) for (v,) in given.values())
    left, right = (v.astype(v.dtype.newbyteorder("=")) for v in (a, b))
    c = rest[0].astype(rest[0].dtype.newbyteorder("=")) if rest else None
    result, wraps = _result(left.dtype, right.dtype, options), options.get("overflow") == "wrap"
    arguments: dict[str, Any] = {name: options[name] for name in ("overflow", "dtype", "threads") if name in options}
    arguments |= {"device": case.device} | ({"c": given["c"][0]} if "c" in given else {})
    exact = np.matmul(left.astype(object), right.astype(object)) if left.shape[-1] else np.zeros(np.matmul(left, right).shape, object)
    exact = np.asarray(exact if c is None else exact + c.astype(object), dtype=object)
    out: Any = None
    if options.get("out"):
        place = Case("out", catalogue("PLUS_TIMES", str(result)), {"out": (np.zeros(exact.shape, result),)}, {}, case.layouts,
                     {"on the GPU": options.get("on the GPU")})  # fmt: skip
        (out,) = place.placed("out")
        arguments["out"] = out
    found = attempt(sr.matmul, given["a"][0], given["b"][0], sr.PLUS_TIMES, **arguments)
    required: dict[type[Exception], str] = {}
    if "dtype" in options and not (np.can_cast(left.dtype, result) and np.can_cast(right.dtype, result)):
        required[sr.DTypeError] = "the dtype cannot hold the operands"
    elif "dtype" in options and not wraps and result == np.int8:
        required[sr.DTypeError] = "there are no checked sums in int8"
    elif wraps and result.kind not in "iu":
        required[sr.DTypeError] = "floats do not wrap"
    elif result.kind == "f":
        raise Unjudged("numbers of 64 bits are rounded to floats")
    complaint = judged(found, {sr.OverflowRiskError: not wraps and result.kind in "iu" and _could_overflow(case, result, left, right, c)},
                       required)  # fmt: skip
    for name, now in given.items():
        complaint = complaint or changed(case, name, now)
    if complaint is not None or found.error is not None:
        return complaint
    if out is not None and found.result is not out:
        return Complaint("out", "the result is not out")
    product = np.asarray(host(found.result), dtype=object) if result.kind == "O" else host(found.result)
    want = exact
    if wraps:
        want = np.asarray(np.matmul(left, right, dtype=result))
        want = want if c is None else np.add(want, c, dtype=result)
    return compared(product, want, result)


def _could_overflow(case: Case, result: np.dtype[Any], a: Array, b: Array, c: Array | None) -> bool:
    subject = catalogue("PLUS_TIMES", str(result))
    return product_could_overflow(subject, (a,), (b,), None if c is None else (c,), a.shape[-1])[0]


ENTRIES = {"integers": Entry(0.8, _draw, _check)}
