"""The laws of a semiring, checked: each passed, or refuted with a counterexample.

A law is checked on every element of a small carrier, and elsewhere on a sample that the dtype holds exactly (see
`semiring.algebra.sampling`); where exp, log or division round, its sides may differ by 64 roundings.
"""

from __future__ import annotations

from functools import lru_cache
from numbers import Real
from typing import Any

import numpy as np

from semiring.algebra.definition import Semiring, require_semiring
from semiring.algebra.equations import LAWS, PROPERTIES, STATEMENTS, Counterexample, LawReport, LawResult, Status, Untested, refute
from semiring.algebra.model import model_of
from semiring.common.errors import DTypeError, LawError, SemiringError, TraceError

__all__ = ["LAWS", "PROPERTIES", "check", "is_idempotent", "is_selective", "law", "require", "selective_counterexample", "usual_dtypes"]


def check(semiring: Semiring, dtype: Any = None) -> LawReport:
    """Check every law of a semiring, and which properties it has.

    Parameters
    ----------
    semiring : Semiring
    dtype : dtype or sequence of dtype, optional
        One for each component (a single one serves all); by default the first that fits of float64, bool, int64 and object.

    Returns
    -------
    LawReport
        Readable as text and in Jupyter; true if every law passed. On carriers of more than 64 elements the laws are tried on a
        sample, so that *passed* there is evidence and not a proof; *refuted* always is one.

    Raises
    ------
    DTypeError
        Where the semiring has no meaning in the dtype.
    TraceError
        Where a callable cannot be recorded; with ``dtype=object`` it need not be.
    SemiringError
        Where `semiring` is none.

    Examples
    --------
    >>> mean = Semiring("mean", min, lambda a, b: (a + b) / 2, zero=float("inf"), one=0)
    >>> print(check(mean, "float64")["associative ⊗"].counterexample)
    a = 0.0, b = 0.0, c = 1.0: (a ⊗ b) ⊗ c = 0.5, but a ⊗ (b ⊗ c) = 0.25
    """
    require_semiring(semiring)
    zero = semiring.zero if isinstance(semiring.zero, tuple) else (semiring.zero,)
    if dtype is None and all(isinstance(z, Real) for z in zero):
        _ = semiring.program  # objects need no recording, but numbers do, and whoever names no dtype wants to hear that it fails
    kinds = semiring.dtypes(usual_dtypes(semiring) if dtype is None else dtype)
    model = model_of(semiring, kinds)
    results = tuple(law(semiring, kinds, name) for name in (*LAWS, *PROPERTIES) if name != "star" or semiring.star is not None)
    return LawReport(semiring.name, ", ".join(dict.fromkeys(map(str, kinds))), len(model.elements[0]), results)


def law(semiring: Semiring, dtypes: Any, name: str) -> LawResult:
    """The result for one of `LAWS` or `PROPERTIES` (cached).

    Parameters
    ----------
    semiring : Semiring
    dtypes : dtype or sequence of dtype or None
        One for each component; None for the usual ones.
    name : str

    Raises
    ------
    SemiringError
        Where there is no such law.
    """
    kinds = semiring.dtypes(usual_dtypes(semiring) if dtypes is None else dtypes)
    return _law(semiring, kinds, name, semiring.running(kinds))


@lru_cache(maxsize=4096)
def _law(semiring: Semiring, kinds: tuple[np.dtype[Any], ...], name: str, running: tuple[Any, ...]) -> LawResult:
    if name not in STATEMENTS:
        raise SemiringError(f"unknown law {name!r}; use one of {', '.join(map(repr, (*LAWS, *PROPERTIES)))}")
    required = name in LAWS
    if name in ("idempotent", "selective") and semiring.selects:
        return LawResult(name, STATEMENTS[name], "passed", exhaustive=True, required=required)
    model = model_of(semiring, kinds)
    tolerance = model.star_tolerance if name == "star" else 0.0 if name in ("closed", "selective") else model.tolerance
    found: Counterexample | None
    note = ""
    try:
        found = refute(model, name)
    except Untested as reason:
        found, note = None, str(reason)
    except Exception as error:  # a callable of objects may raise anything; "closed" shows for which elements
        if name == "closed" or not any(k.kind == "O" for k in kinds):
            raise
        found, note = None, f"a callable raises {type(error).__name__}: {error}"
    status: Status = "untested" if note else "passed" if found is None else "refuted"
    return LawResult(name, STATEMENTS[name], status, found, tolerance, model.exhaustive and not note, required, note)


def usual_dtypes(semiring: Semiring) -> tuple[np.dtype[Any], ...]:
    """The dtypes that are meant where none is given: the first that fits of float64, bool, int64 and object."""
    for name in ("float64", "bool", "int64"):
        kinds = semiring.dtypes(name)
        try:
            semiring.identities(kinds)
        except (DTypeError, TraceError):
            continue
        return kinds
    return semiring.dtypes(object)


def is_idempotent(semiring: Semiring, dtypes: Any = None) -> bool:
    """Whether a ⊕ a = a (cached).

    Examples
    --------
    >>> from semiring.algebra.catalogue import MIN_PLUS, PLUS_TIMES
    >>> is_idempotent(MIN_PLUS), is_idempotent(PLUS_TIMES)
    (True, False)
    """
    return law(semiring, dtypes, "idempotent").status == "passed"


def is_selective(semiring: Semiring, dtypes: Any = None) -> bool:
    """Whether a ⊕ b is always a or b (cached).

    Examples
    --------
    >>> from semiring.algebra.catalogue import BITSET, MIN_PLUS
    >>> is_selective(MIN_PLUS), is_selective(BITSET)
    (True, False)
    """
    return law(semiring, dtypes, "selective").status == "passed"


def selective_counterexample(semiring: Semiring) -> tuple[Any, Any, Any] | None:
    """Elements a and b with a ⊕ b, which is neither; None where ⊕ is selective."""
    found = law(semiring, None, "selective").counterexample
    return None if found is None else (found.elements[0][1], found.elements[1][1], found.left)


def require(semiring: Semiring, dtypes: Any, *laws: str, for_what: str, instead: str) -> None:
    """Refuse a semiring without the laws that an algorithm needs.

    Parameters
    ----------
    semiring : Semiring
    dtypes : dtype or sequence of dtype or None
        One for each component.
    *laws : str
        Names out of `LAWS` and `PROPERTIES`.
    for_what : str
        What needs them.
    instead : str
        What works without them.

    Raises
    ------
    LawError
        Naming the first law that did not pass, its counterexample, what needs it, and what would work.

    Examples
    --------
    >>> from semiring.algebra.catalogue import PLUS_TIMES
    >>> require(PLUS_TIMES, None, "idempotent", for_what="the recursive closure", instead="use method='blocked'")
    Traceback (most recent call last):
        ...
    semiring.common.errors.LawError: the recursive closure needs a ⊕ a = a (idempotent), which plus-times in float64 does not satisfy: ...
    """
    kinds = semiring.dtypes(usual_dtypes(semiring) if dtypes is None else dtypes)
    for name in laws:
        result = law(semiring, kinds, name)
        if result.status == "passed":
            continue
        where = f"{semiring.name} in {', '.join(dict.fromkeys(map(str, kinds)))}"
        if result.status == "untested":
            problem = f"which could not be checked for {where}: {result.note}; state the carrier with domain=, or"
        else:
            problem = f"which {where} does not satisfy: {result.counterexample};{_narrower(semiring, kinds, laws)}"
        raise LawError(f"{for_what} needs {result.statement} ({name}), {problem} {instead}")


def _narrower(semiring: Semiring, kinds: tuple[np.dtype[Any], ...], laws: tuple[str, ...]) -> str:
    """Advice to state the carrier, where none is and the laws hold between 0 and 1."""
    ends = (semiring.zero, semiring.one)
    if semiring.domain is not None or not all(isinstance(v, Real) for v in ends) or ends[0] == ends[1]:
        return ""
    domain = (min(ends), max(ends))
    if any(law(semiring.narrowed(domain), kinds, name).status != "passed" for name in laws):
        return ""
    return f" from {domain[0]!r} to {domain[1]!r} it holds: if all elements lie there, state domain={domain!r}; otherwise"
