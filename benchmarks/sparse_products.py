"""Products with sparse arrays beside SuiteSparse:GraphBLAS, whose built-in semirings have kernels that were compiled before, and SciPy.

    python -m benchmarks.sparse_products
    python -m benchmarks.sparse_products --vertices 1000000 --entries 16000000 --only vector
    pip install -e ".[benchmark]"

A random matrix of float64 times a vector, a dense matrix of 64 columns, itself, and itself where a random matrix of as many entries has
some; over min-plus, over the same written by a user, and over plus-times, on all threads (SciPy has one). All run in turn, and the times
are the best of the rounds. With ``--alone`` all have one thread, and its CPU time is told, in which waiting for a core does not count.
"""

from __future__ import annotations

import argparse
import importlib
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp

import semiring as sr
from benchmarks.measure import cores, machine, print_table, version

COLUMNS = 64

OWN = sr.Semiring("a user's", lambda a, b: a if a < b else b, lambda a, b: a + b, float("inf"), 0.0)
"""Min-plus in other words."""

_REST = 0.01
"""Seconds between two jobs: the threads of GraphBLAS wait for more work on the core where those of the next one would run."""

TARGETS = {"vector": 1.2, "64 columns": 0.3, "sparse": 1.0}
"""Of the time of GraphBLAS."""


def random_matrix(n: int, entries: int, seed: int) -> Any:
    """So many entries in random places."""
    rng = np.random.default_rng(seed)
    return sp.coo_array((rng.random(entries), rng.integers(0, n, (2, entries), dtype=np.int32)), shape=(n, n)).tocsr()


def works(n: int, entries: int, product: str, threads: int) -> dict[str, Callable[[], object]]:
    """The same product by all that have it."""
    a, rng = random_matrix(n, entries, 0), np.random.default_rng(1)
    right = rng.random(n) if product == "vector" else rng.random((n, COLUMNS)) if product == "64 columns" else a
    mask = random_matrix(n, entries, 2) if product == "masked" else None
    found: dict[str, Callable[[], object]] = {
        semiring.name: partial(sr.matmul, a, right, semiring, mask=mask, threads=threads) for semiring in (sr.MIN_PLUS, OWN, sr.PLUS_TIMES)
    }
    if mask is None:
        found["SciPy"] = partial(a.__matmul__, right)
    gb = importlib.import_module("graphblas")
    gb.ss.config["nthreads"] = threads
    A = gb.io.from_scipy_sparse(a)
    B = A if right is a else (gb.Vector if product == "vector" else gb.Matrix).from_dense(right)
    where = {} if mask is None else {"mask": gb.io.from_scipy_sparse(mask).S}

    def graphblas(name: str) -> object:
        return getattr(gb.semiring, name)(A @ B).new(**where)

    return found | {"GraphBLAS min-plus": partial(graphblas, "min_plus"), "GraphBLAS plus-times": partial(graphblas, "plus_times")}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--vertices", type=int, default=100_000)
    parser.add_argument("--entries", type=int, default=1_600_000)
    parser.add_argument("--only", nargs="*", choices=[*TARGETS, "masked"], default=[*TARGETS, "masked"])
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--alone", action="store_true")
    options = parser.parse_args()
    print(machine(), version("python-graphblas"), version("scipy"), sep="; ")
    rows, threads, clock = [], 1 if options.alone else cores(), time.process_time if options.alone else time.perf_counter
    for product in options.only:
        repeats = options.repeats * (1 if product != "vector" else 10)
        jobs = works(options.vertices, options.entries, product, threads)
        best = dict.fromkeys(jobs, float("inf"))
        for _ in range(repeats):
            for name, work in jobs.items():
                if threads > 1:
                    time.sleep(_REST)
                start = clock()
                work()
                best[name] = min(best[name], clock() - start)
        for name in best:
            beside = "GraphBLAS plus-times" if name in ("plus-times", "SciPy") else "GraphBLAS min-plus"
            ratio = "" if name.startswith("GraphBLAS") else f"{best[name] / best[beside]:.2f}"
            target = f"≤ {TARGETS[product]}" if product in TARGETS and ratio and name != "SciPy" else ""
            rows.append((product, name, f"{best[name] * 1e3:.2f}", ratio, target))
    print_table(("times", "by", "ms", "of GraphBLAS", "target"), rows, keys=2)


if __name__ == "__main__":
    main()
