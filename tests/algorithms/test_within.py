"""Rows within a limit: compiled and as Python, beside the whole rows."""

from __future__ import annotations

from functools import cmp_to_key
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csgraph

import semiring as sr
from semiring.algorithms import within
from semiring.algorithms.csr import CSR
from semiring.algorithms.search import Searches
from semiring.algorithms.within import rows_within
from semiring.kernels.cpu.loops import interpreted
from tests.algorithms.test_search import graphs

CASES: list[Any] = [
    (sr.MIN_PLUS, (np.float64,), 7.0),
    (sr.MIN_PLUS, (np.int32,), 5),
    (sr.MIN_PLUS, (np.uint8,), 9),
    (sr.MAX_MIN, (np.float32,), 4.0),
    (sr.BOOLEAN, (np.bool_,), True),
    (sr.DISTANCE_HOPS, (np.float64, np.int32), (6.0, 2)),
]


@pytest.mark.parametrize(("semiring", "dtypes", "limit"), CASES)
@given(data=st.data(), backward=st.booleans(), reflexive=st.booleans(), threads=st.sampled_from([1, 3]))
def test_entries_within_a_limit(
    semiring: sr.Semiring, dtypes: Any, limit: Any, data: Any, backward: bool, reflexive: bool, threads: int
) -> None:
    edges = data.draw(graphs(dtypes))
    zero, _ = semiring.identities(edges.dtypes)
    edges = CSR.of(edges.tails, edges.heads, edges.weights, edges.n, zero)
    limit, n = limit if isinstance(limit, tuple) else (limit,), edges.n
    sources = np.array(data.draw(st.lists(st.integers(0, n - 1), max_size=6) if n else st.just([])), np.int64)

    def find() -> CSR:
        searches = Searches(semiring, edges.dtypes, threads)
        return rows_within(searches, edges, sources, limit, reflexive=reflexive, backward=backward, paths=True)

    found = find()
    with interpreted():
        again = find()
    for one, other in zip((found.starts, found.heads, *found.weights), (again.starts, again.heads, *again.weights), strict=True):
        assert np.asarray(one).tobytes() == np.asarray(other).tobytes()
    whole = tuple(np.empty((len(sources), n), d) for d in edges.dtypes)
    graph = edges.transposed() if backward else edges
    how: dict[str, Any] = {"order": "best", "backward": backward, "reflexive": reflexive}
    Searches(semiring, edges.dtypes, 1).rows((graph.starts, graph.heads, graph.weights), sources, whole, None, **how)
    better = Searches(semiring, edges.dtypes, 1).operations.better
    for i in range(len(sources)):
        elements = [tuple(v[i, j] for v in whole) for j in range(n)]
        worst = tuple(d.type(x) for d, x in zip(edges.dtypes, limit, strict=True))
        kept = [j for j, x in enumerate(elements) if better(x, zero) and not better(worst, x)]
        some = slice(found.starts[i], found.starts[i + 1])
        assert found.heads[some].tolist() == kept
        *values, tree = found.weights
        assert [tuple(v[k] for v in values) for k in range(some.start, some.stop)] == [elements[j] for j in kept]
        for j, before in zip(kept, tree[some].tolist(), strict=True):
            assert (before == -1) == (reflexive and j == sources[i])
            assert before == -1 or before in kept or (not reflexive and before == sources[i])


@pytest.mark.parametrize(("semiring", "dtypes", "limit"), CASES)
@given(data=st.data(), most=st.integers(1, 5), reflexive=st.booleans(), limited=st.booleans())
def test_the_best_of_chosen_vertices(
    semiring: sr.Semiring, dtypes: Any, limit: Any, data: Any, most: int, reflexive: bool, limited: bool
) -> None:
    """Best first, and equal elements by their places, compiled and as Python; beside all entries within the limit."""
    edges = data.draw(graphs(dtypes))
    zero, _ = semiring.identities(edges.dtypes)
    edges = CSR.of(edges.tails, edges.heads, edges.weights, edges.n, zero)
    limit = zero if not limited else limit if isinstance(limit, tuple) else (limit,)
    places = np.array(data.draw(st.permutations(range(edges.n))), np.int32)
    places[places >= data.draw(st.integers(0, edges.n))] = -1
    sources, searches = np.arange(edges.n), Searches(semiring, edges.dtypes, data.draw(st.sampled_from([1, 3])))

    def find(**how: Any) -> CSR:
        return rows_within(searches, edges, sources, limit, reflexive=reflexive, **how)

    found, whole = find(most=most, places=places), find()
    with interpreted():
        again = find(most=most, places=places)
    for one, other in zip((found.starts, found.heads, *found.weights), (again.starts, again.heads, *again.weights), strict=True):
        assert np.asarray(one).tobytes() == np.asarray(other).tobytes()
    better: Any = searches.operations.better

    def compare(x: Any, y: Any) -> int:
        return -1 if better(x, y) else int(better(y, x))

    def rank(entry: Any) -> Any:
        return cmp_to_key(compare)(entry[0]), entry[1]

    for i in range(edges.n):
        every = slice(whole.starts[i], whole.starts[i + 1])
        entries = list(zip(zip(*(w[every] for w in whole.weights), strict=True), places[whole.heads[every]].tolist(), strict=True))
        expected = sorted([e for e in entries if e[1] >= 0], key=rank)[:most]
        some = slice(found.starts[i], found.starts[i + 1])
        assert list(zip(zip(*(w[some] for w in found.weights), strict=True), found.heads[some].tolist(), strict=True)) == expected


@pytest.mark.parametrize("room", [1, 1 << 16])
def test_scipys_distances(monkeypatch: pytest.MonkeyPatch, room: int) -> None:
    """Also with so little room that every task is copied often."""
    monkeypatch.setattr(within, "_ROOM", room)
    n, rng = 500, np.random.default_rng(0)
    places = np.unique(rng.integers(0, n * n, 3 * n))
    edges = CSR.of(places // n, places % n, (rng.random(len(places)),), n, (np.inf,))
    matrix = sp.csr_array((edges.weights[0], edges.heads, edges.starts), shape=(n, n))
    for limit in (0.0, 0.4, 1.5, np.inf):
        found = rows_within(Searches(sr.MIN_PLUS, edges.dtypes, 2), edges, np.arange(n), (limit,))
        expected = csgraph.dijkstra(matrix, limit=limit)
        dense = np.full((n, n), np.inf)
        dense[np.arange(n).repeat(np.diff(found.starts)), found.heads] = found.weights[0]
        np.testing.assert_allclose(dense, expected)
