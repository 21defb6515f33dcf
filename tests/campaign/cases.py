"""A case as data: what is asked of the library, printed in full, run, and judged."""

from __future__ import annotations

import traceback
import warnings
from collections.abc import Callable, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from semiring import SemiringError
from tests.campaign.layouts import host, laid_out, laid_out_on_gpu
from tests.campaign.subjects import Subject, Values

__all__ = ["Case", "Complaint", "Entry", "Unjudged", "attempt", "changed", "compared", "judged", "same_best", "told"]

Array = np.ndarray[Any, Any]

_IN_FULL = 2000
"""Entries up to which a matrix is printed in full."""


class Complaint(NamedTuple):
    """What is wrong: in a word, by which a shrunk case is known to fail in the same way, and in full."""

    kind: str
    text: str


class Unjudged(Exception):
    """There is no telling what the answer should be."""


@dataclass(frozen=True)
class Case:
    """One call of the library, or a few that belong together.

    Attributes
    ----------
    entry : str
        The name of an `Entry`.
    subject : Subject
    arrays : mapping
        The operands by name, a tuple of one array a component each, C-contiguous; None where one is left out.
    axes : mapping
        For each operand the names of its axes: those of one name have one length, and are cut together.
    layouts : mapping
        How each operand lies in memory, "C" by default.
    options : mapping
        Everything else that is asked for, without what is default.
    device : str
    """

    entry: str
    subject: Subject
    arrays: Mapping[str, Values]
    axes: Mapping[str, tuple[str, ...]]
    layouts: Mapping[str, str] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)
    device: str = "cpu"

    def placed(self, name: str) -> Values:
        """An operand in the dtypes and the layout in which it is passed, new each time."""
        values = self.subject.written_in(self.arrays[name], self.options.get("dtypes", {}).get(name, self.subject.dtypes))
        place = laid_out_on_gpu if self.options.get("on the GPU") else laid_out
        return tuple(place(v, self.layouts.get(name, "C")) for v in values)

    def given(self, values: Values) -> Any:
        """An operand as the library takes it: a tuple only where elements are structured."""
        return values if self.subject.structured else values[0]

    def without(self, *options: str) -> Case:
        return replace(self, options={k: v for k, v in self.options.items() if k not in options})

    def __str__(self) -> str:
        lines = [f"{self.entry} over {self.subject.name} on {self.device}: {self.subject.text}"]
        for name, values in self.arrays.items():
            layout = self.layouts.get(name, "C")
            for c, v in enumerate(values):
                with np.printoptions(threshold=_IN_FULL, linewidth=130, floatmode="unique"):
                    shown = np.array2string(v, separator=", ", prefix=" " * 8) if v.dtype != object else repr(v.tolist())
                lines.append(f"  {name}{f'[{c}]' * (len(values) > 1)}: {v.dtype} of shape {v.shape}, laid out {layout}\n        {shown}")
        lines += [f"  {name} = {value!r}" for name, value in self.options.items()]
        return "\n".join(lines)


class Entry(NamedTuple):
    """A family of entry points.

    Attributes
    ----------
    share : float
        How often it is drawn, beside the others.
    draw : callable
        (rng, subject, device) → a case, or None where the subject has none of the kind.
    check : callable
        A case → a `Complaint` or None.
    """

    share: float
    draw: Callable[[np.random.Generator, Subject, str], Case | None]
    check: Callable[[Case], Complaint | None]


class Attempt(NamedTuple):
    """What a call returned or raised."""

    result: Any
    error: Exception | None


@contextmanager
def quiet() -> Any:
    """No warnings of what cases mean; but NumPy's, of an overflow or a NaN inside the library, are errors."""
    with warnings.catch_warnings(), np.errstate(divide="warn", over="warn", under="ignore", invalid="warn"):
        warnings.simplefilter("ignore")
        warnings.simplefilter("error", RuntimeWarning)
        yield


def attempt(call: Callable[..., Any], *arguments: Any, **options: Any) -> Attempt:
    try:
        with quiet():
            return Attempt(call(*arguments, **options), None)
    except Exception as error:
        return Attempt(None, error)


def told(error: BaseException) -> str:
    """An error as a complaint shows it: the message, and for what nobody raised on purpose where it came from."""
    text = f"{type(error).__name__}: {error}"
    if not isinstance(error, SemiringError):
        text += "\n" + "".join(traceback.format_exception(error)[-6:])
    return text


def judged(
    found: Attempt, allowed: Mapping[type[Exception], bool], required: Mapping[type[Exception], str] | None = None
) -> Complaint | None:
    """Whether a refusal, or that there was none, is justified; None where it is, and where there is a result to compare.

    Parameters
    ----------
    found : Attempt
    allowed : mapping
        The errors that may be raised, and whether the oracle agrees with each.
    required : mapping, optional
        Errors of which one has to be raised, each with the reason.
    """
    if found.error is None:
        if required:
            return Complaint("accepted", f"accepted, though {next(iter(required.values()))}")
        return None
    for kind, justified in {**allowed, **dict.fromkeys(required or {}, True)}.items():
        if isinstance(found.error, kind):
            return (
                None if justified else Complaint(f"refused {type(found.error).__name__}", f"refused without a reason: {told(found.error)}")
            )
    return Complaint(f"raised {type(found.error).__name__}", f"raised {told(found.error)}")


def changed(case: Case, name: str, now: Values) -> Complaint | None:
    """Whether the library changed an operand that it was only lent."""
    for original, array in zip(case.placed(name), now, strict=True):
        before, after = host(original), host(array)
        if not (np.array_equal(before, after) if before.dtype.kind == "O" else before.tobytes() == after.tobytes()):
            return Complaint("changed", f"the operand {name} was changed")
    return None


def compared(found: Any, want: Any, dtype: np.dtype[Any], close: Callable[[Any, Any], Any] | None = None) -> Complaint | None:
    """Compare an array with what it should be: dtype, shape, and entries, which are equal, or those that `close` accepts."""
    if found.dtype != dtype or found.shape != want.shape:
        return Complaint("form", f"the result has dtype {found.dtype} and shape {found.shape} instead of {dtype} and {want.shape}")
    alike = np.asarray(found.astype(object) == want.astype(object) if close is None else close(found, want), dtype=bool)
    if alike.all():
        return None
    where = tuple(int(i) for i in np.argwhere(~alike)[0])
    first = f"first at {list(where)}: {found[where]} instead of {want[where]}"
    return Complaint("values", f"{int((~alike).sum())} of {alike.size} entries differ, {first}")


def same_best(found: Any, whole: Array, k: int, largest: bool, device: str) -> Complaint | None:
    """Compare the k best with a stable sort of the matrix: equal ones by their columns, NaN last; on a GPU within rounding."""

    def key(value: Any) -> tuple[bool, Any]:
        return (True, 0) if value != value else (False, -value if largest else value)

    ranked = [sorted(range(len(row)), key=lambda j, row=row: key(row[j]))[:k] for row in whole.tolist()]  # type: ignore[misc]
    order = np.array(ranked, np.int64).reshape(len(whole), k)
    values, indices = map(host, found)
    if device.startswith("cuda") and values.dtype.kind == "f":  # another kernel than the matrix's adds in another order
        close, scale = 1e-5 if values.dtype == np.float32 else 1e-13, np.abs(whole[np.isfinite(whole)]).max(initial=1.0)
        right = all(
            np.allclose(values, np.take_along_axis(whole, places, axis=1), rtol=close, atol=close * scale, equal_nan=True)
            for places in (indices, order)
        )
        return None if right else Complaint("best", f"the {k} best are in {indices.tolist()}, and not in {order.tolist()}")
    if indices.dtype != np.int64 or indices.tolist() != order.tolist():
        return Complaint("indices", f"the {k} best are in {indices.tolist()}, not {order.tolist()}")
    expected = np.take_along_axis(whole, order, axis=1)
    if values.dtype != whole.dtype or not np.array_equal(values, expected, equal_nan=values.dtype.kind == "f"):
        return Complaint("best", "the best entries are not those of the matrix")
    return None
