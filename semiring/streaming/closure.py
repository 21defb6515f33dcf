"""The closure of a matrix by block rows, with checks of overflow and divergence, as in `semiring.algorithms.closure` for whole matrices."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NoReturn

import numpy as np

from semiring.algorithms.divergence import Diagnosis, divergent_loop
from semiring.arrays.devices import host
from semiring.common.errors import DivergentPivot
from semiring.kernels.limits import ValueStatistics
from semiring.kernels.overflow.closures import guard_for
from semiring.streaming.dependencies import Share
from semiring.streaming.folder import Journal
from semiring.streaming.pipeline import DevicePipeline, nothing
from semiring.streaming.workers import run_workers

__all__ = ["closure_by_rows", "visit"]

Array = np.ndarray[Any, Any]
Values = tuple[Array, ...]


def visit(
    pipelines: Sequence[DevicePipeline],
    owned: Sequence[Sequence[slice]],
    visitor: Callable[[int, Values], None],
    check: Callable[[], None] = nothing,
) -> None:
    """Call ``visitor(first row, values)`` for the caller's block rows of each device, on all devices at once.

    An error of `check`, which is called before each block row, ends the visit.
    """
    stopped = threading.Event()

    def share(device: int) -> None:
        pipeline, own = pipelines[device], owned[device]
        for some in own:
            pipeline.prefetch(some, first=True)
        with pipeline.memory.active():
            for some in own:
                loaded = pipeline.load()
                if stopped.is_set():
                    return
                check()
                visitor(some.start, loaded.values)
                pipeline.release(loaded)
            pipeline.drain()

    with ThreadPoolExecutor(len(pipelines)) as workers:
        try:
            for done in [workers.submit(share, device) for device in range(len(pipelines))]:
                done.result()
        except BaseException:
            stopped.set()
            raise


def closure_by_rows(
    pipelines: Sequence[DevicePipeline],
    rows: tuple[slice, ...],
    values: Values,
    via: Any,
    statistics: tuple[ValueStatistics, ...],
    *,
    reflexive: bool,
    snapshot: Callable[[], Values | None],
    names: Sequence[Any] | None = None,
    progress: Callable[[int, int], None] | None = None,
    journal: Journal | None = None,
    share: Share | None = None,
) -> None:
    """values ← A* or A⁺, for an idempotent ⊕.

    Parameters
    ----------
    pipelines : sequence of DevicePipeline
        The devices, which load the caller's block rows, and write results to `values` and `via`.
    rows : tuple of slice
        The block rows.
    values : tuple of arrays of shape (n, n)
        The arrays of the result: NumPy's, or objects indexed alike. Each of several ranks has at least its own rows.
    statistics : tuple of ValueStatistics
        Value statistics of each component.
    snapshot : callable
        Returns arrays with the caller's input, or None if it was overwritten.
    names : sequence, optional
        The caller's names of the vertices, for errors.
    progress, journal, share : optional
        See `run_workers`.

    Raises
    ------
    OverflowRiskError, DivergenceError

    Notes
    -----
    n³ steps. A cycle that improves only by rounding is refused: the remedy of `closure` needs the whole matrix in memory.
    """
    engine = pipelines[0].engine
    semiring, dtypes, n = engine.semiring, engine.dtypes, rows[-1].stop
    guard = guard_for(semiring, dtypes, n - 1 if reflexive else n)
    guard.before(statistics)
    for pipeline in pipelines:
        pipeline.engine.signed, pipeline.engine.statistics = guard.signed, statistics[0]
    own = rows if share is None else tuple(rows[i] for i in share.distribution.own(len(rows)))
    stopped = None
    try:
        run_workers(pipelines, rows, reflexive=reflexive, progress=progress, journal=journal, share=share)
        if own:
            loop = divergent_loop(semiring, tuple(np.concatenate([host(v[I, I].diagonal()) for I in own]) for v in values))
            stopped = None if loop is None else int(np.concatenate([np.r_[I] for I in own])[loop])
    except DivergentPivot as stop:
        stopped = stop.vertex
    if share is not None:
        stopped = min((v for v in share.ranks.allgather(stopped) if v is not None), default=None)

    def on_host() -> Values | None:
        return None if (given := snapshot()) is None else tuple(map(host, given)) if share is None else given

    if stopped is not None:
        _explain(Diagnosis(semiring, on_host, lambda v: v if names is None else names[v]), stopped, dtypes)
    if share is None:
        guard.after(values, via)
        return
    with share.ranks.together():
        for I in own:
            guard.after(tuple(v[I] for v in values), None if via is None else via[I])


def _explain(diagnosis: Diagnosis, vertex: int, dtypes: tuple[np.dtype[Any], ...]) -> NoReturn:
    if (given := diagnosis.kept()) is None:
        raise diagnosis.error(None, None, vertex)
    diagnosis.potentials(vertex, given, None, np.arange(len(given[0])))
    raise diagnosis.only_rounding(dtypes)
