"""How far the choice of a tile is from the fastest of the candidates, over shapes large and small, narrow and many.

    python -m benchmarks.tiles
    python -m benchmarks.tiles --products f32 i16

Every candidate runs on the same random operands on one GPU; times are medians by CUDA events after warm-up.
"""

from __future__ import annotations

import argparse
import functools
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any
from unittest import mock

import numpy as np

import semiring as sr
from benchmarks.gpu import generator, milliseconds
from benchmarks.measure import print_table
from semiring.kernels.cuda.engine import CudaEngine
from semiring.kernels.cuda.kernels import kernels_for, problem_for, reads_vectors
from semiring.kernels.cuda.tile import Tile, candidate_tiles, choose_tile, looks_up_in_shared

SHAPES = (
    *((1, n, n, n) for n in (256, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192)),
    (1, 128, 8192, 8192), (1, 8192, 128, 8192), (1, 8192, 8192, 128), (1, 512, 512, 16384), (1, 2048, 2048, 512), (1, 4032, 4032, 64),
    (1024, 128, 128, 128), (256, 256, 256, 256), (64, 512, 512, 512), (16, 1000, 1000, 1000),
)  # fmt: skip
"""Batch, m, n and k."""


@dataclass(frozen=True)
class Product:
    """A min-plus product to be measured."""

    dtype: str
    witness: bool = False


PRODUCTS = {
    "f32": Product("float32"),
    "f32 with witness": Product("float32", witness=True),
    "i32": Product("int32"),
    "i16": Product("int16"),
    "f64": Product("float64"),
}


def operand(dtype: str, shape: tuple[int, ...]) -> Any:
    """Random numbers that no sum of two leaves the dtype with."""
    rng = generator(shape[-1])
    return rng.integers(0, 1000, shape).astype(dtype) if np.dtype(dtype).kind == "i" else rng.random(shape).astype(dtype)


def graph(work: Callable[[], object], repeats: int) -> Callable[[], object]:
    """Many times `work` as one CUDA graph, so that short kernels follow each other without a pause."""
    import cupy

    with cupy.cuda.Stream(non_blocking=True) as stream:
        work()
        stream.begin_capture()
        for _ in range(repeats):
            work()
        recorded: Any = stream.end_capture()
        stream.synchronize()
    return lambda: recorded.launch(cupy.cuda.get_current_stream())


def times(p: Product, shape: tuple[int, int, int, int]) -> tuple[dict[Tile, float], Tile]:
    """Milliseconds by candidate, and the candidate that is chosen."""
    import cupy

    count, m, n, k = shape
    kernels = kernels_for(sr.MIN_PLUS, (np.dtype(p.dtype),), 0)
    engine = CudaEngine(sr.MIN_PLUS, (np.dtype(p.dtype),))
    A, B = (engine.load((operand(p.dtype, (count, *sides)),), owned=False) for sides in ((m, k), (k, n)))
    C = engine.blank((cupy.empty((count, m, n), p.dtype),), cupy.empty((count, m, n), dtype=np.int32) if p.witness else None)
    step = kernels.step(ordered_bits=p.dtype == "float32", pairs=not p.witness)
    light = reads_vectors(kernels.representation, step)
    problem = problem_for(kernels.representation, step, (m, n, k, count), witness=p.witness, light=light)
    problem = replace(problem, shared_lookup=looks_up_in_shared(problem, kernels.device))
    repeats = min(50, max(1, 10**10 // (count * m * n * k)))
    found = {}
    for tile in candidate_tiles(problem):
        kernels.plans.clear()  # which have the tile that was measured before
        with mock.patch.object(engine, "tile_for", lambda _, tile=tile: tile):
            found[tile] = milliseconds(graph(functools.partial(engine.multiply, A, B, C), repeats), 1) / repeats
    return found, choose_tile(problem, kernels.device)


def main() -> None:
    """Measure what the command line asks for."""
    parser = argparse.ArgumentParser(description="The choice of tiles against the candidates")
    parser.add_argument("--products", nargs="+", default=list(PRODUCTS), choices=PRODUCTS)
    options = parser.parse_args()
    rows = []
    for name in options.products:
        for shape in SHAPES:
            found, chosen = times(PRODUCTS[name], shape)
            best = min(found, key=found.__getitem__)
            rate = np.prod(np.array(shape, dtype=float)) / found[chosen] / 1e9
            off = found[chosen] / found[best] - 1
            rows.append([name, "×".join(map(str, shape)), describe(chosen), f"{rate:.2f}", describe(best), f"{off:.0%}"])
    print_table(["min-plus", "batch×m×n×k", "chosen", "T steps/s", "fastest", "behind"], rows, keys=2)


def describe(tile: Tile) -> str:
    """The sizes of a tile in short."""
    sizes = f"{tile.rows}×{tile.columns}×{tile.depth} {tile.thread_rows}×{tile.thread_columns}"
    return f"{sizes}, {tile.stages} stages, {tile.blocks} blocks"


if __name__ == "__main__":
    main()
