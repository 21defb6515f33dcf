"""Integers in a closure: it runs only where no sum can wrap, or where its result proves afterwards that none did.

One rule for each kind of semiring:

- only comparisons and bit operations (max-min, sets): nothing can wrap;
- tropical (min-plus, max-plus), where no weight pulls ∞ back: run, then check that the largest result plus the largest weight stays
  below the inner ∞, which is half of the dtype's largest value: had a sum reached it, an earlier one would show;
- tropical with negative weights: three times the weight of a longest path must stay below the inner ∞, and what lies beyond
  one such path afterwards is ∞ that a negative weight pulled back;
- sums, component by component, of which ⊕ selects one: the same bound beforehand;
- any other ⊗ under min or max: entries only move from input to result, so the product of that range with itself must fit;
- all others are refused.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from semiring.algebra.definition import Semiring
from semiring.algebra.errors import OverflowRiskError
from semiring.algebra.expression import chooses_operand, node, nodes, var
from semiring.algebra.laws import is_selective
from semiring.kernels.bounds import Interval, certify_product, finite_range, wider
from semiring.kernels.infinities import absorbing, crosses_infinity, tropical

__all__ = ["Guard", "guard_for"]

Array = np.ndarray[Any, Any]
Values = tuple[Array, ...]

_HARMLESS = {"var", "const", "min", "max", "where", "not", "and", "or", "xor", "invert", "lt", "le", "gt", "ge", "eq", "ne"}
_BLOCK = 1 << 20


class Guard(Protocol):
    """What is checked before and after a closure; `signed` is the engine's attribute of that name."""

    signed: bool

    def before(self, values: Values) -> None:
        """Refuse a matrix whose closure could wrap."""

    def after(self, values: Values, via: Array | None) -> None:
        """Refuse a result that may have wrapped, and mend what is meant to be ∞."""


def guard_for(semiring: Semiring, dtypes: tuple[np.dtype[Any], ...], edges: int) -> Guard:
    """The rule for a semiring in some dtypes.

    Parameters
    ----------
    semiring : Semiring
    dtypes : tuple of numpy.dtype
    edges : int
        How many edges a simple path may have: n − 1, or n with cycles.

    Raises
    ------
    OverflowRiskError
        Where nothing could be promised.
    """
    if all(d.kind not in "iu" for d in dtypes) or any(d.kind == "O" for d in dtypes):
        return _Unbounded()
    program = semiring.program
    if {e.op for e in nodes(*program.add, *program.mul)} <= _HARMLESS:
        return _Unbounded()
    if tropical(semiring, dtypes):
        return _Tropical(semiring, dtypes[0], edges)
    sums = all(m in (node("add", var(0, c), var(1, c)), node("add", var(1, c), var(0, c))) for c, m in enumerate(program.mul))
    if sums and is_selective(semiring, dtypes):
        return _Sums(semiring, dtypes, edges)
    if len(dtypes) == 1 and chooses_operand(program.add[0]) and program.add[0].op in ("min", "max"):
        return _Between(semiring, dtypes)
    raise OverflowRiskError(
        f"the closure of {semiring.name} over {', '.join(map(str, dtypes))} cannot be kept from overflowing; use float64, or object arrays "
        f"of exact numbers"
    )


class _Unbounded:
    """Elements that cannot wrap."""

    signed = False

    def before(self, values: Values) -> None:
        pass

    def after(self, values: Values, via: Array | None) -> None:
        pass


class _Tropical:
    """Single integers of which ⊕ takes the minimum (maximum) and ⊗ the sum."""

    def __init__(self, semiring: Semiring, dtype: np.dtype[Any], edges: int) -> None:
        self.semiring, self.dtype, self.edges = semiring, dtype, edges
        (self.infinity,) = absorbing(semiring, (dtype,))
        self.half = abs(self.infinity // 2)
        self.signed = False
        self.largest = 0

    def before(self, values: Values) -> None:
        found = _range(values[0], (self.infinity,))
        if found is None:
            return
        self.largest = _magnitude(found)
        self.signed = crosses_infinity(self.infinity, found)
        bound = 3 * self.edges * self.largest if self.signed else self.largest
        if max(bound, self.largest) >= self.half:
            beyond = f"; with {self.edges} edges a path, three of them could reach {bound}" if self.signed else ""
            raise OverflowRiskError(
                f"{self.semiring.name} in {self.dtype}: finite weights reach {self.largest}{beyond}, and the library can tell sums "
                f"from ∞ below {self.half}; use {wider(self.dtype)}"
            )

    def after(self, values: Values, via: Array | None) -> None:
        if self.signed:
            self._restore_infinity(values[0], via)
            return
        found = _range(values[0], (self.infinity,))
        longest = 0 if found is None else _magnitude(found)
        if longest + self.largest >= self.half:
            raise OverflowRiskError(
                f"{self.semiring.name} in {self.dtype}: a path of weight {longest} and an edge of {self.largest} reach {self.half}, from "
                f"where on the library cannot tell sums from ∞; use {wider(self.dtype)}"
            )

    def _restore_infinity(self, values: Array, via: Array | None) -> None:
        """What is beyond the longest path is ∞ that a weight pulled back, and no path at all."""
        limit = self.edges * self.largest
        for start in range(0, len(values), step := max(1, _BLOCK // len(values))):
            rows = values[start : start + step]
            none = rows > limit if self.infinity > 0 else rows < -limit
            rows[none] = self.infinity
            if via is not None:
                via[start : start + step][none] = -1


class _Sums:
    """Elements whose components add up, of which ⊕ selects one."""

    signed = False

    def __init__(self, semiring: Semiring, dtypes: tuple[np.dtype[Any], ...], edges: int) -> None:
        self.semiring, self.dtypes, self.edges = semiring, dtypes, edges

    def before(self, values: Values) -> None:
        infinities = absorbing(self.semiring, self.dtypes)
        for array, dtype in zip(values, self.dtypes, strict=True):
            found = _range(array, infinities) if dtype.kind in "iu" else None
            half = np.iinfo(dtype).max // 2 if dtype.kind in "iu" else 0
            if found is not None and 3 * self.edges * _magnitude(found) >= half:
                raise OverflowRiskError(
                    f"{self.semiring.name} in {dtype}: weights reach {_magnitude(found)}, so that three paths of {self.edges} edges "
                    f"could reach {3 * self.edges * _magnitude(found)}, beyond {half}; use {wider(dtype)}"
                )

    def after(self, values: Values, via: Array | None) -> None:
        pass


class _Between:
    """A minimum or maximum of anything: entries move one way, so the input and the result bound all that was multiplied."""

    signed = False

    def __init__(self, semiring: Semiring, dtypes: tuple[np.dtype[Any], ...]) -> None:
        self.semiring, self.dtypes = semiring, dtypes
        self.input: Interval | None = None

    def before(self, values: Values) -> None:
        self.input = self._range(values)

    def after(self, values: Values, via: Array | None) -> None:
        ranges = [r for r in (self.input, self._range(values)) if r is not None]
        if ranges:
            hull = (np.array([[min(r[0] for r in ranges), max(r[1] for r in ranges)]], dtype=self.dtypes[0]),)
            certify_product(self.semiring, self.dtypes, hull, hull, None, 1)

    def _range(self, values: Values) -> Interval | None:
        return _range(values[0], absorbing(self.semiring, self.dtypes))


def _range(values: Array, infinities: tuple[int, ...]) -> Interval | None:
    """The least and the greatest finite entry, looked at by blocks of rows, which take no copy of a whole view."""
    found = []
    for start in range(0, len(values), step := max(1, _BLOCK // len(values))):
        part = finite_range(values[start : start + step], infinities)
        if part is not None:
            found.append(part)
    return (min(f[0] for f in found), max(f[1] for f in found)) if found else None


def _magnitude(interval: Interval) -> int:
    return int(max(map(abs, interval)))
