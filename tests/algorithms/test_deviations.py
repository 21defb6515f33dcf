"""Deviations of random graphs, searched by a compiled loop and by the same loop in Python."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from semiring.algorithms.csr import CSR
from semiring.algorithms.simple_paths import Deviations, simple_paths
from semiring.kernels.cpu.loops import interpreted

LENGTHS = st.integers(0, 3) | st.floats(0, 3)


@given(st.integers(1, 9), st.data())
def test_searches(n: int, data: st.DataObject) -> None:
    """With loops, parallel edges, lengths of 0, and bounds below the distances; records and ways agree too."""
    vertices = st.integers(0, n - 1)
    degrees = data.draw(st.lists(st.integers(0, 4), min_size=n, max_size=n))
    m = sum(degrees)
    heads = np.array(data.draw(st.lists(vertices, min_size=m, max_size=m)), np.int32)
    weights = np.array(data.draw(st.lists(LENGTHS, min_size=m, max_size=m)), np.float64)
    ahead = np.array(data.draw(st.lists(st.sampled_from([0.0, 0.0, 0.0, np.inf]), min_size=n, max_size=n)))
    target = data.draw(vertices)
    compiled, python = (Deviations(np.cumsum([0, *degrees]), heads, weights, ahead, target) for _ in range(2))
    for _ in range(data.draw(st.integers(1, 4))):
        some = data.draw(st.lists(vertices, max_size=2))
        if data.draw(st.booleans()):
            compiled.open()
            python.open()
            compiled.block(some)
            python.block(some)
        asked = data.draw(st.tuples(vertices, LENGTHS.map(float), st.just(some), st.sampled_from([np.inf, 4.0])))
        found = compiled.search(*asked)
        with interpreted():
            assert found == python.search(*asked)
        assert compiled._records.tobytes() == python._records.tobytes()
        assert found is None or compiled._way[: len(found[1])].tolist() == python._way[: len(found[1])].tolist() == found[1][::-1]


def test_paths() -> None:
    for n, m in ((2, 1), (8, 30), (40, 120)):
        rng = np.random.default_rng(n)
        graph = CSR.of(rng.integers(0, n, m), rng.integers(0, n, m), (rng.integers(0, 5, m) / 2,), n, (np.inf,))
        found = list(simple_paths(graph, 0, n - 1, 20))
        with interpreted():
            assert list(simple_paths(graph, 0, n - 1, 20)) == found
