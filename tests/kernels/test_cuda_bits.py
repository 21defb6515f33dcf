"""The Boolean engine on a GPU: products and closures of bits, at every boundary of words, granules and tiles."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import semiring as sr
from semiring.algebra.catalogue import BOOLEAN
from semiring.kernels.cuda import boolean
from semiring.kernels.engine import Block
from semiring.kernels.hardware import device
from semiring.kernels.select import engine_for
from tests.kernels.samples import Array

cupy = pytest.importorskip("cupy")
pytestmark = pytest.mark.gpu

BOOL = (np.dtype(bool),)
SIDES = (0, 1, 2, 31, 64, 65, 127, 128, 129, 257, 1000, 1025)
SHAPES = [
    (0, 5, 3), (5, 0, 3), (4, 3, 0), (1, 1, 1), (1, 300, 2000), (300, 1, 33), (31, 33, 32), (65, 129, 127), (127, 255, 1023),
    (128, 256, 1024), (129, 257, 1025), (255, 128, 1), (1, 1025, 128), (1000, 70, 513), (257, 1000, 129),
    (513, 769, 3000), (2100, 2049, 300),
]  # fmt: skip
TILES = tuple(dict.fromkeys(tile for arch in (90, 100) for tile in boolean.candidate_bit_tiles(arch)))


def engine() -> Any:
    from semiring.kernels.cuda.boolean import CudaBooleanEngine

    found = engine_for(BOOLEAN, BOOL, "cuda:0")
    assert isinstance(found, CudaBooleanEngine)
    return found


@pytest.fixture(params=TILES, ids=lambda tile: f"{tile.rows}x{tile.columns}{'' if tile.tensor else ' by logic'}")
def tiled(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Any:
    """An engine whose products have one tile; logic computes on every GPU."""
    gpu, tile = engine(), request.param
    if tile.tensor and tile not in boolean.candidate_bit_tiles(device(gpu.number).arch):
        pytest.skip("no such tensor cores")
    monkeypatch.setattr("semiring.kernels.cuda.boolean.choose_bit_tile", lambda *_: tile)
    return gpu


def product(a: Array, b: Array) -> Array:
    return np.asarray(a.astype(np.float32) @ b.astype(np.float32) > 0)


def plus(a: Array) -> Array:
    """A ∪ A² ∪ …, by squaring."""
    reached, before = a.copy(), np.zeros_like(a)
    while (reached != before).any():
        before, reached = reached, reached | product(reached, reached)
    return reached


def stored(gpu: Any, A: Block) -> Array:
    out = cupy.ones((len(A.values[0]), *A.shape), bool)
    gpu.store(A, (out,))
    return np.asarray(out.get())


def test_products(tiled: Any) -> None:
    rng = np.random.default_rng(0)
    for m, n, k in SHAPES:
        density = rng.choice([0.001, 0.05, 0.5])
        a, b, c = (rng.random(shape) < density for shape in ((m, k), (k, n), (m, n)))
        A, B = (tiled.load((cupy.asarray(x),), owned=False) for x in (a, b))
        for method, old in (("multiply", False), ("multiply_add", c)):
            C = tiled.load((cupy.asarray(c),))
            getattr(tiled, method)(A, B, C)
            np.testing.assert_array_equal(stored(tiled, C)[0], product(a, b) | old, str((m, n, k, method)))
            padding = C.values[0].view(np.uint8).get()[..., -(-n // 8) :]
            assert not padding.any()


@pytest.mark.parametrize("n", SIDES)
@pytest.mark.parametrize("reflexive", [False, True])
def test_closures(n: int, reflexive: bool) -> None:
    csgraph = pytest.importorskip("scipy.sparse.csgraph")
    for edges in (0.3, 1, 2, 5):
        a = np.random.default_rng(n).random((n, n)) < edges / max(n, 1)
        given = found = cupy.asarray(a)
        expected = plus(a) | (np.eye(n, dtype=bool) & reflexive)
        for method in ("auto", "blocked", "iterative"):
            for _ in range(3):  # as it is, recorded, and played again
                found = sr.transitive_closure(given, reflexive=reflexive, method=method)
                assert isinstance(found, cupy.ndarray)
                np.testing.assert_array_equal(found.get(), expected)
        np.testing.assert_array_equal(given.get(), a)
        if n:
            _, label = csgraph.connected_components(a, connection="strong")
            both = found.get() & found.get().T
            np.fill_diagonal(both, True)
            np.testing.assert_array_equal(both, label[:, None] == label)


def test_large_closures() -> None:
    """With tiles for large products in the recursion."""
    n = 3137
    for edges in (0.9, 1.1, 2):
        a = np.random.default_rng(n).random((n, n)) < edges / n
        expected = sr.transitive_closure(a)
        for _ in range(3):  # as it is, recorded, and played again
            np.testing.assert_array_equal(sr.transitive_closure(cupy.asarray(a)).get(), expected)


@pytest.mark.parametrize("n", [1, 32, 33, 127, 128, 129, 256, 300, 511, 512])
@pytest.mark.parametrize("copies", [1, 4])
def test_pivot_blocks(n: int, copies: int) -> None:
    """A cluster of thread blocks divides each of few large ones, but not of many."""
    rng = np.random.default_rng(n)
    a = np.stack([rng.random((n, n)) < edges / n for edges in (0.5, 1, 1.5, 3)] + [np.eye(n, k=1, dtype=bool), np.eye(n, k=-1, dtype=bool)])
    a = np.concatenate([a] * copies)
    for method, expected in (("close", False), ("eliminate", np.eye(n, dtype=bool))):
        gpu = engine()
        A = gpu.load((cupy.asarray(a),))
        getattr(gpu, method)(A)
        gpu.verify()
        for found, one in zip(stored(gpu, A), a, strict=True):
            np.testing.assert_array_equal(found, plus(one) | expected)


@pytest.mark.parametrize("cuts", [((0, 128), (128, 384), (384, 500)), ((0, 640), (256, 1300), (0, 1300))])
def test_blocks_of_one_matrix(tiled: Any, cuts: tuple[tuple[int, int], ...]) -> None:
    """A, B and C are blocks between multiples of the alignment, and may be the same ones, or overlap: old values are read."""
    rng, n = np.random.default_rng(1), cuts[-1][1]
    for rows, inner, columns in itertools.product([slice(*cut) for cut in cuts], repeat=3):
        for fresh in (True, False):
            whole = rng.random((2, n, n)) < 2 / n
            packed = tiled.load((cupy.asarray(whole),))
            A, B, C = packed[rows, inner], packed[inner, columns], packed[rows, columns]
            (tiled.multiply if fresh else tiled.multiply_add)(A, B, C)
            expected = whole.copy()
            old = False if fresh else whole[:, rows, columns]
            expected[:, rows, columns] = product(whole[:, rows, inner], whole[:, inner, columns]) | old
            np.testing.assert_array_equal(stored(tiled, packed), expected)


@pytest.mark.parametrize("layout", ["C", "F", "reversed", "every second", "aligned", "shifted", "read as bytes"])
def test_layouts_are_packed_and_unpacked(layout: str) -> None:
    a = np.random.default_rng(2).random((3, 61, 2100)) < 0.5
    given = cupy.asarray(a)
    match layout:
        case "F":
            given = cupy.asfortranarray(given)
        case "reversed":
            given = given[::-1, ::-1, ::-1]
        case "every second":
            given = cupy.repeat(given, 2, axis=2)[:, :, ::2]
        case "aligned":
            wide = cupy.zeros((3, 61, 2240), bool)
            wide[:, :, 64:2164] = given
            given = wide[:, :, 64:2164]
        case "shifted":
            wide = cupy.zeros((3, 61, 2101), bool)
            wide[:, :, 1:] = given
            given = wide[:, :, 1:]
        case "read as bytes":
            given = (given.view(np.uint8) * np.uint8(6)).view(bool)  # any byte but 0 is true
    expected = (given.view(np.uint8) if layout == "read as bytes" else given).get() != 0
    gpu = engine()
    A = gpu.load((given,), owned=False)
    np.testing.assert_array_equal(stored(gpu, A), expected)
    if layout != "read as bytes":
        given[...] = False
        gpu.store(A, (given,))
        np.testing.assert_array_equal(given.get(), expected)
    four = given.reshape(1, 3, 61, 2100)[:, :, :, 3:]
    gpu.store(gpu.load((four,)), (four,))
    np.testing.assert_array_equal(four.get() != 0, expected[None, :, :, 3:])


def test_closures_of_views_leave_them_alone() -> None:
    a = np.random.default_rng(6).random((2, 300, 620)) < 0.003
    whole = cupy.asarray(a)
    for view in (np.s_[0, :, :300], np.s_[1, ::-1, 610:10:-2], np.s_[:, 40:300, 100:360]):
        for given, here in ((whole[view], a[view]), (whole[view].swapaxes(-1, -2), a[view].swapaxes(-1, -2))):
            found = sr.transitive_closure(given)
            assert found.flags.c_contiguous
            np.testing.assert_array_equal(found.get(), plus(here))
    np.testing.assert_array_equal(whole.get(), a)


@pytest.mark.usefixtures("tiled")
def test_batches() -> None:
    rng = np.random.default_rng(3)
    for shape in ((7, 100, 100), (2, 3, 129, 129), (0, 5, 5), (3, 0, 0), (70000, 3, 3)):
        a, b = (rng.random(shape) < 1.5 / max(shape[-1], 1) for _ in "ab")
        given, other = cupy.asarray(a), cupy.asarray(b)
        np.testing.assert_array_equal(sr.matmul(given, other, BOOLEAN).get(), product(a, b))
        if len(a):
            np.testing.assert_array_equal(sr.matmul(given, other[:1], BOOLEAN, c=given).get(), product(a, b[:1]) | a)
        np.testing.assert_array_equal(sr.transitive_closure(given).get(), plus(a))


def test_the_public_product() -> None:
    rng = np.random.default_rng(4)
    a, b = rng.random((300, 2000)) < 0.01, rng.random((2000, 150)) < 0.01
    given, other = cupy.asarray(a), cupy.asarray(b)
    np.testing.assert_array_equal(sr.matmul(given, other, BOOLEAN).get(), product(a, b))
    np.testing.assert_array_equal(sr.matmul(other.T, given.T, BOOLEAN).get(), product(a, b).T)
    np.testing.assert_array_equal(sr.matmul(given[3], other, BOOLEAN).get(), product(a[3], b))
    out = cupy.asfortranarray(cupy.ones((300, 150), bool))
    assert sr.matmul(given, other, BOOLEAN, out=out) is out
    np.testing.assert_array_equal(out.get(), product(a, b))
    values, witness = sr.matmul(given, other, BOOLEAN, witness=True)
    np.testing.assert_array_equal(values.get(), product(a, b))
    np.testing.assert_array_equal(witness.get() >= 0, product(a, b))


def test_streams() -> None:
    a = np.random.default_rng(5).random((1300, 1300)) < 0.001
    expected = plus(a)
    streams = [cupy.cuda.Stream(non_blocking=True) for _ in range(2)]
    given = [cupy.asarray(a) for _ in streams]
    cupy.cuda.Device().synchronize()
    for _ in range(3):
        found = []
        for stream, one in zip(streams, given, strict=True):
            with stream:
                found.append(sr.transitive_closure(one))
        for stream in streams:
            stream.synchronize()
        for one in found:
            np.testing.assert_array_equal(one.get(), expected)
