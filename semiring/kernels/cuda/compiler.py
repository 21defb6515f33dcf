"""CUDA C++ to loaded kernels: NVRTC, which needs no GPU, a disk cache, and launches.

A `Kernel` is compiled and loaded at its first launch; a rehearsal compiles many at once. CuPy's own compilation of strings always adds
``-ftz=true``, which flushes subnormal weights to 0, and its cache ignores changes of headers.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Hashable
from pathlib import Path
from typing import Any, TypeVar, cast

import numpy as np

from semiring.arrays import threads
from semiring.arrays.overlap import address
from semiring.common.errors import SemiringError
from semiring.kernels import cache
from semiring.kernels.cuda.arguments import fields_header
from semiring.kernels.hardware import device

__all__ = [
    "OPTIONS", "Kernel", "compile_source", "headers", "kept_code", "kernel_for", "options_for", "pointer_to", "rehearse", "rehearsing",
    "run", "semiring_kernel_for",
]  # fmt: skip

OPTIONS = ("--std=c++17", "--fmad=false", "--ftz=false", "--prec-div=true", "--prec-sqrt=true")
"""NVRTC's options. Multiply-adds are fused only where the instruction table says so: a path's weight must not depend on how it is found."""


@functools.cache
def headers() -> dict[str, str]:
    """Return the contents of all headers by name: the templates in this folder, and the generated ``arguments.cuh``."""
    templates = {path.name: path.read_text(encoding="utf-8") for path in sorted(Path(__file__).parent.glob("*.cuh"))}
    return {"arguments.cuh": fields_header(), **templates}


def compile_source(source: str, arch: int) -> bytes:
    """Return the CUBIN of `source` for ``sm_<arch>``; raise SemiringError with NVRTC's messages if the source is invalid."""
    return cache.compiled(_identity(source, arch), ".cubin", lambda: _compile(source, options_for(arch)))


def kept_code(source: str, arch: int) -> bytes | None:
    """Return the CUBIN if the disk cache has it, else None."""
    return cache.kept(_identity(source, arch), ".cubin")


def options_for(arch: int) -> tuple[str, ...]:
    """Return NVRTC's options for ``sm_<arch>``."""
    # Warpgroups' instructions for tensor cores belong to compute capability 9.0 alone.
    return *OPTIONS, f"--gpu-architecture=sm_{arch}{'a' if arch == 90 else ''}"


def _identity(source: str, arch: int) -> str:
    """Return everything that the machine code depends on, as the key of the cache."""
    return "\n".join((source, *headers().values(), *options_for(arch), str(_nvrtc().getVersion())))


def _compile(source: str, options: tuple[str, ...]) -> bytes:
    names, contents = (tuple(part.encode() for part in x) for x in (headers(), headers().values()))
    nvrtc = _nvrtc()
    program = nvrtc.createProgram(source, "semiring.cu", contents, names)
    try:
        nvrtc.compileProgram(program, list(options))
        # CuPy treats the code as a string and drops the last byte, a zero of the last program header.
        return bytes(nvrtc.getCUBIN(program)) + b"\0"
    except nvrtc.NVRTCError as error:
        raise SemiringError(f"NVRTC refuses the generated code: {nvrtc.getProgramLog(program)}") from error
    finally:
        nvrtc.destroyProgram(program)


def _nvrtc() -> Any:
    import cupy

    return cupy.cuda.nvrtc


_T = TypeVar("_T")

_DYNAMIC_SHARED_BYTES = 8  # CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES


class _Thread(threading.local):
    rehearsed: dict[Kernel, None] | None = None  # the kernels that would be launched; None outside of a rehearsal
    ahead: Callable[[], object] | None = None  # launches everything that this thread is about to launch


_thread = _Thread()


class Kernel:
    """A kernel of GPU `number`, which is the current one at each launch.

    `source` returns the CUDA C++, and `shared_bytes` bounds the dynamic shared memory of a launch.
    """

    __slots__ = ("_code", "_function", "_name", "_number", "_shared_bytes", "_source")

    def __init__(self, name: str, source: Callable[[], str], number: int, shared_bytes: int = 0) -> None:
        self._name, self._source, self._number, self._shared_bytes = name, source, number, shared_bytes
        self._code: bytes | None = None
        self._function: Any = None

    def __call__(self, grid: tuple[int, ...], block: tuple[int, ...], arguments: tuple[Any, ...], shared_bytes: int = 0) -> None:
        """Launch the kernel in the current stream."""
        if _thread.rehearsed is None:
            (self._function or self._first())(grid, block, arguments, shared_bytes)
        elif self._function is None:
            _thread.rehearsed[self] = None

    def start(self, grid: tuple[int, int, int], block: tuple[int, int, int], argument: int, shared_bytes: int = 0) -> None:
        """Launch the kernel with one structure, in half the time; `argument` is `pointer_to` the structure, which may change afterwards."""
        if _thread.rehearsed is None:
            _launch(self._function or self._first(), grid, block, argument, shared_bytes)
        elif self._function is None:
            _thread.rehearsed[self] = None

    def _first(self) -> Any:
        """Return CuPy's function at the first launch; a kernel that is not in the disk cache starts a rehearsal of the remaining work."""
        if _thread.ahead is not None and not self.is_compiled():
            ahead, _thread.ahead = _thread.ahead, None
            rehearse(ahead)
        return self._function or self.load()

    def is_compiled(self) -> bool:
        """Return True if a launch need not wait for NVRTC."""
        if self._function is None and self._code is None:
            self._code = kept_code(self._source(), device(self._number).arch)
        return self._function is not None or self._code is not None

    def compile(self) -> bytes:
        """Return the machine code."""
        self._code = compile_source(self._source(), device(self._number).arch)
        return self._code

    def load(self) -> Any:
        """Load the kernel on the GPU, and return CuPy's function."""
        import cupy

        module: Any = cupy.cuda.Module()
        module.load(self._code or self.compile())
        function = module.get_function(self._name)
        if self._shared_bytes:
            cast("Any", cupy.cuda.driver).funcSetAttribute(function.ptr, _DYNAMIC_SHARED_BYTES, self._shared_bytes)
        self._function, self._code = function, None
        return function


@functools.cache
def kernel_for(name: str, number: int, source: Callable[..., str], *how: Hashable, shared_bytes: int = 0) -> Kernel:
    """Return the kernel of ``source(*how)`` for GPU `number`, which stays loaded; see `Kernel`."""
    return Kernel(name, lambda: source(*how), number, shared_bytes)


semiring_kernel_for = functools.lru_cache(maxsize=cache.LOADED)(kernel_for.__wrapped__)
"""`kernel_for` for kernels of one semiring: the least recently used one is dropped."""


def _launch(function: Any, grid: tuple[int, int, int], block: tuple[int, int, int], argument: int, shared_bytes: int) -> None:
    import cupy

    cupy.cuda.driver.launchKernel(function.ptr, *grid, *block, shared_bytes, cupy.cuda.get_current_stream().ptr, argument, 0)


def pointer_to(fields: np.ndarray[Any, np.dtype[np.int64]]) -> int:
    """Return the address of a structure's address, and store the latter in the word before the structure, ``fields[0]``."""
    start = int(address(fields))
    fields[0] = start + fields.itemsize
    return start


def rehearsing() -> bool:
    """Return True if this thread launches nothing, so that no result of a launch is known."""
    return _thread.rehearsed is not None


def rehearse(work: Callable[[], object]) -> None:
    """Compile the kernels that ``work()`` would launch in parallel, and load them, without launching any.

    NVRTC takes a fraction of a second per kernel, on one core; compiling at each first launch would add up to several seconds.
    """
    if rehearsing():
        work()
        return
    _thread.rehearsed = wanted = dict[Kernel, None]()
    try:
        work()
    finally:
        _thread.rehearsed = None
    kernels = list(wanted)
    threads.run(_compile_kernel, kernels, threads.thread_count())
    for kernel in kernels:
        kernel.load()


def run(work: Callable[[], _T], rehearsal: Callable[[], object] | None = None) -> _T:
    """Return ``work()``; if one of its kernels must be compiled, run ``rehearse(rehearsal or work)`` first.

    Nested calls rehearse only the outermost work.
    """
    if rehearsing() or _thread.ahead is not None:
        return work()
    _thread.ahead = rehearsal or work
    try:
        return work()
    finally:
        _thread.ahead = None


def _compile_kernel(kernel: Kernel, slot: int) -> None:
    kernel.compile()
