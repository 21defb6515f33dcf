"""Whole products against the limit of their instructions, measured in the same run.

    python -m benchmarks.products                  every table
    python -m benchmarks.products --only avx2 --sizes 1024

Rates are 10⁹ steps/s, a step being one ⊗ and one ⊕. The percentage compares with the register-resident loop of
`benchmarks.limits`, which runs in alternation with the product on as many threads.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

import semiring as sr
from benchmarks.limits import LIMITS, LUKASIEWICZ
from benchmarks.measure import alternate, cores, machine, print_table
from semiring.kernels.cpu.boolean import BooleanEngine
from semiring.kernels.cpu.engine import CpuEngine
from semiring.kernels.engine import Block

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Case:
    """A product to measure.

    Attributes
    ----------
    limit : str
        Its loop in `LIMITS`.
    targets : tuple of float
        The share of the limit to reach on one thread and on all, at n ≥ 2048; 0 where none is set.
    largest : int
        Larger matrices take too long.
    """

    semiring: sr.Semiring
    dtypes: tuple[str, ...]
    limit: str
    targets: tuple[float, float] = (0.0, 0.0)
    isa: str | None = None
    largest: int = 4096


CASES = {
    "f32 min-plus": Case(sr.MIN_PLUS, ("f4",), "f32 min-plus, add as FMA", (0.90, 0.85)),
    "f64 min-plus": Case(sr.MIN_PLUS, ("f8",), "f64 min-plus", (0.85, 0.85)),
    "i32 min-plus": Case(sr.MIN_PLUS, ("i4",), "i32 min-plus", (0.85, 0.85)),
    "i16 min-plus": Case(sr.MIN_PLUS, ("i2",), "i16 min-plus"),
    "f32 max-min": Case(sr.MAX_MIN, ("f4",), "f32 max-min (int32 keys)", (0.85, 0.85)),
    "f32 max(a+b-1, 0)": Case(LUKASIEWICZ, ("f4",), "f32 max(a+b-1, 0)", (0.85, 0.85)),
    "f32 plus-times": Case(sr.PLUS_TIMES, ("f4",), "f32 plus-times"),
    "f32 min-plus, AVX2": Case(sr.MIN_PLUS, ("f4",), "AVX2: f32 min-plus, add as FMA", (0.88, 0.88), isa="avx2"),
    "f64 min-plus, AVX2": Case(sr.MIN_PLUS, ("f8",), "AVX2: f64 min-plus", (0.88, 0.88), isa="avx2"),
    "i32 min-plus, AVX2": Case(sr.MIN_PLUS, ("i4",), "AVX2: i32 min-plus", (0.88, 0.88), isa="avx2"),
    "i16 min-plus, AVX2": Case(sr.MIN_PLUS, ("i2",), "AVX2: i16 min-plus", (0.88, 0.88), isa="avx2"),
    "f32 max(a+b-1, 0), AVX2": Case(LUKASIEWICZ, ("f4",), "AVX2: f32 max(a+b-1, 0)", (0.85, 0.85), isa="avx2"),
    "f32 log": Case(sr.LOG, ("f4",), "f32 log"),
    "f64 distance-count": Case(sr.DISTANCE_COUNT, ("f8", "f8"), "f64 distance-count", largest=2048),
}


def operands(semiring: sr.Semiring, dtypes: tuple[str, ...], n: int) -> tuple[Block, Block, Block]:
    """Three n × n matrices of elements that every semiring here has."""
    random = np.random.default_rng(0)

    def component(dtype: str) -> Array:
        if semiring.components > 1 or dtype[0] == "i":
            return random.integers(1, 100, (n, n)).astype(dtype)
        return random.random((n, n)).astype(dtype)

    A, B, C = (Block(tuple(component(d) for d in dtypes)) for _ in range(3))
    return A, B, C


def confirm(semiring: sr.Semiring, A: Block, B: Block, C: Block, rows: int = 2) -> None:
    """Compare the first rows of C = A⊗B with the definition."""
    a, b, c = tuple(v[:rows] for v in A.values), B.values, [v[:rows] for v in C.values]
    single = semiring.components == 1
    expected = sr.matmul(a[0] if single else a, b[0] if single else b, semiring, device="reference")
    for x, y in zip(c, (expected,) if single else expected, strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-4 if x.dtype == np.float32 else 1e-12)


def verdict(reached: float, wanted: float) -> tuple[str, str]:
    """A target in words, and whether it is met."""
    return (f"≥ {wanted:g}", "yes" if reached >= wanted else "no") if wanted else ("", "")


def measure_products(names: Sequence[str], sizes: Sequence[int], repeats: int) -> None:
    """Rates of the products of `CASES`."""
    rows, others = [], 0.0
    for name in names:
        case, loop = CASES[name], LIMITS[CASES[name].limit].loop()
        dtypes = tuple(map(np.dtype, case.dtypes))
        for n in (s for s in sizes if s <= case.largest):
            A, B, C = operands(case.semiring, case.dtypes, n)
            works: dict[str, Callable[[], object]] = {}
            for threads in dict.fromkeys((1, cores())):
                works[f"limit {threads}"] = partial(loop.run, threads)
                works[f"product {threads}"] = partial(CpuEngine(case.semiring, dtypes, threads, case.isa).multiply, A, B, C)
            if case.semiring is sr.PLUS_TIMES:
                works["NumPy"] = partial(np.matmul, A.values[0], B.values[0], out=np.empty_like(C.values[0]))
            timings = alternate(works, repeats)
            confirm(case.semiring, A, B, C)
            others = max(others, timings.others)
            for threads, target in zip(dict.fromkeys((1, cores())), case.targets, strict=False):
                limit, rate = timings.rate(f"limit {threads}", loop.steps(threads)), timings.rate(f"product {threads}", n**3)
                wanted, met = verdict(rate / limit, target if n >= 2048 else 0.0)
                rows.append(
                    (name, str(n), str(threads), f"{rate:.1f}", f"{limit:.1f}", f"{rate / limit:.0%}", wanted and f"≥ {target:.0%}", met)
                )
            if "NumPy" in works:
                rows.append(("NumPy's BLAS", str(n), str(cores()), f"{timings.rate('NumPy', n**3):.1f}", "", "", "", ""))
    print_table(("product", "n", "threads", "G steps/s", "limit", "share", "target", "met"), rows, others, keys=3)


def measure_matmul(sizes: Sequence[int], repeats: int) -> None:
    """`matmul` from arrays to an array, with its checks, against the engine's bare product."""
    rows, others = [], 0.0
    for n in sizes:
        A, B, C = operands(sr.MIN_PLUS, ("f4",), n)
        (a,), (b,) = A.values, B.values
        engine = CpuEngine(sr.MIN_PLUS, (np.dtype("f4"),))
        timings = alternate({"product": partial(engine.multiply, A, B, C), "matmul": partial(sr.matmul, a, b, sr.MIN_PLUS)}, repeats)
        others = max(others, timings.others)
        rows.append(
            (str(n), *(f"{1e3 * timings.median(x):.2f}" for x in ("product", "matmul")), f"{timings.ratio('matmul', 'product'):.2f}")
        )
    print_table(("f32 min-plus, n", "product, ms", "matmul, ms", "ratio"), rows, others)


def measure_witness(sizes: Sequence[int], repeats: int) -> None:
    """The product that also tells which k won, against the plain one, in pairs."""
    rows, others = [], 0.0
    for n in sizes:
        for threads in dict.fromkeys((1, cores())):
            A, B, C = operands(sr.MIN_PLUS, ("f4",), n)
            D = Block(tuple(np.empty_like(v) for v in C.values), np.empty((n, n), dtype=np.int32))
            engine = CpuEngine(sr.MIN_PLUS, (np.dtype("f4"),), threads)
            timings = alternate({"plain": partial(engine.multiply, A, B, C), "witness": partial(engine.multiply, A, B, D)}, repeats)
            others = max(others, timings.others)
            (a,), (b,), (d,), k = A.values, B.values, D.values, D.via
            np.testing.assert_array_equal(C.values[0], d)
            i, j = np.indices((n, n), sparse=True)
            np.testing.assert_array_equal(a[i, k] + b[k, j], d)
            ratio = timings.ratio("witness", "plain")
            wanted = ("≤ 1.40", "yes" if ratio <= 1.4 else "no") if n >= 4096 else ("", "")
            rows.append((str(n), str(threads), *(f"{1e3 * timings.median(x):.1f}" for x in ("plain", "witness")), f"{ratio:.2f}", *wanted))
    header = "f32 min-plus with witness, n", "threads", "plain, ms", "witness, ms", "ratio", "target", "met"
    print_table(header, rows, others, keys=2)


_SPREADS = (1.0, 20.0, 40.0, 100.0, 1000.0)
"""Standard deviations of logarithms: within the exponents of float32, beyond them, and beyond those of float64."""


def measure_logarithms(sizes: Sequence[int], repeats: int) -> None:
    """Products over LOG, by how far the numbers spread, against ordinary ones; and of the closure of a grid of 45 × 45, −3 an edge."""
    rows, others, random = [], 0.0, np.random.default_rng(0)
    for dtype in ("f4", "f8"):
        grid = _grid(45, dtype)
        matrices = {
            f"n = {n:,}, σ = {s:g}": [random.normal(scale=s, size=(n, n)).astype(dtype) for _ in "ab"] for n in sizes for s in _SPREADS
        }
        for name, (a, b) in (matrices | {"a grid of 45 × 45": [grid, grid]}).items():
            positive, c = np.exp(np.clip(a, -20, 20)), np.empty_like(a)
            works = {
                semiring.name: partial(CpuEngine(semiring, (c.dtype,)).multiply, Block((x,)), Block((y,)), Block((c,)))
                for semiring, x, y in ((sr.PLUS_TIMES, positive, positive), (sr.LOG, a, b))
            }
            timings = alternate(works, repeats)
            others = max(others, timings.others)
            ratio = timings.ratio("log", "plus-times")
            rows.append((c.dtype.name, name, *(f"{1e3 * timings.median(x):.1f}" for x in works), f"{ratio:.2f}"))
    print_table(("log Σ exp", "matrices", "plus-times, ms", "log, ms", "ratio"), rows, others, keys=2)


def _grid(side: int, dtype: str) -> Array:
    """The closure over LOG of a grid whose edges weigh −3: logarithms of the weights of all walks."""
    number = np.arange(side * side).reshape(side, side)
    pairs = np.concatenate([np.stack([x.ravel(), y.ravel()], 1) for x, y in ((number[1:], number[:-1]), (number[:, 1:], number[:, :-1]))])
    a = np.full((side * side, side * side), -np.inf, dtype)
    a[pairs[:, 0], pairs[:, 1]] = a[pairs[:, 1], pairs[:, 0]] = -3
    return np.asarray(sr.closure(a, sr.LOG, device="cpu"))


def _by_counting(a: Array, b: Array) -> Any:
    """The Boolean product by NumPy's BLAS, in float32."""
    return a.astype("f4") @ b.astype("f4") > 0


def measure_boolean(sizes: Sequence[int], repeats: int) -> None:
    """Boolean products on packed matrices, and from arrays of bools to an array of bools, beside NumPy's BLAS."""
    rows, others = [], 0.0
    for n in sizes:
        random = np.random.default_rng(0)
        a, b = (random.random((n, n)) < 2 / n for _ in range(2))
        expected = (a[:2].astype("f4") @ b.astype("f4")) > 0
        for threads in dict.fromkeys((1, cores())):
            engine = BooleanEngine(sr.BOOLEAN, (np.dtype(bool),), threads)
            A, B, C = (engine.load((x,)) for x in (a, b, np.zeros_like(a)))
            out = np.empty_like(a)
            works: dict[str, Callable[[], object]] = {
                "packed": partial(engine.multiply_add, A, B, C),
                "arrays": partial(sr.matmul, a, b, sr.BOOLEAN, out=out, threads=threads),
            }
            if threads == cores():
                works["NumPy"] = partial(_by_counting, a, b)
            timings = alternate(works, repeats)
            others = max(others, timings.others)
            np.testing.assert_array_equal(out[:2], expected)
            rate = timings.rate("packed", n**3)
            target = threads > 1 and n >= 2048
            wanted = ("≥ 4000", "yes" if rate >= 4000 else "no") if target else ("", "")
            times = (f"{1e3 * timings.median(x):.2f}" if x in works else "" for x in ("arrays", "NumPy"))
            rows.append((str(n), str(threads), f"{rate:.0f}", *times, *wanted))
    header = "boolean, n", "threads", "packed, G bit-steps/s", "bool arrays, ms", "NumPy's BLAS, ms", "target (packed)", "met"
    print_table(header, rows, others, keys=2)


def main() -> None:
    parser = argparse.ArgumentParser(description="Products against their limits")
    parser.add_argument("--sizes", type=int, nargs="+", default=[1024, 2048, 4096])
    parser.add_argument("--only", default="", help="only what has this in its name")
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    print(machine())

    def chosen(names: Sequence[str]) -> Iterator[str]:
        return (name for name in names if options.only.lower() in name.lower())

    names = list(chosen([*CASES]))
    if names:
        measure_products(names, options.sizes, options.repeats)
    parts = {"matmul": measure_matmul, "witness": measure_witness, "logarithms": measure_logarithms, "boolean": measure_boolean}
    for name in chosen([*parts]):
        parts[name](options.sizes, options.repeats)


if __name__ == "__main__":
    main()
