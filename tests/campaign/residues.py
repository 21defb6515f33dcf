"""Products and closures modulo p by Python's integers: sums of many blocks, any dtype that holds p, and pivots without an inverse."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import semiring as sr
from tests.campaign.cases import Case, Complaint, Entry, attempt, changed, compared, judged
from tests.campaign.lawful import draw_modulus, modulo
from tests.campaign.layouts import WRITABLE, host
from tests.campaign.products import draw_device, draw_layouts, draw_size, on_gpu
from tests.campaign.subjects import SIGNED, UNSIGNED, Array, Rng, Subject, kernel_draws

__all__ = ["ENTRIES"]

_LONG = (256, 257, 512, 513, 1023, 2049, 5000)
"""Lengths of sums, around the steps of a block."""


def _modulo(rng: Rng) -> tuple[int, Subject]:
    p = draw_modulus(rng)
    fitting = [d for d in ("int8", *SIGNED, *UNSIGNED) if np.iinfo(d).max >= p]
    return p, modulo(p, "int64" if rng.random() < 0.4 else str(rng.choice(fitting)))


def _draw_product(rng: Rng, given: Subject, device: str) -> Case:
    p, subject = _modulo(kernel_draws(rng, given, device))
    long = rng.random() < 0.5
    m, n = (draw_size(rng, 4 if long else 65) for _ in range(2))
    k = int(rng.choice(_LONG)) if long else draw_size(rng, 65)
    shapes, axes = {"a": (m, k), "b": (k, n)}, {"a": ("m", "k"), "b": ("k", "n")}
    if rng.random() < 0.3:
        shapes["c"], axes["c"] = (m, n), ("m", "n")
    arrays = {name: subject.draw(rng, shape, zeros=[0.0, 0.3][rng.integers(2)]) for name, shape in shapes.items()}
    if rng.random() < 0.3:  # the largest sums
        arrays |= {name: (np.full_like(arrays[name][0], [p - 1, p // 2, (p + 1) // 2][rng.integers(3)]),) for name in "ab"}
    options: dict[str, Any] = {"out": True} if rng.random() < 0.2 else {}
    options |= {"threads": int(rng.integers(1, 4))} if rng.random() < 0.3 else {}
    layouts = draw_layouts(rng, arrays) | draw_layouts(rng, ["out"], WRITABLE)
    return Case("residues", subject, arrays, axes, layouts, options | on_gpu(rng, device), draw_device(rng, device))


def _check_product(case: Case) -> Complaint | None:
    p, options = _modulus(case), case.options
    given = {name: case.placed(name) for name in case.arrays}
    arguments: dict[str, Any] = {"device": case.device, "threads": options.get("threads")}
    arguments |= {"c": given["c"][0]} if "c" in given else {}
    a, b, *old = (v.astype(object) for (v,) in case.arrays.values())
    want = (_times(a, b) + (old[0] if old else 0)) % p
    dtype = np.dtype(np.int16) if case.subject.dtypes == (np.dtype(np.int8),) else case.subject.dtypes[0]
    if options.get("out"):
        place = Case("out", modulo(p, str(dtype)), {"out": (np.zeros(want.shape, dtype),)}, {}, case.layouts,
                     {"on the GPU": options.get("on the GPU")})  # fmt: skip
        (arguments["out"],) = place.placed("out")
    found = attempt(sr.matmul, given["a"][0], given["b"][0], case.subject.semiring, **arguments)
    narrow = case.device == "reference" and (p - 1) ** 2 + p > np.iinfo(dtype).max  # this engine computes in the dtype
    complaint = judged(found, {sr.OverflowRiskError: narrow})
    if complaint is None and found.error is not None:
        return None
    for name, now in given.items():
        complaint = complaint or changed(case, name, now)
    if complaint is None and "out" in arguments and found.result is not arguments["out"]:
        return Complaint("out", "the result is not out")
    return complaint or compared(host(found.result), want, dtype)


def _modulus(case: Case) -> int:
    return int(case.subject.semiring.name.partition("-")[2])


def _times(a: Array, b: Array) -> Array:
    return np.matmul(a, b) if a.shape[1] else np.zeros((a.shape[0], b.shape[1]), object)


# Closures.


def _draw_closure(rng: Rng, given: Subject, device: str) -> Case:
    p, subject = _modulo(kernel_draws(rng, given, device))
    n = draw_size(rng, 17 if rng.random() < 0.9 else 65)
    a = subject.draw(rng, (n, n), zeros=[0.0, 0.5, 0.9][rng.integers(3)])
    if rng.random() < (0.2 if _prime(p) else 0.7):  # no cycles, whatever p is
        a = (np.triu(a[0], 1),)
    options: dict[str, Any] = {"method": ("iterative", "blocked", "recursive")[rng.integers(3)]} if rng.random() < 0.5 else {}
    options |= {"block": int(rng.integers(1, 18))} if rng.random() < 0.4 else {}
    options |= {"reflexive": False} if rng.random() < 0.3 else {}
    layouts = draw_layouts(rng, ["a"])
    return Case(
        "closure of residues", subject, {"a": a}, {"a": ("n", "n")}, layouts, options | on_gpu(rng, device), draw_device(rng, device)
    )


def _prime(p: int) -> bool:
    return all(p % d for d in range(2, math.isqrt(p) + 1))


def _check_closure(case: Case) -> Complaint | None:
    p, options = _modulus(case), case.options
    a = case.placed("a")
    edges = case.arrays["a"][0].astype(object)
    star = _inverse(edges, p)
    arguments = {name: options[name] for name in ("method", "block", "reflexive") if name in options}
    found = attempt(sr.closure, a[0], case.subject.semiring, device=case.device, **arguments)
    top = int(np.iinfo(case.subject.dtypes[0]).max)
    overflow = (p - 1) ** 2 + p - 1 > top
    required: dict[type[Exception], str] = {} if star is not None or overflow else {sr.DivergenceError: "a pivot has no star"}
    complaint = judged(found, {sr.OverflowRiskError: overflow, sr.DivergenceError: star is None}, required) or changed(case, "a", a)
    if complaint is not None or found.error is not None:
        return complaint
    if star is None:
        return Complaint("accepted", "accepted, though a pivot has no star")
    want = star if options.get("reflexive", True) else _times(edges, star) % p
    return compared(host(found.result), want, np.dtype(np.int16) if top == 127 else case.subject.dtypes[0])


def _inverse(a: Array, p: int) -> Array | None:
    """Return (I − A)⁻¹ modulo p, vertex by vertex; None where a pivot has no star: 1, and for a composite p any but 0."""
    star, prime = a.copy(), _prime(p)
    for k in range(len(a)):
        pivot = star[k, k]
        if pivot == 1 or (pivot and not prime):
            return None
        s = pow(1 - int(pivot), -1, p)
        row, column = star[k].copy(), star[:, k].copy()
        star = (star + np.outer(column, row) * s) % p
        star[k], star[:, k] = row * s % p, column * s % p
        star[k, k] = (s - 1) % p
    return np.asarray((star + np.eye(len(a), dtype=int).astype(object)) % p)


ENTRIES = {
    "residues": Entry(0.6, _draw_product, _check_product),
    "closure of residues": Entry(0.4, _draw_closure, _check_closure),
}
