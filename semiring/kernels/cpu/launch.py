"""Launches: the tasks of a product and all arguments that follow from shapes and strides; a call only adds addresses.

A task is a tile of C. Every task packs its own operands, so tasks share nothing and need no barrier. The cost: a part of B is packed
once per row of tasks, and a part of A once per column of tasks.
"""

from __future__ import annotations

import functools
import math
from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

from semiring.arrays.overlap import Layout, extent, share
from semiring.arrays.pieces import CPU_SCRATCH
from semiring.arrays.threads import return_scratch, run, take_scratch
from semiring.common.progress import Meter
from semiring.kernels.cpu.arguments import STATUS, KernelArguments, KernelWords, MatrixWords, pack
from semiring.kernels.cpu.bounds import BEYOND, BOUNDS
from semiring.kernels.cpu.compiler import Function
from semiring.kernels.cpu.representation import STRIP, Representation, Tile
from semiring.kernels.machine import LANE_ELEMENTS, LANE_MOVE, LANE_SERIES, LANE_SHARE, SERIAL

__all__ = ["THIN", "Launch", "has_rows", "is_aligned", "overlaps", "pivot_launch", "product_launch", "tasks_of", "transposed_shape"]


@dataclass(frozen=True)
class Tasks:
    """Tiles (top, bottom, left, right), the number of threads, and the bytes of each buffer of a worker."""

    tiles: tuple[tuple[int, int, int, int], ...]
    threads: int
    scratch: dict[str, int]
    transposed_rows: int


_LOOKUP_COLUMNS, _LOOKUP_BYTES = 128, 4096
"""Columns of B, and bytes of each column, that stay transposed in the L2 cache during the witness lookup."""


def transposed_shape(tile: Tile, rep: Representation) -> tuple[int, int]:
    """Return the number of columns of B, and of steps per column, transposed at a time."""
    steps = max(1, _LOOKUP_BYTES // sum(s.bytes for s in rep.inner) // tile.slab) * tile.slab
    return max(1, _LOOKUP_COLUMNS // tile.columns) * tile.columns, min(steps, tile.depth)


def tasks_of(m: int, n: int, k: int, tile: Tile, rep: Representation, threads: int, *, hold_a: bool, hold_b: bool, witness: bool) -> Tasks:
    """Cut one product into tasks.

    With `hold_a` (`hold_b`) the operand is C itself, so a task packs its whole part before C changes: tasks are whole rows (columns) of C.
    With a witness, the task copies its part of A instead, and has scratch for a part of Bᵀ.
    """
    size, packed = sum(s.bytes for s in rep.inner), tile.packed_steps(k, rep)
    limit = max(CPU_SCRATCH, m * n * size // 20) // threads
    threads = 1 if m * n * k < SERIAL else threads
    down = across = 1
    if threads > 1:
        # Columns first: packing A again costs more than packing B again.
        across = 1 if hold_a else min(threads, max(1, n // (4 * tile.columns)))
        down = 1 if hold_b else -(-threads // across)
        if m * n * k >= 64 * SERIAL:
            down, across = (down * 2, across) if not hold_b else (down, across * 2)
    if hold_a:
        down = max(down, math.ceil(m / max(tile.rows, limit // (size * max(1, packed)))))
        across = 1
    elif hold_b:
        # Whole columns of B, as many as a worker may hold.
        across = max(across, math.ceil(n / max(tile.columns, limit // (size * max(1, packed)))))
    height = max(1, -(-math.ceil(m / down) // tile.rows)) * tile.rows
    width = max(1, -(-math.ceil(n / across) // tile.columns)) * tile.columns
    tiles = tuple((top, min(m, top + height), left, min(n, left + width)) for left in range(0, n, width) for top in range(0, m, height))
    height, width = min(height, -(-m // tile.rows) * tile.rows), min(width, -(-n // tile.columns) * tile.columns)
    depth = tile.packed_steps(min(k, tile.depth), rep)
    line = 64 * len(rep.inner)
    scratch = {
        "packed_a": (height * packed if hold_a and not witness else tile.block * depth) * size + line,
        "packed_b": width * (packed if hold_b else depth) * size + line,
    }
    if hold_a and witness:
        scratch["packed_c"] = height * k * sum(s.bytes for s in rep.outer) + line
    columns, steps = transposed_shape(tile, rep)
    long = -(-min(k, steps) // 32) * 32 + 32 if witness else 0
    if witness:
        scratch["transposed"] = columns * long * size + line
    wide = tile.wide_bytes(min(k, tile.depth), rep)
    if wide:
        scratch["wide"] = wide
    return Tasks(tiles, min(threads, len(tiles)), scratch, long)


Strides = tuple[int, ...]
"""Bytes along the leading axes of a stack, from row to row, and from column to column."""

Extent = tuple[int, int, int]
"""The number of a matrix, and the range of its bytes (first, last + 1) relative to its address."""

Held = tuple[bool, bool]
"""True for A, and for B, if the operand is C itself and therefore packed before C changes."""

THIN = 16
"""Rows of a product with many short rows that form one matrix of a stack."""

_SHARES = 4
"""Parts of a stack or of dot products per thread, so that a delayed part does not delay all; streamed rows have one, to stay long."""

_DOT = 4
"""Vectors per sum from which terms are added lane by lane."""

_SCATTERED_ROWS, _SCATTERED_BYTES = 64, 2048
"""Rows of a pivot block, and bytes between rows, from which a contiguous copy is closed instead."""

_RELATIONS = 512
"""Cached overlaps of operands and results; blocks of one matrix have few."""

_FIRST, _START, _STOP, _AXES, _VIA = map(KernelWords._fields.index, ("first", "start", "stop", "axes", "via"))
_SIDES = tuple(map(KernelWords._fields.index, ("m", "n", "k")))
_SHARED = tuple(map(KernelWords._fields.index, ("shared_a", "shared_b")))
_SCRATCH = tuple(map(KernelWords._fields.index, ("packed_a", "packed_b", "packed_c", "transposed", "wide")))
_WITNESS = 4
"""Bytes of a witness."""


@dataclass(eq=False)
class Launch:
    """A kernel call on matrices of one shape and one set of strides."""

    name: str
    tasks: list[array[int]]  # arguments of each call, with offsets instead of addresses
    slots: list[int]  # argument number of each matrix's address
    masks: list[int]  # bits of each address that must be clear
    direct: bool  # kernels support these strides
    operands: Sequence[Extent] = ()
    results: Sequence[Extent] = ()
    relation: Callable[..., Held | None] = lambda *_: None  # `held` where extents overlap, from addresses relative to the first
    threads: int = 1
    scratch: int = 0  # bytes per worker
    pace: float = 0  # nanoseconds per step
    thin: bool = False  # rows are many and too short to fill a register tile: a stack is faster

    def __post_init__(self) -> None:
        self.lanes = self.name.endswith("lanes")  # all operands of a group are read before results are written
        self.checks = self.lanes or ("vector" in self.name and not self.name.endswith("stack"))  # the kernel compares operands with bounds
        self._nanoseconds = self.pace * max(map(_steps, self.tasks), default=0)

    def held(self, places: Sequence[int]) -> Held | None:
        """Return which operand at these addresses is the result itself, or None if some matrix has to be copied."""
        for place, mask in zip(places, self.masks, strict=True):
            if place & mask:
                return None
        if not self.direct:
            return None
        for i, low, high in self.operands:
            start, stop = places[i] + low, places[i] + high
            for j, first, last in self.results:
                if start < places[j] + last and places[j] + first < stop:
                    return self.relation(*[place - places[0] for place in places])
        return False, False

    def run(
        self,
        function: Callable[[str], Function],
        places: Sequence[int],
        first: int,
        meter: Meter | None = None,
        bounds: Sequence[int] | None = None,
    ) -> tuple[int | None, bool]:
        """Run all tasks up to a divergent pivot, and report steps to the meter; return that pivot or None, and True for `beyond`.

        `places` are addresses (of the first matrix of a stack), `first` is the number of the first vertex. Kernels that check operands
        answer `beyond` if numbers are out of `bounds` (as words).
        """
        kernel = function(self.name)
        if len(self.tasks) == 1:  # at once: small matrices would feel the cost of a closure over the arguments
            words = self._call(kernel, self.tasks[0], places, first, bounds)
            divergent = words[STATUS] if words[STATUS] >= 0 else None
            if meter is not None and divergent is None:
                meter.add(_steps(words))
            return divergent, bool(words[BEYOND])
        pivots, beyond = list[int](), False

        def work(task: array[int], worker: int) -> None:
            nonlocal beyond
            if pivots:
                return
            words = self._call(kernel, task, places, first, bounds)
            if words[BEYOND]:
                beyond = True
            if words[STATUS] >= 0:
                pivots.append(words[STATUS])
            elif meter is not None:
                meter.add(_steps(words), tell=worker == 0)

        run(work, self.tasks, self.threads)
        return pivots[0] if pivots else None, beyond

    def _call(self, kernel: Function, task: array[int], places: Sequence[int], first: int, bounds: Sequence[int] | None) -> array[int]:
        """Call the kernel for one task; return the argument words, with the status that the kernel wrote."""
        words = task[:]
        for slot, place in zip(self.slots, places, strict=True):
            words[slot] += place
        words[_FIRST] = first
        if bounds is not None:
            for slot, bound in zip(BOUNDS, bounds, strict=True):
                words[slot] = bound
        if not self.scratch:
            kernel(words, self._nanoseconds)
            return words
        scratch = take_scratch(self.scratch)
        for slot in _SCRATCH:
            words[slot] += scratch.address
        kernel(words, self._nanoseconds)
        return_scratch(scratch)
        return words


def _steps(words: array[int]) -> int:
    return math.prod([words[side] for side in _SIDES]) * (words[_STOP] - words[_START])


def product_launch(
    rep: Representation,
    tiles: tuple[Tile, Tile],
    batch: tuple[int, ...],
    m: int,
    n: int,
    k: int,
    threads: int,
    fresh: bool,
    signed: bool,
    witness: bool,
    hold_a: bool,
    hold_b: bool,
    *strides: Strides,
) -> Launch:
    """Return the launch of a product of A, B and C, one matrix per component, and the construction matrix, with these strides.

    `batch` are the leading axes of a stack. `tiles` are without and with a witness; `hold_a` and `hold_b` are explained at `Held`.
    """
    if batch:
        one = product_launch(rep, tiles, (), m, n, k, 1, fresh, signed, witness, False, False, *(s[-2:] for s in strides))
        return _stack_launch(rep, tiles[witness], one, "product_witness" if witness else "product", batch, threads, strides)
    count = len(rep.outer)
    shapes = [shape for shape in ((m, k), (k, n), (m, n)) for _ in range(count)]
    layouts = [Layout(0, s[0], s[1], *shape, o.bytes) for s, shape, o in zip(strides, shapes, rep.outer * 3, strict=False)]
    a, b, c = (layouts[i : i + count] for i in range(0, 3 * count, count))
    via = [Layout(0, s[0], s[1], m, n, _WITNESS) for s in strides[len(layouts) :]]
    by_tiles = hold_a or hold_b or rep.kind == "exponential"
    name = None if by_tiles else _kernel_of_vector(a, b, [*c, *via], tiles[0])
    tile, small = tiles[witness], THIN * (k + n) + k * n <= LANE_ELEMENTS
    if name is None:
        tasks = tasks_of(m, n, k, tile, rep, threads, hold_a=hold_a, hold_b=hold_b, witness=witness)
    else:
        tasks = _tasks_of_vector(m, n, k, tiles[0], rep, threads, shares=_SHARES if name.endswith("dot") else 1)
        name += "_witness" * witness
    *starts, scratch = accumulate((-(-size // 64) * 64 for size in tasks.scratch.values()), initial=0)

    def task(top: int, bottom: int, left: int, right: int) -> array[int]:
        words = KernelWords(
            m=bottom - top,
            n=right - left,
            k=k,
            first=0,
            hold_a=hold_a,
            hold_b=hold_b,
            fresh=fresh,
            threshold=rep.threshold(signed=signed),
            via=sum(top * v.down + left * v.size for v in via),
            via_rows=sum(v.down // v.size for v in via),
            transposed_rows=tasks.transposed_rows,
            **dict(zip(tasks.scratch, starts, strict=True)),
        )
        matrices = [
            MatrixWords(
                *(top * x.down, x.down // x.size, x.across // x.size),
                *(left * y.across, y.down // y.size, y.across // y.size),
                *(top * z.down + left * z.size, z.down // z.size, 1),
            )
            for x, y, z in zip(a, b, c, strict=True)
        ]
        return pack(words, matrices)

    return Launch(
        name or ("product_witness" if witness else "product"),
        [task(*tile) for tile in tasks.tiles],
        [*_slots("ABC", count), *(_VIA for _ in via)],
        [*(x.size - 1 for x in layouts), *(0 for _ in via)],
        direct=all(map(is_aligned, layouts)) and all(map(has_rows, [*c, *via, *(a if witness and not name else ())])),
        operands=[(i, *extent(x)) for i, x in enumerate([*a, *b])],
        results=[(i, *extent(x)) for i, x in enumerate(c, 2 * count)],
        relation=functools.partial(_held, tuple(a), tuple(b), tuple(c)),
        threads=tasks.threads,
        scratch=scratch,
        pace=rep.step_nanoseconds,
        thin=not (by_tiles or name) and m >= THIN * tile.width and 2 * n <= tile.columns and k <= tile.depth and small,
    )


def _kernel_of_vector(a: Sequence[Layout], b: Sequence[Layout], c: Sequence[Layout], tile: Tile) -> str | None:
    """Return the name of the matrix-vector kernel for these layouts, see `VectorKernel`; None for other products and layouts."""
    m, n, k = c[0].rows, c[0].columns, a[0].columns
    if k == 0 or (m > 1 < n) or not all(z.down == z.size or m == 1 for z in c):
        return None
    name, matrix, along, count = ("matrix_vector", a, "down", m) if n == 1 else ("vector_matrix", b, "across", n)
    term = "across" if n == 1 else "down"
    if count >= tile.width and all(getattr(x, along) == x.size for x in matrix):
        return f"{name}_streamed"
    return f"{name}_dot" if k >= _DOT * tile.width and all(getattr(x, term) == x.size for x in matrix) else None


def _tasks_of_vector(m: int, n: int, k: int, tile: Tile, rep: Representation, threads: int, *, shares: int) -> Tasks:
    """Cut a product with a vector into parts of the result that start on cache lines and have at least one vector."""
    count, size, line = max(m, n), sum(s.bytes for s in rep.inner), 64 * len(rep.inner)
    unit = max(64, tile.width)
    each = max(unit, -(-count // (shares * threads * unit)) * unit) if threads > 1 else count
    starts = [*range(0, max(1, count - unit + 1), each)]
    ends = [*starts[1:], count]
    tiles = tuple((0, 1, i, j) if m == 1 else (i, j, 0, 1) for i, j in zip(starts, ends, strict=True))
    scratch = {"packed_a": (STRIP + tile.width) * (size + _WITNESS) + line + 64, "packed_b": k * size + line}
    return Tasks(tiles, min(threads, len(tiles)), scratch, 0)


def pivot_launch(
    rep: Representation,
    tiles: tuple[Tile, Tile],
    name: str,
    batch: tuple[int, ...],
    n: int,
    threads: int,
    signed: bool,
    *strides: Strides,
) -> Launch:
    """Return the launch of a kernel of pivot blocks of side n, with a construction matrix if one more stride is given."""
    if batch:
        one = pivot_launch(rep, tiles, name, (), n, 1, signed, *(s[-2:] for s in strides))
        return _stack_launch(rep, tiles[name.endswith("witness")], one, name, batch, threads, strides)
    layouts = [Layout(0, s[0], s[1], n, n, o.bytes) for s, o in zip(strides, rep.outer, strict=False)]
    via = [Layout(0, s[0], s[1], n, n, _WITNESS) for s in strides[len(layouts) :]]
    words = KernelWords(m=n, n=n, k=n, first=0, threshold=rep.threshold(signed=signed), via_rows=sum(v.down // v.size for v in via))
    return Launch(
        name,
        [pack(words, [MatrixWords(*(0, 0, 0), *(0, 0, 0), *(0, x.down // x.size, 1)) for x in layouts])],
        [*_slots("C", len(layouts)), *(_VIA for _ in via)],
        [*(x.size - 1 for x in layouts), *(0 for _ in via)],
        direct=all(map(is_aligned, layouts)) and all(has_rows(x) and not _is_scattered(x) for x in (*layouts, *via)),
        pace=rep.step_nanoseconds,
    )


# Stacks.

_PIECE = 1 << 28
"""Most steps per call of a kernel, because progress is reported between calls."""


def _stack_launch(
    rep: Representation, tile: Tile, one: Launch, name: str, batch: tuple[int, ...], threads: int, strides: Sequence[Strides]
) -> Launch:
    """Return the launch of a kernel on stacks, from the launch of the first matrix; small matrices go one to a lane (see `lanes`).

    `name` is the kernel of a single matrix, and `strides` include leading axes. The launch is not `direct` for unsupported strides, or
    matrices so large that each has several tasks.
    """
    product, witness, count = name.startswith("product"), name.endswith("witness"), len(rep.outer)
    sizes = [o.bytes for o in rep.outer] * (3 if product else 1) + [_WITNESS] * witness
    if not one.direct or len(one.tasks) > 1 or any(x % size for s, size in zip(strides, sizes, strict=True) for x in s[:-2]):
        return replace(one, direct=False, thin=False)
    words, scratch = one.tasks[0][:], one.scratch
    axes = _axes(batch, [s[:-2] for s in strides])
    (m, n, k), matrices, lanes = (words[side] for side in _SIDES), math.prod(length for length, _ in axes), tile.width
    areas = (m * k, k * n, m * n) if product else (0, 0, m * n)
    packed = k <= tile.depth and sum(areas) <= LANE_ELEMENTS and matrices * LANE_SHARE >= lanes
    if product and rep.kind == "exponential":  # an exponential per step; the product's tiles need one per element
        packed = packed and max(m, n, k) <= LANE_SERIES
    if packed:
        inner, outer = (sum(s.bytes for s in x) * lanes for x in (rep.inner, rep.outer))
        bytes_of = (areas[0] * inner, areas[1] * inner, areas[2] * (outer + _WITNESS * lanes * witness))
        *starts, scratch = accumulate((-(-size // 64) * 64 + 64 * (count + 1) for size in bytes_of), initial=0)
        for slot, start in zip(_SCRATCH, (*starts, 0, 0), strict=True):
            words[slot] = start
        operands = (strides[:count], strides[count : 2 * count]) if product else ()
        for slot, operand in zip(_SHARED, operands, strict=False):
            words[slot] = not any(x for s in operand for x, length in zip(s, batch, strict=False) if length > 1)
    words[_AXES] = len(axes)
    for length, steps in axes:
        # Strides in elements, in the order of `StackArguments`: A, B and C of each component, and the witnesses.
        elements = [step // size for step, size in zip(steps, sizes, strict=True)]
        via = elements.pop() if witness else 0
        elements = elements if product else [0] * (2 * count) + elements
        words.extend([length, *(elements[x * count + c] for c in range(count) for x in range(3)), via])
    work = matrices * (m * n * k + LANE_MOVE * sum(areas))
    threads = threads if work >= SERIAL else 1
    unit = lanes if packed else 1
    most = max(unit, _PIECE // max(1, m * n * k) // unit * unit)
    each = min(most, -(-matrices // (threads * _SHARES * unit)) * unit) if threads > 1 else most
    tasks = []
    for start in range(0, matrices, each):
        words[_START], words[_STOP] = start, min(matrices, start + each)
        tasks.append(words[:])
    # Unpacked stacks use the words and the scratch of one matrix's kernel, which may be a vector kernel (`one.name`).
    kind = f"{name}_lanes" if packed else f"{one.name}_stack"
    return Launch(kind, tasks, one.slots, one.masks, True, threads=threads, scratch=scratch, pace=one.pace)


def _axes(batch: tuple[int, ...], strides: Sequence[tuple[int, ...]]) -> list[tuple[int, list[int]]]:
    """Merge leading axes where possible; return each axis's length and its stride in each array, in bytes."""
    found: list[tuple[int, list[int]]] = []
    for length, *steps in zip(batch, *strides, strict=True):
        if length == 1 and found:
            continue
        if found and (found[-1][0] == 1 or all(outer == length * inner for outer, inner in zip(found[-1][1], steps, strict=True))):
            found[-1] = (found[-1][0] * length, steps)
        else:
            found.append((length, steps))
    return found


@functools.lru_cache(maxsize=16)
def _slots(names: str, components: int) -> list[int]:
    """Return the argument numbers of the matrices' addresses."""
    index = KernelArguments(components).index
    return [index[name, c] for name in names for c in range(components)]


@functools.lru_cache(maxsize=_RELATIONS)
def _held(A: tuple[Layout, ...], B: tuple[Layout, ...], C: tuple[Layout, ...], *places: int) -> Held | None:
    """`Launch.held`, exactly, for matrices of these layouts at these addresses."""
    placed = [x._replace(address=place) for x, place in zip((*A, *B, *C), places, strict=False)]
    hold_a, hold_b, *copies = overlaps(*(placed[i : i + len(C)] for i in range(0, 3 * len(C), len(C))))
    return None if any(copies) else (hold_a, hold_b)


def overlaps(a: Sequence[Layout], b: Sequence[Layout], c: Sequence[Layout]) -> tuple[bool, bool, bool, bool]:
    """Return whether A, and B, share memory with C, and whether they need a copy.

    An operand that is C itself is packed before C changes. Other overlaps, and a second operand in C, need a copy.
    """
    hold_a, hold_b = (any(share(x, z) for x in operand for z in c) for operand in (a, b))
    return hold_a, hold_b, hold_a and (hold_b or a != c), hold_b and b != c


def is_aligned(x: Layout) -> bool:
    """Return True if strides are multiples of the element size; fields of packed records may have others."""
    return x.down % x.size == x.across % x.size == 0


def _is_scattered(x: Layout) -> bool:
    """Return True if rows are so far apart that they compete for few cache sets: copying twice is faster."""
    return x.rows >= _SCATTERED_ROWS and x.down >= max(_SCATTERED_BYTES, 2 * x.columns * x.size)


def has_rows(x: Layout) -> bool:
    """Return True if the elements of each row are contiguous."""
    return x.across == x.size or x.columns <= 1
