"""Executor of products: read operands, ask for a plan, check numbers, and multiply with the engine."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any, NamedTuple

import numpy as np

from semiring.algebra.definition import Semiring
from semiring.arrays.devices import namespace, on_device, on_gpu, scratch_memory
from semiring.arrays.exchange import Borrowed, Restorer
from semiring.arrays.memory import ALWAYS_FITS, require_room, with_scratch
from semiring.execution.operands import (
    WITNESS,
    Arrays,
    DTypes,
    Lent,
    Places,
    ProductForm,
    arrays_of,
    dtype_of,
    elements,
    form_of,
    matching,
    operand,
    places_for,
    require_one_place,
    restorer_of,
)
from semiring.kernels.cuda.elements import clear_paths
from semiring.kernels.engine import Block, Engine
from semiring.kernels.overflow.statistics import SMALL, gpu_kernels
from semiring.planning import Plan, Problem, location, plan

__all__ = [
    "Witnessed", "asynchronous_engine", "begin_checks", "in_callers_kind", "matrices_of", "multiply", "multiply_into", "require_gpu_room",
    "with_witness",
]  # fmt: skip

_NOTHING = nullcontext()


class Witnessed(NamedTuple):
    """Product and, for each element, the k that won; `matmul` returns this pair with ``witness=True``.

    Examples
    --------
    >>> import semiring as sr
    >>> product = sr.matmul([[1.0, 2.0]], [[7.0], [5.0]], sr.MIN_PLUS, witness=True)
    >>> product.values, product.witness
    (array([[7.]]), array([[1]], dtype=int32))

    Attributes
    ----------
    values : array, or tuple of arrays for structured elements
    witness : int32 array
        The lowest k with a_ik ⊗ b_kj equal to the element; −1 where no term beat the zero (or c).
    """

    values: Any
    witness: Any


def multiply(
    a: Any, b: Any, semiring: Semiring, c: Any, out: Any, options: tuple[bool, str, int | None, bool], dtypes: DTypes | None = None
) -> Any:
    """Multiply matrices of any library; return the product (and its witness, if wanted) in the caller's kind.

    `options` are `witness`, `device`, `threads` and `check` of `semiring.matmul`, which describes `c` and `out` too. `dtypes` are those of
    the product, by default the common ones of the operands.
    """
    plain = type(a) is type(b) is np.ndarray and c is out is None and semiring.components == 1 and a.dtype.kind != "O" != b.dtype.kind
    lent_a, lent_b = ((Borrowed(a),), (Borrowed(b),)) if plain else (operand(a, semiring, "a"), operand(b, semiring, "b"))
    left, right = ((a,), (b,)) if plain else (arrays_of(lent_a), arrays_of(lent_b))
    witness, device, threads, check = options
    form = form_of(semiring, left[0].shape, tuple(map(dtype_of, left)), right[0].shape, tuple(map(dtype_of, right)), witness, dtypes)
    place = location((*left, *right), device)
    how = plan(Problem("product", semiring, form.dtypes, form.full, form.depth, place, witness, device=device, threads=threads))
    if plain and form.kept and not how.gpu:  # nothing to convert, to move or to restore
        whole, via = np.empty(form.full, form.dtypes[0]), np.empty(form.full, WITNESS) if witness else None
        _compute(how, form, (left, right), ((whole,), via), check=check, own=True)
        product = whole if form.shape == form.full else whole.reshape(form.shape)[()]
        return product if via is None else Witnessed(product, via.reshape(form.shape)[()])
    lent_c = () if c is None else operand(c, semiring, "c")
    lent_out = () if out is None else operand(out, semiring, "out")
    old = matching(lent_c, form.dtypes, form.shape, "c", exact=False) if lent_c else None
    target = matching(lent_out, form.dtypes, form.shape, "out", exact=True) if lent_out else None
    require_one_place(lent_a, lent_b, lent_c, old, target, there=how.problem.there)
    if how.gpu:
        require_gpu_room(how, (*left, *right, *(old or ())), target)
    with on_device(how.device):
        return _execute(how, form, (lent_a, lent_b, lent_c, lent_out), target, out, check=check)


def _execute(how: Plan, form: ProductForm, lent: tuple[Lent, ...], target: Arrays | None, out: Any, *, check: bool) -> Any:
    """Multiply operands that have to be converted, copied to a GPU and back, or made by the caller's library."""
    lent_a, lent_b, lent_c, lent_out = lent
    named = zip("abc", (lent_a, lent_b, lent_c), strict=True)
    given = tuple([elements(x, form.dtypes, how.semiring, name, how.device) for name, x in named if x])
    restore, sent = restorer_of(lent_out or (*lent_a, *lent_b)), how.gpu and not how.problem.there
    into = None if sent else target
    made, places = places_for(form, how.paths, into, None if sent else restore, namespace(given[0][0]))
    with scratch_memory() if how.gpu else _NOTHING:
        _compute(how, form, given, places, check=check, own=into is None)
    values, via = places if made is None else made
    if into is not None:
        for v, w in zip(into, values, strict=True):
            if not v.flags.c_contiguous:
                _copy(w.reshape(form.shape), v)
        values = into
    elif form.shape != form.full:
        values = tuple([v.reshape(form.shape) for v in values])
    via = None if via is None else via.reshape(form.shape)
    if sent:
        from semiring.kernels.cuda.blocks import download

        values, via = tuple(map(download, values)), None if via is None else download(via)
        if target is not None:
            for v, w in zip(target, values, strict=True):
                v[...] = w
            values = target
    return with_witness(values, via, out) if made is not None else in_callers_kind(values, via, restore, form.shape, out)


def multiply_into(left: Arrays, right: Arrays, semiring: Semiring, places: Places, options: tuple[bool, str, int | None, bool]) -> None:
    """Multiply matrices or stacks of NumPy on the CPU into `places`, arrays of the product's shape and dtypes."""
    witness, device, threads, check = options
    form = form_of(semiring, left[0].shape, tuple(map(dtype_of, left)), right[0].shape, tuple(map(dtype_of, right)), witness)
    how = plan(Problem("product", semiring, form.dtypes, form.full, form.depth, "cpu", witness, device=device, threads=threads))
    lent = [tuple(map(Borrowed, parts)) for parts in (left, right)]
    given = tuple(elements(parts, form.dtypes, semiring, name, how.device) for name, parts in zip("ab", lent, strict=True))
    _compute(how, form, given, places, check=check, own=True)


def in_callers_kind(values: Arrays, via: Any, restore: Restorer | None, shape: tuple[int, ...], out: Any) -> Any:
    """Return a product (in `out`, if given) and its witness as arrays of the caller's library, or as scalars of NumPy."""
    if restore is not None:
        values, via = tuple(map(restore, values)), None if via is None else restore(via)
    elif not shape:
        values, via = tuple([v[()] for v in values]), None if via is None else via[()]
    return with_witness(values, via, out)


def with_witness(values: Arrays, via: Any, out: Any = None) -> Any:
    """Return `out` or the values (one array for a single component), as a `Witnessed` if a witness is given."""
    product = out if out is not None else values[0] if len(values) == 1 else values
    return product if via is None else Witnessed(product, via)


def require_gpu_room(how: Plan, given: Arrays, target: Arrays | None) -> None:
    """Refuse a product whose operands and result exceed the free memory of the GPU."""
    results = how.problem.result_bytes - (0 if target is None else sum(v.nbytes for v in target))
    needed = results + sum([v.nbytes for v in given if not on_gpu(v)])
    if needed > ALWAYS_FITS:
        needed = with_scratch(needed)
        require_room(how.device, needed, f"pass fewer rows of a at a time{'' if how.problem.there else ', or device=' + repr('cpu')}")


def _compute(how: Plan, form: ProductForm, operands: Sequence[Arrays], places: Places, *, check: bool, own: bool) -> None:
    """Multiply a and b (and add c, if given) into `places`, of the full shape; all arrays are on the computing device.

    The places are written after the numbers are checked, or earlier if the places are the library's `own`.
    """
    via = places[1]
    if not how.gpu:
        engine: Any = how.engine()
        if form.large and _multiply_while_checking(engine, how, form, operands, places, check=check, own=own):
            return
        engine.signed, engine.statistics = how.checks.run(operands, how.problem.threads, refuse=check)
        if via is not None:
            via.fill(-1)
        _multiply(engine, form, operands, places)
        return
    if own and form.large and _multiply_while_checking(how.engine(), how, form, operands, places, check=check, own=True):
        return
    from semiring.kernels.cuda.compiler import rehearsing, run

    def launch() -> Callable[[], object]:
        engine = asynchronous_engine(how, form)
        verify = begin_checks(how, engine.signs, [v for part in operands for v in part], lambda: operands, check=check)
        if not rehearsing():
            if not own:
                verify()
            if check and how.checks.needed and via is None:
                engine.expect_small_integers(*form.full[-2:], form.depth, math.prod(form.batch), verify)
        if via is not None:
            clear_paths(via.data.ptr, via.size)
        _multiply(engine, form, operands, places)
        return verify

    verify = run(launch, launch)
    if own:
        verify()


def _multiply_while_checking(
    engine: Any, how: Plan, form: ProductForm, operands: Sequence[Arrays], places: Places, *, check: bool, own: bool
) -> bool:
    """Multiply operands and check them in the same pass; return False if they must be checked before.

    On False, places that the caller owns are unchanged.
    """
    work, via = places
    if len(operands) > 2 or not hasattr(engine, "multiply_within") or how.checks.safe is None or not how.checks.asked(refuse=check):
        return False
    if not own and sum([v.nbytes for v in work]) > SMALL:
        return False
    left, right = matrices_of(form, *operands)
    result = work if own else tuple(map(np.empty_like, work))
    if via is not None:
        via.fill(-1)
    if not engine.multiply_within(Block(left), Block(right), Block(result, via), how.checks.safe, how.checks.are_safe):
        return False
    for v, w in zip(work, result, strict=True):
        if v is not w:
            v[...] = w
    return True


def asynchronous_engine(how: Plan, form: ProductForm) -> Any:
    """Return an engine whose launches never wait: the signs of the operands stay on the GPU, where kernels read them."""
    engine: Any = how.engine()
    engine.asynchronous = True
    engine.expect_signs(*form.full[-2:], form.depth)
    return engine


def begin_checks(
    how: Plan, signs: Any, given: Sequence[Any], operands: Callable[[], Sequence[Arrays]], *, check: bool
) -> Callable[[], Any]:
    """Launch the checks of operands on the GPU, if wanted; the returned function waits, raises, and returns the statistics."""
    if check and how.checks.needed:
        return how.checks.begin(given, operands, signs)
    if signs is not None:
        gpu_kernels().flag_signs(given, signs)
    return lambda: None


def _multiply(engine: Engine, form: ProductForm, operands: Sequence[Arrays], places: Places) -> None:
    """Run the engine: C ← A⊗B, or C ← C ⊕ A⊗B."""
    (left, right, *rest), (work, via) = operands, places
    for old in rest:
        left, right = (_unshared(x, work) for x in (left, right))
        old = _unshared(old, work) if len(old) > 1 else old
        for w, v in zip(work, old, strict=True):
            _copy(v.reshape(form.full), w)
    left, right = matrices_of(form, left, right)
    A, B = engine.load(left, owned=False), engine.load(right, owned=False)
    if rest:
        C = engine.load(work, via)
        engine.multiply_add(A, B, C)
    else:
        C = engine.blank(work, via)
        engine.multiply(A, B, C)
    engine.store(C, work)


def matrices_of(form: ProductForm, left: Arrays, right: Arrays) -> tuple[Arrays, Arrays]:
    """Return the operands as matrices, or as stacks with the leading axes of the product."""
    if form.row:
        left = tuple(v[None, :] for v in left)
    if form.column:
        right = tuple(v[:, None] for v in right)
    if form.batch:  # only then, because broadcast_to takes as long as a small product
        xp = namespace(left[0])
        left, right = (
            tuple([v if v.shape[:-2] == form.batch else xp.broadcast_to(v, (*form.batch, *v.shape[-2:])) for v in x]) for x in (left, right)
        )
    return left, right


def _unshared(parts: Arrays, work: Arrays) -> Arrays:
    """Copy arrays that share memory with `work`, which is about to receive c."""
    return tuple(v.copy() if any(namespace(v).may_share_memory(v, w) for w in work) else v for v in parts)


def _copy(source: Any, target: Any) -> None:
    if on_gpu(target):
        from semiring.kernels.cuda.blocks import copy_into

        copy_into(source, target)
    else:
        target[...] = source
