"""CUDA C++ to loaded kernels: NVRTC, which needs no GPU, a cache on disk, and launches.

A `Kernel` is compiled and loaded at its first launch, or many of them together in a rehearsal. CuPy's own way to compile a string always
adds ``-ftz=true``, which makes 0 of subnormal weights, and its cache does not see the headers.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
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
    "DYNAMIC_SHARED_BYTES", "OPTIONS", "Kernel", "compile_source", "headers", "kept_code", "pointer_to", "rehearse", "rehearsing", "run",
]  # fmt: skip

OPTIONS = ("--std=c++17", "--fmad=false", "--ftz=false", "--prec-div=true", "--prec-sqrt=true")
"""Sums are not fused with products unless the table of steps says so: a path's weight must not depend on how it was found."""


@functools.cache
def headers() -> dict[str, str]:
    """The templates beside this file, and the fields of their structures, by name."""
    templates = {path.name: path.read_text(encoding="utf-8") for path in sorted(Path(__file__).parent.glob("*.cuh"))}
    return {"arguments.cuh": fields_header(), **templates}


def compile_source(source: str, arch: int) -> bytes:
    """The CUBIN of `source` for ``sm_<arch>``.

    Raises
    ------
    SemiringError
        With the compiler's messages.
    """
    return cache.compiled(_identity(source, arch), ".cubin", lambda: _compile(source, _options(arch)))


def kept_code(source: str, arch: int) -> bytes | None:
    """The same if it was compiled before."""
    return cache.kept(_identity(source, arch), ".cubin")


def _options(arch: int) -> tuple[str, ...]:
    """The compiler's options for ``sm_<arch>``."""
    return *OPTIONS, f"--gpu-architecture=sm_{arch}"


def _identity(source: str, arch: int) -> str:
    """Everything that the code depends on."""
    return "\n".join((source, *headers().values(), *_options(arch), str(_nvrtc().getVersion())))


def _compile(source: str, options: tuple[str, ...]) -> bytes:
    """The CUBIN of a source, compiled now."""
    names, contents = (tuple(part.encode() for part in x) for x in (headers(), headers().values()))
    nvrtc = _nvrtc()
    program = nvrtc.createProgram(source, "semiring.cu", contents, names)
    try:
        nvrtc.compileProgram(program, list(options))
        # CuPy takes the code for a string and drops its last byte, a zero of the last program header.
        return bytes(nvrtc.getCUBIN(program)) + b"\0"
    except nvrtc.NVRTCError as error:
        raise SemiringError(f"NVRTC refuses the generated code: {nvrtc.getProgramLog(program)}") from error
    finally:
        nvrtc.destroyProgram(program)


def _nvrtc() -> Any:
    """CuPy's binding of the compiler."""
    import cupy

    return cupy.cuda.nvrtc


_T = TypeVar("_T")

DYNAMIC_SHARED_BYTES = 8
"""CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES."""


class _Thread(threading.local):
    """What one thread does.

    Attributes
    ----------
    rehearsed : dict or None
        What it would launch; None where it launches.
    ahead : callable or None
        Launches what is going to be launched.
    """

    rehearsed: dict[Kernel, None] | None = None
    ahead: Callable[[], object] | None = None


_thread = _Thread()


class Kernel:
    """A kernel of one GPU.

    Parameters
    ----------
    name : str
    source : callable
        Gives its CUDA C++.
    number : int
        The GPU, which is the current one whenever the kernel is launched.
    shared_bytes : int
        The most dynamic shared memory that it is launched with.
    """

    __slots__ = ("_code", "_function", "_name", "_number", "_shared_bytes", "_source")

    def __init__(self, name: str, source: Callable[[], str], number: int, shared_bytes: int = 0) -> None:
        self._name, self._source, self._number, self._shared_bytes = name, source, number, shared_bytes
        self._code: bytes | None = None
        self._function: Any = None

    def __call__(self, grid: tuple[int, ...], block: tuple[int, ...], arguments: tuple[Any, ...], shared_bytes: int = 0) -> None:
        """Launch it in the current stream."""
        if _thread.rehearsed is None:
            (self._function or self._first())(grid, block, arguments, shared_bytes)
        elif self._function is None:
            _thread.rehearsed[self] = None

    def start(self, grid: tuple[int, int, int], block: tuple[int, int, int], argument: int, shared_bytes: int = 0) -> None:
        """Launch it with one argument, a structure, in half of the time.

        Parameters
        ----------
        grid, block, shared_bytes
        argument : int
            What `pointer_to` gives of the structure, which may change when this returns.
        """
        if _thread.rehearsed is None:
            _launch(self._function or self._first(), grid, block, argument, shared_bytes)
        elif self._function is None:
            _thread.rehearsed[self] = None

    def _first(self) -> Any:
        """CuPy's function, at the first launch. What was compiled before is loaded by itself, and the rest of a work rehearsed."""
        if _thread.ahead is not None and self._code is None:
            self._code = kept_code(self._source(), device(self._number).arch)
            if self._code is None:
                ahead, _thread.ahead = _thread.ahead, None
                rehearse(ahead)
        return self._function or self.load()

    def compile(self) -> bytes:
        """Its machine code."""
        self._code = compile_source(self._source(), device(self._number).arch)
        return self._code

    def load(self) -> Any:
        """Bring it to the GPU, as CuPy's function."""
        import cupy

        module: Any = cupy.cuda.Module()
        module.load(self._code or self.compile())
        function = module.get_function(self._name)
        if self._shared_bytes:
            cast("Any", cupy.cuda.driver).funcSetAttribute(function.ptr, DYNAMIC_SHARED_BYTES, self._shared_bytes)
        self._function, self._code = function, None
        return function


def _launch(function: Any, grid: tuple[int, int, int], block: tuple[int, int, int], argument: int, shared_bytes: int) -> None:
    """Launch CuPy's function in the current stream, with one argument."""
    import cupy

    cupy.cuda.driver.launchKernel(function.ptr, *grid, *block, shared_bytes, cupy.cuda.get_current_stream().ptr, argument, 0)


def pointer_to(fields: np.ndarray[Any, np.dtype[np.int64]]) -> int:
    """The address of a structure's address, which is put into the word before it: the first of `fields`."""
    start = int(address(fields))
    fields[0] = start + fields.itemsize
    return start


def rehearsing() -> bool:
    """Whether nothing is launched by this thread, so that nothing comes to be known of what it computes."""
    return _thread.rehearsed is not None


def rehearse(work: Callable[[], object]) -> None:
    """Compile the kernels that ``work()`` launches side by side, and load them, without launching any.

    NVRTC takes a fraction of a second for each, on one core; one after the other, at their first launches, they would take several.
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


def run(work: Callable[[], _T], rehearsal: Callable[[], object]) -> _T:
    """``work()``, whose result it returns; should a kernel of it have to be compiled, ``rehearse(rehearsal)`` before that is launched.

    Of works within each other the outermost is rehearsed.
    """
    if rehearsing() or _thread.ahead is not None:
        return work()
    _thread.ahead = rehearsal
    try:
        return work()
    finally:
        _thread.ahead = None


def _compile_kernel(kernel: Kernel, slot: int) -> None:
    """The work of a thread in a rehearsal."""
    kernel.compile()
