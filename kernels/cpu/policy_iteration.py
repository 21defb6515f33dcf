"""The steps of policy iteration on a weighted graph, as compiled loops: which vertices reach a cycle, better policies, and their cycles.

A *policy* takes one edge from each vertex, so that every walk along it ends on a cycle. With a scale q and a shift p, an edge of weight w
costs q·w − p. ``improve`` finds the cheapest edge from each vertex, given what every head is worth; it reads one array of values and
writes another, so that vertices are shared out among threads, whose number changes nothing. ``cycles`` finds the cycles of a policy, the one
of the least mean among them, and an order in which each vertex comes after the one that its edge leads to; ``relax`` gives values along
this order. ``reaching`` finds the vertices from which a walk may go on forever: depth-first, and whatever is on the way to a vertex that
is on the way itself, or reaches a cycle, does so too. Numbers of vertices are int32.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from semiring.arrays.overlap import address
from semiring.arrays.threads import run
from semiring.kernels.cpu.compiler import compile_library, link
from semiring.kernels.cpu.emitter import I32, I64, Arguments, Emitter, Scalar, pack
from semiring.kernels.hardware import host

__all__ = ["Costs", "Improved", "Policy", "PolicyCycle", "reaching_cycles"]

Array = np.ndarray[Any, Any]

_F64 = Scalar("f", 8)
_INFINITY = _F64.literal(np.inf)

_EDGE = np.dtype([("weight", np.float64), ("head", np.int32), ("cycle", np.int32)])
"""What is kept of the edge that a policy takes, in one place."""

_FIELDS = "{ double, i32, i32 }"

_SHARE = 1 << 14
"""Vertices that are improved in one call."""

_ON_WAY, _REACHES, _ENDS = 1, 2, 3
"""What is known of a vertex in ``reaching``; nothing is 0."""


class Costs(NamedTuple):
    """What an edge of weight w costs, scale · w − shift; of which v takes the place of what is larger by more than
    tolerance · \\|v\\| + least.
    """

    scale: float
    shift: float
    tolerance: float = 0.0
    least: float = 0.0


class Improved(NamedTuple):
    """At how many vertices the policy changed, and the largest magnitude of a value."""

    count: int
    largest: float


class PolicyCycle(NamedTuple):
    """A cycle of a policy: a vertex on it, the sum of its weights as float64, its length, and its number among the policy's cycles."""

    vertex: int
    total: float
    length: int
    number: int


class _ReachingWords(NamedTuple):
    """The arguments of ``reaching``: a graph in compressed rows, and arrays of n vertices."""

    n: int
    starts: int
    heads: int
    state: int
    way: int
    cursor: int


class _ImproveWords(NamedTuple):
    """Those of ``improve``, for the vertices from `first` up to `last`; `found` gets `Improved`, as float64."""

    first: int
    last: int
    starts: int
    heads: int
    weights: int
    old: int
    new: int
    policy: int
    costs: int
    found: int


class _EvaluateWords(NamedTuple):
    """Those of ``evaluate``: an array of `Edges`, memory for a walk, and `found`, which gets `PolicyCycle`.

    Vertices that lead to cycle `number` get new values, but for its vertex `root`, and others only smaller ones.
    """

    n: int
    policy: int
    way: int
    values: int
    costs: int
    number: int
    root: int
    found: int


_POINTERS = {"starts", "heads", "weights", "old", "new", "policy", "costs", "found", "values", "state", "way", "cursor"}


def reaching_cycles(starts: Array, heads: Array) -> Array:
    """Whether each vertex of a graph in compressed rows reaches a cycle. O(m), and mostly O(n)."""
    n = len(starts) - 1
    state, way, cursor = np.zeros(n, np.int32), np.empty(n, np.int32), starts[:-1].copy()
    _call("reaching", _ReachingWords(n, *map(address, (starts, heads, state, way, cursor))))
    return np.asarray(state == _REACHES)


class Policy:
    """A policy of a graph, and a value for each vertex.

    Parameters
    ----------
    starts, heads, weights : int64, int32 and float64 array
        The graph in compressed rows.
    values : float64 array of shape (n,)
        ∞ for vertices without a policy.
    threads : int

    Attributes
    ----------
    values : float64 array of shape (n,)
    edges : array of shape (n,)
        Of each vertex the edge that the policy takes: its weight, its head, −1 where there is none, and the number of the cycle at its end.
    """

    def __init__(self, starts: Array, heads: Array, weights: Array, values: Array, threads: int) -> None:
        n = len(values)
        self.threads, self.values, self._spare = threads, values, np.empty(n)
        self._graph, self._way = (starts, heads, weights), np.empty(n, np.int32)
        self.edges = np.zeros(n, _EDGE)
        self.edges["head"] = -1

    def improve(self, costs: Costs) -> Improved:
        """Take the cheapest edge from each vertex where that is better, v_u ← min over edges of cost + v."""
        n = len(self.values)
        firsts = range(0, n, _SHARE)
        given, found = np.array(costs), np.zeros((len(firsts), 2))
        arrays = *self._graph, self.values, self._spare, self.edges, given
        function = _function("improve")

        def work(first: int, worker: int) -> None:
            words = pack(_ImproveWords(first, min(first + _SHARE, n), *map(address, (*arrays, found[first // _SHARE]))))
            function(words.buffer_info()[0])

        run(work, firsts, self.threads)
        self.values, self._spare = self._spare, self.values
        return Improved(int(found[:, 0].sum()), float(found[:, 1].max(initial=0)))

    def evaluate(self, costs: Costs, cycle: PolicyCycle | None = None) -> PolicyCycle:
        """Values along the policy: smaller ones, and new ones where it leads to `cycle`; and its cycle of the least mean."""
        self.edges["cycle"] = 0
        given, found = np.array(costs), np.zeros(4)
        number, root = (0, -1) if cycle is None else (cycle.number, cycle.vertex)
        arrays = self.edges, self._way, self.values, given
        _call("evaluate", _EvaluateWords(len(self.values), *map(address, arrays), number, root, address(found)))
        vertex, total, length, found_number = found.tolist()
        return PolicyCycle(int(vertex), total, int(length), int(found_number))

    def walk(self, vertex: int) -> tuple[list[int], list[float]]:
        """The vertices and the weights of the cycle on which a vertex lies."""
        vertices, weights = [vertex], [float(self.edges["weight"][vertex])]
        while (following := int(self.edges["head"][vertices[-1]])) != vertex:
            vertices.append(following)
            weights.append(float(self.edges["weight"][following]))
        return vertices, weights


def _call(name: str, words: tuple[int, ...]) -> None:
    """One of the functions with its arguments."""
    packed = pack(words)
    _function(name)(packed.buffer_info()[0])


@functools.cache
def _function(name: str) -> Callable[[int], None]:
    """A function, compiled or from the cache."""
    library = compile_library(("policy_iteration",), host(), lambda: link([_reaching(), _improve(), _evaluate()]))
    return library.function(name)


class _Body:
    """A function that is being written, with its arguments by name."""

    def __init__(self, name: str, words: Any) -> None:
        self.em, self.args = Emitter(name, "ptr %args"), Arguments(words)
        self.x = {f: (self.args.pointer if f in _POINTERS else self.args.load)(self.em, f) for f in words._fields}

    def get(self, scalar: Scalar, array: str, i: str | int) -> str:
        """An element of an array, by its name; an int32 as i64."""
        value = self.em.load(scalar.ir, self.em.at(scalar.ir, self.x[array], i), scalar.bytes)
        return self.em.let(f"sext i32 {value} to i64") if scalar == I32 else value

    def put(self, scalar: Scalar, array: str, i: str | int, value: str | int) -> None:
        """Write it."""
        if scalar == I32 and isinstance(value, str):
            value = self.em.let(f"trunc i64 {value} to i32")
        self.em.store(scalar.ir, str(value), self.em.at(scalar.ir, self.x[array], i), scalar.bytes)

    def edge(self, name: str, u: str) -> str:
        """A field of the edge that the policy takes from a vertex."""
        if name == "weight":
            return self.em.load("double", self._field(name, u), 8)
        return self.em.let(f"sext i32 {self.em.load('i32', self._field(name, u), 4)} to i64")

    def take(self, name: str, u: str, value: str | int) -> None:
        """Write it."""
        if name == "weight":
            self.em.store("double", str(value), self._field(name, u), 8)
        else:
            self.em.store("i32", self.em.let(f"trunc i64 {value} to i32"), self._field(name, u), 4)

    def _field(self, name: str, u: str) -> str:
        assert _EDGE.names is not None
        return self.em.let(f"getelementptr inbounds {_FIELDS}, ptr {self.x['policy']}, i64 {u}, i32 {_EDGE.names.index(name)}")

    def costs(self) -> Callable[[str, str], str]:
        """What writes the cost of an edge, and the value at its head."""
        scale, shift = self.get(_F64, "costs", 0), self.get(_F64, "costs", 1)

        def offer(weight: str, value: str) -> str:
            cost = self.em.let(f"fsub double {self.em.let(f'fmul double {weight}, {scale}')}, {shift}")
            return self.em.let(f"fadd double {cost}, {value}")

        return offer

    def done(self) -> Emitter:
        """The function."""
        self.em.line("ret void")
        return self.em


def _reaching() -> Emitter:
    """``reaching(args)``."""
    b = _Body("reaching", _ReachingWords)
    em, top = b.em, b.em.variable(0)

    def is_(value: str, known: int) -> str:
        return em.let(f"icmp eq i64 {value}, {known}")

    def enter(v: str) -> None:
        size = em.load("i64", top, 8)
        b.put(I32, "way", size, v)
        b.put(I32, "state", v, _ON_WAY)
        em.store("i64", str(em.add(size, 1)), top, 8)

    def search(s: str, _: list[str]) -> None:
        def turn(_: list[str]) -> list[str]:
            size = em.load("i64", top, 8)
            u = b.get(I32, "way", em.sub(size, 1))
            e = b.get(I64, "cursor", u)

            def leave() -> None:
                b.put(I32, "state", u, _ENDS)
                em.store("i64", str(em.sub(size, 1)), top, 8)

            def look() -> None:
                b.put(I64, "cursor", u, em.add(e, 1))
                v = b.get(I32, "heads", e)
                state = b.get(I32, "state", v)

                def all_reach() -> None:
                    em.loop(0, size, 1, lambda i, _: b.put(I32, "state", b.get(I32, "way", i), _REACHES))
                    em.store("i64", "0", top, 8)

                em.branch(is_(state, 0), lambda: enter(v), lambda: em.branch(em.let(f"icmp ne i64 {state}, {_ENDS}"), all_reach))

            em.branch(em.let(f"icmp eq i64 {e}, {b.get(I64, 'starts', em.add(u, 1))}"), leave, look)
            return []

        def begin() -> None:
            enter(s)
            em.repeat([], lambda _: em.let(f"icmp ne i64 {em.load('i64', top, 8)}, 0"), turn)

        em.branch(is_(b.get(I32, "state", s), 0), begin)

    em.loop(0, b.x["n"], 1, search)
    return b.done()


def _improve() -> Emitter:
    """``improve(args)``."""
    b = _Body("improve", _ImproveWords)
    em, offer = b.em, b.costs()
    tolerance, least = b.get(_F64, "costs", 2), b.get(_F64, "costs", 3)

    def magnitude(value: str) -> str:
        return em.call("fabs.f64", "double", ("double", value))

    changed = em.variable(0)

    def vertex(u: str, carried: list[str]) -> list[str]:
        def edge(e: str, best: list[str]) -> list[str]:
            value = offer(b.get(_F64, "weights", e), b.get(_F64, "old", b.get(I32, "heads", e)))
            better = em.let(f"fcmp olt double {value}, {best[0]}")
            return [em.let(f"select i1 {better}, double {value}, double {best[0]}"), em.select_i64(better, e, best[1])]

        old = b.get(_F64, "old", u)
        first, last = b.get(I64, "starts", u), b.get(I64, "starts", em.add(u, 1))
        best, e = em.loop(first, last, 1, edge, [("double", _INFINITY), ("i64", "0")])
        enough = em.let(f"fadd double {em.let(f'fmul double {tolerance}, {magnitude(best)}')}, {least}")
        better = em.let(f"fcmp olt double {em.let(f'fadd double {best}, {enough}')}, {old}")

        def take() -> None:
            b.take("weight", u, b.get(_F64, "weights", e))
            b.take("head", u, b.get(I32, "heads", e))
            em.store("i64", str(em.add(em.load("i64", changed, 8), 1)), changed, 8)

        em.branch(better, take)
        new = em.let(f"select i1 {better}, double {best}, double {old}")
        b.put(_F64, "new", u, new)
        size = magnitude(new)
        larger = em.let(f"fcmp ogt double {size}, {carried[0]}")
        finite = em.let(f"fcmp olt double {size}, {_INFINITY}")
        return [em.let(f"select i1 {em.let(f'and i1 {larger}, {finite}')}, double {size}, double {carried[0]}")]

    (largest,) = em.loop(b.x["first"], b.x["last"], 1, vertex, [("double", _F64.literal(0))])
    b.put(_F64, "found", 0, em.let(f"sitofp i64 {em.load('i64', changed, 8)} to double"))
    b.put(_F64, "found", 1, largest)
    return b.done()


def _evaluate() -> Emitter:
    """``evaluate(args)``: walks along the policy, each to a vertex where one has been before, and values on the way back."""
    b = _Body("evaluate", _EvaluateWords)
    em, offer, numbers = b.em, b.costs(), b.em.variable(0)

    def close(v: str) -> None:
        """A cycle through v, which is the least so far if total · (its length) < (its total) · length."""
        em.store("i64", str(em.add(em.load("i64", numbers, 8), 1)), numbers, 8)

        def along(carried: list[str]) -> list[str]:
            x, total, length = carried
            return [b.edge("head", x), em.let(f"fadd double {total}, {b.edge('weight', x)}"), str(em.add(length, 1))]

        start = [("i64", b.edge("head", v)), ("double", b.edge("weight", v)), ("i64", "1")]
        _, total, size = em.repeat(start, lambda carried: em.let(f"icmp ne i64 {carried[0]}, {v}"), along)
        length = em.let(f"sitofp i64 {size} to double")
        left = em.let(f"fmul double {total}, {b.get(_F64, 'found', 2)}")
        right = em.let(f"fmul double {b.get(_F64, 'found', 1)}, {length}")
        first = em.let(f"fcmp oeq double {b.get(_F64, 'found', 2)}, {_F64.literal(0)}")

        def keep() -> None:
            vertex, number = (em.let(f"sitofp i64 {i} to double") for i in (v, em.load("i64", numbers, 8)))
            for place, value in enumerate((vertex, total, length, number)):
                b.put(_F64, "found", place, value)

        em.branch(em.let(f"or i1 {first}, {em.let(f'fcmp olt double {left}, {right}')}"), keep)

    def walk(u: str) -> None:
        def along(carried: list[str]) -> list[str]:
            v, at = carried
            b.take("cycle", v, -1)
            b.put(I32, "way", at, v)
            return [b.edge("head", v), str(em.add(at, 1))]

        def is_new(carried: list[str]) -> str:
            return em.let(f"icmp eq i64 {b.edge('cycle', carried[0])}, 0")

        v, end = em.repeat([("i64", u), ("i64", "0")], is_new, along)
        closed = em.let(f"icmp eq i64 {b.edge('cycle', v)}, -1")
        em.branch(closed, lambda: close(v))
        number = em.select_i64(closed, em.load("i64", numbers, 8), b.edge("cycle", v))
        renewed = em.let(f"icmp eq i64 {number}, {b.x['number']}")

        def back(carried: list[str]) -> list[str]:
            at, ahead = carried
            x = b.get(I32, "way", at)
            old, new = b.get(_F64, "values", x), offer(b.edge("weight", x), ahead)
            fresh = em.let(f"and i1 {renewed}, {em.let('icmp ne i64 ' + x + ', ' + b.x['root'])}")
            taken = em.let(f"or i1 {fresh}, {em.let(f'fcmp olt double {new}, {old}')}")
            value = em.let(f"select i1 {taken}, double {new}, double {old}")
            b.put(_F64, "values", x, value)
            b.take("cycle", x, number)
            return [str(em.sub(at, 1)), value]

        start = [("i64", str(em.sub(end, 1))), ("double", b.get(_F64, "values", v))]
        em.repeat(start, lambda carried: em.let(f"icmp sge i64 {carried[0]}, 0"), back)

    def vertex(u: str, _: list[str]) -> None:
        has_edge = em.let(f"icmp sge i64 {b.edge('head', u)}, 0")
        new = em.let(f"icmp eq i64 {b.edge('cycle', u)}, 0")
        em.branch(em.let(f"and i1 {has_edge}, {new}"), lambda: walk(u))

    em.loop(0, b.x["n"], 1, vertex)
    return b.done()
