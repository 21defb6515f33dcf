"""The built-in semirings: every law in every dtype, and what is recorded of them against Python."""

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import sympy as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from semiring.algebra import catalogue, ops
from semiring.algebra.catalogue import as_semiring, k_best, semirings
from semiring.algebra.equations import PROPERTIES, law
from semiring.algebra.expression import chooses_operand, evaluate, nodes
from semiring.algebra.laws import check
from semiring.common.errors import SemiringError
from semiring.graphs import edges as edge_list
from semiring.solve import closure

CASES = [(name, str(dtype)) for name, s in sorted(semirings().items()) for dtype in (*s.supported_dtypes, "object")]

HAS = {
    "min-plus": {"idempotent", "selective", "commutative ⊗"},
    "max-plus": {"idempotent", "selective", "commutative ⊗"},
    "boolean": {"idempotent", "selective", "commutative ⊗", "bounded"},
    "max-min": {"idempotent", "selective", "commutative ⊗", "bounded"},
    "min-max": {"idempotent", "selective", "commutative ⊗", "bounded"},
    "max-times": {"idempotent", "selective", "commutative ⊗"},
    "plus-times": {"commutative ⊗"},
    "log": {"commutative ⊗"},
    "gf2": {"commutative ⊗"},
    "bitset": {"idempotent", "commutative ⊗", "bounded"},
    "distance-count": {"commutative ⊗"},
    "distance-hops": {"idempotent", "selective", "commutative ⊗"},
}


def test_every_constant_goes_by_its_name_and_every_semiring_by_its_own():
    for name in catalogue.__all__:
        if name.isupper():
            assert as_semiring(name) is as_semiring(name.lower().replace("_", "-")) is getattr(catalogue, name)
    for name, semiring in semirings().items():
        assert as_semiring(name) is as_semiring(semiring) is semiring
    mine = semirings()["max-min"].narrowed((0, 1))
    assert as_semiring(mine) is mine


@pytest.mark.sampled(31)
@pytest.mark.parametrize(("name", "dtype"), CASES)
def test_every_law_of_every_built_in_in_every_dtype(name, dtype):
    report = check(semirings()[name], dtype)
    assert report.ok, str(report)
    report.raise_if_refuted()
    for result in report:
        if result.required:
            untested = result.law == "star" and "int" in dtype
            assert result.status == ("untested" if untested else "passed"), str(result)
    unsigned = {"bounded"} if dtype.startswith("uint") and name in ("min-plus", "distance-hops") else set()
    assert {p for p in PROPERTIES if report[p].status == "passed"} == HAS[name] | unsigned


@pytest.mark.parametrize("dtype", ["int32", "float64"])
def test_laws_of_mixed_dtypes(dtype):
    assert check(catalogue.DISTANCE_COUNT, ("float32", dtype))
    assert check(catalogue.DISTANCE_HOPS, (dtype, "int16"))


def test_finite_carriers_are_checked_exhaustively():
    for name in ("boolean", "gf2"):
        assert all(r.exhaustive for r in check(semirings()[name], bool))
    assert law(catalogue.MIN_PLUS, "float32", "idempotent").exhaustive  # by construction
    assert not law(catalogue.MIN_PLUS, "float32", "associative ⊗").exhaustive


def test_tolerances_are_stated_where_functions_round():
    for name in semirings():
        for dtype in semirings()[name].supported_dtypes:
            for result in check(semirings()[name], dtype):
                rounds = name == "log" and result.law not in ("closed", "selective")
                rounds |= name == "plus-times" and result.law == "star"
                assert (result.tolerance > 0) == rounds, (name, dtype, result)


def test_names():
    assert all(s.name == name for name, s in semirings().items())
    assert catalogue.TROPICAL is catalogue.MIN_PLUS
    assert catalogue.MIN_PLUS.with_witness() == catalogue.TROPICAL_ARGMIN
    assert {getattr(catalogue, n) for n in catalogue.__all__ if n.isupper()} == {*semirings().values(), catalogue.TROPICAL_ARGMIN}


def test_minima_reach_the_targets_as_minima():
    assert {e.op for name in ("min-plus", "max-min", "max-times") for e in nodes(*semirings()[name].program.add)} == {"var", "min", "max"}
    for name in ("distance-count", "distance-hops"):
        assert semirings()[name].program.add[0].op == "min"
    assert chooses_operand(catalogue.MAX_PLUS.program.add[0])


_FLOATS = st.floats(-100, 100) | st.sampled_from([0.0, -0.0, math.inf, -math.inf, 5e-324, -1e-310, 1e-300])


@given(st.sampled_from(sorted(semirings())), _FLOATS, _FLOATS, st.integers(0, 5), st.integers(0, 5))
def test_recordings_agree_with_the_callables(name, x, y, i, j):
    s = semirings()[name]
    a: tuple[Any, ...]
    b: tuple[Any, ...]
    if name in ("boolean", "gf2"):
        a, b = (bool(i % 2),), (bool(j % 2),)
    elif name == "bitset":
        a, b = (i,), (j,)
    elif s.components == 2:
        a, b = (x, i if x < math.inf else s.zero[1]), (y, j if y < math.inf else s.zero[1])
    else:
        a, b = (x,), (y,)
    if not all(s.carrier.contains(e if s.components > 1 else e[0]) for e in (a, b)):
        return
    for function, recorded in ((s.add, s.program.add), (s.mul, s.program.mul)):
        called = function(a, b) if s.components > 1 else function(a[0], b[0])
        expected = called if s.components > 1 else (called,)
        for kind in (lambda v: v, np.float64) if name not in ("boolean", "gf2", "bitset") else (lambda v: v,):
            found = evaluate(recorded, tuple(map(kind, a)), tuple(map(kind, b)), ops.TABLE)
            assert all(f == e or math.isclose(f, e, rel_tol=1e-14) for f, e in zip(found, expected, strict=True))


@given(st.fractions(), st.fractions())
def test_fractions_stay_exact(x, y):
    for s in (catalogue.MIN_PLUS, catalogue.MAX_MIN, catalogue.PLUS_TIMES):
        for result in (s.add(x, y), s.mul(x, y), evaluate(s.program.mul, [x], [y], ops.TABLE)[0]):
            assert isinstance(result, Fraction)
    assert catalogue.PLUS_TIMES.star is not None
    if x != 1:
        assert catalogue.PLUS_TIMES.star(x) == 1 + x * catalogue.PLUS_TIMES.star(x)


@pytest.mark.parametrize(
    ("name", "value", "exists"),
    [("plus-times", 1, False), ("plus-times", 0.5, True), ("plus-times", -2, True), ("log", 0, False), ("log", 3, False), ("log", -1, True),
     ("gf2", True, False), ("gf2", False, True)],
)  # fmt: skip
def test_where_stars_exist(name, value, exists):
    program = semirings()[name].program
    assert bool(evaluate([program.star_undefined], [value], [], ops.TABLE)[0]) is not exists


@pytest.mark.parametrize(
    "a", [-1e-20, np.float64(-1e-20), np.float32(-1e-20), Fraction(-1, 10**20), sp.Float(-1e-20), sp.Float("-1e-20", 50)], ids=str
)
def test_the_star_of_logarithms_next_to_0_in_every_kind_of_number(a):
    assert catalogue.LOG.star is not None
    for found in (catalogue.LOG.star(a), evaluate(catalogue.LOG.program.star or (), [a], [], ops.TABLE)[0]):
        assert float(found) == pytest.approx(20 * math.log(10), rel=1e-7 if type(a) is np.float32 else 4e-16)


def test_the_star_of_logarithms_of_symbols_is_one_formula():
    x = sp.Symbol("x")
    assert evaluate(catalogue.LOG.program.star or (), [x], [], ops.TABLE)[0] == -sp.log(1 - sp.exp(x))


def test_distance_count_counts_shortest_paths():
    s = catalogue.DISTANCE_COUNT
    assert s.add((2, 3), (2, 4)) == (2, 7)
    assert s.add((2, 3), (1, 4)) == (1, 4)
    assert s.mul((2, 3), (1, 4)) == (3, 12)
    assert s.mul(s.zero, (1, 4)) == s.zero


@pytest.mark.sampled(2)
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "object"])
def test_the_laws_of_k_best(dtype):
    assert check(k_best(3), dtype).ok
    assert k_best(3) is k_best(3)
    for k in [3], True, 1, 2.0, "3":
        with pytest.raises(SemiringError, match=r"k is .*; pass a whole number from 2 to 16"):
            k_best(k)  # type: ignore[arg-type]  # which is the point


@pytest.mark.parametrize("k", [2, 3, 4])
@given(lengths=st.lists(st.integers(0, 6), min_size=9, max_size=9), there=st.lists(st.booleans(), min_size=9, max_size=9))
@settings(max_examples=20)
def test_the_k_best_walks_are_the_least_lengths_that_differ(k, lengths, there):
    edges = [(i // 3, i % 3, w) for i, (w, is_edge) in enumerate(zip(lengths, there, strict=True)) if is_edge]
    found = closure(edge_list([(u, v, float(w)) for u, v, w in edges], nodes=range(3)), k_best(k))
    most = 6 * 3 * k  # a k-th best walk has no more edges than a path and k rounds of cycles
    for source in range(3):
        reached = {(source, 0)}
        new = set(reached)
        while new:
            new = {(v, length + w) for u, length in new for a, v, w in edges if a == u and length + w <= most} - reached
            reached |= new
        for target in range(3):
            expected = sorted(length for vertex, length in reached if vertex == target)[:k]
            assert [float(x[source, target]) for x in found] == expected + [math.inf] * (k - len(expected))


@pytest.mark.parametrize("k", [1, 17, 2.0, "2"])
def test_walks_of_no_semiring_are_refused(k):
    with pytest.raises(SemiringError, match="from 2 to 16"):
        k_best(k)
