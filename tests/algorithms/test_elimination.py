"""Closed semirings: inverses, generating sums, counts of paths, symbolic path expressions."""

from __future__ import annotations

import itertools
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import sympy as sp
from hypothesis import given
from hypothesis import strategies as st

import semiring as sr
from semiring import testing
from semiring.common.errors import DivergentPivot

METHODS = ("iterative", "blocked", "recursive")
INF = np.inf


@pytest.mark.sampled(29)
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("block", [None, 1, 5, 64])
@pytest.mark.parametrize("n", [0, 1, 2, 63, 64, 65, 150])
def test_plus_times_is_the_inverse(method: str, block: int | None, n: int) -> None:
    a = np.random.default_rng(n).random((n, n)) / max(1, n)
    inverse = np.linalg.inv(np.eye(n) - a)
    assert np.allclose(sr.closure(a, sr.PLUS_TIMES, method=method, block=block), inverse, rtol=1e-12)
    assert np.allclose(sr.closure(a, sr.PLUS_TIMES, method=method, block=block, reflexive=False), inverse - np.eye(n), atol=1e-12)


def test_plus_times_continues_beyond_convergence() -> None:
    a = np.random.default_rng(0).normal(size=(40, 40))
    assert np.allclose(sr.closure(a, sr.PLUS_TIMES), np.linalg.inv(np.eye(40) - a), rtol=1e-8)


@pytest.mark.parametrize("method", METHODS)
def test_fractions_are_inverted_exactly(method: str) -> None:
    rng = np.random.default_rng(1)
    a = np.array([[Fraction(int(x), 7) for x in row] for row in rng.integers(-5, 6, (9, 9))], dtype=object)
    star = sr.closure(a, sr.PLUS_TIMES, method=method, block=2)
    one = np.array([[Fraction(int(i == j)) for j in range(9)] for i in range(9)], dtype=object)
    assert ((one - a) @ star == one).all()


def test_a_divergent_star_is_an_error() -> None:
    with pytest.raises(sr.DivergenceError, match="weight 1") as caught:
        sr.closure(np.array([[0.5, 0.0], [0.0, 1.0]]), sr.PLUS_TIMES)
    assert caught.value.cycle == [1]
    with pytest.raises(sr.DivergenceError, match="singular") as caught:
        sr.closure(np.array([[0.0, -1.0], [-1.0, 0.0]]), sr.PLUS_TIMES)
    assert caught.value.cycle is caught.value.vertices is None
    with pytest.raises(sr.DivergenceError):
        sr.closure(np.array([[0.0]]), sr.LOG)


def test_a_closure_that_leaves_the_range_is_an_error() -> None:
    a = np.zeros((3, 3), dtype=np.float32)
    a[0, 1], a[1, 2], a[2, 0] = 1e30, 1e30, -1e30
    a[1, 0] = -1e30
    with np.errstate(all="ignore"), pytest.raises(sr.DivergenceError):
        sr.closure(a, sr.PLUS_TIMES)


@pytest.mark.parametrize("method", METHODS)
def test_log_is_plus_times_in_logarithms(method: str) -> None:
    a = np.random.default_rng(2).random((70, 70)) / 90
    a[a < 0.004] = 0
    with np.errstate(divide="ignore"):
        log = np.log(a)
    assert np.allclose(np.exp(sr.closure(log, sr.LOG, method=method)), np.linalg.inv(np.eye(70) - a), rtol=1e-10)
    assert np.allclose(
        np.exp(sr.closure(log, sr.LOG, method=method, reflexive=False)), np.linalg.inv(np.eye(70) - a) - np.eye(70), atol=1e-10
    )


@given(data=st.data())
def test_gf2_is_the_inverse_over_two_elements(data: st.DataObject) -> None:
    n = data.draw(st.integers(1, 7))
    bits = data.draw(st.lists(st.booleans(), min_size=n * n, max_size=n * n))
    a = np.array(bits).reshape(n, n)
    try:
        star = sr.closure(a, sr.GF2, method=data.draw(st.sampled_from(METHODS)), block=data.draw(st.sampled_from([None, 1, 2])))
    except sr.DivergenceError:
        minors = [round(float(np.linalg.det((np.eye(k) - a[:k, :k]).astype(float)))) % 2 for k in range(1, n + 1)]
        assert 0 in minors
    else:
        identity = np.eye(n, dtype=bool)
        assert np.array_equal(sr.matmul(identity ^ a, star, sr.GF2), identity)


@pytest.mark.parametrize("method", METHODS)
@given(data=st.data())
def test_counting_shortest_paths(method: str, data: st.DataObject) -> None:
    n = data.draw(st.integers(1, 6))
    weights = st.one_of(st.just(INF), st.integers(1, 3).map(float))
    distance = np.array(data.draw(st.lists(weights, min_size=n * n, max_size=n * n))).reshape(n, n)
    count = (distance < INF).astype(float)
    reflexive = data.draw(st.booleans())
    block = data.draw(st.sampled_from([None, 1, 2]))
    found = sr.closure((distance, count), sr.DISTANCE_COUNT, method=method, block=block, reflexive=reflexive)
    expected = testing.brute_force(sr.DISTANCE_COUNT, (distance, count), reflexive=reflexive)
    for x, y in zip(found, expected, strict=True):
        assert (x == y).all()


def test_counts_on_a_grid_are_binomial() -> None:
    side = 12
    distance = np.full((side * side, side * side), INF)
    for x, y in itertools.product(range(side), repeat=2):
        for dx, dy in ((0, 1), (1, 0)):
            if x + dx < side and y + dy < side:
                distance[x * side + y, (x + dx) * side + y + dy] = 1.0
    found = sr.closure((distance, (distance < INF) * 1.0), sr.DISTANCE_COUNT)
    assert found[0][0, -1] == 2 * (side - 1)
    assert found[1][0, -1] == 705432  # 22 over 11


@pytest.mark.parametrize("method", METHODS)
def test_symbols_give_the_path_expression(method: str) -> None:
    n = 3
    symbols = sp.symbols(f"a:{n * n}")
    star = sp.Matrix(sr.closure(np.array(symbols, dtype=object).reshape(n, n), sr.PLUS_TIMES, method=method, block=1))
    assert star.free_symbols == set(symbols)
    values = [sp.Rational(k * k + 1, 31 * (k + 2)) for k in range(n * n)]
    numbers = dict(zip(symbols, values, strict=True))
    assert star.subs(numbers) * (sp.eye(n) - sp.Matrix(n, n, values)) == sp.eye(n)


def test_symbols_give_the_shortest_path_expression() -> None:
    x, y, z = sp.symbols("x y z", nonnegative=True)
    a = np.array([[sp.oo, x, z], [sp.oo, sp.oo, y], [sp.oo, sp.oo, sp.oo]], dtype=object)
    star = sr.closure(a, sr.MIN_PLUS)
    assert sp.simplify(star[0, 2] - sp.Min(z, x + y)) == 0


def test_regular_languages_of_a_graph_as_sets_of_words() -> None:
    """Words up to length 3 under union and (truncated) concatenation: objects of the user's own."""
    words = sr.Semiring(
        "words",
        add=lambda a, b: a | b,
        mul=lambda a, b: frozenset(x + y for x in a for y in b if len(x + y) <= 3),
        zero=frozenset(),
        one=frozenset({""}),
        star=lambda a: frozenset(
            "".join(p) for k in range(4) for p in itertools.product(a, repeat=k) if len("".join(p)) <= 3
        ),
    )  # fmt: skip
    a = np.empty((2, 2), dtype=object)
    a[0, 0], a[0, 1], a[1, 0], a[1, 1] = frozenset({"a"}), frozenset({"b"}), frozenset({"c"}), frozenset()
    for method in METHODS:
        star = sr.closure(a, words, method=method)
        assert star[0, 0] == {"", "a", "aa", "aaa", "bc", "abc", "bca"}
        assert star[1, 1] == {"", "cb", "cab"}


@pytest.mark.parametrize("semiring", [sr.PLUS_TIMES, sr.LOG, sr.BITSET, sr.DISTANCE_COUNT], ids=lambda s: s.name)
def test_paths_need_a_selective_sum(semiring: sr.Semiring) -> None:
    a: Any = testing.random_matrix(semiring, 3, rng=np.random.default_rng(0))
    with pytest.raises(sr.LawError, match="paths=False"):
        sr.closure(a, semiring, paths=True)


def test_a_structure_that_is_no_semiring_is_refused_with_a_counterexample() -> None:
    mean = sr.Semiring("mean", min, lambda a, b: (a + b) / 2, zero=INF, one=0)
    with pytest.raises(sr.LawError, match="matmul"):
        sr.closure(np.zeros((2, 2)), mean, nonedge=-1)


DEVICES = ("cpu", "reference", pytest.param("cuda", marks=pytest.mark.gpu))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "uint16"])
def test_a_star_may_be_infinite_where_infinity_is_an_element(device: str, dtype: str) -> None:
    """Widest paths with the star that they have by definition, 1 ⊕ a = 1 = ∞."""
    widest = sr.Semiring("widest", max, min, -INF, INF, star=lambda a: INF)
    assert sr.check(widest, dtype)["star"].status == "passed"
    widths = np.random.default_rng(0).integers(1, 100, (70, 70)).astype(dtype)
    assert np.array_equal(sr.closure(widths, widest, device=device), sr.closure(widths, sr.MAX_MIN, device="reference"))


@pytest.mark.parametrize("device", DEVICES)
def test_the_two_best_walks(device: str) -> None:
    def two(*lengths: Any) -> Any:
        first, second = lengths[0], INF
        for x in lengths[1:]:
            second = min(max(first, x), second)
            first = min(first, x)
        return first, second

    def star(a: Any) -> Any:
        if a[0] < 0:
            raise sr.DivergenceError("ever shorter")
        return 0, a[0]

    best = sr.Semiring(
        "two best",
        lambda a, b: two(*a, *b),
        lambda a, b: two(a[0] + b[0], a[0] + b[1], a[1] + b[0]),
        (INF, INF),
        (0, INF),
        star=star,
        domain=lambda a: (a[0] >= 0) & (a[0] <= a[1]),
    )
    assert sr.check(best)
    n = 9
    lengths = np.where(np.triu(np.ones((n, n)), 1) > 0, np.random.default_rng(1).integers(1, 30, (n, n)), INF)
    first, second = sr.closure((lengths, np.full((n, n), INF)), best, device=device)
    for i, j in np.ndindex(n, n):
        inner = range(i + 1, j)
        walks = [
            sum(lengths[u, v] for u, v in itertools.pairwise((i, *chosen, j)))
            for size in range(len(inner) + 1) for chosen in itertools.combinations(inner, size)
        ] if i < j else [0.0] if i == j else []  # fmt: skip
        assert [first[i, j], second[i, j]] == sorted([*walks, INF, INF])[:2]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("star", "domain", "exists"), [
    (lambda a: INF, (0, INF), True), (lambda a: INF, (0, 1e300), False), (lambda a: 1 / a, (0, 1e300), False),
    (lambda a: a - a, None, True),
])  # fmt: skip
def test_a_star_exists_where_it_is_an_element(device: str, dtype: str, star: Any, domain: Any, exists: bool) -> None:
    largest = sr.Semiring("largest", max, min, 0, 1e30, star=star, domain=domain)
    matrix = np.zeros((2, 2), dtype)
    model = sr.algebra.model.Model(largest, (np.dtype(dtype),))
    found, inside = model.star((matrix,))
    assert inside.all() == exists
    engine = sr.kernels.select.engine_for(largest, (np.dtype(dtype),), "cpu" if device == "cuda" else device)
    block = engine.load((matrix,))
    if exists:
        engine.eliminate(block)
        assert block.values[0][0, 0] == found[0][0, 0]
    else:
        with pytest.raises(DivergentPivot):
            engine.eliminate(block)


@pytest.mark.parametrize("device", ["cpu", "reference"])
def test_a_star_with_a_handled_division(device: str) -> None:
    def star(a: Any) -> Any:
        if a > 1:
            return INF
        try:
            return 1 / (1 - a)
        except ZeroDivisionError:
            return INF

    walks = sr.Semiring("walks", lambda a, b: a + b, lambda a, b: a * b if a and b else 0, 0, 1, star=star, domain=(0, INF))
    for loop, expected in ((0.5, 2), (1.0, INF), (2.0, INF)):
        assert sr.closure(np.array([[loop]]), walks, device=device).item() == expected
        pair = sr.Semiring(
            "pair",
            lambda a, b: (a[0] + b[0], a[1] + b[1]),
            lambda a, b: (walks.mul(a[0], b[0]), walks.mul(a[1], b[1])),
            (0, 0),
            (1, 1),
            star=lambda a: (star(a[0]), star(a[1])),
            domain=lambda t: (t[0] >= 0) & (t[1] >= 0),
        )
        found = sr.closure((np.array([[0.25]]), np.array([[loop]])), pair, device=device)
        assert [v.item() for v in found] == [4 / 3, expected]


@pytest.mark.sampled(6)
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", ["int16", "int32", "int64", "float32", "float64"])
def test_an_infinite_star_among_numbers_that_add(device: str, dtype: str) -> None:
    """∞ that is no element is no star in any dtype; ∞ that is one cannot be kept by sums of integers, and is refused there."""
    graph = np.array([[1, 3], [-5, 0]], dtype)
    longest = sr.Semiring("longest", max, lambda a, b: a + b, -INF, 0, star=lambda a: 0 if a <= 0 else INF)
    with pytest.raises(sr.DivergenceError):
        sr.closure(graph, longest, device=device)
    shortest = sr.Semiring("shortest", min, lambda a, b: a + b, INF, 0, star=lambda a: 0 if a >= 0 else -INF)
    with pytest.raises(sr.DivergenceError):
        sr.closure(-graph, shortest, device=device)
    bounded = sr.Semiring(
        "bounded",
        max,
        lambda a, b: a + b if a > -INF and b > -INF else -INF,
        -INF,
        0,
        star=lambda a: 0 if a <= 0 else INF,
        domain=(-INF, INF),
    )
    if "int" in dtype:
        with pytest.raises(sr.DTypeError, match="the star of bounded may be inf, which sums of"):
            sr.closure(graph, bounded, device=device)
    else:
        assert (sr.closure(graph, bounded, device=device) == INF).all()
