"""Products, closures and paths by their definitions, computed from a subject's formulas and by nothing of the library."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from tests.campaign.arithmetic import Near, plain_table, rounded_table, unit_of
from tests.campaign.formulas import ARITHMETIC, BITS, REAL, Formula, Range, evaluate, operations, range_of, ranges
from tests.campaign.subjects import Array, Subject, Values

__all__ = [
    "Algebra",
    "broadcast",
    "close_by_squaring",
    "difference",
    "identity",
    "operand_ranges",
    "product",
    "product_could_overflow",
    "witness_of",
]

_EXACT = 2**53
_REDUCTIONS = {"min": np.minimum, "max": np.maximum, "add": np.add, "or": np.bitwise_or, "and": np.bitwise_and, "xor": np.bitwise_xor}


class Algebra:
    """⊕ and ⊗ of a subject on arrays that hold its elements exactly.

    Truth values and bits stay as they are. Whole numbers are floats, with ∞ as itself, where `reach` says that float64 holds all of
    them, and Python's own otherwise. Floats carry a bound on the rounding of whoever computes in the subject's dtype.
    """

    def __init__(self, subject: Subject, reach: float = 0.0) -> None:
        self.subject = subject
        kinds = subject.kinds
        self.near = "f" in kinds
        self.native = not kinds & {"f", "O"} and not subject.operations & ARITHMETIC and "const" not in subject.operations
        beyond = np.dtype(np.uint64) in subject.dtypes and -1 in (*subject.zero, *subject.one)  # ~0, which float64 would round
        self.objects = "O" in kinds or beyond or (not self.native and not self.near and reach >= _EXACT)
        precision = min((d for d in subject.dtypes if d.kind == "f"), key=lambda d: d.itemsize, default=np.dtype(float))
        self.table = rounded_table(precision) if self.near else plain_table()
        self.unit = unit_of(precision)

    def lift(self, values: Values) -> tuple[Any, ...]:
        """A subject's arrays as this computes with them."""
        found: list[Any] = []
        for c, v in enumerate(values):
            if self.native or v.dtype.kind == "O":
                found.append(v)
                continue
            infinities = self.subject.infinities(c)
            array = v.astype(object) if self.objects else v.astype(float)
            for i in infinities:
                array = np.where(v == i, math.inf if i > 0 else -math.inf, array)
            found.append(Near(array) if self.near else array)
        return tuple(found)

    def constant(self, numbers: Sequence[Any], codes: Sequence[Any], shape: tuple[int, ...]) -> tuple[Any, ...]:
        """An element everywhere; `codes` are its numbers as the dtypes write them."""
        if self.native:
            return tuple(np.full(shape, code, dtype=d) for code, d in zip(codes, self.subject.dtypes, strict=True))
        every = [
            code if d.kind == "u" and number == -1 else number for number, code, d in zip(numbers, codes, self.subject.dtypes, strict=True)
        ]
        arrays = [np.full(shape, number, dtype=object if self.objects else float) for number in every]
        return tuple(map(Near, arrays)) if self.near else tuple(arrays)

    def zero(self, shape: tuple[int, ...]) -> tuple[Any, ...]:
        return self.constant(self.subject.zero, self.subject.zeros, shape)

    def one(self, shape: tuple[int, ...]) -> tuple[Any, ...]:
        return self.constant(self.subject.one, self.subject.ones, shape)

    def add(self, x: Sequence[Any], y: Sequence[Any]) -> tuple[Any, ...]:
        return self._apply(self.subject.add, x, y)

    def mul(self, x: Sequence[Any], y: Sequence[Any]) -> tuple[Any, ...]:
        return self._apply(self.subject.mul, x, y)

    def _apply(self, roots: Sequence[Formula], x: Sequence[Any], y: Sequence[Any]) -> tuple[Any, ...]:
        with np.errstate(all="ignore"):
            return evaluate(roots, x, y, self.table)

    def sum(self, terms: Sequence[Any], start: Sequence[Any]) -> tuple[Any, ...]:
        """start ⊕ the terms along the last axis but one."""
        (root, *others) = self.subject.add
        simple = not others and root.op in _REDUCTIONS and root.args == (Formula("var", (0, 0)), Formula("var", (1, 0)))
        if simple and not (self.near and root.op == "add"):
            operation = _REDUCTIONS[root.op]
            (values,) = terms
            if not values.shape[-2]:
                return tuple(start)
            if root.op in BITS and values.dtype.kind == "f":
                values = values.astype(np.int64)
            if not self.near:
                return self.add(start, (operation.reduce(values, axis=-2),))
            error = 0.0 if isinstance(values.error, float) else values.errors().max(axis=-2)
            return self.add(start, (Near(operation.reduce(values.value, axis=-2), error),))
        if simple:
            return (self._plain_sum(terms[0], start[0]),)
        length = terms[0].shape[-2]
        while (count := terms[0].shape[-2]) > 1:  # by halves, as ⊕ is associative
            half = count // 2
            pairs = self.add(_cut(terms, slice(0, half)), _cut(terms, slice(half, 2 * half)))
            if count % 2:
                pairs = tuple(map(_joined, pairs, _cut(terms, slice(2 * half, count))))
            terms = pairs
        if not length:
            return tuple(start)
        found = self.add(start, _cut(terms, 0))
        if self.near and not self.subject.selective:  # one by one, every sum rounds what is there already
            found = tuple(Near(v.value, v.error + np.where(v.errors() > 0, length * self.unit * np.abs(v.value), 0.0)) for v in found)
        return found

    def _plain_sum(self, terms: Near, start: Near) -> Near:
        """A sum whose bound holds in whatever order it is taken."""
        count, value = terms.shape[-2] + 1, terms.value.sum(axis=-2) + start.value
        size = np.abs(terms.value).sum(axis=-2) + np.abs(start.value)
        error = terms.errors().sum(axis=-2) + start.errors()
        grid = 2.0**10
        fits = size * grid < 1 / self.unit
        whole = (terms.value * grid == np.rint(terms.value * grid)).all(axis=-2) & (start.value * grid == np.rint(start.value * grid))
        error = error + np.where(fits & whole, 0.0, count * self.unit * (size + error))
        return Near(value, error if error.any() else 0.0)


def _cut(values: Sequence[Any], index: Any) -> tuple[Any, ...]:
    return tuple(v[..., index, :] for v in values)


def _joined(x: Any, y: Any) -> Any:
    if isinstance(x, Near):
        return Near(np.concatenate([x.value, y.value], axis=-2), np.concatenate([x.errors(), y.errors()], axis=-2))
    return np.concatenate([x, y], axis=-2)


def terms_of(algebra: Algebra, a: Sequence[Any], b: Sequence[Any]) -> tuple[Any, ...]:
    """a_ik ⊗ b_kj, of shape (…, m, k, n)."""
    terms = algebra.mul([v[..., :, :, None] for v in a], [v[..., None, :, :] for v in b])
    shape = np.broadcast_shapes(a[0][..., :, :, None].shape, b[0][..., None, :, :].shape)
    return tuple(broadcast(v, shape) for v in terms)


def broadcast(value: Any, shape: tuple[int, ...]) -> Any:
    """A formula may use one operand alone, or none."""
    if isinstance(value, Near):
        return Near(
            np.broadcast_to(value.value, shape), value.error if isinstance(value.error, float) else np.broadcast_to(value.error, shape)
        )
    return np.broadcast_to(value, shape)


def product(
    algebra: Algebra, a: Sequence[Any], b: Sequence[Any], c: Sequence[Any] | None = None
) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """a ⊗ b, or c ⊕ a ⊗ b, of stacks of matrices, and its terms."""
    terms = terms_of(algebra, a, b)
    shape = (*terms[0].shape[:-2], terms[0].shape[-1])
    start = algebra.zero(shape) if c is None else c
    return tuple(broadcast(v, shape) for v in algebra.sum(terms, start)), terms


def witness_of(values: Sequence[Any], terms: Sequence[Any], start: Sequence[Any]) -> tuple[Array, Array]:
    """The lowest k whose term is the value, −1 where the start is it already; and where rounding leaves the choice open."""
    plain = [[v.value if isinstance(v, Near) else v for v in x] for x in (values, terms, start)]
    if terms[0].shape[-2] == 0:
        return np.full(values[0].shape, -1), np.zeros(values[0].shape, dtype=bool)
    wins = np.logical_and.reduce([np.asarray(t == v[..., None, :], dtype=bool) for v, t in zip(plain[0], plain[1], strict=True)])
    kept = np.logical_and.reduce([np.asarray(v == s, dtype=bool) for v, s in zip(plain[0], plain[2], strict=True)])
    uncertain = np.zeros(values[0].shape, dtype=bool)
    for t in terms:
        if isinstance(t, Near) and not isinstance(t.error, float):
            uncertain |= (t.errors() > 0).any(axis=-2)
    return np.where(kept, -1, wins.argmax(axis=-2)), uncertain


def identity(algebra: Algebra, n: int) -> tuple[Any, ...]:
    """The matrix I."""
    diagonal = np.eye(n, dtype=bool)
    zero, one = algebra.zero((n, n)), algebra.one((n, n))
    if algebra.near:
        return tuple(Near(np.where(diagonal, u.value, z.value)) for z, u in zip(zero, one, strict=True))
    return tuple(np.where(diagonal, u, z) for z, u in zip(zero, one, strict=True))


def close_by_squaring(algebra: Algebra, a: Sequence[Any]) -> tuple[tuple[Any, ...], Array]:
    """A* = (I ⊕ A)^n over an idempotent ⊕, or I ⊕ A ⊕ … ⊕ Aⁿ; and which vertices lie on a cycle c with 1 ⊕ c ≠ 1: then there is none."""
    n = int(a[0].shape[-1])
    unit = identity(algebra, n)
    star = algebra.add(unit, a)
    if algebra.subject.closure == "counting":  # no walk twice: I ⊕ A(I ⊕ A(…)), of up to n edges
        for _ in range(n):
            star = algebra.add(unit, product(algebra, a, star)[0])
    else:
        for _ in range(max(1, n - 1).bit_length()):  # walks of up to 2^i edges, at least n of them, so that every cycle is among them
            star, _ = product(algebra, star, star)
    found = [
        np.diagonal(v.value if algebra.near else v) != np.diagonal(u.value if algebra.near else u) for v, u in zip(star, unit, strict=True)
    ]
    return star, np.logical_or.reduce(found)


def difference(algebra: Algebra, found: Values, want: Sequence[Any], *, skip: Any = False) -> str:
    """How a result differs from what it should be; empty where it does not."""
    for c, (x, w, dtype) in enumerate(zip(found, want, algebra.subject.dtypes, strict=True)):
        shape = w.shape
        if x.shape != shape:
            return f"shape {x.shape} instead of {shape}"
        if x.dtype != dtype:
            return f"dtype {x.dtype} instead of {dtype}"
        if algebra.native or x.dtype == object:
            wrong, expected = np.asarray(x != w, dtype=bool), w
        else:
            value = algebra.lift(tuple(found))[c]
            expected, actual = (w.value, value.value) if algebra.near else (w, value)
            wrong = np.asarray(actual != expected, dtype=bool)
            if algebra.near and wrong.any() and dtype.kind == "f":
                with np.errstate(all="ignore"):
                    bound = w.errors() + unit_of(dtype) * np.abs(expected)
                    near = (np.abs(actual - expected) <= bound) | np.isinf(w.errors())
                exactly = (w.errors() == 0) & (expected == expected.astype(dtype))
                wrong &= exactly | ~near
        wrong &= ~np.broadcast_to(np.asarray(skip, dtype=bool), wrong.shape)
        if wrong.any():
            where = tuple(int(i) for i in np.argwhere(wrong)[0])
            part = f" of component {c}" if len(found) > 1 else ""
            bound = f" ± {float(w.errors()[where]):.3g}" if algebra.near and w.errors()[where] else ""
            first = f"{list(where)}: {x[where]!r} instead of {expected[where]!r}{bound}"
            return f"{int(wrong.sum())} of {wrong.size} elements{part} differ, first at {first}"
    return ""


# Whether refusing what might overflow is justified.


def operand_ranges(subject: Subject, values: Values) -> list[Range]:
    if "O" in subject.kinds:
        return [Range(None, None)] * len(values)
    return [range_of(v, subject.infinities(c)) for c, v in enumerate(values)]


def product_could_overflow(subject: Subject, a: Values, b: Values, c: Values | None, k: int) -> tuple[bool, float]:
    """Whether something inside a product could leave the dtypes, or muddle ∞; and the largest magnitude there.

    Integers keep half of their range for ∞ where that is their zero, and a third of this where it meets negative ones.
    """
    if "O" in subject.kinds:
        return False, 0.0
    left, right = operand_ranges(subject, a), operand_ranges(subject, b)
    results, inside, muddled = ranges(subject.mul, left, right)
    sums = bool(operations(subject.add) & (ARITHMETIC | REAL))
    reach = inside.magnitude
    total = results
    if sums:
        total = [r if r.low is None else Range(min(0, r.low) * k, max(0, r.high) * k, r.infinite) for r in results]
        reach = max([reach, *(r.magnitude for r in total)])
        if any(v.size for v in (*a, *b)):
            old = operand_ranges(subject, c) if c is not None else [Range(0, 0)] * len(total)
            _, outer, confused = ranges(subject.add, old, total)
            reach, muddled = max(reach, outer.magnitude), muddled or confused
    low = min([r.low for r in (inside, *total) if r.low is not None], default=0)
    risky = False
    for component, dtype in enumerate(subject.dtypes):
        if dtype.kind in "iu":
            info = np.iinfo(dtype)
            absorbing = isinstance(subject.zero[component], float)
            limit = info.max // 6 - 1 if absorbing and subject.mul[component].op == "add" else info.max - 1
            risky |= reach > limit or (dtype.kind == "u" and (low < 0 or "sub" in subject.operations)) or muddled
        elif dtype.kind == "f":
            risky |= reach > float(np.finfo(dtype).max) / 4
    return risky, reach
