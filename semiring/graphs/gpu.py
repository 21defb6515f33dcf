"""Matrices that lie on a GPU: read there, without a copy where nothing has to change."""

from __future__ import annotations

from typing import Any

from semiring.algebra.definition import Semiring
from semiring.algebra.errors import GraphError
from semiring.algebra.namespace import as_array, is_constant, on_gpu, restorer
from semiring.graphs.dense import read_dense
from semiring.graphs.graph import Graph, Options
from semiring.graphs.sources import Source
from semiring.kernels.select import device_of, on_device

__all__ = ["read_gpu"]


def read_gpu(given: tuple[Any, ...], semiring: Semiring, options: Options) -> Graph:
    """A `Graph` of CuPy arrays from one matrix a component: CuPy's, or what DLPack or the CUDA array interface gives."""
    sources = tuple(map(_source, given))
    devices = {device_of(s.array) for s in sources}
    if len(devices) > 1:
        raise GraphError(f"the components of the matrix lie on {' and '.join(sorted(devices))}; bring them to one GPU")
    with on_device(*devices):
        return read_dense(sources, semiring, options)


def _source(value: Any) -> Source:
    if on_gpu(value):
        return Source(value)
    restore = restorer(value)
    return Source(as_array(value), restore=restore, library=restore, constant=is_constant(value))
