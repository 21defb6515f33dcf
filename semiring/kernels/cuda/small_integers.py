"""Products of small integers on the tensor cores of compute capability 9.0, over (min, +) and (max, +).

The integers become powers of 2, whose products add exponents, and the largest term of a sum of products is the extremum (see
``small_integers.cuh``; Yuval 1976). Floats with integral values count as integers. A product is exact if the numbers of A, and those of B,
span few integers: both spans together at most 30, or 61 with chains of half the speed. Wider spans are cut into parts, with a product for
each pair. Statistics of the operands tell the spans; floats are tested while their powers are written.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np

from semiring.algebra.expression import is_operation
from semiring.arrays.devices import gpu_name
from semiring.arrays.memory import fits
from semiring.kernels import machine
from semiring.kernels.cuda.arguments import StridedBatch, parameters
from semiring.kernels.cuda.blocks import BATCH, access
from semiring.kernels.cuda.compiler import kernel_for, rehearsing
from semiring.kernels.cuda.elements import Flags
from semiring.kernels.cuda.representation import Representation
from semiring.kernels.cuda.tile import COLUMNS, GROUPS, ROWS, STAGES, THREADS, round_up
from semiring.kernels.engine import Block
from semiring.kernels.hardware import Device, device
from semiring.kernels.limits import RawStatistics, interpreted

__all__ = [
    "CUT", "REACH", "Scale", "ScaledPlan", "Scales", "SmallIntegerPlan", "fits_tensor_cores", "fitting", "powers_source", "scales_for",
    "side_of", "small_integer_plan",
]  # fmt: skip

REACH = {8: 30, 4: 61}
"""The largest exact sum of exponents' steps, for each G: powers are 2^(−G w), and G = 8 is faster."""

_SUM = 375  # of the largest biased exponents of both operands: a product has 248 at most

CUT = {g: (_SUM - 2) // (2 * g) for g in REACH}
"""The largest span of both operands whose powers are all normal numbers, for each G; sums beyond `REACH` are lost."""

_SHARED_BYTES = STAGES * (ROWS + COLUMNS) * 128
_USED = {8: 64, 4: 56}  # numbers of a row in a buffer of 128 bytes
_FARTHEST = 1 << 29  # the largest magnitude of an integer that counts as small: kernels add two in 32 bits
_PARTS: list[tuple[int, int]] = sorted(((p, q) for p in range(1, 5) for q in range(1, 5)), key=math.prod)  # of both operands' numbers


class Scale(NamedTuple):
    """The numbers of an operand that have powers: from `origin` to `most` beyond it; `top` is the biased exponent of the origin."""

    origin: int
    most: int
    top: int


class Scales(NamedTuple):
    """The scales of both operands, one for each part of the numbers, and G; `certain` if every finite number is known to be an integer."""

    g: int
    left: tuple[Scale, ...]
    right: tuple[Scale, ...]
    certain: bool


Span = tuple[int, int]
"""The origin of an operand's numbers, and the largest distance from it, in the direction in which sums get worse."""


def scales_for(g: int, left: Span, right: Span, *, side: int = 1, parts: tuple[int, int] = (1, 1), certain: bool = True) -> Scales:
    """Return the scales for operands with these spans, cut into so many parts each; all powers are normal numbers of bfloat16."""
    (a, x), (b, y) = left, right
    steps = tuple(-(-(span + 1) // count) for span, count in zip((x, y), parts, strict=True))
    widest = [step - 1 for step in steps]
    top = min(254, max(_SUM - 254, 1 + g * widest[0] + (_SUM - 2 - g * sum(widest)) // 2))
    assert min(top - g * widest[0], _SUM - top - g * widest[1]) >= 1, "a power would be subnormal"
    lefts, rights = (
        tuple([Scale(origin + side * start, min(step - 1, span - start), exponent) for start in range(0, span + 1, step)])
        for origin, span, step, exponent in ((a, x, steps[0], top), (b, y, steps[1], _SUM - top))
    )
    return Scales(g, lefts, rights, certain)


def fitting(found: Sequence[RawStatistics], dtype: np.dtype[Any], side: int, infinities: tuple[int, ...]) -> Scales | None:
    """Return the scales for operands with these statistics; None if other products are faster, or if an end of a span is no small integer.

    `infinities` are the integers that stand for ±∞.
    """
    ends = [interpreted(raw, dtype, infinities).finite or (0, 0) for raw in found[:2]]
    farthest = min(_FARTHEST, 2 ** (np.finfo(dtype).nmant + 1)) if dtype.kind == "f" else _FARTHEST  # every integer between is a number
    if any(end % 1 or abs(end) > farthest for both in ends for end in both):
        return None
    left, right = ((int(least if side > 0 else greatest), int(greatest) - int(least)) for least, greatest in ends)

    def seconds(way: tuple[int, tuple[int, int]]) -> float:
        g, (p, q) = way
        fits = -(-(left[1] + 1) // p) + -(-(right[1] + 1) // q) - 2 <= REACH[g]
        return p * q / machine.POWERS[g] if fits else math.inf

    best = min(itertools.product(REACH, _PARTS), key=seconds)
    if seconds(best) > machine.POWERS_SHARE * dtype.itemsize / machine.GPU_BYTES:
        return None
    return scales_for(best[0], left, right, side=side, parts=best[1], certain=dtype.kind != "f")


def side_of(r: Representation, device: Device) -> int:
    """Return 1 for minima of sums of integers or floats, −1 for maxima, and 0 for other operations, and for other GPUs."""
    if (
        device.arch != 90
        or len(r.dtypes) != 1
        or r.dtypes[0].kind not in "iuf"
        or r.dtypes[0].itemsize < 2
        or device.block_shared_bytes < _SHARED_BYTES
    ):
        return 0
    if not is_operation(r.mul[0], ("add",)) or not is_operation(r.add[0], ("min", "max")):
        return 0
    side = 1 if r.add[0].op == "min" else -1
    return side if r.clamped or r.zero[0] == side * math.inf else 0


def powers_source(name: str, dtype: np.dtype[Any], side: int, g: int = 8, rows: int = ROWS, vectors: bool = False) -> str:
    """Return the CUDA C++ of one kernel: "write_powers" for blocks of so many rows, or "multiply_powers"."""
    taken, matrix = parameters(StridedBatch, "x", template=dtype.name)
    bounds, zero = "256", f"{dtype} zero"
    match name:
        case "write_powers":
            numbers = "long long m, long long n, long long slices, long long origin, long long most, long long top"
            own = [taken, "uint4* powers", numbers, zero, "int* fractions"]
            given = "powers, m, n, slices, origin, most, top, zero, fractions"
            call = f"write_powers<{side}, {g}, {rows}, {str(vectors).lower()}>({matrix}, {given})"
        case _:
            sizes = "long long m, long long n, long long batch, long long slices, long long origin"
            own, bounds = ["const char* a, const char* b", taken, sizes, zero, "long long fresh"], f"{THREADS}, 1"
            call = f"multiply_powers<{side}, {g}, {GROUPS}, {STAGES}>(a, b, {matrix}, m, n, batch, slices, origin, zero, fresh)"
    kernel = f'extern "C" __global__ void __launch_bounds__({bounds}) {name}({", ".join(own)}) {{\n  {call};\n}}\n'
    return f'#include "small_integers.cuh"\n\n{kernel}'


@dataclass(frozen=True, slots=True, eq=False)
class _Layout:
    """The layout of an operand's lines as rows, with strides in elements: A, or the transpose of B."""

    shape: tuple[int, int, int]  # matrices, rows, numbers of a row
    strides: tuple[int, int, int]  # between rows, numbers and matrices
    vectors: bool

    @staticmethod
    def of(X: Block, *, transposed: bool = False) -> _Layout:
        v, size = X.values[0], X.values[0].itemsize
        batch, row, column = (s // size for s in v.strides)
        count, m, n = v.shape
        if transposed:
            return _Layout((count, n, m), (column, row, batch), False)
        return _Layout((count, m, n), (row, column, batch), access(X) == "vectors")


@dataclass(frozen=True, slots=True, eq=False)
class SmallIntegerPlan:
    """Launches of C ← A⊗B if `fresh`, else of C ← C ⊕ A⊗B, for operands of one arrangement; C may overlap A or B."""

    number: int  # of the GPU
    multiprocessors: int
    side: int
    zero: Any
    left: _Layout
    right: _Layout  # B's transpose
    result: _Layout
    fresh: bool

    def fitting(self, found: Sequence[RawStatistics]) -> ScaledPlan | None:
        """Return the launches for operands with these statistics, or None, as `fitting` does."""
        scales = fitting(found, self.dtype, self.side, () if self.dtype.kind == "f" else (int(self.zero),))
        return None if scales is None else self.scaled(scales)

    def scaled(self, scales: Scales) -> ScaledPlan:
        """Return the launches with given scales: numbers beyond count as infinite."""
        return ScaledPlan(self, scales)

    @property
    def dtype(self) -> np.dtype[Any]:
        """Return the dtype of the elements."""
        return np.dtype(type(self.zero))

    def slices(self, g: int) -> int:
        """Return the buffers of a row of powers."""
        return -(-self.left.shape[2] // _USED[g])


class ScaledPlan(NamedTuple):
    """Launches of a product with the scales of its operands: a product for each pair of parts."""

    plan: SmallIntegerPlan
    scales: Scales

    def start(self, own: Sequence[int]) -> bool | None:
        """Launch with the `addresses` of the product; without a launch, return False if a float is no integer, None if memory is short."""
        powers = self.powers(own)
        if not powers:
            return powers
        plan, g = self.plan, self.scales.g
        (count, m, n), how = plan.result.shape, (plan.dtype, plan.side, g)
        kernel = kernel_for("multiply_powers", plan.number, powers_source, "multiply_powers", *how, shared_bytes=_SHARED_BYTES)
        grid = min(-(-m // ROWS) * -(-n // COLUMNS) * count, plan.multiprocessors), 1, 1
        pairs = itertools.product(zip(self.scales.left, powers[0], strict=True), zip(self.scales.right, powers[1], strict=True))
        for number, ((left, a), (right, b)) in enumerate(pairs):
            sizes = m, n, count, plan.slices(g), left.origin + right.origin
            given = a.data.ptr, b.data.ptr, own[2], *plan.result.strides, *sizes, plan.zero, int(plan.fresh and number == 0)
            kernel(grid, (THREADS, 1, 1), given, _SHARED_BYTES)
        return True

    def powers(self, own: Sequence[int]) -> tuple[list[Any], list[Any]] | Literal[False] | None:
        """Return the powers of both operands' parts; False if a float is no integer, which takes a wait, and None if memory is short."""
        import cupy

        plan, (g, *scales, certain) = self.plan, self.scales
        slices, places = plan.slices(g), tuple(zip((plan.left, plan.right), (ROWS, COLUMNS), scales, strict=True))
        sizes = [x.shape[0] * round_up(x.shape[1], rows) * slices * 128 for x, rows, _ in places]
        if not fits(sum(size * len(parts) for size, parts in zip(sizes, scales, strict=True)), gpu_name(plan.number)):
            return None
        flags = None if certain or rehearsing() else Flags.taken()
        flag = flags.addresses[0] if flags else 0
        try:
            left, right = (
                [self._written(address, x, rows, scale, size, flag) for scale in parts]
                for address, (x, rows, parts), size in zip(own, places, sizes, strict=False)
            )
        except cupy.cuda.memory.OutOfMemoryError:  # free memory may lie in pieces
            return None
        return False if flags and flags.read()[0] else (left, right)

    def _written(self, address: int, x: _Layout, rows: int, scale: Scale, size: int, flag: int) -> Any:
        import cupy

        plan, g, (count, m, n) = self.plan, self.scales.g, x.shape
        how, slices, powers = (plan.dtype, plan.side, g, rows, x.vectors and g == 8), plan.slices(g), cupy.empty(size, np.uint8)
        kernel = kernel_for("write_powers", plan.number, powers_source, "write_powers", *how)
        given = address, *x.strides, powers.data.ptr, m, n, slices, *scale, plan.zero, flag
        kernel((round_up(m, rows) // 32 * slices, 1, count), (256, 1, 1), given)
        return powers


def fits_tensor_cores(r: Representation, limits: Device, shape: tuple[int, int, int, int]) -> bool:
    """Return True if tensor cores multiply small integers faster; `shape` is (m, n, k, matrices)."""
    *sides, count = shape
    large = math.prod(shape) >= machine.POWERS_STEPS and min(sides) >= machine.POWERS_SIDE and count <= BATCH
    return large and side_of(r, limits) != 0


def small_integer_plan(r: Representation, number: int, zero: Any, A: Block, B: Block, C: Block, *, fresh: bool) -> SmallIntegerPlan | None:
    """Plan a product of matrices with this zero; None if its operations or its size are not for tensor cores."""
    limits = device(number)
    if C.via is not None or not fits_tensor_cores(r, limits, (*C.shape, A.shape[1], len(C.values[0]))):
        return None
    layouts = _Layout.of(A), _Layout.of(B, transposed=True), _Layout.of(C)
    return SmallIntegerPlan(number, limits.multiprocessors, side_of(r, limits), r.dtypes[0].type(zero), *layouts, fresh)
