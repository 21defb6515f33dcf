"""The fields of a line: the numbers in them, and the columns that a header names."""

from __future__ import annotations

import math
import re
from collections.abc import Hashable, Iterable, Set
from typing import Any, NamedTuple

from semiring.common.errors import listing
from semiring.graphs.edge_table import SOURCES, TARGETS, no_such_column, several_columns, weight_columns

__all__ = [
    "NO_VALUE", "Asked", "Line", "Positions", "WrongLine", "header", "is_index", "is_numeric", "names_ends", "number", "numbers_for_names",
    "numbers_of", "said",
]  # fmt: skip

Line = tuple[int, list[str]]
"""The number of a line, and its fields."""

NO_VALUE = frozenset({"none", "null", "nil", "na", "n/a", "nan", "<na>", "nat"})
"""Texts for a missing value in other programs, in small letters."""

_NO_TITLE = NO_VALUE | {"true", "false", "yes", "no"}

_INTEGER = re.compile(r"[+-]?[0-9]+")
_INDEX = re.compile(r"0|[1-9][0-9]{0,19}")
_FLOAT = re.compile(r"[+-]?(([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]+)?|inf|infinity)", re.IGNORECASE)


class WrongLine(Exception):
    """A fault of a line of a file."""

    def __init__(self, line: int, problem: str) -> None:
        super().__init__(problem)
        self.line = line


class Asked(NamedTuple):
    """The options of `read_edges`, None where the text decides; columns by title, or one number as the weight of every edge."""

    source: str | None = None
    target: str | None = None
    weight: str | float | None = None
    directed: bool | None = None
    nodes: Iterable[Hashable] | None = None
    encoding: str | None = None
    decimal: str | None = None
    matrix: bool | None = None

    @property
    def columns(self) -> dict[str, str]:
        """The named columns by role; these need a header."""
        named = {"source": self.source, "target": self.target, "weight": self.weight}
        return {what: name for what, name in named.items() if isinstance(name, str)}

    @property
    def weight_of_all(self) -> float | None:
        """The weight of every edge, if the caller passes a number."""
        return None if isinstance(self.weight, str) else self.weight


class Positions(NamedTuple):
    """The positions of source, target and weight (None for unweighted edges) in a line of at most `width` fields.

    `said_by` names the line in messages that has set them. `guessed` means that the header might have been an edge. `titles` are those
    of the header.
    """

    source: int
    target: int
    weight: int | None
    width: int
    said_by: str
    guessed: bool = False
    titles: tuple[str, ...] = ()


def header(lines: list[Line], asked: Asked) -> Positions | None:
    """Return the columns of the first line if it is a header, and None for an edge."""
    (at, fields), later = lines[0], [others for _, others in lines[1:]]
    if asked.columns:
        return _named_columns(lines, asked)
    if len(fields) == 3 and is_numeric(fields[2]):
        return None
    sources, targets = _named(fields, SOURCES), _named(fields, TARGETS)
    known = bool(sources and targets)
    if not known and not (len(fields) == 3 and all(fields) and later):
        return None
    source, target = (_only(at, fields, sources, "source"), _only(at, fields, targets, "target")) if known else (0, 1)
    weight = _weight_column(at, fields, {source, target}, asked)
    columns = Positions(source, target, weight, len(fields), "the header", guessed=not known, titles=tuple(fields))
    if len(fields) > 3 or (known and weight is not None):
        return columns
    # The line may still be an edge between two vertices, or one with a wrong weight.
    if {others[i] for others in later for i in (source, target) if i < len(others)} & {fields[source], fields[target]}:
        return None
    if len(fields) == 2:
        return columns._replace(guessed=min(map(len, fields)) == 1)  # u and v may be names of vertices
    if weight is None:
        title = fields[3 - source - target]
        if not _is_title(title, digits=known) and not (known and not title):  # as pandas writes its index
            return None
        if not known and any(len(others) == 3 and not is_numeric(others[2]) for others in later):
            return None
    if not known and (sources not in ([], [0]) or targets not in ([], [1])):
        raise WrongLine(
            at, f"a header, but which columns hold the two ends of each edge? Name them by source= and target=, of {listing(fields)}"
        )
    return columns


def _named_columns(lines: list[Line], asked: Asked) -> Positions:
    """Return the columns of a header, at least one of them named by the caller."""
    at, fields = lines[0]
    if (asked.source is None) != (asked.target is None):
        raise WrongLine(at, f"name both, source= and target=; the columns are {listing(fields)}")
    wanted = {what: _column(at, fields, what, title) for what, title in asked.columns.items()}
    if "source" not in wanted:
        sources, targets = _named(fields, SOURCES), _named(fields, TARGETS)
        if sources and targets:
            wanted |= {"source": _only(at, fields, sources, "source"), "target": _only(at, fields, targets, "target")}
        elif len(fields) == 3:
            wanted["source"], wanted["target"] = (i for i in range(3) if i != wanted["weight"])
        else:
            raise WrongLine(at, f"no columns are called source and target; name them by source= and target=, of {listing(fields)}")
    source, target, weight = wanted["source"], wanted["target"], wanted.get("weight")
    if source == target:
        raise WrongLine(at, f"source= and target= name the same column, {fields[source]!r}")
    if weight is None:
        weight = _weight_column(at, fields, {source, target}, asked)
    return Positions(source, target, weight, len(fields), "the header", titles=tuple(fields))


def _column(at: int, fields: list[str], what: str, title: Any) -> int:
    found = [i for i, field in enumerate(fields) if field == title]
    if not found:
        raise WrongLine(at, no_such_column(what, title, fields))
    return _only(at, fields, found, what)


def _named(fields: list[str], known: Set[str]) -> list[int]:
    return [i for i, field in enumerate(fields) if field.lower() in known]


def names_ends(fields: list[str]) -> bool:
    """Return True if titles name a source and a target."""
    return bool(_named(fields, SOURCES) and _named(fields, TARGETS))


def said(fields: list[str]) -> int:
    """Count the fields up to the last that is not empty."""
    return next((i for i in range(len(fields), 0, -1) if fields[i - 1]), 0)


def _only(at: int, fields: list[str], found: list[int], what: str) -> int:
    if len(found) > 1:
        raise WrongLine(at, several_columns(what, [fields[i] for i in found]))
    return found[0]


def _weight_column(at: int, fields: list[str], ends: set[int], asked: Asked) -> int | None:
    usual = weight_columns([field for i, field in enumerate(fields) if i not in ends])
    found = [i for i, field in enumerate(fields) if i not in ends and field in usual]
    if not found or asked.weight_of_all is not None:
        return found[0] if found else None
    return _only(at, fields, found, "weight")


def _is_title(text: str, *, digits: bool) -> bool:
    """Return True if a text that is not a number looks like a title, and False for a mistyped number (12 km, 0x10, None)."""
    return text[:1].isalpha() and text.lower() not in _NO_TITLE and (digits or not any(map(str.isdigit, text)))


def is_numeric(text: str) -> bool:
    """Return True for a number, in the range of floats or not, and for NaN."""
    return bool(_INTEGER.fullmatch(text) or _FLOAT.fullmatch(text)) or text.lower() == "nan"


def is_index(text: str) -> bool:
    """Return True for an integer in this library's notation; 007 is a name that differs from 7."""
    return bool(_INDEX.fullmatch(text)) and int(text) < 1 << 64


def numbers_for_names(names: list[str]) -> list[Any]:
    """Convert names to integers if all are integers."""
    return list(map(int, names)) if all(map(is_index, names)) else names


def numbers_of(texts: list[str]) -> list[int | float] | None:
    """Convert a column to numbers, NaN for empty fields; None if an entry is something else."""
    found: list[int | float] = []
    for text in texts:
        try:
            value = math.nan if text.lower() in ("", "nan") else number(text)
        except ValueError:
            return None
        if value is None:
            return None
        found.append(value)
    return found if any(value == value for value in found) else None


def number(text: str) -> int | float | None:
    """Convert a number in ASCII without separators of thousands; None for another text, such as nan, and ValueError beyond floats.

    >>> number("12"), number("-1e3"), number("inf"), number("1_000"), number("12 km")
    (12, -1000.0, inf, None, None)
    """
    if _INTEGER.fullmatch(text):
        try:
            return int(text)
        except ValueError:  # Python reads at most some thousands of digits
            raise ValueError(f"{text[:9]}… of {len(text)} characters is too long") from None
    if not _FLOAT.fullmatch(text):
        return None
    value = float(text)
    if math.isinf(value) and "i" not in text.lower():
        raise ValueError(f"{text} is beyond every float (write ∞ as inf)")
    if value == 0 and re.search("[1-9]", re.split("[eE]", text)[0]):
        raise ValueError(f"{text} is too close to 0 for a float")
    return value
