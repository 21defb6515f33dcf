"""Checks of a scan's operands: they hold elements, and no vector on the way can leave its dtype.

The reach of the vectors is computed step by step. For many steps of an associative ⊗, it is the reach of a power of one step, by squaring:
as many evaluations as the number of steps has bits.
"""

from __future__ import annotations

import functools
import math
import operator
import sys
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import numpy as np

from semiring.algebra.definition import Semiring
from semiring.algebra.expression import CHOOSING, is_operation, nodes
from semiring.arrays.conversion import require_inside
from semiring.arrays.devices import namespace
from semiring.common.errors import OverflowRiskError, SemiringError
from semiring.common.units import counted
from semiring.kernels.engine import ScanOperands
from semiring.kernels.limits import DTypes, ValueStatistics, absorbing, inner_infinity, largest_beside, overflow_risk, tropical
from semiring.kernels.overflow.intervals import ARITHMETIC, IntervalArithmetic, Range, either, magnitudes, product_of_magnitudes, repeated
from semiring.kernels.overflow.products import Statistics, depends_on_values, ranges
from semiring.kernels.overflow.statistics import surely_elements, value_statistics

__all__ = ["check_scan"]

Reach = TypeVar("Reach")
Values = tuple[Any, ...]

_AXES = {"matrices": 3, "weights": 2, "initial": 1}  # axes of an operand for one sequence


class _CheckedScan(NamedTuple):
    """A scan without its operands."""

    semiring: Semiring
    dtypes: DTypes
    steps: int  # steps of the longest sequence
    states: int
    backward: bool


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
    scan = _CheckedScan(semiring, dtypes, int(operands.lengths.max(initial=0)), operands.states, backward)
    try:
        return _check(scan, parts, threads, refuse=refuse)
    except SemiringError:
        if not operands.lengths.size or int(operands.lengths.min()) == operands.steps:
            raise
    # The error may lie beyond the lengths of the sequences.
    longest = {name: _used(parts[name], operands, axes) for name, axes in (("matrices", 2), ("weights", 1)) if name in parts}
    used = {f"{name}{which}": part for name, some in longest.items() for which, part in some.items()}
    return _check(scan, {**used, "initial": parts["initial"]}, threads, refuse=refuse)


def _check(scan: _CheckedScan, parts: dict[str, Values], threads: int | None, *, refuse: bool) -> bool:
    """Check operands, or parts of operands whose names begin with the operand's."""
    semiring, dtypes = scan.semiring, scan.dtypes
    infinities, width = absorbing(semiring, dtypes), len(dtypes)
    found = iter(value_statistics([v for part in parts.values() for v in part], infinities, threads=threads))
    whole: dict[str, Statistics] = {}
    for name, part in parts.items():
        each = [next(found) for _ in range(width)]
        if refuse and not surely_elements(semiring, part, each):
            require_inside(semiring, part, name, axes=_AXES.get(name, 4))
        operand = name.split(" ")[0]
        whole[operand] = list(map(operator.or_, whole.get(operand, [ValueStatistics()] * width), each))
    if tropical(semiring, dtypes):
        signed = any(part[0].pulls_back(minimum=infinities[0] > 0) for part in whole.values())
        if refuse:
            _certify_tropical(scan, whole, signed=signed)
        return signed
    if refuse and 0 not in (scan.steps, scan.states):
        if any(d.kind in "iu" for d in dtypes) and semiring.program.operations & ARITHMETIC:
            _certify_integers(scan, whole)
        _certify_floats(scan, whole)
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


def _certify_tropical(scan: _CheckedScan, whole: dict[str, Statistics], *, signed: bool) -> None:
    """Refuse tropical integers if a sum of a vector, and a matrix and weights for each step, could reach half of ∞."""
    (infinity,) = absorbing(scan.semiring, scan.dtypes)
    each = sum(whole[name][0].largest for name in ("matrices", "weights") if name in whole)
    reach = whole["initial"][0].largest + scan.steps * each
    limit = largest_beside(inner_infinity(infinity), signed=signed)
    if reach > limit:
        what = f"{counted(scan.steps, 'step')} may reach {reach}; with ∞ = {infinity}, entries may be {limit} at most"
        raise overflow_risk(scan.semiring, scan.dtypes, what)


def _certify_integers(scan: _CheckedScan, whole: dict[str, Statistics]) -> None:
    """Refuse other integers by the intervals of all operations."""
    program = scan.semiring.program
    arithmetic = IntervalArithmetic(scan.semiring, scan.dtypes, absorbing(scan.semiring, scan.dtypes))
    grows = not {e.op for e in nodes(*program.add)} <= CHOOSING - {"and", "or", "xor"}

    def product(left: list[Range], right: list[Range], terms: int) -> list[Range]:
        total = arithmetic.evaluate(program.mul, left, right)
        return arithmetic.sum_of(total, terms) if grows and terms > 1 else total

    _compute_reach(scan, {name: ranges(part, scan.dtypes) for name, part in whole.items()}, product, either)


def _certify_floats(scan: _CheckedScan, whole: dict[str, Statistics]) -> None:
    """Refuse floats by the magnitudes of ⊗, if ⊕ only compares."""
    sizes = {name: tuple(magnitudes(part, scan.dtypes)) for name, part in whole.items()}
    rounded = tuple((name, tuple(map(_power_of_two, part))) for name, part in sizes.items())
    if not _fit_surely(scan._replace(steps=1 << scan.steps.bit_length(), states=1), rounded):
        _require_fit(scan, sizes)


def _power_of_two(size: float) -> float:
    return 2.0 ** math.ceil(math.log2(size)) if 0 < size < sys.float_info.max / 2 else size


Sizes = tuple[float, ...]
"""A magnitude for each component."""


@functools.lru_cache(maxsize=1024)
def _fit_surely(scan: _CheckedScan, sizes: tuple[tuple[str, Sizes], ...]) -> bool:
    """Return True if rounded-up magnitudes and steps fit; a cache of few round numbers covers most scans."""
    try:
        _require_fit(scan, dict(sizes))
    except OverflowRiskError:
        return False
    return True


def _require_fit(scan: _CheckedScan, sizes: dict[str, Sizes]) -> None:
    """Refuse magnitudes of operands with which so many steps could overflow."""
    ends = scan.semiring.carrier.bounds(scan.dtypes) or [None] * len(scan.dtypes)
    bounds = [max(map(abs, some or ()), default=math.inf) for some in ends]

    def product(left: Sizes, right: Sizes, _: int) -> Sizes:
        sizes = product_of_magnitudes(scan.semiring, scan.dtypes, left, right)
        return tuple(b if size > b else size for size, b in zip(sizes, bounds, strict=True))  # ⊗ of elements is an element

    def larger(x: Sizes, y: Sizes) -> Sizes:
        return tuple(math.nan if math.isnan(a + b) else max(a, b) for a, b in zip(x, y, strict=True))

    _compute_reach(scan, sizes, product, larger)


_ASSOCIATIVE = ("add", "mul", "min", "max", "and", "or", "xor")
"""Operations that make ⊗ associative, one in each component, even if the semiring breaks other laws."""

_ONE_BY_ONE = 64
"""Steps whose reach is computed one by one, without assuming that ⊗ is associative."""


def _compute_reach(
    scan: _CheckedScan, operands: dict[str, Reach], product: Callable[[Reach, Reach, int], Reach], union: Callable[[Reach, Reach], Reach]
) -> None:
    """Compute the reach of a scan's vectors, by `product` of two reaches, with sums of so many terms, which may refuse."""
    vector = operands["initial"]
    order = [(operands[name], terms) for name, terms in (("matrices", scan.states), ("weights", 1)) if name in operands]
    if scan.steps > _ONE_BY_ONE and all(is_operation(e, _ASSOCIATIVE, i) for i, e in enumerate(scan.semiring.program.mul)):
        step = product(order[0][0], order[1][0], 1) if len(order) > 1 else order[0][0]
        product(vector, repeated(step, scan.steps, lambda x, y: product(x, y, scan.states), union), scan.states)
        return
    for _ in range(scan.steps):
        before = vector
        for operand, terms in reversed(order) if scan.backward else order:
            vector = union(vector, product(operand, vector, terms) if scan.backward else product(vector, operand, terms))
        if vector == before:
            break
