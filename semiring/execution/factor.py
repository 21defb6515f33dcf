"""The factor of a sparse graph: reading, ordering, analysis, and the check of memory."""

from __future__ import annotations

from typing import Any

from semiring.algebra.definition import Semiring
from semiring.algorithms.csr import CSR
from semiring.algorithms.factorization import Factorization
from semiring.algorithms.schedules import require_closure_laws
from semiring.algorithms.symbolic import Symbolic, analysed
from semiring.arrays.conversion import Array
from semiring.arrays.exchange import holds_sparse, is_sparse
from semiring.arrays.followed import requires_gradient
from semiring.arrays.memory import require_bytes
from semiring.arrays.threads import thread_count
from semiring.common.errors import DTypeError, GraphError, noted
from semiring.graphs.coo import to_scipy
from semiring.graphs.foreign import listed_edges
from semiring.graphs.read import one_graph
from semiring.graphs.reweighing import Listing
from semiring.graphs.vertices import chosen
from semiring.planning.options import Options, named_device
from semiring.results.factor import Factor

__all__ = ["factor_graph"]


def factor_graph(graph: Any, semiring: Semiring, order: Any, options: Options) -> Factor:
    """Factor a graph of any kind, in an order of elimination."""
    with noted("the elimination", semiring, graph):
        if requires_gradient(graph):
            raise GraphError(
                "the weights require a gradient, which a factor does not propagate; pass .detach(), and solve has a gradient of its b, or "
                "call apsp or closure with the dense tensor"
            )
        listed = listed_edges(graph)
        edges, labels = one_graph(
            graph, semiring, nonedge=options.nonedge, dtype=options.dtype, weight=options.weight, listed=listed, closed=True
        )
        if any(d.kind == "O" for d in edges.dtypes):
            raise DTypeError("elimination is compiled for numbers, and these are objects; pass dtype=float, or use closure")
        require_closure_laws(semiring, edges.dtypes, paths=False)
        found = analysed(edges, order if isinstance(order, str) else chosen(order, edges.n, labels, "order").numbers)
        _require_room(found, edges, thread_count(options.threads))
        names = int if labels is None else labels.__getitem__
        device = named_device(options.device, "cpu", exact=False, compiled=True) or "cpu"
        matrix = Factorization(semiring, edges, found, names, threads=options.threads, check=options.check, device=device)
        read = Listing(weight=options.weight, nonedge=options.nonedge)
        if listed is not None:
            return Factor(matrix, labels, read._replace(ends=(listed.sources, listed.targets), directed=listed.directed))
        first = graph[0] if isinstance(graph, tuple | list) and holds_sparse(graph) else graph
        by_rows = not is_sparse(first) or (getattr(first, "format", "") == "csr" and bool(getattr(first, "has_canonical_format", False)))
        return Factor(matrix, labels, read._replace(ends=None if by_rows else _entry_order(first), by_rows=by_rows))


def _entry_order(graph: Any) -> tuple[Array, Array] | None:
    """Return rows and columns of the entries of a sparse array, in stored order; None for formats without an order."""
    if getattr(graph, "format", "") not in ("csr", "csc", "coo"):
        return None
    coo = to_scipy(graph).tocoo()
    return coo.row, coo.col


def _require_room(found: Symbolic, edges: CSR, threads: int) -> None:
    """Refuse an elimination whose panels and largest front exceed the memory."""
    fill, needed = found.fill, found.fill.memory(sum(d.itemsize for d in edges.dtypes), edges.n, threads)
    what = f"eliminating {edges.n:,} vertices in the order {fill.order!r} fills {fill.entries:,} entries, and on {threads:,} threads takes"
    require_bytes(needed, what, "find rows by searches, apsp(graph, sources=…)")
