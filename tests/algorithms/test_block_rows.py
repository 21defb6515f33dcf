"""The order of the blocked closure by block rows: the papers' updates, each once, on any number of devices, resumed from anywhere."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pytest
from scipy.sparse.csgraph import floyd_warshall

import semiring as sr
from semiring import testing
from semiring.algorithms.block_rows import (
    Broadcast,
    ClosePivot,
    Load,
    Receive,
    Release,
    Step,
    StoreBlockRow,
    UpdatePivotColumn,
    UpdatePivotRow,
    UpdateRest,
    block_cyclic,
    steps,
)
from semiring.kernels.engine import Block, Engine
from semiring.kernels.select import engine_for
from semiring.results.paths import Paths
from semiring.streaming.layout import block_rows

COUNTS = (1, 2, 3, 4, 7)
DEVICES = (1, 2, 3, 5)


class Machine:
    """Devices with a program each, whose steps come in any order that keeps the dependencies `Load`, `Receive` and `StoreBlockRow` name.

    Parameters
    ----------
    rounds : list of int
        How many rounds each block row is through; counted on.
    work : callable
        Called with each step, and with the device that does it.
    """

    def __init__(
        self, rounds: list[int], devices: int, work: Callable[[int, Step], None], *, look_ahead: bool, begun: Sequence[int] = ()
    ) -> None:
        count = len(rounds)
        self.rounds, self.devices, self.work = rounds, devices, work
        owned = [block_cyclic(number, devices, count) for number in range(devices)]
        self.programs = [list(steps(tuple(rounds), own, look_ahead=look_ahead, begun=begun)) for own in owned]
        self.missing = [sum(Receive(k) in program for program in self.programs) for k in range(count)]
        self.held, self.most, self.done = [0] * devices, 0, list[Step]()

    def may(self, step: Step) -> bool:
        match step:
            case Load(i, k):
                return self.rounds[i] >= k and (i >= k or self.missing[i] == 0)
            case Receive(k):
                return self.rounds[k] > k
            case StoreBlockRow(i, k):
                return i != k or self.missing[i] == 0
        return True

    def run(self, choose: random.Random, most: int | None = None) -> None:
        """All steps, or so many, each of a device that is chosen at random."""
        at = [0] * self.devices
        while waiting := [d for d in range(self.devices) if at[d] < len(self.programs[d])]:
            able = [d for d in waiting if self.may(self.programs[d][at[d]])]
            assert able, "no device can go on"
            device = choose.choice(able)
            if most is not None and len(self.done) >= most:
                return
            self._do(device, self.programs[device][at[device]])
            at[device] += 1

    def _do(self, device: int, step: Step) -> None:
        self.work(device, step)
        self.done.append(step)
        match step:
            case Load() | Receive():
                self.held[device] += 1
            case StoreBlockRow() | Release():
                self.held[device] -= 1
        match step:
            case Receive(k):
                self.missing[k] -= 1
            case Broadcast(k):
                self.rounds[k] = k + 1
            case StoreBlockRow(i, k):
                self.rounds[i] = k + 1
        self.most = max(self.most, *self.held)


class Versions:
    """How many rounds each block A_IJ is through, and whether every update finds its operands as the papers have them.

    Devices copy row panels from the matrix, or from snapshots that there were when they began.
    """

    def __init__(self, through: Any, snapshots: dict[int, Any]) -> None:
        self.through, self.snapshots = through, snapshots
        self.panels: dict[tuple[int, int], Any] = {}

    def __call__(self, device: int, step: Step) -> None:
        t, every = self.through, range(len(self.through))
        match step:
            case ClosePivot(k):
                self._update(k, [k], k, reads=[])
            case UpdatePivotRow(k):
                self._update(k, [j for j in every if j != k], k, reads=[t[k, k]])
            case Broadcast(k) | Receive(k):
                self.panels[device, k] = self.snapshots.get(k, t[k]).copy()
            case UpdatePivotColumn(i, k):
                self._update(i, [k], k, reads=[self.panels[device, k][k]])
            case UpdateRest(i, k):
                beside = [j for j in every if j != k]
                self._update(i, beside, k, reads=[t[i, k], *self.panels[device, k][beside]])
            case Release(k):
                del self.panels[device, k]

    def _update(self, i: int, columns: list[int], k: int, reads: list[int]) -> None:
        """Blocks of row i, each in its turn, from others that are through round k and no further."""
        assert set(reads) <= {k + 1}
        assert set(self.through[i, columns]) <= {k}
        self.through[i, columns] = k + 1


@pytest.mark.parametrize("look_ahead", [False, True])
@pytest.mark.parametrize("devices", DEVICES)
@pytest.mark.parametrize("count", COUNTS)
def test_every_block_gets_every_update_once_from_operands_of_the_same_round(count: int, devices: int, look_ahead: bool) -> None:
    for seed in range(10):
        versions = Versions(np.zeros((count, count), int), {})
        machine = Machine([0] * count, devices, versions, look_ahead=look_ahead)
        machine.run(random.Random(seed))
        assert (versions.through == count).all()
        assert machine.rounds == [count] * count
        assert machine.held == [0] * devices  # what is loaded is stored or released
        assert machine.most <= 2 + look_ahead


def papers(count: int) -> Iterator[Step]:
    """Katz and Kider's phases, round by round."""
    for k in range(count):
        others = [i for i in range(count) if i != k]
        yield ClosePivot(k)
        yield UpdatePivotRow(k)
        yield from (UpdatePivotColumn(i, k) for i in others)
        yield from (UpdateRest(i, k) for i in others)


COMPUTES = ClosePivot | UpdatePivotRow | UpdatePivotColumn | UpdateRest


@pytest.mark.parametrize("count", COUNTS)
def test_look_ahead_changes_the_order_and_not_the_steps(count: int) -> None:
    late, early = ([s for s in steps([0] * count, look_ahead=ahead) if isinstance(s, COMPUTES)] for ahead in (False, True))
    assert sorted(map(str, late)) == sorted(map(str, early)) == sorted(map(str, papers(count)))
    assert (late != early) == (count > 2)
    for k in range(count - 1):
        assert early.index(ClosePivot(k + 1)) <= late.index(ClosePivot(k + 1))


@pytest.mark.parametrize("devices", DEVICES)
def test_the_owner_broadcasts_and_the_others_receive(devices: int) -> None:
    count = 7
    programs = [list(steps([0] * count, block_cyclic(d, devices, count), look_ahead=True)) for d in range(devices)]
    for k in range(count):
        for device, program in enumerate(programs):
            assert (Broadcast(k) in program) == (k % devices == device)
            assert (Receive(k) in program) == (k % devices != device)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("look_ahead", [False, True])
@pytest.mark.parametrize("devices", DEVICES)
def test_resumed_anywhere_nothing_is_done_twice(devices: int, look_ahead: bool) -> None:
    """Block rows that were under way when it stopped have not changed, or are through phase 3 alone; as a checkpoint keeps them."""
    count, choose = 5, random.Random(devices)
    for most in range(0, 150, 3):
        snapshots: dict[int, Any] = {}
        first = Versions(np.zeros((count, count), int), {})

        def work(device: int, step: Step, first: Versions = first, snapshots: dict[int, Any] = snapshots) -> None:
            first(device, step)
            if isinstance(step, Broadcast):
                snapshots[step.k] = first.through[step.k].copy()

        machine = Machine([0] * count, devices, work, look_ahead=look_ahead)
        machine.run(choose, most)
        rounds = machine.rounds
        again = Versions(np.tile(np.array(rounds)[:, None], count), snapshots)
        begun = [i for i in range(count) if rounds[i] < count and UpdatePivotColumn(i, rounds[i]) in machine.done]
        for i in begun:
            again.through[i, rounds[i]] += 1
        Machine(rounds, choose.choice(DEVICES), again, look_ahead=look_ahead, begun=begun).run(choose)
        assert (again.through == count).all()


class Replay:
    """The steps by an engine, on devices that have nothing but the block rows they own: row panels are messages, as between processes."""

    def __init__(self, engine: Engine, matrices: Sequence[Block], rows: Sequence[slice]) -> None:
        self.engine, self.matrices, self.rows = engine, matrices, rows
        self.sent: dict[int, Block] = {}
        self.panels: dict[tuple[int, int], Block] = {}

    def __call__(self, device: int, step: Step) -> None:
        A, rows, multiply_add = self.matrices[device], self.rows, self.engine.multiply_add
        every = slice(0, A.shape[0])
        match step:
            case ClosePivot(k):
                self.engine.close(A[rows[k], rows[k]])
            case UpdatePivotRow(k):
                for J in beside(rows[k], every.stop):
                    multiply_add(A[rows[k], rows[k]], A[rows[k], J], A[rows[k], J])
            case Broadcast(k):
                self.sent[k] = self.panels[device, k] = Block(tuple(v.copy() for v in A[rows[k], every].values), row=rows[k].start)
            case Receive(k):
                self.panels[device, k] = self.sent[k]
            case UpdatePivotColumn(i, k):
                multiply_add(A[rows[i], rows[k]], self.panels[device, k][:, rows[k]], A[rows[i], rows[k]])
            case UpdateRest(i, k):
                for J in beside(rows[k], every.stop):
                    multiply_add(A[rows[i], rows[k]], self.panels[device, k][:, J], A[rows[i], J])


def beside(K: slice, n: int) -> list[slice]:
    return [J for J in (slice(0, K.start), slice(K.stop, n)) if J.start < J.stop]


@pytest.mark.sampled(11)
@pytest.mark.parametrize("look_ahead", [False, True])
@pytest.mark.parametrize("devices", DEVICES)
@pytest.mark.parametrize(("n", "side"), [(1, 1), (6, 2), (13, 3), (20, 8)])
def test_replayed_it_is_floyd_and_warshalls_algorithm(n: int, side: int, devices: int, look_ahead: bool) -> None:
    rng = np.random.default_rng(n)
    a = np.where(rng.random((n, n)) * n < 3, rng.integers(1, 100, (n, n)).astype(float), np.inf)
    np.fill_diagonal(a, 0)
    rows, engine = block_rows(n, side), engine_for(sr.MIN_PLUS, (a.dtype,), "reference", witness=True)
    matrices, out, via = [], np.empty_like(a), np.empty((n, n), np.int32)
    for device in range(devices):
        own = np.isin(np.arange(n) // side, block_cyclic(device, devices, len(rows)))
        matrices.append(engine.load((np.where(own[:, None], a, np.nan),), np.full((n, n), -1, np.int32)))
    Machine([0] * len(rows), devices, Replay(engine, matrices, rows), look_ahead=look_ahead).run(random.Random(n))
    for i, some in enumerate(rows):
        (out[some],), via[some] = (v[some] for v in matrices[i % devices].values), matrices[i % devices].via[some]
    np.testing.assert_array_equal(out, floyd_warshall(a))
    testing.assert_paths_valid(Paths(sr.MIN_PLUS, (out,), via), a)
