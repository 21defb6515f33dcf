"""Blocked closure by block rows: the order of its steps, on one device or distributed over several.

The four phases of Katz and Kider (2008); with a construction matrix, those of the united algorithm of Matsumoto, Nakasato and Sedukhin
(2012). The matrix is cut into block rows A_0*, A_1*, …, of which a device need not have more than two at a time. Round K has the pivot
block A_KK and the *row panel* A_K*:

    phase 1   A_KK ← A_KK ⊕ A_KK² ⊕ …          `ClosePivot`
    phase 2   A_KJ ← A_KJ ⊕ A_KK A_KJ          `UpdatePivotRow`, for all J ≠ K
    phase 3   A_IK ← A_IK ⊕ A_IK A_KK          `UpdatePivotColumn`, for each I ≠ K
    phase 4   A_IJ ← A_IJ ⊕ A_IK A_KJ          `UpdateRest`, for each I ≠ K and all J ≠ K

Matsumoto et al. move square blocks between host and device, and reuse the one that two updates in a row share. Here a whole block row
moves, so that every copy is contiguous, and the row panel stays on the device for a round: with b rows in each, a round moves n² elements
each way for n²b multiply-adds.

Between devices the block rows are distributed block-cyclically. The owner of block row K does phases 1 and 2 and broadcasts the row panel;
everybody does phases 3 and 4 for the block rows of its own. Each device follows a program of its own, which `steps` yields. What carries
it out, by threads, on GPUs, from disk or with messages, is not known here: it has to keep the dependencies that `Load`, `Receive` and
`Store` name, and no others. `semiring.streaming.workers` does.

Four block rows on one device begin with round 0:

>>> from itertools import islice
>>> for step in islice(steps([0, 0, 0, 0]), 19):
...     print(step)
load A0*
A00 ← A00 ⊕ A00² ⊕ …
A0J ← A0J ⊕ A00 A0J
broadcast A0*
load A2*
A20 ← A20 ⊕ A20 A00
A2J ← A2J ⊕ A20 A0J
store A2*
load A3*
A30 ← A30 ⊕ A30 A00
A3J ← A3J ⊕ A30 A0J
store A3*
load A1*
A10 ← A10 ⊕ A10 A00
A1J ← A1J ⊕ A10 A0J
A11 ← A11 ⊕ A11² ⊕ …
A1J ← A1J ⊕ A11 A1J
broadcast A1*
release A0*

In all rounds, (I, K) for the update of block row I by row panel K; A1*, A2*, A3* come last in the round before their own:

>>> def updates(program):
...     return [(step.i, step.k) for step in program if isinstance(step, UpdateRest)]
>>> updates(steps([0, 0, 0, 0]))
[(2, 0), (3, 0), (1, 0), (0, 1), (3, 1), (2, 1), (0, 2), (1, 2), (3, 2), (0, 3), (1, 3), (2, 3)]

Of two devices the second owns block rows 1 and 3. It updates A1* first in round 0, and so broadcasts it while both are still busy with A0*:

>>> updates(steps([0, 0, 0, 0], block_cyclic(1, 2, 4), look_ahead=True))
[(1, 0), (3, 0), (3, 1), (3, 2), (1, 2), (1, 3)]

Interrupted in round 1, before the update of A2*, one device goes on with what is left:

>>> updates(steps([2, 2, 1, 2]))
[(2, 1), (0, 2), (1, 2), (3, 2), (0, 3), (1, 3), (2, 3)]
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

__all__ = [
    "Broadcast", "ClosePivot", "Load", "Receive", "Release", "Step", "Store", "UpdatePivotColumn", "UpdatePivotRow", "UpdateRest",
    "block_cyclic", "steps",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Load:
    """A_I* comes to its owner's device, to be updated in round K, or to be the first row panel.

    It has to be through the rounds before K. If I < K, it was a row panel, and every receiver must have got it.
    """

    i: int
    k: int

    def __str__(self) -> str:
        return f"load A{self.i}*"


@dataclass(frozen=True, slots=True)
class ClosePivot:
    """A_KK ← A_KK ⊕ A_KK² ⊕ … (phase 1)."""

    k: int

    def __str__(self) -> str:
        k = self.k
        return f"A{k}{k} ← A{k}{k} ⊕ A{k}{k}² ⊕ …"


@dataclass(frozen=True, slots=True)
class UpdatePivotRow:
    """A_KJ ← A_KJ ⊕ A_KK A_KJ for all J ≠ K (phase 2)."""

    k: int

    def __str__(self) -> str:
        k = self.k
        return f"A{k}J ← A{k}J ⊕ A{k}{k} A{k}J"


@dataclass(frozen=True, slots=True)
class Broadcast:
    """The owner of A_K*, which is the row panel of round K from now on, lets all receivers have it, and keeps it until it releases it."""

    k: int

    def __str__(self) -> str:
        return f"broadcast A{self.k}*"


@dataclass(frozen=True, slots=True)
class Receive:
    """The row panel A_K* comes to a device that has not made it. Its owner must have broadcast it.

    Where a closure is resumed it comes from a snapshot, since A_K* itself may be through later rounds.
    """

    k: int

    def __str__(self) -> str:
        return f"receive A{self.k}*"


@dataclass(frozen=True, slots=True)
class UpdatePivotColumn:
    """A_IK ← A_IK ⊕ A_IK A_KK (phase 3)."""

    i: int
    k: int

    def __str__(self) -> str:
        i, k = self.i, self.k
        return f"A{i}{k} ← A{i}{k} ⊕ A{i}{k} A{k}{k}"


@dataclass(frozen=True, slots=True)
class UpdateRest:
    """A_IJ ← A_IJ ⊕ A_IK A_KJ for all J ≠ K (phase 4)."""

    i: int
    k: int

    def __str__(self) -> str:
        i, k = self.i, self.k
        return f"A{i}J ← A{i}J ⊕ A{i}{k} A{k}J"


@dataclass(frozen=True, slots=True)
class Store:
    """A_I*, which is through round K, goes back. As the last row panel, which is I = K, every receiver must have got it."""

    i: int
    k: int

    def __str__(self) -> str:
        return f"store A{self.i}*"


@dataclass(frozen=True, slots=True)
class Release:
    """The row panel A_K* is not needed on this device any more."""

    k: int

    def __str__(self) -> str:
        return f"release A{self.k}*"


Step = Load | ClosePivot | UpdatePivotRow | Broadcast | Receive | UpdatePivotColumn | UpdateRest | Store | Release


def block_cyclic(device: int, devices: int, count: int) -> range:
    """The block rows that a device owns, of so many, in a block-cyclic distribution: all devices stay busy to the last round."""
    return range(device, count, devices)


def steps(
    rounds: Sequence[int], own: Collection[int] | None = None, *, look_ahead: bool = False, begun: Collection[int] = ()
) -> Iterator[Step]:
    """The program of one device for A ← A ⊕ A² ⊕ …, for an idempotent ⊕.

    Parameters
    ----------
    rounds : sequence of int
        How many rounds each block row has been through, its own one counted from when it is a row panel: zeros at the beginning.
        More where an interrupted closure is resumed.
    own : collection of int, optional
        The block rows that the device owns, in ascending order: all of them by default.
    look_ahead : bool
        Make the next row panel first in a round, while other devices are busy with this one, and not last, when this one is about to go:
        a device has three block rows then, not two.
    begun : collection of int
        The block rows that are through phase 3 of the first round that is left for them.

    Notes
    -----
    n³ multiply-adds of all devices together. Before round K each A_IJ is the sum over the paths from I to J whose intermediate vertices are
    in block rows before K: the edges alone for K = 0, all paths in the end.
    """
    count = len(rounds)
    own = range(count) if own is None else own
    if 0 in own and rounds[0] == 0:
        yield Load(0, 0)
        yield from _make_row_panel(0)
    for k in range(count):
        # Invariant: block rows are through all rounds before k, and A_K* through round k too: its owner has broadcast it, or is about to.
        left = [i for i in own if i != k and rounds[i] <= k]
        left.sort(key=lambda i: (i == k + 1) != look_ahead)  # the next row panel last, or first; the others in their order
        is_own, is_last = k in own, k == count - 1
        made_here = is_own and rounds[k] <= k
        if not made_here and (left or (is_own and is_last)):
            yield Receive(k)
        for i in left:
            # Invariant: the block rows before i in this order are through round k; A_K* does not change, whoever reads it.
            yield Load(i, k)
            if i not in begun or rounds[i] < k:  # else it was done before the interruption
                yield UpdatePivotColumn(i, k)
            yield UpdateRest(i, k)
            if i == k + 1:
                yield from _make_row_panel(i)
            else:
                yield Store(i, k)
        if is_own and is_last:
            yield Store(k, k)
        elif made_here or left:
            yield Release(k)


def _make_row_panel(k: int) -> Iterator[Step]:
    """Phases 1 and 2, on the device that has A_K*, through the rounds before k."""
    yield ClosePivot(k)
    yield UpdatePivotRow(k)
    yield Broadcast(k)
