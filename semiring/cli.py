"""The command line: ``python -m semiring apsp | closure | demo | info``."""

from __future__ import annotations

import argparse
import io
import math
import os
import re
import shutil
import sys
import time
import warnings
from collections.abc import Hashable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TextIO

import numpy as np

from semiring.algebra.catalogue import BOOLEAN, MIN_PLUS, as_semiring, semirings
from semiring.algebra.definition import Semiring
from semiring.algebra.elements import element
from semiring.common.errors import AssumptionWarning, DivergenceError, DTypeError, GraphError, SemiringError, printable
from semiring.common.units import counted, duration
from semiring.files.edge_text import HeaderWarning
from semiring.files.fields import number
from semiring.files.reading import INPUTS, read_file
from semiring.files.tables import OUTPUTS, require_names, require_writable, write_file
from semiring.graphs import EdgeList, NonEdgeWarning
from semiring.graphs.array_like import ArrayLike
from semiring.graphs.graph import matches, nonedges
from semiring.graphs.vertices import unknown_vertex
from semiring.graphs.weights import weighted

__all__ = ["main"]

Array = np.ndarray[Any, Any]

_TABLE = 12
"""Vertices up to which the whole matrix is printed."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line.

    Parameters
    ----------
    arguments : sequence of str, optional
        Without the program's name; by default those of the process.

    Returns
    -------
    int
        0; 1 where the closure does not converge (a negative cycle); 2 for wrong input.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal without ∞ shows ?
    options = _parser().parse_args(arguments)
    try:
        with warnings.catch_warnings():
            for kind in (AssumptionWarning, NonEdgeWarning, HeaderWarning):
                warnings.simplefilter("always", kind)
            warnings.showwarning = _show_warning
            options.run(options)
        sys.stdout.flush()
    except DivergenceError as error:
        _say(f"semiring: {error}", file=sys.stderr)
        cycle = " → ".join(map(printable, [*error.cycle, error.cycle[0]])) if error.cycle else ""
        if cycle not in str(error):  # a long one is cut short there
            _say(f"cycle: {cycle}", file=sys.stderr)
        return 1
    except BrokenPipeError:  # whoever reads (head, less) has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        named = f"{error.filename}: {error.strerror}" if error.filename is not None else error
        _say(f"semiring: error: {named}", file=sys.stderr)
        return 2
    except (SemiringError, ImportError, MemoryError) as error:
        _say(f"semiring: error: {_as_options(str(error)) or type(error).__name__}", file=sys.stderr)
        return 2
    return 0


def _say(text: str, file: TextIO | None = None) -> None:
    """Print a line, on a terminal that no name of a vertex or a file commands."""
    print(printable(text), file=file)


def _show_warning(
    message: Warning | str, category: type[Warning], filename: str, lineno: int, file: TextIO | None = None, line: str | None = None
) -> None:
    """What `warnings` calls; on the command line no source line explains anything."""
    _say(f"semiring: warning: {_as_options(str(message))}", file=sys.stderr)


def _as_options(text: str) -> str:
    """A message of the library, with its arguments written as the options they are here."""
    text = re.sub(r"\bdirected=(False)?", "--undirected", text)
    text = re.sub(r"\bsources=", "--from=", text)
    text = re.sub(r"\b(source|target)=", r"--\1-column=", text)
    text = re.sub(r"\b(nonedge|dtype|encoding|weight|method)=(np\.)?", r"--\1=", text)
    return re.sub(r"math\.inf|float\('inf'\)", "inf", text)


def _parser() -> argparse.ArgumentParser:
    """The commands and their options."""
    parser = argparse.ArgumentParser(prog="semiring", description="Shortest paths and other closures of a graph, over a semiring.")
    commands = parser.add_subparsers(required=True, metavar="command")

    apsp = commands.add_parser("apsp", help="shortest distances between all pairs of vertices", description="All-pairs shortest paths.")
    apsp.add_argument("--paths", action="store_true", help="find the paths too (semiring.Paths.load reads them from -o FILE.npz)")
    apsp.add_argument("--from", dest="source", metavar="X", help="print the shortest paths from this vertex")
    apsp.add_argument("--to", dest="target", metavar="Y", help="print the shortest paths to this vertex")
    apsp.set_defaults(run=_apsp)

    closure = commands.add_parser("closure", help="the closure over another semiring", description="The closure I ⊕ A ⊕ A² ⊕ …")
    names = sorted(name for name, semiring in semirings().items() if semiring.components == 1)
    closure.add_argument("--semiring", required=True, type=_semiring, metavar="NAME", help=", ".join(names))
    closure.set_defaults(run=_closure)

    for command in (apsp, closure):
        command.add_argument("file", type=Path, help=INPUTS)
        command.add_argument("-o", "--output", type=Path, metavar="FILE", help=f"write the matrix: {OUTPUTS}")
        command.add_argument(
            "--encoding", type=_encoding, help="of the text of an edge list: utf-8 (if nothing else is said), latin-1, utf-16, …"
        )
        command.add_argument("--undirected", action="store_true", help="the edges of an edge list go both ways")
        command.add_argument(
            "--weight", metavar="NAME", help="the column of an edge table with the weights; a number is what every edge counts"
        )
        for end in ("source", "target"):
            command.add_argument(f"--{end}-column", metavar="NAME", help=f"the column of an edge list with the {end}s of the edges")
        command.add_argument("--nonedge", type=_number, metavar="VALUE", help="matrix entries of this value are no edges (0, inf, nan, …)")
        command.add_argument("--method", default="auto", choices=("auto", "iterative", "blocked", "recursive"))
        command.add_argument("--dtype", help="float64, float32, int32, …")
        command.add_argument(
            "--progress",
            action=argparse.BooleanOptionalAction,
            help="a bar that shows how far it is (by default on a terminal, once it has taken two seconds)",
        )

    demo = commands.add_parser("demo", help="all shortest routes of the US airport network")
    demo.set_defaults(run=lambda _: _demo())
    info = commands.add_parser("info", help="versions, processor, threads, cache, GPUs")
    info.set_defaults(run=lambda _: _info())
    return parser


def _semiring(text: str) -> Semiring:
    """The semiring of a name, whose elements are single numbers, as a matrix in a file has them."""
    try:
        semiring = as_semiring(text)
    except SemiringError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    if semiring.components > 1:
        raise argparse.ArgumentTypeError(f"elements of {semiring.name} are tuples; use Python: semiring.closure(graph, {semiring.name!r})")
    return semiring.marked(witness=False)


def _encoding(text: str) -> str:
    """An encoding that Python has."""
    try:
        b".".decode(text, "replace")
    except (LookupError, ValueError):
        raise argparse.ArgumentTypeError(f"there is no encoding {text!r}; utf-8, latin-1, cp1252 and utf-16 are some") from None
    return text


def _number(text: str) -> float:
    """A number; an integer as itself, which a float might not be."""
    try:
        value = math.nan if text.lower() == "nan" else number(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    if value is None:
        raise argparse.ArgumentTypeError(f"{text!r} is no number")
    return value


def _demo() -> None:
    """The command `demo`."""
    from semiring.demo import run_demo

    run_demo()


def _info() -> None:
    """The command `info`."""
    from semiring.config import show_config

    show_config()


def _apsp(options: argparse.Namespace) -> None:
    """The command `apsp`."""
    from semiring.solve import apsp

    graph, labels = _read(options)
    ends = [None if end is None else _vertex(end, labels, options.file) for end in (options.source, options.target)]
    some = ends != [None, None]
    wanted = options.paths or some
    settings = _settings(options)
    if some and options.output is None:  # where no matrix is to be written, a search does for what is printed
        settings |= {name: None if end is None else [labels[end]] for name, end in zip(("sources", "targets"), ends, strict=True)}
    start = time.perf_counter()
    result = apsp(graph, paths=wanted, **settings)
    seconds = time.perf_counter() - start
    values = result.distances if wanted else result
    if options.output is not None and options.paths and options.output.suffix.lower() == ".npz":
        result.save(options.output)
        _say_written(options.output, "the paths", values)
    elif options.output is not None:
        _write(options.output, values, labels, MIN_PLUS)
    if some:
        source, target = ends
        _print_paths(result, labels, source, target)
        if source is not None and target is not None and not result.path(labels[source], labels[target]):
            _say_if_directed(graph, labels[source], labels[target])
        return
    _print_matrix(values, labels, MIN_PLUS)
    if options.paths and len(labels) <= _TABLE:
        _print_paths(result, labels, None, None)
        print()
    _print_summary(graph, values, labels, MIN_PLUS, options.nonedge, seconds)


def _say_if_directed(graph: Any, source: Hashable, target: Hashable) -> None:
    """Say that there would be a path if the edges of a list went both ways, where that is so."""
    from semiring.solve import transitive_closure

    if not isinstance(graph, EdgeList) or not graph.directed:
        return
    if transitive_closure(replace(graph, directed=False), sources=[source], targets=[target]).any():
        _say("its edges are directed; with --undirected there is a path", file=sys.stderr)


def _closure(options: argparse.Namespace) -> None:
    """The command `closure`."""
    from semiring.solve import closure, transitive_closure

    graph, labels = _read(options)
    semiring = options.semiring
    if isinstance(graph, ArrayLike) and graph.numbers:
        graph = _in_integers(graph, semiring)
    settings = _settings(options)
    start = time.perf_counter()
    # Reachability asks only where the edges are, so that weighted graphs are welcome.
    values = transitive_closure(graph, reflexive=True, **settings) if semiring == BOOLEAN else closure(graph, semiring, **settings)
    seconds = time.perf_counter() - start
    if options.output is not None:
        _write(options.output, values, labels, semiring)
    _print_matrix(values, labels, semiring)
    _print_summary(graph, values, labels, semiring, options.nonedge, seconds)


def _in_integers(graph: ArrayLike, semiring: Semiring) -> ArrayLike:
    """The whole numbers of a text in integers, where floats are no elements of the semiring."""
    with np.errstate(invalid="ignore"):
        integers = graph.array.astype(np.int64) if graph.array.dtype == np.float64 else graph.array
    if semiring.on_truth_values or not np.array_equal(integers, graph.array):
        return graph
    try:
        semiring.identities(np.float64)
    except DTypeError:
        return replace(graph, array=integers)
    return graph


def _settings(options: argparse.Namespace) -> dict[str, Any]:
    """The options of a call that both commands have."""
    return {"nonedge": options.nonedge, "dtype": options.dtype, "method": options.method, "progress": options.progress}


def _read(options: argparse.Namespace) -> tuple[Any, Sequence[Hashable]]:
    """The graph of the file that is named, and the names of its vertices, which the output can have."""
    graph, labels = _graph(options)
    if options.output is not None:
        require_names(options.output, labels)
    return graph, labels


def _graph(options: argparse.Namespace) -> tuple[Any, Sequence[Hashable]]:
    """The graph of the file that is named, and the names of its vertices."""
    if options.output is not None:
        require_writable(options.output, options.file, options.dtype)
    directed = False if options.undirected else None
    ends = {"source": options.source_column, "target": options.target_column}
    graph = read_file(options.file, **ends, weight=_weight(options.weight), directed=directed, encoding=options.encoding)
    if isinstance(graph, EdgeList):
        if options.weight in graph.columns:  # which may be called like a number
            graph = weighted(graph, options.weight)
        return graph, graph.labels
    if isinstance(graph, ArrayLike):
        return graph, graph.labels or range(len(graph.array))
    if graph.ndim != 2:
        raise GraphError(f"{options.file}: a graph is a square matrix, not an array of shape {graph.shape}")
    return graph, range(graph.shape[0])


def _weight(text: str | None) -> str | float | None:
    """The name of a column, or what every edge counts."""
    try:
        return text if text is None else _number(text)
    except argparse.ArgumentTypeError:
        return text


def _write(path: Path, values: Array, labels: Sequence[Hashable], semiring: Semiring) -> None:
    """Write a matrix where the caller wants it, and say so."""
    _say_written(path, write_file(path, values, labels, semiring), values)


def _say_written(path: Path, what: str, values: Array) -> None:
    """Say what a new file holds."""
    n = len(values)
    _say(f"semiring: wrote {path}: {what}, {n:,} × {n:,} in {values.dtype}", file=sys.stderr)


def _vertex(name: str, labels: Sequence[Hashable], file: Path) -> int:
    """The index of a vertex that is named on the command line."""
    for i, label in enumerate(labels):
        if str(label) == name:
            return i
    raise unknown_vertex(name, labels, f"{file}: ")


def _is_zero(values: Array, semiring: Semiring) -> Array:
    """Where a matrix holds the semiring's zero: no path."""
    return np.asarray(values == semiring.identities(values.dtype)[0][0])


def _print_paths(result: Any, labels: Sequence[Hashable], source: int | None, target: int | None) -> None:
    """A line for each pair: the distance, and the path."""
    sources = range(len(labels)) if source is None else [source]
    targets = range(len(labels)) if target is None else [target]
    pairs = [(labels[i], labels[j]) for i in sources for j in targets if i != j or (i == source and j == target)]
    for (start, end), path in zip(pairs, result.paths(pairs), strict=True):
        _say(f"{_text(result.distance(start, end))}: {' → '.join(map(str, path))}" if path else f"no path from {start} to {end}")


def _print_matrix(values: Array, labels: Sequence[Hashable], semiring: Semiring) -> None:
    """The matrix as a table, where it is small enough for the terminal."""
    if not 0 < len(labels) <= _TABLE:
        return
    missing = _is_zero(values, semiring)
    no_path = "·" if isinstance(semiring.zero, float | bool) else "0"
    names = list(map(printable, labels))
    cells = [["", *names]]
    for i, name in enumerate(names):
        cells.append([name, *(no_path if missing[i, j] else _text(values[i, j]) for j in range(len(labels)))])
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    if sum(widths) + 2 * len(widths) > shutil.get_terminal_size().columns:
        return
    for row in cells:
        print(row[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True)), sep="  ")
    print()


def _text(value: Any) -> str:
    """A number as a short text."""
    if isinstance(value, bool | np.bool_):
        return "1" if value else "0"
    return f"{value + 0.0:.6g}" if isinstance(value, float | np.floating) else str(value)  # + 0.0: a −0.0 is a 0


def _print_summary(
    graph: Any, values: Array, labels: Sequence[Hashable], semiring: Semiring, nonedge: float | None, seconds: float
) -> None:
    """What the result is like in numbers, and what it took."""
    n = len(labels)
    reached = ~_is_zero(values, semiring)
    np.fill_diagonal(reached, False)
    pairs = int(np.count_nonzero(reached))
    size = f"{counted(n, 'vertex', 'vertices')}, {counted(_edges(graph, semiring, nonedge), 'edge')}"
    print(f"{size}, {pairs:,} of {n * (n - 1):,} ordered pairs connected")
    if semiring == MIN_PLUS and pairs:
        from semiring.results.farthest import Greatest

        greatest = Greatest(1)
        greatest.add(values, reached)
        name = "diameter" if pairs == n * (n - 1) else "largest finite distance"
        _say(f"{name} {_text(greatest.values[0])}, from {labels[greatest.rows[0]]} to {labels[greatest.columns[0]]}")
    print(f"{duration(seconds)} in {values.dtype}, including the loading of the kernels")


def _edges(graph: Any, semiring: Semiring, nonedge: float | None) -> int:
    """How many edges a graph has."""
    if isinstance(graph, EdgeList):
        return len(graph.weights)
    if hasattr(graph, "nnz"):
        return int(graph.nnz)
    array = graph.array if isinstance(graph, ArrayLike) else graph
    zero = element(semiring.zero, array.dtype, ordered=True) if array.dtype.kind in "iu" else semiring.zero
    missing = matches(array, zero) | nonedges((array,), nonedge)
    if isinstance(graph, ArrayLike) and graph.missing is not None:
        missing |= graph.missing
    np.fill_diagonal(missing, True)
    return int(missing.size - np.count_nonzero(missing))
