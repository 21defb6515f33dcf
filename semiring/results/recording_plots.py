"""A recording drawn by Matplotlib: one frame, or all of them as an animation."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from semiring.common.errors import library, printable
from semiring.common.html import short
from semiring.results.frames import Frame, Frames
from semiring.results.recording_pictures import COLOURS, NUMBERED, elements, roles, split

__all__ = ["animate", "plot"]

_INK, _DARK = "#808080", "#222222"
"""Of text and lines: where the page shows, which may be light or dark, and on the colours of the roles."""


def plot(recording: Frames, frame: Frame, ax: Any = None) -> Any:
    """See `Recording.plot`."""
    pyplot = library("matplotlib.pyplot", "plot")
    if ax is None:
        figure, ax = pyplot.subplots(figsize=(_inches(recording),) * 2, layout="constrained")
        figure.patch.set_alpha(0)
    colours = library("matplotlib.colors", "plot")
    patches, n = library("matplotlib.patches", "plot"), recording.n
    ax.set_facecolor("none")
    if n:
        light = [0.45 * np.array(colours.to_rgba(colour)) + 0.55 for colour in COLOURS.values()]
        shades = np.array([np.zeros(4), *light])
        ax.imshow(shades[roles(frame)], extent=(0, n, n, 0), interpolation="nearest")
    for area in (*frame.writes, *frame.reads) if frame.number else ():
        style = "--" if area in frame.reads else "-"
        colour = COLOURS[3 if area in frame.pivots else 2 if area in frame.reads else 1]
        corner, size = (area.left, area.top), (area.right - area.left, area.bottom - area.top)
        ax.add_patch(patches.Rectangle(corner, *size, fill=False, edgecolor=colour, linestyle=style, linewidth=1.5))
    filled = roles(frame) > 0
    for i, j in np.argwhere(frame.changed).tolist():
        ink = _DARK if filled[i, j] else _INK
        cell = {"fill": False, "edgecolor": ink} if n <= NUMBERED else {"facecolor": ink, "edgecolor": "none"}
        ax.add_patch(patches.Rectangle((j + 0.12, i + 0.12), 0.76, 0.76, **cell))
    if n <= NUMBERED:
        _write(recording, frame, ax)
    equation = "".join(f"${text}_{{{sub}}}$" if sub else re.sub(r"([$\\])", r"\\\1", text) for text, sub in split(frame.equation))
    ax.set_title(f"{frame.where}\n{equation}", color=_INK, fontsize="medium")
    ax.tick_params(length=0, colors=_INK, top=True, labeltop=True, bottom=False, labelbottom=False)
    ax.spines[:].set_color(_INK)
    ax.set(xlim=(0, max(n, 1)), ylim=(max(n, 1), 0))
    return ax


def _inches(recording: Frames) -> float:
    """The side of a figure that has room for the elements."""
    return 4.5 if recording.n > NUMBERED else max(2.5, 0.36 * recording.n + 1)


def _write(recording: Frames, frame: Frame, ax: Any) -> None:
    """Elements and vertices, where they are few."""
    filled = roles(frame) > 0
    for i, row in enumerate(elements(recording, frame)):
        for j, text in enumerate(row):
            ink = _DARK if filled[i, j] else _INK
            weight = "bold" if frame.changed[i, j] else "normal"
            size = 8 if len(text) < 4 else 6
            ax.text(j + 0.5, i + 0.5, text, ha="center", va="center", color=ink, fontsize=size, fontweight=weight, parse_math=False)
    names = [short(printable(node), 12).replace("$", r"\$") for node in recording.nodes]
    places = np.arange(recording.n) + 0.5
    ax.set_xticks(places, names, rotation=90 if max(map(len, names), default=0) > 3 else 0, fontsize=8)
    ax.set_yticks(places, names, fontsize=8)


def animate(recording: Frames, interval: float) -> Any:
    """See `Recording.animate`."""
    pyplot, animation = library("matplotlib.pyplot", "animate"), library("matplotlib.animation", "animate")
    figure, ax = pyplot.subplots(figsize=(_inches(recording),) * 2, layout="constrained")

    def draw(number: int) -> list[Any]:
        ax.clear()
        plot(recording, recording[number], ax)
        return [ax]

    made = animation.FuncAnimation(figure, draw, frames=len(recording), interval=1000 * interval)
    pyplot.close(figure)  # the animation is what is shown
    return made
