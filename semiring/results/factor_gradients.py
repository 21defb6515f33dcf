"""Solutions x = A* ⊗ b of a factor, for PyTorch's tensors b that require a gradient.

    ⊕ is +, ⊗ is ×      b̄ = (A*)ᵀ x̄ solves the transposed equation.
    ⊕ is log Σ exp      b̄_j = Σ_i x̄_i e^{s(A*_ij + b_j − x_i)}.
    ⊕ selects           b̄_j = Σ_i x̄_i ∂⊗/∂right(A*_ij, b_j), for each i whose best path ends at j.

Transposed solutions are the logarithms of the second sum, one for each sign of x̄. Derivatives of these sums are such sums again.

An unreachable x_i passes exactly 0, also if x̄_i is ∞ or NaN. Over + such an x_i counts.
"""

from __future__ import annotations

import functools
import math
import sys
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from semiring.algebra.definition import Semiring
from semiring.algebra.derivatives import ProductDerivative, derivative_of_product, uses_operands
from semiring.algorithms.adjoints import pulled, sums_at
from semiring.algorithms.closure_adjoints import closure_adjoint_of
from semiring.algorithms.csr import CSR
from semiring.algorithms.factorization import Factorization
from semiring.arrays.autograd import adjoint_if_needed, differentiable, gradient_required, transposed
from semiring.arrays.devices import torch_dtypes
from semiring.arrays.followed import is_recorded, requires_gradient
from semiring.common.errors import DTypeError, GraphError, ShapeError
from semiring.graphs.dense import DTypes
from semiring.graphs.reweighing import as_columns, as_elements

__all__ = ["solve_with_gradient"]


class _Solver(NamedTuple):
    """Solutions by a factor, whose weights were `edges`; solutions for gradients need no check. Without a form, no gradient is wanted."""

    matrix: Factorization
    edges: CSR
    form: ProductDerivative | None
    transposed: bool = False
    check: bool = False

    def in_batch(self, _: int) -> _Solver:
        return self

    def flipped(self) -> _Solver:
        return self._replace(transposed=not self.transposed, check=False)

    def solve(self, tensors: Sequence[Any], *, origins: bool = False) -> list[Any]:
        """Return the solutions for tensors of shape (…, n, k); with `origins` also the vertices j, and A*_ij."""
        matrix, like = self.matrix, tensors[0].movedim(-2, 0)
        if matrix.edges is not self.edges:
            raise GraphError("the factor was updated after the solution; take the gradient before f.update, or make another factor")
        shape = len(like), math.prod(like.shape[1:])
        parts = [x.detach().movedim(-2, 0).reshape(shape) for x in tensors]
        if self.check:
            given = as_elements(tuple(parts) if len(parts) > 1 else parts[0], matrix.semiring, matrix.edges.dtypes, "b")
        else:
            given = tuple(np.ascontiguousarray(x.cpu().numpy()) for x in parts)
        found = matrix.solve(given) if self.check else matrix.solved(given, transposed=self.transposed)
        if origins:
            ends, weights = matrix.origins(given, found)
            found = *found, ends, *weights
        torch: Any = sys.modules["torch"]
        x = [torch.from_numpy(v).to(like.device).reshape(like.shape).movedim(0, -2) for v in found]
        return [v.clone(memory_format=torch.contiguous_format) for v in x]  # vmap of forward mode refuses views


def solve_with_gradient(matrix: Factorization, b: Any) -> Any:
    """Solve x = A ⊗ x ⊕ b for a tensor, or a tuple of tensors."""
    given, form = _tensors_of(b, matrix.semiring, matrix.edges.dtypes)
    found = _solution().apply(_Solver(matrix, matrix.edges, form, check=True), *as_columns(given, matrix.edges.n))
    x = [v.reshape(given[0].shape) for v in found[: len(given)]]
    return x[0] if len(x) == 1 else tuple(x)


def _tensors_of(b: Any, semiring: Semiring, dtypes: DTypes) -> tuple[list[Any], ProductDerivative | None]:
    """Return the components of b as tensors, for a gradient of the dtypes of the factor; and the form of the gradient, if any is wanted."""
    torch, parts = sys.modules["torch"], b if isinstance(b, tuple | list) else (b,)
    device = next(x.device for x in parts if is_recorded(x))
    tensors = [(x if isinstance(x, torch.Tensor) else torch.as_tensor(np.asarray(x))).to(device) for x in parts]
    if len(dtypes) == 1 and parts is b:  # rows
        if len({x.shape for x in tensors}) > 1:
            raise ShapeError(f"the rows of b have shapes {', '.join(str(tuple(x.shape)) for x in tensors)}; pass rows of one shape")
        tensors = [torch.stack(tensors)]
    elif len(tensors) != len(dtypes) or isinstance(b, list):
        raise GraphError(f"b over {semiring.name} are a tuple of {len(dtypes)} arrays")
    if all(d.kind == "f" for d in dtypes) and all(x.is_floating_point() for x in tensors):
        kinds = [torch_dtypes()[d] for d in dtypes]
        return [x.to(kind) for x, kind in zip(tensors, kinds, strict=True)], adjoint_if_needed(functools.partial(_form_of, semiring), (b,))
    if requires_gradient(b) or torch.autograd.forward_ad._current_level >= 0:
        found, own = (", ".join(map(str, each)) for each in ([x.dtype for x in tensors], dtypes))
        raise DTypeError(f"b requires a gradient, with {found} for a factor of {own}; both have to be floats")
    return tensors, None


def _form_of(semiring: Semiring) -> ProductDerivative:
    """Return the form of the gradient over a semiring, or raise `SemiringError`."""
    closure_adjoint_of(semiring)
    return derivative_of_product(semiring)


def _solve(solver: _Solver, *b: Any) -> tuple[Any, ...]:
    return tuple(solver.solve(b, origins=solver.form is not None and solver.form.kind == "selected"))


def _keep(ctx: Any, inputs: tuple[Any, ...], output: tuple[Any, ...]) -> None:
    """Keep for the backward pass what the adjoint reads: b and x over log Σ exp; or j, and for some ⊗ also b and A*_ij."""
    ctx.solver, *b = inputs
    kept, others, form = output[len(b) : len(b) + 1], output[len(b) + 1 :], ctx.solver.form
    if form is not None and (form.kind == "exponentials" or (kept and uses_operands(form.jacobian))):
        kept = *kept, *b, *(others or output)
    ctx.save_for_backward(*kept)
    ctx.save_for_forward(*kept)
    ctx.mark_non_differentiable(*output[len(b) :])
    ctx.count = len(output)


def _adjoint(solver: _Solver, kept: Sequence[Any], gradients: Sequence[Any]) -> list[Any]:
    """Return the gradients of b; `kept` is what `_keep` keeps."""
    with gradient_required():
        kind, jacobian, scale = solver.form or _form_of(solver.matrix.semiring)
    if kind == "numbers":
        return list(_solution().apply(solver.flipped(), *gradients))
    width, where = len(gradients), sys.modules["torch"].where
    if kind == "exponentials":
        (g,), (b, x) = gradients, kept
        return list(_sums().apply(solver.flipped(), where(x == -math.copysign(math.inf, scale), 0, g), -x, b))
    ends, *others = kept
    reached, ends = ends >= 0, ends.clamp(min=0).long()
    gradients = left = right = [where(reached, g, 0) for g in gradients]
    if others:
        left, right = others[width:], [where(reached, x.gather(-2, ends), 1) for x in others[:width]]
    return [sums_at(ends, pulled(jacobian, width + c, gradients, left, right), ends.shape[-2], -2) for c in range(width)]


def _backward(ctx: Any, *gradients: Any) -> tuple[Any, ...]:
    width = len(ctx.needs_input_grad) - 1
    return None, *_adjoint(ctx.solver, ctx.saved_tensors, gradients[:width])


def _derivative(ctx: Any, _: None, *tangents: Any) -> tuple[Any, ...]:
    like = next(t for t in tangents if t is not None)
    zeros = [like.new_zeros(like.shape, dtype=torch_dtypes()[d]) for d in ctx.solver.edges.dtypes]
    found = transposed(lambda *g: _adjoint(ctx.solver, ctx.saved_tensors, g), zeros, tangents)
    return *found, *(None,) * (ctx.count - len(found))


def _sum(solver: _Solver, g: Any, u: Any, v: Any) -> tuple[Any]:
    """Return Σ_i g_i e^{s(A*_ij + u_i + v_j)}, or if not transposed with A*_ji; an infinite weight is of an unreachable vertex."""
    torch: Any = sys.modules["torch"]
    s = derivative_of_product(solver.matrix.semiring).scale
    infinity = math.copysign(math.inf, s)
    finite = g.isfinite()
    parts = [torch.where(finite, g, 0), torch.where(finite, -g, 0), *([] if finite.all() else [(~finite).to(g.dtype)])]
    logarithms = torch.stack(parts).clamp(min=0).log() / s + u
    (found,) = solver.solve([torch.where(u == infinity, -infinity, logarithms)])
    positive, negative = torch.where(v == infinity, 0, torch.exp(s * (found[:2] + v)))
    return (torch.where((found[2:] == -infinity).all(0), positive - negative, math.nan),)


def _keep_sum(ctx: Any, inputs: tuple[Any, ...], output: tuple[Any, ...]) -> None:
    ctx.solver, *operands = inputs
    ctx.save_for_backward(*operands, *output)
    ctx.save_for_forward(*operands, *output)


def _backward_of_sum(ctx: Any, h: Any) -> tuple[Any, ...]:
    g, u, v, found = ctx.saved_tensors
    (of_g,) = _sums().apply(ctx.solver.flipped(), h, v, u)
    s = ctx.solver.form.scale
    return None, of_g, s * g * of_g, s * h * found


def _derivative_of_sum(ctx: Any, _: None, *tangents: Any) -> tuple[Any]:
    g, u, v, found = ctx.saved_tensors
    of_g, of_u, of_v = (0 if t is None else t for t in tangents)
    s = ctx.solver.form.scale
    return (_sums().apply(ctx.solver, of_g + s * g * of_u, u, v)[0] + s * of_v * found,)


_solution = functools.partial(differentiable, "SemiringSolution", _solve, _keep, _backward, _derivative)
_sums = functools.partial(differentiable, "SemiringWeightedSum", _sum, _keep_sum, _backward_of_sum, _derivative_of_sum)
