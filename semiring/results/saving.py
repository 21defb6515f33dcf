"""Save a closure with its paths to a file, and load it again. Nothing is pickled."""

from __future__ import annotations

import json
import math
import os
from pathlib import Path
from typing import Any

import numpy as np

from semiring.algebra.definition import Semiring
from semiring.arrays.conversion import require_inside
from semiring.arrays.memory import fits, free_on
from semiring.common.errors import DTypeError, GraphError, TooLargeError, brief
from semiring.common.units import format_bytes
from semiring.files.formats import Damage, blocks, format_for, rows_on_host
from semiring.graphs.vertices import Vertices
from semiring.kernels.operations import Operations
from semiring.kernels.overflow.statistics import surely_elements
from semiring.results.headers import PATHS, first_wrong, identity, read_header, read_names, require_elements, semiring_of, written_names
from semiring.results.store import ConstructionMatrix, Names, Store

__all__ = ["load", "save"]

Array = np.ndarray[Any, Any]


def save(path: str | os.PathLike[str], found: Store) -> None:
    """See `Paths.save`."""
    if found.distributed:
        raise GraphError(
            "the paths are in the memory of several processes: pass checkpoint=folder to keep paths in files, which one process can save; "
            ".values.to_zarr(store) writes the elements alone"
        )
    file = format_for(Path(path), PATHS.name)
    if any(d.kind == "O" for d in found.dtypes):
        raise DTypeError(
            "exact entries are Python objects, which cannot be kept without pickle: compute with dtype=float or int to save paths. Or use "
            "pickle, and load such files only from sources you trust"
        )
    if not surely_elements(found.semiring, found.values):
        require_inside(found.semiring, found.values, "values")  # or they could not be loaded
    edges = found.dense() if _may_be_bent(found) else None
    via, labels = found.construction(), found.names.labels
    header = {
        PATHS.name: PATHS.version,
        "semiring": identity(found.semiring, found.dtypes, found.values),
        "shape": list(via.shape),
        "dtypes": [str(d) for d in found.dtypes],
        "reflexive": found.reflexive,
        "edges": edges is not None,
        "nodes": written_names(labels),
    }
    arrays = {f"value{c}": v for c, v in enumerate(found.values)} | {"via": via}
    file.write(json.dumps(header), arrays | {f"edge{c}": e for c, e in enumerate(edges or ())})


def load(path: str | os.PathLike[str], semiring: Semiring | None, *, mmap: bool) -> Store:
    """See `Paths.load`."""
    with format_for(Path(path), PATHS.name).reading(mmap=mmap) as (text, read):
        header = _header(text, path)
        dtypes, shape = tuple(map(np.dtype, header["dtypes"])), tuple(header["shape"])
        nodes = read_names(PATHS, header["nodes"], shape[-1])
        chosen = semiring_of(PATHS, header["semiring"], dtypes, semiring, path)
        needed = math.prod(shape) * (sum(d.itemsize for d in dtypes) * (2 if header["edges"] else 1) + np.dtype(np.int32).itemsize)
        if not mmap and not fits(needed, "cpu"):
            available = f"{format_bytes(free_on('cpu') or 0)} of memory are available"
            raise TooLargeError(f"{path} holds {format_bytes(needed)}, and {available}; mmap=True leaves an .npz file on disk")

        def matrices(name: str) -> tuple[Array, ...]:
            found = tuple(read(f"{name}{c}", shape, d) for c, d in enumerate(dtypes))
            require_elements(chosen, found, name)
            return found

        values, via = matrices("value"), read("via", shape, np.dtype(np.int32))
        if place := first_wrong(via, lambda part: (part < -1) | (part >= shape[-1])):
            raise Damage(f"via{list(place)} is {via[place]}, which is no vertex from 0 to {shape[-1] - 1:,}, nor -1 for none")
        edges = matrices("edge") if header["edges"] else None
    every = Vertices.all_of(shape[-1])
    return ConstructionMatrix(chosen, values, Names(nodes, shape[-1]), every, every, header["reflexive"], lambda: edges, via)


def _header(text: str, path: Any) -> dict[str, Any]:
    header = read_header(PATHS, text, path, {"shape": list, "reflexive": bool, "edges": bool})
    shape = header["shape"]
    if any(type(length) is not int or length < 0 for length in shape) or len(shape) < 2 or shape[-1] != shape[-2]:
        raise Damage(f"paths.json has the shape {brief(tuple(shape))}, which no square matrices have")
    return header


def _may_be_bent(found: Store) -> bool:
    """Return True if some float improves on 1: rounding may then have made a circle of a path; see `semiring.algorithms.predecessors`."""
    if all(d.kind != "f" for d in found.dtypes):
        return False
    operations = Operations(found.semiring, found.dtypes)
    parts = blocks(found.values[0].shape, max(d.itemsize for d in found.dtypes))
    return not all(operations.harmless(tuple(rows_on_host(v, part) for v in found.values)) for part in parts)
