"""New memory of the host for what a GPU computes, brought about meanwhile."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import wait as wait_for
from contextlib import ExitStack
from typing import Any

import numpy as np

from semiring.kernels.cpu.threads import run, thread_count
from semiring.kernels.cuda.transfer import locked
from semiring.kernels.streaming.storage import ArrayRows

__all__ = ["Landing", "LandingRows"]

Array = np.ndarray[Any, Any]

_PAGE = 4096


class Landing:
    """New arrays of the host, whose pages threads bring about and lock: that takes longer than a copy through the link.

    As a context manager it unlocks them in the end.

    Parameters
    ----------
    shape : tuple of int
    dtypes : sequence of numpy.dtype
        One for each array.

    Attributes
    ----------
    arrays : tuple of arrays
        Nothing is to be written to them before `wait` returns.
    rows : tuple of ArrayRows
        Theirs, which wait themselves.
    """

    def __init__(self, shape: tuple[int, ...], dtypes: Sequence[np.dtype[Any]]) -> None:
        import cupy

        self.arrays: tuple[Array, ...] = tuple(np.empty(shape, d) for d in dtypes)
        self._locks = ExitStack()
        thread = ThreadPoolExecutor(1)
        self._ready = thread.submit(self._prepare, cupy.cuda.Device())
        thread.shutdown(wait=False)
        self.rows = tuple(LandingRows(array, self._ready) for array in self.arrays)

    def _prepare(self, device: Any) -> None:
        with device:  # else the thread would begin to use the first GPU
            for array in self.arrays:
                _touch(array)
                self._locks.enter_context(locked([array]))

    def wait(self) -> None:
        """Until the memory is there."""
        self._ready.result()

    def __enter__(self) -> Landing:
        return self

    def __exit__(self, *error: object) -> None:
        wait_for([self._ready])
        self._locks.close()


class LandingRows(ArrayRows):
    """The rows of an array whose memory is coming about."""

    def __init__(self, array: Array, ready: Future[None]) -> None:
        super().__init__(array)
        self._ready = ready

    @property
    def writable(self) -> Any:
        """The array, once its memory is there."""
        self._ready.result()
        return self.array


def _touch(array: Array) -> None:
    """Write to every page: the system hands them out faster to several threads."""
    pages, threads = array.reshape(-1).view(np.uint8)[::_PAGE], thread_count()
    run(lambda part, _: part.fill(0), np.array_split(pages, threads), threads)
