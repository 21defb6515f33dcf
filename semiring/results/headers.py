"""The JSON header of a saved file: semiring, dtypes and names of vertices, with checks for damaged files.

A semiring is identified by the name of a built-in semiring, and by results on some elements.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from semiring.algebra.catalogue import semirings
from semiring.algebra.definition import Semiring
from semiring.arrays.conversion import outside
from semiring.arrays.devices import host
from semiring.arrays.pieces import pieces
from semiring.common.errors import GraphError, SemiringError, brief
from semiring.common.units import counted
from semiring.files.formats import Damage
from semiring.kernels.operations import Operations
from semiring.kernels.overflow.statistics import surely_elements

__all__ = [
    "FACTOR",
    "PATHS",
    "Kind",
    "first_wrong",
    "identity",
    "read_header",
    "read_names",
    "require_elements",
    "semiring_of",
    "written_names",
]

Array = np.ndarray[Any, Any]
Values = tuple[Array, ...]

_SAMPLE = 8  # elements whose ⊕ and ⊗ are compared with the saved results
_DTYPES = tuple(np.dtype(code).name for code in "?bhilqBHILQefdg")  # dtypes that matrices in files may have


class Kind(NamedTuple):
    """The contents of a file."""

    name: str  # the key of the format version in the header
    text: str  # the name of the header in the file
    version: int
    words: str  # the contents in words, for messages


PATHS, FACTOR = Kind("paths", "paths.json", 1, "paths"), Kind("factor", "factor.json", 1, "a factor")


def read_header(kind: Kind, text: str, path: Any, parts: dict[str, Any]) -> dict[str, Any]:
    """Parse the header, and refuse one with a missing or malformed part."""
    try:
        header = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise Damage(f"{kind.text} is no JSON: {error}") from None
    if isinstance(header, dict) and header.get(kind.name, kind.version) != kind.version:
        raise GraphError(
            f"{path} has version {header[kind.name]!r} of the format, and this library reads version {kind.version}: update it"
        )
    parts = {kind.name: int, "semiring": dict, "dtypes": list, "nodes": list | None} | parts
    _require_parts(header, parts, kind.text)
    of_semiring = {"name": str, "in the catalogue": bool, "witness": bool, "elements": list, "results": list}
    _require_parts(header["semiring"], of_semiring, f"the semiring in {kind.text}")
    if unknown := [name for name in header["dtypes"] if name not in _DTYPES]:
        raise Damage(f"{kind.text} has the dtype {str(unknown[0])[:40]!r}, which no matrix has")
    return dict(header)


def _require_parts(found: Any, parts: dict[str, Any], where: str) -> None:
    if not isinstance(found, dict):
        raise Damage(f"{where} is no table")
    for name, kind in parts.items():
        if not isinstance(found.get(name, ...), kind):
            raise Damage(f"{where} has no {name!r}, or one of another kind")


def require_elements(semiring: Semiring, arrays: Values, name: str) -> None:
    """Refuse entries that are no elements of the semiring, and bytes that are no truth values."""
    for c, array in enumerate(arrays):
        if array.dtype.kind == "b" and (place := first_wrong(array.view(np.uint8), lambda part: part > 1)):
            raise Damage(f"{name}{c}{list(place)} is {array.view(np.uint8)[place]}, which is no truth value")
    place = None if surely_elements(semiring, arrays) else outside(semiring, arrays)
    if place is not None:
        shown = " and ".join(brief(v[place].item()) for v in arrays)
        raise Damage(f"{name}0{list(place)} is {shown}, which is outside the carrier of {semiring.name}, {semiring.carrier}")


def first_wrong(array: Array, wrong: Callable[[Array], Array]) -> tuple[int, ...] | None:
    """Return the index of the first wrong entry, testing some entries at a time."""
    for piece in pieces(array.shape) if array.size else ():
        found = wrong(array[piece])
        if found.any():
            index = np.unravel_index(int(np.argmax(found)), found.shape)
            return tuple(int(i) + (s.start or 0) for i, s in zip(index, piece, strict=True))
    return None


def identity(semiring: Semiring, dtypes: tuple[np.dtype[Any], ...], values: Sequence[Any]) -> dict[str, Any]:
    """Describe a semiring: the name, and the results on some elements of the arrays (one array a component)."""
    plain = semiring.marked(False)
    return {
        "name": plain.name,
        "in the catalogue": semirings().get(plain.name) == plain,
        "witness": semiring.witness,
        "elements": (sample := _sample(semiring, dtypes, values)),
        "results": _results(plain, dtypes, sample),
    }


def _sample(semiring: Semiring, dtypes: tuple[np.dtype[Any], ...], values: Sequence[Any]) -> list[list[Any]]:
    places = np.unique(np.linspace(0, max(0, values[0].size - 1), _SAMPLE).astype(np.intp)[: values[0].size])
    some = [[host(v[index])[()].item() for index in zip(*np.unravel_index(places, v.shape), strict=True)] for v in values]
    return [[zero, one, *rest] for zero, one, rest in zip(*semiring.identities(dtypes), some, strict=True)]


def _results(semiring: Semiring, dtypes: tuple[np.dtype[Any], ...], sample: list[list[Any]]) -> list[Any]:
    """Return a ⊕ b and a ⊗ b for all pairs of a sample, and the identities."""
    operations = Operations(semiring, dtypes)
    elements = tuple(np.array(part, dtype=d) for part, d in zip(sample, dtypes, strict=True))
    rows, columns = tuple(e[:, None] for e in elements), tuple(e[None, :] for e in elements)
    with np.errstate(all="ignore"):
        tables = (*operations.add(rows, columns), *operations.mul(rows, columns))
    return [np.asarray(t).tolist() for t in tables] + [list(part) for part in semiring.identities(dtypes)]


def semiring_of(kind: Kind, saved: dict[str, Any], dtypes: tuple[np.dtype[Any], ...], given: Semiring | None, path: Any) -> Semiring:
    """Return the given or the built-in semiring; refuse a semiring that disagrees with the saved results."""
    name, sample = saved["name"][:80], saved["elements"]
    if given is None and not (saved["in the catalogue"] and name in semirings()):
        raise SemiringError(
            f"{path} has {kind.words} over {name!r}, which is none of the built-in semirings: pass it, load(path, semiring=…)"
        )
    semiring = semirings()[name] if given is None else given.marked(False)
    numbers = all(isinstance(part, list) and len(part) <= _SAMPLE + 2 and {int, float, bool}.issuperset(map(type, part)) for part in sample)
    if not numbers or len(sample) != len(dtypes) or len(set(map(len, sample))) > 1:
        raise Damage(f"{kind.text} has other 'elements' than up to {_SAMPLE + 2} numbers for each of {len(dtypes)} components")
    try:
        same = semiring.components == len(dtypes) and _agree(_results(semiring, dtypes, sample), saved["results"])
    except (ValueError, TypeError, OverflowError):
        raise Damage(f"{kind.text} has 'elements' or 'results' that are none of {' and '.join(map(str, dtypes))}") from None
    if not same:
        raise SemiringError(
            f"{path} has {kind.words} over {name!r}, whose ⊕, ⊗, 0 or 1 give other elements than those of {semiring.name!r}"
        )
    return semiring.with_witness() if saved["witness"] else semiring


def _agree(now: list[Any], then: list[Any]) -> bool:
    """Compare results, up to the last digits of exponentials and logarithms."""
    if len(now) != len(then):
        return False
    pairs = [(np.array(a, dtype=float), np.array(b, dtype=float)) for a, b in zip(now, then, strict=True)]
    return all(a.shape == b.shape and np.allclose(a, b, rtol=1e-5, atol=0, equal_nan=True) for a, b in pairs)


def _written(node: Any) -> Any:
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
        f"numbers, bytes or tuples, as in sr.edges((str(u), str(v), w) for u, v, w in …)"
    )


def written_names(labels: Sequence[Any] | None) -> list[Any] | None:
    """Encode the names of vertices for JSON."""
    return None if labels is None else [_written(node) for node in labels]


def read_names(kind: Kind, written: list[Any] | None, n: int) -> tuple[Any, ...] | None:
    """Decode as many different names as there are vertices; None for numbered vertices."""
    if written is None:
        return None
    try:
        names = tuple(map(_read, written))
        different = len(set(names))
    except (ValueError, TypeError, KeyError, OverflowError, RecursionError):
        raise Damage(f"{kind.text} has a vertex with a name that is none") from None
    if not len(names) == different == n:
        raise Damage(f"{kind.text} has {counted(different, 'different name')} for {counted(n, 'vertex', 'vertices')}")
    return names


def _read(written: Any) -> Any:
    if not isinstance(written, dict):
        return written
    ((kind, value),) = written.items()
    readers: dict[str, Callable[[Any], Any]] = {
        "float": float.fromhex,
        "bytes": bytes.fromhex,
        "tuple": lambda parts: tuple(map(_read, parts)),
    }
    return readers[kind](value)
