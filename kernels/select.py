"""Which engine computes a semiring in a dtype."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from semiring.algebra.definition import Semiring
from semiring.algebra.forks import importing
from semiring.algebra.laws import is_selective
from semiring.kernels.devices import gpu_number, is_gpu
from semiring.kernels.engine import Engine
from semiring.kernels.machine import begun
from semiring.kernels.truth import is_packed

if TYPE_CHECKING:
    from semiring.kernels.cpu.searches import Searches

__all__ = ["engine_for", "has_searches", "searches_for"]

_NOT_SINGLE = {"exp", "expm1", "log", "log1p"}
"""Operations that are generated for vectors only."""

_WHOLE = {"floordiv", "mod"}
"""Operations that are generated for integers only."""


def engine_for(
    semiring: Semiring,
    dtypes: tuple[np.dtype[Any], ...],
    device: str = "auto",
    threads: int | None = None,
    *,
    witness: bool = False,
) -> Engine:
    """The engine for matrices over `semiring` whose components have `dtypes`.

    Parameters
    ----------
    semiring : Semiring
    dtypes : tuple of numpy.dtype
    device : str
        What `place` gives: "reference", "cpu", or "cuda:0" and so on. "auto" takes the reference engine for object arrays and the CPU's
        generated kernels otherwise.
    threads : int, optional
        How many threads the CPU engine uses; by default ``SEMIRING_NUM_THREADS``, or all cores.
    witness : bool
        Blocks will carry `via`, which bit-packed matrices cannot.
    """
    if is_gpu(device):
        begun.add(device)
        if is_packed(semiring, dtypes, witness=witness):
            with importing:
                from semiring.kernels.cuda.boolean import CudaBooleanEngine

            return CudaBooleanEngine(semiring, dtypes, gpu_number(device))
        with importing:
            from semiring.kernels.cuda.engine import CudaEngine

        return CudaEngine(semiring, dtypes, gpu_number(device))
    if device == "reference" or any(d.kind == "O" for d in dtypes):
        with importing:
            from semiring.kernels.reference.engine import ReferenceEngine

        return ReferenceEngine(semiring, dtypes)
    if is_packed(semiring, dtypes, witness=witness):
        with importing:
            from semiring.kernels.cpu.packed import BooleanEngine

        return BooleanEngine(semiring, dtypes, threads)
    with importing:
        from semiring.kernels.cpu.engine import CpuEngine

    return CpuEngine(semiring, dtypes, threads)


def searches_for(semiring: Semiring, dtypes: tuple[np.dtype[Any], ...], device: str, threads: int | None = None) -> Searches | None:
    """The generated searches for rows of the closure of a sparse graph, or None where NumPy has to find them.

    Parameters
    ----------
    semiring, dtypes, device, threads
        As for `engine_for`; a device that is no GPU.
    """
    if not has_searches(semiring, dtypes, device):
        return None
    with importing:
        from semiring.kernels.cpu.searches import Searches

    return Searches(semiring, dtypes, threads)


def has_searches(semiring: Semiring, dtypes: tuple[np.dtype[Any], ...], device: str = "cpu") -> bool:
    """Whether there are generated searches: they select among walks, with operations that single numbers have as instructions."""
    if device == "reference" or any(d.kind == "O" for d in dtypes) or not is_selective(semiring, dtypes):
        return False
    used = semiring.program.operations
    return not (used & _NOT_SINGLE or (used & _WHOLE and any(d.kind == "f" for d in dtypes)))
