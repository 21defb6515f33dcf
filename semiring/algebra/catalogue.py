"""The built-in semirings."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Sequence
from numbers import Integral
from operator import add, and_, mul, or_, xor
from typing import Any

from semiring.algebra import ops
from semiring.algebra.definition import Semiring
from semiring.algebra.elements import LARGEST
from semiring.algebra.modular import MOST, is_prime
from semiring.algebra.relaxation import geometric_logarithm
from semiring.common.errors import DivergenceError, SemiringError, or_similar, raised_here

__all__ = [
    "BITSET", "BOOLEAN", "DISTANCE_COUNT", "DISTANCE_HOPS", "GF2", "LOG", "MAX_MIN", "MAX_PLUS", "MAX_TIMES", "MIN_MAX", "MIN_PLUS",
    "PLUS_TIMES", "TROPICAL", "TROPICAL_ARGMIN", "as_semiring", "k_best", "modular", "semirings",
]  # fmt: skip

_MOST_WALKS = 16  # the largest k of `k_best`: each of the k³ operations of ⊗ is recorded

MIN_PLUS = Semiring("min-plus", min, add, math.inf, 0, domain=(-LARGEST, math.inf))
"""Shortest paths: ⊕ keeps the shorter, ⊗ adds lengths."""

TROPICAL = MIN_PLUS
"""Another name of `MIN_PLUS`."""

MAX_PLUS = Semiring("max-plus", max, add, -math.inf, 0, domain=(-math.inf, LARGEST))
"""Longest (critical) paths, scheduling."""

BOOLEAN = Semiring("boolean", or_, and_, False, True, domain={False, True})
"""Reachability."""

MAX_MIN = Semiring("max-min", max, min, -math.inf, math.inf)
"""Widest (bottleneck) paths: a path is as wide as its narrowest edge."""

MIN_MAX = Semiring("min-max", min, max, math.inf, -math.inf)
"""Minimax paths: a path is as high as its highest edge."""

MAX_TIMES = Semiring("max-times", max, mul, 0, 1, domain=(0, LARGEST))
"""Most reliable paths: the probabilities of a path's edges multiply. Underflow rounds to 0; overflow raises an error."""


def _geometric(a: Any) -> Any:
    """Return 1 + a + a² + … = 1/(1 − a), by analytic continuation everywhere but at 1."""
    return 1 / (1 - a)


PLUS_TIMES = Semiring("plus-times", add, mul, 0, 1, star=_geometric, domain=(-LARGEST, LARGEST))
"""Ordinary arithmetic: the closure is (I − A)⁻¹; non-negative numbers whose sum I + A + A² + … diverges raise an error."""


LOG = Semiring("log", ops.logaddexp, add, -math.inf, 0, star=geometric_logarithm, domain=(-math.inf, LARGEST))
"""Probabilities kept as logarithms: ⊕ is log(exp a + exp b). Products on the CPU multiply exponentials; see How it works, Accuracy."""


def _field_star(a: Any) -> Any:
    if a:
        raise DivergenceError("1 − a has no inverse for a = 1")
    return True


GF2 = Semiring("gf2", xor, and_, False, True, star=_field_star, domain={False, True})
"""The field of two elements: counting walks modulo 2."""

BITSET = Semiring("bitset", or_, and_, 0, ~0)
"""Sets as the bits of an integer: one Boolean semiring a bit (which labels does every edge of some path carry?)."""


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
"""`TROPICAL`, whose products also return the winning k of each entry."""


@raised_here
def k_best(k: int) -> Semiring:
    """Return the semiring of the k best walks: an element has the k smallest distinct lengths, in ascending order.

    A walk may meet a vertex several times: `k_shortest_paths` finds paths that do not.

    Examples
    --------
    >>> import semiring as sr
    >>> ways = sr.edges([("a", "b", 1.0), ("b", "c", 2.0), ("a", "c", 4.0), ("c", "b", 3.0)])
    >>> [float(lengths[2]) for lengths in sr.closure(ways, sr.k_best(3), sources="a")]
    [3.0, 4.0, 8.0]

    Parameters
    ----------
    k : int
        From 2 to 16. Elements are tuples of k components, padded with ∞ if fewer walks exist.

    Returns
    -------
    Semiring
        Over non-negative lengths; an ordinary weight is one walk of that length.

    Raises
    ------
    SemiringError
        For another k.

    Notes
    -----
    ⊕ takes 4 k² operations, ⊗ k³, and a product k times as many. A star adds up to k − 1 rounds of a loop. More never help: the partial
    sums of m positive lengths are m + 1 distinct lengths, so a k-th best walk has m < k.
    """
    if isinstance(k, bool) or not isinstance(k, Integral) or not 2 <= k <= _MOST_WALKS:
        raise SemiringError(f"k is {k!r}; pass a whole number from 2 to {_MOST_WALKS}, or use MIN_PLUS for the single best walk")
    return _k_best(int(k))


@functools.cache
def _k_best(k: int) -> Semiring:
    def least(lengths: Sequence[Any]) -> tuple[Any, ...]:
        found = [functools.reduce(ops.minimum, lengths)]
        while len(found) < k:
            found.append(functools.reduce(ops.minimum, [ops.where(x > found[-1], x, math.inf) for x in lengths]))
        return tuple(found)

    def merge(a: Any, b: Any) -> Any:
        return least((*a, *b))

    def lengthen(a: Any, b: Any) -> Any:
        # a_i + b_j is at least as long as the i + j sums before it on a monotone path from a_0 + b_0.
        return least([a[i] + b[j] for i in range(k) for j in range(k - i)])

    def star(a: Any) -> Any:
        walks = once = least((0, *a))
        for _ in range(k - 2):
            walks = lengthen(walks, once)
        return walks

    def ascending(a: Any) -> Any:
        return functools.reduce(and_, [a[0] >= 0, *((x < y) | (y == math.inf) for x, y in itertools.pairwise(a))])

    none = (math.inf,) * k
    return Semiring(f"{k}-best", merge, lengthen, none, (0, *none[1:]), star=star, domain=ascending, from_weight=lambda w: (w, *none[1:]))


@raised_here
def modular(p: int) -> Semiring:
    """Return the integers modulo p, 0 … p − 1, with sums and products modulo p.

    Examples
    --------
    >>> import semiring as sr
    >>> sr.matmul([[3, 5], [1, 6]], [[4, 0], [6, 1]], sr.modular(7))
    array([[0, 5],
           [5, 6]])

    Parameters
    ----------
    p : int
        From 2 to 2³¹ − 1.

    Returns
    -------
    Semiring
        A field for a prime p, whose closure is (I − A)⁻¹. Other p have no star, and their closures diverge at every pivot but 0.

    Raises
    ------
    SemiringError
        For another p.

    Notes
    -----
    Products are sums in floats, reduced modulo p only when needed, and exact; p must fit the dtype. Elimination does not exchange rows: it
    meets a pivot 1, and raises `DivergenceError`, for some matrices with an inverse, such as I − A = [[0, 1], [1, 1]].
    """
    if isinstance(p, bool) or not isinstance(p, Integral) or not 2 <= p <= MOST:
        raise SemiringError(f"p is {p!r}; pass a whole number from 2 to 2³¹ − 1")
    return _modular(int(p))


@functools.lru_cache(maxsize=256)
def _modular(p: int) -> Semiring:
    def star(a: Any) -> Any:
        if a == 1:
            raise DivergenceError("1 − a has no inverse for a = 1")
        inverse, power = 1, (1 + p - a) % p  # by Fermat: x⁻¹ = x^(p − 2)
        for bit in reversed(f"{p - 2:b}"):
            inverse = inverse * power % p if bit == "1" else inverse
            power = power * power % p
        return inverse

    add, mul = (lambda a, b: (a + b) % p), (lambda a, b: a * b % p)
    return Semiring(f"modulo-{p}", add, mul, 0, 1, star=star if is_prime(p) else None, domain=range(p))


_BUILT_IN = (
    MIN_PLUS, MAX_PLUS, BOOLEAN, MAX_MIN, MIN_MAX, MAX_TIMES, PLUS_TIMES, LOG, GF2, BITSET, DISTANCE_COUNT, DISTANCE_HOPS,
)  # fmt: skip
_NAMED = {**{s.name: s for s in _BUILT_IN}, "tropical": TROPICAL, "tropical-argmin": TROPICAL_ARGMIN}


def semirings() -> dict[str, Semiring]:
    """Return the built-in semirings by name.

    Examples
    --------
    >>> sorted(semirings())[:3]
    ['bitset', 'boolean', 'distance-count']
    """
    return {s.name: s for s in _BUILT_IN}


def as_semiring(value: Semiring | str) -> Semiring:
    """Return a semiring, or find one by a name in `semirings` or by the name of its constant, in capitals or not.

    Examples
    --------
    >>> as_semiring("max-min") is as_semiring("MAX_MIN") is MAX_MIN
    True

    Raises
    ------
    SemiringError
        For an unknown name, and for any other object.
    """
    if isinstance(value, Semiring):
        return value
    if not isinstance(value, str):
        raise SemiringError(f"semiring is {value!r}; pass a Semiring such as semiring.MIN_PLUS, or a name such as 'min-plus'")
    name = value.strip().lower().replace("_", "-")
    if name not in _NAMED:
        names = or_similar(name, _NAMED, f"the built-in semirings are {', '.join(sorted(semirings()))}")
        raise SemiringError(f"there is no semiring {value!r}; {names}")
    return _NAMED[name]
