"""A factor on disk: graph, order of elimination, and panels. The fill is computed again from graph and order."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from semiring.algebra.definition import Semiring
from semiring.algorithms.csr import CSR
from semiring.algorithms.factorization import Factorization, Kept
from semiring.algorithms.symbolic import analysis
from semiring.arrays.memory import require_bytes
from semiring.arrays.threads import thread_count
from semiring.common.units import counted
from semiring.files.formats import Damage, Read, format_for
from semiring.graphs.reweighing import Listing
from semiring.kernels.compressed import EliminationPanels
from semiring.results.headers import FACTOR, identity, read_header, read_names, require_elements, semiring_of, written_names

__all__ = ["Saved", "load", "save"]

Array = np.ndarray[Any, Any]
Values = tuple[Array, ...]

_INDEX = np.dtype(np.int64)


class Saved(NamedTuple):
    """The parts of a `Factor`."""

    matrix: Factorization
    labels: tuple[Any, ...] | None
    listing: Listing


def save(path: str | os.PathLike[str], saved: Saved) -> None:
    """See `Factor.save`."""
    matrix, listing = saved.matrix, saved.listing
    edges, kept = matrix.edges, matrix.kept
    header = {
        FACTOR.name: FACTOR.version,
        "semiring": identity(matrix.semiring, edges.dtypes, edges.weights),
        "dtypes": [str(d) for d in edges.dtypes],
        "nodes": written_names(saved.labels),
        "vertices": edges.n,
        "edges": len(edges.heads),
        "listed": None if listing.ends is None else len(listing.ends[0]),
        "order": matrix.found.fill.order,
        "directed": listing.directed,
        "by rows": listing.by_rows,
        "weight": _written(listing.weight),
        "nonedge": _written(listing.nonedge),
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
    format_for(Path(path), FACTOR.name).write(json.dumps(header), {name: v.reshape(-1, 1) for name, v in columns.items()})


def load(path: str | os.PathLike[str], semiring: Semiring | None, threads: int | None, device: str = "cpu") -> Saved:
    """See `Factor.load`."""
    with format_for(Path(path), FACTOR.name).reading(mmap=False) as (text, read):
        flags, counts = ("directed", "by rows", "check", "potentials"), ("vertices", "edges")
        kinds = dict.fromkeys(flags, bool) | dict.fromkeys(counts, int) | {"listed": int | None, "order": str}
        header = read_header(FACTOR, text, path, kinds)
        n, m, k = (header[name] for name in (*counts, "listed"))
        read_as = [_written(header.get(name)) for name in ("weight", "nonedge")]
        if min(n, m, k or 0) < 0:
            raise Damage(f"{FACTOR.text} counts {counted(n, 'vertex', 'vertices')} and {counted(m, 'edge')}")
        dtypes = tuple(map(np.dtype, header["dtypes"]))
        labels = read_names(FACTOR, header["nodes"], n)
        chosen = semiring_of(FACTOR, header["semiring"], dtypes, semiring, path)

        def elements(name: str, count: int) -> Values:
            found = tuple(_column(read, f"{name}{c}", count, d) for c, d in enumerate(dtypes))
            require_elements(chosen, found, name)
            return found

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
    return Saved(matrix, labels, Listing(ends, header["directed"], header["by rows"], *read_as))


def _written(option: Any) -> str | float | int | None:
    """Return an option that is a text or a number; else None."""
    if isinstance(option, np.generic):
        option = option.item()
    return option if isinstance(option, str | float | int) else None


def _column(read: Read, name: str, count: int, dtype: np.dtype[Any]) -> Array:
    return read(name, (count, 1), dtype).reshape(-1)


def _vertices(read: Read, name: str, count: int, n: int) -> Array:
    found = _column(read, name, count, _INDEX)
    if len(found) and not 0 <= found.min() <= found.max() < n:
        raise Damage(f"{name} has the number of a vertex that is none from 0 to {n - 1:,}")
    return found
