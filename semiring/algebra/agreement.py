"""Comparison of a callable with its recording on the same scalars, Python's and NumPy's.

A recording depends on the values of the operands alone. A callable may also depend on their types or texts, draw random numbers, or raise
for some elements: then its recording computes something else.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from semiring.algebra import ops
from semiring.algebra.elements import LARGEST, Array
from semiring.algebra.expression import ARITHMETIC, BITWISE, REAL, Expr, fold, nodes, show
from semiring.common.errors import DivergenceError

__all__ = ["FAR", "ROUNDINGS", "around", "difference"]

ROUNDINGS = 64
"""Roundings of the largest intermediate result by which two computations of one value may differ: ``a ** 3`` is recorded as products."""

_CONSTANTS = 8  # the most constants of a recording that are tried, each with its neighbours

FAR = 1 << 50
"""The largest magnitude of a constant whose neighbours are tried: larger ones have none among floats."""


def around(constants: Sequence[Any], largest: float = FAR) -> list[Any]:
    """List recorded constants and their neighbours, where a branch changes the result."""
    numbers = [c for c in dict.fromkeys(constants) if not isinstance(c, bool) and abs(c) <= largest]
    return list(dict.fromkeys(v for c in numbers[:_CONSTANTS] for v in (c, c - 1, c + 1)))


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
    """Describe the first difference between a callable and its recording; None if they agree.

    `results` has the recorded expression of each component, `operands` the components of each operand: arrays of shape (m,) of bool, int64
    or float64. The callable runs m times with Python's scalars, and m times with NumPy's. `text` names the result: "a ⊗ b".

    Where the condition `undefined` holds, the callable may raise ZeroDivisionError or `DivergenceError`, or return a value for which
    `exists` is False. OverflowError and TypeError are skipped, because Python's floats raise where NumPy's overflow, and have no bits.
    Intermediate NaN is skipped too.
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
        # NumPy's integers wrap beyond this magnitude.
        largest = np.iinfo(np.int64).max if scalars is list and operands[0][0].dtype.kind == "i" else math.inf
        for i, parts in enumerate(zip(*columns, strict=True)):
            elements = parts if width == 1 else tuple(parts[k : k + width] for k in range(0, len(parts), width))
            try:
                called = function(*elements)
            except (OverflowError, TypeError):
                continue
            except Exception as error:  # a recording raises nothing
                if missing[i] and isinstance(error, ZeroDivisionError | DivergenceError):
                    continue
                return (
                    f"{text} raises {type(error).__name__} ({error}) for {_given(elements)}, but a recorded expression cannot raise; "
                    f"write a branch for this case (… if … else …), or state the carrier with domain= to exclude such elements"
                )
            found = called if width > 1 and isinstance(called, tuple) else (called,)
            if found == expected[i]:
                continue
            if len(found) == len(results):
                if not trusted[i] or scale[i] > largest or (missing[i] and not exists(found)):
                    continue
                if all(_same(x, y, scale[i]) for x, y in zip(found, expected[i], strict=True)):
                    continue
            return _described(function, elements, called, results, expected[i], text)
    return None


def _given(elements: Sequence[Any]) -> str:
    return ", ".join(f"{name} = {value!r}" for name, value in zip("ab", elements, strict=False))


def _described(
    function: Callable[..., Any], elements: Sequence[Any], called: Any, results: Sequence[Expr], recorded: Sequence[Any], text: str
) -> str:
    try:
        same = all(repr(function(*elements)) == repr(called) for _ in range(2))
    except Exception:  # the first call did not raise
        same = False
    if same:
        reason = "depends on more than the values of its operands (a type, text or identity, or an error that only some numbers raise)"
    else:
        reason = "gives another result each time (randomness, or a global that changes)"
    value = recorded[0] if len(recorded) == 1 else tuple(recorded)
    return (
        f"it was recorded as {', '.join(show(e, len(results)) for e in results)}, but the callable {reason}: {text} is {called!r} for "
        f"{_given(elements)}, and {value!r} as recorded; write a function of the values alone"
    )


def _evaluated(
    results: Sequence[Expr], undefined: Expr | None, operands: Sequence[Sequence[Array]]
) -> tuple[list[Array], Array, Array, Array]:
    """Return the recorded values, where they are undefined, where no intermediate value is NaN, and the largest finite magnitude so far."""
    roots = [*results, *(() if undefined is None else (undefined,))]
    used = {e.op for e in nodes(*roots)}
    # Floats represent ∞ and the tried integers; bits and remainders are exact only as Python's integers.
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
    """Convert numbers to floats; integers beyond every float become the largest float."""
    array = np.asarray(value)
    if array.dtype == object:
        array = np.frompyfunc(lambda v: v if abs(v) < LARGEST else math.copysign(LARGEST, v), 1, 1)(array)
    return np.asarray(array, dtype=np.float64)


def _same(called: Any, recorded: Any, scale: float) -> bool:
    try:
        if called == recorded:
            return True
        precision = np.finfo(called.dtype if isinstance(called, np.floating) else float).eps
        return bool(abs(float(called) - float(recorded)) <= ROUNDINGS * precision * scale)
    except OverflowError:  # an integer beyond every float
        return math.isinf(recorded)
    except (TypeError, ValueError):
        return False
