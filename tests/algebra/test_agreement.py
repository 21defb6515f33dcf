"""A recording that is not the function: it is refused with what differs, and object arrays run the callable all the same."""

import itertools
import math
import random
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from semiring.algebra import ops
from semiring.algebra.definition import Semiring
from semiring.algebra.laws import check
from semiring.common.errors import SemiringError, TraceError
from semiring.product import matmul

INF = math.inf
_counter = itertools.count()


def _swallows(a, b):
    try:
        return math.sqrt(a) + b
    except Exception:
        return 7


def _swallows_everything(a, b):
    try:
        return {a: b}[a]
    except BaseException:
        return a + b


def _loops(a, b):
    try:
        while a > 0:
            a = a - 1
    except Exception:
        return b
    return a + b


def _unpacks(a, b):
    try:
        x, *_ = a
    except TypeError:
        x = a
    return x + b


def _matches(a, b):
    match a:
        case int(x) if x > 5:
            return x + b
    return a + b + 1


def _handled(a, b):
    try:
        return a / b
    except ZeroDivisionError:
        return 0


NOT_THE_FUNCTION: dict[str, tuple[Any, str]] = {
    "a swallowed refusal": (_swallows, r"float\(\) or a function of math cannot be recorded"),
    "one swallowed with everything": (_swallows_everything, "an element in a set or dict"),
    "a swallowed endless loop": (_loops, "a loop or recursion that depends on values"),
    "an attempt to unpack": (_unpacks, "unpacking or iterating over a scalar element"),
    "isinstance": (lambda a, b: a + b if isinstance(a, float | int) else a - b, "depends on more than the values of its operands"),
    "type": (lambda a, b: a + b if type(a) in (float, int) else a - b, "recorded as a - b, but the callable depends on more than"),
    "of NumPy alone": (lambda a, b: a + b if isinstance(a, np.generic) else a + b + 1, "depends on more than the values"),
    "str": (lambda a, b: a + b if str(a)[0] != "<" else a - b, r"str\(\) of an element"),
    "repr": (lambda a, b: a + b if repr(a)[0] != "<" else a - b, "depends on more than the values"),
    "format": (lambda a, b: a + b if f"{a}" else a, "formatting an element"),
    "randomness": (lambda a, b: a + b + random.random(), "gives another result each time"),
    "a counter": (lambda a, b: a + b + next(_counter), "gives another result each time"),
    "hasattr": (lambda a, b: a + b if hasattr(a, "is_integer") else a, r"the attribute \.is_integer"),
    "division by an element": (lambda a, b: a / b, "a ⊗ b raises ZeroDivisionError .* state the carrier with domain="),
    "the remainder of an element": (lambda a, b: a % b, "a ⊗ b raises ZeroDivisionError"),
    "shift by an element": (lambda a, b: a << b, r"a ⊗ b raises ValueError \(negative shift count\)"),
    "among constants that are large": (
        lambda a, b: 10**18 if a >= 10**18 or b >= 10**18 else a + b + (1000 if isinstance(a, int) else 0),
        "depends on more than the values",
    ),
    "only beside a simple constant": (lambda a, b: a + b + (a == 6) * isinstance(a, float | int), "for a = 6"),
    "only beside a large constant": (lambda a, b: a + b + (a == 10**6) * isinstance(a, int), "for a = 1000000"),
    "only beside a fraction": (lambda a, b: a + b + (a == 0.75) * isinstance(a, float), "for a = 0.75"),
    "match": (lambda a, b: _matches(a, b), "depends on more than the values"),
    "an error that NumPy does not raise": (lambda a, b: _handled(a, b), "an error that only some numbers raise"),
    "only beside a constant": (lambda a, b: a + b + (a == 12345) * isinstance(a, float | int), "for a = 12345"),
}


@pytest.mark.parametrize("name", NOT_THE_FUNCTION)
def test_what_is_not_the_function_is_refused(name):
    function, message = NOT_THE_FUNCTION[name]
    made = Semiring("mine", min, function, INF, 0)  # not refused: object arrays run the callable
    one = np.ones((1, 1))
    for device in ("cpu", "reference"):
        with pytest.raises(TraceError, match=rf"^mine\.mul: .*{message}"):
            matmul(one, one, made, device=device)
    with pytest.raises(TraceError, match=message):
        check(made)
    x, y = Fraction(9), Fraction(2)
    if name not in ("randomness", "a counter", "shift by an element"):
        assert matmul(np.array([[x]], object), np.array([[y]], object), made).item() == function(x, y)


def test_a_caught_refusal_of_the_sum_and_of_star():
    with pytest.raises(TraceError, match=r"mine\.add: float"):
        assert Semiring("mine", _swallows, min, 0, INF, domain=(0, INF)).program
    with pytest.raises(TraceError, match=r"mine\.star: float"):
        assert Semiring("mine", max, min, 0, INF, domain=(0, INF), star=lambda a: _swallows(a, a)).program
    with pytest.raises(TraceError, match=r"mine\.star: .*recorded as 0, but .*: a\* is inf for a = 1"):
        assert Semiring("mine", max, min, -INF, INF, star=lambda a: INF if isinstance(a, int | float) and a > 0 else 0).program


AGREES: dict[str, tuple[Any, dict[str, Any]]] = {
    "a branch for the exception": (lambda a, b: a / b if b else INF, {}),
    "a carrier where it is defined": (lambda a, b: a / b, {"domain": (1, 4)}),
    "rounding": (lambda a, b: a**7 - b**7 + 0.1 * a, {}),
    "fractions": (lambda a, b: a * Fraction(1, 3) + b, {}),
    "overflow": (lambda a, b: a**60 + b, {"domain": (0, 1e300)}),
    "float32 constants": (lambda a, b: a + b * np.float32(0.1), {}),
    "a constant beyond floats of a carrier": (lambda a, b: a + b, {"domain": lambda a: a < 10**400}),
    "bits": (lambda a, b: (a & b) + (a ^ b) + (a << 3), {}),
    "shifts": (lambda a, b: a << b, {"domain": (0, INF)}),
    "NumPy's integers that wrap, in a float": (lambda a, b: (a + 0.0 * b) * (a * b * (b * b)), {}),
    "large ends": (lambda a, b: min(a + b, 2**63 - 1), {}),
    "NaN": (lambda a, b: (a - b) * 0, {"domain": (-INF, INF)}),
    "functions": (lambda a, b: ops.exp(ops.log(abs(a) + 1)) + ops.sqrt(abs(b)), {}),
    "ints of floats": (lambda a, b: max(a + b - 1, 0), {}),
}


@pytest.mark.parametrize("name", AGREES)
def test_what_agrees_is_recorded(name):
    function, options = AGREES[name]
    assert Semiring("mine", min, function, 1, 1, **options).program.mul


def test_at_least_64_pairs_of_each_kind():
    calls: list[tuple[Any, Any]] = []

    def product(a, b):
        calls.append((a, b))
        return a * b

    assert Semiring("times", max, product, 0, 1, domain=(0, 1e300)).program
    for kind in (int, float, np.int64, np.float64):
        assert len({(a, b) for a, b in calls if type(a) is kind}) >= 64


@pytest.mark.filterwarnings("error")
def test_the_negation_of_truth_values():
    """~True is −2 in Python, which recent versions warn of; NumPy's is False."""
    same = Semiring("same", lambda a, b: a & b, lambda a, b: ~(a ^ b), True, True)
    assert matmul(np.array([[True, False]]), np.array([[True], [False]]), same).item()


def test_integers_of_any_size_run_as_objects():
    p = 2**2203 - 1
    field = Semiring("field", lambda a, b: (a + b) % p, lambda a, b: a * b % p, 0, 1)
    assert matmul(np.array([[p - 1]], object), np.array([[p - 1]], object), field).item() == 1
    with pytest.raises(SemiringError):
        matmul([[1]], [[1]], field)


@pytest.mark.parametrize("p", [2**31 - 1, 10**9 + 7, 998244353])
def test_fields_of_large_primes_are_semirings(p):
    field = Semiring("field", lambda a, b: (a + b) % p, lambda a, b: a * b % p, 0, 1, domain=(0, p - 1))
    assert check(field, "int64")


def test_laws_of_objects_are_those_of_the_callables():
    def union(a, b):
        return a | b

    def either(a, b):
        return a & b if isinstance(a, frozenset) else a | b

    made = [Semiring("s", add, lambda a, b: a & b, frozenset(), frozenset("abc")) for add in (union, either)]
    assert made[0] == made[1]  # what was recorded is the same
    assert check(made[0], object)
    assert not check(made[1], object)


def test_semirings_are_made_quickly_of_large_sets_and_many_components():
    """Nothing is tried of every element of a large carrier, nor on every combination of components."""
    calls = 0

    def product(a, b):
        nonlocal calls
        calls += 1
        return min(a, b)

    assert Semiring("set", max, product, 0, 1, domain=range(100_000)).program
    assert calls < 2000
    calls = 0
    four = Semiring(
        "four", lambda a, b: tuple(map(max, a, b)), lambda a, b: tuple(map(product, a, b)), (0,) * 4, (1,) * 4, domain=((0, 1),) * 4
    )
    assert four.program
    assert calls < 8000
