"""Which devices compute: the one that the caller names or whose arrays they are, several that share a matrix, or the predicted fastest."""

from __future__ import annotations

from typing import Any

from semiring.algebra.errors import SemiringError
from semiring.kernels.devices import gpu_name, gpu_number, gpus, is_gpu, why_no_gpu

__all__ = ["named_device", "several"]


def named_device(device: Any, place: str, *, exact: bool) -> str | None:
    """The one device that computes, where nothing is to be predicted; None where "auto" leaves it open.

    Parameters
    ----------
    device : {"auto", "cpu", "reference", "cuda", "cuda:0", …}
        "auto" keeps arrays of a GPU there.
    place : str
        Where the operands lie: "cpu", "disk", or "cuda:0" and so on.
    exact : bool
        Whether elements are Python's own numbers.

    Raises
    ------
    SemiringError
        For an unknown or absent device, or one that cannot reach the arrays.
    """
    name = str(device)
    if name not in ("auto", "cpu", "reference") and not is_gpu(name):
        raise SemiringError(f"unknown device {device!r}; use 'auto', 'cpu', 'cuda', 'cuda:0', … or 'reference'")
    if is_gpu(place):
        if name != "auto" and not is_gpu(name):
            raise SemiringError(f"the array lies on a GPU, which device={name!r} cannot reach; copy it to the host first (CuPy: .get())")
        if name not in ("auto", "cuda") and gpu_number(name) != gpu_number(place):
            raise SemiringError(f"the arrays lie on the GPUs {[gpu_number(place)]}, and device is {name!r}; bring them to one GPU")
        return place
    if is_gpu(name):
        if exact:
            raise SemiringError(f"device={name!r} has no exact arithmetic for object arrays; use device='auto'")
        if gpu_number(name) >= gpus():
            last = f"the last GPU is {gpu_name(gpus() - 1)!r}" if gpus() else f"CuPy finds no GPU ({why_no_gpu()})"
            raise SemiringError(f"there is no device {name!r}: {last}")
        return gpu_name(gpu_number(name))
    if exact or name == "reference":
        return "reference"
    return "cpu" if name == "cpu" or not gpus() else None


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
    return tuple(named_device(name, "cpu", exact=False) or name for name in names)
