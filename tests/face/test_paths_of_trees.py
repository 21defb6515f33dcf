"""All pairs of a sparse graph with paths by searches: the same answers as from the closure, and all that `Paths` offers."""

from __future__ import annotations

import itertools
import math
import pickle
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import semiring as sr
from semiring.algebra.definition import Semiring
from semiring.planning import planner
from semiring.results.store import PredecessorTrees

WALKS: dict[Semiring, Callable[[list[float]], float]] = {sr.MIN_PLUS: sum, sr.MAX_MIN: min}


@pytest.fixture
def forced(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], None]]:
    """Makes one strategy the cheapest."""

    def force(name: str) -> None:
        for strategy, costs in (("search", "search_seconds"), ("whole", "closure_seconds")):
            seconds = 1e-9 if strategy == name else 1e9
            monkeypatch.setattr(planner, costs, lambda *_, seconds=seconds, **__: seconds)
        planner._plans.clear()

    yield force
    planner._plans.clear()


def _graph(seed: int, least: int = 0) -> Any:
    """A graph with ties, loops, and cycles of weight 0 unless `least` forbids them."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 20))
    m = int(rng.integers(0, 4 * n))
    return sp.coo_array((rng.integers(least, 5, m).astype(float), rng.integers(0, n, (2, m))), shape=(n, n)).tocsr()


@pytest.mark.sampled(11)
@pytest.mark.parametrize("reflexive", [True, False])
@pytest.mark.parametrize("semiring", WALKS, ids=str)
@pytest.mark.parametrize("seed", range(8))
def test_trees_answer_as_the_closure_does(forced: Any, seed: int, semiring: Semiring, reflexive: bool) -> None:
    graph = _graph(seed)
    forced("whole")
    whole = sr.closure(graph, semiring, paths=True, reflexive=reflexive)
    forced("search")
    found = sr.closure(graph, semiring, paths=True, reflexive=reflexive)
    assert type(whole) is type(found) is sr.Paths
    assert isinstance(found._store, PredecessorTrees)
    by_construction = sr.Paths(semiring, (found.values,), found.via, reflexive=reflexive)
    assert np.array_equal(found.values, whole.values)
    assert repr(found) == repr(whole)
    for source in found.nodes:
        for target, walk, by_via in zip(found.nodes, found.paths_from(source), by_construction.paths_from(source), strict=True):
            assert bool(walk) == bool(by_via) == bool(whole.path(source, target))
            for path in (walk, by_via):
                if len(path) > 1:
                    assert (path[0], path[-1]) == (source, target)
                    weights = [float(graph[u, v]) for u, v in itertools.pairwise(path)]
                    assert WALKS[semiring](weights) == found.distance(source, target)
    for trees in (sr.Paths.predecessors, sr.Paths.next_hops):
        assert np.array_equal(trees(found) >= 0, trees(whole) >= 0)
    assert len(found.to_frame(paths=True)) == len(whole.to_frame())
    assert found.to_networkx().size("weight") == whole.to_networkx().size("weight")


def test_next_hops_lead_along_best_paths(forced: Any) -> None:
    forced("search")
    graph = _graph(3, least=1)
    found = sr.apsp(graph, paths=True)
    hops, lengths = found.next_hops(), found.distances
    for i, j in zip(*np.nonzero(hops >= 0), strict=True):
        assert math.isclose(graph[i, hops[i, j]] + lengths[hops[i, j], j], lengths[i, j])


def test_trees_are_saved_and_pickled(forced: Any, tmp_path: Path) -> None:
    forced("search")
    found = sr.apsp(sr.edges([("a", "b", 1.5), ("b", "c", 2.0), ("c", "a", 0.5), ("a", "c", 9.0)]), paths=True)
    assert isinstance(found._store, PredecessorTrees)
    assert found.path("a", "c") == ["a", "b", "c"]
    assert found.via.tolist() == [[-1, -1, 1], [2, -1, -1], [-1, 0, -1]]
    again = pickle.loads(pickle.dumps(found))
    found.save(tmp_path / "paths.npz")
    for other in (again, sr.Paths.load(tmp_path / "paths.npz")):
        assert other.path("b", "a") == ["b", "c", "a"]
        assert np.array_equal(other.via, found.via)
        assert np.array_equal(other.predecessors(), found.predecessors())


def test_one_vertex_and_an_unknown_one_are_refused(forced: Any) -> None:
    forced("search")
    found = sr.apsp(_graph(5), paths=True)
    with pytest.raises(sr.GraphError, match="0 is one vertex"):
        found[0]
    with pytest.raises(sr.GraphError, match="there is no vertex"):
        found.path(0, 999)
