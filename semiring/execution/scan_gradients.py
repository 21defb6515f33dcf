"""Executor of scans of PyTorch's tensors that require a gradient: functions for PyTorch's automatic differentiation.

The forward pass is the scan of `execution.scan`, with all vectors. The backward pass is the adjoint of `algorithms.scan_adjoints`, as
another function. Second derivatives of a scan, and forward mode, come from products step by step. So do all derivatives over semirings that
`algorithms.scan_adjoints` lacks.
"""

from __future__ import annotations

import functools
import sys
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from semiring.algebra.definition import Semiring
from semiring.algebra.laws import is_selective
from semiring.algorithms.adjoints import adjoint_of
from semiring.algorithms.scan_adjoints import ScanPass, adjoint_of_scan, has_scan_adjoint
from semiring.arrays.autograd import Results, adjoint_if_needed, differentiable, transposed
from semiring.arrays.devices import in_stream_of, numpy_dtypes
from semiring.arrays.followed import is_staged, requires_gradient
from semiring.execution.gradients import (
    applied,
    computed,
    device_in,
    not_propagated,
    product_of_tensors,
    result_dtypes,
    tensors_of,
)
from semiring.execution.operands import Shape, broadcast
from semiring.execution.product import multiply
from semiring.execution.scan import Decoded, ScanOptions, form_of_scan, lengths_of, scan_sequences, whole_numbers
from semiring.kernels.tensors import on_tensors

__all__ = ["scan_with_gradient"]

Tensors = list[Any]

_AXES = {"matrices": 3, "weights": 2, "initial": 1}


@dataclass(frozen=True)
class _Call:
    """One scan: what was asked. Its operands are matrices, weights if `weighted`, and initial vectors."""

    semiring: Semiring
    options: ScanOptions
    lengths: Any  # a list of the caller's, or None; `on` makes an array, with the length of each sequence
    steps: Any  # None if the operands tell their number
    weighted: bool
    last: bool  # the last computed vectors are wanted; then all vectors follow them in the answer, without a gradient
    wanted: tuple[Any, Any, Any] = (True, True, True)  # the operands whose gradients the adjoint computes
    width = 1

    @property
    def has_gradient(self) -> bool:
        return self.options.witness or not is_selective(self.semiring)

    def in_batch(self, size: int) -> _Call:
        return replace(self, lengths=np.array(np.broadcast_to(self.lengths, (size, *self.lengths.shape))))

    def on(self, operands: Any) -> _Call:
        """Return the call on operands with entries, or on lists of components."""
        *batch, steps = self._lead(operands)
        return replace(self, lengths=lengths_of(tuple(batch), steps, self.lengths), steps=steps)

    def _lead(self, operands: Any) -> Shape:
        """Return the axes of the batch, and the number of steps."""
        matrices, weights, initial = self.operands([(x[0] if isinstance(x, list) else x).shape for x in operands])
        lengths, steps = () if self.lengths is None else np.shape(self.lengths), 1 if self.steps is None else self.steps
        return broadcast(matrices[:-2], (weights or ())[:-1], (*initial[:-1], 1), (*lengths, steps))

    def function(self) -> Any:
        return _scan()

    def results(self, operands: Any) -> Results:
        *batch, steps = self._lead(operands)
        (kind,), states, whole = result_dtypes([operands[0].dtype], self.semiring), operands[0].shape[-1], (*batch, steps + 1)
        number = sys.modules["torch"].int32
        found: Results = [((*batch, states), kind)] if self.last else []
        return [
            *found,
            ((*whole, states), kind),
            *([((*whole, states), number), (whole, number)] if self.options.witness else [None, None]),
        ]

    def operands(self, tensors: Any) -> tuple[Any, Any, Any]:
        """Return matrices, weights or None, and initial vectors."""
        return tensors[:3] if self.weighted else (tensors[0], None, tensors[1])


def scan_with_gradient(matrices: Any, semiring: Semiring, initial: Any, weights: Any, lengths: Any, options: ScanOptions) -> Any:
    """Scan tensors so that PyTorch can differentiate the vectors; arguments are those of `scan_sequences`."""
    torch: Any = sys.modules["torch"]
    passed = matrices, initial, weights
    adjoint = adjoint_if_needed(functools.partial(adjoint_of, semiring), passed)
    if options.witness:
        semiring.require_selective()
    if options.sample is not None:
        raise not_propagated("samples do")
    given = {name: x for name, x in zip(_AXES, (matrices, weights, initial), strict=True) if x is not None}
    device = device_in(list(given.values()))
    needed = any(map(requires_gradient, passed))
    parts = {name: tensors_of(x, semiring, name, device, needed=needed) for name, x in given.items()}
    counts = None if lengths is None else whole_numbers(lengths)
    form = form_of_scan({name: tuple(x[0].shape) for name, x in parts.items()}, counts)
    kind = computed(*(v.dtype for x in parts.values() for v in x))
    if "initial" not in parts:
        kinds = result_dtypes([kind] * semiring.components, semiring)
        _, one = semiring.identities([numpy_dtypes()[k] for k in kinds])
        parts["initial"] = [torch.full((form.states,), o, dtype=kind, device=device) for o in one]
    operands = [  # with all leading axes, of length 1 where an operand has none
        [v.to(kind).reshape(*(1,) * (len(form.batch) + _AXES[name] - v.ndim), *v.shape) for v in x] for name, x in parts.items()
    ]
    whole = options._replace(last=False, witness=options.witness or (adjoint is not None and is_selective(semiring)))
    alone = "weights" not in parts and len(parts["matrices"][0].shape) == 2
    call = _Call(
        semiring, whole, None if counts is None else counts.tolist(), form.steps if alone else None, "weights" in parts, options.last
    )
    if has_scan_adjoint(semiring):
        value, *_, witness, states = applied(call, [x for (x,) in operands])
    else:
        call, witness, states = call.on(operands), None, None
        values = _by_steps(call, *call.operands(operands))
        value = values[0] if semiring.components == 1 else tuple(values)
        if options.witness and is_staged():
            raise not_propagated("witness of structured elements does")
        if options.witness:
            _, witness, states = _scanned(call, *call.operands([tuple(v.detach() for v in x) for x in operands]))
    return Decoded(value, witness, states) if options.witness else value


def _elements(x: Any) -> tuple[Any, ...]:
    return x if isinstance(x, tuple) else (x,)


def _last(v: Any, call: _Call) -> Any:
    """Return the last computed vector of each sequence."""
    if call.options.reverse or not call.lengths.size or int(call.lengths.min()) == call.steps:
        return v[..., 0 if call.options.reverse else -1, :]
    at = sys.modules["torch"].tensor(call.lengths[..., None, None], device=v.device)
    return v.gather(-2, at.expand(*call.lengths.shape, 1, v.shape[-1]))[..., 0, :]


def _forward(call: _Call, *operands: Any) -> tuple[Any, ...]:
    """Scan; return the vectors, and the witness and the states, or None."""
    found = _scanned(call, *call.operands([x.detach() for x in operands]))
    values, witness, states = found if isinstance(found, Decoded) else (found, None, None)
    return *([_last(values, call).clone()] if call.last else []), values, witness, states


def _scanned(call: _Call, matrices: Any, weights: Any, initial: Any, added: Any = None) -> Any:
    """Scan tensors, or tuples of components, whose number of steps may be in the lengths alone."""
    parts = [a.expand(*a.shape[:-3], call.steps, *a.shape[-2:]) for a in _elements(matrices)]
    with in_stream_of(parts):
        matrices = parts[0] if call.semiring.components == 1 else tuple(parts)
        weights, initial = (x[0] if isinstance(x, tuple) and len(x) == 1 else x for x in (weights, initial))
        return scan_sequences(matrices, call.semiring, initial, weights, call.lengths, call.options, added)


def _keep(ctx: Any, inputs: tuple[Any, ...], output: tuple[Any, ...]) -> None:
    """Keep for the backward pass the operands, the vectors and the witness."""
    ctx.call, *operands = inputs
    *values, witness, states = output
    found = [] if witness is None else [witness]
    ctx.save_for_backward(*operands, values[-1], *found)
    ctx.save_for_forward(*operands, values[-1], *found)
    ctx.mark_non_differentiable(*values[1:], *found, *([] if states is None else [states]))


def _backward(ctx: Any, gradient: Any, *_: Any) -> tuple[Any, ...]:
    call = replace(ctx.call, wanted=ctx.call.operands(ctx.needs_input_grad[1:]))
    return None, *_scan_adjoint().apply(call, gradient, *ctx.saved_tensors)


def _forward_derivative(ctx: Any, _: None, *tangents: Any) -> tuple[Any, ...]:
    """Return the derivative of the vectors along tangents of the operands: the transpose of the adjoint, step by step."""
    vjp, call, (*operands, values) = sys.modules["torch"].func.vjp, ctx.call, ctx.saved_tensors[: len(tangents) + 1]
    like = _last(values, call) if call.last else values

    def adjoint(gradient: Any) -> Any:
        return vjp(functools.partial(_single_by_steps, call), *operands)[1](gradient)

    return *transposed(adjoint, [like.new_zeros(like.shape)], tangents), *(None,) * (3 if call.last else 2)


def _adjoint(call: _Call, *tensors: Any) -> tuple[Any, ...]:
    """Return the gradients of all operands, None for those not wanted; `tensors` are gradient, operands, vectors and witness."""
    gradient, *parts = (x.detach() for x in tensors)
    count = 3 if call.weighted else 2
    operands, values, witness = call.operands(parts[:count]), parts[count], (*parts[count + 1 :], None)[0]
    forward = ScanPass(call.semiring, *operands, values, witness, call.lengths, call.options.reverse, call.last)
    unchecked = call.options._replace(witness=False, check=False)

    def scan(semiring: Semiring, matrices: Any, weights: Any, initial: Any, added: Any, lengths: Any, *, reverse: bool) -> Any:
        other = replace(call, semiring=semiring, lengths=lengths, options=unchecked._replace(reverse=reverse))
        return _scanned(other, matrices, weights, initial, added)

    def product(left: Any, right: Any) -> Any:
        with in_stream_of((left, right)):
            return multiply(left, right, call.semiring, None, None, (False, unchecked.device, unchecked.threads, False))

    each = adjoint_of_scan(forward, gradient, call.wanted, scan, product)
    return tuple(each if call.weighted else each[::2])


def _keep_again(ctx: Any, inputs: tuple[Any, ...], output: tuple[Any, ...]) -> None:
    ctx.call, *tensors = inputs
    kept = tensors[: 4 if ctx.call.weighted else 3]
    ctx.save_for_backward(*kept)
    ctx.save_for_forward(*kept)
    ctx.others, ctx.present = len(tensors) - len(kept), [x is not None for x in output]


def _second(ctx: Any, *gradients: Any) -> tuple[Any, ...]:
    """Differentiate the gradients, by products step by step, with respect to gradients and operands; vectors depend on the operands."""
    vjp, call, given = sys.modules["torch"].func.vjp, ctx.call, ctx.saved_tensors
    present = [i for i, g in enumerate(gradients) if g is not None]

    def first(gradient: Any, *operands: Any) -> tuple[Any, ...]:
        found = vjp(functools.partial(_single_by_steps, call), *operands)[1](gradient)
        return tuple(found[i] for i in present)

    found = vjp(first, *given)[1](tuple(gradients[i] for i in present))
    return None, *found, *(None for _ in range(ctx.others))


def _single_by_steps(call: _Call, *operands: Any) -> Any:
    """Compute vectors of single numbers by `_by_steps`."""
    return _by_steps(call, *call.operands([[x] for x in operands]))[0]


def _second_forward(ctx: Any, *tangents: Any) -> tuple[Any, ...]:
    """Return the derivatives of the gradients along tangents of gradients and operands."""
    _, *operands = given = ctx.saved_tensors
    wanted = [i for i, present in enumerate(ctx.present) if present]

    def second(*gradients: Any) -> tuple[Any, ...]:
        every = dict(zip(wanted, gradients, strict=True))
        return _second(ctx, *(every.get(i) for i in range(len(operands))))[1 : 1 + len(given)]

    found = transposed(second, [operands[i].new_zeros(operands[i].shape) for i in wanted], tangents[1 : 1 + len(given)])
    each = dict(zip(wanted, found, strict=True))
    return tuple(each.get(i) for i in range(len(operands)))


def _by_steps(call: _Call, matrices: Tensors, weights: Tensors | None, initial: Tensors) -> Tensors:
    """Compute vectors by differentiable products, one step after the other."""
    torch, options, mul = sys.modules["torch"], call.options, call.semiring.program.mul
    adjoint = adjoint_if_needed(functools.partial(adjoint_of, call.semiring), [*matrices, *(weights or ()), *initial])
    reverse, lengths = options.reverse, torch.tensor(call.lengths, device=initial[0].device)[..., None]
    shape, zero = (*call.lengths.shape, initial[0].shape[-1]), list(map(float, _elements(call.semiring.zero)))
    begin = [v.expand(shape) for v in initial]
    vector, rows = [torch.full_like(v, z) for v, z in zip(begin, zero, strict=True)], list[Tensors]()

    def product(step: int, vector: Tensors) -> Tensors:
        """Return the vectors after a step."""
        used = lengths > step  # entries beyond the lengths may be NaN
        a = [torch.where(used[..., None], x[..., min(step, x.shape[-3] - 1), :, :], 1) for x in matrices]
        w = [] if weights is None else [torch.where(used, x[..., min(step, x.shape[-2] - 1), :], 1) for x in weights]
        axis = -1 if reverse else -2
        before = list(on_tensors(mul, w, vector)) if reverse and w else vector
        rows = [v.unsqueeze(axis) for v in before]
        *found, _ = product_of_tensors(*((a, rows) if reverse else (rows, a)), call.semiring, (False, *options[3:6]), adjoint)
        after = [v.squeeze(axis) for v in found]
        return after if reverse or not w else list(on_tensors(mul, after, w))

    for t in range(call.steps, -1, -1) if reverse else range(call.steps + 1):
        new = product(t if reverse else t - 1, vector) if rows else vector
        begins = lengths == t if reverse else torch.full_like(lengths, t == 0, dtype=torch.bool)
        vector = [torch.where(begins, b, v) for b, v in zip(begin, new, strict=True)]
        rows.append([torch.where(lengths >= t, v, z) for v, z in zip(vector, zero, strict=True)])
    values = [torch.stack(part[::-1] if reverse else part, -2) for part in zip(*rows, strict=True)]
    return [_last(v, call) for v in values] if call.last else values


_scan = functools.partial(differentiable, "SemiringScan", _forward, _keep, _backward, _forward_derivative)
_scan_adjoint = functools.partial(differentiable, "SemiringScanAdjoint", _adjoint, _keep_again, _second, _second_forward)
