"""Blocked closure by block rows: the order of its steps, on one device or distributed over several.

The four phases of Katz and Kider (2008); with a construction matrix, those of the united algorithm of Matsumoto, Nakasato and Sedukhin
(2012). The matrix is cut into block rows A_0*, A_1*, …; a device needs memory for two at a time. Round K has the pivot block A_KK and the
*row panel* A_K*:

    phase 1   A_KK ← A_KK ⊕ A_KK² ⊕ …          `ClosePivot`
    phase 2   A_KJ ← A_KJ ⊕ A_KK A_KJ          `UpdatePivotRow`, for all J ≠ K
    phase 3   A_IK ← A_IK ⊕ A_IK A_KK          `UpdatePivotColumn`, for each I ≠ K
    phase 4   A_IJ ← A_IJ ⊕ A_IK A_KJ          `UpdateRest`, for each I ≠ K and all J ≠ K

Matsumoto et al. move square blocks between host and device, and reuse the block that two successive updates share. Here a whole block row
moves, so that every copy is contiguous, and the row panel stays on the device for a round. With b rows in each block row, a round moves n²
elements each way for n²b multiply-adds.

The block rows are distributed block-cyclically over devices. The owner of block row K runs phases 1 and 2 and broadcasts the row panel;
each device runs phases 3 and 4 for the block rows it owns. `steps` yields the program of one device. An executor (threads, GPUs, disk or
messages: `semiring.streaming.closure`) has to keep the dependencies named by `Load`, `Receive` and `StoreBlockRow`, and no others.

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

The updates of block row I by row panel K, as (I, K), in all rounds; A1*, A2*, A3* come last in the round before their own:

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
from typing import ClassVar

__all__ = [
    "Broadcast", "ClosePivot", "Load", "Receive", "Release", "Step", "StoreBlockRow", "UpdatePivotColumn", "UpdatePivotRow", "UpdateRest",
    "block_cyclic", "steps",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class _OfPanel:
    """A step of the row panel A_K*."""

    text: ClassVar[str]
    k: int

    def __str__(self) -> str:
        return self.text.format(k=self.k)


@dataclass(frozen=True, slots=True)
class _OfBlockRow:
    """A step of block row A_I* in round K."""

    text: ClassVar[str]
    i: int
    k: int

    def __str__(self) -> str:
        return self.text.format(i=self.i, k=self.k)


class Load(_OfBlockRow):
    """Load A_I* to its owner's device, to be updated in round K, or to be the first row panel.

    A_I* must be through the rounds before K. If I < K, it was a row panel, and every receiver must have got it.
    """

    text = "load A{i}*"


class ClosePivot(_OfPanel):
    """A_KK ← A_KK ⊕ A_KK² ⊕ … (phase 1)."""

    text = "A{k}{k} ← A{k}{k} ⊕ A{k}{k}² ⊕ …"


class UpdatePivotRow(_OfPanel):
    """A_KJ ← A_KJ ⊕ A_KK A_KJ for all J ≠ K (phase 2)."""

    text = "A{k}J ← A{k}J ⊕ A{k}{k} A{k}J"


class Broadcast(_OfPanel):
    """Offer A_K*, the row panel of round K from now on, to all receivers; the owner keeps A_K* until its release."""

    text = "broadcast A{k}*"


class Receive(_OfPanel):
    """Receive the row panel A_K*, which its owner must have broadcast.

    A resumed closure reads it from a snapshot, since A_K* itself may be through later rounds.
    """

    text = "receive A{k}*"


class UpdatePivotColumn(_OfBlockRow):
    """A_IK ← A_IK ⊕ A_IK A_KK (phase 3)."""

    text = "A{i}{k} ← A{i}{k} ⊕ A{i}{k} A{k}{k}"


class UpdateRest(_OfBlockRow):
    """A_IJ ← A_IJ ⊕ A_IK A_KJ for all J ≠ K (phase 4)."""

    text = "A{i}J ← A{i}J ⊕ A{i}{k} A{k}J"


class StoreBlockRow(_OfBlockRow):
    """Write A_I*, which is through round K, back. If I = K, it is the last row panel, and every receiver must have got it."""

    text = "store A{i}*"


class Release(_OfPanel):
    """Free the row panel A_K* on this device."""

    text = "release A{k}*"


Step = Load | ClosePivot | UpdatePivotRow | Broadcast | Receive | UpdatePivotColumn | UpdateRest | StoreBlockRow | Release


def block_cyclic(device: int, devices: int, count: int) -> range:
    """Return the block rows that a device owns in a block-cyclic distribution: all devices stay busy to the last round."""
    return range(device, count, devices)


def steps(
    rounds: Sequence[int],  # completed rounds of each block row, also as the row panel: zeros at first, more on a resumed closure
    own: Collection[int] | None = None,  # block rows of the device, ascending; all by default
    *,
    look_ahead: bool = False,
    begun: Collection[int] = (),  # block rows that are through phase 3 of their first remaining round
) -> Iterator[Step]:
    """Yield the program of one device for A ← A ⊕ A² ⊕ …, for an idempotent ⊕; all devices together do n³ multiply-adds.

    Before round K each A_IJ is the sum over the paths from I to J through block rows before K. For K = 0 these are the edges alone. With
    `look_ahead`, the next row panel is made first in a round, while other devices are busy with this one. A device then holds three block
    rows instead of two.
    """
    count = len(rounds)
    own = range(count) if own is None else own
    if 0 in own and rounds[0] == 0:
        yield Load(0, 0)
        yield from _make_row_panel(0)
    for k in range(count):
        # Invariant: block rows are through all rounds before k, and A_K* is through round k, broadcast now or next.
        left = [i for i in own if i != k and rounds[i] <= k]
        left.sort(key=lambda i: (i == k + 1) != look_ahead)  # the next row panel last, or first
        is_own, is_last = k in own, k == count - 1
        made_here = is_own and rounds[k] <= k
        if not made_here and (left or (is_own and is_last)):
            yield Receive(k)
        for i in left:
            # Invariant: the block rows before i in this order are through round k, and A_K* does not change.
            yield Load(i, k)
            if i not in begun or rounds[i] < k:  # else done before the interruption
                yield UpdatePivotColumn(i, k)
            yield UpdateRest(i, k)
            if i == k + 1:
                yield from _make_row_panel(i)
            else:
                yield StoreBlockRow(i, k)
        if is_own and is_last:
            yield StoreBlockRow(k, k)
        elif made_here or left:
            yield Release(k)


def _make_row_panel(k: int) -> Iterator[Step]:
    """Yield phases 1 and 2 of A_K*, which is through the rounds before k."""
    yield ClosePivot(k)
    yield UpdatePivotRow(k)
    yield Broadcast(k)
