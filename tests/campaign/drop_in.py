"""`semiring.csgraph` beside SciPy's own functions, and beside closures of what SciPy's conventions call edges."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse import csgraph as scipys

from semiring import csgraph
from tests.campaign.answers import answer_for
from tests.campaign.cases import Case, Complaint, Entry, attempt, judged
from tests.campaign.lawful import catalogue
from tests.campaign.layouts import LAYOUTS, laid_out
from tests.campaign.products import draw_layouts, draw_size
from tests.campaign.strategies import draw_strategy, taking
from tests.campaign.subjects import Subject
from tests.campaign.ways import check_tree

__all__ = ["ENTRIES"]

Rng = np.random.Generator

_FUNCTIONS = ("shortest_path", "shortest_path", "floyd_warshall", "dijkstra", "bellman_ford", "johnson")
_METHODS = {"FW": "floyd_warshall", "D": "dijkstra", "BF": "bellman_ford", "J": "johnson"}
_DENSE, _SPARSE = ("dense", "masked"), ("csr", "csc", "coo", "lil", "csr_matrix")


def _draw(rng: Rng, _: Subject, device: str) -> Case:
    subject = catalogue("MIN_PLUS", "float64")
    n = draw_size(rng, 33)
    empty = rng.random((n, n)) < [0.1, 0.5, 0.8, 0.95][rng.integers(4)]
    options: dict[str, Any] = {
        "function": str(rng.choice([*_FUNCTIONS, "connected_components"])),
        "kind": str(rng.choice([*_DENSE, *_SPARSE])),
    }
    if rng.random() < 0.2:
        weights = rng.random((n, n)) * 10 + 1e-3
        options["real"] = True
    else:
        weights = rng.integers(1, 9, (n, n)).astype(float)
    directed = rng.random() < 0.7
    if directed and rng.random() < 0.3 and "real" not in options:
        weights[rng.random((n, n)) < rng.choice([0.05, 0.3])] *= -1
    if not directed:
        options["directed"] = False
    if rng.random() < 0.2:
        options["unweighted"] = True
    function = options["function"]
    if function == "connected_components":
        options = {"function": function, "kind": options["kind"], "directed": directed, "connection": str(rng.choice(["weak", "strong"]))}
    else:
        if function == "shortest_path":
            options["method"] = str(rng.choice(["auto", "FW", "D", "BF", "J"]))
        if rng.random() < 0.5:
            options["return_predecessors"] = True
        if n and function != "floyd_warshall" and options.get("method") != "FW" and rng.random() < 0.5:
            options["indices"] = int(rng.integers(-n, n)) if rng.random() < 0.3 else rng.integers(-n, n, int(rng.integers(1, 5))).tolist()
        if function == "dijkstra" and rng.random() < 0.4:
            options["limit"] = float(rng.integers(0, 20))
        options |= draw_strategy(rng)
    a = np.where(empty, np.inf, weights)
    layouts = draw_layouts(rng, ["a"], LAYOUTS) if options["kind"] == "dense" else {}
    chosen = device if device != "cpu" or rng.random() < 0.5 else "auto"
    return Case("csgraph", subject, {"a": (a,)}, {"a": ("n", "n")}, layouts, options, chosen)


def _graph(case: Case) -> Any:
    """The matrix as SciPy takes it: a dense 0 is no edge, in sparse arrays what is not stored, and masks hide."""
    (a,) = case.arrays["a"]
    edge, kind = np.isfinite(a), case.options["kind"]
    if kind == "dense":
        return laid_out(
            np.where(edge, a, np.array([0, np.inf, np.nan])[np.arange(a.size).reshape(a.shape) % 3]), case.layouts.get("a", "C")
        )
    if kind == "masked":
        return np.ma.array(np.where(edge, a, 7), mask=~edge)
    rows, columns = np.nonzero(edge)
    listed = sp.coo_array((a[edge], (rows, columns)), shape=a.shape)
    return sp.csr_matrix(listed) if kind == "csr_matrix" else listed.asformat(kind)


def _check(case: Case) -> Complaint | None:
    options = dict(case.options)
    function, _, real = options.pop("function"), options.pop("kind"), options.pop("real", False)
    strategy = options.pop("strategy", None)
    (a,) = case.arrays["a"]
    n, graph = len(a), _graph(case)
    edges = sp.csr_array((a[np.isfinite(a)], np.nonzero(np.isfinite(a))), shape=a.shape)
    if function == "connected_components":
        found, theirs = attempt(csgraph.connected_components, graph, **options), attempt(scipys.connected_components, edges, **options)
        if found.error is not None or theirs.error is not None:
            return None if theirs.error is not None and found.error is not None else judged(found, {})
        return _partition(found.result, theirs.result)
    if options.get("indices") is not None and isinstance(options["indices"], list) and any(abs(v + 0.5) > n for v in options["indices"]):
        return None  # cut away while it was shrunk
    unweighted, directed = options.get("unweighted", False), options.get("directed", True)
    w = np.where(np.isfinite(a), 1.0, np.inf) if unweighted else a
    w = w if directed else np.minimum(w, w.T)
    answer = answer_for(case.subject, (w,), reflexive=True, real=real)
    method = options.get("method", "")
    named = _METHODS.get(method, function if function != "shortest_path" else "")
    with taking(strategy):
        found = attempt(getattr(csgraph, function), graph, device=case.device, **options)
    if answer.divergent.any():
        if named in ("", "dijkstra", "floyd_warshall"):  # SciPy's dijkstra may not come back, and its floyd_warshall passes loops by
            return judged(found, {scipys.NegativeCycleError: True, ValueError: True})
        # SciPy's johnson refuses every negative cycle, its bellman_ford those that it reaches.
        own = {k: v for k, v in options.items() if k != "method"}
        theirs = attempt(scipys.bellman_ford, edges, **own)
        if named == "johnson" and found.error is not None:
            return judged(found, {scipys.NegativeCycleError: True})
        if isinstance(theirs.error, scipys.NegativeCycleError):
            return judged(found, {}, {scipys.NegativeCycleError: "SciPy finds a negative cycle"})
        if found.error is not None:
            return judged(found, {})
        theirs_distances = theirs.result[0] if options.get("return_predecessors") else theirs.result
        ours = found.result[0] if options.get("return_predecessors") else found.result
        return (
            None if np.array_equal(theirs_distances, ours) else Complaint("values", "differs from SciPy's answer beside a negative cycle")
        )
    if found.error is not None:
        return judged(found, {})
    indices = options.get("indices", np.arange(n))
    sources = np.atleast_1d(np.asarray(indices, dtype=int)) % max(n, 1)
    want, slack = answer.star[0].value[sources], answer.slack
    if "limit" in options:
        want = np.where(want > options["limit"], np.inf, want)
    distances, tree = found.result if options.get("return_predecessors") else (found.result, None)
    shape = want.shape if np.ndim(indices) else want.shape[1:]
    if distances.dtype != np.float64 or distances.shape != shape:
        return Complaint("values", f"distances of dtype {distances.dtype} and shape {distances.shape} instead of {shape}")
    rows = distances.reshape(want.shape)
    with np.errstate(invalid="ignore"):
        wrong = ~((rows == want) | (np.abs(rows - want) <= slack))
    if wrong.any():
        where = tuple(int(i) for i in np.argwhere(wrong)[0])
        return Complaint("values", f"{int(wrong.sum())} distances differ, first at {list(where)}: {rows[where]} instead of {want[where]}")
    if tree is None or "limit" in options:
        return None
    return check_tree(answer, tree.reshape(want.shape), sources.tolist(), backwards=False)


def _partition(ours: Any, theirs: Any) -> Complaint | None:
    """The same components, whatever their numbers."""
    (count, labels), (expected, others) = ours, theirs
    pairs = {*zip(np.asarray(labels).tolist(), np.asarray(others).tolist(), strict=True)}
    same = count == expected and len(pairs) == len({x for x, _ in pairs}) == len({y for _, y in pairs})
    return None if same else Complaint("components", f"{count} components {np.asarray(labels).tolist()} instead of {others.tolist()}")


ENTRIES = {"csgraph": Entry(1.5, _draw, _check)}
