"""Schedules of small matrices as CUDA graphs: recorded once a shape on a workspace of their own, then started by one call.

A recursive closure of 1,000 vertices is a hundred launches of a few microseconds; without a graph Python would take longer than they do.
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

__all__ = ["Recording", "recording"]

_KEPT = 16
_BYTES = 256 << 20
"""Recordings that are kept, and the memory that they may have, except for a single one."""

_lock = forks.lock()
_recordings: OrderedDict[Hashable, Recording | None] = OrderedDict()


@dataclass(frozen=True)
class Recording:
    """A recorded schedule.

    Attributes
    ----------
    graph : cupy.cuda.Graph
    workspace : Block
        What the graph works on.
    divergent : array
        Where it tells of divergent pivots.
    pool : cupy.cuda.MemoryPool
        Owns the memory of its temporaries.
    """

    graph: Any
    workspace: Block
    divergent: Any
    pool: Any

    def play(self, A: Block) -> None:
        """A goes to the workspace, through the graph and back, in the current stream; of `via`, what the graph has found comes back."""
        for array, work in zip(A.values, self.workspace.values, strict=True):
            copy_into(array, work)
        self.graph.launch()
        for array, work in zip(A.values, self.workspace.values, strict=True):
            copy_into(work, array)
        if A.via is not None:
            # Vertices are counted from 0 there, and everything was −1.
            for_each("if (found >= 0) via = found + row", {"found": self.workspace.via, "via": A.via}, row=A.row)


def recording(key: Hashable, A: Block, schedule: Callable[[Block], Any]) -> Recording | None:
    """The recording for `key`, made at the second call with it; None at the first, when kernels may still have to be compiled.

    None also where the current stream is being recorded already.

    Parameters
    ----------
    key : hashable
        Everything that the launches depend on but the elements.
    A : Block
        Its shape is the workspace's; the workspace counts its vertices from 0.
    schedule : callable
        Launches everything on the block it is given, and returns where it tells of divergent pivots.
    """
    import cupy

    if cupy.cuda.get_current_stream().is_capturing():
        return None  # whoever records this stream records the launches
    # Two streams must not share a workspace, nor two threads.
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
        except cupy.cuda.memory.OutOfMemoryError:  # there may be room for the schedule, if not for a workspace
            return None
        with _lock:
            _remember(key, found)
    return found


def _record(A: Block, schedule: Callable[[Block], Any]) -> Recording:
    """Record the schedule on a new workspace."""
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
            with contextlib.suppress(Exception):  # which would be told in place of the error that ended the recording
                stream.end_capture()
            raise
        graph = stream.end_capture()
    return Recording(graph, workspace, divergent, pool)


def _remember(key: Hashable, found: Recording | None) -> None:
    """Keep a recording, and drop the oldest ones where there are too many."""
    _recordings[key] = found
    while len(_recordings) > _KEPT or (len(_recordings) > 1 and sum(r.pool.total_bytes() for r in _recordings.values() if r) > _BYTES):
        _recordings.popitem(last=False)
