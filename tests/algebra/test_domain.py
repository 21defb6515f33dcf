"""Membership of whole arrays: every kind of domain, of array and of offender."""

import itertools
import math
import sys
import tracemalloc
from fractions import Fraction
from operator import add, mul

import numpy as np
import pytest
import sympy as sp
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from semiring.algebra.carrier import Interval
from semiring.algebra.catalogue import (
    BITSET,
    BOOLEAN,
    DISTANCE_COUNT,
    DISTANCE_HOPS,
    LOG,
    MAX_MIN,
    MAX_PLUS,
    MAX_TIMES,
    MIN_MAX,
    MIN_PLUS,
    PLUS_TIMES,
    semirings,
)  # fmt: skip
from semiring.algebra.definition import Semiring
from semiring.arrays.conversion import outside, require_inside
from semiring.common.errors import DomainError

INF, NAN = math.inf, math.nan
LUKASIEWICZ = Semiring("luk", max, lambda a, b: max(a + b - 1, 0), 0, 1, domain=(0, 1))
DIGITS = Semiring("digits", max, min, 0, 9, domain=range(10))
EVEN = Semiring("even", max, min, 0, INF, domain=lambda a: (a >= 0 and a % 2 == 0) or a == INF)
TEXT = Semiring("texts", min, lambda a, b: a + b, "z", "", domain=lambda a: a.islower() or not a)
PAIRS = Semiring("pairs", min, lambda a, b: (a[0] + b[0], a[1] * b[1]), (INF, 0), (0, 1), domain=((0, INF), {0, 1}))


@pytest.mark.parametrize(
    ("semiring", "inside", "offenders"),
    [
        (MIN_PLUS, [-1e308, 0, INF], [NAN, -INF]),
        (MAX_PLUS, [-INF, 0, 1e308], [NAN, INF]),
        (MAX_MIN, [-INF, INF], [NAN]),
        (MIN_MAX, [-INF, INF], [NAN]),
        (MAX_TIMES, [0, 5e-324, 1e308, -0.0], [NAN, INF, -5e-324]),
        (PLUS_TIMES, [-1e308, 1e308], [NAN, INF, -INF]),
        (LOG, [-INF, 3], [NAN, INF]),
        (LUKASIEWICZ, [0, 0.1, 1], [NAN, 1.0000001, -1e-30, INF]),
        (DIGITS, [0, 9], [NAN, 0.5, -1, 10]),
        (EVEN, [0, 2, INF], [NAN, 1, -2, 0.5]),
    ],
)
@pytest.mark.parametrize("dtype", ["float64", "float32", object])
def test_floats(semiring, inside, offenders, dtype):
    good = np.array(inside * 3, dtype=float)
    good = np.clip(good, -3e38, 3e38, where=np.isfinite(good), out=good.copy()).astype(dtype) if dtype == "float32" else good.astype(dtype)
    assert outside(semiring, good) is None
    require_inside(semiring, good)
    for value in offenders:
        if dtype == "float32" and 0 < abs(value) < 1e-40:
            continue
        bad = np.stack([good, good, good])
        bad[1, 2] = value
        assert outside(semiring, bad) == (1, 2)
        assert outside(semiring, bad.T) == (2, 1)
        assert outside(semiring, value if dtype is object else np.dtype(dtype).type(value)) == ()
        with pytest.raises(DomainError, match=rf"^matrix\[1, 2\] = .* the carrier of {semiring.name}"):
            require_inside(semiring, bad, "matrix")


def test_float32_bounds_are_float32_numbers():
    tenth = Semiring("tenth", max, min, 0, 0.1, domain=(0, 0.1))
    assert outside(tenth, np.array([0.1], dtype=np.float32)) is None
    assert outside(tenth, np.array([0.1000001], dtype=np.float32)) == (0,)
    assert outside(PLUS_TIMES, np.array([np.finfo(np.float32).max, np.inf], dtype=np.float32)) == (1,)


@pytest.mark.parametrize("dtype", ["int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"])
def test_integers(dtype):
    info = np.iinfo(dtype)
    every = np.array([info.min, info.max, 0, 1], dtype=dtype)
    for semiring in (MIN_PLUS, MAX_MIN, BITSET, PLUS_TIMES):
        assert outside(semiring, every) is None
    assert outside(MAX_TIMES, every) == ((0,) if info.min < 0 else None)
    assert outside(DIGITS, every) == ((0,) if info.min < 0 else (1,))
    assert outside(EVEN, np.array([2, info.max, 4], dtype=dtype)) is None  # the largest value stands for ∞, which EVEN has
    assert outside(EVEN, np.array([2, info.max - 2, 4], dtype=dtype)) == (1,)
    hops = np.array([0, info.max], dtype=dtype)
    assert outside(DISTANCE_HOPS, (hops, hops)) is None
    assert outside(DISTANCE_HOPS, (hops, hops[::-1])) == (0,)


def test_truth_values():
    truths = np.array([[True, False]])
    assert outside(BOOLEAN, truths) is None
    only = Semiring("only", lambda a, b: a | b, lambda a, b: a & b, True, True, domain={True})
    assert outside(only, truths) == (0, 1)
    assert outside(BOOLEAN, np.array([True, 2], dtype=object)) == (1,)


def test_structured_elements():
    distance, count = np.array([[0, 1.0], [INF, 2]]), np.array([[1, 1.0], [0, 3]])
    assert outside(DISTANCE_COUNT, (distance, count)) is None
    count[1, 0] = 2
    assert outside(DISTANCE_COUNT, (distance, count)) == (1, 0)
    with pytest.raises(DomainError, match=r"a\[1, 0\] = \(inf, 2.0\) is outside the carrier of distance-count, \{a : a\[0\] > -inf and"):
        require_inside(DISTANCE_COUNT, (distance, count))
    count[1, 0] = NAN
    with pytest.raises(DomainError, match=r"\(inf, nan\): NaN is not an element of any semiring"):
        require_inside(DISTANCE_COUNT, (distance, count))
    ones = np.ones((2, 2), dtype=np.int32)
    assert outside(PAIRS, (distance, ones)) is None
    assert outside(PAIRS, (-distance, ones)) == (0, 1)
    assert outside(PAIRS, (distance, ones * 2)) == (0, 0)
    assert str(PAIRS.carrier) == "[0, ∞] × {0, 1}"


def test_objects():
    x = sp.Symbol("x")
    exact = np.array([Fraction(1, 3), 2, x, sp.Rational(1, 2), INF, sp.oo], dtype=object)
    assert outside(MIN_PLUS, exact) is None
    assert outside(LUKASIEWICZ, exact) == (1,)
    for offender in (sp.nan, -INF, None, "text", [1], -sp.oo):
        bad = exact.copy()
        bad[3] = offender
        assert outside(MIN_PLUS, bad) == (3,)
        with pytest.raises(DomainError):
            require_inside(MIN_PLUS, bad)
    assert outside(TEXT, np.array(["a", "", "B"], dtype=object)) == (2,)
    subsets = Semiring("s", lambda a, b: a | b, lambda a, b: a & b, frozenset(), frozenset("a"), domain=[frozenset(), frozenset("a")])
    sets = np.empty(2, dtype=object)
    sets[:] = [frozenset("a"), frozenset("b")]
    assert outside(subsets, sets) == (1,)
    assert outside(Semiring("sets", lambda a, b: a | b, lambda a, b: a & b, set(), {1}), sets) is None


def test_predicates_that_cannot_be_recorded_run_one_by_one():
    primes = Semiring("primes", max, min, 2, 7, domain=lambda a: int(a) in (2, 3, 5, 7))
    assert outside(primes, np.array([[2.0, 3.0], [5.0, 6.0]])) == (1, 1)
    assert str(primes.carrier) == "a callable"


def test_exact_integers_go_beyond_every_float():
    huge = 10**5000
    assert outside(MIN_PLUS, np.array([-huge, huge, -INF], dtype=object)) == (2,)
    assert outside(PLUS_TIMES, np.array([-huge, huge, INF], dtype=object)) == (2,)
    with pytest.raises(DomainError, match=r"a\[0\] = about -1e5000 is outside"):
        require_inside(MAX_TIMES, np.array([-huge], dtype=object))
    pairs = Semiring("pairs", min, lambda a, b: (a[0] + b[0], a[1] + b[1]), (INF, INF), (0, 0), domain=lambda a: a[0] >= 0)
    with pytest.raises(DomainError, match=r"a\[0\] = \(about -1e5000, 1\) is outside"):
        require_inside(pairs, (np.array([-huge], dtype=object), np.array([1], dtype=object)))


def test_messages_say_what_would_work():
    with pytest.raises(
        DomainError, match=r"weights\[0, 1\] = nan: NaN .* \(−∞, ∞\]; use inf \(the semiring's zero\) for a missing edge, or nonedge=nan$"
    ):
        require_inside(MIN_PLUS, np.array([[0, NAN]]), "weights", of_graph=True)
    with pytest.raises(DomainError, match=r"^a = -1 is outside the carrier of max-times, \[0, ∞\)$"):
        require_inside(MAX_TIMES, np.int64(-1))
    with pytest.raises(DomainError, match=r"graph\[0\] = -inf is outside the carrier .*; pass nonedge=-inf if it means 'no edge'$"):
        require_inside(MIN_PLUS, np.array([-INF]), "graph", of_graph=True)
    mine = Semiring("mine", min, add, INF, 0)
    with pytest.raises(DomainError, match="without domain=, only the infinities that are zero or one are elements"):
        require_inside(mine, np.array([-INF]))


@pytest.mark.parametrize("shape", [(0,), (0, 3), (3, 0), (2, 0, 2)])
def test_empty_arrays(shape):
    for semiring in (MIN_PLUS, DIGITS, EVEN):
        assert outside(semiring, np.zeros(shape)) is None


@pytest.mark.parametrize("shape", [(300, 500), (3, 70_000), (2, 3, 200, 200), (200_000,), (70_000, 2)])
def test_large_arrays_of_every_layout(shape):
    rng = np.random.default_rng(0)
    for semiring in (MAX_TIMES, EVEN):
        array = rng.integers(0, 50, shape).astype(float) * 2
        for view in (array, np.asfortranarray(array), array[::2], array[..., ::-1], array.T):
            assert outside(semiring, view) is None
            if not view.size:
                continue
            places = [tuple(int(rng.integers(0, n)) for n in view.shape) for _ in range(2)]
            kept = [view[p] for p in places]
            for p in places:
                view[p] = -1
            assert outside(semiring, view) == min(places)
            for p, v in zip(places, kept, strict=True):
                view[p] = v


def test_read_only_arrays():
    array = np.ones((3, 3))
    array.setflags(write=False)
    assert outside(MIN_PLUS, array) is None


def test_intervals_need_no_memory_of_the_matrix_size():
    array = np.random.default_rng(0).random((1500, 1500), dtype=np.float32)
    for semiring in (MIN_PLUS, PLUS_TIMES, MAX_MIN, EVEN):
        tracemalloc.start()
        outside(semiring, array)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak < array.nbytes / 2


@given(
    hnp.arrays(st.sampled_from([np.float32, np.float64]), hnp.array_shapes(max_dims=3, max_side=4), elements=st.floats(width=32)),
    st.sampled_from(sorted(n for n, s in semirings().items() if s.components == 1 and "float32" in map(str, s.supported_dtypes))),
)
def test_arrays_agree_with_single_elements(array, name):
    semiring = semirings()[name]
    expected = next((i for i in np.ndindex(array.shape) if not semiring.carrier.contains(float(array[i]))), None)
    assert outside(semiring, array) == expected


def test_intervals_are_written_as_such():
    largest = sys.float_info.max
    assert [str(Interval(*b)) for b in ((-INF, INF), (-largest, largest), (0, 1), (0.5, INF), (-INF, 3))] == [
        "[−∞, ∞]", "(−∞, ∞)", "[0, 1]", "[0.5, ∞]", "[−∞, 3]",
    ]  # fmt: skip
    assert str(Semiring("many", max, min, 0, 9, domain=range(20)).carrier) == "{0, 1, 2, 3, 4, 5, 6, 7, …}"
    assert str(Semiring("pair", max, mul, (0, "a"), (1, "b")).carrier) == "(−∞, ∞) × every value"


def test_a_condition_on_many_components_is_recorded_as_soon_as_on_few() -> None:
    """The elements to compare it with are picked from 14¹⁶ by their numbers."""
    ascending = Semiring(
        "ascending", lambda a, b: a, lambda a, b: a, (0,) * 16, (0,) * 16, domain=lambda a: all(x <= y for x, y in itertools.pairwise(a)),
    )  # fmt: skip
    assert ascending.carrier.joint is not None
    assert ascending.carrier.joint.recorded is not None
    assert not ascending.carrier.contains((*range(1, 16), 0))
