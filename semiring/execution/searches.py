"""Searches and eliminations of sparse graphs: rows of closures in memory proportional to them, or all of their rows."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Sequence
from typing import Any

import numpy as np

from semiring.algorithms.csr import CSR
from semiring.algorithms.factorization import Factorization
from semiring.algorithms.reachability import Condensation
from semiring.algorithms.rows_of_edges import rows_of_edges
from semiring.algorithms.spanning_tree import SpanningForest
from semiring.algorithms.symbolic import analysed
from semiring.algorithms.tight_edges import grow_trees
from semiring.arrays.memory import entry_bytes, require_bytes
from semiring.arrays.pieces import HOST, slices
from semiring.common.errors import noted
from semiring.common.progress import Meter, Watcher
from semiring.execution.reporting import reporting
from semiring.graphs import Graph
from semiring.graphs.vertices import Vertices
from semiring.planning import Plan
from semiring.results.paths_between import paths_in
from semiring.results.store import Names
from semiring.results.trees import PredecessorTrees

__all__ = ["eliminated", "require_rows", "rows_by_elimination", "rows_in_blocks", "rows_of_forest", "search", "search_all", "search_steps"]

Array = np.ndarray[Any, Any]
Values = tuple[Array, ...]


def search(
    how: Plan,
    edges: CSR,
    labels: Sequence[Hashable] | None,
    roots: Array,
    meter: Meter | None,
    *,
    reflexive: bool,
    backward: bool = False,
) -> tuple[Values, Any]:
    """Rows of the closure of a sparse graph (`backward`: columns), and the trees of their paths if they are wanted.

    The meter is told of the `search_steps`, which it expects already.
    """
    if how.strategy == "elimination":
        return rows_by_elimination(how, edges, labels, roots, meter, backward=backward)
    if how.strategy == "condensation":  # of all rows
        return (Condensation.of(edges).matrix(reflexive=reflexive),), None
    if how.strategy == "spanning tree":
        forest = SpanningForest.of_edges(how.semiring, edges)
        return rows_of_forest(how, forest, edges, roots, meter, reflexive=reflexive, backward=backward)
    tree = np.full((len(roots), edges.n), -1, dtype=np.int32) if how.paths else None
    values = rows_of_edges(
        how.semiring,
        edges,
        roots,
        reflexive=reflexive,
        backward=backward,
        tree=tree,
        name=int if labels is None else labels.__getitem__,
        searches=how.searches,
        order=how.problem.order,
        meter=meter,
    )
    if backward:
        return tuple(v.T for v in values), None if tree is None else tree.T
    return values, tree


def rows_of_forest(
    how: Plan, forest: SpanningForest, edges: CSR | Array, roots: Array, meter: Meter | None, *, reflexive: bool, backward: bool = False
) -> tuple[Values, Any]:
    """Read rows off a spanning forest of a symmetric graph, whose edges may be a dense matrix; see `search`."""

    def edges_of(vertex: int) -> tuple[Array, Array]:
        if not isinstance(edges, CSR):
            return edges[vertex], np.arange(len(edges))
        some = slice(edges.starts[vertex], edges.starts[vertex + 1])
        return edges.weights[0][some], edges.heads[some]

    rows, trees = forest.rows(roots, edges_of, reflexive=reflexive, paths=how.paths, threads=how.problem.threads)
    if meter is not None and isinstance(edges, CSR):
        meter.add(search_steps(edges, len(roots)))
    return ((rows.T,), None if trees is None else trees.T) if backward else ((rows,), trees)


def rows_by_elimination(
    how: Plan, edges: CSR, labels: Sequence[Hashable] | None, roots: Array, meter: Meter | None, *, backward: bool = False
) -> tuple[Values, Any]:
    """The same by elimination, with trees that are grown of the rows."""
    every = np.arange(edges.n)
    some = not np.array_equal(roots, every)
    ends = (every, roots) if backward else (roots, every)
    closed = eliminated(how, edges, labels)
    values = closed.between(*ends, every_source=backward or not some, every_target=not (backward and some), meter=meter)
    if not how.paths:
        return values, None
    rows = tuple([np.ascontiguousarray(v.T) for v in values]) if backward else values
    tree = grow_trees(how.semiring, edges, roots, rows, backward=backward, threads=how.problem.threads)
    return (tuple([v.T for v in rows]), tree.T) if backward else (rows, tree)


def eliminated(how: Plan, edges: CSR, labels: Sequence[Hashable] | None) -> Factorization:
    """The elimination of a sparse graph."""
    names = int if labels is None else labels.__getitem__
    return Factorization(how.semiring, edges, analysed(edges), names, threads=how.problem.threads)


def rows_in_blocks(how: Plan, edges: CSR, labels: Sequence[Hashable] | None, meter: Meter | None) -> Iterator[tuple[int, Values]]:
    """All rows of the closure of a sparse graph, some at a time, with the number of the first one; the meter is told as by `search`."""
    if how.strategy == "elimination":
        yield from eliminated(how, edges, labels).blocks(meter)
        return
    every = np.arange(edges.n)
    forest = SpanningForest.of_edges(how.semiring, edges) if how.strategy == "spanning tree" else None
    for some in slices(edges.n, edges.n, HOST):
        if forest is not None:
            yield some.start, rows_of_forest(how, forest, edges, every[some], meter, reflexive=True)[0]
        else:
            yield some.start, search(how, edges, labels, every[some], meter, reflexive=True)[0]


def search_steps(edges: CSR, count: int) -> int:
    """What a meter counts of so many searches, or sweeps: for each, the vertices and edges of the graph."""
    return count * (edges.n + len(edges.heads))


def search_all(how: Plan, edges: CSR, labels: Sequence[Hashable] | None, progress: Watcher, *, reflexive: bool) -> Any:
    """All rows of the closure of a sparse graph."""
    every = Vertices.all_of(edges.n)
    with noted("the closure", how.semiring, edges.arrays()):
        with reporting(progress, how) as meter:
            if meter is not None:
                meter.expect(search_steps(edges, edges.n))
            values, tree = search(how, edges, labels, every.numbers, meter, reflexive=reflexive)
        if tree is None:
            return Graph((), owned=True).answer(*values)
        names = Names(labels, edges.n)
        return paths_in(PredecessorTrees(how.semiring, values, names, every, every, reflexive, edges.arrays, tree, graph=edges))


def require_rows(shape: tuple[int, ...], dtypes: tuple[np.dtype[Any], ...], device: str, *, paths: bool, backward: bool) -> None:
    """Refuse rows that the memory has no room for.

    Parameters
    ----------
    shape : tuple of int
        Of the rows, or `backward` of the columns, with leading axes for a batch.
    dtypes : tuple of numpy.dtype
    device : str
        Whose memory: "cpu", or "cuda:0" and so on.
    paths : bool
        Whether the trees of their paths come along.
    backward : bool

    Raises
    ------
    TooLargeError
    """
    needed = math.prod(shape) * entry_bytes(dtypes, via=paths)
    what, count, n = ("targets", shape[-1], shape[-2]) if backward else ("sources", shape[-2], shape[-1])
    require_bytes(needed, f"rows for {count:,} {what} among {n:,} vertices take", f"name fewer {what} at a time", device)
