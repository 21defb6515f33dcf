"""What a closure would do: its method, blocks, tile, instructions for a step, and the time and memory that it is predicted to take."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from semiring.algebra.catalogue import MIN_PLUS
from semiring.algebra.definition import Semiring, require_semiring
from semiring.algebra.errors import SemiringError, TooLargeError, refuse_arrays
from semiring.algebra.html import Shown
from semiring.algebra.laws import usual_dtypes
from semiring.algorithms.laws import eliminates, require_closure_laws
from semiring.algorithms.schedules import schedule_for, settled
from semiring.closing_by_rows import speed_of
from semiring.graphs.by_rows import GivenRows
from semiring.graphs.memory import require_memory
from semiring.kernels.devices import gpus, is_gpu, on_device
from semiring.kernels.outline import Outline, outline
from semiring.kernels.placement import imagined, place, several
from semiring.kernels.prediction import GPU, predicted
from semiring.kernels.room import format_bytes, with_scratch
from semiring.kernels.select import engine_for
from semiring.kernels.streaming.plan import Plan, Speed
from semiring.kernels.streaming.storage import ArrayRows, Matrix, rows_of
from semiring.options import Options
from semiring.route import Large, route, side_of, size_of

__all__ = ["Explanation", "explain"]

_TRIAL = 1 << 13
"""Vertices of the matrix that speeds are tried with, at most."""


@dataclass(frozen=True, repr=False)
class Explanation(Shown):
    """The plan of a closure; its text says it, and Jupyter shows it as a table.

    Attributes
    ----------
    semiring : Semiring
    n : int
    dtypes : tuple of numpy.dtype
    paths : bool
    devices : tuple of str
        "cpu", "cuda:0" and so on; "cuda" for a GPU that is not there.
    method : str
    side : int
        Of the pivot blocks, or of the base case.
    outline : Outline
        Engine, tile and instructions.
    rows : Plan or None
        How the matrix is cut into block rows, if it is.
    speed : Speed or None
        Steps a second, and bytes between the host and a GPU, on which the prediction rests; None for the reference engine.
    seconds : float or None
        Predicted, without the compilation of kernels.
    memory : dict
        Bytes of the results and of what is beside them, by device; the matrix itself is not counted.
    pinned : dict
        Arguments with which a closure of such a matrix takes this method and this block, whatever memory is free.
    notes : tuple of str
        What stands in the way, or should be known.
    """

    semiring: Semiring
    n: int
    dtypes: tuple[np.dtype[Any], ...]
    paths: bool
    devices: tuple[str, ...]
    method: str
    side: int
    outline: Outline
    rows: Plan | None
    speed: Speed | None
    seconds: float | None
    memory: dict[str, int]
    pinned: dict[str, Any]
    notes: tuple[str, ...] = ()

    def facts(self) -> tuple[str, list[tuple[str, str]]]:
        """What Jupyter shows."""
        kinds, how = ", ".join(map(str, self.dtypes)), " with paths" if self.paths else ""
        facts = [
            ("device", ", ".join(self.devices)),
            ("engine", self.outline.engine),
            ("method", self.method),
            ("tile", "none" if self.outline.tile is None else _line(self.outline.tile)),
            ("instructions", self.outline.instructions),
            ("block rows", "no, the matrix as a whole" if self.rows is None else str(self.rows)),
            ("time", "not predicted" if self.seconds is None or self.speed is None else _time(self.seconds, self.speed)),
            ("memory", ", ".join(f"{format_bytes(size)} on {device}" for device, size in self.memory.items())),
            ("pinned by", ", ".join(f"{name}={value!r}" for name, value in self.pinned.items())),
        ]
        title = f"closure of {self.n:,} vertices over {self.semiring.name} in {kinds}{how}"
        return title, [*facts, *(("note", note) for note in self.notes)]

    def __repr__(self) -> str:
        title, facts = self.facts()
        return "\n".join([title, *(f"  {name:<12}  {text}" for name, text in facts)])


def _line(tile: Shown) -> str:
    title, facts = tile.facts()
    return f"{title}; {facts[0][0]}: {facts[0][1]}"


def _time(seconds: float, speed: Speed) -> str:
    size = f"{seconds:.3g} s" if seconds >= 1 else f"{seconds * 1e3:.3g} ms" if seconds >= 1e-3 else f"{seconds * 1e6:.3g} µs"
    return f"{size}, at {speed.steps:.3g} steps/s"


def explain(
    n: int,
    semiring: Semiring = MIN_PLUS,
    dtype: Any = None,
    device: Any = "auto",
    *,
    paths: bool = False,
    method: str = "auto",
    block: int | None = None,
    threads: int | None = None,
    memory_limit: int | str | None = None,
) -> Explanation:
    """What `closure` (or `apsp`) would do with a dense matrix of n vertices in the memory of the host.

    Parameters
    ----------
    n : int
    semiring : Semiring
    dtype : dtype or sequence of dtype, optional
        One for each component; by default the usual one of the semiring.
    device, paths, method, block, threads, memory_limit
        As for `apsp`. Where there is no GPU, "cuda" tells what an NVIDIA H200 would do.

    Returns
    -------
    Explanation

    Raises
    ------
    SemiringError
        As the closure itself would; but what does not fit the memory is a note.

    Notes
    -----
    Decisions are made by what makes them for a closure. The speed is measured with a product of a few rows, which takes well under a
    second beside the compilation of its kernels; for a GPU that is not there it is the one that ``device="auto"`` reckons with. Below
    some hundred vertices a closure takes longer than predicted, because it is not its steps that take the time.

    Examples
    --------
    >>> import semiring as sr
    >>> plan = sr.explain(1000, sr.MIN_PLUS, "float32", device="cpu")
    >>> plan.method
    'recursive, base case of 128'
    >>> print(plan)  # doctest: +SKIP
    closure of 1,000 vertices over min-plus in float32
      device        cpu
      engine        cpu, avx512 for znver4
      method        recursive, base case of 128
      tile          6 × 64 elements of C in registers; registers: 6 × 4 vectors of 16 elements
      instructions  2 for 16 steps (vfmadd231ps, vminps), and 1.2 that load or copy
      block rows    no, the matrix as a whole
      time          20.1 ms, at 4.97e+10 steps/s
      memory        3.8 MiB on cpu
      pinned by     method='recursive', block=128, device='cpu'
    """
    require_semiring(semiring)
    refuse_arrays(dtype=dtype, device=device, paths=paths, method=method, memory_limit=memory_limit)
    if isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 0:
        raise SemiringError(f"n is {n!r}; it is the number of vertices, a whole number from 0")
    n, paths = int(n), bool(paths or semiring.witness)
    dtypes = semiring.dtypes(usual_dtypes(semiring) if dtype is None else dtype)
    if n * n * max(d.itemsize for d in dtypes) > np.iinfo(np.intp).max:
        raise TooLargeError(f"no array has {n:,} × {n:,} entries: they are more than memory has addresses")
    schedule_for(method, block, eliminate=False)
    require_closure_laws(semiring, dtypes, paths=paths)
    options = Options(paths, method, block, device=device, threads=threads, memory_limit=memory_limit)
    arrays = imagined(n, dtypes)
    given = GivenRows(tuple(map(rows_of, arrays)), arrays, as_they_are=True, overwritable=False, looked_at=True)
    size, notes = n * given.row_bytes(paths=paths), list[str]()
    large: Large | None = None
    exact = any(d.kind == "O" for d in dtypes)
    absent = not exact and is_gpu(str(device)) and not gpus()
    if absent:
        devices: tuple[str, ...] = ("cuda",)
        notes.append("there is no GPU here: this is for an NVIDIA H200, with the speed that device='auto' reckons with")
        large = _limited(options, n, size)
    else:
        large = route(given, semiring, options, paths=paths)
        one = (several(device) or (device,))[0]
        devices = (place(one, arrays, float(n) ** 3, with_scratch(size)),) if large is None else large.devices
    described = outline(semiring, dtypes, devices[0], n, witness=paths, by_rows=large is not None)
    eliminate = eliminates(semiring, dtypes, paths=paths)
    name, side = settled(method, block, n, described, eliminate=eliminate) if large is None else ("blocked", large.side)
    pinned: dict[str, Any] = {"method": name} | ({} if name == "iterative" else {"block": side})
    pinned["device"] = devices[0] if len(devices) == 1 else list(devices)
    speed = GPU if absent else _tried(semiring, dtypes, devices[0], options, n, large, paths=paths)
    gpu, plan = is_gpu(devices[0]), None
    seconds: float | None
    try:
        if large is not None and speed is not None:
            plan = large.plan(n, given.row_bytes(paths=paths), speed)
        if not absent:
            require_memory(n, dtypes, via=paths)
            if gpu and large is None:
                require_memory(n, dtypes, via=paths, device=devices[0])
    except TooLargeError as error:
        notes.append(str(error))
    memory = ({} if absent else {"cpu": size}) if gpu else {"cpu": size + (0 if plan is None else plan.memory)}
    if gpu:
        memory |= dict.fromkeys(devices, with_scratch(size) if plan is None else plan.memory)
    if plan is not None:
        text, seconds = f"blocked, by block rows of {plan.side:,}", plan.seconds
    else:
        text, side = _method(name, side, n, described, eliminate=eliminate)
        seconds = None if speed is None else predicted(speed, float(n) ** 3, size if gpu else 0)
    return Explanation(semiring, n, dtypes, paths, devices, text, side, described, plan, speed, seconds, memory, pinned, tuple(notes))


def _limited(options: Options, n: int, size: int) -> Large | None:
    """What a memory limit makes of a closure on a GPU that is not there."""
    if n == 0 or options.memory_limit is None or with_scratch(size) <= (limit := size_of(options.memory_limit)):
        return None
    return Large(("cuda",), limit, side_of(options, n, size // n, gpu=True), False)


def _method(name: str, side: int, n: int, sides: Outline, *, eliminate: bool) -> tuple[str, int]:
    """The method in words, and the side of its blocks."""
    if n <= sides.pivot and (name == "recursive" or side >= n):
        words, side = "one pivot block", max(n, 1)
    elif name == "recursive" and n <= side and n <= sides.sweep:
        words, side = f"blocked, pivot blocks of {sides.block}", sides.block
    else:
        words = {"iterative": "iterative", "blocked": f"blocked, pivot blocks of {side}", "recursive": f"recursive, base case of {side}"}[
            name
        ]
    return f"{words}, by elimination" if eliminate else words, side


def _tried(
    semiring: Semiring, dtypes: tuple[np.dtype[Any], ...], device: str, options: Options, n: int, large: Large | None, *, paths: bool
) -> Speed | None:
    """The speed of a device, tried with a small matrix of ones."""
    if n == 0 or device == "reference":
        return None
    side = min(n, _TRIAL)
    ones = semiring.identities(dtypes)[1]
    given = tuple(ArrayRows(np.broadcast_to(np.array(one, dtype=d), (side, side))) for one, d in zip(ones, dtypes, strict=True))
    via = ArrayRows(np.broadcast_to(np.int32(-1), (side, side))) if paths else None
    engine = engine_for(semiring, dtypes, device, options.threads, witness=paths or large is not None)
    with on_device(device):
        return speed_of(engine, Matrix(given, given, via), device, side)
