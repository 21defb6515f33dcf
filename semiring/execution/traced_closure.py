"""Executor of closures within functions that JAX traces; derivatives are those of `algorithms.closure_tangents`."""

from __future__ import annotations

import functools
import operator
import sys
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from semiring.algebra.definition import Semiring
from semiring.algebra.laws import is_selective
from semiring.algorithms.closure_adjoints import closure_adjoint_of
from semiring.algorithms.closure_tangents import TracedClosure, tangents_of_closure
from semiring.arrays import xla
from semiring.arrays.followed import is_traced
from semiring.common.errors import GraphError
from semiring.execution.closure_gradients import with_cycles
from semiring.execution.operands import WITNESS
from semiring.execution.question import Question
from semiring.execution.strategy import solve
from semiring.execution.traced import components_of, function_of, in_floats, on_the_cpu
from semiring.graphs.dense import Reading
from semiring.graphs.read import reading_of
from semiring.graphs.vertices import chosen
from semiring.planning.options import Options

__all__ = ["close_traced"]

_TAKEN = {"sources", "targets", "nonedge", "device", "threads", "check", "tolerance", "method", "block"}
"""Options of closures that JAX traces."""


class _Closure(NamedTuple):
    """A closure without its matrix, with the trees of paths if the options ask for paths. `sources` are ascending numbers, or None."""

    semiring: Semiring
    options: Options
    reflexive: bool
    presence: bool

    @property
    def question(self) -> Question:
        return Question(*self)

    def graph(self, parts: Sequence[Any]) -> Any:
        """Return the matrix of its components; `jax.vmap` may share some components in a stack."""
        whole = np.broadcast_arrays(*parts)
        return whole[0] if len(whole) == 1 else tuple(whole)

    def roots(self, n: int) -> Any:
        return np.arange(n) if self.options.sources is None else np.array(self.options.sources, np.intp)

    def results(self, parts: Any) -> list[tuple[Any, Any]]:
        dtypes, shape, _ = self.question.read(self.graph([np.broadcast_to(np.zeros((), x.dtype), x.shape) for x in parts])).form
        shape = (*shape[:-2], len(self.roots(shape[-1])), shape[-1])
        return [(shape, dtype) for dtype in (*dtypes, *([WITNESS] if self.options.paths else []))]

    def compute(self, parts: xla.Arrays, results: xla.Arrays) -> None:
        if not results[0].size:
            return
        graph = self.graph(parts)
        found = solve(graph, self.question)
        values, trees = (found.values, [found.predecessors()]) if self.options.paths else (found, [])
        if len(parts) == 1:
            graph, values = (graph,), (values,)
        if trees and not self.reflexive:
            trees = [with_cycles(np, self.question, self.roots(graph[0].shape[-1]), graph, values, *trees)]
        for place, v in zip(results, (*values, *trees), strict=True):
            place[...] = v

    def differentiate(self, primals: Any, tangents: Sequence[Any]) -> tuple[Sequence[Any], Sequence[Any]]:
        trees = closure_adjoint_of(self.semiring).trees
        found = function_of(self._replace(options=self.options._replace(paths=trees)))(*primals)
        values = found[: len(primals)]
        weights, of_weights = in_floats(primals, tangents, values, "the graph")
        roots = self.roots(weights[0].shape[-1])
        closed = TracedClosure(weights, of_weights, values, self.reflexive, found[-1] if trees else None, roots)
        return found if self.options.paths else values, tangents_of_closure(self.semiring, closed)


def close_traced(graph: Any, question: Question) -> Any:
    """Close dense arrays of a function that JAX traces."""
    semiring, options = question.semiring, question.options
    given = [name for name in Options._fields if name not in _TAKEN and not any(getattr(options, name) is x for x in (None, False))]
    if given or question.paths:
        raise GraphError(f"JAX is tracing a function, in which closures do not take {(*given, 'paths')[0]}=; leave it out")
    parts, nonedge = _without_nonedges(components_of(graph, semiring, "the graph"), question)
    jnp: Any = sys.modules["jax.numpy"]
    n = parts[0].shape[-1] if parts[0].ndim else 0
    rows, columns = (chosen(given, n, None, name) for given, name in ((options.sources, "sources"), (options.targets, "targets")))
    places, sources = rows.numbers, None
    if is_selective(semiring) and not rows.every:  # only the rows of these sources
        roots, places = np.unique(rows.numbers, return_inverse=True)
        sources = tuple(roots.tolist())
    own = options._replace(sources=sources, targets=None, nonedge=nonedge, device=on_the_cpu(options.device, "a closure"))
    found = function_of(_Closure(semiring, own, question.reflexive, question.presence))(*parts)
    for axis, vertices, numbers in ((-2, rows, places), (-1, columns, columns.numbers)):
        if not vertices.every:
            found = [jnp.take(v, numbers, axis) for v in found]
        if vertices.single:
            found = [v.squeeze(axis) for v in found]
    return found[0] if len(found) == 1 else tuple(found)


def _without_nonedges(parts: list[Any], question: Question) -> tuple[list[Any], Any]:
    """Replace floats for no edge by the semiring's zero, which has no derivative; return the entry for no edge too."""
    jnp, semiring = sys.modules["jax.numpy"], question.semiring
    nonedge = reading_of(semiring, Reading(question.options.nonedge)).nonedge
    if nonedge is None:
        return parts, None
    if is_traced(nonedge):
        raise GraphError("JAX is tracing a function, and nonedge depends on its arguments; pass a number")
    entries, zeros = ((nonedge,), (semiring.zero,)) if len(parts) == 1 else (nonedge, semiring.zero)
    if semiring.on_truth_values or any(x.dtype.kind != "f" for x in parts):  # entries are replaced when they are read
        entries = tuple(np.asarray(e).item() for e in entries)
        return parts, entries[0] if len(parts) == 1 else entries
    missing = functools.reduce(operator.and_, [jnp.isnan(x) if e != e else x == float(e) for x, e in zip(parts, entries, strict=True)])
    return [jnp.where(missing, float(zero), x) for x, zero in zip(parts, zeros, strict=True)], semiring.zero
