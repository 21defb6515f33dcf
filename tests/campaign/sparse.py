"""Products with sparse operands: with vectors, dense matrices and stacks of them, and sparse ones, masked, with witnesses."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import semiring as sr
from tests.campaign.cases import Case, Complaint, Entry, Unjudged, attempt, changed, judged
from tests.campaign.kinds import pydata_of, sparse_of
from tests.campaign.layouts import host
from tests.campaign.oracles import Algebra, difference, product, product_could_overflow, witness_of
from tests.campaign.products import draw_layouts, draw_size, planted
from tests.campaign.subjects import Array, Rng, Subject, Values

__all__ = ["ENTRIES"]

_PYDATA = ("COO", "GCXS")  # which store nothing twice
_FORMATS = ("csr", "csr", "csc", "coo", "csr_matrix", "csc_matrix", *_PYDATA)
_ON_GPU = ("csr", "csr", "csc", "coo")
_GPU_DTYPES = ("float32", "float64", "bool")
"""Those of CuPy's sparse matrices."""


def _draw(rng: Rng, subject: Subject, device: str) -> Case | None:
    gpu = device.startswith("cuda")
    if not subject.closure or "O" in subject.kinds or (gpu and not {*map(str, subject.dtypes)} <= {*_GPU_DTYPES}):
        return None  # elsewhere what is not stored need not be what annihilates
    most = 33 if rng.random() < 0.9 else 129
    m, k, n = (draw_size(rng, most) for _ in range(3))
    which = str(rng.choice(["a", "b", "ab"], p=[0.35, 0.25, 0.4]))
    axes: dict[str, tuple[str, ...]] = {"a": ("m", "k"), "b": ("k", "n")}
    other = {"a": "b", "b": "a"}.get(which)
    if other is not None:
        shape = rng.choice(3, p=[0.5, 0.35, 0.15])
        axes[other] = [axes[other], ("k",), ("p", *axes[other])][shape]
    lengths = {"m": m, "k": k, "n": n, "p": int(rng.integers(0, 4))}
    options: dict[str, Any] = {}
    arrays: dict[str, Values] = {}
    for name in "ab":
        zeros = [0.2, 0.7, 0.95, 1.0][rng.integers(4)] if name in which else [0.0, 0.3][rng.integers(2)]
        arrays[name] = planted(rng, subject, subject.draw(rng, tuple(lengths[x] for x in axes[name]), zeros=zeros), options)
        if name in which:
            options[f"format of {name}"] = str(rng.choice(_ON_GPU if gpu else _FORMATS))
    if subject.closure == "idempotent" and rng.random() < 0.2:
        options["twice"] = True
    if rng.random() < 0.2:
        options["stored zeros"] = True
    if rng.random() < (0.4 if subject.selective else 0.03):
        options["witness"] = True
    if which == "ab" and rng.random() < 0.5:
        options["mask"] = float(rng.choice([0.0, 0.01, 0.1, 0.5, 1.0]))
        options |= {name: True for name in ("complement", "dense mask") if rng.random() < 0.4}
    if rng.random() < 0.2:
        options["threads"] = int(rng.integers(1, 4))
    if which != "ab" and not gpu and rng.random() < 0.2:
        result = _result_axes(axes)
        arrays["c"], axes["c"] = subject.draw(rng, tuple(lengths[x] for x in result), zeros=0.5), result
    options |= {"on the GPU": True} if gpu else {}
    return Case("sparse matmul", subject, arrays, axes, draw_layouts(rng, [n for n in arrays if n not in which]), options, device)


def _result_axes(axes: dict[str, tuple[str, ...]]) -> tuple[str, ...]:
    """Of the product: those that are neither multiplied away."""
    return tuple(x for x in ("p", "m", "n") if any(x in axes[name] for name in "ab"))


def _stored(case: Case, name: str) -> Any:
    """An operand as sparse arrays, one a component."""
    values, fmt = case.arrays[name], case.options[f"format of {name}"]
    there = np.logical_or.reduce([v != z for v, z in zip(values, case.subject.zeros, strict=True)])
    rng = np.random.default_rng(there.size)
    if case.options.get("stored zeros"):
        there |= rng.random(there.shape) < 0.1
    rows, columns = np.nonzero(there)
    if case.options.get("twice") and fmt not in _PYDATA:
        again = rng.random(len(rows)) < 0.3
        rows, columns = np.append(rows, rows[again]), np.append(columns, columns[again])
    if fmt not in _PYDATA:
        order = rng.permutation(len(rows))
        rows, columns = rows[order], columns[order]
    made = pydata_of if fmt in _PYDATA else sparse_of
    return tuple(made(fmt, v[rows, columns], rows, columns, v.shape, gpu="on the GPU" in case.options) for v in values)


def _mask(case: Case) -> Array | None:
    """Which entries are wanted, or with `complement` not."""
    if "mask" not in case.options:
        return None
    shape = case.arrays["a"][0].shape[0], case.arrays["b"][0].shape[1]
    return np.asarray(np.random.default_rng(shape[0] * shape[1]).random(shape) < case.options["mask"])


def _check(case: Case) -> Complaint | None:
    subject, options, logical = case.subject, case.options, case.arrays
    sparse = [name for name in "ab" if f"format of {name}" in options]
    given = {name: _stored(case, name) if name in sparse else case.placed(name) for name in logical}
    arguments: dict[str, Any] = {name: options[name] for name in ("witness", "complement", "threads") if name in options}
    mask = _mask(case)
    if mask is None:
        arguments.pop("complement", None)
    else:
        rows, columns = np.nonzero(mask)
        arguments["mask"] = (
            mask if options.get("dense mask") else sparse_of("csr", np.ones(len(rows)), rows, columns, mask.shape, gpu=False)
        )
    if "c" in given:
        arguments["c"] = case.given(given["c"])
    # As many entries may share a place as a line has, to whoever does not compare the numbers of columns that are not sorted.
    depth = math.prod([logical["a"][0].shape[-1], *(max(logical[name][0].shape) for name in sparse)])
    overflow, reach = product_could_overflow(subject, logical["a"], logical["b"], logical.get("c"), depth)
    found = attempt(lambda: sr.matmul(case.given(given["a"]), case.given(given["b"]), subject.semiring, **arguments))
    required: dict[type[Exception], str] = {}
    if options.get("witness") and not subject.selective:
        required[sr.LawError] = "⊕ is not selective, so there is no witness"
    elif any(map(subject.strangers, logical.values())):
        required[sr.DomainError] = "an entry is no element"
    allowed: dict[type[Exception], bool] = {sr.OverflowRiskError: overflow}
    complaint = judged(found, allowed, required)
    for name in {*given} - {*sparse}:
        complaint = complaint or changed(case, name, given[name])
    if complaint is not None or found.error is not None:
        return complaint
    if overflow and "f" in subject.kinds and not subject.selective:
        raise Unjudged("which sums overflow depends on their order")
    result, via = found.result if options.get("witness") else (found.result, None)
    parts = result if subject.structured else (result,)
    if len(sparse) < 2:
        return _compare(case, Algebra(subject, reach), tuple(map(host, parts)), None if via is None else host(via), None)
    wanted = None if mask is None else mask ^ bool(options.get("complement"))
    if wanted is not None and any((_pattern(part) & ~wanted).any() for part in parts):
        return Complaint("mask", "an entry is stored where the mask has none")
    values = tuple(_dense(part, z) for part, z in zip(parts, subject.zeros, strict=True))
    return _compare(case, Algebra(subject, reach), values, None if via is None else _dense(via, -1), wanted)


def _places(x: Any) -> tuple[Array, Array, Array]:
    """Rows, columns and values of what a sparse array stores."""
    if type(x).__module__.startswith("cupyx"):
        x = x.get()
    if type(x).__module__.partition(".")[0] == "sparse":
        return (*x.asformat("coo").coords, x.asformat("coo").data)
    x = x.tocoo()
    return x.row, x.col, x.data


def _pattern(x: Any) -> Array:
    """Where it stores anything."""
    there = np.zeros(x.shape, dtype=bool)
    rows, columns, _ = _places(x)
    there[rows, columns] = True
    return there


def _dense(x: Any, absent: Any) -> Array:
    """As a dense matrix, `absent` where nothing is stored."""
    rows, columns, values = _places(x)
    matrix = np.full(x.shape, absent, dtype=values.dtype)
    matrix[rows, columns] = values
    return matrix


def _compare(case: Case, algebra: Algebra, found: Values, via: Array | None, wanted: Array | None) -> Complaint | None:
    """The product, by its definition where it is `wanted`, and the zero elsewhere."""
    row, column = (len(case.axes[name]) == 1 for name in "ab")
    a, b = (algebra.lift(case.arrays[name]) for name in "ab")
    a, b = tuple(v[None, :] for v in a) if row else a, tuple(v[:, None] for v in b) if column else b
    shape = (*np.broadcast_shapes(a[0].shape[:-2], b[0].shape[:-2]), a[0].shape[-2], b[0].shape[-1])
    end = (slice(None),) * (len(shape) - 2) + (0 if row else slice(None), 0 if column else slice(None))
    back = (slice(None),) * (len(shape) - 2) + (None if row else slice(None), None if column else slice(None))
    old = algebra.zero(shape)
    if "c" in case.arrays:
        old = tuple(v[back] for v in algebra.lift(case.arrays["c"]))
    want, terms = product(algebra, a, b, old)
    witness, uncertain = witness_of(want, terms, old)
    skip = np.zeros(shape, dtype=bool) if wanted is None else ~wanted
    wrong = difference(algebra, found, tuple(v[end] for v in want), skip=skip[end])
    if not wrong and any((v[skip] != z).any() for v, z in zip(found, case.subject.zeros, strict=True) if wanted is not None):
        wrong = "an element is there that was not wanted"
    if wrong or via is None:
        return Complaint("values", wrong) if wrong else None
    kinds = ("int32", "float64") if case.options.get("on the GPU") else ("int32",)  # CuPy's sparse arrays hold no integers
    if via.dtype not in kinds or via.shape != witness[end].shape:
        return Complaint("witness", f"the witness has dtype {via.dtype} and shape {via.shape} instead of {witness[end].shape}")
    witness = np.where(skip, -1, witness)[end]
    apart = (via != witness) & ~uncertain[end]
    if apart.any():
        where = tuple(int(i) for i in np.argwhere(apart)[0])
        return Complaint(
            "witness", f"{int(apart.sum())} witnesses differ, first at {list(where)}: {via[where]} instead of {witness[where]}"
        )
    return None


ENTRIES = {"sparse matmul": Entry(2, _draw, _check)}
