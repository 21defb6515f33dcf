"""When the copies and the products of a closure by block rows ran, by CUDA events: how much of the copies is hidden.

    python -m benchmarks.timeline                                                 # n = 65,536 from NumPy, 8 GiB of one GPU
    python -m benchmarks.timeline --paths --csv benchmarks/timeline_h200.csv
    python -m benchmarks.timeline --draw benchmarks/timeline_h200.csv benchmarks/timeline_h200.svg
    mpiexec -n 2 python -m benchmarks.timeline --ranks --csv timeline.csv         # ranks of one GPU each, with their row panels

An interval begins when its stream has come to it and ends when the GPU is done with it. What is in several overlapping intervals
counts once. The look at the matrix before the rounds is in the picture, and not in the figures.
"""

from __future__ import annotations

import argparse
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

import semiring as sr
from benchmarks.gpu_large import Graph
from benchmarks.measure import hardware
from benchmarks.ranks import Rows
from benchmarks.records import read_csv, write_csv
from semiring.arrays.devices import gpus
from semiring.mpi.panels import NcclPanels
from semiring.streaming.pipeline import DevicePipeline

TO, PRODUCTS, BACK, PANELS = "to the GPU", "products", "from the GPU", "row panels"
KINDS = (TO, PRODUCTS, BACK, PANELS)
BEGIN = NcclPanels.begin


@dataclass(frozen=True)
class Interval:
    """Seconds from the beginning of the call."""

    device: int
    kind: str
    start: float
    end: float


class Recorder:
    """Wraps functions that ask the GPU for something, and keeps the events before and after it."""

    def __init__(self, devices: Sequence[int]) -> None:
        import cupy

        self._cupy, self._calls, self._inside = cupy, list[tuple[int, str, Any, Any]](), threading.local()
        self._begin = {}
        for device in devices:
            with cupy.cuda.Device(device):
                self._begin[device] = self._now()

    def _now(self) -> Any:
        event = self._cupy.cuda.Event()
        event.record()
        return event

    def timed(self, kind: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """The same function; what it calls itself does not count once more, and may be on its way into a CUDA graph."""

        def wrapped(*arguments: Any, **named: Any) -> Any:
            if getattr(self._inside, "now", False):
                return function(*arguments, **named)
            self._inside.now, start = True, self._now()
            try:
                return function(*arguments, **named)
            finally:
                self._inside.now = False
                self._calls.append((self._cupy.cuda.Device().id, kind, start, self._now()))

        return wrapped

    def pipeline(self, engine: Any, memory: Any, *rest: Any) -> DevicePipeline:
        """A `DevicePipeline` whose copies and products are recorded."""
        for name in ("multiply_add", "multiply_add_each", "multiply", "close", "run"):
            setattr(engine, name, self.timed(PRODUCTS, getattr(engine, name)))
        memory.load, memory.write_back = self.timed(TO, memory.load), self.timed(BACK, memory.write_back)
        memory.copy = self.timed(PANELS, memory.copy)
        return DevicePipeline(engine, memory, *rest)

    def broadcasts(self, panels: NcclPanels, *arguments: Any) -> list[Any]:
        """`NcclPanels.begin`, whose broadcasts are recorded in their own stream."""
        with panels.device, panels.stream:
            requests: list[Any] = self.timed(PANELS, BEGIN)(panels, *arguments)
            return requests

    def intervals(self) -> list[Interval]:
        """What was recorded, when the GPUs are done."""
        since = self._cupy.cuda.get_elapsed_time
        calls = [(d, kind, since(self._begin[d], start) / 1e3, since(self._begin[d], end) / 1e3) for d, kind, start, end in self._calls]
        return sorted((Interval(*call) for call in calls), key=lambda i: (i.device, i.start))


def union(intervals: Sequence[Interval]) -> list[tuple[float, float]]:
    """The same time in intervals that lie apart."""
    apart: list[tuple[float, float]] = []
    for i in sorted(intervals, key=lambda i: i.start):
        if apart and i.start <= apart[-1][1]:
            apart[-1] = apart[-1][0], max(apart[-1][1], i.end)
        else:
            apart.append((i.start, i.end))
    return apart


def common(a: Sequence[tuple[float, float]], b: Sequence[tuple[float, float]]) -> float:
    """How long both go on."""
    return sum(max(0.0, min(x[1], y[1]) - max(x[0], y[0])) for x in a for y in b)


def describe(intervals: Sequence[Interval]) -> list[str]:
    """For each device: how long its rounds took, for how much of that it multiplied, and how much of the copies is behind products."""
    lines = []
    for device in sorted({i.device for i in intervals}):
        own = [i for i in intervals if i.device == device]
        products = union([i for i in own if i.kind == PRODUCTS])
        begin, end = products[0][0], max(i.end for i in own)
        busy = sum(stop - start for start, stop in products)
        line = f"GPU {device}: rounds {end - begin:.2f} s, products {busy:.2f} s ({busy / (end - begin):.1%})"
        for kind in (TO, BACK, PANELS):
            copies = union([i for i in own if i.kind == kind and i.start >= begin])
            total = sum(stop - start for start, stop in copies)
            line += (
                f"; {'' if kind == PANELS else 'copies '}{kind} {total:.2f} s, {common(copies, products) / total:.1%} of it behind products"
                if total
                else ""
            )
        lines.append(line)
    return lines


def measure(n: int, limit: str, devices: int, *, paths: bool) -> list[Interval]:
    """The intervals of one closure, after another that compiled the kernels."""
    graph, matrix = Graph(n), np.empty((n, n), np.float32)
    _recorded(graph, matrix, limit, range(devices), paths=paths)
    return _recorded(graph, matrix, limit, range(devices), paths=paths)


def _recorded(graph: Graph, matrix: Any, limit: str, numbers: Sequence[int], *, paths: bool) -> list[Interval]:
    graph.fill(matrix)
    recorder = Recorder(numbers)
    device = [f"cuda:{d}" for d in numbers] if len(numbers) > 1 else "cuda"
    with patch("semiring.execution.block_rows.DevicePipeline", recorder.pipeline):
        found = sr.apsp(matrix, paths=paths, overwrite=True, memory_limit=limit, device=device, progress=False)
    graph.check(*((found.distances, found.via) if paths else (found,)))
    return recorder.intervals()


def measure_ranks(n: int) -> list[Interval]:
    """The intervals of one closure by ranks of one GPU each, on the first one those of all."""
    from mpi4py import MPI

    comm, rows = MPI.COMM_WORLD, Rows(n)
    gpu = comm.rank % gpus()
    recorder = None
    for _ in range(2):
        comm.barrier()
        recorder = Recorder([gpu])
        with (
            patch("semiring.execution.ranks.DevicePipeline", recorder.pipeline),
            patch.object(NcclPanels, "begin", lambda panels, *rest, to=recorder: to.broadcasts(panels, *rest)),
        ):
            sr.apsp(rows, comm=comm, device=f"cuda:{gpu}", progress=False)
    assert recorder is not None
    return [interval for intervals in comm.gather(recorder.intervals()) or () for interval in intervals]


def draw(intervals: Sequence[Interval], title: str, path: Path) -> None:
    """The whole call, and below it a part from its middle: a line for each kind, of each device."""
    import matplotlib.pyplot as plt

    lines = sorted({(i.device, i.kind) for i in intervals}, key=lambda line: (line[0], KINDS.index(line[1])))
    end = max(i.end for i in intervals)
    figure, axes = plt.subplots(2, figsize=(12, 1.6 + 0.8 * len(lines)), layout="constrained")
    for axis, (left, right) in zip(axes, ((0.0, end), (0.5 * end, 0.6 * end)), strict=True):
        for y, (device, kind) in enumerate(lines):
            shown = union([i for i in intervals if (i.device, i.kind) == (device, kind) and i.end >= left and i.start <= right])
            axis.broken_barh([(start, stop - start) for start, stop in shown], (y - 0.4, 0.8), color=f"C{KINDS.index(kind)}", linewidth=0)
        several = len({device for device, _ in lines}) > 1
        axis.set(xlim=(left, right), ylim=(len(lines) - 0.5, -0.5), yticks=range(len(lines)))
        axis.set_yticklabels([f"GPU {device}: {kind}" if several else kind for device, kind in lines])
    axes[0].set_title(title)
    axes[1].set_xlabel("seconds; below: a tenth of the call, enlarged")
    figure.savefig(path)


def main() -> None:
    """Measure, or draw what was measured."""
    parser = argparse.ArgumentParser(description="When copies and products ran")
    parser.add_argument("--n", type=int, default=65536)
    parser.add_argument("--limit", default="8GiB")
    parser.add_argument("--devices", type=int, default=1)
    parser.add_argument("--ranks", action="store_true", help="by the ranks that mpiexec has started")
    parser.add_argument("--paths", action="store_true")
    parser.add_argument("--csv", type=Path, help="write the intervals to this file")
    parser.add_argument("--draw", type=Path, nargs=2, metavar=("CSV", "PICTURE"), help="draw intervals that were written")
    options = parser.parse_args()
    if options.draw:
        (title, *_), intervals = read_csv(options.draw[0], Interval)
        draw(intervals, title, options.draw[1])
    else:
        if options.ranks:
            intervals, what = measure_ranks(options.n), f"n = {options.n:,} by ranks of one GPU each"
        else:
            intervals = measure(options.n, options.limit, options.devices, paths=options.paths)
            what = f"n = {options.n:,}{' with paths' if options.paths else ''} from NumPy, {options.limit} of a GPU"
        if options.csv and intervals:
            where = hardware("cuda")
            comments = (f"{what}: {where}", f"python -m benchmarks.timeline {' '.join(sys.argv[1:])}")
            write_csv(options.csv, intervals, comments, floats=".4f")
    print("\n".join(describe(intervals)))


if __name__ == "__main__":
    main()
