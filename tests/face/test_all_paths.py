"""`Paths.all_paths` and `Paths.count`: every kind of graph and of paths, names, and refusals."""

from __future__ import annotations

import contextlib
import itertools
import math
import pickle
from fractions import Fraction
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
import sympy
from hypothesis import given
from hypothesis import strategies as st

import semiring as sr
from semiring.cli import main

INF = math.inf
SQUARE = np.array([[0, 1, 1, INF], [INF, 0, INF, 1], [INF, INF, 0, 1], [INF, INF, INF, 0]])
BOTH = [[0, 1, 3], [0, 2, 3]]


def kinds(a: Any) -> list[Any]:
    tails, heads = np.nonzero(np.isfinite(a) & ~np.eye(len(a), dtype=bool))
    weights = a[tails, heads]
    graph = nx.DiGraph()
    graph.add_nodes_from(range(len(a)))
    graph.add_weighted_edges_from(zip(tails.tolist(), heads.tolist(), weights.tolist(), strict=True))
    return [a, sp.csr_array((weights, (tails, heads)), shape=a.shape), graph, a[::-1, ::-1][::-1, ::-1], np.array(a, object)]


@given(data=st.data(), n=st.integers(0, 6), directed=st.booleans())
def test_networkx(data: Any, n: int, directed: bool) -> None:
    weights = data.draw(st.lists(st.sampled_from([INF, 0.0, 1.0, 2.0]), min_size=n * n, max_size=n * n))
    a = np.array(weights).reshape(n, n)
    a = a if directed else np.minimum(a, a.T)
    np.fill_diagonal(a, 0)
    before = a.copy()
    options: dict[str, Any] = data.draw(
        st.sampled_from([{}, {"sources": list(range(n))}, {"targets": list(range(n))}, {"method": "recursive"}])
    )
    graph = kinds(a)[2]
    for given_graph in kinds(a):
        nonedge = None if given_graph is graph else INF
        some: dict[str, Any] = options if n else {}
        paths = sr.apsp(given_graph, paths=True, nonedge=nonedge, **some)
        for i, j in itertools.product(range(n), repeat=2):
            expected = set(map(tuple, nx.all_shortest_paths(graph, i, j, weight="weight"))) if np.isfinite(paths.distance(i, j)) else set()
            found = list(paths.all_paths(i, j))
            assert len(found) == len(expected)
            assert set(map(tuple, found)) == expected
            cyclic = (a[~np.eye(n, dtype=bool)] == 0).any()
            with contextlib.suppress(*[sr.GraphError] * bool(cyclic)):
                assert paths.count(i, j) == len(expected)
    assert np.array_equal(a, before)


def test_kinds_of_paths(tmp_path: Path) -> None:
    cases: list[dict[str, Any]] = [{}, {"sources": [0]}, {"targets": 3}, {"sources": 0, "targets": 3}, {"limit": 2}]
    for graph in kinds(SQUARE):
        for options in cases:
            paths = sr.apsp(graph, paths=True, **options)
            for one in (paths, pickle.loads(pickle.dumps(paths))):
                assert sorted(one.all_paths(0, 3)) == BOTH
                assert one.count(0, 3) == 2
    paths = sr.apsp(SQUARE, paths=True, limit=1)
    assert (list(paths.all_paths(0, 3)), paths.count(0, 3), paths.count(0, 1)) == ([], 0, 1)
    zeros = np.where(np.isinf(SQUARE), 0, SQUARE)
    assert sr.apsp(zeros, paths=True, limit=2, nonedge=0).count(0, 3) == 2
    batch = sr.apsp(np.stack([SQUARE, SQUARE]), paths=True)
    assert batch[1].count(0, 3) == 2
    with pytest.raises(sr.GraphError, match="choose one first"):
        batch.all_paths(0, 3)
    sr.apsp(np.array([[0, 1], [3, 0]]), paths=True).save(tmp_path / "paths.npz")
    with pytest.raises(sr.GraphError, match="not saved"):
        sr.Paths.load(tmp_path / "paths.npz").count(0, 1)
    with pytest.raises(sr.GraphError, match="overwrite=False"):
        sr.apsp(SQUARE.copy(), paths=True, overwrite=True).all_paths(0, 3)
    paths = sr.apsp(SQUARE, paths=True)
    for _ in range(2):  # the sources that are kept are few
        assert [sum(1 for _ in paths.all_paths(i, 3)) for i in range(4)] == [2, 1, 1, 1]


def test_other_semirings_and_exact_numbers() -> None:
    widths = sr.edges([("a", "b", 5), ("b", "d", 3), ("a", "c", 3), ("c", "d", 4), ("a", "d", 2)])
    assert sorted(sr.closure(widths, "max-min", paths=True).all_paths("a", "d")) == [["a", "b", "d"], ["a", "c", "d"]]
    cycle = sr.closure(sr.edges([("a", "b", 0), ("b", "a", 0)]), "min-plus", reflexive=False, paths=True)
    assert list(cycle.all_paths("a", "a")) == [["a", "b", "a"]]
    third = Fraction(1, 3)
    exact = np.array([[0, third, 1], [INF, 0, 2 * third], [INF, INF, 0]], dtype=object)
    assert sr.apsp(exact, paths=True).count(0, 2) == 2
    top = np.iinfo(np.int16).max
    near = np.array([[0, 4000, 8000], [top, 0, 4000], [top, top, 0]], dtype=np.int16)
    assert sr.apsp(near, paths=True).count(0, 2) == 2
    negative = np.array([[0, 4, 1], [INF, 0, -3], [INF, INF, 0.0]])
    assert sorted(sr.apsp(negative, paths=True).all_paths(0, 2)) == [[0, 1, 2], [0, 2]]
    lopsided = sr.Semiring("lopsided", min, lambda a, b: abs(a) + b, zero=INF, one=0, domain=(0, INF))
    with pytest.raises(sr.LawError, match="unlike lopsided"):
        sr.closure(SQUARE, lopsided, paths=True).count(0, 3)
    x = sympy.Symbol("x", positive=True)
    with pytest.raises(sr.DTypeError, match="symbols"):
        sr.apsp(sympy.Matrix([[0, x], [sympy.oo, 0]]), paths=True).count(0, 1)


def test_a_cycle_of_length_zero_is_named() -> None:
    paths = sr.apsp(sr.edges([("a", "b", 1), ("b", "c", 0), ("c", "b", 0), ("c", "d", 1)]), paths=True)
    assert list(paths.all_paths("a", "d")) == [["a", "b", "c", "d"]]
    with pytest.raises(sr.GraphError, match=r"cycle '[bc]' → '[bc]' → '[bc]'"):
        paths.count("a", "d")
    with pytest.raises(sr.GraphError, match="no vertex"):
        paths.all_paths("a", "e")
    between = sr.apsp(sr.edges([("a", "b", 1)]), paths=True, sources=["a"])
    with pytest.raises(sr.GraphError, match="no source"):
        between.count("b", "a")


def test_command_line(tmp_path: Path, capsys: Any) -> None:
    file = tmp_path / "ways.txt"
    file.write_text("a b 1\nb d 1\na c 1\nc d 1\n", encoding="utf-8")
    main(["apsp", str(file), "--from", "a", "--to", "d", "--all"])
    assert sorted(capsys.readouterr().out.splitlines()) == ["2: a → b → d", "2: a → c → d"]
