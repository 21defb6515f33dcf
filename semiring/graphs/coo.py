"""Graphs that list their edges (sparse arrays, `EdgeList`s, graphs of libraries) as triplets (COO) and as matrices over a semiring.

`coordinates` lists the edges of a graph, with a name for each edge. `COO.csr` and `COO.dense` drop non-edges, convert weights, refuse
invalid elements, and combine parallel edges with ⊕. `csr_of_scipy` is a shortcut for compressed rows of SciPy that need no change.
"""

from __future__ import annotations

from collections.abc import Hashable
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from semiring.algebra.definition import Semiring
from semiring.algebra.expression import CHOOSING, nodes
from semiring.algorithms.csr import CSR, combine_runs, in_order, in_range, present
from semiring.arrays.conversion import EXACT_IN_FLOAT64, Array, Place, conversions, outside, refuse_nan, require_inside, widened, written_as
from semiring.arrays.exchange import comes_from, holds_sparse, is_pydata, is_sparse, name_of
from semiring.arrays.memory import require_memory, require_row_starts
from semiring.common.errors import DTypeError, GraphError, ShapeError, brief
from semiring.graphs.dense import Graph, Reading, Values, entry_name, nonedges
from semiring.graphs.edge_list import EdgeList, refuse_name
from semiring.graphs.foreign import listed_edges
from semiring.graphs.weights import components_of, elements_of, refuse_weight, require_weight, weighted
from semiring.kernels.compressed import strange_columns, strange_starts
from semiring.kernels.limits import ValueStatistics, absorbing
from semiring.kernels.operations import Operations
from semiring.kernels.overflow.statistics import surely_elements, value_statistics

__all__ = ["COO", "coordinates", "csr_of_scipy", "sound_rows", "to_scipy"]

_FLOAT64 = (np.dtype(np.float64),)


class COO(NamedTuple):
    """Weighted edges in any order, with parallel ones: ``weights[:, e]`` from ``tails[e]`` to ``heads[e]``."""

    tails: Array  # the ends of each edge: SciPy's ``row`` and ``col``
    heads: Array
    weights: Values  # one for each component of an element
    n: int  # the number of vertices
    where: Place  # names an edge, for messages
    labels: tuple[Hashable, ...] | None = None  # the vertices; None for 0 … n − 1

    def dense(self, semiring: Semiring, reading: Reading) -> Graph:
        """Return a dense matrix over a semiring, if it fits into memory. O(n² + m log m) for m edges."""
        return Graph(self.csr(semiring, reading, dense=True).dense(), True, self.labels)

    def csr(self, semiring: Semiring, reading: Reading, *, dense: bool = False) -> CSR:
        """Return the matrix over a semiring in compressed rows; parallel edges combine with ⊕. O(m log m) for m edges.

        With `dense`, a graph is refused if its dense matrix does not fit into memory.
        """
        tails, heads, weights, n, where, _ = self
        there = ~nonedges(weights, reading.nonedge)
        if not there.all():
            kept = np.flatnonzero(there)
            weights = tuple(w[kept] for w in weights)
            tails, heads, where = tails[kept], heads[kept], lambda e: self.where((int(kept[e[0]]),))
        dtypes, count = _dtypes(weights, semiring, reading.dtype, where), len(tails)
        if dense:
            require_memory(n, dtypes, via=reading.paths)
        zero, _ = semiring.identities(dtypes)
        require_row_starts(n, "the graph", rows="vertices", entries="edges", advice=", as sr.edges does")
        weights = tuple(_present(w, where) for w in weights) if reading.presence else weights
        convert = conversions(semiring, [written_as(w.dtype, numbers=True) for w in weights], dtypes)
        weights = tuple(to(w, where) for to, w in zip(convert, weights, strict=True))
        statistics = _require_inside(semiring, weights, where)
        tails, heads, weights = in_order(n, tails, heads, weights, partial(_sums, semiring, self))
        there = present(weights, zero)
        if not (reading.closed or there.all()):
            tails, heads, weights = tails[there], heads[there], tuple(w[there] for w in weights)
        return CSR.of(tails, heads, weights, n, zero, statistics if len(tails) == count else ())


def _require_inside(semiring: Semiring, weights: Values, where: Place) -> tuple[ValueStatistics, ...]:
    """Refuse a weight that is no element; return the value statistics of numeric weights, and nothing for others."""
    dtypes = tuple(w.dtype for w in weights)
    numbers = all(d.kind not in "bO" for d in dtypes)
    statistics = value_statistics(weights, absorbing(semiring, dtypes)) if numbers else ()
    index = None if surely_elements(semiring, weights, statistics) else outside(semiring, weights)
    if index is not None:
        require_inside(semiring, tuple(w[index] for w in weights), f"the weight of {where(index)}", of_graph=True)
    return statistics


def _present(weights: Array, where: Place) -> Array:
    """Return True for every edge, also of weight 0; only a weight that is a truth value tells whether the edge exists."""
    if weights.dtype.kind == "b":
        return weights
    refuse_nan(weights, where)
    if weights.dtype.kind == "O":
        return np.array([bool(w) if isinstance(w, bool | np.bool_) else True for w in weights], dtype=bool)
    return np.ones(weights.shape, dtype=bool)


def _sums(semiring: Semiring, coo: COO, places: Array, weights: Values) -> tuple[Array, Values]:
    """Return each of the sorted places once, and the ⊕ of its weights."""
    dtypes = tuple(w.dtype for w in weights)
    bounded = {e.op for e in nodes(*semiring.program.add)} <= CHOOSING  # ⊕ only selects or combines bits
    if bounded or all(d.kind not in "iu" for d in dtypes):
        return combine_runs(places, weights, Operations(semiring, dtypes).add)
    # Python's integers do not wrap, and `narrow` refuses sums that do not fit.
    exact = (np.dtype(object),) * len(dtypes)
    widen, narrow = conversions(semiring, dtypes, exact), conversions(semiring, exact, dtypes)
    places, weights = combine_runs(places, tuple(to(w, str) for to, w in zip(widen, weights, strict=True)), Operations(semiring, exact).add)

    def where(index: tuple[int, ...]) -> str:
        u, v = (i if coo.labels is None else repr(coo.labels[i]) for i in divmod(int(places[index]), coo.n))
        return f"the parallel edges from {u} to {v} together"

    return places, tuple(to(w, where) for to, w in zip(narrow, weights, strict=True))


def _dtypes(weights: Values, semiring: Semiring, dtype: Any, where: Place) -> tuple[np.dtype[Any], ...]:
    """Return the requested dtypes, else float64, else (for semirings without floats) bool or the weights' own."""
    own = tuple(widened(w.dtype) for w in weights)  # refuses text and complex numbers
    if dtype is not None:
        return semiring.dtypes(dtype)
    for candidate in (np.float64, np.bool_, own):  # without identities for the last, the caller will raise the reason
        with suppress(DTypeError):
            semiring.identities(candidate)
            break
    dtypes = semiring.dtypes(candidate)
    for w, target in zip(weights, dtypes, strict=True):
        index = _rounded(w) if target.kind == "f" else None
        if index is not None:
            integer = int(w[index])
            same = w.dtype.kind != "O" and integer not in (np.iinfo(w.dtype).min, np.iinfo(w.dtype).max)  # which stand for ∞ there
            exact = f"np.{w.dtype}" if same else "object"
            none = "" if same else f", or nonedge={brief(integer)} if it means 'no edge'"
            problem = f"is {brief(integer)}, which float64 would round; pass dtype={exact}, or dtype=np.float64 to accept that{none}"
            raise DTypeError(f"{where((index,))} {problem}")
    return dtypes


def _rounded(weights: Array) -> int | None:
    if weights.dtype.kind == "O":
        return next((position for position, w in enumerate(weights) if isinstance(w, int | np.integer) and _rounds(int(w))), None)
    if weights.dtype.kind not in "iu":
        return None
    beyond = (weights > EXACT_IN_FLOAT64) | (weights < -EXACT_IN_FLOAT64)
    return int(np.argmax(beyond)) if beyond.any() else None


def _rounds(integer: int) -> bool:
    """Return True if float64 would round an integer; False if it would overflow."""
    try:
        return float(integer) != integer
    except OverflowError:
        return False


def csr_of_scipy(graph: Any, semiring: Semiring, reading: Reading) -> CSR | None:
    """Return SciPy's compressed rows if no change is needed; None if `COO.csr` has to convert them."""
    if graph.format != "csr" or semiring.components > 1 or semiring.on_truth_values or reading.presence or reading.nonedge is not None:
        return None
    graph = sound_rows(graph)
    weights, heads, starts, (n, *columns) = graph.data, graph.indices, graph.indptr, graph.shape
    dtypes = (weights.dtype,)
    wanted = semiring.dtypes(_FLOAT64 if reading.dtype is None else reading.dtype)
    if wanted != dtypes or columns != [n] or not graph.has_canonical_format:
        return None
    heads = heads.astype(np.int64)
    if not in_range(heads, n):  # SciPy does not check heads
        return None
    statistics = value_statistics((weights,), absorbing(semiring, dtypes))
    (found,), (zero,) = statistics, semiring.identities(dtypes)[0]
    least, greatest = found.finite or (zero, zero)
    absent = not (least <= zero <= greatest) or (zero == 0 and found.zeros == 0) or found.finite is None
    if not (absent and found.all_finite and surely_elements(semiring, (weights,), statistics)):
        return None
    return CSR(int(n), starts.astype(np.intp), heads, (weights,), (zero,), statistics)


def coordinates(graph: Any, semiring: Semiring, weight: Any, *, presence: bool, listed: EdgeList | None = None) -> COO | None:
    """List the edges of a graph with the requested weights; None for a dense matrix. See `read_graph`.

    `listed` are its `listed_edges`, if already known.
    """
    if listed is None:
        listed = listed_edges(graph)
    if listed is not None:
        return _of_edge_list(weighted(listed, weight, presence=presence, warns=not semiring.on_truth_values), semiring)
    refuse_name(graph, "a graph")
    if weight is not None:
        refuse_weight(graph, weight)
    if is_sparse(graph):
        if semiring.components > 1:
            held = f"not the {semiring.components} components of {semiring.name}, as a tuple of {semiring.components} does"
            require_weight(semiring, f"a sparse array holds single numbers, {held}")
        coo = _of_scipy((to_scipy(graph),))
        return coo if semiring.components == 1 else coo._replace(weights=elements_of(coo.weights[0], semiring))
    if semiring.components == 1 or not holds_sparse(graph):
        return None
    if len(graph) != semiring.components or not all(map(is_sparse, graph)):
        kinds = ", ".join(type(part).__name__ for part in graph)
        raise ShapeError(f"a graph over {semiring.name} is a tuple of {semiring.components} sparse arrays, and not of {kinds}")
    return _of_scipy(tuple(map(to_scipy, graph)))


def _of_scipy(parts: tuple[Any, ...]) -> COO:
    """Read the stored entries of sparse arrays, except zeros that pad a block or a diagonal; entries stored twice are parallel edges."""
    shape = parts[0].shape
    if len(shape) != 2 or shape[0] != shape[1]:
        raise ShapeError(f"a graph is a square matrix, not a sparse array of shape {shape}")
    if wrong := next((part.dtype for part in parts if part.dtype.kind not in "biuf"), None):
        raise DTypeError(f"a sparse array of {wrong} is not supported; use bool, an integer or a float dtype")
    try:
        first, *others = (part.tocoo() for part in parts)
    except ValueError as error:
        raise GraphError(f"the sparse array stores an entry outside of its shape {shape}: {error}") from None
    tails, heads, weights = first.row, first.col, (first.data, *(coo.data for coo in others))
    if not all(coo.shape == shape and np.array_equal(coo.row, tails) and np.array_equal(coo.col, heads) for coo in others):
        raise ShapeError("the components of a graph must have entries in the same places, in the same order")
    if all(part.format in ("bsr", "dia") for part in parts):
        stored = np.logical_or.reduce([w != 0 for w in weights])
        tails, heads, weights = tails[stored], heads[stored], tuple([w[stored] for w in weights])
    return COO(tails, heads, weights, int(shape[0]), lambda e: entry_name((tails[e[0]], heads[e[0]])))


def _of_edge_list(graph: EdgeList, semiring: Semiring) -> COO:
    """Read each edge of a list, and after all of them the reversed undirected edges."""

    def where(index: tuple[int, ...]) -> str:
        return graph.edge_name(index[0] % max(1, len(graph.weights)))

    tails, heads, weights = graph.sources, graph.targets, components_of(graph.weights, semiring, where)
    if not graph.directed:
        back = np.flatnonzero(tails != heads)
        tails, heads = np.concatenate([tails, heads[back]]), np.concatenate([heads, tails[back]])
        weights = tuple(np.concatenate([w, w[back]]) for w in weights)
    return COO(tails, heads, weights, len(graph.labels), where, graph.labels)


def to_scipy(value: Any, absent: tuple[Any, ...] = (0, np.inf, -np.inf, np.nan)) -> Any:
    """Convert a sparse array to SciPy; entries that are not stored must be one of `absent`.

    Raises GraphError for an array on a GPU, another fill value, and inconsistent row starts.
    """
    if comes_from(value, "cupyx"):
        raise GraphError(f"the {name_of(value)} is sparse and on a GPU; pass .get() and device='cuda', which copies only the edges")
    if not is_pydata(value):
        return sound_rows(value)
    try:
        return value.asformat("coo").to_scipy_sparse(accept_fv=list(absent))
    except ValueError as error:
        raise GraphError(f"the {name_of(value)} has an edge wherever it stores none ({error}); pass .todense()") from None


def sound_rows(matrix: Any) -> Any:
    """Drop entries of a SciPy array that are stored after the last row; SciPy ignores them too.

    Raises GraphError for row starts that decrease or exceed the stored entries, which SciPy's compiled code does not check.
    """
    starts = getattr(matrix, "indptr", None)
    if starts is None or not len(starts):
        return matrix
    indices, data, count = matrix.indices, matrix.data, int(starts[-1])
    if count > min(len(indices), len(data)) or bool(strange_starts(starts, count)):
        raise strange_columns()
    if len(indices) == len(data) == count:
        return matrix
    return type(matrix)((data[:count], indices[:count], starts), shape=matrix.shape)
