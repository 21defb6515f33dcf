"""CUDA C++ to machine code with NVRTC, which needs no GPU, through a cache on disk.

CuPy's own way to compile a string always adds ``-ftz=true``, which makes 0 of subnormal weights, and its cache does not see the headers.
"""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

from semiring.algebra.errors import SemiringError
from semiring.kernels import cache

__all__ = ["OPTIONS", "compile_source", "headers", "kept_code"]

OPTIONS = ("--std=c++17", "--fmad=false", "--ftz=false", "--prec-div=true", "--prec-sqrt=true")
"""Sums are not fused with products unless the table of steps says so: a path's weight must not depend on how it was found."""


@functools.cache
def headers() -> dict[str, str]:
    """The templates beside this file, by name."""
    return {path.name: path.read_text(encoding="utf-8") for path in sorted(Path(__file__).parent.glob("*.cuh"))}


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
    return *OPTIONS, f"--gpu-architecture=sm_{arch}"


def _identity(source: str, arch: int) -> str:
    """Everything that the code depends on."""
    return "\n".join((source, *headers().values(), *_options(arch), str(_nvrtc().getVersion())))


def _compile(source: str, options: tuple[str, ...]) -> bytes:
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
