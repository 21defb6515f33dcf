"""Dense graphs to sparse ones as SciPy does it, but without losing tiny weights."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import csr_array, csr_matrix

from semiring.algebra.errors import ShapeError
from semiring.csgraph.reading import nulls, require_square

__all__ = ["csgraph_from_dense", "csgraph_from_masked", "csgraph_masked_from_dense"]


def csgraph_masked_from_dense(
    graph: Any, null_value: float | None = 0, nan_null: bool = True, infinity_null: bool = True, copy: bool = True
) -> Any:
    """A masked array from a dense one: `scipy.sparse.csgraph.csgraph_masked_from_dense`.

    What is masked already stays so; in SciPy it becomes an edge again.

    Parameters
    ----------
    graph : array_like of shape (n, n)
    null_value : float or None
        What is no edge. SciPy masks what is within 1e-8 of it, too.
    nan_null, infinity_null : bool
        Whether NaN and ±∞ are no edges.
    copy : bool
        Whether the data are copied.

    Returns
    -------
    numpy.ma.MaskedArray

    Raises
    ------
    ShapeError
        A ValueError, for what is no square array.

    Examples
    --------
    >>> from semiring.csgraph import csgraph_masked_from_dense
    >>> csgraph_masked_from_dense([[0, 1e-9], [2, 0]]).count()
    np.int64(2)
    """
    array = np.ma.array(graph, copy=copy)
    require_square(array)
    data = np.asarray(array.data)
    missing = nulls(data, null_value, nan_null=nan_null, infinity_null=infinity_null) | np.ma.getmaskarray(array)
    fill_value = null_value if null_value is not None and np.isfinite(null_value) else None
    return np.ma.array(data, mask=missing, copy=False, fill_value=fill_value)


def csgraph_from_masked(graph: Any) -> Any:
    """A compressed graph from a masked array: `scipy.sparse.csgraph.csgraph_from_masked`, also where nothing is masked.

    Parameters
    ----------
    graph : masked array of shape (n, n)

    Returns
    -------
    csr_array
        float64, with an entry for whatever is not masked.

    Raises
    ------
    ShapeError
        A ValueError, for what is no square array.

    Examples
    --------
    >>> import numpy as np
    >>> from semiring.csgraph import csgraph_from_masked
    >>> csgraph_from_masked(np.ma.masked_invalid([[np.nan, 0.0], [2.0, np.nan]])).data  # 0 is an edge, as it is not masked
    array([0., 2.])
    """
    array = np.ma.asarray(graph)
    if array.ndim != 2 or array.shape[0] != array.shape[1]:
        raise ShapeError(f"graph should be a square array; this one has the shape {array.shape}")
    there = ~np.ma.getmaskarray(array)
    starts = np.concatenate([[0], np.cumsum(there.sum(axis=1))]).astype(np.int32)
    data = np.asarray(array.data)[there].astype(np.float64)
    return csr_array((data, np.nonzero(there)[1].astype(np.int32), starts), shape=array.shape)


def csgraph_from_dense(graph: Any, null_value: float | None = 0, nan_null: bool = True, infinity_null: bool = True) -> Any:
    """A compressed graph from a dense array: `scipy.sparse.csgraph.csgraph_from_dense`.

    Parameters
    ----------
    graph, null_value, nan_null, infinity_null
        See `csgraph_masked_from_dense`.

    Returns
    -------
    csr_array
        float64; `csr_matrix` for a `numpy.matrix`.

    Raises
    ------
    ShapeError
        A ValueError, for what is no square array.

    Examples
    --------
    >>> from semiring.csgraph import csgraph_from_dense
    >>> csgraph_from_dense([[0, 1e-9], [2, 0]]).nnz
    2
    """
    compressed = csgraph_from_masked(csgraph_masked_from_dense(graph, null_value, nan_null, infinity_null, copy=False))
    return csr_matrix(compressed) if isinstance(graph, np.matrix) else compressed
