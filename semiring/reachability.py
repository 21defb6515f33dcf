"""`reachability`: the vertices that each vertex of a sparse graph reaches, without an n × n matrix."""

from __future__ import annotations

from typing import Any

import numpy as np

from semiring.algebra.catalogue import BOOLEAN
from semiring.algorithms.csr import CSR
from semiring.algorithms.reachability import Condensation
from semiring.arrays.devices import host
from semiring.common.errors import GraphError, described_by, noted, raised_here
from semiring.graphs import edges_of, read_graph
from semiring.results.reachability import Reachability
from semiring.solve import apsp, transitive_closure

__all__ = ["Reachability", "reachability"]


@raised_here
@described_by(apsp, transitive_closure)
def reachability(graph: Any, *, reflexive: bool = False, weight: str | float | None = None, nonedge: Any = None) -> Reachability:
    """Find which vertices each vertex reaches, as counts, sets and single answers, without an n × n matrix.

    Examples
    --------
    >>> import semiring as sr
    >>> calls = sr.edges([("main", "parse"), ("parse", "eval"), ("eval", "parse"), ("eval", "print")])
    >>> found = sr.reachability(calls)
    >>> found.counts, found.reached("parse"), found.reaches("print", "main")
    (array([3, 3, 3, 0]), ['parse', 'eval', 'print'], False)

    Parameters
    ----------
    graph : array of shape (n, n), sparse array, graph of another library, or what `edges` gives
        See `transitive_closure`.
    reflexive, weight
        As for `transitive_closure`.
    nonedge
        As for `apsp`.

    Returns
    -------
    Reachability

    Raises
    ------
    GraphError
        If the argument holds several graphs.
    SemiringError
        As for `transitive_closure`.

    Notes
    -----
    O(n + m) steps find the c strongly connected components, and at most O(m·c / 32) steps the components that each component reaches.
    These sets take at most c²/16 bytes, less if few vertices are reached. For the whole matrix call `transitive_closure`.
    """
    with noted("the reachability", BOOLEAN, graph):
        listed = edges_of(graph, BOOLEAN, nonedge=nonedge, presence=True, weight=weight)
        if listed is None:
            read = read_graph(graph, BOOLEAN, nonedge=nonedge, presence=True)
            if read.batch:
                raise GraphError(f"reachability takes one graph, not a batch of shape {read.batch}; pass one graph at a time")
            matrix = host(read.values[0])
            tails, heads = np.nonzero(matrix)
            listed = CSR.of(tails, heads, (matrix[tails, heads],), len(matrix), (False,)), read.labels
        return Reachability(Condensation.of(listed[0]), listed[1], reflexive=bool(reflexive))
