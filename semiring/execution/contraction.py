"""Executor of contractions: each pair of operands becomes a product of matrices, or of stacks of matrices.

The indices of a pair fall into four groups: of both and kept (stacks), of both and summed (k), of the first (m) and of the second (n).
Indices that are summed and belong to one operand only are summed first, by a product with ones.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from semiring.algebra.definition import Semiring
from semiring.algorithms.contraction import Contraction, steps
from semiring.arrays.devices import namespace
from semiring.execution.operands import Arrays, DTypes, Lent, arrays_of, common_dtypes, dtype_of, elements

__all__ = ["Product", "contract", "converted"]

Product = Callable[[Arrays, Arrays], Arrays]
"""The product of two matrices, or stacks of matrices, given their components."""


class _Operand(NamedTuple):
    arrays: Arrays  # the components, of one shape
    indices: tuple[str, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.arrays[0].shape)

    def arranged(self, *groups: Sequence[str]) -> Arrays:
        """Return the arrays with one axis for each group of indices."""
        axes = [self.indices.index(i) for group in groups for i in group]
        lengths = dict(zip(self.indices, self.shape, strict=True))
        shape = tuple(math.prod([lengths[i] for i in group]) for group in groups)
        return tuple([v.transpose(axes).reshape(shape) for v in self.arrays])


def converted(operands: Sequence[Lent], semiring: Semiring) -> tuple[list[Arrays], DTypes]:
    """Convert the operands to their common dtypes; return these too."""
    kinds = [tuple(map(dtype_of, arrays_of(part))) for part in operands]
    dtypes = functools.reduce(lambda x, y: common_dtypes(x, y, semiring), kinds, common_dtypes(kinds[0], kinds[0], semiring))
    return [elements(part, dtypes, semiring, f"operand {i}", "cpu") for i, part in enumerate(operands)], dtypes


def contract(
    contraction: Contraction, path: Sequence[Sequence[int]], operands: Sequence[Arrays], ones: tuple[Any, ...], product: Product
) -> Arrays:
    """Contract the components of all operands in the order of `path`; `ones` are the components of the semiring's one."""
    found = [_prepared(arrays, indices, contraction) for arrays, indices in zip(operands, contraction.inputs, strict=True)]
    for left, right, kept in steps(contraction, path):
        found.append(_pair(found[left], found[right], kept, ones, product))
    whole = _summed(found[-1], contraction.output, ones, product)
    arranged = whole.arranged(*([i] for i in contraction.output))
    # Without a product the result is a view of the caller's array.
    return tuple([v.copy(order="C") if len(operands) == 1 else namespace(v).asarray(v, order="C") for v in arranged])


def _prepared(arrays: Arrays, indices: tuple[str, ...], contraction: Contraction) -> _Operand:
    """Take the diagonal of repeated indices, and drop axes of length 1 that stand for longer ones."""
    while repeated := next((i for i in indices if indices.count(i) > 1), None):
        first, second = [axis for axis, i in enumerate(indices) if i == repeated][:2]
        arrays = tuple([_diagonal(v, first, second) for v in arrays])
        indices = (*(i for axis, i in enumerate(indices) if axis not in (first, second)), repeated)
    for axis in reversed(range(len(indices))):
        if arrays[0].shape[axis] != contraction.lengths[indices[axis]]:
            arrays, indices = tuple([v.squeeze(axis) for v in arrays]), (*indices[:axis], *indices[axis + 1 :])
    return _Operand(arrays, indices)


def _diagonal(v: Any, first: int, second: int) -> Any:
    """Return the diagonal of two axes, the shorter of which may have length 1, as the last axis."""
    if 1 in (v.shape[first], v.shape[second]):
        shape = list(v.shape)
        shape[first] = shape[second] = max(shape[first], shape[second])
        v = namespace(v).broadcast_to(v, shape)
    return v.diagonal(0, first, second)


def _pair(A: _Operand, B: _Operand, kept: Sequence[str], ones: tuple[Any, ...], product: Product) -> _Operand:
    A, B = (_summed(X, {*kept, *Y.indices}, ones, product) for X, Y in ((A, B), (B, A)))
    stacks = [i for i in A.indices if i in B.indices and i in kept]
    summed = [i for i in A.indices if i in B.indices and i not in kept]
    rows, columns = ([i for i in X.indices if i not in Y.indices] for X, Y in ((A, B), (B, A)))
    groups = [stacks] if stacks else []
    found = product(A.arranged(*groups, rows, summed), B.arranged(*groups, summed, columns))
    lengths = dict(zip((*A.indices, *B.indices), (*A.shape, *B.shape), strict=True))
    indices = (*stacks, *rows, *columns)
    return _Operand(tuple([v.reshape([lengths[i] for i in indices]) for v in found]), indices)


def _summed(A: _Operand, kept: Any, ones: tuple[Any, ...], product: Product) -> _Operand:
    """Sum the indices of an operand that are not kept."""
    summed, rest = ([i for i in A.indices if (i in kept) == wanted] for wanted in (False, True))
    if not summed:
        return A
    (matrix, *_) = arrays = A.arranged(rest, summed)
    column = tuple([namespace(matrix).full(matrix.shape[1], one, v.dtype) for v, one in zip(arrays, ones, strict=True)])
    lengths = dict(zip(A.indices, A.shape, strict=True))
    return _Operand(tuple([v.reshape([lengths[i] for i in rest]) for v in product(arrays, column)]), tuple(rest))
