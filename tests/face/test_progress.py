"""Whoever asks is told how far a call is, and whoever looks on sees a bar once it has taken long."""

from __future__ import annotations

import importlib.util
import itertools
import logging
import sys
import types
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any, ClassVar

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp

import semiring as sr
from semiring import csgraph
from semiring.algorithms.closure import closure
from semiring.cli import main
from semiring.common import progress
from semiring.common.progress import Meter
from semiring.execution import reporting, sums
from semiring.kernels.select import engine_for
from semiring.planning import planner, plans

Array = np.ndarray[Any, Any]
RNG = np.random.default_rng(5)
DENSE = RNG.random((300, 300))
SPARSE = sp.random_array((400, 400), density=0.02, rng=RNG, format="csr")
PARTS = np.full((1200, 1200), np.inf)
for first in range(0, 1200, 200):
    PARTS[first : first + 200, first : first + 200] = RNG.random((200, 200))

CALLS: dict[str, Callable[..., Any]] = {
    "recursive": lambda **how: sr.apsp(DENSE, **how),
    "blocked": lambda **how: sr.apsp(DENSE, method="blocked", block=50, **how),
    "iterative": lambda **how: sr.apsp(DENSE, method="iterative", **how),
    "paths": lambda **how: sr.apsp(DENSE, paths=True, **how).via,
    "elimination": lambda **how: sr.closure(DENSE / 400, sr.PLUS_TIMES, **how),
    "elimination, A⁺": lambda **how: sr.closure(DENSE / 400, sr.PLUS_TIMES, reflexive=False, **how),
    "bits": lambda **how: sr.transitive_closure(DENSE < 0.01, **how),
    "exact": lambda **how: sr.apsp([[Fraction(i * j % 7 + 1) for i in range(40)] for j in range(40)], **how),
    "batch": lambda **how: sr.apsp(DENSE[:, :90].reshape(3, 100, 90)[:, :90], **how),
    "block rows": lambda **how: sr.apsp(DENSE, memory_limit="64 MiB", checkpoint=None, device="cpu", block=64, **how),
    "components": lambda **how: sr.apsp(PARTS, **how),
    "searches": lambda **how: sr.apsp(SPARSE, **how),
    "searches, paths": lambda **how: sr.apsp(SPARSE, paths=True, **how).predecessors(),
    "some searches": lambda **how: sr.apsp(SPARSE, sources=range(50), **how),
    "searches backward": lambda **how: sr.apsp(SPARSE, targets=range(50), **how),
    "searches of NumPy": lambda **how: sr.apsp(SPARSE, sources=[0, 1], device="reference", **how),
    "products of rows": lambda **how: sr.apsp(DENSE, sources=[0, 7], **how),
    "NetworkX": lambda **how: sr.apsp(nx.path_graph(60), **how),
    "statistics": lambda **how: sr.statistics(DENSE, **how).eccentricities,
    "statistics of a sparse graph": lambda **how: sr.statistics(SPARSE, **how).eccentricities,
}


@pytest.mark.sampled(7)
@pytest.mark.parametrize("name", CALLS)
def test_who_asks_is_told(name: str) -> None:
    told: list[sr.Progress] = []
    found = CALLS[name](progress=told.append)
    np.testing.assert_array_equal(found, CALLS[name](progress=False))
    assert len(told) > 1
    assert told[0].done == told[0].begun == 0
    assert told[-1].done == told[-1].total > 0
    assert told[-1].seconds_left == 0
    for before, now in itertools.pairwise(told):
        assert before.done <= now.done <= now.total
        assert before.seconds <= now.seconds
    assert all(isinstance(now.plan, sr.Plan) for now in told)
    assert told[0].seconds_left > 0


@pytest.mark.parametrize("method", ["recursive", "blocked", "auto"])
@pytest.mark.parametrize("n", [1, 2, 127, 128, 129, 301])
@pytest.mark.parametrize(("semiring", "dtype"), [(sr.MIN_PLUS, "f8"), (sr.MIN_PLUS, "i4"), (sr.PLUS_TIMES, "f8"), (sr.MAX_MIN, "f4")])
def test_all_steps_are_counted(semiring: sr.Semiring, dtype: str, n: int, method: str) -> None:
    """Before the meter is told that all is done."""
    engine = engine_for(semiring, (np.dtype(dtype),), "cpu")
    engine.meter = Meter(lambda *_: None)
    closure(engine, ((RNG.random((n, n)) / n).astype(dtype),), method=method)
    assert engine.meter._done == engine.meter.total == n**3


def test_components_are_less_work() -> None:
    told: list[sr.Progress] = []
    sr.apsp(PARTS, progress=told.append, device="cpu")
    assert told[0].total == 1200**3
    assert told[-1].total == 6 * 200**3
    assert told[-2].done > told[-1].total // 2


def test_a_batch_is_one_call() -> None:
    told: list[sr.Progress] = []
    sr.apsp(np.stack([DENSE[:90, :90]] * 7), progress=told.append)
    assert {now.total for now in told} == {7 * 90**3}


@pytest.mark.sampled(7)
@pytest.mark.parametrize("paths", [False, True])
@pytest.mark.parametrize("semiring", [sr.MIN_PLUS, sr.PLUS_TIMES, sr.LOG, sr.MAX_TIMES, sr.BOOLEAN], ids=str)
@pytest.mark.parametrize("threads", [1, 3])
def test_products_that_are_cut_give_the_same_bits(
    semiring: sr.Semiring, threads: int, monkeypatch: pytest.MonkeyPatch, *, paths: bool
) -> None:
    n = 1100
    if paths and semiring not in (sr.MIN_PLUS, sr.MAX_TIMES):
        pytest.skip("⊕ does not select")
    given: Any = (RNG.random((n, n)) / n).astype(np.float32 if semiring is sr.MIN_PLUS else np.float64)
    if semiring is sr.LOG:
        given = -9 - given
    elif semiring is sr.BOOLEAN:
        given = given < 1 / n / 500
    how: dict[str, Any] = {"threads": threads, "paths": paths, "device": "cpu"}
    plain = sr.closure(given, semiring, progress=False, **how)
    monkeypatch.setattr(progress, "_PARTS", 1 << 30)
    monkeypatch.setattr(reporting, "_PIECE", 0.0)
    told: list[sr.Progress] = []
    watched = sr.closure(given, semiring, progress=told.append, **how)
    for a, b in zip((plain.values, plain.via), (watched.values, watched.via), strict=True) if paths else [(plain, watched)]:
        np.testing.assert_array_equal(a.view(np.uint8), b.view(np.uint8))


def test_large_products_are_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    def times() -> int:
        told: list[sr.Progress] = []
        sr.apsp(given, threads=1, device="cpu", progress=told.append)
        return len(told)

    given = RNG.random((1400, 1400))
    uncut = times()
    monkeypatch.setattr(reporting, "_PIECE", 0.0)
    assert times() == uncut + 2  # those of 700³ steps of which no operand is the result


class TestErrors:
    def test_what_is_raised_ends_the_call(self) -> None:
        def stop(now: sr.Progress) -> None:
            if now.done * 4 > now.total:
                raise KeyboardInterrupt

        for name in ("recursive", "paths", "block rows", "bits", "searches", "statistics of a sparse graph"):
            with pytest.raises(KeyboardInterrupt):
                CALLS[name](progress=stop)
        np.testing.assert_array_equal(CALLS["recursive"](), CALLS["recursive"]())

    def test_nothing_is_told_after_a_negative_cycle(self) -> None:
        told: list[sr.Progress] = []
        given = DENSE.copy()
        given[200, 201] = given[201, 200] = -2
        with pytest.raises(sr.NegativeCycleError):
            sr.apsp(given, progress=told.append)
        assert told[-1].done < told[-1].total

    def test_a_function_may_call_the_library(self) -> None:
        found = []
        sr.apsp(DENSE, progress=lambda _: found.append(sr.apsp(DENSE[:200, :200])))
        assert all(np.array_equal(f, found[0]) for f in found)


class Bar:
    """What takes the place of tqdm's."""

    made: ClassVar[list[Bar]] = []
    start_t = 0.0

    def __init__(self, **how: Any) -> None:
        self.how, self.n, self.open, self.moves = how, float(how["initial"]), True, list[float]()
        self.made.append(self)

    def set_postfix_str(self, text: str, refresh: bool) -> None:
        assert text.endswith("steps/s")
        assert not refresh

    def update(self, more: float) -> None:
        self.n += more
        self.moves.append(self.n)

    def refresh(self) -> None:
        assert len(self.moves) == 1

    def close(self) -> None:
        self.open = False


@pytest.fixture
def bars(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Bar]]:
    """The bars that are shown, where someone looks on and every call is worth to be watched."""
    module: Any = types.ModuleType("tqdm")
    module.tqdm, module.__spec__ = Bar, importlib.util.find_spec("json")
    monkeypatch.setitem(sys.modules, "tqdm", module)
    monkeypatch.setattr(reporting, "_is_seen", lambda: True)
    monkeypatch.setattr(plans, "_BRIEF", -1.0)
    planner._plans.clear()
    Bar.made = []
    yield Bar.made
    planner._plans.clear()


@pytest.mark.usefixtures("bars")
class TestBars:
    def test_none_before_two_seconds(self, bars: list[Bar]) -> None:
        sr.apsp(DENSE)
        assert not bars

    @pytest.mark.parametrize("name", CALLS)
    def test_one_once_it_has_taken_long(self, bars: list[Bar], name: str, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(reporting, "_LONG", 1e-9)
        monkeypatch.setattr(sums, "HOST", 5000)
        CALLS[name]()
        (bar,) = bars
        assert not bar.open
        assert bar.how["total"] == 1
        assert not bar.how["leave"]
        assert bar.moves[-1] == pytest.approx(1)

    def test_one_at_once_for_who_asks(self, bars: list[Bar], monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(reporting, "_is_seen", lambda: False)
        sr.apsp(DENSE, progress=True)
        (bar,) = bars
        assert bar.moves[0] == 0
        assert bar.how["desc"] == "closure of 300 vertices"
        assert bar.how["leave"]

    def test_none_where_nobody_looks_on(self, bars: list[Bar], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
        monkeypatch.setattr(reporting, "_LONG", 0.0)
        monkeypatch.setattr(reporting, "_is_seen", lambda: False)
        with caplog.at_level(logging.INFO, "semiring"):
            sr.apsp(DENSE)
        assert not bars
        assert "no progress bar: stderr is no terminal" in caplog.text

    def test_none_for_who_wants_none(self, bars: list[Bar], monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(reporting, "_LONG", 1e-9)
        sr.apsp(DENSE, progress=False)
        assert not bars

    def test_it_is_closed_by_an_error(self, bars: list[Bar]) -> None:
        given = DENSE.copy()
        given[200, 201] = given[201, 200] = -2
        with pytest.raises(sr.NegativeCycleError):
            sr.apsp(given, progress=True)
        assert not bars[0].open

    def test_csgraph(self, bars: list[Bar], monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(reporting, "_LONG", 1e-9)
        calls: list[tuple[Any, dict[str, Any]]] = [
            (DENSE, {}), (SPARSE, {"dtype": np.float32}), (DENSE, {"indices": [1], "device": "cpu"}),
        ]  # fmt: skip
        for given, how in calls:
            bars.clear()
            csgraph.shortest_path(given, **how)
            assert len(bars) == (csgraph.explain(given, **how).strategy != "SciPy")

    def test_the_command_line(self, bars: list[Bar], tmp_path: Any) -> None:
        np.save(tmp_path / "g.npy", DENSE)
        assert main(["apsp", str(tmp_path / "g.npy")]) == 0
        assert main(["closure", "--semiring", "max-min", str(tmp_path / "g.npy"), "--no-progress"]) == 0
        assert not bars
        assert main(["apsp", str(tmp_path / "g.npy"), "--progress"]) == 0
        assert len(bars) == 1


class TestReasons:
    def test_without_tqdm(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
        sr.apsp(DENSE, progress=True, device="cpu")
        first, *lines = capsys.readouterr().err.splitlines()
        assert first == 'semiring: no progress bar: tqdm is not installed (pip install -e ".[progress]" from the clone)'
        assert 5 < len(lines) <= 21
        assert lines[0].startswith("  0%")
        assert lines[-1].startswith("100%")
        assert any("tqdm is not installed" in note for note in sr.explain(200_000, device="cpu").notes)
        assert sr.explain(20, device="cpu").notes == ()
        sr.apsp(DENSE)
        assert capsys.readouterr().err == ""

    def test_with_it(self) -> None:
        pytest.importorskip("tqdm")
        assert not any("bar" in note for note in sr.explain(200_000, device="cpu").notes)

    def test_scipys_own_searches(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(reporting, "_LONG", 0.0)
        planned = csgraph.explain(SPARSE, indices=[0], min_only=True)
        assert planned.strategy == "SciPy"
        assert planned.notes == ("no progress bar: SciPy's own searches report no progress",)


def test_the_bar_of_tqdm(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("tqdm")
    sr.apsp(DENSE, progress=True)
    shown = capsys.readouterr().err
    assert "closure of 300 vertices:   0%" in shown
    assert "100%" in shown
    assert "steps/s" in shown
    assert "left" in shown


def test_in_a_notebook_without_widgets(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """A line of text, and no warning of tqdm's that widgets are missing."""
    pytest.importorskip("tqdm")
    pytest.importorskip("IPython")
    for name in [name for name in sys.modules if name.startswith("tqdm.auto")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "ipywidgets", None)
    for name in ("tqdm.notebook", "tqdm.autonotebook"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    shell = types.SimpleNamespace(kernel=None, config={"IPKernelApp": {}})
    import IPython

    monkeypatch.setattr(IPython, "get_ipython", lambda: shell)
    assert reporting._is_seen()
    sr.apsp(DENSE, progress=True)
    assert "100%" in capsys.readouterr().err


@pytest.mark.gpu
class TestGPU:
    @pytest.mark.parametrize("paths", [False, True])
    @pytest.mark.parametrize(("semiring", "dtype"), [(sr.MIN_PLUS, "f4"), (sr.MAX_MIN, "i4"), (sr.PLUS_TIMES, "f8"), (sr.BOOLEAN, "?")])
    def test_the_same_bits(self, semiring: sr.Semiring, dtype: str, monkeypatch: pytest.MonkeyPatch, *, paths: bool) -> None:
        import cupy

        if paths and not semiring.selects:
            pytest.skip("⊕ does not select")
        n = 9000  # too large for a CUDA graph
        given: Any = RNG.random((n, n), dtype=np.float32)
        given = given < 1e-4 if dtype == "?" else (given / n if semiring is sr.PLUS_TIMES else 1 + given * 1000).astype(dtype)
        monkeypatch.setattr(reporting, "_PIECE", 0.0)
        monkeypatch.setattr(progress, "_PARTS", 1 << 30)
        for matrix in (given, cupy.asarray(given)):
            told: list[sr.Progress] = []
            how: dict[str, Any] = {"paths": paths, "device": "cuda:0"}
            plain = sr.closure(matrix, semiring, progress=False, **how)
            watched = sr.closure(matrix, semiring, progress=told.append, **how)
            for a, b in zip((plain.values, plain.via), (watched.values, watched.via), strict=True) if paths else [(plain, watched)]:
                np.testing.assert_array_equal(*(x.get() if isinstance(x, cupy.ndarray) else x for x in (a, b)))
            assert len(told) > (1 if dtype == "?" else 10)  # bits are closed by one CUDA graph
            assert told[-1].done == told[-1].total
            assert dtype == "?" or told[-2].done > 0.9 * told[-1].total  # all is counted, and nothing twice

    def test_small_ones_and_recorded_streams(self) -> None:
        import cupy

        given = cupy.asarray(DENSE)
        for _ in range(3):  # the second use is recorded
            told: list[sr.Progress] = []
            found = sr.apsp(given, progress=told.append)
            assert told[-1].done == told[-1].total
            np.testing.assert_array_equal(found.get(), sr.apsp(given).get())
