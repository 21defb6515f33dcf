"""The closures of a list of graphs: matrices of one shape and dtype are closed as one stack."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from semiring.algebra.definition import Semiring
from semiring.arrays.devices import device_of, namespace, on_gpu
from semiring.arrays.exchange import a_name_of, comes_from, graph_library, is_sparse
from semiring.arrays.followed import is_recorded
from semiring.common.errors import GraphError, SemiringError, noted
from semiring.execution.question import Question
from semiring.execution.strategy import run, solve
from semiring.graphs import EdgeList
from semiring.kernels.machine import PART
from semiring.planning import plan
from semiring.planning.options import Options
from semiring.results.neighbours import Neighbours

__all__ = ["listed_graphs", "solve_each"]


def listed_graphs(graph: Any, semiring: Semiring) -> Sequence[Any] | None:
    """Return the graphs of a list of graphs; None for one graph, such as a nested list, and for a stack of equal shapes.

    Raises GraphError for a list of graphs with an element that is none.
    """
    structured = semiring.components > 1
    if not isinstance(graph, list if structured else list | tuple) or not graph:
        return None
    ways = [_lists_edges(g) for g in graph]
    there = [way or _is_matrix(g, semiring) for way, g in zip(ways, graph, strict=True)]
    if not any(there):
        return None
    if not all(there):
        i, j = there.index(True), there.index(False)
        raise GraphError(
            f"element {i} of the list is a graph, {_described(graph[i])}, and element {j} is none, but {_described(graph[j])}; pass graphs "
            "alone, or one matrix as a list of rows"
        )
    plain = not (structured or any(ways) or any(on_gpu(g) or comes_from(g, "pandas") or is_recorded(g) for g in graph))
    return None if plain and len(set(map(_shape, graph))) == 1 else graph


def _lists_edges(graph: Any) -> bool:
    if isinstance(graph, np.ndarray | list | tuple):
        return False
    return isinstance(graph, EdgeList) or is_sparse(graph) or graph_library(graph) is not None


def _is_matrix(value: Any, semiring: Semiring) -> bool:
    """Return True for a matrix, or over a structured semiring for a tuple of matrices."""
    if semiring.components > 1:
        return isinstance(value, tuple) and len(value) == semiring.components and all(getattr(part, "ndim", 0) == 2 for part in value)
    if isinstance(value, list | tuple):
        return len(value) > 0 and all(isinstance(row, list | tuple) or getattr(row, "ndim", 0) == 1 for row in value)
    return getattr(value, "ndim", 0) == 2


def _shape(matrix: Any) -> tuple[int, ...]:
    return tuple(matrix.shape) if hasattr(matrix, "shape") else (len(matrix), *{len(row) for row in matrix})


def _described(value: Any) -> str:
    return f"{a_name_of(value)} of shape {tuple(value.shape)}" if hasattr(value, "shape") else a_name_of(value)


def solve_each(graphs: Sequence[Any], question: Question) -> list[Any]:
    """Return the closure of each graph of a list, or its paths; see `solve`.

    Raises SemiringError for options of a single graph, and for a fault of one graph, with its index in the list.
    """
    semiring, options = question.semiring, question.options
    for name in ("comm", "checkpoint", "memory_limit", "node_weight"):
        if getattr(options, name) is not None:
            raise SemiringError(f"{name}= is for one graph, and this is a list of {len(graphs):,}; pass one at a time")
    answers: dict[int, Any] = {}

    def close_together(members: list[_Member], options: Options) -> None:
        """Close matrices of one shape and dtype as one stack."""
        xp = namespace(members[0].values[0])
        parts = [xp.concatenate(v).reshape(len(v), *v[0].shape) for v in zip(*(m.values for m in members), strict=True)]
        try:
            # Paths and a tolerance look at the matrices again.
            stack = question._replace(options=options._replace(overwrite=not (question.paths or options.tolerance)))
            found = solve(tuple(parts) if len(parts) > 1 else parts[0], stack)
        except SemiringError:
            for member in members:  # the one with the fault raises its own error
                with _placed(member.place):
                    answers[member.place] = solve(graphs[member.place], question)
            return
        for i, member in enumerate(members):
            answers[member.place] = _of_stack(found, i, member, reflexive=question.reflexive)

    matrices, small = defaultdict[Any, list[_Member]](list), defaultdict[Any, list[_Member]](list)
    for place, graph in enumerate(graphs):
        arrays: tuple[Any, ...] = graph if isinstance(graph, tuple) and semiring.components > 1 else (graph,)
        if all(type(v) is np.ndarray or on_gpu(v) for v in arrays):
            matrices[tuple([(v.shape, v.dtype, device_of(v)) for v in arrays])].append(_Member(place, arrays))
            continue
        with _placed(place):
            if is_recorded(graph):
                from semiring.execution.closure_gradients import close_with_gradient  # only where PyTorch is

                answers[place] = close_with_gradient(graph, question)
                continue
            if question.selects or not _lists_edges(graph) or getattr(graph, "turns", None) is not None:
                answers[place] = solve(graph, question)
                continue
            with noted("the closure", semiring, graph):
                given = question.read(graph)
                edges = given.edges
                assert edges is not None
                if edges.n > PART:
                    answers[place] = run(plan(question.problem(given)), given, question)
                else:
                    small[edges.n, edges.dtypes].append(_Member(place, edges.dense(), given.vertices))
    for members in matrices.values():
        close_together(members, options)
    for (_, dtypes), members in small.items():
        zero: tuple[Any, ...] = semiring.identities(dtypes)[0]
        close_together(members, options._replace(weight=None, dtype=None, nonedge=zero[0] if len(zero) == 1 else zero))
    return [answers[place] for place in range(len(graphs))]


class _Member(NamedTuple):
    """A matrix of a stack: an array for each component, the place in the list, and the labels of the vertices."""

    place: int
    values: tuple[Any, ...]
    labels: tuple[Hashable, ...] | None = None


@contextmanager
def _placed(place: int) -> Iterator[None]:
    """Add the place in the list to an error."""
    try:
        yield
    except SemiringError as error:
        error.index = place, *(error.index or ())
        error.args = (f"{error} (in the graph at index {place} of the list)",)
        raise


def _of_stack(found: Any, i: int, member: _Member, *, reflexive: bool) -> Any:
    if isinstance(found, tuple):
        parts = [_of_stack(v, i, member._replace(labels=None), reflexive=reflexive) for v in found]
        return Neighbours(*parts) if isinstance(found, Neighbours) else tuple(parts)
    if member.labels is None:
        return found[i]
    from semiring.results.paths import Paths  # only where paths are wanted: a first call should be quick

    if not isinstance(found, Paths):
        return found[i]
    values = found.values if isinstance(found.values, tuple) else (found.values,)
    own = tuple([v[i] for v in values])
    return Paths(found.semiring, own, found.via[i], nodes=member.labels, reflexive=reflexive, kept=lambda: member.values)
