"""Graphs that several processes pass together: a shared file, one rank's graph, the same graph on all ranks, or each rank's own rows.

`GivenByRanks.of` recognizes the kind and checks that all ranks pass the same graph, before any entry is sent; `rows` then gives each rank
its own block rows.
"""

from __future__ import annotations

import functools
import hashlib
import os
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from semiring.algebra.definition import Semiring
from semiring.algorithms.csr import CSR
from semiring.arrays.conversion import Array
from semiring.arrays.devices import on_gpu
from semiring.arrays.exchange import ArrayLike
from semiring.common.errors import DTypeError, GraphError, SemiringError, ShapeError, described, library
from semiring.graphs.by_rows import GivenRows, ReadRows, given_rows, is_on_disk, rows_of_graph
from semiring.graphs.dense import Reading
from semiring.graphs.read import GivenMatrix, edges_of
from semiring.mpi.ranks import Ranks
from semiring.streaming.folder import digests
from semiring.streaming.layout import block_rows
from semiring.streaming.storage import OwnRows

__all__ = ["GivenByRanks"]

_AT_ONCE = 1024  # rows of a digest


@dataclass(frozen=True, eq=False)
class GivenByRanks:
    """A graph that several ranks pass together."""

    ranks: Ranks
    n: int
    dtypes: tuple[np.dtype[Any], ...]
    labels: tuple[Hashable, ...] | None  # the vertices in the order of the rows; None for 0 … n − 1
    edges: CSR | None  # the edges of a list of edges, on every rank
    dense: GivenRows | None  # the matrix, on a rank that can read block rows by itself
    root: int | None  # the only rank with the matrix, if there is one

    @classmethod
    def of(cls, ranks: Ranks, graph: Any, semiring: Semiring, reading: Reading, weight: Any) -> GivenByRanks:
        """Read a graph that the ranks pass together.

        Raises GraphError if the ranks pass different graphs; and the errors of reading on one rank.
        """
        kinds = ranks.allgather(_kind(graph))
        passing = [rank for rank, kind in enumerate(kinds) if kind is not None]
        if not passing:
            raise GraphError("no rank has passed a graph: pass a graph on one rank and None on the others, or on all ranks")
        root = passing[0] if len(passing) == 1 and ranks.size > 1 else None
        first = passing[0]
        for rank, kind in enumerate(kinds):
            if root is None and kind != kinds[first]:
                raise GraphError(
                    f"rank {first} passes {kinds[first]}, and rank {rank} {kind or 'None'}: pass the same kind of graph on all ranks, or a "
                    f"graph on one of them and None on the others"
                )
        if root is not None and kinds[root] == "a function":
            raise GraphError(
                f"only rank {root} passes a function rows(start, stop); pass the function on all ranks: each calls it for its own rows"
            )
        found: tuple[CSR | None, GivenRows | None, Any] = None, None, None
        with ranks.together():
            if graph is not None:
                found = _read(graph, semiring, reading, weight)
        edges, dense, labels = found
        if root is not None and (listed := ranks.allgather((edges, labels) if edges is not None else None)[root]) is not None:
            root, (edges, labels) = None, listed
        elif edges is not None:
            ranks.same(the_graph=_digest_of(edges, labels))
        about = ranks.allgather(None if dense is None else (dense.n, dense.dtypes, labels))
        if edges is not None:
            return cls(ranks, edges.n, edges.dtypes, labels, edges, None, None)
        if root is None:
            ranks.same(the_graph=(about[ranks.rank][0], tuple(map(str, about[ranks.rank][1]))))
            if kinds[first] == "an array":
                assert dense is not None
                some = block_rows(dense.n, _AT_ONCE)
                ranks.same(the_graph=ranks.working(lambda check: hashlib.sha256("".join(digests(dense.rows, some)).encode()).hexdigest()))
        n, dtypes, labels = about[first]
        return cls(ranks, n, dtypes, labels, None, dense, root)

    @property
    def here(self) -> tuple[Any, ...] | None:
        """The matrix as this rank can read it without the others and without a copy; else None."""
        if self.edges is not None:
            return self.edges.arrays()
        if self.dense is None or self.root is not None or not self.dense.as_they_are:
            return None
        return self.dense.arrays if all(isinstance(a, np.ndarray) for a in self.dense.arrays) else None

    def rows(self, owners: Sequence[int], rows: Sequence[slice]) -> GivenRows:
        """Return the block rows of this rank; a root sends each of the other ranks its rows."""
        if self.edges is not None:
            arrays = self.edges.arrays()
            rows_of_edges = tuple(ReadRows(a.shape, a.dtype, functools.partial(_read_edges, a)) for a in arrays)
            return GivenRows(rows_of_edges, arrays, as_they_are=False, overwritable=False, warned=True)
        if self.root is None:
            assert self.dense is not None
            return self.dense
        ranks, here = self.ranks, self.ranks.rank == self.root
        own = [r for r, owner in zip(rows, owners, strict=True) if owner == ranks.rank]
        with ranks.together():
            stores = [OwnRows.new(self.n, own, d) for d in self.dtypes]
            parts = [np.empty((max(r.stop - r.start for r in rows), self.n), d) for d in self.dtypes] if here else []
        for some, owner in zip(rows, owners, strict=True):
            with ranks.together():
                if self.dense is not None and here:
                    for source, part in zip(self.dense.rows, parts, strict=True):
                        source.read(some, part[: some.stop - some.start])
            for component, store in enumerate(stores):
                if here and owner == ranks.rank:
                    store.write(some, parts[component][: some.stop - some.start])
                elif here:
                    ranks.send(parts[component][: some.stop - some.start], owner)
                elif owner == ranks.rank:
                    ranks.receive(store[some], self.root)
        return GivenRows(tuple(stores), (), as_they_are=False, overwritable=False)


def _kind(graph: Any) -> str | None:
    if graph is None:
        return None
    if isinstance(graph, str | os.PathLike):
        return "the name of a file"
    if _is_function(graph):
        return "a function"
    if is_on_disk(graph):
        return "a file"
    return "an array" if hasattr(graph, "shape") or isinstance(graph, tuple | list) else "a graph"


def _is_function(graph: Any) -> bool:
    return callable(graph) and not hasattr(graph, "shape")


def _read(graph: Any, semiring: Semiring, reading: Reading, weight: Any) -> tuple[CSR | None, GivenRows | None, Any]:
    if isinstance(graph, str | os.PathLike):
        graph = _opened(graph)
    elif _is_function(graph):
        return None, given_rows(_made_by(graph, semiring.components), semiring, reading), None
    listed = edges_of(graph, semiring, nonedge=reading.nonedge, dtype=reading.dtype, presence=reading.presence, weight=weight)
    if listed is not None:
        return listed[0], None, listed[1]
    given = GivenMatrix.of(graph, semiring, reading)
    if len(given.shape) > 2 or any(d.kind == "O" for d in given.dtypes) or any(map(on_gpu, given.arrays)):
        raise SemiringError("comm= is for one matrix of numbers in the memory of the host or on disk, or for edges")
    if given.plain:
        return None, given.rows(), None
    read = given.read()
    return None, rows_of_graph(read), read.labels


def _opened(path: str | os.PathLike[str]) -> Any:
    name = os.fspath(path)
    if name.endswith(".npy"):
        return np.load(name, mmap_mode="r")
    if os.path.isdir(name) or name.endswith((".zarr", ".zip")):
        return library("zarr", "reading a Zarr array").open_array(store=name, mode="r")
    raise GraphError(f"with comm= the name of a file is that of an .npy file or a Zarr array, and not {name!r}; sr.read_edges reads others")


def _digest_of(edges: CSR, labels: Any) -> str:
    state = hashlib.sha256(repr((edges.n, [str(d) for d in edges.dtypes], labels)).encode())
    for array in (edges.starts, edges.heads, *edges.weights):
        state.update(np.ascontiguousarray(array).view(np.uint8).data)
    return state.hexdigest()


def _made_by(function: Callable[[int, int], Any], components: int) -> tuple[ArrayLike, ...]:
    """Return the components of a matrix whose rows the caller's function of a first and a last row makes."""
    n: int | None = None

    @functools.lru_cache(maxsize=1)  # one component after the other needs the same rows
    def made(start: int, stop: int) -> tuple[Array, ...]:
        nonlocal n
        given = function(start, stop)
        arrays = tuple(map(np.asarray, given if components > 1 else (given,)))
        for array in arrays:
            if array.ndim != 2 or array.shape != (stop - start, n or array.shape[1]) or len(arrays) != components:
                each = f"a tuple of {components} arrays, each " if components > 1 else ""
                wanted = f"{each}an array of {stop - start} × {n or 'n'} elements"
                raise ShapeError(f"rows({start}, {stop}) returned {described(given)}; it returns {wanted}")
            if array.dtype.kind not in "biuf":
                raise DTypeError(f"rows({start}, {stop}) returned elements of dtype {array.dtype}; numbers are wanted")
        n = arrays[0].shape[1]
        return arrays

    some = made(0, 1)
    return tuple(ArrayLike(_MadeRows(made, c, some[c])) for c in range(components))  # type: ignore[arg-type]  # indexed like an array


class _MadeRows:
    """One component of a matrix whose rows a function returns, indexed by slices of rows."""

    ndim = 2

    def __init__(self, made: Callable[[int, int], tuple[Array, ...]], component: int, first: Array) -> None:
        self._made, self._component = made, component
        self.shape, self.dtype = (first.shape[1], first.shape[1]), first.dtype

    def __getitem__(self, rows: slice) -> Array:
        """Return some rows, which must have the dtype of the first row."""
        part = self._made(rows.start, rows.stop)[self._component]
        if part.dtype != self.dtype:
            raise DTypeError(f"rows({rows.start}, {rows.stop}) returned elements of dtype {part.dtype}, and rows(0, 1) of {self.dtype}")
        return part


def _read_edges(array: Any, rows: slice, out: Array) -> None:
    out[...] = array[np.arange(rows.start, rows.stop)]
