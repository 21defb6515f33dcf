"""Every function beside SciPy's own, on graphs of all the kinds that SciPy takes."""

import inspect
import itertools
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csgraph as scipys

import semiring as sr
from semiring import csgraph

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


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_distances_and_predecessors_are_right(data):
    graph = data.draw(graphs())
    n = graph.shape[0]
    options = arguments(data.draw, n)
    method = data.draw(st.sampled_from(["auto", "FW", "D", "BF", "J"]))
    device = data.draw(st.sampled_from(["cpu", "auto"]))
    if method == "FW":
        options["indices"] = None
    before = graph.copy()
    distances, predecessors = csgraph.shortest_path(graph, method, return_predecessors=True, device=device, **options)

    weights = weights_of(graph)
    if options["unweighted"]:
        weights[np.isfinite(weights)] = 1
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


@settings(max_examples=150, deadline=None)
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


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_dijkstra_from_the_nearest_and_up_to_a_limit(data):
    weights = weights_of(data.draw(graphs(kinds=("csr", "dense"))))
    n = len(weights)
    edges = tuple(np.argwhere(np.isfinite(weights)).T)  # stored ∞ is an edge to SciPy's dijkstra where it is unweighted, not to others
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
