"""Sums over walks: tests whether I ⊕ A ⊕ A² ⊕ … of numbers diverges though elimination by star succeeds, and finds the cause.

Where ⊕ and ⊗ keep numbers non-negative, so does the limit of partial sums. The star of a pivot p > 1 over plus-times, 1 / (1 − p), is
negative: then I − A has an inverse, and the sum has no limit. For A ≥ 0 the inverse has a negative entry exactly if the spectral radius of
A is above 1 (Perron and Frobenius; Berman and Plemmons, 1994, chapter 6). So the result of an elimination tells if it is the sum.

Elimination by star does not choose pivots. A pivot p near 1 makes 1 / (1 − p) large, and sums with such numbers round other terms away,
however well conditioned I − A is. The residual z (I − A) X − z of a vector z and the computed inverse X shows the loss in n² steps. Then
LAPACK inverts I − A with pivoting, and SuperLU solves with it. See Higham, Accuracy and Stability of Numerical Algorithms, 2002, chapters
7 and 14.

Examples
--------
>>> from semiring import PLUS_TIMES
>>> a = np.array([[0.6, 0.6], [0.6, 0.6]])
>>> sums = nonnegative_sums(PLUS_TIMES, (a,))
>>> sums, diverged((np.linalg.inv(np.eye(2) - a),), sums)
((True,), 0)

No cycle of `a` weighs 1, but both vertices together do; a cycle of [[0, 2], [0.5, 0]] does:

>>> walks = weights_of_walks(PLUS_TIMES, (a,))
>>> heavy_cycle(walks, 0), divergent_component(walks)
(None, [0, 1])
>>> heavy_cycle(weights_of_walks(PLUS_TIMES, (np.array([[0, 2], [0.5, 0]]),)), 0)
[1, 0]
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np

from semiring.algebra.definition import Semiring
from semiring.algebra.expression import COMPARISONS, fold, is_operation
from semiring.algebra.program import Program
from semiring.algorithms.bellman_ford import find_cycle
from semiring.algorithms.csr import CSR, SparseArray
from semiring.algorithms.strong_components import strong_components
from semiring.arrays.conversion import Array
from semiring.arrays.devices import namespace
from semiring.common.errors import DivergenceError, DivergentPivot, TraceError, library

__all__ = [
    "Sums", "Walks", "diverged", "divergent_component", "heavy_cycle", "is_inverse", "nonnegative_sums", "pivot_where_needed", "pivoted",
    "signs", "sums_converge", "weights_of_walks",
]  # fmt: skip

Values = tuple[Any, ...]
Sums = tuple[Any, ...]
"""True, False, or a bool array with one entry for each matrix of a stack, for each component."""

_KEEP = {
    "abs", "add", "and", "div", "exp", "expm1", "floordiv", "log1p", "max", "min", "mod", "mul", "or", "shl", "shr", "sqrt", "xor",
}  # fmt: skip
"""Operations without a negative result for non-negative operands."""

_ROUNDS = 200
"""Steps of power iteration for the divergent component."""


@functools.lru_cache(maxsize=256)
def signs(semiring: Semiring) -> tuple[frozenset[int] | None, ...]:
    """Find the components whose signs decide each component's: if none of them is negative, neither is the component. None if no signs do.

    Dual numbers (p, r) multiply to (p·p', p·r' + r·p'): the sign of r depends on both components, the sign of p on p alone.
    """
    program = _program(semiring)
    if program is None:
        return (None,) * semiring.components

    def constant(value: Any) -> frozenset[int] | None:
        return _NOTHING if value >= 0 else None

    def operation(op: str, args: list[frozenset[int] | None]) -> frozenset[int] | None:
        if op in COMPARISONS or op == "not":
            return _NOTHING
        if op == "where":  # the sign of the condition does not matter
            return _union(args[1:])
        return _union(args) if op in _KEEP else None

    operands: list[frozenset[int] | None] = [frozenset({i}) for i in range(semiring.components)]
    found = fold(program.add + program.mul, operands, operands, constant, operation)
    identities = [constant(v) for v in np.ravel([semiring.zero, semiring.one]).tolist()]
    n = semiring.components
    direct = [_union([found[i], found[n + i], identities[i], identities[n + i]]) for i in range(n)]
    for _ in range(n):
        direct = [needs if needs is None else _union([needs, *(direct[j] for j in needs)]) for needs in direct]
    return tuple(direct)


_NOTHING: frozenset[int] = frozenset()


def _union(needs: Iterable[frozenset[int] | None]) -> frozenset[int] | None:
    found = _NOTHING
    for some in needs:
        if some is None:
            return None
        found |= some
    return found


def is_inverse(semiring: Semiring) -> bool:
    """Return True if the closure is (I − A)⁻¹ of ordinary numbers, under any name of the semiring."""
    return semiring.star is not None and semiring.components == 1 and _adds_products(semiring)


def _adds_products(semiring: Semiring) -> bool:
    """Return True if ⊕ and ⊗ add and multiply the first component."""
    program = _program(semiring)
    return program is not None and is_operation(program.add[0], ("add",)) and is_operation(program.mul[0], ("mul",))


def _program(semiring: Semiring) -> Program | None:
    try:
        return semiring.program
    except TraceError:
        return None


def sums_converge(semiring: Semiring, edges: CSR) -> bool:
    """Return True if row sums or column sums below 1, of non-negative numbers, prove the convergence of sums over all walks.

    Then every pivot has a star, in any order of elimination.

    Examples
    --------
    >>> from semiring import LOG, PLUS_TIMES
    >>> edges = CSR.of(np.array([0, 1]), np.array([1, 0]), (np.array([0.5, 0.9]),), 2, (0.0,))
    >>> sums_converge(PLUS_TIMES, edges), sums_converge(LOG, edges)
    (True, False)
    """
    (weights, *others), scale = edges.weights, semiring.program.exponential
    if others or weights.dtype.kind != "f":
        return False
    if scale is not None:
        with np.errstate(over="ignore"):
            weights = np.exp(float(scale) * weights.astype(np.float64))
    elif not _adds_products(semiring):
        return False
    sums = (np.bincount(ends, weights, minlength=edges.n).max(initial=0) for ends in (edges.tails, edges.heads))
    return bool((weights >= 0).all() and min(sums) < 1)


def nonnegative_sums(semiring: Semiring, values: Values) -> Sums:
    """Return, for each component, where its closure sums non-negative numbers; empty if all are False."""
    if semiring.star is None or not any(needs := signs(semiring)):
        return ()
    least = [True if not v.size or _least(v, None) >= 0 else _least(v, (-2, -1)[-v.ndim :]) >= 0 for v in values]
    return tuple(functools.reduce(operator.and_, [least[j] for j in some], True) if some else False for some in needs)


def diverged(values: Values, sums: Sums) -> int | None:
    """Find a row with a negative number in a result of shape (…, k, n) that sums non-negative numbers, else None.

    `sums` is the answer of `nonnegative_sums` for the edges.
    """
    for v, summed in zip(values, sums, strict=True):
        if summed is not False and v.size and not _least(v, None) >= 0:
            rows = _least(v, (-1,)) < 0
            if summed is not True:
                rows &= summed[..., None]
            if rows.any():
                return int(rows.ravel().argmax()) % int(v.shape[-2])
    return None


def _least(array: Any, axes: tuple[int, ...] | None) -> Any:
    """Return the least number along some axes, or all; for objects −1, 0, or NaN for symbols and elements without an order."""
    if array.dtype.kind == "O":
        array = np.asarray(np.frompyfunc(_sign, 1, 1)(array), dtype=np.float64)
    return array.min(axis=axes)


def _sign(x: Any) -> float:
    try:
        return math.nan if getattr(x, "free_symbols", ()) else 0 if x >= 0 else -1 if x < 0 else math.nan
    except TypeError:
        return math.nan


class Walks(NamedTuple):
    """Edges with positive weights, or their logarithms; the ordinary sums of products converge exactly if the closure does.

    `scale` makes the weights natural logarithms; None for the numbers themselves.
    """

    edges: CSR
    scale: float | None

    @property
    def numbers(self) -> Array:
        """Return the weights as float64."""
        (weights,) = self.edges.weights
        return weights.astype(np.float64) if self.scale is None else np.exp(self.scale * weights.astype(np.float64))


def weights_of_walks(semiring: Semiring, values: Values) -> Walks | None:
    """Return the non-negative numbers that decide if a closure converges; None for a semiring without such numbers.

    Structured elements have these numbers in the first component, which ⊕ and ⊗ add and multiply.
    """
    first, program = values[0], _program(semiring)
    scale = None if program is None else program.exponential
    if scale is None and not (_adds_products(semiring) and signs(semiring)[0]):
        return None
    nothing = semiring.identities([v.dtype for v in values])[0][0]
    if isinstance(first, SparseArray):
        tails, heads, weights = first.edges.tails, first.edges.heads, first.edges.weights[0]
    else:
        tails, heads = np.nonzero(first != nothing)
        weights = first[tails, heads]
    if scale is not None:
        weights = weights if scale > 0 else -weights
    elif weights.size and not _least(weights, None) >= 0:
        return None
    there = weights != nothing
    edges = CSR.of(tails[there], heads[there], (weights[there],), len(first), (nothing,))
    return Walks(edges, None if scale is None else abs(float(scale)))


def _heavier(a: Any, b: Any) -> Any:
    if a[0] == b[0]:
        return a if a[1] >= b[1] else b
    return a if a[0] > b[0] else b


_PRODUCTS = Semiring("largest product of most edges", _heavier, lambda a, b: (a[0] * b[0], a[1] + b[1]), (0, -math.inf), (1, 0))
_SUMS = Semiring("largest sum of most edges", _heavier, lambda a, b: (a[0] + b[0], a[1] + b[1]), (-math.inf, -math.inf), (0, 0))
"""Elements (weight, edges) with 1 ⊕ c ≠ 1 for a cycle c exactly if its weight is no less than the weight of the empty walk."""


def heavy_cycle(walks: Walks, vertex: int) -> list[int] | None:
    """Find a cycle whose numbers multiply to 1 or more, as its vertices in order; the search begins at `vertex`."""
    semiring, edges = _PRODUCTS if walks.scale is None else _SUMS, walks.edges
    counted = CSR(edges.n, edges.starts, edges.heads, (*edges.weights, np.ones(len(edges.heads))), semiring.zero)
    return find_cycle(semiring, counted.arrays(), vertex)[0]


def divergent_component(walks: Walks) -> list[int] | None:
    """Find the strongly connected component whose walks grow fastest, as its vertices; None for numbers beyond floats.

    The least growth of an entry in a power iteration bounds the spectral radius from below (Collatz, 1942; Wielandt, 1950).
    """
    try:
        weights = walks.numbers
    except OverflowError:
        return None
    edges, n = walks.edges, walks.edges.n
    _, component = strong_components(edges.starts, edges.heads)
    inside = component[edges.tails] == component[edges.heads]
    tails, heads, weights = edges.tails[inside], edges.heads[inside], weights[inside]
    x, growth = np.ones(n), np.zeros(n)
    for _ in range(_ROUNDS):
        ahead = np.bincount(tails, weights * x[heads], n)
        least = np.full(n, np.inf)
        np.minimum.at(least, component, ahead / x)
        growth = least[component]
        if growth.max(initial=0) >= 1:
            break
        x += ahead
        largest = np.zeros(n)
        np.maximum.at(largest, component, x)
        x /= largest[component]
    found: list[int] = np.flatnonzero(component == component[growth.argmax()]).tolist()
    return found


def pivot_where_needed(a: Any, x: Any) -> None:
    """x ← (I − a)⁻¹ with pivoting, in place, for each matrix of a stack whose x lost more than a quarter of the digits.

    Examples
    --------
    >>> a = np.array([[1 - 2.0**-53, 1], [1, -1]])
    >>> x = np.array([[2.0**53, -1], [-1, 0]])  # without pivoting, with a sum of 2⁵³ and −2⁵³ as the first entry
    >>> pivot_where_needed(a, x)
    >>> x.round(8) + 0
    array([[-2., -1.],
           [-1.,  0.]])

    Parameters
    ----------
    a, x : NumPy or CuPy arrays of float, of shape (…, n, n)

    Raises
    ------
    DivergentPivot
        If I − a has no inverse.
    """
    xp, n = namespace(x), x.shape[-1]
    z = xp.asarray(_vector(n), x.dtype)
    with np.errstate(all="ignore"):  # overflow is refused elsewhere
        u = (z - z @ a)[..., None, :]
        # z = z (I − A) X
        bad = _lost(u @ x - z, abs(u) @ abs(x) + 1).any(axis=(-2, -1))
    if bad.any():
        some = bad if bad.ndim else ...
        try:
            x[some] = xp.linalg.inv(xp.eye(n, dtype=x.dtype) - a[some])
        except np.linalg.LinAlgError:
            raise DivergentPivot(n - 1) from None


def pivoted(edges: CSR, solve: Callable[[Array], Array]) -> Any:
    """Factorize I − A with pivoting, by SciPy, if a solution without pivoting loses more than a quarter of the digits; else return None.

    Parameters
    ----------
    edges : CSR
        A, of single floats.
    solve : callable
        Solves x = A x + b without pivoting, for b of shape (n, 1).

    Raises
    ------
    SemiringError
        If SciPy is needed and not installed.
    DivergenceError
        If I − A has no inverse.
    """
    (weights,), n = edges.weights, edges.n
    z = _vector(n).astype(weights.dtype)
    x = solve(z[:, None])[:, 0]
    with np.errstate(all="ignore"):
        terms = weights * x[edges.heads]
        # x = A x + z
        sums, sizes = (np.bincount(edges.tails, v, n) for v in (terms, abs(terms)))
        lost = _lost((z + sums - x).astype(weights.dtype), 1 + sizes + abs(x)).any()
    if not lost:
        return None
    linalg = library("scipy.sparse.linalg", "a solution with pivoting, because plain elimination lost digits,")
    sparse = library("scipy.sparse", "a solution with pivoting")
    matrix = sparse.csr_array((weights, edges.heads, edges.starts), shape=(n, n))
    try:
        return linalg.splu((sparse.eye_array(n, dtype=weights.dtype) - matrix).tocsc())
    except RuntimeError:
        raise DivergenceError("the solution does not exist: I − A is singular") from None


@functools.lru_cache(maxsize=8)
def _vector(n: int) -> Array:
    """Return random numbers of either sign, the same at every call."""
    return np.random.default_rng(0).uniform(-1, 1, n)


def _lost(residual: Any, sizes: Any) -> Any:
    """Mark the entries whose residual shows a loss of more than a quarter of the digits."""
    return abs(residual) > float(np.finfo(residual.dtype).eps) ** 0.75 * sizes
