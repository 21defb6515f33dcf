"""Products in a requested dtype, and products of integers that wrap as NumPy's do, modulo 2 to the number of bits.

The kernels of integers add and multiply in their dtype, so that a product without the check against overflow has NumPy's bits.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from semiring.algebra.definition import Semiring
from semiring.algebra.expression import is_operation
from semiring.arrays.devices import on_gpu
from semiring.common.errors import DTypeError, SemiringError, described
from semiring.execution.operands import arrays_of, dtype_of, operand
from semiring.execution.product import multiply

__all__ = ["multiply_as", "require_overflow"]

_INT8, _UINT8 = np.dtype(np.int8), np.dtype(np.uint8)


def require_overflow(overflow: Any) -> None:
    """Refuse other values of `overflow` than "check" and "wrap"."""
    if not isinstance(overflow, str) or overflow not in ("check", "wrap"):
        raise SemiringError(f"overflow is {described(overflow)}; it must be 'check' or 'wrap'")


def multiply_as(
    a: Any, b: Any, semiring: Semiring, c: Any, out: Any, options: tuple[bool, str, int | None, bool], dtype: Any, overflow: str
) -> Any:
    """Multiply in `dtype`, or by default in the usual one; integers may "wrap". The other arguments are those of `multiply`."""
    kinds = [tuple(map(dtype_of, arrays_of(operand(x, semiring, name)))) for x, name in ((a, "a"), (b, "b"))]
    if overflow == "check":
        return multiply(a, b, semiring, c, out, options, _requested(semiring, kinds, dtype))
    program = semiring.program
    if semiring.components > 1 or not (is_operation(program.add[0], ("add",)) and is_operation(program.mul[0], ("mul",))):
        raise SemiringError(f"overflow='wrap' is for PLUS_TIMES, whose integers wrap as NumPy's; {semiring.name} has no such numbers")
    wanted = np.result_type(kinds[0][0], kinds[1][0]) if dtype is None else _dtype(dtype)
    if wanted.kind not in "iu":
        raise DTypeError(f"overflow='wrap' is for integers, and this product has dtype {wanted}; leave overflow out")
    options = (*options[:3], False)
    if wanted != _INT8:
        return multiply(a, b, semiring, c, out, options, _requested(semiring, kinds, wanted))
    # Bytes wrap alike with and without signs, and there are kernels for bytes without.
    if not all(v is None or ((isinstance(v, np.ndarray) or on_gpu(v)) and v.dtype == _INT8) for v in (a, b, c, out)):
        raise DTypeError("overflow='wrap' in int8 takes int8 arrays of NumPy or CuPy alone; pass dtype='int16', or convert them")
    left, right, old, into = [None if v is None else v.view(_UINT8) for v in (a, b, c, out)]
    found = multiply(left, right, semiring, old, into, options)
    return found.view(_INT8) if out is None else out


def _dtype(dtype: Any) -> np.dtype[Any]:
    try:
        found: np.dtype[Any] = np.dtype(dtype)
    except TypeError:
        raise DTypeError(f"dtype is {described(dtype)}; it must be a dtype, such as 'int32'") from None
    return found


def _requested(semiring: Semiring, kinds: list[tuple[np.dtype[Any], ...]], dtype: Any) -> tuple[np.dtype[Any], ...]:
    """Return the dtypes of the product, which must hold all numbers of the operands."""
    found = semiring.dtypes(_dtype(dtype))
    for name, part in zip("ab", kinds, strict=True):
        for kind, wanted in zip(part, found, strict=True):
            if not np.can_cast(kind, wanted, "safe"):
                raise DTypeError(f"dtype={wanted} cannot hold every number of {name}, of dtype {kind}; convert {name} yourself")
    return found
