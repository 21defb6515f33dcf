"""Measurements in a file: dataclasses of numbers and strings as CSV, below comments that tell where they come from."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import astuple, fields
from pathlib import Path
from typing import Any, TypeVar, get_type_hints

__all__ = ["read_csv", "write_csv"]

Record = TypeVar("Record")


def write_csv(path: Path, records: Sequence[Any], comments: Sequence[str], floats: str = ".4g") -> None:
    """Write a row for each record, instances of one dataclass; `floats` is their format."""
    with path.open("w", encoding="utf-8", newline="") as file:
        file.writelines(f"# {line}\n" for line in comments)
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(field.name for field in fields(records[0]))
        writer.writerows([format(x, floats) if isinstance(x, float) else x for x in astuple(record)] for record in records)


def read_csv(path: Path, kind: type[Record]) -> tuple[list[str], list[Record]]:
    """The comments, and the records of that dataclass, which `write_csv` has written."""
    lines = path.read_text(encoding="utf-8").splitlines()
    comments = [line.removeprefix("# ") for line in lines if line.startswith("#")]
    types = get_type_hints(kind)
    return comments, [kind(**{name: types[name](x) for name, x in row.items()}) for row in csv.DictReader(lines[len(comments) :])]
