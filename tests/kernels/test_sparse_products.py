"""Products of compressed rows: generated ones and those by NumPy against products of dense matrices, over every semiring."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from semiring.algebra import ops
from semiring.algebra.catalogue import LOG, MIN_PLUS, PLUS_TIMES
from semiring.algebra.definition import Semiring
from semiring.common.errors import GraphError
from semiring.kernels import machine
from semiring.kernels.compressed import CompressedRows, Mask, ReferenceSparseProducts
from semiring.kernels.cpu.sparse_products import CpuSparseProducts
from semiring.kernels.engine import Block
from semiring.kernels.overflow.products import checks_for
from semiring.kernels.reference import ReferenceEngine
from tests.kernels.samples import CASES, ISAS, SELECTIVE, Array, Values, elements, examples, name
from tests.kernels.test_exponential import assert_within, normal, recorded

seeds = st.integers(0, 2**32 - 1).map(np.random.default_rng)

F8 = (np.dtype(float),)


def compressed(values: Values, there: Array, index: type = np.int32) -> CompressedRows:
    """A dense matrix by the entries that are `there`."""
    m, n = there.shape
    starts = np.append(0, there.sum(axis=1).cumsum())
    return CompressedRows((m, n), starts, np.nonzero(there)[1].astype(index), tuple(v[there] for v in values))


def dense(case: Any, rows: CompressedRows) -> Values:
    """The matrix of compressed rows, with zeros elsewhere."""
    semiring, dtypes = case
    zero, _ = semiring.identities(dtypes)
    out = tuple(np.full(rows.shape, z, d) for z, d in zip(zero, dtypes, strict=True))
    row = np.repeat(np.arange(rows.shape[0]), np.diff(rows.starts))
    for o, v in zip(out, rows.values, strict=True):
        o[row, rows.columns] = v
    return out


def operand(
    case: Any, shape: tuple[int, int], rng: np.random.Generator, density: float, index: type = np.int32
) -> tuple[Values, CompressedRows]:
    """A sparse matrix, dense and by compressed rows, some of whose entries are zeros that are stored."""
    semiring, dtypes = case
    values, there = elements(semiring, dtypes, shape, rng, zeros=0.1), rng.random(shape) < density
    rows = compressed(values, there, index)
    return dense(case, rows), rows


def multiplied(case: Any, a: Values, b: Values, witness: bool) -> tuple[Values, Array | None]:
    """The product as it is defined."""
    semiring, dtypes = case
    shape = a[0].shape[0], b[0].shape[1]
    values, via = tuple(np.empty(shape, d) for d in dtypes), np.full(shape, -1, np.int32) if witness else None
    ReferenceEngine(semiring, dtypes).multiply(Block(a), Block(b), Block(values, via))
    return values, via


def assert_equal(case: Any, found: Values, expected: Values) -> None:
    for x, y in zip(found, expected, strict=True):
        if case[0].name == "log":
            np.testing.assert_allclose(x, y, rtol=1e-4 if x.itemsize == 4 else 1e-11)
        else:
            np.testing.assert_array_equal(x, y)


def of(case: Any, isa: str | None = None, threads: int = 1) -> list[CpuSparseProducts | ReferenceSparseProducts]:
    semiring, dtypes = case
    return [CpuSparseProducts(semiring, dtypes, threads, isa), ReferenceSparseProducts(semiring, dtypes)]


def room(count: int) -> None:
    """There is any."""


@pytest.mark.sampled(5)
@pytest.mark.parametrize("witness", [False, True], ids=name)
@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{name(case[0])}-{name(case[1])}")
def test_all_semirings(case: Any, witness: bool) -> None:
    if witness and case not in SELECTIVE:
        pytest.skip("⊕ is not selective")
    rng = np.random.default_rng(3)
    a, A = operand(case, (9, 40), rng, 0.3)
    b, B = operand(case, (40, 97), rng, 0.4)
    values, via = multiplied(case, a, b, witness)
    for products in of(case):
        C, k = tuple(np.empty_like(v) for v in values), None if via is None else np.empty_like(via)
        products.times_dense(A, b, C, k, signed=True)
        assert_equal(case, C, values)
        np.testing.assert_array_equal(k, via)
        product, codes = products.times_sparse(A, B, room, witness=witness, signed=True)
        assert_equal(case, dense(case, product), values)
        if via is not None and codes is not None:
            row = np.repeat(np.arange(9), np.diff(product.starts))
            np.testing.assert_array_equal(codes, via[row, product.columns])


@examples(60)
@given(
    n=st.sampled_from([0, 1, 2, 7, 8, 9, 15, 16, 31, 64, 65, 200]),
    m=st.sampled_from([0, 1, 3, 17]),
    k=st.sampled_from([0, 1, 5, 64]),
    density=st.sampled_from([0.0, 0.02, 0.3, 1.0]),
    isa=st.sampled_from(ISAS),
    index=st.sampled_from([np.int32, np.int64]),
    seed=seeds,
)
def test_all_sizes(n: int, m: int, k: int, density: float, isa: str, index: type, seed: np.random.Generator) -> None:
    case = MIN_PLUS, F8
    a, A = operand(case, (m, k), seed, density, index)
    b, B = operand(case, (k, n), seed, density, index)
    values, _ = multiplied(case, a, b, False)
    for products in of(case, isa):
        C = (np.empty((m, n)),)
        products.times_dense(A, b, C)
        assert_equal(case, C, values)
        product, _ = products.times_sparse(A, B, room)
        assert_equal(case, dense(case, product), values)
        pattern = np.zeros((m, n), int)
        np.add.at(pattern, (np.repeat(np.arange(m), np.diff(product.starts)), product.columns), 1)
        np.testing.assert_array_equal(pattern, (compressed_pattern(A) @ compressed_pattern(B) > 0).astype(int))
        assert all((np.diff(product.columns[i:j]) > 0).all() for i, j in zip(product.starts, product.starts[1:], strict=False))


def compressed_pattern(rows: CompressedRows) -> Array:
    """1 where there is an entry."""
    out = np.zeros(rows.shape)
    out[np.repeat(np.arange(rows.shape[0]), np.diff(rows.starts)), rows.columns] = 1
    return out


@pytest.mark.parametrize("complement", [False, True])
@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_a_mask_selects(index: type, complement: bool) -> None:
    rng = np.random.default_rng(5)
    case = MIN_PLUS, F8
    a, A = operand(case, (20, 30), rng, 0.2, index)
    b, B = operand(case, (30, 300), rng, 0.2, index)
    there = rng.random((20, 300)) < 0.3
    (values,), _ = multiplied(case, a, b, False)
    for products in of(case):
        product, _ = products.times_sparse(A, B, room, Mask(compressed((), there), complement))
        (found,) = dense(case, product)
        np.testing.assert_array_equal(found, np.where(there ^ complement, values, np.inf))


@pytest.mark.sampled(3)
@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.parametrize("entries", ["ascending", "shuffled", "twice in B", "twice in the mask"])
def test_short_rows_of_a_mask(entries: str, index: type) -> None:
    """Rows of B are much longer than those of the mask, some of which are empty."""
    rng = np.random.default_rng(5)
    a, b = (
        (rng.random(shape) < density) * rng.integers(1, 9, shape).astype(float) for shape, density in (((40, 30), 0.2), ((30, 900), 0.5))
    )
    there = rng.random((40, 900)) < np.where(rng.random(40) < 0.5, 0.01, 0)[:, None]
    A, B, mask = (compressed((x,), x != 0, index) for x in (a, b, there))
    if entries == "shuffled":
        row = np.repeat(np.arange(30), np.diff(B.starts))
        order = np.lexsort([rng.random(len(row)), row])
        B = B._replace(columns=B.columns[order], values=(B.values[0][order],))
    elif entries == "twice in B":
        b *= 2
        B = B._replace(starts=2 * B.starts, columns=B.columns.repeat(2), values=(B.values[0].repeat(2),))
    elif entries == "twice in the mask":
        mask = mask._replace(starts=2 * mask.starts, columns=mask.columns.repeat(2))
    expected = np.where(there, a @ b, 0)
    for threads in (1, 2):
        product, _ = CpuSparseProducts(PLUS_TIMES, F8, threads).times_sparse(A, B, room, Mask(mask, False))
        np.testing.assert_array_equal(dense((PLUS_TIMES, F8), product)[0], expected)
    left, right = (x._replace(values=(np.log(x.values[0]),)) for x in (A, B))
    product, _ = CpuSparseProducts(LOG, F8).times_sparse(left, right, room, Mask(mask, False))
    np.testing.assert_allclose(np.exp(dense((LOG, F8), product)[0]), expected, rtol=1e-12)
    product, witness = CpuSparseProducts(MIN_PLUS, F8).times_sparse(A, B, room, Mask(mask, False), witness=True)
    whole, among_all = CpuSparseProducts(MIN_PLUS, F8).times_sparse(A, B, room, witness=True)
    rows = np.repeat(np.arange(40), np.diff(product.starts))
    place = np.searchsorted(np.repeat(np.arange(40), np.diff(whole.starts)) * 900 + whole.columns, rows * 900 + product.columns)
    np.testing.assert_array_equal(product.values[0], whole.values[0][place])
    assert witness is not None
    assert among_all is not None
    np.testing.assert_array_equal(witness, among_all[place])


def test_the_order_of_factors_is_kept() -> None:
    """Over a ⊗ that does not commute, the transposed product swaps the factors."""
    first = Semiring("first", min, lambda a, b: 2 * a + b if a < np.inf else a, np.inf, 0)  # no semiring, but ⊗ tells its operands apart
    case = first, F8
    rng = np.random.default_rng(7)
    a, b = rng.integers(0, 9, (2, 12, 12)).astype(float)
    values, _ = multiplied(case, (a,), (b,), False)
    everywhere = np.ones((12, 12), bool)
    AT, BT = (compressed((x.T.copy(),), everywhere) for x in (a, b))
    for products in of(case):
        C = (np.empty((12, 12)),)
        products.times_dense(BT, (a.T.copy(),), C, swapped=True)
        assert_equal(case, (C[0].T,), values)
        product, _ = products.times_sparse(BT, AT, room, swapped=True)
        assert_equal(case, (dense(case, product)[0].T,), values)


def test_any_threads_give_the_same_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(11)
    a, b = rng.random((300, 200)), rng.random((200, 400))
    A, B = (compressed((x,), rng.random(x.shape) < 0.2) for x in (a, b))
    found = []
    monkeypatch.setattr(machine, "VECTOR_SERIAL", 0)
    for threads in (1, 2, 3):
        products, C, column = CpuSparseProducts(PLUS_TIMES, F8, threads), (np.empty((300, 400)),), (np.empty((300, 1)),)
        products.times_dense(A, (b,), C)
        products.times_dense(A, (b[:, 3:4],), column)
        found.append((C[0].tobytes(), column[0].tobytes(), products.times_sparse(A, B, room)[0].values[0].tobytes()))
    assert found[0] == found[1] == found[2]


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_entries_times_a_vector_are_checked_on_the_way(index: type, isa: str) -> None:
    """Wherever the only one beyond the safe range stands, in a row of any length; the vector may be strided."""
    rng = np.random.default_rng(17)
    there = np.arange(21)[:, None] >= np.arange(23)
    a, b = np.where(there, rng.random(there.shape), np.inf), rng.random((23, 1))
    A = compressed((a,), there, index)
    products, safe = CpuSparseProducts(MIN_PLUS, F8, 1, isa), checks_for(MIN_PLUS, F8, 23).safe
    assert safe is not None
    expected = np.min(a + b.T, axis=1)[:, None]
    wide = np.repeat(b, 3, axis=1)
    for vector in (b, wide[:, 1:2]):
        C = np.empty((21, 1))
        assert products.times_vector_within(A, (vector,), (C,), None, safe, lambda: True)
        np.testing.assert_array_equal(C, expected)
        assert not products.times_vector_within(A, (vector,), (C,), None, safe, lambda: False)
    (values,) = A.values
    for place in range(0, len(values), 5):
        kept, values[place] = values[place], rng.choice([np.nan, -np.inf])
        assert not products.times_vector_within(A, (b,), (np.empty((21, 1)),), None, safe, lambda: True)
        values[place] = np.inf
        assert products.times_vector_within(A, (b,), (np.empty((21, 1)),), None, safe, lambda: True)
        values[place] = kept


def test_columns_beyond_32_bits() -> None:
    """Of 2⁴⁰ columns, only those with entries take memory."""
    n = 1 << 40
    A = CompressedRows((2, 2), np.array([0, 2, 3]), np.array([0, 1, 1], np.int32), (np.array([1.0, 2.0, 3.0]),))
    B = CompressedRows((2, n), np.array([0, 2, 4]), np.array([5, n - 1, 7, n - 1]), (np.array([10.0, 20.0, 30.0, 1.0]),))
    for products in (CpuSparseProducts(MIN_PLUS, F8),):
        product, _ = products.times_sparse(A, B, room)
        assert product.columns.tolist() == [5, 7, n - 1, 7, n - 1]
        assert product.values[0].tolist() == [11.0, 32.0, 3.0, 33.0, 4.0]
        mask = CompressedRows((2, n), np.array([0, 2, 3]), np.array([6, n - 1, 7]))
        product, _ = products.times_sparse(A, B, room, Mask(mask))
        assert product.columns.tolist() == [n - 1, 7]


def test_room_is_asked_for_before_the_result_is_made() -> None:
    ones = compressed((np.ones((50, 50)),), np.ones((50, 50), bool))

    def refuse(count: int) -> None:
        raise MemoryError(count)

    for products in of((MIN_PLUS, F8)):
        with pytest.raises(MemoryError, match="2500"):
            products.times_sparse(ones, ones, refuse)


@pytest.mark.parametrize("column", [-1, 30, 1 << 30])
@pytest.mark.parametrize("n", [1, 3, 64])
@pytest.mark.parametrize("isa", ISAS)
def test_columns_that_there_are_not_are_refused(column: int, n: int, isa: str) -> None:
    case = MIN_PLUS, F8
    rng = np.random.default_rng(13)
    b, B = operand(case, (30, n), rng, 0.5)
    _, A = operand(case, (20, 30), rng, 0.5)
    A.columns[-1] = column
    for products in of(case, isa):
        with pytest.raises(GraphError, match="outside its shape"):
            products.times_dense(A, b, (np.empty((20, n)),))
        with pytest.raises(GraphError, match="outside its shape"):
            products.times_sparse(A, B, room)


def log_products(a: Array, b: Array, semiring: Semiring = LOG, isa: str | None = None) -> list[Array]:
    """a ⊗ b with a sparse and b a matrix, columns or sparse, and b swapped for a."""
    products, zero = CpuSparseProducts(semiring, (a.dtype,), 1, isa), semiring.zero
    A, B, Bt = (compressed((v,), v != zero, np.int32) for v in (a, b, np.ascontiguousarray(b.T)))
    whole, column, turned = np.empty((len(a), b.shape[1]), a.dtype), np.empty((len(a), 1), a.dtype), np.empty((b.shape[1], len(a)), a.dtype)
    products.times_dense(A, (b,), (whole,))
    products.times_dense(A, (np.ascontiguousarray(b[:, :1]),), (column,))
    products.times_dense(Bt, (np.ascontiguousarray(a.T),), (turned,), swapped=True)
    (found,) = dense((semiring, (a.dtype,)), products.times_sparse(A, B, room)[0])
    return [whole, np.concatenate([column, whole[:, 1:]], axis=1), turned.T, found]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("isa", ISAS)
def test_sums_of_exponentials(isa: str, dtype: str) -> None:
    rng = np.random.default_rng(5)
    for k in (1, 2, 7, 60, 700):
        for spread in (1e-3, 1, 40, 1000):
            for zeros in (0.0, 0.4):
                a, b = normal(rng, (3, k), dtype, spread, zeros), normal(rng, (k, 19), dtype, spread, zeros)
                for found in log_products(a, b, isa=isa):
                    assert_within(found, a, b, 4 + math.sqrt(k), most=2)


@pytest.mark.exhaustive
def test_long_sums_of_exponentials_do_not_stop_growing() -> None:
    a, b = np.full((1, 20_000), -3000.3, np.float32), np.zeros((20_000, 2), np.float32)
    rising = np.arange(20_000, dtype=np.float32).reshape(1, -1) * np.float32(1e-4)  # each term is the largest so far
    for x in (a, rising):
        for found in log_products(x, b):
            assert_within(found, x, b, 4 + math.sqrt(20_000))


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("semiring", "scale"),
    [
        (recorded(lambda a, b: -ops.logaddexp(-a, -b), math.inf), -1.0),
        (recorded(lambda a, b: 0.5 * ops.logaddexp(a / 0.5, b / 0.5), -math.inf), 2.0),
    ],
    ids=["soft minimum", "temperature"],
)
def test_sums_of_exponentials_of_another_base(semiring: Semiring, scale: float) -> None:
    rng = np.random.default_rng(6)
    a, b = (np.where(rng.random(s) < 0.3, semiring.zero, 40 * rng.normal(size=s)) for s in ((3, 70), (70, 9)))
    for found in log_products(a, b, semiring):
        assert_within(found, a, b, (4 + math.sqrt(70)) * max(1, 1 / abs(scale)), scale=scale)
