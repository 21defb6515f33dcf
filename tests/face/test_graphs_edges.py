"""Edge lists, NetworkX graphs and SciPy sparse arrays."""

from __future__ import annotations

import copy
import csv
import dataclasses
import datetime
import math
import pickle
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import semiring as sr
from semiring.algebra.catalogue import BITSET, BOOLEAN, DISTANCE_COUNT, DISTANCE_HOPS, GF2, MAX_MIN, MAX_PLUS, MIN_PLUS, PLUS_TIMES
from semiring.algebra.definition import Semiring
from semiring.common.errors import DomainError, DTypeError, GraphError, ShapeError
from semiring.graphs import edges, read_graph

INF = math.inf
STAND_INS = [
    (MIN_PLUS, np.int64, 2**63 - 1),
    (MIN_PLUS, np.uint64, 2**64 - 1),
    (MIN_PLUS, np.int16, 32767),
    (MIN_PLUS, np.uint8, 255),
    (MAX_PLUS, np.int64, -(2**63)),
    (MAX_MIN, np.int32, 2**31 - 1),
    (MAX_MIN, np.int32, -(2**31)),
    (MAX_MIN, np.uint8, 0),
]
"""A semiring, a dtype, and the integer that stands for ∞ or −∞ there."""


def matrix(graph: Any, semiring: Any = MIN_PLUS, **options: Any) -> Any:
    return read_graph(graph, semiring, **options).values[0].tolist()


class TestEdgeLists:
    def test_pairs_and_triples(self) -> None:
        streets = edges([("home", "shop", 2.5), ("shop", "park", 1)])
        assert streets.labels == ("home", "shop", "park")
        assert repr(streets) == "<3 vertices, 2 directed edges>"
        graph = read_graph(streets, MIN_PLUS)
        assert graph.labels == streets.labels
        assert graph.owned
        assert graph.dtypes == (np.dtype("f8"),)
        assert graph.values[0].tolist() == [[INF, 2.5, INF], [INF, INF, 1], [INF, INF, INF]]

    def test_integer_labels_are_sorted_and_others_as_they_come(self) -> None:
        assert edges([(2, 0), (1, 2)]).labels == (0, 1, 2)
        assert edges([(np.int64(5), 3)]).labels == (3, 5)
        assert edges([("b", "a")]).labels == ("b", "a")
        assert edges([("b", 1), ((0, 0), frozenset())]).labels == ("b", 1, (0, 0), frozenset())

    def test_nodes_give_the_order_and_the_isolated(self) -> None:
        assert edges([("b", "a")], nodes="abc").labels == ("a", "b", "c")
        assert matrix(edges([(0, 2, 7)], nodes=range(3)))[0] == [INF, INF, 7]
        assert edges([], nodes=[1, 0]).labels == (1, 0)

    def test_nothing(self) -> None:
        assert read_graph(edges([]), MIN_PLUS).values[0].shape == (0, 0)
        assert matrix(edges([], nodes=["x"])) == [[INF]]
        assert read_graph(edges([]), DISTANCE_HOPS).values[1].shape == (0, 0)

    def test_an_array_of_edges(self) -> None:
        assert edges(np.array([[0, 1], [1, 2]])).labels == (0, 1, 2)
        weighted = edges(np.array([[0, 1, 2.5], [1, 2, 1]]))
        assert weighted.labels == (0, 1, 2)
        assert all(type(v) is int for v in weighted.labels)
        assert matrix(weighted)[0][1] == 2.5

    def test_any_iterable(self) -> None:
        assert edges(pair for pair in [(0, 1), [1, 2]]).labels == (0, 1, 2)

    def test_undirected(self) -> None:
        assert matrix(edges([("a", "b", 3), ("b", "b", 1)], directed=False)) == [[INF, 3], [3, 1]]
        assert matrix(edges([("a", "b", 3), ("b", "a", 2)], directed=False)) == [[INF, 2], [2, INF]]
        assert matrix(edges([("a", "a", 3)], directed=False), PLUS_TIMES) == [[3]]

    def test_parallel_edges_combine(self) -> None:
        several = edges([("a", "b", w) for w in (5, 2, 9, 2, 7)] + [("b", "a", 1)])
        assert matrix(several) == [[INF, 2], [1, INF]]
        assert matrix(several, MAX_MIN) == [[-INF, 9], [1, -INF]]
        assert matrix(several, PLUS_TIMES) == [[0, 25], [1, 0]]
        assert matrix(several, BITSET, dtype=np.uint8) == [[0, 5 | 2 | 9 | 7], [1, 0]]
        assert matrix(edges([(0, 0)] * 3), GF2) == [[True]]
        assert matrix(edges([(0, 0)] * 4), GF2) == [[False]]

    def test_parallel_integers_never_wrap(self) -> None:
        several = edges([("a", "b", 200), ("a", "b", 100), ("b", "a", 7)])
        with pytest.raises(DTypeError, match="the parallel edges from 'a' to 'b' together: 300 does not fit uint8"):
            read_graph(several, PLUS_TIMES, dtype=np.uint8)
        assert matrix(several, PLUS_TIMES, dtype=np.int16) == [[0, 300], [7, 0]]
        assert matrix(several, MIN_PLUS, dtype=np.uint8) == [[255, 100], [7, 255]]
        counted = edges([("a", "b", (3, 30000)), ("a", "b", (3, 30000))])
        with pytest.raises(DTypeError, match="60000"):
            read_graph(counted, DISTANCE_COUNT, dtype=np.int16)
        assert read_graph(counted, DISTANCE_COUNT, dtype=np.int32).values[1].tolist() == [[0, 60000], [0, 0]]

    def test_parallel_edges_of_many(self) -> None:
        rng = np.random.default_rng(0)
        ends, weights = rng.integers(0, 6, (500, 2)), rng.integers(1, 100, 500)
        expected = np.full((6, 6), INF)
        np.minimum.at(expected, (ends[:, 0], ends[:, 1]), weights)
        listed = [(int(u), int(v), int(w)) for (u, v), w in zip(ends, weights, strict=True)]
        assert matrix(edges(listed, nodes=range(6))) == expected.tolist()

    def test_structured_weights(self) -> None:
        flights = edges([("a", "b", (3.0, 1)), ("a", "b", (3.0, 2)), ("b", "a", (1, 1))])
        graph = read_graph(flights, DISTANCE_COUNT)
        assert [v.tolist() for v in graph.values] == [[[INF, 3], [1, INF]], [[0, 3], [1, 0]]]
        with pytest.raises(GraphError, match="edge 0 from 'a' to 'b' needs a weight of 2 components"):
            read_graph(edges([("a", "b", 3.0), ("a", "b", (3.0, 1))]), DISTANCE_COUNT)

    def test_exact_weights(self) -> None:
        third = edges([(0, 1, Fraction(1, 3)), (0, 1, Fraction(1, 2))])
        assert matrix(third)[0][1] == 1 / 3
        assert matrix(third, dtype=object)[0][1] == Fraction(1, 3)
        assert matrix(edges([(0, 1, Fraction(1, 3))]), PLUS_TIMES, dtype=object) == [[0, Fraction(1, 3)], [0, 0]]
        assert matrix(edges([(0, 1, 2**70)]))[0][1] == 2.0**70

    def test_integers_that_float64_would_round(self) -> None:
        large = edges([("u", "v", 2**53 + 1)])
        with pytest.raises(DTypeError, match=r"edge 0 from 'u' to 'v' is 9007199254740993, which float64 would round"):
            read_graph(large, MIN_PLUS)
        assert matrix(large, dtype=np.int64)[0][1] == 2**53 + 1

    def test_integers_among_floats_are_themselves(self) -> None:
        mixed = edges([("u", "v", 2**53 + 1), ("v", "u", 0.5)])
        with pytest.raises(DTypeError, match=r"edge 0 from 'u' to 'v' is 9007199254740993, which float64 would round"):
            read_graph(mixed, MIN_PLUS)
        assert matrix(mixed, dtype=np.float64)[0][1] == 2.0**53
        assert matrix(edges([(0, 1, 2**53 + 1), (1, 0, 2.0)]), dtype=np.int64)[0][1] == 2**53 + 1
        with pytest.raises(DTypeError, match=r"is 9223372036854775809, which float64 would round; pass dtype=object"):
            read_graph(edges([(0, 1, 2**63 + 1), (1, 0, -1)]), MIN_PLUS)

    @pytest.mark.parametrize(("semiring", "target", "entry"), STAND_INS)
    @pytest.mark.parametrize("kind", ["edges", "numpy", "objects", "networkx", "scipy"])
    def test_no_weight_stands_for_infinity(self, semiring: Any, target: Any, entry: int, kind: str) -> None:
        """Whoever lists an edge has one, also where a dense matrix would write ∞ as its weight."""
        weight = np.array([entry], dtype=np.uint64 if entry >= 2**63 else np.int64)
        if kind == "networkx":
            graph = pytest.importorskip("networkx").DiGraph()
            graph.add_edge(0, 1, weight=entry)
        elif kind == "scipy":
            graph = pytest.importorskip("scipy.sparse").coo_array((weight, ([0], [1])), shape=(2, 2))
        else:
            graph = edges([(0, 1, {"edges": entry, "numpy": weight[0], "objects": Fraction(entry)}[kind])], nodes=(0, 1))
        with pytest.raises(
            DTypeError, match=rf"(edge 0 from 0 to 1|graph\[0, 1\]) is .*{entry}.*, which stands for .?∞ in {np.dtype(target)}"
        ):
            read_graph(graph, semiring, dtype=target)
        assert matrix(graph, semiring, dtype=np.float64)[0][1] == float(entry)
        assert matrix(graph, semiring, dtype=object)[0][1] == entry
        assert matrix(graph, semiring, dtype=target, nonedge=entry)[0][1] == semiring.identities(target)[0][0]
        with pytest.raises(DTypeError, match="stands for"):
            sr.closure(graph, semiring, dtype=target, sources=0)

    def test_the_advice_about_the_largest_integer_works(self) -> None:
        largest = edges([("a", "b", 2**63 - 1)])
        with pytest.raises(DTypeError, match=r"would round; pass dtype=object, or dtype=np\.float64"):
            sr.apsp(largest)
        assert sr.apsp(largest, dtype=object)[0, 1] == 2**63 - 1
        assert sr.apsp(largest, dtype=np.float64)[0, 1] == 2.0**63
        assert sr.apsp(largest, nonedge=2**63 - 1)[0, 1] == INF

    def test_nonedge_is_compared_exactly(self) -> None:
        near = edges([(0, 1, 2**53 + 1)])
        assert matrix(near, nonedge=2.0**53, dtype=np.int64)[0][1] == 2**53 + 1
        assert matrix(np.array([[0, 2**53 + 1], [1, 0]]), nonedge=2.0**53)[0][1] == 2**53 + 1
        assert matrix(np.array([[0, 3], [1, 0]]), nonedge=3.0)[0][1] == np.iinfo(np.int64).max
        assert matrix(np.array([[0, 3], [1, 0]]), nonedge=3.5)[0][1] == 3

    def test_dtype(self) -> None:
        assert matrix(edges([(0, 1, 5)]), dtype=np.int16) == [[32767, 5], [32767, 32767]]
        assert matrix(edges([(0, 1, INF), (1, 0, 2.0)]), dtype=np.int16) == [[32767, 32767], [2, 32767]]
        with pytest.raises(DTypeError, match=r"edge 0 from 0 to 1.*cannot hold"):
            read_graph(edges([(0, 1, 2.5)]), MIN_PLUS, dtype=np.int32)

    def test_truth_values(self) -> None:
        links = edges([("a", "b", True), ("b", "c", False), ("c", "a", True)])
        assert matrix(links, BOOLEAN) == [[False, True, False], [False, False, False], [True, False, False]]
        weighted = edges([("a", "b", 0), ("b", "c", 2.5), ("c", "a", False), ("a", "a", 1)])
        with pytest.raises(DTypeError, match=r"neither 0 nor 1|not a truth value"):
            read_graph(weighted, BOOLEAN)
        present = matrix(edges([("a", "b", 0), ("b", "c", 2.5), ("c", "a", False), ("a", "a", None)]), BOOLEAN, presence=True)
        assert present == [[True, True, False], [False, False, True], [False, False, False]]
        assert matrix(edges([("a", "b", 0), ("b", "a", 2)]), BOOLEAN, presence=True, nonedge=0) == [[False, False], [True, False]]
        with pytest.raises(DomainError, match="NaN"):
            read_graph(edges([("a", "b", math.nan)]), BOOLEAN, presence=True)

    def test_nonedge(self) -> None:
        listed = edges([("a", "b", -1), ("b", "a", 4)])
        assert matrix(listed, nonedge=-1) == [[INF, INF], [4, INF]]
        assert matrix(edges([("a", "b", math.nan), ("b", "a", 4)]), nonedge=math.nan) == [[INF, INF], [4, INF]]

    @pytest.mark.parametrize(
        ("listed", "message"),
        [
            ([(0, 1), (2,)], "edge 1 is"),
            ([(0, 1, 2, 3)], "edge 0 is"),
            (["ab"], "edge 0 is 'ab'"),
            ([5], "edge 0 is 5"),
            ([([], 1)], "hashable"),
            (None, "a NoneType is no list of edges"),
            (3, "an int is no list of edges"),
            ([{"from": "a", "to": "b"}], "edge 0 is {'from': 'a'"),
            ([{2, 1}], "edge 0 is {1, 2}"),
            ({(0, 1): 5}, r"a dict is no list of edges; .*items\(\)"),
            (edges([(0, 1)]), "graph of type semiring.EdgeList .* pass it as it is"),
            (np.array(5), r"no array of shape \(\), but one of shape \(m, 2\)"),
            (np.zeros((2, 2, 2)), r"no array of shape \(2, 2, 2\)"),
            (np.array([5, 6]), "edge 0 is 5"),
            (np.zeros((1, 4)), r"edge 0 is \[0.0, 0.0"),
            ("roads.csv", r"a list of edges is expected, and not the name of a file; sr\.read_edges\('roads\.csv'\)"),
            (np.ma.array([[0, 1, 2]], mask=np.array([[False, False, True]])), "masked"),
            ([(np.array(1), np.array(2))], "hashable"),
        ],
    )
    def test_what_is_no_edge(self, listed: Any, message: str) -> None:
        with pytest.raises(GraphError, match=message):
            edges(listed)

    def test_graphs_are_no_lists_of_edges(self) -> None:
        graph = pytest.importorskip("networkx").grid_2d_graph(2, 2)
        with pytest.raises(GraphError, match="pass it as it is"):
            edges(graph)
        assert set(edges(graph.edges).labels) == set(graph)
        with pytest.raises(GraphError, match="pass it as it is"):
            edges(pytest.importorskip("scipy.sparse").csr_array(np.eye(2)))

    def test_arrays_of_other_libraries(self) -> None:
        torch = pytest.importorskip("torch")
        assert edges(torch.tensor([[0, 1], [1, 2]])).labels == (0, 1, 2)
        with pytest.raises(GraphError, match="is an array"):
            edges([(torch.tensor(0), torch.tensor(1))])

    @pytest.mark.parametrize("flag", [True, False, np.False_])
    def test_directed_and_nodes_go_by_their_names(self, flag: Any) -> None:
        with pytest.raises(GraphError, match=r"heads is (True|False), and no array; sr\.edges takes .* directed=, nodes= by their names"):
            edges([(0, 1)], flag)
        assert edges([(0, 1)], directed=flag).directed is bool(flag)
        number: Any = 5
        with pytest.raises(GraphError, match="directed is 5, not True or False"):
            edges([(0, 1)], directed=number)

    def test_bad_nodes(self) -> None:
        number: Any = 5
        with pytest.raises(GraphError, match="nodes is 5, not a list of all vertices"):
            edges([(0, 1)], nodes=number)
        with pytest.raises(GraphError, match="twice"):
            edges([("a", "b")], nodes="aba")
        with pytest.raises(GraphError, match=r"edge 1, .*'c'"):
            edges([("a", "b"), ("a", "c")], nodes="ab")

    @pytest.mark.parametrize("weight", ["5", b"5", 1j, np.complex64(1), [1], {}, datetime.timedelta(1), np.timedelta64(1, "s")])
    def test_bad_weights(self, weight: Any) -> None:
        with pytest.raises(DTypeError, match=r"edge 1 from 'b' to 'c' is .* no real number"):
            edges([("a", "b", 1), ("b", "c", weight)])

    def test_components_are_no_single_weight(self) -> None:
        with pytest.raises(DTypeError, match=r"edge 1 from 'b' to 'c' is \(1, 2\), which is no real number"):
            read_graph(edges([("a", "b", 1), ("b", "c", (1, 2))]), MIN_PLUS)

    def test_attributes_are_no_weight(self) -> None:
        nx = pytest.importorskip("networkx")
        graph = nx.Graph([("a", "b", {"weight": 2.0})])
        for listed in (graph.edges(data=True), nx.path_graph(2).edges(data=True)):
            with pytest.raises(DTypeError, match=r"no real number; pass the graph .* itself, .*graph\.edges\(data='weight'\)"):
                edges(listed)
        assert list(edges(graph.edges(data="weight")).weights) == [2.0]

    def test_rows_of_the_csv_module(self, tmp_path: Path) -> None:
        path = tmp_path / "roads.csv"
        path.write_text("from,to,km\nA,B,3\n")
        with path.open(newline="") as file, pytest.raises(DTypeError, match=r"edge 0 from 'from' to 'to' is 'km', .*float.*read_edges"):
            edges(csv.reader(file))
        with pytest.raises(DTypeError, match="is '3', which is no real number"):
            edges([("A", "B", "3")])

    def test_objects_of_ones_own_are_weights(self) -> None:
        x = pytest.importorskip("sympy").Symbol("x")
        own = object()
        assert edges([(0, 1, own), (1, 2, x), (2, 3, Decimal("1.5"))]).weights == [own, x, Decimal("1.5")]

    @pytest.mark.parametrize("weight", [math.nan, -INF])
    @pytest.mark.parametrize("directed", [True, False])
    def test_outside_the_carrier(self, weight: float, directed: bool) -> None:
        with pytest.raises(DomainError, match="the weight of edge 1 from 'b' to 'c'"):
            read_graph(edges([("a", "b", 1), ("b", "c", weight)], directed=directed), MIN_PLUS)


class TestNetworkX:
    @pytest.fixture
    def nx(self) -> Any:
        return pytest.importorskip("networkx")

    def test_labels_weights_and_direction(self, nx: Any) -> None:
        graph = nx.Graph()
        graph.add_edge("a", "b", weight=3)
        graph.add_edge("b", "c")
        graph.add_node("d")
        with pytest.raises(sr.GraphError, match="1 of 2 edges has no 'weight' though others do, such as edge 1 from 'b' to 'c'"):
            read_graph(graph, MIN_PLUS)
        graph["b"]["c"]["weight"] = 1
        read = read_graph(graph, MIN_PLUS)
        assert read.labels == ("a", "b", "c", "d")
        assert read.values[0].tolist() == [[INF, 3, INF, INF], [3, INF, 1, INF], [INF, 1, INF, INF], [INF] * 4]
        assert matrix(graph.to_directed()) == read.values[0].tolist()
        assert matrix(nx.DiGraph([("a", "b")])) == [[INF, 1], [INF, INF]]

    def test_agrees_with_networkx(self, nx: Any) -> None:
        graph = nx.gnp_random_graph(20, 0.2, seed=1, directed=True)
        for i, (_, _, data) in enumerate(graph.edges(data=True)):
            data["weight"] = i % 7
        np.testing.assert_array_equal(read_graph(graph, MIN_PLUS).values[0], nx.to_numpy_array(graph, nonedge=INF))

    def test_multigraphs(self, nx: Any) -> None:
        edge = [("a", "b", {"weight": w}) for w in (4, 2, 3)]
        assert matrix(nx.MultiDiGraph(edge)) == [[INF, 2], [INF, INF]]
        assert matrix(nx.MultiGraph(edge)) == [[INF, 2], [2, INF]]
        assert matrix(nx.MultiGraph([("a", "a", {"weight": 4})]), PLUS_TIMES) == [[4]]

    def test_another_attribute_and_a_subclass(self, nx: Any) -> None:
        class Roads(nx.DiGraph):  # type: ignore[misc]  # networkx has no types
            pass

        roads = Roads()
        roads.add_edge(1, 0, km=5)
        assert read_graph(roads, MIN_PLUS, weight="km").labels == (1, 0)
        assert matrix(roads, weight="km") == [[INF, 5], [INF, INF]]

    def test_presence_and_bad_weights(self, nx: Any) -> None:
        graph = nx.DiGraph([("a", "b", {"weight": 0})])
        assert matrix(graph, BOOLEAN, presence=True) == [[False, True], [False, False]]
        with pytest.raises(DTypeError, match="edge 0 from 'a' to 'b'"):
            read_graph(nx.DiGraph([("a", "b", {"weight": "7"})]), MIN_PLUS)

    def test_empty(self, nx: Any) -> None:
        assert read_graph(nx.Graph(), MIN_PLUS).n == 0


class TestSciPy:
    @pytest.fixture
    def sparse(self) -> Any:
        return pytest.importorskip("scipy.sparse")

    @pytest.mark.parametrize("kind", ["array", "matrix"])
    @pytest.mark.parametrize("form", ["coo", "csr", "csc", "lil", "dok", "bsr", "dia"])
    def test_every_format(self, sparse: Any, form: str, kind: str) -> None:
        dense = np.array([[0, 3, 0], [0, 0, 4.5], [2, 0, 1]])
        graph = getattr(sparse, f"{form}_{kind}")(dense)
        read = read_graph(graph, MIN_PLUS)
        assert read.values[0].tolist() == np.where(dense == 0, INF, dense).tolist()
        assert read.dtypes == (np.dtype("f8"),)
        assert read.owned
        assert read.labels is None
        np.testing.assert_array_equal(graph.toarray(), dense)

    def test_an_explicit_zero_is_an_edge(self, sparse: Any) -> None:
        graph = sparse.csr_array(([0.0, 2.0], ([0, 1], [1, 0])), shape=(2, 2))
        assert graph.nnz == 2
        assert matrix(graph) == [[INF, 0], [2, INF]]
        assert matrix(graph, BOOLEAN, presence=True) == [[False, True], [True, False]]
        assert matrix(graph, nonedge=0) == [[INF, INF], [2, INF]]

    def test_integers_that_float64_would_round_are_told_their_own_dtype(self, sparse: Any) -> None:
        graph = sparse.csr_array((np.array([2**63], dtype=np.uint64), ([0], [1])), shape=(2, 2))
        with pytest.raises(DTypeError, match=r"graph\[0, 1\] is 9223372036854775808.*dtype=np\.uint64"):
            sr.apsp(graph)

    @pytest.mark.sampled(2)
    @pytest.mark.parametrize("missing", [0.0, np.inf, -np.inf, np.nan])
    def test_what_pydata_does_not_store_is_no_edge(self, missing: float) -> None:
        pydata = pytest.importorskip("sparse")
        graph = pydata.COO(np.array([[0, 1], [1, 2]]), np.array([2.0, 0.0]), shape=(3, 3), fill_value=missing)
        for given in (graph, pydata.GCXS(graph), pydata.DOK.from_coo(graph)):
            np.testing.assert_array_equal(sr.apsp(given), [[0, 2, 2], [np.inf, 0, 0], [np.inf, np.inf, 0]])
            np.testing.assert_array_equal(sr.apsp(given, sources=1), [np.inf, 0, 0])

    def test_a_number_that_pydata_does_not_store_is_refused(self) -> None:
        graph = pytest.importorskip("sparse").COO(np.array([[0], [1]]), np.array([2.0]), shape=(3, 3), fill_value=7.0)
        with pytest.raises(sr.GraphError, match=r"stores none.*fill_value.*7.*todense"):
            sr.apsp(graph)

    def test_padding_is_no_edge(self, sparse: Any) -> None:
        graph = sparse.bsr_array(np.array([[0, 3.0], [0, 0]]), blocksize=(2, 2))
        assert matrix(graph) == [[INF, 3], [INF, INF]]

    def test_duplicates_are_parallel_edges(self, sparse: Any) -> None:
        graph = sparse.coo_array(([2.0, 3.0, 1.0], ([0, 0, 1], [1, 1, 0])), shape=(2, 2))
        assert matrix(graph) == [[INF, 2], [1, INF]]
        assert graph.nnz == 3  # the caller's array is as it was
        small = sparse.coo_array((np.array([100, 100], dtype=np.int8), ([0, 0], [1, 1])), shape=(2, 2))
        assert read_graph(small, sr.PLUS_TIMES, dtype=np.int64).values[0].tolist() == [[0, 200], [0, 0]]

    def test_duplicates_that_would_wrap(self, sparse: Any) -> None:
        large = sparse.coo_array((np.array([2**63 - 1] * 3), ([0, 0, 0], [1, 1, 1])), shape=(2, 2))
        with pytest.raises((DTypeError, sr.OverflowRiskError), match="the parallel edges from 0 to 1 together"):
            read_graph(large, sr.PLUS_TIMES, dtype=np.int64)
        apart = sparse.coo_array((np.array([2**62] * 3), ([0, 0, 1], [1, 0, 1])), shape=(2, 2))
        assert matrix(apart, dtype=np.int64)[0] == [2**62, 2**62]

    def test_integers_and_dtype(self, sparse: Any) -> None:
        graph = sparse.csr_array(np.array([[0, 3], [0, 0]], dtype=np.int8))
        assert read_graph(graph, MIN_PLUS).dtypes == (np.dtype("f8"),)
        assert matrix(graph, dtype=np.int16) == [[32767, 3], [32767, 32767]]
        assert matrix(graph, BITSET) == [[0, 3], [0, 0]]

    def test_truth_values(self, sparse: Any) -> None:
        """A stored number is an edge, 0 too; a stored truth value is what it says."""
        stored = sparse.csr_array(([True, False], ([0, 1], [1, 0])), shape=(2, 2))
        assert matrix(stored, BOOLEAN) == matrix(stored, BOOLEAN, presence=True) == [[False, True], [False, False]]
        with pytest.raises(DTypeError, match=r"graph\[0, 1\] is 3.*neither 0 nor 1"):
            read_graph(sparse.csr_array(np.array([[0, 3], [0, 0]])), BOOLEAN)

    def test_refusals(self, sparse: Any) -> None:
        with pytest.raises(ShapeError, match=r"\(2, 3\)"):
            read_graph(sparse.csr_array(np.ones((2, 3))), MIN_PLUS)
        with pytest.raises(DTypeError, match="complex128"):
            read_graph(sparse.csr_array(np.eye(2, dtype=complex)), MIN_PLUS)
        with pytest.raises(DomainError, match=r"graph\[1, 0\]"):
            read_graph(sparse.csr_array(np.array([[0, 1], [math.nan, 0]])), MIN_PLUS)
        pairs = Semiring("pairs", min, lambda a, b: (a[0] + b[0], a[1] + b[1]), (INF, INF), (0, 0))
        with pytest.raises(GraphError, match="a sparse array holds single numbers"):
            read_graph(sparse.csr_array(np.eye(2)), pairs)

    def test_empty(self, sparse: Any) -> None:
        assert matrix(sparse.csr_array((2, 2))) == [[INF, INF], [INF, INF]]
        assert read_graph(sparse.coo_array((1, 1)), MIN_PLUS).n == 1


def test_a_list_of_edges_in_the_place_of_a_matrix() -> None:
    with pytest.raises(GraphError, match=r"a list of edges is no matrix; pass sr\.edges of it"):
        sr.apsp([("a", "b", 5.0), ("b", "c", 6.0)])
    with pytest.warns(sr.AssumptionWarning, match=r"3 tuples are read as the rows of a matrix; if they are edges, pass sr\.edges"):
        sr.apsp([(1, 2, 5.0), (2, 3, 6), (4, 5, 6)])
    assert sr.apsp([[0, 2], [1, 0]]).tolist() == [[0, 2], [1, 0]]


def test_a_list_is_read_once() -> None:
    """And anew where something else is asked for; its arrays cannot be changed behind its back, and others are read each time."""
    rng = np.random.default_rng(2)
    n, m = 40, 160
    tails, heads, weights = *rng.integers(0, n, (2, m)), rng.integers(1, 9, m).astype(float)
    listed = sr.edges(tails, heads, weights, nodes=range(n))
    anew = sr.edges(tails, heads, weights, nodes=range(n))
    expected = sr.apsp(anew)
    for semiring, dtype in ((sr.MIN_PLUS, None), (sr.MIN_PLUS, "float32"), (sr.MAX_MIN, None), (sr.MIN_PLUS, None)):
        for _ in range(2):
            found = sr.closure(listed, semiring, sources=3, targets=17, dtype=dtype)
            fresh = sr.edges(tails, heads, weights, nodes=range(n))
            assert found == sr.closure(fresh, semiring, sources=3, targets=17, dtype=dtype)
            assert found.dtype == (dtype or "float64")
    assert [sr.apsp(listed, sources=3, targets=v) for v in range(n)] == expected[3].tolist()
    with pytest.raises(ValueError, match="read-only"):
        listed.weights[0] = 0
    other = dataclasses.replace(listed, weights=weights)
    for factor in (1, 2):
        np.testing.assert_array_equal(sr.apsp(other, sources=[3])[0], factor * expected[3])
        weights *= 2


def test_a_vertex_that_is_called_by_a_number_of_another() -> None:
    listed = sr.edges([0, 1, 2], [1, 2, 0], [1.0, 2.0, 4.0], nodes=[1, 0, 2])
    assert [sr.apsp(listed, sources=0, targets=v) for v in (0, 1, 2)] == [0.0, 1.0, 3.0]
    truths = sr.edges([("a", True, 1.0), (True, 2, 5.0)])
    assert sr.apsp(truths, sources=True, targets=2) == 5.0
    for vertex in (1, 0, 3, -1):
        with pytest.raises(sr.GraphError):
            sr.apsp(truths, sources=vertex, targets=2)


def test_a_list_of_edges_travels() -> None:
    graph = sr.edges([0, 1], [1, 2], [1.0, 2.0])
    for again in (copy.deepcopy(graph), pickle.loads(pickle.dumps(graph))):
        np.testing.assert_array_equal(sr.apsp(again), sr.apsp(graph))
