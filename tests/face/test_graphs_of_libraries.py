"""Graphs of igraph, rustworkx, networkit and PyTorch Geometric, beside what these libraries find themselves."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import semiring as sr

INF = math.inf

ENDS = [(0, 1), (1, 2), (2, 2), (0, 1), (3, 0), (2, 1)]
"""Parallel edges, a loop, and with five vertices one without edges."""
LENGTHS = [4.0, 2.5, 1.0, 3.0, 7.0, 0.0]

edge_lists = st.integers(0, 7).flatmap(
    lambda n: st.tuples(
        st.just(n),
        st.lists(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1), st.integers(0, 20)), max_size=20) if n else st.just([]),
        st.booleans(),
    )
)


@pytest.fixture(scope="module")
def igraph() -> Any:
    return pytest.importorskip("igraph")


@pytest.fixture(scope="module")
def rustworkx() -> Any:
    return pytest.importorskip("rustworkx")


@pytest.fixture(scope="module")
def networkit() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what it says of its own dependencies
        return pytest.importorskip("networkit")


def edge_matrix(n: int, ends: Any, lengths: Any, directed: bool) -> Any:
    """The shortest edges, by NumPy alone."""
    matrix = np.full((n, n), INF)
    for (u, v), w in zip(ends, lengths, strict=True):
        matrix[u, v] = min(matrix[u, v], w)
        if not directed:
            matrix[v, u] = min(matrix[v, u], w)
    return matrix


def answers(graph: Any, labels: Any, **how: Any) -> Any:
    """The distances, after every way to ask for them has given the same."""
    paths = sr.apsp(graph, paths=True, **how)
    assert paths.nodes == tuple(labels)
    distances = paths.distances
    np.testing.assert_array_equal(sr.apsp(graph, **how), distances)
    np.testing.assert_array_equal(sr.transitive_closure(graph, reflexive=True), np.isfinite(distances))
    assert sr.statistics(graph, **how).nodes == tuple(labels)
    assert sr.explain(graph, **how).n == len(distances)
    for i, label in enumerate(labels):
        np.testing.assert_array_equal(sr.apsp(graph, sources=[label], **how)[0], distances[i])
    return distances


class TestIGraph:
    @given(edge_lists)
    @settings(max_examples=20)
    def test_agrees_with_igraph(self, igraph: Any, drawn: Any) -> None:
        n, triples, directed = drawn
        graph = igraph.Graph(n, [(u, v) for u, v, _ in triples], directed=directed)
        graph.es["length"] = [w for *_, w in triples]
        expected = np.array(graph.distances(weights="length")).reshape(n, n)
        np.testing.assert_array_equal(sr.apsp(graph, weight="length"), expected)

    @pytest.mark.parametrize("directed", [True, False])
    def test_names_and_every_call(self, igraph: Any, directed: bool) -> None:
        graph = igraph.Graph(5, ENDS, directed=directed, vertex_attrs={"name": list("vwxyz")}, edge_attrs={"weight": LENGTHS})
        np.testing.assert_array_equal(answers(graph, "vwxyz"), graph.distances(weights="weight"))
        np.testing.assert_array_equal(sr.power(graph, 1, sr.MIN_PLUS), edge_matrix(5, ENDS, LENGTHS, directed))
        assert sr.closure(graph, sr.MAX_MIN)[0, 1] == 4

    @pytest.mark.parametrize("names", [None, ["a", "b", "a"], ["a", None, "b"], [[], [], []]])
    def test_vertices_without_names_of_their_own(self, igraph: Any, names: Any) -> None:
        graph = igraph.Graph(3, [(0, 1)])
        if names:
            graph.vs["name"] = names
        assert sr.apsp(graph, paths=True).nodes == (0, 1, 2)

    def test_attributes(self, igraph: Any) -> None:
        graph = igraph.Graph(3, [(0, 1), (1, 2)], directed=True, edge_attrs={"length": [2, 5], "name": ["A", "B"]})
        with pytest.warns(sr.AssumptionWarning, match="all have 'length': pass weight='length'"):
            assert sr.apsp(graph)[0, 2] == 2
        assert sr.apsp(graph, weight=1)[0, 2] == 2
        with pytest.raises(sr.GraphError, match=r"did you mean 'length'\? Edges have 'length', 'name'"):
            sr.apsp(graph, weight="lengths")
        with pytest.raises(sr.DTypeError, match="edge 0 from 0 to 1 is 'A'"):
            sr.apsp(graph, weight="name")
        graph.es["some"] = [None, 3]
        with pytest.raises(sr.GraphError, match="1 of 2 edges has no 'some' though others do, such as edge 0 from 0 to 1"):
            sr.apsp(graph, weight="some")


class TestRustworkx:
    @given(edge_lists)
    @settings(max_examples=20)
    def test_agrees_with_rustworkx(self, rustworkx: Any, drawn: Any) -> None:
        n, triples, directed = drawn
        graph = (rustworkx.PyDiGraph if directed else rustworkx.PyGraph)()
        graph.add_nodes_from([f"v{i}" for i in range(n)])
        graph.add_edges_from(triples)
        distances = sr.apsp(graph)
        np.testing.assert_array_equal(distances, rustworkx.floyd_warshall_numpy(graph, float))
        for i, row in rustworkx.all_pairs_dijkstra_path_lengths(graph, float).items():
            assert {i: 0.0} | dict(row) == {j: d for j, d in enumerate(distances[i].tolist()) if d < INF}

    @pytest.mark.parametrize("kind", ["PyGraph", "PyDiGraph", "PyDAG"])
    def test_names_holes_and_every_call(self, rustworkx: Any, kind: str) -> None:
        if kind == "PyDAG":
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                graph = rustworkx.PyDAG()
        else:
            graph = getattr(rustworkx, kind)()
        graph.add_nodes_from(["gone", "v", "w", "gone", "x", "y", "z"])
        numbers = [1, 2, 4, 5, 6]
        graph.add_edges_from([(numbers[u], numbers[v], w) for (u, v), w in zip(ENDS, LENGTHS, strict=True)])
        graph.add_edge(0, 3, 1.0)
        graph.add_edge(1, 3, 1.0)
        graph.remove_nodes_from([0, 3])
        expected = rustworkx.floyd_warshall_numpy(graph, float)
        np.testing.assert_array_equal(answers(graph, "vwxyz"), expected)
        graph[5] = "v"  # two of one name
        np.testing.assert_array_equal(answers(graph, numbers), expected)

    @pytest.mark.parametrize("payloads", [[None], [None, None], [[], []], ["a", "a"]])
    def test_payloads_that_are_no_names(self, rustworkx: Any, payloads: Any) -> None:
        graph = rustworkx.PyGraph()
        graph.add_nodes_from(payloads)
        assert sr.apsp(graph, paths=True).nodes == tuple(range(len(payloads)))

    @pytest.mark.parametrize("kind", ["dict", "class", "slots", "named tuple"])
    def test_attributes_of_payloads(self, rustworkx: Any, kind: str) -> None:
        from typing import NamedTuple

        @dataclass
        class Road:
            length: float
            name: str

        @dataclass(slots=True)
        class Slots:
            length: float
            name: str

        class Named(NamedTuple):
            length: float
            name: str

        make: Any = {"dict": lambda length, name: {"length": length, "name": name}, "class": Road, "slots": Slots, "named tuple": Named}
        graph = rustworkx.PyDiGraph()
        graph.add_nodes_from(list("abc"))
        graph.add_edges_from([(0, 1, make[kind](2.5, "A")), (1, 2, make[kind](4.0, "B"))])
        assert sr.apsp(graph, weight="length")[0].tolist() == [0, 2.5, 6.5]
        with pytest.warns(sr.AssumptionWarning, match="all have 'length': pass weight='length'"):
            assert sr.apsp(graph)[0].tolist() == [0, 1, 2]
        with pytest.raises(sr.GraphError, match=r"'lengths'; did you mean 'length'\? Edges have 'length', 'name'"):
            sr.apsp(graph, weight="lengths")

    def test_payloads(self, rustworkx: Any) -> None:
        graph = rustworkx.PyDiGraph()
        graph.add_nodes_from(list("abcd"))
        graph.add_edges_from_no_data([(0, 1), (1, 2)])
        assert sr.apsp(graph)[0].tolist() == [0, 1, 2, INF]
        graph.add_edges_from([(0, 1, Fraction(1, 2)), (2, 3, np.float32(2))])
        with pytest.raises(sr.GraphError, match="2 of 4 edges have no 'weight' though others do"):
            sr.apsp(graph)
        graph.update_edge_by_index(0, 1.0)
        graph.update_edge_by_index(1, 1.0)
        assert sr.apsp(graph)[0].tolist() == [0, 0.5, 1.5, 3.5]
        with pytest.raises(sr.GraphError, match="'length'; edges have 'weight'"):
            sr.apsp(graph, weight="length")
        graph.add_edge(3, 0, "long")
        with pytest.raises(sr.DTypeError, match="edge 4 from 'd' to 'a' is 'long', which is no real number"):
            sr.apsp(graph)
        assert sr.apsp(graph, weight=1)[0].tolist() == [0, 1, 2, 3]

    def test_structured_elements(self, rustworkx: Any) -> None:
        graph = rustworkx.PyDiGraph()
        graph.add_nodes_from(list("ab"))
        graph.add_edges_from([(0, 1, (3.0, 1)), (0, 1, (3.0, 2))])
        assert [v[0, 1] for v in sr.closure(graph, sr.DISTANCE_COUNT)] == [3, 3]


class TestNetworKit:
    @given(edge_lists)
    @settings(max_examples=20)
    def test_agrees_with_networkit(self, networkit: Any, drawn: Any) -> None:
        n, triples, directed = drawn
        graph = networkit.Graph(n, weighted=True, directed=directed)
        for u, v, w in triples:
            graph.addEdge(u, v, float(w))
        expected = np.array(networkit.distance.APSP(graph).run().getDistances()).reshape(n, n) if n else np.zeros((0, 0))
        np.testing.assert_array_equal(sr.apsp(graph), np.where(expected > 1e300, INF, expected))

    @pytest.mark.parametrize("directed", [True, False])
    @pytest.mark.parametrize("ids", [True, False])
    def test_holes_and_every_call(self, networkit: Any, directed: bool, ids: bool) -> None:
        graph = networkit.Graph(7, weighted=True, directed=directed)
        numbers = [1, 2, 4, 5, 6]
        for (u, v), w in zip(ENDS, LENGTHS, strict=True):
            graph.addEdge(numbers[u], numbers[v], w)
        graph.removeNode(0)
        graph.removeNode(3)
        if ids:
            graph.indexEdges()
        expected = sr.apsp(edge_matrix(5, ENDS, LENGTHS, directed), nonedge=INF)
        np.testing.assert_array_equal(answers(graph, numbers), expected)
        assert sr.apsp(graph, weight=1)[0, 1] == 1

    def test_without_weights(self, networkit: Any) -> None:
        graph = networkit.Graph(3)
        graph.addEdge(0, 1)
        graph.addEdge(1, 2)
        assert sr.apsp(graph)[0].tolist() == [0, 1, 2]
        with pytest.raises(sr.GraphError, match="no edge has the attribute or column 'length'"):
            sr.apsp(graph, weight="length")

    @pytest.mark.parametrize("directed", [True, False])
    def test_attributes(self, networkit: Any, directed: bool) -> None:
        graph = networkit.Graph(4, directed=directed)
        for u, v in [(0, 1), (2, 1), (0, 1), (3, 3)]:
            graph.addEdge(u, v)
        graph.indexEdges()
        length, lanes, name = (graph.attachEdgeAttribute(*a) for a in (("length", float), ("lanes", int), ("name", str)))
        other, loop = graph.edgeId(2, 1), graph.edgeId(3, 3)
        length[other], length[loop] = 2.5, 1.0
        length[min({*range(4)} - {other, loop})], length[max({*range(4)} - {other, loop})] = 4.5, 3.5
        lanes[other] = 2
        for e in range(4):
            name[e] = "A"
        expected = edge_matrix(4, [(0, 1), (2, 1), (0, 1), (3, 3)], [4.5, 2.5, 3.5, 1.0], directed)
        np.testing.assert_array_equal(sr.power(graph, 1, sr.MIN_PLUS, weight="length"), expected)
        with pytest.raises(sr.GraphError, match="3 of 4 edges have no 'lanes' though others do"):
            sr.apsp(graph, weight="lanes")
        with pytest.raises(sr.DTypeError, match="is 'A', which is no real number"):
            sr.apsp(graph, weight="name")
        with pytest.raises(sr.GraphError, match="no edge has the attribute or column 'width'"):
            sr.apsp(graph, weight="width")


class Tensor:
    """A tensor that lends its memory, and is no array of NumPy's."""

    def __init__(self, values: Any) -> None:
        self._array = np.asarray(values)
        self.shape = self._array.shape

    @property
    def __array_interface__(self) -> Any:
        return self._array.__array_interface__


class Data:
    """What PyTorch Geometric's `Data` shows of itself."""

    def __init__(self, edge_index: Any = None, num_nodes: Any = None, **attributes: Any) -> None:
        self.edge_index = None if edge_index is None else Tensor(edge_index)
        self._given, self._attributes = num_nodes, attributes
        self.__dict__.update({name: Tensor(value) for name, value in attributes.items()})

    @property
    def num_nodes(self) -> int:
        return int(self.edge_index._array.max()) + 1 if self._given is None and self.edge_index is not None else self._given or 0

    def edge_attrs(self) -> list[str]:
        m = self.edge_index.shape[1] if self.edge_index else 0
        return ["edge_index", *(name for name, value in self._attributes.items() if len(value) == m)]


Data.__module__ = "torch_geometric.data.data"


class TestPyTorchGeometric:
    ENDS = np.array(ENDS, dtype=np.int64).T

    @pytest.mark.parametrize("name", ["edge_weight", "edge_attr"])
    @pytest.mark.parametrize("dtype", ["f4", "f8", "i8"])
    def test_weights_and_every_call(self, name: str, dtype: str) -> None:
        lengths = np.array([4, 2, 1, 3, 7, 0], dtype=dtype)
        expected = sr.apsp(edge_matrix(5, ENDS, lengths.tolist(), True), nonedge=INF)
        for values in (lengths, *([lengths[:, None]] if name == "edge_attr" else [])):
            np.testing.assert_array_equal(answers(Data(self.ENDS, 5, **{"x": np.zeros((5, 2)), name: values}), range(5)), expected)
        assert sr.apsp(Data(self.ENDS, **{name: lengths})).shape == (4, 4)

    def test_the_weight_goes_before_the_attribute(self) -> None:
        data = Data(self.ENDS, 5, edge_weight=np.array(LENGTHS), edge_attr=np.ones(6), speed=np.arange(6) + 1)
        assert sr.apsp(data)[3, 0] == 7
        assert sr.apsp(data, weight="edge_attr")[3, 0] == 1
        assert sr.apsp(data, weight="speed")[3, 0] == 5

    def test_several_features(self) -> None:
        data = Data(self.ENDS, 5, edge_attr=np.column_stack([LENGTHS, np.arange(6)]), tensor=np.zeros((6, 2, 2)))
        with pytest.warns(sr.AssumptionWarning, match=r"all have 'edge_attr\[:, 0\]', 'edge_attr\[:, 1\]': pass one of them"):
            assert sr.apsp(data)[3, 0] == 1
        assert sr.apsp(data, weight="edge_attr[:, 0]")[3, 0] == 7
        assert sr.apsp(data, weight=1)[3, 2] == 3
        with pytest.raises(sr.GraphError, match=r"'edge_attr'; did you mean 'edge_attr\[:, "):
            sr.apsp(data, weight="edge_attr")

    def test_what_is_of_vertices_or_of_edges(self) -> None:
        ends = np.array([[0, 1], [1, 0]])
        data = Data(ends, 2, edge_label_index=ends, edge_index_2=ends, mass=np.array([5, 6]))
        data.edge_attrs = lambda: ["edge_index", "edge_label_index", "edge_index_2"]  # type: ignore[method-assign]  # as many of both
        assert sr.apsp(data).tolist() == [[0, 1], [1, 0]]
        assert sr.apsp(data, weight="mass").tolist() == [[0, 5], [6, 0]]
        with pytest.raises(sr.GraphError, match="no edge has the attribute or column 'num_nodes'"):
            sr.apsp(data, weight="num_nodes")

    def test_bare_and_empty(self) -> None:
        assert sr.apsp(Data(self.ENDS, 5))[3].tolist() == [1, 2, 3, 0, INF]
        assert sr.apsp(Data(np.zeros((2, 0), dtype=np.int64), 2)).tolist() == [[0, INF], [INF, 0]]
        assert sr.apsp(Data(np.zeros((2, 0), dtype=np.int64), 0)).shape == (0, 0)
        assert sr.apsp(Data(self.ENDS.astype(np.int32), 5))[3, 2] == 3

    def test_refusals(self) -> None:
        with pytest.raises(
            sr.GraphError, match=r"the torch_geometric\.Data has no edge_index; for heterogeneous data pass \.to_homogeneous\(\)"
        ):
            sr.apsp(Data())
        with pytest.raises(sr.GraphError, match=r"shape \(2, m\) and numbers from 0 to 2"):
            sr.apsp(Data(self.ENDS, 3))
        with pytest.raises(sr.GraphError, match=r"it has shape \(6, 2\)"):
            sr.apsp(Data(self.ENDS.T, 5))


def test_what_is_no_graph_of_theirs() -> None:
    for library in ("igraph", "rustworkx", "networkit", "torch_geometric", "networkx"):
        other = type("Other", (), {"__module__": f"{library}.other"})()
        with pytest.raises(
            sr.GraphError, match=f"an? {library}.Other is no graph; pass .* igraph, rustworkx, networkit or PyTorch Geometric"
        ):
            sr.apsp(other)


def test_names_that_are_no_texts(igraph: Any, rustworkx: Any, networkit: Any) -> None:
    known = networkit.Graph(2)
    known.addEdge(0, 1)
    known.indexEdges()
    bare, payload = rustworkx.PyGraph(), rustworkx.PyGraph()
    for graph, value in ((bare, range(3)), (payload, {("km", 1): 2.5})):
        graph.add_nodes_from(list("ab"))
        graph.add_edge(0, 1, value)
    name: Any = ("km", 1)
    for graph in (igraph.Graph(2, [(0, 1)]), known, bare, Data(TestPyTorchGeometric.ENDS, 5)):
        with pytest.raises(sr.GraphError, match="no edge has the attribute or column"):
            sr.apsp(graph, weight=name)
    assert sr.apsp(payload, weight=name)[0, 1] == 2.5


def test_graphs_are_no_lists_of_edges(igraph: Any, rustworkx: Any) -> None:
    graphs: list[Any] = [
        Data(TestPyTorchGeometric.ENDS),
        pytest.importorskip("igraph").Graph(3),
        pytest.importorskip("rustworkx").PyGraph(),
    ]
    for graph in graphs:
        with pytest.raises(sr.GraphError, match="pass it as it is"):
            sr.edges(graph)
