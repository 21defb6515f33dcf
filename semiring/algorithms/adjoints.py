"""Adjoints of a product C = A ⊗ B on tensors of PyTorch: the gradients of A and B from the gradient G of C.

    ⊕ selects           Ā_ik = Σ_j G_ij ∂⊗/∂left(a_ik, b_kj), for each j whose witness is k.
    ⊕ is +              Ā_ik = Σ_j G_ij ∂⊗/∂left(a_ik, b_kj). For numbers Ā = G Bᵀ.
    ⊕ is log Σ exp      Ā_ik = Σ_j G_ij e^{s(a_ik + b_kj − c_ij)}, by two products of exponentials.
    any other ⊕         terms and their sums are computed again, block by block, and PyTorch differentiates them.

B̄ has the same sums, over i. Functions consist of PyTorch's differentiable operations on stacks of matrices, and add in a fixed order.

A pair (i, j) is unreachable if no term beats the semiring's zero. Such a pair passes exactly 0, also if G is ∞ or NaN there.
"""

from __future__ import annotations

import functools
import math
import sys
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

from semiring.algebra.definition import Semiring
from semiring.algebra.derivatives import ONE, ZERO, Jacobian, derivative_of_product, uses_operands
from semiring.algebra.expression import Expr
from semiring.common.errors import SemiringError
from semiring.kernels.cuda.gradients import exponentials_on_gpu
from semiring.kernels.select import selected_sums
from semiring.kernels.tensors import on_tensors

__all__ = [
    "ENTRIES", "IN_DOUBLE", "IN_SINGLE", "Adjoint", "ForwardPass", "Jacobian", "Tensors", "adjoint_of", "deficit", "of_exponentials",
    "pulled", "reads_operands", "sums_at",
]  # fmt: skip

Tensors = Sequence[Any]
Wanted = tuple[bool, bool]

ENTRIES = 1 << 21
"""The most terms a_ik ⊗ b_kj in memory at once."""

IN_SINGLE, IN_DOUBLE = 32.0, 256.0
"""The largest `deficit` of sums in float32 and in float64.

An exponential below e⁻⁸⁷ (float64: e⁻⁷⁰⁸) may count as 0. The relative loss of a gradient is then below e⁻⁵⁵ (e⁻⁴⁵²).
"""


_HUGE = 2.0**60
"""Weights beyond this number are divided by a power of two, so that their sums are finite."""


class ForwardPass(NamedTuple):
    """A product of stacks of matrices: both operands by components, and what the forward pass found.

    `found` is the witness if ⊕ selects, C and its `deficit` (or None, if the backward pass computes it) if ⊕ is log Σ exp, and else None.
    """

    left: Tensors
    right: Tensors
    found: Any
    deficit: float | None = None


Adjoint = Callable[[ForwardPass, Tensors, Wanted], tuple[list[Any], list[Any]]]
"""Returns the gradients of both operands by components, from those of the values; None for an operand that is not wanted."""


@functools.lru_cache(maxsize=256)
def adjoint_of(semiring: Semiring, *, split: bool = False) -> Adjoint:
    """Return the adjoint of products over a semiring, or raise `SemiringError` for an operation without a derivative.

    With `split`, the terms that equal a selected value share its gradient.
    """
    kind, jacobian, scale = derivative_of_product(semiring)
    if kind == "exponentials":
        return functools.partial(of_exponentials, scale)
    if kind == "numbers":
        return _of_numbers
    if kind == "selected" and split:
        if semiring.components > 1:
            raise SemiringError("ties of structured elements are not split; leave ties at 'first'")
        return functools.partial(_of_ties, semiring.program.mul, jacobian)
    if kind == "recorded":
        return functools.partial(_of_recomputed, semiring)
    return functools.partial(_of_sums if kind == "sums" else _of_selected, jacobian)


def reads_operands(adjoint: Adjoint) -> bool:
    """Return True if an adjoint reads the entries of the operands, and not only their shapes."""
    form = adjoint if isinstance(adjoint, functools.partial) else functools.partial(adjoint)
    return form.func not in (_of_selected, _of_sums) or uses_operands(form.args[0])


def pulled(jacobian: Jacobian, column: int, gradients: Tensors, left: Tensors, right: Tensors) -> Any:
    """Return the sum over the components c of a term of G_c · ∂⊗_c/∂(the component `column` of both operands)."""
    weights = [row[column] for row in jacobian]
    factors = zip(gradients, weights, on_tensors(weights, left, right), strict=True)
    terms = [g if weight is ONE else g * value for g, weight, value in factors if weight is not ZERO]
    return sum(terms[1:], terms[0]) if terms else _torch().zeros_like(gradients[0])


def _of_selected(jacobian: Jacobian, product: ForwardPass, gradients: Tensors, wanted: Wanted) -> tuple[list[Any], list[Any]]:
    """Pass the gradient of each value to the two entries that the witness names."""
    single = len(gradients) == 1 and not _torch().is_grad_enabled()
    if single and (found := selected_sums(jacobian[0], (*gradients, product.found, *product.left, *product.right), wanted)):
        return [found[0]], [found[1]]
    where, width, depth = _torch().where, len(product.left), product.left[0].shape[-1]
    won, k = product.found >= 0, product.found.clamp(min=0).long()
    left, right, gradients = product.left, product.right, [where(won, g, 0) for g in gradients]
    if uses_operands(jacobian):
        left, right = [where(won, a.gather(-1, k), 1) for a in left], [where(won, b.gather(-2, k), 1) for b in right]
    terms = [pulled(jacobian, c, gradients, left, right) if wanted[c // width] else None for c in range(2 * width)]
    sums = [None if g is None else sums_at(k, g, depth, (-1, -2)[i // width]) for i, g in enumerate(terms)]
    return sums[:width], sums[width:]


def _of_ties(
    mul: Sequence[Expr], jacobian: Jacobian, product: ForwardPass, gradients: Tensors, wanted: Wanted
) -> tuple[list[Any], list[Any]]:
    """Share the gradient of each value among all terms that equal the value."""
    torch, (a,), (b,), (g,) = _torch(), product.left, product.right, gradients
    won, k = product.found >= 0, product.found.clamp(min=0).long()
    (best,) = on_tensors(mul, [a.gather(-1, k)], [b.gather(-2, k)])
    best = best[..., :, None, :]

    def equal(a: Any, b: Any) -> Any:
        return on_tensors(mul, [a], [b])[0] == best

    parts = _blocks(a.shape[-1], g.numel())
    count: Any = sum(equal(a[..., :, part, None], b[..., None, part, :]).sum(-2) for part in parts)
    share = torch.where(won, g / count.clamp(min=1), 0)

    def terms(a: Any, b: Any, g: Any) -> tuple[Any, Any]:
        g = torch.where(equal(a, b), g, 0)
        return pulled(jacobian, 0, [g], [a], [b]), pulled(jacobian, 1, [g], [a], [b])

    return _by_terms(a, b, share, terms, wanted)


def _of_recomputed(semiring: Semiring, product: ForwardPass, gradients: Tensors, wanted: Wanted) -> tuple[list[Any], list[Any]]:
    """Compute blocks of values again with all their terms, and pull the gradients back through these."""
    torch, program, width = _torch(), semiring.program, len(product.left)
    zero = [float(z) for z in (semiring.zero if width > 1 else (semiring.zero,))]
    m, n = product.left[0].shape[-2], product.right[0].shape[-1]
    block = max(1, ENTRIES // max(1, product.left[0].numel() // m))  # values of a block
    rows, columns = max(1, block // n), min(n, block)

    def values(*operands: Any) -> tuple[Any, ...]:
        left, right = [a[..., :, :, None] for a in operands[:width]], [b[..., None, :, :] for b in operands[width:]]
        terms = on_tensors(program.mul, left, right)
        while (count := terms[0].shape[-2]) > 1:
            half = count // 2
            pairs = [[t[..., start : start + half, :] for t in terms] for start in (0, half)]
            last = [t[..., 2 * half :, :] for t in terms]
            terms = tuple(torch.cat(x, -2) for x in zip(on_tensors(program.add, *pairs), last, strict=True))
        return tuple(t.squeeze(-2) for t in terms)

    left: list[list[Any]] = []
    right: list[list[Any]] = [[0] * width for _ in range(0, n, columns)]
    for i in range(0, m, rows):
        of_rows: list[Any] = [0] * width
        for number, j in enumerate(range(0, n, columns)):
            given = *(a[..., i : i + rows, :] for a in product.left), *(b[..., j : j + columns] for b in product.right)
            found, pull = torch.func.vjp(values, *given)
            unreachable = functools.reduce(torch.logical_and, [v == z for v, z in zip(found, zero, strict=True)])
            pulled = pull(tuple([g[..., i : i + rows, j : j + columns].masked_fill(unreachable, 0) for g in gradients]))
            of_rows = [x + y for x, y in zip(of_rows, pulled[:width], strict=True)]
            right[number] = [x + y for x, y in zip(right[number], pulled[width:], strict=True)]
        left.append(of_rows)
    of_left, of_right = ([torch.cat(x, axis) for x in zip(*parts, strict=True)] for parts, axis in ((left, -2), (right, -1)))
    return of_left if wanted[0] else [None] * width, of_right if wanted[1] else [None] * width


def sums_at(index: Any, values: Any, size: int, axis: int) -> Any:
    """Return the sums of the values with the same index in each row (axis −1) or column (axis −2).

    The order is fixed: `scatter_add_` adds one after the other on a CPU, and `index_put_` sorts on a GPU.
    """
    if values.is_cuda:
        if axis == -2:
            return sums_at(index.mT, values.mT, size, -1).mT
        sums = values.new_zeros((*values.shape[:-1], size))
        starts = size * _torch().arange(sums[..., 0].numel(), device=values.device).reshape(*sums.shape[:-1], 1)
        return sums.view(-1).index_put_((starts + index,), values, accumulate=True).view(sums.shape)
    shape = list(values.shape)
    shape[axis] = size
    return values.new_zeros(shape).scatter_add_(axis, index, values)


def _of_numbers(product: ForwardPass, gradients: Tensors, wanted: Wanted) -> tuple[list[Any], list[Any]]:
    (a,), (b,), (g,) = product.left, product.right, gradients
    return [g @ b.mT if wanted[0] else None], [a.mT @ g if wanted[1] else None]


def _of_sums(jacobian: Jacobian, product: ForwardPass, gradients: Tensors, wanted: Wanted) -> tuple[list[Any], list[Any]]:
    def terms(a: Any, b: Any, g: Any) -> tuple[Any, Any]:
        return pulled(jacobian, 0, [g], [a], [b]), pulled(jacobian, 1, [g], [a], [b])

    (a,), (b,), (g,) = product.left, product.right, gradients
    return _by_terms(a, b, g, terms, wanted)


def _by_terms(a: Any, b: Any, g: Any, terms: Callable[..., tuple[Any, Any]], wanted: Wanted) -> tuple[list[Any], list[Any]]:
    """Add up all terms of both gradients, in blocks of k; `terms` computes them from a_ik, b_kj and G_ij."""
    (*batch, m, n), depth = g.shape, a.shape[-1]
    left, right = [], []
    for part in _blocks(depth, g.numel()):
        every = g[..., :, None, :].expand(*batch, m, part.stop - part.start, n)
        of_left, of_right = terms(a[..., :, part, None], b[..., None, part, :], every)
        if wanted[0]:
            left.append(of_left.sum(-1))
        if wanted[1]:
            right.append(of_right.sum(-3))
    cat = _torch().cat
    return [cat(left, -1) if wanted[0] else None], [cat(right, -2) if wanted[1] else None]


def _blocks(depth: int, values: int) -> list[slice]:
    """Return parts of k with few enough terms of so many values."""
    step = max(1, ENTRIES // values)
    return [slice(k, min(depth, k + step)) for k in range(0, depth, step)]


def of_exponentials(scale: float, product: ForwardPass, gradients: Tensors, wanted: Wanted) -> tuple[list[Any], list[Any]]:
    """Multiply e^{s(a − α)}, e^{s(b − β)} and G e^{s(α + β − c)}, with α the largest s a of a row, and β the largest s b of a column."""
    torch, (g,), left, right = _torch(), gradients, None, None
    if not torch.is_grad_enabled():
        limits = IN_SINGLE if g.dtype == torch.float32 else IN_DOUBLE, _HUGE
        if found := exponentials_on_gpu(scale, (g, product.found, *product.left, *product.right), wanted, limits):
            return [found[0]], [found[1]]
    lost = deficit(scale, product.left[0], product.right[0], product.found) if product.deficit is None else product.deficit
    wide = torch.float64 if lost > IN_SINGLE else g.dtype
    a, b, c = (_scaled(scale, x.to(wide)) for x in (*product.left, *product.right, product.found))
    unreachable = product.found == -math.copysign(math.inf, scale)  # a scaled number can overflow
    weight = g.to(wide).masked_fill(unreachable, 0)
    if lost > IN_DOUBLE:
        c = c.masked_fill(unreachable, 0)[..., :, None, :]

        def terms(a: Any, b: Any, g: Any) -> tuple[Any, Any]:
            found = g * torch.exp(a + b - c)
            return found, found

        (left,), (right,) = _by_terms(a, b, weight, terms, wanted)
    else:
        alpha, beta = _largest(a, -1), _largest(b, -2)
        down = _power_of_two(weight)
        weight = weight.div_(down) * (alpha + beta).sub_(c).masked_fill_(unreachable, 0).exp_()
        p, q = (a - alpha).exp_(), (b - beta).exp_()
        if wanted[0]:
            left = (p * (weight @ q.mT)).mul_(down)
        if wanted[1]:
            right = (q * (p.mT @ weight)).mul_(down)
    return [left if left is None else left.to(g.dtype)], [right if right is None else right.to(g.dtype)]


def _scaled(scale: float, x: Any) -> Any:
    return x if scale == 1 else scale * x


def _largest(x: Any, axis: int) -> Any:
    """Return the largest entry of each row or column, a constant for derivatives; 0 where all are −∞."""
    return x.detach().amax(axis, keepdim=True).nan_to_num(neginf=0.0)


def _power_of_two(weight: Any) -> Any:
    """Return 1, or for huge gradients the power of two that keeps their sums finite."""
    torch = _torch()
    with torch.no_grad():
        most = torch.linalg.vector_norm(weight, math.inf, (-2, -1), keepdim=True)
    return torch.exp2(torch.floor(torch.log2(most)) - 60).nan_to_num(1, 1, 1).clamp(min=1)


def deficit(scale: Fraction | float, left: Any, right: Any, values: Any) -> float:
    """Return the largest α_i + β_j − s c_ij, which decides how the sums of gradients over log Σ exp are computed."""
    if not values.numel() or not left.numel():
        return 0.0
    a, b, c = (_scaled(float(scale), x) for x in (left, right, values))
    unreachable = values == -math.copysign(math.inf, scale)
    return float((_largest(a, -1) + _largest(b, -2)).sub_(c).masked_fill_(unreachable, 0).max())


def _torch() -> Any:
    return sys.modules["torch"]
