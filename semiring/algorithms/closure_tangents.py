"""Tangents of a closure C = A* or A⁺ on arrays of JAX: Ċ from Ȧ, linear in Ȧ, so that JAX transposes it for gradients.

    ⊕ selects           ḋ_ij = ∂⊗/∂left(d_ip, a_pj) ḋ_ip + ∂⊗/∂right(d_ip, a_pj) ȧ_pj.
    ⊕ is +, ⊗ is ×      Ċ = A* Ȧ A*.
    Log Σ exp           ċ_ij = Σ_uv e^{s(A*_iu + a_uv + A*_vj − c_ij)} ȧ_uv.

In a tree of paths p is the vertex before j, so that d_ij = d_ip ⊗ a_pj. A pair (i, j) without a path has the tangent 0 exactly, and passes
exactly 0 back; over + such a pair counts. `closure_adjoints` has the same derivatives for PyTorch.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any, NamedTuple

from semiring.algebra.definition import Semiring
from semiring.algebra.derivatives import Jacobian, derivative_of_product, uses_operands
from semiring.algorithms.closure_adjoints import factors_of, times
from semiring.algorithms.tangents import TracedProduct, pushed, tangents_of

__all__ = ["TracedClosure", "tangents_of_closure"]


class TracedClosure(NamedTuple):
    """A closure of stacks of matrices, with tangents, by components. `trees` and `roots` are those of `ClosurePass`."""

    weights: Sequence[Any]
    of_weights: Sequence[Any]
    values: Sequence[Any]
    reflexive: bool
    trees: Any
    roots: Any


def tangents_of_closure(semiring: Semiring, closed: TracedClosure) -> list[Any]:
    """Return the tangents of a closure by components."""
    jax, jnp, (c, *_) = sys.modules["jax"], sys.modules["jax.numpy"], closed.values
    kind, jacobian, scale = derivative_of_product(semiring)
    if not c.size:
        return [jnp.zeros_like(v) for v in closed.values]
    if kind == "selected":
        return _along_trees(jacobian, closed)
    (a,), (of_a,), eye = closed.weights, closed.of_weights, jnp.eye(c.shape[-1], dtype=bool)
    if kind == "numbers":
        star = c if closed.reflexive else c + eye  # A* = I + A⁺
        return [jnp.matmul(jnp.matmul(star, of_a, precision="highest"), star, precision="highest")]
    star = c if closed.reflexive else jnp.where(eye, jax.nn.log_sigmoid(-scale * c) / -scale, c)
    middle = jax.lax.stop_gradient(c)  # of two products; cancels out, and keeps the exponents small
    inner = tangents_of(semiring, TracedProduct([a], [star], middle, [of_a], [None]))
    return tangents_of(semiring, TracedProduct([star], [middle], c, [None], inner))


def _along_trees(jacobian: Jacobian, closed: TracedClosure) -> list[Any]:
    """Add to each node the tangents of the edges above, over distances 1, 2, 4, … in the tree.

    Twice the distance takes the product of two factors, so a tree of n vertices needs ⌈log₂ n⌉ rounds.
    """
    jnp, trees, width = sys.modules["jax.numpy"], closed.trees, len(closed.values)
    where, reached = jnp.where, trees >= 0
    active = inner = reached & (trees != closed.roots[:, None])  # an edge from the root is a path, without a ⊗
    above = before = jnp.maximum(trees, 0)

    def at(x: Any, index: Any, axis: int = -1) -> Any:
        return jnp.take_along_axis(x, index, axis, mode="promise_in_bounds")

    edges = [None if t is None else at(t, before, -2) for t in closed.of_weights]
    left = right = [jnp.ones(trees.shape, v.dtype) for v in closed.values]
    if uses_operands(jacobian):
        left = [where(inner, at(v, before), 1) for v in closed.values]
        right = [where(inner, at(a, before, -2), 1) for a in closed.weights]
    whole = [
        where(inner, pushed(row, [*[None] * width, *edges], left, right), 0 if t is None else t)
        for row, t in zip(jacobian, edges, strict=True)
    ]
    total, factors = [where(reached, t, 0) for t in whole], factors_of(jnp, jacobian, left, right)
    for _ in range(max(0, trees.shape[-1] - 1).bit_length()):
        offers = [at(t, above) for t in total]
        if factors is not None:
            further = [[at(w, above) for w in row] for row in factors]
            offers = [sum(w * t for w, t in zip(row, offers, strict=True)) for row in factors]
            factors = [[where(active, w, 1) for w in row] for row in times(factors, further)]
        total = [t + where(active, offer, 0) for t, offer in zip(total, offers, strict=True)]
        active, above = active & at(active, above), at(above, above)
    return total
