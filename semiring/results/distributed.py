"""`DistributedMatrix`: a matrix whose rows are distributed over the ranks of a communicator; and its store of predecessor trees."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from semiring.algorithms.csr import CSR
from semiring.arrays.conversion import Array
from semiring.arrays.pieces import HOST, slices
from semiring.common.errors import SemiringError, library, raised_here
from semiring.common.units import counted
from semiring.mpi.ranks import Ranks
from semiring.results.store import PredecessorTrees, via_of_trees
from semiring.streaming.layout import block_rows
from semiring.streaming.storage import ArrayRows, OwnRows, RowStorage

__all__ = ["DistributedMatrix", "DistributedTrees", "own_stripes", "shares"]


class DistributedMatrix:
    """A matrix whose rows are distributed over the ranks of a communicator: the result of a closure with ``comm=``.

    `own_rows` and `local` are the rows in the memory of this rank. Shape, dtype, own rows and repr need no communication. Everything else
    is a *collective* operation: all ranks call it at the same time with the same arguments, and each gets the result.

    Examples
    --------
    In a script that ``mpiexec -n 4 python roads.py`` starts, on all ranks:

    >>> import numpy as np, semiring as sr
    >>> from mpi4py import MPI
    >>> roads = np.array([[0, 3, np.inf], [np.inf, 0, 4], [2, np.inf, 0]])
    >>> far = sr.apsp(roads, comm=MPI.COMM_WORLD)
    >>> float(far[0, 2])
    7.0
    >>> far.rows(1)
    array([6., 0., 4.])

    Each rank knows its own rows without the others; here one rank has all rows:

    >>> far.own_rows, far.local.shape
    ((slice(0, 3, None),), (3, 3))

    Attributes
    ----------
    shape : tuple of int
    dtype : numpy.dtype
    own_rows : tuple of slice
        The rows of this rank, in ascending order.
    """

    ndim = 2

    def __init__(self, ranks: Ranks, own: RowStorage, rows: Sequence[slice], owners: Sequence[int]) -> None:
        self._ranks, self._own, self._rows = ranks, own, tuple(rows)
        self._owners = np.repeat(np.asarray(owners, dtype=np.intp), [r.stop - r.start for r in rows])
        self.shape, self.dtype = own.shape, own.dtype
        self.own_rows = tuple(r for r, owner in zip(rows, owners, strict=True) if owner == ranks.rank)

    def __len__(self) -> int:
        return self.shape[0]

    def __reduce__(self) -> Any:
        raise SemiringError("a distributed matrix belongs to the ranks of a communicator, and cannot be pickled; .to_npy(path) writes it")

    def __repr__(self) -> str:
        count = sum(r.stop - r.start for r in self.own_rows)
        n, m = self.shape
        return (
            f"<matrix of {n:,} × {m:,} elements ({self.dtype}): {counted(count, 'row')} on rank {self._ranks.rank} of {self._ranks.size}>"
        )

    @property
    def local(self) -> Array:
        """The rows of this rank, in the order of `own_rows`: an array of shape (m, n). Not collective."""
        if isinstance(self._own, OwnRows):
            return self._own.array
        parts = [self._part(rows) for rows in self.own_rows]
        return np.concatenate(parts) if parts else np.empty((0, self.shape[1]), self.dtype)

    @raised_here
    def rows(self, i: Any) -> Array:
        """Return a row, or the rows of a slice or of an array of numbers, on every rank. Collective.

        Examples
        --------
        >>> import numpy as np, semiring as sr
        >>> from mpi4py import MPI
        >>> far = sr.apsp(np.array([[0, 3], [1, 0.0]]), comm=MPI.COMM_WORLD)
        >>> far.rows(1)
        array([1., 0.])
        >>> far.rows([1, 0])
        array([[1., 0.],
               [0., 3.]])

        Parameters
        ----------
        i : int, slice or int array

        Returns
        -------
        array of shape (n,) or (m, n)
        """
        return self[i if isinstance(i, slice) else np.asarray(i)]  # type: ignore[no-any-return]  # a row at least

    def __getitem__(self, key: Any) -> Any:
        """Return elements, indexed as in NumPy by rows, or by rows and columns. Collective."""
        given = [k for k in (key if isinstance(key, tuple) else (key,)) if k is not Ellipsis]
        if len(given) > 2:
            raise IndexError(f"a matrix has two axes, and not {len(given)}")
        rows, columns = (*given, slice(None), slice(None))[:2]
        numbers = np.arange(self.shape[0])[rows]
        if isinstance(columns, slice):
            chosen = np.arange(self.shape[1])[columns]
            flat, pairs = numbers.ravel(), None
            shape: tuple[int, ...] = (*numbers.shape, len(chosen))
        elif isinstance(rows, slice):
            return self[rows][:, columns]
        else:
            numbers, pairs = np.broadcast_arrays(numbers, np.arange(self.shape[1])[columns])
            flat, pairs, shape = numbers.ravel(), pairs.ravel(), numbers.shape
        out = np.empty((len(flat), *shape[numbers.ndim :]), self.dtype)
        owners = self._owners[flat]
        for owner in np.unique(owners).tolist():
            there = np.flatnonzero(owners == owner)
            part = np.empty((len(there), *out.shape[1:]), self.dtype)
            if owner == self._ranks.rank:
                for place, at in enumerate(there.tolist()):
                    row = self._part(slice(int(flat[at]), int(flat[at]) + 1))[0]
                    part[place] = row[columns] if pairs is None else row[pairs[at]]
            self._ranks.bcast(part, root=owner)
            out[there] = part
        return out.reshape(shape)[()]

    def diagonal(self) -> Array:
        """Return the elements on the diagonal. Collective.

        Examples
        --------
        >>> import numpy as np, semiring as sr
        >>> from mpi4py import MPI
        >>> far = sr.apsp(np.array([[0, 3], [1, 0.0]]), comm=MPI.COMM_WORLD)
        >>> far.diagonal()
        array([0., 0.])

        Returns
        -------
        array of shape (n,)
        """
        every = np.arange(self.shape[0])
        return self[every, every]  # type: ignore[no-any-return]  # an array

    @raised_here
    def gather(self, root: int = 0) -> Array | None:
        """Return the whole matrix in the memory of one rank. Collective.

        Examples
        --------
        >>> import numpy as np, semiring as sr
        >>> from mpi4py import MPI
        >>> far = sr.apsp(np.array([[0, 3], [1, 0.0]]), comm=MPI.COMM_WORLD)
        >>> far.gather(root=0)
        array([[0., 3.],
               [1., 0.]])

        Parameters
        ----------
        root : int

        Returns
        -------
        array of shape (n, n), or None on all other ranks
        """
        if root not in range(self._ranks.size):
            raise SemiringError(f"root is {root!r}; it is one of the {self._ranks.size} ranks, counted from 0")
        here = self._ranks.rank == root
        with self._ranks.together():
            whole = np.empty(self.shape, self.dtype) if here else None
        for rows in self._rows:
            owner = int(self._owners[rows.start])
            if whole is not None and owner == root:
                self._own.read(rows, whole[rows])
            elif whole is not None:
                self._ranks.receive(whole[rows], owner)
            elif owner == self._ranks.rank:
                self._ranks.send(np.ascontiguousarray(self._part(rows)), root)
        return whole

    @raised_here
    def to_npy(self, path: str | os.PathLike[str]) -> None:
        """Write an ``.npy`` file that all ranks see; each rank writes its own rows. Collective.

        Examples
        --------
        >>> import numpy as np, semiring as sr, tempfile
        >>> from mpi4py import MPI
        >>> file = f"{tempfile.mkdtemp()}/far.npy"  # on several ranks the same
        >>> far = sr.apsp(np.array([[0, 3], [1, 0.0]]), comm=MPI.COMM_WORLD)
        >>> far.to_npy(file)
        >>> np.load(file)
        array([[0., 3.],
               [1., 0.]])

        Parameters
        ----------
        path : path
            ``numpy.load(path, mmap_mode="r")`` opens it.
        """
        with self._ranks.together():
            if self._ranks.rank == 0:
                np.lib.format.open_memmap(path, "w+", self.dtype, self.shape)
        with self._ranks.together():
            file = np.load(path, mmap_mode="r+")
            for rows in self.own_rows:
                self._own.read(rows, file[rows])
            file.flush()

    @raised_here
    def to_zarr(self, store: Any) -> None:
        """Write a Zarr array; each rank writes its own rows, and no chunk belongs to two ranks. Collective.

        Examples
        --------
        >>> import numpy as np, semiring as sr, tempfile, zarr
        >>> from mpi4py import MPI
        >>> store = f"{tempfile.mkdtemp()}/far.zarr"  # on several ranks the same
        >>> far = sr.apsp(np.array([[0, 3], [1, 0.0]]), comm=MPI.COMM_WORLD)
        >>> far.to_zarr(store)
        >>> zarr.open_array(store, mode="r").shape
        (2, 2)

        Parameters
        ----------
        store : path or store of Zarr's
            Visible to all ranks.
        """
        zarr = library("zarr", "to_zarr")
        side = max((r.stop - r.start for r in self._rows), default=1)
        with self._ranks.together():
            if self._ranks.rank == 0:
                columns = min(self.shape[1], 4096) or 1
                rows = next(part for part in range(1, side + 1) if side % part == 0 and side // part * columns <= 1 << 22)
                zarr.create_array(store=store, shape=self.shape, chunks=(side // rows, columns), dtype=self.dtype, overwrite=True)
        with self._ranks.together():
            array = zarr.open_array(store=store, mode="r+")
            for rows_ in self.own_rows:
                array[rows_] = self._part(rows_)

    def _like(self, local: Array) -> DistributedMatrix:
        """Return another matrix distributed by the same rows, from the own rows of this rank."""
        owners = [int(self._owners[rows.start]) for rows in self._rows]
        return DistributedMatrix(self._ranks, OwnRows(self.shape[0], self.own_rows, ArrayRows(local)), self._rows, owners)

    def _part(self, rows: slice) -> Array:
        part = np.empty((rows.stop - rows.start, self.shape[1]), self.dtype)
        self._own.read(rows, part)
        return part

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        raise SemiringError("a distributed matrix is no array of one rank; all ranks call .rows(i), .gather(root) or .to_zarr(store)")


def shares(count: int, ranks: int) -> tuple[slice, ...]:
    """Divide rows evenly: consecutive rows for each rank, equally many except for the last ranks."""
    return block_rows(count, max(1, -(-count // ranks)))


def own_stripes(matrix: DistributedMatrix) -> Iterator[tuple[int, Array]]:
    """Iterate over the rows of this rank in blocks, with the number of the first row. Not collective."""
    for rows in matrix.own_rows:
        for some in slices(rows.stop - rows.start, matrix.shape[1], HOST):
            first = rows.start + some.start
            yield first, matrix._part(slice(first, rows.start + some.stop))


@dataclass(eq=False)
class DistributedTrees(PredecessorTrees):
    """Predecessor trees whose `values` and `tree` are distributed by the same rows; all methods are collective."""

    def _via(self, edges: CSR) -> Any:
        tree = self._distributed
        first = tree.own_rows[0].start if tree.own_rows else 0
        values: Any = self.values
        return tree._like(via_of_trees(tree.local, tuple(v.local for v in values), edges, first))

    def _simple(self, rows: Array, columns: Array) -> Iterator[list[int] | None]:
        """Find the paths: the owner of a tree reads them, and sends them to all ranks."""
        tree = self._distributed
        own = np.flatnonzero(tree._owners[rows] == tree._ranks.rank)
        told = tree._ranks.allgather(dict(zip(own.tolist(), super()._simple(rows[own], columns[own]), strict=True)))
        found: dict[int, list[int] | None] = {pair: path for some in told for pair, path in some.items()}
        return map(found.__getitem__, range(len(rows)))

    def _tree_of(self, root: int) -> Any:
        return self._distributed._part(slice(root, root + 1))[0]

    @property
    def _distributed(self) -> DistributedMatrix:
        return cast(DistributedMatrix, self.tree)
