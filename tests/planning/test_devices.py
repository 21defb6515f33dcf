"""Which device computes: what is asked for, or what is predicted to be faster and has the room."""

from __future__ import annotations

import numpy as np
import pytest

import semiring as sr
from semiring.arrays import devices, memory
from semiring.kernels import machine
from semiring.planning import closure_problem, plan, planner
from semiring.planning.options import Options, named_device, named_gpus

GIB = 2**30


@pytest.fixture(autouse=True)
def one_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """A GPU with 4 GiB left, on which the process has computed, as far as choices are concerned."""
    monkeypatch.setattr(planner, "_plans", {})
    monkeypatch.setattr(devices, "_found", lambda: (1, ""))
    monkeypatch.setattr(memory, "free_on_gpu", lambda number: 4 * GIB)
    monkeypatch.setattr(machine, "_relative_size", lambda device: 1.0)
    monkeypatch.setattr(machine, "used_devices", {"cuda:0"})


def device_for(n: int, semiring: sr.Semiring = sr.MIN_PLUS, dtype: str = "f4", device: str = "auto", place: str = "cpu") -> str:
    return plan(closure_problem(semiring, (np.dtype(dtype),), (n, n), Options(device=device), place=place)).device


def test_auto_takes_a_gpu_where_it_is_faster() -> None:
    assert device_for(20) == "cpu"
    assert device_for(8192) == "cuda:0"


def test_auto_takes_a_gpu_only_if_it_has_the_room() -> None:
    assert device_for(30_000, sr.PLUS_TIMES) == "cuda:0"
    assert device_for(35_000, sr.PLUS_TIMES) == "cpu"


def test_what_does_not_fit_goes_by_block_rows_where_it_can() -> None:
    found = plan(closure_problem(sr.MIN_PLUS, (np.dtype("f4"),), (40_000, 40_000), Options()))
    assert (found.device, found.strategy) == ("cuda:0", "block rows")


def test_auto_reckons_with_the_start_of_a_gpu_only_once(monkeypatch: pytest.MonkeyPatch) -> None:
    n = 3000  # half a second on two cores
    monkeypatch.setattr(machine, "thread_count", lambda threads=None: 2)
    monkeypatch.setattr(machine, "used_devices", set())
    assert device_for(n) == "cpu"
    monkeypatch.setattr(machine, "used_devices", {"cuda:0"})
    assert device_for(n) == "cuda:0"


def test_what_is_asked_for_is_taken() -> None:
    assert device_for(2, device="cuda:0") == device_for(2, device="cuda") == "cuda:0"
    assert device_for(8192, device="cpu") == "cpu"
    assert device_for(8192, device="reference") == "reference"


def test_operands_on_a_gpu_stay_there() -> None:
    assert device_for(2, place="cuda:0") == "cuda:0"
    with pytest.raises(sr.SemiringError, match="lies on a GPU, which device='cpu' cannot reach"):
        device_for(2, device="cpu", place="cuda:0")


@pytest.mark.parametrize("device", ["tpu", "cuda:", "cuda:x", "cuda:-1", "cuda:²", "cuda0", "CUDA", None, 0])
def test_no_device_is_called_so(device: object) -> None:
    with pytest.raises(sr.SemiringError, match=r"unknown device .*; use 'auto'"):
        named_device(device, "cpu", exact=False)


def test_a_gpu_that_is_not_there() -> None:
    with pytest.raises(sr.SemiringError, match=r"no device 'cuda:1': the last GPU is 'cuda:0'$"):
        named_device("cuda:1", "cpu", exact=False)


class TestSeveral:
    @pytest.mark.parametrize("device", ["cuda:all", ["cuda:0"], ["cuda"], (0,)])
    def test_names_and_numbers(self, device: object) -> None:
        assert named_gpus(device) == ("cuda:0",)

    @pytest.mark.parametrize("device", ["auto", "cpu", "cuda", "cuda:0"])
    def test_one_device_is_not_several(self, device: str) -> None:
        assert named_gpus(device) is None

    @pytest.mark.parametrize("device", [[], ["cpu"], [True], ["cuda:0", 0], ["cuda", "cuda:0"], ["cuda:0", "cuda:00"], ["cuda:all"], [-1]])
    def test_a_list_names_different_gpus(self, device: object) -> None:
        with pytest.raises(sr.SemiringError, match="a list names different GPUs"):
            named_gpus(device)

    def test_one_of_them_is_not_there(self) -> None:
        with pytest.raises(sr.SemiringError, match="no device 'cuda:7'"):
            named_gpus([0, 7])
