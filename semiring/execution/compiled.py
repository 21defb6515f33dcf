"""Products inside ``torch.compile``: operators of `torch.library`, which the compiler keeps whole.

``semiring::product`` multiplies, and ``semiring::gradient`` is its adjoint. Operators take tensors and numbers, so a number stands for a
semiring with its options.
"""

from __future__ import annotations

import functools
import sys
from typing import Any

from semiring.algebra.catalogue import as_semiring
from semiring.algebra.definition import Semiring
from semiring.algebra.laws import is_selective
from semiring.algorithms.adjoints import ForwardPass
from semiring.arrays.autograd import in_front
from semiring.common.errors import GraphError
from semiring.execution.gradients import Options, ProductCall, adjoint_for, arranged, forward
from semiring.execution.product import with_witness

__all__ = ["multiply_in_graph"]

_calls: list[ProductCall] = []
"""Semirings with their options, by number."""


def multiply_in_graph(a: Any, b: Any, semiring: Semiring | str, options: Options, *, alone: bool) -> Any:
    """Multiply tensors while PyTorch compiles a function; arguments are those of `multiply`."""
    if not alone:
        raise GraphError("inside torch.compile, matmul takes no c, out, mask, k, dtype, overflow and ties; call it outside")
    number, width, witness = _number_of(semiring if isinstance(semiring, str) else semiring.number(), options)
    import torch  # pyright: ignore[reportMissingImports]  # a dictionary of modules cannot be followed

    parts = (list(x) if isinstance(x, tuple | list) else [x] for x in (a, b))
    left, right, shape = arranged(*parts)
    found = torch.ops.semiring.product(left, right, number)
    values = [x.reshape(shape) for x in found]
    return with_witness(tuple(values[:width]), values[width] if witness else None)


def _number_of(name: str | int, options: Options) -> tuple[int, int, bool]:
    """Return the number of a semiring with options, the components of elements, and True if a witness is wanted."""
    _register()
    semiring = as_semiring(name) if isinstance(name, str) else Semiring.numbered[name]
    witness, rest = bool(options[0] or semiring.witness), options[1:]
    if witness:
        semiring.require_selective()
    alike = (n for n, call in enumerate(_calls) if call.semiring == semiring and call.options[1:] == rest)
    if (number := next(alike, None)) is None:
        number = len(_calls)
        _calls.append(ProductCall(semiring, (is_selective(semiring), *rest), None))
    return number, semiring.components, witness


# The compiler calls this function once, and takes the result for a constant.
_number_of._dynamo_marked_constant = True  # type: ignore[attr-defined]


@functools.cache
def _register() -> None:
    """Register the operators, once PyTorch is imported."""
    library: Any = sys.modules["torch"].library
    product = library.custom_op(
        "semiring::product", _product, mutates_args=(), schema="(Tensor[] left, Tensor[] right, int number) -> Tensor[]"
    )
    product.register_fake(_shapes)
    product.register_autograd(_backward, setup_context=_keep)
    product.register_vmap(_over_a_batch)
    schema = "(Tensor[] left, Tensor[] right, Tensor found, Tensor[] gradients, int number) -> Tensor[]"
    gradient = library.custom_op("semiring::gradient", _gradient, mutates_args=(), schema=schema)
    gradient.register_fake(lambda left, right, found, gradients, number: [x.new_empty(x.shape) for x in (*left, *right)])


def _product(left: list[Any], right: list[Any], number: int) -> list[Any]:
    """Return the components of the product, and the witness if ⊕ selects."""
    return [x for x in forward(_calls[number], *left, *right) if x is not None]


def _shapes(left: list[Any], right: list[Any], number: int) -> list[Any]:
    """Return tensors with the shapes and the dtypes of a product, and without its entries."""
    shape = *left[0].shape[:-1], right[0].shape[-1]
    values = [x.new_empty(shape) for x in left]
    return [*values, values[0].new_empty(shape, dtype=sys.modules["torch"].int32)] if _calls[number].options[0] else values


def _keep(ctx: Any, inputs: tuple[Any, ...], output: list[Any]) -> None:
    left, right, ctx.number = inputs
    ctx.save_for_backward(*left, *right, output[-1])


def _backward(ctx: Any, gradients: list[Any]) -> tuple[Any, ...]:
    *operands, found = ctx.saved_tensors
    width = len(operands) // 2
    left, right = operands[:width], operands[width:]
    of_values = [x.new_zeros(found.shape) if g is None else g for g, x in zip(gradients, left, strict=False)]
    pulled = sys.modules["torch"].ops.semiring.gradient(left, right, found, of_values, ctx.number)
    return pulled[:width], pulled[width:], None


def _gradient(left: list[Any], right: list[Any], found: Any, gradients: list[Any], number: int) -> list[Any]:
    """Return the gradients of the components of both operands."""
    if not found.numel() or not left[0].numel():
        return [x.new_zeros(x.shape) for x in (*left, *right)]
    of_left, of_right = adjoint_for(_calls[number].semiring)(ForwardPass(left, right, found), gradients, (True, True))
    return [*of_left, *of_right]


def _over_a_batch(info: Any, axes: Any, left: list[Any], right: list[Any], number: int) -> tuple[Any, Any]:
    """Multiply stacks for `torch.func.vmap`: the axis of the batch becomes the first."""
    stacks = in_front(info.batch_size, (*axes[0], *axes[1]), (*left, *right))
    found = sys.modules["torch"].ops.semiring.product(stacks[: len(left)], stacks[len(left) :], number)
    return found, [0] * len(found)
