"""Graphs in, answers out: all-pairs shortest paths, closures over any semiring, reachability, powers."""

from __future__ import annotations

import operator
from functools import partial
from typing import Any, Unpack

from semiring.algebra.catalogue import BOOLEAN, MIN_PLUS
from semiring.algebra.definition import Semiring, require_semiring
from semiring.arrays.devices import device_of, on_device
from semiring.common.docstrings import described_by
from semiring.common.errors import SemiringError, noted
from semiring.execution.closure import solve
from semiring.graphs import read_graph
from semiring.planning.options import ClosureOptions, Options, takes

__all__ = ["apsp", "closure", "power", "transitive_closure"]


@takes(ClosureOptions)
def apsp(
    graph: Any,
    **options: Unpack[ClosureOptions],
) -> Any:
    """All-pairs shortest paths: the weight of a shortest path between every two vertices, and the paths if wanted.

    Examples
    --------
    >>> import numpy as np, semiring as sr
    >>> inf = np.inf
    >>> sr.apsp(np.array([[0, 3, inf], [inf, 0, 4], [2, inf, 0]]))
    array([[0., 3., 7.],
           [6., 0., 4.],
           [2., 5., 0.]])
    >>> sr.apsp(sr.edges([("Bern", "Basel", 95), ("Basel", "Genf", 250)]), paths=True).path("Bern", "Genf")
    ['Bern', 'Basel', 'Genf']
    >>> sr.apsp(sr.edges([("Bern", "Basel", 95), ("Basel", "Genf", 250)]), sources="Bern", targets=["Genf", "Bern"])
    array([345.,   0.])

    Parameters
    ----------
    graph : array of shape (…, n, n), sparse array, NetworkX graph, or what `edges` gives
        An array of NumPy, CuPy, PyTorch, JAX, Numba, the array API standard, or whatever gives DLPack, an array interface or a buffer,
        with any strides; a nested list, pandas DataFrame or SymPy matrix. The weight of the edge from i to j at [i, j]. Dense: a missing
        edge is ∞ (the largest value of an integer dtype), or `nonedge`. Sparse: what is absent is no edge, and an explicit 0 is one.
        NetworkX: the attribute ``weight``, 1 where it is missing.
        Leading axes hold several graphs.
    paths : bool
        Return a `Paths`, which knows the paths too.
    sources, targets : vertex or sequence of vertices, optional
        Only the paths from these vertices, to those, or both. They are named by their labels where the graph has some (NetworkX, edge
        lists, pandas) and by their indices otherwise, in any order, also repeatedly. For a vertex by itself the result has no axis, as for
        SciPy's ``indices``.
    nonedge : scalar, optional
        What stands for a missing edge in a dense matrix, 0 or NaN for instance.
    dtype : dtype, optional
        Of the computation; by default the graph's own, float64 for sparse arrays, NetworkX graphs and edge lists.
    device : {"auto", "cpu", "cuda", "cuda:0", …, "cuda:all", "reference"}, or a list
        Arrays on a GPU stay there. "auto" takes a GPU for others where that is predicted to be faster, copies included. Several GPUs
        share one matrix: "cuda:all", or a list such as ``["cuda:0", "cuda:1"]``.
    threads : int, optional
        By default ``SEMIRING_NUM_THREADS``, or all cores.
    check : bool
        Refuse what is no element (NaN) and what could leave the dtype, and warn of zeros that are probably missing edges. With False
        nobody looks for these where the matrix is closed as a whole, which saves reading it once more; for a graph that is accepted the
        result is the same, and for any other one it is whatever comes out. A divergent cycle, such as a negative one, raises in any case.
    overwrite : bool
        Permit that the result takes the place of an array that was passed, if it can be written to (JAX's cannot).
    memory_limit : int or str, optional
        Bytes, or a string such as "8GiB", that the call may allocate where it computes: on each GPU, or in the memory of the host. A matrix
        that is larger is worked on by block rows, which come and go while others are computed; on a GPU so is one that exceeds its free
        memory. It may be an array in memory, a `numpy.memmap` or a Zarr array.
    checkpoint : path, optional
        A folder to keep the work in, for a matrix of the host or on disk: the result is a `numpy.memmap` there (or in the input's own file,
        with ``overwrite=True``), and after a crash, a kill or Ctrl-C the same call goes on where it was, with the same bits. Another
        input, and a result that was changed, are errors.
    progress : callable or bool, optional
        Of work by block rows: a function that is told a `semiring.Progress` now and then; True for a bar (of tqdm,
        where it is installed), False for none. By default a bar where that takes long.
    method : {"auto", "iterative", "blocked", "recursive"}
        "auto" is recursive: nearly all work is large products.
    block : int, optional
        Side of the pivot blocks (blocked, also by block rows) or of the base case (recursive).

    Returns
    -------
    array of shape (…, n, n), or Paths
        Distances of the graph's dtype, ∞ where there is no path and 0 on the diagonal. An array is of the library and on the device of
        the one that was passed, and NumPy's, or CuPy's on a GPU, where that has no library to make arrays. With `sources` or `targets`
        a row for each source and a column for each target, or `PathsBetween`, which knows the paths of these pairs.

    Raises
    ------
    NegativeCycleError
        With one negative cycle in ``.cycle``.
    OverflowRiskError
        Integer weights so large that a distance could leave the dtype.
    GraphError, ShapeError, DTypeError, DomainError, TooLargeError
        Input that is no graph, not square, of no such dtype, with NaN, or too large to be dense where it is to be computed.
    CheckpointError
        A folder with something else in it, or the checkpoint of another closure or of other entries; what names no folder.
    SemiringError
        An unknown method or device, a bad block or limit.

    Notes
    -----
    The plan of a call, `explain`, tells how it is computed. All pairs of a sparse graph are searched where that is predicted to be faster
    than the closure of its matrix, as below for `sources`.

    n³ steps; memory for the result (and 4n² bytes for the paths) and a few percent beside it. The recursive algorithm is Buluç, Gilbert
    and Budak (2010), Fig. 3; the blocked one Katz and Kider (2008), with paths Matsumoto, Nakasato and Sedukhin (2012), Alg. 3–6.

    By block rows it is the blocked algorithm, n³ steps too, and each round of b vertices reads and writes the matrix once; a device holds
    two to five block rows (three to six of several), or its share and two. Where only rounding makes a cycle negative that is refused.
    A checkpoint takes 2n² entries more of writing in all, survives the process but not the machine, and knows its input again by every
    entry.

    The bits of a result follow from the graph, the method, the block and whether a CPU or a GPU computes, and not from the number of
    threads or GPUs, nor from speeds. Free memory decides whether a matrix goes by block rows where the arguments do not; `explain` says
    which arguments pin that.

    With `sources` or `targets` memory is for s·n entries, for s sources or, if they are fewer or the only ones named, targets. A sparse
    graph stays sparse, and is searched from each source: best first, as by Dijkstra's algorithm, in O(m log m), s searches side by side
    on all threads; with negative edges (and for exact numbers) in rounds, of at most m steps each and as many as paths have edges. A
    dense one is multiplied by s rows, s·n² steps a round; one that `nonedge` or `dtype` changes is copied. The closure of all that they
    reach is taken instead where that is predicted to be faster, or turns out to be, and fits half of the free memory; where ⊕ needs it
    (see `closure`); and where `method` or `block` is given. Only cycles matter that a source reaches, or that reach a target where
    targets are searched.

    With non-negative float weights a distance is within h·ε·Σ|w| of a shortest path of h edges, with negative ones within n·ε times the
    largest magnitude of a weight or a distance; a cycle that is negative by less may go unreported, as it cannot be told from one of weight
    0. Where only rounding makes a cycle negative, the work doubles. −0.0 and 0.0 are one element; which of them comes out is not specified.
    """
    return solve(graph, MIN_PLUS, Options.of(options, "apsp"), reflexive=True)


@described_by(apsp)
@takes(ClosureOptions)
def closure(
    a: Any,
    semiring: Semiring,
    *,
    reflexive: bool = True,
    **options: Unpack[ClosureOptions],
) -> Any:
    """The closure of a matrix over any semiring: A* = I ⊕ A ⊕ A² ⊕ …, or A⁺ = A ⊕ A² ⊕ ….

    Element (i, j) is the sum over all paths from i to j of the product of their edges.

    Examples
    --------
    >>> import numpy as np, semiring as sr
    >>> width = np.array([[0, 5, 2], [0, 0, 3], [0, 0, 0]])
    >>> sr.closure(width, sr.MAX_MIN, nonedge=0, reflexive=False, dtype=float)
    array([[-inf,   5.,   3.],
           [-inf, -inf,   3.],
           [-inf, -inf, -inf]])
    >>> sr.closure(np.array([[0.5, 0.25], [0.0, 0.5]]), sr.PLUS_TIMES)
    array([[2., 1.],
           [0., 2.]])

    Parameters
    ----------
    a : array of shape (…, n, n), tuple of such arrays, sparse array, NetworkX graph, or what `edges` gives
        A tuple holds one array for each component of a structured element. See `apsp` for graphs.
    semiring : Semiring
    reflexive : bool
        A*, with the empty path from each vertex to itself, or A⁺ without.
    paths
        As for `apsp`. It needs a selective ⊕; a semiring with its witness (`Semiring.with_witness`) gives them unasked.
    sources, targets
        As for `apsp`.
    nonedge
        As for `apsp`. It stands for the semiring's zero.
    dtype, device, threads, check, overwrite, memory_limit, checkpoint, progress, method, block
        As for `apsp`.

    Returns
    -------
    array of shape (…, n, n), tuple of arrays, or Paths
        Of the library and on the device of what was passed, as for `apsp`.

    Raises
    ------
    DivergenceError
        Where the closure does not exist, with a cycle that shows it in ``.cycle`` where there is one.
    LawError
        Where the semiring lacks a law that this needs, with a counterexample and what would work.
    SemiringError
        And the other errors of `apsp`.

    Notes
    -----
    n³ steps. A semiring with an idempotent ⊕ runs the accumulating schedules; any other is eliminated with ``star`` as Gauss and Jordan
    do, so that the closure over `PLUS_TIMES` is (I − A)⁻¹ without pivoting. So is, with `sources` or `targets`, the whole of what they
    reach; but sparse graphs over a semiring without ``star``, such as `DISTANCE_COUNT`, stay sparse. Of rounding and of −0.0 `apsp` tells
    what holds for every semiring on floats.
    """
    require_semiring(semiring)
    return solve(a, semiring, Options.of(options, "closure"), reflexive=reflexive)


@described_by(apsp)
@takes(ClosureOptions)
def transitive_closure(
    graph: Any,
    *,
    reflexive: bool = False,
    **options: Unpack[ClosureOptions],
) -> Any:
    """Which vertices can be reached from which.

    Examples
    --------
    >>> import semiring as sr
    >>> sr.transitive_closure([[0, 1, 0], [0, 0, 1], [0, 0, 0]])
    array([[False,  True,  True],
           [False, False,  True],
           [False, False, False]])

    Parameters
    ----------
    graph : array of shape (…, n, n), sparse array, NetworkX graph, or what `edges` gives
        Dense: truth values, or integers 0 and 1; other dtypes need `nonedge`. A number that a sparse array stores, like the weight of a
        listed edge, is an edge whatever it is, 0 too, as for `apsp`; a truth value is what it says, so that a stored False is no edge.
    reflexive : bool
        Every vertex reaches itself; otherwise only through a cycle.
    paths, sources, targets, nonedge
        As for `apsp`.
    dtype : dtype, optional
        The only one is bool.
    device, threads, check, overwrite, memory_limit, checkpoint, progress, method, block
        As for `apsp`.

    Returns
    -------
    bool array of shape (…, n, n), or Paths
        Of the library and on the device of what was passed, as for `apsp`.

    Raises
    ------
    GraphError, ShapeError, DTypeError, TooLargeError, SemiringError
        As for `apsp`.

    Notes
    -----
    n³ bit-steps on a matrix of bits, after strongly connected components have been condensed where that pays.
    """
    return solve(graph, BOOLEAN, Options.of(options, "transitive_closure"), reflexive=reflexive, presence=True)


@described_by(apsp)
def power(
    a: Any, k: int, semiring: Semiring, *, nonedge: Any = None, dtype: Any = None, device: str = "auto", threads: int | None = None
) -> Any:
    """The k-th power of a matrix: the sum over the paths of exactly k edges.

    Examples
    --------
    >>> import numpy as np, semiring as sr
    >>> sr.power(np.array([[1, 1], [1, 0]]), 10, sr.PLUS_TIMES)  # Fibonacci's numbers
    array([[89, 55],
           [55, 34]])

    Parameters
    ----------
    a : array of shape (…, n, n), or anything that `closure` takes
    k : int
        At least 0; the 0-th power is the identity matrix.
    semiring : Semiring
    nonedge
        As for `apsp`. It stands for the semiring's zero.
    device : {"auto", "cpu", "cuda", "cuda:0", …, "reference"}
        One device, and not several of them.
    dtype, threads
        As for `apsp`.

    Returns
    -------
    array of shape (…, n, n), or tuple of arrays
        Of the library and on the device of what was passed, as for `apsp`.

    Raises
    ------
    DomainError, OverflowRiskError
        A power on the way left the carrier or the dtype.
    SemiringError
        A power below 0, and the errors of `closure` and `matmul`.

    Notes
    -----
    At most 2 log₂ k products.
    """
    from semiring.algorithms.power import power as raise_to  # only where they are wanted: a first call should be quick
    from semiring.product import matmul

    require_semiring(semiring)
    try:
        exponent = operator.index(k)
    except TypeError:
        raise SemiringError(f"the power is {k!r}; it must be a whole number from 0") from None
    if exponent < 0:
        raise SemiringError(f"the power is {exponent}; a matrix over a semiring has no inverse, so it must be at least 0")
    with noted(f"the power {exponent}", semiring, a):
        read = read_graph(a, semiring, nonedge=nonedge, dtype=dtype)
        with on_device(device_of(read.values[0])):
            if read.verify is not None:
                read.verify()
            return read.answer(
                *raise_to(read.values, exponent, semiring, partial(matmul, semiring=semiring, device=device, threads=threads))
            )
