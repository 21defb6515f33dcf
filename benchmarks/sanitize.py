"""Every template of the CUDA engine once, on small matrices of ugly sizes, to be run under NVIDIA's compute-sanitizer.

    python -m benchmarks.sanitize                                                              # compiles, and compares with the CPU
    compute-sanitizer --tool memcheck --error-exitcode 1 python -m benchmarks.sanitize         # accesses beyond an array
    compute-sanitizer --tool racecheck --error-exitcode 1 python -m benchmarks.sanitize        # races in shared memory

Every array has an allocation of its own, so that an access beyond its end meets no neighbour.
"""

from __future__ import annotations

import argparse
import importlib
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import semiring as sr

Array = np.ndarray[Any, Any]
View = Callable[[Any], Any]

_VIEWS: dict[str, tuple[int, View]] = {
    "vectors": (132, lambda x: x),
    "rows": (131, lambda x: x[1:, 1:]),
    "columns": (131, lambda x: x.T),
}
"""How operands are read: the side of the array, and the view of it."""


def weights(n: int, dtype: str, seed: int) -> Array:
    """Random weights, a third of them ∞."""
    rng = np.random.default_rng(seed)
    numbers = rng.integers(1, 100, (n, n)).astype(dtype)
    none = np.inf if numbers.dtype.kind == "f" else np.iinfo(dtype).max
    return np.where(rng.random((n, n)) < 0.3, np.array(none, dtype), numbers)


def same(found: Any, expected: Any, what: str) -> None:
    """Compare what a GPU gave with what the CPU gives; logarithms of sums near one are as exact as their terms."""
    values = [(found, expected)] if hasattr(found, "get") else list(zip(found, expected, strict=True))
    for x, y in values:
        np.testing.assert_allclose(x.get(), y, rtol=1e-6, atol=3e-6, err_msg=what)


def products(semiring: sr.Semiring, dtype: str) -> None:
    """Products that read their operands in every way, and one of a stack of matrices."""
    import cupy

    for left, (n, view_a) in _VIEWS.items():
        for right, (m, view_b) in _VIEWS.items():
            k = min(n, m) - 2 - min(n, m) % 2  # 130 between vectors, so that the last slice is short
            a, b = weights(n, dtype, 0), weights(m, dtype, 1)
            if semiring is sr.PLUS_TIMES:
                a, b = (np.where(np.isinf(x), 0, x) for x in (a, b))
            A, B = view_a(cupy.asarray(a)), view_b(cupy.asarray(b))
            for depth in (k, 41, 41):  # a witness of few steps is found in shared memory; a second product repeats a launch
                found, expected = (sr.matmul(x[:, :depth], y[:depth], semiring) for x, y in ((A, B), (view_a(a), view_b(b))))
                same(found, expected, f"{left} and {right}, {depth} steps")
    if semiring is not sr.PLUS_TIMES:
        x, y = (np.stack([weights(67, dtype, seed) for seed in seeds]) for seeds in ((0, 1, 2), (3, 4, 5)))
        same(sr.matmul(cupy.asarray(x), cupy.asarray(y), semiring), sr.matmul(x, y, semiring), "a stack")


def shapes() -> None:
    """Matrices of which a warp or a thread block has one, few steps, vectors, and exponentials before and after a product by cuBLAS."""
    import cupy

    for n in (3, 13, 31, 47, 64):
        x, y = (np.stack([weights(n, "float32", seed) for seed in range(first, first + 40)]) for first in (0, 40))
        X, Y = map(cupy.asarray, (x, y))
        same(sr.matmul(X, Y, sr.MIN_PLUS), sr.matmul(x, y, sr.MIN_PLUS), f"small matrices of {n}")
        found, expected = (sr.matmul(a, b, sr.MIN_PLUS, witness=True) for a, b in ((X, Y), (x, y)))
        same(found, expected, f"small matrices of {n} with a witness")
    rng = np.random.default_rng(0)
    for m, k, n in ((67_601, 7, 5), (67_600, 8, 12), (2900, 20, 1600), (9001, 3, 2), (3, 9, 5003)):
        x, y = (rng.random(shape, dtype=np.float32) for shape in ((m, k), (k, n)))
        same(sr.matmul(cupy.asarray(x), cupy.asarray(y), sr.MIN_PLUS), sr.matmul(x, y, sr.MIN_PLUS), f"{m} by {k} by {n}")
    matrix, column, row = (rng.random(shape, dtype=np.float32) for shape in ((2051, 1101), 1101, 2051))
    same(sr.matmul(cupy.asarray(matrix), cupy.asarray(column), sr.MIN_PLUS), sr.matmul(matrix, column, sr.MIN_PLUS), "a column")
    same(sr.matmul(cupy.asarray(row), cupy.asarray(matrix), sr.MIN_PLUS), sr.matmul(row, matrix, sr.MIN_PLUS), "a row")
    for dtype in ("float32", "float64"):
        for spread in (1, 2000):
            a, b = (spread * rng.normal(size=shape).astype(dtype) for shape in ((321, 600), (600, 745)))
            same(sr.matmul(cupy.asarray(a), cupy.asarray(b), sr.LOG), sr.matmul(a, b, sr.LOG), f"log Σ exp, {dtype}, spread {spread}")


def updates() -> None:
    """Products that are added to a matrix, with the result in an operand."""
    import cupy

    a, b, c = (weights(200, "float32", seed) for seed in range(3))
    for semiring in (sr.MIN_PLUS, sr.TROPICAL_ARGMIN):
        for place in range(2):
            x, y = cupy.asarray(a), cupy.asarray(b)
            out = (x, y)[place]
            sr.matmul(x, y, semiring, c=cupy.asarray(c), out=out)
            same(out, sr.matmul(a, b, sr.MIN_PLUS, c=c), f"the result in operand {place}")


def shortest_paths(dtype: str) -> None:
    """Pivot blocks with and without paths, whole and cut, launched one by one and as a recorded graph."""
    import cupy

    for n in (1, 37, 200):
        a = weights(n, dtype, n)
        expected = sr.apsp(a, nonedge=np.inf)
        for method in ("auto", "auto", "auto", "blocked"):  # the third call plays what the second has recorded
            same(sr.apsp(cupy.asarray(a), method=method, nonedge=np.inf), expected, f"{n} vertices, {method}")
        same(sr.apsp(cupy.asarray(a), paths=True, nonedge=np.inf).distances, expected, f"{n} vertices, with paths")


def reachability() -> None:
    """Truth values as bits: closures of pivot blocks and of more, products by large tiles and by small ones."""
    import cupy

    rng = np.random.default_rng(1)
    for n in (37, 261, 700):  # 261: a pivot block that a cluster divides
        edges = rng.random((2, n, n)) < 1.5 / n
        for _ in range(3):
            same(sr.transitive_closure(cupy.asarray(edges)), sr.transitive_closure(edges), f"{n} vertices")
    for m, k, n in ((131, 700, 261), (1500, 1100, 1501)):
        a, b, c = (rng.random(shape) < 0.02 for shape in ((m, k), (k, n), (m, n)))
        found = sr.matmul(cupy.asarray(a), cupy.asarray(b), sr.BOOLEAN, c=cupy.asarray(c))
        same(found, sr.matmul(a, b, sr.BOOLEAN, c=c), f"{m} by {k} by {n}")


def small_integers() -> None:
    """Products and closures of small integers on tensor cores, where the GPU has such."""
    import cupy

    from semiring.kernels import machine

    saved = machine.POWERS_STEPS, machine.POWERS_SIDE, machine.POWERS_CLOSURE
    machine.POWERS_STEPS = machine.POWERS_SIDE = machine.POWERS_CLOSURE = 1
    rng = np.random.default_rng(2)
    try:
        for dtype in ("float32", "int16", "float64"):
            for span in (9, 25):
                a, b, c = (rng.integers(1, 1 + span, shape).astype(dtype) for shape in ((131, 300), (300, 261), (131, 261)))
                for order in "CF":
                    left, right = (cupy.asarray(x, order=order) for x in (a, b))
                    same(sr.matmul(left, right, sr.MIN_PLUS), sr.matmul(a, b, sr.MIN_PLUS), f"{dtype} of {span} values")
                    same(sr.matmul(left, right, sr.MIN_PLUS, c=cupy.asarray(c)), sr.matmul(a, b, sr.MIN_PLUS, c=c), f"{dtype} with c")
            graph = rng.integers(1, 6, (300, 300)).astype(dtype)
            same(sr.closure(cupy.asarray(graph), sr.MIN_PLUS), sr.closure(graph, sr.MIN_PLUS), f"closure of {dtype}")
    finally:
        machine.POWERS_STEPS, machine.POWERS_SIDE, machine.POWERS_CLOSURE = saved


def other_closures() -> None:
    """Elimination, structured elements, a stack of small matrices."""
    import cupy

    a = np.random.default_rng(0).random((150, 150)) / 300
    same(sr.closure(cupy.asarray(a), sr.PLUS_TIMES), sr.closure(a, sr.PLUS_TIMES), "elimination")
    distance = weights(70, "float64", 2)
    pair = distance, np.where(np.isinf(distance), np.inf, 1.0)
    same(sr.closure(tuple(map(cupy.asarray, pair)), sr.DISTANCE_HOPS), sr.closure(pair, sr.DISTANCE_HOPS), "structured elements")
    stack = np.stack([weights(30, "float32", seed) for seed in range(40)])
    same(sr.closure(cupy.asarray(stack), sr.MIN_PLUS), sr.closure(stack, sr.MIN_PLUS), "closures of a stack")


def trees() -> None:
    """Trees and walks, where few and where many distances tie."""
    import cupy

    for n in (1, 37, 150):
        for high in (2, 1000):
            weight = np.random.default_rng(n).integers(0, high, (n, n)).astype(np.float32)
            a = np.where(np.random.default_rng(high).random((n, n)) < 4 / n, weight, np.inf).astype(np.float32)
            paths = sr.apsp(cupy.asarray(a), paths=True, nonedge=np.inf)
            expected = sr.Paths(sr.MIN_PLUS, (paths.distances.get(),), paths.via.get())
            same(paths.predecessors(), expected.predecessors(), f"predecessors of {n} vertices")
            same(paths.next_hops(), expected.next_hops(), f"next hops of {n} vertices")
            assert paths.paths_from(0) == expected.paths_from(0), f"paths of {n} vertices"


def scans() -> None:
    """Sequences of unequal lengths by warps and by blocks, of one matrix in registers and of many, followed back where that is asked."""
    import cupy

    rng = np.random.default_rng(0)
    for states, steps in ((5, 70), (64, 5), (129, 3)):
        for shape in ((states, states), (2, steps, states, states)):
            a, w = (rng.integers(-9, 9, s).astype(np.float32) for s in (shape, (2, steps, states)))
            for semiring, witness in ((sr.LOG, False), (sr.MAX_PLUS, False), (sr.MAX_PLUS, True)):
                for reverse in (False, True):
                    options: dict[str, Any] = {"lengths": [steps, steps // 2], "reverse": reverse, "witness": witness}
                    found, expected = (sr.scan(x, semiring, weights=y, **options) for x, y in ((cupy.asarray(a), cupy.asarray(w)), (a, w)))
                    same(found, expected, f"a scan of {steps} steps of {states} states over {semiring.name}")


def sparse_products() -> None:
    """Sparse matrices times vectors, times matrices that lanes read by elements, vectors and whole lines, and times each other."""
    import cupy
    import scipy.sparse as sp

    rng, there = np.random.default_rng(0), importlib.import_module("cupyx.scipy.sparse").csr_matrix
    lengths = np.where(rng.random(300) < 0.03, rng.integers(0, 701, 300), rng.integers(0, 6, 300))
    columns = np.concatenate([rng.choice(700, count, replace=False) for count in lengths])
    a = sp.csr_array((rng.random(len(columns)), columns, np.append(0, lengths.cumsum())), shape=(300, 700))
    A = there(tuple(map(cupy.asarray, (a.data, a.indices, a.indptr))), shape=a.shape)
    for n in (1, 3, 4, 16, 33):
        x, c = rng.random((700, n)), rng.random((300, n))
        X, C = map(cupy.asarray, (x, c))
        for left, right in ((A, X), (A.astype("float32"), X.astype("float32"))):
            same(sr.matmul(left, right, sr.MIN_PLUS), sr.matmul(a, x, sr.MIN_PLUS), f"a sparse matrix times {n} columns")
        found, expected = sr.matmul(A, X, sr.MIN_PLUS, c=C, witness=True), sr.matmul(a, x, sr.MIN_PLUS, c=c, witness=True)
        same(found, expected, f"the same with a witness, {n} columns")
    product = sr.matmul(A, A.T.tocsr(), sr.MIN_PLUS).get().toarray()
    np.testing.assert_allclose(product, sr.matmul(a, a.T.tocsr(), sr.MIN_PLUS).toarray(), rtol=1e-6)


def sweeps() -> None:
    """An elimination, also with other weights, and rows and columns out of its panels, of more sources than a warp has lanes, and fewer."""
    import cupy

    from semiring.kernels import machine

    machine.GPU_SWEEP, machine.GPU_ELIMINATION = 1, 0
    rng = np.random.default_rng(0)
    for n in (33, 150):
        for dtype in ("float32", "int16"):
            graph = sr.edges(rng.integers(0, n, 3 * n), rng.integers(0, n, 3 * n), rng.integers(1, 50, 3 * n))
            there, here = (sr.factor(graph, dtype=dtype, device=device) for device in ("cuda", "cpu"))
            again = rng.integers(1, 50, 3 * n)
            for factor in (there, here):
                factor.update(again)
            for part in (slice(None), slice(0, 5), slice(0, 70)):
                numbers = list(there.nodes)[part]
                same(there.rows(numbers), here.rows(numbers), f"{len(numbers)} rows of {n}")
                same(cupy.ascontiguousarray(there.columns(numbers)), here.columns(numbers), f"{len(numbers)} columns of {n}")


def levels() -> None:
    """Hop counts of a graph in bits, with rows that end within a word and within a vector of words."""
    import cupy

    from semiring.kernels import machine

    machine.LEVELS_SIDE, machine.most_levels = 1, lambda n, edges: machine.LEVELS
    rng = np.random.default_rng(0)
    for n in (31, 130, 300):
        for dtype, nothing in (("float32", np.inf), ("int16", np.iinfo("int16").max)):
            matrix = np.where(rng.random((n, n)) < 3 / n, 2, nothing).astype(dtype)
            same(sr.apsp(cupy.asarray(matrix), nonedge=nothing), sr.apsp(matrix, nonedge=nothing), f"hops between {n} vertices, {dtype}")


_DTYPES = ("float32", "float64", "int32", "int16")


def selections() -> None:
    """The best entries of rows: by vectors and by elements, of one part and of several, with NaN, and of all sizes of elements."""
    import cupy

    rng = np.random.default_rng(0)
    for m, n, d, k in ((65, 129, 33, 17), (3, 9001, 7, 5), (130, 300, 64, 100)):
        for dtype in ("float32", "float64"):
            x, y = (rng.integers(0, 3, (size, d)).astype(dtype) for size in (m, n))
            x[0, 0] = y[n // 2, -1] = np.nan
            for metric in ("l1", "braycurtis"):
                found, expected = (sr.pairwise(left, right, metric, k=k) for left, right in ((cupy.asarray(x), cupy.asarray(y)), (x, y)))
                same(found, expected, f"{k} best of {m} by {n} by {d}, {metric}")


PARTS: dict[str, Callable[[], None]] = {
    **{f"min-plus, {d}": partial(products, sr.MIN_PLUS, d) for d in _DTYPES},
    **{f"witness, {d}": partial(products, sr.TROPICAL_ARGMIN, d) for d in _DTYPES},
    "plus-times, float32": partial(products, sr.PLUS_TIMES, "float32"),
    "shapes": shapes,
    "selections": selections,
    "updates": updates,
    **{f"paths, {d}": partial(shortest_paths, d) for d in ("float32", "float64", "int32")},
    "reachability": reachability,
    "small integers": small_integers,
    "other closures": other_closures,
    "trees": trees,
    "scans": scans,
    "sparse products": sparse_products,
    "sweeps": sweeps,
    "levels": levels,
}


def main() -> None:
    """Run the parts that the command line names, or all."""
    parser = argparse.ArgumentParser(description="Every template of the CUDA engine once")
    parser.add_argument("parts", nargs="*", metavar="part", help=f"any of: {'; '.join(PARTS)}")
    names = parser.parse_args().parts or list(PARTS)
    import cupy

    cupy.cuda.set_allocator(None)
    for name in names:
        PARTS[name]()
        print(f"right: {name}", flush=True)


if __name__ == "__main__":
    main()
