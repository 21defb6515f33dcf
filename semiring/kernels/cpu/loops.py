"""Loops of graph algorithms: functions of a small part of Python, compiled to machine code, which also run as Python.

>>> from semiring.kernels.cpu.loops import Ints, interpreted, loop
>>> @loop
... def count_edges(n: int, starts: Ints, degrees: Ints) -> int:
...     most = 0
...     for v in range(n):
...         degrees[v] = starts[v + 1] - starts[v]
...         most = max(most, degrees[v])
...     return most
>>> starts, degrees = np.array([0, 2, 3]), np.empty(2, np.int64)
>>> count_edges(2, starts, degrees), degrees
(2, array([2, 1]))

The annotations give the types: ``int`` (64 bits), ``float``, ``bool``, the arrays named below, a `NamedTuple` of these, or records, as
``Annotated[Any, dtype]``. Arguments after ``*`` are constants: the function is compiled for each of their values. Statements are
assignments, ``if``, ``while``, ``for`` over a range, ``break``, ``continue``, ``return``, ``assert`` (unchecked) and calls of other loops,
which are inlined. Anything else is refused where the function is defined.

Integers are computed with 64 bits and may not overflow; arrays of `Words` hold unsigned 64 bits. Within ``with interpreted():`` loops run
as Python on the same arrays, every index is checked, and a debugger steps through them.
"""

from __future__ import annotations

import functools
import struct
from array import array
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Generic, ParamSpec, TypeVar

import numpy as np

from semiring.arrays.overlap import address
from semiring.common.forks import cached_property
from semiring.kernels.cpu.compiler import Function, compile_library
from semiring.kernels.cpu.emitter import Scalar, scalar_type
from semiring.kernels.cpu.loop_source import (
    Bytes,
    Element,
    Elements,
    Floats,
    Inlined,
    Ints,
    Parameter,
    Rows,
    ShortInts,
    ShortRows,
    Source,
    Words,
    identity_of,
    popcount,
    prefetch,
    select,
    trailing_zeros,
)  # fmt: skip
from semiring.kernels.hardware import host

__all__ = [
    "Bound", "Bytes", "Element", "Elements", "Floats", "Inlined", "Ints", "Loop", "Rows", "ShortInts", "ShortRows", "Words", "interpreted",
    "loop", "popcount", "prefetch", "select", "trailing_zeros",
]  # fmt: skip

P = ParamSpec("P")
R = TypeVar("R")

_interpreting = False


@contextmanager
def interpreted() -> Iterator[None]:
    """Run all loops as Python."""
    global _interpreting
    before, _interpreting = _interpreting, True
    try:
        yield
    finally:
        _interpreting = before


class Loop(Source, Generic[P, R]):
    """A function that is compiled when it is called; within `interpreted`, it runs as Python."""

    def __init__(self, function: Callable[P, R]) -> None:
        super().__init__(function)
        functools.update_wrapper(self, function)
        self._compiled: dict[Any, Function] = {}

    @cached_property
    def packers(self) -> dict[str, Callable[[Any], Sequence[int]]]:
        """Functions that return the words of each argument."""
        return {name: _packer(parameter) for name, parameter in self.parameters.items()}

    def answer(self, words: Sequence[int]) -> Any:
        """Return the numbers in the words of the results."""
        values = [_float(w) if hint is float else bool(w) if hint is bool else w for w, hint in zip(words, self.results, strict=True)]
        return None if not values else values[0] if len(values) == 1 else tuple(values)

    def __call__(self, *args: P.args, **constants: P.kwargs) -> R:
        """Run the loop."""
        if _interpreting:
            found: R = self.function(*map(_view, args), **constants)
            return found
        return self.bind(*args, **constants)()

    def bind(self, *args: P.args, **constants: P.kwargs) -> Bound[R]:
        """Return a call with these arguments, some of which may be replaced in each call."""
        return Bound(self, args, constants)

    def compiled(self, types: tuple[Any, ...], constants: dict[str, Any]) -> Function:
        """Return the machine code for elements of some types, and for some constants."""
        key = types, tuple((name, identity_of(value)) for name, value in constants.items())
        owner = next((value.loops for value in constants.values() if hasattr(value, "loops")), self._compiled)
        if (self, key) not in owner:
            library = compile_library((self.identity, *key), host(), lambda: self.ir(types, constants))
            owner[self, key] = library.function(self.name)
        found: Function = owner[self, key]
        return found

    def ir(self, types: tuple[Any, ...], constants: dict[str, Any]) -> str:
        """Return the LLVM IR."""
        from semiring.kernels.cpu.loop_compiler import compiled_ir  # only on a cache miss

        return compiled_ir(self, types, constants)


def loop(function: Callable[P, R]) -> Loop[P, R]:
    """Compile a function when it is called; see the module."""
    return Loop(function)


class Bound(Generic[R]):
    """A call of a loop with given arguments, packed into words for the machine code."""

    def __init__(self, made: Loop[Any, R], args: Sequence[Any], constants: dict[str, Any]) -> None:
        self.loop, self.args, self.constants = made, args, constants
        words, self._places = array("q"), dict[str, int]()
        for (name, pack), value in zip(made.packers.items(), args, strict=True):
            self._places[name] = len(words)
            words.extend(pack(value))
        self._words, self._results = words, len(words)
        words.extend([0] * len(made.results))

    @cached_property
    def _function(self) -> Function:
        made = self.loop
        return made.compiled(tuple([_types(p, v) for p, v in zip(made.parameters.values(), self.args, strict=True)]), self.constants)

    def __call__(self, nanoseconds: float = 0, **changes: Any) -> R:
        """Run the loop for about `nanoseconds`, with some arguments replaced by others of the same types."""
        made = self.loop
        if _interpreting:
            args = (changes.get(name, value) for name, value in zip(made.parameters, self.args, strict=True))
            found: R = made.function(*map(_view, args), **self.constants)
            return found
        words = self._words[:]
        for name, value in changes.items():
            for place, word in enumerate(made.packers[name](value), self._places[name]):
                words[place] = word
        self._function(words, nanoseconds)
        return made.answer(words[self._results :])  # type: ignore[no-any-return]  # the types of the annotation


def _float(word: int) -> float:
    (value,) = struct.unpack("d", struct.pack("q", word))
    return float(value)


def _word(value: float) -> int:
    (word,) = struct.unpack("q", struct.pack("d", value))
    return int(word)


def _types(parameter: Parameter, value: Any) -> Any:
    """Return the types of an element's components; None for other arguments."""
    if parameter.kind == "elements":
        return tuple([scalar_type(v.dtype) for v in value])
    if parameter.kind == "element":
        return tuple([Scalar("f" if isinstance(v, float) else "i", 8) for v in value])
    if parameter.kind == "tuple":
        return tuple(_types(each, v) for (_, each), v in zip(parameter.fields, value, strict=True))
    return None


def _packer(parameter: Parameter) -> Callable[[Any], Sequence[int]]:
    """Return a function that returns the words of an argument: a number, or for each array the address and the distance of rows."""
    kind, dtype, axes, fields = parameter
    if kind == "int":
        return lambda v: (v,)
    if kind == "float":
        return lambda v: (_word(v),)
    if kind == "element":
        return lambda v: [_word(each) if isinstance(each, float) else each for each in v]
    if kind == "tuple":
        parts = [_packer(each) for _, each in fields]
        return lambda v: [word for pack, each in zip(parts, v, strict=True) for word in pack(each)]

    def plain(v: Any) -> Sequence[int]:
        if v is None:
            return (0,) * axes
        assert dtype is None or v.dtype == dtype, f"an array of a loop is {v.dtype}, not {dtype}"
        if axes == 1:
            assert v.flags.c_contiguous, "an array of a loop is contiguous"
            return (address(v),)
        assert v.strides[1] == v.itemsize, "a matrix of a loop has contiguous rows"
        return address(v), v.strides[0] // v.itemsize

    return plain if kind == "array" else lambda v: [word for each in v for word in plain(each)]


class _View:
    """An array as a loop sees it in Python: numbers of Python, and no negative index."""

    def __init__(self, array: Any) -> None:
        self._array = array

    def __getitem__(self, i: Any) -> Any:
        found = self._array[self._checked(i)]
        return _View(found) if isinstance(found, np.ndarray) else found.item()

    def __setitem__(self, i: Any, value: Any) -> None:
        self._array[self._checked(i)] = value

    def __getattr__(self, field: str) -> _View:
        if field not in (self._array.dtype.names or ()):
            raise AttributeError(f"the array has no field {field}")
        return _View(self._array[field])

    @staticmethod
    def _checked(i: Any) -> Any:
        if min(i) < 0 if isinstance(i, tuple) else i < 0:
            raise IndexError(f"index {i} is negative")
        return i


class _ElementsView:
    """A tuple of arrays as a loop sees it in Python: an entry is a tuple of NumPy's numbers."""

    def __init__(self, arrays: Sequence[Any]) -> None:
        self._arrays = arrays

    def __getitem__(self, i: Any) -> Any:
        found = tuple([v[_View._checked(i)] for v in self._arrays])
        return _ElementsView(found) if isinstance(found[0], np.ndarray) else found

    def __setitem__(self, i: Any, element: Any) -> None:
        for v, value in zip(self._arrays, element, strict=True):
            v[_View._checked(i)] = value


def _view(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return _View(value)
    if hasattr(value, "_fields"):
        return value._make(map(_view, value))
    if isinstance(value, tuple) and value and isinstance(value[0], np.ndarray):
        return _ElementsView(value)
    return value
