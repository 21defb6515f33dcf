"""Rows of all pairs, one after the other, as NetworkX's generators yield rows.

NetworkX's own searches find the first rows, until the searches have taken as long as this library takes to read the graph. So a few rows,
or rows with a short cutoff, cost as much as in NetworkX. This library finds the other rows, in blocks of doubling size, and all remaining
rows at once when NetworkX would have taken longer.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Iterator
from itertools import islice
from typing import Any

import networkx as nx

from semiring.algebra.catalogue import MIN_PLUS
from semiring.common.errors import SemiringError
from semiring.execution.question import GivenGraph, Question
from semiring.execution.strategy import solve
from semiring.networkx_backend.costs import preparation, reading, theirs
from semiring.networkx_backend.distances import Distances, sparse
from semiring.planning.options import Options

__all__ = ["Named", "row_by_row"]

Named = Iterator[tuple[Any, Any]]

_PYTHONS = {int, float, list}
"""Types of lengths and paths in the rows of this library."""


def row_by_row(
    name: str, G: Any, row: Callable[[Distances, int], Any], method: str, *, paths: bool = False, within: float | None = None, **given: Any
) -> Named:
    """Yield each node with its row, like NetworkX's function of this name, with the arguments `given`.

    `row` makes the row of a node number from a block of distances, for `paths` with predecessors; `within` is the greatest distance. See
    `sparse` for `method`.
    """
    drawn, many = yield from _first_rows(name, G, given)
    blocks = _blocks(G, given.get("weight"), method, drawn, many, paths=paths)
    nodes = list(G)
    while drawn < len(nodes):
        try:
            block = next(blocks).within(within)
        except (NotImplementedError, SemiringError):  # only NetworkX can answer, for example after a negative cycle
            yield from islice(_by_networkx(name, G, given), drawn, None)
            return
        for i in range(drawn, drawn + len(block.matrix)):
            yield nodes[i], row(block, i)
        drawn += len(block.matrix)


def _by_networkx(name: str, G: Any, given: dict[str, Any]) -> Named:
    found: Named = getattr(nx, name)(G, backend="networkx", **given)
    return found


def _first_rows(name: str, G: Any, given: dict[str, Any]) -> Generator[tuple[Any, Any], None, tuple[int, int]]:
    """Yield rows by NetworkX's own searches as long as these are worthwhile.

    A row with numbers that are not Python's ends the search, because this library returns Python numbers. Searches go on to the last row
    if the rest takes less time than all distances here. Returns the number of rows yielded, and the number of rows after which NetworkX
    would take twice as long as all distances here.
    """
    drawn, seconds, patience = 0, 0.0, 0.0
    n, m, whole = 0, 0, 0.0
    for node, row in _by_networkx(name, G, given):
        reached = row[0] if isinstance(row, tuple) else row
        if given.get("weight") is not None and not _PYTHONS.issuperset(map(type, reached.values())):
            break
        yield node, row
        if not drawn:
            n, m, whole = theirs(name, G, given)
            patience = reading(n, m)
        drawn += 1
        seconds += whole * len(reached) / n**2
        if seconds > patience:
            each, here = seconds / drawn, preparation(n, m)
            if each * (n - drawn) > here:
                return drawn, math.ceil(2 * here / each)
            patience = math.inf
    return drawn, drawn


def _blocks(G: Any, weight: Any, method: str, drawn: int, many: int, *, paths: bool) -> Iterator[Distances]:
    """Yield distances from the nodes after the first `drawn`, in blocks that double until `many` rows are drawn."""
    edges, nodes, options = sparse(G, weight, method), list(G), Options(paths=paths, progress=False)
    while drawn < edges.n:
        count = min(drawn, edges.n - drawn) if drawn < many else edges.n - drawn
        some = None if count == edges.n else range(drawn, drawn + count)
        found = solve(GivenGraph(edges), Question(MIN_PLUS, options._replace(sources=some)))
        yield Distances(nodes, found.values, found.predecessors(), drawn) if paths else Distances(nodes, found, None, drawn)
        drawn += count
