"""Paths of what lies on a GPU: found there, and the same as on the host from the same construction matrix."""

from __future__ import annotations

import copy
import itertools
import pickle
from collections.abc import Callable
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import semiring as sr
from semiring import testing

cupy = pytest.importorskip("cupy")
pytestmark = [pytest.mark.gpu, pytest.mark.filterwarnings("ignore::semiring.NonEdgeWarning")]

INF = np.inf


def sparse(n: int, degree: float, seed: int = 0, *, high: int = 10) -> Any:
    """A graph of about `degree` edges a vertex, of whole weights from 0."""
    rng = np.random.default_rng(seed)
    return np.where(rng.random((n, n)) < degree / max(1, n), rng.integers(0, high, (n, n)), INF)


def on_gpu(a: Any) -> Any:
    return tuple(map(cupy.asarray, a)) if isinstance(a, tuple) else cupy.asarray(a)


def on_host(paths: sr.Paths) -> sr.Paths:
    """The same closure and construction matrix in the memory of the host."""
    values = paths.values if isinstance(paths.values, tuple) else (paths.values,)
    return sr.Paths(paths.semiring, tuple(v.get() for v in values), paths.via.get(), reflexive=paths.reflexive)


def assert_same(paths: sr.Paths, pairs: list[Any] | None = None) -> None:
    expected = on_host(paths)
    for name in ("predecessors", "next_hops"):
        found = getattr(paths, name)()
        assert isinstance(found, cupy.ndarray)
        assert found.dtype == np.int32
        np.testing.assert_array_equal(found.get(), getattr(expected, name)(), err_msg=name)
    if paths.via.ndim == 2:
        chosen: list[Any] = list(itertools.product(range(len(paths.nodes)), repeat=2)) if pairs is None else pairs
        assert paths.paths(chosen) == expected.paths(chosen)


@pytest.mark.parametrize("method", ["iterative", "blocked", "recursive"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int16, np.int32, np.uint32])
@pytest.mark.parametrize("n", [0, 1, 2, 31, 33, 127, 200])
def test_distances(n: int, dtype: Any, method: str) -> None:
    a = sparse(n, 3, n)
    kind = np.dtype(dtype)
    given = a.astype(dtype) if kind.kind == "f" else np.where(a < INF, a, np.iinfo(dtype).max).astype(dtype)
    paths = sr.apsp(on_gpu(given), paths=True, method=method)
    assert_same(paths)


@pytest.mark.parametrize("reflexive", [True, False])
@pytest.mark.parametrize("degree", [3, 1000])
@pytest.mark.parametrize("name", ["max-min", "min-max", "max-times", "boolean", "distance-hops"])
def test_semirings_where_much_ties(name: str, degree: float, reflexive: bool) -> None:
    semiring, n = sr.semirings()[name], 150
    a = sparse(n, degree, 1, high=4)
    given: Any
    match name:
        case "boolean":
            given = np.minimum(a, a.T) < INF
        case "distance-hops":
            given = (a, np.where(a < INF, 1.0, INF))
        case "max-times":
            given = np.where(a < INF, 2.0 ** -np.where(a < INF, a, 0), 0)
        case _:
            given = np.where(a < INF, a, semiring.zero)
            given = np.where(given == semiring.zero, given.T, given)
    paths = sr.closure(on_gpu(given), semiring, paths=True, reflexive=reflexive)
    assert_same(paths)
    testing.assert_paths_valid(found_by(paths), given)


def found_by(paths: sr.Paths) -> Any:
    """What `testing.assert_paths_valid` asks of paths, found on the GPU, as arrays of the host."""
    return SimpleNamespace(
        semiring=paths.semiring,
        reflexive=paths.reflexive,
        nodes=paths.nodes,
        values=tuple(v.get() for v in paths.values) if isinstance(paths.values, tuple) else paths.values.get(),
        paths=paths.paths,
        predecessors=lambda: paths.predecessors().get(),
        next_hops=lambda: paths.next_hops().get(),
    )


@pytest.mark.parametrize("method", ["iterative", "blocked", "recursive"])
@pytest.mark.parametrize(("low", "high"), [(0, 0), (0, 1), (0, 3), (1, 1)])
def test_grids_full_of_ties_and_zero_cycles(method: str, low: int, high: int) -> None:
    rng, side = np.random.default_rng(1), 9
    a = np.full((side**2, side**2), INF)
    for v in range(side**2):
        for u in ([v + 1] if (v + 1) % side else []) + ([v + side] if v + side < side**2 else []):
            a[u, v] = a[v, u] = rng.integers(low, high + 1)
    paths = sr.apsp(on_gpu(a), paths=True, method=method, block=16)
    assert_same(paths)
    testing.assert_paths_valid(found_by(paths), a)


@pytest.mark.parametrize("block", [None, 1, 2, 3])
def test_the_four_vertex_example_with_a_zero_cycle(block: int | None) -> None:
    a = np.full((5, 5), INF)
    for u, v, w in ((4, 3, 1), (3, 0, 0), (0, 2, 0), (2, 0, 0)):
        a[u, v] = w
    for method in ("iterative", "blocked", "recursive"):
        paths = sr.apsp(on_gpu(a), paths=True, method=method, block=block)
        assert paths.path(4, 2) == [4, 3, 0, 2]
        assert_same(paths)


def test_negative_edges() -> None:
    rng = np.random.default_rng(2)
    n = 150
    p = rng.integers(0, 50, n)
    a = sparse(n, 5, 2) + p[:, None] - p
    for given in (a.astype(np.float32), np.where(a < INF, a, np.iinfo(np.int32).max).astype(np.int32)):
        paths = sr.apsp(on_gpu(given), paths=True)
        assert_same(paths)
        testing.assert_paths_valid(found_by(paths), given)
    rounded = rng.random((80, 80)) + 5 * (q := rng.random(80))[None, :] - 5 * q[:, None]
    rounded[rng.random((80, 80)) < 0.9] = INF
    paths = sr.apsp(on_gpu(rounded), paths=True)
    assert_same(paths)
    testing.assert_paths_valid(found_by(paths), rounded, absolute=1e-13)


def test_predecessors_are_edges_whose_weights_add_up_to_networkx_distances() -> None:
    networkx = pytest.importorskip("networkx")
    n = 120
    a = np.where(sparse(n, 6, 3) < INF, np.random.default_rng(3).random((n, n)), INF)
    graph = networkx.DiGraph()
    graph.add_nodes_from(range(n))
    graph.add_weighted_edges_from((u, v, a[u, v]) for u, v in np.argwhere(a < INF).tolist())
    paths = sr.apsp(on_gpu(a), paths=True)
    before, after = paths.predecessors().get(), paths.next_hops().get()
    distance = dict(networkx.all_pairs_dijkstra_path_length(graph))
    for i, j in itertools.product(range(n), repeat=2):
        if i == j or j not in distance[i]:
            assert before[i, j] == after[i, j] == -9999
        else:
            u, v = before[i, j], after[i, j]
            assert distance[i][j] == pytest.approx(distance[i][u] + graph.edges[u, j]["weight"], rel=1e-12)
            assert distance[i][j] == pytest.approx(graph.edges[i, v]["weight"] + distance[v][j], rel=1e-12)


def test_trees_are_scipys_where_shortest_paths_are_unique() -> None:
    from scipy.sparse.csgraph import floyd_warshall

    rng = np.random.default_rng(7)
    n = 500
    a = rng.random((n, n))
    a[rng.random((n, n)) < 0.95] = INF
    np.fill_diagonal(a, 0)
    expected = floyd_warshall(a, return_predecessors=True)[1]
    np.testing.assert_array_equal(sr.apsp(on_gpu(a), paths=True).predecessors().get(), expected)


def test_long_paths() -> None:
    n = 2500
    a = np.full((n, n), INF, dtype=np.float32)
    order = np.random.default_rng(0).permutation(n)
    a[order[:-1], order[1:]] = 1
    paths = sr.apsp(on_gpu(a), paths=True)
    assert paths.path(int(order[0]), int(order[-1])) == order.tolist()
    assert paths.path(int(order[-1]), int(order[0])) == []
    assert_same(paths, [(int(order[0]), int(v)) for v in order])
    back = np.full((400, 400), INF)
    back[np.arange(1, 400), np.arange(399)] = 1
    assert_same(sr.apsp(on_gpu(back), paths=True, method="iterative"), [(399, 0), (0, 399), (7, 3)])


def test_rows_that_do_not_fit_shared_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    import dataclasses

    from semiring.kernels.cuda import compiler
    from semiring.kernels.cuda import paths as kernels_of_paths
    from semiring.kernels.hardware import device

    a = sparse(150, 3, 4, high=3)
    paths = sr.apsp(on_gpu(a), paths=True)
    limits = device(0)
    monkeypatch.setattr(kernels_of_paths, "device", lambda number: dataclasses.replace(limits, block_shared_bytes=256, multiprocessors=3))
    compiler.semiring_kernel_for.cache_clear()
    assert_same(paths, [])
    compiler.semiring_kernel_for.cache_clear()


def test_batches() -> None:
    batch = np.stack([sparse(70, 3, seed) for seed in range(6)]).reshape(2, 3, 70, 70)
    paths = sr.apsp(on_gpu(batch), paths=True)
    assert_same(paths)
    one = paths[1, 2]
    assert isinstance(one.via, cupy.ndarray)
    assert isinstance(one.distances, cupy.ndarray)
    assert_same(one)
    assert_same(paths[:, 1])
    np.testing.assert_array_equal(paths.predecessors()[1, 2].get(), one.predecessors().get())
    assert [p[0].path(0, 5) for p in paths] == [p[0].path(0, 5) for p in sr.apsp(batch, paths=True)]
    assert len(paths) == 2
    with pytest.raises(IndexError):
        paths[5]
    with pytest.raises(sr.GraphError, match="batch"):
        paths.path(0, 1)


def test_what_rounding_spoils_is_found_again() -> None:
    a = np.array([[INF, 1.0, INF, INF], [INF, INF, 1.0, INF], [INF, INF, INF, 1.0], [1.0, INF, INF, INF]])
    good = sr.apsp(a, paths=True)
    via = good.via.copy()
    via[0, 3], via[0, 2], via[1, 3] = 2, 3, 2  # 0→3 by way of 2, 0→2 by way of 3
    given = on_gpu((good.distances,)), on_gpu(via)
    spoilt = sr.Paths(sr.MIN_PLUS, *given, kept=lambda: on_gpu((a,)))
    assert spoilt.path(0, 3) == [0, 1, 2, 3]
    assert_same(spoilt)
    # Rounding may also hide every tie: then paths alone mend the trees.
    rounded = good.distances.copy()
    rounded[0, 2] = rounded[1, 3] = np.nextafter(2, 3)
    for edges, values, between in ((a, rounded, via), (a.T, rounded.T, via.T)):
        kept = partial(tuple, [edges])
        hidden = sr.Paths(sr.MIN_PLUS, on_gpu((values,)), on_gpu(between), kept=kept)
        expected = sr.Paths(sr.MIN_PLUS, (values,), between, kept=kept)
        np.testing.assert_array_equal(hidden.predecessors().get(), expected.predecessors())
        np.testing.assert_array_equal(hidden.next_hops().get(), expected.next_hops())
    both = sr.Paths(sr.MIN_PLUS, on_gpu((np.stack([good.distances, rounded]),)), on_gpu(np.stack([good.via, via])))
    np.testing.assert_array_equal(both.next_hops()[1].get(), sr.Paths(sr.MIN_PLUS, (rounded,), via).next_hops())
    overwritten = sr.Paths(sr.MIN_PLUS, *given)
    assert overwritten.path(0, 3) == [0, 1, 2, 3]


def test_only_what_is_asked_for_comes_to_the_host(monkeypatch: pytest.MonkeyPatch) -> None:
    n = 600
    paths = sr.apsp(on_gpu(sparse(n, 4, 5)), paths=True)
    copied = []

    get = cupy.ndarray.get

    def watched(array: Any, *arguments: Any, **options: Any) -> Any:
        copied.append(array.nbytes)
        return get(array, *arguments, **options)

    monkeypatch.setattr(cupy.ndarray, "get", watched)
    assert isinstance(paths.distance(0, 1), np.floating)
    assert len(paths.paths([(0, 1), (5, 7)])) == 2
    assert "600 vertices" in repr(paths)
    assert "600" in paths._repr_html_()
    paths.predecessors()
    assert sum(copied) < n * n
    monkeypatch.undo()
    assert repr(paths) == repr(on_host(paths))


def test_text_of_batches_and_of_nothing() -> None:
    for a in (np.zeros((0, 0)), np.zeros((2, 3, 3)), np.zeros((0, 3, 3)), sparse(50, 2)):
        assert repr(sr.apsp(on_gpu(a), paths=True)) == repr(sr.apsp(a, paths=True))


COPIES: list[Callable[[Any], Any]] = [lambda paths: pickle.loads(pickle.dumps(paths)), copy.deepcopy, copy.copy]


@pytest.mark.parametrize("again", COPIES, ids=["pickle", "deepcopy", "copy"])
def test_copies(again: Callable[[Any], Any]) -> None:
    a = sparse(40, 3)
    paths = again(sr.apsp(on_gpu(a), paths=True))
    assert isinstance(paths.via, cupy.ndarray)
    assert_same(paths)


def test_arrays_of_other_libraries() -> None:
    torch = pytest.importorskip("torch")
    a = sparse(90, 3).astype(np.float32)
    paths = sr.apsp(torch.from_numpy(a).cuda(), paths=True)
    for found in (paths.distances, paths.via, paths.predecessors(), paths.next_hops()):
        assert isinstance(found, torch.Tensor)
        assert found.is_cuda
    expected = sr.apsp(a, paths=True)
    before = paths.predecessors().cpu().numpy()
    assert ((before == -9999) == (expected.predecessors() == -9999)).all()
    assert paths.path(0, 5) == expected.path(0, 5) or paths.distance(0, 5) == expected.distance(0, 5)
    batch = sr.apsp(torch.from_numpy(np.stack([a, a])).cuda(), paths=True)
    assert isinstance(batch[1].via, torch.Tensor)


def test_streams() -> None:
    given = on_gpu(sparse(257, 3))
    paths = sr.apsp(given, paths=True)
    expected = paths.predecessors().get()
    cupy.cuda.Device().synchronize()
    stream = cupy.cuda.Stream(non_blocking=True)
    with stream:
        found = paths.predecessors()
        np.testing.assert_array_equal(found.get(), expected)
