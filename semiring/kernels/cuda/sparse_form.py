"""How a product of compressed rows is made on a GPU: how many threads share a row, and into which tiles rows and entries are cut."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from semiring.algebra.definition import Semiring
from semiring.kernels.cuda.representation import represent
from semiring.kernels.cuda.sums import sum_of, summing_source

__all__ = ["SparseForm", "Tiling", "sparse_form", "sparse_source", "tiling"]

DTypes = tuple[np.dtype[Any], ...]

_VECTOR, _MATRIX, _LEAST = 128, 256, 64
"""Threads of a block of the product with a vector, and with a matrix, and where few rows are a tile."""

_LANES = 32
"""Threads that share a row at most."""

_TERMS = 32
"""Entries of a row that a lane takes of a product with a vector, about."""

_PAIRS = 16
"""Vectors of a row of the dense operand from which on a thread of a product with a matrix has two of them, else one."""

_LINE = 8
"""Vectors of a cache line."""

_SCALARS, _SCALAR_BYTES = 3, 24
"""Columns of a thread, about, and their bytes at most, where they are read one by one."""

_RESIDENT, _LATENT = 8, 4
"""Blocks of a product with a matrix that a multiprocessor has at a time; and where a thread has more than 16 bytes of columns, or a row for
itself, and needs registers for more rows of the dense operand on their way."""

_BYTES, _ITEMS = 30 << 10, {False: 2048, True: 1792}
"""Bytes of a tile's entries at most; and rows and entries together that a tile has about, where rows are short, times a matrix or not."""

_EIGHTH = 8
"""A row of a tile's entries by this is not cut."""


@dataclass(frozen=True)
class SparseForm:
    """Which kernel is generated.

    Attributes
    ----------
    lanes : int
        Threads that share a row.
    columns : int
        Of a thread.
    width : int
        How many of them are read at once.
    matrix : bool
        Whether the dense operand has columns; else it is a vector.
    mixed : bool
        Whether rows would meet each other in few banks of shared memory.
    wide : bool
        Whether numbers of columns have 64 bits.
    swapped : bool
        Whether it has the left factors of ⊗.
    witness, checked : bool
    """

    lanes: int
    columns: int
    width: int
    matrix: bool
    mixed: bool
    wide: bool
    swapped: bool
    witness: bool
    checked: bool


@dataclass(frozen=True)
class Tiling:
    """How rows and entries are cut into tiles.

    Attributes
    ----------
    threads : int
        Of the block that has a tile.
    items : int
        Rows and entries together.
    longest : int
        Entries of a row that is not cut.
    tiles : int
    """

    threads: int
    items: int
    longest: int
    tiles: int


def sparse_form(
    rows: int, entries: int, n: int, *, width: int = 1, size: int = 4, wide: bool, swapped: bool, witness: bool, checked: bool = False
) -> SparseForm:
    """The form of a product with n columns, of which `width`, of some `size` each, are read at once."""
    if n > 1:
        lanes, columns = _shared(n, width, size)
    else:
        lanes, columns = min(_LANES, 1 << max(entries // (_TERMS * rows) - 1, 0).bit_length()), 1
    return SparseForm(lanes, columns, width, n > 1, round(entries / rows) % 8 == 0, wide, swapped, witness, checked)


def _shared(n: int, width: int, size: int) -> tuple[int, int]:
    """The lanes that share a row of n columns, or a slice of it, and the columns of each.

    Rows of whole cache lines are taken line by line, so that the second-level cache has more rows; others in as few slices as can be.
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
        lanes = min(_LANES, 1 << (-(-n // (slices * each)) - 1).bit_length())  # so that what they read lies in few lines of the cache
    return lanes, width * -(-vectors // (slices * lanes))


def tiling(form: SparseForm, rows: int, entries: int, entry_bytes: int) -> Tiling:
    """The tiles: as many rows as groups of lanes, or several times as many where these are short."""
    each, most = entries / rows + 1, _BYTES // entry_bytes
    threads = _MATRIX if form.matrix else _VECTOR
    while threads > _LEAST and threads // form.lanes * each > (min(most, _ITEMS[True] * 9 // 8) if form.matrix else most):
        threads //= 2
    groups = threads // form.lanes
    turns = max(1, round(_ITEMS[form.matrix] / (groups * each)))
    wanted = int(turns * groups * each * 31 / 32)  # as rows differ, and another turn of some groups takes as long as one of all
    items = max(min(wanted, most), form.lanes, _LEAST)
    return Tiling(threads, items, items // _EIGHTH, -(-(rows + entries) // items))


def sparse_source(semiring: Semiring, dtypes: DTypes, form: SparseForm) -> str:
    """The CUDA C++ of the kernel ``sparse``."""
    total = sum_of(semiring, dtypes, witness=form.witness)
    swapped, checked, mixed, matrix = (str(x).lower() for x in (form.swapped, form.checked, form.mixed, form.matrix))
    how = f"Form<Summed, {total}<Summed>, {'long long' if form.wide else 'int'}, {swapped}, {checked}, {mixed}>"
    call = f"sparse_product<{how}, {form.lanes}, {form.columns}, {form.width}, {matrix}>"
    threads, blocks = _MATRIX if form.matrix else _VECTOR, resident(semiring, dtypes, form)
    return summing_source(semiring, dtypes, "sparse.cuh", "sparse", call, threads, blocks=blocks)


def resident(semiring: Semiring, dtypes: DTypes, form: SparseForm) -> int:
    """Blocks that a multiprocessor has at a time at least."""
    r = represent(semiring, dtypes)
    if not form.matrix or form.witness or form.wide or r.has_series or r.is_heavy(witness=False):
        return 1
    return _LATENT if form.lanes == 1 or form.columns * r.size > 16 else _RESIDENT
