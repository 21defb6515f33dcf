"""Closures: `closure`, `apsp`, `transitive_closure` of every kind of graph, with paths, some vertices, checkpoints, and files."""

from __future__ import annotations

import itertools
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import semiring as sr
from tests.campaign.answers import Answer, answer_for, closure_could_overflow, plain
from tests.campaign.cases import Attempt, Case, Complaint, Entry, Unjudged, attempt, changed, judged
from tests.campaign.kinds import LISTS, MATRICES, graph_of, labels_of
from tests.campaign.layouts import LAYOUTS, host
from tests.campaign.oracles import difference
from tests.campaign.products import draw_device, draw_layouts, draw_size, narrower, on_gpu, planted
from tests.campaign.strategies import draw_strategy, on_tensor_cores, taking
from tests.campaign.subjects import Array, Subject, Values
from tests.campaign.ways import check_construction, check_path, check_tree

__all__ = ["ENTRIES", "entries", "refusals"]

Rng = np.random.Generator


def _draw(rng: Rng, subject: Subject, device: str) -> Case | None:
    if not subject.closure:
        return None
    n = draw_size(rng, 33 if rng.random() < 0.93 else 65 if subject.structured else 129)
    lead = (int(rng.integers(0, 4)),) if rng.random() < 0.12 else ()
    options: dict[str, Any] = {}
    a = entries(rng, subject, (*lead, n, n), options)
    name = subject.semiring.name
    entry = "apsp" if name == "min-plus" and rng.random() < 0.7 else "closure"
    if name == "boolean" and rng.random() < 0.7:
        entry = "transitive_closure"
    if entry != "apsp" and rng.random() < 0.4:
        options["reflexive"] = entry == "transitive_closure"
    if rng.random() < (0.4 if subject.selective else 0.04):
        options["paths"] = True
    if rng.random() < 0.5:
        options["method"] = ("iterative", "blocked", "recursive")[rng.integers(3)]
    if rng.random() < 0.4:
        options["block"] = int(rng.integers(1, 18))
    if rng.random() < 0.15:
        options["threads"] = int(rng.integers(1, 4))
    device = draw_device(rng, device)
    kind = "array"
    if not lead and not subject.structured and rng.random() < 0.35:
        graphs = [*MATRICES[1:], *LISTS, *LISTS]
        kind = graphs[rng.integers(len(graphs))]
        if kind == "nested list" and str(subject.dtypes[0]) not in ("float64", "int64", "bool"):
            kind = "array"
        if kind in ("frame", "nested list") and not n:  # nothing has no dtype there
            kind = "array"
        if kind == "table" and subject.strangers(a):  # NaN is no value there, which is refused when the table is read
            kind = "edges"
    options |= {"kind": kind} if kind != "array" else {}
    if not lead and rng.random() < 0.08:
        options["in a list"] = True
    options |= draw_strategy(rng) if kind in LISTS else {}
    if subject.semiring.name in ("min-max", "max-min") and rng.random() < 0.5:
        a = tuple([np.where(np.tri(n, dtype=bool), v, v.swapaxes(-1, -2)) for v in a])
        options["strategy"] = "spanning tree"
    if n and rng.random() < 0.2:
        options |= _some_vertices(rng, n, device, kind)
    elif kind == "array" and not lead and subject.closure == "idempotent" and device != "reference" and rng.random() < 0.05:
        options[("checkpoint", "checkpoint", "on disk")[rng.integers(3)]] = True
        if options.get("method") != "blocked":
            options.pop("method", None)
    if kind == "array" and not {"checkpoint", "on disk"} & {*options}:
        options |= on_gpu(rng, device)
        if rng.random() < 0.1:
            options["overwrite"] = True
        elif rng.random() < 0.1 and (kinds := narrower(rng, subject, a)) is not None:
            options["dtypes"] = {"a": kinds}
    if (
        kind in MATRICES
        and not subject.structured
        and "dtypes" not in options
        and subject.kinds <= {"i", "f"}
        and rng.random() < 0.1
        and not subject.strangers(a)
    ):
        marker = float("nan") if "f" in subject.kinds and rng.random() < 0.5 else -77
        options |= {} if (a[0] == marker).any() else {"nonedge": marker}
    if options.get("paths") and kind != "frame" and rng.random() < 0.2:
        options["save"] = ("npz", "npz, mmap")[rng.integers(2)]
    axes = {"a": (*("p" for _ in lead), "n", "n")}
    layouts = draw_layouts(rng, ["a"], LAYOUTS) if kind == "array" else {}
    return Case(entry, subject, {"a": a}, axes, layouts, options, device)


def entries(rng: Rng, subject: Subject, shape: tuple[int, ...], options: dict[str, Any]) -> Values:
    """A matrix that has a closure, or a few of them; now and then not."""
    n, dtype = shape[-1], subject.dtypes[0]
    empty = rng.random(shape) < [0.1, 0.5, 0.8, 0.95][rng.integers(4)]
    match subject.semiring.name:
        case "plus-times" if dtype.kind == "f":
            a = rng.normal(size=shape) if rng.random() < 0.5 else rng.integers(-8, 9, shape).astype(float)
            a = np.where(empty, 0, a)
            a = a / np.maximum(2 * np.abs(a).sum(axis=-1, keepdims=True), 1e-6) * 0.999
            if rng.random() < 0.4:  # sums, which diverge where rows add up to much more than 1
                a = np.abs(a) * rng.choice([1.0, 1.9, 3.0, 40.0])
            if a.size and rng.random() < 0.1:
                a[..., 0, 0] = 1
            return (a.astype(dtype),)
        case "log":
            p = np.where(empty, 0, rng.random(shape) ** rng.integers(1, 9))
            with np.errstate(divide="ignore"):
                a = np.log(p / np.maximum(2.01 * p.sum(axis=-1, keepdims=True), 1e-6))
                if rng.random() < 0.15:
                    a = np.where(np.eye(n, dtype=bool), -(10.0 ** -rng.uniform(0, 6 if dtype == np.float32 else 14, shape)), -np.inf)
            return (a.astype(dtype),)
        case "gf2":
            return (np.triu(~empty, 1) if rng.random() < 0.7 else ~empty,)
        case "min-plus" if dtype.kind == "f" and rng.random() < 0.15:
            options["real"] = True
            return (np.where(empty, np.inf, rng.random(shape) * 10.0 ** rng.integers(-3, 4)).astype(dtype),)
        case "distance-count":  # a cycle of length 0 has infinitely many walks round it
            values = subject.draw(rng, shape, zeros=0, harmless=rng.random() < 0.9)
        case _:
            values = subject.draw(rng, shape, zeros=0, harmless=rng.random() < 0.85)
    values = tuple(np.where(empty, np.array(z, dtype=v.dtype), v) for v, z in zip(values, subject.zeros, strict=True))
    return planted(rng, subject, values, options)


def _some_vertices(rng: Rng, n: int, device: str, kind: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    which = [("sources",), ("targets",), ("sources", "targets")][rng.integers(3)]
    for name in which:
        if rng.random() < 0.3:
            found[name] = int(rng.integers(n))
        else:
            found[name] = [int(v) for v in rng.integers(0, n, int(rng.integers(1, 5)))]
    return found if not (device.startswith("cuda") and kind in LISTS) else {}


# The call.


def _call(case: Case, graph: Any, labels: list[Any] | None, folder: str | None) -> Attempt:
    options, subject = case.options, case.subject
    arguments: dict[str, Any] = {"device": case.device}
    arguments |= {
        name: options[name] for name in ("method", "block", "threads", "overwrite", "paths", "reflexive", "nonedge") if name in options
    }
    for name in ("sources", "targets"):
        if name in options:
            chosen = options[name]
            arguments[name] = chosen if labels is None else [labels[v] for v in chosen] if isinstance(chosen, list) else labels[chosen]
    if options.get("kind") in LISTS or "dtypes" in options:
        arguments["dtype"] = subject.dtypes if subject.structured else subject.dtypes[0]
    if options.get("checkpoint"):
        arguments["checkpoint"] = folder
    if options.get("on disk"):
        arguments["memory_limit"] = "256 MiB"  # a GPU's engine takes 64 of them as scratch
    function = getattr(sr, case.entry)
    with taking(options.get("strategy")), on_tensor_cores(bool(options.get("on tensor cores"))):
        given = (subject.semiring,) if case.entry == "closure" else ()
        if options.get("in a list") and folder is None:
            alone = tuple([np.full((1, 1), z, d) for z, d in zip(subject.zeros, subject.dtypes, strict=True)])
            alone = subject.written_in(alone, options.get("dtypes", {}).get("a", subject.dtypes))  # a stack has one dtype
            beside = graph if {"sources", "targets"} & {*arguments} else alone if subject.structured else alone[0]
            return attempt(lambda: function([graph, beside], *given, **arguments)[0])
        return attempt(function, graph, *given, **arguments)


def _check(case: Case) -> Complaint | None:
    if case.options.get("checkpoint") or case.options.get("on disk"):
        with tempfile.TemporaryDirectory() as folder:
            return _check_call(case, str(Path(folder) / "kept"))
    return _check_call(case, None)


def _check_call(case: Case, folder: str | None) -> Complaint | None:
    subject, options, logical = case.subject, case.options, case.arrays["a"]
    a = case.placed("a")
    if options.get("on disk") and folder is not None:
        a = _on_disk(a, folder)
    graph, labels = graph_of(case, a)
    found = _call(case, graph, labels, folder)
    reflexive = options.get("reflexive", case.entry != "transitive_closure")
    lead = logical[0].shape[:-2]
    strange = subject.strangers(logical)
    if subject.semiring.name == "plus-times" and subject.kinds & {"i", "u"}:
        required: dict[type[Exception], str] = {sr.DTypeError: "star divides, which integers lack", sr.LawError: "⊕ is not selective"}
        return judged(found, {sr.DomainError: strange}, required)
    answers: list[Answer] = []
    if not strange:
        for index in np.ndindex(lead):
            answers.append(answer_for(subject, tuple(v[index] for v in logical), reflexive=reflexive, real=options.get("real", False)))
    complaint = refusals(case, found, answers, strange)
    if not options.get("overwrite"):
        complaint = complaint or changed(case, "a", a)
    if complaint is not None or found.error is not None or strange:
        return complaint
    if any(answer.divergent.any() for answer in answers):
        raise Unjudged("some vertices have a closure and others not")
    complaint = _compare(case, answers, found.result, labels, reflexive)
    if options.get("checkpoint") and folder is not None and complaint is None:
        complaint = _again(case, graph, labels, folder, found.result)
    return complaint


def _on_disk(a: Values, folder: str) -> Values:
    """Arrays in files, as memory maps that cannot be written to."""
    for c, v in enumerate(a):
        np.save(f"{folder}-{c}.npy", v)
    return tuple(np.load(f"{folder}-{c}.npy", mmap_mode="r") for c in range(len(a)))


def refusals(case: Case, found: Attempt, answers: list[Answer], strange: bool) -> Complaint | None:
    subject, options, logical = case.subject, case.options, case.arrays["a"]
    n = logical[0].shape[-1]
    required: dict[type[Exception], str] = {}
    allowed: dict[type[Exception], bool] = {}
    if options.get("paths") and not subject.selective:
        required[sr.LawError] = "⊕ is not selective, so there are no paths"
    if strange:
        required[sr.DomainError] = "an entry is no element"
        return judged(found, dict.fromkeys((sr.OverflowRiskError, sr.DivergenceError), True), required)
    indices = list(np.ndindex(logical[0].shape[:-2]))
    overflow = any(
        closure_could_overflow(subject, tuple(v[index] for v in logical), (*answer.star, *answer.closure), n)
        or (answer.divergent.any() and "f" not in subject.kinds)
        for index, answer in zip(indices, answers, strict=True)
    )
    allowed[sr.OverflowRiskError] = overflow or any(answer.divergent.any() for answer in answers)
    # In a list an integer is a number, and none may become what stands for ∞ or −∞ in the dtype (0 for −∞ in an unsigned one).
    listed = options.get("kind") in ("nested list", *LISTS)
    allowed[sr.DTypeError] = listed and any(bool(np.isin(v, subject.infinities(c)).any()) for c, v in enumerate(logical))
    must, may = _diverges(case, answers)
    if must and not required and not overflow:
        required[sr.DivergenceError] = "a cycle keeps it from converging"
    allowed[sr.DivergenceError] = may
    complaint = judged(found, allowed, required)
    if complaint is None and isinstance(found.error, sr.DivergenceError) and len(answers) == 1:
        complaint = _check_cycle(case, answers[0], found.error)
    return complaint


def _diverges(case: Case, answers: list[Answer]) -> tuple[bool, bool]:
    """Whether a divergent cycle has to be told of, and whether it may be."""
    may = any(answer.divergent.any() for answer in answers)
    ends = [case.options.get(name) for name in ("sources", "targets")]
    if ends == [None, None]:
        return may, may
    if case.subject.closure == "star":
        parts = [answer_for(case.subject, part, reflexive=True) for part in _reached_parts(case)]
        # The pivot may be of a vertex that they do not reach, and what they reach may be a sum of numbers that are not negative.
        return False, may or any(part.divergent.any() for part in parts)
    must = False
    for answer in answers:
        reached = answer.reached()
        sources, targets = (slice(None) if e is None else np.atleast_1d(e) for e in ends)
        must |= bool((reached[sources][:, answer.divergent].any(axis=0) & reached[answer.divergent][:, targets].any(axis=1)).any())
    return must, may


def _reached_parts(case: Case) -> list[Values]:
    """The matrices between the vertices that the sources reach, and between those that reach the targets."""
    found, matrices = [], case.arrays["a"]
    for index in np.ndindex(matrices[0].shape[:-2]):
        a = tuple([v[index] for v in matrices])
        edge = np.logical_or.reduce([v != z for v, z in zip(a, case.subject.zeros, strict=True)])
        for name, steps in (("sources", edge), ("targets", edge.T)):
            if name in case.options:
                reached = np.isin(np.arange(len(edge)), case.options[name])
                for _ in range(len(edge)):
                    reached = reached | steps[reached].any(axis=0)
                found.append(tuple([v[np.ix_(reached, reached)] for v in a]))
    return found


def _check_cycle(case: Case, answer: Answer, error: Any) -> Complaint | None:
    """The cycle that an error shows is one, and divergent."""
    if error.cycle is None or case.subject.closure == "star" or answer.slack:
        return None
    labels = labels_of(answer.edges[0].shape[-1])
    numbers = [labels.index(v) if isinstance(v, str) else v for v in error.cycle]
    algebra, edge, weight = answer.algebra, answer.reached(answer.edges), None
    for u, v in zip(numbers, [*numbers[1:], numbers[0]], strict=True):
        if not edge[u, v]:
            return Complaint("cycle", f"the cycle {error.cycle} uses {u} → {v}, which is no edge")
        step = tuple(type(e)(plain(e)[u : u + 1, v : v + 1]) if algebra.near else e[u : u + 1, v : v + 1] for e in answer.edges)
        weight = step if weight is None else algebra.mul(weight, step)
    assert weight is not None
    one = algebra.one((1, 1))
    if all((plain(x) == plain(y)).all() for x, y in zip(algebra.add(one, weight), one, strict=True)):
        return Complaint("cycle", f"the cycle {error.cycle} of weight {[plain(w).item() for w in weight]} is harmless")
    return None


# The answer.


def _cut_out(case: Case, array: Array) -> Array:
    """Rows and columns of the sources and targets, without the axis of a vertex by itself."""
    for name, axis in (("sources", -2), ("targets", -1)):
        if name in case.options:
            array = np.asarray(np.take(array, case.options[name], axis=axis))  # objects come as themselves
    return array


def _compare(case: Case, answers: list[Answer], result: Any, labels: list[Any] | None, reflexive: bool) -> Complaint | None:
    subject, options, lead = case.subject, case.options, case.arrays["a"][0].shape[:-2]
    values = result.values if options.get("paths") else result
    found = tuple(map(host, values if subject.structured else (values,)))
    for number, index in enumerate(np.ndindex(lead)):
        answer = answers[number]
        want = tuple(
            type(v)(_cut_out(case, v.value), _cut_out(case, v.errors())) if answer.algebra.near else _cut_out(case, v)
            for v in answer.closure
        )
        wrong = difference(answer.algebra, tuple(v[index] for v in found), want)
        if wrong:
            return Complaint("values", f"{f'matrix {index}: ' if lead else ''}{wrong}")
        if options.get("paths"):
            some = result[index[0]] if lead else result
            complaint = _check_paths(case, answer, some, labels, reflexive)
            if complaint is not None:
                return complaint
    if options.get("paths") and options.get("save") and not lead and not {"sources", "targets"} & {*options}:
        return _check_saved(case, result, answers[0], labels, reflexive)
    return None


def _check_paths(case: Case, answer: Answer, paths: Any, labels: list[Any] | None, reflexive: bool) -> Complaint | None:
    n, options = answer.edges[0].shape[-1], case.options
    names = labels if labels is not None else list(range(n))
    if list(paths.nodes) != names:
        return Complaint("nodes", f"the vertices are {paths.nodes} instead of {names}")
    between = "sources" in options or "targets" in options
    sources, targets = (np.atleast_1d(options.get(e, np.arange(n))).tolist() for e in ("sources", "targets"))
    if not between and (complaint := check_construction(answer, host(paths.via))) is not None:
        return complaint
    pairs = list(itertools.product(sources, targets))
    pairs = [pairs[i] for i in np.random.default_rng(n).permutation(len(pairs))[:10]]
    for (i, j), path in zip(pairs, paths.paths([(names[i], names[j]) for i, j in pairs]), strict=True):
        numbers = [names.index(v) for v in path] if labels is not None else list(path)
        if (complaint := check_path(answer, i, j, numbers, reflexive=reflexive)) is not None:
            return complaint
    backwards = between and "sources" not in options
    for kind in ("predecessors", "next_hops") if not between else ("next_hops",) if backwards else ("predecessors",):
        tree = host(getattr(paths, kind)())
        if kind == "predecessors":
            complaint = check_tree(answer, np.atleast_2d(tree), sources, backwards=False)
        else:
            columns = tree[:, None] if tree.ndim == 1 else tree
            complaint = check_tree(answer, columns.T, targets, backwards=True)
        if complaint is not None:
            return complaint
    return None


def _check_saved(case: Case, paths: Any, answer: Answer, labels: list[Any] | None, reflexive: bool) -> Complaint | None:
    """What is loaded answers as what was saved."""
    with tempfile.TemporaryDirectory() as folder:
        file = f"{folder}/paths.npz"
        saved = attempt(paths.save, file)
        own = None if case.subject.text.startswith("sr.") and "(" not in case.subject.text else case.subject.semiring
        found = attempt(sr.Paths.load, file, semiring=own, mmap="mmap" in case.options["save"]) if saved.error is None else saved
        if found.error is not None:
            return judged(found, {})
        same = all(
            np.array_equal(host(x), host(y))
            for x, y in zip(*(p.values if case.subject.structured else (p.values,) for p in (paths, found.result)), strict=True)
        )
        if not same or not np.array_equal(host(paths.via), host(found.result.via)):
            return Complaint("loaded", "what was loaded is not what was saved")
        return _check_paths(case, answer, found.result, labels, reflexive)


def _again(case: Case, graph: Any, labels: list[Any] | None, folder: str, result: Any) -> Complaint | None:
    """The same call goes on where it was: at the end. With another entry it is another closure."""
    second = _call(case, graph, labels, folder)
    if second.error is not None:
        return judged(second, {})

    def parts(answer: Any) -> tuple[Array, ...]:
        values = answer.values if case.options.get("paths") else answer
        arrays = values if case.subject.structured else (values,)
        return tuple(np.array(v) for v in ((*arrays, answer.via) if case.options.get("paths") else arrays))

    if not all(np.array_equal(x, y) for x, y in zip(parts(result), parts(second.result), strict=True)):
        return Complaint("checkpoint", "the same call gave something else the second time")
    first, (one, *_), (zero, *_) = case.arrays["a"][0], case.subject.ones, case.subject.zeros
    for place in np.random.default_rng(first.size).permutation(first.size)[:8]:
        other = first.copy()
        other.flat[place] = zero if first.flat[place] == one else one
        changed_case = replace(case, arrays={"a": (other, *case.arrays["a"][1:])})
        third = _call(changed_case, *graph_of(changed_case, changed_case.placed("a")), folder)
        if third.error is None:
            return Complaint("checkpoint", f"the checkpoint of another input, which differs in entry {place}, was taken for one of this")
        if (complaint := judged(third, {sr.SemiringError: True})) is not None:
            return complaint
    return None


ENTRIES = {
    "closure": Entry(5, _draw, _check), "apsp": Entry(0, _draw, _check), "transitive_closure": Entry(0, _draw, _check),
}  # fmt: skip
