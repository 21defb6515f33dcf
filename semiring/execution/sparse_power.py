"""Powers of sparse arrays: sparse products until a dense product is predicted to be faster.

The prediction follows from the number of terms of the next product, and is the same for every number of threads.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from typing import Any

import numpy as np

from semiring.algebra.definition import Semiring
from semiring.algorithms.chain import Stored, power
from semiring.arrays.devices import gpu_name, namespace, on_gpu
from semiring.arrays.exchange import comes_from, is_sparse
from semiring.arrays.memory import fits, require_memory
from semiring.common.errors import GraphError, ShapeError
from semiring.execution.sparse_operands import SparseOperand, require_places, sparse_operand
from semiring.graphs import edges_of
from semiring.kernels.compressed import CompressedRows
from semiring.planning import Problem
from semiring.planning.costs import product_seconds, sparse_product_seconds

__all__ = ["sparse_power"]

Values = tuple[Any, ...]


def power_operand(a: Any, semiring: Semiring, *, nonedge: Any, dtype: Any, weight: Any) -> CompressedRows:
    """Read the rows of the base of a power: on the host like a graph, on a GPU as stored.

    ShapeError is raised if the matrix is not square. GraphError is raised for indices outside the shape, and for options that a matrix
    on a GPU does not have.
    """
    first, *_ = parts = a if isinstance(a, tuple | list) else (a,)
    if comes_from(first, "cupyx"):
        if weight is not None or nonedge is not None or semiring.components > 1:
            raise GraphError("weight=, nonedge= and structured elements are for sparse arrays on the host; pass .get()")
        given = sparse_operand(a, semiring, "a")
        given.rows.require_sound()
        if given.shape[0] != given.shape[1]:
            raise ShapeError(f"a graph is a square matrix, not a sparse array of shape {given.shape}")
        dtypes = given.dtypes if dtype is None else (np.dtype(dtype),)
        return given.converted(dtypes, semiring, "a").stored(by_columns=False)
    for part in parts:
        if comes_from(part, "scipy"):
            require_places(part, "a")  # because SciPy does not check indices
    edges = edges_of(a, semiring, nonedge=nonedge, dtype=dtype, weight=weight)
    assert edges is not None
    csr, _ = edges
    return CompressedRows((csr.n, csr.n), csr.starts, csr.heads, csr.weights)


def sparse_power(a: Any, rows: CompressedRows, k: int, semiring: Semiring, multiply: Callable[[Any, Any], Any], *, dense: bool) -> Any:
    """Return A^k in the caller's kind of sparse array, stored by rows, without entries that are zero.

    `a` is the base as passed, and `rows` the base as read, on the host or on a GPU. `multiply` takes two sparse or dense matrices, each an
    array or (for structured elements) a tuple of arrays. With `dense`, all products are dense: a matrix of the host is multiplied on a GPU.
    """
    dtypes, n, xp = tuple([v.dtype for v in rows.values]), rows.shape[0], namespace(rows.values[0])
    zero, one = semiring.identities(dtypes)
    if dense:
        require_memory(n, dtypes)

    def product(x: Any, y: Any) -> Any:
        left, right = (v if isinstance(v, tuple) else (v,) for v in (x, y))
        sparse = is_sparse(left[0]) and is_sparse(right[0])
        if dense or (sparse and _fills(semiring, dtypes, left[0], right[0])):
            x, y = (tuple(map(_dense, part, zero)) if is_sparse(part[0]) else part for part in (left, right))
            x, y = (v if len(v) > 1 else v[0] for v in (x, y))
        return multiply(x, y)

    if k == 0:
        found = CompressedRows((n, n), xp.arange(n + 1), xp.arange(n), tuple([xp.full(n, e, d) for e, d in zip(one, dtypes, strict=True)]))
    else:
        scipy: Any = importlib.import_module("cupyx.scipy.sparse" if on_gpu(rows.values[0]) else "scipy.sparse")
        matrix = tuple([scipy.csr_matrix((w, rows.columns, rows.starts), shape=(n, n)) for w in rows.values])
        found = _without_zeros(power(matrix, k, semiring, product, _entries), zero)
    values = SparseOperand(found, False, a).restored(found, found.values, zero, by_columns=False)
    return values[0] if len(values) == 1 else values


def _fills(semiring: Semiring, dtypes: tuple[np.dtype[Any], ...], x: Any, y: Any) -> bool:
    """Return True if a sparse product is predicted to take longer than a dense one, and three dense matrices fit the memory."""
    n, device = x.shape[0], gpu_name(x.data.device.id) if on_gpu(x.data) else "cpu"
    terms = int((y.indptr[1:] - y.indptr[:-1])[x.indices].sum(dtype=np.int64))
    problem = Problem("product", semiring, dtypes, (n, n), n, device, threads=1)
    slower = sparse_product_seconds(problem, terms, device) > product_seconds(problem, device)
    return slower and fits(3 * problem.result_bytes, device)


def _dense(x: Any, zero: Any) -> Any:
    """Return one component of a matrix in compressed rows as a dense array."""
    out = namespace(x.data).full(x.shape, zero, x.dtype)
    out[CompressedRows(x.shape, x.indptr, x.indices, (x.data,)).row_numbers(), x.indices] = x.data
    return out


def _entries(values: Values) -> Stored:
    """Return the stored elements of a matrix, for checks, and a function from their positions to row and column."""
    if not is_sparse(values[0]):
        return values, tuple
    x = values[0]

    def where(index: tuple[int, ...]) -> tuple[int, ...]:
        (e,) = index
        return int((x.indptr <= e).sum()) - 1, int(x.indices[e])

    return tuple([v.data for v in values]), where


def _without_zeros(values: Values, zero: tuple[Any, ...]) -> CompressedRows:
    """Return the entries of a sparse or dense matrix that are not zero."""
    sparse = is_sparse(values[0])
    entries = tuple([v.data for v in values]) if sparse else values
    xp = namespace(entries[0])
    there = functools.reduce(xp.logical_or, [v != z for v, z in zip(entries, zero, strict=True)])
    kept = tuple([v[there] for v in entries])
    counts = (there if sparse else there.sum(axis=1)).cumsum()
    before = xp.concatenate([xp.zeros(1, counts.dtype), counts])
    if not sparse:
        return CompressedRows(values[0].shape, before, xp.nonzero(there)[1], kept)
    x = values[0]
    return CompressedRows(x.shape, before[x.indptr], x.indices[there], kept)
