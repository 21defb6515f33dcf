"""Matrices as text: a square table of numbers, perhaps with the names of the vertices in its first row and column."""

from __future__ import annotations

import math
from collections.abc import Hashable

import numpy as np

from semiring.arrays.conversion import EXACT_IN_FLOAT64
from semiring.files.fields import Line, WrongLine, number, numbers_for_names
from semiring.graphs.array_like import ArrayLike

__all__ = ["matrix_of", "may_be_edges"]

_Row = list[int | float]


def matrix_of(lines: list[Line]) -> ArrayLike | None:
    """Read lines as the rows of a matrix; None for anything else, and for two or three rows that rather are edges.

    Raises
    ------
    WrongLine
        For names and entries that make no matrix, where the first line can be nothing else.
    """
    (at, first), *later = lines
    n = len(first)
    if n != len(lines) or n < 2:
        return None
    if first[0] == "" and first[1:] == [fields[0] for _, fields in later]:
        names = numbers_for_names(first[1:])
        if len(set(names)) < len(names):
            raise WrongLine(at, "the first row of the matrix names a vertex twice")
        return _matrix([_entries(line, fields[1:], n - 1) for line, fields in later], tuple(names))
    try:
        rows = [_entries(line, fields, n) for line, fields in lines]
    except WrongLine:
        return None
    found = _matrix(rows)
    return None if may_be_edges(found) and not _rather_a_matrix(rows) else found


def may_be_edges(matrix: ArrayLike) -> bool:
    """Tell whether the lines of a matrix are as short as edges, and have no names."""
    return matrix.labels is None and len(matrix.array) <= 3


def _entries(line: int, fields: list[str], n: int) -> _Row:
    """The numbers of a row."""
    if len(fields) != n:
        raise WrongLine(line, f"the matrix has {n} columns, and this row {len(fields)} entries")
    row = []
    for text in fields:
        try:
            value = math.nan if text.lower() == "nan" else number(text)
        except ValueError as error:
            raise WrongLine(line, f"the entry {error}") from None
        if value is None:
            raise WrongLine(line, f"the entry {text!r} is no number")
        row.append(value)
    return row


def _rather_a_matrix(rows: list[_Row]) -> bool:
    """Tell two or three rows of a matrix from edges: by a diagonal of zeros or infinities, or by a vertex called 0.5."""
    diagonal = all(row[i] in (0, math.inf, -math.inf) or row[i] != row[i] for i, row in enumerate(rows))
    if len(rows) == 2:
        diagonal = diagonal and rows[0][1] == rows[1][0]
    return diagonal or any(isinstance(end, float) for row in rows for end in row[:2])


def _matrix(rows: list[_Row], labels: tuple[Hashable, ...] | None = None) -> ArrayLike:
    """The matrix of float64; integers stay integers where float64 would round one, and where all are 0 or 1."""
    integers = [entry for row in rows for entry in row if isinstance(entry, int)]
    array = np.array(rows, dtype=object)
    if all(abs(entry) <= EXACT_IN_FLOAT64 for entry in integers):
        truth_values = len(integers) == array.size and set(integers) <= {0, 1}
        array = array.astype(np.int64 if truth_values else np.float64)
    elif len(integers) == array.size and max(map(abs, integers)) < 1 << 63:
        array = array.astype(np.int64)
    return ArrayLike(array, labels=labels, numbers=True)
