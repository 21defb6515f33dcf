"""Products of compressed rows on a GPU: threads that share a row, tiles of rows and entries, and launch plans."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from semiring.algebra.definition import Semiring
from semiring.kernels.compressed import CompressedRows, Mask, Room, require_sound, strange_columns
from semiring.kernels.cuda.arguments import Bounds, Sparse, flat
from semiring.kernels.cuda.blocks import of_one_layout
from semiring.kernels.cuda.compiler import Kernel, pointer_to, semiring_kernel_for
from semiring.kernels.cuda.elements import Flags
from semiring.kernels.cuda.kernels import bounds_of
from semiring.kernels.cuda.representation import represent
from semiring.kernels.cuda.source import size_of_sum, sum_of, summing_source
from semiring.kernels.limits import DTypes, SafeRange, threshold

__all__ = ["CudaSparseProducts", "SparseForm", "SparsePlan", "Tiling", "sparse_form", "sparse_source", "tiling"]

Values = tuple[Any, ...]

_CUT, _MULTIPLY, _JOIN = range(3)  # the phases of a launch
_PHASE = Sparse._fields.index("phase") - len(Sparse._fields) - len(Bounds._fields) + 1  # position from the end
_MOST_SLICES = (1 << 16) - 1  # the most blocks of a grid in its second dimension

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
    return summing_source(semiring, dtypes, "sparse", {"sparse": (call, f"{threads}, {blocks}" if blocks > 1 else threads)})


def resident(semiring: Semiring, dtypes: DTypes, form: SparseForm) -> int:
    """Return the least number of resident blocks per multiprocessor."""
    r = represent(semiring, dtypes)
    if not form.matrix or form.witness or form.wide or r.has_series or r.is_heavy(witness=False):
        return 1
    return _LATENT if form.lanes == 1 or form.columns * r.size > 16 else _RESIDENT


class CudaSparseProducts:
    """Products of compressed rows on the current GPU."""

    def __init__(self, semiring: Semiring, dtypes: DTypes, number: int) -> None:
        self.semiring, self.dtypes, self.number = semiring, dtypes, number
        self._representation = represent(semiring, dtypes)

    def times_dense(self, A: CompressedRows, B: Values, C: Values, via: Any = None, *, swapped: bool = False, signed: bool = False) -> None:
        """C ← A⊗B, see `ReferenceSparseProducts`."""
        self.times_dense_within(A, B, C, via, swapped=swapped, signed=signed)

    def times_dense_within(self, A: CompressedRows, B: Values, C: Values, via: Any = None, **how: Any) -> bool:
        """C ← A⊗B, checked against a safe range; without `fresh`, C ← C ⊕ A⊗B, with −1 in `via` where C keeps its element. See `plan`.

        Returns True if all numbers of the operands are in `safe`; otherwise C holds no product. Raises GraphError for invalid row starts
        and columns out of range.
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
        plan = self.plan(A.shape, entries, n, index, *lie, witness=witness, **how)
        return plan.finds_safe([*[v.data.ptr for v in arrays], 0 if via is None else via.data.ptr])

    @staticmethod
    def reaches_rows(apart: int) -> bool:
        """Return True if kernels can address dense rows that are `apart` bytes apart."""
        return 0 <= apart < 1 << 31

    def plan(self, shape: tuple[int, int], entries: int, n: int, index: int, apart: int, shift: int, **how: Any) -> SparsePlan:
        """Plan the launches of `times_dense_within`, with the options of `_planned`.

        `shape` and `entries` describe the sparse matrix, and n is the number of columns of the dense one. `index` is the size of a column
        number, and `apart` the distance between dense rows, in bytes; `shift` is the address modulo 16 of matrices with columns.
        """
        r = self._representation
        size, width = self.dtypes[0].itemsize, 1
        if r.same_registers and len(r.dtypes) == 1 and n > 1 and not (shift or apart % 16 or n * size % 16):
            width = 16 // size
        return _planned(self.semiring, self.dtypes, self.number, shape, entries, n, width, index, apart // size, **how)

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
        """Return A⊗B with ascending columns, and the k that won each entry; see `ReferenceSparseProducts`.

        Raises GraphError for invalid row starts and columns out of range.
        """
        import cupy

        require_sound(A, B, mask)
        (m, _), n, dtypes = A.shape, B.shape[1], [v.dtype for v in A.values]
        row, lengths = A.row_numbers().astype(np.int64), (B.starts[1:] - B.starts[:-1]).astype(np.int64)[A.columns]
        ends = cupy.cumsum(lengths)
        begins = ends - lengths
        # Term t, of entry e of A, takes entry t + shift_e of B.
        shift = B.starts.astype(np.int64)[A.columns] - begins
        wanted = None if mask is None else cupy.sort(mask.pattern.row_numbers().astype(np.int64) * n + mask.pattern.columns)
        index = np.int32 if max(len(B.columns), _SORTED) < 2**31 else np.int64
        places, parts, winners = [], [], []
        count = 0
        for first, last in _stretches(A, ends):
            t = cupy.arange(int(begins[first]), int(ends[last - 1]), dtype=np.int64)
            left = cupy.searchsorted(ends[first:last], t, side="right") + first  # skips entries without terms
            right = t + shift[left]
            place = row[left] * n + B.columns[right]
            if wanted is not None and mask is not None:
                kept = _among(place, wanted) ^ mask.complement
                left, right, place = left[kept], right[kept], place[kept]
            if len(place) == 0:
                continue
            order = cupy.argsort(place, kind="stable")
            left, right, place = left[order], right[order], place[order]
            runs = cupy.flatnonzero(cupy.concatenate([cupy.ones(1, bool), place[1:] != place[:-1]]))
            count += len(runs)
            room(count)
            wide = index if len(place) < 2**31 else np.int64
            starts = cupy.concatenate([runs, cupy.full(1, len(place))]).astype(wide)
            terms = CompressedRows((len(runs), len(B.columns)), starts, right.astype(wide), tuple([v[left] for v in A.values]))
            values = tuple([cupy.empty((len(runs), 1), d) for d in dtypes])
            via = cupy.empty((len(runs), 1), np.int32) if witness else None
            self.times_dense(terms, tuple([v[:, None] for v in B.values]), values, via, swapped=swapped, signed=signed)
            places.append(place[runs])
            parts.append(tuple([v[:, 0] for v in values]))
            if via is not None:
                winners.append(via[:, 0])
        where = _joined(places, np.dtype(np.int64))
        found = tuple([_joined([part[c] for part in parts], d) for c, d in enumerate(dtypes)])
        starts = cupy.searchsorted(where, cupy.arange(m + 1, dtype=np.int64) * n)
        product = CompressedRows((m, n), starts, (where % max(n, 1)).astype(B.columns.dtype), found)
        if not witness:
            return product, None
        entries, row_of = _joined(winners, np.dtype(np.int32)), B.row_numbers().astype(np.int32)
        return product, cupy.where(entries < 0, np.int32(-1), row_of[cupy.maximum(entries, 0)]) if len(row_of) else entries


@dataclass(frozen=True, slots=True, eq=False)
class SparsePlan:
    """The launches of a product of one kind, for operands of one layout."""

    kernel: Kernel
    tiling: Tiling
    slices: int  # of the dense matrix's columns; each slice has its own blocks
    shared_bytes: int  # of a block that multiplies
    scratch: tuple[int, int, int]  # bytes of `cuts`, `parts` and `closed`, see `Sparse`
    fields: np.ndarray[Any, np.dtype[np.int64]]  # a word for the structure's address, and `Sparse`

    def finds_safe(self, own: Sequence[int]) -> bool:
        """Launch the product and wait; return True if all numbers are in the safe range, else C holds no product.

        `own` lists the addresses of row starts, columns, the components of A, B and C, and the witness (or 0). Raises GraphError for
        invalid row starts and columns out of range.
        """
        import cupy

        cut, flags, scratch = self.tiling, Flags.taken(), cupy.cuda.alloc(sum(self.scratch))
        (strange, beyond), cuts, parts = flags.addresses, scratch.ptr, scratch.ptr + self.scratch[0]
        fields, told = self.fields.copy(), (*own, strange, cuts, parts + self.scratch[1], parts)
        fields[1 : 1 + len(told)], fields[-1] = told, beyond
        argument = pointer_to(fields)
        for phase, blocks, slices, memory in (
            (_CUT, -(-(cut.tiles + 1) // cut.threads), 1, 0),
            (_MULTIPLY, cut.tiles, self.slices, self.shared_bytes),
            (_JOIN, -(-cut.tiles // cut.threads), 1, 0),
        ):
            fields[_PHASE] = phase
            self.kernel.start((blocks, slices, 1), (cut.threads, 1, 1), argument, memory)
        found = flags.read()
        if found[0]:
            raise strange_columns()
        return not found[1]


@functools.lru_cache(maxsize=256)
def _planned(
    semiring: Semiring,
    dtypes: DTypes,
    number: int,
    shape: tuple[int, int],
    entries: int,
    n: int,
    width: int,
    index: int,
    apart: int,
    *,
    swapped: bool = False,
    witness: bool = False,
    signed: bool = False,
    fresh: bool = True,
    safe: SafeRange | None = None,
) -> SparsePlan:
    """Plan a product that reads `width` columns at once from dense rows that are `apart` elements apart."""
    (rows, depth), r = shape, represent(semiring, dtypes)
    options = {"wide": index == 8, "swapped": swapped, "witness": witness, "checked": safe is not None}
    form = sparse_form(rows, entries, n, width=width, size=r.size, **options)
    widths = index, *(d.itemsize for d in dtypes)
    cut = tiling(form, rows, entries, sum(widths))
    room = cut.items + cut.longest
    shared = sum(-(-(width * room + 15) // 128) * 128 for width in widths)
    cuts, parts = 16 * (cut.tiles + 1), 2 * cut.tiles * n * size_of_sum(semiring, dtypes, witness=witness)
    nothing = (0,) * len(dtypes)
    last = threshold(int(r.zero[0]), signed=signed) if r.clamped else 0
    bounds = Bounds(0, 0, 0, 0, 0) if safe is None else bounds_of(safe, dtypes[0], 0)
    words = flat(
        Sparse(
            0, 0, nothing, nothing, nothing, 0, 0, 0, 0, 0,
            rows, n, depth, entries, apart, last, int(fresh), cut.tiles, cut.items, cut.longest, _CUT, bounds,
        )
    )  # fmt: skip
    scratch = cuts, -(-parts // 16) * 16, 4 * cut.tiles
    slices = min(-(-n // (form.lanes * form.columns)), _MOST_SLICES) if form.matrix else 1
    kernel = semiring_kernel_for("sparse", number, sparse_source, semiring, dtypes, form)
    return SparsePlan(kernel, cut, slices, shared, scratch, np.array([0, *words], np.int64))


# Products of two sparse matrices: terms are expanded, sorted by row and column, and added within equal places (ESC). See Bell, Dalton and
# Olson (2012), Exposing fine-grained parallelism in algebraic multigrid methods. The sorted terms form a sparse matrix themselves: one row
# per entry of the product, with an entry of A per term, in the column of B's entry. The sums are the product of this matrix and the vector
# of B's entries.

_SORTED = 1 << 26
"""Terms sorted at a time, at some 60 bytes each; a single row of the product may have more."""


def _stretches(A: CompressedRows, ends: Any) -> Iterator[tuple[int, int]]:
    """Yield ranges of A's entries: whole rows with at most `_SORTED` terms together, or single rows with more."""
    total = int(ends[-1]) if len(ends) else 0
    if total <= _SORTED:
        if total:
            yield 0, len(ends)
        return
    import cupy

    starts = cupy.asnumpy(A.starts).astype(np.int64)
    terms = np.append(0, cupy.asnumpy(ends))[starts]  # before each row
    row = 0
    while row < len(starts) - 1:
        beyond = max(row + 1, int(np.searchsorted(terms, terms[row] + _SORTED, side="right")) - 1)
        if terms[beyond] > terms[row]:
            yield int(starts[row]), int(starts[beyond])
        row = beyond


def _among(numbers: Any, others: Any) -> Any:
    """Return which numbers occur in `others`, which is sorted."""
    import cupy

    if len(others) == 0:
        return cupy.zeros(len(numbers), bool)
    at = cupy.minimum(cupy.searchsorted(others, numbers), len(others) - 1)
    return others[at] == numbers


def _joined(parts: list[Any], dtype: np.dtype[Any]) -> Any:
    import cupy

    return parts[0] if len(parts) == 1 else cupy.concatenate(parts) if parts else cupy.empty(0, dtype)
