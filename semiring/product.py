"""The product of two matrices: what is asked, the plan, and its execution."""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from semiring.algebra.definition import Semiring, require_semiring
from semiring.algebra.domain import require_inside
from semiring.algebra.errors import LawError, ShapeError, noted, refuse_arrays
from semiring.algebra.exchange import Borrowed
from semiring.algebra.laws import selective_counterexample
from semiring.algebra.namespace import namespace, on_gpu
from semiring.kernels.bounds import certify, depends_on_values
from semiring.kernels.devices import is_gpu, on_device
from semiring.kernels.infinities import absorbing
from semiring.kernels.operands import apart, arrays_of, dtypes_of, elements, leading_axes, matching, operand
from semiring.kernels.room import require_room, with_scratch
from semiring.kernels.select import engine_for
from semiring.kernels.statistics import ValueStatistics, surely_elements, value_statistics
from semiring.planning import Problem, location, plan

__all__ = ["Witnessed", "matmul"]

Array = np.ndarray[Any, Any]


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
    orders of their own: where ⊕ is selective or the data is exactly representable they agree too, otherwise to rounding.

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
    require_semiring(semiring)
    refuse_arrays(witness=witness, device=device)
    with noted("the product", semiring, a, b):
        return _product(a, b, semiring, c, out, witness or semiring.witness, device, threads)


def _product(a: Any, b: Any, semiring: Semiring, c: Any, out: Any, witness: bool, device: str, threads: int | None) -> Any:
    if witness and (found := selective_counterexample(semiring)) is not None:
        x, y, z = found
        raise LawError(f"{semiring.name} has no witness: ⊕ is not selective ({x!r} ⊕ {y!r} = {z!r}), so no single k wins")
    lent_a, lent_b = operand(a, semiring, "a"), operand(b, semiring, "b")
    lent_c, lent_out = None if c is None else operand(c, semiring, "c"), None if out is None else operand(out, semiring, "out")
    left, right = arrays_of(lent_a), arrays_of(lent_b)
    batch, row, column = leading_axes(left[0].shape, right[0].shape)
    dtypes = dtypes_of(left, right, semiring)
    m, n = left[0].shape[-2:-1], () if column else right[0].shape[-1:]
    full, shape = (*batch, *(m or (1,)), *(n or (1,))), (*batch, *m, *n)
    old = None if lent_c is None else matching(lent_c, dtypes, shape, "c", exact=False)
    target = None if lent_out is None else matching(lent_out, dtypes, shape, "out", exact=True)
    given = (*left, *right, *(old or ()))
    results = math.prod(full) * (sum(d.itemsize for d in dtypes) * (target is None) + 4 * witness)
    needed = with_scratch(results + sum(v.nbytes for v in given if not on_gpu(v)))
    place = location((*left, *right), device)
    how = plan(Problem("product", semiring, dtypes, full, left[0].shape[-1], place, witness, device=device, threads=threads))
    where, stays = how.device, how.problem.there
    if target is not None and any(on_gpu(v) != stays for v in target):
        raise ShapeError(f"out must lie {'on the GPU, as an operand does' if stays else 'on the host, as the operands do'}")
    if old is not None and not stays and any(map(on_gpu, old)):
        raise ShapeError("c lies on a GPU and the operands on the host; bring it to them, or them to it")
    for name, lent in (("a", lent_a), ("b", lent_b), ("c", lent_c or ())):
        if stays and any(p.restore is not None and not on_gpu(p.array) for p in lent):
            raise ShapeError(
                f"{name} lies on the host and another operand on a GPU, where only NumPy's go unasked; bring them to one device"
            )
    require_room(where, needed, f"pass fewer rows of a at a time{'' if stays else ', or device=' + repr('cpu')}")
    with on_device(where):
        left, right = elements(lent_a, dtypes, semiring, "a", where), elements(lent_b, dtypes, semiring, "b", where)
        old = None if lent_c is None else elements(lent_c, dtypes, semiring, "c", where)
        statistics = _statistics_of_elements(semiring, left, right, old, threads)
        left = tuple(v[None, :] if row else v for v in left)
        right = tuple(v[:, None] if column else v for v in right)
        sent = is_gpu(where) and not stays
        values, via = _compute(where, left, right, old, statistics, None if sent else target, shape, semiring, witness, threads)
        if sent:
            values, via = _received(values, target), None if via is None else _received((via,), None)[0]
        restore = _restorer(lent_out or (*lent_a, *lent_b))
        values, via = tuple(map(restore, values)), None if via is None else restore(via)
    product = out if out is not None else values if semiring.components > 1 else values[0]
    return product if via is None else Witnessed(product, via)


def _restorer(operands: tuple[Borrowed, ...]) -> Callable[[Any], Any]:
    """What makes a result one of the library of the first of them that is not NumPy's; of NumPy's it makes a scalar if it has no axes.

    A result in the caller's own `out` is to be restored too, because that makes the stream of its library wait for it.
    """
    others = (p.restore for p in operands if p.restore is not None or on_gpu(p.array))
    return next(others, None) or operator.itemgetter(())


def _received(found: tuple[Any, ...], target: tuple[Array, ...] | None) -> tuple[Array, ...]:
    """What a GPU has computed, on the host."""
    from semiring.kernels.cuda.transfer import download

    results = tuple(map(download, found))
    if target is None:
        return results
    for v, w in zip(target, results, strict=True):
        v[...] = w
    return target


def _statistics_of_elements(
    semiring: Semiring, left: tuple[Any, ...], right: tuple[Any, ...], old: tuple[Any, ...] | None, threads: int | None
) -> list[tuple[ValueStatistics, ...]]:
    """What the numbers of each operand are, which hold nothing but elements; nothing where no more than that is asked."""
    dtypes = tuple(v.dtype for v in left)
    if not depends_on_values(semiring, dtypes):
        return []
    given = left, right, *(() if old is None else (old,))
    found = value_statistics([v for part in given for v in part], absorbing(semiring, dtypes), threads=threads)
    statistics = [found[i : i + len(dtypes)] for i in range(0, len(found), len(dtypes))]
    for name, part, told in zip("abc", given, statistics, strict=False):
        if not surely_elements(semiring, part, told):
            require_inside(semiring, part, name)
    return statistics


def _compute(
    where: str,
    left: tuple[Any, ...],
    right: tuple[Any, ...],
    old: tuple[Any, ...] | None,
    statistics: list[tuple[ValueStatistics, ...]],
    target: tuple[Any, ...] | None,
    shape: tuple[int, ...],
    semiring: Semiring,
    witness: bool,
    threads: int | None,
) -> tuple[tuple[Any, ...], Any]:
    """The product of matrices (or stacks of them) of one dtype that lie where it is computed, of the shape `shape`, and its witness."""
    xp, dtypes = namespace(left[0]), tuple(v.dtype for v in left)
    batch = np.broadcast_shapes(left[0].shape[:-2], right[0].shape[:-2]) if left[0].ndim > 2 or right[0].ndim > 2 else ()
    full = (*batch, left[0].shape[-2], right[0].shape[-1])
    engine = engine_for(semiring, dtypes, where, threads, witness=witness)
    if statistics:
        engine.signed = 0 not in full and certify(semiring, dtypes, *statistics, k=left[0].shape[-1])
        engine.statistics = functools.reduce(operator.or_, (told[0] for told in statistics))
    results = target or tuple(xp.empty(shape, dtype=d) for d in dtypes)
    work = tuple(v.reshape(full) if v.flags.c_contiguous else xp.empty(full, dtype=v.dtype) for v in results)
    via = xp.full(full, -1, dtype=np.int32) if witness else None
    if old is not None:
        left, right = (apart(x, work) for x in (left, right))
        old = apart(old, work) if len(old) > 1 else old
        for w, v in zip(work, old, strict=True):
            w[...] = v.reshape(full)
    if batch:  # broadcast_to takes as long as a small product
        left, right = (tuple(xp.broadcast_to(v, (*batch, *v.shape[-2:])) for v in x) for x in (left, right))
    A, B = engine.load(left, owned=False), engine.load(right, owned=False)
    if old is None:
        C = engine.blank(work, via)
        engine.multiply(A, B, C)
    else:
        C = engine.load(work, via)
        engine.multiply_add(A, B, C)
    engine.store(C, work)
    for v, w in zip(results, work, strict=True):
        if not xp.may_share_memory(v, w):
            v[...] = w.reshape(shape)
    return results, None if via is None else via.reshape(shape)
