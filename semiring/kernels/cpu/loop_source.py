"""The text of a loop: its syntax tree, the types of its arguments, and what it may contain."""

from __future__ import annotations

import ast
import linecache
import textwrap
import typing
from collections.abc import Callable, Sequence
from typing import Annotated, Any, NamedTuple, NoReturn, Protocol

import numpy as np
from numpy.typing import NDArray

from semiring.common.forks import cached_property

__all__ = [
    "Bytes", "Element", "Elements", "Floats", "Inlined", "Ints", "Parameter", "Rows", "ShortInts", "ShortRows", "Source", "Words",
    "fill", "identity_of", "popcount", "prefetch", "select", "trailing_zeros",
]  # fmt: skip

Ints = Annotated[NDArray[np.int64], np.int64]
ShortInts = Annotated[NDArray[np.int32], np.int32]
Words = Annotated[NDArray[np.uint64], np.uint64]
Bytes = Annotated[NDArray[np.uint8], np.uint8]
Floats = Annotated[NDArray[np.float64], np.float64]
ShortRows = Annotated[NDArray[np.int32], np.int32, 2]
"""A matrix with contiguous rows."""

Elements = Annotated[Any, "elements", 1]
"""A tuple of arrays, one for each component of an element; an index gives an `Element`. The dtypes are those of the arrays."""

Rows = Annotated[Any, "elements", 2]
"""A tuple of matrices with contiguous rows; an index gives the `Elements` of a row."""

Element = Annotated[Any, "element"]
"""A tuple of numbers, one for each component."""

_KNOWN = (
    ast.Assign, ast.AugAssign, ast.If, ast.While, ast.For, ast.Break, ast.Continue, ast.Return, ast.Expr, ast.Pass, ast.Assert,
    ast.Constant, ast.Name, ast.Attribute, ast.Subscript, ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.Compare, ast.IfExp, ast.Call, ast.Tuple,
    ast.unaryop, ast.boolop, ast.expr_context, ast.keyword,
    ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Mod, ast.BitAnd, ast.BitOr, ast.BitXor, ast.LShift, ast.RShift,
    ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.Eq, ast.NotEq, ast.Is, ast.IsNot,
)  # fmt: skip
"""The constructs of a loop."""


class Inlined(Protocol):
    """A constant argument whose methods the compiler inlines, and Python runs: the operations of a semiring, for example.

    Attributes that are tuples of NumPy's numbers are constant elements.
    """

    @property
    def identity(self) -> object:
        """The part of the key of machine code that stands for the operations."""

    def emit(self, name: str, emitter: Any, args: Sequence[Any]) -> Any:
        """Emit the method called `name`."""


class Parameter(NamedTuple):
    """The type of an argument: its kind, the dtype of numbers or records, the axes, the fields of a `NamedTuple`, and if it may be None."""

    kind: str  # "int", "float", "element", "array", "elements" or "tuple"
    dtype: Any = None
    axes: int = 0
    fields: tuple[tuple[str, Any], ...] = ()
    optional: bool = False

    @classmethod
    def of(cls, hint: Any) -> Parameter:
        """Read an annotation; an array may be None."""
        options = [a for a in typing.get_args(hint) if a is not type(None)]
        if type(None) in typing.get_args(hint) and len(options) == 1:
            return cls.of(options[0])._replace(optional=True)
        if hint in (int, bool, float):
            return cls("float" if hint is float else "int")
        if hasattr(hint, "_fields"):
            fields = typing.get_type_hints(hint, include_extras=True)
            return cls("tuple", hint, 0, tuple([(name, cls.of(each)) for name, each in fields.items()]))
        what, *axes = hint.__metadata__
        return cls(what, None, *axes or [1]) if isinstance(what, str) else cls("array", np.dtype(what), *axes or [1])


def popcount(word: int) -> int:
    """Return the number of bits that are set."""
    return int(word).bit_count()


def trailing_zeros(word: int) -> int:
    """Return the number of the lowest bit that is set; there must be one."""
    return (int(word) & -int(word)).bit_length() - 1


def fill(array: Any, count: int, value: Any) -> None:
    """Write a number, or an element, to the first entries of an array, by vectors."""
    for i in range(count):
        array[i] = value


def prefetch(array: Any, i: int) -> None:
    """Prefetch an entry of an array, for reading and writing."""


def select(condition: bool, x: Any, y: Any) -> Any:
    """Return ``x if condition else y`` without a branch, for conditions that cannot be predicted."""
    return x if condition else y


class Source:
    """A function of a loop as text.

    Parameters
    ----------
    function : function
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function, self.name = function, function.__name__
        self.file, self.line = function.__code__.co_filename, function.__code__.co_firstlineno

    @cached_property
    def text(self) -> str:
        """The lines of the function."""
        last = max(end or 0 for _, end, _, _ in self.function.__code__.co_positions())
        return textwrap.dedent("".join(linecache.getlines(self.file, self.function.__globals__)[self.line - 1 : last]))

    @cached_property
    def tree(self) -> ast.FunctionDef:
        """The syntax tree."""
        tree = ast.parse(self.text).body[0]
        assert isinstance(tree, ast.FunctionDef)
        return tree

    @cached_property
    def hints(self) -> dict[str, Any]:
        """The annotations by name."""
        return typing.get_type_hints(self.function, include_extras=True)

    @cached_property
    def parameters(self) -> dict[str, Parameter]:
        """The types of the arguments that are not constants."""
        return {a.arg: Parameter.of(self.hints[a.arg]) for a in self.tree.args.args}

    @cached_property
    def results(self) -> tuple[Any, ...]:
        """The annotations of the returned numbers."""
        hint = self.hints.get("return")
        if hint in (None, type(None)):
            return ()
        return typing.get_args(hint) if typing.get_origin(hint) is tuple else (hint,)

    @cached_property
    def names(self) -> dict[str, Any]:
        """The values of names outside of the function."""
        free = zip(self.function.__code__.co_freevars, self.function.__closure__ or (), strict=True)
        return {**self.function.__globals__, **{name: cell.cell_contents for name, cell in free}}

    @cached_property
    def identity(self) -> tuple[Any, ...]:
        """The text, the types of the arguments, and the values of the names that it uses."""
        used = sorted({node.id for node in ast.walk(self.tree) if isinstance(node, ast.Name)} & self.names.keys())
        return self.text, repr(self.parameters), tuple([(name, identity_of(self.names[name])) for name in used])

    def refuse(self, node: ast.AST, reason: str) -> NoReturn:
        """Raise an error that shows the line of a construct."""
        line, column = getattr(node, "lineno", 1), getattr(node, "col_offset", 0)
        raise SyntaxError(reason, (self.file, self.line + line - 1, column + 1, self.text.splitlines()[line - 1]))

    def check(self) -> None:
        """Refuse constructs that a loop may not have, by a `SyntaxError` with the file and the line."""
        arguments = self.tree.args
        if arguments.posonlyargs or arguments.vararg or arguments.kwarg or arguments.defaults or any(arguments.kw_defaults):
            self.refuse(self.tree, "a loop has no default values, no *arguments and no **arguments")
        for argument in arguments.args:
            if argument.annotation is None:
                self.refuse(argument, f"the argument {argument.arg} of a loop needs an annotation")
        where: ast.AST = self.tree
        for statement in self.tree.body:
            for node in ast.walk(statement):
                where = node if hasattr(node, "lineno") else where
                if not isinstance(node, _KNOWN):
                    self.refuse(where, f"a loop has no {type(node).__name__}")
                if isinstance(node, ast.For) and not (_calls(node.iter, "range") and isinstance(node.target, ast.Name)):
                    self.refuse(node, "a for of a loop counts one variable over a range")
                if isinstance(node, ast.For | ast.While) and node.orelse:
                    self.refuse(node, "a for or while of a loop has no else")
                if _calls(node, self.name):
                    self.refuse(node, "a loop does not call itself")


def _calls(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == name


def identity_of(value: Any) -> Any:
    """Return what identifies a constant in the key of machine code."""
    if hasattr(value, "identity") and not isinstance(value, type):  # a class stands in annotations
        return value.identity
    if hasattr(getattr(value, "__self__", None), "identity"):
        return value.__self__.identity, value.__name__
    return getattr(value, "__qualname__", None) or repr(value)
