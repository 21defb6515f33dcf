"""The closure of one matrix by the ranks of an MPI communicator: by block rows, or by searches, each rank from its share of the sources."""

from __future__ import annotations

import hashlib
import logging
import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, nullcontext
from dataclasses import replace
from typing import Any, cast

import numpy as np

from semiring.algebra.expression import flat
from semiring.arrays.conversion import Array
from semiring.arrays.devices import gpu_number, gpus, is_gpu, on_device
from semiring.arrays.memory import fits
from semiring.arrays.pieces import HOST, slices
from semiring.arrays.threads import thread_count
from semiring.common.errors import CheckpointError, SemiringError, TooLargeError, described, noted
from semiring.common.progress import Meter, Watcher
from semiring.common.units import format_bytes
from semiring.execution.block_rows import Kept, free_pools_of, gathered_statistics, memory_on, opened
from semiring.execution.question import Question, Selection
from semiring.execution.reporting import reporting
from semiring.execution.row_solvers import require_rows, row_solver, search_steps
from semiring.graphs.by_ranks import GivenByRanks
from semiring.graphs.by_rows import GivenRows
from semiring.graphs.dense import Reading
from semiring.graphs.read import reading_of
from semiring.graphs.vertices import Vertices, chosen
from semiring.kernels.engine import Engine
from semiring.kernels.select import engine_for
from semiring.mpi.panels import NcclPanels, Panels, SharedPanels, has_nccl
from semiring.mpi.ranks import Ranks, Stopped
from semiring.planning import Plan, closure_problem, edges_problem, plan
from semiring.planning.block_rows import cut
from semiring.planning.options import named_gpus
from semiring.results.distributed import DistributedMatrix, DistributedTrees, own_stripes, shares
from semiring.results.paths import Paths, paths_in
from semiring.results.store import Names
from semiring.streaming.checkpoint import Checkpoint
from semiring.streaming.closure import closure_by_rows
from semiring.streaming.dependencies import Share
from semiring.streaming.folder import folder_of, state_in
from semiring.streaming.layout import PANELS, BlockCyclicDistribution, BlockRows
from semiring.streaming.pipeline import Buffer, DevicePipeline
from semiring.streaming.snapshots import Snapshots
from semiring.streaming.storage import ArrayRows, Matrix, OwnRows, rows_of

__all__ = ["rows_by_ranks", "solve_by_ranks"]

_log = logging.getLogger("semiring")


def solve_by_ranks(graph: Any, question: Question) -> Any:
    """Return the closure of a graph that the ranks of a communicator pass together: a `DistributedMatrix`, or `Paths` over one.

    Raises SemiringError if the ranks do not make the same call; and an error of any rank, on all.
    """
    given, question = _given(graph, question)
    ranks, n, options = given.ranks, given.n, question.options
    with ranks.together():
        sources, targets = (
            replace(chosen(ends, n, given.labels, what), single=False)  # one that is named by itself has a row too
            for ends, what in ((options.sources, "sources"), (options.targets, "targets"))
        )
        if options.targets is not None and options.sources is None:
            raise SemiringError(
                "targets= with comm= needs sources=, whose rows the ranks share out: name sources too, or reverse the edges and name the "
                "targets as sources"
            )
        rows = None if options.sources is None else len(sources.numbers)
    ranks.same(sources_and_targets=hashlib.sha256(sources.numbers.tobytes() + targets.numbers.tobytes()).hexdigest())
    if n == 0:
        empty = [DistributedMatrix(ranks, OwnRows.new(0, [], d), [], []) for d in (*given.dtypes, np.dtype(np.int32))]
        values: Any = tuple(empty[:-1])
        if question.paths:
            return Paths(question.semiring, values, cast(Any, empty[-1]), nodes=given.labels, reflexive=question.reflexive)
        return values[0] if len(values) == 1 else values
    how = _planned(given, question, rows)
    if how.strategy == "search":
        return _search(how, given, question, Selection(n, sources, targets))
    return _ByRanks(ranks, how, question).close(given)


def rows_by_ranks(graph: Any, question: Question) -> tuple[GivenByRanks, Iterator[tuple[int, Array]]]:
    """Read the graph of all ranks, and iterate over the rows of its closure that this rank finds, with the number of the first.

    The iteration goes on within `ranks.together()`. Elements are single numbers; what was searched is not kept.
    """
    given, question = _given(graph, question)
    ranks = given.ranks
    if given.n == 0:
        return given, iter(())
    how = _planned(given, question, None)
    if how.strategy == "search":
        return given, _searched_rows(how, given, question.options.progress)
    found = _ByRanks(ranks, how, question).close(given)
    if not isinstance(found, DistributedMatrix):  # the file of a checkpoint, which all ranks see
        rows = shares(given.n, ranks.size)
        found = DistributedMatrix(ranks, rows_of(found), rows, range(len(rows)))
    return given, own_stripes(found)


def _given(graph: Any, question: Question) -> tuple[GivenByRanks, Question]:
    """Read the graph that ranks pass together in the same call, and set the threads of this rank."""
    semiring, options = question.semiring, question.options
    ranks = Ranks.of(options.comm)
    _require_one_call(ranks, question)
    options = options._replace(threads=_threads(ranks, options.threads))
    reading = reading_of(semiring, Reading(options.nonedge, options.dtype, presence=question.presence, paths=question.paths))
    return GivenByRanks.of(ranks, graph, semiring, reading, options.weight), question._replace(options=options)


def _planned(given: GivenByRanks, question: Question, rows: int | None) -> Plan:
    """Plan the closure, or some rows of it: all ranks take the strategy that is predicted to be the fastest on rank 0."""
    ranks, semiring, options = given.ranks, question.semiring, question.options
    with ranks.together():
        devices = _devices(ranks, options.device)
        group = {"ranks": ranks.size, "beside": ranks.host.size}
        shape, here = (given.n, given.n), options._replace(device=devices)
        dense = problem = closure_problem(semiring, given.dtypes, shape, here, searches=rows, **group)
    if all(ranks.allgather(str(options.device) in ("auto", "cpu"))) and given.edges is not None:  # no GPU is named
        with ranks.together():
            on_host = options._replace(device="cpu")
            problem = edges_problem(semiring, given.edges, on_host, rows, **group)._replace(device=devices)
    with ranks.together():
        how = plan(problem)
    strategy = ranks.allgather(how.strategy)[0]
    with ranks.together():
        if how.strategy != strategy:  # as speeds and free memory may differ between hosts
            how = replace(how, strategy=strategy) if strategy == "search" else plan(dense)
        _log.info("rank %d of %d: %s", ranks.rank, ranks.size, how.rows or how.algorithm)
    return how


def _require_one_call(ranks: Ranks, question: Question) -> None:
    """Raise an error if the ranks make different calls; the caller's own semirings are compared by their programs."""
    semiring, options, reflexive = question.semiring, question.options, question.reflexive
    with ranks.together():
        program = semiring.program
        recorded = [flat(program.add), flat(program.mul), repr((semiring.zero, semiring.one))]
        digest = hashlib.sha256(repr(recorded).encode()).hexdigest()[:12]
        folder = None if options.checkpoint is None else os.fspath(folder_of(options.checkpoint))
        wanted = options._replace(comm=None, device=None, progress=None, checkpoint=folder)._asdict() | {"reflexive": reflexive}
    ranks.same(the_semiring=f"{semiring.name} ({digest})", **{name: described(value) for name, value in wanted.items()})


def _threads(ranks: Ranks, threads: int | None) -> int | None:
    """Return the threads of this rank: the caller's number, or a share of the cores that ranks of this host have in common."""
    cores = frozenset(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None
    own = ranks.hosts[ranks.rank], cores
    sharing = ranks.allgather(own).count(own)
    return max(1, thread_count() // sharing) if threads is None and not os.environ.get("SEMIRING_NUM_THREADS") else threads


def _devices(ranks: Ranks, device: Any) -> tuple[str, ...]:
    """Return the devices of this rank: "cpu", the GPUs that the caller names, or a share of the GPUs of the host."""
    named = named_gpus(device) if device != "cuda:all" else None
    if named is not None:
        return named
    name = str(device)
    if name == "cpu" or (is_gpu(name) and name not in ("cuda", "cuda:all")):
        return (name,)
    if name not in ("auto", "cuda", "cuda:all"):
        raise SemiringError(
            f"device={device!r} has no closure by several processes; use 'auto', 'cpu', 'cuda', 'cuda:0', … or a list of GPUs"
        )
    if not gpus():
        if name != "auto":
            raise SemiringError(f"there is no GPU for device={device!r} on rank {ranks.rank}")
        return ("cpu",)
    return tuple(f"cuda:{number}" for number in range(ranks.host.rank % gpus(), gpus(), ranks.host.size))


def _search(how: Plan, given: GivenByRanks, question: Question, selection: Selection) -> Any:
    """Find rows of the closure of a sparse graph, each on the rank of its source: a `DistributedMatrix`, or `Paths` over one.

    Each rank has all edges, and nothing is sent on the way.
    """
    ranks, edges = given.ranks, given.edges
    assert edges is not None
    sources, targets, reflexive = selection.sources, selection.targets, question.reflexive
    count = len(sources.numbers)
    rows = shares(count, ranks.size)
    own = rows[ranks.rank : ranks.rank + 1]
    roots = sources.numbers[own[0]] if own else sources.numbers[:0]
    with ranks.together(), noted("the closure", how.semiring, edges.arrays()):
        of_host = sum(r.stop - r.start for r, host in zip(rows, ranks.hosts, strict=False) if host == ranks.hosts[ranks.rank])
        require_rows((of_host, edges.n), edges.dtypes, "cpu", paths=how.paths, backward=False)
        with _watching(ranks, how, question.options.progress, search_steps(edges, count)) as meter:
            meter.expect(search_steps(edges, len(roots)))
            values, tree = row_solver(how, edges, given.labels).rows(roots, meter, reflexive=reflexive)
        if not targets.every:
            values = tuple(v.take(targets.numbers, axis=1) for v in values)

    def over_ranks(array: Array) -> Any:
        return DistributedMatrix(ranks, OwnRows(count, own, ArrayRows(array)), rows, range(len(rows)))

    found = tuple(map(over_ranks, values))
    if tree is None:
        return found[0] if len(found) == 1 else found
    names, graph = Names(given.labels, edges.n), edges if sources.every and targets.every else None
    store = DistributedTrees(how.semiring, found, names, sources, targets, reflexive, edges.arrays, over_ranks(tree), graph=graph)
    return paths_in(store)


def _searched_rows(how: Plan, given: GivenByRanks, progress: Watcher) -> Iterator[tuple[int, Array]]:
    """Yield this rank's rows of a closure of single numbers, some at a time, with the number of the first; within `together`."""
    ranks, edges = given.ranks, given.edges
    assert edges is not None
    own = shares(edges.n, ranks.size)[ranks.rank : ranks.rank + 1]
    every, solver = Vertices.all_of(edges.n).numbers, row_solver(how, edges, given.labels)
    with _watching(ranks, how, progress, search_steps(edges, edges.n)) as meter:
        for rows in own:
            meter.expect(search_steps(edges, rows.stop - rows.start))
            for some in slices(rows.stop - rows.start, edges.n, HOST):
                first = rows.start + some.start
                (values,), _ = solver.rows(every[first : rows.start + some.stop], meter)
                yield first, values


@contextmanager
def _watching(ranks: Ranks, how: Plan, progress: Watcher, steps: int) -> Iterator[Meter]:
    """Give a meter of the steps of this rank, which stops when another rank has failed; on rank 0 it reports the progress of all `steps`.

    The share of rank 0 is as large as any, so its progress stands for that of all ranks.
    """
    with reporting(progress, how) if ranks.rank == 0 else nullcontext() as shown:

        def tell(done: int, total: int) -> None:
            if ranks.failed():
                raise Stopped
            if shown is not None:
                shown.reach(steps * done // total, steps)

        yield Meter(tell)


class _ByRanks:
    """A closure by block rows on the devices of several ranks; plans differ between ranks in the names of devices only."""

    def __init__(self, ranks: Ranks, how: Plan, question: Question) -> None:
        self.ranks, self.plan, self.question, self.options = ranks, how, question, question.options
        self.distribution = BlockCyclicDistribution(ranks.rank, tuple(ranks.allgather(len(how.devices))))

    def close(self, given: GivenByRanks) -> Any:
        """Return the values, and the paths if the plan has them: distributed, or in the files of a checkpoint."""
        ranks, options, reflexive = self.ranks, self.options, self.question.reflexive
        ranks.same(the_kind_of_device="GPUs" if self.plan.gpu else "the CPU")
        resident = all(ranks.allgather(self.plan.resident))  # what is free may differ
        with ranks.together():
            how = self.plan = self.settled(resident)
        assert how.rows is not None
        rows = how.rows.rows
        owner_of = self.distribution.owners(len(rows))
        source = given.rows(owner_of, rows)
        whole: Any = tuple(DistributedMatrix(ranks, r, rows, owner_of) for r in source.rows)
        with ExitStack() as stack:
            stack.enter_context(on_device(how.device))
            stack.callback(free_pools_of, how.devices)
            values, via, matrix, checkpoint = self.output(stack, source)
            if isinstance(checkpoint, Snapshots) and checkpoint.finished:
                return self.result(checkpoint.values, checkpoint.via, owner_of, given, whole)
            begun = checkpoint is not None and checkpoint.side is not None
            rounds = checkpoint.rounds if checkpoint is not None and begun else [0] * len(rows)
            needed = [k for k in range(len(rows)) if any(done <= k for i, done in enumerate(rounds) if i != k)]
            sent = {k: owner_of[k] for k in needed if ranks.size > 1 or checkpoint is not None}
            panels = self.panels(stack, sent, how.rows.side)
            share = Share(ranks, self.distribution, panels)
            pipelines = self.pipelines(stack, matrix, how.rows, share)
            statistics = gathered_statistics(pipelines, source, how.rows, self.question, checkpoint, share)
            with ExitStack() as watching:
                with ranks.together():
                    meter = watching.enter_context(reporting(options.progress, how)) if ranks.rank == 0 else None
                closure_by_rows(
                    pipelines,
                    rows,
                    values,
                    via,
                    statistics,
                    reflexive=reflexive,
                    snapshot=lambda: whole,
                    names=given.labels,
                    meter=meter,
                    journal=checkpoint,
                    share=share,
                )
                with ranks.together():  # the last report of progress may raise as well
                    watching.close()
            if isinstance(checkpoint, Snapshots):
                checkpoint.keep_result(values, via)
                values, via = checkpoint.values, checkpoint.via
            elif checkpoint is not None:
                checkpoint.seal()
        return self.result(values, via, owner_of, given, whole)

    def settled(self, resident: bool) -> Plan:
        """Adapt the plan to a checkpoint that was begun before."""
        how, folder = self.plan, self.options.checkpoint
        state = None if folder is None else state_in(folder)
        if state is None or state.side is None:
            return how if how.resident == resident else cut(replace(how, resident=False), how.block)
        snapshots = state.closure.get("kept") == Snapshots.kept
        if snapshots and not resident and state.result is None:
            raise CheckpointError(
                f"{folder} has snapshots of a matrix that was in memory, where it does not fit now: go on with more ranks or more memory"
            )
        return cut(replace(how, resident=snapshots), state.side)

    def output(self, stack: ExitStack, source: GivenRows) -> tuple[Any, Any, Matrix, Kept | None]:
        """Allocate the values and the construction matrix, in the memory of their owners or in files, and open the checkpoint."""
        ranks, how, options = self.ranks, self.plan, self.options
        checkpoint: Kept | None = None
        if options.checkpoint is not None:
            kind: type[Kept] = Snapshots if how.resident else Checkpoint
            made = opened(kind, source, how, self.question, ranks=ranks, own=self.distribution.own)
            checkpoint = stack.enter_context(made)  # type: ignore[assignment]  # one of the two kinds
            if isinstance(checkpoint, Checkpoint):
                return checkpoint.values, checkpoint.via, checkpoint.matrix, checkpoint
        assert how.rows is not None
        own = [how.rows.rows[i] for i in self.distribution.own(len(how.rows.rows))]
        with ranks.together():
            stores = tuple(OwnRows(how.n, own, memory) for memory in self.memory(stack, sum(r.stop - r.start for r in own)))
        values, via = stores[: len(how.dtypes)], stores[-1] if how.paths else None
        return values, via, Matrix(source.rows, values, via), checkpoint

    def memory(self, stack: ExitStack, count: int) -> Sequence[ArrayRows]:
        """Allocate some rows of all components and the construction matrix; GPUs write to pinned memory."""
        how = self.plan
        needed = self.ranks.host.size * count * how.n * how.problem.entry_bytes
        if not fits(needed, "cpu"):
            raise TooLargeError(
                f"the rows of {self.ranks.host.size} ranks on this host take {format_bytes(needed)}, which are not free: use more hosts or "
                "checkpoint=folder with a memory_limit, which keeps the matrix on disk"
            )
        kinds = *how.dtypes, *((np.dtype(np.int32),) if how.paths else ())
        arrays = [np.empty((count, how.n), d) for d in kinds]
        if how.gpu:
            from semiring.streaming.gpus import PinnedMemory

            return stack.enter_context(PinnedMemory(arrays)).rows
        return list(map(ArrayRows, arrays))

    def panels(self, stack: ExitStack, sent: dict[int, int], side: int) -> Panels:
        """Choose the transport of row panels: from GPU to GPU, or through the memory of the hosts."""
        ranks, how = self.ranks, self.plan
        gpu = gpu_number(how.device) if how.gpu and len(how.devices) == 1 else None
        if how.gpu and has_nccl(ranks, gpu):
            assert gpu is not None
            return stack.enter_context(closing(NcclPanels(ranks, sent, side, how.n, how.dtypes, gpu)))
        shared = stack.enter_context(closing(SharedPanels(ranks, sent, side, how.n, how.dtypes, direct=not how.gpu)))
        if how.gpu and sent:
            from semiring.streaming.gpus import PinnedMemory

            with ranks.together():
                shared.ready = stack.enter_context(PinnedMemory([shared.memory])).ready
        return shared

    def result(self, values: Any, via: Any, owner_of: Sequence[int], given: GivenByRanks, whole: Any) -> Any:
        """Make the caller's result of the values and the construction matrix."""
        assert self.plan.rows is not None
        if self.options.checkpoint is None:
            parts = *values, *(() if via is None else (via,))
            made = [DistributedMatrix(self.ranks, part, self.plan.rows.rows, owner_of) for part in parts]
            values, via = tuple(made[: len(values)]), None if via is None else made[-1]
        if via is None:
            return values[0] if len(values) == 1 else values
        kept: Any = whole if self.options.checkpoint is None else given.here  # of files each rank reads paths by itself
        return Paths(self.plan.semiring, values, via, nodes=given.labels, reflexive=self.question.reflexive, kept=lambda: kept)

    def pipelines(self, stack: ExitStack, matrix: Matrix, rows: BlockRows, share: Share) -> list[DevicePipeline]:
        how = self.plan
        slots: dict[int, Buffer] = {
            rows.rows[k].start: (share.panels.slot(k), None) for k, owner in share.panels.owners.items() if owner != self.ranks.rank
        }
        everyones: dict[int, Buffer] = {}
        room = rows.buffers if not how.resident else 0 if share.panels.direct else PANELS
        made = []
        with self.ranks.together():
            for device, own in zip(how.devices, self.distribution.owned(len(rows.rows)), strict=True):
                engine: Engine = engine_for(how.semiring, how.dtypes, device, self.options.threads, witness=True)
                memory = memory_on(matrix, device)
                if how.resident:
                    memory.keep([rows.rows[i] for i in own], everyones)
                memory.take_panels(slots, direct=share.panels.direct)
                made.append(stack.enter_context(DevicePipeline(engine, memory, room, rows.side)))
        return made
