"""Contractions of tensor networks over max-plus, beside the ordinary algebra of PyTorch (or NumPy) in the same order.

    python -m benchmarks.contractions                          # 3-regular graphs and square lattices; on a GPU if there is one
    python -m benchmarks.contractions --vertices 220 --tree tree.json --memory-limit 8GiB

The networks are spin glasses: an index of length 2 for each vertex, and a matrix for each edge, with couplings of ±1. Square lattices are
contracted row by row. The order of a graph comes from cotengra; ``--tree`` keeps it in a file, or reads it from there. Each row has whole
calls: the energy, the energy with one configuration, and the peer's contraction by opt_einsum with the same steps.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import json
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
    search = cotengra.HyperOptimizer(max_repeats=128, minimize="flops", max_time=120, parallel=False)
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


def measure(name: str, edges: Edges, path: Any, limit: str | None) -> list[str]:
    """A row of the table."""
    rng, spins = np.random.default_rng(0), np.array([1.0, -1.0], np.float32)
    couplings = rng.choice([-1.0, 1.0], len(edges)).astype(np.float32)
    arrays: list[Any] = [J * np.outer(spins, spins) for J in couplings]
    if gpus():
        cupy = importlib.import_module("cupy")
        arrays = list(map(cupy.asarray, arrays))
    subscripts = ",".join(chr(256 + a) + chr(256 + b) for a, b in edges) + "->"
    shapes = [(2, 2)] * len(edges)
    plain, winning = (
        sr.contract_expression(subscripts, *shapes, semiring=sr.MAX_PLUS, optimize=path, witness=w, memory_limit=limit, dtype="float32")
        for w in (False, True)
    )
    ours, energy = seconds(lambda: float(plain(*arrays)))
    found = winning(*arrays)
    with_configuration, _ = seconds(lambda: float(winning(*arrays).values))
    state = {i: float(spins[int(v)]) for i, v in found.witness.items()}
    reached = sum(J * state[chr(256 + a)] * state[chr(256 + b)] for J, (a, b) in zip(couplings, edges, strict=True))
    assert energy == float(found.values) == reached
    peer = "–"
    if importlib.util.find_spec("opt_einsum") and not plain.plan.sliced:
        contract: Any = importlib.import_module("opt_einsum").contract
        theirs: list[Any] = [np.asarray(v.get() if gpus() else v) / 2 for v in arrays]
        if gpus():
            torch = importlib.import_module("torch")
            theirs = [torch.as_tensor(v, device="cuda") for v in theirs]
        try:
            peer = f"{seconds(lambda: float(contract(subscripts, *theirs, optimize=path)))[0]:.3f}"
        except (RuntimeError, ValueError) as error:  # PyTorch's arrays have at most 25 axes in einsum, NumPy's 64
            peer = str(error).partition(" (")[0]
    plan = plain.plan
    return [name, f"{plan.steps:.2e}", f"{plan.costs.largest:.2e}", f"{plan.slices:,}", f"{ours:.3f}", f"{with_configuration:.3f}", peer]


def main() -> None:
    """Run the measurements that the command line asks for."""
    parser = argparse.ArgumentParser(description="contractions over max-plus")
    parser.add_argument("--vertices", type=int, nargs="*", default=[100])
    parser.add_argument("--lattices", type=int, nargs="*", default=[10, 16])
    parser.add_argument("--tree", type=Path)
    parser.add_argument("--memory-limit")
    options = parser.parse_args()
    rows = [measure(f"lattice {n}²", lattice(n), left_to_right(len(lattice(n))), options.memory_limit) for n in options.lattices]
    rows += [measure(f"3-regular, {n}", *regular(n, options.tree), options.memory_limit) for n in options.vertices]
    print(machine())
    peer = "PyTorch, plus-times, s" if gpus() else "NumPy, plus-times, s"
    print_table(("spin glass, f32", "steps", "largest array", "slices", "max-plus, s", "with a configuration, s", peer), rows)


if __name__ == "__main__":
    main()
