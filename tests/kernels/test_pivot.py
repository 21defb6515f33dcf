"""The closure of a pivot block: generated kernels against the reference, divergent pivots, and what a closure has to satisfy."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import sympy
from hypothesis import given
from hypothesis import strategies as st

from semiring.algebra.catalogue import BOOLEAN, DISTANCE_COUNT, GF2, LOG, MAX_MIN, MAX_TIMES, MIN_PLUS, PLUS_TIMES
from semiring.algebra.definition import Semiring
from semiring.algebra.laws import is_idempotent
from semiring.common.errors import DivergentPivot, DTypeError
from semiring.kernels.cpu.boolean import BooleanEngine
from semiring.kernels.cpu.engine import CpuEngine
from semiring.kernels.engine import Block
from semiring.kernels.reference import ReferenceEngine
from semiring.product import matmul
from tests.kernels.samples import CASES, ISAS, SELECTIVE, DTypes, Values, assert_equal, elements, examples, laid_out, name, squeeze

INF = math.inf
SIDES = (0, 1, 2, 3, 16, 17, 24, 27, 33, 64, 65, 100)
IDEMPOTENT = [c for c in CASES if is_idempotent(*c)]


def harmless(semiring: Semiring, dtypes: DTypes, n: int, rng: np.random.Generator) -> Values:
    """A matrix whose closure exists: no weight is better than one."""
    values = elements(semiring, dtypes, (n, n), rng, zeros=0.6)
    zero, _ = semiring.identities(dtypes)
    if semiring.name in ("min-plus", "max-plus", "distance-hops"):
        keep = values[0] != zero[0]
        weights = abs(np.where(keep, values[0], 0)) * (-1 if semiring.name == "max-plus" else 1)
        values = (np.where(keep, weights, zero[0]).astype(dtypes[0]), *values[1:])
    if semiring.name == "max-times":
        values = (np.minimum(values[0], 1).astype(dtypes[0]),)
    return values


def closed(engine: Any, values: Values, method: str, *, witness: bool = False, row: int = 0) -> Block | int:
    """The block after the operation, or the pivot that has no closure."""
    engine.signed = values[0].dtype.kind == "i" and bool((values[0] < 0).any() and (values[0] > 0).any())  # an element may pull ∞ back
    n = values[0].shape[-1]
    A = Block(tuple(v.copy() for v in values), np.full((*values[0].shape[:-1], n), -1, np.int32) if witness else None, row, row)
    try:
        getattr(engine, method)(A)
    except DivergentPivot as error:
        return error.vertex
    return A


def assert_blocks_equal(found: Block | int, expected: Block | int, *, close: bool = False) -> None:
    assert isinstance(found, int) == isinstance(expected, int)
    if isinstance(found, int) or isinstance(expected, int):
        assert found == expected
        return
    assert_equal(found.values, expected.values, close=close)
    if found.via is not None:
        assert_equal(found.via, expected.via)


@pytest.mark.exhaustive
@examples(60)
@given(
    case=st.sampled_from(IDEMPOTENT),
    n=st.sampled_from(SIDES),
    isa=st.sampled_from(ISAS),
    witness=st.booleans(),
    tame=st.booleans(),
    seed=st.integers(0, 99),
)
def test_close(case: tuple[Semiring, DTypes], n: int, isa: str, witness: bool, tame: bool, seed: int) -> None:
    semiring, dtypes = case
    witness &= case in SELECTIVE
    rng = np.random.default_rng(seed)
    values = harmless(semiring, dtypes, n, rng) if tame else elements(semiring, dtypes, (n, n), rng)
    if not tame and semiring.name not in ("max-min", "min-max", "bitset", "boolean"):
        values = tuple(v[:16, :16] for v in values)  # weights grow until the divergent pivot
    found, expected = (
        closed(engine, values, "close", witness=witness, row=7)
        for engine in (CpuEngine(semiring, dtypes, 1, isa), ReferenceEngine(semiring, dtypes))
    )
    assert_blocks_equal(found, expected)
    assert not tame or isinstance(found, Block)


@pytest.mark.sampled(6)
@pytest.mark.parametrize(("semiring", "dtypes"), [c for c in IDEMPOTENT if str(c[1][0]) in ("bool", "int16", "uint8", "float64")], ids=name)
def test_a_closure_is_its_own_square(semiring: Semiring, dtypes: DTypes) -> None:
    """With A* = I ⊕ A ⊕ A²…: A* ⊗ A* = A*, and A ⊗ A* ⊕ I = A*."""
    values = harmless(semiring, dtypes, 40, np.random.default_rng(3))
    engine = CpuEngine(semiring, dtypes, 1)
    A = closed(engine, values, "close")
    assert isinstance(A, Block)
    engine.add_identity(A)
    star = squeeze(A.values)
    assert_equal(matmul(star, star, semiring), star)
    identity = Block(tuple(np.full((40, 40), z, d) for z, d in zip(semiring.identities(dtypes)[0], dtypes, strict=True)))
    engine.add_identity(identity)
    assert_equal(matmul(squeeze(values), star, semiring, c=squeeze(identity.values)), star)


@pytest.mark.exhaustive
@examples(60)
@given(
    case=st.sampled_from([c for c in CASES if c[0] is not PLUS_TIMES or c[1][0].kind == "f"]),
    n=st.sampled_from(SIDES),
    isa=st.sampled_from(ISAS),
    seed=st.integers(0, 99),
)
def test_eliminate(case: tuple[Semiring, DTypes], n: int, isa: str, seed: int) -> None:
    semiring, dtypes = case
    rng = np.random.default_rng(seed)
    if semiring in (PLUS_TIMES, LOG, DISTANCE_COUNT):
        n = min(n, 3) if semiring is DISTANCE_COUNT else n  # counts grow
        values = elements(semiring, dtypes, (n, n), rng)
        if semiring is PLUS_TIMES:
            values = (rng.uniform(-0.5, 0.5, (n, n)).astype(dtypes[0]) / max(n, 1),)
        if semiring is LOG:
            values = (values[0] - 5,)
        if semiring is DISTANCE_COUNT:
            distance, *count = values
            values = (np.maximum(distance, 1).astype(dtypes[0]), *count)
    else:
        values = harmless(semiring, dtypes, n, rng)
    found, expected = (
        closed(engine, values, "eliminate", row=3) for engine in (CpuEngine(semiring, dtypes, 1, isa), ReferenceEngine(semiring, dtypes))
    )
    if isinstance(found, Block) and semiring in (PLUS_TIMES, LOG):
        assert isinstance(expected, Block)
        np.testing.assert_allclose(found.values[0], expected.values[0], rtol=1e-3 if dtypes[0].itemsize == 4 else 1e-10, atol=1e-6)
    else:
        assert_blocks_equal(found, expected)


def test_elimination_inverts() -> None:
    rng = np.random.default_rng(0)
    for dtype, tolerance in ((np.float64, 1e-12), (np.float32, 1e-4)):
        a = rng.uniform(-1, 1, (60, 60)) / 60
        A = Block((a.astype(dtype),))
        CpuEngine(PLUS_TIMES, (np.dtype(dtype),)).eliminate(A)
        np.testing.assert_allclose(A.values[0], np.linalg.inv(np.eye(60) - a), atol=tolerance)


def test_integers_have_no_inverse() -> None:
    with pytest.raises(DTypeError, match="'div'"):
        CpuEngine(PLUS_TIMES, (np.dtype(int),)).eliminate(Block((np.zeros((3, 3), int),)))


def test_elimination_of_fractions_is_exact() -> None:
    a = np.array([[Fraction(1, 3), Fraction(1, 5)], [Fraction(2, 7), Fraction(0)]], dtype=object)
    A = Block((a.copy(),))
    ReferenceEngine(PLUS_TIMES, (np.dtype(object),)).eliminate(A)
    identity = np.array([[Fraction(1), Fraction(0)], [Fraction(0), Fraction(1)]], dtype=object)
    np.testing.assert_array_equal((identity - a).dot(A.values[0]), identity)


def test_symbols_are_eliminated_by_their_recorded_star() -> None:
    x, y = sympy.symbols("x y")
    A = Block((np.array([[x, y], [0, x]], dtype=object),))
    ReferenceEngine(PLUS_TIMES, (np.dtype(object),)).eliminate(A)
    exact = (sympy.eye(2) - sympy.Matrix([[x, y], [0, x]])).inv()
    assert (sympy.Matrix(A.values[0].tolist()) - exact).applyfunc(sympy.simplify) == sympy.zeros(2, 2)


@pytest.mark.parametrize(
    ("semiring", "dtype", "entry", "method"),
    [
        (MIN_PLUS, "float32", -1, "close"),
        (MIN_PLUS, "int64", -1, "close"),
        (MAX_TIMES, "float64", 1.5, "close"),
        (PLUS_TIMES, "float64", 1, "eliminate"),
        (LOG, "float64", 0.5, "eliminate"),
        (GF2, "bool", True, "eliminate"),
        (MIN_PLUS, "float64", -1, "eliminate"),
    ],
)
@pytest.mark.parametrize("pivot", [0, 5, 16, 39])
def test_a_divergent_pivot_is_named(semiring: Semiring, dtype: str, entry: Any, method: str, pivot: int) -> None:
    dtypes = (np.dtype(dtype),)
    zero, _ = semiring.identities(dtypes)
    values = np.full((40, 40), zero[0], dtype)
    values[pivot, pivot] = entry
    for engine in (CpuEngine(semiring, dtypes), ReferenceEngine(semiring, dtypes)):
        assert closed(engine, (values,), method, row=1000) == 1000 + pivot


def test_a_cycle_shows_at_the_pivot_that_closes_it() -> None:
    a = np.full((6, 6), INF)
    a[4, 1], a[1, 3], a[3, 4] = 2, -4, 1
    for witness in (False, True):
        for engine in (CpuEngine(MIN_PLUS, (a.dtype,)), ReferenceEngine(MIN_PLUS, (a.dtype,))):
            assert closed(engine, (a,), "close", witness=witness) == 4


@pytest.mark.parametrize("layout", ["Fortran", "stepped", "reversed", "inner block", "shifted", "loose rows"])
def test_layouts_and_batches(layout: str) -> None:
    rng = np.random.default_rng(0)
    dtypes = (np.dtype(np.float32),)
    values = harmless(MIN_PLUS, dtypes, 37, rng)
    expected = closed(ReferenceEngine(MIN_PLUS, dtypes), values, "close", witness=True)
    assert isinstance(expected, Block)
    A = Block((laid_out(values[0], layout),), laid_out(np.full((37, 37), -1, np.int32), "inner block"))
    CpuEngine(MIN_PLUS, dtypes).close(A)
    assert_blocks_equal(A, expected)
    batch = np.stack([values[0], values[0].T, values[0] + 1])
    found = closed(CpuEngine(MIN_PLUS, dtypes), (batch,), "close", witness=True)
    assert_blocks_equal(found, closed(ReferenceEngine(MIN_PLUS, dtypes), (batch,), "close", witness=True))


def test_a_matrix_that_is_not_contiguous_keeps_what_was_done_before_the_divergent_pivot() -> None:
    a = np.asfortranarray([[0, 1.0], [1, -1]])
    with pytest.raises(DivergentPivot):
        CpuEngine(MIN_PLUS, (a.dtype,)).close(Block((a,)))
    np.testing.assert_array_equal(a, [[0, 1], [1, -1]])


@pytest.mark.parametrize("semiring", [MIN_PLUS, MAX_MIN, DISTANCE_COUNT], ids=name)
def test_the_identity_is_added(semiring: Semiring) -> None:
    dtypes = (np.dtype(np.float64),) * semiring.components
    values = harmless(semiring, dtypes, 5, np.random.default_rng(1))
    blocks = []
    for engine in (CpuEngine(semiring, dtypes), ReferenceEngine(semiring, dtypes)):
        A = Block(tuple(v.copy() for v in values))
        engine.add_identity(A)
        blocks.append(A)
    assert_blocks_equal(blocks[0], blocks[1])


@pytest.mark.parametrize("n", [1, 63, 64, 65, 300, 512])
def test_bits_are_closed_and_eliminated_like_bytes(n: int) -> None:
    a = np.random.default_rng(n).random((2, n, n)) < 1.2 / n
    for method in ("close", "eliminate"):
        engine = BooleanEngine(BOOLEAN, (np.dtype(bool),))
        A = engine.load((a,))
        getattr(engine, method)(A)
        found = np.empty_like(a)
        engine.store(A, (found,))
        expected = closed(CpuEngine(BOOLEAN, (np.dtype(bool),)), (a,), method)
        assert isinstance(expected, Block)
        np.testing.assert_array_equal(found, expected.values[0])


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64"])
@pytest.mark.parametrize("witness", [False, True])
def test_a_block_whose_rows_lie_far_apart_is_closed_where_it_lies(dtype: str, witness: bool) -> None:
    """It is closed in a copy: the result, and what a divergent pivot leaves, are those of a block of its own; nothing else changes."""
    rng = np.random.default_rng(0)
    engine = CpuEngine(MIN_PLUS, (np.dtype(dtype),), 1)
    for least in (1, -1):
        whole = rng.integers(1, 99, (130, 1030)).astype(dtype)
        whole[91, 95] = least  # on the diagonal of the block
        via = np.full(whole.shape, -1, np.int32)
        inside = np.s_[1:129, 5:133]
        expected, far = (
            Block((a,), v if witness else None, 7, 7) for a, v in ((whole[inside].copy(), via[inside].copy()), (whole[inside], via[inside]))
        )
        kept, pivots = whole.copy(), []
        for block in (expected, far):
            if least < 0:
                with pytest.raises(DivergentPivot) as error:
                    engine.close(block)
                pivots.append(error.value.args)
            else:
                engine.close(block)
        assert pivots[:1] == pivots[1:]
        np.testing.assert_array_equal(far.values[0], expected.values[0])
        if witness:
            np.testing.assert_array_equal(far.via, expected.via)
        kept[inside] = whole[inside]
        np.testing.assert_array_equal(whole, kept)
