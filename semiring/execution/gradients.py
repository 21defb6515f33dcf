"""Executor of products of PyTorch's tensors that require a gradient: a function for PyTorch's automatic differentiation.

The forward pass is the product of `product`, with a witness if ⊕ selects. The backward pass is the adjoint of `algorithms.adjoints`.
"""

from __future__ import annotations

import functools
import sys
from dataclasses import dataclass
from typing import Any

import numpy as np

from semiring.algebra.definition import Semiring
from semiring.algebra.laws import is_selective
from semiring.algorithms.adjoints import Adjoint, ForwardPass, adjoint_of, deficit
from semiring.arrays.devices import in_stream_of
from semiring.arrays.exchange import name_of, require_readable, requires_gradient
from semiring.common.errors import DTypeError, GraphError, SemiringError, ShapeError
from semiring.execution.operands import Shape, flattened, leading_axes
from semiring.execution.product import multiply, with_witness
from semiring.execution.relaunch import multiply_again

__all__ = ["multiply_with_gradient", "tensors_of"]

Options = tuple[bool, str, int | None, bool]


@dataclass(eq=False)
class _Call:
    """One product: what was asked, and the `deficit` that the forward pass found."""

    semiring: Semiring
    options: Options
    adjoint: Adjoint
    deficit: float = 0.0


def multiply_with_gradient(a: Any, b: Any, semiring: Semiring, options: Options, *, alone: bool) -> Any:
    """Multiply tensors so that PyTorch can differentiate the product; arguments are those of `multiply`."""
    if not alone:
        raise GraphError("a tensor requires a gradient, which c, out, mask, dtype and overflow do not propagate; pass .detach()")
    try:
        adjoint = adjoint_of(semiring)
    except SemiringError as error:
        raise GraphError(f"a tensor requires a gradient, but {error}; pass .detach()") from None
    device = next(x.device for x in flattened((a, b)) if requires_gradient(x))
    left, right = tensors_of(a, semiring, "a", device), tensors_of(b, semiring, "b", device)
    rows, columns = tuple(left[0].shape), tuple(right[0].shape)
    batch, row, column = leading_axes(rows, columns)
    shape = *batch, *rows[-2:-1], *(() if column else columns[-1:])
    if row:
        left = [x[None, :] for x in left]
    if column:
        right = [x[:, None] for x in right]
    if batch and right[0].ndim == 2:  # the rows of a stack times one matrix, whose gradient then needs no stack
        left, batch = [x.flatten(0, -2) for x in left], ()
    pairs = [_alike(x, y, batch) for x, y in zip(left, right, strict=True)]
    call = _Call(semiring, (options[0] or is_selective(semiring), *options[1:]), adjoint)
    found = _function().apply(call, *(x for x, _ in pairs), *(y for _, y in pairs))
    *values, witness = [x if x is None else x.reshape(shape) for x in found]
    return with_witness(tuple(values), witness if options[0] else None)


def tensors_of(x: Any, semiring: Semiring, name: str, device: Any) -> list[Any]:
    """Return the components of an operand as tensors, those of NumPy's arrays on the device."""
    torch: Any = sys.modules["torch"]
    parts = [x] if semiring.components == 1 else list(x) if isinstance(x, tuple | list) else []
    tensors = [torch.from_numpy(np.array(part)).to(device) if isinstance(part, np.ndarray) else part for part in parts]
    for part in tensors:
        if not isinstance(part, torch.Tensor):
            raise GraphError(f"an operand requires a gradient, and {name} is a {name_of(part)}; pass a tensor, or an array of NumPy")
        require_readable(part.detach())
        if not part.is_floating_point():
            raise DTypeError(f"an operand requires a gradient, and {name} has dtype {part.dtype}; convert {name} to a dtype of floats")
    if len(tensors) != semiring.components or len({part.shape for part in tensors}) > 1:
        raise ShapeError(f"{name} must be a tuple of {semiring.components} arrays of one shape, one for each component of {semiring.name}")
    return tensors


def _alike(x: Any, y: Any, batch: Shape) -> list[Any]:
    """Convert two tensors to the dtype of their product and its leading axes; PyTorch adds up the gradients of repeated matrices."""
    torch: Any = sys.modules["torch"]
    kind = torch.promote_types(x.dtype, y.dtype)
    kind = torch.float32 if kind == torch.float16 else kind
    return [v.to(kind).expand(*batch, *v.shape[-2:]) for v in (x, y)]


@functools.cache
def _function() -> Any:
    """Make the subclass of `torch.autograd.Function`, once PyTorch is imported."""
    torch: Any = sys.modules["torch"]
    methods: dict[str, Any] = {"forward": _forward, "setup_context": _keep, "backward": _backward, "vmap": _over_a_batch}
    return type("SemiringProduct", (torch.autograd.Function,), {name: staticmethod(f) for name, f in methods.items()})


def _forward(call: _Call, *operands: Any) -> tuple[Any, ...]:
    """Multiply; return the components of the product and the witness, or None."""
    width, scale = call.semiring.components, call.semiring.program.exponential
    parts = [x.detach() for x in operands]
    a, b = parts if width == 1 else (tuple(parts[:width]), tuple(parts[width:]))
    with in_stream_of(parts):
        product = multiply_again(a, b, None, None, call.semiring, call.options)
        if product is None:
            product = multiply(a, b, call.semiring, None, None, call.options)
        values, witness = product if call.options[0] else (product, None)
        if scale is not None:
            call.deficit = deficit(scale, a, b, values)
    return *(values if width > 1 else (values,)), witness


def _keep(ctx: Any, inputs: tuple[Any, ...], output: tuple[Any, ...]) -> None:
    """Keep for the backward pass the operands, and the values over log Σ exp or the witness."""
    ctx.call, *operands = inputs
    *values, witness = output
    ctx.save_for_backward(*operands, witness if ctx.call.semiring.program.exponential is None else values[0])
    if witness is not None:
        ctx.mark_non_differentiable(witness)


def _backward(ctx: Any, *gradients: Any) -> tuple[Any, ...]:
    width, needed = ctx.call.semiring.components, ctx.needs_input_grad[1:]
    *operands, found = ctx.saved_tensors
    if not gradients[0].numel() or not operands[0].numel():
        return None, *map(sys.modules["torch"].zeros_like, operands)
    product = ForwardPass(operands[:width], operands[width:], found, ctx.call.deficit)
    left, right = ctx.call.adjoint(product, gradients[:width], (any(needed[:width]), any(needed[width:])))
    return None, *left, *right


def _over_a_batch(info: Any, axes: tuple[int | None, ...], call: _Call, *operands: Any) -> tuple[Any, Any]:
    """Multiply stacks for `torch.func.vmap`: the axis of the batch becomes the first."""
    size = info.batch_size
    stacks = [x.expand(size, *x.shape) if axis is None else x.movedim(axis, 0) for x, axis in zip(operands, axes[1:], strict=True)]
    found = _function().apply(call, *stacks)
    return found, tuple(None if x is None else 0 for x in found)
