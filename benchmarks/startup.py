"""What a call costs besides its steps: import, first call in a new process, small matrices, memory.

    python -m benchmarks.startup
    python -m benchmarks.startup --memory 4096 8192

Everything that is only true once a process is measured in new processes, five of each.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from functools import partial

import numpy as np

import semiring as sr
from benchmarks.measure import alternate, machine, print_table

_IMPORT = "import time; t = time.perf_counter(); import {}; print(time.perf_counter() - t)"

_CALL = """
import time
import numpy as np
import semiring as sr
a = np.random.default_rng(0).random((64, 64), dtype=np.float32)
np.fill_diagonal(a, 0)
t = time.perf_counter()
{}
print(time.perf_counter() - t)
"""

_MEMORY = """
import numpy as np
import semiring as sr

def status(name):
    lines = open("/proc/self/status").read().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(name))

def graph(n):
    a = np.random.default_rng(0).random((n, n), dtype=np.float32)
    np.fill_diagonal(a, 0)
    return a

small, a = graph(300), graph({n})
sr.apsp(small, overwrite=True, paths={paths})
open("/proc/self/clear_refs", "w").write("5")  # the peak begins anew
before = status("VmRSS")
result = sr.apsp(a, overwrite={overwrite}, paths={paths})
print(status("VmHWM") - before)
"""


def in_new_process(code: str, **environment: str) -> float:
    """The number that `code` prints."""
    # Modules are compiled to bytecode once, as in any ordinary installation.
    inherited = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    run = subprocess.run([sys.executable, "-c", code], env={**inherited, **environment}, capture_output=True, text=True, check=True)
    return float(run.stdout)


def measure_import(repeats: int) -> None:
    """Import times; NumPy's is part of semiring's."""
    rows = []
    for module, target in (("numpy", 0.0), ("semiring", 0.25)):
        in_new_process(_IMPORT.format(module))
        seconds = statistics.median(in_new_process(_IMPORT.format(module)) for _ in range(repeats))
        rows.append(
            (
                f"import {module}",
                f"{seconds:.3f}",
                f"≤ {target:g}" if target else "",
                ("yes" if seconds <= target else "no") if target else "",
            )
        )
    print_table(("new process", "seconds", "target", "met"), rows)


def measure_first_call(repeats: int) -> None:
    """The first call of a new process, without and with what an earlier one left in the cache."""
    rows = []
    for call in ("sr.matmul(a, a, sr.MIN_PLUS)", "sr.matmul(a, a, sr.MIN_PLUS, witness=True)", "sr.apsp(a)", "sr.apsp(a, paths=True)"):
        code, cold, warm = _CALL.format(call), [], []
        for _ in range(repeats):
            with tempfile.TemporaryDirectory() as folder:
                cold.append(in_new_process(code, SEMIRING_CACHE_DIR=folder))
                warm.append(in_new_process(code, SEMIRING_CACHE_DIR=folder))
        for name, seconds, target in (("empty cache", cold, 0.3), ("from the cache", warm, 0.05)):
            median = statistics.median(seconds)
            rows.append((f"{call}, {name}", f"{median:.3f}", f"≤ {target:g}", "yes" if median <= target else "no"))
    print_table(("first call in a new process, n = 64", "seconds", "target", "met"), rows)


def measure_small(repeats: int) -> None:
    """A call on matrices so small that the call itself counts."""
    rows, calls = [], 200

    def many(a: np.ndarray[tuple[int, int], np.dtype[np.generic]], semiring: sr.Semiring) -> None:
        for _ in range(calls):
            sr.matmul(a, a, semiring)

    for dtype in (np.float32, np.float64, np.int32):
        for n in (8, 64, 128):
            a = np.random.default_rng(0).integers(1, 100, (n, n)).astype(dtype)
            timings = alternate({"matmul": partial(many, a, sr.MIN_PLUS)}, repeats)
            milliseconds = 1e3 * timings.median("matmul") / calls
            target = ("≤ 0.2", "yes" if milliseconds <= 0.2 else "no") if n == 64 else ("", "")
            rows.append((f"{np.dtype(dtype)}, n = {n}", f"{milliseconds:.3f}", *target))
    print_table(("matmul over min-plus", "ms a call", "target", "met"), rows)


def measure_memory(sizes: list[int]) -> None:
    """Peak memory of a closure beyond the matrix that its result lives in, and `via`."""
    rows = []
    for n in sizes:
        matrix, allowed = 4 * n * n, max(0.15 * 4 * n * n, 64 << 20)
        for overwrite in (True, False):
            for paths in (False, True):
                grown = in_new_process(_MEMORY.format(n=n, overwrite=overwrite, paths=paths))
                scratch = grown - matrix * (paths + (not overwrite))
                name = f"n = {n}, overwrite={overwrite}, paths={paths}"
                rows.append(
                    (
                        name,
                        f"{matrix / 2**20:.0f}",
                        f"{scratch / 2**20:.0f}",
                        f"≤ {allowed / 2**20:.0f}",
                        "yes" if scratch <= allowed else "no",
                    )
                )
    print_table(("apsp, float32", "matrix, MiB", "scratch, MiB", "target", "met"), rows)


def main() -> None:
    parser = argparse.ArgumentParser(description="Costs besides the steps")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--memory", type=int, nargs="*", default=[4096], help="sizes for the memory of apsp")
    options = parser.parse_args()
    print(machine())
    measure_import(options.repeats)
    measure_first_call(options.repeats)
    measure_small(options.repeats)
    if os.path.exists("/proc/self/clear_refs"):
        measure_memory(options.memory)


if __name__ == "__main__":
    main()
