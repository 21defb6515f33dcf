"""Which engine computes a semiring in a dtype, and on which device."""

from __future__ import annotations

import functools
import importlib.util
import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from semiring.algebra.definition import Semiring
from semiring.algebra.errors import SemiringError, TooLargeError
from semiring.algebra.laws import is_selective
from semiring.algebra.namespace import on_gpu
from semiring.kernels.engine import Engine
from semiring.kernels.room import fits
from semiring.kernels.streaming.plan import Speed
from semiring.kernels.truth import AND, OR, truth_table

if TYPE_CHECKING:
    from semiring.kernels.cpu.searches import Searches

__all__ = [
    "CPU", "GPU", "device_of", "engine_for", "faster_on_gpu", "gpus",
    "is_reachability", "on_device", "place", "predicted", "searches_for", "seconds_on_gpu", "several",
]  # fmt: skip

CPU, GPU = Speed(5e10, math.inf), Speed(8e12, 1.5e10)
"""What a few cores and a GPU do: rough, as the choice is only wrong where both are close."""

_NOT_SINGLE = {"exp", "expm1", "log", "log1p"}
"""Operations that are generated for vectors only."""

_WHOLE = {"floordiv", "mod"}
"""Operations that are generated for integers only."""

_INSTALL = "pip install 'semiring[cuda13]'"

_GPU_START, _GPU_CALL = 2.0, 3e-3
"""Seconds that CuPy's import, the first kernels and the first copies may take, and what any later call takes."""

_begun: set[str] = set()
"""The GPUs that this process has computed on."""


def place(device: Any, arrays: tuple[Any, ...], steps: float, needed: int) -> str:
    """The device that computes.

    Parameters
    ----------
    device : {"auto", "cpu", "reference", "cuda", "cuda:0", …}
        "auto" keeps arrays of a GPU there, and takes a GPU for others where it has the room and is predicted to be faster, copies
        included, and until this process has computed on one its start and compilation too.
    arrays : tuple of arrays
        The operands.
    steps : float
        How many steps the work takes.
    needed : int
        Bytes that it takes on a GPU, beside arrays that lie there.

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
        if int(number) >= gpus():
            why = _found()[1] or _INSTALL
            raise SemiringError(f"there is no device {name!r}: CuPy finds {gpus()} GPUs ({why})")
        return f"cuda:{int(number)}"
    if name == "auto" and not exact and faster_on_gpu(steps, sum(v.nbytes for v in arrays), needed):
        return "cuda:0"
    return "reference" if exact or name == "reference" else "cpu"


def faster_on_gpu(steps: float, size: int, needed: int) -> bool:
    """Whether there is a GPU with room for `needed` bytes that is predicted to be faster than the CPU on `size` bytes of the host."""
    return predicted(CPU, steps, size) > seconds_on_gpu(steps, size) and gpus() > 0 and fits(needed, "cuda:0")


def seconds_on_gpu(steps: float, size: int) -> float:
    """What work of so many steps is predicted to take on a GPU, with the copies of `size` bytes there and back."""
    return (_GPU_CALL if _begun else _GPU_START) + predicted(GPU, steps, size)


def predicted(speed: Speed, steps: float, size: int) -> float:
    """Seconds of work of so many steps, with the copies of `size` bytes there and back."""
    return 2 * size / speed.link + steps / speed.steps


def several(device: Any) -> tuple[str, ...] | None:
    """The GPUs that a device names if it may be more than one: "cuda:all", or a list of names and numbers; else None.

    Raises
    ------
    SemiringError
        Where one of them is no GPU, there is none, or one is named twice.
    """
    if device == "cuda:all":
        names = tuple(f"cuda:{number}" for number in range(gpus()))
        if not names:
            raise SemiringError(f"there is no GPU for device='cuda:all': CuPy finds none ({_found()[1] or _INSTALL})")
        return names
    if not isinstance(device, list | tuple):
        return None
    names = tuple(f"cuda:{d}" if isinstance(d, int) and not isinstance(d, bool) else "cuda:0" if d == "cuda" else str(d) for d in device)
    if not names or len(set(names)) < len(names) or not all(n.startswith("cuda:") for n in names):
        raise SemiringError(f"device={device!r}: a list names different GPUs, such as ['cuda:0', 'cuda:1'] or [0, 1]")
    return tuple(place(name, (), 0, 0) for name in names)


def device_of(array: Any) -> str:
    """Where an array lies: "cpu", or "cuda:0" and so on."""
    return f"cuda:{array.device.id}" if on_gpu(array) else "cpu"


@contextmanager
def on_device(device: str) -> Iterator[None]:
    """Makes a GPU the current one, for what runs on it.

    Raises
    ------
    TooLargeError
        Where its memory is used up meanwhile.
    """
    if not device.startswith("cuda:"):
        yield
        return
    import cupy

    with cupy.cuda.Device(int(device[5:])):
        try:
            yield
        except cupy.cuda.memory.OutOfMemoryError as error:
            raise TooLargeError(
                f"{device} has not the memory for this: {error}; free some there, pass overwrite=True or a narrower dtype, or compute on "
                f"the host (device='cpu', and arrays that lie there)"
            ) from error


def gpus() -> int:
    """How many GPUs CuPy finds; 0 where there is no CuPy, or none that works."""
    return _found()[0]


@functools.cache
def _found() -> tuple[int, str]:
    """How many GPUs there are, and why there is none if the reason is known."""
    if importlib.util.find_spec("cupy") is None:
        return 0, ""
    try:
        import cupy

        return int(cupy.cuda.runtime.getDeviceCount()), ""
    except Exception as error:  # an installation that does not fit the driver fails in many ways, and nobody asked for a GPU yet
        return 0, str(error).strip().partition("\n")[0]


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
        _begun.add(device)
        if not witness and is_reachability(semiring, dtypes):
            from semiring.kernels.cuda.boolean import CudaBooleanEngine

            return CudaBooleanEngine(semiring, dtypes, int(device[5:]))
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


def searches_for(semiring: Semiring, dtypes: tuple[np.dtype[Any], ...], device: str, threads: int | None = None) -> Searches | None:
    """The generated searches for rows of the closure of a sparse graph, or None where NumPy has to find them.

    Searches select among walks, with operations that single numbers have as instructions.

    Parameters
    ----------
    semiring, dtypes, device, threads
        As for `engine_for`; a device that is no GPU.
    """
    if device == "reference" or any(d.kind == "O" for d in dtypes) or not is_selective(semiring, dtypes):
        return None
    if semiring.program.operations & _NOT_SINGLE or (semiring.program.operations & _WHOLE and any(d.kind == "f" for d in dtypes)):
        return None
    from semiring.kernels.cpu.searches import Searches

    return Searches(semiring, dtypes, threads)
