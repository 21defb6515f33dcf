"""Executor of products of PyTorch's tensors that require a gradient: a function for PyTorch's automatic differentiation.

The forward pass is the product of `product`, with a witness if ⊕ selects. The backward pass is the adjoint of `algorithms.adjoints`.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from semiring.algebra.definition import Semiring
from semiring.algebra.laws import is_selective
from semiring.algorithms.adjoints import Adjoint, ForwardPass, adjoint_of, deficit
from semiring.arrays.autograd import differentiable, transposed
from semiring.arrays.devices import in_stream_of, torch_dtypes
from semiring.arrays.exchange import is_recorded, name_of, require_readable, requires_gradient
from semiring.common.errors import DTypeError, GraphError, SemiringError, ShapeError
from semiring.execution.operands import Shape, flattened, leading_axes
from semiring.execution.product import multiply, with_witness
from semiring.execution.relaunch import multiply_again

__all__ = [
    "Options", "ProductCall", "adjoint_for", "arranged", "computed", "forward", "multiply_with_gradient",
    "operands_with_gradient", "product_of_tensors", "stand_in", "tensors_of",
]  # fmt: skip

Options = tuple[bool, str, int | None, bool]


@dataclass(eq=False)
class ProductCall:
    """One product: what was asked, and the `deficit` that the forward pass found. Without an adjoint, no gradient is wanted.

    A product is `batched` inside `vmap`, where the backward pass can read no numbers.
    """

    semiring: Semiring
    options: Options
    adjoint: Adjoint | None
    deficit: float | None = None
    batched: bool = False

    def in_batch(self, _: int) -> ProductCall:
        """Mark a product of the stacks of ``vmap``."""
        self.batched = True
        return self


def multiply_with_gradient(a: Any, b: Any, semiring: Semiring, options: Options, *, alone: bool, split: bool = False) -> Any:
    """Multiply tensors so that PyTorch can differentiate the product; arguments are those of `multiply`, and of `adjoint_of`."""
    if not alone:
        raise GraphError("a tensor requires a gradient, which c, out, mask, dtype and overflow do not propagate; pass .detach()")
    needed, device = requires_gradient(a) or requires_gradient(b), _device_of((a, b))
    adjoint = _adjoint_or_none(semiring, needed=needed, split=split)
    left, right = (tensors_of(x, semiring, name, device, needed=needed) for x, name in ((a, "a"), (b, "b")))
    *values, witness = product_of_tensors(left, right, semiring, options, adjoint)
    return with_witness(tuple(values), witness if options[0] else None)


def product_of_tensors(left: list[Any], right: list[Any], semiring: Semiring, options: Options, adjoint: Adjoint | None) -> list[Any]:
    """Multiply the components of two operands; return those of the product, and the witness or None."""
    left, right, shape = arranged(left, right)
    call = ProductCall(semiring, (options[0] or is_selective(semiring), *options[1:]), adjoint)
    found = _product().apply(call, *left, *right)
    return [x if x is None or x.shape == shape else x.reshape(shape) for x in found]


def arranged(left: list[Any], right: list[Any]) -> tuple[list[Any], list[Any], Shape]:
    """Convert the components of two operands to stacks of matrices of the product's dtypes; return the product's own shape too."""
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
    return [x for x, _ in pairs], [y for _, y in pairs], shape


def operands_with_gradient(operands: Sequence[Any], semiring: Semiring, *, alone: bool) -> tuple[list[Any], list[Shape]]:
    """Return the operands of a chain or a contraction as tensors of one dtype, or tuples of tensors, and their shapes."""
    if not alone:
        raise GraphError("a tensor requires a gradient, which out, witness and memory_limit do not propagate; pass .detach()")
    adjoint_for(semiring)
    device = _device_of(operands)
    parts = [tensors_of(x, semiring, f"operand {i}", device) for i, x in enumerate(operands)]
    kind = computed(*(v.dtype for part in parts for v in part))
    converted = [tuple(v.to(kind) for v in part) for part in parts]
    return [part if semiring.components > 1 else part[0] for part in converted], [tuple(part[0].shape) for part in parts]


def stand_in(x: Any) -> Any:
    """Return an array of NumPy with the shape and the dtype of a tensor, and without its entries; a tuple for a tuple."""
    if isinstance(x, tuple | list):
        return tuple(map(stand_in, x))
    dtypes = {theirs: ours for ours, theirs in torch_dtypes().items()}
    return np.broadcast_to(np.zeros((), dtypes.get(x.dtype, np.float32)), tuple(x.shape)) if hasattr(x, "new_full") else x


def adjoint_for(semiring: Semiring, *, split: bool = False) -> Adjoint:
    """Return the adjoint of products over a semiring, or refuse the semiring."""
    try:
        return adjoint_of(semiring, split=split)
    except SemiringError as error:
        raise GraphError(f"a tensor requires a gradient, but {error}; pass .detach()") from None


def _adjoint_or_none(semiring: Semiring, *, needed: bool, split: bool) -> Adjoint | None:
    """Return the adjoint; for tensors that are only transformed, such as by `vmap`, also None."""
    try:
        return adjoint_for(semiring, split=split)
    except GraphError:
        if needed:
            raise
        return None


def _device_of(operands: Any) -> Any:
    return next(x.device for x in flattened(operands) if is_recorded(x))


def computed(*kinds: Any) -> Any:
    """Return the dtype that computes tensors of these dtypes: short floats are computed, and returned, as float32."""
    import torch  # pyright: ignore[reportMissingImports]  # torch.compile cannot follow a dictionary of modules

    kind = functools.reduce(torch.promote_types, kinds)
    return torch.float32 if kind in (torch.float16, torch.bfloat16) else kind


def tensors_of(x: Any, semiring: Semiring, name: str, device: Any, *, needed: bool = True) -> list[Any]:
    """Return the components of an operand as tensors, those of NumPy's arrays on the device; for `needed` gradients they are floats."""
    torch: Any = sys.modules["torch"]
    parts = [x] if semiring.components == 1 else list(x) if isinstance(x, tuple | list) else []
    tensors = [torch.from_numpy(np.array(part)).to(device) if isinstance(part, np.ndarray) else part for part in parts]
    for part in tensors:
        if not isinstance(part, torch.Tensor):
            raise GraphError(f"an operand requires a gradient, and {name} is a {name_of(part)}; pass a tensor, or an array of NumPy")
        require_readable(part.detach())
        if needed and not part.is_floating_point():
            raise DTypeError(f"an operand requires a gradient, and {name} has dtype {part.dtype}; convert {name} to a dtype of floats")
    if len(tensors) != semiring.components or len({part.shape for part in tensors}) > 1:
        raise ShapeError(f"{name} must be a tuple of {semiring.components} arrays of one shape, one for each component of {semiring.name}")
    return tensors


def _alike(x: Any, y: Any, batch: Shape) -> list[Any]:
    """Convert two tensors to the dtype of their product and its leading axes; PyTorch adds up the gradients of repeated matrices."""
    kind = computed(x.dtype, y.dtype)
    shapes = [(*batch, *v.shape[-2:]) for v in (x, y)]
    converted = [v if v.dtype is kind else v.to(kind) for v in (x, y)]
    return [v if v.shape == shape else v.expand(shape) for v, shape in zip(converted, shapes, strict=True)]


def forward(call: ProductCall, *operands: Any) -> tuple[Any, ...]:
    """Multiply; return the components of the product and the witness, or None."""
    width, scale = call.semiring.components, call.semiring.program.exponential
    parts = [x.detach() for x in operands]
    a, b = parts if width == 1 else (tuple(parts[:width]), tuple(parts[width:]))
    with in_stream_of(parts):
        product = multiply_again(a, b, None, None, call.semiring, call.options)
        if product is None:
            product = multiply(a, b, call.semiring, None, None, call.options)
        values, witness = product if call.options[0] else (product, None)
        # On a GPU the backward pass finds the number, unless it stands for several passes.
        if scale is not None and call.adjoint is not None and (call.batched or not parts[0].is_cuda):
            call.deficit = deficit(scale, a, b, values)
    return *(values if width > 1 else (values,)), witness


def _keep(ctx: Any, inputs: tuple[Any, ...], output: tuple[Any, ...]) -> None:
    """Keep for the backward pass the operands, and the values over log Σ exp or the witness."""
    ctx.call, *operands = inputs
    *values, witness = output
    kept = *operands, witness if ctx.call.semiring.program.exponential is None else values[0]
    ctx.save_for_backward(*kept)
    ctx.save_for_forward(*kept)
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


def _forward_derivative(ctx: Any, _: None, *tangents: Any) -> tuple[Any, ...]:
    """Return the derivatives of the values along the tangents of the operands."""
    width = ctx.call.semiring.components
    *operands, found = ctx.saved_tensors
    product = ForwardPass(operands[:width], operands[width:], found, ctx.call.deficit)
    shape = *operands[0].shape[:-1], operands[width].shape[-1]

    def adjoint(*gradients: Any) -> list[Any]:
        left, right = ctx.call.adjoint(product, gradients, (True, True))
        return [*left, *right]

    return *transposed(adjoint, [x.new_zeros(shape) for x in operands[:width]], tangents), None


_product = functools.partial(differentiable, "SemiringProduct", forward, _keep, _backward, _forward_derivative)
