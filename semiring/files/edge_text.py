"""Edge lists as text: every line is an edge, a header, a comment, or an error with its number."""

from __future__ import annotations

import codecs
import csv
import io
import math
import re
import warnings
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple

from semiring.common.errors import GraphError
from semiring.graphs import EdgeList, edges

__all__ = ["HeaderWarning", "WrongLine", "number", "parse"]

Line = tuple[int, list[str]]
"""The number of a line, and its fields."""

_SOURCE = {"source", "src", "from", "u", "tail", "start", "origin"}
_TARGET = {"target", "dst", "to", "v", "head", "end", "destination", "dest"}
_WEIGHT = {"weight", "w", "distance", "dist", "length", "cost", "capacity", "value", "km", "time", "probability"}
_NO_VALUE = {"none", "null", "nil", "na", "n/a", "true", "false", "yes", "no"}

_BYTE_ORDER_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32"),  # begins as that of UTF-16 does
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)

_INTEGER = re.compile(r"[+-]?[0-9]+")
_INDEX = re.compile(r"0|[1-9][0-9]{0,19}")
_FLOAT = re.compile(r"[+-]?(([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]+)?|inf|infinity)", re.IGNORECASE)


class HeaderWarning(UserWarning):
    """A first line that is probably a header is read as one."""


class WrongLine(Exception):
    """What is wrong with a line of a file.

    Attributes
    ----------
    line : int
    """

    def __init__(self, line: int, problem: str) -> None:
        super().__init__(problem)
        self.line = line


class _Columns(NamedTuple):
    """Which fields of a line are what.

    Attributes
    ----------
    source, target : int
    weight : int or None
        None where edges have no weights.
    width : int
        The most fields of a line.
    said_by : str
        What a message names where a line differs from it.
    guessed : bool
        Whether the line that said so might have been an edge.
    """

    source: int
    target: int
    weight: int | None
    width: int
    said_by: str
    guessed: bool = False


def parse(name: str, raw: bytes, separators: str, *, encoding: str | None = None, directed: bool = True) -> EdgeList:
    """The edges of a text, one a line: source, target and, on all lines or on none, a weight.

    Parameters
    ----------
    name : str
        Of the file, for messages.
    raw : bytes
    separators : str
        What may stand between fields, each a character, the last one if no other is found in the first line. A space is any number of
        spaces and tabs.
    encoding : str, optional
        By default what a byte order mark says, else UTF-8.
    directed : bool

    Returns
    -------
    EdgeList
        With the line of each edge.

    Raises
    ------
    GraphError
        Naming the first line that is neither an edge nor a header, nor empty, nor a comment, which begins with #.
    """
    try:
        lines = list(_lines(_decoded(name, raw, encoding), separators))
        if not lines:
            raise GraphError(f"{name}: no edges in it")
        (at, first), *later = lines
        columns = _header(lines)
        if columns is None:
            columns = _Columns(0, 1, 2 if len(first) == 3 else None, 3, f"line {at}")
        elif later:
            lines = later
        else:
            raise WrongLine(at, "a header, but no edges after it")
        found = [_edge(line, fields, columns) for line, fields in lines]
    except WrongLine as error:
        raise GraphError(f"{name}, line {error.line}: {error}") from None
    if columns.guessed:
        warnings.warn(f"{name}, line {at} is read as a header: {', '.join(first)}", HeaderWarning, stacklevel=2)
    if all(_is_index(u) and _is_index(v) for u, v, _ in found):
        found = [(int(u), int(v), weight) for u, v, weight in found]
    return replace(edges(found, directed=directed), lines=[line for line, _ in lines])


def number(text: str) -> int | float | None:
    """A number as it is usually written, in ASCII and without separators of thousands; None for another text, such as nan.

    Examples
    --------
    >>> number("12"), number("-1e3"), number("inf"), number("1_000"), number("12 km")
    (12, -1000.0, inf, None, None)

    Raises
    ------
    ValueError
        For a number that no float is near.
    """
    if _INTEGER.fullmatch(text):
        try:
            return int(text)
        except ValueError:  # Python reads some thousands of digits
            raise ValueError(f"{text[:9]}… of {len(text)} characters is too long") from None
    if not _FLOAT.fullmatch(text):
        return None
    value = float(text)
    if math.isinf(value) and "i" not in text.lower():
        raise ValueError(f"{text} is beyond every float (∞ is written inf)")
    if value == 0 and re.search("[1-9]", re.split("[eE]", text)[0]):
        raise ValueError(f"{text} is too close to 0 for a float")
    return value


def _decoded(name: str, raw: bytes, encoding: str | None) -> str:
    """The text of bytes, of which each has to mean a character."""
    encoding = encoding or next((found for mark, found in _BYTE_ORDER_MARKS if raw.startswith(mark)), "utf-8")
    try:
        text = raw.decode(encoding).removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        before = error.object[: error.start].decode(encoding, "replace")
        raise WrongLine(_next_line(before), f"not a text in {encoding.upper()} ({error.reason}); --encoding names another one") from None
    except (LookupError, UnicodeError) as error:
        raise GraphError(f"{name}: not a text in {encoding} ({error})") from None
    if found := re.search("[\0\ud800-\udfff]", text):
        raise WrongLine(_next_line(text[: found.start()]), f"{found[0]!r} is in no text; --encoding utf-16 reads what was written as that")
    return text


def _next_line(before: str) -> int:
    """The number of the line that goes on after a text."""
    return sum(1 for _ in io.StringIO(before + ".", newline=""))


def _lines(text: str, separators: str) -> Iterator[Line]:
    """The lines that say something, without empty fields at the end."""
    separator = ""
    for at, line in enumerate(io.StringIO(text, newline=""), 1):  # str.splitlines would end lines at characters of names too
        line = line.rstrip("\r\n")
        if line.lstrip(" \t")[:1] in ("", "#"):
            continue
        separator = separator or _separator(at, line, separators)
        fields = _split(at, line, separator)
        while fields and not fields[-1]:
            fields.pop()
        if fields:
            yield at, fields


def _separator(at: int, line: str, separators: str) -> str:
    """What separates the fields of a text that begins with this line."""
    outside = re.sub(r"[ \t]*([,;])[ \t]*", r"\1", re.sub(r'"[^"]*"', "", line))
    found = [s for s in separators if s in outside and s != " "]
    if len(found) > 1:
        raise WrongLine(at, f"{' and '.join(map(repr, found))} could both separate its fields; put names that contain one in double quotes")
    return found[0] if found else separators[-1]


def _split(at: int, line: str, separator: str) -> list[str]:
    """The fields of a line."""
    if separator == " ":
        fields = line.replace("\t", " ").strip(" ").split(" ")
        if any(field.strip(',;"') != field for field in fields):
            raise WrongLine(
                at, "spaces separate its fields, so that commas and quotes would belong to names; a file that needs them is a .csv"
            )
        return [field for field in fields if field]
    if '"' not in line:
        return [field.strip(" \t") for field in line.split(separator)]
    try:
        (fields,) = csv.reader([line], delimiter=separator, skipinitialspace=True, strict=True)
    except csv.Error as error:
        raise WrongLine(at, f"its fields cannot be told ({error}); what is in double quotes ends on its line") from None
    return [field.strip(" \t") for field in fields]


def _header(lines: list[Line]) -> _Columns | None:
    """The columns that the first line names, if it is a header and no edge."""
    (at, fields), later = lines[0], [others for _, others in lines[1:]]
    if len(fields) == 3 and _is_numeric(fields[2]):
        return None
    sources, targets = _named(fields, _SOURCE), _named(fields, _TARGET)
    known = bool(sources and targets)
    if not known and not (len(fields) == 3 and all(fields) and later):
        return None
    source, target = (_only(at, fields, sources, "source"), _only(at, fields, targets, "target")) if known else (0, 1)
    weight = 3 - source - target if len(fields) == 3 else _weight_column(lines, {source, target})
    columns = _Columns(source, target, weight, len(fields), "the header")
    titled = _named(fields, _WEIGHT) == [weight]
    if len(fields) > 3 or (known and titled):
        return columns
    # What is left might be an edge, of these two vertices or with a weight that is wrong.
    if {others[i] for others in later for i in (source, target) if i < len(others)} & {fields[source], fields[target]}:
        return None
    if titled:
        return columns
    if weight is None:
        return columns._replace(guessed=min(map(len, fields)) == 1)  # u and v are names of vertices too
    if not _is_title(fields[weight], digits=known):
        return None
    alike = not known and any(len(others) == 3 and not _is_numeric(others[2]) for others in later)
    return None if alike else columns._replace(guessed=not known)


def _named(fields: list[str], known: set[str]) -> list[int]:
    """The columns whose titles are among these words."""
    return [i for i, field in enumerate(fields) if field.lower() in known]


def _only(at: int, fields: list[str], found: list[int], what: str) -> int:
    """The one column that was found."""
    if len(found) > 1:
        raise WrongLine(at, f"the columns {' and '.join(repr(fields[i]) for i in found)} could both be the {what}; rename one")
    return found[0]


def _weight_column(lines: list[Line], ends: set[int]) -> int | None:
    """Which column of a header holds the weights, beside others; none where no other column holds numbers."""
    (at, fields), later = lines[0], [others for _, others in lines[1:]]
    if found := _named(fields, {"weight"}) or _named(fields, _WEIGHT):
        return _only(at, fields, found, "weight")
    others = [i for i in range(len(fields)) if i not in ends and later and all(i < len(f) and _is_numeric(f[i]) for f in later)]
    if others:
        raise WrongLine(
            at, f"no column is called weight, but {' and '.join(repr(fields[i]) for i in others)} could be one; rename or remove"
        )
    return None


def _is_title(text: str, *, digits: bool) -> bool:
    """Whether a field that is no number is rather the title of a column than a number gone wrong (12 km, 0x10, None)."""
    return text[:1].isalpha() and text.lower() not in _NO_VALUE and (digits or not any(map(str.isdigit, text)))


def _is_numeric(text: str) -> bool:
    """Whether a field is a number, if one that no float is near, or NaN."""
    return bool(_INTEGER.fullmatch(text) or _FLOAT.fullmatch(text)) or text.lower() == "nan"


def _is_index(text: str) -> bool:
    """Whether a name is an integer as this library writes it; a leading zero or sign is part of a name: 007 and 7 differ."""
    return bool(_INDEX.fullmatch(text)) and int(text) < 1 << 64


def _edge(line: int, fields: list[str], columns: _Columns) -> tuple[Any, Any, Any]:
    """The source, the target and the weight, None without one, of a line."""
    if len(fields) > columns.width or len(fields) < 2:
        wanted = "an edge is source, target and perhaps a weight" if columns.said_by != "the header" else f"the header has {columns.width}"
        raise WrongLine(line, f"{wanted}, not {len(fields)} field{'s' * (len(fields) != 1)}")
    source, target, at, *_ = columns
    if max(source, target) >= len(fields) or not fields[source] or not fields[target]:
        raise WrongLine(line, "an edge needs a source and a target")
    if at is None:
        if columns.said_by != "the header" and len(fields) == 3:
            raise WrongLine(line, f"a weight, {fields[2]!r}, though {columns.said_by} has none; all edges have one, or none")
        return fields[source], fields[target], None
    text = fields[at] if at < len(fields) else ""
    if not text:
        raise WrongLine(line, f"no weight, though {columns.said_by} has one; all edges have one, or none")
    try:
        weight = number(text)
    except ValueError as error:
        raise WrongLine(line, f"the weight {error}") from None
    if weight is None:
        raise WrongLine(line, f"the weight {text!r} is no number")
    return fields[source], fields[target], weight
