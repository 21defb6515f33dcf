"""Edge lists as text: every line is an edge, a header, a comment, or an error with its number."""

from __future__ import annotations

import codecs
import csv
import io
import re
import warnings
from dataclasses import replace
from typing import Any

from semiring.common.errors import AssumptionWarning, GraphError, callers_level
from semiring.files.decimals import has_decimal_comma, not_a_number, with_points
from semiring.files.fields import NO_VALUE, Asked, Line, Positions, WrongLine, header, is_index, number, numbers_for_names, numbers_of, said
from semiring.files.matrix_text import TextMatrix, matrix_of
from semiring.graphs import EdgeList, edges
from semiring.graphs.edge_table import direction_of, warn_of_unweighted

__all__ = ["HeaderWarning", "parse", "warn"]

_BYTE_ORDER_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32"),  # must precede UTF-16, whose mark is a prefix
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)


class HeaderWarning(UserWarning):
    """The first line is probably a header, and is read as one."""


def parse(name: str, raw: bytes, separators: str, asked: Asked = Asked()) -> EdgeList | TextMatrix:  # noqa: B008  # a tuple of constants
    """Read a text with an edge on each line, perhaps after a header, or a matrix.

    A line has source, target, a weight (on all lines or on none), and the columns of the header. `separators` are the possible separators
    of fields; the last one is the default, and a space matches any number of spaces and tabs. The encoding is by default the one of the
    byte order mark, or UTF-8.

    Edges come with their lines, and with the columns of numbers or texts that a header names. A text that may be either is read as
    the caller's ``matrix=`` says, as edges if another option is for edges, or else with an `AssumptionWarning`. A `GraphError` begins with
    the `name` of the file and names the first wrong line; empty lines and lines that begin with # are skipped.
    """
    if asked.decimal not in (None, ".", ","):
        raise GraphError(f"decimal= is '.' or ',', not {asked.decimal!r}")
    try:
        lines, separator = _lines(_decoded(name, raw, asked.encoding), separators, asked.decimal)
        if not lines:
            raise GraphError(f"{name}: the file has no edges")
        as_written = dict(lines)
        lines = with_points(lines, separator, asked.decimal)
        matrix = None if asked.matrix is False else matrix_of(lines, titled=bool(asked.columns))
        if asked.matrix and matrix is None:
            raise GraphError(f"{name}: matrix=True is for a square table of numbers, with or without names, which the file is not")
        if matrix is not None:
            speaks_of_edges = asked._replace(encoding=None, decimal=None, matrix=None) != Asked()
            if asked.matrix or (matrix.likely and not (speaks_of_edges and matrix.may_be_edges)):
                if matrix.otherwise and not asked.matrix:
                    warn(f"{name} is read as {_size(matrix)}; {matrix.otherwise}")
                return matrix
            if matrix.otherwise and not speaks_of_edges:
                warn(f"{name} is read as edges, one a line; if the lines are the rows of {_size(matrix)}, pass matrix=True")
        for _, fields in lines:
            del fields[said(fields) :]
        (at, first), *later = lines
        columns = header(lines, asked)
        if columns is not None and asked.weight_of_all is not None:
            columns = columns._replace(weight=None)
        if columns is None:
            if asked.weight_of_all is not None:  # the third field may be anything
                lines = [(line, fields[: 2 if len(fields) == 3 else None]) for line, fields in lines]
            weighted = next((line for line, fields in lines if len(fields) == 3), None)
            columns = Positions(0, 1, None if weighted is None else 2, 3, f"line {weighted}")
        elif later:
            lines = later
        else:
            raise WrongLine(at, "a header without edges after it")
        found = [_edge(line, fields, columns) for line, fields in lines]
    except WrongLine as error:
        raise GraphError(f"{name}, line {error.line}: {error}") from None
    if columns.guessed:
        warnings.warn(f"{name}, line {at} is read as a header: {', '.join(first)}", HeaderWarning, stacklevel=callers_level())
    elif not columns.titles and _like_a_header(found):
        advice = f"if it is a header, pass source={first[0]!r}, target={first[1]!r}"
        warn(f"{name}, line {at} is read as an edge: {', '.join(first)}; {advice}")
    tails, heads = ([as_written[line][end] for line, _ in lines] for end in (columns.source, columns.target))
    weights = [weight for _, _, weight in found]
    further = _further(lines, columns)
    if columns.titles and columns.weight is not None:
        further[columns.titles[columns.weight]] = weights
    try:
        directed = direction_of(further, lambda e: f"line {lines[e][0]}") if asked.directed is None else asked.directed
    except GraphError as error:
        raise GraphError(f"{name}: {error}") from None
    if isinstance(directed, list):  # these edges go both ways
        both = [e for e in directed if tails[e] != heads[e]]
        tails, heads = tails + [heads[e] for e in both], heads + [tails[e] for e in both]
        lines, weights, *more = ([*column, *(column[e] for e in both)] for column in (lines, weights, *further.values()))
        further, directed = dict(zip(further, more, strict=True)), True
    ends = numbers_for_names([*tails, *heads])
    if asked.weight_of_all is not None:
        weights = [asked.weight_of_all] * len(lines)
    elif columns.weight is None and warn_of_unweighted(further, f"{name}: "):
        weights = [1] * len(lines)  # as the warning says
    listed = list(zip(ends[: len(lines)], ends[len(lines) :], weights, strict=True))
    try:
        graph = edges(listed, directed=directed, nodes=asked.nodes)
    except GraphError as error:
        raise GraphError(f"{name}: {error}") from None
    return replace(graph, lines=[line for line, _ in lines], columns=further)


def warn(message: str) -> None:
    """Warn of an assumption, at the caller's line."""
    warnings.warn(message, AssumptionWarning, stacklevel=callers_level())


def _size(matrix: TextMatrix) -> str:
    return f"a matrix of {len(matrix.array)} × {len(matrix.array)}"


def _like_a_header(found: list[tuple[Any, Any, Any]]) -> bool:
    """Return True if the first edge may be a header: names without digits, all others integers, and no weights."""
    (u, v, weight), *later = found
    if weight is not None or not later or any(map(str.isdigit, u + v)):
        return False
    return all(is_index(tail) and is_index(head) for tail, head, _ in later)


def _further(lines: list[Line], columns: Positions) -> dict[str, list[Any]]:
    """Collect the other columns of a header: numbers with NaN for empty fields, or else texts."""
    found: dict[str, list[Any]] = {}
    for i, title in enumerate(columns.titles):
        if title and title not in found and i not in (columns.source, columns.target, columns.weight):
            texts = [fields[i] if i < len(fields) else "" for _, fields in lines]
            found[title] = numbers_of(texts) or texts
    return found


def _decoded(name: str, raw: bytes, encoding: str | None) -> str:
    encoding = encoding or next((found for mark, found in _BYTE_ORDER_MARKS if raw.startswith(mark)), "utf-8")
    try:
        text = raw.decode(encoding).removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        before = error.object[: error.start].decode(encoding, "replace")
        raise WrongLine(
            _next_line(before), f"not a text in {encoding.upper()} ({error.reason}); pass another encoding, such as encoding='latin-1'"
        ) from None
    except (LookupError, UnicodeError) as error:
        raise GraphError(f"{name}: not a text in {encoding} ({error})") from None
    if found := re.search("[\0\ud800-\udfff]", text):
        raise WrongLine(_next_line(text[: found.start()]), f"{found[0]!r} does not occur in text; encoding='utf-16' may be the right one")
    return text


def _next_line(before: str) -> int:
    """Return the number of the line that continues after a text."""
    return sum(1 for _ in io.StringIO(before + ".", newline=""))


def _lines(text: str, separators: str, decimal: str | None) -> tuple[list[Line], str]:
    """List the lines that are neither empty nor comments, with their fields, and return the separator."""
    separator, found = "", []
    for at, line in enumerate(io.StringIO(text, newline=""), 1):  # str.splitlines also splits at characters of names
        line = line.rstrip("\r\n")
        if line.lstrip(" \t")[:1] in ("", "#"):
            continue
        separator = separator or _separator(at, line, separators, decimal)
        fields = _split(at, line, separator)
        if any(fields):
            found.append((at, fields))
    return found, separator


def _separator(at: int, line: str, separators: str, decimal: str | None) -> str:
    outside = re.sub(r"[ \t]*([,;])[ \t]*", r"\1", re.sub(r'"[^"]*"', "", line))
    found = [s for s in separators if s in outside and s != " "]
    if len(found) == 2 and found[1] == "," and decimal != ".":
        first, second, *others = (field.strip() for field in outside.split(found[0]))
        numbers = all(map(has_decimal_comma, (field for field in (first, second, *others) if "," in field)))
        if decimal or (numbers and (len(others) > 1 or "," not in first + second)):
            return found[0]
    if len(found) > 1:
        commas = "; if commas are decimal marks, pass decimal=','" * ("," in found)
        quoted = "put names with one of them in double quotes"
        raise WrongLine(at, f"{' and '.join(map(repr, found))} could both separate the fields; {quoted}{commas}")
    return found[0] if found else separators[-1]


def _split(at: int, line: str, separator: str) -> list[str]:
    if separator == " ":
        fields = line.replace("\t", " ").strip(" ").split(" ")
        if any(field.strip(',;"') != field for field in fields):
            raise WrongLine(
                at, "spaces separate the fields, so commas and quotes would be parts of names; use a .csv file for quoted names"
            )
        return [field for field in fields if field]
    if '"' not in line:
        return [field.strip(" \t") for field in line.split(separator)]
    try:
        (fields,) = csv.reader([line], delimiter=separator, skipinitialspace=True, strict=True)
    except csv.Error as error:
        raise WrongLine(at, f"the fields cannot be split ({error}); double quotes must close on the same line") from None
    return [field.strip(" \t") for field in fields]


def _edge(line: int, fields: list[str], columns: Positions) -> tuple[Any, Any, Any]:
    if len(fields) > columns.width or len(fields) < 2:
        wanted = f"the header has {columns.width}" if columns.titles else "an edge is source, target and perhaps a weight"
        header_helps = not columns.titles and len(fields) > 3
        further = "; for more columns, add a header that calls two of them source and target, and name the weight by weight=" * header_helps
        raise WrongLine(line, f"{wanted}, not {len(fields)} field{'s' * (len(fields) != 1)}{further}")
    source, target, at, *_ = columns
    if max(source, target) >= len(fields) or not fields[source] or not fields[target]:
        raise WrongLine(line, "an edge needs a source and a target")
    if at is None:
        return fields[source], fields[target], None
    text = fields[at] if at < len(fields) else ""
    edge = f"for the edge from {fields[source]!r} to {fields[target]!r}; fill it in, leave the line out, or pass weight=1 to count edges"
    if not text:
        raise WrongLine(line, f"no weight, though {columns.said_by} has one, {edge}")
    try:
        weight = number(text)
    except ValueError as error:
        raise WrongLine(line, f"the weight {error}") from None
    if weight is None:
        raise WrongLine(line, f"the weight {not_a_number(text)}{f', {edge}' * (text.lower() in NO_VALUE)}")
    return fields[source], fields[target], weight
