"""Contractions of spin glasses: energy, configuration and number of ground states, beside PyTorch's (or NumPy's) ordinary algebra.

    python -m benchmarks.contractions                          # two lattices, a 3-regular and a Chimera graph; on a GPU if there is one
    python -m benchmarks.contractions --lattices 16 20 24 --vertices --chimera
    python -m benchmarks.contractions --lattices --vertices 220 --tree tree.json --memory-limit 8GiB --chimera
    python -m benchmarks.contractions --lattices --vertices --chimera 8 --memory-limit 4GiB     # 512 vertices: a GPU of 141 GB
    python -m benchmarks.contractions --device cpu --chimera 6

Couplings are ±1. Lattices and graphs are networks with an index of length 2 for each vertex, and a matrix for each edge. Lattices are
contracted row by row. The order of a graph comes from cotengra; ``--tree`` keeps it in a file, or reads it from there. The peer is
opt_einsum with the same steps.

A Chimera graph of n × n cells has an index of length 16 for each half of a cell. An array with an axis for each of the n vertical halves of
a row goes from row to row: 16ⁿ entries, 2³² for 512 vertices. The products of each row are calls of `einsum`, in slices within the limit.
The configuration is found from the last row back: each row needs the array of the rows above again, n(n + 1)/2 rows in all.

The numbers of ground states are floats. All terms are positive, so the relative error of a number is at most ε times the ⊕ and ⊗ one after
the other: about 3,000 for 512 vertices, 1e-12 in float64. A number below 2⁵³ is exact.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import itertools
import json
import math
import string
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import semiring as sr
from benchmarks.measure import machine, print_table
from semiring.algorithms.contraction import left_to_right
from semiring.arrays.devices import gpus

Edges = list[tuple[int, int]]
SPINS = np.array([1.0, -1.0])
CELL = np.array([[1 - 2 * (number >> k & 1) for k in range(4)] for number in range(16)], np.float32)
"""The four spins of each half of a Chimera cell, for each of the half's 16 values."""


def _larger(a: Any, b: Any) -> Any:
    if a[0] == b[0]:
        return a[0], a[1] + b[1]
    return a if a[0] > b[0] else b


LARGEST = sr.Semiring("largest, counted", _larger, lambda a, b: (a[0] + b[0], a[1] * b[1]), (-math.inf, 0), (0, 1))
"""(largest sum, how many terms have it)."""


def lattice(side: int) -> Edges:
    """Edges of a square lattice, row by row."""
    found = []
    for i in range(side):
        for j in range(side):
            v = i * side + j
            found += [(v, v + 1)] * (j + 1 < side) + [(v, v + side)] * (i + 1 < side)
    return found


def regular(n: int, tree: Path | None) -> tuple[Edges, list[list[int]]]:
    """Edges of a random 3-regular graph, and an order."""
    if tree is not None and tree.exists():
        kept = json.loads(tree.read_text())
        return [(a, b) for a, b in kept["edges"]], kept["path"]
    networkx, cotengra = map(importlib.import_module, ("networkx", "cotengra"))
    edges = [(int(a), int(b)) for a, b in networkx.random_regular_graph(3, n, seed=1).edges]
    inputs = [(str(a), str(b)) for a, b in edges]
    search = cotengra.HyperOptimizer(max_repeats=128, minimize="combo", max_time=120, parallel=False, reconf_opts={})
    path = [list(step) for step in cotengra.array_contract_tree(inputs, (), dict.fromkeys(sum(inputs, ()), 2), optimize=search).get_path()]
    if tree is not None:
        tree.write_text(json.dumps({"edges": edges, "path": path}))
    return edges, path


def seconds(work: Callable[[], Any], repeats: int = 3) -> tuple[float, Any]:
    """Least seconds of a call whose result is a number of the host, and the result."""
    least, found = np.inf, None
    for _ in range(repeats):
        start = time.perf_counter()
        found = work()
        least = min(least, time.perf_counter() - start)
    return least, found


def counted(values: Any, dtype: str) -> Any:
    """An element of LARGEST for each value."""
    return values, values.astype(dtype) * 0 + 1


def measure(name: str, edges: Edges, path: Any, options: argparse.Namespace) -> list[str]:
    """A row of the table."""
    couplings = np.random.default_rng(0).choice([-1.0, 1.0], len(edges)).astype(np.float32)
    arrays = options.send([(J * np.outer(SPINS, SPINS)).astype(np.float32) for J in couplings])
    subscripts = ",".join(chr(256 + a) + chr(256 + b) for a, b in edges) + "->"
    shapes, limit = [(2, 2)] * len(edges), options.memory_limit
    plain, winning = (
        sr.contract_expression(subscripts, *shapes, semiring=sr.MAX_PLUS, optimize=path, witness=w, memory_limit=limit, dtype="float32")
        for w in (False, True)
    )
    dtypes = ("float32", options.counts)
    counting = sr.contract_expression(subscripts, *shapes, semiring=LARGEST, optimize=path, memory_limit=limit, dtype=dtypes)
    ours, energy = seconds(lambda: float(plain(*arrays)))
    found = winning(*arrays)
    with_configuration, _ = seconds(lambda: float(winning(*arrays).values))
    state = {i: SPINS[int(v)] for i, v in found.witness.items()}
    reached = sum(J * state[chr(256 + a)] * state[chr(256 + b)] for J, (a, b) in zip(couplings, edges, strict=True))
    assert energy == float(found.values) == reached
    pairs = [counted(v, options.counts) for v in arrays]
    with_number, (again, number) = seconds(lambda: tuple(map(float, counting(*pairs))))
    assert again == energy
    peer = "–"
    if importlib.util.find_spec("opt_einsum") and not plain.plan.sliced:
        contract: Any = importlib.import_module("opt_einsum").contract
        theirs: list[Any] = [np.asarray(v.get() if options.gpu else v) / 2 for v in arrays]
        if options.gpu:
            torch = importlib.import_module("torch")
            theirs = [torch.as_tensor(v, device="cuda") for v in theirs]
        try:
            peer = f"{seconds(lambda: float(contract(subscripts, *theirs, optimize=path)))[0]:.3f}"
        except (RuntimeError, ValueError) as error:  # PyTorch's arrays have at most 25 axes in einsum, NumPy's 64
            peer = str(error).partition(" (")[0]
    plan = plain.plan
    sizes = [f"{plan.steps:.2e}", f"{plan.costs.largest:.2e}", f"{plan.slices:,}"]
    times = [f"{t:.3f}" for t in (ours, with_configuration, with_number)]
    return [name, *sizes, *times, peer, f"{energy:.0f}", f"{math.log(number):.6f}"]


class Chimera:
    """A spin glass on rows × columns cells of a Chimera graph, in float32.

    A cell has four vertical and four horizontal spins, with a coupling for each pair of both. Vertical spins are coupled with those of the
    next row, horizontal ones with those of the next column.
    """

    def __init__(self, rows: int, columns: int, rng: np.random.Generator) -> None:
        self.rows, self.columns = rows, columns
        inside, down, across = (rng.choice([-1.0, 1.0], (rows, columns, *shape)).astype(np.float32) for shape in ((4, 4), (4,), (4,)))
        self.cells = CELL @ inside @ CELL.T  # of all values of the vertical, and of the horizontal half
        self.down = (CELL * down[:, :, None]) @ CELL.T  # of this row, and of the next one
        self.across = (CELL * across[:, :, None]) @ CELL.T  # of this column, and of the next one
        self.letters, self.others = string.ascii_lowercase[:columns], string.ascii_uppercase[:columns]

    def network(self) -> tuple[str, list[Any]]:
        """Subscripts and arrays of the whole network."""
        halves = itertools.product(range(self.rows), range(self.columns), (0, 1))
        index = {half: chr(256 + number) for number, half in enumerate(halves)}
        terms, arrays = list[str](), list[Any]()
        for (i, j, side), letter in index.items():
            after = index.get((i + 1, j, 0) if side == 0 else (i, j + 1, 1))
            if side == 0:
                terms.append(letter + index[i, j, 1])
                arrays.append(self.cells[i, j])
            if after is not None:
                terms.append(letter + after)
                arrays.append((self.down, self.across)[side][i, j])
        return ",".join(terms) + "->", arrays


class Rows:
    """The contraction of a Chimera graph over a semiring, row by row; `read` makes elements of a matrix."""

    def __init__(self, glass: Chimera, semiring: sr.Semiring, read: Callable[[Any], Any], limit: str | None) -> None:
        self.glass, self.read, self.limit, self.semiring = glass, read, limit, semiring

    def einsum(self, subscripts: str, *arrays: Any, **options: Any) -> Any:
        """Contract within the limit, from left to right by default."""
        return sr.einsum(subscripts, *arrays, semiring=self.semiring, memory_limit=self.limit, **{"optimize": False, **options})

    def after(self, row: int) -> Any:
        """The array with an axis for each vertical half of a row, after all rows up to this one."""
        g, found = self.glass, None
        halves = [g.letters[: g.columns // 2], g.letters[g.columns // 2 :]]
        first, rest, middle = g.letters[0], g.letters[1:], g.others[g.columns // 2 - 1]
        terms = f"{halves[0]}{middle},{middle}{halves[1]}->{g.letters}"
        for i in range(row + 1):
            if found is None:
                found = self.einsum(terms, *self._halves(i))
                continue
            for j in range(g.columns):  # the first axis leaves, and the next row's comes last
                found = self.einsum(f"{g.letters},{first}Z->{rest}Z", found, self.read(g.down[i - 1, j]))
            found = self.einsum(f"{g.letters},{terms}", found, *self._halves(i), optimize=[(1, 2), (0, 1)])
        return found

    def _halves(self, i: int) -> tuple[Any, Any]:
        """The left and the right half of a row, without vertical couplings; both have an axis for the middle column's horizontal spins."""
        g, half = self.glass, self.glass.columns // 2
        cells = [f"{v}{h}" for v, h in zip(g.letters, g.others, strict=True)]
        bonds = [f"{h}{after}" for h, after in zip(g.others, g.others[1:], strict=False)]
        terms = [x for pair in zip(cells, [*bonds, ""], strict=True) for x in pair][:-1]
        arrays = [self.read(x) for j in range(g.columns) for x in (g.cells[i, j], g.across[i, j])][:-1]
        cut, middle = 2 * half - 1, g.others[half - 1]
        return (
            self.einsum(f"{','.join(terms[:cut])}->{g.letters[:half]}{middle}", *arrays[:cut]),
            self.einsum(f"{','.join(terms[cut:])}->{middle}{g.letters[half:]}", *arrays[cut:]),
        )

    def closed(self, found: Any, below: tuple[int, list[int]] | None = None, *, witness: bool = False) -> Any:
        """The sum over all halves of the last row; `below` has the values of the row below, if there is one."""
        g = self.glass
        ends = [np.zeros(16, np.float32) if below is None else g.down[below[0], j][:, below[1][j]] for j in range(g.columns)]
        terms = f"{g.letters},{','.join(reversed(g.letters))}->"
        return self.einsum(terms, found, *[self.read(x) for x in reversed(ends)], witness=witness)

    def total(self) -> Any:
        """The contraction of the whole network."""
        return self.closed(self.after(self.glass.rows - 1))

    def configuration(self) -> tuple[float, float]:
        """The largest sum, and the sum of the couplings of one configuration that is found from the last row back."""
        g, largest, reached = self.glass, 0.0, 0.0
        below: tuple[int, list[int]] | None = None
        for i in reversed(range(g.rows)):
            best = self.closed(self.after(i), below, witness=True)
            values = [int(best.witness[letter]) for letter in g.letters]
            largest = float(best.values) if below is None else largest
            reached += sum(float(g.down[i, j][values[j], below[1][j]]) for j in range(g.columns)) if below else 0.0
            below = i - 1, values
            chain = [g.others[0], *(x for pair in zip(g.others, g.others[1:], strict=False) for x in ("".join(pair), pair[1]))]
            arrays = [x for j in range(g.columns) for x in (g.cells[i, j][values[j]], g.across[i, j])][:-1]
            across = sr.einsum(",".join(chain) + "->", *arrays, semiring=sr.MAX_PLUS, witness=True, optimize=False)
            sides = [int(across.witness[letter]) for letter in g.others]
            reached += sum(float(g.cells[i, j][values[j], sides[j]]) for j in range(g.columns))
            reached += sum(float(g.across[i, j][sides[j], sides[j + 1]]) for j in range(g.columns - 1))
        return largest, reached


def measure_chimera(n: int, options: argparse.Namespace) -> list[str]:
    """A row of the table of Chimera graphs."""
    limit = options.memory_limit

    def plain(rows: int) -> Rows:
        return Rows(Chimera(rows, n, np.random.default_rng(0)), sr.MAX_PLUS, lambda v: options.send([v])[0], limit)

    def counting(rows: int) -> Rows:
        return Rows(Chimera(rows, n, np.random.default_rng(0)), LARGEST, lambda v: counted(options.send([v])[0], options.counts), limit)

    def timed(name: str, work: Callable[[int], Any]) -> tuple[float, Any]:
        work(2)  # compiles kernels
        taken, found = seconds(lambda: work(n), 1 if n > 6 else 3)
        print(f"Chimera, {8 * n * n} vertices, {name}: {taken:.3f} s", flush=True)
        return taken, found

    ours, energy = timed("energy", lambda rows: float(plain(rows).total()))
    with_number, (again, number) = timed("number", lambda rows: tuple(map(float, counting(rows).total())))
    with_configuration, (largest, reached) = timed("configuration", lambda rows: plain(rows).configuration())
    assert energy == again == largest == reached
    times = [f"{t:.3f}" for t in (ours, with_configuration, with_number)]
    return [f"Chimera, {8 * n * n} vertices", f"{16.0**n:.2e}", *times, f"{energy:.0f}", f"{math.log(number):.6f}"]


def sender(*, gpu: bool) -> Callable[[list[Any]], list[Any]]:
    """A function that sends arrays to the device."""
    if not gpu:
        return lambda arrays: arrays
    cupy = importlib.import_module("cupy")
    return lambda arrays: list(map(cupy.asarray, arrays))


def main() -> None:
    """Run the measurements that the command line asks for."""
    parser = argparse.ArgumentParser(description="contractions over max-plus")
    parser.add_argument("--vertices", type=int, nargs="*", default=[100], help="3-regular graphs")
    parser.add_argument("--lattices", type=int, nargs="*", default=[10, 16], help="sides of square lattices")
    parser.add_argument("--chimera", type=int, nargs="*", default=[4], help="sides of Chimera graphs, in cells of 8 vertices")
    parser.add_argument("--tree", type=Path, help="a file for the order of the first 3-regular graph")
    parser.add_argument("--memory-limit")
    parser.add_argument("--counts", choices=("float32", "float64"), default="float64", help="the dtype of numbers of ground states")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cuda" if gpus() else "cpu")
    options = parser.parse_args()
    options.gpu = options.device == "cuda"
    options.send = sender(gpu=options.gpu)
    print(machine())
    times, answers = ("max-plus, s", "with a configuration, s", "with their number, s"), ("−energy", "log of the number")
    rows = [measure(f"lattice {n}²", lattice(n), left_to_right(len(lattice(n))), options) for n in options.lattices]
    rows += [measure(f"3-regular, {n}", *regular(n, options.tree if n == options.vertices[0] else None), options) for n in options.vertices]
    if rows:
        peer = "PyTorch, plus-times, s" if options.gpu else "NumPy, plus-times, s"
        print_table(("spin glass, f32", "steps", "largest array", "slices", *times, peer, *answers), rows)
    if options.chimera:
        print_table(("spin glass, f32", "largest array", *times, *answers), [measure_chimera(n, options) for n in options.chimera])


if __name__ == "__main__":
    main()
