"""The executor of closures within a limit: a sparse array of the elements that are at least as preferred, or their `Paths`.

Searches of a sparse graph stop at the limit. Other strategies compute rows, a block at a time where they can, and keep what is within.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from semiring.algorithms.csr import CSR, SparseArray, present, starts_of
from semiring.algorithms.within import joined, rows_within
from semiring.arrays.conversion import Array, Values
from semiring.arrays.devices import device_of, host, is_gpu
from semiring.arrays.pieces import HOST, slices
from semiring.common.errors import GraphError, SemiringError, library
from semiring.common.progress import Meter
from semiring.execution.question import GivenGraph, Question, Selection
from semiring.execution.row_solvers import row_solver, search_steps
from semiring.graphs.vertices import Vertices
from semiring.kernels.operations import operations_for
from semiring.planning import Plan
from semiring.results.paths import paths_in
from semiring.results.store import Names
from semiring.results.within import TreesWithin

__all__ = ["close", "entries_within", "parts_within"]


def close(
    otherwise: Callable[..., Any], how: Plan, given: GivenGraph, question: Question, selection: Selection | None, meter: Meter | None
) -> Any:
    """Compute the elements within the limit of the question; `otherwise` is the plan's executor for a closure without a limit."""
    options, edges = question.options, given.edges
    chosen = Selection.all_of(given.n) if selection is None else selection
    if edges is not None and how.by_edges:
        if meter is not None:
            meter.expect(search_steps(edges, len(chosen.roots)))
        parts = parts_within(how, edges, given, question, chosen, question.worst(edges.dtypes), meter)
        return _answer(question, given, chosen, joined(list(parts)), paths=how.paths)
    whole = otherwise(how, given, question._replace(options=options._replace(limit=None)), selection, meter)
    return _cut_whole(whole, question, given, chosen)


def parts_within(
    how: Plan, edges: CSR, given: GivenGraph, question: Question, chosen: Selection, limit: tuple[Any, ...], meter: Meter | None
) -> Iterator[CSR]:
    """Find the rows of the roots by edges (`backward`: columns, as rows), some at a time."""
    roots, searches, reflexive, backward = chosen.roots, how.searches, question.reflexive, chosen.backward
    every = [slice(0, len(roots))]
    if how.strategy == "search" and how.problem.limit is not None and searches is not None and searches.selective:
        for some in list(slices(len(roots), int(edges.n * how.problem.reach.found) + 1, HOST)) or every:
            yield rows_within(searches, edges, roots[some], limit, reflexive=reflexive, backward=backward, paths=how.paths, meter=meter)
        return
    solver = row_solver(how, edges, given.vertices)
    for some in list(slices(len(roots), edges.n, HOST) if how.strategy != "condensation" else ()) or every:
        values, tree = solver.rows(roots[some], meter, reflexive=reflexive, backward=backward)
        if backward:
            values, tree = tuple([v.T for v in values]), None if tree is None else tree.T
        yield entries_within(question, values, tree, limit)


def entries_within(question: Question, values: Values, tree: Array | None, limit: tuple[Any, ...]) -> CSR:
    """Keep the elements x with limit ⊕ x = x, other than 0; the tree is a last component."""
    semiring, dtypes = question.semiring, tuple([v.dtype for v in values])
    operations, zero = operations_for(semiring, dtypes), semiring.identities(dtypes)[0]
    with np.errstate(all="ignore"):
        best = operations.add(tuple([np.asarray(x, d) for x, d in zip(limit, dtypes, strict=True)]), values)
    there = np.logical_and.reduce([np.asarray(b == v, bool) for b, v in zip(best, values, strict=True)])
    there &= present(values, zero)
    rows, columns = np.nonzero(there)
    arrays, absent = (values, zero) if tree is None else ((*values, tree.astype(np.int32, copy=False)), (*zero, -1))
    found = tuple([v[rows, columns] for v in arrays])
    return CSR(there.shape[1], starts_of(rows, len(there)), columns.astype(np.int32), found, absent)


def _cut_whole(whole: Any, question: Question, given: GivenGraph, chosen: Selection) -> Any:
    """Keep the elements within the limit of a dense answer."""
    store = getattr(whole, "_store", None)
    arrays = store.values if store is not None else whole if isinstance(whole, tuple) else (whole,)
    if getattr(arrays[0], "ndim", 0) > 2:
        raise GraphError("limit= is for one graph, not for a batch; pass one graph at a time, or a list")
    device = device_of(arrays[0])
    values = tuple([np.asarray(host(v)).reshape(len(chosen.sources.numbers), len(chosen.targets.numbers)) for v in arrays])
    matrices = entries_within(question, values, None, question.worst(tuple([v.dtype for v in values]))).arrays()
    if store is None:
        return _shown(matrices, device)
    tree = np.asarray(host(store.tree if hasattr(store, "tree") else store.predecessors()))
    rows, columns = np.nonzero(tree >= 0)
    links = CSR(tree.shape[1], starts_of(rows, len(tree)), columns, (tree[rows, columns],), (-1,))
    return _paths(question, given, chosen, matrices, SparseArray(links), store.kept)


def _answer(question: Question, given: GivenGraph, chosen: Selection, found: CSR, *, paths: bool) -> Any:
    """Return rows of the roots in the order that the caller asked for."""

    def placed(matrix: SparseArray) -> SparseArray:
        matrix = matrix.part(chosen.own, None)
        return matrix.transposed() if chosen.backward else matrix

    others = chosen.sources if chosen.backward else chosen.targets
    some = (others.numbers, None) if chosen.backward else (None, others.numbers)
    matrices = tuple([placed(m) for m in found.arrays()])
    values = matrices[:-1] if paths else matrices
    parts = values if others.every else tuple([m.part(*some) for m in values])
    return _paths(question, given, chosen, parts, matrices[-1], lambda: given.arrays) if paths else _shown(parts, "cpu")


def _paths(
    question: Question, given: GivenGraph, chosen: Selection, values: tuple[SparseArray, ...], tree: SparseArray, kept: Callable[[], Any]
) -> Any:
    sources, targets = (Vertices(v.numbers, every=v.every) for v in (chosen.sources, chosen.targets))  # one vertex is a row too
    stored: Any = values, tree
    store = TreesWithin(
        question.semiring, stored[0], Names(given.labels, chosen.n), sources, targets, question.reflexive, kept, stored[1],
        chosen.backward,
    )  # fmt: skip
    return paths_in(store, SparseArray.to_scipy)  # type: ignore[arg-type]  # its values are sparse


def _shown(matrices: tuple[SparseArray, ...], device: str) -> Any:
    """Return sparse arrays of SciPy, or of CuPy for a GPU."""
    arrays: tuple[Any, ...] = tuple([m.to_scipy() for m in matrices])
    if is_gpu(device):
        sparse = library("cupyx.scipy.sparse", "limit=")
        if any(a.dtype.kind not in "bf" for a in arrays):
            raise SemiringError("CuPy's sparse matrices hold floats and truth values; pass dtype='float64', or a matrix of the host")
        arrays = tuple(map(sparse.csr_matrix, arrays))
    return arrays[0] if len(arrays) == 1 else arrays
