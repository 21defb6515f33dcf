"""Rows of the closure of a sparse graph: compiled searches beside NumPy's, SciPy's, and the whole closure."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from functools import partial
from typing import Any

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csgraph

import semiring as sr
from semiring import testing
from semiring.algebra.laws import is_selective
from semiring.algorithms import search
from semiring.algorithms.csr import CSR
from semiring.algorithms.rows_of_edges import rows_of_edges
from semiring.algorithms.search import Searches, searches_for
from semiring.common.errors import NegativeCycleError, OverflowRiskError, SemiringError
from semiring.common.progress import Meter
from semiring.kernels.operations import Operations
from tests.kernels.samples import examples, name

INF = np.inf

Array = np.ndarray[Any, Any]
Values = tuple[Array, ...]

CASES = [
    (s, (d,) * s.components)
    for s in (sr.MIN_PLUS, sr.MAX_PLUS, sr.MAX_MIN, sr.MIN_MAX, sr.MAX_TIMES, sr.BOOLEAN, sr.DISTANCE_HOPS)
    for d in s.supported_dtypes
    if is_selective(s, (d,) * s.components)
]


def edges_of(values: Values, zero: tuple[Any, ...]) -> CSR:
    """The edges of a dense matrix."""
    there = np.logical_or.reduce([v != z for v, z in zip(values, zero, strict=True)])
    tails, heads = np.nonzero(there)
    return CSR.of(tails, heads, tuple(v[tails, heads] for v in values), len(values[0]), zero)


def min_plus(n: int, edges: list[tuple[int, int, Any]], dtype: Any = np.float64) -> CSR:
    kind = np.dtype(dtype)
    infinity = INF if kind.kind == "f" else np.iinfo(kind).max
    a = np.full((n, n), infinity, dtype=kind)
    for u, v, w in edges:
        a[u, v] = w
    return edges_of((a,), (infinity,))


def matrix(edges: CSR) -> Any:
    return sp.csr_array((edges.weights[0], edges.heads, edges.starts), shape=(edges.n, edges.n))


def rows(semiring: Any, edges: CSR, sources: Array, device: str = "cpu", threads: int | None = None, **how: Any) -> Values:
    """The rows, by compiled searches where there are any, or by NumPy's."""
    return rows_of_edges(semiring, edges, sources, searches=searches_for(semiring, edges.dtypes, device, threads), **how)


def floats(found: Array) -> Array:
    """Distances as SciPy has them."""
    return np.where(found == (INF if found.dtype.kind == "f" else np.iinfo(found.dtype).max), INF, found)


def outcome(find: Callable[[], Values]) -> Values | type[SemiringError]:
    try:
        return find()
    except SemiringError as error:
        return type(error)


def assert_trees(semiring: Any, edges: CSR, sources: Array, values: Values, tree: Array, *, reflexive: bool, backward: bool) -> None:
    """Every vertex before another one offers the element that is there, and leads back to the source."""
    operations = Operations(semiring, edges.dtypes)
    dense = edges.dense()
    for row, source in enumerate(sources.tolist()):
        connected = np.logical_or.reduce([v[row] != z for v, z in zip(values, edges.zero, strict=True)])
        for v in range(edges.n):
            if v == source and reflexive:
                assert tree[row, v] == -1
                continue
            assert (tree[row, v] >= 0) == connected[v]
            walk, u = [v], v
            while connected[v] and (u := int(tree[row, u])) != source:
                assert u >= 0
                assert u not in walk
                walk.append(u)
            if connected[v]:
                u = int(tree[row, v])
                before = operations.one if u == source else tuple(x[row, u] for x in values)
                weight = tuple(x[(v, u) if backward else (u, v)] for x in dense)
                offer = operations.mul(weight, before) if backward else operations.mul(before, weight)
                assert all(o == x[row, v] for o, x in zip(offer, values, strict=True))


@pytest.mark.sampled(5)
@pytest.mark.parametrize("case", CASES, ids=name)
@examples(40)
@given(data=st.data())
def test_compiled_searches_agree_with_numpys(case: tuple[Any, Any], data: st.DataObject) -> None:
    semiring, dtypes = case
    assert searches_for(semiring, dtypes, "cpu") is not None
    n, density = data.draw(st.sampled_from([1, 2, 3, 7, 30])), data.draw(st.sampled_from([0.0, 0.1, 0.5, 1.0]))
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    a = testing.random_matrix(semiring, n, dtypes, density=density, harmless=data.draw(st.booleans()), rng=rng)
    edges = edges_of(a if isinstance(a, tuple) else (a,), semiring.identities(dtypes)[0])
    sources = rng.integers(0, n, data.draw(st.integers(0, 4)))
    how: dict[str, Any] = {"reflexive": data.draw(st.booleans()), "backward": data.draw(st.booleans())}
    trees = [np.full((len(sources), n), -1, dtype=np.int32) for _ in range(2)]
    found, expected = (
        outcome(partial(rows, semiring, edges, sources, tree=tree, device=device, **how))
        for device, tree in zip(("cpu", "reference"), trees, strict=True)
    )
    if isinstance(found, type) or isinstance(expected, type):
        # Integers that a divergent cycle multiplies may leave their dtype before that cycle is noticed.
        late = {sr.DivergenceError, sr.OverflowRiskError} if dtypes[0].kind in "iu" else set()
        assert found == expected or {found, expected} == late
        return
    assert all(np.array_equal(x, y) for x, y in zip(found, expected, strict=True))
    for tree in trees:
        assert_trees(semiring, edges, sources, found, tree, **how)


SUMS: list[Any] = [
    (sr.DISTANCE_COUNT, ("float64", "float64")),
    (sr.DISTANCE_COUNT, ("float32", "float64")),
    (sr.BITSET, ("uint8",)),
    (sr.BITSET, ("int64",)),
]


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("semiring", "dtypes"), SUMS)
@examples(40)
@given(data=st.data())
def test_compiled_sums_of_walks_agree_with_numpys(semiring: Any, dtypes: Any, data: st.DataObject) -> None:
    """⊕ that selects no walk, on graphs with cycles, and acyclic ones with negative edges."""
    n, density = data.draw(st.sampled_from([1, 2, 3, 7, 30])), data.draw(st.sampled_from([0.0, 0.1, 0.5, 1.0]))
    acyclic, rng = data.draw(st.booleans()), np.random.default_rng(data.draw(st.integers(0, 99)))
    there = rng.random((n, n)) < density
    if acyclic:
        there &= np.triu(np.ones((n, n), bool), 1)
    a = rng.integers(-9 if acyclic and dtypes[0] != "uint8" else 1, 9, (n, n)).astype(dtypes[0])
    zero = semiring.identities([np.dtype(d) for d in dtypes])[0]
    values = tuple(np.where(there, np.asarray(w), z).astype(d) for w, z, d in zip((a, 1), zero, dtypes, strict=False))
    edges, sources = edges_of(values, zero), rng.integers(0, n, data.draw(st.integers(0, 4)))
    how: dict[str, Any] = {"reflexive": data.draw(st.booleans()), "backward": data.draw(st.booleans())}
    found, expected = (rows(semiring, edges, sources, device=device, **how) for device in ("cpu", "reference"))
    assert all(np.array_equal(x, y) for x, y in zip(found, expected, strict=True))


def test_counts_of_paths_in_one_pass() -> None:
    """The number of paths of an acyclic graph with negative edges, beside NetworkX's paths; each edge is seen once."""
    rng, n = np.random.default_rng(2), 12
    tails, heads = np.nonzero(np.triu(rng.random((n, n)) < 0.5, 1))
    lengths = rng.integers(-2, 2, len(tails)).astype(float)
    edges = CSR.of(tails, heads, (lengths, np.ones(len(tails))), n, (INF, 0.0))
    graph, searches = nx.DiGraph(), searches_for(sr.DISTANCE_COUNT, edges.dtypes, "cpu")
    graph.add_nodes_from(range(n))
    graph.add_weighted_edges_from(zip(tails.tolist(), heads.tolist(), lengths.tolist(), strict=True))
    assert searches is not None
    values = np.empty((1, n)), np.empty((1, n))
    complete, seen = searches.rows(
        (edges.starts, edges.heads, edges.weights), np.zeros(1, np.int64), values, None, order="components", backward=False
    )
    assert complete == 1
    assert seen == sum(edges.starts[v + 1] - edges.starts[v] for v in edges.reachable(np.zeros(1, np.int64)))
    for v in range(1, n):
        lengths_of_paths: list[float] = [nx.path_weight(graph, p, "weight") for p in nx.all_simple_paths(graph, 0, v)]
        best = min(lengths_of_paths, default=INF)
        assert (values[0][0, v], values[1][0, v]) == (best, lengths_of_paths.count(best))


@pytest.mark.parametrize("dtype", ["float64", "float32", "int32"])
@pytest.mark.parametrize("degree", [0.5, 2, 10])
def test_scipys_distances(dtype: str, degree: float) -> None:
    n = 700
    rng = np.random.default_rng(int(degree))
    there = rng.random((n, n)) < degree / n
    weights = rng.random((n, n)) if dtype[0] == "f" else rng.integers(0, 4, (n, n))
    infinity = INF if dtype[0] == "f" else np.iinfo(dtype).max
    edges = edges_of((np.where(there, weights, infinity).astype(dtype),), (infinity,))
    sources = np.array([0, 5, n - 1, 5])
    found = rows(sr.MIN_PLUS, edges, sources)[0]
    expected = csgraph.dijkstra(matrix(edges).astype(np.float64), indices=sources)
    np.testing.assert_allclose(floats(found), expected, rtol=1e-5 if dtype == "float32" else 1e-12)
    back = rows(sr.MIN_PLUS, edges, sources, backward=True)[0]
    expected = csgraph.dijkstra(matrix(edges).T.astype(np.float64), indices=sources)
    np.testing.assert_allclose(floats(back), expected, rtol=1e-5 if dtype == "float32" else 1e-12)


@pytest.mark.parametrize("seed", range(3))
def test_floats_are_the_same_bit_for_bit(seed: int) -> None:
    """Both ways take the least of the rounded sums of all walks."""
    n = 400
    rng = np.random.default_rng(seed)
    a = np.where(rng.random((n, n)) < 4 / n, 10 ** rng.uniform(-18, 2, (n, n)), INF)
    edges = edges_of((a,), (INF,))
    one, other = (rows(sr.MIN_PLUS, edges, np.arange(0, n, 50), device=device)[0] for device in ("cpu", "reference"))
    assert np.array_equal(one, other)


def test_reachability_on_a_graph_of_many_ties() -> None:
    n = 3000
    rng = np.random.default_rng(0)
    tails, heads = rng.integers(0, n, (2, 2 * n))
    graph = sp.csr_array((np.ones(2 * n), (tails, heads)), shape=(n, n))
    edges = CSR(n, graph.indptr, graph.indices.astype(np.intp), (np.ones(graph.nnz, dtype=bool),), (False,))
    (found,) = rows(sr.BOOLEAN, edges, np.arange(20))
    for source in range(20):
        reached = csgraph.breadth_first_order(graph, source, return_predecessors=False)
        assert np.array_equal(np.flatnonzero(found[source]), np.sort(reached))


def test_a_bottleneck() -> None:
    """The widest paths are those of a maximum spanning tree."""
    n = 300
    rng = np.random.default_rng(1)
    a = np.triu(np.where(rng.random((n, n)) < 8 / n, rng.permutation(n * n).reshape(n, n) + 1.0, 0), 1)
    tree = csgraph.minimum_spanning_tree(sp.csr_array(np.where(a > 0, n * n + 1 - a, 0))).toarray()
    tree = np.where(tree > 0, n * n + 1 - tree, 0)
    edges = edges_of((np.where(a > 0, a, -INF) + 0.0,), (-INF,))
    both = edges_of((np.maximum(edges.dense()[0], edges.dense()[0].T),), (-INF,))
    (found,) = rows(sr.MAX_MIN, both, np.array([3]))
    order, before = csgraph.breadth_first_order(sp.csr_array(tree), 3, directed=False)
    width = np.full(n, -INF)
    width[3] = INF
    for v in order[1:]:
        width[v] = min(width[before[v]], max(tree[v, before[v]], tree[before[v], v]))
    assert np.array_equal(found[0], width)


def test_negative_edges() -> None:
    n = 500
    rng = np.random.default_rng(2)
    height = rng.integers(0, 50, n)
    a = np.where(rng.random((n, n)) < 5 / n, rng.integers(0, 9, (n, n)) + height[:, None] - height, INF)
    edges = edges_of((a,), (INF,))
    sources = np.array([1, 2, 490])
    expected = csgraph.bellman_ford(csgraph.csgraph_from_dense(a, null_value=INF), indices=sources)
    assert np.array_equal(rows(sr.MIN_PLUS, edges, sources)[0], expected)
    whole = np.where(a == INF, 0, a).astype(np.int64)
    whole[a == INF] = np.iinfo(np.int64).max
    assert np.array_equal(floats(rows(sr.MIN_PLUS, edges_of((whole,), (np.iinfo(np.int64).max,)), sources)[0]), expected)


@pytest.mark.parametrize("dtype", ["float64", "int32", "int16"])
@pytest.mark.parametrize("patience", [0, 1, 32])
def test_cycles_that_improve(monkeypatch: pytest.MonkeyPatch, patience: int, dtype: str) -> None:
    """Reached or not, and whether or not the compiled search gives up early."""
    monkeypatch.setattr(search, "PATIENCE", patience)
    ring = [(i, (i + 1) % 30, 1 if i else -29) for i in range(30)]
    tail = [(29, 30, 2), (31, 0, 4)]
    edges = min_plus(32, [*ring, *tail], dtype)
    expected = csgraph.bellman_ford(matrix(edges).astype(float), indices=[31, 7])  # the cycle weighs 0
    assert np.array_equal(floats(rows(sr.MIN_PLUS, edges, np.array([31, 7]))[0]), expected)
    worse = min_plus(32, [*ring[1:], (0, 1, -30), *tail], dtype)
    with pytest.raises(NegativeCycleError) as caught:
        rows(sr.MIN_PLUS, worse, np.array([30, 31]))
    assert sorted(caught.value.cycle or ()) == list(range(30))
    assert rows(sr.MIN_PLUS, worse, np.array([30]))[0][0, 30] == 0
    with pytest.raises(NegativeCycleError):
        rows(sr.MIN_PLUS, worse, np.array([30]), backward=True)
    loop = min_plus(2, [(0, 1, 1), (1, 1, -1)], dtype)
    with pytest.raises(NegativeCycleError, match="1 → 1"):
        rows(sr.MIN_PLUS, loop, np.array([0]))
    assert floats(rows(sr.MIN_PLUS, loop, np.array([0]), reflexive=False, backward=True)[0]).tolist() == [[INF, INF]]


@pytest.mark.parametrize("threads", [1, 2, 3, 5])
def test_which_rows_are_complete_is_no_matter_of_time(threads: int) -> None:
    """Rows that another way finds may take other paths among those that tie: they are the same whichever thread is first."""
    ring = [(i, (i + 1) % 2000, 1 if i else -2000) for i in range(2000)]
    edges = min_plus(2100, [*ring, *((i, i + 1, 1) for i in range(2000, 2099)), (2040, 0, 1)], "float64")
    sources = np.array([2099, 2080, 2041, 2040, *range(2041, 2099)])
    found = np.empty((len(sources), edges.n))
    compiled = Searches(sr.MIN_PLUS, (np.dtype(np.float64),), threads)
    graph = (edges.starts, edges.heads, edges.weights)
    complete, _ = compiled.rows(graph, sources, (found,), None, order="rounds", backward=False)
    assert complete == 3


@given(data=st.data())
def test_narrow_integers_are_exact_or_refused(data: st.DataObject) -> None:
    dtype = np.dtype(data.draw(st.sampled_from(["int16", "uint8"])))
    limit = int(np.iinfo(dtype).max)  # type: ignore[type-var]  # an integer dtype, as just drawn
    n = data.draw(st.integers(1, 5))
    low = data.draw(st.sampled_from([0, -limit // 40])) if dtype.kind == "i" else 0
    high = data.draw(st.sampled_from([3, limit // 6, limit // 2, limit - 1]))
    entries = data.draw(st.lists(st.just(limit) | st.integers(low, high), min_size=n * n, max_size=n * n))
    a = np.array(entries, dtype=dtype).reshape(n, n)
    exact = np.array([[INF if w == limit else w for w in row] for row in a.tolist()], dtype=object)
    reflexive = data.draw(st.booleans())
    found = outcome(lambda: rows(sr.MIN_PLUS, edges_of((a,), (limit,)), np.arange(n), reflexive=reflexive))
    expected = outcome(lambda: rows(sr.MIN_PLUS, edges_of((exact,), (INF,)), np.arange(n), reflexive=reflexive))
    if found is OverflowRiskError:
        return
    if isinstance(found, type) or isinstance(expected, type):
        assert found == expected
        return
    assert [[INF if w == limit else w for w in row] for row in found[0].tolist()] == expected[0].tolist()


@pytest.mark.parametrize("reflexive", [True, False])
def test_hardly_any_graph(reflexive: bool) -> None:
    none = min_plus(0, [])
    assert rows(sr.MIN_PLUS, none, np.array([], dtype=int), reflexive=reflexive)[0].shape == (0, 0)
    one = min_plus(1, [])
    assert rows(sr.MIN_PLUS, one, np.array([0, 0]), reflexive=reflexive)[0].tolist() == [[0 if reflexive else INF]] * 2
    loop = min_plus(1, [(0, 0, 3.0)])
    tree = np.full((1, 1), -1, dtype=np.int32)
    assert rows(sr.MIN_PLUS, loop, np.array([0]), reflexive=reflexive, tree=tree)[0].tolist() == [[0 if reflexive else 3]]
    assert tree.tolist() == [[-1 if reflexive else 0]]
    apart = min_plus(3, [(1, 2, 0.0)])
    assert rows(sr.MIN_PLUS, apart, np.array([], dtype=int), reflexive=reflexive)[0].shape == (0, 3)
    assert rows(sr.MIN_PLUS, apart, np.array([0]), reflexive=reflexive)[0].tolist() == [[0 if reflexive else INF, INF, INF]]


def test_the_graph_is_only_read() -> None:
    edges = min_plus(4, [(0, 1, 1.0), (1, 2, 1.0), (2, 0, 1.0), (0, 2, 5.0)])
    wide = np.repeat(edges.weights[0], 2)
    wide.flags.writeable = False
    for array in (edges.starts, edges.heads):
        array.flags.writeable = False
    strided = CSR(4, edges.starts, edges.heads, (wide[::2],), edges.zero)
    for device in ("cpu", "reference"):
        assert rows(sr.MIN_PLUS, strided, np.array([0, 3]), device=device)[0].tolist() == [[0, 1, 2, INF], [INF, INF, INF, 0]]


@pytest.mark.parametrize("order", ["best", "rounds", "components"])
@pytest.mark.parametrize("shape", ["path", "star", "complete", "random"])
def test_compiled_searches_finish(shape: str, order: Any) -> None:
    """They leave nothing to NumPy where no edge is divergent, however many entries their queues get."""
    n = 60
    a = np.full((n, n), INF)
    upper = np.triu_indices(n, 1)
    if shape == "path":
        a[np.arange(n - 1), np.arange(1, n)] = 1
    elif shape == "star":
        a[0], a[:, 0] = 1, 2
    elif shape == "complete":  # every edge improves what an earlier one found, if there are rounds enough
        a[upper] = (upper[1] - upper[0]) ** 2.0
    else:
        a = np.where(np.random.default_rng(3).random((n, n)) < 0.2, np.random.default_rng(4).random((n, n)), INF)
    edges = edges_of((a,), (INF,))
    values = np.empty((n, n))
    graph = edges.starts, edges.heads, edges.weights
    assert Searches(sr.MIN_PLUS, edges.dtypes).rows(graph, np.arange(n), (values,), None, order=order, backward=False)[0] == n
    np.testing.assert_allclose(values, csgraph.dijkstra(matrix(edges)))


@pytest.mark.sampled(3)
@pytest.mark.parametrize("reflexive", [True, False])
@pytest.mark.parametrize("weight", [0.0, 0.1, 3.0])
def test_equal_edges(weight: float, reflexive: bool) -> None:
    """Breadth-first search gives what NumPy's rounds do, and paths of as few edges."""
    n = 80
    rng = np.random.default_rng(6)
    edges = edges_of((np.where(rng.random((n, n)) < 0.03, weight, INF),), (INF,))
    trees = [np.full((n, n), -1, dtype=np.int32) for _ in range(2)]
    found, expected = (
        rows(sr.MIN_PLUS, edges, np.arange(n), tree=tree, device=device, reflexive=reflexive)[0]
        for device, tree in zip(("cpu", "reference"), trees, strict=True)
    )
    assert np.array_equal(found, expected)
    assert_trees(sr.MIN_PLUS, edges, np.arange(n), (found,), trees[0], reflexive=reflexive, backward=False)


@pytest.mark.parametrize(
    ("weights", "expected"), [((2.0, 2.0), "rounds"), ((2.0, 3.0), "best"), ((-1.0, 2.0), "rounds"), ((-1.0, -1.0), "rounds")]
)
def test_what_is_searched_best_first(weights: tuple[float, float], expected: str) -> None:
    """Edges that differ, of which none is negative: others need no heap, or must not be final at once."""
    asked = []

    class Spy(Searches):
        def rows(
            self,
            graph: tuple[Array, Array, Values],
            sources: Array,
            values: Values,
            tree: Array | None,
            *,
            order: Any,
            backward: bool,
            reflexive: bool = True,
            meter: Meter | None = None,
            patience: int | None = None,
            limit: tuple[Any, ...] | None = None,
        ) -> tuple[int, int]:
            asked.append(order)
            how = {"order": order, "backward": backward, "reflexive": reflexive}
            return super().rows(graph, sources, values, tree, **how, meter=meter, patience=patience, limit=limit)

    edges = min_plus(3, [(0, 1, weights[0]), (1, 2, weights[1])])
    found = rows_of_edges(sr.MIN_PLUS, edges, np.array([0]), searches=Spy(sr.MIN_PLUS, edges.dtypes))
    assert found[0].tolist() == [[0, weights[0], sum(weights)]]
    assert asked == [expected]


def test_threads() -> None:
    n = 200
    rng = np.random.default_rng(5)
    edges = edges_of((np.where(rng.random((n, n)) < 0.05, rng.random((n, n)), INF),), (INF,))
    trees = [np.full((n, n), -1, dtype=np.int32) for _ in range(2)]
    one, three = (rows(sr.MIN_PLUS, edges, np.arange(n), tree=t, threads=k)[0] for t, k in zip(trees, (1, 3), strict=True))
    assert np.array_equal(one, three)
    assert np.array_equal(trees[0], trees[1])


@pytest.mark.parametrize("order", ["best", "rounds", "components"])
@pytest.mark.parametrize("backward", [True, False])
def test_the_order_of_factors(order: Any, backward: bool) -> None:
    """With a ⊗ b = 2a + b a path shows on which side each of its edges was multiplied."""
    lopsided = sr.Semiring("lopsided", min, lambda a, b: 2 * a + b, zero=INF, one=0)
    edges = min_plus(4, [(0, 1, 1.0), (1, 2, 10.0), (2, 3, 100.0)])
    values = np.empty((1, 4))
    found, seen = Searches(lopsided, edges.dtypes).rows(
        (edges.starts, edges.heads, edges.weights), np.array([0]), (values,), None, order=order, backward=backward
    )
    assert (found, seen) == (1, 3)
    steps = itertools.accumulate([1.0, 10, 100], lambda w, e: 2 * e + w if backward else 2 * w + e, initial=0.0)
    assert values[0].tolist() == list(steps)


@pytest.mark.parametrize("order", ["best", "rounds", "components"])
def test_an_element_that_seems_better_than_itself(order: Any) -> None:
    """As a NaN does, or what a wrong ⊕ makes of elements that no law was tried on: a search ends all the same."""
    wrong = sr.Semiring("wrong", lambda a, b: 78 if a == 77 else min(a, b), lambda a, b: a + b, zero=INF, one=0)
    n = 12
    edges = min_plus(n, [(0, v, 77.0) for v in range(1, n)])
    values = np.empty((1, n))
    graph = edges.starts, edges.heads, edges.weights
    Searches(wrong, edges.dtypes).rows(graph, np.array([0]), (values,), None, order=order, backward=False)
    assert values[0].tolist() == [0, *(n - 1) * [77]]


def test_what_cannot_be_searched_by_compiled_code() -> None:
    double = (np.dtype(np.float64),)
    assert searches_for(sr.MIN_PLUS, double, "reference") is None
    assert searches_for(sr.MIN_PLUS, (np.dtype(object),), "cpu") is None
    assert searches_for(sr.LOG, double, "cpu") is None
    whole = sr.Semiring("whole", min, lambda a, b: (a + b) // 1, zero=INF, one=0)
    assert searches_for(whole, double, "cpu") is None
    assert searches_for(whole, (np.dtype(np.int64),), "cpu") is not None


@pytest.mark.sampled(1)
@pytest.mark.parametrize("compiled", [True, False], ids=["compiled", "NumPy"])
def test_rounding_bends_no_tree_into_a_circle(compiled: bool) -> None:
    """Where cycles weigh nothing but for rounding, which may be below 0."""
    rng = np.random.default_rng(1)
    for _ in range(30):
        n = int(rng.integers(10, 40))
        places = np.unique(rng.integers(0, n * n, 3 * n))
        tails, heads = places // n, places % n
        tails, heads = tails[tails != heads], heads[tails != heads]
        level = rng.integers(0, 5, n)
        exact = rng.integers(0, 3, len(tails))  # tenths; whole numbers more along the levels
        edges = CSR.of(tails, heads, (exact * 0.1 + level[tails] - level[heads],), n, (np.inf,))
        sources, tree = np.arange(n), np.full((n, n), -1, np.int32)
        searches = searches_for(sr.MIN_PLUS, edges.dtypes, "cpu") if compiled else None
        (rows,) = rows_of_edges(sr.MIN_PLUS, edges, sources, tree=tree, searches=searches)
        tenths = {(int(u), int(v)): int(w) for u, v, w in zip(tails, heads, exact, strict=True)}
        for source in range(n):
            for v in range(n):
                length, at, steps = 0, v, 0
                while tree[source, at] >= 0 and steps <= n:
                    length, at, steps = length + tenths[int(tree[source, at]), at], int(tree[source, at]), steps + 1
                assert at == (source if np.isfinite(rows[source, v]) else v)
                if at == source:
                    np.testing.assert_allclose(rows[source, v], 0.1 * length + level[source] - level[v], atol=1e-12)
