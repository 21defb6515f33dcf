"""Every template of the CUDA engine once, on small matrices of ugly sizes, to be run under NVIDIA's compute-sanitizer.

    python -m benchmarks.sanitize                                                              # compiles, and compares with the CPU
    compute-sanitizer --tool memcheck --error-exitcode 1 python -m benchmarks.sanitize         # accesses beyond an array
    compute-sanitizer --tool racecheck --error-exitcode 1 python -m benchmarks.sanitize        # races in shared memory

Every array has an allocation of its own, so that an access beyond its end meets no neighbour.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import semiring as sr

Array = np.ndarray[Any, Any]
View = Callable[[Any], Any]

_VIEWS: dict[str, tuple[int, View]] = {
    "vectors": (132, lambda x: x),
    "rows": (131, lambda x: x),
    "columns": (131, lambda x: x.T),
    "shifted": (133, lambda x: x[1:, 1:]),
}
"""How operands are read: the side of the array, and the view of it."""


def weights(n: int, dtype: str, seed: int) -> Array:
    """Random weights, a third of them ∞."""
    rng = np.random.default_rng(seed)
    numbers = rng.integers(1, 100, (n, n)).astype(dtype)
    none = np.inf if numbers.dtype.kind == "f" else np.iinfo(dtype).max
    return np.where(rng.random((n, n)) < 0.3, np.array(none, dtype), numbers)


def same(found: Any, expected: Any, what: str) -> None:
    """Compare what a GPU gave with what the CPU gives."""
    values = [(found, expected)] if hasattr(found, "get") else list(zip(found, expected, strict=True))
    for x, y in values:
        np.testing.assert_allclose(x.get(), y, rtol=1e-6, err_msg=what)


def products() -> Iterator[str]:
    """Products in every access, with a witness, added to a matrix, of a stack, and with a result that is an operand."""
    import cupy

    for semiring, dtype in ((sr.MIN_PLUS, "float32"), (sr.MIN_PLUS, "float64"), (sr.MIN_PLUS, "int16"), (sr.TROPICAL_ARGMIN, "float32"),
                            (sr.TROPICAL_ARGMIN, "int32"), (sr.LOG, "float32"), (sr.PLUS_TIMES, "float32")):  # fmt: skip
        for left, (n, view_a) in _VIEWS.items():
            for right, (m, view_b) in _VIEWS.items():
                k = min(n, m) // 4 * 4 if left == right == "vectors" else min(n, m) - 3
                a, b = weights(n, dtype, 0), weights(m, dtype, 1)
                if semiring is sr.PLUS_TIMES:
                    a, b = (np.nan_to_num(x, posinf=0) for x in (a, b))
                A, B = view_a(cupy.asarray(a))[:, :k], view_b(cupy.asarray(b))[:k]
                same(sr.matmul(A, B, semiring), sr.matmul(view_a(a)[:, :k], view_b(b)[:k], semiring), f"{semiring.name} {left} {right}")
        yield f"products over {semiring.name} in {dtype}"
    a, b = (np.stack([weights(67, "float32", seed) for seed in seeds]) for seeds in ((0, 1, 2), (3, 4, 5)))
    same(sr.matmul(cupy.asarray(a), cupy.asarray(b), sr.MIN_PLUS), sr.matmul(a, b, sr.MIN_PLUS), "stack")
    x = cupy.asarray(a[0])
    sr.matmul(x, cupy.asarray(b[0]), sr.MIN_PLUS, c=cupy.asarray(b[1]), out=x)
    same(x, sr.matmul(a[0], b[0], sr.MIN_PLUS, c=b[1]), "result in an operand")
    yield "stacks, and a result that is an operand"


def closures() -> Iterator[str]:
    """Pivot blocks with and without paths, by elimination, with whole and cut blocks, and as a recorded graph."""
    import cupy

    for dtype in ("float32", "float64", "int32"):
        for n in (1, 37, 128, 261):
            a = weights(n, dtype, n)
            expected = sr.apsp(a, nonedge=np.inf)
            for method in ("auto", "blocked"):
                for _ in range(3):  # the third call plays what the second has recorded
                    same(sr.apsp(cupy.asarray(a), method=method, nonedge=np.inf), expected, f"apsp {n} {method}")
            paths = sr.apsp(cupy.asarray(a), paths=True, nonedge=np.inf)
            same(paths.distances, expected, f"apsp with paths {n}")
        yield f"shortest paths in {dtype}"
    a = np.random.default_rng(0).random((150, 150)) / 300
    same(sr.closure(cupy.asarray(a), sr.PLUS_TIMES), sr.closure(a, sr.PLUS_TIMES), "elimination")
    edges = np.random.default_rng(1).random((3, 150, 150)) < 0.02
    same(sr.transitive_closure(cupy.asarray(edges)), sr.transitive_closure(edges), "reachability")
    distance = weights(70, "float64", 2)
    hops = np.where(np.isinf(distance), np.inf, 1.0)
    pair = tuple(map(cupy.asarray, (distance, hops)))
    same(sr.closure(pair, sr.DISTANCE_HOPS), sr.closure((distance, hops), sr.DISTANCE_HOPS), "structured elements")
    yield "elimination, reachability, structured elements"


def main() -> None:
    """Run everything."""
    import cupy

    cupy.cuda.set_allocator(None)
    for part in (products, closures):
        for what in part():
            print(what, flush=True)


if __name__ == "__main__":
    main()
