"""Contractions, against NumPy's einsum, opt_einsum's own examples and the definition."""

from __future__ import annotations

import functools
import importlib
import itertools
import sys
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import semiring as sr
from semiring.algorithms.contraction import as_letters, from_lists, left_to_right, parsed, steps
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
        subscripts, operands, _ = from_lists(form)
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
    assert as_letters(contraction)[0] == "ABa,ab->ABb"
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


def winners_by_definition(pattern: str, operands: list[Any], values: Any, witness: dict[str, Any], semiring: Any) -> None:
    """Each winning assignment gives the element; it is −1 only where the element is zero."""
    contraction = parsed(pattern, [v.shape for v in operands])
    operations, zero = operations_for(semiring, (np.dtype(float),)), semiring.identities((np.dtype(float),))[0][0]
    assert set(witness) == {i for i in contraction.lengths if i not in contraction.output}
    assert all(v.dtype == np.int32 and v.shape == contraction.shape(contraction.output) for v in witness.values())
    for place in np.ndindex(contraction.shape(contraction.output)):
        at = dict(zip(contraction.output, place, strict=True)) | {i: int(v[place]) for i, v in witness.items()}
        if witness and -1 in at.values():
            assert values[place] == zero
            assert all(v[place] == -1 for v in witness.values())
            continue
        terms = []
        for v, indices in zip(operands, contraction.inputs, strict=True):
            terms.append(v[tuple(at[i] if n > 1 else 0 for i, n in zip(indices, v.shape, strict=True))])
        assert functools.reduce(lambda x, y: operations.mul((x,), (y,))[0], terms) == values[place]


@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize("semiring", [sr.MIN_PLUS, sr.MAX_PLUS, sr.MAX_MIN], ids=lambda s: s.name)
def test_winning_assignments(pattern: str, semiring: sr.Semiring) -> None:
    operands = drawn(pattern, 7)
    for v in operands:
        v[v == 3] = semiring.identities((np.dtype(float),))[0][0]
    expected = sr.einsum(pattern, *operands, semiring=semiring)
    for optimize, limit in (("auto", None), (False, None), ("auto", 1), (False, 300)):
        try:
            found = sr.einsum(pattern, *operands, semiring=semiring, witness=True, optimize=optimize, memory_limit=limit)
        except sr.TooLargeError:
            assert limit is not None
            continue
        np.testing.assert_array_equal(found.values, expected)
        winners_by_definition(pattern, operands, found.values, found.witness, semiring)


@given(st.integers(0, 10**6), st.integers(2, 6), st.data())
@settings(deadline=None, max_examples=60)
def test_random_networks_in_slices(seed: int, count: int, data: st.DataObject) -> None:
    testing = pytest.importorskip("opt_einsum.testing")
    pattern, shapes = testing.rand_equation(count, 3, n_out=data.draw(st.integers(0, 2)), d_min=1, d_max=3, seed=seed)[:2]
    rng = np.random.default_rng(seed)
    operands = [rng.integers(0, 9, shape).astype(float) for shape in shapes]
    whole = sr.contract_expression(pattern, *shapes, semiring=sr.MAX_PLUS, witness=True)
    least = whole.plan.with_slices(list(whole.plan.contraction.lengths)).costs.memory
    limit = data.draw(st.integers(least, max(least, whole.plan.costs.memory)))
    found = sr.einsum(pattern, *operands, semiring=sr.MAX_PLUS, witness=True, memory_limit=limit)
    np.testing.assert_array_equal(found.values, whole(*operands).values)
    winners_by_definition(pattern, operands, found.values, found.witness, sr.MAX_PLUS)
    np.testing.assert_array_equal(
        sr.einsum(pattern, *operands, semiring=sr.PLUS_TIMES, memory_limit=limit), np.einsum(pattern, *operands, optimize=True)
    )


def test_slices_keep_the_limit() -> None:
    """A ring of matrices: with one index fixed, products are of matrices and vectors."""
    plan = sr.contract_expression("ab,bc,cd,da->", *[(50, 50)] * 4, semiring=sr.MIN_PLUS, memory_limit=70_000).plan
    assert plan.sliced
    assert plan.costs.memory <= 70_000
    assert plan.steps == plan.slices * plan.costs.steps
    assert "slices" in str(plan)
    with pytest.raises(sr.TooLargeError, match="raise the limit"):
        sr.contract_expression("ab,bc->ac", (9, 9), (9, 9), semiring=sr.MIN_PLUS, memory_limit=3)
    with pytest.raises(sr.SemiringError, match="memory_limit is 'much'"):
        sr.einsum("ab,bc->ac", np.ones((2, 2)), np.ones((2, 2)), semiring=sr.MIN_PLUS, memory_limit="much")
    a = np.arange(6.0).reshape(2, 3)
    found = sr.einsum(a, ["x", 7], a, ["y", 7], ["x", "y"], semiring=sr.MAX_PLUS, witness=True)
    assert list(found.witness) == [7]
    np.testing.assert_array_equal(found.witness[7], np.full((2, 2), 2))


def test_expressions_are_called_again() -> None:
    expression = sr.contract_expression("ij,jk,kl->il", (2, 3), (3, 4), (4, 2), semiring=sr.MIN_PLUS)
    for seed in range(3):
        operands = [np.random.default_rng(seed).random(shape) for shape in ((2, 3), (3, 4), (4, 2))]
        expected = sr.einsum("ij,jk,kl->il", *operands, semiring=sr.MIN_PLUS)
        np.testing.assert_array_equal(expression(*operands), expected)
        out = np.empty((2, 2), np.float32)
        assert expression(*(v.astype(np.float32) for v in operands), out=out) is out
        np.testing.assert_allclose(out, expected, rtol=1e-6)
    assert sr.explain(expression) is expression.plan
    with pytest.raises(sr.ShapeError, match=r"planned for arrays of shapes \[\(2, 3\)"):
        expression(np.ones((2, 3)))
    many = sr.contract_expression(",".join("abcdefghijklmnopqrstuvwxyz") + "->", *[(2,)] * 26, semiring=sr.MIN_PLUS, optimize=False)
    assert "5 more" in str(many.plan)
    assert "<table" in many._repr_html_()
    assert repr(many).startswith("<contraction of 26 arrays over min-plus")


def test_backend_of_opt_einsum_and_autoray() -> None:
    oe = pytest.importorskip("opt_einsum")
    rng = np.random.default_rng(0)
    for semiring in (sr.PLUS_TIMES, sr.MAX_PLUS):
        backend = sr.contraction(semiring)
        assert sr.contraction(semiring) is backend
        for pattern in PATTERNS:
            operands = drawn(pattern, 3)
            found = oe.contract(pattern, *operands, backend=backend.__name__)
            np.testing.assert_array_equal(found, sr.einsum(pattern, *operands, semiring=semiring))
        for axes in (0, 1, 2, ([0, 2], [1, 0]), (0, 0)):
            a, b = rng.integers(0, 9, (3, 3, 3)).astype(float), rng.integers(0, 9, (3, 3, 3)).astype(float)
            if semiring is sr.PLUS_TIMES:
                np.testing.assert_array_equal(backend.tensordot(a, b, axes), np.tensordot(a, b, axes))
    mine = sr.Semiring("max-plus", add=max, mul=lambda a, b: a + b, zero=-INF, one=0.0)
    assert sr.contraction(mine).__name__ != sr.contraction("max-plus").__name__
    autoray = pytest.importorskip("autoray")
    a = np.arange(4.0).reshape(2, 2)
    found = autoray.do("einsum", "ij,jk->ik", a, a, like=sr.contraction("max-plus").__name__)
    np.testing.assert_array_equal(found, sr.matmul(a, a, "max-plus"))


def test_trees_of_cotengra() -> None:
    cotengra = pytest.importorskip("cotengra")
    for seed in range(8):
        inputs, output, shapes, sizes = cotengra.utils.rand_equation(7, 3, n_out=seed % 3, d_min=2, d_max=3, seed=seed)
        rng = np.random.default_rng(seed)
        operands = [rng.integers(0, 9, shape).astype(float) for shape in shapes]
        pattern = cotengra.utils.inputs_output_to_eq(inputs, output)
        tree = cotengra.array_contract_tree(inputs, output, sizes, optimize="greedy")
        for semiring in (sr.PLUS_TIMES, sr.MAX_PLUS):
            expected = sr.einsum(pattern, *operands, semiring=semiring)
            np.testing.assert_array_equal(tree.contract(operands, implementation=sr.contraction(semiring)), expected)
            np.testing.assert_array_equal(sr.einsum(pattern, *operands, semiring=semiring, optimize=tree), expected)
            sliced = tree.slice(target_slices=4)
            assert sliced.sliced_inds
            np.testing.assert_array_equal(sr.einsum(pattern, *operands, semiring=semiring, optimize=sliced), expected)
            other = pattern.translate({ord(x): ord(x.upper()) for x in pattern if x.isalpha()})
            with pytest.raises(sr.SemiringError, match="make the tree of the same subscripts"):
                sr.einsum(other, *operands, semiring=semiring, optimize=sliced)


@pytest.mark.gpu
def test_arrays_on_a_gpu() -> None:
    cupy = pytest.importorskip("cupy")
    for pattern in PATTERNS:
        operands = drawn(pattern, 5)
        for semiring in (sr.PLUS_TIMES, sr.MIN_PLUS):
            found = sr.einsum(pattern, *map(cupy.asarray, operands), semiring=semiring)
            assert isinstance(found, cupy.ndarray)
            np.testing.assert_array_equal(found.get(), sr.einsum(pattern, *operands, semiring=semiring))
        best = sr.einsum(pattern, *map(cupy.asarray, operands), semiring=sr.MAX_PLUS, witness=True)
        assert all(isinstance(v, cupy.ndarray) for v in best.witness.values())
        winners_by_definition(pattern, operands, best.values.get(), {i: v.get() for i, v in best.witness.items()}, sr.MAX_PLUS)


@pytest.mark.parametrize("pattern", [",i->i", "i,->", ",,->", "->", ",ij,->j"])
def test_objects_without_axes(pattern: str) -> None:
    """An array of objects without axes is an array for NumPy, not the object."""
    arrays = [np.full((2,) * len(term), Fraction(1, 3), dtype=object) for term in pattern.partition("->")[0].split(",")]
    found = sr.einsum(pattern, *arrays, semiring=sr.PLUS_TIMES)
    np.testing.assert_array_equal(found, np.einsum(pattern, *arrays))


def test_expressions_take_axes_of_length_one() -> None:
    a, b = np.arange(3.0)[None], np.arange(6.0).reshape(2, 3)
    expression = sr.contract_expression("ij,ij->i", a.shape, b.shape, semiring=sr.PLUS_TIMES)
    np.testing.assert_array_equal(expression(a, b), (a * b).sum(axis=1))
    with pytest.raises(
        sr.ShapeError, match=r"planned for arrays of shapes \[\(1, 3\), \(2, 3\)\]; these have shapes \[\(2, 3\), \(2, 3\)\]"
    ):
        expression(b, b)


def test_a_diagonal_of_no_elements() -> None:
    assert sr.einsum("ii->i", np.ones((0, 1)), semiring=sr.MIN_PLUS).shape == (0,)
    assert sr.einsum("ii->", np.ones((1, 0)), semiring=sr.MIN_PLUS) == INF


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("optimize", [False, [(1, 2), (0, 1)], [(0, 2), (0, 1)]])
@pytest.mark.parametrize("pattern", ["ij,jk,k->", "ij,jk,k->i", "ij,jk,kl->l"])
def test_sums_of_no_terms_have_no_winners(pattern: str, optimize: Any) -> None:
    lengths = dict(zip("ijkl", (2, 3, 0, 2), strict=True))
    operands = [np.ones([lengths[i] for i in term]) for term in pattern.partition("->")[0].split(",")]
    found = sr.einsum(pattern, *operands, semiring=sr.MIN_PLUS, witness=True, optimize=optimize)
    assert np.all(found.values == INF)
    assert all(np.all(v == -1) for v in found.witness.values())


def test_sums_over_one_array_need_the_one() -> None:
    """Products with ones sum an index that one array alone has, also where the axis of the other array repeats."""
    halves = sr.Semiring("halves", add=max, mul=lambda a, b: (a + b) / 2, zero=-INF, one=0.0)
    a, b = np.arange(6.0).reshape(2, 3), np.ones((1, 3))
    with pytest.raises(sr.LawError, match="a sum over one array needs"):
        sr.einsum("ij->i", a, semiring=halves)
    with pytest.raises(sr.LawError, match="in several steps"):
        sr.einsum("ij,ij->j", a, b, semiring=halves)
    np.testing.assert_array_equal(sr.einsum("ij,ij->ij", a, b, semiring=halves), (a + 1) / 2)
    np.testing.assert_array_equal(sr.einsum("ij->ji", a, semiring=halves), a.T)
