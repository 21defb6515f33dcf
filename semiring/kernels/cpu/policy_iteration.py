"""The steps of policy iteration on a weighted graph, as compiled loops: vertices that reach a cycle, better policies, and their cycles.

A *policy* takes one edge from each vertex, so every walk along the policy ends on a cycle. With a scale q and a shift p, an edge of weight
w costs q·w − p. Vertices are int32.

- ``improve`` finds the cheapest edge from each vertex, given a value for every head. It reads one array of values and writes another, so
  the number of threads changes no result.
- ``evaluate`` follows the policy from every vertex, computes values on the way back, and keeps the cycle of least mean.
- ``reaching`` finds the vertices with infinite walks, depth-first. All vertices on the stack have infinite walks as soon as the search
  meets the stack again, or a vertex with an infinite walk.
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from semiring.arrays.overlap import address
from semiring.arrays.threads import run
from semiring.kernels.cpu.arguments import pack
from semiring.kernels.cpu.body import F64, Body, Variable, compiled
from semiring.kernels.cpu.emitter import Emitter

__all__ = ["Costs", "Improved", "Policy", "PolicyCycle", "reaching_cycles"]

Array = np.ndarray[Any, Any]

_INFINITY = F64.literal(np.inf)

_EDGE = np.dtype([("weight", np.float64), ("head", np.int32), ("cycle", np.int32)])
"""The edge that a policy takes from a vertex, kept in one place."""

_SHARE = 1 << 14
"""The vertices that one call improves."""

_AHEAD, _STEPS = 16, 3
"""The prefetch of coming walks: vertices between their starts, and steps of each walk."""

_ON_WAY, _REACHES, _ENDS = 1, 2, 3
"""The states of a vertex in ``reaching``; 0 is unknown."""


class Costs(NamedTuple):
    """The cost of an edge of weight w, scale · w − shift, and the least decrease of a value v, `tolerance` · |v| + `least`."""

    scale: float
    shift: float
    tolerance: float = 0.0
    least: float = 0.0


class Improved(NamedTuple):
    """The number of vertices whose policy changed, and the largest magnitude of a value."""

    changed: int
    largest: float


class PolicyCycle(NamedTuple):
    """A cycle of a policy: a vertex on it, the float64 sum of the weights, the length, and the number among the policy's cycles."""

    vertex: int
    total: float
    length: int
    number: int


_ReachingWords = namedtuple("_ReachingWords", "n starts heads state way cursor")
"""The arguments of ``reaching``: a graph in compressed rows, and arrays of n vertices."""

_ImproveWords = namedtuple("_ImproveWords", "first last starts heads weights old new policy costs found")
"""The arguments of ``improve`` for vertices `first` … `last` − 1; `found` receives `Improved` as float64."""

_EvaluateWords = namedtuple("_EvaluateWords", "n policy way values costs number root found")
"""The arguments of ``evaluate``: the edges of a policy, memory for a walk, and `found`, which receives `PolicyCycle` as float64.

Vertices on the way to cycle `number` take new values, other vertices only smaller ones; vertex `root` keeps its value."""


def reaching_cycles(starts: Array, heads: Array) -> Array:
    """Return a mask of the vertices of a graph in compressed rows that reach a cycle. O(m), usually O(n)."""
    n = len(starts) - 1
    state, way, cursor = np.zeros(n, np.int32), np.empty(n, np.int32), starts[:-1].copy()
    _function("reaching")(pack(_ReachingWords(n, *map(address, (starts, heads, state, way, cursor)))), 20 * n)
    return np.asarray(state == _REACHES)


class Policy:
    """A policy of a graph in compressed rows (int64, int32 and float64 arrays), and a value for each vertex.

    `values` are float64, ∞ for vertices without a policy. `edges` has the edge taken from each vertex: weight, head (−1: no edge), and the
    number of the cycle at the end of the walk; given edges are overwritten.
    """

    def __init__(self, starts: Array, heads: Array, weights: Array, values: Array, threads: int, edges: Array | None = None) -> None:
        n = len(values)
        self.threads, self.values, self._spare = threads, values, np.empty(n)
        self._graph, self._way = (starts, heads, weights), np.empty(n, np.int32)
        if edges is None:
            edges = np.zeros(n, _EDGE)
            edges["head"] = -1
        self.edges = edges

    def improve(self, costs: Costs) -> Improved:
        """Take the cheapest edge from each vertex where that is better, v_u ← min over edges of cost + v."""
        n = len(self.values)
        firsts = range(0, n, _SHARE)
        given, found = np.array(costs), np.zeros((len(firsts), 2))
        arrays, function = (*self._graph, self.values, self._spare, self.edges, given), _function("improve")

        def work(first: int, worker: int) -> None:
            function(pack(_ImproveWords(first, min(first + _SHARE, n), *map(address, (*arrays, found[first // _SHARE])))))

        run(work, firsts, self.threads)
        self.values, self._spare = self._spare, self.values
        return Improved(int(found[:, 0].sum()), float(found[:, 1].max(initial=0)))

    def evaluate(self, costs: Costs, cycle: PolicyCycle | None = None) -> PolicyCycle:
        """Lower the values along the policy, and return the cycle of least mean.

        Vertices that lead to `cycle` take new values, larger or smaller; the vertex of `cycle` keeps its value.
        """
        self.edges["cycle"] = 0
        n, given, found = len(self.values), np.array(costs), np.zeros(4)
        number, root = (0, -1) if cycle is None else (cycle.number, cycle.vertex)
        arrays = map(address, (self.edges, self._way, self.values, given))
        _function("evaluate")(pack(_EvaluateWords._make((n, *arrays, number, root, address(found)))), 20 * n)
        return PolicyCycle(int(found[0]), float(found[1]), int(found[2]), int(found[3]))

    def walk(self, vertex: int) -> tuple[list[int], list[float]]:
        """Return the vertices and the weights of the cycle through a vertex."""
        heads, vertices = self.edges["head"], [vertex]
        while (following := int(heads[vertices[-1]])) != vertex:
            vertices.append(following)
        return vertices, self.edges["weight"][vertices].tolist()

    def take(self, cycle: list[int], weights: list[float]) -> None:
        """Take the edges of a cycle, as `walk` returns it."""
        self.edges["head"][cycle] = np.roll(cycle, -1)
        self.edges["weight"][cycle] = weights


_GRAPH = {"starts": np.int64, "heads": np.int32, "weights": np.float64}


def _cost(b: Body) -> Callable[[str, str], str]:
    """Return a function that emits the cost of an edge plus the value at its head."""
    scale, shift = b.get("costs", 0), b.get("costs", 1)
    return lambda weight, value: b.f("fadd", b.f("fsub", b.f("fmul", weight, scale), shift), value)


def _reaching() -> Emitter:
    b = Body("reaching", _ReachingWords, "n", **_GRAPH, state=np.int32, way=np.int32, cursor=np.int64)
    em, top = b.em, Variable(b.em)

    def enter(v: str) -> None:
        b.put("way", top.get(), v)
        b.put("state", v, _ON_WAY)
        top.add(1)

    with em.each(0, b["n"]) as s, em.when(b.is_("eq", b.get("state", s), 0)):
        enter(s)
        with em.turns([], lambda _: b.is_("ne", top.get(), 0)):
            u = b.get("way", em.sub(top.get(), 1))
            e = b.get("cursor", u)
            with em.when(b.is_("eq", e, b.get("starts", em.add(u, 1)))):
                b.put("state", u, _ENDS)
                top.add(-1)
            with em.otherwise():
                b.put("cursor", u, em.add(e, 1))
                v = b.get("heads", e)
                state = b.get("state", v)
                with em.when(b.is_("eq", state, 0)):
                    enter(v)
                with em.otherwise(), em.when(b.is_("ne", state, _ENDS)):
                    with em.each(0, top.get()) as i:
                        b.put("state", b.get("way", i), _REACHES)
                    top.set(0)
    return b.done()


def _improve() -> Emitter:
    values = dict.fromkeys(("old", "new", "costs", "found"), np.float64)
    b = Body("improve", _ImproveWords, "first last", **_GRAPH, **values, policy=_EDGE)
    em, offer, changed = b.em, _cost(b), Variable(b.em)
    tolerance, least = b.get("costs", 2), b.get("costs", 3)

    def magnitude(value: str) -> str:
        return em.call("fabs.f64", "double", ("double", value))

    def edge(e: str, best: list[str]) -> list[str]:
        value = offer(b.get("weights", e), b.get("old", b.get("heads", e)))
        better = b.less(value, best[0])
        return [b.select(better, value, best[0]), em.select_i64(better, e, best[1])]

    def vertex(u: str, carried: list[str]) -> list[str]:
        old = b.get("old", u)
        best, e = em.loop(*b.row(u), 1, edge, [("double", _INFINITY), ("i64", "0")])
        enough = b.f("fadd", b.f("fmul", tolerance, magnitude(best)), least)
        better = b.less(b.f("fadd", best, enough), old)
        with em.when(better):
            b.put("policy", u, b.get("weights", e), "weight")
            b.put("policy", u, b.get("heads", e), "head")
            changed.add(1)
        new = b.select(better, best, old)
        b.put("new", u, new)
        size = magnitude(new)
        return [b.select(b.both(b.less(carried[0], size), b.less(size, _INFINITY)), size, carried[0])]

    (largest,) = em.loop(b["first"], b["last"], 1, vertex, [("double", F64.literal(0))])
    b.put("found", 0, b.as_float(changed.get()))
    b.put("found", 1, largest)
    return b.done()


def _evaluate() -> Emitter:
    """Emit walks along the policy, each up to a vertex already visited, and values on the way back."""
    values = dict.fromkeys(("values", "costs", "found"), np.float64)
    b = Body("evaluate", _EvaluateWords, "n number root", **values, policy=_EDGE, way=np.int32)
    em, offer, numbers = b.em, _cost(b), Variable(b.em)

    def edge(v: str, field: str) -> str:
        return b.get("policy", v, field)

    def close(v: str) -> None:
        """Measure the cycle through v, and keep it if it is the first, or total · (kept length) < (kept total) · length."""
        numbers.add(1)
        start = [("i64", edge(v, "head")), ("double", edge(v, "weight")), ("i64", "1")]
        with em.turns(start, lambda carried: b.is_("ne", carried[0], v)) as ((x, total, size), new):
            new += [edge(x, "head"), b.f("fadd", total, edge(x, "weight")), str(em.add(size, 1))]
        length = b.as_float(size)
        less = b.less(b.f("fmul", total, b.get("found", 2)), b.f("fmul", b.get("found", 1), length))
        with em.when(b.either(b.is_("eq", numbers.get(), 1), less)):
            for place, value in enumerate((b.as_float(v), total, length, b.as_float(numbers.get()))):
                b.put("found", place, value)

    def walk(u: str) -> None:
        with em.turns([("i64", u), ("i64", "0")], lambda carried: b.is_("eq", edge(carried[0], "cycle"), 0)) as ((v, end), new):
            b.put("policy", v, -1, "cycle")
            b.put("way", end, v)
            b.prefetch("values", v)
            new += [edge(v, "head"), str(em.add(end, 1))]
        closed = b.is_("eq", edge(v, "cycle"), -1)
        with em.when(closed):
            close(v)
        number = em.select_i64(closed, numbers.get(), edge(v, "cycle"))
        renewed = b.is_("eq", number, b["number"])
        start = [("i64", str(em.sub(end, 1))), ("double", b.get("values", v))]
        with em.turns(start, lambda carried: b.is_("sge", carried[0], 0)) as ((at, ahead), new):
            x = b.get("way", at)
            old, lower = b.get("values", x), offer(edge(x, "weight"), ahead)
            value = b.select(b.both(b.is_("ne", x, b["root"]), b.either(renewed, b.less(lower, old))), lower, old)
            b.put("values", x, value)
            b.put("policy", x, number, "cycle")
            new += [str(em.sub(at, 1)), value]

    with em.each(0, b["n"]) as u:
        # Prefetch the first vertices of later walks.
        for steps in range(1, _STEPS + 1):
            v = em.smin(em.add(u, _AHEAD * (_STEPS + 1 - steps)), em.sub(b["n"], 1))
            for _ in range(steps):
                head = edge(v, "head")
                v = em.select_i64(b.is_("slt", head, 0), 0, head)
            b.prefetch("policy", v)
            b.prefetch("values", v)
        with em.when(b.both(b.is_("sge", edge(u, "head"), 0), b.is_("eq", edge(u, "cycle"), 0))):
            walk(u)
    return b.done()


_function = compiled("policy_iteration", _reaching, _improve, _evaluate)
