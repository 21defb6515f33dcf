"""`show_config`: print the versions, the processor and the settings that the library found on this machine."""

from __future__ import annotations

import importlib.metadata
import os
import platform
from collections import Counter
from pathlib import Path

from semiring.arrays.devices import gpus, why_no_gpu
from semiring.arrays.memory import free_on
from semiring.arrays.threads import thread_count
from semiring.common import __version__
from semiring.common.errors import SemiringError
from semiring.common.units import counted, format_bytes
from semiring.kernels import cache
from semiring.kernels.hardware import host

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
"""Optional packages, by the name of the extra that installs them."""


def installed(package: str) -> str | None:
    """Return the version of a distribution from its metadata, without an import; None if it is not installed."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def show_config() -> None:
    """Print versions, processor, threads, kernel cache, memory, GPUs and optional packages, as bug reports need them.

    The environment variables ``SEMIRING_ISA`` (vector instructions), ``SEMIRING_NUM_THREADS`` and ``SEMIRING_CACHE_DIR`` change the
    settings.

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
    Compiled kernels are code that this process will run, so the library creates the cache folder for you alone. It loads no file that
    another user owns or can write to, but compiles the kernel again; the line ``cache`` says so. A folder named by
    ``SEMIRING_CACHE_DIR`` keeps its permissions. On Windows the cache is as safe as its parent folder.
    """
    for name, value in _lines():
        print(f"{name:<10} {value}")


def _lines() -> list[tuple[str, str]]:
    vectors, engines = _vectors()
    number, names = _gpus()
    free = free_on("cpu")
    lines = [
        ("semiring", __version__ if installed("semiring") else f"{__version__}, imported from its source folder"),
        ("Python", f"{platform.python_version()}, NumPy {installed('numpy')}, llvmlite {installed('llvmlite')}"),
        ("processor", f"{_processor()}, {platform.system()} {platform.machine()}"),
        ("vectors", vectors),
        ("threads", _threads()),
        ("cache", _cache()),
        ("memory", "unknown" if free is None else f"{format_bytes(free)} available"),
        ("GPUs", names),
        ("engines", f"{'cuda (CUDA C++), ' if number else ''}{engines}"),
    ]
    for i, (extra, packages) in enumerate(EXTRAS.items()):
        found = [f"{p} {version}" for p in packages if (version := installed(p))]
        lines.append(("" if i else "extras", f"{extra}: {', '.join(found) or 'not installed'}"))
    return lines


def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or "unknown"


def _vectors() -> tuple[str, str]:
    """Return descriptions of the vector instructions and of the engines that run on this processor."""
    reference = "reference (NumPy, exact objects)"
    try:
        target = host()
    except SemiringError as error:
        return str(error), reference
    return f"{target.isa}, {target.registers} registers of {target.vector_bytes} bytes, for {target.cpu}", f"cpu (LLVM), {reference}"


def _threads() -> str:
    try:
        return str(thread_count())
    except SemiringError as error:
        return str(error)


def _cache() -> str:
    folder = cache.folder()
    try:
        if not cache.is_trusted(folder.stat()):
            return f"{folder}, not used: another user owns it or can write to it"
        sizes = [entry.stat().st_size for entry in os.scandir(folder) if entry.is_file()]
    except OSError:
        return f"{folder}, empty"
    return f"{folder}, {counted(len(sizes), 'file')}, {format_bytes(sum(sizes))}"


def _gpus() -> tuple[int, str]:
    """Return the number of GPUs, and their names or why CuPy finds none."""
    number = gpus()
    if number == 0:
        return 0, f"none that CuPy finds ({why_no_gpu()})"
    import cupy

    names = Counter(cupy.cuda.runtime.getDeviceProperties(i)["name"].decode() for i in range(number))
    return number, ", ".join(f"{count} × {name}" for name, count in names.items())
