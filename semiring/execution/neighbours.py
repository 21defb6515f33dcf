"""The executor of the k best elements of each row of a closure: `Neighbours`, without all entries of the rows.

Searches of a sparse graph stop after k vertices. Other strategies compute rows, a block at a time where they can, and select from them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from semiring.algorithms.bellman_ford import better, filled
from semiring.algorithms.csr import CSR, combine_runs
from semiring.algorithms.divergence import extremum_of
from semiring.algorithms.selection import BestEntries
from semiring.algorithms.within import rows_within
from semiring.arrays.conversion import Array, Values
from semiring.arrays.devices import device_of, host, namespace, on_device, on_gpu
from semiring.arrays.exchange import borrowed, lends_memory
from semiring.arrays.memory import entry_bytes, require_bytes
from semiring.arrays.pieces import HOST, slices
from semiring.common.progress import Meter
from semiring.execution.question import GivenGraph, Question, Selection
from semiring.execution.row_solvers import row_solver, search_steps
from semiring.execution.within import entries_within
from semiring.graphs.vertices import Vertices
from semiring.kernels.operations import operations_for
from semiring.kernels.overflow.closures import guard_for, statistics_of
from semiring.planning import Plan
from semiring.results.neighbours import Neighbours
from semiring.results.store import squeezed

__all__ = ["close"]

Found = tuple[Values, Array]
"""The k best elements of some rows, and their columns."""


def close(
    otherwise: Callable[..., Any],
    k: int,
    how: Plan,
    given: GivenGraph,
    question: Question,
    selection: Selection | None,
    meter: Meter | None,
) -> Neighbours:
    """Compute the k best elements of each row; `otherwise` is the plan's executor for the whole closure."""
    edges, batch = given.edges, how.problem.shape[:-2]
    chosen = Selection.all_of(given.n) if selection is None else selection
    count = len(chosen.sources.numbers)
    needed = math.prod(batch) * count * k * (entry_bytes(how.dtypes, via=False) + 8)
    require_bytes(needed, "the result takes", "name fewer sources at a time, or a smaller k", how.device)
    if edges is not None and how.by_edges:
        if meter is not None:
            meter.expect(search_steps(edges, len(chosen.roots)))
        found, columns = _by_edges(k, how, edges, given, question, chosen, meter)
        return _answer((*found, columns), given, chosen)
    whole = otherwise(how, given, question._replace(options=question.options._replace(limit=None, k=None)), selection, meter)
    values = tuple([_as_array(v) for v in (whole if isinstance(whole, tuple) else (whole,))])
    with on_device(device_of(values[0])):
        rows = tuple([v.reshape(math.prod(batch) * count, len(chosen.targets.numbers)) for v in values])
        found, columns = _best_of(k, question, rows, chosen.targets)
        return _answer(tuple([v.reshape(*batch, count, k) for v in (*found, columns)]), given, chosen)


def _by_edges(k: int, how: Plan, edges: CSR, given: GivenGraph, question: Question, chosen: Selection, meter: Meter | None) -> Found:
    """Find the best elements in the rows of the sources, some rows at a time."""
    roots, n, targets, own = chosen.roots, edges.n, chosen.targets, chosen.own
    found = tuple([filled((len(roots), k), z, d) for z, d in zip(edges.zero, edges.dtypes, strict=True)])
    columns = np.full((len(roots), k), -1)
    if how.strategy == "search" and how.problem.limit is not None and how.searches is not None and how.searches.selective:
        guard = guard_for(question.semiring, edges.dtypes, n - 1 if question.reflexive else n, check=question.options.check)
        guard.before(edges.statistics or statistics_of(question.semiring, edges.weights))
        places = np.full(n, -1, np.int32)
        places[targets.numbers[::-1]] = np.arange(len(targets.numbers))[::-1]  # the first place of each target
        wanted: dict[str, Any] = {"reflexive": question.reflexive, "most": k, "places": places, "meter": meter}
        for some in slices(len(roots), min(k, n) + 1, HOST):
            part = rows_within(how.searches, edges, roots[some], how.problem.limit, **wanted)
            at = some.start + part.tails, np.arange(len(part.heads)) - part.starts[part.tails]
            for array, entries in zip((*found, columns), (*part.weights, part.heads), strict=True):
                array[at] = entries
        guard.after(found, None)
    else:
        solver = row_solver(how, edges, given.vertices)
        for some in slices(len(roots), n, HOST) if how.strategy != "condensation" else [slice(0, len(roots))]:
            rows, _ = solver.rows(roots[some], meter, reflexive=question.reflexive)
            rows = rows if targets.every else tuple([v[:, targets.numbers] for v in rows])
            best, columns[some] = _best_of(k, question, rows, targets)
            for array, entries in zip(found, best, strict=True):
                array[some] = entries
    return (found, columns) if own is None else (tuple([v[own] for v in found]), columns[own])


def _best_of(k: int, question: Question, rows: Values, targets: Vertices) -> Found:
    """Select the k best elements of rows, and their columns, one for each target; zeros and −1 where fewer are within the limit.

    Of equal elements the first comes first. A target with several columns counts in the first one.
    """
    xp, semiring, (count, width), dtypes = namespace(rows[0]), question.semiring, rows[0].shape, tuple([v.dtype for v in rows])
    if not targets.every and len(first := np.unique(targets.numbers, return_index=True)[1]) < width:
        first.sort()
        best, columns = _best_of(k, question, tuple([v[:, first] for v in rows]), Vertices(targets.numbers[first]))
        return best, xp.where(columns < 0, columns, xp.asarray(first)[columns])
    worst, zero = question.worst(dtypes), semiring.identities(dtypes)[0]
    found, places = tuple([filled((count, k), z, d) for z, d in zip(zero, dtypes, strict=True)]), np.full((count, k), -1)
    extremum, kept = extremum_of(semiring), min(k, width)
    if len(rows) == 1 and (extremum is not None or dtypes[0].kind == "b"):
        if count and kept:
            largest = extremum is np.fmax or (extremum is None and not zero[0])
            selection = BestEntries(xp.empty((0, 0), dtypes[0]), count, kept, largest=largest)
            selection.offer(slice(0, count), 0, rows[0])
            values, columns = map(host, selection.result())
            there = (values != zero[0]) & (values >= worst[0] if largest else values <= worst[0])
            found[0][:, :kept], places[:, :kept] = np.where(there, values, zero[0]), np.where(there, columns, -1)
    else:
        entries = entries_within(question, tuple(map(host, rows)), None, worst)
        tails, left = entries.tails, (*entries.weights, entries.heads.astype(np.int64))
        choose = partial(better, operations_for(semiring, dtypes))
        for rank in range(min(kept, int(np.diff(entries.starts).max(initial=0)))):
            some, best = combine_runs(tails, left, choose)
            for array, part in zip((*found, places), best, strict=True):
                array[some, rank] = part
            others = ~np.isin(tails * width + left[-1], some * width + best[-1])
            tails, left = tails[others], tuple([v[others] for v in left])
    return tuple(map(xp.asarray, found)), xp.asarray(places)


def _as_array(values: Any) -> Array:
    return values if on_gpu(values) else borrowed(values).array if lends_memory(values) else np.asarray(values)


def _answer(arrays: Values, given: GivenGraph, chosen: Selection) -> Neighbours:
    """Return elements and columns as arrays of the caller's library; a single source has no axis."""
    arrays = tuple([squeezed(v, chosen.sources, -2) for v in arrays])
    if given.graph is not None and given.graph.library is not None:
        arrays = tuple(map(given.graph.library, arrays))
    return Neighbours(arrays[0] if len(arrays) == 2 else arrays[:-1], arrays[-1])
