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

import ast
import functools
import linecache
import struct
import textwrap
import typing
from array import array
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Annotated, Any, Generic, NamedTuple, ParamSpec, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from semiring.arrays.overlap import address
from semiring.common.forks import cached_property
from semiring.kernels.cpu.compiler import Function, compile_library
from semiring.kernels.cpu.emitter import Scalar, scalar_type
from semiring.kernels.hardware import host

__all__ = [
    "Bound", "Bytes", "Element", "Elements", "Floats", "Inlined", "Ints", "Loop", "Parameter", "Rows", "ShortInts", "Words", "interpreted",
    "loop", "popcount", "prefetch", "select", "trailing_zeros",
]  # fmt: skip

P = ParamSpec("P")
R = TypeVar("R")

Ints = NDArray[np.int64]
ShortInts = NDArray[np.int32]
Words = NDArray[np.uint64]
Bytes = NDArray[np.uint8]
Floats = NDArray[np.float64]
Elements = Annotated[Any, "elements", 1]
"""A tuple of arrays, one for each component of an element; an index gives an `Element`. The dtypes are those of the arrays."""

Rows = Annotated[Any, "elements", 2]
"""A tuple of two-dimensional arrays with contiguous rows; an index gives the `Elements` of a row."""

Element = Annotated[Any, "element"]
"""A tuple of numbers, one for each component."""

_interpreting = False


class Inlined(Protocol):
    """A constant argument with operations that the compiler inlines, and that Python runs: the operations of a semiring, for example."""

    @property
    def identity(self) -> object:
        """What the machine code of the operations depends on."""

    def emit(self, name: str, emitter: Any, args: Sequence[Any]) -> Any:
        """Emit the operation (or the constant) called `name`."""


class Parameter(NamedTuple):
    """The type of an argument: a kind, an element type for arrays of plain numbers or records, and the number of axes."""

    kind: str  # "int", "float", "array", "elements", "tuple"
    dtype: Any = None
    axes: int = 0
    fields: tuple[tuple[str, Any], ...] = ()

    @classmethod
    def of(cls, hint: Any) -> Parameter:
        """Read an annotation."""
        options = [a for a in typing.get_args(hint) if a is not type(None)]
        if type(None) in typing.get_args(hint) and len(options) == 1:  # an array that may be None
            return cls.of(options[0])
        if hint in (int, bool, float):
            return cls("float" if hint is float else "int")
        if hasattr(hint, "_fields"):
            return cls("tuple", hint, 0, tuple((name, cls.of(each)) for name, each in typing.get_type_hints(hint, include_extras=True).items()))
        if typing.get_origin(hint) is Annotated:
            given = hint.__metadata__
            return cls("elements", None, given[1]) if given[0] == "elements" else cls("array", np.dtype(given[0]), 1)
        shape, kind = typing.get_args(hint)
        axes = len(typing.get_args(shape)) if typing.get_args(shape)[-1] is not Ellipsis else 1
        return cls("array", np.dtype(typing.get_args(kind)[0]), 1 if typing.get_args(shape) == (Any,) else axes)


def popcount(word: int) -> int:
    """Return the number of bits that are set."""
    return int(word).bit_count()


def trailing_zeros(word: int) -> int:
    """Return the number of the lowest bit of a word that is not 0."""
    return (int(word) & -int(word)).bit_length() - 1


def prefetch(array: Any, i: int) -> None:
    """Prefetch an entry of an array, for reading and writing."""


def select(condition: bool, x: Any, y: Any) -> Any:
    """Return ``x if condition else y`` without a branch, for conditions that cannot be predicted."""
    return x if condition else y


@contextmanager
def interpreted() -> Iterator[None]:
    """Run all loops as Python."""
    global _interpreting
    before, _interpreting = _interpreting, True
    try:
        yield
    finally:
        _interpreting = before


class Loop(Generic[P, R]):
    """A function that is compiled when it is called."""

    def __init__(self, function: Callable[P, R]) -> None:
        functools.update_wrapper(self, function)
        self.function, self.name = function, function.__name__
        code = function.__code__
        self.file, self.line = code.co_filename, code.co_firstlineno
        last = max(end or 0 for _, end, _, _ in code.co_positions())
        lines = linecache.getlines(self.file, function.__globals__)[self.line - 1 : last]
        self.source = textwrap.dedent("".join(lines))
        tree = ast.parse(self.source).body[0]
        assert isinstance(tree, ast.FunctionDef)
        self.tree = tree
        from semiring.kernels.cpu.loop_compiler import check

        check(self)
        self._compiled: dict[Any, Function] = {}

    @cached_property
    def hints(self) -> dict[str, Any]:
        """The annotations by name."""
        return typing.get_type_hints(self.function, include_extras=True)

    @cached_property
    def parameters(self) -> dict[str, Parameter]:
        """The types of the arguments that are not constants."""
        return {a.arg: Parameter.of(self.hints[a.arg]) for a in self.tree.args.args}

    @cached_property
    def names(self) -> dict[str, Any]:
        """The names outside of the function that it may use."""
        free = zip(self.function.__code__.co_freevars, self.function.__closure__ or (), strict=True)
        return {**self.function.__globals__, **{name: cell.cell_contents for name, cell in free}}

    @cached_property
    def results(self) -> tuple[Any, ...]:
        """The annotations of the returned numbers."""
        hint = self.hints.get("return")
        if hint in (None, type(None)):
            return ()
        return typing.get_args(hint) if typing.get_origin(hint) is tuple else (hint,)

    @cached_property
    def no_results(self) -> list[int]:
        """A word for each returned number."""
        return [0] * len(self.results)

    @cached_property
    def packers(self) -> dict[str, Callable[[Any], Sequence[int]]]:
        """Functions that return the words of each argument."""
        return {name: _packer(parameter) for name, parameter in self.parameters.items()}

    def answer(self, words: Sequence[int]) -> Any:
        """Return what the machine code has written into the words of the results."""
        values = [_float(w) if hint is float else bool(w) if hint is bool else w for w, hint in zip(words, self.results, strict=True)]
        return None if not values else values[0] if len(values) == 1 else tuple(values)

    @cached_property
    def identity(self) -> tuple[Any, ...]:
        """What the machine code depends on, beside the types and the constants: the text, and the names that it uses."""
        used = sorted({node.id for node in ast.walk(self.tree) if isinstance(node, ast.Name)} & self.names.keys())
        return self.source, tuple((name, _identity(self.names[name])) for name in used)

    def __call__(self, *args: P.args, **constants: P.kwargs) -> R:
        """Run the loop."""
        if _interpreting:
            return self.function(*map(_view, args), **constants)  # type: ignore[arg-type]  # views of the same arrays
        return self.bind(*args, **constants)()

    def bind(self, *args: P.args, **constants: P.kwargs) -> Bound[R]:
        """Return a call with these arguments, some of which may be replaced in each call."""
        return Bound(self, args, constants)

    def compiled(self, types: tuple[Any, ...], constants: dict[str, Any]) -> Function:
        """Return the machine code for elements of some types, and for some constants."""
        key = types, tuple((name, _identity(value)) for name, value in constants.items())
        owner = next((value.loops for value in constants.values() if hasattr(value, "loops")), self._compiled)
        if (self, key) not in owner:
            library = compile_library((self.identity, *key), host(), lambda: self.ir(types, constants))
            owner[self, key] = library.function(self.name)
        found: Function = owner[self, key]
        return found

    def ir(self, types: tuple[Any, ...], constants: dict[str, Any]) -> str:
        """Return the LLVM IR."""
        from semiring.kernels.cpu.loop_compiler import compiled_ir

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
        words.extend(made.no_results)

    @cached_property
    def _function(self) -> Function:
        types = [_types(p, v) for p, v in zip(self.loop.parameters.values(), self.args, strict=True)]
        return self.loop.compiled(tuple(types), self.constants)

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


def _types(parameter: Parameter, value: Any) -> Any:
    """Return the element types of `Elements`; None for other arguments."""
    if parameter.kind == "elements":
        return tuple(scalar_type(v.dtype) for v in value)
    if parameter.kind == "tuple":
        return tuple(_types(each, v) for (_, each), v in zip(parameter.fields, value, strict=True))
    return None


def _packer(parameter: Parameter) -> Callable[[Any], Sequence[int]]:
    """Return a function that returns the words of an argument: a number, or for each array the address and the distance of rows."""
    kind, dtype, axes, fields = parameter
    if kind == "int":
        return lambda v: (v,)
    if kind == "float":
        return lambda v: struct.unpack("q", struct.pack("d", v))
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


def _identity(value: Any) -> Any:
    """Return what identifies a constant, or a global name."""
    if isinstance(value, type | np.dtype) or callable(value) and not isinstance(value, Loop):
        return repr(value) if isinstance(value, np.dtype) else getattr(value, "__qualname__", "")
    return getattr(value, "identity", None) or repr(value)


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
