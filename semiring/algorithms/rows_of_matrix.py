"""Best paths from some vertices of a dense graph: rows of its closure, by products of a few rows (multi-source Bellman–Ford).

D ← I at first, and D ← D ⊕ D ⊗ A until nothing changes: after k rounds D has all walks of up to k edges. Only vertices that changed in a
round have new offers in the next round, so only their rows of A are multiplied. ⊕ must be idempotent.

Examples
--------
>>> from semiring import MIN_PLUS
>>> from semiring.kernels import engine_for
>>> inf = np.inf
>>> roads = np.array([[0, 3, inf, 7], [8, 0, 2, inf], [5, inf, 0, 1], [2, inf, inf, 0]])
>>> engine = engine_for(MIN_PLUS, (roads.dtype,), "reference")
>>> rows_of_matrix(engine, (roads,), np.array([1, 0]))
(array([[5., 0., 2., 3.],
       [0., 3., 5., 6.]]),)
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from semiring.algorithms.bellman_ford import filled
from semiring.algorithms.csr import reached
from semiring.arrays.conversion import Array
from semiring.arrays.devices import differ, equal, host, namespace
from semiring.arrays.pieces import GPU, slices
from semiring.kernels.engine import Block, Engine

__all__ = ["reachable", "rows_of_matrix"]

Values = tuple[Any, ...]


def rows_of_matrix(
    engine: Engine,  # with a witness, for an idempotent ⊕ without a star, and computing on the arrays themselves
    values: Values,  # the matrix, which is only read
    sources: Array,
    *,
    reflexive: bool = True,
    backward: bool = False,
    tree: Any = None,  # output, int32 of the shape of the result, see `rows_of_edges`
    steps: float = math.inf,  # the steps after which the search gives up: the steps of the whole closure
) -> Values | None:
    """Find s rows of A* or of A⁺ (`backward`: columns); return None if n rounds or `steps` steps do not complete the rows.

    The result has the shape (s, n), or (n, s) if `backward`. It is None also if a source reaches a divergent cycle, real or by rounding.
    At most s·n² steps a round, and one round more than the edges of the longest path; memory for three results and a few million entries.
    """
    xp, n, s = namespace(values[0]), int(values[0].shape[0]), len(sources)
    zero, one = engine.semiring.identities(engine.dtypes)
    shape = (n, s) if backward else (s, n)
    places = (sources, np.arange(s)) if backward else (np.arange(s), sources)
    full = filled if xp is np else xp.full  # an element may be any object
    results = tuple(full(shape, z, d) for z, d in zip(zero, engine.dtypes, strict=True))
    delta = tuple(v.copy() for v in results)
    for arrays in (results, delta) if reflexive else (delta,):
        for array, unit in zip(arrays, one, strict=True):
            array[places] = unit
    A = engine.load(values, owned=False)
    active, spent = np.unique(sources), 0.0
    for _ in range(n + 1):
        if not len(active):
            return results
        spent += float(s) * len(active) * n
        if spent > steps:
            return None
        parts = _parts(active, n)
        if engine.meter is not None:
            engine.meter.expect(s * n * (n if isinstance(parts[0], slice) else len(active)))
        before = tuple(v.copy() for v in results)
        for chosen in parts:
            _lengthen(engine, delta, A, results, chosen, tree, backward=backward)
        changed = xp.zeros(shape, dtype=bool)
        for new, old in zip(results, before, strict=True):
            changed |= differ(new, old)
        active, delta = np.flatnonzero(host(changed.any(axis=1 if backward else 0))), tuple(v.copy() for v in results)
    return results if not len(active) else None


def _parts(active: Array, n: int) -> list[Any]:
    """Cut the active vertices into parts copied together; one slice, without a copy, if most vertices are active."""
    if 2 * len(active) > n:
        return [slice(None)]
    return [active[some] for some in slices(len(active), n, GPU)]


def _lengthen(engine: Engine, delta: Values, A: Block, results: Values, chosen: Any, tree: Any, *, backward: bool) -> None:
    """results ← results ⊕ delta ⊗ A, over the chosen columns of delta and rows of A."""
    xp = namespace(results[0])
    index: Any = chosen if isinstance(chosen, slice) else xp.asarray(chosen)
    few = engine.load(tuple(xp.ascontiguousarray(v[index] if backward else v[:, index]) for v in delta))
    edges = A if isinstance(chosen, slice) else Block(tuple(v[..., index] if backward else v[..., index, :] for v in A.values))
    via = None if tree is None else xp.full(tree.shape, -1, dtype=np.int32)
    C = engine.load(results, via)
    engine.multiply_add(*((edges, few) if backward else (few, edges)), C)
    engine.store(C, results)
    if tree is not None and via is not None:
        better = via >= 0
        tree[better] = via[better] if isinstance(chosen, slice) else index[via[better]]


def reachable(values: Values, zero: tuple[Any, ...], sources: Array, *, backward: bool = False) -> Array:
    """List the vertices reachable from any of the sources, or `backward` reaching any of them, these included, ascending."""
    n = int(values[0].shape[0])

    def heads(vertices: Array) -> Array:
        new = np.zeros(n, dtype=bool)
        for some in slices(len(vertices), n, GPU):
            index = namespace(values[0]).asarray(vertices[some])
            for v, z in zip(values, zero, strict=True):
                there = ~equal(v[:, index] if backward else v[index], z).astype(bool)
                new |= host(there.any(axis=1 if backward else 0))
        return np.flatnonzero(new)

    return reached(n, sources, heads)
