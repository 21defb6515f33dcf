"""Contractions of one to four arrays, by a sum over all values of all indices: expressions, orders, slices, winners and planned calls."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any, NamedTuple

import numpy as np

import semiring as sr
from tests.campaign.arithmetic import Near
from tests.campaign.cases import Case, Complaint, Entry, Unjudged, attempt, changed, judged
from tests.campaign.exact import draw_fractions
from tests.campaign.formulas import ARITHMETIC, REAL, Range, operations, ranges
from tests.campaign.layouts import LAYOUTS, WRITABLE, host
from tests.campaign.oracles import Algebra, broadcast, difference, operand_ranges, product_could_overflow
from tests.campaign.products import draw_device, draw_layouts, extremes, narrower, on_gpu
from tests.campaign.subjects import Array, Rng, Subject, Values

__all__ = ["ENTRIES", "Expression", "contracted"]

_ELLIPSIS = "..."


class Expression(NamedTuple):
    """The names of the axes of each operand and of the result, read once more; those of an ellipsis are numbered from the last."""

    inputs: tuple[tuple[str, ...], ...]
    output: tuple[str, ...]
    lengths: dict[str, int]

    @property
    def summed(self) -> tuple[str, ...]:
        return tuple([i for i in self.lengths if i not in self.output])

    @classmethod
    def of(cls, subscripts: str, shapes: list[tuple[int, ...]]) -> Expression:
        """Read subscripts for arrays of these shapes."""
        given, arrow, result = subscripts.replace(" ", "").partition("->")
        terms = given.split(",")
        inputs = tuple([_axes(term, len(shape)) for term, shape in zip(terms, shapes, strict=True)])
        lengths: dict[str, int] = {}
        for axes, shape in zip(inputs, shapes, strict=True):
            for axis, length in zip(axes, shape, strict=True):
                lengths[axis] = length if lengths.get(axis, 1) == 1 else lengths[axis]
        free = sorted((axis for axis in lengths if axis.isdigit()), reverse=True)
        if arrow:
            before, dots, after = result.partition(_ELLIPSIS)
            return cls(inputs, (*before, *(free if dots else []), *after), lengths)
        counts = Counter(letter for term in terms for letter in term.replace(_ELLIPSIS, ""))
        return cls(inputs, (*free, *sorted(letter for letter, count in counts.items() if count == 1)), lengths)


def _axes(term: str, width: int) -> tuple[str, ...]:
    before, dots, after = term.partition(_ELLIPSIS)
    more = width - len(before) - len(after)
    return (*before, *(map(str, range(more, 0, -1)) if dots else ()), *after)


# What is drawn.


def _draw(rng: Rng, subject: Subject, device: str) -> Case:
    fractions = rng.random() < 0.15
    subject = draw_fractions(rng) if fractions else subject
    count = int(rng.choice([1, 2, 3, 4], p=[0.15, 0.35, 0.35, 0.15]))
    subscripts, shapes = _draw_expression(rng, count, 300 if fractions else 3000)
    zeros = [0.0, 0.25, 0.8][rng.integers(3)]
    arrays = {f"x{i}": subject.draw(rng, shape, zeros=zeros) for i, shape in enumerate(shapes)}
    options: dict[str, Any] = {"subscripts": subscripts, **_draw_options(rng, subject, count)}
    expression = Expression.of(subscripts, shapes)
    if rng.random() < 0.03 and not fractions and (stranger := subject.stranger(rng)) is not None and arrays["x0"][0].size:
        first = arrays["x0"][0].copy()
        first.flat[int(rng.integers(first.size))] = stranger
        arrays["x0"] = (first, *arrays["x0"][1:])
    if rng.random() < 0.2:
        options["out"] = "new"
        alike = [name for name, v in arrays.items() if v[0].shape == tuple(expression.lengths[i] for i in expression.output)]
        if alike and rng.random() < 0.5 and "twice" not in options:
            options["out"] = str(rng.choice(alike))
    elif count > 1 and not fractions and rng.random() < 0.15 and (kinds := narrower(rng, subject, arrays["x1"])) is not None:
        options["dtypes"] = {"x1": kinds}
    layouts = draw_layouts(rng, arrays, LAYOUTS) | draw_layouts(rng, ["out"], WRITABLE)
    if options.get("out", "new") != "new" and layouts.get(options["out"]) not in WRITABLE:
        layouts.pop(options["out"], None)
    axes = {name: tuple(["one" if n == 1 else i for i, n in zip(names, shape, strict=True)])
            for name, names, shape in zip(arrays, expression.inputs, shapes, strict=True)}  # fmt: skip
    options |= {} if fractions else on_gpu(rng, device)
    return Case("einsum", subject, arrays, axes, layouts, options, "auto" if fractions else draw_device(rng, device))


def _draw_options(rng: Rng, subject: Subject, count: int) -> dict[str, Any]:
    options: dict[str, Any] = {}
    if rng.random() < 0.6:
        path = _draw_path(rng, count)
        options["optimize"] = [False, False, "greedy", "optimal", path, path, ("einsum_path", *path)][rng.integers(7)]
    if rng.random() < (0.5 if subject.selective else 0.03):
        options["witness"] = "marked" if subject.selective and rng.random() < 0.3 else True
    if rng.random() < 0.4:
        options["memory"] = float(rng.choice([0.0, rng.random(), 1.0]))
    if rng.random() < 0.3:
        options["twice"] = True
    elif rng.random() < 0.15:
        options["lists"] = True
    if rng.random() < 0.15:
        options["threads"] = int(rng.integers(1, 4))
    if rng.random() < 0.1:
        options["unchecked"] = True
    return options


def _draw_path(rng: Rng, count: int) -> tuple[tuple[int, ...], ...]:
    """Draw the places of the operands of each step, now and then of more than two."""
    path = []
    while count > 1:
        some = min(count, int(rng.choice([2, 2, 2, 3])))
        path.append(tuple(int(i) for i in rng.permutation(count)[:some]))
        count -= some - 1
    return tuple(path)


def _draw_expression(rng: Rng, count: int, most: int) -> tuple[str, list[tuple[int, ...]]]:
    """Draw subscripts with at most so many values of all indices together, and the shapes of the operands."""
    letters = "abcdefg"[: int(rng.integers(1, 8))]
    lengths = {letter: int(rng.choice([0, 1, 2, 3, 4, 7], p=[0.03, 0.12, 0.3, 0.3, 0.15, 0.1])) for letter in letters}
    free = [int(rng.integers(1, 4)) for _ in range(rng.integers(0, 3))]
    dotted, terms, shapes = rng.random() < 0.3, [], []
    for _ in range(count):
        term = [str(rng.choice(list(letters))) for _ in range(rng.integers(0, 4))]
        if rng.random() < 0.8:  # mostly without repeated indices
            term = list(dict.fromkeys(term))
        shape = [1 if rng.random() < 0.06 else lengths[letter] for letter in term]
        if dotted and rng.random() < 0.7:
            place, own = int(rng.integers(len(term) + 1)), free[int(rng.integers(len(free) + 1)) :]
            term.insert(place, _ELLIPSIS)
            shape[place:place] = [1 if rng.random() < 0.15 else n for n in own]
        terms.append("".join(term))
        shapes.append(tuple(shape))
    used = sorted({letter for term in terms for letter in term.replace(_ELLIPSIS, "")})
    expression = ",".join(terms)
    if rng.random() < 0.85:
        output = [str(x) for x in rng.permutation(used)][: int(rng.integers(0, len(used) + 1))]
        if _ELLIPSIS in expression:
            output.insert(int(rng.integers(len(output) + 1)), _ELLIPSIS)
        expression += "->" + "".join(output)
    if math.prod(Expression.of(expression, shapes).lengths.values()) > most:
        return _draw_expression(rng, count, most)
    return (expression.replace(",", ", ") if rng.random() < 0.1 else expression), shapes


# By definition.


def contracted(algebra: Algebra, expression: Expression, operands: list[Values]) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """Return the contraction, and the terms of each element: axes for the results, for the values of summed indices, and one more."""
    order = (*expression.output, *expression.summed)
    lengths = [expression.lengths[i] for i in order]
    grid = dict(zip(order, np.ix_(*map(range, lengths)), strict=True)) if order else {}
    terms: tuple[Any, ...] | None = None
    for values, names in zip(operands, expression.inputs, strict=True):
        part = tuple([_spread(v, names, grid, len(order)) for v in algebra.lift(values)])
        terms = part if terms is None else algebra.mul(terms, part)
    assert terms is not None
    results = math.prod(lengths[: len(expression.output)])
    rows = results, math.prod(lengths[len(expression.output) :]), 1
    terms = tuple([_shaped(broadcast(v, (*lengths, 1)), rows) for v in terms])
    found = algebra.sum(terms, algebra.zero((results, 1)))
    return tuple([_shaped(broadcast(v, (results, 1)), tuple(lengths[: len(expression.output)])) for v in found]), terms


def _spread(values: Any, names: tuple[str, ...], grid: dict[str, Array], width: int) -> Any:
    """Return the entries of an operand for all values of all indices, with one more axis."""
    if isinstance(values, Near):
        return Near(_spread(values.value, names, grid, width))
    index = tuple([grid[i] if n > 1 or grid[i].size < 1 else grid[i] * 0 for i, n in zip(names, values.shape, strict=True)])
    chosen = np.asarray(values[index], dtype=values.dtype)
    return chosen.reshape((*(chosen.shape if names else [1] * width), 1))


def _shaped(value: Any, shape: tuple[int, ...]) -> Any:
    if isinstance(value, Near):
        return Near(value.value.reshape(shape), value.error if isinstance(value.error, float) else value.errors().reshape(shape))
    return np.asarray(value).reshape(shape)


def _could_overflow(subject: Subject, expression: Expression, operands: list[Values]) -> tuple[bool, float]:
    """Return True if a product of any order could leave the dtypes, and the largest magnitude there; operands may be ones."""
    if "O" in subject.kinds:
        return False, 0.0
    count = max(1, math.prod(expression.lengths[i] for i in expression.summed))
    sums = bool(operations(subject.add) & (ARITHMETIC | REAL))
    tops = [[max(1, r.magnitude) for r in operand_ranges(subject, v)] for v in operands]
    tops.append([1] * len(subject.dtypes))  # sums of one operand are products with ones
    found, reach, now = False, 0.0, tops[0]
    for top in tops[1:]:
        x, y = extremes(subject, now), extremes(subject, top)
        if x is None or y is None:
            return True, math.inf
        risky, magnitude = product_could_overflow(subject, x, y, None, count)
        found, reach = found or risky, max(reach, magnitude)
        both = [[Range(-t if "u" not in subject.kinds else 0, t) for t in side] for side in (now, top)]
        now = [max(1, r.magnitude) * (count if sums else 1) for r in ranges(subject.mul, *both)[0]]
    return found, reach


# What is asked.


def _check(case: Case) -> Complaint | None:
    subject, options = case.subject, case.options
    subscripts = options.get("subscripts")
    if subscripts is None:
        raise Unjudged("there is no contraction without subscripts")
    logical = list(case.arrays.values())
    expression = Expression.of(subscripts, [v[0].shape for v in logical])
    risky, reach = _could_overflow(subject, expression, logical)
    given = {name: case.placed(name) for name in case.arrays}
    out = _out(case, expression, given)
    found = attempt(lambda: _asked(case, expression, given, out))
    strange, lawful = any(map(subject.strangers, logical)), subject.semiring.name not in ("written", "tuples")
    required: dict[type[Exception], str] = {}
    if options.get("witness") and not subject.selective:
        required[sr.LawError] = "⊕ is not selective, so there is no witness"
    allowed: dict[type[Exception], bool] = {sr.OverflowRiskError: risky, sr.DomainError: strange or risky, sr.LawError: not lawful}
    complaint = judged(found, allowed, required)
    for name, now in given.items():
        if out is not now:
            complaint = complaint or changed(case, name, now)
    if complaint is not None or found.error is not None:
        return complaint
    if strange or (risky and ("f" in subject.kinds or options.get("unchecked"))):
        raise Unjudged("entries that are no elements, and sums that overflow, mean nothing")
    algebra = Algebra(subject, reach)
    if out is not None:
        written = found.result[-1][0] if subject.structured else (found.result[-1][0],)
        if any(x is not y for x, y in zip(written, out, strict=True)):
            return Complaint("out", "the result is not out")
    for flipped, (values, winners) in zip((True, False)[-len(found.result) :], found.result, strict=True):
        operands = [tuple(map(_flipped, values)) for values in logical] if flipped else logical
        complaint = complaint or _compare(case, algebra, expression, operands, values, winners)
    return complaint


def _out(case: Case, expression: Expression, given: dict[str, Values]) -> Values | None:
    chosen, shape = case.options.get("out"), tuple(expression.lengths[i] for i in expression.output)
    if chosen is None:
        return None
    if chosen in given and given[chosen][0].shape == shape:
        return given[chosen]
    empty = {"out": tuple([np.zeros(shape, d) for d in case.subject.dtypes])}
    return Case(case.entry, case.subject, empty, {}, case.layouts, {"on the GPU": case.options.get("on the GPU")}).placed("out")


def _asked(case: Case, expression: Expression, given: dict[str, Values], out: Values | None) -> list[tuple[Any, Any]]:
    """Return values and witness of the call; before these, those of the flipped arrays where one expression is called twice."""
    options = case.options
    more: dict[str, Any] = {name: options[name] for name in ("optimize", "threads") if name in options}
    more |= {"witness": True} if options.get("witness") is True else {}
    semiring = case.subject.semiring.with_witness() if options.get("witness") == "marked" else case.subject.semiring
    more |= {"semiring": semiring, "device": case.device}
    if options.get("unchecked"):
        more["check"] = False
    shapes = [v[0].shape for v in case.arrays.values()]
    if "memory" in options:
        planned = {name: more[name] for name in ("optimize", "witness", "semiring") if name in more}
        plan = sr.contract_expression(options["subscripts"], *shapes, dtype=case.subject.dtypes, **planned).plan
        least = plan.with_slices(list(plan.contraction.lengths)).costs.memory
        more["memory_limit"] = max(1, least + int(options["memory"] * max(0, plan.costs.memory - least)))
    operands, into = [case.given(v) for v in given.values()], {} if out is None else {"out": case.given(out)}
    if options.get("twice"):
        expected = sr.contract_expression(options["subscripts"], *shapes, dtype=case.subject.dtypes, **more)
        if "memory" in options:
            assert expected.plan.costs.memory <= more["memory_limit"], "the plan takes more memory than its limit"
        flipped = expected(*[case.given(tuple(map(_flipped, values))) for values in given.values()])
        found = [flipped, expected(*operands, **into)]
    elif options.get("lists"):
        subscripts, *others = _listed(options["subscripts"], operands)
        found = [sr.einsum(subscripts, *others, **more, **into)]
    else:
        found = [sr.einsum(options["subscripts"], *operands, **more, **into)]
    return [(v.values, v.witness) if options.get("witness") else (v, None) for v in found]


def _flipped(v: Any) -> Any:
    """Return a view with all axes reversed, of an array of any library."""
    return v[(slice(None, None, -1),) * v.ndim] if v.ndim else v


def _listed(subscripts: str, operands: list[Any]) -> list[Any]:
    """Return each operand with the list of its indices, as numbers, and last the list of the result's."""
    given, arrow, result = subscripts.replace(" ", "").partition("->")
    terms = [_numbers(term) for term in given.split(",")]
    return [v for pair in zip(operands, terms, strict=True) for v in pair] + ([_numbers(result)] if arrow else [])


def _numbers(term: str) -> list[Any]:
    return [... if letter == "." else ord(letter) for letter in term.replace(_ELLIPSIS, ".")]


def _compare(case: Case, algebra: Algebra, expression: Expression, operands: list[Values], result: Any, winners: Any) -> Complaint | None:
    subject = case.subject
    want, terms = contracted(algebra, expression, operands)
    if algebra.near and any(np.any(v.error) for v in want):
        if subject.semiring.name == "log":
            want = (Near(want[0].value, _log_error(algebra, expression, operands)),)
        elif len(operands) > 2:
            raise Unjudged("how far several products may be rounded depends on their order")
    parts = [host(v) for v in (result if subject.structured else (result,))]
    found = tuple([np.asarray(v, dtype=object) if "O" in subject.kinds and v.ndim == 0 else v for v in parts])  # an object as itself
    wrong = difference(algebra, found, want)
    if wrong:
        return Complaint("values", wrong)
    return None if winners is None else _check_winners(case, algebra, expression, want, terms, winners)


def _log_error(algebra: Algebra, expression: Expression, operands: list[Values]) -> float:
    """Return how far any order may be from the sum of exponentials: what `matmul` promises, once for each product and each sum."""
    finite = [np.abs(v[0][np.isfinite(v[0])].astype(float)) for v in operands]
    size = sum(float(v.max()) for v in finite if v.size) + 10
    depth = math.prod(max(1, expression.lengths[i]) for i in expression.summed)
    return 4 * (len(operands) + 1) * (min(depth, 128) + 16 * -(-depth // 512) + 16) * algebra.unit * size


def _check_winners(
    case: Case, algebra: Algebra, expression: Expression, want: tuple[Any, ...], terms: tuple[Any, ...], winners: Any
) -> Complaint | None:
    """Check that the term of the winning values is the element; −1 stands where the element is zero."""
    shape, summed = tuple(expression.lengths[i] for i in expression.output), expression.summed
    names = {i: ord(i) if case.options.get("lists") else i for i in summed}
    if {*winners} != {*names.values()}:
        return Complaint("witness", f"the witness has the indices {[*winners]} instead of {[*names.values()]}")
    if not summed:
        return None
    arrays = [host(winners[names[i]]) for i in summed]
    if any(v.dtype != np.int32 or v.shape != shape for v in arrays):
        return Complaint("witness", f"the witness has dtype {arrays[0].dtype} and shape {arrays[0].shape} instead of {shape}")
    values, zero = (np.stack([np.asarray(_plain(v)).reshape(-1) for v in x], axis=-1) for x in (want, algebra.zero(shape)))
    stacked = np.stack([_plain(v)[..., 0] for v in terms], axis=-1)
    lost = (values == zero).all(axis=-1)
    numbers = np.stack([v.reshape(-1) for v in arrays], axis=-1)
    lengths = [expression.lengths[i] for i in summed]
    outside = ((numbers < 0) | (numbers >= lengths)).any(axis=-1) & ~lost
    if (numbers[lost] != -1).any() or outside.any():
        return Complaint("witness", f"the witness is {numbers.tolist()}, and these elements are zero: {np.flatnonzero(lost).tolist()}")
    if any(np.any(v.errors() > 0) for v in terms if isinstance(v, Near)):
        raise Unjudged("rounding decides which term wins")
    kept = np.flatnonzero(~lost)
    flat = np.ravel_multi_index(tuple(numbers[kept].T), lengths) if kept.size else kept
    wrong = kept[(stacked[kept, flat] != values[kept]).any(axis=-1)]
    if wrong.size:
        first = int(wrong[0])
        return Complaint("witness", f"the winning values {numbers[first].tolist()} of element {first} do not give it")
    return None


def _plain(value: Any) -> Array:
    return np.asarray(value.value if isinstance(value, Near) else value)


ENTRIES = {"einsum": Entry(1.5, _draw, _check)}
