"""Contractions, against NumPy's einsum, opt_einsum's own examples and the definition."""

from __future__ import annotations

import functools
import importlib
import itertools
import sys
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import semiring as sr
from semiring.algorithms.contraction import as_text, from_lists, left_to_right, parsed, steps
from semiring.kernels.operations import operations_for

INF = np.inf

PATTERNS = [
    "ij,jk->ik", "ij,jk", "ij,kj->ik", "ji,jk->ki", "ij->ji", "ij->", "ij->i", "ij->j", "ii->i", "ii->", "ii", "iij->j", "iji,j->i",
    "i,i->", "i,i->i", "i,j->ij", "i,j->ji", "bij,bjk->bik", "bij,bjk->ik", "bij,cjk->bcik", "ijk,kl->ijl", "ijk,jik->k", "ij,jk,kl->il",
    "ab,bc,cd,da->", "ab,bc,ca->abc", "a,b,c->cba", "...ij,...jk->...ik", "...i,i->...", "i...,i...->...", "...", "...,...", "ij,ij->ij",
    "ij,ij->ji", "ijk->kij", "a,ab,abc->abc", "ab,ab,c->c", ",ij->ij", "ij,->", "abcd,dc->ab",
]  # fmt: skip


def drawn(pattern: str, seed: int, *, most: int = 4, free: tuple[int, ...] = (2, 3)) -> list[Any]:
    """Operands of small integers for a pattern; the axes of an ellipsis are `free`."""
    rng = np.random.default_rng(seed)
    lengths: dict[str, int] = {}
    operands = []
    for term in pattern.partition("->")[0].split(","):
        letters = term.replace("...", "\0")
        shape = [n for x in letters for n in (free if x == "\0" else [lengths.setdefault(x, int(rng.integers(1, most + 1)))])]
        operands.append(rng.integers(0, 5, shape).astype(float))
    return operands


def by_definition(pattern: str, operands: list[Any], semiring: Any) -> Any:
    """⊕ over all values of all summed indices, one after the other."""
    contraction = parsed(pattern, [v.shape for v in operands])
    operations = operations_for(semiring, (np.dtype(float),))
    summed = [i for i in contraction.lengths if i not in contraction.output]
    found = np.full(contraction.shape(contraction.output), semiring.identities((np.dtype(float),))[0][0])
    for values in itertools.product(*(range(contraction.lengths[i]) for i in contraction.output)):
        for more in itertools.product(*(range(contraction.lengths[i]) for i in summed)):
            at = dict(zip((*contraction.output, *summed), (*values, *more), strict=True))
            terms = []
            for v, indices in zip(operands, contraction.inputs, strict=True):
                terms.append(v[tuple(at[i] if n > 1 else 0 for i, n in zip(indices, v.shape, strict=True))])
            term = functools.reduce(lambda x, y: operations.mul((x,), (y,))[0], terms)
            found[values] = operations.add((found[values],), (term,))[0]
    return found


@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize("optimize", ["auto", False, "optimal"])
def test_plus_times_is_numpys(pattern: str, optimize: Any) -> None:
    for seed in range(4):
        operands = drawn(pattern, seed)
        kept = [v.copy() for v in operands]
        found = sr.einsum(pattern, *operands, semiring=sr.PLUS_TIMES, optimize=optimize)
        expected = np.einsum(pattern, *operands)
        assert np.shape(found) == np.shape(expected)
        np.testing.assert_array_equal(found, expected)
        assert not any(np.shares_memory(found, v) for v in operands)
        for v, w in zip(operands, kept, strict=True):
            np.testing.assert_array_equal(v, w)


@pytest.mark.parametrize("semiring", [sr.MIN_PLUS, sr.MAX_PLUS, sr.MAX_MIN, sr.MAX_TIMES], ids=lambda s: s.name)
@pytest.mark.parametrize("pattern", PATTERNS)
def test_other_semirings_follow_the_definition(pattern: str, semiring: Any) -> None:
    operands = drawn(pattern, 7, most=3, free=(2, 1))
    for v in operands:
        v[v == 4] = semiring.zero
    np.testing.assert_array_equal(sr.einsum(pattern, *operands, semiring=semiring), by_definition(pattern, operands, semiring))


def test_log_sums_exponentials() -> None:
    rng = np.random.default_rng(1)
    a, b, c = rng.normal(size=(4, 5)), rng.normal(size=(5, 6)), rng.normal(size=(6,))
    found = sr.einsum("ij,jk,k->i", a, b, c, semiring=sr.LOG)
    np.testing.assert_allclose(found, np.log(np.einsum("ij,jk,k->i", np.exp(a), np.exp(b), np.exp(c))), rtol=1e-12)


@st.composite
def contractions(draw: Any) -> tuple[str, list[tuple[int, ...]]]:
    """Up to five operands of up to four axes, with repeated and lone indices, and a result of any of the indices."""
    letters = "abcdef"
    lengths = {x: draw(st.integers(0, 3)) for x in letters}
    terms = draw(st.lists(st.text(letters, max_size=4), min_size=1, max_size=5))
    used = sorted(set("".join(terms)))
    output = draw(st.permutations(used))[: draw(st.integers(0, len(used)))]
    return f"{','.join(terms)}->{''.join(output)}", [tuple(lengths[x] for x in term) for term in terms]


@settings(deadline=None, max_examples=150)
@given(contractions(), st.sampled_from(["auto", False, "greedy"]), st.integers(0, 99))
def test_random_contractions(case: tuple[str, list[tuple[int, ...]]], optimize: Any, seed: int) -> None:
    pattern, shapes = case
    rng = np.random.default_rng(seed)
    operands = [rng.integers(0, 3, shape).astype(float) for shape in shapes]
    found = sr.einsum(pattern, *operands, semiring=sr.PLUS_TIMES, optimize=optimize)
    np.testing.assert_array_equal(found, np.einsum(pattern, *operands))
    found = sr.einsum(pattern, *operands, semiring=sr.MIN_PLUS, optimize=optimize)
    np.testing.assert_array_equal(found, by_definition(pattern, operands, sr.MIN_PLUS))


def test_axes_of_length_one_repeat() -> None:
    a, b = np.arange(3.0)[None], np.arange(6.0).reshape(2, 3)
    for pattern in ("ij,ij->ij", "ij,ij->", "ij,ij->i", "...j,...j->..."):
        np.testing.assert_array_equal(sr.einsum(pattern, a, b, semiring=sr.PLUS_TIMES), np.einsum(pattern, np.repeat(a, 2, 0), b))
    np.testing.assert_array_equal(sr.einsum("ii->i", np.arange(3.0)[:, None], semiring=sr.MIN_PLUS), np.arange(3.0))


def test_lists_of_indices() -> None:
    a, b = np.arange(6.0).reshape(2, 3), np.arange(12.0).reshape(3, 4)
    for form in (
        (a, [0, 1], b, [1, 2]),
        (a, [0, 1], b, [1, 2], [2, 0]),
        (a, ["x", "k"], b, ["k", "y"], ["y"]),
        (a, [..., 1], b, [1, ...], [...]),
    ):
        subscripts, operands = from_lists(form)
        if form[1] != [..., 1]:
            np.testing.assert_array_equal(sr.einsum(*form, semiring=sr.PLUS_TIMES), np.einsum(subscripts, *operands))
    assert from_lists([a, [0, 60], [60, 0]])[0] == "AB->BA"


def test_dtypes_and_libraries() -> None:
    a = np.array([[0, 7], [np.iinfo(np.int32).max, 1]], np.int32)
    found = sr.einsum("ij,jk,kl->il", a, a.astype(np.int64), a.astype(np.int16) * 0, semiring=sr.MIN_PLUS)
    assert found.dtype == np.int64
    np.testing.assert_array_equal(sr.einsum("ij->j", a > 0, semiring=sr.BOOLEAN), [True, True])
    hops = sr.einsum("ij,jk->ik", (np.eye(2), np.ones((2, 2))), (np.eye(2), np.ones((2, 2))), semiring=sr.DISTANCE_HOPS)
    assert [v.tolist() for v in hops] == [[[0, 1], [1, 0]], [[2, 2], [2, 2]]]
    strict = pytest.importorskip("array_api_strict")
    x = strict.asarray(np.eye(3))
    assert type(sr.einsum("ij,jk->k", x, x, semiring=sr.MAX_PLUS)) is type(x)


def test_words_keep_their_order() -> None:
    """⊗ of languages does not commute."""
    words = sr.Semiring(
        "languages", add=lambda a, b: a | b, mul=lambda a, b: frozenset(x + y for x in a for y in b), zero=frozenset(), one=frozenset({""})
    )
    letters = np.array([frozenset({x}) for x in "abc"], object)
    with pytest.raises(sr.LawError):
        sr.einsum("i,j,k->ijk", letters, letters, letters, semiring=words, optimize=[(1, 2), (0, 1)])
    found = sr.einsum("i,j,k->kij", letters, letters, letters, semiring=words)
    assert found[2, 0, 1] == frozenset({"abc"})


def test_out_is_written() -> None:
    a, b = np.arange(6.0).reshape(2, 3), np.arange(12.0).reshape(3, 4)
    for out in (np.empty((4, 2)), np.empty((2, 4)).T, np.empty((4, 4))[:, ::2]):
        assert sr.einsum("ij,jk->ki", a, b, semiring=sr.PLUS_TIMES, out=out) is out
        np.testing.assert_array_equal(out, (a @ b).T)
    same = np.arange(9.0).reshape(3, 3)
    expected = same.T @ same
    assert sr.einsum("ji,jk->ik", same, same, semiring=sr.PLUS_TIMES, out=same) is same
    np.testing.assert_array_equal(same, expected)


@pytest.mark.parametrize(
    ("subscripts", "shapes", "kind", "text"),
    [
        ("ij,jk->ik", [(2, 3), (4, 5)], sr.ShapeError, r"index 'j' has length 3 in operand 0 of shape \(2, 3\), and 4 in operand 1"),
        ("ij,jk->ik", [(2, 3)], sr.SemiringError, "describe 2 operands, but 1 array is passed"),
        ("ij->i", [(2, 3, 4)], sr.ShapeError, r"name 2 axes of operand 0, 'ij'; its shape is \(2, 3, 4\)"),
        ("ijk...->i", [(2, 3)], sr.ShapeError, "name 3 or more axes"),
        ("ij->ik", [(2, 3)], sr.SemiringError, "index 'k', which no operand has"),
        ("ij->ii", [(2, 3)], sr.SemiringError, "index 'i' more than once"),
        ("i1->i", [(2, 3)], sr.SemiringError, "have '1'; indices are letters"),
        ("...i->i", [(2, 3)], sr.SemiringError, "the result needs '...' too"),
        ("ii->i", [(2, 3)], sr.ShapeError, "index 'i' has length 2"),
        ("i..j->i", [(2, 3)], sr.SemiringError, "have '.'"),
    ],
)
def test_errors_name_the_index(subscripts: str, shapes: list[tuple[int, ...]], kind: Any, text: str) -> None:
    with pytest.raises(kind, match=text):
        sr.einsum(subscripts, *map(np.ones, shapes), semiring=sr.MIN_PLUS)


def test_other_errors(monkeypatch: pytest.MonkeyPatch) -> None:
    a = np.ones((2, 2))
    with pytest.raises(sr.SemiringError, match="leaves 2 operands instead of one"):
        sr.einsum("ij,jk,kl->il", a, a, a, semiring=sr.MIN_PLUS, optimize=[(0, 1)])
    with pytest.raises(sr.SemiringError, match=r"has the step \(0, 5\) among 3 operands"):
        sr.einsum("ij,jk,kl->il", a, a, a, semiring=sr.MIN_PLUS, optimize=[(0, 5), (0, 1)])
    with pytest.raises(sr.SemiringError, match="or a list of indices after each operand"):
        sr.einsum(a, a, semiring=sr.MIN_PLUS)
    with pytest.raises(sr.GraphError, match="dense arrays"):
        sr.einsum("ij,jk->ik", pytest.importorskip("scipy.sparse").eye_array(2), a, semiring=sr.MIN_PLUS)
    with pytest.raises(sr.OverflowRiskError):
        sr.einsum("i,j,k->ijk", *[np.full(2, 2**29, np.int32)] * 3, semiring=sr.MIN_PLUS)
    averages = sr.Semiring("averages", add=max, mul=lambda a, b: (a + b) / 2, zero=-INF, one=0.0)
    with pytest.raises(sr.LawError, match="contract two arrays at a time"):
        sr.einsum("ij,jk,kl->il", a, a, a, semiring=averages)
    assert sr.einsum("ij,jk->ik", a, a, semiring=averages).tolist() == a.tolist()
    monkeypatch.setitem(sys.modules, "opt_einsum", None)
    with pytest.raises(sr.SemiringError, match="needs opt_einsum"):
        sr.einsum("ij,jk,kl->il", a, a, a, semiring=sr.MIN_PLUS, optimize="greedy")
    assert sr.einsum("ij,jk,kl->il", a, a, a, semiring=sr.MIN_PLUS).tolist() == (3 * a).tolist()


def test_orders_and_text() -> None:
    contraction = parsed("...a,ab->...b", [(2, 3, 4), (4, 5)])
    assert as_text(contraction) == "ABC,CD->ABD"
    assert [
        len(list(steps(parsed("a,b,c,d->", [(2,)] * 4), path))) for path in (left_to_right(4), [(0, 1, 2, 3)], [(2, 3), (0, 1), (0, 1)])
    ] == [3] * 3
    oe = pytest.importorskip("opt_einsum")
    rng = np.random.default_rng(3)
    for seed in range(20):
        equation, shapes = importlib.import_module("opt_einsum.testing").rand_equation(6, 3, n_out=2, d_min=2, d_max=3, seed=seed)[:2]
        operands = [rng.integers(0, 4, shape).astype(float) for shape in shapes]
        expected = oe.contract(equation, *operands)
        for optimize in ("auto", "greedy", False, oe.RandomGreedy(max_repeats=4), oe.contract_path(equation, *operands)[0]):
            np.testing.assert_array_equal(sr.einsum(equation, *operands, semiring=sr.PLUS_TIMES, optimize=optimize), expected)


@pytest.mark.gpu
def test_arrays_on_a_gpu() -> None:
    cupy = pytest.importorskip("cupy")
    for pattern in PATTERNS:
        operands = drawn(pattern, 5)
        for semiring in (sr.PLUS_TIMES, sr.MIN_PLUS):
            found = sr.einsum(pattern, *map(cupy.asarray, operands), semiring=semiring)
            assert isinstance(found, cupy.ndarray)
            np.testing.assert_array_equal(found.get(), sr.einsum(pattern, *operands, semiring=semiring))
