"""Graphs with their best paths, and heat maps, by the artists that Matplotlib is given."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import matplotlib
import networkx as nx
import numpy as np
import pytest
import sympy
from matplotlib import pyplot as plt
from matplotlib.collections import LineCollection
from matplotlib.colors import to_rgba
from matplotlib.patches import FancyArrowPatch

import semiring as sr
from semiring.results import pictures
from semiring.results.pictures import layout

INF = np.inf
STREETS = [("home", "shop", 2.0), ("shop", "park", 1.5), ("park", "home", 4.0), ("park", "lake", 1.0), ("home", "lake", 9.0)]
SQUARE = {"home": (0.0, 0.0), "shop": (1.0, 0.0), "park": (1.0, 1.0), "lake": (0.0, 1.0)}


@pytest.fixture(autouse=True)
def _agg() -> Iterator[None]:
    matplotlib.use("Agg")
    yield
    plt.close("all")


@pytest.fixture
def streets() -> sr.Paths:
    paths: sr.Paths = sr.apsp(sr.edges(STREETS), paths=True)
    return paths


def vertices(ax: Any) -> Any:
    """Where vertices are drawn that no highlighted path passes through."""
    return np.asarray(ax.collections[-1].get_offsets())


def legend(ax: Any) -> list[str]:
    return [text.get_text() for text in ax.get_legend().get_texts()]


def drawn(ax: Any) -> Any:
    """The figure as pixels."""
    ax.figure.canvas.draw()
    return np.asarray(ax.figure.canvas.buffer_rgba())


def names(ax: Any) -> set[str]:
    return {text.get_text() for text in ax.texts}


class TestPlot:
    def test_places_edges_and_the_path(self, streets: sr.Paths) -> None:
        ax = streets.plot(SQUARE, highlight=("home", "lake"))
        (line,) = ax.lines
        np.testing.assert_array_equal(line.get_xydata(), [SQUARE[v] for v in streets.path("home", "lake")])
        assert legend(ax) == ["home → lake: 4.5"]
        assert names(ax) == set(SQUARE)
        assert len(vertices(ax)) == 0  # the path passes through all of them
        arrows = [patch for patch in ax.patches if isinstance(patch, FancyArrowPatch)]
        assert len(arrows) == len(STREETS)
        assert {tuple(map(tuple, arrow._posA_posB)) for arrow in arrows} == {(SQUARE[a], SQUARE[b]) for a, b, _ in STREETS}  # type: ignore[attr-defined]

    def test_edges_both_ways_have_no_arrow(self) -> None:
        ax = sr.apsp(sr.edges([("a", "b"), ("b", "a"), ("b", "c")]), paths=True).plot()
        kinds = sorted(type(patch.get_arrowstyle()).__name__ for patch in ax.patches)
        assert kinds == ["Curve", "CurveFilledB"]

    def test_an_edge_bends_around_a_vertex(self) -> None:
        paths = sr.apsp(sr.edges([("a", "b", 1.0), ("b", "c", 1.0), ("a", "c", 5.0)]), paths=True)
        ax = paths.plot(np.array([[0, 0], [1, 0], [2, 0]]))
        bends = [patch.get_connectionstyle().rad for patch in ax.patches]
        assert sorted(bends) == [0, 0, pictures._BEND]
        assert ax.viewLim.y0 < -pictures._BEND
        assert ax.viewLim.y1 > 0.3

    def test_several_paths_and_none(self, streets: sr.Paths) -> None:
        ax = streets.plot(SQUARE, highlight=[("home", "park"), ("lake", "home"), ("shop", "shop")])
        assert legend(ax) == ["home → park: 3.5", "lake → home: no path", "shop → shop: 0"]
        assert [len(line.get_xdata()) for line in ax.lines] == [3, 2, 1]
        assert ax.lines[1].get_linestyle() == "None"
        assert len({line.get_color() for line in ax.lines}) == 3

    @pytest.mark.parametrize("pair", [("a", "b"), ["a", "b"], [("a", "b")], (("a", "b"),)])
    def test_a_pair_alone_or_in_a_list(self, pair: Any) -> None:
        assert legend(sr.apsp(sr.edges([("a", "b", 1.0)]), paths=True).plot(highlight=pair)) == ["a → b: 1"]

    def test_names_of_any_kind(self) -> None:
        odd = [("_x", 1), "$a_$", "_b", None, "c\x1b[31m", "<&>" * 20]
        paths = sr.apsp(sr.edges([(a, b, 1.0) for a, b in pairwise(odd)]), paths=True)
        ax = paths.plot(highlight=[(("_x", 1), "$a_$"), ("_b", None)])
        assert legend(ax) == ["('_x', 1) → $a_$: 1", "_b → None: 1"]
        drawn(ax)
        drawn(paths.heatmap())

    def test_it_is_transparent_and_its_text_is_read_on_black_and_white(self, streets: sr.Paths) -> None:
        for ax in (streets.plot(highlight=("home", "lake")), streets.heatmap()):
            pixels = drawn(ax)
            assert (pixels[0, 0, 3], pixels[-1, -1, 3]) == (0, 0)
            texts = [*ax.texts, *ax.get_legend().get_texts()]
            texts += [*ax.get_xticklabels(), *ax.get_yticklabels(), ax.xaxis.label, ax.yaxis.label] if ax.axison else []
            for text in texts:
                red, green, blue, _ = to_rgba(text.get_color())
                assert 0.2 < 0.3 * red + 0.6 * green + 0.1 * blue < 0.75

    def test_axes_of_the_caller(self, streets: sr.Paths) -> None:
        figure, axes = plt.subplots(1, 2)
        ground = figure.get_facecolor()
        assert streets.plot(ax=axes[0]) is axes[0]
        assert streets.heatmap(ax=axes[1]) is axes[1]
        assert figure.get_facecolor() == ground
        assert plt.get_fignums() == [figure.number]

    @pytest.mark.parametrize("n", [0, 1, 2])
    def test_few_vertices(self, n: int) -> None:
        for matrix in (np.zeros((n, n)), np.full((n, n), INF)):
            paths = sr.apsp(matrix, paths=True, nonedge=INF)
            assert len(vertices(paths.plot())) == n
            drawn(paths.plot())
            drawn(paths.heatmap())

    def test_large_graphs_are_in_a_raster(self) -> None:
        graph = sr.edges([(v, v // 2) for v in range(1, 2500)], directed=False)
        paths = sr.apsp(graph, sources=[0], paths=True)
        ax = paths.plot(highlight=(0, 1000))
        lines, points = ax.collections
        assert isinstance(lines, LineCollection)
        assert len(lines.get_segments()) == 2499
        assert lines.get_rasterized()
        assert points.get_rasterized()
        assert len(vertices(ax)) == 2500 - len(paths.path(0, 1000))
        assert not ax.patches
        assert names(ax) == {str(v) for v in paths.path(0, 1000)}

    def test_a_long_path_names_its_ends(self) -> None:
        paths = sr.apsp(sr.edges([(v, v + 1) for v in range(80)]), paths=True)
        assert names(paths.plot(highlight=(0, 80))) == {"0", "80"}

    def test_too_many_edges(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(pictures, "_DRAWN", 5)
        monkeypatch.setattr(pictures, "_READ", 50)
        paths = sr.apsp(np.arange(36.0).reshape(6, 6), paths=True, nonedge=INF)
        ax = paths.plot()
        assert not ax.patches
        assert len(vertices(ax)) == 6
        monkeypatch.setattr(pictures, "_READ", 10)
        assert len(vertices(paths.plot(np.arange(12).reshape(6, 2)))) == 6
        with pytest.raises(sr.GraphError, match="pos="):
            paths.plot()

    @pytest.mark.parametrize("how", ["dense", "sparse", "overwritten", "between", "loaded"])
    def test_which_edges(self, how: str, tmp_path: Any) -> None:
        a = np.array([[0, 1, 9.0], [INF, 0, 2.0], [INF, INF, 0]])
        graph: Any = sr.edges([(0, 1, 1.0), (1, 2, 2.0), (0, 2, 9.0)]) if how == "sparse" else a.copy()
        paths = sr.apsp(graph, paths=True, overwrite=how == "overwritten", sources=[0] if how == "between" else None)
        if how == "loaded":
            paths.save(tmp_path / "paths.npz")
            paths = sr.Paths.load(tmp_path / "paths.npz")
        assert len(paths.plot().patches) == (2 if how in ("overwritten", "loaded") else 3)  # 0 → 2 is no best path

    def test_other_semirings(self) -> None:
        width = sr.closure(np.array([[INF, 5.0, -INF], [-INF, INF, 3.0], [1.0, -INF, INF]]), sr.MAX_MIN, paths=True)
        assert legend(width.plot(highlight=(0, 2))) == ["0 → 2: 3"]
        hops = sr.closure((np.array([[INF, 2.0], [INF, INF]]), np.array([[INF, 1.0], [INF, INF]])), sr.DISTANCE_HOPS, paths=True)
        assert legend(hops.plot(highlight=(0, 1))) == ["0 → 1: 2, 1"]
        symbols = sr.apsp(sympy.Matrix([[0, sympy.Symbol("x", positive=True)], [sympy.oo, 0]]), paths=True)
        assert legend(symbols.plot(highlight=(0, 1))) == ["0 → 1: x"]

    def test_what_is_refused(self, streets: sr.Paths) -> None:
        for pos in ({"home": (0, 0)}, np.zeros((3, 2)), np.full((4, 2), np.nan), "spring", 5, [(0, 0), 1, 2, 3]):
            with pytest.raises(sr.GraphError, match="pos"):
                streets.plot(pos)
        wrong: list[Any] = ["home", 5, [1, 2, 3], [("home", "park", "lake")], ["home"], [("home", "park"), "lake"]]
        for highlight in wrong:
            with pytest.raises(sr.GraphError, match="highlight"):
                streets.plot(highlight=highlight)
        unknown: list[Any] = [("home", "moon"), [("moon", "home")]]
        for highlight in unknown:
            with pytest.raises(sr.GraphError, match="no vertex 'moon'"):
                streets.plot(highlight=highlight)
        batch = sr.apsp(np.ones((2, 3, 3)), paths=True)
        for method in (batch.plot, batch.heatmap):
            with pytest.raises(sr.GraphError, match="batch"):
                method()

    def test_without_matplotlib(self, streets: sr.Paths, monkeypatch: pytest.MonkeyPatch) -> None:
        for module in [name for name in sys.modules if name.partition(".")[0] == "matplotlib"]:
            monkeypatch.setitem(sys.modules, module, None)
        for method in (streets.plot, streets.heatmap):
            with pytest.raises(sr.SemiringError, match="pip install matplotlib"):
                method()


class TestHeatmap:
    def test_elements_and_what_has_none(self, streets: sr.Paths) -> None:
        ax = streets.heatmap()
        (image,) = ax.images
        shown = image.get_array()
        np.testing.assert_array_equal(shown.mask, np.isinf(streets.distances))
        np.testing.assert_array_equal(shown.compressed(), streets.distances[np.isfinite(streets.distances)])
        assert [text.get_text() for text in ax.get_xticklabels()] == list(streets.nodes)
        assert (ax.get_xlabel(), ax.get_ylabel()) == ("target", "source")
        assert legend(ax) == ["no path"]
        assert len(ax.figure.axes) == 2
        assert ax.figure.axes[1].get_ylabel() == "distance"

    def test_chosen_vertices(self) -> None:
        paths = sr.apsp(sr.edges(STREETS), sources=["park"], targets=["lake", "home"], paths=True)
        ax = paths.heatmap()
        assert ax.images[0].get_array().tolist() == [[1, 4]]
        assert [text.get_text() for text in ax.get_xticklabels()] == ["lake", "home"]
        assert [text.get_text() for text in ax.get_yticklabels()] == ["park"]
        assert ax.get_legend() is None
        drawn(sr.apsp(sr.edges(STREETS), sources=[], paths=True).heatmap())

    def test_large_ones_are_thinned(self) -> None:
        n = 1000
        paths = sr.apsp(np.random.default_rng(0).random((n, n)), paths=True, nonedge=INF)
        ax = paths.heatmap()
        assert ax.images[0].get_array().shape == pictures._SIDES[:1] * 2
        at, texts = ax.get_xticks(), [text.get_text() for text in ax.get_xticklabels()]
        assert 8 <= len(at) <= pictures._TICKS
        assert texts == [str(int(v)) for v in at]

    def test_other_elements(self) -> None:
        width = sr.closure(np.array([[INF, 5.0], [-INF, INF]]), sr.MAX_MIN, paths=True).heatmap()
        assert width.images[0].get_array().tolist() == [[5, 5], [None, 5]]  # infinite ones as the nearest that is not
        drawn(width)
        reach = sr.transitive_closure([[0, 1], [0, 0]], paths=True).heatmap()
        assert len(reach.figure.axes) == 1  # of one value there is no scale
        top = np.iinfo(np.int32).max
        integers = sr.apsp(np.array([[0, 5], [top, 0]], np.int32), paths=True).heatmap()
        assert integers.images[0].get_array().tolist() == [[0, 5], [None, 0]]
        with pytest.raises(sr.DTypeError, match="no numbers"):
            sr.apsp(sympy.Matrix([[0, sympy.Symbol("x", positive=True)], [sympy.oo, 0]]), paths=True).heatmap()


class TestLayout:
    def places(self, graph: Any, **more: Any) -> Any:
        graph = nx.convert_node_labels_to_integers(graph)
        ends = np.array(list(graph.edges), dtype=np.intp).reshape(-1, 2)
        lengths = np.array([d.get("weight", 1.0) for _, _, d in graph.edges(data=True)], dtype=float)
        found = layout(len(graph), ends[:, 0], ends[:, 1], lengths)
        assert found.shape == (len(graph), 2)
        assert np.isfinite(found).all()
        return found

    def test_points_of_a_plane_are_found_again(self) -> None:
        at = np.random.default_rng(0).random((40, 2))
        apart = np.hypot(*(at[:, None] - at).T)
        complete = nx.from_numpy_array(apart)
        found = self.places(complete)
        again = np.hypot(*(found[:, None] - found).T)
        assert np.abs(again - apart).max() < 0.1
        assert np.corrcoef(again.ravel(), apart.ravel())[0, 1] > 0.995

    @pytest.mark.parametrize(
        "graph", [nx.star_graph(30), nx.complete_graph(12), nx.path_graph(9), nx.petersen_graph(), nx.balanced_tree(3, 3)]
    )
    def test_no_two_vertices_cover_each_other(self, graph: Any) -> None:
        found = self.places(graph)
        apart = np.hypot(*(found[:, None] - found).T) + np.eye(len(graph)) * 9
        assert apart.min() > 0.02 * np.ptp(found, axis=0).max()

    def test_a_large_grid_by_pivots(self) -> None:
        graph = nx.grid_2d_graph(30, 20)
        found = self.places(graph)
        apart = np.hypot(*(found[:, None] - found).T).ravel()
        steps = np.array(list(graph))
        assert np.corrcoef(apart, np.abs(steps[:, None] - steps).sum(axis=-1).ravel())[0, 1] > 0.9

    def test_components_do_not_overlap(self) -> None:
        graph = nx.disjoint_union_all([nx.cycle_graph(9), nx.star_graph(5), nx.path_graph(3), nx.empty_graph(4)])
        found = self.places(graph)
        boxes = [(found[list(part)].min(axis=0), found[list(part)].max(axis=0)) for part in nx.connected_components(graph)]
        for i, (low, high) in enumerate(boxes):
            for other_low, other_high in boxes[:i]:
                assert (high < other_low).any() or (low > other_high).any()

    def test_lengths_of_zero_parallel_edges_and_loops(self) -> None:
        found = layout(4, np.array([0, 0, 1, 2, 3]), np.array([1, 1, 2, 2, 0]), np.zeros(5))
        assert len(np.unique(found.round(3), axis=0)) == 4
        assert layout(0, np.empty(0, np.intp), np.empty(0, np.intp), np.empty(0)).shape == (0, 2)


@pytest.mark.gpu
def test_on_a_gpu() -> None:
    import cupy

    a = np.where(np.random.default_rng(0).random((60, 60)) < 0.05, 1.0, INF)
    for sources in (None, [0, 3]):
        there, here = sr.apsp(cupy.asarray(a), paths=True, sources=sources), sr.apsp(a, paths=True, sources=sources)
        assert len(there.plot(highlight=(0, 5)).patches) == len(here.plot().patches)
        np.testing.assert_array_equal(there.heatmap().images[0].get_array(), here.heatmap().images[0].get_array())
