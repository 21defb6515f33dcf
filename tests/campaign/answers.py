"""Closures as they should be: by squaring where ⊕ is idempotent, by series or elimination elsewhere, and what refusing them needs."""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from tests.campaign.arithmetic import Near
from tests.campaign.cases import Unjudged
from tests.campaign.formulas import ARITHMETIC, ranges
from tests.campaign.oracles import Algebra, close_by_squaring, operand_ranges, product
from tests.campaign.subjects import Array, Subject, Values

__all__ = ["Answer", "answer_for", "closure_could_overflow"]


@dataclass(frozen=True)
class Answer:
    """The closure of one matrix.

    Attributes
    ----------
    algebra : Algebra
    edges : tuple
        The matrix, as the algebra computes with it.
    star : tuple
        A*; without a meaning where `diverging`.
    closure : tuple
        A* or A⁺, whichever was asked for.
    divergent : bool array
        Vertices on a cycle c with 1 ⊕ c ≠ 1.
    slack : float
        How far rounding may move an element, beyond what the elements say of themselves.
    """

    algebra: Algebra
    edges: tuple[Any, ...]
    star: tuple[Any, ...]
    closure: tuple[Any, ...]
    divergent: Array
    slack: float = 0.0

    def reached(self, values: tuple[Any, ...] | None = None) -> Array:
        """Which pairs have an element other than the zero."""
        found = self.star if values is None else values
        zero = self.algebra.zero(found[0].shape)
        return np.asarray(np.logical_or.reduce([plain(v) != plain(z) for v, z in zip(found, zero, strict=True)]))


def plain(value: Any) -> Array:
    return np.asarray(value.value if isinstance(value, Near) else value)


def answer_for(subject: Subject, a: Values, *, reflexive: bool, real: bool = False) -> Answer:
    """The closure of a matrix; `real`: its weights are no multiples of anything, so that sums round."""
    n = int(a[0].shape[-1])
    if subject.closure == "star":
        return _by_star(subject, a, reflexive)
    largest = max((r.magnitude for r in operand_ranges(subject, a)), default=0)
    reach = 4.0 * (n + 1) * largest if "mul" not in subject.operations else float(min(largest, 1e30)) ** min(8, n + 1)
    algebra = Algebra(subject, reach)
    edges = algebra.lift(a)
    star, divergent = close_by_squaring(algebra, edges)
    closed = star if reflexive else product(algebra, edges, star)[0]
    slack = 0.0
    if algebra.near and any(np.any(v.error) for v in (*star, *closed)) and not divergent.any():
        if not real:
            raise Unjudged("what was drawn to be exact is not")
        finite = [x[np.isfinite(x)] for v in (*star, *edges) for x in [np.abs(plain(v))]]
        # A path of up to n edges is summed by whoever computes it with n roundings at most, and so is ours.
        slack = 4 * n * algebra.unit * max((float(x.max()) for x in finite if x.size), default=0.0)
        star, closed = (tuple(Near(v.value, np.full(v.shape, slack)) for v in x) for x in (star, closed))
    return Answer(algebra, edges, star, closed, divergent, slack)


def _by_star(subject: Subject, a: Values, reflexive: bool) -> Answer:
    name, algebra = subject.semiring.name, Algebra(subject)
    edges = algebra.lift(a)
    star: Any
    if name == "gf2":
        star, divergent = _over_two(a[0])
    elif a[0].dtype == object:
        star, divergent = _eliminated(a[0])
    else:
        with np.errstate(all="ignore"):
            star, divergent = (_inverse if name == "plus-times" else _log_series)(plain(edges[0]), algebra.unit)
    closed = product(algebra, edges, (star,))[0] if not reflexive and not divergent.any() else (star,)
    return Answer(algebra, edges, (star,), closed, divergent)


def _inverse(a: Array, unit: float) -> tuple[Near, Array]:
    """(I − A)⁻¹, where it is known: for rows of A whose magnitudes add up to ½ at most, and for the sums of non-negative numbers.

    In the first case elimination without pivoting, by Gauss and Jordan or by blocks, is stable, and so it is in the second one, where I − A
    is an M-matrix: the error is below c·n·u·‖I − A‖·‖(I − A)⁻¹‖² (Higham 2002, ch. 14), here with c = 16 for either of two computations.
    A loop of exactly 1 has no star; non-negative numbers diverge where the spectral radius is 1 or more.
    """
    n = len(a)
    divergent = np.zeros(n, dtype=bool)
    if not n:
        return Near(np.zeros((0, 0)), np.zeros((0, 0))), divergent
    divergent[0] = a[0, 0] == 1
    if (a >= 0).all():
        radius = _radius(a)
        if not divergent[0] and 0.97 < radius < 1.03:
            raise Unjudged("the spectral radius is too near 1")
        divergent |= radius >= 1
    star = np.linalg.inv(np.eye(n) - np.where(divergent[:, None], 0, a))
    size = np.abs(star).sum(axis=1).max()
    return Near(star, np.full(star.shape, 16 * n * unit * (1 + np.abs(a).sum(axis=1).max()) * size**2)), divergent


def _radius(a: Array) -> float:
    """The spectral radius of non-negative numbers, a few percent too large at most: the 1,024-th root of the norm of the 1,024-th power."""
    logarithm = 0.0
    for _ in range(10):
        size = a.sum(axis=1).max()
        if size == 0:
            return 0.0
        a, logarithm = (a / size) @ (a / size), 2 * (logarithm + np.log(size))
    return float(np.exp((logarithm + np.log(max(a.sum(axis=1).max(), 1e-300))) / 1024))


def _log_series(a: Array, unit: float) -> tuple[Near, Array]:
    """log Σ Pᵏ for P = exp(a) whose rows add up to ½ at most, by squaring: all terms are positive, so that none cancels.

    An element is the logarithm of a sum over walks. Each of the operations that a walk takes part in (at most n sums and twice as many
    products as it has edges, of which those that matter are few) moves it by a few units of the largest logarithm.
    """
    n = len(a)
    if n and np.isinf(a[~np.eye(n, dtype=bool)]).all():  # loops alone: 1/(1 − p) loses nothing near p = 1
        loops = np.diagonal(a)
        star = np.where(np.eye(n, dtype=bool), np.where(np.isinf(loops), 0, -np.log(-np.expm1(loops))), -np.inf)
        return Near(star, np.where(np.isfinite(star), 16 * unit * np.maximum(1, np.abs(star)), 0.0)), loops >= 0
    p = np.exp(a)
    star, power = np.eye(n) + p, p
    for _ in range(7):
        power = power @ power
        star = star + power @ star
    star = np.log(star)
    finite = np.concatenate([x[np.isfinite(x)] for x in (star, a)]) if n else np.zeros(0)
    largest = max(1.0, float(np.abs(finite).max())) if finite.size else 1.0
    return Near(star, np.where(np.isfinite(star), 16 * (n + 8) * unit * largest, 0.0)), np.zeros(n, dtype=bool)


def _over_two(a: Array) -> tuple[Array, Array]:
    """(I − A)⁻¹ over the field of two elements, vertex by vertex; a pivot of 1 has no star."""
    star, divergent = a.copy(), np.zeros(len(a), dtype=bool)
    for k in range(len(a)):
        if star[k, k]:
            divergent[k] = True
            break
        row, column = star[k].copy(), star[:, k].copy()
        star ^= np.outer(column, row)
    return star ^ np.eye(len(a), dtype=bool), divergent


def _eliminated(a: Array) -> tuple[Array, Array]:
    """(I − A)⁻¹ of fractions, vertex by vertex; a pivot of 1 has no star, nor one above 1 where nothing is negative."""
    star, divergent, sums = a.copy(), np.zeros(len(a), dtype=bool), bool((a >= 0).all())
    for k in range(len(a)):
        if star[k, k] == 1 or (sums and star[k, k] > 1):
            divergent[k] = True
            break
        s = 1 / (1 - Fraction(star[k, k]))
        row, column = star[k].copy(), star[:, k].copy()
        for i in range(len(a)):
            for j in range(len(a)):
                if i == k or j == k:
                    star[i, j] = s - 1 if i == j else s * row[j] if i == k else column[i] * s
                else:
                    star[i, j] = star[i, j] + column[i] * s * row[j]
    unit = np.empty_like(star)
    unit[...] = [[Fraction(i == j) for j in range(len(a))] for i in range(len(a))]
    return star + unit, divergent


def closure_could_overflow(subject: Subject, a: Values, star: tuple[Any, ...], n: int) -> bool:
    """Whether refusing the closure of a matrix for what might overflow is what the documentation says.

    Tropical integers keep half of their range for ∞: the longest distance and one edge have to stay below it, or three paths of n edges
    where a weight pulls ∞ back. Where components add up, three paths have to. Any other ⊗ has to keep three walks, or the square of what
    its extremum moves between, inside the dtype; and what is neither sums nor an extremum is not promised at all.
    """
    found = operand_ranges(subject, a)
    largest = max((r.magnitude for r in found), default=0)
    longest = max((_largest(plain(v)) for v in star), default=0.0)
    if "f" in subject.kinds and not subject.kinds & {"i", "u"}:
        top = float(min(np.finfo(d).max for d in subject.dtypes)) / 4
        return bool(3.0 * (n + 1) * largest >= top or longest >= top or ("mul" in subject.operations and largest**2 >= top))
    if subject.kinds <= {"b", "O"} or not subject.operations & ARITHMETIC:
        return False
    half = min(np.iinfo(d).max for d in subject.dtypes if d.kind in "iu") // 2
    sums = all(m.op == "add" and {x.args for x in m.args} == {(0, c), (1, c)} for c, m in enumerate(subject.mul))
    if not subject.structured and sums and math.isinf(subject.zero[0]):
        low, high = found[0].low or 0, found[0].high or 0
        pulls = low < 0 if subject.zero[0] > 0 else high > 0
        return bool(3 * n * largest >= half if pulls else longest + largest >= half or largest >= half)
    if subject.structured:
        return bool(3 * n * largest >= half - 1) if sums and subject.selective else True
    if found[0].low is None:
        return False
    walk = found
    for _ in range((3 * max(n, 1)).bit_length()):
        results, inside, muddled = ranges(subject.mul, walk, walk, tight=True)
        if muddled and not any(r.infinite for r in found):
            muddled = False
        walk = [x | y for x, y in zip(walk, results, strict=True)]
        if inside.magnitude >= 2 * half or muddled or (subject.dtypes[0].kind == "u" and inside.low < 0):
            return True
    return False


def _largest(values: Array) -> float:
    if values.dtype == object:
        return min(max((abs(v) for v in values.ravel() if abs(v) != math.inf), default=0), sys.float_info.max)
    finite = values[np.isfinite(values)]
    return float(np.abs(finite).max()) if finite.size else 0.0
