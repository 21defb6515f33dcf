"""The CPU engine: generated kernels, tasks over threads, and what happens when an operand is part of the result."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from semiring.algebra.definition import Semiring
from semiring.algebra.errors import HarmfulPivot
from semiring.kernels.arrays import ArrayEngine
from semiring.kernels.block import Block
from semiring.kernels.cpu.arguments import Matrices, Shared, pack
from semiring.kernels.cpu.kernels import kernels_for
from semiring.kernels.cpu.plan import plan, stripe
from semiring.kernels.cpu.threads import run, thread_count
from semiring.kernels.infinities import signed_threshold
from semiring.kernels.overlap import Layout, layout, matched, share

__all__ = ["CpuEngine"]

Array = np.ndarray[Any, Any]

_SIDE_BY_SIDE = 512
"""Matrices of a batch up to this side run one a thread."""


class CpuEngine(ArrayEngine):
    """`Engine` on NumPy arrays with kernels generated for this processor.

    Parameters
    ----------
    semiring : Semiring
    dtypes : tuple of numpy.dtype
    threads : int, optional
    isa : str, optional
        A narrower instruction set of this processor.
    """

    pivot = 128

    def __init__(self, semiring: Semiring, dtypes: tuple[np.dtype[Any], ...], threads: int | None = None, isa: str | None = None) -> None:
        super().__init__(semiring, dtypes)
        self.threads = thread_count(threads)
        self._kernels = kernels_for(semiring, dtypes, isa)
        self._workspaces: list[dict[str, Array]] = [{} for _ in range(self.threads)]

    # The operations of `Engine`.

    def multiply_add(self, A: Block, B: Block, C: Block) -> None:
        """C ← C ⊕ A⊗B."""
        self._product(A, B, C, fresh=False)

    def multiply(self, A: Block, B: Block, C: Block) -> None:
        """C ← A⊗B."""
        self._product(A, B, C, fresh=True)

    def close(self, A: Block) -> None:
        """A ← A ⊕ A² ⊕ …."""
        self._pivot("close" if A.via is None else "close_witness", A)

    def eliminate(self, A: Block) -> None:
        """A ← A*."""
        self._pivot("eliminate", A)

    # Products.

    def _product(self, A: Block, B: Block, C: Block, *, fresh: bool, threads: int | None = None, slot: int = 0) -> None:
        if C.batch:
            # One matrix of the result is complete before another one begins.
            A, B = (X if all(matched(v, w) for v in X.values for w in C.values) else _contiguous(X) for X in (A, B))
            self._batch(
                C, lambda i, threads, slot: self._product(_item(A, i), _item(B, i), _item(C, i), fresh=fresh, threads=threads, slot=slot)
            )
            return
        if 0 in C.shape:
            return
        c = [layout(v) for v in C.values]
        if not _rows_contiguous(c, C.via):
            contiguous = _contiguous(C)
            self._product(A, B, contiguous, fresh=fresh, threads=threads, slot=slot)
            _assign(C, contiguous)
            return
        a, b = ([layout(v) for v in X.values] for X in (A, B))
        # Kernels count in elements; a field of packed records may lie between them.
        if _fractional(a):
            A = _contiguous(A)
            a = [layout(v) for v in A.values]
        if _fractional(b):
            B = _contiguous(B)
            b = [layout(v) for v in B.values]
        hold_a, hold_b = _held(a, c), _held(b, c)
        # An operand that is C itself is packed before C changes; one that is anything else of C, or a second one, is copied.
        if hold_a and (hold_b or a != c):
            A, hold_a = _contiguous(A), False
            a = [layout(v) for v in A.values]
        if hold_b and b != c:
            B, hold_b = _contiguous(B), False
            b = [layout(v) for v in B.values]
        if C.via is not None and any(x.across != x.size for x in a):
            A = _contiguous(A)
            a, hold_a = [layout(v) for v in A.values], False
        threads = threads or self.threads
        if hold_a and C.via is not None:
            (m, k), n = A.shape, C.shape[1]
            rows = stripe(m, n, k, self._kernels.representation, threads)
            if rows < m:
                for part in (slice(top, top + rows) for top in range(0, m, rows)):
                    copy = Block(tuple(v[part].copy() for v in A.values), None, A.row, A.column)
                    self._product(copy, B, C[part, :], fresh=fresh, threads=threads, slot=slot)
                return
        self._run_product(_Operands(A, a, b, c, C.via), hold_a, hold_b, fresh, threads, slot)

    def _run_product(self, x: _Operands, hold_a: bool, hold_b: bool, fresh: bool, threads: int, slot: int) -> None:
        m, n, k = x.c[0].rows, x.c[0].columns, x.a[0].columns
        kernels, witness = self._kernels, x.via is not None
        tile = kernels.witness_tile if witness else kernels.tile
        planned = plan(m, n, k, tile, kernels.representation, threads, hold_a=hold_a, hold_b=hold_b, witness=witness)
        product = kernels.function("product_witness" if witness else "product")

        def work(task: tuple[int, int, int, int], worker: int) -> None:
            top, bottom, left, right = task
            workspace = self._workspaces[slot + worker]
            packed_a, packed_b = (_address(workspace, name, planned.workspace[name]) for name in ("packed_a", "packed_b"))
            transposed = _address(workspace, "transposed", planned.workspace["transposed"]) if witness else 0
            matrices = x.matrices(top, left)
            if witness and hold_a:
                # The winners are looked up in the rows of A after C has changed: they are copied as they are, not only packed.
                _hold_rows(workspace, [v[top:bottom] for v in x.A.values], matrices)
            via, via_rows = (0, 0) if x.via is None else (x.via.address + top * x.via.down + left * 4, x.via.down // 4)
            shared = Shared(
                m=bottom - top,
                n=right - left,
                k=k,
                first=x.A.column,
                hold_a=hold_a and not witness,
                hold_b=hold_b,
                fresh=fresh,
                threshold=self._threshold,
                packed_a=packed_a,
                packed_b=packed_b,
                via=via,
                via_rows=via_rows,
                transposed=transposed,
                transposed_rows=planned.transposed_rows,
            )
            words = pack(shared, matrices)
            product(words.buffer_info()[0])

        run(work, planned.tasks, planned.threads)

    def _batch(self, C: Block, work: Callable[[tuple[int, ...], int, int], None]) -> None:
        """``work(index, threads, slot)`` for each matrix of a batch: many small ones side by side, large ones one by one."""
        items = list(np.ndindex(C.batch))
        if len(items) >= self.threads > 1 and max(C.shape) <= _SIDE_BY_SIDE:
            run(lambda index, slot: work(index, 1, slot), items, self.threads)
        else:
            for index in items:
                work(index, self.threads, 0)

    # Pivot blocks.

    def _pivot(self, name: str, A: Block) -> None:
        if A.batch:
            for index in np.ndindex(A.batch):
                self._pivot(name, _item(A, index))
            return
        if 0 in A.shape:
            return
        c = [layout(v) for v in A.values]
        if not _rows_contiguous(c, A.via):
            contiguous = _contiguous(A)
            try:
                self._pivot(name, contiguous)
            finally:
                _assign(A, contiguous)
            return
        n = A.shape[0]
        x = _Operands(A, c, c, c, A.via)
        via, via_rows = (0, 0) if x.via is None else (x.via.address, x.via.down // 4)
        words = pack(Shared(m=n, n=n, k=n, first=A.row, threshold=self._threshold, via=via, via_rows=via_rows), x.matrices(0, 0))
        self._kernels.function(name)(words.buffer_info()[0])
        status = words[self._kernels.arguments.index["status"]]
        if status >= 0:
            raise HarmfulPivot(A.row + status)

    @property
    def _threshold(self) -> int:
        """The least inner integer that is infinite (see `representation`)."""
        representation = self._kernels.representation
        if representation.kind != "infinity":
            return 0
        half = int(representation.inner_zero[0])
        return signed_threshold(half) if self.signed else half


class _Operands:
    """The operands of a product as the kernels address them."""

    def __init__(self, A: Block, a: list[Layout], b: list[Layout], c: list[Layout], via: Array | None) -> None:
        self.A, self.a, self.b, self.c = A, a, b, c
        self.via = None if via is None else layout(via)

    def matrices(self, top: int, left: int) -> list[Matrices]:
        """The words of the matrices for the tile of C that begins at (top, left)."""
        return [
            Matrices(
                *(a.address + top * a.down, a.down // a.size, a.across // a.size),
                *(b.address + left * b.across, b.down // b.size, b.across // b.size),
                *(c.address + top * c.down + left * c.size, c.down // c.size, 1),
            )
            for a, b, c in zip(self.a, self.b, self.c, strict=True)
        ]


def _held(x: list[Layout], c: list[Layout]) -> bool:
    """Whether an operand shares memory with C."""
    return any(share(s, t) for s in x for t in c)


def _hold_rows(workspace: dict[str, Array], rows: list[Array], matrices: list[Matrices]) -> None:
    """Copy A's rows to the workspace and let the words of the matrices point there."""
    for c, v in enumerate(rows):
        start = _address(workspace, f"held{c}", v.nbytes)
        buffer = workspace[f"held{c}"]
        offset = start - buffer.ctypes.data
        np.copyto(buffer[offset : offset + v.nbytes].view(v.dtype).reshape(v.shape), v)
        matrices[c] = matrices[c]._replace(A=start, A_rows=v.shape[1])


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


def _fractional(x: list[Layout]) -> bool:
    """Whether elements do not lie at multiples of their size."""
    return any(v.address % v.size or v.down % v.size or v.across % v.size for v in x)


def _rows_contiguous(c: list[Layout], via: Array | None) -> bool:
    """Whether kernels can write to a block: contiguous rows, elements at multiples of their size."""
    return all((x.across == x.size or x.columns == 1) and x.down % x.size == x.address % x.size == 0 for x in c) and (
        via is None or via.strides[1] == 4 or via.shape[1] == 1
    )


def _contiguous(block: Block) -> Block:
    """A copy of `block`."""
    via = None if block.via is None else np.array(block.via, order="C")
    return Block(tuple(np.array(v, order="C") for v in block.values), via, block.row, block.column)


def _assign(to: Block, source: Block) -> None:
    for x, y in zip(to.values, source.values, strict=True):
        x[...] = y
    if to.via is not None:
        to.via[...] = source.via
