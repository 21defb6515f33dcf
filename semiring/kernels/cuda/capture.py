"""Schedules of small matrices as CUDA graphs: recorded once per shape, each on its own workspace, then started by one call.

A recursive closure of 1,000 vertices is a hundred launches of a few microseconds, less time than Python takes to make them.
"""

from __future__ import annotations

import contextlib
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace
from typing import Any

from semiring.common import forks
from semiring.kernels.cuda.blocks import copy_into
from semiring.kernels.cuda.elements import for_each
from semiring.kernels.engine import Block

__all__ = ["RecordedGraph", "recording"]

_KEPT, _BYTES = 16, 256 << 20  # the most recordings kept, and the most memory of more than one

_lock = forks.lock()
_recordings: OrderedDict[Hashable, RecordedGraph | None] = OrderedDict()


@dataclass(frozen=True)
class RecordedGraph:
    """A recorded schedule and the memory it works on."""

    graph: Any  # cupy.cuda.Graph
    workspace: Block  # the block that the graph works on
    divergent: Any  # the array where the graph reports divergent pivots
    pool: Any  # cupy.cuda.MemoryPool, the owner of the temporaries' memory

    def play(self, A: Block) -> None:
        """Copy A to the workspace, launch the graph in the current stream, and copy back; update `via` where the graph found a witness."""
        for array, work in zip(A.values, self.workspace.values, strict=True):
            copy_into(array, work)
        self.graph.launch()
        for array, work in zip(A.values, self.workspace.values, strict=True):
            copy_into(work, array)
        if A.via is not None:
            # The workspace counts vertices from 0, and held −1 everywhere before.
            for_each("if (found >= 0) via = found + row", {"found": self.workspace.via, "via": A.via}, row=A.row)


def recording(key: Hashable, A: Block, schedule: Callable[[Block], Any]) -> RecordedGraph | None:
    """Return the recording for `key`, made at the second call; None at the first, whose kernels may still have to be compiled.

    Returns None also while the current stream is being captured. `key` is everything that the launches depend on except the elements. The
    workspace has A's shape, and counts its vertices from 0. `schedule` launches everything on the block it is given, and returns the array
    where it reports divergent pivots.
    """
    import cupy

    if cupy.cuda.get_current_stream().is_capturing():
        return None  # the caller's own capture records the launches
        # Neither two streams nor two threads may share a workspace.
    key = (key, threading.get_ident(), cupy.cuda.get_current_stream().ptr)
    with _lock:
        if key not in _recordings:
            _remember(key, None)
            return None
        found = _recordings[key]
        _recordings.move_to_end(key)
    if found is None:
        try:
            found = _record(A, schedule)
        except cupy.cuda.memory.OutOfMemoryError:  # a workspace takes more memory than the schedule alone
            return None
        with _lock:
            _remember(key, found)
    return found


def _record(A: Block, schedule: Callable[[Block], Any]) -> RecordedGraph:
    import cupy

    pool = cupy.cuda.MemoryPool()
    stream = cupy.cuda.Stream(non_blocking=True)
    with cupy.cuda.using_allocator(pool.malloc), stream:
        values = tuple(cupy.empty(v.shape, v.dtype) for v in A.values)
        via = None if A.via is None else cupy.empty(A.via.shape, A.via.dtype)
        workspace = replace(A, values=values, via=via, row=0, column=0)
        stream.begin_capture()
        try:
            if via is not None:
                via.data.memset_async(0xFF, via.nbytes)  # −1 everywhere
            divergent = schedule(workspace)
        except BaseException:
            with contextlib.suppress(Exception):  # else it would hide the error that ended the recording
                stream.end_capture()
            raise
        graph = stream.end_capture()
    return RecordedGraph(graph, workspace, divergent, pool)


def _remember(key: Hashable, found: RecordedGraph | None) -> None:

    _recordings[key] = found
    while len(_recordings) > _KEPT or (len(_recordings) > 1 and sum(r.pool.total_bytes() for r in _recordings.values() if r) > _BYTES):
        _recordings.popitem(last=False)
