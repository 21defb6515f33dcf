"""Products and closures modulo p against Python's integers: shapes, layouts, dtypes, worst sums, and refusals."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import semiring as sr
from semiring.kernels.cuda import compiler
from semiring.kernels.modular import blocks_for, multiply_modulo

PRIMES = [2, 3, 7, 65521, 1048573, 1073741789, 2**31 - 1]
MODULI = [*PRIMES, 4, 6, 1 << 16, 3 * 715827881, (1 << 31) - 2]
Array = np.ndarray[Any, Any]


def residues(p: int, *shape: int, seed: int = 0) -> Array:
    """Random residues, among them many of p − 1."""
    random = np.random.default_rng(seed)
    return np.where(random.random(shape) < 0.3, p - 1, random.integers(0, p, shape))


def expected(p: int, a: Array, b: Array, c: Array | None = None) -> Array:
    """The product by Python's integers."""
    product = np.matmul(a.astype(object), b.astype(object))
    return np.asarray((product if c is None else product + c) % p).astype(np.int64)


@pytest.mark.parametrize("p", MODULI)
@pytest.mark.parametrize(("m", "k", "n"), [(0, 3, 2), (3, 0, 2), (1, 1, 1), (2, 3, 1), (31, 37, 29), (5, 257, 3), (130, 67, 61)])
def test_shapes(p: int, m: int, k: int, n: int) -> None:
    a, b, c = residues(p, m, k), residues(p, k, n, seed=1), residues(p, m, n, seed=2)
    product = sr.matmul(a, b, sr.modular(p))
    assert product.dtype == np.int64
    np.testing.assert_array_equal(product, expected(p, a, b))
    np.testing.assert_array_equal(sr.matmul(a, b, sr.modular(p), c=c), expected(p, a, b, c))


@pytest.mark.parametrize("p", [7, 4099, 65521, 1048573, (1 << 22) + 15, 1073741789, 2**31 - 1])
@pytest.mark.parametrize("threads", [1, 2])
def test_worst_sums_between_blocks(p: int, threads: int) -> None:
    """All entries are p − 1, and k is beyond a block: each block is as large as it may be."""
    k = min(2 * blocks_for(p, 1 << 40).steps + 3, 40_000)
    a, b = np.full((3, k), p - 1), np.full((k, 5), p - 1)
    np.testing.assert_array_equal(sr.matmul(a, b, sr.modular(p), threads=threads), np.full((3, 5), k * (p - 1) ** 2 % p))
    half = np.full((3, k), p // 2), np.full((k, 5), p // 2 + 1)
    np.testing.assert_array_equal(sr.matmul(*half, sr.modular(p), threads=threads), np.full((3, 5), k * (p // 2) * (p // 2 + 1) % p))


@given(st.integers(2, 2**31 - 1), st.integers(1, 1 << 20))
def test_blocks_are_exact(p: int, k: int) -> None:
    """The largest sum of a block is an integer that the float has."""
    steps, dtype, bits = blocks_for(p, k)
    bound = 1 << (24 if dtype == np.float32 else 53)
    if not bits:
        assert min(steps, k) * (p - 1) ** 2 <= bound
        return
    half = 1 << (bits - 1)
    high = (p - 1 + half) >> bits
    centred = max(p // 2, p - 1 - p // 2)
    assert steps >= 200
    assert steps * max(half, high) * centred <= bound


def test_sums_of_many_blocks_are_reduced_in_time() -> None:
    """Blocks of one step of the largest numbers would leave int64 after 1,023."""
    p, k = 94906266, 3000  # (p − 1)² is just below 2⁵³
    a, b, c = np.full((1, k), p - 1), np.full((k, 1), p - 1), np.zeros((1, 1), np.int64)
    blocks_for.cache_clear()
    multiply_modulo(p, (a, b, c), np.matmul, [slice(0, 1)], fresh=True)
    assert c.item() == k * (p - 1) ** 2 % p


@given(st.data())
def test_layouts(data: st.DataObject) -> None:
    p = data.draw(st.sampled_from(MODULI))
    m, k, n = (data.draw(st.integers(1, 40)) for _ in range(3))
    seed = data.draw(st.integers(0, 1000))

    def laid_out(rows: int, columns: int, seed: int) -> Array:
        whole = residues(p, 2 * rows + 1, 2 * columns + 1, seed=seed)
        v = data.draw(
            st.sampled_from([whole[1 : 2 * rows : 2, :columns], whole[:rows, 1 : 2 * columns : 2], whole[rows - 1 :: -1, :columns]])
        )
        v = np.asfortranarray(v) if data.draw(st.booleans()) else v
        v.flags.writeable = False
        return v

    a, b = laid_out(m, k, seed), laid_out(k, n, seed + 1)
    np.testing.assert_array_equal(sr.matmul(a, b, sr.modular(p)), expected(p, a, b))


@pytest.mark.parametrize("p", [7, 65521, 2**31 - 1])
def test_stacks_vectors_and_places(p: int) -> None:
    modulo = sr.modular(p)
    a, b = residues(p, 3, 1, 20, 30), residues(p, 4, 30, 25, seed=1)
    np.testing.assert_array_equal(sr.matmul(a, b, modulo), expected(p, a, b))
    np.testing.assert_array_equal(sr.matmul(a[0, 0], b, modulo), expected(p, a[0, 0], b))
    row, column = residues(p, 300), residues(p, 300, seed=2)
    square = residues(p, 300, 300, seed=3)
    assert sr.matmul(row, column, modulo) == expected(p, row, column)
    np.testing.assert_array_equal(sr.matmul(square, column, modulo), expected(p, square, column))
    np.testing.assert_array_equal(sr.matmul(row, square, modulo), expected(p, row, square))
    for place in ("a", "b", "c"):
        mine = {"a": square.copy(), "b": residues(p, 300, 300, seed=4), "c": residues(p, 300, 300, seed=5)}
        wanted = expected(p, mine["a"], mine["b"], mine["c"])
        found = sr.matmul(mine["a"], mine["b"], modulo, c=mine["c"], out=mine[place])
        assert found is mine[place]
        np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize(("p", "dtype"), [
    (7, "uint8"), (251, "uint8"), (7, "int16"), (32749, "int16"), (65521, "uint16"), (65521, "int32"), (2**31 - 1, "int32"),
    (2**31 - 1, "uint32"), (2**31 - 1, "uint64"), (127, "int8"),
])  # fmt: skip
@pytest.mark.parametrize("n", [3, 40, 200])
def test_dtypes(p: int, dtype: str, n: int) -> None:
    a, b = residues(p, n, n).astype(dtype), residues(p, n, n, seed=1).astype(dtype)
    product = sr.matmul(a, b, sr.modular(p))
    assert product.dtype == ("int16" if dtype == "int8" else dtype)
    np.testing.assert_array_equal(product, expected(p, a, b))


def test_callables_of_users_are_recognized() -> None:
    p = 65521
    own = sr.Semiring("own", lambda a, b: (b + a) % p, lambda a, b: b * a % p, 0, 1)
    assert own.program.modulus == p
    assert own.carrier.contains(p - 1)
    assert not own.carrier.contains(p)
    a = residues(p, 90, 90).astype("int32")
    np.testing.assert_array_equal(sr.matmul(a, a, own), expected(p, a, a))
    two = sr.Semiring("two", lambda a, b: (a + b) % 5, lambda a, b: a * b % 7, 0, 1)
    wide = sr.Semiring("wide", lambda a, b: (a + b) % 7, lambda a, b: a * b % 7, 0, 1, domain=(-7, 7))
    assert two.program.modulus is None
    assert sr.matmul([[-7]], [[3]], wide).item() == 0


@pytest.mark.parametrize("p", [7, 65521, 2**31 - 1])
@pytest.mark.parametrize("n", [2, 30, 200])
def test_refusals(p: int, n: int) -> None:
    a = residues(p, n, n)
    for wrong in (p, -1, 2**40):
        bad = a.copy()
        bad[n - 1, n - 2] = wrong
        for operands in ((bad, a), (a, bad)):
            with pytest.raises(sr.DomainError, match=rf"{'a' if operands[0] is bad else 'b'}\[{n - 1}, {n - 2}\] = {wrong}"):
                sr.matmul(*operands, sr.modular(p))
        sr.matmul(bad, a, sr.modular(p), check=False)  # meaningless
    with pytest.raises(sr.LawError, match="witness"):
        sr.matmul(a, a, sr.modular(p), witness=True)
    with pytest.raises(sr.DTypeError, match="use an integer dtype"):
        sr.matmul(a.astype(float), a, sr.modular(p))


@pytest.mark.parametrize("p", [0, 1, -7, 2**31, True, 7.0, "7"])
def test_moduli(p: Any) -> None:
    with pytest.raises(sr.SemiringError, match="from 2 to"):
        sr.modular(p)


@pytest.mark.parametrize("p", MODULI)
def test_laws(p: int) -> None:
    assert sr.check(sr.modular(p))
    assert sr.check(sr.modular(p), object)
    assert (sr.modular(p).star is not None) == (p in PRIMES)
    assert sr.modular(p) == sr.modular(p)


@pytest.mark.parametrize("p", [65521, 2**31 - 1])
@pytest.mark.parametrize("n", [1, 5, 150, 300])
def test_closures_are_inverses(p: int, n: int) -> None:
    a = residues(p, n, n, seed=5)
    closed, one = sr.closure(a, sr.modular(p)), np.eye(n, dtype=np.int64)
    np.testing.assert_array_equal(expected(p, closed, (one - a) % p), one)
    if n == 5:
        exact = sr.closure(a.astype(object), sr.modular(p))
        np.testing.assert_array_equal(exact, closed)
        assert all(type(v) is int for v in exact.ravel())


def test_closures_that_elimination_does_not_find() -> None:
    with pytest.raises(sr.DivergenceError, match="modulo-7"):
        sr.closure(np.array([[1, 1], [1, 0]]), sr.modular(7))
    with pytest.raises(sr.DivergenceError, match="modulo-6"):
        sr.closure(np.array([[0, 1], [1, 0]]), sr.modular(6))
    np.testing.assert_array_equal(sr.closure(np.array([[0, 5], [0, 0]]), sr.modular(6)), [[1, 5], [0, 1]])
    with pytest.raises(sr.OverflowRiskError, match="use int64"):
        sr.closure(np.array([[0, 5], [2, 0]], "int32"), sr.modular(65521))


def test_powers_chains_objects_and_sparse_matrices() -> None:
    scipy = pytest.importorskip("scipy.sparse")
    p = 1048573
    modulo, a = sr.modular(p), residues(p, 40, 40)
    np.testing.assert_array_equal(sr.power(a, 3, modulo), expected(p, expected(p, a, a), a))
    np.testing.assert_array_equal(sr.multi_dot([a, a, a], modulo), expected(p, expected(p, a, a), a))
    np.testing.assert_array_equal(sr.matmul(a.astype(object), a.astype(object), modulo), expected(p, a, a))
    sparse = scipy.csr_array(np.where(a % 5 == 0, a, 0))
    np.testing.assert_array_equal(sr.matmul(sparse, sparse, modulo).toarray(), expected(p, sparse.toarray(), sparse.toarray()))
    np.testing.assert_array_equal(sr.matmul(sparse, a, modulo), expected(p, sparse.toarray(), a))
    assert math.prod(sr.scan(a, modulo, residues(p, 40), lengths=2).shape) == 120


@pytest.mark.gpu
@pytest.mark.parametrize("p", MODULI)
@pytest.mark.parametrize(("m", "k", "n"), [(3, 5, 2), (130, 67, 61), (500, 700, 600)])
def test_products_on_a_gpu(p: int, m: int, k: int, n: int) -> None:
    cupy = pytest.importorskip("cupy")
    a, b, c = residues(p, m, k), residues(p, k, n, seed=1), residues(p, m, n, seed=2)
    plain = sr.matmul(a, b, sr.modular(p), device="cpu")
    dtypes = ["int64", *(["int32"] if p > 2 else ["uint8"])]
    for dtype in dtypes:
        x, y, z = (cupy.asarray(v.astype(dtype)) for v in (a, b, c))
        for _ in range(3):  # the second call may launch again
            found = sr.matmul(x, y, sr.modular(p))
            assert found.dtype == dtype
            np.testing.assert_array_equal(found.get(), plain)
        np.testing.assert_array_equal(sr.matmul(x, y, sr.modular(p), c=z).get(), (plain + c) % p)
        np.testing.assert_array_equal(sr.matmul(x, cupy.asfortranarray(y), sr.modular(p)).get(), plain)
    np.testing.assert_array_equal(sr.matmul(a, b, sr.modular(p), device="cuda"), plain)


@pytest.mark.gpu
def test_rehearsals_change_nothing_on_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first product of a kind is rehearsed, on memory with any numbers, to compile its kernels."""
    cupy = pytest.importorskip("cupy")

    def rehearsed(work: Any, rehearsal: Any = None) -> Any:
        compiler.rehearse(rehearsal or work)
        return work()

    monkeypatch.setattr(compiler, "run", rehearsed)
    p = 1073741789
    modulo, (a, b, c), square = sr.modular(p), [residues(p, *shape) for shape in ((32, 9), (9, 1), (32, 1))], residues(p, 70, 70)
    for size in (1, 32, 70, 70 * 70):
        [cupy.ones(size) for _ in range(9)].clear()  # memory that the pool lends again
    x, y, z = map(cupy.asarray, (a, b, c))
    np.testing.assert_array_equal(sr.matmul(x, y, modulo, c=z).get(), expected(p, a, b, c))
    np.testing.assert_array_equal(sr.closure(cupy.asarray(square), modulo).get(), sr.closure(square, modulo))


@pytest.mark.gpu
def test_stacks_overlaps_closures_and_refusals_on_a_gpu() -> None:
    cupy = pytest.importorskip("cupy")
    for p in (7, 65521, 2**31 - 1):
        modulo = sr.modular(p)
        a, b = residues(p, 3, 1, 200, 300), residues(p, 4, 300, 250, seed=1)
        np.testing.assert_array_equal(sr.matmul(cupy.asarray(a), cupy.asarray(b), modulo).get(), sr.matmul(a, b, modulo))
        square = residues(p, 600, 600)
        x = cupy.asarray(square)
        sr.matmul(x, x, modulo, out=x)
        np.testing.assert_array_equal(x.get(), sr.matmul(square, square, modulo))
        for bad in (p, -1):
            x[599, 3] = bad
            for _ in range(2):
                with pytest.raises(sr.DomainError):
                    sr.matmul(x, x, modulo)
    for n, p, dtype in ((40, 65521, "int64"), (300, 65521, "int64"), (1500, 65521, "int64"), (40, 2**31 - 1, "uint64")):
        a = residues(p, n, n, seed=5).astype(dtype)
        for _ in range(2):
            np.testing.assert_array_equal(sr.closure(cupy.asarray(a), sr.modular(p)).get(), sr.closure(a, sr.modular(p)))
