"""Graphs from files and matrices to files, for the command line."""

from __future__ import annotations

import csv
from collections.abc import Hashable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from semiring.algebra.definition import Semiring
from semiring.algebra.errors import GraphError, TooLargeError
from semiring.graphs import EdgeList, edges

__all__ = ["INPUTS", "OUTPUTS", "read_file", "write_file"]

Array = np.ndarray[Any, Any]

INPUTS = ".csv, .tsv, .txt (an edge list), .npy, .npz (NumPy, or a SciPy sparse array), .mtx (MatrixMarket)"
OUTPUTS = ".npy, .npz, .csv, .tsv"

_SOURCE = {"source", "src", "from", "u", "tail", "start", "origin"}
_TARGET = {"target", "dst", "to", "v", "head", "end", "destination", "dest"}
_WEIGHT = {"weight", "w", "distance", "dist", "length", "cost", "capacity", "value", "km", "time", "probability"}


def read_file(path: Path, *, directed: bool = True) -> Any:
    """The graph in a file: an `EdgeList`, an array or a SciPy sparse array.

    Raises
    ------
    GraphError
        Naming the file, and the line of an edge list.
    """
    match path.suffix.lower():
        case ".csv" | ".tsv" | ".txt":
            return _edge_list(path, directed)
        case ".npy" | ".npz" | ".mtx" if not directed:
            raise GraphError(f"{path}: a matrix says itself which edges go both ways; leave out --undirected")
        case ".npy":
            return _numpy(path)
        case ".npz":
            return _archive(path)
        case ".mtx":
            return _matrix_market(path)
    raise GraphError(f"{path}: the name does not end like a format that can be read: {INPUTS}")


def _edge_list(path: Path, directed: bool) -> EdgeList:
    """An edge list: source, target and perhaps a weight on each line, after a header or not; lines that start with # are skipped."""
    lines = _fields(path)
    first = next(lines, None)
    if first is None:
        raise GraphError(f"{path}: no edges in it")
    number, fields = first
    columns = _header(fields)
    found = [] if columns else [_edge(path, number, fields, None)]
    found += [_edge(path, number, fields, columns) for number, fields in lines]
    if not found:
        raise GraphError(f"{path}: a header, but no edges after it")
    if all(_is_integer(end) for u, v, _ in found for end in (u, v)):
        found = [(int(u), int(v), weight) for u, v, weight in found]
    return edges(found, directed=directed)


def _fields(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Line numbers and fields, without the empty lines and the comments."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise GraphError(f"{path}: not a text file in UTF-8 ({error.reason} at byte {error.start})") from None
    lines = text.splitlines(keepends=True)
    reader = csv.reader(lines, delimiter=_delimiter(path, lines), skipinitialspace=True)
    rows = enumerate(map(str.split, lines), 1) if path.suffix.lower() == ".txt" else ((reader.line_num, row) for row in reader)
    try:
        for number, row in rows:
            fields = [field.strip() for field in row]
            if any(fields) and not fields[0].startswith("#"):
                yield number, fields
    except csv.Error as error:
        raise GraphError(f"{path}, line {reader.line_num}: {error}") from None


def _delimiter(path: Path, lines: list[str]) -> str:
    if path.suffix.lower() == ".tsv":
        return "\t"
    first = next((line for line in lines if line.strip() and not line.startswith("#")), "")
    return next((d for d in (",", ";", "\t") if d in first), ",")  # spreadsheets of many countries write ;


def _header(fields: list[str]) -> tuple[int, int, int | None] | None:
    """Which columns hold source, target and weight, if this first line is a header."""
    names = [field.lower() for field in fields]
    source, target, weight = (next((i for i, name in enumerate(names) if name in known), None) for known in (_SOURCE, _TARGET, _WEIGHT))
    if source is not None and target is not None:
        return source, target, 3 - source - target if len(fields) == 3 else weight
    # Unknown names: a third field that is no number can only be a title.
    return (0, 1, 2) if len(fields) == 3 and fields[2] and _number(fields[2]) is None else None


def _edge(path: Path, line: int, fields: list[str], columns: tuple[int, int, int | None] | None) -> tuple[Any, Any, Any]:
    if columns is None:
        if len(fields) not in (2, 3):
            raise GraphError(f"{path}, line {line}: an edge is source, target and perhaps a weight, not {len(fields)} fields")
        columns = (0, 1, 2 if len(fields) == 3 else None)
    source, target, at = columns
    if max(source, target) >= len(fields) or not fields[source] or not fields[target]:
        raise GraphError(f"{path}, line {line}: an edge needs a source and a target")
    text = fields[at] if at is not None and at < len(fields) else ""
    weight = _number(text)
    if text and (weight is None or weight != weight):
        raise GraphError(f"{path}, line {line}: the weight {text!r} is no number")
    return fields[source], fields[target], weight


def _is_integer(text: Any) -> bool:
    # A leading zero or sign is part of a label: 007 and 7 differ.
    return str(text).isdecimal() and str(int(text)) == text


def _number(text: str) -> int | float | None:
    for kind in (int, float):
        try:
            return kind(text) if "_" not in text else None  # Python would read 1_000
        except ValueError:
            continue
    return None


def _numpy(path: Path) -> Any:
    with _told(path, "not a NumPy array of numbers"):
        return np.load(path, allow_pickle=False)


def _archive(path: Path) -> Any:
    # NumPy leaves a file open that it cannot read.
    with _told(path, "not an archive of NumPy arrays"), path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
        names = list(archive.files)
        if "format" not in names:
            if len(names) == 1 and isinstance(array := archive[names[0]], np.ndarray):
                return array
            raise GraphError(f"{path}: one array is wanted, but it holds {len(names)}: {', '.join(names)}")
    try:
        from scipy.sparse import load_npz
    except ImportError:
        raise GraphError(f'{path}: a SciPy sparse array needs SciPy: pip install "semiring[graphs]"') from None
    with _told(path, "not a SciPy sparse array"):
        (graph := load_npz(path)).check_format(full_check=True)  # indices beyond the matrix too
        return graph


def _matrix_market(path: Path) -> Any:
    try:
        from scipy.io import mmread
    except ImportError:
        raise GraphError(f'{path}: MatrixMarket files need SciPy: pip install "semiring[graphs]"') from None
    with _told(path, "not a MatrixMarket file"):
        return mmread(path, spmatrix=False)


@contextmanager
def _told(path: Path, what: str) -> Iterator[None]:
    """Says of a file what it is not, and why, without NumPy's advice to trust it: a pickle runs whatever code is in it."""
    try:
        yield
    except (GraphError, OSError):
        raise
    except MemoryError:
        raise TooLargeError(f"{path}: what it announces does not fit the memory") from None
    except Exception as error:  # those of NumPy, SciPy, zipfile and their decompressors share no class
        why = "it holds Python objects, or nothing that is read without trusting it" if "pickle" in str(error) else str(error)
        raise GraphError(f"{path}: {what} ({why or type(error).__name__})") from None


def write_file(path: Path, values: Array, labels: Sequence[Hashable], semiring: Semiring, via: Array | None = None) -> str:
    """Write a matrix: alone (.npy), with labels and construction matrix (.npz), or as a table with labels (.csv, .tsv).

    A table says inf where an integer stands for that, and 1 and 0 for truth values.

    Returns
    -------
    str
        What the file holds.

    Raises
    ------
    GraphError
        For another ending.
    """
    match path.suffix.lower():
        case ".npy":
            np.save(path, values)
            return "the matrix"
        case ".npz":
            if via is None:
                np.savez_compressed(path, values=values, labels=np.array(labels))
                return "the matrix and the labels"
            np.savez_compressed(path, values=values, labels=np.array(labels), via=via)
            return "the matrix, the labels and the construction matrix"
        case ".csv" | ".tsv" as suffix:
            zero = semiring.identities(values.dtype)[0][0]
            with path.open("w", encoding="utf-8", newline="") as file:
                table = csv.writer(file, delimiter="," if suffix == ".csv" else "\t", lineterminator="\n")
                table.writerow(["", *labels])
                for label, row in zip(labels, values, strict=True):
                    plain = (row.astype(int) if row.dtype == bool else row).tolist()
                    table.writerow([label, *(semiring.zero if entry == zero and row.dtype != bool else entry for entry in plain)])
            return "the matrix and the labels"
    raise GraphError(f"{path}: the name does not end like a format that can be written: {OUTPUTS}")
