"""What every engine offers, and the blocks of matrices that it works on.

`Engine` is what the algorithms call: a product, the closure of one pivot block, and their forms without an old result. `Immediate` and
`ArrayEngine` are the parts of it that several engines share. A `Block` is a view of a matrix, which knows where in the whole it lies;
`blocks` and `quarter` cut a square one for the blocked and for the recursive closure.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from semiring.algebra.definition import Semiring
from semiring.common.progress import Meter
from semiring.kernels.limits import ValueStatistics
from semiring.kernels.operations import Operations

__all__ = ["ArrayEngine", "Block", "Engine", "Immediate", "PackedBlock", "Primitives", "Sides", "blocks", "fresh_engine", "quarter"]


@dataclass(eq=False, slots=True)  # not frozen, which makes a block take four times as long to make
class Block:
    """A view of rows and columns of a matrix, together with its construction matrix where paths are wanted.

    Nobody changes a block; who needs another one makes it.

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
        Global indices of the first row and the first column, so that `via` holds global vertices.
    """

    values: tuple[Any, ...]
    via: Any = None
    row: int = 0
    column: int = 0

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        m, n = self.values[0].shape[-2:]
        return int(m), int(n)

    @property
    def batch(self) -> tuple[int, ...]:
        """The leading axes."""
        return tuple(self.values[0].shape[:-2])

    def at(self, index: tuple[int, ...] | slice) -> Block:
        """The matrix at an index of the leading axes; with a slice, the matrices of a part of the first one."""
        return replace(self, values=tuple(v[index] for v in self.values), via=None if self.via is None else self.via[index])

    def __getitem__(self, key: tuple[slice, slice]) -> Block:
        """The view ``block[rows, columns]``; both are slices of step 1."""
        (m, n), (rows, columns) = self.shape, key
        top, bottom, _ = rows.indices(m)
        left, right, _ = columns.indices(n)
        view = (..., slice(top, max(top, bottom)), slice(left, max(left, right)))
        return Block(
            tuple(v[view] for v in self.values),
            None if self.via is None else self.via[view],
            self.row + top,
            self.column + left,
        )


@dataclass(eq=False, slots=True)
class PackedBlock(Block):
    """A view of a bit-packed matrix.

    Attributes
    ----------
    columns : int
        Its bits in a row; `values` holds their words.
    strip : int
        Columns of a view begin at multiples of it, and rows are padded to one.
    """

    columns: int = 0
    strip: int = 1

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return int(self.values[0].shape[-2]), self.columns

    def __getitem__(self, key: tuple[slice, slice]) -> PackedBlock:
        """The view ``block[rows, columns]``; columns begin at whole strips, and end at the next or the last one."""
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
    """The operations that the algorithms are made of. The text of an algorithm needs nothing else, neither of an engine nor of a wrapper.

    An operand that shares memory with the result is as good as a copy of it: every operation reads the old values.
    −0.0 and 0.0 are one element: nothing prefers one to the other, and where both are equally right, which of them comes out is not
    specified and may differ between engines and processors.
    """

    def multiply_add(self, A: Block, B: Block, C: Block) -> None:
        """C ← C ⊕ A⊗B. A tie keeps C's value and `via`; among the new candidates the lowest k wins."""

    def multiply_add_each(self, *products: tuple[Block, Block, Block]) -> None:
        """C ← C ⊕ A⊗B for the (A, B, C) of several products, of which none has to do with the C of another."""

    def multiply(self, A: Block, B: Block, C: Block) -> None:
        """C ← A⊗B."""

    def close(self, A: Block) -> None:
        """A ← A ⊕ A² ⊕ …, in place, for an idempotent ⊕.

        Raises
        ------
        DivergentPivot
            At the first pivot p with 1 ⊕ p ≠ 1, before it is used.
        """

    def eliminate(self, A: Block) -> None:
        """A ← A* = I ⊕ A ⊕ A² ⊕ …, in place, by elimination with star(pivot), for any closed semiring.

        Raises
        ------
        DivergentPivot
            At the first pivot that has no star.
        """


class Sides(Protocol):
    """What the choice of a schedule asks of an engine; see there."""

    @property
    def alignment(self) -> int: ...  # noqa: D102 (described in `Engine`)
    @property
    def pivot(self) -> int: ...  # noqa: D102 (likewise)
    @property
    def sweep(self) -> int: ...  # noqa: D102 (likewise)
    @property
    def block(self) -> int: ...  # noqa: D102 (likewise)


class Engine(Primitives, Protocol):
    """One semiring in one dtype on one machine.

    Attributes
    ----------
    semiring : Semiring
    dtypes : tuple of numpy.dtype
        One for each component.
    alignment : int
        Blocks begin at multiples of it (1, or a strip of bits where elements are packed).
    pivot : int
        The side of the largest block that `close` and `eliminate` take.
    sweep : int
        The side up to which a matrix is closed faster by sweeps over all of it, one for each pivot block of side `block`, than
        recursively, because it counts more how few operations depend on each other than how large they are; 0 if there is none.
    block : int
        The side of pivot blocks in such sweeps.
    signed : bool
        Whether tropical integers may be negative, so that ∞ plus one of them has to count as ∞. Set it before the first operation.
    statistics : ValueStatistics or None
        What the numbers of the matrix are, if that is known. Set it before the first operation.
    asynchronous : bool
        Whether no operation may wait for a GPU: what only the numbers tell the GPU itself finds out, or variants for any numbers run.
    meter : Meter or None
        Told of the steps of products and pivot blocks as they are done. Large products are then cut, where that changes neither the bits
        of the result nor how long it takes. Set it before the first operation.
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

    def load(self, values: tuple[Any, ...], via: Any = None, *, owned: bool = True) -> Block:
        """The block that stands for `values` while an algorithm runs: the arrays themselves, or a copy in another form.

        Arrays that are `owned` may be brought into another form where they are, until `store` gives them back their own.
        """
        ...

    def blank(self, values: tuple[Any, ...], via: Any = None) -> Block:
        """As `load`, for arrays whose elements do not count because a product replaces them."""
        ...

    def store(self, A: Block, values: tuple[Any, ...]) -> None:
        """Write a loaded block's elements to `values`; nothing to do where it holds those very arrays."""

    def run(self, name: Hashable, schedule: Callable[[Block], None], A: Block) -> None:
        """``schedule(A)``, where `name` tells schedules apart: an engine that has seen it may know a faster way to start it.

        An engine whose operations cannot raise at once looks for loops that rounding made divergent too, for `verify`.
        """

    def verify(self) -> None:
        """Raise what `close` and `eliminate` have found but could not tell at once, because they run elsewhere: `DivergentPivot`."""

    def add_identity(self, A: Block) -> None:
        """A ← I ⊕ A, for a square A."""


def fresh_engine(engine: Engine) -> Engine:
    """The same engine, which may be told other things of its operands: it costs next to nothing, so that every call has one of its own."""
    other: Engine = object.__new__(type(engine))
    other.__dict__.update(engine.__dict__)
    return other


class Immediate(ABC):
    """The part of `Engine` of those that have done everything, and told it, when an operation returns."""

    sweep = block = 0
    signed = asynchronous = False
    statistics: ValueStatistics | None = None
    meter: Meter | None = None

    @abstractmethod
    def multiply_add(self, A: Block, B: Block, C: Block) -> None:
        """C ← C ⊕ A⊗B."""

    def multiply_add_each(self, *products: tuple[Block, Block, Block]) -> None:
        """C ← C ⊕ A⊗B for independent products, one after the other."""
        for A, B, C in products:
            self.multiply_add(A, B, C)

    def run(self, name: Hashable, schedule: Callable[[Block], None], A: Block) -> None:
        """``schedule(A)``."""
        schedule(A)

    def verify(self) -> None:
        """Nothing is left to be told."""
        return


class ArrayEngine(Immediate):
    """The part of `Engine` that no kernel is needed for."""

    alignment = 1
    _operations: Operations

    def load(self, values: tuple[Any, ...], via: Any = None, *, owned: bool = True) -> Block:
        """The block of the arrays themselves."""
        return Block(values, via)

    def blank(self, values: tuple[Any, ...], via: Any = None) -> Block:
        """The block of arrays that a product is written to."""
        return Block(values, via)

    def store(self, A: Block, values: tuple[Any, ...]) -> None:
        """Write a block's elements to `values`, unless it holds those very arrays."""
        for source, target in zip(A.values, values, strict=True):
            if source is not target:
                target[...] = source

    def add_identity(self, A: Block) -> None:
        """A ← I ⊕ A."""
        i = np.arange(A.shape[0])
        diagonal = self._operations.add(self._operations.one, tuple(v[..., i, i] for v in A.values))
        for v, d in zip(A.values, diagonal, strict=True):
            v[..., i, i] = d


def blocks(A: Block, b: int) -> Iterator[tuple[slice, tuple[slice, ...]]]:
    """For each pivot block of side b: its range K, and the non-empty ranges before and after it."""
    n = A.shape[0]
    for start in range(0, n, b):
        stop = min(n, start + b)
        yield slice(start, stop), tuple(s for s in (slice(0, start), slice(stop, n)) if s.start < s.stop)


def quarter(A: Block, base: int) -> tuple[Block, Block, Block, Block]:
    """A11, A12, A21, A22 of a square block, cut near the middle at a multiple of `base`."""
    n = A.shape[0]
    half = max(1, round(n / 2 / base)) * base
    first, second = slice(0, half), slice(half, n)
    return A[first, first], A[first, second], A[second, first], A[second, second]
