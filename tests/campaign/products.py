"""Products and powers: `matmul` with all it takes, `power`, and `pairwise` over a semiring."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

import semiring as sr
from tests.campaign.arithmetic import Near
from tests.campaign.cases import Case, Complaint, Entry, Unjudged, attempt, changed, judged, same_best
from tests.campaign.layouts import LAYOUTS, WRITABLE, host
from tests.campaign.oracles import Algebra, difference, identity, product, product_could_overflow, witness_of
from tests.campaign.strategies import on_tensor_cores
from tests.campaign.subjects import Array, Subject, Values

__all__ = ["ENTRIES", "draw_device", "draw_layouts", "draw_size", "extremes", "narrower", "on_gpu", "planted", "result_axes"]

Rng = np.random.Generator

_SIZES = (0, 1, 1, 2, 2, 3, 3, 4, 5, 7, 8, 9, 11, 13, 16, 17, 23, 31, 32, 33, 61, 64, 65, 97, 128, 129)
"""None, one, primes, powers of two, and one more: those are the sides of blocks and tiles."""


def draw_size(rng: Rng, most: int) -> int:
    fitting = [s for s in _SIZES if s <= most]
    return int(fitting[int(len(fitting) * rng.random() ** 1.2)])


def draw_layouts(rng: Rng, names: Any, choices: tuple[str, ...] = LAYOUTS) -> dict[str, str]:
    return {name: str(choices[rng.integers(len(choices))]) for name in names if rng.random() < 0.5}


def draw_device(rng: Rng, device: str) -> str:
    """The device of the campaign; now and then the reference engine in the CPU's place."""
    return "reference" if device == "cpu" and rng.random() < 0.07 else device


def on_gpu(rng: Rng, device: str) -> dict[str, Any]:
    """Whether operands lie on the GPU already, and whether small integers take tensor cores; the rest come from the host."""
    options = ("on the GPU", "on tensor cores") if device.startswith("cuda") else ()
    return {option: True for option in options if rng.random() < 0.5}


_NARROWER = {
    "float64": ("float32", "float16", "int32", "int16"), "float32": ("float16", "int16", "int8"), "int64": ("int32", "int16", "int8"),
    "int32": ("int16", "int8"), "int16": ("int8",), "uint64": ("uint32", "uint8"), "uint32": ("uint16", "uint8"), "uint16": ("uint8",),
}  # fmt: skip


def narrower(rng: Rng, subject: Subject, values: Values) -> tuple[str, ...] | None:
    """Narrower dtypes that hold some elements, one a component."""
    chosen = []
    if subject.strangers(values):
        return None
    for c, (v, dtype) in enumerate(zip(values, subject.dtypes, strict=True)):
        options = _NARROWER.get(str(dtype), ())
        if not options:
            return None
        kind = np.dtype(options[rng.integers(len(options))])
        special = np.isin(v, subject.infinities(c)) if dtype.kind in "iu" else np.isinf(v) & (kind.kind == "i")
        info = np.iinfo(kind) if kind.kind in "iu" else None
        there = v[~special]
        if dtype.kind == "f" and info is not None and not (there == np.rint(there)).all():
            return None
        if info is not None and there.size and not (info.min < there.min() and there.max() < info.max):
            return None
        if info is None and not np.array_equal(v.astype(kind), v, equal_nan=True):
            return None
        chosen.append(str(kind))
    return tuple(chosen)


_NEAR_THE_END = ("min-plus", "max-plus", "written", "plus-times", "max-times")
_SCALABLE = ("min-plus", "max-plus", "max-min", "min-max")


def planted(rng: Rng, subject: Subject, values: Values, options: dict[str, Any]) -> Values:
    """Now and then something that has to be refused, or may: a stranger among the elements, or numbers near an end of the dtype."""
    (first, *rest) = values
    if not first.size:
        return values
    index = tuple(int(rng.integers(s)) for s in first.shape)
    chance = rng.random()
    if chance < 0.02 and (stranger := subject.stranger(rng)) is not None:
        first = first.copy()
        first[index] = stranger
    elif chance < 0.08 and first.dtype.kind in "iuf" and subject.semiring.name in _NEAR_THE_END:
        if max(first.shape) > 33 and (first.dtype.itemsize == 8 or subject.semiring.name == "max-times"):
            return values  # Python's own integers, which are needed then, take too long
        first = first.copy()
        top = np.iinfo(first.dtype).max if first.dtype.kind in "iu" else float(np.finfo(first.dtype).max)
        share = [1 / 2, 1 / 4, 1 / 8, 1 / 16, 1 / 3][rng.integers(5)]
        some = rng.random(first.shape) < 0.3
        first[some] = int(top * share) if first.dtype.kind in "iu" else top * share
    elif chance < 0.1 and first.dtype == np.float32 and subject.semiring.name in _SCALABLE:
        first = first * np.float32(2.0**-149)  # whole numbers as subnormal ones, of which sums are exact too
    return (first, *rest)


def _draw_matmul(rng: Rng, subject: Subject, device: str) -> Case:
    most = 33 if rng.random() < 0.9 else 129
    m, k, n = (draw_size(rng, most) for _ in range(3))
    while m * k * n > 60_000:
        m, k, n = (m + 1) // 2, (k + 2) // 3, (n + 1) // 2
    kind = rng.choice(["matrix", "batch", "vector"], p=[0.7, 0.15, 0.15])
    a_axes: tuple[str, ...] = ("m", "k")
    b_axes: tuple[str, ...] = ("k", "n")
    lengths: dict[str, int] = {"m": m, "k": k, "n": n, "one": 1}
    if kind == "batch":
        lengths |= {"p": int(rng.integers(0, 4)), "q": int(rng.integers(1, 3))}
        leads: list[tuple[tuple[str, ...], tuple[str, ...]]] = [
            (("p",), ("p",)), (("p",), ()), ((), ("p",)), (("p", "one"), ("q",)), (("q", "p"), ("one", "p")), (("one",), ("p",)),
        ]  # fmt: skip
        lead = leads[rng.integers(len(leads))]
        a_axes, b_axes = (*lead[0], *a_axes), (*lead[1], *b_axes)
    elif kind == "vector":
        a_axes, b_axes = [(("k",), ("k", "n")), (("m", "k"), ("k",)), (("k",), ("k",))][rng.integers(3)]
    options: dict[str, Any] = {}
    zeros = [0.0, 0.25, 0.9][rng.integers(3)]
    arrays = {name: subject.draw(rng, tuple(lengths[x] for x in axes), zeros=zeros) for name, axes in (("a", a_axes), ("b", b_axes))}
    axes = {"a": a_axes, "b": b_axes}
    if rng.random() < 0.1:
        arrays["a"] = tuple(np.array(np.broadcast_to(v[..., :1, :], v.shape)) if v.ndim > 1 else v for v in arrays["a"])  # rows alike
    arrays["a"] = planted(rng, subject, arrays["a"], options)
    result = result_axes(a_axes, b_axes)
    if rng.random() < 0.25:
        arrays["c"], axes["c"] = subject.draw(rng, tuple(lengths[x] for x in result), zeros=0.5), result
    witness = rng.random() < (0.5 if subject.selective else 0.05)
    if witness:
        options["witness"] = "marked" if subject.selective and rng.random() < 0.3 else True
    if rng.random() < 0.2:
        aliases = [name for name in ("a", "b", "c") if name in arrays and arrays[name][0].shape == tuple(lengths[x] for x in result)]
        options["out"] = (["new", *aliases] * 2)[rng.integers(2 * len(aliases) + 2)]
    elif rng.random() < 0.15:
        name = ("a", "b")[rng.integers(2)]
        if (kinds := narrower(rng, subject, arrays[name])) is not None:
            options["dtypes"] = {name: kinds}
        elif subject.text in ("sr.BOOLEAN", "sr.GF2"):
            options["dtypes"] = {name: ("uint8",)}
    if rng.random() < 0.2:
        options["threads"] = int(rng.integers(1, 4))
    options |= on_gpu(rng, device)
    layouts = draw_layouts(rng, arrays)
    if options.get("out", "new") != "new":
        layouts |= draw_layouts(rng, [options["out"]], WRITABLE)
        if layouts.get(options["out"]) not in WRITABLE:
            layouts.pop(options["out"], None)
    if "out" in options:
        layouts |= draw_layouts(rng, ["out"], WRITABLE)
    return Case("matmul", subject, arrays, axes, layouts, options, draw_device(rng, device))


def result_axes(a: tuple[str, ...], b: tuple[str, ...]) -> tuple[str, ...]:
    """The axes of the product: the leading ones broadcast, "one" against anything."""
    lead_a, lead_b = list(a[:-2]), list(b[:-2])
    width = max(len(lead_a), len(lead_b))
    lead_a, lead_b = ["one"] * (width - len(lead_a)) + lead_a, ["one"] * (width - len(lead_b)) + lead_b
    lead = tuple(y if x == "one" else x for x, y in zip(lead_a, lead_b, strict=True))
    return (*lead, *(a[-2:-1] if len(a) > 1 else ()), *(b[-1:] if len(b) > 1 else ()))


def _check_matmul(case: Case) -> Complaint | None:
    subject, options = case.subject, case.options
    values = {name: case.placed(name) for name in case.arrays}
    a, b, c = values["a"], values["b"], values.get("c")
    arguments: dict[str, Any] = {"device": case.device}
    if c is not None:
        arguments["c"] = case.given(c)
    if options.get("witness") is True:
        arguments["witness"] = True
    if "threads" in options:
        arguments["threads"] = options["threads"]
    out: Values | None = None
    if "out" in options:
        shape = tuple(_length(case, axis) for axis in result_axes(case.axes["a"], case.axes["b"]))
        fresh = Case(
            case.entry,
            subject,
            {"out": tuple(np.zeros(shape, d) for d in subject.dtypes)},
            {},
            case.layouts,
            {"on the GPU": options.get("on the GPU")},
        )
        out = fresh.placed("out") if options["out"] == "new" else values[options["out"]]
        arguments["out"] = case.given(out)
    logical = case.arrays
    overflow, reach = product_could_overflow(subject, logical["a"], logical["b"], logical.get("c"), _length(case, "k"))

    def multiply() -> Any:
        semiring = subject.semiring.with_witness() if options.get("witness") == "marked" else subject.semiring
        return sr.matmul(case.given(a), case.given(b), semiring, **arguments)

    with on_tensor_cores(bool(options.get("on tensor cores"))):
        found = attempt(multiply)

    required: dict[type[Exception], str] = {}
    if options.get("witness") and not subject.selective:
        required[sr.LawError] = "⊕ is not selective, so there is no witness"
    elif any(map(subject.strangers, logical.values())):
        required[sr.DomainError] = "an entry is no element"
    complaint = judged(found, {sr.OverflowRiskError: overflow}, required)
    for name, now in values.items():
        if out is not now:
            complaint = complaint or changed(case, name, now)
    if complaint is not None or found.error is not None:
        return complaint
    result, witness = (found.result.values, found.result.witness) if options.get("witness") else (found.result, None)
    if out is not None and result is not arguments["out"]:
        return Complaint("out", "the result is not out")
    if overflow and "f" in subject.kinds and not subject.selective:
        raise Unjudged("an ∞ of an overflow is what IEEE 754 says, but which sums overflow depends on their order")
    return _compare(case, Algebra(subject, reach), result if subject.structured else (result,), witness)


def _compare(case: Case, algebra: Algebra, result: tuple[Any, ...], witness: Any) -> Complaint | None:
    a, b = (algebra.lift(case.arrays[name]) for name in "ab")
    row, column = len(case.axes["a"]) == 1, len(case.axes["b"]) == 1
    if row:
        a = tuple(v[None, :] for v in a)
    if column:
        b = tuple(v[:, None] for v in b)

    def full(values: Any) -> Any:
        values = tuple(v[..., None] for v in values) if column else values
        return tuple(v[..., None, :] for v in values) if row else values

    def flat(value: Any) -> Any:
        value = value[..., 0] if column else value
        return (value[..., 0] if column else value[..., 0, :]) if row else value

    old = full(algebra.lift(case.arrays["c"])) if "c" in case.arrays else None
    want, terms = product(algebra, a, b, old)
    wrong = difference(algebra, tuple(map(host, result)), tuple(map(flat, want)))
    if wrong:
        return Complaint("values", wrong)
    if witness is None:
        return None
    shape = want[0].shape
    expected, uncertain = witness_of(want, terms, algebra.zero(shape) if old is None else old)
    expected, uncertain = flat(expected), flat(uncertain)
    witness = host(witness)
    if witness.dtype != np.int32 or witness.shape != expected.shape:
        return Complaint("witness", f"the witness has dtype {witness.dtype} and shape {witness.shape} instead of {expected.shape}")
    wrong_ones = (witness != expected) & ~uncertain
    if wrong_ones.any():
        where = tuple(int(i) for i in np.argwhere(wrong_ones)[0])
        return Complaint(
            "witness", f"{int(wrong_ones.sum())} witnesses differ, first at {list(where)}: {witness[where]} instead of {expected[where]}"
        )
    return None


def _length(case: Case, axis: str) -> int:
    if axis == "one":
        return 1
    return next(int(v[0].shape[axes.index(axis)]) for name, v in case.arrays.items() if axis in (axes := case.axes[name]))


def _draw_power(rng: Rng, subject: Subject, device: str) -> Case:
    n = draw_size(rng, 17)
    k = int(rng.integers(0, 9)) if subject.closure else int(rng.integers(0, 3))
    lead = () if rng.random() < 0.8 else (int(rng.integers(0, 4)),)
    options: dict[str, Any] = {"k": k, **on_gpu(rng, device)}
    arrays = {"a": planted(rng, subject, subject.draw(rng, (*lead, n, n), zeros=[0.0, 0.5][rng.integers(2)]), options)}
    return Case(
        "power", subject, arrays, {"a": (*("p" for _ in lead), "n", "n")}, draw_layouts(rng, arrays), options, draw_device(rng, device)
    )


def _check_power(case: Case) -> Complaint | None:
    subject, k, logical = case.subject, case.options["k"], case.arrays["a"]
    a = case.placed("a")
    found = attempt(sr.power, case.given(a), k, subject.semiring, device=case.device)
    n = logical[0].shape[-1]
    strange = subject.strangers(logical)
    required: dict[type[Exception], str] = {sr.DomainError: "an entry is no element"} if strange else {}
    if strange:
        return judged(found, {sr.OverflowRiskError: True}, required) or changed(case, "a", a)
    algebra, powers, overflow = _powers(subject, logical, k)
    complaint = judged(found, {sr.OverflowRiskError: overflow, sr.DomainError: overflow}) or changed(case, "a", a)
    if complaint is not None or found.error is not None:
        return complaint
    if overflow and "f" in subject.kinds:
        raise Unjudged("which sums overflow depends on their order")
    result = found.result if subject.structured else (found.result,)
    lead = logical[0].shape[:-2]
    if k == 0:
        unit = identity(algebra, n)
        spread = [np.broadcast_to(v.value if algebra.near else v, (*lead, n, n)) for v in unit]
        want = tuple(map(Near, spread)) if algebra.near else tuple(spread)
    else:
        want = powers[k]
    wrong = difference(algebra, tuple(map(host, result)), want)
    return Complaint("values", wrong) if wrong else None


def _powers(subject: Subject, a: Values, k: int) -> tuple[Algebra, dict[int, Any], bool]:
    """Powers by their definition, and whether a product of two of them could overflow."""
    n, overflow, reach = a[0].shape[-1], False, 0.0
    for objects in (False, True):
        algebra = Algebra(subject, 2.0**60 if objects else 0.0)
        powers: dict[int, Any] = {1: algebra.lift(a)}
        for i in range(2, k + 1):
            powers[i], _ = product(algebra, powers[i - 1], powers[1])
        sizes = [_finite(v) for p in powers.values() for v in p]
        widest = extremes(subject, [max((_finite(p[c]) for p in powers.values()), default=0.0) for c in range(len(subject.dtypes))])
        inside = math.inf if widest is None else product_could_overflow(subject, widest, widest, None, n)[1]
        reach = max([inside, *sizes])
        if reach < 2.0**50 or algebra.native or algebra.near:
            break
    tops = {i: [_finite(v) for v in p] for i, p in powers.items()}
    for i in range(1, k):
        for j in range(1, k - i + 1):
            x, y = (extremes(subject, tops[p]) for p in (i, j))
            overflow |= x is None or y is None or product_could_overflow(subject, x, y, None, n)[0]
    return algebra, powers, overflow


def _finite(value: Any) -> float:
    array = np.asarray(value.value if hasattr(value, "value") else value).ravel()
    if array.dtype == object:
        return float(max((abs(v) for v in array if abs(v) != float("inf")), default=0))
    array = np.abs(array.astype(float))
    array = array[np.isfinite(array)]
    return float(array.max()) if array.size else 0.0


def extremes(subject: Subject, tops: Sequence[float]) -> Values | None:
    """Arrays that reach as far, with an ∞ where one may be; None where the dtype does not."""
    found: list[Array] = []
    for c, (top, dtype) in enumerate(zip(tops, subject.dtypes, strict=True)):
        if dtype.kind in "iu" and top > np.iinfo(dtype).max:
            return None
        signs = [top, -top] if dtype.kind in "if" else [top]
        numbers = [int(t) for t in signs] if dtype.kind in "iu" else signs
        found.append(np.array([*numbers, 0, *subject.infinities(c)]).astype(dtype) if dtype.kind != "b" else np.array([True]))
    return tuple(found)


def _draw_pairwise(rng: Rng, subject: Subject, device: str) -> Case | None:
    if subject.structured:
        return None
    m, k, n = (draw_size(rng, 33) for _ in range(3))
    options: dict[str, Any] = on_gpu(rng, device)
    names = "xy" if rng.random() < 0.8 else "x"
    arrays = {
        name: subject.draw(rng, (rows, k), zeros=[0.0, 0.25, 0.9][rng.integers(3)]) for name, rows in zip(names, (m, n), strict=False)
    }
    arrays["x"] = planted(rng, subject, arrays["x"], options)
    if rng.random() < 0.3:
        options["threads"] = int(rng.integers(1, 4))
    if rng.random() < 0.5:
        options["share"], options["largest"] = float(rng.random()), bool(rng.random() < 0.5)
    axes = {"x": ("m", "k"), "y": ("n", "k")}
    return Case("pairwise", subject, arrays, axes, draw_layouts(rng, arrays), options, draw_device(rng, device))


def _check_pairwise(case: Case) -> Complaint | None:
    subject, options = case.subject, case.options
    values = {name: case.placed(name) for name in case.arrays}
    a = case.arrays["x"]
    b = tuple(v.T for v in case.arrays.get("y", a))
    rows = [case.given(v) for v in values.values()]
    arguments: dict[str, Any] = {"metric": subject.semiring, "device": case.device, "threads": options.get("threads")}
    overflow, reach = product_could_overflow(subject, a, b, None, a[0].shape[1])
    found = attempt(sr.pairwise, *rows, **arguments)
    strange = any(map(subject.strangers, case.arrays.values()))
    complaint = judged(found, {sr.OverflowRiskError: overflow}, {sr.DomainError: "an entry is no element"} if strange else {})
    for name, now in values.items():
        complaint = complaint or changed(case, name, now)
    if complaint is not None or found.error is not None:
        return complaint
    result = host(found.result)
    if "share" in options and result.shape[1]:
        k = 1 + int(options["share"] * (result.shape[1] - 1))
        largest = bool(options["largest"])
        if len(rows) > 1 and hasattr(rows[1], "T") and largest == (subject.semiring.zero < subject.semiring.one):
            best: Any = sr.matmul(rows[0], rows[1].T, subject.semiring, k=k, device=case.device, threads=options.get("threads"))
        else:
            best = sr.pairwise(*rows, **arguments, k=k, largest=largest)
        if (complaint := same_best(best, result, k, largest, case.device)) is not None:
            return complaint
    if overflow and "f" in subject.kinds and not subject.selective:
        raise Unjudged("an ∞ of an overflow is what IEEE 754 says, but which sums overflow depends on their order")
    algebra = Algebra(subject, reach)
    want, _ = product(algebra, algebra.lift(a), algebra.lift(b), None)
    wrong = difference(algebra, (result,), want)
    return Complaint("values", wrong) if wrong else None


ENTRIES = {
    "matmul": Entry(5, _draw_matmul, _check_matmul),
    "power": Entry(1, _draw_power, _check_power),
    "pairwise": Entry(1, _draw_pairwise, _check_pairwise),
}
