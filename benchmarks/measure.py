"""What the benchmarks share: timing in alternation, the machine in words, tables of text."""

from __future__ import annotations

import importlib
import os
import platform
import re
import statistics
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

__all__ = ["Timings", "alternate", "best", "cores", "hardware", "installed", "listeners", "machine", "place", "print_table", "version"]

_QUIET = 0.05
"""What other processes may use of one core in a round that counts."""

_WAIT = 10.0
"""Seconds to wait for them at most."""

listeners: list[Callable[[Sequence[str], Sequence[Sequence[str]], int, float | None], object]] = []
"""Functions that get every printed table: header, rows, the number of key columns, and what other processes used."""


@dataclass(frozen=True)
class Timings:
    """Seconds of several works, measured in rounds of one run each.

    Attributes
    ----------
    seconds : dict
        By name, one number a round.
    others : float
        What other processes used during the busiest of these rounds, in cores.
    """

    seconds: Mapping[str, Sequence[float]]
    others: float

    def median(self, name: str) -> float:
        """Seconds of a work, median."""
        return statistics.median(self.seconds[name])

    def rate(self, name: str, count: float) -> float:
        """`count` per median second, in units of 10⁹."""
        return count / self.median(name) / 1e9

    def ratio(self, name: str, base: str) -> float:
        """How many times longer a work takes than another, median over the rounds."""
        return statistics.median(x / y for x, y in zip(self.seconds[name], self.seconds[base], strict=True))


def alternate(works: Mapping[str, Callable[[], object]], repeats: int = 5, *, patience: int = 3, warm: bool = False) -> Timings:
    """Run every work in turn, again and again, so that noise of the machine hits all of them alike.

    A round begins when the other processes are idle (but nothing waits longer than `_WAIT` in all), and those during which they were
    busy do not count: `repeats` quiet rounds are wanted, and after `patience` times as many the quietest ones are taken. One more
    round goes before, unless the works are warm.
    """
    for work in works.values() if not warm else ():
        work()
    rounds: list[tuple[float, dict[str, float]]] = []
    deadline = time.perf_counter() + _WAIT
    while len(rounds) < patience * repeats and sum(others <= _QUIET for others, _ in rounds) < repeats:
        _wait_for_quiet(deadline)
        seconds, begin, used = {}, time.perf_counter(), _used_by_others()
        for name, work in works.items():
            start = time.perf_counter()
            work()
            seconds[name] = time.perf_counter() - start
        rounds.append(((_used_by_others() - used) / (time.perf_counter() - begin), seconds))
    rounds.sort(key=lambda r: r[0])
    taken = rounds[:repeats]
    return Timings({name: [seconds[name] for _, seconds in taken] for name in works}, max(0.0, taken[-1][0]))


def best(work: Callable[[], Any], rounds: int = 3) -> float:
    """Seconds of the best of some rounds."""
    found = []
    for _ in range(rounds):
        begun = time.perf_counter()
        work()
        found.append(time.perf_counter() - begun)
    return min(found)


def installed(name: str) -> Any:
    """A peer, if it is there."""
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


def _wait_for_quiet(deadline: float) -> None:
    while time.perf_counter() < deadline:
        used = _used_by_others()
        time.sleep(0.1)
        if _used_by_others() - used <= 0.1 * _QUIET:
            return


def _used_by_others() -> float:
    """Seconds that all processors together have spent on other processes (and other guests of the host) so far; 0 if unknown."""
    try:
        fields = [int(x) for x in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]
    except (OSError, ValueError):
        return 0.0
    user, nice, system, _idle, _wait, interrupt, soft, steal = fields
    busy = (user + nice + system + interrupt + soft + steal) / os.sysconf("SC_CLK_TCK")
    return busy - time.process_time()


def cores() -> int:
    """Processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def version(package: str) -> str:
    """The installed version of a package, or "-"."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "-"


def machine() -> str:
    """Processor, cores, versions and how busy the machine is, in one line."""
    from llvmlite import binding as llvm

    name, cpuinfo = platform.processor() or platform.machine(), Path("/proc/cpuinfo")
    if cpuinfo.exists():
        names = [line.split(":")[1].strip() for line in cpuinfo.read_text().splitlines() if line.startswith("model name")]
        name = names[0] if names else name
    load = f"load {os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else "load unknown"
    versions = ", ".join(f"{p} {version(p)}" for p in ("numpy", "llvmlite"))
    return f"{name} ({llvm.get_host_cpu_name()}), {cores()} cores, {load}; Python {platform.python_version()}, {versions}"


def hardware(device: str) -> str:
    """What a benchmark of one device ran on, the CPU or the first GPU, in one line."""
    if device == "cpu":
        return machine()
    import cupy

    name = cupy.cuda.runtime.getDeviceProperties(0)["name"].decode()
    return f"{name}; CuPy {cupy.__version__}, NVRTC {'.'.join(map(str, cupy.cuda.nvrtc.getVersion()))}"


def place(device: str, threads: int | None = None) -> str:
    """The kind of machine that a benchmark of one device ran on, the same words on all machines of the kind."""
    if device != "cpu":
        return f"one {hardware(device).partition(';')[0]}"
    from llvmlite import binding as llvm

    count, name = threads or cores(), re.sub(r"znver(\d)", r"AMD Zen \1", llvm.get_host_cpu_name())
    return f"{count} core{'s' * (count > 1)} of {name}"


def print_table(header: Sequence[str], rows: Iterable[Sequence[str]], others: float | None = None, *, keys: int = 1) -> None:
    """A Markdown table whose columns line up, the first one to the left, and below it what other processes used meanwhile.

    The first `keys` columns say what a row measured.
    """
    cells = [list(header), *(list(row) for row in rows)]
    widths = [max(len(row[i]) for row in cells) for i in range(len(header))]

    def line(row: Sequence[str]) -> str:
        return "| " + " | ".join(c.ljust(w) if i == 0 else c.rjust(w) for i, (c, w) in enumerate(zip(row, widths, strict=True))) + " |"

    print("\n" + line(cells[0]))
    print("|" + "|".join("-" * (w + 2) if i == 0 else "-" * (w + 1) + ":" for i, w in enumerate(widths)) + "|")
    for row in cells[1:]:
        print(line(row))
    for listener in listeners:
        listener(cells[0], cells[1:], keys, others)
    print("" if others is None else f"\nOther processes used up to {others:.2f} cores meanwhile.", flush=True)
