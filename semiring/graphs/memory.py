"""Refusing, before anything is allocated, a dense matrix that cannot fit."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from semiring.algebra.errors import TooLargeError
from semiring.kernels.devices import is_gpu
from semiring.kernels.room import ALWAYS_FITS, fits, format_bytes, free_on, with_scratch

__all__ = ["entry_bytes", "require_memory"]

_VIA_BYTES = np.dtype(np.int32).itemsize


def entry_bytes(dtypes: Sequence[np.dtype[Any]], *, via: bool) -> int:
    """Bytes of one entry of a matrix, of all components and, with `via`, of the construction matrix."""
    return sum(d.itemsize for d in dtypes) + _VIA_BYTES * via


def require_memory(
    n: int,
    dtypes: Sequence[np.dtype[Any]],
    *,
    via: bool = False,
    batch: tuple[int, ...] = (),
    device: str = "cpu",
    overwriting_helps: bool = False,
) -> None:
    """Refuse a dense matrix that does not fit the available memory.

    Parameters
    ----------
    n : int
        Vertices.
    dtypes : sequence of numpy.dtype
        One for each component; none where the matrix itself needs no new memory.
    via : bool
        Whether the construction matrix (int32) comes along.
    batch : tuple of int
        Leading axes.
    device : str
        Whose memory: "cpu", or "cuda:0" and so on.
    overwriting_helps : bool
        Whether the matrix itself would need no new memory with ``overwrite=True``.

    Raises
    ------
    TooLargeError
        Naming the size, the available memory and what would work.
    """
    entries = math.prod(batch) * n * n
    itemsize, without = (entry_bytes(dtypes, via=some) for some in (via, False))
    needed = entries * itemsize
    if needed <= ALWAYS_FITS:
        return
    gpu = is_gpu(device)
    if gpu:
        needed = with_scratch(needed)
    if fits(needed, device):
        return
    free = free_on(device) or 0
    single = sum(min(d.itemsize, 4) for d in dtypes)
    candidates = {"dtype=float32 or int32": single + itemsize - without, "no paths": without, "dtype=float32 or int32 and no paths": single}
    if overwriting_helps and dtypes:
        candidates = {"overwrite=True": itemsize - without, **candidates, "overwrite=True and no paths": 0}
    taken = {how: with_scratch(entries * size) if gpu else entries * size for how, size in candidates.items() if size < itemsize}
    fitting = {how: size for how, size in taken.items() if size <= free}
    remedies = [f"{how} ({format_bytes(size)})" for how, size in list(fitting.items())[:1]]
    if gpu:
        remedies.append("the memory of the host (device='cpu', and an array that lies there)")
    remedies += [
        "one connected component at a time (scipy.sparse.csgraph.connected_components)",
        "some rows at a time (sources=…), which leaves a sparse graph sparse",
    ]
    if not gpu and not batch:
        remedies.append("for a matrix in a file (numpy.memmap, Zarr), checkpoint=folder, where the result is a file too")
    what = f"{' × '.join(map(str, batch))} dense matrices" if batch else "a dense matrix"
    kinds = " and ".join(dict.fromkeys(map(str, dtypes)))
    of = f" of {kinds}" if kinds else ""
    with_paths = " with the construction matrix of its paths" if via else ""
    raise TooLargeError(
        f"{what} of {n:,} × {n:,} entries{of}{with_paths} would take {format_bytes(needed)}, but {format_bytes(free)} of memory are "
        f"available{f' on {device}' if gpu else ''}; what would work: {'; '.join(remedies)}"
    )
