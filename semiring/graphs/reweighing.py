"""New weights for a graph that was read before: numbers as elements, and the edges they belong to."""

from __future__ import annotations

import functools
import math
from collections.abc import Hashable, Sequence
from typing import Any, NamedTuple

import numpy as np

from semiring.algebra.definition import Semiring
from semiring.algorithms.csr import CSR
from semiring.arrays.conversion import Array, conversions, require_inside, written_as
from semiring.arrays.devices import host
from semiring.arrays.exchange import borrowed, holds_sparse
from semiring.arrays.memory import require_bytes
from semiring.common.errors import DTypeError, GraphError, ShapeError
from semiring.common.units import counted
from semiring.graphs.dense import DTypes, Values, entry_name
from semiring.graphs.edge_list import EdgeList
from semiring.graphs.foreign import listed_edges
from semiring.graphs.read import one_graph
from semiring.graphs.vertices import chosen
from semiring.kernels.overflow.statistics import surely_elements

__all__ = ["Listing", "as_columns", "as_elements", "reweighed"]


class Listing(NamedTuple):
    """The caller's order of the edges of a graph, and the options of reading."""

    # tails and heads in the caller's order; None for edges in the order of rows, or in no known order
    ends: tuple[Array, Array] | None = None
    directed: bool = True  # false if an edge has the same weight both ways
    by_rows: bool = True  # without `ends`, edges are ordered by rows, then by columns
    weight: Any = None  # see `edges_of`
    nonedge: Any = None


def as_elements(numbers: Any, semiring: Semiring, dtypes: DTypes, what: str) -> Values:
    """Convert numbers to elements of some dtypes, one array a component; ∞ becomes the semiring's zero in integers.

    `what` names the numbers in messages. Raises GraphError, ShapeError, DTypeError or DomainError for numbers that are no elements.
    """
    parts = numbers if len(dtypes) > 1 else (numbers,)
    if not isinstance(parts, tuple) or len(parts) != len(dtypes):
        raise GraphError(f"{what} over {semiring.name} are a tuple of {len(dtypes)} arrays")
    try:
        given = tuple(np.atleast_1d(host(borrowed(part).array)) for part in parts)
    except ValueError as error:
        raise GraphError(f"{what} are no array: {error}") from error
    where = functools.partial(entry_name, what=what)
    if wrong := next((v.dtype for v in given if v.dtype.kind not in "biuf"), None):
        none = next((f"; {where(i)} is None" for v in given if v.dtype == object for i, x in np.ndenumerate(v) if x is None), "")
        raise DTypeError(f"{what} must be numbers, not {wrong}{none}")
    if len({v.shape for v in given}) > 1:
        raise ShapeError(f"the components of {what} differ in shape: {', '.join(str(v.shape) for v in given)}")
    require_bytes(sum(v.size * d.itemsize for v, d in zip(given, dtypes, strict=True)), f"{what} would take", "pass fewer at a time")
    convert = conversions(semiring, [written_as(v.dtype, numbers=True) for v in given], dtypes)
    found = tuple(np.ascontiguousarray(to(v, where)) for to, v in zip(convert, given, strict=True))
    if not surely_elements(semiring, found):
        require_inside(semiring, found, what)
    return found


def as_columns(elements: Sequence[Any], n: int) -> list[Any]:
    """Return arrays or tensors with a row for each of n vertices as matrices of columns, or raise ShapeError."""
    shape = tuple(elements[0].shape)
    if len(shape) not in (1, 2) or shape[0] != n:
        raise ShapeError(f"b must have a row for each of {counted(n, 'vertex', 'vertices')}, shape ({n},) or ({n}, k); got {shape}")
    return [v.reshape(n, math.prod(shape[1:])) for v in elements]


def reweighed(
    weights: Any,
    semiring: Semiring,
    edges: CSR,
    labels: Sequence[Hashable] | None,
    listing: Listing,
    *,
    weight: Any = None,
    nonedge: Any = None,
) -> tuple[Array, Array, Values]:
    """Return the ends of the edges that get new weights, as numbers of vertices, and the weights.

    `weights` are an array for all edges, a tuple (tails, heads, weights) of some edges, or a graph; a dense matrix gives edges that it
    lacks the semiring's zero. `edges` are the existing edges. `weight` and `nonedge` are options of reading a graph, by default those of
    `listing` (`weight` only if edges have several attributes). Raises GraphError, ShapeError, DTypeError or DomainError for invalid
    weights, and TooLargeError if they exceed the memory.
    """
    listed = listed_edges(weights)
    if weight is None and listed is not None and (listed is not weights or len(listed.columns)):
        weight = listing.weight
    sparse = holds_sparse(weights)
    dense = listed is None and not sparse and _axes(weights, edges.dtypes) == 2
    graph = dense or sparse or listed is not None
    if graph:
        read = {"weight": weight, "nonedge": listing.nonedge if nonedge is None else nonedge, "listed": listed}
        tails, heads, values = _of_graph(weights, semiring, edges, labels, read)
        if listed is not None and weight is None:
            _require_weights(listed, values, edges)
    else:
        tails, heads, values = _of_list(weights, semiring, edges, labels, listing)
    if not listing.directed:  # a graph may list both directions already
        one_way = ~np.isin(heads * edges.n + tails, tails * edges.n + heads) if graph else tails != heads
        back = np.flatnonzero(one_way)
        tails, heads = np.concatenate([tails, heads[back]]), np.concatenate([heads, tails[back]])
        values = tuple(np.concatenate([v, v[back]]) for v in values)
    return _closing(tails, heads, values, semiring, edges) if dense else (tails, heads, values)


def _axes(weights: Any, dtypes: DTypes) -> int:
    """Return the number of axes of an array or a list (for structured elements, of the first component); 1 for anything else."""
    first = weights[0] if len(dtypes) > 1 and isinstance(weights, tuple) and weights else weights
    if isinstance(first, tuple):
        return 1
    try:
        return int(getattr(first, "ndim", None) or np.ndim(first) or 1)
    except ValueError:
        return 1


def _of_list(
    weights: Any, semiring: Semiring, edges: CSR, labels: Sequence[Hashable] | None, listing: Listing
) -> tuple[Array, Array, Values]:
    """Read weights of all edges in the caller's order, or of some by their ends."""
    n, dtypes, every = edges.n, edges.dtypes, listing.ends or ((edges.tails, edges.heads) if listing.by_rows else None)
    if isinstance(weights, tuple) and len(weights) == 3 and (len(dtypes) != 3 or isinstance(weights[2], tuple)):
        tails, heads = chosen(weights[0], n, labels, "tails").numbers, chosen(weights[1], n, labels, "heads").numbers
        values = as_elements(weights[2], semiring, dtypes, "weights")
    elif every is None:
        raise GraphError(
            "the entries of this kind of sparse array have no order: pass (tails, heads, weights), or a sparse array of weights"
        )
    else:
        (tails, heads), values = every, as_elements(weights, semiring, dtypes, "weights")
    if values[0].ndim != 1:
        raise GraphError(f"weights are a flat sequence, one number for each edge, and no array of shape {values[0].shape}")
    if not len(tails) == len(heads) == len(values[0]):
        raise GraphError(
            f"{counted(len(values[0]), 'weight')} for {counted(len(tails), 'edge')}; pass one for each, or (tails, heads, weights)"
        )
    return tails, heads, values


def _of_graph(
    graph: Any, semiring: Semiring, edges: CSR, labels: Sequence[Hashable] | None, read: dict[str, Any]
) -> tuple[Array, Array, Values]:
    dtypes, n = edges.dtypes, edges.n
    found, names = one_graph(graph, semiring, dtype=dtypes[0] if len(dtypes) == 1 else dtypes, closed=True, **read)
    if names is None:
        if found.n != n:
            raise ShapeError(f"weights are of a graph of {counted(found.n, 'vertex', 'vertices')}, and the factor has {n:,}")
        return found.tails, found.heads, found.weights
    numbers = chosen(list(names), n, labels, "nodes").numbers
    return numbers[found.tails], numbers[found.heads], found.weights


def _require_weights(listed: EdgeList, values: Values, edges: CSR) -> None:
    """Refuse unweighted edges, which would count 1, for a graph that has weights."""
    if not listed.weights or isinstance(listed.weights, np.ndarray) or any(w is not None for w in listed.weights):
        return
    parts = zip(edges.weights, values, edges.zero, strict=True)
    if not np.logical_and.reduce([(w == v[0]) | (w == z) for w, v, z in parts]).all():
        raise GraphError("no edge has a weight, though the edges of the factor have; give every edge one, or pass weight=1 to count edges")


def _closing(tails: Array, heads: Array, values: Values, semiring: Semiring, edges: CSR) -> tuple[Array, Array, Values]:
    """Add a zero for each existing edge, which combines with the others; and drop new loops of weight 1."""
    _, one = semiring.identities(edges.dtypes)
    loops = np.zeros(edges.n, dtype=bool)
    loops[edges.tails[edges.tails == edges.heads]] = True
    nothing = np.logical_and.reduce([v == o for v, o in zip(values, one, strict=True)])
    kept = np.flatnonzero((tails != heads) | loops[tails] | ~nothing)
    closed = (np.full(len(edges.tails), z, v.dtype) for z, v in zip(edges.zero, values, strict=True))
    ends = np.concatenate([edges.tails, tails[kept]]), np.concatenate([edges.heads, heads[kept]])
    return *ends, tuple(np.concatenate([c, v[kept]]) for c, v in zip(closed, values, strict=True))
