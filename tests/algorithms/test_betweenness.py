"""Betweenness beside exact counts of paths, and its compiled loops beside the same loops in Python."""

from __future__ import annotations

from fractions import Fraction
from math import comb

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from semiring.algorithms.betweenness import _ENTRY, _LENGTH, _LEVEL, Searched, _add_by_lengths, _add_by_levels, _Shares, betweenness
from semiring.kernels.cpu.loops import interpreted


def grid(side: int, weights: bool) -> Searched:
    """A square of streets that lead right and down: between two crossings there are as many shortest paths as orders of steps."""
    n = side * side
    heads = [[v + 1] * (v % side < side - 1) + [v + side] * (v < n - side) for v in range(n)]
    starts = np.concatenate([[0], np.cumsum([len(h) for h in heads])]).astype(np.int64)
    flat = np.array([h for some in heads for h in some], np.int32)
    return Searched(starts, flat, np.full(len(flat), 0.5) if weights else None)


@pytest.mark.parametrize("weights", [False, True])
def test_counts_beyond_64_bits(weights: bool) -> None:
    side = 40  # with 2.7e22 paths from corner to corner
    n = side * side
    assert comb(2 * side - 2, side - 1) > 2**64
    worth = np.zeros(n)
    worth[-1] = 1
    nodes, edges = betweenness(grid(side, weights), np.array([0]), worth=worth, edges=True)
    total = comb(2 * side - 2, side - 1)
    for v in (1, side, side + 1, 7 * side + 20, n - 2):
        row, column = divmod(v, side)
        before, after = comb(row + column, row), comb(2 * side - 2 - row - column, side - 1 - row)
        assert nodes[v] == pytest.approx(float(Fraction(before * after, total)), rel=1e-12)
    assert edges[:2].tolist() == pytest.approx([0.5, 0.5])
    assert nodes[0] == nodes[-1] == 0  # the ends are not between


@pytest.mark.parametrize("weights", [False, True])
def test_threads_change_no_bit(weights: bool) -> None:
    rng = np.random.default_rng(2)
    n, m = 300, 1500
    tails = np.sort(rng.integers(0, n, m))
    starts = np.searchsorted(tails, np.arange(n + 1)).astype(np.int64)
    graph = Searched(starts, rng.integers(0, n, m).astype(np.int32), rng.integers(0, 4, m) / 8 if weights else None)
    one, *others = (betweenness(graph, np.arange(n), edges=True, threads=threads) for threads in (1, 2, 7))
    for other in others:
        assert all(x.tobytes() == y.tobytes() for x, y in zip(one, other, strict=True))


def test_nothing() -> None:
    empty = Searched(np.zeros(1, np.int64), np.empty(0, np.int32))
    assert [len(found) for found in betweenness(empty, np.empty(0, np.int64), edges=True)] == [0, 0]
    alone = Searched(np.zeros(3, np.int64), np.empty(0, np.int32), np.empty(0))
    assert betweenness(alone, np.arange(2), ends=True)[0].tolist() == [0, 0]


@pytest.mark.parametrize("weighted", [False, True])
@given(st.integers(0, 8), st.data())
def test_loops_run_as_python(weighted: bool, n: int, data: st.DataObject) -> None:
    """Graphs have loops, parallel edges and weights of 0; all memory agrees afterwards."""
    degrees = data.draw(st.lists(st.integers(0, 4), min_size=n, max_size=n))
    m = sum(degrees)
    starts = np.cumsum([0, *degrees])
    heads = np.array(data.draw(st.lists(st.integers(0, max(n - 1, 0)), min_size=m, max_size=m)), np.int32)
    weights = np.array(data.draw(st.lists(st.integers(0, 3), min_size=m, max_size=m)), np.float64) / 3
    sources = np.array(data.draw(st.lists(st.integers(0, n - 1), max_size=3)) if n else [], np.int64)
    edges, own, ends, keeps = (data.draw(st.booleans()) for _ in range(4))
    worth = np.array(data.draw(st.lists(st.floats(0, 3), min_size=n, max_size=n)), np.float64)

    def memory() -> list[np.ndarray]:
        table = np.zeros(n * len(sources), _ENTRY) if keeps else None
        sums = _Shares(np.zeros(n), np.zeros(m) if edges else None, worth, own, ends, np.arange(n)[::-1].copy(), table, n)
        order, last = np.zeros(n, np.int32), len(sources)
        if weighted:
            tails, queue = np.arange(n, dtype=np.int32).repeat(degrees), np.zeros(m + 1, np.int64)
            records, links, keys = np.zeros(n, _LENGTH), np.zeros(m, np.int32), (np.zeros(m + 1), np.zeros(m + 1, np.int64))
            _add_by_lengths(n, starts, heads, tails, weights, sources, 0, last, sums, records, order, links, queue, keys)
            return [sums.nodes, *[part for part in (sums.edges, table) if part is not None], records, order, links, queue, *keys]
        records = np.zeros(n, _LEVEL)
        _add_by_levels(n, starts, heads, sources, 0, last, sums, records, order)
        return [sums.nodes, *[part for part in (sums.edges, table) if part is not None], records, order]

    compiled = memory()
    with interpreted():
        python = memory()
    assert [found.tobytes() for found in compiled] == [found.tobytes() for found in python]


@pytest.mark.parametrize("weights", [False, True])
def test_a_grid_in_python(weights: bool) -> None:
    graph, sources = grid(5, weights), np.arange(25)
    found = betweenness(graph, sources, edges=True, ends=True)
    with interpreted():
        python = betweenness(graph, sources, edges=True, ends=True)
    assert [part.tobytes() for part in found] == [part.tobytes() for part in python]
