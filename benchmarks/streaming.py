"""Matrices larger than the memory that may be used: time, memory, and what the plan predicted.

    python -m benchmarks.streaming                                          # one GPU, 8 GiB of its memory, from NumPy
    python -m benchmarks.streaming --sizes 131072 --limit 16GiB --in-place
    python -m benchmarks.streaming --devices 2 --in-memory                  # several GPUs, in their memories
    python -m benchmarks.streaming --cpu --sizes 20000 --limit 512MiB       # in a file's own place, on the CPU
    python -m benchmarks.streaming --cpu --sizes 20000 --limit 512MiB --checkpoint
    python -m benchmarks.streaming --cpu --sizes 20000 --in-memory          # the same in memory

Graphs are those of `benchmarks.gpu_large`: whole weights, three rows compared with SciPy's Dijkstra. Times are wall-clock of the whole
call, and of its rounds alone; the first call, on a small graph, compiles the kernels. Memory is the most that CuPy's pools held on
any GPU, or the growth of the process's anonymous memory.
"""

from __future__ import annotations

import argparse
import threading
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

import semiring as sr
from benchmarks.gpu_large import Graph
from benchmarks.measure import print_table
from semiring.common.progress import Progress


class Rounds:
    """The last `Progress` of a call: how long its rounds took, and what was planned."""

    last: Progress | None = None

    def __call__(self, now: Progress) -> None:
        """Told by `sr.apsp`."""
        self.last = now


def anonymous() -> int:
    """Bytes of this process that no file stands behind."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("RssAnon:"))


def pools(devices: int) -> int:
    """The most bytes that CuPy's pool holds on any GPU."""
    import cupy

    held = []
    for device in range(devices):
        with cupy.cuda.Device(device):
            held.append(int(cupy.get_default_memory_pool().total_bytes()))
    return max(held)


def peak_of(work: Callable[[], Any], size: Callable[[], int]) -> tuple[Any, int]:
    """What `work` gives, and the most that `size` said meanwhile, beyond what it said before."""
    before, over = size(), threading.Event()
    peak = 0

    def watch() -> None:
        nonlocal peak
        while not over.wait(0.005):
            peak = max(peak, size() - before)

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        return work(), peak
    finally:
        over.set()
        watcher.join()


def measure(n: int, options: argparse.Namespace, folder: Path, *, paths: bool) -> list[str]:
    """A row of the table."""
    graph, rounds = Graph(n), Rounds()
    in_place = options.in_place or (options.cpu and not options.checkpoint)
    arguments: dict[str, Any] = {"paths": paths, "overwrite": in_place, "progress": rounds}
    arguments["checkpoint"] = folder / f"{n}" if options.checkpoint else None
    arguments["memory_limit"] = None if options.in_memory else options.limit
    arguments["block"] = 128 if n < 1 << 14 and options.devices > 1 else None  # so small a matrix would not be shared
    arguments["device"] = "cpu" if options.cpu else [f"cuda:{d}" for d in range(options.devices)] if options.devices > 1 else "cuda"
    matrix: np.ndarray[Any, Any]
    if options.cpu and not options.in_memory:
        matrix = np.lib.format.open_memmap(folder / f"{n}.npy", "w+", np.float32, (n, n))
    else:
        matrix = np.empty((n, n), np.float32)
    graph.fill(matrix)
    size = anonymous if options.cpu else lambda: pools(options.devices)
    start = time.perf_counter()
    found, peak = peak_of(lambda: sr.apsp(matrix, **arguments), size)
    seconds = time.perf_counter() - start
    graph.check(*((found.distances, found.via) if paths else (found,)))
    if rounds.last is None or rounds.last.plan.rows is None:
        return [f"{n:,}", "", f"{seconds:.2f}", "", "", "", f"{n**3 / seconds / 1e12:.3g}", f"{peak / 2**30:.2f}"]
    plan, inner = rounds.last.plan.rows, rounds.last.seconds
    print(plan, flush=True)
    return [
        f"{n:,}{' with paths' if paths else ''}", f"{plan.side:,}", f"{seconds:.2f}", f"{inner:.2f}", f"{plan.seconds:.2f}",
        f"{n**3 / inner / 1e12:.3g}", f"{n**3 / seconds / 1e12:.3g}", f"{peak / 2**30:.2f}",
    ]  # fmt: skip


def main() -> None:
    """Run the measurements that the command line asks for."""
    parser = argparse.ArgumentParser(description="Closures by block rows")
    parser.add_argument("--sizes", type=int, nargs="*", default=[65536, 65537])
    parser.add_argument("--paths", type=int, nargs="*", default=[])
    parser.add_argument("--limit", default="8GiB")
    parser.add_argument("--devices", type=int, default=1)
    parser.add_argument("--in-memory", action="store_true")
    parser.add_argument("--in-place", action="store_true")
    parser.add_argument("--cpu", action="store_true")
    parser.add_argument("--checkpoint", action="store_true")
    options = parser.parse_args()
    with TemporaryDirectory() as folder:
        if not options.cpu:  # kernels are compiled
            few = argparse.Namespace(**{**vars(options), "limit": "128MiB"})
            for paths in {not options.sizes, bool(options.paths)}:
                measure(6000, few, Path(folder), paths=paths)
        cases = [(n, False) for n in options.sizes] + [(n, True) for n in options.paths]
        rows = [measure(n, options, Path(folder), paths=paths) for n, paths in cases]
    columns = ["whole call, s", "its rounds, s", "predicted, s", "T steps/s of the rounds", "of the call", "memory, GiB"]
    print_table(["n", "block rows of", *columns], rows)


if __name__ == "__main__":
    main()
