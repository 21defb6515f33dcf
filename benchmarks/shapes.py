"""Stacks of matrices, and products that are not large and square: whole calls in float32 beside `matmul` of NumPy or CuPy.

    python -m benchmarks.shapes
    python -m benchmarks.shapes --device cuda          # and products over log Σ exp and of floats beside cuBLAS

Stacks of small matrices and their closures, molecules as one padded stack and as a list (beside RDKit, if that is installed), thin
products, and products with a vector. Best of many rounds in one process, in which all take turns; NumPy and CuPy multiply and add, this
library adds and takes minima.
"""

from __future__ import annotations

import argparse
import importlib
import math
import operator
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

import semiring as sr
from benchmarks.measure import alternate, hardware, machine, print_table
from benchmarks.measure import best as best_of

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


ON_GPU = {
    "100,000 of 16 × 16": ((100_000, 16, 16), (100_000, 16, 16)),
    "10,000 of 64 × 64": ((10_000, 64, 64), (10_000, 64, 64)),
    "256 of 256 × 256": ((256, 256, 256), (256, 256, 256)),
    "(2²⁴ × 32)(32 × 32)": ((1 << 24, 32), (32, 32)),
    "(32768 × 16)(16 × 32768)": ((32768, 16), (16, 32768)),
    "matrix × vector, n = 65,536": ((65536, 65536), (65536,)),
    "vector × matrix, n = 65,536": ((65536,), (65536, 65536)),
}


def smiles(count: int = 640, most: int = 40) -> list[str]:
    """So many molecules of 10 to 40 atoms: chains with branches, and rings of six."""
    rng = np.random.default_rng(0)
    found = list[str]()
    for _ in range(count):
        left, text = int(rng.integers(10, most + 1)), "C"
        left -= 1
        while left:
            part, atoms = [("C", 1), ("N", 1), ("C(C)", 2), ("C(=O)", 2), ("c1ccccc1", 6), ("C1CCC(CC1)", 6)][rng.integers(6)]
            if atoms <= left:
                text, left = text + part, left - atoms
        found.append(text)
    return found


def bonds_of(text: str) -> list[tuple[int, int]]:
    """The bonds of a molecule of `smiles`: each atom with the one before it or before the bracket, and those that close a ring."""
    bonds, before, branches, ring, atoms = list[tuple[int, int]](), -1, list[int](), -1, 0
    for letter in text:
        if letter.isalpha():
            if atoms:
                bonds.append((before, atoms))
            before, atoms = atoms, atoms + 1
        elif letter == "(":
            branches.append(before)
        elif letter == ")":
            before = branches.pop()
        elif letter == "1":
            bonds, ring = (bonds, before) if ring < 0 else ([*bonds, (ring, before)], -1)
    return bonds


def molecules(texts: Sequence[str], most: int = 40) -> Array:
    """The bonds of molecules as one stack, padded with atoms that have none."""
    stack = np.full((len(texts), most, most), np.inf)
    for graph, text in zip(stack, texts, strict=True):
        for i, j in bonds_of(text):
            graph[i, j] = graph[j, i] = 1
    return stack


def by_rdkit(texts: Sequence[str]) -> Callable[[], list[Array]] | None:
    """What computes the distances of each molecule by RDKit, anew each time; None where that is not installed."""
    try:
        chemistry: Any = importlib.import_module("rdkit.Chem")
    except ImportError:
        return None
    read = [chemistry.MolFromSmiles(text, sanitize=False) for text in texts]
    return lambda: [chemistry.GetDistanceMatrix(molecule, force=True) for molecule in read]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    if parser.parse_args().device == "cuda":
        on_gpu()
    else:
        on_cpu()


def on_gpu() -> None:
    """Arrays of CuPy; each call is waited for."""
    import cupy

    def waited(work: Callable[[], object]) -> Callable[[], object]:
        def call() -> None:
            work()
            cupy.cuda.get_current_stream().synchronize()

        return call

    def best(**works: Callable[[], object]) -> dict[str, float]:
        for work in works.values():  # the second call may have a plan that is kept
            work()
        # Call after call: after a pause host and GPU take some tenths of a millisecond to wake up.
        found = [{name: best_of(waited(work), 10) for name, work in works.items()} for _ in range(_ROUNDS // 10)]
        return {name: min(each[name] for each in found) for name in works}

    print(hardware("cuda"))
    rng: Any = cupy.random.default_rng(0)
    rows = list[list[str]]()
    for name, shapes in ON_GPU.items():
        a, b = (rng.random(shape, dtype=np.float32) for shape in shapes)
        product = partial(sr.matmul, a, b, sr.MIN_PLUS)
        found = best(checked=product, unchecked=partial(product, check=False), cupy=partial(operator.matmul, a, b))
        result = math.prod(shapes[0][:-1]) * (shapes[1][-1] if len(shapes[1]) > 1 else 1)
        moved, steps = 4 * (a.size + b.size + result), result * shapes[0][-1]
        rates = f"{steps / found['checked'] / 1e12:.2f}", f"{moved / found['checked'] / 1e9:,.0f}"
        rows.append([name, *(f"{1e3 * seconds:.3f}" for seconds in found.values()), *rates])
        del a, b
    print_table(["min-plus", "ms", "unchecked, ms", "CuPy, ms", "T steps/s", "GB/s"], rows)
    rows = []
    for semiring in (sr.LOG, sr.PLUS_TIMES):
        for dtype in ("float32", "float64"):
            for n in (1024, 4096, 8192):
                a = rng.random((n, n), dtype=dtype)
                found = best(own=partial(sr.matmul, a, a, semiring), cupy=partial(operator.matmul, a, a))
                milliseconds = [f"{1e3 * seconds:.3f}" for seconds in found.values()]
                rows.append([semiring.name, dtype, f"{n:,}", *milliseconds, f"{n**3 / found['own'] / 1e12:.1f}"])
    print_table(["semiring", "dtype", "n", "ms", "CuPy, ms", "T steps/s"], rows, keys=3)
    rows = []
    for count, n in ((1024, 128), (100_000, 32), (1, 1024)):
        a = 1 + rng.random((count, n, n), dtype=np.float32)
        rows.append([f"{count:,} of {n:,}", f"{1e3 * best(own=partial(sr.closure, a, sr.MIN_PLUS))['own']:.3f}"])
    print_table(["closures", "ms"], rows)


def on_cpu() -> None:
    """Arrays of NumPy."""
    print(machine())
    rng = np.random.default_rng(0)
    rows: list[list[str]] = []
    for name, shapes in PRODUCTS.items():
        a, b = (rng.random(shape, dtype=np.float32) for shape in shapes)
        found = alternate(_works(a, b), _ROUNDS)
        best = {work: min(seconds) for work, seconds in found.seconds.items()}
        rows.append([name, f"{1e3 * best['semiring']:.3f}", f"{1e3 * best['numpy']:.3f}", f"{best['semiring'] / best['numpy']:.2f}"])
    print_table(["min-plus", "ms", "NumPy, ms", "times"], rows)
    texts = smiles()
    small, bonds = rng.random((1000, 16, 16), dtype=np.float32), molecules(texts)
    hops = np.where(np.isinf(bonds), np.iinfo(np.int16).max, bonds).astype(np.int16)
    sizes = [sum(map(str.isalpha, text)) for text in texts]
    listed = [graph[:n, :n] for graph, n in zip(bonds, sizes, strict=True)]
    closures: dict[str, Callable[[], object]] = {
        "1,000 closures of 16": lambda: sr.closure(small, sr.MIN_PLUS),
        "… with paths": lambda: sr.closure(small, sr.MIN_PLUS, paths=True),
        "640 molecules of up to 40 atoms, float64": lambda: sr.apsp(bonds),
        "… int16": lambda: sr.apsp(hops),
        "… a list of matrices without padding": lambda: sr.apsp(listed),
    }
    theirs = by_rdkit(texts)
    if theirs is not None:
        for mine, other in zip(sr.apsp(bonds), theirs(), strict=True):
            np.testing.assert_array_equal(mine[: len(other), : len(other)], other)
        closures["… one by one, by RDKit"] = theirs
    found = alternate(closures, _ROUNDS)
    print_table(["closures", "ms"], [[name, f"{1e3 * min(seconds):.3f}"] for name, seconds in found.seconds.items()])

    rows = []
    truth, large, vector = rng.random((1000, 16, 16)) < 0.2, rng.random((4096, 4096), dtype=np.float32), rng.random(4096, dtype=np.float32)
    steps, start = np.log(rng.random((20_000, 16, 16))), np.zeros(16)
    others: dict[str, Callable[[], object]] = {
        "1,000 Boolean products of 16": lambda: sr.matmul(truth, truth, sr.BOOLEAN),
        "1,000 Boolean closures of 16": lambda: sr.transitive_closure(truth),
        "matrix × vector with witness": lambda: sr.matmul(large, vector, sr.MIN_PLUS, witness=True),
        "… of the transposed matrix": lambda: sr.matmul(large.T, vector, sr.MIN_PLUS, witness=True),
        "scan of 20,000 matrices of 16": lambda: sr.scan(steps, sr.MAX_PLUS, start),
        "… reversed": lambda: sr.scan(steps, sr.MAX_PLUS, start, reverse=True),
    }
    found = alternate(others, _ROUNDS)
    print_table(["others", "ms"], [[name, f"{1e3 * min(seconds):.3f}"] for name, seconds in found.seconds.items()])
    for n in (1024, 2048):
        for dtype in ("float32", "float64"):
            weights = rng.random((n, n)).astype(dtype)
            works: dict[str, Callable[[], object]] = {
                "distances": partial(sr.apsp, weights),
                "paths": partial(sr.apsp, weights, paths=True),
            }
            best = {name: min(seconds) for name, seconds in alternate(works, 5).seconds.items()}
            rows.append([f"{n:,}, {dtype}", *(f"{1e3 * x:.1f}" for x in best.values()), f"{best['paths'] / best['distances']:.2f}"])
    print_table(["closures", "distances, ms", "with paths, ms", "times"], rows)


def _works(a: Array, b: Array) -> dict[str, Callable[[], object]]:
    """The product over min-plus, and NumPy's."""
    return {"semiring": lambda: sr.matmul(a, b, sr.MIN_PLUS), "numpy": lambda: np.matmul(a, b)}


if __name__ == "__main__":
    main()
