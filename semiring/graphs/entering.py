"""Costs of vertices: the weight of an edge u → v becomes w ⊗ c(v), the cost of the vertex that a path enters."""

from __future__ import annotations

import functools
import operator
from dataclasses import replace
from typing import Any

import numpy as np

from semiring.algebra.definition import Semiring
from semiring.algorithms.csr import CSR, present
from semiring.arrays.conversion import Values, conversions, require_inside, written_as
from semiring.arrays.devices import device_of, host, on_device, on_gpu, to_gpu
from semiring.arrays.exchange import a_name_of, as_array_like
from semiring.common.errors import GraphError, ShapeError
from semiring.graphs.dense import Graph
from semiring.graphs.foreign import attribute_of_vertices
from semiring.graphs.weights import components_of
from semiring.kernels.operations import operations_for
from semiring.kernels.overflow.closures import guard_for, statistics_of

__all__ = ["entering"]


def entering(graph: Any, read: CSR | Graph, semiring: Semiring, costs: Any) -> Any:
    """Multiply each edge of a graph by the cost of the vertex to which the edge leads. Nothing is overwritten.

    `costs` name an attribute of the vertices of `graph`, or are an array of shape (n,). GraphError, ShapeError or DTypeError refuse others.
    """
    given = costs if isinstance(costs, str | list | tuple) else host(as_array_like(costs).array)
    found: Any = attribute_of_vertices(graph, costs) if isinstance(costs, str) else given
    if found is None:
        raise GraphError(f"no vertex of {a_name_of(graph)} has the attribute {costs!r}; pass an array with a cost for each vertex")
    if np.shape(found) != (read.n,):
        raise ShapeError(f"node_weight has the shape {np.shape(found)}, and {read.n} vertices need ({read.n},)")
    missing = [v for v, cost in enumerate(found) if cost is None]
    if missing:
        raise GraphError(f"vertex {missing[0]} has no {costs!r}; give every vertex a cost, or pass an array")
    parts = components_of(found, semiring, lambda e: f"vertex {e[0]}")
    change = conversions(semiring, [written_as(p.dtype, numbers=True) for p in parts], read.dtypes)
    vertices = tuple([to(p, lambda e: f"the cost of vertex {e[0]}") for to, p in zip(change, parts, strict=True)])
    require_inside(semiring, vertices, "node_weight", axes=1)
    if isinstance(read, CSR):
        weights = _product(semiring, read.weights, tuple([c[read.heads] for c in vertices]))
        there = present(weights, read.zero)
        weights = tuple([w[there] for w in weights])
        return CSR.of(read.tails[there], read.heads[there], weights, read.n, read.zero, tuple(statistics_of(semiring, weights)))
    if read.verify is not None:
        read.verify()
    matrix, (zero, one) = tuple(map(host, read.values)), semiring.identities(read.dtypes)
    products = _product(semiring, matrix, tuple([c[None, :] for c in vertices]))
    absent, unit = (functools.reduce(operator.and_, [v == x for v, x in zip(matrix, xs, strict=True)]) for xs in (zero, one))
    same = absent.astype(bool) | (unit.astype(bool) & np.eye(read.n, dtype=bool))
    values = tuple([np.where(same, v, p) for v, p in zip(matrix, products, strict=True)])
    if on_gpu(read.values[0]):
        with on_device(device_of(read.values[0])):
            values = tuple(map(to_gpu, values))
    return replace(read, values=values, owned=False, verify=None)


def _product(semiring: Semiring, weights: Values, costs: Values) -> Values:
    dtypes = tuple([w.dtype for w in weights])
    if weights[0].size and all(d.kind != "O" for d in dtypes):
        largest = statistics_of(semiring, tuple([np.append(w, c) for w, c in zip(weights, costs, strict=True)]))
        guard_for(semiring, dtypes, 2).before(largest)
    with np.errstate(all="ignore"):
        return operations_for(semiring, dtypes).mul(weights, costs)
