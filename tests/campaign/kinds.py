"""A matrix as any of the kinds of graph that the library takes."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np

import semiring as sr
from tests.campaign.cases import Case, Unjudged
from tests.campaign.subjects import Values

__all__ = ["LISTS", "MATRICES", "graph_of", "labels_of", "pydata_of", "sparse_of"]

MATRICES = ("array", "nested list", "frame")
LISTS = ("csr", "csc", "coo", "edges", "table", "networkx", "igraph", "rustworkx")


def library(name: str) -> Any:
    """A library whose objects are drawn; where it is not installed, there is nothing to judge."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        raise Unjudged(f"{name} is not installed") from error


def labels_of(n: int) -> list[str]:
    """Names of vertices, in an order that is neither that of the alphabet nor that of the edges."""
    return [f"v{(7 * i + 3) % 101}-{i}" for i in range(n)]


def graph_of(case: Case, a: Values) -> tuple[Any, list[Any] | None]:
    """The matrix as the kind of graph that the case asks for, and its labels."""
    kind, subject, n = case.options.get("kind", "array"), case.subject, a[0].shape[-1]
    if "nonedge" in case.options:
        marked = case.options["nonedge"]
        a = tuple(_marked(v, z, marked) for v, z in zip(a, subject.zeros, strict=True))
    if kind == "array":
        return case.given(a), None
    if kind == "nested list":
        return a[0].tolist(), None
    labels = labels_of(n)
    if kind == "frame":
        return library("pandas").DataFrame(a[0], index=labels, columns=labels), labels
    rows, columns = np.nonzero(a[0] != subject.zeros[0])
    order = np.random.default_rng(n).permutation(len(rows))
    rows, columns = rows[order], columns[order]
    if subject.closure == "idempotent" and kind == "edges" and n % 3 == 0:  # parallel edges
        rows, columns = (np.concatenate([v, v[: len(v) // 2]]) for v in (rows, columns))
    weights = a[0][rows, columns]
    if kind == "edges":
        return sr.edges(zip([labels[i] for i in rows], [labels[j] for j in columns], weights.tolist(), strict=True), nodes=labels), labels
    if kind == "table":
        table = library("pandas").DataFrame({"from": [labels[i] for i in rows], "to": [labels[j] for j in columns], "cost": weights})
        return sr.edges(table, weight="cost", nodes=labels), labels
    if kind == "networkx":
        graph = library("networkx").DiGraph()
        graph.add_nodes_from(labels)
        graph.add_weighted_edges_from(zip([labels[i] for i in rows], [labels[j] for j in columns], weights.tolist(), strict=True))
        if n % 3 == 1 and case.entry != "transitive_closure":  # which asks for no weights, so that None hides nothing
            hidden = [edge for edge in zip(labels, labels[::-1], strict=True) if not graph.has_edge(*edge)]
            graph.add_edges_from(hidden, weight=None)
        return graph, labels
    if kind == "igraph":
        ends = zip(rows.tolist(), columns.tolist(), strict=True)
        attributes = {"vertex_attrs": {"name": labels}, "edge_attrs": {"weight": weights.tolist()}}
        return library("igraph").Graph(n, list(ends), directed=True, **attributes), labels
    if kind == "rustworkx":
        graph = library("rustworkx").PyDiGraph()
        graph.add_nodes_from(labels)
        graph.add_edges_from(list(zip(rows.tolist(), columns.tolist(), weights.tolist(), strict=True)))
        return graph, labels
    return library("scipy.sparse").coo_array((weights, (rows, columns)), shape=(n, n)).asformat(kind), None


def _marked(values: Any, zero: Any, marker: Any) -> Any:
    """A copy of an array, of the host or of a GPU, with a marker in the place of the zero."""
    copy = values.copy()
    copy[values == zero] = marker
    return copy


def sparse_of(kind: str, data: Any, rows: Any, columns: Any, shape: tuple[int, ...], *, gpu: bool) -> Any:
    """A sparse array of SciPy, or of CuPy on a GPU, whose entries lie in the order given, also those that have a place in common."""
    fmt, _, matrix = kind.partition("_")
    m, n = shape
    if fmt != "coo":
        by, along = (rows, columns) if fmt == "csr" else (columns, rows)
        order = np.argsort(by, kind="stable")
        starts = np.searchsorted(by[order], np.arange((m if fmt == "csr" else n) + 1)).astype(np.int32)
        parts: Any = data[order], along[order].astype(np.int32), starts
    else:
        parts = data, (rows, columns)
    if gpu:
        import cupy

        parts = tuple(tuple(map(cupy.asarray, part)) if isinstance(part, tuple) else cupy.asarray(part) for part in parts)
        return getattr(library("cupyx.scipy.sparse"), f"{fmt}_matrix")(parts, shape=shape)
    return getattr(library("scipy.sparse"), f"{fmt}_{matrix or 'array'}")(parts, shape=shape)


def pydata_of(kind: str, data: Any, rows: Any, columns: Any, shape: tuple[int, ...], *, gpu: bool) -> Any:
    """A sparse array of PyData on the host, which has an entry for a place at most."""
    made = library("sparse").COO(np.stack([rows, columns]), data, shape=shape)
    return made.asformat("gcxs") if kind == "GCXS" else made
