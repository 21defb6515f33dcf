"""Stacks of matrices: a loop over their leading axes, and small matrices one to a lane.

Large matrices fill vectors by themselves, and `stack_loop` calls the kernel of single matrices. `LaneKernel` takes groups of as many small
matrices as a vector has lanes. Both start from the arguments of the first matrix.

A group is packed as [element][lane] by transposed squares of vectors, for any strides, and operands become inner elements. Every step of
a product or a pivot block then works on whole vectors, for matrices of any size, without edges. Results are unpacked at the end. The last
group repeats its last matrix. Operands are packed before results are written, so each operand may be the result itself. A divergent pivot
leaves its whole group unchanged.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from semiring.algebra.expression import nodes
from semiring.kernels.cpu.arguments import STATUS, Array, KernelArguments
from semiring.kernels.cpu.bounds import BoundsCheck
from semiring.kernels.cpu.emitter import ENTRY, I32, I64, Emitter, Scalar
from semiring.kernels.cpu.lowering import Lowering, empty_sums, encoded, load_elements, merge, store_elements, take_in
from semiring.kernels.cpu.pivot import PivotKernel
from semiring.kernels.cpu.representation import Representation, Tile
from semiring.kernels.hardware import Target

__all__ = ["LaneKernel", "stack_loop"]

_SQUARES = (16, 4, 1)
"""Sides of the transposed squares."""

_SHAPES = ((4, 4), (2, 4), (2, 2), (1, 2), (1, 1))
"""Rows and columns of a register tile of a product."""


class StackArguments(KernelArguments):
    """Arguments of a stack, followed by the length of each leading axis and the element stride of each array along it."""

    def __init__(self, components: int) -> None:
        super().__init__(components)
        self.arrays: list[Array] = [*((name, c) for c in range(components) for name in "ABC"), "via"]

    def offsets(self, em: Emitter, number: str) -> list[str]:
        """Return the offset of a matrix in each array, in elements."""
        axes, size = self.load(em, "axes"), 1 + len(self.arrays)

        def moved(axis: str | int, step: str, offsets: list[str]) -> list[str]:
            words = em.at("i64", "%args", em.add(em.mul(axis, size), len(self.index) + 1))
            return [str(em.add(x, em.mul(step, em.get(I64, words, i)))) for i, x in enumerate(offsets)]

        def inner(turn: str, carried: list[str]) -> list[str]:
            rest, *offsets = carried
            axis = em.sub(axes, turn)
            length = em.get(I64, "%args", em.add(em.mul(axis, size), len(self.index)))
            whole = em.let(f"sdiv i64 {rest}, {length}")
            return [whole, *moved(axis, str(em.sub(rest, em.mul(whole, length))), offsets)]

        rest, *offsets = em.loop(1, axes, 1, inner, [("i64", number), *(("i64", "0") for _ in self.arrays)])
        return moved(0, rest, offsets)


def stack_loop(rep: Representation, name: str) -> Emitter:
    """``product_stack(args)``, which calls ``product`` for each matrix, or the like for pivot blocks, up to the first divergent pivot."""
    em, args = Emitter(f"{name}_stack", ENTRY), StackArguments(len(rep.outer))
    count = len(args.index)
    own = em.let(f"alloca [{count} x i64], align 64")
    with em.each(0, count) as i:
        em.put(I64, em.get(I64, "%args", i), own, i)
    with em.each(args.load(em, "start"), args.load(em, "stop")) as number:
        for x, offset in zip(args.arrays, args.offsets(em, number), strict=True):
            ir = "i32" if x == "via" else rep.outer[int(x[1])].ir
            em.store("ptr", em.at(ir, args.pointer(em, x), offset), em.at("i64", own, args.index[x]), 8)
        em.line(f"call void @{name}(ptr {own}, ptr %stop)")
        status = em.get(I64, own, STATUS)
        em.put(I64, status, "%args", STATUS)
        with em.when(em.let(f"icmp sge i64 {status}, 0")):
            em.jump("")
    return em.done()


class LaneKernel:
    """Generates ``product_lanes``, ``product_witness_lanes``, ``close_lanes``, ``close_witness_lanes`` and ``eliminate_lanes``."""

    def __init__(self, rep: Representation, target: Target, tile: Tile, name: str) -> None:
        self.rep, self.target, self.lanes, self.name = rep, target, tile.width, name
        self.product, self.witness = name.startswith("product"), name.endswith("witness")
        self.components = range(len(rep.outer))
        self.args = StackArguments(len(rep.outer))
        codes = -(-4 * self.lanes // target.vector_bytes) if self.witness else 0
        constants = sum(e.op == "const" for e in nodes(*rep.add, *rep.mul))
        each, spare, most = len(rep.outer) + codes, 2 + constants + codes, tile.rows * tile.vectors
        fitting = [(m, n) for m, n in _SHAPES if m * n <= most and each * m * n + len(rep.outer) * (m + n) + spare <= target.registers]
        self.rows, self.columns = max(fitting, default=_SHAPES[-1], key=math.prod)

    def functions(self) -> list[Emitter]:
        """Return all functions of the kernel."""
        group = [self._product()] if self.product else PivotKernel(self.rep, self.target, self.lanes, self.lanes).functions(self.name)
        scalars: list[Scalar] = sorted({*self.rep.outer, *([I32] if self.witness else [])})
        return [*(self._moved(s, back=back) for s in scalars for back in (False, True)), *group, self._stack()]

    # Packing.

    def _moved(self, scalar: Scalar, *, back: bool) -> Emitter:
        """``interleave(table, packed, rows, columns, down, across)`` of matrices at a table of addresses; ``separate`` is the inverse."""
        name = f"{'separate' if back else 'interleave'}_{scalar.kind}{scalar.bytes}"
        em = Emitter(name, "ptr %table, ptr %packed, i64 %rows, i64 %columns, i64 %down, i64 %across", attributes="#1")
        # Loop along the contiguous axis; a contiguous matrix is a single row.
        sideways = em.let(f"and i1 {em.let('icmp ne i64 %across, 1')}, {em.let('icmp eq i64 %down, 1')}")
        follows = em.let(f"and i1 {em.let('icmp eq i64 %across, 1')}, {em.let('icmp eq i64 %down, %columns')}")
        rows = em.select_i64(follows, 1, em.select_i64(sideways, "%columns", "%rows"))
        columns = em.select_i64(follows, em.mul("%rows", "%columns"), em.select_i64(sideways, "%rows", "%columns"))
        down, across = em.select_i64(sideways, "%across", "%down"), em.select_i64(sideways, "%down", "%across")
        place_down, place_across = em.select_i64(sideways, 1, "%columns"), em.select_i64(sideways, "%columns", 1)
        contiguous = em.let(f"icmp eq i64 {across}, 1")
        with em.each(0, rows) as i:
            start, place, begin = em.mul(i, down), em.mul(i, place_down), "0"
            for side in _SQUARES:
                if side > self.lanes:
                    continue
                end = columns if side == 1 else em.select_i64(contiguous, em.round_down(columns, side), begin)
                with em.each(begin, end, side) as j:
                    offset, first = em.add(start, em.mul(j, across)), em.add(place, em.mul(j, place_across))
                    with em.each(0, self.lanes, side) as lane:  # move `side` elements of `side` matrices
                        tables = [em.load("ptr", em.at("ptr", "%table", em.add(lane, r)), 8) for r in range(side)]
                        matrices = [em.at(scalar.ir, table, offset) for table in tables]
                        elements = [em.mul(em.add(first, em.mul(place_across, q)), self.lanes) for q in range(side)]
                        packed = [em.at(scalar.ir, "%packed", em.add(element, lane)) for element in elements]
                        source, target = (packed, matrices) if back else (matrices, packed)
                        loaded = [em.load(scalar.vector(side), p, scalar.bytes) for p in source]
                        for value, p in zip(em.transposed(loaded, scalar), target, strict=True):
                            em.store(scalar.vector(side), value, p, scalar.bytes)
                begin = str(end)
        return em.done()

    # The loop over groups.

    def _stack(self) -> Emitter:
        """``product_lanes(args)``, or the loop over groups of pivot blocks."""
        self._em = em = Emitter(f"{self.name}_lanes", ENTRY)
        rep, args = self.rep, self.args
        start, stop, m, n, k, fresh = (args.load(em, x) for x in ("start", "stop", "m", "n", "k", "fresh"))
        self._sides = {"A": (m, k), "B": (k, n), "C": (m, n), "via": (m, n)}
        self._scalars = {x: I32 if isinstance(x, str) else rep.outer[x[1]] for x in args.arrays}
        self._tables = {x: em.let(f"alloca [{self.lanes} x ptr], align 8") for x in args.arrays}
        self._packed: dict[Array, str] = {}
        for x, scalars in (("A", rep.inner), ("B", rep.inner), ("C", (*rep.outer, I32))):
            places = em.side_by_side(args.pointer(em, f"packed_{x.lower()}"), scalars, em.mul(em.mul(*self._sides[x]), self.lanes))
            self._packed.update(zip([*((x, c) for c in self.components), "via"], places, strict=False))
        self._check = BoundsCheck(em, args, rep.outer, (self.lanes,))
        shared = {x: em.let(f"icmp ne i64 {args.load(em, f'shared_{x.lower()}')}, 0") for x in "AB"}
        last = em.sub(stop, 1)
        elements: list[Array] = [("C", c) for c in self.components]
        results: list[Array] = [*elements, *(["via"] if self.witness else [])]
        with em.each(start, stop, self.lanes) as g:
            with em.each(0, self.lanes) as lane:
                self._find(lane, em.smin(em.add(g, lane), last))
            first = em.let(f"icmp eq i64 {g}, {start}")
            for x in "AB" if self.product else "":
                # Operands shared by all matrices are packed once.
                with em.when(em.let(f"or i1 {first}, {em.let(f'xor i1 {shared[x]}, true')}")):
                    self._take_operand(x)
            with em.when(em.let(f"icmp ne i64 {fresh}, 0")):  # C ← 0
                for c, (s, zero) in enumerate(zip(rep.outer, rep.zero, strict=True)):
                    em.fill(s, zero, self._packed["C", c], 0, em.mul(em.mul(m, n), self.lanes), self.lanes)
            with em.otherwise():
                self._move_all("interleave", elements)
            self._move_all("interleave", results[len(elements) :])
            em.line(f"call void @{self.name}_group({ENTRY})")
            if not self.product:
                with em.when(em.let(f"icmp sge i64 {em.get(I64, '%args', STATUS)}, 0")):
                    em.jump("")
            self._move_all("separate", results)
        self._check.tell()
        return em.done()

    def _find(self, lane: str, number: str) -> None:
        """Store the addresses of one lane's matrices."""
        em = self._em
        for x, offset in zip(self.args.arrays, self.args.offsets(em, number), strict=True):
            if self.product or x == "via" or x[0] == "C":
                place = em.at(self._scalars[x].ir, self.args.pointer(em, x), offset)
                em.store("ptr", place, em.at("ptr", self._tables[x], lane), 8)

    def _move_all(self, direction: str, arrays: Sequence[Array]) -> None:
        em, args = self._em, self.args
        for x in arrays:
            (rows, columns), s = self._sides[x if isinstance(x, str) else x[0]], self._scalars[x]
            if isinstance(x, str):
                down, across = args.load(em, "via_rows"), "1"
            else:
                down, across = (args.load(em, (f"{x[0]}_{axis}", x[1])) for axis in ("rows", "columns"))
            em.line(
                f"call void @{direction}_{s.kind}{s.bytes}(ptr {self._tables[x]}, ptr {self._packed[x]}, "
                f"i64 {rows}, i64 {columns}, i64 {down}, i64 {across})"
            )

    def _take_operand(self, x: str) -> None:
        """Pack an operand, check its elements, and encode them in place."""
        em, rep, lanes = self._em, self.rep, self.lanes
        self._move_all("interleave", [(x, c) for c in self.components])
        low, packed = Lowering(em, self.target, lanes), [self._packed[x, c] for c in self.components]
        with em.each(0, em.mul(*self._sides[x])) as i:
            element = [v.name for v in load_elements(low, rep.outer, packed, em.mul(i, lanes))]
            self._check.take(element, lanes)
            if rep.kind != "plain":
                store_elements(low, rep.inner, packed, em.mul(i, lanes), encoded(low, rep, element))

    # The products of a group.

    def _product(self) -> Emitter:
        """``product_group(args)``: C ← C ⊕ A⊗B, packed."""
        em = Emitter(f"{self.name}_group", ENTRY, attributes="#1")
        rep, lanes, inner = self.rep, self.lanes, self.rep.inner
        m, n, k = (self.args.load(em, x) for x in ("m", "n", "k"))
        ones = self.args.ones(em, set(inner), lanes) if self.target.fma_add else None
        low = Lowering(em, self.target, lanes, ones=ones, infinities=rep.inner_infinities)
        merged = Lowering(em, self.target, lanes, infinities=rep.infinities)
        threshold = self.args.threshold(em, rep, lanes)
        first = self.args.load(em, "first") if self.witness else ""
        a, b = (
            em.side_by_side(self.args.pointer(em, x), inner, em.mul(em.mul(k, side), lanes))
            for x, side in (("packed_a", m), ("packed_b", n))
        )
        *c, via = em.side_by_side(self.args.pointer(em, "packed_c"), [*rep.outer, I32], em.mul(em.mul(m, n), lanes))
        zeros = empty_sums(inner, rep.inner_zero, lanes, witness=self.witness)

        def tile(i: str, j: str, rows: int, columns: int) -> None:
            """c_ij ← c_ij ⊕ Σ a_ip b_pj for a register tile."""
            width = len(zeros)
            starts = [em.mul(em.add(i, r), k) for r in range(rows)]

            def step(p: str, sums: list[str]) -> list[str]:
                left = [load_elements(low, inner, a, em.mul(em.add(x, p), lanes)) for x in starts]
                begin = em.add(em.mul(p, n), j)
                right = [load_elements(low, inner, b, em.mul(em.add(begin, q), lanes)) for q in range(columns)]
                code = em.splat_word(str(em.add(first, p)), I32, lanes) if self.witness else ""
                pairs = [(x, y) for x in left for y in right]
                return [v for at, (x, y) in enumerate(pairs) for v in take_in(low, rep, sums[at * width : (at + 1) * width], x, y, code)]

            sums = em.loop(0, k, 1, step, zeros * (rows * columns))
            for at in range(rows * columns):
                found = sums[at * width : (at + 1) * width]
                r, q = divmod(at, columns)
                place = em.mul(em.add(em.mul(em.add(i, r), n), em.add(j, q)), lanes)
                merge(
                    merged,
                    rep,
                    found,
                    threshold,
                    em.places(rep.outer, c, place),
                    (em.at("i32", via, place), [found[-1]]) if self.witness else None,
                )

        for i, rows in em.by_vectors(m, self.rows):
            for j, columns in em.by_vectors(n, self.columns):
                tile(i, j, rows, columns)
        return em.done()
