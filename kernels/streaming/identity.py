"""What tells one closure from another."""

from __future__ import annotations

import hashlib
import zlib
from typing import Any

import numpy as np

from semiring.algebra.definition import Semiring
from semiring.algebra.expression import Expr, nodes
from semiring.kernels.devices import is_gpu
from semiring.kernels.streaming.storage import Rows

__all__ = ["closure_of", "fingerprint"]

_SAMPLE = 16
"""Rows of a matrix that tell it from another one."""


def closure_of(given: tuple[Rows, ...], semiring: Semiring, *, reflexive: bool, paths: bool, device: str) -> dict[str, Any]:
    """All that has to be the same for one process to go on with another one's closure, but the entries, in what JSON can keep."""
    dtypes = tuple(g.dtype for g in given)
    halved = is_gpu(device) and any(d.kind in "iu" for d in dtypes)
    return {
        "n": given[0].shape[0],
        "dtypes": [str(d) for d in dtypes],
        "semiring": semiring.name,
        "operations": _digest(semiring, dtypes),
        "reflexive": reflexive,
        "paths": paths,
        "form of elements": "as on a GPU" if halved else "their own",
    }


def _digest(semiring: Semiring, dtypes: tuple[np.dtype[Any], ...]) -> str:
    """What ⊕ and ⊗ do, and their identities, whatever the semiring is called."""
    roots, number = (*semiring.program.add, *semiring.program.mul), dict[Expr, int]()
    lines = [repr(semiring.identities(dtypes))]
    for expr in nodes(*roots):
        number[expr] = len(number)
        lines.append(f"{expr.op} {[number[a] if isinstance(a, Expr) else repr(a) for a in expr.args]}")
    lines.append(repr([number[root] for root in roots]))
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:16]


def fingerprint(given: tuple[Rows, ...]) -> str:
    """The CRC-32 of some rows. It tells one input from another, not every change of one entry."""
    crc, n = 0, given[0].shape[0]
    for row in dict.fromkeys(np.linspace(0, n - 1, _SAMPLE).astype(int).tolist()):
        for matrix in given:
            entries = np.empty((1, n), matrix.dtype)
            matrix.read(slice(row, row + 1), entries)
            crc = zlib.crc32(entries.tobytes(), crc)
    return f"{crc:08x}"
