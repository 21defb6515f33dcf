"""Stacks of matrices, and products that are not large and square, on the CPU: whole calls in float32 beside NumPy's `matmul`.

    python -m benchmarks.shapes

Stacks of small matrices and their closures, molecules as one padded stack, thin products, and products with a vector. Best of many rounds
in one process, in which all take turns; NumPy multiplies and adds, this library adds and takes minima.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import semiring as sr
from benchmarks.measure import alternate, machine, print_table

Array = np.ndarray[Any, Any]

_ROUNDS = 30

PRODUCTS = {
    "1,000 of 16 × 16": ((1000, 16, 16), (1000, 16, 16)),
    "20,000 of 4 × 4": ((20000, 4, 4), (20000, 4, 4)),
    "256 of 64 × 64": ((256, 64, 64), (256, 64, 64)),
    "(2¹⁸ × 4)(4 × 4)": ((1 << 18, 4), (4, 4)),
    "(4096 × 16)(16 × 4096)": ((4096, 16), (16, 4096)),
    "(64 × 8192)(8192 × 64)": ((64, 8192), (8192, 64)),
    "matrix × vector, n = 4096": ((4096, 4096), (4096,)),
    "vector × matrix, n = 4096": ((4096,), (4096, 4096)),
}


def molecules(count: int = 640, most: int = 40) -> Array:
    """Bonds of so many chains with branches and rings, of 10 to 40 atoms, padded with atoms that have none."""
    rng = np.random.default_rng(0)
    bonds = np.full((count, most, most), np.inf)
    for graph in bonds:
        for i in range(1, rng.integers(10, most + 1)):
            for j in {max(0, i - 1 - int(rng.integers(0, 3))), max(0, i - int(rng.choice([1, 5, 6])))} - {i}:
                graph[i, j] = graph[j, i] = 1
    return bonds


def main() -> None:
    """Measure and print."""
    print(machine())
    rng = np.random.default_rng(0)
    rows: list[list[str]] = []
    for name, shapes in PRODUCTS.items():
        a, b = (rng.random(shape, dtype=np.float32) for shape in shapes)
        found = alternate(_works(a, b), _ROUNDS)
        best = {work: min(seconds) for work, seconds in found.seconds.items()}
        rows.append([name, f"{1e3 * best['semiring']:.3f}", f"{1e3 * best['numpy']:.3f}", f"{best['semiring'] / best['numpy']:.2f}"])
    print_table(["min-plus", "ms", "NumPy, ms", "times"], rows)
    small, bonds = rng.random((1000, 16, 16), dtype=np.float32), molecules()
    hops = np.where(np.isinf(bonds), np.iinfo(np.int16).max, bonds).astype(np.int16)
    closures: dict[str, Callable[[], object]] = {
        "1,000 closures of 16": lambda: sr.closure(small, sr.MIN_PLUS),
        "… with paths": lambda: sr.closure(small, sr.MIN_PLUS, paths=True),
        "640 molecules of up to 40 atoms, float64": lambda: sr.apsp(bonds),
        "… int16": lambda: sr.apsp(hops),
    }
    found = alternate(closures, _ROUNDS)
    print_table(["closures", "ms"], [[name, f"{1e3 * min(seconds):.3f}"] for name, seconds in found.seconds.items()])


def _works(a: Array, b: Array) -> dict[str, Callable[[], object]]:
    """The product over min-plus, and NumPy's."""
    return {"semiring": lambda: sr.matmul(a, b, sr.MIN_PLUS), "numpy": lambda: np.matmul(a, b)}


if __name__ == "__main__":
    main()
