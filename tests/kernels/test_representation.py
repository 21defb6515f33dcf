"""Floats that are only compared: as they are, or as integers that sort alike. Both give the reference's elements and witnesses."""

from __future__ import annotations

import functools
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from semiring.algebra.catalogue import MAX_MIN, MIN_MAX, MIN_PLUS
from semiring.algebra.definition import Semiring
from semiring.kernels.block import Block
from semiring.kernels.cpu.compiler import assembly
from semiring.kernels.cpu.engine import CpuEngine
from semiring.kernels.cpu.kernels import Kernels
from semiring.kernels.cpu.target import host
from semiring.kernels.reference.engine import ReferenceEngine
from tests.kernels.samples import ISAS, Array, assert_equal, name

SEMIRINGS = [MAX_MIN, MIN_MAX]
F4, F8 = np.dtype(np.float32), np.dtype(np.float64)

each = pytest.mark.parametrize(("isa", "order_keys"), [(isa, keys) for isa in ISAS for keys in (False, True)])
dtypes = pytest.mark.parametrize("dtype", [F4, F8], ids=str)


@functools.cache
def kernels(semiring: Semiring, dtype: np.dtype[Any], isa: str, order_keys: bool) -> Kernels:
    return Kernels(semiring, (dtype,), replace(host(isa), order_keys=order_keys))


def engine(semiring: Semiring, dtype: np.dtype[Any], isa: str, order_keys: bool) -> CpuEngine:
    found = CpuEngine(semiring, (dtype,), 1, isa)
    found._kernels = kernels(semiring, dtype, isa, order_keys)
    return found


def weights(dtype: np.dtype[Any], shape: tuple[int, ...], rng: np.random.Generator) -> Array:
    """Few values, and the extreme ones among them: zeros of either sign, subnormals, infinities."""
    info = np.finfo(dtype)
    values = [0.0, -0.0, 1, -1, 2.5, info.smallest_subnormal, -info.smallest_subnormal, info.max, info.min, np.inf, -np.inf]
    return rng.choice(np.array(values, dtype), shape)


@each
@dtypes
@pytest.mark.parametrize("semiring", SEMIRINGS, ids=name)
@pytest.mark.parametrize("witness", [False, True])
def test_products(semiring: Semiring, dtype: np.dtype[Any], isa: str, order_keys: bool, witness: bool) -> None:
    rng = np.random.default_rng(0)
    for m, n, k in ((1, 1, 1), (5, 70, 3), (49, 97, 130)):
        a, b, c = (weights(dtype, shape, rng) for shape in ((m, k), (k, n), (m, n)))
        for method in ("multiply", "multiply_add"):
            results = []
            for one in (engine(semiring, dtype, isa, order_keys), ReferenceEngine(semiring, (dtype,))):
                C = Block((c.copy(),), np.full((m, n), -1, np.int32) if witness else None)
                getattr(one, method)(Block((a,)), Block((b,)), C)
                results.append(C)
            assert_equal(results[0].values, results[1].values)
            if witness:
                assert_equal(results[0].via, results[1].via)


@each
@dtypes
@pytest.mark.parametrize("semiring", SEMIRINGS, ids=name)
def test_closures(semiring: Semiring, dtype: np.dtype[Any], isa: str, order_keys: bool) -> None:
    a = weights(dtype, (37, 37), np.random.default_rng(1))
    results = []
    for one in (engine(semiring, dtype, isa, order_keys), ReferenceEngine(semiring, (dtype,))):
        A = Block((a.copy(),), np.full(a.shape, -1, np.int32))
        one.close(A)
        results.append(A)
    assert_equal(results[0].values, results[1].values)
    assert_equal(results[0].via, results[1].via)


@each
def test_zeros_of_either_sign_tie(isa: str, order_keys: bool) -> None:
    """Bit patterns would tell them apart and name the wrong k, or one for what is no improvement."""
    for semiring, other in ((MAX_MIN, 5), (MIN_MAX, -5)):
        cpu = engine(semiring, F4, isa, order_keys)
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
def test_floats_are_held_as_the_target_says(isa: str, order_keys: bool) -> None:
    for semiring in SEMIRINGS:
        assert kernels(semiring, F8, isa, order_keys).representation.kind == ("key" if order_keys else "plain")
    assert kernels(MIN_PLUS, F8, isa, order_keys).representation.kind == "plain"  # keys cannot be added


@pytest.mark.skipif("avx512" not in ISAS, reason="the names of AVX-512's instructions")
def test_a_comparison_is_one_instruction() -> None:
    for order_keys, instructions in ((False, ("vminps", "vmaxps")), (True, ("vpminsd", "vpmaxsd"))):
        made = kernels(MAX_MIN, F4, "avx512", order_keys)
        text = assembly(made.ir("product"), made.target)
        assert all(instruction in text for instruction in instructions)


@pytest.mark.parametrize(("cpu", "faster"), [("znver4", True), ("sapphirerapids", False), ("haswell", False)])
def test_keys_are_for_processors_that_compare_integers_faster(cpu: str, faster: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    from llvmlite import binding

    monkeypatch.setattr(binding, "get_host_cpu_name", lambda: cpu)
    host.cache_clear()
    try:
        for isa in ISAS:
            assert host(isa).order_keys == host(isa).fma_add == (faster and isa in ("avx512", "avx2"))
    finally:
        host.cache_clear()
