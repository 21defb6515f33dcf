"""Closures with turn costs: of the line graph around the vertices whose turns have costs, and the way back to vertices.

A vertex whose turns all cost the semiring's one stays a node. Any other vertex becomes a node where paths start, a node for each edge into
the vertex, and a node where paths end. An edge of the expansion is a turn and the edge after the turn.
"""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from semiring.algebra.definition import Semiring
from semiring.algorithms.bellman_ford import filled
from semiring.algorithms.csr import CSR, in_order, present
from semiring.algorithms.nearest import NearestSources
from semiring.arrays.conversion import Array, conversions
from semiring.common.errors import SemiringError, noted
from semiring.common.forks import cached_property
from semiring.execution.question import GivenGraph, Question, Selection
from semiring.execution.strategy import run
from semiring.graphs import EdgeList, edges_of
from semiring.graphs.coo import COO
from semiring.graphs.dense import Reading
from semiring.graphs.edge_list import HIDDEN
from semiring.graphs.turns import TurnCosts
from semiring.graphs.weights import components_of
from semiring.kernels.operations import Operations
from semiring.planning import plan
from semiring.results.paths import paths_in
from semiring.results.store import Names

__all__ = ["Expansion", "expansion", "solve_with_turns"]

Values = tuple[Array, ...]


@dataclass(frozen=True, eq=False)
class Expansion:
    """A graph of nodes whose paths are those of a graph with turn costs; paths from vertex v start at node v."""

    graph: CSR  # the graph without turn costs
    labels: tuple[Hashable, ...]
    edges: CSR
    ends: Array  # the node at which paths to each vertex end
    visits: Array  # the vertex of each node; −1 for nodes where paths only end

    @cached_property
    def names(self) -> tuple[Hashable, ...]:
        """The vertex of each node, for messages."""
        vertices = self.visits.copy()
        vertices[self.ends] = np.arange(len(self.ends))
        return tuple([self.labels[v] for v in vertices.tolist()])


def solve_with_turns(graph: EdgeList, question: Question) -> Any:
    """Return the closure of a list of edges with turn costs, or its `Paths`; see `semiring.execution.strategy.solve`."""
    options = question.options
    if not (options.comm is options.checkpoint is options.memory_limit is None):
        raise SemiringError("turn costs are for one process and its memory; leave out comm, checkpoint and memory_limit")
    with noted("the closure", question.semiring, graph):
        reading = {"nonedge": options.nonedge, "dtype": options.dtype, "presence": question.presence, "weight": options.weight}
        expanded = expansion(graph, question.semiring, reflexive=question.reflexive, **reading)
        n = expanded.graph.n
        chosen = Selection.of(question, n, graph.labels) if question.selects else Selection.all_of(n)
        starts = replace(chosen.sources, every=False)
        ends = replace(chosen.targets, numbers=expanded.ends[chosen.targets.numbers], every=False)
        nodes = Selection(expanded.edges.n, starts, ends, chosen.backward)
        given = GivenGraph(expanded.edges, expanded.names)
        answer = run(plan(question.problem(given, nodes)), given, question, nodes)
    store = getattr(answer, "_store", None)
    if store is None:
        return answer
    found = replace(
        store,
        names=Names(graph.labels, n),
        sources=replace(store.sources, every=chosen.sources.every),
        targets=replace(store.targets, numbers=chosen.targets.numbers, every=chosen.targets.every),
        kept=expanded.graph.arrays,
        expansion=(store, expanded.visits),
    )
    return paths_in(found, answer._restore)


class NearestWithTurns(NamedTuple):
    """The `NearestSources` of each vertex, from those of nodes."""

    values: Values
    sources: Array
    nodes: NearestSources
    expanded: Expansion

    @classmethod
    def of(cls, nodes: NearestSources, expanded: Expansion) -> NearestWithTurns:
        """Take the elements of the nodes where paths end."""
        return cls(tuple([v[expanded.ends] for v in nodes.values]), nodes.sources[expanded.ends], nodes, expanded)

    def path(self, vertex: int, rank: int = 0) -> list[int]:
        """Return the vertices of the path from a source."""
        visits = self.expanded.visits[np.array(self.nodes.path(int(self.expanded.ends[vertex]), rank), np.intp)]
        return list(visits[visits >= 0].tolist())


def expansion(graph: EdgeList, semiring: Semiring, *, reflexive: bool = True, **reading: Any) -> Expansion:
    """Read a list of edges with turn costs, and expand it; `reading` has the options of `semiring.graphs.edges_of`."""
    turns = graph.turns
    assert turns is not None
    listed = edges_of(turns.graph, semiring, **reading)
    assert listed is not None
    known = _known.get(graph)
    if known is not None and known[0] == (semiring, reflexive) and known[1].graph is listed[0]:
        return known[1]
    costs = _turns_of(turns, listed[0], semiring, presence=reading.get("presence", False))
    found = Expansion(listed[0], graph.labels, *_expanded(listed[0], costs, semiring, reflexive=reflexive))
    _known[graph] = (semiring, reflexive), found
    return found


_known: WeakKeyDictionary[EdgeList, tuple[tuple[Semiring, bool], Expansion]] = WeakKeyDictionary()
"""The last expansion of each list of edges."""


def _turns_of(turns: TurnCosts, edges: CSR, semiring: Semiring, *, presence: bool) -> CSR:
    """Return a matrix of turn costs other than one, with a row and a column for each edge."""
    before, after = (np.searchsorted(edges.places, places) for places in (turns.before, turns.after))
    some = np.flatnonzero(_at(edges.places, before, turns.before) & _at(edges.places, after, turns.after))  # edges with an element
    costs = [turns.costs[turn] for turn in some.tolist()]
    if presence:  # as where a turn is forbidden by an infinite cost
        costs = [None if isinstance(c, float | np.floating) and math.isinf(c) else c for c in costs]

    def where(index: tuple[int, ...]) -> str:
        return turns.name(int(some[index[0]]))

    weights = components_of([HIDDEN if c is None else c for c in costs], semiring, where)
    dtype = edges.dtypes[0] if len(edges.dtypes) == 1 else edges.dtypes
    reading = Reading(dtype=dtype, presence=presence, closed=True)
    found = COO(before[some], after[some], weights, len(edges.heads), where).csr(semiring, reading)
    _, one = semiring.identities(edges.dtypes)
    other = present(found.weights, one)
    return CSR.of(found.tails[other], found.heads[other], tuple([w[other] for w in found.weights]), found.n, found.zero)


def _at(places: Array, position: Array, wanted: Array) -> Array:
    found: Array = np.append(places, -1)[position] == wanted
    return found


def _expanded(edges: CSR, turns: CSR, semiring: Semiring, *, reflexive: bool) -> tuple[CSR, Array, Array]:
    """Return the edges of an expansion, and the `ends` and `visits` of `Expansion`."""
    n, m, heads = edges.n, len(edges.heads), edges.heads
    _, one = semiring.identities(edges.dtypes)
    special = np.zeros(n, dtype=bool)
    special[heads[turns.tails]] = True
    into, split = np.flatnonzero(special[heads]), np.flatnonzero(special)
    ends, nodes = np.arange(n), heads.copy()
    nodes[into] = n + np.arange(len(into))  # the node of each edge
    ends[split] = n + len(into) + np.arange(len(split))
    visits = np.concatenate([np.arange(n), heads[into], np.full(len(split), -1)])
    position, after = edges.leaving(heads[into])
    before = into[position]
    weights = tuple([w[after] for w in edges.weights])
    at = np.searchsorted(before * m + after, turns.places)
    products = _products(semiring, turns.weights, tuple([w[at] for w in weights]))
    for w, p in zip(weights, products, strict=True):
        w[at] = p
    there = present(weights, edges.zero)
    there[at] &= present(turns.weights, edges.zero)
    finals = split if reflexive else split[:0]
    count = len(into) + len(finals)
    tails = np.concatenate([edges.tails, nodes[before][there], nodes[into], finals])
    tips = np.concatenate([nodes, nodes[after][there], ends[heads[into]], ends[finals]])
    parts = zip(edges.weights, weights, one, strict=True)
    elements = tuple([np.concatenate([w, turned[there], filled(count, o, w.dtype)]) for w, turned, o in parts])
    size = len(visits)
    return CSR.of(*in_order(size, tails, tips, elements, lambda places, found: (places, found)), size, edges.zero), ends, visits


def _products(semiring: Semiring, costs: Values, weights: Values) -> Values:
    """Return turn cost ⊗ weight for each turn; integers are computed exactly, and refused if they do not fit."""
    dtypes = tuple([w.dtype for w in weights])
    if all(d.kind not in "iu" for d in dtypes):
        with np.errstate(all="ignore"):
            return tuple(map(np.asarray, Operations(semiring, dtypes).mul(costs, weights)))
    exact = (np.dtype(object),) * len(dtypes)
    widen, narrow = conversions(semiring, dtypes, exact), conversions(semiring, exact, dtypes)
    first, second = (tuple([to(v, str) for to, v in zip(widen, values, strict=True)]) for values in (costs, weights))
    products = Operations(semiring, exact).mul(first, second)
    return tuple([to(v, lambda _: "a turn cost and the weight after the turn together") for to, v in zip(narrow, products, strict=True)])
