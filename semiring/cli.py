"""The command line: ``python -m semiring apsp | closure | demo | info``."""

from __future__ import annotations

import argparse
import csv
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
from importlib import import_module
from pathlib import Path
from typing import Any, TextIO

import numpy as np

from semiring.algebra.catalogue import BOOLEAN, MIN_PLUS, as_semiring, semirings
from semiring.algebra.definition import Semiring
from semiring.algebra.elements import element
from semiring.arrays.conversion import Array
from semiring.arrays.exchange import ArrayLike
from semiring.common.errors import AssumptionWarning, DivergenceError, DTypeError, GraphError, SemiringError, printable
from semiring.common.units import counted, duration
from semiring.files.edge_text import HeaderWarning
from semiring.files.fields import number
from semiring.files.formats import replacing
from semiring.files.matrix_text import OUTPUTS, require_names, require_writable, write_file
from semiring.files.reading import INPUTS, read_file
from semiring.graphs import EdgeList, NonEdgeWarning
from semiring.graphs.dense import matches, nonedges
from semiring.graphs.vertices import unknown_vertex
from semiring.graphs.weights import weighted

__all__ = ["main"]

_TABLE = 12
"""Vertices, at most, of a matrix that is printed as a whole."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line with these arguments, by default the arguments of the process, and return the exit status.

    The status is 0 on success, 1 if the closure does not converge (a negative cycle), and 2 for wrong input.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal that cannot show ∞ shows ?
    options = _parser().parse_args(arguments)
    try:
        with warnings.catch_warnings():
            for kind in (AssumptionWarning, NonEdgeWarning, HeaderWarning):
                warnings.simplefilter("always", kind)
            # Without the source line, which explains nothing on the command line.
            warnings.showwarning = lambda message, *_, **__: _say(f"semiring: warning: {_as_options(str(message))}", file=sys.stderr)
            options.run(options)
        sys.stdout.flush()
    except DivergenceError as error:
        _say(f"semiring: {error}", file=sys.stderr)
        cycle = " → ".join(map(printable, [*error.cycle, error.cycle[0]])) if error.cycle else ""
        if cycle not in str(error):  # the message cuts a long cycle short
            _say(f"cycle: {cycle}", file=sys.stderr)
        return 1
    except BrokenPipeError:  # the reader of the output (head, less) closed the pipe
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
    """Print a line with control characters escaped, so that the name of a vertex or a file cannot command the terminal."""
    print(printable(text), file=file)


def _as_options(text: str) -> str:
    """Write the arguments that a message of the library names as options of the command line."""
    text = re.sub(r"\bdirected=(True)?(False)?", lambda found: "--directed" if found[1] else "--undirected", text)
    text = re.sub(r"\bmatrix=(True|False)", lambda found: "--matrix" if found[1] == "True" else "--no-matrix", text)
    text = re.sub(r"\bsources=", "--from=", text)
    text = re.sub(r"\b(source|target)=", r"--\1-column=", text)
    text = re.sub(r"\b(nonedge|dtype|encoding|weight|method|tolerance|decimal)=(np\.)?", r"--\1=", text)
    return re.sub(r"math\.inf|float\('inf'\)", "inf", text)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="semiring", description="Find shortest paths or other closures of a graph in a file.")
    commands = parser.add_subparsers(required=True, metavar="command")

    apsp = commands.add_parser("apsp", help="shortest distances between all pairs of vertices", description="All-pairs shortest paths.")
    apsp.add_argument("--paths", action="store_true", help="also find the paths (semiring.Paths.load reads them from -o FILE.npz)")
    apsp.add_argument("--from", dest="source", metavar="X", help="print the shortest paths from this vertex")
    apsp.add_argument("--to", dest="target", metavar="Y", help="print the shortest paths to this vertex")
    apsp.add_argument("--all", action="store_true", help="print all shortest paths where several tie")
    apsp.add_argument("--pareto", metavar="NAME", help="between --from and --to: the paths that no path beats in this column too")
    apsp.set_defaults(run=_apsp)

    closure = commands.add_parser("closure", help="the closure over another semiring", description="Compute the closure I ⊕ A ⊕ A² ⊕ …")
    names = sorted(name for name, semiring in semirings().items() if semiring.components == 1)
    closure.add_argument("--semiring", required=True, type=_semiring, metavar="NAME", help=", ".join(names))
    closure.set_defaults(run=_closure)

    for command in (apsp, closure):
        command.add_argument("file", type=Path, help=INPUTS)
        command.add_argument("-o", "--output", type=Path, metavar="FILE", help=f"write the matrix: {OUTPUTS}")
        command.add_argument("--encoding", type=_encoding, help="text encoding of an edge list: utf-8 (default), latin-1, utf-16, …")
        command.add_argument(
            "--decimal", metavar="MARK", help="decimal mark, a point or a comma (by default a comma that can be nothing else)"
        )
        either = "read the lines of a text as the rows of a matrix, or as edges (by default the shape decides)"
        command.add_argument("--matrix", action=argparse.BooleanOptionalAction, help=either)
        for directed, option, way in ((False, "--undirected", "go both ways"), (True, "--directed", "lead one way")):
            way = f"let every edge of an edge list {way}"
            command.add_argument(option, dest="directed", action="store_const", const=directed, help=way)
        command.add_argument("--weight", metavar="NAME", help="column of an edge table with the weights, or one number for every edge")
        for end in ("source", "target"):
            command.add_argument(f"--{end}-column", metavar="NAME", help=f"column of an edge list with the {end}s of the edges")
        turns = "table of turns with the columns from, via, to and cost; without a cost a turn is forbidden"
        command.add_argument("--turns", type=Path, metavar="FILE", help=turns)
        command.add_argument("--limit", type=_number, metavar="X", help="print only the pairs up to this distance or element, one a line")
        command.add_argument(
            "--tolerance", type=_number, default=0.0, metavar="X", help="relative rounding error of weights, such as 1e-12"
        )
        command.add_argument("--nonedge", type=_number, metavar="VALUE", help="value of a matrix that means no edge (0, inf, nan, …)")
        command.add_argument("--method", default="auto", choices=("auto", "iterative", "blocked", "recursive"), help="algorithm (auto)")
        command.add_argument("--dtype", help="number type of the computation: float64, float32, int32, …")
        bar = "show a progress bar (by default on a terminal, after two seconds)"
        command.add_argument("--progress", action=argparse.BooleanOptionalAction, help=bar)

    demo = commands.add_parser("demo", help="find all shortest routes of the US airport network")
    demo.set_defaults(run=lambda _: import_module("semiring.demo").run_demo())
    info = commands.add_parser("info", help="show versions, processor, threads, cache and GPUs")
    info.set_defaults(run=lambda _: import_module("semiring.config").show_config())
    return parser


def _semiring(text: str) -> Semiring:
    """Return the semiring of this name, if its elements are single numbers as in the matrix of a file."""
    try:
        semiring = as_semiring(text)
    except SemiringError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    if semiring.components > 1:
        raise argparse.ArgumentTypeError(
            f"the elements of {semiring.name} are tuples; use Python: semiring.closure(graph, {semiring.name!r})"
        )
    return semiring.marked(witness=False)


def _encoding(text: str) -> str:
    try:
        b".".decode(text, "replace")
    except (LookupError, ValueError):
        raise argparse.ArgumentTypeError(f"unknown encoding {text!r}; examples are utf-8, latin-1, cp1252 and utf-16") from None
    return text


def _number(text: str) -> float:
    """Return the number that a text writes; an integer stays exact."""
    try:
        value = math.nan if text.lower() == "nan" else number(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    if value is None:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number")
    return value


def _apsp(options: argparse.Namespace) -> None:
    from semiring.solve import apsp

    graph, labels = _read(options)
    source, target = (None if end is None else _vertex(end, labels, options.file) for end in (options.source, options.target))
    some = source is not None or target is not None
    wanted = options.paths or some
    settings = _settings(options)
    if options.pareto is not None:
        from semiring.alternatives import pareto_paths

        if source is None or target is None or options.output is not None or options.limit is not None:
            raise SemiringError("--pareto prints paths between two vertices; name them by --from and --to, without -o and --limit")
        if options.all or options.paths or options.tolerance:
            raise SemiringError("--pareto goes without --all, --paths and --tolerance")
        found = pareto_paths(graph, source, target, options.pareto, nonedge=options.nonedge, dtype=options.dtype)
        for one, other, path in found:
            _say(f"{_text(one)}, {_text(other)}: {' → '.join(map(str, path))}")
        if not found:
            _say(f"no path from {source} to {target}")
        return
    if some and options.output is None:  # only paths are printed, for which a search suffices
        settings |= {"sources": None if source is None else [source], "targets": None if target is None else [target]}
    if options.limit is not None:
        named: dict[str, Any] = {"sources": source if source is None else [source], "targets": target if target is None else [target]}
        _say_within(apsp(graph, limit=options.limit, **settings | named), labels, source, target, options)
        return
    start = time.perf_counter()
    result = apsp(graph, paths=wanted, **settings)
    seconds = time.perf_counter() - start
    values = result.distances if wanted else result
    if options.output is not None and options.paths and options.output.suffix.lower() == ".npz":
        result.save(options.output)
        _say_written(options.output, "the paths", values)
    elif options.output is not None:
        _say_written(options.output, write_file(options.output, values, labels, MIN_PLUS), values)
    if some:
        _print_paths(result, labels, source, target, every=options.all)
        if source is not None and target is not None and not result.path(source, target):
            _say_if_directed(graph, source, target)
        return
    _print_matrix(values, labels, MIN_PLUS)
    if options.paths and len(labels) <= _TABLE:
        _print_paths(result, labels, None, None, every=options.all)
        print()
    _print_summary(graph, values, labels, MIN_PLUS, options.nonedge, seconds)


def _say_within(
    found: Any, labels: Sequence[Hashable], source: Hashable | None, target: Hashable | None, options: argparse.Namespace
) -> None:
    """Print the pairs within a limit, one a line, or write them as an edge list."""
    rows, columns = labels if source is None else [source], labels if target is None else [target]
    pairs = found.tocoo()
    named = [(rows[i], columns[j], _text(x)) for i, j, x in zip(*pairs.coords, pairs.data, strict=True)]
    lines = [line for line in named if line[0] != line[1]]
    if options.output is None:
        for u, v, x in lines:
            _say(f"{u} → {v}: {x}")
        return
    if options.output.suffix.lower() not in (".csv", ".tsv", ".txt"):
        raise SemiringError(f"{options.output}: pairs within a limit are written as .csv, .tsv or .txt")
    with replacing(options.output) as new, new.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, delimiter="," if options.output.suffix.lower() == ".csv" else "\t")
        writer.writerows([("source", "target", "weight"), *lines])
    _say(f"semiring: wrote {options.output}: {counted(len(lines), 'pair')}", file=sys.stderr)


def _say_if_directed(graph: Any, source: Hashable, target: Hashable) -> None:
    """Print a hint if ignoring the direction of the edges would give a path."""
    from semiring.solve import transitive_closure

    if not isinstance(graph, EdgeList) or not graph.directed:
        return
    if transitive_closure(replace(graph, directed=False), sources=[source], targets=[target]).any():
        _say("the edges are directed; with --undirected there is a path", file=sys.stderr)


def _closure(options: argparse.Namespace) -> None:
    from semiring.solve import closure, transitive_closure

    graph, labels = _read(options)
    semiring = options.semiring
    if isinstance(graph, ArrayLike) and graph.numbers:
        graph = _in_integers(graph, semiring)
    settings = _settings(options)
    if options.limit is not None:
        _say_within(closure(graph, semiring, limit=options.limit, **settings), labels, None, None, options)
        return
    start = time.perf_counter()
    # Reachability ignores weights, so a weighted graph is valid here too.
    values = transitive_closure(graph, reflexive=True, **settings) if semiring == BOOLEAN else closure(graph, semiring, **settings)
    seconds = time.perf_counter() - start
    if options.output is not None:
        _say_written(options.output, write_file(options.output, values, labels, semiring), values)
    _print_matrix(values, labels, semiring)
    _print_summary(graph, values, labels, semiring, options.nonedge, seconds)


def _in_integers(graph: ArrayLike, semiring: Semiring) -> ArrayLike:
    """Convert the whole numbers of a text to integers if floats are not elements of the semiring."""
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
    return {
        "nonedge": options.nonedge,
        "dtype": options.dtype,
        "method": options.method,
        "progress": options.progress,
        "tolerance": options.tolerance,
    }


def _read(options: argparse.Namespace) -> tuple[Any, Sequence[Hashable]]:
    """Return the graph of the file and its vertex names, once the output file can hold them."""
    if options.output is not None:
        require_writable(options.output, options.file, options.dtype)
    ends = {"source": options.source_column, "target": options.target_column}
    text = {"encoding": options.encoding, "decimal": options.decimal, "matrix": options.matrix}
    graph = read_file(options.file, **ends, weight=_weight(options.weight), directed=options.directed, **text)
    if isinstance(graph, EdgeList):
        if options.weight in graph.columns:  # the title of a column may be a number
            graph = weighted(graph, options.weight)
        labels: Sequence[Hashable] = graph.labels
        graph = graph if options.turns is None else _with_turns(graph, options.turns, options.encoding)
    elif options.turns is not None:
        raise GraphError(f"{options.file}: --turns needs a list of edges, and this is a matrix")
    elif isinstance(graph, ArrayLike):
        labels = graph.labels or range(len(graph.array))
    elif graph.ndim == 2:
        labels = range(graph.shape[0])
    else:
        raise GraphError(f"{options.file}: a graph is a square matrix, not an array of shape {graph.shape}")
    if options.output is not None:
        require_names(options.output, labels)
    return graph, labels


def _with_turns(graph: EdgeList, file: Path, encoding: str | None) -> EdgeList:
    """Return edges with the costs of turns in a table, whose first line may be a header."""
    names, costs = {str(label): label for label in graph.labels}, {}
    try:
        with file.open(newline="", encoding=encoding or "utf-8-sig") as table:
            rows = list(csv.reader(table, delimiter="\t" if file.suffix.lower() == ".tsv" else ","))
    except UnicodeDecodeError as error:
        raise GraphError(f"{file} is no text in {error.encoding}; name its encoding by --encoding, such as latin-1") from None
    for line, row in enumerate(rows, 1):
        fields = [field.strip() for field in row]
        if not any(fields) or (line == 1 and names.keys().isdisjoint(fields[:3]) and {"from", "via", "to"} & set(map(str.lower, fields))):
            continue
        if len(fields) not in (3, 4):
            raise GraphError(f"{file}, line {line}: a turn has the fields from, via, to and cost, not {counted(len(fields), 'field')}")
        for name in fields[:3]:
            if name not in names:
                raise unknown_vertex(name, graph.labels, f"{file}, line {line}: ")
        u, v, w = map(names.__getitem__, fields[:3])
        if ((u, v), (v, w)) in costs:
            raise GraphError(f"{file}, line {line}: the turn {u} → {v} → {w} stands twice")
        try:
            costs[(u, v), (v, w)] = _number(fields[3]) if any(fields[3:]) else None
        except argparse.ArgumentTypeError as error:
            raise GraphError(f"{file}, line {line}: {error}") from None
    return graph.with_turns(costs)


def _weight(text: str | None) -> str | float | None:
    """Return a number as the weight of every edge, and other text as the name of a column."""
    try:
        return text if text is None else _number(text)
    except argparse.ArgumentTypeError:
        return text


def _say_written(path: Path, what: str, values: Array) -> None:
    n = len(values)
    _say(f"semiring: wrote {path}: {what}, {n:,} × {n:,} in {values.dtype}", file=sys.stderr)


def _vertex(name: str, labels: Sequence[Hashable], file: Path) -> Hashable:
    for label in labels:
        if str(label) == name:
            return label
    raise unknown_vertex(name, labels, f"{file}: ")


def _is_zero(values: Array, semiring: Semiring) -> Array:
    return np.asarray(values == semiring.identities(values.dtype)[0][0])


def _print_paths(result: Any, labels: Sequence[Hashable], source: Hashable | None, target: Hashable | None, *, every: bool) -> None:
    sources, targets = labels if source is None else [source], labels if target is None else [target]
    pairs = [(u, v) for u in sources for v in targets if u != v or (u == source and v == target)]
    for (start, end), first in zip(pairs, result.paths(pairs), strict=True):
        for path in result.all_paths(start, end) if every and first else [first]:
            _say(f"{_text(result.distance(start, end))}: {' → '.join(map(str, path))}" if path else f"no path from {start} to {end}")


def _print_matrix(values: Array, labels: Sequence[Hashable], semiring: Semiring) -> None:
    """Print the matrix as a table if it is small enough for the terminal."""
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
    if isinstance(value, bool | np.bool_):
        return "1" if value else "0"
    return f"{value + 0.0:.6g}" if isinstance(value, float | np.floating) else str(value)  # + 0.0 turns −0.0 into 0


def _print_summary(
    graph: Any, values: Array, labels: Sequence[Hashable], semiring: Semiring, nonedge: float | None, seconds: float
) -> None:
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
    print(f"{duration(seconds)} in {values.dtype}, including the time to load the kernels")


def _edges(graph: Any, semiring: Semiring, nonedge: float | None) -> int:
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
