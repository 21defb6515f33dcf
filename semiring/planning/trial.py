"""What a few searches of a sparse graph tell of all: how far they go, how often they look at an edge, and whether it falls into components.

It is counted and never timed, so that a plan follows from the graph.
"""

from __future__ import annotations

from typing import Any

from semiring.algebra.definition import Semiring
from semiring.algorithms.components import share
from semiring.algorithms.edges import Edges
from semiring.algorithms.rows_of_edges import MANY, reach, search_order
from semiring.kernels import machine
from semiring.kernels.devices import gpus
from semiring.kernels.select import has_searches
from semiring.planning.costs import closure_seconds, search_seconds
from semiring.planning.problem import Problem, closure_problem

__all__ = ["edges_problem"]


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
    return _tried(problem, edges)


def _tried(problem: Problem, edges: Edges) -> Problem:
    """The same problem with what a few searches tell, where that may decide how it is solved."""
    n, order, device = problem.n, problem.order, str(problem.device)
    count = n if problem.searches is None else problem.searches
    if problem.nearest or not problem.has_rows_alone or device not in ("auto", "cpu", "reference"):
        return problem
    if count <= MANY or count * (n + len(edges.heads)) < machine.TRIAL:
        return problem
    longest = search_seconds(problem, compiled=has_searches(problem.semiring, problem.dtypes, device))
    longest *= (machine.TRIAL_ROUNDS if order == "rounds" else 1) * (machine.TRIAL_PARTS if n >= machine.COMPONENTS else 1)
    if longest < closure_seconds(problem, "cpu") and not gpus():
        return problem
    found = reach(problem.semiring, edges, count, order, device, problem.threads)
    parts = n >= machine.COMPONENTS and found.found < machine.TRIAL_APART
    return problem._replace(reach=found, steps=share(n, edges.tails, edges.heads) if parts else 1.0)
