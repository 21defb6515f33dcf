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
    date, commit, machine, command : str
        The run. The commit ends with a `+` where the tree had changes, and `benchmarks.measure.place` names the machine.
    case, column : str
        The row and the column of the table: names of the key columns with their values, and this library or a peer.
    figure, unit : float, str
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


def read(benchmark: str) -> list[Figure]:
    """All figures of a benchmark, in the order of recording."""
    path = DATA / f"{benchmark}.csv"
    return read_csv(path, Figure)[1] if path.exists() else []


class Point(NamedTuple):
    """Seconds of this library and of its peers in one run."""

    run: Figure
    ours: float
    peers: Mapping[str, float]


class Comparison(NamedTuple):
    """What one line of README, and one panel of the site, compares.

    Attributes
    ----------
    label, command : str
        Words, and a regular expression for the benchmark and its options, without those that choose rows.
    case, ours : str
        Row and column of this library.
    peers : dict
        Columns of the peers, or rows and columns.
    machines : tuple of str
        Where README shows it.
    times : float
        How many times the label means what was measured.
    """

    label: str
    command: str
    case: str
    ours: str
    peers: Mapping[str, str | tuple[str, str]] = {}
    machines: tuple[str, ...] = ()
    times: float = 1

    @property
    def benchmark(self) -> str:
        """The name of the program."""
        return re.split(r"\W", self.command)[0]

    def points(self, machine: str) -> list[Point]:
        """The runs on a kind of machine, oldest first; the last one of a commit counts."""
        runs: dict[tuple[str, ...], dict[tuple[str, str], Figure]] = {}
        for f in read(self.benchmark):
            command = re.sub(_SELECTING, "", f.command).removeprefix("python -m benchmarks.")
            if f.machine == machine and re.fullmatch(self.command, command):
                runs.setdefault((f.date, f.commit, f.command), {})[f.case, f.column] = f
        at = {"": (self.case, self.ours)}
        at |= {name: (self.case, where) if isinstance(where, str) else where for name, where in self.peers.items()}
        found = []
        for _, run in sorted(runs.items(), key=lambda item: item[0][0]):
            seconds = {name: self.times * run[w].figure * _SECONDS[run[w].unit] for name, w in at.items() if w in run}
            if "" in seconds:
                found.append(Point(run[at[""]], seconds.pop(""), seconds))
        return found


ZEN3, ZEN5 = (f"2 cores of AMD Zen {generation}" for generation in (3, 5))
XEON, H200 = "2 cores of an Intel Xeon with AVX-512", "one NVIDIA H200"

_SCIPY, _NUMPY, _FLINT, _BLAS = {"SciPy": "SciPy"}, {"NumPy": "NumPy"}, {"FLINT": "FLINT"}, {"NumPy": "NumPy's BLAS"}
_SCIPYS_LOOP = {"SciPy": ("warm call: SciPy, floyd_warshall of 16", "µs")}
_DUELS: Mapping[str, str | tuple[str, str]] = {"Numba": "peer", "SciPy": ("peer: scipy floyd_warshall, 4096", "peer")}
_SEARCHES = {"SciPy": "SciPy's Dijkstra", "networkit": "networkit's", "igraph": "igraph's", "RoutingKit": "RoutingKit's rows"}
_ROWS = {name: (f"graph: roads, {way}", "a source") for name, way in _SEARCHES.items()}
_DISTANCES = {"SciPy": "SciPy, out=", "scikit-learn": "sklearn"}
_GRADIENTS = {"PyTorch": "PyTorch, both", "tropical-gemm": "tropical-gemm, both"}
_LOOP, _FIELDS = {"PyTorch": "PyTorch's loop, both"}, "sequences × steps × states: 16 × 1,000 × 32"

# fmt: off
COMPARISONS = (
    Comparison("all pairs of 16 vertices, complete", "calls", "warm call: apsp of 16", "µs", _SCIPYS_LOOP, (ZEN5,)),
    Comparison("all pairs of 2,000, complete, with predecessors", "csgraph --paths", "n, graph: 2000, complete", "closure", _SCIPY,
               (ZEN5,)),
    Comparison("all pairs of 5,000, 16 edges each", "csgraph", "n, graph: 5000, degree 16", "closure", _SCIPY, (ZEN5, H200)),
    Comparison("all pairs of 5,000, complete", "csgraph", "n, graph: 5000, complete", "closure", _SCIPY, (ZEN5, ZEN3)),
    Comparison("all pairs of 5,000, complete, with predecessors", "csgraph --paths", "n, graph: 5000, complete", "closure", _SCIPY,
               (H200,)),
    Comparison("all pairs of 4,096, complete, float32", "apsp", "peer: numba prange Floyd–Warshall, 4096", "apsp", _DUELS, (XEON,)),
    Comparison("all pairs of 65,536, float32, in 8 GiB", "streaming", "n: 65,536", "whole call", {}, (H200,)),
    Comparison("1,024 sources among 100,000, planar as roads, float32", "sparse", "graph: roads, rows of random sources", "a source", _ROWS,
               (ZEN3,), 1024),
    Comparison("product of int64, n = 1,000", "exact", "integers: int64, 1000", "ours", _NUMPY, (ZEN3,)),
    Comparison("product of uint8, wrapping, n = 1,000", "exact", "integers: uint8, wrap, 1000", "ours", _NUMPY, (ZEN3,)),
    Comparison("product modulo 1,073,741,789, n = 1,000", "exact", "modulo: 1,073,741,789, 1000", "ours", _FLINT, (ZEN3,)),
    Comparison("Boolean product, n = 4,096", "products", "boolean, n: 4096, 2", "bool arrays", _BLAS, (ZEN3,)),
    Comparison("L1 distances of 10,000 × 10,000 rows, float32", "pairwise", "metric: l1, float32", "ours", _DISTANCES, (ZEN3,)),
    Comparison("energy of a spin glass, 24 × 24, float32", "contractions.*", "spin glass, f32: lattice 24²", "max-plus",
               {"PyTorch": "PyTorch, plus-times"}, (H200,)),
    Comparison("min-plus product of PyTorch, n = 1,024, and its gradient", "gradients", "semiring: min-plus, 1,024", "forward + backward",
               _GRADIENTS),
    Comparison("random fields, 16 × 1,000 × 32, and their gradients", "crf", _FIELDS, "forward + backward", _LOOP),
    Comparison("all pairs of 16,384, complete, float32", "gpu", "n: 16384", "distances"),
    Comparison("reachability of 32,768 vertices", "gpu", "n: 32768", "transitive closure"),
    Comparison("all pairs of 65,536, in place, in 8 GiB", "streaming --in-place", "n: 65,536", "whole call"),
    Comparison("all rows of a triangulation of 100,000", "sparse", "graph: triangulation, all rows", "whole call"),
    Comparison("all weights of this triangulation anew", "sparse", "graph: triangulation, all weights anew", "whole call"),
)
# fmt: on
"""The lines of README's table, and then what only the site shows."""
