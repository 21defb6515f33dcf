"""The generated product is the reference product and the defined one: every semiring, dtype, shape, layout, alias and thread count."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from semiring.algebra.catalogue import DISTANCE_HOPS, MAX_MIN, MIN_MAX, MIN_PLUS, PLUS_TIMES, semirings
from semiring.algebra.definition import Semiring
from semiring.kernels.cpu import launch
from semiring.kernels.cpu.engine import CpuEngine
from semiring.kernels.engine import Block
from semiring.kernels.reference import ReferenceEngine
from semiring.product import Witnessed, matmul
from tests.kernels.samples import (
    CASES,
    LAYOUTS,
    SELECTIVE,
    DTypes,
    Values,
    assert_equal,
    defined,
    elements,
    examples,
    laid_out,
    name,
    scalars,
    squeeze,
)

SIDES = (0, 1, 2, 3, 5, 7, 8, 13, 16, 17, 31, 33, 47, 48, 49, 63, 64, 65, 97)
DEPTHS = (*SIDES, 127, 129, 255, 256, 257, 511, 513, 1030)

cases = st.sampled_from(CASES)
seeds = st.integers(0, 2**32 - 1).map(np.random.default_rng)


@pytest.mark.sampled(12)
@pytest.mark.parametrize(("semiring", "dtypes"), [c for c in CASES if c[0].name != "log"], ids=name)
def test_as_defined(semiring: Semiring, dtypes: DTypes) -> None:
    rng = np.random.default_rng(1)
    a, b, c = (elements(semiring, dtypes, shape, rng) for shape in ((4, 70), (70, 5), (4, 5)))
    for device in ("cpu", "reference"):
        for old in (None, c):
            found = matmul(squeeze(a), squeeze(b), semiring, c=old if old is None else squeeze(old), device=device)
            assert scalars(semiring, found if len(dtypes) > 1 else (found,)) == defined(semiring, a, b, old)[0]


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("semiring", "dtypes"), SELECTIVE, ids=name)
def test_witness_as_defined(semiring: Semiring, dtypes: DTypes) -> None:
    rng = np.random.default_rng(2)
    # Few values and many steps: ties within a slab, between slabs and with c.
    a, b, c = (elements(semiring, dtypes, shape, rng, zeros=0.6) for shape in ((5, 150), (150, 6), (5, 6)))
    for device in ("cpu", "reference"):
        for old in (None, c):
            values, witness = matmul(squeeze(a), squeeze(b), semiring, c=old if old is None else squeeze(old), witness=True, device=device)
            expected_values, expected_witness = defined(semiring, a, b, old)
            assert scalars(semiring, values if len(dtypes) > 1 else (values,)) == expected_values
            assert witness.dtype == np.int32
            assert witness.tolist() == expected_witness


@pytest.mark.exhaustive
@examples(120)
@given(case=cases, seed=seeds, data=st.data())
def test_shapes_and_layouts(case: tuple[Semiring, DTypes], seed: np.random.Generator, data: st.DataObject) -> None:
    semiring, dtypes = case
    m, n, k = (data.draw(st.sampled_from(sides), label=label) for sides, label in ((SIDES, "m"), (SIDES, "n"), (DEPTHS, "k")))
    if semiring.name in ("distance-count", "plus-times") and dtypes[0].itemsize == 1:
        k = min(k, 129)  # a byte counts no further
    layouts = data.draw(st.tuples(*[st.sampled_from(LAYOUTS)] * 4), label="layouts of a, b, c, out")
    zeros = data.draw(st.sampled_from([0, 0.25, 0.95]), label="zeros")
    a, b, c = (elements(semiring, dtypes, shape, seed, zeros=zeros) for shape in ((m, k), (k, n), (m, n)))
    options: dict[str, Any] = {"witness": data.draw(st.booleans(), label="witness") if case in SELECTIVE else False}
    if data.draw(st.booleans(), label="with c"):
        options["c"] = squeeze(c)
    expected = matmul(squeeze(a), squeeze(b), semiring, device="reference", **options)

    a, b, c = (tuple(laid_out(v, layout) for v in x) for x, layout in zip((a, b, c), layouts, strict=False))
    kept = [v.copy() for v in (*a, *b, *c)]
    if "c" in options:
        options["c"] = squeeze(c)
    if data.draw(st.booleans(), label="with out") and layouts[3] != "read-only":
        options["out"] = squeeze(tuple(laid_out(v, layouts[3]) for v in c))
    found = matmul(squeeze(a), squeeze(b), semiring, device="cpu", threads=data.draw(st.sampled_from([1, 2, 5])), **options)
    if "out" in options:
        assert (found.values if options["witness"] else found) is options["out"]
    assert_same(found, expected, close=semiring.name == "log")
    for before, after in zip(kept, (*a, *b, *c), strict=True):
        np.testing.assert_array_equal(after, before)


def assert_same(found: Any, expected: Any, *, close: bool = False) -> None:
    if isinstance(expected, Witnessed):
        assert isinstance(found, Witnessed)
        assert_equal(found.witness, expected.witness)
        found, expected = found.values, expected.values
    assert_equal(found, expected, close=close)


@examples(60)
@given(case=st.sampled_from([c for c in CASES if c[0].name != "log"]), seed=seeds, data=st.data())
def test_results_that_overlap_operands(case: tuple[Semiring, DTypes], seed: np.random.Generator, data: st.DataObject) -> None:
    """a, b, c and out are blocks of one batch of matrices, anywhere."""
    semiring, dtypes = case
    n = data.draw(st.sampled_from([1, 2, 9, 40, 70]), label="n")
    depth = data.draw(st.integers(1, 3), label="batch")
    whole = elements(semiring, dtypes, (2 * depth, n + 3, n + 3), seed)
    corners = st.tuples(st.integers(0, depth), st.integers(0, 3), st.integers(0, 3))
    batched = data.draw(st.tuples(*[st.booleans()] * 2), label="a and b have a batch axis")

    def block(values: Values, corner: tuple[int, int, int], batch: bool) -> Values:
        d, i, j = corner
        return tuple(v[slice(d, d + depth) if batch else d, i : i + n, j : j + n] for v in values)

    where = data.draw(st.tuples(*[corners] * 4), label="corners of a, b, c, out")
    where = data.draw(st.sampled_from([where, (where[0],) * 4, (where[0], where[1], where[1], where[0])]), label="used")
    options: dict[str, Any] = {"witness": True} if case in SELECTIVE and data.draw(st.booleans()) else {}
    with_c = data.draw(st.booleans(), label="with c")
    copy = tuple(v.copy() for v in whole)
    shapes = list(zip(where, (*batched, any(batched), any(batched)), strict=True))
    a, b, c, _ = (squeeze(block(copy, *shape)) for shape in shapes)
    expected = matmul(a, b, semiring, c=c if with_c else None, device="reference", **options)
    a, b, c, out = (squeeze(block(whole, *shape)) for shape in shapes)
    threads = data.draw(st.sampled_from([1, 2]), label="threads")
    found = matmul(a, b, semiring, c=c if with_c else None, out=out, device="cpu", threads=threads, **options)
    assert_same(found, expected)


@examples(60)
@given(
    case=st.sampled_from([(s, d) for s, d in CASES if s.name not in ("boolean", "log")]),
    seed=seeds,
    n=st.sampled_from([1, 3, 17, 64, 90]),
    fresh=st.booleans(),
    data=st.data(),
)
def test_engines_on_blocks_of_one_matrix(
    case: tuple[Semiring, DTypes], seed: np.random.Generator, n: int, fresh: bool, data: st.DataObject
) -> None:
    """The primitive itself: A, B and C are blocks of one matrix with one construction matrix, as the algorithms use it."""
    semiring, dtypes = case
    whole = elements(semiring, dtypes, (2 * n, 2 * n), seed)
    witness = case in SELECTIVE and data.draw(st.booleans(), label="witness")
    places = [(0, 0), (0, n), (n, 0), (n, n), (n // 2, n // 2)]
    corners = [data.draw(st.sampled_from(places), label=label) for label in "ABC"]
    results = []
    for engine in (CpuEngine(semiring, dtypes, 2), ReferenceEngine(semiring, dtypes)):
        engine.signed = dtypes[0].kind == "i"
        matrix = Block(tuple(v.copy() for v in whole), np.full((2 * n, 2 * n), -1, np.int32) if witness else None)
        A, B, C = (matrix[i : i + n, j : j + n] for i, j in corners)
        (engine.multiply if fresh else engine.multiply_add)(A, B, C)
        results.append(matrix)
    assert_equal(results[0].values, results[1].values)
    if witness:
        assert_equal(results[0].via, results[1].via)
        i, j = corners[2]
        k = corners[0][1]
        block = results[0].via[i : i + n, j : j + n]
        assert ((block == -1) | ((block >= k) & (block < k + n))).all()


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("semiring", [MIN_PLUS, DISTANCE_HOPS], ids=name)
def test_results_of_any_layout(semiring: Semiring, layout: str) -> None:
    """An engine writes to whatever view it is given, and only there."""
    if layout == "read-only":
        return
    dtypes = (np.dtype(np.int32),) * semiring.components
    rng = np.random.default_rng(0)
    a, b, c = (elements(semiring, dtypes, shape, rng) for shape in ((30, 20), (20, 50), (30, 50)))
    for witness in (False, True):
        results = []
        for engine in (CpuEngine(semiring, dtypes, 2), ReferenceEngine(semiring, dtypes)):
            engine.signed = True
            via = laid_out(np.full((30, 50), -1, np.int32), "stepped") if witness else None
            C = Block(tuple(laid_out(v, layout) for v in c), via)
            engine.multiply_add(Block(a), Block(b), C)
            engine.multiply_add(C[:, :20], C[:20, :], C)
            results.append(C)
        assert_equal(results[0].values, results[1].values)
        if witness:
            np.testing.assert_array_equal(results[0].via, results[1].via)


def test_zeros_of_either_sign_are_one() -> None:
    """A comparison of bit patterns would prefer 0.0 to −0.0 and name the wrong k."""
    a, b = np.array([[-0.0, 0.0]], np.float32), np.full((2, 1), 5, np.float32)
    for device in ("cpu", "reference"):
        assert matmul(a, b, MAX_MIN, witness=True, device=device).witness.item() == 0
        assert matmul(a[:, ::-1], -b, MIN_MAX, witness=True, device=device).witness.item() == 0
        kept = matmul(a[:, 1:], b[1:], MAX_MIN, c=np.full((1, 1), -0.0, np.float32), witness=True, device=device)
        assert kept.witness.item() == -1


def test_rows_that_are_looked_up_after_they_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    """C ← C ⊕ C⊗B with the witness, where a copy of all that a worker looks up would be too large."""
    rng = np.random.default_rng(0)
    monkeypatch.setattr(launch, "CPU_SCRATCH", 10_000)
    for semiring in (MIN_PLUS, DISTANCE_HOPS):
        dtypes = (np.dtype(np.float32),) * semiring.components
        c, b = elements(semiring, dtypes, (130, 90), rng), elements(semiring, dtypes, (90, 90), rng)
        results = []
        for engine in (CpuEngine(semiring, dtypes, 2), ReferenceEngine(semiring, dtypes)):
            C = Block(tuple(v.copy() for v in c), np.full((130, 90), -1, np.int32), 0, 1000)
            engine.multiply_add(C, Block(b), C)
            engine.multiply(C, Block(b), C)
            results.append(C)
        assert_equal(results[0].values, results[1].values)
        np.testing.assert_array_equal(results[0].via, results[1].via)


def test_subnormals_stay_exact() -> None:
    tiny = np.float32(2.0**-149)
    a = np.array([[tiny, 3 * tiny]], np.float32)
    assert matmul(a, np.zeros((2, 1), np.float32), MIN_PLUS).item() == tiny
    assert matmul(a, np.ones((2, 1), np.float32), PLUS_TIMES).item() == 4 * tiny


@pytest.mark.sampled(4)
@pytest.mark.parametrize("semiring", [s for s in semirings().values() if s.name not in ("log", "boolean", "gf2")], ids=name)
@pytest.mark.parametrize("order", ["C", "F"])
def test_large_enough_for_threads(semiring: Semiring, order: Any) -> None:
    """Several tasks a thread, more steps than a slab of k, edges everywhere."""
    dtypes = (np.dtype(np.int32),) * semiring.components
    rng = np.random.default_rng(3)
    a, b = (elements(semiring, dtypes, shape, rng) for shape in ((211, 700), (700, 193)))
    expected = matmul(squeeze(a), squeeze(b), semiring, device="reference")
    a, b = (tuple(np.asarray(v, order=order) for v in x) for x in (a, b))
    for threads in (1, 2, 5):
        assert_equal(matmul(squeeze(a), squeeze(b), semiring, threads=threads), expected)


def test_results_in_place_over_threads() -> None:
    rng = np.random.default_rng(4)
    a, b = rng.random((2, 300, 300))
    expected = matmul(a, b, MIN_PLUS, c=a, device="reference", witness=True)
    right = matmul(a, b, MIN_PLUS, c=b, device="reference", witness=True)
    for threads in (1, 2, 5):
        for operand, other, wanted in ((a, b, expected), (b, a, right)):
            work = operand.copy()
            pair = (work, other) if operand is a else (other, work)
            assert_same(matmul(*pair, MIN_PLUS, c=work, out=work, threads=threads, witness=True), wanted)
