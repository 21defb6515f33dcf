"""The costs of turns from edge to edge, as a caller gives them: a function of two edges, or a table."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from semiring.algorithms.csr import consecutive
from semiring.arrays.conversion import Array
from semiring.common.errors import GraphError, described

__all__ = ["TurnCosts", "turn_costs"]

Edge = tuple[Any, Any]


class TurnCosts(NamedTuple):
    """Turns with a cost: the edge before and the edge after as places u·n + v, and the cost, None for a forbidden turn."""

    graph: Any  # the `EdgeList` without turn costs
    before: Array
    after: Array
    costs: list[Any]

    def name(self, turn: int) -> str:
        """Name a turn in a message."""
        first, second = (_named(self.graph.labels, places[turn : turn + 1])[0] for places in (self.before, self.after))
        return f"the turn from edge {first!r} to edge {second!r}"


def turn_costs(graph: Any, cost: Callable[[Edge, Edge], Any] | Mapping[tuple[Edge, Edge], Any]) -> TurnCosts:
    """Read the turns of a table, or ask a function for the cost of every turn. Raises GraphError for other arguments, and a wrong turn."""
    n, tails, heads = len(graph.labels), graph.sources, graph.targets
    if not graph.directed:
        tails, heads = np.concatenate([tails, heads]), np.concatenate([heads, tails])
    places = np.unique(tails.astype(np.int64) * n + heads)
    names = _named(graph.labels, places)
    if isinstance(cost, Mapping):
        known = dict(zip(names, places.tolist(), strict=True))
        for turn in cost:
            _require_turn(turn, known)
        before, after = (np.array([known[turn[i]] for turn in cost], np.int64) for i in (0, 1))
        return TurnCosts(graph, before, after, list(cost.values()))
    if not callable(cost):
        raise GraphError(f"cost is {described(cost)}; pass a function of two edges, or a dictionary {{((u, v), (v, w)): cost}}")
    starts, middle = np.searchsorted(places, np.arange(n + 1) * n), places % max(n, 1)
    first, second = consecutive(starts[middle], starts[middle + 1] - starts[middle])
    costs = [cost(names[e], names[f]) for e, f in zip(first.tolist(), second.tolist(), strict=True)]
    return TurnCosts(graph, places[first], places[second], costs)


def _named(labels: tuple[Any, ...], places: Array) -> list[Edge]:
    """Return the names of both ends of edges."""
    n = max(len(labels), 1)
    return [(labels[u], labels[v]) for u, v in zip((places // n).tolist(), (places % n).tolist(), strict=True)]


def _require_turn(turn: Any, known: Mapping[Edge, int]) -> None:
    pairs = isinstance(turn, tuple) and len(turn) == 2 and all(isinstance(edge, tuple) and len(edge) == 2 for edge in turn)
    if not pairs or turn[0][1] != turn[1][0]:
        raise GraphError(f"{turn!r} is no turn; a turn is a pair of edges ((u, v), (v, w)), one after the other")
    if lacking := [edge for edge in turn if edge not in known]:
        back = ", but only the edge back" if lacking[0][::-1] in known else ""
        raise GraphError(f"the turn {turn!r} needs the edge {lacking[0]!r}, and the graph has no such edge{back}")
