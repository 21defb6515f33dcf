"""How `Paths` show in Jupyter: what they are, some elements, and a heat map."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from semiring.algebra.html import beside, code, escape, faint, grid, short, table
from semiring.algebra.namespace import entries, on_gpu
from semiring.construction import Construction
from semiring.kernels.devices import device_of
from semiring.thumbnail import thumbnail

__all__ = ["paths_html"]

_CORNER = 6
"""Vertices whose elements are shown."""

_WIDTH = 12
"""Characters of a name or an element."""


def paths_html(found: Construction, nodes: Sequence[Any], counts: dict[str, int]) -> str:
    """Of a batch, the first matrix. `counts` tells how many vertices there are of each kind."""
    facts = [("batch", " × ".join(map(str, found.batch)))] if found.batch else []
    facts += [(what, f"{count:,}") for what, count in counts.items()]
    facts.append(("elements", ", ".join(map(str, found.dtypes))))
    if found.countable:
        facts.append(("connected pairs", f"{found.connected():,}"))
    facts.append(("a vertex and itself", "connected by the empty path" if found.reflexive else "only by a cycle"))
    facts.append(("in", _place(found.via)))
    parts = [table(f"paths over {escape(found.semiring.name)}", ((faint(name), escape(text)) for name, text in facts))]
    if found.values[0].size:
        first = found[(0,) * len(found.batch)] if found.batch else found
        with first.device():
            parts += [_corner(first, nodes), thumbnail(first)]
    return beside(*parts)


def _place(array: Any) -> str:
    if on_gpu(array):
        return f"the memory of {device_of(array)}"
    return "a file" if isinstance(array, np.memmap) else "memory"


def _corner(found: Construction, nodes: Sequence[Any]) -> str:
    """The elements between the first vertices; – where there is no path."""
    first = [np.arange(min(size, _CORNER)) for size in found.shape]
    rows, columns = np.meshgrid(*first, indexing="ij")
    parts = [entries(v, rows, columns) for v in found.values]
    there = found.there(tuple(parts))
    sources, targets = ([code(short(repr(nodes[v]), _WIDTH)) for v in end.tolist()] for end in found.ends(*first))
    below, right = (["…"] * (size > _CORNER) for size in found.shape)

    def cell(i: int, j: int) -> str:
        if not there[i, j]:
            return faint("–")
        return escape(short(", ".join(_number(p[i, j]) for p in parts), _WIDTH))

    lines = [(name, [*(cell(i, j) for j in range(len(targets))), *right]) for i, name in enumerate(sources)]
    return grid("", [*targets, *right], [*lines, *((dot, [dot] * (len(targets) + len(right))) for dot in below)])


def _number(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float | np.floating) else str(value)
