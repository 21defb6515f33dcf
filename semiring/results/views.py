"""Paths as SciPy, NetworkX, pandas and Jupyter would have them.

The first three get the whole of a store, as distances with predecessors, as a graph, or as a table. Jupyter gets a page: what the paths
are, some elements, and a heat map with a pixel for an element, or for one of a block of them.
"""

from __future__ import annotations

import base64
import math
import struct
import zlib
from typing import Any

import numpy as np

from semiring.algebra.definition import Semiring
from semiring.algorithms.divergence import is_min_plus
from semiring.arrays.devices import device_of, entries, host, on_gpu
from semiring.common.errors import DTypeError, SemiringError, library
from semiring.common.html import beside, code, escape, faint, grid, short, table
from semiring.results.store import Store, squeezed

__all__ = ["COLOURS", "as_floats", "number", "paths_html", "sampled", "to_frame", "to_networkx", "to_scipy"]

Array = np.ndarray[Any, Any]


def as_floats(values: Array, semiring: Semiring) -> Array:
    """Elements of one component as float64, with ∞ where an integer stands for that.

    Raises
    ------
    DTypeError
        For entries that are no numbers.
    """
    try:
        floats = values.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise DTypeError(f"the elements are no numbers: {error}; they are in .values") from None
    if values.dtype.kind in "iu":
        for identity, number in zip((semiring.zero, semiring.one), semiring.identities(values.dtype), strict=True):
            if isinstance(identity, float) and math.isinf(identity):
                floats[values == number[0]] = identity
    return floats


def to_scipy(found: Store) -> tuple[Array, Array]:
    """See `Paths.to_scipy`."""
    if not is_min_plus(found.semiring):
        raise SemiringError(
            f"SciPy has functions for distances, and the elements are those of {found.semiring.name}; they are in .values, and what "
            f".predecessors() gives has SciPy's form"
        )
    floats = squeezed(as_floats(host(found.values[0]), found.semiring), found.sources, -2)
    return squeezed(floats, found.targets, -1), squeezed(host(found.predecessors()), found.sources, -2)


def to_networkx(found: Store) -> Any:
    """See `Paths.to_networkx`."""
    nodes, via = found.names.nodes, found.construction()
    graph = library("networkx", "to_networkx").DiGraph()
    graph.add_nodes_from(nodes)
    for sources, targets in found.pairs():
        middles = entries(via, sources, targets).tolist()
        parts = [entries(v, sources, targets).tolist() for v in found.values]
        weights = parts[0] if len(parts) == 1 else list(zip(*parts, strict=True))
        graph.add_edges_from(
            (nodes[s], nodes[t], {"weight": weight, "via": None if middle < 0 else nodes[middle]})
            for s, t, weight, middle in zip(sources.tolist(), targets.tolist(), weights, middles, strict=True)
        )
    return graph


def to_frame(found: Store, *, paths: bool) -> Any:
    """See `Paths.to_frame`."""
    nodes, labelled = found.names.nodes, found.names.labels is not None
    pandas = library("pandas", "to_frame")
    pieces = list(found.pairs())
    rows, columns = (np.concatenate([piece[axis] for piece in pieces] or [np.empty(0, np.intp)]) for axis in (0, 1))
    sources, targets = found.ends(rows, columns)
    mixed = len(set(map(type, nodes))) > 1  # pandas would make 2⁶⁰ + 1 beside 0.5 a float, and None NaN
    names = pandas.Index(list(nodes), dtype=object if mixed else None, tupleize_cols=False) if labelled else np.arange(len(nodes))
    table = {"source": names.take(sources), "target": names.take(targets)}
    single = len(found.values) == 1
    for c, v in enumerate(found.values):
        table["value" if single else f"value{c}"] = entries(v, rows, columns)
    if paths:
        table["path"] = pandas.Series(list(map(found.names.of, found.find(rows, columns))), dtype=object)
    return pandas.DataFrame(table)


_SIDE, _SIDE_ON_DISK = 160, 64
"""Pixels of a side, at most; where each may be read from another page of a file, fewer."""

_NARROW = 16
"""Pixels of the shorter side, at least."""

COLOURS = ((63, 91, 212), (42, 157, 143), (138, 184, 74), (233, 196, 106), (231, 111, 81))
"""From the least element to the greatest, none near black or white; what is no element is transparent, so that the page shows."""

_LEGEND = f"linear-gradient(to right,{','.join(f'rgb{c}' for c in COLOURS)})"
"""The same for CSS."""


def sampled(found: Store, side: int, side_on_disk: int) -> tuple[tuple[Array, ...], Array]:
    """Some elements of a matrix, evenly spread, so many of a side at most, and which are not zero. Nothing else of it is read."""
    most = side_on_disk if isinstance(found.values[0], np.memmap) else side
    places = [np.linspace(0, max(0, size - 1), min(size, most)).astype(np.intp) for size in found.shape]
    rows, columns = np.meshgrid(*places, indexing="ij")
    values = tuple(entries(v, rows, columns) for v in found.values)
    return values, found.there(values)


def _shades(values: Array, there: Array) -> tuple[Array, tuple[float, float] | None]:
    """0 where nothing is there, else from 1 to 255 in proportion to the values; and the least and greatest finite one."""
    finite = values[there & np.isfinite(values)]
    if not finite.size:
        return np.where(there, 255, 0).astype(np.uint8), None
    low, high = float(finite.min()), float(finite.max())
    # Halves, because the difference of two floats may be none.
    position = (np.clip(values, low, high) / 2 - low / 2) / (high / 2 - low / 2) if high > low else np.ones(values.shape)
    return np.where(there, 1 + np.rint(254 * np.where(there, position, 0)), 0).astype(np.uint8), (low, high)


def _png(shade: Array) -> bytes:
    """A PNG image of 256 colours, of which the first is transparent."""
    # These lines are the smallest way: 160 × 160 elements are 27 kB of PNG, 1.5 MB as cells of SVG or HTML, or another dependency.
    anchors = np.array(COLOURS, dtype=float)
    at = np.linspace(0, len(anchors) - 1, 255)
    ramp = np.stack([np.interp(at, np.arange(len(anchors)), anchors[:, c]) for c in range(3)], axis=1)
    palette = np.vstack([np.zeros((1, 3)), ramp]).astype(np.uint8)
    height, width = shade.shape
    lines = np.zeros((height, width + 1), dtype=np.uint8)  # each begins with the number of its filter: none
    lines[:, 1:] = shade
    chunks = (
        (b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)),
        (b"PLTE", palette.tobytes()),
        (b"tRNS", b"\0"),
        (b"IDAT", zlib.compress(lines.tobytes(), 9)),
        (b"IEND", b""),
    )
    body = b"".join(struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)) for kind, data in chunks)
    return b"\x89PNG\r\n\x1a\n" + body


def _thumbnail(found: Store) -> str:
    """The picture of one matrix with its legend, as HTML."""
    elements, there = sampled(found, _SIDE, _SIDE_ON_DISK)
    try:
        values = as_floats(elements[0], found.semiring)
    except DTypeError:  # symbols
        values = np.zeros(there.shape)
    shade, ends = _shades(values, there)
    image = base64.b64encode(_png(shade)).decode()
    height, width = (max(_NARROW, _SIDE * length // max(found.shape)) for length in found.shape)
    size = f"width:{width}px;height:{height}px;image-rendering:pixelated"
    border = "border:1px solid rgba(128,128,128,0.35)"
    picture = f"<img alt='heat map of the elements' src='data:image/png;base64,{image}' style='{size};{border}'/>"
    bar = f"<span style='flex:1;height:0.7em;margin:0 0.5em;background:{_LEGEND}'></span>"
    scale = "" if ends is None or ends[0] == ends[1] else f"<span>{ends[0]:.4g}</span>{bar}<span>{ends[1]:.4g}</span>"
    note = "<div style='opacity:0.7'>blank: no path</div>" if not there.all() else ""
    small = f"width:{_SIDE}px;font-size:85%"
    return f"{picture}<div style='display:flex;align-items:center;{small}'>{scale}</div><div style='{small}'>{note}</div>"


_CORNER = 6
"""Vertices whose elements are shown."""

_WIDTH = 12
"""Characters of a name or an element."""


def paths_html(found: Store) -> str:
    """What Jupyter shows; of a batch, the first matrix."""
    facts = [("batch", " × ".join(map(str, found.batch)))] if found.batch else []
    facts += [(what, f"{count:,}") for what, count in found.counts().items()]
    facts.append(("elements", ", ".join(map(str, found.dtypes))))
    if found.countable:
        facts.append(("connected pairs", f"{found.connected():,}"))
        if found.complete and (alone := found.one_way()):
            facts.append(("one way only", f"{alone:,} of them (with directed=False edges lead both ways)"))
    facts.append(("a vertex and itself", "connected by the empty path" if found.reflexive else "only by a cycle"))
    facts.append(("in", _place(found.values[0])))
    local = not found.distributed  # else nothing is shown that all ranks would have to ask for
    parts = [table(f"paths over {escape(found.semiring.name)}", ((faint(name), escape(text)) for name, text in facts))]
    if local and found.values[0].size:
        first = found[(0,) * len(found.batch)] if found.batch else found
        with first.device():
            parts += [_corner(first), _thumbnail(first)]
    return beside(*parts)


def _place(array: Any) -> str:
    """Where an array lies."""
    if on_gpu(array):
        return f"the memory of {device_of(array)}"
    if isinstance(array, np.memmap):
        return "a file"
    return "memory" if isinstance(array, np.ndarray) else "the memory of several processes"


def _corner(found: Store) -> str:
    """The elements between the first vertices; – where there is no path."""
    first = [np.arange(min(size, _CORNER)) for size in found.shape]
    rows, columns = np.meshgrid(*first, indexing="ij")
    parts = [entries(v, rows, columns) for v in found.values]
    there = found.there(tuple(parts))
    sources, targets = ([code(short(repr(node), _WIDTH)) for node in found.names.of(end.tolist())] for end in found.ends(*first))
    below, right = (["…"] * (size > _CORNER) for size in found.shape)

    def cell(i: int, j: int) -> str:
        if not there[i, j]:
            return faint("–")
        return escape(short(", ".join(number(p[i, j]) for p in parts), _WIDTH))

    lines = [(name, [*(cell(i, j) for j in range(len(targets))), *right]) for i, name in enumerate(sources)]
    return grid("", [*targets, *right], [*lines, *((dot, [dot] * (len(targets) + len(right))) for dot in below)])


def number(value: Any) -> str:
    """An element as text."""
    return f"{value:.6g}" if isinstance(value, float | np.floating) else str(value)
