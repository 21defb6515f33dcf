"""Edge lists as text: every line is an edge, a header, a comment, or an error with its number."""

from __future__ import annotations

import codecs
import csv
import io
import re
import warnings
from collections.abc import Hashable, Iterable
from dataclasses import replace
from typing import Any

from semiring.common.errors import AssumptionWarning, GraphError, callers_level
from semiring.files.fields import NO_VALUE, Columns, Line, Named, WrongLine, header, is_index, number, numbers_for_names, numbers_of, said
from semiring.files.matrix_text import TextMatrix, matrix_of
from semiring.graphs import EdgeList, edges
from semiring.graphs.edge_table import direction_of, warn_of_unweighted

__all__ = ["HeaderWarning", "parse"]

_BYTE_ORDER_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32"),  # begins as that of UTF-16 does
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)


class HeaderWarning(UserWarning):
    """A first line that is probably a header is read as one."""


def parse(
    name: str,
    raw: bytes,
    separators: str,
    *,
    named: Named = Named(),  # noqa: B008  # a tuple of constants
    encoding: str | None = None,
    directed: bool | None = None,
    nodes: Iterable[Hashable] | None = None,
) -> EdgeList | TextMatrix:
    """Read a text: an edge a line, with source, target, a weight on all lines or on none, and the columns of a header; or a matrix.

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
    EdgeList or TextMatrix
        Edges come with their lines, and with the columns of numbers or texts that a header names. A matrix that may be edges is read as
        edges where the caller speaks of them.

    Raises
    ------
    GraphError
        Naming the first line that is neither an edge nor a header, nor empty, nor a comment, which begins with #.
    """
    try:
        lines, separator = _lines(_decoded(name, raw, encoding), separators)
        if not lines:
            raise GraphError(f"{name}: no edges in it")
        speaks_of_edges = named != Named() or directed is not None or nodes is not None
        matrix = matrix_of(lines, separator, titled=bool(named.columns))
        if matrix is not None and not (speaks_of_edges and matrix.may_be_edges):
            return matrix
        for _, fields in lines:
            del fields[said(fields) :]
        (at, first), *later = lines
        columns = header(lines, named)
        if columns is not None and named.weight_of_all is not None:
            columns = columns._replace(weight=None)
        if columns is None:
            if named.weight_of_all is not None:  # whatever the third field says
                lines = [(line, fields[: 2 if len(fields) == 3 else None]) for line, fields in lines]
            weighted = next((line for line, fields in lines if len(fields) == 3), None)
            columns = Columns(0, 1, None if weighted is None else 2, 3, f"line {weighted}")
        elif later:
            lines = later
        else:
            raise WrongLine(at, "a header, but no edges after it")
        found = [_edge(line, fields, columns) for line, fields in lines]
    except WrongLine as error:
        raise GraphError(f"{name}, line {error.line}: {error}") from None
    if columns.guessed:
        warnings.warn(f"{name}, line {at} is read as a header: {', '.join(first)}", HeaderWarning, stacklevel=callers_level())
    elif not columns.titles and _like_a_header(found):
        advice = f"if it is a header, pass source={first[0]!r}, target={first[1]!r}"
        warnings.warn(f"{name}, line {at} is read as an edge: {', '.join(first)}; {advice}", AssumptionWarning, stacklevel=callers_level())
    tails, heads, weights = map(list, zip(*found, strict=True))
    further = _further(lines, columns)
    if columns.titles and columns.weight is not None:
        further[columns.titles[columns.weight]] = weights
    ends = numbers_for_names([*tails, *heads])
    if named.weight_of_all is not None:
        weights = [named.weight_of_all] * len(found)
    elif columns.weight is None and warn_of_unweighted(further, f"{name}: "):
        weights = [1] * len(found)  # as the warning says
    listed = list(zip(ends[: len(found)], ends[len(found) :], weights, strict=True))
    try:
        if directed is None:
            directed = direction_of(further, lambda e: f"line {lines[e][0]}")
        graph = edges(listed, directed=directed, nodes=nodes)
    except GraphError as error:
        raise GraphError(f"{name}: {error}") from None
    return replace(graph, lines=[line for line, _ in lines], columns=further)


def _like_a_header(found: list[tuple[Any, Any, Any]]) -> bool:
    """Tell if the first edge may be a header: its ends have no digits, all others are integers, and no edge has a weight."""
    (u, v, weight), *later = found
    if weight is not None or not later or any(map(str.isdigit, u + v)):
        return False
    return all(is_index(tail) and is_index(head) for tail, head, _ in later)


def _further(lines: list[Line], columns: Columns) -> dict[str, list[Any]]:
    """The columns of a header that hold neither ends nor weights: numbers, NaN where a line has none, or else texts."""
    found: dict[str, list[Any]] = {}
    for i, title in enumerate(columns.titles):
        if title and title not in found and i not in (columns.source, columns.target, columns.weight):
            texts = [fields[i] if i < len(fields) else "" for _, fields in lines]
            found[title] = numbers_of(texts) or texts
    return found


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


def _lines(text: str, separators: str) -> tuple[list[Line], str]:
    """The lines that say something, with empty fields, and what separates these."""
    separator, found = "", []
    for at, line in enumerate(io.StringIO(text, newline=""), 1):  # str.splitlines would end lines at characters of names too
        line = line.rstrip("\r\n")
        if line.lstrip(" \t")[:1] in ("", "#"):
            continue
        separator = separator or _separator(at, line, separators)
        fields = _split(at, line, separator)
        if any(fields):
            found.append((at, fields))
    return found, separator


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


def _edge(line: int, fields: list[str], columns: Columns) -> tuple[Any, Any, Any]:
    """The source, the target and the weight, None without one, of a line."""
    if len(fields) > columns.width or len(fields) < 2:
        wanted = f"the header has {columns.width}" if columns.titles else "an edge is source, target and perhaps a weight"
        further = "; with further columns a header has to call two of them source and target" if not columns.titles else ""
        raise WrongLine(line, f"{wanted}, not {len(fields)} field{'s' * (len(fields) != 1)}{further if len(fields) > 3 else ''}")
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
        raise WrongLine(line, f"the weight {text!r} is no number{f', {edge}' * (text.lower() in NO_VALUE)}")
    return fields[source], fields[target], weight
