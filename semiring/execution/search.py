"""Rows of the closure of a sparse graph, without its matrix: by searches, elimination, components or a spanning forest."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Sequence
from typing import Any

import numpy as np

from semiring.algorithms.csr import CSR
from semiring.algorithms.factorization import Factorization
from semiring.algorithms.reachability import Condensation
from semiring.algorithms.rows_of_edges import best_path, grow_trees, rows_of_edges
from semiring.algorithms.spanning_tree import SpanningForest
from semiring.algorithms.symbolic import analysed
from semiring.arrays.memory import entry_bytes, require_bytes, require_memory
from semiring.arrays.pieces import HOST, slices
from semiring.common.progress import Meter
from semiring.execution.answer import answer_rows
from semiring.execution.question import GivenGraph, Question, Selection
from semiring.graphs import Graph
from semiring.planning import Plan

__all__ = ["close", "eliminated", "require_rows", "rows_by_elimination", "rows_in_blocks", "rows_of_forest", "search", "search_steps"]

Array = np.ndarray[Any, Any]
Values = tuple[Array, ...]


def close(how: Plan, given: GivenGraph, question: Question, selection: Selection | None, meter: Meter | None) -> Any:
    """Run a plan that finds rows by the edges of a sparse graph."""
    edges, labels, reflexive = given.edges, given.vertices, question.reflexive
    assert edges is not None
    every = selection is None
    if selection is None:
        selection = Selection.all_of(edges.n)
        require_memory(edges.n, edges.dtypes, via=how.paths)
    else:
        require_rows(selection.shape, edges.dtypes, "cpu", paths=how.paths, backward=selection.backward)
    if meter is not None:
        meter.expect(search_steps(edges, len(selection.roots)))
    roots = selection.roots
    g = Graph((), owned=True, labels=labels)
    if how.strategy == "search from both ends":
        values, tree = _pair(how, edges, selection)

        def whole() -> Array:
            """Grow the tree of all vertices."""
            tree: Array = search(how, edges, labels, roots, None, reflexive=reflexive)[1]
            return tree

        return answer_rows(question, selection, g, values, tree, edges.arrays, whole=whole)
    values, tree = search(how, edges, labels, roots, meter, reflexive=reflexive, backward=selection.backward)
    return answer_rows(question, selection, g, values, tree, edges.arrays, graph=edges if every else None)


def _pair(how: Plan, edges: CSR, selection: Selection) -> tuple[Values, Array | None]:
    """Find one path by search from both ends: the element of the pair in a row, and the tree of the path."""
    assert how.searches is not None
    (source,), (target,) = selection.sources.numbers.tolist(), selection.targets.numbers.tolist()
    path, element = best_path(edges, source, target, how.searches)
    values = tuple([np.full((1, edges.n), e, d) for e, d in zip(element, edges.dtypes, strict=True)])
    if not how.paths:
        return values, None
    tree = np.full((1, edges.n), -1, np.int32)
    tree[0, path[1:]] = path[:-1]
    return values, tree


def search(
    how: Plan,
    edges: CSR,
    labels: Sequence[Hashable] | None,
    roots: Array,
    meter: Meter | None,
    *,
    reflexive: bool,
    backward: bool = False,
    nothing: int = -1,
) -> tuple[Values, Any]:
    """Find rows of the closure of a sparse graph (`backward`: columns), and the trees of their paths if the plan has paths.

    The meter expects the `search_steps` already. Compiled searches leave `nothing` where a tree has no vertex.
    """
    if how.strategy == "elimination":
        return rows_by_elimination(how, edges, labels, roots, meter, backward=backward)
    if how.strategy == "condensation":  # of all rows
        return (Condensation.of(edges).matrix(reflexive=reflexive),), None
    if how.strategy == "spanning tree":
        forest = SpanningForest.of_edges(how.semiring, edges)
        return rows_of_forest(how, forest, edges, roots, meter, reflexive=reflexive, backward=backward)
    tree = np.full((len(roots), edges.n), nothing, dtype=np.int32) if how.paths else None
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
    """Read rows off a spanning forest of a symmetric graph, given by edges or by a dense matrix; see `search`."""

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
    """Find rows by elimination, and grow trees from them; see `search`."""
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
    """Eliminate a sparse graph."""
    names = int if labels is None else labels.__getitem__
    return Factorization(how.semiring, edges, analysed(edges), names, threads=how.problem.threads)


def rows_in_blocks(how: Plan, edges: CSR, labels: Sequence[Hashable] | None, meter: Meter | None) -> Iterator[tuple[int, Values]]:
    """Yield all rows of the closure of a sparse graph, some at a time, with the number of the first one; see `search`."""
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
    """Count the steps of some searches or sweeps for a meter: the vertices and edges of the graph, for each."""
    return count * (edges.n + len(edges.heads))


def require_rows(shape: tuple[int, ...], dtypes: tuple[np.dtype[Any], ...], device: str, *, paths: bool, backward: bool) -> None:
    """Raise `TooLargeError` for rows (`backward`: columns) of a shape, with their trees if `paths`, that exceed the memory of a device."""
    needed = math.prod(shape) * entry_bytes(dtypes, via=paths)
    what, count, n = ("targets", shape[-1], shape[-2]) if backward else ("sources", shape[-2], shape[-1])
    require_bytes(needed, f"rows for {count:,} {what} among {n:,} vertices take", f"name fewer {what} at a time", device)
