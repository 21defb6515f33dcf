"""The executor of products: what follows from the operands' shapes and dtypes, the checks of their numbers, and the engine's work."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from semiring.algebra.definition import Semiring
from semiring.algebra.errors import LawError
from semiring.algebra.exchange import Strided, borrowed, empty_beside
from semiring.algebra.laws import selective_counterexample
from semiring.algebra.namespace import namespace, on_gpu
from semiring.kernels.cuda.conversion import clear_paths, zeros
from semiring.kernels.engine import Engine
from semiring.kernels.operands import apart, dtypes_of, leading_axes
from semiring.kernels.statistics import tell_signs
from semiring.planning import Plan

__all__ = ["WITNESS", "Form", "Launched", "compute", "compute_again", "copy", "launched_before", "product_form"]

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
    if witness and (found := selective_counterexample(semiring)) is not None:
        x, y, z = found
        raise LawError(f"{semiring.name} has no witness: ⊕ is not selective ({x!r} ⊕ {y!r} = {z!r}), so no single k wins")
    batch, row, column = leading_axes(a, b)
    m, n, dtypes = a[-2:-1], () if column else b[-1:], dtypes_of(kinds_a, kinds_b, semiring)
    full = *batch, *(m or (1,)), *(n or (1,))
    return Form(dtypes, (*batch, *m, *n), full, batch, a[-1], row, column, kinds_a == kinds_b == dtypes)


def copy(source: Any, target: Any) -> None:
    """target ← source, on one device."""
    if on_gpu(target):
        from semiring.kernels.cuda.rows import move

        move(source, target)
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
        engine.signed, engine.statistics = how.checks.look(operands, how.problem.threads, refuse=check)
        if via is not None:
            via.fill(-1)
        _multiply(engine, form, left, right, old, work, via)
        return
    from semiring.kernels.cuda.loading import rehearsing, run

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
    """Let the GPU look at the operands, if that is wanted; what this returns waits, and refuses."""
    if check and how.checks.needed:
        return how.checks.begin(given, operands, signs)
    if signs is not None:
        tell_signs(given, signs)
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
