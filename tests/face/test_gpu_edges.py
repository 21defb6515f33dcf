"""Graphs that list their edges, closed on a GPU: only the edges go there, and NumPy's arrays come back."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import semiring as sr
from semiring import csgraph
from semiring.arrays import memory
from semiring.arrays.devices import device_of, on_gpu
from semiring.execution.question import GivenGraph
from semiring.execution.whole import made_of_edges
from semiring.graphs import edges_of
from semiring.planning import Plan, closure_problem, plan
from semiring.planning.options import Options

sp = pytest.importorskip("scipy.sparse")
cupy = pytest.importorskip("cupy")
INF = np.inf
ANYWHERE = Options(device="cuda")


def graph(n: int, degree: float, seed: int = 0) -> Any:
    return sp.random_array((n, n), density=degree / max(n, degree), rng=np.random.default_rng(seed), format="csr")


def planned(graph: Any, **changed: Any) -> tuple[Plan, GivenGraph]:
    listed = edges_of(graph, sr.MIN_PLUS)
    assert listed is not None
    edges, options = listed[0], ANYWHERE._replace(**changed)
    return plan(closure_problem(sr.MIN_PLUS, edges.dtypes, (edges.n, edges.n), options, edges=len(edges.heads))), GivenGraph(edges)


def made(graph: Any, **changed: Any) -> str:
    return device_of(made_of_edges(*planned(graph, **changed)).values[0])


@pytest.mark.gpu
class TestOnAGpu:
    def test_only_few_edges_go_there(self) -> None:
        assert made(graph(2000, 4)) == "cuda:0"
        assert made(graph(3000, 1500)) == "cpu"
        for options in ({"device": "cuda:all"}, {"memory_limit": "1GiB"}):
            assert made(graph(2000, 4), **options) == "cuda:0", options
        for options in ({"device": "cpu"}, {"device": "reference"}, {"checkpoint": "folder"}):
            assert made(graph(2000, 4), **options) == "cpu", options

    def test_there_must_be_room(self, monkeypatch: pytest.MonkeyPatch) -> None:
        how, edges = planned(graph(2000, 4))
        monkeypatch.setattr(memory, "ALWAYS_FITS", 0)
        monkeypatch.setattr(memory, "free_on_gpu", lambda number: 0)
        assert device_of(made_of_edges(how, edges).values[0]) == "cpu"

    @pytest.mark.parametrize("n", [0, 1, 2, 65, 300])
    @pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32])
    def test_the_closure_is_that_of_the_host(self, n: int, dtype: Any) -> None:
        a = sp.csr_array((np.rint(9 * graph(n, 3).data), graph(n, 3).indices, graph(n, 3).indptr), shape=(n, n))
        for function in (sr.apsp, lambda g, **how: sr.closure(g, sr.MAX_MIN, reflexive=False, **how)):
            found = function(a, device="cuda", dtype=dtype)
            assert isinstance(found, np.ndarray)
            np.testing.assert_array_equal(found, function(a, device="cpu", dtype=dtype))
        np.testing.assert_array_equal(sr.transitive_closure(a, device="cuda"), sr.transitive_closure(a, device="cpu"))

    def test_paths_lie_on_the_host_and_are_labelled(self) -> None:
        edges = sr.edges([("a", "b", 1.0), ("b", "c", 2.0), ("a", "c", 9.0), ("c", "a", -2.5)])
        paths = sr.apsp(edges, paths=True, device="cuda")
        assert isinstance(paths.via, np.ndarray)
        assert paths.path("a", "c") == ["a", "b", "c"]
        np.testing.assert_array_equal(paths.predecessors(), sr.apsp(edges, paths=True).predecessors())

    def test_structured_elements_and_a_graph_of_networkx(self) -> None:
        nx = pytest.importorskip("networkx")
        given = nx.gnp_random_graph(60, 0.1, seed=1, directed=True)
        np.testing.assert_array_equal(sr.apsp(given, device="cuda"), sr.apsp(given, device="cpu"))
        edges = sr.edges([(0, 1, (1.0, 1)), (1, 2, (2.0, 1)), (0, 2, (3.0, 1))])
        for found, expected in zip(sr.closure(edges, sr.DISTANCE_HOPS, device="cuda"), sr.closure(edges, sr.DISTANCE_HOPS), strict=True):
            assert not on_gpu(found)
            np.testing.assert_array_equal(found, expected)

    def test_a_sparse_array_of_a_gpu_is_refused_with_advice(self) -> None:
        given = pytest.importorskip("cupyx.scipy.sparse").csr_matrix(graph(5, 2))
        for function in (sr.apsp, csgraph.shortest_path):
            with pytest.raises(sr.GraphError, match=r"on a GPU; pass \.get\(\)"):
                function(given)
        np.testing.assert_array_equal(sr.apsp(given.get(), device="cuda"), sr.apsp(graph(5, 2)))

    def test_what_is_divergent_is_named(self) -> None:
        with pytest.raises(sr.NegativeCycleError) as caught:
            sr.apsp(sr.edges([("a", "b", 1.0), ("b", "a", -2.0)]), device="cuda")
        assert set(caught.value.cycle or ()) == {"a", "b"}

    def test_what_rounding_bends_is_found_on_the_edges(self) -> None:
        rng = np.random.default_rng(3)
        height = rng.random(200)
        a = graph(200, 5, 3).tocoo()
        a = sp.coo_array((height[a.coords[1]] - height[a.coords[0]], a.coords), shape=a.shape)  # all cycles weigh 0, but for rounding
        paths = sr.apsp(a, paths=True, device="cuda")
        for source, target in ((0, 7), (5, 190), (100, 3)):
            path = paths.path(source, target)
            assert len(set(path)) == len(path)
            assert len(path) == 0 or (path[0], path[-1]) == (source, target)
