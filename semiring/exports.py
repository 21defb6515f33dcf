"""A closure with its paths as SciPy, NetworkX and pandas would have it."""

from __future__ import annotations

import importlib
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from semiring.algebra.definition import Semiring
from semiring.algebra.errors import DTypeError, SemiringError
from semiring.algebra.namespace import entries, host
from semiring.algorithms.divergence import is_min_plus
from semiring.construction import Construction

__all__ = ["as_floats", "to_frame", "to_networkx", "to_scipy"]

Array = np.ndarray[Any, Any]


def as_floats(values: Array, semiring: Semiring) -> Array:
    """Elements of one component as float64, with ∞ where an integer stands for that.

    Raises
    ------
    DTypeError
        For entries that are no numbers.
    """
    try:
        floats = values.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise DTypeError(f"the elements are no numbers: {error}; they are in .values") from None
    if values.dtype.kind in "iu":
        for identity, number in zip((semiring.zero, semiring.one), semiring.identities(values.dtype), strict=True):
            if isinstance(identity, float) and math.isinf(identity):
                floats[values == number[0]] = identity
    return floats


def to_scipy(found: Construction, predecessors: Array) -> tuple[Array, Array]:
    """See `Paths.to_scipy`."""
    if not is_min_plus(found.semiring):
        raise SemiringError(
            f"SciPy has functions for distances, and the elements are those of {found.semiring.name}; they are in .values, and what "
            f".predecessors() gives has SciPy's form"
        )
    return as_floats(host(found.values[0]), found.semiring), host(predecessors)


def to_networkx(found: Construction, nodes: Sequence[Any]) -> Any:
    """See `Paths.to_networkx`."""
    graph = _library("networkx", "to_networkx").DiGraph()
    graph.add_nodes_from(nodes)
    for sources, targets in found.pairs():
        middles = entries(found.via, sources, targets).tolist()
        parts = [entries(v, sources, targets).tolist() for v in found.values]
        weights = parts[0] if len(parts) == 1 else list(zip(*parts, strict=True))
        graph.add_edges_from(
            (nodes[s], nodes[t], {"weight": weight, "via": None if middle < 0 else nodes[middle]})
            for s, t, weight, middle in zip(sources.tolist(), targets.tolist(), weights, middles, strict=True)
        )
    return graph


def to_frame(found: Construction, nodes: Sequence[Any], *, labelled: bool, paths: bool) -> Any:
    """See `Paths.to_frame`."""
    pandas = _library("pandas", "to_frame")
    pieces = list(found.pairs())
    rows, columns = (np.concatenate([piece[axis] for piece in pieces] or [np.empty(0, np.intp)]) for axis in (0, 1))
    sources, targets = found.ends(rows, columns)
    mixed = len(set(map(type, nodes))) > 1  # pandas would make 2⁶⁰ + 1 beside 0.5 a float, and None NaN
    names = pandas.Index(list(nodes), dtype=object if mixed else None, tupleize_cols=False) if labelled else np.arange(found.n)
    table = {"source": names.take(sources), "target": names.take(targets)}
    single = len(found.values) == 1
    for c, v in enumerate(found.values):
        table["value" if single else f"value{c}"] = entries(v, rows, columns)
    if paths:
        routes = found.find(sources, targets, nodes)
        table["path"] = pandas.Series([[nodes[v] for v in route] for route in routes] if labelled else routes, dtype=object)
    return pandas.DataFrame(table)


def _library(name: str, method: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        raise SemiringError(f"{method} needs {name}, which is not installed: pip install {name}") from None
