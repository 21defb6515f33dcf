"""Operations on truth values: two truth values have four pairs, so a table says all of any of them."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

__all__ = ["AND", "OR", "PAIRS", "XOR", "truth_table"]

PAIRS = tuple(itertools.product((False, True), repeat=2))
OR, AND, XOR = (False, True, True, True), (False, False, False, True), (False, True, True, False)


def truth_table(function: Callable[[Any, Any], Any]) -> tuple[bool, ...]:
    """The truth values that a callable gives for each of `PAIRS`."""
    return tuple(bool(function(a, b)) for a, b in PAIRS)
