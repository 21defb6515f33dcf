"""Bellman–Ford step: relax the edges that leave some vertices, p_v ← p_v ⊕ p_u ⊗ a_uv, of a dense or a sparse matrix.

It serves where the closure's own result does not: to find a cycle that improves (`divergence`), and one source's paths when rounding has
spoiled the construction matrix (`predecessors`). It reads the matrix by blocks of rows, and computes floats in double precision.

Examples
--------
One round from vertex 0, and another one from what changed:

>>> from semiring import MIN_PLUS
>>> inf = np.inf
>>> graph = relaxation(MIN_PLUS, (np.array([[0, 3, inf, 7], [8, 0, 2, inf], [5, inf, 0, 1], [2, inf, inf, 0]]),))
>>> p, predecessor, active = (np.array([0, inf, inf, inf]),), np.full(4, -1), np.array([0])
>>> for _ in range(2):
...     for offer, who in graph.offers(p, active):
...         active = np.flatnonzero(graph.take(p, offer, who, predecessor))
...     print(p[0], predecessor, active)
[ 0.  3. inf  7.] [-1  0 -1  0] [1 3]
[0. 3. 5. 7.] [-1  0  1  0] [2]
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any, cast

import numpy as np

from semiring.algebra.definition import Semiring
from semiring.algebra.expression import ARITHMETIC, BITWISE
from semiring.algorithms.csr import SparseArray, combine_runs
from semiring.arrays.pieces import CACHE, slices
from semiring.kernels.operations import Operations

__all__ = ["Relaxation", "better", "compared", "filled", "relaxation"]

Array = np.ndarray[Any, Any]
Values = tuple[Array, ...]


def relaxation(semiring: Semiring, values: Values) -> Relaxation:
    """The relaxation of a dense matrix, or of the components of a sparse one (`CSR.arrays`)."""
    return (_SparseRelaxation if isinstance(values[0], SparseArray) else Relaxation)(semiring, values)


class Relaxation:
    """Bellman–Ford steps on a dense matrix: values of vertices p, and p_v ← p_v ⊕ p_u ⊗ a_uv.

    Parameters
    ----------
    semiring : Semiring
    values : tuple of arrays of shape (n, n)
    """

    def __init__(self, semiring: Semiring, values: Values) -> None:
        self.n = int(values[0].shape[0])
        self.dtypes = _search_dtypes(semiring, tuple(v.dtype for v in values))
        self.operations = Operations(semiring, self.dtypes)
        self._values = values
        self._zero, _ = semiring.identities([v.dtype for v in values])

    def everywhere(self, element: tuple[Any, ...]) -> Values:
        """One element at every vertex."""
        return tuple(filled(self.n, e, d) for e, d in zip(element, self.dtypes, strict=True))

    def rows(self, vertices: Array) -> Values:
        """The edges from some vertices, in the dtypes of the search."""
        return self._widened(tuple(v[vertices] for v in self._values))

    def diagonal(self) -> Values:
        """The loops at all vertices, in the dtypes of the search."""
        return self._widened(tuple(v.diagonal() for v in self._values))

    def _widened(self, parts: Values) -> Values:
        """Elements of the matrix in the dtypes of the search, where "no edge" may be another number."""
        found = []
        for part, dtype, old, new in zip(parts, self.dtypes, self._zero, self.operations.zero, strict=True):
            wide = part.astype(dtype)
            if dtype != part.dtype and part.dtype.kind in "iu":
                wide[part == old] = new
            found.append(wide)
        return tuple(found)

    def multiply(self, p: Values, edges: Values) -> Values:
        """p ⊗ a, without a warning where that overflows."""
        with np.errstate(all="ignore"):
            return self.operations.mul(p, edges)

    def offers(self, p: Values, active: Array) -> Iterator[tuple[Values, Array]]:
        """For each block of the `active` vertices: the best values they offer to all vertices, and who offers each.

        `p` is read block by block, so that an offer which is taken at once is passed on within the same sweep.
        """
        for some in slices(len(active), self.n, CACHE):
            block = active[some]
            candidates = self.multiply(tuple(v[block, None] for v in p), self.rows(block))
            yield self._best(candidates, np.broadcast_to(block[:, None], (len(block), self.n)))

    def take(self, p: Values, offer: Values, who: Array, predecessor: Array, tolerance: float = 0.0) -> Array:
        """Where p accepts an offer of `offers`: there it is taken, in place, and who offers becomes the predecessor."""
        better = self.accepts(p, offer, tolerance)
        for old, new in zip(p, offer, strict=True):
            old[better] = new[better]
        predecessor[better] = who[better]
        return better

    def changes(self, old: Values, new: Values) -> Array:
        """Where old ⊕ new is not old."""
        return self._compare(old, new, 0.0)[0]

    def accepts(self, old: Values, new: Values, tolerance: float = 0.0) -> Array:
        """Where `new` replaces `old`: old ⊕ new is new, and not old (by more than the tolerance)."""
        changed, wins = self._compare(old, new, tolerance)
        return changed & wins

    def _compare(self, old: Values, new: Values, tolerance: float) -> tuple[Array, Array]:
        """`compared`, with a tolerance for floats alone."""
        return compared(self.operations, old, new, tolerance if self.dtypes[0].kind == "f" else 0)

    def _best(self, candidates: Values, who: Array) -> tuple[Values, Array]:
        """The best of each column, and its row; among equals the first."""
        while len(who) > 1:
            half = -(-len(who) // 2)
            first, second = (tuple(c[part] for c in candidates) for part in (slice(0, len(who) - half), slice(half, None)))
            better = self.accepts(first, second)
            best = tuple(np.where(better, s, f) for f, s in zip(first, second, strict=True))
            middle = slice(len(who) - half, half)
            candidates = tuple(np.concatenate([b, c[middle]]) for b, c in zip(best, candidates, strict=True))
            who = np.concatenate([np.where(better, who[half:], who[: len(who) - half]), who[middle]])
        return tuple(c[0] for c in candidates), who[0]


class _SparseRelaxation(Relaxation):
    """Bellman–Ford steps on a sparse matrix, where only edges are looked at."""

    def offers(self, p: Values, active: Array) -> Iterator[tuple[Values, Array]]:
        """For blocks of the `active` vertices, of about as many edges as the dense ones have entries."""
        edges = cast(SparseArray, self._values[0]).edges
        ends = np.cumsum(edges.starts[active + 1] - edges.starts[active])
        cuts = np.unique(np.searchsorted(ends, np.arange(CACHE, ends[-1] if len(ends) else 0, CACHE), side="right"))
        for block in np.split(active, cuts):
            position, number = edges.leaving(block)
            tails, heads = block[position], edges.heads[number]
            weights = self._widened(tuple(w[number] for w in edges.weights))
            candidates = self.multiply(tuple(v[tails] for v in p), weights)
            order = np.argsort(heads, kind="stable")
            heads, (*best, winners) = combine_runs(
                heads[order], (*(c[order] for c in candidates), tails[order]), partial(better, self.operations)
            )
            offer, who = self.everywhere(self.operations.zero), np.zeros(self.n, dtype=np.intp)
            for array, entries in zip((*offer, who), (*best, winners), strict=True):
                array[heads] = entries
            yield offer, who


def compared(operations: Operations, old: Values, new: Values, tolerance: float = 0) -> tuple[Array, Array]:
    """Where old ⊕ new is not old (for floats, by more than the tolerance), and where it is new."""
    with np.errstate(all="ignore"):
        total = operations.add(old, new)
        changed = np.zeros(total[0].shape, dtype=bool)
        wins = np.ones(total[0].shape, dtype=bool)
        for t, o, c in zip(total, old, new, strict=True):
            changed |= np.asarray(t != o, dtype=bool)
            wins &= np.asarray(t == c, dtype=bool)
        if tolerance:
            changed &= ~(np.abs(total[0] - old[0]) <= tolerance)
    return changed, wins


def better(operations: Operations, first: Values, second: Values) -> Values:
    """The better of two elements, each with who offers it in a last array; among equals the first."""
    changed, wins = compared(operations, first[:-1], second[:-1])
    return tuple(np.where(changed & wins, s, f) for f, s in zip(first, second, strict=True))


def filled(shape: int | tuple[int, ...], element: Any, dtype: np.dtype[Any]) -> Array:
    """An array of one element, which may be any object."""
    array = np.empty(shape, dtype=dtype)
    array.fill(element)  # as one object, if it is a sequence
    return array


def _search_dtypes(semiring: Semiring, dtypes: tuple[np.dtype[Any], ...]) -> tuple[np.dtype[Any], ...]:
    """DTypes that hold the weights of all walks of n edges, where the matrix's own may not."""
    if any(d.kind == "O" for d in dtypes):
        return dtypes
    operations = semiring.program.operations
    floats, wide = np.dtype(np.float64), np.dtype(np.int64)
    if not operations & ARITHMETIC or operations & BITWISE:
        whole = dict[str, np.dtype[Any]]()
    elif operations & ARITHMETIC == {"add"}:
        # Sums of n weights of the dtype fit, or the closure would have been refused.
        whole = {"i": wide}
    else:
        whole = {"i": floats, "u": floats}
    return tuple(floats if d.kind == "f" else whole.get(d.kind, d) for d in dtypes)
