"""The least mean weight of a cycle, and a critical cycle with this mean, by Howard's policy iteration.

A policy takes one edge from each vertex, and so ends on cycles; λ is the least mean of these cycles. The policy's values satisfy
v_u = w − λ + v_v for the chosen edge u → v of weight w. If another edge from u offers less, the policy takes that edge. Otherwise
v_u ≤ w − λ + v_v for all edges, and the sum around any cycle proves a mean of λ or more (Cochet-Terrasson et al., 1998; Dasdan, 2004).

λ never rises, and while λ stays, values only fall, as in Bellman's and Ford's algorithm: so the iteration ends. Costs are multiplied by the
length of the cycle, q·w − p for λ = p/q, so that integer weights give integer values, exact below 2⁵³. Other values must fall by more than
the rounding error.

Examples
--------
>>> tails, heads, weights = np.array([0, 0, 1, 2, 2]), np.array([1, 2, 0, 0, 2]), np.array([1.0, 5, 4, -1, 3])
>>> graph = CSR.of(tails, heads, (weights,), 3, (np.inf,))
>>> cycle = least_cycle_mean(graph)
>>> cycle.vertices, cycle.total
([0, 2], 4.0)
>>> critical_edges(graph, cycle)  # of 0 → 1, 0 → 2, 1 → 0, 2 → 0, 2 → 2
array([False,  True, False,  True, False])
>>> best_to_cycle(graph, cycle)
array([ 0.,  2., -3.])
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import Annotated, Any, NamedTuple

import numpy as np

from semiring.algebra.catalogue import MIN_PLUS
from semiring.algorithms.csr import CSR, starts_of
from semiring.algorithms.rows_of_edges import rows_of_edges
from semiring.algorithms.search import searches_for
from semiring.algorithms.strong_components import strong_components
from semiring.arrays.conversion import EXACT_IN_FLOAT64, Array
from semiring.arrays.threads import run, thread_count
from semiring.common.errors import OverflowRiskError
from semiring.common.units import counted
from semiring.kernels.cpu.loops import Floats, Ints, ShortInts, loop, prefetch

__all__ = [
    "Costs", "CriticalCycle", "CriticalRatio", "Policy", "PolicyCycle", "best_to_cycle", "critical_edges", "least_cycle_mean",
    "least_cycle_ratio", "reaching_cycles",
]  # fmt: skip

_LARGEST = float(np.finfo(np.float64).max)

_TOLERANCE = 2.0**-49
"""Least relative fall of a rounded value: several times the rounding error of one edge."""

_ROUNDS = 32
"""Rounds of policy iteration that cost about as much as a search."""

_SHARE = 1 << 14
"""The vertices that one call improves."""

_AHEAD = 16
"""The vertices between the starts of walks that are prefetched."""

_EDGE = np.dtype([("weight", np.float64), ("head", np.int32), ("cycle", np.int32)])
"""The edge that a policy takes from a vertex, kept in one place."""

_Edges = Annotated[Any, _EDGE]

_UNKNOWN, _ON_WAY, _REACHES, _ENDS = range(4)
"""The states of a vertex in `_reach`."""


class Costs(NamedTuple):
    """The cost of an edge of weight w, scale · w − shift, and the least decrease of a value v, `tolerance` · |v| + `least`."""

    scale: float
    shift: float
    tolerance: float = 0.0
    least: float = 0.0


class PolicyCycle(NamedTuple):
    """A cycle of a policy: a vertex on it, the float64 sum of the weights, the length, and the number among the policy's cycles."""

    vertex: int
    total: float
    length: int
    number: int


class CriticalCycle(NamedTuple):
    """A cycle of the least mean, and the proof: v_u ≤ q·w − p + v_v for all edges, with q vertices and the total p."""

    vertices: list[int]  # each once, in order
    total: float  # sum of the cycle's weights, correctly rounded
    values: Array  # v, float64; ∞ for vertices that reach no cycle
    costs: Costs  # of this q and p
    edges: Array  # a policy with this cycle, see `Policy`


def least_cycle_mean(graph: CSR, threads: int | None = None) -> CriticalCycle | None:
    """Find a cycle of the least mean of float64 weights; return None for an acyclic graph. A few dozen rounds of O(m) each, in practice.

    Raises
    ------
    OverflowRiskError
        If a sum along a cycle, times its length, could leave float64.
    """
    starts, heads, (weights,) = graph.starts.astype(np.int64, copy=False), graph.heads.astype(np.int32, copy=False), graph.weights
    endless = reaching_cycles(starts, heads)
    if not endless.any():
        return None
    integers = bool((weights == np.rint(weights)).all())
    heaviest = max(float(weights.max()), -float(weights.min()))
    if heaviest > _LARGEST / (4 * graph.n**2):
        raise OverflowRiskError(
            f"sums of weights as large as {heaviest:.3g} may leave float64 along {counted(graph.n, 'vertex', 'vertices')}; scale them down"
        )
    policy = Policy(starts, heads, weights, np.where(endless, 0.0, np.inf), thread_count(threads))
    _, largest = policy.improve(Costs(1.0, 0.0, least=-np.inf))  # begin with the least edges
    best, along, total, length, changed = list[int](), list[float](), math.inf, 1, len(endless)
    costs = Costs(1.0, -math.inf)  # there is no mean yet
    while changed:
        found = policy.evaluate(costs)
        better = None
        if found.total * length < total * found.length:
            vertices, weights_along = policy.walk(found.vertex)
            if (summed := math.fsum(weights_along)) * length < total * len(vertices):  # a lower mean also without rounding
                policy.values *= len(vertices) / length
                largest *= len(vertices) / length
                best, along, total, length, better = vertices, weights_along, summed, len(vertices), found
                if integers:
                    np.rint(policy.values, out=policy.values)
        exact = integers and 2 * (largest + length * heaviest + abs(total)) < EXACT_IN_FLOAT64
        tolerance = 0.0 if exact else _TOLERANCE
        costs = Costs(float(length), total, tolerance, tolerance * length * heaviest)
        if better:
            policy.evaluate(costs, better)
        changed, largest = policy.improve(costs)
    policy.take(best, along)  # the policy may end on another cycle of the same mean
    return CriticalCycle(best, total, policy.values, costs, policy.edges)


class CriticalRatio(NamedTuple):
    """A cycle of the least ratio, the proof: a cycle of the least mean with the weights of `reduced`, and their factor `scale`."""

    vertices: list[int]
    total: Fraction  # exact sums around the cycle
    transit: Fraction
    proof: CriticalCycle
    reduced: CSR  # scale · (w − λ·t) for weights w, transits t and the ratio λ
    scale: int = 1


def least_cycle_ratio(graph: CSR, transits: Array, threads: int | None = None) -> CriticalRatio | None:
    """Find a cycle of the least ratio of weights to transits; return None for an acyclic graph. A few calls of `least_cycle_mean`.

    Each cycle has a positive sum of transits. A cycle of the least mean of w − λ·t has a ratio below λ, the ratio of the last cycle, or no
    cycle has (Dinkelbach, 1967). Ratios are exact, so each cycle comes once; integers stay integers where they are exact in float64.
    """
    (weights,) = graph.weights
    integers = bool((weights == np.rint(weights)).all() and (transits == np.rint(transits)).all())
    best, reduced, scale = None, graph, 1
    while (found := least_cycle_mean(reduced, threads)) is not None:
        around = np.array(found.vertices)
        edges = np.searchsorted(graph.places, around * graph.n + np.roll(around, -1))
        total, transit = (sum(map(Fraction, values[edges].tolist()), Fraction(0)) for values in (weights, transits))
        if best is not None and total * best.transit >= best.total * transit:
            return best._replace(proof=found, reduced=reduced, scale=scale)
        best, ratio = CriticalRatio(found.vertices, total, transit, found, reduced), total / transit
        p, q = ratio.numerator, ratio.denominator
        scale = q if integers and q * np.abs(weights).max() + abs(p) * transits.max() < EXACT_IN_FLOAT64 else 1
        costs = weights - float(ratio) * transits if scale != q else scale * weights - p * transits
        reduced = graph.with_weights((costs,))
    return None


def critical_edges(graph: CSR, cycle: CriticalCycle) -> Array:
    """Mark the edges on cycles of the least mean; all cycles of these edges have this mean. A few rounds of O(m).

    Around a cycle of the least mean v_u = q·w − p + v_v. Rounded, the left side may be greater by `unit`, so the right side of a cycle of k
    edges by k · `unit`. The vertices of a strongly connected component of such edges bound k, and the bound is applied again.
    """
    values, costs, (weights,) = cycle.values, cycle.costs, graph.weights
    edges = np.flatnonzero(np.isfinite(values[graph.heads]))
    while True:
        tails, heads = graph.tails[edges], graph.heads[edges]
        count, component = strong_components(starts_of(tails, graph.n), heads)
        inside = component[tails] == component[heads]
        edges, tails, heads = edges[inside], tails[inside], heads[inside]
        offers = weights[edges] * costs.scale - costs.shift + values[heads]
        largest, own = np.zeros(count), component[tails]
        np.maximum.at(largest, own, np.abs(offers))
        unit = costs.tolerance * largest[own] + costs.least
        tight = offers - values[tails] <= np.bincount(component, minlength=count)[own] * unit
        if tight.all():
            break
        edges = edges[tight]
    found = np.zeros(len(weights), bool)
    found[edges] = True
    return found


def best_to_cycle(graph: CSR, cycle: CriticalCycle, threads: int | None = None) -> Array:
    """Return shortest distances x = A ⊗ x to the first vertex of a critical cycle over costs w − λ; ∞ for vertices without a path to it.

    A few more rounds of policy iteration are mostly enough, as most vertices lead to the cycle already; else Dijkstra's algorithm runs.
    """
    starts, heads, (weights,) = graph.starts.astype(np.int64, copy=False), graph.heads.astype(np.int32, copy=False), graph.weights
    end = cycle.vertices[0]
    around = PolicyCycle(end, cycle.total, len(cycle.vertices), 0)  # number 0 is no cycle: values only fall
    values = np.full(graph.n, np.inf)
    values[end] = 0.0
    policy = Policy(starts, heads, weights, values, thread_count(threads), cycle.edges.copy())
    policy.evaluate(cycle.costs, around)  # around the cycle, where values may still be ∞
    for _ in range(_ROUNDS):
        policy.evaluate(cycle.costs, around)
        changed, _ = policy.improve(cycle.costs)
        policy.values[end] = 0.0  # even if the sum around the cycle is rounded to less
        if not changed:
            return policy.values / len(cycle.vertices)
    return _searched_to_cycle(graph, cycle, threads)


def _searched_to_cycle(graph: CSR, cycle: CriticalCycle, threads: int | None) -> Array:
    """Run Dijkstra's algorithm with the values of the cycle as potentials, so that no edge is negative (Johnson, 1977)."""
    length, values, (weights,) = len(cycle.vertices), cycle.values, graph.weights
    costs = length * weights - cycle.total
    costs += values[graph.heads]
    endless = np.isfinite(costs)  # the head reaches a cycle, and so does the tail
    costs -= np.where(np.isfinite(values), values, 0.0).repeat(np.diff(graph.starts))
    np.maximum(costs, 0.0, out=costs)
    reduced = replace(graph, weights=(costs,), zero=(np.inf,), statistics=())
    if not endless.all():
        reduced = CSR.of(graph.tails[endless], graph.heads[endless], (costs[endless],), graph.n, (np.inf,))
    end = np.array(cycle.vertices[:1])
    ((distances,),) = rows_of_edges(MIN_PLUS, reduced, end, backward=True, searches=searches_for(MIN_PLUS, reduced.dtypes, "cpu", threads))
    reached = np.isfinite(distances)
    found = np.full(graph.n, np.inf)
    found[reached] = (distances[reached] + (values[reached] - values[end])) / length
    return found


class Policy:
    """A policy of a graph in compressed rows (int64, int32 and float64 arrays), and a value for each vertex.

    `values` are float64, ∞ for vertices without a policy. `edges` has the edge taken from each vertex: weight, head (−1: no edge), and the
    number of the cycle at the end of the walk; given edges are overwritten.
    """

    def __init__(self, starts: Array, heads: Array, weights: Array, values: Array, threads: int, edges: Array | None = None) -> None:
        n = len(values)
        if edges is None:
            edges = np.zeros(n, _EDGE)
            edges["head"] = -1
        self.threads, self.values, self.edges, self._spare = threads, values, edges, np.empty(n)
        costs = Costs(1.0, 0.0)
        self._improving = _improve.bind(0, n, starts, heads, weights, values, self._spare, edges, costs)
        self._evaluating = _evaluate.bind(n, edges, np.empty(n, np.int32), values, costs, 0, -1)

    def improve(self, costs: Costs) -> tuple[int, float]:
        """Take the cheapest edge from each vertex where that is better, v_u ← min over edges of cost + v.

        Returns
        -------
        changed : int
            The number of vertices whose policy changed.
        largest : float
            The largest magnitude of a value.
        """
        n, found = len(self.values), list[tuple[int, float]]()

        def work(first: int, worker: int) -> None:
            found.append(self._improving(first=first, last=min(first + _SHARE, n), old=self.values, new=self._spare, costs=costs))

        run(work, range(0, n, _SHARE), self.threads)
        self.values, self._spare = self._spare, self.values
        return sum(changed for changed, _ in found), max((largest for _, largest in found), default=0.0)

    def evaluate(self, costs: Costs, cycle: PolicyCycle | None = None) -> PolicyCycle:
        """Lower the values along the policy, and return the cycle of least mean.

        Vertices that lead to `cycle` take new values, larger or smaller; the vertex of `cycle` keeps its value.
        """
        self.edges["cycle"] = 0
        number, root = (0, -1) if cycle is None else (cycle.number, cycle.vertex)
        return PolicyCycle(*self._evaluating(20 * len(self.values), values=self.values, costs=costs, renewed=number, root=root))

    def walk(self, vertex: int) -> tuple[list[int], list[float]]:
        """Return the vertices and the weights of the cycle through a vertex."""
        heads, vertices = self.edges["head"], [vertex]
        while (following := int(heads[vertices[-1]])) != vertex:
            vertices.append(following)
        return vertices, self.edges["weight"][vertices].tolist()

    def take(self, cycle: list[int], weights: list[float]) -> None:
        """Take the edges of a cycle, as `walk` returns it."""
        self.edges["head"][cycle] = np.roll(cycle, -1)
        self.edges["weight"][cycle] = weights


@loop
def _improve(
    first: int, last: int, starts: Ints, heads: ShortInts, weights: Floats, old: Floats, new: Floats, policy: _Edges, costs: Costs
) -> tuple[int, float]:
    """Improve the policy of some vertices; old values stay, so that the number of threads changes no result."""
    changed, largest = 0, 0.0
    for u in range(first, last):
        best, edge = math.inf, 0
        for e in range(starts[u], starts[u + 1]):
            offer = _offer(weights[e], float(old[heads[e]]), costs)
            best, edge = (offer, e) if offer < best else (best, edge)
        value = old[u]
        if best + (costs.tolerance * abs(best) + costs.least) < value:
            policy.weight[u], policy.head[u] = weights[edge], heads[edge]
            value = best
            changed += 1
        new[u], size = value, abs(value)
        largest = size if largest < size < math.inf else largest
    return changed, largest


@loop
def _evaluate(n: int, policy: _Edges, way: ShortInts, values: Floats, costs: Costs, renewed: int, root: int) -> tuple[int, float, int, int]:
    """Follow the policy from each vertex up to a vertex already visited, and compute values on the way back; return the best cycle.

    Vertices on the way to the cycle with the number `renewed` take new values, others only smaller ones; `root` keeps its value.
    """
    cycles, vertex, least, length, kept = 0, 0, 0.0, 0, 0
    for u in range(n):
        # Later walks come into the cache, one step further each time.
        _prefetch(policy, values, _next(policy, min(u + 3 * _AHEAD, n - 1)))
        _prefetch(policy, values, _next(policy, _next(policy, min(u + 2 * _AHEAD, n - 1))))
        _prefetch(policy, values, _next(policy, _next(policy, _next(policy, min(u + _AHEAD, n - 1)))))
        v, steps = u, 0
        while policy.cycle[v] == 0 and policy.head[v] >= 0:
            way[steps], policy.cycle[v] = v, -1
            prefetch(values, v)
            v = policy.head[v]
            steps += 1
        number, value = policy.cycle[v], float(values[v])
        if number == -1:  # the walk met itself
            cycles += 1
            number = cycles
            total, size = _around(policy, v)
            if cycles == 1 or total * float(length) < least * float(size):
                vertex, least, length, kept = v, total, size, number
        for i in range(steps - 1, -1, -1):
            x = way[i]
            offer, old = _offer(policy.weight[x], value, costs), float(values[x])
            value = offer if x != root and (number == renewed or offer < old) else old
            values[x], policy.cycle[x] = value, number
    return vertex, least, length, kept


@loop
def _offer(weight: float, value: float, costs: Costs) -> float:
    """Return the cost of an edge plus the value at its head."""
    return weight * costs.scale - costs.shift + value


@loop
def _next(policy: _Edges, v: int) -> int:
    """Return the head of a vertex's edge, or 0 without an edge."""
    return int(max(policy.head[v], 0))


@loop
def _prefetch(policy: _Edges, values: Floats, v: int) -> None:
    """Prefetch the edge and the value of a vertex."""
    prefetch(policy, v)
    prefetch(values, v)


@loop
def _around(policy: _Edges, v: int) -> tuple[float, int]:
    """Return the total weight and the length of the cycle through a vertex."""
    total, length, x = policy.weight[v], 1, policy.head[v]
    while x != v:
        total += policy.weight[x]
        length += 1
        x = policy.head[x]
    return total, length


def reaching_cycles(starts: Array, heads: Array) -> Array:
    """Return a mask of the vertices of a graph in compressed rows that reach a cycle. O(m), usually O(n)."""
    n = len(starts) - 1
    state, way, cursor = np.zeros(n, np.int32), np.empty(n, np.int32), starts[:-1].copy()
    _reach.bind(n, starts, heads, state, way, cursor)(20 * n)
    return np.asarray(state == _REACHES)


@loop
def _reach(n: int, starts: Ints, heads: ShortInts, state: ShortInts, way: ShortInts, cursor: Ints) -> None:
    """Find the vertices with infinite walks, depth-first.

    All vertices on the stack have infinite walks as soon as the search meets the stack again, or a vertex with an infinite walk.
    """
    for s in range(n):
        if state[s] != _UNKNOWN:
            continue
        way[0], state[s], top = s, _ON_WAY, 1
        while top != 0:
            u = way[top - 1]
            e = cursor[u]
            if e == starts[u + 1]:
                state[u] = _ENDS
                top -= 1
                continue
            cursor[u] = e + 1
            v = heads[e]
            if state[v] == _UNKNOWN:
                way[top], state[v] = v, _ON_WAY
                top += 1
            elif state[v] != _ENDS:
                for i in range(top):
                    state[way[i]] = _REACHES
                top = 0
