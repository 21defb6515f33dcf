"""What a closure by block rows does around its algorithm: memory for the results, devices, plan, a look at the matrix, progress."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

import numpy as np

from semiring.algebra.definition import Semiring
from semiring.algebra.namespace import namespace, on_gpu
from semiring.algorithms.by_rows import closure_by_rows, visit
from semiring.algorithms.closure import require_closure_laws
from semiring.graphs.by_rows import GivenRows, Inspection
from semiring.graphs.memory import require_memory
from semiring.kernels.select import device_of, engine_for, on_device
from semiring.kernels.streaming.checkpoint import Checkpoint
from semiring.kernels.streaming.host import HostCarrier
from semiring.kernels.streaming.lane import Lane
from semiring.kernels.streaming.plan import Plan, choose_plan
from semiring.kernels.streaming.resident import resident_plan
from semiring.kernels.streaming.speed import measured
from semiring.kernels.streaming.storage import Matrix, rows_of
from semiring.kernels.survey import Survey
from semiring.large import Large
from semiring.options import Options
from semiring.progress import reporting

__all__ = ["close_by_rows"]

Array = np.ndarray[Any, Any]
Values = tuple[Any, ...]

_log = logging.getLogger("semiring")

_PAGE = 4096

_CPU_TRIAL, _GPU_TRIAL = 256, 2048
"""Rows with which speeds are tried: enough to keep a device busy."""


def close_by_rows(
    given: GivenRows,
    semiring: Semiring,
    options: Options,
    large: Large,
    names: Sequence[Any] | None = None,
    *,
    reflexive: bool,
    paths: bool,
) -> tuple[Values, Any]:
    """The closure's values and construction matrix (None without paths), in new arrays, the caller's own, or those of a checkpoint.

    Parameters
    ----------
    given : GivenRows
    semiring : Semiring
    options : Options
    large : Large
        From `route`.
    names : sequence, optional
        The caller's names of the vertices, for errors.
    reflexive, paths : bool

    Raises
    ------
    TooLargeError
        Where not even a few block rows fit the limit, or the results do not fit the host.
    CheckpointError
        Where the folder has something else, or the checkpoint of another closure.
    SemiringError
        And the other errors of `closure`.
    """
    require_closure_laws(semiring, given.dtypes, paths=paths)
    try:
        with on_device(device_of(given.arrays[0]) if on_gpu(given.arrays[0]) else large.devices[0]):
            return _closed(_with_whole_rows(given), semiring, options, large, names, reflexive=reflexive, paths=paths)
    finally:
        _free_pools(large)


def _closed(
    given: GivenRows, semiring: Semiring, options: Options, large: Large, names: Sequence[Any] | None, *, reflexive: bool, paths: bool
) -> tuple[Values, Any]:
    in_place = options.overwrite and given.as_they_are and given.overwritable
    with ExitStack() as stack:
        checkpoint: Checkpoint | None = None
        if options.checkpoint is None:
            values, via = _results(given, in_place=in_place, paths=paths)
            matrix = Matrix(given.rows, tuple(map(rows_of, values)), None if via is None else rows_of(via))
        else:
            how: dict[str, Any] = {"reflexive": reflexive, "paths": paths, "device": large.devices[0], "overwrite": in_place}
            checkpoint = stack.enter_context(Checkpoint(options.checkpoint, given.rows, semiring, **how))
            values, via, matrix = checkpoint.values, checkpoint.via, checkpoint.matrix
        if large.gpu:
            from semiring.kernels.cuda.transfer import locked

            memory = (a for a in (*given.arrays, *values, via) if type(a) is np.ndarray and a.flags.c_contiguous)
            stack.enter_context(locked(memory))
        plan = _plan(given, semiring, options, large, matrix, None if checkpoint is None else checkpoint.side)
        _log.info("%s", plan)
        lanes = [stack.enter_context(lane) for lane in _lanes(given, semiring, options, large, matrix, plan)]
        seen = _seen(lanes, plan, given, semiring, options, checkpoint)
        start = time.perf_counter()
        with reporting(options.progress, plan) as progress:
            closure_by_rows(
                lanes,
                plan.rows,
                values,
                via,
                seen,
                reflexive=reflexive,
                kept=lambda: None if in_place or not given.as_they_are else given.arrays,
                names=names,
                progress=progress,
                journal=checkpoint,
            )
        if checkpoint is not None:
            checkpoint.seal()
        _log.info("%.3g s instead of %.3g s", time.perf_counter() - start, plan.seconds)
    return values, via


def _with_whole_rows(given: GivenRows) -> GivenRows:
    """The matrix itself, or a copy where it lies on a GPU and its rows are not contiguous: GPUs copy no others from each other."""

    def whole(array: Any) -> bool:
        return not on_gpu(array) or (array.strides[1] == array.itemsize and array.strides[0] >= array.itemsize * given.n)

    arrays = tuple(v if whole(v) else v.copy(order="C") for v in given.arrays)
    same = all(v is w for v, w in zip(arrays, given.arrays, strict=True))
    return given if same else replace(given, rows=tuple(map(rows_of, arrays)), arrays=arrays)


def _seen(
    lanes: Sequence[Lane], plan: Plan, given: GivenRows, semiring: Semiring, options: Options, checkpoint: Checkpoint | None
) -> tuple[Survey, ...]:
    """What the entries are: looked at now, or when the checkpoint was begun, whose input may be half overwritten."""
    if checkpoint is not None and checkpoint.side is not None:
        return tuple(Survey(None if finite is None else tuple(finite), *kinds) for finite, *kinds in checkpoint.found["seen"])
    inspection = Inspection(semiring, given.dtypes, warn=options.nonedge is None and not given.looked_at)
    visit(lanes, plan.rows, inspection.look)
    inspection.warn()
    if checkpoint is not None:
        checkpoint.begin(plan.side, {"seen": inspection.seen})
    return inspection.seen


def _plan(given: GivenRows, semiring: Semiring, options: Options, large: Large, matrix: Matrix, begun: int | None) -> Plan:
    """The cut of the matrix; the one with which a checkpoint has `begun`, if it has."""
    row_bytes = given.row_bytes(paths=matrix.via is not None)
    tried = max(1, min(_GPU_TRIAL if large.gpu else _CPU_TRIAL, large.limit // (2 * row_bytes)))
    engine = engine_for(semiring, given.dtypes, large.devices[0], options.threads, witness=True)
    speed = measured(engine, _carrier(matrix, large.devices[0]), given.n, tried)
    _free_pools(large)
    side = begun if begun is not None else large.side
    if large.resident:
        return resident_plan(given.n, row_bytes, speed, len(large.devices), side)
    return choose_plan(given.n, row_bytes, large.limit, speed, devices=len(large.devices), side=side)


def _lanes(given: GivenRows, semiring: Semiring, options: Options, large: Large, matrix: Matrix, plan: Plan) -> list[Lane]:
    engines = [engine_for(semiring, given.dtypes, device, options.threads, witness=True) for device in large.devices]
    if large.resident:
        from semiring.kernels.cuda.several import lanes_for

        return lanes_for([int(d[5:]) for d in large.devices], engines, matrix, plan.rows)
    carriers = [_carrier(matrix, device) for device in large.devices]
    return [Lane(e, c, plan.buffers, plan.side) for e, c in zip(engines, carriers, strict=True)]


def _free_pools(large: Large) -> None:
    if large.gpu:
        from semiring.kernels.cuda.streaming import free_pools

        free_pools(int(d[5:]) for d in large.devices)


def _carrier(matrix: Matrix, device: str) -> Any:
    if device == "cpu":
        return HostCarrier(matrix)
    from semiring.kernels.cuda.streaming import CudaCarrier

    return CudaCarrier(matrix, int(device[5:]))


def _results(given: GivenRows, *, in_place: bool, paths: bool) -> tuple[Values, Any]:
    """Arrays for the values and the construction matrix."""
    shape = (given.n, given.n)
    if on_gpu(given.arrays[0]):
        xp = namespace(given.arrays[0])
        values = given.arrays if in_place else tuple(xp.empty(shape, d) for d in given.dtypes)
        return values, xp.empty(shape, np.int32) if paths else None
    require_memory(given.n, () if in_place else given.dtypes, via=paths, overwriting_helps=given.as_they_are and given.overwritable)
    values = given.arrays if in_place else tuple(_ready(shape, d) for d in given.dtypes)
    return values, _ready(shape, np.dtype(np.int32)) if paths else None


def _ready(shape: tuple[int, int], dtype: np.dtype[Any]) -> Array:
    """Memory whose pages are there already: they come about faster by several threads, and no copy has to wait for them."""
    array = np.empty(shape, dtype)
    pages = array.reshape(-1).view(np.uint8)[::_PAGE]
    parts = np.array_split(pages, os.cpu_count() or 1)
    with ThreadPoolExecutor(len(parts)) as threads:
        list(threads.map(lambda part: part.fill(0), parts))
    return array
