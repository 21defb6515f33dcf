"""What engines have in common whose blocks are the arrays themselves."""

from __future__ import annotations

from typing import Any

import numpy as np

from semiring.kernels.block import Block
from semiring.kernels.engine import Immediate
from semiring.kernels.reference.operations import Operations

__all__ = ["ArrayEngine"]


class ArrayEngine(Immediate):
    """The part of `Engine` that no kernel is needed for."""

    granule = 1
    _operations: Operations

    def load(self, values: tuple[Any, ...], via: Any = None, *, owned: bool = True) -> Block:
        """The block of the arrays themselves."""
        return Block(values, via)

    def blank(self, values: tuple[Any, ...], via: Any = None) -> Block:
        """The block of arrays that a product is written to."""
        return Block(values, via)

    def store(self, A: Block, values: tuple[Any, ...]) -> None:
        """Write a block's elements to `values`, unless it holds those very arrays."""
        for source, target in zip(A.values, values, strict=True):
            if source is not target:
                target[...] = source

    def add_identity(self, A: Block) -> None:
        """A ← I ⊕ A."""
        i = np.arange(A.shape[0])
        diagonal = self._operations.add(self._operations.one, tuple(v[..., i, i] for v in A.values))
        for v, d in zip(A.values, diagonal, strict=True):
            v[..., i, i] = d
