"""Products of CuPy's sparse matrices with vectors and dense matrices on a GPU, beside what its memory allows and cuSPARSE.

    python -m benchmarks.gpu_sparse
    python -m benchmarks.gpu_sparse --side 100 --columns 1 64 --dtype float64

The matrix is a mesh in space: each of side³ points has an entry for itself and its 26 neighbours, with numbers of columns of 32 bits. The
bytes that must move are those of the matrix, of the dense operand once and of the result; the share is that of the bandwidth which a copy
of as much reaches in the same run. Times are medians by CUDA events after warm-up, with and without the check of the operands.
"""

from __future__ import annotations

import argparse
import importlib
import statistics
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import semiring as sr
from benchmarks.gpu import generator
from benchmarks.measure import hardware, print_table


def mesh(side: int, dtype: str) -> Any:
    """The matrix, by compressed rows."""
    import cupy

    sparse: Any = importlib.import_module("cupyx.scipy.sparse")
    n = side**3
    point = cupy.arange(n, dtype=cupy.int32)
    x, y, z = point // side**2, point // side % side, point % side
    steps = [(i, j, k) for i in (-1, 0, 1) for j in (-1, 0, 1) for k in (-1, 0, 1)]

    def inside(step: tuple[int, int, int]) -> Any:
        return cupy.stack([(v + s >= 0) & (v + s < side) for v, s in zip((x, y, z), step, strict=True)]).all(axis=0)

    count = cupy.zeros(n, cupy.int32)
    for step in steps:
        count += inside(step)
    starts = cupy.concatenate([cupy.zeros(1, cupy.int32), cupy.cumsum(count, dtype=cupy.int32)])
    columns, at = cupy.empty(int(starts[-1]), cupy.int32), starts[:-1].copy()
    for step in steps:  # in ascending order of their columns
        there = inside(step)
        columns[at[there]] = (point + (step[0] * side + step[1]) * side + step[2])[there]
        at += there
    values = generator(0).random(len(columns), dtype=dtype)
    return sparse.csr_matrix((values, columns, starts), shape=(n, n))


def seconds(work: Callable[[], object], repeats: int) -> float:
    """Median of some runs."""
    import cupy

    found: list[float] = []
    for turn in range(repeats + 3):
        begin, end = cupy.cuda.Event(), cupy.cuda.Event()
        begin.record()
        work()
        end.record()
        end.synchronize()
        if turn >= 3:
            found.append(cupy.cuda.get_elapsed_time(begin, end) / 1e3)
    return statistics.median(found)


def confirm(a: Any, x: Any, found: Any) -> None:
    """Compare some rows of a product with SciPy's matrix, row by row."""
    rows = np.random.default_rng(0).integers(0, a.shape[0], 20)
    for i in rows.tolist():
        first, last = int(a.indptr[i]), int(a.indptr[i + 1])
        terms = a.data[first:last].get() + x[a.indices[first:last]].get().T
        np.testing.assert_array_equal(found[i].get(), terms.min(axis=-1))


def main() -> None:
    import cupy

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--side", type=int, default=215)
    parser.add_argument("--columns", type=int, nargs="*", default=[1, 8, 32, 64])
    parser.add_argument("--dtype", choices=["float32", "float64"], default="float32")
    parser.add_argument("--repeats", type=int, default=11)
    options = parser.parse_args()
    print(hardware("cuda"))
    a = mesh(options.side, options.dtype)
    copied = cupy.empty(1 << 28)
    bandwidth = 2 * copied.nbytes / seconds(partial(cupy.copyto, cupy.empty_like(copied), copied), options.repeats)
    rows = []
    for n in options.columns:
        x = generator(1).random((a.shape[0], n) if n > 1 else a.shape[0], dtype=options.dtype)
        moved = a.data.nbytes + a.indices.nbytes + a.indptr.nbytes + 2 * x.nbytes
        confirm(a, x, sr.matmul(a, x, sr.MIN_PLUS))
        works: dict[str, Callable[[], object]] = {
            "min-plus": partial(sr.matmul, a, x, sr.MIN_PLUS, check=False),
            "min-plus, checked": partial(sr.matmul, a, x, sr.MIN_PLUS),
            "plus-times": partial(sr.matmul, a, x, sr.PLUS_TIMES, check=False),
            "cuSPARSE": partial(a.__mul__, x),
        }
        for name, work in works.items():
            taken = seconds(work, options.repeats)
            rows.append((f"{n} columns", name, f"{taken * 1e3:.3f}", f"{moved / 1e9:.2f}", f"{moved / taken / bandwidth:.0%}"))
    print(f"bandwidth of a copy: {bandwidth / 1e12:.2f} TB/s; {a.shape[0]:,} rows, {a.nnz:,} entries")
    print_table(("times", "by", "ms", "GB that must move", "of the bandwidth"), rows, keys=2)


if __name__ == "__main__":
    main()
