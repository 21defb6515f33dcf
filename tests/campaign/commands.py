"""The command line: edge lists as people write them, what is printed and written; in this process, and in one of its own."""

from __future__ import annotations

import contextlib
import csv
import io
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from semiring.files.reading import read_file
from tests.campaign.answers import Answer, answer_for
from tests.campaign.cases import Case, Complaint, Entry, attempt, quiet, told
from tests.campaign.lawful import catalogue
from tests.campaign.oracles import difference
from tests.campaign.products import draw_size
from tests.campaign.subjects import Array, Subject
from tests.campaign.ways import check_path

__all__ = ["COMMAND_LINE", "ENTRIES"]

Rng = np.random.Generator

_SPOILT = ("12 km", "0x10", "1_000", "None", "1,500", "--", "nan", "1e400")
"""Weights that are none."""

_HEADERS = (
    *(("from", "to", "km"), ("source", "target", "weight"), ("u", "v", "w"), ("Origin", "Destination", "Cost")),
    *(("start", "end", "Length_m"), ("tail", "head", "minutes"), ("src", "dst", "price (EUR)")),
)


def _draw(rng: Rng, _: Subject, device: str) -> Case:
    """An edge list over one of the semirings that are built in; vertices are numbers, or names with spaces, quotes and commas."""
    name = str(rng.choice(["MIN_PLUS", "MIN_PLUS", "MAX_MIN", "MAX_PLUS", "MIN_MAX"]))
    subject, n = catalogue(name, "float64"), max(1, draw_size(rng, 17))
    a = subject.draw(rng, (n, n), zeros=[0.5, 0.8][rng.integers(2)], harmless=rng.random() < 0.9)
    options: dict[str, Any] = {"suffix": str(rng.choice([".csv", ".tsv", ".txt"]))}
    if rng.random() < 0.5:
        options["header"] = int(rng.integers(len(_HEADERS) - (options["suffix"] == ".txt")))  # spaces separate fields there
        if rng.random() < 0.3:
            options["key"] = str(rng.choice(["road_id", "year", "Id", "toll"]))
    if rng.random() < 0.5:
        options["names"] = ("plain", "odd")[rng.integers(2)] if options["suffix"] != ".txt" else "plain"
    if name == "MIN_PLUS" and rng.random() < 0.5:
        options["from"] = int(rng.integers(n))
        if rng.random() < 0.7:
            options["to"] = int(rng.integers(n))
    if rng.random() < 0.6:
        options["output"] = str(rng.choice([".npz", ".npy", ".csv", ".tsv"]))
    if rng.random() < 0.3:
        options["method"] = str(rng.choice(["iterative", "blocked", "recursive"]))
    if rng.random() < 0.15:
        options["dtype"] = str(rng.choice(["float32", "int32", "int64"]))
    if rng.random() < 0.1:
        options["undirected"] = True
    if rng.random() < 0.2:
        options["remarks"] = True
    if rng.random() < 0.25:
        options["spoilt"] = (int(rng.integers(3)), str(rng.choice(_SPOILT)))
    return Case("command", subject, {"a": a}, {"a": ("n", "n")}, {}, options, "cpu")


def _names(case: Case, n: int) -> list[str]:
    style = case.options.get("names")
    if style == "odd":
        return [(f"St. {i}", f'the "{i}"', f"a, b {i}", f"ø{i}", f"{i:03d}")[i % 5] for i in range(n)]
    return [f"v{i}" if style else str(i) for i in range(n)]


def _lines(case: Case) -> tuple[list[list[str]], list[tuple[int, int]], int | None]:
    """The fields of each line, the edges in their order, and the number of the line that is spoilt."""
    (a,), options = case.arrays["a"], case.options
    n, names = len(a), _names(case, len(a))
    rows, columns = np.nonzero(a != case.subject.zeros[0])
    order = np.random.default_rng(n).permutation(len(rows))
    edges = [(int(rows[i]), int(columns[i])) for i in order]
    lines: list[list[str]] = [list(_HEADERS[options["header"]])] if "header" in options else []
    spoilt = None
    for number, (i, j) in enumerate(edges):
        weight = f"{a[i, j]:g}"
        if "spoilt" in options and number == options["spoilt"][0]:
            weight, spoilt = options["spoilt"][1], len(lines) + 1
        lines.append([names[i], names[j], weight])
    if "key" in options:
        lines = [[options["key"] if at == 0 else str(at), *line] for at, line in enumerate(lines)]
    return lines, edges, spoilt


def _text(case: Case, lines: list[list[str]]) -> str:
    suffix, out = case.options.get("suffix", ".csv"), io.StringIO()
    if suffix == ".txt":
        out.write("".join(" ".join(line) + "\n" for line in lines))
    else:
        csv.writer(out, delimiter="\t" if suffix == ".tsv" else ",", lineterminator="\n").writerows(lines)
    return out.getvalue() + ("\n# a remark\n\n" if case.options.get("remarks") else "")


def _main(arguments: list[str]) -> tuple[int, str, str]:
    """The command in this process."""
    from semiring.cli import main

    out, said = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(said), quiet():
        try:
            code = main(arguments)
        except SystemExit as leaving:  # of argparse
            code = int(leaving.code or 0)
    return code, out.getvalue(), said.getvalue()


def _own_process(arguments: list[str]) -> tuple[int, str, str]:
    environment = {**os.environ, "PYTHONIOENCODING": "utf-8"}
    done = subprocess.run(
        [sys.executable, "-m", "semiring", *arguments], capture_output=True, encoding="utf-8", env=environment, timeout=100
    )
    return done.returncode, done.stdout, done.stderr


def _check(case: Case) -> Complaint | None:
    with tempfile.TemporaryDirectory() as folder:
        return _check_in(case, Path(folder), _main)


def _check_in(case: Case, folder: Path, run: Any) -> Complaint | None:
    options, subject = case.options, case.subject
    lines, edges, spoilt = _lines(case)
    if len(lines) == 3 and [line[i] for i, line in enumerate(lines)] == ["0"] * 3:
        return None  # which is read as a matrix
    file, output = folder / f"graph{options.get('suffix', '.csv')}", folder / f"result{options.get('output', '.npz')}"
    file.write_text(_text(case, lines), encoding="utf-8")
    arguments = ["apsp", str(file)] if subject.semiring.name == "min-plus" else ["closure", str(file), "--semiring", subject.semiring.name]
    arguments += ["-o", str(output)] if "output" in options else []
    arguments += ["--undirected"] if options.get("undirected") else []
    for name in ("method", "dtype"):
        arguments += [f"--{name}", options[name]] if name in options else []
    names = _names(case, len(case.arrays["a"][0]))
    present = list(dict.fromkeys(v for edge in edges for v in edge))
    present = sorted(present) if "names" not in options else present  # whole numbers are sorted, names come as they appear
    ends = {name: options[name] for name in ("from", "to") if name in options and options[name] in present}
    for name, v in ends.items():
        arguments += [f"--{name}", names[v]]
    found = attempt(run, arguments)
    if found.error is not None:
        return Complaint(f"raised {type(found.error).__name__}", told(found.error))
    code, out, said = found.result
    called = f"{' '.join(arguments)} (rc {code})\n{_text(case, lines)}{out}{said}"
    if "Traceback" in said:
        return Complaint("traceback", called)
    if spoilt is not None or not edges:
        told_where = spoilt is None or re.search(rf"line {spoilt}\b", said)
        return None if code == 2 and told_where else Complaint("accepted", f"line {spoilt} is no edge, and it is not told: {called}")
    matrix = _matrix(case, edges, present)
    if options.get("dtype", "").startswith("int") and (code or subject.semiring.name in ("max-plus", "max-min", "min-max")):
        return None if code in (0, 1, 2) else Complaint("code", called)
    answer = answer_for(subject, (matrix,), reflexive=True)
    if answer.divergent.any():
        return None if code == 1 or ends else Complaint("code", f"does not converge: {called}")
    if code:
        return Complaint("code", called)
    return _check_answer(case, answer, present, names, ends, output, out, called)


def _matrix(case: Case, edges: list[tuple[int, int]], present: list[int]) -> Array:
    """The matrix that the edges make, in the order of the vertices that are told of."""
    (a,), subject = case.arrays["a"], case.subject
    full = np.full(a.shape, subject.zeros[0])
    better = np.minimum if subject.semiring.name in ("min-plus", "min-max") else np.maximum
    for i, j in edges:
        full[i, j] = better(full[i, j], a[i, j])
        if case.options.get("undirected"):
            full[j, i] = better(full[j, i], a[i, j])
    return full[np.ix_(present, present)]


def _check_answer(
    case: Case, answer: Answer, present: list[int], names: list[str], ends: dict[str, int], output: Path, out: str, called: str
) -> Complaint | None:
    shown = [names[v] for v in present]
    if {"from", "to"} <= ends.keys():
        i, j = (present.index(ends[name]) for name in ("from", "to"))
        text = out.strip()
        weight, _, way = text.partition(": ")
        path = [shown.index(v) for v in way.split(" → ")] if way else []
        if (complaint := check_path(answer, i, j, path, reflexive=True)) is not None:
            return Complaint(complaint.kind, f"{complaint.text}: {called}")
        if path and float(weight) != float(f"{answer.star[0].value[i, j]:.6g}"):
            return Complaint("values", f"told {weight}: {called}")
    if "output" not in case.options:
        return None
    suffix = case.options["output"]
    if suffix in (".csv", ".tsv"):
        with output.open(encoding="utf-8", newline="") as file:
            head, *rows = list(csv.reader(file, delimiter="," if suffix == ".csv" else "\t"))
        labels, result = head[1:], np.array([row[1:] for row in rows], dtype=float).reshape(len(rows), len(rows))
    elif suffix == ".npz":
        with np.load(output) as archive:
            labels, result = [str(v) for v in archive["labels"]], archive["values"]
    else:
        labels, result = shown, np.load(output)
    if labels != shown:
        return Complaint("labels", f"{labels} instead of {shown}: {called}")
    if suffix != ".npy" and (changed := _changed_by_reading(output, labels, result)) is not None:
        return Complaint("read back", f"{changed}: {called}")
    plain = result.astype(float)
    if result.dtype.kind == "i":
        plain[result == np.iinfo(result.dtype).max] = np.inf
    wrong = difference(answer.algebra, (plain,), answer.star)
    return Complaint("values", f"{wrong}: {called}") if wrong else None


def _changed_by_reading(output: Path, labels: list[str], result: Array) -> str | None:
    """Compare a file of the command line with the graph that is read from it."""
    again = read_file(output)
    if list(map(str, again.labels)) != labels:
        return f"names {again.labels}"
    return None if np.array_equal(again.array.astype(float), result.astype(float), equal_nan=True) else f"entries {again.array}"


def _check_apart(case: Case) -> Complaint | None:
    with tempfile.TemporaryDirectory() as folder:
        return _check_in(case, Path(folder), _own_process)


def _draw_apart(rng: Rng, subject: Subject, device: str) -> Case:
    case = _draw(rng, subject, device)
    return Case("command line", case.subject, case.arrays, case.axes, {}, case.options, "cpu")


ENTRIES = {"command": Entry(0.3, _draw, _check)}
COMMAND_LINE = Entry(0, _draw_apart, _check_apart)
