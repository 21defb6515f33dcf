"""`scan` against its definition, one Python number at a time, and against what it must agree with: SciPy's logsumexp, paths, products."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import logsumexp

import semiring as sr
from semiring.algebra import ops
from semiring.algebra.laws import is_selective
from semiring.algorithms.scan import scan
from semiring.kernels.cpu.scans import CpuScans
from semiring.kernels.engine import ScanOperands, ScanPlaces
from semiring.kernels.select import engine_for
from tests.kernels.samples import CASES, ISAS, DTypes, Values, elements, examples, name, squeeze

INF = math.inf
WIDTHS = [1, 2, 7, 16, 33, 70]


def numbers(semiring: sr.Semiring, values: Values) -> Any:
    """Arrays as nested lists of Python elements, in which ±∞ is a float."""
    identities = (x if isinstance(x, tuple) else (x,) for x in (semiring.zero, semiring.one))
    parts = []
    for v, raw, stands in zip(
        values, zip(*identities, strict=True), zip(*semiring.identities([v.dtype for v in values]), strict=True), strict=True
    ):
        written = {s: r for r, s in zip(raw, stands, strict=True) if v.dtype.kind in "iu" and isinstance(r, float) and math.isinf(r)}
        parts.append(np.frompyfunc(lambda x, w=written: w.get(x, x), 1, 1)(v.astype(object)))
    if len(parts) == 1:
        return parts[0]
    return np.frompyfunc(lambda *each: each, len(parts), 1)(*parts)


def defined(
    semiring: sr.Semiring, matrices: Any, initial: Any, weights: Any | None, *, reverse: bool
) -> tuple[list[list[Any]], list[list[int]], list[int]]:
    """v_0, …, v_T as they are defined, the winners and the states, of one sequence of Python elements."""
    steps, states = len(matrices), len(initial)
    rows: list[list[Any]] = [list(initial)]
    won = [[-1] * states]

    def best(terms: list[Any]) -> tuple[Any, int]:
        total, winner = semiring.zero, -1
        for k, term in enumerate(terms):
            new = semiring.add(total, term)
            total, winner = (new, k) if new != total else (total, winner)
        return total, winner

    for t in reversed(range(steps)) if reverse else range(steps):
        v = rows[-1]
        if reverse:
            v = v if weights is None else [semiring.mul(w, x) for w, x in zip(weights[t], v, strict=True)]
            found = [best([semiring.mul(matrices[t][i][j], v[j]) for j in range(states)]) for i in range(states)]
        else:
            found = [best([semiring.mul(v[i], matrices[t][i][j]) for i in range(states)]) for j in range(states)]
        new, winners = [x for x, _ in found], [k for _, k in found]
        if weights is not None and not reverse:
            new = [semiring.mul(x, w) for x, w in zip(new, weights[t], strict=True)]
        rows.append(new)
        won.append(winners)
    state = best(rows[-1])[1]
    path = [state]
    for winners in won[:0:-1]:
        state = winners[state] if state >= 0 else -1
        path.append(state)
    if reverse:
        return rows[::-1], won[::-1], path
    return rows, won, path[::-1]


def assert_scan(
    semiring: sr.Semiring, matrices: Values, initial: Values, weights: Values | None, *, reverse: bool, witness: bool, **options: Any
) -> None:
    """A scan of one sequence is what is defined."""
    found = sr.scan(
        squeeze(matrices), semiring, squeeze(initial), weights=weights and squeeze(weights), reverse=reverse, witness=witness, **options
    )
    a, v, w = numbers(semiring, matrices), numbers(semiring, initial), None if weights is None else numbers(semiring, weights)
    rows, won, path = defined(semiring, a, v, w, reverse=reverse)
    values = found.values if witness else found
    values = values if isinstance(values, tuple) else (values,)
    shape = (len(matrices[0]) + 1, len(initial[0]))
    assert all(x.shape == shape and x.dtype == y.dtype for x, y in zip(values, initial, strict=True))
    close = semiring.program.operations & {"exp", "log1p"}
    expected = np.empty(shape, object)
    for t, s in np.ndindex(*shape):
        expected[t, s] = rows[t][s]
    result = numbers(semiring, values)
    if close:
        eps = float(np.finfo(values[0].dtype).eps)
        np.testing.assert_allclose(result.astype(float), expected.astype(float), rtol=40 * eps, atol=40 * eps)
    else:
        assert result.tolist() == expected.tolist()
    if witness:
        assert found.witness.tolist() == won
        assert found.states.tolist() == path


@pytest.mark.sampled(11)
@pytest.mark.parametrize(
    ("semiring", "dtypes", "reverse"),
    [  # both directions of a semiring, and one of each dtype: each is code that is compiled
        (semiring, dtypes, reverse)
        for i, (semiring, dtypes) in enumerate(CASES)
        for reverse in (False, True)
        if reverse == i % 2 or dtypes[0] == semiring.supported_dtypes[0]
    ],
    ids=lambda x: ("forward", "backward")[x] if isinstance(x, bool) else name(x),
)
def test_all_semirings_and_dtypes(semiring: sr.Semiring, dtypes: DTypes, reverse: bool) -> None:
    rng = np.random.default_rng(7)
    for states, steps in ((1, 3), (5, 4), (17, 3), (0, 2), (3, 0)):
        matrices = elements(semiring, dtypes, (steps, states, states), rng)
        weights = elements(semiring, dtypes, (steps, states), rng) if states != 5 or dtypes[0].itemsize != 4 else None
        initial = elements(semiring, dtypes, (states,), rng)
        if semiring.name == "plus-times" and dtypes[0].kind in "iu":  # which a few steps leave
            matrices, initial = (tuple((v != 0).astype(v.dtype) for v in x) for x in (matrices, initial))
            if dtypes[0].itemsize == 1 or states == 17:
                continue
            weights = weights and tuple(np.ones_like(v) for v in weights)
        if semiring.name == "max-times" and dtypes[0].itemsize == 1:
            matrices, initial = (tuple(np.minimum(v, 1) for v in x) for x in (matrices, initial))
            weights = weights and tuple(np.minimum(v, 1) for v in weights)
        selective = is_selective(semiring, dtypes)
        try:
            assert_scan(semiring, matrices, initial, weights, reverse=reverse, witness=selective)
        except sr.OverflowRiskError:
            assert dtypes[0].kind in "iu"
            assert dtypes[0].itemsize <= 2


@pytest.mark.sampled(6)
@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("semiring", [sr.LOG, sr.MAX_PLUS, sr.MIN_MAX, sr.PLUS_TIMES, sr.DISTANCE_COUNT], ids=name)
def test_the_instruction_sets_agree(semiring: sr.Semiring, isa: str) -> None:
    """With every way through the kernel: several registers, one, and what hangs over."""
    rng = np.random.default_rng(1)
    dtypes = (np.dtype(np.float32),) if semiring.components == 1 else (np.dtype(np.float32), np.dtype(np.int32))
    for states, reverse in itertools.product(WIDTHS, (False, True)):
        matrices, initial = elements(semiring, dtypes, (2, states, states), rng), elements(semiring, dtypes, (states,), rng)
        weights = elements(semiring, dtypes, (2, states), rng)
        if semiring.components > 1:
            matrices, initial, weights = ((x[0], np.minimum(x[1], 1)) for x in (matrices, initial, weights))
        expected = sr.scan(squeeze(matrices), semiring, squeeze(initial), weights=squeeze(weights), reverse=reverse, device="reference")
        expected = expected if isinstance(expected, tuple) else (expected,)
        operands = ScanOperands(matrices, weights, initial, np.array(2), 2, states)
        places = ScanPlaces(tuple(np.empty_like(v) for v in expected))
        CpuScans(semiring, dtypes, 1, isa).run(operands, places, backward=reverse, signed=True)
        for x, y in zip(places.values, expected, strict=True):
            np.testing.assert_allclose(x, y, rtol=1e-5, atol=1e-6)


@examples(30)
@given(st.data())
def test_any_shape_layout_and_lengths(data: st.DataObject) -> None:
    """Batches of broadcast, strided, reversed operands are what their sequences are alone, cut to their lengths."""
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    states, steps = data.draw(st.sampled_from([1, 3, 9])), data.draw(st.integers(1, 5))
    batch = data.draw(st.sampled_from([(), (3,), (2, 3), (0,)]))
    semiring = data.draw(st.sampled_from([sr.MAX_PLUS, sr.MIN_PLUS, sr.LOG]))
    reverse, last, witness = (data.draw(st.booleans()) for _ in range(3))
    witness = witness and semiring is not sr.LOG

    def array(*shape: int) -> Any:
        v = rng.integers(-4, 4, (*shape, 2)).astype(data.draw(st.sampled_from(["f4", "f8", "i4"])) if semiring is not sr.LOG else "f8")
        v = v[..., 1] if data.draw(st.booleans()) else v[..., 0].copy()
        axis = data.draw(st.integers(0, v.ndim - 1))
        return np.flip(v, axis) if data.draw(st.booleans()) else np.moveaxis(np.moveaxis(v, axis, 0).copy(), 0, axis)

    def leading() -> tuple[int, ...]:
        kept = batch[data.draw(st.integers(0, len(batch))) :]
        return tuple(data.draw(st.sampled_from([1, n])) for n in kept)

    matrices = (
        array(states, states) if data.draw(st.booleans()) else array(*leading(), data.draw(st.sampled_from([1, steps])), states, states)
    )
    told = matrices.ndim > 2 and matrices.shape[-3] == steps
    weights = None if told and data.draw(st.booleans()) else array(*leading(), steps, states)
    initial = array(*leading(), states) if data.draw(st.booleans()) else None
    lengths = rng.integers(0, steps + 1, batch)
    options: dict[str, Any] = {"reverse": reverse, "last": last, "witness": witness}
    found = sr.scan(matrices, semiring, initial, weights=weights, lengths=lengths, threads=data.draw(st.sampled_from([1, 3])), **options)
    whole = np.broadcast_to(matrices, (*batch, steps, states, states))
    weighed = None if weights is None else np.broadcast_to(weights, (*batch, steps, states))
    begin = None if initial is None else np.broadcast_to(initial, (*batch, states))
    values = found.values if witness else found
    zero = semiring.identities((values.dtype,))[0][0]
    assert values.shape == ((*batch, states) if last else (*batch, steps + 1, states))
    for index in np.ndindex(*batch):
        n = lengths[index]
        alone = sr.scan(
            whole[index][:n].astype(values.dtype),
            semiring,
            None if begin is None else begin[index],
            weights=None if weighed is None else weighed[index][:n],
            device="reference",
            **options,
        )
        result = alone.values if witness else alone
        if last:
            np.testing.assert_allclose(values[index], result, rtol=1e-12)
        else:
            np.testing.assert_allclose(values[index][: n + 1], result, rtol=1e-12)
            assert (values[index][n + 1 :] == zero).all()
        if witness:
            assert found.witness[index][: n + 1].tolist() == alone.witness.tolist()
            assert found.states[index][: n + 1].tolist() == alone.states.tolist()
            assert (found.witness[index][n + 1 :] == -1).all()
            assert (found.states[index][n + 1 :] == -1).all()


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("spread", [1, 40, 3000])
def test_log_is_as_exact_as_its_products(dtype: str, spread: float) -> None:
    """Each step to (4 + √k)·ε·max(1, |r|), whatever the spread, −∞ included."""
    rng = np.random.default_rng(3)
    states = 23
    a = (spread * rng.normal(size=(4, states, states))).astype(dtype)
    a[rng.random(a.shape) < 0.2] = -INF
    a[1, :, 5] = -INF
    v = (spread * rng.normal(size=states)).astype(dtype)
    found = sr.scan(a, sr.LOG, v)
    bound = (4 + math.sqrt(states)) * float(np.finfo(dtype).eps)
    with mpmath.workprec(200):
        for t, matrix in enumerate(a):
            for j in range(states):
                terms = [
                    mpmath.exp(mpmath.mpf(float(x)) + mpmath.mpf(float(y)))
                    for x, y in zip(found[t], matrix[:, j], strict=True)
                    if x > -INF < y
                ]
                exact = float(mpmath.log(mpmath.fsum(terms))) if terms else -INF
                assert found[t + 1, j] == exact or abs(found[t + 1, j] - exact) <= bound * max(1, abs(exact))


@pytest.mark.parametrize("backward", [False, True], ids=["forward", "backward"])
@pytest.mark.parametrize("semiring", [sr.LOG, sr.PLUS_TIMES, sr.MIN_PLUS, sr.MAX_MIN], ids=name)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_added_vectors(semiring: sr.Semiring, dtype: str, backward: bool) -> None:
    """Each vector after the initial one joins another by ⊕, compiled and by products."""
    rng = np.random.default_rng(8)
    dtypes, steps, lengths = (np.dtype(dtype),), 4, np.array([4, 2])
    for states, weighted in itertools.product((1, 3, 16, 33), (False, True)):
        (a,), (w,), (v,), (u,) = (
            elements(semiring, dtypes, shape, rng) for shape in ((states, states), (2, steps, states), (states,), (2, steps + 1, states))
        )
        operands = ScanOperands((a,), (w,) if weighted else None, (v,), lengths, steps, states, (u,))
        found = []
        for scans in (CpuScans(semiring, dtypes, 1), None):
            places = ScanPlaces((np.empty((2, steps + 1, states), dtype),))
            scan(engine_for(semiring, dtypes, "reference"), scans, operands, places, backward=backward)
            found.append(places.values[0])
        np.testing.assert_allclose(found[0], found[1], rtol=1e-5, atol=1e-5)
        for b, length in enumerate(lengths):
            start, first = (length, length - 1) if backward else (0, 1)
            one = sr.scan(a, semiring, v, weights=w[b, first if backward else 0, None] if weighted else None, lengths=1, reverse=backward)
            joined = sr.matmul(np.stack([one[0 if backward else 1], u[b, first]], 1), np.full(2, semiring.one, dtype), semiring)
            np.testing.assert_array_equal(found[0][b, start], v)
            np.testing.assert_allclose(found[0][b, first], joined, rtol=1e-5, atol=1e-5)


def test_forward_and_backward_of_a_hidden_markov_model() -> None:
    """SciPy's logsumexp step by step; and α ⊗ β has the same sum at each time."""
    rng = np.random.default_rng(0)
    states, steps = 6, 200
    a, pi = np.log(rng.dirichlet(np.ones(states), states)), np.log(rng.dirichlet(np.ones(states)))
    seen = np.log(rng.random((steps, states)))
    alpha, beta = sr.scan(a, sr.LOG, pi, weights=seen), sr.scan(a, sr.LOG, weights=seen, reverse=True)
    v = pi
    for t in range(steps):
        v = logsumexp(v[:, None] + a, axis=0) + seen[t]
        np.testing.assert_allclose(alpha[t + 1], v, rtol=1e-13)
    likelihood: Any = logsumexp(alpha + beta, axis=1)
    total: Any = logsumexp(alpha[-1])
    np.testing.assert_allclose(likelihood, total, rtol=1e-13)
    np.testing.assert_array_equal(sr.scan(a, sr.LOG, pi, weights=seen, last=True), alpha[-1])


@pytest.mark.sampled(18)
@pytest.mark.parametrize("dtype", ["float32", "float64", "int16"])
@pytest.mark.parametrize("states", [*range(1, 10), 15, 16, 17, 20, 31, 33, 64, 71])
def test_a_matrix_a_step_in_any_order_of_time_and_memory(states: int, dtype: str) -> None:
    """Matrices are transposed by squares, whose edges lie elsewhere for each number of states."""
    rng = np.random.default_rng(states)
    matrices, start = rng.integers(0, 99, (5, states, states)).astype(dtype), np.zeros(states, dtype)
    for a in (matrices, matrices[::-1], matrices.transpose(0, 2, 1), matrices.transpose(1, 2, 0).copy().transpose(2, 0, 1)):
        forward, backward = [start], [start]
        for step in a:
            forward.append((forward[-1][:, None] + step).min(0))
        for step in a[::-1]:
            backward.append((step + backward[-1]).min(1))
        np.testing.assert_array_equal(sr.scan(a, sr.MIN_PLUS, start), forward)
        np.testing.assert_array_equal(sr.scan(a, sr.MIN_PLUS, start, reverse=True), backward[::-1])


def test_viterbi_is_the_best_of_all_sequences() -> None:
    rng = np.random.default_rng(5)
    states, steps = 3, 4
    a, pi, seen = rng.integers(-9, 9, (states, states)), rng.integers(-9, 9, states), rng.integers(-9, 9, (steps, states))

    def weight(path: tuple[int, ...]) -> int:
        return int(pi[path[0]] + sum(a[i, j] + w[j] for (i, j), w in zip(itertools.pairwise(path), seen, strict=True)))

    best = max(weight(path) for path in itertools.product(range(states), repeat=steps + 1))
    for reverse in (False, True):
        start = np.zeros(states, int) if reverse else pi
        first = a if not reverse else np.concatenate([(pi[:, None] + a)[None], np.broadcast_to(a, (steps - 1, states, states))])
        found = sr.scan(first, sr.MAX_PLUS, start, weights=seen, witness=True, reverse=reverse, last=True)
        assert weight(tuple(found.states)) == best == found.values.max()


def test_a_sequence_that_ends_nowhere_has_no_states() -> None:
    a = np.full((3, 2, 2), -INF)
    found = sr.scan(a, "max-plus", witness=True)
    assert found.states.tolist() == [-1] * 4
    assert (found.witness == -1).all()
    integers = sr.scan(np.full((3, 2, 2), np.iinfo("i4").max, "i4"), "min-plus", np.array([-5, 3], "i4"), witness=True)
    assert integers.states.tolist() == [-1] * 4
    assert (integers.values[1:] == np.iinfo("i4").max).all()


def test_products_of_matrices_are_scans_from_the_identity() -> None:
    rng = np.random.default_rng(2)
    a = rng.integers(0, 9, (5, 4, 4)).astype(float)
    identity = np.where(np.eye(4) == 1, 0, INF)
    found, product = sr.scan(a, sr.MIN_PLUS, identity), identity
    for t, matrix in enumerate(a):
        product = sr.matmul(product, matrix, sr.MIN_PLUS)
        np.testing.assert_array_equal(found[:, t + 1], product)


def test_exact_numbers_and_a_semiring_that_does_not_commute() -> None:
    """Strings: ⊗ appends, ⊕ takes the first of the shortest."""
    halves = np.array([[Fraction(1, 2), Fraction(1, 2)], [Fraction(1, 3), Fraction(2, 3)]], object)
    assert sr.scan(halves, sr.PLUS_TIMES, [Fraction(1), Fraction(0)], lengths=2)[2].tolist() == [Fraction(5, 12), Fraction(7, 12)]
    words = sr.Semiring(
        "words",
        lambda a, b: (min(a[0], b[0]), a[1] if a[0] <= b[0] else b[1]),
        lambda a, b: (a[0] + b[0], 10 * a[1] + b[1]),
        (INF, 0),
        (0, 0),
    )
    steps = np.zeros((2, 1, 1)), np.array([1, 2]).reshape(2, 1, 1)
    weights = np.zeros((2, 1)), np.array([[3], [4]])
    forward = sr.scan(steps, words, (np.zeros(1), np.full(1, 7)), weights=weights)
    assert forward[1][:, 0].tolist() == [7, 7 * 100 + 13, 71324]
    backward = sr.scan(steps, words, (np.zeros(1), np.full(1, 7)), weights=weights, reverse=True, check=False)
    reference = sr.scan(steps, words, (np.zeros(1), np.full(1, 7)), weights=weights, reverse=True, device="reference", check=False)
    assert backward[1].tolist() == reference[1].tolist()


def test_a_semiring_of_ones_own() -> None:
    probit = sr.Semiring("mine", max, lambda a, b: ops.log(ops.exp(a) * ops.exp(b)), -INF, 0)
    rng = np.random.default_rng(0)
    a, w = rng.normal(size=(3, 11, 11)), rng.normal(size=(3, 11))
    found, expected = sr.scan(a, probit, weights=w, witness=True), sr.scan(a, sr.MAX_PLUS, weights=w, witness=True)
    np.testing.assert_allclose(found.values, expected.values, rtol=1e-12)
    assert found.states.tolist() == expected.states.tolist()


@pytest.mark.sampled(2)
@pytest.mark.parametrize("dtype", ["i2", "i4", "i8", "u2"])
def test_integers_never_wrap(dtype: str) -> None:
    limit = np.iinfo(dtype).max // 2
    a = np.zeros((10, 2, 2), dtype)
    a[:, 0, 0] = (limit - 1) // 10
    exact = sr.scan(a.astype(object), sr.MAX_PLUS if dtype[0] == "i" else sr.MIN_PLUS)
    semiring = sr.MIN_PLUS
    assert sr.scan(a, semiring)[-1].tolist() == sr.scan(a.astype(object), semiring)[-1].tolist()
    a[:, 0, 0] += 1
    with pytest.raises(sr.OverflowRiskError, match="10 steps may reach"):
        sr.scan(a, semiring)
    assert exact.shape == (11, 2)
    with pytest.raises(sr.OverflowRiskError, match="inside the product may reach"):
        sr.scan(np.full((2, 2), 3, dtype), sr.PLUS_TIMES, lengths=100)
    assert sr.scan(np.eye(2, dtype=dtype), sr.PLUS_TIMES, np.array([3, 4], dtype), lengths=2)[-1].tolist() == [3, 4]


def test_floats_that_could_overflow_are_refused() -> None:
    with pytest.raises(sr.OverflowRiskError, match="could overflow"):
        sr.scan(np.full((2, 2), 1e300), sr.MAX_TIMES, lengths=2)
    with pytest.raises(sr.OverflowRiskError, match="could overflow"):
        sr.scan(np.full((2, 2), np.float32(1e37)), sr.MIN_PLUS, lengths=100)
    assert sr.scan(np.full((2, 2), np.float32(1e37)), sr.MIN_PLUS, lengths=10).max() < INF
    assert sr.scan(np.full((2, 2), 0.5), sr.MAX_TIMES, lengths=20_000)[-1].tolist() == [0, 0]


def test_what_lies_beyond_a_sequence_is_not_looked_at() -> None:
    w = np.zeros((2, 3, 2))
    w[0, 2] = np.nan
    found = sr.scan(np.zeros((2, 2)), sr.MAX_PLUS, weights=w, lengths=[2, 3], witness=True)
    assert not np.isnan(found.values).any()
    assert found.states.tolist() == [[0, 0, 0, -1], [0, 0, 0, 0]]
    w[0, 1] = np.nan
    with pytest.raises(sr.DomainError, match=r"weights of sequence 0\[1, 0\] = nan"):
        sr.scan(np.zeros((2, 2)), sr.MAX_PLUS, weights=w, lengths=[2, 3])
    a = np.zeros((3, 2, 2))
    a[2] = INF
    assert sr.scan(a, sr.MAX_PLUS, lengths=[1, 2]).max() == 0
    with pytest.raises(sr.DomainError, match=r"matrices\[2, 0, 0\] = inf"):
        sr.scan(a, sr.MAX_PLUS)


@pytest.mark.parametrize(
    ("error", "match", "arguments", "options"),
    [
        (sr.ShapeError, "one matrix does not tell", (np.eye(2), "log"), {}),
        (sr.ShapeError, "must be square", (np.ones((3, 2, 3)), "log"), {}),
        (sr.ShapeError, "must be square", (np.ones(3), "log"), {}),
        (sr.ShapeError, "a row of 2 states", (np.eye(2), "log"), {"weights": np.ones((3, 3))}),
        (sr.ShapeError, "initial must be a vector of 2", (np.eye(2), "log", np.ones(3)), {"lengths": 3}),
        (sr.ShapeError, "differ in their number of steps", (np.ones((3, 2, 2)), "log"), {"weights": np.ones((4, 2))}),
        (sr.ShapeError, "do not broadcast", (np.ones((2, 3, 2, 2)), "log"), {"weights": np.ones((4, 3, 2))}),
        (sr.ShapeError, "lengths must be from 0 to 3", (np.ones((3, 2, 2)), "log"), {"lengths": 4}),
        (sr.ShapeError, f"they are from 1 to {2**63}", (np.ones((3, 2, 2)), "log"), {"lengths": np.array([1, 2**63], np.uint64)}),
        (sr.ShapeError, f"they are from {-(10**30)} to 1", (np.ones((3, 2, 2)), "log"), {"lengths": [1, -(10**30)]}),
        (sr.TooLargeError, f"lengths reach {2**63}, and", (np.eye(2), "log"), {"lengths": 2**63}),
        (sr.TooLargeError, f"lengths reach {10**30}, and", (np.eye(2), "log"), {"lengths": 10**30}),
        (sr.ShapeError, "lengths must be from 0 to 3", (np.ones((3, 2, 2)), "log"), {"lengths": [1, -1]}),
        (
            sr.ShapeError,
            r"lengths must be from 0 to 1, .*; one matrix for all steps has the shape \(S, S\)",
            (np.ones((1, 2, 2)), "log"),
            {"lengths": 3},
        ),
        (sr.TooLargeError, "the answer takes .* or last=True", (np.eye(2), "max-plus"), {"lengths": 10**13}),
        (sr.DTypeError, "lengths must be integers", (np.ones((3, 2, 2)), "log"), {"lengths": 1.5}),
        (sr.LawError, "selective", (np.ones((3, 2, 2)), "log"), {"witness": True}),
        (sr.DTypeError, "log", (np.ones((3, 2, 2), int), "log"), {}),
        (sr.DomainError, r"initial\[1\] = nan", (np.ones((3, 2, 2)), "max-plus", [0.0, math.nan]), {}),
        (sr.ShapeError, "tuple of 2 arrays", (np.ones((3, 2, 2)), "distance-count"), {}),
        (sr.SemiringError, "unknown device", (np.ones((3, 2, 2)), "log"), {"device": "tpu"}),
    ],
)
def test_what_does_not_fit_is_refused(error: type[Exception], match: str, arguments: tuple[Any, ...], options: dict[str, Any]) -> None:
    with pytest.raises(error, match=match):
        sr.scan(*arguments, **options)


def test_bits_do_not_depend_on_threads_and_operands_stay_as_they_are() -> None:
    rng = np.random.default_rng(4)
    a, w = rng.normal(size=(16, 16)), rng.normal(size=(64, 50, 16))
    a.flags.writeable = w.flags.writeable = False
    one, many = (sr.scan(a, sr.LOG, weights=w, threads=threads) for threads in (1, 5))
    assert one.tobytes() == many.tobytes()


def test_kinds_of_arrays() -> None:
    torch = pytest.importorskip("torch")
    a = torch.zeros(3, 2, 2)
    found = sr.scan(a, sr.MAX_PLUS, witness=True)
    assert all(isinstance(v, torch.Tensor) for v in found)
    assert sr.scan([[[0.0, 1.0], [2.0, 0.0]]], "min-plus").tolist() == [[0, 0], [0, 0]]


@pytest.mark.gpu
@pytest.mark.parametrize("reverse", [False, True], ids=["forward", "backward"])
@pytest.mark.parametrize(
    ("semiring", "dtype"),
    [(sr.LOG, "f4"), (sr.MAX_PLUS, "f8"), (sr.MIN_PLUS, "i4"), (sr.MAX_MIN, "f4"), (sr.BOOLEAN, "?"), (sr.DISTANCE_HOPS, "i4")],
    ids=str,
)
def test_a_gpu_gives_what_the_host_does(semiring: sr.Semiring, dtype: str, reverse: bool) -> None:
    import cupy

    rng = np.random.default_rng(3)
    dtypes = (np.dtype(dtype),) * semiring.components
    steps, states, batch = 4, 9, 3
    matrices, weights = elements(semiring, dtypes, (steps, states, states), rng), elements(semiring, dtypes, (batch, steps, states), rng)
    initial = elements(semiring, dtypes, (states,), rng)
    for last, witness in itertools.product((False, True), (False, is_selective(semiring, dtypes))):
        options: dict[str, Any] = {"lengths": [4, 0, 2], "reverse": reverse, "last": last, "witness": witness}
        expected = sr.scan(squeeze(matrices), semiring, squeeze(initial), weights=squeeze(weights), **options)
        there = [squeeze(tuple(map(cupy.asarray, x))) for x in (matrices, initial, weights)]
        found = sr.scan(there[0], semiring, there[1], weights=there[2], **options)
        sent = sr.scan(squeeze(matrices), semiring, squeeze(initial), weights=squeeze(weights), device="cuda", **options)
        for results, kind in ((found, cupy.ndarray), (sent, np.ndarray)):
            pairs = zip(results, expected, strict=True) if witness else [(results, expected)]
            for x, y in pairs:
                for part, want in zip(*((v if isinstance(v, tuple) else (v,)) for v in (x, y)), strict=True):
                    assert isinstance(part, kind)
                    np.testing.assert_allclose(cupy.asnumpy(part), want, rtol=1e-5, atol=1e-6)


def test_an_infinite_logarithm_stays_one_where_nothing_is_looked_for() -> None:
    found = sr.scan(np.zeros((3, 3)), sr.LOG, [0.0, 0.0, np.inf], weights=np.zeros((1, 3)), check=False, device="cpu")
    np.testing.assert_array_equal(found[1], np.inf)
