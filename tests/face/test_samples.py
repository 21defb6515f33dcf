"""Samples of sequences of states: their frequencies against the posterior of all sequences."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest

import semiring as sr
from semiring.algebra import ops

SOFT = sr.Semiring("soft-min", lambda a, b: -ops.logaddexp(-2 * a, -2 * b) / 2, lambda a, b: a + b, math.inf, 0)
STATES, STEPS, DRAWS = 3, 3, 20_000


def model(per_step: bool, seed: int = 0) -> tuple[Any, Any, Any]:
    """A hidden Markov model of probabilities: matrices, weights and initial vector; one transition is impossible."""
    rng = np.random.default_rng(seed)
    switch = rng.dirichlet(np.ones(STATES), (STEPS, STATES) if per_step else STATES)
    switch[..., 1, 2] = 0
    return switch, rng.random((STEPS, STATES)), rng.dirichlet(np.ones(STATES))


def posterior(switch: Any, seen: Any, start: Any, length: int = STEPS) -> dict[tuple[int, ...], float]:
    """The probability of each sequence of states."""
    found = {}
    for path in itertools.product(range(STATES), repeat=length + 1):
        matrices = [switch if switch.ndim == 2 else switch[t] for t in range(length)]
        steps = [matrices[t][i, j] * seen[t, j] for t, (i, j) in enumerate(itertools.pairwise(path))]
        found[path] = float(start[path[0]] * math.prod(steps))
    total = sum(found.values())
    return {path: p / total for path, p in found.items()}


def logs(semiring: sr.Semiring, *parts: Any) -> list[Any]:
    """Probabilities as elements of the semiring."""
    scale = semiring.program.exponential
    with np.errstate(divide="ignore"):
        return [x if scale is None else np.log(x) / float(scale) for x in parts]


def assert_frequencies(states: Any, expected: dict[tuple[int, ...], float]) -> None:
    """Within six standard deviations, and nothing impossible."""
    found, counts = np.unique(states, axis=0, return_counts=True)
    counted = dict(zip(map(tuple, found.tolist()), counts.tolist(), strict=True))
    assert set(counted) <= {path for path, p in expected.items() if p > 0}
    for path, p in expected.items():
        assert abs(counted.get(path, 0) - len(states) * p) <= 6 * math.sqrt(len(states) * p * (1 - p)) + 1


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("reverse", [False, True], ids=["forward", "reverse"])
@pytest.mark.parametrize("per_step", [False, True], ids=["shared", "each"])
@pytest.mark.parametrize("semiring", [sr.LOG, sr.PLUS_TIMES, SOFT], ids=lambda s: s.name)
def test_frequencies(semiring: sr.Semiring, per_step: bool, reverse: bool, dtype: str) -> None:
    switch, seen, start = model(per_step)
    a, w, v = (x.astype(dtype) for x in logs(semiring, switch, seen, start))
    if reverse:  # the initial vector is that of the end, and the first state has no other weight
        many = np.broadcast_to(np.full(STATES, semiring.one, dtype), (DRAWS, STATES))
        expected = posterior(switch, seen, np.ones(STATES))
    else:
        many, expected = np.broadcast_to(v, (DRAWS, STATES)), posterior(switch, seen, start)
    found = sr.scan(a, semiring, many, weights=w, sample=np.random.default_rng(5), reverse=reverse)
    assert found.states.shape == (DRAWS, STEPS + 1)
    assert found.states.dtype == np.int32
    np.testing.assert_array_equal(found.values, sr.scan(a, semiring, many, weights=w, reverse=reverse))
    assert_frequencies(found.states, expected)


@pytest.mark.parametrize("reverse", [False, True], ids=["forward", "reverse"])
def test_lengths(reverse: bool) -> None:
    switch, seen, start = model(per_step=False, seed=1)
    a, w, v = logs(sr.LOG, switch, seen, start)
    lengths = np.arange(DRAWS) % (STEPS + 1)
    first = np.zeros(STATES) if reverse else v
    found = sr.scan(a, sr.LOG, first, weights=w, lengths=lengths, sample=3, reverse=reverse)
    last = sr.scan(a, sr.LOG, first, weights=w, lengths=lengths, sample=3, reverse=reverse, last=True)
    assert np.array_equal(found.states, last.states)
    ends = np.zeros_like(lengths) if reverse else lengths
    assert np.array_equal(last.values, found.values[np.arange(DRAWS), ends])
    for length in range(STEPS + 1):
        states = found.states[lengths == length]
        assert (states[:, length + 1 :] == -1).all()
        assert_frequencies(states[:, : length + 1], posterior(switch, seen, np.ones(STATES) if reverse else start, length))


@pytest.mark.parametrize("reverse", [False, True], ids=["forward", "reverse"])
@pytest.mark.parametrize("semiring", [sr.LOG, sr.PLUS_TIMES], ids=lambda s: s.name)
def test_no_sequence_has_no_states(semiring: sr.Semiring, reverse: bool) -> None:
    switch, seen, start = model(per_step=False)
    seen = np.stack([seen, seen, seen])
    seen[1, 1] = 0
    a, w, v = logs(semiring, switch, seen, start)
    found = sr.scan(a, semiring, v, weights=w, sample=0, reverse=reverse)
    assert (found.states[1] == -1).all()
    assert (found.states[[0, 2]] >= 0).all()


def test_seeds() -> None:
    a, w, v = logs(sr.LOG, *model(per_step=False))
    many = np.broadcast_to(v, (50, STATES))
    first = sr.scan(a, sr.LOG, many, weights=w, sample=11).states
    assert np.array_equal(first, sr.scan(a, sr.LOG, many, weights=w, sample=np.random.default_rng(11)).states)
    assert not np.array_equal(first, sr.scan(a, sr.LOG, many, weights=w, sample=12).states)
    rng = np.random.default_rng(11)
    assert not np.array_equal(*(sr.scan(a, sr.LOG, many, weights=w, sample=rng).states for _ in range(2)))


def test_wide_ranges_and_sizes() -> None:
    rng = np.random.default_rng(0)
    scores = 1000 * rng.normal(size=(2, 40, 5, 5))
    found = sr.scan(scores, sr.LOG, sample=1)
    best = sr.scan(scores, sr.MAX_PLUS, witness=True)
    assert np.array_equal(found.states, best.states)  # which has nearly all of the probability
    for shape in ((0, 3, 3), (2, 0, 0), (0, 0, 0)):
        states = sr.scan(np.zeros(shape), sr.LOG, sample=1).states
        assert states.shape == (shape[0] + 1,)
        assert (states >= 0).all() == (shape[1] > 0)
    assert sr.scan(np.zeros((0, 4, 3, 3)), sr.LOG, sample=1).states.shape == (0, 5)


def test_tensors() -> None:
    torch = pytest.importorskip("torch")
    a, w, v = logs(sr.LOG, *model(per_step=False))
    tensors = list(map(torch.from_numpy, (a, w, v)))
    found = sr.scan(tensors[0], sr.LOG, tensors[2], weights=tensors[1], sample=4)
    assert torch.equal(found.states, torch.from_numpy(sr.scan(a, sr.LOG, v, weights=w, sample=4).states))
    with pytest.raises(sr.GraphError, match=r"samples do not propagate; pass \.detach\(\)"):
        sr.scan(tensors[0].requires_grad_(), sr.LOG, tensors[2], weights=tensors[1], sample=4)


@pytest.mark.gpu
@pytest.mark.parametrize("reverse", [False, True], ids=["forward", "reverse"])
@pytest.mark.parametrize("semiring", [sr.LOG, sr.PLUS_TIMES], ids=lambda s: s.name)
def test_on_a_gpu(semiring: sr.Semiring, reverse: bool) -> None:
    import cupy

    for per_step in (False, True):
        a, w, v = map(cupy.asarray, logs(semiring, *model(per_step)))
        many = cupy.broadcast_to(v, (DRAWS, STATES))
        lengths = np.arange(DRAWS) % (STEPS + 1)
        found = sr.scan(a, semiring, many, weights=w, lengths=lengths, sample=2, reverse=reverse).states
        host = sr.scan(a.get(), semiring, many.get(), weights=w.get(), lengths=lengths, sample=2, reverse=reverse).states
        assert (cupy.asnumpy(found) != host).mean() < 1e-3  # an exponential may be rounded another way


def test_refused() -> None:
    a = np.ones((2, 2))
    for semiring in (sr.MAX_PLUS, sr.MAX_TIMES, sr.BOOLEAN):
        with pytest.raises(sr.LawError, match="has no samples"):
            sr.scan(a, semiring, lengths=2, sample=1)
    with pytest.raises(sr.DomainError, match="an entry is negative"):
        sr.scan(-a, sr.PLUS_TIMES, lengths=2, sample=1)
    with pytest.raises(sr.SemiringError, match="one of the two"):
        sr.scan(a, sr.MAX_PLUS, lengths=2, sample=1, witness=True)
    for wrong in (True, -1, 1.5, "1"):
        with pytest.raises(sr.SemiringError, match=r"must be a numpy\.random\.Generator, or an integer"):
            sr.scan(a, sr.LOG, lengths=2, sample=wrong)
