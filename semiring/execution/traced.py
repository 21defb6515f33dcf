"""Operations of this library within functions that JAX traces, such as those of `jax.jit`, `jax.grad` and `jax.vmap`.

A traced array has a shape and a dtype, and no entries yet. Each operation becomes one of JAX, which XLA performs by `arrays.xla`, on the
CPU. `traced_product`, `traced_closure` and `traced_scan` have the forms, the computations and the derivatives of three functions.
"""

from __future__ import annotations

import functools
import importlib
import sys
from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from semiring.algebra.definition import Semiring
from semiring.arrays import xla
from semiring.arrays.exchange import cut_off, name_of, refuse_short_floats
from semiring.common.errors import DTypeError, GraphError, SemiringError, ShapeError
from semiring.execution.numbering import Numbering

__all__ = ["TracedCall", "components_of", "function_of", "in_floats", "on_the_cpu"]

_TARGET = "semiring_call"


class TracedCall(Protocol):
    """A question without its operands: a named tuple."""

    @abstractmethod
    def results(self, parts: Any) -> list[tuple[Any, Any]]:
        """Return shape and dtype of each result, for operands given by their components."""

    @abstractmethod
    def compute(self, parts: xla.Arrays, results: xla.Arrays) -> None:
        """Write the results when XLA asks for them."""

    @abstractmethod
    def differentiate(self, primals: Any, tangents: Sequence[Any]) -> tuple[Sequence[Any], Sequence[Any]]:
        """Return all results, and the tangents of the first ones; a constant has the tangent None."""


def on_the_cpu(device: Any, function: str) -> str:
    """Return the device that computes, or refuse another one than the CPU."""
    if device not in ("auto", "cpu", "reference"):
        raise GraphError(f"JAX is tracing a function, in which {function} computes on the CPU; device is {device!r}")
    return "cpu" if device == "auto" else str(device)


def components_of(x: Any, semiring: Semiring, name: str) -> list[Any]:
    """Return the components of an operand as arrays of JAX."""
    parts = [x] if semiring.components == 1 else list(x) if isinstance(x, tuple | list) else []
    for part in parts:
        if not isinstance(part, sys.modules["jax"].Array | np.ndarray):
            raise GraphError(f"JAX is tracing a function, and {name} is a {name_of(part)}; pass an array of JAX or NumPy")
        refuse_short_floats(part.dtype)
        _require_kept(part.dtype)
    if len(parts) != semiring.components or len({part.shape for part in parts}) > 1:
        raise ShapeError(f"{name} must be a tuple of {semiring.components} arrays of one shape, one for each component of {semiring.name}")
    return [sys.modules["jax.numpy"].asarray(part) for part in parts]


def _require_kept(dtype: Any) -> None:
    """Refuse a dtype that JAX would convert to another one."""
    if (kept := sys.modules["jax"].dtypes.canonicalize_dtype(dtype)) != dtype:
        raise cut_off(dtype, kept)


@functools.lru_cache(maxsize=256)
def function_of(asked: TracedCall) -> Any:
    """Make a function of JAX with a derivative, from the components of all operands to the results."""
    jax: Any = sys.modules["jax"]
    number = _asked.number(asked)

    function = jax.custom_jvp(lambda *parts: tuple(_primitive().bind(*parts, number=number)))

    def with_tangents(primals: Any, tangents: Any) -> Any:
        try:
            found, pushed = asked.differentiate(primals, [None if _is_zero(t) else t for t in tangents])
        except DTypeError:
            raise
        except SemiringError as error:
            raise GraphError(f"JAX takes a derivative, but {error}; pass jax.lax.stop_gradient(…)") from None
        return tuple(found), (*pushed, *(np.zeros(v.shape, jax.dtypes.float0) for v in found[len(pushed) :]))

    function.defjvp(with_tangents, symbolic_zeros=True)
    return jax.jit(function)


def _is_zero(tangent: Any) -> bool:
    """Return True for the tangent of a constant."""
    jax: Any = sys.modules["jax"]
    return isinstance(tangent, jax.custom_derivatives.SymbolicZero) or tangent.dtype == jax.dtypes.float0


def in_floats(parts: Sequence[Any], tangents: Sequence[Any], values: Sequence[Any], name: str) -> tuple[list[Any], list[Any]]:
    """Convert components and tangents to the dtypes of the values."""
    for part in parts:
        if part.dtype.kind != "f":
            raise DTypeError(f"JAX takes a derivative, and {name} has dtype {part.dtype}; convert {name} to a dtype of floats")
    converted = [x.astype(v.dtype) for x, v in zip(parts, values, strict=True)]
    return converted, [None if t is None else t.astype(v.dtype) for t, v in zip(tangents, values, strict=True)]


_asked = Numbering()
"""Questions by their numbers, which compiled functions of JAX contain."""


@functools.cache
def _primitive() -> Any:
    """Make the operation of JAX: shapes, batches, and the call by XLA."""
    core, ffi = importlib.import_module("jax.extend.core"), importlib.import_module("jax.ffi")
    batching, mlir = importlib.import_module("jax.interpreters.batching"), importlib.import_module("jax.interpreters.mlir")
    xla.register(_TARGET, lambda number, parts, results: _asked[number].compute(parts, results))
    call = core.Primitive(_TARGET)
    call.multiple_results = True

    def shaped(*parts: Any, number: int) -> list[Any]:
        results = _asked[number].results(parts)
        for _, dtype in results:
            _require_kept(dtype)
        return [sys.modules["jax"].core.ShapedArray(*result) for result in results]

    def batched(parts: Any, axes: Any, *, number: int) -> Any:
        """Compute stacks for `jax.vmap`: all operands get one leading axis more."""
        stacks = [x[None] if axis is None else sys.modules["jax.numpy"].moveaxis(x, axis, 0) for x, axis in zip(parts, axes, strict=True)]
        found = call.bind(*stacks, number=number)
        return found, [0] * len(found)

    def at_once(*parts: Any, number: int) -> list[Any]:
        """Compute arrays with entries, where `jax.disable_jit` is in effect."""
        results = [np.empty(*result) for result in _asked[number].results(parts)]
        _asked[number].compute(list(map(np.asarray, parts)), results)
        return list(map(sys.modules["jax.numpy"].asarray, results))

    def lowered(context: Any, *operands: Any, number: int) -> Any:
        return ffi.ffi_lowering(_TARGET)(context, *operands, number=np.int64(number))

    def refused(*_: Any, **__: Any) -> Any:
        raise GraphError(
            "within functions that JAX compiles, this library computes on the CPU alone; on a GPU, call it outside of jax.jit, where "
            "arrays stay on the GPU, or choose jax.config.update('jax_default_device', 'cpu')"
        )

    call.def_abstract_eval(shaped)
    call.def_impl(at_once)
    batching.primitive_batchers[call] = batched
    mlir.register_lowering(call, lowered, platform="cpu")
    mlir.register_lowering(call, refused)
    return call
