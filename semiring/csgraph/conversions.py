"""SciPy's conversions, without losing tiny weights: dense graphs to compressed ones, and predecessors to distances and trees."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import csr_array, csr_matrix, isspmatrix

from semiring.algorithms.csr import CSR
from semiring.algorithms.predecessors import NONE
from semiring.arrays.pieces import CACHE, slices
from semiring.common.errors import ShapeError, raised_here
from semiring.common.units import counted
from semiring.csgraph.reading import Array, both_ways, nulls, read, require_square
from semiring.graphs.array_like import is_pydata

__all__ = ["construct_dist_matrix", "csgraph_from_dense", "csgraph_from_masked", "csgraph_masked_from_dense", "reconstruct_path"]


@raised_here
def csgraph_masked_from_dense(
    graph: Any, null_value: float | None = 0, nan_null: bool = True, infinity_null: bool = True, copy: bool = True
) -> Any:
    """A masked array from a dense one: `scipy.sparse.csgraph.csgraph_masked_from_dense`.

    What is masked already stays so; in SciPy it becomes an edge again.

    Examples
    --------
    >>> from semiring.csgraph import csgraph_masked_from_dense
    >>> csgraph_masked_from_dense([[0, 1e-9], [2, 0]]).count()
    np.int64(2)

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
    """
    array = np.ma.array(graph, copy=copy)
    require_square(array)
    data = np.asarray(array.data)
    missing = nulls(data, null_value, nan_null=nan_null, infinity_null=infinity_null) | np.ma.getmaskarray(array)
    fill_value = null_value if null_value is not None and np.isfinite(null_value) else None
    return np.ma.array(data, mask=missing, copy=False, fill_value=fill_value)


@raised_here
def csgraph_from_masked(graph: Any) -> Any:
    """A compressed graph from a masked array: `scipy.sparse.csgraph.csgraph_from_masked`, also where nothing is masked.

    Examples
    --------
    >>> import numpy as np
    >>> from semiring.csgraph import csgraph_from_masked
    >>> graph = np.ma.masked_invalid([[np.nan, 0.0], [2.0, np.nan]])
    >>> csgraph_from_masked(graph).data  # 0 is an edge, as it is not masked
    array([0., 2.])

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
    """
    array = np.ma.asarray(graph)
    if array.ndim != 2 or array.shape[0] != array.shape[1]:
        raise ShapeError(f"graph should be a square array; this one has the shape {array.shape}")
    there = ~np.ma.getmaskarray(array)
    starts = np.concatenate([[0], np.cumsum(there.sum(axis=1))]).astype(np.int32)
    data = np.asarray(array.data)[there].astype(np.float64)
    return csr_array((data, np.nonzero(there)[1].astype(np.int32), starts), shape=array.shape)


@raised_here
def csgraph_from_dense(graph: Any, null_value: float | None = 0, nan_null: bool = True, infinity_null: bool = True) -> Any:
    """A compressed graph from a dense array: `scipy.sparse.csgraph.csgraph_from_dense`.

    Examples
    --------
    >>> from semiring.csgraph import csgraph_from_dense
    >>> csgraph_from_dense([[0, 1e-9], [2, 0]]).nnz
    2

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
    """
    compressed = csgraph_from_masked(csgraph_masked_from_dense(graph, null_value, nan_null, infinity_null, copy=False))
    return csr_matrix(compressed) if isinstance(graph, np.matrix) else compressed


@raised_here
def construct_dist_matrix(graph: Any, predecessors: Any, directed: bool = True, null_value: float = np.inf) -> Array:
    """The lengths of the paths that a matrix of predecessors describes: `scipy.sparse.csgraph.construct_dist_matrix`.

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
        As `shortest_path` gives it.
    directed : bool
    null_value : float
        The distance where there is no path.

    Returns
    -------
    float64 array of shape (n, n)
        ∞ where a path takes an edge that the graph has not.

    Raises
    ------
    TypeError
        For predecessors of another dtype.
    ValueError
        For another shape, vertices that do not exist, and predecessors that run in a circle: SciPy's never returns then.

    Notes
    -----
    O(n² log h) for paths of h edges. Predecessors that do not lead back to the vertex of their row are no path; SciPy returns the length
    of the part.
    """
    edges = np.ascontiguousarray(read(graph).matrix(np.dtype(np.float64)))
    before = np.asarray(predecessors)
    if before.dtype != np.int32:
        raise TypeError(f"Type of predecessors array should be np.int32, not {before.dtype}")
    if before.shape != edges.shape:
        raise ShapeError(f"graph and predecessors must have the same shape, not {edges.shape} and {before.shape}")
    n = len(edges)
    if before.max(initial=NONE) >= n or np.count_nonzero(before < 0) != np.count_nonzero(before == NONE):
        raise ValueError(f"predecessors are the vertices from 0 to {n - 1}, or {NONE} where there is none")
    if not directed:
        edges = np.minimum(edges, edges.T)
    distances = np.empty((n, n))
    everyone = np.arange(n)
    for rows in slices(n, 8 * n, CACHE):  # of eight arrays
        roots = everyone[rows]
        parents = before[rows].astype(np.intp)
        parents[np.arange(len(roots)), roots] = NONE
        there = parents != NONE
        parents = np.where(there, parents, everyone)
        lengths = distances[rows]
        lengths[...] = np.where(there, edges.take(parents * n + everyone), 0)
        # Places in these rows: after t rounds each vertex points 2ᵗ edges back, and knows their length.
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
            raise ValueError(f"predecessors[{roots[row]}] lead from {vertex} into a circle, so that they are no shortest paths")
        lengths[pointers != places + roots[:, None]] = null_value
    return distances


@raised_here
def reconstruct_path(csgraph: Any, predecessors: Any, directed: bool = True) -> Any:
    """The tree that a row of predecessors describes, with the weights of the graph: `scipy.sparse.csgraph.reconstruct_path`.

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
        A row of what `shortest_path` gives; what is negative is none.
    directed : bool

    Returns
    -------
    csr_array
        Of shape (n, n); `csr_matrix` for a SciPy matrix, and PyData's own kind for that. An edge of weight 0 is stored.

    Raises
    ------
    ValueError
        For an edge that the graph lacks: SciPy stores 0, or ∞ with ``directed=False``, and ∞ too for edges of weight 0. Also for another
        shape, and for floats, which SciPy converts before version 1.18.
    IndexError
        For a vertex that does not exist.
    """
    csr = read(csgraph).csr
    before = np.asarray(predecessors)
    if before.dtype.kind not in "iu":
        raise ValueError(f"predecessors must be of an integral dtype, not {before.dtype}: vertices, and a negative number for none")
    if before.ndim != 1 or len(before) > csr.n:
        raise ShapeError(f"predecessors is a row of {counted(csr.n, 'vertex', 'vertices')}, not of shape {before.shape}")
    children = np.flatnonzero(before >= 0)
    parents = before[children].astype(np.int64)
    if (parents >= csr.n).any():
        raise IndexError(f"predecessors name vertex {parents.max()}, of {csr.n}")
    weights, there = _found(csr if directed else both_ways(csr), parents, children)
    if not there.all():
        at = int(np.argmin(there))
        raise ValueError(f"predecessors[{children[at]}] is {parents[at]}, but csgraph has no edge between the two in that direction")
    order = np.argsort(parents, kind="stable")
    starts = np.searchsorted(parents[order], np.arange(csr.n + 1)).astype(np.int32)
    kind = csr_matrix if isspmatrix(csgraph) else csr_array
    tree = kind((weights[order], children[order].astype(np.int32), starts), shape=(csr.n, csr.n))
    return type(csgraph).from_scipy_sparse(tree) if is_pydata(csgraph) else tree


def _found(csr: CSR, tails: Array, heads: Array) -> tuple[Array, Array]:
    """The weights of the edges between some vertices, and where there are such edges."""
    places, wanted = csr.tails * csr.n + csr.heads, tails * csr.n + heads
    at = np.searchsorted(places, wanted)
    there = at < len(places)
    there[there] = places[at[there]] == wanted[there]
    weights = np.full(len(wanted), np.inf)
    weights[there] = csr.weights[0][at[there]]
    return weights, there
