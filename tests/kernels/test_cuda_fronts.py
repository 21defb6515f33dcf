"""What is launched for the fronts of an elimination on a GPU, carried out by NumPy beside the host's elimination."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import semiring as sr
from semiring.kernels.cuda.fronts import CudaFronts, front_bytes
from tests.face.test_factor import roads

Array = np.ndarray[Any, Any]

SIDE = 64
"""Of pivot blocks and tiles of numbers of 4 bytes."""


def carry_out(plan: Any, found: Any, weights: Array, fronts: dict[int, Array], upper: Array, lower: Array) -> None:
    """The launches of a plan over min-plus, with a check of how many blocks each has."""
    nodes, w, m = found.nodes, found.widths, found.sides

    def places(s: int) -> Array:
        own = np.arange(nodes.columns[s], nodes.columns[s + 1])
        return np.concatenate([own, nodes.rows[nodes.row_starts[s] : nodes.row_starts[s + 1]]])

    for name, first, listed, base, blocks, step, which in plan.launches:
        some = plan.fronts[first : first + listed].tolist()
        starts = plan.starts[which, first : first + listed + 1]
        assert blocks == (listed if which < 0 else starts[-1] - base)
        assert which < 0 or base == starts[0]
        for number, s in enumerate(some):
            front, k = fronts.get(s), SIDE * step
            each = None if which < 0 else starts[number + 1] - starts[number]
            after = min(k + SIDE, int(w[s]))
            K, beside = slice(k, after), np.r_[0:k, after : int(m[s])]
            tiles = step + -(-(int(m[s]) - after) // SIDE)
            if name == "clear_band":
                fronts[s] = np.full((m[s], m[s]), np.inf, np.float32)
                assert each == -(-int(m[s]) // 16)
                continue
            if name == "locate_rows":
                continue
            assert front is not None
            if name == "enter_edges":
                np.fill_diagonal(front[: w[s], : w[s]], 0)
                e = slice(*nodes.entry_starts[s : s + 2])
                at = np.searchsorted(places(s), nodes.entry_rows[e]), np.searchsorted(places(s), nodes.entry_columns[e])
                np.minimum.at(front, at, weights[found.entries[e]])
            elif name == "extend_band":
                for c in nodes.children[nodes.child_starts[s] : nodes.child_starts[s + 1]].tolist():
                    to = np.searchsorted(places(s), places(c)[w[c] :])
                    front[np.ix_(to, to)] = np.minimum(front[np.ix_(to, to)], fronts[c][w[c] :, w[c] :])
            elif name == "close_pivots":
                for p in range(k, after):
                    front[K, K] = np.minimum(front[K, K], front[K, p, None] + front[None, p, K])
            elif name == "update_both":
                assert each == 2 * tiles
                if v := beside.tolist():
                    front[K, v] = (front[K, K, None] + front[K, v][None]).min(axis=1)
                    front[v, K] = (front[v, K][..., None] + front[K, K][None]).min(axis=1)
            elif name == "update_rest":
                assert each == tiles**2
                for p in range(k, after):
                    front[np.ix_(beside, beside)] = np.minimum(
                        front[np.ix_(beside, beside)], front[beside, p, None] + front[None, p, beside]
                    )
            else:
                assert name == "keep_band"
                own = slice(*nodes.panel_starts[s : s + 2])
                upper[own], lower[own] = front[: w[s]].ravel(), front[:, : w[s]].ravel()


@pytest.mark.parametrize("n", [1, 300])
def test_plans_eliminate_what_the_host_does(n: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("semiring.kernels.cuda.fronts.upload", lambda values, dtype: np.asarray(values, dtype))
    rng = np.random.default_rng(3)
    graph = roads(n, rng, directed=True)
    if n > 1:  # with a front of three pivot blocks
        graph = graph.tolil()
        graph[:150, :150] = rng.integers(1, 99, (150, 150))
        graph = graph.tocsr()
    f = sr.factor(graph, dtype="float32")
    matrix, elimination = f._matrix, f._matrix.elimination
    found = elimination.found
    there = CudaFronts(sr.MIN_PLUS, matrix.edges.dtypes, 0, found.nodes, found.parent, found.entries, by_star=False)
    upper, lower = (np.empty(found.fill.panels, np.float32) for _ in range(2))
    fronts: dict[int, Array] = {}
    assert front_bytes(found.nodes, matrix.edges.dtypes) == 4 * (int((found.sides**2).sum()) + 2 * found.fill.panels)
    due = np.ones(len(found.parent), bool)
    for _ in range(3):
        carry_out(there._plan(due), found, matrix.edges.weights[0], fronts, upper, lower)
        for mine, (theirs,) in zip((upper, lower), elimination.panels, strict=True):
            np.testing.assert_array_equal(mine, theirs)
        if not graph.nnz:
            break
        some = rng.integers(0, graph.nnz, 2)
        tails, heads = (v[some] for v in graph.nonzero())
        f.update((tails, heads, np.array([1.0, 2.0])))
        due = elimination._above_edges(matrix.located(tails, heads))
        assert n == 1 or not due.all()
