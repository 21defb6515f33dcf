"""Whether what was recorded of a callable is what it computes: both are tried on the same scalars, Python's and NumPy's.

A recording sees values alone. A callable that asks for the type or the text of an operand, that draws random numbers, or that raises
for some elements, does something else with numbers than with the symbols it was recorded on.
"""

from __future__ import annotations

import itertools
import math
import operator
import random
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from semiring.algebra import ops
from semiring.algebra.expression import ARITHMETIC, BITWISE, REAL, Expr, fold, nodes, show
from semiring.common.errors import DivergenceError, DTypeError

if TYPE_CHECKING:
    from semiring.algebra.definition import Semiring

__all__ = ["around", "difference", "disagreements"]

Array = np.ndarray[Any, Any]

_ROUNDINGS = 64
"""How many roundings of the largest intermediate result two ways to compute the same may differ by: ``a ** 3`` is recorded as products."""

_CONSTANTS = 8
"""How many constants of a recording are tried, each with its neighbours."""

_FAR = 1 << 50
"""Constants beyond this have no neighbours among floats, or none at all."""

_BASIC = (0, 1, 2, -1, 0.5, 3, -2, 7, -0.5, 5, -3, 0.25, 10, 4, 6)
"""Simple numbers: the pairs of eight of them are tried."""

_FURTHER = (12.3, 57, -87.1, 1234.567, 0.001, 1 / 3, 40000, 65537, -123456, 0.9, 2.75, 1e-6)
"""Larger and less simple ones, of which a few pairs are tried."""

_PAIRS = 48

_PYTHONS = min, max, operator.and_, operator.or_, operator.xor
"""Operations of Python's that elements of every dtype have."""

_INTEGERS = 1 << 31
"""Integers below this in magnitude are tried: two have products that fit int64."""

_LARGEST = sys.float_info.max


def disagreements(semiring: Semiring) -> dict[str, str]:
    """Those of ``add``, ``mul`` and ``star`` whose recordings are not what the callables compute, each with the first difference.

    Tried on all pairs of eight elements, on pairs with each of the recorded constants and its neighbours, and on some of further numbers;
    as bool, int and float, of Python and of NumPy, as far as the semiring has a meaning in these dtypes. Python's own operations, which
    recordings are made of, need no trial.
    """
    found: dict[str, str] = {}
    for name in ("bool", "int64", "float64"):
        try:
            semiring.identities(name)
        except DTypeError:
            continue
        tried = [
            (operation, text)
            for operation, text in (("add", "a ⊕ b"), ("mul", "a ⊗ b"), ("star", "a*"))
            if operation not in found and semiring.recorded(operation) and not _is_pythons(getattr(semiring, operation), name)
        ]
        left, right = _pairs(semiring, np.dtype(name)) if tried else ((), ())
        for operation, text in tried:
            operands = (left, right) if operation != "star" else (tuple(map(np.concatenate, zip(left, right, strict=True))),)
            recording = semiring.recorded(operation)
            assert recording is not None
            undefined = semiring.program.star_undefined if operation == "star" else None
            differs = difference(
                getattr(semiring, operation), recording.results, operands, text=text, undefined=undefined, exists=semiring.carrier.admits
            )
            if differs is not None:
                found[operation] = f"{semiring.name}.{operation}: {differs}"
    return found


def _is_pythons(function: Any, dtype: str) -> bool:
    """Whether this is an operation of Python's that elements of a dtype have; True + True is 2 in Python."""
    return any(function is own for own in (_PYTHONS if dtype == "bool" else (*_PYTHONS, operator.add, operator.mul)))


def around(constants: Sequence[Any], largest: float = _FAR) -> list[Any]:
    """Numbers among recorded constants, and their neighbours: where an operation branches, it is there."""
    numbers = [c for c in dict.fromkeys(constants) if not isinstance(c, bool) and abs(c) <= largest]
    return list(dict.fromkeys(v for c in numbers[:_CONSTANTS] for v in (c, c - 1, c + 1)))


def _pairs(semiring: Semiring, dtype: np.dtype[Any]) -> tuple[tuple[Array, ...], tuple[Array, ...]]:
    """Elements to combine in a dtype: for both operands one array a component."""
    zero, one = (v if isinstance(v, tuple) else (v,) for v in (semiring.zero, semiring.one))
    shifts = "shl" in semiring.program.operations  # by so many places
    constants = around(semiring.program.every_constant, 1 << 10 if shifts else _FAR)
    pools = [_pool(part, constants, dtype) for part in semiring.carrier.parts]
    mixed = random.Random(0)

    def inside(element: tuple[Any, ...]) -> bool:
        try:
            return _fits(element, dtype) and semiring.carrier.contains(element if semiring.components > 1 else next(iter(element)))
        except Exception:  # a predicate need not expect every number
            return False

    def elements(values: list[list[Any]], most: int) -> list[tuple[Any, ...]]:
        """Some elements whose components are among some values."""
        every = [tuple(map(mixed.choice, values)) for _ in range(4 * most)] if len(values) > 1 else [(v,) for v in values[0]]
        return list(itertools.islice(filter(inside, dict.fromkeys(every)), most))

    own = [e for e in dict.fromkeys([zero, one]) if _fits(e, dtype)]
    basic = list(dict.fromkeys([*own, *elements([basic for basic, _, _ in pools], 12)]))[:8]
    marked = elements([near or basic for basic, near, _ in pools], 3 * _CONSTANTS) if constants else []
    further = elements([[*basic, *more] for basic, _, more in pools], 24) if not shifts else []
    pairs = list(itertools.product(basic, basic))
    pairs += [pair for m in marked for e in (*basic[:4], m) for pair in ((m, e), (e, m))]
    pairs += [(mixed.choice(further), mixed.choice(further)) for _ in range(_PAIRS if further else 0)]

    def columns(side: int) -> tuple[Array, ...]:
        return tuple(np.array([pair[side][c] for pair in pairs], dtype=dtype) for c in range(len(zero)))

    return columns(0), columns(1)


def _pool(part: Any, constants: list[Any], dtype: np.dtype[Any]) -> tuple[list[Any], list[Any], list[Any]]:
    """Values to try for one component: simple ones, those near constants, and others."""
    if dtype.kind == "b":
        return [False, True], [], []
    if isinstance(part, frozenset):
        members = list(itertools.islice((v for v in part if isinstance(v, int | float)), 32))
        return members[:8], [c for c in constants if c in part], members[8:]
    ends = [v for bound in (getattr(part, "low", None), getattr(part, "high", None)) if bound is not None for v in (bound, bound / 2)]
    return [*(v for v in ends if abs(v) <= _FAR), *_BASIC], constants, list(_FURTHER)


def _fits(element: tuple[Any, ...], dtype: np.dtype[Any]) -> bool:
    """Whether a dtype has the components; those of integers are small."""
    if dtype.kind == "b":
        return all(isinstance(v, bool) for v in element)
    if dtype.kind == "i":
        return all(abs(v) < _INTEGERS and v == int(v) for v in element)
    return all(abs(v) <= _FAR or math.isinf(v) for v in element)


@np.errstate(all="ignore")
def difference(
    function: Callable[..., Any],
    results: Sequence[Expr],
    operands: Sequence[Sequence[Array]],
    *,
    text: str,
    undefined: Expr | None = None,
    exists: Callable[[Sequence[Any]], bool] = lambda _: True,
) -> str | None:
    """Where a callable and its recording differ, in words; None where they agree.

    Not compared is where the callable raises OverflowError or TypeError, because Python's floats have no ∞ beyond their range, and no bits,
    and where an intermediate result is NaN.

    Parameters
    ----------
    function : callable
    results : sequence of Expr
        What was recorded, for each component of the result.
    operands : sequence of sequences of arrays of shape (m,)
        For each operand its components, all of dtype bool, int64 or float64: m calls of the callable with Python's scalars and as many
        with NumPy's.
    text : str
        What is computed: "a ⊗ b".
    undefined : Expr, optional
        Where the callable may raise ZeroDivisionError or `DivergenceError`, or give what does not exist.
    exists : callable
        Whether a result is one that may be.
    """
    kinds: list[Callable[[Array], list[Any]]] = [np.ndarray.tolist, list]  # Python's scalars, and NumPy's
    if any(e.op == "invert" for e in nodes(*results)) and operands[0][0].dtype.kind == "b":
        kinds = kinds[1:]  # ~True is −2 in Python
    try:
        recorded, missing, trusted, scale = _evaluated(results, undefined, operands)
    except OverflowError:  # a constant beyond every float, for object arrays
        return None
    width, expected = len(operands[0]), list(zip(*(r.tolist() for r in recorded), strict=True))
    for scalars in kinds:
        columns = [scalars(array) for part in operands for array in part]
        for i, parts in enumerate(zip(*columns, strict=True)):
            elements = parts if width == 1 else tuple(parts[k : k + width] for k in range(0, len(parts), width))
            try:
                called = function(*elements)
            except (OverflowError, TypeError):
                continue
            except Exception as error:  # whatever it is, the recording does not raise it
                if missing[i] and isinstance(error, ZeroDivisionError | DivergenceError):
                    continue
                return (
                    f"{text} raises {type(error).__name__} ({error}) for {_given(elements)}, which what is recorded cannot; write a branch "
                    f"for it (… if … else …), or state the carrier with domain= so that it has a value for all elements"
                )
            found = called if width > 1 and isinstance(called, tuple) else (called,)
            if found == expected[i] or (len(found) == len(results) and not trusted[i]):
                continue
            if len(found) == len(results) and all(_same(x, y, scale[i]) for x, y in zip(found, expected[i], strict=True)):
                continue
            if not (missing[i] and len(found) == len(results) and not exists(found)):
                return _described(function, elements, called, results, expected[i], text)
    return None


def _given(elements: Sequence[Any]) -> str:
    return ", ".join(f"{name} = {value!r}" for name, value in zip("ab", elements, strict=False))


def _described(
    function: Callable[..., Any], elements: Sequence[Any], called: Any, results: Sequence[Expr], recorded: Sequence[Any], text: str
) -> str:
    """What a callable gives for some elements, and what was recorded of it."""
    try:
        same = all(repr(function(*elements)) == repr(called) for _ in range(2))
    except Exception:  # whatever it is, the first call did not raise it
        same = False
    if not same:
        reason = "does not do the same every time (randomness, a global that changes)"
    else:
        reason = "asks for more than the values of its operands (their type, text or identity, or an error that not all numbers raise)"
    value = recorded[0] if len(recorded) == 1 else tuple(recorded)
    return (
        f"it was recorded as {', '.join(show(e, len(results)) for e in results)}, but the callable {reason}: {text} is {called!r} for "
        f"{_given(elements)}, and {value!r} as recorded; write a function of the values alone"
    )


def _evaluated(
    results: Sequence[Expr], undefined: Expr | None, operands: Sequence[Sequence[Array]]
) -> tuple[list[Array], Array, Array, Array]:
    """The recorded values, where they do not exist, where no intermediate one was NaN, and the largest finite magnitude on the way."""
    roots = [*results, *(() if undefined is None else (undefined,))]
    used = {e.op for e in nodes(*roots)}
    # ∞ and integers have their like among floats; their bits and remainders are exact only as Python's.
    exact = operands[0][0].dtype.kind == "i" and bool(used & (BITWISE | {"floordiv", "mod"}))
    kind = np.dtype(object) if exact else np.dtype(bool) if operands[0][0].dtype.kind == "b" else np.dtype(np.float64)
    sides = [[a.astype(kind) for a in part] for part in operands]
    shape = sides[0][0].shape
    trusted, scale = np.ones(shape, dtype=bool), np.ones(shape)

    def operation(op: str, args: list[Any]) -> Any:
        function = ops.TABLE[op]
        result = np.frompyfunc(function, len(args), 1)(*args) if exact else function(*args)
        trusted[...] &= ~np.isnan(_floats(result))
        for value in (*args, result) if op in ARITHMETIC | BITWISE | REAL else ():
            size = np.abs(_floats(value))
            np.fmax(scale, np.where(np.isfinite(size), size, 0), out=scale)
        return result

    found = [np.broadcast_to(np.asarray(v), shape) for v in fold(roots, sides[0], sides[-1], lambda value: value, operation)]
    missing = found.pop() if undefined is not None else np.zeros(shape, dtype=bool)
    return found, missing, trusted, scale


def _floats(value: Any) -> Array:
    """Numbers as floats, integers beyond those as the largest one."""
    array = np.asarray(value)
    if array.dtype == object:
        array = np.frompyfunc(lambda v: v if abs(v) < _LARGEST else math.copysign(_LARGEST, v), 1, 1)(array)
    return np.asarray(array, dtype=np.float64)


def _same(called: Any, recorded: Any, scale: float) -> bool:
    """Whether two numbers are equal, up to rounding."""
    try:
        if called == recorded:
            return True
        if isinstance(called, np.integer) and scale > np.iinfo(called.dtype).max:  # NumPy's integers wrap
            return True
        precision = np.finfo(called.dtype if isinstance(called, np.floating) else float).eps
        return bool(abs(float(called) - float(recorded)) <= _ROUNDINGS * precision * scale)
    except OverflowError:  # an integer beyond every float
        return math.isinf(recorded)
    except (TypeError, ValueError):
        return False
