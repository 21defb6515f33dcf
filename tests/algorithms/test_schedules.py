"""Every method, block size and engine gives the closure, and the same one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import semiring as sr
from semiring import testing
from semiring.algebra.laws import is_idempotent, is_selective
from semiring.algorithms.blocked import blocked, blocked_elimination, iterative
from semiring.algorithms.recursive import recursive, recursive_elimination
from semiring.kernels import engine_for

pytestmark = pytest.mark.filterwarnings("ignore::semiring.NonEdgeWarning")  # zeros everywhere, on purpose

METHODS = ("auto", "iterative", "blocked", "recursive")
IDEMPOTENT = [s for s in sr.semirings().values() if is_idempotent(s)]
SELECTIVE = [s for s in IDEMPOTENT if is_selective(s)]


def name(semiring: sr.Semiring) -> str:
    return semiring.name


def parts(values: Any) -> tuple[np.ndarray[Any, Any], ...]:
    return values if isinstance(values, tuple) else (values,)


def agree(x: Any, y: Any) -> bool:
    return all(bool(np.all(a == b)) for a, b in zip(parts(x), parts(y), strict=True))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("semiring", IDEMPOTENT, ids=name)
@pytest.mark.parametrize("reflexive", [True, False])
@given(data=st.data())
def test_closure_is_the_sum_over_all_paths(semiring: sr.Semiring, reflexive: bool, data: st.DataObject) -> None:
    dtype = data.draw(st.sampled_from(semiring.supported_dtypes))
    a = data.draw(testing.matrices(semiring, dtype, max_n=5))
    method, block = data.draw(st.sampled_from(METHODS)), data.draw(st.sampled_from([None, 1, 2, 3]))
    device = data.draw(st.sampled_from(["cpu", "reference"]))
    try:
        closure = sr.closure(a, semiring, reflexive=reflexive, method=method, block=block, device=device)
    except sr.OverflowRiskError:
        assert np.dtype(dtype).kind in "iu"
        return
    assert agree(closure, testing.brute_force(semiring, a, reflexive=reflexive))


@pytest.mark.sampled(5)
@pytest.mark.parametrize("semiring", IDEMPOTENT, ids=name)
@pytest.mark.parametrize("n", [0, 1, 2, 31, 64, 65, 97, 200])
def test_methods_and_blocks_agree_bitwise(semiring: sr.Semiring, n: int) -> None:
    a = testing.random_matrix(semiring, n, density=min(1, 4 / max(n, 1)), rng=np.random.default_rng(n))
    expected = sr.closure(a, semiring, method="iterative", device="reference") if n < 100 else sr.closure(a, semiring)
    for method in METHODS:
        for block in (None, 1, 7, 64, n, n + 1) if n < 100 else (None, 48):
            if block != 0:
                assert agree(sr.closure(a, semiring, method=method, block=block), expected), (method, block)


@pytest.mark.parametrize("reflexive", [True, False])
def test_reachability_of_more_vertices_than_an_engine_cuts_between(reflexive: bool) -> None:
    n = 1100
    a = np.random.default_rng(4).random((n, n)) < 1.2 / n
    expected = a | np.eye(n, dtype=bool) if reflexive else a.copy()
    for _ in range(n.bit_length()):  # twice as long paths each time
        numbers = expected.astype(np.float32)
        expected |= numbers @ numbers > 0
    for method in METHODS:
        for block in (None, 1, 513):
            assert np.array_equal(sr.transitive_closure(a, method=method, block=block, reflexive=reflexive), expected), (method, block)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("semiring", SELECTIVE, ids=name)
@pytest.mark.parametrize("reflexive", [True, False])
def test_paths_do_not_change_the_values(semiring: sr.Semiring, reflexive: bool) -> None:
    for n in (1, 17, 24):
        a = testing.random_matrix(semiring, n, density=3 / n, rng=np.random.default_rng(n))
        for method in METHODS:
            paths = sr.closure(a, semiring, paths=True, method=method, reflexive=reflexive)
            assert agree(paths.values, sr.closure(a, semiring, method=method, reflexive=reflexive))
            testing.assert_paths_valid(paths, a)


def test_float_rounding_is_the_same_for_the_same_method_and_block() -> None:
    a = np.random.default_rng(0).random((150, 150))
    for method, block in (("iterative", None), ("blocked", 40), ("recursive", 64)):
        first = sr.apsp(a, method=method, block=block, threads=1)
        assert np.array_equal(first, sr.apsp(a, method=method, block=block, threads=2))
        assert np.allclose(first, sr.apsp(a), rtol=1e-14)


def test_large_blocks_are_closed_recursively() -> None:
    a = testing.random_matrix(sr.MIN_PLUS, 300, density=0.02, rng=np.random.default_rng(3))
    expected = sr.apsp(a, method="recursive")
    for block in (150, 299, 300, 1000):
        assert np.array_equal(sr.apsp(a, method="blocked", block=block), expected)
        assert np.array_equal(sr.apsp(a, method="recursive", block=block), expected)
        testing.assert_paths_valid(sr.apsp(a, method="blocked", block=block, paths=True), a, pairs=[(0, 299), (7, 250)], trees=False)


class _Primitives:
    """An engine of which nothing else is known."""

    def __init__(self, engine: Any) -> None:
        self.multiply_add, self.multiply_add_each, self.multiply = engine.multiply_add, engine.multiply_add_each, engine.multiply
        self.close, self.eliminate = engine.close, engine.eliminate


@pytest.mark.parametrize(("algorithm", "sides"), [(iterative, ()), (blocked, (3,)), (recursive, (2,))])
def test_algorithms_are_made_of_primitives(algorithm: Any, sides: tuple[int, ...]) -> None:
    a = testing.random_matrix(sr.MIN_PLUS, 17, density=0.2, rng=np.random.default_rng(5))
    expected, engine = sr.closure(a, sr.MIN_PLUS, reflexive=False), engine_for(sr.MIN_PLUS, (a.dtype,))
    algorithm(_Primitives(engine), engine.load((a,)), *sides)
    assert np.array_equal(a, expected)


@pytest.mark.parametrize("algorithm", [blocked_elimination, recursive_elimination])
def test_eliminations_are_made_of_primitives(algorithm: Any) -> None:
    a = np.random.default_rng(6).random((17, 17)) / 17
    expected, engine = np.linalg.inv(np.eye(17) - a), engine_for(sr.PLUS_TIMES, (a.dtype,))
    algorithm(_Primitives(engine), engine.load((a,)), 3)
    assert np.allclose(a, expected, rtol=1e-12)


@pytest.mark.parametrize("method", ["dijkstra", "", None, "Recursive"])
def test_unknown_method_names_the_choices(method: Any) -> None:
    with pytest.raises(sr.SemiringError, match="'iterative', 'blocked', 'recursive'"):
        sr.apsp(np.zeros((1, 1)), method=method)


@pytest.mark.parametrize("block", [0, -1, 1.5, True, "64"])
def test_bad_block_is_refused(block: Any) -> None:
    with pytest.raises(sr.SemiringError, match="block"):
        sr.apsp(np.zeros((1, 1)), block=block)
