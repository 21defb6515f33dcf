"""What Jupyter shows of graphs, paths, tiles, plans and generated code: well-formed, escaped, quick, in the page's own colours."""

from __future__ import annotations

import base64
import copy
import io
import pickle
import re
import time
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from scipy import sparse

import semiring as sr
from semiring.common.html import Code
from semiring.common.progress import Progress
from semiring.kernels import source
from semiring.kernels.cpu.kernels import kernels_for
from semiring.kernels.cuda import boolean
from semiring.kernels.cuda.tile import TileProblem, candidate_tiles
from semiring.kernels.machine import Speed
from semiring.results import views
from semiring.results.store import Store
from semiring.streaming.layout import streamed_rows

INF = np.inf
EVIL = "<script>alert('&')</script>"
PLAN = streamed_rows(5000, 20000, 1 << 26, Speed(1e10, 1e10), 512)


def text_of(shown: Any) -> str:
    """The text of well-formed HTML that needs nothing from elsewhere and no colours of its own for text and ground."""
    html = shown._repr_html_()
    for wrong in ("<script", "http", "javascript", "color:black", "color:white", "#fff", "#000"):
        assert wrong not in html
    return " ".join(" ".join(ET.fromstring(html).itertext()).split())


def picture(paths: sr.Paths) -> np.ndarray[Any, Any]:
    """The heat map as another library reads it: (height, width, RGBA)."""
    found = re.search(r"data:image/png;base64,([^']+)", paths._repr_html_())
    assert found is not None
    return np.asarray(Image.open(io.BytesIO(base64.b64decode(found[1]))).convert("RGBA"))


def test_paths_show_facts_elements_and_a_heat_map() -> None:
    a = np.array([[0, 3, INF], [INF, 0, 4.5], [INF, INF, 0]])
    shown = text_of(sr.apsp(a, paths=True))
    for part in (
        "paths over min-plus",
        "vertices 3",
        "connected pairs 3",
        "one way only 3 of them",
        "directed=False",
        "float64",
        "7.5",
        "–",
        "blank: no path",
        "distance to itself 0",
        "stored in memory",
    ):
        assert part in shown
    assert "one way only" not in text_of(sr.apsp(np.minimum(a, a.T), paths=True))
    image = picture(sr.apsp(a, paths=True))
    assert image.shape == (3, 3, 4)
    np.testing.assert_array_equal(image[..., 3] > 0, np.triu(np.ones((3, 3), dtype=bool)))
    assert tuple(image[0, 0, :3]) == views.COLOURS[0]
    assert tuple(image[0, 2, :3]) == views.COLOURS[-1]


@pytest.mark.parametrize("chosen", [{"sources": ["a"]}, {"targets": "c"}, {"sources": ["c", "a"], "targets": ["b", "c"]}, {"sources": []}])
def test_paths_between_chosen_vertices_show_likewise(chosen: dict[str, Any]) -> None:
    paths = sr.apsp(sr.edges([("a", "b", 3.0), ("b", "c", 4.5)]), paths=True, **chosen)
    shown = text_of(paths)
    for part in ("paths over min-plus", f"sources {len(paths.sources)}", f"targets {len(paths.targets)}", "vertices 3", "float64"):
        assert part in shown
    if paths.sources:
        there = np.isfinite(paths.distances).reshape(len(paths.sources), len(paths.targets))
        np.testing.assert_array_equal(picture(paths)[..., 3] > 0, there)
        assert "7.5" in shown
    batch = sr.apsp(np.full((2, 400, 400), 1.0), paths=True, sources=[5, 6], nonedge=INF)
    assert "batch 2" in text_of(batch)
    assert picture(batch).shape[:2] == (2, 160)


def test_names_are_escaped_and_cut() -> None:
    edges = sr.edges([(EVIL, "b" * 500), ("b" * 500, "]]>")])
    assert EVIL in text_of(edges)
    assert "weight 1" in text_of(edges)
    assert "no weight" in text_of(sr.edges([("a", "b", 2.0), ("b", "c")]))
    shown = text_of(sr.apsp(edges, paths=True))
    assert '"<script>al…' in shown
    assert "b" * 20 not in shown
    assert "b" * 50 not in text_of(edges)


@pytest.mark.parametrize("n", [0, 1, 2, 159, 160, 161, 500])
def test_heat_maps_are_bounded(n: int) -> None:
    a = np.full((n, n), INF)
    a[: n // 2, : n // 2] = 1
    paths = sr.apsp(a, paths=True, nonedge=INF)
    text_of(paths)
    if n:
        image = picture(paths)
        assert image.shape[:2] == (min(n, 160),) * 2
        assert image[-1, -1, 3] == 255  # the empty path
        assert n == 1 or image[-1, 0, 3] == 0
        assert n < 4 or image[0, 1, 3] == 255


def cases() -> list[Any]:
    top = np.iinfo(np.int32).max
    x = np.array([[0, Code("1/2")]], dtype=object)[0, 0]
    return [
        sr.apsp(np.array([[0, 5], [top, 0]], np.int32), paths=True),
        sr.closure(np.array([[INF, 5.0], [-INF, INF]]), sr.MAX_MIN, paths=True),  # 1 is ∞
        sr.closure(np.array([[0.0, -1e308], [1.7e308, 0]]), sr.MAX_MIN, paths=True),  # whose difference is no float
        sr.closure((np.array([[INF, 2.0], [INF, INF]]), np.array([[INF, 1.0], [INF, INF]])), sr.DISTANCE_HOPS, paths=True),
        sr.transitive_closure([[0, 1], [0, 0]], paths=True),
        sr.apsp(np.array([[x, 1], [1, x]], dtype=object), paths=True),
        sr.apsp(np.zeros((2, 3, 5, 5)), paths=True, nonedge=5),
        sr.apsp(np.full((3, 3), INF), paths=True),
        sr.closure(np.full((3, 3), INF), sr.MIN_PLUS, paths=True, reflexive=False),
    ]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("paths", cases(), ids=repr)
def test_all_kinds_of_elements_show(paths: sr.Paths) -> None:
    shown = text_of(paths)
    assert paths.semiring.name in shown
    assert "2147483647" not in shown
    picture(paths)


def test_symbols_show() -> None:
    sympy = pytest.importorskip("sympy")
    shown = text_of(sr.apsp(sympy.Matrix([[0, sympy.Symbol("x", positive=True)], [sympy.oo, 0]]), paths=True))
    assert "x" in shown


def test_of_a_large_file_a_few_elements_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    n = 60_000  # 14 GB of holes, which reading would take minutes for
    values = np.memmap(tmp_path / "v", np.float32, "w+", shape=(n, n))
    via = np.memmap(tmp_path / "w", np.int32, "w+", shape=(n, n))
    paths = sr.Paths(sr.MIN_PLUS, (values,), via)
    monkeypatch.setattr(Store, "connected", lambda self: pytest.fail("all pairs are counted"))
    begin = time.perf_counter()
    assert repr(paths) == "<paths over min-plus: 60,000 vertices>"
    assert "a file" in text_of(paths)
    assert picture(paths).shape == (64, 64, 4)
    assert time.perf_counter() - begin < 10


def test_tiles_plans_and_progress_show() -> None:
    problem = TileProblem(64, 64, 64, 1, 4)
    for shown in (
        kernels_for(sr.MIN_PLUS, (np.dtype("f4"),)).tile, candidate_tiles(problem)[0], *boolean.candidate_bit_tiles(90),
        *boolean.candidate_bit_tiles(120), PLAN,
        Progress(1, 4, 0, 0.5, sr.explain(5000, device="cpu")),
    ):  # fmt: skip
        title, rows = shown.facts()
        assert title in text_of(shown)
        assert all(name in text_of(shown) and fact in text_of(shown) for name, fact in rows)


def test_a_plan_shows_what_was_considered_as_bars() -> None:
    graph = sr.edges([(v, v + 1) for v in range(3000)])
    for plan in (sr.explain(graph), sr.csgraph.explain(sparse.eye_array(3000, k=1, format="csr"))):
        shown = text_of(plan)
        title, facts = plan.facts()
        assert title in shown
        assert all(name in shown and (text in shown or name == "considered") for name, text in facts)
        order = sorted(plan.considered, key=lambda each: each[1])
        assert len(order) > 1
        rows = re.findall(r">([^<]+)</td><td[^>]+><div style='[^']*width:([0-9.e+-]+)%", plan._repr_html_())
        assert [name for name, _ in rows] == [name for name, _ in order]
        assert [float(width) for _, width in rows] == pytest.approx([100 * seconds / order[-1][1] for _, seconds in order], rel=0.01)
    assert text_of(sr.explain(500, device="cpu"))


def test_statistics_show_figures_and_a_histogram() -> None:
    found = sr.statistics(sr.edges([("<A>", "B", 12.0), ("B", "D", 0.5), ("C", "E", 2.0)]))
    shown = text_of(found)
    for part in ("distances of 5 vertices", "4 of 20 pairs", "largest finite distance 12.5, from '<A>' to 'D'", "radius inf"):
        assert part in shown
    bars = re.findall(r"title='(\d+) from [^']+' style='flex:1(;height:[^']+)?'", found._repr_html_())
    assert [int(count) for count, _ in bars] == found.counts.tolist()
    assert all(bool(height) == (count != "0") for count, height in bars)
    many = sr.statistics(np.random.default_rng(0).random((40, 40)), bins=np.linspace(0, 1, 1000))
    assert 1 < many._repr_html_().count("title=") <= 64
    for empty in (sr.statistics(np.empty((0, 0))), sr.statistics([[0, 5], [5, 0]], bins=[0, 1])):
        assert "title=" not in empty._repr_html_()
        text_of(empty)


def test_generated_code_is_a_folded_text() -> None:
    code = source(sr.MIN_PLUS, "float32", kernel="product")
    assert isinstance(code, str)
    shown = text_of(code)
    assert shown.startswith("CUDA C++ of product over min-plus in float32 for sm_90")
    assert '#include "product.cuh"' in shown
    assert "&lt;" in code._repr_html_()
    assert "<details" in code._repr_html_()
    assert "boolean in bool for sm_90" in text_of(source(sr.BOOLEAN, bool))
    for again in (copy.copy(code), pickle.loads(pickle.dumps(code))):
        assert again == code
        assert again.heading == code.heading


@pytest.mark.gpu
def test_paths_on_a_gpu_show() -> None:
    import cupy

    a = np.where(np.random.default_rng(0).random((300, 300)) < 0.01, 1.0, INF)
    there, here = sr.apsp(cupy.asarray(a), paths=True), sr.apsp(a, paths=True)
    assert "memory of cuda:0" in text_of(there)
    np.testing.assert_array_equal(picture(there), picture(here))
