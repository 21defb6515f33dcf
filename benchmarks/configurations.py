"""The systems of the papers as configurations of this library: a schedule of `semiring.algorithms` on an engine.

The engine is the library's own, or one that computes its products as a program of that time did (`benchmarks.historical`).
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import semiring as sr
from benchmarks.historical import FLOAT, OneByOne, OneElementAThread, OneTile, Streams
from semiring.algorithms.blocked import blocked, iterative
from semiring.algorithms.recursive import recursive
from semiring.algorithms.schedules import Pivots
from semiring.kernels.cuda.engine import CudaEngine
from semiring.kernels.cuda.tile import Tile
from semiring.kernels.engine import Block, Primitives
from semiring.kernels.select import engine_for

__all__ = ["CONFIGURATIONS", "Configuration", "Prepared"]


@dataclass(frozen=True)
class Configuration:
    """How one of the systems runs here.

    Attributes
    ----------
    schedule : callable
    engine : callable
        Makes the engine for the GPU.
    paths : bool
        With the construction matrix.
    graph : bool
        Launched as one CUDA graph, so that the GPU's time is measured and not that of Python, which the papers did not use.
    largest : int
        Vertices up to which it is run on a GPU unless more are asked for, so that all together take about a minute.
    largest_on_cpu : int
        The same on the CPU, where all products are the CPU engine's; 0 where that leaves no difference to another configuration.
    """

    schedule: Callable[[Primitives, Block], None]
    engine: Callable[[], CudaEngine] = lambda: CudaEngine(sr.MIN_PLUS, FLOAT)
    paths: bool = False
    graph: bool = True
    largest: int = 32768
    largest_on_cpu: int = 0

    def limit(self, device: str) -> int:
        """Vertices up to which it is run; 0 for not at all."""
        return self.largest_on_cpu if device == "cpu" else self.largest


def _blocked(side: int) -> Callable[[Primitives, Block], None]:
    return lambda engine, A: blocked(engine, A, side)


def _recursive(base: int) -> Callable[[Primitives, Block], None]:
    return lambda engine, A: recursive(engine, A, base)


def _by_size(engine: Primitives, A: Block) -> None:
    """Blocked, with a blocking factor that grows with n: large enough for fast products, small beside n."""
    blocked(engine, A, max(128, A.shape[0] // 16))


def _one_by_one() -> CudaEngine:
    return OneByOne(sr.MIN_PLUS, FLOAT)


CONFIGURATIONS = {
    "iterative": Configuration(iterative, largest=8192, largest_on_cpu=1024),
    "tiles in shared memory": Configuration(_blocked(32), lambda: OneElementAThread(32), largest=16384, largest_on_cpu=2048),
    "sums in registers": Configuration(_blocked(32), lambda: OneTile(Tile(32, 32, 32, 4, 4, 2, 12)), largest=16384),
    "staged slices": Configuration(_blocked(32), lambda: OneTile(Tile(32, 32, 8, 4, 4, 3, 16)), largest=16384),
    "recursive, simple product": Configuration(_recursive(32), lambda: OneElementAThread(16), largest=16384),
    "recursive, tuned product": Configuration(_recursive(128), largest_on_cpu=4096),
    "united": Configuration(_by_size, paths=True, largest_on_cpu=4096),
    "distances only": Configuration(_by_size, largest_on_cpu=4096),
    "blocks of 32": Configuration(_blocked(32), _one_by_one, graph=False, largest=8192),
    "blocks of 64": Configuration(_blocked(64), _one_by_one, graph=False, largest=8192),
    "blocks of 128": Configuration(_blocked(128), _one_by_one, graph=False, largest=8192),
    "blocks of 128, streams": Configuration(_blocked(128), Streams, graph=False, largest=8192),
    "blocks of 128, graph": Configuration(_blocked(128), _one_by_one, largest=8192),
    "blocks of 128, streams, graph": Configuration(_blocked(128), Streams, largest=8192),
}


class Prepared:
    """One configuration on a matrix of its own, run once and ready to be started again and again.

    Parameters
    ----------
    configuration : Configuration
    w : float32 array of shape (n, n)
        Weights, in the memory of the device; ∞ for no edge.
    device : {"cpu", "cuda"}
    """

    def __init__(self, configuration: Configuration, w: Any, device: str) -> None:
        self._w, self._work, self._on_gpu = w, w.copy(), device != "cpu"
        self._via = np.full_like(w, -1, dtype=np.int32) if configuration.paths else None
        self._engine = configuration.engine() if self._on_gpu else engine_for(sr.MIN_PLUS, FLOAT, "cpu")
        self._block = self._engine.load((self._work,), self._via)
        self._schedule = configuration.schedule
        self._close()  # compiles what it needs
        self._engine.verify()
        self._start = _recorded(self._close) if configuration.graph and self._on_gpu else self._close

    def _close(self) -> None:
        self._schedule(Pivots(self._engine), self._block)
        if isinstance(self._engine, Streams):
            self._engine.join()

    def seconds(self) -> float:
        """Close the matrix once."""
        self._work[...] = self._w
        if self._via is not None:
            self._via[...] = -1
        self._engine.add_identity(self._block)
        elapsed = (_by_events if self._on_gpu else _by_the_clock)(self._start)
        self._engine.verify()
        return elapsed

    def result(self) -> tuple[Any, Any]:
        """The distances, and the construction matrix or None."""
        self._engine.store(self._block, (self._work,))
        return self._work, self._via


def _by_the_clock(work: Callable[[], None]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def _by_events(work: Callable[[], None]) -> float:
    import cupy

    begin, end = cupy.cuda.Event(), cupy.cuda.Event()
    begin.record()
    work()
    end.record()
    end.synchronize()
    return float(cupy.cuda.get_elapsed_time(begin, end)) / 1e3


def _recorded(work: Callable[[], None]) -> Callable[[], None]:
    """The same work as one CUDA graph."""
    import cupy

    pool = cupy.cuda.MemoryPool()
    stream = cupy.cuda.Stream(non_blocking=True)
    with cupy.cuda.using_allocator(pool.malloc), stream:
        stream.begin_capture()
        try:
            work()
        finally:
            graph = stream.end_capture()
    return functools.partial(_launch, graph, pool)


def _launch(graph: Any, _pool: Any) -> None:
    """Start a graph, whose temporaries live in the pool."""
    graph.launch()
