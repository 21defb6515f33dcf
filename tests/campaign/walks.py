"""`k_shortest_paths`, `Paths.all_paths` and `pareto_paths` beside all simple paths, `cycle_mean` beside its definition.

All are in whole numbers. `tolerance` is tried beside prices, and turn costs beside the whole line graph.
"""

from __future__ import annotations

import itertools
import math
import warnings
from fractions import Fraction
from typing import Any

import networkx as nx
import numpy as np

import semiring as sr
from tests.campaign.answers import answer_for
from tests.campaign.cases import Case, Complaint, Entry, attempt, judged
from tests.campaign.kinds import graph_of
from tests.campaign.lawful import catalogue
from tests.campaign.layouts import host
from tests.campaign.products import draw_size, on_gpu
from tests.campaign.subjects import Array, Rng, Subject

__all__ = ["ENTRIES"]


def _options(rng: Rng, device: str) -> dict[str, Any]:
    """A kind of graph; arrays alone lie on a GPU."""
    return on_gpu(rng, device) or ({"kind": str(rng.choice(["csr", "edges", "networkx"]))} if rng.random() < 0.6 else {})


def _finite(a: Array, zero: Any) -> Array:
    """The weights as floats, ∞ where there is no edge."""
    return np.where(a == zero, math.inf, a.astype(float))


# The k shortest simple paths.


def _draw_paths(rng: Rng, _: Subject, device: str) -> Case:
    subject, n = catalogue("MIN_PLUS", str(rng.choice(["float64", "int32"]))), int(rng.integers(1, 8))
    a = subject.draw(rng, (n, n), zeros=[0.3, 0.6][rng.integers(2)], harmless=rng.random() < 0.8)
    options = {"k": int(rng.integers(0, 40)), "sources": int(rng.integers(n)), "targets": int(rng.integers(n)), **_options(rng, device)}
    return Case("k_shortest_paths", subject, {"a": a}, {"a": ("n", "n")}, {}, options, "cpu")


def _check_paths(case: Case) -> Complaint | None:
    graph, labels = graph_of(case, case.placed("a"))
    k, source, target = (case.options.get(name, 0) for name in ("k", "sources", "targets"))
    weights = _finite(case.arrays["a"][0], case.subject.zeros[0])
    names = range(len(weights)) if labels is None else labels
    answer = answer_for(case.subject, case.arrays["a"], reflexive=True)
    found = attempt(sr.k_shortest_paths, graph, names[source], names[target], k)
    leads = bool((answer.divergent & answer.reached()[:, target]).any())
    required: dict[type[Exception], str] = {}
    if leads and k and source != target:
        required[sr.NegativeCycleError] = "a negative cycle leads to the target"
    complaint = judged(found, {sr.NegativeCycleError: leads}, required)
    if complaint is not None or found.error is not None:
        return complaint
    every = _simple_paths(weights, source, target, names)
    got = {tuple(path): distance for distance, path in found.result}
    if [d for d, _ in found.result] != sorted(every.values())[:k] or len(got) < len(found.result):
        return Complaint("values", f"{found.result} instead of lengths {sorted(every.values())[:k]}")
    if any(every.get(path) != distance for path, distance in got.items()):
        return Complaint("paths", f"{found.result}, of which one is none: {every}")
    return None


# All shortest paths of a pair.


def _draw_ties(rng: Rng, _: Subject, device: str) -> Case:
    subject, n = catalogue("MIN_PLUS", str(rng.choice(["float64", "int32"]))), int(rng.integers(1, 8))
    (a,) = subject.draw(rng, (n, n), zeros=[0.3, 0.6][rng.integers(2)], harmless=True)
    a = np.where(a == subject.zeros[0], a, a % 3).astype(a.dtype)  # few weights tie often, and some are 0
    options = {"sources": int(rng.integers(n)), "targets": int(rng.integers(n)), **_options(rng, device)}
    if rng.random() < 0.3:
        options["node_weight"] = rng.integers(0, 3, n).tolist()
    return Case("all_paths", subject, {"a": (a,)}, {"a": ("n", "n")}, {}, options, "cpu")


def _check_ties(case: Case) -> Complaint | None:
    graph, labels = graph_of(case, case.placed("a"))
    source, target = (case.options.get(name, 0) for name in ("sources", "targets"))
    costs = case.options.get("node_weight")
    weights = _finite(case.arrays["a"][0], case.subject.zeros[0]) + (0 if costs is None else np.array(costs, float))
    names = range(len(weights)) if labels is None else labels
    paths = attempt(sr.apsp, graph, paths=True, node_weight=costs)
    if (complaint := judged(paths, {})) is not None:
        return complaint
    ends = names[source], names[target]
    got, count = [tuple(p) for p in paths.result.all_paths(*ends)], attempt(paths.result.count, *ends)
    every = {p: d for p, d in _simple_paths(weights, source, target, names).items() if d < math.inf}
    want = {p for p, d in every.items() if d == min(every.values())}
    if set(got) != want or len(got) > len(want):
        return Complaint("paths", f"{got} instead of {sorted(want)}")
    lengths, whole = (host(v) for v in (paths.result.along(weights), paths.result.values))
    zero = np.inf if whole.dtype.kind == "f" else np.iinfo(whole.dtype).max
    if not np.array_equal(lengths, _finite(whole, zero)):
        return Complaint("along", f"the weights along the paths are {lengths}, and the distances {whole}")
    cyclic = bool((weights == 0).any())
    complaint = judged(count, {sr.GraphError: cyclic})
    if complaint is None and count.error is None and count.result != len(want):
        return Complaint("count", f"{count.result} instead of {len(want)}")
    return complaint


def _simple_paths(weights: Array, source: int, target: int, names: Any) -> dict[tuple[Any, ...], float]:
    """All simple paths of a pair, by the names of the vertices, with their lengths."""
    simple: Any = nx.DiGraph()
    simple.add_nodes_from(range(len(weights)))
    simple.add_edges_from(np.argwhere(np.isfinite(weights)).tolist())
    paths = [[source]] if source == target else list(nx.all_simple_paths(simple, source, target))
    return {tuple(names[v] for v in p): sum((weights[u, v] for u, v in itertools.pairwise(p)), 0.0) for p in paths}


# The Pareto front of a pair.


def _draw_front(rng: Rng, _: Subject, device: str) -> Case:
    subject, n = catalogue("MIN_PLUS", str(rng.choice(["float64", "int32"]))), int(rng.integers(1, 8))
    arrays = {name: subject.draw(rng, (n, n), zeros=[0.3, 0.6][rng.integers(2)], harmless=True) for name in "ab"}
    options = {
        "sources": int(rng.integers(n)),
        "targets": int(rng.integers(n)),
        "widest": bool(rng.random() < 0.3),
        **_options(rng, device),
    }
    return Case("pareto_paths", subject, arrays, dict.fromkeys("ab", ("n", "n")), {}, options, "cpu")


def _check_front(case: Case) -> Complaint | None:
    graph, labels = graph_of(case, case.placed("a"))
    (b,), (zero,), widest = case.placed("b"), case.subject.zeros, case.options.get("widest", False)
    source, target = (case.options.get(name, 0) for name in ("sources", "targets"))
    first, other = _finite(case.arrays["a"][0], zero), _finite(case.arrays["b"][0], zero)
    names = range(len(first)) if labels is None else labels
    over, given = (
        ("max-min", np.where(b == zero, np.iinfo(b.dtype).min if b.dtype.kind == "i" else -math.inf, b)) if widest else ("min-plus", b)
    )
    found = attempt(sr.pareto_paths, graph, names[source], names[target], given, other_semiring=over)
    if (complaint := judged(found, {})) is not None:
        return complaint
    sums = _simple_paths(np.where(np.isfinite(other), first, math.inf), source, target, names)
    number = {name: v for v, name in enumerate(names)}
    points = {}
    for path, length in sums.items():
        steps = [other[number[u], number[v]] for u, v in itertools.pairwise(path)]
        points[path] = (length, -min(steps, default=math.inf)) if widest else (length, sum(steps))
    pairs = set(points.values())
    want = sorted(p for p in pairs if not any(q != p and q[0] <= p[0] and q[1] <= p[1] for q in pairs))
    if [points.get(tuple(p.path)) for p in found.result] != want:
        return Complaint("values", f"{found.result} instead of {want}")
    return None


# Turn costs.


def _draw_turns(rng: Rng, _: Subject, device: str) -> Case:
    subject, n = catalogue("MIN_PLUS", str(rng.choice(["float64", "float32", "int32"]))), int(rng.integers(0, 6))
    a = subject.draw(rng, (n, n), zeros=[0.3, 0.6, 0.8][rng.integers(3)], harmless=rng.random() < 0.8)
    options = {"seed": int(rng.integers(1 << 30)), "share": float(rng.choice([0.1, 0.5, 1.0])), "asked": bool(rng.random() < 0.3)}
    return Case("turns", subject, {"a": a}, {"a": ("n", "n")}, {}, options, "cpu")


def _check_turns(case: Case) -> Complaint | None:
    (a,), zero = case.arrays["a"], case.subject.zeros[0]
    n, ways, rng = len(a), np.argwhere(a != zero).tolist(), np.random.default_rng(case.options["seed"])
    m, table = len(ways), {}
    line = np.full((2 * n + m, 2 * n + m), zero, a.dtype)  # starts, ends, and edges
    line[np.arange(n), np.arange(n, 2 * n)] = 0
    for e, (u, v) in enumerate(ways):
        line[u, 2 * n + e], line[2 * n + e, n + v] = a[u, v], 0
        for f, (again, w) in enumerate(ways):
            if again != v:
                continue
            cost = [None, 0, 1, 3, -1][rng.integers(5)] if rng.random() < case.options["share"] else 0
            if cost != 0 or rng.random() < 0.1:
                table[(u, v), (v, w)] = cost
            line[2 * n + e, 2 * n + f] = zero if cost is None else a[v, w] + a.dtype.type(cost)
    listed = [(u, v, a[u, v].item()) for u, v in ways]
    asked: Any = (lambda e, f: table.get((e, f), 0)) if case.options["asked"] else table
    turns = sr.edges(listed, nodes=range(n)).with_turns(asked)
    answer = answer_for(case.subject, (line,), reflexive=True)
    found = attempt(sr.apsp, turns, dtype=a.dtype, paths=True)
    required: dict[type[Exception], str] = {sr.DivergenceError: "there is a negative cycle"} if answer.divergent.any() else {}
    complaint = judged(found, {}, required)
    if complaint is not None or found.error is not None:
        return complaint
    want = np.array(getattr(answer.star[0], "value", answer.star[0]), dtype=float)[:n, n : 2 * n]
    got = found.result.values
    if not np.array_equal(np.where(got == zero, math.inf, got.astype(float)), want):
        return Complaint("values", f"the distances with turn costs are {got} instead of {want}")
    for u, v in np.argwhere(np.isfinite(want)).tolist():
        steps = list(itertools.pairwise(found.result.path(u, v)))
        costs: list[Any] = [table.get(turn, 0) for turn in itertools.pairwise(steps)]
        if None in costs or sum(float(a[step]) for step in steps) + sum(costs) != want[u, v]:
            return Complaint("path", f"the path from {u} to {v} is {found.result.path(u, v)}, of length {want[u, v]}")
    return None


# Cycle means.


def _draw_mean(rng: Rng, _: Subject, device: str) -> Case:
    name = ("MIN_PLUS", "MAX_PLUS")[rng.integers(2)]
    subject, n = catalogue(name, str(rng.choice(["float64", "float32", "int32"]))), draw_size(rng, 33)
    a = subject.draw(rng, (n, n), zeros=[0.3, 0.8, 0.95][rng.integers(3)])
    transit = {"transit": int(rng.integers(1 << 30))} if rng.random() < 0.4 else {}
    return Case("cycle_mean", subject, {"a": a}, {"a": ("n", "n")}, {}, {**_options(rng, device), **transit}, "cpu")


def _check_mean(case: Case) -> Complaint | None:
    graph, labels = graph_of(case, case.placed("a"))
    sign = 1.0 if case.subject.semiring.name == "min-plus" else -1.0
    a, seed = case.arrays["a"][0], case.options.get("transit")
    transit = np.ones(a.shape) if seed is None else np.random.default_rng(seed).integers(1, 9, a.shape).astype(float)
    found = attempt(sr.cycle_mean, graph, case.subject.semiring, **({} if seed is None else {"transit": transit}))
    complaint = judged(found, {})
    if complaint is not None:
        return complaint
    least = np.where(a == case.subject.zeros[0], math.inf, sign * a.astype(float))
    mean, cycle = found.result.mean, found.result.cycle
    want = _karp(least)
    if seed is not None and cycle is not None:  # no cycle has a lesser ratio exactly if none of the reduced costs is negative
        ratio = Fraction(sign * found.result.total) / Fraction(found.result.transit)
        if _karp(ratio.denominator * least - ratio.numerator * transit) != 0:
            return Complaint("ratio", f"the ratio {ratio} of {cycle} is not the least")
        want = ratio
    if mean != sign * (math.inf if want is None else float(want)):
        return Complaint("mean", f"the mean is {mean}, and the least of {sign:+g} times the weights {want}")
    if (cycle is None) != (want is None):
        return Complaint("cycle", f"the cycle is {cycle}, and the mean {want}")
    if cycle is None or want is None:
        return None
    numbers = [v if labels is None else labels.index(v) for v in cycle]
    total = sum(least[u, v] for u, v in zip(numbers, [*numbers[1:], numbers[0]], strict=True))
    around = sum(transit[u, v] for u, v in zip(numbers, [*numbers[1:], numbers[0]], strict=True))
    if len({*numbers}) < len(numbers) or Fraction(total) / Fraction(around) != want or found.result.total != sign * total:
        return Complaint("cycle", f"the cycle {cycle} of weight {found.result.total} has not the mean {want}")
    for other in itertools.islice(found.result.cycles(), 30):
        ends = [v if labels is None else labels.index(v) for v in other]
        edges = ends, [*ends[1:], ends[0]]
        if len({*ends}) < len(ends) or Fraction(least[edges].sum()) / Fraction(transit[edges].sum()) != want:
            return Complaint("cycles", f"the cycle {other} is not critical; the mean is {want}")
    x = sign * np.asarray(found.result.eigenvector)
    left, right = (least - float(want) * transit + x).min(axis=1), x
    with np.errstate(invalid="ignore"):
        same = (left == right) | (np.abs(left - right) <= 1e-9)
    return None if same.all() else Complaint("eigenvector", f"A ⊗ x is {sign * left} instead of {sign * right} for x = {sign * x}")


def _karp(weights: Array) -> Fraction | None:
    """The least mean of a cycle, exactly, of whole numbers: Karp's theorem (1978), with a source before all vertices."""
    n = len(weights)
    walks = [np.zeros(n)]
    for _ in range(n):
        walks.append((walks[-1][:, None] + weights).min(axis=0))
    means = [
        max(Fraction(int(walks[n][v] - walks[k][v]), n - k) for k in range(n) if walks[k][v] < math.inf)
        for v in range(n)
        if walks[n][v] < math.inf
    ]
    return min(means, default=None)


# Rates that follow from prices, rounded.


def _draw_rates(rng: Rng, _: Subject, device: str) -> Case:
    subject, n = catalogue("MAX_TIMES", str(rng.choice(["float64", "float32"]))), draw_size(rng, 25)
    prices = np.exp(2 * rng.normal(size=n))
    rates = np.where(rng.random((n, n)) < rng.choice([0.2, 0.6, 1]), prices / prices[:, None], 0).astype(subject.dtypes[0])
    return Case(
        "tolerance", subject, {"a": (rates,)}, {"a": ("n", "n")}, {}, {**_options(rng, device), "paths": bool(rng.random() < 0.3)}, "cpu"
    )


def _check_rates(case: Case) -> Complaint | None:
    graph, _ = graph_of(case, case.placed("a"))
    rates, tolerance = case.arrays["a"][0], 1e-5 if case.arrays["a"][0].dtype == np.float32 else 1e-12
    n = len(rates)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = attempt(sr.closure, graph, case.subject.semiring, tolerance=tolerance, paths=bool(case.options.get("paths")))
        best = np.log(rates.astype(float))  # −∞ without an edge
    complaint = judged(found, {})
    if complaint is not None:
        return complaint
    got = host(found.result.values if case.options.get("paths") else found.result).astype(float)
    np.fill_diagonal(best, 0)
    for k in range(n):  # any path will do
        best = np.where(best == -math.inf, best[:, [k]] + best[[k], :], best)
    want = np.exp(best)
    if not np.allclose(got, want, rtol=100 * n * tolerance, atol=0):
        return Complaint("values", f"{got} instead of {want}")
    return None


ENTRIES = {
    "k_shortest_paths": Entry(0.3, _draw_paths, _check_paths),
    "all_paths": Entry(0.3, _draw_ties, _check_ties),
    "pareto_paths": Entry(0.2, _draw_front, _check_front),
    "cycle_mean": Entry(0.3, _draw_mean, _check_mean),
    "tolerance": Entry(0.2, _draw_rates, _check_rates),
    "turns": Entry(0.2, _draw_turns, _check_turns),
}
