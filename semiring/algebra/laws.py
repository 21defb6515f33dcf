"""The check of a semiring's laws, its report, and the refusal of a semiring without a law that an algorithm needs."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np

from semiring.algebra.catalogue import as_semiring
from semiring.algebra.definition import Semiring
from semiring.algebra.equations import LAWS, PROPERTIES, LawResult, law
from semiring.algebra.model import model_of
from semiring.common.errors import LawError, raised_here
from semiring.common.html import escape, faint, table

__all__ = ["LawReport", "check", "is_idempotent", "is_selective", "require"]


_COLOUR = {"passed": "#2e9e5b", "refuted": "#d9534f", "untested": "inherit"}  # legible on white and on black


@dataclass(frozen=True, repr=False)
class LawReport:
    """The laws of a semiring in a dtype, each passed or refuted with a counterexample; `check` returns it.

    A report is true if no law is refuted. It can be iterated over, indexed by the name of a law, and printed.

    Examples
    --------
    >>> from semiring import MAX_MIN, check
    >>> report = check(MAX_MIN, "float64")
    >>> report.ok, report.refuted, report["idempotent"].status
    (True, (), 'passed')

    Attributes
    ----------
    semiring, dtypes : str
    elements : int
        The number of elements, tried in every combination.
    results : tuple of LawResult
    """

    semiring: str
    dtypes: str
    elements: int
    results: tuple[LawResult, ...]

    @property
    def ok(self) -> bool:
        """Return True if no law is refuted; properties do not count."""
        return not self.refuted

    @property
    def refuted(self) -> tuple[LawResult, ...]:
        """The refuted laws, without properties."""
        return tuple(r for r in self.results if r.required and not r)

    def __bool__(self) -> bool:
        return self.ok

    def __iter__(self) -> Iterator[LawResult]:
        return iter(self.results)

    def __len__(self) -> int:
        return len(self.results)

    @raised_here
    def __getitem__(self, law: str) -> LawResult:
        for result in self.results:
            if result.law == law:
                return result
        raise KeyError(f"{law!r}; the laws are {', '.join(repr(r.law) for r in self.results)}")

    @raised_here
    def raise_if_refuted(self) -> None:
        """Raise for the first refuted law.

        Raises
        ------
        LawError
            With the counterexample.
        """
        for r in self.refuted:
            raise LawError(f"{self.semiring} in {self.dtypes} is not a semiring: {r.law}: {r.statement} fails for {r.counterexample}")

    @property
    def summary(self) -> str:
        """The result in one line."""
        if self.refuted:
            return f"{self.semiring} in {self.dtypes} is not a semiring: {', '.join(r.law for r in self.refuted)} refuted"
        every = all(r.exhaustive for r in self.results if r.required and r.status == "passed")
        return f"{self.semiring} in {self.dtypes}: every law passed on {'all' if every else 'a sample of'} {self.elements} elements"

    def __repr__(self) -> str:
        return str(self)

    def __str__(self) -> str:
        rows = [(r.law, r.statement, r.verdict, r.evidence) for r in self.results]
        widths = [max(len(row[c]) for row in rows) for c in range(3)]
        cells = [[cell.ljust(w) for cell, w in zip(row, widths, strict=False)] for row in rows]
        lines = ("  ".join([r.mark, *row, r.evidence]).rstrip() for r, row in zip(self.results, cells, strict=True))
        return "\n".join([self.summary, *lines])

    def _repr_html_(self) -> str:
        rows = ((escape(r.law), escape(r.statement), self._coloured(r), faint(r.evidence)) for r in self)
        return table(escape(self.summary), rows)

    @staticmethod
    def _coloured(result: LawResult) -> str:
        colour = _COLOUR[result.status] if result.required or result.status != "refuted" else "inherit"
        return f"<span style='color:{colour};white-space:nowrap'>{result.mark} {escape(result.verdict)}</span>"


@raised_here
def check(semiring: Semiring | str, dtype: Any = None) -> LawReport:
    """Check each law of a semiring, with a counterexample for a refuted law, and some properties.

    Examples
    --------
    >>> import semiring as sr
    >>> def halfway(a, b):
    ...     return (a + b) / 2
    >>> mean = sr.Semiring("mean", min, halfway, zero=float("inf"), one=0)
    >>> report = sr.check(mean, "float64")
    >>> report.ok
    False
    >>> print(report["associative ⊗"].counterexample)
    a = 0.0, b = 0.0, c = 1.0: (a ⊗ b) ⊗ c = 0.5, but a ⊗ (b ⊗ c) = 0.25

    Parameters
    ----------
    semiring : Semiring or str
        A semiring, or a name in `semirings`.
    dtype : dtype or sequence of dtype, optional
        One for each component, or one for all. By default float64 if 0 is infinite, and otherwise the first that fits of
        float64, bool, int64 and object. An integer dtype writes ∞ as its largest value and −∞ as its smallest.

    Returns
    -------
    LawReport
        Readable as text and in Jupyter; true if no law is refuted. Carriers of more than 64 elements are sampled: *passed* is then
        evidence. *Refuted* is always a proof.

    Raises
    ------
    DTypeError
        If the semiring has no meaning in the dtype.
    TraceError
        If a callable cannot be recorded; ``dtype=object`` needs no recording.
    SemiringError
        If `semiring` is neither a semiring nor a name of one.
    """
    semiring = as_semiring(semiring)
    zero = semiring.zero if isinstance(semiring.zero, tuple) else (semiring.zero,)
    if dtype is None and all(isinstance(z, Real) for z in zero):
        _ = semiring.program  # numbers need a recording; a TraceError answers the question
        if any(math.isinf(z) for z in zero):
            dtype = np.float64  # an integer dtype would have an extreme value instead of ∞
    kinds = semiring.dtypes(semiring.usual_dtypes if dtype is None else dtype)
    model = model_of(semiring, kinds, semiring.running(kinds))
    results = tuple(law(semiring, kinds, name) for name in (*LAWS, *PROPERTIES) if name != "star" or semiring.star is not None)
    return LawReport(semiring.name, ", ".join(dict.fromkeys(map(str, kinds))), len(model.elements[0]), results)


def is_idempotent(semiring: Semiring, dtypes: Any = None) -> bool:
    """Return True if a ⊕ a = a (cached).

    >>> from semiring.algebra.catalogue import MIN_PLUS, PLUS_TIMES
    >>> is_idempotent(MIN_PLUS), is_idempotent(PLUS_TIMES)
    (True, False)
    """
    return law(semiring, dtypes, "idempotent").status == "passed"


def is_selective(semiring: Semiring, dtypes: Any = None) -> bool:
    """Return True if a ⊕ b is always a or b (cached).

    >>> from semiring.algebra.catalogue import BITSET, MIN_PLUS
    >>> is_selective(MIN_PLUS), is_selective(BITSET)
    (True, False)
    """
    return law(semiring, dtypes, "selective").status == "passed"


def require(semiring: Semiring, dtypes: Any, *laws: str, for_what: str, instead: str) -> None:
    """Refuse a semiring without the `laws` (of `LAWS` and `PROPERTIES`) that an algorithm needs.

    The `LawError` names the first law that did not pass, its counterexample, the algorithm (`for_what`) and the alternative (`instead`).

    >>> from semiring.algebra.catalogue import PLUS_TIMES
    >>> require(PLUS_TIMES, None, "idempotent", for_what="the recursive closure", instead="use method='blocked'")
    Traceback (most recent call last):
        ...
    semiring.common.errors.LawError: the recursive closure needs a ⊕ a = a (idempotent), which plus-times in float64 does not satisfy: ...
    """
    kinds = semiring.dtypes(semiring.usual_dtypes if dtypes is None else dtypes)
    for name in laws:
        result = law(semiring, kinds, name)
        if result.status == "passed":
            continue
        where = f"{semiring.name} in {', '.join(dict.fromkeys(map(str, kinds)))}"
        if result.status == "untested":
            problem = f"which could not be checked for {where}: {result.note}; state the carrier with domain=, or"
        else:
            problem = f"which {where} does not satisfy: {result.counterexample};{_narrower(semiring, kinds, laws)}"
        needed = "an operation ⊕ that picks one value, like min or max" if name == "selective" else result.statement
        raise LawError(f"{for_what} needs {needed} ({name}), {problem} {instead}")


def _narrower(semiring: Semiring, kinds: tuple[np.dtype[Any], ...], laws: tuple[str, ...]) -> str:
    """Advise to state the carrier, if none is given and the laws hold between 0 and 1."""
    ends = (semiring.zero, semiring.one)
    if semiring.domain is not None or not all(isinstance(v, Real) for v in ends) or ends[0] == ends[1]:
        return ""
    domain = (min(ends), max(ends))
    if any(law(semiring.narrowed(domain), kinds, name).status != "passed" for name in laws):
        return ""
    return f" from {domain[0]!r} to {domain[1]!r} it holds: if all elements are in this range, state domain={domain!r}; otherwise"
