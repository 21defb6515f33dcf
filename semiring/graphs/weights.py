"""The weights of edges: an attribute or a column, a number for all, or 1 if no edge has a weight; and weights as structured elements.

One rule holds for every kind of graph. If no edge has a weight, each counts 1, with a warning about columns that look like weights. If some
edges have a weight, an edge without one is refused.

Over a semiring of structured elements, `from_weight` of the semiring converts ordinary weights: of listed edges, or a matrix of them.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Hashable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from semiring.algebra import ops
from semiring.algebra.definition import Semiring
from semiring.algebra.expression import evaluate, nodes
from semiring.arrays.conversion import EXACT_IN_FLOAT64, Array, Place
from semiring.arrays.devices import host, namespace
from semiring.arrays.exchange import ArrayLike, a_name_of, as_array_like, is_sparse, rounded_integer
from semiring.common.errors import DTypeError, GraphError, ShapeError, listing, or_similar
from semiring.graphs.dense import matches, warn_of_zeros, zeros_may_mean_missing
from semiring.graphs.edge_list import HIDDEN, EdgeList
from semiring.graphs.edge_table import is_number, require_weights, warn_of_unweighted

__all__ = [
    "components_of", "element_of", "elements_of", "lists_components", "matrix_of", "refuse_weight", "require_weight", "weighted",
    "with_values",
]  # fmt: skip


def with_values(graph: EdgeList, values: Any) -> EdgeList:
    """Give the edges other weights: a sequence with one for each edge. Raises ShapeError for another length."""
    found, m = list(values) if isinstance(values, list | tuple) else host(as_array_like(values).array), len(graph.sources)
    if len(found) != m:
        raise ShapeError(f"the values of edges have the shape ({len(found)},), and {m:,} edges need ({m},)")
    return replace(graph, weights=found)


def weighted(graph: EdgeList, weight: Any, *, presence: bool = False, warns: bool = True, where: str = "") -> EdgeList:
    """Give the edges the weights of an attribute or a column, or one number; without weights each is None, and counts 1.

    `presence` accepts edges without a weight, because only the presence of edges matters. `warns` allows an AssumptionWarning about edges
    that count 1 beside columns of numbers. Messages begin with `where`. An edge that NetworkX hides by the weight None is `HIDDEN`, unless
    only `presence` is requested. Raises GraphError for a name that no edge has, and for an edge without a weight among weighted ones.
    """
    found = graph if weight is None else _named(graph, weight, where)
    if presence and weight is None:
        hidden = not isinstance(found.weights, np.ndarray) and type(HIDDEN) in set(map(type, found.weights))
        return replace(found, weights=[None] * len(found.weights)) if hidden else found
    absent = _absent(found.weights)
    if presence or not absent:
        return found
    if any(w is not None and w is not HIDDEN for w in found.weights):
        name = repr("weight" if weight is None else weight)
        have = "has" if len(absent) == 1 else "have"
        raise GraphError(
            f"{where}{len(absent):,} of {len(found.weights):,} edges {have} no {name} though others do, such as "
            f"{found.edge_name(absent[0])}; give every edge a {name}, leave out edges without one, or pass weight=1 to count edges"
        )
    if weight is None and warns:
        # GraphML calls the number of an edge "id".
        warn_of_unweighted({name: found.columns[name] for name in found.columns if name != "id"}, where)
    return found


def _named(graph: EdgeList, weight: Any, where: str) -> EdgeList:
    _require_name(weight)
    m = len(graph.weights)
    values: Sequence[Any] | Array | None = graph.columns.get(weight)
    if values is None:
        values = graph.weights if weight == "weight" else [None] * m
    if len(_absent(values)) < m:
        return replace(graph, weights=values if isinstance(values, np.ndarray) else list(values))
    if m and not is_number(weight):
        weighs = len(_absent(graph.weights)) < m
        names = list(dict.fromkeys([*(["weight"] if weighs else []), *graph.columns]))
        known = f"; {or_similar(weight, names, f'edges have {listing(names)}')}" if names else ""
        raise GraphError(f"{where}no edge has the attribute or column {weight!r}{known}")
    return replace(graph, weights=[weight if is_number(weight) else None] * m)


def _absent(weights: Sequence[Any] | Array) -> list[int]:
    """Return the positions of edges without a weight; an array of numbers has none."""
    if isinstance(weights, np.ndarray) and weights.dtype != object:
        return []
    return [position for position, weight in enumerate(weights) if weight is None]


def _require_name(weight: Any) -> None:
    if isinstance(weight, bool | np.bool_) or callable(weight) or not isinstance(weight, Hashable):
        shown = weight if isinstance(weight, bool | np.bool_) else a_name_of(weight)
        raise GraphError(f"weight is {shown}; pass the name of an attribute of edges, or a number that every edge counts")


def refuse_weight(graph: Any, weight: Any) -> None:
    """Refuse a weight by name for an array, whose entries are the weights."""
    if not (is_sparse(graph) or isinstance(graph, list | tuple)):
        as_array_like(graph)  # raises for other objects
    _require_name(weight)
    table = f"; of a table with a row for each edge pass sr.edges(frame, source=…, target=…, weight={weight!r})"
    raise GraphError(
        f"weight={weight!r} is for edges with attributes or columns, and the entries of {a_name_of(graph)} are the weights themselves; "
        f"leave it out{table if hasattr(graph, 'columns') else ''}"
    )


def require_weight(semiring: Semiring, what: str) -> None:
    """Refuse ordinary weights if the semiring has no `from_weight`."""
    if semiring.from_weight is None:
        raise GraphError(
            f"{what}; for ordinary weights, where {semiring.name} is defined say what one means: from_weight=lambda w: (w, …), a tuple of "
            f"{semiring.components}"
        )


def lists_components(graph: Any, semiring: Semiring) -> bool:
    """Return True for a tuple of matrices, one a component of an element, and False for a matrix of ordinary weights.

    Raises ShapeError for a tuple of more or fewer matrices.
    """
    if not isinstance(graph, tuple | list) or len(graph) != semiring.components:
        if isinstance(graph, tuple) and any(len(getattr(part, "shape", ())) > 1 for part in graph):
            count = semiring.components
            raise ShapeError(f"a matrix over {semiring.name} is a tuple of {count} equally shaped arrays, not of {len(graph)}")
        return False
    # A list of rows of numbers is a nested list, even with as many rows as components.
    rows = isinstance(graph, list) and isinstance(graph[0], list | tuple) and not any(isinstance(v, list | tuple) for v in graph[0])
    return not rows


def matrix_of(given: ArrayLike, semiring: Semiring, *, warn: bool = False) -> tuple[ArrayLike, ...]:
    """Convert a dense matrix of ordinary weights to one for each component; `warn` of zeros that may be missing edges.

    A loop that would change nothing, as of length 0, is dropped: a semiring that counts paths would count the loop again and again.
    """
    array = given.array
    if given.missing is not None and array.dtype.kind == "O":
        array = np.where(given.missing, 1, array)
    parts, carried = _parts(array, semiring)
    missing = _hold(parts, carried, semiring.zero, numbers=given.numbers)
    if given.missing is not None:
        missing = missing | given.missing
    loops = namespace(array).eye(array.shape[-1], dtype=bool)
    if warn and not missing.any() and any(zeros_may_mean_missing(semiring.zero[c], semiring.one[c]) for c in carried):
        warn_of_zeros(int((matches(array, 0) & ~loops).sum()), semiring.zero[carried[0]])
    missing = missing | (loops & _hold(parts, carried, semiring.one, numbers=given.numbers))
    return tuple(replace(given, array=part, missing=missing if missing.any() else None) for part in parts)


def components_of(weights: list[Any] | Array, semiring: Semiring, where: Place) -> tuple[Array, ...]:
    """Return the weights of a list of edges, an array for each component: 1 for None, and the semiring's zero for a hidden edge."""
    if isinstance(weights, np.ndarray):
        if semiring.components == 1 and weights.dtype.kind in "biuf":
            return (weights,)
        weights = weights.tolist()
    if semiring.components == 1:
        one = True if isinstance(semiring.zero, bool) else 1
        return (_numbers([one if w is None else semiring.zero if w is HIDDEN else w for w in weights], where),)
    if semiring.from_weight is not None and not any(isinstance(w, tuple) for w in weights):
        parts = elements_of(_numbers([1 if w is None or w is HIDDEN else w for w in weights], where), semiring)
        if not any(w is HIDDEN for w in weights):
            return parts
        elements = zip(*(part.tolist() for part in parts), strict=True)
        weights = [w if w is HIDDEN else element for w, element in zip(weights, elements, strict=True)]
    weights = [semiring.zero if w is HIDDEN else w for w in weights]
    for position, weight in enumerate(weights):
        if not isinstance(weight, tuple) or len(weight) != semiring.components:
            problem = f"{where((position,))} needs a weight of {semiring.components} components for {semiring.name}, not {weight!r}"
            require_weight(semiring, problem)
            raise GraphError(f"{problem}; all edges have such weights, or none")
    columns = zip(*weights, strict=True) if weights else ((),) * semiring.components
    return tuple(_numbers(list(column), where) for column in columns)


def _numbers(values: list[Any], where: Place) -> Array:
    """Return one array of all the values: numbers, or else objects (Fractions; truth values among numbers, which NumPy would convert)."""
    require_weights(values, lambda position: where((position,)), structured=False)
    kinds = set(map(type, values))
    truths = {issubclass(kind, bool | np.bool_) for kind in kinds}
    if len(truths) < 2 and all(issubclass(kind, int | float | np.bool_ | np.integer | np.floating) for kind in kinds):
        numbers = np.array(values) if values else np.zeros(0)
        exact = numbers.dtype.kind == "f" and not any(issubclass(kind, int | np.integer) for kind in kinds)
        if exact or numbers.dtype.kind in "biu" or (numbers.dtype.kind == "f" and not rounded_integer(numbers, values)):
            return numbers
    return np.fromiter(values, object, len(values))


def element_of(weight: Any, semiring: Semiring) -> tuple[Any, ...]:
    """Convert one weight."""
    return tuple(part[()] for part in _parts(np.asarray(weight), semiring)[0])


def elements_of(weights: Array, semiring: Semiring) -> tuple[Array, ...]:
    """Convert the weights of listed edges, to an array for each component."""
    parts, carried = _parts(weights, semiring)
    missing = _hold(parts, carried, semiring.zero, numbers=True)
    if not missing.any():
        return parts
    return tuple(np.where(missing, np.array(z, dtype=p.dtype), p) for p, z in zip(parts, semiring.zero, strict=True))


def _parts(weights: Array, semiring: Semiring) -> tuple[tuple[Array, ...], list[int]]:
    """Return the components of converted weights, and the indices of components that depend on the weights."""
    expressions = semiring.recorded_from_weight
    carried = [c for c, e in enumerate(expressions) if any(x.op == "var" for x in nodes(e))]
    if weights.dtype.kind == "O":
        assert semiring.from_weight is not None
        return np.frompyfunc(semiring.from_weight, 1, semiring.components)(weights), carried
    if weights.dtype.kind in "iu" and any(expressions[c].op != "var" for c in carried):  # integers might wrap
        if (abs(weights.astype(np.float64)) > EXACT_IN_FLOAT64).any():
            raise DTypeError(f"the weights are integers beyond 2⁵³, which {semiring.name} would round; pass floats to accept that")
        weights = weights.astype(np.float64)
    parts = evaluate(expressions, (weights,), (), ops.TABLE)
    return tuple(p if c in carried else _full(weights, p) for c, p in enumerate(parts)), carried


def _full(weights: Array, value: Any) -> Array:
    """Return an array of one value, in the dtype of the weights if possible."""
    dtype = np.result_type(weights.dtype, np.min_scalar_type(value)) if weights.dtype.kind in "iuf" else None
    full: Array = namespace(weights).full(weights.shape, value, dtype=dtype)
    return full


def _hold(parts: Sequence[Array], carried: Sequence[int], element: tuple[Any, ...], *, numbers: bool) -> Array:
    """Return a mask of the weights that mean an element; only components that depend on weights are compared.

    The largest integer of a dtype is ∞, unless the weights were Python `numbers`.
    """
    masks = []
    for c in carried:
        value, dtype = element[c], parts[c].dtype
        if dtype.kind in "iu" and isinstance(value, float) and math.isinf(value) and not numbers:
            value = np.iinfo(dtype).max if value > 0 else np.iinfo(dtype).min
        masks.append(matches(parts[c], value))
    return functools.reduce(operator.and_, masks)
