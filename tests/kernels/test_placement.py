"""Which device computes: what is asked for, or what is predicted to be faster and has the room."""

from __future__ import annotations

import numpy as np
import pytest

import semiring as sr
from semiring.kernels import prediction
from semiring.kernels.placement import place, several

GIB = 2**30
STEPS = 1e15  # far more than a CPU does in the time that a GPU takes to start


@pytest.mark.usefixtures("one_gpu")
class TestPlace:
    def test_auto_takes_a_gpu_only_if_it_has_the_room(self) -> None:
        a = (np.ones((2, 2)),)
        assert place("auto", a, STEPS, 4 * GIB) == "cuda:0"
        assert place("auto", a, STEPS, 4 * GIB + 1) == "cpu"
        assert place("auto", a, 8.0, 0) == "cpu"

    def test_auto_reckons_with_the_start_of_a_gpu_only_once(self, monkeypatch: pytest.MonkeyPatch) -> None:
        a, second = (np.ones((2, 2)),), 1.0 * prediction.CPU.steps
        monkeypatch.setattr(prediction, "begun", set())
        assert place("auto", a, second, 0) == "cpu"
        monkeypatch.setattr(prediction, "begun", {"cuda:0"})
        assert place("auto", a, second, 0) == "cuda:0"
        assert place("auto", a, second / 1000, 0) == "cpu"

    def test_what_is_asked_for_is_taken(self) -> None:
        assert place("cuda:0", (np.ones((2, 2)),), 8.0, 5 * GIB) == "cuda:0"
        assert place("cuda", (np.ones((2, 2)),), 8.0, 5 * GIB) == "cuda:0"

    @pytest.mark.parametrize("device", ["tpu", "cuda:", "cuda:x", "cuda:-1", "cuda:²", "cuda0", "CUDA", None, 0])
    def test_no_device_is_called_so(self, device: object) -> None:
        with pytest.raises(sr.SemiringError, match=r"unknown device .*; use 'auto'"):
            place(device, (), 8.0, 0)

    def test_a_gpu_that_is_not_there(self) -> None:
        with pytest.raises(sr.SemiringError, match=r"no device 'cuda:1': the last GPU is 'cuda:0'$"):
            place("cuda:1", (), 8.0, 0)


@pytest.mark.usefixtures("one_gpu")
class TestSeveral:
    @pytest.mark.parametrize("device", ["cuda:all", ["cuda:0"], ["cuda"], (0,)])
    def test_names_and_numbers(self, device: object) -> None:
        assert several(device) == ("cuda:0",)

    @pytest.mark.parametrize("device", ["auto", "cpu", "cuda", "cuda:0"])
    def test_one_device_is_not_several(self, device: str) -> None:
        assert several(device) is None

    @pytest.mark.parametrize("device", [[], ["cpu"], [True], ["cuda:0", 0], ["cuda", "cuda:0"], ["cuda:0", "cuda:00"], ["cuda:all"], [-1]])
    def test_a_list_names_different_gpus(self, device: object) -> None:
        with pytest.raises(sr.SemiringError, match="a list names different GPUs"):
            several(device)

    def test_one_of_them_is_not_there(self) -> None:
        with pytest.raises(sr.SemiringError, match="no device 'cuda:7'"):
            several([0, 7])
