"""What every closure does around its algorithm: read the graph, choose the engine, hand back the caller's own kind."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import numpy as np

from semiring.algebra.definition import Semiring
from semiring.algebra.errors import SemiringError, noted, refuse_arrays
from semiring.algebra.namespace import namespace, on_gpu
from semiring.algorithms.closure import closure as close
from semiring.algorithms.edges import Edges
from semiring.algorithms.schedules import schedule_for
from semiring.closing_by_rows import close_by_rows
from semiring.graphs import Graph, lists_edges, read_graph, require_memory
from semiring.graphs.by_rows import GivenRows, given_rows, rows_of_graph, square_arrays
from semiring.graphs.graph import Reading
from semiring.kernels.devices import is_gpu, on_device
from semiring.kernels.placement import gpu_with_room, imagined, place, several
from semiring.kernels.room import ALWAYS_FITS, with_scratch
from semiring.kernels.select import engine_for
from semiring.options import Options
from semiring.route import route

__all__ = ["solve"]

Array = np.ndarray[Any, Any]


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
    refuse_arrays(reflexive=reflexive, **options._replace(nonedge=None, sources=None, targets=None)._asdict())
    if options.sources is not None or options.targets is not None:
        from semiring.sources_and_targets import solve_between  # only where it is wanted: a first call should be quick

        return solve_between(graph, semiring, options, reflexive=reflexive, presence=presence)
    paths = bool(options.paths or semiring.witness)
    schedule_for(options.method, options.block, eliminate=False)  # refuses what it does not know before anything is read

    def read(matrix: Any = graph, *, overwrite: bool, **how: Any) -> Graph:
        return read_graph(
            matrix, semiring, nonedge=options.nonedge, dtype=options.dtype, overwrite=overwrite, presence=presence, paths=paths, **how
        )

    shared = several(options.device)
    with noted("the closure", semiring, graph):
        if (arrays := square_arrays(graph, semiring)) is not None and _may_be_large(arrays, options):
            given = given_rows(arrays, semiring, Reading(options.nonedge, options.dtype, options.overwrite, presence, paths))
            answer = _by_rows(given, Graph(arrays, owned=False), semiring, options, reflexive=reflexive, paths=paths)
            if answer is not None:
                return answer
        single = options if shared is None else options._replace(device=shared[0])
        ahead = _destination(graph, semiring, single, paths=paths)
        if ahead is None:
            g = read(overwrite=options.overwrite, destination=lambda edges: _made_on(edges, options, paths=paths))
        else:
            g = read(_sent(graph, ahead), overwrite=True)
    with noted("the closure", semiring, g.values):
        if arrays is None and _may_be_large(g.values, options):
            read_rows = rows_of_graph(g)
            answer = _by_rows(read_rows, g, semiring, options._replace(overwrite=g.owned), reflexive=reflexive, paths=paths)
            if answer is not None:
                return answer
        if shared and on_gpu(g.values[0]):
            single = options._replace(device="auto")
        from_host = ahead is not None or lists_edges(graph)
        return _as_a_whole(g, semiring, single, read, reflexive=reflexive, paths=paths, from_host=from_host)


def _as_a_whole(
    g: Graph, semiring: Semiring, options: Options, read: Callable[..., Graph], *, reflexive: bool, paths: bool, from_host: bool
) -> Any:
    """The closure of matrices that fit where they are closed.

    Parameters
    ----------
    g : Graph
    semiring : Semiring
    options : Options
        With one device.
    read : callable
        Reads the graph once more.
    reflexive, paths : bool
    from_host : bool
        Whether the caller's graph lies on the host, wherever its matrix was made.
    """
    where = place(options.device, g.values, float(math.prod(g.batch)) * g.n**3, _bytes_on_gpu(g.values, paths=paths))
    with on_device(where), ExitStack() as stack:
        engine = engine_for(semiring, g.dtypes, where, options.threads, witness=paths)
        sent = is_gpu(where) and not on_gpu(g.values[0])
        if sent:
            require_memory(g.n, g.dtypes, via=paths, batch=g.batch, device=where)
        values = _sent(g.values, where) if sent else tuple(map(_row_major, g.working()))
        kept = _kept(g, values, read)
        via = namespace(values[0]).full(values[0].shape, -1, dtype=np.int32) if paths else None
        returns = sent or (from_host and on_gpu(values[0]))
        arrive = _arrivals(values, via, stack) if returns else None
        close(
            engine,
            values,
            via,
            method=options.method,
            block=options.block,
            reflexive=reflexive,
            kept=kept,
            names=g.labels,
            verify=g.verify,
        )
        if arrive is not None:
            values, via = arrive()
        return g.answer(*values) if via is None else _paths(g, semiring, values, via, kept, reflexive=reflexive)


def _may_be_large(arrays: tuple[Any, ...], options: Options) -> bool:
    """Whether `route` has to be asked: a question that takes longer than a small closure."""
    return options.needs_block_rows or several(options.device) is not None or sum(v.nbytes for v in arrays) > ALWAYS_FITS


def _by_rows(given: GivenRows | None, graph: Graph, semiring: Semiring, options: Options, *, reflexive: bool, paths: bool) -> Any:
    """The closure by block rows, in the caller's own kind; None where the matrix is closed as a whole."""
    if given is None:
        if options.needs_block_rows:
            raise SemiringError("memory_limit and checkpoint are for one matrix of numbers, not for several or for exact entries")
        return None
    large = route(given, semiring, options, paths=paths)
    if large is None:
        return None
    values, via = close_by_rows(given, semiring, options, large, graph.labels, reflexive=reflexive, paths=paths)
    if via is None:
        return graph.answer(*values)
    unchanged = given.as_they_are and not any(_share(v, w) for v, w in zip(values, given.arrays, strict=True))
    kept = given.arrays if unchanged else None
    return _paths(graph, semiring, values, via, lambda: kept, reflexive=reflexive)


def _paths(g: Graph, semiring: Semiring, values: Any, via: Any, kept: Callable[[], Any], *, reflexive: bool) -> Any:
    from semiring.paths import Paths  # only where they are wanted: a first call should be quick

    return Paths(semiring, values, via, nodes=g.labels, reflexive=reflexive, kept=kept, restore=g.restore, library=g.library)


_READ_ANYWHERE = frozenset(map(np.dtype, "?hilqBHILQfd"))
"""What a GPU reads as the host does."""


def _destination(graph: Any, semiring: Semiring, options: Options, *, paths: bool) -> str | None:
    """The GPU that NumPy's matrices go to as they are, to be read there, which takes the host as long as the closure takes a GPU."""
    parts = graph if semiring.components > 1 and isinstance(graph, tuple) else (graph,)
    if len(parts) != semiring.components or not all(type(v) is np.ndarray and v.dtype in _READ_ANYWHERE for v in parts):
        return None
    shape, dtypes = parts[0].shape, tuple(v.dtype for v in parts)
    square = len(shape) >= 2 and shape[-1] == shape[-2] and all(v.shape == shape for v in parts)
    if not square or (options.dtype is not None and any(d != options.dtype for d in dtypes)):
        return None
    where = place(options.device, parts, float(parts[0].size) * shape[-1], _bytes_on_gpu(parts, paths=paths))
    if not is_gpu(where):
        return None
    for device in ("cpu", where):  # the result, and what is computed on
        require_memory(shape[-1], dtypes, via=paths, batch=shape[:-2], device=device)
    return where


def _made_on(edges: Edges, options: Options, *, paths: bool) -> str:
    """The GPU that closes the matrix of some edges, if these are few beside it and there is room for both; else the host."""
    needed = _bytes_on_gpu(imagined(edges.n, edges.dtypes), paths=paths) + edges.nbytes
    if options.needs_block_rows or several(options.device) is not None or 4 * edges.nbytes > needed:
        return "cpu"
    return gpu_with_room(options.device, edges.n, edges.dtypes, needed) or "cpu"


def _bytes_on_gpu(arrays: tuple[Any, ...], *, paths: bool) -> int:
    return with_scratch(sum(v.nbytes for v in arrays) + 4 * arrays[0].size * paths)


def _sent(graph: Any, where: str) -> Any:
    """Copies of matrices on a GPU, in the form that they came in."""
    from semiring.kernels.cuda.transfer import upload

    with on_device(where):
        return tuple(map(upload, graph)) if isinstance(graph, tuple) else upload(graph)


def _arrivals(values: tuple[Any, ...], via: Any, stack: ExitStack) -> Callable[[], tuple[tuple[Array, ...], Array | None]]:
    """Brings results to the host, where their memory is made ready meanwhile."""
    from semiring.kernels.cuda.landing import Landing
    from semiring.kernels.cuda.transfer import download

    arrays = values if via is None else (*values, via)
    landing = stack.enter_context(Landing(values[0].shape, tuple(v.dtype for v in arrays)))

    def arrive() -> tuple[tuple[Array, ...], Array | None]:
        landing.wait()
        results = tuple(map(download, arrays, landing.arrays))
        return (results, None) if via is None else (results[:-1], results[-1])

    return arrive


def _row_major(array: Any) -> Any:
    """The array itself if a closure can work on it: contiguous on a GPU, and else writable, with rows that are contiguous."""
    if on_gpu(array):
        suits = array.flags.c_contiguous
    else:
        suits = array.strides[-1:] == (array.itemsize,) and array.flags.writeable
    return array if suits else array.copy(order="C")


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
    if on_gpu(v) != on_gpu(w) or not (on_gpu(w) or isinstance(w, np.ndarray)):
        return v is w  # NumPy would read all of what is on disk
    return bool(namespace(v).may_share_memory(v, w))
