"""How semirings and law reports show in Jupyter."""

from __future__ import annotations

from typing import TYPE_CHECKING

from semiring.algebra.expression import Expr, const, show
from semiring.algebra.laws import law, usual_dtypes
from semiring.common.errors import SemiringError, TraceError
from semiring.common.html import code, escape, faint, table

if TYPE_CHECKING:
    from semiring.algebra.definition import Semiring
    from semiring.algebra.equations import LawReport, LawResult

__all__ = ["report_html", "semiring_html"]

_COLOUR = {"passed": "#2e9e5b", "refuted": "#d9534f", "untested": "inherit"}
"""Green and red that can be read on white and on black."""


def semiring_html(semiring: Semiring) -> str:
    """What a semiring is: its operations as recorded, its identities, its carrier, and two of its properties."""
    rows = [
        ("a ⊕ b", _operation(semiring, "add")),
        ("a ⊗ b", _operation(semiring, "mul")),
        ("0", code(repr(semiring.zero))),
        ("1", code(repr(semiring.one))),
        ("a*", _star(semiring)),
        ("elements", code(semiring.carrier)),
        ("properties", _properties(semiring)),
    ]
    title = f"semiring {escape(semiring.name)}" + (" with witness" if semiring.witness else "")
    return table(title, ((faint(name), text) for name, text in rows))


def _expressions(roots: tuple[Expr, ...], components: int) -> str:
    text = ", ".join(show(e, components) for e in roots)
    return code(f"({text})" if components > 1 else text)


def _operation(semiring: Semiring, name: str) -> str:
    try:
        return _expressions(getattr(semiring.program, name), semiring.components)
    except TraceError as error:
        return faint(str(error))


def _star(semiring: Semiring) -> str:
    if semiring.star is None:
        return f"1 where 1 ⊕ a = 1 {faint('(elsewhere the closure diverges)')}"
    star = semiring.recorded("star")
    if star is None:
        return faint("a callable that cannot be recorded")
    text = _expressions(star.results, semiring.components)
    return text if star.undefined is const(False) else f"{text} unless {code(show(star.undefined, semiring.components))}"


def _properties(semiring: Semiring) -> str:
    kinds = usual_dtypes(semiring)
    found = []
    for name in ("idempotent", "selective"):
        try:
            result = law(semiring, kinds, name)
        except SemiringError as error:
            return faint(str(error))
        words = {"passed": name, "refuted": f"not {name}", "untested": f"{name}: untested"}[result.status]
        found.append(f"<span title='{escape(result.evidence)}'>{words}</span>")
    return ", ".join(found)


def report_html(report: LawReport) -> str:
    """A report of the laws, a row each."""

    def verdict(result: LawResult) -> str:
        colour = _COLOUR[result.status] if result.required or result.status != "refuted" else "inherit"
        return f"<span style='color:{colour};white-space:nowrap'>{result.mark} {escape(result.verdict)}</span>"

    return table(escape(report.summary), ((escape(r.law), escape(r.statement), verdict(r), faint(r.evidence)) for r in report))
