"""Closures that do not converge say so with a real cycle; those that only rounding disturbs come out right."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import semiring as sr
from semiring import testing

METHODS = ("iterative", "blocked", "recursive")
INF = np.inf

pytestmark = pytest.mark.filterwarnings("ignore::semiring.NonEdgeWarning")  # zeros everywhere, on purpose


def has_negative_cycle(a: np.ndarray[Any, Any]) -> bool:
    """Floyd and Warshall in exact arithmetic, up to the first negative pivot."""
    n = len(a)
    d: list[list[Fraction | None]] = [[Fraction(w) if math.isfinite(w) else None for w in row] for row in a.tolist()]
    for k in range(n):
        pivot = d[k][k]
        if pivot is not None and pivot < 0:
            return True
        for i in range(n):
            for j in range(n):
                left, right = d[i][k], d[k][j]
                if left is not None and right is not None:
                    old = d[i][j]
                    d[i][j] = left + right if old is None else min(old, left + right)
    return False


def exact_distances(a: np.ndarray[Any, Any]) -> list[list[Any]]:
    """Floyd and Warshall in exact arithmetic, for a matrix without negative cycles."""
    n = len(a)
    d: list[list[Any]] = [[Fraction(w) if math.isfinite(w) else math.inf for w in row] for row in a.tolist()]
    for i in range(n):
        d[i][i] = min(d[i][i], Fraction(0))
    for k in range(n):
        for i in range(n):
            for j in range(n):
                d[i][j] = min(d[i][j], d[i][k] + d[k][j])
    return d


def assert_cycle(error: sr.DivergenceError, a: Any, semiring: sr.Semiring = sr.MIN_PLUS) -> None:
    cycle = error.cycle
    assert cycle
    assert len(set(cycle)) == len(cycle)
    weight = testing.path_weight(semiring, a, [*cycle, cycle[0]])
    assert semiring.add(semiring.one, weight) != semiring.one


def graphs(weights: st.SearchStrategy[float], max_n: int = 7) -> st.SearchStrategy[np.ndarray[Any, Any]]:
    entry = st.one_of(st.just(INF), weights)
    return st.integers(1, max_n).flatmap(
        lambda n: st.lists(entry, min_size=n * n, max_size=n * n).map(lambda w: np.array(w, dtype=float).reshape(n, n))
    )


@given(
    a=graphs(st.integers(-3, 6).map(float)), method=st.sampled_from(METHODS), block=st.sampled_from([None, 1, 2]), paths=st.booleans(),
    reflexive=st.booleans(), dtype=st.sampled_from(["float64", "float32", "int32", "int64"]), device=st.sampled_from(["cpu", "reference"]),
)  # fmt: skip
def test_negative_cycles_are_found_exactly_where_there_are_some(
    a: Any, method: str, block: int | None, paths: bool, reflexive: bool, dtype: str, device: str
) -> None:
    negative = has_negative_cycle(a)
    if dtype.startswith("int"):
        whole = np.full(a.shape, np.iinfo(dtype).max, dtype=dtype)
        whole[a < INF] = a[a < INF]
        a = whole
    else:
        a = a.astype(dtype)
    before = a.copy()
    try:
        sr.closure(a, sr.MIN_PLUS, method=method, block=block, paths=paths, reflexive=reflexive, device=device)
    except sr.NegativeCycleError as error:
        assert negative
        assert_cycle(error, a)
    else:
        assert not negative
    assert np.array_equal(a, before)


@given(a=graphs(st.floats(-1e3, 1e3), max_n=5), method=st.sampled_from(METHODS))
def test_arbitrary_floats_give_distances_or_a_cycle_that_is_negative_in_exact_arithmetic(a: Any, method: str) -> None:
    try:
        closure = sr.closure(a, sr.MIN_PLUS, method=method)
    except sr.NegativeCycleError as error:
        assert_cycle(error, a)
        return
    n, exact = len(a), exact_distances(a)
    largest = max([abs(w) for w in a[np.isfinite(a)].tolist()], default=0.0)
    for i in range(n):
        for j in range(n):
            assert closure[i, j] == exact[i][j] or abs(Fraction(closure[i, j]) - exact[i][j]) <= 100 * 2e-16 * largest


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64])
def test_weights_never_grow_exponentially(method: str, dtype: Any) -> None:
    n = 130
    a = np.full((n, n), -1, dtype=dtype)
    for paths in (False, True):
        with np.errstate(all="raise"), pytest.raises(sr.NegativeCycleError) as caught:
            sr.apsp(a, method=method, paths=paths)
        assert_cycle(caught.value, a)


@pytest.mark.parametrize("method", METHODS)
def test_one_negative_cycle_through_every_vertex(method: str) -> None:
    n = 150
    a = np.full((n, n), INF)
    order = np.random.default_rng(0).permutation(n)
    a[order, np.roll(order, -1)] = 1.0
    a[order[-1], order[0]] = -(n - 1.0)  # sums to 0: harmless
    assert np.isfinite(sr.apsp(a, method=method)).all()
    a[order[-1], order[0]] -= 0.5
    with pytest.raises(sr.NegativeCycleError) as caught:
        sr.apsp(a, method=method)
    assert sorted(caught.value.cycle or []) == list(range(n))
    assert_cycle(caught.value, a)


def test_message_names_the_vertices_and_the_weight() -> None:
    graph = sr.edges([("a", "b", 1.0), ("b", "c", -5.0), ("c", "a", 2.0), ("c", "d", 1.0)])
    with pytest.raises(sr.NegativeCycleError, match=r"a → b|b → c|c → a.*weight -2") as caught:
        sr.apsp(graph)
    assert sorted(caught.value.cycle or []) == ["a", "b", "c"]
    assert "min-plus" in "".join(caught.value.__notes__)


def test_batches_tell_which_matrix() -> None:
    a = np.zeros((2, 3, 4, 4))
    a[1, 2, 0, 0] = -1
    with pytest.raises(sr.NegativeCycleError) as caught:
        sr.apsp(a)
    assert caught.value.cycle == [0]
    assert "batch index [1, 2]" in str(caught.value)
    assert caught.value.index == (1, 2)


def rounded_up_differences(p: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """w_uv ≥ p_v − p_u exactly, and equal to it to one rounding: cycles are never negative, but their floating-point sums are."""
    exact = [[Fraction(float(y)) - Fraction(float(x)) for y in p] for x in p]
    a: np.ndarray[Any, Any] = np.subtract.outer(p, p).T.astype(p.dtype)
    for at in np.ndindex(a.shape):
        while Fraction(float(a[at])) < exact[at[0]][at[1]]:
            a[at] = np.nextafter(a[at], p.dtype.type(INF))
    return a


def rounded_up_potentials(n: int, dtype: Any, seed: int) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Such weights, and the potentials."""
    p = (10 * np.random.default_rng(seed).random(n)).astype(dtype)
    return rounded_up_differences(p), p


@pytest.mark.sampled(5)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("overwrite", [False, True])
def test_cycles_that_only_rounding_makes_negative_do_no_harm(dtype: Any, method: str, overwrite: bool) -> None:
    n = 80
    a, p = rounded_up_potentials(n, dtype, seed=3)
    weights = a.copy()
    paths = sr.apsp(a, method=method, paths=True, overwrite=overwrite)
    exact = p[None, :].astype(np.float64) - p[:, None]
    assert np.abs(paths.distances - exact).max() <= 40 * np.finfo(dtype).eps  # left alone, such errors double at every pivot
    assert (np.diagonal(paths.distances) == 0).all()
    if not overwrite:
        testing.assert_paths_valid(paths, weights, absolute=40 * np.finfo(dtype).eps)
    plus = sr.closure(weights.copy(), sr.MIN_PLUS, method=method, reflexive=False, overwrite=overwrite)
    assert np.abs(plus - exact).max() <= 40 * np.finfo(dtype).eps


def large_and_tiny(seed: int, dtype: Any, density: float) -> np.ndarray[Any, Any]:
    """Differences of potentials of all sizes, rounded up, some with a little more: cycles are as near to 0 as rounding is."""
    rng, n = np.random.default_rng(seed), 16
    p = (rng.normal(size=n) * 10.0 ** rng.integers(-6, 7, n)).astype(dtype)
    a = rounded_up_differences(p)
    more = (a + rng.random((n, n)) * 10.0 ** rng.integers(-12, -3, (n, n))).astype(dtype)
    np.maximum(a, more, out=a, where=rng.random((n, n)) > 0.3)
    a[rng.random((n, n)) > density] = INF
    return a


@pytest.mark.sampled(17)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("density", [1.0, 0.4, 0.15])
@pytest.mark.parametrize("seed", range(8))
def test_distances_are_right_to_rounding_however_much_the_weights_differ(dtype: Any, density: float, seed: int) -> None:
    a = large_and_tiny(seed, dtype, density)
    exact, finite = exact_distances(a), np.isfinite(a)
    found = {}
    for paths in (True, False):
        for overwrite in (True, False):
            answer = sr.apsp(a.copy(), paths=paths, overwrite=overwrite)
            found[paths, overwrite] = answer.distances if paths else answer
            # n · ε · the largest weight or distance
            largest = max([*np.abs(a[finite]).tolist(), *(abs(float(d)) for row in exact for d in row if d < INF)])
            for row, distances in zip(exact, found[paths, overwrite].tolist(), strict=True):
                for expected, distance in zip(row, distances, strict=True):
                    assert expected == distance or abs(Fraction(distance) - expected) <= len(a) * np.finfo(dtype).eps * largest
    assert np.array_equal(found[True, False], found[False, False])
    answer = sr.apsp(a, paths=True)
    edges = (answer.via < 0) & ~np.eye(len(a), dtype=bool)
    assert np.array_equal(answer.distances[edges], a[edges])
    if density == 1.0:
        testing.assert_paths_valid(answer, a, slack=2.0)  # though potentials are 10¹² times as large as some weights


def test_rounding_beside_a_real_negative_cycle() -> None:
    a, _ = rounded_up_potentials(60, np.float64, seed=1)
    for i, j in ((58, 59), (3, 41)):
        b = a.copy()
        b[i, j] -= 1e-6
        b[j, i] -= 1e-6
        for overwrite in (False, True):
            with pytest.raises(sr.NegativeCycleError) as caught:
                sr.apsp(b.copy(), overwrite=overwrite)
            assert (
                overwrite
                or caught.value.cycle in ([i, j], [j, i])
                or testing.path_weight(sr.MIN_PLUS, b, [*(caught.value.cycle or []), (caught.value.cycle or [0])[0]]) < 0
            )


def test_overwritten_input_leaves_the_cycle_to_via() -> None:
    a = np.full((70, 70), INF)
    a[np.arange(69), np.arange(1, 70)] = 1.0
    a[69, 5] = -100.0
    kept = a.copy()
    with pytest.raises(sr.NegativeCycleError) as caught:
        sr.apsp(a.copy(), overwrite=True, paths=True)
    assert_cycle(caught.value, kept)
    for nonedge in (None, np.nan):
        a[np.isinf(a)] = np.inf if nonedge is None else nonedge
        with pytest.raises(sr.NegativeCycleError, match="overwritten") as caught:
            sr.apsp(a.copy(), overwrite=True, nonedge=nonedge)
        assert caught.value.cycle is None


def test_other_semirings_diverge_too() -> None:
    a = np.array([[-INF, 2.0], [-1.0, -INF]])
    with pytest.raises(sr.DivergenceError) as caught:
        sr.closure(a, sr.MAX_PLUS)
    assert not isinstance(caught.value, sr.NegativeCycleError)
    assert_cycle(caught.value, a, sr.MAX_PLUS)
    rates = np.array([[1.0, 0.5, 0.0], [2.0, 1.0, 4.0], [0.0, 0.3, 1.0]])
    with pytest.raises(sr.DivergenceError) as caught:
        sr.closure(rates, sr.MAX_TIMES)
    assert_cycle(caught.value, rates, sr.MAX_TIMES)


def test_exchange_rates_without_arbitrage_but_for_rounding() -> None:
    value = np.exp(np.random.default_rng(4).normal(size=50))
    rates = value[:, None] / value[None, :]
    rates = np.nextafter(np.nextafter(rates, 0), 0)  # every cycle loses a little
    best = sr.closure(rates, sr.MAX_TIMES)
    assert np.allclose(best, value[:, None] / value[None, :], rtol=1e-14)


def test_zero_length_cycles_have_infinitely_many_shortest_paths() -> None:
    distance = np.array([[INF, 0.0, INF], [5.0, INF, 0.0], [0.0, INF, INF]])
    count = (distance < INF).astype(float)
    with pytest.raises(sr.DivergenceError) as caught:
        sr.closure((distance, count), sr.DISTANCE_COUNT)
    assert sorted(caught.value.cycle or []) == [0, 1, 2]


def test_a_semiring_whose_weights_cannot_be_inverted_refuses_instead_of_guessing() -> None:
    odd = sr.Semiring("odd", min, lambda a, b: a + b if a < b else b + a, math.inf, 0, domain=(-1e300, math.inf))
    a, _ = rounded_up_potentials(60, np.float64, seed=1)
    with pytest.raises(sr.DivergenceError, match="rounding makes a cycle improve"):
        sr.closure(a, odd)


def test_name_and_operations_decide_not_identity() -> None:
    own = sr.Semiring("own", lambda a, b: b if b < a else a, lambda a, b: a + b, math.inf, 0, domain=(-1e300, math.inf))
    with pytest.raises(sr.NegativeCycleError):
        sr.closure(np.array([[-1.0]]), own)


def test_numbers_of_sympy_are_numbers() -> None:
    import sympy as sp

    a = np.array([[sp.oo, sp.Rational(1, 3)], [sp.Rational(-1, 2), sp.oo]], dtype=object)
    with pytest.raises(sr.NegativeCycleError):
        sr.apsp(a)
    with pytest.raises(sr.DivergenceError) as caught:
        sr.closure(np.array([[sp.Integer(1)]], dtype=object), sr.PLUS_TIMES)
    assert caught.value.cycle == [0]


def test_exact_fractions_diverge_exactly() -> None:
    a = np.array([[INF, Fraction(1, 3)], [Fraction(-1, 3), INF]], dtype=object)
    assert sr.apsp(a)[0, 0] == 0
    a[1, 0] -= Fraction(1, 10**30)
    with pytest.raises(sr.NegativeCycleError):
        sr.apsp(a)


def test_the_weight_of_a_cycle_of_large_floats_is_not_rounded_to_a_power_of_ten() -> None:
    with pytest.raises(sr.NegativeCycleError, match=r"weight -2e\+300"):
        sr.apsp(np.array([[0, -1e300], [-1e300, 0]]))


def test_a_cycle_beyond_every_float_is_shown_by_its_size() -> None:
    huge = np.array([[0, Fraction(1, 2)], [-(10**5000), 0]], dtype=object)
    with pytest.raises(sr.NegativeCycleError, match="about -1e") as found:
        sr.apsp(huge)
    assert found.value.cycle is not None


def test_a_product_just_above_1_is_not_shown_as_1() -> None:
    rates = np.zeros((4, 4))
    rates[[0, 1, 2, 3], [1, 2, 3, 0]] = 1.1504592762678163, 1.18844673057094, 0.8889214239791038, 0.8227836561837927
    with pytest.raises(sr.DivergenceError, match=r"weight 1 \+ 7\.07e-17"):
        sr.closure(rates, sr.MAX_TIMES)
    tiny = np.array([[1 + Fraction(1, 10**30)]], dtype=object)
    with pytest.raises(sr.DivergenceError, match=r"weight 1 \+ 1e-30"):
        sr.closure(tiny, sr.MAX_TIMES)
    with pytest.raises(sr.NegativeCycleError, match=r"weight −1e-400"):
        sr.apsp(np.array([[-Fraction(1, 10**400)]], dtype=object))


def test_a_semiring_without_a_star_is_told_of_it() -> None:
    operations = max, lambda a, b: min(a + b, 4), -math.inf, 0
    domain = {-math.inf, 0, 1, 2, 3, 4}
    edges = np.array([[-INF, 1.0], [2.0, -INF]])
    with pytest.raises(sr.DivergenceError, match=r"weight 3; .* by star="):
        sr.closure(edges, sr.Semiring("capped", *operations, domain=domain))
    with_star = sr.Semiring("capped", *operations, star=lambda a: 4 if a > 0 else 0, domain=domain)
    assert (sr.closure(edges, with_star) == 4).all()
    with pytest.raises(sr.NegativeCycleError) as caught:
        sr.apsp(np.array([[-1.0]]))
    assert "star=" not in str(caught.value)


@pytest.mark.parametrize("semiring", [sr.LOG, sr.PLUS_TIMES], ids=lambda s: s.name)
def test_a_cycle_of_exactly_1_is_found(semiring: sr.Semiring) -> None:
    a = np.array([[0, 0.3, 0], [0, 0, 4], [0.5, 0.25, 0]])
    a[0, 1] = 0.125
    with np.errstate(divide="ignore"):
        edges = np.log2(a) if semiring is sr.LOG else a
    with pytest.raises(sr.DivergenceError, match=f"weight {semiring.one}") as caught:
        sr.closure(edges, semiring)
    assert sorted(caught.value.cycle or []) == [1, 2]
