"""Graphs in the file formats that NetworkX reads."""

from __future__ import annotations

import io
import re
import shlex
from collections.abc import Callable, Hashable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from semiring.common.errors import library
from semiring.common.units import counted
from semiring.files.fields import WrongLine, number, numbers_for_names, numbers_of
from semiring.graphs import EdgeList, edges
from semiring.graphs.edge_table import require_weights
from semiring.graphs.foreign import listed_edges
from semiring.graphs.weights import weighted

__all__ = ["NETWORKS", "listed", "read_network"]


def _gml(nx: Any, content: bytes) -> Any:
    """Read a GML file; vertices without labels get numbers."""
    try:
        return nx.read_gml(io.BytesIO(content))
    except nx.NetworkXError as error:
        if "label" not in str(error):
            raise
        return nx.read_gml(io.BytesIO(content), label="id")


def _pajek(nx: Any, content: bytes) -> Any:
    """Read a Pajek file, with a check of every line; NetworkX skips unknown lines, or reads them as edges."""
    if not re.search(rb"^\s*\*vertices\b", content, re.IGNORECASE | re.MULTILINE):
        raise ValueError("no line begins with *Vertices")
    return nx.parse_pajek(_plain_pajek(content.decode("utf-8-sig")))


def _plain_pajek(text: str) -> list[str]:
    """Return the lines of the vertices and of one section: edges alone, or arcs, with two for each edge of other sections."""
    lines = [(at, line.strip()) for at, line in enumerate(text.splitlines(), 1)]
    lines = [(at, line) for at, line in lines if line and not line.startswith("%")]
    if lines[0][1].lower().startswith("*network"):
        del lines[0]
    (at, first), *lines = lines
    if not re.fullmatch(r"\*vertices\s+[0-9]{1,18}", first, re.IGNORECASE):
        raise WrongLine(at, f"{first!r} is not *Vertices and how many follow")
    n = int(first.split()[1])
    vertices = lines[:n]
    numbers, labels = dict[str, None](), set[str]()
    for at, line in vertices:
        number_of_vertex, label, *_ = [*_pajek_fields(at, line), ""]
        if not label or line.startswith("*") or number_of_vertex in numbers or label in labels:
            raise WrongLine(at, f"{line!r} is not the number and the label of another vertex; {n} such lines are expected")
        numbers[number_of_vertex] = None
        labels.add(label)
    if n and len(lines) <= n:
        raise WrongLine(at, f"the file ends before {counted(n, 'vertex', 'vertices')} and a section *Arcs or *Edges")
    found: dict[str, list[list[str]]] = {}
    section, rows = "", list[str]()
    for at, line in lines[n:]:
        if line.startswith("*") and not rows:
            section = line.split()[0].lower()
            if section not in _SECTIONS:
                raise WrongLine(at, f"{line!r} begins no section of edges; use {', '.join(_SECTIONS).title()}")
            found.setdefault(_SECTIONS[section], [])
            rows = list(numbers)[::-1] if section == "*matrix" else []
            continue
        fields = _pajek_fields(at, line)
        if section == "*matrix":
            if not rows or len(fields) != n:
                raise WrongLine(at, f"{line!r} is none of the {counted(n, 'row')} of the matrix, of {counted(n, 'entry', 'entries')} each")
            tail = rows.pop()
            some = [[tail, head, entry] for head, entry in zip(numbers, fields, strict=True) if number(entry) != 0]
        else:
            some = [[fields[0], head] for head in fields[1:]] if section.endswith("list") else [fields]
        for edge in some:
            if not section or len(edge) < 2 or not numbers.keys() >= {*edge[:2]} or (len(edge) > 2 and number(edge[2]) is None):
                raise WrongLine(at, f"{line!r} is not an edge: the numbers of two vertices and perhaps a weight, after *Arcs or *Edges")
        found[_SECTIONS[section]] += some
    if rows:
        raise WrongLine(at, f"the matrix ends before {counted(n, 'row')}")
    arcs, both, kind = found.get("*arcs", []), found.get("*edges", []), "*edges"
    if arcs or "*edges" not in found:
        both, kind = arcs + both + [[head, tail, *rest] for tail, head, *rest in both if tail != head], "*arcs"
    return [f"*vertices {n}", *(line for _, line in vertices), kind, *map(shlex.join, both)]


def _pajek_fields(at: int, line: str) -> list[str]:
    try:
        return shlex.split(line) if re.search(r"""["'\\]""", line) else line.split()
    except ValueError as error:
        raise WrongLine(at, f"the fields of {line!r} cannot be split ({error})") from None


_SECTIONS = {"*arcs": "*arcs", "*edges": "*edges", "*arcslist": "*arcs", "*edgeslist": "*edges", "*matrix": "*arcs"}
"""The sections of a Pajek file, each with its kind: arcs lead one way, edges both."""

_READERS: dict[str, Callable[[Any, bytes], Any]] = {
    ".graphml": lambda nx, content: nx.read_graphml(io.BytesIO(content)),
    ".gml": _gml,
    ".gexf": lambda nx, content: nx.read_gexf(io.BytesIO(content)),
    ".net": _pajek,
}
_LISTS: dict[str, Callable[[Any], Callable[..., Any]]] = {
    ".edgelist": lambda nx: nx.parse_edgelist,
    ".adjlist": lambda nx: nx.parse_adjlist,
}
"""Formats that do not distinguish directed edges."""

NETWORKS = (*_READERS, *_LISTS)
"""The suffixes of these files."""


def read_network(path: Path, suffix: str, content: bytes, directed: bool) -> Any:
    """Read a graph with NetworkX; `directed` decides for lists of edges. Errors of NetworkX propagate."""
    nx = library("networkx", f"{path}: a {suffix} file", "graphs")
    if suffix in _READERS:
        return _READERS[suffix](nx, content)
    kind = nx.MultiDiGraph if directed else nx.MultiGraph
    graph = _LISTS[suffix](nx)(content.decode().splitlines(), create_using=kind)
    if not len(graph):
        raise ValueError("the file has no vertices")
    return graph


def listed(path: Path, graph: Any, weight: str | float | None, nodes: Iterable[Hashable] | None) -> EdgeList:
    """Convert a NetworkX graph to edges with all attributes; names that are all integers become numbers."""
    found = listed_edges(graph)
    assert found is not None
    names: list[Any] = list(found.labels)
    labels = numbers_for_names(names) if all(isinstance(name, str) for name in names) else names
    if nodes is None:
        nodes = sorted(labels) if labels is not names else labels
    ends = [(labels[u], labels[v]) for u, v in zip(found.sources.tolist(), found.targets.tolist(), strict=True)]
    columns = {name: _column(list(values)) for name, values in found.columns.items()}
    named = replace(edges(ends, directed=found.directed, nodes=nodes), weights=columns.get("weight", found.weights), columns=columns)
    named = weighted(named, weight, where=f"{path}: ")
    require_weights(named.weights, named.edge_name)
    if all(value is None for value in named.weights):
        named = replace(named, weights=[1] * len(named.weights))  # after a warning
    return named


def _column(values: list[Any]) -> list[Any]:
    """Convert the texts of an attribute to numbers if all are numbers, because some programs write all attributes as texts."""
    there = [value for value in values if value is not None]
    if not all(isinstance(value, str) for value in there) or (numbers := numbers_of(there)) is None:
        return values
    each = iter(numbers)
    return [None if value is None else next(each) for value in values]
