"""Graphs in, answers out: all-pairs shortest paths, closures over any semiring, reachability, powers."""

from __future__ import annotations

import operator
from functools import partial
from typing import Any, Unpack

import numpy as np

from semiring.algebra.catalogue import BOOLEAN, MIN_PLUS, as_semiring
from semiring.algebra.definition import Semiring
from semiring.arrays.devices import device_of, is_gpu, on_device, on_gpu
from semiring.arrays.exchange import holds_sparse
from semiring.arrays.followed import is_compiling, is_recorded, is_traced, refuse_compiling
from semiring.arrays.threads import require_threads
from semiring.common.docstrings import described_by
from semiring.common.errors import SemiringError, noted, raised_here, refuse_arrays
from semiring.execution.question import Question
from semiring.execution.strategy import solve
from semiring.graphs import read_graph
from semiring.planning.options import ClosureOptions, Options, takes

__all__ = ["apsp", "closure", "power", "transitive_closure"]


@raised_here
@takes(ClosureOptions)
def apsp(
    graph: Any,
    **options: Unpack[ClosureOptions],
) -> Any:
    """Find the shortest distance between every two vertices of a graph, and paths.

    Examples
    --------
    >>> import semiring as sr
    >>> roads = sr.edges([("Bern", "Basel", 95), ("Basel", "Genf", 250)])
    >>> sr.apsp(roads)
    array([[  0.,  95., 345.],
           [ inf,   0., 250.],
           [ inf,  inf,   0.]])
    >>> sr.apsp(roads, paths=True).path("Bern", "Genf")
    ['Bern', 'Basel', 'Genf']
    >>> sr.apsp(roads, sources="Bern", targets=["Genf", "Basel"])
    array([345.,  95.])

    Parameters
    ----------
    graph : array of shape (…, n, n), sparse array, graph of another library, `edges(…)`, or list of these
        Entry [i, j] is the edge from i to j; in a dense matrix ∞ (of integers the largest) or `nonedge` is none.
    paths : bool
        Return `Paths`.
    sources, targets : vertex or sequence of vertices, optional
        Rows and columns, by label or index.
    limit : scalar, optional
        The greatest distance in the result, then sparse.
    k : int, optional
        Return the k nearest vertices of each source, itself included.
    weight : str or number, optional
        Attribute or column of weights, or one weight for all edges.
    node_weight : str or array of shape (n,), optional
        Costs of vertices that paths enter.
    nonedge : scalar, optional
        The dense entry for no edge, such as 0.
    dtype : dtype, optional
        By default the graph's own, or float64.

    Returns
    -------
    array of shape (…, n, n), Paths, Neighbours, or list
        Distances, ∞ without a path, in the graph's dtype and library; with `limit` SciPy's ``csr_array`` (CuPy's on a GPU),
        with `k` `Neighbours`.

    Other Parameters
    ----------------
    device : str or list
        "auto", "cpu", "cuda", "cuda:0", "cuda:all", a list of GPUs, or "reference".
    threads : int
        By default ``SEMIRING_NUM_THREADS``, or all cores.
    check : bool
        False skips NaN, overflow and suspicious zeros.
    tolerance : float
        Relative error of weights.
    overwrite : bool
        The result may replace the graph.
    memory_limit : int or str
        Bytes, or "8GiB", above which block rows serve.
    checkpoint : path
        A folder to resume from.
    progress : callable or bool
        A function of `Progress`, or True for a bar.
    comm : mpi4py.MPI.Intracomm
        Processes that share one matrix.
    method : {"auto", "iterative", "blocked", "recursive"}
        "auto" is recursive.
    block : int
        Side of pivot blocks.

    Raises
    ------
    NegativeCycleError, OverflowRiskError, TooLargeError, GraphError
        Or another `SemiringError`; see ``.cycle``.

    Notes
    -----
    Dense graphs take n³ steps. `closure` finds longest (``"max-plus"``) and widest paths (``"max-min"``).
    More: Reference, Options; How it works, Accuracy.
    """
    if is_compiling(graph):
        from semiring.execution.compiled import in_graph

        return in_graph(apsp, graph, **options)
    return _solved(graph, MIN_PLUS, Options.of(options, "apsp"), reflexive=True)


@raised_here
@described_by(apsp)
@takes(ClosureOptions)
def closure(
    a: Any,
    semiring: Semiring | str,
    *,
    reflexive: bool = True,
    **options: Unpack[ClosureOptions],
) -> Any:
    """Compute the closure of a matrix over any semiring, A* = I ⊕ A ⊕ A² ⊕ …, or A⁺ = A ⊕ A² ⊕ ….

    Element (i, j) is the sum over all paths from i to j of the product of their edges.

    Examples
    --------
    >>> import numpy as np, semiring as sr
    >>> widths = np.array([[0, 5, 2], [0, 0, 3], [0, 0, 0]])
    >>> sr.closure(widths, sr.MAX_MIN, nonedge=0, reflexive=False, dtype=float)
    array([[-inf,   5.,   3.],
           [-inf, -inf,   3.],
           [-inf, -inf, -inf]])
    >>> sr.closure(np.array([[0.5, 0.25], [0.0, 0.5]]), sr.PLUS_TIMES)  # (I − A)⁻¹
    array([[2., 1.],
           [0., 2.]])

    Parameters
    ----------
    a : array of shape (…, n, n), tuple of such arrays, sparse array, graph of another library, `edges(…)`, or list of these
        See `apsp`. A tuple has an array for each component of structured elements.
    semiring : Semiring or str
        One of the catalogue, also by name (``"max-min"``), or your own.
    reflexive : bool
        A*, with the empty path from each vertex to itself, or A⁺ without.
    paths : bool
        Return `Paths`.
    sources, targets
        As for `apsp`.
    limit : scalar or tuple, optional
        The least preferred element in the result, sparse then.
    k : int, optional
        Return the k best elements of each row.
    weight, node_weight, nonedge, dtype
        As for `apsp`.

    Returns
    -------
    array of shape (…, n, n), tuple of arrays, Paths, or Neighbours
        As for `apsp`. Integers write an infinite 0 as the largest or smallest value of their dtype.

    Other Parameters
    ----------------
    device, threads, check, tolerance, overwrite, memory_limit, checkpoint, progress, comm, method, block
        As for `apsp`. Block rows and `comm` need an idempotent ⊕.

    Raises
    ------
    DivergenceError
        ``.cycle``, or else ``.vertices`` (a strong component), shows why.
    LawError
        A law is missing.
    SemiringError
        As for `apsp`.

    Notes
    -----
    Dense matrices take n³ steps; without an idempotent ⊕ they need ``star``. `paths`, `limit` and `k` need a selective ⊕.
    More: Reference, Options; How it works, Papers.
    """
    if is_compiling(a):
        from semiring.execution.compiled import in_graph

        return in_graph(closure, a, semiring, reflexive=reflexive, **options)
    return _solved(a, as_semiring(semiring), Options.of(options, "closure"), reflexive=reflexive)


@raised_here
@described_by(apsp)
@takes(ClosureOptions)
def transitive_closure(
    graph: Any,
    *,
    reflexive: bool = False,
    **options: Unpack[ClosureOptions],
) -> Any:
    """Find out which vertices can be reached from which.

    Examples
    --------
    >>> import semiring as sr
    >>> sr.transitive_closure([[0, 1, 0], [0, 0, 1], [0, 0, 0]])
    array([[False,  True,  True],
           [False, False,  True],
           [False, False, False]])

    Parameters
    ----------
    graph : array of shape (…, n, n), sparse array, graph of another library, `edges(…)`, or list of these
        Dense: truth values, or integers 0 and 1; other dtypes need `nonedge`. Whatever number a sparse array stores or a listed edge has is
        an edge, 0 too, as for `apsp`; a stored False is none.
    reflexive : bool
        Every vertex reaches itself; otherwise only through a cycle.
    paths, sources, targets
        As for `apsp`.
    limit : bool, optional
        True returns the connected pairs in a sparse array.
    k : int, optional
        Return the first k vertices that each vertex reaches, as a `Neighbours`.
    weight
        As for `apsp`. Only truth values matter: an edge whose value is False is none, and an edge needs no weight.
    node_weight, nonedge
        As for `apsp`.
    dtype : dtype, optional
        The only one is bool.

    Returns
    -------
    bool array of shape (…, n, n), or Paths
        Of the library and on the device of what was passed, as for `apsp`.

    Other Parameters
    ----------------
    device, threads, check, tolerance, overwrite, memory_limit, checkpoint, progress, comm, method, block
        As for `apsp`.

    Raises
    ------
    GraphError, ShapeError, DTypeError, TooLargeError, SemiringError
        As for `apsp`.

    Notes
    -----
    A matrix of bits takes n³ bit-steps, after strongly connected components are condensed where that pays. Sparse graphs are closed by
    their components alone where that is predicted to be faster. `reachability` gives counts and sets without the matrix.
    """
    if is_compiling(graph):
        from semiring.execution.compiled import in_graph

        return in_graph(transitive_closure, graph, reflexive=reflexive, **options)
    return _solved(graph, BOOLEAN, Options.of(options, "transitive_closure"), reflexive=reflexive, presence=True)


@raised_here
@described_by(apsp, closure)
def power(
    a: Any,
    k: int,
    semiring: Semiring | str,
    *,
    weight: str | float | None = None,
    nonedge: Any = None,
    dtype: Any = None,
    device: str = "auto",
    threads: int | None = None,
) -> Any:
    """Compute the k-th power of a matrix over a semiring: the sum over the paths of exactly k edges.

    Examples
    --------
    >>> import numpy as np, semiring as sr
    >>> fibonacci = np.array([[1, 1], [1, 0]])
    >>> sr.power(fibonacci, 10, sr.PLUS_TIMES)
    array([[89, 55],
           [55, 34]])

    Parameters
    ----------
    a : array of shape (…, n, n), or anything that `closure` takes
    k : int
        At least 0; the 0-th power is the identity matrix.
    semiring
        As for `closure`.
    weight
        As for `apsp`.
    nonedge
        As for `apsp`. It stands for the semiring's zero.
    dtype
        As for `apsp`.

    Returns
    -------
    array of shape (…, n, n), or tuple of arrays
        The power, in the library and on the device of `a`, as for `apsp`. A sparse array gives a sparse array of its library, by rows and
        without zeros, in float64 unless `dtype` says otherwise; CuPy's keep their dtype.

    Other Parameters
    ----------------
    device : {"auto", "cpu", "cuda", "cuda:0", …, "reference"}
        As for `apsp`, but one device.
    threads
        As for `apsp`.

    Raises
    ------
    DomainError, OverflowRiskError
        A power on the way left the carrier or the dtype.
    SemiringError
        A power below 0, and the errors of `closure` and `matmul`.

    Notes
    -----
    A power takes at most 2 log₂ k products. Sparse products become dense where that is predicted to be faster and the matrix fits.
    """
    refuse_compiling("power", a)
    from semiring.algorithms.chain import power as raise_to  # only where they are wanted: a first call should be quick
    from semiring.execution.sparse_product import power_operand, sparse_power
    from semiring.product import matmul

    require_threads(threads)
    semiring = as_semiring(semiring).marked(False)  # no single k wins in a power
    try:
        exponent = operator.index(k)
    except TypeError:
        raise SemiringError(f"the power is {k!r}; it must be a whole number from 0") from None
    if exponent < 0:
        raise SemiringError(f"the power is {exponent}; a matrix over a semiring has no inverse, so it must be at least 0")
    product = partial(matmul, semiring=semiring, device=device, threads=threads)
    with noted(f"the power {exponent}", semiring, a):
        if holds_sparse(a):
            rows = power_operand(a, semiring, nonedge=nonedge, dtype=dtype, weight=weight)
            return sparse_power(a, rows, exponent, semiring, product, dense=is_gpu(str(device)) and not on_gpu(rows.columns))
        read = read_graph(a, semiring, nonedge=nonedge, dtype=dtype, weight=weight)
        with on_device(device_of(read.values[0])):
            if read.verify is not None:
                read.verify()
            return read.answer(*raise_to(read.values, exponent, semiring, product))


def _solved(graph: Any, semiring: Semiring, options: Options, *, reflexive: bool, presence: bool = False) -> Any:
    """Return the closure of a graph or a stack, or of each graph of a list."""
    if hasattr(reflexive, "shape"):  # before anything asks an array whether it is true
        refuse_arrays(reflexive=reflexive)
    question = Question(semiring, options, reflexive, presence)
    if is_traced(graph):
        from semiring.execution.traced_closure import close_traced  # only where JAX is

        return close_traced(graph, question)
    if isinstance(graph, list | tuple):
        from semiring.execution.each import listed_graphs, solve_each  # only where it is wanted: a first call should be quick

        graphs = listed_graphs(graph, semiring)
        if graphs is not None:
            return [_with_attributes(found, one, question) for found, one in zip(solve_each(graphs, question), graphs, strict=True)]
    if type(graph) is not np.ndarray and is_recorded(graph):
        from semiring.execution.closure_gradients import close_with_gradient  # only where PyTorch is

        return close_with_gradient(graph, question)
    return _with_attributes(solve(graph, question), graph, question)


def _with_attributes(found: Any, graph: Any, question: Question) -> Any:
    """Let paths read other attributes of the edges of their graph."""
    if question.paths and hasattr(found, "_store"):
        found._store.given = graph, question
    return found
