"""Which device computes: the one that the caller names or whose arrays they are, or the one that is predicted to be faster."""

from __future__ import annotations

from typing import Any

import numpy as np

from semiring.algebra.errors import SemiringError
from semiring.algebra.namespace import on_gpu
from semiring.kernels.devices import gpu_name, gpu_number, gpus, is_gpu, why_no_gpu
from semiring.kernels.prediction import faster_on_gpu
from semiring.kernels.room import fits

__all__ = ["gpu_with_room", "imagined", "place", "several"]


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
    if name not in ("auto", "cpu", "reference") and not is_gpu(name):
        raise SemiringError(f"unknown device {device!r}; use 'auto', 'cpu', 'cuda', 'cuda:0', … or 'reference'")
    there = {v.device.id for v in arrays if on_gpu(v)}
    exact = any(v.dtype.kind == "O" for v in arrays)
    if there:
        if name != "auto" and not is_gpu(name):
            raise SemiringError(f"the array lies on a GPU, which device={name!r} cannot reach; copy it to the host first (CuPy: .get())")
        if len(there) > 1 or (name not in ("auto", "cuda") and gpu_number(name) not in there):
            raise SemiringError(f"the arrays lie on the GPUs {sorted(there)}, and device is {name!r}; bring them to one GPU")
        return gpu_name(*there)
    if is_gpu(name):
        if exact:
            raise SemiringError(f"device={name!r} has no exact arithmetic for object arrays; use device='auto'")
        if gpu_number(name) >= gpus():
            last = f"the last GPU is {gpu_name(gpus() - 1)!r}" if gpus() else f"CuPy finds no GPU ({why_no_gpu()})"
            raise SemiringError(f"there is no device {name!r}: {last}")
        return gpu_name(gpu_number(name))
    if name == "auto" and not exact and faster_on_gpu(steps, sum(v.nbytes for v in arrays), needed):
        return "cuda:0"
    return "reference" if exact or name == "reference" else "cpu"


def imagined(n: int, dtypes: tuple[np.dtype[Any], ...]) -> tuple[Any, ...]:
    """Matrices of the right size, in no memory, to ask where such ones are placed."""
    return tuple(np.broadcast_to(np.empty((), d), (n, n)) for d in dtypes)


def gpu_with_room(device: Any, n: int, dtypes: tuple[np.dtype[Any], ...], needed: int) -> str | None:
    """The GPU that closes matrices of the host, if one does that and has room for `needed` bytes.

    Parameters
    ----------
    device
        As for `place`.
    n : int
        Vertices.
    dtypes : tuple of numpy.dtype
        Of the matrices.
    needed : int

    Raises
    ------
    SemiringError
        As `place`.
    """
    where = place(device, imagined(n, dtypes), float(n) ** 3, needed)
    return where if is_gpu(where) and fits(needed, where) else None


def several(device: Any) -> tuple[str, ...] | None:
    """The GPUs that a device names if it may be more than one: "cuda:all", or a list of names and numbers; else None.

    Raises
    ------
    SemiringError
        Where one of them is no GPU, there is none, or one is named twice.
    """
    if device == "cuda:all":
        names = tuple(map(gpu_name, range(gpus())))
        if not names:
            raise SemiringError(f"there is no GPU for device='cuda:all': CuPy finds none ({why_no_gpu()})")
        return names
    if not isinstance(device, list | tuple):
        return None
    names = tuple(gpu_name(d) if isinstance(d, int) and not isinstance(d, bool) else str(d) for d in device)
    if not names or not all(map(is_gpu, names)) or len(set(map(gpu_number, names))) < len(names):
        raise SemiringError(f"device={device!r}: a list names different GPUs, such as ['cuda:0', 'cuda:1'] or [0, 1]")
    return tuple(place(name, (), 0, 0) for name in names)
