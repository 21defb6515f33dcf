"""Powers of sparse arrays: by products of sparse ones, until they have filled so far that dense ones are predicted to be faster.

That follows from how many terms the next product has, whatever the number of threads.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import numpy as np

from semiring.algebra.definition import Semiring
from semiring.algorithms.csr import CSR
from semiring.algorithms.power import Stored, power
from semiring.arrays.memory import fits
from semiring.execution.sparse_operands import SparseOperand
from semiring.kernels.compressed import CompressedRows
from semiring.planning import Problem
from semiring.planning.costs import product_seconds, sparse_product_seconds

__all__ = ["sparse_power"]

Values = tuple[Any, ...]

_MATRICES = 3
"""Dense ones that a product has."""


def sparse_power(a: Any, edges: CSR, k: int, semiring: Semiring, multiply: Callable[[Any, Any], Any]) -> Any:
    """A^k in the caller's kind of sparse array, stored by rows, without entries that are zero.

    Parameters
    ----------
    a : sparse array
        As it was passed.
    edges : CSR
        As it was read.
    k : int
    semiring : Semiring
    multiply : callable
        The product of sparse or dense matrices, each an array, or a tuple of them where elements have several components.
    """
    dtypes, n = edges.dtypes, edges.n
    zero, one = semiring.identities(dtypes)

    def product(x: Any, y: Any) -> Any:
        left, right = (v if isinstance(v, tuple) else (v,) for v in (x, y))
        if not (_is_dense(left) or _is_dense(right)) and _fills(semiring, dtypes, left[0], right[0]):
            x, y = (tuple([_dense(v, z) for v, z in zip(part, zero, strict=True)]) for part in (left, right))
            x, y = (v if len(v) > 1 else v[0] for v in (x, y))
        return multiply(x, y)

    if k == 0:
        rows = CompressedRows((n, n), np.arange(n + 1), np.arange(n), tuple([np.full(n, e, d) for e, d in zip(one, dtypes, strict=True)]))
    else:
        scipy: Any = importlib.import_module("scipy.sparse")
        matrix = tuple([scipy.csr_array((w, edges.heads, edges.starts), shape=(n, n)) for w in edges.weights])
        found = power(matrix, k, semiring, product, _stored)
        rows = _without_zeros(found, zero)
    values = SparseOperand(rows, False, a).restored(rows, rows.values, zero, by_columns=False)
    return values[0] if len(values) == 1 else values


def _is_dense(values: Values) -> bool:
    return isinstance(values[0], np.ndarray)


def _fills(semiring: Semiring, dtypes: tuple[np.dtype[Any], ...], x: Any, y: Any) -> bool:
    """Whether a product of two sparse matrices is predicted to take longer than that of dense ones, for which there is room."""
    n = x.shape[0]
    terms = int(np.diff(y.indptr)[x.indices].sum(dtype=np.int64))
    problem = Problem("product", semiring, dtypes, (n, n), n, threads=1)
    slower = sparse_product_seconds(problem, terms) > product_seconds(problem, "cpu")
    return slower and fits(_MATRICES * problem.result_bytes, "cpu")


def _dense(x: Any, zero: Any) -> Any:
    """One component of a sparse matrix, in all its places."""
    out = np.full(x.shape, zero, x.dtype)
    out[np.repeat(np.arange(x.shape[0]), np.diff(x.indptr)), x.indices] = x.data
    return out


def _stored(values: Values) -> Stored:
    """What a matrix stores, for checks of its elements, and where that stands."""
    if _is_dense(values):
        return values, tuple
    x = values[0]

    def where(index: tuple[int, ...]) -> tuple[int, ...]:
        (e,) = index
        return int(np.searchsorted(x.indptr, e, side="right")) - 1, int(x.indices[e])

    return tuple([v.data for v in values]), where


def _without_zeros(values: Values, zero: tuple[Any, ...]) -> CompressedRows:
    """The entries of a matrix, sparse or dense, that are not zero."""
    entries = values if _is_dense(values) else tuple([v.data for v in values])
    there = np.logical_or.reduce([np.asarray(v != z, bool) for v, z in zip(entries, zero, strict=True)])
    kept = tuple([v[there] for v in entries])
    if _is_dense(values):
        return CompressedRows(values[0].shape, np.append(0, there.sum(axis=1).cumsum()), np.nonzero(there)[1], kept)
    x = values[0]
    return CompressedRows(x.shape, np.append(0, there.cumsum())[x.indptr], x.indices[there], kept)
