"""Engines that compute as the papers' programs did: the CUDA engine with other products, and with other ways to launch them."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from semiring.algebra.catalogue import MIN_PLUS
from semiring.kernels.cuda.compiler import compile_source
from semiring.kernels.cuda.engine import CudaEngine
from semiring.kernels.cuda.representation import represent
from semiring.kernels.cuda.source import semiring_struct
from semiring.kernels.cuda.tile import Tile, TileProblem
from semiring.kernels.engine import Block
from semiring.kernels.hardware import device

__all__ = ["FLOAT", "OneElementAThread", "OneTile", "Streams", "tile_source"]

FLOAT = (np.dtype(np.float32),)


class OneTile(CudaEngine):
    """Every product in the same tile, whatever its shape."""

    def __init__(self, tile: Tile) -> None:
        super().__init__(MIN_PLUS, FLOAT)
        self._tile = tile

    def tile_for(self, problem: TileProblem) -> Tile:
        """That tile."""
        return self._tile


class OneByOne(CudaEngine):
    """Products that do not depend on each other have a launch each."""

    def multiply_add_each(self, *products: tuple[Block, Block, Block]) -> None:
        """C ← C ⊕ A⊗B for each of them."""
        for A, B, C in products:
            self.multiply_add(A, B, C)


class OneElementAThread(OneByOne):
    """Products by the kernel of ``historical.cuh``, for blocks of one matrix."""

    def __init__(self, side: int) -> None:
        super().__init__(MIN_PLUS, FLOAT)
        self._side = side

    def multiply_add(self, A: Block, B: Block, C: Block) -> None:
        """C ← C ⊕ A⊗B."""
        (m, n), k = C.shape, A.shape[1]
        operands = [Block(tuple(v.copy() for v in X.values), None, X.row, X.column) if _meet(X, C) else X for X in (A, B)]
        arguments = [x for X in (*operands, C) for x in _pointer_and_row(X.values[0])]
        _tile_kernel(self._side, device(self.number).arch)(
            (-(-n // self._side), -(-m // self._side), 1), (self._side, self._side, 1), (*arguments, m, n, k)
        )


class Streams(OneByOne):
    """Operations run in several streams side by side, as far as none reads or writes what another one writes.

    What has been begun is only complete after `join`.
    """

    def __init__(self, count: int = 4) -> None:
        import cupy

        super().__init__(MIN_PLUS, FLOAT)
        self._streams = [cupy.cuda.Stream(non_blocking=True) for _ in range(count)]
        self._begun: list[tuple[tuple[Block, ...], Block]] = []

    def multiply_add(self, A: Block, B: Block, C: Block) -> None:
        """C ← C ⊕ A⊗B."""
        self._begin((A, B), C, lambda: super(Streams, self).multiply_add(A, B, C))

    def close(self, A: Block) -> None:
        """A ← A ⊕ A² ⊕ …."""
        self._begin((), A, lambda: super(Streams, self).close(A))

    def _begin(self, operands: tuple[Block, ...], result: Block, work: Callable[[], None]) -> None:
        for read, written in self._begun:
            if any(_meet(written, X) for X in (*operands, result)) or any(_meet(result, X) for X in read):
                self.join()
                break
        stream = self._streams[len(self._begun) % len(self._streams)]
        _wait(stream, _current())
        with stream:
            work()
        self._begun.append((operands, result))

    def join(self) -> None:
        """Let the current stream wait for all that was begun."""
        for stream in self._streams[: len(self._begun)]:
            _wait(_current(), stream)
        self._begun.clear()


def _current() -> Any:
    import cupy

    return cupy.cuda.get_current_stream()


def _wait(stream: Any, other: Any) -> None:
    """What is put into `stream` from now on waits for all that `other` has to do by now."""
    import cupy

    event = cupy.cuda.Event(disable_timing=True)
    event.record(other)
    stream.wait_event(event)


def _meet(x: Block, y: Block) -> bool:
    """Whether two blocks of one matrix have elements in common."""
    (m, n), (p, q) = x.shape, y.shape
    return x.row < y.row + p and y.row < x.row + m and x.column < y.column + q and y.column < x.column + n


def _pointer_and_row(array: Any) -> tuple[int, int]:
    return array.data.ptr, array.strides[-2] // array.itemsize


def tile_source(side: int) -> str:
    """The CUDA C++ of ``update_tile`` for tiles of side × side numbers, as the kernel ``multiply_add``."""
    template = (Path(__file__).parent / "historical.cuh").read_text(encoding="utf-8").replace("#pragma once", "")
    matrices = ", ".join(f"float* {x}, long long {x}_row" for x in "abc")
    arguments = ", ".join(f"{{{{{x}}}, {x}_row, 1, 0}}" for x in "abc")
    return f"""#include "arithmetic.cuh"
{template}
{semiring_struct(represent(MIN_PLUS, FLOAT), None)}
extern "C" __global__ void __launch_bounds__({side * side}) multiply_add({matrices}, long long m, long long n, long long k) {{
  update_tile<Semiring, {side}>({arguments}, int(m), int(n), int(k));
}}
"""


@functools.cache
def _tile_kernel(side: int, arch: int) -> Any:
    import cupy

    module: Any = cupy.cuda.Module()
    module.load(compile_source(tile_source(side), arch))
    return module.get_function("multiply_add")
