"""Blocks that kernels cannot take as they lie: what they share, and when a copy has to take their place."""

from __future__ import annotations

import numpy as np

from semiring.kernels.block import Block
from semiring.kernels.overlap import layout, share

__all__ = ["Operand", "assign", "copied"]


class Operand:
    """A block that is one matrix, and the layouts of its components."""

    def __init__(self, block: Block) -> None:
        self.block = block
        self.layouts = [layout(v) for v in block.values]

    def copied(self) -> Operand:
        """A contiguous copy, to be read."""
        return Operand(copied(self.block))

    def shares(self, other: Operand) -> bool:
        """Whether they have elements in common."""
        return any(share(x, y) for x in self.layouts for y in other.layouts)

    @property
    def aligned(self) -> bool:
        """Whether elements lie at multiples of their size, as kernels count; a field of packed records may lie between them."""
        return all(x.address % x.size == x.down % x.size == x.across % x.size == 0 for x in self.layouts)

    @property
    def contiguous_rows(self) -> bool:
        """Whether the elements of a row lie side by side."""
        return all(x.across == x.size or x.columns == 1 for x in self.layouts)

    @property
    def writable(self) -> bool:
        """Whether kernels can write to it."""
        via = self.block.via
        return (
            self.contiguous_rows
            and all(x.address % x.size == x.down % x.size == 0 for x in self.layouts)
            and (via is None or via.strides[1] == via.itemsize or via.shape[1] == 1)
        )


def copied(block: Block, *, via: bool = False) -> Block:
    """A contiguous copy of a block; with its construction matrix, if it has one, on request."""
    kept = np.array(block.via, order="C") if via and block.via is not None else None
    return Block(tuple(np.array(v, order="C") for v in block.values), kept, block.row, block.column)


def assign(to: Block, source: Block) -> None:
    """Write the elements of a block, and its construction matrix, to another one."""
    for x, y in zip(to.values, source.values, strict=True):
        x[...] = y
    if to.via is not None:
        to.via[...] = source.via
