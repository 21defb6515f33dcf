"""The campaign itself: a short one passes; planted faults are found, shrunk, and repeated by their line."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import semiring as sr
from semiring.product import Witnessed, matmul
from tests.campaign.__main__ import main
from tests.campaign.arithmetic import Near, rounded_table
from tests.campaign.cases import attempt, judged
from tests.campaign.contracted import Expression, contracted
from tests.campaign.formulas import of, var
from tests.campaign.lawful import catalogue
from tests.campaign.oracles import Algebra, product
from tests.campaign.runner import ENTRIES, case_of, complaint_of, investigate

ROOT = Path(__file__).parents[2]
SEED = 106


@pytest.fixture(autouse=True)
def _quiet():
    with np.errstate(all="ignore"):
        yield


@pytest.mark.exhaustive
def test_a_short_campaign_passes_and_tells_what_it_did():
    command = [sys.executable, "-m", "tests.campaign", "4", "--seed", str(SEED)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, encoding="utf-8")
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"python -m tests.campaign 4 --seed {SEED}" in done.stdout
    assert re.search(r"[\d,]+ cases in \d+ s, \d+ a second on 2 processes", done.stdout)
    assert "findings: 0" in done.stdout


def test_a_case_follows_from_its_number_alone():
    forward = [str(case_of(SEED, number)) for number in (0, 7, 450)]
    backward = [str(case_of(SEED, number)) for number in (450, 7, 0)]
    assert forward == backward[::-1]
    assert len({*forward, str(case_of(SEED + 1, 7))}) == 4


def _last_row_is_wrong(a, b, semiring, **options):
    """A product whose last row is that of the first where there are three and more, as of a kernel that loses its place."""
    found = matmul(a, b, semiring, **options)
    values = found.values if isinstance(found, Witnessed) else found
    for part in values if isinstance(values, tuple) else (values,):
        if isinstance(part, np.ndarray) and part.ndim == 2 and len(part) >= 3:
            part[-1] = part[0]
    return found


@pytest.mark.exhaustive
def test_a_wrong_product_is_found_shrunk_and_repeated_by_its_line(monkeypatch, capsys):
    monkeypatch.setattr(sr, "matmul", _last_row_is_wrong)
    number, case, complaint = next(
        (i, case, said) for i in range(400) if (case := case_of(SEED, i)).entry == "matmul" and (said := complaint_of(case)) is not None
    )
    assert complaint.kind == "values"
    finding = investigate(case, complaint, number)
    assert finding.complaint.kind == "values"
    assert re.search(r"^  a(?:\[0\])?: \w+ of shape \(3, ", finding.shrunk, re.MULTILINE)  # fewer rows do not fail
    assert "laid out C" in finding.shrunk

    line = ["--seed", str(SEED), "--case", str(number)]
    assert main(line) == 1
    assert finding.shrunk in capsys.readouterr().out
    monkeypatch.undo()
    assert main(line) == 0


@pytest.mark.parametrize(
    ("fault", "kind"),
    [(sr.OverflowRiskError("too large"), "refused OverflowRiskError"), (IndexError("list index out of range"), "raised IndexError")],
)
def test_a_refusal_without_a_reason_and_any_other_error_are_findings(monkeypatch, fault, kind):
    def refuse(*_, **__):
        raise fault

    monkeypatch.setattr(sr, "matmul", refuse)
    cases = (case_of(SEED, i) for i in range(400))
    kinds = {said.kind for case in cases if case.entry == "matmul" and (said := complaint_of(case)) is not None}
    assert kind in kinds


def test_what_has_to_be_refused_is_a_finding_where_it_is_not():
    found = attempt(lambda: 1)
    assert judged(found, {}) is None
    accepted = judged(found, {}, {sr.DomainError: "an entry is NaN"})
    assert accepted is not None
    assert accepted.kind == "accepted"
    refused = attempt(sr.matmul, np.array([[np.nan]]), np.ones((1, 1)), sr.MIN_PLUS)
    assert judged(refused, {}, {sr.DomainError: "an entry is NaN"}) is None


def test_products_by_definition_are_numpys():
    rng = np.random.default_rng(0)
    a, b = rng.integers(-3, 4, (5, 7)).astype(float), rng.integers(-3, 4, (7, 4)).astype(float)
    for name, want in (("PLUS_TIMES", a @ b), ("MIN_PLUS", (a[:, :, None] + b[None]).min(axis=1)), ("MAX_MIN", None)):
        algebra = Algebra(catalogue(name, "float64"))
        (found,), _ = product(algebra, algebra.lift((a,)), algebra.lift((b,)))
        expected = np.minimum(a[:, :, None], b[None]).max(axis=1) if want is None else want
        np.testing.assert_array_equal(found.value, expected)
        assert not np.any(found.error)


@pytest.mark.parametrize("subscripts", ["ij,jk->ik", "ij,jk", "ii->", "iij->j", "...i,i...->...", "a..., ...b->ba...", ",i,->i", "i,j,k->"])
def test_contractions_by_definition_are_numpys(subscripts: str) -> None:
    rng, algebra = np.random.default_rng(2), Algebra(catalogue("PLUS_TIMES", "int64"))
    terms = subscripts.partition("->")[0].replace(" ", "").split(",")
    shapes = [(3,) * (len(term.replace("...", "xy"))) for term in terms]
    arrays = [rng.integers(-3, 4, shape) for shape in shapes]
    (found,), _ = contracted(algebra, Expression.of(subscripts, shapes), [(v,) for v in arrays])
    np.testing.assert_array_equal(found, np.einsum(subscripts, *arrays))


@pytest.mark.parametrize("name", ["einsum", "pairwise", "matmul", "closure"])
def test_faults_of_new_entries_are_found(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """The last element is another one, whatever is computed."""
    entries = {
        "einsum": ["einsum"],
        "pairwise": ["metric", "formula"],
        "matmul": ["integers", "residues"],
        "closure": ["closure of residues"],
    }
    right = getattr(sr, name)

    def wrong(*operands: Any, **options: Any) -> Any:
        found = right(*operands, **options)
        if isinstance(found, np.ndarray) and found.size:
            found.flat[found.size - 1] = not found.flat[found.size - 1]
        return found

    monkeypatch.setattr(sr, name, wrong)
    for entry in entries[name]:
        cases = [ENTRIES[entry].draw(np.random.default_rng(i), catalogue("MIN_MAX", "float64"), "cpu") for i in range(40)]
        assert "values" in {said.kind for case in cases if case is not None and (said := complaint_of(case)) is not None}, entry


def test_bounds_of_rounding_hold_and_exact_arithmetic_has_none():
    rng = np.random.default_rng(1)
    table = rounded_table(np.dtype(np.float32))
    x, y = (rng.normal(size=1000).astype(np.float32) for _ in range(2))
    near = table["add"](table["mul"](Near(x.astype(float)), Near(y.astype(float))), Near(x.astype(float)))
    single = x * y + x
    assert (np.abs(single - near.value) <= near.errors() + np.abs(near.value) * 2.0**-24).all()
    whole = Near(rng.integers(-9, 9, 100) / 4)
    assert not np.any(table["add"](table["mul"](whole, whole), whole).error)


def test_the_text_of_a_formula_is_what_it_computes():
    formula = of("where", of("lt", var(0), var(1)), of("floordiv", of("sub", var(0), 7), -2), of("max", var(1), of("abs", var(0))))
    function = eval(f"lambda a, b: {formula.text()}")
    assert function(1, 5) == (1 - 7) // -2
    assert function(-5, -9) == 5
