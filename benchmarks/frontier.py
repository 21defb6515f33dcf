"""Where a closure of the whole matrix is faster than a search from every vertex, by the number of vertices and their degree.

    python -m benchmarks.frontier
    python -m benchmarks.frontier --sizes 256 1024 --csv benchmarks/frontier_xeon.csv
    python -m benchmarks.frontier --device cuda --csv benchmarks/frontier_h200.csv

Both get the same sparse array of float64 weights and give a float64 matrix: `semiring.apsp` with its conversion (and its copies to a GPU
and back), SciPy's Dijkstra without paths. The closure takes the same time whatever the degree, and is timed on one graph for each n, in
alternation with the searches. These do not know of each other, so a sample of the sources is timed and scaled.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import dijkstra

import semiring as sr
from benchmarks.measure import alternate, hardware, machine, print_table
from benchmarks.records import write_csv

__all__ = ["Measurement", "degrees", "measure", "random_graph", "show"]

SIZES = (32, 64, 128, 256, 512, 1024, 2048, 4096, 8192)

_SOURCES = 64
"""How many searches are timed."""

_EDGES = 1 << 22
"""More are not searched: the closure is far ahead there."""


@dataclass(frozen=True)
class Measurement:
    """Seconds of both on one graph.

    Attributes
    ----------
    n, degree : int
        Vertices, and edges that leave each of them.
    closure, searches : float
        Seconds of `semiring.apsp`, and of SciPy's Dijkstra from every vertex.
    """

    n: int
    degree: int
    closure: float
    searches: float

    @property
    def ratio(self) -> float:
        """How many times faster the closure is."""
        return self.searches / self.closure


def degrees(n: int) -> list[int]:
    """The powers of 2 from 2 on, and n − 1, the complete graph; those that are not too many."""
    return [degree for degree in (*(2**k for k in range(1, n.bit_length()) if 2**k < n - 1), n - 1) if n * degree <= _EDGES]


def random_graph(n: int, degree: int) -> Any:
    """A sparse array with `degree` edges from every vertex to others, of random weights.

    Parameters
    ----------
    n : int
    degree : int
        At most n − 1.
    """
    random = np.random.default_rng((n, degree))
    # One edge goes to each part of the circle of the other vertices.
    bounds = np.arange(degree + 1) * (n - 1) // degree
    steps = bounds[:-1] + 1 + np.floor(random.random((n, degree)) * np.diff(bounds)).astype(np.int64)
    sources = np.arange(n)[:, None]
    weights = random.random(n * degree) + 1e-3
    return csr_array((weights, (np.repeat(sources, degree), ((sources + steps) % n).ravel())), shape=(n, n))


def measure(n: int, device: str = "cpu", repeats: int = 3) -> list[Measurement]:
    """Time the closure, and the searches for every degree.

    Parameters
    ----------
    n : int
    device : str
        Of the closure; SciPy computes on the CPU.
    repeats : int
        Rounds, of which the best is taken.

    Raises
    ------
    AssertionError
        If their distances differ.
    """
    graphs = {degree: random_graph(n, degree) for degree in degrees(n)}
    some = np.linspace(0, n - 1, min(n, _SOURCES), dtype=int)
    one = graphs[min(8, max(graphs))]
    np.testing.assert_allclose(sr.apsp(one, device=device)[some], dijkstra(one, indices=some), rtol=1e-12)
    works: dict[str, Callable[[], object]] = {"closure": partial(sr.apsp, one, device=device)}
    works |= {str(degree): partial(dijkstra, graph, indices=some) for degree, graph in graphs.items()}
    timings = alternate(works, repeats, patience=1, warm=True)
    best = {name: min(seconds) for name, seconds in timings.seconds.items()}
    return [Measurement(n, degree, best["closure"], best[str(degree)] * n / len(some)) for degree in graphs]


def show(measured: Sequence[Measurement]) -> None:
    """A table of the ratios."""
    at = {(m.n, m.degree): m for m in measured}
    sizes = sorted({m.n for m in measured})
    columns = sorted({m.degree for m in measured if m.degree < m.n - 1})
    rows = []
    for n in sizes:
        cells = [at[n, d] if (n, d) in at and d < n - 1 else None for d in columns]
        rows.append([str(n), *(f"{m.ratio:.2g}" if m else "" for m in [*cells, at.get((n, n - 1))])])
    print("\nHow many times faster the closure is, by vertices and degree")
    print_table(("n", *map(str, columns), "complete"), rows)


def main() -> None:
    parser = argparse.ArgumentParser(description="Closure or searches, by vertices and degree")
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--csv", type=Path, help="write the measurements to this file")
    options = parser.parse_args()
    where = machine() if options.device == "cpu" else f"{hardware(options.device)}; searches on {machine()}"
    print(where)
    measured: list[Measurement] = []
    for n in sorted(options.sizes):
        measured += measure(n, options.device, options.repeats)
        print(f"n = {n}: closure {measured[-1].closure:.3g} s", flush=True)
    show(measured)
    if options.csv:
        write_csv(options.csv, measured, (where, f"python -m benchmarks.frontier {' '.join(sys.argv[1:])}"))


if __name__ == "__main__":
    main()
