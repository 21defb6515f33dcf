"""Shortest-path problems of DIMACS: ``.gr`` files of road networks, with a line for each arc."""

from __future__ import annotations

import numpy as np

from semiring.common.units import counted
from semiring.files.fields import WrongLine, is_index, number
from semiring.graphs import EdgeList, edges

__all__ = ["parse_dimacs"]


def parse_dimacs(text: str) -> EdgeList:
    """Read comments (c), one line ``p sp n m``, and m lines ``a tail head weight`` of vertices 1 to n.

    O(n + m). Raises WrongLine for any other line, and for another number of arcs. The format is that of the 9th DIMACS Implementation
    Challenge, http://www.diag.uniroma1.it/challenge9/format.shtml.
    """
    lines = text.splitlines()
    arcs = [line[2:] for line in lines if line[:2] == "a "]
    try:
        problem, *others = ((at, line.split()) for at, line in enumerate(lines, 1) if line[:2] != "a " and line.strip() and line[0] != "c")
    except ValueError:
        raise WrongLine(1, "no line begins with p; a problem begins with a line such as 'p sp 5 8', for 5 vertices and 8 arcs") from None
    at, fields = problem
    if len(fields) != 4 or fields[:2] != ["p", "sp"] or not all(text.isascii() and text.isdigit() for text in fields[2:]):
        raise WrongLine(
            at, f"{' '.join(fields)!r} is not 'p sp' and the numbers of vertices and arcs, as of a DIMACS shortest-path problem"
        )
    if others:
        raise WrongLine(others[0][0], f"{' '.join(others[0][1])!r} is not an arc such as 'a 1 2 7', nor a comment, which begins with c")
    n, m = map(int, fields[2:])
    if len(arcs) != m:
        raise WrongLine(at, f"the problem announces {counted(m, 'arc')}, and the file has {len(arcs):,}; it may be incomplete")
    try:  # integers, which NumPy reads fast
        tails, heads, weights = np.loadtxt(arcs, np.int64, comments=None, ndmin=2).T if arcs else np.empty((3, 0), np.int64)
        if arcs and not 1 <= min(tails.min(), heads.min()) <= max(tails.max(), heads.max()) <= n:
            raise ValueError
    except (ValueError, OverflowError):
        found = [_arc(at, line.split(), n) for at, line in enumerate(lines, 1) if line[:2] == "a "]
        tails, heads, weights = map(np.array, zip(*found, strict=True))
    return edges(tails, heads, weights, nodes=range(1, n + 1))


def _arc(at: int, fields: list[str], n: int) -> tuple[int, int, int | float]:
    try:
        _, tail, head, weight = fields
        (u, v), length = map(int, (tail, head)), number(weight)
        if length is not None and is_index(tail) and is_index(head) and 1 <= u <= n and 1 <= v <= n:
            return u, v, length
    except ValueError:
        pass
    raise WrongLine(at, f"{' '.join(fields)!r} is not an arc: a, two vertices from 1 to {n}, and a number as the weight")
