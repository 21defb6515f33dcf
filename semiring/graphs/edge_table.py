"""Edges in columns, as NumPy arrays on the host: from a table of any library, or from arrays of tails, heads and weights.

No library of tables is imported. pandas, polars and similar libraries return a column by name. Other tables go to pyarrow, by the Arrow
PyCapsule interface or the dataframe interchange protocol.
"""

from __future__ import annotations

import datetime
import itertools
import re
import warnings
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence, Set
from decimal import Decimal
from fractions import Fraction
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from semiring.arrays.conversion import Array
from semiring.arrays.devices import host
from semiring.arrays.exchange import a_name_of, borrowed, comes_from, lends_memory, name_of
from semiring.common.errors import AssumptionWarning, DTypeError, GraphError, callers_level, described, library, listing, or_similar

__all__ = [
    "SOURCES", "TARGETS", "WHAT_EDGES_TAKES", "EdgeColumns", "direction_of", "edge_columns", "is_number", "no_such_column",
    "require_weights", "several_columns", "warn_of_unweighted", "weight_columns",
]  # fmt: skip

SOURCES = frozenset({"source", "src", "from", "u", "tail", "start", "origin"})
TARGETS = frozenset({"target", "dst", "to", "v", "head", "end", "destination", "dest"})
"""Lower-case names of columns of sources and of targets."""

_QUANTITY = "weight|w|length|len|distance|dist|cost|time|duration|capacity|value|price"
_UNIT = (
    "m|km|cm|mm|mi|ft|yd|metres|meters|kilometres|kilometers|miles|s|sec|secs|ms|min|mins|h|hr|hrs|seconds|minutes|hours|days"
    r"|kg|g|t|lb|eur|usd|gbp|chf|€|\$|bps|kbps|mbps|gbps|kw|mw"
)
_WEIGHT = re.compile(rf"(?:{_QUANTITY})(?:(?:[ _.-]|\s*[(\[])(?:{_UNIT})[)\]]?)?|km|miles|metres|meters|minutes|seconds|hours")
"""Lower-case names of columns of weights: a quantity, also with its unit (length_m, cost [EUR]), or a unit alone."""

_KEY = re.compile(
    "(?<![a-z])(?:ids?|uid|fid|gid|oid|osmid|objectid|key|index|idx|nr|no|num|number|code|fips|zip|unnamed"
    "|years?|yr|month|date|day)(?![a-z])"
)
"""Words in lower-case names of columns of ids or dates."""

_NUMBERS = (int, float, Fraction, np.integer, np.floating)

_NEARLY_ALL = 0.9  # least share of numbers in a likely weight column: a few streets have a text as their length
_MAY_BE_MISSING = (float, np.floating, Decimal, datetime.date, np.datetime64, np.timedelta64)  # some are unlike themselves; NaT is a date


_NO_WEIGHT = (
    *(str, bytes, complex, np.complexfloating, list, dict),
    *(datetime.date, datetime.time, datetime.timedelta, np.datetime64, np.timedelta64),
)  # fmt: skip
"""Types that are no element of any semiring, and no tuple of components."""


WHAT_EDGES_TAKES = (
    "sr.edges takes a list of pairs (u, v) or triples (u, v, weight), a table, or arrays: sr.edges(tails, heads, weights); "
    "and directed=, nodes= by their names"
)


class EdgeColumns(NamedTuple):
    """Edges by columns of equal length, which nobody else changes."""

    tails: Array  # numbers, or objects
    heads: Array
    weights: Array
    others: Mapping[Any, Any] = MappingProxyType({})  # the other columns of a table, by name

    def both_ways(self, rows: list[int]) -> EdgeColumns:
        """Return all edges, and after them those of some rows from head to tail, except loops."""
        tails, heads, weights, others = self
        again = np.array([row for row in rows if tails[row] != heads[row]], np.intp)
        if tails.dtype != heads.dtype:  # a common dtype might round integers
            tails, heads = tails.astype(object), heads.astype(object)
        longer = {name: np.concatenate([column, column[again]]) for name, column in others.items()}
        ends = np.concatenate([tails, heads[again]]), np.concatenate([heads, tails[again]])
        return EdgeColumns(*ends, np.concatenate([weights, weights[again]]), longer)


def _is_table(value: Any) -> bool:
    """Return True for a table: an object with named columns, including NumPy's structured arrays."""
    kind = type(value)
    if isinstance(value, np.ndarray):
        return value.dtype.names is not None
    if hasattr(kind, "to_numpy") and not hasattr(kind, "columns"):  # a single column
        return False
    return any(hasattr(kind, name) for name in ("columns", "column_names", "__dataframe__", "__arrow_c_stream__"))


def edge_columns(edge_list: Any, heads: Any, weights: Any, source: Any, target: Any, weight: Any) -> EdgeColumns | None:
    """Return edges as columns if they are given by arrays or a table, else None. See `edges`."""
    if _is_table(edge_list):
        if heads is not None or weights is not None:
            raise GraphError("of a table name the columns: sr.edges(table, source='from', target='to', weight='km')")
        return _columns_of(edge_list, source, target, weight)
    if source is not None or target is not None or weight is not None:
        raise GraphError(f"source=, target= and weight= name columns of a table, which {a_name_of(edge_list)} is not; {WHAT_EDGES_TAKES}")
    if heads is not None:
        if isinstance(heads, bool | np.bool_):
            raise GraphError(f"heads is {heads}, and no array; {WHAT_EDGES_TAKES}")
        tails, heads = _column(edge_list, "tails"), _column(heads, "heads")
        found = EdgeColumns(tails, heads, np.ones(len(tails), np.int64) if weights is None else _column(weights, "weights"))
        if any(isinstance(u, tuple | list) for u in tails[:1]) and not any(isinstance(v, tuple) for v in heads[:1]):
            raise GraphError(f"tails is a list of {name_of(tails[0])}s, as edges are, but heads is none; {WHAT_EDGES_TAKES}")
        lengths = list(map(len, found[:3]))
        if len(set(lengths)) > 1:
            three = (
                "tails, heads and weights have {}, {} and {} entries" if weights is not None else "tails and heads have {} and {} entries"
            )
            raise GraphError(f"{three.format(*lengths)}; each edge needs one of each")
    elif weights is not None:
        raise GraphError(f"weights without heads; {WHAT_EDGES_TAKES}")
    elif not lends_memory(edge_list):
        return None
    else:
        array = host(borrowed(edge_list).array)
        if array.ndim not in (1, 2):
            raise GraphError(f"edges are no array of shape {array.shape}, but one of shape (m, 2), or (m, 3) with their weights")
        if array.ndim == 1 or array.shape[1] not in (2, 3) or array.dtype.kind not in "biuf":
            return None
        ends = np.array(array.T)
        found = EdgeColumns(ends[0], ends[1], ends[2] if len(ends) > 2 else np.ones(len(array), np.int64))
    _require_present(found.tails, "tails")
    _require_present(found.heads, "heads")
    return found


def _columns_of(table: Any, source: Hashable | None, target: Hashable | None, weight: Hashable | None) -> EdgeColumns:
    series = _series(table)
    names = list(series)
    tails, heads = _ends(names, source, target, table)
    found = {name: _column(values, f"the column {name!r}") for name, values in series.items()}
    if weight is None and (usual := weight_columns([name for name in names if name not in (tails, heads)])):
        if len(usual) > 1:
            raise GraphError(several_columns("weight", usual))
        weight, amounts = usual[0], found[usual[0]]
        if isinstance(next(iter(amounts), None), str | datetime.date | datetime.timedelta | np.datetime64 | np.timedelta64):
            word = _first_word(amounts.tolist())
            raise DTypeError(
                f"the column {weight!r} is the weight by its name, but {amounts[word]!r} in row {word} is no real number; make numbers of "
                "the column, pass weight=1 to count edges, or name the column that counts by weight="
            )
    named = weight is not None and (not is_number(weight) or weight in names)
    if named:
        _require(names, "weight", weight)
    for name in (tails, heads):
        _require_present(found[name], f"the column {name!r}")
    if named and (row := _missing(found[weight])) is not None:
        u, v, cell = (found[name][row : row + 1].tolist()[0] for name in (tails, heads, weight))
        raise GraphError(
            f"the column {weight!r} has no value in row {row} ({cell}), from {u!r} to {v!r}; leave such rows out, or fill them in"
        )
    others = {name: values for name, values in found.items() if name not in (tails, heads)}
    if weight is None:
        warn_of_unweighted(others)
    ends = found[tails], found[heads]
    return EdgeColumns(*ends, found[weight] if named else np.full(len(ends[0]), 1 if weight is None else weight), others)


def _first_word(values: Sequence[Any]) -> int:
    """Return the position of the first text that is no number, or 0 if there is none."""
    for position, value in enumerate(values):
        if isinstance(value, str | bytes):
            try:
                float(value)
            except ValueError:
                return position
    return 0


def _series(table: Any) -> dict[Any, Any]:
    kind = type(table)
    if hasattr(kind, "collect"):
        raise GraphError(f"{a_name_of(table)} has yet to be computed; pass .collect()")
    if isinstance(table, np.ndarray):
        names = list(table.dtype.names or ())
    elif hasattr(kind, "columns") and hasattr(kind, "to_numpy"):
        names = list(table.columns)
    else:
        if not (comes_from(table, "pyarrow") and hasattr(table, "column_names")):
            what = a_name_of(table)
            if hasattr(table, "__arrow_c_stream__"):
                table = library("pyarrow", what).table(table)
            else:
                table = library("pyarrow.interchange", what).from_dataframe(table)
        names = list(table.column_names)
    if twice := [name for name in names if names.count(name) > 1]:
        raise GraphError(f"the {name_of(table)} has two columns {twice[0]!r}; rename one")
    return {name: table[name] for name in names}


def _ends(names: list[Any], source: Hashable | None, target: Hashable | None, table: Any) -> tuple[Any, Any]:
    """Return the columns of sources and of targets: the named ones, or the only columns with unambiguous names."""
    if source is not None and target is not None:
        _require(names, "source", source)
        _require(names, "target", target)
        if source == target:
            raise GraphError(f"source= and target= name one column, {source!r}")
        return source, target
    if source is not None or target is not None:
        raise GraphError(f"name both, source= and target=; the columns are {listing(names)}")
    sources, targets = ([name for name in names if str(name).lower() in known] for known in (SOURCES, TARGETS))
    if len(sources) == len(targets) == 1:
        return sources[0], targets[0]
    levels = [level for level in getattr(getattr(table, "index", None), "names", ()) if level is not None]
    index = f"; {listing(levels)} of the index are columns after reset_index()" if levels else ""
    raise GraphError(
        f"which columns hold the two ends of each edge? Name them, as in sr.edges(table, source='from', target='to', weight='km'); "
        f"the columns are {listing(names)}{index}"
    )


def _require(names: list[Any], argument: str, name: Hashable) -> None:
    if not (isinstance(name, Hashable) and name in names):
        raise GraphError(no_such_column(argument, name, names))


def no_such_column(argument: str, name: Any, names: Sequence[Any]) -> str:
    """Say that an argument names no column."""
    return f"{argument}={described(name)}: there is no such column; {or_similar(name, names, f'there are {listing(names)}')}"


def weight_columns(names: Sequence[Any]) -> list[Any]:
    """Find the columns called weight, or else all with another usual name of weights."""
    small = {name: str(name).strip().lower() for name in names}
    return [name for name in names if small[name] == "weight"] or [name for name in names if _WEIGHT.fullmatch(small[name])]


def several_columns(what: str, names: Sequence[Any]) -> str:
    """Say that several columns could be the source, the target or the weight, and how to choose one."""
    both = f"the columns {' and '.join(map(repr, names))} could both be the {what}"
    if len(set(names)) < len(names):
        return f"{both}; rename one in the table"
    rest = {"source": " and target=", "target": " and source=", "weight": ", or weight=1 to count edges"}[what]
    return f"{both}; pass {what}={names[0]!r} or {what}={names[1]!r}{rest}"


def direction_of(columns: Mapping[Any, Sequence[Any] | Array], row: Callable[[int], str]) -> bool | list[int] | None:
    """Read the directions of edges from a column "Type", as Gephi writes it; None without such a column.

    Of edges of both kinds, the positions of the undirected ones are listed. `row` names a row by its position, for messages. Raises
    GraphError for edges of a third kind.
    """
    name = next((name for name in columns if str(name).strip().lower() == "type"), None)
    kinds = [str(kind).strip() for kind in columns[name]] if name is not None else []
    small = [kind.lower() for kind in kinds]
    if not {"directed", "undirected"} & set(small):
        return None
    if (other := next((i for i, kind in enumerate(small) if kind not in ("directed", "undirected")), None)) is not None:
        raise GraphError(
            f"the column {name!r} says {kinds[other]!r} in {row(other)}, and Directed or Undirected elsewhere; "
            "pass directed=False if all edges go both ways, or directed=True if none does"
        )
    return small[0] == "directed" if len(set(small)) == 1 else [i for i, kind in enumerate(small) if kind == "undirected"]


def is_number(weight: Any) -> bool:
    """Return True for a number that every edge may count."""
    return isinstance(weight, _NUMBERS) and not isinstance(weight, bool)


def warn_of_unweighted(columns: Mapping[Any, Sequence[Any] | Array], where: str = "") -> bool:
    """Warn that each edge counts 1 if columns hold numbers, and return True in this case. The message begins with `where`."""
    shares = {name: _share_of_numbers(columns[name]) for name in columns}
    of_all = [name for name, share in shares.items() if share == 1]
    found = of_all or [name for name, share in shares.items() if share > 0]
    keys = [name for name in found if _is_key(name, columns[name])]
    likely = sorted((name for name in found if name not in keys), key=lambda name: not weight_columns([name]))
    if not found:
        return False
    have = "all have" if of_all else "not all have a number as"
    if not of_all:
        name = (likely or keys)[0]
        advice = f"pass weight={name!r} once each edge has one, or weight=1 to count edges"
    elif not likely:
        advice = "ids or dates by their looks; pass weight=1 to count edges, or name the column that counts by weight="
    elif len(likely) == 1:
        advice = f"pass weight={likely[0]!r} to count that, or weight=1 to count edges"
    else:
        advice = f"pass one of them, as weight={likely[0]!r}, or weight=1 to count edges"
    warnings.warn(
        f"{where}each edge counts 1, as none has a 'weight'; {have} {listing([*likely, *keys])}: {advice}",
        AssumptionWarning,
        stacklevel=callers_level(),
    )
    return True


def _is_key(name: Any, values: Sequence[Any] | Array) -> bool:
    """Recognize ids and dates among columns of numbers: by name, and four or more integers if they ascend, or could all be years."""
    if _KEY.search(re.sub(r"(?<=[a-z])(?=[A-Z])", "_", str(name)).lower()):
        return True
    if len(values) < 4 or not all(issubclass(kind, int | np.integer) for kind in set(map(type, values))):
        return False
    return all(a < b for a, b in itertools.pairwise(values)) or all(1800 <= value <= 2100 for value in values)


def _share_of_numbers(values: Sequence[Any] | Array) -> float:
    """Find the share of edges with a number, and no truth value; 0 for a column of other values with a few numbers."""
    if isinstance(values, np.ndarray) and values.dtype != object:
        return float((values == values).mean()) if values.dtype.kind in "iuf" and len(values) else 0.0
    numbers = {kind for kind in set(map(type, values)) if issubclass(kind, _NUMBERS) and kind is not bool}
    if not numbers:
        return 0.0
    count = sum(type(value) in numbers and value == value for value in values)
    others = sum(isinstance(value, str | bool) for value in values)
    return count / len(values) if count >= _NEARLY_ALL * (count + others) else 0.0


def _column(values: Any, what: str) -> Array:
    """Copy a column, of numbers or of the objects that its library shows (timestamps, dates, texts); messages call it `what`."""
    if comes_from(values, "pyarrow"):
        array = np.asarray(values)
    elif hasattr(values, "to_numpy"):
        array = values.to_numpy()
    elif lends_memory(values):
        array = host(borrowed(values).array)
    elif isinstance(values, Iterable) and not isinstance(values, str | bytes | Mapping | Set):
        values = list(values)
        kinds = set(map(type, values))
        numeric = kinds in ({int}, {float}, {bool}) or (len(kinds) == 1 and issubclass(next(iter(kinds)), np.number | np.bool_))
        array = np.array(values) if numeric else _objects(values)
    else:
        raise GraphError(f"{what} is {described(values)}; pass a list, an array or the column of a table, with an entry for each edge")
    if array.ndim != 1:
        raise GraphError(f"{what} is {described(array)}, not one entry for each edge")
    if array.dtype.kind in "biufc":
        return np.array(array)
    if array.dtype.kind not in "mM" or isinstance(values, np.ndarray):
        # tolist() would make integers of nanoseconds.
        return _objects(list(array) if array.dtype.kind in "mM" else array.tolist())
    of_library: Any = values
    return _objects(of_library.to_list() if hasattr(values, "to_list") else of_library.to_pylist())


def _objects(values: list[Any]) -> Array:
    return np.fromiter(values, object, len(values))


def _require_present(values: Array, what: str) -> None:
    """Refuse a missing value: NaN, None, pandas' NA and NaT. Raises GraphError with its row."""
    if (row := _missing(values)) is not None:
        raise GraphError(f"{what} has no value in row {row} ({values[row]}); leave such rows out, or fill them in")


def _missing(values: Array) -> int | None:
    if values.dtype.kind in "fc":
        nan = np.isnan(values)
        return int(np.argmax(nan)) if nan.any() else None
    if values.dtype.kind != "O":
        return None
    kinds = {kind for kind in set(map(type, values.tolist())) if _is_missing_type(kind) or issubclass(kind, _MAY_BE_MISSING)}
    if not kinds:
        return None
    return next((i for i, v in enumerate(values) if type(v) in kinds and (_is_missing_type(type(v)) or v != v)), None)


def _is_missing_type(kind: type) -> bool:
    """Return True if all values of a type mean that a value is missing."""
    return kind is type(None) or kind.__name__ in ("NAType", "NaTType")


def require_weights(weights: list[Any] | Array, where: Callable[[int], str], *, structured: bool = True) -> None:
    """Refuse a value that is certainly no weight, naming its edge by `where`; tuples only if `structured`. Other objects are allowed."""
    if isinstance(weights, np.ndarray) and weights.dtype.kind in "biuf":
        return
    types = set(map(type, weights))
    never = _NO_WEIGHT if structured else (*_NO_WEIGHT, tuple)
    refused = {t for t in types if issubclass(t, never) or (t is not type(None) and _is_missing_type(t))}
    if not refused:
        return
    position, weight = next((i, w) for i, w in enumerate(weights) if type(w) in refused)
    if isinstance(weight, str | bytes) and (word := _first_word(list(weights))):
        position, weight = word, weights[word]
    advice = "; give the edge a weight, or leave it out" if _is_missing_type(type(weight)) else ""
    if issubclass(type(weight), str | bytes):
        advice = (
            "; give the edge a number (float(text) makes one of a text) or leave it out; sr.read_edges(path) reads a file with its header"
        )
    elif isinstance(weight, Mapping):
        advice = "; pass the graph of which these are attributes itself, or with each edge one of them: graph.edges(data='weight')"
    elif issubclass(type(weight), datetime.timedelta | np.timedelta64):
        advice = "; divide by a unit of time, such as datetime.timedelta(minutes=1)"
    raise DTypeError(f"the weight of {where(position)} is {weight!r}, which is no real number{advice}")
