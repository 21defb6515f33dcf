"""Which integers stand for an infinite zero."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from semiring.algebra.definition import Semiring

__all__ = ["absorbing"]


def absorbing(semiring: Semiring, dtypes: tuple[np.dtype[Any], ...]) -> tuple[int, ...]:
    """The integers that stand for an infinite zero: a sum with one of them is it again, never a wrapped number."""
    raw = semiring.zero if isinstance(semiring.zero, tuple) else (semiring.zero,)
    zero, _ = semiring.identities(dtypes)
    values = {z for r, z, d in zip(raw, zero, dtypes, strict=True) if d.kind in "iu" and isinstance(r, float) and math.isinf(r)}
    return tuple(sorted(values))
