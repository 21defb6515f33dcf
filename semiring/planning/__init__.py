"""How will this be computed? The one answer: what is asked and what there is give a plan, which is shown, kept and run.

    problem.py    what is asked: sizes, dtypes, where the operands lie, options; metadata, no numbers
    trial.py      what a few searches of a sparse graph tell of all
    costs.py      predicted seconds of each strategy, from the constants of `kernels.machine`
    devices.py    which devices compute: those that are named, those with the operands, or the fastest
    planner.py    `plan(problem)`: strategies that apply, with their costs and their memory, and the one that is taken
    plans.py      `Plan`, what comes of it

`semiring.execution` runs plans. Nothing but a trial reads an operand, and nothing that runs asks again what a plan says.
"""

from semiring.planning.costs import edges_problem
from semiring.planning.planner import plan
from semiring.planning.plans import Plan
from semiring.planning.problem import Problem, closure_problem, location, size_of

__all__ = ["Plan", "Problem", "closure_problem", "edges_problem", "location", "plan", "size_of"]
