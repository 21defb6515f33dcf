"""The errors of the library. All derive from `SemiringError`; each message says what was wrong and what would work."""

from __future__ import annotations

import functools
import importlib
import itertools
import math
import os
import re
import sys
from collections.abc import Callable, Collection, Iterator, Sequence
from numbers import Integral
from types import FrameType
from typing import Any, ParamSpec, TypeVar

from semiring.common.html import short

__all__ = [
    "AssumptionWarning", "CheckpointError", "DTypeError", "DivergenceError", "DivergentPivot", "DomainError", "GraphError", "LawError",
    "NegativeCycleError", "OverflowRiskError", "SemiringError", "ShapeError", "TooLargeError", "TraceError", "brief", "callers_level",
    "described", "in_stack", "install_of", "library", "listing", "noted", "or_similar", "printable", "raised_here", "refuse_arrays",
    "require_k", "similar", "with_article",
]  # fmt: skip

P = ParamSpec("P")
R = TypeVar("R")

_CONTROLS = re.compile(r"[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
"""Control characters, line separators, marks that reverse the order of text, and halves of characters."""

_COMPARED = 10_000  # the most names that are compared letter by letter
_WIDTH = 40  # the most characters of a value in a message


class SemiringError(Exception):
    """The root of all errors that this library raises on purpose.

    Attributes
    ----------
    index : tuple of int or None
        The batch index of the failing matrix in a stack.
    """

    index: tuple[int, ...] | None = None


class TraceError(SemiringError, TypeError):
    """A callable of a semiring cannot be recorded as an expression."""


class LawError(SemiringError, ValueError):
    """An algorithm needs a law that the semiring does not satisfy."""


class DomainError(SemiringError, ValueError):
    """An element lies outside the semiring's carrier (NaN always does)."""


class DTypeError(SemiringError, TypeError):
    """The semiring has no meaning, or no identity, in this dtype."""


class ShapeError(SemiringError, ValueError):
    """The operands' shapes fit neither each other nor the operation."""


class GraphError(SemiringError, ValueError):
    """The graph cannot be read as a weighted adjacency matrix."""


class CheckpointError(SemiringError, ValueError):
    """The folder of a checkpoint belongs to another closure, is damaged, or is in use."""


class TooLargeError(SemiringError, MemoryError):
    """The dense matrix does not fit the memory; raised before any allocation."""


class OverflowRiskError(SemiringError, OverflowError):
    """A result could leave its dtype: an integer would wrap, or an overflow to ∞ would pass for "no path"."""


class DivergenceError(SemiringError, ArithmeticError):
    """The closure diverges: a sum over walks is infinite, or a cycle improves every path again and again.

    Attributes
    ----------
    cycle : list or None
        The vertices of one cycle that diverges, each once, in order; the edge from the last back to the first closes the cycle. None
        without such a cycle, and if the input was overwritten.
    vertices : list or None
        The vertices of a strongly connected component whose cycles diverge together, if no single cycle does.
    """

    more: Callable[[], Iterator[list[Any]]] | None = None  # iterates over `cycle` and others

    def __init__(self, message: str, cycle: Sequence[Any] | None = None, vertices: Sequence[Any] | None = None) -> None:
        super().__init__(message)
        self.cycle = None if cycle is None else list(cycle)
        self.vertices = None if vertices is None else list(vertices)

    def __reduce__(self) -> tuple[Any, ...]:
        """Leave the graph behind when the error is sent to another process."""
        return type(self), self.args, {name: value for name, value in self.__dict__.items() if name != "more"}

    def cycles(self, limit: int | None = None) -> Iterator[list[Any]]:
        """Iterate over `cycle` and further cycles that diverge, no edge in two of them, at most `limit`.

        Each cycle is elementary. Afterwards each other such cycle shares an edge with one of these, unless `limit` or rounding ends the
        search. Over a semiring with ``star``, and after the input was overwritten, `cycle` is the only one. The edges of a cycle are
        removed before the next search of O(n·m) steps, which reads the graph of the call: do not change the graph in between. An error that
        was sent to another process knows only `cycle`.

        Examples
        --------
        >>> import semiring as sr
        >>> try:
        ...     sr.apsp(sr.edges([("a", "b", -3), ("b", "a", 1), ("b", "c", 0), ("c", "d", 1), ("d", "c", -2)]))
        ... except sr.NegativeCycleError as error:
        ...     sorted(map(sorted, error.cycles(10)))
        [['a', 'b'], ['c', 'd']]
        """
        return itertools.islice(self.more() if self.more else [self.cycle] if self.cycle else [], limit)


class NegativeCycleError(DivergenceError):
    """The graph has a cycle of negative weight: shortest paths do not exist."""


class AssumptionWarning(UserWarning):
    """The answer rests on an assumption, such as a weight of 1 for edges without a weight, or the sign of a SymPy symbol."""


class DivergentPivot(SemiringError):
    """An engine's error at the first pivot p with 1 ⊕ p ≠ 1 and no star; `closure` raises a `DivergenceError` instead.

    `vertex` is the global index of the pivot.
    """

    def __init__(self, vertex: int) -> None:
        super().__init__(f"the pivot of vertex {vertex} does not converge")
        self.vertex = vertex


def printable(text: Any) -> str:
    r"""Escape characters of a name that could command a terminal or break a line.

    >>> print(printable("Zürich → Bern\x1b[31m"))
    Zürich → Bern\x1b[31m
    """
    return _CONTROLS.sub(lambda found: found[0].encode("unicode_escape").decode(), str(text))


def brief(value: Any) -> str:
    """Write a value for a message, a very long integer by its size (Python may even refuse to print one).

    >>> brief(-(10**5000)), brief(0.5)
    ('about -1e5000', '0.5')
    """
    if isinstance(value, int) and value.bit_length() > 128:
        return f"about {'-' if value < 0 else ''}1e{round(value.bit_length() * math.log10(2))}"
    return f"({', '.join(map(brief, value))})" if isinstance(value, tuple) else repr(value)


def described(value: Any) -> str:
    """Write an argument for a message: the beginning of a long value, and the shape of an array.

    >>> import numpy as np
    >>> described("roads.csv"), described(np.zeros(3))
    ("'roads.csv'", 'an array of shape (3,)')
    """
    shape = getattr(value, "shape", ())
    return f"an array of shape {tuple(shape)}" if shape else short(repr(value), _WIDTH)


def with_article(name: str) -> str:
    """Put the indefinite article before a name.

    >>> with_article("EdgeList"), with_article("semiring.EdgeList"), with_article("uint8")
    ('an EdgeList', 'a semiring.EdgeList', 'a uint8')
    """
    return f"a{'n' * (name[:1].lower() in set('aeio'))} {name}"


def listing(names: Sequence[Any], most: int = 12) -> str:
    """List the first names for a message.

    >>> listing(["from", "to", "km"]), listing(range(100), most=3), listing([])
    ("'from', 'to', 'km'", '0, 1, 2, …', 'none')
    """
    return ", ".join([short(repr(name), _WIDTH) for name in names[:most]]) + ", …" * (len(names) > most) or "none"


def or_similar(given: Any, known: Collection[Any], names: str) -> str:
    """Answer an unknown name by the text `names`, after the likeliest name if one is similar.

    >>> or_similar("bern", ["Basel", "Bern"], "there are Basel and Bern"), or_similar("Rom", ["Basel"], "there is Basel")
    ("did you mean 'Bern'? There are Basel and Bern", 'there is Basel')
    """
    return "".join(f"did you mean {other!r}? {names[:1].upper()}{names[1:]}" for other in similar(given, known)) or names


def similar(given: Any, known: Collection[Any]) -> list[Any]:
    """Find the known name that an unknown one probably means; empty if none is similar.

    Equal up to capitals, spaces around, or a number written as text; else a text with a few other letters.

    >>> similar("bern", ["Basel", "Bern"]), similar("Gnef", ["Basel", "Genf"]), similar("1", range(5)), similar("Rom", ["Basel", "Genf"])
    (['Bern'], ['Genf'], [1], [])
    """
    plain = _plain(given)
    for name in known:
        if _plain(name) == plain:
            return [name]
    if not isinstance(given, str):
        return []
    from difflib import get_close_matches

    # Comparing a million names by letter takes minutes: filter by length, by first or last letter, and by the set of letters.
    ends, letters = (plain[:1], plain[-1:]), {*plain}
    texts = (name for name in known if isinstance(name, str) and 4 * abs(len(name) - len(plain)) <= len(name) + len(plain))
    plains = ((text, name) for name in texts if (text := _plain(name))[:1] == ends[0] or text[-1:] == ends[1])
    near = ((text, name) for text, name in plains if 5 * len(letters & {*text}) >= 3 * len(letters))
    compared = dict(itertools.islice(near, _COMPARED))
    return [compared[text] for text in get_close_matches(plain, compared, 1, 0.75)]


def _plain(name: Any) -> str:
    """Normalize a name: capitals, spaces around, and integers written as floats."""
    return str(int(name) if isinstance(name, float) and name.is_integer() else name).strip().casefold()


def refuse_arrays(**arguments: Any) -> None:
    """Refuse an array as an argument that takes none, before code asks for its truth value.

    >>> import numpy as np
    >>> refuse_arrays(paths=True, device="cpu", dtype=np.float32)
    >>> refuse_arrays(paths=np.eye(2))
    Traceback (most recent call last):
    ...
    semiring.common.errors.SemiringError: paths is an array of shape (2, 2); this argument takes no array
    """
    for name, value in arguments.items():
        if isinstance(shape := getattr(value, "shape", None), tuple) and shape:
            raise SemiringError(f"{name} is an array of shape {shape}; this argument takes no array")


def require_k(k: Any) -> int:
    """Return k, the number of best elements of each row, as an int; refuse all but whole numbers from 1.

    >>> require_k(0)
    Traceback (most recent call last):
    ...
    semiring.common.errors.SemiringError: k is 0; it must be a whole number from 1
    """
    if isinstance(k, bool) or not isinstance(k, Integral) or k < 1:
        raise SemiringError(f"k is {described(k)}; it must be a whole number from 1")
    return int(k)


def library(module: str, what: str, extra: str = "") -> Any:
    """Import an optional module; the `SemiringError` for a missing one says what needs it, and names the extra or the package to install.

    >>> library("networkx", "to_networkx").__name__
    'networkx'
    >>> library("no_such_library.plots", "plot")
    Traceback (most recent call last):
    ...
    semiring.common.errors.SemiringError: plot needs no_such_library, which is not installed: pip install no_such_library
    """
    try:
        return importlib.import_module(module)
    except ImportError:
        name = module.partition(".")[0]
        command = install_of(extra) if extra else f"pip install {name}"
        raise SemiringError(f"{what} needs {name}, which is not installed: {command}") from None


def install_of(extra: str) -> str:
    """Return the command that installs an extra.

    >>> print(install_of("graphs"))
    pip install -e ".[graphs]" from the clone
    """
    return f'pip install -e ".[{extra}]" from the clone'


class noted:
    """Adds a note to an error: the operation (with article), the shapes and dtypes of the operands, and the semiring.

    >>> import numpy as np
    >>> from semiring.algebra.catalogue import MIN_PLUS
    >>> try:
    ...     with noted("the closure", MIN_PLUS, np.zeros((2, 3))):
    ...         raise ShapeError("not square")
    ... except ShapeError as error:
    ...     print(error.__notes__)
    ['in the closure of 2 × 3 elements (float64) over min-plus']
    """

    __slots__ = ("_about",)

    def __init__(self, operation: str, semiring: Any, *operands: Any) -> None:
        self._about = operation, semiring, *operands

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, SemiringError):
            about(error, *self._about)


def about(error: SemiringError, operation: str, semiring: Any, *operands: Any) -> None:
    """Add the note of `noted` to an error."""
    undirected = (getattr(g, "directed", True) is False or (hasattr(type(g), "is_directed") and not g.is_directed()) for g in operands)
    if isinstance(error, DivergenceError) and len(error.cycle or ()) == 2 and any(undirected):
        error.add_note("the graph is undirected, so that each edge is a cycle, there and back")

    error.add_note(f"in {operation} of {' and '.join(map(_operand, operands))} over {semiring.name}")


def in_stack(error: SemiringError, index: tuple[int, ...]) -> None:
    """Name the failing matrix of a stack in the error's text and attribute.

    >>> error = ShapeError("not square")
    >>> in_stack(error, (1, 2))
    >>> error, error.index
    (ShapeError('not square (in the matrix at batch index [1, 2])'), (1, 2))
    """
    error.index = index
    error.args = (f"{error} (in the matrix at batch index [{', '.join(map(str, index))}])",)


def _operand(operand: Any) -> str:
    parts = operand if isinstance(operand, tuple) else (operand,)
    shape = getattr(parts[0], "shape", None) if parts else None
    if not isinstance(shape, tuple) or not shape:
        return f"a value of type {type(operand).__name__}"
    dtypes = ", ".join(str(p.dtype) for p in parts if hasattr(p, "dtype"))
    return f"{' × '.join(map(str, shape))} elements{f' ({dtypes})' if dtypes else ''}"


def raised_here(function: Callable[P, R]) -> Callable[P, R]:
    """Wrap a public function so that the library's own errors have no traceback below the caller's line.

    Any other error keeps its traceback, because it may be a bug. ``SEMIRING_TRACEBACK=full`` in the environment keeps all tracebacks.
    """

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return function(*args, **kwargs)
        except Exception as error:
            if _on_purpose(error) and os.environ.get("SEMIRING_TRACEBACK") != "full":
                error.__traceback__ = None  # a bare `raise` does not add this frame
            raise

    return call


def _on_purpose(error: Exception) -> bool:
    """Return True for an error that this library raises by `raise`, or for arguments that do not fit the signature."""
    if isinstance(error, SemiringError):
        return True
    trace = error.__traceback__
    assert trace is not None
    if trace.tb_next is None:  # the function was not even entered
        return True
    while trace.tb_next is not None:
        trace = trace.tb_next
    if not isinstance(error, TypeError | ValueError | LookupError | AttributeError | OSError) or not _is_ours(trace.tb_frame):
        return False
    import dis

    return dis.opname[trace.tb_frame.f_code.co_code[trace.tb_lasti]] == "RAISE_VARARGS"


def _is_ours(frame: FrameType, *others: str) -> bool:
    name: str = frame.f_globals.get("__name__", "")
    return name.partition(".")[0] in ("semiring", *others)


def callers_level() -> int:
    """Return the stack level, seen from the calling function, of the caller of this library or of a function of PyTorch that calls it."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and _is_ours(frame, "torch"):
        level, frame = level + 1, frame.f_back
    return level
