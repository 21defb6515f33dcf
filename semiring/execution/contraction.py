"""Executor of contractions: each pair of operands becomes a product of matrices, or of stacks of matrices.

The indices of a pair fall into four groups: of both and kept (stacks), of both and summed (k), of the first (m) and of the second (n).
Summed indices of one operand only are summed first, by a product with ones. Slices are added by ⊕: the last product of a slice
takes the slices before it as c. The winning values of summed indices are found from the result back to the operands, by the
witness of each product.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from semiring.algebra.definition import Semiring
from semiring.algorithms.contraction import Contraction, Indices
from semiring.arrays.devices import namespace
from semiring.execution.operands import WITNESS, Arrays, DTypes, Lent, elements
from semiring.planning.contraction import ContractionPlan, witness_bytes

__all__ = ["Winners", "contract", "converted"]

Winners = dict[str, Any]
"""The winning value of each summed index, an array of the result's shape; −1 where no term beats the zero."""

Ones = Callable[[], tuple[Any, ...]]
"""A function that returns the components of the semiring's one."""


class Multiply(Protocol):
    """The product of two matrices, or stacks of matrices, given their components, and its witness if wanted; c is added by ⊕."""

    def __call__(self, a: Arrays, b: Arrays, c: Arrays | None = None, *, witness: bool) -> tuple[Arrays, Any]:
        """Return the components and the witness, or None."""
        raise NotImplementedError


class _Trace(NamedTuple):
    """The witness of a product, with the indices of the result, and the summed indices and their lengths: `via` numbers their values."""

    indices: Indices
    summed: tuple[tuple[str, int], ...]
    via: Any
    parents: tuple[_Trace, ...]


class _Operand(NamedTuple):
    arrays: Arrays  # the components, of one shape
    indices: Indices
    traces: tuple[_Trace, ...] = ()  # the last product, if a witness is wanted

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.arrays[0].shape)

    def arranged(self, *groups: Sequence[str]) -> Arrays:
        """Return the arrays with one axis for each group of indices."""
        order, arrays = [i for group in groups for i in group], self.arrays
        if order != [*self.indices]:
            axes = [self.indices.index(i) for i in order]
            arrays = tuple([_permuted(v, axes) for v in arrays])
        if len(order) == len(groups) and all(groups):
            return arrays
        lengths = dict(zip(self.indices, self.shape, strict=True))
        shape = tuple([math.prod([lengths[i] for i in group]) for group in groups])
        return tuple([v.reshape(shape) for v in arrays])


class _Contracted(NamedTuple):
    result: _Operand
    winners: Winners


def converted(operands: Sequence[Lent], dtypes: DTypes, semiring: Semiring) -> list[Arrays]:
    """Convert the operands to these dtypes."""
    return [elements(part, dtypes, semiring, f"operand {i}", "cpu") for i, part in enumerate(operands)]


def contract(plan: ContractionPlan, operands: Sequence[Arrays], ones: Ones, multiply: Multiply) -> tuple[Arrays, Winners]:
    """Contract the components of all operands, with axes in the order of the output."""
    contraction, output = plan.contraction, plan.contraction.output
    if not plan.sliced:
        only = _in_order(_contract_slice(plan, operands, {}, None, ones, multiply), output, copied=len(operands) == 1)
        return only.result.arrays, only.winners
    outer, inner = ([i for i in plan.sliced if (i in output) == wanted] for wanted in (True, False))
    whole: _Contracted | None = None
    for at in _each_value(outer, contraction):
        found: _Contracted | None = None
        for inside in _each_value(inner, contraction):
            chosen = at | inside
            parts = [_slice(arrays, indices, chosen) for arrays, indices in zip(operands, contraction.inputs, strict=True)]
            found = _contract_slice(plan, parts, chosen, found, ones, multiply)
        assert found is not None
        part = _in_order(found, output, copied=len(operands) == 1)
        whole = part if not outer else _placed(whole, part, at, contraction)
    assert whole is not None
    return whole.result.arrays, whole.winners


def _each_value(indices: Sequence[str], contraction: Contraction) -> Iterator[dict[str, int]]:
    for values in itertools.product(*(range(contraction.lengths[i]) for i in indices)):
        yield dict(zip(indices, values, strict=True))


def _slice(arrays: Arrays, indices: Indices, chosen: dict[str, int]) -> Arrays:
    """Cut each sliced axis to one value; an axis of length 1 stands for all values."""
    axes = zip(indices, arrays[0].shape, strict=True)
    key = tuple([slice(chosen[i], chosen[i] + 1) if i in chosen and n > 1 else slice(None) for i, n in axes])
    return tuple([v[(*key, ...)] for v in arrays])  # an array without axes stays one


def _contract_slice(
    plan: ContractionPlan, operands: Sequence[Arrays], chosen: dict[str, int], old: _Contracted | None, ones: Ones, multiply: Multiply
) -> _Contracted:
    """Contract one slice, and add the slices before it, `old`."""
    contraction = plan.one_slice
    held: list[_Operand | None] = [
        _prepared(arrays, indices, contraction) for arrays, indices in zip(operands, contraction.inputs, strict=True)
    ]
    for left, right, kept in plan.products:
        A, B, held[left], held[right] = held[left], held[right], None, None
        assert A is not None
        assert B is not None
        last = len(held) == 2 * len(operands) - 2
        held.append(_pair(A, B, kept, old.result if last and old is not None else None, ones, multiply, witness=plan.witness, last=last))
        del A, B  # the arrays of finished products are freed
    assert held[-1] is not None
    whole = _summed(held[-1], contraction.output, ones, multiply, witness=plan.witness)
    winners = _winners(whole, chosen) if whole.traces else {}
    xp = namespace(whole.arrays[0])
    for index, value in winners.items():  # where the last witness is −1, c was better, or else every term is zero
        winners[index] = xp.where(whole.traces[0].via < 0, -1 if old is None else old.winners[index], value).astype(WITNESS)
    return _Contracted(whole, winners)


def _prepared(arrays: Arrays, indices: Indices, contraction: Contraction) -> _Operand:
    """Take the diagonal of repeated indices, and drop axes of length 1 that stand for longer ones."""
    if len({*indices}) == len(indices) and arrays[0].shape == contraction.shape(indices):
        return _Operand(arrays, indices)
    while repeated := next((i for i in indices if indices.count(i) > 1), None):
        first, second = [axis for axis, i in enumerate(indices) if i == repeated][:2]
        arrays = tuple([_diagonal(v, first, second) for v in arrays])
        indices = (*(i for axis, i in enumerate(indices) if axis not in (first, second)), repeated)
    for axis in reversed(range(len(indices))):
        if arrays[0].shape[axis] != contraction.lengths[indices[axis]]:
            arrays, indices = tuple([v.squeeze(axis) for v in arrays]), (*indices[:axis], *indices[axis + 1 :])
    return _Operand(arrays, indices)


def _diagonal(v: Any, first: int, second: int) -> Any:
    """Return the diagonal of two axes as the last axis; an axis of length 1 repeats."""
    if 1 in (v.shape[first], v.shape[second]):
        shape = list(v.shape)
        shape[first] = shape[second] = shape[second] if shape[first] == 1 else shape[first]
        v = v.expand(shape) if hasattr(v, "expand") else namespace(v).broadcast_to(v, shape)
    return v.diagonal(0, first, second)


def _pair(
    A: _Operand,
    B: _Operand,
    kept: Sequence[str],
    c: _Operand | None,
    ones: Ones,
    multiply: Multiply,
    *,
    witness: bool,
    last: bool,
) -> _Operand:
    A, B = (_summed(X, {*kept, *Y.indices}, ones, multiply, witness=witness) for X, Y in ((A, B), (B, A)))
    both = [i for i in A.indices if i in B.indices]
    stacks, summed = [i for i in both if i in kept], [i for i in both if i not in kept]
    rows, columns = [i for i in A.indices if i not in both], [i for i in B.indices if i not in both]
    groups = [stacks] if stacks else []
    old = None if c is None else c.arranged(*groups, rows, columns)
    wanted = witness and (last or bool(summed))  # the last witness says too where every term is zero
    found = multiply(A.arranged(*groups, rows, summed), B.arranged(*groups, summed, columns), old, witness=wanted)
    lengths = dict(zip((*A.indices, *B.indices), (*A.shape, *B.shape), strict=True))
    return _shaped(found, (*stacks, *rows, *columns), summed, lengths, (*A.traces, *B.traces))


def _summed(A: _Operand, kept: Any, ones: Ones, multiply: Multiply, *, witness: bool) -> _Operand:
    """Sum the indices of an operand that are not kept."""
    summed = [i for i in A.indices if i not in kept]
    if not summed:
        return A
    rest = [i for i in A.indices if i in kept]
    (matrix, *_) = arrays = A.arranged(rest, summed)
    column = tuple([_filled(v, matrix.shape[1], one) for v, one in zip(arrays, ones(), strict=True)])
    lengths = dict(zip(A.indices, A.shape, strict=True))
    return _shaped(multiply(arrays, column, witness=witness), rest, summed, lengths, A.traces)


def _shaped(
    found: tuple[Arrays, Any], indices: Sequence[str], summed: Sequence[str], lengths: dict[str, int], traces: tuple[_Trace, ...]
) -> _Operand:
    """Return a product with one axis for each index."""
    (values, via), shape = found, [lengths[i] for i in indices]
    if via is not None:
        of_summed = tuple((i, lengths[i]) for i in summed)
        short = np.dtype(f"i{witness_bytes(math.prod(n for _, n in of_summed))}")  # many witnesses wait for the end
        traces = (_Trace(tuple(indices), of_summed, via.reshape(shape).astype(short), traces),)
    return _Operand(tuple([v.reshape(shape) for v in values]), tuple(indices), traces)


def _winners(found: _Operand, chosen: dict[str, int]) -> Winners:
    """Walk from the result back to the operands: the values of a product's indices select the witness, and so the values of summed ones."""
    xp, shape = namespace(found.arrays[0]), found.shape
    values: dict[str, Any] = {
        index: xp.arange(length, dtype=WITNESS).reshape([-1 if i == axis else 1 for i in range(len(shape))])
        for axis, (index, length) in enumerate(zip(found.indices, shape, strict=True))
    }
    winners: Winners = {}
    waiting = list(found.traces)
    while waiting:
        trace = waiting.pop()
        waiting.extend(trace.parents)
        if trace.via.size:
            number = xp.maximum(trace.via[tuple([values[i] for i in trace.indices])].astype(WITNESS), 0)
        else:  # a later sum has no terms
            number = xp.zeros(shape, WITNESS)
        for index, length in reversed(trace.summed):
            values[index], number = number % max(1, length), number // max(1, length)
            winners[index] = xp.broadcast_to(values[index] + chosen.get(index, 0), shape)
    return winners


def _in_order(found: _Contracted, output: Indices, *, copied: bool) -> _Contracted:
    """Return the result with its axes in the order of the output; without a product it is a view of the caller's array, and copied."""
    if found.result.indices == output and not copied and not found.winners:
        return found
    single, axes = [[i] for i in output], [found.result.indices.index(i) for i in output]
    arranged = found.result.arranged(*single)
    arrays = tuple([_in_rows(v, copied=copied) for v in arranged])
    return _Contracted(_Operand(arrays, output), {i: namespace(v).asarray(v.transpose(axes), order="C") for i, v in found.winners.items()})


# Functions that PyTorch's tensors have by other names.


def _permuted(v: Any, axes: list[int]) -> Any:
    return v.permute(axes) if hasattr(v, "permute") else v.transpose(axes)


def _filled(like: Any, length: int, value: Any) -> Any:
    return like.new_full((length,), float(value)) if hasattr(like, "new_full") else namespace(like).full(length, value, like.dtype)


def _in_rows(v: Any, *, copied: bool) -> Any:
    if hasattr(v, "contiguous"):
        return v.clone() if copied else v.contiguous()
    return v.copy(order="C") if copied else namespace(v).asarray(v, order="C")


def _placed(whole: _Contracted | None, part: _Contracted, at: dict[str, int], contraction: Contraction) -> _Contracted:
    """Place a slice of the output in the whole output, which is made at first."""
    output, shape = contraction.output, contraction.shape(contraction.output)
    if whole is None:
        whole = _Contracted(
            _Operand(tuple([namespace(v).empty(shape, v.dtype) for v in part.result.arrays]), output),
            {i: namespace(v).empty(shape, v.dtype) for i, v in part.winners.items()},
        )
    place = tuple([slice(at[i], at[i] + 1) if i in at else slice(None) for i in output])
    for target, v in zip((*whole.result.arrays, *whole.winners.values()), (*part.result.arrays, *part.winners.values()), strict=True):
        target[place] = v
    return whole
