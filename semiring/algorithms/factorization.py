"""The elimination of a sparse graph, with checks of the numbers before and after, and the diagnosis of divergent cycles.

If only rounding makes a cycle improve, potentials reweigh the edges so that no cycle can improve (Johnson, 1977). The elements of the
reweighed graph are the wanted elements times the potentials of both ends.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from semiring.algebra.definition import Semiring
from semiring.algorithms.bellman_ford import inverse, reweighed
from semiring.algorithms.csr import CSR
from semiring.algorithms.distribution import Distribution, distribution
from semiring.algorithms.divergence import Diagnosis
from semiring.algorithms.elimination import Elimination
from semiring.algorithms.rows_of_edges import rows_of_edges
from semiring.algorithms.schedules import eliminates
from semiring.algorithms.search import searches_for
from semiring.algorithms.sums import Sums, diverged, is_inverse, nonnegative_sums, pivoted
from semiring.algorithms.symbolic import Symbolic
from semiring.algorithms.tight_edges import ends_along_tight_edges
from semiring.arrays.conversion import Array, Values
from semiring.arrays.devices import host, is_gpu, on_device, to_gpu
from semiring.arrays.pieces import slices
from semiring.common.errors import DivergentPivot
from semiring.common.progress import Meter
from semiring.kernels import machine
from semiring.kernels.compressed import EliminationPanels
from semiring.kernels.operations import operations_for
from semiring.kernels.overflow.closures import guard_for, statistics_of
from semiring.kernels.select import eliminations_for, engine_for, fronts_for, sweeps_for

__all__ = ["Factorization", "Kept"]


class Kept(NamedTuple):
    """The result of an elimination."""

    panels: EliminationPanels
    potentials: tuple[Values, Values] | None  # potentials of the vertices, and their inverses, if the edges were reweighed


class Factorization:
    """An eliminated graph over a semiring, updated when weights change.

    Methods raise `DivergenceError` for divergent cycles, and `OverflowRiskError` for sums that could leave the dtype.
    """

    def __init__(
        self,
        semiring: Semiring,
        edges: CSR,
        found: Symbolic,
        names: Callable[[int], Any],  # the caller's name of a vertex, for errors
        *,
        threads: int | None,
        check: bool = True,  # refuse weights whose sums could leave the dtype
        kept: Kept | None = None,  # an earlier elimination of the same graph, instead of a new one
        device: str = "cpu",  # or the GPU that computes and holds rows and columns
    ) -> None:
        self.semiring, self.edges, self.check, self.device, self._names = semiring, edges, check, device, names
        engine = engine_for(semiring, edges.dtypes, "cpu", threads, witness=True)  # with a witness, so no matrices of bits
        by_star = eliminates(semiring, edges.dtypes, paths=False)
        kernels, panels = eliminations_for(semiring, edges.dtypes, threads), None if kept is None else kept.panels
        with on_device(device):
            sweeps = sweeps_for(semiring, edges.dtypes, device, found.nodes, found.parent)
            tree = found.nodes, found.parent, found.entries
            fronts = fronts_for(semiring, edges.dtypes, device, found.fill.steps, tree, by_star=by_star)
            self.elimination = Elimination(engine, kernels, found, by_star=by_star, panels=panels, sweeps=sweeps, fronts=fronts)
        self._diverges: bool | None = None
        self._superlu: Any = None
        self._operations = operations_for(semiring, edges.dtypes)
        self._potentials = None if kept is None else kept.potentials
        if kept is None:
            self._eliminate(edges.weights, None)
        else:
            self._guarded(edges.weights)

    @property
    def kept(self) -> Kept:
        """The result of the elimination, for another `Factorization` of the same graph."""
        return Kept(self.elimination.panels, self._potentials)

    @property
    def found(self) -> Symbolic:
        """The symbolic analysis."""
        return self.elimination.found

    def update(self, numbers: Array, weights: Values) -> None:
        """Change the weights of some edges; on an error the old weights are restored."""
        before = self.edges.weights
        after = tuple(w.copy() for w in before)
        for w, new in zip(after, weights, strict=True):
            w[numbers] = new
        try:
            self._eliminate(after, numbers if len(numbers) < len(self.edges.heads) else None)
        except BaseException:  # also KeyboardInterrupt
            self._eliminate(before, None)  # everything, as any panel may be overwritten
            raise

    def located(self, tails: Array, heads: Array) -> Array:
        """Return the numbers of the edges between given ends; −1 for no edge."""
        edges = self.edges
        if tails is edges.tails and heads is edges.heads:
            return np.arange(len(heads))
        key, wanted = edges.places, tails.astype(np.int64) * edges.n + heads
        numbers = np.searchsorted(key, wanted)
        there = numbers < len(key)
        there[there] = key[numbers[there]] == wanted[there]
        return np.where(there, numbers, -1)

    def between(
        self,
        sources: Array,
        targets: Array,
        *,
        every_source: bool = False,
        every_target: bool = False,
        on_host: bool = True,  # False leaves the elements on the device
        meter: Meter | None = None,
    ) -> Values:
        """Return elements of the closure between vertices, by rows or by columns, whichever are fewer.

        `every_source` is True if the sources are all vertices in order. The meter gets n + m steps for each row or column.
        """
        backward = len(targets) < len(sources)
        if (self._guard.needs_rows or self._is_no_sum) and not (every_source if backward else every_target):
            every = np.arange(self.edges.n)
            ends = (every, targets) if backward else (sources, every)
            found = self.between(*ends, every_source=backward, every_target=not backward, on_host=on_host, meter=meter)
            return tuple(v[sources] if backward else v[:, targets] for v in found)
        if not on_host and is_gpu(self.device) and min(len(sources), len(targets)) < machine.GPU_SWEEP:
            found = self.between(sources, targets, every_source=every_source, every_target=every_target, meter=meter)
            with on_device(self.device):
                return tuple(map(to_gpu, found))
        with on_device("cpu" if on_host else self.device):
            if (superlu := self._pivoted()) is not None:
                entries = _inverted(superlu, sources, targets, self.edges.dtypes[0], backward=backward)
                out: Values = (entries if on_host or not is_gpu(self.device) else to_gpu(entries),)
            else:
                out = self._swept(sources, targets, every_source, every_target, on_host=on_host, backward=backward, meter=meter)
            self._guard.after(out, None)
            if self._is_no_sum and (row := diverged(out, self._sums)) is not None:
                raise self._diagnosis().elimination(int(sources[row]), self.edges.dtypes)
        return out

    def _swept(
        self, sources: Array, targets: Array, every_source: bool, every_target: bool, *, on_host: bool, backward: bool, meter: Meter | None
    ) -> Values:
        out = self._empty((len(sources), len(targets)), backward=backward, on_host=on_host)
        tell = self._telling(meter)
        if backward:
            self.elimination.rows(targets, None if every_source else sources, out, backward=True, tell=tell)
        else:
            self.elimination.rows(sources, None if every_target else targets, out, tell=tell)
        if self._potentials is None:
            return out
        p, back = self._potentials
        found = self._multiplied(tuple(v[sources, None] for v in back), tuple(map(host, out)))
        found = self._multiplied(found, tuple(v[targets] for v in p))
        return found if on_host or not is_gpu(self.device) else tuple(map(to_gpu, found))

    @property
    def _is_no_sum(self) -> bool:
        """True if sums of non-negative numbers left negative numbers in the panels: some rows diverge."""
        if self._diverges is None:
            with on_device(self.device):
                panels = self.elimination.panels if any(sums := self._sums) else ()
            self._diverges = any(diverged(tuple([v[None] for v in side]), sums) is not None for side in panels)
        return self._diverges

    @property
    def _sums(self) -> Sums:
        return tuple([bool(v) for v in nonnegative_sums(self.semiring, self.edges.weights)])

    def _pivoted(self) -> Any:
        """Return SciPy's factor with pivoting if this elimination lost digits, else None."""
        if self._superlu is None:
            plain = is_inverse(self.semiring) and self.edges.dtypes[0].kind == "f" and (self._is_no_sum or not any(self._sums))
            self._superlu = plain and pivoted(self.edges, lambda b: self.elimination.solve((b,))[0])
        return self._superlu or None

    def _diagnosis(self) -> Diagnosis:
        matrix = self.edges.arrays()
        return Diagnosis(self.semiring, lambda: matrix, self._names)

    def blocks(self, meter: Meter | None = None) -> Iterator[tuple[int, Values]]:
        """Yield all rows of the closure by blocks of one sweep, each block with the number of the first row."""
        every = np.arange(self.edges.n)
        for some in slices(self.edges.n, 1, self.elimination.together):
            yield some.start, self.between(every[some], every, every_target=True, meter=meter)

    def _empty(self, shape: tuple[int, int], *, backward: bool, on_host: bool) -> Values:
        dtypes = self.edges.dtypes
        if on_host or not is_gpu(self.device):
            return tuple(np.empty(shape, d) for d in dtypes)
        import cupy

        return tuple(cupy.empty(shape, d, order="F" if backward else "C") for d in dtypes)

    def distribution(self, most: int, *, meter: Meter | None = None) -> Distribution | None:
        """Return the distribution of all distances over min-plus, with a histogram of at most `most` cells, none for 0.

        Return None for negative weights, which need whole rows. The meter counts as in `between`.
        """
        edges, (weights,) = self.edges, self.edges.weights
        if np.signbit(weights).any():
            return None
        lengths = weights[(edges.tails != edges.heads) & (weights != edges.zero[0])]
        least = float(lengths.min()) if len(lengths) else None
        found = distribution(self.elimination, symmetric=edges.symmetric, least=least, most=most, tell=self._telling(meter))
        self._guard.after((found.farthest[None],), None)
        return found

    def _telling(self, meter: Meter | None) -> Callable[[int, int], None]:
        def tell(rows: int, worker: int) -> None:
            if meter is not None:
                meter.add(rows * (self.edges.n + len(self.edges.heads)), tell=worker == 0)

        return tell

    def solve(self, b: Values) -> Values:
        """Return the least solution of x = A ⊗ x ⊕ b, for b of shape (n, k)."""
        guard = guard_for(self.semiring, self.edges.dtypes, self.edges.n, check=self.check)  # b adds one edge to each path
        weights, given = (statistics_of(self.semiring, values) for values in (self.edges.weights, b))
        guard.before(tuple(x | y for x, y in zip(weights, given, strict=True)))
        signed, self.elimination.engine.signed = self.elimination.engine.signed, guard.signed
        try:
            found = self.solved(b)
        finally:
            self.elimination.engine.signed = signed
        guard.after(found, None)
        return found

    def solved(self, b: Values, *, transposed: bool = False) -> Values:
        """Solve without checks of numbers; `transposed`, over ⊕ that is not idempotent: x = x ⊗ A ⊕ b, for the columns of b as rows."""
        if (superlu := self._pivoted()) is not None:
            return (np.ascontiguousarray(superlu.solve(b[0], "T" if transposed else "N")),)
        if self._potentials is None:
            return self.elimination.solve(b, transposed=transposed)
        p, back = (tuple(v[:, None] for v in values) for values in self._potentials)
        return self._multiplied(back, self.elimination.solve(self._multiplied(p, b)))

    def origins(self, b: Values, x: Values) -> tuple[Array, Values]:
        """Return the vertex j at the end of a best path of each x_i, −1 for none, and the weight of the path; ⊕ must be selective."""
        offers, rows = (tuple(np.ascontiguousarray(v.T) for v in values) for values in (b, x))
        ends, walks = np.empty(rows[0].shape, np.int32), tuple(map(np.empty_like, rows))
        find = partial(ends_along_tight_edges, self.semiring, threads=self.elimination.kernels.threads)
        for i in np.flatnonzero(~find(self.edges, offers, rows, ends, walks)).tolist():  # rounding hides tight edges
            part = slice(i, i + 1)
            given, row, walk = (tuple(v[part] for v in values) for values in (offers, rows, walks))
            find(self._tree_edges(tuple(v[0] for v in given)), given, row, ends[part], walk)
        return ends.T, tuple(w.T for w in walks)

    def _tree_edges(self, offers: Values) -> CSR:
        """Search best paths to a further vertex, to which an edge of weight b_j leads from each j; return only the edges of their tree."""
        edges, n, back = self.edges, self.edges.n, self.edges.transposed()
        weights = tuple(map(np.append, back.weights, offers))
        graph = CSR(n + 1, np.append(back.starts, len(back.heads) + n), np.append(back.heads, np.arange(n)), weights, edges.zero)
        tree, searches = np.full((1, n + 1), -1, np.int32), searches_for(self.semiring, edges.dtypes, "cpu")
        rows_of_edges(self.semiring, graph.transposed(), np.array([n]), backward=True, tree=tree, searches=searches)
        kept = tree[0, edges.tails] == edges.heads
        return CSR.of(edges.tails[kept], edges.heads[kept], tuple(w[kept] for w in edges.weights), n, edges.zero)

    def _eliminate(self, weights: Values, changed: Array | None) -> None:
        """Eliminate the graph with new weights; `changed` numbers the changed edges, None for all."""
        self._guarded(weights)
        if self._potentials is not None:
            changed = None
        self.edges = self.edges.with_weights(weights)
        self._potentials = self._diverges = self._superlu = None
        with on_device(self.device):
            try:
                self.elimination.run(weights, changed)
            except DivergentPivot as stop:
                self._by_potentials(stop.vertex)

    def _guarded(self, weights: Values) -> None:
        """Refuse weights whose sums could leave the dtype."""
        self._guard = guard_for(self.semiring, self.edges.dtypes, max(0, self.edges.n - 1), check=self.check)
        self._guard.before(statistics_of(self.semiring, weights))
        self.elimination.engine.signed = self._guard.signed

    def _by_potentials(self, vertex: int) -> None:
        """Raise for a divergent cycle; eliminate again by potentials if only rounding made the pivot diverge."""
        semiring, edges = self.semiring, self.edges
        diagnosis = self._diagnosis()
        if self.elimination.by_star:
            raise diagnosis.elimination(vertex, edges.dtypes) from None
        p = diagnosis.potentials(vertex, edges.arrays(), None, np.arange(edges.n))
        back = inverse(semiring, p)
        if back is None:
            raise diagnosis.only_rounding(edges.dtypes, large=False) from None
        p, back = (tuple(v.astype(d) for v, d in zip(values, edges.dtypes, strict=True)) for values in (p, back))
        self.elimination.run(reweighed(semiring, edges, p, back).weights)
        self._potentials = p, back

    def _multiplied(self, x: Values, y: Values) -> Values:
        with np.errstate(all="ignore"):
            return tuple(np.array(v) for v in self._operations.mul(x, y))  # copies: ⊗ may return an operand


def _inverted(superlu: Any, sources: Array, targets: Array, dtype: np.dtype[Any], *, backward: bool) -> Array:
    """Return entries of (I − A)⁻¹ between vertices: rows from the sources, or `backward` columns to the targets."""
    ends, others = (targets, sources) if backward else (sources, targets)
    units = np.zeros((superlu.shape[0], len(ends)), dtype)
    units[ends, np.arange(len(ends))] = 1
    found = superlu.solve(units, "N" if backward else "T")[others]
    return np.ascontiguousarray(found if backward else found.T)
