"""From a graph to its closure: what is asked, the plan, and the executor that runs it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from semiring.algebra.definition import Semiring
from semiring.algorithms.csr import CSR
from semiring.arrays.memory import require_memory
from semiring.arrays.pieces import HOST, slices
from semiring.common.errors import SemiringError, about, noted, refuse_arrays
from semiring.execution.reporting import reporting
from semiring.execution.whole import close_whole, made_of_edges, read_whole, shares
from semiring.graphs import Graph, edges_of
from semiring.graphs.by_rows import rows_of_graph
from semiring.graphs.read import GivenMatrix, reading_of
from semiring.planning import Plan, closure_problem, edges_problem, plan
from semiring.planning.options import Options

__all__ = ["close_edges", "close_in_blocks", "solve"]


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
    if options.comm is not None:
        from semiring.execution.ranks import solve_by_ranks

        return solve_by_ranks(graph, semiring, options, reflexive=reflexive, presence=presence)
    for value in (reflexive, *options):
        if hasattr(value, "shape"):  # before anything asks an array whether it is true
            refuse_arrays(reflexive=reflexive, **options._replace(nonedge=None, sources=None, targets=None)._asdict())
    if options.sources is not None or options.targets is not None:
        from semiring.execution.rows import solve_between  # only where it is wanted: a first call should be quick

        return solve_between(graph, semiring, options, reflexive=reflexive, presence=presence)
    subject = graph
    try:
        listed = edges_of(graph, semiring, nonedge=options.nonedge, dtype=options.dtype, presence=presence, weight=options.weight)
        if listed is not None:
            return close_edges(*listed, semiring, options, reflexive=reflexive)
        paths = bool(options.paths or semiring.witness)
        reading = reading_of(semiring, options.nonedge, options.dtype, options.overwrite, presence, paths, options.check)
        given = GivenMatrix.of(graph, semiring, reading)
        how = plan(closure_problem(semiring, given.form.dtypes, given.shape, options, place=given.place))
        if how.strategy != "whole":
            return _by_rows(how, given, options, reflexive=reflexive)
        read = read_whole(how, given)
        subject = read.values
        returns = how.gpu and not how.problem.there

        def again() -> Graph | None:
            """The same once more, unless it is the caller's own memory that was overwritten."""
            return None if any(map(shares, read.values, given.arrays)) else given.read(overwrite=False)

        check, progress = options.check, options.progress
        return close_whole(how, read, again, reflexive=reflexive, returns=returns, check=check, progress=progress)
    except SemiringError as error:
        about(error, "the closure", semiring, subject)
        raise


def close_edges(edges: CSR, labels: Any, semiring: Semiring, options: Options, *, reflexive: bool, how: Plan | None = None) -> Any:
    """The closure of a sparse graph: by searches or elimination, or that of a matrix which is made where it is closed.

    `how` is the plan, where there is one already.
    """
    how = how or plan(edges_problem(semiring, edges, options, reflexive=reflexive))
    require_memory(edges.n, edges.dtypes, via=how.paths)
    if how.by_edges:
        from semiring.execution.searches import search_all

        return search_all(how, edges, labels, options.progress, reflexive=reflexive)
    graph = made_of_edges(how, edges, labels)
    if how.strategy == "whole":
        again, check, progress = lambda: Graph(edges.dense(), owned=True), options.check, options.progress
        return close_whole(how, graph, again, reflexive=reflexive, returns=how.gpu, check=check, progress=progress)
    from semiring.execution.block_rows import close_by_rows

    return close_by_rows(how, rows_of_graph(graph), graph, options._replace(overwrite=True), reflexive=reflexive)


def close_in_blocks(how: Plan, edges: CSR, labels: Any, options: Options) -> Iterator[tuple[int, Any]]:
    """All rows of the closure of a sparse graph, of single numbers: the number of the first one of some, and these rows.

    There is no room for all of them where the plan finds them by edges.
    """
    n = edges.n
    if how.by_edges:
        from semiring.execution.searches import rows_in_blocks, search_steps

        with noted("the closure", how.semiring, edges.arrays()), reporting(options.progress, how) as meter:
            if meter is not None:
                meter.expect(search_steps(edges, n))
            for first, (rows,) in rows_in_blocks(how, edges, labels, meter):
                yield first, rows
        return
    whole = close_edges(edges, labels, how.semiring, options, reflexive=True, how=how)
    for some in slices(n, n, HOST):
        yield some.start, whole[some]


def _by_rows(how: Plan, given: GivenMatrix, options: Options, *, reflexive: bool) -> Any:
    """The closure of a dense matrix by block rows."""
    from semiring.execution.block_rows import close_by_rows

    if given.plain:
        return close_by_rows(how, given.rows(), Graph(given.arrays, owned=False), options, reflexive=reflexive)
    read = given.read()
    return close_by_rows(how, rows_of_graph(read), read, options._replace(overwrite=read.owned), reflexive=reflexive)
