"""Scans: vectors through a long product of matrices, generated for a semiring as one loop over time.

A forward step is v_t = (v_{t−1} ⊗ A_t) ⊗ w_t, like α of a hidden Markov model.
A backward step is v_{t−1} = A_t ⊗ (w_t ⊗ v_t), like β. Either may add a vector u_t to v_t, as the adjoint of a scan does. The direction
of time is only in the signs of the strides. Sequences are rows of a table, and a call runs a whole batch of rows in turn. The vector stays
in the L1 cache from step to step.

The lanes of a register are entries of the new vector. A matrix is packed as inner elements, with rows padded to whole registers; once,
if all steps share the matrix. Where ⊕ is log(eᵃ + eᵇ), a column is m + log Σ exp(x_k − m), with m the maximum, in two passes, instead of
a logarithm per term.

With a witness, each step also stores the winning k, and at the end the states of the best sequence are followed back (Viterbi 1967).
"""

from __future__ import annotations

import math
from contextlib import nullcontext
from fractions import Fraction

from semiring.common.units import CACHE_LINE
from semiring.kernels.cpu.arguments import Arguments, ScanArrays, ScanWords, SequenceArrays, SequenceWords
from semiring.kernels.cpu.emitter import ENTRY, I32, Emitter, Scalar
from semiring.kernels.cpu.lowering import Lowering, Value, empty_sums, improve, load_elements, spread, store_elements, values
from semiring.kernels.cpu.pivot import outer_product
from semiring.kernels.cpu.representation import Representation
from semiring.kernels.hardware import Target

__all__ = ["ScanKernel"]

_AHEAD = 2
"""Prefetch distance in steps, for matrices in descending memory order."""

_SQUARES = (16, 8, 4, 1)
"""Sides of the squares in which a matrix is transposed."""

_UNROLLED = 4
"""Registers of the new vector per turn of the loop over a matrix's rows."""


class ScanKernel:
    """Generates ``scan``, also with the options ``_backward``, ``_weighted``, ``_witness``, ``_added``, in registers of `width` lanes."""

    def __init__(self, rep: Representation, target: Target, width: int, name: str) -> None:
        self.rep, self.width = rep, width
        self.backward, self.weighted, self.witness = (option in name for option in ("backward", "weighted", "witness"))
        self.added = "added" in name
        self.components = range(len(rep.outer))
        self._zero = rep.inner_zero if rep.kind in ("order_key", "clamped") else rep.zero
        self.args = Arguments(ScanWords, ScanArrays, len(rep.outer))
        self.em = Emitter(name, ENTRY)
        self.wide, self.single = (Lowering(self.em, target, w, infinities=rep.infinities) for w in (width, 1))
        self.inner = Lowering(self.em, target, width, infinities=rep.inner_infinities)

    def functions(self) -> list[Emitter]:
        """Return the function."""
        em, args = self.em, self.args
        first, last = args.load(em, "first"), args.load(em, "last")
        table, scratch = args.pointer(em, "table"), args.pointer(em, "scratch")
        self._states = args.load(em, "states")
        lanes = self._lanes = str(em.round_up(self._states, self.width))
        self._whole, self._rest = str(em.round_down(self._states, self.width)), ""
        if self.wide.target.masks:
            self._rest = em.first_lanes(em.sub(self._states, self._whole), self.width)
        self._steps = {name: [args.load(em, (name, c)) for c in self.components] for name in ScanArrays._fields}
        self._threshold = args.threshold(em, self.rep, self.width)
        # Scratch arrays: the vector (inner), the new vector, the weights and the added vector (outer), the winners, and the matrix (inner).
        *places, matrix = em.side_by_side(scratch, (*self.rep.inner, *self.rep.outer * 3, I32, *self.rep.inner[:1]), lanes)
        self._matrix = em.side_by_side(matrix, self.rep.inner, em.mul(lanes, self._states))
        count = len(self.components)
        self._vector, self._new, self._weights, self._added = (places[i * count : (i + 1) * count] for i in range(4))
        self._winners = places[-1]
        for arrays_of, elements in ((self._new, self.rep.zero), (self._weights, self.rep.one), (self._added, self.rep.zero)):  # padding
            for place, element, s in zip(arrays_of, elements, self.rep.outer, strict=True):
                em.fill(s, element, place, 0, lanes, self.width)
        words = len(SequenceWords._fields) + len(self.components) * len(SequenceArrays._fields)
        with em.each(first, last) as q:
            self._sequence(em.at("i64", table, em.mul(q, words)))
        return [em.done()]

    # Memory.

    def _copy(self, scalar: Scalar, source: str, stride: str | None, target: str, *, load: bool, encoded: int | None = None) -> None:
        """Copy a vector to padded scratch, or back; `stride` is the element stride in memory, or None for contiguous elements.

        With `encoded`, a component's number, elements become inner elements.
        """
        em, inner = self.em, scalar if encoded is None else self.rep.inner[encoded]

        def move(low: Lowering, j: str, at: str | int, mask: str = "") -> None:
            place, to, ir = em.at(scalar.ir, source, at), em.at(inner.ir, target, j), scalar.vector(low.width)
            value = em.masked_load(scalar, low.width, place, mask) if mask and load else em.load(ir, place, scalar.bytes)
            value = value if encoded is None else self.rep.encode(low, encoded, value)
            if mask and not load:
                em.masked_store(inner, low.width, value, to, mask)
            else:
                em.store(inner.vector(low.width), value, to, inner.bytes)

        with nullcontext() if stride is None else em.when(em.let(f"icmp eq i64 {stride}, 1")):
            with em.each(0, self._whole, self.width) as j:
                move(self.wide, j, j)
            if self._rest:  # one register: a wide load after narrow stores would stall
                with em.when(em.let(f"icmp slt i64 {self._whole}, {self._states}")):
                    move(self.wide, self._whole, self._whole, self._rest)
            else:
                with em.each(self._whole, self._states) as j:
                    move(self.single, j, j)
        if stride is not None:
            with em.otherwise(), em.each(0, self._states) as j:
                move(self.single, j, em.mul(j, stride))

    # One sequence.

    def _sequence(self, row: str) -> None:
        """Run all steps of the sequence in a row of the table."""
        em = self.em

        words = Arguments(SequenceWords, SequenceArrays, len(self.components), row)
        steps = words.load(em, "steps")
        matrices, weights, initials, values, added = words.addresses(em).values()
        witness = words.pointer(em, "witness") if self.witness else ""
        witness_step = self.args.load(em, "witness_step") if self.witness else ""

        def at(name: str, places: list[str], t: str | int) -> list[str]:
            """Return the addresses of a step's arrays."""
            return [em.at(s.ir, p, em.mul(t, self._steps[name][c])) for c, (p, s) in enumerate(zip(places, self.rep.outer, strict=True))]

        for c, s in enumerate(self.rep.outer):
            self._copy(s, initials[c], self._steps["initial_stride"][c], self._new[c], load=True)
            self._copy(s, self._new[c], None, values[c], load=False)
        if self.witness:
            em.fill(I32, -1, witness, 0, self._states)
        if not self.backward:
            self._take(None)
        with em.each(0, steps) as t:
            here = str(em.add(t, 1))
            new_matrix = [em.let(f"icmp ne i64 {move}, 0") for move in self._steps["matrix_step"]]
            begins = em.let(f"icmp eq i64 {t}, 0")
            with em.when(self.single.any_of([begins, *new_matrix])):
                self._pack(at("matrix_step", matrices, t))
            if self.weighted:
                for c, (s, place) in enumerate(zip(self.rep.outer, at("weight_step", weights, t), strict=True)):
                    self._copy(s, place, self._steps["weight_stride"][c], self._weights[c], load=True)
            if self.backward:
                self._take(self._weights if self.weighted else None)
            several = str(em.round_down(self._lanes, _UNROLLED * self.width))
            with em.each(0, several, _UNROLLED * self.width) as j:
                self._columns(j, _UNROLLED)
            with em.each(several, self._lanes, self.width) as j:
                self._columns(j, 1)
            if self.added:
                for c, (s, place) in enumerate(zip(self.rep.outer, at("added_step", added, here), strict=True)):
                    self._copy(s, place, None, self._added[c], load=True)
            if not self.backward:
                self._take(self._weights if self.weighted else None, added=self.added)
            elif self.added:
                with em.each(0, self._lanes, self.width) as j:
                    joined = self._join(load_elements(self.wide, self.rep.outer, self._new, j), j)
                    store_elements(self.wide, self.rep.outer, self._new, j, joined)
            for s, new, to in zip(self.rep.outer, self._new, at("value_step", values, here), strict=True):
                self._copy(s, new, None, to, load=False)
            if self.witness:
                self._copy(I32, self._winners, None, em.at("i32", witness, em.mul(here, witness_step)), load=False)
        if self.witness:
            self._follow(steps, witness, witness_step, words.pointer(em, "states"))

    def _pack(self, matrix: list[str]) -> None:
        """Pack the matrix of a step: row k holds the factors of term k of each sum."""
        em = self.em
        for c, s in enumerate(self.rep.outer):
            terms, sums = self._steps["matrix_terms"][c], self._steps["matrix_sums"][c]
            with em.when(em.let(f"icmp slt i64 {self._steps['matrix_step'][c]}, 0")):
                self._prefetch(s, matrix[c], c)
            with em.when(em.let(f"and i1 {em.let(f'icmp eq i64 {terms}, 1')}, {em.let(f'icmp ne i64 {sums}, 1')}")):
                self._pack_transposed(c, s, matrix[c], sums)
            with em.otherwise(), em.each(0, self._states) as k:
                target = em.at(self.rep.inner[c].ir, self._matrix[c], em.mul(k, self._lanes))
                self._copy(s, em.at(s.ir, matrix[c], em.mul(k, terms)), sums, target, load=True, encoded=c)

    def _prefetch(self, s: Scalar, matrix: str, c: int) -> None:
        """Prefetch component c of a later matrix from its last element down: a direction that the processor's prefetcher then follows."""
        em = self.em
        ahead = em.at(s.ir, matrix, em.mul(self._steps["matrix_step"][c], _AHEAD))
        down = em.call("smax.i64", "i64", ("i64", self._steps["matrix_terms"][c]), ("i64", self._steps["matrix_sums"][c]))
        last = em.sub(self._states, 1)
        with em.each(0, self._states) as k:
            end = em.at(s.ir, ahead, em.add(em.mul(em.sub(last, k), down), last))
            with em.each(0, self._states, CACHE_LINE // s.bytes) as j:
                em.prefetch(em.at(s.ir, end, em.sub("0", j)), write=False)

    def _pack_transposed(self, c: int, s: Scalar, matrix: str, sums: str) -> None:
        """Pack component c of a matrix with contiguous terms, by squares of vectors."""
        em, inner, begin = self.em, self.rep.inner[c], "0"
        for side in (x for x in _SQUARES if x <= self.width):
            end, wide = str(em.round_down(self._states, side)), Lowering(em, self.wide.target, side)

            def square(k: str, j: str, count: int) -> None:
                """`side` terms of `count` sums; `count` is 1 or `side`."""
                low = wide if count == side else self.single
                for offset in range(0, side, count):
                    term = em.add(k, offset)
                    places = [em.at(s.ir, matrix, em.add(em.mul(em.add(j, r), sums), term)) for r in range(count)]
                    read = [self.rep.encode(low, c, em.load(s.vector(count), place, s.bytes)) for place in places]
                    for q, column in enumerate(em.transposed(read, inner)):
                        to = em.at(inner.ir, self._matrix[c], em.add(em.mul(em.add(term, q), self._lanes), j))
                        em.store(inner.vector(count), column, to, inner.bytes)

            with em.each(begin, end, side) as k:
                with em.each(0, end, side) as j:
                    square(k, j, side)
                with em.each(end, self._states) as j:
                    square(k, j, 1)
            begin = end

    def _take(self, weights: list[str] | None, *, added: bool = False) -> None:
        """Convert the new vector to the next operand: forward the weighted result itself with the added vector, backward w ⊗ result."""
        with self.em.each(0, self._lanes, self.width) as j:
            new = load_elements(self.wide, self.rep.outer, self._new, j)
            if weights is not None:
                w = load_elements(self.wide, self.rep.outer, weights, j)
                new = outer_product(self.rep, self.wide, *((w, new) if self.backward else (new, w)), self._threshold)
            if added:
                new = self._join(new, j)
            if not self.backward and (weights is not None or added):
                store_elements(self.wide, self.rep.outer, self._new, j, new)
            for c, (s, value, place) in enumerate(zip(self.rep.inner, new, self._vector, strict=True)):
                self.em.put(s, self.rep.encode(self.wide, c, value.name), place, j, self.width)

    def _join(self, new: list[Value], j: str) -> list[Value]:
        """Return ``new`` ⊕ u, from lane j on."""
        outer = self.rep.outer
        more = load_elements(self.wide, outer, self._added, j)
        return values(self.wide.combine(self.rep.add, outer, [v.name for v in new], [v.name for v in more]), outer)

    # The product of a vector and a matrix.

    def _columns(self, j: str, registers: int) -> None:
        """Compute `registers` registers of the new vector, from lane j on."""
        starts = [str(self.em.add(j, r * self.width)) for r in range(registers)]
        scale = self.rep.scale if self.rep.kind == "exponential" else None
        found = self._fold(starts) if scale is None else self._log_sum_exp(starts, scale)
        for r, start in enumerate(starts):
            for c, s in enumerate(self.rep.outer):
                new = self.rep.decode(self.wide, c, found[r * len(self._new) + c], self._threshold)
                self.em.put(s, new, self._new[c], start, self.width)

    def _factors(self, k: str, starts: list[str]) -> list[tuple[list[Value], list[Value]]]:
        """Return the factors of term k for each register: v_k and a_kj, or backward a_jk and v_k."""
        em, inner = self.em, self.rep.inner
        v = spread(self.wide, inner, load_elements(self.single, inner, self._vector, k))
        row = em.mul(k, self._lanes)
        matrix = [load_elements(self.wide, inner, self._matrix, em.add(row, start)) for start in starts]
        return [(a, v) if self.backward else (v, a) for a in matrix]

    def _fold(self, starts: list[str]) -> list[str]:
        """⊕ over all terms, in order; winners are stored for a witness."""
        em, low, rep, inner = self.em, self.inner, self.rep, self.rep.inner
        count = len(inner)
        zeros = empty_sums(inner, self._zero, self.width)
        codes = [(I32.vector(self.width), I32.constant(-1, self.width))] * (len(starts) if self.witness else 0)

        def term(k: str, carried: list[str]) -> list[str]:
            out, won = list[str](), list[str]()
            code = em.splat_word(k, I32, self.width) if self.witness else ""
            for r, (left, right) in enumerate(self._factors(k, starts)):
                old = carried[r * count : (r + 1) * count]
                if self.witness:
                    product = low.evaluate(rep.mul, left, right, inner)
                    if rep.kind == "clamped":  # a sum with ∞ is ∞ again, and never improves
                        outer = rep.decode(self.wide, 0, product[0].name, self._threshold)
                        product = [Value(rep.encode(low, 0, outer), inner[0])]
                    new, improved = improve(low, rep.add, inner, rep.extremum, values(old, inner), product)
                    out += [v.name for v in new]
                    won.append(low.select(improved(), I32, code, carried[len(starts) * count + r]))
                else:
                    out += low.accumulate(rep.add, rep.mul, inner, old, left, right)
            return [*out, *won]

        found = em.loop(0, self._states, 1, term, [*zeros * len(starts), *codes])
        for start, winners in zip(starts, found[len(starts) * count :], strict=False):
            self.em.put(I32, winners, self._winners, start, self.width)
        return found

    def _log_sum_exp(self, starts: list[str], scale: Fraction) -> list[str]:
        """m + log(Σ exp(s (x_k − m))) / s over all terms x_k, where m is the term with the largest s·m."""
        em, low, (s,) = self.em, self.inner, self.rep.inner
        ir, zero = s.vector(self.width), s.constant(self.rep.zero[0], self.width)

        def terms(k: str) -> list[str]:
            return [low.evaluate(self.rep.mul, left, right, (s,))[0].name for left, right in self._factors(k, starts)]

        def times(factor: Fraction, x: str) -> str:
            return x if factor == 1 else low.arithmetic("mul", s, [x, s.constant(float(factor), self.width)])

        def largest(k: str, old: list[str]) -> list[str]:
            return [low.arithmetic("max" if scale > 0 else "min", s, [m, x]) for m, x in zip(old, terms(k), strict=True)]

        found = em.loop(0, self._states, 1, largest, [(ir, zero)] * len(starts))
        # An infinite maximum is not subtracted: the sum is 0 if all terms are 0 (log 0), and infinite if a term is.
        infinity = s.constant(math.inf, self.width)
        infinite = [low.compare("eq", s, low.arithmetic("abs", s, [m]), infinity) for m in found]
        most = [low.select(i, s, s.constant(0.0, self.width), m) for i, m in zip(infinite, found, strict=True)]

        def scaled(k: str, old: list[str]) -> list[str]:
            parts = [
                low.arithmetic("exp", s, [times(scale, low.arithmetic("sub", s, [x, m]))]) for m, x in zip(most, terms(k), strict=True)
            ]
            return [low.arithmetic("add", s, [total, part]) for total, part in zip(old, parts, strict=True)]

        totals = em.loop(0, self._states, 1, scaled, [(ir, s.constant(0.0, self.width))] * len(starts))
        return [low.arithmetic("add", s, [m, times(1 / scale, low.arithmetic("log", s, [t]))]) for m, t in zip(most, totals, strict=True)]

    # The states.

    def _follow(self, steps: str, witness: str, witness_step: str, states: str) -> None:
        """Find the best entry of the last vector (the first among ties), and follow the winners back to the first vector."""
        em, low, outer = self.em, self.single, self.rep.outer
        state_step = self.args.load(em, "state_step")

        def compare(j: str, carried: list[str]) -> list[str]:
            old = values(carried[1:], outer)
            new, improved = improve(low, self.rep.add, outer, self.rep.extremum, old, load_elements(low, outer, self._new, j))
            return [em.select_i64(improved(), j, carried[0]), *(v.name for v in new)]

        best = em.loop(0, self._states, 1, compare, [("i64", "-1"), *empty_sums(outer, self.rep.zero, 1)])[0]

        def back(i: str, carried: list[str]) -> list[str]:
            t, (state,) = str(em.sub(steps, i)), carried
            em.put(I32, em.let(f"trunc i64 {state} to i32"), states, em.mul(t, state_step))
            # State −1 has no predecessor; the row of v₀ holds −1 too.
            known = em.call("smax.i64", "i64", ("i64", state), ("i64", 0))
            winner = em.get(I32, witness, em.add(em.mul(t, witness_step), known))
            before = em.let(f"sext i32 {winner} to i64")
            return [em.select_i64(em.let(f"icmp slt i64 {state}, 0"), -1, before)]

        em.loop(0, str(em.add(steps, 1)), 1, back, [("i64", best)])
