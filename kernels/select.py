"""Which engine computes a semiring in a dtype."""

from __future__ import annotations

from typing import Any

import numpy as np

from semiring.algebra.definition import Semiring
from semiring.algebra.errors import SemiringError
from semiring.kernels.engine import Engine
from semiring.kernels.truth import AND, OR, truth_table

__all__ = ["engine_for", "is_reachability"]


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
    device : {"auto", "cpu", "reference"}
        "auto" takes the reference engine for object arrays and the CPU's generated kernels otherwise.
    threads : int, optional
        How many threads the CPU engine uses; by default ``SEMIRING_NUM_THREADS``, or all cores.
    witness : bool
        Blocks will carry `via`, which bit-packed matrices cannot.
    """
    if device not in ("auto", "cpu", "reference"):
        absent = "this version has no CUDA engine" if str(device).startswith("cuda") else f"unknown device {device!r}"
        raise SemiringError(f"{absent}; use 'auto', 'cpu' or 'reference'")
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
