"""The executor of products: operands, checks of their numbers, and the engine's work.

The operands of a product: of whatever library, as arrays of one dtype and in one place, whose shapes fit.

The executor of products: what follows from the operands' shapes and dtypes, the checks of their numbers, and the engine's work.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from semiring.algebra.definition import Semiring
from semiring.arrays.conversion import conversions, widened, written_as
from semiring.arrays.cuda_stream import Strided, empty_beside
from semiring.arrays.devices import is_gpu, namespace, on_gpu
from semiring.arrays.exchange import Borrowed, borrowed, lends_memory
from semiring.arrays.pieces import CACHE, GPU, pieces
from semiring.common.errors import DTypeError, SemiringError, ShapeError
from semiring.kernels.cuda.elements import clear_paths, zeros
from semiring.kernels.engine import Engine
from semiring.kernels.overflow.statistics import flag_signs
from semiring.planning import Plan

__all__ = [
    "WITNESS", "Form", "Launched", "apart", "arrays_of", "compute", "compute_again", "copy", "dtypes_of", "elements", "launched_before",
    "leading_axes", "matching", "operand", "product_form",
]  # fmt: skip

Array = np.ndarray[Any, Any]
Dtypes = tuple[np.dtype[Any], ...]

_array, _dtype = operator.attrgetter("array"), operator.attrgetter("dtype")


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
            for piece in pieces(old.shape, GPU if on_gpu(old) else CACHE):

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


Arrays = tuple[Any, ...]

WITNESS = np.dtype(np.int32)


class Form(NamedTuple):
    """What a product is by the shapes and dtypes of its operands alone.

    Attributes
    ----------
    dtypes : tuple of numpy.dtype
    shape, full : tuple of int
        Of the result, and of the same with a row or a column where an operand has one axis.
    batch : tuple of int
        Leading axes.
    depth : int
        Length of the sums.
    row, column : bool
        Whether a is a row, and b a column.
    kept : bool
        Whether the operands have the dtypes of the product.
    """

    dtypes: tuple[np.dtype[Any], ...]
    shape: tuple[int, ...]
    full: tuple[int, ...]
    batch: tuple[int, ...]
    depth: int
    row: bool
    column: bool
    kept: bool


@functools.lru_cache(maxsize=1024)
def product_form(
    semiring: Semiring,
    a: tuple[int, ...],
    kinds_a: tuple[np.dtype[Any], ...],
    b: tuple[int, ...],
    kinds_b: tuple[np.dtype[Any], ...],
    witness: bool,
) -> Form:
    """The form of the product of operands of these shapes and dtypes.

    Raises
    ------
    ShapeError, DTypeError, LawError
        Where there is no such product, or no witness of it.
    """
    if witness:
        semiring.require_selective()
    batch, row, column = leading_axes(a, b)
    m, n, dtypes = a[-2:-1], () if column else b[-1:], dtypes_of(kinds_a, kinds_b, semiring)
    full = *batch, *(m or (1,)), *(n or (1,))
    return Form(dtypes, (*batch, *m, *n), full, batch, a[-1], row, column, kinds_a == kinds_b == dtypes)


def copy(source: Any, target: Any) -> None:
    """target ← source, on one device."""
    if on_gpu(target):
        from semiring.kernels.cuda.blocks import copy_into

        copy_into(source, target)
    else:
        target[...] = source


def compute(
    how: Plan,
    form: Form,
    left: Arrays,
    right: Arrays,
    old: Arrays | None,
    work: Arrays,
    via: Any,
    *,
    check: bool,
    own: bool,
) -> None:
    """The product of matrices (or stacks of them) of one dtype that lie where it is computed.

    It is written to `work`, and its witness to `via`, of the full shape: once numbers are checked, or before if `work` is our own.
    """
    operands = (left, right) if old is None else (left, right, old)
    if not how.gpu:
        engine: Any = how.engine()
        engine.signed, engine.statistics = how.checks.run(operands, how.problem.threads, refuse=check)
        if via is not None:
            via.fill(-1)
        _multiply(engine, form, left, right, old, work, via)
        return
    from semiring.kernels.cuda.compiler import rehearsing, run

    def launch() -> Callable[[], object]:
        engine = _gpu_engine(how, form)
        judge = _begin_checks(how, engine.signs, [v for part in operands for v in part], lambda: operands, check=check)
        if not (own or rehearsing()):
            judge()
        if via is not None:
            clear_paths(via.data.ptr, via.size)
        _multiply(engine, form, left, right, old, work, via)
        return judge

    judge = run(launch, launch)
    if own:
        judge()


class Launched(NamedTuple):
    """A product of matrices that was launched on a GPU before, and can be again where operands lie alike.

    Attributes
    ----------
    how : Plan
    form : Form
    launches : list
        See `CudaEngine.launches`.
    """

    how: Plan
    form: Form
    launches: list[tuple[Any, int | None]]


def launched_before(form: Form, how: Plan, left: Strided, right: Strided) -> Launched | None:
    """What was launched for the product of such matrices, where that needs neither copies nor conversions."""
    launches = _gpu_engine(how, form).launches(left, right, witness=how.paths)
    return None if launches is None else Launched(how, form, launches)


def compute_again(known: Launched, a: Any, b: Any, left: Strided, right: Strided, *, check: bool) -> tuple[Any, Any]:
    """The product of two matrices on the current GPU, and its witness or None, in new arrays of their library.

    `left` and `right` tell where the matrices lie.
    """
    how, form, launches = known
    values, into = empty_beside(a, form.shape, form.dtypes[0])
    via, into_via = empty_beside(a, form.shape, WITNESS) if how.paths else (None, 0)
    signs: Any = None if launches[0][1] is None else zeros(1)
    judge = _begin_checks(how, signs, (left, right), lambda: ((borrowed(a).array,), (borrowed(b).array,)), check=check)
    if via is not None:
        clear_paths(into_via, math.prod(form.shape))
    own = left.address, right.address, into, right.address, into_via, 0
    for launch, signed in launches:
        launch.start(own, (0, 0) if signed is None else (signs.data.ptr, signed))
    judge()
    return values, via


def _gpu_engine(how: Plan, form: Form) -> Any:
    """An engine that waits for nothing: what a product depends on of its operands' numbers, the GPU tells itself."""
    engine: Any = how.engine()
    engine.asynchronous = True
    engine.expect_signs(*form.full[-2:], form.depth)
    return engine


def _begin_checks(
    how: Plan, signs: Any, given: Sequence[Any], operands: Callable[[], Sequence[Arrays]], *, check: bool
) -> Callable[[], object]:
    """Launch the checks of operands on the GPU, if they are wanted; what this returns waits, and refuses."""
    if check and how.checks.needed:
        return how.checks.begin(given, operands, signs)
    if signs is not None:
        flag_signs(given, signs)
    return _nothing


def _nothing() -> None:
    """Nothing is to be waited for."""


def _multiply(
    engine: Engine,
    form: Form,
    left: Arrays,
    right: Arrays,
    old: Arrays | None,
    work: Arrays,
    via: Any,
) -> None:
    full = form.full
    if form.row:
        left = tuple(v[None, :] for v in left)
    if form.column:
        right = tuple(v[:, None] for v in right)
    if old is not None:
        left, right = (apart(x, work) for x in (left, right))
        old = apart(old, work) if len(old) > 1 else old
        for w, v in zip(work, old, strict=True):
            copy(v.reshape(full), w)
    if form.batch:  # broadcast_to takes as long as a small product
        xp = namespace(left[0])
        left, right = (tuple(xp.broadcast_to(v, (*form.batch, *v.shape[-2:])) for v in x) for x in (left, right))
    A, B = engine.load(left, owned=False), engine.load(right, owned=False)
    if old is None:
        C = engine.blank(work, via)
        engine.multiply(A, B, C)
    else:
        C = engine.load(work, via)
        engine.multiply_add(A, B, C)
    engine.store(C, work)
