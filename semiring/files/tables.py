"""Graphs from files and matrices to files, for the command line."""

from __future__ import annotations

import csv
import errno
import os
import sys
from collections.abc import Hashable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from semiring.algebra.definition import Semiring
from semiring.common.errors import GraphError, TooLargeError
from semiring.files.edge_text import WrongLine, number, parse
from semiring.files.formats import replacing
from semiring.graphs import EdgeList

__all__ = ["INPUTS", "OUTPUTS", "STDIN", "read_file", "require_writable", "write_file"]

Array = np.ndarray[Any, Any]

INPUTS = ".csv, .tsv, .txt, or - for standard input (an edge list), .npy, .npz (NumPy, or a SciPy sparse array), .mtx (MatrixMarket)"
OUTPUTS = ".npy, .npz, .csv, .tsv"

STDIN = Path("-")
"""The name of the file that is none: standard input."""


def read_file(path: Path, *, directed: bool = True, encoding: str | None = None) -> Any:
    """The graph in a file, or, for ``-``, on standard input: an `EdgeList`, an array or a SciPy sparse array.

    Parameters
    ----------
    path : Path
    directed : bool
        Whether the edges of an edge list lead one way only.
    encoding : str, optional
        Of the text of an edge list; by default UTF-8, or what a byte order mark says.

    Raises
    ------
    GraphError
        Naming the file, and the line of an edge list.
    OSError
        Where there is no such file, or it cannot be read.
    """
    suffix = path.suffix.lower()
    if path == STDIN or suffix in (".csv", ".tsv", ".txt"):
        return _edge_list(path, directed, encoding)
    if suffix not in (".npy", ".npz", ".mtx"):
        raise GraphError(f"{path}: the name does not end like a format that can be read: {INPUTS}")
    if not directed:
        raise GraphError(f"{path}: a matrix says itself which edges go both ways; leave out --undirected")
    if encoding is not None:
        raise GraphError(f"{path}: an encoding is for edge lists; leave out --encoding")
    return _matrix_market(path) if suffix == ".mtx" else _numpy(path)


def _edge_list(path: Path, directed: bool, encoding: str | None) -> EdgeList:
    """An edge list in a file, or on standard input: whatever separates its fields."""
    if path == STDIN:
        if sys.stdin is None:
            raise GraphError("standard input is closed")
        return parse("standard input", sys.stdin.buffer.read(), "\t;, ", encoding=encoding, directed=directed)
    separators = {".csv": "\t;,", ".tsv": "\t", ".txt": " "}[path.suffix.lower()]
    return parse(str(path), path.read_bytes(), separators, encoding=encoding, directed=directed)


def _numpy(path: Path) -> Any:
    """The matrix in a .npy or .npz file."""
    kind = "a NumPy array of numbers" if path.suffix.lower() == ".npy" else "an archive of NumPy arrays"
    with _told_as(kind, path), path.open("rb") as file:
        found = np.load(file, allow_pickle=False)
        if isinstance(found, np.ndarray):
            return found
        names = list(found.files)
        if len(names) == 1:
            member = found[names[0]]
            if not isinstance(member, np.ndarray):  # NumPy gives the bytes of what is no array
                raise ValueError(f"{names[0]} is no array")
            return member
    if "format" not in names:
        raise GraphError(f"{path}: one array is wanted, but it holds {len(names)}: {', '.join(names)}")
    try:
        from scipy.sparse import load_npz
    except ImportError:
        raise GraphError(f'{path}: a SciPy sparse array needs SciPy: pip install "semiring[graphs]"') from None
    with _told_as("a SciPy sparse array", path):
        with path.open("rb") as file:
            matrix = load_npz(file)
        if matrix.format in ("csr", "csc", "bsr"):
            matrix.check_format(full_check=True)  # SciPy believes the indices in a file
        return matrix


def _matrix_market(path: Path) -> Any:
    """The matrix in a .mtx file."""
    try:
        from scipy.io import mmread
    except ImportError:
        raise GraphError(f'{path}: MatrixMarket files need SciPy: pip install "semiring[graphs]"') from None
    with _told_as("a MatrixMarket file", path):
        _require_numbers(path)
        return mmread(path, spmatrix=False)


def _require_numbers(path: Path) -> None:
    """Refuse a MatrixMarket file with an entry of which SciPy would take the beginning for a number, as of 1_000, 12 km or 0x10."""
    with path.open(encoding="latin-1") as file:
        form, field = [*file.readline().lower().split(), "", "", "", ""][2:4]
        if form not in ("coordinate", "array"):
            return  # whatever it is, SciPy says so
        lines = ((at, line.split()) for at, line in enumerate(file, 2) if line.strip() and not line.startswith("%"))
        next(lines, None)  # the size
        indices = 2 if form == "coordinate" else 0
        width = indices + {"pattern": 0, "complex": 2}.get(field, 1)
        for at, parts in lines:
            if len(parts) != width:
                raise WrongLine(at, f"{' '.join(parts)!r} is no entry of {width} numbers")
            for text in parts[indices:]:
                try:
                    value = number(text)
                except ValueError as error:
                    raise WrongLine(at, str(error)) from None
                if not isinstance(value, int) and (field == "integer" or (value is None and text.lower() != "nan")):
                    raise WrongLine(at, f"{text!r} is no {'integer' if field == 'integer' else 'number'}")


@contextmanager
def _told_as(kind: str, path: Path) -> Iterator[None]:
    """Says of a file that is damaged, or something else, what it is not."""
    try:
        yield
    except OSError:
        raise
    except MemoryError:
        raise TooLargeError(f"{path}: what it announces does not fit the memory") from None
    except WrongLine as error:
        raise GraphError(f"{path}, line {error.line}: {error}") from None
    except Exception as error:  # those of NumPy, SciPy, zipfile and zlib share no class
        # Without NumPy's advice to trust it: a pickle runs whatever code is in it.
        reason = "it holds Python objects, or nothing that is read without trusting it" if "pickle" in str(error) else str(error)
        raise GraphError(f"{path}: not {kind} ({reason or type(error).__name__})") from None


def require_writable(path: Path, source: Path, dtype: str | None = None) -> None:
    """Refuse, before anything is computed, what `write_file` could not write.

    Raises
    ------
    GraphError
        For another ending, for the file that is read, and for a dtype that the format has not.
    OSError
        Where a folder is not there, or what is there cannot be written.
    """
    if path.suffix.lower() not in OUTPUTS.split(", "):
        raise GraphError(f"{path}: the name does not end like a format that can be written: {OUTPUTS}")
    if dtype in ("object", "O") and path.suffix.lower() in (".npy", ".npz"):
        raise GraphError(f"{path}: objects of Python are written as text: .csv, .tsv")
    for problem, told in (
        (not path.parent.exists(), (errno.ENOENT, path.parent)),
        (not path.parent.is_dir(), (errno.ENOTDIR, path.parent)),
        (path.is_dir(), (errno.EISDIR, path)),
        (not os.access(path.parent, os.W_OK), (errno.EACCES, path.parent)),
        (path.exists() and not os.access(path, os.W_OK), (errno.EACCES, path)),
    ):
        if problem:
            raise OSError(told[0], os.strerror(told[0]), str(told[1]))
    if path.exists() and source.exists() and path.samefile(source):
        raise GraphError(f"{path}: the answer would take the place of the graph; give it another name")


def write_file(path: Path, values: Array, labels: Sequence[Hashable], semiring: Semiring, via: Array | None = None) -> str:
    """Write a matrix: alone (.npy), with labels and construction matrix (.npz), or as a table with labels (.csv, .tsv).

    A table says inf where an integer stands for that, and 1 and 0 for truth values. A file that is there is replaced when the new one is
    complete.

    Returns
    -------
    str
        What the file holds.
    """
    with replacing(path) as new:
        match path.suffix.lower():
            case ".npy":
                with new.open("wb") as file:
                    np.save(file, values)
                return "the matrix"
            case ".npz":
                members: dict[str, Any] = {"values": values, "labels": np.array(labels)} | ({} if via is None else {"via": via})
                with new.open("wb") as file:
                    np.savez_compressed(file, **members)
                return "the matrix and the labels" if via is None else "the matrix, the labels and the construction matrix"
            case suffix:
                _write_table(new, "\t" if suffix == ".tsv" else ",", values, labels, semiring)
                return "the matrix and the labels"


def _write_table(path: Path, delimiter: str, values: Array, labels: Sequence[Hashable], semiring: Semiring) -> None:
    """A row for each vertex, after a row and a column of labels."""
    zero = semiring.identities(values.dtype)[0][0]
    with path.open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file, delimiter=delimiter, lineterminator="\n")
        table.writerow(["", *labels])
        for label, row in zip(labels, values, strict=True):
            plain = (row.astype(int) if row.dtype == bool else row).tolist()
            table.writerow([label, *(semiring.zero if entry == zero and row.dtype != bool else entry for entry in plain)])
