"""The register tile and the cache blocks of the CPU product, chosen from the operations and the target."""

from __future__ import annotations

import math
from dataclasses import dataclass

from semiring.algebra.expression import COMPARISONS, nodes
from semiring.common.html import Shown
from semiring.kernels.cpu.representation import Representation
from semiring.kernels.hardware import Target

__all__ = ["STRIP", "Tile", "choose_tile"]

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

    def packed_steps(self, k: int, representation: Representation) -> int:
        """Return the length of the packed panels of k steps, in steps, by slabs of `depth`."""
        if representation.kind != "exponential":
            return k
        slabs, rest = divmod(k, self.depth)
        return slabs * self.panel_steps(self.depth) + (self.panel_steps(rest) if rest else 0)

    def panel_steps(self, k: int) -> int:
        """Return the length of one panel of exponentials, in steps: exponentials, raw elements, and one step of exponents."""
        return 2 * (-(-k // self.turn) * self.turn) + 1

    def wide_bytes(self, k: int, representation: Representation) -> int:
        """Return the bytes of a panel of A and of B as float64 exponentials of float32, and one word; 0 for other elements."""
        if representation.kind != "exponential" or representation.outer[0].bytes == 8:
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


def choose_tile(representation: Representation, target: Target, *, witness: bool = False) -> Tile:
    """Choose the largest register tile with room for one step's operands, and cache blocks in proportion.

    A witness product merges two matrices with C's, and so merges less often.
    """
    scalars = representation.inner
    components, size = len(scalars), max(s.bytes for s in (*scalars, *representation.outer))
    width = max(2, target.vector_bytes // size)
    # Registers besides C's vectors and B's row: a temporary per component, A's broadcast scalars, the 1.0 of fused sums, and constants;
    # also masks of comparisons, unless memory operands save registers.
    expressions = set(nodes(*representation.inner_add, *representation.inner_mul))
    sums = target.fma_add and any(s.kind == "f" for s in scalars) and any(e.op in ("add", "sub") for e in nodes(*representation.inner_mul))
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
