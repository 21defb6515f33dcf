"""Sums of non-negative numbers that diverge are refused on every path; with signs, and in `solve`, the same is linear algebra."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csgraph

import semiring as sr
from semiring import testing

Array = np.ndarray[Any, Any]

TOGETHER = np.array([[0.6, 0.6], [0.6, 0.6]])
"""Numbers without a cycle of weight 1, whose spectral radius is 1.2."""

NEAR_ONE = np.array([[1 - 2.0**-53, 1.0], [1.0, -1.0]])
"""A matrix with a first pivot that takes all digits, though I − A is well conditioned."""

PLAIN = sr.Semiring("own", lambda a, b: b + a, lambda a, b: a * b, 0, 1, star=lambda a: 1 / (1 - a))
DUAL = sr.Semiring(
    "expectation", lambda a, b: (a[0] + b[0], a[1] + b[1]), lambda a, b: (a[0] * b[0], a[0] * b[1] + a[1] * b[0]), (0, 0), (1, 0),
    star=lambda a: (1 / (1 - a[0]), a[1] / (1 - a[0]) ** 2),
)  # fmt: skip


def radius(a: Array) -> float:
    """The spectral radius by strongly connected components, whose eigenvalues are no defective zeros."""
    _, label = csgraph.connected_components(sp.csr_array(a), connection="strong")
    blocks = [a[np.ix_(label == c, label == c)] for c in np.unique(label)]
    return max((float(abs(np.linalg.eigvals(block)).max()) for block in blocks), default=0.0)


def of_ways() -> dict[str, Callable[[Array], Any]]:
    """Every way to the closure of a dense matrix of non-negative numbers, in which 0 is no edge."""
    ways: dict[str, Callable[[Array], Any]] = {
        f"{method}, block {block}": lambda a, m=method, b=block: sr.closure(a, "plus-times", method=m, block=b)  # type: ignore[misc]  # of a loop
        for method in ("iterative", "blocked", "recursive")
        for block in (None, 2)
    }
    return ways | {
        "reference": lambda a: sr.closure(a, "plus-times", device="reference"),
        "own": lambda a: sr.closure(a, PLAIN),
        "unchecked": lambda a: sr.closure(a, "plus-times", check=False),
        "A⁺": lambda a: sr.closure(a, "plus-times", reflexive=False) + np.eye(len(a)),
        "overwritten": lambda a: sr.closure(a.copy(), "plus-times", overwrite=True),
        "float32": lambda a: sr.closure(a.astype("f4"), "plus-times"),
        "stack": lambda a: sr.closure(np.stack([np.eye(len(a)) / -2, a]), "plus-times")[1],
        "sparse": lambda a: sr.closure(sp.csr_array(a), "plus-times"),
        "factor": lambda a: sr.factor(sp.csr_array(a), "plus-times").closure(),
        "blocks of a factor": lambda a: _gathered(sr.factor(sp.csr_array(a), "plus-times"), len(a)),
        "columns of a factor": lambda a: sr.factor(sp.csr_array(a), "plus-times").columns(range(len(a))),
        "sources": lambda a: sr.closure(a, "plus-times", sources=range(len(a))),
        "targets": lambda a: sr.closure(sp.csr_array(a), "plus-times", targets=range(len(a))),
        "expectation": lambda a: sr.closure((a, np.zeros_like(a)), DUAL)[0],
        "derivatives of either sign": lambda a: sr.closure((a, np.sign(a) * (np.arange(len(a)) - 1)), DUAL)[0],
        "factor of derivatives": lambda a: sr.factor((sp.csr_array(a), sp.csr_array(-a)), DUAL).closure()[0],
        "objects": lambda a: sr.closure(exact(a), "plus-times").astype(float),
    }


def _gathered(f: Any, n: int) -> Array:
    found = np.empty((n, n))
    for rows, values in f.blocks(3):
        found[list(rows)] = values
    return found


def exact(a: Array) -> Array:
    """Floats as the fractions that they are."""
    return np.array([Fraction(float(v)) for v in a.ravel()], dtype=object).reshape(a.shape)


WAYS = of_ways()


def judge(a: Array, way: str, *, diverges: bool, rtol: float = 1e-9) -> None:
    """Compare a way with NumPy: refused where the sum diverges, else (I − A)⁻¹."""
    if diverges:
        structured = way == "expectation" or "derivatives" in way
        with pytest.raises(sr.DivergenceError, match="no finite sum|overwritten" if structured else r"inv\(I") as caught:
            WAYS[way](a)
        assert_reason(a, caught.value)
    else:
        # No walk is an exact 0, where rounding leaves the inverse a little more or less.
        walks = np.linalg.matrix_power(np.eye(len(a)) + (a > 0), len(a)) > 0
        expected = np.where(walks, np.linalg.inv(np.eye(len(a)) - a), 0)
        np.testing.assert_allclose(WAYS[way](a), expected, rtol=rtol if way != "float32" else 1e-2, atol=1e-12)


def assert_reason(a: Array, error: sr.DivergenceError) -> None:
    """The cycle weighs 1 or more; else the vertices are a strongly connected component that diverges."""
    if error.cycle is not None:
        assert len(set(error.cycle)) == len(error.cycle)
        assert testing.path_weight(sr.PLUS_TIMES, exact(a), [*error.cycle, error.cycle[0]]) >= 1
    elif error.vertices is not None:
        _, label = csgraph.connected_components(sp.csr_array(a), connection="strong")
        assert set(error.vertices) == set(np.flatnonzero(label == label[error.vertices[0]]).tolist())
        assert radius(a[np.ix_(error.vertices, error.vertices)]) >= 1 - 1e-12
    else:
        assert "overwritten" in str(error)


@pytest.mark.sampled(8)
@pytest.mark.parametrize("way", WAYS)
@given(data=st.data())
def test_numbers_around_the_spectral_radius_1(way: str, data: st.DataObject) -> None:
    n = data.draw(st.integers(1, 7))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    a = rng.random((n, n)) * (rng.random((n, n)) < data.draw(st.sampled_from([0.3, 0.7, 1.0])))
    found = radius(a)
    if found > 1e-3:
        a *= data.draw(st.sampled_from([0.2, 0.9, 0.99, 1.01, 1.1, 5.0])) / found
    judge(a, way, diverges=radius(a) >= 1)


@pytest.mark.sampled(8)
@pytest.mark.parametrize("way", [way for way in WAYS if way != "float32"])
def test_a_gap_of_a_trillionth_tells_sums_from_divergence(way: str) -> None:
    rng = np.random.default_rng(7)
    for n in (1, 2, 3, 5, 8, 13, 34):
        for gap in (-1e-12, 1e-12):
            a = rng.random((n, n)) + 0.1
            a *= (1 + gap) / radius(a)
            judge(a, way, diverges=gap > 0, rtol=0.05)  # rounding the entries moves the gap by some ε · n


@pytest.mark.sampled(8)
@pytest.mark.parametrize("way", WAYS)
@given(data=st.data())
def test_graphs_without_weights_converge_exactly_where_no_cycle_is(way: str, data: st.DataObject) -> None:
    n = data.draw(st.integers(1, 6))
    bits = data.draw(st.lists(st.booleans(), min_size=n * n, max_size=n * n))
    a = np.array(bits, dtype=float).reshape(n, n)
    if data.draw(st.booleans()):
        order = np.array(data.draw(st.permutations(range(n))))
        a = np.triu(a, 1)[order][:, order]
    judge(a, way, diverges=bool(np.linalg.matrix_power(a, n).any()))


@pytest.mark.parametrize("weights", [TOGETHER, np.log(TOGETHER), exact(TOGETHER)], ids=["plus-times", "log", "fractions"])
def test_a_component_is_named_where_no_single_cycle_diverges(weights: Any) -> None:
    semiring = sr.LOG if (weights < 0).any() else sr.PLUS_TIMES
    a = np.full((4, 4), semiring.zero, dtype=weights.dtype)
    a[1:3, 1:3], a[0, 1], a[2, 3] = weights, weights[0, 0], weights[0, 0]
    with pytest.raises(sr.DivergenceError, match=r"component of 2 vertices, 1, 2, have no finite sum") as caught:
        sr.closure(a, semiring)
    assert caught.value.cycle is None
    assert caught.value.vertices == [1, 2]


def test_a_faulty_bill_of_materials_is_located() -> None:
    parts = sr.edges([("car", "wheel", 4), ("wheel", "bolt", 5), ("bolt", "steel", 0.1), ("bolt", "wheel", 1), ("car", "engine", 1)])
    for call in (lambda: sr.closure(parts, "plus-times"), lambda: sr.factor(parts, "plus-times").closure()):
        with pytest.raises(sr.DivergenceError, match="weight 5") as caught:
            call()
        assert sorted(caught.value.cycle or []) == ["bolt", "wheel"]


def test_rows_that_no_divergent_cycle_is_reached_from_are_answered() -> None:
    graph = sr.edges([("a", "b", 0.5), ("b", "c", 2.0), ("c", "b", 3.0), ("b", "d", 0.25)])
    f = sr.factor(graph, "plus-times")
    for found in (f.rows("d"), sr.closure(graph, "plus-times", sources="d")):
        assert found.tolist() == [0, 0, 0, 1]
    assert f.columns("a").tolist() == [1, 0, 0, 0]
    for call in (lambda: f.rows("a"), lambda: f.columns("d"), lambda: f["a", "d"], lambda: sr.closure(graph, "plus-times", targets="d")):
        with pytest.raises(sr.DivergenceError, match="weight 6"):
            call()
    f.update((["c"], ["b"], [0.25]))
    np.testing.assert_allclose(f["a", "d"], 0.25)


def test_each_matrix_of_a_stack_is_judged_by_its_own_signs() -> None:
    a = np.array([[[0.5]], [[-1.0]], [[2.0]], [[3.0]]])
    np.testing.assert_allclose(sr.closure(a[:2], "plus-times"), np.array([[[2.0]], [[0.5]]]))
    with pytest.raises(sr.DivergenceError, match=r"batch index \[2\]") as caught:
        sr.closure(a, "plus-times")
    assert caught.value.index == (2,)
    with pytest.raises(sr.DivergenceError) as caught:
        sr.closure(a.reshape(2, 2, 1, 1), "plus-times", sources=[0])
    assert caught.value.index == (1, 0)


def test_a_pivot_that_overflows_has_no_star() -> None:
    for sign in (1, -1):
        with np.errstate(all="ignore"), pytest.raises(sr.DivergenceError):
            sr.closure(np.array([[0, 1e200], [sign * 1e200, 0]]), "plus-times")


def test_entries_with_signs_are_linear_algebra() -> None:
    a = np.array([[2.0, -1.0], [0.5, 3.0]])
    np.testing.assert_allclose(sr.closure(a, "plus-times"), np.linalg.inv(np.eye(2) - a))
    np.testing.assert_allclose(sr.factor(a, "plus-times").closure(), np.linalg.inv(np.eye(2) - a))
    with pytest.raises(sr.DivergenceError, match="singular"):
        sr.closure(np.array([[0.0, -1.0], [-1.0, 0.0]]), "plus-times")


def test_symbols_are_linear_algebra_and_numbers_of_sympy_are_numbers() -> None:
    sympy = pytest.importorskip("sympy")
    p, third = sympy.Symbol("p", positive=True), sympy.Rational(1, 3)
    assert sympy.simplify(sr.closure(sympy.Matrix([[2 + p]]), "plus-times")[0, 0] + 1 / (1 + p)) == 0
    assert sr.closure(np.array([[-4 * third]], dtype=object), "plus-times")[0, 0] == sympy.Rational(3, 7)
    with pytest.raises(sr.DivergenceError) as caught:
        sr.closure(np.array([[0, 4 * third], [3 * third, 0 * third]], dtype=object), "plus-times")
    assert sorted(caught.value.cycle or []) == [0, 1]


# Digits that an elimination without pivoting loses.


@pytest.mark.parametrize("reflexive", [True, False])
@pytest.mark.parametrize("gap", [2.0**-53, 1e-12, 1e-8])
def test_the_inverse_of_a_well_conditioned_matrix_keeps_its_digits(gap: float, reflexive: bool) -> None:
    a = np.array([[1 - gap, 1.0], [1.0, -1.0]])
    expected = np.linalg.inv(np.eye(2) - a) - (0 if reflexive else np.eye(2))
    stack = np.stack([np.array([[0.1, -0.2], [0.3, 0.1]]), a])
    for found in (
        sr.closure(a, "plus-times", reflexive=reflexive),
        sr.closure(a.copy(), "plus-times", reflexive=reflexive, overwrite=True),
        sr.closure(stack, PLAIN, reflexive=reflexive)[1],
        sr.closure(a, "plus-times", reflexive=reflexive, sources=[0, 1]),
        sr.closure(sp.csr_array(a), "plus-times", reflexive=reflexive),
    ):
        np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("gap", [2.0**-53, 1e-12, 1e-8])
@pytest.mark.parametrize("last", [1.0, -1.0])
def test_solutions_keep_their_digits_whatever_the_signs(gap: float, last: float) -> None:
    a = np.array([[1 - gap, 1.0], [1.0, last]])
    f = sr.factor(a, "plus-times")
    b = np.array([[1.0, 3.0, 0.0], [1.0, -2.0, 1.0]])
    np.testing.assert_allclose(f.solve(b), np.linalg.solve(np.eye(2) - a, b), rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(f.solve(b[:, 0]), np.linalg.solve(np.eye(2) - a, b[:, 0]), rtol=1e-10)
    if last > 0:
        with pytest.raises(sr.DivergenceError):
            f.rows(0)
        return
    expected = np.linalg.inv(np.eye(2) - a)
    answers: Any = (f.closure(), expected), (f.rows([1]), expected[[1]]), (f.columns(0), expected[:, 0]), (f[0, 1], expected[0, 1])
    for found, wanted in answers:
        np.testing.assert_allclose(found, wanted, rtol=1e-10, atol=1e-10)
    f.update(np.array([[0.5, 0.25], [0.25, 0.5]]))
    np.testing.assert_allclose(f.closure(), np.linalg.inv(np.array([[0.5, -0.25], [-0.25, 0.5]])))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("n", [40, 150])
def test_random_matrices_with_signs_are_as_exact_as_numpys_inverse(n: int, dtype: str) -> None:
    rng = np.random.default_rng(n)
    for _ in range(20):
        a = rng.standard_normal((n, n)).astype(dtype)
        a[0, 0] = 1 - rng.random() * 10.0 ** -rng.integers(1, 7)
        precise = np.linalg.inv(np.eye(n) - a.astype(np.longdouble).astype(float))
        error = abs(sr.closure(a, "plus-times") - precise).max() / abs(precise).max()
        assert error <= np.finfo(dtype).eps ** 0.75 * np.linalg.cond(np.eye(n) - a) * n


# The same on a GPU.


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("n", [2, 33, 300])
def test_on_a_gpu(n: int, dtype: str) -> None:
    cupy = pytest.importorskip("cupy")
    rng = np.random.default_rng(n)
    a = rng.random((n, n))
    a /= radius(a)
    below, above = ((0.9 * a).astype(dtype), (1.1 * a).astype(dtype))
    for reflexive in (True, False):
        found = sr.closure(cupy.asarray(below), "plus-times", reflexive=reflexive).get()
        rtol = 1e-2 if dtype == "float32" else 1e-9
        np.testing.assert_allclose(found + np.eye(n) * (not reflexive), np.linalg.inv(np.eye(n) - below), rtol=rtol)
        for check in (True, False):
            with pytest.raises(sr.DivergenceError, match="inv") as caught:
                sr.closure(cupy.asarray(above), "plus-times", reflexive=reflexive, check=check)
            assert_reason(above.astype(float), caught.value)
    with pytest.raises(sr.DivergenceError) as caught:
        sr.closure(cupy.asarray(np.stack([below, -below, above])), "plus-times")
    assert caught.value.index == (2,)
    f = sr.factor(sp.csr_array(above), "plus-times", device="cuda")
    with pytest.raises(sr.DivergenceError):
        f.rows(range(n))
    np.testing.assert_allclose(f.solve(np.ones(n, dtype)), np.linalg.solve(np.eye(n) - above, np.ones(n)), rtol=1e-2)
    np.testing.assert_allclose(sr.closure(cupy.asarray(NEAR_ONE), "plus-times").get(), np.linalg.inv(np.eye(2) - NEAR_ONE), atol=1e-12)
    np.testing.assert_allclose(
        cupy.asnumpy(sr.factor(NEAR_ONE, "plus-times", device="cuda").closure()), np.linalg.inv(np.eye(2) - NEAR_ONE), atol=1e-12
    )
