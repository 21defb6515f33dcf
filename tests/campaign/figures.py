"""`statistics`: the eccentricities, sums and counts of all distances, and the farthest pair."""

from __future__ import annotations

from typing import Any

import numpy as np

import semiring as sr
from tests.campaign.answers import answer_for
from tests.campaign.cases import Case, Complaint, Entry, attempt, judged
from tests.campaign.kinds import graph_of
from tests.campaign.lawful import catalogue
from tests.campaign.products import draw_size
from tests.campaign.subjects import Subject

__all__ = ["ENTRIES"]


def _draw(rng: np.random.Generator, _: Subject, device: str) -> Case:
    subject, n = catalogue("MIN_PLUS", str(rng.choice(["float64", "float32", "int32"]))), draw_size(rng, 33)
    a = subject.draw(rng, (n, n), zeros=[0.3, 0.8, 0.95][rng.integers(3)], harmless=rng.random() < 0.9)
    options: dict[str, Any] = {"kind": str(rng.choice(["csr", "edges"]))} if rng.random() < 0.5 and not device.startswith("cuda") else {}
    return Case("statistics", subject, {"a": a}, {"a": ("n", "n")}, {}, options, device)


def _check(case: Case) -> Complaint | None:
    graph, _ = graph_of(case, case.placed("a"))
    answer = answer_for(case.subject, case.arrays["a"], reflexive=True)
    found = attempt(sr.statistics, graph, device=case.device)
    if answer.divergent.any():
        return judged(found, {}, {sr.DivergenceError: "there is a negative cycle"})
    if found.error is not None:
        return judged(found, {})
    distances = np.array(getattr(answer.star[0], "value", answer.star[0]), dtype=float)
    n = len(distances)
    others = distances[~np.eye(n, dtype=bool)]
    finite = others[np.isfinite(others)]
    far = found.result.farthest
    if far is None if len(finite) else far is not None:
        return Complaint("farthest", f"the farthest pair is {far}, and {len(finite)} pairs are connected")
    if far is not None:
        i, j = map(found.result.nodes.index, far[:2])
        if i == j or not far.distance == distances[i, j] == finite.max():
            return Complaint("farthest", f"the farthest pair is {far}, and the largest distance {finite.max()}")
    np.fill_diagonal(distances, -np.inf if n > 1 else 0)
    want = {"eccentricities": distances.max(axis=1, initial=-np.inf), "connected": len(finite), "total": finite.sum()}
    for name, value in want.items():
        if not np.array_equal(getattr(found.result, name), value):
            return Complaint(name, f"{name} is {getattr(found.result, name)} instead of {value}")
    if found.result.counts.sum() != len(finite):
        return Complaint("counts", f"the bins count {found.result.counts.sum()} of {len(finite)} distances")
    return None


ENTRIES = {"statistics": Entry(0.3, _draw, _check)}
