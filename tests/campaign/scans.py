"""Scans: vectors through long products by their definition, sequence by sequence and step by step, with witnesses and states."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import semiring as sr
from tests.campaign.cases import Case, Complaint, Entry, Unjudged, attempt, changed, judged
from tests.campaign.layouts import host
from tests.campaign.oracles import Algebra, broadcast, difference, product, product_could_overflow, witness_of
from tests.campaign.products import draw_device, draw_layouts, draw_size, extremes, on_gpu, planted
from tests.campaign.subjects import Array, Rng, Subject, Values

__all__ = ["ENTRIES"]


def _draw(rng: Rng, subject: Subject, device: str) -> Case:
    states, steps = draw_size(rng, 17 if rng.random() < 0.8 else 70), int(rng.integers(0, 6))
    lengths = {"s": states, "t": steps, "p": int(rng.integers(0, 4)), "one": 1}
    many = rng.random() < 0.5
    lead = ("p",) if many else ()
    every: tuple[tuple[str, ...], ...] = (("s", "s"), ("t", "s", "s"), (*lead, "t", "s", "s"), (*lead, "one", "s", "s"))
    axes: dict[str, tuple[str, ...]] = {"matrices": every[rng.integers(len(every))]}
    if rng.random() < 0.6 or not {"t"} & {*axes["matrices"]}:
        axes["weights"] = (*lead, "t", "s")
    if rng.random() < 0.7:
        axes["initial"] = ((*lead, "s"), ("s",))[rng.integers(2)]
    zeros = [0.0, 0.25, 0.9][rng.integers(3)]
    arrays = {name: subject.draw(rng, tuple(lengths[x] for x in of), zeros=zeros) for name, of in axes.items()}
    options: dict[str, Any] = {}
    name = ("matrices", "weights")[rng.integers(2)]
    if name in arrays:
        arrays[name] = planted(rng, subject, arrays[name], options)
    for flag in ("reverse", "last"):
        if rng.random() < 0.4:
            options[flag] = True
    if rng.random() < (0.5 if subject.selective else 0.05):
        options["witness"] = True
    if many and rng.random() < 0.5:
        options["lengths"] = [int(x) for x in rng.integers(0, steps + 1, 4)]
    if rng.random() < 0.2:
        options["threads"] = int(rng.integers(1, 4))
    options |= on_gpu(rng, device)
    return Case("scan", subject, arrays, axes, draw_layouts(rng, arrays), options, draw_device(rng, device))


def _sizes(case: Case) -> tuple[int, int, int | None]:
    """States, steps, and sequences of a batch."""
    found = {axis: n for name, axes in case.axes.items() for axis, n in zip(axes, case.arrays[name][0].shape, strict=True)}
    return found["s"], found["t"], found.get("p")


def _check(case: Case) -> Complaint | None:
    subject, options = case.subject, case.options
    _, steps, count = _sizes(case)
    values = {name: case.placed(name) for name in case.arrays}
    arguments: dict[str, Any] = {name: case.given(v) for name, v in values.items()}
    arguments |= {name: options[name] for name in ("reverse", "last", "witness", "threads") if name in options}
    lengths = None
    if "lengths" in options and count is not None:
        lengths = np.minimum(options["lengths"], steps)[:count]
        arguments["lengths"] = lengths
    found = attempt(lambda: sr.scan(arguments.pop("matrices"), subject.semiring, device=case.device, **arguments))
    overflow, reach = _could_overflow(case)
    required: dict[type[Exception], str] = {}
    strange = any(map(subject.strangers, case.arrays.values()))
    if options.get("witness") and not subject.selective:
        required[sr.LawError] = "⊕ is not selective, so there is no witness"
    elif strange and lengths is None:
        required[sr.DomainError] = "an entry is no element"
    complaint = judged(found, {sr.OverflowRiskError: overflow, sr.DomainError: strange}, required)
    for name, now in values.items():
        complaint = complaint or changed(case, name, now)
    if complaint is not None or found.error is not None:
        return complaint
    if strange or (overflow and "f" in subject.kinds and not subject.selective):
        raise Unjudged("what lies beyond the ends of sequences is no element, or which sums overflow depends on their order")
    result, witness, states = found.result if options.get("witness") else (found.result, None, None)
    result = tuple(map(host, result if subject.structured else (result,)))
    if not options.get("last") and result[0].shape[-2] != steps + 1:
        return Complaint("shape", f"{result[0].shape[-2]} vectors of {steps} steps")
    for b in range(count or 0) if count is not None else [None]:
        length = steps if lengths is None or b is None else int(lengths[b])
        part = tuple(v if b is None else v[b] for v in result)
        track = None if witness is None else _track(host(witness), host(states), b)
        complaint = _compare(case, Algebra(subject, reach), _sequence(case, b), length, part, track)
        if complaint is not None:
            return complaint
    return None


def _track(witness: Array, states: Array, b: int | None) -> tuple[Array, Array]:
    """The winners and the states of one sequence."""
    return (witness, states) if b is None else (witness[b], states[b])


def _sequence(case: Case, b: int | None) -> dict[str, Values]:
    """The operands of one sequence."""
    return {name: tuple(v[b] if "p" in case.axes[name] else v for v in values) for name, values in case.arrays.items()}


def _compare(
    case: Case, algebra: Algebra, given: dict[str, Values], length: int, found: Values, track: tuple[Array, Array] | None
) -> Complaint | None:
    """One sequence against its definition."""
    reverse, last = case.options.get("reverse", False), case.options.get("last", False)
    states, *_ = _sizes(case)
    vector: Any = algebra.one((1, states)) if "initial" not in given else algebra.lift(tuple(v[None] for v in given["initial"]))
    order = range(length, -1, -1) if reverse else range(length + 1)
    expected, uncertain = np.full((1, states), -1), np.zeros((1, states), bool)
    for t in order:
        if t != order[0]:
            step = t if reverse else t - 1
            matrix = algebra.lift(tuple(_at(v, step, 2) for v in given["matrices"]))
            weights = algebra.lift(tuple(_at(v, step, 1)[None] for v in given["weights"])) if "weights" in given else None
            if reverse:
                vector = vector if weights is None else _weighed(algebra, weights, vector)
                vector, terms = product(algebra, matrix, tuple(_transposed(v) for v in vector))
                expected, uncertain = (x.T for x in witness_of(vector, terms, algebra.zero((states, 1))))
                vector = tuple(_transposed(v) for v in vector)
            else:
                vector, terms = product(algebra, vector, matrix)
                expected, uncertain = witness_of(vector, terms, algebra.zero((1, states)))
                vector = vector if weights is None else _weighed(algebra, vector, weights)
        if last and t != order[-1]:
            continue
        if any(np.isnan(v.errors()).any() for v in vector if algebra.near):
            raise Unjudged("nothing is known of the rounding")
        wrong = difference(algebra, tuple((v if last else v[t])[None] for v in found), vector)
        if wrong:
            return Complaint("values", f"at {t}: {wrong}")
        if track is not None and not last and ((track[0][t] != expected[0]) & ~uncertain[0]).any():
            return Complaint("witness", f"at {t}: {track[0][t]} instead of {expected[0]}")
    if track is None:
        return None
    total, terms = product(algebra, vector, algebra.one((states, 1)))
    best, open_ = witness_of(total, terms, algebra.zero((1, 1)))
    # Where ⊗ is written at random 1 is no identity.
    if case.subject.closure and not open_.any() and track[1][order[-1]] != best[0, 0]:
        return Complaint("states", f"the last one is {track[1][order[-1]]} instead of {best[0, 0]}")
    for now, before in zip(order[:0:-1], order[-2::-1], strict=True):
        state = track[1][now]
        if track[1][before] != (-1 if state < 0 else track[0][now][state]):
            return Complaint("states", f"{track[1]} does not follow the winners")
    if (track[1][length + 1 :] != -1).any() or (track[0][length + 1 :] != -1).any():
        return Complaint("states", "there are some beyond the end")
    return None


def _weighed(algebra: Algebra, x: Any, y: Any) -> tuple[Any, ...]:
    """The product of vectors entry by entry; a formula may use one of them alone, or none."""
    return tuple(broadcast(v, x[0].shape) for v in algebra.mul(x, y))


def _at(v: Array, step: int, axes: int) -> Array:
    """What a step has of an array."""
    return v if v.ndim == axes else v[step if v.shape[0] > 1 else 0]


def _transposed(value: Any) -> Any:
    """A vector as a column, or as a row again."""
    if hasattr(value, "value"):
        error = value.error
        return type(value)(value.value.T, error if isinstance(error, float) else error.T)
    return value.T


def _could_overflow(case: Case) -> tuple[bool, float]:
    """Whether a vector on the way could leave the dtypes, by the largest numbers of all operands; and the largest magnitude."""
    subject, (states, steps, _) = case.subject, _sizes(case)
    tops = {name: [_top(v, subject.infinities(c)) for c, v in enumerate(values)] for name, values in case.arrays.items()}
    vector, risky, reach = tops.get("initial", [_top(np.array([o], object), ()) for o in subject.one]), False, 0.0
    order = (("matrices", states), ("weights", 1))
    for _ in range(steps):
        for name, terms in reversed(order) if case.options.get("reverse") else order:
            if name in tops:
                x, y = extremes(subject, vector), extremes(subject, tops[name])
                if x is None or y is None:
                    return True, 2.0**60
                one, reached = product_could_overflow(subject, *((y, x) if case.options.get("reverse") else (x, y)), None, terms)
                risky, reach = risky or one, max(reach, reached)
                vector = [max(v, reached) for v in vector]
    # The library takes the largest of all steps for each of them.
    return risky or any(reach > np.iinfo(d).max / 64 for d in subject.dtypes if d.kind in "iu"), reach


def _top(v: Array, infinities: Sequence[Any]) -> float:
    """The largest magnitude of an array's finite numbers."""
    numbers = np.abs(v.astype(float))
    inside = np.isfinite(numbers) & ~np.isin(v, list(infinities)) if v.dtype.kind in "iu" else np.isfinite(numbers)
    return float(numbers[inside].max()) if inside.any() else 0.0


ENTRIES = {"scan": Entry(1.5, _draw, _check)}
