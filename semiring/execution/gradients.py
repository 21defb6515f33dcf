"""Executor of products of PyTorch's tensors that require a gradient: a function for PyTorch's automatic differentiation.

The forward pass is the product of `product`, with a witness if ⊕ selects. The backward pass is the adjoint of `algorithms.adjoints`.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from semiring.algebra.definition import Semiring
from semiring.algebra.laws import is_selective
from semiring.algorithms.adjoints import Adjoint, ForwardPass, adjoint_of, deficit, reads_operands
from semiring.arrays.autograd import (
    DifferentiableCall,
    Results,
    adjoint_if_needed,
    differentiable,
    gradient_required,
    transformations,
    transposed,
)
from semiring.arrays.devices import in_stream_of, numpy_dtypes, torch_dtypes
from semiring.arrays.exchange import name_of, require_readable
from semiring.arrays.followed import is_recorded, is_staged, requires_gradient
from semiring.common.errors import DTypeError, GraphError, ShapeError
from semiring.execution.operands import Shape, common_dtypes, flattened, leading_axes
from semiring.execution.product import multiply, with_witness
from semiring.execution.relaunch import multiply_again

__all__ = [
    "Options", "applied", "computed", "device_in", "multiply_with_gradient",
    "not_propagated", "operands_with_gradient", "product_of_tensors", "result_dtypes", "stand_in", "tensors_of",
]  # fmt: skip

Options = tuple[bool, str, int | None, bool]


@dataclass
class _Call:
    """One product: what was asked, and the `deficit` that the forward pass found. Without an adjoint, no gradient is wanted.

    A product is `batched` inside `vmap`, where the backward pass can read no numbers.
    """

    semiring: Semiring
    options: Options
    adjoint: Adjoint | None = field(repr=False)
    deficit: float | None = None
    batched: bool = False

    def in_batch(self, size: int) -> _Call:
        self.batched = True
        return self

    @property
    def width(self) -> int:
        return self.semiring.components

    @property
    def has_gradient(self) -> bool:
        return self.adjoint is not None

    def on(self, operands: Sequence[Any]) -> _Call:
        return self

    def function(self) -> Any:
        return _product()

    def results(self, operands: Sequence[Any]) -> Results:
        width, torch = self.width, sys.modules["torch"]
        shape = *operands[0].shape[:-1], operands[width].shape[-1]
        kinds = result_dtypes([x.dtype for x in operands[:width]], self.semiring)
        return [*((shape, kind) for kind in kinds), (shape, torch.int32) if self.options[0] else None]


def multiply_with_gradient(a: Any, b: Any, semiring: Semiring, options: Options, *, alone: bool, split: bool = False) -> Any:
    """Multiply tensors so that PyTorch can differentiate the product; arguments are those of `multiply`, and of `adjoint_of`."""
    if not alone:
        raise not_propagated("c, out, mask, dtype and overflow do")
    needed, device = any(map(requires_gradient, (a, b))), device_in((a, b))
    adjoint = adjoint_if_needed(functools.partial(adjoint_of, semiring, split=split), (a, b))
    left, right = (tensors_of(x, semiring, name, device, needed=needed) for x, name in ((a, "a"), (b, "b")))
    *values, witness = product_of_tensors(left, right, semiring, options, adjoint)
    return with_witness(tuple(values), witness if options[0] else None)


def product_of_tensors(left: list[Any], right: list[Any], semiring: Semiring, options: Options, adjoint: Adjoint | None) -> list[Any]:
    """Multiply the components of two operands; return those of the product, and the witness or None."""
    left, right, shape = _arranged(left, right)
    witness = options[0] or (adjoint is not None and is_selective(semiring))
    if witness:
        semiring.require_selective()
    found = applied(_Call(semiring, (witness, *options[1:]), adjoint), (*left, *right))
    return [x if x is None or x.shape == shape else x.reshape(shape) for x in found]


def applied(call: DifferentiableCall, operands: Sequence[Any]) -> Any:
    """Apply the `autograd.Function` of a call, or the operator that stands for it while PyTorch compiles."""
    if is_staged():
        if not {"Grad", "Jvp"}.isdisjoint(transformations()):
            raise GraphError("inside torch.compile, only torch.func.vmap works; differentiate the compiled function by torch.autograd")
        from semiring.execution.compiled import apply_operator  # only where PyTorch compiles

        return apply_operator(call, operands)
    return call.function().apply(call.on(operands), *operands)


def _arranged(left: list[Any], right: list[Any]) -> tuple[list[Any], list[Any], Shape]:
    """Convert the components of two operands to stacks of matrices of the product's dtypes; return the product's own shape too."""
    rows, columns = tuple(left[0].shape), tuple(right[0].shape)
    if len(rows) == len(columns) == 2 and rows[1] == columns[0] and len({x.dtype for x in (*left, *right)}) == 1 and left[0].itemsize > 2:
        return left, right, (rows[0], columns[1])  # as below, in less time
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
        raise not_propagated("out, witness and memory_limit do")
    adjoint_if_needed(functools.partial(adjoint_of, semiring), operands)
    device, needed = device_in(operands), any(map(requires_gradient, operands))
    parts = [tensors_of(x, semiring, f"operand {i}", device, needed=needed) for i, x in enumerate(operands)]
    kind = computed(*(v.dtype for part in parts for v in part))
    converted = [tuple(v.to(kind) for v in part) for part in parts]
    return [part if semiring.components > 1 else part[0] for part in converted], [tuple(part[0].shape) for part in parts]


def stand_in(x: Any) -> Any:
    """Return an array of NumPy with the shape and the dtype of a tensor, and without its entries; a tuple for a tuple."""
    if isinstance(x, tuple | list):
        return tuple(map(stand_in, x))
    return np.broadcast_to(np.zeros((), numpy_dtypes().get(x.dtype, np.float32)), tuple(x.shape)) if hasattr(x, "new_full") else x


def not_propagated(options: str, remedy: str = "pass .detach()") -> GraphError:
    """Return the error for options that tensors do not have which PyTorch follows."""
    if is_staged():
        return GraphError(f"inside torch.compile, {options} not work; leave this out, or call the function outside")
    return GraphError(f"a tensor requires a gradient, which {options} not propagate; {remedy}")


def device_in(operands: Sequence[Any]) -> Any:
    """Return the device of the first tensor that PyTorch follows; nested lists have none."""
    return next(x.device for x in flattened(operands) if is_recorded(x) and not isinstance(x, list | tuple))


def computed(*kinds: Any) -> Any:
    """Return the dtype that computes tensors of these dtypes: short floats are computed, and returned, as float32."""
    torch: Any = sys.modules["torch"]
    kinds = tuple(torch.float32 if kind in (torch.float16, torch.bfloat16) else kind for kind in kinds)
    return torch_dtypes()[np.result_type(*(numpy_dtypes()[kind] for kind in kinds))] if len(set(kinds)) > 1 else kinds[0]


def result_dtypes(kinds: Sequence[Any], semiring: Semiring) -> list[Any]:
    """Return the dtypes of a result of components of these dtypes."""
    ours = tuple(numpy_dtypes()[kind] for kind in kinds)
    return [torch_dtypes()[kind] for kind in common_dtypes(ours, ours, semiring)]


def tensors_of(x: Any, semiring: Semiring, name: str, device: Any, *, needed: bool = True) -> list[Any]:
    """Return the components of an operand as tensors, those of NumPy's arrays on the device; for `needed` gradients they are floats."""
    torch: Any = sys.modules["torch"]
    parts = [x] if semiring.components == 1 else list(x) if isinstance(x, tuple | list) else []
    tensors = [torch.from_numpy(np.array(part)).to(device) if isinstance(part, np.ndarray) else part for part in parts]
    for part in tensors:
        if not isinstance(part, torch.Tensor):
            why = "PyTorch compiles the function" if is_staged() else "an operand requires a gradient"
            raise GraphError(f"{why}, and {name} is a {name_of(part)}; pass a tensor, such as torch.stack(…), or an array of NumPy")
        require_readable(part.detach())
        if needed and not part.is_floating_point():
            raise DTypeError(f"an operand requires a gradient, and {name} has dtype {part.dtype}; convert {name} to a dtype of floats")
    if len(tensors) != semiring.components or any(part.shape != tensors[0].shape for part in tensors):
        raise ShapeError(f"{name} must be a tuple of {semiring.components} arrays of one shape, one for each component of {semiring.name}")
    return tensors


def _alike(x: Any, y: Any, batch: Shape) -> list[Any]:
    """Convert two tensors to the dtype of their product and its leading axes; PyTorch adds up the gradients of repeated matrices."""
    kind = computed(x.dtype, y.dtype)
    shapes = [(*batch, *v.shape[-2:]) for v in (x, y)]
    converted = [v if v.dtype is kind else v.to(kind) for v in (x, y)]
    return [v if v.shape == shape else v.expand(shape) for v, shape in zip(converted, shapes, strict=True)]


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
        # On a GPU the backward pass finds the number, unless it stands for several passes.
        if scale is not None and call.adjoint is not None and (call.batched or not parts[0].is_cuda):
            call.deficit = deficit(scale, a, b, values)
    return *(values if width > 1 else (values,)), witness


def _keep(ctx: Any, inputs: tuple[Any, ...], output: tuple[Any, ...]) -> None:
    """Keep for the backward pass the operands if the adjoint reads them, and the values over log Σ exp or the witness."""
    ctx.call, *operands = inputs
    *values, witness = output
    ctx.forms, reads = [(x.shape, x.dtype) for x in operands], ctx.call.adjoint is not None and reads_operands(ctx.call.adjoint)
    kept = *(operands if reads else ()), witness if ctx.call.semiring.program.exponential is None else values[0]
    ctx.save_for_backward(*kept)
    ctx.save_for_forward(*kept)
    if witness is not None:
        ctx.mark_non_differentiable(witness)


def _forward_pass(ctx: Any, like: Any) -> ForwardPass:
    """Return the forward pass; a repeated row of any numbers stands for an operand whose entries the adjoint does not read."""
    *operands, found = ctx.saved_tensors
    operands, width = operands or [like.new_empty(shape[-1:], dtype=kind).expand(shape) for shape, kind in ctx.forms], ctx.call.width
    return ForwardPass(operands[:width], operands[width:], found, ctx.call.deficit)


def _backward(ctx: Any, *gradients: Any) -> tuple[Any, ...]:
    width, needed = ctx.call.width, ctx.needs_input_grad[1:]
    product = _forward_pass(ctx, gradients[0])
    if not gradients[0].numel() or not product.left[0].numel():
        return None, *map(sys.modules["torch"].zeros_like, (*product.left, *product.right))
    left, right = ctx.call.adjoint(product, gradients[:width], (any(needed[:width]), any(needed[width:])))
    return None, *left, *right


def _forward_derivative(ctx: Any, _: None, *tangents: Any) -> tuple[Any, ...]:
    """Return the derivatives of the values along the tangents of the operands."""
    product = _forward_pass(ctx, next(t for t in tangents if t is not None))
    shape = *product.left[0].shape[:-1], product.right[0].shape[-1]
    with gradient_required():
        find = ctx.call.adjoint or adjoint_of(ctx.call.semiring, split=True)  # raises the reason against a derivative

    def adjoint(*gradients: Any) -> list[Any]:
        left, right = find(product, gradients, (True, True))
        return [*left, *right]

    return *transposed(adjoint, [x.new_zeros(shape) for x in product.left], tangents), None


_product = functools.partial(differentiable, "SemiringProduct", _forward, _keep, _backward, _forward_derivative)
