"""Exact products of integers beside NumPy's, and modulo p beside FLINT's, in the same run.

    python -m benchmarks.exact              n = 1,000
    python -m benchmarks.exact --sizes 500  other sizes

FLINT has as many threads as this library; NumPy multiplies integers on one core.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

import semiring as sr
from benchmarks.measure import alternate, cores, installed, machine, print_table

PRIMES = (7, 65_521, 1_048_573, 1_073_741_789, 2_147_483_647)

CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "int64": ("int64", {}),
    "int64, wrap": ("int64", {"overflow": "wrap"}),
    "int32, wrap": ("int32", {"overflow": "wrap"}),
    "uint8, wrap": ("uint8", {"overflow": "wrap"}),
    "int8 → int32": ("int8", {"dtype": "int32"}),
    "int16 → int64": ("int16", {"dtype": "int64"}),
}
"""Products of integers: the dtype of the operands, and options of `matmul`."""


def measure_integers(sizes: Sequence[int], repeats: int) -> None:
    """Products over PLUS_TIMES beside NumPy's."""
    rows, others = [], 0.0
    for n in sizes:
        for name, (kind, options) in CASES.items():
            random = np.random.default_rng(0)
            a, b = (random.integers(0, 100, (n, n)).astype(kind) for _ in range(2))
            numpy = partial(np.matmul, a, b, **({"dtype": options["dtype"]} if "dtype" in options else {}))
            ours = partial(sr.matmul, a, b, sr.PLUS_TIMES, **options)
            np.testing.assert_array_equal(ours(), numpy())
            timings = alternate({"ours": ours, "NumPy": numpy}, repeats)
            others = max(others, timings.others)
            times = (f"{1e3 * timings.median(x):.1f}" for x in ("ours", "NumPy"))
            rows.append((name, str(n), *times, f"{timings.ratio('NumPy', 'ours'):.1f}"))
    print_table(("integers", "n", "ours, ms", "NumPy, ms", "ratio"), rows, others, keys=2)


def measure_modular(sizes: Sequence[int], repeats: int) -> None:
    """Products modulo p beside FLINT's nmod_mat, if python-flint is installed."""
    flint = installed("flint")
    rows, others = [], 0.0
    for n in sizes:
        for p in PRIMES:
            random = np.random.default_rng(0)
            a, b = (random.integers(0, p, (n, n)) for _ in range(2))
            works: dict[str, Any] = {"ours": partial(sr.matmul, a, b, sr.modular(p))}
            if flint is not None:
                flint.ctx.threads = cores()
                left, right = (flint.nmod_mat(n, n, v.ravel().tolist(), p) for v in (a, b))
                works["FLINT"] = partial(left.__mul__, right)
                expected = np.array([int(x) for x in (left * right).entries()]).reshape(n, n)
                np.testing.assert_array_equal(works["ours"](), expected)
            timings = alternate(works, repeats)
            others = max(others, timings.others)
            times = (f"{1e3 * timings.median(x):.1f}" if x in works else "" for x in ("ours", "FLINT"))
            rows.append((f"{p:,}", str(n), *times, f"{timings.ratio('FLINT', 'ours'):.1f}" if flint is not None else ""))
    print_table(("modulo", "n", "ours, ms", "FLINT, ms", "ratio"), rows, others, keys=2)


def main() -> None:
    parser = argparse.ArgumentParser(description="Exact products of integers")
    parser.add_argument("--sizes", type=int, nargs="+", default=[1000])
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    print(machine())
    measure_modular(options.sizes, options.repeats)
    measure_integers(options.sizes, options.repeats)


if __name__ == "__main__":
    main()
