"""`matmul` of sparse arrays: every format and kind, what is refused, and SciPy's own products."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

import semiring as sr
from semiring.arrays import memory
from tests.kernels.samples import examples

INF = np.inf
FORMATS = ["csr", "csc", "coo", "lil", "dok", "bsr", "dia"]


def drawn(m: int, n: int, seed: int, density: float = 0.25) -> Any:
    """A sparse array of small whole numbers from 1."""
    a = sp.random_array((m, n), density=density, rng=np.random.default_rng(seed), format="csr")
    a.data[:] = np.random.default_rng(seed).integers(1, 9, a.nnz)
    return a


def dense(a: Any, zero: Any = INF) -> Any:
    """What a sparse array stores, each place once, and zeros elsewhere."""
    coo = a.tocoo()
    out = np.full(a.shape, zero, a.dtype)
    out[coo.coords] = coo.data
    return out


@examples(60)
@given(
    st.sampled_from(FORMATS),
    st.sampled_from(FORMATS),
    st.sampled_from([0, 1, 5, 33]),
    st.sampled_from([1, 2, 31]),
    st.sampled_from([0, 1, 9, 70]),
    st.integers(0, 99),
)
def test_all_formats(first: str, second: str, m: int, k: int, n: int, seed: int) -> None:
    a, b = drawn(m, k, seed), drawn(k, n, seed + 1)
    if 0 in (m, n):  # SciPy has neither blocks nor diagonals of nothing
        first, second = (f if f not in ("bsr", "dia") else "csr" for f in (first, second))
    x, y = a.asformat(first), b.asformat(second)
    expected = sr.matmul(dense(a), dense(b), sr.MIN_PLUS, witness=True)
    product = sr.matmul(x, y, sr.MIN_PLUS)
    assert isinstance(product, sp.csc_array if first == "csc" else sp.csr_array)
    assert product.has_canonical_format
    np.testing.assert_array_equal(dense(product), expected.values)
    values, witness = sr.matmul(x, y, sr.MIN_PLUS, witness=True)
    np.testing.assert_array_equal(dense(values), expected.values)
    np.testing.assert_array_equal(dense(witness, -1), expected.witness)
    for left, right in ((x, dense(b)), (x, np.asfortranarray(dense(b))), (dense(a), y), (np.asfortranarray(dense(a)), y)):
        found = sr.matmul(left, right, sr.MIN_PLUS, witness=True)
        np.testing.assert_array_equal(found.values, expected.values)
        np.testing.assert_array_equal(found.witness, expected.witness)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("dtype", ["f4", "f8", "i4", "i8", "u2"])
def test_numbers_as_scipy_multiplies_them(dtype: str) -> None:
    a, b = drawn(40, 30, 0).astype(dtype), drawn(30, 50, 1).astype(dtype)
    product = sr.matmul(a, b, sr.PLUS_TIMES)
    assert product.dtype == np.dtype(dtype)
    np.testing.assert_array_equal(product.toarray(), (a @ b).toarray())
    np.testing.assert_array_equal(sr.matmul(a, b.toarray(), sr.PLUS_TIMES), a @ b.toarray())
    np.testing.assert_array_equal(sr.matmul(a.toarray(), b, "plus-times"), a.toarray() @ b)
    x = np.arange(30, dtype=dtype)
    np.testing.assert_array_equal(sr.matmul(a, x, sr.PLUS_TIMES), a @ x)
    np.testing.assert_array_equal(sr.matmul(x, b, sr.PLUS_TIMES), x @ b)


def test_truth_values() -> None:
    a, b = (drawn(20, 20, seed).astype(bool) for seed in (0, 1))
    np.testing.assert_array_equal(sr.matmul(a, b, sr.BOOLEAN).toarray(), (a @ b).toarray())


def test_dtypes_are_promoted_with_their_infinities() -> None:
    a = sp.csr_array((np.array([3, 2**31 - 1], np.int32), ([0, 0], [0, 1])), shape=(1, 2))
    assert sr.matmul(a, np.array([1.5, 1.0]), sr.MIN_PLUS).tolist() == [4.5]
    assert sr.matmul(a, np.array([INF, 1.0]), sr.MIN_PLUS).tolist() == [INF]
    assert sr.matmul(a, np.array([2**31 - 1, 1], np.int32), sr.MIN_PLUS).tolist() == [2**31 - 1]


@pytest.mark.parametrize("kind", [sp.csr_array, sp.csr_matrix, sp.csc_array, sp.csc_matrix])
def test_results_are_of_the_kind_of_the_first_operand(kind: Any) -> None:
    a = kind(drawn(6, 6, 0))
    assert type(sr.matmul(a, drawn(6, 6, 1), sr.MIN_PLUS)) is kind


@pytest.mark.sampled(2)
@pytest.mark.parametrize("kind", ["COO", "GCXS"])
@pytest.mark.parametrize("fill", [0, INF])
def test_arrays_of_pydata(kind: str, fill: float) -> None:
    sparse: Any = pytest.importorskip("sparse")
    a, b = drawn(6, 8, 0), drawn(8, 5, 1)
    x, y = (sparse.COO(np.stack(v.tocoo().coords), v.data, shape=v.shape, fill_value=fill) for v in (a, b))
    x, y = (v.asformat("gcxs") if kind == "GCXS" else v for v in (x, y))
    product = sr.matmul(x, y, sr.MIN_PLUS)
    assert type(product).__name__ == kind
    expected = sr.matmul(dense(a), dense(b), sr.MIN_PLUS)
    np.testing.assert_array_equal(product.todense(), expected)
    np.testing.assert_array_equal(sr.matmul(product, dense(b).T, sr.MIN_PLUS), sr.matmul(expected, dense(b).T, sr.MIN_PLUS))
    np.testing.assert_array_equal(sr.matmul(x, dense(b), sr.MIN_PLUS), expected)
    with pytest.raises(sr.GraphError, match="wherever it stores none"):
        sr.matmul(sparse.COO(np.zeros((2, 0), int), np.zeros(0), shape=(8, 8), fill_value=7), y, sr.MIN_PLUS)


@pytest.mark.parametrize("semiring", [sr.DISTANCE_COUNT, sr.DISTANCE_HOPS], ids=repr)
def test_structured_elements(semiring: sr.Semiring) -> None:
    rng = np.random.default_rng(0)
    a, b = (
        tuple(drawn(12, 12, seed)._with_data(rng.integers(1, 4, drawn(12, 12, seed).nnz).astype(float)) for _ in range(2))
        for seed in (0, 1)
    )
    zero, _ = semiring.identities((a[0].dtype,) * 2)
    x, y = (tuple(dense(v, z) for v, z in zip(part, zero, strict=True)) for part in (a, b))
    expected = sr.matmul(x, y, semiring)
    for found in (sr.matmul(a, y, semiring), sr.matmul(x, b, semiring)):
        np.testing.assert_array_equal(found, expected)
    product = sr.matmul(a, b, semiring)
    np.testing.assert_array_equal([dense(v, z) for v, z in zip(product, zero, strict=True)], expected)
    with pytest.raises(sr.ShapeError, match="tuple of 2 sparse arrays"):
        sr.matmul(a[0], b, semiring)
    with pytest.raises(sr.ShapeError, match="same places"):
        sr.matmul((a[0], b[0]), b, semiring)


def test_duplicates_are_added_with_the_semirings_sum() -> None:
    coo = sp.coo_array((np.array([5.0, 2.0, 7.0]), ([0, 0, 1], [1, 1, 0])), shape=(2, 2))
    csr = sp.csr_array((np.array([5.0, 2.0, 7.0]), np.array([1, 1, 0]), np.array([0, 2, 3])), shape=(2, 2))
    once = np.array([[INF, 2.0], [7.0, INF]])
    assert not csr.has_canonical_format
    for a in (coo, csr, csr.tocsc()):
        np.testing.assert_array_equal(sr.matmul(a, np.array([0.0, 0.0]), sr.MIN_PLUS), [2.0, 7.0])
        np.testing.assert_array_equal(dense(sr.matmul(a, a, sr.MIN_PLUS)), sr.matmul(once, once, sr.MIN_PLUS))
        np.testing.assert_array_equal(sr.matmul(once, a, sr.MIN_PLUS), sr.matmul(once, once, sr.MIN_PLUS))
        np.testing.assert_array_equal(sr.matmul(a, np.eye(2), sr.PLUS_TIMES), [[0.0, 7.0], [7.0, 0.0]])
    assert coo.nnz == 3  # nothing that the caller passed is changed
    assert csr.nnz == 3


def test_duplicates_count_in_the_length_of_sums() -> None:
    many = sp.csr_array((np.full(3, 2**61), np.zeros(3, int), np.array([0, 3])), shape=(1, 1))
    with pytest.raises(sr.OverflowRiskError):
        sr.matmul(many, np.array([2]), sr.PLUS_TIMES)
    with pytest.raises(sr.OverflowRiskError):
        sr.matmul(np.array([2]), many, sr.PLUS_TIMES)


def test_unsorted_rows_name_the_lowest_witness() -> None:
    a = sp.csr_array((np.array([1.0, 1.0, 1.0]), np.array([2, 0, 1]), np.array([0, 3])), shape=(1, 3))
    assert sr.matmul(a, np.zeros(3), sr.MIN_PLUS, witness=True).witness.tolist() == [0]
    assert sr.matmul(a, sp.csr_array(np.ones((3, 1))), sr.MIN_PLUS, witness=True).witness.data.tolist() == [0]
    assert a.indices.tolist() == [2, 0, 1]


def test_zeros_and_infinities_that_are_stored() -> None:
    a = sp.csr_array((np.array([0.0, INF]), np.array([0, 1]), np.array([0, 1, 2])), shape=(2, 2))
    product, witness = sr.matmul(a, sp.csr_array(np.ones((2, 1))), sr.MIN_PLUS, witness=True)
    assert product.data.tolist() == [1.0, INF]  # an entry that ∞ has made is stored
    assert witness.data.tolist() == [0, -1]
    assert sr.matmul(a, np.array([3.0, 4.0]), sr.MIN_PLUS).tolist() == [3.0, INF]


@pytest.mark.sampled(7)
@pytest.mark.parametrize("complement", [False, True])
@pytest.mark.parametrize("kind", ["csr", "csc", "dia", "dense", "pydata"])
@pytest.mark.parametrize("stored", ["csr", "csc"])
def test_masks(stored: str, kind: str, complement: bool) -> None:
    a, b, mask = drawn(20, 30, 0).asformat(stored), drawn(30, 25, 1), drawn(20, 25, 2, 0.4)
    there = mask.toarray() != 0
    if kind == "pydata":
        given_mask = pytest.importorskip("sparse").COO.from_scipy_sparse(mask)
    else:
        given_mask = there if kind == "dense" else mask.asformat(kind)
    product = sr.matmul(a, b, sr.MIN_PLUS, mask=given_mask, complement=complement)
    np.testing.assert_array_equal(dense(product), np.where(there ^ complement, sr.matmul(dense(a), dense(b), sr.MIN_PLUS), INF))


def test_c_and_out_of_a_dense_result() -> None:
    a, b = drawn(9, 8, 0), dense(drawn(8, 7, 1))
    product = sr.matmul(dense(a), b, sr.MIN_PLUS, witness=True)
    c = np.where(np.random.default_rng(0).random((9, 7)) < 0.5, product.values, 5.0)
    expected = sr.matmul(dense(a), b, sr.MIN_PLUS, c=c, witness=True)
    out = np.asfortranarray(c)
    found = sr.matmul(a, b, sr.MIN_PLUS, c=out, out=out, witness=True)
    assert found.values is out
    np.testing.assert_array_equal(out, expected.values)
    np.testing.assert_array_equal(found.witness, expected.witness)


def test_stacks_of_dense_matrices() -> None:
    a, stack = drawn(5, 6, 0), dense(drawn(12, 6, 1)).reshape(2, 6, 6)
    np.testing.assert_array_equal(sr.matmul(a, stack, sr.MIN_PLUS), sr.matmul(dense(a), stack, sr.MIN_PLUS))
    np.testing.assert_array_equal(sr.matmul(stack, a.T, sr.MIN_PLUS), sr.matmul(stack, dense(a).T, sr.MIN_PLUS))


def test_results_are_of_the_library_of_the_dense_operand() -> None:
    x = pytest.importorskip("array_api_strict").asarray(np.arange(6.0))
    assert type(sr.matmul(drawn(5, 6, 0), x, sr.MIN_PLUS)) is type(x)
    assert sr.matmul(drawn(5, 6, 0), [0, 1, 2, 3, 4, 5], sr.MIN_PLUS).shape == (5,)


def test_exact_numbers_and_operations_without_instructions() -> None:
    halves = np.array([Fraction(1, 2), Fraction(1, 3)])
    a: Any = sp.csr_array(np.array([[2, 0], [3, 6]]))
    assert sr.matmul(a, halves, sr.PLUS_TIMES).tolist() == [1, Fraction(7, 2)]
    floor = sr.Semiring("floor", max, lambda x, y: (x * y) // 1.0, 0.0, 1.0, domain=(0.0, 9.0))
    b = sp.csr_array(np.array([[1.5, 0.0], [0.5, 2.0]]))
    assert sr.matmul(b, np.array([1.5, 2.5]), floor).tolist() == [2.0, 5.0]
    assert sr.matmul(b, b, floor).toarray().tolist() == [[2.0, 0.0], [1.0, 4.0]]
    np.testing.assert_array_equal(sr.matmul(a, a, sr.PLUS_TIMES, device="reference").toarray(), (a @ a).toarray())


def test_columns_beyond_32_bits() -> None:
    n = 1 << 40
    wide = sp.csr_array((np.array([1.0, 2.0]), np.array([3, n - 1]), np.array([0, 1, 2])), shape=(2, n))
    product = sr.matmul(sp.csr_array(np.array([[1.0, 1.0]])), wide, sr.MIN_PLUS)
    assert product.shape == (1, n)
    assert product.indices.tolist() == [3, n - 1]
    assert product.data.tolist() == [2.0, 3.0]


def refused(error: type[Exception], match: str, a: Any, b: Any, **options: Any) -> None:
    with pytest.raises(error, match=match):
        sr.matmul(a, b, sr.MIN_PLUS, **options)


def test_what_does_not_fit_is_refused() -> None:
    a, mask = drawn(4, 5, 0), drawn(4, 4, 0)
    refused(sr.ShapeError, "do not fit: a has 5 columns and b 4 rows", a, a)
    refused(sr.ShapeError, "do not fit", a, np.zeros((4, 4)))
    refused(sr.ShapeError, "do not fit", np.zeros(3), a)
    refused(sr.ShapeError, "two axes", sp.coo_array(np.ones(5)), np.ones(5))
    refused(sr.ShapeError, "mask has shape", a, a.T, mask=a)
    refused(sr.ShapeError, "a sparse or a bool array", a, a.T, mask=np.ones((4, 4)))
    refused(sr.SemiringError, "two sparse arrays", a, np.zeros(5), mask=mask)
    refused(sr.SemiringError, "pass mask=", a, a.T, complement=True)
    refused(sr.SemiringError, r"complement is an array of shape \(4, 4\); it must be True or False", a, a.T, mask=mask, complement=mask)
    refused(sr.SemiringError, "complement is 'yes'", a, a.T, mask=mask, complement="yes")
    refused(sr.SemiringError, "c and out", a, a.T, c=np.zeros((4, 4)))
    refused(sr.DTypeError, "complex", a.astype(complex), a.T)
    with pytest.raises(sr.ShapeError, match="square"):
        sr.power(a, 2, sr.MIN_PLUS)
    with pytest.raises(sr.LawError, match="selective"):
        sr.matmul(a, a.T, sr.PLUS_TIMES, witness=True)


def test_numbers_outside_the_carrier_are_refused_and_not_without_a_check() -> None:
    a = drawn(4, 4, 0)
    a.data[2] = np.nan
    refused(sr.DomainError, r"a\.data\[2\]", a, np.zeros(4))
    refused(sr.DomainError, r"b\.data\[2\]", drawn(4, 4, 1), a)
    assert sr.matmul(a, np.zeros(4), sr.MIN_PLUS, check=False).shape == (4,)
    large = sp.csr_array(np.array([[2**29]], np.int32))
    assert sr.matmul(large, np.array([2**29 - 2], np.int32), sr.MIN_PLUS).tolist() == [2**30 - 2]
    refused(sr.OverflowRiskError, "finite entries", large, np.array([2**29], np.int32))


def test_indices_of_no_matrix_are_refused() -> None:
    a = drawn(4, 4, 0)
    a.indices[1] = 4
    refused(sr.GraphError, "outside its shape", a, np.zeros(4))
    a.indices[1] = -1
    refused(sr.GraphError, "outside its shape", a, a)
    b = drawn(4, 4, 0)
    b.indptr[1] = b.indptr[2] + 1
    refused(sr.GraphError, "outside its shape", np.zeros(4), b.tocsr())


def test_a_result_without_room_is_refused_with_its_size(monkeypatch: pytest.MonkeyPatch) -> None:
    a = drawn(300, 300, 0)
    monkeypatch.setattr(memory, "ALWAYS_FITS", 0)
    monkeypatch.setattr(memory, "free_on", lambda device: 1000)
    refused(sr.TooLargeError, r"the product has [\d,]+ entries, and would take 1\.\d MiB|MB", a, a)
    refused(sr.TooLargeError, r"a result of shape \(300, 300\)", a, np.zeros((300, 300)))


def test_more_rows_than_there_is_memory() -> None:
    b = sp.coo_array(([1.0], ([2**40], [0])), shape=(2**41, 2**41))
    refused(sr.TooLargeError, "a has 2,199,023,255,552 rows", b, b)
    with pytest.raises(sr.TooLargeError, match="a has 2,199,023,255,552 rows"):
        sr.power(b, 2, sr.MIN_PLUS)
    stored = [1.0], [0], [0, 1]
    wide, tall = sp.csr_array(stored, shape=(1, 2**41)), sp.csc_array(stored, shape=(2**41, 1))
    refused(sr.TooLargeError, "has 2,199,023,255,552 columns", wide, tall)  # of which one has to be transposed


def test_more_is_stored_than_there_is() -> None:
    a = drawn(5, 5, 0)
    expected = sr.matmul(a, np.zeros(5), sr.MIN_PLUS)
    a.data, a.indices = np.append(a.data, -9.0), np.append(a.indices, 0)
    np.testing.assert_array_equal(sr.matmul(a, np.zeros(5), sr.MIN_PLUS), expected)
    a.data = a.data[:3]
    refused(sr.GraphError, "do not fit its shape and data", a, np.zeros(5))


@pytest.mark.parametrize("wrong", [-1, 5, 90_000_000, -90_000_000])
def test_numbers_of_rows_and_columns_that_there_are_not(wrong: int) -> None:
    """Whatever has to be sorted another way first: libraries that do that look at no bounds."""
    good = sp.csr_array(np.eye(5))
    bad, coordinates = good.copy(), good.tocoo()
    bad.indices[2] = wrong
    coordinates.row = coordinates.row.copy()
    coordinates.row[1] = wrong
    twice = sp.coo_array((np.ones(2), (np.array([1, 1]), np.array([2, 2]))), shape=(5, 5))
    twice.col = twice.col.copy()
    twice.col[0] = wrong
    dense = np.ones((5, 5))
    for strange in (bad, coordinates, twice):
        for a, b in ((strange, dense), (dense, strange), (dense[0], strange), (good.tocsc(), strange), (good, strange), (strange, good)):
            with pytest.raises(sr.GraphError, match="outside its shape"):
                sr.matmul(a, b, sr.MIN_PLUS)
        for a in (good, good.tocsc()):
            with pytest.raises(sr.GraphError, match="outside its shape"):
                sr.matmul(a, a, sr.MIN_PLUS, mask=strange)


@pytest.mark.parametrize("kind", ["csr", "csc"])
def test_arrays_of_a_result_are_its_own(kind: str) -> None:
    a = sp.random_array((20, 20), density=0.3, rng=np.random.default_rng(0)).asformat(kind)
    values, via = sr.matmul(a, a, sr.MAX_PLUS, witness=True)
    before = via.toarray()
    values.data[::2] = 0
    values.eliminate_zeros()
    np.testing.assert_array_equal(via.toarray(), before)
    pair = sr.matmul((a, a), (a, a), sr.DISTANCE_HOPS)
    assert not any(np.shares_memory(getattr(pair[0], name), getattr(pair[1], name)) for name in ("indices", "indptr", "data"))


def test_a_chain_is_of_dense_arrays() -> None:
    a = sp.csr_array(np.eye(2))
    with pytest.raises(sr.GraphError, match="multiply sparse arrays by matmul"):
        sr.multi_dot([np.eye(2), a], sr.PLUS_TIMES)


@pytest.mark.parametrize("excess", [(3, 3), (3, 0), (0, 3), (2, 5)])
@pytest.mark.parametrize("kind", ["csr", "csc"])
def test_what_is_stored_behind_the_last_row_is_passed_over(kind: str, excess: tuple[int, int]) -> None:
    """As SciPy does it, whatever is there."""
    good = sp.csr_array(np.array([[0, 1.0, 2], [3, 0, 4], [5, 6, 0]])).asformat(kind)
    a = good.copy()
    a.data, a.indices = np.append(a.data, np.full(excess[0], -9.0)), np.append(a.indices, np.full(excess[1], 77, a.indices.dtype))
    distances = sr.apsp(good)
    for call in (sr.apsp, sr.csgraph.dijkstra, sr.csgraph.johnson):
        np.testing.assert_array_equal(call(a), distances)
    np.testing.assert_array_equal(sr.factor(a).rows(1), distances[1])
    np.testing.assert_array_equal(sr.power(a, 2, sr.MIN_PLUS).toarray(), sr.power(good, 2, sr.MIN_PLUS).toarray())
    assert sr.cycle_mean(a).mean == sr.cycle_mean(good).mean
    assert sr.reachability(a).counts.tolist() == sr.reachability(good).counts.tolist()


STRANGE_STARTS = [[0, 4, 2, 6], [1, 2, 4, 6], [0, -2, 4, 6], [0, 2, 4, 60]]


@pytest.mark.parametrize("starts", STRANGE_STARTS)
@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_products_with_rows_that_are_none_are_refused(starts: list[int], index: Any) -> None:
    """By whatever reads them: the kernels themselves, those that sort, and those that transpose; nothing beyond the arrays is read."""
    a = sp.csr_array(np.array([[0, 1.0, 2], [3, 0, 4], [5, 6, 0]]))
    good = a.copy()
    a.indptr, a.indices = np.array(starts, index), a.indices.astype(index)
    for b in (np.zeros(3), np.zeros((3, 3)), good):
        refused(sr.GraphError, "outside its shape", a, b)
        refused(sr.GraphError, "outside its shape", b, a)
    with pytest.raises(sr.GraphError, match="outside its shape"):
        sr.matmul(a, np.zeros(3), sr.MIN_PLUS, witness=True)
    with pytest.raises(sr.GraphError, match="outside its shape"):
        sr.matmul(good, good, sr.MIN_PLUS, mask=a)


@pytest.mark.parametrize("starts", STRANGE_STARTS)
@pytest.mark.parametrize("call", [sr.apsp, sr.factor, sr.reachability, sr.csgraph.dijkstra], ids=lambda f: f.__name__)
def test_graphs_of_rows_that_are_none_are_refused(call: Any, starts: list[int]) -> None:
    """Which SciPy's compiled code reads as they are, beyond the end of its arrays."""
    a = sp.csr_array(np.array([[0, 1.0, 2], [3, 0, 4], [5, 6, 0]]))
    a.indptr = np.array(starts, a.indptr.dtype)
    with pytest.raises(sr.GraphError, match="outside its shape"):
        call(a)
