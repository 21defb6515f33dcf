"""`Recording`: a closure step by step, as a table, a picture with a slider, a plot or an animation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from semiring.algorithms.recorder import Area
from semiring.results.frames import Frames

__all__ = ["Recording"]


def _listed(areas: Sequence[Area]) -> str:
    return " ".join([*map(str, areas[:2]), *(["…"] * (len(areas) > 2))])


class Recording(Frames):
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

    def __repr__(self) -> str:
        return f"<Recording of {self.title}: {len(self)} frames>"

    def __str__(self) -> str:
        lines: list[tuple[str, ...]] = [("", "round", "phase", "equation", "reads", "writes", "changed")]
        for f in self.frames:
            numbers = ("" if number is None else str(number) for number in (f.round, f.phase))
            areas = (_listed(areas) for areas in (f.reads, f.writes if f.number else ()))
            lines.append((str(f.number), *numbers, f.equation, *areas, f"{np.count_nonzero(f.changed):,}"))
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        right = (0, 1, 2, 6)
        kept = [c for c in range(7) if any(line[c] for line in lines[1:])]
        table = ["  ".join(line[c].rjust(widths[c]) if c in right else line[c].ljust(widths[c]) for c in kept).rstrip() for line in lines]
        return "\n".join([f"{self.title[0].upper()}{self.title[1:]}", *table])

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
        from semiring.results.recording_pictures import plot

        return plot(self, self.frames[frame], ax)

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
        from semiring.results.recording_pictures import animate

        return animate(self, interval)

    def _repr_html_(self) -> str:
        from semiring.results.recording_pictures import stepper

        return stepper(self)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        from semiring.results.recording_pictures import with_slider

        return {"text/plain": repr(self), "text/html": self._repr_html_(), **with_slider(self)}
