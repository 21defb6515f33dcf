"""Matrices from text, and to files: square tables of numbers, with or without names of vertices in the first row, or row and column.

`matrix_of` reads the lines of a text; `write_file` writes a result of the command line.
"""

from __future__ import annotations

import csv
import errno
import math
import os
import re
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from semiring.algebra.definition import Semiring
from semiring.arrays.conversion import EXACT_IN_FLOAT64, Array
from semiring.arrays.exchange import ArrayLike
from semiring.common.errors import GraphError, listing
from semiring.common.units import counted
from semiring.files.decimals import not_a_number
from semiring.files.fields import Line, WrongLine, is_index, is_numeric, names_ends, number, numbers_for_names, said
from semiring.files.formats import replacing
from semiring.graphs.edge_table import weight_columns

__all__ = ["OUTPUTS", "TextMatrix", "matrix_of", "require_names", "require_writable", "write_file"]

OUTPUTS = ".npy, .npz, .csv, .tsv"

_Row = list[int | float | Fraction | None]  # entries, None for an empty cell
_FRACTION = re.compile(r"[+-]?[0-9]{1,999}/[1-9][0-9]{0,999}")

_NO_EDGES = "if its lines are edges, pass matrix=False"
_NO_NAMES = "if its first row and column are entries, fill its empty cells with inf"


@dataclass(eq=False, slots=True)
class TextMatrix(ArrayLike):
    """A matrix read from text; an empty cell is a missing entry.

    `otherwise` is advice for another meaning of the text, if one is possible. The lines of a matrix that `may_be_edges` are as short as
    edges; such lines are a `likely` matrix or likely edges.
    """

    otherwise: str = ""
    may_be_edges: bool = False
    likely: bool = True


def matrix_of(lines: list[Line], *, titled: bool) -> TextMatrix | None:
    """Read lines (with their empty fields) as the rows of a matrix; None for lines that are no square table of numbers.

    If `titled`, the caller says that the first line has titles of columns. A `WrongLine` is raised for faults in a text that can be nothing
    but a matrix.
    """
    if len(lines) > len(lines[0][1]) + 1:
        return None
    width = max(said(fields) for _, fields in lines)
    lines = [(line, fields[:width]) for line, fields in lines]
    return _with_names(lines, titled=titled) or (None if titled else _with_header(lines)) or _without_names(lines)


def _with_names(lines: list[Line], *, titled: bool) -> TextMatrix | None:
    """Read a matrix with names in its first row and column, in the order of the rows."""
    (at, (corner, *columns)), *later = lines
    names, n = [fields[0] for _, fields in later], len(columns)
    if sorted(columns) != sorted(names):
        if not corner and later and not titled and not names_ends(columns) and _rows([(line, fields[1:]) for line, fields in later], n):
            only = listing(sorted(set(columns) ^ set(names)) or columns, 3)
            raise WrongLine(
                at,
                "an edge needs a source and a target; a matrix needs the same names in its first row and column, "
                f"where {only} differ; if these are entries, fill empty cells with inf",
            )
        return None
    if corner and (n < 2 or is_numeric(corner)):
        return None
    if len(set(names)) < n:
        raise WrongLine(at, "the first row of the matrix names a vertex twice")
    edges = bool(corner) and n == 2
    cells = [(line, fields[1:]) for line, fields in later]
    rows = _rows(cells, n) if edges else [_entries(line, fields, n) for line, fields in cells]
    if rows is None:
        return None
    rows = [[row[i] for i in map(columns.index, names)] for row in rows] if columns != names else rows
    labels = tuple(numbers_for_names(names))
    if edges and is_numeric(columns[1]):
        return _matrix(rows, labels, _NO_EDGES, may_be_edges=True, likely=_rather_a_matrix(rows))
    # A symmetric matrix without names and with an empty diagonal also begins with an empty cell.
    entries = labels != tuple(range(n)) and all(map(is_numeric, names)) and all(row[i] is None for i, row in enumerate(rows))
    return _matrix(rows, labels, _NO_NAMES * (entries and not corner))


def _with_header(lines: list[Line]) -> TextMatrix | None:
    """Read a matrix with names in its first row alone, as pandas writes one without index."""
    (_, names), *later = lines
    n = len(names)
    if not 2 <= n == len(set(names)) == len(later) or not all(names) or names_ends(names):
        return None
    if any(is_numeric(name) and not is_index(name) for name in names) or (rows := _rows(later, n)) is None:
        return None
    labels = tuple(numbers_for_names(names))
    numbers, few = isinstance(labels[0], int), n <= 3
    sure = _rather_a_matrix(rows) and (not numbers or labels == tuple(range(n)) or _has_broken_ends(rows))
    weighted = bool(weight_columns(names))
    likely = few + weighted + (not sure) < 2
    said = (not sure or few) if likely else not (numbers or weighted)
    return _matrix(rows, labels, _NO_EDGES * said, may_be_edges=few, likely=likely)


def _without_names(lines: list[Line]) -> TextMatrix | None:
    n = len(lines[0][1])
    if not 2 <= n == len(lines) or (rows := _rows(lines, n)) is None:
        return None
    if n > 3:
        return _matrix(rows, None)
    symmetric = n == 3 or rows[0][1] == rows[1][0] or None in rows[0] + rows[1] or _has_broken_ends(rows)
    return _matrix(rows, None, _NO_EDGES, may_be_edges=True, likely=symmetric and _rather_a_matrix(rows))


def _rows(lines: list[Line], n: int) -> list[_Row] | None:
    """Return the entries of all rows; None if a row has something else than numbers."""
    try:
        return [_entries(line, fields, n) for line, fields in lines]
    except WrongLine:
        return None


def _entries(line: int, fields: list[str], n: int) -> _Row:
    if len(fields) != n:
        raise WrongLine(line, f"the matrix has {counted(n, 'column')}, and this row {counted(len(fields), 'entry', 'entries')}")
    row: _Row = []
    for text in fields:
        try:
            value = math.nan if text.lower() == "nan" else Fraction(text) if _FRACTION.fullmatch(text) else number(text)
        except ValueError as error:
            raise WrongLine(line, f"the entry {error}") from None
        if value is None and text:
            raise WrongLine(line, f"the entry {not_a_number(text)}")
        row.append(value)
    return row


def _rather_a_matrix(rows: list[_Row]) -> bool:
    """Return True for rows that are no edges: a diagonal of zeros, infinities or empty cells, or a vertex called 0.5."""
    diagonal = all(row[i] in (0, math.inf, -math.inf, None) or row[i] != row[i] for i, row in enumerate(rows))
    return diagonal or _has_broken_ends(rows)


def _has_broken_ends(rows: list[_Row]) -> bool:
    """Return True if rows read as edges would have a float as a vertex."""
    return any(isinstance(end, float) for row in rows for end in row[:2])


def _matrix(
    rows: list[_Row], labels: tuple[Hashable, ...] | None, otherwise: str = "", *, may_be_edges: bool = False, likely: bool = True
) -> TextMatrix:
    """Build the matrix in float64, in int64 if float64 would round an integer or all entries are 0 or 1, or as objects for fractions."""
    entries = [entry for row in rows for entry in row if entry is not None]
    integers = [entry for entry in entries if isinstance(entry, int)]
    missing = np.array([[entry is None for entry in row] for row in rows])
    array = np.array([[0 if entry is None else entry for entry in row] for row in rows], dtype=object)
    exact = any(isinstance(entry, Fraction) for entry in entries)
    if not exact and all(abs(entry) <= EXACT_IN_FLOAT64 for entry in integers):
        truth_values = len(integers) == len(entries) and set(integers) <= {0, 1}
        array = array.astype(np.int64 if truth_values else np.float64)
    elif len(integers) == len(entries) and max(map(abs, integers)) < 1 << 63:
        array = array.astype(np.int64)
    absent = missing if missing.any() else None
    return TextMatrix(array, absent, labels, numbers=True, otherwise=otherwise, may_be_edges=may_be_edges, likely=likely)


def require_writable(path: Path, source: Path, dtype: str | None = None) -> None:
    """Refuse, before any computation, a file that `write_file` could not write.

    A `GraphError` refuses another suffix, the input file, and a dtype that the format lacks; an `OSError` a missing or protected folder or
    file.
    """
    if path.suffix.lower() not in OUTPUTS.split(", "):
        raise GraphError(f"{path}: the name must end in {OUTPUTS}")
    if dtype in ("object", "O") and path.suffix.lower() in (".npy", ".npz"):
        raise GraphError(f"{path}: Python objects are written as text; use .csv or .tsv")
    for problem, (code, place) in (
        (not path.parent.exists(), (errno.ENOENT, path.parent)),
        (not path.parent.is_dir(), (errno.ENOTDIR, path.parent)),
        (path.is_dir(), (errno.EISDIR, path)),
        (not os.access(path.parent, os.W_OK), (errno.EACCES, path.parent)),
        (path.exists() and not os.access(path, os.W_OK), (errno.EACCES, path)),
    ):
        if problem:
            raise OSError(code, os.strerror(code), str(place))
    if path.exists() and source.exists() and path.samefile(source):
        raise GraphError(f"{path}: the answer would overwrite the graph; choose another name")


def require_names(path: Path, labels: Sequence[Hashable]) -> None:
    """Refuse, before any computation, a table with a line break in a name, because such a table cannot be read."""
    wrong = next((label for label in labels if re.search("[\r\n]", str(label))), None) if path.suffix.lower() in (".csv", ".tsv") else None
    if wrong is not None:
        raise GraphError(f"{path}: a table cannot have the name {wrong!r} with a line break; use .npz")


def write_file(path: Path, values: Array, labels: Sequence[Hashable], semiring: Semiring) -> str:
    """Write a matrix alone (.npy), with labels (.npz), or as a table with labels (.csv, .tsv), and describe the content.

    Tables write inf for an integer that stands for ∞, and 1 and 0 for truth values. A complete new file replaces an older one.
    """
    with replacing(path) as new:
        match path.suffix.lower():
            case ".npy":
                with new.open("wb") as file:
                    np.save(file, values)
                return "the matrix"
            case ".npz":
                with new.open("wb") as file:
                    np.savez_compressed(file, values=values, labels=np.array(labels))
                return "the matrix and the labels"
            case suffix:
                table = _table(values, labels, semiring)
                separator = "\t" if suffix == ".tsv" else ","
                # csv alone would quote neither # nor other separators.
                plain = all(re.fullmatch(r"[^\t;,#]*", str(label)) for label in labels)
                with new.open("w", encoding="utf-8", newline="") as text:
                    csv.writer(
                        text, delimiter=separator, lineterminator="\n", quoting=csv.QUOTE_MINIMAL if plain else csv.QUOTE_NONNUMERIC
                    ).writerows(table)
                return "the matrix and the labels"


def _table(values: Array, labels: Sequence[Hashable], semiring: Semiring) -> Iterator[list[Any]]:
    """Yield a row of labels, and for each vertex a label and a row; `matrix_of` reads the table."""
    (zero,), (one,) = semiring.identities(values.dtype)
    words = {stored: meant for stored, meant in ((zero, semiring.zero), (one, semiring.one)) if meant in (math.inf, -math.inf)}
    yield ["", *labels]
    for label, row in zip(labels, values, strict=True):
        entries = [int(entry) if isinstance(entry, bool) else entry for entry in row.tolist()]
        yield [label, *(words.get(entry, entry) for entry in entries)]
