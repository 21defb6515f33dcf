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
from semiring.arrays.autograd import differentiable, gradient_required, transposed
from semiring.arrays.devices import torch_dtypes
from semiring.common.errors import DTypeError, GraphError
from semiring.graphs.dense import DTypes
from semiring.graphs.reweighing import as_columns, as_elements

__all__ = ["solve_with_gradient"]


class _Solver(NamedTuple):
    """Solutions by a factor, whose weights were `edges`; solutions for gradients need no check."""

    matrix: Factorization
    edges: CSR
    transposed: bool = False
    check: bool = False

    @property
    def form(self) -> ProductDerivative:
        return derivative_of_product(self.matrix.semiring)

    def in_batch(self, _: int) -> _Solver:
        return self

    def flipped(self) -> _Solver:
        return _Solver(self.matrix, self.edges, not self.transposed)

    def solve(self, tensors: Sequence[Any], *, origins: bool = False) -> list[Any]:
        """Return the solutions for tensors of shape (…, n, k); with `origins` also the vertices j, and A*_ij."""
        matrix, like = self.matrix, tensors[0].movedim(-2, 0)
        if matrix.edges is not self.edges:
            raise GraphError("the factor was updated after the solution; take the gradient before f.update, or make another factor")
        shape = len(like), math.prod(like.shape[1:])
        given = tuple(np.ascontiguousarray(x.detach().movedim(-2, 0).reshape(shape).cpu().numpy()) for x in tensors)
        if self.check:
            first, *others = given
            as_elements(given if others else first, matrix.semiring, matrix.edges.dtypes, "b")
        found = matrix.solve(given) if self.check else matrix.solved(given, transposed=self.transposed)
        if origins:
            ends, weights = matrix.origins(given, found)
            found = *found, ends, *weights
        torch: Any = sys.modules["torch"]
        x = [torch.from_numpy(v).to(like.device).reshape(like.shape).movedim(0, -2) for v in found]
        return [v.clone(memory_format=torch.contiguous_format) for v in x]  # vmap of forward mode refuses views


def solve_with_gradient(matrix: Factorization, b: Any) -> Any:
    """Solve x = A ⊗ x ⊕ b for a tensor, or a tuple of tensors."""
    given = _tensors_of(b, matrix.semiring, matrix.edges.dtypes)
    found = _solution().apply(_Solver(matrix, matrix.edges, check=True), *as_columns(given, matrix.edges.n))
    x = [v.reshape(given[0].shape) for v in found[: len(given)]]
    return x[0] if len(x) == 1 else tuple(x)


def _tensors_of(b: Any, semiring: Semiring, dtypes: DTypes) -> list[Any]:
    """Return the components of b as tensors of the dtypes of the factor, or refuse a semiring without a gradient."""
    with gradient_required():
        closure_adjoint_of(semiring)
    torch: Any = sys.modules["torch"]
    parts = b if isinstance(b, tuple) else (b,)
    if len(parts) != len(dtypes) or not any(isinstance(x, torch.Tensor) for x in parts):
        form = "a tensor" if len(dtypes) == 1 else f"a tuple of {len(dtypes)} tensors"
        raise GraphError(f"b requires a gradient, and has to be {form} over {semiring.name}")
    device = next(x.device for x in parts if isinstance(x, torch.Tensor))
    tensors = [torch.as_tensor(x).to(device) for x in parts]
    if not all(d.kind == "f" for d in dtypes) or not all(x.is_floating_point() for x in tensors):
        kinds = ", ".join(str(x.dtype) for x in tensors)
        raise DTypeError(f"b requires a gradient, with {kinds} for a factor of {', '.join(map(str, dtypes))}; both have to be floats")
    return [x.to(torch_dtypes()[d]) for x, d in zip(tensors, dtypes, strict=True)]


def _solve(solver: _Solver, *b: Any) -> tuple[Any, ...]:
    return tuple(solver.solve(b, origins=solver.form.kind == "selected"))


def _keep(ctx: Any, inputs: tuple[Any, ...], output: tuple[Any, ...]) -> None:
    ctx.solver, *b = inputs
    kept = *b, *(output[len(b) :] or output)
    ctx.save_for_backward(*kept)
    ctx.save_for_forward(*kept)
    ctx.mark_non_differentiable(*output[len(b) :])


def _adjoint(solver: _Solver, kept: Sequence[Any], gradients: Sequence[Any]) -> list[Any]:
    """Return the gradients of b; `kept` are the components of b, and those of x, or if ⊕ selects the vertices j and A*_ij."""
    kind, jacobian, scale = solver.form
    if kind == "numbers":
        return list(_solution().apply(solver.flipped(), *gradients))
    width, where = len(gradients), sys.modules["torch"].where
    b, found = kept[:width], kept[width:]
    if kind == "exponentials":
        (g,), (x,) = gradients, found
        return list(_sums().apply(solver.flipped(), where(x == -math.copysign(math.inf, scale), 0, g), -x, *b))
    ends, *left = found
    reached, ends = ends >= 0, ends.clamp(min=0).long()
    gradients = right = [where(reached, g, 0) for g in gradients]
    if uses_operands(jacobian):
        right = [where(reached, x.gather(-2, ends), 1) for x in b]
    return [sums_at(ends, pulled(jacobian, width + c, gradients, left, right), b[0].shape[-2], -2) for c in range(width)]


def _backward(ctx: Any, *gradients: Any) -> tuple[Any, ...]:
    width = len(ctx.needs_input_grad) - 1
    return None, *_adjoint(ctx.solver, ctx.saved_tensors, gradients[:width])


def _derivative(ctx: Any, _: None, *tangents: Any) -> tuple[Any, ...]:
    kept, width = ctx.saved_tensors, len(tangents)
    zeros = [x.new_zeros(x.shape) for x in kept[:width]]
    others = 1 + width if ctx.solver.form.kind == "selected" else 0
    return *transposed(lambda *g: _adjoint(ctx.solver, kept, g), zeros, tangents), *(None,) * others


def _sum(solver: _Solver, g: Any, u: Any, v: Any) -> tuple[Any]:
    """Return Σ_i g_i e^{s(A*_ij + u_i + v_j)}, or if not transposed with A*_ji; an infinite weight is of an unreachable vertex."""
    torch: Any = sys.modules["torch"]
    s = solver.form.scale
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
