"""The closure of a matrix over any semiring: laws, ranges, components, schedule and convergence in one place."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from semiring.algebra.definition import Semiring
from semiring.algorithms import components
from semiring.algorithms.divergence import may_improve, Diagnosis, divergent_loop
from semiring.algorithms.potentials import inverse, resum, reweigh
from semiring.algorithms.schedules import Schedule, eliminates, require_closure_laws, schedule_for
from semiring.arrays.devices import host, on_gpu, to_gpu
from semiring.common.errors import DivergenceError, DivergentPivot, SemiringError
from semiring.kernels import machine
from semiring.kernels.boolean import is_reachability
from semiring.kernels.engine import Block, Engine
from semiring.kernels.overflow.closures import guard_for, leaves_carrier, statistics_of
from semiring.kernels.overflow.limits import tropical
from semiring.kernels.overflow.statistics import ValueStatistics
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
    task = _Task(engine, check, *_steps(semiring, dtypes, method, block, reflexive, via is not None, semiring.running(dtypes)))
    if 0 in values[0].shape:
        return
    if type(values[0]) is not np.ndarray and on_gpu(values[0]):
        _close_on_gpu(task, values, via, kept, names, verify)
        return
    batch, name = values[0].shape[:-2], int if names is None else names.__getitem__
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


class _Task(NamedTuple):
    """An engine, and what it is to do with each matrix."""

    engine: Engine
    check: bool
    schedule: Schedule
    eliminate: bool
    reflexive: bool
    name: tuple[str, int | None]


@functools.lru_cache(maxsize=1024)
def _steps(
    semiring: Semiring,
    dtypes: tuple[np.dtype[Any], ...],
    method: str,
    block: int | None,
    reflexive: bool,
    paths: bool,
    running: tuple[Any, ...],
) -> tuple[Schedule, bool, bool, tuple[str, int | None]]:
    """What a `_Task` has beside its engine, once the semiring has the laws that this needs."""
    require_closure_laws(semiring, dtypes, paths=paths)
    eliminate = eliminates(semiring, dtypes, paths=paths)
    return schedule_for(method, block, eliminate=eliminate), eliminate, reflexive, (method, block)


def _close_on_gpu(
    task: _Task,
    values: Values,
    via: Array | None,
    kept: Callable[[], Values | None],
    names: Sequence[Any] | None,
    verify: Callable[[], Sequence[ValueStatistics]] | None,
) -> None:
    """All matrices of a batch at once, because what runs on a GPU tells only in the end whether a pivot was divergent."""
    engine, n = task.engine, values[0].shape[-1]
    guard = guard_for(engine.semiring, engine.dtypes, n - 1 if task.reflexive else n, check=task.check)

    def told() -> Sequence[ValueStatistics]:
        statistics = _needed(task, values) if verify is None else verify()
        if statistics:
            guard.before(statistics)
        return statistics

    # One block is closed before its numbers are known: a kernel for any numbers takes less than the GPU would wait.
    alone = values[0].ndim == 2 and n <= engine.pivot
    soon = alone and verify is not None and not (task.eliminate or tropical(engine.semiring, engine.dtypes))
    statistics = () if soon else told()
    engine.signed, engine.statistics, engine.asynchronous = guard.signed, statistics[0] if statistics else None, not statistics
    try:
        if task.eliminate:
            _run_elimination(task, values)
        else:
            _accumulate(task, values, via)
        if soon:
            statistics = told()
        if not statistics or may_improve(engine.semiring, statistics):  # else no pivot is divergent, and nothing has to be waited for
            engine.verify()
    except DivergentPivot as stop:
        if (given := kept()) is None:
            raise Diagnosis(engine.semiring, lambda: None, int if names is None else names.__getitem__).error(
                None, None, stop.vertex
            ) from None
        _close_on_host(task, values, via, given, names)
    guard.after(values, via)
    if task.eliminate and task.check:
        _require_elements(engine, values)


def _needed(task: _Task, values: Values) -> Sequence[ValueStatistics]:
    """What the numbers of a matrix are, where that is refused or decides how it is closed: integers may pull an ∞ back."""
    engine = task.engine
    return statistics_of(engine.semiring, values) if task.check or tropical(engine.semiring, engine.dtypes) else ()


def _close_on_host(task: _Task, values: Values, via: Array | None, given: Values, names: Sequence[Any] | None) -> None:
    """The closure once more on the CPU, which finds the cycle that keeps it from converging, or that only rounding made one."""
    edges = tuple(map(host, given))
    arrays = tuple(v.copy() for v in edges)
    on_host = None if via is None else np.full(via.shape, -1, dtype=np.int32)
    engine = engine_for(task.engine.semiring, task.engine.dtypes, "auto", witness=via is not None)
    closure(engine, arrays, on_host, reflexive=task.reflexive, kept=lambda: edges, names=names)
    for v, w in zip(values, arrays, strict=True):
        v[...] = to_gpu(w)
    if via is not None:
        via[...] = to_gpu(on_host)


def _close_matrix(task: _Task, values: Values, via: Array | None, statistics: Sequence[ValueStatistics], diagnosis: Diagnosis) -> None:
    """One matrix: what it may reach, then component by component."""
    engine, n = task.engine, len(values[0])
    guard = guard_for(engine.semiring, engine.dtypes, n - 1 if task.reflexive else n, check=task.check)
    statistics = statistics or _needed(task, values)
    if statistics:
        guard.before(statistics)
    engine.signed, doubtful = guard.signed, not statistics or may_improve(engine.semiring, statistics)
    label = None
    if via is None and is_reachability(engine.semiring, engine.dtypes):
        condensed = components.condense(values[0]) if n >= machine.CONDENSED else None
        if condensed is not None:
            _close_condensed(task, values[0], *condensed, diagnosis)
            return
    elif n >= machine.COMPONENTS:
        zero, _ = engine.semiring.identities(engine.dtypes)
        label = components.weak(values, zero)
    found = None if label is None else components.groups(label, max(_FEW, engine.alignment))
    if found is None:
        _close_block(task, values, via, diagnosis, np.arange(n), doubtful=doubtful)
    else:
        _close_groups(task, values, via, diagnosis, *found)
    guard.after(values, via)


def _close_groups(task: _Task, values: Values, via: Array | None, diagnosis: Diagnosis, order: Array, ranges: list[slice]) -> None:
    """Close the diagonal blocks that remain when the vertices are ordered by component."""
    matrices = values if via is None else (*values, via)
    for matrix in matrices:
        components.permute(matrix, order)
    for r in ranges:
        block = tuple(v[r, r] for v in values)
        if via is None:
            _close_block(task, block, None, diagnosis, order[r])
        else:
            _close_block(task, block, via[r, r], diagnosis, order[r])
            for row in via[r, r]:
                row[row >= 0] = order[r][row[row >= 0]]
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    for matrix in matrices:
        components.permute(matrix, place)


def _close_condensed(task: _Task, edges: Array, component: Array, between: Array, diagnosis: Diagnosis) -> None:
    """Reachability between strongly connected components, spread out to their vertices."""
    # The members of a component reach each other; a component of one vertex needs its own loop, which it has kept.
    size = np.bincount(component)
    between[np.diag_indices(len(between))] |= size > 1
    _close_block(task, (between,), None, diagnosis, np.arange(len(between)))
    for c in range(len(between)):
        edges[component == c if size[c] > 1 else np.flatnonzero(component == c)] = between[c, component]


def _close_block(task: _Task, values: Values, via: Array | None, diagnosis: Diagnosis, vertices: Array, *, doubtful: bool = True) -> None:
    """The closure of one matrix as a whole. `vertices` tells the vertex of each row; `doubtful` whether a cycle may be divergent."""
    engine = task.engine
    if task.eliminate:
        _eliminate(task, values, diagnosis, vertices)
        return
    try:
        _accumulate(task, values, via)
        stopped = divergent_loop(engine.semiring, [v.diagonal() for v in values]) if doubtful else None
    except DivergentPivot as stop:
        stopped = stop.vertex
    if stopped is not None:
        _reweighed(task, values, via, diagnosis.potentials(stopped, values, via, vertices), diagnosis, vertices)


def _accumulate(task: _Task, values: Values, via: Array | None) -> None:
    """values ← A⁺ or I ⊕ A⁺ for an idempotent ⊕. Where a pivot is divergent, all elements are still sums over some paths."""
    engine = task.engine
    A = engine.load(values, via)

    def steps(block: Block) -> None:
        if task.reflexive:
            engine.add_identity(block)
        task.schedule(engine, block)

    try:
        engine.run((*task.name, task.reflexive), steps, A)
    finally:
        engine.store(A, values)


def _reweighed(task: _Task, values: Values, via: Array | None, p: Values, diagnosis: Diagnosis, vertices: Array) -> None:
    """The closure when rounding made a cycle improve: by potentials, so that none can."""
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
    reweigh(engine.semiring, values, p, back, clamp=True)
    _accumulate(task, values, via)
    reweigh(engine.semiring, values, back, p)
    resum(engine.semiring, values, via, edges)
    if task.reflexive:
        A = engine.load(values)
        engine.add_identity(A)
        engine.store(A, values)


def _eliminate(task: _Task, values: Values, diagnosis: Diagnosis, vertices: Array) -> None:
    try:
        _run_elimination(task, values)
    except DivergentPivot as stop:
        raise diagnosis.elimination(int(vertices[stop.vertex]), task.engine.dtypes) from None
    if task.check:
        _require_elements(task.engine, values)


def _run_elimination(task: _Task, values: Values) -> None:
    engine = task.engine
    result = values if task.reflexive else tuple(v.copy() for v in values)
    A = engine.load(result)
    task.schedule(engine, A)
    if not task.reflexive:
        # A⁺ = A ⊗ A*
        star, A = A, engine.load(values)
        engine.multiply(A, star, A)
    engine.store(A, values)


def _require_elements(engine: Engine, values: Values) -> None:
    if all(d.kind != "O" for d in engine.dtypes) and leaves_carrier(engine.semiring, values):
        raise DivergenceError(f"the closure over {engine.semiring.name} left the range of {', '.join(map(str, engine.dtypes))}")
