"""Reading any kind of graph as a matrix over a semiring.

`read_graph` makes a dense matrix of any graph. `edges_of` reads lists of edges into compressed rows, and returns None for a dense matrix;
`one_graph` compresses dense matrices too. A `GivenMatrix` knows shape, dtypes and place of a dense matrix before any entry is read.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, replace
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from semiring.algebra.definition import Semiring
from semiring.algorithms.csr import CSR, present
from semiring.arrays.devices import device_of, host, on_device, on_gpu
from semiring.arrays.exchange import ArrayLike, as_array_like, comes_from
from semiring.common.errors import GraphError
from semiring.graphs.by_rows import GivenRows, given_rows, is_on_disk, square_arrays
from semiring.graphs.coo import coordinates, csr_of_scipy
from semiring.graphs.dense import Form, Graph, Reading, matrix_form, matrix_shape, read_dense
from semiring.graphs.edge_list import EdgeList, is_constant
from semiring.graphs.weights import element_of, lists_components, matrix_of, require_weight

__all__ = ["GivenMatrix", "edges_of", "one_graph", "read_graph", "reading_of"]

_READ_ANYWHERE = frozenset(map(np.dtype, "?hilqBHILQfd"))  # dtypes that a GPU reads as the host does


def read_graph(
    graph: Any,
    semiring: Semiring,
    *,
    nonedge: Any = None,
    dtype: Any = None,
    overwrite: bool = False,
    presence: bool = False,
    paths: bool = False,
    weight: Any = None,
) -> Graph:
    """Read a graph as a dense matrix over `semiring`, with the semiring's zero for every missing edge.

    Parameters
    ----------
    graph
        - An array of shape (…, n, n), with any strides; a masked entry of a masked array is a non-edge, and so is None. Nested lists,
          SymPy matrices and pandas DataFrames (index and columns name the vertices) are arrays too. So are objects with DLPack, an array
          interface or the buffer protocol, on the host or on a GPU.
        - A tuple of arrays, one for each component of a structured element. The semiring's `from_weight` converts single numbers.
        - A sparse array or matrix of SciPy or PyData. An absent entry is a non-edge, an explicit 0 is an edge, except in the formats that
          pad with zeros, BSR and DIA. Entries stored twice in one place are parallel edges; SciPy would add them.
        - A graph of NetworkX, igraph, rustworkx, networkit or PyTorch Geometric: vertices keep their labels; if no edge has a
          weight, each counts 1; parallel edges combine with ⊕.
        - An `EdgeList`, from `edges`.
    semiring : Semiring
    nonedge : scalar, optional
        An entry of this value (NaN too) is no edge. A tuple for structured elements.
    dtype : dtype, optional
        The dtype of the matrix. By default an array keeps its own (float16 becomes float32 and int8 becomes int16), and other graphs are
        float64, or bool for semirings on truth values.
    overwrite : bool
        Permits to use the memory of a writable array.
    presence : bool
        For truth values: a listed edge or a stored entry is True whatever its number, also 0; a stored False is no edge.
    paths : bool
        Require memory for the construction matrix as well.
    weight : hashable, optional
        The attribute or column of the weights, or a number that every edge counts.

    Raises
    ------
    GraphError, ShapeError, DTypeError, DomainError, TooLargeError
    """
    reading = reading_of(semiring, Reading(nonedge, dtype, overwrite, presence, paths))
    if (coo := coordinates(graph, semiring, weight, presence=presence)) is not None:
        return coo.dense(semiring, reading)
    return GivenMatrix.of(graph, semiring, reading).read()


@dataclass(eq=False, slots=True)
class GivenMatrix:
    """A dense graph as the caller passed it, before any entry is read."""

    inputs: tuple[ArrayLike, ...]  # one for each component of an element
    semiring: Semiring
    reading: Reading
    shape: tuple[int, ...]  # leading axes, rows and columns
    form: Form  # the form of the matrix to be read
    plain: bool  # block rows can be read without a copy
    place: str  # the location: "cpu", "disk", or "cuda:0" and so on
    # a matrix of ordinary weights from which the components will be made; `inputs` then only have their dtypes
    weights: ArrayLike | None = None

    @classmethod
    def of(cls, graph: Any, semiring: Semiring, reading: Reading) -> GivenMatrix:
        """Wrap a graph that lists no edges."""
        plain = type(graph) is np.ndarray and graph.ndim == 2 and graph.dtype.kind in "biuf"
        if semiring.components == 1 and (plain or on_gpu(graph)):
            own, place = (ArrayLike(graph),), "cpu" if plain else device_of(graph)
            return cls(own, semiring, reading, matrix_shape(own), matrix_form(own, semiring, reading), plain, place)
        width = semiring.components
        arrays = square_arrays(graph, semiring)
        if arrays is not None:
            inputs = tuple(map(ArrayLike, arrays))
        elif width > 1 and not lists_components(graph, semiring):
            require_weight(semiring, f"a matrix over {semiring.name} is a tuple of {width} equally shaped arrays")
            weights = as_array_like(graph)
            shape, place = matrix_shape((weights,)), device_of(weights.array)
            with on_device(place):
                inputs = matrix_of(replace(weights, array=weights.array[..., :0, :0], missing=None), semiring)  # for the dtypes
            return cls(inputs, semiring, reading, shape, matrix_form(inputs, semiring, reading), False, place, weights)
        else:
            inputs = tuple(map(as_array_like, graph if width > 1 else (graph,)))
        devices = {device_of(s.array) for s in inputs}
        if len(devices) > 1:
            raise GraphError(f"the components of the matrix lie on {' and '.join(sorted(devices))}; bring them to one device")
        place = "disk" if arrays is not None and any(map(is_on_disk, arrays)) else devices.pop()
        return cls(inputs, semiring, reading, matrix_shape(inputs), matrix_form(inputs, semiring, reading), arrays is not None, place)

    @property
    def dtypes(self) -> tuple[np.dtype[Any], ...]:
        """The dtypes of the matrix to be read."""
        return self.form.dtypes

    @property
    def arrays(self) -> tuple[Any, ...]:
        """The caller's arrays, one for each component."""
        return tuple(s.array for s in self.inputs)

    def read(self, *, overwrite: bool | None = None) -> Graph:
        """Read the matrix over the semiring."""
        reading = self.reading if overwrite is None else self.reading._replace(overwrite=overwrite)
        if self.place == "cpu" and self.weights is None:
            return read_dense(self.inputs, self.semiring, reading, self.form)
        with on_device(self.place):
            if self.weights is not None:
                inputs = matrix_of(self.weights, self.semiring, warn=reading.check and reading.nonedge is None)
            else:  # Zarr's arrays have not been read yet
                inputs = tuple([s if isinstance(s.array, np.ndarray) or on_gpu(s.array) else as_array_like(s.array) for s in self.inputs])
            return read_dense(inputs, self.semiring, reading, self.form)

    def rows(self) -> GivenRows:
        """Prepare a `plain` matrix for reading by block rows."""
        return given_rows(self.inputs, self.semiring, self.reading)

    def uploaded(self, device: str) -> GivenMatrix | None:
        """Copy the matrix to a GPU, to be read there; the host would take as long as the closure. None if only the host can read it."""
        wanted = self.reading.dtype
        if self.weights is not None:
            return None
        for s in self.inputs:
            if type(s.array) is not np.ndarray or s.array.dtype not in _READ_ANYWHERE or (wanted is not None and s.array.dtype != wanted):
                return None
            if s.missing is not None or s.restore is not None or s.numbers or s.constant:  # supported on the host only
                return None
        from semiring.kernels.cuda.blocks import upload

        with on_device(device):
            inputs = tuple(replace(s, array=upload(s.array)) for s in self.inputs)
        return replace(self, inputs=inputs, reading=self.reading._replace(overwrite=True), plain=False, place=device)


def edges_of(
    graph: Any, semiring: Semiring, *, weight: Any = None, listed: EdgeList | None = None, **options: Any
) -> tuple[CSR, tuple[Hashable, ...] | None] | None:
    """Read the edges of a graph that lists them, and the labels; None for a dense matrix. See `read_graph` and `coordinates`.

    The other options are those of `Reading`.
    """
    if weight is None and (isinstance(graph, np.ndarray) or on_gpu(graph)):
        return None
    reading = reading_of(semiring, Reading(**options))
    once = weight is None and isinstance(graph, EdgeList) and not graph.columns and is_constant(graph)
    if once and (known := _read.get(graph)) is not None and known[0] == (semiring, reading):
        return known[1], graph.labels
    if weight is None and comes_from(graph, "scipy") and hasattr(graph, "tocoo"):
        csr = csr_of_scipy(graph, semiring, reading)
        if csr is not None:
            return csr, None
    coo = coordinates(graph, semiring, weight, presence=reading.presence, listed=listed)
    if coo is None:
        return None
    edges = coo.csr(semiring, reading)
    if once:
        _read[graph] = (semiring, reading), edges
    return edges, coo.labels


_read: WeakKeyDictionary[EdgeList, tuple[tuple[Semiring, Reading], CSR]] = WeakKeyDictionary()
"""The last reading of each list of constant arrays; its CSR caches later findings, such as symmetry and the reversed graph."""


def one_graph(
    graph: Any, semiring: Semiring, *, weight: Any = None, listed: EdgeList | None = None, **options: Any
) -> tuple[CSR, tuple[Hashable, ...] | None]:
    """Read the edges of any graph, also of a dense matrix, and the labels; see `edges_of`.

    Raises GraphError for a batch of matrices, and as for `read_graph`.
    """
    read = edges_of(graph, semiring, weight=weight, listed=listed, **options)
    if read is not None:
        return read
    g = GivenMatrix.of(graph, semiring, reading_of(semiring, Reading(**options))).read()
    if g.batch:
        raise GraphError(f"this is of one graph, not of a batch of shape {g.batch}; pass one at a time")
    if g.verify is not None:
        g.verify()
    values = tuple(map(host, g.values))
    zero, _ = semiring.identities(g.dtypes)
    there = present(values, zero)
    tails, heads = np.nonzero(there)
    return CSR.of(tails, heads, tuple(v[there] for v in values), g.n, zero), g.labels


def reading_of(semiring: Semiring, options: Reading) -> Reading:
    """Return options with `nonedge` as an element of the semiring. Raises GraphError if `nonedge` is no single element."""
    nonedge, width = options.nonedge, semiring.components
    if nonedge is None:
        return options
    if width > 1 and semiring.from_weight is not None and not isinstance(nonedge, tuple | list | np.ndarray):
        nonedge = element_of(nonedge, semiring)
    if width > 1 and (not isinstance(nonedge, tuple) or len(nonedge) != width):
        raise GraphError(f"nonedge is one element of {semiring.name}: a tuple of {width} numbers, not {nonedge!r}")
    if width == 1 and isinstance(nonedge, tuple | list | np.ndarray):
        raise GraphError(f"nonedge is one number, not {nonedge!r}")
    return options._replace(nonedge=nonedge)
