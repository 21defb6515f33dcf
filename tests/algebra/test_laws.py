"""Wrong semirings are refuted with counterexamples that are true; right ones of every shape pass."""

import math
from fractions import Fraction
from operator import add, mul

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from semiring.algebra import ops
from semiring.algebra.catalogue import BITSET, MAX_PLUS, MIN_PLUS, PLUS_TIMES
from semiring.algebra.definition import Semiring
from semiring.algebra.equations import LAWS, PROPERTIES, Counterexample, LawResult, law
from semiring.algebra.laws import LawReport, check, is_idempotent, is_selective, require
from semiring.common.errors import DTypeError, LawError, SemiringError, TraceError
from semiring.solve import closure

INF = math.inf

FAILS = {
    # name: (semiring, dtype, laws that must be refuted, laws that must not)
    "max-plus with 1e-38 as −∞": (
        Semiring("bad-max-plus", max, add, 1e-38, 0), "float32", {"0 is the identity of ⊕", "0 annihilates"}, {"associative ⊗"}),
    "the mean of two": (
        Semiring("mean", min, lambda a, b: (a + b) / 2, INF, 0), "float64",
        {"associative ⊗", "1 is the identity of ⊗"}, {"commutative ⊗", "0 annihilates", "left distributive"}),
    "widest paths with negative widths": (
        Semiring("widest", max, min, 0, INF), "float64", {"0 is the identity of ⊕", "0 annihilates"}, {"left distributive"}),
    "max-times with negative numbers": (
        Semiring("max-times", max, mul, 0, 1), "int32", {"0 is the identity of ⊕", "left distributive"}, {"associative ⊗"}),
    "Łukasiewicz without its interval": (
        Semiring("luk", max, lambda a, b: max(a + b - 1, 0), 0, 1), "float64", {"1 is the identity of ⊗"}, {"closed"}),
    "both infinities": (Semiring("open", min, add, INF, 0, domain=(-INF, INF)), "float64", {"closed", "0 annihilates"}, {"associative ⊕"}),
    "subtraction": (
        Semiring("minus", max, lambda a, b: a - b, -INF, 0), "float64",
        {"associative ⊗", "1 is the identity of ⊗", "0 annihilates", "left distributive"}, {"associative ⊕", "commutative ⊕"}),
    "the first operand as sum": (
        Semiring("first", lambda a, b: a, mul, 0, 1), "float64",
        {"commutative ⊕", "0 is the identity of ⊕"}, {"associative ⊕", "idempotent"}),
    "min of sums": (
        Semiring("reversed", add, min, 0, INF, domain=(0, INF)), "float64", {"left distributive", "right distributive"}, {"closed"}),
    "probabilistic sum": (
        Semiring("noisy-or", lambda a, b: a + b - a * b, mul, 0, 1, domain=(0, 1)), "float64",
        {"left distributive"}, {"associative ⊕", "associative ⊗", "closed"}),
    "leaves its interval": (Semiring("leaves", max, add, 0, 0, domain=(0, 1)), "float64", {"closed"}, {"associative ⊗"}),
    "leaves its set": (Semiring("leaves", max, add, 0, 0, domain={0, 1, 2}), "int32", {"closed"}, {"associative ⊗"}),
    "leaves its predicate": (
        Semiring("leaves", max, lambda a, b: a + b - 1, 1, 1, domain=lambda a: a % 2 == 1 and a > 0), "float64",
        {"0 annihilates"}, {"closed", "0 is the identity of ⊕"}),
    "leaves its dtype": (Semiring("leaves", max, lambda a, b: a - b, 0, 0), "uint8", {"closed"}, {"associative ⊕"}),
    "a fraction among integers": (Semiring("odd", max, lambda a, b: a * b // 2, 0, 2), "int16", {"associative ⊗"}, {"closed"}),
    "a wrong star": (Semiring("star", add, mul, 0, 1, star=lambda a: 1 / (1 + a)), "float64", {"star"}, set(LAWS) - {"star"}),
    "a threshold": (
        Semiring("toll", min, lambda a, b: a + b if a < 1000 else a + b + 1, INF, 0), "float64",
        {"associative ⊗", "1 is the identity of ⊗"}, {"left distributive", "0 annihilates"}),
    "a threshold among integers": (
        Semiring("toll", min, lambda a, b: a + b if a + b < 81 else a + b + 1, INF, 0), "int16",
        {"associative ⊗"}, {"0 annihilates", "closed"}),
    "a threshold of one component": (
        Semiring("toll", min, lambda a, b: (a[0] + b[0] + (b[1] >= 50), a[1] + b[1]), (INF, INF), (0, 0)), "float64",
        {"1 is the identity of ⊗"}, {"0 annihilates", "associative ⊕"}),
    "Z/4 with a wrong product": (
        Semiring("z4", lambda a, b: (a + b) % 4, lambda a, b: (a * b + a * b * (b - 1)) % 4, 0, 1, domain={0, 1, 2, 3}), "uint8",
        {"1 is the identity of ⊗"}, {"associative ⊕", "closed"}),
    "pairs that add up wrongly": (
        Semiring("pairs", lambda a, b: (min(a[0], b[0]), a[1] + b[1]), lambda a, b: (a[0] + b[0], a[1] + b[1]), (INF, 0), (0, 0),
                 domain=((-1e300, INF), (0, 1e300))), "float64",
        {"0 annihilates"}, {"associative ⊕", "commutative ⊕"}),
    "objects": (Semiring("differences", lambda a, b: a ^ b, lambda a, b: a - b, frozenset(), frozenset({1}),
                         domain={frozenset(), frozenset({1})}), object, {"1 is the identity of ⊗"}, {"closed", "associative ⊕"}),
}  # fmt: skip


def _value(text, s, elements):
    """A side of an equation, computed from its text with the callables themselves."""

    class Element:
        def __init__(self, value):
            self.value = value

        def __add__(self, other):
            return Element(s.add(self.value, other.value))

        def __mul__(self, other):
            return Element(s.mul(self.value, other.value))

    names = {name: Element(value) for name, value in elements}
    names |= {"zero": Element(s.zero), "one": Element(s.one)}
    source = text.replace("⊕", "+").replace("⊗", "*").replace("0", "zero").replace("1", "one")
    return eval(source, names).value  # the texts are the library's own


@pytest.mark.parametrize("name", FAILS)
def test_wrong_semirings_are_refuted_with_true_counterexamples(name):
    s, dtype, refuted, passed = FAILS[name]
    report = check(s, dtype)
    found = {r.law for r in report if r.status == "refuted"}
    assert refuted <= found
    assert not passed & found
    assert not report
    assert not report.ok
    with pytest.raises(LawError, match="is not a semiring"):
        report.raise_if_refuted()
    assert "refuted" in str(report)
    for r in report:
        counter = r.counterexample
        if counter is None or r.law in ("closed", "selective", "star"):
            continue
        with np.errstate(all="ignore"):
            left, right = (_value(t, s, counter.elements) for t in (counter.left_text, counter.right_text))
        for mine, theirs in ((left, counter.left), (right, counter.right)):
            # Python's min may pass NaN by, where NumPy's gives it.
            assert mine == theirs or theirs != theirs or math.isclose(mine, theirs, rel_tol=1e-6)
        assert left != right
        assert repr(counter.left) in str(counter)


@pytest.mark.parametrize(
    ("s", "first"),
    [
        (Semiring("widest", max, min, 0, INF), "0 is the identity of ⊕"),  # −∞ is the zero where widths may be negative
        (Semiring("shortest", min, add, 0, 0), "0 is the identity of ⊕"),  # a user's 0 for "no edge"
        (Semiring("shortest", min, add, INF, 1), "1 is the identity of ⊗"),
        (Semiring("minus", max, lambda a, b: abs(a - b), -INF, 0), "1 is the identity of ⊗"),
        (Semiring("reliable", max, mul, -INF, 1), "0 annihilates"),
        (Semiring("mean", min, lambda a, b: (a + b) / 2, INF, 0), "1 is the identity of ⊗"),
        (Semiring("leaves", max, lambda a, b: a + b + a * b, 0, 0, domain=(0, 1)), "0 annihilates"),
    ],
    ids=lambda value: value if isinstance(value, str) else value.name,
)
def test_a_wrong_zero_or_one_is_reported_before_what_else_it_breaks(s, first):
    assert check(s).refuted[0].law == first
    with pytest.raises(LawError, match=f"is not a semiring: {first}: "):
        check(s).raise_if_refuted()
    with pytest.raises(LawError, match=rf"a closure needs [^(]*\({first}\)"):
        closure(np.ones((3, 3)), s)


def test_counterexamples_read_well():
    assert str(law(FAILS["max-plus with 1e-38 as −∞"][0], "float64", "0 annihilates").counterexample) == (
        "a = 1.0: 0 ⊗ a = 1.0, but 0 = 1e-38"
    )
    assert str(law(MIN_PLUS, "uint8", "idempotent").evidence) == "for every element"
    assert str(law(PLUS_TIMES, "int32", "idempotent").counterexample) == "a = 1: a ⊕ a = 2, but a = 1"
    assert str(law(PLUS_TIMES, "int32", "selective").counterexample) == "a = 1, b = 1: a ⊕ b = 2, which is not a or b"
    assert str(law(FAILS["leaves its set"][0], "int32", "closed").counterexample) == (
        "a = 1, b = 2: a ⊗ b = 3, which is not an element of {0, 1, 2}"
    )
    assert "which is not 0" in str(law(Semiring("s", max, add, 0, 0), "int32", "0 annihilates").counterexample)


def _matrix_product(a, b):
    return a[0] * b[0] + a[1] * b[2], a[0] * b[1] + a[1] * b[3], a[2] * b[0] + a[3] * b[2], a[2] * b[1] + a[3] * b[3]


PASS = {
    "Łukasiewicz": (Semiring("luk", max, lambda a, b: max(a + b - 1, 0), 0, 1, domain=(0, 1)), "float32"),
    "Łukasiewicz exactly": (Semiring("luk", max, lambda a, b: max(a + b - 1, 0), 0, 1, domain=(0, 1)), object),
    "Viterbi": (Semiring("viterbi", max, mul, 0, 1, domain=(0, 1)), "float32"),
    "min-plus without a domain": (Semiring("mine", min, lambda a, b: a + b, INF, 0), "float64"),
    "max-plus without a domain": (Semiring("mine", max, lambda a, b: a + b, -INF, 0), "int64"),
    "plus-times without a domain": (Semiring("mine", add, mul, 0, 1), "float32"),
    "shifted by 0.1": (Semiring("shifted", min, lambda a, b: a + b + 0.1, INF, -0.1), "float32"),
    "Z/7": (Semiring("z7", lambda a, b: (a + b) % 7, lambda a, b: a * b % 7, 0, 1, domain=range(7)), "int16"),
    "Z/7 as an interval": (Semiring("z7", lambda a, b: (a + b) % 7, lambda a, b: a * b % 7, 0, 1, domain=(0, 6)), "uint8"),
    "nimbers": (Semiring("bits", lambda a, b: a ^ b, lambda a, b: a & b, 0, 7, domain=(0, 7)), "uint8"),
    "symmetric differences": (Semiring("xor", lambda a, b: a ^ b, lambda a, b: a & b, 0, ~0), "int32"),
    "2 × 2 matrices": (
        Semiring("m2", lambda a, b: tuple(x + y for x, y in zip(a, b, strict=True)), _matrix_product, (0,) * 4, (1, 0, 0, 1)), "float64"),
    "multiples of 3 and 1": (Semiring("gcd", max, mul, 0, 1, domain=lambda a: a >= 0 and (a == 1 or a % 3 == 0) and a < INF), "float64"),
    "divisors": (Semiring("lattice", math.gcd, lambda a, b: a * b // math.gcd(a, b) if a and b else 0, 0, 1, domain=range(9)), object),
    "subsets": (Semiring("subsets", lambda a, b: a | b, lambda a, b: a & b, frozenset(), frozenset("xy"),
                         domain=[frozenset(), frozenset("x"), frozenset("y"), frozenset("xy")]), object),
    "unhashable sets": (Semiring("sets", lambda a, b: a | b, lambda a, b: a & b, set(), {1, 2}), object),
    "trivial": (Semiring("trivial", max, max, 0, 0, domain={0}), "float64"),
    "bounds far away": (Semiring("window", max, min, 1e30, 2e30, domain=(1e30, 2e30)), "float64"),
    "half open": (Semiring("half", max, min, 100, INF, domain=(100, INF)), "int32"),
    "half open below": (Semiring("half", max, min, -INF, 100, domain=(-INF, 100)), "float32"),
    "pairs by component": (
        Semiring("both", lambda a, b: (min(a[0], b[0]), a[1] or b[1]), lambda a, b: (a[0] + b[0], a[1] and b[1]),
                 (INF, False), (0, True), domain=(None, {False, True})), ("float32", bool)),
    "log-probabilities": (Semiring("log10", lambda a, b: ops.log(ops.exp(a) + ops.exp(b)), add, -INF, 0), "float32"),
    "root of squares": (Semiring("l2", lambda a, b: ops.sqrt(a * a + b * b), mul, 0, 1, domain=(0, 1e150)), "float64"),
}  # fmt: skip


@pytest.mark.parametrize("name", PASS)
def test_right_semirings_pass(name):
    s, dtype = PASS[name]
    if name == "divisors":  # gcd and lcm: 0 is the greatest element, so lcm(0, a) = 0 and gcd(0, a) = a
        assert check(s, dtype)["closed"].status == "refuted"  # lcm(7, 8) is no divisor listed
        return
    report = check(s, dtype)
    assert report, str(report)
    assert report.ok


def test_exhaustive_and_sampled():
    assert all(r.exhaustive for r in check(*PASS["Z/7"]))
    assert all(r.exhaustive for r in check(*PASS["Z/7 as an interval"]))
    assert all(r.exhaustive for r in check(*PASS["nimbers"]))
    assert check(*PASS["Z/7"]).elements == 7
    assert not law(BITSET, "uint8", "associative ⊕").exhaustive
    assert "all 7 elements" in str(check(*PASS["Z/7"]))
    assert "a sample of" in str(check(MIN_PLUS, "float32"))


def test_a_product_need_not_commute():
    report = check(*PASS["2 × 2 matrices"])
    assert report["commutative ⊗"].status == "refuted"
    assert report["commutative ⊗"].verdict == "does not hold"
    assert not report["commutative ⊗"].required
    assert report.ok


def test_a_missing_domain_is_the_finite_numbers_and_the_infinite_identities():
    mine = PASS["min-plus without a domain"][0]
    assert str(mine.carrier) == "(−∞, ∞]"
    assert law(mine, "float64", "closed").status == "passed"


def test_callables_of_objects_that_raise():
    s = Semiring("texts", lambda a, b: a if len(a) < len(b) else b, lambda a, b: a + b, "xxxx", "", domain={"", "x", "xxxx", 3})
    report = check(s, object)
    assert report["closed"].status == "refuted"
    assert "raises TypeError" in str(report["closed"].counterexample)
    assert report["associative ⊗"].status == "untested"
    assert "a callable raises TypeError" in report["associative ⊗"].note
    assert "untested" in str(report)


def test_untraceable_callables_need_objects():
    s = Semiring("unions", lambda a, b: a.union(b), lambda a, b: a.intersection(b), frozenset(), frozenset({1}))
    with pytest.raises(TraceError, match=r"unions.add: the attribute .union"):
        check(s, "float64")
    assert s.usual_dtypes == (np.dtype(object),)
    assert check(s)
    assert is_idempotent(s)


def test_the_star_of_integers_is_untested():
    result = law(PLUS_TIMES, "int32", "star")
    assert result.status == "untested"
    assert result.note == "the star divides, which int32 lacks"
    assert result


def test_dtypes():
    with pytest.raises(DTypeError, match="plus-times has no meaning in bool"):
        check(PLUS_TIMES, bool)
    assert BITSET.usual_dtypes == (np.dtype("int64"),)
    assert check(BITSET).dtypes == "int64"
    assert check(MAX_PLUS).dtypes == "float64"
    infinite = Semiring("bits and ∞", min, lambda a, b: a & b, INF, 0)
    with pytest.raises(DTypeError, match="bits and ∞ has no meaning in float64: it uses 'and', which float64 lacks"):
        check(infinite)  # no integer is meant by an infinite 0
    assert check(infinite, "int64").dtypes == "int64"


@pytest.mark.parametrize("semiring", [b"min-plus", min, None])
def test_what_is_no_semiring_has_no_laws(semiring):
    with pytest.raises(SemiringError, match="pass a Semiring"):
        check(semiring, "float64")


def test_queries_are_cached_and_deterministic():
    first = check(MAX_PLUS, "float32")
    assert all(a is b for a, b in zip(first, check(MAX_PLUS, "float32"), strict=True))
    fresh = Semiring("max-plus", max, add, -INF, 0, domain=MAX_PLUS.domain)
    assert str(check(fresh, "float32")) == str(first)
    once, again = (Semiring("z", lambda a, b: a + 2 * b, lambda a, b: a - b, 0, 1) for _ in range(2))
    assert str(check(once, "float64")) == str(check(again, "float64"))


def test_require_names_the_law_the_counterexample_and_the_way_out():
    require(MIN_PLUS, "float32", "idempotent", "selective", for_what="x", instead="y")
    with pytest.raises(LawError) as caught:
        require(PLUS_TIMES, None, "associative ⊕", "idempotent", for_what="the recursive closure", instead="use method='blocked'")
    assert str(caught.value) == (
        "the recursive closure needs a ⊕ a = a (idempotent), which plus-times in float64 does not satisfy: "
        "a = 1.0: a ⊕ a = 2.0, but a = 1.0; use method='blocked'"
    )
    texts = Semiring("texts", lambda a, b: a if len(a) < len(b) else b, add, "xxxx", "", domain={"", "x", "xxxx", 3})
    with pytest.raises(LawError, match=r"could not be checked for texts in object: .*; state the carrier with domain=, or do this"):
        require(texts, object, "associative ⊗", for_what="x", instead="do this")
    with pytest.raises(SemiringError, match="unknown law 'idempotence'; use one of '0 is the identity of ⊕'"):
        require(MIN_PLUS, None, "idempotence", for_what="x", instead="y")


def test_require_advises_to_state_the_carrier_where_that_helps():
    vague = Semiring("vague", max, lambda a, b: max(a + b - 1, 0), 0, 1)
    with pytest.raises(LawError, match=r"from 0 to 1 it holds: if all elements are in this range, state domain=\(0, 1\); otherwise"):
        require(vague, None, "0 is the identity of ⊕", for_what="x", instead="do this")
    stated = Semiring("stated", max, lambda a, b: max(a + b - 1, 0), 0, 1, domain=(-1, 1))
    mean = Semiring("mean", min, lambda a, b: (a + b) / 2, INF, 0)
    for semiring, name in ((stated, "0 is the identity of ⊕"), (mean, "associative ⊗")):
        with pytest.raises(LawError, match=r"does not satisfy: .*; do this$"):
            require(semiring, None, name, for_what="x", instead="do this")


def test_selective_counterexamples_are_true():
    assert law(MIN_PLUS, None, "selective").counterexample is None
    found = law(BITSET, None, "selective").counterexample
    assert found is not None
    (_, a), (_, b), c = *found.elements, found.left
    assert a | b == c
    assert c not in (a, b)
    assert is_selective(PASS["pairs by component"][0]) is False
    assert is_selective(BITSET) is False


def test_reports_are_iterable_indexable_and_readable():
    report = check(PLUS_TIMES, "float64")
    assert isinstance(report, LawReport)
    assert len(report) == len(list(report)) == len(LAWS) + len(PROPERTIES)
    assert [r.law for r in report] == [*LAWS, *PROPERTIES]
    assert all(isinstance(r, LawResult) for r in report)
    assert isinstance(report["idempotent"].counterexample, Counterexample)
    with pytest.raises(KeyError, match="the laws are '0 is the identity of ⊕'"):
        report["idempotence"]
    lines = str(report).splitlines()
    assert lines[0] == "plus-times in float64: every law passed on a sample of 16 elements"
    assert len(lines) == 1 + len(report)
    assert "up to 1e-14" in str(report)
    assert "star" not in [r.law for r in check(MIN_PLUS, "float64")]


@settings(max_examples=25, deadline=None)
@given(st.lists(st.integers(0, 2), min_size=9, max_size=9), st.lists(st.integers(0, 2), min_size=9, max_size=9))
def test_verdicts_on_random_tables_of_three_elements(sums, products):
    """Exhaustive checks against a direct reading of the laws."""
    s = Semiring("random", lambda a, b: sums[3 * a + b], lambda a, b: products[3 * a + b], 0, 1, domain={0, 1, 2})
    report, each = check(s, object), range(3)
    plus, times = (lambda a, b: sums[3 * a + b]), (lambda a, b: products[3 * a + b])
    triples = [(a, b, c) for a in each for b in each for c in each]
    truth = {
        "closed": True,
        "associative ⊕": all(plus(plus(a, b), c) == plus(a, plus(b, c)) for a, b, c in triples),
        "commutative ⊕": all(plus(a, b) == plus(b, a) for a in each for b in each),
        "0 is the identity of ⊕": all(plus(0, a) == plus(a, 0) == a for a in each),
        "associative ⊗": all(times(times(a, b), c) == times(a, times(b, c)) for a, b, c in triples),
        "1 is the identity of ⊗": all(times(1, a) == times(a, 1) == a for a in each),
        "0 annihilates": all(times(0, a) == times(a, 0) == 0 for a in each),
        "left distributive": all(times(a, plus(b, c)) == plus(times(a, b), times(a, c)) for a, b, c in triples),
        "right distributive": all(times(plus(a, b), c) == plus(times(a, c), times(b, c)) for a, b, c in triples),
        "idempotent": all(plus(a, a) == a for a in each),
        "selective": all(plus(a, b) in (a, b) for a in each for b in each),
        "commutative ⊗": all(times(a, b) == times(b, a) for a in each for b in each),
        "bounded": all(plus(1, a) == 1 for a in each),
    }
    assert {r.law: r.status == "passed" for r in report if r.status != "untested"} == truth


def test_fractions_are_checked_exactly():
    third = Semiring("thirds", min, lambda a, b: a + b + Fraction(1, 3), INF, Fraction(-1, 3))
    assert check(third, object)["associative ⊗"].tolerance == 0
    assert check(third, object)
    assert check(third, "float64")["associative ⊗"].tolerance > 0
