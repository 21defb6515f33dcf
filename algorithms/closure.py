"""The closure of a matrix over any semiring: A* = I ⊕ A ⊕ A² ⊕ …, or A⁺ without I.

Read from top to bottom: a closure needs laws of its semiring, which say how it is computed (`steps_for`); every matrix is refused if a
result could leave the dtype (its guard, before), falls into components where that saves work, and each of those is closed by the schedule;
should a pivot diverge, either there is a cycle for it or only rounding, against which potentials help; and the guard has the last word.

What is done with each matrix stands below, in `Task`: it is loaded, a schedule accumulates or eliminates, and it is stored. Matrices in the
memory of a GPU are closed all at once, while the host goes on; divergent pivots are read back at the end, and where there is one, the
closure is repeated on the host, which finds the reason.

Examples
--------
>>> from semiring import MIN_PLUS
>>> inf = np.inf
>>> a = np.array([[inf, 3, inf, 7], [8, inf, 2, inf], [5, inf, inf, 1], [2, inf, inf, inf]])
>>> closure(engine_for(MIN_PLUS, (a.dtype,)), (a,), reflexive=False)  # A⁺: on the diagonal, the shortest cycles
>>> a
array([[8., 3., 5., 6.],
       [5., 8., 2., 3.],
       [3., 6., 8., 1.],
       [2., 5., 7., 8.]])
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from semiring.algebra.definition import Semiring
from semiring.algorithms import components
from semiring.algorithms.divergence import Diagnosis, divergent_loop, may_improve
from semiring.algorithms.potentials import close_by_potentials, inverse
from semiring.algorithms.schedules import Schedule, eliminates, require_closure_laws, schedule_for
from semiring.arrays.devices import host, on_gpu, to_gpu
from semiring.common.errors import DivergenceError, DivergentPivot, SemiringError
from semiring.kernels import machine
from semiring.kernels.boolean import is_reachability
from semiring.kernels.engine import Block, Engine
from semiring.kernels.limits import ValueStatistics, tropical
from semiring.kernels.overflow.closures import guard_for, leaves_carrier, statistics_of
from semiring.kernels.select import engine_for

__all__ = ["closure"]

Array = np.ndarray[Any, Any]
Values = tuple[Array, ...]


_FEW = 64
"""Vertices that are worth a closure of their own."""


def closure(
    engine: Engine,
    values: Values,
    via: Array | None = None,
    *,
    method: str = "auto",
    block: int | None = None,
    reflexive: bool = True,
    kept: Callable[[], Values | None] = lambda: None,
    names: Sequence[Any] | None = None,
    verify: Callable[[], Sequence[ValueStatistics]] | None = None,
    check: bool = True,
) -> None:
    """values ← A* = I ⊕ A ⊕ A² ⊕ …, or A⁺ = A ⊕ A² ⊕ …, in place.

    Parameters
    ----------
    engine : Engine
    values : tuple of arrays of shape (…, n, n)
        One for each component.
    via : int32 array of shape (…, n, n), optional
        The construction matrix to fill; −1 everywhere at first.
    method : {"auto", "iterative", "blocked", "recursive"}
    block : int, optional
        See `schedule_for`.
    reflexive : bool
        A* with the identity, or A⁺ without.
    kept : callable
        Gives the arrays as they were, to find the cycle that keeps the closure from converging; None if they were overwritten.
    names : sequence, optional
        The caller's names of the vertices, for errors.
    verify : callable, optional
        Raises what is wrong with a matrix on a GPU, which may still be looked at, and gives what the numbers of each component are. It may
        be called when `values` have changed.
    check : bool
        Whether what could leave the dtype is refused.

    Raises
    ------
    SemiringError, LawError, OverflowRiskError
    DivergenceError
        Where the closure does not exist; `NegativeCycleError` for min-plus. `values` then holds no result.

    Notes
    -----
    n³ steps (fewer where the graph falls into components), scratch of one row or stripe; A⁺ by elimination takes 2n³ and a copy of
    the matrix, because A⁺ = A ⊗ A*. Where only rounding makes a cycle improve, as much again, and a construction matrix.

    Sums of floats that select, such as distances: with non-negative weights an element is within h · ε · Σ|w| of the weight of a best
    path of h edges; with negative ones within n · ε · the largest magnitude of a weight or an element, because cycles within that of
    0 cannot be told from 0. A cycle that is negative by less may go unreported.
    """
    semiring, dtypes = engine.semiring, engine.dtypes
    task = Task(engine, check, *steps_for(semiring, dtypes, method, block, reflexive, via is not None, semiring.running(dtypes)))
    if 0 in values[0].shape:
        return
    if engine.meter is not None:
        engine.meter.expect(values[0].size * values[0].shape[-1] * (2 if task.eliminate and not reflexive else 1))
    name = int if names is None else names.__getitem__
    if type(values[0]) is not np.ndarray and on_gpu(values[0]):
        close_asynchronously(task, values, via, verify, lambda vertex: _close_on_host(task, values, via, kept(), names, vertex))
        return
    batch = values[0].shape[:-2]
    statistics = () if verify is None else verify()
    if not batch:
        _close_matrix(task, values, via, statistics, Diagnosis(semiring, kept, name))
        return
    for index in np.ndindex(batch):

        def input_matrix(index: tuple[int, ...] = index) -> Values | None:
            arrays = kept()
            return None if arrays is None else tuple(v[index] for v in arrays)

        diagnosis, matrix = Diagnosis(semiring, input_matrix, name), tuple(v[index] for v in values)
        try:
            _close_matrix(task, matrix, None if via is None else via[index], (), diagnosis)
        except SemiringError as error:
            error.add_note(f"in the matrix at batch index [{', '.join(map(str, index))}]")
            raise


def _expect(engine: Engine, steps: int) -> None:
    """Tell the engine's meter of so many steps more, or fewer, than it knew of."""
    if engine.meter is not None:
        engine.meter.expect(steps)


def _close_matrix(task: Task, values: Values, via: Array | None, statistics: Sequence[ValueStatistics], diagnosis: Diagnosis) -> None:
    """One matrix on the host: component by component where that saves work, between the two looks of its guard."""
    engine, n = task.engine, len(values[0])
    guard = guard_for(engine.semiring, engine.dtypes, n - 1 if task.reflexive else n, check=task.check)
    statistics = statistics or task.statistics(values)
    if statistics:
        guard.before(statistics)
    engine.signed, doubtful = guard.signed, not statistics or may_improve(engine.semiring, statistics)
    label = None
    if via is None and is_reachability(engine.semiring, engine.dtypes):
        condensed = components.condense(values[0]) if n >= machine.CONDENSED else None
        if condensed is not None:
            _expect(engine, len(condensed[1]) ** 3 - n**3)
            components.close_condensed(values[0], *condensed, partial(_close_block, task, diagnosis))
            return
    elif n >= machine.COMPONENTS:
        zero, _ = engine.semiring.identities(engine.dtypes)
        label = components.weak(values, zero)
    found = None if label is None else components.groups(label, max(_FEW, engine.alignment))
    if found is None:
        _close_block(task, diagnosis, values, via, np.arange(n), doubtful=doubtful)
    else:
        _expect(engine, sum([(r.stop - r.start) ** 3 for r in found[1]]) - n**3)
        components.close_groups(values, via, *found, partial(_close_block, task, diagnosis))
    guard.after(values, via)


def _close_block(task: Task, diagnosis: Diagnosis, values: Values, via: Array | None, vertices: Array, *, doubtful: bool = True) -> None:
    """The closure of one matrix as a whole. `vertices` tells the vertex of each row; `doubtful` whether a cycle may diverge."""
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
    """The closure of one matrix by elimination."""
    try:
        task.run_elimination(values)
    except DivergentPivot as stop:
        raise diagnosis.elimination(int(vertices[stop.vertex]), task.engine.dtypes) from None
    if task.check:
        task.require_elements(values)


def _mend(task: Task, values: Values, via: Array | None, p: Values, diagnosis: Diagnosis, vertices: Array) -> None:
    """The closure where rounding made a cycle improve: once more, by potentials p, so that none can."""
    engine = task.engine
    back = inverse(engine.semiring, p)
    if back is None:
        raise diagnosis.no_inverse(engine.dtypes)
    kept = diagnosis.kept()
    if kept is None:
        # Without the input it goes on from what was closed so far, which are weights of paths in any case.
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


def _close_on_host(task: Task, values: Values, via: Array | None, given: Values | None, names: Sequence[Any] | None, vertex: int) -> None:
    """The closure of arrays on a GPU once more on the CPU, which finds the cycle of a divergent pivot, or that only rounding made one."""
    semiring, dtypes = task.engine.semiring, task.engine.dtypes
    if given is None:
        raise Diagnosis(semiring, lambda: None, int if names is None else names.__getitem__).error(None, None, vertex) from None
    edges = tuple(map(host, given))
    arrays = tuple(v.copy() for v in edges)
    on_host = None if via is None else np.full(via.shape, -1, dtype=np.int32)
    engine = engine_for(semiring, dtypes, "auto", witness=via is not None)
    engine.meter = task.engine.meter
    closure(engine, arrays, on_host, reflexive=task.reflexive, kept=lambda: edges, names=names)
    for v, w in zip(values, arrays, strict=True):
        v[...] = to_gpu(w)
    if via is not None:
        via[...] = to_gpu(on_host)


class Task(NamedTuple):
    """An engine, and what it is to do with each matrix.

    Attributes
    ----------
    engine : Engine
    check : bool
        Whether what could leave the dtype is refused.
    schedule : callable
        A ← A ⊕ A² ⊕ …, or A ← A* where it is to `eliminate`.
    eliminate, reflexive : bool
    name : tuple
        What tells the schedule from others of the engine.
    """

    engine: Engine
    check: bool
    schedule: Schedule
    eliminate: bool
    reflexive: bool
    name: tuple[str, int | None]

    def accumulate(self, values: Values, via: Array | None) -> None:
        """values ← A⁺ or I ⊕ A⁺ for an idempotent ⊕. Where a pivot diverges, all elements are still sums over some paths."""
        engine = self.engine
        A = engine.load(values, via)

        def steps(block: Block) -> None:
            if self.reflexive:
                # A ← I ⊕ A
                engine.add_identity(block)
            # A ← A ⊕ A² ⊕ …
            self.schedule(engine, block)

        try:
            engine.run((*self.name, self.reflexive), steps, A)
        finally:
            engine.store(A, values)

    def run_elimination(self, values: Values) -> None:
        """values ← A* or A⁺, for any closed semiring."""
        engine = self.engine
        result = values if self.reflexive else tuple(v.copy() for v in values)
        A = engine.load(result)
        # A ← A*
        self.schedule(engine, A)
        if not self.reflexive:
            # A⁺ = A ⊗ A*
            star, A = A, engine.load(values)
            engine.multiply(A, star, A)
        engine.store(A, values)

    def statistics(self, values: Values) -> Sequence[ValueStatistics]:
        """What the numbers of a matrix are, where that is refused or decides how it is closed: integers may pull an ∞ back."""
        engine = self.engine
        return statistics_of(engine.semiring, values) if self.check or tropical(engine.semiring, engine.dtypes) else ()

    def require_elements(self, values: Values) -> None:
        """Refuse the result of an elimination that is outside the carrier, because it overflowed."""
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
    """What a `Task` has beside its engine, once the semiring has the laws that this needs; `running` are its callables at the moment."""
    require_closure_laws(semiring, dtypes, paths=paths)
    eliminate = eliminates(semiring, dtypes, paths=paths)
    return schedule_for(method, block, eliminate=eliminate), eliminate, reflexive, (method, block)


def close_asynchronously(
    task: Task,
    values: tuple[Any, ...],
    via: Any,
    verify: Callable[[], Sequence[ValueStatistics]] | None,
    repeat: Callable[[int], None],
) -> None:
    """values ← A* or A⁺, in place.

    Parameters
    ----------
    task : Task
    values : tuple of CuPy arrays of shape (…, n, n)
    via : int32 CuPy array of shape (…, n, n) or None
    verify : callable or None
        See `closure`.
    repeat : callable
        Closes the matrices once more elsewhere, or raises, given a vertex whose pivot diverged.
    """
    engine, n = task.engine, values[0].shape[-1]
    guard = guard_for(engine.semiring, engine.dtypes, n - 1 if task.reflexive else n, check=task.check)

    def verified() -> Sequence[ValueStatistics]:
        """What the numbers are, once they are verified and found to stay in range."""
        statistics = task.statistics(values) if verify is None else verify()
        if statistics:
            guard.before(statistics)
        return statistics

    # One block is closed before its numbers are known: a kernel for any numbers takes less than the GPU would wait.
    alone = values[0].ndim == 2 and n <= engine.pivot
    soon = alone and verify is not None and not (task.eliminate or tropical(engine.semiring, engine.dtypes))
    statistics = () if soon else verified()
    engine.signed, engine.statistics, engine.asynchronous = guard.signed, statistics[0] if statistics else None, not statistics
    try:
        if task.eliminate:
            task.run_elimination(values)
        else:
            task.accumulate(values, via)
        if engine.meter is not None:
            engine.meter.wait()
        if soon:
            statistics = verified()
        if not statistics or may_improve(engine.semiring, statistics):  # else no pivot diverges, and nothing has to be waited for
            engine.verify()
    except DivergentPivot as stop:
        repeat(stop.vertex)
    guard.after(values, via)
    if task.eliminate and task.check:
        task.require_elements(values)
