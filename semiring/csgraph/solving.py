"""Calls of SciPy's functions for shortest paths: checked arguments, the plan, and a function for each strategy.

`solve` searches small sparse graphs at once (`small_rows`). For any other call, `read_call` checks a `Request` and returns a `Call`, and
`_answer` follows the plan of the call. Each strategy returns a tuple: distances, predecessors on request, and with ``min_only=True`` the
nearest sources.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import issparse
from scipy.sparse.csgraph import NegativeCycleError as ScipyNegativeCycleError
from scipy.sparse.csgraph import dijkstra, johnson

from semiring.algebra.catalogue import MIN_PLUS
from semiring.algorithms.csr import CSR, in_range
from semiring.algorithms.predecessors import NONE
from semiring.algorithms.search import searches_for
from semiring.arrays.devices import device_of, host, namespace, on_device, on_gpu, to_gpu
from semiring.arrays.memory import fits, with_scratch
from semiring.arrays.pieces import HOST, slices
from semiring.common.errors import DTypeError, OverflowRiskError, callers_level, noted
from semiring.common.errors import NegativeCycleError as OwnNegativeCycleError
from semiring.common.forks import cached_property
from semiring.common.units import counted
from semiring.csgraph.reading import Array, CSGraph, as_scipys, both_ways, in_dtype, is_held, read, require_held, some
from semiring.execution.question import GivenGraph, Question, Selection
from semiring.execution.reporting import reporting
from semiring.execution.row_solvers import row_solver, search_steps
from semiring.execution.strategy import run
from semiring.graphs import Graph
from semiring.graphs.coo import sound_rows
from semiring.graphs.vertices import Vertices
from semiring.kernels.cuda.blocks import download, upload
from semiring.kernels.machine import FEW_STEPS
from semiring.planning import Plan, closure_problem, edges_problem, plan
from semiring.planning.options import Options

__all__ = [
    "Call", "NegativeCycleError", "Request", "as_both", "by_closure", "by_products", "by_scipy", "by_searches", "read_call", "small_rows",
    "solve",
]  # fmt: skip

_FLOAT64 = np.dtype(np.float64)
_QUESTIONS = [Question(MIN_PLUS, Options(paths, nonedge=np.inf)) for paths in (False, True)]
_METHODS = ("auto", "FW", "D", "BF", "J")


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


@contextmanager
def as_both() -> Iterator[None]:
    """Turn the NegativeCycleError of either library into an error of both."""
    try:
        yield
    except (OwnNegativeCycleError, ScipyNegativeCycleError) as error:
        raise NegativeCycleError(str(error), getattr(error, "cycle", None)) from None


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

    @cached_property
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
        """Edges of `within_reach` like `csr`, without loops if weights are negative.

        Raises DTypeError for a weight that the dtype cannot hold, and NegativeCycleError for a negative loop.
        """
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
            more["limit"] = None if request.limit == np.inf else (request.limit,)
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
    if request.method not in _METHODS:
        raise ValueError(f"unrecognized method '{request.method}'; use one of {', '.join(_METHODS)}")
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


def solve(csgraph: Any, request: Request) -> Any:
    """Return the distances, and with ``return_predecessors=True`` the predecessors too."""
    answer: tuple[Any, ...] | None = small_rows(csgraph, request)
    if answer is None:
        call = read_call(csgraph, request)
        if call.request.method == "D" and call.negative:
            warnings.warn(
                "Graph has negative weights: the distances are right, and a negative cycle raises NegativeCycleError. "
                "SciPy's dijkstra may be inaccurate, or never return.",
                stacklevel=callers_level(),
            )
        with as_both():
            answer = _answer(call)
    return answer[0] if len(answer) == 1 else answer


def small_rows(csgraph: Any, request: Request) -> tuple[Array, ...] | None:
    """Search a small sparse graph directly, because reading and planning would take longer than the search.

    The result is None for other graphs, and for calls that need a message, a warning or a convention of SciPy: `read_call` handles these.
    """
    if not issparse(csgraph) or request.dtype is not np.float64 or request.device not in ("auto", "cpu") or request.method not in _METHODS:
        return None
    (n, *columns), stored, limit = csgraph.shape, csgraph.nnz, request.limit
    count = n if request.indices is None else np.size(request.indices)
    if columns != [n] or not stored or not 0 < count * (n + stored * (1 if request.directed else 2)) <= FEW_STEPS:
        return None
    if (request.method == "FW" and request.indices is not None) or type(limit) is not float or not limit >= 0:
        return None
    kinds = "biuf" if csgraph.format == "csr" else "f"  # sums of duplicate integers could overflow
    if csgraph.dtype.kind not in kinds or sound_rows(csgraph) is not csgraph:
        return None
    rows = csgraph.tocsr()
    heads, weights = rows.indices.astype(np.int64, copy=False), rows.data.astype(np.float64, copy=False)
    if not len(heads) or not rows.has_canonical_format or not in_range(heads, n):
        return None
    least, greatest = float(weights.min()), float(weights.max())
    if not max(-least, greatest) * n < np.inf:  # a bound of path lengths; False for NaN too
        return None
    negative = least < 0 and not request.unweighted
    if negative and (request.method == "D" or request.return_predecessors):
        return None
    sources = np.arange(n) if request.indices is None else np.array(request.indices, dtype=np.int64)
    flat, searches = sources.reshape(-1), searches_for(MIN_PLUS, (_FLOAT64,), "cpu")
    if searches is None or not in_range(flat, n):
        return None
    if request.min_only:
        return _as_tuple(dijkstra(rows, request.directed, flat, request.return_predecessors, request.unweighted, limit, min_only=True))
    csr = CSR(n, rows.indptr.astype(np.int64, copy=False), heads, (np.ones(len(heads)) if request.unweighted else weights,), (np.inf,))
    if not request.directed:
        csr = both_ways(csr)
    distances, tree = np.empty((count, n)), np.full((count, n), NONE, np.int32) if request.return_predecessors else None
    complete, _ = searches.rows(
        (csr.starts, csr.heads, csr.weights), flat, (distances,), tree, order="rounds" if negative else "best", backward=False
    )
    if complete < count:  # a cycle is negative
        return None
    answer = (distances,) if tree is None else (distances, tree)
    _cut(limit, *answer)
    return answer if sources.ndim == 1 else tuple([array.reshape(*sources.shape, n) for array in answer])


def _answer(call: Call) -> tuple[Any, ...]:
    there, plan = on_gpu(call.graph.dense), call.plan
    try:
        if plan.strategy == "SciPy":
            answer = by_scipy(call)
        elif plan.by_edges:
            answer = by_searches(call)
        elif plan.strategy == "rows by products":
            answer = by_products(call)
        else:
            answer = by_closure(call)
    except OverflowRiskError:
        if call.request.device != "auto" or there or call.in_place:
            raise
        answer = by_scipy(call)  # SciPy lets sums overflow to ∞
    if not call.request.min_only:
        answer = tuple([array.reshape(*call.shape, call.graph.n) for array in answer])
    if there and plan.strategy == "SciPy":
        with on_device(device_of(call.graph.dense)):
            answer = tuple(map(to_gpu, answer))
    if call.in_place and not np.may_share_memory(answer[0], call.graph.dense):
        np.copyto(call.graph.dense, answer[0])
        answer = (call.graph.dense, *answer[1:])
    return answer if call.graph.restore is None else tuple(map(call.graph.restore, answer))


def by_closure(call: Call) -> tuple[Any, ...]:
    """Close the matrix, and return all rows or the requested rows; on one GPU with room, every step runs there."""
    paths, gpu = call.plan.paths, _one_gpu(call)
    given = call.graph if call.in_place else call.within_reach
    # A closure with negative weights may have to read the input again.
    matrix = given.matrix(call.dtype, overwrite=call.in_place and not call.negative, paths=paths, device=gpu or "cpu")
    here = device_of(matrix)
    with on_device(here):
        _settle(call, matrix)
    with on_device(gpu or here):
        if gpu is not None and paths and not on_gpu(matrix):
            matrix = upload(matrix)
        answer = _run(call, Graph((matrix,), owned=not call.negative))
        if call.sources is not None:
            rows = namespace(answer[0]).asarray(call.sources)
            answer = tuple(array[rows] for array in answer)
        _cut(call.request.limit, *answer)
        return tuple(map(download, answer)) if gpu is not None and on_gpu(matrix) else answer


def _run(call: Call, graph: Graph, selection: Selection | None = None) -> tuple[Any, ...]:
    """Run the plan for all rows of a matrix, or some."""
    plan = call.plan
    with noted("the closure", MIN_PLUS, graph.values):
        found = run(plan, GivenGraph(graph=graph), _QUESTIONS[plan.paths], selection)
    return (found.distances, found.predecessors()) if plan.paths else (found,)


def _one_gpu(call: Call) -> str | None:
    """Return the GPU that can hold the whole computation for a graph on the host; None without one.

    The GPU then receives only the edges of a sparse array, and also grows the predecessor trees, far faster than the host.
    """
    plan, entries = call.plan, call.graph.entries
    if on_gpu(call.graph.dense) or not plan.gpu or plan.strategy != "whole":
        return None
    entry = call.dtype.itemsize * (1 + call.negative) + 8 * plan.paths  # of the matrices, and of the construction matrix and predecessors
    needed = with_scratch(plan.n**2 * entry + (0 if entries is None else entries.nbytes))
    return plan.device if fits(needed, plan.device) else None


def _settle(call: Call, matrix: Any) -> None:
    """Turn the edges into the matrix to close, in place: unit weights, both directions, a zero diagonal."""
    xp, request = namespace(matrix), call.request
    if request.unweighted and call.in_place:
        matrix[xp.isfinite(matrix)] = 1
    if not request.directed:
        # CuPy's minimum flushes subnormal float32 numbers to zero.
        matrix[...] = xp.where(matrix <= matrix.T, matrix, matrix.T) if on_gpu(matrix) else np.minimum(matrix, matrix.T)
    if call.negative:
        call.refuse_loops(host(matrix.diagonal()))
    xp.fill_diagonal(matrix, 0)


def by_products(call: Call) -> tuple[Any, ...]:
    """Multiply a row for each source by the matrix until a fixed point."""
    assert call.sources is not None
    given, directed, n = call.weighed, call.request.directed, call.graph.n  # products never read an unreachable cycle
    matrix = given.matrix(call.dtype, borrow=directed)
    if not directed:
        matrix[...] = np.minimum(matrix, matrix.T)
    known = given.statistics if matrix is given.dense else None
    graph = Graph((matrix,), owned=False, verify=None if known is None else lambda: (known,))
    answer = _run(call, graph, Selection(n, Vertices(call.sources), Vertices.all_of(n)))
    _cut(call.request.limit, *answer)
    return answer


def by_searches(call: Call) -> tuple[Any, ...]:
    """Search from each source, or eliminate."""
    if call.request.method != "FW" and is_held(call.csr, call.dtype):
        edges = call.searched  # these searches never read an unreachable cycle, and report loops
    else:
        edges = in_dtype(call.csr_within_reach, call.dtype)
    sources = np.arange(edges.n) if call.sources is None else call.sources
    with reporting(None, call.plan, search_steps(edges, len(sources))) as meter:
        answer, tree = row_solver(call.plan, edges, None).rows(sources, meter, nothing=NONE)
    if tree is not None:
        if (tree == -1).any():  # only rows without compiled code have −1, and a test takes a sixth of the time of a write
            tree[tree < 0] = NONE
        answer = (*answer, tree)
    if call.plan.strategy != "search" or call.plan.problem.limit is None or call.plan.searches is None:
        _cut(call.request.limit, *answer)
    return answer


def by_scipy(call: Call) -> tuple[Any, ...]:
    """Search from each source by SciPy's functions."""
    csr, n, paths = call.csr_within_reach, call.graph.n, call.plan.paths
    sources = np.arange(n) if call.sources is None else call.sources
    with reporting(None, call.plan):
        if call.request.min_only:
            return _nearest(call, csr, sources)
        matrix = as_scipys(csr, call.graph)
        if call.dtype == np.float64 and not call.in_place:
            return _rows_by_scipy(call, matrix, sources)
        # Some rows at a time, into another dtype or the caller's array.
        distances = call.graph.dense if call.in_place else np.empty((len(sources), n), call.dtype)
        answer = (distances, np.empty((len(sources), n), np.int32)) if paths else (distances,)
        for rows in slices(len(sources), n, HOST):
            for array, part in zip(answer, _rows_by_scipy(call, matrix, sources[rows]), strict=True):
                array[rows] = part
        return answer


def _rows_by_scipy(call: Call, matrix: Any, sources: Array) -> tuple[Array, ...]:
    """Find rows by Johnson's algorithm for negative weights, else Dijkstra's."""
    limit, paths = call.request.limit, call.plan.paths
    if not call.negative:
        return _as_tuple(dijkstra(matrix, indices=sources, return_predecessors=paths, limit=limit))
    found = _as_tuple(johnson(matrix, indices=sources, return_predecessors=paths))
    _cut(limit, *found)
    return found


def _nearest(call: Call, csr: CSR, sources: Array) -> tuple[Array, ...]:
    """Find the distance of every vertex from the nearest source.

    SciPy has no such search for negative weights.
    """
    limit, paths = call.request.limit, call.plan.paths
    if not call.negative:
        matrix = as_scipys(csr, call.graph)
        distances, *rest = _as_tuple(dijkstra(matrix, indices=sources, return_predecessors=paths, limit=limit, min_only=True))
        return (distances.astype(call.dtype, copy=False), *rest)
    from semiring.algorithms.nearest import nearest_sources  # seldom wanted, and a first call should be quick

    once = np.unique(sources)
    found = nearest_sources(MIN_PLUS, csr, once, 1, searches_for(MIN_PLUS, csr.dtypes, "cpu"))
    distances, predecessors, nearest = found.values[0][:, 0], found.tree[:, 0], found.sources[:, 0]
    for array in (predecessors, nearest):
        array[array < 0] = NONE
    _cut(limit, distances, predecessors)  # last, because a path may exceed the limit and return
    nearest[distances == np.inf] = NONE
    answer = (distances.astype(call.dtype, copy=False), predecessors, nearest)
    return answer if paths else answer[:1]


def _cut(limit: float, distances: Any, predecessors: Any = None) -> None:
    """Replace distances above the limit by ∞, in place, and remove the predecessors there."""
    if limit != np.inf:
        beyond = ~(distances <= limit)
        distances[beyond] = np.inf
        if predecessors is not None:
            predecessors[beyond] = NONE


def _as_tuple(found: Any) -> tuple[Array, ...]:
    return found if isinstance(found, tuple) else (found,)
