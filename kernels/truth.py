"""Operations on truth values: two truth values have four pairs, so a table says all of any of them."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

from semiring.algebra.expression import Expr, const, node, var

__all__ = ["AND", "OR", "PAIRS", "XOR", "on_bytes", "truth_table"]

PAIRS = tuple(itertools.product((False, True), repeat=2))
OR, AND, XOR = (False, True, True, True), (False, False, False, True), (False, True, True, False)


def truth_table(function: Callable[[Any, Any], Any]) -> tuple[bool, ...]:
    """The truth values that a callable gives for each of `PAIRS`."""
    return tuple(bool(function(a, b)) for a, b in PAIRS)


def on_bytes(function: Callable[[Any, Any], Any]) -> Expr:
    """The expression on bytes 0 and 1 that agrees with a callable on truth values."""
    table = truth_table(function)
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
