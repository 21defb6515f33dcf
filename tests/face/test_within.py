"""`limit=` as users pass it: beside SciPy, NetworkX and the whole closure, over semirings, kinds of graphs, paths, and errors."""

from __future__ import annotations

import itertools
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

INF = np.inf
pytestmark = pytest.mark.filterwarnings("ignore::semiring.NonEdgeWarning")


def dense(found: Any, zero: Any) -> Any:
    """The elements of a sparse array, zero where nothing is stored."""
    found = found.tocoo()
    out = np.full(found.shape, zero, found.dtype)
    out[found.coords] = found.data
    return out


@st.composite
def matrices(draw: st.DrawFn) -> Any:
    n = draw(st.integers(0, 9))
    rng = np.random.default_rng(draw(st.integers(0, 99)))
    return np.where(rng.random((n, n)) < draw(st.sampled_from([0.1, 0.4, 1.0])), rng.integers(0, 6, (n, n)), INF)


@given(
    a=matrices(),
    limit=st.sampled_from([-1, 0, 1, 2.5, 4, INF]),
    kind=st.sampled_from(["dense", "sparse", "dtype", "reference"]),
    data=st.data(),
)
def test_what_is_kept(a: Any, limit: float, kind: str, data: Any) -> None:
    """The elements of the whole closure that are no worse than the limit, also in rows and columns that are named."""
    n, options = len(a), dict[str, Any]()
    if kind == "dtype":
        options["dtype"] = "int32"
        a = np.where(np.isinf(a), np.iinfo(np.int32).max, a).astype(np.int32)
    if kind == "reference":
        options["device"] = "reference"
    zero = np.iinfo(np.int32).max if kind == "dtype" else INF
    graph: Any = a
    if kind == "sparse":
        tails, heads = np.nonzero(np.isfinite(a))
        graph = sp.csr_array((a[tails, heads], (tails, heads)), shape=a.shape)
    some = st.none() | st.lists(st.integers(0, n - 1), max_size=4) if n else st.none()
    named: dict[str, Any] = {"sources": data.draw(some), "targets": data.draw(some)}
    before = a.copy()
    whole = np.atleast_2d(sr.apsp(graph, **named, **options))
    found = sr.apsp(graph, limit=limit, **named, **options)
    assert found.shape == whole.shape
    assert found.dtype == whole.dtype
    assert np.array_equal(dense(found, zero), np.where(whole <= limit, whole, zero))
    assert found.nnz == ((whole <= limit) & (whole != zero)).sum()
    assert found.has_sorted_indices
    assert np.array_equal(a, before)


@pytest.mark.parametrize("sparse", [True, False])
@given(a=matrices(), limit=st.sampled_from([0, 2, 5, INF]), data=st.data())
def test_paths(sparse: bool, a: Any, limit: float, data: Any) -> None:
    n, graph = len(a), a
    if sparse:
        tails, heads = np.nonzero(np.isfinite(a))
        graph = sp.csr_array((a[tails, heads], (tails, heads)), shape=a.shape)
    some = st.none() | st.lists(st.integers(0, n - 1), min_size=1, max_size=3, unique=True) if n else st.none()
    named: dict[str, Any] = {"sources": data.draw(some), "targets": data.draw(some)}
    whole = sr.apsp(graph, **named)
    paths = sr.apsp(graph, limit=limit, paths=True, **named)
    assert np.array_equal(dense(paths.values, INF), np.where(whole <= limit, whole, INF))
    rows, columns = (range(n) if v is None else v for v in named.values())
    count = 0
    for i, u in enumerate(rows):
        for j, v in enumerate(columns):
            path = paths.path(u, v)
            assert paths.distance(u, v) == (whole[i, j] if whole[i, j] <= limit else INF)
            assert bool(path) == (whole[i, j] <= limit and whole[i, j] < INF)
            if path:
                assert (path[0], path[-1], sum(a[x, y] for x, y in itertools.pairwise(path))) == (u, v, whole[i, j])
            count += bool(path) and u != v
    if count:
        assert f"{count} pair" in repr(paths)


def test_scipy_and_networkx() -> None:
    graph = nx.random_geometric_graph(60, 0.25, seed=1)
    for u, v in graph.edges:
        graph[u][v]["weight"] = 1 + (u * v) % 3
    found = sr.apsp(graph, limit=3)
    expected = dict(nx.all_pairs_dijkstra_path_length(graph, cutoff=3))
    assert {(i, j): x for i, j, x in zip(*sp.find(found + sp.csr_array((60, 60))), strict=True)} == {
        (i, j): x for i, row in expected.items() for j, x in row.items() if x
    }
    matrix = nx.to_scipy_sparse_array(graph).astype(float)
    assert np.array_equal(dense(sr.apsp(matrix, limit=3, sources=[5, 2]), INF), csgraph.dijkstra(matrix, indices=[5, 2], limit=3))


def test_other_semirings() -> None:
    widths = sr.edges([("a", "b", 5.0), ("b", "c", 2.0), ("c", "a", 3.0)])
    assert dense(sr.closure(widths, "max-min", limit=3, reflexive=False), 0).tolist() == [[0, 5, 0], [0, 0, 0], [3, 3, 0]]
    hops, counts = sr.closure(widths, sr.DISTANCE_HOPS, limit=(5.0, 1))
    assert dense(hops, INF).tolist() == [[0, 5, INF], [INF, 0, 2], [3, INF, 0]]
    assert dense(counts, 9).tolist() == [[0, 1, 9], [9, 0, 1], [1, 9, 0]]
    longest = sr.closure(sr.edges([(0, 1, 4), (1, 2, -3), (0, 2, -9)]), "max-plus", limit=0)
    assert dense(longest, -INF).tolist() == [[0, 4, 1], [-INF, 0, -INF], [-INF, -INF, 0]]
    exact = np.array([[0, Fraction(1, 3)], [Fraction(1, 7), 0]], dtype=object)
    assert sr.apsp(exact, limit=Fraction(1, 7)).nnz == 3
    reached = sr.transitive_closure(np.triu(np.ones((3, 3), bool), 1), limit=True)
    assert (reached.dtype, reached.nnz) == (np.dtype(bool), 3)


def test_memory_in_proportion_to_the_answer() -> None:
    """All pairs of a graph whose matrix would take 20 GB."""
    n = 50_000
    ring = sp.coo_array((np.ones(n), (np.arange(n), (np.arange(n) + 1) % n)), shape=(n, n)).tocsr()
    found = sr.apsp(ring, limit=3)
    assert found.nnz == 4 * n
    assert sr.apsp(ring, limit=2, paths=True).path(n - 1, 1) == [n - 1, 0, 1]


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"limit": np.nan}, sr.SemiringError, "limit is nan; it must be an element of min-plus, and not NaN"),
        ({"limit": "5"}, sr.SemiringError, "limit is '5'"),
        ({"limit": (1, 2)}, sr.SemiringError, r"limit is \(1, 2\)"),
        ({"limit": np.ones(2)}, sr.SemiringError, "limit"),
        ({"limit": 1, "checkpoint": "folder"}, sr.SemiringError, "leave out comm and checkpoint"),
    ],
)
def test_refusals(options: Any, error: Any, message: str) -> None:
    with pytest.raises(error, match=message):
        sr.apsp(np.array([[0.0, 1.0], [1.0, 0.0]]), **options)


def test_what_has_no_better_element() -> None:
    with pytest.raises(sr.LawError, match="selective"):
        sr.closure(np.array([[0, 0.25], [0.25, 0]]), "plus-times", limit=1)
    with pytest.raises(sr.GraphError, match="one graph"):
        sr.apsp(np.ones((2, 3, 3)), limit=1)


@pytest.mark.gpu
def test_a_matrix_on_a_gpu() -> None:
    """The answer is a sparse matrix of CuPy, which holds floats only."""
    import cupy

    a = np.random.default_rng(0).integers(1, 9, (40, 40)).astype(np.float32)
    found = sr.apsp(cupy.asarray(a), limit=3)
    whole = sr.apsp(a)
    assert type(found).__module__.startswith("cupyx")
    assert np.array_equal(dense(found.get(), INF), np.where(whole <= 3, whole, INF))
    path = sr.apsp(cupy.asarray(a), limit=3, paths=True).path(0, 5)
    assert bool(path) == (whole[0, 5] <= 3)
    assert not path or sum(a[u, v] for u, v in itertools.pairwise(path)) == whole[0, 5]
    with pytest.raises(sr.SemiringError, match="CuPy's sparse matrices hold floats"):
        sr.apsp(cupy.asarray(a.astype(np.int32)), limit=3)
