"""What SciPy's users rely on, and where SciPy's own functions go astray."""

import pickle
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.sparse import csgraph as scipys

import semiring as sr
from semiring import csgraph
from semiring.csgraph import solving
from tests.campaign.strategies import taking

pytestmark = [
    pytest.mark.filterwarnings("ignore:the matrix subclass:PendingDeprecationWarning"),
    pytest.mark.usefixtures("small_graphs"),
]

INF = np.inf
CHAIN = np.array([[0.0, 1, 5], [0, 0, 2], [0, 0, 0]])
LENGTHS = [[0, 1, 3], [INF, 0, 2], [INF, INF, 0]]
SOLVERS = [csgraph.shortest_path, csgraph.floyd_warshall, csgraph.dijkstra, csgraph.bellman_ford, csgraph.johnson]
SEVERAL_SOURCES = [csgraph.shortest_path, csgraph.dijkstra, csgraph.bellman_ford, csgraph.johnson]
devices = pytest.mark.parametrize("device", ["cpu", "auto"])
solvers = pytest.mark.parametrize("solver", SOLVERS, ids=lambda f: f.__name__)


@solvers
@devices
def test_tiny_weights_are_edges(solver, device):
    tiny = CHAIN * 1e-12
    np.testing.assert_allclose(solver(tiny, device=device), np.array(LENGTHS) * 1e-12, rtol=1e-15)
    assert np.isinf(scipys.shortest_path(tiny)[0, 1])  # to SciPy there are none


@solvers
@devices
def test_zeros_of_a_masked_array_are_edges(solver, device):
    graph = np.ma.array([[0.0, 0, np.nan], [0, 0, 3], [INF, 0, 0]], mask=np.array([[1, 0, 0], [1, 1, 0], [0, 1, 1]], bool))
    np.testing.assert_array_equal(solver(graph, device=device), [[0, 0, 3], [INF, 0, 3], [INF, INF, 0]])
    np.testing.assert_array_equal(solver(np.ma.array(CHAIN), device=device)[2], [0, 0, 0])  # nothing is masked


@devices
@pytest.mark.parametrize("order", ["C", "F", "strided", "read-only", "float32", "int"])
def test_overwrite_never_spoils_the_result(order, device):
    graph = {
        "C": CHAIN.copy(),
        "F": np.asfortranarray(CHAIN),
        "strided": np.repeat(np.repeat(CHAIN, 2, 0), 2, 1)[::2, ::2],
        "read-only": CHAIN.copy(),
        "float32": CHAIN.astype(np.float32),
        "int": CHAIN.astype(int),
    }[order]
    if order == "read-only":
        graph.flags.writeable = False
    for predecessors in (False, True):
        graph_now = graph.copy(order="K") if graph.flags.writeable else graph
        before = graph_now.copy()
        found = csgraph.floyd_warshall(graph_now, overwrite=True, return_predecessors=predecessors, device=device)
        distances = found[0] if predecessors else found
        np.testing.assert_array_equal(distances, LENGTHS)
        if graph_now.flags.c_contiguous and graph_now.flags.writeable and graph_now.dtype == np.float64:
            np.testing.assert_array_equal(graph_now, LENGTHS)
            assert np.shares_memory(graph_now, distances)
        else:
            np.testing.assert_array_equal(graph_now, before)


@devices
def test_overwrite_with_negative_weights(device):
    graph = np.array([[0, 4, 2], [0, 0, 0], [0, -3, 0]], dtype=float)
    given = graph.copy()
    found, before = csgraph.floyd_warshall(given, overwrite=True, return_predecessors=True, device=device)
    np.testing.assert_array_equal(found, scipys.johnson(graph))
    np.testing.assert_array_equal(given, found)
    np.testing.assert_array_equal(before[0], [-9999, 2, 0])


@pytest.mark.parametrize("solver", SEVERAL_SOURCES, ids=lambda f: f.__name__)
@devices
def test_only_floyd_and_warshall_overwrite(solver, device):
    sparse = np.zeros((9, 9))
    sparse[0, 1] = 3
    before = sparse.copy()
    solver(sparse, **({"overwrite": True} if solver is csgraph.shortest_path else {}), device=device)
    np.testing.assert_array_equal(sparse, before)


@pytest.mark.filterwarnings("ignore:Graph has negative weights")
@solvers
@devices
def test_negative_cycles_raise_both_errors(solver, device):
    graph = np.array([[0.0, 1, 0, 0], [0, 0, -3, 0], [1, 0, 0, 0], [0, 0, 0, 0]])
    for kind in (scipys.NegativeCycleError, sr.NegativeCycleError, csgraph.NegativeCycleError):
        with pytest.raises(kind) as caught:
            solver(graph, device=device)
    error = pickle.loads(pickle.dumps(caught.value))
    assert str(error) == str(caught.value)
    if device == "cpu":
        assert set(caught.value.cycle or ()) == {0, 1, 2}
    assert str(csgraph.NegativeCycleError()) == ""
    with pytest.raises(csgraph.NegativeCycleError):  # an edge that can be taken to and fro
        solver(np.array([[0.0, -1], [0, 0]]), directed=False, device=device)
    with pytest.raises(csgraph.NegativeCycleError):
        csgraph.yen(graph, 0, 3, 2)


@pytest.mark.filterwarnings("ignore:Graph has negative weights")
@devices
def test_a_negative_loop_is_a_cycle_but_for_floyd_and_warshall(device):
    graph = np.array([[-1.0, 1], [0, 0]])
    np.testing.assert_array_equal(csgraph.floyd_warshall(graph, device=device), scipys.floyd_warshall(graph))
    for solver in (csgraph.dijkstra, csgraph.bellman_ford, csgraph.johnson):
        with pytest.raises(csgraph.NegativeCycleError) as caught:
            solver(graph, device=device)
        assert caught.value.cycle == [0]
        np.testing.assert_array_equal(solver(graph, unweighted=True, device=device), [[0, 1], [INF, 0]])


@devices
def test_dijkstra_is_right_with_negative_weights(device):
    graph = sp.csr_array([[0, 4, 2, 0], [0, 0, 0, 1], [0, -3, 0, 0], [0, 0, 0, 0]])
    with pytest.warns(UserWarning, match="Graph has negative weights"):
        np.testing.assert_array_equal(csgraph.dijkstra(graph, indices=0, limit=0, device=device), [0, -1, INF, 0])


@solvers
@devices
@pytest.mark.parametrize("form", ["csr", "csc", "coo", "lil", "dok", "dia", "bsr"])
@pytest.mark.parametrize("kind", [sp.csr_array, sp.csr_matrix])
def test_every_sparse_format_serves_every_method(solver, device, form, kind):
    np.testing.assert_array_equal(solver(kind(CHAIN).asformat(form), device=device), LENGTHS)


@solvers
@devices
def test_sparse_conventions(solver, device):
    zero = sp.csr_array((np.array([0.0, 2, INF, np.nan]), [1, 2, 2, 0], [0, 1, 3, 4]), shape=(3, 3))
    np.testing.assert_array_equal(solver(zero, device=device), [[0, 0, 2], [INF, 0, 2], [INF, INF, 0]])
    parallel = sp.csr_array((np.array([5.0, 1, 3]), [1, 1, 1], [0, 3, 3]), shape=(2, 2))
    np.testing.assert_array_equal(solver(parallel, device=device), [[0, 1], [INF, 0]])
    np.testing.assert_array_equal(solver(parallel.T, device=device), [[0, INF], [1, 0]])
    added = sp.coo_array((np.array([100, 100], np.int8), ([0, 0], [1, 1])), shape=(2, 2))  # as SciPy's COO means it
    np.testing.assert_array_equal(solver(added, device=device), [[0, 200], [INF, 0]])
    frozen = sp.csr_array(CHAIN)
    for part in (frozen.data, frozen.indices, frozen.indptr):
        part.flags.writeable = False
    np.testing.assert_array_equal(solver(frozen, device=device), LENGTHS)
    with pytest.raises(ValueError, match="−∞"):
        solver(sp.csr_array(np.array([[0, -INF], [0, 0]])), device=device)


@solvers
@devices
@pytest.mark.parametrize("dtype", [bool, np.int8, np.uint16, np.int64, np.float16, np.float32, np.longdouble, object, ">f8"])
def test_any_real_dtype_gives_float64(solver, device, dtype):
    graph = np.array([[0, 1, 0], [0, 0, 1], [0, 0, 0]]).astype(dtype)
    for given in (graph, graph.tolist(), np.matrix(graph.astype(float)) if dtype is not object else graph):
        found = solver(given, device=device)
        assert type(found) is np.ndarray
        assert found.dtype == np.float64
        np.testing.assert_array_equal(found, [[0, 1, 2], [INF, 0, 1], [INF, INF, 0]])


@solvers
@devices
def test_float32(solver, device):
    found, before = solver(CHAIN, dtype=np.float32, return_predecessors=True, device=device)
    assert (found.dtype, before.dtype) == (np.float32, np.int32)
    np.testing.assert_array_equal(found, LENGTHS)
    for dtype in (np.int32, np.float16, complex, object):
        with pytest.raises(TypeError, match="float64 or float32"):
            solver(CHAIN, dtype=dtype)


def test_float32_in_parts(monkeypatch):
    from semiring.csgraph import solving

    monkeypatch.setattr(solving, "HOST", 16)
    graph = sp.random_array((12, 12), density=0.2, rng=1)
    found, before = csgraph.dijkstra(graph, dtype="float32", return_predecessors=True)
    expected, theirs = scipys.dijkstra(graph, return_predecessors=True)
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    np.testing.assert_array_equal(before, theirs)


@solvers
@devices
def test_no_vertices_and_one(solver, device):
    for empty in (np.zeros((0, 0)), sp.csr_array((0, 0)), np.ma.zeros((0, 0))):
        found, before = solver(empty, return_predecessors=True, device=device)
        assert (found.shape, before.shape, before.dtype) == ((0, 0), (0, 0), np.int32)
    found, before = solver([[7]], return_predecessors=True, device=device)
    np.testing.assert_array_equal(found, [[0]])
    np.testing.assert_array_equal(before, [[-9999]])


@pytest.mark.parametrize("solver", SEVERAL_SOURCES, ids=lambda f: f.__name__)
@devices
@pytest.mark.parametrize("indices", [0, -1, np.uint8(1), [0, -1], [], [[0], [2]], [1.7], True, [1, 1]], ids=str)
def test_indices(solver, device, indices):
    ours = solver(CHAIN, indices=indices, return_predecessors=True, device=device)
    theirs = scipys.dijkstra(CHAIN, indices=indices, return_predecessors=True)
    for found, expected in zip(ours, theirs, strict=True):
        np.testing.assert_array_equal(found, expected)
        assert found.dtype == expected.dtype


@solvers
@pytest.mark.parametrize(
    ("graph", "message"),
    [
        (np.zeros(3), "two dimensions"),
        (np.zeros((2, 2, 2)), "two dimensions"),
        (None, "two dimensions"),
        (3, "two dimensions"),
        (np.zeros((2, 3)), "square"),
        (np.ma.zeros((2, 3)), "square"),
        (sp.csr_array((2, 3)), r"shape \(N, N\)"),
        (sp.coo_array([1, 2]), "must be 2-D"),
        ([["a", "b"], ["c", "d"]], "float"),
        ([["0", "1"], ["2", "3"]], "not numbers"),
        (np.zeros((2, 2), "M8[s]"), "not numbers"),
        (np.zeros((2, 2), [("weight", float)]), "not numbers"),
        ([[1, 2], [3]], "ragged|inhomogeneous"),
    ],
    ids=str,
)
def test_what_is_no_graph_is_a_value_error(solver, graph, message):
    with pytest.raises(ValueError, match=message):
        solver(graph)
    with pytest.raises((ValueError, TypeError, AttributeError)):
        scipys.shortest_path(graph)


def test_bad_arguments():
    for method in ("X", "fw", ""):
        with pytest.raises(ValueError, match="unrecognized method"):
            csgraph.shortest_path(CHAIN, method)
    with pytest.raises(ValueError, match="Cannot specify indices"):
        csgraph.shortest_path(CHAIN, "FW", indices=0)
    for limit in (-1, -INF, np.nan):
        with pytest.raises(ValueError, match="limit must be >= 0, not"):
            csgraph.dijkstra(CHAIN, limit=limit)
        with pytest.raises(ValueError, match="limit must be >= 0, not"):
            csgraph.explain(CHAIN, limit=limit)
    no_numbers: tuple[Any, ...] = ("3", None, [2], np.array([1.0, 2.0]), 1j)
    for no_number in no_numbers:
        with pytest.raises(TypeError):
            csgraph.dijkstra(CHAIN, limit=no_number)
    beyond = sp.csr_array(CHAIN)
    beyond.indices[0] = 9
    with pytest.raises(ValueError, match="column 9, but has only 3"):
        csgraph.dijkstra(beyond)
    for indices in (3, -4, [0, 3], np.array([1 << 32])):
        with pytest.raises(ValueError, match="indices out of range"):
            csgraph.johnson(CHAIN, indices=indices)
    with pytest.raises(sr.SemiringError, match="unknown device"):
        csgraph.johnson(CHAIN, device="tpu")
    with pytest.raises(TypeError, match="float32 cannot hold"):
        csgraph.johnson(CHAIN * 1e300, dtype=np.float32, device="cpu")
    for options in ({}, {"min_only": True}):  # SciPy's searches would find no path where there is an edge
        with pytest.raises(TypeError, match="float32 cannot hold"):
            csgraph.dijkstra(CHAIN * 1e300, indices=[0], dtype=np.float32, **options)
    immense = sp.coo_array(([1.0], ([2**40], [0])), shape=(2**41, 2**41))
    with pytest.raises(sr.TooLargeError, match="csgraph has 2,199,023,255,552 vertices"):
        csgraph.dijkstra(immense, indices=0)
    for few in (0, -1):
        with pytest.raises(ValueError, match="at least 1"):
            csgraph.yen(CHAIN, 0, 1, few, return_predecessors=True)


@solvers
@devices
@pytest.mark.parametrize("form", [np.asarray, np.asfortranarray, sp.csr_array], ids=["dense", "Fortran", "sparse"])
def test_weights_that_do_not_count_need_not_fit(solver, device, form):
    graph = form(np.array([[0, 1e300, 0], [0, 0, -1e308], [0, 0, 0]]))
    found = solver(graph, unweighted=True, dtype=np.float32, device=device)
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, [[0, 1, 2], [INF, 0, 1], [INF, INF, 0]])


@pytest.mark.gpu
@pytest.mark.parametrize("solver", SOLVERS, ids=lambda f: f.__name__)
def test_weights_that_do_not_count_need_not_fit_on_a_gpu(solver):
    import cupy

    graph = np.array([[0, 1e300, 0], [0, 0, -1e308], [0, 0, 0]])
    for form in (cupy.asarray, np.asarray, sp.csr_array):
        found = solver(form(graph), unweighted=True, dtype=np.float32, device="cuda")
        assert found.dtype == np.float32
        np.testing.assert_array_equal(cupy.asnumpy(found), [[0, 1, 2], [INF, 0, 1], [INF, INF, 0]])


@solvers
def test_sums_beyond_the_largest_float_are_scipys(solver):
    largest = np.finfo(float).max  # as someone's ∞
    graph = np.array([[0, 1, largest], [0, 0, 2], [largest, largest, 0]])
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(solver(graph), scipys.dijkstra(graph))
    with pytest.raises(sr.OverflowRiskError):
        solver(graph, device="cpu")


@pytest.mark.gpu
@pytest.mark.parametrize("solver", SOLVERS, ids=lambda f: f.__name__)
def test_on_a_gpu(solver):
    import cupy

    rng = np.random.default_rng(0)
    graph = np.where(rng.random((300, 300)) < 0.2, rng.integers(1, 99, (300, 300)), 0).astype(float)
    graph[0, 1] = 1e-12
    several: list[dict[str, Any]] = [{}, {"directed": False}, {"unweighted": True}, {"dtype": np.float32}]
    for options in several:
        expected, _ = csgraph.dijkstra(graph, return_predecessors=True, device="cpu", **options)
        for given in (graph, sp.csr_array(graph), cupy.asarray(graph), np.ma.masked_equal(graph, 0)):
            there = isinstance(given, cupy.ndarray)
            found, before = solver(given, return_predecessors=True, **({} if there else {"device": "cuda"}), **options)
            assert isinstance(found, cupy.ndarray if there else np.ndarray)
            assert isinstance(before, cupy.ndarray if there else np.ndarray)
            np.testing.assert_allclose(cupy.asnumpy(found), expected, rtol=1e-6)
            direct = before.dtype == np.int32 and cupy.asnumpy(before)[0, 0] == -9999
            assert direct
    if solver in SEVERAL_SOURCES:
        found = solver(cupy.asarray(graph), indices=[3, -1])
        np.testing.assert_allclose(found.get(), scipys.dijkstra(sp.csr_array(graph), indices=[3, -1]))
    if solver is csgraph.dijkstra:
        near = csgraph.dijkstra(cupy.asarray(graph), indices=[3, 5], min_only=True)
        np.testing.assert_allclose(near.get(), scipys.dijkstra(sp.csr_array(graph), indices=[3, 5], min_only=True))
    if solver is csgraph.floyd_warshall:
        given = graph.copy()
        found, before = solver(given, overwrite=True, return_predecessors=True, device="cuda")
        assert found is given
        np.testing.assert_allclose(csgraph.construct_dist_matrix(graph, before), found)


@pytest.mark.gpu
def test_trees_are_grown_on_a_gpu_where_there_is_room(monkeypatch):
    rng = np.random.default_rng(1)
    height = rng.random(90)
    graph = sp.csr_array(np.where(rng.random((90, 90)) < 0.1, rng.random((90, 90)) + 0.01 + height - height[:, None], 0))
    expected = scipys.johnson(graph)
    for free in (1 << 40, 0):
        monkeypatch.setattr(solving, "fits", lambda needed, device, free=free: needed <= free)
        found, before = csgraph.johnson(graph, return_predecessors=True, device="cuda:0")
        assert isinstance(found, np.ndarray)
        np.testing.assert_allclose(found, expected)
        np.testing.assert_allclose(csgraph.construct_dist_matrix(graph, before), expected)


@pytest.mark.parametrize("unweighted", [False, True])
@pytest.mark.parametrize("strategy", ["search", "SciPy", "whole"])
def test_a_limit_whatever_the_strategy(strategy: str, unweighted: bool) -> None:
    """A search ends at the limit, and other strategies cut the rows."""
    graph = sp.random_array((300, 300), density=0.01, rng=np.random.default_rng(3), format="csr")
    with taking(strategy):
        found, before = csgraph.dijkstra(graph, unweighted=unweighted, limit=1.5, return_predecessors=True)
    expected, tree = scipys.dijkstra(graph, unweighted=unweighted, limit=1.5, return_predecessors=True)
    np.testing.assert_allclose(found, expected)
    assert np.array_equal(before < 0, tree < 0)
