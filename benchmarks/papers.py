"""What the papers measured: seconds by system and by the number of vertices, as they print them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

__all__ = ["PAPERS", "Paper", "System"]


@dataclass(frozen=True)
class System:
    """A row of a paper's table.

    Attributes
    ----------
    name : str
    configuration : str
        The configuration of `benchmarks.ladder` that does the same work in the same way.
    seconds : mapping from n to float
        Empty where the paper has no table.
    """

    name: str
    configuration: str
    seconds: Mapping[int, float]


@dataclass(frozen=True)
class Paper:
    """A paper's table.

    Attributes
    ----------
    authors : str
    year : int
    hardware : str
    systems : tuple of System
        As the paper ranks them, the slowest first.
    remark : str
        What else makes a difference between their seconds and those of another machine.
    """

    authors: str
    year: int
    hardware: str
    systems: tuple[System, ...]
    remark: str = ""


def _doubling(first: int, *numbers: float, unit: float = 1.0) -> dict[int, float]:
    """Seconds for n = first, 2 first, 4 first, …, given in `unit` seconds."""
    return {first << i: x * unit for i, x in enumerate(numbers)}


PAPERS = (
    Paper(
        "Lund and Smith",
        2010,
        "Tesla C1060",
        (
            System("Harish–Narayanan", "iterative", _doubling(1024, 0.408, 3.212, 26.05, 208.6)),
            System("Katz–Kider", "tiles in shared memory", _doubling(1024, 0.108, 0.65, 4.62, 35.37, 277.8)),
            System("optimised blocked", "sums in registers", _doubling(1024, 0.0428, 0.282, 2.06, 16.39, 126.9)),
            System("staged load", "staged slices", _doubling(1024, 0.0274, 0.14, 0.934, 6.88, 53.02)),
        ),
        "Slices made room for more thread blocks in 16 KiB of shared memory; where there is more of it, they gain little over whole tiles.",
    ),
    Paper(
        "Buluç, Gilbert and Budak",
        2010,
        "GeForce 8800 Ultra",
        (
            System("iterative", "iterative", _doubling(512, 251, 2420, 46000, 413000, 5470000, unit=1e-3)),
            System("recursive, simple product", "recursive, simple product", _doubling(512, 16.2, 100, 746, 5880, 55700, unit=1e-3)),
            System("recursive, tuned product", "recursive, tuned product", _doubling(512, 6.43, 24.4, 141, 1010, 7870, unit=1e-3)),
        ),
    ),
    Paper(
        "Matsumoto, Nakasato and Sedukhin",
        2012,
        "system A, Radeon HD 6970",
        (
            System("united", "united", _doubling(1024, 23.9, 105, 446, 2501, 16962, 129786, unit=1e-3)),
            System("distances only", "distances only", _doubling(1024, 16.3, 60.2, 294, 1494, 10146, 75018, unit=1e-3)),
        ),
        "Theirs include copies between the host and the card; here the matrix lies on the device.",
    ),
    Paper(
        "Matsumoto, Nakasato and Sedukhin",
        2012,
        "system B",
        (System("distances only", "distances only", _doubling(1024, 17.4, 63, 241, 1362, 9259, 70816, unit=1e-3)),),
    ),
    Paper(
        "Zuccato and Lena",
        2022,
        "no seconds of theirs at hand",
        (
            System("blocks of 32", "blocks of 32", {}),
            System("blocks of 64", "blocks of 64", {}),
            System("blocks of 128", "blocks of 128", {}),
            System("blocks of 128 in streams", "blocks of 128, streams", {}),
            System("blocks of 128 as a graph", "blocks of 128, graph", {}),
            System("blocks of 128 in streams, as a graph", "blocks of 128, streams, graph", {}),
        ),
    ),
)
