"""What a semiring may be made of, how it compares, and what it means in a dtype."""

import copy
import math
import pickle
from dataclasses import FrozenInstanceError, replace
from fractions import Fraction
from operator import add, and_, mul, or_

import numpy as np
import pytest

from semiring.algebra.catalogue import BITSET, BOOLEAN, DISTANCE_COUNT, LOG, MAX_MIN, MIN_PLUS, PLUS_TIMES, TROPICAL_ARGMIN, semirings
from semiring.algebra.definition import Semiring
from semiring.algebra.elements import DTYPES, element, infinity
from semiring.algebra.expression import show
from semiring.common.errors import DTypeError, LawError, SemiringError, TraceError
from semiring.product import matmul


def test_it_is_frozen_and_hashable():
    with pytest.raises(FrozenInstanceError):
        MIN_PLUS.zero = 3  # type: ignore[misc]  # what is tested
    assert {MIN_PLUS: 1}[replace(MIN_PLUS)] == 1
    assert replace(MIN_PLUS) == MIN_PLUS
    assert MIN_PLUS != TROPICAL_ARGMIN
    assert MIN_PLUS != "min-plus"


def test_equality_tells_0_from_false():
    numbers, truths = Semiring("s", max, min, 0, 1), Semiring("s", max, min, False, True)
    assert numbers != truths
    assert len({numbers, truths, Semiring("s", max, min, 0, 1), Semiring("s", max, min, 0.0, 1)}) == 3


@pytest.mark.parametrize("name", sorted(semirings()))
def test_built_ins_can_be_pickled_and_copied(name):
    s = semirings()[name]
    assert s.program  # what is derived stays behind
    assert pickle.loads(pickle.dumps(s)) == s
    assert copy.deepcopy(s) == s
    assert copy.deepcopy(s).program == s.program


def test_numpy_identities_become_python_numbers():
    s = Semiring("s", max, min, np.float32(0), (np.int64(1)))
    assert (type(s.zero), type(s.one)) == (float, int)
    pair = Semiring("p", max, min, (np.int8(0), 0.0), (1, np.float64(2)))
    assert list(map(type, (*pair.zero, *pair.one))) == [int, float, int, float]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"name": ""}, "name of a semiring must be a text"),
        ({"name": 3}, "name of a semiring must be a text"),
        ({"add": 3}, "add and mul must be callables"),
        ({"mul": None}, "add and mul must be callables"),
        ({"star": 2}, "star a callable"),
        ({"zero": math.nan}, "zero is NaN"),
        ({"one": np.float32("nan")}, "one is NaN"),
        ({"zero": None}, "zero None is not an element"),
        ({"zero": [0, 1]}, "not an element; write a scalar or a tuple"),
        ({"zero": (0, 1)}, "must have the same number of components"),
        ({"zero": (0,), "one": (1,)}, "flat tuple of two or more"),
        ({"zero": ((0, 1), 2), "one": (1, 2)}, "flat tuple of two or more"),
        ({"zero": (0, math.nan), "one": (1, 2)}, "zero is NaN"),
        ({"domain": (1, 0)}, "not an interval"),
        ({"domain": (0, 1, 2)}, "not an interval"),
        ({"domain": ("a", "b")}, "not an interval"),
        ({"domain": (0, math.nan)}, "not an interval"),
        ({"domain": "01"}, "neither an interval"),
        ({"domain": 3}, "neither an interval"),
        ({"domain": (0, 0.5)}, r"one 1 lies outside the domain, \[0, 0.5\]; widen"),
        ({"domain": {0, 2}}, r"one 1 lies outside the domain, \{0, 2\}"),
        ({"domain": lambda a: a > 0}, r"zero 0 lies outside the domain, \{a : a > 0\}"),
        ({"domain": lambda a, b: a > 0}, "the domain raises TypeError for zero 0: .* missing 1 required"),
        ({"domain": lambda a: 1 / a > 0}, "the domain raises ZeroDivisionError for zero 0"),
        ({"domain": {"a", "b"}}, r"zero 0 lies outside the domain, \{'a', 'b'\}"),
        ({"zero": (0, 0), "one": (1, 1), "domain": (0, 1)}, "each component|neither an interval"),
        ({"zero": (0, 0), "one": (1, 1), "domain": {0, 1}}, "predicate on the tuple"),
        ({"zero": (0, 0), "one": (1, 1), "domain": ((0, 1), (0, 1), None)}, "for each component"),
    ],
)
def test_what_is_no_semiring_is_refused(changes, message):
    arguments = {"name": "mine", "add": max, "mul": min, "zero": 0, "one": 1, **changes}
    with pytest.raises(SemiringError, match=message):
        Semiring(**arguments)


def test_domains_become_hashable():
    s = Semiring("s", max, min, 0, 1, domain=[0, 1, 2])
    assert s.domain == frozenset({0, 1, 2})
    pair = Semiring("p", max, min, (0, 0), (1, 1), domain=({0, 1}, (0, 1)))
    assert pair.domain == (frozenset({0, 1}), (0, 1))
    assert hash(s) != hash(pair)


def test_what_was_recorded_when_it_was_made_counts():
    """In a notebook, what a callable reads changes from cell to cell."""
    surroundings = {"pen": 1}

    def mul(x, y):
        return x + y + surroundings["pen"]

    first = Semiring("pen", min, mul, math.inf, 0)
    program = first.program
    surroundings["pen"] = 10
    assert first.program is program
    second = Semiring("pen", min, mul, math.inf, 0)
    assert (first == second, hash(first) == hash(second)) == (False, False)
    for made in (first, first.with_witness(), copy.deepcopy(first.with_witness()), copy.copy(first)):
        assert show(made.program.mul[0]) == "a + b + 1"
    surroundings["pen"] = 1
    assert Semiring("pen", min, mul, math.inf, 0) == first


def test_a_method_of_an_object_that_changes():
    class Toll:
        def __init__(self, pen):
            self.pen = pen

        def mul(self, x, y):
            return x + y + self.pen

    toll, one = Toll(1), np.array([[1.0]])
    for pen in (1, 10):
        toll.pen = pen
        made = Semiring("pen", min, toll.mul, math.inf, 0)
        for device in ("cpu", "reference"):
            assert matmul(one, one, made, device=device).item() == 2 + pen


def test_semirings_of_one_program_are_equal():
    made = [Semiring("s", lambda a, b: a if a < b else b, lambda a, b: a + b, math.inf, 0, domain=lambda a: a >= 0) for _ in range(2)]
    assert made[0] == made[1]
    assert hash(made[0]) == hash(made[1])
    assert made[0] != replace(made[0], domain=lambda a: a >= 1e-9 or a == 0)
    unions = [Semiring("s", lambda a, b: a.union(b), lambda a, b: a & b, frozenset(), frozenset({1})) for _ in range(2)]
    assert unions[0] != unions[1]  # nothing is known of their callables


def test_a_domain_is_recorded_when_it_was_made():
    limits = [5]
    s = Semiring("short", min, add, math.inf, 0, domain=lambda a: (a >= 0) & ((a < limits[0]) | (a == math.inf)))
    limits[0] = 1
    assert s.carrier.holds((np.array([3.0, 6.0]),)).tolist() == [True, False]
    kind = Semiring("kind", min, add, math.inf, 0, domain=lambda a: isinstance(a, float | int) and a >= 0)
    assert kind.carrier.holds((np.array([3.0, -6.0]),)).tolist() == [True, False]  # runs on each, because the recording differs


def test_what_is_recorded_travels():
    deep = Semiring("deep", min, lambda a, b: sum([a, b] * 400), math.inf, 0)
    recording = deep.recordings.get("mul")
    assert pickle.loads(pickle.dumps(recording)) == recording
    assert copy.deepcopy(deep).program == deep.program


def test_an_operation_may_not_raise_but_a_star_may():
    def harmonic(a, b):
        if a == b:
            raise ZeroDivisionError
        return a * b / (a - b)

    with pytest.raises(TraceError, match=r"harmonic\.add: it raised ZeroDivisionError"):
        assert Semiring("harmonic", harmonic, mul, math.inf, 1).program


SUPPORTED = {
    "min-plus": "int16 int32 int64 uint8 uint16 uint32 uint64 float32 float64",
    "max-plus": "int16 int32 int64 float32 float64",
    "boolean": "bool",
    "max-min": "int16 int32 int64 uint8 uint16 uint32 uint64 float32 float64",
    "min-max": "int16 int32 int64 uint8 uint16 uint32 uint64 float32 float64",
    "max-times": "int16 int32 int64 uint8 uint16 uint32 uint64 float32 float64",
    "plus-times": "int16 int32 int64 uint8 uint16 uint32 uint64 float32 float64",
    "log": "float32 float64",
    "gf2": "bool",
    "bitset": "int16 int32 int64 uint8 uint16 uint32 uint64",
    "distance-count": "int16 int32 int64 uint8 uint16 uint32 uint64 float32 float64",
    "distance-hops": "int16 int32 int64 uint8 uint16 uint32 uint64 float32 float64",
}


@pytest.mark.parametrize("name", sorted(semirings()))
def test_dtypes_of_the_built_ins(name):
    assert " ".join(map(str, semirings()[name].supported_dtypes)) == SUPPORTED[name]


@pytest.mark.parametrize(
    ("semiring", "dtype", "zero", "one"),
    [
        (MIN_PLUS, "float32", math.inf, 0),
        (MIN_PLUS, "int16", 32767, 0),
        (MIN_PLUS, "uint8", 255, 0),
        (MAX_MIN, "int32", -(2**31), 2**31 - 1),
        (MAX_MIN, "uint16", 0, 65535),
        (BITSET, "uint64", 0, 2**64 - 1),
        (BITSET, "int64", 0, -1),
        (BOOLEAN, bool, False, True),
        (PLUS_TIMES, np.float64, 0, 1),
        (PLUS_TIMES, object, 0, 1),
    ],
)
def test_identities(semiring, dtype, zero, one):
    assert semiring.identities(dtype) == ((zero,), (one,))
    assert semiring.identities(dtype) is semiring.identities(dtype)


def test_identities_of_structured_elements():
    assert DISTANCE_COUNT.identities(("float64", "int32")) == ((math.inf, 0), (0, 1))
    assert DISTANCE_COUNT.identities(["int16", "uint8"]) == ((32767, 0), (0, 1))


@pytest.mark.parametrize(
    ("semiring", "dtype", "message"),
    [
        (LOG, "int32", "uses 'exp'|uses .*float32 or float64"),
        (LOG, "uint8", "−∞ has no value in uint8"),
        (BITSET, "float32", "bool or an integer dtype"),
        (BOOLEAN, "float64", "works on truth values; use dtype bool"),
        (PLUS_TIMES, bool, "0 is a number, not a truth value; use an integer or float dtype"),
        (MIN_PLUS, "float16", "dtype float16 is not supported; use float32"),
        (MIN_PLUS, "complex128", "not supported"),
        (MIN_PLUS, "no dtype", "is not a dtype"),
        (DISTANCE_COUNT, ("float32",), "has 2 components, but 1 dtypes were given"),
        (Semiring("half", max, min, 0.5, 1), "int32", "0.5 is not an integer; use float32 or float64"),
        (Semiring("deep", max, min, -40000, 1), "int16", "-40000 does not fit int16"),
        (Semiring("huge", max, min, -1e300, 1), "float32", "does not fit float32"),
        (Semiring("step", max, lambda a, b: max(a + b - 0.5, 0), 0, 1), "int32", "0.5 is not an integer"),
        (Semiring("cap", max, lambda a, b: min(a + b, 70000), 0, 1), "uint16", "70000 does not fit uint16"),
        (Semiring("sum of truths", add, mul, False, True), bool, "uses 'add', which truth values lack; use a dtype of numbers"),
        (Semiring("sets", or_, and_, frozenset(), frozenset({1})), "float64", "is not a number; use dtype object"),
    ],
)
def test_dtypes_without_a_meaning_are_refused(semiring, dtype, message):
    with pytest.raises(DTypeError, match=message):
        semiring.identities(dtype)


def test_object_arrays_need_no_recording():
    s = Semiring("unions", lambda a, b: a.union(b), lambda a, b: a.intersection(b), frozenset(), frozenset({1, 2}))
    assert s.identities(object) == ((frozenset(),), (frozenset({1, 2}),))
    with pytest.raises(TraceError, match=r"the attribute \.union"):
        s.identities("float64")


@pytest.mark.parametrize("dtype", DTYPES)
def test_elements_in_dtypes(dtype):
    if dtype.kind == "b":
        with pytest.raises(DTypeError, match="∞ has no value in bool"):
            infinity(dtype)
        return
    assert element(math.inf, dtype) == infinity(dtype) == (math.inf if dtype.kind == "f" else np.iinfo(dtype).max)
    assert element(7, dtype) == 7
    assert element(np.float64(3), dtype) == 3
    assert element(Fraction(6, 2), dtype) == 3
    if dtype.kind == "u":
        assert element(-math.inf, dtype, ordered=True) == 0
        with pytest.raises(DTypeError, match="−∞"):
            element(-math.inf, dtype)
    else:
        assert element(-math.inf, dtype) == (-math.inf if dtype.kind == "f" else np.iinfo(dtype).min)
    with pytest.raises(DTypeError, match="is not a number"):
        element("x", dtype)


def test_infinite_integers_beyond_every_float():
    assert element(Fraction(1, 3), np.dtype("float32")) == float(np.float32(1 / 3))
    with pytest.raises(DTypeError, match="does not fit"):
        element(10**400, np.dtype("float64"))
    with pytest.raises(DTypeError, match="does not fit"):
        element(10**400, np.dtype("int64"))


def test_a_witness_needs_a_selective_sum():
    assert TROPICAL_ARGMIN.witness
    assert replace(TROPICAL_ARGMIN, witness=False) == MIN_PLUS
    assert repr(TROPICAL_ARGMIN) == "<semiring min-plus: 0 = inf, 1 = 0, with witness>"
    with pytest.raises(LawError, match=r"plus-times has no witness: ⊕ is not selective \(1.0 ⊕ 1.0 = 2.0\), so no single k wins"):
        PLUS_TIMES.with_witness()
    with pytest.raises(LawError, match="bitset has no witness"):
        BITSET.with_witness()
    assert semirings()["distance-hops"].with_witness().witness
    assert BOOLEAN.with_witness().witness
    with pytest.raises(LawError):
        DISTANCE_COUNT.with_witness()
