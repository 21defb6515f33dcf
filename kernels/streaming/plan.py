"""How a matrix is cut into block rows: a small model of the time that they take, within the memory that there is."""

from __future__ import annotations

from dataclasses import dataclass

from semiring.algebra.errors import TooLargeError
from semiring.algebra.html import Shown
from semiring.kernels.room import gib

__all__ = ["GRANULE", "Plan", "Speed", "block_rows", "choose_plan", "even_side"]

GRANULE = 64
"""Rows that the sides of block rows are multiples of, so that blocks begin at aligned addresses."""

_SEEN = 0.1
"""How much of what happens beside something else costs time after all: memory and cores are shared."""


@dataclass(frozen=True)
class Speed:
    """What a device does, measured.

    Attributes
    ----------
    steps : float
        Steps of a product a second.
    link : float
        Bytes a second between the matrix and the device, in each direction.
    """

    steps: float
    link: float


@dataclass(frozen=True)
class Plan(Shown):
    """Block rows of a matrix for some devices.

    Attributes
    ----------
    n : int
        Vertices.
    rows : tuple of slice
        The block rows.
    devices : int
    buffers : int
        Block rows for which each device has room, beside those that stay there.
    row_bytes : int
        Bytes of one row, of all components and the construction matrix.
    memory : int
        Bytes of all that a device has room for.
    passes : int
        How often the matrix goes to the devices and back: once a round, or once if each keeps its share.
    speed : Speed
    """

    n: int
    rows: tuple[slice, ...]
    devices: int
    buffers: int
    row_bytes: int
    memory: int
    passes: int
    speed: Speed

    @property
    def side(self) -> int:
        """Rows of the largest block row."""
        return int(max(r.stop - r.start for r in self.rows))

    @property
    def share(self) -> int:
        """Rows of the device that has the most of them: each has every so many-th block row."""
        return max(sum(int(r.stop - r.start) for r in self.rows[number :: self.devices]) for number in range(self.devices))

    @property
    def computing(self) -> float:
        """Seconds of products: n² steps for each row, and pivot blocks, which do half as many a second as large products."""
        return (self.n**2 * self.share + self.n * self.side**2) / self.speed.steps

    @property
    def moving(self) -> float:
        """Seconds of copies in each direction."""
        return self.passes * self.share * self.row_bytes / self.speed.link

    @property
    def seconds(self) -> float:
        """Of the whole: the shorter of the two hides behind the other but for a tenth, the first block row's and the last one's copy."""
        longer, shorter = max(self.computing, self.moving), min(self.computing, self.moving)
        return longer + _SEEN * shorter + 2 * self.side * self.row_bytes / self.speed.link

    def facts(self) -> tuple[str, list[tuple[str, str]]]:
        """What Jupyter shows."""
        return f"n = {self.n:,} in {len(self.rows)} block rows", [
            ("rows of a block row", f"{self.side:,}"),
            ("devices", f"{self.devices}, {gib(self.memory)} each"),
            ("products", f"{self.computing:.3g} s at {self.speed.steps:.3g} steps/s"),
            ("copies", f"{self.moving:.3g} s each way at {self.speed.link / 1e9:.3g} GB/s, in {self.passes} passes"),
            ("in all", f"{self.seconds:.3g} s"),
        ]

    def __str__(self) -> str:
        devices = f" on {self.devices} devices" if self.devices > 1 else ""
        return (
            f"n = {self.n:,} in {len(self.rows)} block rows of {self.side:,}{devices}, {gib(self.memory)} each: "
            f"{self.computing:.3g} s of products at {self.speed.steps:.3g} steps/s, {self.moving:.3g} s of copies each way at "
            f"{self.speed.link / 1e9:.3g} GB/s, {self.seconds:.3g} s in all"
        )


def block_rows(n: int, side: int) -> tuple[slice, ...]:
    """Block rows of `side` rows; the last one is what is left."""
    return tuple(slice(start, min(n, start + side)) for start in range(0, n, side))


def even_side(n: int, most: int) -> int:
    """At most `most` rows a block row, so that all are nearly as large: no mere rest costs a whole round."""
    count = -(-n // most)
    side = -(-n // count)
    whole = -(-side // GRANULE) * GRANULE
    return whole if whole <= most else side


def choose_plan(n: int, row_bytes: int, limit: int, speed: Speed, *, devices: int = 1, side: int | None = None) -> Plan:
    """The plan that is predicted to be the fastest within a limit.

    Parameters
    ----------
    n : int
        Vertices, at least one.
    row_bytes : int
        Bytes of one row, of all components and the construction matrix.
    limit : int
        Bytes that the buffers of one device may have.
    speed : Speed
    devices : int
    side : int, optional
        Take block rows of this side.

    Raises
    ------
    TooLargeError
        Naming the least limit that would do.
    """
    buffers = 5 if devices == 1 else 6
    most = min(n, limit // (buffers * row_bytes))
    least = min(n, GRANULE if side is None else side)
    if most < least:
        needed = buffers * least * row_bytes
        smaller = f", or block={most} at most" if side is not None and most > 0 else ""
        raise TooLargeError(
            f"{buffers} block rows of {least:,} × {n:,} entries take {gib(needed)} on each device, and {gib(max(limit, 0))} are left; "
            f"raise memory_limit by {gib(needed - limit)}{smaller}"
        )
    sides = {even_side(n, some) for some in range(least, most + 1, GRANULE)} if side is None else {min(side, n)}
    cuts = (block_rows(n, some) for some in sides)
    plans = (Plan(n, cut, devices, buffers, row_bytes, buffers * cut[0].stop * row_bytes, len(cut), speed) for cut in cuts)
    return min(plans, key=lambda p: p.seconds)
