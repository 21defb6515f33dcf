"""A call of one of SciPy's functions: checked arguments, the graph, and the plan of the computation.

`read_call` checks a `Request` completely and returns a `Call`. `AsBoth` turns errors of either library into an error of both.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse.csgraph import NegativeCycleError as ScipyNegativeCycleError

from semiring.algebra.catalogue import MIN_PLUS
from semiring.algorithms.csr import CSR, in_range
from semiring.algorithms.predecessors import NONE
from semiring.arrays.devices import device_of
from semiring.common.errors import DTypeError
from semiring.common.errors import NegativeCycleError as OwnNegativeCycleError
from semiring.common.forks import cached_property
from semiring.common.units import counted
from semiring.csgraph.reading import Array, CSGraph, both_ways, in_dtype, read, require_held, some
from semiring.planning import Plan, closure_problem, edges_problem, plan
from semiring.planning.options import Options

__all__ = ["METHODS", "AsBoth", "Call", "NegativeCycleError", "Request", "cut", "read_call"]


# The name is SciPy's, because a program that imports from semiring.csgraph instead of scipy.sparse.csgraph needs this name.
class NegativeCycleError(OwnNegativeCycleError, ScipyNegativeCycleError):  # type: ignore[misc]  # SciPy's class has no types
    """The graph has a cycle of negative weight, so shortest paths do not exist.

    Code that catches SciPy's ``NegativeCycleError`` or `semiring.NegativeCycleError` catches this error.

    Examples
    --------
    >>> from scipy.sparse import csgraph as scipys
    >>> import semiring as sr
    >>> from semiring.csgraph import NegativeCycleError
    >>> issubclass(NegativeCycleError, scipys.NegativeCycleError)
    True
    >>> issubclass(NegativeCycleError, sr.NegativeCycleError)
    True

    Attributes
    ----------
    cycle : list of int or None
        The vertices of a negative cycle, in order; None if SciPy found the cycle, whose error does not name the vertices.
    """

    def __init__(self, message: str = "", cycle: list[int] | None = None) -> None:
        OwnNegativeCycleError.__init__(self, message, cycle)


class AsBoth:
    """A context that turns the NegativeCycleError of either library into an error of both."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if isinstance(error, OwnNegativeCycleError):
            raise NegativeCycleError(str(error), error.cycle) from None
        if isinstance(error, ScipyNegativeCycleError):
            raise NegativeCycleError(str(error)) from None


METHODS = ("auto", "FW", "D", "BF", "J")


class Request(NamedTuple):
    """The arguments of a call; see `semiring.csgraph.shortest_path` and `dijkstra`."""

    method: str
    directed: bool
    return_predecessors: bool
    unweighted: bool
    overwrite: bool = False
    indices: Any = None
    limit: float = np.inf
    min_only: bool = False
    dtype: Any = np.float64
    device: Any = "auto"


@dataclass(frozen=True, eq=False)
class Call:
    """A checked request, with the graph that has been read."""

    graph: CSGraph
    request: Request  # SciPy's rule has replaced the method "auto"
    sources: Array | None  # first vertices of the paths, of shape (m,); None for all vertices
    shape: tuple[int, ...]  # leading axes of the answer
    dtype: np.dtype[Any]  # of the distances

    @property
    def negative(self) -> bool:
        """True if a weight is negative and weights count."""
        return not self.request.unweighted and self.graph.negative

    @cached_property
    def weighed(self) -> CSGraph:
        """The graph; in an unweighted call with weight 1 for each edge, so that `dtype` need not hold the caller's weights."""
        return self.graph.unweighted(infinite=self.request.method != "FW") if self.request.unweighted else self.graph

    @cached_property
    def within_reach(self) -> CSGraph:
        """The graph `weighed` without edges that no path from the sources takes, if weights are negative: their cycles are no error."""
        if self.negative and self.sources is not None:
            return self.weighed.reached_from(self.sources, directed=self.request.directed)
        return self.weighed

    @cached_property
    def csr(self) -> CSR:
        """Edges of `weighed` in compressed rows, both ways for an undirected request."""
        return self._by_direction(self.weighed)

    @cached_property
    def csr_within_reach(self) -> CSR:
        """Edges of `within_reach` like `csr`, which the dtype can hold; without loops if weights are negative."""
        csr = self.csr if self.within_reach is self.weighed else self._by_direction(self.within_reach)
        require_held(csr, self.dtype)
        if not self.negative:
            return csr
        self.refuse_loops(csr.arrays()[0].diagonal())
        return some(csr, csr.tails != csr.heads)

    def _by_direction(self, graph: CSGraph) -> CSR:
        return graph.csr if self.request.directed else both_ways(graph.csr)

    @cached_property
    def searched(self) -> CSR:
        """Edges in the dtype of the distances, for the searches of this library; `require_held` refuses overflow later."""
        return in_dtype(self.csr, self.dtype)

    @cached_property
    def plan(self) -> Plan:
        """The plan of the computation."""
        n, request, dense = self.graph.n, self.request, self.graph.dense
        options = Options(bool(request.return_predecessors), device=request.device)
        sources = None if self.sources is None else len(self.sources)
        more: dict[str, Any] = {"scipy": True, "wanted": "nearest" if request.min_only else "elements"}
        if dense is None:
            return plan(edges_problem(MIN_PLUS, self.searched, options, sources, **more))
        more |= {"dense": True, "edges": min(self.graph.stored * (1 if request.directed else 2), n * n), "searches": sources}
        more |= {"order": "rounds" if self.negative else "levels" if request.unweighted else "best", "place": device_of(dense)}
        return plan(closure_problem(MIN_PLUS, (self.dtype,), (n, n), options, **more))

    @property
    def in_place(self) -> bool:
        """True if the result must replace the caller's array, as SciPy's Floyd–Warshall promises for a C-ordered array of this dtype."""
        array = self.graph.dense
        if not self.request.overwrite or self.request.method != "FW" or not isinstance(array, np.ndarray):
            return False
        return bool(array.dtype == self.dtype and array.flags.c_contiguous and array.flags.writeable)

    def refuse_loops(self, weights: Array) -> None:
        """Raise NegativeCycleError for a negative loop, which only SciPy's Floyd–Warshall ignores (it overwrites the diagonal)."""
        if self.request.method != "FW" and (weights < 0).any():
            vertex = int(np.argmin(weights))
            raise NegativeCycleError(f"Negative cycle detected on node {vertex}: its edge to itself weighs {weights[vertex]}", [vertex])


def read_call(csgraph: Any, request: Request) -> Call:
    """Read the graph, and check every argument of a call."""
    graph = read(csgraph)
    n, dtype = graph.n, np.dtype(request.dtype)
    if dtype not in (np.float32, np.float64):
        raise DTypeError(f"distances must be float64 or float32, which have an ∞ for a missing path, not {dtype}")
    if request.method not in METHODS:
        raise ValueError(f"unrecognized method '{request.method}'; use one of {', '.join(METHODS)}")
    if request.method == "auto":
        # SciPy's rule, because conventions differ a little between SciPy's methods.
        sparse = request.indices is not None or graph.stored < n * n / 4
        method = ("D" if request.unweighted or not graph.negative else "J") if sparse else "FW"
        request = Request(method, *request[1:])
    if request.method == "FW" and request.indices is not None:
        raise ValueError("Cannot specify indices with method == 'FW'.")
    limit = math.fsum([request.limit])  # raises TypeError unless limit is a number
    if not limit >= 0:
        raise ValueError(f"limit must be >= 0, not {limit}")
    if type(request.limit) is not float:
        request = request._replace(limit=limit)
    if request.indices is None:
        return Call(graph, request, None, (n,), dtype)
    sources = np.array(request.indices, dtype=np.int64)
    flat = sources.reshape(-1)
    if not in_range(flat, n):
        flat = np.where(flat < 0, flat + n, flat)
        if ((flat < 0) | (flat >= n)).any():
            raise ValueError(f"indices out of range 0...N: the graph has {counted(n, 'vertex', 'vertices')}")
    return Call(graph, request, flat, sources.shape, dtype)


def cut(limit: float, distances: Any, predecessors: Any = None) -> None:
    """Replace distances above the limit by ∞, in place, and remove the predecessors there."""
    if limit != np.inf:
        beyond = ~(distances <= limit)
        distances[beyond] = np.inf
        if predecessors is not None:
            predecessors[beyond] = NONE
