"""`cycle_mean`: the maximum or minimum cycle mean of a graph, with a critical cycle and an eigenvector."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from semiring.algebra.catalogue import MAX_PLUS, MIN_PLUS, as_semiring
from semiring.algebra.definition import Semiring
from semiring.algorithms.csr import CSR
from semiring.algorithms.cycle_mean import CriticalCycle, best_to_cycle, least_cycle_mean
from semiring.arrays.threads import require_threads
from semiring.common.errors import LawError, described_by, noted, raised_here
from semiring.common.forks import cached_property
from semiring.common.html import Shown
from semiring.common.units import counted
from semiring.graphs.read import one_graph
from semiring.solve import apsp

__all__ = ["CycleMean", "cycle_mean"]

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, eq=False, repr=False)
class CycleMean(Shown):
    """The cycle mean of a graph, with a critical cycle and an eigenvector, from `cycle_mean`.

    Examples
    --------
    >>> import semiring as sr
    >>> trains = sr.cycle_mean(sr.edges([("A", "B", 58.0), ("B", "A", 52.0), ("A", "A", 50.0)]))
    >>> trains.mean, trains.cycle, trains.total
    (55.0, ['A', 'B'], 110.0)

    Attributes
    ----------
    mean : float
        The greatest mean weight of a cycle over max-plus, the least over min-plus; the semiring's zero without a cycle.
    cycle : list or None
        The vertices of a critical cycle (a cycle with this mean), each once, in order; None without a cycle.
    total : float
        The sum of the weights of the cycle, correctly rounded; the mean is the total over the number of edges.
    nodes : tuple
        The vertices of the graph.
    """

    mean: float
    cycle: list[Any] | None
    total: float
    nodes: tuple[Any, ...]
    _graph: CSR = field(repr=False)
    _critical: CriticalCycle | None = field(repr=False)
    _sign: float = field(repr=False)
    _threads: int | None = field(repr=False)

    @cached_property
    def eigenvector(self) -> Array:
        """A vector x with A ⊗ x = λ ⊗ x for the mean λ, computed on first access in O(m log m) for m edges.

        Entry i is the weight of the best path from vertex i to the first vertex of `cycle`, where each edge counts as weight − λ. The entry
        is the semiring's zero if i does not reach the cycle; in a strongly connected graph every vertex does.

        Examples
        --------
        >>> import numpy as np, semiring as sr
        >>> a = np.array([[2.0, 5.0], [3.0, 3.0]])
        >>> found = sr.cycle_mean(a)
        >>> found.mean, found.eigenvector
        (4.0, array([ 0., -1.]))
        >>> sr.matmul(a, found.eigenvector, sr.MAX_PLUS)
        array([4., 3.])
        """
        if self._critical is None:
            return np.full(len(self.nodes), self.mean)
        return 0.0 + self._sign * best_to_cycle(self._graph, self._critical, self._threads)

    def facts(self) -> tuple[str, list[tuple[str, str]]]:
        """Return the title and the rows of the table in Jupyter."""
        facts = [("mean", f"{self.mean:.6g}")]
        if self.cycle is not None:
            more = " …" if len(self.cycle) > 8 else ""
            facts += [("edges", f"{len(self.cycle):,}"), ("critical cycle", " → ".join(map(repr, self.cycle[:8])) + more)]
        return f"cycle mean of {counted(len(self.nodes), 'vertex', 'vertices')}", facts

    def __repr__(self) -> str:
        title, facts = self.facts()
        return f"<{title}: {', '.join(f'{name} {text}' for name, text in facts)}>" if self.cycle else f"<{title}: no cycle>"


@raised_here
@described_by(apsp)
def cycle_mean(
    graph: Any,
    semiring: Semiring | str = MAX_PLUS,
    *,
    weight: Any = None,
    nonedge: Any = None,
    threads: int | None = None,
) -> CycleMean:
    """Return the maximum mean edge weight of a cycle (the eigenvalue over max-plus), a critical cycle and an eigenvector.

    Examples
    --------
    A train leaves a station once the connecting trains have arrived. The slowest cycle sets the pace: 5 minutes in the long run.

    >>> import semiring as sr
    >>> trains = sr.edges([("A", "B", 4), ("B", "C", 3), ("C", "A", 8), ("B", "A", 2)])
    >>> found = sr.cycle_mean(trains)
    >>> found
    <cycle mean of 3 vertices: mean 5, edges 3, critical cycle 'A' → 'B' → 'C'>
    >>> found.eigenvector
    array([0., 1., 3.])

    The least mean, over min-plus:

    >>> sr.cycle_mean(trains, sr.MIN_PLUS).cycle
    ['A', 'B']

    Parameters
    ----------
    graph : sparse array, graph of another library, what `edges` gives, or array of shape (n, n)
        See `apsp`. A loop is a cycle of one edge: a 0 on the diagonal of a dense matrix is a cycle of mean 0. Write −∞ instead (over
        min-plus ∞), or pass ``nonedge=0`` if no 0 is an edge. The heaviest of parallel edges, or of duplicate entries in a SciPy array,
        counts (over min-plus the lightest). Weights are converted to float64, which rounds integers beyond 2⁵³.
    semiring : Semiring or str
        `MAX_PLUS`, or `MIN_PLUS` for the minimum cycle mean.
    weight, nonedge
        As for `apsp`.

    Returns
    -------
    CycleMean

    Other Parameters
    ----------------
    threads : int, optional
        By default ``SEMIRING_NUM_THREADS``, or all cores.

    Raises
    ------
    GraphError, ShapeError, DTypeError, DomainError
        As for `apsp`.
    LawError
        If the semiring is not max-plus or min-plus.
    OverflowRiskError
        If sums of the weights could leave float64.

    Notes
    -----
    Howard's policy iteration in float64: rounds of O(m) steps for m edges, usually a few dozen rounds at most. For integers the cycle is
    exactly critical if the length of the cycle times the longest path stays below 2⁵³; otherwise the mean is optimal up to rounding. The
    graph need not be strongly connected: all cycles count. Cochet-Terrasson, Cohen, Gaubert, McGettrick and Quadrat, "Numerical computation
    of spectral elements in max-plus algebra", 1998; Dasdan, "Experimental analysis of the fastest optimum cycle ratio and mean
    algorithms", 2004.
    """
    require_threads(threads)
    semiring = as_semiring(semiring)
    if semiring not in (MAX_PLUS, MIN_PLUS):
        raise LawError(f"cycle_mean needs {MAX_PLUS.name} or {MIN_PLUS.name}, not {semiring.name}")
    with noted("the cycle mean", semiring, graph):
        edges, labels = one_graph(graph, semiring, nonedge=nonedge, dtype=np.float64, weight=weight)
    sign = -1.0 if semiring == MAX_PLUS else 1.0
    if sign < 0:
        edges = replace(edges, weights=(-edges.weights[0],), zero=(np.inf,), statistics=())
    found = least_cycle_mean(edges, threads)
    nodes = tuple(range(edges.n)) if labels is None else labels
    if found is None:
        return CycleMean(sign * math.inf, None, 0.0, nodes, edges, None, sign, threads)
    total = 0.0 + sign * found.total
    cycle = [nodes[v] for v in found.vertices]
    return CycleMean(total / len(cycle), cycle, total, nodes, edges, found, sign, threads)
