"""`factor`: sparse graphs that are eliminated, over any semiring with a closure, and what follows from that, after other weights too."""

from __future__ import annotations

import contextlib
import tempfile
from dataclasses import replace
from typing import Any
from unittest import mock

import numpy as np

import semiring as sr
from semiring.algorithms import elimination
from tests.campaign.answers import Answer, answer_for
from tests.campaign.cases import Case, Complaint, Entry, attempt, changed, judged
from tests.campaign.closures import entries, refusals
from tests.campaign.kinds import graph_of
from tests.campaign.layouts import host
from tests.campaign.oracles import difference
from tests.campaign.products import draw_size
from tests.campaign.subjects import Array, Rng, Subject, Values

__all__ = ["ENTRIES"]

_IN_PLACE = ("plus-times", "gf2")
"""What has a closure in one order of elimination, and in another one not."""


def _draw(rng: Rng, subject: Subject, device: str) -> Case | None:
    if not subject.closure or device.startswith("cuda"):
        return None
    n = draw_size(rng, 33 if rng.random() < 0.9 else 129)
    options: dict[str, Any] = {}
    a = entries(rng, subject, (n, n), options)
    there = rng.random((n, n)) < [1.0, 0.3, 3 / max(1, n)][rng.integers(3)]
    a = tuple(np.where(there, v, np.array(z, v.dtype)) for v, z in zip(a, subject.zeros, strict=True))
    arrays = {"a": a} | ({"b": subject.draw(rng, (n, n), zeros=0.2, harmless=True)} if rng.random() < 0.5 else {})
    if rng.random() < 0.5 or subject.semiring.name in _IN_PLACE:
        options["order"] = "natural"
    if not subject.structured and rng.random() < 0.5:
        options["kind"] = str(rng.choice(["csr", "edges", "networkx"]))
    for name, share in (("large fronts", 0.3), ("save", 0.2)):
        if rng.random() < share:
            options[name] = True
    if rng.random() < 0.3:
        options["threads"] = int(rng.integers(1, 4))
    if n:
        options |= {
            end: [int(v) for v in rng.integers(0, n, int(rng.integers(1, 70)))] for end in ("sources", "targets") if rng.random() < 0.4
        }
    return Case("factor", subject, arrays, dict.fromkeys(arrays, ("n", "n")), {}, options, "cpu")


def _check(case: Case) -> Complaint | None:
    subject, logical, options = case.subject, case.arrays["a"], case.options
    a = case.placed("a")
    graph, labels = graph_of(case, a)
    with mock.patch.object(elimination, "_SMALL", 3) if options.get("large fronts") else contextlib.nullcontext():
        found = attempt(lambda: _asked(case, graph, labels))
    if subject.semiring.name == "plus-times" and subject.kinds & {"i", "u"}:
        required: dict[type[Exception], str] = {sr.DTypeError: "star divides, which integers lack"}
        return judged(found, {sr.DomainError: True}, required)
    strange = subject.strangers(logical)
    answers = [] if strange else [answer_for(subject, logical, reflexive=True, real=options.get("real", False))]
    whole = case.without("sources", "targets")  # which do not keep elimination from a cycle
    if "b" in case.arrays:  # other weights come as a list, whose numbers do not stand for infinities
        whole = replace(whole, options={**whole.options, "kind": "edges"})
    complaint = refusals(whole, found, answers, strange) or changed(case, "a", a)
    if complaint is not None or found.error is not None or strange:
        return complaint
    values, statistics = found.result
    (answer,) = answers
    wrong = difference(answer.algebra, tuple(map(host, values)), _rectangle(case, answer))
    if wrong:
        return Complaint("values", wrong)
    return None if statistics is None else _of_distances(statistics, answer)


def _asked(case: Case, graph: Any, labels: list[Any] | None) -> tuple[Values, Any]:
    """A rectangle of the closure, and the statistics where there are some."""
    options, subject = case.options, case.subject
    more: dict[str, Any] = {name: options[name] for name in ("order", "threads") if name in options}
    if options.get("kind"):
        more["dtype"] = subject.dtypes[0]
    f = _factored(graph, subject.semiring, more) if options.get("kind") == "networkx" else sr.factor(graph, subject.semiring, **more)
    if "b" in case.arrays:
        _updated(case, f)
    if options.get("save"):
        with tempfile.TemporaryDirectory() as folder:
            f.save(f"{folder}/f.npz")
            f = sr.Factor.load(f"{folder}/f.npz", semiring=subject.semiring)
    ends = [[f.nodes[v] for v in options[end]] if end in options else slice(None) for end in ("sources", "targets")]
    values = f[ends[0], ends[1]]
    return values if subject.structured else (values,), f.statistics() if subject.semiring.name == "min-plus" else None


def _factored(graph: Any, semiring: Any, options: dict[str, Any]) -> Any:
    """Factorize a graph of NetworkX whose hidden edges are open at first, where that is possible."""
    opened = graph.copy()
    for *_, data in opened.edges(data=True):
        data["weight"] = semiring.one if data["weight"] is None else data["weight"]
    try:
        f = sr.factor(opened, semiring, **options)
    except sr.SemiringError:
        return sr.factor(graph, semiring, **options)
    f.update(graph)
    return f


def _updated(case: Case, f: Any) -> None:
    """Other weights, which may be refused, and then the first ones again."""
    zero = case.subject.semiring.identities(case.subject.dtypes)[0]
    a, b = case.placed("a"), case.placed("b")
    there = np.logical_or.reduce([v != z for v, z in zip(a, zero, strict=True)])
    tails, heads = np.nonzero(there)
    absent = np.argwhere(~there)[:1]  # closing an edge that the graph has not changes nothing
    ends = [f.nodes[v] for v in (*tails, *absent[:, 0])], [f.nodes[v] for v in (*heads, *absent[:, 1])]
    for values in (b, a):
        weights = case.given(tuple(np.append(v[tails, heads], np.full(len(absent), z, v.dtype)) for v, z in zip(values, zero, strict=True)))
        try:
            f.update((*ends, weights))
        except sr.SemiringError:
            if values is a:
                raise


def _rectangle(case: Case, answer: Answer) -> tuple[Any, ...]:
    """The same out of the closure."""

    def cut(array: Array) -> Array:
        for axis, end in enumerate(("sources", "targets")):
            if end in case.options:
                array = np.take(array, case.options[end], axis=axis)
        return array

    return tuple(type(v)(cut(v.value), cut(v.errors())) if answer.algebra.near else cut(v) for v in answer.closure)


def _of_distances(statistics: Any, answer: Answer) -> Complaint | None:
    """Eccentricities and how many pairs are connected, where distances are exact."""
    if answer.algebra.near:
        return None
    distances = np.array(answer.closure[0], dtype=float)
    others = ~np.eye(len(distances), dtype=bool)
    connected = int(np.isfinite(distances[others]).sum())
    farthest = distances.max(axis=1, where=others, initial=-np.inf if len(distances) > 1 else 0)
    if not np.array_equal(statistics.eccentricities, farthest) or (statistics.connected, statistics.counts.sum()) != (connected, connected):
        return Complaint("statistics", f"{statistics}, eccentricities {statistics.eccentricities} instead of {farthest}")
    return None


ENTRIES = {"factor": Entry(1, _draw, _check)}
