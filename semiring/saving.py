"""A closure with its paths on disk, so that another process can ask it the same questions. Nothing is pickled."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from semiring.algebra.catalogue import semirings
from semiring.algebra.definition import Semiring
from semiring.algebra.errors import DTypeError, GraphError, SemiringError
from semiring.algebra.namespace import host
from semiring.construction import Construction
from semiring.kernels.reference.operations import Operations
from semiring.stores import blocks, rows_on_host, store_for

__all__ = ["load", "save"]

Array = np.ndarray[Any, Any]

_VERSION = 1

_SAMPLE = 8
"""Elements on which ⊕ and ⊗ are compared with what they were."""


def save(path: str | os.PathLike[str], found: Construction, nodes: Sequence[Any] | None) -> None:
    """See `Paths.save`; `nodes` are None where vertices are numbers."""
    store = store_for(Path(path))
    if any(d.kind == "O" for d in found.dtypes):
        raise DTypeError(
            "exact entries are Python objects, which cannot be kept without pickle: compute with dtype=float or int to save paths, or use "
            "pickle, and load that only from sources you trust"
        )
    edges = found.kept() if _may_be_bent(found) else None
    header = {
        "paths": _VERSION,
        "semiring": _identity(found),
        "shape": list(found.via.shape),
        "dtypes": [str(d) for d in found.dtypes],
        "reflexive": found.reflexive,
        "edges": edges is not None,
        "nodes": None if nodes is None else [_written(node) for node in nodes],
    }
    arrays = {f"value{c}": v for c, v in enumerate(found.values)} | {"via": found.via}
    store.write(json.dumps(header), arrays | {f"edge{c}": e for c, e in enumerate(edges or ())})


def load(path: str | os.PathLike[str], semiring: Semiring | None, *, mmap: bool) -> tuple[Construction, tuple[Any, ...] | None]:
    """See `Paths.load`."""
    with store_for(Path(path)).reading(mmap=mmap) as (text, read):
        header = json.loads(text)
        if header["paths"] != _VERSION:
            raise GraphError(f"{path} has version {header['paths']!r} of the format, and this library reads version {_VERSION}: update it")
        dtypes: tuple[np.dtype[Any], ...] = tuple(map(np.dtype, header["dtypes"]))
        shape: tuple[int, ...] = tuple(header["shape"])
        nodes = None if header["nodes"] is None else tuple(map(_read, header["nodes"]))
        chosen = _checked(header["semiring"], dtypes, semiring, path)
        values = tuple(read(f"value{c}", shape, d) for c, d in enumerate(dtypes))
        via = read("via", shape, np.dtype(np.int32))
        edges = tuple(read(f"edge{c}", shape, d) for c, d in enumerate(dtypes)) if header["edges"] else None
        n = int(via.shape[-1])
        fits = via.ndim >= 2 and via.shape[-2] == n and (nodes is None or len(set(nodes)) == n)
        if not fits or not (mmap or via.size == 0 or (via.min() >= -1 and via.max() < n)):
            raise ValueError("its parts do not fit each other")
    return Construction(chosen, values, via, bool(header["reflexive"]), lambda: edges), nodes


def _may_be_bent(found: Construction) -> bool:
    """Whether rounding may have made a circle of a path: where floats improve on 1; see `semiring.algorithms.extraction`."""
    if all(d.kind != "f" for d in found.dtypes):
        return False
    operations = Operations(found.semiring, found.dtypes)
    parts = blocks(found.via.shape, max(d.itemsize for d in found.dtypes))
    return not all(operations.harmless(tuple(rows_on_host(v, part) for v in found.values)) for part in parts)


# The semiring: by its name where it is one of the catalogue, and by what it does with some elements.


def _identity(found: Construction) -> dict[str, Any]:
    plain = replace(found.semiring, witness=False)
    return {
        "name": plain.name,
        "in the catalogue": semirings().get(plain.name) == plain,
        "witness": found.semiring.witness,
        "elements": (sample := _sample(found)),
        "results": _results(plain, found.dtypes, sample),
    }


def _sample(found: Construction) -> list[list[Any]]:
    """0, 1 and some elements of the closure, a list for each component."""
    places = np.unique(np.linspace(0, max(0, found.via.size - 1), _SAMPLE).astype(np.intp)[: found.via.size])
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
    name = saved["name"]
    if given is None and not saved["in the catalogue"]:
        raise SemiringError(f"{path} has paths over {name!r}, which is none of the built-in semirings: pass it, load(path, semiring=…)")
    semiring = semirings()[name] if given is None else replace(given, witness=False)
    same = semiring.components == len(dtypes) and _agree(_results(semiring, dtypes, saved["elements"]), saved["results"])
    if not same:
        raise SemiringError(f"{path} has paths over {name!r}, whose ⊕, ⊗, 0 or 1 give other elements than those of {semiring.name!r}")
    return semiring.with_witness() if saved["witness"] else semiring


def _agree(now: list[Any], then: list[Any]) -> bool:
    """Whether results are the same, but for the last digits of exponentials and logarithms."""
    pairs = [(np.array(a, dtype=float), np.array(b, dtype=float)) for a, b in zip(now, then, strict=True)]
    return all(a.shape == b.shape and np.allclose(a, b, rtol=1e-5, atol=0, equal_nan=True) for a, b in pairs)


# Names of vertices, in what JSON can keep.


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
        f"numbers, bytes or tuples of these, as in sr.edges((str(u), str(v), w) for u, v, w in …)"
    )


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
