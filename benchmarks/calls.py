"""What small calls cost, as a user makes them: whole public calls on the wall clock, warm and the first of a process.

    python -m benchmarks.calls
    python -m benchmarks.calls --device cuda
    python -m benchmarks.calls --products

On the CPU, calls of `csgraph` stand below SciPy's own calls, and calls of NetworkX that the backend declines below the same calls without a
backend. Times are given beside SciPy's `floyd_warshall` of a 16 × 16 matrix, measured in the same rounds; with how many Python functions
of any library a warm call runs, and through how many files of this one. On a GPU arrays are CuPy's (and PyTorch's), each call ends with a
wait for the GPU, and a product stands beside its kernel, by CUDA events, and beside CuPy's matrix product. First calls are those of new
processes in which CuPy is loaded and a context made: with empty caches of kernels, and with full ones. Python has its bytecode, as after
pip's installation.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import semiring as sr
from benchmarks.measure import machine, print_table

INF = np.inf

_ROUNDS, _ROUND = 25, 0.01
"""Rounds, and seconds of each work in one."""

_FIRST = """
import time, cupy, numpy as np, semiring as sr
cupy.cuda.runtime.free(0)  # makes the context
rng = np.random.default_rng(0)
a = np.where(rng.random(({n}, {n})) < 0.2, rng.random(({n}, {n})), {missing}).astype(np.float32)
there = cupy.empty(a.shape, a.dtype); there.set(a)
t = time.perf_counter()
{call}
cupy.cuda.Device().synchronize()
print(time.perf_counter() - t)
"""

_USERS = 'S = sr.Semiring("truncated", add=max, mul=lambda a, b: max(a + b - 1, 0), zero=0, one=1, domain=(0, 1))'


def graph(n: int, dtype: Any = np.float64) -> Any:
    """Weights with ∞ for half of the edges."""
    rng = np.random.default_rng(0)
    return np.where(rng.random((n, n)) < 0.5, rng.random((n, n)), INF).astype(dtype)


def rounds(works: Mapping[str, Callable[[], object]]) -> dict[str, list[float]]:
    """Seconds of a call of each work, in rounds of several calls of each."""
    counts = {}
    for name, work in works.items():
        for _ in range(5):
            work()
        start = time.perf_counter()
        work()
        counts[name] = max(1, int(_ROUND / max(1e-7, time.perf_counter() - start)))
    found: dict[str, list[float]] = {name: [] for name in works}
    for _ in range(_ROUNDS):
        for name, work in works.items():
            start = time.perf_counter()
            for _ in range(counts[name]):
                work()
            found[name].append((time.perf_counter() - start) / counts[name])
    return found


def functions_and_files(work: Callable[[], object]) -> tuple[int, int]:
    """How many Python functions a call runs, when everything has been seen before, and through how many files of this library."""
    home, called, files = str(Path(sr.__file__).parent), 0, set[str]()

    def note(frame: Any, event: str, _: object) -> None:
        nonlocal called
        if event == "call":
            called += 1
            if frame.f_code.co_filename.startswith(home):
                files.add(frame.f_code.co_filename)

    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(None)
    return called - 1, len(files)  # without the one that is `work` itself


def declined() -> dict[str, Callable[[], object]]:
    """Calls of NetworkX that the backend leaves to it, without a backend and with this one first."""
    nx: Any = importlib.import_module("networkx")  # typeshed knows it without its backends
    small, larger = nx.path_graph(5), nx.gnp_random_graph(300, 0.02, seed=1)

    def grown() -> None:
        graph = nx.DiGraph()
        for v in range(1, 16):
            graph.add_edge(v // 2, v)
            nx.has_path(graph, 0, v)
            nx.is_strongly_connected(graph)

    calls: dict[str, Callable[[], object]] = {
        "has_path of 5": lambda: nx.has_path(small, 0, 4),
        "diameter of 5": lambda: nx.diameter(small),
        "one shortest_path of 300": lambda: nx.shortest_path(larger, 0, 7),
        "a graph that grows by 15 edges, asked twice after each": grown,
    }

    def asked(call: Callable[[], object], backends: list[str]) -> None:
        with nx.config.backend_priority(algos=backends):
            call()

    ways: dict[str, list[str]] = {"": [], "; backend first": ["semiring"]}
    return {f"NetworkX, {name}{how}": partial(asked, call, first) for name, call in calls.items() for how, first in ways.items()}


def on_cpu() -> None:
    """Small calls beside SciPy's and NetworkX's."""
    import scipy.sparse as sp
    from scipy.sparse import csgraph as scipys

    from semiring import csgraph

    rng = np.random.default_rng(0)
    few, more, many = (sp.csr_array(sp.random_array((n, n), density=d / n, rng=rng)) for n, d in ((18, 3), (30, 4), (1000, 8)))
    before = scipys.dijkstra(many, return_predecessors=True)[1]
    pairs: dict[str, Callable[[Any], object]] = {
        "dijkstra(indices=0) of 18, sparse": lambda module: module.dijkstra(few, indices=0),
        "dijkstra of 18, sparse": lambda module: module.dijkstra(few),
        "dijkstra(directed=False) of 30, sparse, with predecessors": lambda module: module.dijkstra(
            more, directed=False, return_predecessors=True
        ),
        "construct_dist_matrix of 1,000": lambda module: module.construct_dist_matrix(many, before),
    }

    a, d = graph(16, np.float32), graph(16)
    zeros, bits = np.where(d < INF, d, 0), d < 0.2
    sparse = sp.csr_array(np.where(d < 0.4, d, 0))
    base = "SciPy, floyd_warshall of 16"
    works: dict[str, Callable[[], object]] = {
        base: lambda: scipys.floyd_warshall(d),
        "NumPy, product of 16, f32": lambda: a @ a,
        "product of 16, f32": lambda: sr.matmul(a, a, sr.MIN_PLUS),
        "… with witness": lambda: sr.matmul(a, a, sr.MIN_PLUS, witness=True),
        "apsp of 16": lambda: sr.apsp(d),
        "… with paths": lambda: sr.apsp(d, paths=True),
        "transitive_closure of 16": lambda: sr.transitive_closure(bits),
        "apsp(sources=[0]) of 16, sparse": lambda: sr.apsp(sparse, sources=[0]),
        "SciPy, dijkstra(indices=[0]) of 16, sparse": lambda: scipys.dijkstra(sparse, indices=[0]),
        "csgraph.shortest_path of 16, dense": lambda: csgraph.shortest_path(zeros),
        "SciPy, shortest_path of 16, dense": lambda: scipys.shortest_path(zeros),
    }
    works |= {f"{who}, {name}": partial(call, m) for name, call in pairs.items() for who, m in (("SciPy", scipys), ("csgraph", csgraph))}
    works |= declined()
    with np.errstate(invalid="ignore"):  # ∞ − ∞ of NumPy's product
        seconds = rounds(works)
    rows = []
    for name, work in works.items():
        ratio = statistics.median(x / y for x, y in zip(seconds[name], seconds[base], strict=True))
        called, files = functions_and_files(work)
        rows.append((name, f"{1e6 * statistics.median(seconds[name]):.1f}", f"{ratio:.2f}", str(called), str(files) if files else ""))
    print(machine())
    print_table(("warm call", "µs", "× SciPy", "functions", "files"), rows)


def on_gpu() -> None:
    """Products and closures of arrays on a GPU, and first calls of processes."""
    import cupy

    device = cupy.cuda.Device()

    def waited(work: Callable[[], object]) -> Callable[[], object]:
        def run() -> None:
            work()
            device.synchronize()

        return run

    works: dict[str, Callable[[], object]] = {}
    for n in (64, 512, 1024, 8192):
        a = cupy.asarray(np.random.default_rng(0).random((n, n), dtype=np.float32))
        works |= {
            f"product of {n:,}": waited(partial(sr.matmul, a, a, sr.MIN_PLUS)),
            f"… check=False, {n:,}": waited(partial(sr.matmul, a, a, sr.MIN_PLUS, check=False)),
            f"CuPy, product of {n:,}": waited(partial(cupy.matmul, a, a)),
        }
    for n in (64, 1024):
        g = cupy.asarray(graph(n, np.float32))
        works |= {f"apsp of {n:,}": waited(partial(sr.apsp, g)), f"… with paths, {n:,}": waited(partial(sr.apsp, g, paths=True))}
    if importlib.util.find_spec("torch"):
        torch = importlib.import_module("torch")
        t = torch.rand(64, 64, device="cuda")
        works |= {
            "product of 64, PyTorch": waited(partial(sr.matmul, t, t, sr.MIN_PLUS)),
            "… check=False, 64, PyTorch": waited(partial(sr.matmul, t, t, sr.MIN_PLUS, check=False)),
            "PyTorch, product of 64": waited(partial(torch.matmul, t, t)),
        }
    seconds = {name: statistics.median(found) for name, found in rounds(works).items()}
    print(machine())
    print_table(("warm call on a GPU, f32", "µs"), [(name, f"{1e6 * s:,.1f}") for name, s in seconds.items()])
    kernel, whole = _kernel_seconds(8192), seconds["product of 8,192"]
    print(f"product of 8,192: {1e3 * whole:.2f} ms for the whole call, {1e3 * kernel:.2f} ms for its kernel, {whole / kernel - 1:.1%} more")
    rows = []
    for name, n, call in (
        ("apsp of 1,024", 1024, "sr.apsp(there)"),
        ("… with paths", 1024, "sr.apsp(there, paths=True)"),
        ("product of 1,024", 1024, "sr.matmul(there, there, sr.MIN_PLUS)"),
        ("closure of 1,024, a semiring of one's own", 1024, f"{_USERS}; sr.closure(there, S)"),
    ):
        code = _FIRST.format(n=n, call=call, missing="0" if "sr.closure" in call else "np.inf")
        with tempfile.TemporaryDirectory() as folder:
            _first(code, f"{folder}/bytecode")
            empty, *full = [_first(code, folder) for _ in range(4)]
        rows.append((name, f"{empty:.2f}", f"{statistics.median(full):.2f}"))
    print_table(("first call of a process on a GPU", "empty caches, s", "full caches, s"), rows)


_SIZES = (16, 64, 256, 1024, 2048, 4096, 8192)


def products_on_gpu() -> None:
    """Products with witnesses, over log Σ exp, with c and out, and closures with paths, of arrays of each library that is installed."""
    makers: dict[str, Callable[[Any], Any]] = {"CuPy": importlib.import_module("cupy").asarray}
    if importlib.util.find_spec("torch"):
        torch = importlib.import_module("torch")
        makers["PyTorch"] = lambda v: torch.from_numpy(v).cuda()
    if importlib.util.find_spec("jax"):
        jax = importlib.import_module("jax")
        makers["JAX"] = lambda v: jax.device_put(v, jax.devices("gpu")[0])
    wait = importlib.import_module("cupy").cuda.Device().synchronize
    print(machine())
    for library, make in makers.items():
        rows = []
        for n in _SIZES:
            a, c = (make(np.random.default_rng(seed).random((n, n), dtype=np.float32)) for seed in range(2))
            works: dict[str, Callable[[], object] | None] = {
                "plain": partial(sr.matmul, a, a, sr.MIN_PLUS),
                "witness": partial(sr.matmul, a, a, sr.MIN_PLUS, witness=True),
                "log": partial(sr.matmul, a, a, sr.LOG),
                "c": partial(sr.matmul, a, a, sr.MIN_PLUS, c=c),
                "out": partial(sr.matmul, a, a, sr.MIN_PLUS, out=c) if library != "JAX" else None,  # JAX's arrays are immutable
                "paths": partial(sr.apsp, a, paths=True),
            }
            rows.append((f"{n:,}", *(f"{1e6 * _waited(work, wait):,.0f}" if work else "–" for work in works.values())))
        print_table((f"{library}, f32, n, µs a call", "min-plus", "witness", "LOG", "c=", "out=", "apsp with paths"), rows)


def _waited(work: Callable[[], object], wait: Callable[[], object]) -> float:
    """Median seconds of a call and a wait for the GPU."""
    found: list[float] = []
    for _ in range(4):
        work()
    wait()
    began = time.perf_counter()
    while len(found) < 7 or (time.perf_counter() - began < 0.1 and len(found) < 500):
        start = time.perf_counter()
        work()
        wait()
        found.append(time.perf_counter() - start)
    return statistics.median(found)


def _kernel_seconds(n: int) -> float:
    """Of the kernel of a product alone, by CUDA events."""
    import cupy

    from semiring.kernels.select import engine_for

    a = cupy.asarray(np.random.default_rng(0).random((n, n), dtype=np.float32))
    engine, c = engine_for(sr.MIN_PLUS, (a.dtype,), "cuda:0"), cupy.empty_like(a)
    A, C = engine.load((a,), owned=False), engine.blank((c,))
    found = []
    for _ in range(12):
        start, end = cupy.cuda.Event(), cupy.cuda.Event()
        start.record()
        engine.multiply(A, A, C)
        end.record()
        end.synchronize()
        found.append(cupy.cuda.get_elapsed_time(start, end) / 1e3)
    return float(statistics.median(found[2:]))


def _first(code: str, folder: str) -> float:
    places = {"SEMIRING_CACHE_DIR": f"{folder}/semiring", "CUPY_CACHE_DIR": f"{folder}/cupy", "CUDA_CACHE_PATH": f"{folder}/cuda"}
    environment = os.environ | places | {"PYTHONDONTWRITEBYTECODE": ""}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    return float(done.stdout)


def main() -> None:
    parser = argparse.ArgumentParser(description="what small calls cost")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--products", action="store_true", help="kinds of products on a GPU, by size and library")
    options = parser.parse_args()
    (products_on_gpu if options.products else on_gpu if options.device == "cuda" else on_cpu)()


if __name__ == "__main__":
    main()
