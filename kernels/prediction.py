"""What work is predicted to take on the CPU and on a GPU."""

from __future__ import annotations

import math

from semiring.kernels.devices import gpus
from semiring.kernels.room import fits
from semiring.kernels.streaming.plan import Speed

__all__ = ["CPU", "GPU", "begun", "faster_on_gpu", "predicted", "seconds_on_gpu"]

CPU, GPU = Speed(5e10, math.inf), Speed(8e12, 1.5e10)
"""What a few cores and a GPU do: rough, as the choice is only wrong where both are close."""

_GPU_START, _GPU_CALL = 2.0, 3e-3
"""Seconds that CuPy's import, the first kernels and the first copies may take, and what any later call takes."""

begun: set[str] = set()
"""The GPUs that this process has computed on."""


def faster_on_gpu(steps: float, size: int, needed: int) -> bool:
    """Whether there is a GPU with room for `needed` bytes that is predicted to be faster than the CPU on `size` bytes of the host."""
    return predicted(CPU, steps, size) > seconds_on_gpu(steps, size) and gpus() > 0 and fits(needed, "cuda:0")


def seconds_on_gpu(steps: float, size: int) -> float:
    """What work of so many steps is predicted to take on a GPU, with the copies of `size` bytes there and back."""
    return (_GPU_CALL if begun else _GPU_START) + predicted(GPU, steps, size)


def predicted(speed: Speed, steps: float, size: int) -> float:
    """Seconds of work of so many steps, with the copies of `size` bytes there and back."""
    return 2 * size / speed.link + steps / speed.steps
