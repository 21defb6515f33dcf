"""The forms of products with sparse matrices, by the names of their functions, and the arguments of these."""

from __future__ import annotations

import functools
from typing import NamedTuple

__all__ = ["BEYOND", "STRANGE", "SparseArrays", "SparseForm", "SparseWords", "bitmap_bytes"]


class SparseForm(NamedTuple):
    """The form of a generated function.

    Attributes
    ----------
    kind : {"dense", "vector", "symbolic", "numeric"}
        A sparse matrix times a dense matrix, or times a column. Sparse times sparse: the lengths of the rows, and then the rows.
    swapped : bool
        The sparse matrix is the right factor of ⊗: the product is computed transposed.
    narrow : bool
        Column and entry numbers have 32 bits, else 64; row pointers of a sparse result have 64.
    witness : bool
    masked : bool
        Compute only entries of a mask, or only entries outside.
    """

    kind: str
    swapped: bool = False
    narrow: bool = False
    witness: bool = False
    masked: bool = False

    @property
    def name(self) -> str:
        """The name of the function."""
        return _name(self)

    @classmethod
    def named(cls, name: str) -> SparseForm:
        """The form of the function of a name."""
        _, kind, *words = name.split("_")
        return cls(kind, *(field in words for field in cls._fields[1:]))


@functools.cache
def _name(form: SparseForm) -> str:
    """The kind, and what else is so."""
    return "_".join(["sparse", form.kind, *(field for field in form._fields[1:] if getattr(form, field))])


class SparseWords(NamedTuple):
    """The words of a call that belong to no component; each function reads the words it needs.

    Rows `first` … `last` of A are multiplied; with a dense B `grain` rows at a time, by the counter `taken` of all threads. `starts` and
    `columns` describe A, `right_starts` and `right_columns` B, and `mask_starts` and `mask_columns` a mask, whose bits are exclusive-ored
    with `flip`. `sorted` is 1 if entries of B may be looked up by the columns of the mask. B has `n` columns. `out_starts` has the row
    pointers of a sparse result; ``symbolic`` fills in the lengths, one place further. For log Σ exp, `sums` has a number for each entry.
    `bitmap` is zeroed memory of `words` words, see `bitmap_bytes`. A product with a dense B of `depth` rows clamps larger row numbers, and
    reports them in `strange`, like row pointers beyond `entries`. A product with a vector also reports in `beyond` entries outside
    `origin`, `least` and `most`, see `BoundsCheck`.
    """

    first: int
    last: int
    starts: int
    columns: int
    n: int
    threshold: int
    depth: int = 0
    strange: int = 0
    via: int = 0
    right_starts: int = 0
    right_columns: int = 0
    mask_starts: int = 0
    mask_columns: int = 0
    flip: int = 0
    out_starts: int = 0
    out_columns: int = 0
    bitmap: int = 0
    words: int = 0
    origin: int = 0
    least: int = 0
    most: int = 0
    beyond: int = 0
    taken: int = 0
    grain: int = 0
    entries: int = 0
    sums: int = 0
    sorted: int = 0


STRANGE, BEYOND = map(SparseWords._fields.index, ("strange", "beyond"))
"""Fields that report column numbers beyond the last, and entries beyond bounds."""


class SparseArrays(NamedTuple):
    """The words of one component: entries of A; entries of B, or the dense B and its row stride in elements; the result."""

    values: int
    right: int
    right_rows: int
    out: int


def bitmap_bytes(n: int) -> tuple[int, int]:
    """Return the number of words of n columns, and the bytes of the bitmap of one row.

    The bitmap has a bit for each column, a bit for each word that is not empty, the start of each word's columns in the row (int32), and
    the bits of a mask.
    """
    words = -(-n // 64)
    return words, 8 * (2 * words + -(-words // 64) + -(-words // 2))
