"""What a few searches of a sparse graph tell of all: how far they go, how often they look at an edge, and whether it falls into components.

It is counted and never timed, so that a plan follows from the graph.
"""

from __future__ import annotations

from typing import Any

from semiring.algebra.definition import Semiring
from semiring.algorithms.components import share
from semiring.algorithms.edges import Edges
from semiring.algorithms.rows_of_edges import MANY, reach, search_order
from semiring.kernels.devices import gpus
from semiring.kernels.machine import COMPONENTS
from semiring.kernels.select import has_searches
from semiring.planning.costs import closure_seconds, search_seconds
from semiring.planning.problem import Problem, closure_problem

__all__ = ["edges_problem", "tried"]

_PARTS = 8
"""Parts up to which a closure is worth a thought that as a whole is not: it takes 1 / c² of its steps in c of them, searches 1 / c."""

_LITTLE = 1 << 17
"""Vertices and edges of all searches below which a trial costs as much as it may save."""

_AGAIN = 2
"""How many times as often as predicted rounds may look at an edge."""

_APART = 0.75
"""The share of the vertices that searches find, below which it is worth a look whether the graph falls into components."""


def edges_problem(semiring: Semiring, edges: Edges, options: Any, searches: int | None = None, **more: Any) -> Problem:
    """The closure of a sparse graph, or so many of its rows."""
    problem = closure_problem(
        semiring,
        edges.dtypes,
        (edges.n, edges.n),
        options,
        edges=len(edges.heads),
        searches=searches,
        symbolic=edges.symbolic,
        order=search_order(semiring, edges),
        **more,
    )
    return tried(problem, edges)


def tried(problem: Problem, edges: Edges) -> Problem:
    """The same problem with what a few searches tell, where that may decide how it is solved."""
    n, order, device = problem.n, problem.order, str(problem.device)
    count = n if problem.searches is None else problem.searches
    if count <= MANY or count * (n + len(edges.heads)) < _LITTLE:
        return problem
    longest = search_seconds(problem, compiled=has_searches(problem.semiring, problem.dtypes, device))
    longest *= (_AGAIN if order == "rounds" else 1) * (_PARTS if n >= COMPONENTS else 1)
    if longest < closure_seconds(problem, "cpu") and not gpus():
        return problem
    found = reach(problem.semiring, edges, count, order, device, problem.threads)
    parts = n >= COMPONENTS and found.found < _APART
    return problem._replace(reach=found, steps=share(n, edges.tails, edges.heads) if parts else 1.0)
