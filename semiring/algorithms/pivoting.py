"""Inverses with pivoting, if plain elimination loses digits: (I − A)⁻¹ by LAPACK, and solutions with I − A by SuperLU.

Elimination by star does not choose pivots. A pivot p near 1 makes 1 / (1 − p) large, and sums with such numbers round other terms away,
however well conditioned I − A is. The residual z (I − A) X − z of a vector z and the computed inverse X shows the loss in n² steps. See
Higham, Accuracy and Stability of Numerical Algorithms, 2002, chapters 7 and 14.

Examples
--------
>>> a = np.array([[1 - 2.0**-53, 1], [1, -1]])
>>> x = np.array([[2.0**53, -1], [-1, 0]])  # without pivoting, with a sum of 2⁵³ and −2⁵³ as the first entry
>>> pivot_where_needed(a, x)
>>> x.round(8) + 0
array([[-2., -1.],
       [-1.,  0.]])
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from semiring.algorithms.csr import CSR
from semiring.arrays.devices import namespace
from semiring.common.errors import DivergenceError, DivergentPivot, library

__all__ = ["pivot_where_needed", "pivoted"]

Array = np.ndarray[Any, Any]


def pivot_where_needed(a: Any, x: Any) -> None:
    """x ← (I − a)⁻¹ with pivoting, in place, for each matrix of a stack whose x lost more than a quarter of the digits.

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
