"""The least mean weight of a cycle, and a cycle that has it: Howard's policy iteration.

A policy takes one edge from each vertex, and so ends on cycles, of which one has the least mean λ. With costs w − λ, values v_u become those of
the policy, v_u = cost + v at the head of its edge; and where another edge offers less, the policy takes that one. Where no edge does,
v_u ≤ w − λ + v_v for all edges, and the sum around any cycle says that its mean is λ at least (Cochet-Terrasson et al., 1998; Dasdan, 2004).

λ never rises from round to round, and as long as it stays, values only fall, as in Bellman's and Ford's algorithm: so it ends. Costs are
multiplied by the length of the cycle, q·w − p for λ = p/q, so that of integers all values are integers, exact below 2⁵³. Elsewhere a value
has to fall by more than rounding explains.

Examples
--------
>>> tails, heads, weights = np.array([0, 0, 1, 2, 2]), np.array([1, 2, 0, 0, 2]), np.array([1.0, 5, 4, -1, 3])
>>> least_cycle_mean(CSR.of(tails, heads, (weights,), 3, (np.inf,)))
CriticalCycle(vertices=[0, 2], total=4.0)
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from semiring.algebra.catalogue import MIN_PLUS
from semiring.algorithms.csr import CSR
from semiring.algorithms.rows_of_edges import rows_of_edges
from semiring.arrays.threads import thread_count
from semiring.kernels.cpu.policy_iteration import Costs, Policy, reaching_cycles
from semiring.kernels.select import searches_for

__all__ = ["CriticalCycle", "least_cycle_mean"]

Array = np.ndarray[Any, Any]

_EXACT = 2.0**53
"""Integers below are float64 numbers."""

_TOLERANCE = 2.0**-49
"""What a value falls by at least, beside its magnitude, where numbers are rounded: several times as much as one edge is rounded by."""


class CriticalCycle(NamedTuple):
    """A cycle of the least mean: its vertices, each once, in order, and the sum of its weights, correctly rounded."""

    vertices: list[int]
    total: float


def least_cycle_mean(graph: CSR, threads: int | None = None) -> CriticalCycle | None:
    """A cycle of the least mean weight; None where there is no cycle. Rounds of O(m) each, of which there are few dozens in practice.

    Parameters
    ----------
    graph : CSR
        With weights of float64.
    threads : int, optional
    """
    starts, heads, (weights,) = graph.starts.astype(np.int64, copy=False), graph.heads.astype(np.int32), graph.weights
    endless = reaching_cycles(starts, heads)
    if not endless.any():
        return None
    integers = bool((weights == np.rint(weights)).all())
    heaviest = max(float(weights.max()), -float(weights.min()))
    policy = Policy(starts, heads, weights, np.where(endless, 0.0, np.inf), thread_count(threads))
    largest = policy.improve(Costs(1.0, 0.0, least=-np.inf)).largest  # whatever offers the least, to begin with
    best, length, changed = CriticalCycle([], math.inf), 1, len(endless)
    while changed:
        found = policy.least_cycle()
        better = found.total * length < best.total * found.length
        if better:
            vertices, along = policy.walk(found.vertex)
            best = CriticalCycle(vertices, math.fsum(along))
            policy.values *= len(vertices) / length
            largest *= len(vertices) / length
            length = len(vertices)
            if integers:
                np.rint(policy.values, out=policy.values)
        exact = integers and 2 * (largest + length * heaviest + abs(best.total)) < _EXACT
        tolerance = 0.0 if exact else _TOLERANCE
        costs = Costs(float(length), best.total, tolerance, tolerance * length * heaviest)
        policy.relax(costs, found if found.total * length <= best.total * found.length else None)
        changed, largest = policy.improve(costs)
    return best
