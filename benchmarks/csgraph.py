"""`semiring.csgraph` beside SciPy on the same graphs, and where one overtakes the other.

    python -m benchmarks.csgraph
    python -m benchmarks.csgraph --sizes 500 2000 --degrees 2 16 --paths
    python -m benchmarks.csgraph --device cuda

For each size and degree: the closure, SciPy's way, what `explain` predicts of both and whom it chooses. SciPy is timed from so few sources
that it takes about a second, and that is scaled to all of them; its searches do not depend on each other. Complete graphs it closes as
Floyd and Warshall do, which is scaled from 1000 vertices where there are more. The crossover is the degree at
which the closure becomes the faster one.
"""

from __future__ import annotations

import argparse
import itertools
import math
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse import csgraph as scipys

from benchmarks.measure import hardware, print_table, version
from semiring import csgraph

_PART = 1000
"""Vertices of a complete graph that SciPy is timed with."""

_SECONDS = 1.0
"""What SciPy's part of its sources may take."""


def graph(n: int, degree: int, *, negative: bool) -> Any:
    """A random graph, sparse unless it is complete; with potentials that make some edges negative, but no cycle."""
    rng = np.random.default_rng(n + degree)
    if degree >= n - 1:
        weights = rng.random((n, n)) + 0.01
        height = rng.random(n) * negative
        return weights + height - height[:, None]
    edges = sp.random_array((n, n), density=degree / n, format="coo", rng=rng)
    height = rng.random(n) * negative
    return sp.csr_array((edges.data + 0.01 + height[edges.col] - height[edges.row], (edges.row, edges.col)), shape=(n, n))


def seconds(work: Callable[[], object]) -> float:
    """The best of three runs, of one where that is long."""
    best = math.inf
    for _ in range(3):
        start = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - start)
        if best > _SECONDS:
            break
    return best


def scipys_seconds(matrix: Any, *, paths: bool, negative: bool) -> float:
    """SciPy's time for all sources, by the searches it chooses for sparse graphs, on compressed rows."""
    n = int(matrix.shape[0])
    rows = sp.csr_array(matrix)
    if isinstance(matrix, np.ndarray):  # where SciPy chooses Floyd and Warshall's way
        part = min(n, _PART)
        return seconds(lambda: scipys.floyd_warshall(matrix[:part, :part], return_predecessors=paths)) * (n / part) ** 3

    def take(sources: int) -> float:
        indices = np.arange(sources)
        search: Callable[..., object] = scipys.johnson if negative else scipys.dijkstra
        return seconds(lambda: search(rows, indices=indices, return_predecessors=paths))

    if negative:  # whatever the sources, n rounds over all edges come first
        one, several = take(1), take(min(n, 9))
        return one + (several - one) / 8 * (n - 1)
    sources = min(n, 8)
    found = take(sources)
    while sources < n and found < _SECONDS / 4:
        sources = min(n, 4 * sources)
        found = take(sources)
    return found * n / sources


def compare(sizes: Sequence[int], degrees: Sequence[int], dtype: Any, device: str, *, paths: bool, negative: bool) -> None:
    rows: list[Sequence[str]] = []
    for n in sizes:
        ratios: list[tuple[int, float]] = []
        for degree in sorted({d for d in degrees if d < n - 1} | {n - 1}):
            matrix = graph(n, degree, negative=negative)
            options = {"method": "J", "return_predecessors": paths, "dtype": dtype}
            closing = partial(csgraph.shortest_path, matrix, device=device, **options)
            closing()  # a GPU's first call compiles
            closure = seconds(closing)
            theirs = scipys_seconds(matrix, paths=paths, negative=negative)
            choice = csgraph.explain(matrix, **options)
            predicted = dict(choice.considered)
            ratios.append((degree, theirs / closure))
            right = (choice.strategy != "SciPy") == (closure < theirs)
            row = (_ms(closure), _ms(theirs), f"{theirs / closure:.1f} ×", _ms(predicted["whole"]), _ms(predicted["SciPy"]))
            rows.append((f"{n}, {'complete' if degree >= n - 1 else f'degree {degree}'}", *row, choice.strategy, "yes" if right else "no"))
            print(" ".join(rows[-1]), flush=True)
        print(f"n = {n}: the closure is faster from degree {_crossover(ratios)} on", flush=True)
    header = ("n, graph", "closure, ms", "SciPy, ms", "SciPy / closure", "closure, predicted", "SciPy, predicted", "explain", "right")
    print_table(header, rows)


def _crossover(ratios: Sequence[tuple[int, float]]) -> str:
    """The degree where the ratio of times passes 1, between two that were measured on a logarithmic scale."""
    if ratios[0][1] >= 1:
        return f"{ratios[0][0]} (or less)"
    for (low, below), (high, above) in itertools.pairwise(ratios):
        if below < 1 <= above:
            share = math.log(1 / below) / math.log(above / below)
            return f"{low * (high / low) ** share:.1f}"
    return "none"


def _ms(time: float) -> str:
    return f"{1e3 * time:,.1f}"


def main() -> None:
    parser = argparse.ArgumentParser(description="semiring.csgraph beside scipy.sparse.csgraph")
    parser.add_argument("--sizes", type=int, nargs="+", default=[500, 2000, 5000])
    parser.add_argument("--degrees", type=int, nargs="+", default=[1, 2, 4, 16, 64])
    parser.add_argument("--dtype", default="float64", choices=["float64", "float32"])
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"], help="of the closure, with its copies there and back")
    parser.add_argument("--paths", action="store_true", help="with predecessors")
    parser.add_argument("--negative", action="store_true", help="with negative edges: SciPy's Johnson")
    options = parser.parse_args()
    print(f"{hardware(options.device)}, SciPy {version('scipy')}")
    compare(options.sizes, options.degrees, np.dtype(options.dtype), options.device, paths=options.paths, negative=options.negative)


if __name__ == "__main__":
    main()
