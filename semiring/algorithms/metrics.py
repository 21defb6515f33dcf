"""Metrics between rows: for each name, the terms that features contribute, their sum, and the function of the sums.

A metric is a few operations to record, and rows that may be prepared, such as rows of length 1 for the cosine. Several sums, such as
numerator and denominator, are the components of one product. The values are those of `scipy.spatial.distance.cdist`, also where a
denominator is 0. No law of a semiring is asked: |x − y| is not even associative.

>>> braycurtis = METRICS["braycurtis"]
>>> braycurtis.terms(1.0, 3.0), braycurtis.finish((2.0, 4.0), 1)
((2.0, 4.0), 0.5)
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from semiring.algebra import ops
from semiring.algebra.definition import Semiring
from semiring.algebra.expression import Expr
from semiring.algebra.tracing import record
from semiring.arrays.devices import namespace
from semiring.common.errors import SemiringError, or_similar

__all__ = ["ALIASES", "METRICS", "Metric", "finished", "formula", "metric_named", "minkowski", "padded", "summed"]

Array = Any
_SAMPLES = (-5, -1, 0, 2, 7)
"""Numbers that an identity of ⊕ has to leave as they are."""


@dataclass(frozen=True)
class Metric:
    """A metric or kernel: operations to record, and the treatment of rows and weights."""

    terms: Callable[[Any, Any], Any]  # of the values x and y of a feature: a number, or a tuple for several sums
    finish: Callable[[Any, Any], Any] | None = None  # of the sum or the tuple of sums, and of the number of features or sum of weights
    add: Callable[[Any, Any], Any] = operator.add
    zero: Any = 0.0
    prepare: Callable[[Array, Array | None], Array] | None = None  # makes rows of rows and weights
    weighs: str = "terms"  # the use of weights: factors of terms, inverse variances, for `prepare`, a choice of features, or none
    truth: bool = False  # numbers are read as truth values
    largest: bool = False  # the largest are the best
    floats: bool = True  # integers and truth values become float64


def _difference(x: Any, y: Any) -> Any:
    return abs(x - y)


def _square(x: Any, y: Any) -> Any:
    return (x - y) * (x - y)


def _relative(x: Any, y: Any) -> Any:
    size = abs(x) + abs(y)
    return abs(x - y) / size if size > 0 else 0.0


def _entropy(x: Any, y: Any) -> Any:
    middle = (x + y) / 2
    return sum(v * ops.log(v / middle) if v > 0 and middle > 0 else 0.0 for v in (x, y))


def _yule(p: Any, n: Any) -> Any:
    half = p[1] * p[2]
    return ops.where(half == 0, 0.0, 2 * half / (p[0] * (n - p[0] - p[1] - p[2]) + half))


def _from_one(s: Any, n: Any) -> Any:
    return 1 - min(max(s, -1), 1)  # rounding may leave a cosine outside of [−1, 1]


def unit_rows(rows: Array, weights: Array | None) -> Array:
    """Divide each row by its length; a row of zeros becomes NaN."""
    xp = namespace(rows)
    if not rows.shape[1]:
        return rows
    rows = rows if weights is None else rows * xp.sqrt(weights)
    largest = abs(rows).max(axis=1, keepdims=True)  # squares of rows of size 1 neither overflow nor vanish
    with _quiet():
        rows = rows / largest
        return rows / xp.sqrt((rows * rows).sum(axis=1, keepdims=True))


def centred_rows(rows: Array, weights: Array | None) -> Array:
    """Subtract the mean of each row, and divide the row by its length."""
    with _quiet():
        weighted, total = (rows, rows.shape[1] or 1) if weights is None else (rows * weights, weights.sum())
        return unit_rows(rows - weighted.sum(axis=1, keepdims=True) / total, weights)


def distributions(rows: Array, weights: Array | None) -> Array:
    """Divide each row by its sum."""
    with _quiet():
        return rows / rows.sum(axis=1, keepdims=True)


def _quiet() -> Any:
    return np.errstate(all="ignore")


METRICS = {
    "cityblock": Metric(_difference),
    "sqeuclidean": Metric(_square),
    "euclidean": Metric(_square, lambda s, n: ops.sqrt(s)),
    "seuclidean": Metric(_square, lambda s, n: ops.sqrt(s), weighs="variances"),
    "chebyshev": Metric(_difference, add=max, weighs="selects"),
    "canberra": Metric(_relative),
    "braycurtis": Metric(lambda x, y: (abs(x - y), abs(x + y)), lambda p, n: p[0] / p[1]),
    "hamming": Metric(lambda x, y: ops.where(x != y, 1.0, 0.0), lambda s, n: s / n),
    "jaccard": Metric(lambda x, y: (abs(x - y), max(x, y)), lambda p, n: ops.where(p[1] == 0, 0.0, p[0] / p[1]), truth=True),
    "cosine": Metric(operator.mul, _from_one, prepare=unit_rows, weighs="rows"),
    "correlation": Metric(operator.mul, _from_one, prepare=centred_rows, weighs="rows"),
    "jensenshannon": Metric(_entropy, lambda s, n: ops.sqrt(max(s, 0) / 2), prepare=distributions, weighs=""),
    "dice": Metric(lambda x, y: (abs(x - y), x * y), lambda p, n: p[0] / (2 * p[1] + p[0]), truth=True),
    "rogerstanimoto": Metric(_difference, lambda s, n: 2 * s / (n + s), truth=True),
    "russellrao": Metric(operator.mul, lambda s, n: (n - s) / n, truth=True),
    "sokalsneath": Metric(lambda x, y: (abs(x - y), x * y), lambda p, n: 2 * p[0] / (p[1] + 2 * p[0]), truth=True),
    "yule": Metric(lambda x, y: (x * y, x * (1 - y), (1 - x) * y), _yule, truth=True),
    "intersection": Metric(min, largest=True),
}  # fmt: skip
"""The metrics by name; `minkowski` makes another."""

ALIASES = {"l1": "cityblock", "manhattan": "cityblock", "l2": "euclidean", "matching": "hamming", "min": "intersection"}
"""Other names of metrics."""


@functools.lru_cache(maxsize=32)
def minkowski(p: float) -> Metric:
    """Return the metric (Σ |x − y|^p)^(1/p), for p > 0.

    >>> minkowski(3).terms(1.0, 3.0)
    8.0
    """
    if p in (1, 2, math.inf):
        return METRICS[{1: "cityblock", 2: "euclidean", math.inf: "chebyshev"}[p]]
    whole = int(p) if p == int(p) <= 64 else None

    def terms(x: Any, y: Any) -> Any:
        return abs(x - y) ** whole if whole is not None else ops.exp(p * ops.log(abs(x - y)))

    return Metric(terms, lambda s, n: ops.exp(ops.log(s) / p))


def metric_named(name: str, p: float) -> Metric:
    """Return the metric of a name; SemiringError lists names that are near."""
    key = name.lower()
    if key == "minkowski":
        return minkowski(p)
    known = METRICS.get(ALIASES.get(key, key))
    if known is None:
        names = sorted([*METRICS, *ALIASES, "minkowski"])
        raise SemiringError(f"metric is {name!r}; {or_similar(key, names, 'the metrics are ' + ', '.join(names))}")
    return known


def formula(mul: Callable[[Any, Any], Any], add: Callable[[Any, Any], Any] | None, finish: Callable[[Any], Any] | None) -> Metric:
    """Return the metric of a caller's operations; the identity of `add` is found by trials.

    >>> formula(max, min, None).zero
    inf
    """
    add = operator.add if add is None else add
    zero = _identity(add)
    sums = zero == 0 and all(add(v, w) == v + w for v in _SAMPLES for w in _SAMPLES)
    return Metric(mul, None if finish is None else lambda s, n: finish(s), add, zero, weighs="terms" if sums else "", floats=False)


def _identity(add: Callable[[Any, Any], Any]) -> Any:
    for zero in (0, math.inf, -math.inf, 1, -1):
        try:
            if all(add(zero, v) == v == add(v, zero) for v in _SAMPLES):
                return zero
        except (ArithmeticError, TypeError, ValueError):  # of bit operations on infinities, for example
            continue
    raise SemiringError("add has no identity among 0, ∞, −∞, 1 and −1; pass metric=semiring.Semiring(…) with its zero, without mul and add")


def summed(metric: Metric, name: str, weighted: bool) -> tuple[Semiring, int]:
    """Return the operations of a product that computes the sums, and the number of sums.

    A product with several sums, or with weights, has structured elements: the value of a feature, and in b its weight as the second
    component. Further components are copies, which no term reads.

    >>> summed(METRICS["cityblock"], "cityblock", True)[0].mul((1.0, 1.0), (4.0, 0.5))
    (1.5, 0.0)
    """
    return _summed(metric.terms, metric.add, metric.zero, name, weighted)


@functools.lru_cache(maxsize=64)
def _summed(terms: Callable[[Any, Any], Any], add: Callable[[Any, Any], Any], zero: Any, name: str, weighted: bool) -> tuple[Semiring, int]:
    try:
        found = terms(1, 1)
    except Exception:  # of the caller's function; recording says what is wrong
        found = zero
    count = len(found) if isinstance(found, tuple) else 1
    width = max(count, 2 if weighted else 1)
    if width == 1:
        return Semiring(name, add, terms, zero, zero), 1

    def mul(a: Any, b: Any) -> Any:
        parts = terms(a[0], b[0])
        parts = parts if isinstance(parts, tuple) else (parts,)
        return (*(b[1] * part if weighted else part for part in parts), *(zero,) * (width - count))

    def plus(a: Any, b: Any) -> Any:
        return tuple([add(x, y) for x, y in zip(a, b, strict=True)])

    return Semiring(name, plus, mul, (zero,) * width, (zero,) * width), count


@functools.lru_cache(maxsize=64)
def padded(semiring: Semiring) -> Semiring | None:
    """Return the operations with a mark behind the components, 1 in b: terms without it are zeros. None if 0 ⊗ 0 = 0 without a mark.

    Kernels of a GPU compute whole groups of steps, where operands are filled with zeros.

    >>> alike = Semiring("alike", operator.add, lambda x, y: ops.where(x == y, 1.0, 0.0), 0.0, 0.0)
    >>> marked = padded(alike)
    >>> float(alike.mul(0.0, 0.0)), float(marked.mul((0.0, 0.0), (0.0, 0.0))[0])
    (1.0, 0.0)
    """
    width = semiring.components
    try:
        if all(np.atleast_1d(semiring.mul(semiring.zero, semiring.zero)) == np.atleast_1d(semiring.zero)):
            return None
    except Exception:  # of the caller's function, such as a quotient of zeros
        pass
    zeros = semiring.zero if width > 1 else (semiring.zero,)
    none = False if isinstance(zeros[0], bool) else 0

    def inner(x: Any) -> Any:
        return tuple(x)[:width] if width > 1 else x[0]

    def mul(a: Any, b: Any) -> Any:
        found = semiring.mul(inner(a), inner(b))
        parts = found if width > 1 else (found,)
        return (*(ops.where(b[width] != none, part, zero) for part, zero in zip(parts, zeros, strict=True)), none)

    def add(a: Any, b: Any) -> Any:
        found = semiring.add(inner(a), inner(b))
        return (*(found if width > 1 else (found,)), a[width])

    return Semiring(semiring.name, add, mul, (*zeros, none), (*zeros, none))


def finished(metric: Metric, count: int) -> Expr | None:
    """Record the function of the sums and (as operand 1) the number of features or the sum of weights; None if the sum is the result."""
    if metric.finish is None:
        if count > 1:
            raise SemiringError(f"mul gives {count} terms, so finish= must make one number of their sums, a tuple")
        return None
    finish = metric.finish
    return record(lambda s, n: finish(s, n if count == 1 else n[0]), 2, count, what="finish", results=1).results[0]
