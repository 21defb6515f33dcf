"""From the arguments of a call to its answer, by the closure, by products of rows, or by searches, this library's or SciPy's."""

from __future__ import annotations

import warnings
from typing import Any

from semiring.algebra.errors import OverflowRiskError
from semiring.algebra.namespace import on_gpu, to_gpu
from semiring.csgraph.by_closure import closed
from semiring.csgraph.by_products import multiplied
from semiring.csgraph.by_search import searched
from semiring.csgraph.call import Call, Request, read_call
from semiring.csgraph.errors import AsBoth
from semiring.kernels.devices import device_of, on_device
from semiring.planning import Plan

__all__ = ["decide", "solve"]


def decide(csgraph: Any, request: Request) -> Plan:
    """How a call is computed."""
    return read_call(csgraph, request).plan


def solve(csgraph: Any, request: Request) -> Any:
    """The answer to a call: distances, and with ``return_predecessors=True`` predecessors too."""
    call = read_call(csgraph, request)
    if call.request.method == "D" and call.negative:
        warnings.warn(
            "Graph has negative weights: here dijkstra computes them right, and raises NegativeCycleError for a negative cycle. "
            "SciPy's may be inaccurate, or never return.",
            stacklevel=3,
        )
    with AsBoth():
        first, *others = _computed(call)
    return (first, *others) if others else first


def _computed(call: Call) -> tuple[Any, ...]:
    there, plan = on_gpu(call.graph.dense), call.plan
    try:
        if plan.strategy == "whole" or plan.strategy == "block rows":
            answer = closed(call)
        elif plan.strategy == "rows by products":
            answer = multiplied(call)
        else:
            answer = searched(call, scipys=plan.strategy == "SciPy")
    except OverflowRiskError:
        if call.request.device != "auto" or there or call.in_place:
            raise
        answer = searched(call, scipys=True)  # which lets sums become ∞, as the caller may know
    if there and plan.strategy == "SciPy":
        with on_device(device_of(call.graph.dense)):
            answer = tuple(map(to_gpu, answer))
    return answer if call.graph.restore is None else tuple(map(call.graph.restore, answer))
