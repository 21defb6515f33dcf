"""The interfaces of engines and scans, and the operands that they work on.

Algorithms call an `Engine`: products, closures of one pivot block. Several engines share `Immediate` and `ArrayEngine`. A `Block` is a
view that knows its place in the whole matrix; `blocks` and `quarter` cut a square block for the blocked and the recursive closure. `Scans`
send a vector through a long product of matrices.
"""

from __future__ import annotations

import functools
from abc import abstractmethod
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol

import numpy as np

from semiring.algebra.definition import Semiring
from semiring.arrays.conversion import Array
from semiring.common.progress import Meter
from semiring.kernels.limits import ValueStatistics
from semiring.kernels.operations import Operations

__all__ = [
    "ArrayEngine", "Block", "Engine", "Immediate", "PackedBlock", "Primitives", "ScanOperands", "ScanPlaces", "Scans", "blocks",
    "fresh_engine", "quarter", "sequence_offsets",
]  # fmt: skip

Values = tuple[Any, ...]


@dataclass(eq=False, slots=True)  # not frozen: a frozen block takes four times as long to make
class Block:
    """An immutable view of rows and columns of a matrix, and of its construction matrix if paths are wanted.

    Examples
    --------
    >>> A = Block((np.arange(9).reshape(3, 3),))
    >>> corner = A[1:, 2:]
    >>> corner.shape, corner.row, corner.column
    ((2, 1), 1, 2)

    Attributes
    ----------
    values : tuple of arrays
        One array of shape (…, m, n) for each component of an element (one, unless the semiring is structured).
    via : int32 array of shape (…, m, n) or None
        The construction matrix: the intermediate vertex of each entry's best path, −1 for none.
    row, column : int
        Global numbers of the first row and column, since `via` holds global vertices.
    """

    values: Values
    via: Any = None
    row: int = 0
    column: int = 0

    @property
    def shape(self) -> tuple[int, int]:
        """Return the numbers of rows and columns."""
        m, n = self.values[0].shape[-2:]
        return int(m), int(n)

    @property
    def batch(self) -> tuple[int, ...]:
        """Return the lengths of the leading axes."""
        return tuple(self.values[0].shape[:-2])

    def at(self, index: tuple[int, ...] | slice) -> Block:
        """Return the matrix at an index of the leading axes; with a slice, the matrices of a part of the first axis."""
        return replace(self, values=tuple(v[index] for v in self.values), via=None if self.via is None else self.via[index])

    def __getitem__(self, key: tuple[slice, slice]) -> Block:
        """Return the view ``block[rows, columns]``; both are slices of step 1."""
        (m, n), (rows, columns) = self.shape, key
        top, bottom, _ = rows.indices(m)
        left, right, _ = columns.indices(n)
        view = (..., slice(top, max(top, bottom)), slice(left, max(left, right)))
        via = None if self.via is None else self.via[view]
        return Block(tuple(v[view] for v in self.values), via, self.row + top, self.column + left)


@dataclass(eq=False, slots=True)
class PackedBlock(Block):
    """A view of a bit-packed matrix; `values` holds the words."""

    columns: int = 0  # bits in a row
    strip: int = 1  # alignment of a view's first column; rows are padded to a multiple

    @property
    def shape(self) -> tuple[int, int]:
        """Return the numbers of rows and columns."""
        return int(self.values[0].shape[-2]), self.columns

    def __getitem__(self, key: tuple[slice, slice]) -> PackedBlock:
        """Return the view ``block[rows, columns]``; its columns are whole strips, except the matrix's last one."""
        (m, n), (rows, columns), strip = self.shape, key, self.strip
        top, bottom, _ = rows.indices(m)
        left, right, _ = columns.indices(n)
        right = max(left, right)
        assert left % strip == 0, left
        assert right in (left, n) or right % strip == 0, right
        width = 8 * self.values[0].itemsize
        words = self.values[0][..., top : max(top, bottom), left // width : -(-right // strip) * (strip // width)]
        return PackedBlock((words,), None, self.row + top, self.column + left, right - left, strip)


class Primitives(Protocol):
    """The operations that algorithms use; their text needs no other attribute of an engine.

    An operand may share memory with the result: every operation reads the old values.
    −0.0 and 0.0 are one element. Where both are right, the result's sign is not specified and may differ between engines.
    """

    @abstractmethod
    def multiply_add(self, A: Block, B: Block, C: Block) -> None:
        """C ← C ⊕ A⊗B. A tie keeps C's value and `via`; among the new candidates the lowest k wins."""

    @abstractmethod
    def multiply_add_each(self, *products: tuple[Block, Block, Block]) -> None:
        """C ← C ⊕ A⊗B for the (A, B, C) of several products; no product reads or writes another's C."""

    @abstractmethod
    def multiply(self, A: Block, B: Block, C: Block) -> None:
        """C ← A⊗B."""

    @abstractmethod
    def close(self, A: Block) -> None:
        """Compute A ← A ⊕ A² ⊕ …, in place, for an idempotent ⊕.

        Raises
        ------
        DivergentPivot
            At the first pivot p with 1 ⊕ p ≠ 1, before it is used.
        """

    @abstractmethod
    def eliminate(self, A: Block) -> None:
        """Compute A ← A* = I ⊕ A ⊕ A² ⊕ …, in place, by elimination with star(pivot), for any closed semiring.

        Raises
        ------
        DivergentPivot
            At the first pivot that has no star.
        """


class Engine(Primitives, Protocol):
    """A semiring in its dtypes on a device. Set the last four attributes before the first operation.

    Attributes
    ----------
    semiring : Semiring
    dtypes : tuple of numpy.dtype
        One for each component.
    alignment : int
        Blocks begin at multiples of this number: 1, or a strip of bits for packed elements.
    pivot : int
        The side of the largest block that `close` and `eliminate` take.
    sweep : int
        The side up to which sweeps over the whole matrix, one for each pivot block of side `block`, beat recursion; 0 for never.
        Small matrices are bound by the number of dependent operations, not by their size.
    block : int
        The side of pivot blocks in such sweeps.
    signed : bool
        Tropical integers may be negative, so ∞ plus a negative number has to count as ∞.
    statistics : ValueStatistics or None
        Value statistics of the matrix, if known.
    asynchronous : bool
        No operation may wait for a GPU: the GPU itself decides what depends on values, or variants for any values run.
    meter : Meter or None
        Counts the steps of products and pivot blocks as they finish. Large products are then cut where that changes neither the bits
        of the result nor the time.
    """

    semiring: Semiring
    dtypes: tuple[np.dtype[Any], ...]
    alignment: int
    pivot: int
    sweep: int
    block: int
    signed: bool
    statistics: ValueStatistics | None
    asynchronous: bool
    meter: Meter | None

    @abstractmethod
    def load(self, values: Values, via: Any = None, *, owned: bool = True) -> Block:
        """Return the block that represents `values` while an algorithm runs: the arrays themselves, or a copy in another form.

        The elements of `owned` arrays may be converted in place, until `store` converts them back.
        """
        ...

    @abstractmethod
    def blank(self, values: Values, via: Any = None) -> Block:
        """Return a block like `load`, for arrays whose elements a product will replace."""
        ...

    @abstractmethod
    def store(self, A: Block, values: Values) -> None:
        """Write a loaded block's elements to `values`; do nothing if the block holds those very arrays."""

    @abstractmethod
    def run(self, name: Hashable, schedule: Callable[[Block], None], A: Block) -> None:
        """Call ``schedule(A)``; an engine that has seen the schedule's `name` may start it faster, as a CUDA graph.

        An engine whose operations cannot raise at once also looks for loops that rounding made divergent, for `verify`.
        """

    @abstractmethod
    def verify(self) -> None:
        """Raise the `DivergentPivot` that an asynchronous `close` or `eliminate` has found."""

    @abstractmethod
    def add_identity(self, A: Block) -> None:
        """Compute A ← I ⊕ A, for a square A."""


def fresh_engine(engine: Engine) -> Engine:
    """Return a cheap copy of an engine, so that every call can set attributes such as `statistics`."""
    other: Engine = object.__new__(type(engine))
    other.__dict__.update(engine.__dict__)
    return other


class Immediate(Engine):
    """The shared part of synchronous engines: an operation has finished, and raised its error, when the call returns."""

    sweep = block = 0
    signed = asynchronous = False
    statistics: ValueStatistics | None = None
    meter: Meter | None = None

    def multiply_add_each(self, *products: tuple[Block, Block, Block]) -> None:
        """C ← C ⊕ A⊗B for independent products, one after the other."""
        for A, B, C in products:
            self.multiply_add(A, B, C)

    def run(self, name: Hashable, schedule: Callable[[Block], None], A: Block) -> None:
        """Call ``schedule(A)``."""
        schedule(A)

    def verify(self) -> None:
        """Do nothing: errors were raised at once."""
        return


class ArrayEngine(Immediate):
    """The shared part of engines that work on the caller's arrays."""

    alignment = 1
    _operations: Operations

    def load(self, values: Values, via: Any = None, *, owned: bool = True) -> Block:
        """Return the block of the arrays themselves."""
        return Block(values, via)

    blank = load

    def store(self, A: Block, values: Values) -> None:
        """Copy a block's elements to `values`, unless the block holds those very arrays."""
        for source, target in zip(A.values, values, strict=True):
            if source is not target:
                target[...] = source

    def add_identity(self, A: Block) -> None:
        """Compute A ← I ⊕ A."""
        i = np.arange(A.shape[0])
        diagonal = self._operations.add(self._operations.one, tuple(v[..., i, i] for v in A.values))
        for v, d in zip(A.values, diagonal, strict=True):
            v[..., i, i] = d


def blocks(A: Block, b: int) -> Iterator[tuple[slice, tuple[slice, ...]]]:
    """Yield the range K of each pivot block of side b, and the non-empty ranges before and after K."""
    n = A.shape[0]
    for start in range(0, n, b):
        stop = min(n, start + b)
        yield slice(start, stop), tuple(s for s in (slice(0, start), slice(stop, n)) if s.start < s.stop)


def quarter(A: Block, base: int) -> tuple[Block, Block, Block, Block]:
    """Return A11, A12, A21, A22 of a square block, cut near the middle at a multiple of `base`."""
    n = A.shape[0]
    half = max(1, round(n / 2 / base)) * base
    first, second = slice(0, half), slice(half, n)
    return A[first, first], A[first, second], A[second, first], A[second, second]


class ScanOperands(NamedTuple):
    """Sequences of matrices in the dtypes of the scan, on one device. Operands are tuples with an array for each component."""

    matrices: Values  # arrays that broadcast to (…, T, S, S)
    weights: Values | None  # arrays that broadcast to (…, T, S)
    initial: Values  # arrays that broadcast to (…, S)
    lengths: Array  # steps of each sequence, at most T: an int64 array of shape (…,) on the host
    steps: int  # T
    states: int  # S
    added: Values | None = None  # u, arrays that broadcast to (…, T + 1, S): after the initial vector, each v_t is v_t ⊕ u_t

    @property
    def batch(self) -> tuple[int, ...]:
        """Return the lengths of the leading axes."""
        return tuple(self.lengths.shape)


class ScanPlaces(NamedTuple):
    """Contiguous arrays that receive the results of a scan."""

    values: Values  # arrays of shape (…, T + 1, S), or (…, S) for the last vector alone
    witness: Any = None  # int32 array of shape (…, T + 1, S), or None
    states: Any = None  # int32 array of shape (…, T + 1), or None


def sequence_offsets(v: Any, axes: int) -> Array:
    """Return the byte offset of each sequence in an array whose first `axes` axes are those of the batch."""
    offsets = (step * np.arange(length, dtype=np.int64) for length, step in zip(v.shape[:axes], v.strides[:axes], strict=True))
    return np.ravel(functools.reduce(np.add.outer, offsets, np.zeros((), np.int64)))


class Scans(Protocol):
    """The compiled scans of a semiring in its dtypes, on one device."""

    def run(self, operands: ScanOperands, places: ScanPlaces, *, backward: bool, signed: bool) -> None:
        """Fill the places with the results; elements beyond a sequence's length are unchanged.

        Parameters
        ----------
        backward : bool
            True scans v_{t−1} = A_t ⊗ (w_t ⊗ v_t) from the last vector; False v_t = (v_{t−1} ⊗ A_t) ⊗ w_t.
        signed : bool
            See `Engine.signed`.
        """
