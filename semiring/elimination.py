"""`factor`: eliminate a sparse graph once, then ask for rows, columns and entries of the closure, or change weights."""

from __future__ import annotations

from typing import Any

from semiring.algebra.catalogue import MIN_PLUS, as_semiring
from semiring.algebra.definition import Semiring
from semiring.arrays.threads import require_threads
from semiring.common.errors import described_by, raised_here, refuse_arrays
from semiring.execution.factor import FactorOptions, factor_graph
from semiring.results.factor import Factor
from semiring.solve import apsp

__all__ = ["Factor", "factor"]


@raised_here
@described_by(apsp)
def factor(
    graph: Any,
    semiring: Semiring | str = MIN_PLUS,
    *,
    order: Any = "auto",
    weight: Any = None,
    nonedge: Any = None,
    dtype: Any = None,
    device: str = "auto",
    threads: int | None = None,
    check: bool = True,
) -> Factor:
    """Prepare a sparse graph once; later distance queries are fast.

    The result takes little more memory than the graph.

    Examples
    --------
    >>> import semiring as sr
    >>> roads = sr.edges([("Bern", "Thun", 30), ("Thun", "Spiez", 11), ("Bern", "Biel", 41), ("Biel", "Jura", 70)], directed=False)
    >>> f = sr.factor(roads)
    >>> f  # doctest: +ELLIPSIS
    <factor of 5 vertices over min-plus: order ..., 4 entries of fill, height ...>
    >>> f.rows("Spiez")
    array([ 41.,  11.,   0.,  82., 152.])
    >>> f["Spiez", ["Biel", "Jura"]]
    array([ 82., 152.])

    Close a road (only dependent entries are eliminated again):

    >>> f.update((["Thun"], ["Bern"], [float("inf")]))
    >>> float(f["Spiez", "Jura"])
    inf

    Parameters
    ----------
    graph : sparse array, graph of another library, what `edges` gives, or array of shape (n, n)
        See `apsp`. Loops are allowed, and parallel edges combine with ⊕.
    semiring : Semiring or str
        Any semiring that permits a closure, or a name of the catalogue.
    order : str or sequence of vertices
        The order of elimination: "metis" (nested dissection, by pymetis), "minimum degree" (by SciPy), "natural", or the vertices.
        "auto" takes the first of these that is installed (``pip install -e ".[sparse]"``).
    weight, nonedge, dtype
        As for `apsp`.

    Returns
    -------
    Factor

    Other Parameters
    ----------------
    device : str
        "cuda", "cuda:0", … eliminates and answers on a GPU; rows, columns and closures are then CuPy arrays. "auto" is the CPU.
    threads : int, optional
        By default ``SEMIRING_NUM_THREADS``, or all cores.
    check : bool
        False skips the check for overflow.

    Raises
    ------
    GraphError, ShapeError, DTypeError, DomainError
        As for `apsp`; also for an order that does not name each vertex once.
    LawError
        If the semiring permits no closure.
    DivergenceError
        If the closure does not exist; for min-plus a `NegativeCycleError` that names the cycle.
    OverflowRiskError
        If weights are so large that a path could leave the dtype.
    TooLargeError
        If the fill does not fit into memory.
    SemiringError
        If the device does not exist.

    Notes
    -----
    A planar graph of n vertices takes O(n log n) memory, O(n^1.5) steps of elimination and O(n log n) steps for each row; a graph without
    small separators costs nearly as much as a dense matrix. Backhouse and Carré (1975); Sao, Kannan, Gera and Vuduc, PPoPP 2020. With
    negative floats, results are within n · ε of the largest magnitude; smaller negative cycles pass for rounding.
    """
    require_threads(threads)
    refuse_arrays(check=check)
    return factor_graph(graph, as_semiring(semiring), FactorOptions(order, weight, nonedge, dtype, device, threads, bool(check)))
