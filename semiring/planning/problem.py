"""The problem of a plan: the kind of a computation, its sizes, the place of its operands, and the caller's options."""

from __future__ import annotations

import math
from typing import Any, Literal, NamedTuple

import numpy as np

from semiring.algebra.definition import Semiring
from semiring.algorithms.rows_of_edges import Order, Reach
from semiring.algorithms.symbolic import Fill
from semiring.arrays.devices import gpu_name, is_gpu, on_gpu
from semiring.common.errors import SemiringError
from semiring.kernels import machine
from semiring.kernels.operations import is_packed
from semiring.planning.options import Options, share_of, size_of

__all__ = ["Problem", "Wanted", "closure_problem", "location"]

DTypes = tuple[np.dtype[Any], ...]

Wanted = Literal["elements", "pair", "nearest", "rows", "sums", "extremes"]


class Problem(NamedTuple):
    """A computation to plan: metadata without numbers, so that equal problems share a plan.

    Examples
    --------
    >>> import semiring as sr
    >>> problem = sr.explain(1000, dtype="float32", paths=True).problem
    >>> problem.kind, problem.shape, problem.entry_bytes
    ('closure', (1000, 1000), 8)

    Attributes
    ----------
    kind : {"product", "scan", "closure"}
    semiring : Semiring
    dtypes : tuple of numpy.dtype
        The dtypes of the computation, one for each component.
    shape : tuple of int
        The shape of the result: leading axes, rows and columns, or steps and states of a scan. A closure of n vertices has n rows and
        columns, however many rows are asked for.
    depth : int
        Columns of a product's left operand.
    place : str
        The place of the operands: "cpu", "disk", or "cuda:0" and so on.
    paths : bool
        True if the construction matrix, or the witness of a product, is wanted too.
    edges : int or None
        The number of edges of a sparse graph; None for a dense one.
    searches : int or None
        The number of sources, or of targets; None for all vertices.
    method, block, device, threads, memory_limit
        The caller's options, see `semiring.apsp`. Lists of devices are tuples, and limits are bytes.
    checkpoint : bool
        True if the work is kept in a folder.
    symbolic : bool
        True if entries are formulas, which cannot be compared.
    order : {"best", "levels", "rounds"}
        The order of searches, see `search_order`.
    limit : tuple or None
        The worst element that is wanted, where searches can end.
    tolerance : float
        The caller's option, 0 by default.
    reach : Reach
        The part of the graph that a search visits.
    spans : bool
        True if a spanning forest gives the closure: the sparse graph is symmetric, and ⊕ and ⊗ are min and max.
    steps : float
        The share of n³ steps that a closure by connected components takes.
    fill : Fill or None
        The cost of eliminating a sparse graph, if it was analysed.
    dense : bool
        True for edges of a dense matrix, whose rows products find too.
    scipy : bool
        True if SciPy's searches are a strategy too.
    wanted : {"elements", "pair", "nearest", "rows", "sums", "extremes"}
        Elements of the closure; the element of two different vertices; the best element of each column. Rows that are visited and not
        stored; sums over all elements; the greatest or the least eccentricity.
    ranks : int
        The number of processes that compute together, each on `device`; 0 for the caller's alone.
    beside : int
        The number of these processes on each host.
    hypothetical : bool
        True for a plan that is only shown: without a GPU "cuda" is an NVIDIA H200, and too little memory is a note.
    """

    kind: str
    semiring: Semiring
    dtypes: DTypes
    shape: tuple[int, ...]
    depth: int = 0
    place: str = "cpu"
    paths: bool = False
    edges: int | None = None
    searches: int | None = None
    method: str = "auto"
    block: int | None = None
    device: Any = "auto"
    threads: int | None = None
    memory_limit: int | None = None
    checkpoint: bool = False
    symbolic: bool = False
    order: Order = "best"
    limit: tuple[Any, ...] | None = None
    tolerance: float = 0.0
    reach: Reach = Reach()
    spans: bool = False
    steps: float = 1.0
    fill: Fill | None = None
    dense: bool = False
    scipy: bool = False
    wanted: Wanted = "elements"
    ranks: int = 0
    beside: int = 1
    hypothetical: bool = False

    @property
    def takes_shortcuts(self) -> bool:
        """True if the numbers of a matrix may choose another algorithm for its closure."""
        return self.method == "auto" and self.block is None and str(self.device) != "reference"

    @property
    def has_any_way(self) -> bool:
        """True if the planner chooses the strategy: options leave it open, and entries are numbers."""
        return self.method == "auto" and self.block is None and not self.needs_block_rows and not self.symbolic

    @property
    def has_rows_alone(self) -> bool:
        """True if rows can be found without the whole closure: ⊕ may add a walk twice."""
        return self.has_any_way and (self.semiring.star is None or self.paths)

    @property
    def rows(self) -> int:
        """The number of rows, or of columns, that are asked for."""
        return self.n if self.searches is None else self.searches

    @property
    def n(self) -> int:
        """The number of vertices, or of columns of a product."""
        return self.shape[-1]

    @property
    def matrices(self) -> int:
        """The number of matrices of a stack."""
        return math.prod(self.shape[:-2])

    @property
    def exact(self) -> bool:
        """True if elements are Python's numbers."""
        return any(d.kind == "O" for d in self.dtypes)

    @property
    def element_bytes(self) -> int:
        """Bytes of one element, with all components."""
        return sum(d.itemsize for d in self.dtypes)

    @property
    def entry_bytes(self) -> int:
        """Bytes of one entry of the result, with its entry of the construction matrix or the witness."""
        return self.element_bytes + 4 * self.paths

    @property
    def result_bytes(self) -> int:
        """Bytes of the whole result."""
        return math.prod(self.shape) * self.entry_bytes

    @property
    def needs_block_rows(self) -> bool:
        """True for options that only a closure by block rows has."""
        return self.memory_limit is not None or self.checkpoint

    def is_packed(self, device: str) -> bool:
        """Return True if a device packs matrices into bits; the CPU does not pack a stack of small matrices, one to a lane."""
        small = device == "cpu" and self.matrices > 1 and max(*self.shape[-2:], self.depth) <= machine.UNPACKED
        return not small and is_packed(self.semiring, self.dtypes, witness=self.paths)

    @property
    def there(self) -> bool:
        """True if the operands are on a GPU."""
        return is_gpu(self.place)


def closure_problem(semiring: Semiring, dtypes: DTypes, shape: tuple[int, ...], options: Options, **more: Any) -> Problem:
    """State the closure of a matrix, with the options of `semiring.closure`, as a problem."""
    device = options.device
    return Problem(
        "closure",
        semiring,
        dtypes,
        shape,
        paths=bool(options.paths or semiring.witness),
        method=options.method,
        block=options.block,
        device=tuple(device) if isinstance(device, list) else device,
        threads=options.threads,
        memory_limit=None if options.memory_limit is None else size_of(options.memory_limit),
        checkpoint=options.checkpoint is not None,
        tolerance=0.0 if options.tolerance == 0.0 else share_of(semiring, dtypes, options.tolerance),
        **more,
    )


def location(arrays: tuple[Any, ...], device: Any) -> str:
    """Return the place of arrays: "cpu", or the GPU shared by all GPU arrays; raise `SemiringError` for several GPUs."""
    if {*map(type, arrays)} == {np.ndarray} or not any(map(on_gpu, arrays)):
        return "cpu"
    there = {v.device.id for v in arrays if on_gpu(v)}
    if len(there) > 1:
        raise SemiringError(f"the arrays lie on the GPUs {sorted(there)}, and device is {str(device)!r}; bring them to one GPU")
    return gpu_name(*there)
