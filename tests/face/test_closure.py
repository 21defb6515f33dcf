"""closure, transitive_closure and power over every kind of semiring."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import mpmath
import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sparse
from hypothesis import given
from hypothesis import strategies as st

import semiring as sr
from semiring import kernels, testing
from semiring.algebra.laws import is_idempotent
from semiring.planning.options import Options

INF = np.inf
EVERY = list(sr.semirings().values())


def parts(x: Any) -> tuple[Any, ...]:
    return x if isinstance(x, tuple) else (x,)


@pytest.mark.parametrize("semiring", EVERY, ids=lambda s: s.name)
@pytest.mark.parametrize("n", [0, 1, 7])
def test_the_closure_solves_its_equation(semiring: sr.Semiring, n: int) -> None:
    """A* = I ⊕ A ⊗ A*, and A⁺ = A ⊗ A*."""
    harmless = is_idempotent(semiring) or semiring is sr.DISTANCE_COUNT
    a: Any = testing.random_matrix(semiring, n, harmless=harmless, rng=np.random.default_rng(n))
    if semiring is sr.DISTANCE_COUNT:
        a = (a[0] + 1, np.where(a[0] < INF, np.maximum(a[1], 1), 0))
    if semiring is sr.PLUS_TIMES:
        a = a / 64
    if semiring is sr.LOG:
        a = a - 30
    if semiring is sr.GF2:
        a = np.triu(a, 1)
    star, plus = sr.closure(a, semiring), sr.closure(a, semiring, reflexive=False)
    product = sr.matmul(a, star, semiring)
    identity = sr.power(a, 0, semiring)
    one = semiring.add
    for x, y in zip(parts(product), parts(plus), strict=True):
        assert np.allclose(x, y, rtol=1e-12)
    if semiring.components == 1:
        total = np.frompyfunc(one, 2, 1)(identity, product).astype(star.dtype) if n else star
        assert np.allclose(total, star, rtol=1e-12)


@pytest.mark.parametrize("semiring", [sr.MIN_PLUS, sr.MAX_MIN, sr.PLUS_TIMES, sr.BOOLEAN, sr.DISTANCE_HOPS], ids=lambda s: s.name)
@given(k=st.integers(0, 12))
def test_powers_are_repeated_products(semiring: sr.Semiring, k: int) -> None:
    a = testing.random_matrix(semiring, 6, rng=np.random.default_rng(3))
    expected = sr.power(a, 0, semiring)
    for _ in range(k):
        expected = sr.matmul(expected, a, semiring)
    for x, y in zip(parts(sr.power(a, k, semiring)), parts(expected), strict=True):
        assert np.array_equal(x, y)


def test_power_counts_walks() -> None:
    a = nx.to_numpy_array(nx.petersen_graph()).astype(np.int64)
    assert np.array_equal(sr.power(a, 7, sr.PLUS_TIMES), np.linalg.matrix_power(a, 7))
    assert sr.power(a, 1, sr.PLUS_TIMES) is not a
    with pytest.raises(sr.OverflowRiskError):
        sr.power(a, 70, sr.PLUS_TIMES)
    exact = sr.power(a.astype(object), 70, sr.PLUS_TIMES)
    assert exact.sum() == 10 * 3**70


@pytest.mark.parametrize("k", [-1, 1.5, "2", None])
def test_powers_that_make_no_sense(k: Any) -> None:
    with pytest.raises(sr.SemiringError, match="power"):
        sr.power(np.eye(2), k, sr.PLUS_TIMES)


def test_power_of_batches_and_layouts() -> None:
    a = np.random.default_rng(0).integers(0, 3, (4, 5, 5))
    found = sr.power(a[:, ::-1], 3, sr.PLUS_TIMES)
    for x, y in zip(found, a[:, ::-1], strict=True):
        assert np.array_equal(x, np.linalg.matrix_power(y, 3))


@pytest.mark.parametrize("reflexive", [True, False])
@given(data=st.data())
def test_transitive_closure_is_networkxs(reflexive: bool, data: st.DataObject) -> None:
    n = data.draw(st.integers(1, 8))
    edges = np.array(data.draw(st.lists(st.booleans(), min_size=n * n, max_size=n * n))).reshape(n, n)
    graph = nx.from_numpy_array(edges, create_using=nx.DiGraph)
    expected = nx.to_numpy_array(nx.transitive_closure(graph, reflexive=reflexive), nodelist=range(n)) > 0
    method, block = data.draw(st.sampled_from(["iterative", "blocked", "recursive"])), data.draw(st.sampled_from([None, 1, 3]))
    kinds = [edges, edges.astype(np.int32), sparse.csr_array(edges.astype(float)), graph]
    for kind in kinds:
        found = sr.transitive_closure(kind, reflexive=reflexive, method=method, block=block)
        assert found.dtype == bool
        assert np.array_equal(found, expected)
    paths = sr.transitive_closure(edges, reflexive=reflexive, method=method, paths=True)
    testing.assert_paths_valid(paths, edges)


def test_transitive_closure_of_other_dtypes_needs_nonedge() -> None:
    a = np.array([[INF, 2.5], [INF, INF]])
    with pytest.raises(sr.SemiringError, match="nonedge"):
        sr.transitive_closure(a)
    assert sr.transitive_closure(a, nonedge=INF).tolist() == [[False, True], [False, False]]


def log_probabilities(n: int, gap: float, dtype: str, rng: np.random.Generator) -> Any:
    """A matrix of logarithms, some of them −∞, of others that have a spectral radius of 1 − gap; one in two is badly scaled."""
    logs = rng.normal(scale=rng.choice([0.5, 3, 10]), size=(n, n))
    logs[rng.random((n, n)) < 0.2] = -INF
    np.fill_diagonal(logs, -1)
    scale = rng.normal(scale=20 * rng.integers(2), size=n)
    radius = abs(np.linalg.eigvals(np.exp(logs))).max()
    return (logs + scale[:, None] - scale + np.log1p(-gap) - np.log(radius)).astype(dtype)


@pytest.mark.parametrize("device", ["reference", "cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
@pytest.mark.parametrize(("dtype", "gap"), [("float32", 0.5), ("float32", 1e-2), ("float32", 1e-5), ("float64", 0.5), ("float64", 1e-9)])
def test_the_closure_of_logarithms_loses_no_more_than_the_problem(dtype: str, gap: float, device: str) -> None:
    """Rounding the input alone may change S = (I − A)⁻¹ by S (I + A·|log A|) S ε: no more, however near 1 the radius is."""
    rng, epsilon = np.random.default_rng(0), float(np.finfo(dtype).eps)
    for n in (1, 2, 2, 3, 3, 3, 5, 8):
        logs = log_probabilities(n, gap, dtype, rng)
        found = sr.closure(logs, sr.LOG, device=device)
        with mpmath.workprec(400):
            numbers = [[mpmath.mpf(v) for v in row] for row in logs.tolist()]
            weights = mpmath.matrix([[mpmath.exp(v) for v in row] for row in numbers])
            exact = (mpmath.eye(n) - weights) ** -1
            rounded = mpmath.matrix([[mpmath.exp(v) * (1 + abs(v)) if v > -INF else 0 for v in row] for row in numbers])
            change = exact * (mpmath.eye(n) + rounded) * exact
            for i in range(n):
                for j in range(n):
                    if exact[i, j] == 0:
                        assert found[i, j] == -INF
                        continue
                    right = mpmath.log(exact[i, j])
                    allowed = n * epsilon * (change[i, j] / exact[i, j] + abs(right)) / 2
                    assert abs(float(found[i, j]) - right) <= allowed, (logs, i, j)


@pytest.mark.parametrize("device", ["reference", "cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
@pytest.mark.parametrize(
    ("dtype", "loop"), [("float32", -1e-6), ("float32", -1e-8), ("float32", -1e-45), ("float64", -1e-16), ("float64", -5e-324)]
)
def test_loops_that_are_nearly_certain(dtype: str, loop: float, device: str) -> None:
    """What is taken in turn is as exact as one loop: log of (1 − eᵃ)⁻¹, which is −log(−a) where a is next to 0."""
    a = np.array([[loop, -2, -INF], [-INF, loop, 3], [-INF, -INF, -700]], dtype)
    star = -np.log(-a[0, 0].astype(float))
    expected = [[star, 2 * star - 2, 2 * star + 1], [-INF, star, star + 3], [-INF, -INF, 0]]
    np.testing.assert_allclose(sr.closure(a, sr.LOG, device=device), expected, rtol=4 * float(np.finfo(dtype).eps), atol=1e-300)


def test_widest_path() -> None:
    width = sr.edges([("s", "a", 5.0), ("a", "t", 3.0), ("s", "b", 2.0), ("b", "t", 9.0)])
    paths = sr.closure(width, sr.MAX_MIN, paths=True)
    assert paths.distance("s", "t") == 3
    assert paths.path("s", "t") == ["s", "a", "t"]


def test_most_reliable_path_of_fractions() -> None:
    p = np.array([[0, Fraction(9, 10), Fraction(1, 2)], [0, 0, Fraction(9, 10)], [0, 0, 0]], dtype=object)
    paths = sr.closure(p, sr.MAX_TIMES, paths=True)
    assert paths.values[0, 2] == Fraction(81, 100)
    assert paths.path(0, 2) == [0, 1, 2]


def test_a_users_own_semiring() -> None:
    lukasiewicz = sr.Semiring("lukasiewicz", add=max, mul=lambda a, b: max(a + b - 1, 0), zero=0, one=1, domain=(0, 1))
    a = testing.random_matrix(lukasiewicz, 6, rng=np.random.default_rng(2))
    for method in ("iterative", "blocked", "recursive"):
        paths = sr.closure(a, lukasiewicz, method=method, paths=True)
        assert np.array_equal(paths.values, testing.brute_force(lukasiewicz, a).astype(float))
        testing.assert_paths_valid(paths, a)
    with pytest.raises(sr.DomainError):
        sr.closure(np.full((2, 2), 1.5), lukasiewicz)


def test_a_semiring_with_its_witness_gives_paths() -> None:
    paths = sr.closure(np.array([[INF, 1.0], [INF, INF]]), sr.TROPICAL_ARGMIN)
    assert isinstance(paths, sr.Paths)
    assert paths.distances.tolist() == [[0, 1], [INF, 0]]


TAKING_SEMIRINGS: dict[str, Callable[[Any], Any]] = {
    "matmul": lambda s: sr.matmul(np.eye(2), np.eye(2), s),
    "closure": lambda s: sr.closure(np.eye(2), s),
    "power": lambda s: sr.power(np.eye(2), 2, s),
    "check": sr.check,
    "explain": lambda s: sr.explain(2, s),
    "source": lambda s: kernels.source(s, "float32"),
    "elements": testing.elements,
    "random_matrix": lambda s: testing.random_matrix(s, 3, rng=np.random.default_rng(0)),
    "brute_force": lambda s: testing.brute_force(s, np.eye(2)),
    "path_weight": lambda s: testing.path_weight(s, np.eye(2), [0, 1]),
    "matrices": testing.matrices,
}


@pytest.mark.sampled(19)
@pytest.mark.parametrize("name", ["max-min", "MAX_MIN", "max_min", "Max-Min", " max-min\n"])
@pytest.mark.parametrize("call", TAKING_SEMIRINGS.values(), ids=TAKING_SEMIRINGS.keys())
def test_a_semiring_of_the_catalogue_goes_by_its_name(call: Any, name: str) -> None:
    assert repr(call(name)) == repr(call(sr.MAX_MIN))


@pytest.mark.parametrize("call", TAKING_SEMIRINGS.values(), ids=TAKING_SEMIRINGS.keys())
def test_an_unknown_name_tells_those_that_there_are(call: Any) -> None:
    message = "there is no semiring 'maxmin'; did you mean 'max-min'? The built-in semirings are bitset, boolean, "
    with pytest.raises(sr.SemiringError, match=re.escape(message)):
        call("maxmin")
    with pytest.raises(sr.SemiringError, match="there is no semiring 'shortest'; the built-in semirings are bitset, boolean, "):
        call("shortest")


@pytest.mark.parametrize("wrong", [b"min-plus", None, min, sr.Semiring])
@pytest.mark.parametrize("call", TAKING_SEMIRINGS.values(), ids=TAKING_SEMIRINGS.keys())
def test_what_is_no_semiring_is_refused_alike(call: Any, wrong: Any) -> None:
    with pytest.raises(sr.SemiringError, match=r"semiring is .*; pass a Semiring such as semiring\.MIN_PLUS"):
        call(wrong)


def test_structured_input_of_the_wrong_form() -> None:
    a = np.zeros((2, 2))
    for bad in ((a,), (a, np.zeros((3, 3))), (a, a, a)):
        with pytest.raises(sr.ShapeError):
            sr.closure(bad, sr.DISTANCE_HOPS)


def test_structured_overwrite_and_batches() -> None:
    d = np.full((3, 80, 80), INF)
    d[:, np.arange(79), np.arange(1, 80)] = 2.0
    hops = np.where(d < INF, 1.0, INF)
    first, second = sr.closure((d, hops), sr.DISTANCE_HOPS, overwrite=True, device="cpu")
    assert np.shares_memory(first, d)
    assert first[2, 0, 79] == 158
    assert second[2, 0, 79] == 79


def test_the_input_is_kept_even_where_the_closure_diverges() -> None:
    a = np.random.default_rng(0).random((90, 90))
    a[3, 4] = a[4, 3] = -5
    before = a.copy()
    for paths in (False, True):
        with pytest.raises(sr.NegativeCycleError):
            sr.closure(a, sr.MIN_PLUS, paths=paths)
        assert np.array_equal(a, before)


@pytest.mark.filterwarnings("error")
def test_a_graph_that_is_read_again_warns_once() -> None:
    graph = sr.edges([("a", "b", -1.0), ("b", "a", 0.5)])
    with pytest.raises(sr.NegativeCycleError) as caught:
        sr.apsp(graph)
    assert sorted(caught.value.cycle or []) == ["a", "b"]
    masked = np.ma.masked_array([[0.0, -2.0], [1.0, 0.0]], mask=np.eye(2, dtype=bool))
    with pytest.raises(sr.NegativeCycleError) as caught:
        sr.apsp(masked, overwrite=True)
    assert caught.value.cycle in ([0, 1], [1, 0], None)


def test_stored_numbers_are_edges_and_stored_truth_values_are_what_they_say() -> None:
    at = ([0, 1], [1, 0])
    for zero in (0, 0.0):
        for graph in (sparse.csr_array(([1, zero], at)), sr.edges([(0, 1), (1, 0, zero)])):
            assert sr.transitive_closure(graph).all()
    for graph in (sparse.csr_array(([True, False], at)), sr.edges([(0, 1, True), (1, 0, False)])):
        np.testing.assert_array_equal(sr.transitive_closure(graph), [[False, True], [False, False]])


@pytest.mark.parametrize("function", [sr.apsp, sr.closure, sr.transitive_closure], ids=lambda f: f.__name__)
def test_arrays_in_the_place_of_options_are_refused(function: Callable[..., Any]) -> None:
    graph = np.array([[0.0, 1.0], [2.0, 0.0]])
    given = (graph, sr.MIN_PLUS) if function is sr.closure else (graph,)
    for name in set(inspect.signature(function).parameters) & {*Options._fields, "reflexive"} - {
        "node_weight",
        "nonedge",
        "sources",
        "targets",
    }:
        with pytest.raises(sr.SemiringError, match=rf"^{name} is an array of shape \(2, 2\)"):
            function(*given, **{name: graph})


def test_arrays_in_the_place_of_other_arguments_are_refused() -> None:
    graph = np.array([[0.0, 1.0], [2.0, 0.0]])
    for name in ("witness", "device"):
        with pytest.raises(sr.SemiringError, match=f"^{name} is an array"):
            sr.matmul(graph, graph, sr.MIN_PLUS, **{name: graph})  # type: ignore[arg-type]
    for name in ("dtype", "device", "paths", "method"):
        with pytest.raises(sr.SemiringError, match=f"^{name} is an array"):
            sr.explain(9, **{name: graph})  # type: ignore[call-overload]
    with pytest.raises(sr.DomainError, match=r"graph\[0, 0\] = array"):
        sr.apsp(np.array([[np.array([1, 2]), 1], [2, 3]], dtype=object))
    with pytest.raises(sr.SemiringError, match="not a set of elements"):
        sr.Semiring("x", min, max, np.inf, -np.inf, domain=graph)


@pytest.mark.parametrize("device", ["cpu", "reference", pytest.param("cuda", marks=pytest.mark.gpu)])
def test_no_matrices_are_closed_whatever_they_could_hold(device: str) -> None:
    labelled = sr.Semiring(
        "labelled", lambda a, b: (a[0] | b[0], min(a[1], b[1])), lambda a, b: (a[0] & b[0], a[1] + b[1]), (0, np.inf), (-1, 0)
    )
    labels, lengths = sr.closure((np.empty((0, 3, 3), np.int32), np.empty((0, 3, 3), np.float32)), labelled, device=device)
    assert labels.shape == lengths.shape == (0, 3, 3)
