"""Operands and result of a product: form (shapes and dtypes), components as arrays, and the arrays that are written."""

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
from semiring.arrays.exchange import Borrowed, Restorer, borrowed, graph_library, lends_memory
from semiring.arrays.pieces import CACHE, GPU, pieces
from semiring.common.errors import DTypeError, SemiringError, ShapeError, with_article

__all__ = [
    "WITNESS", "Arrays", "DTypes", "Lent", "Places", "ProductForm", "Shape", "arrays_of", "broadcast", "common_dtypes", "dtype_of",
    "dtypes_of", "elements", "flattened", "form_of", "leading_axes", "matching", "operand", "places_for", "promoted",
    "require_one_place", "restorer_of",
]  # fmt: skip

Arrays = tuple[Any, ...]
DTypes = tuple[np.dtype[Any], ...]
Shape = tuple[int, ...]

Lent = tuple[Borrowed, ...]
"""The components of an operand in the caller's memory."""

Places = tuple[Arrays, Any]
"""Arrays to be written: those for the components of a product, and the array for the witness (or None)."""

WITNESS = np.dtype(np.int32)
"""The dtype of a witness (the winning k)."""

_READ_ONCE = 1 << 17
"""Bytes of operands from which reading them twice is too slow."""

dtype_of = operator.attrgetter("dtype")
_array = operator.attrgetter("array")


class ProductForm(NamedTuple):
    """Form of a product, by the shapes and dtypes of its operands alone.

    `shape` is the shape of the result; `full` has an axis of length 1 more for each vector (`row`: a, `column`: b). `batch` has the leading
    axes, and `depth` is the length of the sums. The operands have the dtypes of the product if `kept`, and should be read only once if
    `large`.
    """

    dtypes: DTypes
    shape: Shape
    full: Shape
    batch: Shape
    depth: int
    row: bool
    column: bool
    kept: bool
    large: bool


@functools.lru_cache(maxsize=1024)
def form_of(
    semiring: Semiring, a: Shape, kinds_a: DTypes, b: Shape, kinds_b: DTypes, witness: bool, dtypes: DTypes | None = None
) -> ProductForm:
    """Return the form of the product of operands of these shapes and dtypes, in the common dtypes unless others are given.

    ShapeError and DTypeError are raised if the operands have no product, LawError if the product has no witness.
    """
    if witness:
        semiring.require_selective()
    batch, row, column = leading_axes(a, b)
    m, n, dtypes = a[-2:-1], () if column else b[-1:], dtypes or common_dtypes(kinds_a, kinds_b, semiring)
    full = *batch, *(m or (1,)), *(n or (1,))
    large = (math.prod(a) + math.prod(b)) * sum([d.itemsize for d in dtypes]) > _READ_ONCE
    return ProductForm(dtypes, (*batch, *m, *n), full, batch, a[-1], row, column, kinds_a == kinds_b == dtypes, large)


def leading_axes(a: Shape, b: Shape) -> tuple[Shape, bool, bool]:
    """Return the leading axes of the product, ``a is a row`` and ``b is a column``."""
    if not a or not b:
        raise ShapeError(f"operands of matmul need at least one axis; got shapes {a} and {b}")
    row, column = len(a) == 1, len(b) == 1
    inner = b[0] if column else b[-2]
    if a[-1] != inner:
        raise ShapeError(f"a of shape {a} and b of shape {b} do not fit: a has {a[-1]} columns and b {inner} rows")
    try:
        batch = broadcast(a[:-2], b[:-2])
    except ValueError:
        raise ShapeError(f"the leading axes of a {a} and b {b} do not broadcast") from None
    return batch, row, column


def broadcast(*shapes: Shape) -> Shape:
    """Return `numpy.broadcast_shapes` also of lengths that PyTorch's compiler knows by name alone, or raise ValueError.

    >>> broadcast((3, 1), (4,), ())
    (3, 4)
    """
    longest, found = max(map(len, shapes)), []
    for axes in zip(*((1,) * (longest - len(shape)) + shape for shape in shapes), strict=True):
        length = next((n for n in axes if n != 1), 1)
        if any(n != 1 and n != length for n in axes):
            raise ValueError(f"shapes {shapes} do not broadcast")
        found.append(length)
    return tuple(found)


def common_dtypes(left: DTypes, right: DTypes, semiring: Semiring) -> DTypes:
    """Return the dtypes of a product of operands of these dtypes."""
    common = tuple(widened(_common(x, y)) for x, y in zip(left, right, strict=True))
    if semiring.on_truth_values and common[0].kind in "iu":
        common = (np.dtype(bool),)
    semiring.identities(common)
    return common


def _common(x: np.dtype[Any], y: np.dtype[Any]) -> np.dtype[Any]:
    try:
        return np.result_type(x, y)
    except TypeError as error:
        raise DTypeError(f"the operands have no common dtype: {x} and {y}") from error


def operand(x: Any, semiring: Semiring, name: str) -> Lent:
    """Return the components of an operand (or of `out`) in the caller's memory."""
    if semiring.components == 1 and ((type(x) is np.ndarray and x.dtype != object) or on_gpu(x)):
        return (Borrowed(x),)
    if semiring.components == 1:
        given = (x,)
    elif isinstance(x, tuple | list) and len(x) == semiring.components:
        given = tuple(x)
    else:
        raise ShapeError(f"{name} must be a tuple of {semiring.components} arrays, one for each component of {semiring.name}")
    if name == "out" and not all(map(lends_memory, given)):
        kinds = ", ".join(type(v).__name__ for v in given)
        raise ShapeError(f"out must be an array, of the shape and dtype of the result; it is {kinds}")
    if library := next(filter(None, map(graph_library, given)), None):
        raise DTypeError(f"{name} is a graph of {library}; pass its matrix, with the semiring's zero for absent edges")
    try:
        parts = tuple(map(borrowed, given))
    except ValueError as error:
        if isinstance(error, SemiringError) and not isinstance(error, ShapeError):
            raise
        raise ShapeError(f"{name} is no array: {error}") from error
    arrays = arrays_of(parts)
    for array, value in zip(arrays, given, strict=True):
        if array.dtype == object and array.ndim == 0 and not isinstance(value, np.ndarray):
            what = with_article(type(value).__name__)
            raise DTypeError(f"{name} is no array but {what}; pass arrays (a sparse array's .toarray(), its missing entries set to zero)")
    shapes = [array.shape for array in arrays]
    if any(shape != shapes[0] for shape in shapes):
        raise ShapeError(f"the components of {name} have different shapes: {', '.join(map(str, shapes))}")
    return parts


def arrays_of(parts: Lent) -> Arrays:
    """Return arrays as NumPy or CuPy sees them."""
    return tuple(map(_array, parts))


def matching(parts: Lent, dtypes: DTypes, shape: Shape, name: str, *, exact: bool) -> Arrays:
    """Return the arrays of c or `out`, which must match the result; `exact` for arrays that will be written."""
    for part, dtype in zip(parts, dtypes, strict=True):
        array = part.array
        if array.shape != shape:
            raise ShapeError(f"{name} has shape {array.shape}; the product has {shape}")
        writable = getattr(array.flags, "writeable", True) and not part.constant
        if exact and (array.dtype != dtype or not writable):
            kind = f"{array.dtype}{'' if writable else ', read-only'}"
            raise DTypeError(f"{name} must be a writable array of dtype {dtype}; it is {kind}")
        if exact and array.size and any(step == 0 and length > 1 for step, length in zip(array.strides, array.shape, strict=True)):
            raise ShapeError(f"{name} has entries that share their memory, so a result cannot be written; pass a copy")
        truths = dtype.kind == "b" and array.dtype.kind in "iu"  # 0 and 1; other numbers are refused when they are read
        if not exact and not truths and not np.can_cast(array.dtype, dtype, "same_kind" if dtype.kind == "f" else "safe"):
            raise DTypeError(f"{name} has dtype {array.dtype}, which {dtype} cannot hold; convert {name}, or a and b")
    return arrays_of(parts)


def elements(lent: Lent, dtypes: DTypes, semiring: Semiring, name: str, device: str) -> Arrays:
    """Convert arrays to the dtypes of a computation (with the ±∞ of these dtypes), and copy arrays of the host to its GPU."""
    parts = arrays_of(lent)
    if all(map(on_gpu, parts)) and tuple(map(dtype_of, parts)) == dtypes:
        return parts
    kinds = tuple(written_as(p.array.dtype, numbers=p.numbers) for p in lent)
    if kinds != dtypes:
        converted = tuple(namespace(v).empty_like(v, dtype=d) for v, d in zip(parts, dtypes, strict=True))
        for old, new, convert in zip(parts, converted, conversions(semiring, kinds, dtypes), strict=True):
            for piece in pieces(old.shape, GPU if on_gpu(old) else CACHE):

                def where(index: Shape, piece: tuple[slice, ...] = piece) -> str:
                    return f"{name}[{', '.join(str(i + (s.start or 0)) for i, s in zip(index, piece, strict=True))}]"

                new[piece] = convert(old[piece], where)
        parts = converted
    if is_gpu(device):
        from semiring.kernels.cuda.blocks import upload

        parts = tuple(v if on_gpu(v) else upload(v) for v in parts)
    return parts


def flattened(operands: Sequence[Any]) -> list[Any]:
    """List the components of all operands as the caller passed them."""
    return [v for x in operands for v in (x if isinstance(x, tuple | list) else (x,))]


def require_one_place(
    a: Lent, b: Lent, c: Lent, old: Arrays | None, target: Arrays | None, *, there: bool, names: Sequence[str] = "abc"
) -> None:
    """Refuse operands on different devices; on a GPU (`there`), arrays of NumPy are copied."""
    if target is not None and any(on_gpu(v) != there for v in target):
        raise ShapeError(f"out must be {'on the GPU, like an operand' if there else 'on the host, like the operands'}")
    if old is not None and not there and any(map(on_gpu, old)):
        raise ShapeError("c is on a GPU and the operands are on the host; copy all to one device")
    for name, lent in zip(names, (a, b, c), strict=True):
        if there and any(p.restore is not None and not on_gpu(p.array) for p in lent):
            raise ShapeError(f"{name} is on the host and another operand on a GPU; only NumPy arrays are copied, so copy {name} yourself")


def dtypes_of(operands: Sequence[Lent], semiring: Semiring) -> DTypes:
    """Return the common dtypes of several operands, or the dtypes that compute a single one."""
    kinds = list(dict.fromkeys(tuple(map(dtype_of, arrays_of(part))) for part in operands))
    return functools.reduce(lambda x, y: common_dtypes(x, y, semiring), kinds[1:] or kinds, kinds[0])


def promoted(operands: Sequence[Any], semiring: Semiring) -> tuple[list[Any], list[Shape]]:
    """Convert the arrays of a chain to common dtypes, each in its library and on its device; return the shapes too."""
    lent = [operand(x, semiring, f"arrays[{i}]") for i, x in enumerate(operands)]
    shapes = [part[0].array.shape for part in lent]
    for i, shape in enumerate(shapes):
        if len(shape) < (1 if i in (0, len(shapes) - 1) else 2):
            raise ShapeError(f"arrays[{i}] of shape {shape} is no matrix; only the first and the last of a chain may be vectors")
    dtypes, found = dtypes_of(lent, semiring), list(operands)
    for i, part in enumerate(lent):
        if tuple(map(dtype_of, arrays_of(part))) != dtypes or any(p.numbers for p in part):
            parts = elements(part, dtypes, semiring, f"arrays[{i}]", "cpu")
            restored = tuple(v if p.restore is None else p.restore(v) for v, p in zip(parts, part, strict=True))
            found[i] = restored if semiring.components > 1 else restored[0]
    return found, shapes


def restorer_of(operands: Lent) -> Restorer | None:
    """Return the restorer of the first operand that is not NumPy's; None if all operands are NumPy's.

    A result in the caller's `out` is restored too, because the stream of its library then waits for the result.
    """
    for p in operands:
        if p.restore is not None or (type(p.array) is not np.ndarray and on_gpu(p.array)):
            return p.restore
    return None


def places_for(form: ProductForm, witness: bool, into: Arrays | None, restore: Restorer | None, xp: Any) -> tuple[Places | None, Places]:
    """Return arrays of the full shape for a product and its witness: as made by the caller's library (or None), and as they are written.

    The product is written to `into` if that array is contiguous.
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
