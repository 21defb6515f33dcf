"""Tangents of a product C = A ⊗ B on arrays of JAX: Ċ from Ȧ and Ḃ, linear in both, so that JAX transposes it for gradients.

    ⊕ selects           ċ_ij = ∂⊗/∂left ȧ_ik + ∂⊗/∂right ḃ_kj at the k of the witness.
    ⊕ is +              ċ_ij = Σ_k ∂⊗/∂left ȧ_ik + ∂⊗/∂right ḃ_kj. For numbers Ċ = Ȧ B + A Ḃ.
    ⊕ is log Σ exp      ċ_ij = Σ_k e^{s(a_ik + b_kj − c_ij)} (ȧ_ik + ḃ_kj), by two products of exponentials.
    Any other ⊕         Terms are computed again, row by row, and JAX differentiates their sums.

A pair (i, j) is unreachable if no term beats the semiring's zero. Such a pair has the tangent 0 exactly, and passes exactly 0 back.
`adjoints` has the same derivatives for PyTorch.
"""

from __future__ import annotations

import functools
import math
import operator
import sys
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from semiring.algebra.definition import Semiring
from semiring.algebra.derivatives import ONE, ZERO, Jacobian, derivative_of_product, uses_operands
from semiring.algebra.expression import Expr
from semiring.algorithms.adjoints import ENTRIES, IN_DOUBLE, IN_SINGLE
from semiring.common.errors import SemiringError
from semiring.kernels.tensors import on_tensors

__all__ = ["TracedProduct", "pushed", "tangents_of"]

Parts = Sequence[Any]

_FEW = 1 << 12
"""The most terms over log Σ exp to add one by one in every range: XLA then compiles a single way."""


class TracedProduct(NamedTuple):
    """A product of stacks of matrices, with tangents: both operands by components, in the dtype of the product.

    `found` is the witness if ⊕ selects, and else C. An operand without a tangent has None.
    """

    left: Parts
    right: Parts
    found: Any
    of_left: Parts
    of_right: Parts

    @property
    def batch(self) -> tuple[int, ...]:
        """The leading axes of the product."""
        shape: tuple[int, ...] = self.found.shape
        return shape[:-2]


def tangents_of(semiring: Semiring, product: TracedProduct, *, split: bool = False) -> list[Any]:
    """Return the tangents of a product by components; with `split`, equal terms share that of a selected value."""
    kind, jacobian, scale = derivative_of_product(semiring)
    if not product.found.size or not product.left[0].shape[-1]:
        return [_numpy().zeros(product.found.shape, x.dtype) for x in product.left]
    if kind == "selected" and split:
        if semiring.components > 1:
            raise SemiringError("ties of structured elements are not split; leave ties at 'first'")
        return _of_ties(semiring.program.mul, jacobian, product)
    if kind == "selected":
        return _of_selected(jacobian, product)
    if kind == "exponentials":
        return [_of_exponentials(scale, product)]
    if kind == "recorded":
        return _of_recomputed(semiring, product)
    return [_of_numbers(product) if kind == "numbers" else _of_sums(jacobian, product)]


def pushed(weights: Sequence[Expr], tangents: Parts, left: Parts, right: Parts) -> Any:
    """Return the sum of the tangents of both operands' components, times the derivatives `weights` by these."""
    factors = zip(tangents, weights, on_tensors(weights, left, right), strict=True)
    terms = [t if weight is ONE else t * value for t, weight, value in factors if t is not None and weight is not ZERO]
    return sum(terms[1:], terms[0]) if terms else _numpy().zeros((), left[0].dtype)


def _of_selected(jacobian: Jacobian, product: TracedProduct) -> list[Any]:
    """Take the tangents of the two entries that the witness names."""
    jnp = _numpy()
    won, k = product.found >= 0, jnp.maximum(product.found, 0)

    def at(x: Any, axis: int) -> Any:
        whole = jnp.broadcast_to(x, (*product.batch, *x.shape[-2:]))
        return jnp.take_along_axis(whole, k, axis, mode="promise_in_bounds")

    left, right = product.left, product.right
    if uses_operands(jacobian):
        left, right = [jnp.where(won, at(a, -1), 1) for a in left], [jnp.where(won, at(b, -2), 1) for b in right]
    given = [(t, -1) for t in product.of_left] + [(t, -2) for t in product.of_right]
    used = [any(row[column] is not ZERO for row in jacobian) for column in range(len(given))]
    tangents = [at(t, axis) if needed and t is not None else None for (t, axis), needed in zip(given, used, strict=True)]
    return [jnp.where(won, pushed(row, tangents, left, right), 0) for row in jacobian]


def _of_numbers(product: TracedProduct) -> Any:
    (a,), (b,), _, (of_a,), (of_b,) = product
    return _products((of_a, b), (a, of_b))


def _products(*pairs: tuple[Any, Any]) -> Any:
    """Add up the matrix products of pairs without a None."""
    found = [_numpy().matmul(x, y, precision="highest") for x, y in pairs if x is not None and y is not None]
    return sum(found[1:], found[0])


def _of_sums(jacobian: Jacobian, product: TracedProduct) -> Any:
    def terms(a: Any, b: Any, _: Any, of_a: Any, of_b: Any) -> Any:
        return pushed(jacobian[0], [of_a, of_b], [a], [b])

    return _by_terms(terms, product)


def _of_ties(mul: Sequence[Expr], jacobian: Jacobian, product: TracedProduct) -> list[Any]:
    """Take the mean of the tangents of all terms that equal the value."""
    jnp, shape = _numpy(), (*product.batch, *product.right[0].shape[-2:])

    def terms(a: Any, b: Any, k: Any, of_a: Any, of_b: Any) -> Any:
        values = jnp.broadcast_to(on_tensors(mul, [a], [b])[0], shape)
        equal = (k >= 0) & (values == jnp.take_along_axis(values, jnp.maximum(k, 0), -2))
        return jnp.where(equal, pushed(jacobian[0], [of_a, of_b], [a], [b]), 0) / jnp.maximum(equal.sum(-2, keepdims=True), 1)

    return [_by_terms(terms, product)]


def _by_terms(terms: Callable[..., Any], product: TracedProduct) -> Any:
    """Add up all terms of a tangent; the function `terms` computes terms from a_ik, b_kj, c_ij, ȧ_ik and ḃ_kj."""
    (a,), (b,), c, (of_a,), (of_b,) = product
    shape = (*product.batch, *b.shape[-2:])

    def row(operands: Any) -> Any:
        a, c, of_a = operands
        of_a = None if of_a is None else of_a[..., :, None]
        return _numpy().broadcast_to(terms(a[..., :, None], b, c[..., None, :], of_a, of_b), shape).sum(-2)

    return _by_rows(row, (a, c, of_a), math.prod(shape))


def _by_rows(row: Callable[[Any], Any], operands: Any, terms: int) -> Any:
    """Compute a tangent from all rows of operands, a few at a time; gradients compute the terms of a row again instead of keeping them."""
    jax, jnp = sys.modules["jax"], _numpy()
    rows = jax.tree.map(lambda x: jnp.moveaxis(x, -2, 0), operands)
    step = max(1, ENTRIES // terms)
    few = step >= jax.tree.leaves(rows)[0].shape[0]
    found = jax.vmap(row)(rows) if few else jax.lax.map(jax.checkpoint(row), rows, batch_size=step)
    return jax.tree.map(lambda x: jnp.moveaxis(x, 0, -2), found)


def _of_recomputed(semiring: Semiring, product: TracedProduct) -> list[Any]:
    """Compute rows of values again with all their terms, and push the tangents through these."""
    jax, jnp, program, width = sys.modules["jax"], _numpy(), semiring.program, semiring.components
    left, right, _, of_left, of_right = product
    shape = (*product.batch, *right[0].shape[-2:])
    of_left, of_right = (
        [jnp.zeros_like(x) if t is None else t for x, t in zip(*side, strict=True)] for side in ((left, of_left), (right, of_right))
    )

    def values(left: Parts, right: Parts) -> list[Any]:
        terms = [jnp.broadcast_to(t, shape) for t in on_tensors(program.mul, [a[..., :, None] for a in left], right)]
        while (count := terms[0].shape[-2]) > 1:
            half = count // 2
            pairs = [[t[..., start : start + half, :] for t in terms] for start in (0, half)]
            sums = on_tensors(program.add, *pairs)
            terms = [jnp.concatenate([x, t[..., 2 * half :, :]], -2) for x, t in zip(sums, terms, strict=True)]
        return [t[..., 0, :] for t in terms]

    def row(operands: Any) -> list[Any]:
        found, tangents = jax.jvp(values, (operands[:width], right), (operands[width:], of_right))
        zeros = semiring.zero if width > 1 else (semiring.zero,)
        unreachable = functools.reduce(operator.and_, [v == float(z) for v, z in zip(found, zeros, strict=True)])
        return [jnp.where(unreachable, 0, t) for t in tangents]

    return list(_by_rows(row, [*left, *of_left], width * math.prod(shape)))


def _of_exponentials(scale: float, product: TracedProduct) -> Any:
    """Multiply by e^{s(a − α)}, e^{s(b − β)} and e^{s(α + β − c)}, with α the largest s a of a row, and β the largest s b of a column.

    Numbers of a wide range are multiplied in float64, or added term by term; the compiled function decides this at each call.
    """
    jax, jnp = sys.modules["jax"], _numpy()
    (a,), (b,), c, (of_a,), (of_b,) = product
    a, b, c = (x if scale == 1 else scale * x for x in (a, b, c))
    unreachable = c == -math.inf
    alpha, beta = _largest(a, -1), _largest(b, -2)
    gap = jnp.where(unreachable, 0, alpha + beta - c)

    def by_products(dtype: Any) -> Any:
        p, q, weight, x, y = (None if v is None else v.astype(dtype) for v in (a - alpha, b - beta, gap, of_a, of_b))
        p, q = jnp.exp(p), jnp.exp(q)
        return (jnp.exp(weight) * _products((None if x is None else p * x, q), (p, None if y is None else q * y))).astype(a.dtype)

    def terms(a: Any, b: Any, c: Any, of_a: Any, of_b: Any) -> Any:
        tangents = [t for t in (of_a, of_b) if t is not None]
        return jnp.exp(a + b - c) * sum(tangents[1:], tangents[0])

    every = product._replace(left=[a], right=[b], found=jnp.where(unreachable, 0, c))
    if c.size * a.shape[-1] <= _FEW:
        return jnp.where(unreachable, 0, _by_terms(terms, every))
    single, double = np.dtype(np.float32), np.dtype(np.float64)
    kinds = [kind for kind in (single, double) if kind == a.dtype or (kind is double and jax.dtypes.canonicalize_dtype(double) == double)]
    limits = [IN_SINGLE if kind == single else IN_DOUBLE for kind in kinds]
    deficit = _deficit()(jax.lax.stop_gradient(gap))
    ways = [*(functools.partial(by_products, kind) for kind in kinds), lambda: _by_terms(terms, every)]
    return jnp.where(unreachable, 0, jax.lax.switch(sum(deficit > limit for limit in limits), ways))


def _largest(x: Any, axis: int) -> Any:
    """Return the largest entry of each row or column, a constant for derivatives; 0 where all are −∞."""
    most = sys.modules["jax"].lax.stop_gradient(x).max(axis, keepdims=True)
    return _numpy().where(most == -math.inf, 0, most)


@functools.cache
def _deficit() -> Any:
    """Make the function for the largest α_i + β_j − s c_ij: one number also under `jax.vmap`, so that a stack takes a single way."""
    most = sys.modules["jax"].custom_batching.custom_vmap(lambda gap: gap.max())
    most.def_vmap(lambda size, batched, gap: (most(gap), False))
    return most


def _numpy() -> Any:
    return sys.modules["jax.numpy"]
