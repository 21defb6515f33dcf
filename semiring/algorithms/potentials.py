"""Johnson's algorithm against rounding: a closure by potentials, with which no cycle can improve.

Potentials satisfy p_v ⊕ p_u ⊗ a_uv = p_v on all edges (Johnson, 1977). The reweighed element p_u ⊗ a_uv ⊗ p_v⁻¹ is then harmless: for
shortest paths p_u + a_uv − p_v ≥ 0. The potentials of inner vertices cancel, so the closure of the reweighed matrix is the reweighed
closure. Nothing improves on 1 there, so rounding cannot make a cycle improve; otherwise one rounding error would grow exponentially.

Reweighing itself rounds, in proportion to the potentials, which may exceed the weights of a path by far. Therefore only the paths are taken
from the closure of the reweighed matrix, and the elements are summed again along these paths.

Examples
--------
Distances from a virtual source are potentials. Reweighed lengths are not negative, and paths between the same vertices keep their order:

>>> from semiring import MIN_PLUS
>>> inf = np.inf
>>> roads = np.array([[0, 2, inf, inf], [inf, 0, -3, 1], [inf, inf, 0, 2], [1, inf, inf, 0]])
>>> p = (np.array([0., 0., -3., -1.]),)
>>> (back,) = inverse(MIN_PLUS, p)
>>> a = roads.copy()
>>> reweigh(MIN_PLUS, (a,), p, (back,))
>>> a
array([[ 0.,  2., inf, inf],
       [inf,  0.,  0.,  2.],
       [inf, inf,  0.,  0.],
       [ 0., inf, inf,  0.]])
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from semiring.algebra.definition import Semiring
from semiring.algebra.expression import is_operation, node, var
from semiring.algorithms.bellman_ford import Relaxation
from semiring.algorithms.csr import CSR
from semiring.arrays.pieces import CACHE, slices
from semiring.kernels.cpu.patterns import strong_components
from semiring.kernels.operations import Operations, operations_for

if TYPE_CHECKING:
    from semiring.kernels.cpu.searches import Searches

__all__ = ["adds_along_paths", "close_by_potentials", "inverse", "potentials_by_components", "reweighed"]

Array = np.ndarray[Any, Any]
Values = tuple[Array, ...]


def close_by_potentials(
    semiring: Semiring, values: Values, via: Array, edges: Values, p: Values, back: Values, close: Callable[[Values, Array], None]
) -> None:
    """values ← A ⊕ A² ⊕ …, in place, by Johnson's algorithm.

    `via` is −1 where an element is an edge, `edges` a copy of the input `values`, and `back` holds the inverses of the potentials p.
    `close(values, via)` closes a matrix in place.
    """
    # a_uv ← p_u ⊗ a_uv ⊗ p_v⁻¹
    reweigh(semiring, values, p, back, clamp=True)
    close(values, via)
    # a_uv ← p_u⁻¹ ⊗ a_uv ⊗ p_v
    reweigh(semiring, values, back, p)
    resum(semiring, values, via, edges)


def inverse(semiring: Semiring, p: Values) -> Values | None:
    """Return the inverse of each element under ⊗ if ⊗ adds or multiplies component by component; else None."""
    found = []
    for c, (product, part) in enumerate(zip(semiring.program.mul, p, strict=True)):
        operands = (var(0, c), var(1, c))
        if product in (node("add", *operands), node("add", *operands[::-1])):
            found.append(-part)
        elif product in (node("mul", *operands), node("mul", *operands[::-1])) and part.all():
            found.append(1 / part)
        else:
            return None
    return tuple(found)


def potentials_by_components(semiring: Semiring, edges: CSR, searches: Searches) -> Array | None:
    """Find potentials of a sparse graph over min-plus or max-plus by its strongly connected components; O(n + m) for an acyclic graph.

    No cycle leads through two components. So edges inside components get potentials q by Bellman–Ford, from a virtual source that reaches
    every vertex. Each component gets an offset for the edges between components, in topological order, so that p = q + off. The offset is
    off_C = min(0, off_B + q_u + a_uv − q_v) over the edges from u in B to v in C. Return None over other semirings, and if the search
    inside components takes too long, as on a negative cycle.

    Examples
    --------
    >>> from semiring import MIN_PLUS
    >>> from semiring.kernels.select import searches_for
    >>> line = CSR.of(np.array([0, 1, 2]), np.array([1, 2, 3]), (np.array([-1.0, 2.0, -5.0]),), 4, (np.inf,))
    >>> potentials_by_components(MIN_PLUS, line, searches_for(MIN_PLUS, line.dtypes, "cpu"))
    array([ 0., -1.,  0., -5.])
    """
    if not adds_along_paths(semiring):
        return None
    sign = 1 if semiring.program.add[0].op == "min" else -1
    (weights,) = edges.weights
    count, component = strong_components(edges.starts, edges.heads)
    before, after = component[edges.tails], component[edges.heads]
    inside = before == after
    q = np.zeros(edges.n, weights.dtype)
    if (sign * weights[inside] < 0).any():
        tails, heads = np.append(edges.tails[inside], np.full(edges.n, edges.n)), np.append(edges.heads[inside], np.arange(edges.n))
        graph = CSR.of(tails, heads, (np.append(weights[inside], q),), edges.n + 1, edges.zero)
        row = np.empty((1, edges.n + 1), weights.dtype)
        arrays = graph.starts, graph.heads, graph.weights
        complete, _ = searches.rows(arrays, np.array([edges.n]), (row,), None, best_first=False, backward=False)
        if not complete:
            return None
        q = row[0, :-1]
    between = np.flatnonzero(~inside)
    between = between[np.argsort(-before[between], kind="stable")]  # edges lead to components of lower numbers
    costs = sign * (q[edges.tails[between]] + weights[between] - q[edges.heads[between]])
    offsets = [weights.dtype.type(0).item()] * count
    for b, c, cost in zip(before[between].tolist(), after[between].tolist(), costs.tolist(), strict=True):
        offsets[c] = min(offsets[c], offsets[b] + cost)
    found: Array = q + sign * np.array(offsets, weights.dtype)[component]
    return found


def adds_along_paths(semiring: Semiring) -> bool:
    """Return True if ⊗ adds numbers and ⊕ is their minimum or maximum, as in min-plus and max-plus."""
    program = semiring.program
    return len(program.add) == 1 and is_operation(program.mul[0], ("add",)) and is_operation(program.add[0], ("min", "max"))


def reweighed(semiring: Semiring, edges: CSR, p: Values, back: Values) -> CSR:
    """Return a sparse graph with p_u ⊗ a_uv ⊗ p_v⁻¹ for each a_uv, or 1 where rounding made that improve on 1."""
    operations = operations_for(semiring, edges.dtypes)
    with np.errstate(all="ignore"):
        weights = operations.mul(tuple(v[edges.tails] for v in p), edges.weights)
        weights = operations.mul(weights, tuple(v[edges.heads] for v in back))
        total = operations.add(tuple(np.full_like(w, o) for w, o in zip(weights, operations.one, strict=True)), weights)
    harmless = np.logical_and.reduce([np.asarray(t == o) for t, o in zip(total, operations.one, strict=True)])
    parts = zip(weights, operations.one, edges.dtypes, strict=True)
    return edges.with_weights(tuple(np.where(harmless, w, o).astype(d) for w, o, d in parts))


def reweigh(semiring: Semiring, values: Values, left: Values, right: Values, *, clamp: bool = False) -> None:
    """values_uv ← left_u ⊗ values_uv ⊗ right_v, in place, computed in double precision.

    `clamp` replaces each divergent result, with 1 ⊕ w ≠ 1, by 1: rounding left it on the wrong side.
    """
    graph = Relaxation(semiring, values)
    one = graph.operations.one
    for rows in slices(graph.n, graph.n, CACHE):
        weights = graph.multiply(tuple(h[rows, None] for h in left), graph.rows(np.arange(graph.n)[rows]))
        weights = graph.multiply(weights, tuple(h[None, :] for h in right))
        divergent = graph.changes(tuple(np.broadcast_to(np.asarray(o), w.shape) for o, w in zip(one, weights, strict=True)), weights)
        for array, new, unit in zip(values, weights, one, strict=True):
            array[rows] = np.where(divergent, unit, new) if clamp else new


def resum(semiring: Semiring, values: Values, via: Array, edges: Values) -> None:
    """values_ij ← edges_ij where via is −1, else values_ik ⊗ values_kj with k = via_ij, in place, parts first.

    O(n²) steps for each generation of `via`. An element whose `via` rounding has bent into a circle keeps its value.
    """
    operations = Operations(semiring, tuple(v.dtype for v in values))
    known = via < 0
    for array, edge in zip(values, edges, strict=True):
        np.copyto(array, edge, where=known)
    progress = True
    while progress:
        progress = False
        for rows in slices(len(via), len(via), CACHE):
            i, j = np.nonzero(~known[rows])
            i += rows.start
            k = via[i, j]
            ready = known[i, k] & known[k, j]
            i, j, k = i[ready], j[ready], k[ready]
            totals = operations.mul(tuple(v[i, k] for v in values), tuple(v[k, j] for v in values))
            for array, total in zip(values, totals, strict=True):
                array[i, j] = total
            known[i, j] = True
            progress |= len(i) > 0
