"""Matrices to files, for the command line."""

from __future__ import annotations

import csv
import errno
import math
import os
import re
from collections.abc import Hashable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from semiring.algebra.definition import Semiring
from semiring.common.errors import GraphError
from semiring.files.formats import replacing

__all__ = ["OUTPUTS", "require_names", "require_writable", "write_file"]

Array = np.ndarray[Any, Any]

OUTPUTS = ".npy, .npz, .csv, .tsv"


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
                _write_table(new, "\t" if suffix == ".tsv" else ",", values, labels, semiring)
                return "the matrix and the labels"


def _write_table(path: Path, delimiter: str, values: Array, labels: Sequence[Hashable], semiring: Semiring) -> None:
    """Write a row of labels, and for each vertex a label and a row; `semiring.files.matrix_text` reads the table."""
    (zero,), (one,) = semiring.identities(values.dtype)
    words = {stored: meant for stored, meant in ((zero, semiring.zero), (one, semiring.one)) if meant in (math.inf, -math.inf)}
    plain_names = all(re.fullmatch(r"[^\t;,#]*", str(label)) for label in labels)
    with path.open("w", encoding="utf-8", newline="") as file:
        # csv alone would quote neither # nor other separators.

        table = csv.writer(
            file, delimiter=delimiter, lineterminator="\n", quoting=csv.QUOTE_MINIMAL if plain_names else csv.QUOTE_NONNUMERIC
        )
        table.writerow(["", *labels])
        for label, row in zip(labels, values, strict=True):
            entries = [int(entry) if isinstance(entry, bool) else entry for entry in row.tolist()]
            table.writerow([label, *(words.get(entry, entry) for entry in entries)])
