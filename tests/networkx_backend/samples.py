"""Graphs of every kind that NetworkX knows, what a call on them comes to, and when two answers are as good as each other."""

from __future__ import annotations

import importlib
import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import strategies as st

nx: Any = importlib.import_module("networkx")  # typeshed knows it without its backends

KINDS = [nx.Graph, nx.DiGraph, nx.MultiGraph, nx.MultiDiGraph]
NODES = st.one_of(
    st.integers(-3, 9),
    st.text("ab", max_size=2),
    st.floats(0, 2),
    st.tuples(st.integers(0, 3), st.text("xy", max_size=1), st.just("node")),  # no pair, which NetworkX takes for an edge
    st.frozensets(st.integers(0, 2)),
)
INTEGERS = st.integers(0, 9)
SIGNED = st.integers(-2, 9)
FLOATS = st.one_of(st.just(0.0), st.floats(0.125, 64))
MIXED = st.one_of(INTEGERS, FLOATS, st.booleans())


@st.composite
def graphs(draw: st.DrawFn, weights: st.SearchStrategy[Any] = INTEGERS, kinds: Any = tuple(KINDS), acyclic: bool = False) -> Any:
    """A small graph, with self-loops, parallel edges, zero weights and edges without a weight, connected or not."""
    graph = draw(st.sampled_from(kinds))()
    nodes = draw(st.lists(NODES, max_size=7, unique=True))
    graph.add_nodes_from(nodes)
    if nodes:
        number = st.integers(0, len(nodes) - 1)
        for i, j in draw(st.lists(st.tuples(number, number), max_size=20)):
            if acyclic and i == j:
                continue
            u, v = (nodes[min(i, j)], nodes[max(i, j)]) if acyclic else (nodes[i], nodes[j])
            if draw(st.integers(0, 5)):
                graph.add_edge(u, v, weight=draw(weights))
            else:
                graph.add_edge(u, v)
    return graph


def outcome(name: str, graph: Any, backend: str, *args: Any, **arguments: Any) -> Any:
    """What a call returns, or the type of what it raises."""
    try:
        result = getattr(nx, name)(graph, *args, backend=backend, **arguments)
        return dict(result) if isinstance(result, Iterator) else result
    except Exception as error:  # which one is what is compared
        return type(error)


def agree(ours: Any, theirs: Any) -> None:
    """Two answers are the same, up to the rounding of floats."""
    if isinstance(theirs, np.generic):  # weights of NumPy's come back as Python's numbers
        theirs = theirs.item()
    if isinstance(theirs, np.ndarray):
        assert ours.dtype == theirs.dtype
        np.testing.assert_allclose(ours, theirs)
    elif isinstance(theirs, nx.Graph):
        assert type(ours) is type(theirs)
        assert ours.graph == theirs.graph
        assert dict(ours.nodes(data=True)) == dict(theirs.nodes(data=True))
        assert ours.adj == theirs.adj
    elif isinstance(theirs, dict):
        assert isinstance(ours, dict)
        assert ours.keys() == theirs.keys()
        for key, value in theirs.items():
            agree(ours[key], value)
    elif isinstance(theirs, tuple):
        assert isinstance(ours, tuple)
        for mine, other in zip(ours, theirs, strict=True):
            agree(mine, other)
    elif isinstance(theirs, list):
        assert ours == theirs
    elif isinstance(theirs, int):  # floyd_warshall hands out a weight as it is, also True
        assert isinstance(ours, int | float)
        assert ours == theirs
    elif isinstance(theirs, float):
        assert isinstance(ours, int | float)
        assert ours == pytest.approx(theirs, rel=1e-9, abs=1e-9, nan_ok=True)
    else:
        assert type(ours) is type(theirs)
        assert ours == theirs


def lightest(graph: Any, u: Any, v: Any, weight: Any) -> Any:
    """The weight of the lightest edge from u to v."""
    data = graph[u][v]
    return min(d.get(weight, 1) for d in data.values()) if graph.is_multigraph() else data.get(weight, 1)


def agree_in_length(ours: Any, theirs: Any, graph: Any, weight: Any) -> None:
    """Paths from the same sources to the same targets, each along edges, and as short as NetworkX's."""

    def length(path: list[Any]) -> Any:
        return sum(lightest(graph, u, v, weight) if weight is not None else 1 for u, v in itertools.pairwise(path))

    assert ours.keys() == theirs.keys()
    for source, paths in theirs.items():
        assert ours[source].keys() == paths.keys()
        for target, path in paths.items():
            mine = ours[source][target]
            assert (mine[0], mine[-1]) == (source, target)
            assert len(set(mine)) == len(mine)
            assert length(mine) == pytest.approx(length(path))
