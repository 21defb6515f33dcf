"""A matrix times a vector, or a vector times a matrix: one pass over the matrix in place, with the check of its range (see `bounds`).

Reading the matrix takes most of the time, so the matrix is neither packed nor read twice.

- *streamed*: elements of the result are contiguous in the matrix. A few rows at a time are added to one sum per column, in the L1 cache.
  Terms of a sum come in order, and meet C every `depth` steps, as in a product of matrices.
- *dot*: terms of a sum are contiguous. Each lane adds its own terms, for a few rows at a time, and the lanes are added at the end. This
  order of terms differs from a product of matrices, which only matters to float sums.

With a witness, each sum carries the number of the winning term, at no measurable cost.
"""

from __future__ import annotations

from collections.abc import Sequence

from semiring.kernels.cpu.arguments import KernelArguments
from semiring.kernels.cpu.bounds import BoundsCheck
from semiring.kernels.cpu.emitter import ENTRY, I32, Emitter, Scalar
from semiring.kernels.cpu.lowering import Lowering, Value, empty_sums, encoded, load_elements, merge, spread, store_elements, take_in
from semiring.kernels.cpu.representation import STRIP, Representation, Tile
from semiring.kernels.hardware import Target

__all__ = ["VectorKernel"]

_ROWS = 8
"""Rows streamed at once, or dot products computed at once; fewer where a series makes each of them long."""

_AHEAD = 1024
"""Prefetch distance in bytes along a row, longer than hardware prefetchers reach in so many rows."""


class VectorKernel:
    """Generates ``matrix_vector_streamed``, ``matrix_vector_dot``, and the same for ``vector_matrix``, each also with ``_witness``."""

    def __init__(self, rep: Representation, target: Target, tile: Tile, name: str) -> None:
        self.rep, self.target, self.depth, self.name = rep, target, tile.depth, name
        self.streamed, self.left, self.witness = "streamed" in name, name.startswith("matrix"), name.endswith("witness")
        self.lanes, self.rows = tile.width, min(_ROWS, tile.rows * tile.vectors)
        self.components = range(len(rep.outer))
        self.args = KernelArguments(len(rep.outer))

    def functions(self) -> list[Emitter]:
        """Return the function."""
        self._em = em = Emitter(self.name, ENTRY)
        args, rep, lanes = self.args, self.rep, self.lanes
        matrix, vector = "AB" if self.left else "BA"
        # Strides along the result, and along the terms of a sum.
        along, term = ("rows", "columns") if self.left else ("columns", "rows")
        self._count, self._k = args.load(em, "m" if self.left else "n"), args.load(em, "k")
        self._result = [args.pointer(em, ("C", c)) for c in self.components]
        self._along, self._term = (args.matrices(em, matrix, rep.outer, axis) for axis in (along, term))
        sums = em.side_by_side(args.pointer(em, "packed_a"), [*rep.inner, I32], STRIP + lanes)
        # Accumulators in the L1 cache: the sums, and the witnesses.
        self._kept = list(zip([*rep.inner, *[I32] * self.witness], sums, strict=False))
        self._via, self._first = (args.pointer(em, "via"), args.load(em, "first")) if self.witness else ("", "")
        self._vector = em.side_by_side(args.pointer(em, "packed_b"), rep.inner, self._k)
        ones = args.ones(em, set(rep.inner), lanes) if self.target.fma_add else None
        halves = [lanes >> i for i in range(lanes.bit_length())]
        self._inner = {w: Lowering(em, self.target, w, ones=None if w < lanes else ones, infinities=rep.inner_infinities) for w in halves}
        self._outer = {w: Lowering(em, self.target, w, infinities=rep.infinities) for w in (lanes, 1)}
        self._threshold = {w: args.threshold(em, rep, w) for w in (lanes, 1)}
        self._check = BoundsCheck(em, args, rep.outer, (lanes, 1))
        operand = args.matrices(em, vector, rep.outer, along)
        with em.each(0, self._k) as p:
            element = [em.load(x[0].ir, em.cell(x, p, 0), x[0].bytes) for x in operand]
            self._check.take(element, 1)
            store_elements(self._outer[1], rep.inner, self._vector, p, encoded(self._outer[1], rep, element))
        with em.when(em.let(f"icmp ne i64 {args.load(em, 'fresh')}, 0")):
            for s, zero, start in zip(rep.outer, rep.zero, self._result, strict=True):
                em.fill(s, zero, start, 0, self._count)
        if self.streamed:
            with em.each(0, self._count, STRIP) as start:
                self._strip(start)
        else:
            for i, rows in em.by_vectors(self._count, self.rows):
                self._dot(i, rows)
        self._check.tell()
        return [em.done()]

    # Terms.

    def _elements(self, row: Sequence[str], place: str | int, width: int) -> list[Value]:
        """Load elements of a row of the matrix, check them, and encode them."""
        em, found = self._em, []
        for at, s in zip(em.places(self.rep.outer, row, place), self.rep.outer, strict=True):
            if width > 1:
                em.prefetch(em.at("i8", at, _AHEAD), write=False)
            found.append(em.load(s.vector(width), at, s.bytes))
        self._check.take(found, width)
        return encoded(self._inner[width], self.rep, found)

    def _take(self, width: int, sums: Sequence[str], elements: list[Value], factor: list[Value], code: str) -> list[str]:
        """Emit sums ⊕ elements ⊗ factor, or factor ⊗ elements. With a witness, `code` is this term's, and the last sum is the winner's."""
        return take_in(self._inner[width], self.rep, sums, *((elements, factor) if self.left else (factor, elements)), code)

    def _both(self, width: int, left: Sequence[str], right: Sequence[str]) -> list[str]:
        """left ⊕ right, with the winner's witness, or the lower witness for a tie."""
        low, add, inner = self._inner[width], self.rep.add, self.rep.inner
        if not self.witness:
            return low.combine(add, inner, left, right)
        (*x, code), (*y, other) = left, right
        total = low.combine(add, inner, x, y)

        def equal(these: Sequence[str], those: Sequence[str]) -> str:
            return low.all_of([low.compare("eq", s, v, w) for s, v, w in zip(inner, these, those, strict=True)])

        lower = low.select(low.compare("lt", Scalar("u", 4), code, other), I32, code, other)  # −1 (no witness) is the highest
        return [*total, low.select(equal(x, y), I32, lower, low.select(equal(total, x), I32, code, other))]

    def _update(self, width: int, sums: Sequence[str], i: str | int) -> None:
        """c_i ← c_i ⊕ sums, from i on."""
        places = self._em.places(self.rep.outer, self._result, i)
        via = (self._em.at("i32", self._via, i), [sums[-1]]) if self.witness else None
        merge(self._outer[width], self.rep, sums, self._threshold[width], places, via)

    # Streamed rows.

    def _strip(self, start: str) -> None:
        """Compute the columns from `start` on, at most `STRIP`; only the last vector may be partial."""
        em, lanes = self._em, self.lanes
        columns = em.smin(em.sub(self._count, start), STRIP)
        whole = str(em.round_down(columns, lanes))
        partial = em.let(f"icmp ne i64 {whole}, {columns}")
        with em.each(0, self._k, self.depth) as p:
            steps = em.smin(em.sub(self._k, p), self.depth)
            for (s, sums), zero in zip(self._kept, self.rep.inner_zero, strict=False):
                em.fill(s, zero, sums, 0, em.add(whole, lanes), lanes)
            for q, rows in em.by_vectors(steps, self.rows):
                self._stream(em.add(p, q), rows, start, whole, partial)
            with em.each(0, whole, lanes) as j:
                self._merge(lanes, j, em.add(start, j))
            shift = em.sub(em.add(start, lanes), self._count)  # column start + j is lane j + shift of the last vector
            with em.each(whole, columns) as j:
                self._merge(1, em.add(whole, em.add(j, shift)), em.add(start, j))

    def _stream(self, p: str | int, rows: int, start: str, whole: str, partial: str) -> None:
        """Add the terms from p on: some rows of the matrix."""
        em, lanes, rep = self._em, self.lanes, self.rep
        terms = [load_elements(self._inner[1], rep.inner, self._vector, em.add(p, r)) for r in range(rows)]
        factors = [spread(self._inner[lanes], rep.inner, term) for term in terms]
        codes = [em.splat_word(str(em.add(self._first, em.add(p, r))), I32, lanes) if self.witness else "" for r in range(rows)]
        kept = self._kept
        begins = [[em.cell(x, em.add(p, r), 0) for x in self._term] for r in range(rows)]

        def at(place: str | int, column: str | int) -> None:
            places = [em.at(s.ir, x, place) for s, x in kept]
            sums = [em.load(s.vector(lanes), x, s.bytes) for (s, _), x in zip(kept, places, strict=True)]
            for begin, factor, code in zip(begins, factors, codes, strict=True):
                sums = self._take(lanes, sums, self._elements(begin, column, lanes), factor, code)
            for value, (s, _), x in zip(sums, kept, places, strict=True):
                em.store(s.vector(lanes), value, x, s.bytes)

        with em.each(0, whole, lanes) as j:
            at(j, em.add(start, j))
        with em.when(partial):
            at(whole, em.sub(self._count, lanes))

    def _merge(self, width: int, place: str | int, column: str | int) -> None:
        """C ← C ⊕ sums."""
        em = self._em
        self._update(width, [em.get(s, x, place, width) for s, x in self._kept], column)

    # Dot products.

    def _dot(self, i: str, rows: int) -> None:
        """Compute `rows` elements of the result from i on."""
        em, lanes, rep = self._em, self.lanes, self.rep
        parts = len(rep.inner) + self.witness
        starts = [[em.cell(x, em.add(i, r), 0) for x in self._along] for r in range(rows)]

        def terms(width: int, p: str, sums: list[str]) -> list[str]:
            factor = load_elements(self._inner[width], rep.inner, self._vector, p)
            found, code = list[str](), ""
            if self.witness:
                ramp = ", ".join(f"i32 {lane}" for lane in range(width))
                number = em.splat_word(str(em.add(self._first, p)), I32, width)
                code = em.let(f"add {I32.vector(width)} {number}, <{ramp}>") if width > 1 else number
            for r, start in enumerate(starts):
                found += self._take(width, sums[r * parts : (r + 1) * parts], self._elements(start, p, width), factor, code)
            return found

        def zeros(width: int) -> list[tuple[str, str]]:
            return empty_sums(rep.inner, rep.inner_zero, width, witness=self.witness) * rows

        whole = em.round_down(self._k, lanes)
        sums = em.loop(0, whole, lanes, lambda p, sums: terms(lanes, p, sums), zeros(lanes))
        rest = em.loop(whole, self._k, 1, lambda p, sums: terms(1, p, sums), zeros(1))
        for r in range(rows):
            total, width = sums[r * parts : (r + 1) * parts], lanes
            while width > 1:
                halves = [self._em.half(v, s, width, upper) for upper in (0, 1) for v, s in zip(total, (*rep.inner, I32), strict=False)]
                width //= 2
                total = self._both(width, halves[:parts], halves[parts:])
            self._update(1, self._both(1, total, rest[r * parts : (r + 1) * parts]), em.add(i, r))
