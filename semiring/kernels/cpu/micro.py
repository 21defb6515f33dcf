"""The micro-kernel: one register tile of C over packed panels of A and B, and its merge with C.

Accumulators start from ⊕'s zero and merge with C once, so new values are compared with the old C as a whole. A witness product also
compares every `slab` steps: where a value is strictly better than a slab before, the code −2 − slab is stored in memory. The merge
writes the code to ``via`` wherever C itself improves. Ties keep the old value, and among new candidates the lowest k, because only
strict improvements count and slabs come in order.
"""

from __future__ import annotations

from functools import partial

from semiring.algebra.expression import nodes
from semiring.kernels.cpu.arguments import KernelArguments
from semiring.kernels.cpu.emitter import I32, Carried, Emitter, Matrix
from semiring.kernels.cpu.lowering import BroadcastOperand, Lowering, Value, empty_sums, improved, merge, store_where, values
from semiring.kernels.cpu.representation import Representation, Tile
from semiring.kernels.hardware import Target

__all__ = ["SUMMED", "MicroKernel", "unrolled_steps"]

Index = str | int

SUMMED = 128
"""Steps per partial sum, to limit rounding errors."""


def unrolled_steps(rep: Representation, target: Target, *, witness: bool) -> int:
    """Return the steps in a turn of the loop over k.

    Sums as x · 1 + y overwrite an operand. With 16 registers their copies fill the front end, so that the loop's own instructions show.
    With a witness two steps at once are best, for any short step.
    """
    steps = [e.op for e in nodes(*rep.inner_add, *rep.inner_mul) if e.op not in ("var", "const")]
    if len(steps) > 2 or target.registers != 16:
        return 1
    fused = target.fma_add and any(scalar.kind == "f" for scalar in rep.inner) and not {"add", "sub"}.isdisjoint(steps)
    return 2 if witness else 4 if fused else 1


class MicroKernel:
    """Generates ``micro`` and ``merge_edge`` under the prefix of a product."""

    def __init__(self, rep: Representation, target: Target, tile: Tile, prefix: str, *, witness: bool) -> None:
        self.rep, self.target, self.tile, self.prefix, self.witness = rep, target, tile, prefix, witness
        self.components = range(len(rep.outer))
        self.args = KernelArguments(len(rep.outer))

    def functions(self) -> list[Emitter]:
        """Return both functions; only ``sums`` for exponentials, which `ExponentialKernel` decodes and merges."""
        return [self.sums()] if self.rep.kind == "exponential" else [self.merge_edge(), self.micro()]

    def sums(self) -> Emitter:
        """``sums(args, A…, B…, out…, k)``: the register tile over k packed steps, in partial sums of `SUMMED` steps, to memory."""
        pointers = "".join(f", ptr noalias readonly %A{c}, ptr noalias readonly %B{c}, ptr noalias %out{c}" for c in self.components)
        em = Emitter(f"{self.prefix}_sums", f"ptr %args{pointers}, i64 %k", attributes="#1")
        self._open(em)
        out = [f"%out{c}" for c in self.components]
        self._to_memory(self._accumulate(0, em.smin("%k", SUMMED)), out)
        with em.each(SUMMED, "%k", SUMMED) as start:
            found = self._accumulate(start, em.smin("%k", em.add(start, SUMMED)))
            pairs = zip(self._from_memory(out), found, strict=True)
            self._to_memory([self._low.combine(self.rep.inner_add, self.rep.inner, x, y) for x, y in pairs], out)
        return em.done()

    # The merge with C.

    def _targets(self, em: Emitter) -> list[Matrix]:
        """Return each component of C, and ``via``."""
        found: list[Matrix] = [(s, f"%C{c}", self.args.load(em, ("C_rows", c))) for c, s in enumerate(self.rep.outer)]
        return [*found, (I32, "%via", self.args.load(em, "via_rows"))] if self.witness else found

    def _merge(self, low: Lowering, targets: list[Matrix], found: list[str], i: Index, j: Index, codes: str, cell: Index) -> None:
        """C ← C ⊕ found at (i, j); where that improves C strictly, ``via`` ← the code of a cell of the tile."""
        places = [low.em.cell(target, i, j) for target in targets]
        via = (places.pop(), [low.em.get(I32, codes, cell, low.width)]) if self.witness else None
        merge(low, self.rep, found, self.args.threshold(low.em, self.rep, low.width), places, via)

    def merge_edge(self) -> Emitter:
        """``merge_edge(args, tile…, codes, C…, via, rows, columns)``: merge a tile in memory that overlaps C's edge."""
        tiles = "".join(f", ptr %tile{c}" for c in self.components)
        places = "".join(f", ptr %C{c}" for c in self.components)
        signature = f"ptr %args{tiles}, ptr %codes{places}, ptr %via, i64 %rows, i64 %columns"
        em = Emitter(f"{self.prefix}_merge_edge", signature, attributes="#1")
        width, columns, targets = self.tile.width, self.tile.columns, self._targets(em)
        lows = {w: Lowering(em, self.target, w, infinities=self.rep.infinities) for w in (width, 1)}
        with em.each(0, "%rows") as i:
            for j, lanes in em.by_vectors("%columns", width):
                cell = em.add(em.mul(i, columns), j)
                found = [em.get(s, f"%tile{c}", cell, lanes) for c, s in enumerate(self.rep.inner)]
                self._merge(lows[lanes], targets, found, i, j, "%codes", cell)
        return em.done()

    def micro(self) -> Emitter:
        """``micro(args, A…, B…, C…, via, k, rows, columns, step)``: one register tile of C over k packed steps."""
        pointers = "".join(f", ptr noalias readonly %A{c}, ptr noalias readonly %B{c}, ptr %C{c}" for c in self.components)
        signature = f"ptr %args{pointers}, ptr %via, i64 %k, i64 %rows, i64 %columns, i64 %step"
        em = Emitter(f"{self.prefix}_micro", signature, attributes="#1")
        self._open(em)
        tile, cells = self.tile, self.tile.rows * self.tile.columns
        self._memory = [em.let(f"alloca [{cells} x {s.ir}], align 64") for s in self.rep.inner]
        self._codes = em.let(f"alloca [{cells} x i32], align 64") if self.witness else "null"
        full = em.let(f"and i1 {em.let(f'icmp eq i64 %rows, {tile.rows}')}, {em.let(f'icmp eq i64 %columns, {tile.columns}')}")
        self._to = self._targets(em)
        with em.when(full):  # prefetch the lines of C and ``via`` for the merge
            for target in self._to:
                for i in range(tile.rows):
                    for j in range(0, tile.columns, max(1, 64 // target[0].bytes)):
                        em.prefetch(em.cell(target, i, j), write=True)
        found = self._best_slabs() if self.witness else self._accumulate(0, "%k")
        with em.when(full):
            outer = Lowering(em, self.target, tile.width, infinities=self.rep.infinities)
            for vector, (i, j) in zip(found, self._vectors, strict=True):
                self._merge(outer, self._to, vector, i, j, self._codes, i * tile.columns + j)
        with em.otherwise():  # through memory, because the tile overlaps C's edge
            self._to_memory(found, self._memory)
            local, to = ("".join(f", ptr {p}" for p in tiles) for tiles in (self._memory, [f"%C{c}" for c in self.components]))
            em.line(f"call void @{self.prefix}_merge_edge(ptr %args{local}, ptr {self._codes}{to}, ptr %via, i64 %rows, i64 %columns)")
        return em.done()

    def _open(self, em: Emitter) -> None:
        """Prepare the sums of a tile."""
        tile, width = self.tile, self.tile.width
        self._em = em
        ones = self.args.ones(em, set(self.rep.inner), width) if self.target.fma_add else None
        self._low = Lowering(em, self.target, width, ones=ones, infinities=self.rep.inner_infinities)
        self._unrolled = unrolled_steps(self.rep, self.target, witness=self.witness)
        # Row and column of each vector of the tile, and ⊕'s zero for each.
        self._vectors = [(i, j * width) for i in range(tile.rows) for j in range(tile.vectors)]
        self._zeros = empty_sums(self.rep.inner, self.rep.inner_zero, width) * len(self._vectors)

    def _accumulate(self, start: str | int, stop: str | int) -> list[list[str]]:
        """⊕ over the steps [start, stop): the components of each vector of the tile."""
        return self._by_vector(self._steps(start, stop, self._zeros))

    def _steps(self, start: str | int, stop: str | int, carried: list[Carried]) -> list[str]:
        """Continue sums with the steps [start, stop), several in each turn of the loop if a step is short."""
        em = self._em

        def turn(first: str, sums: list[str], count: int = 1) -> list[str]:
            for k in range(count):
                sums = self._step(self._low, str(em.add(first, k)), sums)
            return sums

        if self._unrolled == 1:
            return em.loop(start, stop, 1, turn, carried)
        whole = em.add(start, em.round_down(em.sub(stop, start), self._unrolled))
        sums = em.loop(start, whole, self._unrolled, partial(turn, count=self._unrolled), carried)
        return em.loop(whole, stop, 1, turn, [(ir, value) for (ir, _), value in zip(carried, sums, strict=True)])

    def _by_vector(self, flat: list[str]) -> list[list[str]]:
        """Split a flat list of values by vectors of the tile."""
        parts = len(self.rep.inner)
        return [flat[q : q + parts] for q in range(0, len(flat), parts)]

    def _best_slabs(self) -> list[list[str]]:
        """⊕ over all steps, with codes of the best slabs in memory, next to the values after the previous slab."""
        self._to_memory(self._by_vector([zero for _, zero in self._zeros]), self._memory)
        return self._by_vector(self._em.loop(0, "%k", self.tile.slab, self._slab, self._zeros))

    def _slab(self, start: str, sums: list[str]) -> list[str]:
        """Continue the sums with the slab that begins at `start`."""
        em, low, inner = self._em, self._low, self.rep.inner
        stop = em.smin(em.add(start, self.tile.slab), "%k")
        carried = [(ir, value) for (ir, _), value in zip(self._zeros, sums, strict=True)]
        found = self._steps(start, stop, carried)
        number = em.let(f"sdiv i64 {em.add('%step', start)}, {self.tile.slab}")
        code = em.splat_word(str(em.sub(-2, number)), I32, low.width)
        before = self._from_memory(self._memory)
        for old, new, (i, j) in zip(before, self._by_vector(found), self._vectors, strict=True):
            better = improved(low, inner, self.rep.extremum, values(old, inner), values(new, inner))
            store_where(low, better, em.at("i32", self._codes, i * self.tile.columns + j), code)
        self._to_memory(self._by_vector(found), self._memory)
        return found

    def _to_memory(self, found: list[list[str]], places: list[str]) -> None:
        """Store the vectors of a tile to memory."""
        for vector, at in zip(found, self._places(places), strict=True):
            for value, place, s in zip(vector, at, self.rep.inner, strict=True):
                self._em.store(s.vector(self.tile.width), value, place, s.bytes * self.tile.width)

    def _from_memory(self, tiles: list[str]) -> list[list[str]]:
        width, inner = self.tile.width, self.rep.inner
        return [[self._em.load(s.vector(width), p, s.bytes * width) for p, s in zip(at, inner, strict=True)] for at in self._places(tiles)]

    def _places(self, tiles: list[str]) -> list[list[str]]:
        """Return the addresses of the components of each vector of a tile in memory."""
        return [self._em.places(self.rep.inner, tiles, i * self.tile.columns + j) for i, j in self._vectors]

    def _step(self, low: Lowering, k: str, accumulators: list[str]) -> list[str]:
        """One k: acc_ij ← acc_ij ⊕ a_i ⊗ b_j."""
        em, tile, inner = low.em, self.tile, self.rep.inner
        a_row = [em.at(s.ir, f"%A{c}", em.mul(k, tile.rows)) for c, s in enumerate(inner)]
        b_row = [em.at(s.ir, f"%B{c}", em.mul(k, tile.columns)) for c, s in enumerate(inner)]
        b = [[Value(em.get(s, b_row[c], j * low.width, low.width), s) for c, s in enumerate(inner)] for j in range(tile.vectors)]
        out: list[str] = []
        for i in range(tile.rows):
            # A's scalars stay in memory where a use can broadcast them for free; otherwise they are loaded once per row.
            a = [BroadcastOperand(em.at(s.ir, a_row[c], i), s) for c, s in enumerate(inner)]
            for j in range(tile.vectors):
                old = accumulators[len(out) : len(out) + len(inner)]
                out += low.accumulate(self.rep.inner_add, self.rep.inner_mul, inner, old, a, b[j])
        return out
