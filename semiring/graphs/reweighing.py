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
        Tails and heads in the caller's order; None where that is by rows, or there is none.
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
    if wrong := next((v.dtype for v in given if v.dtype.kind not in "biuf"), None):
        raise DTypeError(f"{what} must be numbers, not {wrong}")
    if len({v.shape for v in given}) > 1:
        raise ShapeError(f"the components of {what} differ in shape: {', '.join(str(v.shape) for v in given)}")

    def where(index: tuple[int, ...]) -> str:
        return f"{what}[{', '.join(map(str, index))}]"

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
) -> tuple[Array, Array, Values]:
    """The ends of the edges that get other weights, as numbers of vertices, and their weights.

    Parameters
    ----------
    weights : array, tuple (tails, heads, weights), or graph
        Of all edges, of some by their ends, or of those that a sparse array, a list of edges or a graph of another library has.
    semiring : Semiring
    edges : CSR
        Those that there are. A dense matrix closes which it has not.
    labels : sequence or None
    listing : Listing
    """
    n, dtypes, every = edges.n, edges.dtypes, listing.ends or ((edges.tails, edges.heads) if listing.by_rows else None)
    if holds_sparse(weights) or listed_edges(weights) is not None:
        return _of_graph(weights, semiring, dtypes, labels, n, listing)
    if getattr(weights, "ndim", 1) == 2:
        tails, heads, values = _of_graph(weights, semiring, dtypes, labels, n, listing)
        closed = (np.full(len(edges.tails), z, v.dtype) for z, v in zip(edges.zero, values, strict=True))
        ends = np.concatenate([edges.tails, tails]), np.concatenate([edges.heads, heads])
        return *ends, tuple(np.concatenate(parts) for parts in zip(closed, values, strict=True))
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
        raise GraphError(f"{len(values[0]):,} weights for {len(tails):,} edges; pass one for each, or (tails, heads, weights)")
    if listing.directed:
        return tails, heads, values
    back = np.flatnonzero(tails != heads)
    ends = np.concatenate([tails, heads[back]]), np.concatenate([heads, tails[back]])
    return *ends, tuple(np.concatenate([v, v[back]]) for v in values)


def _of_graph(
    graph: Any, semiring: Semiring, dtypes: DTypes, labels: Sequence[Hashable] | None, n: int, listing: Listing
) -> tuple[Array, Array, Values]:
    """The edges of a graph of the same vertices."""
    dtype = dtypes[0] if len(dtypes) == 1 else dtypes
    edges, names = one_graph(graph, semiring, weight=listing.weight, nonedge=listing.nonedge, dtype=dtype, closed=True)
    if names is None:
        if edges.n != n:
            raise ShapeError(f"weights are of a graph of {counted(edges.n, 'vertex', 'vertices')}, and the factor has {n:,}")
        return edges.tails, edges.heads, edges.weights
    numbers = chosen(list(names), n, labels, "nodes").numbers
    return numbers[edges.tails], numbers[edges.heads], edges.weights
