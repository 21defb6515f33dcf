"""Executor of scans of PyTorch's tensors that require a gradient: functions for PyTorch's automatic differentiation.

The forward pass is the scan of `execution.scan`, with all vectors. The backward pass is the adjoint of `algorithms.scan_adjoints`, a function
of its own: its derivatives, the second ones of the scan, come from products step by step.
"""

from __future__ import annotations

import functools
import sys
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from semiring.algebra.definition import Semiring
from semiring.algebra.laws import is_selective
from semiring.algorithms.scan_adjoints import ScanPass, adjoint_of_scan
from semiring.arrays.devices import in_stream_of
from semiring.arrays.exchange import requires_gradient
from semiring.common.errors import GraphError
from semiring.execution.gradients import product_of_tensors, readable_tensors, require_adjoint
from semiring.execution.operands import flattened
from semiring.execution.product import multiply
from semiring.execution.scan import Decoded, ScanForm, ScanOptions, form_of_scan, scan_sequences, whole_numbers
from semiring.kernels.tensors import on_tensors

__all__ = ["scan_with_gradient"]

Tensors = list[Any]


@dataclass(frozen=True, eq=False)
class _Call:
    """One scan: what was asked. Operands are lists of components: matrices, weights if `weighted`, and initial vectors."""

    semiring: Semiring
    options: ScanOptions
    lengths: np.ndarray[Any, Any]
    steps: int
    weighted: bool
    last: bool  # the last computed vectors are wanted; then all vectors follow them in the answer, without a gradient

    def operands(self, tensors: Any) -> tuple[Tensors, Tensors | None, Tensors]:
        """Return matrices, weights and initial vectors."""
        width, tensors = self.semiring.components, list(tensors)
        return tensors[:width], tensors[width:-width] if self.weighted else None, tensors[-width:]

    @property
    def count(self) -> int:
        """Return the number of tensors of the operands."""
        return self.semiring.components * (3 if self.weighted else 2)


def scan_with_gradient(matrices: Any, semiring: Semiring, initial: Any, weights: Any, lengths: Any, options: ScanOptions) -> Any:
    """Scan tensors so that PyTorch can differentiate the vectors; arguments are those of `scan_sequences`."""
    torch: Any = sys.modules["torch"]
    require_adjoint(semiring)
    if options.witness:
        semiring.require_selective()
    if options.sample is not None:
        raise GraphError("a tensor requires a gradient, which samples do not propagate; pass .detach()")
    given = {name: x for name, x in (("matrices", matrices), ("weights", weights), ("initial", initial)) if x is not None}
    device = next(x.device for x in flattened(list(given.values())) if requires_gradient(x))
    parts = {name: readable_tensors(x, semiring, name, device) for name, x in given.items()}
    form, counts = form_of_scan({name: tuple(x[0].shape) for name, x in parts.items()}, None if lengths is None else whole_numbers(lengths))
    kind = functools.reduce(torch.promote_types, (v.dtype for x in parts.values() for v in x))
    kind = torch.float32 if kind == torch.float16 else kind
    if "initial" not in parts:
        ones = semiring.one if isinstance(semiring.one, tuple) else (semiring.one,)
        parts["initial"] = [torch.full((form.states,), float(o), dtype=kind, device=device) for o in ones]
    operands = [_with_all_axes(v.to(kind), form, name) for name, x in parts.items() for v in x]
    whole = options._replace(last=False, witness=options.witness or is_selective(semiring))
    call = _Call(semiring, whole, counts, form.steps, "weights" in parts, options.last)
    *values, witness, states = _functions()[0].apply(call, *operands)
    answer = values[0] if semiring.components == 1 else tuple(values[: semiring.components])
    return Decoded(answer, witness, states) if options.witness else answer


def _with_all_axes(v: Any, form: ScanForm, name: str) -> Any:
    """Add leading axes of length 1, so that an operand has all axes of the batch, and matrices and weights have steps."""
    axes = {"matrices": 3, "weights": 2, "initial": 1}[name]
    missing = len(form.batch) + axes - v.ndim
    return v.reshape(*(1,) * missing, *v.shape) if missing else v


def _last(v: Any, call: _Call) -> Any:
    """Return the last computed vector of each sequence."""
    if call.options.reverse or not call.lengths.size or int(call.lengths.min()) == call.steps:
        return v[..., 0 if call.options.reverse else -1, :]
    at = sys.modules["torch"].from_numpy(call.lengths[..., None, None]).to(v.device)
    return v.gather(-2, at.expand(*call.lengths.shape, 1, v.shape[-1]))[..., 0, :]


@functools.cache
def _functions() -> tuple[Any, Any]:
    """Make the subclasses of `torch.autograd.Function` for a scan and for its adjoint, once PyTorch is imported."""
    torch: Any = sys.modules["torch"]
    scan: dict[str, Any] = {"forward": _forward, "setup_context": _keep, "backward": _backward, "vmap": _over_a_batch}
    adjoint: dict[str, Any] = {"forward": _adjoint, "setup_context": _keep_all, "backward": _second, "vmap": _adjoints_over_a_batch}
    named = (("SemiringScan", scan), ("SemiringScanAdjoint", adjoint))
    first, second = (type(name, (torch.autograd.Function,), {k: staticmethod(f) for k, f in found.items()}) for name, found in named)
    return first, second


def _forward(call: _Call, *operands: Any) -> tuple[Any, ...]:
    """Scan; return the components of all vectors, and the witness and the states, or None."""
    matrices, weights, initial = call.operands([x.detach() for x in operands])
    found = _scanned(call, matrices, weights, initial)
    values = flattened([found.values if isinstance(found, Decoded) else found])
    last = [_last(v, call).clone() for v in values] if call.last else []
    return *last, *values, *(found[1:] if isinstance(found, Decoded) else (None, None))


def _scanned(
    call: _Call, matrices: Tensors, weights: Tensors | None, initial: Tensors, added: Any = None, semiring: Semiring | None = None
) -> Any:
    def operand(parts: Tensors | None) -> Any:
        return None if parts is None else parts[0] if len(parts) == 1 else tuple(parts)

    shape = *matrices[0].shape[:-3], call.steps, *matrices[0].shape[-2:]
    matrices = [a.expand(shape) for a in matrices]  # the number of steps may be in the lengths alone
    with in_stream_of(matrices):
        return scan_sequences(
            operand(matrices), semiring or call.semiring, operand(initial), operand(weights), call.lengths, call.options, added
        )


def _keep(ctx: Any, inputs: tuple[Any, ...], output: tuple[Any, ...]) -> None:
    """Keep for the backward pass the operands, the vectors and the witness."""
    ctx.call, *operands = inputs
    *values, witness, states = output
    width = ctx.call.semiring.components
    ctx.save_for_backward(*operands, *values[-width:], *([] if witness is None else [witness]))
    ctx.mark_non_differentiable(*values[width:], *([] if witness is None else [witness, states]))


def _backward(ctx: Any, *gradients: Any) -> tuple[Any, ...]:
    call, width = ctx.call, ctx.call.semiring.components
    needed = ctx.needs_input_grad[1:]
    wanted = any(needed[:width]), any(needed[width:-width]), any(needed[-width:])
    return None, *_functions()[1].apply(call, wanted, *gradients[:width], *ctx.saved_tensors)


def _adjoint(call: _Call, wanted: tuple[bool, bool, bool], *tensors: Any) -> tuple[Any, ...]:
    """Return the gradients of all operands, None for those that are not wanted; `tensors` are gradients, operands, vectors and witness."""
    width = call.semiring.components
    tensors = tuple(x.detach() for x in tensors)
    gradients, operands, found = tensors[:width], tensors[width : width + call.count], tensors[width + call.count :]
    matrices, weights, initial = call.operands(operands)
    witness = found[width] if len(found) > width else None
    forward = ScanPass(call.semiring, matrices, weights, initial, found[:width], witness, call.lengths, call.options.reverse, call.last)
    unchecked = call.options._replace(witness=False, check=False)

    def scan(semiring: Semiring, matrices: Any, weights: Any, initial: Any, added: Any, lengths: Any, *, reverse: bool) -> Any:
        other = replace(call, lengths=lengths, options=unchecked._replace(reverse=reverse))
        return _scanned(other, [matrices], None if weights is None else [weights], [initial], added, semiring)

    def product(semiring: Semiring, left: Any, right: Any) -> Any:
        a, b = (x[0] if width == 1 else tuple(x) for x in (left, right))
        with in_stream_of(tensors):
            return flattened([multiply(a, b, semiring, None, None, (False, unchecked.device, unchecked.threads, False))])

    each = adjoint_of_scan(forward, gradients, wanted, scan, product)
    sides = [matrices, initial] if weights is None else [matrices, weights, initial]
    parts = each if call.weighted else (each[0], each[2])
    return tuple(v for part, side in zip(parts, sides, strict=True) for v in ([None] * len(side) if part is None else part))


def _keep_all(ctx: Any, inputs: tuple[Any, ...], output: tuple[Any, ...]) -> None:
    ctx.call, ctx.wanted, *tensors = inputs
    ctx.kept = len(tensors)
    ctx.save_for_backward(*tensors[: ctx.call.semiring.components + ctx.call.count])


def _second(ctx: Any, *gradients: Any) -> tuple[Any, ...]:
    """Differentiate the gradients, by products step by step, with respect to gradients and operands; vectors depend on the operands."""
    vjp, call, width = sys.modules["torch"].func.vjp, ctx.call, ctx.call.semiring.components
    given, present = ctx.saved_tensors, [i for i, g in enumerate(gradients) if g is not None]

    def first(*tensors: Any) -> tuple[Any, ...]:
        found = vjp(lambda *operands: tuple(_by_steps(call, operands)), *tensors[width:])[1](tuple(tensors[:width]))
        return tuple(found[i] for i in present)

    found = vjp(first, *given)[1](tuple(gradients[i] for i in present))
    return None, None, *found, *(None for _ in range(ctx.kept - len(given)))


def _by_steps(call: _Call, operands: Any) -> list[Any]:
    """Compute all vectors by differentiable products, one step after the other."""
    torch, reverse, options = sys.modules["torch"], call.options.reverse, call.options
    (matrices, weights, initial), lengths = call.operands(operands), torch.from_numpy(call.lengths).to(operands[0].device)
    zero = call.semiring.zero if isinstance(call.semiring.zero, tuple) else (call.semiring.zero,)
    shape = *call.lengths.shape, initial[0].shape[-1]
    begin, vector = [v.expand(shape) for v in initial], [torch.full_like(v, float(z)).expand(shape) for v, z in zip(initial, zero, strict=True)]
    rows: list[list[Any]] = []
    for t in range(call.steps, -1, -1) if reverse else range(call.steps + 1):
        new, step = vector, t if reverse else t - 1
        if rows:
            a = [x[..., min(step, x.shape[-3] - 1), :, :] for x in matrices]
            w = None if weights is None else [x[..., min(step, x.shape[-2] - 1), :] for x in weights]
            axis = -1 if reverse else -2
            if w is not None and reverse:
                new = list(on_tensors(call.semiring.program.mul, w, new))
            column = [v.unsqueeze(axis) for v in new]
            sides = (a, column) if reverse else (column, a)
            new, _ = product_of_tensors(*sides, call.semiring, (False, options.device, options.threads, options.check))
            new = [v.squeeze(axis) for v in new]
            if w is not None and not reverse:
                new = list(on_tensors(call.semiring.program.mul, new, w))
        begins = (lengths == t if reverse else torch.full_like(lengths, t == 0, dtype=torch.bool))[..., None]
        vector = [torch.where(begins, b, v) for b, v in zip(begin, new, strict=True)]
        inside = (lengths >= t)[..., None]
        rows.append([torch.where(inside, v, float(z)) for v, z in zip(vector, zero, strict=True)])
    values = [torch.stack(part[::-1] if reverse else part, -2) for part in zip(*rows, strict=True)]
    return [_last(v, call) for v in values] if call.last else values


def _in_front(size: int, axes: Any, tensors: Any) -> list[Any]:
    """Return stacks whose first axis is that of `torch.func.vmap`."""
    return [x.expand(size, *x.shape) if axis is None else x.movedim(axis, 0) for x, axis in zip(tensors, axes, strict=True)]


def _of_a_batch(call: _Call, size: int) -> _Call:
    return replace(call, lengths=np.array(np.broadcast_to(call.lengths, (size, *call.lengths.shape))))


def _over_a_batch(info: Any, axes: tuple[int | None, ...], call: _Call, *operands: Any) -> tuple[Any, Any]:
    size = info.batch_size
    found = _functions()[0].apply(_of_a_batch(call, size), *_in_front(size, axes[1:], operands))
    return found, tuple(None if x is None else 0 for x in found)


def _adjoints_over_a_batch(info: Any, axes: tuple[Any, ...], call: _Call, wanted: Any, *tensors: Any) -> tuple[Any, Any]:
    size = info.batch_size
    found = _functions()[1].apply(_of_a_batch(call, size), wanted, *_in_front(size, axes[2:], tensors))
    return found, tuple(None if x is None else 0 for x in found)
