"""Where matrices lie: which share elements, which tasks a product is cut into, and indices that need 64 bits."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from semiring.algebra.catalogue import DISTANCE_COUNT, LOG, MAX_MIN, MIN_PLUS, PLUS_TIMES
from semiring.algebra.definition import Semiring
from semiring.arrays.overlap import layout, matched, overlap, share
from semiring.arrays.pieces import CPU_SCRATCH
from semiring.kernels.cpu.boolean import BitsKernel
from semiring.kernels.cpu.compiler import link
from semiring.kernels.cpu.engine import CpuEngine
from semiring.kernels.cpu.kernels import kernels_for
from semiring.kernels.cpu.launch import tasks_of
from semiring.kernels.engine import Block
from semiring.product import matmul
from tests.kernels.samples import ISAS, Array, name

F4, F8 = np.dtype(np.float32), np.dtype(np.float64)
spans = st.tuples(st.integers(0, 9), st.integers(0, 9)).map(lambda ends: slice(min(ends), max(ends)))


# Overlap.


@settings(max_examples=120)
@given(rows=st.tuples(spans, spans), columns=st.tuples(spans, spans))
def test_blocks_of_one_matrix_share_exactly_what_numpy_says(rows: tuple[slice, slice], columns: tuple[slice, slice]) -> None:
    whole = np.zeros((9, 9), np.float32)
    x, y = (whole[r, c] for r, c in zip(rows, columns, strict=True))
    assert share(layout(x), layout(y)) == overlap(x, y) == np.shares_memory(x, y)


@settings(max_examples=120)
@given(
    offsets=st.tuples(st.integers(0, 40), st.integers(0, 40)),
    shapes=st.tuples(*[st.tuples(st.integers(0, 4), st.integers(0, 4))] * 2),
    strides=st.tuples(*[st.tuples(st.integers(-30, 30), st.integers(-12, 12))] * 2),
    same=st.booleans(),
)
def test_whatever_shares_memory_is_found(offsets: Any, shapes: Any, strides: Any, same: bool) -> None:
    """Any two views of one buffer, of any strides in bytes: never missed, and exact for disjoint rows of one stride."""
    buffer = np.zeros(1000, np.uint8)
    x, y = (
        np.ndarray(shape, F4, buffer, offset=450 + offset, strides=stride)
        for offset, shape, stride in zip(offsets, shapes, (strides[0],) * 2 if same else strides, strict=True)
    )
    found = share(layout(x), layout(y))
    if np.shares_memory(x, y):
        assert found


@settings(max_examples=80)
@given(
    starts=st.tuples(*[st.tuples(st.integers(0, 3), st.integers(0, 4), st.integers(0, 4))] * 2),
    depth=st.integers(1, 3),
    side=st.integers(1, 5),
    steps=st.tuples(*[st.sampled_from([1, -1])] * 2),
)
def test_batches_that_meet_only_in_their_own_places(starts: Any, depth: int, side: int, steps: tuple[int, int]) -> None:
    whole = np.zeros((6, 9, 9))
    x, y = (whole[d : d + depth, i : i + side, j : j + side][::step] for (d, i, j), step in zip(starts, steps, strict=True))
    meets_another = any(np.shares_memory(x[p], y[q]) for p in range(depth) for q in range(depth) if p != q)
    assert not (matched(x, y) and meets_another)
    if x.ctypes.data == y.ctypes.data and x.strides == y.strides:
        assert matched(x, y)


def test_a_broadcast_operand_meets_every_place() -> None:
    whole = np.zeros((3, 4, 4))
    assert not matched(np.broadcast_to(whole[0], (3, 4, 4)), whole)
    assert matched(whole, whole)
    assert matched(whole[:, :2, :2], whole[:, 2:, 2:])
    assert matched(np.zeros((3, 4, 4)), whole)
    assert matched(whole[0], whole[0, ::-1])


# Plans.

TILES = [
    (kernels.tile, kernels.witness_tile, kernels.representation)
    for isa in ISAS
    for semiring, dtypes in ((MIN_PLUS, (F4,)), (PLUS_TIMES, (F8,)), (MAX_MIN, (np.dtype(np.uint8),)), (DISTANCE_COUNT, (F8, F8)))
    for kernels in [kernels_for(semiring, dtypes, isa)]
]


@settings(max_examples=120)
@given(
    m=st.integers(1, 5000),
    n=st.integers(1, 5000),
    k=st.integers(0, 5000),
    threads=st.integers(1, 64),
    tiles=st.sampled_from(TILES),
    hold=st.sampled_from([(False, False), (True, False), (False, True)]),
    witness=st.booleans(),
)
def test_a_plan_covers_each_element_once(m: int, n: int, k: int, threads: int, tiles: Any, hold: tuple[bool, bool], witness: bool) -> None:
    tile, witness_tile, rep = tiles
    tile = witness_tile if witness else tile
    found = tasks_of(m, n, k, tile, rep, threads, hold_a=hold[0], hold_b=hold[1], witness=witness)
    assert 1 <= found.threads <= min(threads, len(found.tiles))
    corners = Counter[tuple[int, int]]()
    area = 0
    for top, bottom, left, right in found.tiles:
        assert 0 <= top < bottom <= m
        assert 0 <= left < right <= n
        assert not hold[0] or (left, right) == (0, n)
        assert not hold[1] or (top, bottom) == (0, m)
        area += (bottom - top) * (right - left)
        for corner in ((top, left), (bottom, right)):
            corners[corner] += 1
        for corner in ((top, right), (bottom, left)):
            corners[corner] -= 1
    # Rectangles of the right area whose corners cancel but for the whole one's are a partition.
    assert area == m * n
    assert {corner: count for corner, count in corners.items() if count} == {(0, 0): 1, (m, n): 1, (0, n): -1, (m, 0): -1}


@settings(max_examples=80)
@given(
    m=st.integers(1, 5000),
    n=st.integers(1, 5000),
    k=st.integers(1, 5000),
    threads=st.sampled_from([1, 2, 8]),
    tiles=st.sampled_from(TILES),
    held=st.tuples(st.booleans(), st.booleans(), st.booleans()).filter(lambda held: not (held[0] and held[1])),
)
def test_scratch_is_limited(m: int, n: int, k: int, threads: int, tiles: Any, held: tuple[bool, bool, bool]) -> None:
    """All workers together: 64 MiB, or 15 % of C if that is more."""
    *hold, witness = held
    tile, witness_tile, rep = tiles
    tile = witness_tile if witness else tile
    found = tasks_of(m, n, k, tile, rep, threads, hold_a=hold[0], hold_b=hold[1], witness=witness)
    size = sum(s.bytes for s in rep.inner)
    needed = sum(found.scratch.values()) * found.threads
    narrow = size * (k + 64) * tile.columns * 2 * threads  # where one panel of all of k is more
    wide = size * tile.depth * (n + tile.columns) * found.threads  # B's panel of a whole row of tasks
    assert needed <= max(64 << 20, 0.15 * m * n * size) + narrow + wide
    assert CPU_SCRATCH <= 32 << 20


@pytest.mark.parametrize("n", [46341, 65537])
@pytest.mark.parametrize("witness", [False, True])
@pytest.mark.parametrize("hold", [(False, False), (True, False), (False, True)])
def test_plans_of_matrices_beyond_two_to_the_31(n: int, witness: bool, hold: tuple[bool, bool]) -> None:
    tile, witness_tile, rep = TILES[0]
    found = tasks_of(n, n, n, witness_tile if witness else tile, rep, 2, hold_a=hold[0], hold_b=hold[1], witness=witness)
    assert sum((bottom - top) * (right - left) for top, bottom, left, right in found.tiles) == n * n
    assert sum(found.scratch.values()) * found.threads <= 0.15 * 4 * n * n
    assert found.tiles[-1][1] == found.tiles[-1][3] == n


# Indices.

KERNELS = [(MIN_PLUS, (F4,)), (MAX_MIN, (F8,)), (MIN_PLUS, (np.dtype(np.int16),)), (LOG, (F4,)), (DISTANCE_COUNT, (F8, np.dtype(np.int64)))]


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize(("semiring", "dtypes"), KERNELS, ids=name)
def test_every_index_has_64_bits(semiring: Semiring, dtypes: Any, isa: str) -> None:
    """Addresses are made of i64 alone; what is narrowed is the witness, a number of a vertex."""
    kernels = kernels_for(semiring, dtypes, isa)
    for function in ("product", "close", "eliminate", *(("product_witness", "close_witness") if semiring.selects else ())):
        check_indices(kernels.ir(function))


def test_bit_kernels_have_indices_of_64_bits() -> None:
    check_indices(link(BitsKernel().functions()))


def check_indices(ir: str) -> None:
    indices = re.findall(r"getelementptr inbounds .*?, ptr [^,]+, (\w+) ", ir)
    assert indices
    assert set(indices) == {"i64"}
    assert set(re.findall(r"phi (i\d+) \[\d+, %entry\]", ir)) <= {"i64"}


def test_layouts_of_matrices_beyond_two_to_the_31() -> None:
    """Views of one element, with the strides of a matrix that no memory holds."""
    n = 65537
    whole = np.lib.stride_tricks.as_strided(np.zeros(1, np.float32), (n, n), (4 * n, 4), writeable=False)
    far = whole[n - 10 :, n - 10 :]
    assert layout(far).address - layout(whole).address == 4 * (n * (n - 10) + n - 10)
    assert not share(layout(whole[: n // 2]), layout(whole[n // 2 :]))
    assert not share(layout(whole[:, : n // 2]), layout(whole[:, n // 2 :]))
    assert share(layout(whole), layout(far))
    block = Block((whole,))[n - 10 :, n - 10 :]
    assert (block.row, block.column, block.shape) == (n - 10, n - 10, (10, 10))


def test_a_thin_operand_that_crosses_two_to_the_31_bytes() -> None:
    """Three rows, 2.1 GB apart in an untouched mapping, as A, as B and as C."""
    gap = 2**31 + 4096
    try:
        pages = np.zeros(2 * gap + 4096, np.uint8)  # only the pages that are touched take memory
    except MemoryError:
        pytest.skip("no address space")
    far: Array = np.ndarray((3, 100), np.uint8, pages, strides=(gap, 1))
    rng = np.random.default_rng(0)
    far[...] = rng.integers(0, 99, far.shape)
    near, b, row = far.copy(), rng.integers(0, 99, (100, 70)).astype(np.uint8), rng.integers(0, 99, (5, 3)).astype(np.uint8)
    np.testing.assert_array_equal(matmul(far, b, MAX_MIN, witness=True).values, matmul(near, b, MAX_MIN))
    np.testing.assert_array_equal(matmul(row, far, MAX_MIN, witness=True).witness, matmul(row, near, MAX_MIN, witness=True).witness)
    engine = CpuEngine(MAX_MIN, (far.dtype,))
    expected = matmul(near, b[:, :3], MAX_MIN, c=near[:, :3])
    engine.multiply_add(Block((far,)), Block((b[:, :3],)), Block((far[:, :3],)))
    np.testing.assert_array_equal(far[:, :3], expected)


# Blocks.


@settings(max_examples=40)
@given(rows=st.tuples(st.integers(-12, 12), st.integers(-12, 12)), columns=st.tuples(st.integers(0, 12), st.integers(0, 12)))
def test_blocks_are_numpys_slices(rows: tuple[int, int], columns: tuple[int, int]) -> None:
    values = np.arange(2 * 90).reshape(2, 9, 10)
    block = Block((values, values + 1), values.astype(np.int32), row=100, column=200)
    view = block[slice(*rows), slice(*columns)]
    expected = values[:, slice(*rows), slice(*columns)]
    assert view.shape == expected.shape[1:]
    assert view.batch == (2,)
    np.testing.assert_array_equal(view.values[0], expected)
    np.testing.assert_array_equal(view.values[1], expected + 1)
    np.testing.assert_array_equal(view.via, expected)
    if expected.size:
        assert values[0, view.row - 100, view.column - 200] == expected[0, 0, 0]
        assert np.shares_memory(view.values[0], values)
