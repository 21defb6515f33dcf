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
>>> best_to_cycle(graph, cycle)
array([ 0.,  2., -3.])
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from semiring.algebra.catalogue import MIN_PLUS
from semiring.algorithms.csr import CSR
from semiring.algorithms.rows_of_edges import rows_of_edges
from semiring.algorithms.search import searches_for
from semiring.arrays.conversion import EXACT_IN_FLOAT64
from semiring.arrays.threads import thread_count
from semiring.common.errors import OverflowRiskError
from semiring.common.units import counted
from semiring.kernels.cpu.policy_iteration import Costs, Policy, PolicyCycle, reaching_cycles

__all__ = ["CriticalCycle", "best_to_cycle", "least_cycle_mean"]

Array = np.ndarray[Any, Any]

_LARGEST = float(np.finfo(np.float64).max)

_TOLERANCE = 2.0**-49
"""Least relative fall of a rounded value: several times the rounding error of one edge."""

_ROUNDS = 32
"""Rounds of policy iteration that cost about as much as a search."""


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
    largest = policy.improve(Costs(1.0, 0.0, least=-np.inf)).largest  # begin with the least edges
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
        changed = policy.improve(cycle.costs).changed
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
