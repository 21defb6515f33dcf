"""A closure with a checkpoint, by ranks of which one is going to be killed: ``mpiexec -n 3 python -m tests.mpi.killed folder kept``."""

from __future__ import annotations

import sys
import time
from typing import Any

import numpy as np
from mpi4py import MPI

import semiring as sr
from semiring.streaming import snapshots

N, BLOCK = 320, 8
LIMIT: dict[str, dict[str, Any]] = {"snapshots": {}, "a journal": {"memory_limit": "400 MB"}}


def matrix() -> np.ndarray[Any, Any]:
    """Weights whose sums round."""
    rng = np.random.default_rng(11)
    return np.where(rng.random((N, N)) < 0.3, rng.random((N, N)) ** 3 + 1e-3, np.inf).astype("f4")


def main(folder: str, kept: str) -> None:
    """Not too fast, so that there is time to kill a rank in the middle."""
    snapshots.EVERY = snapshots.SHARE = 0
    sr.apsp(
        matrix(), comm=MPI.COMM_WORLD, block=BLOCK, checkpoint=folder, paths=True, progress=lambda now: time.sleep(0.001), **LIMIT[kept]
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
