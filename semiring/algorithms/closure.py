"""The closure of a matrix over any semiring: A* = I ⊕ A ⊕ A² ⊕ …, or A⁺ without I.

1. The laws of the semiring decide how to compute (`steps_for`), and a guard refuses a matrix whose results could leave the dtype.
2. The matrix is split into components where that saves work; each is closed by a schedule (`Task`). Symmetric matrices over min and max
   are closed by a minimum spanning tree instead.
3. A divergent pivot means a divergent cycle, which is an error, or a rounding error, which potentials repair.
4. The guard checks the results.

A stack of small matrices is closed at once unless the checks fail, and then matrix by matrix. Matrices on a GPU are closed
asynchronously; divergent pivots are read back at the end, and then the closure is repeated on the host, which finds the reason.

Examples
--------
>>> from semiring import MIN_PLUS
>>> inf = np.inf
>>> a = np.array([[inf, 3, inf, 7], [8, inf, 2, inf], [5, inf, inf, 1], [2, inf, inf, inf]])
>>> closure(engine_for(MIN_PLUS, (a.dtype,)), (a,), reflexive=False)  # A⁺: the diagonal has the shortest cycles
>>> a
array([[8., 3., 5., 6.],
       [5., 8., 2., 3.],
       [3., 6., 8., 1.],
       [2., 5., 7., 8.]])
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from semiring.algebra.definition import Semiring
from semiring.algorithms import components
from semiring.algorithms.bellman_ford import close_by_potentials, inverse
from semiring.algorithms.divergence import Diagnosis, divergent_loop, is_min_plus, may_improve
from semiring.algorithms.schedules import Schedule, eliminates, require_closure_laws, schedule_for
from semiring.algorithms.spanning_tree import close_symmetric, is_bottleneck
from semiring.algorithms.sums import diverged, is_inverse, nonnegative_sums, pivot_where_needed
from semiring.arrays.conversion import Array, Values
from semiring.arrays.devices import host, on_gpu, to_gpu
from semiring.arrays.pieces import HOST, pieces
from semiring.arrays.threads import Threaded
from semiring.common.errors import DivergenceError, DivergentPivot, SemiringError, in_stack
from semiring.kernels import machine
from semiring.kernels.engine import Block, Engine
from semiring.kernels.limits import ValueStatistics, tropical
from semiring.kernels.operations import is_reachability
from semiring.kernels.overflow.closures import guard_for, leaves_carrier, statistics_of
from semiring.kernels.overflow.statistics import begin_statistics
from semiring.kernels.select import engine_for

__all__ = ["closure"]

_FEW = 64
"""Vertices of a component worth a separate closure."""

_ORDINARY = ValueStatistics((0.0, 1.0))
"""The statistics for which a GPU's kernels are compiled before the numbers are known: finite, none negative."""


class Task(NamedTuple):
    """An engine, and the closure to compute of each matrix."""

    engine: Engine
    check: bool  # refuse weights whose sums could leave the dtype
    shortcuts: bool  # allow faster algorithms than the schedule, with the same result
    schedule: Schedule  # A ← A ⊕ A² ⊕ …, or A ← A* to `eliminate`
    eliminate: bool
    reflexive: bool
    name: tuple[str, int | None]  # key of the schedule for the engine

    def accumulate(self, values: Values, via: Array | None, source: Values | None = None) -> None:
        """values ← A⁺ or I ⊕ A⁺ for an idempotent ⊕. After a divergent pivot, all elements are still sums over some paths."""
        engine = self.engine
        A = engine.load(source or values, via)

        def steps(block: Block) -> None:
            if self.reflexive:
                engine.add_identity(block)  # A ← I ⊕ A
            self.schedule(engine, block)  # A ← A ⊕ A² ⊕ …

        try:
            engine.run((*self.name, self.reflexive), steps, A)
        finally:
            engine.store(A, values)

    def run_elimination(self, values: Values) -> None:
        """values ← A* or A⁺, for any closed semiring; `DivergentPivot` also if a sum of non-negative numbers came out negative."""
        engine = self.engine
        sums = nonnegative_sums(engine.semiring, values)
        inverse = bool(sums) and sums[0] is not True and is_inverse(engine.semiring) and values[0].dtype.kind == "f"
        given = tuple([v.copy() for v in values]) if inverse or not self.reflexive else values
        A = engine.load(values)
        self.schedule(engine, A)  # A ← A*
        if sums:
            engine.verify()
            engine.store(A, values)
            if (row := diverged(values, sums)) is not None:
                raise DivergentPivot(row)
            if inverse:
                pivot_where_needed(*given, *values)
            A = engine.load(values)
        if not self.reflexive:
            # A⁺ = A ⊗ A*
            engine.multiply(engine.load(given), A, A)
        engine.store(A, values)

    def statistics(self, values: Values) -> Sequence[ValueStatistics]:
        """Return the value statistics that checks, or the choice of the algorithm, need: integers may pull an ∞ back."""
        engine = self.engine
        return statistics_of(engine.semiring, values) if self.check or tropical(engine.semiring, engine.dtypes) else ()

    def require_elements(self, values: Values) -> None:
        """Refuse an overflowed result of an elimination, outside the carrier."""
        semiring, dtypes = self.engine.semiring, self.engine.dtypes
        if all(d.kind != "O" for d in dtypes) and leaves_carrier(semiring, values):
            raise DivergenceError(f"the closure over {semiring.name} left the range of {', '.join(map(str, dtypes))}")


@functools.lru_cache(maxsize=1024)
def steps_for(
    semiring: Semiring,
    dtypes: tuple[np.dtype[Any], ...],
    method: str,
    block: int | None,
    reflexive: bool,
    paths: bool,
    running: tuple[Any, ...],
) -> tuple[Schedule, bool, bool, tuple[str, int | None]]:
    """Return the other fields of a `Task`, after a check of the laws; `running` are the semiring's callables at the moment."""
    require_closure_laws(semiring, dtypes, paths=paths)
    eliminate = eliminates(semiring, dtypes, paths=paths)
    return schedule_for(method, block, eliminate=eliminate), eliminate, reflexive, (method, block)


def closure(
    engine: Engine,
    values: Values,  # shape (…, n, n), one array for each component
    via: Array | None = None,  # the construction matrix to fill, int32 of the same shape; −1 everywhere at first
    *,
    method: str = "auto",  # for this and `block` see `schedule_for`
    block: int | None = None,
    reflexive: bool = True,  # A* with the identity, or A⁺ without
    kept: Callable[[], Values | None] = lambda: None,  # returns the input for the search of a divergent cycle; None if overwritten
    names: Sequence[Any] | None = None,  # the caller's names of the vertices, for errors
    verify: Callable[[], Sequence[ValueStatistics]] | None = None,
    late: bool = True,  # `verify` may run after `values` have changed
    source: Values | None = None,  # the matrix, if `values` are to receive the closure only: on a GPU, for engines that pack elements
    check: bool = True,  # refuse numbers that could leave the dtype
    shortcuts: bool = False,
    tolerance: float = 0.0,  # see `Diagnosis`
) -> None:
    """values ← A* = I ⊕ A ⊕ A² ⊕ …, or A⁺ = A ⊕ A² ⊕ …, in place.

    `verify` checks a matrix on a GPU, raises errors, and returns the value statistics of each component. With `shortcuts`, another
    algorithm may close the matrix: on the CPU a minimum spanning tree (`spanning_tree`), on a GPU hop counts in bits for equal edges.

    Without a closure, a `DivergenceError` is raised, for min-plus a `NegativeCycleError`, and `values` holds no result. Unfit laws and
    numbers raise `LawError`, `OverflowRiskError` or another `SemiringError`.

    n³ steps (fewer if the graph falls into components), scratch of one row or stripe; A⁺ by elimination takes 2n³ and a copy of the matrix,
    because A⁺ = A ⊗ A*. If only rounding makes a cycle improve, as much again, and a construction matrix.

    Selective sums of floats, such as distances, are rounded. With non-negative weights an element is within h · ε · Σ|w| of the weight of a
    best path of h edges. With negative weights the bound is n · ε · the largest magnitude of a weight or element. A negative cycle within
    that bound of 0 cannot be told from 0 and may go unreported.
    """
    semiring, dtypes = engine.semiring, engine.dtypes
    task = Task(engine, check, shortcuts, *steps_for(semiring, dtypes, method, block, reflexive, via is not None, semiring.running(dtypes)))
    if 0 in values[0].shape:
        return
    if engine.meter is not None:
        engine.meter.expect(values[0].size * values[0].shape[-1] * (2 if task.eliminate and not reflexive else 1))
    name = int if names is None else names.__getitem__
    if type(values[0]) is not np.ndarray and on_gpu(values[0]):

        def repeat(vertex: int) -> None:
            _close_on_host(task, values, via, kept(), names, vertex, tolerance)

        close_asynchronously(task, values, via, verify, repeat, late=late, source=source)
        return
    batch = values[0].shape[:-2]
    statistics = () if verify is None else verify()
    if not batch:
        _close_matrix(task, values, via, statistics, Diagnosis(semiring, kept, name, tolerance))
        return
    for piece in pieces(batch, max(1, HOST // values[0].shape[-1] ** 2)):
        if not _close_together(task, tuple(v[piece] for v in values), None if via is None else via[piece]):
            for index in itertools.product(*(range(length)[some] for some, length in zip(piece, batch, strict=True))):
                _close_of_stack(task, values, via, kept, name, index, tolerance)


def _close_together(task: Task, values: Values, via: Array | None) -> bool:
    """Close a stack of matrices of one pivot block each; False leaves the stack as it was, because one matrix needs a closer look.

    The value statistics of the stack bound those of each matrix, so the same checks hold for each matrix, with the same result.
    """
    engine, n = task.engine, values[0].shape[-1]
    if n > engine.pivot or any(d.kind == "O" for d in engine.dtypes):
        return False
    kept = tuple(v.copy() for v in values)
    guard = guard_for(engine.semiring, engine.dtypes, n - 1 if task.reflexive else n, check=task.check)
    meter, engine.meter = engine.meter, None
    try:
        statistics = task.statistics(values)
        if statistics:
            guard.before(statistics)
        engine.signed = guard.signed
        if task.eliminate:
            task.run_elimination(values)
            if task.check:
                task.require_elements(values)
        else:
            task.accumulate(values, via)
            if not statistics or may_improve(engine.semiring, statistics):
                stopped = divergent_loop(engine.semiring, [v.diagonal(0, -2, -1).ravel() for v in values])
                if stopped is not None:
                    raise DivergentPivot(stopped % n)
        guard.after(values, via)
    except SemiringError:
        for v, before in zip(values, kept, strict=True):
            v[...] = before
        if via is not None:
            via.fill(-1)
        return False
    finally:
        engine.meter = meter
    if meter is not None:
        meter.add(values[0].size * n * (2 if task.eliminate and not task.reflexive else 1))
    return True


def _close_of_stack(
    task: Task,
    values: Values,
    via: Array | None,
    kept: Callable[[], Values | None],
    name: Callable[[int], Any],
    index: tuple[int, ...],
    tolerance: float,
) -> None:

    def input_matrix() -> Values | None:
        arrays = kept()
        return None if arrays is None else tuple(v[index] for v in arrays)

    diagnosis, matrix = Diagnosis(task.engine.semiring, input_matrix, name, tolerance), tuple(v[index] for v in values)
    try:
        _close_matrix(task, matrix, None if via is None else via[index], (), diagnosis)
    except SemiringError as error:
        in_stack(error, index)
        raise


def _expect(engine: Engine, steps: int) -> None:
    """Add steps, which may be negative, to the number that the engine's meter expects."""
    if engine.meter is not None:
        engine.meter.expect(steps)


def _close_matrix(task: Task, values: Values, via: Array | None, statistics: Sequence[ValueStatistics], diagnosis: Diagnosis) -> None:
    """Close one matrix on the host, component by component where that saves work."""
    engine, n = task.engine, len(values[0])
    guard = guard_for(engine.semiring, engine.dtypes, n - 1 if task.reflexive else n, check=task.check)
    statistics = statistics or task.statistics(values)
    if statistics:
        guard.before(statistics)
    if task.shortcuts and n >= machine.SPANNING and is_bottleneck(engine.semiring, engine.dtypes):
        threads = engine.threads if isinstance(engine, Threaded) else 1
        if close_symmetric(engine.semiring, values[0], via, reflexive=task.reflexive, threads=threads):
            _expect(engine, n**2 - n**3)
            if engine.meter is not None:
                engine.meter.add(n**2)
            return
    engine.signed, doubtful = guard.signed, not statistics or may_improve(engine.semiring, statistics)
    label = None
    if via is None and is_reachability(engine.semiring, engine.dtypes):
        condensed = components.condense(values[0]) if n >= machine.CONDENSED else None
        if condensed is not None:
            _expect(engine, len(condensed[1]) ** 3 - n**3)
            components.close_condensed(values[0], *condensed, functools.partial(_close_block, task, diagnosis))
            return
    elif n >= machine.COMPONENTS:
        zero, _ = engine.semiring.identities(engine.dtypes)
        label = components.weak(values, zero)
    found = None if label is None else components.groups(label, max(_FEW, engine.alignment))
    if found is None:
        _close_block(task, diagnosis, values, via, np.arange(n), doubtful=doubtful)
    else:
        _expect(engine, sum([(r.stop - r.start) ** 3 for r in found[1]]) - n**3)
        components.close_groups(values, via, *found, functools.partial(_close_block, task, diagnosis))
    guard.after(values, via)


def _close_block(task: Task, diagnosis: Diagnosis, values: Values, via: Array | None, vertices: Array, *, doubtful: bool = True) -> None:
    """Close one matrix as a whole; `vertices` holds the vertex of each row, and `doubtful` is True if a cycle may diverge."""
    engine = task.engine
    if task.eliminate:
        _eliminate(task, values, diagnosis, vertices)
        return
    try:
        task.accumulate(values, via)
        stopped = divergent_loop(engine.semiring, [v.diagonal() for v in values]) if doubtful else None
    except DivergentPivot as stop:
        stopped = stop.vertex
    if stopped is not None:
        _mend(task, values, via, diagnosis.potentials(stopped, values, via, vertices), diagnosis, vertices)


def _eliminate(task: Task, values: Values, diagnosis: Diagnosis, vertices: Array) -> None:
    try:
        task.run_elimination(values)
    except DivergentPivot as stop:
        raise diagnosis.elimination(int(vertices[stop.vertex]), task.engine.dtypes) from None
    if task.check:
        task.require_elements(values)


def _mend(task: Task, values: Values, via: Array | None, p: Values, diagnosis: Diagnosis, vertices: Array) -> None:
    """Repeat a closure with potentials p, so that rounding cannot make a cycle improve."""
    engine = task.engine
    back = inverse(engine.semiring, p)
    if back is None:
        raise diagnosis.only_rounding(engine.dtypes, large=False)
    kept = diagnosis.kept()
    if kept is None:
        # Without the input, continue from the elements so far, which are weights of paths in any case.
        edges = tuple(v.copy() for v in values)
    else:
        edges = kept if len(vertices) == len(kept[0]) else tuple(v[np.ix_(vertices, vertices)] for v in kept)
        for array, original in zip(values, edges, strict=True):
            array[...] = original
    if via is None:
        via = np.full(values[0].shape, -1, dtype=np.int32)
    elif kept is not None:
        via[...] = -1
    _expect(engine, len(vertices) ** 3)
    close_by_potentials(engine.semiring, values, via, edges, p, back, task.accumulate)
    if task.reflexive:
        A = engine.load(values)
        engine.add_identity(A)
        engine.store(A, values)


def _close_on_host(
    task: Task, values: Values, via: Array | None, given: Values | None, names: Sequence[Any] | None, vertex: int, tolerance: float
) -> None:
    """Repeat the closure of GPU arrays on the CPU, which finds the cycle of a divergent pivot, or only a rounding error."""
    semiring, dtypes = task.engine.semiring, task.engine.dtypes
    if given is None:
        raise Diagnosis(semiring, lambda: None, int if names is None else names.__getitem__).error(None, None, vertex) from None
    edges = tuple(map(host, given))
    arrays = tuple(v.copy() for v in edges)
    on_host = None if via is None else np.full(via.shape, -1, dtype=np.int32)
    engine = engine_for(semiring, dtypes, "auto", witness=via is not None)
    engine.meter = task.engine.meter
    closure(engine, arrays, on_host, reflexive=task.reflexive, kept=lambda: edges, names=names, tolerance=tolerance)
    for v, w in zip(values, arrays, strict=True):
        v[...] = to_gpu(w)
    if via is not None:
        via[...] = to_gpu(on_host)


def close_asynchronously(
    task: Task,
    values: tuple[Any, ...],
    via: Any,
    verify: Callable[[], Sequence[ValueStatistics]] | None,
    repeat: Callable[[int], None],
    *,
    late: bool,
    source: Values | None,
) -> None:
    """values ← A* or A⁺ on a GPU, in place; `repeat` closes the matrices elsewhere, or raises, given a vertex whose pivot diverged.

    `values` are CuPy arrays of shape (…, n, n), and `via` an int32 one or None; for `verify`, `late` and `source` see `closure`.
    """
    from semiring.kernels.cuda import compiler

    engine, n = task.engine, values[0].shape[-1]
    guard = guard_for(engine.semiring, engine.dtypes, n - 1 if task.reflexive else n, check=task.check)

    def found() -> Sequence[ValueStatistics]:
        return task.statistics(source or values) if verify is None else verify()

    def refuse(statistics: Sequence[ValueStatistics]) -> None:
        if statistics:
            guard.before(statistics)

    def rehearsal() -> None:
        begin_statistics(values)
        if not task.eliminate:
            engine.signed, engine.statistics, engine.asynchronous = guard.signed, _ORDINARY, False
            task.accumulate(values, via, source)

    levels = task.shortcuts and task.reflexive and via is None and values[0].ndim == 2 and n >= machine.LEVELS_SIDE
    levels = levels and is_min_plus(engine.semiring)
    # Close one block before its numbers are known: a kernel for any numbers costs less than the wait.
    alone = values[0].ndim == 2 and n <= engine.pivot
    soon = late and alone and verify is not None and not (levels or task.eliminate or tropical(engine.semiring, engine.dtypes))
    statistics = () if soon else compiler.run(found, rehearsal)
    if levels and statistics and _close_by_levels(engine, values[0], statistics[0]):
        return
    refuse(statistics)
    engine.signed, engine.statistics, engine.asynchronous = guard.signed, statistics[0] if statistics else None, not statistics
    try:
        if task.eliminate:
            task.run_elimination(values)
        elif not (via is None and statistics and _close_in_windows(task, values, statistics[0])):
            task.accumulate(values, via, source)
        if engine.meter is not None:
            engine.meter.wait()
        if soon:
            statistics = found()
            refuse(statistics)
        if not statistics or may_improve(engine.semiring, statistics):  # else no pivot diverges: do not wait
            engine.verify()
    except DivergentPivot as stop:
        repeat(stop.vertex)
    guard.after(values, via)
    if task.eliminate and task.check:
        task.require_elements(values)


def _close_in_windows(task: Task, values: Values, found: ValueStatistics) -> bool:
    """Close a matrix of small integers on a GPU's tensor cores; return False if it remains to be closed."""
    if values[0].ndim != 2 or len(values[0]) < machine.POWERS_CLOSURE:
        return False
    from semiring.algorithms.windows import close_in_windows
    from semiring.kernels.cuda.engine import CudaEngine

    engine = task.engine
    if not isinstance(engine, CudaEngine) or may_improve(engine.semiring, (found,)):
        return False
    least, greatest = found.finite or (0, 0)
    whole = least % 1 == greatest % 1 == 0
    return whole and close_in_windows(engine, lambda: task.accumulate(values, None), values, int(found.largest))


def _close_by_levels(engine: Engine, matrix: Any, found: ValueStatistics) -> bool:
    """Close a matrix on a GPU by counting hops, if its edges are equally long and all distances exact; return True if so."""
    n, dtype = len(matrix), matrix.dtype
    if found.finite is None or found.finite[0] < 0 or found.nan or found.negative_infinity:  # also on the diagonal
        return False
    if found.finite[0] != found.finite[1] and not 0 < found.zeros <= n:
        return False
    length, most = found.finite[1], 2.0 ** (np.finfo(dtype).nmant + 1) if dtype.kind == "f" else float(np.iinfo(dtype).max)
    if not (length > 0 and length == int(length) and min(n, machine.LEVELS) * length < most):
        return False
    from semiring.kernels.cuda import boolean

    if not boolean.close_by_levels(matrix, engine.semiring.identities((dtype,))[0][0], length):
        return False
    _expect(engine, -(n**3))
    return True
