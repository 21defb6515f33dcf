"""The graph that NetworkX hands to this backend: its own one, by reference."""

from __future__ import annotations

from typing import Any

__all__ = ["SemiringGraph", "original"]


class SemiringGraph:
    """A NetworkX graph, marked as one for this backend.

    Edges are read when an algorithm runs, so that nothing is stale when attributes change, not even where NetworkX keeps the conversion
    in its cache, and callable weights see the attributes of an edge as they are.

    Attributes
    ----------
    original : networkx.Graph
    """

    __networkx_backend__ = "semiring"

    def __init__(self, graph: Any) -> None:
        self.original = graph

    def __len__(self) -> int:
        return len(self.original)

    def is_directed(self) -> bool:
        """Whether edges have a direction; NetworkX asks before it dispatches."""
        return bool(self.original.is_directed())

    def is_multigraph(self) -> bool:
        """Whether edges may be parallel; NetworkX asks before it dispatches."""
        return bool(self.original.is_multigraph())


def original(graph: Any) -> Any:
    """The NetworkX graph behind whatever NetworkX passes."""
    return graph.original if isinstance(graph, SemiringGraph) else graph
