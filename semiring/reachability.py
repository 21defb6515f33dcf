"""Who reaches whom in a sparse graph, without a matrix."""

from __future__ import annotations

from typing import Any

import numpy as np

from semiring.algebra.catalogue import BOOLEAN
from semiring.algorithms.csr import CSR
from semiring.algorithms.reachability import Condensation
from semiring.arrays.devices import host
from semiring.common.docstrings import described_by
from semiring.common.errors import GraphError, noted, raised_here
from semiring.graphs import edges_of, read_graph
from semiring.results.reachability import Reachability
from semiring.solve import apsp, transitive_closure

__all__ = ["Reachability", "reachability"]


@raised_here
@described_by(apsp, transitive_closure)
def reachability(graph: Any, *, reflexive: bool = False, weight: str | float | None = None, nonedge: Any = None) -> Reachability:
    """Which vertices can be reached from which, without a matrix: counts, sets and single answers.

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
        What is an edge: see `transitive_closure`.
    reflexive
        As for `transitive_closure`.
    weight
        As for `transitive_closure`.
    nonedge
        As for `apsp`.

    Returns
    -------
    Reachability

    Raises
    ------
    GraphError
        For several graphs.
    SemiringError
        As for `transitive_closure`.

    Notes
    -----
    The strongly connected components are found in O(n + m), and the sets of what each of the c components reaches in O(m·c / 32) at most.
    The sets take c²/16 bytes at most, and less where few vertices are reached. The matrix itself: `transitive_closure`.
    """
    with noted("the reachability", BOOLEAN, graph):
        listed = edges_of(graph, BOOLEAN, nonedge=nonedge, presence=True, weight=weight)
        if listed is None:
            read = read_graph(graph, BOOLEAN, nonedge=nonedge, presence=True)
            if read.batch:
                raise GraphError(f"reachability is of one graph, not of a batch of shape {read.batch}; pass one at a time")
            matrix = host(read.values[0])
            tails, heads = np.nonzero(matrix)
            listed = CSR.of(tails, heads, (matrix[tails, heads],), len(matrix), (False,)), read.labels
        return Reachability(Condensation.of(listed[0]), listed[1], reflexive=bool(reflexive))
