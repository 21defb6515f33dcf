"""The closure of matrices that fit where they are closed: one that the caller passed, several, or one that is made of edges."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import numpy as np

from semiring.algorithms.closure import closure as close
from semiring.algorithms.csr import CSR
from semiring.arrays.devices import namespace, on_device, on_gpu
from semiring.arrays.memory import fits, require_memory, with_scratch
from semiring.common.errors import SemiringError
from semiring.common.progress import Meter, Watcher
from semiring.execution.reporting import reporting
from semiring.graphs import Graph
from semiring.graphs.read import GivenMatrix
from semiring.planning import Plan

__all__ = ["close_whole", "made_of_edges", "paths_of", "read_whole", "shares"]

Array = np.ndarray[Any, Any]


def read_whole(plan: Plan, given: GivenMatrix) -> Graph:
    """A dense graph, read where it is closed: it goes to a GPU as it is, and is read there, where that is possible."""
    if not plan.gpu or plan.problem.there:
        return given.read()
    for device in ("cpu", plan.device):  # the result, and what is computed on
        require_memory(plan.n, plan.dtypes, via=plan.paths, batch=plan.problem.shape[:-2], device=device)
    return (given.uploaded(plan.device) or given).read()


def made_of_edges(plan: Plan, edges: CSR, labels: Any) -> Graph:
    """The matrix of a sparse graph, made on the GPU that closes it where its edges are few beside it and there is room for both."""
    needed = with_scratch(plan.problem.result_bytes) + edges.nbytes
    there = plan.strategy == "whole" and plan.gpu and 4 * edges.nbytes <= needed and fits(needed, plan.device)
    device = plan.device if there else "cpu"
    with on_device(device):
        return Graph(edges.dense(device), owned=True, labels=labels)


def close_whole(
    plan: Plan,
    g: Graph,
    read: Callable[[], Graph | None],
    *,
    reflexive: bool,
    returns: bool,
    check: bool = True,
    progress: Watcher = None,
    meter: Meter | None = None,
) -> Any:
    """The closure of matrices, in the caller's own kind, or its `Paths`.

    Parameters
    ----------
    plan : Plan
    g : Graph
        On the host, or on the GPU of the plan.
    read : callable
        Reads the graph once more, without overwriting anything; None where that cannot be.
    reflexive : bool
    returns : bool
        Whether results go from a GPU to the host.
    check, progress
        See `semiring.apsp`.
    meter : Meter, optional
        Counts the steps, where that has been asked for already.
    """
    if progress is not False and not (progress is None and plan.brief):  # asked here, as a context takes a while beside a small closure
        with reporting(progress, plan) as meter:
            return close_whole(plan, g, read, reflexive=reflexive, returns=returns, check=check, progress=False, meter=meter)
    if plan.gpu:
        with on_device(plan.device), ExitStack() as stack:
            values = tuple(map(_row_major, g.working())) if on_gpu(g.values[0]) else _uploaded(g.values)
            kept = _kept(g, values, read)
            if g.owned and g.verify is not None and check:  # what is refused stays as it is
                statistics = g.verify()
                g.verify = lambda: statistics
            via = _no_paths(values[0].shape) if plan.paths else None
            arrive = _arrivals(values, via, stack) if returns else None
            _close(plan, g, values, via, kept, meter, reflexive=reflexive, check=check)
            if arrive is not None:
                values, via = arrive()
            return g.answer(*values) if via is None else paths_of(plan, g, values, via, kept, reflexive=reflexive)
    values = tuple(map(_row_major, g.values)) if g.owned else tuple([np.array(v, order="C") for v in g.values])
    kept = _kept(g, values, read)
    via = None
    if plan.paths:
        via = np.empty(values[0].shape, np.int32)
        via.fill(-1)
    _close(plan, g, values, via, kept, meter, reflexive=reflexive, check=check)
    return g.answer(*values) if via is None else paths_of(plan, g, values, via, kept, reflexive=reflexive)


def _close(
    plan: Plan, g: Graph, values: Any, via: Any, kept: Callable[[], Any], meter: Meter | None, *, reflexive: bool, check: bool
) -> None:
    """Everything between the matrices and their closure, in their place."""
    engine = plan.engine()
    engine.meter = meter
    how: dict[str, Any] = {"method": plan.algorithm, "block": plan.block, "reflexive": reflexive, "check": check}
    close(engine, values, via, kept=kept, names=g.labels, verify=g.verify, shortcuts=plan.problem.takes_shortcuts, **how)


def paths_of(plan: Plan, g: Graph, values: Any, via: Any, kept: Callable[[], Any], *, reflexive: bool) -> Any:
    """The result with its construction matrix."""
    from semiring.results.paths import Paths  # only where they are wanted: a first call should be quick

    return Paths(plan.semiring, values, via, nodes=g.labels, reflexive=reflexive, kept=kept, restore=g.restore, library=g.library)


def _no_paths(shape: tuple[int, ...]) -> Any:
    """A construction matrix of −1 everywhere, on the current GPU."""
    from semiring.kernels.cuda.elements import without_paths

    return without_paths(shape)


def _uploaded(values: tuple[Any, ...]) -> tuple[Any, ...]:
    """Copies on the current GPU."""
    from semiring.kernels.cuda.transfer import upload

    return tuple(map(upload, values))


def _arrivals(values: tuple[Any, ...], via: Any, stack: ExitStack) -> Callable[[], tuple[tuple[Array, ...], Array | None]]:
    """Copies results to the host, into pinned output buffers that become ready meanwhile."""
    from semiring.kernels.cuda.transfer import download
    from semiring.streaming.gpus import PinnedOutput

    arrays = values if via is None else (*values, via)
    pinned = stack.enter_context(PinnedOutput(values[0].shape, tuple(v.dtype for v in arrays)))

    def arrive() -> tuple[tuple[Array, ...], Array | None]:
        pinned.wait()
        results = tuple(map(download, arrays, pinned.arrays))
        return (results, None) if via is None else (results[:-1], results[-1])

    return arrive


def _row_major(array: Any) -> Any:
    """The array itself if a closure can work on it: contiguous on a GPU, and else writable, with rows that are contiguous."""
    if type(array) is not np.ndarray and on_gpu(array):
        suits = array.flags.c_contiguous
    else:
        suits = array.strides[-1:] == (array.itemsize,) and array.flags.writeable
    return array if suits else array.copy(order="C")


def _kept(g: Graph, values: tuple[Array, ...], read: Callable[[], Graph | None]) -> Callable[[], tuple[Array, ...] | None]:
    """Gives the matrix as it was, if it still exists: the caller's own, or the graph read once more."""
    if not g.owned or not any(shares(v, w) for v, w in zip(values, g.values, strict=True)):
        return lambda: g.values

    def again() -> tuple[Array, ...] | None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the first reading has warned
            try:
                once_more = read()
            except SemiringError:
                return None
        return None if once_more is None or any(map(shares, values, once_more.values)) else once_more.values

    return again


def shares(v: Any, w: Any) -> bool:
    """Whether two arrays have memory in common."""
    if on_gpu(v) != on_gpu(w) or not (on_gpu(w) or isinstance(w, np.ndarray)):
        return v is w  # NumPy would read all of what is on disk
    return bool(namespace(v).may_share_memory(v, w))
