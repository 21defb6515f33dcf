"""What is chosen by the kind of processor: order keys, fused sums, embedded broadcasts. Every choice gives the reference's elements.

All of them run here, whatever the processor at hand would have chosen.
"""

from __future__ import annotations

import functools
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from semiring.algebra.catalogue import MAX_MIN, MIN_MAX, MIN_PLUS, PLUS_TIMES
from semiring.algebra.definition import Semiring
from semiring.kernels.cpu.compiler import assembly
from semiring.kernels.cpu.engine import CpuEngine
from semiring.kernels.cpu.kernels import Kernels
from semiring.kernels.engine import Block
from semiring.kernels.hardware import Target, host
from semiring.kernels.reference import ReferenceEngine
from tests.kernels.samples import ISAS, Array, assert_equal, name

SEMIRINGS = [MAX_MIN, MIN_MAX]
F4, F8 = np.dtype(np.float32), np.dtype(np.float64)

each = pytest.mark.parametrize(("isa", "zen"), [(isa, zen) for isa in ISAS for zen in (False, True)])
dtypes = pytest.mark.parametrize("dtype", [F4, F8], ids=str)


def chosen(isa: str, zen: bool) -> Target:
    """The instruction set with the choices of AMD Zen, or with those of other processors."""
    wide = zen and isa in ("avx512", "avx2")
    return replace(host(isa), order_keys=8 * zen, fma_add=wide, embedded_broadcast=zen and isa == "avx512")


@functools.cache
def kernels(semiring: Semiring, dtype: np.dtype[Any], isa: str, zen: bool) -> Kernels:
    return Kernels(semiring, (dtype,), chosen(isa, zen))


def engine(semiring: Semiring, dtype: np.dtype[Any], isa: str, zen: bool) -> CpuEngine:
    found = CpuEngine(semiring, (dtype,), 1, isa)
    found._kernels = kernels(semiring, dtype, isa, zen)
    return found


def weights(dtype: np.dtype[Any], shape: tuple[int, ...], rng: np.random.Generator) -> Array:
    """Few values, and the extreme ones among them: zeros of either sign, subnormals, infinities."""
    info = np.finfo(dtype)
    values = [0.0, -0.0, 1, -1, 2.5, info.smallest_subnormal, -info.smallest_subnormal, info.max, info.min, np.inf, -np.inf]
    return rng.choice(np.array(values, dtype), shape)


@pytest.mark.sampled(7)
@each
@dtypes
@pytest.mark.parametrize("semiring", SEMIRINGS, ids=name)
@pytest.mark.parametrize("witness", [False, True])
def test_products(semiring: Semiring, dtype: np.dtype[Any], isa: str, zen: bool, witness: bool) -> None:
    rng = np.random.default_rng(0)
    for m, n, k in ((1, 1, 1), (5, 70, 3), (49, 97, 130)):
        a, b, c = (weights(dtype, shape, rng) for shape in ((m, k), (k, n), (m, n)))
        for method in ("multiply", "multiply_add"):
            results = []
            for one in (engine(semiring, dtype, isa, zen), ReferenceEngine(semiring, (dtype,))):
                C = Block((c.copy(),), np.full((m, n), -1, np.int32) if witness else None)
                getattr(one, method)(Block((a,)), Block((b,)), C)
                results.append(C)
            assert_equal(results[0].values, results[1].values)
            if witness:
                assert_equal(results[0].via, results[1].via)


@pytest.mark.sampled(3)
@each
@dtypes
def test_sums(dtype: np.dtype[Any], isa: str, zen: bool) -> None:
    """A fused sum rounds as a sum does, subnormals and overflows included."""
    rng = np.random.default_rng(2)
    finite = np.finfo(dtype).max / 4
    a, b, c = (np.where(np.abs(x) > finite, dtype.type(1.5), x) for x in (weights(dtype, s, rng) for s in ((49, 130), (130, 97), (49, 97))))
    for semiring, witness in ((MIN_PLUS, False), (MIN_PLUS, True), (PLUS_TIMES, False)):
        results = []
        for one in (engine(semiring, dtype, isa, zen), ReferenceEngine(semiring, (dtype,))):
            C = Block((c.copy(),), np.full(c.shape, -1, np.int32) if witness else None)
            one.multiply_add(Block((a,)), Block((b,)), C)
            results.append(C)
        if semiring is MIN_PLUS:
            assert_equal(results[0].values, results[1].values)
            assert not witness or (results[0].via == results[1].via).all()
        else:
            np.testing.assert_allclose(results[0].values[0], results[1].values[0], rtol=1e-4)


@pytest.mark.sampled(9)
@each
@dtypes
@pytest.mark.parametrize("semiring", SEMIRINGS, ids=name)
def test_closures(semiring: Semiring, dtype: np.dtype[Any], isa: str, zen: bool) -> None:
    a = weights(dtype, (37, 37), np.random.default_rng(1))
    results = []
    for one in (engine(semiring, dtype, isa, zen), ReferenceEngine(semiring, (dtype,))):
        A = Block((a.copy(),), np.full(a.shape, -1, np.int32))
        one.close(A)
        results.append(A)
    assert_equal(results[0].values, results[1].values)
    assert_equal(results[0].via, results[1].via)


@pytest.mark.sampled(3)
@each
def test_zeros_of_either_sign_tie(isa: str, zen: bool) -> None:
    """Bit patterns would tell them apart and name the wrong k, or one for what is no improvement."""
    for semiring, other in ((MAX_MIN, 5), (MIN_MAX, -5)):
        cpu = engine(semiring, F4, isa, zen)
        for first in (0.0, -0.0):
            a, b = np.array([[first, -first]], F4), np.full((2, 33), other, F4)
            C = Block((np.empty((1, 33), F4),), np.full((1, 33), -1, np.int32))
            cpu.multiply(Block((a,)), Block((b,)), C)
            np.testing.assert_array_equal(C.values[0], 0)
            np.testing.assert_array_equal(C.via, 0)
            kept = Block((np.full((1, 33), -first, F4),), np.full((1, 33), -1, np.int32))
            cpu.multiply_add(Block((a[:, :1],)), Block((b[:1],)), kept)
            np.testing.assert_array_equal(kept.via, -1)


@each
def test_floats_are_held_as_the_target_says(isa: str, zen: bool) -> None:
    for semiring in SEMIRINGS:
        assert kernels(semiring, F8, isa, zen).representation.kind == ("order_key" if zen else "plain")
    assert kernels(MIN_PLUS, F8, isa, zen).representation.kind == "plain"  # keys cannot be added


@pytest.mark.skipif("avx512" not in ISAS, reason="the names of AVX-512's instructions")
def test_a_comparison_is_one_instruction() -> None:
    for zen, instructions in ((False, ("vminps", "vmaxps")), (True, ("vpminsd", "vpmaxsd"))):
        made = kernels(MAX_MIN, F4, "avx512", zen)
        text = assembly(made.ir("product"), made.target)
        assert all(instruction in text for instruction in instructions)


@pytest.mark.parametrize(("cpu", "zen"), [("znver4", True), ("sapphirerapids", False), ("haswell", False)])
def test_choices_follow_the_processor(cpu: str, zen: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    from llvmlite import binding

    monkeypatch.setattr(binding, "get_host_cpu_name", lambda: cpu)
    host.cache_clear()
    try:
        for isa in ISAS:
            wide = zen and isa in ("avx512", "avx2")
            assert host(isa).fma_add == wide
            assert host(isa).order_keys == {"avx512": 8, "avx2": 4}.get(isa, 0) * zen
            assert host(isa).embedded_broadcast == (wide and isa == "avx512")
    finally:
        host.cache_clear()
