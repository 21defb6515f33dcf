"""Value statistics of arrays on the host: ``statistics(args)``, generated for one dtype.

An argument array holds the number of arrays, the address of each array's `PyArrayInterface` (NumPy's array interface for C), and room for
the results: five words an array. Memory is read once, whatever its alignment.

The key of a number is a signed integer that sorts like the number. Floats are compared by their bits, so that no subnormal passes for 0.
Let t be the key of +∞ (of the largest integer); then the key of −∞ (of the lowest) is −t − 1, and finite numbers have keys in between.
Modulo the word's size:

- y = key + t is below 2t for finite numbers, and the largest word for −∞.
- z = key − t is at least −2t for finite numbers, and 0 for +∞.
- z − 1 is below −2t − 2 only for NaN, with keys beyond the keys of ±∞.

So the minima and maxima of y, z and z − 1 give the range of finite numbers and the kinds of other numbers, without a branch.
"""

from __future__ import annotations

import ctypes
import operator
from array import array
from collections.abc import Callable, Sequence
from itertools import repeat
from struct import Struct
from typing import Any

import numpy as np

from semiring.arrays.conversion import Array
from semiring.kernels.cpu.compiler import compile_library, link
from semiring.kernels.cpu.emitter import ENTRY, I64, Emitter, Scalar, scalar_type
from semiring.kernels.cpu.representation import signed
from semiring.kernels.hardware import Target, host
from semiring.kernels.limits import FINITE, HIGHEST, LOWEST, NAN, RawStatistics

__all__ = ["StatisticsGenerator", "statistics_kernel"]

_ND, _FLAGS, _SHAPE, _STRIDES, _DATA = 4, 16, 24, 32, 40
"""The offsets of a `PyArrayInterface`'s fields; the flags begin with C order and Fortran order."""

_WORDS = 5
"""The words of an array's `RawStatistics`."""


class StatisticsGenerator:
    """Generates ``statistics`` for one dtype."""

    def __init__(self, dtype: np.dtype[Any], target: Target) -> None:
        scalar = scalar_type(dtype)
        self.kind, self.word, self.width = scalar.kind, Scalar("i", scalar.bytes), target.vector_bytes // scalar.bytes
        self.vector, self.bits = self.word.vector(self.width), 8 * scalar.bytes
        nmant = np.finfo(dtype).nmant if self.kind == "f" else 0
        self.top = (1 << (self.bits - 1)) - (1 << nmant)  # t

    def _constant(self, value: int, width: int) -> str:
        return self.word.constant(signed(value, self.bits), width)

    def function(self) -> Emitter:
        """Emit ``statistics(args)`` for arrays that are contiguous or have two dimensions."""
        em = Emitter("statistics", ENTRY)
        count = em.load("i64", "%args", 8)
        own = em.let("alloca [4 x i64], align 8")
        interfaces = em.at("i64", "%args", 1)
        results = em.at("i64", interfaces, count)
        with em.each(0, count) as number:
            interface = em.load("ptr", em.at("ptr", interfaces, number), 8)
            data, shape, strides = self._layout(em, interface, own)
            self._store(em, self._reduce(em, data, shape, strides), em.at("i64", results, em.mul(number, _WORDS)))
        return em.done()

    def _layout(self, em: Emitter, interface: str, own: str) -> tuple[str, tuple[str, str], tuple[str, str]]:
        """Return the address, the shape and the byte strides of an array as a matrix; a contiguous array is one row."""

        def field(ir: str, offset: int, size: int) -> str:
            return em.load(ir, em.at("i8", interface, offset), size)

        data, shape, strides = (field("ptr", offset, 8) for offset in (_DATA, _SHAPE, _STRIDES))
        axes = em.let(f"sext i32 {field('i32', _ND, 4)} to i64")
        order = em.let(f"and i32 {field('i32', _FLAGS, 4)}, 3")
        contiguous = em.let(f"icmp ne i32 {order}, 0")

        def along(axis: str, size: list[str]) -> list[str]:
            return [str(em.mul(size[0], em.get(I64, shape, axis)))]

        (size,) = em.loop(0, axes, 1, along, [("i64", "1")])
        for place, value in enumerate(("1", size, "0", str(self.word.bytes))):
            em.put(I64, value, own, place)
        shape = em.let(f"select i1 {contiguous}, ptr {own}, ptr {shape}")
        strides = em.let(f"select i1 {contiguous}, ptr {em.at('i64', own, 2)}, ptr {strides}")
        (rows, columns), (down, across) = ([em.get(I64, p, axis) for axis in range(2)] for p in (shape, strides))
        return data, (rows, columns), (down, across)

    def _reduce(self, em: Emitter, data: str, shape: tuple[str, str], strides: tuple[str, str]) -> list[str]:
        """Return the minima and maxima, as vectors, and the numbers of zeros of a matrix with byte strides."""
        (rows, columns), (down, across) = shape, strides
        side_by_side = em.let(f"icmp eq i64 {across}, {self.word.bytes}")
        whole = em.select_i64(side_by_side, em.round_down(columns, self.width), 0)
        vector, types = self.vector, [self.vector] * 5 + ["i64"] * 2

        def row(i: str, found: list[str]) -> list[str]:
            start = em.at("i8", data, em.mul(i, down))

            def several(j: str, found: list[str]) -> list[str]:
                return self._accumulate(em, em.load(vector, em.at(self.word.ir, start, j), 1), found, "")

            def single(j: str, found: list[str]) -> list[str]:
                x = em.load(self.word.ir, em.at("i8", start, em.mul(j, across)), 1)
                return self._accumulate(em, em.splat(x, self.word, self.width), found, "1")

            found = em.loop(0, whole, self.width, several, list(zip(types, found, strict=True)))
            return em.loop(whole, columns, 1, single, list(zip(types, found, strict=True)))

        ends = [self._constant(e, self.width) for e in (-1, 0, -1, 0, -1)]
        return em.loop(0, rows, 1, row, list(zip(types, [*ends, "0", "0"], strict=True)))

    def _accumulate(self, em: Emitter, x: str, found: list[str], mask: str) -> list[str]:
        """Add the numbers of a vector; if `mask` is 1, all lanes hold the same number, counted once."""
        v, w = self.vector, self.width

        def extremum(op: str, a: str, b: str) -> str:
            return em.call(f"{op}.{self.word.overload(w)}", v, (v, a), (v, b))

        def zeros(count: str, zero: int) -> str:
            lanes = em.let(f"bitcast <{w} x i1> {em.let(f'icmp eq {v} {x}, {self._constant(zero, w)}')} to i{w}")
            if mask:
                lanes = em.let(f"and i{w} {lanes}, {mask}")
            here = em.call(f"ctpop.i{w}", f"i{w}", (f"i{w}", lanes))
            return str(em.add(count, here if w == 64 else em.let(f"zext i{w} {here} to i64")))

        key, top = self._key(em, x, w), self._constant(self.top, w)
        y, z = em.let(f"add {v} {key}, {top}"), em.let(f"sub {v} {key}, {top}")
        y_min, y_max, z_min, z_max, nan, plus, minus = found
        floats = self.kind == "f"
        return [
            extremum("umin", y_min, y),
            extremum("umax", y_max, y),
            extremum("umin", z_min, z),
            extremum("umax", z_max, z),
            extremum("umin", nan, em.let(f"sub {v} {z}, {self._constant(1, w)}")) if floats else nan,
            zeros(plus, 0),
            zeros(minus, 1 << (self.bits - 1)) if floats else minus,
        ]

    def _key(self, em: Emitter, x: str, width: int) -> str:
        """Map a number to its key, or a key to its number."""
        ir = self.word.vector(width)
        if self.kind == "f":  # `order_keys` with a shift: these loops have no register for a constant
            sign = em.let(f"ashr {ir} {x}, {self._constant(self.bits - 1, width)}")
            return em.let(f"xor {ir} {x}, {em.let(f'lshr {ir} {sign}, {self._constant(1, width)}')}")
        return x if self.kind == "i" else em.let(f"xor {ir} {x}, {self._constant(1 << (self.bits - 1), width)}")

    def _store(self, em: Emitter, found: list[str], place: str) -> None:
        """Store the raw statistics: the horizontal minima and maxima of the lanes, and their meaning."""
        ir = self.word.ir
        y_min, y_max, z_min, z_max, nan = (
            em.call(f"vector.reduce.{op}.{self.word.overload(self.width)}", ir, (self.vector, value))
            for op, value in zip(("umin", "umax", "umin", "umax", "umin"), found, strict=False)
        )
        tests = {
            FINITE: f"ult {ir} {y_min}, {self._constant(2 * self.top, 1)}",
            HIGHEST: f"eq {ir} {z_min}, 0",
            LOWEST: f"eq {ir} {y_max}, -1",
        }
        if self.kind == "f":
            tests[NAN] = f"ult {ir} {nan}, {self._constant(-2 * self.top - 2, 1)}"
        kinds = "0"
        for kind, test in tests.items():
            kinds = em.let(f"or i64 {kinds}, {em.select_i64(em.let(f'icmp {test}'), kind, 0)}")
        top = self._constant(self.top, 1)
        keys = em.let(f"sub {ir} {y_min}, {top}"), em.let(f"add {ir} {z_max}, {top}")
        numbers = [self._key(em, key, 1) for key in keys]
        if self.bits < 64:
            numbers = [em.let(f"{'sext' if self.kind == 'i' else 'zext'} {ir} {x} to i64") for x in numbers]
        for word, value in enumerate((*numbers, kinds, *found[5:])):
            em.put(I64, value, place, word)


_capsule = operator.attrgetter("__array_struct__")
_pointer: Any = ctypes.pythonapi.PyCapsule_GetPointer
_pointer.argtypes, _pointer.restype = (ctypes.py_object, ctypes.c_void_p), ctypes.c_void_p


def statistics_kernel(dtype: np.dtype[Any], isa: str | None = None) -> Callable[[Sequence[Array]], list[RawStatistics]]:
    """Return a reader of arrays of a dtype, each contiguous or of two dimensions, by one kernel call (for the instruction set `isa`)."""
    target = host(isa)
    library = compile_library(("statistics", dtype.str), target, lambda: link([StatisticsGenerator(dtype, target).function()]))
    function = library.function("statistics")
    number = {"i": "q", "f": "f4x" if dtype.itemsize == 4 else "d"}.get(dtype.kind, "Q")
    unpack, room = Struct(f"<{number}{number}qqq").unpack_from, (0,) * _WORDS

    def read(arrays: Sequence[Array]) -> list[RawStatistics]:
        count = len(arrays)
        capsules = list(map(_capsule, arrays))  # each keeps its interface alive
        args = array("q", (count, *map(_pointer, capsules, repeat(None)), *room * count))
        function(args)
        first = 8 * (1 + count)
        return list(map(unpack, repeat(args), range(first, first + 8 * _WORDS * count, 8 * _WORDS)))

    return read
