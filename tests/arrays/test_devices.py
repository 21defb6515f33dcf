"""The names of devices, and which GPUs there are, where CuPy itself may be lacking."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

import semiring as sr
from semiring.arrays import devices
from semiring.arrays.devices import gpu_name, gpu_number, is_gpu
from semiring.planning.options import named_device


@pytest.mark.parametrize("number", [0, 3, 12])
def test_the_name_of_a_gpu_has_its_number(number: int) -> None:
    assert is_gpu(gpu_name(number))
    assert gpu_number(gpu_name(number)) == number


def test_any_gpu_is_the_first() -> None:
    assert is_gpu("cuda")
    assert gpu_number("cuda") == 0


@pytest.mark.parametrize("name", ["", "auto", "cpu", "reference", "cuda:", "cuda:all", "cuda:-1", "cuda:²", "cuda:1 ", "cuda1", "xcuda"])
def test_other_names(name: str) -> None:
    assert not is_gpu(name)


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
    devices._found.cache_clear()
    try:
        assert named_device("auto", "cpu", exact=False) == "cpu"
        with pytest.raises(sr.SemiringError, match=r"no device 'cuda'.*libcuda\.so\.1"):
            sr.apsp(np.zeros((2, 2)), device="cuda")
    finally:
        sys.modules.pop("cupy", None)
        devices._found.cache_clear()
