"""Vectors through a long product of matrices: forward, backward and Viterbi's algorithm, over any semiring.

Forward, v_t = (v_{t−1} ⊗ A_t) ⊗ w_t from v_0 on, with an elementwise product by w_t. Backward, v_{t−1} = A_t ⊗ (w_t ⊗ v_t) from the last
vector on. Over LOG these are α and β of a hidden Markov model or a conditional random field (Baum et al. 1970; Rabiner 1989); their
product at each t has the same sum, the likelihood of the sequence. Over max-plus the winners of each step lead from the best last state
back to the first (Viterbi 1967). A scan may also add a vector u_t to each v_t; the adjoint of a scan is such a scan. O(T·S²) steps, and
O(S²) memory besides the result.

A generated loop over time computes the scan if the engine has one; otherwise T products of a vector, or of a batch of vectors.
"""

from __future__ import annotations

from typing import Any

from semiring.arrays.devices import namespace
from semiring.kernels.engine import Engine, ScanOperands, ScanPlaces, Scans

__all__ = ["scan"]

Values = tuple[Any, ...]


def scan(engine: Engine, scans: Scans | None, operands: ScanOperands, places: ScanPlaces, *, backward: bool) -> None:
    """Fill places with the vectors of all sequences, or only the last vectors, and with winners and best states if wanted.

    Vectors after the end of a sequence are zero, winners and states −1. Winners need a selective ⊕. `scans` holds generated loops; the
    engine multiplies over the same semiring and dtypes.
    """
    if operands.lengths.size and int(operands.lengths.min()) < operands.steps:
        zero, _ = engine.semiring.identities(engine.dtypes)
        for v, z in zip(places.values, zero, strict=True):
            v[...] = z
        for v in (places.witness, places.states):
            if v is not None:
                v[...] = -1
    if scans is None:
        _Steps(engine, operands, places, backward=backward).run()
    else:
        scans.run(operands, places, backward=backward, signed=engine.signed)


class _Steps:
    """A scan by products on an engine, step by step for all sequences together."""

    def __init__(self, engine: Engine, operands: ScanOperands, places: ScanPlaces, *, backward: bool) -> None:
        self.engine, self.operands, self.places, self.backward = engine, operands, places, backward
        self.xp = xp = namespace(places.values[0])
        self.batch, self.lengths = operands.batch, xp.asarray(operands.lengths)
        self.last = places.values[0].ndim == len(self.batch) + 1
        self.zero, self.one = engine.semiring.identities(engine.dtypes)

    def run(self) -> None:
        steps, shape = self.operands.steps, (*self.batch, self.operands.states)
        order = range(steps, -1, -1) if self.backward else range(steps + 1)
        initial = tuple(self.xp.broadcast_to(v, shape) for v in self.operands.initial)
        vector = tuple(self.xp.full(shape, z, dtype) for z, dtype in zip(self.zero, self.engine.dtypes, strict=True))
        for t in order:
            winners: Any = -1
            if t != order[0]:
                vector, winners = self._step(vector, t)
                if self.operands.added is not None:
                    vector = self._join(vector, tuple(v[..., t, :] for v in self.operands.added))
            # Backward, each sequence begins at its length; forward, all begin at 0.
            begins = self.lengths == t if self.backward else self.xp.full(self.batch, t == 0)
            vector = tuple(self.xp.where(begins[..., None], v, w) for v, w in zip(initial, vector, strict=True))
            self._keep(t, vector, winners, begins)
        if self.places.states is not None:
            self._follow()

    def _at(self, arrays: Values, t: int, axes: int) -> Values:
        """Return the matrices or weights of step t, counted from 1, for each sequence; an array with one step serves all steps."""
        found = []
        for v in arrays:
            v = v[(..., t - 1 if v.shape[-axes - 1] > 1 else 0, *[slice(None)] * axes)] if v.ndim > axes else v
            found.append(self.xp.broadcast_to(v, (*self.batch, *v.shape[-axes:])))
        return tuple(found)

    def _step(self, vector: Values, t: int) -> tuple[Values, Any]:
        """Return v_t, from v_{t−1} or backward from v_{t+1}, and the winners."""
        step = t + 1 if self.backward else t
        matrix = self._at(self.operands.matrices, step, 2)
        weights = None if self.operands.weights is None else self._at(self.operands.weights, step, 1)
        if not self.backward:
            product, winners = self._product(_rows(vector), matrix)
            return (product if weights is None else self._each(product, weights)), winners
        weighed = vector if weights is None else self._each(weights, vector)
        return self._product(matrix, tuple(v[..., :, None] for v in weighed))

    def _product(self, left: Values, right: Values) -> tuple[Values, Any]:
        """Multiply a row by a matrix, or a matrix by a column; return the vector, and the witness if wanted."""
        shape = (*left[0].shape[:-1], right[0].shape[-1])
        via = None if self.places.witness is None else self.xp.full(shape, -1, self.places.witness.dtype)
        new = self._multiply(left, right, shape, via)
        flat = (*self.batch, shape[-1] * shape[-2])
        return tuple(v.reshape(flat) for v in new), None if via is None else via.reshape(flat)

    def _each(self, x: Values, y: Values) -> Values:
        """Return x ⊗ y entry by entry, as the products of a stack of 1 × 1 matrices."""
        left, right = (tuple(self.xp.ascontiguousarray(v).reshape(-1, 1, 1) for v in part) for part in (x, y))
        return tuple(v.reshape(x[0].shape) for v in self._multiply(left, right, left[0].shape))

    def _join(self, x: Values, y: Values) -> Values:
        """Return x ⊕ y entry by entry, as x ⊕ y ⊗ 1 of stacks of 1 × 1 matrices."""
        y = tuple(self.xp.broadcast_to(v, x[0].shape) for v in y)
        total, more = (tuple(self.xp.array(v).reshape(-1, 1, 1) for v in part) for part in (x, y))
        ones = tuple(self.xp.full(v.shape, o, v.dtype) for v, o in zip(total, self.one, strict=True))
        A, B, C = (self.engine.load(v, owned=False) for v in (more, ones, total))
        self.engine.multiply_add(A, B, C)
        self.engine.store(C, total)
        return tuple(v.reshape(x[0].shape) for v in total)

    def _multiply(self, left: Values, right: Values, shape: tuple[int, ...], via: Any = None) -> Values:
        new = tuple(self.xp.empty(shape, dtype) for dtype in self.engine.dtypes)
        # C ← A⊗B
        A, B = self.engine.load(left, owned=False), self.engine.load(right, owned=False)
        C = self.engine.blank(new, via)
        self.engine.multiply(A, B, C)
        self.engine.store(C, new)
        return new

    def _keep(self, t: int, vector: Values, winners: Any, begins: Any) -> None:
        """Store the vectors of step t, for sequences of at least t steps."""
        wanted = (t <= self.lengths)[..., None]
        if self.last:
            end = self.xp.full(self.batch, t == 0) if self.backward else self.lengths == t
            wanted = end[..., None]
        for v, place in zip(vector, self.places.values, strict=True):
            target = place if self.last else place[..., t, :]
            target[...] = self.xp.where(wanted, v, target)
        if self.places.witness is not None:
            there = (t <= self.lengths) & ~begins
            self.places.witness[..., t, :] = self.xp.where(there[..., None], winners, -1)

    def _follow(self) -> None:
        """Trace the states back from the best entry of the last vector, the first on a tie."""
        xp, states, witness = self.xp, self.places.states, self.places.witness
        vector, shape = self.places.values, (*self.batch, self.operands.states, 1)
        if not self.last:
            ends = 0 * self.lengths if self.backward else self.lengths
            vector = tuple(xp.take_along_axis(v, ends[..., None, None], axis=-2)[..., 0, :] for v in vector)
        ones = tuple(xp.full(shape, o, dtype) for o, dtype in zip(self.one, self.engine.dtypes, strict=True))
        best = self._product(_rows(vector), ones)[1][..., 0]
        state = xp.full(self.batch, -1, witness.dtype)
        for t in range(self.operands.steps + 1) if self.backward else range(self.operands.steps, -1, -1):
            ends = xp.full(self.batch, t == 0) if self.backward else self.lengths == t
            state = xp.where(ends, best, state)
            states[..., t] = xp.where(t <= self.lengths, state, -1)
            if self.operands.states:
                before = xp.take_along_axis(witness[..., t, :], xp.maximum(state, 0)[..., None].astype("int64"), axis=-1)[..., 0]
                state = xp.where(state < 0, -1, before).astype(witness.dtype)


def _rows(vector: Values) -> Values:
    return tuple(v[..., None, :] for v in vector)
