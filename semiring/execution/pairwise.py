"""Executor of pairwise distances: read rows, ask for a plan, and compute blocks of rows × columns with the engine of products.

A block's sums are finished while they are in the cache. Then they are stored, or offered to the selection of the k best, so that nothing of
the size m × n is allocated. Threads of the CPU take blocks in turn. On a GPU, blocks are larger, and computed one after the other.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from semiring.algebra.catalogue import PLUS_TIMES
from semiring.algebra.definition import Semiring
from semiring.algebra.expression import Expr, evaluate
from semiring.algebra.ops import TABLE
from semiring.algorithms.metrics import Metric, finished, padded, summed
from semiring.algorithms.selection import BestEntries, best_entries
from semiring.arrays.devices import namespace, on_device, on_gpu, scratch_memory
from semiring.arrays.exchange import Restorer
from semiring.arrays.memory import require_bytes
from semiring.arrays.pieces import CACHE, GPU
from semiring.arrays.threads import run, thread_count
from semiring.common.errors import DomainError, SemiringError, ShapeError
from semiring.execution.operands import Arrays, Lent, arrays_of, common_dtypes, elements, matching, operand, require_one_place, restorer_of
from semiring.kernels.engine import Block
from semiring.planning import Plan, Problem, location, plan
from semiring.results.neighbours import Neighbours

__all__ = ["Neighbours", "RowsForm", "Wanted", "best_of_product", "pairwise_blocks"]

_ROWS = 128  # rows of a block on the CPU: packed columns are read as often
_FLOATS = np.dtype(np.float64)


class Wanted(NamedTuple):
    """The metric by its name, and the caller's options."""

    metric: Metric
    name: str
    semiring: Semiring | None = None  # the caller's own
    weights: Any = None  # or variances, for "seuclidean"
    k: int | None = None
    largest: bool = False
    condensed: bool = False
    out: Any = None
    device: str = "auto"
    threads: int | None = None
    check: bool = True
    names: str = "xy"  # or "ab" for a product, where the columns of b are compared


class RowsForm(NamedTuple):
    """The computation of one block: operations, dtypes, the function of the sums, and the rows with NaN."""

    semiring: Semiring
    sums: int  # the first components of an element
    finish: Expr | None
    total: float  # the number of features, or the sum of their weights
    table: dict[str, Callable[..., Any]]
    left: Arrays
    right: Arrays  # transposed
    nan: tuple[Any, Any]
    signed: bool = False  # see `Engine.signed`

    def finished(self, sums: Sequence[Any]) -> Any:
        """Return the function of the sums, a new array or the only sum."""
        if self.finish is None:
            return sums[0]
        with np.errstate(all="ignore"):
            (found,) = evaluate([self.finish], sums[: self.sums], (self.total,), self.table)
        return found if np.shape(found) == sums[0].shape else namespace(sums[0]).full(sums[0].shape, found)

    def mark(self, block: Any, rows: slice, columns: slice) -> None:
        """Write NaN where a row of x or y has one, because minima and choices may lose it."""
        for axis, (mask, some) in enumerate(zip(self.nan, (rows, columns), strict=True)):
            if mask is not None:
                block[(slice(None),) * axis + (mask[some],)] = np.nan


def pairwise_blocks(x: Any, y: Any, wanted: Wanted) -> Any:
    """Return the matrix, the condensed vector or the k best of each row, in the caller's kind of array."""
    alone, read = y is None, wanted.semiring or PLUS_TIMES
    lent_x = _numbers(operand(x, read, wanted.names[0]), wanted)
    lent_y = lent_x if alone else _numbers(operand(y, read, wanted.names[1]), wanted)
    product = wanted.names == "ab"
    m, n, d = _shapes(lent_x, lent_y, product)
    if product:
        lent_y = (replace(lent_y[0], array=lent_y[0].array.T),)
    if wanted.k is not None and wanted.k > n:
        has = f"b has {n} columns" if product else f"{'x' if alone else 'y'} has {n} rows"
        raise ShapeError(f"k is {wanted.k}, but {has}; pass a smaller k")
    semiring, count = (wanted.semiring, 1) if wanted.semiring else summed(wanted.metric, wanted.name, _has_factors(wanted))
    dtype = _dtype(lent_x, lent_y, semiring, wanted)
    dtypes = (dtype,) * semiring.components
    place = location((*arrays_of(lent_x), *arrays_of(lent_y)), wanted.device)
    problem = Problem("product", semiring, dtypes, (m, n), d, place, device=wanted.device, threads=wanted.threads)
    how = plan(problem)
    marked = padded(semiring) if how.gpu else None
    if marked is not None:
        how = plan(problem._replace(semiring=marked, dtypes=(dtype,) * marked.components))
    with on_device(how.device), scratch_memory() if how.gpu else nullcontext():
        rows = [
            elements(lent, (dtype,), read, name, how.device)[0]
            for lent, name in zip((lent_x, lent_y)[: 2 - alone], wanted.names, strict=False)
        ]
        form = _form(rows, count, wanted, how, marked=marked is not None)
        if not wanted.metric.floats:
            form = form._replace(signed=_checked(form, how, wanted))
        return _computed(form, how, (lent_x, lent_y), wanted)


def best_of_product(a: Any, b: Any, semiring: Semiring, k: int, device: str, threads: int | None, check: bool) -> Any:
    """Return the k best elements of each row of a ⊗ b: the smallest if zero is greater than one, as of min-plus, else the largest."""
    metric = Metric(semiring.mul, None, semiring.add, semiring.zero, weighs="", floats=False)
    largest, own = bool(semiring.zero < semiring.one), semiring.marked(False)
    return pairwise_blocks(
        a, b, Wanted(metric, own.name, own, k=k, largest=largest, device=device, threads=threads, check=check, names="ab")
    )


def _numbers(lent: Lent, wanted: Wanted) -> Lent:
    """Read truth values as 0 and 1 for a metric with a name."""
    (given,) = lent
    return (replace(given, array=given.array.view(np.int8)),) if wanted.metric.floats and given.array.dtype == bool else lent


def _has_factors(wanted: Wanted) -> bool:
    return wanted.metric.weighs == "variances" or (wanted.metric.weighs == "terms" and wanted.weights is not None)


def _checked(form: RowsForm, how: Plan, wanted: Wanted) -> bool:
    """Refuse rows as `matmul` does; return True if a finite element could pull ∞ back, for the engine of the CPU."""
    if not how.gpu:
        return how.checks.run((form.left, form.right), wanted.threads, refuse=wanted.check, names=wanted.names)[0]
    if wanted.check and how.checks.needed:
        how.checks.begin([*form.left, *form.right], lambda: (form.left, form.right))()
    return False


def _shapes(x: Lent, y: Lent, product: bool) -> tuple[int, int, int]:
    (m, *d), (n, *e) = x[0].array.shape or (0,), y[0].array.shape or (0,)
    if product:
        if len(d) != 1 or len(e) != 1 or d[0] != n:
            raise ShapeError(
                f"k= takes a matrix a of shape (m, k) and a matrix b of shape (k, n); got {x[0].array.shape} and {y[0].array.shape}"
            )
        return m, e[0], n
    if len(d) != 1 or len(e) != 1:
        raise ShapeError(f"x and y are matrices, a row an observation; got shapes {x[0].array.shape} and {y[0].array.shape}")
    if d != e:
        raise ShapeError(f"x of shape {(m, *d)} and y of shape {(n, *e)} do not fit: x has {d[0]} columns and y {e[0]}")
    return m, n, d[0]


def _dtype(x: Lent, y: Lent, semiring: Semiring, wanted: Wanted) -> np.dtype[Any]:
    """Return the dtype of the sums; metrics with a name compute with floats."""
    (left,), (right,) = ((p[0].array.dtype,) for p in (x, y))
    if not wanted.metric.floats:
        (found,) = common_dtypes((left,), (right,), PLUS_TIMES if wanted.semiring is None else wanted.semiring)
        semiring.identities((found,) * semiring.components)
        return found
    (found,) = common_dtypes((left,), (right,), PLUS_TIMES)
    return found if found.kind == "f" else _FLOATS


def _form(rows: list[Any], count: int, wanted: Wanted, how: Plan, *, marked: bool) -> RowsForm:
    """Prepare rows and weights on the device of the computation; `padded` says what a marked semiring is."""
    metric, xp = wanted.metric, namespace(rows[0])
    weights = _weights(wanted, rows, xp)
    total = float(rows[0].shape[1] if weights is None else weights.sum())
    if metric.weighs == "selects" and weights is not None:
        rows, weights = [v[:, weights > 0] for v in rows], None
    if metric.truth:
        rows = [xp.where(v == v, v != 0, v) for v in rows]  # NaN stays
    if metric.prepare is not None:
        rows, weights = [metric.prepare(v, weights) for v in rows], None
    masks = [_nan_rows(v, metric) if metric.floats else None for v in rows]
    extra = [] if weights is None else [xp.broadcast_to(weights, rows[-1].shape)]
    width = how.semiring.components
    y = [rows[-1], *extra, *(rows[-1],) * width][: width - marked] + [xp.ones_like(rows[-1])] * marked
    left, right = (rows[0],) * width, tuple(map(_columns if how.gpu else _transposed, y))
    table = dict(TABLE) if rows[0].dtype == object else TABLE | {"min": xp.minimum, "max": xp.maximum}  # which keep NaN
    if on_gpu(rows[0]):
        table |= {name: getattr(xp, name) for name in ("exp", "expm1", "log", "log1p", "sqrt", "where")} | {"not": xp.logical_not}
        table |= {"div": xp.true_divide, "floordiv": xp.floor_divide, "mod": xp.remainder}
    return RowsForm(how.semiring, count, finished(metric, count), total, table, left, right, (masks[0], masks[-1]))


def _transposed(rows: Any) -> Any:
    return np.ascontiguousarray(rows.T)


def _columns(rows: Any) -> Any:
    """Copy the transpose on a GPU into rows that begin at multiples of a vector."""
    from semiring.kernels.cuda.blocks import aligned_copy

    return aligned_copy(Block((rows[None],)), transposed=True).values[0][0] if rows.size else rows.T


def _weights(wanted: Wanted, rows: list[Any], xp: Any) -> Any:
    """Read the weights in the dtype of the rows, or the variances, whose weights are 1 / V."""
    variances = wanted.metric.weighs == "variances"
    if wanted.weights is None:
        if not variances:
            return None
        together = xp.concatenate(rows)
        with np.errstate(all="ignore"):
            centred = together - together.sum(axis=0, dtype=np.float64) / len(together)
            return ((len(together) - 1) / (centred * centred).sum(axis=0)).astype(rows[0].dtype)
    if not wanted.metric.weighs:
        raise SemiringError(f"{wanted.name} takes no weights; sums take them, so leave out weights=, or multiply them within mul")
    given, d = operand(wanted.weights, PLUS_TIMES, "weights")[0].array, rows[0].shape[1]
    if given.shape != (d,):
        raise ShapeError(f"{'V' if variances else 'weights'} has shape {given.shape}; x has {d} columns, so it must be ({d},)")
    found = xp.asarray(given.get() if on_gpu(given) and xp is np else given).astype(rows[0].dtype)
    if not bool((found >= 0).all()):
        raise DomainError(f"{'V' if variances else 'weights'} must have numbers from 0, without NaN")
    with np.errstate(all="ignore"):
        return 1 / found if variances else found


def _nan_rows(rows: Any, metric: Metric) -> Any:
    """Return the mask of rows with NaN, or None; a row without features has no length."""
    mask = (rows != rows).any(axis=1) | (metric.prepare is not None and not rows.shape[1])
    return mask if bool(mask.any()) else None


def _computed(form: RowsForm, how: Plan, lent: tuple[Lent, Lent], wanted: Wanted) -> Any:
    """Compute all blocks into an array or a selection, and return the caller's kind of array."""
    m, n = how.problem.shape
    sent = how.gpu and not how.problem.there
    xp = namespace(form.left[0])
    dtype = np.dtype(form.finished([xp.empty((0, 0), d) for d in how.dtypes]).dtype)
    shape = (m, wanted.k) if wanted.k is not None else (m * (m - 1) // 2,) if wanted.condensed else (m, n)
    lent_out = () if wanted.out is None else operand(wanted.out, PLUS_TIMES, "out")
    target = matching(lent_out, (dtype,), shape, "out", exact=True)[0] if lent_out else None
    require_one_place(*lent, (), None, None if target is None else (target,), there=how.problem.there, names=(*wanted.names, ""))
    if target is None:
        needed = math.prod(shape) * (dtype.itemsize + (8 if wanted.k is not None else 0))
        require_bytes(needed, "the result takes", "pass fewer rows of x at a time, or k= for the nearest only", how.device)
    restore = restorer_of(lent_out or (*lent[0], *lent[1]))
    if wanted.k is not None:
        return Neighbours(*(_returned(v, restore, sent) for v in _selected(form, how, wanted, wanted.k, dtype)))
    shared = target is not None and not sent and any(xp.may_share_memory(target, v) for v in (*form.left, *form.right))
    apart = target is None or sent or shared or (how.gpu and not target.flags.c_contiguous)
    result: Any = xp.empty(shape, dtype) if apart else target
    if wanted.condensed:

        def store(rows: slice, first: int, block: Any) -> None:
            for i in range(rows.start, min(rows.stop, first + block.shape[1])):
                begin = max(0, i + 1 - first)  # columns right of the diagonal
                at = i * (2 * m - i - 1) // 2 + first + begin - i - 1
                result[at : at + block.shape[1] - begin] = block[i - rows.start, begin:]

        _visit(form, how, wanted, store, None)
    else:
        _visit(form, how, wanted, None, result)
    if target is None:
        return _returned(result, restore, sent)
    if target is not result:
        target[...] = result.get() if sent else result
    return wanted.out


def _selected(form: RowsForm, how: Plan, wanted: Wanted, k: int, dtype: np.dtype[Any]) -> tuple[Any, Any]:
    """Return the k best entries of each row, and their columns: on a GPU by one kernel, else by blocks."""
    if how.gpu and dtype == how.dtypes[0]:
        from semiring.kernels.cuda.selection import SelectionForm, best_of_rows, has_selection

        selection = SelectionForm(form.semiring, how.dtypes, form.finish, wanted.largest)
        if has_selection(selection, k, how.problem.depth):
            values, columns = best_of_rows(selection, form.left, form.right, k, form.total, form.nan)
            return (values, columns) if values.shape[1] == k else best_entries(values, columns, k, largest=wanted.largest)
    best = BestEntries(namespace(form.left[0]).empty((0, 0), dtype), how.problem.shape[0], k, largest=wanted.largest)
    _visit(form, how, wanted, best.offer, None)
    return best.result()


def _returned(array: Any, restore: Restorer | None, sent: bool) -> Any:
    if sent:
        from semiring.kernels.cuda.blocks import download

        array = download(array)
    return array if restore is None else restore(array)


def _finished_in(out: Any, form: RowsForm, sums: tuple[Any, ...]) -> Any:
    """Write the function of the sums to a part of the result on a GPU, which may be the only sum, and return the part."""
    from semiring.kernels.cuda.selection import finish_sums

    if form.finish is not None:
        finish_sums(form.finish, (out,) if len(sums) == 1 else sums[: form.sums], form.total, out)
    elif len(sums) > 1:
        out[...] = sums[0]
    return out


def _visit(form: RowsForm, how: Plan, wanted: Wanted, take: Callable[[slice, int, Any], None] | None, result: Any) -> None:
    """Compute all blocks; write each to `result`, or pass each to `take` with the rows and the first column.

    Blocks of the same rows follow each other in one thread, from left to right.
    """
    (m, n), width = how.problem.shape, form.semiring.components
    xp, direct = namespace(form.left[0]), take is None and width == 1 and result.dtype == how.dtypes[0]
    cached = not how.gpu and (form.finish is not None or not direct)
    columns = (n if how.gpu else min(n, CACHE // _ROWS // width if cached else 8 * GPU // _ROWS)) or 1
    threads = 1 if how.gpu else thread_count(wanted.threads)
    in_place = how.gpu and take is None and result.dtype == how.dtypes[0] and result.dtype.kind == "f"
    rows = _ROWS if not how.gpu else m if direct and (in_place or form.finish is None) else 4 * GPU // columns
    rows = max(1, min(rows, -(-m // (2 * threads)) if not how.gpu else m))
    starts = [slice(i, min(m, i + rows)) for i in range(0, m, rows)]
    inner = max(1, threads // max(1, len(starts)))
    planned = how if how.gpu else plan(how.problem._replace(threads=inner))

    def visit(some: slice, slot: int) -> None:
        first = some.start + 1 if wanted.condensed else 0
        engine: Any = planned.engine()
        engine.signed, engine.asynchronous = form.signed, how.gpu
        A = engine.load(tuple([v[some] for v in form.left]), owned=False)
        for j in range(first - first % columns, n, columns):
            part = slice(j, min(n, j + columns))
            B = engine.load(tuple([v[:, part] for v in form.right]), owned=False)
            size = some.stop - some.start, part.stop - part.start
            sums = (result[some, part],) if direct else tuple([xp.empty(size, d) for d in how.dtypes])
            C = engine.blank(sums)
            engine.multiply(A, B, C)
            engine.store(C, sums)
            block = _finished_in(result[some, part], form, sums) if in_place else form.finished(sums)
            form.mark(block, some, part)
            if take is not None:
                take(some, j, block)
            elif not in_place and (block is not sums[0] or not direct):
                result[some, part] = block

    run(visit, starts, threads)
