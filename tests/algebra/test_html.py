"""What Jupyter shows: well-formed, escaped, and in the page's own colours."""

import xml.etree.ElementTree as ET

import pytest

from semiring.algebra.catalogue import MIN_PLUS, PLUS_TIMES, TROPICAL_ARGMIN, semirings
from semiring.algebra.definition import Semiring
from semiring.algebra.laws import check


def text_of(html):
    """The text of well-formed HTML."""
    return " ".join("".join(ET.fromstring(html).itertext()).split())


@pytest.mark.parametrize("name", sorted(semirings()))
def test_semirings_and_reports_are_well_formed(name):
    s = semirings()[name]
    assert f"semiring {name}" in text_of(s._repr_html_())
    report = check(s)
    shown = text_of(report._repr_html_())
    assert all(r.law in shown and r.statement in shown for r in report)


def test_a_semiring_shows_its_operations_and_properties():
    shown = text_of(MIN_PLUS._repr_html_())
    for part in ("min(a, b)", "a + b", "inf", "(−∞, ∞]", "idempotent, selective", "1 where 1 ⊕ a = 1"):
        assert part in shown
    shown = text_of(PLUS_TIMES._repr_html_())
    for part in ("1 / (1 - a) unless 1 - a == 0", "not idempotent, not selective"):
        assert part in shown
    assert "inf (in an integer dtype: its largest value)" in text_of(MIN_PLUS._repr_html_())
    assert "-inf (in an integer dtype: its smallest value)" in text_of(semirings()["max-plus"]._repr_html_())
    assert "integer" not in shown
    assert "with witness" in text_of(TROPICAL_ARGMIN._repr_html_())
    assert "(min(a[0], b[0]), " in text_of(semirings()["distance-hops"]._repr_html_())


def test_everything_is_escaped():
    evil = Semiring("<script>alert('&')</script>", min, lambda a, b: a if a < b else a + b, "<b>", "</td>", domain={"<b>", "</td>", "<i>"})
    for html in (evil._repr_html_(), check(evil, object)._repr_html_()):
        assert "<script>" not in html
        assert "<b>" not in html
        assert "<i>" not in html
        assert "&lt;script&gt;" in html
        ET.fromstring(html)


def test_what_cannot_be_recorded_says_why():
    s = Semiring("unions", lambda a, b: a.union(b), lambda a, b: a & b, frozenset(), frozenset({1}), star=lambda a: a.union({1}))
    shown = text_of(s._repr_html_())
    assert "unions.add: the attribute .union cannot be recorded" in shown
    assert "idempotent" in shown


def test_no_colour_hides_on_dark_or_light_pages():
    for html in (MIN_PLUS._repr_html_(), check(PLUS_TIMES)._repr_html_()):
        for colour in ("white", "black", "#fff", "#000"):
            assert colour not in html.replace("white-space", "")
    assert "color:#d9534f" in check(Semiring("bad", max, min, 5, 1))._repr_html_()
