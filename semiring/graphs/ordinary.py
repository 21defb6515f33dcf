"""Ordinary weights over a semiring of structured elements, converted by the semiring's `from_weight`."""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from semiring.algebra import ops
from semiring.algebra.definition import Semiring
from semiring.algebra.expression import evaluate, nodes
from semiring.arrays.conversion import EXACT_IN_FLOAT64, Array
from semiring.arrays.devices import namespace
from semiring.common.errors import DTypeError, GraphError, ShapeError
from semiring.graphs.array_like import ArrayLike
from semiring.graphs.dense import warn_of_zeros, zeros_may_mean_missing
from semiring.graphs.graph import matches

__all__ = ["element_of", "elements_of", "lists_components", "matrix_of", "require_weight"]


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
    """Return a mask of the weights that mean an element; only components that depend on weights are compared."""
    return functools.reduce(operator.and_, [_equal(parts[c], element[c], numbers=numbers) for c in carried])


def _equal(part: Array, value: Any, *, numbers: bool) -> Array:
    """Return a mask of entries equal to a value; the largest integer of a dtype is ∞, unless the entries were Python numbers."""
    if part.dtype.kind in "iu" and isinstance(value, float) and math.isinf(value) and not numbers:
        value = np.iinfo(part.dtype).max if value > 0 else np.iinfo(part.dtype).min
    return matches(part, value)
