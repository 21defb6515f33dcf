"""Stacks of matrices: what compiled code does with all of them is, bit for bit, what it does with each."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from semiring.algebra.catalogue import BOOLEAN, LOG, MIN_PLUS, PLUS_TIMES
from semiring.algebra.definition import Semiring
from semiring.algebra.laws import is_idempotent
from semiring.common.errors import DivergenceError, DivergentPivot, DTypeError, NegativeCycleError, OverflowRiskError
from semiring.kernels.cpu import launch
from semiring.kernels.cpu.engine import CpuEngine
from semiring.kernels.engine import Block
from semiring.product import matmul
from semiring.solve import apsp, closure
from tests.kernels.samples import CASES, ISAS, SELECTIVE, Array, DTypes, Values, elements, examples

seeds = st.integers(0, 2**32 - 1).map(np.random.default_rng)

MINE = Semiring("mine", lambda a, b: a if a > b else b, lambda a, b: max(a + b - 1, 0), 0, 1, domain=(0, 1))
HOPS = Semiring("hops", min, lambda a, b: (a[0] + b[0], a[1] + b[1]), (np.inf, np.inf), (0, 0))
F4, F8 = np.dtype(np.float32), np.dtype(np.float64)

ALL = [*CASES, (MINE, (F4,)), (HOPS, (F4, F4)), (HOPS, (F8, F4))]
SELECTING = [*SELECTIVE, *ALL[-3:]]

LAYOUTS = ["C", "Fortran", "reversed", "every other", "batch last", "records", "read-only"]


def laid_out(v: Array, layout: str) -> Array:
    """The same stack, of matrices that lie otherwise."""
    match layout:
        case "Fortran":
            return np.ascontiguousarray(v.swapaxes(-1, -2)).swapaxes(-1, -2)
        case "reversed":
            return v[::-1, ::-1, ::-1].copy()[::-1, ::-1, ::-1]
        case "every other":
            return np.repeat(np.repeat(np.repeat(v, 2, 0), 2, 1), 2, 2)[::2, ::2, ::2]
        case "batch last":
            return np.ascontiguousarray(v.transpose(1, 2, 0)).transpose(2, 0, 1)
        case "records":
            records = np.zeros(v.shape, dtype=np.dtype([("byte", "u1"), ("value", v.dtype)]))
            records["value"] = v
            field: Array = records["value"]
            return field
    w = v.copy()
    w.flags.writeable = layout != "read-only"
    return w


def elements_of(semiring: Semiring, dtypes: DTypes, shape: tuple[int, ...], rng: np.random.Generator) -> Values:
    """Random elements, also of the semirings of this file."""
    if semiring is MINE:
        return ((rng.integers(0, 17, shape) / 16).astype(dtypes[0]),)
    if semiring is HOPS:
        none = rng.random(shape) < 0.25
        return tuple(np.where(none, np.inf, rng.integers(0, 9, shape)).astype(d) for d in dtypes)
    return elements(semiring, dtypes, shape, rng)


def assert_bits(found: Values, expected: Values, *, close: bool = False) -> None:
    """The same bits, but for the signs of zeros; or `close`, where small matrices add logarithms and others exponentials."""
    for x, y in zip(found, expected, strict=True):
        if close:
            np.testing.assert_allclose(x, y, rtol=50 * np.finfo(x.dtype).eps, atol=50 * np.finfo(x.dtype).eps)
        else:
            np.testing.assert_array_equal(x, y)


def test_large_stacks_of_unaligned_records_are_copied() -> None:
    """Records of 5 bytes, in matrices of many short rows that are checked while they are multiplied."""
    records = np.zeros((64, 2000, 4), np.dtype([("x", "f4"), ("y", "u1")]))
    records["x"] = np.random.default_rng(0).random(records.shape)
    a, b = records["x"], np.ones((64, 4, 4), np.float32)
    np.testing.assert_array_equal(matmul(a, b, MIN_PLUS), matmul(a.copy(), b, MIN_PLUS))
    unaligned = np.ones((64, 4, 4), records.dtype)["x"]
    np.testing.assert_array_equal(matmul(a.copy(), unaligned, MIN_PLUS), matmul(a.copy(), b, MIN_PLUS))


@pytest.mark.exhaustive
@examples(30)
@given(case=st.sampled_from(ALL), isa=st.sampled_from(ISAS), seed=seeds, data=st.data())
def test_products_are_those_of_each_matrix(case: tuple[Semiring, DTypes], isa: str, seed: np.random.Generator, data: st.DataObject) -> None:
    semiring, dtypes = case
    sides = st.sampled_from([1, 2, 3, 4, 5, 15, 16, 17, 33, 49, 70])
    m, n, k = (data.draw(sides, label=label) for label in "mnk")
    count = data.draw(st.sampled_from([1, 2, 5, 15, 16, 17, 33, 70]), label="count")
    layouts = data.draw(st.tuples(*[st.sampled_from(LAYOUTS)] * 3), label="layouts of a, b and the result")
    fresh = data.draw(st.booleans(), label="fresh")
    witness = case in SELECTING and data.draw(st.booleans(), label="witness")
    shared = data.draw(st.tuples(st.booleans(), st.booleans()), label="one a, one b for all")
    a, b, c = (elements_of(semiring, dtypes, shape, seed) for shape in ((count, m, k), (count, k, n), (count, m, n)))
    a, b = (tuple(np.broadcast_to(v[:1], v.shape) if one else v for v in x) for x, one in zip((a, b), shared, strict=True))
    expected, winners = tuple(v.copy() for v in c), np.full((count, m, n), -1, np.int32)
    each = CpuEngine(semiring, dtypes, 1, isa)
    for i in range(count):
        A, B, C = (Block(tuple(v[i] for v in x), None, 0, 5 * (x is a)) for x in (a, b, expected))
        (each.multiply if fresh else each.multiply_add)(A, B, Block(C.values, winners[i] if witness else None))
    engine = CpuEngine(semiring, dtypes, data.draw(st.sampled_from([1, 3]), label="threads"), isa)
    A, B = (
        Block(x if one else tuple(laid_out(v, layout) for v in x), None, 0, 5 * (x is a))
        for x, one, layout in zip((a, b), shared, layouts, strict=False)
    )
    into = layouts[2] if layouts[2] != "read-only" else "C"
    found, via = tuple(laid_out(v, into) for v in c), laid_out(np.full((count, m, n), -1, np.int32), into) if witness else None
    (engine.multiply if fresh else engine.multiply_add)(A, B, Block(found, via))
    assert_bits(found, expected, close=semiring is LOG)
    if via is not None:
        np.testing.assert_array_equal(via, winners)


@pytest.mark.exhaustive
@examples(20)
@given(case=st.sampled_from(ALL), isa=st.sampled_from(ISAS), seed=seeds, data=st.data())
def test_pivot_blocks_are_those_of_each_matrix(
    case: tuple[Semiring, DTypes], isa: str, seed: np.random.Generator, data: st.DataObject
) -> None:
    semiring, dtypes = case
    n = data.draw(st.sampled_from([1, 2, 5, 16, 17, 40, 100]), label="n")
    count = data.draw(st.sampled_from([1, 3, 16, 21, 70]), label="count")
    names = [*(["close"] if is_idempotent(semiring, dtypes) else []), "eliminate"]
    how, layout = data.draw(st.sampled_from(names), label="primitive"), data.draw(st.sampled_from(LAYOUTS[:-1]), label="layout")
    witness = how == "close" and case in SELECTING and data.draw(st.booleans(), label="witness")
    a, winners = elements_of(semiring, dtypes, (count, n, n), seed), np.full((count, n, n), -1, np.int32)
    expected, converges = tuple(v.copy() for v in a), []
    for i in range(count):
        try:
            A = Block(tuple(v[i] for v in expected), winners[i] if witness else None, 7, 7)
            getattr(CpuEngine(semiring, dtypes, 1, isa), how)(A)
            converges.append(i)
        except (DivergentPivot, DTypeError):
            pass
    found, via = tuple(laid_out(v[converges], layout) for v in a), laid_out(np.full((len(converges), n, n), -1, np.int32), layout)
    getattr(CpuEngine(semiring, dtypes, data.draw(st.sampled_from([1, 3]), label="threads"), isa), how)(
        Block(found, via if witness else None, 7, 7)
    )
    assert_bits(found, tuple(v[converges] for v in expected))
    if witness:
        np.testing.assert_array_equal(via, winners[converges])


@pytest.mark.parametrize("lanes", [True, False])
@pytest.mark.parametrize("witness", [False, True])
@pytest.mark.parametrize("axes", [(3, 5, 4), (2, 1, 19), (1, 1, 1), (40,)])
def test_any_leading_axes(axes: tuple[int, ...], witness: bool, lanes: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """As NumPy broadcasts them, with operands that are read in any order, c, and out which is an operand."""
    if not lanes:
        monkeypatch.setattr(launch, "LANE_ELEMENTS", 0)
    rng = np.random.default_rng(0)
    a, b = rng.integers(0, 50, (*axes, 6, 7)).astype(F4), rng.integers(0, 50, (*axes[1:], 7, 6)).astype(F4)
    c = rng.integers(0, 50, (*axes, 6, 6)).astype(F4)
    b = np.asfortranarray(b)
    for x in (a, a[::-1], a[..., ::-1, :]):
        sums = x[..., :, :, None] + b[..., None, :, :]
        found = matmul(x, b, MIN_PLUS, c=c, witness=witness)
        values = found.values if witness else found
        np.testing.assert_array_equal(values, np.minimum(sums.min(-2), c))
        if witness:
            np.testing.assert_array_equal(found.witness, np.where(sums.min(-2) < c, sums.argmin(-2), -1))
    square = rng.integers(0, 50, (*axes, 6, 6)).astype(F4)
    expected = np.minimum((square[..., :, :, None] + square[..., None, :, :]).min(-2), square)
    kept = square.copy()
    assert matmul(square, square, MIN_PLUS, c=square) is not square
    np.testing.assert_array_equal(square, kept)
    assert matmul(square, kept, MIN_PLUS, c=kept, out=square) is square
    np.testing.assert_array_equal(square, expected)


@pytest.mark.parametrize("shape", [(0, 3, 3), (4, 0, 0), (2, 0, 5, 5)])
def test_nothing(shape: tuple[int, ...]) -> None:
    a = np.zeros(shape, F4)
    assert matmul(a, a, MIN_PLUS).shape == shape
    assert closure(a, MIN_PLUS).shape == shape
    for dtype in (np.float64, np.int16):
        none = matmul(np.zeros((3, 2, 0), dtype), np.zeros((3, 0, 2), dtype), MIN_PLUS, witness=True)
        assert (none.values == matmul(np.zeros((3, 2, 0), dtype), np.zeros((3, 0, 2), dtype), MIN_PLUS)).all()
        assert (none.witness == -1).all()
        assert (none.values >= np.iinfo(np.int16).max).all()


def test_sums_longer_than_a_slab_are_those_of_each_matrix() -> None:
    rng = np.random.default_rng(0)
    a, b = rng.random((20, 2, 1500)), rng.random((20, 1500, 3))
    np.testing.assert_array_equal(matmul(a, b, PLUS_TIMES), [matmul(x, y, PLUS_TIMES) for x, y in zip(a, b, strict=True)])


# Closures.


def graphs(count: int, n: int, seed: int = 0) -> Array:
    rng = np.random.default_rng(seed)
    return np.where(rng.random((count, n, n)) < 0.3, rng.integers(1, 9, (count, n, n)), np.inf)


@pytest.mark.parametrize("n", [1, 7, 16, 90, 130])
@pytest.mark.parametrize("paths", [False, True])
def test_closures_are_those_of_each_matrix(n: int, paths: bool) -> None:
    a = graphs(21, n).reshape(3, 7, n, n)
    found = apsp(a, paths=paths)
    for index in np.ndindex(3, 7):
        one = apsp(a[index], paths=paths)
        if paths:
            np.testing.assert_array_equal(found[index].via, one.via)
            found_values, one = found[index].distances, one.distances
        else:
            found_values = found[index]
        np.testing.assert_array_equal(found_values, one)


@pytest.mark.parametrize("overwrite", [False, True])
def test_a_matrix_with_a_negative_cycle_is_named_and_those_before_it_are_closed(overwrite: bool) -> None:
    a = graphs(40, 9)
    a[23, 3, 4], a[23, 4, 3] = -2, 1
    kept = a.copy()
    with pytest.raises(NegativeCycleError) as caught:
        closure(a, MIN_PLUS, overwrite=overwrite)
    assert "batch index [23]" in str(caught.value)
    assert caught.value.index == (23,)
    if not overwrite:
        assert caught.value.cycle is not None
        np.testing.assert_array_equal(a, kept)


def test_a_matrix_whose_weights_are_too_large_is_refused_and_others_are_not() -> None:
    """What all numbers together would not allow, those of each matrix may."""
    top = np.iinfo(np.int16).max
    a = np.full((20, 9, 9), top, np.int16)
    a[:, 0, 1] = 5
    a[4, 2, 3] = 7000
    a[5, 2, 3] = -1
    found = closure(a, MIN_PLUS)
    for matrix, one in zip(found, a, strict=True):
        np.testing.assert_array_equal(matrix, closure(one, MIN_PLUS))
    a[7, 2, 3] = top // 2 + 9
    with pytest.raises(OverflowRiskError) as caught:
        closure(a, MIN_PLUS)
    assert "batch index [7]" in str(caught.value)
    assert caught.value.index == (7,)


def test_rounding_that_makes_a_cycle_improve_is_mended_in_its_matrix_alone() -> None:
    rng = np.random.default_rng(3)
    p = rng.random((30, 12)).astype(F8)
    a = np.where(rng.random((30, 12, 12)) < 0.6, p[:, :, None] - p[:, None, :], np.inf)  # all cycles weigh 0, but for rounding
    found = closure(a, MIN_PLUS)
    for matrix, one in zip(found, a, strict=True):
        np.testing.assert_array_equal(matrix, closure(one, MIN_PLUS))


def test_eliminations_are_those_of_each_matrix() -> None:
    a = np.random.default_rng(0).random((50, 11, 11)) / 12
    found = closure(a, PLUS_TIMES)
    np.testing.assert_allclose(found, np.linalg.inv(np.eye(11) - a), rtol=1e-9)
    for reflexive in (True, False):
        each = [closure(one, PLUS_TIMES, reflexive=reflexive) for one in a]
        np.testing.assert_array_equal(closure(a, PLUS_TIMES, reflexive=reflexive), each)
    a[30] = np.eye(11)
    with pytest.raises(DivergenceError) as caught:
        closure(a, PLUS_TIMES)
    assert "batch index [30]" in str(caught.value)
    assert caught.value.index == (30,)


def test_stacks_of_truth_values() -> None:
    a = np.random.default_rng(0).random((40, 9, 9)) < 0.15
    found: Any = closure(a, BOOLEAN)
    np.testing.assert_array_equal(found, [closure(one, BOOLEAN) for one in a])


@pytest.mark.sampled(3)
@pytest.mark.parametrize("semiring", [MIN_PLUS, PLUS_TIMES, LOG], ids=str)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_bits_depend_neither_on_threads_nor_on_checks(semiring: Semiring, dtype: str) -> None:
    """Also of fewer matrices than there are threads, of stacks of vectors, and where a single matrix has a kernel of its own."""
    rng = np.random.default_rng(6)
    for count, m, k, n in (
        (5, 200, 200, 1),
        (3, 1, 300, 300),
        (7, 40, 40, 1),
        (5, 5, 5, 5),
        (6, 40, 40, 40),
        (2, 300, 4, 4),
        (64, 1, 300, 300),
    ):
        a, b = (rng.normal(size=shape).astype(dtype) for shape in ((count, m, k), (count, k, n)))
        expected = matmul(a, b, semiring, device="cpu", threads=1)
        for threads in (2, 3, 64):
            np.testing.assert_array_equal(matmul(a, b, semiring, device="cpu", threads=threads), expected)
        np.testing.assert_array_equal(matmul(a, b, semiring, device="cpu", threads=64, check=False), expected)
        if max(m, n) > 200:
            alone = np.stack([matmul(x, y, semiring, device="cpu") for x, y in zip(a, b, strict=True)])
            np.testing.assert_array_equal(expected, alone)
