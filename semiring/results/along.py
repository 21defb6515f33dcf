"""Another attribute along the best paths of a store: sums of it, or its elements multiplied by another ⊗.

For all pairs each entry of a tree of best paths takes one ⊗ from the entry of its predecessor. Chosen pairs, paths within a limit and exact
numbers go path by path.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from semiring.algebra.definition import Semiring
from semiring.algorithms.bellman_ford import better
from semiring.algorithms.csr import CSR, combine_runs, present
from semiring.algorithms.predecessors import multiply_along
from semiring.arrays.conversion import Array, Values, conversions, refuse_nan, widened, written_as
from semiring.arrays.devices import host
from semiring.arrays.exchange import as_array_like, is_sparse
from semiring.common.errors import DTypeError, GraphError, ShapeError
from semiring.graphs.coo import COO, coordinates, to_scipy
from semiring.graphs.dense import Reading, nonedges
from semiring.graphs.edge_table import is_number
from semiring.graphs.foreign import listed_edges
from semiring.graphs.weights import elements_of, require_weight
from semiring.kernels.operations import operations_for
from semiring.kernels.overflow.closures import guard_for, statistics_of
from semiring.kernels.select import element_operations, has_loops
from semiring.results.store import Store
from semiring.results.within import TreesWithin

__all__ = ["all_along", "pairs_along", "reader"]

Elements = Callable[[Array, Array], Values]
"""Returns the elements of edges, given as arrays of tails and heads."""


def all_along(store: Store, other: Any, semiring: Semiring) -> Values:
    """Multiply along the paths of all pairs: an array for each component, of the shape of the store's elements, or sparse arrays."""
    elements, n, nothing = _reader(store, other, semiring), store.names.n, np.zeros(0, np.intp)
    dtypes = tuple([e.dtype for e in elements(nothing, nothing)])
    zero, one = semiring.identities(dtypes)
    if isinstance(store, TreesWithin):
        matrix: Any = store.values[0]
        entries = _by_paths(store, elements, semiring, matrix.edges.tails, matrix.edges.heads.astype(np.intp))
        return tuple([each.to_scipy() for each in replace(matrix.edges, weights=entries, zero=zero).arrays()])

    def path_by_path() -> Values:
        every = np.indices(store.shape).reshape(2, -1)
        return tuple([v.reshape(store.shape) for v in _by_paths(store, elements, semiring, *every)])

    if not has_loops(semiring, dtypes):
        return path_by_path()
    backward = bool(getattr(store, "backward", False))
    tree = host((store.next_hops() if backward else store.predecessors())[:])
    tree, roots = np.ascontiguousarray(tree.T if backward else tree), store.targets if backward else store.sources
    rows, v = np.nonzero(tree >= 0)
    ends = (v, tree[rows, v]) if backward else (tree[rows, v], v)
    values, given = tuple([np.full(tree.shape, z, d) for z, d in zip(zero, dtypes, strict=True)]), elements(*ends)
    if not present(given, zero).all():  # integers that stand for ∞ would wrap in the loop
        return path_by_path()
    for array, edges, o in zip(values, given, one, strict=True):
        array[rows, v] = edges
        array[np.arange(len(tree)), roots.numbers] = o
    scratch, single = (np.zeros(n, np.int64), np.empty(n, np.int32)), element_operations(semiring, dtypes)
    multiply = multiply_along.bind(len(tree), n, tree, values, *scratch, semiring=single, backward=backward)
    if not multiply(10 * tree.size):
        raise GraphError("rounding has bent a best path into a circle; pass pairs=, or exact numbers")
    values = tuple([array.T if backward else array if store.complete else array[:, store.targets.numbers] for array in values])
    if not store.reflexive:  # trees have no cycles
        at = np.nonzero(store.sources.numbers[:, None] == store.targets.numbers)
        for array, cycles in zip(values, _by_paths(store, elements, semiring, *at), strict=True):
            array[at] = cycles
    return values


def pairs_along(store: Store, other: Any, semiring: Semiring, pairs: Any) -> Values:
    """Multiply along the paths of some pairs of vertices: an array for each component."""
    places = np.array([store.place(source, target) for source, target in pairs], dtype=np.intp).reshape(-1, 2)
    return _by_paths(store, _reader(store, other, semiring), semiring, places[:, 0], places[:, 1])


def _by_paths(store: Store, elements: Elements, semiring: Semiring, rows: Array, columns: Array) -> Values:
    """Multiply along the path of each pair, the first edges of all paths first."""
    paths, nothing = store.find(rows, columns), np.zeros(0, np.intp)
    dtypes = tuple([e.dtype for e in elements(nothing, nothing)])
    there, step, operations = np.array([len(path) > 0 for path in paths], bool), 0, operations_for(semiring, dtypes)
    found = tuple([np.where(there, o, z).astype(d) for z, o, d in zip(*semiring.identities(dtypes), dtypes, strict=True)])
    left = [k for k, path in enumerate(paths) if len(path) > 1]
    while left:
        new = elements(*(np.array([paths[k][step + end] for k in left]) for end in (0, 1)))
        for value, part in zip(found, operations.mul(tuple([v[left] for v in found]), new) if step else new, strict=True):
            value[left] = part
        step += 1
        left = [k for k in left if len(paths[k]) > step + 1]
    return found


def _reader(store: Store, other: Any, semiring: Semiring) -> Elements:
    """Return a function that reads the elements of the edges on paths from an attribute, a number, or an array."""
    n = store.names.n
    if not isinstance(other, str):
        return reader(other, n, semiring)
    edges = _attribute(store, other, semiring)

    def named(tails: Array, heads: Array) -> Values:
        number = np.searchsorted(edges.places, tails.astype(np.int64) * n + heads)
        missing = np.append(edges.places, -1)[number] != tails.astype(np.int64) * n + heads
        if missing.any():
            u, v = (store.names.nodes[int(ends[missing][0])] for ends in (tails, heads))
            raise GraphError(f"the graph has changed: no edge from {u!r} to {v!r} has the attribute {other!r}")
        return tuple([w[number] for w in edges.weights])

    return named


def reader(other: Any, n: int, semiring: Semiring) -> Elements:
    """Return a function that reads the elements of edges from a number, or an array of shape (n, n)."""
    numbers = is_sparse(other) or isinstance(other, list | tuple)  # there no integer stands for ∞
    if is_number(other):
        matrix: Any = np.broadcast_to(np.array(other, None if isinstance(other, Fraction) else np.float64), (n, n))
    else:
        matrix = to_scipy(other).tocsr() if is_sparse(other) else host(as_array_like(other).array)
    if matrix.shape != (n, n):
        raise ShapeError(f"the values of edges have the shape {matrix.shape}, and {n} vertices need {(n, n)}")

    def read(tails: Array, heads: Array) -> Values:
        def where(e: tuple[int, ...]) -> str:
            return f"the value of the edge {tails[e[0]]} → {heads[e[0]]}"

        # SciPy returns a sparse array for no entries.
        values: Values = (np.asarray(matrix[tails, heads]).reshape(-1) if len(tails) else np.zeros(0, matrix.dtype),)
        refuse_nan(values[0], where)
        if semiring.components > 1:
            require_weight(semiring, f"the elements of {semiring.name} have {semiring.components} components")
            values = elements_of(values[0], semiring)
        dtypes = tuple([np.dtype(np.int64) if v.dtype.kind in "bi" else widened(v.dtype) for v in values])
        try:
            semiring.identities(dtypes)
        except DTypeError:  # no integers, or truth values
            dtypes = semiring.dtypes(np.bool_ if semiring.on_truth_values else np.float64)
        change = conversions(semiring, [written_as(v.dtype, numbers=numbers) for v in values], dtypes)
        values = tuple([to(v, where) for to, v in zip(change, values, strict=True)])
        if len(tails) and values[0].dtype != object:
            guard_for(semiring, dtypes, n).before(statistics_of(semiring, values))
        return values

    return read


def _attribute(store: Store, name: str, semiring: Semiring) -> CSR:
    """Read an attribute of the edges; of parallel edges, that of the first one with the best weight."""
    graph, question = store.given or (None, None)
    listed = None if graph is None else listed_edges(graph)
    if listed is None or question is None:
        raise GraphError(f"no edges with the attribute {name!r} are known; pass an array of shape {(store.names.n,) * 2} instead")
    options, presence = question.options, question.presence
    weighed = coordinates(graph, store.semiring, options.weight, presence=presence, listed=listed)
    found = coordinates(graph, semiring, name, presence=False, listed=listed)
    assert weighed is not None
    assert found is not None
    number = np.flatnonzero(~nonedges(weighed.weights, options.nonedge))
    places = weighed.tails[number].astype(np.int64) * weighed.n + weighed.heads[number]
    order = np.argsort(places, kind="stable")
    number, weights = number[order], [np.ones(len(order), bool)] if presence else [w[number[order]] for w in weighed.weights]
    weights = [w.astype(d) for w, d in zip(weights, store.dtypes, strict=True)]
    _, (*_, best) = combine_runs(places[order], (*weights, number), partial(better, operations_for(store.semiring, store.dtypes)))
    weights = [v[best] for v in found.weights]
    some = COO(found.tails[best], found.heads[best], tuple(weights), found.n, lambda e: found.where((int(best[e[0]]),)))
    return some.csr(semiring, Reading(closed=True))
