"""Sources and targets: which vertices a caller names, one or a sequence of them."""

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

_SHOWN = 5
"""Vertices that a message names."""

_SEQUENCES = (list, tuple, range)
"""What is no array for sure."""

_TEXTS = (str, bytes)
"""What is one name, though it has parts."""


@dataclass(frozen=True, eq=False)
class Vertices:
    """Some vertices of a graph.

    Attributes
    ----------
    numbers : int array of shape (k,)
    single : bool
        Whether the caller named one by itself, so that results have no axis for it.
    every : bool
        Whether these are all vertices of the graph, in its order.
    """

    numbers: Array
    single: bool = False
    every: bool = False

    @staticmethod
    @functools.lru_cache(maxsize=8)
    def all_of(n: int) -> Vertices:
        """All vertices of a graph of n."""
        numbers = np.arange(n)
        numbers.flags.writeable = False
        return Vertices(numbers, every=True)


def chosen(given: Any, n: int, labels: Sequence[Hashable] | None, what: str) -> Vertices:
    """The vertices that a caller names, by their labels where the graph has some, and by their numbers otherwise.

    Parameters
    ----------
    given : vertex, iterable of vertices, or None
        None for all. A label of the graph is one vertex, even if it is a tuple or a string.
    n : int
    labels : sequence or None
    what : str
        The name of the argument.

    Raises
    ------
    GraphError
        For what is no vertex of the graph.
    """
    if given is None:
        return Vertices.all_of(n)
    if type(given) not in _SEQUENCES and lends_memory(given):
        array = host(borrowed(given).array)
        if array.ndim > 1:
            raise GraphError(f"{what} is an array of shape {array.shape}; name vertices in a flat sequence")
        if labels is None and array.ndim and array.dtype.kind in "iu" and ((array >= 0) & (array < n)).all():
            return Vertices(array.astype(np.intp))
        nanoseconds = array.ndim and array.dtype.kind in "mM"  # which tolist makes whole numbers
        given = list(array) if nanoseconds else array.tolist()
    if labels is None:
        return _numbers(given, n, what)
    if (known := _at_its_number(given, labels)) is not None:
        return known
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


def _at_its_number(given: Any, labels: Sequence[Hashable]) -> Vertices | None:
    """A vertex that is called by its own number, as most are that are called by numbers; None where it has to be looked up."""
    if type(given) is not int or not 0 <= given < len(labels):
        return None
    label = labels[given]
    return Vertices(np.array([given]), single=True) if type(label) is int and label == given else None


def _key(label: Hashable) -> Hashable:
    """True is 1 to Python, so that a mask would find the vertices 1 and 0; a truth value finds only a vertex that is called so."""
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
    """Says that an argument names what is no vertex."""
    if _is_truth(vertex):
        return GraphError(f"{what}: there is no vertex {vertex!r}; for the numbers of a mask pass numpy.flatnonzero of it")
    return unknown_vertex(vertex, labels, f"{what}: ")


def unknown_vertex(vertex: Any, labels: Sequence[Hashable], where: str = "") -> GraphError:
    """Says that there is no vertex of a name, which one is probably meant, and how vertices are named: by labels, or a range of numbers."""
    if not labels:
        there = "the graph has none"
    elif isinstance(labels, range):
        there = f"vertices are the numbers from 0 to {len(labels) - 1}"
    else:
        there = f"there are {listing(labels, _SHOWN)}"
    return GraphError(f"{where}there is no vertex {described(vertex)}; {or_similar(vertex, labels, there)}")
