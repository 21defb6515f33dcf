"""The smallest case that still fails: fewer options, plain layouts, shorter axes, simpler entries."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from tests.campaign.cases import Case, Complaint

__all__ = ["shrunk"]

_VERTICES = ("sources", "targets")
"""Options that name indices of the axis n."""


def shrunk(case: Case, complaint: Complaint, check: Callable[[Case], Complaint | None], *, seconds: float = 20.0) -> tuple[Case, Complaint]:
    """A case that fails in the same way, and of whose simpler neighbours none does.

    Parameters
    ----------
    case : Case
    complaint : Complaint
        What `check` says of it.
    check : callable
    seconds : float
        When to be content.
    """
    deadline = time.monotonic() + seconds
    again = True
    while again:
        again = False
        for simpler in _simpler(case):
            if time.monotonic() > deadline:
                return case, complaint
            found = check(simpler)
            if found is not None and found.kind == complaint.kind:
                case, complaint, again = simpler, found, True
                break
    return case, complaint


def _simpler(case: Case) -> Iterator[Case]:
    """Cases a step simpler, the largest steps first."""
    for axis in dict.fromkeys(name for axes in case.axes.values() for name in axes):
        length = max((v[0].shape[case.axes[n].index(axis)] for n, v in case.arrays.items() if axis in case.axes[n]), default=0)
        if axis == "one" or length == 0:
            continue
        half = length // 2
        cuts = [list(range(half)), list(range(half, length))] if length > 3 else []
        if length <= 40:
            cuts += [[i for i in range(length) if i != drop] for drop in range(length)]
        for kept in cuts:
            if (cut := _cut(case, axis, kept)) is not None:
                yield cut
    for name in case.options:
        yield case.without(name)
    for name, value in case.options.items():
        if isinstance(value, list) and len(value) > 1:
            for i in range(len(value)):
                yield replace(case, options={**case.options, name: value[:i] + value[i + 1 :]})
    for name, layout in case.layouts.items():
        if layout != "C":
            yield replace(case, layouts={**case.layouts, name: "C"})
    for name in ("c",):
        if name in case.arrays:
            yield replace(case, arrays={k: v for k, v in case.arrays.items() if k != name})
    yield from _simpler_entries(case)


def _cut(case: Case, axis: str, kept: list[int]) -> Case | None:
    """The case with some indices of an axis alone."""
    arrays = dict(case.arrays)
    for name, axes in case.axes.items():
        if name in arrays and axis in axes:
            values = arrays[name]
            for position, own in enumerate(axes):
                if own == axis:
                    values = tuple(np.ascontiguousarray(np.take(v, kept, axis=position)) for v in values)
            arrays[name] = values
    options = dict(case.options)
    for name in _VERTICES if axis == "n" else ():
        if name in options:
            chosen = options[name]
            many = chosen if isinstance(chosen, list) else [chosen]
            left = [kept.index(v) for v in many if v in kept]
            if not left:
                return None
            options[name] = left if isinstance(chosen, list) else left[0]
    return replace(case, arrays=arrays, options=options)


def _simpler_entries(case: Case) -> Iterator[Case]:
    """Entries that are the zero, then ones that are small, first many at once."""
    subject = case.subject

    def with_entries(name: str, mask: Any, numbers: tuple[Any, ...]) -> Case | None:
        values = tuple(np.where(mask, np.array(x, dtype=v.dtype), v) for v, x in zip(case.arrays[name], numbers, strict=True))
        same = all(np.array_equal(v, w, equal_nan=v.dtype.kind == "f") for v, w in zip(values, case.arrays[name], strict=True))
        return None if same else replace(case, arrays={**case.arrays, name: values})

    for name, values in case.arrays.items():
        shape = values[0].shape
        if values[0].dtype == object or not values[0].size:
            continue
        simple = [subject.ones] if not subject.keeps_infinity else [subject.zeros, subject.ones]
        everywhere = np.ones(shape, dtype=bool)
        is_simple = [np.logical_and.reduce([v == x for v, x in zip(values, numbers, strict=True)]) for numbers in simple]
        for rank, numbers in enumerate(simple):
            settled = np.logical_or.reduce(is_simple[: rank + 1])
            if not settled.all() and (cut := with_entries(name, everywhere, numbers)) is not None:
                yield cut
            if values[0].size <= 64:
                for index in np.ndindex(shape):
                    if not settled[index]:
                        mask = np.zeros(shape, dtype=bool)
                        mask[index] = True
                        if (cut := with_entries(name, mask, numbers)) is not None:
                            yield cut
