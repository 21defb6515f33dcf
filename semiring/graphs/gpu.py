"""Matrices that lie on a GPU: read there, without a copy where nothing has to change."""

from __future__ import annotations

from typing import Any

from semiring.algebra.definition import Semiring
from semiring.algebra.errors import GraphError
from semiring.algebra.namespace import as_array, is_constant, restorer
from semiring.graphs.dense import read_dense
from semiring.graphs.graph import Graph, Options
from semiring.graphs.sources import Source
from semiring.kernels.select import device_of, on_device

__all__ = ["read_gpu"]


def read_gpu(given: tuple[Any, ...], semiring: Semiring, options: Options) -> Graph:
    """A `Graph` of CuPy arrays from one matrix a component: CuPy's, or what DLPack or the CUDA array interface gives."""
    sources = tuple(Source(as_array(v), restore=restorer(v), library=restorer(v), constant=is_constant(v)) for v in given)
    devices = sorted({device_of(s.array) for s in sources})
    if len(devices) > 1:
        raise GraphError(f"the components of the matrix lie on {' and '.join(devices)}; bring them to one GPU")
    with on_device(devices[0]):
        return read_dense(sources, semiring, options)
