"""What memory is left, and what is refused because it does not fit."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

import semiring as sr
from semiring.arrays import memory

GIB = 2**30


@pytest.mark.usefixtures("one_gpu")
class TestRoomOfAGpu:
    def test_a_product_that_does_not_fit(self) -> None:
        long = np.broadcast_to(np.float32(1), (1 << 17, 1))
        with pytest.raises(sr.TooLargeError, match=r"66\.6 GiB on cuda:0, where 4\.0 GiB are free; .*device='cpu'"):
            sr.matmul(long, long.T, sr.MIN_PLUS, device="cuda")

    def test_a_closure_that_does_not_fit(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(memory, "free_on_host", lambda: None)  # of the host
        large = np.broadcast_to(np.float32(1), (1 << 15, 1 << 15))
        with pytest.raises(sr.TooLargeError, match=r"4\.\d GiB, but 4\.0 GiB of memory are available on cuda:0.*device='cpu'"):
            sr.closure(large, sr.PLUS_TIMES, device="cuda")

    def test_little_is_not_asked_for(self) -> None:
        memory.require_room("cuda:0", memory.ALWAYS_FITS, "")
        memory.require_room("cpu", 1 << 60, "")
        with pytest.raises(sr.TooLargeError, match="free; advice"):
            memory.require_room("cuda:0", 5 * GIB, "advice")


class TestFreeMemoryOfTheHost:
    def test_here(self) -> None:
        free = memory.free_on_host()
        assert free is None or free > 0

    def test_linux_reports_what_is_available(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        report = tmp_path / "meminfo"
        report.write_text("MemTotal:  200 kB\nMemAvailable:    100 kB\n")
        monkeypatch.setattr(memory, "_MEMORY_INFO", report)
        monkeypatch.setattr(memory, "_LIMITS", tmp_path)
        assert memory.free_on_host() == 100 * 1024

    def test_a_container_limits_it(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        (tmp_path / "memory.max").write_text("5000\n")
        (tmp_path / "memory.current").write_text("3000\n")
        (tmp_path / "memory.stat").write_text("anon 1\ninactive_file 500\n")
        monkeypatch.setattr(memory, "_LIMITS", tmp_path)
        assert memory.free_on_host() == 2500
        (tmp_path / "memory.max").write_text("max\n")
        free = memory.free_on_host()
        assert free is None or free > 2500

    def test_elsewhere(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(memory, "_MEMORY_INFO", tmp_path / "none")
        monkeypatch.setattr(memory, "_LIMITS", tmp_path)
        assert memory.free_on_host() or sys.platform == "win32"  # Windows answers only with psutil
        monkeypatch.setitem(sys.modules, "psutil", None)
        free = memory.free_on_host()
        assert free is None or free > 0
