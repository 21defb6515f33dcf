"""Vertices that a caller names by `sources=` and `targets=`: a single vertex, or a sequence."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from semiring.arrays.conversion import Array
from semiring.arrays.devices import host
from semiring.arrays.exchange import borrowed, lends_memory
from semiring.arrays.followed import require_entries
from semiring.common.errors import GraphError, described, listing, or_similar

__all__ = ["Vertices", "chosen", "one_vertex", "unknown_vertex"]

_SHOWN = 5  # vertices that a message names
_SEQUENCES = (list, tuple, range)  # types that are certainly no arrays


@dataclass(frozen=True, eq=False)
class Vertices:
    """Some vertices of a graph."""

    numbers: Array
    single: bool = False  # the caller named a single vertex; results have no axis for it
    every: bool = False  # all vertices of the graph, in its order

    @staticmethod
    @functools.lru_cache(maxsize=8)
    def all_of(n: int) -> Vertices:
        """Return all vertices of a graph of n."""
        numbers = np.arange(n)
        numbers.flags.writeable = False
        return Vertices(numbers, every=True)


def chosen(given: Any, n: int, labels: Sequence[Hashable] | None, what: str) -> Vertices:
    """Return the vertices that a caller names, by labels if the graph has some, else by numbers.

    None means all vertices. A label of the graph is one vertex, even if it is a tuple or a string. `what` is the name of the argument.
    Raises GraphError for an unknown vertex.
    """
    if given is None:
        return Vertices.all_of(n)
    require_entries(given, what)
    if type(given) not in _SEQUENCES and lends_memory(given):
        array = host(borrowed(given).array)
        if array.ndim > 1:
            raise GraphError(f"{what} is an array of shape {array.shape}; name vertices in a flat sequence")
        if labels is None and array.ndim and array.dtype.kind in "iu" and ((array >= 0) & (array < n)).all():
            return Vertices(array.astype(np.intp))
        nanoseconds = array.ndim and array.dtype.kind in "mM"  # tolist() would make integers
        given = list(array) if nanoseconds else array.tolist()
    find: Callable[[Any], int | None]
    if labels is None:
        find = functools.partial(_number, n)
    # The most frequent case: a label is its own number.
    elif type(given) is int and 0 <= given < len(labels) and type(labels[given]) is int and labels[given] == given:
        return Vertices(np.array([given]), single=True)
    else:
        find = functools.partial(_looked_up, {_key(label): i for i, label in enumerate(labels)})
    if (one := find(given)) is not None:
        return Vertices(np.array([one]), single=True)
    if isinstance(given, str | bytes) or not isinstance(given, Iterable):
        raise _unknown(given, what, labels or range(n))
    found = []
    for vertex in given:
        if (number := find(vertex)) is None:
            raise _unknown(vertex, what, labels or range(n))
        found.append(number)
    return Vertices(np.array(found, dtype=np.intp))


def _key(label: Hashable) -> Hashable:
    """Distinguish True from 1, so that a mask does not find the vertices 1 and 0."""
    return label, _is_truth(label)


def _is_truth(value: Any) -> bool:
    return isinstance(value, bool | np.bool_)


def _looked_up(index: Mapping[Hashable, int], label: Any) -> int | None:
    try:
        return index.get(_key(label))
    except TypeError:  # not hashable
        return None


def _number(n: int, vertex: Any) -> int | None:
    try:
        number = -1 if _is_truth(vertex) else operator.index(vertex)
    except TypeError:
        return None
    return number if 0 <= number < n else None


def _unknown(vertex: Any, what: str, labels: Sequence[Hashable]) -> GraphError:
    if _is_truth(vertex):
        return GraphError(f"{what}: there is no vertex {vertex!r}; for the numbers of a mask pass numpy.flatnonzero of it")
    return unknown_vertex(vertex, labels, f"{what}: ")


def unknown_vertex(vertex: Any, labels: Sequence[Hashable], where: str = "") -> GraphError:
    """Return the error for an unknown vertex, with the likeliest name and the kind of names: labels, or a range of numbers."""
    if not labels:
        there = "the graph has none"
    elif isinstance(labels, range):
        there = f"vertices are the numbers from 0 to {len(labels) - 1}"
    else:
        there = f"there are {listing(labels, _SHOWN)}"
    return GraphError(f"{where}there is no vertex {described(vertex)}; {or_similar(vertex, labels, there)}")


def one_vertex(vertex: Any, n: int, labels: Sequence[Hashable] | None, what: str) -> int:
    """Return the number of a single vertex, the argument `what`."""
    found = chosen(vertex, n, labels, what)
    if not found.single:
        raise GraphError(f"{what} must be one vertex, not {vertex!r}")
    return int(found.numbers[0])
