"""The closure of matrices that fit on one device: the caller's matrix or stack, or a matrix made of edges."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import numpy as np

from semiring.algebra.definition import Semiring
from semiring.algorithms.closure import closure
from semiring.arrays.conversion import Array
from semiring.arrays.devices import is_gpu, namespace, on_device, on_gpu
from semiring.arrays.memory import fits, require_memory, with_scratch
from semiring.common.errors import SemiringError
from semiring.common.progress import Meter
from semiring.execution.question import GivenGraph, Question, Selection
from semiring.graphs import Graph
from semiring.kernels.operations import is_packed
from semiring.planning import Plan

__all__ = ["close", "close_matrices", "made_of_edges", "paths_of", "shares"]


def close(how: Plan, given: GivenGraph, question: Question, _: Selection | None, meter: Meter | None) -> Any:
    """Run a plan of strategy "whole" for all rows."""
    edges, matrix = given.edges, given.matrix
    if edges is not None:
        made = made_of_edges(how, given)
        return close_matrices(how, made, question, lambda: Graph(edges.dense(), owned=True), meter, returns=how.gpu)
    there = how.gpu and not is_gpu(given.form[2])
    if there:
        _read_there(how, given)
    g = given.read()

    def once_more() -> Graph | None:
        """Read the caller's matrix again, unless the closure overwrites the memory of it."""
        return None if matrix is None or any(map(shares, g.values, matrix.arrays)) else matrix.read(overwrite=False)

    return close_matrices(how, g, question, once_more, meter, returns=there)


def _read_there(how: Plan, given: GivenGraph) -> None:
    """Read a dense graph on the GPU that closes it, if the GPU can read the dtype."""
    matrix = given.matrix
    if given.graph is None and matrix is not None:
        for device in ("cpu", how.device):  # the result, and what is computed on
            require_memory(how.n, how.dtypes, via=how.paths, batch=how.problem.shape[:-2], device=device)
        given.graph = (matrix.uploaded(how.device) or matrix).read()


def made_of_edges(how: Plan, given: GivenGraph) -> Graph:
    """Make the matrix of a sparse graph, on the GPU that closes it if the edges are few and the matrix fits."""
    edges = given.edges
    assert edges is not None
    require_memory(edges.n, edges.dtypes, via=how.paths)
    needed = with_scratch(how.problem.result_bytes) + edges.nbytes
    there = how.strategy == "whole" and how.gpu and 4 * edges.nbytes <= needed and fits(needed, how.device)
    device = how.device if there else "cpu"
    with on_device(device):
        return Graph(edges.dense(device), owned=True, labels=given.vertices)


def close_matrices(how: Plan, g: Graph, question: Question, read: Callable[[], Graph | None], meter: Meter | None, *, returns: bool) -> Any:
    """Return the closure of matrices on the host or the GPU of the plan, in the caller's own kind, or its `Paths`.

    `read` reads the graph once more without overwriting anything, or returns None. With `returns`, results go from a GPU to the host.
    """
    if not how.gpu:
        values = tuple(map(_row_major, g.values)) if g.owned else tuple([np.array(v, order="C") for v in g.values])
        via = None
        if how.paths:
            via = np.empty(values[0].shape, np.int32)
            via.fill(-1)
        return _closed(how, g, values, via, question, read, meter)
    from semiring.kernels.cuda.blocks import upload
    from semiring.kernels.cuda.elements import of_bytes

    with on_device(how.device), ExitStack() as stack:
        source = None
        if not on_gpu(g.values[0]):
            values = tuple(map(upload, g.values))
        elif g.owned or not is_packed(how.semiring, how.dtypes, witness=how.paths):
            values = tuple(map(_row_major, g.working()))
        else:  # the engine packs bits, and leaves the caller's array as it is
            values, source = tuple([namespace(v).empty(v.shape, v.dtype) for v in g.values]), g.values
        via = of_bytes(values[0].shape, 0xFF) if how.paths else None
        if g.owned and question.options.check:  # what is refused stays as it is
            g.late = False
        arrive = _arrivals(values, via, stack) if returns else None
        return _closed(how, g, values, via, question, read, meter, arrive, source)


def _closed(
    how: Plan,
    g: Graph,
    values: Any,
    via: Any,
    question: Question,
    read: Callable[[], Graph | None],
    meter: Meter | None,
    arrive: Callable[[], tuple[tuple[Array, ...], Array | None]] | None = None,
    source: Any = None,
) -> Any:
    """Close matrices in place, and return what `arrive` brings to the host."""
    kept = _kept(g, values, read)
    engine = how.engine()
    engine.meter = meter
    closure(
        engine,
        values,
        via,
        method=how.algorithm,
        block=how.block,
        reflexive=question.reflexive,
        kept=kept,
        names=g.labels,
        verify=g.verify,
        late=g.late,
        source=source,
        check=question.options.check,
        shortcuts=how.problem.takes_shortcuts,
        tolerance=how.problem.tolerance,
    )
    if arrive is not None:
        values, via = arrive()
    return g.answer(*values) if via is None else paths_of(how.semiring, g, values, via, kept, reflexive=question.reflexive)


def paths_of(semiring: Semiring, g: Graph, values: Any, via: Any, kept: Callable[[], Any], *, reflexive: bool) -> Any:
    """Return the paths of all pairs, from their construction matrix."""
    from semiring.results.paths import Paths  # only where paths are wanted: a first call should be quick

    return Paths(semiring, values, via, nodes=g.labels, reflexive=reflexive, kept=kept, restore=g.restore, library=g.library)


def _arrivals(values: tuple[Any, ...], via: Any, stack: ExitStack) -> Callable[[], tuple[tuple[Array, ...], Array | None]]:
    """Return a function that copies results to the host, into pinned buffers that are registered in the background."""
    from semiring.kernels.cuda.blocks import download
    from semiring.streaming.gpus import PinnedMemory

    arrays = values if via is None else (*values, via)
    pinned = stack.enter_context(PinnedMemory([np.empty(v.shape, v.dtype) for v in arrays]))

    def arrive() -> tuple[tuple[Array, ...], Array | None]:
        pinned.ready.result()
        results = tuple(map(download, arrays, pinned.arrays))
        return (results, None) if via is None else (results[:-1], results[-1])

    return arrive


def _row_major(array: Any) -> Any:
    """Return the array, or a copy if a closure cannot work on it: contiguous on a GPU; on the host writable with contiguous rows."""
    if type(array) is not np.ndarray and on_gpu(array):
        suits = array.flags.c_contiguous
    else:
        suits = array.strides[-1:] == (array.itemsize,) and array.flags.writeable
    return array if suits else array.copy(order="C")


def _kept(g: Graph, values: tuple[Array, ...], read: Callable[[], Graph | None]) -> Callable[[], tuple[Array, ...] | None]:
    """Return a function that gives the matrix as it was before the closure; None if it is lost."""
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
    """Return True if two arrays share memory."""
    if on_gpu(v) != on_gpu(w) or not (on_gpu(w) or isinstance(w, np.ndarray)):
        return v is w  # NumPy would read all of what is on disk
    return bool(namespace(v).may_share_memory(v, w))
