"""Sparse graphs by a strategy that is drawn, which the planner would take for large ones alone."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any
from unittest import mock

import numpy as np

from semiring.kernels import machine
from semiring.planning import costs, planner

__all__ = ["draw_strategy", "on_tensor_cores", "taking"]

_STRATEGIES = ("search", "elimination", "condensation", "spanning tree", "whole", "rows by products")


def draw_strategy(rng: np.random.Generator) -> dict[str, Any]:
    """An option that names one, or none."""
    return {"strategy": str(rng.choice(_STRATEGIES))} if rng.random() < 0.6 else {}


@contextlib.contextmanager
def taking(strategy: str | None) -> Iterator[None]:
    """Plans have this strategy wherever it applies."""
    if strategy is None:
        yield
        return
    every = planner._ways_of_edges

    def chosen(*given: Any) -> dict[str, tuple[float, str, str]]:
        ways = every(*given)
        return {strategy: ways[strategy]} if strategy in ways else ways

    with (
        mock.patch.object(planner, "_ways_of_edges", chosen),
        mock.patch.object(planner, "_plans", {}),
        mock.patch.object(costs, "MANY", -1),
        mock.patch.object(machine, "SPANNING", 0 if strategy == "spanning tree" else machine.SPANNING),
        mock.patch.object(machine, "TRIAL", 0),
        mock.patch.object(machine, "TRIAL_ELIMINATION", 0),
    ):
        yield


@contextlib.contextmanager
def on_tensor_cores(wanted: bool) -> Iterator[None]:
    """Products and closures of small integers on a GPU take tensor cores at every size."""
    with contextlib.ExitStack() as stack:
        for name in ("POWERS_STEPS", "POWERS_SIDE", "POWERS_CLOSURE") if wanted else ():
            stack.enter_context(mock.patch.object(machine, name, 1))
        yield
