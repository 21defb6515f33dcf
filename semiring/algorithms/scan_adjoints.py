"""Adjoints of a scan on tensors of PyTorch: the gradients of matrices, weights and initial vector from the gradients G_t of all v_t.

Forward, v_t = (v_{t−1} ⊗ A_t) ⊗ w_t. Let λ_t be the gradient of v_t, with all its uses in later steps. Then λ_{t−1} is G_{t−1} plus the
adjoint of step t applied to λ_t. One recurrence over time finds λ, and products for all t at once find the gradients of A_t and w_t.

    ⊕ is log Σ exp      λ_t = e^{x_t + v_t − m_t}, where x is a scan over LOG against time, with log G_t − v_t + m_t added at each step. The
                        largest entry m_t of v_t is moved to the weights, so that x stays small. Signs of G are two scans.
    ⊕ is +, ⊗ is ×      λ is a scan against time, with G_t added at each step.
    ⊕ selects           Gradients follow the winners back, in ⌈log₂ T⌉ rounds: each round doubles the steps that a pointer leads back
                        (Wyllie, "The complexity of parallel computations", 1979).
    other sums          T steps in turn.

A reversed scan, v_{t−1} = A_t ⊗ (w_t ⊗ v_t), has the same adjoints, with time in the other direction.

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
from semiring.algorithms.adjoints import ForwardPass, Tensors, adjoint_of, deficit, pulled, sums_at
from semiring.kernels.tensors import on_tensors

__all__ = ["ScanPass", "adjoint_of_scan"]

Scan = Callable[..., Any]
"""Scans ``(semiring, matrices, weights, initial, added, lengths, reverse=…)`` of single tensors; see `semiring.kernels.engine.ScanOperands`."""

Product = Callable[[Semiring, Tensors, Tensors], Tensors]


@dataclass(frozen=True, eq=False)
class ScanPass:
    """A scan, by components: its operands with all leading axes of the batch (of length 1 where shared), and what it found.

    The `matrices` have T or one step, as have the `weights`. `witness` has the winners if ⊕ selects.
    """

    semiring: Semiring
    matrices: Tensors  # (…, T, S, S)
    weights: Tensors | None  # (…, T, S)
    initial: Tensors  # (…, S)
    values: Tensors  # (…, T + 1, S)
    witness: Any  # (…, T + 1, S), or None
    lengths: np.ndarray[Any, Any]  # on the host
    reverse: bool
    last: bool  # only the last computed vectors have gradients, of shape (…, S)

    @property
    def lead(self) -> tuple[int, ...]:
        """Return the lengths of the axes of the batch, and T."""
        *batch, rows, _ = self.values[0].shape
        return *batch, rows - 1

    @functools.cached_property
    def inside(self) -> Any:
        """True at the steps of each sequence; None if all sequences have T steps."""
        steps = self.lead[-1]
        if not self.lengths.size or int(self.lengths.min()) == steps:
            return None
        return _torch().from_numpy(np.arange(steps) < self.lengths[..., None]).to(self.values[0].device)

    def sources(self, v: Any) -> Any:
        """Return the vectors before each step."""
        return v[..., 1:, :] if self.reverse else v[..., :-1, :]

    def results(self, v: Any) -> Any:
        """Return the vectors after each step."""
        return v[..., :-1, :] if self.reverse else v[..., 1:, :]

    def within(self, v: Any, other: float = 0) -> Any:
        """Return vectors of all steps, with another number at steps beyond the lengths."""
        return v if self.inside is None else _torch().where(self.inside[..., None], v, other)

    def end(self, v: Any, *, first: bool) -> Any:
        """Return the vector v_0 (``first``), or the one at the end of each sequence."""
        if first or self.inside is None:
            return v[..., 0 if first else -1, :]
        return v.gather(-2, self._ends)[..., 0, :]

    def alone(self, v: Any) -> Any:
        """Return vectors that are 0 except for the last computed ones."""
        whole = v.new_zeros(*v.shape[:-1], self.lead[-1] + 1, v.shape[-1])
        if self.reverse or self.inside is None:
            whole[..., 0 if self.reverse else -1, :] = v
            return whole
        return whole.scatter_(-2, self._ends, v[..., None, :])

    @functools.cached_property
    def _ends(self) -> Any:
        at, device = _torch().from_numpy(self.lengths[..., None, None]), self.values[0].device
        return at.to(device).expand(*self.lengths.shape, 1, self.values[0].shape[-1])


class _Stack:
    """Layout of all steps as a stack of products; steps and sequences that share a matrix are the rows of one product."""

    def __init__(self, scan: ScanPass) -> None:
        shape, lead = scan.matrices[0].shape, scan.lead
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

    def matrices(self, a: Any) -> Any:
        """Return the matrices as a stack, without shared axes."""
        axes = len(self._order)
        return a.permute(*self._order, axes, axes + 1).reshape(*self._own, self._states, self._states)

    def whole(self, a: Any) -> Any:
        """Return a stack of matrices with all axes again."""
        axes = len(self._order)
        return a.reshape(*self._own, *(1 for _ in self.shared), self._states, self._states).permute(*self._back, axes, axes + 1)

    def sides(self, matrices: Tensors, vectors: Tensors) -> tuple[list[Any], list[Any]]:
        """Return the left and the right operand of the products."""
        stack, rows = [self.matrices(a) for a in matrices], [self.rows(v) for v in vectors]
        return (stack, rows) if self._reverse else (rows, stack)


class _Adjoint:
    """The adjoint of one scan; `scan` and `product` compute scans and products of tensors."""

    def __init__(self, forward: ScanPass, scan: Scan, product: Product) -> None:
        self.pass_, self._scan, self._product = forward, scan, product
        self.semiring, self.width = forward.semiring, forward.semiring.components
        program = self.semiring.program
        self.scale = None if program.exponential is None else float(program.exponential)
        self.jacobian = derivatives(program.mul, [var(side, c) for side in (0, 1) for c in range(self.width)])
        self.selects = is_selective(self.semiring)
        self.stack = _Stack(forward)
        self.zero = list(map(float, _elements(self.semiring.zero)))
        self.sources, self.found = [list(map(part, forward.values)) for part in (forward.sources, forward.results)]
        self.winners = None if forward.witness is None else forward.results(forward.witness)
        self._weigh()

    def _weigh(self) -> None:
        """Find both sides of the products with the weights: the product before them, or the vector before them in a reversed scan."""
        p, torch = self.pass_, _torch()
        self.before = self.sources
        self.inner = self.found  # the products
        if p.weights is None:
            return
        if p.reverse:
            before = on_tensors(self.semiring.program.mul, p.weights, self.sources)
            self.before = [p.within(v, z) for v, z in zip(before, self.zero, strict=True)]
        elif self.scale is not None:
            self.inner = [self.found[0] - p.weights[0]]
        elif any(e.op == "var" for row in self.jacobian for e in nodes(*row)):
            self.inner = [p.within(self.stack.vectors(v)) for v in self._product(self.semiring, *self.stack.sides(p.matrices, self.sources))]
        if self.scale is not None:  # no term beats the zero there; the other infinity makes every exponential 0
            self.inner = [torch.where(self.found[0] == self.zero[0], -self.zero[0], self.inner[0])]

    def gradients(self, gradients: Tensors, wanted: tuple[bool, bool, bool]) -> tuple[Any, ...]:
        """Return the gradients of matrices, weights and initial vector by components, in the shapes of the operands."""
        p, torch, width = self.pass_, _torch(), self.width
        total = self._totals([self._reached(g) for g in gradients])
        initial = [p.end(v, first=not p.reverse) for v in total]
        after = [p.results(v) for v in total]
        matrices = weights = None
        if not after[0].numel():
            matrices = [torch.zeros_like(a) for a in p.matrices]
            weights = None if p.weights is None else [torch.zeros_like(w) for w in p.weights]
        else:
            weighs = p.weights is not None and wanted[1]
            if p.weights is not None and not p.reverse:
                if weighs:
                    weights = [self._pulled(width + c, after, self.inner, p.weights) for c in range(width)]
                after = [self._pulled(c, after, self.inner, p.weights) for c in range(width)]
            if wanted[0] or (weighs and p.reverse):
                matrices, before = self._of_products(after, (wanted[0], weighs and p.reverse))
                if weighs and p.reverse:
                    weights = [self._pulled(c, before, p.weights, self.sources) for c in range(width)]
        return *(
            None if parts is None or not asked else [g.sum_to_size(x.shape) for g, x in zip(parts, operand, strict=True)]
            for parts, operand, asked in zip((matrices, weights, initial), (p.matrices, p.weights, p.initial), wanted, strict=True)
        ),

    def _reached(self, g: Any) -> Any:
        """Return the gradients of vectors, 0 at unreachable entries and beyond the end of a sequence."""
        p, where = self.pass_, _torch().where
        if self.scale is not None or self.selects:
            values = [p.end(v, first=p.reverse) for v in p.values] if p.last else p.values
            unreachable = functools.reduce(lambda x, y: x & y, [v == z for v, z in zip(values, self.zero, strict=True)])
            return where(unreachable, 0, g)
        if p.inside is None or p.last:
            return g
        rows = np.arange(p.lead[-1] + 1) <= p.lengths[..., None]
        return where(_torch().from_numpy(rows).to(g.device)[..., None], g, 0)

    def _pulled(self, column: int, gradients: Tensors, left: Tensors, right: Tensors) -> Any:
        return self.pass_.within(pulled(self.jacobian, column, gradients, left, right))

    def _of_products(self, after: Tensors, wanted: tuple[bool, bool]) -> tuple[Any, Any]:
        """Return the gradients of the matrices and of the vectors, summed over all that share a matrix."""
        p, stack, g = self.pass_, self.stack, [self.stack.rows(v) for v in after]
        left, right = stack.sides(p.matrices, self.before)
        if self.scale is not None and not stack.shared:
            (a,), (v,) = (left, right) if p.reverse else (right, left)
            terms = (a + v.mT).sub_(stack.rows(self.inner[0]))
            terms = (terms if self.scale == 1 else terms.mul_(self.scale)).exp_().mul_(g[0])
            vectors = [terms.sum(-2 if p.reverse else -1, keepdim=True).mT]
            matrices = [terms]
        else:
            found, lost = self.winners, 0.0
            if self.scale is not None:
                found = self.inner[0]
            found = None if found is None else stack.rows(found)
            if self.scale is not None:
                lost = deficit(self.semiring.program.exponential, left[0], right[0], found)
            order = wanted if p.reverse else wanted[::-1]
            sides = adjoint_of(self.semiring)(ForwardPass(left, right, found, lost), g, order)
            matrices, vectors = sides if p.reverse else sides[::-1]
        of_matrices = [self._used(stack.whole(m)) for m in matrices] if wanted[0] else None
        return of_matrices, [stack.vectors(v) for v in vectors] if wanted[1] else None

    def _used(self, matrices: Any) -> Any:
        """Return gradients of matrices, 0 for steps that no sequence has."""
        inside = self.pass_.inside
        if inside is None or len(self.pass_.lead) - 1 in self.stack.shared:
            return matrices
        for axis in self.stack.shared:
            inside = inside.any(axis, keepdim=True)
        return matrices.masked_fill_(~inside[..., None, None], 0)

    # λ, the gradients with all later uses.

    def _totals(self, g: list[Any]) -> list[Any]:
        """Return λ for all vectors."""
        program = self.semiring.program
        if not self.found[0].numel():
            return list(map(self.pass_.alone, g)) if self.pass_.last else g
        if self.scale is not None:
            return [self._of_exponentials(g[0])]
        if self.width == 1 and is_operation(program.add[0], ("add",)) and is_operation(program.mul[0], ("mul",)):
            weights = None if self.pass_.weights is None else self.pass_.weights[0]
            return [self._against_time(PLUS_TIMES, self.pass_.matrices[0], weights, g)[0]]
        if self.pass_.last:
            g = list(map(self.pass_.alone, g))
        return [self._along_winners(g[0])] if self.width == 1 and self.selects else self._by_steps(g)

    def _against_time(self, semiring: Semiring, matrices: Any, weights: Any, added: Sequence[Any]) -> Any:
        """Scan in the other direction, from the added vector at the end of each sequence; return a stack with one scan of each of `added`."""
        p, copies, stack = self.pass_, len(added), _torch().stack
        start = stack([v if p.last else p.end(v, first=p.reverse) for v in added])
        lengths, weights = np.broadcast_to(p.lengths, (copies, *p.lengths.shape)), None if weights is None else weights[None]
        return self._scan(semiring, matrices[None], weights, start, None if p.last else stack(list(added)), lengths, reverse=not p.reverse)

    def _of_exponentials(self, g: Any) -> Any:
        """Compute λ from scans over LOG of the positive and of the negative gradients."""
        p, torch, s = self.pass_, _torch(), self.scale
        v, a = (x if s == 1 else s * x for x in (p.values[0], p.matrices[0]))
        most = v.amax(-1, keepdim=True).nan_to_num(neginf=0.0)
        offset, moved = v - most, p.sources(most) - p.results(most)
        if p.weights is not None:
            moved = moved + (p.weights[0] if s == 1 else s * p.weights[0])
        unreachable = v == -math.inf
        less, never = (p.end(x, first=p.reverse) if p.last else x for x in (offset, unreachable))
        signs = [1, -1] if bool((g < 0).any()) else [1]
        added = [((sign * g).clamp(min=0).log() - less).masked_fill_(never, -math.inf) for sign in signs]
        logs = self._against_time(LOG, a, moved.expand(*p.lead, v.shape[-1]), added)
        parts = (logs + offset).exp_().masked_fill_(unreachable, 0)
        return parts[0] if len(signs) == 1 else parts[0] - parts[1]

    def _along_winners(self, g: Any) -> Any:
        """Follow the winners back. An additional state S, which passes nothing, stands for entries without a winner."""
        p, torch, states, axis = self.pass_, _torch(), g.shape[-1], len(self.pass_.lead) - 1
        pointers, factors = self.winners.long(), self._factors()
        pointers = torch.where(pointers < 0, states, pointers)
        pad = torch.nn.functional.pad
        total, pointers = pad(g, (0, 1)), pad(pointers, (0, 1), value=states)
        factors = None if factors is None else pad(factors, (0, 1))
        if p.reverse:
            total, pointers = total.flip(axis), pointers.flip(axis)
            factors = None if factors is None else factors.flip(axis)
        steps, far = p.lead[-1], 1
        while far <= steps:  # a pointer at t, the number t − `far` of these arrays, leads from v_t to v_{t−far}
            later = total[..., far:, :] if factors is None else total[..., far:, :] * factors
            back = sums_at(pointers, later, states + 1, -1)
            back[..., states] = 0
            total = torch.cat([total[..., : steps + 1 - far, :] + back, total[..., steps + 1 - far :, :]], axis)
            ahead = pointers[..., far:, :]
            if factors is not None:
                factors = factors[..., far:, :] * factors[..., : steps + 1 - 2 * far, :].gather(-1, ahead)
            pointers = pointers[..., : max(0, steps + 1 - 2 * far), :].gather(-1, ahead)
            far *= 2
        total = total[..., :states]
        return total.flip(axis) if p.reverse else total

    def _factors(self) -> Any:
        """Return the derivative of each vector's entries by the entry before that won; None if all are 1."""
        if all(entry is ONE for row in self.jacobian for entry in row):
            return None
        p, torch, k = self.pass_, _torch(), self.winners.clamp(min=0).long()
        index, (before,), jacobian = k[..., None], self.before, self.jacobian
        matrix = p.matrices[0].expand(*p.lead, *p.matrices[0].shape[-2:])
        entry = matrix.gather(-1, index)[..., 0] if p.reverse else matrix.gather(-2, k[..., None, :])[..., 0, :]
        factor, won = torch.ones_like(entry), before.gather(-1, k)
        if p.weights is not None and not p.reverse:
            factor = pulled(jacobian, 0, [factor], self.inner, p.weights)
        factor = pulled(jacobian, 1, [factor], [entry], [won]) if p.reverse else pulled(jacobian, 0, [factor], [won], [entry])
        if p.weights is not None and p.reverse:
            weights, sources = (x.expand(entry.shape).gather(-1, k) for x in (p.weights[0], self.sources[0]))
            factor = pulled(jacobian, 1, [factor], [weights], [sources])
        return torch.where(self.winners < 0, 0, factor)

    def _by_steps(self, g: list[Any]) -> list[Any]:
        """Apply the adjoint of one step after the other."""
        p, width, torch = self.pass_, self.width, _torch()
        (*batch, steps), adjoint = p.lead, adjoint_of(self.semiring)
        total = [list(x.unbind(-2)) for x in g]
        for t in range(steps) if p.reverse else reversed(range(steps)):
            source, result = (t + 1, t) if p.reverse else (t, t + 1)

            def at(x: Any, t: int = t) -> Any:
                return x[..., min(t, x.shape[-2] - 1), :]

            after = [x[result] for x in total]
            weights = None if p.weights is None else [at(w) for w in p.weights]
            if weights is not None and not p.reverse:
                after = [pulled(self.jacobian, c, after, [at(v) for v in self.inner], weights) for c in range(width)]
            matrices = [a[..., min(t, a.shape[-3] - 1), :, :].expand(*batch, *a.shape[-2:]) for a in p.matrices]
            axis = -1 if p.reverse else -2
            rows, found, after = (
                [x.unsqueeze(axis) for x in part] for part in ([at(v) for v in self.before], [] if self.winners is None else [at(self.winners)], after)
            )
            sides = (matrices, rows) if p.reverse else (rows, matrices)
            back = adjoint(ForwardPass(*sides, found[0] if found else None), after, (not p.reverse, p.reverse))[int(p.reverse)]
            back = [x.squeeze(axis) for x in back]
            if weights is not None and p.reverse:
                back = [pulled(self.jacobian, width + c, back, weights, [at(v) for v in self.sources]) for c in range(width)]
            if p.inside is not None:
                back = [torch.where(p.inside[..., t, None], x, 0) for x in back]
            for each, x in zip(total, back, strict=True):
                each[source] = each[source] + x
        return [torch.stack(each, -2) for each in total]


def adjoint_of_scan(
    forward: ScanPass, gradients: Sequence[Any], wanted: tuple[bool, bool, bool], scan: Scan, product: Product
) -> tuple[Any, Any, Any]:
    """Return the gradients of matrices, weights and initial vector by components, from those of all vectors; None if not wanted.

    SemiringError is raised for a ⊕ without an adjoint.
    """
    adjoint_of(forward.semiring)
    matrices, weights, initial = _Adjoint(forward, scan, product).gradients(gradients, wanted)
    return matrices, weights, initial


def _elements(x: Any) -> tuple[Any, ...]:
    return x if isinstance(x, tuple) else (x,)


def _torch() -> Any:
    return sys.modules["torch"]
