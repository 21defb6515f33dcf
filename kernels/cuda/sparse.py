"""Products of compressed rows on a GPU: how many threads share a row, and into which tiles the entries are cut."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from semiring.algebra.definition import Semiring
from semiring.kernels import cache
from semiring.kernels.compressed import CompressedRows, Mask, Room, strange_columns
from semiring.kernels.cuda.arguments import Bounds, Sparse, flat
from semiring.kernels.cuda.blocks import of_one_layout
from semiring.kernels.cuda.compiler import Kernel, pointer_to
from semiring.kernels.cuda.elements import Flags
from semiring.kernels.cuda.expansion import expanded_product
from semiring.kernels.cuda.representation import represent
from semiring.kernels.cuda.shapes import bounds_of
from semiring.kernels.cuda.sums import size_of_sum, sum_of, summing_source
from semiring.kernels.limits import SafeRange, threshold

__all__ = ["CudaSparseProducts", "SparseForm", "SparsePlan", "sparse_form", "sparse_source"]

Values = tuple[Any, ...]
DTypes = tuple[np.dtype[Any], ...]

_VECTOR, _MATRIX, _LEAST = 128, 256, 64
"""Threads of a block of the product with a vector, and with a matrix, and where few rows are a tile."""

_LANES = 32
"""Threads that share a row at most."""

_TERMS = 32
"""Entries of a row that a lane takes of a product with a vector, about."""

_PAIRS = 16
"""Vectors of a row of the dense operand from which on a thread of a product with a matrix has two of them, else one."""

_SCALARS, _SCALAR_BYTES = 3, 24
"""Columns of a thread, about, and their bytes at most, where they are read one by one."""

_RESIDENT, _LATENT = 6, 4
"""Blocks of a product with a matrix that a multiprocessor has at a time; and where a thread has more than 16 bytes of columns, or a row for
itself, and needs registers for more rows of the dense operand on their way."""

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
    rows: int, entries: int, n: int, *, width: int = 1, size: int = 4, wide: bool, swapped: bool, witness: bool, checked: bool = False
) -> SparseForm:
    """The form of a product with n columns, of which `width`, of some `size` each, are read at once."""
    if n > 1:
        lanes, columns = _shared(n, width, size)
    else:
        lanes, columns = min(_LANES, 1 << max(entries // (_TERMS * rows) - 1, 0).bit_length()), 1
    return SparseForm(lanes, columns, width, n > 1, round(entries / rows) % 8 == 0, wide, swapped, witness, checked)


def _shared(n: int, width: int, size: int) -> tuple[int, int]:
    """The lanes that share a row of n columns, in as few passes as can be, and the columns of each."""
    vectors = -(-n // width)
    if width > 1:
        each = 1 + (vectors >= _PAIRS)
        passes = -(-vectors // (_LANES * each))
        lanes = -(-vectors // (passes * each))
    else:
        most = max(2, _SCALAR_BYTES // size)
        passes = -(-n // (_LANES * most))
        each = min(_SCALARS, most)
        lanes = min(_LANES, 1 << (-(-n // (passes * each)) - 1).bit_length())  # so that what they read lies in few lines of the cache
    return lanes, width * -(-vectors // (passes * lanes))


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


def bytes_of_entry(semiring: Semiring, dtypes: DTypes, form: SparseForm) -> int:
    """Bytes of an entry in shared memory."""
    r, index = represent(semiring, dtypes), 8 if form.wide else 4
    if not form.matrix:
        return index + sum(d.itemsize for d in r.dtypes)
    aligned = min(r.size, 16)
    return _up(_up(index, aligned) + r.size, max(index, aligned))


def _up(size: int, multiple: int) -> int:
    """The next multiple."""
    return -(-size // multiple) * multiple


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
        n, entries = C[0].shape[1], len(A.columns)
        B = of_one_layout(B) if n > 1 and self.reaches_rows(B[0].strides[0]) else tuple(map(cupy.ascontiguousarray, B))
        if entries and not A.shape[1]:
            raise strange_columns()
        arrays: list[Any] = [A.starts.astype(A.columns.dtype, copy=False), A.columns, *A.values, *B, *C]
        lie = B[0].strides[0], (B[0].data.ptr | C[0].data.ptr) % 16
        witness, index = via is not None, A.columns.itemsize
        how = self.plan(A.shape, entries, n, index, *lie, swapped=swapped, witness=witness, signed=signed, fresh=fresh, safe=safe)
        return how.finds_safe([*[v.data.ptr for v in arrays], 0 if via is None else via.data.ptr])

    @staticmethod
    def reaches_rows(apart: int) -> bool:
        """Whether kernels can multiply numbers of rows by so many bytes from a row of the dense matrix to the next."""
        return 0 <= apart < 1 << 31

    def plan(
        self,
        shape: tuple[int, int],
        entries: int,
        n: int,
        index: int,
        apart: int,
        shift: int,
        *,
        swapped: bool = False,
        witness: bool = False,
        signed: bool = False,
        fresh: bool = True,
        safe: SafeRange | None = None,
    ) -> SparsePlan:
        """The launches of a product as of `times_dense_within`.

        Parameters
        ----------
        shape : tuple of int
            Of the sparse matrix.
        entries, n : int
            Entries of that, and columns of the dense one.
        index : int
            Bytes of a column's number.
        apart : int
            Bytes from a row of the dense matrix to the next.
        shift : int
            Bytes by which matrices that have columns do not begin at a multiple of 16.
        swapped, witness, signed, fresh, safe
        """
        r = self._representation
        size, width = self.dtypes[0].itemsize, 1
        if r.same_registers and len(r.dtypes) == 1 and n > 1 and not (shift or apart % 16 or n * size % 16):
            width = 16 // size
        return _planned(
            self.semiring,
            self.dtypes,
            shape,
            entries,
            n,
            width,
            index,
            apart // size,
            swapped,
            witness,
            signed,
            fresh,
            safe,
            self.number,
        )

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


@dataclass(frozen=True, slots=True, eq=False)
class SparsePlan:
    """The launches of products of one kind, whose operands lie alike.

    Attributes
    ----------
    kernel : Kernel
    tiling : Tiling
    shared_bytes : int
        Of a block that multiplies.
    scratch : tuple of int
        Bytes of its arrays `cuts`, `parts` and `closed`, see `Sparse`.
    fields : array
        A word for their address, and `Sparse`.
    """

    kernel: Kernel
    tiling: Tiling
    shared_bytes: int
    scratch: tuple[int, int, int]
    fields: np.ndarray[Any, np.dtype[np.int64]]

    def finds_safe(self, own: Sequence[int]) -> bool:
        """Launch them, and wait: whether all numbers are in the range; else C holds no product.

        Parameters
        ----------
        own : sequence of int
            Where the starts of rows, the columns, and the components of A, B and C lie, and the witness, or 0.

        Raises
        ------
        GraphError
            For rows that end before they begin, and numbers of columns beyond the last.
        """
        import cupy

        cut, flags, scratch = self.tiling, Flags.taken(), cupy.cuda.alloc(sum(self.scratch))
        (strange, beyond), cuts, parts = flags.addresses, scratch.ptr, scratch.ptr + self.scratch[0]
        fields, told = self.fields.copy(), (*own, strange, cuts, parts + self.scratch[1], parts)
        fields[1 : 1 + len(told)], fields[-1] = told, beyond
        argument = pointer_to(fields)
        for phase, blocks, memory in (
            (_CUT, -(-(cut.tiles + 1) // cut.threads), 0),
            (_MULTIPLY, cut.tiles, self.shared_bytes),
            (_JOIN, -(-cut.tiles // cut.threads), 0),
        ):
            fields[_PHASE] = phase
            self.kernel.start((blocks, 1, 1), (cut.threads, 1, 1), argument, memory)
        found = flags.read()
        if found[0]:
            raise strange_columns()
        return not found[1]


@functools.lru_cache(maxsize=256)
def _planned(
    semiring: Semiring,
    dtypes: DTypes,
    shape: tuple[int, int],
    entries: int,
    n: int,
    width: int,
    index: int,
    apart: int,
    swapped: bool,
    witness: bool,
    signed: bool,
    fresh: bool,
    safe: SafeRange | None,
    number: int,
) -> SparsePlan:
    """The plan of a product, of which `width` columns are read at once, and rows of the dense operand lie `apart` elements apart."""
    (rows, depth), r = shape, represent(semiring, dtypes)
    options = {"wide": index == 8, "swapped": swapped, "witness": witness, "checked": safe is not None}
    form = sparse_form(rows, entries, n, width=width, size=r.size, **options)
    size = bytes_of_entry(semiring, dtypes, form)
    cut = tiling(form, rows, entries, size)
    room = cut.items + cut.longest
    if form.matrix:
        shared = size * (room + form.mixed * (room // 16 + 1))
    else:
        shared = sum(_up(width * room + 15, 128) for width in (index, *(d.itemsize for d in r.dtypes)))
    cuts, parts = 16 * (cut.tiles + 1), 2 * cut.tiles * n * size_of_sum(semiring, dtypes, witness=witness)
    nothing = (0,) * len(dtypes)
    last = threshold(int(r.zero[0]), signed=signed) if r.clamped else 0
    bounds = _NO_BOUNDS if safe is None else bounds_of(safe, dtypes[0], 0)
    words = flat(
        Sparse(
            0, 0, nothing, nothing, nothing, 0, 0, 0, 0, 0,
            rows, n, depth, entries, apart, last, int(fresh), cut.tiles, cut.items, cut.longest, _CUT, bounds,
        )
    )  # fmt: skip
    scratch = cuts, -(-parts // 16) * 16, 4 * cut.tiles
    return SparsePlan(_kernel(semiring, dtypes, form, number), cut, shared, scratch, np.array([0, *words], np.int64))


@functools.lru_cache(maxsize=cache.LOADED)
def _kernel(semiring: Semiring, dtypes: DTypes, form: SparseForm, number: int) -> Kernel:
    """The kernel of a form for a GPU."""
    return Kernel("sparse", lambda: sparse_source(semiring, dtypes, form), number)
