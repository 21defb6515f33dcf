"""Closures near the limits of their dtype are right or refused: integers never wrap, and no float passes for ∞."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

import semiring as sr
from semiring import testing
from semiring.kernels.overflow.intervals import stays_inside

DTYPES = ["int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
DEVICES = ("cpu", "reference", pytest.param("cuda", marks=pytest.mark.gpu))
METHODS = ("iterative", "blocked", "recursive")
INF = np.inf

pytestmark = pytest.mark.filterwarnings("ignore::semiring.NonEdgeWarning")  # zeros everywhere, on purpose


def exact_distances(a: Any, infinity: int, *, reflexive: bool, best: Any = min) -> list[list[Any]] | None:
    """Floyd and Warshall on Python integers; None for a cycle that improves."""
    n = len(a)
    d: list[list[Any]] = [[None if w == infinity else int(w) for w in row] for row in a.tolist()]
    for i in range(n):
        own = d[i][i]
        if own is not None and best(own, 0) == own != 0:
            return None
        if reflexive:
            d[i][i] = 0
    for k in range(n):
        for i in range(n):
            for j in range(n):
                if d[i][k] is not None and d[k][j] is not None:
                    total = d[i][k] + d[k][j]
                    d[i][j] = total if d[i][j] is None else best(d[i][j], total)
        if any(d[i][i] is not None and best(d[i][i], 0) == d[i][i] != 0 for i in range(n)):
            return None
    return d


@given(data=st.data())
def test_near_the_limits_distances_are_exact_or_refused(data: st.DataObject) -> None:
    dtype = np.dtype(data.draw(st.sampled_from(DTYPES)))
    semiring, best = data.draw(st.sampled_from([(sr.MIN_PLUS, min), (sr.MAX_PLUS, max)] if dtype.kind == "i" else [(sr.MIN_PLUS, min)]))
    info: Any = np.iinfo(dtype)
    infinity = info.max if semiring is sr.MIN_PLUS else info.min
    n = data.draw(st.integers(1, 6))
    scale = data.draw(st.sampled_from([5, info.max // 20, info.max // 6, info.max // 2, info.max]))
    low = data.draw(st.sampled_from([0, -scale // 4])) if dtype.kind == "i" else 0
    sign = 1 if semiring is sr.MIN_PLUS else -1
    weight = st.integers(low, scale).map(lambda w: max(min(sign * w, info.max), info.min))
    entries = data.draw(st.lists(st.one_of(st.just(infinity), weight), min_size=n * n, max_size=n * n))
    a = np.array(entries, dtype=dtype).reshape(n, n)
    before, reflexive = a.copy(), data.draw(st.booleans())
    expected = exact_distances(a, infinity, reflexive=reflexive, best=best)
    try:
        paths = sr.closure(
            a, semiring, reflexive=reflexive, paths=True, method=data.draw(st.sampled_from(METHODS)),
            block=data.draw(st.sampled_from([None, 1, 2])), device=data.draw(st.sampled_from(["cpu", "reference"])),
        )  # fmt: skip
    except sr.OverflowRiskError:
        return
    except sr.DivergenceError:
        assert expected is None
        return
    finally:
        assert np.array_equal(a, before)
    assert expected is not None
    found = [[None if w == infinity else int(w) for w in row] for row in paths.values.tolist()]
    assert found == expected
    testing.assert_paths_valid(paths, a)


def weights_near_the_limits(rng: np.random.Generator, dtype: str, sign: int) -> Any:
    """Weights of about an eighth to half of the range, with a few small ones. One sum of them fits the dtype, and the next would wrap.

    Two times in three all distances are small in the end, by way of one vertex, mostly the last: larger sums are only on the way.
    """
    info = np.iinfo(dtype)
    infinity, small = int(info.max if sign > 0 else info.min), int(info.max) // 40
    n, near = int(rng.integers(2, 8)), int(info.max) // int(rng.choice([8, 5, 4, 3, 2]))
    choices = [min(near + d, int(info.max) // 2 - 1) for d in (-2, -1, 0, 1)] + [0, int(rng.integers(0, small))]
    a = np.full((n, n), infinity, dtype=dtype)
    edges = rng.random((n, n)) < rng.choice([0.3, 0.5, 0.8])
    a[edges] = [sign * choices[int(w)] for w in rng.choice(6, edges.sum(), p=[0.2, 0.2, 0.2, 0.2, 0.1, 0.1])]
    if rng.random() < 2 / 3:
        hub = n - 1 if rng.random() < 2 / 3 else int(rng.integers(n))
        a[hub], a[:, hub] = (sign * rng.integers(0, small, n) for _ in range(2))
    return a


@pytest.mark.sampled(3)
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(
    ("semiring", "dtype"), [*((sr.MIN_PLUS, d) for d in DTYPES), *((sr.MAX_PLUS, d) for d in DTYPES if d.startswith("i"))],
    ids=lambda x: getattr(x, "name", x),
)  # fmt: skip
def test_what_comes_near_infinity_on_the_way_is_no_wrapped_number(device: str, semiring: sr.Semiring, dtype: str) -> None:
    """Distances are exact, or refused where they come near the inner ∞; and no sum on the way passes for a cycle that improves."""
    info = np.iinfo(dtype)
    best, sign = (min, 1) if semiring is sr.MIN_PLUS else (max, -1)
    infinity = int(info.max if sign > 0 else info.min)
    half = abs(infinity) // 2
    rng = np.random.default_rng(7)
    answered = 0
    for trial in range(36):
        a = weights_near_the_limits(rng, dtype, sign)
        reflexive, block = bool(trial % 2), (None, 1, 2)[trial % 3]
        exact = exact_distances(a, infinity, reflexive=reflexive, best=best)
        assert exact is not None
        weight = max((abs(int(w)) for w in a.flat if w != infinity), default=0)
        longest = max((abs(d) for row in exact for d in row if d is not None), default=0)
        ways: list[dict[str, Any]] = [{}, {"sources": list(range(len(a)))}]
        ways += [{"method": m, "block": block, "paths": p} for m in METHODS for p in (False, True)]
        for options in ways:
            try:
                found: Any = sr.closure(a, semiring, reflexive=reflexive, device=device, **options)
            except sr.OverflowRiskError:
                assert longest + weight >= half
                continue
            answered += 1
            values = found.values if options.get("paths") else found
            assert [[None if d == infinity else int(d) for d in row] for row in values.tolist()] == exact, options
            if options.get("paths"):
                testing.assert_paths_valid(found, a)
    assert answered > 60


@pytest.mark.parametrize(
    ("dtype", "wider"), [("int16", "int32"), ("int32", "int64"), ("int64", "float64"), ("uint8", "uint16"), ("uint32", "uint64")]
)
def test_the_error_names_a_wider_dtype(dtype: str, wider: str) -> None:
    infinity = np.iinfo(dtype).max
    chain = np.full((5, 5), infinity, dtype=dtype)
    chain[np.arange(4), np.arange(1, 5)] = infinity // 7
    with pytest.raises(sr.OverflowRiskError, match=wider):
        sr.apsp(chain)
    chain[np.arange(4), np.arange(1, 5)] = infinity // 11
    assert sr.apsp(chain)[0, 4] == 4 * (infinity // 11)


def test_negative_weights_need_room_for_three_paths() -> None:
    n, infinity = 20, np.iinfo(np.int16).max
    limit = (infinity // 2 - 1) // (3 * (n - 1))
    a = np.full((n, n), infinity, dtype=np.int16)
    a[np.arange(n - 1), np.arange(1, n)] = -limit
    assert sr.apsp(a)[0, -1] == -limit * (n - 1)
    a[0, 1] = -limit - 1
    with pytest.raises(sr.OverflowRiskError, match="int32"):
        sr.apsp(a)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("semiring", [sr.MIN_PLUS, sr.MAX_PLUS], ids=lambda s: s.name)
def test_no_path_stays_infinite_beside_negative_weights(method: str, semiring: sr.Semiring) -> None:
    n, info = 150, np.iinfo(np.int16)
    sign, infinity = (1, info.max) if semiring is sr.MIN_PLUS else (-1, info.min)
    rng = np.random.default_rng(0)
    a = np.full((n, n), infinity, dtype=np.int16)
    edges = np.triu(rng.random((n, n)) < 0.03, 1)
    a[edges] = sign * rng.integers(-30, 31, edges.sum())
    paths = sr.closure(a, semiring, paths=True, method=method)
    floats = sr.closure(np.where(edges, a.astype(float), sign * np.inf), semiring, method=method)
    assert np.array_equal(paths.values == infinity, np.isinf(floats))
    assert np.array_equal(paths.values[np.isfinite(floats)], floats[np.isfinite(floats)])
    assert (paths.via[paths.values == infinity] == -1).all()


def test_cycles_of_positive_weight_in_one_vertex() -> None:
    a = np.array([[7]], dtype=np.int16)
    assert sr.closure(a, sr.MIN_PLUS, reflexive=False)[0, 0] == 7
    assert sr.closure(np.array([[7, -1], [-3, 5]], dtype=np.int32) + 4, sr.MIN_PLUS, reflexive=False).tolist() == [[4, 3], [1, 4]]


def test_comparisons_alone_use_the_whole_range() -> None:
    info = np.iinfo(np.int16)
    a = np.array([[info.min, 32766, info.min], [info.min, info.min, -32767], [info.min] * 3], dtype=np.int16)
    assert sr.closure(a, sr.MAX_MIN)[0, 2] == -32767
    bits = np.array([[0, 0b1100], [0b1010, 0]], dtype=np.uint8)
    assert sr.closure(bits, sr.BITSET, reflexive=False).tolist() == [[0b1000, 0b1100], [0b1010, 0b1000]]


def test_products_are_bounded_by_input_and_result() -> None:
    a = np.array([[0, 1], [1, 0]], dtype=np.int16)
    assert sr.closure(a, sr.MAX_TIMES).tolist() == [[1, 1], [1, 1]]
    large = np.array([[0, 300, 0], [0, 0, 300], [0, 0, 0]], dtype=np.int16)
    with pytest.raises(sr.OverflowRiskError):
        sr.closure(large, sr.MAX_TIMES)
    assert sr.closure(large.astype(np.int64), sr.MAX_TIMES)[0, 2] == 90000


SUM_OF_MAGNITUDES = sr.Semiring("magnitudes", min, lambda a, b: abs(a) + abs(b), zero=float("inf"), one=0, domain=(0, float("inf")))


@pytest.mark.parametrize("method", ["iterative", "blocked", "recursive"])
def test_a_sum_that_wrapped_is_not_hidden_by_a_better_one(method: Any) -> None:
    """0 → 1 → 2 → 3 weighs 300, which is 44 in uint8; through 4 all is 50 apart, and nothing of input and result tells."""
    a = np.full((5, 5), 255, dtype=np.uint8)
    a[[0, 1, 2], [1, 2, 3]] = 100
    a[:4, 4] = a[4, :4] = 25
    with pytest.raises(sr.OverflowRiskError, match="uint16"):
        sr.closure(a, SUM_OF_MAGNITUDES, method=method)
    wide = np.where(a == 255, np.uint16(65535), a)
    assert sr.closure(wide, SUM_OF_MAGNITUDES, method=method)[0].tolist() == [0, 50, 50, 50, 25]
    assert sr.closure(wide[:1, :1], SUM_OF_MAGNITUDES, method=method).tolist() == [[0]]


@given(data=st.data())
def test_products_under_a_minimum_or_maximum_are_exact_or_refused(data: st.DataObject) -> None:
    semiring = data.draw(st.sampled_from([SUM_OF_MAGNITUDES, sr.MAX_TIMES]))
    dtype = np.dtype(data.draw(st.sampled_from(["uint8", "int16", "int32"])))
    n, high = data.draw(st.integers(1, 6)), data.draw(st.sampled_from([1, 4, 30, 100]))
    zero = semiring.identities((dtype,))[0][0]
    entries = st.just(zero) | st.integers(0 if semiring is SUM_OF_MAGNITUDES else 1, high)
    a = np.array(data.draw(st.lists(entries, min_size=n * n, max_size=n * n)), dtype=dtype).reshape(n, n)
    a = a if semiring is SUM_OF_MAGNITUDES else np.triu(a, 1)
    exact = np.where(a == zero, semiring.zero, a.astype(object))
    reflexive, rows = data.draw(st.booleans()), data.draw(st.sampled_from([None, [0], list(range(n))]))
    how: dict[str, Any] = {"reflexive": reflexive, "sources": rows}
    expected = sr.closure(exact, semiring, **how).tolist()
    graphs = [a, sp.csr_array((a[a != zero], np.nonzero(a != zero)), shape=(n, n))]
    for graph in graphs:
        try:
            found = sr.closure(graph, semiring, dtype=dtype, device=data.draw(st.sampled_from(["cpu", "reference"])), **how)
        except sr.OverflowRiskError:
            assert high > 1
            continue
        assert np.where(found == zero, semiring.zero, found.astype(object)).tolist() == expected


def test_sums_in_several_components() -> None:
    inf = np.iinfo(np.int32).max
    distance = np.array([[inf, 2, inf], [inf, inf, 2], [inf, inf, inf]], dtype=np.int32)
    hops = np.where(distance < inf, 1, inf).astype(np.int32)
    found = sr.closure((distance, hops), sr.DISTANCE_HOPS)
    assert found[0][0, 2] == 4
    assert found[1][0, 2] == 2
    with pytest.raises(sr.OverflowRiskError, match="int64"):
        sr.closure((np.where(distance < inf, 2**29, inf).astype(np.int32), hops), sr.DISTANCE_HOPS)


def test_what_cannot_be_certified_is_refused() -> None:
    ones = np.ones((3, 3), dtype=np.int64)
    with pytest.raises(sr.DTypeError, match="Fractions"):
        sr.closure(ones * 0, sr.PLUS_TIMES)
    with pytest.raises(sr.OverflowRiskError, match="float64"):
        sr.closure((ones, ones), sr.DISTANCE_COUNT)


def test_python_integers_have_no_limit() -> None:
    huge = 10**30
    a = np.array([[0, huge, None], [None, 0, huge], [-2 * huge, None, 0]], dtype=object)
    a[a == None] = float("inf")  # noqa: E711 (elementwise)
    d = sr.apsp(a)
    assert d[0, 2] == 2 * huge
    assert d[2, 1] == -huge


def field_star(a: Any) -> Any:
    """1/(1 − a) modulo 7: the fifth power is the inverse there."""
    b = (1 - a) % 7
    if b == 0:
        raise ZeroDivisionError
    return b * b % 7 * b % 7 * b % 7 * b % 7


GF7 = sr.Semiring("gf7", lambda a, b: (a + b) % 7, lambda a, b: a * b % 7, 0, 1, star=field_star, domain=range(7))


@pytest.mark.parametrize("dtype", ["int16", "int32", "int64"])
def test_a_carrier_that_no_operation_leaves_needs_no_more_room(dtype: str) -> None:
    rng = np.random.default_rng(0)
    one = np.eye(20, dtype=dtype)
    a = np.triu(rng.integers(0, 7, (20, 20)), 1).astype(dtype)
    star = sr.closure(a, GF7)
    assert star.dtype == dtype
    assert np.array_equal((one - a).astype(int) @ star.astype(int) % 7, one)


def test_bounds_of_a_carrier_hold_or_are_not_relied_on() -> None:
    kinds = (np.dtype(np.int16),)
    most = sr.Semiring("most", max, lambda a, b: max(a + b - 30000, 0), 0, 30000, domain=(0, 30000))
    assert stays_inside(GF7, kinds)
    assert not stays_inside(GF7, (np.dtype(np.uint8),))  # 1 − a
    assert not stays_inside(most, kinds)  # 60000 on the way
    assert stays_inside(most, (np.dtype(np.int32),))
    for semiring in (sr.MIN_PLUS, sr.MAX_TIMES, sr.DISTANCE_HOPS):
        assert not stays_inside(semiring, semiring.dtypes("int64"))


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("sign", [1, -1])
def test_sums_of_floats_that_could_overflow_are_refused(method: str, dtype: Any, sign: int) -> None:
    semiring, none, big = (sr.MIN_PLUS if sign > 0 else sr.MAX_PLUS), sign * INF, float(np.finfo(dtype).max)
    around = np.full((4, 4), none, dtype=dtype)
    around[[0, 1, 2, 3], [1, 2, 3, 0]] = sign * big * np.array([-0.6, -0.6, 0.6, 0.9])
    chain = np.full((3, 3), none, dtype=dtype)
    chain[[0, 1], [1, 2]] = sign * 0.6 * big
    advice = "use float64" if dtype == np.float32 else "scale"
    for a in (around, chain, np.where(np.isfinite(chain), -chain, chain)):
        for paths in (False, True):
            with pytest.raises(sr.OverflowRiskError, match=advice):
                sr.closure(a, semiring, method=method, paths=paths)
    for share in (0.15, -0.05):
        chain[[0, 1], [1, 2]] = sign * share * big
        assert sr.closure(chain, semiring, method=method)[0, 2] == 2 * chain[0, 1]


def test_large_floats_pass_where_no_path_adds_them_up() -> None:
    n, weight = 30, 6e305
    shortcuts = np.full((n, n), weight)
    assert (sr.apsp(shortcuts) == weight * (1 - np.eye(n))).all()  # three paths of 29 edges would overflow
    ring = np.where(np.roll(np.eye(n), 1, axis=1) > 0, weight, INF)
    assert sr.apsp(ring).max() == pytest.approx((n - 1) * weight)
    ring[0, 1] = -1.0
    with pytest.raises(sr.OverflowRiskError, match="three paths of 29 edges"):
        sr.apsp(ring * 100)


@given(data=st.data())
def test_near_the_largest_float_distances_are_right_or_refused(data: st.DataObject) -> None:
    n, scale = data.draw(st.integers(1, 6)), data.draw(st.sampled_from([2.0**1000, 2.0**1021, 2.0**1022, 2.0**1023]))
    weights = st.integers(data.draw(st.sampled_from([0, -4])), 60).map(lambda w: w / 64 * scale)
    entries = data.draw(st.lists(st.one_of(st.just(INF), weights), min_size=n * n, max_size=n * n))
    a = np.array(entries).reshape(n, n)
    small = np.where(a < INF, np.ldexp(a, -1000), INF)
    try:
        with np.errstate(over="ignore"):
            expected = np.ldexp(sr.apsp(small), 1000)
    except sr.NegativeCycleError:
        expected = None
    try:
        found = sr.apsp(a, method=data.draw(st.sampled_from(METHODS)), device=data.draw(st.sampled_from(["cpu", "reference"])))
    except sr.OverflowRiskError:
        assert scale > 2.0**1000
    except sr.NegativeCycleError:
        assert expected is None
    else:
        assert expected is not None
        assert np.array_equal(found, expected)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("device", ["cpu", "reference"])
def test_products_of_floats_may_underflow_but_not_overflow(method: str, device: str) -> None:
    a = np.zeros((4, 4))
    a[[0, 1, 2], [1, 2, 3]] = 1e200, 1e200, 1e-250
    with np.errstate(over="ignore"), pytest.raises(sr.OverflowRiskError, match="scale"):
        sr.closure(a, sr.MAX_TIMES, method=method, device=device)
    with np.errstate(over="ignore"), pytest.raises(sr.OverflowRiskError, match="float64"):
        sr.closure(np.minimum(a, 1e30).astype(np.float32), sr.MAX_TIMES, method=method, device=device)
    a[[0, 1, 2], [1, 2, 3]] = 1e-200, 1e-200, 1e100
    assert sr.closure(a, sr.MAX_TIMES, method=method, device=device)[0, 2] == 0


def test_structured_floats_that_could_overflow_are_refused() -> None:
    distance = np.array([[INF, 1e308, INF], [INF, INF, 1e308], [INF, INF, INF]])
    edge = (distance < INF).astype(float)
    with pytest.raises(sr.OverflowRiskError, match="scale"):
        sr.closure((distance, np.where(edge > 0, 1, INF)), sr.DISTANCE_HOPS)
    with pytest.raises(sr.DivergenceError, match="range"):
        sr.closure((distance, edge), sr.DISTANCE_COUNT)  # (∞, 1) is no element
    with pytest.raises(sr.DivergenceError, match="range"):
        sr.closure(np.triu(np.full((3, 3), 1e200), 1), sr.PLUS_TIMES)
