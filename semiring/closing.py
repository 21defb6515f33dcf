"""From a graph to its closure: what is asked, the plan, and the executor that runs it."""

from __future__ import annotations

from typing import Any

import numpy as np

from semiring.algebra.definition import Semiring
from semiring.algebra.errors import noted
from semiring.algorithms.edges import Edges
from semiring.execution.whole import close_edges, close_given, made_of_edges
from semiring.graphs import Graph, read_edges, require_memory
from semiring.graphs.by_rows import rows_of_graph
from semiring.graphs.read import GivenMatrix, reading_of
from semiring.options import Options
from semiring.planning import closure_problem, edges_problem, plan

__all__ = ["solve"]


def solve(graph: Any, semiring: Semiring, options: Options, *, reflexive: bool, presence: bool = False) -> Any:
    """The closure of whatever the caller calls a graph, in the caller's own kind, or its `Paths`.

    Parameters
    ----------
    graph, semiring, reflexive
        See `semiring.closure`.
    options : Options
    presence : bool
        See `read_graph`.
    """
    options.refuse_arrays(reflexive)
    if options.sources is not None or options.targets is not None:
        from semiring.execution.rows import solve_between  # only where it is wanted: a first call should be quick

        return solve_between(graph, semiring, options, reflexive=reflexive, presence=presence)
    with noted("the closure", semiring, graph):
        if not isinstance(graph, np.ndarray):
            listed = read_edges(graph, semiring, nonedge=options.nonedge, dtype=options.dtype, presence=presence)
            if listed is not None:
                return _of_edges(*listed, semiring, options, reflexive=reflexive)
        return _of_matrix(graph, semiring, options, reflexive=reflexive, presence=presence)


def _of_edges(edges: Edges, labels: Any, semiring: Semiring, options: Options, *, reflexive: bool) -> Any:
    """The closure of a sparse graph: by searches, or that of a matrix which is made where it is closed."""
    how = plan(edges_problem(semiring, edges, options))
    require_memory(edges.n, edges.dtypes, via=how.paths)
    if how.strategy == "search":
        from semiring.execution.rows import search_all

        return search_all(how, edges, labels, reflexive=reflexive)
    graph = made_of_edges(how, edges, labels)
    if how.strategy == "whole":
        return close_edges(how, edges, graph, reflexive=reflexive)
    from semiring.execution.block_rows import close_by_rows

    return close_by_rows(how, rows_of_graph(graph), graph, options._replace(overwrite=True), reflexive=reflexive)


def _of_matrix(graph: Any, semiring: Semiring, options: Options, *, reflexive: bool, presence: bool) -> Any:
    """The closure of a dense matrix, or of several."""
    how = {"overwrite": options.overwrite, "presence": presence, "paths": bool(options.paths or semiring.witness)}
    given = GivenMatrix.of(graph, semiring, reading_of(semiring, options.nonedge, options.dtype, **how))
    planned = plan(closure_problem(semiring, given.dtypes, given.shape, options, place=given.place))
    if planned.strategy == "whole":
        return close_given(planned, given, reflexive=reflexive)
    from semiring.execution.block_rows import close_by_rows

    if given.plain:
        return close_by_rows(planned, given.rows(), Graph(given.arrays, owned=False), options, reflexive=reflexive)
    read = given.read()
    return close_by_rows(planned, rows_of_graph(read), read, options._replace(overwrite=read.owned), reflexive=reflexive)
