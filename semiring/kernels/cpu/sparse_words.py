"""The forms of products with sparse matrices, the names of their functions, and the words of their arguments."""

from __future__ import annotations

import functools
from collections import namedtuple
from typing import NamedTuple

__all__ = ["BEYOND", "STRANGE", "SparseArrays", "SparseForm", "SparseWords", "bitmap_bytes"]


class SparseForm(NamedTuple):
    """The form of a product, which names a function.

    - `kind`: a sparse matrix times a dense matrix ("dense") or a column ("vector"); the lengths of rows ("symbolic"), then the rows
      ("numeric"), of a product of sparse matrices
    - `swapped`: the sparse matrix is the right factor of ⊗, and the product is computed transposed
    - `narrow`: column numbers and row pointers have 32 bits, else 64; the row pointers of a sparse result always have 64
    - `masked`: compute only entries inside, or only entries outside, a mask
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
        """Return the form of a function, given its name."""
        _, kind, *words = name.split("_")
        return cls(kind, *(field in words for field in cls._fields[1:]))


@functools.cache
def _name(form: SparseForm) -> str:
    return "_".join(["sparse", form.kind, *(field for field in form._fields[1:] if getattr(form, field))])


class SparseWords(NamedTuple):
    """The words of a call that belong to no component; a function reads only some.

    Rows `first` … `last` − 1 of A are multiplied; a product with a dense B takes `grain` rows at a time from the counter `taken`, which all
    threads share. `starts` and `columns` are A's compressed rows, `right_starts` and `right_columns` B's, `mask_starts` and `mask_columns`
    a mask's. The mask's bits are exclusive-ored with `flip`; `sorted` is 1 if the columns of the mask may be looked up in B. B has `n`
    columns.

    Rows of a sparse result begin at `out_starts`; ``symbolic`` writes the length of each row one place further on. `sums` has a number for
    each entry if ⊕ is log Σ exp. `bitmap` is zeroed memory for `words` words, see `bitmap_bytes`.

    A product with a dense B of `depth` rows clamps column numbers and row pointers to `depth` and `entries`, and sets `strange` if any
    changed. A product with a vector also sets `beyond` if an entry is out of the bounds `origin`, `least` and `most`, see `BoundsCheck`.
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
"""The positions of the answers: column numbers or rows that do not exist, and entries out of bounds."""

SparseArrays = namedtuple("SparseArrays", "values right right_rows out")
"""The words of one component: the entries of A, the entries of B (or the dense B and its row stride in elements), and the result."""


def bitmap_bytes(n: int) -> tuple[int, int]:
    """Return the number of 64-column words in n columns, and the bytes of one row's bitmap.

    The bitmap has a bit for each column, a bit for each nonempty word, the row position of each word's first column (int32), and a mask's
    bits.
    """
    words = -(-n // 64)
    return words, 8 * (2 * words + -(-words // 64) + -(-words // 2))
