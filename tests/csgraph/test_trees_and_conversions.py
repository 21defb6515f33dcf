"""Predecessors into distances and trees, dense graphs into sparse ones."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csgraph as scipys

from semiring import csgraph

pytestmark = pytest.mark.filterwarnings("ignore:the matrix subclass:PendingDeprecationWarning")

INF = np.inf
CHAIN = np.array([[0.0, 1, 5], [0, 0, 2], [0, 0, 0]])
BEFORE = np.array([[-9999, 0, 1], [-9999, -9999, 1], [-9999, -9999, -9999]], dtype=np.int32)


@settings(max_examples=32, deadline=None)
@given(st.integers(0, 9), st.integers(0, 10**6), st.booleans(), st.sampled_from(["dense", "csr", "csc"]))
def test_what_predecessors_say_is_what_was_found(n, seed, directed, kind):
    rng = np.random.default_rng(seed)
    graph = np.where(rng.random((n, n)) < 0.4, rng.integers(1, 9, (n, n)), 0).astype(float)
    given = graph if kind == "dense" else sp.csr_array(graph).asformat(kind)
    distances, before = csgraph.shortest_path(given, directed=directed, return_predecessors=True)
    found = csgraph.construct_dist_matrix(given, before, directed)
    np.testing.assert_array_equal(found, distances)
    np.testing.assert_array_equal(found, scipys.construct_dist_matrix(given, before, directed))
    np.testing.assert_array_equal(
        csgraph.construct_dist_matrix(given, before, directed, null_value=-1), scipys.construct_dist_matrix(given, before, directed, -1)
    )
    for row in before:
        ours, theirs = csgraph.reconstruct_path(given, row, directed), scipys.reconstruct_path(given, row, directed)
        assert type(ours) is type(theirs)
        assert ours.dtype == theirs.dtype
        np.testing.assert_array_equal(ours.toarray(), theirs.toarray())


def test_zeros_and_parallel_edges_keep_their_weight():
    zero = sp.csr_array((np.array([0.0, 2]), [1, 2], [0, 1, 2, 2]), shape=(3, 3))
    for directed in (True, False):  # SciPy's undirected one makes the zero ∞
        tree = csgraph.reconstruct_path(zero, BEFORE[0], directed)
        np.testing.assert_array_equal(tree.data, [0, 2])
        np.testing.assert_array_equal(csgraph.construct_dist_matrix(zero, BEFORE, directed)[0], [0, 0, 2])
    parallel = sp.csr_array((np.array([5.0, 1]), [1, 1], [0, 2, 2]), shape=(2, 2))
    np.testing.assert_array_equal(csgraph.reconstruct_path(parallel, [-9999, 0]).data, [1])  # SciPy's adds them


def test_the_kind_of_sparse_graph_is_kept():
    assert type(csgraph.reconstruct_path(sp.csr_matrix(CHAIN), BEFORE[0])) is sp.csr_matrix
    assert type(csgraph.reconstruct_path(sp.coo_array(CHAIN), BEFORE[0])) is sp.csr_array


def test_pydatas_kind_is_kept():
    sparse = pytest.importorskip("sparse")
    tree = csgraph.reconstruct_path(sparse.COO(CHAIN), BEFORE[0])
    assert isinstance(tree, sparse.COO)
    np.testing.assert_array_equal(tree.todense(), [[0, 1, 0], [0, 0, 2], [0, 0, 0]])


def test_circles_end():
    turning = BEFORE.copy()
    turning[0, 1] = 2  # and 2 from 1; SciPy's never returns
    with pytest.raises(ValueError, match="circle"):
        csgraph.construct_dist_matrix(CHAIN, turning)
    loop = BEFORE.copy()
    loop[1, 2] = 2
    with pytest.raises(ValueError, match="circle"):
        csgraph.construct_dist_matrix(CHAIN, loop)


@pytest.mark.parametrize("length", range(1, 10))
def test_circles_of_any_length_are_refused(length):
    around = np.full((12, 12), -9999, dtype=np.int32)
    around[11, 1 : length + 1] = np.roll(np.arange(1, length + 1), 1)
    with pytest.raises(ValueError, match=r"predecessors\[11\] lead from 1 into a circle"):
        csgraph.construct_dist_matrix(np.ones((12, 12)), around)


@pytest.mark.parametrize("form", [np.asarray, np.asfortranarray, sp.csr_array])
def test_long_and_short_paths_in_many_rows(form):
    n = 300
    weights = np.zeros((n, n))
    weights[np.arange(n - 1), np.arange(1, n)] = np.arange(1, n) / 4
    weights[0, 7::50] = 3
    distances, before = scipys.dijkstra(weights, return_predecessors=True)
    np.testing.assert_allclose(csgraph.construct_dist_matrix(form(weights), before), distances, rtol=1e-14)


def test_bad_predecessors():
    for wrong in (BEFORE.astype(np.int64), BEFORE.tolist(), BEFORE.astype(float)):
        with pytest.raises(TypeError, match="int32"):
            csgraph.construct_dist_matrix(CHAIN, wrong)
    with pytest.raises(ValueError, match="same shape"):
        csgraph.construct_dist_matrix(CHAIN, BEFORE[:2])
    for vertex in (3, -1):
        wrong = BEFORE.copy()
        wrong[0, 1] = vertex
        with pytest.raises(ValueError, match="vertices from 0 to 2"):
            csgraph.construct_dist_matrix(CHAIN, wrong)
    broken = BEFORE.copy()
    broken[2, 1] = 0  # which nothing leads to
    assert csgraph.construct_dist_matrix(CHAIN, broken)[2, 1] == INF
    with pytest.raises(ValueError, match="no edge"):
        csgraph.reconstruct_path(CHAIN, [-9999, 2, 1])
    with pytest.raises(IndexError, match="vertex 9"):
        csgraph.reconstruct_path(CHAIN, [-9999, 0, 9])
    for wrong in (BEFORE, [-9999] * 4):
        with pytest.raises(ValueError, match="row of at most 3 vertices"):
            csgraph.reconstruct_path(CHAIN, wrong)


@pytest.mark.parametrize("wrong", [[np.nan] * 3, [-9999.0, 0.0, 1.0], [False, False, True], [None, 0, 1], ["", "0", "1"], []], ids=repr)
def test_predecessors_that_are_no_integers(wrong):
    with pytest.raises(ValueError, match="must be integral"):
        csgraph.reconstruct_path(CHAIN, np.array(wrong))
    if tuple(map(int, scipy.__version__.split(".")[:2])) >= (1, 18):  # SciPy's crashed on NaN before
        with pytest.raises(ValueError, match="integral"):
            scipys.reconstruct_path(CHAIN, np.array(wrong))


def test_of_opposite_edges_the_lighter_one_counts_also_where_it_weighs_nothing():
    graph = sp.csr_array((np.array([5.0, 0, 1]), [1, 0, 0], [0, 1, 2, 3]), shape=(3, 3))
    lengths, before = scipys.shortest_path(graph, directed=False, return_predecessors=True)
    np.testing.assert_array_equal(csgraph.construct_dist_matrix(graph, before, directed=False), lengths)
    assert (scipys.construct_dist_matrix(graph, before, directed=False) != lengths).any()


@pytest.mark.parametrize("dtype", [np.int8, np.int64, ">i4"])
def test_predecessors_of_any_integers(dtype):
    before = np.array([-1, 0, 1], dtype)
    np.testing.assert_array_equal(
        csgraph.reconstruct_path(CHAIN, before).toarray(), scipys.reconstruct_path(CHAIN, before.astype(np.int32)).toarray()
    )


OPTIONS = [{}, {"nan_null": False}, {"infinity_null": False}, *({"null_value": value} for value in (None, 5, np.nan, INF))]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("kind", [float, np.float32, int, bool, "matrix", "masked", "F"])
def test_dense_to_sparse_as_scipy_does_it(options, kind):
    graph = np.array([[0, 5, 1], [2, np.nan, -INF], [1, INF, 3]])
    if kind in (int, bool):
        graph[~np.isfinite(graph)] = 4
    kinds: dict[Any, Callable[..., Any]] = {"matrix": np.matrix, "masked": lambda g: np.ma.array(g, mask=g == 2), "F": np.asfortranarray}
    graph = kinds[kind](graph) if kind in kinds else graph.astype(kind)
    ours, theirs = csgraph.csgraph_masked_from_dense(graph, **options), scipys.csgraph_masked_from_dense(graph, **options)
    assert (type(ours), ours.dtype, ours.fill_value) == (type(theirs), theirs.dtype, theirs.fill_value)
    if kind == "masked":
        assert ours.mask[1, 0]
        assert not theirs.mask[1, 0]  # SciPy's forgets it
        np.testing.assert_array_equal(ours.mask, theirs.mask | (np.ma.getdata(graph) == 2))
        return
    np.testing.assert_array_equal(np.ma.getmaskarray(ours), np.ma.getmaskarray(theirs))
    assert not np.shares_memory(np.ma.getdata(ours), np.ma.getdata(graph))
    for found, expected in (
        (csgraph.csgraph_from_dense(graph, **options), scipys.csgraph_from_dense(graph, **options)),
        (csgraph.csgraph_from_masked(ours), scipys.csgraph_from_masked(ours)),
    ):
        assert (type(found), found.dtype) == (type(expected), expected.dtype)
        for part in ("data", "indices", "indptr"):
            np.testing.assert_array_equal(getattr(found, part), getattr(expected, part))


def test_tiny_weights_and_unmasked_arrays_are_kept():
    tiny = np.array([[0, 1e-9], [2, 0]])
    assert csgraph.csgraph_from_dense(tiny).nnz == 2
    assert csgraph.csgraph_from_dense([[5.00000001, 5], [5, 5]], null_value=5).nnz == 1
    assert csgraph.csgraph_from_masked(np.ma.array(tiny)).nnz == 4  # SciPy's fails
    for wrong in (np.zeros(3), np.zeros((2, 3))):
        for convert in (csgraph.csgraph_from_dense, csgraph.csgraph_masked_from_dense, csgraph.csgraph_from_masked):
            with pytest.raises(ValueError, match="graph should"):
                convert(wrong)
