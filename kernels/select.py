"""Which engine computes a semiring in a dtype, and on which device."""

from __future__ import annotations

import contextlib
import importlib.util
from typing import Any

import numpy as np

from semiring.algebra.definition import Semiring
from semiring.algebra.errors import SemiringError
from semiring.algebra.namespace import on_gpu
from semiring.kernels.engine import Engine
from semiring.kernels.truth import AND, OR, truth_table

__all__ = ["engine_for", "is_reachability", "on_device", "place"]


_CPU_RATE, _GPU_RATE, _LINK = 5e10, 8e12, 6e9
"""Steps a second of a few cores and of a GPU, and bytes a second between them: rough, as the choice is only wrong where both are close."""

_GPU_START = 2.0
"""Seconds that CuPy's import, the first kernels and the first copies may take."""


def place(device: Any, arrays: tuple[Any, ...], steps: float) -> str:
    """The device that computes.

    Parameters
    ----------
    device : {"auto", "cpu", "reference", "cuda", "cuda:0", …}
        "auto" keeps arrays of a GPU there, and takes a GPU for others where copies and compilation included it is predicted to be faster.
    arrays : tuple of arrays
        The operands.
    steps : float
        How many steps the work takes.

    Returns
    -------
    str
        "reference", "cpu", or "cuda:0" and so on.

    Raises
    ------
    SemiringError
        For an unknown or absent device, or one that cannot reach the arrays.
    """
    name = str(device)
    number = name[5:] if name.startswith("cuda:") else "0" if name == "cuda" else None
    if name not in ("auto", "cpu", "reference") and (number is None or not number.isdigit()):
        raise SemiringError(f"unknown device {device!r}; use 'auto', 'cpu', 'cuda', 'cuda:0', … or 'reference'")
    there = [v.device.id for v in arrays if on_gpu(v)]
    exact = any(v.dtype.kind == "O" for v in arrays)
    if there:
        if number is None and name != "auto":
            raise SemiringError(f"the array lies on a GPU, which device={name!r} cannot reach; copy it to the host first (CuPy: .get())")
        if len(set(there)) > 1 or (name.startswith("cuda:") and int(name[5:]) != there[0]):
            raise SemiringError(f"the arrays lie on the GPUs {sorted(set(there))}, and device is {name!r}; bring them to one GPU")
        return f"cuda:{there[0]}"
    if number is not None:
        if exact:
            raise SemiringError(f"device={name!r} has no exact arithmetic for object arrays; use device='auto'")
        if int(number) >= _gpus():
            raise SemiringError(f"there is no device {name!r}: CuPy finds {_gpus()} GPUs (pip install 'semiring[cuda13]')")
        return f"cuda:{number}"
    if name == "auto" and not exact:
        size = sum(v.nbytes for v in arrays)
        if steps / _CPU_RATE > _GPU_START + 2 * size / _LINK + steps / _GPU_RATE and _gpus():
            return "cuda:0"
    return "reference" if exact or name == "reference" else "cpu"


def on_device(device: str) -> contextlib.AbstractContextManager[Any]:
    """Makes a GPU the current one, for what runs on it."""
    if not device.startswith("cuda:"):
        return contextlib.nullcontext()
    import cupy

    context: contextlib.AbstractContextManager[Any] = cupy.cuda.Device(int(device[5:]))
    return context


def _gpus() -> int:
    """How many GPUs CuPy finds; 0 without CuPy."""
    if importlib.util.find_spec("cupy") is None:
        return 0
    import cupy

    try:
        return int(cupy.cuda.runtime.getDeviceCount())
    except cupy.cuda.runtime.CUDARuntimeError:
        return 0


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
    if device.startswith("cuda:"):
        from semiring.kernels.cuda.engine import CudaEngine

        return CudaEngine(semiring, dtypes, int(device[5:]))
    if device == "reference" or any(d.kind == "O" for d in dtypes):
        from semiring.kernels.reference.engine import ReferenceEngine

        return ReferenceEngine(semiring, dtypes)
    if not witness and is_reachability(semiring, dtypes):
        from semiring.kernels.cpu.packed import BooleanEngine

        return BooleanEngine(semiring, dtypes, threads)
    from semiring.kernels.cpu.engine import CpuEngine

    return CpuEngine(semiring, dtypes, threads)


def is_reachability(semiring: Semiring, dtypes: tuple[np.dtype[Any], ...]) -> bool:
    """Whether a ⊕ b is "a or b" and a ⊗ b is "a and b" on truth values, whatever the semiring is called."""
    return dtypes == (np.dtype(bool),) and truth_table(semiring.add) == OR and truth_table(semiring.mul) == AND
