"""Loops of searches, compiled and as Python: both give the same bits, on random graphs over several semirings."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import semiring as sr
from semiring.algorithms.csr import CSR
from semiring.algorithms.heap import pop, push
from semiring.algorithms.search import Searches
from semiring.algorithms.tight_edges import trees_along_tight_edges
from semiring.kernels.cpu.loops import Element, Elements, Floats, Ints, interpreted, loop

SEMIRINGS: list[Any] = [
    (sr.MIN_PLUS, (np.float64,)),
    (sr.MIN_PLUS, (np.int32,)),
    (sr.MAX_PLUS, (np.int16,)),
    (sr.MAX_MIN, (np.float32,)),
    (sr.BOOLEAN, (np.bool_,)),
    (sr.DISTANCE_HOPS, (np.float64, np.int32)),
]

SUMS: list[Any] = [(sr.DISTANCE_COUNT, (np.float64, np.int64)), (sr.BITSET, (np.int64,))]


@st.composite
def graphs(draw: st.DrawFn, dtypes: tuple[Any, ...], *, signed: bool = False) -> CSR:
    """Draw a graph of few vertices, with loops."""
    n = draw(st.integers(0, 7))
    pairs = draw(st.lists(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)), unique=True, max_size=20)) if n else []
    ends = np.array(sorted(pairs), np.int64).reshape(-1, 2)
    numbers = st.integers(-2 if signed else 0, 9)
    weights = tuple(np.array([draw(numbers) for _ in pairs]).astype(d) for d in dtypes)
    return CSR.of(ends[:, 0], ends[:, 1], weights, n, (np.inf,) * len(dtypes))


def rows(semiring: sr.Semiring, edges: CSR, **how: Any) -> tuple[Any, ...]:
    """Search from all vertices."""
    n, searches = edges.n, Searches(semiring, edges.dtypes, 1)
    values, trees = tuple(np.full((n, n), 7, d) for d in edges.dtypes), np.full((n, n), -1, np.int32)
    found = searches.rows((edges.starts, edges.heads, edges.weights), np.arange(n), values, trees, **how)
    return found, trees.tolist(), *(v.tobytes() for v in values), values


@pytest.mark.parametrize("order", ["best", "rounds"])
@pytest.mark.parametrize(("semiring", "dtypes"), SEMIRINGS)
@given(data=st.data(), backward=st.booleans(), reflexive=st.booleans())
def test_rows(semiring: sr.Semiring, dtypes: Any, order: Any, data: Any, backward: bool, reflexive: bool) -> None:
    edges = data.draw(graphs(dtypes, signed=order != "best" and dtypes[0] not in (np.bool_,)))
    how = {"order": "rounds" if semiring is sr.MAX_PLUS else order, "backward": backward, "reflexive": reflexive}
    found = rows(semiring, edges, **how)
    with interpreted():
        assert rows(semiring, edges, **how)[:-1] == found[:-1]


@pytest.mark.parametrize(("semiring", "dtypes"), SEMIRINGS + SUMS)
@given(data=st.data(), backward=st.booleans(), reflexive=st.booleans())
def test_rows_by_components(semiring: sr.Semiring, dtypes: Any, data: Any, backward: bool, reflexive: bool) -> None:
    edges = data.draw(graphs(dtypes, signed=dtypes[0] is not np.bool_))
    if backward:
        edges = edges.transposed()
    (complete, _), *found, values = rows(semiring, edges, order="components", backward=backward, reflexive=reflexive)
    (whole, _), *_, expected = rows(semiring, edges, backward=backward, reflexive=reflexive, order="rounds")
    assert complete == whole
    for one, other in zip(values, expected, strict=True):
        assert one[:complete].tobytes() == other[:complete].tobytes()
    with interpreted():
        assert rows(semiring, edges, order="components", backward=backward, reflexive=reflexive)[1:-1] == tuple(found)


def test_an_acyclic_graph_takes_one_pass() -> None:
    n = 300
    tails, heads = np.triu_indices(n, 1)
    edges = CSR.of(tails, heads, (-((heads - tails) ** 1.5),), n, (np.inf,))
    (complete, seen), *_ = rows(sr.MIN_PLUS, edges, order="components", backward=False)
    assert (complete, seen) == (n, sum((n - i) * (n - i - 1) // 2 for i in range(n)))


@pytest.mark.parametrize(("semiring", "dtypes"), [s for s in SEMIRINGS if s[0] is not sr.MAX_PLUS])
@given(data=st.data())
def test_pairs_and_trees(semiring: sr.Semiring, dtypes: Any, data: Any) -> None:
    edges = data.draw(graphs(dtypes))
    back = edges.transposed()
    there, reverse = ((g.starts, g.heads, g.weights) for g in (edges, back))

    def paths() -> list[Any]:
        return [Searches(semiring, edges.dtypes, 1).path(there, reverse, u, v) for u in range(edges.n) for v in range(edges.n) if u != v]

    def trees() -> Any:
        *_, values = rows(semiring, edges, order="best", backward=False)
        grown = np.full((edges.n, edges.n), -5, np.int32)
        mask = trees_along_tight_edges(semiring, there, reverse, np.arange(edges.n), values, grown, backward=False, threads=1)
        return mask.tolist(), grown[mask].tolist()

    found = repr(paths()), trees() if edges.n else None
    with interpreted():
        assert (repr(paths()), trees() if edges.n else None) == found


@loop
def smaller(x: Element, y: Element) -> bool:
    return bool(x[0] < y[0])


@loop
def sort(n: int, values: Floats, out: Ints, vertices: Ints, keys: Elements) -> int:
    """Sort by a heap: write the numbers of values in ascending order."""
    size = 0
    for i in range(n):
        size = push(vertices, keys, size, i, (values[i],), before=smaller)
    for i in range(n):
        out[i] = vertices[0]
        size = pop(vertices, keys, size, before=smaller)
    return size


@given(st.lists(st.floats(-9, 9), max_size=40))
def test_a_heap_sorts(numbers: list[float]) -> None:
    n, values = len(numbers), np.array(numbers, float)
    found = []
    for python in (False, True):
        out = np.empty(n, np.int64)
        args = n, values, out, np.empty(n, np.int64), (np.empty(n),)
        if python:
            with interpreted():
                assert sort(*args) == 0
        else:
            assert sort(*args) == 0
        found.append(out.tolist())
    assert found[0] == found[1]
    assert values[found[0]].tolist() == sorted(numbers)


@given(graphs((np.float64,)), st.integers(0, 12), st.booleans())
def test_a_limit_ends_searches(edges: CSR, limit: int, backward: bool) -> None:
    how: dict[str, Any] = {"order": "best", "backward": backward}
    ((_, seen), *_, (whole,)), ((_, fewer), *found, (some,)) = (rows(sr.MIN_PLUS, edges, limit=at, **how) for at in (None, (limit,)))
    assert fewer <= seen
    assert np.array_equal(some, np.where(whole <= limit, whole, np.inf))
    with interpreted():
        assert rows(sr.MIN_PLUS, edges, limit=(limit,), **how)[1:-1] == tuple(found)
