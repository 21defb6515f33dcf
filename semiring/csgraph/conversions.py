"""SciPy's conversions between dense, masked and compressed graphs, and from predecessors to distances and trees."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import csr_array, csr_matrix, isspmatrix

from semiring.algorithms.predecessors import NONE
from semiring.arrays.exchange import is_pydata
from semiring.arrays.pieces import CACHE, slices
from semiring.common.docstrings import described_by
from semiring.common.errors import ShapeError, raised_here
from semiring.common.units import counted
from semiring.csgraph.reading import Array, both_ways, nulls, read, require_square

__all__ = ["construct_dist_matrix", "csgraph_from_dense", "csgraph_from_masked", "csgraph_masked_from_dense", "reconstruct_path"]


@raised_here
def csgraph_masked_from_dense(
    graph: Any, null_value: float | None = 0, nan_null: bool = True, infinity_null: bool = True, copy: bool = True
) -> Any:
    """Mask the non-edges of a dense graph: `scipy.sparse.csgraph.csgraph_masked_from_dense`.

    Masked entries of the input stay masked; SciPy turns such entries into edges again.

    Examples
    --------
    >>> from semiring.csgraph import csgraph_masked_from_dense
    >>> csgraph_masked_from_dense([[0, 1e-9], [2, 0]]).count()
    np.int64(2)

    Parameters
    ----------
    graph : array_like of shape (n, n)
    null_value : float or None
        The value that means no edge. SciPy also masks every value within 1e-8.
    nan_null, infinity_null : bool
        Mask NaN, and ±∞.
    copy : bool
        Copy the data.

    Returns
    -------
    numpy.ma.MaskedArray

    Raises
    ------
    ShapeError
        If the array is not square; a ValueError.
    """
    array = np.ma.array(graph, copy=copy)
    require_square(array)
    data = np.asarray(array.data)
    missing = nulls(data, null_value, nan_null=nan_null, infinity_null=infinity_null) | np.ma.getmaskarray(array)
    fill_value = null_value if null_value is not None and np.isfinite(null_value) else None
    return np.ma.array(data, mask=missing, copy=False, fill_value=fill_value)


@raised_here
@described_by(csgraph_masked_from_dense)
def csgraph_from_masked(graph: Any) -> Any:
    """Convert a masked array to a compressed graph: `scipy.sparse.csgraph.csgraph_from_masked`.

    Examples
    --------
    >>> import numpy as np
    >>> from semiring.csgraph import csgraph_from_masked
    >>> graph = np.ma.masked_invalid([[np.nan, 0.0], [2.0, np.nan]])
    >>> csgraph_from_masked(graph).data  # 0 is not masked, so it is an edge
    array([0., 2.])

    Parameters
    ----------
    graph : masked array of shape (n, n)
        An array without a mask is valid too.

    Returns
    -------
    csr_array
        The entries that are not masked, in float64.
    """
    array = np.ma.asarray(graph)
    require_square(array)
    there = ~np.ma.getmaskarray(array)
    starts = np.concatenate([[0], np.cumsum(there.sum(axis=1))]).astype(np.int32)
    data = np.asarray(array.data)[there].astype(np.float64)
    return csr_array((data, np.nonzero(there)[1].astype(np.int32), starts), shape=array.shape)


@raised_here
@described_by(csgraph_masked_from_dense)
def csgraph_from_dense(graph: Any, null_value: float | None = 0, nan_null: bool = True, infinity_null: bool = True) -> Any:
    """Convert a dense array to a compressed graph: `scipy.sparse.csgraph.csgraph_from_dense`.

    Examples
    --------
    >>> from semiring.csgraph import csgraph_from_dense
    >>> csgraph_from_dense([[0, 1e-9], [2, 0]]).nnz
    2

    Returns
    -------
    csr_array
        The edges in float64; a `csr_matrix` for a `numpy.matrix`.
    """
    compressed = csgraph_from_masked(csgraph_masked_from_dense(graph, null_value, nan_null, infinity_null, copy=False))
    return csr_matrix(compressed) if isinstance(graph, np.matrix) else compressed


@raised_here
def construct_dist_matrix(graph: Any, predecessors: Any, directed: bool = True, null_value: float = np.inf) -> Array:
    """Return the distances along a matrix of predecessors: `scipy.sparse.csgraph.construct_dist_matrix`.

    Examples
    --------
    >>> import numpy as np
    >>> from semiring.csgraph import construct_dist_matrix
    >>> graph = [[0, 1, 5], [0, 0, 2], [0, 0, 0]]
    >>> before = np.array([[-1, 0, 1], [-1, -1, 1], [-1, -1, -1]], dtype=np.int32)
    >>> before[before < 0] = -9999
    >>> construct_dist_matrix(graph, before, null_value=-1)
    array([[ 0.,  1.,  3.],
           [-1.,  0.,  2.],
           [-1., -1.,  0.]])

    Parameters
    ----------
    graph : array_like, masked array, sparse array or matrix of shape (n, n)
        See `shortest_path`.
    predecessors : int32 array of shape (n, n)
        The predecessors that `shortest_path` returns.
    directed : bool
    null_value : float
        The distance between unconnected vertices.

    Returns
    -------
    float64 array of shape (n, n)
        ∞ if a path takes an edge that the graph lacks.

    Raises
    ------
    TypeError
        If predecessors have another dtype.
    ValueError
        If predecessors have another shape, name a vertex that does not exist, or form a circle (SciPy's function then never returns).

    Notes
    -----
    O(n² log h) for paths of h edges. Predecessors that do not lead back to the vertex of the row count as no path; SciPy returns the length
    of the incomplete path.
    """
    edges = np.ascontiguousarray(read(graph).matrix(np.dtype(np.float64)))
    before = np.asarray(predecessors)
    if before.dtype != np.int32:
        raise TypeError(f"Type of predecessors array should be np.int32, not {before.dtype}")
    if before.shape != edges.shape:
        raise ShapeError(f"graph and predecessors must have the same shape, not {edges.shape} and {before.shape}")
    n = len(edges)
    if before.max(initial=NONE) >= n or np.count_nonzero(before < 0) != np.count_nonzero(before == NONE):
        raise ValueError(f"predecessors must be vertices from 0 to {n - 1}, or {NONE} for none")
    if not directed:
        edges = np.minimum(edges, edges.T)
    distances = np.empty((n, n))
    everyone = np.arange(n)
    for rows in slices(n, 8 * n, CACHE):  # eight arrays share the cache
        roots = everyone[rows]
        parents = before[rows].astype(np.intp)
        parents[np.arange(len(roots)), roots] = NONE
        there = parents != NONE
        parents = np.where(there, parents, everyone)
        lengths = distances[rows]
        lengths[...] = np.where(there, edges.take(parents * n + everyone), 0)
        # Pointer doubling: after t rounds each vertex points 2ᵗ edges back and has the length of these edges.
        places = np.arange(0, parents.size, n)[:, None]
        pointers = parents + places
        for _ in range(n.bit_length()):
            further = pointers.take(pointers)
            if np.array_equal(further, pointers):
                break
            lengths += lengths.take(pointers)
            pointers = further
        turning = there.take(pointers)
        if turning.any():
            row, vertex = np.argwhere(turning)[0]
            raise ValueError(f"predecessors[{roots[row]}] lead from {vertex} into a circle, which no shortest path does")
        lengths[pointers != places + roots[:, None]] = null_value
    return distances


@raised_here
def reconstruct_path(csgraph: Any, predecessors: Any, directed: bool = True) -> Any:
    """Return the tree of a row of predecessors, with the weights of the graph: `scipy.sparse.csgraph.reconstruct_path`.

    Examples
    --------
    >>> from semiring.csgraph import reconstruct_path
    >>> reconstruct_path([[0, 1, 5], [0, 0, 2], [0, 0, 0]], [-9999, 0, 1]).toarray()
    array([[0., 1., 0.],
           [0., 0., 2.],
           [0., 0., 0.]])

    Parameters
    ----------
    csgraph : array_like, masked array, sparse array or matrix of shape (n, n)
        See `shortest_path`.
    predecessors : int array of shape (n,)
        A row of the predecessors that `shortest_path` returns; negative numbers mean none.
    directed : bool

    Returns
    -------
    csr_array
        An array of shape (n, n) that stores edges of weight 0 too; a `csr_matrix` for a SciPy matrix, a PyData array for a PyData array.

    Raises
    ------
    ValueError
        If the graph lacks an edge of the tree, or predecessors have another shape or are floats. SciPy stores 0 instead of a missing edge
        (with ``directed=False`` ∞, also for edges of weight 0), and before 1.18 converts floats.
    IndexError
        If a predecessor is not a vertex.
    """
    csr = read(csgraph).csr
    before = np.asarray(predecessors)
    if before.dtype.kind not in "iu":
        raise ValueError(f"predecessors must be integral (vertices, or a negative number for none), not {before.dtype}")
    if before.ndim != 1 or len(before) > csr.n:
        raise ShapeError(
            f"predecessors must be a row of at most {counted(csr.n, 'vertex', 'vertices')}, not an array of shape {before.shape}"
        )
    children = np.flatnonzero(before >= 0)
    parents = before[children].astype(np.int64)
    if (parents >= csr.n).any():
        raise IndexError(f"predecessors name vertex {parents.max()}, but the graph has {counted(csr.n, 'vertex', 'vertices')}")
    if not directed:
        csr = both_ways(csr)
    wanted = parents * csr.n + children
    at = np.searchsorted(csr.places, wanted)
    there = at < len(csr.places)
    there[there] = csr.places[at[there]] == wanted[there]
    if not there.all():
        child, parent = children[np.argmin(there)], parents[np.argmin(there)]
        raise ValueError(f"predecessors[{child}] is {parent}, but csgraph has no edge between the two in that direction")
    order = np.argsort(parents, kind="stable")
    starts = np.searchsorted(parents[order], np.arange(csr.n + 1)).astype(np.int32)
    kind = csr_matrix if isspmatrix(csgraph) else csr_array
    tree = kind((csr.weights[0][at[order]], children[order].astype(np.int32), starts), shape=(csr.n, csr.n))
    return type(csgraph).from_scipy_sparse(tree) if is_pydata(csgraph) else tree
