"""What the tests of the kernels share: random elements, layouts in memory, and the definition of a product, one element at a time."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np
from hypothesis import HealthCheck, settings

from semiring.algebra.catalogue import semirings
from semiring.algebra.definition import Semiring
from semiring.algebra.laws import is_selective
from semiring.common.errors import SemiringError
from semiring.kernels.hardware import host

Array = np.ndarray[Any, Any]
Values = tuple[Array, ...]
DTypes = tuple[np.dtype[Any], ...]


def _usable(isa: str) -> bool:
    try:
        host(isa)
    except SemiringError:
        return False
    return True


ISAS = [isa for isa in ("avx512", "avx2", "sse2", "neon") if _usable(isa)]

CASES = [(s, (d,) * s.components) for s in semirings().values() for d in s.supported_dtypes]
"""Every semiring of the catalogue in every dtype that it has."""

SELECTIVE = [(s, dtypes) for s, dtypes in CASES if is_selective(s, dtypes)]


def name(case: Any) -> str:
    """The identifier of a test: whether with a witness, the name of a semiring, or dtypes."""
    if isinstance(case, bool):
        return "witness" if case else "values"
    return case.name if isinstance(case, Semiring) else "-".join(map(str, dict.fromkeys(case)))


def elements(semiring: Semiring, dtypes: DTypes, shape: tuple[int, ...], rng: np.random.Generator, *, zeros: float = 0.25) -> Values:
    """Random elements of a semiring of the catalogue, a share of them zero, so small that sums of 1000 are exact in every dtype."""
    zero, _ = semiring.identities(dtypes)
    dtype, empty = dtypes[0], rng.random(shape) < zeros

    def whole(low: int, high: int) -> Array:
        return rng.integers(max(low, 0) if dtype.kind == "u" else low, high + 1, shape)

    values: tuple[Array, ...]
    match semiring.name:
        case "boolean" | "gf2":
            values = (rng.random(shape) < 0.5,)
        case "bitset":
            values = (rng.integers(0, 256, shape) if dtype.itemsize == 1 else whole(-300, 300),)
        case "log":
            values = (rng.normal(size=shape),)
        case "max-times":
            values = (rng.choice([0.25, 0.5, 1, 2, 3], shape) if dtype.kind == "f" else whole(0, 12),)
        case "plus-times" if dtype.itemsize == 1:
            values = (rng.random(shape) < 0.05,)
        case "plus-times":
            values = (whole(-3, 3),)
        case "distance-count":
            values = (whole(-3, 3), rng.integers(1, 3 if dtype.itemsize > 1 else 2, shape))
        case "distance-hops":
            values = (whole(-3, 3), rng.integers(0, 4, shape))
        case _:
            values = (whole(-9, 9),)
    return tuple(np.where(empty, np.array(z, d), v.astype(d)) for v, z, d in zip(values, zero, dtypes, strict=True))


LAYOUTS = ("C", "Fortran", "transposed", "stepped", "reversed", "inner block", "shifted", "field", "loose rows", "read-only", "aligned")


def laid_out(matrix: Array, layout: str) -> Array:
    """An array with the entries of `matrix` that lies in memory as `layout` says."""
    m, n = matrix.shape
    size, dtype = matrix.itemsize, matrix.dtype
    view: Array
    match layout:
        case "Fortran":
            return np.array(matrix, order="F")
        case "transposed":
            return matrix.T.copy().T
        case "stepped":
            view = np.empty((3 * m, 2 * n), dtype)[::3, 1::2]
        case "reversed":
            view = np.empty((m, n), dtype)[::-1, ::-1]
        case "inner block":
            view = np.empty((m + 5, n + 7), dtype)[2 : 2 + m, 3 : 3 + n]
        case "shifted":  # off every alignment
            view = np.ndarray((m, n), dtype, np.empty(m * n * size + 1, np.uint8)[1:])
        case "field":
            view = np.empty((m, n), np.dtype({"names": ["x"], "formats": [dtype], "offsets": [1], "itemsize": size + 3}))["x"]
        case "loose rows":  # a row ends in the middle of an element
            view = np.ndarray((m, n), dtype, np.empty(m * (n * size + 1), np.uint8), strides=(n * size + 1, size))
        case "read-only":
            view = matrix.copy()
            view.flags.writeable = False
            return view
        case _:
            return matrix.copy()
    view[...] = matrix
    return view


def defined(semiring: Semiring, a: Values, b: Values, c: Values | None = None) -> tuple[list[list[Any]], list[list[int]]]:
    """The product and its witness as they are defined, computed by the semiring's callables on Python numbers.

    The witness is the lowest k whose a_ik ⊗ b_kj is the element (none if ⊕ is not selective), and −1 where that is the zero or the old one.
    """
    rows, columns, inner = a[0].shape[0], b[0].shape[1], a[0].shape[1]
    dtypes = tuple(v.dtype for v in a)
    left, right, old = (None if x is None else _scalars(semiring, x, dtypes) for x in (a, b, c))
    assert left is not None
    assert right is not None
    values, witness = [], []
    for i in range(rows):
        for j in range(columns):
            candidates = [semiring.mul(left[i][k], right[k][j]) for k in range(inner)]
            start = semiring.zero if old is None else old[i][j]
            value = functools.reduce(semiring.add, candidates, start)
            values.append(value)
            witness.append(-1 if value == start or value not in candidates else candidates.index(value))
    return [values[i * columns : (i + 1) * columns] for i in range(rows)], [witness[i * columns : (i + 1) * columns] for i in range(rows)]


def scalars(semiring: Semiring, values: Values) -> list[list[Any]]:
    """Matrices as lists of Python elements, in which ±∞ is a float."""
    return _scalars(semiring, values, tuple(v.dtype for v in values))


def _scalars(semiring: Semiring, values: Values, dtypes: DTypes) -> list[list[Any]]:
    parts = []
    raws = zip(*(x if isinstance(x, tuple) else (x,) for x in (semiring.zero, semiring.one)), strict=True)
    for value, dtype, raw, stands in zip(values, dtypes, raws, zip(*semiring.identities(dtypes), strict=True), strict=True):
        infinite = {s: r for r, s in zip(raw, stands, strict=True) if dtype.kind in "iu" and isinstance(r, float) and math.isinf(r)}
        parts.append([[infinite.get(x, x) for x in row] for row in value.tolist()])
    if len(parts) == 1:
        return parts[0]
    return [list(zip(*rows, strict=True)) for rows in zip(*parts, strict=True)]


def examples(count: int) -> settings:
    """So many examples, however long one takes: the first of a kind compiles its kernel."""
    return settings(max_examples=count, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])


def assert_equal(found: Any, expected: Any, *, close: bool = False) -> None:
    """Equal dtypes, shapes and entries (0.0 and −0.0 are equal); `close` is for logarithms."""
    pairs = zip(found, expected, strict=True) if isinstance(expected, tuple) else [(found, expected)]
    for x, y in pairs:
        assert x.dtype == y.dtype
        if close:
            np.testing.assert_allclose(x, y, rtol=20 * np.finfo(x.dtype).eps, atol=20 * np.finfo(x.dtype).eps)
        else:
            np.testing.assert_array_equal(x, y)


def squeeze(values: Values) -> Any:
    """How `matmul` takes and gives matrices: the array itself where an element has one component."""
    (first, *rest) = values
    return values if rest else first
