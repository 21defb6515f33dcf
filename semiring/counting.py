"""`count_exactly` counts the walks between all pairs of vertices, in whole numbers of any size."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from semiring.algebra.catalogue import PLUS_TIMES, modular
from semiring.algebra.modular import MOST, is_prime
from semiring.algorithms.csr import CSR
from semiring.algorithms.strong_components import strong_components
from semiring.arrays.conversion import Array
from semiring.arrays.memory import require_bytes
from semiring.arrays.threads import require_threads
from semiring.common.docstrings import described_by
from semiring.common.errors import DivergenceError, DomainError, noted, raised_here
from semiring.graphs.read import one_graph
from semiring.solve import apsp, closure

__all__ = ["count_exactly"]


@raised_here
@described_by(apsp)
def count_exactly(graph: Any, *, weight: Any = None, nonedge: Any = None, device: Any = "auto", threads: int | None = None) -> Array:
    """Count the walks between all pairs of vertices of a graph without cycles, as exact whole numbers.

    Examples
    --------
    A chain of squares: each doubles the number of walks.

    >>> import semiring as sr
    >>> squares = [edge for i in range(100) for edge in ((i, f"a{i}"), (i, f"b{i}"), (f"a{i}", i + 1), (f"b{i}", i + 1))]
    >>> chain = sr.edges(squares)
    >>> counts = sr.count_exactly(chain)
    >>> int(counts[chain.labels.index(0), chain.labels.index(100)]) == 2**100
    True

    Parameters
    ----------
    graph : sparse array, graph of another library, what `edges` gives, or array of shape (n, n)
        See `apsp`. A weight, or an entry of a matrix, is a number of parallel edges, a whole number from 0.
    weight, nonedge
        As for `apsp`. Weights with another meaning are left aside by ``weight=1``.

    Returns
    -------
    array of shape (n, n)
        Element (i, j) is the number of walks from i to j. The empty walk counts, so the diagonal is 1. The dtype is int64 if all counts
        are proved to be below 2⁶². Else an object array has Python's integers.

    Other Parameters
    ----------------
    device : str
        As for `apsp`.
    threads : int, optional
        CPU threads.

    Raises
    ------
    GraphError, ShapeError, DTypeError, TooLargeError
        As for `apsp`.
    DomainError
        If a weight is no whole number from 0.
    DivergenceError
        If an edge is on a cycle: then counts are infinite.

    Notes
    -----
    The sum of a row is at most w_i = 1 + Σ_j a_ij w_j, a bound on its counts. The closure (I − A)⁻¹ is computed modulo as many primes below
    2³¹ as the bound needs, n³ steps each, and combined by the Chinese remainder theorem (Garner, "The residue number system", 1959).
    """
    require_threads(threads)
    with noted("the counts", PLUS_TIMES, graph):
        edges, labels = one_graph(graph, PLUS_TIMES, weight=weight, nonedge=nonedge, dtype=np.int64)
    (numbers,) = edges.weights
    if numbers.size and numbers.min() < 0:
        raise DomainError(f"weights count parallel edges, so they are whole numbers from 0; the least is {numbers.min()}")
    order = _order(edges, labels)
    bound = _bound(edges, order)
    primes = list(_primes(bound))
    require_bytes(edges.n**2 * (8 if len(primes) <= 2 else 8 + bound.bit_length() // 8), "the counts take", "count for a part of the graph")
    found, product = np.zeros((edges.n, edges.n), np.int64 if len(primes) <= 2 else object), 1
    for p in primes:
        matrix = np.zeros((edges.n, edges.n), np.int64)
        matrix[edges.tails, edges.heads] = numbers % p
        residues = closure(matrix, modular(p), device=device, threads=threads)
        # found + product · t is congruent to the residues modulo p, and to `found` modulo the primes before.
        digits = (residues - (found % p).astype(np.int64)) % p * pow(product, -1, p) % p
        found, product = found + product * (digits if found.dtype == np.int64 else digits.astype(object)), product * p
    return found


def _order(edges: CSR, labels: Any) -> Array:
    """Return the vertices, each after all to which its edges lead; raise DivergenceError for a cycle."""
    count, components = strong_components(edges.starts, edges.heads)
    on_cycle = components[edges.tails] == components[edges.heads]
    if on_cycle.any():
        vertex = int(edges.tails[on_cycle][0])
        name = vertex if labels is None else labels[vertex]
        raise DivergenceError(
            f"some counts are infinite: there is a cycle through vertex {name!r}; count_exactly takes graphs without cycles"
        )
    assert count == edges.n
    return np.argsort(components)


def _bound(edges: CSR, order: Array) -> int:
    """Return the largest sum of a row of counts."""
    sums, (numbers,) = [1] * edges.n, edges.weights
    for v in order.tolist():
        part = slice(int(edges.starts[v]), int(edges.starts[v + 1]))
        sums[v] = 1 + sum(a * sums[j] for a, j in zip(numbers[part].tolist(), edges.heads[part].tolist(), strict=True))
    return max(sums, default=1)


def _primes(bound: int) -> Iterator[int]:
    """Yield primes whose product is above a bound, from 2³¹ − 1 down."""
    product, p = 1, MOST
    while product <= bound:
        if is_prime(p):
            yield p
            product *= p
        p -= 1
