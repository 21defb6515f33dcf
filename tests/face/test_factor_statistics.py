"""Statistics of all distances out of a factor: as those of the dense closure, in whatever order and by however many threads."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csgraph

import semiring as sr

Array = np.ndarray[Any, Any]


def network(n: int, rng: np.random.Generator, *, directed: bool, share: float = 3.0) -> Any:
    """A sparse matrix of small whole weights, of which any sums are exact."""
    tails, heads = rng.integers(0, max(n, 1), (2, int(share * n)))
    weights = rng.integers(1, 30, len(tails)).astype(float)
    matrix = sp.coo_array((weights, (tails, heads)), shape=(n, n)).tocsr()
    matrix.sum_duplicates()
    return matrix if directed else (matrix + matrix.T).tocsr()


def same(found: Any, wanted: Any) -> None:
    """The same statistics to the last bit."""
    for name in ("eccentricities", "counts", "bins"):
        np.testing.assert_array_equal(getattr(found, name), getattr(wanted, name))
    assert (found.connected, found.total, found.farthest) == (wanted.connected, wanted.total, wanted.farthest)


@pytest.mark.sampled(37)
@pytest.mark.parametrize("n", [0, 1, 2, 3, 31, 64, 65, 129, 300])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32"])
@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("share", [0.7, 3.0])
def test_they_are_those_of_all_rows(n: int, dtype: str, directed: bool, share: float) -> None:
    graph = network(n, np.random.default_rng(n), directed=directed, share=share)
    distances = csgraph.dijkstra(graph) if n else np.zeros((0, 0))
    f = sr.factor(graph, dtype=dtype)
    found = f.statistics()
    same(found, sr.statistics(distances))
    none = f.statistics(bins=None)
    assert (none.total, len(none.counts)) == (found.total, 0)
    few, named = (sr.statistics(distances, bins=b) for b in (3, [0.5, 7, 40]))
    same(f.statistics(bins=3), few)
    same(f.statistics(bins=[0.5, 7, 40]), named)


@given(st.data())
@settings(max_examples=24)
def test_any_graph(data: st.DataObject) -> None:
    """Weights of any size that are fractions of powers of two, zeros too: sums are exact, and so are cells."""
    n, unit = data.draw(st.integers(1, 40)), 2.0 ** data.draw(st.integers(-30, 30))
    rng = np.random.default_rng(data.draw(st.integers(0, 1 << 30)))
    graph = network(n, rng, directed=data.draw(st.booleans()), share=data.draw(st.sampled_from([0.3, 1.0, 2.5])))
    graph.data = (graph.data - data.draw(st.sampled_from([0, 1]))) * unit
    if data.draw(st.booleans()):
        graph = (graph + graph.T).tocsr()
    bins = data.draw(st.sampled_from([2, 5, 64, 1000]))
    f = sr.factor(graph, order=data.draw(st.sampled_from(["auto", "natural"])))
    same(f.statistics(bins=bins), sr.statistics(f.closure(), bins=bins, nonedge=np.inf))


def test_the_number_of_threads_does_not_show() -> None:
    rng = np.random.default_rng(1)
    for directed in (False, True):
        graph = network(700, rng, directed=directed)
        tails, heads = graph.nonzero()
        lengths = rng.random((700, 700))
        graph.data = (lengths if directed else lengths + lengths.T)[tails, heads]
        one, *others = (sr.factor(graph, threads=threads).statistics() for threads in (1, 2, 5))
        for other in others:
            same(other, one)
        distances = sr.apsp(graph)
        np.testing.assert_allclose(one.eccentricities, distances.max(axis=1), rtol=1e-12)
        np.testing.assert_allclose(one.total, distances[distances < np.inf].sum(), rtol=1e-12)
        np.testing.assert_array_equal(one.bins, sr.statistics(distances).bins)
        np.testing.assert_allclose(one.counts, sr.statistics(distances).counts, atol=2)


def test_weights_that_are_negative_go_by_rows() -> None:
    rng = np.random.default_rng(2)
    p = rng.integers(-40, 40, 90)
    coo = network(90, rng, directed=True).tocoo()
    graph = sp.csr_array((coo.data + p[coo.row] - p[coo.col], (coo.row, coo.col)), shape=(90, 90))
    assert (graph.data < 0).any()
    same(sr.factor(graph).statistics(), sr.statistics(csgraph.johnson(graph)))


def test_after_an_update() -> None:
    f = sr.factor(sr.edges([("a", "b", 1.0), ("b", "c", 2.0), ("c", "a", 9.0)], directed=False))
    assert f.statistics().farthest == ("a", "c", 3.0)
    f.update((["a", "b"], ["b", "c"], [np.inf, np.inf]))
    found = f.statistics()
    assert (found.connected, found.diameter, found.largest) == (2, np.inf, 9.0)
    f.update((["c"], ["a"], [np.inf]))
    found = f.statistics()
    assert (found.connected, len(found.counts), found.farthest) == (0, 0, None)


def test_what_has_no_distances_is_refused() -> None:
    graph = network(20, np.random.default_rng(3), directed=False)
    with pytest.raises(sr.SemiringError, match="min-plus"):
        sr.factor(graph, "max-min").statistics()
    with pytest.raises(sr.GraphError, match="at least 2"):
        sr.factor(graph).statistics(bins=1)
    for immense in (sr.factor(graph).statistics, lambda bins: sr.statistics(0.3 * graph.toarray(), nonedge=0, bins=bins)):
        with pytest.raises(sr.TooLargeError, match=r"1,000,000,000,000 bins takes|histogram of .* bins takes"):
            immense(bins=10**12)
    with pytest.raises(sr.OverflowRiskError):
        sr.factor(network(50, np.random.default_rng(4), directed=False, share=1.1) * 200, dtype="int16").statistics()
