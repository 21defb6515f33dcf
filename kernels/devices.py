"""Devices: what their names say, where arrays lie, which GPUs there are, and the one that is current."""

from __future__ import annotations

import functools
import importlib.util
import os
import re
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from semiring.algebra.errors import TooLargeError
from semiring.algebra.forks import importing, in_children
from semiring.algebra.namespace import on_gpu

__all__ = ["device_of", "gpu_name", "gpu_number", "gpus", "is_gpu", "on_device", "why_no_gpu"]

_INSTALL = "pip install 'semiring[cuda13]'"


@functools.lru_cache(maxsize=256)
def is_gpu(device: str) -> bool:
    """Whether it names a GPU: "cuda:0" and so on, or "cuda" for any, or for one that is not there."""
    return re.fullmatch("cuda(:[0-9]+)?", device) is not None


def gpu_number(device: str) -> int:
    """The number in the name of a GPU; 0 for "cuda"."""
    return int(device[5:] or 0)


def gpu_name(number: int) -> str:
    """The name of the GPU with this number."""
    return f"cuda:{number}"


def device_of(array: Any) -> str:
    """Where an array lies: "cpu", or "cuda:0" and so on."""
    return gpu_name(array.device.id) if on_gpu(array) else "cpu"


def on_device(device: str) -> AbstractContextManager[None]:
    """Makes a GPU the current one, for what runs on it; nothing is to be done for another device.

    Raises
    ------
    TooLargeError
        Where its memory is used up meanwhile.
    """
    return _Current(gpu_number(device)) if is_gpu(device) else _NOTHING


_NOTHING = nullcontext()


class _Current:
    """Makes a GPU the current one where it is not; written out, which takes a quarter of the time of a generator."""

    __slots__ = ("_number", "_switched")

    def __init__(self, number: int) -> None:
        self._number = number
        self._switched: Any = None

    def __enter__(self) -> None:
        import cupy

        if cupy.cuda.runtime.getDevice() != self._number:
            self._switched = cupy.cuda.Device(self._number)
            self._switched.__enter__()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        if self._switched is not None:
            self._switched.__exit__(kind, error, trace)
        if error is not None:
            self._refuse(error)

    def _refuse(self, error: BaseException) -> None:
        import cupy

        if isinstance(error, cupy.cuda.memory.OutOfMemoryError):
            raise TooLargeError(
                f"{gpu_name(self._number)} has not the memory for this: {error}; free some there, pass overwrite=True or a narrower dtype, "
                f"or compute on the host (device='cpu', and arrays that lie there)"
            ) from error


def gpus() -> int:
    """How many GPUs CuPy finds; 0 where there is no CuPy, or none that works."""
    return _found()[0]


def why_no_gpu() -> str:
    """Why CuPy finds none, or what to install."""
    return _found()[1] or _INSTALL


_begun_by: set[int] = set()
"""The processes that have asked CUDA: this one, and those it was forked from."""


@functools.cache
def _found() -> tuple[int, str]:
    """How many GPUs there are, and why there is none if the reason is known."""
    if importlib.util.find_spec("cupy") is None:
        return 0, ""
    try:
        with importing:  # no fork comes between, after which the child would not know that CUDA had been asked
            if _begun_by - {os.getpid()}:
                return 0, "this process was forked from one that had used CUDA; multiprocessing's 'spawn' starts one that can"
            import cupy

            _begun_by.add(os.getpid())
            return int(cupy.cuda.runtime.getDeviceCount()), ""
    except Exception as error:  # an installation that does not fit the driver fails in many ways, and nobody asked for a GPU yet
        return 0, str(error).strip().partition("\n")[0]


in_children(_found.cache_clear)
