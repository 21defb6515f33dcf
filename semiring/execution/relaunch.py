"""Repeated products on a GPU: operands of a known layout are launched with the kernels of the last time.

Form, plan, kernels and checks follow from the layout of the operands and are cached; a call then only fills in addresses.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from semiring.algebra.definition import Semiring
from semiring.arrays.devices import Strided, aside, empty_beside, gpu_name, is_gpu, on_device, strided
from semiring.arrays.exchange import borrowed, comes_from
from semiring.arrays.memory import ALWAYS_FITS, require_room
from semiring.execution.operands import WITNESS, ProductForm, Shape, form_of
from semiring.execution.product import Witnessed, asynchronous_engine, begin_checks, matrices_of, require_gpu_room
from semiring.kernels.cuda.arguments import ALWAYS, LaunchPredicate
from semiring.kernels.cuda.elements import clear_paths, of_bytes
from semiring.kernels.engine import Block
from semiring.kernels.limits import SafeRange
from semiring.kernels.overflow.products import checks_for
from semiring.kernels.select import sparse_products_for
from semiring.planning import Plan, Problem, plan
from semiring.planning.options import named_device

if TYPE_CHECKING:
    from semiring.kernels.cuda.sparse import SparsePlan

__all__ = ["multiply_again"]

_known: dict[Hashable, _Launched] = {}
"""Launched products, by the layouts of the operands, the GPU and the options."""

_KEPT = 1024
"""The most products that `_known` keeps."""

_Layout = tuple[Shape, Shape, np.dtype[Any]]
"""The shape, the strides (in bytes) and the dtype of an array."""


class _Launched(NamedTuple):
    """Product that can be launched again for operands of the same layout.

    `within` has the launches of `CudaEngine.launches_within`, which check the operands; if it is empty, `launches` are used. Products of
    `small` integers have other launches, and wait for the statistics of the operands. `fitting` is [True] at first, and while the
    statistics fit: only then are these launches tried. It becomes [None], for ever, after a fraction among floats.
    """

    form: ProductForm
    how: Plan
    within: list[tuple[Any, SafeRange]]
    launches: list[tuple[Any, int | None]]
    small: Any
    fitting: list[bool | None]


def multiply_again(a: Any, b: Any, c: Any, out: Any, semiring: Semiring, options: tuple[bool, str, int | None, bool]) -> Any:
    """Multiply two arrays of the current GPU, or an array and a sparse matrix of CuPy, without conversions of the operands.

    None is returned if conversions are needed, if the layout does not determine the launches, and if a number is outside the safe range.
    """
    _, device, threads, _ = options
    if type(device) is not str or threads is not None:
        return None
    if type(a) is type(b):
        return _dense((a, b, c, out), semiring, options)
    return _sparse(a, b, semiring, options) if c is out is None else None


def _current_gpu() -> int | None:
    """Return the number of the current GPU; None while its stream is captured, when memory would belong to the captured graph."""
    import cupy

    return None if cupy.cuda.get_current_stream().is_capturing() else cupy.cuda.runtime.getDevice()


def _dense(arrays: tuple[Any, Any, Any, Any], semiring: Semiring, options: tuple[bool, str, int | None, bool]) -> Any:
    witness, device, _, check = options
    a, b, c, out = arrays
    left, right = strided(a), strided(b)
    if left is None or right is None or (number := _current_gpu()) is None:
        return None
    old = target = None
    if c is not None and (type(c) is not type(a) or (old := strided(c)) is None):
        return None
    if out is not None and (type(out) is not type(a) or (target := strided(out)) is None):
        return None
    from semiring.kernels.cuda.kernels import finds_safe

    key: Hashable = (semiring, left[1:], left.address % 16, right[1:], right.address % 16, number, device, witness, check)
    if old is not None or target is not None:
        key = key, old and old[1:], target and target[1:]
    known = _known.get(key)
    if known and not (known.within or known.launches or known.fitting[0]):
        return None
    settled = known[:2] if known else _settled_dense(semiring, left.shape, left.dtype, right.shape, right.dtype, number, device, witness)
    if settled is None:
        return None
    form, how = settled
    if known is None and not all(v is None or _is_like(v, form) for v in (old, target)):
        return None
    size = math.prod(form.shape) * form.dtypes[0].itemsize
    if how.problem.result_bytes > ALWAYS_FITS:
        if target is not None:  # there may be no room beside `out`
            return None
        require_gpu_room(how, (), None)
    try:
        values, into = empty_beside(a, form.shape, form.dtypes[0])
        via, into_via = empty_beside(a, form.shape, WITNESS) if witness else (None, 0)
        if old is not None:
            _copy(old.address, into, size)
        if known is None:
            known = _prepared(form, how, (a, b, values, via), fresh=old is None, check=check)
            if known is None:
                return None
            if len(_known) >= _KEPT:
                _known.clear()
            _known[key] = known
        own = left.address, right.address, into, right.address, into_via, 0
        if known.within:
            launch, sought = known.within[0]
            if not finds_safe(launch, own, sought, form.dtypes[0]):
                _known.pop(key, None)  # because the next launch depends on the numbers in the operands
                return None
        else:
            given, layouts = ((a, b), (left, right)) if old is None else ((a, b, c), (left, right, old))
            if not _launch_again(known, given, layouts, own, into_via, check=check):
                _known.pop(key, None)  # because other launches are planned now
                return None
        if target is not None:  # only now, when the numbers are checked
            _copy(into, target.address, size)
    except Exception:
        with on_device(how.device):  # which turns errors of the GPU's memory into TooLargeError
            raise
    product = values if out is None else out
    return product if via is None else Witnessed(product, via)


def _is_like(v: Strided, form: ProductForm) -> bool:
    """Return True for contiguous memory of the shape and the dtype of a product."""
    if v.shape != form.shape or v.dtype != form.dtypes[0]:
        return False
    apart = v.dtype.itemsize
    for length, step in zip(v.shape[::-1], v.strides[::-1], strict=True):
        if length > 1 and step != apart:
            return False
        apart *= length
    return True


def _copy(source: int, target: int, size: int) -> None:
    """Copy bytes from one address of the current GPU to another."""
    import cupy

    runtime = cupy.cuda.runtime
    runtime.memcpyAsync(target, source, size, runtime.memcpyDeviceToDevice, cupy.cuda.get_current_stream().ptr)


@functools.lru_cache(maxsize=1024)
def _settled_dense(
    semiring: Semiring, a: Shape, kind_a: np.dtype[Any], b: Shape, kind_b: np.dtype[Any], number: int, device: str, witness: bool
) -> tuple[ProductForm, Plan] | None:
    """Return the form and the plan of the product; None if it cannot be launched from the layout alone."""
    if semiring.components != 1 or max(len(a), len(b)) > 3:
        return None
    form = form_of(semiring, a, (kind_a,), b, (kind_b,), witness)
    place = gpu_name(number)
    problem = Problem("product", semiring, form.dtypes, form.full, form.depth, place, witness, device=device)
    if not form.kept or 0 in form.full:
        return None
    how = plan(problem)
    return (form, how) if how.device == place else None


def _prepared(form: ProductForm, how: Plan, arrays: tuple[Any, Any, Any, Any], *, fresh: bool, check: bool) -> _Launched | None:
    """Prepare the launches of a product for the layouts of a, b, values and witness; None if copies or conversions are needed."""
    a, b, values = (borrowed(v).array for v in arrays[:3])
    via = None if arrays[3] is None else borrowed(arrays[3]).array.reshape(form.full)
    left, right = matrices_of(form, (a,), (b,))
    blocks = Block(left), Block(right), Block((values.reshape(form.full),), via)
    engine, checks = asynchronous_engine(how, form), how.checks
    within: Any = []
    if fresh and form.large and checks.safe is not None and checks.asked(refuse=check):
        within = engine.launches_within(*blocks, checks.safe)
    launches = [] if within else engine.launches(*blocks, fresh=fresh)
    small = engine.small_integers(*blocks, fresh=fresh) if not within and check and checks.needed else None
    return None if launches is None and small is None else _Launched(form, how, within, launches or [], small, [True])


def _launch_again(
    known: _Launched, arrays: tuple[Any, ...], layouts: tuple[Strided, ...], own: tuple[int, ...], into_via: int, *, check: bool
) -> bool:
    """Repeat the launches, next to a pass over the operands that checks them; return False if only small integers have launches."""
    import cupy

    from semiring.kernels.cuda.compiler import run
    from semiring.kernels.cuda.launches import start_variants

    def begin(signs: Any = None) -> Callable[[], Any]:
        return begin_checks(known.how, signs, layouts, lambda: tuple((borrowed(v).array,) for v in arrays), check=check)

    def scaled(found: Any) -> Any:
        return known.small.fitting(found) if known.small and found else None

    if known.small and known.fitting[0]:
        small = scaled(begin()())
        done = small and run(lambda: small.start(own))
        if done:
            return True
        known.fitting[0] = None if done is False else False
    if not known.launches:
        return False
    if into_via:
        clear_paths(into_via, math.prod(known.form.shape))
    waits = known.launches[0][1] is not None  # the launches read the signs that the pass finds
    if known.form.large and not waits:
        before = cupy.cuda.get_current_stream().record()
        start_variants([(launch, ALWAYS) for launch, _ in known.launches], own)
        with aside(before):
            verify = begin()
    else:
        signs: Any = of_bytes(1, 0) if waits else None
        verify = begin(signs)
        when = [ALWAYS if signed is None else LaunchPredicate(signs.data.ptr, signed) for _, signed in known.launches]
        start_variants([(launch, each) for (launch, _), each in zip(known.launches, when, strict=True)], own)
    found = verify()
    if known.fitting[0] is not None:
        known.fitting[0] = scaled(found) is not None
    return True


def _sparse(a: Any, b: Any, semiring: Semiring, options: tuple[bool, str, int | None, bool]) -> Any:
    """Multiply compressed rows by an array, or a vector by compressed columns."""
    witness, device, _, check = options
    swapped = comes_from(b, "cupyx")
    sparse, dense = (b, a) if swapped else (a, b)
    other = strided(dense)
    if witness or other is None or not comes_from(sparse, "cupyx") or sparse.format != ("csc" if swapped else "csr"):
        return None
    starts, columns, values = map(strided, (sparse.indptr, sparse.indices, sparse.data))
    if starts is None or columns is None or values is None or (number := _current_gpu()) is None:
        return None
    layouts = starts[1:], columns[1:], values[1:], other[1:]
    how = _settled_sparse(semiring, sparse.shape, layouts, other.address % 16, swapped, number, device, check)
    if how is None:
        return None
    plan, form, place, size = how
    if size > ALWAYS_FITS:
        require_room(place, size, "multiply some rows at a time")
    try:
        product, into = empty_beside(dense, form.shape, form.dtypes[0])
        own = starts.address, columns.address, values.address, other.address, into, 0
        return product if plan.finds_safe(own) else None
    except Exception:
        with on_device(place):
            raise


@functools.lru_cache(maxsize=1024)
def _settled_sparse(
    semiring: Semiring, shape: Shape, layouts: tuple[_Layout, ...], shift: int, swapped: bool, number: int, device: str, check: bool
) -> tuple[SparsePlan, ProductForm, str, int] | None:
    """Return the launches, the form, the GPU and the bytes of the result; None if an operand has to be converted."""
    starts, columns, values, (own, steps, dtype) = layouts
    place = gpu_name(number)
    if semiring.components > 1 or len(shape) != 2 or len(own) > 2 - swapped:
        return None
    if not is_gpu(named_device(device, place, exact=False) or "cpu"):
        return None
    left, right = ((own, dtype), (shape, values[2])) if swapped else ((shape, values[2]), (own, dtype))
    form = form_of(semiring, left[0], left[1:], right[0], right[1:], False)
    (m, depth), n, size = shape[::-1] if swapped else shape, math.prod(own[1:]), dtype.itemsize
    packed = all(step == (kind.itemsize,) for _, step, kind in (starts, columns, values)) and starts[2] == columns[2]
    in_rows = steps[0] == size if n == 1 else steps[1] == size and steps[0] % size == 0
    if not (form.kept and packed and in_rows) or starts[0] != (m + 1,) or columns[0] != values[0] or 0 in (m, depth, *form.full):
        return None
    entries = values[0][0]
    checks = checks_for(semiring, form.dtypes, max(entries, 1))
    asked = checks.asked(refuse=check)
    if asked and checks.safe is None:
        return None
    products: Any = sparse_products_for(semiring, form.dtypes, place, None)
    if n > 1 and not products.reaches_rows(steps[0]):
        return None
    safe = checks.safe if asked else None
    plan = products.plan((m, depth), entries, n, columns[2].itemsize, steps[0], shift, swapped=swapped, safe=safe)
    return plan, form, place, math.prod(form.full) * size
