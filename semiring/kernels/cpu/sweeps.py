"""Rows and columns of a closure from the panels of a sparse elimination: ``sweep_rows``, ``sweep_columns``, ``gather``.

With A* = [I D*U; 0 I] [D* 0; 0 S*] [I 0; LD* I] at each supernode, whose panels hold D*, D*U and LD*, a row x of the closure takes two
sweeps over the supernodes. From the leaves up, x_R ← x_R ⊕ x_S D*U; from the roots down, x_S ← x_S D* ⊕ x_R LD*. Columns use the
factors in the other order. X holds a vector of many sources for every place, so one vector operation combines a panel's entry, loaded once,
with all sources. The sweep up needs only the supernodes above the sources, and the sweep down those above the targets.

``sweep_statistics`` keeps no rows: `TallyKernel` counts a supernode as soon as it is reached, and afterwards only the supernodes above are
read. X is then a stack, as deep as the tree is high, and stays in the cache.
"""

from __future__ import annotations

import functools
from collections import namedtuple
from collections.abc import Sequence

from semiring.common.units import CACHE_LINE
from semiring.kernels.cpu.arguments import Arguments
from semiring.kernels.cpu.emitter import ENTRY, I64, Emitter
from semiring.kernels.cpu.lowering import Lowering, Value, constants, load_elements, store_elements, values
from semiring.kernels.cpu.pivot import outer_product
from semiring.kernels.cpu.representation import Representation
from semiring.kernels.cpu.tallies import TallyKernel
from semiring.kernels.hardware import Target

__all__ = ["GatherArrays", "GatherWords", "SweepArrays", "SweepKernel", "SweepWords", "lanes_of"]

_ROW = 256  # bytes of a row of X: four cache lines, which the micro-kernel reads at once
_AHEAD, _ASKED = 16, 4096  # prefetch distance in supernodes, and bytes prefetched per panel: the hardware prefetches the rest
_PART = 64  # columns of a result written at a time: as many rows of X nearly fit the first-level cache
_TILES = ((4, 4), (4, 2), (2, 2), (2, 1), (1, 1))  # rows of X computed at a time, and vectors of each


SweepWords = namedtuple(
    "SweepWords",
    "columns row_starts rows panel_starts numbers held slots slot_rows up ups down downs active starts lanes threshold tally",
    defaults=(0,),
)
"""The arguments, before `SweepArrays` for each component; the arrays up to `panel_starts` are the fields of `Supernodes`.

`up` lists the supernodes of the first sweep, ascending, with 1 in `active`; `down` lists those of the second, descending. `held` maps
places to rows of `own`, in the sweep up; `slots` maps places, and `slot_rows` the entries of `rows`, to rows of X. Rows of a supernode
are contiguous. `starts` has one source's place per lane, whose element is 1; with `lanes` = −1, `own` is given instead. `numbers` is
0, 1, 2, …. `threshold` separates tropical integers from ∞, and `tally` is the address of `TallyWords`."""

SweepArrays = namedtuple("SweepArrays", "x own upper lower")
"""The addresses of one component: X, the rows of the sweep up, and the panels."""

GatherWords = namedtuple("GatherWords", "rows places lanes stride k")
"""The arguments of ``gather``, before `GatherArrays` for each component.

The result has a column for each of the `k` `places`. `rows` maps each of the first `lanes` lanes to a row, `stride` elements apart."""

GatherArrays = namedtuple("GatherArrays", "x out")
"""The addresses of one component: X, and the result."""


def lanes_of(rep: Representation) -> int:
    """Return the number of sources of a sweep."""
    return _ROW // max(t.bytes for t in rep.outer)


class SweepKernel:
    """Generates the function called `name`."""

    def __init__(self, rep: Representation, target: Target, name: str) -> None:
        self.rep, self.name, self.lanes = rep, name, lanes_of(rep)
        self.backward, self.tallies = name == "sweep_columns", name == "sweep_statistics"
        size, count = max(t.bytes for t in rep.outer), len(rep.outer)
        self.width = min(self.lanes, max(2, target.vector_bytes // size))
        fitting = [(t, v) for t, v in _TILES if count * (t * v + v) + 3 <= target.registers and v * self.width <= self.lanes]
        self.tile, self.vectors = (fitting or [(1, 1)])[0]
        self.target = target
        self.components = range(count)

    def functions(self) -> list[Emitter]:
        """Return the function, and the functions that it calls."""
        if self.name == "gather":
            return [self._gather()]
        tally = [TallyKernel(self.rep, self.target, self.lanes, self.width).function()] if self.tallies else []
        return [self._sweep(), self._panel(), *tally]

    def _open(self, name: str, parameters: str = ENTRY, attributes: str = "#0") -> Emitter:
        self.em = em = Emitter(name, parameters, attributes=attributes)
        infinities = self.rep.inner_infinities
        self.low, self.single = (Lowering(em, self.target, w, infinities=infinities) for w in (self.width, 1))
        return em

    # The sweeps.

    def _sweep(self) -> Emitter:
        """Emit both sweeps, for one source per lane."""
        em, args, rep = self._open(self.name), Arguments(SweepWords, SweepArrays, len(self.components)), self.rep
        self.x, self.arrays = args.words(em, "ups downs lanes threshold"), args.addresses(em)
        own = self.arrays["own"]
        with em.when(em.let(f"icmp sge i64 {self.x['lanes']}, 0")):
            with em.each(0, self.x["ups"]) as turn:
                begin, w, *_ = self._supernode("up", turn)
                first = em.mul(self._word("held", begin), self.lanes)
                with em.each(0, em.mul(w, self.lanes), self.width) as i:
                    store_elements(self.low, rep.outer, own, em.add(first, i), constants(self.low, rep.outer, rep.zero))
            with em.each(0, self.x["lanes"]) as b:
                at = em.add(em.mul(self._word("held", self._word("starts", b)), self.lanes), b)
                store_elements(self.single, rep.outer, own, at, constants(self.single, rep.outer, rep.one))
        with em.each(0, self.x["ups"]) as turn:
            self._up(turn)
        with em.each(0, self.x["downs"]) as turn:
            self._down(turn)
        return em.done()

    def _word(self, array: str, i: str | int) -> str:
        return self.em.get(I64, self.x[array], i)

    def _supernode(self, listed: str, turn: str) -> tuple[str, str, str, str, str]:
        """Return a listed supernode's first place, number of vertices, first row, number of rows, and panel."""
        em, s = self.em, self._word(listed, turn)
        begin, rows, after = self._word("columns", s), self._word("row_starts", s), em.add(s, 1)
        w = em.sub(self._word("columns", after), begin)
        r = em.sub(self._word("row_starts", after), rows)
        return begin, str(w), rows, str(r), self._word("panel_starts", s)

    def _from(self, array: str, i: str) -> str:
        return self.em.at("i64", self.x[array], i)

    def _up(self, turn: str) -> None:
        """Emit x_R ← x_R ⊕ x_S D*U, or for a column x_R ← x_R ⊕ LD* x_S."""
        em = self.em
        begin, w, rows, r, panel = self._supernode("up", turn)
        ends = "own", self._from("rows", rows), "held", r, "own", self._from("numbers", self._word("held", begin)), w
        if self.backward:
            self._call(*ends, "lower", em.add(panel, em.mul(w, w)), w, 1, fresh=False)
        else:
            self._call(*ends, "upper", em.add(panel, w), 1, em.add(w, r), fresh=False)

    def _down(self, turn: str) -> None:
        """Emit x_S ← x_S D* ⊕ x_R LD*, or for a column x_S ← D* x_S ⊕ D*U x_R."""
        em = self.em
        begin, w, rows, r, panel = self._supernode("down", turn)
        own, beyond = self._from("numbers", begin), self._from("slot_rows", rows)
        along, across = (em.add(w, r), 1) if self.backward else (1, w)
        matrix = "upper" if self.backward else "lower"
        self._ask(turn, matrix)
        rest = em.add(panel, w if self.backward else em.mul(w, w))
        with em.when(em.let(f"icmp ne i64 {self._word('active', self._word('down', turn))}, 0")):
            held = self._from("numbers", self._word("held", begin))
            self._call("x", own, "slots", w, "own", held, w, matrix, panel, along, across, fresh=True)
            self._call("x", own, "slots", w, "x", beyond, r, matrix, rest, along, across, fresh=False)
        with em.otherwise():
            self._call("x", own, "slots", w, "x", beyond, r, matrix, rest, along, across, fresh=True)
        if self.tallies:
            x = em.at(self.rep.outer[0].ir, self.arrays["x"][0], em.mul(self._word("slots", begin), self.lanes))
            em.line(f"call void @tally(ptr {self.x['tally']}, ptr {x}, i64 {begin}, i64 {em.add(begin, w)})")

    def _ask(self, turn: str, matrix: str) -> None:
        """Prefetch a panel of the sweep down: hardware prefetchers do not expect panels to be read backwards."""
        em = self.em
        later = self._word("down", em.smin(em.add(turn, _AHEAD), em.sub(self.x["downs"], 1)))
        start = self._word("panel_starts", later)
        size = em.sub(self._word("panel_starts", em.add(later, 1)), start)
        for c, t in enumerate(self.rep.outer):
            panel, asked = em.at(t.ir, self.arrays[matrix][c], start), em.smin(em.mul(size, t.bytes), _ASKED)
            with em.each(0, asked, CACHE_LINE) as byte:
                em.prefetch(em.at("i8", panel, byte), write=False)

    def _call(
        self,
        to: str,
        targets: str,
        row_of: str,
        count: str,
        source: str,
        terms: str,
        depth: str,
        matrix: str,
        place: str | int,
        along: str | int,
        across: str | int,
        *,
        fresh: bool,
    ) -> None:
        """Emit rows of `targets` ← themselves (or 0 if `fresh`) ⊕ the sum over `terms` of rows times entries of a panel."""
        em = self.em
        words = [f"ptr {targets}", f"ptr {self.x[row_of]}", f"i64 {count}", f"ptr {terms}", f"i64 {depth}", f"i64 {along}", f"i64 {across}"]
        words += [f"i64 {int(fresh)}", f"i64 {self.x['threshold']}"]
        for c, t in enumerate(self.rep.outer):
            words += [f"ptr {self.arrays[to][c]}", f"ptr {self.arrays[source][c]}", f"ptr {em.at(t.ir, self.arrays[matrix][c], place)}"]
        em.line(f"call void @{self.name}_panel({', '.join(words)})")

    # Their micro-kernel.

    def _panel(self) -> Emitter:
        """Emit the micro-kernel: the product of a panel and rows of X."""
        words = ["ptr %targets", "ptr %rows", "i64 %count", "ptr %terms", "i64 %depth", "i64 %along", "i64 %across", "i64 %fresh"]
        words += ["i64 %threshold", *(f"ptr %{name}{c}" for c in self.components for name in ("to", "from", "matrix"))]
        em = self._open(f"{self.name}_panel", ", ".join(words), "#1")
        self._threshold = em.splat_word("%threshold", self.rep.inner[0], self.width) if self.rep.kind == "clamped" else ""
        start = "0"
        for tile in [t for t in (4, 2, 1) if t <= self.tile]:
            stop = str(em.round_down("%count", tile)) if tile > 1 else "%count"
            with em.each(start, stop, tile) as first:
                self._rows(tile, first)
            start = stop
        return em.done()

    def _rows(self, tile: int, first: str) -> None:
        em, low, outer = self.em, self.low, self.rep.outer
        wanted = [em.get(I64, "%targets", em.add(first, t)) for t in range(tile)]
        rows = [em.mul(em.get(I64, "%rows", place), self.lanes) for place in wanted]
        with em.each(0, self.lanes, self.vectors * self.width) as column:
            columns = [em.add(column, v * self.width) for v in range(self.vectors)]
            places = [[em.at(t.ir, f"%to{c}", em.add(row, column)) for c, t in enumerate(outer)] for row in rows for column in columns]
            carried = []
            fresh = em.let("icmp ne i64 %fresh, 0")
            for place in places:
                for t, z, old in zip(outer, self.rep.zero, load_elements(low, outer, place, 0), strict=True):
                    ir = t.vector(self.width)
                    carried.append((ir, em.let(f"select i1 {fresh}, {ir} {t.constant(z, self.width)}, {ir} {old.name}")))
            sums = em.loop(0, "%depth", 1, functools.partial(self._term, first, columns, tile), carried)
            for place in places:
                store_elements(low, outer, place, 0, values([sums.pop(0) for _ in outer], outer))

    def _term(self, first: str, columns: Sequence[str | int], tile: int, k: str, sums: list[str]) -> list[str]:
        em, rep, low, sources = self.em, self.rep, self.low, [f"%from{c}" for c in self.components]
        row = em.mul(em.get(I64, "%terms", k), self.lanes)
        x = [load_elements(low, rep.outer, sources, em.add(row, column)) for column in columns]
        entry = em.mul(k, "%across")
        new: list[str] = []
        for i in range(tile):
            place = em.add(entry, em.mul(em.add(first, i), "%along"))
            scalars = [Value(em.splat(em.get(t, f"%matrix{c}", place), t, self.width), t) for c, t in enumerate(rep.outer)]
            for vector in x:
                old = values(sums[len(new) : len(new) + len(rep.outer)], rep.outer)
                factors = (scalars, vector) if self.backward else (vector, scalars)
                product = outer_product(rep, low, *factors, self._threshold)
                new += [v.name for v in low.evaluate(rep.add, old, product, rep.outer)]
        return new

    # Rows as the caller has them.

    def _gather(self) -> Emitter:
        """Emit the transposition of rows of X at given places into rows of the result, by squares of vectors."""
        em, args, outer = self._open("gather"), Arguments(GatherWords, GatherArrays, len(self.components)), self.rep.outer
        words, (x, out) = args.words(em, "lanes stride k"), args.addresses(em).values()
        count, k, lanes, width = words["lanes"], words["k"], self.lanes, min(self.width, 16)
        whole = str(em.round_down(k, width))

        def row(j: str | int) -> str | int:
            return em.mul(em.get(I64, words["places"], j), lanes)

        def line(lane: str | int) -> str | int:
            return em.mul(em.get(I64, words["rows"], lane), words["stride"])

        def square(b: str, j: str) -> None:
            rows = [row(em.add(j, i)) for i in range(width)]
            for c, t in enumerate(outer):
                for i, vector in enumerate(em.transposed([em.get(t, x[c], em.add(r, b), width) for r in rows], t)):
                    lane = em.add(b, i)
                    with em.when(em.let(f"icmp slt i64 {lane}, {count}")):
                        em.put(t, vector, out[c], em.add(line(lane), j), width)

        with em.each(0, whole, _PART) as start:
            stop = em.smin(em.add(start, _PART), whole)
            with em.each(start, stop) as j:
                # Rows are scattered: prefetch them while earlier rows are copied.
                later = row(em.smin(em.add(j, _PART), em.sub(k, 1)))
                for t, array in zip(outer, x, strict=True):
                    for b in range(0, lanes, CACHE_LINE // t.bytes):
                        em.prefetch(em.at(t.ir, array, em.add(later, b)), write=False)
            with em.each(0, count, width) as lane, em.each(start, stop, width) as j:
                square(lane, j)
        with em.each(whole, k) as j:
            here = row(j)
            with em.each(0, count) as lane:
                element = load_elements(self.single, outer, x, em.add(here, lane))
                store_elements(self.single, outer, out, em.add(line(lane), j), element)
        return em.done()
