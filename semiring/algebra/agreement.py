"""Whether what was recorded of a callable is what it computes: both are tried on the same scalars, Python's and NumPy's.

A recording sees values alone. A callable that asks for the type or the text of an operand, that draws random numbers, or that raises
for some elements, does something else with numbers than with the symbols it was recorded on.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from semiring.algebra import ops
from semiring.algebra.errors import DivergenceError
from semiring.algebra.expression import Expr, fold, nodes, show
from semiring.algebra.program import BITWISE

__all__ = ["difference"]

Array = np.ndarray[Any, Any]

_ROUNDINGS = 64
"""How many roundings of the largest intermediate result two ways to compute the same may differ by: ``a ** 3`` is recorded as products."""


@np.errstate(all="ignore")
def difference(
    function: Callable[..., Any],
    results: Sequence[Expr],
    operands: Sequence[Sequence[Array]],
    *,
    text: str,
    undefined: Expr | None = None,
) -> str | None:
    """Where a callable and its recording differ, in words; None where they agree.

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
        Where the callable may raise ZeroDivisionError or `DivergenceError`, or give what is not finite.
    """
    roots = [*results, *((undefined,) if undefined is not None else ())]
    recorded, trusted, scale = _evaluated(roots, operands)
    missing = recorded.pop() if undefined is not None else np.zeros(trusted.shape, dtype=bool)
    width = len(operands[0])
    expected = list(zip(*(r.tolist() for r in recorded), strict=True))
    for scalars in (np.ndarray.tolist, list):  # Python's and NumPy's
        columns = [scalars(array) for part in operands for array in part]
        for i, parts in enumerate(zip(*columns, strict=True)):
            elements = parts if width == 1 else tuple(parts[k : k + width] for k in range(0, len(parts), width))
            try:
                called = function(*elements)
            except (OverflowError, TypeError):  # Python's floats have no ∞ beyond their range, and no bits: there is nothing to compare
                continue
            except Exception as error:  # whatever it is, the recording does not raise it
                if missing[i] and isinstance(error, ZeroDivisionError | DivergenceError):
                    continue
                return (
                    f"{text} raises {type(error).__name__} ({error}) for {_given(elements)}, which what is recorded cannot; state the "
                    f"carrier with domain= so that it has a value everywhere, or write a branch for the exception"
                )
            found = called if width > 1 and isinstance(called, tuple) else (called,)
            if found == expected[i] or (len(found) == len(results) and not trusted[i]):
                continue
            if len(found) == len(results) and all(_same(x, y, scale[i]) for x, y in zip(found, expected[i], strict=True)):
                continue
            if missing[i] and not all(map(_finite, found)):
                continue
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
        reason = "asks for more than the values of its operands (their type, text or identity)"
    value = recorded[0] if len(recorded) == 1 else tuple(recorded)
    return (
        f"it was recorded as {', '.join(show(e, len(results)) for e in results)}, but the callable {reason}: {text} is {called!r} for "
        f"{_given(elements)}, and {value!r} as recorded; write a function of the values alone"
    )


def _evaluated(roots: Sequence[Expr], operands: Sequence[Sequence[Array]]) -> tuple[list[Array], Array, Array]:
    """The recorded values, where no intermediate result was NaN, and the largest finite magnitude of those."""
    arrays = [array for part in operands for array in part]
    # ∞ and large integers have their like among floats; bits have not.
    bits = any(e.op in BITWISE for e in nodes(*roots))
    left, right = ([a if bits or a.dtype.kind == "b" else a.astype(np.float64) for a in part] for part in (*operands, ())[:2])
    trusted, scale = np.ones(arrays[0].shape, dtype=bool), np.ones(arrays[0].shape)

    def noted(value: Any) -> Any:
        nonlocal trusted, scale
        number = np.asarray(value, dtype=np.float64)
        trusted = trusted & ~np.isnan(number)
        scale = np.fmax(scale, np.abs(np.where(np.isfinite(number), number, 0)))
        return value

    found = fold(roots, [noted(v) for v in left], [noted(v) for v in right], noted, lambda op, args: noted(ops.TABLE[op](*args)))
    return [np.broadcast_to(np.asarray(v), trusted.shape) for v in found], trusted, scale


def _same(called: Any, recorded: Any, scale: float) -> bool:
    """Whether two numbers are equal, up to rounding."""
    try:
        if called == recorded:
            return True
        if isinstance(called, np.integer) and scale > np.iinfo(called.dtype).max:  # NumPy's integers wrap
            return True
        return bool(abs(float(called) - float(recorded)) <= _ROUNDINGS * np.finfo(float).eps * scale)
    except OverflowError:  # integers beyond every float
        return True
    except (TypeError, ValueError):
        return False


def _finite(value: Any) -> bool:
    return isinstance(value, int | float | np.number) and math.isfinite(value)
