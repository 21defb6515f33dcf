"""Closures with turn costs: of the line graph around the vertices whose turns have costs, and the way back to vertices.

A vertex whose turns all cost the semiring's one stays a node. Any other vertex becomes a node where paths start, a node for each edge into
the vertex, and a node where paths end. An edge of the expansion is a turn and the edge after the turn.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable
from dataclasses import replace
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from semiring.algebra.definition import Semiring
from semiring.algorithms.bellman_ford import filled
from semiring.algorithms.csr import CSR, in_order, present
from semiring.algorithms.nearest import NearestSources
from semiring.arrays.conversion import Array, Values, conversions
from semiring.arrays.pieces import HOST, slices
from semiring.common.errors import SemiringError, noted
from semiring.execution.question import GivenGraph, Question, Selection
from semiring.graphs import EdgeList
from semiring.graphs.coo import COO
from semiring.graphs.dense import Reading
from semiring.graphs.edge_list import HIDDEN
from semiring.graphs.read import one_graph
from semiring.graphs.turns import TurnCosts
from semiring.graphs.weights import components_of
from semiring.kernels.operations import Operations
from semiring.planning import plan
from semiring.results.paths import paths_in
from semiring.results.store import Names, visited

__all__ = ["Expansion", "expansion", "solve_with_turns"]


class Expansion(NamedTuple):
    """A graph of nodes whose paths are those of a graph with turn costs; paths from vertex v start at node v."""

    graph: CSR  # the graph without turn costs
    edges: CSR
    ends: Array  # the node at which paths to each vertex end
    visits: Array  # the vertex of each node, up to the first node where paths only end
    names: tuple[Hashable, ...]  # the vertex of every node, for messages

    def nearest(self, nodes: NearestSources) -> Any:
        """Return the nearest sources of vertices, from those of nodes."""
        return NearestWithTurns.of(nodes, self)


def solve_with_turns(graph: EdgeList, question: Question, run: Callable[..., Any]) -> Any:
    """Return the closure of a list of edges with turn costs, or its `Paths`; see `solve` and `run` of `semiring.execution.strategy`."""
    options = question.options
    if not (options.comm is options.checkpoint is options.memory_limit is None):
        raise SemiringError("turn costs are for one process and its memory; leave out comm, checkpoint and memory_limit")
    with noted("the closure", question.semiring, graph):
        reading = {"nonedge": options.nonedge, "dtype": options.dtype, "presence": question.presence, "weight": options.weight}
        expanded = expansion(graph, question.semiring, reflexive=question.reflexive, **reading)
        n = expanded.graph.n
        chosen = Selection.of(question, n, graph.labels) if question.selects else Selection.all_of(n)
        sources = replace(chosen.sources, every=False)
        targets = replace(chosen.targets, numbers=expanded.ends[chosen.targets.numbers], every=False)
        nodes = Selection(expanded.edges.n, sources, targets, chosen.backward)
        given = GivenGraph(expanded.edges, expanded.names)
        how = plan(question.problem(given, nodes))
        plain = how.strategy == "search" and not how.paths and not question.cuts
        answers = [run(how, given, question, part) for part in (_parts(nodes) if plain else [nodes])]
    if plain:
        return _joined(answers, -1 if nodes.backward else -2)
    store = getattr(answers[0], "_store", None)
    if store is None:
        return answers[0]
    found = replace(
        store,
        names=Names(graph.labels, n),
        sources=replace(store.sources, every=chosen.sources.every),
        targets=replace(store.targets, numbers=chosen.targets.numbers, every=chosen.targets.every),
        kept=expanded.graph.arrays,
        expansion=(store, expanded.visits),
    )
    return paths_in(found, answers[0]._restore)


def _parts(nodes: Selection) -> list[Selection]:
    """Divide the roots, because rows of all nodes take more memory than the columns that are kept."""
    side = "targets" if nodes.backward else "sources"
    ends = getattr(nodes, side)
    every = [ends.numbers[some] for some in slices(len(ends.numbers), nodes.n, HOST)]
    return [nodes] if len(every) < 2 else [replace(nodes, **{side: replace(ends, numbers=numbers)}) for numbers in every]


def _joined(answers: list[Any], axis: int) -> Any:
    if len(answers) == 1:
        return answers[0]
    if isinstance(answers[0], tuple):
        return tuple([np.concatenate(parts, axis) for parts in zip(*answers, strict=True)])
    return np.concatenate(answers, axis)


class NearestWithTurns(NamedTuple):
    """The `NearestSources` of vertices, from those of nodes."""

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
        return visited(self.nodes.path(int(self.expanded.ends[vertex]), rank), self.expanded.visits)


def expansion(graph: EdgeList, semiring: Semiring, *, reflexive: bool = True, **reading: Any) -> Expansion:
    """Read a list of edges with turn costs, and expand it; `reading` has the options of `semiring.graphs.edges_of`."""
    turns = graph.turns
    assert turns is not None
    edges, _ = one_graph(turns.graph, semiring, **reading)
    known = _known.get(graph)
    if known is not None and known[0] == (semiring, reflexive) and known[1].graph is edges:
        return known[1]
    costs = _costs(turns, edges, semiring, presence=reading.get("presence", False))
    found = _expanded(edges, costs, semiring, graph.labels, reflexive=reflexive)
    _known[graph] = (semiring, reflexive), found
    return found


_known: WeakKeyDictionary[EdgeList, tuple[tuple[Semiring, bool], Expansion]] = WeakKeyDictionary()
"""The last expansion of each list of edges."""


def _costs(turns: TurnCosts, edges: CSR, semiring: Semiring, *, presence: bool) -> CSR:
    """Return a matrix of turn costs other than one, with a row and a column for each edge."""
    some = np.flatnonzero(np.isin(turns.before, edges.places) & np.isin(turns.after, edges.places))  # a zero is no edge
    before, after = (np.searchsorted(edges.places, places[some]) for places in (turns.before, turns.after))

    def where(index: tuple[int, ...]) -> str:
        return turns.name(int(some[index[0]]))

    costs = [turns.costs[turn] for turn in some.tolist()]
    if presence:  # other numbers of every kind are turns
        costs = [None if isinstance(c, float | np.floating) and math.isinf(c) else c for c in costs]
    weights = components_of([HIDDEN if c is None else c for c in costs], semiring, where)
    dtype = edges.dtypes[0] if len(edges.dtypes) == 1 else edges.dtypes
    found = COO(before, after, weights, len(edges.heads), where).csr(semiring, Reading(dtype=dtype, presence=presence, closed=True))
    other = present(found.weights, semiring.identities(edges.dtypes)[1])
    return CSR.of(found.tails[other], found.heads[other], tuple([w[other] for w in found.weights]), found.n, found.zero)


def _expanded(edges: CSR, costs: CSR, semiring: Semiring, labels: tuple[Hashable, ...], *, reflexive: bool) -> Expansion:
    n, m, heads = edges.n, len(edges.heads), edges.heads
    special = np.zeros(n, dtype=bool)
    special[heads[costs.tails]] = True
    into, split = np.flatnonzero(special[heads]), np.flatnonzero(special)
    ends, nodes = np.arange(n), heads.copy()
    nodes[into] = n + np.arange(len(into))  # the node of each edge
    ends[split] = n + len(into) + np.arange(len(split))
    position, after = edges.leaving(heads[into])
    before = into[position]
    weights = tuple([w[after] for w in edges.weights])
    at = np.searchsorted(before * m + after, costs.places)
    for w, product in zip(weights, _products(semiring, costs.weights, tuple([w[at] for w in weights])), strict=True):
        w[at] = product
    there = present(weights, edges.zero)
    there[at] &= present(costs.weights, edges.zero)
    empty = split if reflexive else split[:0]  # empty paths
    free = tuple(
        [filled(len(into) + len(empty), one, d) for one, d in zip(semiring.identities(edges.dtypes)[1], edges.dtypes, strict=True)]
    )
    tails = np.concatenate([edges.tails, nodes[before][there], nodes[into], empty])
    tips = np.concatenate([nodes, nodes[after][there], ends[heads[into]], ends[empty]])
    elements = tuple([np.concatenate([w, turned[there], f]) for w, turned, f in zip(edges.weights, weights, free, strict=True)])
    visits = np.concatenate([np.arange(n), heads[into]])
    names = tuple([labels[v] for v in [*visits.tolist(), *split.tolist()]])
    listed = in_order(len(names), tails, tips, elements, lambda *different: different)
    return Expansion(edges, CSR.of(*listed, len(names), edges.zero), ends, visits, names)


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
