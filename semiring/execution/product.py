"""A product is run here: its operands are read, the plan is asked for, numbers are checked, and the engine multiplies."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any, NamedTuple

import numpy as np

from semiring.algebra.definition import Semiring
from semiring.arrays.cuda_stream import scratch_memory
from semiring.arrays.devices import namespace, on_device, on_gpu
from semiring.arrays.exchange import Borrowed
from semiring.arrays.memory import ALWAYS_FITS, require_room, with_scratch
from semiring.execution.operands import (
    WITNESS,
    Arrays,
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
from semiring.kernels.overflow.statistics import SMALL, flag_signs
from semiring.planning import Plan, Problem, location, plan

__all__ = ["Witnessed", "begin_checks", "matrices_of", "multiply", "require_gpu_room", "waiting_for_nothing"]

_NOTHING = nullcontext()


class Witnessed(NamedTuple):
    """A product and, for each of its elements, the k that won; `matmul` gives it with ``witness=True``.

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
        The lowest k with a_ik ⊗ b_kj equal to the element; −1 where nothing beat the zero (or c).
    """

    values: Any
    witness: Any


def multiply(a: Any, b: Any, semiring: Semiring, c: Any, out: Any, options: tuple[bool, str, int | None, bool]) -> Any:
    """The product of whatever the caller calls matrices, and its witness if that is wanted, in the caller's own kind.

    `options` are `witness`, `device`, `threads` and `check` of `semiring.matmul`, as `c` and `out` are.
    """
    plain = type(a) is type(b) is np.ndarray and c is out is None and semiring.components == 1 and a.dtype.kind != "O" != b.dtype.kind
    lent_a, lent_b = ((Borrowed(a),), (Borrowed(b),)) if plain else (operand(a, semiring, "a"), operand(b, semiring, "b"))
    left, right = ((a,), (b,)) if plain else (arrays_of(lent_a), arrays_of(lent_b))
    witness, device, threads, check = options
    form = form_of(semiring, left[0].shape, tuple(map(dtype_of, left)), right[0].shape, tuple(map(dtype_of, right)), witness)
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


def _execute(
    how: Plan, form: ProductForm, lent: tuple[tuple[Borrowed, ...], ...], target: tuple[Any, ...] | None, out: Any, *, check: bool
) -> Any:
    """The same with whatever has to be converted, moved to a GPU and back, or made by the caller's library."""
    lent_a, lent_b, lent_c, lent_out = lent
    given: tuple[Arrays, ...] = (
        elements(lent_a, form.dtypes, how.semiring, "a", how.device),
        elements(lent_b, form.dtypes, how.semiring, "b", how.device),
    )
    if lent_c:
        given = *given, elements(lent_c, form.dtypes, how.semiring, "c", how.device)
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
        values, via = _received(values, target), None if via is None else _received((via,), None)[0]
    if restore is not None and made is None:
        values, via = tuple(map(restore, values)), None if via is None else restore(via)
    elif restore is None and not form.shape:  # a scalar of NumPy's
        values, via = tuple([v[()] for v in values]), None if via is None else via[()]
    product = out if out is not None else values[0] if how.semiring.components == 1 else values
    return product if via is None else Witnessed(product, via)


def require_gpu_room(how: Plan, given: tuple[Any, ...], target: tuple[Any, ...] | None) -> None:
    """Refuse what does not fit the GPU beside what lies there."""
    results = how.problem.result_bytes - (0 if target is None else sum(v.nbytes for v in target))
    needed = results + sum([v.nbytes for v in given if not on_gpu(v)])
    if needed > ALWAYS_FITS:
        needed = with_scratch(needed)
        require_room(how.device, needed, f"pass fewer rows of a at a time{'' if how.problem.there else ', or device=' + repr('cpu')}")


def _received(found: tuple[Any, ...], target: Arrays | None) -> Arrays:
    """Copy the results of a GPU to the host."""
    from semiring.kernels.cuda.transfer import download

    results = tuple(map(download, found))
    if target is None:
        return results
    for v, w in zip(target, results, strict=True):
        v[...] = w
    return target


# From arrays to arrays.


def _compute(how: Plan, form: ProductForm, operands: Sequence[Arrays], places: Places, *, check: bool, own: bool) -> None:
    """Multiply matrices or stacks of one dtype, on the device of the product: a ⊗ b, or c ⊕ a ⊗ b.

    The product is written to its output after the numbers are checked, or before if the output is our `own`.
    """
    via = places[1]
    if not how.gpu:
        engine: Any = how.engine()
        if form.large and _multiply_at_once(engine, how, form, operands, places, check=check, own=own):
            return
        engine.signed, engine.statistics = how.checks.run(operands, how.problem.threads, refuse=check)
        if via is not None:
            via.fill(-1)
        _multiply(engine, form, operands, places)
        return
    if own and form.large and _multiply_at_once(how.engine(), how, form, operands, places, check=check, own=True):
        return
    from semiring.kernels.cuda.compiler import rehearsing, run

    def launch() -> Callable[[], object]:
        engine = waiting_for_nothing(how, form)
        verify = begin_checks(how, engine.signs, [v for part in operands for v in part], lambda: operands, check=check)
        if not (own or rehearsing()):
            verify()
        if via is not None:
            clear_paths(via.data.ptr, via.size)
        _multiply(engine, form, operands, places)
        return verify

    verify = run(launch, launch)
    if own:
        verify()


def _multiply_at_once(
    engine: Any, how: Plan, form: ProductForm, operands: Sequence[Arrays], places: Places, *, check: bool, own: bool
) -> bool:
    """The product of operands that are checked while they are multiplied; False where they have to be before.

    Then places that are not our `own` are as they were.
    """
    work, via = places
    if len(operands) > 2 or not hasattr(engine, "multiply_within"):
        return False
    if how.checks.safe is None or not how.checks.asked(refuse=check):
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


def waiting_for_nothing(how: Plan, form: ProductForm) -> Any:
    """An engine that waits for nothing: what a product depends on of its operands' numbers, the GPU tells itself."""
    engine: Any = how.engine()
    engine.asynchronous = True
    engine.expect_signs(*form.full[-2:], form.depth)
    return engine


def begin_checks(
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


def _multiply(engine: Engine, form: ProductForm, operands: Sequence[Arrays], places: Places) -> None:
    """The engine's work: C ← A⊗B, or C ← C ⊕ A⊗B."""
    (left, right, *rest), (work, via) = operands, places
    for old in rest:
        left, right = (_apart(x, work) for x in (left, right))
        old = _apart(old, work) if len(old) > 1 else old
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
    """The operands as matrices, or stacks of them with the leading axes of the product."""
    if form.row:
        left = tuple(v[None, :] for v in left)
    if form.column:
        right = tuple(v[:, None] for v in right)
    if form.batch:  # broadcast_to takes as long as a small product
        xp = namespace(left[0])
        left, right = (tuple(xp.broadcast_to(v, (*form.batch, *v.shape[-2:])) for v in x) for x in (left, right))
    return left, right


def _apart(parts: Arrays, work: Arrays) -> Arrays:
    """`parts`, copied where they share memory with what is about to receive c."""
    return tuple(v.copy() if any(namespace(v).may_share_memory(v, w) for w in work) else v for v in parts)


def _copy(source: Any, target: Any) -> None:
    """target ← source, on one device."""
    if on_gpu(target):
        from semiring.kernels.cuda.blocks import copy_into

        copy_into(source, target)
    else:
        target[...] = source
