"""The forms of products with sparse matrices, by the names of their functions, and the arguments of these."""

from __future__ import annotations

import functools
from typing import NamedTuple

__all__ = ["BEYOND", "STRANGE", "SparseArrays", "SparseForm", "SparseWords", "bitmap_bytes"]


class SparseForm(NamedTuple):
    """Which function it is.

    Attributes
    ----------
    kind : {"dense", "vector", "symbolic", "numeric"}
        A sparse matrix times a dense one, or a single column of one; of two sparse ones, the lengths of the rows, and then the rows.
    swapped : bool
        The sparse matrix whose rows are gone through is the right factor of ⊗: the product is computed transposed.
    narrow : bool
        The numbers of columns and of entries have 32 bits, else 64; where the rows of a sparse result begin they have 64.
    witness : bool
    masked : bool
        Only where a mask has entries, or where it has none.
    """

    kind: str
    swapped: bool = False
    narrow: bool = False
    witness: bool = False
    masked: bool = False

    @property
    def name(self) -> str:
        """Of the function."""
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
    """The words of a call that belong to no component; a function reads those that it needs.

    The rows of A from `first` to `last` are multiplied; with a dense B `grain` of them at a time, from the counter `taken` on, which all
    threads have. `starts` and `columns` are those of its compressed rows, `right_starts` and `right_columns` those of B, and `mask_starts`
    and `mask_columns` those of a mask, whose bits are exclusive-ored with `flip`; `sorted` is 1 where entries of B may be looked up by the
    columns of the mask. B has `n` columns. Rows of a sparse result begin at
    `out_starts`, which ``symbolic`` fills with their lengths, one place further on; where ⊕ is log Σ exp,
    `sums` has room for a number beside each of its entries. `bitmap` is zeroed memory for `words` words, see
    `bitmap_bytes`. A product with a dense B, of `depth` rows, takes the last one for all beyond, and tells that by `strange`, as it does of
    rows that are not within all `entries`; one with a vector also tells, by `beyond`, whether entries are beyond `origin`, `least` and
    `most`, see `BoundsCheck`.
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
"""Where a function tells of numbers of columns that there are not, and of entries beyond bounds."""


class SparseArrays(NamedTuple):
    """The words of one component: the entries of A, those of B or the dense B and its row stride in elements, and the result."""

    values: int
    right: int
    right_rows: int
    out: int


def bitmap_bytes(n: int) -> tuple[int, int]:
    """How many words of 64 columns n columns are, and the bytes of the bitmap of one row.

    It is a bit for each column, a bit for each word that has one, where the columns of each word begin in the row (int32), and the bits
    of a mask.
    """
    words = -(-n // 64)
    return words, 8 * (2 * words + -(-words // 64) + -(-words // 2))
