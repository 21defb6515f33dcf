"""A closure with its paths on disk, so that another process can ask it the same questions. Nothing is pickled."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from semiring.algebra.catalogue import semirings
from semiring.algebra.definition import Semiring
from semiring.arrays.conversion import outside, require_inside
from semiring.arrays.devices import host
from semiring.arrays.memory import fits, free_on
from semiring.arrays.pieces import pieces
from semiring.common.errors import DTypeError, GraphError, SemiringError, TooLargeError, brief
from semiring.common.units import format_bytes
from semiring.files.archives import Damage
from semiring.files.formats import blocks, format_for, rows_on_host
from semiring.graphs.vertices import Vertices
from semiring.kernels.operations import Operations
from semiring.kernels.overflow.statistics import surely_elements
from semiring.results.construction import ConstructionMatrix
from semiring.results.store import Names, Store

__all__ = ["load", "save"]

Array = np.ndarray[Any, Any]

_VERSION = 1

_SAMPLE = 8
"""Elements on which ⊕ and ⊗ are compared with what they were."""

_DTYPES = tuple(np.dtype(code).name for code in "?bhilqBHILQefdg")
"""DTypes that matrices in files may have."""


def save(path: str | os.PathLike[str], found: Store) -> None:
    """See `Paths.save`."""
    file = format_for(Path(path))
    if any(d.kind == "O" for d in found.dtypes):
        raise DTypeError(
            "exact entries are Python objects, which cannot be kept without pickle: compute with dtype=float or int to save paths, or use "
            "pickle, and load that only from sources you trust"
        )
    if not surely_elements(found.semiring, found.values):
        require_inside(found.semiring, found.values, "values")  # or they could not be loaded
    edges = found.dense() if _may_be_bent(found) else None
    via, labels = found.construction(), found.names.labels
    header = {
        "paths": _VERSION,
        "semiring": _identity(found),
        "shape": list(via.shape),
        "dtypes": [str(d) for d in found.dtypes],
        "reflexive": found.reflexive,
        "edges": edges is not None,
        "nodes": None if labels is None else [_written(node) for node in labels],
    }
    arrays = {f"value{c}": v for c, v in enumerate(found.values)} | {"via": via}
    file.write(json.dumps(header), arrays | {f"edge{c}": e for c, e in enumerate(edges or ())})


def load(path: str | os.PathLike[str], semiring: Semiring | None, *, mmap: bool) -> Store:
    """See `Paths.load`."""
    with format_for(Path(path)).reading(mmap=mmap) as (text, read):
        header = _header(text, path)
        dtypes, shape = tuple(map(np.dtype, header["dtypes"])), tuple(header["shape"])
        nodes = None if header["nodes"] is None else _names(header["nodes"], shape[-1])
        chosen = _checked(header["semiring"], dtypes, semiring, path)
        needed = math.prod(shape) * (sum(d.itemsize for d in dtypes) * (2 if header["edges"] else 1) + np.dtype(np.int32).itemsize)
        if not mmap and not fits(needed, "cpu"):
            available = f"{format_bytes(free_on('cpu') or 0)} of memory are available"
            remedy = "mmap=True leaves those of an .npz file where they are"
            raise TooLargeError(f"{path} holds {format_bytes(needed)}, and {available}; {remedy}")

        def matrices(name: str) -> tuple[Array, ...]:
            found = tuple(read(f"{name}{c}", shape, d) for c, d in enumerate(dtypes))
            _require_elements(chosen, found, name)
            return found

        values, via = matrices("value"), read("via", shape, np.dtype(np.int32))
        _require_vertices(via)
        edges = matrices("edge") if header["edges"] else None
    every = Vertices.all_of(shape[-1])
    return ConstructionMatrix(chosen, values, Names(nodes, shape[-1]), every, every, header["reflexive"], lambda: edges, via)


def _header(text: str, path: Any) -> dict[str, Any]:
    """What the text says, of which every part has the form that `save` gives it."""
    try:
        header = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise Damage(f"paths.json is no JSON: {error}") from None
    if isinstance(header, dict) and header.get("paths", _VERSION) != _VERSION:
        raise GraphError(f"{path} has version {header['paths']!r} of the format, and this library reads version {_VERSION}: update it")
    parts = {"paths": int, "semiring": dict, "shape": list, "dtypes": list, "reflexive": bool, "edges": bool, "nodes": list | None}
    _require_parts(header, parts, "paths.json")
    of_semiring = {"name": str, "in the catalogue": bool, "witness": bool, "elements": list, "results": list}
    _require_parts(header["semiring"], of_semiring, "the semiring in paths.json")
    shape = header["shape"]
    if any(type(length) is not int or length < 0 for length in shape) or len(shape) < 2 or shape[-1] != shape[-2]:
        raise Damage(f"paths.json has the shape {brief(tuple(shape))}, which no square matrices have")
    if unknown := [name for name in header["dtypes"] if name not in _DTYPES]:
        raise Damage(f"paths.json has the dtype {str(unknown[0])[:40]!r}, which no matrix has")
    return dict(header)


def _require_parts(found: Any, parts: dict[str, Any], where: str) -> None:
    """Refuse a table that lacks a part, or has one of another kind."""
    if not isinstance(found, dict):
        raise Damage(f"{where} is no table")
    for name, kind in parts.items():
        if not isinstance(found.get(name, ...), kind):
            raise Damage(f"{where} has no {name!r}, or one of another kind")


def _require_elements(semiring: Semiring, arrays: tuple[Array, ...], name: str) -> None:
    """Refuse what is no element of the semiring, and truth values of which NumPy would not know what they are."""
    for c, array in enumerate(arrays):
        if array.dtype.kind == "b" and (place := _first(array.view(np.uint8), lambda part: part > 1)):
            raise Damage(f"{name}{c}{list(place)} is {array.view(np.uint8)[place]}, which is no truth value")
    place = None if surely_elements(semiring, arrays) else outside(semiring, arrays)
    if place is not None:
        shown = " and ".join(brief(v[place].item()) for v in arrays)
        raise Damage(f"{name}0{list(place)} is {shown}, which is outside the carrier of {semiring.name}, {semiring.carrier}")


def _require_vertices(via: Array) -> None:
    """Refuse intermediate vertices that do not exist."""
    if place := _first(via, lambda part: (part < -1) | (part >= via.shape[-1])):
        raise Damage(f"via{list(place)} is {via[place]}, which is no vertex from 0 to {via.shape[-1] - 1:,}, nor -1 for none")


def _first(array: Array, wrong: Callable[[Array], Array]) -> tuple[int, ...] | None:
    """The index of the first wrong entry, looking at some of them at a time."""
    for piece in pieces(array.shape) if array.size else ():
        found = wrong(array[piece])
        if found.any():
            index = np.unravel_index(int(np.argmax(found)), found.shape)
            return tuple(int(i) + (s.start or 0) for i, s in zip(index, piece, strict=True))
    return None


def _may_be_bent(found: Store) -> bool:
    """Whether rounding may have made a circle of a path: where floats improve on 1; see `semiring.algorithms.extraction`."""
    if all(d.kind != "f" for d in found.dtypes):
        return False
    operations = Operations(found.semiring, found.dtypes)
    parts = blocks(found.values[0].shape, max(d.itemsize for d in found.dtypes))
    return not all(operations.harmless(tuple(rows_on_host(v, part) for v in found.values)) for part in parts)


# The semiring: by its name where it is one of the catalogue, and by what it does with some elements.


def _identity(found: Store) -> dict[str, Any]:
    """What tells a semiring from others."""
    plain = found.semiring.marked(False)
    return {
        "name": plain.name,
        "in the catalogue": semirings().get(plain.name) == plain,
        "witness": found.semiring.witness,
        "elements": (sample := _sample(found)),
        "results": _results(plain, found.dtypes, sample),
    }


def _sample(found: Store) -> list[list[Any]]:
    """0, 1 and some elements of the closure, a list for each component."""
    places = np.unique(np.linspace(0, max(0, found.values[0].size - 1), _SAMPLE).astype(np.intp)[: found.values[0].size])
    some = [[host(v[index])[()].item() for index in zip(*np.unravel_index(places, v.shape), strict=True)] for v in found.values]
    return [[zero, one, *rest] for zero, one, rest in zip(*found.semiring.identities(found.dtypes), some, strict=True)]


def _results(semiring: Semiring, dtypes: tuple[np.dtype[Any], ...], sample: list[list[Any]]) -> list[Any]:
    """a ⊕ b and a ⊗ b for all pairs of a sample, and the identities."""
    operations = Operations(semiring, dtypes)
    elements = tuple(np.array(part, dtype=d) for part, d in zip(sample, dtypes, strict=True))
    rows, columns = tuple(e[:, None] for e in elements), tuple(e[None, :] for e in elements)
    with np.errstate(all="ignore"):
        tables = (*operations.add(rows, columns), *operations.mul(rows, columns))
    return [np.asarray(t).tolist() for t in tables] + [list(part) for part in semiring.identities(dtypes)]


def _checked(saved: dict[str, Any], dtypes: tuple[np.dtype[Any], ...], given: Semiring | None, path: Any) -> Semiring:
    """The semiring that was passed, or the one of the catalogue."""
    name, sample = saved["name"][:80], saved["elements"]
    if given is None and not (saved["in the catalogue"] and name in semirings()):
        raise SemiringError(f"{path} has paths over {name!r}, which is none of the built-in semirings: pass it, load(path, semiring=…)")
    semiring = semirings()[name] if given is None else given.marked(False)
    numbers = all(isinstance(part, list) and len(part) <= _SAMPLE + 2 and {int, float, bool}.issuperset(map(type, part)) for part in sample)
    if not numbers or len(sample) != len(dtypes) or len(set(map(len, sample))) > 1:
        raise Damage(f"paths.json has other 'elements' than up to {_SAMPLE + 2} numbers for each of {len(dtypes)} components")
    try:
        same = semiring.components == len(dtypes) and _agree(_results(semiring, dtypes, sample), saved["results"])
    except (ValueError, TypeError, OverflowError):
        raise Damage(f"paths.json has 'elements' or 'results' that are none of {' and '.join(map(str, dtypes))}") from None
    if not same:
        raise SemiringError(f"{path} has paths over {name!r}, whose ⊕, ⊗, 0 or 1 give other elements than those of {semiring.name!r}")
    return semiring.with_witness() if saved["witness"] else semiring


def _agree(now: list[Any], then: list[Any]) -> bool:
    """Whether results are the same, but for the last digits of exponentials and logarithms."""
    if len(now) != len(then):
        return False
    pairs = [(np.array(a, dtype=float), np.array(b, dtype=float)) for a, b in zip(now, then, strict=True)]
    return all(a.shape == b.shape and np.allclose(a, b, rtol=1e-5, atol=0, equal_nan=True) for a, b in pairs)


# Names of vertices, in what JSON can keep.


def _written(node: Any) -> Any:
    """A name in what JSON can keep."""
    if isinstance(node, np.generic) and node.dtype.kind in "biufSU" and not isinstance(node.item(), np.generic):
        node = node.item()
    if node is None or type(node) in (bool, int, str):
        return node
    if type(node) is float:
        return {"float": node.hex()}
    if type(node) is bytes:
        return {"bytes": node.hex()}
    if type(node) is tuple:
        return {"tuple": [_written(part) for part in node]}
    raise GraphError(
        f"the vertex {node!r} has a name of type {type(node).__name__}, which cannot be kept safely in a file: name vertices by texts, "
        f"numbers, bytes or tuples of these, as in sr.edges((str(u), str(v), w) for u, v, w in …)"
    )


def _names(written: list[Any], n: int) -> tuple[Any, ...]:
    """As many different names as there are vertices."""
    try:
        names = tuple(map(_read, written))
        different = len(set(names))
    except (ValueError, TypeError, KeyError, OverflowError, RecursionError):
        raise Damage("paths.json has a vertex with a name that is none") from None
    if not len(names) == different == n:
        raise Damage(f"paths.json has {different:,} different names, and there are {n:,} vertices")
    return names


def _read(written: Any) -> Any:
    """The name that `_written` has written."""
    if not isinstance(written, dict):
        return written
    ((kind, value),) = written.items()
    readers: dict[str, Callable[[Any], Any]] = {
        "float": float.fromhex,
        "bytes": bytes.fromhex,
        "tuple": lambda parts: tuple(map(_read, parts)),
    }
    return readers[kind](value)
