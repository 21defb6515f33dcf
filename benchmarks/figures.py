"""Figures of benchmarks as data, a file of CSV for each benchmark, and the comparisons that README and the site show of them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from benchmarks.records import read_csv

__all__ = ["COMPARISONS", "DATA", "Comparison", "Figure", "Point", "read"]

DATA = Path(__file__).parent / "data"

_SELECTING = r" --(sizes|degrees|lattices|only|peers|apsp|largest|paths|repeats|rounds|states|threads|device)( (?!--)\S+)+"
"""Options with values that choose among the rows of a table, or that the name of the machine repeats."""

_SECONDS = {"s": 1.0, "ms": 1e-3, "µs": 1e-6}


@dataclass(frozen=True)
class Figure:
    """One number that a benchmark has printed.

    Attributes
    ----------
    date, commit : str
        Of the run, or of the log's entry; the commit ends with a `+` where the tree had changes.
    machine : str
        The kind of machine, in the words of `benchmarks.measure.place`.
    command : str
        What was run.
    case : str
        The name of the table's key columns, and the values of the row.
    column : str
        What was measured in this row: this library or a peer.
    figure : float
    unit : str
    peers : str
        Versions of the libraries that the header or the row names.
    others : str
        Cores that other processes used; empty where unknown.
    """

    date: str
    commit: str
    machine: str
    command: str
    case: str
    column: str
    figure: float
    unit: str
    peers: str
    others: str

    @property
    def run(self) -> tuple[str, str, str, str]:
        """What figures of one run have in common."""
        return self.date, self.commit, self.machine, self.command

    @property
    def seconds(self) -> float:
        """The figure in seconds."""
        return self.figure * _SECONDS[self.unit]


class Point(NamedTuple):
    """Seconds of this library and of its peers in one run."""

    figure: Figure
    ours: float
    peers: Mapping[str, float]


class Comparison(NamedTuple):
    """What one line of README, and one picture of the site, compares.

    Attributes
    ----------
    label : str
    command : str
        A regular expression: the benchmark and its options, without those that choose rows.
    ours : tuple of str
        Case and column.
    peers : dict
        Case and column of each peer.
    machines : tuple of str
        Where README shows it.
    times : float
        How many times what was measured the label means.
    """

    label: str
    command: str
    ours: tuple[str, str]
    peers: Mapping[str, tuple[str, str]]
    machines: tuple[str, ...] = ()
    times: float = 1

    @property
    def benchmark(self) -> str:
        """The name of the program."""
        return re.split(r"\W", self.command)[0]

    def points(self, machine: str) -> list[Point]:
        """The runs on a kind of machine, oldest first; the last one of a commit counts."""
        found: dict[tuple[str, str], Point] = {}
        figures = [f for f in read(self.benchmark) if f.machine == machine]
        figures = [f for f in figures if re.fullmatch(self.command, re.sub(_SELECTING, "", f.command).removeprefix("python -m benchmarks."))]
        at = {(*f.run, f.case, f.column): self.times * f.seconds for f in figures if f.unit in _SECONDS}
        for f in (f for f in figures if (f.case, f.column) == self.ours):
            peers = {name: at[*f.run, *where] for name, where in self.peers.items() if (*f.run, *where) in at}
            found[f.date, f.commit] = Point(f, at[*f.run, *self.ours], peers)
        return sorted(found.values(), key=lambda point: point.figure.date)


def read(benchmark: str) -> list[Figure]:
    """All figures of a benchmark, in the order of recording."""
    path = DATA / f"{benchmark}.csv"
    return read_csv(path, Figure)[1] if path.exists() else []


def _beside(case: str, ours: str, **peers: str) -> tuple[tuple[str, str], dict[str, tuple[str, str]]]:
    """Columns of one row: this library's, and those of peers."""
    return (case, ours), {name.replace("_", "-"): (case, column) for name, column in peers.items()}


ZEN3, ZEN4, ZEN5, XEON, H200 = (
    *(f"2 cores of AMD Zen {generation}" for generation in (3, 4, 5)),
    "2 cores of an Intel Xeon with AVX-512",
    "one NVIDIA H200",
)
_DUEL = "peer: numba prange Floyd–Warshall, 4096", "peer: scipy floyd_warshall, 4096"
_WAYS = {
    "SciPy": "SciPy's Dijkstra",
    "networkit": "networkit's",
    "igraph": "igraph's",
    "RoutingKit": "RoutingKit's rows",
}

COMPARISONS = (
    Comparison(
        "all pairs of 16 vertices, complete",
        "calls",
        ("warm call: apsp of 16", "µs"),
        {"SciPy": ("warm call: SciPy, floyd_warshall of 16", "µs")},
        (ZEN5,),
    ),
    Comparison(
        "all pairs of 2,000, complete, with predecessors",
        "csgraph --paths",
        *_beside("n, graph: 2000, complete", "closure", SciPy="SciPy"),
        (ZEN5,),
    ),
    Comparison(
        "all pairs of 5,000, 16 edges each",
        "csgraph",
        *_beside("n, graph: 5000, degree 16", "closure", SciPy="SciPy"),
        (ZEN5, H200),
    ),
    Comparison("all pairs of 5,000, complete", "csgraph", *_beside("n, graph: 5000, complete", "closure", SciPy="SciPy"), (ZEN5, ZEN3)),
    Comparison(
        "all pairs of 5,000, complete, with predecessors",
        "csgraph --paths",
        *_beside("n, graph: 5000, complete", "closure", SciPy="SciPy"),
        (H200,),
    ),
    Comparison(
        "all pairs of 4,096, complete, float32",
        "apsp",
        (_DUEL[0], "apsp"),
        {"Numba": (_DUEL[0], "peer"), "SciPy": (_DUEL[1], "peer")},
        (XEON,),
    ),
    Comparison("all pairs of 65,536, float32, in 8 GiB", "streaming", ("n: 65,536", "whole call"), {}, (H200,)),
    Comparison(
        "1,024 sources among 100,000, planar as roads, float32",
        "sparse",
        ("graph: roads, rows of random sources", "a source"),
        {name: (f"graph: roads, {way}", "a source") for name, way in _WAYS.items()},
        (ZEN4,),
        1024,
    ),
    Comparison("product of int64, n = 1,000", "exact", *_beside("integers: int64, 1000", "ours", NumPy="NumPy"), (ZEN3,)),
    Comparison("product of uint8, wrapping, n = 1,000", "exact", *_beside("integers: uint8, wrap, 1000", "ours", NumPy="NumPy"), (ZEN3,)),
    Comparison(
        "product modulo 1,073,741,789, n = 1,000",
        "exact",
        *_beside("modulo: 1,073,741,789, 1000", "ours", FLINT="FLINT"),
        (ZEN3,),
    ),
    Comparison("Boolean product, n = 4,096", "products", *_beside("boolean, n: 4096, 2", "bool arrays", NumPy="NumPy's BLAS"), (ZEN3,)),
    Comparison(
        "L1 distances of 10,000 × 10,000 rows, float32",
        "pairwise",
        *_beside("metric: l1, float32", "ours", SciPy="SciPy, out=", scikit_learn="sklearn"),
        (ZEN3,),
    ),
    Comparison(
        "energy of a spin glass, 24 × 24, float32",
        "contractions.*",
        *_beside("spin glass, f32: lattice 24²", "max-plus", PyTorch="PyTorch, plus-times"),
        (H200,),
    ),
    Comparison(
        "min-plus product of PyTorch, n = 1,024, and its gradient",
        "gradients",
        *_beside("semiring: min-plus, 1,024", "forward + backward", PyTorch="PyTorch, both", tropical_gemm="tropical-gemm, both"),
    ),
    Comparison(
        "random fields, 16 × 1,000 × 32, and their gradients",
        "crf",
        *_beside("sequences × steps × states: 16 × 1,000 × 32", "forward + backward", PyTorch="PyTorch's loop, both"),
    ),
    Comparison("all pairs of 16,384, complete, float32", "gpu", ("n: 16384", "distances"), {}),
    Comparison("reachability of 32,768 vertices", "gpu", ("n: 32768", "transitive closure"), {}),
    Comparison("all pairs of 65,536, in place, in 8 GiB", "streaming --in-place", ("n: 65,536", "whole call"), {}),
    Comparison("all rows of a triangulation of 100,000", "sparse", ("graph: triangulation, all rows", "whole call"), {}),
    Comparison("all weights of this triangulation anew", "sparse", ("graph: triangulation, all weights anew", "whole call"), {}),
)
"""The lines of README's table, and then what only the site shows."""
