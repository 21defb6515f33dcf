"""`Paths.along`: other attributes along the best paths, beside the same sums path by path."""

from __future__ import annotations

import contextlib
import functools
import itertools
import math
import operator
import pickle
from fractions import Fraction
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd  # type: ignore[import-untyped]  # it ships no types
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

import semiring as sr
from semiring.algorithms.predecessors import multiply_along
from semiring.kernels.cpu.loops import interpreted
from semiring.kernels.select import element_operations

INF = math.inf


def climbed(tree: Any, i: int, j: int) -> list[int]:
    """The path of a row of predecessors."""
    path = [j]
    while path[-1] != i:
        path.append(int(tree[i, path[-1]]))
    return path[::-1]


def sums(paths: Any, b: Any, n: int) -> Any:
    found, tree = np.full((n, n), INF), paths.predecessors()
    for i, j in itertools.product(range(n), repeat=2):
        if i == j or tree[i, j] >= 0:
            found[i, j] = sum(b[u, v] for u, v in itertools.pairwise(climbed(tree, i, j)))
    return found


@given(data=st.data(), n=st.integers(0, 7))
def test_sums(data: Any, n: int) -> None:
    weights = data.draw(st.lists(st.sampled_from([INF, 0.0, 1.0, 2.0]), min_size=n * n, max_size=n * n))
    a = np.array(weights).reshape(n, n)
    b = np.arange(n * n).reshape(n, n) ** 2 % 101 - 17.0
    before = b.copy()
    b.flags.writeable = False
    np.fill_diagonal(a, 0)
    paths = sr.apsp(a, paths=True, nonedge=INF)
    expected = sums(paths, b, n)
    assert np.array_equal(paths.along(b), expected)
    assert np.array_equal(paths.along(sp.csr_array(b)), expected)
    assert np.array_equal(paths.along(pd.DataFrame(b)), expected)
    integers = paths.along(b.astype(np.int8))
    assert integers.dtype == np.int64
    assert np.array_equal(np.where(np.isinf(expected), np.iinfo(np.int64).max, expected), integers)
    exact = paths.along(np.array([[Fraction(x) / 3 for x in row] for row in b], object).reshape(n, n))
    assert np.array_equal(exact, expected / 3) or np.allclose(exact.astype(float), expected / 3)
    pairs = list(itertools.product(range(n), repeat=2))
    chosen = paths.along(b, pairs=pairs)
    walks: Any = [sum(b[u, v] for u, v in itertools.pairwise(p)) if p else INF for p in paths.paths(pairs)]
    assert np.array_equal(chosen, walks)
    assert np.array_equal(paths.along(paths.values if n else b), np.where(np.isinf(expected), INF, paths.values))
    assert np.array_equal(b, before)
    if n:
        forward = sr.apsp(a, paths=True, sources=[n - 1, 0], nonedge=INF)
        tree = np.zeros((n, n), int)
        tree[[n - 1, 0]] = forward.predecessors()
        want: Any = [[sum(b[e] for e in itertools.pairwise(climbed(tree, i, j))) if forward.distance(i, j) < INF else INF for j in range(n)]
                     for i in (n - 1, 0)]  # fmt: skip
        assert np.array_equal(forward.along(b), want)
        backward = sr.apsp(a, paths=True, targets=[0], nonedge=INF)
        want = [[sum(b[e] for e in itertools.pairwise(p)) if (p := backward.path(i, 0)) else INF] for i in range(n)]
        assert np.array_equal(backward.along(b), want)
        limited = sr.apsp(a, paths=True, limit=1, nonedge=INF)
        want = [[sum(b[e] for e in itertools.pairwise(p)) if (p := limited.path(i, j)) else 0 for j in range(n)] for i in range(n)]
        assert np.array_equal(limited.along(b).toarray(), want)


def test_attributes_by_name() -> None:
    igraph = pytest.importorskip("igraph")
    columns = {"from": ["a", "b", "a", "a"], "to": ["b", "c", "c", "b"], "minutes": [5, 3, 9, 4], "metres": [900, 700, 1000, 2000]}
    frame = pd.DataFrame(columns)
    expected = {("a", "b"): 2000, ("a", "c"): 2700, ("b", "c"): 700}  # the second edge from a to b is the faster one
    multi = nx.MultiDiGraph()
    for u, v, minutes, metres in zip(*columns.values(), strict=True):
        multi.add_edge(u, v, minutes=minutes, metres=metres)
    graphs = [sr.edges(frame, source="from", target="to", weight="minutes"), multi, igraph.Graph.from_networkx(multi)]
    for graph in graphs:
        cases: list[dict[str, Any]] = [{}, {"sources": ["a", "b"]} if graph is not graphs[2] else {}, {"limit": 8.0}]
        for options in cases:
            paths = sr.apsp(graph, weight="minutes", paths=True, **options)
            names = paths.nodes
            if graph is graphs[2]:
                names = tuple("abc"[v] if isinstance(v, int) else v for v in names)
            found = paths.along("metres")
            found = found.toarray() if sp.issparse(found) else found
            assert {(names[i], names[j]): found[i, j] for i, j in itertools.combinations(range(3), 2)} == expected
    both = sr.edges(frame, source="from", target="to", weight="minutes", directed=False)
    paths = sr.apsp(both, paths=True)
    assert paths.along("metres", pairs=[("c", "a"), ("c", "c")]).tolist() == [2700, 0]
    assert paths.along(1, pairs=[("c", "a"), ("b", "a")]).tolist() == [2, 1]
    assert paths.along("metres", semiring="max-min", pairs=[("c", "a")]).tolist() == [700]
    assert sr.apsp(both, paths=True, nonedge=4).along("metres", pairs=[("a", "b")]).tolist() == [900]
    reached = sr.transitive_closure(both, paths=True)
    assert reached.along("metres", pairs=[("a", "b")]).tolist() == [900]
    assert [p.along("metres").max() for p in sr.apsp([both, both], paths=True)] == [2700, 2700]
    with pytest.raises(sr.GraphError, match=r"'meters'.*'metres'"):
        paths.along("meters")
    with pytest.raises(sr.GraphError, match=r"array of shape \(3, 3\)"):
        pickle.loads(pickle.dumps(paths)).along("metres")
    multi.add_edge("c", "a", minutes=1)
    with pytest.raises(sr.GraphError, match="1 of 5 edges has no 'metres'"):
        sr.apsp(multi, weight="minutes", paths=True).along("metres")
    graph = nx.DiGraph()
    graph.add_edge("a", "b", minutes=1, metres=2)
    paths = sr.apsp(graph, weight="minutes", paths=True)
    graph.remove_edge("a", "b")
    graph.add_edge("b", "a", minutes=1, metres=2)
    with pytest.raises(sr.GraphError, match="changed: no edge from 'a' to 'b'"):
        paths.along("metres")


def test_other_semirings_and_refusals() -> None:
    a = np.array([[0, 1, INF], [INF, 0, 1], [2.5, INF, 0]])
    b = np.array([[9, 0.5, 9], [9, 9, 0.25], [0.5, 9, 9]])
    paths = sr.apsp(a, paths=True)
    assert paths.along(b, semiring=sr.MAX_TIMES)[0].tolist() == [1, 0.5, 0.125]
    assert [v[0].tolist() for v in paths.along(b, semiring=sr.DISTANCE_HOPS)] == [[0, 0.5, 0.75], [0, 1, 2]]
    cycles = sr.closure(a, "min-plus", reflexive=False, paths=True)
    assert cycles.along(np.where(a > 0, b, 5)).tolist()[0] == [5, 0.5, 0.75]
    ring = sr.closure(sr.edges([(0, 1, 1.0), (1, 0, 2.0)]), "min-plus", reflexive=False, paths=True)
    assert ring.along([[0, 10], [20, 0]]).tolist() == [[30, 10], [20, 30]]
    with pytest.raises(sr.ShapeError, match=r"\(2, 2\).*\(3, 3\)"):
        paths.along(b[:2, :2])
    with pytest.raises(sr.GraphError, match="'metres'"):
        paths.along("metres")
    with pytest.raises(sr.OverflowRiskError):
        paths.along(np.full((3, 3), 2**62))
    with pytest.raises(sr.GraphError, match="choose one first"):
        sr.apsp(np.stack([a, a]), paths=True).along(b)
    with pytest.raises(sr.GraphError, match="no vertex"):
        paths.along(b, pairs=[(0, 7)])
    words = sr.Semiring("first", min, lambda x, y: x * 10 + y, zero=INF, one=0, domain=(0, INF))
    assert paths.along(np.array([[0, 1, 0], [0, 0, 2], [3, 0, 0]]), semiring=words, pairs=[(0, 2), (2, 1)]).tolist() == [12, 31]
    target = sr.apsp(a, paths=True, targets=[2, 1])
    assert target.along(np.array([[0, 1, 0], [0, 0, 2], [3, 0, 0.0]]), semiring=words).tolist() == [[12, 1], [2, 0], [0, 31]]


@given(st.integers(0, 6), st.integers(0, 3), st.data())
def test_the_loop_is_the_same_compiled(n: int, rows: int, data: Any) -> None:
    trees = np.full((rows, n), -1, np.int32)
    for i, v in itertools.product(range(rows), range(n)):
        trees[i, v] = data.draw(st.integers(-1, v - 1))
    order = np.array(data.draw(st.permutations(range(n))), int)  # so that predecessors come later too
    moved = np.full_like(trees, -1)
    moved[:, order] = np.where(trees < 0, -1, order[trees] if n else trees)
    given_values = np.arange(rows * n, dtype=float).reshape(rows, n) + 1
    found = []
    for run in (contextlib.nullcontext(), interpreted()):
        values = given_values.copy()
        with run:
            assert multiplied(moved, values)
        found.append(values)
    for i, v in itertools.product(range(rows), range(n)):
        walk = []
        while moved[i, v] >= 0:
            walk.append(given_values[i, v])
            v = int(moved[i, v])
        if walk:
            assert found[0][i].tolist().count(functools.reduce(operator.add, walk)) > 0
    assert np.array_equal(found[0], found[1])
    if n > 1 and rows:
        moved[0, :2] = 1, 0
        assert not multiplied(moved, given_values.copy())


def multiplied(trees: Any, values: Any) -> bool:
    count, n = trees.shape
    single = element_operations(sr.MIN_PLUS, (values.dtype,))
    return multiply_along(count, n, trees, (values,), np.zeros(n, int), np.empty(n, np.int32), semiring=single, backward=False)


def numbers(found: Any) -> Any:
    """Arrays of the host."""
    return tuple(map(numbers, found)) if isinstance(found, tuple) else found.get() if hasattr(found, "get") else np.asarray(found)


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64])
@pytest.mark.filterwarnings("ignore::semiring.NonEdgeWarning")
def test_on_a_gpu(dtype: Any) -> None:
    cupy = pytest.importorskip("cupy")
    rng, n = np.random.default_rng(0), 60
    there = rng.random((n, n)) < 0.1
    a = np.where(there, rng.permutation(n * n).reshape(n, n) ** 2, np.iinfo(dtype).max if dtype is np.int64 else INF)  # hardly a tie
    a, b = a.astype(np.float64 if dtype is np.float32 else dtype), rng.integers(0, 9, (n, n)).astype(dtype)
    others = [b, cupy.asarray(b), b.tolist(), sp.csr_array(b), cupy.asfortranarray(cupy.asarray(b)), 1]
    cases: list[dict[str, Any]] = [{}, {"sources": [7, 2]}, {"sources": 7}, {"targets": [3, 1]}, {"reflexive": False}]
    for options in cases:
        gpu, host = (sr.closure(given, "min-plus", paths=True, **options) for given in (cupy.asarray(a), a))
        chosen = list(itertools.product([7] if "sources" in options else gpu.nodes, [3] if "targets" in options else gpu.nodes))
        for other in others:
            same = 1 if isinstance(other, int) else b
            found, expected = numbers(gpu.along(other)), host.along(same)
            np.testing.assert_array_equal(found, expected)
            assert isinstance(other, int | list) or found.dtype == expected.dtype
            np.testing.assert_array_equal(numbers(gpu.along(other, pairs=chosen)), host.along(same, pairs=chosen))
        for name in ("max-min", "distance-hops"):
            for paths in (gpu, host):
                np.testing.assert_array_equal(numbers(paths.along(others[1], semiring=name)), host.along(b, semiring=name))
    gpu = sr.apsp(cupy.asarray(a), paths=True)
    with pytest.raises(sr.GraphError, match="no edges with the attribute 'metres'"):
        gpu.along("metres")
    with pytest.raises(sr.ShapeError, match=r"\(2, 2\).*\(60, 60\)"):
        gpu.along(cupy.zeros((2, 2)))


@pytest.mark.gpu
def test_structured_paths_and_tensors_on_a_gpu() -> None:
    cupy = pytest.importorskip("cupy")
    rng, n = np.random.default_rng(1), 40
    a = np.where(rng.random((n, n)) < 0.2, rng.random((n, n)), INF)
    b, hops = rng.integers(0, 9, (n, n)), np.where(a < INF, 1.0, INF)
    expected = sr.apsp(a, paths=True).along(b)
    pairs = sr.closure((cupy.asarray(a), cupy.asarray(hops)), sr.DISTANCE_HOPS, paths=True)
    np.testing.assert_array_equal(numbers(pairs.along(cupy.asarray(b))), expected)
    limited = sr.apsp(cupy.asarray(a), limit=0.5, paths=True).along(cupy.asarray(b))
    np.testing.assert_array_equal(numbers(limited.toarray()), sr.apsp(a, limit=0.5, paths=True).along(b).toarray())
    torch = pytest.importorskip("torch")
    tensors = [torch.from_numpy(v).cuda() for v in (a, b)]
    paths = sr.apsp(tensors[0], paths=True)
    np.testing.assert_array_equal(paths.along(tensors[1]).cpu().numpy(), expected)
    np.testing.assert_array_equal(paths.along(tensors[1], pairs=[(0, 9), (3, 3)]).cpu().numpy(), [expected[0, 9], expected[3, 3]])
    graph = nx.DiGraph()
    graph.add_edge("a", "b", minutes=5.0, metres=900)
    graph.add_edge("b", "c", minutes=3.0, metres=700)
    assert sr.apsp(graph, weight="minutes", paths=True, device="cuda").along("metres").tolist()[0] == [0, 900, 1600]
