"""The product C ← C ⊕ A⊗B of one tile of C: packing, the macro-kernel, and the lookup of witnesses.

The loops follow Goto and BLIS. Packing copies blocks of A to panels of `rows` rows, [k][rows], and B to panels of `columns` columns,
[k][columns], as inner elements. The micro-kernel reads both contiguously, and keeps rows × vectors of C in registers over `depth` steps
of k. A panel beyond the edge repeats its last row or column, and the results there are never stored. An operand that is part of C is
packed whole before C changes ("held").
"""

from __future__ import annotations

from collections.abc import Callable

from semiring.kernels.cpu.arguments import KernelArguments
from semiring.kernels.cpu.emitter import ENTRY, I32, Emitter
from semiring.kernels.cpu.exponential import ExponentialKernel
from semiring.kernels.cpu.launch import transposed_shape
from semiring.kernels.cpu.lowering import Lowering, Value, encoded, load_elements
from semiring.kernels.cpu.micro import MicroKernel
from semiring.kernels.cpu.representation import Representation, Tile
from semiring.kernels.hardware import Target

__all__ = ["ProductKernel"]

Index = str | int


class ProductKernel:
    """Generates ``product(args)``, or ``product_witness(args)``, which calls the functions of `WitnessKernel`."""

    def __init__(self, rep: Representation, target: Target, tile: Tile, *, witness: bool) -> None:
        self.rep, self.target, self.tile, self.witness = rep, target, tile, witness
        self.components = range(len(rep.outer))
        self.args = KernelArguments(len(rep.outer))
        self.name = "product_witness" if witness else "product"
        self._exponentials = ExponentialKernel(rep, target, tile, self.name) if rep.kind == "exponential" else None

    def functions(self) -> list[Emitter]:
        """Return all functions of the kernel."""
        micro = MicroKernel(self.rep, self.target, self.tile, self.name, witness=self.witness)
        return [
            self._packing("pack_a", "i64 %row, i64 %step, i64 %m, i64 %k", self._pack_a),
            self._packing("pack_b", "i64 %step, i64 %k", self._pack_b),
            *micro.functions(),
            self._macro(),
            *(self._exponentials.functions() if self._exponentials else ()),
            *(WitnessKernel(self.rep, self.target, self.tile).functions() if self.witness else ()),
        ]

    # Packing.

    def _packing(self, name: str, parameters: str, pack: Callable[[Emitter, int], None]) -> Emitter:
        """Return the function that packs one component after the other."""
        outs = "".join(f", ptr %out{c}" for c in self.components)
        em = Emitter(f"{self.name}_{name}", f"ptr %args, {parameters}{outs}", attributes="#1")
        for c in self.components:
            pack(em, c)
        return em.done()

    def _steps(self, em: Emitter, k: str) -> tuple[Index, Index]:
        """Return the length of a packed panel of k steps, in steps, and the step from which it holds raw elements."""
        if self.rep.kind != "exponential":
            return k, 0
        whole = em.round_up(k, self.tile.turn)
        return em.add(em.mul(whole, 2), 1), em.add(whole, 1)

    def _scale(self, em: Emitter, name: str, panel: str, to: str, lanes: int) -> None:
        """For exponentials: fill up the last vector of a panel with zeros, and encode the panel."""
        if self.rep.kind == "exponential":
            (scalar,), whole = self.rep.outer, em.round_up("%k", self.tile.turn)
            em.fill(scalar, self.rep.zero[0], to, em.mul("%k", lanes), em.mul(whole, lanes))
            em.line(f"call void @{self.name}_{name}(ptr {to}, ptr {panel}, i64 {whole})")

    def _pack_a(self, em: Emitter, c: int) -> None:
        """``pack_a(args, row, step, m, k, out…)``: rows [row, row + m) and steps [step, step + k) of A."""
        rows, inner, outer = self.tile.rows, self.rep.inner[c], self.rep.outer[c]
        steps, raw = self._steps(em, "%k")
        low = Lowering(em, self.target, 1)
        down, across = self.args.load(em, ("A_rows", c)), self.args.load(em, ("A_columns", c))
        corner = em.add(em.mul("%row", down), em.mul("%step", across))
        source = em.at(outer.ir, self.args.pointer(em, ("A", c)), corner)
        with em.each(0, "%m", rows) as i:
            begin = em.at(inner.ir, f"%out{c}", em.mul(i, steps))
            to = em.at(inner.ir, begin, em.mul(raw, rows))
            last = em.sub(em.sub("%m", i), 1)
            starts = [em.at(outer.ir, source, em.mul(em.add(i, em.smin(r, last)), down)) for r in range(rows)]
            with em.each(0, "%k") as k:
                offset, place = em.mul(k, across), em.at(inner.ir, to, em.mul(k, rows))
                for r in range(rows):
                    em.put(inner, self.rep.encode(low, c, em.get(outer, starts[r], offset)), place, r)
            self._scale(em, "scale_a", begin, to, rows)

    def _pack_b(self, em: Emitter, c: int) -> None:
        """``pack_b(args, step, k, out…)``: steps [step, step + k) of all columns of B."""
        columns, inner, outer = self.tile.columns, self.rep.inner[c], self.rep.outer[c]
        steps, raw = self._steps(em, "%k")
        n, down, across = (self.args.load(em, x) for x in ("n", ("B_rows", c), ("B_columns", c)))
        source = em.at(outer.ir, self.args.pointer(em, ("B", c)), em.mul("%step", down))
        contiguous = em.let(f"icmp eq i64 {across}, 1")
        width, (wide, single) = self.tile.width, (Lowering(em, self.target, w) for w in (self.tile.width, 1))
        with em.each(0, n, columns) as j:
            begin = em.at(inner.ir, f"%out{c}", em.mul(j, steps))
            to = em.at(inner.ir, begin, em.mul(raw, columns))
            left = em.sub(n, j)
            start = em.at(outer.ir, source, em.mul(j, across))
            full = em.let(f"icmp sge i64 {left}, {columns}")
            with em.when(em.let(f"and i1 {full}, {contiguous}")), em.each(0, "%k") as k:
                row, place = em.at(outer.ir, start, em.mul(k, down)), em.at(inner.ir, to, em.mul(k, columns))
                for q in range(0, columns, width):
                    em.put(inner, self.rep.encode(wide, c, em.get(outer, row, q, width)), place, q, width)
            with em.otherwise():
                last = em.sub(left, 1)
                with em.each(0, "%k") as k:
                    row, place = em.at(outer.ir, start, em.mul(k, down)), em.at(inner.ir, to, em.mul(k, columns))
                    with em.each(0, columns) as column:
                        offset = em.mul(em.smin(column, last), across)
                        em.put(inner, self.rep.encode(single, c, em.get(outer, row, offset)), place, column)
            self._scale(em, "scale_b", begin, to, columns)

    # The loops around the micro-kernel.

    def _macro(self) -> Emitter:
        """``product(args)``."""
        rows, columns, depth, block = self.tile.rows, self.tile.columns, self.tile.depth, self.tile.block
        em = Emitter(self.name, ENTRY)
        m, n, k = (self.args.load(em, x) for x in ("m", "n", "k"))
        hold_a, hold_b, fresh = (em.let(f"icmp ne i64 {self.args.load(em, x)}, 0") for x in ("hold_a", "hold_b", "fresh"))
        if self.witness:
            with em.when(hold_a):
                self._copy_a(em, m, k)
            hold_a = "false"
        m_padded, n_padded = em.round_up(m, rows), em.round_up(n, columns)
        depths = em.select_i64(hold_a, k, em.smin(k, depth)), em.select_i64(hold_b, k, em.smin(k, depth))
        heights = em.select_i64(hold_a, m_padded, block)
        base_a = em.side_by_side(self.args.pointer(em, "packed_a"), self.rep.inner, em.mul(depths[0], heights))
        base_b = em.side_by_side(self.args.pointer(em, "packed_b"), self.rep.inner, em.mul(depths[1], n_padded))

        def before(p: Index) -> Index:
            """Return the steps of packed panels before step p."""
            if self.rep.kind != "exponential":
                return p
            return em.mul(em.let(f"sdiv i64 {p}, {depth}"), self.tile.panel_steps(depth))

        def pointers(base: list[str], offset: Index) -> str:
            return "".join(f", ptr {em.at(s.ir, b, offset)}" for s, b in zip(self.rep.inner, base, strict=True))

        def pack_a(i: Index, p: Index, mc: Index, kc: Index, offset: Index) -> None:
            em.line(f"call void @{self.name}_pack_a(ptr %args, i64 {i}, i64 {p}, i64 {mc}, i64 {kc}{pointers(base_a, offset)})")

        def pack_b(p: Index, kc: Index, offset: Index) -> None:
            em.line(f"call void @{self.name}_pack_b(ptr %args, i64 {p}, i64 {kc}{pointers(base_b, offset)})")

        with em.when(hold_a), em.each(0, k, depth) as p:
            pack_a(0, p, m, em.smin(em.sub(k, p), depth), em.mul(before(p), m_padded))
        with em.when(hold_b), em.each(0, k, depth) as p:
            pack_b(p, em.smin(em.sub(k, p), depth), em.mul(before(p), n_padded))
        C, via = self.args.matrices(em, "C", self.rep.outer), self.args.via(em)
        with em.when(fresh):  # C ← 0
            for matrix, zero in zip(C, self.rep.zero, strict=True):
                with em.each(0, m) as i:
                    em.fill(matrix[0], zero, em.cell(matrix, i, 0), 0, n)
        with em.each(0, k, depth) as p:
            kc = em.smin(em.sub(k, p), depth)
            steps = self._steps(em, kc)[0]
            b_offset = em.select_i64(hold_b, em.mul(before(p), n_padded), 0)
            with em.unless(hold_b):
                pack_b(p, kc, 0)
            with em.each(0, m, block) as i:
                mc = em.smin(em.sub(m, i), block)
                a_offset = em.select_i64(hold_a, em.add(em.mul(before(p), m_padded), em.mul(i, steps)), 0)
                with em.unless(hold_a):
                    pack_a(i, p, mc, kc, 0)
                with em.each(0, n, columns) as j:
                    nr = em.smin(em.sub(n, j), columns)
                    b_panel = em.add(b_offset, em.mul(j, steps))
                    if self._exponentials is not None and self._exponentials.wide is not None:  # no float64 panel of these columns yet
                        em.store("i64", "0", self.args.pointer(em, "wide"), 8)
                    with em.each(0, mc, rows) as r:
                        mr = em.smin(em.sub(mc, r), rows)
                        row = em.add(i, r)
                        parts = ""
                        for s, a, b, c in zip(self.rep.inner, base_a, base_b, C, strict=True):
                            panel = em.at(s.ir, a, em.add(a_offset, em.mul(r, steps)))
                            parts += f", ptr {panel}, ptr {em.at(s.ir, b, b_panel)}, ptr {em.cell(c, row, j)}"
                        v = em.cell(via, row, j) if self.witness else "null"
                        em.line(f"call void @{self.name}_micro(ptr %args{parts}, ptr {v}, i64 {kc}, i64 {mr}, i64 {nr}, i64 {p})")
            if self.witness:
                em.line(f"call void @resolve(ptr %args, i64 {p}, i64 {kc}{pointers(base_b, b_offset)})")
        return em.done()

    def _copy_a(self, em: Emitter, m: str, k: str) -> None:
        """Replace A, which is C, by a copy: winners are looked up in A's rows after C has changed."""
        copies = em.side_by_side(self.args.pointer(em, "packed_c"), self.rep.outer, em.mul(m, k))
        for c, (matrix, copy) in enumerate(zip(self.args.matrices(em, "A", self.rep.outer), copies, strict=True)):
            s = matrix[0]
            with em.each(0, m) as i:
                source, to = em.cell(matrix, i, 0), em.cell((s, copy, k), i, 0)
                for p, lanes in em.by_vectors(k, self.tile.width):
                    em.put(s, em.get(s, source, p, lanes), to, p, lanes)
            em.store("ptr", copy, self.args.place(em, ("A", c)), 8)
            em.store("i64", k, self.args.place(em, ("A_rows", c)), 8)


class WitnessKernel:
    """Generates ``resolve(args, step, k, B…)``, which the product calls, and ``transpose``: from the winning slab to the winning k.

    Where ``via`` is −2 − slab, k is the first step of that slab with a⊗b equal to C. After each `depth` steps, some columns of the packed B
    are transposed and stay in the L2 cache while all rows of A pass. Rows of A and of Bᵀ are compared a vector at a time.
    """

    # A part of the steps: its first step, the number of steps, the start of the last slab, and True for at least one whole slab.
    _begin: str | int
    _part: str | int
    _last_slab: str | int
    _has_slab: bool

    def __init__(self, rep: Representation, target: Target, tile: Tile) -> None:
        self.rep, self.target, self.tile = rep, target, tile
        self.components = range(len(rep.outer))
        self.args = KernelArguments(len(rep.outer))

    def functions(self) -> list[Emitter]:
        """Return both functions."""
        return [self._transpose(), self._resolve()]

    def _transpose(self) -> Emitter:
        """``transpose(args, B…, k, out…, steps, n)``: n columns of packed panels [k][columns], for `steps` steps, to [n][transposed]."""
        panels, outs = ("".join(f", ptr %{x}{c}" for c in self.components) for x in ("B", "out"))
        em = Emitter("transpose", f"ptr %args{panels}, i64 %k{outs}, i64 %steps, i64 %n", attributes="#1")
        long, columns, side = self.args.load(em, "transposed_rows"), self.tile.columns, min(16, self.tile.width)
        whole = em.round_down("%steps", side)
        for c, s in enumerate(self.rep.inner):
            with em.each(0, "%n", columns) as j:
                source, target = em.at(s.ir, f"%B{c}", em.mul(j, "%k")), em.at(s.ir, f"%out{c}", em.mul(j, long))
                with em.each(0, whole, side) as p:
                    for q in range(0, columns, side):
                        rows = [em.get(s, source, em.add(em.mul(em.add(p, r), columns), q), side) for r in range(side)]
                        for r, vector in enumerate(em.transposed(rows, s)):
                            em.put(s, vector, target, em.add(em.mul(long, q + r), p), side)
                with em.each(whole, "%steps") as p, em.each(0, columns) as column:
                    em.put(s, em.get(s, source, em.add(em.mul(p, columns), column)), target, em.add(em.mul(column, long), p))
        return em.done()

    def _resolve(self) -> Emitter:
        """``resolve(args, step, k, B…)``: replace each −2 − slab in ``via`` by first + k, for slabs within the k steps from `step` on.

        B holds these steps in packed panels. Rows of A are contiguous.
        """
        rep, args, tile = self.rep, self.args, self.tile
        panels = "".join(f", ptr %B{c}" for c in self.components)
        em = Emitter("resolve", f"ptr %args, i64 %step, i64 %k{panels}", attributes="#1")
        m, n = args.load(em, "m"), args.load(em, "n")
        self._first, self._long = args.load(em, "first"), args.load(em, "transposed_rows")
        width = max(2, self.target.vector_bytes // 4)
        self._starts = em.let(f"alloca [{width} x i32], align 64")
        (A, C), via = (args.matrices(em, x, rep.outer) for x in "AC"), args.via(em)
        some, steps = transposed_shape(tile, rep)
        self._b = em.side_by_side(args.pointer(em, "transposed"), rep.inner, em.mul(self._long, some))
        last = em.sub(m, 1)
        with em.each(0, n, some) as start:
            count = em.smin(em.sub(n, start), some)
            vectors = str(em.round_down(count, width))
            with em.each(0, "%k", steps) as p:
                self._begin, self._part = em.add("%step", p), em.smin(em.sub("%k", p), steps)
                self._last_slab = em.sub(self._part, tile.slab)
                panels = "".join(
                    f", ptr {em.at(s.ir, f'%B{c}', em.add(em.mul(start, '%k'), em.mul(p, tile.columns)))}" for c, s in enumerate(rep.inner)
                )
                outs = "".join(f", ptr {b}" for b in self._b)
                em.line(f"call void @transpose(ptr %args{panels}, i64 %k{outs}, i64 {self._part}, i64 {count})")
                whole = em.let(f"icmp sge i64 {self._part}, {tile.slab}")
                for self._has_slab, branch in ((True, em.when(whole)), (False, em.otherwise())):
                    with branch, em.each(0, m) as i:
                        below = em.smin(em.add(i, 1), last)
                        # Prefetch a part of the next row, whose access order no hardware prefetcher foresees.
                        parts = [(x, self._begin, self._part) for x in A] + [(x, start, count) for x in (*C, via)]
                        for x, begin, size in parts:
                            place = em.cell(x, below, begin)
                            with em.each(0, size, 64 // x[0].bytes) as j:
                                em.prefetch(em.at(x[0].ir, place, j), write=False)
                        codes, a, c = em.cell(via, i, start), [em.cell(x, i, self._begin) for x in A], [em.cell(x, i, start) for x in C]
                        for begin, end, lanes in ((0, vectors, width), (vectors, count, 1)):
                            with em.each(begin, end, lanes) as j:
                                self._entries(em, a, c, j, codes, lanes)
        return em.done()

    def _entries(self, em: Emitter, a: list[str], c: list[str], j: str, codes: str, lanes: int) -> None:
        """Resolve the entries among `lanes` entries of a row from j on whose slab is in this part of the steps."""
        ir, slab = I32.vector(lanes), self.tile.slab
        code = em.load(ir, em.at("i32", codes, j), 4)
        # The number of the slab within this part; other codes become larger unsigned numbers.
        before = em.let(f"trunc i64 {em.add(em.let(f'sdiv i64 {self._begin}, {slab}'), 2)} to i32")
        number = em.let(f"sub {ir} {em.let(f'sub {ir} {I32.constant(0, lanes)}, {code}')}, {em.splat(before, I32, lanes)}")
        waiting = em.let(f"icmp ult {ir} {number}, {I32.constant(transposed_shape(self.tile, self.rep)[1] // slab, lanes)}")
        starts = em.let(f"mul {ir} {number}, {I32.constant(slab, lanes)}")
        if lanes == 1:
            with em.when(waiting):
                self._entry(em, a, c, j, codes, em.let(f"sext i32 {starts} to i64"))
            return
        em.store(ir, starts, self._starts, 64)
        mask = em.let(f"zext i{lanes} {em.let(f'bitcast <{lanes} x i1> {waiting} to i{lanes}')} to i64")
        with em.each_bit(mask) as lane:
            start = em.let(f"sext i32 {em.get(I32, self._starts, lane)} to i64")
            self._entry(em, a, c, str(em.add(j, lane)), codes, start)

    def _entry(self, em: Emitter, a: list[str], c: list[str], j: str, codes: str, begin: str) -> None:
        """``via[i, j]`` ← first + the lowest k of the slab from `begin` on with a_ik ⊗ b_kj = c_ij."""
        b, c_place = em.places(self.rep.inner, self._b, em.mul(j, self._long)), em.places(self.rep.outer, c, j)

        def write(k: str | int) -> None:
            em.put(I32, em.let(f"trunc i64 {em.add(em.add(self._first, self._begin), k)} to i32"), codes, j)

        def whole() -> None:
            # For a partial last slab, read the slab that ends with it: an earlier step cannot equal C, or its slab would have won.
            start = em.smin(begin, self._last_slab)
            low = Lowering(em, self.target, self.tile.width, infinities=self.rep.inner_infinities)
            bits = self._hits(low, a, b, self._wanted(low, c_place), start, self.tile.slab)
            write(em.add(start, em.call("cttz.i64", "i64", ("i64", bits), ("i1", "true"))))

        def part() -> None:
            best, start = self._part, begin
            for width in (self.tile.width, 1):
                low = Lowering(em, self.target, width, infinities=self.rep.inner_infinities)
                wanted = self._wanted(low, c_place)
                end = em.add(start, em.round_down(em.sub(self._part, start), width))

                def search(p: str, found: list[str]) -> list[str]:
                    bits = self._hits(low, a, b, wanted, p, low.width)
                    hit = em.let(f"icmp ne i64 {bits}, 0")
                    none = em.let(f"icmp eq i64 {found[0]}, {self._part}")
                    at = em.add(p, em.call("cttz.i64", "i64", ("i64", bits), ("i1", "false")))
                    return [em.select_i64(em.let(f"and i1 {hit}, {none}"), at, found[0])]

                best = em.loop(start, end, width, search, [("i64", str(best))])[0]
                start = str(end)
            write(best)

        (whole if self._has_slab else part)()

    def _hits(self, low: Lowering, a: list[str], b: list[str], wanted: list[Value], p: str, steps: int) -> str:
        """Return one bit per step of `steps` steps from p on: 1 if a⊗b is the wanted element."""
        em = low.em
        parts = [self._equal(low, a, b, wanted, em.add(p, offset)) for offset in range(0, steps, low.width)]
        if low.width == 1:
            return em.let(f"zext i1 {parts[0]} to i64")
        lanes = low.width
        while len(parts) > 1:
            every = ", ".join(f"i32 {i}" for i in range(2 * lanes))
            pairs = zip(parts[::2], parts[1::2], strict=True)
            parts = [em.let(f"shufflevector <{lanes} x i1> {x}, <{lanes} x i1> {y}, <{2 * lanes} x i32> <{every}>") for x, y in pairs]
            lanes *= 2
        bits = em.let(f"bitcast <{lanes} x i1> {parts[0]} to i{lanes}")
        return bits if lanes == 64 else em.let(f"zext i{lanes} {bits} to i64")

    def _wanted(self, low: Lowering, places: list[str]) -> list[Value]:
        """Broadcast C's element, as an inner element."""
        return encoded(
            low, self.rep, [low.em.splat(low.em.get(s, p, 0), s, low.width) for s, p in zip(self.rep.outer, places, strict=True)]
        )

    def _equal(self, low: Lowering, a_row: list[str], b_row: list[str], wanted: list[Value], p: str | int) -> str:
        """Compare a⊗b with the wanted element, for a vector of steps from p on."""
        a = encoded(low, self.rep, [v.name for v in load_elements(low, self.rep.outer, a_row, p)])
        product = low.evaluate(self.rep.mul, a, load_elements(low, self.rep.inner, b_row, p), self.rep.inner)
        return low.all_of([low.compare("eq", s, v.name, w.name) for s, v, w in zip(self.rep.inner, product, wanted, strict=True)])
