"""Products on a GPU that are launched again: with witnesses, c and out, over log Σ exp, of CuPy's arrays and PyTorch's tensors."""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import semiring as sr
from semiring.execution import relaunch

pytestmark = pytest.mark.gpu

SIZES = [(5, 7, 3), (64, 64, 64), (65, 300, 130), (256, 256, 256), (700, 640, 520)]
LIBRARIES = ["cupy", "torch"]


def sender(library: str) -> tuple[Callable[[Any], Any], Callable[[Any], Any]]:
    """Functions that copy arrays to the GPU and back."""
    if library == "cupy":
        cupy = importlib.import_module("cupy")
        return cupy.asarray, cupy.asnumpy
    torch = pytest.importorskip("torch")
    return lambda v: torch.from_numpy(np.ascontiguousarray(v)).cuda(), lambda v: v.cpu().numpy()


def drawn(m: int, n: int, seed: int, *, low: int = 0) -> Any:
    """Integers, so that sums are exact, and some ∞."""
    rng = np.random.default_rng(seed)
    return np.where(rng.random((m, n)) < 0.2, np.inf, rng.integers(low, 50, (m, n)))


def counted(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether each product was launched again."""
    found: list[bool] = []
    again = relaunch.multiply_again

    def noted(*given: Any) -> Any:
        result = again(*given)
        found.append(result is not None)
        return result

    monkeypatch.setattr("semiring.product.multiply_again", noted)
    return found


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("witness", [False, True])
@pytest.mark.parametrize("more", ["", "c", "out", "c, out", "c is out"])
def test_min_plus(library: str, dtype: Any, witness: bool, more: str, monkeypatch: pytest.MonkeyPatch) -> None:
    send, back = sender(library)
    again = counted(monkeypatch)
    for m, k, n in SIZES:
        for turn in range(4):
            a, b, c = (drawn(*shape, 7 * turn + i, low=-9 * (turn == 3)).astype(dtype) for i, shape in enumerate(((m, k), (k, n), (m, n))))
            old = c if "c" in more.split(", ")[0] else None
            want = sr.matmul(a, b, sr.MIN_PLUS, c=old, witness=witness, device="cpu")
            place = send(c)
            given = None if old is None else place if more == "c is out" else send(c)
            out = None if "out" not in more else place if more == "c is out" else send(np.full((m, n), 7, dtype))
            x, y = send(a), send(b)
            found = sr.matmul(x, y, sr.MIN_PLUS, c=given, out=out, witness=witness)
            values, winners = found if witness else (found, None)
            expected, expected_winners = want if witness else (want, None)
            assert out is None or values is out
            np.testing.assert_array_equal(back(values), expected)
            if witness:
                np.testing.assert_array_equal(back(winners), expected_winners)
            np.testing.assert_array_equal(back(x), a)
            if given is not None and more != "c is out":
                np.testing.assert_array_equal(back(given), c)
        assert again[-2], (m, k, n)  # of nonnegative numbers, for the third time


def integers(m: int, n: int, dtype: Any, semiring: str, seed: int, *, low: int = 0, most: int = 50) -> Any:
    """Integers with some of the semiring's own infinity, which ends the dtype's range."""
    rng, info = np.random.default_rng(seed), np.iinfo(dtype)
    sign, infinity = (1, info.max) if semiring == "min-plus" else (-1, info.min)
    return np.where(rng.random((m, n)) < 0.2, infinity, sign * rng.integers(low, most, (m, n))).astype(dtype)


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("dtype", [np.int16, np.int32, np.int64])
@pytest.mark.parametrize("semiring", ["min-plus", "max-plus"])
@pytest.mark.parametrize("witness", [False, True])
@pytest.mark.parametrize("more", ["", "c", "out"])
def test_integers(library: str, dtype: Any, semiring: str, witness: bool, more: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The third turn has elements that pull infinity back, and all turns have infinities in a, b and c."""
    send, back = sender(library)
    again = counted(monkeypatch)
    for m, k, n in SIZES:
        for turn in range(4):
            shapes = enumerate(((m, k), (k, n), (m, n)))
            a, b, c = (integers(*shape, dtype, semiring, 7 * turn + i, low=-9 * (turn == 2)) for i, shape in shapes)
            want = sr.matmul(a, b, semiring, c=c if more == "c" else None, witness=witness, device="cpu")
            out = send(np.full((m, n), 7, dtype)) if more == "out" else None
            x, y, old = send(a), send(b), send(c)
            found = sr.matmul(x, y, semiring, c=old if more == "c" else None, out=out, witness=witness)
            for ours, theirs in zip(found, want, strict=True) if witness else [(found, want)]:
                np.testing.assert_array_equal(back(ours), theirs)
            for ours, theirs in ((x, a), (y, b), (old, c)):
                np.testing.assert_array_equal(back(ours), theirs)
        assert again[-2:] == [True, True], (m, k, n)


@pytest.mark.parametrize(("count", "n"), [(3, 70), (1, 40)])
def test_stacks_and_views_of_integers(count: int, n: int) -> None:
    cupy = importlib.import_module("cupy")
    a, b = (np.stack([integers(n, n, np.int32, "min-plus", seed + i) for i in range(count)]) for seed in (0, 10))
    for x, y in ((a, b), (a[0], b), (a, b[0]), (a.transpose(0, 2, 1), b[:, ::-1]), (a[:, :33], b[:, :, ::2]), (a[0], b[0, :, 4])):
        for _ in range(3):
            found = sr.matmul(cupy.asarray(x), cupy.asarray(y), sr.MIN_PLUS)
            np.testing.assert_array_equal(cupy.asnumpy(found), sr.matmul(x, y, sr.MIN_PLUS, device="cpu"))


def test_integers_that_could_overflow_are_refused_again() -> None:
    cupy = importlib.import_module("cupy")
    for turn in range(4):
        a = integers(200, 200, np.int32, "min-plus", turn)
        if turn == 3:
            a[5, 6] = 2**30 - 3
        x, out = cupy.asarray(a), cupy.full((200, 200), 7, np.int32)
        if turn < 3:
            assert sr.matmul(x, x, sr.MIN_PLUS, out=out) is out
            continue
        with pytest.raises(sr.OverflowRiskError):
            sr.matmul(x, x, sr.MIN_PLUS, out=out)
        np.testing.assert_array_equal(cupy.asnumpy(out), 7)


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("more", ["", "c", "out"])
def test_log(library: str, dtype: Any, more: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """By exponentials for larger products; the second half of the turns has sums that float64 exponents do not reach."""
    send, back = sender(library)
    again = counted(monkeypatch)
    for m, k, n in [*SIZES, (1000, 900, 800)]:
        for turn in range(6):
            rng = np.random.default_rng(turn)
            a, b, c = (rng.normal(0, 1, shape).astype(dtype) for shape in ((m, k), (k, n), (m, n)))
            if turn % 2:
                a[:, ::2] -= 2000
                b[1::2] -= 2000
                a[0], b[:, 1] = -np.inf, -np.inf
            want = sr.matmul(a, b, sr.LOG, c=c if more == "c" else None, device="cpu")
            out = send(np.zeros((m, n), dtype)) if more == "out" else None
            found = sr.matmul(send(a), send(b), sr.LOG, c=send(c) if more == "c" else None, out=out)
            assert out is None or found is out
            np.testing.assert_allclose(back(found), want, rtol=200 * np.finfo(dtype).eps, atol=200 * np.finfo(dtype).eps)
        assert again[-1], (m, k, n)


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("semiring", ["max-min", "max-plus", "max-times", "plus-times", "boolean"])
def test_other_semirings_and_stacks(library: str, semiring: str) -> None:
    send, back = sender(library)
    for shape in ((90, 90), (3, 70, 70), (300, 16, 16)):
        for turn in range(3):
            rng = np.random.default_rng(turn)
            a, b, c = (rng.integers(0, 2, shape).astype(np.float32) for _ in range(3))
            if semiring == "boolean":
                a, b, c = (v.astype(bool) for v in (a, b, c))
            for witness in (False, True)[: 1 + (semiring not in ("plus-times", "boolean"))]:
                want = sr.matmul(a, b, semiring, c=c, witness=witness, device="cpu")
                out = send(np.zeros_like(c))
                found = sr.matmul(send(a), send(b), semiring, c=send(c), out=out, witness=witness)
                for ours, theirs in zip(found, want, strict=True) if witness else [(found, want)]:
                    np.testing.assert_array_equal(back(ours), theirs)


@pytest.mark.parametrize("library", LIBRARIES)
def test_refused_numbers_leave_out_alone(library: str) -> None:
    send, back = sender(library)
    n = 256
    a, b, c = (drawn(n, n, seed).astype(np.float32) for seed in range(3))
    for wrong in ("a", "b", "c"):
        for turn in range(4):
            arrays = {"a": a.copy(), "b": b.copy(), "c": c.copy()}
            if turn == 3:
                arrays[wrong][7, 9] = math.nan
            x, y, z, out = send(arrays["a"]), send(arrays["b"]), send(arrays["c"]), send(np.full((n, n), 5, np.float32))
            if turn < 3:
                assert sr.matmul(x, y, sr.MIN_PLUS, c=z, out=out) is out
                continue
            with pytest.raises(sr.DomainError, match=rf"{wrong}\[7, 9\] = nan"):
                sr.matmul(x, y, sr.MIN_PLUS, c=z, out=out)
            np.testing.assert_array_equal(back(out), 5)


def test_layouts_of_c_and_out() -> None:
    """Strided ones, other dtypes and operands that are out."""
    cupy = importlib.import_module("cupy")
    n = 130
    a, b, c = (drawn(n, n, seed).astype(np.float32) for seed in range(3))
    want = np.asarray(sr.matmul(a, b, sr.MIN_PLUS, c=c, device="cpu"))
    for _ in range(3):
        for make in (np.copy, lambda v: np.asfortranarray(v), lambda v: np.repeat(v, 2, axis=1)[:, ::2], lambda v: v.astype(np.float64)):
            old, out = cupy.asarray(make(c)), cupy.asarray(np.asfortranarray(np.zeros((n, n), np.float32)))
            found = sr.matmul(cupy.asarray(a), cupy.asarray(b), sr.MIN_PLUS, c=old, out=out if old.dtype == np.float32 else None)
            np.testing.assert_array_equal(cupy.asnumpy(found), want)
            np.testing.assert_array_equal(cupy.asnumpy(old), c)
        x, y = cupy.asarray(a), cupy.asarray(b)
        assert sr.matmul(x, y, sr.MIN_PLUS, out=x) is x
        np.testing.assert_array_equal(cupy.asnumpy(x), sr.matmul(a, b, sr.MIN_PLUS, device="cpu"))
        square = cupy.asarray(a)
        assert sr.matmul(square, square, sr.MIN_PLUS, c=square, out=square) is square
        np.testing.assert_array_equal(cupy.asnumpy(square), sr.matmul(a, a, sr.MIN_PLUS, c=a, device="cpu"))
    with pytest.raises(sr.ShapeError):
        sr.matmul(cupy.asarray(a), cupy.asarray(b), sr.MIN_PLUS, out=cupy.zeros((n, n + 1), np.float32))
