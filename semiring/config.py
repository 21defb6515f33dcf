"""`show_config`: what the library found on this machine."""

from __future__ import annotations

import importlib.metadata
import os
import platform
from collections import Counter
from pathlib import Path

from semiring.common import __version__
from semiring.common.errors import SemiringError

__all__ = ["EXTRAS", "installed", "show_config"]

EXTRAS = {
    "graphs": ("scipy", "networkx"),
    "sparse": ("pymetis", "scipy"),
    "symbolic": ("sympy",),
    "progress": ("tqdm",),
    "mpi": ("mpi4py",),
    "demo": ("bokeh_sampledata",),
    "cuda12": ("cupy-cuda12x",),
    "cuda13": ("cupy-cuda13x",),
}
"""The optional packages by the name of the extra that installs them."""


def installed(package: str) -> str | None:
    """The version of a distribution, read from its metadata without importing it; None where it is not installed."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def show_config() -> None:
    """Print versions, the processor, and what the library makes of them.

    Shown are the vector instructions that kernels are generated for, the threads, the cache of compiled kernels, the available
    memory, the GPUs (or why there is none), the engines and the optional packages. The environment variables ``SEMIRING_ISA``,
    ``SEMIRING_NUM_THREADS`` and ``SEMIRING_CACHE_DIR`` change three of them.

    Examples
    --------
    >>> import semiring as sr
    >>> sr.show_config()  # doctest: +SKIP
    semiring   0.1.0
    Python     3.11.7, NumPy 2.4.6, llvmlite 0.50.0
    processor  AMD EPYC 9R14 (znver4), Linux x86_64
    vectors    avx512, 32 registers of 64 bytes
    threads    2
    cache      /home/ada/.cache/semiring, 12 files, 0.2 MiB
    memory     22.5 GiB available
    GPUs       none that CuPy finds (pip install -e ".[cuda13]" from the clone)
    engines    cpu (LLVM), reference (NumPy, exact objects)
    extras     graphs: scipy 1.17.1, networkx 3.6.1
               symbolic: not installed

    Notes
    -----
    Compiled kernels are code that this process will run. Their folder is made so that only you can enter it, and nothing is loaded from a
    folder or a file that belongs to another user or that others can write to: it is compiled instead, and the line says so. A folder
    that you name with ``SEMIRING_CACHE_DIR`` keeps the permissions that you gave it. (On Windows it is as safe as the place it lies in.)
    """
    for name, value in _lines():
        print(f"{name:<10} {value}")


def _lines() -> list[tuple[str, str]]:
    """What is shown: names and values."""
    vectors, engines = _vectors()
    number, names = _gpus()
    lines = [
        ("semiring", __version__ if installed("semiring") else f"{__version__}, used from its source folder"),
        ("Python", f"{platform.python_version()}, NumPy {installed('numpy')}, llvmlite {installed('llvmlite')}"),
        ("processor", f"{_processor()}, {platform.system()} {platform.machine()}"),
        ("vectors", vectors),
        ("threads", _threads()),
        ("cache", _cache()),
        ("memory", _memory()),
        ("GPUs", names),
        ("engines", f"{'cuda (CUDA C++), ' if number else ''}{engines}"),
    ]
    for extra, packages in EXTRAS.items():
        found = [f"{p} {version}" for p in packages if (version := installed(p))]
        lines.append(("", f"{extra}: {', '.join(found) or 'not installed'}"))
    first = len(lines) - len(EXTRAS)
    lines[first] = ("extras", lines[first][1])
    return lines


def _processor() -> str:
    """The name of the processor, as Linux or Python knows it."""
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or "unknown"


def _vectors() -> tuple[str, str]:
    """The vector instructions, and the engines that the processor runs."""
    from semiring.kernels.hardware import host

    try:
        target = host()
    except SemiringError as error:
        return str(error), "reference (NumPy, exact objects)"
    return (
        f"{target.isa}, {target.registers} registers of {target.vector_bytes} bytes, for {target.cpu}",
        "cpu (LLVM), reference (NumPy, exact objects)",
    )


def _threads() -> str:
    """How many threads compute, or what is wrong with the number that is set."""
    from semiring.arrays.threads import thread_count

    try:
        return str(thread_count())
    except SemiringError as error:
        return str(error)


def _cache() -> str:
    """The folder of compiled kernels, and what it holds."""
    from semiring.common.units import counted, format_bytes
    from semiring.kernels import cache

    folder = cache.folder()
    try:
        if not cache.is_trusted(folder.stat()):
            return f"{folder}, not used: it belongs to another user, or others can write to it"
        sizes = [entry.stat().st_size for entry in os.scandir(folder) if entry.is_file()]
    except OSError:
        return f"{folder}, empty"
    return f"{folder}, {counted(len(sizes), 'file')}, {format_bytes(sum(sizes))}"


def _memory() -> str:
    """The free memory of the host."""
    from semiring.arrays.memory import free_on
    from semiring.common.units import format_bytes

    free = free_on("cpu")
    return "unknown" if free is None else f"{format_bytes(free)} available"


def _gpus() -> tuple[int, str]:
    """How many GPUs there are, and which."""
    from semiring.arrays.devices import gpus, why_no_gpu

    number = gpus()
    if number == 0:
        return 0, f"none that CuPy finds ({why_no_gpu()})"
    import cupy

    names = Counter(cupy.cuda.runtime.getDeviceProperties(i)["name"].decode() for i in range(number))
    return number, ", ".join(f"{count} × {name}" for name, count in names.items())
