"""The store of paths that several processes have searched: each has the rows and the predecessor trees of its own sources."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from semiring.algorithms.csr import CSR
from semiring.results.distributed import DistributedMatrix
from semiring.results.trees import PredecessorTrees, via_of_trees

__all__ = ["DistributedTrees"]

Array = np.ndarray[Any, Any]


@dataclass(eq=False)
class DistributedTrees(PredecessorTrees):
    """See `PredecessorTrees`: `values` and `tree` are distributed by the same rows, and what is asked is collective."""

    def _via(self, edges: CSR) -> Any:
        """The construction matrix, of which each rank makes its own rows."""
        tree = self._distributed
        first = tree.own_rows[0].start if tree.own_rows else 0
        values: Any = self.values
        return tree._like(via_of_trees(tree.local, tuple(v.local for v in values), edges, first))

    def _simple(self, rows: Array, columns: Array) -> Iterator[list[int] | None]:
        """The paths: whoever has the trees reads them off, and tells the others."""
        tree = self._distributed
        own = np.flatnonzero(tree._owners[rows] == tree._ranks.rank)
        told = tree._ranks.allgather(dict(zip(own.tolist(), super()._simple(rows[own], columns[own]), strict=True)))
        found: dict[int, list[int] | None] = {pair: path for some in told for pair, path in some.items()}
        return map(found.__getitem__, range(len(rows)))

    def _tree_of(self, root: int) -> Any:
        """That of an own row."""
        return self._distributed._part(slice(root, root + 1))[0]

    @property
    def _distributed(self) -> DistributedMatrix:
        """The trees."""
        tree: Any = self.tree
        assert isinstance(tree, DistributedMatrix)
        return tree
