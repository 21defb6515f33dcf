"""Matrices that lie on a GPU: read there, without a copy where nothing has to change."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import numpy as np

from semiring.algebra.conversion import widened
from semiring.algebra.definition import Semiring
from semiring.algebra.domain import require_inside
from semiring.algebra.errors import DomainError, DTypeError, ShapeError
from semiring.algebra.namespace import as_array, host, namespace, to_gpu
from semiring.graphs.dense import read_dense, warn_of_zeros
from semiring.graphs.graph import Graph, Options
from semiring.graphs.sources import Source

__all__ = ["read_gpu"]


def read_gpu(given: tuple[Any, ...], semiring: Semiring, options: Options) -> Graph:
    """A `Graph` of CuPy arrays from one matrix a component: CuPy's, or what DLPack or the CUDA array interface gives."""
    arrays = tuple(map(as_array, given))
    xp = namespace(arrays[0])
    shapes = {v.shape for v in arrays}
    shape = shapes.pop()
    if shapes or len(shape) < 2 or shape[-1] != shape[-2]:
        raise ShapeError(f"a graph is a square matrix (or several, of shape (…, n, n)), not an array of shape {shape}")
    own = tuple(widened(v.dtype) for v in arrays)
    truths = semiring.on_truth_values
    dtypes = semiring.dtypes(options.dtype) if options.dtype is not None else (np.dtype(bool),) if truths else semiring.dtypes(own)
    zeros, _ = semiring.identities(dtypes)
    missing = None
    if options.nonedge is not None:
        values = options.nonedge if semiring.components > 1 else (options.nonedge,)
        missing = xp.ones(shape, dtype=bool)
        for array, value in zip(arrays, values, strict=True):
            missing &= array != array if value != value else array == value
    if truths and arrays[0].dtype != bool:
        converted: tuple[Any, ...] = (_truth(arrays[0], missing, xp),)
    elif tuple(v.dtype for v in arrays) != dtypes:
        # Rare enough for the host, which tells every entry that the new dtype cannot hold.
        graph = read_dense(tuple(Source(host(v)) for v in arrays), semiring, options)
        return Graph(tuple(map(to_gpu, graph.values)), True, None, _restorer(given[0]))
    else:
        converted = arrays
    owned = all(v is not w for v, w in zip(arrays, converted, strict=True))
    if missing is not None:
        converted = tuple(xp.where(missing, v.dtype.type(zero), v) for v, zero in zip(converted, zeros, strict=True))
        owned = True
    require_inside(semiring, converted, "graph", advice=", or nonedge=nan")
    if options.nonedge is None and semiring.components == 1:
        warn_of_zeros(converted[0], semiring, zeros[0])
    contiguous = all(v.flags.c_contiguous for v in converted)
    writable = contiguous and not any(_library(v).startswith("jax") for v in given)  # JAX's arrays never change
    return Graph(converted, owned or (options.overwrite and writable), None, _restorer(given[0]))


def _truth(array: Any, missing: Any, xp: Any) -> Any:
    """Which entries are edges."""
    if missing is not None:
        if bool(((array != array) & ~missing).any()):
            raise DomainError("the matrix has a NaN, which is no element of any semiring; pass nonedge=nan if it means 'no edge'")
        return ~missing
    if array.dtype.kind == "f":
        raise DTypeError(
            f"which entries of a {array.dtype} matrix are edges? Pass nonedge= (0, or float('inf') for distances), or a matrix of bool"
        )
    if bool(((array != 0) & (array != 1)).any()):
        raise DTypeError("the matrix has entries that are neither 0 nor 1; pass nonedge=0 if every other number is an edge")
    return array != 0


def _restorer(given: Any) -> Callable[[Any], Any] | None:
    """What makes the caller's own kind of a CuPy array; None for CuPy's."""
    library = _library(given)
    if library in ("torch", "jax", "jaxlib"):
        return _to_jax if library.startswith("jax") else _to_torch
    return None


def _library(given: Any) -> str:
    return type(given).__module__.partition(".")[0]


def _to_torch(array: Any) -> Any:
    return importlib.import_module("torch").from_dlpack(array)


def _to_jax(array: Any) -> Any:
    return importlib.import_module("jax.dlpack").from_dlpack(array)
