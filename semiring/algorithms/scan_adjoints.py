"""Adjoints of a scan on tensors of PyTorch: the gradients of matrices, weights and initial vector from the gradients G_t of all v_t.

Forward, v_t = (v_{t−1} ⊗ A_t) ⊗ w_t. Let λ_t be the gradient of v_t, with all its uses in later steps. Then λ_{t−1} is G_{t−1} plus the
adjoint of step t applied to λ_t. One recurrence over time finds λ, and products for all t at once find the gradients of A_t and w_t.

    ⊕ is log Σ exp      λ_t = e^{x_t + v_t − m_t}. A scan over LOG against time computes x, and adds log G_t − v_t + m_t at each step. The
                        largest entry m_t of v_t is moved to the weights, so that x stays small. Signs of G are two scans.
    ⊕ is +, ⊗ is ×      λ is a scan against time, with G_t added at each step.
    ⊕ selects           Gradients follow the winners back, in ⌈log₂ T⌉ rounds: each round doubles the steps that a pointer leads back
                        (Wyllie, "The complexity of parallel computations", 1979).

A reversed scan, v_{t−1} = A_t ⊗ (w_t ⊗ v_t), has the same adjoints, with time in the other direction. Elements are single numbers.

An entry of v_t that equals the semiring's zero passes exactly 0 (⊕ selects or is log Σ exp), also if G is ∞ or NaN there. So do entries
beyond the end of a sequence.
"""

from __future__ import annotations

import functools
import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from semiring.algebra.catalogue import LOG, PLUS_TIMES
from semiring.algebra.definition import Semiring
from semiring.algebra.derivatives import ONE, derivatives
from semiring.algebra.expression import is_operation, nodes, var
from semiring.algebra.laws import is_selective
from semiring.algorithms.adjoints import ForwardPass, adjoint_of, deficit, pulled, sums_at
from semiring.common.forks import cached_property
from semiring.kernels.tensors import on_tensors

__all__ = ["ScanPass", "adjoint_of_scan", "has_scan_adjoint"]

Scan = Callable[..., Any]
"""Scans ``(semiring, matrices, weights, initial, added, lengths, reverse=…)``; see `semiring.kernels.engine.ScanOperands`."""


@functools.lru_cache(maxsize=256)
def has_scan_adjoint(semiring: Semiring) -> bool:
    """Return True if this module has the adjoint of scans over the semiring, among those with an adjoint of products."""
    program = semiring.program
    if semiring.components > 1:
        return False
    return program.exponential is not None or is_selective(semiring) or _is_of_numbers(semiring)


def _is_of_numbers(semiring: Semiring) -> bool:
    return is_operation(semiring.program.add[0], ("add",)) and is_operation(semiring.program.mul[0], ("mul",))


@dataclass(frozen=True, eq=False)
class ScanPass:
    """A scan: its operands, with all leading axes of the batch (of length 1 where shared), and what it found.

    The matrices have T or one step, as have the weights.
    """

    semiring: Semiring
    matrices: Any  # (…, T, S, S)
    weights: Any  # (…, T, S), or None
    initial: Any  # (…, S)
    values: Any  # (…, T + 1, S)
    witness: Any  # (…, T + 1, S) if ⊕ selects, or None
    lengths: np.ndarray[Any, Any]  # on the host
    reverse: bool
    last: bool  # only the last computed vectors have gradients, of shape (…, S)

    @cached_property
    def lead(self) -> tuple[int, ...]:
        """The lengths of the axes of the batch, and T."""
        *batch, rows, _ = self.values.shape
        return *batch, rows - 1

    @cached_property
    def inside(self) -> Any:
        """True at the vectors that each sequence has, also at v_0; None if all sequences have T steps."""
        steps = self.lead[-1]
        if not self.lengths.size or int(self.lengths.min()) == steps:
            return None
        return _torch().from_numpy(np.arange(steps + 1) <= self.lengths[..., None]).to(self.values.device)[..., None]

    @cached_property
    def _ends(self) -> Any:
        at = _torch().from_numpy(self.lengths[..., None, None])
        return at.to(self.values.device).expand(*self.lengths.shape, 1, self.values.shape[-1])

    def sources(self, v: Any) -> Any:
        """Return the vectors before each step."""
        return v[..., 1:, :] if self.reverse else v[..., :-1, :]

    def results(self, v: Any) -> Any:
        """Return the vectors after each step."""
        return v[..., :-1, :] if self.reverse else v[..., 1:, :]

    def within(self, v: Any, other: float = 0) -> Any:
        """Return vectors of all steps, with another number at steps beyond the lengths."""
        return v if self.inside is None else _torch().where(self.inside[..., 1:, :], v, other)

    def end(self, v: Any, *, first: bool) -> Any:
        """Return the vector v_0 (``first``), or the one at the end of each sequence."""
        if first or self.inside is None:
            return v[..., 0 if first else -1, :]
        return v.gather(-2, self._ends)[..., 0, :]

    def computed_last(self, v: Any) -> Any:
        """Return the last computed vector of each sequence."""
        return self.end(v, first=self.reverse)

    def alone(self, v: Any) -> Any:
        """Return vectors that are 0 except for the last computed ones."""
        whole = v.new_zeros(*v.shape[:-1], self.lead[-1] + 1, v.shape[-1])
        if self.reverse or self.inside is None:
            whole[..., 0 if self.reverse else -1, :] = v
            return whole
        return whole.scatter_(-2, self._ends, v[..., None, :])


class _Stack:
    """Layout of all steps as a stack of products; steps and sequences that share a matrix are the rows of one product."""

    def __init__(self, scan: ScanPass) -> None:
        shape, lead = scan.matrices.shape, scan.lead
        own = [axis for axis, length in enumerate(lead) if shape[axis] == length]
        self.shared = [axis for axis in range(len(lead)) if axis not in own]
        self._order, self._reverse, self._states = [*own, *self.shared], scan.reverse, shape[-1]
        self._own, self._lengths = [lead[axis] for axis in own], [lead[axis] for axis in self._order]
        self._back = sorted(range(len(lead)), key=self._order.__getitem__)

    def rows(self, v: Any) -> Any:
        """Return vectors of all steps as rows; for a reversed scan as columns."""
        count = math.prod(self._lengths[len(self._own) :])
        v = v.permute(*self._order, len(self._order)).reshape(*self._own, count, self._states)
        return v.mT if self._reverse else v

    def vectors(self, rows: Any) -> Any:
        """Return rows or columns as vectors of all steps."""
        rows = rows.mT if self._reverse else rows
        return rows.reshape(*self._lengths, self._states).permute(*self._back, len(self._order))

    def sides(self, matrices: Any, vectors: Any) -> tuple[Any, Any]:
        """Return the left and the right operand of the products."""
        axes = len(self._order)
        stack = matrices.permute(*self._order, axes, axes + 1).reshape(*self._own, self._states, self._states)
        return (stack, self.rows(vectors)) if self._reverse else (self.rows(vectors), stack)

    def whole(self, a: Any) -> Any:
        """Return a stack of matrices with all axes again."""
        axes = len(self._order)
        return a.reshape(*self._own, *(1 for _ in self.shared), self._states, self._states).permute(*self._back, axes, axes + 1)


class _Adjoint:
    """The adjoint of one scan; `scan` and `product` compute scans and products of tensors."""

    def __init__(self, forward: ScanPass, scan: Scan, product: Callable[[Any, Any], Any]) -> None:
        self.forward, self.scan, self.stack = forward, scan, _Stack(forward)
        program = forward.semiring.program
        self.scale = None if program.exponential is None else float(program.exponential)
        self.jacobian = derivatives(program.mul, [var(0), var(1)])
        self.zero = float(forward.semiring.zero)
        self.sources, self.found = forward.sources(forward.values), forward.results(forward.values)
        self.winners: Any = None if forward.witness is None else forward.results(forward.witness)
        self.before, self.inner = self.sources, self.found  # operands and results of the products with the matrices
        weights = forward.weights
        if weights is not None and forward.reverse:
            (weighed,) = on_tensors(program.mul, [weights], [self.sources])
            self.before = forward.within(weighed, self.zero)
        elif weights is not None and self.scale is not None:
            self.inner = self.found - weights
        elif weights is not None and any(e.op == "var" for e in nodes(*self.jacobian[0])):
            self.inner = forward.within(self.stack.vectors(product(*self.stack.sides(forward.matrices, self.sources))))
        if self.scale is not None:  # no term beats the zero there, and the other infinity makes every exponential 0
            self.inner = _torch().where(self.found == self.zero, -self.zero, self.inner)

    def gradients(self, g: Any, wanted: tuple[bool, bool, bool]) -> list[Any]:
        """Return the gradients of matrices, weights and initial vector in the shapes of the operands, None for those not wanted."""
        p, torch = self.forward, _torch()
        total = self._totals(self._reached(g))
        operands, found = (p.matrices, p.weights, p.initial), [None, None, p.end(total, first=not p.reverse)]
        after, weighs = p.results(total), p.weights is not None and wanted[1]
        if not after.numel():
            found[:2] = [x if x is None else torch.zeros_like(x) for x in operands[:2]]
        else:
            if p.weights is not None and not p.reverse:
                found[1] = self._pulled(1, after, self.inner, p.weights) if weighs else None
                after = self._pulled(0, after, self.inner, p.weights)
            if wanted[0] or (weighs and p.reverse):
                found[0], before = self._of_products(after, wanted[0], weighs and p.reverse)
                if weighs and p.reverse:
                    found[1] = self._pulled(0, before, p.weights, self.sources)
        given = zip(found, operands, wanted, strict=True)
        return [x.sum_to_size(operand.shape) if asked and x is not None else None for x, operand, asked in given]

    def _reached(self, g: Any) -> Any:
        """Return the gradients of vectors, 0 at unreachable entries and beyond the end of a sequence."""
        p, where = self.forward, _torch().where
        if self.scale is not None or self.winners is not None:
            return where((p.computed_last(p.values) if p.last else p.values) == self.zero, 0, g)
        return g if p.inside is None or p.last else where(p.inside, g, 0)

    def _pulled(self, side: int, g: Any, left: Any, right: Any) -> Any:
        return self.forward.within(pulled(self.jacobian, side, [g], [left], [right]))

    def _of_products(self, after: Any, matrix: bool, vector: bool) -> tuple[Any, Any]:
        """Return the gradients of the matrices and of the vectors, summed over all that share a matrix; None for those not wanted."""
        p, stack, g = self.forward, self.stack, self.stack.rows(after)
        left, right = stack.sides(p.matrices, self.before)
        if self.scale is not None and not stack.shared:
            a, v = (left, right) if p.reverse else (right, left)
            terms = (a + v.mT).sub_(stack.rows(self.inner))
            of_matrices = (terms if self.scale == 1 else terms.mul_(self.scale)).exp_().mul_(g)
            of_vectors = of_matrices.sum(-2 if p.reverse else -1, keepdim=True).mT
        else:
            found, lost, scale = self.winners, 0.0, p.semiring.program.exponential
            if scale is not None:
                found = stack.rows(self.inner)
                lost = deficit(scale, left, right, found)
            elif found is not None:
                found = stack.rows(found)
            order = (matrix, vector) if p.reverse else (vector, matrix)
            sides = adjoint_of(p.semiring)(ForwardPass([left], [right], found, lost), [g], order)
            (of_matrices,), (of_vectors,) = sides if p.reverse else sides[::-1]
        return self._used(stack.whole(of_matrices)) if matrix else None, stack.vectors(of_vectors) if vector else None

    def _used(self, matrices: Any) -> Any:
        """Return gradients of matrices, 0 for steps that no sequence has."""
        inside = self.forward.inside
        if inside is None or len(self.forward.lead) - 1 in self.stack.shared:
            return matrices
        for axis in self.stack.shared:
            inside = inside.any(axis, keepdim=True)
        return matrices.masked_fill_(~inside[..., 1:, :, None], 0)

    # λ, the gradients with all later uses.

    def _totals(self, g: Any) -> Any:
        """Return λ for all vectors."""
        p = self.forward
        if self.found.numel() and self.scale is not None:
            return self._of_exponentials(self.scale, g)
        if self.found.numel() and self.winners is None:
            return self._against_time(PLUS_TIMES, p.matrices, p.weights, [g])[0]
        g = p.alone(g) if p.last else g
        return self._along_winners(g) if self.found.numel() else g

    def _against_time(self, semiring: Semiring, matrices: Any, weights: Any, added: Sequence[Any]) -> Any:
        """Return a stack of scans in the other direction, one for each of `added`; each scan begins at the end of its sequence."""
        p, copies, stack = self.forward, len(added), _torch().stack
        start = stack([v if p.last else p.computed_last(v) for v in added])
        lengths, weights = np.broadcast_to(p.lengths, (copies, *p.lengths.shape)), None if weights is None else weights[None]
        return self.scan(semiring, matrices[None], weights, start, None if p.last else stack(list(added)), lengths, reverse=not p.reverse)

    def _of_exponentials(self, s: float, g: Any) -> Any:
        """Compute λ from scans over LOG of the positive and of the negative gradients."""
        p = self.forward

        def scaled(x: Any) -> Any:
            return x if s == 1 or x is None else s * x

        v, a, w = map(scaled, (p.values, p.matrices, p.weights))
        most = v.amax(-1, keepdim=True).nan_to_num(neginf=0.0)
        offset, moved = v - most, p.sources(most) - p.results(most)
        moved = moved.expand(*p.lead, v.shape[-1]) if w is None else moved + w
        unreachable = v == -math.inf
        less, never = (p.computed_last(x) if p.last else x for x in (offset, unreachable))
        signs = [1, -1] if bool((g < 0).any()) else [1]
        added = [((sign * g).clamp(min=0).log() - less).masked_fill_(never, -math.inf) for sign in signs]
        parts = (self._against_time(LOG, a, moved, added) + offset).exp_().masked_fill_(unreachable, 0)
        return parts[0] if len(signs) == 1 else parts[0] - parts[1]

    def _along_winners(self, g: Any) -> Any:
        """Follow the winners back. An additional state S, which passes nothing, stands for entries without a winner."""
        p, torch, states, axis = self.forward, _torch(), g.shape[-1], len(self.forward.lead) - 1
        pad, factors = torch.nn.functional.pad, self._factors()
        pointers = pad(torch.where(self.winners < 0, states, self.winners.long()), (0, 1), value=states)
        total, factors = pad(g, (0, 1)), factors if factors is None else pad(factors, (0, 1))

        def in_order(x: Any) -> Any:
            return x.flip(axis) if p.reverse and x is not None else x

        total, pointers, factors = map(in_order, (total, pointers, factors))
        steps, far = p.lead[-1], 1
        while far <= steps:  # the pointers of v_t, for t from `far` on, lead to v_{t−far}
            later = total[..., far:, :] if factors is None else total[..., far:, :] * factors
            back = sums_at(pointers, later, states + 1, -1)
            back[..., states] = 0
            kept = steps + 1 - far
            total = torch.cat([total[..., :kept, :] + back, total[..., kept:, :]], axis)
            ahead, kept = pointers[..., far:, :], max(0, kept - far)
            if factors is not None:
                factors = factors[..., far:, :] * factors[..., :kept, :].gather(-1, ahead)
            pointers, far = pointers[..., :kept, :].gather(-1, ahead), 2 * far
        return in_order(total[..., :states])

    def _factors(self) -> Any:
        """Return the derivative of each vector's entries by the entry before that won; None if all are 1."""
        if all(entry is ONE for entry in self.jacobian[0]):
            return None
        p, torch, k, jacobian = self.forward, _torch(), self.winners.clamp(min=0).long(), self.jacobian
        matrix, won = p.matrices.expand(*p.lead, *p.matrices.shape[-2:]), self.before.gather(-1, k)
        entry = matrix.gather(-1, k[..., None])[..., 0] if p.reverse else matrix.gather(-2, k[..., None, :])[..., 0, :]
        factor = torch.ones_like(entry)
        if p.weights is not None and not p.reverse:
            factor = pulled(jacobian, 0, [factor], [self.inner], [p.weights])
        factor = pulled(jacobian, 1, [factor], [entry], [won]) if p.reverse else pulled(jacobian, 0, [factor], [won], [entry])
        if p.weights is not None and p.reverse:
            weights, sources = (x.expand(entry.shape).gather(-1, k) for x in (p.weights, self.sources))
            factor = pulled(jacobian, 1, [factor], [weights], [sources])
        return torch.where(self.winners < 0, 0, factor)


def adjoint_of_scan(
    forward: ScanPass, g: Any, wanted: tuple[bool, bool, bool], scan: Scan, product: Callable[[Any, Any], Any]
) -> list[Any]:
    """Return the gradients of matrices, weights and initial vector from those of the vectors; None for those not wanted."""
    return _Adjoint(forward, scan, product).gradients(g, wanted)


def _torch() -> Any:
    return sys.modules["torch"]
