"""`watch`: record a closure step by step, to see how the algorithms work."""

from __future__ import annotations

from typing import Any

import numpy as np

from semiring.algebra.catalogue import MIN_PLUS, as_semiring
from semiring.algebra.definition import Semiring
from semiring.algorithms.closure import closure as close
from semiring.algorithms.recorder import Recorder, phases
from semiring.algorithms.schedules import eliminates, require_method, settled
from semiring.arrays.devices import device_of, host, on_device, on_gpu, to_gpu
from semiring.common.docstrings import described_by
from semiring.common.errors import ShapeError, TooLargeError, noted, raised_here
from semiring.execution.question import Question
from semiring.execution.whole import paths_of
from semiring.graphs import Graph
from semiring.planning.options import Options
from semiring.results.recording import Recording
from semiring.solve import apsp, closure

__all__ = ["watch"]

_LIMIT = 256
"""Vertices, at most, of a recorded graph; the frames then take up to a few hundred megabytes."""

_ROUNDS = 4
"""Pivot blocks of a recording, by default."""


@raised_here
@described_by(apsp, closure)
def watch(
    graph: Any,
    semiring: Semiring | str = MIN_PLUS,
    *,
    method: str = "blocked",
    block: int | None = None,
    paths: bool = False,
    reflexive: bool = True,
    weight: str | float | None = None,
    nonedge: Any = None,
    dtype: Any = None,
) -> Recording:
    """Record a closure step by step: the entries that each phase reads and writes, and the matrix afterwards.

    Jupyter shows the recording as a picture with a slider; `print` shows a table. The algorithms are the same as for `closure`, on the
    reference engine.

    Examples
    --------
    >>> import numpy as np, semiring as sr
    >>> inf = np.inf
    >>> roads = np.array([[0, 3, inf, 7], [8, 0, 2, inf], [5, inf, 0, 1], [2, inf, inf, 0]])
    >>> recording = sr.watch(roads, method="blocked", block=2)
    >>> print(recording[4])
    round 0, phase 4: A_IJ ← A_IJ ⊕ A_IK A_KJ
    >>> bool((recording[-1].values == recording.result).all())
    True

    Parameters
    ----------
    graph : array of shape (n, n), sparse array, NetworkX graph, or whatever else `closure` takes
        A graph of at most 256 vertices.
    semiring
        As for `closure`.
    method : {"blocked", "recursive", "iterative", "auto"}
        "auto" is recursive.
    block : int, optional
        Side of the pivot blocks (blocked) or of the base case (recursive). The default, a quarter of n, gives four rounds.
    paths : bool
        Also record the construction matrix; the result is a `Paths`.
    reflexive : bool
        True for A*, with the empty path from each vertex to itself, False for A⁺ without.
    weight, nonedge, dtype
        As for `apsp`.

    Returns
    -------
    Recording
        A sequence of frames with ``equation``, ``reads``, ``writes``, ``changed`` and ``values``. ``result`` equals the result of
        `closure` with the same method and block (up to rounding if ⊕ adds floats).

    Raises
    ------
    TooLargeError
        If the graph has more than 256 vertices.
    ShapeError
        If the argument holds several matrices.
    SemiringError
        As for `closure`.

    Notes
    -----
    n³ steps of NumPy, and memory for the matrix and for the elements that each frame changes.
    """
    semiring = as_semiring(semiring)
    require_method(method, block)
    paths = bool(paths or semiring.witness)
    with noted("the closure", semiring, graph):
        g = _read(graph, Question(semiring, Options(paths, weight=weight, nonedge=nonedge, dtype=dtype)))
        with on_device(device_of(g.values[0])):
            return _record(g, semiring, method, block or max(1, -(-g.n // _ROUNDS)), paths, reflexive)


def _read(graph: Any, question: Question) -> Graph:
    given = question.read(graph)
    if given.edges is None and (batch := given.form[1][:-2]):
        raise ShapeError(f"watch takes one matrix, not {' × '.join(map(str, batch))} of them; pass one matrix")
    if given.n > _LIMIT:
        raise TooLargeError(
            f"watch keeps every step, so a graph may have at most {_LIMIT} vertices, not {given.n:,}; watch a part, such as a subgraph or "
            f"matrix[:32, :32]. closure computes the whole graph, and explain shows the plan"
        )
    return given.read() if given.edges is None else Graph(given.edges.dense(), owned=True, labels=given.vertices)


def _record(g: Graph, semiring: Semiring, method: str, block: int, paths: bool, reflexive: bool) -> Recording:
    """Compute the closure with a recorder as the engine."""
    there, given = on_gpu(g.values[0]), tuple(map(host, g.values))
    values = tuple(np.array(v, order="C") for v in given)
    before = np.full(values[0].shape, -1, dtype=np.int32) if paths else None
    via = None if before is None else before.copy()
    recorder = Recorder(semiring, g.dtypes, values, via)
    close(recorder, values, via, method=method, block=block, reflexive=reflexive, kept=lambda: given, names=g.labels, verify=g.verify)
    recorder.finish(values, via)
    eliminate = eliminates(semiring, g.dtypes, paths=paths)
    algorithm, base = settled(method, block, g.n, recorder, eliminate=eliminate)
    text = f"{'blocked' if algorithm == 'iterative' else algorithm}_elimination" if eliminate else algorithm
    named = tuple(phases([call for call, _ in recorder.calls], text, g.n, base))
    results = tuple(to_gpu(v) for v in values) if there else values
    if via is None:
        result = g.answer(*results)
    else:
        result = paths_of(semiring, g, results, to_gpu(via) if there else via, lambda: given, reflexive=reflexive)
    side = None if algorithm == "iterative" else base
    return Recording(semiring, algorithm, side, given, before, recorder.calls, named, g.labels, result)
