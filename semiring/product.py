"""The product of two matrices: what is asked, the plan, and its execution."""

from __future__ import annotations

import functools
import operator
from collections.abc import Hashable
from contextlib import nullcontext
from typing import Any, NamedTuple

import numpy as np

from semiring.algebra.definition import Semiring, require_semiring
from semiring.arrays.cuda_stream import in_stream_of, scratch_memory, strided
from semiring.arrays.devices import gpu_name, namespace, on_device, on_gpu
from semiring.arrays.exchange import Borrowed, Restorer, borrowed
from semiring.arrays.memory import ALWAYS_FITS, require_room, with_scratch
from semiring.common.errors import SemiringError, ShapeError, about, refuse_arrays
from semiring.execution.product import (
    WITNESS,
    Form,
    Launched,
    arrays_of,
    compute,
    compute_again,
    copy,
    elements,
    launched_before,
    matching,
    operand,
    product_form,
)
from semiring.planning import Plan, Problem, location, plan

__all__ = ["Witnessed", "matmul"]

Array = np.ndarray[Any, Any]

_dtype = operator.attrgetter("dtype")

_NOTHING = nullcontext()

_known: dict[Hashable, Launched] = {}
"""Products that were launched, by the operands, where they lie and what was asked."""

_KEPT = 1024


class Witnessed(NamedTuple):
    """A product and, for each of its elements, the k that won.

    Attributes
    ----------
    values : array, or tuple of arrays for structured elements
    witness : int32 array
        The lowest k with a_ik ⊗ b_kj equal to the element; −1 where nothing beat the zero (or c).
    """

    values: Any
    witness: Any


def matmul(
    a: Any,
    b: Any,
    semiring: Semiring,
    *,
    c: Any = None,
    out: Any = None,
    witness: bool = False,
    device: str = "auto",
    threads: int | None = None,
    check: bool = True,
) -> Any:
    """The product a ⊗ b over a semiring: element (i, j) is ⊕ over k of a_ik ⊗ b_kj.

    Parameters
    ----------
    a : array of shape (…, m, k) or (k,)
    b : array of shape (…, k, n) or (k,)
        Arrays of any library, as for `apsp`. One- and more-dimensional ones are combined as by `numpy.matmul`; any strides. Over a
        structured semiring an operand is a tuple of equally shaped arrays, one a component. The dtypes of a and b are promoted to a
        common one, in which ∞ stays ∞; float16 and int8 are computed in float32 and int16, and integers 0 and 1 are truth values over a
        semiring on those.
    semiring : Semiring
        Marked by `Semiring.with_witness`, it asks for the witness too.
    c : array of the result's shape, optional
        The result is c ⊕ a ⊗ b; a tie keeps c. It is never modified.
    out : array of the result's shape and dtype, optional
        Where the result is put. It may be `c`, `a` or `b` itself, and of any library whose arrays change (not JAX's; before NumPy 2.2
        none that comes by DLPack to the host); on a GPU where an operand is.
    witness : bool
        Also return which k won. ⊕ must be selective.
    device : {"auto", "cpu", "cuda", "cuda:0", …, "reference"}
        Where it is computed. Arrays on a GPU stay there, and so does the result; NumPy's go to them, those of other libraries do not.
    threads : int, optional
        Threads of the CPU engine; by default ``SEMIRING_NUM_THREADS``, or all cores.
    check : bool
        Whether the numbers of the operands are looked at, to refuse what raises `DomainError` or `OverflowRiskError`. The product of what
        is not refused is the same without; of anything else it is meaningless, and nothing tells. On a GPU a product without checks is
        only launched: nothing waits for it, so that it can be recorded in a CUDA graph, CuPy's or PyTorch's, if the operands have the
        dtype of the product and a call like it came before. Whether large products of float32 take a faster kernel, because no distance is
        negative, the GPU finds out itself.

    Returns
    -------
    array, tuple of arrays, or Witnessed
        The product (a tuple over a structured semiring); with `witness`, a named tuple ``(values, witness)``. It is of the library and
        on the device of `out`, or else of the first operand that is not NumPy's.

    Raises
    ------
    ShapeError
        Operands that do not fit each other, `c` or `out`, or lie on different devices.
    GraphError
        An array that cannot be read where it lies, such as a tensor that requires a gradient, or that has labels or masked entries.
    DTypeError
        A dtype in which the semiring has no meaning.
    DomainError
        An operand with NaN or an element outside the carrier.
    OverflowRiskError
        Numbers so large that the product could leave the dtype: integers, and floats where ⊕ only compares, so that an ∞ from an
        overflow would pass for "no path". Where ⊕ adds (`PLUS_TIMES`, `LOG`) that ∞ is ordinary IEEE 754 arithmetic, and is returned.
    LawError
        A witness is asked for and ⊕ is not selective.
    TooLargeError
        A GPU that has not the memory.

    Notes
    -----
    m·n·k steps. A few MiB of scratch a thread. Results are the same bits on any number of threads. Engines and processors add up in
    orders of their own: where ⊕ is selective or the data is exactly representable they agree too, otherwise to rounding. On a GPU the work
    goes to the current stream: PyTorch's for its tensors, CuPy's for all others.

    Examples
    --------
    >>> import numpy as np
    >>> from semiring import MIN_PLUS, TROPICAL_ARGMIN, matmul
    >>> hours = np.array([[0.0, 4.0], [np.inf, 0.0]])
    >>> matmul(hours, np.array([[1.0, 9.0], [2.0, 3.0]]), MIN_PLUS)
    array([[1., 7.],
           [2., 3.]])
    >>> matmul(hours, np.array([7.0, 1.0]), TROPICAL_ARGMIN)
    Witnessed(values=array([5., 1.]), witness=array([1, 1], dtype=int32))
    """
    if type(semiring) is not Semiring or hasattr(witness, "shape") or hasattr(device, "shape") or hasattr(check, "shape"):
        require_semiring(semiring)
        refuse_arrays(witness=witness, device=device, check=check)
    options = bool(witness or semiring.witness), device, threads, bool(check)
    try:
        if type(a) is np.ndarray or type(b) is np.ndarray:
            return _product(a, b, semiring, c, out, options)
        if type(a) is type(b) and c is out is None and (found := _again(a, b, semiring, options)) is not None:
            return found
        with in_stream_of(_flat((a, b, c, out))):
            return _product(a, b, semiring, c, out, options)
    except SemiringError as error:
        about(error, "the product", semiring, a, b)
        raise


def _flat(operands: tuple[Any, ...]) -> list[Any]:
    """The components of operands."""
    return [v for x in operands for v in (x if isinstance(x, tuple | list) else (x,))]


def _again(a: Any, b: Any, semiring: Semiring, options: tuple[bool, str, int | None, bool]) -> Any:
    """The product of matrices that lie on the current GPU in its dtype, by what is known of the last one of such; None where nothing is."""
    witness, device, threads, check = options
    left, right = strided(a), strided(b)
    if left is None or right is None or type(device) is not str or threads is not None:
        return None
    import cupy

    if cupy.cuda.get_current_stream().is_capturing():
        return None  # memory is the graph's then
    number = cupy.cuda.runtime.getDevice()
    key = (semiring, left[1:], left.address % 16, right[1:], right.address % 16, number, device, witness)
    known = _known.get(key)
    if known is None:
        settled = _settled(semiring, left.shape, left.dtype, right.shape, right.dtype, number, device, witness)
        known = None if settled is None else launched_before(*settled, left, right)
        if known is None:
            return None
        if len(_known) >= _KEPT:
            _known.clear()
        _known[key] = known
    if known.how.problem.result_bytes > ALWAYS_FITS:
        _require_room(known.how, (), None)
    try:
        values, via = compute_again(known, a, b, left, right, check=check)
    except Exception:
        with on_device(known.how.device):  # which tells of what memory there is not
            raise
    return values if via is None else Witnessed(values, via)


@functools.lru_cache(maxsize=1024)
def _settled(
    semiring: Semiring,
    a: tuple[int, ...],
    kind_a: np.dtype[Any],
    b: tuple[int, ...],
    kind_b: np.dtype[Any],
    number: int,
    device: str,
    witness: bool,
) -> tuple[Form, Plan] | None:
    """The form and the plan of such a product; None where it is none."""
    if semiring.components != 1 or len(a) != 2 or len(b) != 2:
        return None
    form = product_form(semiring, a, (kind_a,), b, (kind_b,), witness)
    place = gpu_name(number)
    problem = Problem("product", semiring, form.dtypes, form.full, form.depth, place, witness, device=device)
    if not form.kept or 0 in form.full:
        return None
    how = plan(problem)
    return (form, how) if how.device == place else None


def _product(a: Any, b: Any, semiring: Semiring, c: Any, out: Any, options: tuple[bool, str, int | None, bool]) -> Any:
    """Read, plan, and execute."""
    plain = type(a) is type(b) is np.ndarray and c is out is None and semiring.components == 1 and a.dtype.kind != "O" != b.dtype.kind
    lent_a, lent_b = ((Borrowed(a),), (Borrowed(b),)) if plain else (operand(a, semiring, "a"), operand(b, semiring, "b"))
    left, right = ((a,), (b,)) if plain else (arrays_of(lent_a), arrays_of(lent_b))
    witness, device, threads, check = options
    form = product_form(semiring, left[0].shape, tuple(map(_dtype, left)), right[0].shape, tuple(map(_dtype, right)), witness)
    place = location((*left, *right), device)
    how = plan(Problem("product", semiring, form.dtypes, form.full, form.depth, place, witness, device=device, threads=threads))
    if plain and form.kept and not how.gpu:  # nothing to convert, to move or to restore
        values = (np.empty(form.full, form.dtypes[0]),)
        via = np.empty(form.full, WITNESS) if witness else None
        compute(how, form, left, right, None, values, via, check=check, own=True)
        product = values[0] if form.shape == form.full else values[0].reshape(form.shape)[()]
        return product if via is None else Witnessed(product, via.reshape(form.shape)[()])
    lent_c = () if c is None else operand(c, semiring, "c")
    lent_out = () if out is None else operand(out, semiring, "out")
    old = matching(lent_c, form.dtypes, form.shape, "c", exact=False) if lent_c else None
    target = matching(lent_out, form.dtypes, form.shape, "out", exact=True) if lent_out else None
    _require_one_place(lent_a, lent_b, lent_c, old, target, there=how.problem.there)
    if how.gpu:
        _require_room(how, (*left, *right, *(old or ())), target)
    with on_device(how.device):
        return _execute(how, form, (lent_a, lent_b, lent_c, lent_out), target, out, check=check)


def _execute(
    how: Plan, form: Form, lent: tuple[tuple[Borrowed, ...], ...], target: tuple[Any, ...] | None, out: Any, *, check: bool
) -> Any:
    """Check, compute, hand back."""
    lent_a, lent_b, lent_c, lent_out = lent
    left = elements(lent_a, form.dtypes, how.semiring, "a", how.device)
    right = elements(lent_b, form.dtypes, how.semiring, "b", how.device)
    old = elements(lent_c, form.dtypes, how.semiring, "c", how.device) if lent_c else None
    restore, sent = _restorer(lent_out or (*lent_a, *lent_b)), how.gpu and not how.problem.there
    into = None if sent else target
    given, places = _places(how, form, into, None if sent else restore, namespace(left[0]))
    with scratch_memory() if how.gpu else _NOTHING:
        compute(how, form, left, right, old, *places, check=check, own=into is None)
    values, via = places if given is None else given
    if into is not None:
        for v, w in zip(into, values, strict=True):
            if not v.flags.c_contiguous:
                copy(w.reshape(form.shape), v)
        values = into
    elif form.shape != form.full:
        values = tuple([v.reshape(form.shape) for v in values])
    via = None if via is None else via.reshape(form.shape)
    if sent:
        values, via = _received(values, target), None if via is None else _received((via,), None)[0]
    if restore is not None and given is None:
        values, via = tuple(map(restore, values)), None if via is None else restore(via)
    elif restore is None and not form.shape:  # a scalar of NumPy's
        values, via = tuple([v[()] for v in values]), None if via is None else via[()]
    product = out if out is not None else values[0] if how.semiring.components == 1 else values
    return product if via is None else Witnessed(product, via)


def _places(
    how: Plan, form: Form, into: tuple[Any, ...] | None, restore: Restorer | None, xp: Any
) -> tuple[tuple[tuple[Any, ...], Any] | None, tuple[tuple[Any, ...], Any]]:
    """Where a product and its witness are written to, in the full shape; before that the same by the caller's library, if that made it.

    The product goes to `into`, if there is one whose rows follow each other.
    """
    wanted = [*(form.dtypes if into is None else ()), *([WITNESS] if how.paths else ())]
    made = None if restore is None or not restore.here else [restore.empty(form.full, dtype) for dtype in wanted]
    if made is None or any(v is None for v in made):
        made, places = None, [xp.empty(form.full, dtype) for dtype in wanted]
    else:
        places = [borrowed(v).array for v in made]
    if into is None:
        work = tuple(places[: len(form.dtypes)])
    else:
        work = tuple([v.reshape(form.full) if v.flags.c_contiguous else xp.empty(form.full, v.dtype) for v in into])
    via = places[-1] if how.paths else None
    if made is None:
        return None, (work, via)
    return (tuple(made[: len(form.dtypes)]) if into is None else work, made[-1] if how.paths else None), (work, via)


def _require_one_place(
    a: tuple[Borrowed, ...],
    b: tuple[Borrowed, ...],
    c: tuple[Borrowed, ...],
    old: tuple[Any, ...] | None,
    target: tuple[Any, ...] | None,
    *,
    there: bool,
) -> None:
    """Refuse operands of which some lie on a GPU and others do not, unless these are NumPy's."""
    if target is not None and any(on_gpu(v) != there for v in target):
        raise ShapeError(f"out must lie {'on the GPU, as an operand does' if there else 'on the host, as the operands do'}")
    if old is not None and not there and any(map(on_gpu, old)):
        raise ShapeError("c lies on a GPU and the operands on the host; bring it to them, or them to it")
    for name, lent in (("a", a), ("b", b), ("c", c)):
        if there and any(p.restore is not None and not on_gpu(p.array) for p in lent):
            raise ShapeError(
                f"{name} lies on the host and another operand on a GPU, where only NumPy's go unasked; bring them to one device"
            )


def _require_room(how: Plan, given: tuple[Any, ...], target: tuple[Any, ...] | None) -> None:
    """Refuse what does not fit the GPU beside what lies there."""
    results = how.problem.result_bytes - (0 if target is None else sum(v.nbytes for v in target))
    needed = results + sum([v.nbytes for v in given if not on_gpu(v)])
    if needed > ALWAYS_FITS:
        needed = with_scratch(needed)
        require_room(how.device, needed, f"pass fewer rows of a at a time{'' if how.problem.there else ', or device=' + repr('cpu')}")


def _restorer(operands: tuple[Borrowed, ...]) -> Restorer | None:
    """What makes a result one of the library of the first of them that is not NumPy's; None where all are.

    A result in the caller's own `out` is to be restored too, because that makes the stream of its library wait for it.
    """
    for p in operands:
        if p.restore is not None or (type(p.array) is not np.ndarray and on_gpu(p.array)):
            return p.restore
    return None


def _received(found: tuple[Any, ...], target: tuple[Array, ...] | None) -> tuple[Array, ...]:
    """What a GPU has computed, on the host."""
    from semiring.kernels.cuda.transfer import download

    results = tuple(map(download, found))
    if target is None:
        return results
    for v, w in zip(target, results, strict=True):
        v[...] = w
    return target
