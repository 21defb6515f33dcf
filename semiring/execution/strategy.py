"""From a question to its answer: read, plan, and run the executor of the planned strategy.

Progress and the notes of errors are handled here, once for all executors. The arguments of an executor are the plan, the graph, the
question, the selected rows and columns (None for all), and a meter of steps (None without progress).
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from semiring.arrays.pieces import HOST, slices
from semiring.common.errors import SemiringError, about, noted
from semiring.execution import whole
from semiring.execution.question import GivenGraph, Question, Selection
from semiring.execution.reporting import reporting
from semiring.graphs import EdgeList
from semiring.planning import Plan, plan

__all__ = ["rows_in_turn", "run", "solve"]


def solve(graph: Any, question: Question) -> Any:
    """Return the closure of a graph of any kind, or of a `GivenGraph`, in the caller's own kind, or its `Paths`."""
    if question.cuts and not (question.options.comm is question.options.checkpoint is None):
        raise SemiringError("limit= and k= are for one process without a checkpoint; leave out comm and checkpoint")
    if question.options.k is not None and question.paths:
        raise SemiringError("k= returns values and indices; for paths leave out k, and name sources=, targets= or limit=")
    if type(graph) is EdgeList and graph.turns is not None:
        from semiring.execution.turns import solve_with_turns

        return solve_with_turns(graph, question, run)
    if question.options.comm is not None:
        if question.options.node_weight is not None:
            raise SemiringError("node_weight= is for one process; leave out comm, or add the costs to the columns of the matrix")
        from semiring.execution.ranks import solve_by_ranks

        return solve_by_ranks(graph, question)
    given = None
    try:
        given = graph if type(graph) is GivenGraph else question.read(graph)
        every = question.options.sources is None and question.options.targets is None
        selection = None if every else question.selection(given)
        return run(plan(question.problem(given, selection)), given, question, selection)
    except SemiringError as error:
        if given is not None and given.graph is not None:
            graph = given.graph.values  # with the dtypes of the computation
        elif given is not None and given is graph:
            graph = given.arrays
        about(error, "the closure", question.semiring, graph)
        raise


def run(how: Plan, given: GivenGraph, question: Question, selection: Selection | None = None) -> Any:
    """Run a plan by its executor."""
    if how.problem.tolerance and how.strategy == "block rows":
        raise SemiringError("tolerance= needs the whole matrix on one device: leave out comm, checkpoint, memory_limit and lists of GPUs")
    executor = whole.close if how.strategy == "whole" and selection is None else _executor(how)
    if question.options.k is not None:
        from semiring.execution.neighbours import close as select

        executor = partial(select, executor, question.options.k)
    elif question.options.limit is not None:
        from semiring.execution.within import close

        executor = partial(close, executor)
    progress = question.options.progress
    if progress is False or (progress is None and how.brief):  # a context takes a while beside a small closure
        return executor(how, given, question, selection, None)
    with reporting(progress, how) as meter:
        return executor(how, given, question, selection, meter)


def _executor(how: Plan) -> Any:
    """Choose the executor of a plan; all but that of whole matrices are imported on demand, for a quick first call."""
    if how.by_edges:
        from semiring.execution.row_solvers import close
    elif how.strategy == "block rows":
        from semiring.execution.block_rows import close
    else:
        from semiring.execution.rows import close
    return close


def rows_in_turn(how: Plan, given: GivenGraph, question: Question) -> Iterator[tuple[int, Any]]:
    """Yield all rows of a closure of single numbers, some at a time, with the number of the first.

    Rows that follow from the edges of a sparse graph are not kept.
    """
    n = given.n
    if how.by_edges:
        from semiring.execution.row_solvers import row_solver, search_steps

        edges = given.edges
        assert edges is not None
        counted = reporting(question.options.progress, how, search_steps(edges, n))
        with noted("the closure", how.semiring, edges.arrays()), counted as meter:
            for first, (rows,) in row_solver(how, edges, given.vertices).blocks(meter):
                yield first, rows
        return
    whole = run(how, given, question)
    if hasattr(whole, "to_numpy"):  # a DataFrame
        whole = whole.to_numpy()
    for some in slices(n, n, HOST):
        yield some.start, whole[some]
