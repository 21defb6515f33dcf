"""The closure of a matrix by block rows: output, checkpoint, device pipelines, value statistics, closure."""

from __future__ import annotations

import functools
import logging
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np

from semiring.arrays.devices import device_of, gpu_number, is_gpu, namespace, on_device, on_gpu
from semiring.arrays.memory import require_memory
from semiring.common.errors import CheckpointError
from semiring.common.progress import Meter
from semiring.common.units import duration
from semiring.execution.question import GivenGraph, Question, Selection, Values
from semiring.execution.whole import made_of_edges, paths_of, shares
from semiring.graphs import Graph
from semiring.graphs.by_rows import GivenRows, rows_of_graph
from semiring.graphs.dense import RunningStatistics
from semiring.kernels.engine import Engine
from semiring.kernels.limits import ValueStatistics
from semiring.kernels.select import engine_for
from semiring.planning import Plan
from semiring.planning.block_rows import cut
from semiring.streaming.checkpoint import Checkpoint
from semiring.streaming.closure import closure_by_rows, visit
from semiring.streaming.dependencies import Share
from semiring.streaming.folder import state_in
from semiring.streaming.layout import BlockCyclicDistribution, BlockRows
from semiring.streaming.pipeline import DeviceMemory, DevicePipeline, HostMemory
from semiring.streaming.snapshots import Snapshots
from semiring.streaming.storage import Matrix, RowStorage, rows_of

__all__ = ["Kept", "close", "free_pools_of", "gathered_statistics", "memory_on", "opened"]

Kept = Checkpoint | Snapshots
F = TypeVar("F", bound=Kept)

_log = logging.getLogger("semiring")


def close(how: Plan, given: GivenGraph, question: Question, selection: Selection | None, meter: Meter | None) -> Any:
    """Run a plan of strategy "block rows": results are in new arrays, the caller's own, or those of a checkpoint.

    Raises TooLargeError if the results do not fit the host, and CheckpointError for a folder with anything but its checkpoint.
    """
    matrix, overwrite = given.matrix, question.options.overwrite
    if matrix is not None and matrix.plain and given.graph is None:
        rows, graph = matrix.rows(), Graph(matrix.arrays, owned=False)
    else:
        graph = given.read() if given.edges is None else made_of_edges(how, given)
        rows, overwrite = rows_of_graph(graph), graph.owned
    device = device_of(rows.arrays[0]) if on_gpu(rows.arrays[0]) else how.device
    with ExitStack() as stack:
        stack.enter_context(on_device(device))
        stack.callback(free_pools_of, how.devices)
        values, via = _closed(how, _with_whole_rows(rows), question, graph.labels, meter, stack, overwrite=overwrite)
    if via is None:
        return graph.answer(*values)
    unchanged = rows.as_they_are and not any(shares(v, w) for v, w in zip(values, rows.arrays, strict=True))
    snapshot = rows.arrays if unchanged else None
    return paths_of(how.semiring, graph, values, via, lambda: snapshot, reflexive=question.reflexive)


def _closed(
    how: Plan, given: GivenRows, question: Question, names: Sequence[Any] | None, meter: Meter | None, stack: ExitStack, *, overwrite: bool
) -> tuple[Values, Any]:
    """Compute the values and the construction matrix."""
    folder, in_place = question.options.checkpoint, overwrite and given.as_they_are and given.overwritable
    checkpoint: Checkpoint | None = None
    if folder is None:
        values, via, matrix = _output(how, given, stack, in_place=in_place)
    else:
        state = state_in(folder)
        if state is not None and state.closure.get("kept") == Snapshots.kept:
            return _result_of_ranks(opened(Snapshots, given, how, question))
        checkpoint = stack.enter_context(opened(Checkpoint, given, how, question, overwrite=in_place))
        values, via, matrix = checkpoint.values, checkpoint.via, checkpoint.matrix
    if how.gpu:
        from semiring.kernels.cuda.blocks import locked

        stack.enter_context(locked(a for a in given.arrays if type(a) is np.ndarray and a.flags.c_contiguous))
    if checkpoint is not None and checkpoint.side is not None:
        how = cut(how, checkpoint.side)
    rows = how.rows
    assert rows is not None
    _log.info("%s", rows)
    pipelines = [stack.enter_context(pipeline) for pipeline in _pipelines(how, matrix, rows)]
    statistics = gathered_statistics(pipelines, given, rows, question, checkpoint)
    start = time.perf_counter()
    closure_by_rows(
        pipelines,
        rows.rows,
        values,
        via,
        statistics,
        reflexive=question.reflexive,
        snapshot=functools.cache(lambda: None if in_place else given.whole()),
        names=names,
        meter=meter,
        journal=checkpoint,
    )
    if checkpoint is not None:
        checkpoint.seal()
    _log.info("%s instead of %s", duration(time.perf_counter() - start), duration(rows.seconds))
    return values, via


def _output(how: Plan, given: GivenRows, stack: ExitStack, *, in_place: bool) -> tuple[Values, Any, Matrix]:
    """Allocate the values and the construction matrix, and describe the matrix that is closed into them."""
    shape, kinds = (given.n, given.n), (*(() if in_place else given.dtypes), *((np.dtype(np.int32),) if how.paths else ()))
    there = on_gpu(given.arrays[0])
    if not there:
        overwriting_helps = given.as_they_are and given.overwritable
        require_memory(given.n, () if in_place else given.dtypes, via=how.paths, overwriting_helps=overwriting_helps)
    new = tuple(namespace(given.arrays[0]).empty(shape, d) for d in kinds)
    rows: tuple[RowStorage, ...] = tuple(map(rows_of, new))
    if how.gpu and not there:
        from semiring.streaming.gpus import PinnedMemory

        rows = stack.enter_context(PinnedMemory(new)).rows
    if in_place:
        new, rows = (*given.arrays, *new), (*given.rows, *rows)
    count = len(given.dtypes)
    via = (new[-1], rows[-1]) if how.paths else (None, None)
    return new[:count], via[0], Matrix(given.rows, rows[:count], via[1])


def _pipelines(how: Plan, matrix: Matrix, rows: BlockRows) -> list[DevicePipeline]:
    threads = how.problem.threads
    engines: list[Engine] = [engine_for(how.semiring, how.dtypes, d, threads, witness=True) for d in how.devices]
    if how.resident:
        from semiring.streaming.gpus import cuda_pipelines

        return cuda_pipelines([gpu_number(d) for d in how.devices], engines, matrix, rows.rows)
    return [DevicePipeline(engine, memory_on(matrix, d), rows.buffers, rows.side) for engine, d in zip(engines, how.devices, strict=True)]


def gathered_statistics(
    pipelines: Sequence[DevicePipeline],
    given: GivenRows,
    rows: BlockRows,
    question: Question,
    checkpoint: Kept | None,
    share: Share | None = None,
) -> tuple[ValueStatistics, ...]:
    """Gather the value statistics in one pass of all ranks, or take the statistics of a checkpoint, whose input may be half overwritten."""
    if checkpoint is not None and checkpoint.side is not None:
        return checkpoint.statistics
    found = RunningStatistics(question.semiring, given.dtypes, warn=question.options.nonedge is None and not given.warned)
    distribution = BlockCyclicDistribution(0, (len(pipelines),)) if share is None else share.distribution
    owned = [[rows.rows[i] for i in own] for own in distribution.owned(len(rows.rows))]
    if share is None:
        visit(pipelines, owned, found.add)
        found.warn()
    else:
        share.ranks.working(lambda check: visit(pipelines, owned, found.add, check))
        found.merge(state for rank, state in enumerate(share.ranks.allgather(found.state)) if rank != share.ranks.rank)
        with share.ranks.together():
            if share.ranks.rank == 0:
                found.warn()
    if checkpoint is not None:
        checkpoint.begin(rows.side, found.statistics)
    return found.statistics


def opened(kind: type[F], given: GivenRows, how: Plan, question: Question, **more: Any) -> F:
    """Open the checkpoint of a kind in the caller's folder, or begin one."""
    options = question.options
    assert options.checkpoint is not None
    more |= {"reflexive": question.reflexive, "paths": how.paths, "device": how.device}
    return kind(options.checkpoint, given.rows, how.semiring, block=options.block, threads=options.threads, **more)


def _result_of_ranks(snapshots: Snapshots) -> tuple[Values, Any]:
    """Return the result that several processes left in a folder; raise `CheckpointError` if they did not finish."""
    with snapshots:
        if not snapshots.finished:
            raise CheckpointError(
                f"{snapshots.folder} has snapshots of a closure by the ranks of a communicator, which is not finished: go on with comm=, "
                f"which may be mpi4py.MPI.COMM_SELF"
            )
        return tuple(snapshots.values), snapshots.via


def _with_whole_rows(given: GivenRows) -> GivenRows:
    """Return the matrix, or a copy with contiguous rows if it is on a GPU: GPUs copy only such rows from each other."""

    def whole(array: Any) -> bool:
        return not on_gpu(array) or (array.strides[1] == array.itemsize and array.strides[0] >= array.itemsize * given.n)

    arrays = tuple(v if whole(v) else v.copy(order="C") for v in given.arrays)
    same = all(v is w for v, w in zip(arrays, given.arrays, strict=True))
    return given if same else replace(given, rows=tuple(map(rows_of, arrays)), arrays=arrays)


def memory_on(matrix: Matrix, device: str) -> DeviceMemory:
    """Return the buffers of a device."""
    if device == "cpu":
        return HostMemory(matrix)
    from semiring.streaming.gpus import CudaMemory

    return CudaMemory(matrix, gpu_number(device))


def free_pools_of(devices: Sequence[str]) -> None:
    """Free the memory that CuPy's pools keep on GPUs."""
    if is_gpu(devices[0]):
        from semiring.streaming.gpus import free_pools

        free_pools(map(gpu_number, devices))
