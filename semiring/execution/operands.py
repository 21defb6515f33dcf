"""The operands of a product: form, components as arrays, and output."""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from semiring.algebra.definition import Semiring
from semiring.arrays.conversion import conversions, widened, written_as
from semiring.arrays.devices import is_gpu, namespace, on_gpu
from semiring.arrays.exchange import Borrowed, Restorer, borrowed, lends_memory
from semiring.arrays.pieces import CACHE, GPU, pieces
from semiring.common.errors import DTypeError, SemiringError, ShapeError, with_article
from semiring.graphs.array_like import graph_library

__all__ = [
    "WITNESS", "Arrays", "Places", "ProductForm", "arrays_of", "common_dtypes", "dtype_of", "elements", "flattened", "form_of",
    "matching", "operand", "places_for", "promoted", "require_one_place", "restorer_of",
]  # fmt: skip

Arrays = tuple[Any, ...]
DTypes = tuple[np.dtype[Any], ...]

Places = tuple[Arrays, Any]
"""Output of a product: an array for each component, and the witness or None."""

WITNESS = np.dtype(np.int32)
"""The dtype of a witness, the k that won."""

_READ_ONCE = 1 << 17
"""Bytes of operands that are not read twice."""

dtype_of = operator.attrgetter("dtype")
_array = operator.attrgetter("array")


# What a product is by shapes and dtypes alone.


class ProductForm(NamedTuple):
    """The form of a product, from the shapes and dtypes of its operands.

    Attributes
    ----------
    dtypes : tuple of numpy.dtype
    shape, full : tuple of int
        The shape of the result, and the same with a row or a column for operands of one axis.
    batch : tuple of int
        Leading axes.
    depth : int
        Length of the sums.
    row, column : bool
        True if a is a row, or b a column.
    kept : bool
        True if the operands have the dtypes of the product.
    large : bool
        True for operands that are too large to be read twice.
    """

    dtypes: DTypes
    shape: tuple[int, ...]
    full: tuple[int, ...]
    batch: tuple[int, ...]
    depth: int
    row: bool
    column: bool
    kept: bool
    large: bool


@functools.lru_cache(maxsize=1024)
def form_of(
    semiring: Semiring,
    a: tuple[int, ...],
    kinds_a: DTypes,
    b: tuple[int, ...],
    kinds_b: DTypes,
    witness: bool,
) -> ProductForm:
    """The form of the product of operands of these shapes and dtypes.

    Raises
    ------
    ShapeError, DTypeError, LawError
        Where there is no such product, or no witness of it.
    """
    if witness:
        semiring.require_selective()
    batch, row, column = _leading_axes(a, b)
    m, n, dtypes = a[-2:-1], () if column else b[-1:], common_dtypes(kinds_a, kinds_b, semiring)
    full = *batch, *(m or (1,)), *(n or (1,))
    large = (math.prod(a) + math.prod(b)) * sum([d.itemsize for d in dtypes]) > _READ_ONCE
    return ProductForm(dtypes, (*batch, *m, *n), full, batch, a[-1], row, column, kinds_a == kinds_b == dtypes, large)


def _leading_axes(a: tuple[int, ...], b: tuple[int, ...]) -> tuple[tuple[int, ...], bool, bool]:
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


def common_dtypes(left: DTypes, right: DTypes, semiring: Semiring) -> DTypes:
    """The dtypes of the product of operands of these dtypes."""
    common = tuple(widened(_common(x, y)) for x, y in zip(left, right, strict=True))
    if semiring.on_truth_values and common[0].kind in "iu":
        common = (np.dtype(bool),)
    semiring.identities(common)
    return common


def _common(x: np.dtype[Any], y: np.dtype[Any]) -> np.dtype[Any]:
    """The dtype that one component of both operands is promoted to."""
    try:
        return np.result_type(x, y)
    except TypeError as error:
        raise DTypeError(f"the operands have no common dtype: {x} and {y}") from error


# What the caller passed, as arrays.


def operand(x: Any, semiring: Semiring, name: str) -> tuple[Borrowed, ...]:
    """The components of an operand, or of what the result is put into, where they lie."""
    if semiring.components == 1 and ((type(x) is np.ndarray and x.dtype != object) or on_gpu(x)):
        return (Borrowed(x),)
    given = _components(x, semiring, name)
    if name == "out" and not all(map(lends_memory, given)):
        kinds = ", ".join(type(v).__name__ for v in given)
        raise ShapeError(f"out must be an array, of the shape and dtype of the result; it is {kinds}")
    if library := next(filter(None, map(graph_library, given)), None):
        raise DTypeError(f"{name} is a graph of {library}; pass its matrix, with the semiring's zero where there is no edge")
    try:
        parts = tuple(map(borrowed, given))
    except ValueError as error:
        if isinstance(error, SemiringError) and not isinstance(error, ShapeError):
            raise
        raise ShapeError(f"{name} is no array: {error}") from error
    for part, value in zip(arrays_of(parts), given, strict=True):
        if part.dtype == object and part.ndim == 0 and not isinstance(value, np.ndarray):
            what = with_article(type(value).__name__)
            raise DTypeError(f"{name} is no array but {what}; pass arrays (a sparse array's .toarray(), its missing entries set to zero)")
    shapes = [part.shape for part in arrays_of(parts)]
    if any(shape != shapes[0] for shape in shapes):
        raise ShapeError(f"the components of {name} have different shapes: {', '.join(map(str, shapes))}")
    return parts


def _components(x: Any, semiring: Semiring, name: str) -> tuple[Any, ...]:
    if semiring.components == 1:
        return (x,)
    if not isinstance(x, tuple | list) or len(x) != semiring.components:
        raise ShapeError(f"{name} must be a tuple of {semiring.components} arrays, one a component of {semiring.name}")
    return tuple(x)


def arrays_of(parts: tuple[Borrowed, ...]) -> Arrays:
    """The arrays as NumPy or CuPy see them."""
    return tuple(map(_array, parts))


def matching(parts: tuple[Borrowed, ...], dtypes: DTypes, shape: tuple[int, ...], name: str, *, exact: bool) -> Arrays:
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
            raise ShapeError(f"{name} has entries that share memory, so it cannot hold a result")
        truths = dtype.kind == "b" and array.dtype.kind in "iu"  # if they are 0 and 1
        if not exact and not truths and not np.can_cast(array.dtype, dtype, "same_kind" if dtype.kind == "f" else "safe"):
            raise DTypeError(f"{name} has dtype {array.dtype}, which {dtype} cannot hold; convert it, or a and b")
    return arrays_of(parts)


def elements(lent: tuple[Borrowed, ...], dtypes: DTypes, semiring: Semiring, name: str, device: str) -> Arrays:
    """Bring components to the device and the dtypes of the product, with ±∞ as written in these dtypes."""
    parts = arrays_of(lent)
    if all(map(on_gpu, parts)) and tuple(map(dtype_of, parts)) == dtypes:
        return parts
    kinds = tuple(written_as(p.array.dtype, numbers=p.numbers) for p in lent)
    if kinds != dtypes:
        converted = tuple(namespace(v).empty_like(v, dtype=d) for v, d in zip(parts, dtypes, strict=True))
        for old, new, convert in zip(parts, converted, conversions(semiring, kinds, dtypes), strict=True):
            for piece in pieces(old.shape, GPU if on_gpu(old) else CACHE):

                def where(index: tuple[int, ...], piece: tuple[slice, ...] = piece) -> str:
                    return f"{name}[{', '.join(str(i + (s.start or 0)) for i, s in zip(index, piece, strict=True))}]"

                new[piece] = convert(old[piece], where)
        parts = converted
    if is_gpu(device):
        from semiring.kernels.cuda.transfer import upload

        parts = tuple(v if on_gpu(v) else upload(v) for v in parts)
    return parts


def flattened(operands: Sequence[Any]) -> list[Any]:
    """The components of operands as the caller passed them."""
    return [v for x in operands for v in (x if isinstance(x, tuple | list) else (x,))]


def require_one_place(
    a: tuple[Borrowed, ...],
    b: tuple[Borrowed, ...],
    c: tuple[Borrowed, ...],
    old: tuple[Any, ...] | None,
    target: tuple[Any, ...] | None,
    *,
    there: bool,
    names: Sequence[str] = "abc",
) -> None:
    """Refuse operands on a GPU and on the host together, except for NumPy's."""
    if target is not None and any(on_gpu(v) != there for v in target):
        raise ShapeError(f"out must lie {'on the GPU, as an operand does' if there else 'on the host, as the operands do'}")
    if old is not None and not there and any(map(on_gpu, old)):
        raise ShapeError("c lies on a GPU and the operands on the host; bring both to one device")
    for name, lent in zip(names, (a, b, c), strict=True):
        if there and any(p.restore is not None and not on_gpu(p.array) for p in lent):
            raise ShapeError(
                f"{name} lies on the host and another operand on a GPU, where only NumPy's go unasked; bring them to one device"
            )


def promoted(operands: Sequence[Any], semiring: Semiring) -> tuple[list[Any], list[tuple[int, ...]]]:
    """Convert operands to a common dtype, in place and library, and return them with their shapes.

    Raises
    ------
    ShapeError
        For an operand without an axis, or an inner operand that is not a matrix.
    """
    lent = [operand(x, semiring, f"arrays[{i}]") for i, x in enumerate(operands)]
    shapes = [part[0].array.shape for part in lent]
    for i, shape in enumerate(shapes):
        if len(shape) < (1 if i in (0, len(shapes) - 1) else 2):
            raise ShapeError(f"arrays[{i}] of shape {shape} is no matrix; only the first and the last of a chain may be vectors")
    kinds = [tuple(map(dtype_of, arrays_of(part))) for part in lent]
    dtypes = functools.reduce(lambda x, y: common_dtypes(x, y, semiring), kinds)
    found = list(operands)
    for i, (part, kind) in enumerate(zip(lent, kinds, strict=True)):
        if kind != dtypes or any(p.numbers for p in part):
            parts = elements(part, dtypes, semiring, f"arrays[{i}]", "cpu")
            restored = tuple(v if p.restore is None else p.restore(v) for v, p in zip(parts, part, strict=True))
            found[i] = restored if semiring.components > 1 else restored[0]
    return found, shapes


# Where the result is put.


def restorer_of(operands: tuple[Borrowed, ...]) -> Restorer | None:
    """Return the converter of results to the library of the first operand that is not NumPy's; None for NumPy alone.

    A result in the caller's `out` is converted too, so that the stream of the library waits for it.
    """
    for p in operands:
        if p.restore is not None or (type(p.array) is not np.ndarray and on_gpu(p.array)):
            return p.restore
    return None


def places_for(
    form: ProductForm, witness: bool, into: tuple[Any, ...] | None, restore: Restorer | None, xp: Any
) -> tuple[Places | None, Places]:
    """Return the output of a product and its witness, in the caller's library and in the full shape.

    The product goes to `into`, if the rows of `into` are contiguous.
    """
    wanted = [*(form.dtypes if into is None else ()), *([WITNESS] if witness else ())]
    made = None if restore is None or not restore.here else [restore.empty(form.full, dtype) for dtype in wanted]
    if made is None or any(v is None for v in made):
        made, places = None, [xp.empty(form.full, dtype) for dtype in wanted]
    else:
        places = [borrowed(v).array for v in made]
    if into is None:
        work = tuple(places[: len(form.dtypes)])
    else:
        work = tuple([v.reshape(form.full) if v.flags.c_contiguous else xp.empty(form.full, v.dtype) for v in into])
    via = places[-1] if witness else None
    if made is None:
        return None, (work, via)
    return (tuple(made[: len(form.dtypes)]) if into is None else work, made[-1] if witness else None), (work, via)
