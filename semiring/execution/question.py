"""A question about a graph: what the caller gave and wants, read and made a problem for the planner; and the answer in the caller's kind.

Calls, `explain`, lists of graphs and the drop-ins all begin here, so that all read alike and ask for the same plan.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from semiring.algebra.definition import Semiring
from semiring.algorithms.csr import CSR
from semiring.arrays.conversion import Array
from semiring.arrays.devices import device_of, holds_symbols, namespace
from semiring.common.forks import cached_property
from semiring.graphs import Graph, edges_of
from semiring.graphs.dense import Reading
from semiring.graphs.entering import entering
from semiring.graphs.read import GivenMatrix, reading_of
from semiring.graphs.vertices import Vertices, chosen
from semiring.planning import Problem, closure_problem, edges_problem
from semiring.planning.options import Options, worst_element
from semiring.planning.problem import Wanted

__all__ = ["GivenGraph", "Question", "Selection", "Values", "answer_rows"]

Values = tuple[Any, ...]


class Question(NamedTuple):
    """A closure that a caller asks for: semiring, options, A* or A⁺, and what is wanted of it.

    `presence` is described by `semiring.graphs.read_graph`, and `wanted` by `Problem`.
    """

    semiring: Semiring
    options: Options = Options()
    reflexive: bool = True
    presence: bool = False
    wanted: Wanted = "elements"

    @property
    def paths(self) -> bool:
        """True if the paths are wanted too."""
        return bool(self.options.paths or self.semiring.witness)

    @property
    def cuts(self) -> bool:
        """True if only the elements within a limit, or the k best ones of each row, are wanted."""
        return self.options.limit is not None or self.options.k is not None

    @property
    def selects(self) -> bool:
        """True if the caller names sources or targets."""
        return self.options.sources is not None or self.options.targets is not None

    def read(self, graph: Any) -> GivenGraph:
        """Read a graph as far as planning needs it: the edges of a sparse graph, and shape and dtypes of a dense matrix."""
        semiring, options = self.semiring, self.options
        listed = edges_of(graph, semiring, nonedge=options.nonedge, dtype=options.dtype, presence=self.presence, weight=options.weight)
        if listed is not None:
            edges, labels = listed
            return GivenGraph(edges if options.node_weight is None else entering(graph, edges, semiring, options.node_weight), labels)
        whole = options.sources is None and options.targets is None
        paths, check = whole and bool(options.paths or semiring.witness), options.check or not whole
        reading = reading_of(semiring, Reading(options.nonedge, options.dtype, options.overwrite, self.presence, paths, check))
        matrix = GivenMatrix.of(graph, semiring, reading)
        if options.node_weight is None:
            return GivenGraph(matrix=matrix)
        return GivenGraph(graph=entering(graph, matrix.read(overwrite=False), semiring, options.node_weight))

    def selection(self, given: GivenGraph) -> Selection | None:
        """Return the rows and columns that are asked for; None for all of them."""
        return Selection.of(self, given.n, given.labels) if self.selects else None

    def worst(self, dtypes: tuple[np.dtype[Any], ...]) -> tuple[Any, ...]:
        """Return the least preferred element within the limit; the zero without one."""
        return worst_element(self.semiring, dtypes, self.options.limit)

    def problem(self, given: GivenGraph, selection: Selection | None = None) -> Problem:
        """State the problem for the planner."""
        rows = None if selection is None else len(selection.roots)
        wanted: Wanted = "pair" if selection is not None and selection.is_pair and not self.cuts else self.wanted
        if given.edges is not None:
            limit = self.worst(given.edges.dtypes) if self.cuts else None
            targets = given.n if selection is None else len(selection.targets.numbers)
            found = None if self.options.k is None else min(1.0, self.options.k / max(1, targets))
            how: dict[str, Any] = {"reflexive": self.reflexive, "wanted": wanted, "limit": limit, "found": found}
            return edges_problem(self.semiring, given.edges, self.options, rows, **how)
        m = given.matrix
        if m is not None and selection is None:
            return closure_problem(self.semiring, m.form.dtypes, m.shape, self.options, place=m.place, wanted=wanted)
        dtypes, shape, place = given.form
        symbolic = selection is not None and any(d.kind == "O" for d in dtypes) and holds_symbols(given.arrays)
        more: dict[str, Any] = {"searches": rows, "symbolic": symbolic, "wanted": wanted}
        return closure_problem(self.semiring, dtypes, shape, self.options, place=place, **more)


@dataclass(eq=False, slots=True)
class GivenGraph:
    """A graph that a caller passed: the edges of a sparse graph, an unread dense matrix, or a graph that was read."""

    edges: CSR | None = None
    vertices: tuple[Hashable, ...] | None = None
    matrix: GivenMatrix | None = None
    graph: Graph | None = None

    @property
    def form(self) -> tuple[tuple[np.dtype[Any], ...], tuple[int, ...], str]:
        """The dtypes, the shape and the place of a dense matrix."""
        if self.matrix is not None:
            return self.matrix.form.dtypes, self.matrix.shape, self.matrix.place
        assert self.graph is not None
        return self.graph.dtypes, (*self.graph.batch, self.graph.n, self.graph.n), device_of(self.graph.values[0])

    @property
    def n(self) -> int:
        """The number of vertices."""
        return self.edges.n if self.edges is not None else self.form[1][-1]

    @property
    def labels(self) -> Sequence[Hashable] | None:
        """The caller's names of the vertices; None for 0 … n − 1."""
        if self.matrix is not None:
            return (self.matrix.weights or self.matrix.inputs[0]).labels
        return self.vertices if self.graph is None else self.graph.labels

    @property
    def arrays(self) -> tuple[Any, ...]:
        """The arrays of the matrix, where they lie; of a sparse graph, objects that read single rows."""
        if self.edges is not None:
            return self.edges.arrays()
        if self.matrix is not None:
            return self.matrix.arrays if self.matrix.weights is None else (self.matrix.weights.array,)
        assert self.graph is not None
        return self.graph.values

    def read(self) -> Graph:
        """Read the dense matrix, once."""
        if self.graph is None:
            assert self.matrix is not None
            self.graph = self.matrix.read()
        return self.graph


@dataclass(frozen=True, eq=False)
class Selection:
    """The rows (sources) and columns (targets) of a closure that are asked for.

    `backward` is True where paths are followed from the targets, because no sources are named or fewer targets are.
    """

    n: int
    sources: Vertices
    targets: Vertices
    backward: bool = False

    @classmethod
    def of(cls, question: Question, n: int, labels: Sequence[Hashable] | None) -> Selection:
        """Look up the vertices that the caller names."""
        options = question.options
        sources, targets = chosen(options.sources, n, labels, "sources"), chosen(options.targets, n, labels, "targets")
        fewer = len(targets.numbers) < len(sources.numbers) and not question.paths
        if options.k is not None:  # searches from sources stop at the k-th target
            return cls(n, sources, targets)
        return cls(n, sources, targets, options.sources is None or (options.targets is not None and fewer))

    @classmethod
    def all_of(cls, n: int) -> Selection:
        """Select all rows and columns."""
        return cls(n, Vertices.all_of(n), Vertices.all_of(n))

    @cached_property
    def roots(self) -> Array:
        """The vertices at which paths begin (`backward`: end), each once: in the order of the caller, or else ascending."""
        ends = self.targets if self.backward else self.sources
        numbers = ends.numbers
        if ends.every or len(numbers) == 1 or (numbers[1:] > numbers[:-1]).all():
            return numbers
        once = np.unique(numbers)
        return numbers if len(once) == len(numbers) else once

    @property
    def own(self) -> Array | None:
        """The place among the roots of each vertex that the caller named; None if these are the roots."""
        ends = (self.targets if self.backward else self.sources).numbers
        return None if ends is self.roots or np.array_equal(ends, self.roots) else np.searchsorted(self.roots, ends)

    @property
    def shape(self) -> tuple[int, int]:
        """The shape of what is computed: a row for each root (`backward`: a column)."""
        return (self.n, len(self.roots)) if self.backward else (len(self.roots), self.n)

    @property
    def is_pair(self) -> bool:
        """True for one source and a different target."""
        sources, targets = self.sources.numbers, self.targets.numbers
        return len(sources) == len(targets) == 1 and bool(sources[0] != targets[0])


def answer_rows(
    question: Question,
    selection: Selection,
    g: Graph,
    values: Values,
    tree: Any,
    kept: Callable[[], Values],
    *,
    graph: CSR | None = None,
    whole: Callable[[], Array] | None = None,
) -> Any:
    """Return rows and columns in the order in which the caller named them, or the paths of a tree for each root.

    `values` and `tree` have a row for each root (`backward`: a column), and `g` has the labels and the caller's kind. `kept` gives the
    caller's matrix or edges, on which paths are checked. `graph` is the sparse graph, where all its vertices are rows and columns. `whole`
    gives the tree of all vertices, where `tree` has one path of it.
    """
    from semiring.results.paths import paths_in  # only where rows are wanted: a first call should be quick
    from semiring.results.store import Names, PredecessorTrees, shown

    sources, targets, n, own = selection.sources, selection.targets, selection.n, selection.own
    if selection.backward:
        row, column = None if sources.every else sources.numbers, own
    else:
        row, column = own, None if targets.every else targets.numbers
    values = tuple([_part(v, row, column) for v in values])
    restore = g.restore_part(sources.numbers, targets.numbers)
    if tree is None:
        return shown(values, sources, targets, restore)
    tree = _part(tree, None, own) if selection.backward else _part(tree, own, None)
    names, backward = Names(g.labels, n), selection.backward
    store = PredecessorTrees(
        question.semiring, values, names, sources, targets, question.reflexive, kept, tree, backward, graph=graph, whole=whole
    )
    return paths_in(store, restore, g.library)


def _part(array: Any, rows: Array | None, columns: Array | None) -> Any:
    """Return some rows and columns of an array of shape (…, m, n), None for all of them."""
    xp = namespace(array)
    for axis, some in ((-2, rows), (-1, columns)):
        if some is not None:
            array = array.take(xp.asarray(some), axis=axis)
    return xp.ascontiguousarray(array)
