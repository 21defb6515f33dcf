"""What a closure by block rows does around its algorithm: memory for the results, devices, plan, a look at the matrix, progress."""

from __future__ import annotations

import functools
import logging
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from semiring.algebra.definition import Semiring
from semiring.algebra.namespace import namespace, on_gpu
from semiring.algorithms.by_rows import closure_by_rows, visit
from semiring.algorithms.laws import require_closure_laws
from semiring.graphs.by_rows import GivenRows, Inspection
from semiring.graphs.memory import require_memory
from semiring.kernels.devices import device_of, gpu_number, is_gpu, on_device
from semiring.kernels.engine import Engine
from semiring.kernels.select import engine_for
from semiring.kernels.streaming.checkpoint import Checkpoint
from semiring.kernels.streaming.host import HostCarrier
from semiring.kernels.streaming.lane import Lane
from semiring.kernels.streaming.plan import Plan, Speed
from semiring.kernels.streaming.speed import measured
from semiring.kernels.streaming.storage import Matrix, Rows, rows_of
from semiring.kernels.survey import Survey
from semiring.options import Options
from semiring.progress import reporting
from semiring.route import Large

__all__ = ["close_by_rows", "speed_of"]

Array = np.ndarray[Any, Any]
Values = tuple[Any, ...]

_log = logging.getLogger("semiring")

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
            return _Work(_with_whole_rows(given), semiring, options, large).close(names, reflexive=reflexive, paths=paths)
    finally:
        _free_pools(large)


@dataclass(frozen=True)
class _Work:
    """What is closed by block rows, and how."""

    given: GivenRows
    semiring: Semiring
    options: Options
    large: Large

    def close(self, names: Sequence[Any] | None, *, reflexive: bool, paths: bool) -> tuple[Values, Any]:
        """Everything from the memory for the results to their last row."""
        given, options, large = self.given, self.options, self.large
        in_place = options.overwrite and given.as_they_are and given.overwritable
        with ExitStack() as stack:
            checkpoint: Checkpoint | None = None
            if options.checkpoint is None:
                values, via, matrix = self.destination(stack, in_place=in_place, paths=paths)
            else:
                how: dict[str, Any] = {"reflexive": reflexive, "paths": paths, "device": large.devices[0], "overwrite": in_place}
                how |= {"block": options.block, "threads": options.threads}
                checkpoint = stack.enter_context(Checkpoint(options.checkpoint, given.rows, self.semiring, **how))
                values, via, matrix = checkpoint.values, checkpoint.via, checkpoint.matrix
            if large.gpu:
                from semiring.kernels.cuda.transfer import locked

                stack.enter_context(locked(a for a in given.arrays if type(a) is np.ndarray and a.flags.c_contiguous))
            plan = self.plan(matrix, None if checkpoint is None else checkpoint.side)
            _log.info("%s", plan)
            lanes = [stack.enter_context(lane) for lane in self.lanes(matrix, plan)]
            seen = self.seen(lanes, plan, checkpoint)
            start = time.perf_counter()
            with reporting(options.progress, plan) as progress:
                closure_by_rows(
                    lanes,
                    plan.rows,
                    values,
                    via,
                    seen,
                    reflexive=reflexive,
                    kept=functools.cache(lambda: None if in_place else given.whole()),
                    names=names,
                    progress=progress,
                    journal=checkpoint,
                )
            if checkpoint is not None:
                checkpoint.seal()
            _log.info("%.3g s instead of %.3g s", time.perf_counter() - start, plan.seconds)
        return values, via

    def destination(self, stack: ExitStack, *, in_place: bool, paths: bool) -> tuple[Values, Any, Matrix]:
        """Arrays for the values and the construction matrix, and the matrix whose results go there."""
        given = self.given
        shape, kinds = (given.n, given.n), (*(() if in_place else given.dtypes), *((np.dtype(np.int32),) if paths else ()))
        new: Values
        rows: tuple[Rows, ...]
        if on_gpu(given.arrays[0]):
            new = tuple(namespace(given.arrays[0]).empty(shape, d) for d in kinds)
            rows = tuple(map(rows_of, new))
        else:
            overwriting_helps = given.as_they_are and given.overwritable
            require_memory(given.n, () if in_place else given.dtypes, via=paths, overwriting_helps=overwriting_helps)
            if self.large.gpu:
                from semiring.kernels.cuda.landing import Landing

                landing = stack.enter_context(Landing(shape, kinds))
                new, rows = landing.arrays, landing.rows
            else:
                new = tuple(np.empty(shape, d) for d in kinds)
                rows = tuple(map(rows_of, new))
        if in_place:
            new, rows = (*given.arrays, *new), (*given.rows, *rows)
        count = len(given.dtypes)
        via = (new[-1], rows[-1]) if paths else (None, None)
        return new[:count], via[0], Matrix(given.rows, rows[:count], via[1])

    def engine(self, device: str) -> Engine:
        """What computes there."""
        return engine_for(self.semiring, self.given.dtypes, device, self.options.threads, witness=True)

    def plan(self, matrix: Matrix, begun: int | None) -> Plan:
        """The cut of the matrix; the one with which a checkpoint has `begun`, if it has."""
        row_bytes, device = self.given.row_bytes(paths=matrix.via is not None), self.large.devices[0]
        speed = speed_of(self.engine(device), matrix, device, self.given.n, self.large.room // (2 * row_bytes))
        return self.large.plan(self.given.n, row_bytes, speed, begun)

    def lanes(self, matrix: Matrix, plan: Plan) -> list[Lane]:
        """One for each device."""
        devices = self.large.devices
        engines = [self.engine(device) for device in devices]
        if self.large.resident:
            from semiring.kernels.cuda.several import lanes_for

            return lanes_for([gpu_number(d) for d in devices], engines, matrix, plan.rows)
        return [Lane(engine, _carrier(matrix, d), plan.buffers, plan.side) for engine, d in zip(engines, devices, strict=True)]

    def seen(self, lanes: Sequence[Lane], plan: Plan, checkpoint: Checkpoint | None) -> tuple[Survey, ...]:
        """What the entries are: looked at now, or when the checkpoint was begun, whose input may be half overwritten."""
        if checkpoint is not None and checkpoint.side is not None:
            return tuple(Survey(None if finite is None else tuple(finite), *kinds) for finite, *kinds in checkpoint.found["seen"])
        given = self.given
        inspection = Inspection(self.semiring, given.dtypes, warn=self.options.nonedge is None and not given.looked_at)
        visit(lanes, plan.rows, inspection.look)
        inspection.warn()
        if checkpoint is not None:
            checkpoint.begin(plan.side, {"seen": inspection.seen})
        return inspection.seen


def _with_whole_rows(given: GivenRows) -> GivenRows:
    """The matrix itself, or a copy where it lies on a GPU and its rows are not contiguous: GPUs copy no others from each other."""

    def whole(array: Any) -> bool:
        return not on_gpu(array) or (array.strides[1] == array.itemsize and array.strides[0] >= array.itemsize * given.n)

    arrays = tuple(v if whole(v) else v.copy(order="C") for v in given.arrays)
    same = all(v is w for v, w in zip(arrays, given.arrays, strict=True))
    return given if same else replace(given, rows=tuple(map(rows_of, arrays)), arrays=arrays)


def speed_of(engine: Engine, matrix: Matrix, device: str, n: int, most: int | None = None) -> Speed:
    """The speed of a device with the first rows of a matrix, `most` of them at most."""
    gpu = is_gpu(device)
    rows = max(engine.granule, _GPU_TRIAL if gpu else _CPU_TRIAL)
    speed = measured(engine, _carrier(matrix, device), n, rows if most is None else max(1, min(rows, most)))
    if gpu:
        from semiring.kernels.cuda.streaming import free_pools

        free_pools([gpu_number(device)])
    return speed


def _carrier(matrix: Matrix, device: str) -> Any:
    if device == "cpu":
        return HostCarrier(matrix)
    from semiring.kernels.cuda.streaming import CudaCarrier

    return CudaCarrier(matrix, gpu_number(device))


def _free_pools(large: Large) -> None:
    if large.gpu:
        from semiring.kernels.cuda.streaming import free_pools

        free_pools(gpu_number(d) for d in large.devices)
