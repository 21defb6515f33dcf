"""`factor`, a sparse graph eliminated once: any rows, columns and entries of its closure afterwards, and new weights in little time."""

from __future__ import annotations

from typing import Any

from semiring.algebra.catalogue import MIN_PLUS, as_semiring
from semiring.algebra.definition import Semiring
from semiring.arrays.threads import require_threads
from semiring.common.docstrings import described_by
from semiring.common.errors import raised_here, refuse_arrays
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
    """Factorize a sparse graph for many shortest paths: what its closure takes, in little more memory than the graph.

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

    A road is closed, and only what depends on it is eliminated again:

    >>> f.update((["Thun"], ["Bern"], [float("inf")]))
    >>> float(f["Spiez", "Jura"])
    inf

    Parameters
    ----------
    graph : sparse array, graph of another library, what `edges` gives, or array of shape (n, n)
        See `apsp`. A vertex may have a loop. Parallel edges combine with ⊕; no edge is what is not stored.
    semiring : Semiring or str
        With the laws of a closure; one of the catalogue also by its name.
    order : str or sequence of vertices
        The order of elimination: "metis" (nested dissection, by pymetis), "minimum degree" (by SciPy), "natural", or the vertices. "auto"
        is the first that ``pip install -e ".[sparse]"`` brings.
    weight, nonedge, dtype
        As for `apsp`.

    Returns
    -------
    Factor

    Other Parameters
    ----------------
    device : str
        "cuda", "cuda:0", … has a GPU eliminate, and rows, columns and closures found there, which are left there as arrays of CuPy;
        "auto" is the CPU.
    threads : int, optional
        By default ``SEMIRING_NUM_THREADS``, or all cores.
    check : bool
        False looks for no overflow.

    Raises
    ------
    GraphError, ShapeError, DTypeError, DomainError
        As for `apsp`; an order that is unknown, or does not name each vertex once.
    LawError
        Without the laws of a closure.
    DivergenceError
        Where the closure does not exist; `NegativeCycleError` for min-plus, which names the cycle.
    OverflowRiskError
        Integers or floats so large that a path could leave the dtype.
    TooLargeError
        Where fill takes more memory than there is.
    SemiringError
        For a device that is not there.

    Notes
    -----
    On planar graphs of n vertices O(n log n) memory, O(n^1.5) steps for the elimination and O(n log n) for each row; on graphs without
    small separators, such as random ones, nearly as much as for a dense matrix. Backhouse and Carré (1975); Sao, Kannan, Gera and Vuduc,
    PPoPP 2020. Floats with negative weights are within n · ε of the largest magnitude; smaller negative cycles
    pass for rounding.
    """
    require_threads(threads)
    refuse_arrays(check=check)
    return factor_graph(graph, as_semiring(semiring), FactorOptions(order, weight, nonedge, dtype, device, threads, bool(check)))
