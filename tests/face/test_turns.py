"""Turn costs: closures, paths and nearest sources beside all walks, and what is refused."""

from __future__ import annotations

import pickle
from fractions import Fraction
from typing import Any, NamedTuple

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import semiring as sr

INF = float("inf")
Table = dict[tuple[tuple[str, str], tuple[str, str]], Any]


class Streets(NamedTuple):
    """Edges, costs of turns, and the ways that one may drive."""

    nodes: list[str]
    listed: list[tuple[str, str, int]]
    directed: bool
    table: Table

    @property
    def graph(self) -> sr.EdgeList:
        return sr.edges(self.listed, directed=self.directed, nodes=self.nodes)

    @property
    def ways(self) -> list[tuple[str, str, int]]:
        back = [] if self.directed else [(v, u, w) for u, v, w in self.listed if u != v]
        return [*self.listed, *back]


@st.composite
def streets(draw: st.DrawFn, costs: Any = (0, 1, 3, INF, None)) -> Streets:
    nodes = list("abcd"[: draw(st.integers(0, 4))])
    vertex = st.sampled_from(nodes) if nodes else st.nothing()
    found = Streets(
        nodes, draw(st.lists(st.tuples(vertex, vertex, st.integers(1, 4)), max_size=5)) if nodes else [], draw(st.booleans()), {}
    )
    ends = sorted({(u, v) for u, v, _ in found.ways})
    turns = [(e, f) for e in ends for f in ends if e[1] == f[0]]
    table = draw(st.dictionaries(st.sampled_from(turns), st.sampled_from(costs))) if turns else {}
    return found._replace(table=table)


def walks(given: Streets, source: str, target: str, *, reflexive: bool = True) -> list[tuple[list[str], list[int], list[Any]]]:
    """Vertices, weights of edges and costs of turns of all walks without a repeated way."""
    found: list[tuple[list[str], list[int], list[Any]]] = [([source], [], [])] if reflexive and source == target else []

    def go(last: int, used: tuple[int, ...], at: list[str], weights: list[int], costs: list[Any]) -> None:
        if at[-1] == target and used:
            found.append((at, weights, costs))
        for way, (u, v, w) in enumerate(given.ways):
            if u != at[-1] or way in used:
                continue
            turn = [] if last < 0 else [given.table.get((given.ways[last][:2], (u, v)), 0)]
            if None not in turn:
                go(way, (*used, way), [*at, v], [*weights, w], costs + turn)

    go(-1, (), [source], [], [])
    return found


def costs_of(table: Table) -> Any:
    return lambda first, second: table.get((first, second), 0)


@settings(max_examples=150, deadline=None)
@given(streets(), st.booleans(), st.booleans())
def test_distances_beside_all_walks(given: Streets, reflexive: bool, asked: bool) -> None:
    turns = given.graph.with_turns(costs_of(given.table) if asked else given.table)
    whole = sr.closure(turns, "min-plus", reflexive=reflexive)
    paths = sr.closure(turns, "min-plus", reflexive=reflexive, paths=True)
    assert whole.shape == (len(given.nodes),) * 2
    assert np.array_equal(paths.distances, whole)
    for i, u in enumerate(given.nodes):
        for j, v in enumerate(given.nodes):
            every = [(sum(w) + sum(t), at) for at, w, t in walks(given, u, v, reflexive=reflexive)]
            assert whole[i, j] == min((d for d, _ in every), default=INF)
            assert ((whole[i, j], paths.path(u, v)) in every) if np.isfinite(whole[i, j]) else paths.path(u, v) == []
            assert sr.closure(turns, "min-plus", reflexive=reflexive, sources=u, targets=v) == whole[i, j]


@settings(max_examples=80, deadline=None)
@given(streets((1, 2, 3, -INF, None)))
def test_widest_paths_beside_all_walks(given: Streets) -> None:
    found = sr.closure(given.graph.with_turns(given.table), sr.MAX_MIN)
    for i, u in enumerate(given.nodes):
        for j, v in enumerate(given.nodes):
            widths = [min([*w, *(t for t in given_costs if t)], default=INF) for _, w, given_costs in walks(given, u, v)]
            assert found[i, j] == max(widths, default=-INF)


@settings(max_examples=80, deadline=None)
@given(streets((0, 2, None)), st.booleans())
def test_distances_with_the_number_of_paths_and_of_edges(given: Streets, counted: bool) -> None:
    semiring = sr.DISTANCE_COUNT if counted else sr.DISTANCE_HOPS
    neutral = 1 if counted else 0
    table = {turn: None if c is None else (c, neutral) for turn, c in given.table.items()}
    found = sr.closure(given.graph.with_turns(table), semiring)
    for i, u in enumerate(given.nodes):
        for j, v in enumerate(given.nodes):
            every = sorted((sum(w) + sum(t), len(w)) for _, w, t in walks(given, u, v))
            expected: Any = (INF, 0 if counted else INF)
            if every and counted:
                expected = every[0][0], sum(d == every[0][0] for d, _ in every)
            elif every:
                expected = every[0]
            assert tuple(part[i, j] for part in found) == expected


@settings(max_examples=60, deadline=None)
@given(streets((0, 0.5, INF, None)), st.integers(1, 3))
def test_nearest_and_limit_and_some_rows(given: Streets, k: int) -> None:
    turns = given.graph.with_turns(given.table)
    if not given.nodes:
        return
    whole = sr.apsp(turns)
    sources = given.nodes[::2]
    rows = sr.apsp(turns, sources=sources, targets=given.nodes[::-1])
    assert np.array_equal(rows, whole[::2, ::-1])
    assert np.array_equal(sr.apsp(turns, targets=given.nodes[-1]), whole[:, -1])
    found = sr.nearest(turns, sources, k=k)
    expected = np.sort(np.vstack([whole[::2], np.full((k, len(given.nodes)), INF)]), axis=0)[:k].T
    assert np.array_equal(found.values, expected[:, 0] if k == 1 else expected)
    for v, node in enumerate(given.nodes):
        path = found.path(node)
        if path:
            assert sr.apsp(turns, sources=path[0], targets=node) == expected[v, 0]
            assert path in [at for at, w, t in walks(given, path[0], node) if sum(w) + sum(t) == expected[v, 0]]
        else:
            assert expected[v, 0] == INF
    within = sr.apsp(turns, limit=4, paths=True)
    assert np.array_equal(within.values.toarray(), np.where(whole <= 4, whole, 0))
    assert all(sr.apsp(turns, limit=4, paths=True).path(u, v) == within.path(u, v) for u in sources for v in sources)


@settings(max_examples=60, deadline=None)
@given(streets((0, INF, None, True, False)))
def test_reachability_beside_all_walks(given: Streets) -> None:
    found = sr.transitive_closure(given.graph.with_turns(given.table))
    for i, u in enumerate(given.nodes):
        for j, v in enumerate(given.nodes):
            every = walks(given, u, v, reflexive=False)
            assert found[i, j] == any(not any(t is False or t == INF for t in turns) for _, _, turns in every)


def test_a_sum_over_all_walks_of_a_graph_without_cycles() -> None:
    ladder = sr.edges([(0, 1, 2), (1, 2, 3), (0, 2, 5), (2, 3, 7), (1, 3, 11)])
    found = sr.closure(ladder.with_turns({((0, 1), (1, 2)): 10, ((1, 2), (2, 3)): 0}), sr.PLUS_TIMES)
    assert found[0].tolist() == [1, 2, 2 * 10 * 3 + 5, 5 * 7 + 2 * 11]


def test_a_city_without_turns_back() -> None:
    city = nx.grid_2d_graph(6, 6)
    rng = np.random.default_rng(1)
    listed = [(u, v, float(w)) for (u, v), w in zip(city.edges, rng.integers(1, 9, len(city.edges)), strict=True)]
    turns = sr.edges(listed, directed=False).with_turns(lambda first, second: INF if first == second[::-1] else float(first[0][0] % 3))
    line: Any = nx.DiGraph()
    for u, v, w in [*listed, *((v, u, w) for u, v, w in listed)]:
        line.add_edge((u, None), (u, v), weight=w)
        line.add_edge((u, v), (None, v), weight=0)
        line.add_node((u, v), weight=w)
    edges = [(u, v) for u, v in line if u is not None and v is not None]
    for e in edges:
        for f in edges:
            if e[1] == f[0] and e != f[::-1]:
                line.add_edge(e, f, weight=line.nodes[f]["weight"] + e[0][0] % 3)
    found = sr.apsp(turns, paths=True)
    source = (0, 0)
    expected: Any = nx.single_source_dijkstra_path_length(line, (source, None))
    for v in city:
        assert found[source, v] == (0 if v == source else expected[None, v])
    table = found.to_frame(paths=True)
    assert len(table) == 36 * 35
    assert all(path[0] == u and path[-1] == v for u, v, path in zip(table.source, table.target, table.path, strict=True))


def test_negative_turns_and_cycles() -> None:
    ring = sr.edges([("a", "b", 3), ("b", "c", 1), ("c", "b", 1)])
    assert sr.apsp(ring.with_turns({(("a", "b"), ("b", "c")): -2}))[0].tolist() == [0, 3, 2]
    with pytest.raises(sr.NegativeCycleError) as caught:
        sr.apsp(ring.with_turns({(("b", "c"), ("c", "b")): -3}))
    assert set(caught.value.cycle or ()) <= {"b", "c"}


def test_integers_fractions_and_float32() -> None:
    ways = [("a", "b", 2), ("b", "c", 3)]
    turn = (("a", "b"), ("b", "c"))
    whole = sr.apsp(sr.edges(ways).with_turns({turn: 4}), dtype=np.int64)
    assert whole.dtype == np.int64
    assert whole[0].tolist() == [0, 2, 9]
    assert sr.apsp(sr.edges(ways).with_turns({turn: INF}), dtype=np.int32)[0, 2] == np.iinfo(np.int32).max
    assert sr.apsp(sr.edges(ways).with_turns({turn: 0.5}), dtype=np.float32)[0, 2] == np.float32(5.5)
    exact = sr.apsp(sr.edges(ways).with_turns({turn: Fraction(1, 3)}), dtype=object)
    assert exact[0, 2] == 5 + Fraction(1, 3)
    large = 2**62
    with pytest.raises(sr.SemiringError, match="together"):
        sr.apsp(sr.edges([("a", "b", 1), ("b", "c", large)]).with_turns({turn: large}), dtype=np.int64)


def test_columns_and_reading_again() -> None:
    roads = np.array([("A", "B", 5.0, 1), ("B", "C", 7.0, 1)], dtype=[("from", "U9"), ("to", "U9"), ("km", float), ("minutes", int)])
    turns = sr.edges(roads, weight="km").with_turns({(("A", "B"), ("B", "C")): 10})
    assert sr.apsp(turns)[0].tolist() == [0, 5, 22]
    assert sr.apsp(turns, weight="minutes")[0].tolist() == [0, 1, 12]
    assert sr.apsp(turns, weight=2)[0].tolist() == [0, 2, 14]
    arrays = sr.edges(np.array([0, 1]), np.array([1, 2]), np.array([1.0, 2.0])).with_turns({((0, 1), (1, 2)): 3.0})
    for _ in range(2):
        assert sr.apsp(arrays)[0].tolist() == [0, 1, 6]
        assert sr.closure(arrays, "min-plus", reflexive=False)[0].tolist() == [INF, 1, 6]
        assert sr.closure(arrays, "max-min")[0].tolist() == [INF, 1, 1]


def test_nothing_of_the_caller_changes_later() -> None:
    table: Table = {(("a", "b"), ("b", "c")): 4.0}
    plain = sr.edges([("a", "b", 1.0), ("b", "c", 1.0)])
    turns = plain.with_turns(table)
    table.clear()
    assert sr.apsp(turns)[0, 2] == 6
    assert sr.apsp(plain)[0, 2] == 2
    assert sr.apsp(turns.with_turns({}))[0, 2] == 2
    assert repr(turns) == "<3 vertices, 2 directed edges, costs of 1 turn>"
    assert "costs of 1 turn" in turns._repr_html_()


def test_paths_as_other_paths() -> None:
    turns = sr.edges([("a", "b", 1.0), ("b", "c", 1.0), ("b", "a", 1.0)]).with_turns({(("a", "b"), ("b", "c")): None})
    paths = sr.apsp(turns, paths=True)
    assert paths.path("a", "c") == []
    assert paths.farthest() == [("a", "b", 1.0)]
    assert repr(paths) == "<paths over min-plus: 3 vertices, 3 pairs connected, 1 of them one way only>"
    again = pickle.loads(pickle.dumps(paths))
    assert again.path("b", "c") == ["b", "c"]
    assert sr.closure(turns, sr.TROPICAL_ARGMIN).path("b", "a") == ["b", "a"]
    some = sr.apsp(turns, sources=["b"], paths=True)
    assert (some.sources, some.path("b", "c")) == (("b",), ["b", "c"])
    for ask in (lambda p: p.predecessors(), lambda p: p.next_hops(), lambda p: p.via, lambda p: p.to_scipy()):
        for found in (paths, some):
            with pytest.raises(sr.GraphError, match="no trees of vertices"):
                ask(found)
    for ask in (lambda p: p.to_networkx(), lambda p: p.save("paths.npz")):
        with pytest.raises(sr.GraphError, match="no trees of vertices"):
            ask(paths)


def test_a_list_of_graphs() -> None:
    plain = sr.edges([("a", "b", 1.0), ("b", "c", 1.0)])
    one, other = sr.apsp([plain, plain.with_turns({(("a", "b"), ("b", "c")): 2.0})])
    assert (one[0, 2], other[0, 2]) == (2, 4)


@pytest.mark.parametrize(
    ("cost", "message"),
    [
        (3, "cost is 3; pass a function"),
        ({("a", "b"): 1}, "is no turn; a turn is a pair of edges"),
        ({(("a", "b"), ("c", "b")): 1}, "is no turn"),
        ({(("a", "b"), ("b", "d")): 1}, r"needs the edge \('b', 'd'\), and the graph has no such edge"),
        ({(("b", "c"), ("c", "b")): 1}, "but only the edge back"),
    ],
)
def test_wrong_turns(cost: Any, message: str) -> None:
    with pytest.raises(sr.GraphError, match=message):
        sr.edges([("a", "b", 1.0), ("b", "c", 1.0)]).with_turns(cost)


def test_wrong_costs_name_the_turn() -> None:
    plain = sr.edges([("a", "b", 1.0), ("b", "c", 1.0)])
    for cost, error in ((float("nan"), sr.DomainError), ("far", sr.DTypeError), ((1, 2), sr.DTypeError)):
        with pytest.raises(error, match=r"the turn from edge \('a', 'b'\) to edge \('b', 'c'\)"):
            sr.apsp(plain.with_turns(lambda *_, cost=cost: cost))
    with pytest.raises(sr.SemiringError, match="the turn from"):
        sr.closure(plain.with_turns({(("a", "b"), ("b", "c")): -1}), sr.MAX_TIMES)


def test_functions_that_know_no_turns() -> None:
    turns = sr.edges([("a", "b", 1.0), ("b", "c", 1.0)]).with_turns({})
    for call in (sr.reachability, sr.statistics, sr.factor, sr.cycle_mean, sr.explain, lambda g: sr.power(g, 2, "min-plus")):
        with pytest.raises(sr.GraphError, match="turn costs are for apsp"):
            call(turns)
    with pytest.raises(sr.SemiringError, match="leave out comm"):
        sr.apsp(turns, checkpoint="folder")
    with pytest.raises(sr.SemiringError, match="leave out comm"):
        sr.apsp(turns, memory_limit="1GiB")
    with pytest.raises(sr.GraphError, match="no vertex 'd'"):
        sr.apsp(turns, sources="d")
