"""Bellman–Ford over a semiring: relaxation of edges, p_v ← p_v ⊕ p_u ⊗ a_uv, and the search for a cycle of weight c with 1 ⊕ c ≠ 1.

Bellman (1958), Ford (1956). `Relaxation` reads a dense or sparse matrix by blocks of rows and computes floats in double precision.
`find_cycle` starts from a virtual source that reaches every vertex, and looks for cycles of predecessors while these grow (Cherkassky and
Goldberg, 1999). Rounding can invent such a cycle, so each candidate is confirmed by its `exact_weight`.

Johnson's algorithm (1977) closes a matrix by potentials where rounding alone makes a cycle improve (`close_by_potentials`).
Potentials satisfy p_v ⊕ p_u ⊗ a_uv = p_v on all edges. The reweighed element p_u ⊗ a_uv ⊗ p_v⁻¹ is then harmless: for
shortest paths p_u + a_uv − p_v ≥ 0. The potentials of inner vertices cancel, so the closure of the reweighed matrix is the reweighed
closure. Nothing improves on 1 there, so rounding cannot make a cycle improve; otherwise one rounding error would grow exponentially.

Reweighing itself rounds, in proportion to the potentials, which may exceed the weights of a path by far. Therefore only the paths are taken
from the closure of the reweighed matrix, and the elements are summed again along these paths.

Examples
--------
A round from vertex 0, and a round from the changed vertices:

>>> from semiring import MIN_PLUS
>>> inf = np.inf
>>> graph = relaxation(MIN_PLUS, (np.array([[0, 3, inf, 7], [8, 0, 2, inf], [5, inf, 0, 1], [2, inf, inf, 0]]),))
>>> p, predecessor, active = (np.array([0, inf, inf, inf]),), np.full(4, -1), np.array([0])
>>> for _ in range(2):
...     for offer, who in graph.offers(p, active):
...         active = np.flatnonzero(graph.take(p, offer, who, predecessor))
...     print(p[0], predecessor, active)
[ 0.  3. inf  7.] [-1  0 -1  0] [1 3]
[0. 3. 5. 7.] [-1  0  1  0] [2]

The cycle 1 → 2 → 3 → 1 has the length −3 + 1 + 1:

>>> roads = np.array([[0, 1, inf, inf], [inf, 0, -3, inf], [inf, inf, 0, 1], [inf, 1, inf, 0]])
>>> cycle, _ = find_cycle(MIN_PLUS, (roads,), 0)
>>> cycle
[2, 3, 1]
>>> exact_weight(MIN_PLUS, (roads,), [*cycle, cycle[0]])
Fraction(-1, 1)

With 1 more on its last edge the cycle is harmless, and the distances from the virtual source are potentials:

>>> roads[3, 1] = 2
>>> cycle, (p,) = find_cycle(MIN_PLUS, (roads,), 0)
>>> cycle, p.tolist()
(None, [0.0, 0.0, -3.0, -2.0])

Distances from a virtual source are potentials. Reweighed lengths are not negative, and paths between the same vertices keep their order:

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

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from semiring.algebra import ops
from semiring.algebra.definition import Semiring
from semiring.algebra.expression import ARITHMETIC, BITWISE, evaluate, is_operation, node, var
from semiring.algebra.laws import is_selective
from semiring.algorithms.csr import CSR, SparseArray, combine_runs
from semiring.algorithms.strong_components import strong_components
from semiring.arrays.conversion import Array, Values
from semiring.arrays.pieces import CACHE, slices
from semiring.kernels.operations import Operations, operations_for

if TYPE_CHECKING:
    from semiring.algorithms.search import Searches

__all__ = [
    "Relaxation", "adds_along_paths", "better", "close_by_potentials", "compared", "eased", "exact_weight", "filled", "find_cycle",
    "inverse", "potentials_by_components", "relaxation", "reweighed", "rounding",
]  # fmt: skip


def relaxation(semiring: Semiring, values: Values) -> Relaxation:
    """Return the relaxation of a dense matrix, or of the components of a sparse one (`CSR.arrays`)."""
    return (_SparseRelaxation if isinstance(values[0], SparseArray) else Relaxation)(semiring, values)


class Relaxation:
    """Bellman–Ford steps on a dense matrix: p_v ← p_v ⊕ p_u ⊗ a_uv, in dtypes that hold the weight of any walk of n edges."""

    def __init__(self, semiring: Semiring, values: Values) -> None:
        self.n = int(values[0].shape[0])
        self.dtypes = _search_dtypes(semiring, tuple(v.dtype for v in values))
        self.operations = Operations(semiring, self.dtypes)
        self._values = values
        self._zero, _ = semiring.identities([v.dtype for v in values])

    def everywhere(self, element: tuple[Any, ...]) -> Values:
        """Return values of all vertices with the same element."""
        return tuple(filled(self.n, e, d) for e, d in zip(element, self.dtypes, strict=True))

    def rows(self, vertices: Array) -> Values:
        """Return the rows of an array of vertices."""
        return self._widened(tuple(v[vertices] for v in self._values))

    def diagonal(self) -> Values:
        """Return the loops of all vertices."""
        return self._widened(tuple(v.diagonal() for v in self._values))

    def _widened(self, parts: Values) -> Values:
        """Convert elements to the dtypes of the search; zeros of integers become the zero of the wider dtype."""
        found = []
        for part, dtype, old, new in zip(parts, self.dtypes, self._zero, self.operations.zero, strict=True):
            wide = part.astype(dtype)
            if dtype != part.dtype and part.dtype.kind in "iu":
                wide[part == old] = new
            found.append(wide)
        return tuple(found)

    def multiply(self, p: Values, edges: Values) -> Values:
        """Return p ⊗ a, without a warning on overflow."""
        with np.errstate(all="ignore"):
            return self.operations.mul(p, edges)

    def offers(self, p: Values, active: Array) -> Iterator[tuple[Values, Array]]:
        """Yield, for each block of `active` vertices, the best offer to each vertex, and the vertex of the offer.

        `p` is read block by block, so that an accepted offer is passed on within the same sweep.
        """
        for some in slices(len(active), self.n, CACHE):
            block = active[some]
            candidates = self.multiply(tuple(v[block, None] for v in p), self.rows(block))
            yield self._best(candidates, np.broadcast_to(block[:, None], (len(block), self.n)))

    def take(self, p: Values, offer: Values, who: Array, predecessor: Array, tolerance: float = 0.0) -> Array:
        """Accept better offers: update p and the predecessors in place, and mark the changed vertices."""
        better = self.accepts(p, offer, tolerance)
        for old, new in zip(p, offer, strict=True):
            old[better] = new[better]
        predecessor[better] = who[better]
        return better

    def changes(self, old: Values, new: Values) -> Array:
        """Mark where old ⊕ new is not old."""
        return self._compare(old, new, 0.0)[0]

    def accepts(self, old: Values, new: Values, tolerance: float = 0.0) -> Array:
        """Mark where `new` replaces `old`: old ⊕ new is new, and differs from old by more than the tolerance."""
        changed, wins = self._compare(old, new, tolerance)
        return changed & wins

    def _compare(self, old: Values, new: Values, tolerance: float) -> tuple[Array, Array]:
        return compared(self.operations, old, new, tolerance if self.dtypes[0].kind == "f" else 0)

    def _best(self, candidates: Values, who: Array) -> tuple[Values, Array]:
        """Return the best of each column and its row; the first on a tie."""
        while len(who) > 1:
            half = -(-len(who) // 2)
            first, second = (tuple(c[part] for c in candidates) for part in (slice(0, len(who) - half), slice(half, None)))
            better = self.accepts(first, second)
            best = tuple(np.where(better, s, f) for f, s in zip(first, second, strict=True))
            middle = slice(len(who) - half, half)
            candidates = tuple(np.concatenate([b, c[middle]]) for b, c in zip(best, candidates, strict=True))
            who = np.concatenate([np.where(better, who[half:], who[: len(who) - half]), who[middle]])
        return tuple(c[0] for c in candidates), who[0]


class _SparseRelaxation(Relaxation):
    """Bellman–Ford steps on a sparse matrix: only stored edges are read."""

    def offers(self, p: Values, active: Array) -> Iterator[tuple[Values, Array]]:
        """Yield offers by blocks with about as many edges as a block of dense rows has entries."""
        edges = cast(SparseArray, self._values[0]).edges
        ends = np.cumsum(edges.starts[active + 1] - edges.starts[active])
        cuts = np.unique(np.searchsorted(ends, np.arange(CACHE, ends[-1] if len(ends) else 0, CACHE), side="right"))
        for block in np.split(active, cuts):
            position, number = edges.leaving(block)
            tails, heads = block[position], edges.heads[number]
            weights = self._widened(tuple(w[number] for w in edges.weights))
            candidates = self.multiply(tuple(v[tails] for v in p), weights)
            order = np.argsort(heads, kind="stable")
            heads, (*best, winners) = combine_runs(
                heads[order], (*(c[order] for c in candidates), tails[order]), partial(better, self.operations)
            )
            offer, who = self.everywhere(self.operations.zero), np.zeros(self.n, dtype=np.intp)
            for array, entries in zip((*offer, who), (*best, winners), strict=True):
                array[heads] = entries
            yield offer, who


def compared(operations: Operations, old: Values, new: Values, tolerance: float = 0) -> tuple[Array, Array]:
    """Mark where old ⊕ new is not old (by more than the tolerance), and where old ⊕ new is new."""
    with np.errstate(all="ignore"):
        total = operations.add(old, new)
        changed = np.zeros(total[0].shape, dtype=bool)
        wins = np.ones(total[0].shape, dtype=bool)
        for t, o, c in zip(total, old, new, strict=True):
            changed |= np.asarray(t != o, dtype=bool)
            wins &= np.asarray(t == c, dtype=bool)
        if tolerance:
            changed &= ~(np.abs(total[0] - old[0]) <= tolerance)
    return changed, wins


def better(operations: Operations, first: Values, second: Values) -> Values:
    """Return the better of two elements, each with its vertex as the last array; the first on a tie."""
    changed, wins = compared(operations, first[:-1], second[:-1])
    return tuple(np.where(changed & wins, s, f) for f, s in zip(first, second, strict=True))


def filled(shape: int | tuple[int, ...], element: Any, dtype: np.dtype[Any]) -> Array:
    """Return an array filled with one element of any type."""
    array = np.empty(shape, dtype=dtype)
    array.fill(element)  # as one object, if it is a sequence
    return array


def _search_dtypes(semiring: Semiring, dtypes: tuple[np.dtype[Any], ...]) -> tuple[np.dtype[Any], ...]:
    """Return dtypes that hold the weight of any walk of n edges."""
    if any(d.kind == "O" for d in dtypes):
        return dtypes
    operations = semiring.program.operations
    wider: dict[str, np.dtype[Any]] = {"f": np.dtype(np.float64)}
    if semiring.program.modulus is not None:
        return (np.dtype(np.int64),)
    if operations & ARITHMETIC == {"add"} and not operations & BITWISE:
        wider["i"] = np.dtype(np.int64)  # sums of n weights fit, or the closure would have been refused
    elif operations & ARITHMETIC and not operations & BITWISE:
        wider["i"] = wider["u"] = np.dtype(np.float64)
    return tuple(wider.get(d.kind, d) for d in dtypes)


def find_cycle(semiring: Semiring, values: Values, start: int, tolerance: float = 0.0) -> tuple[list[int] | None, Values]:
    """Find a cycle of weight c with 1 ⊕ c ≠ 1, as vertices in order, or None and potentials p as a proof.

    The proof is p_v ⊕ p_u ⊗ a_uv = p_v for all u and v, for a selective ⊕ and up to rounding.

    Parameters
    ----------
    semiring : Semiring
    values : tuple of arrays of shape (n, n)
    start : int
        A vertex likely to reach such a cycle; the first search starts here, the second everywhere.
    tolerance : float
        Bound of the rounding error in the weight of a path; a cycle within this bound of 1 is harmless.

    Notes
    -----
    Complete for a selective ⊕, except for cycles hidden by rounding: O(n³) steps at worst, O(n²) for each sweep over the changed vertices.
    For other ⊕, such as counts of shortest paths, cycles of tying edges are tried as well.
    """
    graph = relaxation(semiring, values)
    everywhere = graph.everywhere(graph.operations.one)
    for v in np.flatnonzero(graph.changes(everywhere, graph.diagonal())).tolist():
        if _diverges(semiring, values, [v], tolerance):
            return [v], everywhere
    source = graph.everywhere(graph.operations.zero)
    for vector, element in zip(source, graph.operations.one, strict=True):
        vector[start] = element
    for p in (source, everywhere):
        cycle = _improving(semiring, graph, p, values, tolerance)
        if cycle is not None:
            return cycle, p
    if is_selective(semiring, [v.dtype for v in values]):
        return None, everywhere
    return _tying(semiring, graph, everywhere, values, tolerance), everywhere


def _improving(semiring: Semiring, graph: Relaxation, p: Values, values: Values, tolerance: float) -> list[int] | None:
    """Relax edges from p, in place, until nothing improves or the predecessors hold a confirmed cycle."""
    predecessor = np.full(graph.n, -1, dtype=np.intp)
    active = np.arange(graph.n)
    search, chained, least = 1, 0, tolerance
    for sweep in range(1, graph.n + 2):
        changed = np.zeros(graph.n, dtype=bool)
        for offer, who in graph.offers(p, active):
            changed |= graph.take(p, offer, who, predecessor, least)
            chained += 1
        active = np.flatnonzero(changed)[:: -1 if sweep % 2 else 1]
        # Search often at first, and before integers on a cycle have gained n more weights.
        if sweep >= search or chained >= graph.n or not len(active) or sweep == graph.n + 1:
            search, chained = sweep + 1 + sweep // 4, 0
            for cycle in _cycles(predecessor):
                if _diverges(semiring, values, cycle, tolerance):
                    return cycle
                # Only rounding made this cycle improve: require a larger improvement from now on.
                least = max(2 * least, _ulp(p[0]))
                predecessor[cycle[0]] = -1
        if not len(active):
            break
    return None


def _cycles(predecessor: Array) -> Iterator[list[int]]:
    n = len(predecessor)
    ancestor = np.append(np.where(predecessor < 0, n, predecessor), n)
    step = ancestor
    for _ in range(max(1, n.bit_length())):
        ancestor = ancestor[ancestor]
    # A vertex with an ancestor n or more generations back descends from a cycle, and that ancestor is on the cycle.
    left = set(np.unique(ancestor[:n]).tolist()) - {n}
    while left:
        start = v = left.pop()
        cycle = [v]
        while (v := int(step[v])) != start:
            cycle.append(v)
        left.difference_update(cycle)
        yield cycle[::-1]


def _tying(semiring: Semiring, graph: Relaxation, p: Values, values: Values, tolerance: float) -> list[int] | None:
    """Find a divergent cycle of edges whose offers change p without replacing p; ⊕ is not selective."""
    edges = []
    for u in range(graph.n):
        offer = graph.multiply(tuple(v[u] for v in p), tuple(r[0] for r in graph.rows(np.array([u]))))
        edges.append(np.flatnonzero(graph.changes(p, offer)))
    # Peel off vertices without an incoming edge; then each remaining vertex has a predecessor.
    source = np.repeat(np.arange(graph.n), [len(e) for e in edges])
    target = np.concatenate(edges) if edges else source
    while len(source):
        inner = np.bincount(target, minlength=graph.n) > 0
        if inner[source].all():
            break
        source, target = source[inner[source]], target[inner[source]]
    predecessor = np.full(graph.n, -1, dtype=np.intp)
    predecessor[target] = source
    return next((c for c in _cycles(predecessor) if _diverges(semiring, values, c, tolerance)), None)


def _diverges(semiring: Semiring, values: Values, cycle: Sequence[int], tolerance: float) -> bool:
    weight = exact_weight(semiring, values, [*cycle, cycle[0]])
    weight, one = (v if isinstance(v, tuple) else (v,) for v in (weight, semiring.one))
    if tolerance and abs(weight[0] - one[0]) <= tolerance:
        return False
    if any(v.dtype.kind == "O" for v in values):
        return not Operations(semiring, tuple(v.dtype for v in values)).harmless(weight)
    return evaluate(semiring.program.add, one, weight, ops.TABLE) != one


def exact_weight(semiring: Semiring, values: Values, path: Sequence[int]) -> Any:
    """Return the ⊗-product of a path's edges, with finite floats as exact fractions."""
    weight: Sequence[Any] = semiring.one if isinstance(semiring.one, tuple) else [semiring.one]
    objects = any(v.dtype.kind == "O" for v in values)
    multiply: Any = Operations(semiring, tuple(v.dtype for v in values)).mul if objects else None
    for u, v in itertools.pairwise(path):
        edge = [_exact(array[u, v]) for array in values]
        weight = multiply(weight, edge) if multiply is not None else evaluate(semiring.program.mul, weight, edge, ops.TABLE)
    parts = list(weight)
    return tuple(parts) if len(parts) > 1 else parts[0]


def _exact(value: Any) -> Any:
    if isinstance(value, np.generic):
        value = value.item()
    return Fraction(value) if isinstance(value, float) and math.isfinite(value) else value


def eased(semiring: Semiring, values: Values, tolerance: float) -> Values:
    """Return a matrix of numbers, dense or sparse, with each weight w less preferred by `tolerance` · |w|; ⊕ is a minimum or a maximum."""
    (array,) = values
    weights = (array.edges.weights[0] if isinstance(array, SparseArray) else array).astype(np.float64)
    change = tolerance * np.abs(weights, where=np.isfinite(weights), out=np.zeros_like(weights))
    weights += change if is_operation(semiring.program.add[0], ("min",)) else -change
    return array.edges.with_weights((weights,)).arrays() if isinstance(array, SparseArray) else (weights,)


def rounding(values: Values) -> float:
    """Bound the error of n rounded sums of weights: n · ε · the largest finite magnitude (0 for exact dtypes)."""
    return len(values[0]) * max(map(_ulp, values[0])) if values[0].dtype.kind == "f" else 0.0


def _ulp(array: Array) -> float:
    if array.dtype.kind != "f":
        return 0.0
    magnitude = np.abs(array)
    return float(np.finfo(array.dtype).eps * np.max(magnitude, where=np.isfinite(magnitude), initial=0.0))


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
    >>> from semiring.algorithms.search import searches_for

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
        complete, _ = searches.rows(arrays, np.array([edges.n]), (row,), None, order="rounds", backward=False)
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
