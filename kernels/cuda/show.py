"""The CUDA C++ that runs, for whoever wants to read it."""

from __future__ import annotations

from typing import Any

import numpy as np

from semiring.algebra.definition import Semiring
from semiring.algebra.html import Code
from semiring.kernels.cuda import bits
from semiring.kernels.cuda.kernels import kernel_source, problem_for, reads_vectors, step_for
from semiring.kernels.cuda.representation import represent
from semiring.kernels.cuda.tile import candidates
from semiring.kernels.truth import is_reachability

__all__ = ["source"]


def source(semiring: Semiring, dtype: Any, *, kernel: str, arch: int, ordered_bits: bool) -> Code:
    """See `semiring.kernels.source`."""
    dtypes = semiring.dtypes([np.dtype(dtype)] * semiring.components)
    heading = f"CUDA C++ of {kernel} over {semiring.name} in {', '.join(map(str, dtypes))} for sm_{arch}"
    if is_reachability(semiring, dtypes) and kernel in ("product", "close", "add_identity"):
        return Code(bits.bits_source(kernel, bits.candidates(arch)[0], bits.PIVOT // 32), heading)
    r = represent(semiring, dtypes)
    step = step_for(r, arch, ordered_bits=ordered_bits and r.keeps_bits_ordered, pairs=kernel == "product")
    light = reads_vectors(r, step)
    tile = candidates(problem_for(r, step, (1, 1, 1, 1), witness=kernel == "product_witness", light=light))[0]
    access = ("vectors", "vectors") if light else ("rows", "rows")
    return Code(kernel_source(r, step, kernel, tile if kernel.startswith("product") else None, access), heading)
