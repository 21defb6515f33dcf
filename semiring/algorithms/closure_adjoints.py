"""Adjoints of a closure C = A* or A⁺ on tensors of PyTorch: the gradient Ā of A from the gradient G of C.

    ⊕ selects           Ḡ_ip += Ḡ_ij ∂⊗/∂left(d_ip, a_pj), from the leaves to the root of the tree of paths from i.
                        Then Ā_pj += Ḡ_ij ∂⊗/∂right(d_ip, a_pj).
    ⊕ is +, ⊗ is ×      Ā = (A*)ᵀ G (A*)ᵀ in ordinary arithmetic.
    ⊕ is log Σ exp      Ā_uv = Σ_ij G_ij e^{s(A*_iu + a_uv + A*_vj − c_ij)}, by the adjoints of two products.

In a tree p is the vertex before j, so that d_ij = d_ip ⊗ a_pj. The diagonal of A⁺ has cycles: the leaf (i, i) hangs on the last vertex of
the best cycle. Functions consist of PyTorch's differentiable operations on stacks of matrices, and add in a fixed order.

A pair (i, j) without a path passes exactly 0, also if G is ∞ or NaN there. Over + such a pair counts: an edge of 0 can open a path.
"""

from __future__ import annotations

import functools
import operator
import sys
from collections.abc import Callable
from fractions import Fraction
from typing import Any, NamedTuple

from semiring.algebra.definition import Semiring
from semiring.algebra.derivatives import ONE, ZERO, derivatives, uses_operands
from semiring.algebra.expression import is_operation, var
from semiring.algebra.laws import is_selective
from semiring.algorithms.adjoints import (
    ForwardPass,
    Jacobian,
    Tensors,
    adjoint_of,
    deficit,
    of_exponentials,
    pulled,
    sums_at,
)
from semiring.common.errors import SemiringError
from semiring.kernels.tensors import on_tensors

__all__ = ["ClosureAdjoint", "ClosurePass", "closure_adjoint_of", "deficits", "factors_of", "times"]

_NODES = 1 << 22
"""The most nodes of trees in memory at once."""

Factors = list[list[Any]]
"""A matrix for each node, by components; entries of the same place form a tensor."""


class ClosurePass(NamedTuple):
    """A closure of stacks of matrices, by components: A, and what the forward pass found.

    `trees` has the vertex before j on the path from root i to j, negative without one. `roots` are the vertices of its rows.
    """

    weights: Tensors
    values: Tensors
    reflexive: bool
    trees: Any = None
    roots: Any = None
    deficits: tuple[float | None, float | None] = (None, None)
    batched: bool = False  # the trees may be those of a batch of `torch.func.vmap`, whose numbers nobody can read


class ClosureAdjoint(NamedTuple):
    """The function that returns the gradient of A by components, from that of C; and what the function reads of the forward pass."""

    pull: Callable[[ClosurePass, Tensors], list[Any]]
    weights: bool = True
    values: bool = True
    trees: bool = False


@functools.lru_cache(maxsize=256)
def closure_adjoint_of(semiring: Semiring) -> ClosureAdjoint:
    """Return the adjoint of closures over a semiring, or raise `SemiringError` for other ⊕ than those of this module."""
    adjoint_of(semiring)  # raises the reason against a gradient
    program, width = semiring.program, semiring.components
    if program.exponential is not None:
        return ClosureAdjoint(functools.partial(_of_exponentials, float(program.exponential)))
    if width == 1 and is_operation(program.add[0], ("add",)):
        if not is_operation(program.mul[0], ("mul",)):
            raise SemiringError("no gradient passes through closures over + with another ⊗ than a product")
        return ClosureAdjoint(_of_inverse, weights=False)
    if not is_selective(semiring):
        raise SemiringError("no gradient passes through closures over this ⊕; it has to select, as min and max do, or to be log Σ exp or +")
    jacobian = derivatives(program.mul, [var(side, c) for side in (0, 1) for c in range(width)])
    reads = uses_operands(jacobian)
    return ClosureAdjoint(functools.partial(_of_trees, jacobian), reads, reads, trees=True)


def _of_inverse(closed: ClosurePass, gradients: Tensors) -> list[Any]:
    (c,), (g,) = closed.values, gradients
    if not closed.reflexive:
        c = c + _torch().eye(c.shape[-1], dtype=c.dtype, device=c.device)  # A* = I + A⁺
    return [c.mT @ g @ c.mT]


def _of_exponentials(scale: float, closed: ClosurePass, gradients: Tensors) -> list[Any]:
    """Pull G back through A* ⊗ C, then through A ⊗ A*; the middle C cancels out, and keeps the exponents small."""
    (a,), (c,) = closed.weights, closed.values
    star, middle = _star(scale, c, reflexive=closed.reflexive), c.detach()
    first, second = closed.deficits
    _, inner = of_exponentials(scale, ForwardPass([star], [middle], c, first), gradients, (False, True))
    found, _ = of_exponentials(scale, ForwardPass([a], [star], middle, second), inner, (True, False))
    return found


def _star(scale: float, c: Any, *, reflexive: bool) -> Any:
    """Return A* of A* or A⁺; the diagonal of A⁺ gains the empty path."""
    if reflexive:
        return c
    torch = _torch()
    diagonal = scale * c.diagonal(dim1=-2, dim2=-1)
    # logsigmoid has finite derivatives of all orders at −∞, where no cycle is.
    return torch.diagonal_scatter(c, torch.nn.functional.logsigmoid(-diagonal) / -scale, 0, -2, -1)


def deficits(scale: Fraction, a: Any, c: Any, *, reflexive: bool) -> tuple[float, float]:
    """Return the `deficit` of both products through which a gradient over log Σ exp is pulled back."""
    star = _star(float(scale), c, reflexive=reflexive)
    return deficit(scale, star, c, c), deficit(scale, a, star, c)


def _of_trees(jacobian: Jacobian, closed: ClosurePass, gradients: Tensors) -> list[Any]:
    """Pull back along some trees at a time, which bounds the memory."""
    trees, found = closed.trees, list[Any]()
    step = max(1, _NODES // max(1, trees[..., :1, :].numel()))
    for first in range(0, trees.shape[-2], step):
        some = slice(first, first + step)
        values = [None if v is None else v[..., some, :] for v in closed.values]
        part = closed._replace(values=values, trees=trees[..., some, :], roots=closed.roots[some])
        sums = _along(jacobian, part, [g[..., some, :] for g in gradients])
        found = [x + y for x, y in zip(found, sums, strict=True)] if found else sums
    return found


def _along(jacobian: Jacobian, closed: ClosurePass, gradients: Tensors) -> list[Any]:
    """Add to each node the gradients of all nodes below, over distances 1, 2, 4, … in the tree; then go from the nodes to their edges.

    Twice the distance takes the product of two factors, so a tree of h generations needs log₂ h rounds.
    """
    torch, trees, width, n = _torch(), closed.trees, len(gradients), closed.trees.shape[-1]
    where, reached = torch.where, trees >= 0
    inner = reached & (trees != closed.roots[:, None])  # an edge from the root is a path, without a ⊗
    before = trees.clamp(min=0).long()
    total = [where(reached, g, 0) for g in gradients]
    left, right = total, total
    if uses_operands(jacobian):
        left = [where(inner, d.gather(-1, before), 1) for d in closed.values]
        right = [where(inner, a.gather(-2, before), 1) for a in closed.weights]
    factors = factors_of(torch, jacobian, left, right)
    above, active = before, inner
    for _ in range(n.bit_length()):
        if not closed.batched and not active.any():
            break
        offers = total if factors is None else times([total], factors)[0]
        total = [g + sums_at(above, where(active, offer, 0), n, -1) for g, offer in zip(total, offers, strict=True)]
        active = active & active.gather(-1, above)
        if factors is not None:
            further = [[w.gather(-1, above) for w in row] for row in factors]
            factors = [[where(active, w, 1) for w in row] for row in times(factors, further)]
        above = above.gather(-1, above)
    edges = [where(inner, pulled(jacobian, width + c, total, left, right), total[c]) for c in range(width)]
    return [sums_at(before, g, n, -2) for g in edges]


def factors_of(xp: Any, jacobian: Jacobian, left: Tensors, right: Tensors) -> Factors | None:
    """Return ∂⊗_c/∂left_d of each node in row c and column d, in a library; None for the identity, as of sums."""
    width = len(jacobian)
    if all(row[d] is (ONE if c == d else ZERO) for c, row in enumerate(jacobian) for d in range(width)):
        return None
    return [[xp.broadcast_to(w, left[0].shape) for w in on_tensors(row[:width], left, right)] for row in jacobian]


def times(first: Factors, second: Factors) -> Factors:
    """Multiply two matrices of tensors."""
    return [[sum(map(operator.mul, row, column)) for column in zip(*second, strict=True)] for row in first]


def _torch() -> Any:
    return sys.modules["torch"]
