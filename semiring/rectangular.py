"""Closures of chosen sources and targets: a rectangle of A*, in memory proportional to it."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from semiring.algebra.definition import Semiring
from semiring.algebra.errors import SemiringError, TooLargeError, noted
from semiring.algebra.laws import is_idempotent
from semiring.algebra.namespace import host, namespace, on_gpu
from semiring.algorithms.closure import closure as close
from semiring.algorithms.closure import require_closure_laws
from semiring.algorithms.edges import Edges
from semiring.algorithms.ranges import guard_for
from semiring.algorithms.rows_of_edges import rows_of_edges
from semiring.algorithms.rows_of_matrix import reachable, rows_of_matrix
from semiring.algorithms.schedules import schedule_for
from semiring.graphs import Graph, read_edges, read_graph, require_memory
from semiring.graphs.memory import free_on
from semiring.kernels.room import ALWAYS_FITS, gib
from semiring.kernels.select import device_of, engine_for, on_device, place, several
from semiring.options import Options
from semiring.paths import Paths
from semiring.paths_between import PathsBetween, shown
from semiring.vertices import Vertices, chosen

__all__ = ["block_of_rows", "solve_between", "whole_fits", "whole_is_faster"]

Array = np.ndarray[Any, Any]
Values = tuple[Any, ...]

_ROUNDS = 20
"""How many products of a few rows the closure of as many vertices is worth, as measured: paths of a dense graph have few edges."""

_STEPS, _EDGES = 3e10, 3e6
"""Steps of a closure and edges of a search that are done in a second."""

_EXACT_STEPS, _EXACT_EDGES = 3e6, 3e5
"""The same of Python's own numbers."""


def whole_is_faster(n: int, sources: int, edges: int | None = None, *, exact: bool = False) -> bool:
    """Whether the closure of all n vertices is predicted to take less time than rows of it for some sources.

    Parameters
    ----------
    n, sources : int
    edges : int, optional
        Of a sparse graph, whose rows are found edge by edge; those of a dense one by products.
    exact : bool
        Whether elements are Python's own numbers.
    """
    if edges is None:
        return sources * _ROUNDS >= n
    return n**3 / (_EXACT_STEPS if exact else _STEPS) < sources * edges / (_EXACT_EDGES if exact else _EDGES)


class _Task(NamedTuple):
    """What is asked of one matrix, or of each of a batch."""

    semiring: Semiring
    options: Options
    reflexive: bool
    paths: bool
    n: int
    labels: Sequence[Hashable] | None
    sources: Vertices
    targets: Vertices
    backward: bool

    @property
    def roots(self) -> Array:
        """The vertices that are searched from (with `backward`: to), each once and in ascending order."""
        return np.unique((self.targets if self.backward else self.sources).numbers)

    def name(self, vertex: int) -> Any:
        """The caller's name of a vertex."""
        return vertex if self.labels is None else self.labels[vertex]

    def by_rows(self, dtypes: tuple[np.dtype[Any], ...], *, repeats: bool) -> bool:
        """Whether rows can be found without the whole closure. `repeats`: by a method that adds a walk more than once."""
        wanted = self.options.method == "auto" and self.options.block is None
        sums = not repeats or is_idempotent(self.semiring, dtypes)
        return wanted and sums and (self.semiring.star is None or self.paths)


def solve_between(graph: Any, semiring: Semiring, options: Options, *, reflexive: bool, presence: bool) -> Any:
    """The rectangle of the closure of whatever the caller calls a graph, in the caller's own kind, or its `PathsBetween`.

    Parameters
    ----------
    graph, semiring, reflexive
        See `semiring.closure`.
    options : Options
        With `sources`, `targets` or both.
    presence : bool
        See `read_graph`.
    """
    if options.memory_limit is not None or options.checkpoint is not None:
        raise SemiringError(
            "memory_limit and checkpoint are for the closure of all vertices; with sources or targets memory is for their rows alone: "
            "leave them out, and name fewer at a time if that is too much"
        )
    schedule_for(options.method, options.block, eliminate=False)
    paths = bool(options.paths or semiring.witness)

    def task(n: int, labels: Sequence[Hashable] | None) -> _Task:
        sources, targets = chosen(options.sources, n, labels, "sources"), chosen(options.targets, n, labels, "targets")
        fewer = len(targets.numbers) < len(sources.numbers) and not paths
        backward = options.sources is None or (options.targets is not None and fewer)
        return _Task(semiring, options, reflexive, paths, n, labels, sources, targets, backward)

    with noted("the closure", semiring, graph):
        listed = read_edges(graph, semiring, nonedge=options.nonedge, dtype=options.dtype, presence=presence)
        if listed is not None:
            return _of_edges(*listed, task)
        g = read_graph(graph, semiring, nonedge=options.nonedge, dtype=options.dtype, overwrite=options.overwrite, presence=presence)
    with noted("the closure", semiring, g.values):
        return _of_graph(g, task(g.n, g.labels))


def whole_fits(graph: Edges | Graph, options: Options) -> bool:
    """Whether the closure of all vertices is faster than all of its rows one after the other, and fits half of the free memory."""
    if isinstance(graph, Edges):
        exact = any(d.kind == "O" for d in graph.dtypes)
        return whole_is_faster(graph.n, graph.n, len(graph.heads), exact=exact) and _fits(graph.n, graph.dtypes, "cpu", paths=False)
    return _fits(graph.n, graph.dtypes, device_of(graph.values[0]), paths=False)


def block_of_rows(graph: Edges | Graph, semiring: Semiring, options: Options, sources: range) -> Any:
    """Rows of the closure, of a graph that was read once for several of them."""
    options = options._replace(sources=sources)

    def ask(n: int, labels: Any) -> _Task:
        ends = Vertices(np.array(sources, dtype=np.intp)), Vertices(np.arange(n))
        return _Task(semiring, options, True, False, n, labels, *ends, backward=False)

    if isinstance(graph, Edges):
        return _of_edges(graph, None, ask)
    return _of_graph(replace(graph, restore=None), ask(graph.n, graph.labels))


def _of_edges(edges: Edges, labels: Sequence[Hashable] | None, ask: Callable[[int, Any], _Task]) -> Any:
    """The answer for a sparse graph, which stays sparse where few sources are asked."""
    task = ask(edges.n, labels)
    device = task.options.device
    if several(device) is not None or str(device) not in ("auto", "cpu", "reference"):
        raise SemiringError(
            f"device={device!r}: the rows of a sparse graph are found edge by edge, on the host; leave device out, or pass a dense array, "
            f"whose rows a GPU finds by products"
        )
    require_closure_laws(task.semiring, edges.dtypes, paths=task.paths)
    roots, zero = task.roots, edges.zero
    by_rows = task.by_rows(edges.dtypes, repeats=False) and not _symbolic(edges.weights)
    exact = any(d.kind == "O" for d in edges.dtypes)
    if by_rows and whole_is_faster(edges.n, len(roots), len(edges.heads), exact=exact):
        by_rows = not _fits(edges.n, edges.dtypes, "cpu", paths=task.paths)
    if by_rows:
        _require_rows(task, edges.dtypes, (), "cpu")
        tree = np.full((len(roots), edges.n), -1, dtype=np.int32) if task.paths else None
        how: dict[str, Any] = {"reflexive": task.reflexive, "backward": task.backward, "tree": tree, "name": task.name}
        values = rows_of_edges(task.semiring, edges, roots, **how)
        if task.backward:
            values, tree = tuple(v.T for v in values), None if tree is None else tree.T
    else:
        vertices = (edges.transposed() if task.backward else edges).reachable(roots)
        require_memory(len(vertices), edges.dtypes, via=task.paths)
        inner = edges.induced(vertices)
        values, tree = _whole(task, inner.dense(), inner.dense, vertices, zero, "reference" if device == "reference" or exact else "cpu")
    return _answer(task, Graph((), owned=True, labels=None if labels is None else tuple(labels)), values, tree, edges.arrays)


def _of_graph(g: Graph, task: _Task) -> Any:
    """The answer for a dense matrix, or for a batch of them."""
    shared = several(task.options.device)
    device = ("auto" if on_gpu(g.values[0]) else shared[0]) if shared else task.options.device
    count = math.prod(g.batch)
    steps = float(count) * min(_ROUNDS * len(task.roots), g.n) * g.n**2
    where = place(device, g.values, steps, sum(v.nbytes for v in g.values))
    require_closure_laws(task.semiring, g.dtypes, paths=task.paths)
    _require_rows(task, g.dtypes, g.batch, where)
    with on_device(where):
        seen = g.verify()
        given, sent = g.values, where.startswith("cuda:") and not on_gpu(g.values[0])
        if sent:
            from semiring.kernels.cuda.transfer import upload

            require_memory(g.n, g.dtypes, batch=g.batch, device=where)
            given = tuple(map(upload, given))
        xp = namespace(given[0])
        shape = (g.n, len(task.roots)) if task.backward else (len(task.roots), g.n)
        values = tuple(xp.empty((*g.batch, *shape), dtype=d) for d in g.dtypes)
        tree = xp.empty((*g.batch, *shape), dtype=np.int32) if task.paths else None
        for index in np.ndindex(g.batch):
            try:
                found, grown = _of_matrix(tuple(v[index] for v in given), task, where, () if seen is None else (seen,))
            except SemiringError as error:
                if g.batch:
                    error.add_note(f"in the matrix at batch index [{', '.join(map(str, index))}]")
                raise
            for array, part in zip(values, found, strict=True):
                array[index] = part
            if tree is not None:
                tree[index] = grown
        if sent:
            values, tree = tuple(map(host, values)), None if tree is None else host(tree)
        return _answer(task, g, values, tree, lambda: g.values)


def _of_matrix(values: Values, task: _Task, where: str, seen: tuple[Any, ...]) -> tuple[Values, Any]:
    """Rows of one matrix, and the trees of their paths."""
    semiring, dtypes, roots = task.semiring, tuple(v.dtype for v in values), task.roots
    zero, _ = semiring.identities(dtypes)
    fits = _fits(task.n, dtypes, where, paths=task.paths)
    if task.by_rows(dtypes, repeats=True) and not _symbolic(values) and not (fits and whole_is_faster(task.n, len(roots))):
        guard = guard_for(semiring, dtypes, task.n - 1 if task.reflexive else task.n)
        guard.before(values, seen)
        engine = engine_for(semiring, dtypes, where, task.options.threads, witness=True)
        engine.signed, engine.seen = guard.signed, seen[0] if seen else None
        shape = (task.n, len(roots)) if task.backward else (len(roots), task.n)
        tree = namespace(values[0]).full(shape, -1, dtype=np.int32) if task.paths else None
        how: dict[str, Any] = {"reflexive": task.reflexive, "backward": task.backward, "tree": tree}
        found = rows_of_matrix(engine, values, roots, **how, steps=float(task.n) ** 3 if fits else math.inf)
        if found is not None:
            guard.after(found, tree)
            return found, tree
    vertices = reachable(values, zero, roots, backward=task.backward)
    require_memory(len(vertices), dtypes, via=task.paths, device=where)
    xp = namespace(values[0])
    index = xp.asarray(vertices)

    def again() -> Values:
        return tuple(v[index[:, None], index] for v in values)

    return _whole(task, again(), again, vertices, zero, where)


def _whole(
    task: _Task, inner: Values, again: Callable[[], Values], vertices: Array, zero: tuple[Any, ...], where: str
) -> tuple[Values, Any]:
    """Rows of the whole closure of the part that the sources reach, which nothing else can change, in place of that part."""
    semiring, xp = task.semiring, namespace(inner[0])
    dtypes = tuple(v.dtype for v in inner)
    engine = engine_for(semiring, dtypes, where, task.options.threads, witness=task.paths)
    via = xp.full(inner[0].shape, -1, dtype=np.int32) if task.paths else None
    names = [task.name(v) for v in vertices.tolist()]
    method, block = task.options.method, task.options.block
    close(engine, inner, via, method=method, block=block, reflexive=task.reflexive, kept=again, names=names)
    rows = np.searchsorted(vertices, task.roots)
    shape = (task.n, len(rows)) if task.backward else (len(rows), task.n)
    columns, place_of = xp.asarray(vertices), xp.asarray(rows)
    every = xp.arange(len(rows))
    target = (columns[:, None], every) if task.backward else (every[:, None], columns)
    source = (slice(None), place_of) if task.backward else (place_of,)
    values = []
    for array, nothing in zip(inner, zero, strict=True):
        result = xp.empty(shape, dtype=array.dtype)
        result.fill(nothing)
        result[target] = array[source]
        values.append(result)
    if via is None:
        return tuple(values), None
    paths = Paths(semiring, inner, via, reflexive=task.reflexive, kept=again)
    grown = (paths.next_hops() if task.backward else paths.predecessors())[source]
    if not task.reflexive:
        for i, (v, cycle) in enumerate(zip(rows.tolist(), paths.paths((v, v) for v in rows.tolist()), strict=True)):
            if cycle:
                grown[(v, i) if task.backward else (i, v)] = cycle[1 if task.backward else -2]
    tree = xp.full(shape, -1, dtype=np.int32)
    tree[target] = xp.where(grown < 0, np.int32(-1), columns[xp.maximum(grown, 0)].astype(np.int32))
    return tuple(values), tree


def _answer(task: _Task, g: Graph, values: Values, tree: Any, kept: Callable[[], Values]) -> Any:
    """What was found, for the vertices in the order in which they were named, in the caller's own kind."""
    sources, targets, roots = task.sources, task.targets, task.roots
    row, column = (v.numbers for v in (sources, targets))
    if task.backward:
        column = own = np.searchsorted(roots, column)
    else:
        row = own = np.searchsorted(roots, row)
    values = tuple(_part(v, row, column) for v in values)
    restore = g.restore_part(sources.numbers, targets.numbers)
    if tree is None:
        return shown(values, sources, targets, restore)
    tree = _part(tree, None, own) if task.backward else _part(tree, own, None)
    how: dict[str, Any] = {"backward": task.backward, "nodes": task.labels, "reflexive": task.reflexive, "kept": kept}
    return PathsBetween(task.semiring, values, tree, sources, targets, **how, restore=restore, library=g.library)


def _part(array: Any, rows: Array | None, columns: Array | None) -> Any:
    """Rows and columns of an array of shape (…, m, n), which is itself where these are all of them."""
    xp = namespace(array)
    for axis, some in ((-2, rows), (-1, columns)):
        if some is not None and not np.array_equal(some, np.arange(array.shape[axis])):
            array = array.take(xp.asarray(some), axis=axis)
    return xp.ascontiguousarray(array)


def _fits(n: int, dtypes: tuple[np.dtype[Any], ...], where: str, *, paths: bool) -> bool:
    """Whether the closure of n vertices fits half of the memory that is free."""
    needed = n * n * (sum(d.itemsize for d in dtypes) + 4 * paths)
    if 2 * needed <= ALWAYS_FITS:
        return True
    free = free_on(where)
    return free is None or 2 * needed <= free


def _require_rows(task: _Task, dtypes: tuple[np.dtype[Any], ...], batch: tuple[int, ...], where: str) -> None:
    """Refuse more sources than there is memory for."""
    needed = math.prod(batch) * len(task.roots) * task.n * (sum(d.itemsize for d in dtypes) + 4 * task.paths)
    if needed <= ALWAYS_FITS:
        return
    free = free_on(where)
    if free is not None and needed > free:
        what = "targets" if task.backward else "sources"
        raise TooLargeError(
            f"rows for {len(task.roots):,} {what} among {task.n:,} vertices take {gib(needed)}, but {gib(max(free, 0))} of memory are "
            f"available; name fewer {what} at a time"
        )


def _symbolic(values: Values) -> bool:
    """Whether an entry is SymPy's, of which it is unknown whether it changes anything: elimination asks no such question."""
    return any(v.dtype.kind == "O" and any(type(e).__module__.startswith("sympy.") for e in v.flat) for v in values)
