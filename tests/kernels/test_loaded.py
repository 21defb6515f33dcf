"""Loaded code: so many semirings keep theirs as is said, the least recently used one goes first, and what goes is freed."""

from __future__ import annotations

import gc
import os
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from semiring.algebra.catalogue import MIN_PLUS
from semiring.algebra.definition import Semiring
from semiring.kernels import cache
from semiring.kernels.cpu import compiler
from semiring.kernels.cpu.engine import CpuEngine
from semiring.kernels.cpu.kernels import Kernels, _kernels, kernels_for
from semiring.kernels.engine import Block
from semiring.kernels.hardware import host

F8 = (np.dtype(np.float64),)
_STATM = Path("/proc/self/statm")

resident = pytest.mark.skipif(not _STATM.exists(), reason="the memory of this process is told otherwise here")


def kib() -> float:
    """The resident memory of this process."""
    gc.collect()
    return int(_STATM.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1024


def shifted(c: float) -> Semiring:
    """a ⊗ b = a + b + c, each with a kernel of its own."""
    return Semiring("shifted", min, lambda a, b: a + b + c, np.inf, -c)


@pytest.mark.exhaustive
@resident
def test_compiling_leaves_nothing_behind() -> None:
    """LLVM's passes were never freed: 170 KiB for each kernel. Beside many threads the allocator itself takes some at times."""
    ir = kernels_for(MIN_PLUS, F8).ir("product")
    grown = []
    for _ in range(3):
        before = kib()
        for _ in range(8):
            compiler._compile(ir, host())
        grown.append((kib() - before) / 8)
    assert min(grown) < 40


@pytest.mark.exhaustive
@resident
def test_compiled_code_takes_little_while_it_is_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The machine that compiles takes most of a megabyte; the one that code is loaded with is another."""
    monkeypatch.setenv("SEMIRING_CACHE_DIR", str(tmp_path))
    kept = []

    def load(first: int, last: int) -> None:
        for c in range(first, last):
            kernels = Kernels(shifted(c + 0.5), F8, host())
            kernels.function("product")
            kept.append(kernels)

    load(0, 5)
    before = kib()
    load(5, 25)
    assert (kib() - before) / 20 < 400
    assert len(list(tmp_path.iterdir())) == len(kept)


def test_what_is_used_least_recently_goes_and_is_freed() -> None:
    _kernels.cache_clear()
    code: dict[str, Any] = {}
    semirings = {name: shifted(-c - 0.5) for c, name in enumerate(("used", "unused", "running"))}
    for name, semiring in semirings.items():
        code[name] = weakref.ref(kernels_for(semiring, F8).function("product").owner)  # type: ignore[attr-defined]  # of ctypes' function
    engine = CpuEngine(semirings["running"], F8, threads=1)
    for c in range(cache.LOADED):
        kernels_for(semirings["used"], F8)
        kernels_for(shifted(-c - 100.5), F8)
    gc.collect()
    assert _kernels.cache_info().currsize == _kernels.cache_info().maxsize == cache.LOADED
    assert code["used"]() is not None
    assert code["unused"]() is None
    assert not code["running"]().closed  # as long as there is whoever may run it
    C = Block((np.empty((1, 1)),))
    engine.multiply(Block((np.full((1, 1), 3.0),)), Block((np.full((1, 1), 4.0),)), C)
    assert C.values[0].item() == semirings["running"].mul(3, 4)
    del engine
    gc.collect()
    assert code["running"]() is None


def test_whoever_asks_gets_the_same_kernels() -> None:
    """Searches and products have been compiled apart."""
    assert kernels_for(MIN_PLUS, F8) is kernels_for(MIN_PLUS, F8, None) is kernels_for(MIN_PLUS, F8, isa=host().isa)


def test_both_engines_keep_as_many() -> None:
    from semiring.kernels.cuda import compiler, kernels

    assert kernels.kernels_for.cache_info().maxsize == compiler.semiring_kernel_for.cache_info().maxsize == cache.LOADED
