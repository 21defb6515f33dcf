"""The closure of one pivot block in place: ``close(args)`` for an idempotent ⊕ and ``eliminate(args)`` with star(pivot).

The block is the matrix C of the arguments, of side n. Its first k vertices are pivots: all, or fewer for a front of a sparse elimination
(see `fronts`). Each pivot is tested before use; the first divergent pivot ends the kernel with its number in ``status``. The same code
closes a group of a stack, packed one matrix to a lane: an element of a row is then a vector. A divergent pivot of any of its matrices
ends the kernel.
"""

from __future__ import annotations

from collections.abc import Iterator

from semiring.kernels.cpu.arguments import STATUS, KernelArguments
from semiring.kernels.cpu.emitter import ENTRY, I32, I64, Emitter
from semiring.kernels.cpu.lowering import Lowering, Value, Via, constants, encoded, improved, load_elements, spread, store_elements, update
from semiring.kernels.cpu.representation import Representation
from semiring.kernels.hardware import Target

__all__ = ["PivotKernel", "outer_product"]

Pivot = tuple[list[Value], list[str]]
"""The left factor of a row, in all lanes, and the addresses of the pivot's row."""


def outer_product(rep: Representation, low: Lowering, left: list[Value], right: list[Value], threshold: str) -> list[Value]:
    """Return left ⊗ right of outer elements; tropical integers are clamped as in a matrix product, so a sum beyond half of ∞ becomes ∞."""
    if rep.kind != "clamped":
        return low.evaluate(rep.mul, left, right, rep.outer)
    a, b = (encoded(low, rep, [v.name for v in x]) for x in (left, right))
    (total,) = Lowering(low.em, low.target, low.width).evaluate(rep.mul, a, b, rep.inner)
    return [Value(rep.decode(low, 0, total.name, threshold), rep.outer[0])]


_UNROLLED = 4
"""Vectors per turn of the innermost loop."""

_TOGETHER = 4
"""Components of pivots applied in one pass over a row, which is read and written once."""

_SEVERAL = 24
"""Smallest side for which joint pivots are faster; smaller blocks stay in the L1 cache."""


class PivotKernel:
    """Generates ``close``, ``close_witness`` and ``eliminate``, or with several `lanes` functions of groups, such as ``close_group``."""

    def __init__(self, rep: Representation, target: Target, width: int, lanes: int = 1) -> None:
        self.rep, self.target, self.width, self.lanes = rep, target, width, lanes
        self.args = KernelArguments(len(rep.outer))
        self._kind = "" if lanes == 1 else "_group"
        self._together = max(1, _TOGETHER // len(rep.outer))

    def functions(self, name: str) -> list[Emitter]:
        """Return the function called `name`, after its callees."""
        if name == "eliminate":
            return [self._eliminate()]
        witness = name == "close_witness"
        counts = sorted({1, self._together})
        return [*(self._rows_take_in(name, count, witness=witness) for count in counts), self._close(name)]

    def _open(self, name: str, parameters: str = ENTRY) -> tuple[Emitter, Lowering, Lowering]:
        """Begin a function; return the emitter, operations on vectors, and operations on single elements (all lanes for a group)."""
        called = self.lanes > 1 or parameters != ENTRY
        em = Emitter(name, parameters, attributes="#1" if called else "#0")
        wide, single = (Lowering(em, self.target, w, infinities=self.rep.infinities) for w in (self.width, self.lanes))
        self._n, self._pivots = self.args.load(em, "n"), self.args.load(em, "k")
        self._long = em.mul(self._n, self.lanes)
        self._threshold = {low: self.args.threshold(em, self.rep, low.width) for low in (wide, single)}
        self._ends = {v: str(em.round_down(self._long, v * self.width)) for v in (1, 2, _UNROLLED)}
        if self.lanes == 1:
            self._block, self._via = self.args.matrices(em, "C", self.rep.outer), self.args.via(em)
        else:
            starts = em.side_by_side(self.args.pointer(em, "packed_c"), [*self.rep.outer, I32], em.mul(self._n, self._long))
            *self._block, self._via = [(s, start, self._long) for s, start in zip([*self.rep.outer, I32], starts, strict=True)]
        return em, wide, single

    def _rows(self, em: Emitter, i: str) -> list[str]:
        """Return the addresses of row i, one per component."""
        return [em.cell(matrix, i, 0) for matrix in self._block]

    def _load(self, low: Lowering, rows: list[str], j: str) -> list[Value]:
        return load_elements(low, self.rep.outer, rows, j)

    def _spread(self, low: Lowering, scalars: list[Value]) -> list[Value]:
        """Broadcast single elements to all lanes; elements of a group are vectors already."""
        return scalars if self.lanes > 1 else spread(low, self.rep.outer, scalars)

    def _along(self, wide: Lowering, single: Lowering, vectors: int = _UNROLLED) -> Iterator[tuple[Lowering, str]]:
        """Emit the body of a Python loop for all columns: by several vectors, by vectors, then one by one."""
        em, width = wide.em, self.width
        begin: str | int = 0
        if vectors > 1:
            begin = self._ends[vectors]
            with em.each(0, begin, vectors * width) as j:
                for v in range(vectors):
                    yield wide, str(em.add(j, v * width))
        with em.each(begin, self._ends[1], width) as j:
            yield wide, j
        if self.lanes == 1:
            with em.each(self._ends[1], self._long) as j:
                yield single, j

    def _product(self, low: Lowering, left: list[Value], right: list[Value]) -> list[Value]:
        return outer_product(self.rep, low, left, right, self._threshold[low])

    def _take_in(self, low: Lowering, pivots: list[Pivot], row_i: list[str], j: str, via: Via | None) -> None:
        """a_ij ← a_ij ⊕ left a_kj for each pivot in turn."""
        candidates = [self._product(low, left, self._load(low, row_k, j)) for left, row_k in pivots]
        update(low, self.rep, candidates, low.em.places(self.rep.outer, row_i, j), via)

    def _divergent(self, low: Lowering, pivot: list[Value]) -> str:
        """Emit 1 ⊕ p ≠ 1, for scalars."""
        one = constants(low, self.rep.outer, self.rep.one)
        return improved(low, self.rep.outer, None, one, low.evaluate(self.rep.add, one, pivot, self.rep.outer))

    def _refuse(self, em: Emitter, condition: str, k: str) -> None:
        """End the kernel at pivot k where the condition holds in some lane."""
        if self.lanes > 1:
            bits = em.let(f"bitcast <{self.lanes} x i1> {condition} to i{self.lanes}")
            condition = em.let(f"icmp ne i{self.lanes} {bits}, 0")
        with em.when(condition):
            em.put(I64, k, "%args", STATUS)
            em.jump("")

    def _close(self, name: str) -> Emitter:
        """Warshall's and Floyd's algorithm, several pivots at a time.

        Each pivot row applies the pivots before it, is tested, and then waits for the pivots after it. Other rows apply all pivots in
        a single pass, with the same result. A pivot's own row would only gain p a_kj, and 1 ⊕ p = 1.
        """
        em, _, single = self._open(f"{name}{self._kind}")

        def take_in(count: int, start: str | int, stop: str | int, k: str) -> None:
            em.line(f"call void @{name}{self._kind}_rows_{count}(ptr %args, i64 {start}, i64 {stop}, i64 {k})")

        def group(k: str, count: int) -> None:
            after = str(em.add(k, count))
            with em.each(k, after) as p:
                row = em.add(p, 1)
                with em.each(k, p) as earlier:
                    take_in(1, p, row, earlier)
                self._refuse(em, self._divergent(single, self._load(single, self._rows(em, p), str(em.mul(p, self.lanes)))), p)
            take_in(count, 0, self._n, k)
            with em.each(em.add(k, 1), after) as p:  # for the rows of earlier pivots
                take_in(1, k, p, p)

        whole: str | int = 0
        if self._together > 1:
            several = em.let(f"icmp sge i64 {self._n}, {_SEVERAL}")
            whole = em.select_i64(several, em.round_down(self._pivots, self._together), 0)
            with em.each(0, whole, self._together) as k:
                group(k, self._together)
        with em.each(whole, self._pivots) as k:
            group(k, 1)
        return em.done()

    def _rows_take_in(self, name: str, count: int, *, witness: bool) -> Emitter:
        """``rows(args, start, stop, k)``: apply `count` pivots from k on, in turn, to these rows, except to the pivots' own."""
        em, wide, single = self._open(f"{name}{self._kind}_rows_{count}", "ptr %args, i64 %start, i64 %stop, i64 %k")
        pivots = [str(em.add("%k", t)) for t in range(count)]
        rows, columns = [self._rows(em, k) for k in pivots], [str(em.mul(k, self.lanes)) for k in pivots]
        first = em.add(self.args.load(em, "first"), "%k") if witness else 0
        numbers = [em.let(f"trunc i64 {em.add(first, t)} to i32") for t in range(count)] if witness else []
        codes = {low: [em.splat(number, I32, low.width) for number in numbers] for low in (wide, single)}
        with em.each("%start", "%stop") as i, em.when(em.let(f"icmp uge i64 {em.sub(i, '%k')}, {count}")):
            row_i = self._rows(em, i)
            lefts: list[list[Value]] = []
            for column in columns:
                # a_ik after the earlier pivots
                left = self._load(single, row_i, column)
                for earlier, row_k in zip(lefts, rows, strict=False):
                    candidate = self._product(single, earlier, self._load(single, row_k, column))
                    left = single.evaluate(self.rep.add, left, candidate, self.rep.outer)
                lefts.append(left)
            factors = {low: [self._spread(low, left) for left in lefts] for low in (wide, single)}
            for low, j in self._along(wide, single, _UNROLLED // count):
                # a_ij ← a_ij ⊕ a_ik a_kj for each k
                via = (em.cell(self._via, i, j), codes[low]) if witness else None
                self._take_in(low, list(zip(factors[low], rows, strict=True)), row_i, j, via)
        return em.done()

    def _eliminate(self) -> Emitter:
        """Gauss-Jordan elimination."""
        em, wide, single = self._open(f"eliminate{self._kind}")
        with em.each(0, self._pivots) as k:
            row_k, column_k = self._rows(em, k), str(em.mul(k, self.lanes))
            star, missing = self._star(wide, single, self._load(single, row_k, column_k))
            self._refuse(em, missing, k)
            with em.each(0, self._n) as i, em.when(em.let(f"icmp ne i64 {i}, {k}")):
                row_i = self._rows(em, i)
                # a_ik ← a_ik p*
                left = self._product(single, self._load(single, row_i, column_k), star)
                factor = {low: self._spread(low, left) for low in (wide, single)}
                for low, j in self._along(wide, single):
                    # a_ij ← a_ij ⊕ (a_ik p*) a_kj
                    self._take_in(low, [(factor[low], row_k)], row_i, j, None)
                store_elements(single, self.rep.outer, row_i, column_k, left)
            factor = {low: self._spread(low, star) for low in (wide, single)}
            for low, j in self._along(wide, single):
                # a_kj ← p* a_kj
                store_elements(low, self.rep.outer, row_k, j, self._product(low, factor[low], self._load(low, row_k, j)))
            store_elements(single, self.rep.outer, row_k, column_k, star)
        return em.done()

    def _star(self, wide: Lowering, single: Lowering, pivot: list[Value]) -> tuple[list[Value], str]:
        """Return p* as scalars, and a condition: p* is undefined."""
        em = single.em
        if self.rep.star is None:
            return constants(single, self.rep.outer, self.rep.one), self._divergent(single, pivot)
        # On vectors, because mathematical functions are generated for vectors.
        spread = self._spread(wide, pivot)
        (undefined,) = wide.evaluate([self.rep.star_undefined], spread, (), [wide.flag])
        missing = wide.compare("ne", wide.flag, undefined.name, wide.flag.constant(0, wide.width))
        result = wide.evaluate(self.rep.star, spread, (), self.rep.outer)
        if self.lanes > 1:
            return result, missing
        stars = [
            Value(em.let(f"extractelement {s.vector(wide.width)} {v.name}, i64 0"), s) for v, s in zip(result, self.rep.outer, strict=True)
        ]
        return stars, em.let(f"extractelement {wide.mask} {missing}, i64 0")
