"""The laws that a closure needs, and whether they let it accumulate or make it eliminate."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from semiring.algebra.definition import Semiring
from semiring.algebra.errors import DTypeError
from semiring.algebra.expression import nodes
from semiring.algebra.laws import is_idempotent, require
from semiring.algebra.program import ARITHMETIC, REAL

__all__ = ["eliminates", "require_closure_laws"]

_LAWS = (
    "associative ⊕", "commutative ⊕", "0 is the identity of ⊕", "associative ⊗", "1 is the identity of ⊗", "0 annihilates",
    "left distributive", "right distributive",
)  # fmt: skip


def require_closure_laws(semiring: Semiring, dtypes: tuple[np.dtype[Any], ...], *, paths: bool) -> None:
    """Refuse a semiring for which a closure (with paths) means nothing.

    Raises
    ------
    LawError
        Naming the law, its counterexample, and what would work.
    DTypeError
        Where star divides, or may be ∞, and the elements are integers.
    """
    _require_closure_laws(semiring, dtypes, paths, semiring.running(dtypes))


@functools.lru_cache(maxsize=256)
def _require_closure_laws(semiring: Semiring, dtypes: tuple[np.dtype[Any], ...], paths: bool, running: tuple[Any, ...]) -> None:
    require(semiring, dtypes, *_LAWS, for_what="a closure", instead="multiply with matmul, which needs no laws, or mend the definition")
    if paths:
        require(semiring, dtypes, "selective", for_what="paths=True", instead="without paths the closure is defined: use paths=False")
    elif semiring.star is not None:
        _require_star_in(semiring, dtypes)
        require(semiring, dtypes, "star", for_what="a closure by elimination", instead="mend star, or leave it out")


def _require_star_in(semiring: Semiring, dtypes: tuple[np.dtype[Any], ...]) -> None:
    if any(d.kind == "O" for d in dtypes) or all(d.kind not in "iu" for d in dtypes):
        return
    used = sorted(REAL & {e.op for e in nodes(*(semiring.program.star or ()))})
    zero = semiring.zero if isinstance(semiring.zero, tuple) else (semiring.zero,)
    for c, (star, low) in enumerate(zip(semiring.program.star or (), zero, strict=False)):
        infinite = {e.args[0] for e in nodes(star) if e.op == "const"} & semiring.carrier.infinite(c) - {low}
        if infinite and semiring.program.operations & ARITHMETIC:
            kinds = ", ".join(map(str, dtypes))
            raise DTypeError(f"the star of {semiring.name} may be {infinite.pop()}, which sums of {kinds} do not keep; use float64")
    if used:
        raise DTypeError(
            f"the star of {semiring.name} uses {used[0]!r}, which {', '.join(map(str, dtypes))} lacks; use float64, or an object array of "
            f"Fractions for exact results"
        )


def eliminates(semiring: Semiring, dtypes: tuple[np.dtype[Any], ...], *, paths: bool) -> bool:
    """Whether a closure eliminates with star(pivot); else it accumulates, as only an idempotent ⊕ can."""
    return not paths and (semiring.star is not None or not is_idempotent(semiring, dtypes))
