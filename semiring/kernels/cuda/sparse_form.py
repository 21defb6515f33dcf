"""The form of sparse products on a GPU: the threads that share a row, and the tiles of rows and entries."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from semiring.algebra.definition import Semiring
from semiring.kernels.cuda.representation import represent
from semiring.kernels.cuda.sums import sum_of, summing_source

__all__ = ["SparseForm", "Tiling", "sparse_form", "sparse_source", "tiling"]

DTypes = tuple[np.dtype[Any], ...]

_VECTOR, _MATRIX, _LEAST = 128, 256, 64  # threads per block: times a vector, times a matrix, and where few rows make a tile
_LANES = 32  # the most threads that share a row
_TERMS = 32  # about how many entries of a row a lane multiplies by a vector
_PAIRS = 16  # from so many vectors per dense row on, a thread has two of them
_LINE = 8  # vectors in a cache line
_SCALARS, _SCALAR_BYTES = 3, 24  # about the columns per thread, and the most bytes, when columns are read one by one

_RESIDENT, _LATENT = 8, 4
"""Resident blocks per multiprocessor in a product with a matrix. The lower number is for threads with more than 16 bytes of columns or with
a row each: more prefetched rows of the dense operand take more registers."""

_BYTES, _ITEMS = 30 << 10, {False: 2048, True: 1792}
"""The most bytes of a tile's entries; and about the rows and entries of a tile of short rows, by whether the operand is a matrix."""

_EIGHTH = 8  # rows with at most this fraction of a tile's items are not cut


@dataclass(frozen=True)
class SparseForm:
    """The template arguments of a generated kernel."""

    lanes: int  # threads that share a row
    columns: int  # per thread
    width: int  # columns that are read at once
    matrix: bool  # the dense operand has columns; else it is a vector
    mixed: bool  # swizzle shared memory, against bank conflicts between rows
    wide: bool  # column numbers have 64 bits
    swapped: bool  # entries are the right factors of ⊗
    witness: bool
    checked: bool


@dataclass(frozen=True)
class Tiling:
    """The tiles of rows and entries."""

    threads: int  # of a tile's block
    items: int  # rows and entries together
    longest: int  # entries of the longest row that is not cut
    tiles: int


def sparse_form(
    rows: int, entries: int, n: int, *, width: int = 1, size: int = 4, wide: bool, swapped: bool, witness: bool, checked: bool = False
) -> SparseForm:
    """Return the form of a product with n columns, read `width` at a time, of elements of `size` bytes."""
    if n > 1:
        lanes, columns = _shared(n, width, size)
    else:
        lanes, columns = min(_LANES, 1 << max(entries // (_TERMS * rows) - 1, 0).bit_length()), 1
    return SparseForm(lanes, columns, width, n > 1, round(entries / rows) % 8 == 0, wide, swapped, witness, checked)


def _shared(n: int, width: int, size: int) -> tuple[int, int]:
    """Return the lanes that share a row of n columns, or a slice, and the columns of each.

    Rows of whole cache lines are taken line by line, so that the second-level cache holds more rows; other rows in as few slices as
    possible.
    """
    vectors = -(-n // width)
    if width > 1 and vectors % _LINE == 0:
        return _LINE, width
    if width > 1:
        each = 1 + (vectors >= _PAIRS)
        slices = -(-vectors // (_LANES * each))
        lanes = -(-vectors // (slices * each))
    else:
        most = max(2, _SCALAR_BYTES // size)
        slices = -(-n // (_LANES * most))
        each = min(_SCALARS, most)
        lanes = min(_LANES, 1 << (-(-n // (slices * each)) - 1).bit_length())  # few cache lines for the reads of all lanes
    return lanes, width * -(-vectors // (slices * lanes))


def tiling(form: SparseForm, rows: int, entries: int, entry_bytes: int) -> Tiling:
    """Return tiles with as many rows as groups of lanes, or several times as many if rows are short."""
    each, most = entries / rows + 1, _BYTES // entry_bytes
    threads = _MATRIX if form.matrix else _VECTOR
    while threads > _LEAST and threads // form.lanes * each > (min(most, _ITEMS[True] * 9 // 8) if form.matrix else most):
        threads //= 2
    groups = threads // form.lanes
    turns = max(1, round(_ITEMS[form.matrix] / (groups * each)))
    wanted = int(turns * groups * each * 31 / 32)  # rows vary, and another turn of few groups takes as long as a full one
    items = max(min(wanted, most), form.lanes, _LEAST)
    return Tiling(threads, items, items // _EIGHTH, -(-(rows + entries) // items))


def sparse_source(semiring: Semiring, dtypes: DTypes, form: SparseForm) -> str:
    """Return the CUDA C++ of the kernel ``sparse``."""
    total = sum_of(semiring, dtypes, witness=form.witness)
    swapped, checked, mixed, matrix = (str(x).lower() for x in (form.swapped, form.checked, form.mixed, form.matrix))
    how = f"Form<Summed, {total}<Summed>, {'long long' if form.wide else 'int'}, {swapped}, {checked}, {mixed}>"
    call = f"sparse_product<{how}, {form.lanes}, {form.columns}, {form.width}, {matrix}>"
    threads, blocks = _MATRIX if form.matrix else _VECTOR, resident(semiring, dtypes, form)
    return summing_source(semiring, dtypes, "sparse.cuh", "sparse", call, threads, blocks=blocks)


def resident(semiring: Semiring, dtypes: DTypes, form: SparseForm) -> int:
    """Return the least number of resident blocks per multiprocessor."""
    r = represent(semiring, dtypes)
    if not form.matrix or form.witness or form.wide or r.has_series or r.is_heavy(witness=False):
        return 1
    return _LATENT if form.lanes == 1 or form.columns * r.size > 16 else _RESIDENT
