"""Executor of products within functions that JAX traces, such as those of `jax.jit`, `jax.grad` and `jax.vmap`.

A traced array has a shape and a dtype, and no entries yet. The product becomes an operation of JAX, which XLA performs by `arrays.xla`: it
calls `multiply_into`, on the CPU. Derivatives are those of `algorithms.tangents`.
"""

from __future__ import annotations

import functools
import hashlib
import importlib
import sys
from typing import Any, NamedTuple

import numpy as np

from semiring.algebra.definition import Semiring
from semiring.algebra.expression import flat
from semiring.algorithms.tangents import TracedProduct, derivative_with_tangents, tangents_of
from semiring.arrays import xla
from semiring.arrays.exchange import cut_off, name_of, refuse_short_floats
from semiring.common import forks
from semiring.common.errors import DTypeError, GraphError, SemiringError, ShapeError
from semiring.execution.operands import WITNESS, ProductForm, dtype_of, form_of
from semiring.execution.product import multiply_into, with_witness

__all__ = ["multiply_traced"]

_TARGET = "semiring_product"

Options = tuple[bool, str, int | None, bool]


class _Asked(NamedTuple):
    """A product without its operands: `options` are `witness`, `device`, `threads` and `check`."""

    semiring: Semiring
    options: Options

    def form(self, parts: Any) -> ProductForm:
        """Return the form of the product of operands, given by their components."""
        left, right = self.halves(parts)
        kinds = (tuple(map(dtype_of, left)), tuple(map(dtype_of, right)))
        return form_of(self.semiring, left[0].shape, kinds[0], right[0].shape, kinds[1], self.options[0])

    def halves(self, parts: Any) -> tuple[Any, Any]:
        """Return the components of both operands."""
        return tuple(parts[: self.semiring.components]), tuple(parts[self.semiring.components :])


def multiply_traced(a: Any, b: Any, semiring: Semiring, options: Options, *, alone: bool) -> Any:
    """Multiply arrays of a function that JAX traces; arguments are those of `multiply`."""
    if not alone:
        raise GraphError("JAX is tracing a function, in which matmul takes no c, out, mask, dtype, overflow and ties; leave these out")
    if options[1] not in ("auto", "cpu", "reference"):
        raise GraphError(f"JAX is tracing a function, in which matmul computes on the CPU; device is {options[1]!r}")
    asked = _Asked(semiring.marked(False), options if options[1] != "auto" else (options[0], "cpu", *options[2:]))
    parts = [*_components(a, semiring, "a"), *_components(b, semiring, "b")]
    form = asked.form(parts)
    for dtype in form.dtypes:
        if (kept := sys.modules["jax"].dtypes.canonicalize_dtype(dtype)) != dtype:
            raise cut_off(dtype, kept)
    left, right = asked.halves(parts)
    left, right = [x[None, :] for x in left] if form.row else left, [x[:, None] for x in right] if form.column else right
    axes = max(left[0].ndim, right[0].ndim)
    values = list(_function(asked)(*(x.reshape((1,) * (axes - x.ndim) + x.shape) for x in (*left, *right))))
    values = [x.reshape(form.shape) for x in values]
    return with_witness(tuple(values[: semiring.components]), values[-1] if options[0] else None)


def _components(x: Any, semiring: Semiring, name: str) -> list[Any]:
    """Return the components of an operand as arrays of JAX."""
    jax = sys.modules["jax"]
    parts = [x] if semiring.components == 1 else list(x) if isinstance(x, tuple | list) else []
    if len(parts) != semiring.components or len({np.shape(part) for part in parts}) > 1:
        raise ShapeError(f"{name} must be a tuple of {semiring.components} arrays of one shape, one for each component of {semiring.name}")
    for part in parts:
        if not isinstance(part, jax.Array | np.ndarray):
            raise GraphError(f"JAX is tracing a function, and {name} is a {name_of(part)}; pass an array of JAX or NumPy")
        refuse_short_floats(part.dtype)
        if (kept := jax.dtypes.canonicalize_dtype(part.dtype)) != part.dtype:
            raise cut_off(part.dtype, kept)
    return [sys.modules["jax.numpy"].asarray(part) for part in parts]


@functools.lru_cache(maxsize=256)
def _function(asked: _Asked) -> Any:
    """Make a function of JAX with a derivative: from the components of both operands to those of the product, and the witness."""
    jax: Any = sys.modules["jax"]
    number = _number_of(asked)

    product = jax.custom_jvp(lambda *parts: tuple(_primitive().bind(*parts, number=number)))

    def with_tangents(primals: Any, tangents: Any) -> Any:
        semiring, options = asked
        try:
            selects = derivative_with_tangents(semiring).kind == "selected"
        except SemiringError as error:
            raise GraphError(f"JAX differentiates a product, but {error}; pass jax.lax.stop_gradient(…)") from None
        witness = options[0] or selects
        found = _function(asked._replace(options=(witness, *options[1:])))(*primals)
        values, via = found[: semiring.components], found[-1]
        given = [None if _is_zero(t) else t for t in tangents]
        pairs = zip(asked.halves(primals), asked.halves(given), "ab", strict=True)
        (left, of_left), (right, of_right) = (_in_floats(parts, part, values, name) for parts, part, name in pairs)
        result = tangents_of(semiring, TracedProduct(left, right, via if selects else values[0], of_left, of_right))
        no_tangent = [np.zeros(via.shape, jax.dtypes.float0)] if options[0] else []
        return found[: len(values) + len(no_tangent)], (*result, *no_tangent)

    product.defjvp(with_tangents, symbolic_zeros=True)
    return jax.jit(product)


def _is_zero(tangent: Any) -> bool:
    """Return True for the tangent of a constant."""
    jax: Any = sys.modules["jax"]
    return isinstance(tangent, jax.custom_derivatives.SymbolicZero) or tangent.dtype == jax.dtypes.float0


def _in_floats(parts: Any, tangents: Any, values: Any, name: str) -> tuple[list[Any], list[Any]]:
    """Convert components and tangents to the dtypes of the product."""
    for part in parts:
        if part.dtype.kind != "f":
            raise DTypeError(f"JAX differentiates a product, and {name} has dtype {part.dtype}; convert {name} to a dtype of floats")
    converted = [x.astype(v.dtype) for x, v in zip(parts, values, strict=True)]
    return converted, [None if t is None else t.astype(v.dtype) for t, v in zip(tangents, values, strict=True)]


_asked: dict[int, _Asked] = {}
"""Products by their numbers, which compiled functions of JAX contain."""

_numbering = forks.lock()


def _number_of(asked: _Asked) -> int:
    """Return the number of a product: equal in all processes, because JAX can store compiled functions on disk."""
    semiring, options = asked
    program = semiring.program
    text = repr((semiring.name, flat(program.add), flat(program.mul), semiring.zero, semiring.one, repr(semiring.carrier), options))
    number = int.from_bytes(hashlib.blake2b(text.encode(), digest_size=7).digest(), "little")
    with _numbering:
        while _asked.setdefault(number, asked) != asked:
            number += 1
    return number


def _multiply(number: int, parts: xla.Arrays, results: xla.Arrays) -> None:
    """Compute a product when XLA asks for it."""
    if number not in _asked:
        raise GraphError("the compiled function multiplies over a semiring of another process; trace it again")
    asked = _asked[number]
    left, right = asked.halves(parts)
    width = asked.semiring.components
    multiply_into(left, right, asked.semiring, (tuple(results[:width]), results[-1] if asked.options[0] else None), asked.options)


@functools.cache
def _primitive() -> Any:
    """Make the operation of JAX: shapes, batches, and the call by XLA."""
    core, ffi = importlib.import_module("jax.extend.core"), importlib.import_module("jax.ffi")
    batching, mlir = importlib.import_module("jax.interpreters.batching"), importlib.import_module("jax.interpreters.mlir")
    xla.register(_TARGET, _multiply)
    product = core.Primitive(_TARGET)
    product.multiple_results = True

    def shaped(*parts: Any, number: int) -> list[Any]:
        return [sys.modules["jax"].core.ShapedArray(*result) for result in _results(number, parts)]

    def batched(parts: Any, axes: Any, *, number: int) -> Any:
        """Multiply stacks for `jax.vmap`: all operands get one leading axis more."""
        stacks = [x[None] if axis is None else sys.modules["jax.numpy"].moveaxis(x, axis, 0) for x, axis in zip(parts, axes, strict=True)]
        found = product.bind(*stacks, number=number)
        return found, [0] * len(found)

    def at_once(*parts: Any, number: int) -> list[Any]:
        """Multiply arrays with entries, where `jax.disable_jit` is in effect."""
        results = [np.empty(*result) for result in _results(number, parts)]
        _multiply(number, list(map(np.asarray, parts)), results)
        return list(map(sys.modules["jax.numpy"].asarray, results))

    def lowered(context: Any, *operands: Any, number: int) -> Any:
        return ffi.ffi_lowering(_TARGET)(context, *operands, number=np.int64(number))

    def refused(*_: Any, **__: Any) -> Any:
        raise GraphError(
            "within functions that JAX compiles, matmul computes on the CPU alone; on a GPU, call matmul outside of jax.jit, where arrays "
            "stay on the GPU"
        )

    product.def_abstract_eval(shaped)
    product.def_impl(at_once)
    batching.primitive_batchers[product] = batched
    mlir.register_lowering(product, lowered, platform="cpu")
    mlir.register_lowering(product, refused)
    return product


def _results(number: int, parts: Any) -> list[tuple[Any, Any]]:
    """Return shape and dtype of each result."""
    asked = _asked[number]
    form = asked.form(parts)
    return [(form.full, dtype) for dtype in (*form.dtypes, *([WITNESS] if asked.options[0] else []))]
