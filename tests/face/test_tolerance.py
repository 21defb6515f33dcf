"""`tolerance=`: cycles that improve by rounding of their weights are harmless; beside all simple cycles and paths in exact fractions."""

from __future__ import annotations

import itertools
import math
import warnings
from fractions import Fraction
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import semiring as sr

INF = math.inf
KINDS = {"max-times": sr.MAX_TIMES, "min-plus": sr.MIN_PLUS, "max-plus": sr.MAX_PLUS}


def consistent(rng: np.random.Generator, n: int) -> np.ndarray[Any, Any]:
    """Exchange rates out of one price for each currency, rounded."""
    prices = np.exp(2 * rng.normal(size=n))
    return prices[None, :] / prices[:, None]


def answered(graph: Any, semiring: sr.Semiring, **options: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sr.AssumptionWarning)
        return sr.closure(graph, semiring, **options)


def listed(matrix: np.ndarray[Any, Any], keep: np.ndarray[Any, Any] | None = None) -> sr.EdgeList:
    n = len(matrix)
    ends = [(i, j) for i in range(n) for j in range(n) if i != j and (keep is None or keep[i, j])]
    return sr.edges([(i, j, matrix[i, j]) for i, j in ends], nodes=range(n))


def eased(semiring: sr.Semiring, weight: Any, tolerance: float) -> Fraction:
    """A weight less preferred by the tolerance, exactly."""
    worse = Fraction(weight) + Fraction(tolerance) * abs(Fraction(weight)) * (1 if semiring is sr.MIN_PLUS else -1)
    return worse


def product(semiring: sr.Semiring, weights: list[Fraction]) -> Fraction:
    return math.prod(weights, start=Fraction(1)) if semiring is sr.MAX_TIMES else sum(weights, Fraction(0))


def improves(semiring: sr.Semiring, weight: Fraction) -> bool:
    return weight > 1 if semiring is sr.MAX_TIMES else weight < 0 if semiring is sr.MIN_PLUS else weight > 0


def around(cycle: Any) -> list[tuple[Any, Any]]:
    return list(itertools.pairwise([*cycle, cycle[0]]))


@pytest.mark.parametrize("kind", ["dense", "rows", "columns", "paths", "sparse", "sparse rows", "sparse columns", "float32", "list"])
def test_consistent_rates_are_answered(kind: str) -> None:
    refused = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(3, 13))
        rates = consistent(rng, n)
        some = [0, n - 1]
        options: dict[str, Any] = {"tolerance": 1e-12}
        if "rows" in kind:
            options["sources"] = some
        if "columns" in kind:
            options["targets"] = some
        if kind == "float32":
            rates, options["tolerance"] = rates.astype(np.float32), 1e-5
        graph: Any = listed(rates) if "sparse" in kind else rates
        if kind == "list":
            graph, rates = [rates, rates.copy(), listed(rates)], np.stack([rates] * 3)
        if kind == "paths":
            found = answered(graph, sr.MAX_TIMES, paths=True, **options)
            values = np.asarray(found.values)
            assert found.path(0, n - 1)[0] == 0
        else:
            values = np.asarray(answered(graph, sr.MAX_TIMES, **options))
        expected = rates[..., some, :] if "rows" in kind else rates[..., some] if "columns" in kind else rates
        np.testing.assert_allclose(values, expected, rtol=10 * options["tolerance"])
        try:
            sr.closure(graph, sr.MAX_TIMES, **{k: v for k, v in options.items() if k != "tolerance"})
        except sr.DivergenceError:
            refused += 1
    assert refused > 30 or kind == "list"  # stacks are overwritten, and then rounding is tolerated anyway


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("sparse", [False, True])
@given(data=st.data())
def test_a_cycle_beyond_the_tolerance_is_refused(name: str, sparse: bool, data: st.DataObject) -> None:
    """Refused exactly if a cycle improves with all its weights eased; answers are weights of paths, as good as any up to the tolerance."""
    semiring, tolerance = KINDS[name], 2.0**-10
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    n = int(rng.integers(1, 6))
    matrix = consistent(rng, n) * (1 + rng.choice([0, 2.0**-12, -(2.0**-11), 2.0**-9], p=[0.4, 0.3, 0.25, 0.05], size=(n, n)))
    np.fill_diagonal(matrix, 1)
    if semiring is not sr.MAX_TIMES:
        prices = rng.integers(-9, 9, n)
        matrix = (prices[None, :] - prices[:, None]) * (1 + rng.choice([0, 2.0**-12, -(2.0**-11), 2.0**-9], size=(n, n)))
    keep = rng.random((n, n)) < rng.choice([0.4, 1.0])
    np.fill_diagonal(keep, False)
    edges = {(i, j): matrix[i, j] for i, j in np.argwhere(keep).tolist()}
    graph: Any = sr.edges([(i, j, w) for (i, j), w in edges.items()], nodes=range(n)) if sparse else np.where(keep, matrix, semiring.zero)
    network = nx.DiGraph(list(edges))
    cycles = list(nx.simple_cycles(network))
    harmful = [c for c in cycles if improves(semiring, product(semiring, [eased(semiring, edges[e], tolerance) for e in around(c)]))]
    if harmful:
        with pytest.raises(sr.DivergenceError) as caught:
            answered(graph, semiring, tolerance=tolerance)
        assert caught.value.cycle is not None
        assert improves(semiring, product(semiring, [eased(semiring, edges[e], tolerance) for e in around(caught.value.cycle)]))
        return
    found = answered(graph, semiring, tolerance=tolerance, paths=True)
    values = np.asarray(found.values)
    np.testing.assert_array_equal(values, answered(graph, semiring, tolerance=tolerance))
    row = answered(graph, semiring, tolerance=tolerance, sources=[0])  # maybe by another path
    scale = tolerance * n**2
    np.testing.assert_allclose(row, values[[0]], rtol=scale, atol=scale * max(map(abs, edges.values()), default=0))
    assert (values.diagonal() == semiring.one).all()
    for i, j in itertools.permutations(range(n), 2):
        if i not in network or j not in network or not nx.has_path(network, i, j):
            assert values[i, j] == semiring.zero
            continue
        path = found.path(i, j)
        own = product(semiring, [Fraction(edges[e]) for e in itertools.pairwise(path)])
        assert values[i, j] == pytest.approx(float(own), rel=1e-12, abs=1e-12)
        for other in nx.all_simple_paths(network, i, j):
            weights = [edges[e] for e in itertools.pairwise(other)]
            best = float(product(semiring, [Fraction(w) for w in weights]))
            slack = tolerance * n**2 * (max(values[i, j], best) if semiring is sr.MAX_TIMES else max(map(abs, edges.values())))
            assert values[i, j] >= best - slack if semiring is not sr.MIN_PLUS else values[i, j] <= best + slack


def test_the_answer_names_its_tolerance() -> None:
    rates = np.array([[1, 1.001], [1.0, 1]])
    for graph in (rates, listed(rates)):
        with pytest.warns(sr.AssumptionWarning, match=r"rests on tolerance=0\.01: a cycle improves, 0 → 1 → 0|1 → 0 → 1, weight 1\.00"):
            sr.closure(graph, sr.MAX_TIMES, tolerance=0.01)
        with pytest.raises(sr.DivergenceError):
            sr.closure(graph, sr.MAX_TIMES, tolerance=1e-6)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sr.closure(np.array([[1, 2.0], [0.5, 1]]), sr.MAX_TIMES, tolerance=1e-12)
        assert sr.apsp(np.array([[0.0]]), tolerance=0).tolist() == [[0.0]]
        assert sr.apsp(np.empty((0, 0)), tolerance=1e-3).shape == (0, 0)


def test_sums_that_cancel_in_decimals() -> None:
    a = np.array([[0, 0.1, INF], [INF, 0, 0.2], [-0.3 - 1e-15, INF, 0]])
    with pytest.raises(sr.NegativeCycleError):
        sr.apsp(a)
    np.testing.assert_allclose(answered(a, sr.MIN_PLUS, tolerance=1e-12), [[0, 0.1, 0.3], [-0.1, 0, 0.2], [-0.3, -0.2, 0]], atol=1e-12)
    stack = np.stack([a, np.where(a > 0, a, 9.0)])
    np.testing.assert_allclose(answered(stack, sr.MIN_PLUS, tolerance=1e-12)[0, 2], [-0.3, -0.2, 0], atol=1e-12)
    limited = answered(a, sr.MIN_PLUS, tolerance=1e-12, limit=0)
    assert limited.nnz == 6
    plus = answered(a, sr.MIN_PLUS, tolerance=1e-12, reflexive=False)
    np.testing.assert_allclose(plus.diagonal(), 0, atol=2e-15)


def test_nothing_of_the_caller_changes() -> None:
    rates = consistent(np.random.default_rng(1), 6)
    rates.flags.writeable = False
    before = rates.copy()
    answered(rates, sr.MAX_TIMES, tolerance=1e-12)
    answered(rates.T[::-1, ::-1], sr.MAX_TIMES, tolerance=1e-12, paths=True)
    np.testing.assert_array_equal(rates, before)


def test_refusals(tmp_path: Path) -> None:
    a = np.array([[0, 1.0], [1.0, 0]])
    for wrong in (-1e-9, 1, 2.0, math.nan, "1e-9", True, [1e-9]):
        with pytest.raises(sr.SemiringError, match="tolerance is"):
            sr.apsp(a, tolerance=wrong)  # type: ignore[arg-type]
    with pytest.raises(sr.SemiringError, match="tolerance"):
        sr.apsp(a, tolerance=np.ones(2))  # type: ignore[arg-type]
    for semiring in (sr.MAX_MIN, sr.PLUS_TIMES, sr.BOOLEAN):
        with pytest.raises(sr.LawError, match="minimum or maximum of sums or products"):
            sr.closure(a, semiring, tolerance=1e-9, dtype=None if semiring is not sr.BOOLEAN else bool, nonedge=0)
    with pytest.raises(sr.DTypeError, match="exact"):
        sr.apsp(a.astype(int), tolerance=1e-9)
    with pytest.raises(sr.SemiringError, match="overwrite"):
        sr.apsp(a, tolerance=1e-9, overwrite=True)
    with pytest.raises(sr.SemiringError, match="comm"):
        sr.apsp(a, tolerance=1e-9, comm=object())
    with pytest.raises(sr.SemiringError, match="memory_limit"):
        sr.apsp(a, tolerance=1e-9, checkpoint=tmp_path)


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n", [4, 40, 200])
def test_on_a_gpu(n: int, dtype: Any) -> None:
    cupy = pytest.importorskip("cupy")
    rates, tolerance = consistent(np.random.default_rng(n), n).astype(dtype), 1e-5 if dtype is np.float32 else 1e-12
    cases: list[dict[str, Any]] = [{}, {"paths": True}, {"sources": [n - 1, 0]}, {"targets": [2, 1]}]
    for options in cases:
        there, here = (answered(given, sr.MAX_TIMES, tolerance=tolerance, **options) for given in (cupy.asarray(rates), rates))
        if "paths" in options:
            pairs = list(itertools.product(range(n), repeat=2))[:99]
            for path, (i, j) in zip(there.paths(pairs), pairs, strict=True):
                np.testing.assert_allclose(math.prod(rates[e] for e in itertools.pairwise(path)), rates[i, j], rtol=10 * tolerance)
            there, here = there.values, here.values
        assert isinstance(there, cupy.ndarray)
        np.testing.assert_allclose(there.get(), here, rtol=10 * tolerance)
    batch = np.stack([rates, rates])
    np.testing.assert_allclose(answered(cupy.asarray(batch), sr.MAX_TIMES, tolerance=tolerance).get(), batch, rtol=10 * tolerance)
    rates[1, 3] *= 1 + 100 * tolerance
    given = cupy.asarray(rates)
    for options in cases:
        with pytest.raises(sr.DivergenceError) as caught:
            answered(given, sr.MAX_TIMES, tolerance=tolerance, **options)
        assert caught.value.cycle is not None
        assert (1, 3) in around(caught.value.cycle)
    np.testing.assert_array_equal(given.get(), rates)


@pytest.mark.gpu
def test_tensors_on_a_gpu() -> None:
    torch = pytest.importorskip("torch")
    rates = consistent(np.random.default_rng(1), 30)
    found = answered(torch.from_numpy(rates).cuda(), sr.MAX_TIMES, tolerance=1e-12)
    assert isinstance(found, torch.Tensor)
    assert found.is_cuda
    np.testing.assert_allclose(found.cpu().numpy(), rates, rtol=1e-11)
