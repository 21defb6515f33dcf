"""Which device computes, where memory or CuPy itself may be lacking."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import semiring as sr
from semiring.kernels import room, select

GIB = 2**30
STEPS = 1e15  # far more than a CPU does in the time that a GPU takes to start


@pytest.fixture
def one_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """A GPU with 4 GiB left, as far as choices are concerned."""
    monkeypatch.setattr(select, "_found", lambda: (1, ""))
    monkeypatch.setattr(room, "free_on_gpu", lambda number: 4 * GIB)


@pytest.mark.usefixtures("one_gpu")
class TestRoom:
    def test_auto_takes_a_gpu_only_if_it_has_the_room(self) -> None:
        a = (np.ones((2, 2)),)
        assert select.place("auto", a, STEPS, 4 * GIB) == "cuda:0"
        assert select.place("auto", a, STEPS, 4 * GIB + 1) == "cpu"
        assert select.place("auto", a, 8.0, 0) == "cpu"

    def test_auto_reckons_with_the_start_of_a_gpu_only_once(self, monkeypatch: pytest.MonkeyPatch) -> None:
        a, second = (np.ones((2, 2)),), 1.0 * select.CPU.steps
        monkeypatch.setattr(select, "_begun", set())
        assert select.place("auto", a, second, 0) == "cpu"
        monkeypatch.setattr(select, "_begun", {"cuda:0"})
        assert select.place("auto", a, second, 0) == "cuda:0"
        assert select.place("auto", a, second / 1000, 0) == "cpu"

    def test_what_is_asked_for_is_taken(self) -> None:
        assert select.place("cuda:0", (np.ones((2, 2)),), 8.0, 5 * GIB) == "cuda:0"

    def test_a_product_that_does_not_fit(self) -> None:
        long = np.broadcast_to(np.float32(1), (1 << 17, 1))
        with pytest.raises(sr.TooLargeError, match=r"66\.6 GiB on cuda:0, where 4\.0 GiB are free; .*device='cpu'"):
            sr.matmul(long, long.T, sr.MIN_PLUS, device="cuda")

    def test_a_closure_that_does_not_fit(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(room, "free_on_host", lambda: None)  # of the host
        large = np.broadcast_to(np.float32(1), (1 << 15, 1 << 15))
        with pytest.raises(sr.TooLargeError, match=r"4\.\d GiB, but 4\.0 GiB of memory are available on cuda:0.*device='cpu'"):
            sr.closure(large, sr.PLUS_TIMES, device="cuda")

    def test_little_is_not_asked_for(self) -> None:
        room.require_room("cuda:0", room.ALWAYS_FITS, "")
        room.require_room("cpu", 1 << 60, "")
        with pytest.raises(sr.TooLargeError, match="free; advice"):
            room.require_room("cuda:0", 5 * GIB, "advice")


@pytest.mark.parametrize(
    "text",
    [
        "raise ImportError('libcuda.so.1: no such file')",
        "class ndarray: pass\nclass cuda:\n class runtime:\n  def getDeviceCount(): raise RuntimeError('libcuda.so.1: too old a driver')",
    ],
)
def test_a_broken_cupy_is_as_good_as_none(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, text: str) -> None:
    (tmp_path / "cupy.py").write_text(text)
    monkeypatch.delitem(sys.modules, "cupy", raising=False)
    monkeypatch.syspath_prepend(tmp_path)
    select._found.cache_clear()
    try:
        assert select.place("auto", (np.ones((2, 2)),), STEPS, 0) == "cpu"
        with pytest.raises(sr.SemiringError, match=r"no device 'cuda'.*libcuda\.so\.1"):
            sr.apsp(np.zeros((2, 2)), device="cuda")
    finally:
        sys.modules.pop("cupy", None)
        select._found.cache_clear()


@pytest.mark.parametrize("wrong", ["min-plus", None, min])
@pytest.mark.parametrize(
    "call",
    [lambda s: sr.matmul(np.eye(2), np.eye(2), s), lambda s: sr.closure(np.eye(2), s), lambda s: sr.power(np.eye(2), 2, s), sr.check],
)
def test_what_is_no_semiring_is_refused_alike(call: Any, wrong: Any) -> None:
    with pytest.raises(sr.SemiringError, match=r"semiring is .*; pass a Semiring such as semiring\.MIN_PLUS"):
        call(wrong)


class TestFreeMemoryOfTheHost:
    def test_here(self) -> None:
        free = room.free_on_host()
        assert free is None or free > 0

    def test_linux_reports_what_is_available(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        report = tmp_path / "meminfo"
        report.write_text("MemTotal:  200 kB\nMemAvailable:    100 kB\n")
        monkeypatch.setattr(room, "_MEMORY_INFO", report)
        monkeypatch.setattr(room, "_LIMITS", tmp_path)
        assert room.free_on_host() == 100 * 1024

    def test_a_container_limits_it(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        (tmp_path / "memory.max").write_text("5000\n")
        (tmp_path / "memory.current").write_text("3000\n")
        (tmp_path / "memory.stat").write_text("anon 1\ninactive_file 500\n")
        monkeypatch.setattr(room, "_LIMITS", tmp_path)
        assert room.free_on_host() == 2500
        (tmp_path / "memory.max").write_text("max\n")
        free = room.free_on_host()
        assert free is None or free > 2500

    def test_elsewhere(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(room, "_MEMORY_INFO", tmp_path / "none")
        monkeypatch.setattr(room, "_LIMITS", tmp_path)
        assert room.free_on_host()
        monkeypatch.setitem(__import__("sys").modules, "psutil", None)
        free = room.free_on_host()
        assert free is None or free > 0
