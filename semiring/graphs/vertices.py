"""Vertices that a caller names by `sources=` and `targets=`: a single vertex, or a sequence."""

from __future__ import annotations

import functools
import operator
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from semiring.arrays.devices import host
from semiring.arrays.exchange import borrowed, lends_memory
from semiring.common.errors import GraphError, described, listing, or_similar

__all__ = ["Vertices", "chosen", "unknown_vertex"]

Array = np.ndarray[Any, Any]

_SHOWN = 5  # vertices that a message names
_SEQUENCES = (list, tuple, range)  # types that are certainly no arrays
_TEXTS = (str, bytes)  # iterable types that are one name


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
    if type(given) not in _SEQUENCES and lends_memory(given):
        array = host(borrowed(given).array)
        if array.ndim > 1:
            raise GraphError(f"{what} is an array of shape {array.shape}; name vertices in a flat sequence")
        if labels is None and array.ndim and array.dtype.kind in "iu" and ((array >= 0) & (array < n)).all():
            return Vertices(array.astype(np.intp))
        nanoseconds = array.ndim and array.dtype.kind in "mM"  # tolist() would make integers
        given = list(array) if nanoseconds else array.tolist()
    if labels is None:
        return _numbers(given, n, what)
    # The most frequent case: a label is its own number.
    if type(given) is int and 0 <= given < len(labels) and type(labels[given]) is int and labels[given] == given:
        return Vertices(np.array([given]), single=True)
    index = {_key(label): i for i, label in enumerate(labels)}
    if (one := _looked_up(given, index)) is not None:
        return Vertices(np.array([one]), single=True)
    if isinstance(given, str | bytes) or not isinstance(given, Iterable):
        raise _unknown(given, what, labels)
    found = []
    for vertex in given:
        if (number := _looked_up(vertex, index)) is None:
            raise _unknown(vertex, what, labels)
        found.append(number)
    return Vertices(np.array(found, dtype=np.intp))


def _key(label: Hashable) -> Hashable:
    """Distinguish True from 1, so that a mask does not find the vertices 1 and 0."""
    return label, _is_truth(label)


def _is_truth(value: Any) -> bool:
    return isinstance(value, bool | np.bool_)


def _looked_up(label: Any, index: Mapping[Hashable, int]) -> int | None:
    try:
        return index.get(_key(label))
    except TypeError:  # not hashable
        return None


def _numbers(given: Any, n: int, what: str) -> Vertices:
    single = type(given) in _TEXTS or (type(given) not in _SEQUENCES and not isinstance(given, Iterable))
    numbers = []
    vertices: Iterable[Any] = [given] if single else given
    for vertex in vertices:
        try:
            number = -1 if _is_truth(vertex) else operator.index(vertex)
        except TypeError:
            number = -1
        if not 0 <= number < n:
            raise _unknown(vertex, what, range(n))
        numbers.append(number)
    return Vertices(np.array(numbers, dtype=np.intp), single)


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
