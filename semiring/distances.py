"""`pairwise` compares rows with rows: distances by name, or by operations of the caller's own."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Real
from typing import Any

from semiring.algebra.definition import Semiring
from semiring.algorithms.metrics import Metric, formula, metric_named
from semiring.arrays.devices import in_stream_of
from semiring.arrays.exchange import holds_sparse
from semiring.arrays.followed import refuse_compiling
from semiring.arrays.threads import require_threads
from semiring.common.errors import GraphError, SemiringError, described, raised_here, refuse_arrays, require_k
from semiring.execution.operands import flattened
from semiring.execution.pairwise import Neighbours, Wanted, pairwise_blocks

__all__ = ["Neighbours", "pairwise"]


@raised_here
def pairwise(
    x: Any,
    y: Any = None,
    metric: str | Semiring | None = None,
    *,
    mul: Callable[[Any, Any], Any] | None = None,
    add: Callable[[Any, Any], Any] | None = None,
    finish: Callable[[Any], Any] | None = None,
    weights: Any = None,
    p: float = 2,
    V: Any = None,
    k: int | None = None,
    largest: bool | None = None,
    condensed: bool = False,
    out: Any = None,
    device: str = "auto",
    threads: int | None = None,
    check: bool = True,
) -> Any:
    """Compare each row of x with each row of y: element (i, j) is finish(⊕ over the features t of mul(x_it, y_jt)).

    Examples
    --------
    >>> import numpy as np, semiring as sr
    >>> towns = np.array([[0.0, 0.0], [3.0, 4.0], [6.0, 0.0]])
    >>> sr.pairwise(towns, metric="euclidean")
    array([[0., 5., 6.],
           [5., 0., 5.],
           [6., 5., 0.]])
    >>> sr.pairwise(towns[:1], towns, mul=lambda x, y: abs(x - y), add=max)
    array([[0., 4., 6.]])

    >>> sr.pairwise(towns[:1], towns, "l1", k=2).indices
    array([[0, 2]])

    Parameters
    ----------
    x : array of shape (m, d)
    y : array of shape (n, d), optional
        Arrays of any library; without y, x is compared with itself.
    metric : str or Semiring, optional
        "euclidean" (the default), "l1", or another metric of `scipy.spatial.distance.cdist`; "intersection", the sum of minima. A semiring
        is a formula with a zero.
    mul : callable, optional
        Your own formula: the term of a feature, or a tuple of terms for several sums.
    add : callable, optional
        ⊕ of two terms; by default the sum.
    finish : callable, optional
        The result, of the sum or tuple of sums, such as ``semiring.ops.sqrt``.
    weights : array of shape (d,), optional
        Weights of features, SciPy's w.
    p : float
        The exponent of "minkowski".
    V : array of shape (d,), optional
        Variances for "seuclidean"; by default those of x and y.
    k : int, optional
        Return the k smallest entries of each row, without storing m × n entries.
    largest : bool, optional
        True returns the k largest; the default for "intersection".
    condensed : bool
        Return the entries right of the diagonal, as `scipy.spatial.distance.pdist`.
    out : array of the result's shape and dtype, optional

    Returns
    -------
    array, or Neighbours
        The matrix of shape (m, n); with `k` a named tuple ``(values, indices)`` of sorted entries, equal ones by their columns. Library
        and device are those of `out`, or else of the first operand that is not NumPy's.

    Other Parameters
    ----------------
    device, threads
        See `matmul`.
    check : bool
        False skips checks of numbers for your own formulas.

    Raises
    ------
    ShapeError, DTypeError, GraphError
        If x and y do not fit together or cannot be read.
    TraceError
        If a callable cannot be recorded.
    DomainError, OverflowRiskError
        If an entry is no element for your own formula, or integers could overflow.

    Notes
    -----
    m·n·d steps. Metrics with a name compute in float64, or float32 for float32 arrays. A row with NaN gives NaN. Differences are summed
    directly, so nearby rows lose no digits. More: How-to, Pairwise distances.
    """
    refuse_compiling("pairwise", x, y)
    refuse_arrays(k=k, largest=largest, condensed=condensed, device=device, check=check)
    require_threads(threads)
    if any(map(holds_sparse, (x, y))):
        raise GraphError("pairwise takes dense arrays; pass a sparse array's .toarray()")
    k = None if k is None else require_k(k)
    if k is not None and (condensed or out is not None):
        raise SemiringError(f"k= makes arrays of k columns; leave out {'condensed' if condensed else 'out'}=")
    if condensed and y is not None:
        raise SemiringError("condensed= is for the rows of x with each other; leave out y=")
    chosen, name, own = _metric(metric, mul, add, finish, p)
    if V is not None and chosen.weighs != "variances":
        raise SemiringError("V= has the variances of 'seuclidean'; other metrics take weights=")
    if chosen.weighs == "variances":
        if weights is not None:
            raise SemiringError("seuclidean takes no weights, because 1 / V are its weights; leave out weights=")
        weights = V
    wanted = Wanted(
        chosen, name, own, weights, k, bool(chosen.largest if largest is None else largest), bool(condensed),
        out, device, threads, bool(check),
    )  # fmt: skip
    with in_stream_of(flattened((x, y, out))):
        return pairwise_blocks(x, y, wanted)


def _metric(
    metric: Any, mul: Callable[[Any, Any], Any] | None, add: Callable[[Any, Any], Any] | None, finish: Callable[[Any], Any] | None, p: Any
) -> tuple[Metric, str, Semiring | None]:
    """Return the metric, its name, and the semiring that was passed."""
    if isinstance(metric, Semiring):
        if mul is not None or add is not None:
            raise SemiringError(f"{metric.name} has its own mul and add; pass either a semiring or mul= and add=")
        if metric.components > 1:
            raise SemiringError(f"{metric.name} has structured elements; pass mul= with a tuple of terms")
        made = formula(metric.mul, lambda a, b: a + b, finish)
        return Metric(metric.mul, made.finish, metric.add, metric.zero, weighs="", floats=False), metric.name, metric.marked(False)
    if mul is None and add is None and (metric is not None or finish is None):
        if finish is not None:
            raise SemiringError("finish= belongs to mul=; a metric with a name has its own")
        name = "euclidean" if metric is None else metric
        if not isinstance(name, str):
            raise SemiringError(f"metric is {described(name)}; pass a name, a Semiring, or mul= and add=")
        if not isinstance(p, Real) or isinstance(p, bool) or not float(p) > 0:
            raise SemiringError(f"p is {described(p)}; the exponent of minkowski is a number above 0")
        return metric_named(name, float(p)), name.lower(), None
    if metric is not None:
        raise SemiringError(f"metric={metric!r} has its own operations; pass either metric= or mul= and add=")
    if mul is None or not callable(mul) or not (add is None or callable(add)) or not (finish is None or callable(finish)):
        raise SemiringError("your own formula needs mul=, a callable of two numbers; add= and finish= are callables, or left out")
    return formula(mul, add, finish), "the formula", None
