"""Every function beside SciPy's own, on graphs of all the kinds that SciPy takes."""

import inspect
import itertools
import warnings
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csgraph as scipys

import semiring as sr
from semiring import csgraph

pytestmark = pytest.mark.usefixtures("small_graphs")

NONE = -9999
SEVERAL = ("shortest_path", "floyd_warshall", "dijkstra", "bellman_ford", "johnson")
FUNCTIONS = {"FW": "floyd_warshall", "D": "dijkstra", "BF": "bellman_ford", "J": "johnson"}


def weights_of(graph):
    """The matrix with ∞ for non-edges, by SciPy's conventions, entry by entry."""
    if sp.issparse(graph):
        full = np.full(graph.shape, np.inf)
        rows = graph.tocsr()
        for i in range(graph.shape[0]):
            for k in range(rows.indptr[i], rows.indptr[i + 1]):
                full[i, rows.indices[k]] = np.fmin(full[i, rows.indices[k]], rows.data[k])
        return full
    masked = isinstance(graph, np.ma.MaskedArray)
    data, mask = np.array(np.ma.getdata(graph), dtype=float), np.ma.getmaskarray(graph)
    return np.where(mask | ~np.isfinite(data) | ((data == 0) & (not masked)), np.inf, data)


def counted(graph, method):
    """The matrix with 1 for each edge, all that are stored or not masked, but to Floyd and Warshall those of finite weight."""
    there = np.isfinite(weights_of(graph))
    if method != "FW" and sp.issparse(graph):
        rows = graph.tocsr()
        there[np.repeat(np.arange(graph.shape[0]), np.diff(rows.indptr)), rows.indices] = True
    elif method != "FW" and isinstance(graph, np.ma.MaskedArray):
        there = ~np.ma.getmaskarray(graph)
    return np.where(there, 1.0, np.inf)


def require_trees(weights, distances, predecessors, sources):
    """Each row is a tree whose paths have the lengths that are told, with a direct edge first."""
    assert predecessors.dtype == np.int32
    for source, lengths, before in zip(sources, distances, predecessors, strict=True):
        for target in range(len(weights)):
            path = [target]
            while before[path[-1]] != NONE:
                path.append(int(before[path[-1]]))
                assert len(path) <= len(weights), "a circle"
            if target == source:
                assert path == [source]
            elif np.isinf(lengths[target]):
                assert path == [target]
            else:
                assert path[-1] == source
                length = sum(weights[u, v] for v, u in itertools.pairwise(path))
                assert length == pytest.approx(lengths[target], abs=1e-9)
                if weights[source, target] == lengths[target]:
                    assert path == [target, source]


@st.composite
def graphs(draw, least=0, kinds=("dense", "fortran", "masked", "csr", "csc", "lil", "coo", "matrix"), most=9):
    n = draw(st.integers(0, 7))
    entries = st.sampled_from([0.0, np.inf, np.nan, -np.inf, *range(least, most)])
    dense = np.array(draw(st.lists(entries, min_size=n * n, max_size=n * n)), dtype=float).reshape(n, n)
    kind = draw(st.sampled_from(kinds))
    if kind == "dense":
        return dense
    if kind == "fortran":
        return np.asfortranarray(dense)
    mask = np.array(draw(st.lists(st.booleans(), min_size=n * n, max_size=n * n)), dtype=bool).reshape(n, n)
    if kind == "masked":
        return np.ma.array(dense, mask=mask)
    dense[np.isneginf(dense)] = 1
    rows, columns = np.nonzero(~mask)
    listed = sp.coo_array((dense[rows, columns], (rows, columns)), shape=(n, n))
    return sp.csr_matrix(listed) if kind == "matrix" else listed.asformat(kind)


def arguments(draw, n):
    indices = draw(st.none() | st.integers(-n, n - 1) | st.lists(st.integers(-n, n - 1), max_size=4)) if n else None
    return {"directed": draw(st.booleans()), "unweighted": draw(st.booleans()), "indices": indices}


@pytest.mark.sampled(1)
@settings(max_examples=80, deadline=None)
@given(st.data())
def test_distances_and_predecessors_are_right(data):
    graph = data.draw(graphs())
    n = graph.shape[0]
    options = arguments(data.draw, n)
    method = data.draw(st.sampled_from(["auto", "FW", "D", "BF", "J"]))
    device = data.draw(st.sampled_from(["cpu", "auto"]))
    if method == "FW":
        options["indices"] = None
    if options["unweighted"] and method == "auto":
        method = "J"  # "auto" may be Floyd and Warshall's, which counts other edges
    before = graph.copy()
    distances, predecessors = csgraph.shortest_path(graph, method, return_predecessors=True, device=device, **options)

    weights = counted(graph, method) if options["unweighted"] else weights_of(graph)
    if not options["directed"]:
        weights = np.minimum(weights, weights.T)
    # SciPy's own answer to the same edges, which it is told without any choice of reading them.
    edges = np.argwhere(np.isfinite(weights))
    listed = sp.csr_array((weights[tuple(edges.T)], tuple(edges.T)), shape=(n, n))
    indices = options["indices"]
    np.testing.assert_allclose(distances, scipys.dijkstra(listed, indices=indices))
    assert distances.dtype == np.float64
    assert distances.shape == predecessors.shape
    sources = np.arange(n) if indices is None else np.atleast_1d(np.array(indices, dtype=int)) % max(n, 1)
    np.fill_diagonal(weights, np.inf)
    require_trees(weights, distances.reshape(len(sources), n), predecessors.reshape(len(sources), n), sources)
    if method != "auto":
        function = getattr(csgraph, FUNCTIONS[method])
        options = {k: v for k, v in options.items() if k != "indices" or method != "FW"}
        np.testing.assert_array_equal(function(graph, device=device, **options), distances)
    unchanged = (graph != before).nnz == 0 if sp.issparse(graph) and not np.isnan(graph.tocsr().data).any() else True
    assert unchanged
    if isinstance(graph, np.ndarray):
        np.testing.assert_array_equal(np.ma.getdata(graph), np.ma.getdata(before))


@settings(max_examples=60, deadline=None)
@given(
    graphs(least=-2, kinds=("dense", "csr", "masked"), most=12), st.sampled_from(["FW", "BF", "J", "D"]), st.sampled_from(["cpu", "auto"])
)
def test_negative_weights_and_cycles(graph, method, device):
    weights = weights_of(graph)
    n = len(weights)
    edges = np.argwhere(np.isfinite(weights))
    listed = sp.csr_array((weights[tuple(edges.T)], tuple(edges.T)), shape=(n, n))
    loops = weights.diagonal().copy()
    if method == "FW":
        listed.setdiag(np.where(np.isfinite(loops), 0, loops)) if n else None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            expected = scipys.johnson(listed)
        except scipys.NegativeCycleError:
            with pytest.raises(csgraph.NegativeCycleError) as caught:
                csgraph.shortest_path(graph, method, device=device)
            if (cycle := caught.value.cycle) is not None:
                assert sum(weights[u, v] for u, v in zip(cycle, [*cycle[1:], cycle[0]], strict=True)) < 0
            return
        distances, predecessors = csgraph.shortest_path(graph, method, return_predecessors=True, device=device)
    np.testing.assert_allclose(distances, expected, atol=1e-12)
    np.fill_diagonal(weights, np.inf)
    require_trees(weights, distances, predecessors, range(n))


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_dijkstra_from_the_nearest_and_up_to_a_limit(data):
    weights = weights_of(data.draw(graphs(kinds=("csr", "dense"))))
    n = len(weights)
    edges = tuple(np.argwhere(np.isfinite(weights)).T)
    graph = sp.csr_array((weights[edges], edges), shape=(n, n))
    options = arguments(data.draw, n)
    options["limit"] = data.draw(st.sampled_from([0, 3, 7.5, np.inf]))
    device = data.draw(st.sampled_from(["cpu", "auto"]))
    np.testing.assert_allclose(csgraph.dijkstra(graph, device=device, **options), scipys.dijkstra(graph, **options))
    distances, predecessors = csgraph.dijkstra(graph, device=device, return_predecessors=True, **options)
    assert (predecessors[np.isinf(distances)] == NONE).all()

    nearest, predecessors, sources = csgraph.dijkstra(graph, min_only=True, return_predecessors=True, device=device, **options)
    np.testing.assert_allclose(nearest, scipys.dijkstra(graph, min_only=True, **options))
    np.testing.assert_allclose(nearest, csgraph.dijkstra(graph, min_only=True, dtype=np.float32, **options))
    for vertex in range(n):
        if np.isinf(nearest[vertex]):
            assert sources[vertex] == predecessors[vertex] == NONE
        elif predecessors[vertex] != NONE:
            assert sources[predecessors[vertex]] == sources[vertex]
        else:
            assert sources[vertex] == vertex


ENTRIES = [0.0, np.inf, np.nan, 1.0, 2.0, 3.5, 7.0]


@st.composite
def ugly_graphs(draw, negative):
    """With zeros, infinities and NaN stored, several times at one place, and perhaps negative weights."""
    n = draw(st.integers(0, 5))
    kind = draw(st.sampled_from(["dense", "int", "bool", "float32", "big-endian", "csr", "csc", "coo", "lil", "duplicates"]))
    entries = st.sampled_from(ENTRIES + [-1.0, -2.0] * negative)
    edges = draw(st.lists(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1), entries), max_size=12) if n else st.just([]))
    if kind == "duplicates":
        edges.sort(key=lambda edge: edge[0])
        starts = np.searchsorted([u for u, _, _ in edges], np.arange(n + 1))
        return sp.csr_array((np.array([w for _, _, w in edges]), np.array([v for _, v, _ in edges], np.int32), starts), shape=(n, n))
    weights = {(u, v): w for u, v, w in edges}
    rows, columns = np.array(list(weights), dtype=int).reshape(-1, 2).T
    listed = sp.coo_array((np.array(list(weights.values()), dtype=float), (rows, columns)), shape=(n, n))
    if kind in ("csr", "csc", "coo", "lil"):
        return listed.asformat(kind)
    dense = np.zeros((n, n))
    dense[rows, columns] = listed.data
    if kind in ("int", "bool"):
        return np.where(np.isfinite(dense), dense, 0).astype(kind)
    return dense.astype({"float32": "f4", "big-endian": ">f8"}.get(kind, "f8"))


ODD_INDICES = st.sampled_from([True, 0.5, np.uint8(0), [], [[0], [0]], [0, 0], "0", [None], np.nan, {0}, range(1)])


def outcome(function, *args, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return function(*args, **options)
        except (ValueError, TypeError, scipys.NegativeCycleError) as error:
            return error


@pytest.mark.sampled(1)
@settings(max_examples=160, deadline=None)
@given(st.data())
def test_ugly_calls_end_as_scipys(data):
    name = data.draw(st.sampled_from(SEVERAL))
    graph = data.draw(ugly_graphs(negative=name != "dijkstra"))
    n = graph.shape[0]
    flags = ("directed", "unweighted", "return_predecessors")
    options = {flag: data.draw(st.booleans()) for flag in flags}
    if name != "floyd_warshall":
        options["indices"] = data.draw(st.none() | st.integers(-n - 1, n) | st.lists(st.integers(-n, n), max_size=3) | ODD_INDICES)
    if name == "dijkstra":
        options |= {"limit": data.draw(st.sampled_from([np.inf, 0, 2.0, True, -1, "3", None])), "min_only": data.draw(st.booleans())}
    if name == "shortest_path":
        options["method"] = data.draw(st.sampled_from(["auto", "FW", "BF", "J"]))
    device = data.draw(st.sampled_from(["cpu", "auto"]))
    theirs = outcome(getattr(scipys, name), graph.tocsr() if sp.issparse(graph) else graph, **options)
    ours = outcome(getattr(csgraph, name), graph, device=device, **options)
    if isinstance(theirs, scipys.NegativeCycleError) and not isinstance(ours, Exception):
        # Of what no path from the indices reaches; only SciPy's Johnson looks at that.
        assert options["indices"] is not None
        options.pop("method", None)
        theirs = outcome(scipys.bellman_ford, graph, **options)
    if isinstance(theirs, Exception) or isinstance(ours, Exception):
        assert isinstance(ours, (TypeError, ValueError, scipys.NegativeCycleError)), theirs
        assert isinstance(theirs, (TypeError, ValueError, scipys.NegativeCycleError)), ours
        return
    ours, theirs = (found if isinstance(found, tuple) else (found,) for found in (ours, theirs))
    assert [(a.shape, a.dtype) for a in ours] == [(a.shape, a.dtype) for a in theirs]
    np.testing.assert_allclose(ours[0], theirs[0])
    for before, expected in zip(ours[1:], theirs[1:], strict=True):
        np.testing.assert_array_equal(before == NONE, expected == NONE)


@pytest.mark.sampled(22)
@pytest.mark.parametrize("device", ["cpu", "auto"])
@pytest.mark.parametrize("name", ["shortest_path", "dijkstra", "bellman_ford", "johnson"])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array, sp.coo_array, np.ma.masked_equal], ids=lambda form: form.__name__)
def test_negative_cycles_that_no_path_reaches_do_not_count(name, form, device):
    graph = np.array([[0, 1, 0, 0, 0], [0, 0, 0, 0, 0], [0, 1, 0, -3, 0], [0, 0, 1, 0, 0], [0, 0, 0, 0, -1.0]])
    given = form(graph, 0) if form is np.ma.masked_equal else form(graph)
    function = getattr(csgraph, name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        near: tuple[Any, ...] = (0, [0], [1, 0, 0], [], [[1]])
        for sources in near:
            found = function(given, indices=sources, return_predecessors=True, device=device)
            expected = scipys.bellman_ford(sp.csr_array(graph), indices=sources, return_predecessors=True)
            for array, right in zip(found, expected, strict=True):
                np.testing.assert_array_equal(array, right)
        far: tuple[Any, ...] = (2, [0, 3], [4], None)
        for sources in far:
            with pytest.raises(csgraph.NegativeCycleError):
                function(given, indices=sources, device=device)
        with pytest.raises(csgraph.NegativeCycleError):  # 0 – 1 – 2 without directions
            function(given, indices=[0], directed=False, device=device)
    if name == "dijkstra":
        with pytest.warns(UserWarning, match="negative weights"):
            np.testing.assert_array_equal(csgraph.dijkstra(given, indices=[0], min_only=True), [0, 1, np.inf, np.inf, np.inf])


@pytest.mark.filterwarnings("ignore:Graph has negative weights")
@pytest.mark.parametrize("device", ["cpu", "auto"])
@pytest.mark.parametrize("weight", [np.inf, np.nan, -np.inf])
@pytest.mark.parametrize("name", SEVERAL)
def test_infinite_weights_are_counted_as_scipy_counts_them(name, weight, device):
    graph = sp.csr_array((np.array([weight, 2.0]), [1, 2], [0, 1, 2, 2]), shape=(3, 3))
    masked = np.ma.array([[0, weight, 0], [0, 0, 2], [0, 0, 0.0]], mask=np.array([[1, 0, 1], [1, 1, 0], [1, 1, 1]], bool))
    theirs, ours = getattr(scipys, name), getattr(csgraph, name)
    several: tuple[Any, ...] = (graph, graph.tolil(), graph.tocoo(), masked)
    for shown, directed in itertools.product(several, (True, False)):
        if name == "floyd_warshall" and (weight == -np.inf or shown is masked):
            continue
        expected = theirs(shown.tocsr() if sp.issparse(shown) else shown, directed=directed, unweighted=True)
        np.testing.assert_array_equal(ours(shown, directed=directed, unweighted=True, device=device), expected)
        assert np.isinf(expected[0, 1]) == (name == "floyd_warshall")
    if weight != -np.inf:
        np.testing.assert_array_equal(ours(graph, device=device), [[0, np.inf, np.inf], [np.inf, 0, 2], [np.inf, np.inf, 0]])


def test_from_the_nearest_of_several_with_negative_weights():
    graph = sp.csr_array([[0, 5, 0, 0], [0, 0, -4, 0], [0, 0, 0, 1], [0, 0, 0, 0]])
    with pytest.warns(UserWarning, match="Graph has negative weights"):
        found = csgraph.dijkstra(graph, indices=[0, 2], min_only=True, return_predecessors=True)
    for array, expected in zip(found, [[0, 5, 0, 1], [NONE, 0, NONE, 2], [0, 0, 2, 2]], strict=True):
        np.testing.assert_array_equal(array, expected)
    graph[0, 1] = 3  # now 2 is nearer by way of 1
    with pytest.warns(UserWarning, match="Graph has negative weights"):
        found = csgraph.dijkstra(graph, indices=[0, 2], min_only=True, return_predecessors=True)
    for array, expected in zip(found, [[0, 3, -1, 0], [NONE, 0, 1, 2], [0, 0, 0, 0]], strict=True):
        np.testing.assert_array_equal(array, expected)
    with pytest.warns(UserWarning, match="Graph has negative weights"):  # the way to 2 goes beyond the limit and comes back
        found = csgraph.dijkstra(graph, indices=[0, 2], min_only=True, return_predecessors=True, limit=2)
    within: list[list[float]] = [[0, np.inf, -1, 0], [NONE, NONE, 1, 2], [0, NONE, 0, 0]]
    for array, limited in zip(found, within, strict=True):
        np.testing.assert_array_equal(array, limited)


@pytest.mark.parametrize("name", scipys.__all__)
def test_every_public_name_is_there_with_scipys_arguments(name):
    ours, theirs = getattr(csgraph, name), getattr(scipys, name)
    assert name in csgraph.__all__
    if name != "NegativeCycleError":
        own = {p.name: (p.kind, p.default) for p in inspect.signature(ours).parameters.values() if p.name not in ("dtype", "device")}
        assert own == {p.name: (p.kind, p.default) for p in inspect.signature(theirs).parameters.values() if p.name not in ("dtype",)}
        assert ours.__doc__


def test_the_module_is_reached_through_the_package_and_the_core_never_imports_scipy():
    import subprocess
    import sys

    assert sr.csgraph is csgraph
    code = "import sys, semiring as sr, numpy as np; sr.apsp(np.eye(3), paths=True); assert 'scipy' not in sys.modules"
    subprocess.run([sys.executable, "-W", "ignore", "-c", code], check=True)
