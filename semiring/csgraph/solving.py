"""From the arguments of a call to its answer, by the closure or by SciPy's searches."""

from __future__ import annotations

import warnings
from typing import Any

from semiring.algebra.errors import OverflowRiskError
from semiring.algebra.namespace import on_gpu, to_gpu
from semiring.csgraph.by_closure import closed
from semiring.csgraph.by_search import searched
from semiring.csgraph.call import Call, Request, read_call
from semiring.csgraph.choice import Choice
from semiring.csgraph.errors import as_both
from semiring.kernels.devices import device_of, on_device

__all__ = ["decide", "solve"]


def decide(csgraph: Any, request: Request) -> Choice:
    """Who computes a call."""
    return read_call(csgraph, request).choice()


def solve(csgraph: Any, request: Request) -> Any:
    """The answer to a call: distances, and with ``return_predecessors=True`` predecessors too."""
    call = read_call(csgraph, request)
    if call.request.method == "D" and call.negative:
        warnings.warn(
            "Graph has negative weights: here dijkstra computes them right, and raises NegativeCycleError for a negative cycle. "
            "SciPy's may be inaccurate, or never return.",
            stacklevel=3,
        )
    with as_both():
        first, *others = _computed(call)
    return (first, *others) if others else first


def _computed(call: Call) -> tuple[Any, ...]:
    there = on_gpu(call.graph.dense)
    choice = call.choice()
    if choice.engine == "scipy":
        answer = searched(call)
        if there:
            with on_device(device_of(call.graph.dense)):
                answer = tuple(map(to_gpu, answer))
    else:
        try:
            answer = closed(call, choice.device)
        except OverflowRiskError:
            if call.request.device != "auto" or there or call.in_place:
                raise
            answer = searched(call)  # which lets sums become ∞, as the caller may know
    return answer if call.graph.restore is None else tuple(map(call.graph.restore, answer))
