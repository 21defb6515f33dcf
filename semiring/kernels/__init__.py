"""One semiring → one fast product on each engine. Knows no graph.

An engine has a semiring in its dtypes on one device, and offers `multiply_add`, `close` and `eliminate` on blocks of matrices; the
algorithms are written with these alone.

- `engine` is what every engine offers, and the blocks it works on; `select` says which engine computes what, and is where algorithms get
  one.
- `reference`: NumPy, for every dtype, objects included, with the operations of `operations`. It defines what the others are tested against.
- `cpu`: LLVM IR, generated for the processor at hand.
- `cuda`: CUDA C++ templates with the semiring's operations generated into them, for NVIDIA GPUs.
- `compressed` has sparse matrices by compressed rows, what products of these are, and these by NumPy; `cpu` generates them.
- `scans` has what a scan is asked of: a vector through a long product of matrices, for which `cpu` and `cuda` have loops of their own.
- `supernodes` has the structure and the panels of a sparse elimination, for `cpu` and `cuda`.
- `boolean` tells when matrices are packed into bits, for which `cpu` and `cuda` have an engine each.
- `overflow` checks what integers and floats cannot hold, by value statistics, which tell whether that can happen.
- `hardware` has the processors and GPUs that kernels are generated for; `limits` what a dtype holds, and which integers stand for ±∞.
- `cache` keeps compiled kernels on disk; `machine` has what everything costs; `description` tells what an engine would run.
"""

from __future__ import annotations

from typing import Any

from semiring.algebra.catalogue import as_semiring
from semiring.algebra.definition import Semiring
from semiring.common.errors import raised_here
from semiring.common.html import Code
from semiring.kernels.engine import Block, Engine
from semiring.kernels.select import engine_for

__all__ = ["Block", "Engine", "engine_for", "source"]


@raised_here
def source(semiring: Semiring | str, dtype: Any, *, kernel: str = "product", arch: int = 90, ordered_bits: bool = True) -> Code:
    """The generated part of a CUDA kernel: the semiring's operations as device functions, and the templates' instantiation.

    Examples
    --------
    >>> from semiring import MIN_PLUS
    >>> from semiring.kernels import source
    >>> "__vimin3_s32" in source(MIN_PLUS, "float32")
    True

    Parameters
    ----------
    semiring : Semiring or str
        The name of one in `semiring.semirings` will do.
    dtype : dtype
        Of every component.
    kernel : {"product", "product_witness", "close", "close_witness", "eliminate", "add_identity"}
    arch : int
        The compute capability, as in sm_90.
    ordered_bits : bool
        No element is negative but −∞, so that floats may be compared as integers.

    Returns
    -------
    str
        It includes templates such as ``product.cuh`` and ``pivot.cuh``, which lie in ``semiring/kernels/cuda``. Jupyter shows it folded.
        No GPU is needed.
    """
    from semiring.kernels.cuda.kernels import source as show  # only where it is wanted: it imports all of the CUDA engine

    return show(as_semiring(semiring), dtype, kernel=kernel, arch=arch, ordered_bits=ordered_bits)
