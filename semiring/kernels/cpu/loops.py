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

from semiring.arrays.overlap import DATA_OFFSET, address
from semiring.common.forks import cached_property
from semiring.kernels.cpu.compiler import Function, compile_library
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
    fill,
    identity_of,
    popcount,
    prefetch,
    select,
    trailing_zeros,
)  # fmt: skip
from semiring.kernels.hardware import host

__all__ = [
    "Bound", "Bytes", "Element", "Elements", "Floats", "Inlined", "Ints", "Loop", "Rows", "ShortInts", "ShortRows", "Words", "fill",
    "interpreted", "loop", "popcount", "prefetch", "select", "trailing_zeros",
]  # fmt: skip

P = ParamSpec("P")
R = TypeVar("R")

_interpreting = False
checking = False
"""True checks the constructs of each loop, and the dtype and the layout of all arrays at each call; tests set it."""


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
        if checking or not function.__module__.startswith("semiring."):  # the tests check loops of the library
            self.check()
        self._compiled: dict[Any, Function] = {}

    @cached_property
    def pack(self) -> Callable[..., array[int]]:
        """The function that packs arguments into words, with a word for each result; it is written as text, because calls are many."""
        words = [word for name, parameter in self.parameters.items() for word in _words(parameter, name)]
        found: Callable[..., array[int]] = self._of_arguments(f"array_('q', [{', '.join(words + ['0'] * len(self.results))}])")
        return found

    @cached_property
    def generic(self) -> bool:
        """True if an argument has elements, whose dtypes are those of the arrays."""
        return any(each.kind in ("elements", "element", "tuple") for each in self.parameters.values())

    @cached_property
    def kinds(self) -> Callable[..., tuple[Any, ...]]:
        """The function that returns the dtypes of the elements of arguments."""
        found: Callable[..., tuple[Any, ...]]
        found = self._of_arguments(f"({''.join([f'{_dtypes(p, name)}, ' for name, p in self.parameters.items()])})")
        return found

    def _of_arguments(self, result: str) -> Any:
        names = {"array_": array, "float_word_": _float_word, "component_": _component, "checked_": _checked, "np": np}
        return eval(f"lambda {', '.join(self.parameters)}: {result}", names)

    @cached_property
    def _answer(self) -> struct.Struct:
        return struct.Struct("".join(["d" if hint is float else "?7x" if hint is bool else "q" for hint in self.results]))

    def answer(self, words: array[int]) -> Any:
        """Return the numbers in the words of the results, the last ones."""
        if self.results == (int,):
            return words[-1]
        if not self.results:
            return None
        values = self._answer.unpack_from(words, 8 * (len(words) - len(self.results)))
        return values[0] if len(values) == 1 else values

    def __call__(self, *args: P.args, **constants: P.kwargs) -> R:
        """Run the loop."""
        return self.bind(*args, **constants)()

    def bind(self, *args: P.args, **constants: P.kwargs) -> Bound[R]:
        """Return a call with these arguments, which each call may replace."""
        return Bound(self, args, constants)

    def compiled(self, args: Sequence[Any], constants: dict[str, Any]) -> Function:
        """Return the machine code for the types of arguments, and for some constants."""
        owner, types = self._compiled, None
        if (semiring := constants.get("semiring")) is not None:  # its operations own the code, for the dtypes of all elements
            owner = semiring.loops
        elif self.generic:
            types = self.kinds(*args)
        key = self, types, *constants.values()
        found: Function | None = owner.get(key)
        if found is None:
            types = self.kinds(*args)
            fixed = [(name, identity_of(value)) for name, value in constants.items()]
            library = compile_library((self.identity, types, fixed), host(), lambda: self.ir(types, constants))
            found = owner[key] = library.function(self.name)
        return found

    def ir(self, types: tuple[Any, ...], constants: dict[str, Any]) -> str:
        """Return the LLVM IR."""
        from semiring.kernels.cpu.loop_compiler import compiled_ir  # only on a cache miss

        return compiled_ir(self, types, constants)


def loop(function: Callable[P, R]) -> Loop[P, R]:
    """Compile a function when it is called; see the module."""
    return Loop(function)


class Bound(Generic[R]):
    """A call of a loop with given arguments."""

    def __init__(self, made: Loop[Any, R], args: Sequence[Any], constants: dict[str, Any]) -> None:
        self.loop, self.args, self.constants = made, args, constants
        self._function = None if _interpreting else made.compiled(args, constants)

    def __call__(self, nanoseconds: float = 0, **changes: Any) -> R:
        """Run the loop for about `nanoseconds`, with some arguments replaced by others of the same types."""
        made, args = self.loop, self.args
        if changes:
            args = [changes.get(name, value) for name, value in zip(made.parameters, args, strict=True)]
        if _interpreting:
            found: R = made.function(*map(_view, args), **self.constants)
            return found
        words = made.pack(*args)
        (self._function or made.compiled(args, self.constants))(words, nanoseconds)
        return made.answer(words)  # type: ignore[no-any-return]  # the types of the annotation


def _float_word(value: float) -> int:
    (word,) = struct.unpack("q", struct.pack("d", value))
    return int(word)


def _component(value: float) -> int:
    return _float_word(value) if isinstance(value, float) else value


def _checked(v: Any, dtype: str, axes: int) -> Any:
    """Return an array of the dtype, if any, and with contiguous rows; refuse others."""
    assert not dtype or v.dtype == np.dtype(dtype), f"an array of a loop is {v.dtype}, not {dtype}"
    assert v.flags.c_contiguous or not v.size or (axes == 2 and v.strides[1] == v.itemsize), "an array of a loop is not contiguous"
    return v


_NOTHING = np.zeros(1, np.int64)


def _words(parameter: Parameter, name: str) -> list[str]:
    """Write the words of an argument: a number, or for each array where its address stands, and the distance of rows in entries."""
    kind, dtype, axes, fields, optional = parameter
    if kind == "tuple":
        return [word for field, each in fields for word in _words(each, f"{name}.{field}")]
    if kind in ("int", "float"):
        return [name if kind == "int" else f"float_word_({name})"]
    if kind == "element":
        return [f"*map(component_, {name})"]
    one, known = name if kind == "array" else "v", "" if dtype is None or dtype.fields else str(dtype)
    array = f"checked_({one}, {known!r}, {axes})" if checking else one
    # An address takes 0.1 µs to read in Python; the machine code reads it where NumPy has it.
    words = [f"id({array}) + {DATA_OFFSET}", f"{one}.strides[0] // {one}.itemsize"][:axes]
    if optional:
        words = [f"{word} if {one} is not None else {nothing}" for word, nothing in zip(words, (address(_NOTHING), 0), strict=False)]
    return words if kind == "array" else [f"*[word for v in {name} for word in ({', '.join(words)},)]"]


def _dtypes(parameter: Parameter, name: str) -> str:
    """Write the dtypes of an argument's elements."""
    if parameter.kind == "tuple":
        return f"({''.join([_dtypes(each, f'{name}.{field}') + ', ' for field, each in parameter.fields])})"
    if parameter.kind == "element":
        return f"tuple([np.dtype(float if isinstance(v, float) else int) for v in {name}])"
    return f"tuple([v.dtype for v in {name}])" if parameter.kind == "elements" else "None"


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
