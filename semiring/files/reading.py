"""Graphs from files, for `read_edges` and the command line: edge lists as text, matrices, and NetworkX's formats."""

from __future__ import annotations

import errno
import gzip
import io
import os
import sys
import warnings
from collections.abc import Hashable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np

from semiring.arrays.exchange import ArrayLike
from semiring.common.errors import (
    AssumptionWarning,
    GraphError,
    SemiringError,
    TooLargeError,
    callers_level,
    library,
    raised_here,
    with_article,
)
from semiring.files.edge_text import parse
from semiring.files.fields import Named, WrongLine, number
from semiring.files.matrix_text import TextMatrix
from semiring.files.networks import NETWORKS, listed, read_network
from semiring.graphs import EdgeList, edges

__all__ = ["INPUTS", "STDIN", "read_edges", "read_file"]

_LISTS = {".csv": "\t;,", ".tsv": "\t", ".txt": " "}  # the possible separators of the fields of an edge list
_ANY = "\t;, "

_EDGES = (
    f"{', '.join(_LISTS)} (an edge list, or a matrix), .mtx (MatrixMarket), {', '.join(NETWORKS)} (by NetworkX), compressed (.gz) or not"
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
    named = Named(source, target, weight)
    if not isinstance(file, str | os.PathLike):
        return _only_edges(*_of_open_file(file, encoding), named, directed, nodes)
    path = Path(_path(file))
    suffix = _suffix(path)
    if suffix in (".npy", ".npz"):
        raise GraphError(f"{path} has a matrix, not a list of edges; read a dense one by numpy.load, a sparse one by scipy.sparse.load_npz")
    if suffix in _LISTS:
        return _only_edges(str(path), _content(path), _LISTS[suffix], encoding, named, directed, nodes)
    if suffix == ".mtx":
        name = weight if isinstance(weight, str) else None
        _require_default(path, "a matrix", source=source, target=target, weight=name, directed=directed, encoding=encoding)
        return _listed(path, _content(path), weight, nodes)
    if suffix not in NETWORKS:
        raise GraphError(f"{path}: the name must end in one of {_EDGES}")
    _require_default(path, f"a {suffix} file", source=source, target=target, encoding=encoding)
    if suffix not in (".edgelist", ".adjlist"):
        _require_default(path, f"a {suffix} file", directed=directed)
    content = _content(path)
    if suffix == ".edgelist" and b"{" not in content:
        return _only_edges(str(path), content, " ", None, named, directed is None or directed, nodes)
    with _told_as(f"a {suffix} file", path):
        network = read_network(path, suffix, content, directed is not False)
    return listed(path, network, weight, nodes)


def read_file(
    path: Path,
    *,
    source: str | None = None,
    target: str | None = None,
    weight: str | float | None = None,
    directed: bool | None = None,
    encoding: str | None = None,
) -> Any:
    """Read a graph as `read_edges` does, or a matrix as it is; ``-`` is standard input.

    Returns
    -------
    EdgeList, array, ArrayLike with the names of vertices, or SciPy sparse array
    """
    suffix = _suffix(path)
    if path == STDIN or suffix in _LISTS:
        if path != STDIN:
            text = str(path), _content(path), _LISTS[suffix]
        elif sys.stdin is None:
            raise GraphError("standard input is closed")
        else:
            text = "standard input", sys.stdin.buffer.read(), _ANY
        found = parse(*text, named=Named(source, target, weight), encoding=encoding, directed=directed)
        if isinstance(found, TextMatrix):
            _require_default(path, "a matrix", directed=directed, source=source, target=target, weight=weight)
            if found.otherwise:
                warnings.warn(_read_as_matrix(text[0], found), AssumptionWarning, stacklevel=callers_level())
        return found
    if suffix not in (".npy", ".npz", ".mtx"):
        return read_edges(path, source=source, target=target, weight=weight, directed=directed, encoding=encoding)
    _require_default(path, "a matrix", directed=directed, encoding=encoding, source=source, target=target, weight=weight)
    return _matrix_market(path, _content(path)) if suffix == ".mtx" else _numpy(path)


def _path(file: str | os.PathLike[str]) -> str:
    name = os.fsdecode(file)
    if name.startswith(("http://", "https://")):
        raise GraphError(f"{name} is an address, not a file; pass urllib.request.urlopen(address)")
    if "\n" in name:
        raise GraphError("a text of several lines is not the name of a file; pass io.StringIO(text)")
    return name


def _suffix(path: Path) -> str:
    """Return the suffix before a possible .gz."""
    return Path(path.stem if path.suffix.lower() == ".gz" else path.name).suffix.lower()


def _content(path: Path) -> bytes:
    if not path.exists():
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))
    raw = path.read_bytes()
    if path.suffix.lower() != ".gz":
        return raw
    with _told_as("a file that gzip has compressed", path):
        try:
            return gzip.decompress(raw)
        except OSError as error:  # gzip's error about the content
            raise ValueError(str(error)) from None


def _of_open_file(file: Any, encoding: str | None) -> tuple[str, bytes, str, str | None]:
    """Return name, content, separators and encoding of an open file."""
    if not hasattr(file, "read"):
        raise GraphError(f"{with_article(type(file).__name__)} is not a file; pass a path, or an open file")
    content = file.read()
    name = str(getattr(file, "name", "the open file"))
    return (name, content.encode("utf-8", "surrogatepass"), _ANY, "utf-8") if isinstance(content, str) else (name, content, _ANY, encoding)


def _only_edges(
    name: str,
    content: bytes,
    separators: str,
    encoding: str | None,
    named: Named,
    directed: bool | None,
    nodes: Iterable[Hashable] | None,
) -> EdgeList:
    """Read the edges of a text, and refuse a matrix."""
    found = parse(name, content, separators, named=named, encoding=encoding, directed=directed, nodes=nodes)
    if isinstance(found, EdgeList):
        return found
    raise GraphError(f"{_read_as_matrix(name, found)}; a list of edges is needed, and {found.reader} reads a matrix")


def _read_as_matrix(name: str, found: TextMatrix) -> str:
    n = len(found.array)
    return f"{name} is read as a matrix of {n} × {n}{f'; {found.otherwise}' if found.otherwise else ''}"


def _require_default(path: Path, kind: str, **options: Any) -> None:
    """Refuse options for edge lists."""
    for option, value in options.items():
        if value is not None:
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
            return _with_labels(found["values"], found["labels"])
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


def _with_labels(values: Any, labels: Any) -> ArrayLike:
    if np.ndim(labels) != 1 or np.shape(values) != (len(labels), len(labels)) or len(set(labels.tolist())) < len(labels):
        raise ValueError(f"labels of shape {np.shape(labels)} do not name the rows of values of shape {np.shape(values)}")
    return ArrayLike(values, labels=tuple(labels.tolist()))


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
