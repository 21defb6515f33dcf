"""One closure by the ranks of a communicator: whole calls, beside what was predicted and beside one process.

    python -m benchmarks.ranks --one --n 65536                    # one process, device="cuda:all" or all threads
    mpiexec -n 4 python -m benchmarks.ranks --n 65536             # after it, on the same machine: the same bits?
    SEMIRING_NCCL=0 mpiexec -n 4 python -m benchmarks.ranks --n 65536
    SEMIRING_NCCL=0 mpiexec -n 4 python -m benchmarks.ranks --n 65536 --apart

With ``--apart`` it is as if each rank had a host of its own: row panels come by MPI's broadcasts, whose speed is measured first.

Each rank makes its rows by a function; what that takes is measured too, and is part of the calls. With ``--file matrix.npy`` one process
and the ranks read the same file, which is made if it is not there.
"""

from __future__ import annotations

import argparse
import tempfile
import time
import zlib
from pathlib import Path
from typing import Any

import numpy as np

import semiring as sr
from semiring.arrays.devices import gpus
from semiring.common.units import format_bytes
from semiring.kernels import machine
from semiring.mpi.panels import nccl_enabled

KEPT = Path(tempfile.gettempdir()) / "semiring-benchmark-ranks.npy"
"""Checksums of the rows that one process found."""


class Rows:
    """Rows of weights that are quickly made: parts of one random sequence."""

    def __init__(self, n: int) -> None:
        self.n, self._weights = n, np.random.default_rng(0).random(3 * n, dtype=np.float32) + np.float32(0.01)
        self.seconds = 0.0

    def __call__(self, start: int, stop: int) -> Any:
        """Rows from `start` to `stop`."""
        begun = time.perf_counter()
        made = np.empty((stop - start, self.n), np.float32)
        for i in range(start, stop):
            first = i * 7919 % (2 * self.n)
            made[i - start] = self._weights[first : first + self.n]
        self.seconds += time.perf_counter() - begun
        return made


def written(n: int, file: Path) -> Any:
    """The matrix in a file."""
    if not file.exists():
        made, rows = np.lib.format.open_memmap(file, mode="w+", dtype=np.float32, shape=(n, n)), Rows(n)
        for start in range(0, n, 4096):
            made[start : start + 4096] = rows(start, min(n, start + 4096))
    return np.load(file, mmap_mode="r")


def one(n: int, repeat: int, device: str, block: int | None, file: Path | None) -> None:
    """Calls of one process."""
    matrix = Rows(n)(0, n) if file is None else written(n, file)
    plan = sr.explain(n, dtype="float32", device=device)
    found = matrix
    for _ in range(repeat):
        begun = time.perf_counter()
        found = sr.apsp(matrix, device=device, method="blocked", block=block, progress=False)
        print(f"one process on {device}: {time.perf_counter() - begun:.2f} s; predicted {plan.seconds or 0:.2f} s", flush=True)
    np.save(KEPT, [zlib.crc32(row) for row in found])


def broadcast_rate(comm: Any) -> float:
    """Bytes a second of a nonblocking broadcast between the ranks, from one piece of memory of each to another, the best of three."""
    piece, best = np.zeros(1 << 28, np.uint8), 0.0
    for _ in range(3):
        comm.barrier()
        begun, request = time.perf_counter(), comm.Ibcast(piece, root=0)
        while not request.Test():
            time.sleep(1e-4)
        comm.barrier()
        best = max(best, piece.nbytes / (time.perf_counter() - begun))
    found: float = comm.bcast(best)
    return found


def together(n: int, repeat: int, device: str, block: int | None, file: Path | None, apart: bool) -> None:
    """Calls of the ranks."""
    from mpi4py import MPI

    from semiring.mpi.ranks import Ranks

    if apart:
        Ranks.ranks_of_host = staticmethod(lambda comm: comm.Split(comm.rank))  # type: ignore[method-assign]  # each one
        machine.NETWORK = broadcast_rate(MPI.COMM_WORLD)
    comm, rows = MPI.COMM_WORLD, Rows(n)
    if device == "cuda":
        device = f"cuda:{comm.rank % gpus()}"
    if file is not None and comm.rank == 0:
        written(n, file)
    each = 0 if device == "cpu" else 1
    beside = Ranks.ranks_of_host(comm).size
    plan = sr.explain(n, dtype="float32", ranks=comm.size, beside=beside, gpus=each, block=block)
    assert plan.rows is not None
    found: Any = None
    for _ in range(repeat):
        rows.seconds = 0.0
        comm.barrier()
        begun = time.perf_counter()
        found = sr.apsp(rows if file is None else file, comm=comm, device=device, block=plan.block, progress=False)
        comm.barrier()
        taken, made = time.perf_counter() - begun, comm.allreduce(rows.seconds, MPI.MAX)
        if comm.rank == 0:
            print(
                f"{comm.size} ranks on {device}: {taken:.2f} s, of which {made:.2f} s made rows; predicted {plan.seconds:.2f} s", flush=True
            )
    same = "not known"
    if KEPT.exists() and len(expected := np.load(KEPT)) == n:
        here = np.concatenate([expected[r] for r in found.own_rows])
        same = str(comm.allreduce(all(zlib.crc32(row) == crc for row, crc in zip(found.local, here, strict=True)), MPI.LAND))
    if comm.rank == 0:
        way = f"broadcasts at {machine.NETWORK / 1e9:.1f} GB/s" if apart else "NCCL" if each and nccl_enabled() else "host memory"
        print(f"row panels by {way}, {format_bytes(plan.rows.received)} to each host; the same bits as one process: {same}")
        print(plan.rows)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--one", action="store_true", help="one process, without MPI")
    parser.add_argument("--n", type=int, default=8192)
    parser.add_argument("--block", type=int)
    parser.add_argument("--file", type=Path, help="read the matrix from there")
    parser.add_argument("--apart", action="store_true", help="as if every rank were on a host of its own")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--device", help="by default the GPUs, if there are some")
    given = parser.parse_args()
    there = gpus() > 0
    if given.one:
        one(given.n, given.repeat, given.device or ("cuda:all" if there else "cpu"), given.block, given.file)
    else:
        together(given.n, given.repeat, given.device or ("cuda" if there else "cpu"), given.block, given.file, given.apart)
