"""LLVM IR as text: names, blocks, loops, and typed vector values."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = ["ENTRY", "I32", "I64", "Carried", "Emitter", "Matrix", "Scalar", "scalar_type"]

Carried = tuple[str, str]
"""The type and the first value of a number that a loop carries."""


@dataclass(frozen=True, order=True)
class Scalar:
    """An element type: `kind` is f, i or u; `bytes` is the size."""

    kind: str
    bytes: int

    @property
    def ir(self) -> str:
        """LLVM's name of the scalar."""
        return {4: "float", 8: "double"}[self.bytes] if self.kind == "f" else f"i{8 * self.bytes}"

    @property
    def dtype(self) -> np.dtype[Any]:
        """NumPy's dtype of the scalar."""
        return np.dtype(f"{self.kind}{self.bytes}")

    def overload(self, width: int) -> str:
        """Return the suffix of an intrinsic's name for a vector of this type."""
        name = ("f" if self.kind == "f" else "i") + str(8 * self.bytes)
        return name if width == 1 else f"v{width}{name}"

    def vector(self, width: int) -> str:
        """Return LLVM's name of a vector of `width` lanes, or of the scalar for 1 lane."""
        return self.ir if width == 1 else f"<{width} x {self.ir}>"

    def literal(self, value: Any) -> str:
        """Return a constant in LLVM's syntax: floats by their bits, without rounding."""
        if self.kind == "f":
            rounded = float(np.float32(value)) if self.bytes == 4 else float(value)
            return f"0x{struct.unpack('<Q', struct.pack('<d', rounded))[0]:016X}"
        return str(int(value))

    def constant(self, value: Any, width: int) -> str:
        """Return a constant vector."""
        return self.literal(value) if width == 1 else f"splat ({self.ir} {self.literal(value)})"


I32 = Scalar("i", 4)
I64 = Scalar("i", 8)


def scalar_type(dtype: np.dtype[Any]) -> Scalar:
    """Return the element type of a NumPy dtype; a bool is a byte."""
    return Scalar("u", 1) if dtype.kind == "b" else Scalar(dtype.kind, dtype.itemsize)


Matrix = tuple[Scalar, str, str | int]
"""The type of the elements, the address of the first one, and the elements from row to row."""

ENTRY = "ptr %args, ptr %stop"
"""Parameters of a function called from Python: arguments, and a word that becomes 1 to stop the function."""


class Emitter:
    """The body of one function.

    A function with the parameter ``%stop`` returns soon after that word becomes 1: every loop with inner loops or calls polls the word.
    """

    def __init__(self, name: str, parameters: str, *, attributes: str = "#0") -> None:
        self._hears, self._loops = "ptr %stop" in parameters, 0
        self._head = f"define void @{name}({parameters}) {attributes} {{\nentry:\n"
        self._lines: list[str] = []
        self._count = 0
        self._block = "entry"
        self._fork = (0, "", "")
        self._open: list[tuple[str, str]] = []  # the labels of the next turn and of the end, for each loop around
        self.declarations: set[str] = set()

    def text(self) -> str:
        """Return the whole function."""
        stopped = "\nstopped:\n  ret void" if self._hears and self._loops else ""
        return self._head + "\n".join(self._lines) + stopped + "\n}\n"

    def done(self) -> Emitter:
        """Return from the function, and end it."""
        self.line("ret void")
        return self

    def fresh(self, prefix: str = "v") -> str:
        """Return an unused name."""
        self._count += 1
        return f"{prefix}{self._count}"

    def line(self, text: str) -> None:
        """Emit an instruction without a result."""
        self._lines.append("  " + text)
        self._loops += text.startswith("call void @") and not text.startswith("call void @llvm.")

    def let(self, text: str) -> str:
        """Emit an instruction and return the name of its result."""
        name = "%" + self.fresh()
        self.line(f"{name} = {text}")
        return name

    def start(self, label: str) -> None:
        """Begin a basic block."""
        self._lines.append(f"{label}:")
        self._block = label

    # Integer arithmetic on i64, with constants folded.

    def add(self, x: str | int, y: str | int) -> str | int:
        """Emit x + y."""
        if isinstance(x, int) and isinstance(y, int):
            return x + y
        if y == 0:
            return x
        return y if x == 0 else self.let(f"add nsw i64 {x}, {y}")

    def sub(self, x: str | int, y: str | int) -> str | int:
        """Emit x − y."""
        return x if y == 0 else self.let(f"sub nsw i64 {x}, {y}")

    def mul(self, x: str | int, y: str | int) -> str | int:
        """Emit x · y."""
        if isinstance(x, int) and isinstance(y, int):
            return x * y
        if x == 0 or y == 0:
            return 0
        if y == 1:
            return x
        return y if x == 1 else self.let(f"mul nsw i64 {x}, {y}")

    def smin(self, x: str | int, y: str | int) -> str:
        """Emit min(x, y)."""
        return self.call("smin.i64", "i64", ("i64", x), ("i64", y))

    def bit_of(self, number: str) -> tuple[str, str]:
        """Return the number of the 64-bit word that holds a bit, and the word with only this bit."""
        return self.let(f"lshr i64 {number}, 6"), self.let(f"shl i64 1, {self.let(f'and i64 {number}, 63')}")

    def round_up(self, x: str | int, step: int) -> str | int:
        """Round x up to a multiple of step."""
        return self.round_down(self.add(x, step - 1), step)

    def round_down(self, x: str | int, step: int) -> str | int:
        """Round x ≥ 0 down to a multiple of step."""
        return self.mul(self.let(f"sdiv i64 {x}, {step}"), step)

    def select_i64(self, condition: str, yes: str | int, no: str | int, *, unpredictable: bool = False) -> str:
        """Emit ``yes if condition else no``; `unpredictable` asks LLVM for a select instead of a branch."""
        return self.let(f"select i1 {condition}, i64 {yes}, i64 {no}{', !unpredictable !{}' if unpredictable else ''}")

    # Memory.

    def at(self, ir: str, pointer: str, index: str | int) -> str:
        """Return the address of element `index`."""
        return pointer if index == 0 else self.let(f"getelementptr inbounds {ir}, ptr {pointer}, i64 {index}")

    def cell(self, matrix: Matrix, i: str | int, j: str | int) -> str:
        """Return the address of element (i, j) of a matrix."""
        scalar, start, down = matrix
        return self.at(scalar.ir, start, self.add(self.mul(i, down), j))

    def places(self, scalars: Sequence[Scalar], pointers: Sequence[str], index: str | int) -> list[str]:
        """Return the address of element `index` of each of several arrays."""
        return [self.at(s.ir, p, index) for s, p in zip(scalars, pointers, strict=True)]

    def side_by_side(self, start: str, scalars: Sequence[Scalar], count: str | int) -> list[str]:
        """Return the starts of arrays of `count` elements, one per type, laid out from `start` on cache lines."""
        starts = [start]
        for scalar in scalars[:-1]:
            starts.append(self.at("i8", starts[-1], self.round_up(self.mul(count, scalar.bytes), 64)))
        return starts

    def load(self, ir: str, pointer: str, align: int) -> str:
        """Read a value."""
        return self.let(f"load {ir}, ptr {pointer}, align {align}")

    def load_to_choose(self, ir: str, pointer: str, align: int) -> str:
        """Read a value that another may replace in the same place.

        LLVM would turn the choice and the store into a masked store, which takes several times as long with AVX2 on AMD. It does not do so
        with a frozen value, which costs no instruction.
        """
        return self.let(f"freeze {ir} {self.load(ir, pointer, align)}")

    def store(self, ir: str, value: str, pointer: str, align: int) -> None:
        """Write a value."""
        self.line(f"store {ir} {value}, ptr {pointer}, align {align}")

    def get(self, scalar: Scalar, pointer: str, index: str | int, width: int = 1) -> str:
        """Read element `index` of an array, or `width` elements from there on."""
        return self.load(scalar.vector(width), self.at(scalar.ir, pointer, index), scalar.bytes)

    def put(self, scalar: Scalar, value: str, pointer: str, index: str | int, width: int = 1) -> None:
        """Write element `index` of an array, or `width` elements from there on."""
        self.store(scalar.vector(width), value, self.at(scalar.ir, pointer, index), scalar.bytes)

    def fill(self, scalar: Scalar, value: Any, pointer: str, start: str | int, stop: str | int, width: int = 1) -> None:
        """Write a constant to the elements from `start` up to `stop` of an array, `width` at a time."""
        constant = scalar.constant(value, width)
        with self.each(start, stop, width) as i:
            self.put(scalar, constant, pointer, i, width)

    def first_lanes(self, count: str | int, width: int) -> str:
        """Return a mask of the first `count` lanes."""
        lanes = ", ".join(f"i64 {lane}" for lane in range(width))
        return self.let(f"icmp slt {I64.vector(width)} <{lanes}>, {self.splat(str(count), I64, width)}")

    def masked_load(self, scalar: Scalar, width: int, pointer: str, mask: str) -> str:
        """Read the lanes of a mask; the others are 0."""
        ir = scalar.vector(width)
        arguments = ("ptr", pointer), ("i32", scalar.bytes), (f"<{width} x i1>", mask), (ir, "zeroinitializer")
        return self.call(f"masked.load.{scalar.overload(width)}.p0", ir, *arguments)

    def masked_store(self, scalar: Scalar, width: int, value: str, pointer: str, mask: str) -> None:
        """Write the lanes of a mask."""
        # LLVM 22 made the alignment an attribute, but still reads the argument that older versions need.
        arguments = (scalar.vector(width), value), ("ptr", pointer), ("i32", scalar.bytes), (f"<{width} x i1>", mask)
        self.call(f"masked.store.{scalar.overload(width)}.p0", "void", *arguments)

    def gather(self, scalar: Scalar, width: int, pointer: str, index: Scalar, places: str, mask: str) -> str:
        """Gather elements at a vector of places, for the lanes of a mask; the other lanes are 0."""
        ir = scalar.vector(width)
        pointers = self.let(f"getelementptr {scalar.ir}, ptr {pointer}, {index.vector(width)} {places}")
        arguments = (f"<{width} x ptr>", pointers), ("i32", scalar.bytes), (f"<{width} x i1>", mask), (ir, "zeroinitializer")
        return self.call(f"masked.gather.{scalar.overload(width)}.v{width}p0", ir, *arguments)

    def half(self, vector: str, scalar: Scalar, width: int, upper: int) -> str:
        """Return the lower or the upper half of a vector."""
        half, ir = width // 2, scalar.vector(width)
        if half == 1:
            return self.let(f"extractelement {ir} {vector}, i64 {upper}")
        lanes = ", ".join(f"i32 {lane + upper * half}" for lane in range(half))
        return self.let(f"shufflevector {ir} {vector}, {ir} poison, <{half} x i32> <{lanes}>")

    def reserve(self, ir: str) -> str:
        """Return the address of a mutable variable, for the whole function; it becomes a register."""
        place = "%" + self.fresh("slot")
        self._head += f"  {place} = alloca {ir}, align 8\n"
        return place

    def prefetch(self, pointer: str, *, write: bool) -> None:
        """Prefetch a cache line."""
        self.call("prefetch.p0", "void", ("ptr", pointer), ("i32", int(write)), ("i32", 3), ("i32", 1))

    # Vectors.

    def splat(self, value: str, scalar: Scalar, width: int) -> str:
        """Return a vector with `value` in all lanes."""
        if width == 1:
            return value
        v = scalar.vector(width)
        one = self.let(f"insertelement {v} poison, {scalar.ir} {value}, i64 0")
        return self.let(f"shufflevector {v} {one}, {v} poison, <{width} x i32> zeroinitializer")

    def splat_word(self, word: str, scalar: Scalar, width: int) -> str:
        """Return a vector with an integer, given as i64, in all lanes."""
        return self.splat(word if scalar.bytes == 8 else self.let(f"trunc i64 {word} to {scalar.ir}"), scalar, width)

    def transposed(self, rows: list[str], scalar: Scalar) -> list[str]:
        """Transpose a square of vectors, whose side is a power of two, by log₂(side) perfect shuffles of its rows."""
        side = len(rows)
        ir, half = scalar.vector(side), side // 2
        halves = [", ".join(f"i32 {start + i + side * other}" for i in range(half) for other in (0, 1)) for start in (0, half)]
        for _ in range(side.bit_length() - 1):
            rows = [
                self.let(f"shufflevector {ir} {rows[i]}, {ir} {rows[i + half]}, <{side} x i32> <{lanes}>")
                for i in range(half)
                for lanes in halves
            ]
        return rows

    def call(self, function: str, result: str, *args: tuple[str, str | int]) -> str:
        """Call ``llvm.function`` with (type, value) arguments."""
        self.declarations.add(f"declare {result} @llvm.{function}({', '.join(ir for ir, _ in args)})")
        text = f"call {result} @llvm.{function}({', '.join(f'{ir} {value}' for ir, value in args)})"
        if result == "void":
            self.line(text)
            return ""
        return self.let(text)

    # Control flow.

    def loop(
        self,
        start: str | int,
        stop: str | int,
        step: str | int,
        body: Callable[[str, list[str]], Sequence[str]],
        carried: Sequence[Carried],
    ) -> list[str]:
        """Emit ``for i in range(start, stop, step)`` with loop-carried values, ``values = body(i, values)``; return their final names."""
        carried = [("i64", str(start)), *carried]
        with self.turns(carried, lambda values: self.let(f"icmp slt i64 {values[0]}, {stop}")) as ((i, *values), new):
            found = body(i, values)
            new += [self.let(f"add nsw i64 {i}, {step}"), *found]
        return values

    @contextmanager
    def each(self, start: str | int, stop: str | int, step: str | int = 1) -> Iterator[str]:
        """Emit ``for i in range(start, stop, step)`` around the body."""
        with self.turns([("i64", str(start))], lambda values: self.let(f"icmp slt i64 {values[0]}, {stop}")) as ((i,), new):
            yield i
            new.append(self.let(f"add nsw i64 {i}, {step}"))

    def by_vectors(self, count: str | int, width: int) -> Iterator[tuple[str, int]]:
        """Emit the body of a Python loop for (first element, number of elements): `width` elements at a time, then one by one."""
        end = self.round_down(count, width)
        with self.each(0, end, width) as i:
            yield i, width
        if width > 1:
            with self.each(end, count) as i:
                yield i, 1

    @contextmanager
    def each_bit(self, word: str) -> Iterator[str]:
        """Emit the body for the number of each set bit of a word, lowest first."""
        with self.turns([("i64", word)], lambda values: self.let(f"icmp ne i64 {values[0]}, 0")) as ((rest,), new):
            yield self.call("cttz.i64", "i64", ("i64", rest), ("i1", "true"))
            new.append(self.let(f"and i64 {rest}, {self.let(f'add i64 {rest}, -1')}"))

    @contextmanager
    def turns(self, carried: Sequence[Carried], more: Callable[[list[str]], str]) -> Iterator[tuple[list[str], list[str]]]:
        """Emit ``while more(values)`` around the body, which appends new values to a list; values are final after the loop."""
        before, head, inner, after = self._block, self.fresh("head"), self.fresh("body"), self.fresh("after")
        self.line(f"br label %{head}")
        self.start(head)
        here = len(self._lines)
        self._lines.append("")
        values = ["%" + self.fresh("c") for _ in carried]
        condition, fork, loops = more(values), len(self._lines), self._loops
        self._lines.append("")
        self.start(inner)
        new: list[str] = []
        turn = self.fresh("turn")
        self._open.append((turn, after))
        yield values, new
        self._open.pop()
        if not carried:
            self.go_on(turn)  # one way back to the head: of several, LLVM makes nested loops
        latch = self._block
        self._lines[fork] = f"  br i1 {condition}, label %{inner}, label %{after}"
        if self._hears and self._loops > loops:
            look, word, stop = (self.fresh(prefix) for prefix in ("look", "v", "v"))
            self._lines[fork] = "\n".join(
                [
                    f"  br i1 {condition}, label %{look}, label %{after}",
                    f"{look}:",
                    f"  %{word} = load volatile i64, ptr %stop, align 8",
                    f"  %{stop} = icmp ne i64 %{word}, 0",
                    f"  br i1 %{stop}, label %stopped, label %{inner}",
                ]
            )
        self._loops += 1
        self.line(f"br label %{head}")
        self._lines[here] = "\n".join(
            f"  {value} = phi {ir} [{first}, %{before}], [{last}, %{latch}]"
            for value, (ir, first), last in zip(values, carried, new, strict=True)
        )
        self.start(after)

    @contextmanager
    def when(self, condition: str) -> Iterator[None]:
        """Emit ``if condition`` around the body."""
        then, other, after = self.fresh("then"), self.fresh("else"), self.fresh("after")
        fork = len(self._lines)
        self.line(f"br i1 {condition}, label %{then}, label %{after}")
        self.start(then)
        yield
        self.line(f"br label %{after}")
        self.start(after)
        self._fork = fork, other, after

    @contextmanager
    def unless(self, condition: str) -> Iterator[None]:
        """Emit ``if not condition`` around the body."""
        with self.when(condition):
            pass
        with self.otherwise():
            yield

    @contextmanager
    def otherwise(self) -> Iterator[None]:
        """Emit the ``else`` of the branch that has just ended."""
        fork, other, after = self._fork
        label = self._lines.pop()
        assert label == f"{after}:", f"{label!r} stands between a branch and its else"
        self._lines[fork] = self._lines[fork].replace(f"%{after}", f"%{other}")
        self.start(other)
        yield
        self.line(f"br label %{after}")
        self.start(after)

    def next_turn(self) -> None:
        """Go on with the next turn of the innermost loop, which carries no values."""
        self.jump(self._open[-1][0])

    def leave_loop(self) -> None:
        """Leave the innermost loop."""
        self.jump(self._open[-1][1])

    def jump(self, label: str) -> None:
        """Go to a label, or without one return; what follows is not reached."""
        self.line(f"br label %{label}" if label else "ret void")
        self.start(self.fresh("dead"))

    def go_on(self, label: str) -> None:
        """Begin a block, to which others have jumped."""
        self.line(f"br label %{label}")
        self.start(label)
