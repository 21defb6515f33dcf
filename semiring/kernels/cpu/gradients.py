"""Gradients of products on the CPU where ⊕ selects: a loop adds up the gradients of values by their witness."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from semiring.algebra import ops
from semiring.algebra.derivatives import ZERO
from semiring.algebra.expression import Expr, evaluate, flat, node, var
from semiring.arrays.followed import is_transformed
from semiring.arrays.threads import run, thread_count
from semiring.kernels.cpu.loops import Rows, ShortRows, loop
from semiring.kernels.hardware import host

__all__ = ["selected_on_cpu"]

_ENOUGH = 1 << 15
"""The fewest values that are worth another thread."""

_SUM = (node("add", var(0), node("mul", var(0, 1), var(1))),)


class _Part(NamedTuple):
    """The values of some matrices, rows and columns, each from a first one to before a last one."""

    first: int
    last: int
    top: int
    bottom: int
    begin: int
    end: int


class _Weight:
    """The derivative of ⊗ by one operand, inlined into the loop."""

    def __init__(self, weight: Expr) -> None:
        self.weight, self.identity = (weight,), flat((weight,))

    def plus(self, total: Any, gradient: Any, left: Any, right: Any) -> Any:
        """Return total + gradient · weight(left, right)."""
        return evaluate(_SUM, (*total, *gradient), evaluate(self.weight, left, right, ops.TABLE), ops.TABLE)

    def emit(self, _: str, em: Any, args: Sequence[Any]) -> Any:
        """Emit ``plus`` into a loop."""
        from semiring.kernels.cpu.lowering import Lowering  # only on a cache miss

        (total, gradient, left, right), low = args, Lowering(em, host(), 1)
        kinds = [total[0].scalar]
        return tuple(low.evaluate(_SUM, (*total, *gradient), low.evaluate(self.weight, left, right, kinds), kinds))


_weight = functools.lru_cache(maxsize=256)(_Weight)


@loop
def add_by_witness(
    part: _Part,
    m: int,
    depth: int,
    gradients: Rows,
    witness: ShortRows,
    left: Rows,
    right: Rows,
    sums: Rows,
    *,
    weight: _Weight,
    columns: bool,
) -> None:  # fmt: skip
    """Add the gradients of a part of the values to the entries of one operand: of the right one for `columns`.

    Matrices stand below each other: m rows of values, m of the left and `depth` of the right operand.
    """
    for p in range(part.first, part.last):
        for i in range(p * m + part.top, p * m + part.bottom):
            gradient, winners, own = gradients[i], witness[i], left[i]
            for j in range(part.begin, part.end):
                k = winners[j]
                if k >= 0:
                    row = p * depth + k
                    if columns:
                        sums[row, j] = weight.plus(sums[row, j], gradient[j], own[k], right[row, j])
                    else:
                        sums[i, k] = weight.plus(sums[i, k], gradient[j], own[k], right[row, j])


def selected_on_cpu(weights: Sequence[Expr], tensors: Sequence[Any], wanted: tuple[bool, bool]) -> tuple[Any, Any] | None:
    """Return the gradients of both operands of a product whose ⊕ selects; None unless all tensors are in the memory of the CPU.

    `weights` are the derivatives of ⊗ by both operands. `tensors` are stacks of matrices: the gradients of values, the witness, and the
    operands. Each sum adds in the order of its rows or columns, by any number of threads.
    """
    if tensors[0].device.type != "cpu" or tensors[0]._is_zerotensor() or any(map(is_transformed, tensors)):
        return None
    (*batch, m, n), depth = tensors[0].shape, tensors[2].shape[-1]
    rows = [x.detach().resolve_neg().flatten(0, -2) for x in tensors]
    gradients, witness, left, right = ((x if x.stride(-1) == 1 else x.contiguous()).numpy() for x in rows)
    threads, found = min(thread_count(), 1 + gradients.size // _ENOUGH), list[Any]()
    for columns, operand, weight, needed in zip((False, True), tensors[2:], weights, wanted, strict=True):
        found.append(operand.new_zeros(operand.shape) if needed else None)
        if needed and weight is not ZERO:
            parts, sums = _parts((math.prod(batch), m, n), threads, columns=columns), found[-1].flatten(0, -2).numpy()
            arrays = (gradients,), witness, (left,), (right,), (sums,)
            add = add_by_witness.bind(parts[0], m, depth, *arrays, weight=_weight(weight), columns=columns)
            run(lambda part, _, add=add: add(part=part), parts, threads)  # type: ignore[misc]  # mypy: a default value of a lambda
    return found[0], found[1]


def _parts(sizes: tuple[int, int, int], threads: int, *, columns: bool) -> list[_Part]:
    """Divide matrices among threads, or else their columns or rows; `sizes` counts matrices, rows and columns."""
    axis = 0 if sizes[0] >= threads else 2 if columns else 1
    step, bounds = -(-sizes[axis] // threads), [(0, size) for size in sizes]
    cut = [(first, min(first + step, sizes[axis])) for first in range(0, sizes[axis], step)]
    return [_Part(*itertools.chain(*bounds[:axis], part, *bounds[axis + 1 :])) for part in cut]
