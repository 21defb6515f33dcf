"""Inner elements, the form of elements within kernels; and the register tile and cache blocks of a product, which depend on that form.

Inner elements may differ from the caller's:

- *order keys*: a semiring that only compares floats runs on integers of the same order, on processors that compare integers faster
  (`Target.order_keys`). The key ``x ^ ((x >> 31) & 0x7fffffff)`` is its own inverse, except that −0.0 comes back as 0.0.
- *clamped*: tropical integers, with the dtype's largest (smallest) value as ∞, are clamped to half the range. Then ∞ + ∞ does not wrap,
  and a step is an addition and a minimum. On the way out, everything beyond a threshold between the finite values and the infinite
  sums is ∞ again.
- *exponential*: where ⊕ is log(e^{sa} + e^{sb}) / s and ⊗ is a sum, elements become exponentials, to multiply and add; see `exponential`.
- *plain*: unchanged. Integer sums test for an infinite operand.
"""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from semiring.algebra.definition import Semiring
from semiring.algebra.exponential import log_add
from semiring.algebra.expression import COMPARISONS, Expr, is_operation, node, nodes, var
from semiring.common.forks import cached_property
from semiring.common.html import Shown
from semiring.kernels.cpu.emitter import Emitter, Scalar, scalar_type
from semiring.kernels.hardware import Target
from semiring.kernels.limits import absorbing, inner_infinity, threshold, tropical
from semiring.kernels.machine import worth
from semiring.kernels.operations import on_bytes

if TYPE_CHECKING:
    from semiring.kernels.cpu.instructions import Instructions  # unneeded by kernels from the cache

__all__ = ["STRIP", "Representation", "Tile", "choose_tile", "key_of", "order_keys", "represent", "signed"]

_SUM, _PRODUCT = node("add", var(0), var(1)), node("mul", var(0), var(1))


@dataclass(frozen=True)
class Representation:
    """The operations in the caller's types (outer) and in the types of packed operands and accumulators (inner)."""

    add: tuple[Expr, ...]
    mul: tuple[Expr, ...]
    star: tuple[Expr, ...] | None
    star_undefined: Expr
    outer: tuple[Scalar, ...]
    inner: tuple[Scalar, ...]
    zero: tuple[Any, ...]  # 0 and 1 as outer numbers
    one: tuple[Any, ...]
    inner_zero: tuple[Any, ...]
    infinities: tuple[int, ...] = ()  # outer integers that absorb sums
    kind: str = "plain"  # or "order_key", "clamped", "exponential"
    extremum: str | None = None  # "min" or "max", if ⊕ is nothing else
    scale: Fraction = Fraction(1)  # s of the exponentials

    @cached_property
    def step_nanoseconds(self) -> float:
        """A rough run time of one step of a product, from its operations."""
        return sum(map(worth, nodes(*self.inner_add, *self.inner_mul))) / 4

    @property
    def by_steps(self) -> Representation:
        """The same with logarithms instead of exponentials, for kernels that add one step after the other."""
        return replace(self, kind="plain", inner_zero=self.zero) if self.kind == "exponential" else self

    @property
    def unpacked(self) -> Representation:
        """The same for kernels that read operands in place repeatedly: only tropical integers are encoded."""
        return self if self.kind == "clamped" else replace(self, kind="plain", inner=self.outer, inner_zero=self.zero)

    @property
    def inner_add(self) -> tuple[Expr, ...]:
        """The operation ⊕ of inner elements."""
        return (_SUM,) if self.kind == "exponential" else self.add

    @property
    def inner_mul(self) -> tuple[Expr, ...]:
        """The operation ⊗ of inner elements."""
        return (_PRODUCT,) if self.kind == "exponential" else self.mul

    @property
    def inner_infinities(self) -> tuple[int, ...]:
        """Inner integers that absorb sums."""
        return () if self.kind == "clamped" else self.infinities

    def threshold(self, *, signed: bool) -> int:
        """Return the threshold of `decode` for tropical integers, or 0 for other elements."""
        return threshold(int(self.inner_zero[0]), signed=signed) if self.kind == "clamped" else 0

    def encode(self, low: Instructions, component: int, name: str) -> str:
        """Convert a vector of outer elements to inner elements."""
        inner, outer, width = self.inner[component], self.outer[component], low.width
        if self.kind == "order_key":
            # x + 0.0 turns −0.0 into 0.0: equal numbers need equal keys.
            positive = low.em.let(f"fadd {outer.vector(width)} {name}, {outer.constant(0.0, width)}")
            bits = low.em.let(f"bitcast {outer.vector(width)} {positive} to {inner.vector(width)}")
            return order_keys(low.em, inner, width, bits)
        if self.kind == "clamped":
            half, op = inner.constant(self.inner_zero[component], width), "gt" if self.extremum == "min" else "lt"
            beyond = low.compare(op, inner, name, half)
            return low.select(beyond, inner, half, name)
        return name

    def decode(self, low: Instructions, component: int, name: str, threshold: str) -> str:
        """Convert a vector of inner elements to outer elements; `threshold` is a vector for tropical integers."""
        inner, outer, width = self.inner[component], self.outer[component], low.width
        if self.kind == "order_key":
            bits = order_keys(low.em, inner, width, name)
            return low.em.let(f"bitcast {inner.vector(width)} {bits} to {outer.vector(width)}")
        if self.kind == "clamped":
            infinite = outer.constant(self.zero[component], width)
            beyond = low.compare("ge" if self.extremum == "min" else "le", inner, name, threshold)
            return low.select(beyond, outer, infinite, name)
        return name


def order_keys(em: Emitter, inner: Scalar, width: int, bits: str) -> str:
    """Convert bits of floats to order keys, or back."""
    ir = inner.vector(width)
    sign = em.let(f"ashr {ir} {bits}, {inner.constant(8 * inner.bytes - 1, width)}")
    flip = em.let(f"and {ir} {sign}, {inner.constant((1 << (8 * inner.bytes - 1)) - 1, width)}")
    return em.let(f"xor {ir} {bits}, {flip}")


def key_of(value: float, size: int) -> int:
    """Return the order key of a float of `size` bytes."""
    pair = ("<f", "<i") if size == 4 else ("<d", "<q")
    bits = int(struct.unpack(pair[1], struct.pack(pair[0], value))[0])
    return bits ^ ((1 << (8 * size - 1)) - 1) if bits < 0 else bits


def signed(value: int, bits: int) -> int:
    """Return `value` modulo 2**bits as a signed integer."""
    return (value + (1 << (bits - 1))) % (1 << bits) - (1 << (bits - 1))


def represent(semiring: Semiring, dtypes: tuple[np.dtype[Any], ...], *, order_keys: int = 0) -> Representation:
    """Return the representation of `semiring` in `dtypes`; floats of up to `order_keys` bytes may be compared as integers."""
    program = semiring.program
    zero, one = semiring.identities(dtypes)
    outer = tuple(map(scalar_type, dtypes))
    add, mul, star, undefined = program.add, program.mul, program.star, program.star_undefined
    if dtypes == (np.dtype(bool),):
        add, mul = (on_bytes(program.add[0]),), (on_bytes(program.mul[0]),)
        zero, one = tuple(map(int, zero)), tuple(map(int, one))
    extremum = add[0].op if len(add) == 1 and is_operation(add[0], ("min", "max")) else None
    infinities = absorbing(semiring, dtypes)
    plain = Representation(add, mul, star, undefined, outer, outer, zero, one, zero, infinities, "plain", extremum)
    if semiring.components > 1:
        return plain
    scale = program.exponential
    if scale is not None and zero == ((-math.inf if scale > 0 else math.inf),):
        return replace(plain, add=(log_add(scale),), inner_zero=(0.0,), infinities=(), kind="exponential", extremum=None, scale=scale)
    (scalar,), operations = outer, {e.op for e in nodes(*add, *mul)}
    if scalar.kind == "f" and scalar.bytes <= order_keys and operations <= {"var", "min", "max"}:
        inner, key = Scalar("i", scalar.bytes), key_of(zero[0], scalar.bytes)
        return replace(plain, inner=(inner,), inner_zero=(key,), infinities=(), kind="order_key")
    if tropical(semiring, dtypes):
        return replace(plain, inner_zero=(inner_infinity(zero[0]),), kind="clamped")
    return plain


_SERIES = {"exp", "expm1", "log", "log1p"}

STRIP = 2048
"""Sums of a product with a vector that accumulate in the L1 cache."""


@dataclass(frozen=True)
class Tile(Shown):
    """Sizes of one product kernel."""

    width: int  # lanes of a vector
    rows: int  # the micro-kernel keeps rows × vectors vectors of C in registers
    vectors: int
    depth: int  # steps of k between two merges with C (KC)
    block: int  # rows of A packed at a time (MC), a multiple of rows
    slab: int  # steps of k between two comparisons with C in a witness product; divides depth

    @property
    def columns(self) -> int:
        """Columns of C in the micro-kernel (NR)."""
        return self.width * self.vectors

    @property
    def turn(self) -> int:
        """Period, in steps of k, after which a row of a packed panel starts on a whole vector again."""
        return self.width // math.gcd(self.rows, self.width)

    def packed_steps(self, k: int, rep: Representation) -> int:
        """Return the length of the packed panels of k steps, in steps, by slabs of `depth`."""
        if rep.kind != "exponential":
            return k
        slabs, rest = divmod(k, self.depth)
        return slabs * self.panel_steps(self.depth) + (self.panel_steps(rest) if rest else 0)

    def panel_steps(self, k: int) -> int:
        """Return the length of one panel of exponentials, in steps: exponentials, raw elements, and one step of exponents."""
        return 2 * (-(-k // self.turn) * self.turn) + 1

    def wide_bytes(self, k: int, rep: Representation) -> int:
        """Return the bytes of a panel of A and of B as float64 exponentials of float32, and one word; 0 for other elements."""
        if rep.kind != "exponential" or rep.outer[0].bytes == 8:
            return 0
        return 64 + 8 * (self.rows + self.columns) * (-(-k // self.turn) * self.turn + 1)

    def facts(self) -> tuple[str, list[tuple[str, str]]]:
        """Return the rows shown in Jupyter."""
        return f"{self.rows} × {self.columns} elements of C in registers", [
            ("registers", f"{self.rows} × {self.vectors} vectors of {self.width} elements"),
            ("between two merges with C", f"{self.depth:,} steps"),
            ("rows of A packed at a time", f"{self.block:,}"),
            ("between two looks for a winner", f"{self.slab:,} steps, with a witness"),
        ]


def choose_tile(rep: Representation, target: Target, *, witness: bool = False) -> Tile:
    """Choose the largest register tile with room for one step's operands, and cache blocks in proportion.

    A witness product merges two matrices with C's, and so merges less often.
    """
    scalars = rep.inner
    components, size = len(scalars), max(s.bytes for s in (*scalars, *rep.outer))
    width = max(2, target.vector_bytes // size)
    # Registers besides C's vectors and B's row: a temporary per component, A's broadcast scalars, the 1.0 of fused sums, and constants;
    # also masks of comparisons, unless memory operands save registers.
    expressions = set(nodes(*rep.inner_add, *rep.inner_mul))
    sums = target.fma_add and any(s.kind == "f" for s in scalars) and any(e.op in ("add", "sub") for e in nodes(*rep.inner_mul))
    constants = sum(e.op == "const" for e in expressions)
    tests = 0 if target.memory_operands else sum(e.op in COMPARISONS for e in expressions)
    spare = components + (0 if target.embedded_broadcast else components) + sums + constants + tests
    shapes = [(6, 4), (8, 3), (6, 3), (4, 4), (4, 3), (5, 2), (6, 2), (4, 2), (3, 2), (2, 2), (4, 1), (2, 1), (1, 1)]
    # A series is long: a small tile keeps its constants in registers and its code short.
    most = 4 if {e.op for e in expressions} & _SERIES else target.registers
    fitting = [(m, v) for m, v in shapes if components * (m * v + v) + spare <= target.registers and m * v <= most]
    rows, vectors = max(fitting or [(1, 1)], key=lambda shape: shape[0] * shape[1])
    depth = (512 if size * components <= 8 else 256) * (2 if witness else 1)
    height = 48 if witness else 96
    return Tile(width, rows, vectors, depth, rows * max(1, height // rows), max(32, width))
