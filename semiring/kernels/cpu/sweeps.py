"""Rows and columns of a closure from the panels of a sparse elimination: ``sweep_rows``, ``sweep_columns``, ``gather``.

With A* = [I D*U; 0 I] [D* 0; 0 S*] [I 0; LD* I] at each supernode, whose panels hold D*, D*U and LD*, a row x of the closure takes two
sweeps over the supernodes. From the leaves up, x_R ← x_R ⊕ x_S D*U; from the roots down, x_S ← x_S D* ⊕ x_R LD*. Columns use the
factors in the other order. X holds a vector of many sources for every place, so one vector operation combines a panel's entry, loaded once,
with all sources. The sweep up needs only the supernodes above the sources, and the sweep down those above the targets.

``sweep_statistics`` keeps no rows: a supernode is tallied (see `tally`) as soon as it is reached, and afterwards only the supernodes above
are read. X is then a stack, as deep as the tree is high, and stays in the cache.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import NamedTuple

from semiring.common.units import CACHE_LINE
from semiring.kernels.cpu.arguments import Arguments
from semiring.kernels.cpu.emitter import ENTRY, Emitter, Scalar
from semiring.kernels.cpu.lowering import Lowering, Value, load_elements
from semiring.kernels.cpu.pivot import outer_product
from semiring.kernels.cpu.representation import Representation
from semiring.kernels.cpu.tally import TallyKernel
from semiring.kernels.hardware import Target

__all__ = ["GatherArrays", "GatherWords", "SweepArrays", "SweepKernel", "SweepWords", "lanes_of"]

_ROW = 256  # bytes of a row of X: four cache lines, which the micro-kernel reads at once
_AHEAD, _ASKED = 16, 4096  # prefetch distance in supernodes, and bytes prefetched per panel: the hardware prefetches the rest
_PART = 64  # columns of a result written at a time: as many rows of X nearly fit the first-level cache
_TILES = ((4, 4), (4, 2), (2, 2), (2, 1), (1, 1))  # rows of X computed at a time, and vectors of each


class SweepWords(NamedTuple):
    """The arguments, before `SweepArrays` for each component; the arrays up to `panel_starts` are the fields of `Supernodes`.

    `up` lists the supernodes of the first sweep, ascending, with 1 in `active`; `down` lists those of the second, descending. `held` maps
    places to rows of `own`, in the sweep up; `slots` maps places, and `slot_rows` the entries of `rows`, to rows of X. Rows of a supernode
    are contiguous. `starts` has one source's place per lane, whose element is 1; with `lanes` = −1, `own` is given instead. `numbers` is
    0, 1, 2, …. `threshold` separates tropical integers from ∞, and `tally` is the address of `TallyWords`.
    """

    columns: int
    row_starts: int
    rows: int
    panel_starts: int
    numbers: int
    held: int
    slots: int
    slot_rows: int
    up: int
    ups: int
    down: int
    downs: int
    active: int
    starts: int
    lanes: int
    threshold: int
    tally: int = 0


class SweepArrays(NamedTuple):
    """The addresses of one component: X, the rows of the sweep up, and the panels."""

    x: int
    own: int
    upper: int
    lower: int


class GatherWords(NamedTuple):
    """The arguments of ``gather``, before `GatherArrays` for each component.

    The result has a column for each of the `k` `places`. `rows` maps each of the first `lanes` lanes to a row, `stride` elements apart.
    """

    rows: int
    places: int
    lanes: int
    stride: int
    k: int


class GatherArrays(NamedTuple):
    """The addresses of one component: X, and the result."""

    x: int
    out: int


_POINTERS = {
    "columns", "row_starts", "rows", "panel_starts", "numbers", "held", "slots", "slot_rows", "up", "down", "active", "starts", "tally",
}  # fmt: skip


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
        self.target, self.args = target, Arguments(SweepWords, SweepArrays, count)
        self.components = range(count)

    def functions(self) -> list[Emitter]:
        """Return the function, and the functions that it calls."""
        if self.name == "gather":
            return [self._gather()]
        tally = [TallyKernel(self.rep, self.target, self.lanes, self.width).function()] if self.tallies else []
        return [self._sweep(), self._panel(), *tally]

    def _open(self, name: str, parameters: str = ENTRY, attributes: str = "#0") -> Emitter:
        em = Emitter(name, parameters, attributes=attributes)
        infinities = self.rep.inner_infinities
        self.low, self.single = (Lowering(em, self.target, w, infinities=infinities) for w in (self.width, 1))
        return em

    # The sweeps.

    def _sweep(self) -> Emitter:
        """Emit both sweeps, for one source per lane."""
        em, args = self._open(self.name), self.args
        self.em = em
        self.x = {name: (args.pointer if name in _POINTERS else args.load)(em, name) for name in SweepWords._fields}
        self.arrays = {name: [args.pointer(em, (name, c)) for c in self.components] for name in SweepArrays._fields}
        given = em.let(f"icmp slt i64 {self.x['lanes']}, 0")

        def fill(turn: str, _: list[str]) -> None:
            begin, w, *_others = self._supernode("up", turn)
            self._fill(self._word("held", begin), w)

        def source(b: str, _: list[str]) -> None:
            at = em.add(em.mul(self._word("held", self._word("starts", b)), self.lanes), b)
            for c, t in enumerate(self.rep.outer):
                em.store(t.ir, t.literal(self.rep.one[c]), em.at(t.ir, self.arrays["own"][c], at), t.bytes)

        def begin() -> None:
            em.loop(0, self.x["ups"], 1, fill)
            em.loop(0, self.x["lanes"], 1, source)

        em.branch(em.let(f"xor i1 {given}, true"), begin)
        em.loop(0, self.x["ups"], 1, self._up)
        em.loop(0, self.x["downs"], 1, self._down)
        em.line("ret void")
        return em

    def _word(self, array: str, i: str | int) -> str:
        return self.em.load("i64", self.em.at("i64", self.x[array], i), 8)

    def _supernode(self, listed: str, turn: str) -> tuple[str, str, str, str, str]:
        """Return a listed supernode's first place, number of vertices, first row, number of rows, and panel."""
        em, s = self.em, self._word(listed, turn)
        begin, rows, after = self._word("columns", s), self._word("row_starts", s), em.add(s, 1)
        w = em.sub(self._word("columns", after), begin)
        r = em.sub(self._word("row_starts", after), rows)
        return begin, str(w), rows, str(r), self._word("panel_starts", s)

    def _from(self, array: str, i: str) -> str:
        return self.em.at("i64", self.x[array], i)

    def _fill(self, row: str, w: str) -> None:
        em = self.em
        first, many = em.mul(row, self.lanes), em.mul(w, self.lanes)

        def put(i: str, _: list[str]) -> None:
            for c, t in enumerate(self.rep.outer):
                place = em.at(t.ir, self.arrays["own"][c], em.add(first, i))
                em.store(t.vector(self.width), t.constant(self.rep.zero[c], self.width), place, t.bytes)

        em.loop(0, many, self.width, put)

    def _up(self, turn: str, _: list[str]) -> None:
        """Emit x_R ← x_R ⊕ x_S D*U, or for a column x_R ← x_R ⊕ LD* x_S."""
        em = self.em
        begin, w, rows, r, panel = self._supernode("up", turn)
        ends = "own", self._from("rows", rows), "held", r, "own", self._from("numbers", self._word("held", begin)), w
        if self.backward:
            self._call(*ends, "lower", em.add(panel, em.mul(w, w)), w, 1, fresh=False)
        else:
            self._call(*ends, "upper", em.add(panel, w), 1, em.add(w, r), fresh=False)

    def _down(self, turn: str, _: list[str]) -> None:
        """Emit x_S ← x_S D* ⊕ x_R LD*, or for a column x_S ← D* x_S ⊕ D*U x_R."""
        em = self.em
        begin, w, rows, r, panel = self._supernode("down", turn)
        own, beyond = self._from("numbers", begin), self._from("slot_rows", rows)
        along, across = (em.add(w, r), 1) if self.backward else (1, w)
        matrix = "upper" if self.backward else "lower"
        self._ask(turn, matrix)
        rest = em.add(panel, w if self.backward else em.mul(w, w))

        def active() -> None:
            held = self._from("numbers", self._word("held", begin))
            self._call("x", own, "slots", w, "own", held, w, matrix, panel, along, across, fresh=True)
            self._call("x", own, "slots", w, "x", beyond, r, matrix, rest, along, across, fresh=False)

        def new() -> None:
            self._call("x", own, "slots", w, "x", beyond, r, matrix, rest, along, across, fresh=True)

        s = self._word("down", turn)
        em.branch(em.let(f"icmp ne i64 {self._word('active', s)}, 0"), active, new)
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
            em.loop(0, asked, CACHE_LINE, functools.partial(self._prefetch, panel))

    def _prefetch(self, panel: str, byte: str, _: list[str]) -> None:
        self.em.prefetch(self.em.at("i8", panel, byte), write=False)

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
            em.loop(start, stop, tile, functools.partial(self._rows, em, tile))
            start = stop
        em.line("ret void")
        return em

    def _rows(self, em: Emitter, tile: int, first: str, _: list[str]) -> None:
        lanes, components = self.lanes, self.components
        wanted = [em.load("i64", em.at("i64", "%targets", em.add(first, t)), 8) for t in range(tile)]
        rows = [em.mul(em.load("i64", em.at("i64", "%rows", place), 8), lanes) for place in wanted]
        step = self.vectors * self.width

        def some(column: str, _: list[str]) -> None:
            columns = [em.add(column, v * self.width) for v in range(self.vectors)]
            places = [
                [[em.at(self.rep.outer[c].ir, f"%to{c}", em.add(row, column)) for c in components] for column in columns] for row in rows
            ]
            carried = []
            fresh = em.let("icmp ne i64 %fresh, 0")
            for row in places:
                for place in row:
                    for t, z, p in zip(self.rep.outer, self.rep.zero, place, strict=True):
                        ir, old = t.vector(self.width), em.load(t.vector(self.width), p, t.bytes)
                        carried.append((ir, em.let(f"select i1 {fresh}, {ir} {t.constant(z, self.width)}, {ir} {old}")))

            def term(k: str, sums: list[str]) -> list[str]:
                return self._term(em, first, k, columns, sums, tile)

            sums = em.loop(0, "%depth", 1, term, carried)
            for row in places:
                for place in row:
                    for t, p in zip(self.rep.outer, place, strict=True):
                        em.store(t.vector(self.width), sums.pop(0), p, t.bytes)

        em.loop(0, lanes, step, some)

    def _term(self, em: Emitter, first: str, k: str, columns: Sequence[str | int], sums: list[str], tile: int) -> list[str]:
        rep, low, sources = self.rep, self.low, [f"%from{c}" for c in self.components]
        row = em.mul(em.load("i64", em.at("i64", "%terms", k), 8), self.lanes)
        x = [load_elements(low, rep.outer, sources, em.add(row, column)) for column in columns]
        entry = em.mul(k, "%across")
        new: list[str] = []
        for i in range(tile):
            place = em.add(entry, em.mul(em.add(first, i), "%along"))
            scalars = [
                Value(em.splat(em.load(t.ir, em.at(t.ir, f"%matrix{c}", place), t.bytes), t, self.width), t)
                for c, t in enumerate(rep.outer)
            ]
            for vector in x:
                old = [Value(sums[len(new) + c], t) for c, t in enumerate(rep.outer)]
                factors = (scalars, vector) if self.backward else (vector, scalars)
                product = outer_product(rep, low, *factors, self._threshold)
                new += [v.name for v in low.evaluate(rep.add, old, product, rep.outer)]
        return new

    # Rows as the caller has them.

    def _gather(self) -> Emitter:
        """Emit the transposition of rows of X at given places into rows of the result, by squares of vectors."""
        em, args = self._open("gather"), Arguments(GatherWords, GatherArrays, len(self.components))
        count, stride, k = (args.load(em, name) for name in ("lanes", "stride", "k"))
        places, lines = args.pointer(em, "places"), args.pointer(em, "rows")
        x, out = ([args.pointer(em, (name, c)) for c in self.components] for name in ("x", "out"))
        lanes, width = self.lanes, min(self.width, 16)
        whole = str(em.round_down(k, width))

        def row(j: str | int) -> str | int:
            return em.mul(em.load("i64", em.at("i64", places, j), 8), lanes)

        def line(lane: str | int) -> str | int:
            return em.mul(em.load("i64", em.at("i64", lines, lane), 8), stride)

        def ask(j: str, _: list[str]) -> None:
            # Rows are scattered: prefetch them while earlier rows are copied.
            later = row(em.smin(em.add(j, _PART), em.sub(k, 1)))
            for c, t in enumerate(self.rep.outer):
                for b in range(0, lanes, CACHE_LINE // t.bytes):
                    em.prefetch(em.at(t.ir, x[c], em.add(later, b)), write=False)

        def square(b: str, j: str, _: list[str]) -> None:
            rows = [row(em.add(j, i)) for i in range(width)]
            for c, t in enumerate(self.rep.outer):
                ir = t.vector(width)
                vectors = em.transposed([em.load(ir, em.at(t.ir, x[c], em.add(r, b)), t.bytes) for r in rows], t)
                for i, vector in enumerate(vectors):
                    lane = em.add(b, i)

                    def put(lane: str | int = lane, ir: str = ir, vector: str = vector, t: Scalar = t, whole: str = out[c]) -> None:
                        em.store(ir, vector, em.at(t.ir, whole, em.add(line(lane), j)), t.bytes)

                    em.branch(em.let(f"icmp slt i64 {lane}, {count}"), put)

        def part(start: str, _: list[str]) -> None:
            stop = em.smin(em.add(start, _PART), whole)
            em.loop(start, stop, 1, ask)
            em.loop(0, count, width, lambda b, _: em.loop(start, stop, width, functools.partial(square, b)))

        def single(j: str, _: list[str]) -> None:
            here = row(j)

            def lane(b: str, _: list[str]) -> None:
                for c, t in enumerate(self.rep.outer):
                    value = em.load(t.ir, em.at(t.ir, x[c], em.add(here, b)), t.bytes)
                    em.store(t.ir, value, em.at(t.ir, out[c], em.add(line(b), j)), t.bytes)

            em.loop(0, count, 1, lane)

        em.loop(0, whole, _PART, part)
        em.loop(whole, k, 1, single)
        em.line("ret void")
        return em
