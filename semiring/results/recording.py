"""`Recording`: a closure step by step, as a table, a picture with a slider, a plot or an animation.

A frame is a phase of the algorithm: the areas read, the areas written, and the matrix afterwards. Only changes are stored; the matrix of a
frame is rebuilt on request.

SVG pictures take the colours of text and lines from the page, light or dark. Blue, orange and purple (of Okabe and Ito) are distinct to the
colour-blind, and areas that are read have a dashed border. If a page strips styles, as JupyterLab does in untrusted notebooks, one still
picture is shown.
"""

from __future__ import annotations

import base64
import itertools
import re
import sys
import uuid
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, overload

import numpy as np

from semiring.algebra.definition import Semiring
from semiring.algorithms.recorder import Area, Change, Phase, PrimitiveCall
from semiring.arrays.conversion import Array, Values
from semiring.common.errors import library, printable
from semiring.common.html import escape, short
from semiring.common.units import counted

__all__ = ["Frame", "Recording"]

IDLE, WRITTEN, READ, CLOSED = range(4)  # roles of an element in a frame

COLOURS = {WRITTEN: "#e69f00", READ: "#0072b2", CLOSED: "#cc79a7"}
_INK, _DARK = "#808080", "#222222"  # of text and lines in plots: on a page, light or dark, and on the colours of the roles
NUMBERED = 24  # vertices of the largest matrix that is drawn with all elements and names
_CHARACTERS, _NAME = 8, 12  # most characters of an element, and of a vertex
_SIDE = 440  # pixels of a matrix without written elements
_BUDGET = 3_000_000  # characters of a page after which further frames are left out
_WIDGET = "application/vnd.jupyter.widget-view+json"


@dataclass(frozen=True, eq=False)
class Frame:
    """One phase of an algorithm: the areas read and written, and the matrix after the phase.

    Attributes
    ----------
    number : int
        The place in the recording; 0 is the given matrix (with the identity, if the algorithm begins by adding it).
    equation : str
        The step in the notation of the papers: ``"A_KJ ← A_KJ ⊕ A_KK A_KJ"``.
    phase : int or None
        For the blocked algorithm 1, 2, 3 or 4, for the recursive one the number of the assignment, from 1 to 8.
    round : int or None
        For the iterative and the blocked algorithm the number of the pivot, from 0.
    within : Area
        The A of the equation: the matrix, or the square block whose quarters the recursive algorithm names.
    calls : tuple of PrimitiveCall
        The products and closures of blocks, each with ``operation``, ``reads``, ``writes``, and the number of ``steps``, each step a ⊗ and
        a ⊕.
    changed : bool array of shape (n, n)
        A mask of the changed elements.
    """

    number: int
    phase: int | None
    round: int | None
    equation: str
    within: Area
    calls: tuple[PrimitiveCall, ...]
    changed: Array = field(repr=False)
    _state: Callable[[int], tuple[Values, Array | None]] = field(repr=False)

    @property
    def reads(self) -> tuple[Area, ...]:
        """Areas that are read and not written: ``area.rows`` and ``area.columns`` are slices."""
        found = dict.fromkeys(area for call in self.calls for area in call.reads)
        return tuple(area for area in found if area not in self.writes)

    @property
    def writes(self) -> tuple[Area, ...]:
        """Areas that are written."""
        return tuple(dict.fromkeys(call.writes for call in self.calls))

    @property
    def pivots(self) -> tuple[Area, ...]:
        """Blocks that are closed by themselves."""
        return tuple(call.writes for call in self.calls if call.operation in ("close", "eliminate"))

    @property
    def steps(self) -> int:
        """The number of steps, each one ⊗ followed by one ⊕."""
        return sum(call.steps for call in self.calls)

    @property
    def values(self) -> Any:
        """The matrix after the phase: an array of shape (n, n), or a tuple of arrays for structured elements."""
        values, _ = self._state(self.number)
        return values[0] if len(values) == 1 else values

    @property
    def via(self) -> Array | None:
        """The construction matrix after the phase; None without paths."""
        return self._state(self.number)[1]

    @property
    def where(self) -> str:
        """The place in the algorithm: "round 1, phase 2"."""
        if self.number == 0:
            return "the beginning"
        if self.round is None:
            return "the end" if self.phase is None else f"phase {self.phase} within {self.within}"
        return f"round {self.round}" if self.phase is None else f"round {self.round}, phase {self.phase}"

    def __str__(self) -> str:
        return f"{self.where}: {self.equation}"


class Recording(Sequence[Frame]):
    """A closure step by step: a sequence of frames, each a phase of the algorithm.

    `semiring.watch` returns one. Jupyter shows a picture with a slider; `print` writes a table of the frames.

    Examples
    --------
    >>> import numpy as np, semiring as sr
    >>> inf = np.inf
    >>> roads = np.array([[0, 3, inf, 7], [8, 0, 2, inf], [5, inf, 0, 1], [2, inf, inf, 0]])
    >>> recording = sr.watch(roads, method="blocked", block=2)
    >>> print(recording[4])
    round 0, phase 4: A_IJ ← A_IJ ⊕ A_IK A_KJ
    >>> recording[4].values
    array([[ 0.,  3.,  5.,  7.],
           [ 8.,  0.,  2., 15.],
           [ 5.,  8.,  0.,  1.],
           [ 2.,  5.,  7.,  0.]])
    >>> [str(area) for area in recording[4].writes], np.argwhere(recording[4].changed).tolist()
    (['[2:4, 2:4]'], [[3, 2]])

    Attributes
    ----------
    frames : tuple of Frame
        The phases; the first frame is the given matrix.
    result : array of shape (n, n), tuple of arrays, or Paths
        The closure, as `semiring.closure` returns it.
    semiring : Semiring
    method : {"iterative", "blocked", "recursive"}
    block : int or None
        Side of the pivot blocks (blocked) or of the base case (recursive).
    nodes : tuple
        The names of the vertices in the order of the rows.
    given : tuple of arrays of shape (n, n)
        The matrix before the closure, an array for each component of an element.
    """

    def __init__(
        self,
        semiring: Semiring,
        method: str,
        block: int | None,
        given: Values,
        via: Array | None,
        recorded: Sequence[tuple[PrimitiveCall, Change]],
        phases: Sequence[Phase],
        nodes: Sequence[Hashable] | None,
        result: Any,
    ) -> None:
        # `via` is the construction matrix before the closure, and `phases` has the phase of each recorded call.
        self.semiring, self.method, self.block, self.result = semiring, method, block, result
        self.nodes: tuple[Any, ...] = tuple(range(given[0].shape[-1]) if nodes is None else nodes)
        self.given, self._via = given, via
        self._changes: list[tuple[Change, ...]] = []
        self.frames = tuple(self._frames(recorded, phases))

    def _frames(self, recorded: Sequence[tuple[PrimitiveCall, Change]], phases: Sequence[Phase]) -> Iterator[Frame]:
        """Group consecutive calls of one phase into a frame, after a first frame before all products."""
        n = self.n
        groups = [(phase, [r for r, _ in group]) for phase, group in itertools.groupby(zip(recorded, phases, strict=True), lambda r: r[1])]
        if not groups or groups[0][1][0][0].operation != "add_identity":
            groups.insert(0, (Phase("A", within=Area(0, n, 0, n)), []))
        for number, (phase, group) in enumerate(groups):
            changed = np.zeros((n, n), dtype=bool)
            for _, change in group:
                changed.flat[change.places] = True
            self._changes.append(tuple(change for _, change in group))
            calls = tuple(call for call, _ in group)
            assert phase.within is not None
            yield Frame(number, phase.number, phase.round, phase.equation, phase.within, calls, changed, self._state)

    def _state(self, number: int) -> tuple[Values, Array | None]:
        values, via = tuple(v.copy() for v in self.given), None if self._via is None else self._via.copy()
        for changes in self._changes[: number + 1]:
            for change in changes:
                for array, new in zip(values, change.values, strict=True):
                    array.flat[change.places] = new
                if via is not None:
                    via.flat[change.places] = change.via
        return values, via

    @property
    def n(self) -> int:
        """The number of vertices."""
        return len(self.nodes)

    @property
    def title(self) -> str:
        """The closure and the method, in words."""
        how = self.method if self.block is None else f"{self.method} with block={self.block}"
        return f"the closure of {counted(self.n, 'vertex', 'vertices')} over {printable(self.semiring.name)}, {how}"

    def __len__(self) -> int:
        return len(self.frames)

    @overload
    def __getitem__(self, index: int) -> Frame: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Frame, ...]: ...
    def __getitem__(self, index: int | slice) -> Frame | tuple[Frame, ...]:
        return self.frames[index]

    def __repr__(self) -> str:
        return f"<Recording of {self.title}: {len(self)} frames>"

    def __str__(self) -> str:
        lines: list[tuple[str, ...]] = [("", "round", "phase", "equation", "reads", "writes", "changed")]
        for f in self.frames:
            numbers = ("" if number is None else str(number) for number in (f.round, f.phase))
            areas = (_listed(some) for some in (f.reads, f.writes if f.number else ()))
            lines.append((str(f.number), *numbers, f.equation, *areas, f"{np.count_nonzero(f.changed):,}"))
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        right = (0, 1, 2, 6)
        kept = [c for c in range(7) if any(line[c] for line in lines[1:])]
        table = ["  ".join(line[c].rjust(widths[c]) if c in right else line[c].ljust(widths[c]) for c in kept).rstrip() for line in lines]
        return "\n".join([_capital(self.title), *table])

    def plot(self, frame: int = -1, ax: Any = None) -> Any:
        """Draw a frame with Matplotlib: the areas read and written, and the elements after the phase.

        Examples
        --------
        >>> import semiring as sr
        >>> recording = sr.watch([[0, 3, 9], [8, 0, 2], [5, 7, 0]], block=1)
        >>> axes = recording.plot(4)  # doctest: +SKIP

        Parameters
        ----------
        frame : int
            The number of the frame; negative numbers count from the end.
        ax : matplotlib Axes, optional
            The axes to draw in; by default a new figure.

        Returns
        -------
        matplotlib Axes

        Raises
        ------
        SemiringError
            Without Matplotlib.
        """
        shown, pyplot = self.frames[frame], library("matplotlib.pyplot", "plot")
        if ax is None:
            figure, ax = pyplot.subplots(figsize=(self._inches,) * 2, layout="constrained")
            figure.patch.set_alpha(0)
        colours = library("matplotlib.colors", "plot")
        patches, n = library("matplotlib.patches", "plot"), self.n
        ax.set_facecolor("none")
        picture = roles(shown)
        if n:
            light = [0.45 * np.array(colours.to_rgba(colour)) + 0.55 for colour in COLOURS.values()]
            shades = np.array([np.zeros(4), *light])
            ax.imshow(shades[picture], extent=(0, n, n, 0), interpolation="nearest")
        for kind, area in _areas(shown):
            corner, size = (area.left, area.top), (area.right - area.left, area.bottom - area.top)
            style = "--" if kind == READ else "-"
            ax.add_patch(patches.Rectangle(corner, *size, fill=False, edgecolor=COLOURS[kind], linestyle=style, linewidth=1.5))
        filled = picture > IDLE
        for i, j in np.argwhere(shown.changed).tolist():
            ink = _DARK if filled[i, j] else _INK
            cell = {"fill": False, "edgecolor": ink} if n <= NUMBERED else {"facecolor": ink, "edgecolor": "none"}
            ax.add_patch(patches.Rectangle((j + 0.12, i + 0.12), 0.76, 0.76, **cell))
        if n <= NUMBERED:
            self._write(shown, ax, filled)
        equation = "".join(f"${text}_{{{sub}}}$" if sub else re.sub(r"([$\\])", r"\\\1", text) for text, sub in split(shown.equation))
        ax.set_title(f"{shown.where}\n{equation}", color=_INK, fontsize="medium")
        ax.tick_params(length=0, colors=_INK, top=True, labeltop=True, bottom=False, labelbottom=False)
        ax.spines[:].set_color(_INK)
        ax.set(xlim=(0, max(n, 1)), ylim=(max(n, 1), 0))
        return ax

    def animate(self, interval: float = 1.0) -> Any:
        """Animate all frames with Matplotlib, which writes GIFs and films: ``recording.animate().save("closure.gif")``.

        Examples
        --------
        >>> import semiring as sr
        >>> recording = sr.watch([[0, 3, 9], [8, 0, 2], [5, 7, 0]], block=1)
        >>> recording.animate().save("closure.gif")  # doctest: +SKIP

        Parameters
        ----------
        interval : float
            Seconds from frame to frame.

        Returns
        -------
        matplotlib FuncAnimation

        Raises
        ------
        SemiringError
            Without Matplotlib.
        """
        pyplot, animation = library("matplotlib.pyplot", "animate"), library("matplotlib.animation", "animate")
        figure, ax = pyplot.subplots(figsize=(self._inches,) * 2, layout="constrained")

        def draw(number: int) -> list[Any]:
            ax.clear()
            self.plot(number, ax)
            return [ax]

        made = animation.FuncAnimation(figure, draw, frames=len(self), interval=1000 * interval)
        pyplot.close(figure)  # the animation is what is shown
        return made

    @property
    def _inches(self) -> float:
        return 4.5 if self.n > NUMBERED else max(2.5, 0.36 * self.n + 1)

    def _write(self, frame: Frame, ax: Any, filled: Array) -> None:
        for i, row in enumerate(elements(self, frame)):
            for j, text in enumerate(row):
                ink = _DARK if filled[i, j] else _INK
                weight = "bold" if frame.changed[i, j] else "normal"
                size = 8 if len(text) < 4 else 6
                ax.text(j + 0.5, i + 0.5, text, ha="center", va="center", color=ink, fontsize=size, fontweight=weight, parse_math=False)
        names = [short(printable(node), 12).replace("$", r"\$") for node in self.nodes]
        places = np.arange(self.n) + 0.5
        ax.set_xticks(places, names, rotation=90 if max(map(len, names), default=0) > 3 else 0, fontsize=8)
        ax.set_yticks(places, names, fontsize=8)

    def _repr_html_(self) -> str:
        return stepper(self)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        return {"text/plain": repr(self), "text/html": self._repr_html_(), **with_slider(self)}


def _listed(areas: Sequence[Area]) -> str:
    return " ".join(map(str, areas)) if len(areas) <= 2 else f"{areas[0]} {areas[1]} …"


def _areas(frame: Frame) -> list[tuple[int, Area]]:
    """List the areas of a frame by role, in drawing order: an element that is read and written is drawn as read."""
    if not frame.number:
        return []
    written = [(WRITTEN, area) for area in frame.writes if area not in frame.pivots]
    return written + [(READ, area) for area in frame.reads] + [(CLOSED, area) for area in frame.pivots]


def roles(frame: Frame) -> Array:
    """Return the role of each element in a frame: written, read, closed, or none."""
    picture = np.full(frame.changed.shape, IDLE, dtype=np.int8)
    for kind, area in _areas(frame):
        picture[area.rows, area.columns] = kind
    return picture


def elements(recording: Recording, frame: Frame) -> list[list[str]]:
    """Return the elements after a frame as short texts; a dot for the semiring's zero."""
    values = frame.values
    parts = values if isinstance(values, tuple) else (values,)
    zero, _ = recording.semiring.identities(tuple(v.dtype for v in parts))
    there = np.logical_or.reduce([(part != nothing).astype(bool) for part, nothing in zip(parts, zero, strict=True)])
    span = range(recording.n)
    return [[short(",".join(_number(p[i, j]) for p in parts), _CHARACTERS) if there[i, j] else "·" for j in span] for i in span]


def _number(value: Any) -> str:
    if isinstance(value, bool | np.bool_):
        return str(int(value))
    text = f"{value:.3g}" if isinstance(value, float | np.floating) else printable(value)
    return text.replace("inf", "∞")


def split(equation: str) -> list[tuple[str, str]]:
    """Split an equation into texts with subscripts: "A_KK*" is A with KK, and a star."""
    pieces = re.split(r"([Aa])_?([KIJ]{2}|[ijk]{2}|[12]{2})", equation)
    found = [(pieces[0], "")]
    for letter, subscript, text in zip(pieces[1::3], pieces[2::3], pieces[3::3], strict=True):
        found += [(letter, subscript), (text, "")]
    return found


class Drawing:
    """The SVG pictures of a recording, all of one size."""

    def __init__(self, recording: Recording) -> None:
        self.recording, n = recording, recording.n
        self.numbered = n <= NUMBERED
        names = [short(printable(node), _NAME) for node in recording.nodes]
        step = 1 if self.numbered else next(s for s in (5, 10, 25, 50) if n <= 12 * s)
        self.names = {i: name for i, name in enumerate(names) if i % step == 0}
        longest = max(map(len, self.names.values()), default=0)
        if self.numbered:
            written = max((len(text) for frame in recording for row in elements(recording, frame) for text in row), default=1)
            self.width, self.height = max(26, 7 * written + 8), 24
        else:
            self.width = self.height = max(1, _SIDE // n)
        self.upright = (self.numbered and 7 * longest + 4 > self.width) or (not self.numbered and longest > 4)
        self.left = 7 * longest + 10
        self.top = (7 * longest if self.upright else 14) + 6

    def svg(self, frame: Frame, *, alone: bool = False) -> str:
        """Draw a frame; `alone` as a separate file, with grey text instead of the page's colour."""
        n, right = self.recording.n, self.left + self.width * self.recording.n + 2
        bottom = self.top + self.height * n + 2
        own, ink = ("xmlns='http://www.w3.org/2000/svg' ", f"color:{_INK};") if alone else ("", "")
        size = f"width='{right}' height='{bottom}' viewBox='0 0 {right} {bottom}'"
        style = f"max-width:100%;height:auto;{ink}background:none"
        label = escape(f"frame {frame.number}, {frame}: {_changes(frame)}")
        parts = [*self._areas(frame), self._grid(), self._changed(frame), *self._axes(), *(self._texts(frame) if self.numbered else [])]
        return (
            f"<svg {own}{size} style='{style}' role='img' aria-label='{label}' font-family='sans-serif' font-size='12' "
            f"fill='currentColor'>{''.join(parts)}</svg>"
        )

    def _at(self, i: int, j: int) -> tuple[int, int]:
        return self.left + self.width * j, self.top + self.height * i

    def _areas(self, frame: Frame) -> Iterable[str]:
        """Draw each element in the colour of its role, and a border around each area."""
        picture = roles(frame)
        for kind, colour in COLOURS.items():
            path = self._runs(picture == kind)
            if path:
                yield f"<path d='{path}' fill='{colour}' fill-opacity='0.45' shape-rendering='crispEdges'/>"
        if frame.number and (within := frame.within) != Area(0, len(picture), 0, len(picture)):
            yield f"<path d='{self._rectangle(within)}' fill='none' stroke='currentColor' stroke-opacity='0.6' stroke-width='2'/>"
        for kind, area in _areas(frame):
            dashes = " stroke-dasharray='5 3'" if kind == READ else ""
            yield f"<path d='{self._rectangle(area)}' fill='none' stroke='{COLOURS[kind]}' stroke-width='2'{dashes}/>"

    def _rectangle(self, area: Area, inset: int = 0) -> str:
        x, y = self._at(area.top, area.left)
        width, height = self.width * (area.right - area.left) - 2 * inset, self.height * (area.bottom - area.top) - 2 * inset
        return f"M{x + inset} {y + inset}h{width}v{height}h{-width}z"

    def _runs(self, mask: Array) -> str:
        """Return the elements of a mask as a path, with one rectangle for each horizontal run."""
        edges = np.diff(np.pad(mask.astype(np.int8), ((0, 0), (1, 1))), axis=1)
        starts, stops = np.argwhere(edges == 1).tolist(), np.argwhere(edges == -1)[:, 1].tolist()
        return "".join(self._rectangle(Area(i, i + 1, left, right)) for (i, left), right in zip(starts, stops, strict=True))

    def _grid(self) -> str:
        """Draw lines between the elements, or only the outer frame of a large matrix."""
        n, (x, y) = self.recording.n, self._at(0, 0)
        width, height = self.width * n, self.height * n
        inner = range(1, n) if self.numbered else range(0)
        lines = "".join(f"M{x} {y + self.height * i}h{width}M{x + self.width * i} {y}v{height}" for i in inner)
        return f"<path d='{self._rectangle(Area(0, n, 0, n))}{lines}' fill='none' stroke='currentColor' stroke-opacity='0.25'/>"

    def _changed(self, frame: Frame) -> str:
        """Draw a border around each changed element, or a shade on small elements."""
        if not self.numbered:
            return f"<path d='{self._runs(frame.changed)}' fill-opacity='0.6' shape-rendering='crispEdges'/>"
        path = "".join(self._rectangle(Area(i, i + 1, j, j + 1), 3) for i, j in np.argwhere(frame.changed).tolist())
        return f"<path d='{path}' fill='none' stroke='currentColor' stroke-width='1.5'/>"

    def _axes(self) -> Iterable[str]:
        for i, name in self.names.items():
            text = escape(name)
            x, y = self._at(i, i)
            yield f"<text x='{self.left - 6}' y='{y + self.height // 2 + 4}' text-anchor='end' opacity='0.7'>{text}</text>"
            x += self.width // 2
            if self.upright:
                turned = f"transform='rotate(-90 {x + 4} {self.top - 6})'"
                yield f"<text x='{x + 4}' y='{self.top - 6}' opacity='0.7' {turned}>{text}</text>"
            else:
                yield f"<text x='{x}' y='{self.top - 6}' text-anchor='middle' opacity='0.7'>{text}</text>"

    def _texts(self, frame: Frame) -> Iterable[str]:
        for i, row in enumerate(elements(self.recording, frame)):
            x, y = self._at(i, 0)
            bold = [" font-weight='bold'" if changed else "" for changed in frame.changed[i]]
            cells = "".join(
                f"<tspan x='{x + self.width * j + self.width // 2}'{bold[j]}>{escape(text)}</tspan>" for j, text in enumerate(row)
            )
            yield f"<text y='{y + self.height // 2 + 4}' text-anchor='middle'>{cells}</text>"

    def caption(self, frame: Frame) -> str:
        """Return a line about the frame."""
        equation = "".join(f"{escape(text)}<sub>{sub}</sub>" if sub else escape(text) for text, sub in split(frame.equation))
        return f"<b>{frame.number}</b> of {len(self.recording) - 1} · {escape(frame.where)} · <b>{equation}</b> · {_changes(frame)}"

    def legend(self) -> str:
        """Return the meaning of the colours."""
        box = "display:inline-block;width:1em;height:0.8em;margin:0 0.4em 0 0"
        parts = [
            f"<span style='{box};background:{COLOURS[kind]}80;border:2px {line} {COLOURS[kind]}'></span>{name}"
            for kind, name, line in ((READ, "read", "dashed"), (WRITTEN, "written", "solid"), (CLOSED, "closed: the pivot", "solid"))
        ]
        changed = "border:1.5px solid currentColor" if self.numbered else "background:currentColor;opacity:0.6"
        parts.append(f"<span style='{box};{changed}'></span>changed")
        if self.numbered:
            parts.append("<b>·</b> no path yet")
        inside = "".join(f"<span style='white-space:nowrap;margin-right:1.2em'>{part}</span>" for part in parts)
        return f"<div style='font-size:90%;margin:0.3em 0'>{inside}</div>"


def _still(drawing: Drawing) -> str:
    """Return one picture for pages without styles: the first frame that reads something."""
    frames = drawing.recording.frames
    frame = next((f for f in frames if f.reads), frames[0])
    image = base64.b64encode(drawing.svg(frame, alone=True).encode()).decode()
    alternative = escape(f"frame {frame.number}, {frame}")
    return f"<img alt='{alternative}' src='data:image/svg+xml;base64,{image}'/><div>{drawing.caption(frame)}</div>"


def stepper(recording: Recording) -> str:
    """Return a page without scripts: a radio button for each frame, for keys or clicks, and a checkbox that plays the frames."""
    drawing, name = Drawing(recording), f"watch-{uuid.uuid4().hex[:12]}"
    pictures, left = list[str](), _BUDGET
    for frame in recording:
        picture = drawing.svg(frame)
        left -= len(picture)
        if left < 0 and pictures:
            break
        pictures.append(picture)
    count = len(pictures)
    buttons, figures = [], []
    for frame, picture in zip(recording, pictures, strict=False):
        i, checked = frame.number, "" if frame.number else " checked='checked'"
        label = escape(f"frame {i}, {frame}")
        buttons.append(f"<input type='radio' name='{name}' id='{name}-{i}' title='{label}' aria-label='{label}'{checked}/>")
        arrows = "".join(
            f"<label for='{name}-{to}' title='{what}'>{arrow}</label>"
            for to, what, arrow in (((i - 1) % count, "back", "◀"), ((i + 1) % count, "on", "▶"))
        )
        figures.append(f"<div><p>{arrows}{drawing.caption(frame)}</p>{picture}</div>")
    more = f"<p>Frames from {count} on are left out of this page; recording[i] shows each.</p>" if count < len(recording) else ""
    play = f"<input type='checkbox' id='{name}-play'/><label for='{name}-play'>play</label>"
    stage = f"{play}{''.join(buttons)}<div class='frames'>{''.join(figures)}</div>{drawing.legend()}{more}"
    title = f"<div style='font-weight:bold'>{escape(_capital(recording.title))}</div>"
    still = f"<div class='still'>{_still(drawing)}{drawing.legend()}</div>"
    return f"<div id='{name}'>{_style(name, count)}{title}{still}<div class='live' hidden='hidden'>{stage}</div></div>"


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _changes(frame: Frame) -> str:
    return f"{counted(int(np.count_nonzero(frame.changed)), 'element')} changed"


def _style(name: str, count: int) -> str:
    """Return the rules by which buttons show frames. A page that strips them shows the still picture."""
    shown = ",".join(f"#{name}-{i}:checked~.frames>:nth-child({i + 1})" for i in range(count))
    # Each frame is shown for a second; negative delays put the frames in order.
    turns = "".join(f"#{name}-play:checked~.frames>:nth-child({i + 1}){{animation-delay:{i - count}s}}" for i in range(count))
    rules = (
        f"#{name} .still{{display:none}}#{name} .live{{display:block}}"
        f"#{name} input{{margin:0 1px;accent-color:{COLOURS[READ]};vertical-align:middle}}"
        f"#{name} label{{cursor:pointer;margin:0 0.8em 0 0.2em}}#{name} p{{margin:0.4em 0}}"
        f"#{name} .frames{{display:grid;overflow-x:auto}}#{name} .frames>div{{grid-area:1/1;visibility:hidden}}"
        f"{shown}{{visibility:visible}}"
        f"@keyframes {name}{{0%{{visibility:visible}}{100 / count:.6f}%,100%{{visibility:hidden}}}}"
        f"#{name}-play:checked~.frames>div{{animation:{name} {count}s steps(1,end) infinite}}{turns}"
    )
    return f"<style>{rules}</style>"


def with_slider(recording: Recording) -> dict[str, Any]:
    """Return a widget instead of HTML, in a Jupyter with ipywidgets: a slider, a play button, and the picture, drawn by the kernel."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    if getattr(shell, "kernel", None) is None:
        return {}
    try:
        import ipywidgets
    except ImportError:
        return {}
    drawing, last = Drawing(recording), len(recording) - 1

    def figure(number: int) -> str:
        return f"<div>{drawing.caption(recording[number])}</div>{drawing.svg(recording[number])}"

    play = ipywidgets.Play(min=0, max=last, interval=1000, description="play")
    slider = ipywidgets.IntSlider(min=0, max=last, description="frame")
    picture = ipywidgets.HTML(figure(0))
    ipywidgets.jslink((play, "value"), (slider, "value"))
    slider.observe(lambda change: setattr(picture, "value", figure(change["new"])), names="value")
    title = ipywidgets.HTML(f"<b>{escape(_capital(recording.title))}</b>")
    box = ipywidgets.VBox([title, ipywidgets.HBox([play, slider]), picture, ipywidgets.HTML(drawing.legend())])
    bundle: dict[str, Any] = box._repr_mimebundle_() or {}
    return {_WIDGET: bundle[_WIDGET]} if _WIDGET in bundle else {}
