"""Recognize the Boolean semiring, whose matrices are packed into bits.

Truth values have four pairs, so a table of four results defines any operation on them.
"""

from __future__ import annotations

import functools
import itertools
from typing import Any

import numpy as np

from semiring.algebra import ops
from semiring.algebra.definition import Semiring
from semiring.algebra.expression import Expr, const, evaluate, node, var

__all__ = ["OR", "PAIRS", "is_packed", "is_reachability", "on_bytes", "truth_table"]

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
