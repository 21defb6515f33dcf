"""The semirings that come with the library."""

from __future__ import annotations

import functools
import math
import sys
from operator import add, and_, mul, or_, xor
from typing import Any

from semiring.algebra import ops
from semiring.algebra.definition import Semiring
from semiring.common.errors import DivergenceError, SemiringError, or_similar

__all__ = [
    "BITSET", "BOOLEAN", "DISTANCE_COUNT", "DISTANCE_HOPS", "GF2", "LOG", "MAX_MIN", "MAX_PLUS", "MAX_TIMES", "MIN_MAX", "MIN_PLUS",
    "PLUS_TIMES", "TROPICAL", "TROPICAL_ARGMIN", "as_semiring", "semirings",
]  # fmt: skip

_LARGEST = sys.float_info.max
"""The largest finite number: an interval that ends here excludes that infinity."""

MIN_PLUS = Semiring("min-plus", min, add, math.inf, 0, domain=(-_LARGEST, math.inf))
"""Shortest paths: ⊕ keeps the shorter, ⊗ adds lengths."""

TROPICAL = MIN_PLUS
"""Another name of `MIN_PLUS`."""

MAX_PLUS = Semiring("max-plus", max, add, -math.inf, 0, domain=(-math.inf, _LARGEST))
"""Longest (critical) paths, scheduling."""

BOOLEAN = Semiring("boolean", or_, and_, False, True, domain={False, True})
"""Reachability."""

MAX_MIN = Semiring("max-min", max, min, -math.inf, math.inf)
"""Widest (bottleneck) paths: a path is as wide as its narrowest edge."""

MIN_MAX = Semiring("min-max", min, max, math.inf, -math.inf)
"""Minimax paths: a path is as high as its highest edge."""

MAX_TIMES = Semiring("max-times", max, mul, 0, 1, domain=(0, _LARGEST))
"""Most reliable paths: the probabilities of a path's edges multiply. Underflow rounds to 0, overflow is refused."""


def _geometric(a: Any) -> Any:
    """1 + a + a² + … = 1/(1 − a), by analytic continuation everywhere but at 1."""
    return 1 / (1 - a)


PLUS_TIMES = Semiring("plus-times", add, mul, 0, 1, star=_geometric, domain=(-_LARGEST, _LARGEST))
"""Ordinary arithmetic: the closure is (I − A)⁻¹."""


def _log_geometric(a: Any) -> Any:
    """−log(1 − eᵃ): by expm1 where eᵃ is near 1, by log1p where it is near 0, so that no digit cancels (Mächler 2012)."""
    if a >= 0:
        raise DivergenceError("the sum of exp(k·a) over k ≥ 0 diverges for a ≥ 0")
    return -ops.log(-ops.expm1(a)) if a > -math.log(2) else -ops.log1p(-ops.exp(a))


LOG = Semiring("log", ops.logaddexp, add, -math.inf, 0, star=_log_geometric, domain=(-math.inf, _LARGEST))
"""Probabilities kept as logarithms: ⊕ is log(exp a + exp b). Products on the CPU multiply exponentials; see How it works, Accuracy."""


def _field_star(a: Any) -> Any:
    if a:
        raise DivergenceError("1 − a has no inverse for a = 1")
    return True


GF2 = Semiring("gf2", xor, and_, False, True, star=_field_star, domain={False, True})
"""The field of two elements: counting walks modulo 2."""

BITSET = Semiring("bitset", or_, and_, 0, ~0)
"""Sets as the bits of an integer: one Boolean semiring a bit (which labels can a path carry throughout?)."""


def _shorter_counting(a: Any, b: Any) -> Any:
    if a[0] == b[0]:
        return a[0], a[1] + b[1]
    return a if a[0] < b[0] else b


def _lengthen_counting(a: Any, b: Any) -> Any:
    return a[0] + b[0], a[1] * b[1]


def _counts(a: Any) -> Any:
    return (a[0] > -math.inf) & (a[1] >= 0) & (a[1] < math.inf) & ((a[0] < math.inf) | (a[1] == 0))


def _once(weight: Any) -> Any:
    return weight, 1


DISTANCE_COUNT = Semiring("distance-count", _shorter_counting, _lengthen_counting, (math.inf, 0), (0, 1), domain=_counts, from_weight=_once)
"""(distance, number of shortest paths); an ordinary weight w is (w, 1), one path of that length. Counts are floats, exact up to 2⁵³."""


def _lengthen_hopping(a: Any, b: Any) -> Any:
    return a[0] + b[0], a[1] + b[1]


def _hops(a: Any) -> Any:
    return (a[0] > -math.inf) & (a[1] >= 0) & ((a[0] < math.inf) == (a[1] < math.inf))


DISTANCE_HOPS = Semiring("distance-hops", min, _lengthen_hopping, (math.inf, math.inf), (0, 0), domain=_hops, from_weight=_once)
"""(distance, edges): the shortest path with the fewest edges, compared in that order; an ordinary weight w is (w, 1), one edge."""

TROPICAL_ARGMIN = MIN_PLUS.with_witness()
"""`TROPICAL`, whose products also tell which k won."""


def semirings() -> dict[str, Semiring]:
    """The built-in semirings by name.

    Examples
    --------
    >>> sorted(semirings())[:3]
    ['bitset', 'boolean', 'distance-count']
    """
    every = (
        MIN_PLUS, MAX_PLUS, BOOLEAN, MAX_MIN, MIN_MAX, MAX_TIMES, PLUS_TIMES, LOG, GF2, BITSET, DISTANCE_COUNT, DISTANCE_HOPS,
    )  # fmt: skip
    return {s.name: s for s in every}


def as_semiring(value: Semiring | str) -> Semiring:
    """A semiring that a caller passed, or named: by a name in `semirings`, or as the constant is called, in capitals or not.

    Examples
    --------
    >>> as_semiring("max-min") is as_semiring("MAX_MIN") is MAX_MIN
    True

    Raises
    ------
    SemiringError
        Where there is none of that name, and for what is no semiring.
    """
    if isinstance(value, Semiring):
        return value
    if not isinstance(value, str):
        raise SemiringError(f"semiring is {value!r}; pass a Semiring such as semiring.MIN_PLUS, or the name of one such as 'min-plus'")
    name = value.strip().lower().replace("_", "-")
    named = _by_name()
    if name not in named:
        there = or_similar(name, named, f"those of the library are {', '.join(sorted(semirings()))}")
        raise SemiringError(f"there is no semiring {value!r}; {there}")
    return named[name]


@functools.cache
def _by_name() -> dict[str, Semiring]:
    """The constants of this module, by their names as the command line has them."""
    constants = {name: globals()[name] for name in __all__ if name.isupper()}
    return {name.lower().replace("_", "-"): value for name, value in constants.items()}
