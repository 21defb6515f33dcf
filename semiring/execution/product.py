"""The executor of products: what follows from the operands' shapes and dtypes, the checks of their numbers, and the engine's work."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy as np

from semiring.algebra.definition import Semiring
from semiring.algebra.errors import LawError
from semiring.algebra.laws import selective_counterexample
from semiring.algebra.namespace import namespace, on_gpu
from semiring.kernels.engine import Engine
from semiring.kernels.operands import apart, dtypes_of, leading_axes
from semiring.kernels.room import ALWAYS_FITS
from semiring.kernels.statistics import ValueStatistics, begin_look
from semiring.planning import Plan

__all__ = ["Form", "compute", "copy", "product_form"]

Arrays = tuple[Any, ...]

_prepared: set[tuple[str, tuple[np.dtype[Any], ...]]] = set()
"""GPUs, and dtypes of which numbers have been looked at there."""


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
    alone: bool = False,
) -> None:
    """The product of matrices (or stacks of them) of one dtype that lie where it is computed, once numbers are checked.

    It is written to `work`, and its witness to `via`, of the full shape. `alone` says that these are matrices on a GPU of which the
    result shares nothing with the others.
    """
    engine: Any = how.engine()
    operands = (left, right) if old is None else (left, right, old)
    if not how.gpu:
        engine.signed, engine.statistics = how.checks.look(operands, how.problem.threads, refuse=check)
    elif check:
        if old is None and (how.device, form.dtypes) not in _prepared:
            _prepare(how, form, left, right, work, via)
        engine.signed, engine.statistics = how.checks.look(operands)
    else:
        engine.asynchronous = True
    if via is not None and how.gpu:
        via.data.memset_async(0xFF, via.nbytes)  # −1 everywhere, without a kernel
    elif via is not None:
        via.fill(-1)
    if not (alone and engine.multiply_again(left[0], right[0], work[0], via)):
        _multiply(engine, form, left, right, old, work, via)


def _prepare(how: Plan, form: Form, left: Arrays, right: Arrays, work: Arrays, via: Any) -> None:
    """At the first look at numbers of some dtypes on a GPU, compile the kernels for that and for the product side by side."""
    from semiring.kernels.cuda.loading import rehearse

    _prepared.add((how.device, form.dtypes))
    if how.problem.result_bytes > ALWAYS_FITS:
        return
    # The result may lie where an operand does, and more than kernels may write there.
    empty_like = namespace(work[0]).empty_like
    given = tuple(map(empty_like, work)), None if via is None else empty_like(via)

    def launched() -> None:
        begin_look((*left, *right))
        engine = how.engine()
        engine.statistics = ValueStatistics((0.0, 1.0))  # as most are
        _multiply(engine, form, left, right, None, *given)

    rehearse(launched)


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
