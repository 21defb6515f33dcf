"""What `matmul` refuses, what it says then, and that nothing of the caller's has changed."""

from __future__ import annotations

import contextlib
import math
from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from semiring.algebra.catalogue import (
    BITSET,
    BOOLEAN,
    DISTANCE_HOPS,
    GF2,
    LOG,
    MAX_MIN,
    MAX_PLUS,
    MAX_TIMES,
    MIN_PLUS,
    PLUS_TIMES,
    TROPICAL_ARGMIN,
    semirings,
)
from semiring.algebra.definition import Semiring
from semiring.common.errors import DomainError, DTypeError, LawError, SemiringError, ShapeError, TraceError
from semiring.kernels.cpu.engine import CpuEngine
from semiring.kernels.engine import Block
from semiring.kernels.reference import ReferenceEngine
from semiring.kernels.select import engine_for
from semiring.product import Witnessed, matmul
from tests.kernels.samples import examples

NAN, INF = math.nan, math.inf
A = np.array([[1.0, 2, 3], [4, 5, 6]])
B = np.ones((3, 4))
C = np.zeros((2, 4))
PAIR = (A, A)
FROZEN = np.zeros((2, 4))
FROZEN.flags.writeable = False

REFUSED: list[tuple[type[SemiringError], str, Any, Any, Any, dict[str, Any]]] = [
    # shapes
    (ShapeError, r"a of shape \(2, 3\) and b of shape \(2, 3\) do not fit: a has 3 columns and b 2 rows", A, A, MIN_PLUS, {}),
    (ShapeError, r"a of shape \(3,\) and b of shape \(2,\) do not fit", A[0], B[:2, 0], MIN_PLUS, {}),
    (ShapeError, r"need at least one axis; got shapes \(\) and", 3.0, B, MIN_PLUS, {}),
    (ShapeError, r"need at least one axis", A, np.float64(2), MIN_PLUS, {}),
    (ShapeError, r"leading axes of a \(2, 1, 3\) and b \(5, 3, 4\) do not broadcast", np.ones((2, 1, 3)), np.ones((5, 3, 4)), MIN_PLUS, {}),
    (ShapeError, r"a is no array: .*element 0 has 1 entry, and element 1 has 2", [[1], [2, 3]], B, MIN_PLUS, {}),
    (DTypeError, "a is a graph of networkx; pass its matrix", nx.path_graph(2), nx.path_graph(2), MIN_PLUS, {}),
    (ShapeError, r"c has shape \(4, 2\); the product has \(2, 4\)", A, B, MIN_PLUS, {"c": C.T}),
    (ShapeError, r"c has shape \(4,\); the product has \(2, 4\)", A, B, MIN_PLUS, {"c": C[0]}),
    (ShapeError, r"out has shape \(2, 3\); the product has \(2, 4\)", A, B, MIN_PLUS, {"out": np.zeros((2, 3))}),
    (ShapeError, "out must be an array, of the shape and dtype of the result; it is list", A, B, MIN_PLUS, {"out": C.tolist()}),
    (ShapeError, r"a must be a tuple of 2 arrays, one for each component of distance-hops", A, (B, B), DISTANCE_HOPS, {}),
    (ShapeError, r"b must be a tuple of 2 arrays", PAIR, (B, B, B), DISTANCE_HOPS, {}),
    (ShapeError, r"out must be a tuple of 2 arrays", PAIR, (B, B), DISTANCE_HOPS, {"out": C}),
    (ShapeError, r"the components of b have different shapes: \(3, 4\), \(3, 3\)", PAIR, (B, B[:, :3]), DISTANCE_HOPS, {}),
    # dtypes
    (DTypeError, "the array contains complex numbers, which have no order; pass bool", A + 0j, B, MIN_PLUS, {}),
    (DTypeError, "the array contains text, not numbers; convert", [["x"]], [["y"]], MIN_PLUS, {}),
    (DTypeError, r"the operands have no common dtype: datetime64\[s\] and float64", np.zeros((2, 3), "M8[s]"), B, MIN_PLUS, {}),
    (DTypeError, "log has no meaning in int64", [[1]], [[2]], LOG, {}),
    (DTypeError, "max-plus has no meaning in uint8: −∞ has no value", np.ones((1, 1), np.uint8), np.ones((1, 1), np.uint8), MAX_PLUS, {}),
    (DTypeError, "boolean has no meaning in float64.*use dtype bool", A, B, BOOLEAN, {}),
    (DTypeError, "min-plus has no meaning in bool", A > 2, B > 2, MIN_PLUS, {}),
    (DTypeError, "bitset has no meaning in float64.*'and'", A, B, BITSET, {}),
    (DTypeError, "out must be a writable array of dtype float64; it is float32", A, B, MIN_PLUS, {"out": C.astype("f4")}),
    (DTypeError, "out must be a writable array of dtype float64; it is float64, read-only", A, B, MIN_PLUS, {"out": FROZEN}),
    (DTypeError, "c has dtype complex128, which float64 cannot hold", A, B, MIN_PLUS, {"c": C + 0j}),
    (DTypeError, "c has dtype object", A, B, MIN_PLUS, {"c": C.astype(object)}),
    (DTypeError, "c has dtype int64, which int32 cannot hold", A.astype("i4"), B.astype("i4"), MIN_PLUS, {"c": C.astype("i8")}),
    (DTypeError, r"c\[0, 0\] is 1e\+300, which float32 cannot", A.astype("f4"), B.astype("f4"), MIN_PLUS, {"c": C + 1e300}),
    (DTypeError, r"a\[0, 1\] is 9223372036854775807, which stands for ∞ in int64", [[1, 2**63 - 1]], [[1], [1]], MIN_PLUS, {}),
    (DTypeError, r"b\[0, 0\] is 9223372036854775807, which stands for ∞ in int64", [[1]], [[2**63 - 1]], MIN_PLUS, {}),
    (DTypeError, r"c\[0, 0\] is -9223372036854775808, which stands for −∞", [[1]], [[1]], MAX_PLUS, {"c": [[-(2**63)]]}),
    # elements
    (DomainError, r"a\[0, 1\] = nan: NaN is not an element of any semiring", [[1.0, NAN, 3]], B, MIN_PLUS, {}),
    (DomainError, r"b\[2, 0\] = nan", A, np.array([[1], [2], [NAN]]), MAX_MIN, {}),
    (DomainError, r"c\[1, 3\] = nan", A, B, PLUS_TIMES, {"c": np.where(np.arange(8).reshape(2, 4) == 7, NAN, 0.0)}),
    (DomainError, r"a\[0, 0\] = -inf is outside the carrier of min-plus", [[-INF]], [[1.0]], MIN_PLUS, {}),
    (DomainError, r"b\[0, 0\] = inf is outside the carrier of max-plus", [[1.0]], [[INF]], MAX_PLUS, {}),
    (DomainError, r"a\[0, 0\] = -1.0 is outside the carrier of max-times", [[-1.0]], [[1.0]], MAX_TIMES, {}),
    (DomainError, r"c\[0, 0\] = inf is outside the carrier of plus-times", [[1.0]], [[1.0]], PLUS_TIMES, {"c": [[INF]]}),
    (DomainError, r"a\[0, 1\] = 'x' is a text, and outside", np.array([[1, "x"]], object), np.array([[1], [2]], object), MIN_PLUS, {}),
    (DTypeError, "a is no array but a NoneType; pass arrays", None, B, MIN_PLUS, {}),
    (DomainError, r"b\[0, 0\] = \(3.0, inf\) is outside", ([[1.0]], [[1.0]]), ([[3.0]], [[INF]]), DISTANCE_HOPS, {}),
    # what is asked for
    (LawError, "plus-times has no witness: ⊕ is not selective", A, B, PLUS_TIMES, {"witness": True}),
    (LawError, "gf2 has no witness", A > 2, B > 2, GF2, {"witness": True}),
    (SemiringError, "unknown device 'tpu'; use 'auto', 'cpu', 'cuda', 'cuda:0', … or 'reference'", A, B, MIN_PLUS, {"device": "tpu"}),
    (SemiringError, "unknown device None", A, B, MIN_PLUS, {"device": None}),
    (SemiringError, "semiring is 7; pass a Semiring such as", A, B, 7, {}),
    (SemiringError, "there is no semiring 'min_plis'; did you mean 'min-plus'[?] The built-in semirings are bitset", A, B, "min_plis", {}),
    (SemiringError, "threads is 0", A, B, MIN_PLUS, {"threads": 0}),
    (TraceError, "// on floats", A, B, Semiring("floor", max, lambda a, b: a // b if b else 0, 0, 1), {}),
    (TraceError, "math", A, B, Semiring("math", max, lambda a, b: math.sin(a), 0, 1), {}),
]


@pytest.mark.parametrize(("error", "message", "a", "b", "semiring", "options"), REFUSED, ids=[str(i) for i in range(len(REFUSED))])
def test_what_is_refused(error: type[SemiringError], message: str, a: Any, b: Any, semiring: Any, options: dict[str, Any]) -> None:
    arrays = [x for x in (a, b, *options.values()) if isinstance(x, np.ndarray)]
    kept = [x.copy() for x in arrays]
    with pytest.raises(error, match=message):
        matmul(a, b, semiring, **options)
    for before, after in zip(kept, arrays, strict=True):
        np.testing.assert_array_equal(after, before)


def test_errors_are_pythons_own_too() -> None:
    """Who expects a ValueError or a TypeError of NumPy's matmul catches it."""
    with pytest.raises(ValueError, match="do not fit"):
        matmul(A, A, MIN_PLUS)
    with pytest.raises(TypeError, match="complex numbers, which have no order"):
        matmul(A + 0j, B, MIN_PLUS)
    with pytest.raises(OverflowError, match="use int32"):
        matmul(np.full((1, 1), 20000, np.int16), np.full((1, 1), 20000, np.int16), MIN_PLUS)


class Subclass(np.ndarray[Any, Any]):
    """Someone else's array."""


def test_everything_that_is_an_array_is_taken() -> None:
    expected = matmul(A, B, MIN_PLUS)
    for a in (A.tolist(), A.astype(">f8"), A.view(Subclass), memoryview(A.tobytes()).cast("d", A.shape)):
        np.testing.assert_array_equal(matmul(a, B, MIN_PLUS), expected)
    assert matmul(A.astype(int), B.astype(int), MIN_PLUS).dtype == np.int64
    assert matmul(A.astype("f4"), B.astype("i2"), MIN_PLUS).dtype == np.float32
    assert matmul(A.astype("f4"), B.astype("i4"), MIN_PLUS).dtype == np.float64
    assert matmul(A.astype("i1"), B.astype("i2"), MIN_PLUS).dtype == np.int16
    pair = matmul(PAIR, [B, B], DISTANCE_HOPS)
    assert isinstance(pair, tuple)
    np.testing.assert_array_equal(pair[0], expected)


def test_what_is_returned() -> None:
    assert isinstance(matmul(A[0], B[:, 0], MIN_PLUS), float)
    values, witness = matmul(A[0], B[:, 0], TROPICAL_ARGMIN)
    assert isinstance(values, float)
    assert witness.dtype == np.int32
    found = matmul(A, B, TROPICAL_ARGMIN)
    assert type(found) is Witnessed
    assert found.witness.dtype == np.int32
    np.testing.assert_array_equal(found.witness, matmul(A, B, MIN_PLUS, witness=True).witness)
    out = np.empty((2, 4))
    assert matmul(A, B, MIN_PLUS, out=out) is out
    pair = (np.empty((2, 4)), np.empty((2, 4)))
    assert matmul(PAIR, (B, B), DISTANCE_HOPS, out=pair) is pair
    single = np.empty(())
    assert matmul(A[0], B[:, 0], MIN_PLUS, out=single) is single
    assert single == 2


def test_components_of_c_and_out_in_each_others_place() -> None:
    rng = np.random.default_rng(0)
    a, c = ((rng.integers(0, 9, (3, 3)).astype(float), rng.integers(0, 9, (3, 3)).astype(float)) for _ in "ac")
    for device in ("cpu", "reference"):
        expected = matmul(a, a, DISTANCE_HOPS, c=c, device=device)
        x, y = c[0].copy(), c[1].copy()
        matmul(a, a, DISTANCE_HOPS, c=(x, y), out=(y, x), device=device)
        np.testing.assert_array_equal(y, expected[0])
        np.testing.assert_array_equal(x, expected[1])


def test_which_engine_computes() -> None:
    f8 = (np.dtype(np.float64),)
    assert isinstance(engine_for(MIN_PLUS, f8), CpuEngine)
    assert isinstance(engine_for(MIN_PLUS, f8, "reference"), ReferenceEngine)
    assert isinstance(engine_for(MIN_PLUS, (np.dtype(object),)), ReferenceEngine)
    assert isinstance(engine_for(MIN_PLUS, (np.dtype(object),), "cpu"), ReferenceEngine)
    for engine in (engine_for(MIN_PLUS, f8, "cpu", 3), engine_for(MIN_PLUS, f8, "reference")):
        assert engine.semiring is MIN_PLUS
        assert engine.dtypes == f8
        assert engine.alignment == 1
        assert not engine.signed
        values = (np.ones((3, 3)),)
        A = engine.load(values)
        assert A.values is values
        engine.store(A, values)
        other = (np.zeros((3, 3)),)
        engine.store(A, other)
        np.testing.assert_array_equal(other[0], 1)


def test_operations_that_floats_lack_run_on_the_reference() -> None:
    floor = Semiring("floor", max, lambda a, b: a // b if b else 0, 0, 1)
    assert matmul([[7.0]], [[2.0]], floor, device="reference").item() == 3
    assert matmul([[7]], [[2]], floor).item() == 3


def test_engines_are_told_the_rows_and_columns() -> None:
    """An engine trusts the algorithms: shapes are not checked twice, but nothing is an error where there is nothing to do."""
    for engine in (CpuEngine(MIN_PLUS, (np.dtype(float),)), ReferenceEngine(MIN_PLUS, (np.dtype(float),))):
        for m, n, k in ((0, 3, 2), (3, 0, 2), (3, 2, 0), (0, 0, 0)):
            C = Block((np.full((m, n), 5.0),), np.full((m, n), 7, np.int32))
            engine.multiply_add(Block((np.ones((m, k)),)), Block((np.ones((k, n)),)), C)
            assert (C.values[0] == 5).all()
            assert (C.via == 7).all()
            engine.multiply(Block((np.ones((m, k)),)), Block((np.ones((k, n)),)), C)
            assert (C.values[0] == INF).all()


@examples(60)
@given(
    semiring=st.sampled_from(list(semirings().values())),
    dtype=st.sampled_from(["bool", "int8", "int16", "uint8", "int64", "uint64", "float16", "float32", "float64", "complex64", "U2", "O"]),
    shapes=st.tuples(*[st.lists(st.integers(0, 3), max_size=3).map(tuple)] * 3),
    entry=st.sampled_from([0, 1, -1, 200, 1.5, INF, -INF, NAN]),
    options=st.fixed_dictionaries(
        {}, optional={"witness": st.booleans(), "threads": st.sampled_from([1, 2, 0]), "device": st.sampled_from(["cpu", "reference", "x"])}
    ),
    with_c=st.booleans(),
)
def test_bad_input_is_a_semiring_error(semiring: Semiring, dtype: str, shapes: Any, entry: Any, options: Any, with_c: bool) -> None:
    """Whatever comes in: an answer, or one of our errors; never another exception, and never a changed input."""
    with np.errstate(all="ignore"):
        a, b, c = (np.full(shape, entry).astype(dtype) for shape in shapes)
    kept = [x.copy() for x in (a, b, c)]
    one = semiring.components == 1
    with contextlib.suppress(SemiringError):
        matmul(a if one else (a, a), b if one else (b, b), semiring, c=(c if one else (c, c)) if with_c else None, **options)
    for before, after in zip(kept, (a, b, c), strict=True):
        if before.dtype == object:  # a NaN among objects equals nothing, not even itself
            assert all(x is y for x, y in zip(before.flat, after.flat, strict=True))
        else:
            np.testing.assert_array_equal(after, before)
