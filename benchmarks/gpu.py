"""The CUDA engine on one GPU: products in all their forms, and all-pairs shortest paths, on data that lies there.

    python -m benchmarks.gpu
    python -m benchmarks.gpu --sizes 1024 4096

Times are medians by CUDA events after warm-up, on fresh random data; a row and the witnesses of every product are compared with NumPy.
Bounds are those of one NVIDIA H200: what its instruction pipes allow at 1.98 GHz on 132 multiprocessors.
"""

from __future__ import annotations

import argparse
import functools
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import semiring as sr
from benchmarks.measure import print_table
from semiring.kernels.cuda.engine import CudaEngine
from semiring.kernels.select import engine_for

LUKASIEWICZ = sr.Semiring("lukasiewicz", add=max, mul=lambda a, b: max(a + b - 1, 0), zero=0, one=1, domain=(0, 1))


@dataclass(frozen=True)
class Product:
    """A product to be measured: T steps/s that it is to reach at n = 8192, and that the instructions allow."""

    name: str
    semiring: sr.Semiring
    dtype: str
    target: float
    bound: float | None
    witness: bool = False
    low: float = 0.0


PRODUCTS = (
    Product("f32 min-plus, non-negative", sr.MIN_PLUS, "float32", 17.0, 22.3),
    Product("f32 min-plus, any sign", sr.MIN_PLUS, "float32", 13.5, 16.7, low=-1),
    Product("f32 min-plus with witness, non-negative", sr.MIN_PLUS, "float32", 13.0, None, witness=True),
    Product("f32 min-plus with witness, any sign", sr.MIN_PLUS, "float32", 9.0, None, witness=True, low=-1),
    Product("i32 min-plus", sr.MIN_PLUS, "int32", 16.3, 25.1),
    Product("i32 min-plus with witness", sr.MIN_PLUS, "int32", 13.5, None, witness=True),
    Product("i16 min-plus", sr.MIN_PLUS, "int16", 30.0, 33.4),
    Product("f64 min-plus", sr.MIN_PLUS, "float64", 5.0, 8.4),
    Product("f32 max-min", sr.MAX_MIN, "float32", 7.8, 11.1),
    Product("f32 max(a+b-1, 0)", LUKASIEWICZ, "float32", 0.85 * 13.4, 22.3),
)


def generator(seed: int) -> Any:
    """Random numbers on the GPU."""
    import cupy

    return cupy.random.default_rng(seed)


def milliseconds(work: Callable[[], object], repeats: int) -> float:
    """The median time of `work` on the GPU, several in a row so that the queue never runs dry."""
    import cupy

    work()
    work()
    begin, end = cupy.cuda.Event(), cupy.cuda.Event()
    times = []
    for _ in range(5):
        begin.record()
        for _ in range(repeats):
            work()
        end.record()
        end.synchronize()
        times.append(cupy.cuda.get_elapsed_time(begin, end) / repeats)
    return float(statistics.median(times))


def measure_products(sizes: Sequence[int]) -> None:
    """Rates of products, and their share of the bound."""
    import cupy

    rows: list[list[str]] = []
    for p in PRODUCTS:
        for n in sizes:
            rng = generator(n)
            whole = np.dtype(p.dtype).kind == "i"
            a, b = (
                rng.integers(0, 1000, (n, n)).astype(p.dtype) if whole else (rng.random((n, n), dtype=np.float32) + p.low).astype(p.dtype)
                for _ in range(2)
            )
            engine = CudaEngine(p.semiring, (np.dtype(p.dtype),))
            A, B = (engine.load((x,), owned=False) for x in (a, b))
            c = cupy.full((n, n), -7, dtype=p.dtype)
            via = cupy.empty((n, n), dtype=np.int32) if p.witness else None
            C = engine.blank((c,), via)
            time = milliseconds(functools.partial(engine.multiply, A, B, C), 10 if n < 8192 else 1)
            check(p, a, b, c, via)
            rate = n**3 / time / 1e9
            wanted, met = (f"≥ {p.target:.1f}", "yes" if rate >= p.target else "no") if n == 8192 else ("", "")
            share = f"{rate / p.bound:.0%}" if p.bound else ""
            rows.append([p.name, str(n), f"{time:.3f}", f"{rate:.2f}", share, wanted, met])
    print_table(["product", "n", "ms", "T steps/s", "of the bound", "target", "met"], rows, keys=2)


def check(p: Product, a: Any, b: Any, c: Any, via: Any) -> None:
    """Compare one row with NumPy."""
    i, columns = len(a) // 2 + 1, slice(0, 200)
    left, right = a[i].get()[:, None], b[:, columns].get()
    if p.semiring is sr.MAX_MIN:
        expected = np.minimum(left, right).max(0)
    elif p.semiring is LUKASIEWICZ:
        expected = np.maximum(left + right - left.dtype.type(1), 0).max(0)
    else:
        expected = (left + right).min(0)
    np.testing.assert_array_equal(c[i, columns].get(), expected)
    if via is not None:
        np.testing.assert_array_equal(via[i, columns].get(), (left + right).argmin(0))


def measure_apsp(sizes: Sequence[int]) -> None:
    """Shortest paths on the GPU's own arrays, as a user calls it."""
    targets = {1024: 0.6, 4096: 6.5, 16384: 320.0, 32768: 2400.0}
    rows: list[list[str]] = []
    for n in sizes:
        w = generator(n).random((n, n), dtype=np.float32)
        distances = milliseconds(functools.partial(sr.apsp, w, nonedge=np.inf), 1)
        paths = milliseconds(functools.partial(sr.apsp, w, paths=True, nonedge=np.inf), 1)
        target = targets.get(n)
        wanted, met = (f"≤ {target}", "yes" if distances <= target else "no") if target else ("", "")
        rows.append([str(n), f"{distances:.2f}", wanted, met, f"{paths:.2f}", f"{paths / distances:.2f}"])
    print_table(["n", "distances, ms", "target", "met", "with paths, ms", "ratio"], rows)
    batch = generator(0).random((1024, 128, 128), dtype=np.float32)
    together = milliseconds(functools.partial(sr.apsp, batch, nonedge=np.inf), 1)
    print(f"\n1,024 graphs of n = 128 in one call: {together:.2f} ms (target ≤ 0.4)\n")


def measure_trees(n: int) -> None:
    """Predecessors and next hops beside a copy of the matrix. Where widths or distances tie, many trees have to be mended."""
    rng = generator(n)
    random = rng.random((n, n), dtype=np.float32)
    found = {
        f"min-plus, n = {n}": sr.apsp(random, paths=True, nonedge=np.inf),
        f"min-plus, integers from 0 to 99, n = {n // 8}": sr.apsp(rng.integers(0, 100, (n // 8, n // 8)), paths=True, nonedge=-1),
        f"max-min, n = {n // 8}": sr.closure(random[: n // 8, : n // 8].copy(), sr.MAX_MIN, paths=True, nonedge=-1),
    }
    rows: list[list[str]] = []
    for name, paths in found.items():
        copy = milliseconds(paths.via.copy, 1)
        before, after = (milliseconds(work, 1) for work in (paths.predecessors, paths.next_hops))
        check_trees(paths)
        rows.append([name, f"{copy:.3f}", f"{before:.2f}", f"{after:.2f}"])
    print_table(["paths", "copy of the matrix, ms", "predecessors, ms", "next hops, ms"], rows)


def check_trees(paths: sr.Paths) -> None:
    """The best way to the vertex before, and on by the edge from there, is the best way."""
    n = len(paths.nodes)
    i, others = n // 3, np.delete(np.arange(n), n // 3)
    before = paths.predecessors()[i].get()
    values, via = paths.values, paths.via
    assert before[i] == -9999
    assert not (via[before[others], others] >= 0).any()
    edge, part, whole = values[before[others], others], values[i, before[others]], values[i, others]
    total = (part + edge if paths.semiring is sr.MIN_PLUS else np.minimum(part, edge)).get()
    total = np.where(before[others] == i, edge.get(), total)
    np.testing.assert_allclose(total, whole.get(), rtol=1e-5)


def measure_reachability(sizes: Sequence[int]) -> None:
    """Products of bits, and the transitive closure of a matrix of truth values, as a user calls it."""
    import cupy

    rows: list[list[str]] = []
    for n in sizes:
        a, b = (generator(seed).random((n, n), dtype=np.float32) < n**-0.5 for seed in (n, n + 1))
        engine = engine_for(sr.BOOLEAN, (np.dtype(bool),), "cuda:0")
        A, B, C = engine.load((a,), owned=False), engine.load((b,), owned=False), engine.blank((a,))
        product = milliseconds(functools.partial(engine.multiply, A, B, C), 1)
        found = cupy.empty_like(a)
        engine.store(C, (found,))
        np.testing.assert_array_equal(found[n // 3, :200].get(), (a[n // 3].get()[:, None] & b[:, :200].get()).any(0))
        sparse = generator(n).random((n, n), dtype=np.float32) < 1.2 / n
        closure = milliseconds(functools.partial(sr.transitive_closure, sparse), 1)
        rate = n**3 / product / 1e9
        met = "yes" if rate >= 5500 and closure <= 13 else "no"
        targets = ("≥ 5500, ≤ 13", met) if n == 32768 else ("", "")
        rows.append([str(n), f"{product:.3f}", f"{rate:.0f}", f"{rate / 7760:.0%}", f"{closure:.2f}", *targets])
    print_table(["n", "boolean product, ms", "T bit-steps/s", "of the bound", "transitive closure, ms", "targets", "met"], rows)


def measure_small_integers(sizes: Sequence[int]) -> None:
    """Products and closures of small integers on tensor cores, as a user calls them, beside those of larger ones."""
    rows: list[list[str]] = []
    for n in sizes:
        for dtype in ("float32", "int16"):
            rng = generator(n)
            for top, bound in ((15, 535), (25, 234), (999, None)):
                a, b = (rng.integers(0, top + 1, (n, n)).astype(dtype) for _ in range(2))
                found = sr.matmul(a, b, sr.MIN_PLUS)
                np.testing.assert_array_equal(found[n // 3, :200].get(), (a[n // 3].get()[:, None] + b[:, :200].get()).min(0))
                product = milliseconds(functools.partial(sr.matmul, a, b, sr.MIN_PLUS), 1)
                rate = n**3 / product / 1e9
                closure = milliseconds(functools.partial(sr.closure, a + b.dtype.type(1), sr.MIN_PLUS), 1)
                share = f"{rate / bound:.0%}" if bound else ""
                rows.append([f"{dtype}, 0 … {top}", str(n), f"{product:.2f}", f"{rate:.1f}", share, f"{closure:.1f}"])
    print_table(["integers", "n", "product, ms", "T steps/s", "of the bound", "closure, ms"], rows, keys=2)


def main() -> None:
    """Run the measurements that the command line asks for."""
    parser = argparse.ArgumentParser(description="The CUDA engine on one GPU")
    parser.add_argument("--sizes", type=int, nargs="+", default=[1024, 4096, 8192])
    parser.add_argument("--apsp", type=int, nargs="*", default=[1024, 4096, 16384])
    parser.add_argument("--trees", type=int, nargs="*", default=[16384])
    parser.add_argument("--reachability", type=int, nargs="*", default=[4096, 32768])
    parser.add_argument("--small", type=int, nargs="*", default=[2048, 16384])
    options = parser.parse_args()
    import cupy

    name = cupy.cuda.runtime.getDeviceProperties(0)["name"].decode()
    print(f"{name}; CuPy {cupy.__version__}, NVRTC {'.'.join(map(str, cupy.cuda.nvrtc.getVersion()))}\n")
    measure_products(options.sizes)
    measure_apsp(options.apsp)
    for n in options.trees:
        measure_trees(n)
    measure_reachability(options.reachability)
    measure_small_integers(options.small)


if __name__ == "__main__":
    main()
