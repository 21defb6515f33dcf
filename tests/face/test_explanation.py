"""`explain`: its parts are those that a closure has; predictions are there, of whatever size."""

from __future__ import annotations

import math
import tracemalloc
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import semiring as sr
from semiring.algorithms import blocked, recursive, schedules
from semiring.arrays.devices import gpus
from semiring.kernels.cpu.kernels import kernels_for
from semiring.kernels.cpu.representation import Tile as CpuTile
from semiring.kernels.cuda.tile import Tile as CudaTile
from semiring.kernels.engine import Engine
from semiring.kernels.machine import speed_of
from semiring.kernels.select import engine_for
from semiring.planning.costs import closure_seconds

no_gpu = pytest.mark.skipif(gpus() > 0, reason="there is a GPU")


@pytest.mark.sampled(9)
@pytest.mark.parametrize("name", sorted(sr.semirings()))
@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_every_semiring_is_explained(name: str, device: str) -> None:
    plan = sr.explain(700, sr.semirings()[name], device=device)
    title, facts = plan.facts()
    assert title.startswith(f"closure of 700 vertices over {name} in ")
    assert [what for what, _ in facts][:8] == ["device", "engine", "method", "tile", "instructions", "block rows", "time", "memory"]
    assert all(text for _, text in facts)
    assert plan.seconds is not None
    assert 0 < plan.seconds < math.inf
    shown = " ".join(" ".join(ET.fromstring(plan._repr_html_()).itertext()).split())
    assert title in shown
    assert plan.method in shown
    assert all(line in repr(plan) for line in (title, plan.method, plan.outline.instructions))


def observed(monkeypatch: pytest.MonkeyPatch, n: int, semiring: sr.Semiring, **how: Any) -> tuple[str, int]:
    """The algorithm that a closure runs first, and the side it is given."""
    seen: list[tuple[str, int]] = []
    for module, name in (
        (blocked, "blocked"),
        (blocked, "blocked_elimination"),
        (recursive, "recursive"),
        (recursive, "recursive_elimination"),
    ):
        original = getattr(module, name)

        def watched(engine: Engine, A: Any, side: int, *, name: str = name, original: Any = original) -> None:
            seen.append((name.removesuffix("_elimination"), side))
            original(engine, A, side)

        monkeypatch.setattr(schedules, name, watched)
    a = np.full((n, n), 1 / 1024)
    sr.closure(a, semiring, device="cpu", **how)
    return seen[0]


@pytest.mark.parametrize("semiring", [sr.MIN_PLUS, sr.PLUS_TIMES], ids=repr)
@pytest.mark.parametrize(("method", "block"), [("auto", None), ("auto", 40), ("blocked", None), ("blocked", 33), ("recursive", 50)])
def test_the_method_is_the_one_that_runs(semiring: sr.Semiring, method: str, block: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = sr.explain(300, semiring, device="cpu", method=method, block=block)
    name, side = observed(monkeypatch, 300, semiring, method=method, block=block)
    assert plan.method.split(",")[0] == name
    assert plan.block == side
    assert str(side) in plan.method
    assert ("by elimination" in plan.method) == (semiring is sr.PLUS_TIMES)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("semiring", [sr.MIN_PLUS, sr.PLUS_TIMES], ids=repr)
@pytest.mark.parametrize(
    ("n", "how"), [(100, {}), (300, {}), (300, {"method": "iterative"}), (500, {"method": "blocked"}), (300, {"method": "recursive"})]
)
def test_what_pins_the_method_and_the_block_gives_the_same_bits(semiring: sr.Semiring, n: int, how: dict[str, Any]) -> None:
    a = np.random.default_rng(0).random((n, n)) / n
    plan = sr.explain(n, semiring, device="cpu", **how)
    assert "repeat with   " + ", ".join(f"{name}={value!r}" for name, value in plan.pinned.items()) in repr(plan)
    assert plan.pinned["device"] == "cpu"
    assert sr.closure(a, semiring, **plan.pinned).tobytes() == sr.closure(a, semiring, device="cpu", **how).tobytes()


@pytest.mark.exhaustive
def test_what_pins_block_rows_gives_the_same_bits(tmp_path: Path) -> None:
    n = 2500
    a = np.random.default_rng(0).random((n, n)).astype(np.float32)
    plan = sr.explain(n, sr.MIN_PLUS, "f4", "cpu", memory_limit="24MB")
    assert plan.pinned == {"method": "blocked", "block": plan.block, "device": "cpu"}
    by_rows = sr.apsp(a, memory_limit="24MB", device="cpu")
    assert by_rows.tobytes() == sr.apsp(a, **plan.pinned).tobytes()
    assert by_rows.tobytes() == sr.apsp(a, checkpoint=tmp_path, **plan.pinned).tobytes()


def test_small_closures_are_one_pivot_block_and_the_iterative_method_has_none() -> None:
    assert sr.explain(100, device="cpu").method == "one pivot block"
    assert sr.explain(100, device="cpu", method="iterative").method == "iterative"
    assert sr.explain(100, device="cpu", method="blocked", block=20).method == "blocked, pivot blocks of 20"


@pytest.mark.parametrize(("semiring", "dtype"), [(sr.MIN_PLUS, "f4"), (sr.BOOLEAN, "?"), (sr.MIN_PLUS, "O")], ids=str)
def test_the_outline_is_that_of_the_engine(semiring: sr.Semiring, dtype: str) -> None:
    dtypes = (np.dtype(dtype),)
    engine, described = engine_for(semiring, dtypes, "auto"), sr.explain(100, semiring, dtype, "cpu").sides
    assert [getattr(engine, side) for side in ("pivot", "sweep", "block", "alignment")] == [
        described.pivot, described.sweep, described.block, described.alignment,
    ]  # fmt: skip


def test_tiles_are_those_of_the_kernels() -> None:
    kernels = kernels_for(sr.MIN_PLUS, (np.dtype("f4"),))
    assert sr.explain(500, sr.MIN_PLUS, "f4", "cpu").outline.tile == kernels.tile
    assert sr.explain(500, sr.MIN_PLUS, "f4", "cpu", paths=True).outline.tile == kernels.witness_tile
    assert isinstance(kernels.tile, CpuTile)


def test_instructions_are_counted() -> None:
    width = kernels_for(sr.PLUS_TIMES, (np.dtype("f4"),)).tile.width
    plain = sr.explain(500, sr.MIN_PLUS, "f4", "cpu").outline.instructions
    assert plain.startswith(f"2 for {width} steps (")  # a sum and a minimum, whatever the processor calls them
    structured = sr.explain(500, sr.DISTANCE_HOPS, "f4", "cpu").outline.instructions
    assert float(structured.split()[0]) > 3


@no_gpu
@pytest.mark.parametrize(
    ("semiring", "dtype", "expected"),
    [
        (sr.MIN_PLUS, "f4", "VIMNMX3 of bits for 2 steps, and 1 operation ⊗ for each"),
        (sr.MIN_PLUS, "i4", "VIADDMNMX and IMAD for 2 steps"),
        (sr.MIN_PLUS, "i2", "VIADDMNMX.S16x2 for 2 steps"),
        (sr.PLUS_TIMES, "f4", "FFMA for a step; large products by cuBLAS"),
        (sr.BOOLEAN, "?", "an MMA of bits for 4,194,304 steps, which it ANDs and counts"),
    ],
)
def test_without_a_gpu_one_is_planned_for(semiring: sr.Semiring, dtype: str, expected: str) -> None:
    plan = sr.explain(4096, semiring, dtype, "cuda")
    assert plan.devices == ("cuda",)
    assert plan.outline.instructions == expected
    assert "there is no GPU here" in repr(plan)
    assert "NVIDIA H200" in plan.notes[0]
    assert isinstance(plan.outline.tile, CudaTile) or semiring is sr.BOOLEAN
    assert set(plan.memory) == {"cuda"}


@no_gpu
def test_small_closures_on_a_gpu_are_sweeps() -> None:
    assert sr.explain(1000, sr.MIN_PLUS, "f4", "cuda").method == "blocked, pivot blocks of 64"
    assert sr.explain(1025, sr.MIN_PLUS, "f4", "cuda").method == "recursive, base case of 1024"
    assert sr.explain(50, sr.MIN_PLUS, "f4", "cuda").method == "one pivot block"


@pytest.mark.parametrize("paths", [False, True])
@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=no_gpu)])
def test_a_memory_limit_makes_block_rows(device: str, paths: bool) -> None:
    n = 20_000
    plan = sr.explain(n, sr.MIN_PLUS, "f4", device, memory_limit="512MiB", paths=paths)
    assert plan.rows is not None
    assert plan.rows.memory <= 512 << 20
    assert plan.rows.side == plan.block
    assert plan.seconds == plan.rows.seconds
    assert plan.method == f"blocked, by block rows of {plan.block:,}"
    assert plan.memory[device] == plan.rows.memory + (n * n * (8 if paths else 4) if device == "cpu" else 0)


def test_what_does_not_fit_is_a_note() -> None:
    plan = sr.explain(2_000_000, sr.MIN_PLUS, "f4", "cpu")
    assert "what would work" in plan.notes[0]
    assert plan.memory == {"cpu": 4 * 2_000_000**2}
    assert "raise memory_limit by" in sr.explain(2_000_000, sr.MIN_PLUS, "f4", "cpu", memory_limit="20MiB").notes[0]


@pytest.mark.parametrize("n", [0, 1, 2])
def test_the_smallest(n: int) -> None:
    plan = sr.explain(n, device="cpu")
    assert plan.memory == {"cpu": 8 * n * n}
    assert (plan.seconds is None) == (n == 0)
    assert str(n) in repr(plan)


def test_exact_entries_are_not_predicted() -> None:
    plan = sr.explain(40, sr.MIN_PLUS, object)
    assert plan.devices == ("reference",)
    assert plan.seconds is None
    assert "not predicted" in repr(plan)


@pytest.mark.parametrize(
    ("arguments", "how", "said"),
    [
        ((-1,), {}, "n is -1"),
        ((2.5,), {}, "whole number"),
        ((2**31,), {}, "addresses"),
        ((10**30,), {}, "addresses"),
        ((10, 7), {}, "pass a Semiring"),
        ((10, "maxplus"), {}, "did you mean 'max-plus'"),
        ((10, sr.MIN_PLUS, "f2"), {}, "float16"),
        ((10, sr.PLUS_TIMES), {"paths": True}, "selective"),
        ((10,), {"method": "fast"}, "unknown method"),
        ((10,), {"block": 0}, "block is 0"),
        ((10, sr.MIN_PLUS, None, "gpu"), {}, "unknown device"),
        ((10, sr.MIN_PLUS, object), {"memory_limit": "1GiB"}, "reference engine"),
        ((10, sr.MIN_PLUS, object, "cuda"), {}, "exact arithmetic"),
    ],
)
def test_errors_are_those_of_the_closure(arguments: tuple[Any, ...], how: dict[str, Any], said: str) -> None:
    with pytest.raises(sr.SemiringError, match=said):
        sr.explain(*arguments, **how)


def test_nothing_is_allocated() -> None:
    tracemalloc.start()
    try:
        plans = sr.explain(10_000_000, sr.BOOLEAN, device="cpu"), sr.explain(10_000_000, sr.MIN_PLUS, "f4", device="cpu")
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < 1 << 28  # trials of the speed take less
    assert all(plan.notes for plan in plans)  # that nothing of this size fits


@no_gpu
def test_the_model_is_the_one_that_chooses_the_device() -> None:
    plan = sr.explain(4096, sr.MIN_PLUS, "f4", "cuda")
    assert plan.speed == speed_of("cuda", sr.MIN_PLUS, plan.dtypes)
    assert plan.seconds == closure_seconds(plan.problem, "cuda")


@pytest.mark.filterwarnings("error")
def test_repeated_calls_print_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    """For %timeit: no bar, no warning, no text, and the same result every time."""
    rng = np.random.default_rng(0)
    a = np.where(rng.random((300, 300)) < 0.1, rng.random((300, 300)), np.inf)
    results = [sr.apsp(a) for _ in range(5)] + [sr.apsp(a, memory_limit="100MB", device="cpu") for _ in range(2)]
    assert all(np.array_equal(r, results[0]) for r in results)
    sr.matmul(a, a, sr.MIN_PLUS)
    repr(sr.apsp(a, paths=True))
    assert capsys.readouterr() == ("", "")


@pytest.mark.gpu
@pytest.mark.parametrize("semiring", [sr.MIN_PLUS, sr.BOOLEAN, sr.PLUS_TIMES], ids=repr)
def test_on_a_gpu(semiring: sr.Semiring) -> None:
    dtype = "?" if semiring is sr.BOOLEAN else "f4"
    plan = sr.explain(4096, semiring, dtype, "cuda")
    assert plan.devices == ("cuda:0",)
    assert plan.seconds is not None
    assert plan.seconds < 10
    assert set(plan.memory) == {"cpu", "cuda:0"}
    engine: Any = engine_for(semiring, (np.dtype(dtype),), "cuda:0")
    assert (engine.pivot, engine.sweep, engine.block) == (plan.sides.pivot, plan.sides.sweep, plan.sides.block)
    assert not plan.notes
    rows = sr.explain(20_000, sr.MIN_PLUS, "f4", "cuda", memory_limit="512MiB").rows
    assert rows is not None
    assert rows.memory <= 512 << 20
