"""`pairwise` by names of metrics, beside SciPy's cdist, and by formulas, beside loops; the k best beside a stable sort of the matrix."""

from __future__ import annotations

import functools
import math
from dataclasses import replace
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from scipy.spatial import distance

import semiring as sr
from tests.campaign.arithmetic import unit_of
from tests.campaign.cases import Case, Complaint, Entry, Unjudged, attempt, changed, compared, judged, same_best
from tests.campaign.lawful import catalogue
from tests.campaign.layouts import LAYOUTS, WRITABLE, host
from tests.campaign.products import draw_device, draw_layouts, draw_size, on_gpu
from tests.campaign.subjects import INF, Array, Rng, Subject, kernel_draws, stored

__all__ = ["ENTRIES"]

_cdist: Any = distance.cdist

_TRUTH = ("dice", "jaccard", "rogerstanimoto", "russellrao", "sokalsneath", "yule")
_REAL = ("braycurtis", "canberra", "chebyshev", "cityblock", "correlation", "cosine", "euclidean", "hamming", "sqeuclidean", "minkowski",
         "intersection")  # fmt: skip
_WITHOUT_WEIGHTS = ("jensenshannon", "seuclidean")
_KINDS = ("int8", "int16", "uint16", "int64", "bool", "float16")


def _draw_rows(rng: Rng, device: str, names: str, options: dict[str, Any], draw: Any) -> Case:
    """Draw a case of rows in the dtypes of `options`, and what any call of `pairwise` may be asked for."""
    m, n, d = (draw_size(rng, 17) for _ in range(3))
    if rng.random() < 0.2:  # more rows than a block has
        m, n, d = [(300, 5), (3, 1100), (140, 140)][rng.integers(3)] + (draw_size(rng, 3),)
    shapes = dict(zip(names, ((m, d), (n, d)), strict=False))
    arrays = {name: (draw(shape, options["dtypes"][name][0]),) for name, shape in shapes.items()}
    axes = {"x": ("m", "d"), "y": ("n", "d")}
    if "y" not in names and rng.random() < 0.4:
        options["condensed"] = True
    elif rng.random() < 0.5:
        options["share"] = float(rng.random())
        options |= {"largest": bool(rng.random() < 0.5)} if rng.random() < 0.7 else {}
    if rng.random() < 0.2:
        options["out"] = True
    if rng.random() < 0.3:
        options["threads"] = int(rng.integers(1, 4))
    layouts = draw_layouts(rng, arrays, LAYOUTS) | draw_layouts(rng, ["out"], WRITABLE)
    subject = catalogue("PLUS_TIMES", "float64")
    objects = ("object",) in options["dtypes"].values()
    options |= {} if objects else on_gpu(rng, device)
    return Case("", subject, arrays, axes, layouts, options, "auto" if objects else draw_device(rng, device))


def _with_weights(case: Case, weights: Array) -> Case:
    return replace(case, arrays={**case.arrays, "weights": (weights,)}, axes={**case.axes, "weights": ("d",)})


def _called(case: Case, weights: Array | None, arguments: dict[str, Any]) -> Any:
    """Call `pairwise` for the matrix, and compare the k best with it; then call once more with `out`."""
    options = case.options
    given = {name: case.placed(name) for name in case.arrays if name in "xy"}
    arguments |= {"device": case.device, "threads": options.get("threads"), "weights": weights}
    rows = [v for (v,) in given.values()]
    condensed = {"condensed": True} if options.get("condensed") and len(rows) == 1 else {}
    found = attempt(sr.pairwise, *rows, **arguments, **condensed)
    complaint: Complaint | None = None
    if found.error is None and not condensed and "share" in options and found.result.shape[1]:
        complaint = _check_best(case, rows, arguments, host(found.result))
    if found.error is None and "out" in options:  # sums in another order may be rounded otherwise
        first = host(found.result)
        place = Case("", case.subject, {"out": (np.zeros(first.shape, first.dtype),)}, {}, case.layouts,
                     {"on the GPU": options.get("on the GPU"), "dtypes": {"out": (first.dtype,)}})  # fmt: skip
        (out,) = place.placed("out")
        found = attempt(sr.pairwise, *rows, **arguments, **condensed, out=out)
        if found.error is None and found.result is not out:
            complaint = Complaint("out", "the result is not out")
    for name, now in given.items():
        complaint = complaint or changed(case, name, now)
    return found, complaint


def _equal(x: Array, y: Array) -> bool:
    return x.dtype == y.dtype and bool(np.array_equal(x, y, equal_nan=x.dtype.kind == "f"))


def _check_best(case: Case, rows: list[Any], arguments: dict[str, Any], whole: Array) -> Complaint | None:
    """Compare the k best with a stable sort of the matrix: equal ones by their columns, NaN last."""
    k, chosen = 1 + int(case.options["share"] * (whole.shape[1] - 1)), case.options.get("largest")
    best = attempt(sr.pairwise, *rows, **arguments, k=k, largest=chosen)
    if best.error is not None:
        return judged(best, {})
    largest = case.options.get("metric") == "intersection" if chosen is None else chosen
    return same_best(best.result, whole, k, bool(largest), case.device)


def _places(case: Case) -> Any:
    """Return the places of the matrix that the result has."""
    return np.triu_indices(len(case.arrays["x"][0]), 1) if case.options.get("condensed") and "y" not in case.arrays else ...


# Names.


def _draw_metric(rng: Rng, given: Subject, device: str) -> Case:
    metric = str(kernel_draws(rng, given, device).choice([*_TRUTH, *_REAL, *_REAL, *_WITHOUT_WEIGHTS]))
    names = "xy" if rng.random() < 0.7 else "x"
    floats = ["float64", "float64", "float32"]
    kinds = {name: (str(rng.choice(floats if rng.random() < 0.8 else _KINDS)),) for name in names}
    options: dict[str, Any] = {"metric": metric, "dtypes": kinds}
    if metric == "minkowski":
        options["p"] = float(rng.choice([0.5, 1, 1.5, 2, 3, 4, 7, INF]))
    whole = rng.random() < 0.6

    def draw(shape: tuple[int, ...], dtype: str) -> Array:
        values = rng.integers(-3, 4, shape) / rng.choice([1, 4]) if whole else rng.normal(size=shape)
        values = np.where(rng.random(shape) < rng.choice([0.0, 0.2, 0.8]), 0, values)
        if metric == "jensenshannon" or dtype.startswith("u"):
            values = np.abs(values)
        values = values.astype(dtype)
        if np.dtype(dtype).kind == "f" and values.size and rng.random() < 0.1:
            values.flat[int(rng.integers(values.size))] = np.nan
        return values

    case = _draw_rows(rng, device, names, options, draw)
    d = case.arrays["x"][0].shape[1]
    if d and (metric == "seuclidean" or metric not in _WITHOUT_WEIGHTS) and rng.random() < 0.4:
        weights = rng.integers(1 if metric == "seuclidean" else 0, 7, d) / 4
        weights[0] += 1
        case = _with_weights(case, weights)
    return replace(case, entry="metric")


def _check_metric(case: Case) -> Complaint | None:
    metric, options = case.options.get("metric", "euclidean"), case.options
    (weights,) = case.arrays.get("weights", (None,))
    arguments: dict[str, Any] = {"metric": metric} | {name: options[name] for name in ("p",) if name in options}
    if metric == "seuclidean":
        arguments["V"], weights = weights, None
    found, complaint = _called(case, weights, arguments)
    complaint = judged(found, {}) or complaint
    if complaint is not None:
        return complaint
    x, y = (host(case.placed(name)[0]) for name in ("x", "y" if "y" in case.arrays else "x"))
    if metric == "correlation" and weights is not None and any(map(_constant, (x[:, weights > 0], y[:, weights > 0]))):
        raise Unjudged("rounding decides whether a row differs from its weighted mean")
    return _compare(case, host(found.result), _by_scipy(case, metric, x, y), x, y)


def _constant(rows: Array) -> bool:
    """Return True if a row has equal entries, whose mean weights and their sum may round, here and in SciPy."""
    return bool((rows == rows[:, :1]).all(axis=1).any())


def _by_scipy(case: Case, metric: str, x: Array, y: Array) -> Array:
    """Return SciPy's matrix, with the differences that the documentation names: rows with NaN, truth values, and rows of zeros."""
    (weights,) = case.arrays.get("weights", (None,))
    x, y = (v.astype(np.float64) for v in (x, y))
    lost = [np.isnan(v).any(axis=1) for v in (x, y)]
    if metric == "chebyshev" and weights is not None:
        lost = [np.isnan(v[:, weights > 0]).any(axis=1) for v in (x, y)]  # which leaves out features without weight
    if metric == "seuclidean":
        variances = np.var(np.concatenate([x, y] if "y" in case.arrays else [x]), axis=0, ddof=1) if weights is None else weights
        return np.asarray(np.sqrt((np.square(x[:, None] - y) / variances).sum(axis=-1)))
    x, y = (np.where(np.isnan(v), 1.0, v) for v in (x, y))
    if metric == "intersection":
        found = (np.minimum(x[:, None], y) * (1 if weights is None else weights)).sum(axis=-1)
    else:
        if metric in _TRUTH:
            x, y = x != 0, y != 0
        more: dict[str, Any] = {} if weights is None else {"w": weights}
        more |= {"p": case.options.get("p", 2)} if metric == "minkowski" else {}
        found = _cdist(x, y, metric, **more)
    if metric == "jensenshannon":
        found = np.where(np.isnan(found), 0.0, found)  # the root of what rounding leaves of 0
        lost = [gone | ~v.any(axis=1) for gone, v in zip(lost, (x, y), strict=True)]
    found[lost[0]] = np.nan
    found[:, lost[1]] = np.nan
    return np.asarray(found)


def _compare(case: Case, found: Array, want: Array, x: Array, y: Array) -> Complaint | None:
    dtype = np.dtype(np.float32 if str(np.result_type(x, y)) in ("float16", "float32") else np.float64)
    unit, metric = 2 * unit_of(dtype), case.options.get("metric", "euclidean")
    absolute = {"jensenshannon": 8 * math.sqrt(unit), "cosine": 64 * unit, "correlation": 256 * unit}.get(metric, 0.0)
    if metric == "intersection":  # whose terms may cancel
        absolute = 64 * unit * sum(np.nansum(np.abs(v), axis=-1).max(initial=0) for v in (x, y))

    def close(v: Array, w: Array) -> Array:
        with np.errstate(all="ignore"):
            return np.asarray((v == w) | (np.abs(v - w) <= absolute + 512 * unit * np.abs(w)) | (np.isnan(v) & np.isnan(w)))

    return compared(found, want[_places(case)], dtype, close)


# Formulas.


class _Formula(NamedTuple):
    """The text of mul, of x and y; of add, of a and b; and of finish, of s. Floats alone have roots and quotients."""

    mul: str
    add: str = "a + b"
    finish: str = "s"
    kinds: str = "fiuO"


_FORMULAS = (
    _Formula("abs(x - y)", kinds="fiO"),
    _Formula("abs(x - y)", "max(a, b)", kinds="fiO"),
    _Formula("min(x, y)", "max(a, b)", kinds="fiO"),
    _Formula("max(x, y)", "min(a, b)"),
    _Formula("x + 2 * y", "min(a, b)"),
    _Formula("x * y"),
    _Formula("x * y", finish="0 if s < 0 else s"),
    _Formula("(x - y) ** 2", finish="root(s)", kinds="f"),
    _Formula("x if x > y else 2 * y", "max(a, b)", kinds="fiO"),
    _Formula("(abs(x - y), abs(x + y))", finish="s[0] / (1 + s[1])", kinds="f"),
    _Formula("x & y", "a | b", kinds="iu"),
    _Formula("(min(x, y), max(x, y))", finish="s[1] - s[0]", kinds="fiO"),
    _Formula("x ^ y", "a ^ b", kinds="iu"),
    _Formula("(x * y, x, y)", finish="s[0] - s[1] - 2 * s[2]", kinds="fiO"),
    _Formula("x % 3", kinds="iu"),
)
_IDENTITIES = {"a + b": 0, "a | b": 0, "a ^ b": 0, "max(a, b)": -INF, "min(a, b)": INF}


def _draw_formula(rng: Rng, given: Subject, device: str) -> Case:
    few = kernel_draws(rng, given, device)
    number = int(few.integers(len(_FORMULAS)))
    chosen, names = _FORMULAS[number], "xy" if rng.random() < 0.7 else "x"
    kinds = [d for d in ("float64", "float32", "int16", "int32", "int64", "uint8", "uint32", "object") if _kind(d) in chosen.kinds]
    dtype = str(few.choice(kinds if device == "cpu" else [d for d in kinds if d != "object"]))

    def draw(shape: tuple[int, ...], dtype: str) -> Array:
        values = rng.integers(0 if dtype[0] == "u" else -3, 4, shape)
        if dtype == "object":
            return np.array([Fraction(int(v), 3) for v in values.flat], dtype=object).reshape(shape)
        return (values / 4 if dtype[0] == "f" else values).astype(dtype)

    case = _draw_rows(rng, device, names, {"formula": number, "dtypes": dict.fromkeys(names, (dtype,))}, draw)
    if chosen.add == "a + b" and rng.random() < 0.3:
        weights = rng.integers(0, 4, case.arrays["x"][0].shape[1])
        case = _with_weights(case, weights)
    return replace(case, entry="formula")


def _kind(dtype: str) -> str:
    return np.dtype(dtype).kind


def _check_formula(case: Case) -> Complaint | None:
    chosen = _FORMULAS[case.options.get("formula", 0)]
    x, y = (host(case.placed(name)[0]) for name in ("x", "y" if "y" in case.arrays else "x"))
    (weights,) = case.arrays.get("weights", (None,))
    names: dict[str, Any] = {"root": sr.ops.sqrt}
    arguments = {"mul": eval(f"lambda x, y: {chosen.mul}", names)}
    if chosen.add != "a + b":
        arguments["add"] = eval(f"lambda a, b: {chosen.add}", names)
    if chosen.finish != "s":
        arguments["finish"] = eval(f"lambda s: {chosen.finish}", names)
    found, complaint = _called(case, weights, arguments)
    complaint = judged(found, {sr.OverflowRiskError: x.dtype.kind in "u" or x.dtype == np.int16}) or complaint
    if complaint is not None or found.error is not None:
        return complaint
    dtype = x.dtype.newbyteorder("=")
    entry = _by_loop(chosen, weights, dtype)
    want = np.array([[entry(u, v) for v in y.tolist()] for u in x.tolist()], dtype=dtype).reshape(len(x), len(y))
    close = functools.partial(np.isclose, rtol=16 * unit_of(dtype), atol=0, equal_nan=True) if dtype.kind == "f" else None
    return compared(host(found.result), want[_places(case)], dtype, close)


def _by_loop(chosen: _Formula, weights: Array | None, dtype: np.dtype[Any]) -> Any:
    """Return the function that computes one entry, of two rows, in Python's numbers."""
    texts = f"lambda x, y: {chosen.mul}", f"lambda a, b: {chosen.add}", f"lambda s: {chosen.finish}"
    mul, add, finish = (eval(text, {"root": math.sqrt}) for text in texts)
    several, identity = isinstance(mul(1, 1), tuple), _IDENTITIES[chosen.add]

    def entry(x: list[Any], y: list[Any]) -> Any:
        terms = [mul(u, v) if several else (mul(u, v),) for u, v in zip(x, y, strict=True)]
        if weights is not None:
            terms = [tuple([w * t for t in term]) for term, w in zip(terms, weights.tolist(), strict=True)]
        columns = zip(*terms, strict=True) if terms else [()] * len(mul(1, 1) if several else (0,))
        sums = [functools.reduce(add, column, identity) if column else stored(identity, dtype) for column in columns]
        return finish(tuple(sums) if several else sums[0])

    return entry


ENTRIES = {
    "metric": Entry(1, _draw_metric, _check_metric),
    "formula": Entry(0.5, _draw_formula, _check_formula),
}
