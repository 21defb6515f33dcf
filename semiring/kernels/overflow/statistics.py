"""Value statistics: the range, signs, infinities, NaN and zeros of arrays, by one pass over each."""

from __future__ import annotations

import functools
import importlib
import operator
from collections.abc import Callable, Iterator, Sequence
from types import ModuleType
from typing import Any

import numpy as np

from semiring.algebra.definition import Semiring
from semiring.arrays.conversion import Array
from semiring.arrays.devices import on_gpu
from semiring.arrays.threads import run, thread_count
from semiring.common.errors import SemiringError
from semiring.common.forks import importing
from semiring.kernels.limits import DTypes, RawStatistics, ValueStatistics, absorbing, interpreted, statistics_by_numpy

__all__ = ["SMALL", "as_stored", "begin_statistics", "gpu_kernels", "kernel_for", "surely_elements", "value_statistics"]

_PIECE, SMALL = 1 << 22, 1 << 20
"""Bytes that a thread reads at a time (a second thread pays from twice as many on); the most bytes of an array read in one call."""


def value_statistics(
    arrays: Sequence[Any], infinities: tuple[int, ...] = (), *, off_diagonal_from: int | None = None, threads: int | None = None
) -> tuple[ValueStatistics, ...]:
    """Return the value statistics of arrays, each read once: on the host, or all on one GPU.

    Arrays of objects have empty statistics. `infinities` are the ends of integer dtypes that stand for ±∞. With `off_diagonal_from`, arrays
    are block rows of matrices (…, n, n) from this row on, and only zeros off the diagonal are counted.
    """
    if off_diagonal_from is not None:
        diagonals = [v.diagonal(off_diagonal_from, -2, -1)[..., None, :] for v in arrays]
        found = value_statistics([*arrays, *diagonals], infinities, threads=threads)
        pairs = zip(found[: len(arrays)], found[len(arrays) :], strict=True)
        return tuple(whole._replace(zeros=whole.zeros - diagonal.zeros) for whole, diagonal in pairs)
    if type(arrays[0]) is not np.ndarray and on_gpu(arrays[0]):
        return begin_statistics(arrays, infinities)()
    return tuple(_on_host(arrays, infinities, threads))


def begin_statistics(arrays: Sequence[Any], infinities: tuple[int, ...] = ()) -> Callable[[], tuple[ValueStatistics, ...]]:
    """Start `value_statistics` on a GPU; return a function that waits for the results."""
    if not on_gpu(arrays[0]):
        found = value_statistics(arrays, infinities)
        return lambda: found
    wait, dtypes = gpu_kernels().begin(arrays), [v.dtype for v in arrays]
    return lambda: tuple(interpreted(raw, dtype, infinities) for raw, dtype in zip(wait(), dtypes, strict=True))


@functools.cache
def gpu_kernels() -> ModuleType:
    """Return the module of a GPU's kernels, imported at its first use."""
    with importing:
        return importlib.import_module("semiring.kernels.cuda.statistics")


def surely_elements(semiring: Semiring, values: Sequence[Any], statistics: Sequence[ValueStatistics] | None = None) -> bool:
    """Return True if value statistics, given or computed, prove that the arrays hold only elements; False proves nothing."""
    dtypes = tuple([v.dtype for v in values])
    bounds = _bounds(semiring, dtypes)
    if bounds is None or not any(bounds):
        return bounds is not None
    found = statistics or value_statistics(values, absorbing(semiring, dtypes))
    return False not in [some.lies_within(*ends) for ends, some in zip(bounds, found, strict=True) if ends is not None]


@functools.lru_cache(maxsize=256)
def _bounds(semiring: Semiring, dtypes: DTypes) -> tuple[tuple[Any, Any] | None, ...] | None:
    return semiring.carrier.bounds(dtypes)


def _on_host(arrays: Sequence[Array], infinities: tuple[int, ...], threads: int | None) -> list[ValueStatistics]:
    """Read small arrays of one dtype in one call of the kernel, others piece by piece on several threads."""
    dtype, small = arrays[0].dtype, arrays[0].dtype.kind != "O"
    arrays = list(map(as_stored, arrays))
    for v in arrays:
        small = small and v.dtype == dtype and v.nbytes <= SMALL and (v.ndim == 2 or v.flags.forc)
    if small:
        return [interpreted(raw, dtype, infinities) for raw in kernel_for(dtype)(arrays)]
    pieces = [list(_pieces(v)) for v in arrays]
    parts = [p for some in pieces for p in some]
    each = [ValueStatistics()] * len(parts)

    def work(i: int, _: int) -> None:
        dtype = parts[i].dtype
        each[i] = interpreted(kernel_for(dtype)(parts[i : i + 1])[0], dtype, infinities)

    large = sum(p.nbytes for p in parts) >= 2 * _PIECE
    run(work, range(len(parts)), thread_count(threads) if large else 1)
    if len(parts) == len(arrays):
        return each
    rest = iter(each)
    return [functools.reduce(operator.or_, (next(rest) for _ in some), ValueStatistics()) for some in pieces]


def as_stored(v: Array) -> Array:
    """Sort the axes of three or more by stride, so that a stack of transposed matrices becomes contiguous."""
    if v.ndim <= 2 or v.flags.forc:
        return v
    return v.transpose(sorted(range(v.ndim), key=lambda axis: -abs(v.strides[axis])))


def _pieces(values: Array) -> Iterator[Array]:
    """Yield parts that are contiguous or two-dimensional, of at most `_PIECE` bytes or one row."""
    if values.dtype.kind == "O":
        return
    if values.flags.forc:
        if values.nbytes <= _PIECE:
            yield values
            return
        values, step = values.reshape(-1, order="A"), _PIECE // values.itemsize
    elif values.ndim > 2:
        shortest = int(np.argmin(values.shape))
        for part in np.moveaxis(values, shortest, 0):
            yield from _pieces(part)
        return
    else:
        values = np.atleast_2d(values)
        if values.strides[0] == values.itemsize:
            values = values.T
        step = max(1, _PIECE // (values.shape[1] * values.itemsize))
    for start in range(0, len(values), step):
        yield values[start : start + step]


@functools.cache
def kernel_for(dtype: np.dtype[Any]) -> Callable[[Sequence[Array]], list[RawStatistics]]:
    """Return the kernel for arrays that are contiguous or two-dimensional: compiled, or NumPy on processors without kernels."""
    with importing:
        from semiring.kernels.cpu.statistics import statistics_kernel

    try:
        return statistics_kernel(dtype)
    except SemiringError:  # a processor without kernels, on which the reference engine computes
        return lambda parts: list(map(statistics_by_numpy, parts))
