"""Weighted edges into a matrix, dense or sparse: what sparse arrays, NetworkX graphs and edge lists have in common."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from semiring.algebra.definition import Semiring
from semiring.algebra.expression import CHOOSING, nodes
from semiring.algorithms.edges import Edges, combine_runs
from semiring.arrays.conversion import Array, Place, conversions, outside, refuse_nan, require_inside, widened, written_as
from semiring.arrays.devices import on_device
from semiring.arrays.memory import require_memory
from semiring.common.errors import DTypeError, brief
from semiring.graphs.edge_list import rounds
from semiring.graphs.graph import Graph, Reading, nonedges
from semiring.kernels.limits import ValueStatistics, absorbing
from semiring.kernels.operations import Operations
from semiring.kernels.overflow.statistics import surely_elements, value_statistics

__all__ = ["Coordinates", "compressed", "dense", "sparse"]

_EXACT_IN_FLOAT64 = 1 << 53
_FLOAT64 = (np.dtype(np.float64),)


class Coordinates(NamedTuple):
    """Weighted edges as they were passed: ``weights[:, e]`` at ``rows[e], columns[e]``.

    Attributes
    ----------
    rows, columns : int array
    weights : tuple of arrays
        One for each component.
    n : int
    where : callable
        Names an edge, for messages.
    labels : tuple or None
    """

    rows: Array
    columns: Array
    weights: tuple[Array, ...]
    n: int
    where: Place
    labels: tuple[Hashable, ...] | None = None


def dense(given: Coordinates, semiring: Semiring, reading: Reading, device: str = "cpu") -> Graph:
    """The dense matrix with the edges' weights in their places and zero elsewhere; equal places combine with ⊕.

    Parameters
    ----------
    given, semiring, reading
    device : str
        Where the matrix is made: a GPU fills it faster than it gets it.

    Notes
    -----
    O(n² + m log m) for m edges.
    """
    given = _stored(given, reading)
    dtypes = _dtypes(given.weights, semiring, reading.dtype, given.where)
    require_memory(given.n, dtypes, via=reading.paths)
    with on_device(device):
        return Graph(_in_order(given, semiring, reading, dtypes).dense(device), True, given.labels)


def sparse(given: Coordinates, semiring: Semiring, reading: Reading) -> Edges:
    """The edges in order; equal places combine with ⊕. O(m log m) for m edges."""
    given = _stored(given, reading)
    return _in_order(given, semiring, reading, _dtypes(given.weights, semiring, reading.dtype, given.where))


def compressed(graph: Any, semiring: Semiring, reading: Reading) -> Edges | None:
    """SciPy's compressed rows as edges in order, if nothing about them has to change; None where `sparse` has to look at them."""
    if graph.format != "csr" or semiring.components > 1 or semiring.on_truth_values or reading.presence or reading.nonedge is not None:
        return None
    weights, heads, starts, (n, *columns) = graph.data, graph.indices, graph.indptr, graph.shape
    dtypes = (weights.dtype,)
    if semiring.dtypes(_FLOAT64 if reading.dtype is None else reading.dtype) != dtypes or columns != [n]:
        return None
    if not (graph.has_canonical_format and len(heads) == len(weights) == starts[-1]):
        return None
    heads = heads.astype(np.intp)
    if len(heads) and heads.view(np.uintp).max() >= n:  # SciPy does not look where edges lead
        return None
    statistics = value_statistics((weights,), absorbing(semiring, dtypes))
    (found,), (zero,) = statistics, semiring.identities(dtypes)[0]
    least, greatest = found.finite or (zero, zero)
    absent = not (least <= zero <= greatest) or (zero == 0 and found.zeros == 0) or found.finite is None
    if not (absent and found.all_finite and surely_elements(semiring, (weights,), statistics)):
        return None
    return Edges(int(n), starts.astype(np.intp), heads, (weights,), (zero,), statistics)


def _stored(given: Coordinates, reading: Reading) -> Coordinates:
    """The edges without those whose weight means that there is none."""
    stored = ~nonedges(given.weights, reading.nonedge)
    if stored.all():
        return given
    kept = np.flatnonzero(stored)
    weights = tuple(w[kept] for w in given.weights)
    return given._replace(
        rows=given.rows[kept], columns=given.columns[kept], weights=weights, where=lambda e: given.where((int(kept[e[0]]),))
    )


def _in_order(given: Coordinates, semiring: Semiring, reading: Reading, dtypes: tuple[np.dtype[Any], ...]) -> Edges:
    zero, _ = semiring.identities(dtypes)
    weights = tuple(_present(w, given.where) for w in given.weights) if reading.presence else given.weights
    convert = conversions(semiring, [written_as(w.dtype, numbers=True) for w in weights], dtypes)
    entries = tuple(to(w, given.where) for to, w in zip(convert, weights, strict=True))
    statistics = _require_inside(semiring, entries, given.where)
    count = len(given.rows)
    rows, columns, entries = _combined(given.rows, given.columns, entries, given.n, semiring, given.labels)
    there = np.logical_or.reduce([np.asarray(e != z, dtype=bool) for e, z in zip(entries, zero, strict=True)])
    if not there.all():
        rows, columns, entries = rows[there], columns[there], tuple(e[there] for e in entries)
    edges = Edges.of(rows, columns, entries, given.n, zero)
    return replace(edges, statistics=statistics) if len(rows) == count else edges


def _require_inside(semiring: Semiring, entries: tuple[Array, ...], where: Place) -> tuple[ValueStatistics, ...]:
    """What the weights are; nothing where that is not told of their dtypes."""
    dtypes = tuple(e.dtype for e in entries)
    numbers = all(d.kind not in "bO" for d in dtypes)
    statistics = value_statistics(entries, absorbing(semiring, dtypes)) if numbers else ()
    index = None if surely_elements(semiring, entries, statistics) else outside(semiring, entries)
    if index is not None:
        require_inside(semiring, tuple(e[index] for e in entries), f"the weight of {where(index)}", advice=", or nonedge=nan")
    return statistics


def _present(weights: Array, where: Place) -> Array:
    """True for every edge, one of weight 0 too; only a weight that is a truth value itself tells whether there is an edge."""
    if weights.dtype.kind == "b":
        return weights
    refuse_nan(weights, where)
    if weights.dtype.kind == "O":
        return np.array([bool(w) if isinstance(w, bool | np.bool_) else True for w in weights], dtype=bool)
    return np.ones(weights.shape, dtype=bool)


def _dtypes(weights: tuple[Array, ...], semiring: Semiring, dtype: Any, where: Place) -> tuple[np.dtype[Any], ...]:
    """The dtypes asked for, else float64, else (for semirings without floats) bool or the weights' own."""
    own = tuple(widened(w.dtype) for w in weights)  # refuses text and complex numbers
    if dtype is not None:
        return semiring.dtypes(dtype)
    for candidate in (np.float64, np.bool_, own):
        try:
            semiring.identities(candidate)
        except DTypeError:
            continue
        dtypes = semiring.dtypes(candidate)
        break
    else:
        return semiring.dtypes(own)  # identities will say what is wrong with it
    for w, target in zip(weights, dtypes, strict=True):
        index = _rounded(w) if target.kind == "f" else None
        if index is not None:
            integer = int(w[index])
            same = w.dtype.kind != "O" and integer not in (np.iinfo(w.dtype).min, np.iinfo(w.dtype).max)  # which stand for ∞ there
            exact = f"np.{w.dtype}" if same else "object"
            none = "" if same else f", or nonedge={brief(integer)} if it means 'no edge'"
            problem = f"is {brief(integer)}, which float64 would round; pass dtype={exact}, or dtype=np.float64 to accept that{none}"
            raise DTypeError(f"{where((index,))} {problem}")
    return dtypes


def _rounded(weights: Array) -> int | None:
    """The position of an integer that float64 does not hold."""
    if weights.dtype.kind == "O":
        return next((position for position, w in enumerate(weights) if isinstance(w, int | np.integer) and rounds(int(w))), None)
    if weights.dtype.kind not in "iu":
        return None
    beyond = (weights > _EXACT_IN_FLOAT64) | (weights < -_EXACT_IN_FLOAT64)
    return int(np.argmax(beyond)) if beyond.any() else None


def _combined(
    rows: Array, columns: Array, entries: tuple[Array, ...], n: int, semiring: Semiring, labels: tuple[Hashable, ...] | None
) -> tuple[Array, Array, tuple[Array, ...]]:
    """Each place once, its entries combined with ⊕."""
    places = rows.astype(np.int64) * n + columns
    if (places[1:] > places[:-1]).all():
        return rows, columns, entries
    order = np.argsort(places, kind="stable")
    places, entries = places[order], tuple(e[order] for e in entries)
    if (places[1:] == places[:-1]).any():
        dtypes = tuple(e.dtype for e in entries)
        if any(d.kind in "iu" for d in dtypes) and not _stays_in_range(semiring):
            # Python's integers do not wrap, and the way back refuses what does not fit.
            exact = (np.dtype(object),) * len(dtypes)
            widen, narrow = conversions(semiring, dtypes, exact), conversions(semiring, exact, dtypes)
            places, entries = combine_runs(
                places, tuple(to(e, str) for to, e in zip(widen, entries, strict=True)), Operations(semiring, exact).add
            )

            def sum_of(index: tuple[int, ...]) -> str:
                u, v = divmod(int(places[index]), n)
                return f"the parallel edges from {u if labels is None else labels[u]!r} to {v if labels is None else labels[v]!r} together"

            entries = tuple(to(e, sum_of) for to, e in zip(narrow, entries, strict=True))
        else:
            places, entries = combine_runs(places, entries, Operations(semiring, dtypes).add)
    return places // max(n, 1), places % max(n, 1), entries


def _stays_in_range(semiring: Semiring) -> bool:
    """Whether ⊕ only selects or combines bits, so that no integer outgrows its dtype."""
    return {e.op for e in nodes(*semiring.program.add)} <= CHOOSING
