"""Sums and extremes of all shortest distances, without a matrix: by hop counts, elimination, bounds, or rows that are not stored."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from semiring.algebra.catalogue import MIN_PLUS
from semiring.algorithms.csr import CSR
from semiring.algorithms.distances import DistanceSums, distance_sums, extreme_eccentricity
from semiring.arrays.conversion import Array
from semiring.arrays.devices import host
from semiring.arrays.exchange import borrowed, lends_memory
from semiring.arrays.pieces import HOST, slices
from semiring.common.errors import GraphError, SemiringError
from semiring.execution.question import GivenGraph, Question, Selection
from semiring.execution.reporting import reporting
from semiring.execution.row_solvers import EliminationSolver, search_steps
from semiring.execution.strategy import rows_in_turn, run, solve
from semiring.execution.within import entries_within, parts_within
from semiring.graphs.vertices import Vertices
from semiring.planning import Plan, plan
from semiring.planning.options import Options
from semiring.results.statistics import RunningDistances, Statistics, add_by_elimination
from semiring.results.views import as_floats

__all__ = ["add_chosen_distances", "add_distances", "add_distances_of_ranks", "extreme_distance", "hop_sums"]

Labels = Sequence[Hashable] | None


def add_distances(found: RunningDistances, graph: Any, options: Options) -> tuple[Labels, int]:
    """Add all distances of a graph to `found`; return the labels and the number of vertices."""
    given, question = _read(graph, Question(MIN_PLUS, options, wanted="sums"))
    if given.edges is not None:
        _add_along_edges(found, given, question)
        return given.labels, given.n
    if options.overwrite or options.memory_limit is not None or options.checkpoint is not None:
        question = question._replace(wanted="elements")
    else:
        given.graph = replace(given.read(), restore=None)
    how = plan(question.problem(given))
    if how.strategy == "rows in turn":
        _add_some_at_a_time(found, given, how, question)
        return given.labels, given.n
    for first, rows in rows_in_turn(how, given, question):
        found.add(first, as_floats(host(rows), MIN_PLUS))
    return given.labels, given.n


def _read(graph: Any, question: Question) -> tuple[GivenGraph, Question]:
    """Read one graph; a constant array that is borrowed is never overwritten."""
    if not isinstance(graph, np.ndarray) and lends_memory(graph):  # a sum is no array, so that its library need not have `dtype`
        lent = borrowed(graph)
        overwrite = question.options.overwrite and not lent.constant
        graph, question = lent.array, question._replace(options=question.options._replace(overwrite=overwrite))
    given = question.read(graph)
    if given.edges is None and len(shape := given.form[1]) > 2:
        raise GraphError(f"statistics are of one graph, not of a batch of shape {shape[:-2]}; pass one at a time")
    return given, question


def add_chosen_distances(found: RunningDistances, graph: Any, options: Options) -> Statistics:
    """Summarize the distances within a limit between some sources and targets."""
    if options.comm is not None or options.checkpoint is not None:
        raise SemiringError(
            "sources=, targets= and limit= of statistics are for one process without a checkpoint; leave out comm and checkpoint"
        )
    given, question = _read(graph, Question(MIN_PLUS, options, wanted="rows"))
    if given.edges is None and not options.overwrite:
        given.graph = replace(given.read(), restore=None)
    chosen = question.selection(given)
    if chosen is not None:
        chosen = replace(chosen, sources=_once(chosen.sources), targets=_once(chosen.targets))
    ends = Selection.all_of(given.n) if chosen is None else chosen
    sources, targets = ends.sources.numbers, ends.targets.numbers
    pairs = found.add_pairs(sources, targets, _pairs(given, question, chosen))
    names = range(given.n) if given.labels is None else given.labels
    return found.summary(tuple([names[v] for v in sources.tolist()]), tuple([names[v] for v in targets.tolist()]), pairs)


def _once(some: Vertices) -> Vertices:
    return some if some.every else Vertices(np.array(list(dict.fromkeys(some.numbers.tolist())), np.intp))


def _pairs(given: GivenGraph, question: Question, selection: Selection | None) -> Iterator[tuple[Array, Array, Array]]:
    """Yield the distances within the limit, some rows at a time: places of sources, places of targets, distances."""
    how, edges, options = plan(question.problem(given, selection)), given.edges, question.options
    chosen = Selection.all_of(given.n) if selection is None else selection

    def listed(rows: CSR, first: int) -> tuple[Array, Array, Array]:
        return first + rows.tails, rows.heads, as_floats(rows.weights[0], MIN_PLUS)

    if edges is None or not how.by_edges:
        whole = run(how, given, question._replace(options=options._replace(limit=None)), selection)
        values = (np.asarray(host(whole)).reshape(len(chosen.sources.numbers), len(chosen.targets.numbers)),)
        yield listed(entries_within(question, values, None, question.worst((values[0].dtype,))), 0)
        return
    place, first = np.full(given.n, -1), 0
    others = (chosen.sources if chosen.backward else chosen.targets).numbers
    place[others] = np.arange(len(others))
    with reporting(options.progress, how, search_steps(edges, len(chosen.roots))) as meter:
        for part in parts_within(how, edges, given, question, chosen, question.worst(edges.dtypes), meter):
            rows, columns, distances = listed(part, first)
            there = place[columns] >= 0
            rows, columns, distances = rows[there], place[columns[there]], distances[there]
            yield (columns, rows, distances) if chosen.backward else (rows, columns, distances)
            first += len(part.starts) - 1


def _add_along_edges(found: RunningDistances, given: GivenGraph, question: Question) -> None:
    """Add the distances of a sparse graph, by hop counts, by elimination, or row by row."""
    edges, options = given.edges, question.options
    assert edges is not None
    how = plan(question.problem(given))
    if how.strategy == "hop counts":
        if (sums := hop_sums(how, edges, options)) is not None:
            row = int(np.where(sums.connected > 0, sums.farthest, -1).argmax())
            one = question._replace(options=options._replace(sources=range(row, row + 1), progress=False), wanted="elements")
            found.add_sums(sums, row, as_floats(solve(GivenGraph(edges), one), MIN_PLUS))
            return
        question = question._replace(wanted="rows")
        how = plan(question.problem(given))
    if how.strategy != "elimination":
        for first, rows in rows_in_turn(how, given, question):
            found.add(first, as_floats(rows, MIN_PLUS))
        return
    with reporting(options.progress, how, search_steps(edges, edges.n)) as meter:
        add_by_elimination(found, EliminationSolver(how, edges, given.vertices).factorization, meter)


def hop_sums(how: Plan, edges: CSR, options: Options) -> DistanceSums | None:
    """Count the pairs of each distance by the plan "hop counts"; None if a sum would be rounded."""
    with reporting(options.progress, how, search_steps(edges, edges.n)) as meter:
        return distance_sums(edges, threads=options.threads, meter=meter)


def _add_some_at_a_time(found: RunningDistances, given: GivenGraph, how: Plan, question: Question) -> None:
    """Add the distances of a dense graph, from some sources at a time."""
    n, every = given.n, Vertices.all_of(given.n)
    part = question._replace(options=question.options._replace(progress=False), wanted="elements")
    with reporting(question.options.progress, how, n**3) as meter:
        for some in slices(n, n, HOST):
            selection = Selection(n, Vertices(np.arange(n)[some]), every)
            rows = run(plan(part.problem(given, selection)), given, part, selection)
            found.add(some.start, as_floats(host(rows), MIN_PLUS))
            if meter is not None:
                meter.add((some.stop - some.start) * n * n)


def add_distances_of_ranks(graph: Any, bins: Any, options: Options) -> tuple[Labels, int, RunningDistances]:
    """Add up the distances that the ranks of a communicator find; return the labels, the number of vertices and the sums."""
    from semiring.execution.ranks import rows_by_ranks
    from semiring.mpi.ranks import Ranks

    ranks = Ranks.of(options.comm)
    with ranks.together():
        found = RunningDistances(bins)
    ranks.same(bins=found.asked)
    given, blocks = rows_by_ranks(graph, Question(MIN_PLUS, options))
    with ranks.together():
        for first, rows in blocks:
            found.add(first, as_floats(rows, MIN_PLUS))
    found, *others = ranks.allgather(found)
    for other in others:
        found.merge(other)
    return given.labels, given.n, found


def extreme_distance(graph: Any, options: Options, *, greatest: bool) -> float | None:
    """Return the greatest or the least eccentricity of a sparse graph, by bounds; None if another strategy is planned or bounds fail."""
    question = Question(MIN_PLUS, options, wanted="extremes")
    given = question.read(graph)
    if given.edges is None or plan(question.problem(given)).strategy != "bounds":
        return None
    found = extreme_eccentricity(given.edges, greatest=greatest, every=False, threads=options.threads)
    return None if found is None else found[0]
