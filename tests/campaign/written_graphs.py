"""Graphs in files of many formats, as `read_edges` reads them."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

import semiring as sr
from tests.campaign.cases import Case, Complaint, Entry, attempt, told
from tests.campaign.lawful import catalogue
from tests.campaign.products import draw_size
from tests.campaign.subjects import Array, Rng, Subject

__all__ = ["ENTRIES"]

_FORMS = ("named.csv", "named.tsv", "bare.csv", "bare.txt", "gephi.csv", "a.gr", "a.json", "a.ncol")


def _draw(rng: Rng, _: Subject, device: str) -> Case:
    subject, n = catalogue("MIN_PLUS", "float64"), max(1, draw_size(rng, 12))
    (a,) = subject.draw(rng, (n, n), zeros=[0.3, 0.8][rng.integers(2)], harmless=True)
    if rng.random() < 0.3:
        a = np.minimum(a, a.T)
    options = {"form": str(rng.choice(_FORMS)), "decimal": bool(rng.random() < 0.4)}
    return Case("file", subject, {"a": (a,)}, {"a": ("n", "n")}, {}, options, "cpu")


def _text(form: str, a: Array, *, comma: bool) -> str:
    """The graph with vertices 0 to n − 1, or v0 …; an edge in both directions with one weight is undirected in a table of Gephi's."""
    n, edges = len(a), [(int(i), int(j), float(a[i, j])) for i, j in zip(*np.nonzero(np.isfinite(a)), strict=True)]
    separator = {"csv": ";" if comma else ",", "tsv": "\t", "txt": " "}.get(form[-3:], "")
    number = (lambda w: repr(w).replace(".", ",")) if comma else repr
    match form:
        case "named.csv" | "named.tsv" | "bare.csv" | "bare.txt":
            rows = [["" if form[0] == "n" and w == np.inf else number(float(w)) for w in row] for row in a]
            if form[0] == "n":
                rows = [["", *(f"v{i}" for i in range(n))], *([f"v{i}", *row] for i, row in enumerate(rows))]
            return "\n".join(map(separator.join, rows))
        case "gephi.csv":
            both = [(u, v, w) for u, v, w in edges if u < v and a[v, u] == w]
            one = [(u, v, w) for u, v, w in edges if not (u != v and a[v, u] == w)]
            rows = [["Source", "Target", "Type", "Weight"]]
            rows += [[f"v{u}", f"v{v}", kind, number(w)] for kind, some in (("Undirected", both), ("Directed", one)) for u, v, w in some]
            return "\n".join(map(separator.join, rows))
        case "a.gr":
            return f"p sp {n} {len(edges)}\n" + "".join(f"a {u + 1} {v + 1} {w}\n" for u, v, w in edges)
        case "a.ncol":
            return "".join(f"v{u} v{v} {w}\n" for u, v, w in edges)
    links = [{"source": f"v{u}", "target": f"v{v}", "weight": w} for u, v, w in edges]
    return json.dumps({"directed": True, "nodes": [{"id": f"v{i}"} for i in range(n)], "links": links})


def _check(case: Case) -> Complaint | None:
    (a,), form, comma = case.arrays["a"], case.options["form"], case.options["decimal"]
    n = len(a)
    if form in ("gephi.csv", "a.ncol") and not np.isfinite(a).any():
        return None
    bare, text = form.startswith("bare"), _text(form, a, comma=comma)
    if bare and n == 1:
        return None
    names = {"a.gr": range(1, n + 1), "bare.csv": range(n), "bare.txt": range(n)}.get(form, [f"v{i}" for i in range(n)])
    options: dict[str, Any] = {"matrix": True} if bare else {"directed": True, "nodes": names} if form in ("gephi.csv", "a.ncol") else {}
    if form == "gephi.csv":
        options.pop("directed")
    if comma and form.endswith(("csv", "tsv", "txt")):
        options["decimal"] = ","
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / form
        path.write_text(text, encoding="utf-8")
        found = attempt(sr.read_edges, path, **options)
    if found.error is not None:
        return Complaint(f"raised {type(found.error).__name__}", f"{told(found.error)}: {form}\n{text}")
    graph, got = found.result, np.full((n, n), np.inf)
    if list(graph.labels) != list(names):
        return Complaint("labels", f"{graph.labels}: {form}\n{text}")
    for tails, heads in ((graph.sources, graph.targets), (graph.targets, graph.sources))[: 1 if graph.directed else 2]:
        np.minimum.at(got, (tails, heads), [1.0 if w is None else w for w in graph.weights])
    wrong = (got != a) & ~((a == 0) & np.eye(n, dtype=bool))  # a matrix has zeros on the diagonal without loops
    return Complaint("entries", f"{got} instead of {a}: {form}\n{text}") if wrong.any() else None


ENTRIES = {"file": Entry(0.3, _draw, _check)}
