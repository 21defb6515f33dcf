"""Edge lists as text: every line is an edge, a header, a comment, or an error with its number."""

from __future__ import annotations

import codecs
import csv
import io
import math
import re
import warnings
from collections.abc import Hashable, Iterable, Iterator, Set
from dataclasses import replace
from typing import Any, NamedTuple

from semiring.common.errors import GraphError, callers_level, listing
from semiring.graphs import EdgeList, edges
from semiring.graphs.edge_table import SOURCES, TARGETS, no_such_column

__all__ = ["HeaderWarning", "Named", "WrongLine", "number", "numbers_for_names", "numbers_of", "parse"]

Line = tuple[int, list[str]]
"""The number of a line, and its fields."""

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


class Named(NamedTuple):
    """The columns that a caller names.

    Attributes
    ----------
    source, target : str or None
        None for what the header calls so.
    weight : str, number or None
        What every edge counts if it is a number; None is what the header calls so, or else what can only be that.
    """

    source: str | None = None
    target: str | None = None
    weight: str | float | None = None

    @property
    def columns(self) -> dict[str, str]:
        """What is named, by what it is for; there has to be a header."""
        return {what: name for what, name in self._asdict().items() if isinstance(name, str)}

    @property
    def weight_of_all(self) -> float | None:
        """What every edge counts, whatever its line says."""
        return None if isinstance(self.weight, str) else self.weight


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
    titles : sequence of str
        Of a header.
    """

    source: int
    target: int
    weight: int | None
    width: int
    said_by: str
    guessed: bool = False
    titles: tuple[str, ...] = ()


def parse(
    name: str,
    raw: bytes,
    separators: str,
    *,
    named: Named = Named(),  # noqa: B008  # a tuple of constants
    encoding: str | None = None,
    directed: bool = True,
    nodes: Iterable[Hashable] | None = None,
) -> EdgeList:
    """The edges of a text, one a line: source, target and, on all lines or on none, a weight; where there is a header, further columns.

    Parameters
    ----------
    name : str
        Of the file, for messages.
    raw : bytes
    separators : str
        What may stand between fields, each a character, the last one if no other is found in the first line. A space is any number of
        spaces and tabs.
    named : Named
    encoding : str, optional
        By default what a byte order mark says, else UTF-8.
    directed, nodes
        As for `edges`.

    Returns
    -------
    EdgeList
        With the line of each edge, and the columns of numbers or texts that a header names.

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
        columns = _header(lines, named)
        if columns is not None and named.weight_of_all is not None:
            columns = columns._replace(weight=None)
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
        warnings.warn(f"{name}, line {at} is read as a header: {', '.join(first)}", HeaderWarning, stacklevel=callers_level())
    tails, heads, weights = map(list, zip(*found, strict=True))
    further = _further(lines, columns)
    if columns.titles and columns.weight is not None:
        further[columns.titles[columns.weight]] = weights
    ends = numbers_for_names([*tails, *heads])
    if named.weight_of_all is not None:
        weights = [named.weight_of_all] * len(found)
    listed = list(zip(ends[: len(found)], ends[len(found) :], weights, strict=True))
    try:
        graph = edges(listed, directed=directed, nodes=nodes)
    except GraphError as error:
        raise GraphError(f"{name}: {error}") from None
    return replace(graph, lines=[line for line, _ in lines], columns=further)


def numbers_for_names(names: list[str]) -> list[Any]:
    """Vertices that are all integers as numbers."""
    return list(map(int, names)) if all(map(_is_index, names)) else names


def _further(lines: list[Line], columns: _Columns) -> dict[str, list[Any]]:
    """The columns of a header that hold neither ends nor weights: numbers, NaN where a line has none, or else texts."""
    found: dict[str, list[Any]] = {}
    for i, title in enumerate(columns.titles):
        if title and title not in found and i not in (columns.source, columns.target, columns.weight):
            texts = [fields[i] if i < len(fields) else "" for _, fields in lines]
            found[title] = numbers_of(texts) or texts
    return found


def numbers_of(texts: list[str]) -> list[int | float] | None:
    """What a column of numbers says; None if one of its entries is something else."""
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
        raise WrongLine(
            _next_line(before), f"not a text in {encoding.upper()} ({error.reason}); pass its own, as encoding='latin-1'"
        ) from None
    except (LookupError, UnicodeError) as error:
        raise GraphError(f"{name}: not a text in {encoding} ({error})") from None
    if found := re.search("[\0\ud800-\udfff]", text):
        raise WrongLine(_next_line(text[: found.start()]), f"{found[0]!r} is in no text; encoding='utf-16' reads what was written as that")
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


def _header(lines: list[Line], named: Named) -> _Columns | None:
    """The columns that the first line names, if it is a header and no edge."""
    (at, fields), later = lines[0], [others for _, others in lines[1:]]
    if named.columns:
        return _named_columns(lines, named)
    if len(fields) == 3 and _is_numeric(fields[2]):
        return None
    sources, targets = _named(fields, SOURCES), _named(fields, TARGETS)
    known = bool(sources and targets)
    if not known and not (len(fields) == 3 and all(fields) and later):
        return None
    source, target = (_only(at, fields, sources, "source"), _only(at, fields, targets, "target")) if known else (0, 1)
    weight = 3 - source - target if len(fields) == 3 else _weight_column(lines, {source, target}, named)
    columns = _Columns(source, target, weight, len(fields), "the header", titles=tuple(fields))
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


def _named_columns(lines: list[Line], named: Named) -> _Columns:
    """The columns of a header, of which a caller names at least one."""
    at, fields = lines[0]
    if (named.source is None) != (named.target is None):
        raise WrongLine(at, f"name both, source= and target=; the columns are {listing(fields)}")
    wanted = {what: _column(at, fields, what, title) for what, title in named.columns.items()}
    if "source" not in wanted:
        sources, targets = _named(fields, SOURCES), _named(fields, TARGETS)
        if sources and targets:
            wanted |= {"source": _only(at, fields, sources, "source"), "target": _only(at, fields, targets, "target")}
        elif len(fields) == 3:
            wanted["source"], wanted["target"] = (i for i in range(3) if i != wanted["weight"])
        else:
            raise WrongLine(at, f"no columns are called source and target; name them, by source= and target=, of {listing(fields)}")
    source, target, weight = wanted["source"], wanted["target"], wanted.get("weight")
    if source == target:
        raise WrongLine(at, f"source= and target= name one column, {fields[source]!r}")
    if weight is None:
        weight = 3 - source - target if len(fields) == 3 else _weight_column(lines, {source, target}, named)
    return _Columns(source, target, weight, len(fields), "the header", titles=tuple(fields))


def _column(at: int, fields: list[str], what: str, title: Any) -> int:
    """The only column of a title."""
    found = [i for i, field in enumerate(fields) if field == title]
    if not found:
        raise WrongLine(at, no_such_column(what, title, fields))
    return _only(at, fields, found, what)


def _named(fields: list[str], known: Set[str]) -> list[int]:
    """The columns whose titles are among these words."""
    return [i for i, field in enumerate(fields) if field.lower() in known]


def _only(at: int, fields: list[str], found: list[int], what: str) -> int:
    """The one column that was found."""
    if len(found) > 1:
        raise WrongLine(at, f"the columns {' and '.join(repr(fields[i]) for i in found)} could both be the {what}; rename one")
    return found[0]


def _weight_column(lines: list[Line], ends: set[int], named: Named) -> int | None:
    """Which column of a header holds the weights, beside others; none where no other column holds numbers."""
    (at, fields), later = lines[0], [others for _, others in lines[1:]]
    if named.weight_of_all is not None:
        return None
    if found := _named(fields, {"weight"}) or _named(fields, _WEIGHT):
        return _only(at, fields, found, "weight")
    others = [i for i in range(len(fields)) if i not in ends and later and all(i < len(f) and _is_numeric(f[i]) for f in later)]
    if others:
        could = " and ".join(repr(fields[i]) for i in others)
        raise WrongLine(at, f"no column is called weight, but {could} could be one; pass weight={fields[others[0]]!r}")
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
        wanted = f"the header has {columns.width}" if columns.titles else "an edge is source, target and perhaps a weight"
        further = "; with further columns a header has to call two of them source and target" if not columns.titles else ""
        raise WrongLine(line, f"{wanted}, not {len(fields)} field{'s' * (len(fields) != 1)}{further if len(fields) > 3 else ''}")
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
