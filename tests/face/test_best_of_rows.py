"""`k=` as users pass it: beside whole rows, SciPy, and NetworkX, over semirings, strategies, kinds of graphs, and errors."""

from __future__ import annotations

import heapq
from fractions import Fraction
from typing import Any

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csgraph

import semiring as sr
from tests.face.test_within import matrices

INF = np.inf
pytestmark = pytest.mark.filterwarnings("ignore::semiring.NonEdgeWarning")


def best(rows: Any, k: int, zero: Any, *, largest: bool = False) -> tuple[Any, Any]:
    """The k best elements of rows other than zero, by a stable sort, and their columns."""
    values, indices = np.full((len(rows), k), zero, rows.dtype), np.full((len(rows), k), -1)
    for i, row in enumerate(rows):
        order = sorted(np.flatnonzero(row != zero), key=lambda j: -row[j] if largest else row[j])[:k]
        values[i, : len(order)], indices[i, : len(order)] = row[order], order
    return values, indices


def sparse(a: Any, nothing: Any = INF) -> Any:
    tails, heads = np.nonzero(a != nothing)
    return sp.csr_array((a[tails, heads], (tails, heads)), shape=a.shape)


def same(found: Any, expected: tuple[Any, Any]) -> None:
    assert isinstance(found, sr.Neighbours)
    assert found.indices.dtype == np.int64
    np.testing.assert_array_equal(found.values, expected[0])
    np.testing.assert_array_equal(found.indices, expected[1])


@given(
    a=matrices(),
    k=st.integers(1, 12),
    limit=st.sampled_from([None, None, 0, 3]),
    kind=st.sampled_from(["dense", "sparse", "int32", "reference", "object", "negative"]),
    data=st.data(),
)
def test_the_best_of_whole_rows(a: Any, k: int, limit: Any, kind: str, data: Any) -> None:
    """Ties, edges of length 0, missing paths, sources and targets in any order and repeatedly."""
    n, options, graph, zero = len(a), dict[str, Any](), a, INF
    if kind == "int32":
        zero = np.iinfo(np.int32).max
        options["dtype"] = "int32"
        a = np.where(np.isinf(a), zero, a).astype(np.int32)
        graph = sparse(a, zero)
    if kind == "reference":
        options["device"] = "reference"
    if kind == "object":
        graph = a.astype(object)
    if kind == "negative":
        height = np.arange(n) % 4
        a = np.where(np.eye(n, dtype=bool), abs(a), a + height[None] - height[:, None])
    if kind in ("sparse", "negative"):
        graph = sparse(a)
    some = st.none() | st.lists(st.integers(0, n - 1), max_size=5) if n else st.none()
    sources, targets = data.draw(some), data.draw(some)
    whole = np.atleast_2d(sr.apsp(graph, sources=sources, targets=targets, **options)).astype(a.dtype)
    if targets is not None:  # a target that is named twice counts once
        whole[:, [j for j, v in enumerate(targets) if v in targets[:j]]] = zero
    if limit is not None:
        whole[whole > limit] = zero
    found = sr.apsp(graph, sources=sources, targets=targets, k=k, limit=limit, **options)
    same(found, best(whole, k, zero))


@pytest.mark.parametrize("threads", [1, 2])
def test_scipys_rows(threads: int) -> None:
    n, rng = 1500, np.random.default_rng(0)
    tails, heads = rng.integers(0, n, (2, 3 * n))
    graph = sp.coo_array((rng.random(3 * n), (tails, heads)), shape=(n, n)).tocsr()
    rows = csgraph.dijkstra(graph)
    same(sr.apsp(graph, k=7, threads=threads), best(rows, 7, INF))
    same(sr.apsp(graph, sources=[5, 2, 5], k=7, threads=threads), best(rows[[5, 2, 5]], 7, INF))
    one = sr.apsp(graph, sources=8, k=3)
    assert (one.values.shape, one.indices.shape) == ((3,), (3,))
    same(sr.Neighbours(one.values[None], one.indices[None]), best(rows[[8]], 3, INF))


def test_ties_at_the_last_place() -> None:
    """The lowest numbers win, also behind edges of length 0, and the source counts."""
    star = sr.edges([(9, v, 1.0) for v in (7, 3, 5, 1)] + [(7, 0, 0.0), (0, 2, 0.0)], nodes=range(10))
    for graph in (star, sr.apsp(star, sources=range(10))):
        found = sr.apsp(graph, sources=9, k=4, nonedge=None if graph is star else INF)
        assert found.indices.tolist() == [9, 0, 1, 2]
        assert found.values.tolist() == [0, 1, 1, 1]
    assert sr.closure(star, "min-plus", sources=9, k=2, reflexive=False).indices.tolist() == [0, 1]
    ring = sp.csr_array(np.roll(np.eye(5), 1, axis=1))
    assert sr.closure(ring, "min-plus", k=9, reflexive=False).indices[3].tolist() == [4, 0, 1, 2, 3, -1, -1, -1, -1]


def test_networkx() -> None:
    """Labels name sources and targets, and indices are places among the nodes, or among the targets."""
    graph = nx.relabel_nodes(nx.random_geometric_graph(80, 0.25, seed=2), {v: f"v{v}" for v in range(80)})
    for u, v in graph.edges:
        graph[u][v]["weight"] = 1 + int(u[1:]) * int(v[1:]) % 3 / 4
    nodes = list(graph)
    found = sr.apsp(graph, sources=["v3", "v9"], k=6)
    for row, source in enumerate(["v3", "v9"]):
        lengths = nx.single_source_dijkstra_path_length(graph, source)
        expected = heapq.nsmallest(6, ((x, nodes.index(v)) for v, x in lengths.items()))
        assert list(zip(found.values[row], found.indices[row], strict=True)) == expected
    shops = ["v40", "v7", "v23", "v61"]
    near = sr.apsp(graph, sources=nodes, targets=shops, k=2)
    lengths = dict(nx.all_pairs_dijkstra_path_length(graph))
    for row, source in enumerate(nodes):
        expected = heapq.nsmallest(2, ((lengths[source].get(shop, INF), j) for j, shop in enumerate(shops)))
        assert list(zip(near.values[row], near.indices[row], strict=True)) == expected


@pytest.mark.parametrize(
    ("semiring", "weights", "dtype"),
    [
        (sr.MAX_MIN, [1, 2, 3, 5], float),
        (sr.MIN_MAX, [1, 2, 3], np.int16),
        (sr.MAX_TIMES, [0.25, 0.5, 1], float),
        (sr.MAX_PLUS, [-2, 0, -1], float),
    ],
)
@pytest.mark.parametrize("reflexive", [True, False])
def test_other_semirings(semiring: sr.Semiring, weights: Any, dtype: Any, reflexive: bool) -> None:
    rng, ((zero,), _) = np.random.default_rng(1), semiring.identities(semiring.dtypes(dtype))
    a = np.where(rng.random((12, 12)) < 0.2, rng.choice(weights, (12, 12)), zero).astype(dtype)
    for graph in (a, sparse(a, zero)):
        whole = sr.closure(graph, semiring, reflexive=reflexive, dtype=dtype)
        expected = best(whole, 4, zero, largest=semiring.name.startswith("max"))
        same(sr.closure(graph, semiring, reflexive=reflexive, dtype=dtype, k=4), expected)
        same(sr.closure(graph, semiring, reflexive=reflexive, dtype=dtype, k=4, sources=[7, 1]), tuple(v[[7, 1]] for v in expected))


def test_structured_elements_and_truth_values() -> None:
    ways = sr.edges([("a", "b", 1.0), ("a", "c", 2.0), ("b", "c", 1.0), ("c", "d", 1.0)])
    matrix = np.array([[INF, 1, 2, INF], [INF, INF, 1, INF], [INF, INF, INF, 1], [INF] * 4])
    none = sr.DISTANCE_HOPS.identities((np.float64, np.int64))[0][1]
    for graph in list[Any]([ways, (matrix, np.where(matrix < INF, 1, none))]):
        found = sr.closure(graph, sr.DISTANCE_HOPS, k=3)
        distances, hops = found.values
        assert distances.tolist() == [[0, 1, 2], [0, 1, 2], [0, 1, INF], [0, INF, INF]]
        assert found.indices.tolist() == [[0, 1, 2], [1, 2, 3], [2, 3, -1], [3, -1, -1]]
        assert hops[:, :2].tolist() == [[0, 1], [0, 1], [0, 1], [0, sr.DISTANCE_HOPS.identities((np.float64, hops.dtype))[0][1]]]
    triangle = np.triu(np.ones((4, 4), bool), 1)
    for found in (sr.transitive_closure(triangle, k=2), sr.transitive_closure(sp.csr_array(triangle), k=2)):
        assert found.values.tolist() == [[True, True], [True, True], [True, False], [False, False]]
        assert found.indices.tolist() == [[1, 2], [2, 3], [3, -1], [-1, -1]]
    exact = np.array([[0, Fraction(1, 3), Fraction(1, 7)]] * 3, dtype=object)
    assert sr.apsp(exact, k=2).values[0].tolist() == [0, Fraction(1, 7)]


def test_stacks_lists_and_libraries() -> None:
    rng = np.random.default_rng(3)
    stack = rng.integers(1, 9, (2, 3, 6, 6)).astype(float)
    expected = [best(sr.apsp(a), 3, INF) for a in stack.reshape(6, 6, 6)]
    found = sr.apsp(stack, k=3)
    assert found.values.shape == (2, 3, 6, 3)
    for i, one in enumerate(expected):
        same(sr.Neighbours(*(v.reshape(6, 6, 3)[i] for v in found)), one)
    some = sr.apsp(stack, sources=[4, 1], targets=[0, 5, 2], k=2)
    same(sr.Neighbours(*(v[1, 2] for v in some)), best(sr.apsp(stack[1, 2], sources=[4, 1], targets=[0, 5, 2]), 2, INF))
    small = stack[0, 0, :4, :4]
    for listed in ([*stack[0], small], [sparse(a) for a in (*stack[0], small)]):
        for one, other in zip(sr.apsp(listed, k=3), listed, strict=True):
            same(one, best(sr.apsp(other), 3, INF))
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(stack[0, 0], index=list("uvwxyz"), columns=list("uvwxyz"))
    same(sr.apsp(frame, sources=["w", "u"], k=3), tuple(v[[2, 0]] for v in expected[0]))
    torch = pytest.importorskip("torch")
    tensors = sr.apsp(torch.from_numpy(stack[0, 0].copy()), k=3)
    assert isinstance(tensors.values, torch.Tensor)
    assert isinstance(tensors.indices, torch.Tensor)
    same(sr.Neighbours(*(v.numpy() for v in tensors)), expected[0])


def test_turn_costs() -> None:
    ways = [(0, 1, 1.0), (1, 2, 1.0), (1, 3, 1.0), (3, 2, 1.0), (2, 0, 1.0)]
    turns = sr.edges(ways).with_turns({((0, 1), (1, 2)): 5.0})
    same(sr.apsp(turns, k=3), best(sr.apsp(turns), 3, INF))
    same(sr.apsp(turns, sources=[0], targets=[3, 2], k=1), best(sr.apsp(turns, sources=[0], targets=[3, 2]), 1, INF))


def test_memory_in_proportion_to_the_answer() -> None:
    """All vertices of a graph whose matrix would take 80 GB; also one with a negative edge, by blocks of rows."""
    n = 100_000
    ring = sp.csr_array((np.ones(n), (np.arange(n), (np.arange(n) + 1) % n)), shape=(n, n))
    found = sr.apsp(ring, k=3)
    assert found.indices[-1].tolist() == [n - 1, 0, 1]
    assert (found.values == [0, 1, 2]).all()
    line = sp.csr_array((np.array([-1.0, *np.ones(1998)]), (np.arange(1999), np.arange(1, 2000))), shape=(2000, 2000))
    found = sr.apsp(line, k=2)
    assert found.indices[[0, 1, 1999]].tolist() == [[1, 0], [1, 2], [1999, -1]]


@pytest.mark.parametrize("strategy", ["spanning tree", "elimination"])
def test_rows_that_are_not_searched(strategy: str) -> None:
    """A symmetric graph of widths by blocks of rows, and a grid with negative edges."""
    n, side, rng = 1600, 40, np.random.default_rng(4)
    number = np.arange(n).reshape(side, side)
    first, second = np.r_[number[:, 1:].ravel(), number[1:].ravel()], np.r_[number[:, :-1].ravel(), number[:-1].ravel()]
    tails, heads, weights = np.r_[first, second], np.r_[second, first], np.tile(rng.integers(1, 99, len(first)).astype(float), 2)
    height = rng.integers(0, 50, n)
    semiring, zero = sr.MAX_MIN, -INF
    if strategy == "elimination":
        pytest.importorskip("pymetis")
        semiring, zero, weights = sr.MIN_PLUS, INF, weights + height[tails] - height[heads]
    graph = sp.csr_array((weights, (tails, heads)), shape=(n, n))
    how: Any = {"k": 3, "device": "cpu", "threads": 1}
    assert sr.explain(graph, semiring, **how).strategy == strategy
    same(sr.closure(graph, semiring, **how), best(sr.closure(graph, semiring), 3, zero, largest=semiring is sr.MAX_MIN))


def test_overflow_is_refused() -> None:
    """A path that no int16 can hold is no missing vertex."""
    line = sp.csr_array((np.full(3, 9000, np.int16), ([0, 1, 2], [1, 2, 3])), shape=(4, 4))
    with pytest.raises(sr.OverflowRiskError):
        sr.apsp(line, dtype="int16", k=4)
    assert sr.apsp(line, dtype="int32", k=4).values[0].tolist() == [0, 9000, 18000, 27000]


def test_progress_and_plans() -> None:
    graph = sp.csr_array(np.roll(np.eye(500), 1, axis=1))
    seen = list[float]()
    sr.apsp(graph, k=2, progress=lambda now: seen.append(now.done / now.total))
    assert seen[-1] == 1
    assert sr.explain(graph, sources=range(40), k=2).strategy == "search"


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"k": 0}, sr.SemiringError, "k is 0; it must be a whole number from 1"),
        ({"k": True}, sr.SemiringError, "k is True"),
        ({"k": 1.5}, sr.SemiringError, "k is 1.5"),
        ({"k": np.ones(2)}, sr.SemiringError, "k"),
        ({"k": 1, "paths": True}, sr.SemiringError, "for paths leave out k"),
        ({"k": 1, "checkpoint": "folder"}, sr.SemiringError, "leave out comm and checkpoint"),
        ({"k": 10**15}, sr.TooLargeError, "smaller k"),
    ],
)
def test_refusals(options: Any, error: Any, message: str) -> None:
    for graph in (np.array([[0.0, 1.0], [1.0, 0.0]]), sr.edges([(0, 1), (1, 0)])):
        with pytest.raises(error, match=message):
            sr.apsp(graph, **options)


def test_what_has_no_better_element() -> None:
    for a in (np.array([[0, 0.25], [0.25, 0]]), sp.csr_array(np.array([[0, 0.25], [0.25, 0]]))):
        with pytest.raises(sr.LawError, match="k= needs a selective"):
            sr.closure(a, "plus-times", k=1)


@pytest.mark.gpu
def test_a_matrix_on_a_gpu() -> None:
    import cupy

    a = np.random.default_rng(0).integers(1, 9, (40, 40)).astype(np.float32)
    found = sr.apsp(cupy.asarray(a), k=5)
    assert isinstance(found.indices, cupy.ndarray)
    same(sr.Neighbours(*(v.get() for v in found)), best(sr.apsp(a), 5, INF))
