"""Close a matrix in a file with less memory than the matrix takes, and go on after Ctrl-C or a crash.

python examples/larger_than_memory.py 8192 128MiB     # 256 MiB of distances; stop it, and start it again
"""

import sys
from pathlib import Path

import numpy as np

import semiring as sr


def main(n: int, memory_limit: str) -> None:
    """Write a random graph to a file, and its distances to the folder ``large.work``."""
    file = Path("large.npy")
    if not file.exists():
        rng = np.random.default_rng(0)
        graph = np.lib.format.open_memmap(file, "w+", np.float32, shape=(n, n))
        for row in graph:
            row[:] = np.inf
            row[rng.integers(0, n, 8)] = rng.uniform(1, 100, 8)
    graph = np.load(file, mmap_mode="r")
    print(sr.explain(graph, memory_limit=memory_limit))
    distances = sr.apsp(graph, memory_limit=memory_limit, checkpoint="large.work")
    print(f"From the first vertex to the last: {distances[0, -1]:.1f}. All distances: {distances.filename}")


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2])
