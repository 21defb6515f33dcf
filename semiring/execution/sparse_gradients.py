"""Executor of products of a sparse matrix and PyTorch's tensors that require a gradient.

The forward pass is `multiply_sparse`. The backward pass visits all terms that the product has, one for each stored entry v_ik and each j:
X̄_kj = Σ_i G_ij ∂⊗/∂right(v_ik, x_kj), over the winners where ⊕ selects, and times e^{s(v_ik + x_kj − c_ij)} over log Σ exp. A dense matrix
on the left is the transposed product, with the operands of ⊗ in their order. Stored entries have no gradient.
"""

from __future__ import annotations

import functools
import math
import sys
from typing import Any, NamedTuple

from semiring.algebra.definition import Semiring
from semiring.algebra.derivatives import ONE, ZERO, derivative_of_product
from semiring.algebra.expression import Expr, nodes, var
from semiring.algorithms.adjoints import ENTRIES, adjoint_of, sums_at
from semiring.arrays.autograd import differentiable, gradient_required, transposed
from semiring.arrays.devices import in_stream_of, on_gpu
from semiring.arrays.exchange import holds_sparse
from semiring.common.errors import GraphError
from semiring.execution.gradients import Options, computed, tensors_of
from semiring.execution.product import with_witness
from semiring.execution.sparse_operands import sparse_operand
from semiring.execution.sparse_product import multiply_sparse
from semiring.kernels.tensors import on_tensors

__all__ = ["multiply_sparse_with_gradient"]


class _Call(NamedTuple):
    """One product: what was asked, the sparse array, and its entries as tensors: rows i, columns k and values."""

    semiring: Semiring
    options: Options
    sparse: Any
    left: bool  # the dense operand is the left one; then i and k are columns and rows
    entries: tuple[Any, Any, Any]
    weight: Expr  # the derivative of ⊗ by the dense operand

    def in_batch(self, _: int) -> _Call:
        return self

    def product(self, x: Any) -> Any:
        """Multiply a dense tensor."""
        a, b = (x, self.sparse) if self.left else (self.sparse, x)
        return multiply_sparse(a, b, self.semiring, None, None, None, False, self.options)


def multiply_sparse_with_gradient(a: Any, b: Any, semiring: Semiring, options: Options, *, alone: bool) -> Any:
    """Multiply a sparse matrix and a tensor so that PyTorch can differentiate the product; arguments are those of `multiply_sparse`."""
    with gradient_required():
        adjoint_of(semiring)
    kind, jacobian, _ = derivative_of_product(semiring)
    if not alone or semiring.components > 1 or kind == "recorded":
        raise GraphError(
            "a tensor requires a gradient, which products with a sparse array propagate over ⊕ that selects numbers, adds, or is "
            "log Σ exp, and without c, out and mask; pass .detach()"
        )
    torch: Any = sys.modules["torch"]
    left = holds_sparse(b)
    sparse, dense, name = (b, a, "b") if left else (a, b, "a")
    (x,) = tensors_of(dense, semiring, "a" if left else "b", dense.device)
    operand = sparse_operand(sparse, semiring, name)
    rows = operand.rows.in_order()
    stored = [torch.from_dlpack(v) if on_gpu(v) else torch.as_tensor(v) for v in (rows.row_numbers(), rows.columns, *rows.values)]
    i, k, values = (v.to(x.device) for v in stored)
    if kind == "selected" and bool(((i[1:] == i[:-1]) & (k[1:] == k[:-1])).any()):
        raise GraphError(f"{name} stores an entry more than once, and a gradient needs one winner; merge the entries first")
    if operand.by_columns != left:
        i, k = k, i
    common = computed(x.dtype, values.dtype)
    entries = i.long(), k.to(torch.int64, copy=True), values.to(common, copy=True)  # the caller may change the array later
    weight = ONE if kind == "exponentials" else jacobian[0][0 if left else 1]
    call = _Call(semiring, (options[0] or kind == "selected", *options[1:]), sparse, left, entries, weight)
    vector = x.ndim == 1
    x = x.to(common)
    product, witness = _product().apply(call, x if not vector else x[None, :] if left else x[:, None])
    found = [v if v is None or not vector else v.squeeze(-2 if left else -1) for v in (product, witness)]
    return with_witness((found[0],), found[1] if options[0] else None)


def _forward(call: _Call, x: Any) -> tuple[Any, Any]:
    with in_stream_of([x]):
        found = call.product(x.detach())
    return (found.values, found.witness) if call.options[0] else (found, None)


def _keep(ctx: Any, inputs: tuple[Any, ...], output: tuple[Any, ...]) -> None:
    """Keep for the backward pass the operand if the adjoint reads it, and the values over log Σ exp or the witness."""
    ctx.call, x = inputs
    product, witness = output
    exponential, own = ctx.call.semiring.program.exponential is not None, var(0 if ctx.call.left else 1)
    kept = x if exponential or own in nodes(ctx.call.weight) else None, product if exponential else witness
    ctx.save_for_backward(*kept)
    ctx.save_for_forward(*kept)
    ctx.shapes = x.shape, product.shape
    if witness is not None:
        ctx.mark_non_differentiable(witness)


def _backward(ctx: Any, gradient: Any, *_: Any) -> tuple[Any, ...]:
    return None, _adjoint(ctx, gradient)


def _derivative(ctx: Any, _: None, tangent: Any) -> tuple[Any, ...]:
    return *transposed(lambda g: [_adjoint(ctx, g)], [tangent.new_zeros(ctx.shapes[1])], [tangent]), None


def _adjoint(ctx: Any, gradient: Any) -> Any:
    """Return the gradient of the dense operand."""
    torch, call, (x, found), (i, k, values) = sys.modules["torch"], ctx.call, ctx.saved_tensors, ctx.call.entries
    x = gradient.new_zeros(()).expand(ctx.shapes[0]) if x is None else x
    found = gradient if found is None else found  # any numbers, which sums do not read
    if call.left:
        x, found, gradient = x.mT, found.mT, gradient.mT
    kind, _, scale = derivative_of_product(call.semiring)
    total = torch.zeros_like(x)
    step = max(1, ENTRIES // max(1, total.numel() // max(1, x.shape[-2])))
    for first in range(0, len(i), step):
        part = slice(first, first + step)
        v, to = values[part, None], k[part, None].expand(*x.shape[:-2], -1, x.shape[-1])
        of_x, g, c = x.index_select(-2, k[part]), gradient.index_select(-2, i[part]), found.index_select(-2, i[part])
        if kind == "selected":
            won = c == k[part, None]
            g, of_x = torch.where(won, g, 0), torch.where(won, of_x, 1)
        elif kind == "exponentials":
            reached = c != -math.copysign(math.inf, scale)
            g = torch.where(reached, g, 0) * torch.exp(scale * (v + of_x - torch.where(reached, c, math.copysign(math.inf, scale))))
        if call.weight is ZERO:
            continue
        if call.weight is not ONE:
            (weight,) = on_tensors([call.weight], *(([of_x], [v]) if call.left else ([v], [of_x])))
            g = g * weight
        total = total + sums_at(to, g.expand(to.shape), x.shape[-2], -2)
    return total.mT if call.left else total


_product = functools.partial(differentiable, "SparseProduct", _forward, _keep, _backward, _derivative)
