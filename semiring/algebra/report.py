"""What a check of the laws found, readable as text and in Jupyter."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from semiring.algebra.errors import LawError

__all__ = ["Counterexample", "LawReport", "LawResult", "Status"]

Status = Literal["passed", "refuted", "untested"]


@dataclass(frozen=True)
class Counterexample:
    """Elements for which a law fails, with the values of its two sides.

    Attributes
    ----------
    elements : tuple of (name, value)
        The operands, e.g. ``(("a", 2), ("b", 0.5))``.
    left, right : value
        What the sides are; `right` is None where the law asks for something else than one value.
    left_text, right_text : str
        The sides as the law has them.
    """

    elements: tuple[tuple[str, Any], ...]
    left: Any
    left_text: str
    right: Any
    right_text: str

    def __str__(self) -> str:
        given = ", ".join(f"{name} = {value!r}" for name, value in self.elements)
        if isinstance(self.left, Exception):
            return f"{given}: {self.left_text} raises {type(self.left).__name__}: {self.left}"
        if self.right is None or self.right_text == repr(self.right):
            return f"{given}: {self.left_text} = {self.left!r}, which is not {self.right_text}"
        return f"{given}: {self.left_text} = {self.left!r}, but {self.right_text} = {self.right!r}"


@dataclass(frozen=True)
class LawResult:
    """What the check of one law, or of one property, found.

    Attributes
    ----------
    law : str
        Its name, e.g. "distributive from the left".
    statement : str
        The law itself.
    status : {"passed", "refuted", "untested"}
    counterexample : Counterexample or None
        Where the law is refuted.
    tolerance : float
        The relative difference of two sides that counts as rounding; 0 where the computation is exact.
    exhaustive : bool
        Whether this is a proof: every element was tried, or the law follows from how the operation is written.
    required : bool
        Whether every semiring has it. The others are properties, which some algorithms need.
    note : str
        Why it is untested.
    """

    law: str
    statement: str
    status: Status
    counterexample: Counterexample | None = None
    tolerance: float = 0.0
    exhaustive: bool = False
    required: bool = True
    note: str = ""

    def __bool__(self) -> bool:
        return self.status != "refuted"

    @property
    def verdict(self) -> str:
        """The status in words; a property holds or does not."""
        if self.required or self.status == "untested":
            return self.status
        return "holds" if self else "does not hold"

    @property
    def mark(self) -> str:
        """The status as a sign."""
        return "?" if self.status == "untested" else "✓" if self else "✗" if self.required else "–"

    @property
    def evidence(self) -> str:
        """What the status rests on."""
        if self.status == "untested":
            return self.note
        if self.counterexample is not None:
            return str(self.counterexample)
        return ("for every element" if self.exhaustive else "on a sample") + (f", up to {self.tolerance:.1g}" if self.tolerance else "")


@dataclass(frozen=True, repr=False)
class LawReport:
    """The laws of a semiring in a dtype, each passed or refuted with a counterexample.

    It is true if no law is refuted, can be iterated over, indexed by the name of a law, and printed.

    Attributes
    ----------
    semiring : str
    dtypes : str
    elements : int
        How many elements were tried, in every combination.
    results : tuple of LawResult
    """

    semiring: str
    dtypes: str
    elements: int
    results: tuple[LawResult, ...]

    @property
    def ok(self) -> bool:
        """Whether no law is refuted; properties do not count."""
        return not self.refuted

    @property
    def refuted(self) -> tuple[LawResult, ...]:
        """The laws that do not hold; properties do not count."""
        return tuple(r for r in self.results if r.required and not r)

    def __bool__(self) -> bool:
        return self.ok

    def __iter__(self) -> Iterator[LawResult]:
        return iter(self.results)

    def __len__(self) -> int:
        return len(self.results)

    def __getitem__(self, law: str) -> LawResult:
        for result in self.results:
            if result.law == law:
                return result
        raise KeyError(f"{law!r}; the laws are {', '.join(repr(r.law) for r in self.results)}")

    def raise_if_refuted(self) -> None:
        """Raise for the first refuted law.

        Raises
        ------
        LawError
            With the counterexample.
        """
        for r in self.refuted:
            raise LawError(f"{self.semiring} in {self.dtypes} is no semiring: {r.law}: {r.statement} fails for {r.counterexample}")

    @property
    def summary(self) -> str:
        """One line."""
        if self.refuted:
            return f"{self.semiring} in {self.dtypes} is no semiring: {', '.join(r.law for r in self.refuted)} refuted"
        every = all(r.exhaustive for r in self.results if r.required and r.status == "passed")
        return f"{self.semiring} in {self.dtypes}: every law passed on {'all' if every else 'a sample of'} {self.elements} elements"

    def __repr__(self) -> str:
        return str(self)

    def __str__(self) -> str:
        rows = [(r.law, r.statement, r.verdict, r.evidence) for r in self.results]
        widths = [max(len(row[c]) for row in rows) for c in range(3)]
        lines = [self.summary]
        for result, row in zip(self.results, rows, strict=True):
            lines.append("  ".join((result.mark, *(cell.ljust(w) for cell, w in zip(row, widths, strict=False)), row[3])).rstrip())
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        from semiring.algebra.views import report_html

        return report_html(self)
