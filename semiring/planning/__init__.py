"""The planner: a problem and the machine give a plan, which is shown, kept and run.

    options.py      `Options`: the options of all calls, their names, types, defaults and meaning
    problem.py      `Problem`: sizes, dtypes, place of the operands and options; metadata, no numbers
    costs.py        the cost model: predicted seconds of each strategy, by the constants of `kernels.machine`; trials of a few searches
    planner.py      `plan(problem)`: candidate strategies, their costs and memory, and the choice
    block_rows.py   the plan of a closure by block rows: their side, and what is on each device and each rank
    plans.py        `Plan`: strategy, algorithm, devices, block, memory and predicted seconds

The face makes `Options`. `semiring.execution` makes a `Problem` of the options and the graph, asks for the plan and runs it. Only trials
read an operand, and an executor decides nothing that a plan says.
"""

from semiring.planning.costs import edges_problem
from semiring.planning.options import size_of
from semiring.planning.planner import plan
from semiring.planning.plans import Plan
from semiring.planning.problem import Problem, closure_problem, location

__all__ = ["Plan", "Problem", "closure_problem", "edges_problem", "location", "plan", "size_of"]
