"""Bit-packed Boolean matrices: the same as bytes, at every boundary of words, strips and groups."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from semiring.algebra.catalogue import BOOLEAN, GF2
from semiring.algebra.definition import Semiring
from semiring.kernels.cpu.boolean import GROUP, STRIP, BooleanEngine
from semiring.kernels.cpu.engine import CpuEngine
from semiring.kernels.engine import Block, PackedBlock
from semiring.kernels.machine import UNPACKED
from semiring.kernels.select import engine_for
from semiring.product import matmul
from semiring.solve import closure
from tests.kernels.samples import Array, examples

BOOL = (np.dtype(bool),)
SIDES = (0, 1, 7, 8, 9, GROUP - 1, GROUP, GROUP + 1, 100, STRIP - 1, STRIP, STRIP + 1, 2 * STRIP, 2 * STRIP + 3)


def product(a: Array, b: Array) -> Array:
    return np.asarray(a.astype(np.float32) @ b.astype(np.float32) > 0)


def stored(engine: BooleanEngine, A: Block) -> Array:
    out = np.empty((*A.batch, *A.shape), bool)
    engine.store(A, (out,))
    return out


@examples(60)
@given(
    m=st.sampled_from(SIDES),
    n=st.sampled_from(SIDES),
    k=st.sampled_from(SIDES),
    threads=st.sampled_from([1, 2, 3]),
    seed=st.integers(0, 99),
)
def test_products(m: int, n: int, k: int, threads: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    density = rng.choice([0.001, 0.05, 0.5, 1])
    a, b, c = (rng.random(shape) < density for shape in ((m, k), (k, n), (m, n)))
    np.testing.assert_array_equal(matmul(a, b, BOOLEAN, threads=threads), product(a, b))
    np.testing.assert_array_equal(matmul(a, b, BOOLEAN, c=c, threads=threads), product(a, b) | c)


def test_more_rows_than_a_task() -> None:
    rng = np.random.default_rng(0)
    a, b = rng.random((4500, 70)) < 0.02, rng.random((70, 700)) < 0.02
    for threads in (1, 2, 5):
        np.testing.assert_array_equal(matmul(a, b, BOOLEAN, threads=threads), product(a, b))


def test_the_plain_engine_agrees() -> None:
    rng = np.random.default_rng(0)
    a, b = rng.random((2, 150, 150)) < 0.05
    C = Block((np.empty((150, 150), bool),))
    CpuEngine(BOOLEAN, BOOL).multiply(Block((a,)), Block((b,)), C)
    np.testing.assert_array_equal(C.values[0], matmul(a, b, BOOLEAN))
    values, witness = matmul(a, b, BOOLEAN, witness=True)
    np.testing.assert_array_equal(values, matmul(a, b, BOOLEAN))
    both = a[:, :, None] & b[None]
    np.testing.assert_array_equal(witness, np.where(both.any(axis=1), both.argmax(axis=1), -1))


@pytest.mark.parametrize("n", [5, UNPACKED, UNPACKED + 1])
@pytest.mark.parametrize("batch", [(3,), (2, 2), (0,)])
def test_batches(batch: tuple[int, ...], n: int) -> None:
    """Matrices that go one to a lane as bytes, and packed ones, whose rows are converted together."""
    rng = np.random.default_rng(0)
    a, b, c = (rng.random((*batch, n, n)) < 1.8 / n for _ in "abc")
    np.testing.assert_array_equal(matmul(a, b, BOOLEAN), product(a, b))
    np.testing.assert_array_equal(matmul(a, b[:1], BOOLEAN), product(a, b[:1]))
    np.testing.assert_array_equal(matmul(a, b, BOOLEAN, c=c), product(a, b) | c)
    expected = product(a, b) | a
    assert matmul(a, b, BOOLEAN, c=a, out=a) is a
    np.testing.assert_array_equal(a, expected)


@pytest.mark.parametrize("n", [5, UNPACKED, UNPACKED + 1])
@pytest.mark.parametrize("axes", [(0, 1, 2), (0, 2, 1), (1, 0, 2), (2, 1, 0)])
def test_batches_that_lie_otherwise(axes: tuple[int, int, int], n: int) -> None:
    """Operands, `out` and closures of stacks that are views: by powers of the matrices of floats."""
    rng = np.random.default_rng(1)
    sizes = np.empty(3, int)
    sizes[list(axes)] = 3, n, n
    a, out = (rng.random(tuple(sizes)) < 1.2 / n).transpose(axes), np.empty(tuple(sizes), bool).transpose(axes)
    assert matmul(a, a, BOOLEAN, out=out) is out
    np.testing.assert_array_equal(out, product(a, a))
    walks = a
    for _ in range(n.bit_length()):
        walks = walks | product(walks, walks)
    np.testing.assert_array_equal(closure(a, BOOLEAN, reflexive=False), walks)
    np.testing.assert_array_equal(closure(a, BOOLEAN), walks | np.eye(n, dtype=bool))


@pytest.mark.parametrize(
    "layout", [np.ascontiguousarray, np.asfortranarray, lambda x: x[::-1, ::-1], lambda x: np.repeat(x, 2, axis=1)[:, ::2]]
)
def test_layouts_are_packed_and_unpacked(layout: Any) -> None:
    rng = np.random.default_rng(0)
    engine = BooleanEngine(BOOLEAN, BOOL, 2)
    a = layout(rng.random((600, 530)) < 0.5)
    a.flags.writeable = False
    A = engine.load((a,))
    assert A.shape == (600, 530)
    np.testing.assert_array_equal(stored(engine, A), a)
    out = layout(np.zeros((600, 530), bool))
    engine.store(A, (out,))
    np.testing.assert_array_equal(out, a)


@examples(40)
@given(
    n=st.sampled_from([STRIP, STRIP + 1, 2 * STRIP, 2 * STRIP + 100]),
    corners=st.tuples(*[st.integers(0, 2)] * 3),
    fresh=st.booleans(),
    seed=st.integers(0, 99),
)
def test_blocks_of_one_matrix(n: int, corners: tuple[int, int, int], fresh: bool, seed: int) -> None:
    """A, B and C are blocks between multiples of the alignment, and may be the same ones."""
    whole = np.random.default_rng(seed).random((n, n)) < 2 / n
    engine = BooleanEngine(BOOLEAN, BOOL, 2)
    cuts = [*range(0, n, engine.alignment), n]
    pieces = [slice(*cut) for cut in itertools.pairwise(cuts)]
    rows, inner, columns = (pieces[i % len(pieces)] for i in corners)
    packed = engine.load((whole,))
    A, B, C = packed[rows, inner], packed[inner, columns], packed[rows, columns]
    (engine.multiply if fresh else engine.multiply_add)(A, B, C)
    expected = whole.copy()
    expected[rows, columns] = product(whole[rows, inner], whole[inner, columns]) | (False if fresh else whole[rows, columns])
    np.testing.assert_array_equal(stored(engine, packed), expected)


def test_views_know_their_place() -> None:
    engine = BooleanEngine(BOOLEAN, BOOL)
    A = engine.load((np.zeros((1100, 1100), bool),))
    B = A[512:1024, 1024:1100]
    assert isinstance(B, PackedBlock)
    assert (B.shape, B.row, B.column, B.batch) == ((512, 76), 512, 1024, ())
    assert A[5:3, 1024:512].shape == (0, 0)
    for columns in (slice(1, 1100), slice(0, 100), slice(512, 1000)):
        with pytest.raises(AssertionError):
            A[:, columns]  # it would share words with its neighbour


def test_only_a_boolean_semiring_without_witnesses_is_packed() -> None:
    assert isinstance(engine_for(BOOLEAN, BOOL), BooleanEngine)
    assert isinstance(engine_for(Semiring("any", lambda a, b: a or b, min, False, True), BOOL), BooleanEngine)
    assert isinstance(engine_for(BOOLEAN, BOOL, witness=True), CpuEngine)
    assert isinstance(engine_for(GF2, BOOL), CpuEngine)


@pytest.mark.exhaustive
def test_every_truth_table_is_computed() -> None:
    """⊕ and ⊗ may be any functions of two truth values."""
    rng = np.random.default_rng(0)
    a, b = rng.random((2, 40, 40)) < 0.5
    for table in range(16):

        def combine(x: Any, y: Any, table: int = table) -> Any:
            return bool(table >> (2 * bool(x) + bool(y)) & 1)

        semiring = Semiring("table", lambda x, y: x ^ y, combine, False, True)
        terms = np.array([[bool(table >> i & 1) for i in (0, 1)], [bool(table >> i & 1) for i in (2, 3)]])
        expected = terms[a[:, :, None].astype(int), b[None].astype(int)].sum(axis=1) % 2 == 1
        for device in ("cpu", "reference"):
            np.testing.assert_array_equal(matmul(a, b, semiring, device=device), expected)
