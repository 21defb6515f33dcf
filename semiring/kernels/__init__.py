"""Compiled code: a fast product for each semiring, dtype and device, and the loops of graph algorithms.

An engine offers `multiply_add`, `close` and `eliminate` on blocks of matrices, to which closures reduce. The loops of searches and
eliminations stand in `cpu`.

- `engine` defines the interfaces of engines and scans (a vector through a long product of matrices), and their operands. `select` chooses
  the engine, and other kernels, for a device.
- `reference` computes with NumPy in every dtype, objects included, by `operations`. The other engines are tested against it. `operations`
  also recognizes semirings whose matrices are packed into bits; `cpu` and `cuda` have an engine each for these.
- `cpu` generates LLVM IR for the processor at hand.
- `cuda` generates CUDA C++ for NVIDIA GPUs: templates with the semiring's operations.
- `compressed` defines sparse matrices by compressed rows, their products by NumPy, and the structure and the panels of their elimination;
  `cpu` and `cuda` compile these products and eliminations.
- `tensors` evaluates recorded expressions on tensors of PyTorch and arrays of JAX, for derivatives.
- `modular` reduces products of residues modulo p to products of floats, which `cpu` and `cuda` compute.
- `overflow` refuses computations that could leave their dtype, by value statistics.
- `hardware` describes processors and GPUs; `limits` describes dtypes: their range, and the integers that stand for ±∞.
- `cache` keeps compiled kernels on disk; `machine` has the cost model's constants; `description` names the kernel that would run.
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
    """Return the generated part of a CUDA kernel: the operations as device functions, and the templates' instantiation.

    Examples
    --------
    >>> from semiring import MIN_PLUS
    >>> from semiring.kernels import source
    >>> "__vimin3_s32" in source(MIN_PLUS, "float32")
    True

    Parameters
    ----------
    semiring : Semiring or str
        A semiring, or its name in `semiring.semirings`.
    dtype : dtype
        The dtype of every component.
    kernel : {"product", "product_witness", "close", "close_witness", "eliminate", "add_identity"}
    arch : int
        The compute capability, as in sm_90.
    ordered_bits : bool
        True promises that no element except −∞ is negative, so that floats may be compared as integers.

    Returns
    -------
    str
        Source that includes templates from ``semiring/kernels/cuda``, such as ``product.cuh``. Jupyter shows it folded.
        No GPU is needed.
    """
    from semiring.kernels.cuda.kernels import source as show  # imported late: it imports the whole CUDA engine

    return show(as_semiring(semiring), dtype, kernel=kernel, arch=arch, ordered_bits=ordered_bits)
