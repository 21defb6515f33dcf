"""Paths: that each is one, that its edges have the weight that is told, and that trees and construction matrices say the same."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from tests.campaign.answers import Answer, plain
from tests.campaign.arithmetic import Near
from tests.campaign.cases import Complaint
from tests.campaign.subjects import Array

__all__ = ["check_construction", "check_path", "check_tree"]

NONE = -9999


def _same(answer: Answer, x: Sequence[Any], y: Sequence[Any]) -> Array:
    """Where elements are equal, up to what rounding may do."""
    same = [np.asarray(plain(v) == plain(w), dtype=bool) for v, w in zip(x, y, strict=True)]
    if answer.slack:
        same = [s | (np.abs(plain(v) - plain(w)) <= 4 * answer.slack) for s, v, w in zip(same, x, y, strict=True)]
    return np.asarray(np.logical_and.reduce(same))


def _take(values: Sequence[Any], *index: Any) -> tuple[Any, ...]:
    return tuple(Near(plain(v)[index]) if isinstance(v, Near) else v[index] for v in values)


def check_path(answer: Answer, i: int, j: int, path: list[int], *, reflexive: bool) -> Complaint | None:
    """One path between two vertices, given by their numbers."""

    def wrong(what: str) -> Complaint:
        return Complaint("path", f"the path {path} from {i} to {j} {what}")

    if not answer.reached(answer.closure)[i, j]:
        return None if not path else wrong("is of a pair without one")
    if not path or path[0] != i or path[-1] != j:
        return wrong("does not lead from the one to the other")
    if i == j and reflexive:
        return None if path == [i] else wrong("is not the empty one")
    inner = path[:-1] if i == j else path
    if len(set(inner)) < len(inner):
        return wrong("visits a vertex twice")
    if len(path) < 2:
        return wrong("has no edge")
    edge = answer.reached(answer.edges)
    algebra, weight = answer.algebra, None
    for u, v in itertools.pairwise(path):
        if not edge[u, v]:
            return wrong(f"uses {u} → {v}, which is no edge")
        step = _take(answer.edges, slice(u, u + 1), slice(v, v + 1))
        weight = step if weight is None else algebra.mul(weight, step)
    assert weight is not None
    if not _same(answer, weight, _take(answer.closure, slice(i, i + 1), slice(j, j + 1))).all():
        return wrong(f"has the weight {[plain(w).item() for w in weight]}, and the element is {[plain(v)[i, j] for v in answer.closure]}")
    return None


def check_construction(answer: Answer, via: Array) -> Complaint | None:
    """The construction matrix: −1 for an edge, or for none; otherwise a vertex between two parts of a best path."""
    n, algebra = len(via), answer.algebra
    if via.dtype != np.int32 or via.shape != (n, n) or (n and not (via.min() >= -1 and via.max() < n)):
        return Complaint("via", f"via has dtype {via.dtype}, shape {via.shape} or numbers that name no vertex")
    reached, rows, columns = answer.reached(answer.closure), *np.nonzero((via >= 0) & ~np.eye(n, dtype=bool))
    if (via[~reached] >= 0).any():
        return Complaint("via", "via names a vertex between two that no path joins")
    middle = via[rows, columns]
    if ((middle == rows) | (middle == columns)).any():
        return Complaint("via", "via names an end of the path")
    joined = algebra.mul(_take(answer.star, rows, middle), _take(answer.star, middle, columns))
    if not _same(answer, joined, _take(answer.closure, rows, columns)).all():
        return Complaint("via", "the parts that via names do not make the whole")
    edges = reached & (via < 0) & ~np.eye(n, dtype=bool)
    rows, columns = np.nonzero(edges)
    if not _same(answer, _take(answer.edges, rows, columns), _take(answer.closure, rows, columns)).all():
        return Complaint("via", "via says −1 where the edge is not as good as the element")
    return None


def check_tree(answer: Answer, tree: Array, roots: Sequence[int], *, backwards: bool) -> Complaint | None:
    """Predecessors (a row for each root) or, `backwards` from them, next hops (a row for each root here too)."""
    algebra, n = answer.algebra, answer.edges[0].shape[-1]
    kind = "next_hops" if backwards else "predecessors"
    if tree.dtype != np.int32 or tree.shape != (len(roots), n):
        return Complaint(kind, f"{kind} have dtype {tree.dtype} and shape {tree.shape}")
    if not len(roots) or not n:
        return None
    own = np.asarray(roots)[:, None]
    reached = answer.reached()
    reached = (reached[:, roots].T if backwards else reached[roots]) & (own != np.arange(n))
    if (tree[~reached] != NONE).any() or (tree[reached] < 0).any() or (tree >= n).any():
        return Complaint(kind, f"{kind} and elements do not say of the same pairs that they are connected")
    at, leaves = np.nonzero(reached)
    next_to, ends = tree[at, leaves], np.asarray(roots)[at]
    if backwards:
        joined = algebra.mul(_take(answer.edges, leaves, next_to), _take(answer.star, next_to, ends))
        whole = _take(answer.star, leaves, ends)
    else:
        joined = algebra.mul(_take(answer.star, ends, next_to), _take(answer.edges, next_to, leaves))
        whole = _take(answer.star, ends, leaves)
    good = _same(answer, joined, whole)
    if not good.all():
        i = int(np.argmin(good))
        return Complaint(kind, f"{kind} of root {ends[i]} name {next_to[i]} next to {leaves[i]}, which is not on a best path")
    current = np.where(reached, np.arange(n), own)
    for _ in range(n):
        current = np.where(current == own, current, np.take_along_axis(tree, np.maximum(current, 0), axis=1))
    if (current != own).any():
        return Complaint(kind, f"{kind} run in a circle")
    return None
