"""Pinned output buffers for what a GPU computes."""

from __future__ import annotations

import threading
from concurrent.futures import Future

import numpy as np

from semiring.streaming.gpus import PinnedRows
from semiring.streaming.pipeline import HostMemory
from semiring.streaming.storage import Matrix, rows_of


def test_rows_are_written_when_the_buffer_is_ready() -> None:
    given, result = np.ones((4, 4)), np.zeros((4, 4))
    ready: Future[None] = Future()
    memory = HostMemory(Matrix((rows_of(given),), (PinnedRows(result, ready),)))
    writer = threading.Thread(target=memory.write_back, args=(slice(0, 2), ((given[:2],), None)), kwargs={"last": True})
    writer.start()
    writer.join(0.05)
    assert writer.is_alive()
    assert not result.any()
    memory.load(slice(2, 4), ((given[2:],), None), first=False)  # reading does not wait
    ready.set_result(None)
    writer.join(10)
    assert np.array_equal(result, [[1] * 4] * 2 + [[0] * 4] * 2)
