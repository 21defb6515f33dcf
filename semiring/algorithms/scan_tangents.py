"""Tangents of a scan on arrays of JAX, linear in the operands' tangents, so that JAX can transpose the scan for gradients.

Forward, v_t = (v_{t−1} ⊗ A_t) ⊗ w_t. One product for all t at once finds v_{t−1} ⊗ A_t and its witness. Then a loop over t pushes the
tangents u̇_t of the product, by `tangents`, and v̇_t = ∂⊗/∂left u̇_t + ∂⊗/∂right ẇ_t. A reversed scan, v_{t−1} = A_t ⊗ (w_t ⊗ v_t), goes
the other way. Gradients go through the loop against time, and compute each step again instead of keeping it.

An entry of v_t that equals the semiring's zero has the tangent 0 exactly, and passes exactly 0 back (not over +). So do entries beyond the
end of a sequence. `scan_adjoints` has the same derivatives for PyTorch.
"""

from __future__ import annotations

import functools
import math
import operator
import sys
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from semiring.algebra.definition import Semiring
from semiring.algebra.derivatives import derivative_of_product, derivatives
from semiring.algebra.expression import var
from semiring.algorithms.tangents import TracedProduct, pushed, tangents_of
from semiring.kernels.tensors import on_tensors

__all__ = ["TracedScan", "tangents_of_scan"]


class TracedScan(NamedTuple):
    """A scan of sequences, with tangents, by components: all leading axes of the batch, of length 1 where shared. Weights may be empty."""

    matrices: Sequence[Any]  # (…, T, S, S), or one step for all
    weights: Sequence[Any]  # (…, T, S), or one step for all
    initial: Sequence[Any]  # (…, S)
    of_matrices: Sequence[Any]
    of_weights: Sequence[Any]
    of_initial: Sequence[Any]
    values: Sequence[Any]  # (…, T + 1, S)
    lengths: Any  # (…)
    reverse: bool


def tangents_of_scan(semiring: Semiring, scan: TracedScan, product: Callable[..., Sequence[Any]]) -> list[Any]:
    """Return the tangents of all vectors by components; `product` multiplies stacks, and adds the witness if ⊕ selects."""
    jax, jnp, width = sys.modules["jax"], sys.modules["jax.numpy"], semiring.components
    kind, mul, values, reverse = derivative_of_product(semiring).kind, semiring.program.mul, scan.values, scan.reverse
    jacobian = derivatives(mul, [var(side, c) for side in (0, 1) for c in range(width)])
    steps, axis = values[0].shape[-2] - 1, -1 if reverse else -2  # vectors are rows, or columns

    shape, lengths = (*values[0].shape[:-2], values[0].shape[-1]), scan.lengths[..., None]
    start = [jnp.zeros(shape, v.dtype) if t is None else jnp.broadcast_to(t, shape) for t, v in zip(scan.of_initial, values, strict=True)]
    zeros = semiring.zero if width > 1 else (semiring.zero,)
    never = functools.reduce(operator.and_, [v == float(z) for v, z in zip(values, zeros, strict=True)]) & (kind not in ("numbers", "sums"))
    first = [jnp.where(never[..., -1 if reverse else 0, :] | (reverse & (lengths < steps)), 0, s) for s in start]
    if not steps or not values[0].size:
        return [f[..., None, :] if not steps else jnp.zeros_like(v) for f, v in zip(first, values, strict=True)]

    def sides(matrices: Sequence[Any], vectors: Sequence[Any]) -> Any:
        vectors = [None if v is None else jnp.expand_dims(v, axis) for v in vectors]
        return (matrices, vectors) if reverse else (vectors, matrices)

    sources = [v[..., 1:, :] if reverse else v[..., :-1, :] for v in values]
    never = never[..., :-1, :] if reverse else never[..., 1:, :]
    weighed = bool(scan.weights)
    before = list(on_tensors(mul, scan.weights, sources)) if reverse and weighed else sources
    if math.prod(scan.matrices[0].shape[:-2]) == 1:  # all vectors in one matrix
        stacks, vectors = ([x.reshape(1, -1, shape[-1]) for x in part] for part in (scan.matrices, before))
        found = [v.mT for v in product(stacks, [v.mT for v in vectors])] if reverse else product(vectors, stacks)
        found = [v.reshape(before[0].shape) for v in found]
    else:
        found = [v.squeeze(axis) for v in product(*sides(scan.matrices, before))]
    given = scan.matrices, scan.of_matrices, scan.weights, scan.of_weights, sources, before, found[:width], found[-1:], [never]
    axes = 3, 3, 2, 2, 2, 2, 2, 2, 2
    moved = [[None if x is None else jnp.moveaxis(x, -a, 0) for x in part] for part, a in zip(given, axes, strict=True)]
    each = jax.tree.map(lambda x: x if x.shape[0] == steps else None, moved)
    shared = jax.tree.map(lambda x: None if x.shape[0] == steps else x[0], moved)

    def step(tangents: Any, each: Any) -> Any:
        number, each = each
        here = [[y if x is None else x for x, y in zip(*parts, strict=True)] for parts in zip(each, shared, strict=True)]
        a, of_a, w, of_w, source, v, inner, last, (never,) = here
        if reverse and weighed:
            tangents = [pushed(row, [*of_w, *tangents], w, source) for row in jacobian]
        left, right = sides(a, v)
        of_left, of_right = sides(of_a, tangents)
        kept = jnp.expand_dims(last[0] if kind == "selected" else inner[0], axis)
        tangents = [t.squeeze(axis) for t in tangents_of(semiring, TracedProduct(left, right, kept, of_left, of_right))]
        if weighed and not reverse:
            tangents = [pushed(row, [*tangents, *of_w], inner, w) for row in jacobian]
        if reverse:
            tangents = [jnp.where(lengths == number - 1, s, t) for s, t in zip(start, tangents, strict=True)]
        tangents = [jnp.where(never | (lengths < number - reverse), 0, t) for t in tangents]
        return tangents, tangents

    rows = jax.lax.scan(jax.checkpoint(step), first, (jnp.arange(1, steps + 1), each), steps, reverse)[1]
    return [jnp.moveaxis(jnp.concatenate([v, f[None]] if reverse else [f[None], v]), 0, -2) for f, v in zip(first, rows, strict=True)]
