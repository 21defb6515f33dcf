"""Paths for SciPy, NetworkX, pandas and Jupyter: arrays, a graph, a table, and a page.

The page shows facts, some elements, and a heat map with a pixel for each element, or for a sample of them.
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
from semiring.arrays.conversion import Array
from semiring.arrays.devices import device_of, entries, host, on_gpu
from semiring.common.errors import DTypeError, SemiringError, library
from semiring.common.html import beside, code, escape, faint, grid, short, table
from semiring.common.units import counted
from semiring.results.store import Store, squeezed

__all__ = ["COLOURS", "as_floats", "number", "paths_html", "paths_text", "sampled", "to_frame", "to_networkx", "to_scipy"]


def as_floats(values: Array, semiring: Semiring) -> Array:
    """Convert elements of one component to float64; an integer that stands for ∞ becomes ∞.

    Raises DTypeError for entries that are no numbers.
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
            f"SciPy's functions return distances, and these elements are of {found.semiring.name}; .values has them, and .predecessors() "
            f"has SciPy's form"
        )
    floats = squeezed(as_floats(host(found.values[0]), found.semiring), found.sources, -2)
    return squeezed(floats, found.targets, -1), squeezed(host(found.predecessors()), found.sources, -2)


def to_networkx(found: Store) -> Any:
    """See `Paths.to_networkx`."""
    whole, nodes = found.expanded, found.names.nodes
    assert whole is not None
    graph = library("networkx", "to_networkx").DiGraph()
    graph.add_nodes_from(nodes)
    for sources, targets in found.pairs():
        middles = entries(whole.via, sources, targets).tolist()
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


_SIDE, _SIDE_ON_DISK = 160, 64  # pixels of a side, at most; fewer from a file, where each may be read from another page
_NARROW = 16  # pixels of the shorter side, at least
COLOURS = ((63, 91, 212), (42, 157, 143), (138, 184, 74), (233, 196, 106), (231, 111, 81))
"""Colours from the least element to the greatest, none near black or white; pixels without an element are transparent."""

_LEGEND = f"linear-gradient(to right,{','.join(f'rgb{c}' for c in COLOURS)})"


def sampled(found: Store, side: int, side_on_disk: int) -> tuple[tuple[Array, ...], Array]:
    """Return at most `side` × `side` elements, evenly spread, and a mask of the nonzero ones. Nothing else of the matrix is read."""
    most = side_on_disk if isinstance(found.values[0], np.memmap) else side
    places = [np.linspace(0, max(0, size - 1), min(size, most)).astype(np.intp) for size in found.shape]
    rows, columns = np.meshgrid(*places, indexing="ij")
    values = tuple(entries(v, rows, columns) for v in found.values)
    return values, found.there(values)


def _shades(values: Array, there: Array) -> tuple[Array, tuple[float, float] | None]:
    """Return 0 for missing elements, else 1 … 255 in proportion to the values; and the least and greatest finite value."""
    finite = values[there & np.isfinite(values)]
    if not finite.size:
        return np.where(there, 255, 0).astype(np.uint8), None
    low, high = float(finite.min()), float(finite.max())
    # Halves, because the difference of two floats may overflow.
    position = (np.clip(values, low, high) / 2 - low / 2) / (high / 2 - low / 2) if high > low else np.ones(values.shape)
    return np.where(there, 1 + np.rint(254 * np.where(there, position, 0)), 0).astype(np.uint8), (low, high)


def _png(shade: Array) -> bytes:
    """Encode an image of 256 colours, the first one transparent."""
    # No library is needed: 160 × 160 elements are 27 kB of PNG, and 1.5 MB as cells of SVG or HTML.
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


_CORNER = 6  # vertices whose elements are shown
_WIDTH = 12  # characters of a name or an element


def paths_html(found: Store) -> str:
    """Return the page that Jupyter shows; for a batch, the first matrix."""
    facts = [("batch", " × ".join(map(str, found.batch)))] if found.batch else []
    if not found.complete:
        facts += zip(("sources", "targets"), map("{:,}".format, found.shape), strict=True)
    facts.append(("vertices", f"{found.names.n:,}"))
    facts.append(("elements", ", ".join(map(str, found.dtypes))))
    if found.countable:
        facts.append(("connected pairs", f"{found.connected():,}"))
        if found.complete and (alone := found.one_way()):
            facts.append(("one way only", f"{alone:,} of them (with directed=False edges lead both ways)"))
    if found.reflexive:
        what = "distance" if is_min_plus(found.semiring) else "element"
        facts.append((f"{what} to itself", ", ".join(map(number, found.semiring.identities(found.dtypes)[1]))))
    else:
        facts.append(("a vertex and itself", "connected only by a cycle"))
    facts.append(("stored in", _place(found.values[0])))
    local = not found.distributed  # else nothing is shown that all ranks would have to ask for
    parts = [table(f"paths over {escape(found.semiring.name)}", ((faint(name), escape(text)) for name, text in facts))]
    if local and found.values[0].size:
        first = found[(0,) * len(found.batch)] if found.batch else found
        with first.device():
            parts += [_corner(first), _thumbnail(first)]
    return beside(*parts)


def _place(array: Any) -> str:
    if on_gpu(array):
        return f"the memory of {device_of(array)}"
    if isinstance(array, np.memmap):
        return "a file"
    return "memory" if isinstance(array, np.ndarray) else "the memory of several processes"


def paths_text(found: Store) -> str:
    """Return the one line of ``repr(paths)``."""
    ends = zip(found.shape, ("source", "target"), strict=True)
    chosen = " × ".join(f"{count:,} {what}{'s' * (count != 1)}" for count, what in ends)
    size = counted(found.names.n, "vertex", "vertices") if found.complete else chosen
    many = f", batch of {' × '.join(map(str, found.batch))}" if found.batch else ""
    connected = f", {counted(found.connected(), 'pair')} connected" if found.countable else ""
    if found.complete and found.countable and (alone := found.one_way()):
        connected += f", {alone:,} of them one way only"
    return f"<paths over {found.semiring.name}: {size}{many}{connected}>"


def _corner(found: Store) -> str:
    """Return the elements between the first vertices as HTML, "–" for no path."""
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
    """Return an element as text."""
    return f"{value:.6g}" if isinstance(value, float | np.floating) else str(value)
