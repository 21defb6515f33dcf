"""The operations ⊕, ⊗ and star of a semiring on NumPy arrays of any dtype, object included, and tables of truth values.

Truth values have four pairs, so a table of four results defines any operation on them. Matrices of the Boolean semiring are packed into
bits.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from semiring.algebra import ops
from semiring.algebra.carrier import Interval
from semiring.algebra.definition import Semiring
from semiring.algebra.elements import element
from semiring.algebra.expression import Expr, const, evaluate, node, var
from semiring.common.errors import DivergenceError, DTypeError, OverflowRiskError, SemiringError, brief
from semiring.kernels import cache
from semiring.kernels.limits import absorbing, own_infinities

__all__ = [
    "OR", "PAIRS", "Operations", "differ", "is_packed", "is_reachability", "is_sympy", "modulus_of", "on_bytes", "operations_for",
    "truth_table",
]  # fmt: skip

Values = Sequence[Any]

_TINY = 1e-9  # the largest value of an expression that counts as 0 despite rounding


class Operations:
    """The operations of a semiring on tuples of arrays, one for each component.

    `undecided` lists facts about SymPy's symbols that were assumed, since SymPy could not decide them.
    """

    def __init__(self, semiring: Semiring, dtypes: tuple[np.dtype[Any], ...]) -> None:
        self.semiring = semiring
        self.dtypes = dtypes
        self.undecided: set[str] = set()
        self.zero, self.one = semiring.identities(dtypes)
        self._table: dict[str, Callable[..., Any]] = dict(ops.TABLE)
        infinities = absorbing(semiring, dtypes)
        if infinities:
            self._table["add"] = _saturating_add(infinities)
        if any(d.kind == "O" for d in dtypes):
            self.add, self.mul = self._exact("add"), self._exact("mul")
        elif dtypes == (np.dtype(bool),):
            self.add, self.mul = _looked_up(semiring.program.add[0]), _looked_up(semiring.program.mul[0])
        else:
            self.add, self.mul = self._recorded(semiring.program.add), self._recorded(semiring.program.mul)

    def _recorded(self, expressions: tuple[Expr, ...]) -> Callable[[Values, Values], tuple[Any, ...]]:
        types = (*self.dtypes, np.dtype(bool))[: len(expressions)]  # the last may be a condition

        def apply(x: Values, y: Values) -> tuple[Any, ...]:
            shape = np.broadcast_shapes(*(np.shape(v) for v in (*x, *y)))
            results = evaluate(expressions, x, y, self._table, self._constant)
            if len(expressions) > 1:  # copies of operands, because a component's memory may be overwritten before another is read
                results = tuple(np.array(r) if e.op == "var" else r for e, r in zip(expressions, results, strict=True))
            return tuple(np.broadcast_to(np.asarray(r, dtype=d), shape) for r, d in zip(results, types, strict=True))

        return apply

    def _constant(self, value: Any) -> Any:
        """Convert a constant to the elements' common dtype, in which ±∞ and ~0 (all bits) have their integers."""
        kind = self.dtypes[0]
        return kind.type(element(value, kind, ordered=True)) if set(self.dtypes) == {kind} and kind.kind != "b" else value

    def _exact(self, operation: str) -> Callable[[Values, Values], tuple[Any, ...]]:
        """Apply the Python callable to every pair of elements; its recording, if any, to pairs with a SymPy expression."""
        width, function = self.semiring.components, getattr(self.semiring, operation)
        recorded = self.semiring.recordings.get(operation)

        def scalar(*parts: Any) -> Any:
            x, y = parts[:width], parts[width:]
            try:
                if recorded is not None and any(map(is_sympy, parts)):
                    result = evaluate(recorded.results, x, y, self._table)
                    return result if width > 1 else result[0]
                return function(x, y) if width > 1 else function(*parts)
            except SemiringError:
                raise
            except (OverflowError, TypeError, ValueError) as error:
                pair = f"{brief(parts[:width])} and {brief(parts[width:])} cannot be combined by {self.semiring.name}: {error}"
                if isinstance(error, OverflowError):  # Python cannot compare ∞ with an integer beyond the floats
                    raise OverflowRiskError(f"{pair}; use smaller integers, or a large one for ∞") from error
                raise DTypeError(f"{pair}; use entries of one kind") from error

        elementwise = np.frompyfunc(scalar, 2 * width, width)

        def apply(x: Values, y: Values) -> tuple[Any, ...]:
            result = elementwise(*x, *y)
            return result if width > 1 else (result,)

        return apply

    def harmless(self, pivot: Values) -> bool:
        """Return True if 1 ⊕ p = 1 for every pivot p."""
        total = self.add(self.one, pivot)
        return all(
            all(self._equal(t, one) for t in part.ravel()) if part.dtype.kind == "O" else bool(np.all(part == one))
            for part, one in zip(map(np.asarray, total), self.one, strict=True)
        )

    def _equal(self, total: Any, one: Any) -> bool:
        """Compare two entries; note in `undecided` if SymPy cannot tell, and assume that they are equal."""
        if not is_sympy(total) or total == one:
            return bool(total == one)
        try:
            decided = _is_zero(total - one)
        except (AttributeError, TypeError):  # SymPy's sets and truth values
            decided = None
        if decided is None and total.free_symbols:
            self.undecided.add(f"{total} = {one}")
            return True
        return bool(decided)

    def star(self, pivot: Values) -> tuple[Any, ...] | None:
        """Return p* for an array of pivots (one array for each component), or None if any pivot has no star."""
        if self.semiring.star is None:
            return tuple(np.asarray(o, dtype=d) for o, d in zip(self.one, self.dtypes, strict=True)) if self.harmless(pivot) else None
        shape = np.shape(pivot[0])
        if not any(d.kind == "O" for d in self.dtypes):
            program = self.semiring.program
            assert program.star is not None
            *results, undefined = self._recorded((*program.star, program.star_undefined))(pivot, ())
            return None if np.any(undefined) else tuple(results)
        stars = [self._star(tuple(p)) for p in zip(*(np.ravel(np.asarray(v)) for v in pivot), strict=True)]
        found = [s for s in stars if s is not None]
        if len(found) < len(stars):
            return None
        return tuple(np.fromiter((s[c] for s in found), dtype, len(found)).reshape(shape) for c, dtype in enumerate(self.dtypes))

    def _star(self, pivot: tuple[Any, ...]) -> tuple[Any, ...] | None:
        """Return p* of one element, or None."""
        assert self.semiring.star is not None
        recorded, carrier = self.semiring.recordings.get("star"), self.semiring.carrier
        if recorded is not None and any(map(is_sympy, pivot)):
            *symbolic, undefined = evaluate((*recorded.results, recorded.undefined), pivot, (), self._table)
            pole = type(undefined).__name__ == "Equality"
            if undefined == True or (pole and _is_zero(undefined.lhs - undefined.rhs)):  # noqa: E712  # SymPy's truth equals Python's
                return None
            if undefined != False and not pole:  # noqa: E712  # a possible pole is visible in the answer itself
                self.undecided.add(f"not ({undefined})")
            return tuple(symbolic) if carrier.admits(symbolic) else None
        if not carrier.admits(pivot):
            return None
        whole = all(isinstance(part, Interval) and part.whole for part in carrier.parts)
        exact = pivot if whole else tuple(Fraction(p) if isinstance(p, int) and not isinstance(p, bool) else p for p in pivot)
        try:
            with np.errstate(all="ignore"):
                result = self.semiring.star(exact if self.semiring.components > 1 else next(iter(exact)))
        except (ZeroDivisionError, DivergenceError):
            return None
        parts = result if isinstance(result, tuple) else (result,)
        return parts if carrier.admits(parts) else None


def operations_for(semiring: Semiring, dtypes: tuple[np.dtype[Any], ...]) -> Operations:
    """Return the operations in some dtypes: cached for numbers; new for objects, whose `undecided` belongs to one call."""
    return Operations(semiring, dtypes) if any(d.kind == "O" for d in dtypes) else _of_numbers(semiring, dtypes)


_of_numbers = functools.lru_cache(maxsize=cache.LOADED)(Operations)


def differ(x: Values, y: Values) -> Any:
    """Return the mask of elements that differ in a component."""
    return np.logical_or.reduce([np.asarray(a != b, dtype=bool) for a, b in zip(x, y, strict=True)])


def is_sympy(value: Any) -> bool:
    """Return True if a value is a SymPy expression, without an import of SymPy."""
    return type(value).__module__.startswith("sympy.")


def _is_zero(difference: Any) -> bool | None:
    """Return True if an expression is 0 for all symbols, False if for none, None if that depends or SymPy cannot tell."""
    if difference.is_zero is not None:
        return bool(difference.is_zero)
    # Simplification may take long: only expressions close to 0 at one point are simplified.
    symbols = sorted(difference.free_symbols, key=str)
    some = difference.subs({symbol: Fraction(7 + 2 * i, 5 + i) for i, symbol in enumerate(symbols)}).evalf()
    if some.is_number and abs(some) > _TINY:
        return None if symbols else False
    return True if difference.simplify().is_zero else None


def _saturating_add(infinities: tuple[int, ...]) -> Callable[[Any, Any], Any]:
    """Return an addition that gives ∞ if an operand is ∞ or the sum lies beyond ∞."""

    def add(x: Any, y: Any) -> Any:
        with np.errstate(over="ignore"):
            total = np.add(x, y)
            dtype = np.asarray(total).dtype
            for infinity in map(dtype.type, own_infinities(infinities, dtype)):
                x, y = (np.asarray(v, dtype=dtype) for v in (x, y))
                beyond = x > infinity - np.maximum(y, 0) if infinity > 0 else x < infinity - np.minimum(y, 0)
                total = np.where((x == infinity) | (y == infinity) | beyond, infinity, total)
        return total

    return add


PAIRS = tuple(itertools.product((False, True), repeat=2))
OR, AND, XOR = (False, True, True, True), (False, False, False, True), (False, True, True, False)


@functools.lru_cache(maxsize=256)
def truth_table(operation: Expr) -> tuple[bool, ...]:
    """Return the results of an operation for each of `PAIRS`."""
    (result,) = evaluate([operation], [np.array([a for a, _ in PAIRS])], [np.array([b for _, b in PAIRS])], ops.TABLE)
    return tuple(np.broadcast_to(np.asarray(result, dtype=bool), len(PAIRS)).tolist())


def on_bytes(operation: Expr) -> Expr:
    """Return the expression on bytes 0 and 1 that agrees with an operation on truth values."""
    table = truth_table(operation)
    known: dict[tuple[bool, ...], str] = {AND: "and", OR: "or", XOR: "xor"}
    if table in known:
        return node(known[table], var(0), var(1))
    result = const(0)
    for (a, b), true in zip(PAIRS, table, strict=True):
        if true:
            x = var(0) if a else node("xor", var(0), const(1))
            y = var(1) if b else node("xor", var(1), const(1))
            result = node("or", result, node("and", x, y))
    return result


def is_reachability(semiring: Semiring, dtypes: tuple[np.dtype[Any], ...]) -> bool:
    """Return True if ⊕ is "or" and ⊗ is "and" on truth values, whatever the semiring's name."""
    if dtypes != (np.dtype(bool),):
        return False
    program = semiring.program
    return truth_table(program.add[0]) == OR and truth_table(program.mul[0]) == AND


def is_packed(semiring: Semiring, dtypes: tuple[np.dtype[Any], ...], *, witness: bool) -> bool:
    """Return True if matrices are packed into bits. Bits have no room for a witness."""
    return not witness and is_reachability(semiring, dtypes)


@functools.lru_cache(maxsize=256)
def modulus_of(semiring: Semiring, dtypes: tuple[np.dtype[Any], ...]) -> int | None:
    """Return p if ⊕ and ⊗ are a sum and a product modulo p of the integers 0 … p − 1; else None."""
    if len(dtypes) != 1 or dtypes[0].kind not in "iu" or (p := semiring.program.modulus) is None:
        return None
    (part,) = semiring.carrier.parts
    if isinstance(part, frozenset):
        return p if len(part) == p and part == {*range(p)} else None
    return p if semiring.carrier.bounds(dtypes) == ((0, p - 1),) else None


def _looked_up(operation: Expr) -> Callable[[Values, Values], tuple[Any, ...]]:
    table = np.array(truth_table(operation))

    def apply(x: Values, y: Values) -> tuple[Any, ...]:
        return (table[2 * np.asarray(x[0], dtype=np.intp) + np.asarray(y[0], dtype=np.intp)],)

    return apply
