"""What a closure with paths returns: the elements, and the best paths between their vertices.

Names of vertices come in and go out here; what is asked is answered by a store, out of a construction matrix or of predecessor trees.
"""

from __future__ import annotations

import copy
import os
from collections.abc import Callable, Hashable, Sequence
from typing import Any, Self

import numpy as np

from semiring.algebra.catalogue import as_semiring
from semiring.algebra.definition import Semiring
from semiring.algorithms.divergence import is_min_plus
from semiring.common.errors import GraphError, raised_here
from semiring.common.units import counted
from semiring.graphs.vertices import Vertices
from semiring.results.construction import ConstructionMatrix
from semiring.results.lookups import Lookups
from semiring.results.store import Names, Store, Values, shown

__all__ = ["Paths"]

Array = np.ndarray[Any, Any]


class Paths(Lookups):
    """A closure with its paths: the elements of the matrix, and the best path between every two vertices.

    `apsp`, `closure` and `transitive_closure` make it with ``paths=True``. Vertices are named by the caller's labels where the graph had
    some, and by their index otherwise: ``paths["a", "c"]`` is a distance. Of a batch, ``paths[b]`` are the paths of matrix b.

    Examples
    --------
    >>> import semiring as sr
    >>> ways = sr.edges([("a", "b", 1.0), ("b", "c", 2.0), ("a", "c", 9.0)])
    >>> paths = sr.apsp(ways, paths=True)
    >>> paths.path("a", "c")
    ['a', 'b', 'c']
    >>> float(paths["a", "c"])
    3.0

    Attributes
    ----------
    semiring : Semiring
    values : array of shape (…, n, n), or tuple of arrays
        The closure, as it would have been returned without paths.
    via : int32 array of shape (…, n, n)
        The construction matrix: an intermediate vertex of the path from i to j, −1 where it is an edge or there is none.
    nodes : tuple
        The names of the vertices in the order of the rows.
    reflexive : bool
        Whether the empty path from each vertex to itself counts.

    Notes
    -----
    What lies on a GPU stays there: matrices are computed there and given in the caller's own kind, and of paths only their vertices come to
    the host.
    """

    def __init__(
        self,
        semiring: Semiring,
        values: Values,
        via: Array,
        *,
        nodes: Sequence[Hashable] | None = None,
        reflexive: bool = True,
        kept: Callable[[], Values | None] = lambda: None,
        restore: Callable[[Array], Any] | None = None,
        library: Callable[[Array], Any] | None = None,
    ) -> None:
        names = Names(nodes, int(via.shape[-1]))
        every = Vertices.all_of(names.n)
        self._hold(ConstructionMatrix(semiring, values, names, every, every, reflexive, kept, via), restore, library)

    @classmethod
    def _of(cls, store: Store, restore: Callable[[Array], Any] | None = None, library: Callable[[Array], Any] | None = None) -> Self:
        """What the caller sees of a store; `restore` makes of elements, and `library` of vertices, what his own library has."""
        found = cls.__new__(cls)
        found._hold(store, restore, library)
        return found

    def _hold(self, store: Store, restore: Callable[[Array], Any] | None, library: Callable[[Array], Any] | None) -> None:
        """Take a store, and what makes the caller's own kind of it."""
        self.semiring, self.reflexive = store.semiring, store.reflexive
        self._store, self._restore, self._library = store, restore, library

    @property
    def nodes(self) -> tuple[Any, ...]:
        """The names of the vertices in the order of the rows."""
        return self._store.names.nodes

    @property
    @raised_here
    def via(self) -> Any:
        """The construction matrix.

        Raises
        ------
        AttributeError
            Between chosen vertices, where there are trees instead.
        """
        via = self._store.construction()
        if via is None:
            raise AttributeError("paths between chosen vertices have trees instead of a construction matrix: predecessors() or next_hops()")
        return self._imported(via)

    @property
    def values(self) -> Any:
        """The closure; between chosen vertices without an axis for one that was named by itself."""
        return shown(self._store.values, self._store.sources, self._store.targets, self._restore)

    @property
    @raised_here
    def distances(self) -> Any:
        """The distances of shortest paths; only for min-plus.

        Raises
        ------
        AttributeError
            Over any other semiring, whose elements are in `values`.
        """
        if not is_min_plus(self.semiring):
            raise AttributeError(f"elements of {self.semiring.name} are no distances; they are in .values")
        return self.values

    @staticmethod
    @raised_here
    def load(path: str | os.PathLike[str], *, semiring: Semiring | str | None = None, mmap: bool = False) -> Paths:
        """The paths that `save` has written, as NumPy arrays.

        Examples
        --------
        >>> import semiring as sr, tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     sr.apsp([[0, 2], [None, 0]], paths=True).save(f"{folder}/paths.npz")
        ...     sr.Paths.load(f"{folder}/paths.npz")
        <paths over min-plus: 2 vertices, 1 pair connected, 1 of them one way only>

        Parameters
        ----------
        path : path
        semiring : Semiring or str, optional
            Needed where it is not one of `semirings`. It is refused if it does not compute what the one that was saved did.
        mmap : bool
            Leave the matrices of an ``.npz`` file where they are, as `numpy.memmap`, for those that are larger than memory. They are read
            through once, as without it: for checksums, elements of the semiring, and vertices that exist.

        Returns
        -------
        Paths

        Raises
        ------
        GraphError
            For a file or folder that is damaged or nothing that `save` has written, naming its part and what is wrong with it.
        TooLargeError
            A MemoryError, where the matrices do not fit.
        SemiringError
            For another semiring, and without Zarr where that is needed.

        Notes
        -----
        A file need not be trusted: nothing of it is executed, no more memory is taken than the matrices have that it holds, and what comes
        out has the form of an answer: elements of the semiring, vertices that exist, and different names for them. Whether they are right
        is another question.
        """
        from semiring.results import saving

        return Paths._of(saving.load(path, None if semiring is None else as_semiring(semiring), mmap=mmap))

    @raised_here
    def __getitem__(self, index: Any) -> Any:
        """The element of a pair of vertices, as `distance` gives it; of a batch, the paths of one matrix, or of some.

        Examples
        --------
        >>> import numpy as np, semiring as sr
        >>> paths = sr.apsp(sr.edges([("a", "b", 1.0), ("b", "c", 2.0)]), paths=True)
        >>> float(paths["a", "c"])
        3.0
        >>> batch = sr.apsp(np.array([[[0.0, 1.0], [4.0, 0.0]], [[0.0, 2.0], [5.0, 0.0]]]), paths=True)
        >>> float(batch[1][0, 1])
        2.0

        Raises
        ------
        GraphError
            For what is no pair of vertices of the graph, or of the chosen ones.
        IndexError
            For matrices that a batch does not have.
        """
        axes = len(self._store.batch)
        if not axes:
            return self.distance(*self._pair(index))
        key = index if isinstance(index, tuple) else (index,)
        if len(key) > axes:
            one = ", ".join("0" * axes)
            raise IndexError(f"paths of a batch with {axes} axes take no index {index!r}; paths[{one}] are those of one matrix")
        some = copy.copy(self)
        some._store = self._store[key]
        return some

    def _pair(self, index: Any) -> tuple[Any, Any]:
        """The two vertices of an index. A tuple may be the name of one vertex too."""
        names = self._store.names
        alone = index in names
        if isinstance(index, tuple) and len(index) == 2 and not (alone and not all(node in names for node in index)):
            return index
        example = "paths[source, target] is the element of a pair of vertices"
        if not alone:
            raise GraphError(f"paths of one graph take no index {index!r}; {example}")
        row = "distances" if is_min_plus(self.semiring) else "values"
        raise GraphError(f"{index!r} is one vertex, and {example}; .paths_from({index!r}) are all paths from it, and its row is in .{row}")

    @raised_here
    def __len__(self) -> int:
        """How many matrices a batch holds."""
        if not self._store.batch:
            raise TypeError("the paths of one matrix have no length; .nodes tells its vertices")
        return self._store.batch[0]

    def __repr__(self) -> str:
        store = self._store
        ends = zip(store.shape, ("source", "target"), strict=True)
        chosen = " × ".join(f"{count:,} {what}{'s' * (count != 1)}" for count, what in ends)
        size = counted(store.names.n, "vertex", "vertices") if store.complete else chosen
        many = f", batch of {' × '.join(map(str, store.batch))}" if store.batch else ""
        connected = f", {counted(store.connected(), 'pair')} connected" if store.countable else ""
        if store.complete and store.countable and (alone := store.one_way()):
            connected += f", {alone:,} of them one way only"
        return f"<paths over {self.semiring.name}: {size}{many}{connected}>"

    def _repr_html_(self) -> str:
        from semiring.results.views import paths_html

        return paths_html(self._store)
