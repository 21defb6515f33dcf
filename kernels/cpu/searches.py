"""Rows of the closure of a sparse graph by generated searches, one a source, over threads."""

from __future__ import annotations

import threading
from array import array
from itertools import chain
from typing import Any

import numpy as np

from semiring.algebra.definition import Semiring
from semiring.kernels.cpu.kernels import kernels_for
from semiring.kernels.cpu.search import FINISHED, Words, search_name
from semiring.kernels.cpu.threads import run, thread_count
from semiring.kernels.cpu.workspace import Workspace

__all__ = ["Searches"]

Array = np.ndarray[Any, Any]
Values = tuple[Array, ...]

_PATIENCE = 32
"""How many times as many entries as there are edges may leave the queue of a search in rounds."""

_LINE = 64
"""Bytes between two arrays of a queue at most."""


class Searches:
    """The searches over a semiring whose ⊕ is selective, in dtypes for which it can be compiled.

    Parameters
    ----------
    semiring : Semiring
    dtypes : tuple of numpy.dtype
    threads : int, optional
    """

    def __init__(self, semiring: Semiring, dtypes: tuple[np.dtype[Any], ...], threads: int | None = None) -> None:
        self.threads = thread_count(threads)
        self._kernels = kernels_for(semiring, dtypes)
        self._entry = 8 + sum(d.itemsize for d in dtypes)

    def rows(
        self,
        graph: tuple[Array, Array, Values],
        sources: Array,
        values: Values,
        tree: Array | None,
        *,
        best_first: bool,
        backward: bool,
    ) -> Array:
        """Improve rows by the walks from their sources, and tell which are complete.

        Parameters
        ----------
        graph : tuple
            Its compressed rows: where the edges from each vertex begin, where each leads, and what it weighs.
        sources : int array of shape (s,)
        values : tuple of contiguous arrays of shape (s, n)
            Zeros, but for what 1 is better than at the source itself.
        tree : int32 array of shape (s, n), optional
            To be filled with the vertex before each one whose element was found.
        best_first : bool
            Where no edge improves on 1. Otherwise the first row whose search takes too long, or n rounds, as with a cycle that improves,
            is left incomplete, and so are those behind it, whichever thread was there first.
        backward : bool
            Multiply by edges from the left.

        Returns
        -------
        bool array of shape (s,)
        """
        starts, heads = (np.ascontiguousarray(a, dtype=np.int64) for a in graph[:2])
        weights = tuple(map(np.ascontiguousarray, graph[2]))
        function = self._kernels.function(search_name(best_first=best_first, backward=backward))
        n, m = len(starts) - 1, len(heads)
        # Each vertex has its turn once a round, or once in all; then each edge adds an entry. The last turn finds none.
        room = m + 1
        size = (room * self._entry + len(values) * _LINE + _LINE) * (1 if best_first else 2)
        turns = room + 1 if best_first else _PATIENCE * room
        workspaces = [Workspace() for _ in range(min(self.threads, len(sources)))]
        incomplete, lock = len(sources), threading.Lock()

        def search(i: int, worker: int) -> None:
            nonlocal incomplete
            if i > incomplete:
                return
            words = Words(
                source=int(sources[i]),
                starts=starts.ctypes.data,
                heads=heads.ctypes.data,
                queue=workspaces[worker].address("queue", size),
                room=room,
                turns=turns,
                rounds=n + 1,
                tree=0 if tree is None else tree[i].ctypes.data,
            )
            places = chain.from_iterable((w.ctypes.data, v[i].ctypes.data) for w, v in zip(weights, values, strict=True))
            arguments = array("q", (*words, *places))
            function(arguments.buffer_info()[0])
            if not arguments[FINISHED]:
                with lock:
                    incomplete = min(incomplete, i)

        run(search, range(len(sources)), self.threads)
        complete: Array = np.arange(len(sources)) < incomplete
        return complete
