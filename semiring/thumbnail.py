"""A closure as a small picture: a pixel for an element, or for one of a block of them."""

from __future__ import annotations

import base64
import struct
import zlib
from typing import Any

import numpy as np

from semiring.algebra.errors import DTypeError
from semiring.algebra.namespace import entries, on_gpu
from semiring.construction import Construction
from semiring.exports import as_floats

__all__ = ["LEGEND", "png", "sampled", "shades", "thumbnail"]

Array = np.ndarray[Any, Any]

_SIDE, _SIDE_ON_DISK = 160, 64
"""Pixels of a side, at most; where each may be read from another page of a file, fewer."""

_NARROW = 16
"""Pixels of the shorter side, at least."""

_COLOURS = ((63, 91, 212), (42, 157, 143), (138, 184, 74), (233, 196, 106), (231, 111, 81))
"""From the least element to the greatest, none near black or white; what is no element is transparent, so that the page shows."""

LEGEND = f"linear-gradient(to right,{','.join(f'rgb{c}' for c in _COLOURS)})"
"""The same for CSS."""


def sampled(found: Construction) -> tuple[Array, Array]:
    """Some elements of a matrix, evenly spread: the first component as floats, and which are not zero. Nothing else of it is read."""
    side = _SIDE_ON_DISK if isinstance(found.via, np.memmap) and not on_gpu(found.via) else _SIDE
    places = [np.linspace(0, max(0, size - 1), min(size, side)).astype(np.intp) for size in found.shape]
    rows, columns = np.meshgrid(*places, indexing="ij")
    values = tuple(entries(v, rows, columns) for v in found.values)
    there = found.there(values)
    try:
        return as_floats(values[0], found.semiring), there
    except DTypeError:  # symbols
        return np.zeros(there.shape), there


def shades(values: Array, there: Array) -> tuple[Array, tuple[float, float] | None]:
    """0 where nothing is there, else from 1 to 255 in proportion to the values; and the least and greatest finite one."""
    finite = values[there & np.isfinite(values)]
    if not finite.size:
        return np.where(there, 255, 0).astype(np.uint8), None
    low, high = float(finite.min()), float(finite.max())
    # Halves, because the difference of two floats may be none.
    position = (np.clip(values, low, high) / 2 - low / 2) / (high / 2 - low / 2) if high > low else np.ones(values.shape)
    return np.where(there, 1 + np.rint(254 * np.where(there, position, 0)), 0).astype(np.uint8), (low, high)


def png(shade: Array) -> bytes:
    """A PNG image of 256 colours, of which the first is transparent."""
    anchors = np.array(_COLOURS, dtype=float)
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


def thumbnail(found: Construction) -> str:
    """The picture of one matrix with its legend, as HTML."""
    values, there = sampled(found)
    shade, ends = shades(values, there)
    image = base64.b64encode(png(shade)).decode()
    height, width = (max(_NARROW, _SIDE * length // max(found.shape)) for length in found.shape)
    size = f"width:{width}px;height:{height}px;image-rendering:pixelated"
    border = "border:1px solid rgba(128,128,128,0.35)"
    picture = f"<img alt='heat map of the elements' src='data:image/png;base64,{image}' style='{size};{border}'/>"
    bar = f"<span style='flex:1;height:0.7em;margin:0 0.5em;background:{LEGEND}'></span>"
    scale = "" if ends is None or ends[0] == ends[1] else f"<span>{ends[0]:.4g}</span>{bar}<span>{ends[1]:.4g}</span>"
    note = "<div style='opacity:0.7'>blank: no path</div>" if not there.all() else ""
    small = f"width:{_SIDE}px;font-size:85%"
    return f"{picture}<div style='display:flex;align-items:center;{small}'>{scale}</div><div style='{small}'>{note}</div>"
