"""The planner: how will this be computed? The one answer: what is asked and what there is give a plan, which is shown, kept and run.

    options.py      the options of a call, once for all functions that take them, and what their values mean
    problem.py      `Problem`, what is asked: sizes, dtypes, where the operands lie, options; metadata, no numbers
    costs.py        predicted seconds of each strategy, from the constants of `kernels.machine`, and trials of a few searches
    planner.py      `plan(problem)`: strategies that apply, with their costs and their memory, and the one that is taken
    block_rows.py   of those the closure by block rows: how many rows each has, and what is on each device and each rank
    plans.py        `Plan`, what comes of it

The face makes `Options`, and `semiring.execution` a `Problem` of these and of what it has read; `planner` asks `costs` and makes a `Plan`,
which `semiring.execution` runs. Nothing but a trial reads an operand, and nothing that runs asks again what a plan says.
"""

from semiring.planning.costs import edges_problem
from semiring.planning.options import size_of
from semiring.planning.planner import plan
from semiring.planning.plans import Plan
from semiring.planning.problem import Problem, closure_problem, location

__all__ = ["Plan", "Problem", "closure_problem", "edges_problem", "location", "plan", "size_of"]
