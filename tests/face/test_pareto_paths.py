"""The Pareto front of two weights beside all simple paths of NetworkX, over pairs of semirings."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

import semiring as sr
from semiring.cli import main
from semiring.kernels.cpu.loops import interpreted

Edges = list[tuple[int, int, Any, Any]]

ALGEBRAS: dict[str, tuple[Callable[..., Any], Callable[[Any, Any], Any], Any]] = {
    "min-plus": (min, lambda x, y: x + y, 0.0),
    "max-min": (max, min, math.inf),
    "min-max": (min, max, -math.inf),
    "max-times": (max, lambda x, y: x * y, 1.0),
}
WEIGHTS = {"min-plus": st.integers(0, 4), "max-min": st.integers(-2, 3), "min-max": st.integers(-2, 3),
           "max-times": st.sampled_from([0.25, 0.5, 1.0])}  # fmt: skip


@st.composite
def graphs(draw: st.DrawFn, first: str, second: str) -> tuple[int, Edges]:
    n = draw(st.integers(1, 6))
    ends = st.integers(0, n - 1)
    return n, draw(st.lists(st.tuples(ends, ends, WEIGHTS[first], WEIGHTS[second]), max_size=14))


def expected(n: int, edges: Edges, source: int, target: int, first: str, second: str) -> list[tuple[float, float]]:
    """The values of all simple paths that no other dominates; parallel edges count each."""
    graph: Any = nx.MultiDiGraph()
    graph.add_nodes_from(range(n))
    graph.add_edges_from((u, v, i) for i, (u, v, _, _) in enumerate(edges))
    paths: list[Any] = [[]] if source == target else list(nx.all_simple_edge_paths(graph, source, target))
    (better, times, one), (other_better, other_times, other_one) = ALGEBRAS[first], ALGEBRAS[second]
    points = set()
    for path in paths:
        a, b = one, other_one
        for *_, i in path:
            a, b = times(a, edges[i][2]), other_times(b, edges[i][3])
        points.add((a, b))

    def dominates(p: Any, q: Any) -> bool:
        return bool(p != q and better(p[0], q[0]) == p[0] and other_better(p[1], q[1]) == p[1])

    return sorted(p for p in points if not any(dominates(q, p) for q in points))


def check(n: int, edges: Edges, source: int, target: int, first: str = "min-plus", second: str = "min-plus") -> None:
    given = sr.edges([(u, v, w) for u, v, w, _ in edges], nodes=range(n))
    found = sr.pareto_paths(given, source, target, [o for *_, o in edges], first, second)
    assert sorted((p.value, p.other) for p in found) == expected(n, edges, source, target, first, second)
    assert [p.value for p in found] == sorted((p.value for p in found), reverse=first.startswith("max"))
    for value, other, path in found:
        assert (path[0], path[-1], len(set(path))) == (source, target, len(path))
        choices = [[(w, o) for u, v, w, o in edges if (u, v) == step] for step in itertools.pairwise(path)]
        (_, times, one), (_, other_times, other_one) = ALGEBRAS[first], ALGEBRAS[second]
        values = {(one, other_one)}
        for choice in choices:
            values = {(times(a, w), other_times(b, o)) for a, b in values for w, o in choice}
        assert (value, other) in values


@pytest.mark.parametrize("first", ALGEBRAS)
@pytest.mark.parametrize("second", ALGEBRAS)
@given(data=st.data())
def test_all_simple_paths(first: str, second: str, data: st.DataObject) -> None:
    n, edges = data.draw(graphs(first, second))
    check(n, edges, data.draw(st.integers(0, n - 1)), data.draw(st.integers(0, n - 1)), first, second)


@given(graph=graphs("min-plus", "min-plus"), data=st.data())
def test_negative_edges(graph: tuple[int, Edges], data: st.DataObject) -> None:
    n, edges = graph
    p, q = (data.draw(st.lists(st.integers(-5, 5), min_size=n, max_size=n)) for _ in range(2))
    edges = [(u, v, w + p[u] - p[v], o + q[u] - q[v]) for u, v, w, o in edges]  # so that no cycle is negative
    check(n, edges, 0, n - 1)


def test_the_interpreted_loop_finds_the_same() -> None:
    rng = np.random.default_rng(3)
    for sign in (0, 3):
        height = rng.integers(0, 1 + sign, 30)
        ends = rng.integers(0, 30, (2, 90))
        shift = height[ends[0]] - height[ends[1]]
        graph = sr.edges([*zip(*ends.tolist(), (rng.integers(0, 9, 90) + shift).tolist(), strict=True)], nodes=range(30))
        other = rng.integers(0, 9, 90) + shift
        found = sr.pareto_paths(graph, 0, 7, other)
        with interpreted():
            assert sr.pareto_paths(graph, 0, 7, other) == found


class TestKindsOfGraphs:
    def test_matrices(self) -> None:
        minutes = np.array([[0, 2, 9], [2, 0, 2], [9, 2, 0]])
        tolls = np.array([[0, 4, 1], [4, 0, 4], [1, 4, 0]])
        want = [(4, 8, [0, 1, 2]), (9, 1, [0, 2])]
        for graph in (minutes, minutes.tolist(), sp.csr_array(minutes), np.asfortranarray(minutes)):
            for other in (tolls, tolls.tolist(), sp.csr_array(tolls), tolls[::-1][::-1]):
                assert sr.pareto_paths(graph, 0, 2, other) == want
        assert sr.pareto_paths(minutes, 0, 2, 1) == [(4, 2, [0, 1, 2]), (9, 1, [0, 2])]
        assert isinstance(sr.pareto_paths(minutes, 0, 2, tolls)[0].value, int)
        assert sr.pareto_paths(minutes, 1, 1, tolls) == [(0, 0, [1])]

    def test_the_largest_integer_of_a_matrix_is_no_edge(self) -> None:
        minutes, most = sr.edges([("a", "b", 1), ("b", "c", 1), ("a", "c", 5)]), np.iinfo(np.int32).max
        tolls = np.array([[most, 1, 2], [most, most, most], [most, most, most]], np.int32)
        assert sr.pareto_paths(minutes, "a", "c", tolls) == [(5.0, 2, ["a", "c"])]
        found = sr.apsp(minutes, paths=True).along(tolls)
        assert found.tolist() == [[0, 1, np.iinfo(np.int64).max], [np.iinfo(np.int64).max, 0, np.iinfo(np.int64).max],
                                  [np.iinfo(np.int64).max, np.iinfo(np.int64).max, 0]]  # fmt: skip

    def test_the_caller_keeps_everything(self) -> None:
        minutes, tolls = np.array([[0.0, 1.0], [math.inf, 0.0]]), np.array([[0.0, 2.0], [0.0, 0.0]])
        for array in (minutes, tolls):
            array.flags.writeable = False
        assert sr.pareto_paths(minutes, 0, 1, tolls) == [(1.0, 2.0, [0, 1])]
        assert sr.pareto_paths(minutes, 1, 0, tolls) == []

    def test_undirected_parallel_edges_by_name(self) -> None:
        graph = nx.MultiGraph()
        graph.add_edge("a", "b", minutes=1, toll=9)
        graph.add_edge("a", "b", minutes=5, toll=1)
        graph.add_edge("a", "b", minutes=6, toll=2)
        graph.add_edge("b", "c", minutes=1, toll=0)
        want = [(2.0, 9.0, ["c", "b", "a"]), (6.0, 1.0, ["c", "b", "a"])]
        assert sr.pareto_paths(graph, "c", "a", "toll", weight="minutes") == want
        listed = sr.edges([("a", "b", 1), ("a", "b", 5), ("a", "b", 6), ("b", "c", 1)], directed=False)
        assert sr.pareto_paths(listed, "c", "a", np.array([9, 1, 2, 0])) == want
        assert sr.pareto_paths(listed, "c", "a", sp.csr_array(np.array([[0, 3, 0], [2, 0, 0], [0, 0, 0]]))) == [(2.0, 2.0, ["c", "b", "a"])]

    def test_an_infinite_weight_is_no_edge(self) -> None:
        graph = sr.edges([("a", "b", 1), ("a", "b", 2), ("a", "b", math.inf)])
        assert sr.pareto_paths(graph, "a", "b", [math.inf, 5, 1]) == [(2.0, 5.0, ["a", "b"])]
        assert sr.pareto_paths(graph, "b", "a", [1, 1, 1]) == []

    def test_structured_elements(self) -> None:
        graph = sr.edges([("a", "b", 1), ("b", "c", 1), ("a", "c", 2), ("a", "c", 5)])
        found = sr.pareto_paths(graph, "a", "c", [1, 1, 3, 1], sr.DISTANCE_HOPS)
        assert [(p.value, p.other) for p in found] == [((2.0, 1), 3.0), ((2.0, 2), 2.0), ((5.0, 1), 1.0)]

    def test_no_edges(self) -> None:
        assert sr.pareto_paths(sr.edges([], nodes=["a", "b"]), "a", "b", 1) == []
        assert sr.pareto_paths(sp.csr_array((3, 3)), 2, 2, 1) == [(0.0, 0.0, [2])]


class TestRefusals:
    graph = sr.edges([("a", "b", 1), ("b", "c", 1)])

    def test_a_front_beyond_its_bound(self) -> None:
        ladder = [(i, i + 1, *pair) for i in range(12) for pair in ((2**i, 0), (0, 2**i))]
        graph, other = sr.edges([(u, v, w) for u, v, w, _ in ladder]), [o for *_, o in ladder]
        assert len(sr.pareto_paths(graph, 0, 12, other, bound=4096)) == 4096
        with pytest.raises(sr.TooLargeError, match=r"more than bound=64 paths to vertex 7 are Pareto-optimal; pass a higher bound"):
            sr.pareto_paths(graph, 0, 12, other, bound=64)

    def test_negative_cycles(self) -> None:
        graph = sr.edges([("a", "b", 1), ("b", "a", 1), ("b", "c", 1), ("c", "d", 1), ("d", "c", 1)])
        with pytest.raises(sr.NegativeCycleError, match="b → a → b, weight -1"):
            sr.pareto_paths(graph, "a", "c", [1, -2, 1, 1, 1])
        assert sr.pareto_paths(graph, "a", "b", [1, 1, 1, -4, 1]) == [(1.0, 1.0, ["a", "b"])]  # the cycle does not lead to b

    @pytest.mark.parametrize(("edges", "source", "target"), [
        ([(0, 1, -1), (1, 0, 4), (1, 0, -1)], 1, 0),
        ([(2, 1, 1), (0, 1, 1), (0, 0, -1)], 2, 1),
        ([(0, 0, -1), (0, 1, 1), (2, 1, 1)], 2, 1),
    ])  # fmt: skip
    def test_negative_cycles_of_parallel_edges_in_any_order(self, edges: Any, source: int, target: int) -> None:
        with pytest.raises(sr.NegativeCycleError):
            sr.pareto_paths(sr.edges(edges), source, target, [0] * len(edges))

    def test_integers_near_overflow(self) -> None:
        large = np.iinfo(np.int64).max // 3
        with pytest.raises(sr.OverflowRiskError):
            sr.pareto_paths(np.full((3, 3), large), 0, 2, 1)

    def test_arguments(self) -> None:
        bounds: list[Any] = [0, -1, 1.5, True, None]
        for other in (None, True):
            with pytest.raises(sr.GraphError, match=f"other is {other}; it must be the name of an attribute"):
                sr.pareto_paths(self.graph, "a", "c", other)
        for bound in bounds:
            with pytest.raises(sr.GraphError, match=r"bound is .*; bound must be a whole number from 1"):
                sr.pareto_paths(self.graph, "a", "c", 1, bound=bound)
        with pytest.raises(sr.GraphError, match="target must be one vertex"):
            sr.pareto_paths(self.graph, "a", ["b", "c"], 1)
        with pytest.raises(sr.GraphError, match="'x'"):
            sr.pareto_paths(self.graph, "x", "c", 1)
        with pytest.raises(sr.GraphError, match="no edge has the attribute or column 'toll'"):
            sr.pareto_paths(self.graph, "a", "c", "toll")
        with pytest.raises(sr.GraphError, match="no attributes; pass an array"):
            sr.pareto_paths(np.ones((2, 2)), 0, 1, "toll")
        with pytest.raises(sr.ShapeError, match=r"shape \(3,\), and 2 edges need \(2,\)"):
            sr.pareto_paths(self.graph, "a", "c", [1, 2, 3])
        with pytest.raises(sr.ShapeError, match=r"shape \(2, 2\), and 3 vertices need \(3, 3\)"):
            sr.pareto_paths(self.graph, "a", "c", np.eye(2))
        with pytest.raises(sr.DomainError):
            sr.pareto_paths(self.graph, "a", "c", [1, math.nan])
        with pytest.raises(sr.DomainError, match="the value of the edge 0 → 1 is NaN"):
            sr.pareto_paths(self.graph, "a", "c", np.full((3, 3), math.nan))
        with pytest.raises(sr.GraphError, match="1 of 2 edges has no 'weight'"):
            sr.pareto_paths(self.graph, "a", "c", [1, None])

    def test_semirings(self) -> None:
        with pytest.raises(sr.LawError, match="pareto_paths needs a selective ⊕, and plus-times has none"):
            sr.pareto_paths(self.graph, "a", "c", 1, other_semiring="plus-times")
        exact = np.array([[0, 1], [1, 0]], dtype=object)
        with pytest.raises(sr.DTypeError, match="object; pass float64 or integers"):
            sr.pareto_paths(exact, 0, 1, 1)
        assert sr.pareto_paths(exact, 0, 1, 1, dtype=np.int64) == [(1, 1.0, [0, 1])]


def test_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "ways.csv"
    file.write_text("from,to,minutes,toll\nhome,bridge,10,5\nbridge,town,10,0\nhome,ferry,15,2.5\nferry,town,15,0\n")
    given = ["apsp", str(file), "--weight", "minutes", "--directed", "--pareto", "toll"]
    assert main([*given, "--from", "home", "--to", "town"]) == 0
    assert capsys.readouterr().out == "20, 5: home → bridge → town\n30, 2.5: home → ferry → town\n"
    assert main([*given, "--from", "town", "--to", "home"]) == 0
    assert capsys.readouterr().out == "no path from town to home\n"
    assert main([*given, "--from", "home", "--to", "town", "--all"]) == 2
    assert "--pareto goes without --all" in capsys.readouterr().err
    for more in (["--from", "home"], ["--from", "home", "--to", "town", "-o", str(tmp_path / "out.csv")]):
        assert main([*given, *more]) == 2
        assert "name them by --from and --to, without -o and --limit" in capsys.readouterr().err
