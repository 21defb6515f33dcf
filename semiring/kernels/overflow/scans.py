"""Checks of a scan's operands: they hold elements, and no vector on the way can leave its dtype.

The reach of the vectors is computed step by step. For many steps of an associative ⊗, it is the reach of a power of one step, by squaring:
as many evaluations as the number of steps has bits.
"""

from __future__ import annotations

import functools
import math
import operator
import sys
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from semiring.algebra.definition import Semiring
from semiring.algebra.expression import CHOOSING, is_operation, nodes
from semiring.arrays.conversion import require_inside
from semiring.arrays.devices import namespace
from semiring.common.errors import OverflowRiskError, SemiringError
from semiring.common.units import counted
from semiring.kernels.engine import ScanOperands
from semiring.kernels.limits import DTypes, ValueStatistics, absorbing, inner_infinity, largest_beside, overflow_risk, tropical
from semiring.kernels.overflow.intervals import ARITHMETIC, IntervalArithmetic, Range, magnitudes, product_of_magnitudes
from semiring.kernels.overflow.products import depends_on_values, ranges
from semiring.kernels.overflow.statistics import surely_elements, value_statistics

__all__ = ["check_scan"]

Reach = TypeVar("Reach")
Statistics = Sequence[ValueStatistics]
Values = tuple[Any, ...]

_AXES = {"matrices": 3, "weights": 2, "initial": 1}
"""Axes of an operand for one sequence."""


def check_scan(
    semiring: Semiring, dtypes: DTypes, operands: ScanOperands, threads: int | None = None, *, backward: bool, refuse: bool = True
) -> bool:
    """Check a scan; return True if a finite element could pull a sum with ∞ back (see `Engine.signed`).

    Steps beyond a sequence's length are not checked.

    Raises
    ------
    DomainError, OverflowRiskError
    """
    if not depends_on_values(semiring, dtypes) or not (refuse or tropical(semiring, dtypes)):
        return False
    named = {"matrices": operands.matrices, "weights": operands.weights, "initial": operands.initial}
    parts = {name: _once(values) for name, values in named.items() if values is not None}
    try:
        return _check(semiring, dtypes, parts, operands, threads, backward=backward, refuse=refuse)
    except SemiringError:
        if not operands.lengths.size or int(operands.lengths.min()) == operands.steps:
            raise
    # The error may lie beyond the lengths of the sequences.
    longest = {name: _used(parts[name], operands, axes) for name, axes in (("matrices", 2), ("weights", 1)) if name in parts}
    used = {f"{name}{which}": part for name, some in longest.items() for which, part in some.items()}
    return _check(semiring, dtypes, {**used, "initial": parts["initial"]}, operands, threads, backward=backward, refuse=refuse)


def _check(
    semiring: Semiring,
    dtypes: DTypes,
    parts: dict[str, Values],
    operands: ScanOperands,
    threads: int | None,
    *,
    backward: bool,
    refuse: bool,
) -> bool:
    """Check operands, or parts of operands whose names begin with the operand's."""
    infinities, width = absorbing(semiring, dtypes), len(dtypes)
    found = iter(value_statistics([v for part in parts.values() for v in part], infinities, threads=threads))
    whole: dict[str, Statistics] = {}
    for name, part in parts.items():
        each = [next(found) for _ in range(width)]
        if refuse and not surely_elements(semiring, part, each):
            require_inside(semiring, part, name, axes=_AXES.get(name, 4))
        operand = name.split(" ")[0]
        whole[operand] = list(map(operator.or_, whole.get(operand, [ValueStatistics()] * width), each))
    steps = int(operands.lengths.max(initial=0))
    if tropical(semiring, dtypes):
        signed = any(part[0].pulls_back(minimum=infinities[0] > 0) for part in whole.values())
        if refuse:
            _certify_tropical(semiring, dtypes[0], whole, steps, signed=signed)
        return signed
    if refuse and 0 not in (steps, operands.states):
        if any(d.kind in "iu" for d in dtypes) and semiring.program.operations & ARITHMETIC:
            _certify_integers(semiring, dtypes, whole, steps, operands.states, backward=backward)
        _certify_floats(semiring, dtypes, whole, steps, backward=backward)
    return False


def _once(values: Values) -> Values:
    """Return components of one shape without repetitions along broadcast axes."""
    if 0 in values[0].shape:
        return values
    whole = tuple(slice(None) if any(steps) else slice(1) for steps in zip(*(v.strides for v in values), strict=True))
    return tuple(v[whole] for v in values)


def _used(values: Values, operands: ScanOperands, axes: int) -> dict[str, Values]:
    """Return the used part of each sequence by its name in messages; arrays have the steps in front of `axes` axes."""
    if all(v.ndim <= axes or v.shape[-axes - 1] == 1 for v in values):
        return {"": values}
    whole = [namespace(v).broadcast_to(v, (*operands.batch, operands.steps, *v.shape[-axes:])) for v in values]
    each = ((index, slice(int(operands.lengths[index]))) for index in np.ndindex(*operands.batch))
    return {f" of sequence {', '.join(map(str, index))}": tuple(v[(*index, steps)] for v in whole) for index, steps in each}


def _certify_tropical(semiring: Semiring, dtype: np.dtype[Any], whole: dict[str, Statistics], steps: int, *, signed: bool) -> None:
    """Refuse tropical integers if a sum of a vector, and a matrix and weights for each step, could reach half of ∞."""
    (infinity,) = absorbing(semiring, (dtype,))
    each = sum(whole[name][0].largest for name in ("matrices", "weights") if name in whole)
    reach = whole["initial"][0].largest + steps * each
    limit = largest_beside(inner_infinity(infinity), signed=signed)
    if reach > limit:
        what = f"{counted(steps, 'step')} may reach {reach}; with ∞ = {infinity}, entries may be {limit} at most"
        raise overflow_risk(semiring, [dtype], what)


def _certify_integers(semiring: Semiring, dtypes: DTypes, whole: dict[str, Statistics], steps: int, states: int, *, backward: bool) -> None:
    """Refuse other integers by the intervals of all operations."""
    program = semiring.program
    arithmetic = IntervalArithmetic(semiring, dtypes, absorbing(semiring, dtypes))
    grows = not {e.op for e in nodes(*program.add)} <= CHOOSING - {"and", "or", "xor"}

    def product(left: list[Range], right: list[Range], terms: int) -> list[Range]:
        total = arithmetic.evaluate(program.mul, left, right)
        return arithmetic.sum_of(total, terms) if grows and terms > 1 else total

    operands = {name: ranges(part, dtypes) for name, part in whole.items()}
    _reach(semiring, operands, steps, states, product, lambda x, y: list(map(operator.or_, x, y)), backward=backward)


def _certify_floats(semiring: Semiring, dtypes: DTypes, whole: dict[str, Statistics], steps: int, *, backward: bool) -> None:
    """Refuse floats by the magnitudes of ⊗, if ⊕ only compares."""
    sizes = {name: tuple(magnitudes(part, dtypes)) for name, part in whole.items()}
    rounded = tuple((name, tuple(map(_power_of_two, part))) for name, part in sizes.items())
    if not _fit_surely(semiring, dtypes, rounded, 1 << steps.bit_length(), backward=backward):
        _require_fit(semiring, dtypes, sizes, steps, backward=backward)


def _power_of_two(size: float) -> float:
    return 2.0 ** math.ceil(math.log2(size)) if 0 < size < sys.float_info.max / 2 else size


Sizes = tuple[float, ...]
"""A magnitude for each component."""


@functools.lru_cache(maxsize=1024)
def _fit_surely(semiring: Semiring, dtypes: DTypes, sizes: tuple[tuple[str, Sizes], ...], steps: int, *, backward: bool) -> bool:
    """Return True if rounded-up magnitudes and steps fit; a cache of few round numbers covers most scans."""
    try:
        _require_fit(semiring, dtypes, dict(sizes), steps, backward=backward)
    except OverflowRiskError:
        return False
    return True


def _require_fit(semiring: Semiring, dtypes: DTypes, sizes: dict[str, Sizes], steps: int, *, backward: bool) -> None:
    """Refuse magnitudes of operands with which so many steps could overflow."""
    ends = semiring.carrier.bounds(dtypes) or [None] * len(dtypes)
    bounds = [max(map(abs, some or ()), default=math.inf) for some in ends]

    def product(left: Sizes, right: Sizes, _: int) -> Sizes:
        sizes = product_of_magnitudes(semiring, dtypes, left, right)
        return tuple(b if size > b else size for size, b in zip(sizes, bounds, strict=True))  # ⊗ of elements is an element

    def either(x: Sizes, y: Sizes) -> Sizes:
        return tuple(math.nan if math.isnan(a + b) else max(a, b) for a, b in zip(x, y, strict=True))

    _reach(semiring, sizes, steps, 1, product, either, backward=backward)


_ASSOCIATIVE = ("add", "mul", "min", "max", "and", "or", "xor")
"""Operations that make ⊗ associative, one in each component, even if the semiring breaks other laws."""

_ONE_BY_ONE = 64
"""Steps whose reach is computed one by one, without assuming that ⊗ is associative."""


def _reach(
    semiring: Semiring,
    operands: dict[str, Reach],
    steps: int,
    states: int,
    product: Callable[[Reach, Reach, int], Reach],
    either: Callable[[Reach, Reach], Reach],
    *,
    backward: bool,
) -> Reach:
    """Return the reach of a scan's vectors. `product` gives the reach of a product, with sums of so many terms; `either` a union."""
    vector = operands["initial"]
    order = [(operands[name], terms) for name, terms in (("matrices", states), ("weights", 1)) if name in operands]
    if steps > _ONE_BY_ONE and all(is_operation(e, _ASSOCIATIVE, i) for i, e in enumerate(semiring.program.mul)):
        step = product(order[0][0], order[1][0], 1) if len(order) > 1 else order[0][0]
        power = _power(step, steps, lambda x, y: product(x, y, states), either)
        return either(vector, product(vector, power, states))
    for _ in range(steps):
        before = vector
        for operand, terms in reversed(order) if backward else order:
            vector = either(vector, product(operand, vector, terms) if backward else product(vector, operand, terms))
        if vector == before:
            break
    return vector


def _power(step: Reach, steps: int, product: Callable[[Reach, Reach], Reach], either: Callable[[Reach, Reach], Reach]) -> Reach:
    """Return the reach of products of 1 to `steps` steps."""
    total, power = None, step
    while True:
        if steps & 1:
            total = power if total is None else either(either(total, power), product(total, power))
        steps >>= 1
        if not steps:
            assert total is not None
            return total
        power = either(power, product(power, power))
