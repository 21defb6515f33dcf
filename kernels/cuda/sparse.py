"""Products of compressed rows on a GPU: how many threads share a row, and into which tiles the entries are cut."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import numpy as np

from semiring.algebra.definition import Semiring
from semiring.kernels import cache
from semiring.kernels.compressed import CompressedRows, Mask, Room, strange_columns
from semiring.kernels.cuda.arguments import Bounds, Sparse, flat
from semiring.kernels.cuda.blocks import of_one_layout
from semiring.kernels.cuda.compiler import Kernel
from semiring.kernels.cuda.elements import read_back, zeros
from semiring.kernels.cuda.expansion import expanded_product
from semiring.kernels.cuda.representation import represent
from semiring.kernels.cuda.shapes import bounds_of
from semiring.kernels.cuda.sums import size_of_sum, sum_of, summing_source
from semiring.kernels.limits import SafeRange, threshold

__all__ = ["CudaSparseProducts", "SparseForm", "sparse_form", "sparse_source"]

Values = tuple[Any, ...]
DTypes = tuple[np.dtype[Any], ...]

_VECTOR, _MATRIX, _LEAST = 128, 256, 64
"""Threads of a block of the product with a vector, and with a matrix, and where few rows are a tile."""

_TERMS = 32
"""Entries of a row that a lane takes of a product with a vector, about."""

_VECTORS = 2
"""Vectors of columns, or columns where there are no vectors, that a thread has of a product with a matrix."""

_BYTES, _ITEMS = 30 << 10, {False: 2048, True: 1792}
"""Bytes of a tile's entries at most; and rows and entries together that a tile has about, where rows are short, times a matrix or not."""

_CUT, _MULTIPLY, _JOIN = range(3)
"""The phases of a launch."""

_PHASE = Sparse._fields.index("phase") - len(Sparse._fields) - len(Bounds._fields) + 1
"""The place of the word that has it, seen from the end."""

_EIGHTH = 8
"""A row of a tile's entries by this is not cut."""

_NO_BOUNDS = Bounds(0, 0, 0, 0, 0)
"""Of a launch that compares nothing with them."""


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
    rows: int, entries: int, n: int, *, width: int = 1, wide: bool, swapped: bool, witness: bool, checked: bool = False
) -> SparseForm:
    """The form of a product with n columns, of which `width` are read at once."""
    columns = width * min(_VECTORS, n // width)
    share = n // columns if n > 1 else entries // (_TERMS * rows)
    lanes = min(32, 1 << max(share - 1, 0).bit_length())
    return SparseForm(lanes, columns, width, n > 1, round(entries / rows) % 8 == 0, wide, swapped, witness, checked)


def tiling(form: SparseForm, rows: int, entries: int, entry_bytes: int) -> Tiling:
    """The tiles: as many rows as groups of lanes, or several times as many where these are short."""
    each, most = entries / rows + 1, _BYTES // entry_bytes
    threads = _MATRIX if form.matrix else _VECTOR
    while threads > _LEAST and threads // form.lanes * each > most:
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
    return summing_source(semiring, dtypes, "sparse.cuh", "sparse", call, _MATRIX if form.matrix else _VECTOR)


class CudaSparseProducts:
    """Products of compressed rows on one GPU, which is the current one.

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
        """C ← A⊗B as of `SparseProducts`."""
        self.times_dense_within(A, B, C, via, swapped=swapped, signed=signed)

    def times_dense_within(
        self,
        A: CompressedRows,
        B: Values,
        C: Values,
        via: Any = None,
        *,
        swapped: bool = False,
        signed: bool = False,
        fresh: bool = True,
        safe: SafeRange | None = None,
    ) -> bool:
        """The same where numbers are in a safe range, or without `fresh` C ← C ⊕ A⊗B, whose `via` is −1 where C stays.

        Parameters
        ----------
        A, B, C, via, swapped, signed
        fresh : bool
        safe : SafeRange, optional
            The numbers of all operands are compared with it while they are read.

        Returns
        -------
        bool
            Whether all are in it; else C holds no product.

        Raises
        ------
        GraphError
            For rows that end before they begin, and numbers of columns beyond the last.
        """
        import cupy

        if 0 in C[0].shape:
            return True
        (m, depth), n, entries = A.shape, C[0].shape[1], len(A.columns)
        B = tuple(map(cupy.ascontiguousarray, B)) if n == 1 else of_one_layout(B)
        if entries and not depth:
            raise strange_columns()
        starts, flags, r = A.starts.astype(A.columns.dtype, copy=False), zeros(2), self._representation
        kind = n, self._width(B[0], C[0]), A.columns.itemsize, swapped, via is not None, safe is not None
        kernel, cut, shared, size = _decided(self.semiring, self.dtypes, m, entries, *kind, self.number)
        cuts, closed = cupy.empty((cut.tiles + 1, 2), np.int64), cupy.empty(cut.tiles, np.int32)
        parts = cupy.empty(2 * cut.tiles * n * size, np.uint8)
        product = Sparse(
            _address(starts),
            _address(A.columns),
            tuple(map(_address, A.values)),
            tuple(map(_address, B)),
            tuple(map(_address, C)),
            0 if via is None else _address(via),
            _address(flags),
            _address(cuts),
            _address(closed),
            _address(parts),
            m,
            n,
            depth,
            entries,
            B[0].strides[0] // B[0].itemsize,
            threshold(int(r.zero[0]), signed=signed) if r.clamped else 0,
            int(fresh),
            cut.tiles,
            cut.items,
            cut.longest,
            _CUT,
            _NO_BOUNDS if safe is None else bounds_of(safe, self.dtypes[0], _address(flags) + flags.itemsize),
        )
        words = np.array(flat(product), np.int64)
        for phase, blocks, memory in (
            (_CUT, -(-(cut.tiles + 1) // cut.threads), 0),
            (_MULTIPLY, cut.tiles, shared),
            (_JOIN, -(-cut.tiles // cut.threads), 0),
        ):
            words[_PHASE] = phase
            kernel((blocks, 1, 1), (cut.threads, 1, 1), (words.view(np.dtype((np.void, words.nbytes))),), memory)
        strange, beyond = read_back(flags)
        if strange:
            raise strange_columns()
        return not beyond

    def times_sparse(
        self,
        A: CompressedRows,
        B: CompressedRows,
        room: Room,
        mask: Mask | None = None,
        *,
        witness: bool = False,
        swapped: bool = False,
        signed: bool = False,
    ) -> tuple[CompressedRows, Any]:
        """A⊗B as of `SparseProducts`."""
        add_up = functools.partial(self.times_dense, swapped=swapped, signed=signed)
        return expanded_product(A, B, room, mask, add_up, witness=witness)

    def _width(self, B: Any, C: Any) -> int:
        """How many elements of rows of B and C are read and written at once."""
        size, n, r = B.itemsize, C.shape[1], self._representation
        width = 16 // size if r.same_registers and len(r.dtypes) == 1 else 1
        whole = n % width == 0 and not any(x % 16 for x in (B.strides[0], B.data.ptr, C.data.ptr))
        return width if n > 1 and whole else 1


def _address(array: Any) -> int:
    """Where an array of CuPy's begins."""
    return int(array.data.ptr)


@functools.lru_cache(maxsize=256)
def _decided(
    semiring: Semiring,
    dtypes: DTypes,
    rows: int,
    entries: int,
    n: int,
    width: int,
    index: int,
    swapped: bool,
    witness: bool,
    checked: bool,
    number: int,
) -> tuple[Kernel, Tiling, int, int]:
    """The kernel and the tiles of a product, with the bytes of shared memory of a block and those of a sum."""
    form = sparse_form(rows, entries, n, width=width, wide=index == 8, swapped=swapped, witness=witness, checked=checked)
    widths = [index, *(d.itemsize for d in represent(semiring, dtypes).dtypes)]
    cut = tiling(form, rows, entries, sum(widths))
    shared = sum([-(-(width * (cut.items + cut.longest) + 15) // 128) * 128 for width in widths])
    return _kernel(semiring, dtypes, form, number), cut, shared, size_of_sum(semiring, dtypes, witness=witness)


@functools.lru_cache(maxsize=cache.LOADED)
def _kernel(semiring: Semiring, dtypes: DTypes, form: SparseForm, number: int) -> Kernel:
    """The kernel of a form for a GPU."""
    return Kernel("sparse", lambda: sparse_source(semiring, dtypes, form), number)
