"""Executor of scans: read operands, ask for a plan, check numbers, and multiply vectors by sequences of matrices."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable
from contextlib import nullcontext
from typing import Any, NamedTuple

import numpy as np

from semiring.algebra.definition import Semiring
from semiring.algorithms.sampling import require_probabilities, sample_states
from semiring.algorithms.scan import scan
from semiring.arrays.devices import host, namespace, on_device, scratch_memory
from semiring.arrays.exchange import Borrowed, borrowed
from semiring.arrays.followed import require_entries
from semiring.arrays.memory import ALWAYS_FITS, require_bytes, with_scratch
from semiring.common.errors import DomainError, DTypeError, SemiringError, ShapeError, TooLargeError
from semiring.common.units import counted
from semiring.execution.operands import (
    WITNESS,
    arrays_of,
    broadcast,
    common_dtypes,
    dtype_of,
    elements,
    operand,
    require_one_place,
    restorer_of,
)
from semiring.kernels.engine import ScanOperands, ScanPlaces
from semiring.kernels.overflow.scans import check_scan
from semiring.planning import Plan, Problem, location, plan

__all__ = [
    "Decoded", "Sampled", "ScanOptions", "SequenceForm", "dtypes_of_scan", "form_of_scan", "lengths_of", "scan_sequences", "whole_numbers",
]  # fmt: skip

_NAMES = "matrices", "weights", "initial", "added"

_MOST_STEPS = np.iinfo(np.int64).max


class Decoded(NamedTuple):
    """Vectors of a scan, the winning k of each entry, and the best sequence of states; `scan` returns them with ``witness=True``.

    Examples
    --------
    >>> import numpy as np, semiring as sr
    >>> stay = np.log([[0.9, 0.1], [0.2, 0.8]])
    >>> found = sr.scan(stay, "max-plus", np.log([0.5, 0.5]), weights=np.log([[0.1, 0.7], [0.6, 0.3], [0.1, 0.9]]), witness=True)
    >>> found.states
    array([1, 1, 1, 1], dtype=int32)

    Attributes
    ----------
    values : array, or tuple of arrays for structured elements
        The result of `scan` without a witness.
    witness : int32 array of shape (…, T + 1, S)
        The first k whose term is the entry of v[t−1] ⊗ A[t] (``reverse``: A[t] ⊗ …): the previous (next) state of the best sequence.
        The witness is −1 where no term beat the zero, and where a sequence begins.
    states : int32 array of shape (…, T + 1)
        The best sequence of states; −1 beyond the end, and all −1 if no sequence exists.
    """

    values: Any
    witness: Any
    states: Any


class Sampled(NamedTuple):
    """Vectors of a scan, and sequences of states drawn from their posterior distribution; `scan` returns them with ``sample=``.

    Examples
    --------
    >>> import numpy as np, semiring as sr
    >>> stay = np.log([[0.9, 0.1], [0.2, 0.8]])
    >>> seen = np.log([[0.1, 0.7], [0.6, 0.3], [0.1, 0.9]])
    >>> sr.scan(stay, "log", np.log([0.5, 0.5]), weights=seen, sample=7).states
    array([1, 1, 1, 1], dtype=int32)

    Attributes
    ----------
    values : array
        The result of `scan` without samples.
    states : int32 array of shape (…, T + 1)
        A sequence of states; −1 beyond the end, and all −1 if no sequence exists.
    """

    values: Any
    states: Any


class ScanOptions(NamedTuple):
    """The options of `semiring.scan`."""

    last: bool
    reverse: bool
    witness: bool
    device: str
    threads: int | None
    check: bool
    sample: np.random.Generator | None = None


class SequenceForm(NamedTuple):
    """Form of a scan, by shapes alone: leading axes, steps and states."""

    batch: tuple[int, ...]
    steps: int
    states: int


def scan_sequences(
    matrices: Any, semiring: Semiring, initial: Any, weights: Any, lengths: Any, options: ScanOptions, added: Any = None
) -> Any:
    """Scan sequences of matrices of any library; return the answer in the caller's kind.

    Vectors `added`, of shape (…, T + 1, S), join the vectors by ⊕ after each step.
    """
    if options.witness:
        semiring.require_selective()
    if options.sample is not None:
        require_probabilities(semiring)
    given = {name: x for name, x in zip(_NAMES, (matrices, weights, initial, added), strict=True) if x is not None}
    lent = {name: operand(x, semiring, name) for name, x in given.items()}
    parts = {name: arrays_of(x) for name, x in lent.items()}
    counts = None if lengths is None else whole_numbers(lengths)
    form = form_of_scan({name: part[0].shape for name, part in parts.items()}, counts)
    dtypes = dtypes_of_scan(semiring, parts.values())
    device = options.device
    place = location(tuple(v for part in parts.values() for v in part), device)
    shape = *form.batch, form.steps + 1, form.states
    how = plan(Problem("scan", semiring, dtypes, shape, form.states, place, options.witness, device=device, threads=options.threads))
    a, w, v = (lent.get(name, ()) for name in _NAMES[:3])
    require_one_place(a, w, v, None, None, there=how.problem.there, names=_NAMES[:3])
    needed = _answer_bytes(how, form, options)
    if needed > ALWAYS_FITS:
        more = "" if options.last or options.witness else ", or last=True for the last vector"
        advice = f"pass fewer sequences or steps at a time{more}"
        require_bytes(with_scratch(needed) if how.gpu else needed, "the answer takes", advice, how.device)
    with on_device(how.device), scratch_memory() if how.gpu else nullcontext():
        values, witness, states = _compute(how, form, lengths_of(form.batch, form.steps, counts), lent, options)
    restore = restorer_of(tuple(p for x in lent.values() for p in x))
    kept = [*values, *(v for v in (witness, states) if v is not None)]
    if how.gpu and not how.problem.there:
        kept = list(map(host, kept))
    if restore is not None:
        kept = list(map(restore, kept))
    answer = kept[0] if semiring.components == 1 else tuple(kept[: semiring.components])
    if options.sample is not None:
        return Sampled(answer, kept[-1])
    return Decoded(answer, *kept[-2:]) if options.witness else answer


def dtypes_of_scan(semiring: Semiring, parts: Iterable[Any]) -> tuple[np.dtype[Any], ...]:
    """Return the dtypes of a scan of operands, given by their components."""
    dtypes = functools.reduce(lambda x, y: common_dtypes(x, y, semiring), (tuple(map(dtype_of, part)) for part in parts))
    return common_dtypes(dtypes, dtypes, semiring)  # a single operand is converted too


def _answer_bytes(how: Plan, form: SequenceForm, options: ScanOptions) -> int:
    """Count the bytes of the vectors, and with a witness those of the winners and the states."""
    vectors, element = math.prod(form.batch) * (form.steps + 1), sum(d.itemsize for d in how.dtypes)
    witness = vectors * (form.states + 1) * WITNESS.itemsize if options.witness else 0
    return (math.prod(form.batch) if options.last else vectors) * form.states * element + witness


def _compute(how: Plan, form: SequenceForm, lengths: Any, lent: dict[str, tuple[Borrowed, ...]], options: ScanOptions) -> ScanPlaces:
    """Compute the answer, in arrays of the computing device."""
    parts = {name: elements(x, how.dtypes, how.semiring, name, how.device) for name, x in lent.items()}
    xp = namespace(parts["matrices"][0])
    if "initial" not in parts:
        _, one = how.semiring.identities(how.dtypes)
        parts["initial"] = tuple(xp.full(form.states, o, dtype) for o, dtype in zip(one, how.dtypes, strict=True))
    operands = ScanOperands(parts["matrices"], parts.get("weights"), parts["initial"], lengths, form.steps, form.states, parts.get("added"))
    engine: Any = how.engine()
    engine.asynchronous = how.gpu
    threads, backward = how.problem.threads, options.reverse
    engine.signed = check_scan(how.semiring, how.dtypes, operands, threads, backward=backward, refuse=options.check)
    rows = (*form.batch, form.steps + 1)
    shape = (*(form.batch if options.last and options.sample is None else rows), form.states)
    places = ScanPlaces(
        tuple(xp.empty(shape, dtype) for dtype in how.dtypes),
        xp.empty((*rows, form.states), WITNESS) if options.witness else None,
        xp.empty(rows, WITNESS) if options.witness else None,
    )
    scan(engine, how.scans, operands, places, backward=backward)
    return places if options.sample is None else _sample(how, operands, places, options)


def _sample(how: Plan, operands: ScanOperands, places: ScanPlaces, options: ScanOptions) -> ScanPlaces:
    """Draw a sequence of states for each sequence of a scan."""
    (values,), xp, lengths = places.values, namespace(places.values[0]), operands.lengths
    parts = (operands.matrices, operands.weights or (), operands.initial)
    if how.semiring.program.exponential is None and any(v.size and bool((v < 0).any()) for part in parts for v in part):
        raise DomainError(f"samples over {how.semiring.name} need probabilities, and an entry is negative")
    assert options.sample is not None
    draws = xp.asarray(options.sample.random((*operands.batch, operands.steps + 1)))
    states = sample_states(how.semiring, operands, values, draws, backward=options.reverse)
    if options.last:
        ends = xp.asarray(0 * lengths if options.reverse else lengths)
        values = xp.take_along_axis(values, ends[..., None, None], axis=-2)[..., 0, :]
    return places._replace(values=(values,), states=states)


def form_of_scan(shapes: dict[str, tuple[int, ...]], lengths: np.ndarray[Any, Any] | None) -> SequenceForm:
    """Return the form of a scan of arrays of these shapes, after a check of shapes and lengths."""
    matrices, weights, initial = (shapes.get(name) for name in _NAMES[:3])
    assert matrices is not None
    if len(matrices) < 2 or matrices[-1] != matrices[-2]:
        raise ShapeError(f"matrices must be square, of shape (S, S) or (…, T, S, S); got {matrices}")
    states = matrices[-1]
    if weights is not None and (len(weights) < 2 or weights[-1] != states):
        raise ShapeError(f"weights must have a row of {counted(states, 'state')} for each step, shape (…, T, {states}); got {weights}")
    if initial is not None and (not initial or initial[-1] != states):
        raise ShapeError(f"initial must be a vector of {counted(states, 'state')}, or have leading axes before them; got {initial}")
    counts = [shape[axis] for shape, axis in ((matrices[:-2], -1), (weights, -2)) if shape]
    if counts:
        steps = next((t for t in counts if t != 1), 1)
    elif lengths is not None:
        steps = int(lengths.max(initial=0))
        if steps > _MOST_STEPS:
            raise TooLargeError(f"lengths reach {steps}, and a scan has at most {_MOST_STEPS} steps")
    else:
        raise ShapeError("one matrix does not tell the number of steps; pass weights, lengths, or numpy.broadcast_to(matrix, (T, S, S))")
    if any(t not in (1, steps) for t in counts):
        raise ShapeError(f"matrices {matrices} and weights {weights} differ in their number of steps")
    axes = matrices[:-3], (weights or ())[:-2], (initial or ())[:-1], () if lengths is None else lengths.shape
    try:
        batch = broadcast(*axes)
    except ValueError:
        raise ShapeError(f"the leading axes of {', '.join(f'{name} {shape}' for name, shape in shapes.items())} do not broadcast") from None
    if lengths is not None and lengths.size and not 0 <= lengths.min() <= lengths.max() <= steps:
        more = "; one matrix for all steps has the shape (S, S)" if lengths.min() >= 0 and steps == 1 and weights is None else ""
        raise ShapeError(f"lengths must be from 0 to {steps}, the number of steps; they are from {lengths.min()} to {lengths.max()}{more}")
    return SequenceForm(batch, steps, states)


def lengths_of(batch: tuple[int, ...], steps: int, lengths: Any) -> np.ndarray[Any, Any]:
    """Return the length of each sequence of a batch; `lengths` are None where all have the same."""
    return np.array(np.broadcast_to(steps if lengths is None else lengths, batch), np.int64)


def whole_numbers(lengths: Any) -> np.ndarray[Any, Any]:
    """Return lengths as an array of integers on the host; `DTypeError` is raised for other numbers."""
    require_entries(lengths, "lengths")
    try:
        found = np.asarray(host(borrowed(lengths).array))
    except ValueError as error:
        if isinstance(error, SemiringError):
            raise
        raise ShapeError(f"lengths is no array: {error}") from error
    integers = found.dtype.kind in "iu" or {*map(type, found.ravel().tolist())} == {int}  # Python's, of any size
    if not integers and found.size:
        raise DTypeError(f"lengths must be integers; they are {found.dtype}")
    return found if integers else found.astype(np.int64)
