"""What every closure does around its algorithm: read the graph, choose the engine, hand back the caller's own kind."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from semiring.algebra.definition import Semiring
from semiring.algebra.errors import SemiringError, noted
from semiring.algebra.namespace import host, namespace, on_gpu, to_gpu
from semiring.algorithms.closure import closure as close
from semiring.algorithms.schedules import schedule_for
from semiring.graphs import Graph, read_graph
from semiring.kernels.select import engine_for, on_device, place

__all__ = ["Options", "solve"]

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Options:
    """The arguments that every closure takes; see `semiring.apsp`."""

    paths: bool
    method: str
    block: int | None
    nonedge: Any
    dtype: Any
    device: str
    overwrite: bool
    threads: int | None


def solve(graph: Any, semiring: Semiring, options: Options, *, reflexive: bool, presence: bool = False) -> Any:
    """The closure of whatever the caller calls a graph, in the caller's own kind, or its `Paths`.

    Parameters
    ----------
    graph, semiring, reflexive
        See `semiring.closure`.
    options : Options
    presence : bool
        See `read_graph`.
    """
    paths = bool(options.paths or semiring.witness)
    schedule_for(options.method, options.block, eliminate=False)  # refuses what it does not know before anything is read

    def read(*, overwrite: bool) -> Graph:
        return read_graph(
            graph, semiring, nonedge=options.nonedge, dtype=options.dtype, overwrite=overwrite, presence=presence, paths=paths
        )

    with noted("the closure", semiring, graph):
        g = read(overwrite=options.overwrite)
    with noted("the closure", semiring, g.values):
        where = place(options.device, g.values, float(math.prod(g.batch)) * g.n**3)
        with on_device(where):
            engine = engine_for(semiring, g.dtypes, where, options.threads, witness=paths)
            upload = where.startswith("cuda:") and not on_gpu(g.values[0])
            values = tuple(_row_major(to_gpu(v)) for v in g.values) if upload else tuple(map(_row_major, g.working()))
            kept = _kept(g, values, read)
            via = namespace(values[0]).full(values[0].shape, -1, dtype=np.int32) if paths else None
            close(engine, values, via, method=options.method, block=options.block, reflexive=reflexive, kept=kept, names=g.labels)
            if upload:
                values, via = tuple(map(host, values)), None if via is None else host(via)
    if via is None:
        return g.answer(*values)
    from semiring.paths import Paths  # only where they are wanted: a first call should be quick

    return Paths(semiring, values, via, nodes=g.labels, reflexive=reflexive, kept=kept, restore=g.restore)


def _row_major(array: Any) -> Any:
    """The array itself if a closure can work on it: writable, with rows that are contiguous."""
    fits = array.strides[-1:] == (array.itemsize,) and getattr(array.flags, "writeable", True)
    if on_gpu(array):
        fits = array.flags.c_contiguous
    return array if fits else array.copy(order="C")


def _kept(g: Graph, values: tuple[Array, ...], read: Callable[..., Graph]) -> Callable[[], tuple[Array, ...] | None]:
    """Gives the matrix as it was, if it still exists: the caller's own, or the graph read once more."""
    if not any(_share(v, w) for v, w in zip(values, g.values, strict=True)):
        return lambda: g.values

    def again() -> tuple[Array, ...] | None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the first reading has warned
            try:
                arrays = read(overwrite=False).values
            except SemiringError:
                return None
        return None if any(_share(v, w) for v, w in zip(values, arrays, strict=True)) else arrays

    return again


def _share(v: Any, w: Any) -> bool:
    return on_gpu(v) == on_gpu(w) and bool(namespace(v).may_share_memory(v, w))
