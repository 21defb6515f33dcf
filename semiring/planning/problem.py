"""A problem, what is asked: the kind of a computation, its sizes, where its operands lie, and the caller's options."""

from __future__ import annotations

import math
from typing import Any, Literal, NamedTuple

import numpy as np

from semiring.algebra.definition import Semiring
from semiring.algorithms.rows_of_edges import Order, Reach
from semiring.algorithms.spanning_tree import is_bottleneck
from semiring.algorithms.symbolic import Fill
from semiring.arrays.devices import gpu_name, is_gpu, on_gpu
from semiring.common.errors import SemiringError
from semiring.kernels import machine
from semiring.kernels.boolean import is_packed
from semiring.planning.options import Options, size_of

__all__ = ["Problem", "Wanted", "closure_problem", "location"]

DTypes = tuple[np.dtype[Any], ...]

Wanted = Literal["elements", "pair", "nearest", "rows", "sums", "extremes"]


class Problem(NamedTuple):
    """What is asked: metadata alone, so that problems can be compared, and equal ones have one plan.

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
        Of the computation, one for each component.
    shape : tuple of int
        Of the result: leading axes, rows and columns, or steps and states of a scan. A closure of n vertices has n of both, whichever rows
        are asked for.
    depth : int
        Columns of a product's left operand.
    place : str
        Where the operands lie: "cpu", "disk", or "cuda:0" and so on.
    paths : bool
        Whether the construction matrix, or the witness of a product, is wanted too.
    edges : int or None
        How many a sparse graph has; None for a dense one.
    searches : int or None
        From how many vertices paths begin, or at how many they end; None for all of them.
    method, block, device, threads, memory_limit
        As the caller has them, see `semiring.apsp`; a list of devices is a tuple here, and a limit a number of bytes.
    checkpoint : bool
        Whether the work is kept in a folder.
    symbolic : bool
        Whether entries are formulas, of which it is unknown whether a walk changes anything.
    order : {"best", "levels", "rounds"}
        How searches of a sparse graph go, see `search_order`.
    reach : Reach
        How far a search goes.
    spans : bool
        Whether a spanning forest tells the closure of a sparse graph, which is symmetric and whose ⊕ and ⊗ are min and max.
    steps : float
        The share of n³ steps that a closure by connected components takes.
    fill : Fill or None
        What the elimination of a sparse graph takes, where that was analysed.
    dense : bool
        Whether the edges are those of a dense matrix, whose rows products find too.
    scipy : bool
        Whether SciPy's searches are a strategy too.
    wanted : {"elements", "pair", "nearest", "rows", "sums", "extremes"}
        The elements of the closure; the element between two different vertices; for each vertex the best element of all searches; rows
        that are visited and not stored; sums over all elements, for which hop counts suffice; the greatest or the least eccentricity.
    ranks : int
        The processes that compute it together, each on `device`; 0 where the caller's does it alone.
    beside : int
        How many of them there are on each host.
    hypothetical : bool
        Whether the plan is only to be looked at: then "cuda" is an NVIDIA H200 where there is no GPU, and what does not fit is a note.
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
        """Tell whether the numbers of a matrix may choose another algorithm for its closure."""
        return self.method == "auto" and self.block is None and str(self.device) != "reference"

    @property
    def may_span(self) -> bool:
        """Tell whether a spanning tree closes a dense matrix on the CPU if its entries turn out to be symmetric."""
        return self.takes_shortcuts and self.n >= machine.SPANNING and is_bottleneck(self.semiring, self.dtypes)

    @property
    def has_any_way(self) -> bool:
        """Whether the way is the planner's choice, of numbers."""
        return self.method == "auto" and self.block is None and not self.needs_block_rows and not self.symbolic

    @property
    def has_rows_alone(self) -> bool:
        """Whether rows can be found without the whole closure, where ⊕ bears a walk that is added more than once."""
        return self.has_any_way and (self.semiring.star is None or self.paths)

    @property
    def rows(self) -> int:
        """How many rows of a closure are asked for, or columns."""
        return self.n if self.searches is None else self.searches

    @property
    def n(self) -> int:
        """The number of vertices, or of columns of a product."""
        return self.shape[-1]

    @property
    def matrices(self) -> int:
        """How many of them there are."""
        return math.prod(self.shape[:-2])

    @property
    def exact(self) -> bool:
        """Whether elements are Python's own numbers."""
        return any(d.kind == "O" for d in self.dtypes)

    @property
    def element_bytes(self) -> int:
        """Bytes of one element, of all its components."""
        return sum(d.itemsize for d in self.dtypes)

    @property
    def entry_bytes(self) -> int:
        """Bytes of one entry of the result, with the construction matrix or the witness where it is wanted."""
        return self.element_bytes + 4 * self.paths

    @property
    def result_bytes(self) -> int:
        """Bytes of the whole result."""
        return math.prod(self.shape) * self.entry_bytes

    @property
    def needs_block_rows(self) -> bool:
        """Whether the caller wants what only a closure by block rows can give."""
        return self.memory_limit is not None or self.checkpoint

    def is_packed(self, device: str) -> bool:
        """Whether a device packs matrices into bits; on the CPU those of a stack that go one to a lane are not."""
        small = device == "cpu" and self.matrices > 1 and max(*self.shape[-2:], self.depth) <= machine.UNPACKED
        return not small and is_packed(self.semiring, self.dtypes, witness=self.paths)

    @property
    def there(self) -> bool:
        """Whether the operands lie on a GPU."""
        return is_gpu(self.place)


def closure_problem(semiring: Semiring, dtypes: DTypes, shape: tuple[int, ...], options: Options, **more: Any) -> Problem:
    """The closure of a matrix with the options of `semiring.closure`.

    Raises
    ------
    SemiringError
        For a memory limit that is none.
    """
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
        **more,
    )


def location(arrays: tuple[Any, ...], device: Any) -> str:
    """Where arrays lie: "cpu", or the one GPU that all of those lie on that lie on one.

    Raises
    ------
    SemiringError
        Where they lie on several.
    """
    if {*map(type, arrays)} == {np.ndarray} or not any(map(on_gpu, arrays)):
        return "cpu"
    there = {v.device.id for v in arrays if on_gpu(v)}
    if len(there) > 1:
        raise SemiringError(f"the arrays lie on the GPUs {sorted(there)}, and device is {str(device)!r}; bring them to one GPU")
    return gpu_name(*there)
