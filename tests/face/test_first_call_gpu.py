"""The first closure of a process on a GPU: one rehearsal compiles every kernel, and what is refused stays as it is."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import semiring as sr
from semiring.kernels.cuda import compiler, kernels

cupy = pytest.importorskip("cupy")
pytestmark = [pytest.mark.gpu, pytest.mark.filterwarnings("ignore::semiring.NonEdgeWarning")]


@pytest.fixture
def rehearsals(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The names of the kernels of each rehearsal; nothing is loaded, and the disk cache is empty."""
    kept = (compiler.kernel_for, compiler.semiring_kernel_for, kernels.kernels_for)
    for cache in kept:
        cache.cache_clear()
    seen: list[list[str]] = []
    rehearse, compile_kernel = compiler.rehearse, compiler._compile_kernel

    def rehearsed(work: Any) -> None:
        if not compiler.rehearsing():
            seen.append([])
        rehearse(work)

    def compiled(kernel: compiler.Kernel, slot: int) -> None:
        seen[-1].append(kernel._name)
        compile_kernel(kernel, slot)

    monkeypatch.setattr(compiler, "kept_code", lambda source, arch: None)
    monkeypatch.setattr(compiler, "rehearse", rehearsed)
    monkeypatch.setattr(compiler, "_compile_kernel", compiled)
    return seen


def graph(n: int, dtype: Any) -> Any:
    rng = np.random.default_rng(n)
    infinity = np.inf if np.dtype(dtype).kind == "f" else np.iinfo(dtype).max
    return np.where(rng.random((n, n)) < 0.3, rng.integers(1, 100, (n, n)), infinity).astype(dtype)


@pytest.mark.parametrize("paths", [False, True])
@pytest.mark.parametrize(("n", "dtype"), [(40, np.float32), (300, np.float32), (300, np.int64), (300, np.float64)])
def test_kernels_compile_beside_the_statistics(rehearsals: list[list[str]], n: int, dtype: Any, paths: bool) -> None:
    a = graph(n, dtype)
    expected = sr.apsp(a, device="cpu")
    found = sr.apsp(cupy.asarray(a), paths=paths)
    assert cupy.asnumpy(found.distances if paths else found).tolist() == expected.tolist()
    assert len(rehearsals) == 1, rehearsals
    assert {"value_statistics", "close_witness" if paths else "close"} <= set(rehearsals[0])


def test_negative_edges_need_other_kernels(rehearsals: list[list[str]]) -> None:
    a = graph(300, np.float32)
    a[0] -= 1.5
    assert np.array_equal(cupy.asnumpy(sr.apsp(cupy.asarray(a))), sr.apsp(a, device="cpu"))
    assert "value_statistics" in rehearsals[0]


@pytest.mark.parametrize("n", [5, 40, 300])
def test_what_is_refused_is_not_overwritten(rehearsals: list[list[str]], n: int) -> None:
    a = graph(n, np.float32)
    a[1, 2] = np.nan
    there = cupy.asarray(a)
    with pytest.raises(sr.SemiringError, match="NaN"):
        sr.apsp(there, overwrite=True)
    assert np.array_equal(cupy.asnumpy(there), a, equal_nan=True)
