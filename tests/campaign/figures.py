"""Numbers that all distances or paths of a graph come to: `statistics`, `diameter`, `radius`, `reachability`, and NetworkX's own."""

from __future__ import annotations

import math
from functools import partial
from typing import Any
from unittest import mock

import networkx as nx
import numpy as np

import semiring as sr
from semiring.kernels import machine
from tests.campaign.answers import answer_for
from tests.campaign.cases import Attempt, Case, Complaint, Entry, Unjudged, attempt, judged
from tests.campaign.kinds import graph_of
from tests.campaign.lawful import catalogue
from tests.campaign.layouts import host
from tests.campaign.products import draw_size, on_gpu
from tests.campaign.strategies import draw_strategy, taking
from tests.campaign.subjects import Array, Rng, Subject

__all__ = ["ENTRIES"]

_NETWORKX = (
    "betweenness_centrality", "edge_betweenness_centrality", "diameter", "radius", "center", "periphery", "eccentricity",
    "closeness_centrality", "harmonic_centrality", "wiener_index", "group_betweenness_centrality",
)  # fmt: skip


def _options(rng: Rng, device: str) -> dict[str, Any]:
    """A kind of graph, and of a sparse one a strategy."""
    if rng.random() < 0.6 and not device.startswith("cuda"):
        return {"kind": str(rng.choice(["csr", "edges"])), **draw_strategy(rng)}
    return on_gpu(rng, device)


# Of distances.

_ENDS = ("sources", "targets")


def _draw(rng: Rng, _: Subject, device: str) -> Case:
    subject, n = catalogue("MIN_PLUS", str(rng.choice(["float64", "float32", "int32"]))), draw_size(rng, 33 if rng.random() < 0.9 else 129)
    name = str(rng.choice(["statistics", "extent", "within", "nearest", "neighbours"]))
    chosen: dict[str, Any] = {}
    if name == "statistics" and n and rng.random() < 0.4:
        chosen = {ends: [int(v) for v in rng.integers(0, n, rng.integers(1, 6))] for ends in ("sources", "targets") if rng.random() < 0.5}
        chosen |= {"limit": int(rng.integers(0, 20))} if rng.random() < 0.5 else {}
    (a,) = subject.draw(rng, (n, n), zeros=[0.3, 0.8, 0.95][rng.integers(3)], harmless=bool(chosen) or rng.random() < 0.9)
    zero = subject.zeros[0]
    if rng.random() < 0.4:
        a = np.where(a == zero, zero, a.dtype.type(rng.integers(0, 4)))  # all edges are equally long
    if rng.random() < 0.3:
        a = np.minimum(a, a.T)
    if name == "within":
        chosen["radius"] = int(rng.integers(0, 9))
    elif name == "neighbours":
        chosen["k"] = int(rng.integers(1, 2 + n))
    elif name == "nearest":
        chosen["centers"], chosen["k"] = [int(v) for v in rng.integers(0, n, 3)] if n else [], int(rng.integers(1, 4))
    return Case(name, subject, {"a": (a,)}, {"a": ("n", "n")}, {}, {**_options(rng, device), **chosen}, device)


def _distances(case: Case, call: Any) -> tuple[Attempt, Array, Complaint | None]:
    """What a call gives for the graph, all distances by their definition, −∞ for a vertex's own, and whether a refusal is justified."""
    graph, labels = graph_of(case, case.placed("a"))
    answer = answer_for(case.subject, case.arrays["a"], reflexive=True)
    named = {ends: [v if labels is None else labels[v] for v in case.options[ends]] for ends in _ENDS if ends in case.options}
    more = {"limit": case.options["limit"]} if "limit" in case.options else {}
    with taking(case.options.get("strategy")):
        found = attempt(call, graph, device=case.device, **named, **more)
    required: dict[type[Exception], str] = {sr.DivergenceError: "there is a negative cycle"} if answer.divergent.any() else {}
    distances = np.array(getattr(answer.star[0], "value", answer.star[0]), dtype=float)
    np.fill_diagonal(distances, -np.inf if len(distances) > 1 else 0)
    # CuPy's sparse matrices, in which a GPU's distances within a limit are returned, hold no integers.
    allowed = dict.fromkeys(required, True) | {
        sr.SemiringError: case.entry == "within" and case.device.startswith("cuda") and "f" not in case.subject.kinds
    }
    return found, distances, judged(found, allowed, required)


def _check_statistics(case: Case) -> Complaint | None:
    found, distances, complaint = _distances(case, sr.statistics)
    if complaint is not None or found.error is not None:
        return complaint
    rows, columns = (np.array(list(dict.fromkeys(case.options.get(ends, range(len(distances))))), int) for ends in _ENDS)
    own = rows[:, None] == columns
    distances = distances[np.ix_(rows, columns)]
    distances[distances > case.options.get("limit", np.inf)] = np.inf
    finite = distances[~own & np.isfinite(distances)]
    far = found.result.farthest
    if far is None if len(finite) else far is not None:
        return Complaint("farthest", f"the farthest pair is {far}, and {len(finite)} pairs are connected")
    if far is not None:
        names = graph_of(case, case.placed("a"))[1] or range(len(case.arrays["a"][0]))
        i, j = (some.tolist().index(list(names).index(v)) for some, v in zip((rows, columns), far[:2], strict=True))
        if own[i, j] or not far.distance == distances[i, j] == finite.max():
            return Complaint("farthest", f"the farthest pair is {far}, and the largest distance {finite.max()}")
    want = {
        "eccentricities": np.where(own.all(axis=1), 0, distances.max(axis=1, initial=-np.inf)),
        "connected": len(finite),
        "total": finite.sum(),
    }
    for name, value in want.items():
        if not np.array_equal(getattr(found.result, name), value):
            return Complaint(name, f"{name} is {getattr(found.result, name)} instead of {value}")
    if found.result.counts.sum() != len(finite):
        return Complaint("counts", f"the bins count {found.result.counts.sum()} of {len(finite)} distances")
    return None


def _check_extent(case: Case) -> Complaint | None:
    for call, extreme in ((sr.diameter, max), (sr.radius, min)):
        found, distances, complaint = _distances(case, call)
        if complaint is not None or found.error is not None:
            return complaint
        want = extreme(distances.max(axis=1, initial=-np.inf), default=math.nan)
        if not (found.result == want or (math.isnan(found.result) and math.isnan(want))):
            return Complaint(call.__name__, f"the {call.__name__} is {found.result} instead of {want}")
    return None


# Within a limit, and from the nearest source.


def _check_within(case: Case) -> Complaint | None:
    limit = case.options["radius"]
    found, distances, complaint = _distances(case, partial(sr.apsp, limit=limit))
    if complaint is not None or found.error is not None:
        return complaint
    np.fill_diagonal(distances, 0)
    pairs = found.result.get() if hasattr(found.result, "get") else found.result
    rows = np.arange(len(distances)).repeat(np.diff(pairs.indptr))
    kept = np.isfinite(distances) & (distances <= limit)
    if not np.array_equal(np.argwhere(kept), np.stack([rows, pairs.indices], axis=1)):
        return Complaint("within", f"{pairs.nnz} pairs are within {limit} instead of {int(kept.sum())}")
    if not np.array_equal(pairs.data, distances[kept]):
        return Complaint("values", f"the distances within {limit} are wrong")
    return None


def _check_neighbours(case: Case) -> Complaint | None:
    k = case.options["k"]
    found, distances, complaint = _distances(case, partial(sr.apsp, k=k))
    if complaint is not None or found.error is not None:
        return complaint
    np.fill_diagonal(distances, 0)
    padded = np.pad(distances, ((0, 0), (0, k)), constant_values=np.inf)
    order = np.argsort(padded, axis=1, kind="stable")[:, :k]
    values = np.take_along_axis(padded, order, axis=1)
    indices = np.where(np.isinf(values), -1, order)
    if host(found.result.indices).tolist() != indices.tolist():
        return Complaint("indices", f"the {k} nearest are {host(found.result.indices).tolist()} instead of {indices.tolist()}")
    reached, found_values = indices >= 0, host(found.result.values)
    none = np.isinf(found_values) | (found_values == case.subject.zeros[0])
    if not np.array_equal(found_values[reached], values[reached]) or not none[~reached].all():
        return Complaint("values", f"the distances of the {k} nearest are wrong")
    return None


def _check_nearest(case: Case) -> Complaint | None:
    sources, k = case.options["centers"], case.options["k"]
    _, labels = graph_of(case, case.placed("a"))
    names = list(range(len(case.arrays["a"][0])) if labels is None else labels)
    found, distances, complaint = _distances(case, lambda graph, device: sr.nearest(graph, [names[v] for v in sources], k=k))
    if found.error is not None:  # only cycles that the sources reach are refused
        return None if isinstance(found.error, sr.SemiringError) else complaint
    np.fill_diagonal(distances, 0)
    rows = np.sort(distances[np.unique(sources).astype(int)], axis=0).T
    want = np.full((len(distances), k), np.inf)
    want[:, : rows.shape[1]] = rows[:, :k]
    values = np.array(found.result.values, dtype=float).reshape(len(distances), k)
    if not np.array_equal(np.where(values >= 2**30, np.inf, values), want):
        return Complaint("nearest", f"the values are {values} instead of {want}")
    for v, name in enumerate(names):
        for rank in range(k):
            path = found.result.path(name, rank)
            if bool(path) != (found.result.sources.reshape(-1, k)[v, rank] not in (None, -9999)):
                return Complaint("path", f"the path to {name} is {path}")
    return None


# Of reachability.


def _draw_reachability(rng: Rng, _: Subject, device: str) -> Case:
    subject, n = catalogue("BOOLEAN", "bool"), draw_size(rng, 129)
    a = (rng.random((n, n)) < [0.5, 1.5, 3][rng.integers(3)] / max(1, n),)
    options = _options(rng, device)
    options.pop("strategy", None)
    if rng.random() < 0.5:
        options["reflexive"] = True
    if n:
        options["sources"] = [int(v) for v in rng.integers(0, n, 3)]
    return Case("reachability", subject, {"a": a}, {"a": ("n", "n")}, {}, options, device)


def _check_reachability(case: Case) -> Complaint | None:
    graph, labels = graph_of(case, case.placed("a"))
    reflexive = case.options.get("reflexive", False)
    (want,) = answer_for(case.subject, case.arrays["a"], reflexive=reflexive).closure
    found = attempt(sr.reachability, graph, reflexive=reflexive)
    complaint = judged(found, {})
    if complaint is not None:
        return complaint
    if not np.array_equal(found.result.counts, want.sum(axis=1)):
        return Complaint("counts", f"counts are {found.result.counts} instead of {want.sum(axis=1)}")
    names = range(len(want)) if labels is None else labels
    for u in case.options.get("sources", []):
        there = [names[v] for v in np.flatnonzero(want[u])]
        if found.result.reached(names[u]) != there:
            return Complaint("reached", f"{names[u]} reaches {found.result.reached(names[u])} instead of {there}")
        for v in case.options["sources"]:
            if found.result.reaches(names[u], names[v]) != want[u, v]:
                return Complaint("reaches", f"whether {names[u]} reaches {names[v]} is not {want[u, v]}")
    return None


# As NetworkX computes them.


def _draw_networkx(rng: Rng, _: Subject, device: str) -> Case | None:
    if device.startswith("cuda"):
        return None
    subject, n = catalogue("MIN_PLUS", "float64"), draw_size(rng, 17)
    (a,) = subject.draw(rng, (n, n), zeros=[0.2, 0.6, 0.9][rng.integers(3)], harmless=True)
    options: dict[str, Any] = {"function": str(rng.choice(_NETWORKX))}
    options |= {name: True for name in ("weight", "undirected") if rng.random() < 0.5} | draw_strategy(rng)
    return Case("networkx", subject, {"a": (a,)}, {"a": ("n", "n")}, {}, options, "cpu")


def _check_networkx(case: Case) -> Complaint | None:
    (a,), function = case.arrays["a"], getattr(nx, case.options["function"])
    graph: Any = nx.Graph() if "undirected" in case.options else nx.DiGraph()
    graph.add_nodes_from(range(len(a)))
    graph.add_weighted_edges_from((u, v, int(a[u, v])) for u, v in np.argwhere(np.isfinite(a)).tolist())
    if case.options["function"] == "center" and "undirected" in case.options and (not len(a) or graph.number_of_edges() == len(graph) - 1):
        raise Unjudged("the center of a graph with as many edges as a tree is left to NetworkX")
    name = "distance" if case.options["function"] in ("closeness_centrality", "harmonic_centrality") else "weight"
    more: dict[str, Any] = {name: "weight"} if "weight" in case.options else {}
    if case.options["function"] == "group_betweenness_centrality":
        if "undirected" not in case.options or ("weight" in case.options and (np.trunc(a) == 0).any()):
            raise Unjudged("groups with paths one way only, and weights of 0, are left to NetworkX")
        more["C"] = [*{0, len(a) // 2}]
    theirs = attempt(function, graph, backend="networkx", **more)
    with mock.patch.object(machine, "PART", 0), taking(case.options.get("strategy")):
        found = attempt(function, graph, backend="semiring", **more)
    if theirs.error is not None:
        return judged(found, {}, {type(theirs.error): "NetworkX refuses it"})
    complaint = judged(found, {})
    if complaint is None and not _alike(found.result, theirs.result):
        return Complaint("values", f"{found.result} instead of {theirs.result}")
    return complaint


def _alike(x: Any, y: Any) -> bool:
    """Whether results of NetworkX are the same, floats within rounding."""
    if isinstance(y, dict):
        return list(x) == list(y) and all(_alike(x[key], y[key]) for key in y)
    return bool(x == y or (isinstance(y, float) and math.isclose(x, y, rel_tol=1e-12)))


ENTRIES = {
    "statistics": Entry(0.2, _draw, _check_statistics),
    "extent": Entry(0.2, _draw, _check_extent),
    "within": Entry(0.2, _draw, _check_within),
    "nearest": Entry(0.2, _draw, _check_nearest),
    "neighbours": Entry(0.2, _draw, _check_neighbours),
    "reachability": Entry(0.3, _draw_reachability, _check_reachability),
    "networkx": Entry(0.3, _draw_networkx, _check_networkx),
}
