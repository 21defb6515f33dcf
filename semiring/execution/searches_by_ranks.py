"""Searches of a sparse graph by the ranks of a communicator, which share out the vertices that are searched from.

Each rank has all edges, so that nothing has to be told on the way, and finds consecutive rows of the result: those of its sources.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import numpy as np

from semiring.algorithms.csr import CSR
from semiring.arrays.pieces import HOST, slices
from semiring.common.errors import noted
from semiring.common.progress import Meter, Watcher
from semiring.execution.reporting import reporting
from semiring.execution.searches import require_rows, search, search_steps
from semiring.graphs.by_ranks import GivenByRanks
from semiring.graphs.vertices import Vertices
from semiring.mpi.ranks import Ranks, Stopped
from semiring.planning import Plan
from semiring.results.distributed import DistributedMatrix, DistributedTrees, shares
from semiring.results.paths_between import paths_in
from semiring.results.store import Names
from semiring.streaming.storage import ArrayRows, OwnRows

__all__ = ["search_by_ranks", "searched_rows"]

Array = np.ndarray[Any, Any]


def search_by_ranks(how: Plan, given: GivenByRanks, sources: Vertices, targets: Vertices, progress: Watcher, *, reflexive: bool) -> Any:
    """Rows of the closure of a sparse graph, found by the ranks that have their sources: a `DistributedMatrix`, or `Paths` over one.

    Parameters
    ----------
    how : Plan
        For errors, progress and searches; of which strategy it is does not matter.
    given : GivenByRanks
        With edges.
    sources, targets : Vertices
    progress, reflexive
        See `semiring.closure`.
    """
    ranks, edges = given.ranks, _edges(given)
    count = len(sources.numbers)
    rows = shares(count, ranks.size)
    own = rows[ranks.rank : ranks.rank + 1]
    roots = sources.numbers[own[0]] if own else sources.numbers[:0]
    with ranks.together(), noted("the closure", how.semiring, edges.arrays()):
        of_host = sum(r.stop - r.start for r, host in zip(rows, ranks.hosts, strict=False) if host == ranks.hosts[ranks.rank])
        require_rows((of_host, edges.n), edges.dtypes, "cpu", paths=how.paths, backward=False)
        with _watching(ranks, how, progress, search_steps(edges, count)) as meter:
            meter.expect(search_steps(edges, len(roots)))
            values, tree = search(how, edges, given.labels, roots, meter, reflexive=reflexive)
        if not targets.every:
            values = tuple(v.take(targets.numbers, axis=1) for v in values)

    def over_ranks(array: Array) -> Any:
        return DistributedMatrix(ranks, OwnRows(count, own, ArrayRows(array)), rows, range(len(rows)))

    found = tuple(map(over_ranks, values))
    if tree is None:
        return found[0] if len(found) == 1 else found
    names, graph = Names(given.labels, edges.n), edges if sources.every and targets.every else None
    store = DistributedTrees(how.semiring, found, names, sources, targets, reflexive, edges.arrays, over_ranks(tree), graph=graph)
    return paths_in(store)


def searched_rows(how: Plan, given: GivenByRanks, progress: Watcher) -> Iterator[tuple[int, Array]]:
    """A rank's share of the rows of a closure of single numbers, some at a time, and the number of the first; within `together`."""
    ranks, edges = given.ranks, _edges(given)
    own = shares(edges.n, ranks.size)[ranks.rank : ranks.rank + 1]
    every = Vertices.all_of(edges.n).numbers
    with _watching(ranks, how, progress, search_steps(edges, edges.n)) as meter:
        for rows in own:
            meter.expect(search_steps(edges, rows.stop - rows.start))
            for some in slices(rows.stop - rows.start, edges.n, HOST):
                first = rows.start + some.start
                (values,), _ = search(how, edges, given.labels, every[first : rows.start + some.stop], meter, reflexive=True)
                yield first, values


def _edges(given: GivenByRanks) -> CSR:
    """Those of a graph that lists them."""
    assert given.edges is not None
    return given.edges


@contextmanager
def _watching(ranks: Ranks, how: Plan, progress: Watcher, steps: int) -> Iterator[Meter]:
    """What counts the steps of this rank, and stops them when another rank has failed; on rank 0 it tells how far all `steps` are.

    For that the others are taken to be as far as rank 0, whose share is as large as any.
    """
    with reporting(progress, how) if ranks.rank == 0 else nullcontext() as shown:

        def tell(done: int, total: int) -> None:
            if ranks.failed():
                raise Stopped
            if shown is not None:
                shown.reach(steps * done // total, steps)

        yield Meter(tell)
