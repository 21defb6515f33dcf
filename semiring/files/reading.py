"""Graphs from files, for `read_edges` and the command line: edge lists as text, matrices, and NetworkX's formats."""

from __future__ import annotations

import errno
import gzip
import io
import json
import os
import re
import shlex
import sys
from collections.abc import Hashable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import IO, Any

import numpy as np

from semiring.arrays.exchange import ArrayLike, a_name_of
from semiring.common.errors import GraphError, SemiringError, TooLargeError, library, raised_here
from semiring.common.units import counted
from semiring.files.dimacs import parse_dimacs
from semiring.files.edge_text import parse, warn
from semiring.files.fields import Asked, WrongLine, number, numbers_for_names, numbers_of
from semiring.files.matrix_text import TextMatrix
from semiring.graphs import EdgeList, edges
from semiring.graphs.dense import warn_of_zeros
from semiring.graphs.edge_table import require_weights
from semiring.graphs.foreign import listed_edges
from semiring.graphs.weights import weighted

__all__ = ["INPUTS", "STDIN", "read_edges", "read_file"]

_LISTS = {".csv": "\t;,", ".tsv": "\t", ".txt": " "}  # the possible separators of the fields of an edge list
_ANY = "\t;, "

_NETWORKS = (".graphml", ".gml", ".gexf", ".net", ".json", ".edgelist", ".adjlist", ".g6", ".s6", ".lgr")  # read by NetworkX

_EDGES = (
    f"{', '.join(_LISTS)} (an edge list, or a matrix), .ncol, .mtx (MatrixMarket), .gr (DIMACS), {', '.join(_NETWORKS)} (by NetworkX), "
    "compressed (.gz) or not"
)

_SAVE = "save it as GraphML or as an edge list (.csv)"
_READ = "pass the NetworkX graph to which {} converts it"
_UNREAD = {
    ".xls .xlsx .ods": ("a spreadsheet", "save it as CSV, or pass the table that pandas reads to sr.edges"),
    ".parquet .feather .arrow": ("a binary table", "pass the table that pandas reads to sr.edges"),
    ".dot .gv": ("Graphviz's DOT", _READ.format("networkx.nx_pydot.read_dot")),
    ".pkl .pickle .gpickle": ("a pickle, which can run any code", _SAVE),
    ".shp .geojson .gpkg": ("geodata", _READ.format("momepy.gdf_to_nx")),
    ".osm .pbf": ("OpenStreetMap's format", _READ.format("osmnx.graph_from_xml")),
    ".graph .metis": ("METIS's format", "pass the graph that networkit.readGraph returns"),
    ".mat": ("MATLAB's format", "pass the matrix that scipy.io.loadmat reads"),
    ".paj .gephi": ("a project of Pajek or Gephi", "export the graph as .net or .graphml"),
    ".col": ("DIMACS's format of colouring problems", _SAVE),
    ".lgl": ("the format of Large Graph Layout", _SAVE),
    ".gdf": ("GUESS's format", _SAVE),
    ".dl": ("UCINET's format", _SAVE),
    ".tgf": ("Trivial Graph Format", _SAVE),
}
"""Formats that are not read, by their suffixes, with advice."""

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
    decimal: str | None = None,
    matrix: bool | None = None,
) -> EdgeList:
    r"""Read a graph from a file: edges or a matrix as text, GraphML, GML, GEXF, Pajek, DIMACS, MatrixMarket, JSON, and others.

    Examples
    --------
    >>> import io
    >>> import semiring as sr
    >>> roads = io.StringIO("from,to,km,minutes\nZurich,Bern,125,85\nBern,Geneva,160,105\n")  # or "roads.csv"
    >>> roads = sr.read_edges(roads, weight="minutes", directed=False)
    >>> sr.apsp(roads, paths=True).path("Geneva", "Zurich")
    ['Geneva', 'Bern', 'Zurich']
    >>> roads.columns
    {'km': [125, 160], 'minutes': [85, 105]}
    >>> sr.read_edges(io.StringIO(";a;b\na;0;1,5\nb;;0\n")).weights  # a matrix
    array([1.5])

    Parameters
    ----------
    file : path or file
        - ``.csv``, ``.tsv``, ``.txt``, and an open file: source, target and perhaps a weight on each line, perhaps after a header. A square
          table of numbers, perhaps with names, is a matrix. Its entries are edges, except empty and infinite ones, and zeros on the
          diagonal.
        - ``.ncol`` (undirected), ``.gr`` (DIMACS), ``.mtx``.
        - By NetworkX ``.graphml``, ``.gml``, ``.gexf``, ``.net``, ``.json`` (node-link data), ``.edgelist``, ``.adjlist``, ``.g6``,
          ``.s6``, ``.lgr``.

        Any file may be compressed: ``.csv.gz``.
    source, target : str, optional
        The titles of the columns with the ends of edges; by default common titles.
    weight : str or number, optional
        The column, or attribute of edges, with the weights, or the weight of every edge. By default the attribute called weight, in an edge
        list the column with a usual title (see `edges`), or the third field without a header.
    directed : bool, optional
        Edges of an edge list lead one way only. By default True, but an Undirected row in Gephi's column Type is an edge both ways. Other
        files define the direction, except for some in JSON.
    nodes : iterable, optional
        All vertices, in the order of the rows.
    encoding : str, optional
        By default UTF-8, or the encoding of a byte order mark.
    decimal : {".", ","}, optional
        By default a comma is the decimal mark if other readings are impossible.
    matrix : bool, optional
        The lines of a text are rows of a matrix, or edges. By default the shape decides, or the diagonal, with a warning.

    Returns
    -------
    EdgeList
        With all columns, or attributes of edges, in ``.columns``. Vertices that are all integers are numbers.

    Raises
    ------
    GraphError
        For a line that is neither an edge nor a header, an unknown or ambiguous column, and an unread format.
    OSError
        If the file cannot be read.

    Warns
    -----
    HeaderWarning
        If the first line is probably a header.
    AssumptionWarning
        If edges count 1 beside columns of numbers, or lines may mean something else.
    NonEdgeWarning
        If zeros in a matrix may mean no edge.

    Notes
    -----
    All edges have a weight, or none. A symmetric matrix gives an undirected graph with each edge once. O(m), or O(n²) for a matrix.
    """
    asked = Asked(source, target, weight, directed, nodes, encoding, decimal, matrix)
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
    for unread, (kind, advice) in _UNREAD.items():
        if suffix in unread.split():
            raise GraphError(f"{path}: {kind} is not read; {advice}")
    if suffix not in (*_NETWORKS, ".mtx", ".gr", ".ncol"):
        raise GraphError(f"{path}: the name must end in one of {_EDGES}")
    if suffix in (".mtx", ".gr"):
        kind = "a matrix" if suffix == ".mtx" else "a .gr file"
        named = asked._replace(weight=weight if isinstance(weight, str) else None)
        _require_default(path, kind, named, "source", "target", "weight", "directed", "encoding", "decimal", "matrix")
        return _listed(path, _content(path), weight, nodes) if suffix == ".mtx" else _arcs(path, _content(path), weight, nodes)
    by_file = ("directed",) if suffix not in (".edgelist", ".adjlist", ".json", ".ncol") else ()
    _require_default(path, f"a {suffix} file", asked, "source", "target", "encoding", "decimal", "matrix", *by_file)
    content = _content(path)
    if suffix == ".ncol" or (suffix == ".edgelist" and b"{" not in content):
        if suffix == ".ncol" and directed is None:
            warn(f"{path}: the edges go both ways, as .ncol is defined; pass directed=True if they lead one way, or directed=False")
        one_way = suffix != ".ncol" if directed is None else directed
        return _only_edges(str(path), content, " ", asked._replace(directed=one_way, matrix=False))
    with _told_as(f"a {suffix} file", path):
        network = _read_network(path, suffix, content, directed)
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
        return _edges_or_matrix(*text, asked)
    if suffix not in (".npy", ".npz", ".mtx"):
        return read_edges(path, **options)
    _require_default(path, "a matrix", asked, "directed", "encoding", "source", "target", "weight", "decimal", "matrix")
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
    found = _edges_or_matrix(name, content, separators, asked)
    return found if isinstance(found, EdgeList) else _entries(name, found, asked.nodes)


def _edges_or_matrix(name: str, content: bytes, separators: str, asked: Asked) -> EdgeList | TextMatrix:
    found = parse(name, content, separators, asked)
    if isinstance(found, TextMatrix):
        _require_default(name, "a matrix", asked, "directed", "source", "target", "weight")
    return found


def _entries(name: str, matrix: TextMatrix, nodes: Iterable[Hashable] | None) -> EdgeList:
    """Return the entries of a matrix as edges, except missing and infinite ones and zeros on the diagonal; of a symmetric matrix once."""
    array, n = matrix.array, len(matrix.array)
    missing = np.zeros((n, n), bool) if matrix.missing is None else matrix.missing
    diagonal, zero, infinite = np.eye(n, dtype=bool), array == 0, [array == np.inf, array == -np.inf]
    signs = [(entries & ~diagonal).any() for entries in infinite]
    if all(signs):
        raise GraphError(f"{name}: inf and -inf could both mean no edge; leave the cells without an edge empty")
    if not missing.any() and not any(signs):
        warn_of_zeros(int(np.count_nonzero(zero & ~diagonal)), np.inf)
    there = ~(missing | infinite[0] | infinite[1] | (zero & diagonal))
    directed = not (np.array_equal(array, array.T) and np.array_equal(missing, missing.T))
    rows, columns = np.nonzero(there if directed else np.tril(there))
    labels = matrix.labels or tuple(range(n))
    if nodes is None:
        return replace(edges(rows, columns, array[rows, columns], directed=directed, nodes=range(n)), labels=labels)
    names = np.array(labels, object)
    return edges(names[rows], names[columns], array[rows, columns], directed=directed, nodes=nodes)


def _require_default(path: Path | str, kind: str, asked: Asked, *options: str) -> None:
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


def _arcs(path: Path, content: bytes, weight: str | float | None, nodes: Iterable[Hashable] | None) -> EdgeList:
    with _told_as("a DIMACS file", path):
        found = parse_dimacs(content.decode())
    weights = found.weights if weight is None else np.full(len(found.weights), weight)
    return replace(found, weights=weights) if nodes is None else edges(found.sources + 1, found.targets + 1, weights, nodes=nodes)


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


def _read_json(path: Path, nx: Any, content: bytes, directed: bool | None) -> Any:
    """Read node-link data, adjacency data or Cytoscape's elements; NetworkX would add vertices that are not listed."""
    data = json.loads(content)
    if not isinstance(data, dict) or not data.keys() & {"nodes", "elements"}:
        kind = "JSON Graph Format" if isinstance(data, dict) and data.keys() & {"graph", "graphs"} else "JSON without nodes"
        raise GraphError(f"{path}: {kind} is not read, but node-link data are: an object with the lists nodes and links")
    said = data.get("directed") if isinstance(data.get("directed"), bool) else None
    if said is None and directed is None:
        raise GraphError(f"{path} does not say whether edges lead one way; pass directed=True, or directed=False if all go both ways")
    if said is not None and directed not in (None, said):
        raise GraphError(f"{path} says that edges {'lead one way' if said else 'go both ways'}; leave out directed={directed}")
    data["directed"] = directed if said is None else said
    if "elements" in data:
        nodes, links = ([item["data"] for item in data["elements"].get(name, ())] for name in ("nodes", "edges"))
        links = [{**link, "source": str(link["source"]), "target": str(link["target"])} for link in links]  # ids are texts, by definition
        data |= {"nodes": [{"id": str(node["id"])} for node in nodes], "edges": links}
    if "adjacency" in data:
        graph = nx.adjacency_graph(data)
    else:
        keys = [key for key in ("links", "edges") if key in data]
        if len(keys) != 1:
            raise ValueError(f"it has {'both links and edges' if keys else 'neither links nor edges'}")
        for edge in data[keys[0]]:
            if not {"source", "target"} <= edge.keys():
                raise ValueError(f"the edge {edge!r} has no source or no target")
        graph = nx.node_link_graph({**data, "multigraph": True}, edges=keys[0])
    if len(graph) < len(data["nodes"]):
        raise ValueError("two nodes have one id")
    if len(graph) > len(data["nodes"]):
        raise ValueError(f"{list(graph)[-1]!r} ends an edge, and is no node")
    return graph


def _read_network(path: Path, suffix: str, content: bytes, directed: bool | None) -> Any:
    """Read a graph with NetworkX; `directed` decides for lists of edges. Errors of NetworkX propagate."""
    nx = library("networkx", f"{path}: a {suffix} file", "graphs")
    match suffix:
        case ".graphml":
            return nx.read_graphml(io.BytesIO(content))
        case ".gexf":
            return nx.read_gexf(io.BytesIO(content))
        case ".json":
            return _read_json(path, nx, content, directed)
        case ".g6" | ".s6":
            return (nx.from_graph6_bytes if suffix == ".g6" else nx.from_sparse6_bytes)(content.strip())
        case ".lgr":
            return nx.parse_leda(content.decode())
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
    graph = read_lines(content.decode().splitlines(), create_using=nx.MultiGraph if directed is False else nx.MultiDiGraph)
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
