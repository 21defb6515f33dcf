"""Elements between the user's form and the kernels', in one pass over device memory."""

from __future__ import annotations

from typing import Any

import numpy as np

from semiring.kernels.cuda.elements import for_each

__all__ = ["halved", "mend", "restore", "without_paths"]


def halved(values: Any, half: int, *, owned: bool) -> Any:
    """Integers of which nothing is beyond half of ∞: in their place if they are owned."""
    import cupy

    out = values if owned else cupy.empty(values.shape, values.dtype)
    beyond = "x > half" if half > 0 else "x < half"
    for_each(f"y = {beyond} ? half : x", {"x": values, "y": out}, half=int(half))
    return out


def restore(values: Any, via: Any, threshold: int, infinity: int) -> None:
    """Everything at or beyond the threshold is ∞ again, in its place, and no path."""
    beyond = "x >= threshold" if infinity > 0 else "x <= threshold"
    limits = {"threshold": int(threshold), "infinity": int(infinity)}
    if via is None:
        for_each(f"if ({beyond}) x = infinity", {"x": values}, **limits)
    else:
        for_each(f"if ({beyond}) x = infinity, via = -1", {"x": values, "via": via}, **limits)


def without_paths(shape: tuple[int, ...]) -> Any:
    """A construction matrix of −1 everywhere, which needs no kernel."""
    import cupy

    via = cupy.empty(shape, np.int32)
    if via.size:
        via.data.memset_async(0xFF, via.nbytes)
    return via


def mend(values: Any) -> None:
    """0.0 in the place of −0.0, which sorts below −∞ among the integers of their bits."""
    for_each("if (x == int32(0x80000000)) x = 0", {"x": values.view(np.int32)})
