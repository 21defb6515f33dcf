"""Trees and walks out of a construction matrix that lies on a GPU."""

from __future__ import annotations

from typing import Any

import numpy as np

from semiring.algebra.definition import Semiring

__all__ = ["forest", "walks"]

Array = np.ndarray[Any, Any]


def forest(semiring: Semiring, values: tuple[Any, ...], via: Any, *, backward: bool, circles: int) -> tuple[Any, Array]:
    """The tree of each row, or with `backward` of each column, as `semiring.algorithms.trees` grows them.

    Parameters
    ----------
    semiring : Semiring
    values : tuple of CuPy arrays of shape (…, n, n)
        The closure.
    via : int32 CuPy array of shape (…, n, n)
    backward : bool
    circles : int
        How often only circles are mended before all that is lost is attached again.

    Returns
    -------
    trees : int32 CuPy array of shape (…, n, n)
    remaining : int64 array
        The rows (columns), numbered through all matrices, that are no trees yet because rounding hides where edges tie.
    """
    from semiring.kernels.cuda.trees import forest as on_the_gpu

    return on_the_gpu(semiring, values, via, backward=backward, circles=circles)


def walks(via: Any, sources: Array, targets: Array) -> list[list[int] | None]:
    """The vertices from each source to its target, both included; None where they are more than n + 1, because they go around loops.

    Parameters
    ----------
    via : int32 CuPy array of shape (n, n)
    sources, targets : int arrays of shape (m,)
        Pairs whose element is not zero.
    """
    from semiring.kernels.cuda.walks import walks as on_the_gpu

    return on_the_gpu(via, sources, targets)
