"""Large graphs on one GPU: time and memory of all-pairs shortest paths, and the way from the host and back.

    python -m benchmarks.gpu_large
    python -m benchmarks.gpu_large --sizes 32768 46341 65536 --paths 32768 --host 16384

A graph has 20 edges a vertex, of whole weights, so that SciPy's Dijkstra on the host gives the same distances to the last bit: three
rows are compared. The matrix is dense all the same, and every step is done. With paths, it is also compared that each intermediate
vertex of those rows splits a path in two.

Times are medians by CUDA events (wall-clock from the host and back) after a warm-up; memory is the most that CuPy's pool had in use.
"""

from __future__ import annotations

import argparse
import functools
import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import semiring as sr
from benchmarks.measure import print_table
from semiring.arrays.devices import host, namespace

_DEGREE = 20
_SOURCES = 3


class Graph:
    """A random graph, on the host as a list of its edges.

    Parameters
    ----------
    n : int
        Vertices.
    """

    def __init__(self, n: int) -> None:
        rng = np.random.default_rng(n)
        places = np.unique(rng.integers(0, n * n, _DEGREE * n))
        self.n, self.rows, self.columns = n, places // n, places % n
        self.weights = rng.integers(1, 1000, len(places)).astype(np.float32)
        self.sources = np.array([0, *rng.integers(0, n, _SOURCES - 2), n - 1])

    def fill(self, matrix: Any) -> None:
        """Write the graph to a matrix, on the host or on the GPU."""
        matrix.fill(np.inf)
        matrix[self.rows, self.columns] = self.weights

    def check(self, distances: Any, via: Any = None) -> None:
        """Compare the rows of some sources with SciPy's, and with what their intermediate vertices say."""
        from scipy.sparse import csr_array
        from scipy.sparse.csgraph import dijkstra

        edges = csr_array((self.weights.astype(np.float64), (self.rows, self.columns)), shape=(self.n, self.n))
        xp = namespace(distances)
        for source, expected in zip(self.sources, dijkstra(edges, indices=self.sources), strict=True):
            row = distances[source]
            np.testing.assert_array_equal(host(row), expected.astype(np.float32))
            if via is not None:
                split = xp.flatnonzero(via[source] >= 0)
                middle = via[source][split]
                assert bool((row[middle] + distances[middle, split] == row[split]).all())
                direct = host(xp.flatnonzero((via[source] < 0) & xp.isfinite(row)))
                ends = np.append(self.columns[self.rows == source], source)
                assert np.isin(direct, ends).all()


def measured(work: Callable[[], Any]) -> tuple[Any, int, float]:
    """What `work` gives, the most bytes that the pool had in use meanwhile, and the seconds on the GPU."""
    import cupy

    pool = cupy.get_default_memory_pool()

    class Peak(cupy.cuda.MemoryHook):  # type: ignore[misc] # CuPy has no types
        name = "peak"
        bytes = pool.used_bytes()

        def malloc_postprocess(self, **_: Any) -> None:
            self.bytes = max(self.bytes, pool.used_bytes())

    begin, end = cupy.cuda.Event(), cupy.cuda.Event()
    begin.record()
    with Peak() as hook:
        result = work()
    end.record()
    end.synchronize()
    return result, hook.bytes, cupy.cuda.get_elapsed_time(begin, end) / 1e3


def measure(n: int, repeats: int, *, paths: bool) -> list[str]:
    """A row of the table: one graph, in the memory of its own matrix."""
    import cupy

    graph, matrix = Graph(n), cupy.empty((n, n), dtype=np.float32)
    work = functools.partial(sr.apsp, matrix, paths=paths, overwrite=True)
    seconds: list[float] = []
    found: Any = None
    peak = 0
    for _ in range(1 + repeats):
        found = None  # its construction matrix would count
        graph.fill(matrix)
        found, peak, taken = measured(work)
        seconds.append(taken)
    distances, via = (found.distances, found.via) if paths else (found, None)
    assert distances.data.ptr == matrix.data.ptr
    graph.check(distances, via)
    best = statistics.median(seconds[1:] or seconds)
    least = matrix.nbytes * (2 if paths else 1)
    matrix[n - 1, n - 2] = np.nan
    try:
        sr.apsp(matrix, overwrite=True)
        raise AssertionError("a NaN at the end of the matrix passed")
    except sr.DomainError:
        pass
    return [
        f"{n:,}{' with paths' if paths else ''}", f"{best:.3f}", f"{n**3 / best / 1e12:.2f}", f"{least / 2**30:.2f}", f"{peak / 2**30:.2f}",
        f"{peak / least - 1:.1%}",
    ]  # fmt: skip


def measure_host(n: int, repeats: int) -> list[str]:
    """A row of the table: from NumPy and back, beside the same on the GPU and the copies that anyone can make."""
    import cupy

    rng = np.random.default_rng(n)
    a = rng.random((n, n), dtype=np.float32)

    def wall(work: Callable[[], Any]) -> float:
        times = []
        for _ in range(1 + repeats):
            cupy.cuda.Device().synchronize()
            start = time.perf_counter()
            work()
            cupy.cuda.Device().synchronize()
            times.append(time.perf_counter() - start)
        return statistics.median(times[1:] or times)

    on_gpu = wall(functools.partial(sr.apsp, cupy.asarray(a), nonedge=np.inf))
    copies = wall(lambda: cupy.asarray(a).get())
    whole = wall(lambda: sr.apsp(a, nonedge=np.inf, device="cuda"))
    row = sr.apsp(a, nonedge=np.inf, device="cuda")[n // 2]
    assert bool((row == sr.apsp(cupy.asarray(a), nonedge=np.inf)[n // 2].get()).all())
    return [f"{n:,}", f"{on_gpu:.3f}", f"{copies:.3f}", f"{whole:.3f}", f"{whole / (on_gpu + copies) - 1:+.0%}"]


def run(sizes: Sequence[int], paths: Sequence[int], host: Sequence[int], repeats: int) -> None:
    """Print the tables."""
    import cupy

    rows = []
    for which in (False, True):
        for n in paths if which else sizes:
            rows.append(measure(n, repeats, paths=which))
            cupy.get_default_memory_pool().free_all_blocks()
    if rows:
        print_table(["n", "seconds", "T steps/s", "matrices, GiB", "peak, GiB", "beyond them"], rows)
    if host:
        rows = [measure_host(n, repeats) for n in host]
        print_table(["n, from NumPy and back", "on the GPU, s", "asarray and get, s", "whole call, s", "beyond their sum"], rows)


def main() -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(description="Large graphs on one GPU")
    parser.add_argument("--sizes", type=int, nargs="*", default=[16384, 32768])
    parser.add_argument("--paths", type=int, nargs="*", default=[16384, 32768])
    parser.add_argument("--host", type=int, nargs="*", default=[16384])
    parser.add_argument("--repeats", type=int, default=3, help="after a warm-up; 0 measures the first call")
    options = parser.parse_args()
    run(options.sizes, options.paths, options.host, options.repeats)


if __name__ == "__main__":
    main()
