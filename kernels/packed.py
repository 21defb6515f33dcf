"""A block of bits: a view of a matrix of truth values that are packed into words."""

from __future__ import annotations

from dataclasses import dataclass

from semiring.kernels.block import Block

__all__ = ["PackedBlock"]


@dataclass(eq=False, slots=True)
class PackedBlock(Block):
    """A view of a bit-packed matrix.

    Attributes
    ----------
    columns : int
        Its bits in a row; `values` holds their words.
    strip : int
        Columns of a view begin at multiples of it, and rows are padded to one.
    """

    columns: int = 0
    strip: int = 1

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return int(self.values[0].shape[-2]), self.columns

    def __getitem__(self, key: tuple[slice, slice]) -> PackedBlock:
        """The view ``block[rows, columns]``; columns begin at whole strips, and end at the next or the last one."""
        (m, n), (rows, columns), strip = self.shape, key, self.strip
        top, bottom, _ = rows.indices(m)
        left, right, _ = columns.indices(n)
        right = max(left, right)
        assert left % strip == 0, left
        assert right in (left, n) or right % strip == 0, right
        width = 8 * self.values[0].itemsize
        words = self.values[0][..., top : max(top, bottom), left // width : -(-right // strip) * (strip // width)]
        return PackedBlock((words,), None, self.row + top, self.column + left, right - left, strip)
