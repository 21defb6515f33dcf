"""Strong components and the sets that they reach, beside SciPy's; compiled loops beside the same loops run as Python."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csgraph

from semiring.algorithms.reachability import Sets, reached_components, row_words
from semiring.algorithms.strong_components import strong_components, tarjan
from semiring.kernels.cpu.loops import interpreted
from tests.kernels.test_loops import both

Array = np.ndarray[Any, Any]


def rows_of(n: int, tails: Array, heads: Array) -> tuple[Array, Array]:
    """Compressed rows with the edges of each row in the order given, parallel edges included."""
    return np.append(0, np.cumsum(np.bincount(tails, minlength=n))), heads[np.argsort(tails, kind="stable")]


@st.composite
def graphs(draw: st.DrawFn) -> tuple[Array, Array]:
    """Graphs of 0 to 9 vertices, with loops and parallel edges."""
    n = draw(st.integers(0, 9))
    ends = st.integers(0, n - 1)
    edges = draw(st.lists(st.tuples(ends, ends), max_size=3 * n)) if n else []
    tails, heads = np.array(edges, np.int64).reshape(-1, 2).T
    return rows_of(n, tails, heads)


@given(graphs())
def test_components_are_scipys_in_reverse_topological_order(graph: tuple[Array, Array]) -> None:
    starts, heads = graph
    n, tails = len(starts) - 1, np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    count, component = strong_components(starts, heads)
    if n:
        expected = csgraph.connected_components(sp.csr_array((np.ones(len(heads)), (tails, heads)), shape=(n, n)), connection="strong")
        assert count == expected[0] == len({*zip(component.tolist(), expected[1].tolist(), strict=True)})
    assert set(component.tolist()) == set(range(count))
    assert (component[heads] <= component[tails]).all()
    both(tarjan, n, starts, heads, starts[:-1].copy(), np.full(n, -n - 1), np.full(n, -1), np.full(n, -1))


def contents(sets: Sets) -> list[tuple[list[int], int, int]]:
    """The numbers or the words of each set, in their order in the pool, the number of components, and that of vertices."""
    used = np.minimum(sets.lengths, row_words(np.arange(len(sets.lengths))))
    return [
        (sets.pool[place : place + words].tolist(), length, reached)
        for place, words, length, reached in zip(*(x.tolist() for x in (sets.places, used, sets.lengths, sets.reached)), strict=True)
    ]


def assert_reached(n: int, tails: Array, heads: Array) -> set[str]:
    """Compare the sets with the closure of the components, and with the loops run as Python; return the forms of the sets."""
    starts, heads = rows_of(n, tails, heads)
    tails = np.repeat(np.arange(n), np.diff(starts))
    count, component = strong_components(starts, heads)
    asked: list[int] = []
    sets = reached_components(starts, heads, count, component, asked.append)
    assert asked[-1:] == [sets.pool.nbytes] * (n > 0)
    with interpreted():
        assert contents(reached_components(starts, heads, count, component, asked.append)) == contents(sets)
    closed = np.eye(count, dtype=bool)
    for c in range(count):
        for d in component[heads[component[tails] == c]]:
            closed[c] |= closed[d]
    sizes, forms = np.bincount(component, minlength=count), set()
    for c, (found, length, reached) in enumerate(contents(sets)):
        is_row = length > row_words(c)
        bits = np.unpackbits(np.array(found, np.int32).view(np.uint8), bitorder="little")
        members = np.flatnonzero(bits) if is_row else np.array(found)
        assert sets.places[c] % 2 == 0
        assert sorted(members.tolist()) == np.flatnonzero(closed[c]).tolist()
        assert (length, reached) == (closed[c].sum(), sizes[closed[c]].sum())
        forms.add("row" if is_row else "list")
        # A set of few components with a row of bits below it.
        if not is_row and any(sets.lengths[d] > row_words(d) for d in members if d != c):
            forms.add("list of a row")
    return forms


@given(graphs())
def test_sets_of_small_graphs(graph: tuple[Array, Array]) -> None:
    starts, heads = graph
    n = len(starts) - 1
    assert_reached(n, np.repeat(np.arange(n), np.diff(starts)), heads)


@pytest.mark.parametrize("edges", [0.5, 1.0, 1.3, 3.0])
@pytest.mark.parametrize("n", [0, 1, 64, 65, 300])
def test_sets_of_lists_and_of_rows(n: int, edges: float) -> None:
    rng = np.random.default_rng(n)
    tails, heads = rng.integers(0, n, (2, int(edges * n))) if n else np.zeros((2, 0), np.int64)
    assert_reached(n, tails, heads)
    assert_reached(n, np.minimum(tails, heads), np.maximum(tails, heads))


def test_lists_of_components_in_a_row() -> None:
    """Where few components follow many without edges, the set of a chain that begins after them is a list, and its parts are rows."""
    n = 200
    tails = np.append(np.arange(1, 6), np.arange(n - 3, n))
    heads = np.append(np.arange(5), np.array([5, 5, n - 2]))
    assert assert_reached(n, tails, heads) == {"row", "list", "list of a row"}
