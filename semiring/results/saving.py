"""Save a closure with its paths, or a factor, to a file, and load it again. Nothing is pickled.

A file has arrays and a JSON header, which identifies the semiring by the name of a built-in semiring, and by results on some elements. The
fill of a factor is computed again from graph and order.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from semiring.algebra.catalogue import semirings
from semiring.algebra.definition import Semiring
from semiring.algorithms.csr import CSR
from semiring.algorithms.factorization import Factorization, Kept
from semiring.algorithms.symbolic import analysis
from semiring.arrays.conversion import Array, Values, outside, require_inside
from semiring.arrays.devices import host
from semiring.arrays.memory import fits, free_on, require_bytes
from semiring.arrays.pieces import pieces
from semiring.arrays.threads import thread_count
from semiring.common.errors import DTypeError, GraphError, SemiringError, TooLargeError, brief
from semiring.common.units import counted, format_bytes
from semiring.files.formats import Damage, Read, blocks, format_for, rows_on_host
from semiring.graphs.reweighing import Listing
from semiring.graphs.vertices import Vertices
from semiring.kernels.compressed import EliminationPanels
from semiring.kernels.operations import Operations
from semiring.kernels.overflow.statistics import surely_elements
from semiring.results.store import ConstructionMatrix, Names, Store

__all__ = ["load_factor", "load_paths", "save_factor", "save_paths"]


_INDEX = np.dtype(np.int64)
_SAMPLE = 8  # elements whose ⊕ and ⊗ are compared with the saved results
_DTYPES = tuple(np.dtype(code).name for code in "?bhilqBHILQefdg")  # dtypes that matrices in files may have


_VERSION = 1  # of the format, which the header has under the name of the kind
_WORDS = {"paths": "paths", "factor": "a factor"}
"""The kinds of files, in words; the header of a kind is the text ``<kind>.json``."""


def save_paths(path: str | os.PathLike[str], found: Store) -> None:
    """See `Paths.save`."""
    if found.distributed:
        raise GraphError(
            "the paths are in the memory of several processes: pass checkpoint=folder to keep paths in files, which one process can save; "
            ".values.to_zarr(store) writes the elements alone"
        )
    file = format_for(Path(path), "paths")
    if any(d.kind == "O" for d in found.dtypes):
        raise DTypeError(
            "exact entries are Python objects, which cannot be kept without pickle: compute with dtype=float or int to save paths. Or use "
            "pickle, and load such files only from sources you trust"
        )
    if not surely_elements(found.semiring, found.values):
        require_inside(found.semiring, found.values, "values")  # or they could not be loaded
    whole = found.expanded
    assert whole is not None
    edges = whole.kept() if _may_be_bent(found) else None
    header = {
        "paths": _VERSION,
        "semiring": _identity(found.semiring, found.dtypes, found.values),
        "shape": list(whole.via.shape),
        "dtypes": [str(d) for d in found.dtypes],
        "reflexive": found.reflexive,
        "edges": edges is not None,
        "nodes": _written_names(found.names.labels),
    }
    arrays = {f"value{c}": v for c, v in enumerate(found.values)} | {"via": whole.via}
    file.write(json.dumps(header), arrays | {f"edge{c}": e for c, e in enumerate(edges or ())})


def load_paths(path: str | os.PathLike[str], semiring: Semiring | None, *, mmap: bool) -> Store:
    """See `Paths.load`."""
    with format_for(Path(path), "paths").reading(mmap=mmap) as (text, read):
        header = _read_header("paths", text, path, {"shape": list, "reflexive": bool, "edges": bool})
        dtypes, shape = tuple(map(np.dtype, header["dtypes"])), tuple(header["shape"])
        if any(type(length) is not int or length < 0 for length in shape) or len(shape) < 2 or shape[-1] != shape[-2]:
            raise Damage(f"paths.json has the shape {brief(shape)}, which no square matrices have")
        nodes = _read_names("paths", header["nodes"], shape[-1])
        chosen = _semiring_of("paths", header["semiring"], dtypes, semiring, path)
        needed = math.prod(shape) * (sum(d.itemsize for d in dtypes) * (2 if header["edges"] else 1) + np.dtype(np.int32).itemsize)
        if not mmap and not fits(needed, "cpu"):
            available = f"{format_bytes(free_on('cpu') or 0)} of memory are available"
            raise TooLargeError(f"{path} holds {format_bytes(needed)}, and {available}; mmap=True leaves an .npz file on disk")
        values, via = _elements(read, chosen, "value", shape, dtypes), read("via", shape, np.dtype(np.int32))
        if place := _first_wrong(via, lambda part: (part < -1) | (part >= shape[-1])):
            raise Damage(f"via{list(place)} is {via[place]}, which is no vertex from 0 to {shape[-1] - 1:,}, nor -1 for none")
        edges = _elements(read, chosen, "edge", shape, dtypes) if header["edges"] else None
    every = Vertices.all_of(shape[-1])
    return ConstructionMatrix(chosen, values, Names(nodes, shape[-1]), every, every, header["reflexive"], lambda: edges, via)


def _may_be_bent(found: Store) -> bool:
    """Return True if some float improves on 1: rounding may then have made a circle of a path; see `semiring.algorithms.predecessors`."""
    if all(d.kind != "f" for d in found.dtypes):
        return False
    operations = Operations(found.semiring, found.dtypes)
    parts = blocks(found.values[0].shape, max(d.itemsize for d in found.dtypes))
    return not all(operations.harmless(tuple(rows_on_host(v, part) for v in found.values)) for part in parts)


def save_factor(path: str | os.PathLike[str], matrix: Factorization, labels: tuple[Any, ...] | None, listing: Listing) -> None:
    """See `Factor.save`."""
    edges, kept = matrix.edges, matrix.kept
    header = {
        "factor": _VERSION,
        "semiring": _identity(matrix.semiring, edges.dtypes, edges.weights),
        "dtypes": [str(d) for d in edges.dtypes],
        "nodes": _written_names(labels),
        "vertices": edges.n,
        "edges": len(edges.heads),
        "listed": None if listing.ends is None else len(listing.ends[0]),
        "order": matrix.found.fill.order,
        "directed": listing.directed,
        "by rows": listing.by_rows,
        "weight": _as_option(listing.weight),
        "nonedge": _as_option(listing.nonedge),
        "check": matrix.check,
        "potentials": kept.potentials is not None,
    }
    arrays: dict[str, Array] = {"tail": edges.tails, "head": edges.heads, "order": matrix.found.order}
    if listing.ends is not None:
        arrays |= dict(zip(("source", "target"), listing.ends, strict=True))
    columns = {name: v.astype(_INDEX, copy=False).view(_INDEX) for name, v in arrays.items()}  # a view as C's long, which Zarr supports
    elements = {"weight": edges.weights, "upper": kept.panels.upper, "lower": kept.panels.lower}
    if kept.potentials is not None:
        elements |= dict(zip(("potential", "inverse"), kept.potentials, strict=True))
    columns |= {f"{name}{c}": v for name, values in elements.items() for c, v in enumerate(values)}
    format_for(Path(path), "factor").write(json.dumps(header), {name: v.reshape(-1, 1) for name, v in columns.items()})


def load_factor(
    path: str | os.PathLike[str], semiring: Semiring | None, threads: int | None, device: str
) -> tuple[Factorization, tuple[Any, ...] | None, Listing]:
    """See `Factor.load`."""
    with format_for(Path(path), "factor").reading(mmap=False) as (text, read):
        flags, counts = ("directed", "by rows", "check", "potentials"), ("vertices", "edges")
        kinds = dict.fromkeys(flags, bool) | dict.fromkeys(counts, int) | {"listed": int | None, "order": str}
        header = _read_header("factor", text, path, kinds)
        n, m, k = (header[name] for name in (*counts, "listed"))
        read_as = [_as_option(header.get(name)) for name in ("weight", "nonedge")]
        if min(n, m, k or 0) < 0:
            raise Damage(f"factor.json counts {counted(n, 'vertex', 'vertices')} and {counted(m, 'edge')}")
        dtypes = tuple(map(np.dtype, header["dtypes"]))
        labels = _read_names("factor", header["nodes"], n)
        chosen = _semiring_of("factor", header["semiring"], dtypes, semiring, path)

        def elements(name: str, count: int) -> Values:
            return tuple(v.reshape(-1) for v in _elements(read, chosen, name, (count, 1), dtypes))

        tails, heads = (_vertices(read, name, m, n) for name in ("tail", "head"))
        if not (np.diff(tails * n + heads) > 0).all():
            raise Damage("tail and head have edges that are not in the order of rows, or some twice")
        order = _vertices(read, "order", n, n)
        if len(np.unique(order)) != n:
            raise Damage("order names a vertex twice")
        zero, _ = chosen.identities(dtypes)
        edges = CSR.of(tails, heads, elements("weight", m), n, zero)
        found = analysis(edges, order, name=header["order"])
        needed = found.fill.memory(sum(d.itemsize for d in dtypes), n, thread_count(threads))
        require_bytes(needed, f"{path} holds a factor that takes", "load it where there is more")
        panels = EliminationPanels(elements("upper", found.fill.panels), elements("lower", found.fill.panels))
        potentials = (elements("potential", n), elements("inverse", n)) if header["potentials"] else None
        ends = None if k is None else (_vertices(read, "source", k, n), _vertices(read, "target", k, n))
    names = int if labels is None else labels.__getitem__
    kept = Kept(panels, potentials)
    matrix = Factorization(chosen, edges, found, names, threads=threads, check=header["check"], kept=kept, device=device)
    return matrix, labels, Listing(ends, header["directed"], header["by rows"], *read_as)


def _as_option(option: Any) -> str | float | int | None:
    """Return an option that is a text or a number; else None."""
    if isinstance(option, np.generic):
        option = option.item()
    return option if isinstance(option, str | float | int) else None


def _vertices(read: Read, name: str, count: int, n: int) -> Array:
    found = read(name, (count, 1), _INDEX).reshape(-1)
    if len(found) and not 0 <= found.min() <= found.max() < n:
        raise Damage(f"{name} has the number of a vertex that is none from 0 to {n - 1:,}")
    return found


def _read_header(kind: str, text: str, path: Any, parts: dict[str, Any]) -> dict[str, Any]:
    """Parse the header, and refuse one with a missing or malformed part."""
    try:
        header = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise Damage(f"{kind}.json is no JSON: {error}") from None
    if isinstance(header, dict) and header.get(kind, _VERSION) != _VERSION:
        raise GraphError(f"{path} has version {header[kind]!r} of the format, and this library reads version {_VERSION}: update it")
    parts = {kind: int, "semiring": dict, "dtypes": list, "nodes": list | None} | parts
    _require_parts(header, parts, f"{kind}.json")
    of_semiring = {"name": str, "in the catalogue": bool, "witness": bool, "elements": list, "results": list}
    _require_parts(header["semiring"], of_semiring, f"the semiring in {kind}.json")
    if unknown := [name for name in header["dtypes"] if name not in _DTYPES]:
        raise Damage(f"{kind}.json has the dtype {str(unknown[0])[:40]!r}, which no matrix has")
    return dict(header)


def _require_parts(found: Any, parts: dict[str, Any], where: str) -> None:
    if not isinstance(found, dict):
        raise Damage(f"{where} is no table")
    for name, kind in parts.items():
        if not isinstance(found.get(name, ...), kind):
            raise Damage(f"{where} has no {name!r}, or one of another kind")


def _elements(read: Read, semiring: Semiring, name: str, shape: tuple[int, ...], dtypes: tuple[np.dtype[Any], ...]) -> Values:
    """Read an array for each component; refuse entries that are no elements, and bytes that are no truth values."""
    arrays = tuple(read(f"{name}{c}", shape, d) for c, d in enumerate(dtypes))
    for c, array in enumerate(arrays):
        if array.dtype.kind == "b" and (place := _first_wrong(array.view(np.uint8), lambda part: part > 1)):
            raise Damage(f"{name}{c}{list(place)} is {array.view(np.uint8)[place]}, which is no truth value")
    place = None if surely_elements(semiring, arrays) else outside(semiring, arrays)
    if place is not None:
        shown = " and ".join(brief(v[place].item()) for v in arrays)
        raise Damage(f"{name}0{list(place)} is {shown}, which is outside the carrier of {semiring.name}, {semiring.carrier}")
    return arrays


def _first_wrong(array: Array, wrong: Callable[[Array], Array]) -> tuple[int, ...] | None:
    """Return the index of the first wrong entry, testing some entries at a time."""
    for piece in pieces(array.shape) if array.size else ():
        found = wrong(array[piece])
        if found.any():
            index = np.unravel_index(int(np.argmax(found)), found.shape)
            return tuple(int(i) + (s.start or 0) for i, s in zip(index, piece, strict=True))
    return None


def _identity(semiring: Semiring, dtypes: tuple[np.dtype[Any], ...], values: Sequence[Any]) -> dict[str, Any]:
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


def _semiring_of(kind: str, saved: dict[str, Any], dtypes: tuple[np.dtype[Any], ...], given: Semiring | None, path: Any) -> Semiring:
    """Return the given or the built-in semiring; refuse a semiring that disagrees with the saved results."""
    name, sample = saved["name"][:80], saved["elements"]
    what = f"{path} has {_WORDS[kind]} over {name!r}"
    if given is None and not (saved["in the catalogue"] and name in semirings()):
        raise SemiringError(f"{what}, which is none of the built-in semirings: pass it, load(path, semiring=…)")
    semiring = semirings()[name] if given is None else given.marked(False)
    numbers = all(isinstance(part, list) and len(part) <= _SAMPLE + 2 and {int, float, bool}.issuperset(map(type, part)) for part in sample)
    if not numbers or len(sample) != len(dtypes) or len(set(map(len, sample))) > 1:
        raise Damage(f"{kind}.json has other 'elements' than up to {_SAMPLE + 2} numbers for each of {len(dtypes)} components")
    try:
        same = semiring.components == len(dtypes) and _agree(_results(semiring, dtypes, sample), saved["results"])
    except (ValueError, TypeError, OverflowError):
        raise Damage(f"{kind}.json has 'elements' or 'results' that are none of {' and '.join(map(str, dtypes))}") from None
    if not same:
        raise SemiringError(f"{what}, whose ⊕, ⊗, 0 or 1 give other elements than those of {semiring.name!r}")
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


def _written_names(labels: Sequence[Any] | None) -> list[Any] | None:
    return None if labels is None else [_written(node) for node in labels]


def _read_names(kind: str, written: list[Any] | None, n: int) -> tuple[Any, ...] | None:
    """Decode as many different names as there are vertices; None for numbered vertices."""
    if written is None:
        return None
    try:
        names = tuple(map(_read, written))
        different = len(set(names))
    except (ValueError, TypeError, KeyError, OverflowError, RecursionError):
        raise Damage(f"{kind}.json has a vertex with a name that is none") from None
    if not len(names) == different == n:
        raise Damage(f"{kind}.json has {counted(different, 'different name')} for {counted(n, 'vertex', 'vertices')}")
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
