"""Executor of closures of PyTorch's tensors that require a gradient: a function for PyTorch's automatic differentiation.

The forward pass is the closure of `strategy`, with trees of paths if ⊕ selects. The backward pass is the adjoint of
`algorithms.closure_adjoints`.
"""

from __future__ import annotations

import functools
import sys
from dataclasses import dataclass
from typing import Any

import numpy as np

from semiring.algorithms.closure_adjoints import ClosureAdjoint, ClosurePass, closure_adjoint_of, deficits
from semiring.arrays.autograd import differentiable, transposed
from semiring.arrays.devices import in_stream_of
from semiring.arrays.exchange import is_recorded
from semiring.common.errors import GraphError, SemiringError
from semiring.execution.gradients import computed, tensors_of
from semiring.execution.operands import flattened
from semiring.execution.product import multiply
from semiring.execution.question import Question
from semiring.execution.strategy import solve
from semiring.graphs.dense import Reading
from semiring.graphs.read import reading_of
from semiring.graphs.vertices import chosen

__all__ = ["close_with_gradient"]

_REFUSED = "paths", "limit", "k", "weight", "node_weight", "dtype", "overwrite", "checkpoint", "comm"
"""Options that propagate no gradient, or that change how a dense tensor is read."""


@dataclass(eq=False)
class _Call:
    """One closure: the question to the forward pass, the vertices of the rows, and the deficits that the forward pass finds."""

    question: Question
    adjoint: ClosureAdjoint
    roots: Any
    deficits: tuple[float, float] = (0.0, 0.0)
    batched: bool = False

    def in_batch(self, _: int) -> _Call:
        self.batched = True
        return self

    def roots_on(self, tensor: Any) -> Any:
        """Return the roots on the device of a tensor, made anew: a tensor of one level of `torch.func` has no meaning at others."""
        return sys.modules["torch"].from_numpy(self.roots).to(tensor.device)


def close_with_gradient(graph: Any, question: Question) -> Any:
    """Close dense tensors so that PyTorch can differentiate the closure."""
    semiring, options = question.semiring, question.options
    for name in _REFUSED:
        value = question.paths if name == "paths" else getattr(options, name)
        if value is not None and value is not False:
            raise GraphError(f"a tensor requires a gradient, which {name}= does not propagate; leave out {name}, or pass .detach()")
    try:
        adjoint = closure_adjoint_of(semiring)
    except SemiringError as error:
        raise GraphError(f"a tensor requires a gradient, but {error}; pass .detach()") from None
    torch: Any = sys.modules["torch"]
    device = next(x.device for x in flattened((graph,)) if is_recorded(x))
    parts = [x.to(computed(x.dtype)) for x in tensors_of(graph, semiring, "the graph", device)]
    parts = _without_nonedges(parts, question)
    n = parts[0].shape[-1] if parts[0].ndim else 0
    rows, columns = (chosen(given, n, None, name) for given, name in ((options.sources, "sources"), (options.targets, "targets")))
    roots, places, sources = np.arange(n), rows.numbers, None
    if adjoint.trees and not rows.every:  # only the trees of these sources
        roots, places = np.unique(rows.numbers, return_inverse=True)
        sources = roots
    own = options._replace(paths=adjoint.trees, sources=sources, targets=None, nonedge=None if options.nonedge is None else semiring.zero)
    call = _Call(question._replace(options=own), adjoint, roots)
    found = _closure().apply(call, *parts)[: len(parts)]
    for axis, vertices, numbers in ((-2, rows, places), (-1, columns, columns.numbers)):
        if not vertices.every:
            found = [v.index_select(axis, torch.from_numpy(numbers.copy()).to(v.device)) for v in found]
        if vertices.single:
            found = [v.squeeze(axis) for v in found]
    return found[0] if len(found) == 1 else tuple(found)


def _without_nonedges(parts: list[Any], question: Question) -> list[Any]:
    """Replace entries for no edge by the semiring's zero, without a gradient."""
    nonedge = reading_of(question.semiring, Reading(question.options.nonedge)).nonedge
    if nonedge is None:
        return parts
    single = len(parts) == 1
    same = [x.isnan() if e != e else x == float(e) for x, e in zip(parts, (nonedge,) if single else nonedge, strict=True)]
    missing = functools.reduce(lambda x, y: x & y, same)
    zeros = (question.semiring.zero,) if single else question.semiring.zero
    return [x.masked_fill(missing, float(zero)) for x, zero in zip(parts, zeros, strict=True)]


def _forward(call: _Call, *operands: Any) -> tuple[Any, ...]:
    """Close; return the components of the closure and the trees of paths, or None."""
    semiring, parts = call.question.semiring, [x.detach() for x in operands]
    with in_stream_of(parts):
        found = solve(tuple(parts) if len(parts) > 1 else parts[0], call.question)
        values, trees = (found.values, found.predecessors()) if call.adjoint.trees else (found, None)
        values = values if len(parts) > 1 else (values,)
        if semiring.program.exponential is not None:
            call.deficits = deficits(semiring.program.exponential, *parts, *values, reflexive=call.question.reflexive)
        if trees is not None and not call.question.reflexive and trees.numel():
            trees = _with_cycles(call, parts, values, trees)
    return *values, trees


def _with_cycles(call: _Call, parts: list[Any], values: tuple[Any, ...], trees: Any) -> Any:
    """Name for each root the last vertex of the best cycle through the root: the witness of A* ⊗ A on the diagonal."""
    torch: Any = sys.modules["torch"]
    semiring, roots = call.question.semiring, call.roots_on(trees)
    own = torch.arange(trees.shape[-1], device=roots.device) == roots[:, None]
    ones = (semiring.one,) if len(parts) == 1 else semiring.one
    left = [torch.where(own, float(one), v)[..., None, :] for one, v in zip(ones, values, strict=True)]
    right = [a.index_select(-1, roots).mT[..., None] for a in parts]
    a, b = (left[0], right[0]) if len(parts) == 1 else (tuple(left), tuple(right))
    _, last = multiply(a, b, semiring, None, None, (True, "auto", call.question.options.threads, False))
    return torch.where(own, last[..., 0], trees)


def _keep(ctx: Any, inputs: tuple[Any, ...], output: tuple[Any, ...]) -> None:
    """Keep for the backward pass what the adjoint reads."""
    ctx.call, *parts = inputs
    *values, trees = output
    adjoint, ctx.shape = ctx.call.adjoint, parts[0].shape
    kept = [x if adjoint.weights else None for x in parts], [v if adjoint.values else None for v in values]
    ctx.save_for_backward(*kept[0], *kept[1], trees)
    ctx.save_for_forward(*kept[0], *kept[1], trees)
    ctx.like = values[0].shape
    if trees is not None:
        ctx.mark_non_differentiable(trees)


def _backward(ctx: Any, *gradients: Any) -> tuple[Any, ...]:
    call, (*kept, trees) = ctx.call, ctx.saved_tensors
    width, gradients = len(kept) // 2, gradients[:-1]
    if not gradients[0].numel():
        return None, *(g.new_zeros(ctx.shape) for g in gradients)
    like = gradients[0]
    closed = ClosurePass(kept[:width], kept[width:], call.question.reflexive, trees, call.roots_on(like), call.deficits, call.batched)
    return None, *call.adjoint.pull(closed, gradients)


def _forward_derivative(ctx: Any, _: None, *tangents: Any) -> tuple[Any, ...]:
    """Return the derivatives of the values along the tangents of the weights."""
    call, (*kept, trees) = ctx.call, ctx.saved_tensors
    width = len(tangents)
    like = next(t for t in tangents if t is not None)
    closed = ClosurePass(kept[:width], kept[width:], call.question.reflexive, trees, call.roots_on(like), call.deficits, call.batched)
    return *transposed(lambda *g: call.adjoint.pull(closed, g), [like.new_zeros(ctx.like)] * width, tangents), None


_closure = functools.partial(differentiable, "SemiringClosure", _forward, _keep, _backward, _forward_derivative)
