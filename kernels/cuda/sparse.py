"""Products of compressed rows and dense matrices on a GPU."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import numpy as np

from semiring.algebra.definition import Semiring
from semiring.kernels import cache
from semiring.kernels.compressed import CompressedRows, strange_columns
from semiring.kernels.cuda.arguments import Sparse
from semiring.kernels.cuda.blocks import by_value, of_one_layout
from semiring.kernels.cuda.compiler import Kernel
from semiring.kernels.cuda.elements import read_back, zeros
from semiring.kernels.cuda.representation import represent
from semiring.kernels.cuda.sums import sum_of, summing_source
from semiring.kernels.limits import threshold

__all__ = ["CudaSparseProducts", "SparseForm", "sparse_form", "sparse_source"]

Values = tuple[Any, ...]
DTypes = tuple[np.dtype[Any], ...]

_THREADS, _ROWS = 256, 32
"""Of a thread block; and rows of the product with a matrix that it has."""

_TERMS, _COLUMNS = 4, 2
"""Entries of a row that a lane takes of a product with a vector, about; columns that a thread has of one with a matrix."""


@dataclass(frozen=True)
class SparseForm:
    """Which kernel is generated.

    Attributes
    ----------
    lanes : int
        Threads that share a row.
    matrix : bool
        Whether the dense operand has columns; else it is a vector.
    wide : bool
        Whether numbers of columns have 64 bits.
    swapped : bool
        Whether it has the left factors of ⊗.
    witness : bool
    """

    lanes: int
    matrix: bool
    wide: bool
    swapped: bool
    witness: bool


def sparse_form(rows: int, entries: int, n: int, *, wide: bool, swapped: bool, witness: bool) -> SparseForm:
    """The form of a product with n columns."""
    share = n // _COLUMNS if n > 1 else entries // (_TERMS * max(rows, 1))
    lanes = min(32, 1 << max(share - 1, 0).bit_length())
    return SparseForm(lanes, n > 1, wide, swapped, witness)


def sparse_source(semiring: Semiring, dtypes: DTypes, form: SparseForm) -> str:
    """The CUDA C++ of the kernel ``sparse``."""
    total = sum_of(semiring, dtypes, witness=form.witness)
    index, swapped = "long long" if form.wide else "int", str(form.swapped).lower()
    shape = f"{form.lanes}, {_COLUMNS}, {_ROWS}" if form.matrix else str(form.lanes)
    call = f"multiply_{'matrix' if form.matrix else 'vector'}<Summed, {total}<Summed>, {index}, {shape}, {swapped}>"
    return summing_source(semiring, dtypes, "sparse.cuh", "sparse", call, _THREADS)


class CudaSparseProducts:
    """Products of compressed rows and dense matrices on one GPU, which is the current one.

    Parameters
    ----------
    semiring : Semiring
    dtypes : tuple of numpy.dtype
    number : int
        The GPU.
    """

    def __init__(self, semiring: Semiring, dtypes: DTypes, number: int) -> None:
        self.semiring, self.dtypes, self.number = semiring, dtypes, number
        self._representation = represent(semiring, dtypes)

    def times_dense(self, A: CompressedRows, B: Values, C: Values, via: Any = None, *, swapped: bool = False, signed: bool = False) -> None:
        """C ← A⊗B as of `DenseProducts`.

        Raises
        ------
        GraphError
            For numbers of columns beyond the last.
        """
        r, n, m = self._representation, C[0].shape[1], A.shape[0]
        if 0 in C[0].shape:
            return
        form = sparse_form(m, len(A.columns), n, wide=A.columns.dtype.itemsize == 8, swapped=swapped, witness=via is not None)
        B, strange, starts = of_one_layout(B), zeros(1), A.starts.astype(A.columns.dtype, copy=False)
        product = Sparse(
            _address(starts),
            _address(A.columns),
            tuple(map(_address, A.values)),
            tuple(map(_address, B)),
            tuple(map(_address, C)),
            0 if via is None else _address(via),
            _address(strange),
            m,
            n,
            A.shape[1],
            B[0].strides[0] // B[0].itemsize,
            threshold(int(r.zero[0]), signed=signed) if r.clamped else 0,
        )
        rows = _ROWS if form.matrix else _THREADS // form.lanes
        kernel = _kernel(self.semiring, self.dtypes, form, self.number)
        kernel((-(-m // rows), 1, 1), (_THREADS, 1, 1), (by_value(product),))
        if read_back(strange)[0]:
            raise strange_columns()


def _address(array: Any) -> int:
    """Where an array of CuPy's begins."""
    return int(array.data.ptr)


@functools.lru_cache(maxsize=cache.LOADED)
def _kernel(semiring: Semiring, dtypes: DTypes, form: SparseForm, number: int) -> Kernel:
    """The kernel of a form for a GPU."""
    return Kernel("sparse", lambda: sparse_source(semiring, dtypes, form), number)
