"""What a scan needs of its operands: that they hold elements, and that no vector on the way can leave its dtype.

The reach of the vectors is worked out step by step; where there are many, and ⊗ is seen to be associative, as that of a power of one step
by squaring, in as many evaluations as the number of steps has bits.
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
from semiring.kernels.limits import ValueStatistics, absorbing, inner_infinity, largest_beside, overflow_risk, tropical
from semiring.kernels.overflow.floats import magnitudes, product_of_magnitudes
from semiring.kernels.overflow.intervals import ARITHMETIC, IntervalArithmetic, Range
from semiring.kernels.overflow.products import depends_on_values, ranges
from semiring.kernels.overflow.statistics import surely_elements, value_statistics
from semiring.kernels.scans import ScanOperands

__all__ = ["check_scan"]

Reach = TypeVar("Reach")
Statistics = Sequence[ValueStatistics]
Values = tuple[Any, ...]

_AXES = {"matrices": 3, "weights": 2, "initial": 1}
"""Axes of an operand for one sequence."""


def check_scan(
    semiring: Semiring,
    dtypes: tuple[np.dtype[Any], ...],
    operands: ScanOperands,
    threads: int | None = None,
    *,
    backward: bool,
    refuse: bool = True,
) -> bool:
    """Whether a finite element could pull a sum with ∞ back from it (see `Engine.signed`), once what could go wrong is refused.

    What lies beyond the lengths of sequences does not count.

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
    # Something may be wrong with what no sequence has.
    longest = {name: _used(parts[name], operands, axes) for name, axes in (("matrices", 2), ("weights", 1)) if name in parts}
    used = {f"{name}{which}": part for name, some in longest.items() for which, part in some.items()}
    return _check(semiring, dtypes, {**used, "initial": parts["initial"]}, operands, threads, backward=backward, refuse=refuse)


def _check(
    semiring: Semiring,
    dtypes: tuple[np.dtype[Any], ...],
    parts: dict[str, Values],
    operands: ScanOperands,
    threads: int | None,
    *,
    backward: bool,
    refuse: bool,
) -> bool:
    """The same of operands, or of parts of them, by names that begin with the operand's."""
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
    """Components of one shape without the axes along which all of their entries repeat."""
    if 0 in values[0].shape:
        return values
    whole = tuple(slice(None) if any(steps) else slice(1) for steps in zip(*(v.strides for v in values), strict=True))
    return tuple(v[whole] for v in values)


def _used(values: Values, operands: ScanOperands, axes: int) -> dict[str, Values]:
    """What each sequence has of arrays with steps in front of so many axes, by what to call it."""
    if all(v.ndim <= axes or v.shape[-axes - 1] == 1 for v in values):
        return {"": values}
    whole = [namespace(v).broadcast_to(v, (*operands.batch, operands.steps, *v.shape[-axes:])) for v in values]
    each = ((index, slice(int(operands.lengths[index]))) for index in np.ndindex(*operands.batch))
    return {f" of sequence {', '.join(map(str, index))}": tuple(v[(*index, steps)] for v in whole) for index, steps in each}


def _certify_tropical(semiring: Semiring, dtype: np.dtype[Any], whole: dict[str, Statistics], steps: int, *, signed: bool) -> None:
    """Tropical integers: every sum of a vector, a matrix and weights in each step must stay on this side of half of ∞."""
    (infinity,) = absorbing(semiring, (dtype,))
    each = sum(whole[name][0].largest for name in ("matrices", "weights") if name in whole)
    reach = whole["initial"][0].largest + steps * each
    limit = largest_beside(inner_infinity(infinity), signed=signed)
    if reach > limit:
        what = f"{counted(steps, 'step')} may reach {reach}, and beside ∞ = {infinity} the library can tell entries up to {limit} from it"
        raise overflow_risk(semiring, [dtype], what)


def _certify_integers(
    semiring: Semiring, dtypes: tuple[np.dtype[Any], ...], whole: dict[str, Statistics], steps: int, states: int, *, backward: bool
) -> None:
    """Any other integers: by the intervals of all operations."""
    program = semiring.program
    arithmetic = IntervalArithmetic(semiring, dtypes, absorbing(semiring, dtypes))
    grows = not {e.op for e in nodes(*program.add)} <= CHOOSING - {"and", "or", "xor"}

    def product(left: list[Range], right: list[Range], terms: int) -> list[Range]:
        total = arithmetic.evaluate(program.mul, left, right)
        return arithmetic.sum_of(total, terms) if grows and terms > 1 else total

    operands = {name: ranges(part, dtypes) for name, part in whole.items()}
    _reach(semiring, operands, steps, states, product, lambda x, y: list(map(operator.or_, x, y)), backward=backward)


def _certify_floats(
    semiring: Semiring, dtypes: tuple[np.dtype[Any], ...], whole: dict[str, Statistics], steps: int, *, backward: bool
) -> None:
    """Floats whose ⊕ only compares: by the magnitudes of ⊗."""
    sizes = {name: tuple(magnitudes(part, dtypes)) for name, part in whole.items()}
    rounded = tuple((name, tuple(map(_power_of_two, part))) for name, part in sizes.items())
    if not _fit_surely(semiring, dtypes, rounded, 1 << steps.bit_length(), backward=backward):
        _require_fit(semiring, dtypes, sizes, steps, backward=backward)


def _power_of_two(size: float) -> float:
    """The least power of two from a magnitude on."""
    return 2.0 ** math.ceil(math.log2(size)) if 0 < size < sys.float_info.max / 2 else size


Sizes = tuple[float, ...]
"""A magnitude for each component."""


@functools.lru_cache(maxsize=1024)
def _fit_surely(
    semiring: Semiring, dtypes: tuple[np.dtype[Any], ...], sizes: tuple[tuple[str, Sizes], ...], steps: int, *, backward: bool
) -> bool:
    """Whether magnitudes and steps are fine, also somewhat larger ones: what is known of a few round numbers holds for most scans."""
    try:
        _require_fit(semiring, dtypes, dict(sizes), steps, backward=backward)
    except OverflowRiskError:
        return False
    return True


def _require_fit(semiring: Semiring, dtypes: tuple[np.dtype[Any], ...], sizes: dict[str, Sizes], steps: int, *, backward: bool) -> None:
    """Refuse magnitudes of operands from which so many steps could overflow."""
    bounds = [max(map(abs, ends), default=math.inf) for ends in _carrier_ends(semiring, dtypes)]

    def product(left: Sizes, right: Sizes, _: int) -> Sizes:
        sizes = product_of_magnitudes(semiring, dtypes, left, right)
        return tuple(b if size > b else size for size, b in zip(sizes, bounds, strict=True))  # ⊗ of elements is an element

    def either(x: Sizes, y: Sizes) -> Sizes:
        return tuple(math.nan if math.isnan(a + b) else max(a, b) for a, b in zip(x, y, strict=True))

    _reach(semiring, sizes, steps, 1, product, either, backward=backward)


def _carrier_ends(semiring: Semiring, dtypes: tuple[np.dtype[Any], ...]) -> list[tuple[float, ...]]:
    """The ends of each component of the carrier; none where it has none, or it is no interval."""
    found = semiring.carrier.bounds(dtypes)
    return [() for _ in dtypes] if found is None else [() if ends is None else ends for ends in found]


_ASSOCIATIVE = ("add", "mul", "min", "max", "and", "or", "xor")
"""Operations of which a ⊗ that is one of them in each component is associative, whatever else is wrong with a semiring."""

_ONE_BY_ONE = 64
"""Steps whose reach is worked out one by one, without an assumption."""


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
    """What the vectors of a scan reach; `product` tells that of a product of two, with sums of so many terms."""
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
    """The reach of products of one to so many steps."""
    total, power = None, step
    while True:
        if steps & 1:
            total = power if total is None else either(either(total, power), product(total, power))
        steps >>= 1
        if not steps:
            assert total is not None
            return total
        power = either(power, product(power, power))
