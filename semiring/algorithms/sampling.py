"""Samples of the sequences of states behind a scan: forward filtering, and sampling against time.

The vectors of a forward scan sum over all ways to a state. So the last state is drawn with probabilities proportional to v_T. Given the
state j at t, the state k before is drawn in proportion to v_{t−1,k} ⊗ a_kj. The states then have the posterior distribution of the whole
sequence (Carter and Kohn, "On Gibbs sampling for state space models", 1994; Frühwirth-Schnatter 1994). A reversed scan is sampled from
the first state on, with the next state k in proportion to a_jk ⊗ w_k ⊗ v_k.

Elements are probabilities up to a factor if ⊕ is + and ⊗ is ×, or their logarithms if ⊕ is log Σ exp. O(T·S) steps for each sample.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from semiring.algebra.definition import Semiring
from semiring.algebra.expression import is_operation
from semiring.arrays.devices import namespace
from semiring.common.errors import LawError
from semiring.kernels.engine import ScanOperands

__all__ = ["require_probabilities", "sample_states"]


def require_probabilities(semiring: Semiring) -> None:
    """Refuse a semiring whose elements are neither probabilities nor logarithms of probabilities.

    >>> from semiring import MAX_PLUS
    >>> require_probabilities(MAX_PLUS)
    Traceback (most recent call last):
        ...
    semiring.common.errors.LawError: max-plus has no samples, which need log Σ exp as ⊕, or + and ×; witness=True returns the best states
    """
    program = semiring.program
    numbers = semiring.components == 1 and is_operation(program.add[0], ("add",)) and is_operation(program.mul[0], ("mul",))
    if program.exponential is None and not numbers:
        raise LawError(f"{semiring.name} has no samples, which need log Σ exp as ⊕, or + and ×; witness=True returns the best states")


def sample_states(semiring: Semiring, operands: ScanOperands, values: Any, draws: Any, *, backward: bool) -> Any:
    """Return a sequence of states for each sequence of a scan, as int32 of shape (…, T + 1).

    States beyond the end, and all states of a sequence whose sum is zero, are −1. `draws` has numbers from [0, 1) of this shape.
    """
    xp, scale = namespace(values), semiring.program.exponential
    pick = _picker(xp, None if scale is None else float(scale))
    lengths, steps, batch = xp.asarray(operands.lengths), operands.steps, operands.batch
    states = xp.full((*batch, steps + 1), -1, "int32")
    if operands.states == 0:
        return states
    matrices, weights = operands.matrices[0], None if operands.weights is None else operands.weights[0]
    combine: Callable[[Any, Any], Any] = xp.multiply if scale is None else xp.add
    shared = matrices.ndim == 2 or max(matrices.shape[:-2]) == 1  # then a row of the matrix is found by its number alone
    table = matrices.reshape(matrices.shape[-2:]) if shared else matrices
    table = table if backward else table.swapaxes(-1, -2)
    state = xp.full(batch, -1, "int64")
    for t in range(steps + 1) if backward else range(steps, -1, -1):
        chances = values[..., t, :].astype("float64")
        if t != (0 if backward else steps):
            step, known = t if backward else t + 1, xp.maximum(state, 0)
            entries = table[known] if shared else _rows(xp, table, step, known)
            if backward and weights is not None:
                entries = combine(entries.astype("float64"), weights[..., step - 1 if weights.shape[-2] > 1 else 0, :])
            # A sequence that begins here has no state yet, and the vector alone decides.
            chances = xp.where((state < 0)[..., None], chances, combine(chances, entries))
        drawn = pick(chances, draws[..., t])
        begins = t == 0 if backward else lengths == t
        state = xp.where(begins | (state >= 0), drawn, -1)
        if backward:
            state = xp.where(t <= lengths, state, -1)
        states[..., t] = state
    return states


def _rows(xp: Any, table: Any, step: int, known: Any) -> Any:
    """Return the row of each sequence's matrix at a step that has the number of its known state."""
    table = table[..., step - 1 if table.shape[-3] > 1 else 0, :, :]
    table = xp.broadcast_to(table, (*known.shape, *table.shape[-2:]))
    return xp.take_along_axis(table, known[..., None, None], axis=-2)[..., 0, :]


def _picker(xp: Any, scale: float | None) -> Callable[[Any, Any], Any]:
    """Return a function that draws a state for each row of elements by a number from [0, 1); −1 if all are zero."""

    def pick(elements: Any, draws: Any) -> Any:
        if scale is not None:
            logs = scale * elements
            most = logs.max(axis=-1, keepdims=True)
            elements = xp.exp(logs - xp.where(xp.isinf(most), 0, most))
        sums = xp.cumsum(elements, axis=-1)
        # The first sum beyond the drawn part of the whole; its own term is then positive.
        found = xp.argmax(sums > draws[..., None] * sums[..., -1:], axis=-1)
        return xp.where(sums[..., -1] > 0, found, -1)

    return pick
