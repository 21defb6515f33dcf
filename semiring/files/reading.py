"""Graphs from files, for `read_edges` and the command line: edge lists as text, matrices, and NetworkX's formats."""

from __future__ import annotations

import errno
import gzip
import io
import os
import re
import shlex
import sys
import warnings
from collections.abc import Hashable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import IO, Any

import numpy as np

from semiring.arrays.exchange import ArrayLike, a_name_of
from semiring.common.errors import AssumptionWarning, GraphError, SemiringError, TooLargeError, callers_level, library, raised_here
from semiring.common.units import counted
from semiring.files.edge_text import parse
from semiring.files.fields import Asked, WrongLine, number, numbers_for_names, numbers_of
from semiring.files.matrix_text import TextMatrix
from semiring.graphs import EdgeList, edges
from semiring.graphs.edge_table import require_weights
from semiring.graphs.foreign import listed_edges
from semiring.graphs.weights import weighted

__all__ = ["INPUTS", "STDIN", "read_edges", "read_file"]

_LISTS = {".csv": "\t;,", ".tsv": "\t", ".txt": " "}  # the possible separators of the fields of an edge list
_ANY = "\t;, "

_NETWORKS = (".graphml", ".gml", ".gexf", ".net", ".edgelist", ".adjlist")  # read by NetworkX

_EDGES = (
    f"{', '.join(_LISTS)} (an edge list, or a matrix), .mtx (MatrixMarket), {', '.join(_NETWORKS)} (by NetworkX), compressed (.gz) or not"
)
INPUTS = f"{_EDGES}; .npy, .npz (NumPy, or a SciPy sparse array); or - for an edge list or a matrix on standard input"

STDIN = Path("-")
"""The name of standard input."""


@raised_here
def read_edges(
    file: str | os.PathLike[str] | IO[Any],
    *,
    source: str | None = None,
    target: str | None = None,
    weight: str | float | None = None,
    directed: bool | None = None,
    nodes: Iterable[Hashable] | None = None,
    encoding: str | None = None,
) -> EdgeList:
    r"""Read a graph from a file: a CSV file or another edge list, GraphML, GML, MatrixMarket, and others.

    Examples
    --------
    >>> import io
    >>> import semiring as sr
    >>> roads = io.StringIO("from,to,km,minutes\nZurich,Bern,125,85\nBern,Geneva,160,105\n")  # or "roads.csv"
    >>> roads = sr.read_edges(roads, weight="minutes", directed=False)
    >>> roads
    <3 vertices, 2 undirected edges>
    >>> sr.apsp(roads, paths=True).path("Geneva", "Zurich")
    ['Geneva', 'Bern', 'Zurich']
    >>> roads.columns
    {'km': [125, 160], 'minutes': [85, 105]}

    Parameters
    ----------
    file : path or file
        - ``.csv``, ``.tsv`` and ``.txt`` are edge lists: source, target and perhaps a weight on each line, perhaps after a header with
          further columns. An open file, such as ``io.StringIO(text)`` or ``urllib.request.urlopen(address)``, is read as an edge list.
        - ``.mtx`` is a sparse matrix of MatrixMarket, read by SciPy: vertices are its rows, from 0.
        - ``.graphml``, ``.gml``, ``.gexf``, ``.net`` (Pajek), ``.edgelist`` and ``.adjlist`` are read by NetworkX.

        Any file may be compressed: ``.csv.gz``.
    source, target : str, optional
        The titles of the columns with the two ends of each edge. By default common titles, such as from and to, source and target, u
        and v.
    weight : str or number, optional
        The column, or attribute of edges, with the weights; a number is the weight of every edge. By default the attribute called weight;
        in an edge list the column with a usual title (see `edges`), or the third field of lines without a header.
    directed : bool, optional
        Edges of an edge list lead one way only: by default True, unless Gephi's column Type says Undirected everywhere. GraphML, GML, GEXF,
        Pajek and MatrixMarket files define the direction.
    nodes : iterable, optional
        All vertices, in the order of the rows; see `edges`.
    encoding : str, optional
        The encoding of an edge list; by default UTF-8, or the encoding of a byte order mark.

    Returns
    -------
    EdgeList
        With all columns, or attributes of edges, in ``.columns``: numbers, or else texts. Vertices that are all integers are numbers.

    Raises
    ------
    GraphError
        For a line that is neither an edge nor a header, an unknown or ambiguous column, edges of both kinds, and a matrix.
    OSError
        If the file does not exist or cannot be read.

    Warns
    -----
    HeaderWarning
        If the first line is probably a header, and is read as one.
    AssumptionWarning
        If edges count 1 despite other columns or attributes of numbers (which the warning lists), or if a first line of two names, read as
        an edge, may be a header.

    Notes
    -----
    All edges have a weight, or none. A symmetric matrix gives an undirected graph with each edge once.
    """
    asked = Asked(source, target, weight, directed, nodes, encoding)
    if not isinstance(file, str | os.PathLike):
        if not hasattr(file, "read"):
            raise GraphError(f"{a_name_of(file)} is not a file; pass a path, or an open file")
        content, name = file.read(), str(getattr(file, "name", "the open file"))
        if isinstance(content, str):
            content, asked = content.encode("utf-8", "surrogatepass"), asked._replace(encoding="utf-8")
        return _only_edges(name, content, _ANY, asked)
    name = os.fsdecode(file)
    if name.startswith(("http://", "https://")):
        raise GraphError(f"{name} is an address, not a file; pass urllib.request.urlopen(address)")
    if "\n" in name:
        raise GraphError("a text of several lines is not the name of a file; pass io.StringIO(text)")
    path = Path(name)
    suffix = _suffix(path)
    if suffix in (".npy", ".npz"):
        raise GraphError(f"{path} has a matrix, not a list of edges; read a dense one by numpy.load, a sparse one by scipy.sparse.load_npz")
    if suffix in _LISTS:
        return _only_edges(str(path), _content(path), _LISTS[suffix], asked)
    if suffix == ".mtx":
        named = asked._replace(weight=weight if isinstance(weight, str) else None)
        _require_default(path, "a matrix", named, "source", "target", "weight", "directed", "encoding")
        return _listed(path, _content(path), weight, nodes)
    if suffix not in _NETWORKS:
        raise GraphError(f"{path}: the name must end in one of {_EDGES}")
    by_file = ("directed",) if suffix not in (".edgelist", ".adjlist") else ()
    _require_default(path, f"a {suffix} file", asked, "source", "target", "encoding", *by_file)
    content = _content(path)
    if suffix == ".edgelist" and b"{" not in content:
        return _only_edges(str(path), content, " ", asked._replace(directed=directed is None or directed))
    with _told_as(f"a {suffix} file", path):
        network = _read_network(path, suffix, content, directed is not False)
    return _listed_network(path, network, weight, nodes)


def read_file(path: Path, **options: Any) -> Any:
    """Read a graph as `read_edges` does with these options, or a matrix as it is; ``-`` is standard input.

    Returns an EdgeList, an array, an ArrayLike with the names of vertices, or a SciPy sparse array.
    """
    asked = Asked(**options)
    suffix = _suffix(path)
    if path == STDIN or suffix in _LISTS:
        if path != STDIN:
            text = str(path), _content(path), _LISTS[suffix]
        elif sys.stdin is None:
            raise GraphError("standard input is closed")
        else:
            text = "standard input", sys.stdin.buffer.read(), _ANY
        found = parse(*text, asked)
        if isinstance(found, TextMatrix):
            _require_default(path, "a matrix", asked, "directed", "source", "target", "weight")
            if found.otherwise:
                warnings.warn(_read_as_matrix(text[0], found), AssumptionWarning, stacklevel=callers_level())
        return found
    if suffix not in (".npy", ".npz", ".mtx"):
        return read_edges(path, **options)
    _require_default(path, "a matrix", asked, "directed", "encoding", "source", "target", "weight")
    return _matrix_market(path, _content(path)) if suffix == ".mtx" else _numpy(path)


def _suffix(path: Path) -> str:
    """Return the suffix before a possible .gz."""
    return Path(path.stem if path.suffix.lower() == ".gz" else path.name).suffix.lower()


def _content(path: Path) -> bytes:
    if not path.exists():  # raised here, so that the traceback ends at the caller
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))
    raw = path.read_bytes()
    if path.suffix.lower() != ".gz":
        return raw
    with _told_as("a file that gzip has compressed", path):
        try:
            return gzip.decompress(raw)
        except OSError as error:  # gzip's error about the content
            raise ValueError(str(error)) from None


def _only_edges(name: str, content: bytes, separators: str, asked: Asked) -> EdgeList:
    found = parse(name, content, separators, asked)
    if isinstance(found, EdgeList):
        return found
    raise GraphError(f"{_read_as_matrix(name, found)}; a list of edges is needed, and {found.reader} reads a matrix")


def _read_as_matrix(name: str, found: TextMatrix) -> str:
    n = len(found.array)
    return f"{name} is read as a matrix of {n} × {n}{f'; {found.otherwise}' if found.otherwise else ''}"


def _require_default(path: Path, kind: str, asked: Asked, *options: str) -> None:
    for option in options:
        if getattr(asked, option) is not None:
            what = "defines which edges go both ways" if option == "directed" else "has none"
            raise GraphError(f"{path}: {option}= is for edge lists as text, and {kind} {what}; leave out {option}=")


def _numpy(path: Path) -> Any:
    kind = "a NumPy array of numbers" if path.suffix.lower() == ".npy" else "an archive of NumPy arrays"
    with _told_as(kind, path), path.open("rb") as file:
        found = np.load(file, allow_pickle=False)
        if isinstance(found, np.ndarray):
            return found
        names = list(found.files)
        if sorted(names) == ["labels", "values"]:  # as `write_file` names them
            values, labels = found["values"], found["labels"]
            if np.ndim(labels) != 1 or np.shape(values) != (len(labels), len(labels)) or len(set(labels.tolist())) < len(labels):
                raise ValueError(f"labels of shape {np.shape(labels)} do not name the rows of values of shape {np.shape(values)}")
            return ArrayLike(values, labels=tuple(labels.tolist()))
        if len(names) == 1:
            member = found[names[0]]
            if not isinstance(member, np.ndarray):  # NumPy returns the bytes of other members
                raise ValueError(f"{names[0]} is not an array")
            return member
    if "paths.json" in names:
        raise GraphError(f"{path} has saved paths, not a graph; semiring.Paths.load(path) reads them")
    if "format" not in names:
        raise GraphError(f"{path} has {len(names)} arrays ({', '.join(names)}); save one array in a file")
    sparse = library("scipy.sparse", f"{path}: a sparse array", "graphs")
    with _told_as("a SciPy sparse array", path):
        with path.open("rb") as file:
            matrix = sparse.load_npz(file)
        if matrix.format in ("csr", "csc", "bsr"):
            matrix.check_format(full_check=True)  # load_npz checks no indices
        return matrix


def _matrix_market(path: Path, content: bytes) -> Any:
    io_of_scipy = library("scipy.io", f"{path}: a MatrixMarket file", "graphs")
    with _told_as("a MatrixMarket file", path):
        _require_numbers(content)
        return io_of_scipy.mmread(io.BytesIO(content), spmatrix=False)


def _require_numbers(content: bytes) -> None:
    """Refuse entries of a MatrixMarket file that SciPy would read up to the first wrong character, such as 1_000, 12 km or 0x10."""
    with io.TextIOWrapper(io.BytesIO(content), encoding="latin-1") as file:
        form, field = [*file.readline().lower().split(), "", "", "", ""][2:4]
        if form not in ("coordinate", "array"):
            return  # SciPy reports the fault
        lines = ((at, line.split()) for at, line in enumerate(file, 2) if line.strip() and not line.startswith("%"))
        next(lines, None)  # the size
        indices = 2 if form == "coordinate" else 0
        width = indices + {"pattern": 0, "complex": 2}.get(field, 1)
        for at, parts in lines:
            if len(parts) != width:
                raise WrongLine(at, f"{' '.join(parts)!r} is not an entry of {width} numbers")
            for text in parts[indices:]:
                try:
                    value = number(text)
                except ValueError as error:
                    raise WrongLine(at, str(error)) from None
                if not isinstance(value, int) and (field == "integer" or (value is None and text.lower() != "nan")):
                    raise WrongLine(at, f"{text!r} is not {'an integer' if field == 'integer' else 'a number'}")


def _listed(path: Path, content: bytes, weight: str | float | None, nodes: Iterable[Hashable] | None) -> EdgeList:
    """Return the stored entries of a sparse MatrixMarket file as edges, those of a symmetric matrix once."""
    matrix = _matrix_market(path, content)
    if isinstance(matrix, np.ndarray):
        raise GraphError(f"{path} has a dense matrix, not a list of edges; pass scipy.io.mmread(path) as the graph, and nonedge=")
    n, columns = matrix.shape
    if n != columns:
        raise GraphError(f"{path}: a graph needs a square matrix, not one of shape {matrix.shape}")
    matrix.sum_duplicates()  # SciPy's reading of repeated entries
    tails, heads, weights = matrix.row, matrix.col, matrix.data
    directed = b"symmetric" not in content.partition(b"\n")[0].lower().split()
    if not directed:
        once = tails >= heads
        tails, heads, weights = tails[once], heads[once], weights[once]
    if weight is not None:
        weights = np.full(len(tails), weight)
    return edges(tails, heads, weights, directed=directed, nodes=range(n) if nodes is None else nodes)


@contextmanager
def _told_as(kind: str, path: Path) -> Iterator[None]:
    """Turn an error about the content of a file into "not {kind}"."""
    try:
        yield
    except (OSError, SemiringError):
        raise
    except MemoryError:
        raise TooLargeError(f"{path}: the announced content does not fit the memory") from None
    except WrongLine as error:
        raise GraphError(f"{path}, line {error.line}: {error}") from None
    except Exception as error:  # the errors of NumPy, SciPy, zipfile and zlib share no class
        # NumPy's message for all other content advises to allow pickles, which can run any code.
        reason = "it holds Python objects, or is not in NumPy's format" if "pickle" in str(error) else str(error)
        raise GraphError(f"{path}: not {kind} ({reason or type(error).__name__})") from None


def _plain_pajek(text: str) -> list[str]:
    """Check every line of a Pajek file; NetworkX skips unknown lines, or reads them as edges.

    Returns the lines of the vertices and of one section: edges alone, or arcs, with two for each edge of other sections.
    """
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


def _read_network(path: Path, suffix: str, content: bytes, directed: bool) -> Any:
    """Read a graph with NetworkX; `directed` decides for lists of edges. Errors of NetworkX propagate."""
    nx = library("networkx", f"{path}: a {suffix} file", "graphs")
    match suffix:
        case ".graphml":
            return nx.read_graphml(io.BytesIO(content))
        case ".gexf":
            return nx.read_gexf(io.BytesIO(content))
        case ".gml":
            try:
                return nx.read_gml(io.BytesIO(content))
            except nx.NetworkXError as error:
                if "label" not in str(error):
                    raise
                return nx.read_gml(io.BytesIO(content), label="id")  # vertices without labels get numbers
        case ".net":
            if not re.search(rb"^\s*\*vertices\b", content, re.IGNORECASE | re.MULTILINE):
                raise ValueError("no line begins with *Vertices")
            return nx.parse_pajek(_plain_pajek(content.decode("utf-8-sig")))
    read_lines = nx.parse_edgelist if suffix == ".edgelist" else nx.parse_adjlist
    graph = read_lines(content.decode().splitlines(), create_using=nx.MultiDiGraph if directed else nx.MultiGraph)
    if not len(graph):
        raise ValueError("the file has no vertices")
    return graph


def _listed_network(path: Path, graph: Any, weight: str | float | None, nodes: Iterable[Hashable] | None) -> EdgeList:
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
