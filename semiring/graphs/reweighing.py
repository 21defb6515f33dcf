"""Other weights for a graph that was read before: numbers of the caller's as elements, and the edges that they are of."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, NamedTuple

import numpy as np

from semiring.algebra.definition import Semiring
from semiring.algorithms.csr import CSR
from semiring.arrays.conversion import conversions, require_inside, written_as
from semiring.arrays.devices import host
from semiring.arrays.exchange import borrowed
from semiring.arrays.memory import require_bytes
from semiring.common.errors import DTypeError, GraphError, ShapeError
from semiring.common.units import counted
from semiring.graphs.array_like import holds_sparse
from semiring.graphs.coo import listed_edges
from semiring.graphs.edge_list import EdgeList
from semiring.graphs.read import one_graph
from semiring.graphs.vertices import chosen
from semiring.kernels.overflow.statistics import surely_elements

__all__ = ["Listing", "as_elements", "reweighed"]

Array = np.ndarray[Any, Any]
Values = tuple[Array, ...]
DTypes = tuple[np.dtype[Any], ...]


class Listing(NamedTuple):
    """How the caller lists the edges of a graph, and how it was read.

    Attributes
    ----------
    ends : tuple of int arrays, or None
        Tails and heads in the caller's order; None where edges are in the order of rows, or in no known order.
    directed : bool
        Otherwise an edge has the same weight both ways.
    by_rows : bool
        Whether edges are listed by rows, then by columns, where there are no ends.
    weight, nonedge
        See `edges_of`.
    """

    ends: tuple[Array, Array] | None = None
    directed: bool = True
    by_rows: bool = True
    weight: Any = None
    nonedge: Any = None


def as_elements(numbers: Any, semiring: Semiring, dtypes: DTypes, what: str) -> Values:
    """Numbers as elements in some dtypes, one array a component; for ∞ integers have the semiring's zero.

    Parameters
    ----------
    numbers : array, or tuple of one a component
    semiring : Semiring
    dtypes : tuple of numpy.dtype
    what : str
        Their name, for errors.

    Raises
    ------
    GraphError, ShapeError, DTypeError, DomainError
        For what is no element.
    """
    parts = numbers if len(dtypes) > 1 else (numbers,)
    if not isinstance(parts, tuple) or len(parts) != len(dtypes):
        raise GraphError(f"{what} over {semiring.name} are a tuple of {len(dtypes)} arrays")
    try:
        given = tuple(np.atleast_1d(host(borrowed(part).array)) for part in parts)
    except ValueError as error:
        raise GraphError(f"{what} are no array: {error}") from error

    def where(index: tuple[int, ...]) -> str:
        return f"{what}[{', '.join(map(str, index))}]"

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
    """The ends of the edges that get other weights, as numbers of vertices, and their weights.

    Parameters
    ----------
    weights : array, tuple (tails, heads, weights), or graph
        Of all edges, of some by their ends, or of those that a sparse array, a list of edges or a graph of another library has. What a
        dense matrix has not gets the semiring's zero.
    semiring : Semiring
    edges : CSR
        Those that there are.
    labels : sequence or None
    listing : Listing
    weight, nonedge
        How a graph is read; by default as the one before, a weight where edges can have several.

    Raises
    ------
    GraphError, ShapeError, DTypeError, DomainError, TooLargeError
        For what is no weight of each edge, or has no room.
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
    if not listing.directed:  # edges, of which a graph may have both ways already
        one_way = ~np.isin(heads * edges.n + tails, tails * edges.n + heads) if graph else tails != heads
        back = np.flatnonzero(one_way)
        tails, heads = np.concatenate([tails, heads[back]]), np.concatenate([heads, tails[back]])
        values = tuple(np.concatenate([v, v[back]]) for v in values)
    return _closing(tails, heads, values, semiring, edges) if dense else (tails, heads, values)


def _axes(weights: Any, dtypes: DTypes) -> int:
    """The number of axes of an array or a list, or of each of a tuple where elements are structured; 1 for whatever has none."""
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
    """Weights of all edges in the caller's order, or of some by their ends."""
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
    """The edges of a graph of the same vertices."""
    dtypes, n = edges.dtypes, edges.n
    found, names = one_graph(graph, semiring, dtype=dtypes[0] if len(dtypes) == 1 else dtypes, closed=True, **read)
    if names is None:
        if found.n != n:
            raise ShapeError(f"weights are of a graph of {counted(found.n, 'vertex', 'vertices')}, and the factor has {n:,}")
        return found.tails, found.heads, found.weights
    numbers = chosen(list(names), n, labels, "nodes").numbers
    return numbers[found.tails], numbers[found.heads], found.weights


def _require_weights(listed: EdgeList, values: Values, edges: CSR) -> None:
    """Refuse edges without a weight for a graph that has weights; each would count 1."""
    if not listed.weights or isinstance(listed.weights, np.ndarray) or any(w is not None for w in listed.weights):
        return
    parts = zip(edges.weights, values, edges.zero, strict=True)
    if not np.logical_and.reduce([(w == v[0]) | (w == z) for w, v, z in parts]).all():
        raise GraphError("no edge has a weight, though the edges of the factor have; give every edge one, or pass weight=1 to count edges")


def _closing(tails: Array, heads: Array, values: Values, semiring: Semiring, edges: CSR) -> tuple[Array, Array, Values]:
    """The same with the zero for all edges, with which the others combine; and without loops that weigh 1 where there are none."""
    _, one = semiring.identities(edges.dtypes)
    loops = np.zeros(edges.n, dtype=bool)
    loops[edges.tails[edges.tails == edges.heads]] = True
    nothing = np.logical_and.reduce([v == o for v, o in zip(values, one, strict=True)])
    kept = np.flatnonzero((tails != heads) | loops[tails] | ~nothing)
    closed = (np.full(len(edges.tails), z, v.dtype) for z, v in zip(edges.zero, values, strict=True))
    ends = np.concatenate([edges.tails, tails[kept]]), np.concatenate([edges.heads, heads[kept]])
    return *ends, tuple(np.concatenate([c, v[kept]]) for c, v in zip(closed, values, strict=True))
