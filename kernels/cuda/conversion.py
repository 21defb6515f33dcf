"""Elements between the user's form and the kernels', in one pass over device memory."""

from __future__ import annotations

from typing import Any

import numpy as np

from semiring.kernels.cuda.elements import for_each
from semiring.kernels.cuda.loading import rehearsing

__all__ = ["clear_paths", "halved", "mend", "restore", "without_paths", "zeros"]


def halved(values: Any, half: int, *, owned: bool, signs: Any = None) -> Any:
    """Integers of which nothing is beyond half of ∞: in their place if they are owned.

    Parameters
    ----------
    values : array
    half : int
    owned : bool
    signs : int32 array of one number, optional
        Becomes 1 if a finite element could pull a sum with ∞ back from it.
    """
    import cupy

    out = values if owned else cupy.empty(values.shape, values.dtype)
    beyond, against = ("x > half", "x < 0") if half > 0 else ("x < half", "x > 0")
    told = {} if signs is None else {"signs": signs.data.ptr}
    tell = f"if ({against}) *reinterpret_cast<int32*>(signs) = 1; " if told else ""
    for_each(f"{tell}y = {beyond} ? half : x", {"x": values, "y": out}, half=int(half), **told)
    return out


def restore(values: Any, via: Any, least: int, signed: int, infinity: int, signs: Any = None) -> None:
    """Everything at or beyond a threshold is ∞ again, in its place, and no path.

    Parameters
    ----------
    values : array
    via : int32 array or None
    least, signed : int
        The threshold, and the one that counts where `signs`, as `halved` has found them, are 1.
    infinity : int
    signs : int32 array of one number, optional
    """
    limits = {"threshold": int(least), "infinity": int(infinity)}
    threshold = "threshold"
    if signs is not None:
        limits |= {"signed_threshold": int(signed), "signs": signs.data.ptr}
        threshold = "(*reinterpret_cast<const int32*>(signs) ? signed_threshold : threshold)"
    beyond = f"x >= {threshold}" if infinity > 0 else f"x <= {threshold}"
    if via is None:
        for_each(f"if ({beyond}) x = infinity", {"x": values}, **limits)
    else:
        for_each(f"if ({beyond}) x = infinity, via = -1", {"x": values, "via": via}, **limits)


def without_paths(shape: tuple[int, ...]) -> Any:
    """A construction matrix of −1 everywhere, which needs no kernel."""
    import cupy

    via = cupy.empty(shape, np.int32)
    if via.size:
        clear_paths(via.data.ptr, via.size)
    return via


def clear_paths(address: int, count: int) -> None:
    """−1 in so many int32 numbers, which needs no kernel."""
    import cupy

    if not rehearsing():
        cupy.cuda.runtime.memsetAsync(address, 0xFF, 4 * count, cupy.cuda.get_current_stream().ptr)


def zeros(count: int) -> Any:
    """So many int32 numbers 0."""
    import cupy

    found = cupy.ndarray(count, np.int32)
    found.data.memset_async(0, found.nbytes)
    return found


def mend(values: Any) -> None:
    """0.0 in the place of −0.0, which sorts below −∞ among the integers of their bits."""
    for_each("if (x == int32(0x80000000)) x = 0", {"x": values.view(np.int32)})
