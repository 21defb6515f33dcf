"""The CPU engine: generated kernels, tasks over threads, and what happens when an operand is part of the result."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from semiring.algebra.definition import Semiring
from semiring.algebra.errors import HarmfulPivot
from semiring.kernels.block import Block
from semiring.kernels.cpu.kernels import kernels_for
from semiring.kernels.cpu.plan import plan
from semiring.kernels.cpu.threads import run, thread_count
from semiring.kernels.overlap import overlap, same
from semiring.kernels.reference.operations import Operations

__all__ = ["CpuEngine"]

Array = np.ndarray[Any, Any]


class CpuEngine:
    """`Engine` on NumPy arrays with kernels generated for this processor.

    Parameters
    ----------
    semiring : Semiring
    dtypes : tuple of numpy.dtype
    threads : int, optional
    isa : str, optional
        A narrower instruction set of this processor.
    """

    granule = 1
    pivot = 64

    def __init__(
        self, semiring: Semiring, dtypes: tuple[np.dtype[Any], ...], threads: int | None = None, isa: str | None = None
    ) -> None:
        self.semiring = semiring
        self.dtypes = dtypes
        self.threads = thread_count(threads)
        self.signed = False
        self._kernels = kernels_for(semiring, dtypes, isa)
        self._operations = Operations(semiring, dtypes)
        self._workspaces: list[dict[str, Array]] = [{} for _ in range(self.threads)]
        self._index = self._kernels.arguments.index

    # The operations of `Engine`.

    def load(self, values: tuple[Any, ...], via: Any = None) -> Block:
        """The block of the arrays themselves."""
        return Block(values, via)

    def store(self, A: Block, values: tuple[Any, ...]) -> None:
        """Write a block's elements to `values`, unless it holds those very arrays."""
        for source, target in zip(A.values, values, strict=True):
            if source is not target:
                target[...] = source

    def multiply_add(self, A: Block, B: Block, C: Block) -> None:
        """C ← C ⊕ A⊗B."""
        self._product(A, B, C, fresh=False)

    def multiply(self, A: Block, B: Block, C: Block) -> None:
        """C ← A⊗B."""
        self._product(A, B, C, fresh=True)

    def close(self, A: Block, *, forgive: bool = False) -> None:
        """A ← A ⊕ A² ⊕ …."""
        self._pivot("close" if A.via is None else "close_witness", A, forgive)

    def eliminate(self, A: Block) -> None:
        """A ← A*."""
        self._pivot("eliminate", A, False)

    def add_identity(self, A: Block) -> None:
        """A ← I ⊕ A."""
        i = np.arange(A.shape[0])
        diagonal = self._operations.add(self._operations.one, tuple(v[..., i, i] for v in A.values))
        for v, d in zip(A.values, diagonal, strict=True):
            v[..., i, i] = d

    # Products.

    def _product(self, A: Block, B: Block, C: Block, *, fresh: bool) -> None:
        if C.batch:
            for index in np.ndindex(C.batch):
                self._product(_item(A, index), _item(B, index), _item(C, index), fresh=fresh)
            return
        if 0 in C.shape:
            return
        contiguous = _rows_contiguous(C)
        if contiguous is not C:
            self._product(A, B, contiguous, fresh=fresh)
            _assign(C, contiguous)
            return
        hold_a = any(overlap(a, c) for a in A.values for c in C.values)
        hold_b = any(overlap(b, c) for b in B.values for c in C.values)
        if hold_a and (hold_b or not all(map(same, A.values, C.values))):
            A, hold_a = _copy(A), False
        if hold_b and not all(map(same, B.values, C.values)):
            B, hold_b = _copy(B), False
        if C.via is not None and A.values[0].strides[1] != self.dtypes[0].itemsize:
            A, hold_a = _copy(A), False
        self._run_product(A, B, C, hold_a, hold_b, fresh)

    def _run_product(self, A: Block, B: Block, C: Block, hold_a: bool, hold_b: bool, fresh: bool) -> None:
        (m, n), k = C.shape, A.shape[1]
        kernels, witness = self._kernels, C.via is not None
        tile = kernels.witness_tile if witness else kernels.tile
        layout = plan(m, n, k, tile, kernels.representation, self.threads, hold_a=hold_a, hold_b=hold_b, witness=witness)
        product = kernels.function("product_witness" if witness else "product")
        transpose, resolve = (kernels.function(f) if witness else product for f in ("transpose", "resolve"))
        words = self._words(A, B, C, m, n, k)
        words[self._index["hold_a"]], words[self._index["hold_b"]] = int(hold_a), int(hold_b)
        words[self._index["fresh"]] = int(fresh)
        words[self._index["transposed_rows"]] = layout.transposed_rows

        def work(task: tuple[int, int, int, int], slot: int) -> None:
            top, bottom, left, right = task
            own = words.copy()
            self._move(own, top, left)
            own[self._index["m"]], own[self._index["n"]] = bottom - top, right - left
            workspace = self._workspaces[slot]
            for name, size in layout.workspace.items():
                own[self._index[name]] = _address(workspace, name, size)
            address = own.ctypes.data
            if witness:
                held = self._held_rows(own, A, top, bottom, slot) if hold_a else own
                transpose(address)
                product(address)
                resolve(held.ctypes.data)
            else:
                product(address)

        run(work, layout.tasks, layout.threads)

    def _held_rows(self, words: Array, A: Block, top: int, bottom: int, slot: int) -> Array:
        """Arguments whose A is a copy of the task's rows, which the product is about to overwrite."""
        own = words.copy()
        for c, v in enumerate(A.values):
            rows = v[top:bottom]
            name = f"held{c}"
            _address(self._workspaces[slot], name, rows.nbytes)
            raw = self._workspaces[slot][name]
            start = -raw.ctypes.data % 64
            copy = raw[start : start + rows.nbytes].view(v.dtype).reshape(rows.shape)
            np.copyto(copy, rows)
            own[self._index[("A", c)]] = copy.ctypes.data
            own[self._index[("A.rows", c)]] = rows.shape[1]
        return own

    # Pivot blocks.

    def _pivot(self, name: str, A: Block, forgive: bool) -> None:
        if A.batch:
            for index in np.ndindex(A.batch):
                self._pivot(name, _item(A, index), forgive)
            return
        contiguous = _rows_contiguous(A)
        n = A.shape[0]
        words = self._words(contiguous, contiguous, contiguous, n, n, n)
        words[self._index["forgive"]] = int(forgive)
        words[self._index["first"]] = A.row
        self._kernels.function(name)(words.ctypes.data)
        status = int(words[self._index["status"]])
        if contiguous is not A:
            _assign(A, contiguous)
        if status >= 0 and not forgive:
            raise HarmfulPivot(A.row + status)

    # Arguments.

    def _words(self, A: Block, B: Block, C: Block, m: int, n: int, k: int) -> Array:
        index = self._index
        words = np.zeros(len(index), dtype=np.int64)
        words[index["m"]], words[index["n"]], words[index["k"]], words[index["first"]] = m, n, k, A.column
        words[index["status"]] = -1
        words[index["threshold"]] = self._threshold()
        words[index["one_f4"]], words[index["one_f8"]] = 0x3F800000, 0x3FF0000000000000
        for name, block in (("A", A), ("B", B), ("C", C)):
            for c, v in enumerate(block.values):
                words[index[(name, c)]] = v.ctypes.data
                words[index[(f"{name}.rows", c)]] = v.strides[0] // v.itemsize
                words[index[(f"{name}.columns", c)]] = v.strides[1] // v.itemsize
        if C.via is not None:
            words[index["via"]], words[index["via_rows"]] = C.via.ctypes.data, C.via.strides[0] // 4
        return words

    def _threshold(self) -> int:
        """The least inner integer that is infinite (see `representation`)."""
        representation = self._kernels.representation
        if representation.kind != "infinity":
            return 0
        half = int(representation.inner_zero[0])
        # Finite sums stay below 2/3 of half, and ∞ plus a negative weight above it.
        return half - half // 3 if self.signed else half

    def _move(self, words: Array, top: int, left: int) -> None:
        """Point the arguments at the tile of C that begins at (top, left)."""
        index = self._index
        for c, dtype in enumerate(self.dtypes):
            size = dtype.itemsize
            words[index[("A", c)]] += top * words[index[("A.rows", c)]] * size
            words[index[("B", c)]] += left * words[index[("B.columns", c)]] * size
            words[index[("C", c)]] += (top * words[index[("C.rows", c)]] + left) * size
        words[index["via"]] += (top * words[index["via_rows"]] + left) * 4


def _address(workspace: dict[str, Array], name: str, size: int) -> int:
    """The address of a worker's buffer of at least `size` bytes, on a cache line."""
    buffer = workspace.get(name)
    if buffer is None or buffer.nbytes < size + 64:
        buffer = workspace[name] = np.empty(size + 64, dtype=np.uint8)
    address = buffer.ctypes.data
    return address + -address % 64


def _item(block: Block, index: tuple[int, ...]) -> Block:
    """One matrix of a batch."""
    return Block(tuple(v[index] for v in block.values), None if block.via is None else block.via[index], block.row, block.column)


def _rows_contiguous(block: Block) -> Block:
    """`block`, or a copy of it, with contiguous rows."""
    good = all(v.strides[1] == v.itemsize and v.strides[0] % v.itemsize == 0 or v.shape[1] == 1 and v.strides[0] % v.itemsize == 0 for v in block.values)
    if good and (block.via is None or block.via.strides[1] == 4):
        return block
    via = None if block.via is None else np.ascontiguousarray(block.via)
    return Block(tuple(np.ascontiguousarray(v) for v in block.values), via, block.row, block.column)


def _copy(block: Block) -> Block:
    return Block(tuple(np.array(v, order="C") for v in block.values), None, block.row, block.column)


def _assign(to: Block, source: Block) -> None:
    for x, y in zip(to.values, source.values, strict=True):
        x[...] = y
    if to.via is not None:
        to.via[...] = source.via
