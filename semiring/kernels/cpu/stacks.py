"""Stacks of matrices: a compiled loop over their leading axes, ranges of matrices for threads, and scratch memory.

Small matrices go one to a lane, see `lanes`. Larger matrices fill vectors by themselves, and a loop calls the kernel of single matrices.
Both start from the arguments of the first matrix.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate

from semiring.arrays.threads import run
from semiring.common.progress import Meter
from semiring.kernels.cpu.arguments import STATUS, Array, KernelArguments, KernelWords
from semiring.kernels.cpu.bounds import BEYOND, BOUNDS
from semiring.kernels.cpu.compiler import Function
from semiring.kernels.cpu.emitter import ENTRY, I64, Emitter
from semiring.kernels.cpu.launch import SCRATCH, WITNESS, Launch, call
from semiring.kernels.cpu.representation import Representation
from semiring.kernels.cpu.tile import Tile
from semiring.kernels.machine import LANE_ELEMENTS, LANE_MOVE, LANE_SERIES, LANE_SHARE, SERIAL

__all__ = ["StackArguments", "StackLaunch", "stack_launch", "stack_loop"]

_PIECE = 1 << 28
"""Most steps per call of a kernel, because progress is reported between calls."""

_SHARES = 4
"""Ranges per thread, so that a delayed range does not delay all."""

_FIRST, _START, _STOP, _AXES = map(KernelWords._fields.index, ("first", "start", "stop", "axes"))
_SHARED = tuple(map(KernelWords._fields.index, ("shared_a", "shared_b")))


class StackArguments(KernelArguments):
    """Arguments of a stack, followed by the length of each leading axis and the element stride of each array along it."""

    def __init__(self, components: int) -> None:
        super().__init__(components)
        self.arrays: list[Array] = [*((name, c) for c in range(components) for name in "ABC"), "via"]

    def offsets(self, em: Emitter, number: str) -> list[str]:
        """Return the offset of a matrix in each array, in elements."""
        axes, size = self.load(em, "axes"), 1 + len(self.arrays)

        def moved(axis: str | int, step: str, offsets: list[str]) -> list[str]:
            words = em.at("i64", "%args", em.add(em.mul(axis, size), len(self.index) + 1))
            return [str(em.add(x, em.mul(step, em.get(I64, words, i)))) for i, x in enumerate(offsets)]

        def inner(turn: str, carried: list[str]) -> list[str]:
            rest, *offsets = carried
            axis = em.sub(axes, turn)
            length = em.get(I64, "%args", em.add(em.mul(axis, size), len(self.index)))
            whole = em.let(f"sdiv i64 {rest}, {length}")
            return [whole, *moved(axis, str(em.sub(rest, em.mul(whole, length))), offsets)]

        rest, *offsets = em.loop(1, axes, 1, inner, [("i64", number), *(("i64", "0") for _ in self.arrays)])
        return moved(0, rest, offsets)


def stack_loop(rep: Representation, name: str) -> Emitter:
    """``product_stack(args)``, which calls ``product`` for each matrix, or the like for pivot blocks, up to the first divergent pivot."""
    em, args = Emitter(f"{name}_stack", ENTRY), StackArguments(len(rep.outer))
    count = len(args.index)
    own = em.let(f"alloca [{count} x i64], align 64")
    em.loop(0, count, 1, lambda i, _: em.put(I64, em.get(I64, "%args", i), own, i))

    def matrix(number: str, _: list[str]) -> None:
        for x, offset in zip(args.arrays, args.offsets(em, number), strict=True):
            ir = "i32" if x == "via" else rep.outer[int(x[1])].ir
            em.store("ptr", em.at(ir, args.pointer(em, x), offset), em.at("i64", own, args.index[x]), 8)
        em.line(f"call void @{name}(ptr {own}, ptr %stop)")
        status = em.get(I64, own, STATUS)
        em.put(I64, status, "%args", STATUS)
        em.returning(em.let(f"icmp sge i64 {status}, 0"))

    em.loop(args.load(em, "start"), args.load(em, "stop"), 1, matrix)
    return em.done()


@dataclass(eq=False)
class StackLaunch:
    """A kernel call on stacks of one shape and one set of strides."""

    name: str
    one: Launch  # of the first matrix
    words: array[int]
    ranges: Sequence[tuple[int, int]]
    steps: int  # per matrix
    threads: int
    scratch: int

    def __post_init__(self) -> None:
        self.lanes = self.name.endswith("lanes")  # all operands of a group are read before results are written

    def takes(self, places: Sequence[int]) -> bool:
        """Return True if the kernel supports matrices at these addresses."""
        return not any(place & mask for place, mask in zip(places, self.one.masks, strict=True))

    def run(
        self, kernel: Function, places: Sequence[int], first: int, meter: Meter | None = None, bounds: Sequence[int] | None = None
    ) -> tuple[int | None, bool]:
        """Run all matrices up to a divergent pivot; return that pivot or None, and True if operands go beyond `bounds`.

        `places` are addresses of the first matrix, `first` is the number of the first vertex; `bounds` are words, for kernels with lanes.
        """
        template, divergent, beyond = self.one.arguments(places, first, self.words), list[int](), False
        for slot, bound in zip(BOUNDS, bounds or (), strict=False):
            template[slot] = bound

        def work(some: tuple[int, int], worker: int) -> None:
            nonlocal beyond
            if divergent:
                return
            words = template[:]
            words[_START], words[_STOP] = some
            steps = self.steps * (some[1] - some[0])
            call(kernel, words, self.scratch, steps * self.one.pace)
            if words[BEYOND]:
                beyond = True
            if words[STATUS] >= 0:
                divergent.append(words[STATUS])
            elif meter is not None:
                meter.add(steps, tell=worker == 0)

        run(work, self.ranges, self.threads)
        return divergent[0] if divergent else None, beyond


def stack_launch(
    rep: Representation,
    tiles: tuple[Tile, Tile],
    launch: Callable[..., Launch],
    name: str,
    sides: tuple[int, int, int],
    batch: tuple[int, ...],
    threads: int,
    *strides: tuple[int, ...],
) -> StackLaunch | None:
    """Return the launch of a kernel on stacks; None for unsupported strides, or matrices so large that each has several tasks.

    `name` is the kernel of a single matrix, and `launch` returns a launch for given strides. `sides` are rows, columns and depth,
    `batch` the leading axes, and `strides` include leading axes. `tiles` are without and with a witness.
    """
    product, witness, count = name.startswith("product"), name.endswith("witness"), len(rep.outer)
    one = launch(*(s[-2:] for s in strides))
    sizes = [o.bytes for o in rep.outer] * (3 if product else 1) + [WITNESS] * witness
    if not one.direct or len(one.tasks) > 1 or any(x % size for s, size in zip(strides, sizes, strict=True) for x in s[:-2]):
        return None
    axes = _axes(batch, [s[:-2] for s in strides])
    (m, n, k), matrices, lanes = sides, math.prod(length for length, _ in axes), tiles[witness].width
    areas = (m * k, k * n, m * n) if product else (0, 0, m * n)
    packed = k <= tiles[witness].depth and sum(areas) <= LANE_ELEMENTS and matrices * LANE_SHARE >= lanes
    if product and rep.kind == "exponential":  # an exponential per step; the product's tiles need one per element
        packed = packed and max(sides) <= LANE_SERIES
    words, scratch = one.tasks[0][:], one.scratch
    if packed:
        inner, outer = (sum(s.bytes for s in x) * lanes for x in (rep.inner, rep.outer))
        bytes_of = (areas[0] * inner, areas[1] * inner, areas[2] * (outer + WITNESS * lanes * witness))
        *starts, scratch = accumulate((-(-size // 64) * 64 + 64 * (count + 1) for size in bytes_of), initial=0)
        for slot, start in zip(SCRATCH, (*starts, 0, 0), strict=True):
            words[slot] = start
        operands = (strides[:count], strides[count : 2 * count]) if product else ()
        for slot, operand in zip(_SHARED, operands, strict=False):
            words[slot] = not any(x for s in operand for x, length in zip(s, batch, strict=False) if length > 1)
    words[_AXES] = len(axes)
    for length, steps in axes:
        words.append(length)
        words.extend(_in_words(steps, sizes, count, product=product, witness=witness))
    steps_of_one = m * n * k
    work = matrices * (steps_of_one + LANE_MOVE * sum(areas))
    threads = threads if work >= SERIAL else 1
    unit = lanes if packed else 1
    most = max(unit, _PIECE // max(1, steps_of_one) // unit * unit)
    each = min(most, -(-matrices // (threads * _SHARES * unit)) * unit) if threads > 1 else most
    ranges = [(start, min(matrices, start + each)) for start in range(0, matrices, each)]
    # Unpacked stacks use the words and the scratch of one matrix's kernel, which may be a vector kernel (`one.name`).
    kind = f"{name}_lanes" if packed else f"{one.name or name}_stack"
    return StackLaunch(kind, one, words, ranges, steps_of_one, threads, scratch)


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


def _in_words(steps: Sequence[int], sizes: Sequence[int], count: int, *, product: bool, witness: bool) -> list[int]:
    """Return an axis's strides in elements, in the order of `StackArguments`: A, B and C of each component, and the witnesses."""
    elements = [step // size for step, size in zip(steps, sizes, strict=True)]
    via = elements.pop() if witness else 0
    if not product:
        elements = [0] * (2 * count) + elements
    return [elements[x * count + c] for c in range(count) for x in range(3)] + [via]
