"""Executor of closures of PyTorch's tensors that require a gradient: a function for PyTorch's automatic differentiation.

The forward pass is the closure of `strategy`, with trees of paths if ⊕ selects. The backward pass is the adjoint of
`algorithms.closure_adjoints`.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from semiring.algorithms.closure_adjoints import ClosureAdjoint, ClosurePass, closure_adjoint_of, deficits
from semiring.arrays.autograd import Results, adjoint_if_needed, differentiable, gradient_required, transposed
from semiring.arrays.devices import in_stream_of, numpy_dtypes
from semiring.arrays.followed import requires_gradient
from semiring.common.errors import DTypeError
from semiring.execution.gradients import applied, computed, device_in, not_propagated, result_dtypes, tensors_of
from semiring.execution.product import multiply
from semiring.execution.question import Question
from semiring.execution.strategy import solve
from semiring.graphs.dense import Reading
from semiring.graphs.read import reading_of
from semiring.graphs.vertices import chosen

__all__ = ["close_with_gradient", "with_cycles"]

_REFUSED = "paths", "limit", "k", "weight", "node_weight", "dtype", "overwrite", "checkpoint", "comm"
"""Options that propagate no gradient, or that change how a dense tensor is read."""


@dataclass
class _Call:
    """One closure: the question to the forward pass, the vertices of the rows, and the deficits that the forward pass finds.

    Without an adjoint, no gradient is wanted. `roots` are a list, or None for all vertices; `on` makes an array.
    """

    question: Question
    adjoint: ClosureAdjoint | None = field(repr=False)
    roots: Any
    deficits: tuple[float | None, float | None] = (None, None)
    batched: bool = False

    def in_batch(self, size: int) -> _Call:
        self.batched = True
        return self

    @property
    def width(self) -> int:
        return self.question.semiring.components

    @property
    def has_gradient(self) -> bool:
        return self.adjoint is not None

    def on(self, operands: Sequence[Any]) -> _Call:
        if self.roots is None:
            return replace(self, roots=np.arange(_side(operands[0])))
        roots = np.array(self.roots, np.int64)
        return replace(self, roots=roots, question=self.question._replace(options=self.question.options._replace(sources=roots)))

    def function(self) -> Any:
        return _closure()

    def results(self, operands: Sequence[Any]) -> Results:
        n, torch = _side(operands[0]), sys.modules["torch"]
        shape = *operands[0].shape[:-2], n if self.roots is None else len(self.roots), n
        kinds = result_dtypes([x.dtype for x in operands], self.question.semiring)
        return [*((shape, kind) for kind in kinds), (shape, torch.int32) if self.question.options.paths else None]

    def roots_on(self, tensor: Any) -> Any:
        """Return the roots on the device of a tensor, made anew: a tensor of one level of `torch.func` has no meaning at others."""
        return sys.modules["torch"].from_numpy(self.roots).to(tensor.device)


def close_with_gradient(graph: Any, question: Question) -> Any:
    """Close dense tensors so that PyTorch can differentiate the closure."""
    semiring, options = question.semiring, question.options
    for name in _REFUSED:
        value = question.paths if name == "paths" else getattr(options, name)
        if value is not None and value is not False:
            raise not_propagated(f"{name}= does", f"leave out {name}, or pass .detach()")
    adjoint = adjoint_if_needed(functools.partial(closure_adjoint_of, semiring), (graph,))
    torch: Any = sys.modules["torch"]
    device = device_in((graph,))
    parts = [x.to(computed(x.dtype)) for x in tensors_of(graph, semiring, "the graph", device, needed=requires_gradient(graph))]
    parts, n = _without_nonedges(parts, question), _side(parts[0])
    given = {-2: (options.sources, "sources"), -1: (options.targets, "targets")}
    some = {axis: chosen(names, n, None, what) for axis, (names, what) in given.items() if names is not None}
    places, roots = {axis: vertices.numbers for axis, vertices in some.items()}, None
    trees = adjoint is not None and adjoint.trees
    if trees and -2 in some:  # only the trees of these sources
        unique, places[-2] = np.unique(places[-2], return_inverse=True)
        roots = unique.tolist()
    own = options._replace(paths=trees, sources=None, targets=None, nonedge=None if options.nonedge is None else semiring.zero)
    found = applied(_Call(question._replace(options=own), adjoint, roots), parts)[: len(parts)]
    for axis, vertices in some.items():
        found = [v.index_select(axis, torch.tensor(places[axis], device=v.device)) for v in found]
        if vertices.single:
            found = [v.squeeze(axis) for v in found]
    return found[0] if len(found) == 1 else tuple(found)


def _side(x: Any) -> int:
    return x.shape[-1] if x.ndim else 0  # the forward pass refuses arrays without axes


def _without_nonedges(parts: list[Any], question: Question) -> list[Any]:
    """Replace entries for no edge by the semiring's zero, without a gradient; over truth values all others are edges."""
    truths = question.semiring.on_truth_values
    if truths and parts[0].is_floating_point():  # nobody can look for NaN yet
        raise DTypeError(f"which entries of a tensor of {parts[0].dtype} are edges? Pass a tensor of bool, such as graph != 0")
    nonedge = reading_of(question.semiring, Reading(question.options.nonedge)).nonedge
    if nonedge is None:
        return parts
    single = len(parts) == 1
    same = [x.isnan() if e != e else x == float(e) for x, e in zip(parts, (nonedge,) if single else nonedge, strict=True)]
    missing = functools.reduce(lambda x, y: x & y, same)
    if truths:
        return [~missing]
    zeros, _ = question.semiring.identities([numpy_dtypes()[x.dtype] for x in parts])
    return [x.masked_fill(missing, zero) for x, zero in zip(parts, zeros, strict=True)]


def _forward(call: _Call, *operands: Any) -> tuple[Any, ...]:
    """Close; return the components of the closure and the trees of paths, or None."""
    semiring, parts = call.question.semiring, [x.detach() for x in operands]
    with in_stream_of(parts):
        found = solve(tuple(parts) if len(parts) > 1 else parts[0], call.question)
        values, trees = (found.values, found.predecessors()) if call.question.options.paths else (found, None)
        values = values if len(parts) > 1 else (values,)
        if semiring.program.exponential is not None and call.adjoint is not None:
            call.deficits = deficits(semiring.program.exponential, *parts, *values, reflexive=call.question.reflexive)
        if trees is not None and not call.question.reflexive and trees.numel():
            trees = with_cycles(sys.modules["torch"], call.question, call.roots_on(trees), parts, values, trees)
    return *values, trees


def with_cycles(xp: Any, question: Question, roots: Any, parts: Sequence[Any], values: Sequence[Any], trees: Any) -> Any:
    """Name for each root the last vertex of the best cycle through the root: the witness of A* ⊗ A on the diagonal.

    Arrays are those of a library: NumPy or PyTorch.
    """
    semiring, own = question.semiring, xp.arange(trees.shape[-1], device=roots.device) == roots[:, None]
    ones = (semiring.one,) if len(parts) == 1 else semiring.one
    left = [xp.where(own, float(one), v)[..., None, :] for one, v in zip(ones, values, strict=True)]
    right = [a[..., roots].swapaxes(-1, -2)[..., None] for a in parts]
    a, b = (left[0], right[0]) if len(parts) == 1 else (tuple(left), tuple(right))
    _, last = multiply(a, b, semiring, None, None, (True, "auto", question.options.threads, False))
    return xp.where(own, last[..., 0], trees)


def _keep(ctx: Any, inputs: tuple[Any, ...], output: tuple[Any, ...]) -> None:
    """Keep for the backward pass what the adjoint reads."""
    ctx.call, *parts = inputs
    *values, trees = output
    adjoint, ctx.shape = ctx.call.adjoint, parts[0].shape
    kept = [x if adjoint and adjoint.weights else None for x in parts], [v if adjoint and adjoint.values else None for v in values]
    ctx.save_for_backward(*kept[0], *kept[1], trees)
    ctx.save_for_forward(*kept[0], *kept[1], trees)
    ctx.like = values[0].shape
    if trees is not None:
        ctx.mark_non_differentiable(trees)


def _forward_pass(ctx: Any, like: Any) -> ClosurePass:
    """Return the forward pass, for gradients or tangents on the device of a tensor."""
    call, (*kept, trees) = ctx.call, ctx.saved_tensors
    width = call.width
    return ClosurePass(kept[:width], kept[width:], call.question.reflexive, trees, call.roots_on(like), call.deficits, call.batched)


def _backward(ctx: Any, *gradients: Any) -> tuple[Any, ...]:
    gradients = gradients[:-1]
    if not gradients[0].numel():
        return None, *(g.new_zeros(ctx.shape) for g in gradients)
    return None, *ctx.call.adjoint.pull(_forward_pass(ctx, gradients[0]), gradients)


def _forward_derivative(ctx: Any, _: None, *tangents: Any) -> tuple[Any, ...]:
    """Return the derivatives of the values along the tangents of the weights."""
    like = next(t for t in tangents if t is not None)
    closed = _forward_pass(ctx, like)
    with gradient_required():
        pull = (ctx.call.adjoint or closure_adjoint_of(ctx.call.question.semiring)).pull
    return *transposed(lambda *g: pull(closed, g), [like.new_zeros(ctx.like)] * len(tangents), tangents), None


_closure = functools.partial(differentiable, "SemiringClosure", _forward, _keep, _backward, _forward_derivative)
