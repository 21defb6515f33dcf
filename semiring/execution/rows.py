"""Rows of closures: a rectangle of A*, in memory proportional to it, by searches, by products, or out of the closure of what they reach."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from semiring.algebra.definition import Semiring
from semiring.algorithms.closure import closure as close
from semiring.algorithms.csr import CSR
from semiring.algorithms.divergence import extremum_of, may_improve
from semiring.algorithms.rows_of_edges import best_path, pays
from semiring.algorithms.rows_of_matrix import reachable, rows_of_matrix
from semiring.algorithms.spanning_tree import SpanningForest, is_symmetric
from semiring.arrays.devices import device_of, holds_symbols, host, is_gpu, namespace, on_device, on_gpu
from semiring.arrays.memory import require_memory
from semiring.common.errors import SemiringError, in_stack, noted
from semiring.common.forks import cached_property
from semiring.common.progress import Meter
from semiring.execution.reporting import reporting
from semiring.execution.searches import require_rows, rows_of_forest, search, search_steps
from semiring.graphs import Graph, edges_of
from semiring.graphs.read import GivenMatrix, reading_of
from semiring.graphs.vertices import Vertices, chosen
from semiring.kernels.limits import ValueStatistics
from semiring.kernels.machine import PART
from semiring.kernels.overflow.closures import guard_for, statistics_of
from semiring.kernels.select import engine_for
from semiring.planning import Plan, closure_problem, edges_problem, plan
from semiring.planning.options import Options
from semiring.results.paths import Paths
from semiring.results.paths_between import paths_in
from semiring.results.store import Names, shown
from semiring.results.trees import PredecessorTrees

__all__ = ["block_of_rows", "rows_by_products", "solve_between"]

Array = np.ndarray[Any, Any]
Values = tuple[Any, ...]


@dataclass(frozen=True, eq=False)
class _Task:
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

    @cached_property
    def roots(self) -> Array:
        """The vertices that are searched from (with `backward`: to), each once: as they were named, or else in ascending order."""
        ends = self.targets if self.backward else self.sources
        numbers = ends.numbers
        if ends.every or len(numbers) == 1 or (numbers[1:] > numbers[:-1]).all():
            return numbers
        once = np.unique(numbers)
        return numbers if len(once) == len(numbers) else once

    @property
    def shape(self) -> tuple[int, int]:
        """Of what is found: a row for each root, or a column."""
        return (self.n, len(self.roots)) if self.backward else (len(self.roots), self.n)

    def plan(self, values: Values, **more: Any) -> Plan:
        """How rows of a matrix with entries like `values` are found."""
        dtypes = tuple(v.dtype for v in values)
        shape = (*more.pop("batch", ()), self.n, self.n)
        symbolic = holds_symbols(values)
        return plan(closure_problem(self.semiring, dtypes, shape, self.options, searches=len(self.roots), symbolic=symbolic, **more))


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
    paths = bool(options.paths or semiring.witness)

    def task(n: int, labels: Sequence[Hashable] | None) -> _Task:
        sources, targets = chosen(options.sources, n, labels, "sources"), chosen(options.targets, n, labels, "targets")
        fewer = len(targets.numbers) < len(sources.numbers) and not paths
        backward = options.sources is None or (options.targets is not None and fewer)
        return _Task(semiring, options, reflexive, paths, n, labels, sources, targets, backward)

    with noted("the closure", semiring, graph):
        listed = edges_of(graph, semiring, nonedge=options.nonedge, dtype=options.dtype, presence=presence, weight=options.weight)
        if listed is not None:
            return _of_edges(*listed, task)
        reading = reading_of(semiring, options.nonedge, options.dtype, overwrite=options.overwrite, presence=presence)
        g = GivenMatrix.of(graph, semiring, reading).read()
    with noted("the closure", semiring, g.values):
        return _of_graph(g, task(g.n, g.labels))


def block_of_rows(graph: CSR | Graph, semiring: Semiring, options: Options, sources: range) -> Any:
    """Find rows of the closure of a graph that was read once for several blocks, or their `PathsBetween`, without a progress bar."""
    options = options._replace(sources=sources, progress=False)

    def ask(n: int, labels: Any) -> _Task:
        ends = Vertices(np.array(sources, dtype=np.intp)), Vertices.all_of(n)
        return _Task(semiring, options, True, bool(options.paths), n, labels, *ends, backward=False)

    if isinstance(graph, CSR):
        return _of_edges(graph, None, ask)
    return _of_graph(replace(graph, restore=None), ask(graph.n, graph.labels))


def rows_by_products(how: Plan, matrix: Array, sources: Array, statistics: Sequence[ValueStatistics] = ()) -> tuple[Array, Array | None]:
    """Rows of the closure of a dense matrix of single numbers, which is only read, and the trees of their paths.

    `statistics` tells what the numbers are, if that is known.
    """
    n = len(matrix)
    task = _Task(how.semiring, Options(threads=how.problem.threads), True, how.paths, n, None, Vertices(sources), Vertices.all_of(n), False)
    with noted("the closure", how.semiring, matrix):
        require_rows(task.shape, how.dtypes, "cpu", paths=how.paths, backward=False)
        with reporting(None, how) as meter:
            (values,), tree = _of_matrix((matrix,), task, how, statistics or statistics_of(how.semiring, (matrix,)), meter)
    own = _positions(task.roots, task.sources)
    return _part(values, own, None), None if tree is None else _part(tree, own, None)


def _of_edges(edges: CSR, labels: Sequence[Hashable] | None, ask: Callable[[int, Any], _Task]) -> Any:
    """The answer for a sparse graph, which stays sparse where few sources are asked."""
    task = ask(edges.n, labels)
    how = plan(edges_problem(task.semiring, edges, task.options, len(task.roots), reflexive=task.reflexive))
    with reporting(task.options.progress, how) as meter:
        if how.by_edges:
            require_rows(task.shape, edges.dtypes, "cpu", paths=task.paths, backward=task.backward)
            if meter is not None:
                meter.expect(search_steps(edges, len(task.roots)))
            if _is_pair(task) and how.strategy == "search" and how.problem.order != "rounds" and pays(edges) and how.searches:
                return _pair(task, how, edges)
            values, tree = search(how, edges, labels, task.roots, meter, reflexive=task.reflexive, backward=task.backward)
        elif _all_suffice(task, edges.statistics):
            values, tree = _of_closure(task, edges.dense, task.roots, task.labels, how, meter)
        else:
            vertices = (edges.transposed() if task.backward else edges).reachable(task.roots)
            require_memory(len(vertices), edges.dtypes, via=task.paths)
            values, tree = _reached(task, edges.induced(vertices).dense, vertices, edges.zero, how, meter)
    return _answer(task, Graph((), owned=True, labels=None if labels is None else tuple(labels)), values, tree, edges.arrays)


def _is_pair(task: _Task) -> bool:
    """Whether one path is asked for, between different vertices."""
    sources, targets = task.sources.numbers, task.targets.numbers
    return len(sources) == len(targets) == 1 and bool(sources[0] != targets[0])


def _pair(task: _Task, how: Plan, edges: CSR) -> Any:
    """The answer for one path of a sparse graph, by search from both ends."""
    assert how.searches is not None
    ends = int(task.sources.numbers[0]), int(task.targets.numbers[0])
    path, element = best_path(edges, *ends, how.searches)
    values = tuple([np.full((1, 1), e, d) for e, d in zip(element, edges.dtypes, strict=True)])
    if not task.paths:
        return shown(values, task.sources, task.targets, None)
    tree = np.full((1, edges.n), -1, np.int32)
    tree[0, path[1:]] = path[:-1]

    def whole() -> Array:
        """The tree of all vertices."""
        tree: Array = search(how, edges, task.labels, task.roots, None, reflexive=task.reflexive)[1]
        return tree

    names = Names(task.labels, task.n)
    return paths_in(
        PredecessorTrees(how.semiring, values, names, task.sources, task.targets, task.reflexive, edges.arrays, tree, whole=whole)
    )


def _of_graph(g: Graph, task: _Task) -> Any:
    """The answer for a dense matrix, or for a batch of them."""
    how = task.plan(g.values, batch=g.batch, place=device_of(g.values[0]))
    with reporting(task.options.progress, how) as meter:
        values, tree = _of_matrices(g, task, how, meter)
    return _answer(task, g, values, tree, lambda: g.values)


def _of_matrices(g: Graph, task: _Task, how: Plan, meter: Meter | None) -> tuple[Values, Any]:
    """Rows of each of the matrices, and the trees of their paths."""
    where = how.device
    shape = (*g.batch, *task.shape)
    require_rows(shape, g.dtypes, where, paths=task.paths, backward=task.backward)
    with on_device(where):
        statistics = () if g.verify is None else g.verify()
        if g.batch and not on_gpu(g.values[0]):
            statistics = ()  # each matrix is asked for itself
        given, sent = g.values, is_gpu(where) and not on_gpu(g.values[0])
        if sent:
            from semiring.kernels.cuda.transfer import upload

            require_memory(g.n, g.dtypes, batch=g.batch, device=where)
            given = tuple(map(upload, given))
        xp = namespace(given[0])
        values = tuple(xp.empty(shape, dtype=d) for d in g.dtypes)
        tree = xp.empty(shape, dtype=np.int32) if task.paths else None
        for index in np.ndindex(g.batch):
            try:
                found, grown = _of_matrix(tuple(v[index] for v in given), task, how, statistics, meter)
            except SemiringError as error:
                if g.batch:
                    in_stack(error, index)
                raise
            for array, part in zip(values, found, strict=True):
                array[index] = part
            if tree is not None:
                tree[index] = grown
        if sent:
            values, tree = tuple(map(host, values)), None if tree is None else host(tree)
    return values, tree


def _of_matrix(
    values: Values, task: _Task, how: Plan, statistics: Sequence[ValueStatistics], meter: Meter | None = None
) -> tuple[Values, Any]:
    """Rows of one matrix, and the trees of their paths."""
    dtypes, where = how.dtypes, how.device
    if how.spanning is not None and dtypes[0].kind != "O" and is_symmetric(values[0]):
        (matrix,), ((zero,), (one,)) = map(np.ascontiguousarray, values), task.semiring.identities(dtypes)
        forest = SpanningForest.of_matrix(matrix, zero, one, smallest=extremum_of(task.semiring) is np.fmin)
        return rows_of_forest(how, forest, matrix, task.roots, meter, reflexive=task.reflexive, backward=task.backward)
    if how.strategy == "rows by products":
        whole, speed = dict(how.considered).get("whole", math.inf), how.speed
        most = math.inf if speed is None else whole * speed.steps  # what takes as long as the closure
        found = _by_products(values, task, where, statistics, meter, steps=most)
        if found is not None:
            return found
    zero, _ = task.semiring.identities(dtypes)
    if _all_suffice(task, statistics):
        return _of_closure(task, lambda: tuple(v.copy() for v in values), task.roots, task.labels, how, meter, statistics)
    vertices = reachable(values, zero, task.roots, backward=task.backward)
    require_memory(len(vertices), dtypes, via=task.paths, device=where)
    index = namespace(values[0]).asarray(vertices)
    return _reached(task, lambda: tuple(v[index[:, None], index] for v in values), vertices, zero, how, meter)


def _all_suffice(task: _Task, statistics: Sequence[ValueStatistics]) -> bool:
    """Whether a graph is so small that its closure takes less than a look at what is reached, and no cycle of the rest can be divergent."""
    return task.n <= PART and bool(statistics) and not may_improve(task.semiring, statistics)


def _by_products(
    values: Values, task: _Task, where: str, statistics: Sequence[ValueStatistics], meter: Meter | None, *, steps: float
) -> tuple[Values, Any] | None:
    """Rows of a dense matrix by themselves, and the trees of their paths; None where so many steps do not suffice."""
    dtypes = tuple(v.dtype for v in values)
    guard = guard_for(task.semiring, dtypes, task.n - 1 if task.reflexive else task.n)
    statistics = statistics or statistics_of(task.semiring, values)
    guard.before(statistics)
    engine = engine_for(task.semiring, dtypes, where, task.options.threads, witness=True)
    engine.signed, engine.statistics, engine.meter = guard.signed, statistics[0], meter
    tree = namespace(values[0]).full(task.shape, -1, dtype=np.int32) if task.paths else None
    found = rows_of_matrix(engine, values, task.roots, reflexive=task.reflexive, backward=task.backward, tree=tree, steps=steps)
    if found is None:
        return None
    guard.after(found, tree)
    return found, tree


def _reached(
    task: _Task, part: Callable[[], Values], vertices: Array, zero: tuple[Any, ...], how: Plan, meter: Meter | None
) -> tuple[Values, Any]:
    """Rows of the whole closure of the part that the roots reach, which nothing else can change, in place of that part.

    Parameters
    ----------
    task : _Task
    part : callable
        Gives the part, in arrays that are new each time.
    vertices : int array
        Those of the part, in ascending order.
    zero : tuple
        The element of all other entries.
    how : Plan
    meter : Meter or None
    """
    names = vertices.tolist() if task.labels is None else [task.labels[v] for v in vertices.tolist()]
    found, grown = _of_closure(task, part, np.searchsorted(vertices, task.roots), names, how, meter)
    xp = namespace(found[0])
    columns, every = xp.asarray(vertices), xp.arange(len(task.roots))
    target = (columns[:, None], every) if task.backward else (every[:, None], columns)
    values = []
    for array, nothing in zip(found, zero, strict=True):
        result = xp.empty(task.shape, dtype=array.dtype)
        result.fill(nothing)
        result[target] = array
        values.append(result)
    if grown is None:
        return tuple(values), None
    tree = xp.full(task.shape, -1, dtype=np.int32)
    tree[target] = xp.where(grown < 0, np.int32(-1), columns[xp.maximum(grown, 0)].astype(np.int32))
    return tuple(values), tree


def _of_closure(
    task: _Task,
    matrix: Callable[[], Values],
    roots: Array,
    names: Sequence[Hashable] | None,
    how: Plan,
    meter: Meter | None,
    statistics: Sequence[ValueStatistics] = (),
) -> tuple[Values, Any]:
    """Rows of the whole closure of a matrix, and the trees of their paths.

    Parameters
    ----------
    task : _Task
    matrix : callable
        Gives it, in arrays that are new each time.
    roots : int array
        The numbers of the rows (`backward`: columns).
    names : sequence or None
        The caller's names of its vertices.
    how : Plan
    meter : Meter or None
    statistics : sequence of ValueStatistics
        What its numbers are, where that is known.
    """
    values = matrix()
    xp = namespace(values[0])
    via = xp.full(values[0].shape, -1, dtype=np.int32) if task.paths else None
    options: dict[str, Any] = {"method": task.options.method, "block": task.options.block, "reflexive": task.reflexive}
    engine = how.engine()
    engine.meter = meter
    close(engine, values, via, kept=matrix, names=names, verify=lambda: statistics, **options)
    rows = (slice(None), xp.asarray(roots)) if task.backward else (xp.asarray(roots),)
    found = tuple([v[rows] for v in values])
    if via is None:
        return found, None
    grown = _grown(task, Paths(task.semiring, values, via, reflexive=task.reflexive, kept=matrix), roots, rows)
    return found, xp.maximum(grown, np.int32(-1))  # which is −9999 where there is none


def _grown(task: _Task, paths: Paths, roots: Array, source: tuple[Any, ...]) -> Any:
    """The trees of some roots, which where A⁺ is asked say of each root how its own cycle ends (`backward`: begins)."""
    trees = (paths.next_hops() if task.backward else paths.predecessors())[source]
    if not task.reflexive:
        for i, (v, cycle) in enumerate(zip(roots.tolist(), paths.paths((v, v) for v in roots.tolist()), strict=True)):
            if cycle:
                trees[(v, i) if task.backward else (i, v)] = cycle[1 if task.backward else -2]
    return trees


def _answer(task: _Task, g: Graph, values: Values, tree: Any, kept: Callable[[], Values]) -> Any:
    """What was found, for the vertices in the order in which they were named, in the caller's own kind."""
    sources, targets = task.sources, task.targets
    own = _positions(task.roots, targets if task.backward else sources)
    if task.backward:
        row, column = None if sources.every else sources.numbers, own
    else:
        row, column = own, None if targets.every else targets.numbers
    values = tuple([_part(v, row, column) for v in values])
    restore = g.restore_part(sources.numbers, targets.numbers)
    if tree is None:
        return shown(values, sources, targets, restore)
    tree = _part(tree, None, own) if task.backward else _part(tree, own, None)
    names = Names(task.labels, task.n)
    store = PredecessorTrees(task.semiring, values, names, sources, targets, task.reflexive, kept, tree, task.backward)
    return paths_in(store, restore, g.library)


def _positions(roots: Array, ends: Vertices) -> Array | None:
    """Where the vertices that were named are among the roots; None where they are these."""
    return None if ends.numbers is roots or np.array_equal(ends.numbers, roots) else np.searchsorted(roots, ends.numbers)


def _part(array: Any, rows: Array | None, columns: Array | None) -> Any:
    """Rows and columns of an array of shape (…, m, n), None for all of them."""
    xp = namespace(array)
    for axis, some in ((-2, rows), (-1, columns)):
        if some is not None:
            array = array.take(xp.asarray(some), axis=axis)
    return xp.ascontiguousarray(array)
