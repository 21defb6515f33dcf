"""`watch`: frames that replay to the closure, are the papers' phases, and show themselves as a table, a picture, a slider and a plot."""

from __future__ import annotations

import base64
import inspect
import pickle
import re
import sys
import xml.etree.ElementTree as ET
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import matplotlib
import networkx as nx
import numpy as np
import pytest
import scipy.sparse
import sympy
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse.csgraph import floyd_warshall

import semiring as sr
from semiring import watching
from semiring.algorithms import blocked, recursive
from semiring.algorithms.recorder import EQUATIONS
from semiring.kernels import machine
from semiring.results import recording as recording_pictures

INF = np.inf
METHODS = ("iterative", "blocked", "recursive", "auto")


def random_matrix(n: int, semiring: sr.Semiring, seed: int = 0) -> Any:
    """A matrix over a semiring of the catalogue, of which about half is its zero."""
    rng = np.random.default_rng(seed)
    edges, there = rng.integers(1, 20, (n, n)), rng.random((n, n)) < 0.5
    zero = float(semiring.zero)
    if semiring is sr.BOOLEAN:
        return there
    if semiring is sr.GF2:
        return np.triu(there, 1)
    if semiring is sr.PLUS_TIMES:
        return np.where(there, edges / (20.0 * n), zero)
    if semiring is sr.MAX_PLUS:
        return np.where(there, -edges, zero)
    if semiring is sr.MAX_TIMES:
        return np.where(there, edges / 20, zero)
    if semiring is sr.LOG:
        return np.where(there, np.log(edges / (20.0 * n)), zero)
    return np.where(there, edges, zero)


def replayed(recording: sr.Recording) -> Any:
    """The matrix that was given, with what the areas of each frame hold after it: nothing outside of them may count."""
    matrix = recording.frames[0].values.copy()
    for frame in recording.frames[1:]:
        for area in frame.writes:
            matrix[area.rows, area.columns] = frame.values[area.rows, area.columns]
    return matrix


@pytest.mark.sampled(22)
@pytest.mark.parametrize("reflexive", [True, False])
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    "semiring",
    [sr.MIN_PLUS, sr.MAX_PLUS, sr.MAX_MIN, sr.MIN_MAX, sr.MAX_TIMES, sr.BOOLEAN, sr.PLUS_TIMES, sr.LOG],
    ids=lambda semiring: semiring.name,
)
def test_frames_replay_to_the_closure(semiring: sr.Semiring, method: str, reflexive: bool) -> None:
    a = random_matrix(7, semiring)
    before = a.copy()
    recording = sr.watch(a, semiring, method=method, block=3, reflexive=reflexive)
    expected = sr.closure(a, semiring, method=method, block=3, reflexive=reflexive)
    assert recording.result.dtype == expected.dtype
    np.testing.assert_allclose(recording.result, expected, rtol=1e-12)
    np.testing.assert_array_equal(recording[-1].values, recording.result)
    np.testing.assert_array_equal(replayed(recording), recording.result)
    np.testing.assert_array_equal(a, before)
    for earlier, frame in zip(recording.frames, recording.frames[1:], strict=False):
        np.testing.assert_array_equal(frame.changed, earlier.values != frame.values)


@given(st.integers(0, 12), st.integers(1, 14), st.sampled_from(METHODS), st.booleans(), st.integers(0, 2**16))
def test_any_side_and_block_gives_what_scipy_gives(n: int, block: int, method: str, paths: bool, seed: int) -> None:
    a = random_matrix(n, sr.MIN_PLUS, seed)
    recording = sr.watch(a, method=method, block=block, paths=paths)
    distances = recording.result.distances if paths else recording.result
    np.testing.assert_array_equal(recording[-1].values, distances)
    if paths:
        np.testing.assert_array_equal(recording[-1].via, recording.result.via)
        np.testing.assert_array_equal(recording.result.via, sr.apsp(a, paths=True, method=method, block=block).via)
    if n:
        np.testing.assert_array_equal(distances, floyd_warshall(np.where(np.isinf(a), 0, a)))


def areas_cover(frames: Any, n: int) -> bool:
    covered = np.zeros((n, n), dtype=bool)
    for frame in frames:
        for area in frame.writes:
            covered[area.rows, area.columns] = True
    return bool(covered.all())


@pytest.mark.parametrize("semiring", [sr.MIN_PLUS, sr.PLUS_TIMES], ids=["accumulating", "eliminating"])
@pytest.mark.parametrize("n", [8, 9, 12])
def test_a_round_of_the_blocked_algorithm_is_its_four_phases_over_the_whole_matrix(n: int, semiring: sr.Semiring) -> None:
    recording = sr.watch(random_matrix(n, semiring), semiring, method="blocked", block=4)
    order = [1, 2, 3, 4] if semiring is sr.MIN_PLUS else [1, 3, 4, 2]
    steps = 0
    for k in range(-(-n // 4)):
        K = slice(4 * k, min(n, 4 * k + 4))
        frames = [f for f in recording if f.round == k]
        assert [f.phase for f in frames] == order
        assert areas_cover(frames, n)
        by_phase = {f.phase: f for f in frames}
        (pivot,) = by_phase[1].writes
        assert (pivot.rows, pivot.columns) == (K, K)
        assert by_phase[1].pivots == (pivot,)
        assert by_phase[2].reads == by_phase[3].reads == (pivot,)
        assert {a.rows for a in map(_hashable, by_phase[2].writes)} == {(K.start, K.stop)}
        assert {a.columns for a in map(_hashable, by_phase[3].writes)} == {(K.start, K.stop)}
        assert set(by_phase[4].reads) == {*by_phase[2].writes, *by_phase[3].writes}
        steps += sum(f.steps for f in frames)
    assert steps == n**3


def _hashable(area: Any) -> SimpleNamespace:
    return SimpleNamespace(rows=(area.top, area.bottom), columns=(area.left, area.right))


def test_a_round_of_the_iterative_algorithm_is_one_update_of_the_whole_matrix() -> None:
    recording = sr.watch(random_matrix(6, sr.MIN_PLUS), method="iterative")
    assert recording.block is None
    assert [f.round for f in recording] == [None, *range(6)]
    for k, frame in enumerate(recording[1:]):
        assert areas_cover([frame], 6)
        assert {str(area) for area in frame.reads} == {f"[0:6, {k}:{k + 1}]", f"[{k}:{k + 1}, 0:6]"}
        stops = np.arange(6) <= k
        allowed = nx.DiGraph(
            (i, j, {"weight": w}) for i, row in enumerate(recording[0].values) for j, w in enumerate(row) if np.isfinite(w) and i != j
        )
        allowed.add_nodes_from(range(6))
        for i in range(6):
            for j in range(6):
                part = allowed.subgraph({i, j} | set(np.flatnonzero(stops).tolist()))
                expected = nx.dijkstra_path_length(part, i, j) if nx.has_path(part, i, j) else INF
                assert frame.values[i, j] == expected  # the shortest path whose stops are among the first vertices


def require_recursion(frames: Any, square: Any) -> None:
    """The frames of a square block are those of its first half, three products, those of the second half, and three more products."""
    products = [i for i, frame in enumerate(frames) if frame.within == square and frame.phase not in (1, 5)]
    assert [frames[i].phase for i in products] == [2, 3, 4, 6, 7, 8]
    first, second = frames[: products[0]], frames[products[2] + 1 : products[3]]
    assert len(first) + 6 + len(second) == len(frames)
    for half, phase in ((first, 1), (second, 5)):
        if len(half) == 1:
            assert (half[0].phase, half[0].within, half[0].pivots) == (phase, square, half[0].writes)
        else:
            require_recursion(half, half[-1].within)


@pytest.mark.parametrize("semiring", [sr.MIN_PLUS, sr.PLUS_TIMES], ids=["accumulating", "eliminating"])
@pytest.mark.parametrize("n", [6, 7, 12])
def test_the_recursion_is_two_calls_and_six_products(n: int, semiring: sr.Semiring) -> None:
    recording = sr.watch(random_matrix(n, semiring), semiring, method="recursive", block=2)
    whole = recording[0].within
    assert str(whole) == f"[0:{n}, 0:{n}]"
    require_recursion(recording[1:], whole)
    assert areas_cover(recording, n)
    assert sum(f.steps for f in recording) == n**3


def test_equations_are_those_of_the_algorithms_texts() -> None:
    texts = "\n".join(map(inspect.getsource, (blocked, recursive)))
    for equations in EQUATIONS.values():
        for equation in equations:
            assert equation in texts, equation


def test_blocks_by_default_are_four_and_what_fits_one_is_closed_at_once() -> None:
    assert len({f.round for f in sr.watch(random_matrix(13, sr.MIN_PLUS))} - {None}) == 4
    (_, frame) = sr.watch(random_matrix(5, sr.MIN_PLUS), method="recursive", block=5)
    assert frame.equation == "A ← A ⊕ A² ⊕ …"
    assert len(sr.watch(np.zeros((0, 0)))) == 1
    assert sr.watch([[0.0]]).result.tolist() == [[0]]


def test_graphs_of_all_kinds_keep_their_labels() -> None:
    graph = nx.DiGraph()
    graph.add_weighted_edges_from([("Bern", "Basel", 95), ("Basel", "Genf", 250)])
    listed = sr.edges([("Bern", "Basel", 95), ("Basel", "Genf", 250)])
    for g in (graph, listed):
        recording = sr.watch(g, method="iterative", paths=True)
        assert recording.nodes == ("Bern", "Basel", "Genf")
        assert recording.result.path("Bern", "Genf") == ["Bern", "Basel", "Genf"]
        assert "Genf" in recording._repr_html_()
    sparse = scipy.sparse.csr_array(np.array([[0, 2.0], [0, 0]]))
    assert sr.watch(sparse).result.tolist() == [[0, 2], [INF, 0]]
    assert sr.watch([[0, 2], [0, 0]], nonedge=0, dtype=float).result.tolist() == [[0, 2], [INF, 0]]


def test_exact_symbolic_and_structured_elements() -> None:
    half = Fraction(1, 2)
    a = np.array([[half, half], [0, half]], dtype=object)
    recording = sr.watch(a, sr.PLUS_TIMES, block=1)
    assert recording.result.tolist() == [[2, 2], [0, 2]]
    assert recording[1].values.tolist() == [[2, half], [0, half]]
    x = sympy.Symbol("x", positive=True)
    assert sr.watch(sympy.Matrix([[0, x], [sympy.oo, 0]])).result[0, 1] == x
    edges = (np.array([[INF, 2.0, 2.0], [INF, INF, 1.0], [INF, INF, INF]]), np.array([[0, 1.0, 1.0], [0, 0, 1.0], [0, 0, 0]]))
    counted = sr.watch(edges, sr.DISTANCE_COUNT, block=1)
    for one, other in zip(counted.result, sr.closure(edges, sr.DISTANCE_COUNT), strict=True):
        np.testing.assert_array_equal(one, other)
    assert "2,1" in counted._repr_html_()


@pytest.mark.parametrize("dtype", ["i4", "u1", "f4"])
def test_dtypes_and_their_infinities(dtype: str) -> None:
    top = np.iinfo(dtype).max if dtype[0] in "iu" else INF
    a = np.array([[0, 3, top], [top, 0, 4], [top, top, 0]], dtype=dtype)
    a.flags.writeable = False
    recording = sr.watch(a.T, block=1)
    np.testing.assert_array_equal(recording.result, sr.apsp(a.T))
    assert {text for row in recording_pictures.elements(recording, recording[0]) for text in row} == {"0", "3", "4", "·"}


@pytest.mark.parametrize("paths", [False, True])
def test_a_cycle_that_only_rounding_made_negative_ends_with_potentials(paths: bool) -> None:
    """Differences of potentials, rounded up: no cycle is negative, but sums of floats along some are."""
    p = 10 * np.random.default_rng(3).random(40)
    exact = [[Fraction(y) - Fraction(x) for y in p.tolist()] for x in p.tolist()]
    a = np.array([[float(w) if Fraction(float(w)) >= w else np.nextafter(float(w), INF) for w in row] for row in exact])
    recording = sr.watch(a, paths=paths)
    assert (recording[-1].where, recording[-1].equation) == ("the end", "A ← P⁻¹ (P A P⁻¹)* P")
    found, expected = recording.result, sr.apsp(a, paths=paths, method="blocked", block=10)
    if paths:
        found, expected = found.distances, expected.distances
    np.testing.assert_allclose(found, expected, atol=1e-13)
    np.testing.assert_array_equal(recording[-1].values, found)
    page(recording)


def test_what_cannot_be_watched_says_why() -> None:
    with pytest.raises(sr.TooLargeError, match=r"at most 256 vertices.*257.*matrix\[:32, :32\]"):
        sr.watch(np.zeros((257, 257)))
    with pytest.raises(sr.TooLargeError, match="1,000,000"):
        sr.watch(scipy.sparse.coo_array(([1.0], ([0], [1])), shape=(10**6, 10**6)))
    with pytest.raises(sr.ShapeError, match="2 × 3"):
        sr.watch(np.zeros((2, 3, 4, 4)), nonedge=0)
    with pytest.raises(sr.SemiringError, match="unknown method 'warshall'"):
        sr.watch(np.zeros((2, 2)), method="warshall")
    with pytest.raises(sr.SemiringError, match="block is 0"):
        sr.watch(np.zeros((2, 2)), block=0)
    with pytest.raises(sr.SemiringError, match="pass a Semiring"):
        sr.watch(np.zeros((2, 2)), max)  # type: ignore[arg-type]
    with pytest.raises(sr.LawError, match="selective"):
        sr.watch(np.zeros((2, 2)), sr.PLUS_TIMES, paths=True)
    with pytest.raises(sr.DomainError):
        sr.watch([[np.nan]])
    with pytest.raises(sr.NegativeCycleError) as negative:
        sr.watch(nx.DiGraph([("a", "b", {"weight": -2.0}), ("b", "a", {"weight": 1.0})]))
    assert set(negative.value.cycle or ()) == {"a", "b"}
    # Components, which larger closures are cut into, are never looked for.
    assert min(machine.COMPONENTS, machine.CONDENSED) > watching._LIMIT


def ring(n: int) -> Any:
    a = np.full((n, n), INF)
    v = np.arange(n)
    a[v, (v + 1) % n] = 1
    return a


def test_it_prints_as_a_table() -> None:
    recording = sr.watch(ring(6), method="recursive", block=3)
    text = str(recording)
    assert text.startswith("The closure of 6 vertices over min-plus, recursive with block=3\n")
    assert len(text.splitlines()) == 2 + len(recording) == 2 + 1 + 8
    assert "A22 ← A22 ⊕ A21 A12   [3:6, 0:3] [0:3, 3:6]  [3:6, 3:6]" in text
    assert "round" not in text  # it has none
    assert repr(recording) == "<Recording of the closure of 6 vertices over min-plus, recursive with block=3: 9 frames>"


def test_it_is_a_sequence_that_is_pickled() -> None:
    recording = sr.watch(ring(5), block=2)
    assert recording[1:3] == recording.frames[1:3]
    assert recording[-1] is recording.frames[-1]
    again = pickle.loads(pickle.dumps(recording))
    np.testing.assert_array_equal(again[-1].values, recording.result)


def page(recording: sr.Recording) -> ET.Element:
    """The HTML without its still picture, which is a file of its own, as what it is made of: it needs nothing from elsewhere."""
    html = recording._repr_html_()
    for wrong in ("<script", "http", "javascript", "url(", "@import", "color:black", "color:white", "#fff", "#000"):
        assert wrong not in html
    return ET.fromstring(html)


@pytest.mark.parametrize("n", [0, 1, 6, 24, 25, 100])
def test_html_steps_and_plays_without_scripts(n: int) -> None:
    recording = sr.watch(ring(n))
    root = page(recording)
    buttons = [node for node in root.iter("input") if node.get("type") == "radio"]
    frames = next(node for node in root.iter("div") if node.get("class") == "frames")
    assert len(buttons) == len(frames) == len(recording)
    assert [button.get("checked") for button in buttons] == ["checked", *[None] * (len(recording) - 1)]
    assert len({button.get("id") for button in buttons}) == len(recording)
    style = next(root.iter("style")).text or ""
    for number, button in enumerate(buttons):
        assert f"#{button.get('id')}:checked~.frames>:nth-child({number + 1})" in style
    assert "animation" in style
    # Without the style sheet one still picture is seen, and of the rest nothing.
    assert [node.get("hidden") for node in root if node.get("class") == "live"] == ["hidden"]
    image = next(root.iter("img")).get("src") or ""
    still = ET.fromstring(base64.b64decode(image.removeprefix("data:image/svg+xml;base64,")))
    assert still.tag.endswith("svg")


def test_two_pages_do_not_step_each_other() -> None:
    recording = sr.watch(ring(4))
    assert page(recording).get("id") != page(recording).get("id")


def test_pictures_show_areas_elements_and_names() -> None:
    graph = nx.relabel_nodes(nx.path_graph(4, create_using=nx.DiGraph), dict(enumerate(["<a>", "&", "Zürich", "x"])))
    recording = sr.watch(graph, block=2)
    frames = next(node for node in page(recording).iter("div") if node.get("class") == "frames")
    second = " ".join(frames[3].itertext())
    assert "round 0, phase 3" in second
    for name in recording.nodes:
        assert name in second
    texts = [[span.text for span in row.iter("tspan")] for row in frames[-1].iter("text") if len(row)]
    assert texts == [["0", "1", "2", "3"], ["·", "0", "1", "2"], ["·", "·", "0", "1"], ["·", "·", "·", "0"]]
    bold = [span for span in frames[-1].iter("tspan") if span.get("font-weight")]
    assert len(bold) == recording[-1].changed.sum()
    assert recording_pictures.roles(recording[2]).tolist() == [[2, 2, 1, 1], [2, 2, 1, 1], [0, 0, 0, 0], [0, 0, 0, 0]]


def test_a_page_has_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recording_pictures, "_BUDGET", 20_000)
    html = sr.watch(ring(12))._repr_html_()
    assert len(html) < 100_000
    assert "Frames from" in html


@pytest.fixture
def in_jupyter(monkeypatch: pytest.MonkeyPatch) -> None:
    """As far as the slider asks, this is a session with a kernel."""
    pytest.importorskip("IPython")
    monkeypatch.setattr("IPython.get_ipython", lambda: SimpleNamespace(kernel=object()))


WIDGET = "application/vnd.jupyter.widget-view+json"


@pytest.mark.usefixtures("in_jupyter")
def test_with_ipywidgets_it_has_a_slider(monkeypatch: pytest.MonkeyPatch) -> None:
    ipywidgets = pytest.importorskip("ipywidgets")
    made: list[Any] = []
    box = ipywidgets.VBox

    def kept(children: Any) -> Any:
        made.append(box(children))
        return made[-1]

    monkeypatch.setattr(ipywidgets, "VBox", kept)
    recording = sr.watch(ring(6), block=3)
    bundle = recording._repr_mimebundle_()
    assert set(bundle) == {WIDGET, "text/html", "text/plain"}
    _, controls, picture, _ = made[0].children
    play, slider = controls.children
    assert (slider.min, slider.max, play.max) == (0, 8, 8)
    slider.value = 4
    assert "round 0, phase 4" in picture.value
    assert ET.fromstring(f"<div>{picture.value}</div>").find(".//svg") is not None


@pytest.mark.usefixtures("in_jupyter")
def test_without_ipywidgets_it_has_html(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ipywidgets", None)
    assert set(sr.watch(ring(3))._repr_mimebundle_()) == {"text/html", "text/plain"}


def test_outside_of_jupyter_no_widget_is_made() -> None:
    assert set(sr.watch(ring(3))._repr_mimebundle_()) == {"text/html", "text/plain"}


def test_matplotlib_draws_and_animates(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matplotlib.rcParams, "backend", "agg", raising=False)
    matplotlib.use("agg")
    from matplotlib import pyplot

    recording = sr.watch(nx.relabel_nodes(nx.path_graph(4, create_using=nx.DiGraph), {0: "$a", 1: "b"}), block=2)
    ax = recording.plot(2)
    assert "phase 2" in ax.get_title()
    assert {text.get_text() for text in ax.texts} == {"0", "1", "2", "·"}
    assert ax.figure.patch.get_alpha() == 0
    _, given = pyplot.subplots()
    assert sr.watch(ring(40)).plot(ax=given) is given
    assert sr.watch(np.zeros((0, 0))).plot() is not None
    file = tmp_path / "closure.gif"
    sr.watch(ring(3), block=3).animate(0.1).save(file, writer="pillow")
    assert file.read_bytes().startswith(b"GIF8")
    pyplot.close("all")


def test_without_matplotlib_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    recording = sr.watch(ring(3))
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    for call in (recording.plot, recording.animate):
        with pytest.raises(sr.SemiringError, match=re.escape("pip install matplotlib")):
            call()
