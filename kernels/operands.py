"""The operands of a product: of whatever library, as arrays of one dtype and in one place, whose shapes fit."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from semiring.algebra.conversion import conversions, widened, written_as
from semiring.algebra.definition import Semiring
from semiring.algebra.domain import PIECE, pieces
from semiring.algebra.errors import DTypeError, SemiringError, ShapeError
from semiring.algebra.exchange import Borrowed, borrowed, lends_memory
from semiring.algebra.namespace import namespace, on_gpu
from semiring.kernels.devices import is_gpu

__all__ = ["apart", "arrays_of", "dtypes_of", "elements", "leading_axes", "matching", "operand"]

Array = np.ndarray[Any, Any]
Dtypes = tuple[np.dtype[Any], ...]

_array, _dtype = operator.attrgetter("array"), operator.attrgetter("dtype")

_GPU_PIECE = 1 << 22
"""Entries that are converted at once on a GPU, which takes as long to start as for a million."""


def operand(x: Any, semiring: Semiring, name: str) -> tuple[Borrowed, ...]:
    """The components of an operand, or of what the result is put into, where they lie."""
    if semiring.components == 1 and ((type(x) is np.ndarray and x.dtype != object) or on_gpu(x)):
        return (Borrowed(x),)
    given = _components(x, semiring, name)
    if name == "out" and not all(map(lends_memory, given)):
        kinds = ", ".join(type(v).__name__ for v in given)
        raise ShapeError(f"out must be an array, of the shape and dtype of the result; it is {kinds}")
    try:
        parts = tuple(map(borrowed, given))
    except ValueError as error:
        if isinstance(error, SemiringError):
            raise
        raise ShapeError(f"{name} is no array: {error}") from error
    for part, value in zip(arrays_of(parts), given, strict=True):
        if part.dtype == object and part.ndim == 0 and not isinstance(value, np.ndarray):
            what = type(value).__name__
            raise DTypeError(f"{name} is no array but a {what}; pass arrays (a sparse array's .toarray(), its missing entries set to zero)")
    shapes = [part.shape for part in arrays_of(parts)]
    if any(shape != shapes[0] for shape in shapes):
        raise ShapeError(f"the components of {name} have different shapes: {', '.join(map(str, shapes))}")
    return parts


def arrays_of(parts: tuple[Borrowed, ...]) -> tuple[Array, ...]:
    """The arrays as NumPy or CuPy see them."""
    return tuple(map(_array, parts))


def _components(x: Any, semiring: Semiring, name: str) -> tuple[Any, ...]:
    """What the caller passed, one for each component of an element."""
    if semiring.components == 1:
        return (x,)
    if not isinstance(x, tuple | list) or len(x) != semiring.components:
        raise ShapeError(f"{name} must be a tuple of {semiring.components} arrays, one a component of {semiring.name}")
    return tuple(x)


def dtypes_of(left: Dtypes, right: Dtypes, semiring: Semiring) -> Dtypes:
    """The dtypes of the product of operands of these dtypes."""
    common = tuple(widened(_common(x, y)) for x, y in zip(left, right, strict=True))
    if semiring.on_truth_values and common[0].kind in "iu":
        common = (np.dtype(bool),)
    semiring.identities(common)
    return common


def _common(x: np.dtype[Any], y: np.dtype[Any]) -> np.dtype[Any]:
    try:
        return np.result_type(x, y)
    except TypeError as error:
        raise DTypeError(f"a and b have no common dtype: {x} and {y}") from error


def leading_axes(a: tuple[int, ...], b: tuple[int, ...]) -> tuple[tuple[int, ...], bool, bool]:
    """The leading axes of the product, and whether a is a row and b a column."""
    if not a or not b:
        raise ShapeError(f"operands of matmul need at least one axis; got shapes {a} and {b}")
    row, column = len(a) == 1, len(b) == 1
    inner = b[0] if column else b[-2]
    if a[-1] != inner:
        raise ShapeError(f"a of shape {a} and b of shape {b} do not fit: a has {a[-1]} columns and b {inner} rows")
    try:
        batch = np.broadcast_shapes(a[:-2], b[:-2]) if a[:-2] or b[:-2] else ()
    except ValueError:
        raise ShapeError(f"the leading axes of a {a} and b {b} do not broadcast") from None
    return batch, row, column


def matching(parts: tuple[Borrowed, ...], dtypes: Dtypes, shape: tuple[int, ...], name: str, *, exact: bool) -> tuple[Array, ...]:
    """The arrays of `parts`, which have the result's shape and dtypes; `exact` for one that will be written to."""
    for part, dtype in zip(parts, dtypes, strict=True):
        array = part.array
        if array.shape != shape:
            raise ShapeError(f"{name} has shape {array.shape}; the product has {shape}")
        writable = getattr(array.flags, "writeable", True) and not part.constant
        if exact and (array.dtype != dtype or not writable):
            kind = f"{array.dtype}{'' if writable else ', read-only'}"
            raise DTypeError(f"{name} must be a writable array of dtype {dtype}; it is {kind}")
        if exact and array.size and any(step == 0 and length > 1 for step, length in zip(array.strides, array.shape, strict=True)):
            raise ShapeError(f"{name} has entries that share their memory, so that a result has no place there")
        truths = dtype.kind == "b" and array.dtype.kind in "iu"  # if they are 0 and 1
        if not exact and not truths and not np.can_cast(array.dtype, dtype, "same_kind" if dtype.kind == "f" else "safe"):
            raise DTypeError(f"{name} has dtype {array.dtype}, which {dtype} cannot hold; convert it, or a and b")
    return arrays_of(parts)


def elements(
    lent: tuple[Borrowed, ...], dtypes: tuple[np.dtype[Any], ...], semiring: Semiring, name: str, device: str
) -> tuple[Array, ...]:
    """The arrays where and in the dtypes in which the product is computed, ±∞ as it is written there."""
    parts = arrays_of(lent)
    if all(map(on_gpu, parts)) and tuple(map(_dtype, parts)) == dtypes:
        return parts
    kinds = tuple(written_as(p.array.dtype, numbers=p.numbers) for p in lent)
    if kinds != dtypes:
        converted = tuple(namespace(v).empty_like(v, dtype=d) for v, d in zip(parts, dtypes, strict=True))
        for old, new, convert in zip(parts, converted, conversions(semiring, kinds, dtypes), strict=True):
            for piece in pieces(old.shape, _GPU_PIECE if on_gpu(old) else PIECE):

                def where(index: tuple[int, ...], piece: tuple[slice, ...] = piece) -> str:
                    return f"{name}[{', '.join(str(i + (s.start or 0)) for i, s in zip(index, piece, strict=True))}]"

                new[piece] = convert(old[piece], where)
        parts = converted
    if is_gpu(device):
        from semiring.kernels.cuda.transfer import upload

        parts = tuple(v if on_gpu(v) else upload(v) for v in parts)
    return parts


def apart(parts: tuple[Array, ...], work: tuple[Array, ...]) -> tuple[Array, ...]:
    """`parts`, copied where they share memory with what is about to receive c."""
    return tuple(v.copy() if any(namespace(v).may_share_memory(v, w) for w in work) else v for v in parts)
