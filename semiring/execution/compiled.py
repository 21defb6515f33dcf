"""Calls inside ``torch.compile``: operators of `torch.library`, which the compiler keeps whole.

`in_graph` hands a call of a public function to the compiler, which runs the function as ordinary Python, on tensors without entries. The
function comes to `apply_operator` where it would apply a subclass of `torch.autograd.Function`. The operator ``semiring::call`` computes
what the subclass computes, and ``semiring::gradient`` is its backward pass. Operators take tensors and numbers, so a number stands for a
call with its options.
"""

from __future__ import annotations

import copy
import importlib.util
from collections.abc import Iterator, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np

from semiring.algebra.definition import Semiring
from semiring.arrays.autograd import DifferentiableCall, in_front
from semiring.common.errors import GraphError
from semiring.execution.numbering import Numbering

__all__ = ["apply_operator", "in_graph"]

torch: Any = importlib.import_module("torch") if importlib.util.find_spec("torch") else None

_VALUE, _SEMIRING, _LIST = "a value of a call", "a semiring of a call", "a list of a call"

_asked: list[tuple[Any, Any, Any]] = []
"""Public functions with their arguments, without tensors and numbers, by number. The graphs with these numbers are never stored on disk."""

_calls = Numbering()
"""Calls of `torch.autograd.Function` without operands."""


def in_graph(function: Any, *args: Any, **options: Any) -> Any:
    """Call a public function while PyTorch compiles the caller."""
    values: list[Any] = []
    number = _number_of_function(function, _packed(args, values), _packed(options, values))
    return _run(number, *values)


def _packed(x: Any, values: list[Any]) -> Any:
    """Move tensors and numbers to a list, and return constants."""
    if isinstance(x, bool | str | range | torch.dtype) or x is None:
        return x
    if isinstance(x, torch.Tensor | np.ndarray) or type(x) in (int, float):
        values.append(torch.as_tensor(x) if isinstance(x, np.ndarray) else x)
        return _VALUE
    if isinstance(x, Semiring):
        return _SEMIRING, id(x), x.number()  # the compiler compiles again for an object of another identity
    if isinstance(x, tuple | list):
        parts = [_packed(part, values) for part in x]
        return (_LIST, *parts) if isinstance(x, list) else tuple(parts)
    if isinstance(x, dict):
        return {name: _packed(part, values) for name, part in x.items()}
    raise GraphError(f"inside torch.compile, a call takes dense tensors, numbers and names, and no {type(x).__name__}; call it outside")


def _unpacked(x: Any, values: Iterator[Any]) -> Any:
    """Return what `_packed` was given."""
    if isinstance(x, tuple):
        if x[:1] == (_SEMIRING,):
            return Semiring.numbered[x[2]]
        listed = x[:1] == (_LIST,)
        return (list if listed else tuple)([_unpacked(part, values) for part in x[listed:]])
    if isinstance(x, dict):
        return {name: _unpacked(part, values) for name, part in x.items()}
    if x != _VALUE:
        return x
    value = next(values)  # the compiler gives names to numbers that differ between calls
    return int(value) if isinstance(value, torch.SymInt) else float(value) if isinstance(value, torch.SymFloat) else value


def _number_of_function(*asked: Any) -> int:
    """Return the number of a function with arguments."""
    if asked not in _asked:
        _asked.append(asked)
    return _asked.index(asked)


# The compiler calls this function once, and takes the result for a constant.
_number_of_function._dynamo_marked_constant = True  # type: ignore[attr-defined]


def _run(number: int, *values: Any) -> Any:
    """Call a public function by its number."""
    function, args, options = _asked[number]
    given = iter(values)
    # After a break of the graph PyTorch compiles functions one by one, and `is_compiling` alone would be True for ever.
    return torch.compiler.disable(function)(*_unpacked(args, given), **_unpacked(options, given))


def apply_operator(call: DifferentiableCall, operands: Sequence[Any]) -> list[Any]:
    """Apply the operator of a call instead of its `torch.autograd.Function`."""
    return _completed(call, operands, torch.ops.semiring.call(list(operands), _calls.number(call)))


def _completed(call: DifferentiableCall, operands: Sequence[Any], found: Sequence[Any]) -> list[Any]:
    """Return all results, None for absent ones."""
    present = iter(found)
    return [None if form is None else next(present) for form in call.results(operands)]


def _call_of(number: int, operands: Sequence[Any]) -> Any:
    return copy.copy(_calls[number]).on(operands)


def _apart(results: Sequence[Any], given: Sequence[Any]) -> list[Any]:
    """Return contiguous results that share no memory, as PyTorch asks of operators."""
    taken, own = {x.untyped_storage().data_ptr() for x in given}, list[Any]()
    for x in results:
        part = x.contiguous()
        own.append(part.clone() if part.untyped_storage().data_ptr() in taken else part)
        taken.add(own[-1].untyped_storage().data_ptr())
    return own


def _computed(operands: list[Any], number: int) -> list[Any]:
    """Compute all results of a call that are present."""
    call = _call_of(number, operands)
    return _apart([x for x in call.function().forward(call, *operands) if x is not None], operands)


def _shaped(operands: list[Any], number: int) -> list[Any]:
    """Return all results of a call without entries."""
    results = _calls[number].results(operands)
    return [operands[0].new_empty(form[0], dtype=form[1]) for form in results if form is not None]


def _pulled(operands: list[Any], found: list[Any], gradients: list[Any], wanted: list[bool], number: int) -> list[Any]:
    """Return the gradients of the operands by the backward pass of a call; 0 where none is wanted."""
    call, context = _call_of(number, operands), _Context(needs_input_grad=(False, *wanted))
    results, function = _completed(call, operands, found), call.function()
    function.setup_context(context, (call, *operands), tuple(results))
    _, *pulled = function.backward(context, *gradients, *(None for _ in results[len(gradients) :]))
    return _apart([torch.zeros_like(x) if g is None else g for g, x in zip(pulled, operands, strict=True)], [*operands, *found, *gradients])


class _Context(SimpleNamespace):
    """Context of a `torch.autograd.Function` outside of PyTorch's graph."""

    def save_for_backward(self, *tensors: Any) -> None:
        self.saved_tensors = tensors

    def save_for_forward(self, *tensors: Any) -> None:
        """Keep nothing, because no forward derivatives follow."""

    def mark_non_differentiable(self, *tensors: Any) -> None:
        """Do nothing: only results with a gradient have one."""


def _keep(ctx: Any, inputs: tuple[Any, ...], output: list[Any]) -> None:
    operands, ctx.number = inputs
    ctx.count = len(operands)
    ctx.save_for_backward(*operands, *output)


def _backward(ctx: Any, gradients: list[Any]) -> tuple[Any, ...]:
    if not _calls[ctx.number].has_gradient:
        raise GraphError(
            "the function was compiled for tensors without a gradient; export or trace it with tensors that require a gradient"
        )
    operands, found = ctx.saved_tensors[: ctx.count], ctx.saved_tensors[ctx.count :]
    given = [torch.zeros_like(x) if g is None else g for g, x in zip(gradients[: _calls[ctx.number].width], found, strict=False)]
    return torch.ops.semiring.gradient(operands, found, given, ctx.needs_input_grad[0], ctx.number), None


def _over_a_batch(info: Any, axes: Any, operands: list[Any], number: int) -> tuple[Any, Any]:
    """Compute stacks for `torch.func.vmap`: the axis of the batch becomes the first."""
    found = torch.ops.semiring.call(in_front(info.batch_size, axes[0], operands), number)
    return found, [0] * len(found)


def _register() -> None:
    """Register the operators ``semiring::call`` and ``semiring::gradient``."""
    torch.compiler.allow_in_graph(_run)
    schema = "(Tensor[] operands, int number) -> Tensor[]"
    operator = torch.library.custom_op("semiring::call", _computed, mutates_args=(), schema=schema)
    operator.register_fake(_shaped)
    operator.register_autograd(_backward, setup_context=_keep)
    operator.register_vmap(_over_a_batch)
    schema = "(Tensor[] operands, Tensor[] found, Tensor[] gradients, bool[] wanted, int number) -> Tensor[]"
    gradient = torch.library.custom_op("semiring::gradient", _pulled, mutates_args=(), schema=schema)
    gradient.register_fake(lambda operands, *_: [x.new_empty(x.shape) for x in operands])


if torch is not None:
    _register()
