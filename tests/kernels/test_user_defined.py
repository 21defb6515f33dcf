"""Semirings that a user writes: known ones and random expressions, on every instruction set, against the reference engine."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from semiring.algebra import ops
from semiring.algebra.catalogue import LOG, MAX_MIN, MIN_PLUS
from semiring.algebra.definition import Semiring
from semiring.common.errors import DTypeError, OverflowRiskError
from semiring.kernels.cpu.engine import CpuEngine
from semiring.kernels.engine import Block
from semiring.kernels.limits import absorbing
from semiring.kernels.overflow.products import certify
from semiring.kernels.overflow.statistics import value_statistics
from semiring.kernels.reference import ReferenceEngine
from semiring.product import matmul
from tests.kernels.samples import CASES, ISAS, DTypes, Values, assert_equal, elements, examples, name

INF = math.inf

isas = pytest.mark.parametrize("isa", ISAS)


def products(semiring: Semiring, a: Values, b: Values, isa: str, *, witness: bool = False) -> list[tuple[Values, Any]]:
    """a ⊗ b on the generated engine and on the reference engine, with what the witness is."""
    dtypes = tuple(v.dtype for v in a)
    shape = (a[0].shape[0], b[0].shape[1])
    infinities = absorbing(semiring, dtypes)
    signed = certify(semiring, dtypes, value_statistics(a, infinities), value_statistics(b, infinities), k=a[0].shape[1])
    results = []
    for engine in (CpuEngine(semiring, dtypes, 1, isa=isa), ReferenceEngine(semiring, dtypes)):
        engine.signed = signed
        C = Block(tuple(np.empty(shape, d) for d in dtypes), np.full(shape, -1, np.int32) if witness else None)
        engine.multiply(Block(a), Block(b), C)
        results.append((C.values, C.via))
    return results


def assert_engines_agree(semiring: Semiring, a: Values, b: Values, isa: str, *, witness: bool = False) -> Values:
    (found, via), (expected, wanted) = products(semiring, a, b, isa, witness=witness)
    assert_equal(found, expected)
    if witness:
        assert_equal(via, wanted)
    return found


@pytest.mark.sampled(4)
@isas
@pytest.mark.parametrize(
    ("semiring", "dtypes"), [c for c in CASES if c[1][0] in (np.dtype("float32"), np.dtype("int64"), np.dtype("uint8"))], ids=name
)
def test_catalogue_on_every_instruction_set(semiring: Semiring, dtypes: DTypes, isa: str) -> None:
    rng = np.random.default_rng(0)
    a, b = (elements(semiring, dtypes, shape, rng) for shape in ((19, 90), (90, 67)))
    if semiring.name == "log":
        (found, _), (expected, _) = products(semiring, a, b, isa)
        assert_equal(found, expected, close=True)
    else:
        assert_engines_agree(semiring, a, b, isa, witness=semiring.selects)


LUKASIEWICZ = Semiring("lukasiewicz", max, lambda a, b: max(a + b - 1, 0), 0, 1, domain=(0, 1))
MODULAR = Semiring("modular", lambda a, b: (a + b) % 7, lambda a, b: a * b % 7, 0, 1, domain=range(7))
NIBBLES = Semiring("nibbles", operator.or_, lambda a, b: (a & 15) & b | (a >> 4) << 4 & b, 0, 255)
LEVELS = Semiring("levels", max, lambda a, b: min(a, b) if (a ^ b) & 1 else min(a, b) // 2, 0, 100)


@pytest.mark.sampled(3)
@isas
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_lukasiewicz(dtype: str, isa: str) -> None:
    rng = np.random.default_rng(0)
    a, b = rng.integers(0, 257, (30, 80)) / 256, rng.integers(0, 257, (80, 40)) / 256
    (found,) = assert_engines_agree(LUKASIEWICZ, (a.astype(dtype),), (b.astype(dtype),), isa, witness=True)
    np.testing.assert_array_equal(found, np.maximum(a[:, :, None] + b[None] - 1, 0).max(axis=1))


@pytest.mark.sampled(5)
@isas
@pytest.mark.parametrize("dtype", ["int16", "int32", "uint8", "uint64"])
def test_counting_modulo_a_prime(dtype: str, isa: str) -> None:
    rng = np.random.default_rng(0)
    a, b = rng.integers(0, 7, (30, 80)), rng.integers(0, 7, (80, 40))
    (found,) = assert_engines_agree(MODULAR, (a.astype(dtype),), (b.astype(dtype),), isa)
    np.testing.assert_array_equal(found, a @ b % 7)


@pytest.mark.sampled(5)
@isas
@pytest.mark.parametrize(("semiring", "dtype"), [(NIBBLES, "uint8"), (NIBBLES, "int32"), (LEVELS, "uint16"), (LEVELS, "int64")])
def test_bits_and_branches(semiring: Semiring, dtype: str, isa: str) -> None:
    rng = np.random.default_rng(0)
    a, b = (rng.integers(0, 101, shape).astype(dtype) for shape in ((30, 80), (80, 40)))
    assert_engines_agree(semiring, (a,), (b,), isa)


def lexicographic(x: Any, y: Any) -> Any:
    return x if x[0] < y[0] or (x[0] == y[0] and x[1] <= y[1]) else y


STEPS = Semiring("steps", min, lambda a, b: (a[0] + b[0], a[1] + b[1]), (INF, INF), (0, 0))
DEAREST = Semiring("dearest", max, lambda a, b: (min(a[0], b[0]), a[1] + b[1]), (-INF, -INF), (INF, 0))
TRIPLE = Semiring("triple", lexicographic, lambda a, b: (a[0] + b[0], a[1] | b[1], a[2] * b[2]), (INF, 0, 0), (0, 0, 1))
MIXED = [
    ("float32", "int32"),
    ("float64", "int64"),
    ("float32", "int64"),
    ("int16", "float64"),
    ("int32", "int64"),
    ("int64", "int16"),
    ("uint8", "int32"),
]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("semiring", [STEPS, DEAREST], ids=name)
@pytest.mark.parametrize(("kinds", "isa"), [(k, isa) for isa in ISAS for k in (MIXED if isa == ISAS[0] else MIXED[:2])])
def test_components_of_different_dtypes(semiring: Semiring, kinds: tuple[str, str], isa: str) -> None:
    dtypes = tuple(map(np.dtype, kinds))
    if semiring is DEAREST and dtypes[0].kind == "u":
        return
    rng = np.random.default_rng(0)
    zero, _ = semiring.identities(dtypes)

    def matrix(*shape: int) -> Values:
        low = [0 if d.kind == "u" else -6 for d in dtypes]
        empty = rng.random(shape) < 0.3
        return tuple(np.where(empty, z, rng.integers(at, 6, shape)).astype(d) for z, at, d in zip(zero, low, dtypes, strict=True))

    assert_engines_agree(semiring, matrix(17, 70), matrix(70, 35), isa, witness=True)


@isas
def test_three_components(isa: str) -> None:
    dtypes = tuple(map(np.dtype, ("float64", "uint16", "int32")))
    rng = np.random.default_rng(0)
    a, b = (tuple(rng.integers(0, 3, shape).astype(d) for d in dtypes) for shape in ((13, 50), (50, 21)))
    assert_engines_agree(TRIPLE, a, b, isa)


@pytest.mark.sampled(6)
@isas
@pytest.mark.parametrize(
    "kinds", [("float32", "int16"), ("float64", "uint32"), ("float64", "float32"), ("int16", "uint16"), ("int64", "uint8")], ids="-".join
)
def test_components_that_depend_on_each_other(kinds: tuple[str, str], isa: str) -> None:
    """Sums and comparisons across dtypes are computed in the wider one."""
    semiring = Semiring(
        "crossed", lexicographic, lambda a, b: (a[0] + b[1] if a[1] > b[0] else a[1] * b[0], a[1] + (b[1] > a[0])), (9999, 0), (0, 0)
    )
    dtypes = tuple(map(np.dtype, kinds))
    rng = np.random.default_rng(0)
    a, b = (tuple(rng.integers(0, 12, shape).astype(d) for d in dtypes) for shape in ((13, 50), (50, 21)))
    assert_engines_agree(semiring, a, b, isa)


def test_an_infinity_of_one_component_is_a_number_in_another() -> None:
    """32767 stands for ∞ among int16 and for itself among int32, and −1 for itself beside the ∞ of a wider dtype."""
    for kinds, far in ((("int32", "int16"), 32767), (("int16", "int32"), 5), (("int32", "int64"), -1)):
        a = (np.array([[far]], kinds[0]), np.array([[1]], kinds[1]))
        for device in ("cpu", "reference"):
            distance, hops = matmul(a, tuple(np.full((1, 1), 2, d) for d in kinds), STEPS, device=device)
            assert (distance.item(), hops.item()) == (far + 2, 3)


def test_infinite_constants_among_integers() -> None:
    """A user may write ∞ out; it is then what stands for it in the dtype."""
    explicit = Semiring("explicit", min, lambda a, b: INF if a == INF or b == INF else a + b, INF, 0)
    for dtype in ("int16", "int64", "uint8", "uint64"):
        top = np.iinfo(dtype).max
        a, b = np.array([[1, top], [top, top]], dtype), np.array([[3, top], [top, 2]], dtype)
        for device in ("cpu", "reference"):
            np.testing.assert_array_equal(matmul(a, b, explicit, device=device), [[4, top], [top, top]])


def test_long_expressions_do_not_share_a_cache_entry() -> None:
    """Two expressions of one length, too long to be shown, differ in a constant in the middle."""

    def multiply(middle: int) -> Callable[[Any, Any], Any]:
        def mul(a: Any, b: Any) -> Any:
            for i in range(300):
                a = (a ^ b) & (middle if i == 150 else 2047)
            return a

        return mul

    a, b = np.array([[5]], np.int32), np.array([[3]], np.int32)
    results = [matmul(a, b, Semiring("long", operator.or_, multiply(middle), 0, 0)).item() for middle in (2047, 0)]
    assert results == [5, 3]


# Random expressions.

Text = tuple[Any, ...]


def trees(leaves: st.SearchStrategy[Any], one: list[str], two: list[str]) -> st.SearchStrategy[Any]:
    def grow(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
        condition = st.tuples(st.sampled_from(["lt", "le", "gt", "ge", "eq", "ne"]), inner, inner)
        return st.one_of(
            st.tuples(st.sampled_from(one), inner),
            st.tuples(st.sampled_from(two), inner, inner),
            st.tuples(st.just("where"), condition, inner, inner),
            st.tuples(st.just("branch"), condition, inner, inner),
        )

    return st.recursive(leaves, grow, max_leaves=8)


CALLS: dict[str, Callable[..., Any]] = {
    "neg": operator.neg,
    "abs": abs,
    "sqrt": lambda x: ops.sqrt(abs(x)),
    "invert": operator.invert,
    "half": lambda x: x >> 1,
    "twice": lambda x: x << 1,
    "third": lambda x: x // 3,
    "rest": lambda x: x % 5,
    "div": lambda x, y: x / (abs(y) + 1),
    "min": min,
    "max": max,
    **{op: getattr(operator, op) for op in ("add", "sub", "mul", "and_", "or_", "xor", "lt", "le", "gt", "ge", "eq", "ne")},
}


def run(tree: Any, a: Any, b: Any) -> Any:
    """The value of a tree: what a user's callable would compute."""
    if not isinstance(tree, tuple):
        return {"a": a, "b": b}.get(tree, tree)
    if isinstance(tree[0], str) and tree[0] in ("a", "b"):
        return (a, b)["ab".index(tree[0])][tree[1]]
    if tree[0] == "branch":
        return run(tree[2], a, b) if run(tree[1], a, b) else run(tree[3], a, b)
    if tree[0] == "where":
        return ops.where(*(run(t, a, b) for t in tree[1:]))
    return CALLS[tree[0]](*(run(t, a, b) for t in tree[1:]))


REALS = trees(st.sampled_from(["a", "b", 0, 1, 2, -3, 0.5, 0.25]), ["neg", "abs", "sqrt"], ["add", "sub", "mul", "min", "max", "div"])
WHOLES = trees(
    st.sampled_from(["a", "b", 0, 1, 2, 5]),
    ["neg", "abs", "invert", "half", "twice", "third", "rest"],
    ["add", "sub", "mul", "min", "max", "and_", "or_", "xor"],
)
PAIRS = trees(
    st.sampled_from([("a", 0), ("a", 1), ("b", 0), ("b", 1), 1, 2]), ["neg", "abs"], ["add", "sub", "mul", "min", "max"]
)  # fmt: skip


@pytest.mark.exhaustive
@examples(40)
@given(
    tree=REALS,
    dtype=st.sampled_from(["float32", "float64"]),
    isa=st.sampled_from(ISAS),
    add=st.sampled_from(["min", "max"]),
    seed=st.integers(0, 9),
)
def test_random_expressions_of_floats(tree: Any, dtype: str, isa: str, add: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    semiring = Semiring("random", CALLS[add], lambda a, b: run(tree, a, b) + 0 * a, INF if add == "min" else -INF, 0)
    a, b = (rng.integers(-8, 9, shape).astype(dtype) / 4 for shape in ((9, 40), (40, 33)))
    assert_engines_agree(semiring, (a.astype(dtype),), (b.astype(dtype),), isa, witness=True)


@pytest.mark.exhaustive
@examples(60)
@given(
    tree=WHOLES,
    dtype=st.sampled_from(["int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]),
    isa=st.sampled_from(ISAS),
    add=st.sampled_from(["max", "or_", "xor"]),
    seed=st.integers(0, 9),
)
def test_random_expressions_of_integers(tree: Any, dtype: str, isa: str, add: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    kind = np.dtype(dtype)
    semiring = Semiring("random", CALLS[add], lambda a, b: run(tree, a, b), 0 if add != "max" or kind.kind == "u" else -(2**15), 0)
    a, b = (rng.integers(0 if kind.kind == "u" else -9, 10, shape).astype(kind) for shape in ((9, 40), (40, 33)))
    try:
        found = assert_engines_agree(semiring, (a,), (b,), isa)
    except (DTypeError, OverflowRiskError):
        assume(False)
        return
    bits = -1 in semiring.program.constants or "invert" in semiring.program.operations  # ~5 is −6, but 250 in a byte
    if kind.kind == "i" or not bits:
        exact = np.array(
            [[max_or(add, [run(tree, int(x), int(y)) for x, y in zip(row, column, strict=True)]) for column in b.T] for row in a[:2]]
        )
        np.testing.assert_array_equal(found[0][:2], np.maximum(exact, semiring.zero) if add == "max" else exact)


def max_or(add: str, values: list[int]) -> int:
    total = int(values[0])
    for value in values[1:]:
        total = int(CALLS[add](total, int(value)))
    return total


@pytest.mark.exhaustive
@examples(30)
@given(
    first=PAIRS,
    second=PAIRS,
    kinds=st.sampled_from([("float32", "int32"), ("float64", "int64"), ("int16", "int32"), ("float32", "float64"), ("int64", "int64")]),
    isa=st.sampled_from(ISAS),
    seed=st.integers(0, 9),
)
def test_random_expressions_of_pairs(first: Any, second: Any, kinds: tuple[str, str], isa: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    dtypes = tuple(map(np.dtype, kinds))
    assume(all(d.kind == "f" or "0" not in repr(t) or dtypes[0].kind != "f" for t, d in zip((first, second), dtypes, strict=True)))
    semiring = Semiring("random", lexicographic, lambda a, b: (run(first, a, b), run(second, a, b)), (30000, 0), (0, 0))
    a, b = (tuple(rng.integers(-3, 4, shape).astype(d) for d in dtypes) for shape in ((9, 40), (40, 33)))
    try:
        assert_engines_agree(semiring, a, b, isa)
    except OverflowRiskError:
        assume(False)


@pytest.mark.sampled(1)
@isas
def test_witnesses_on_every_instruction_set(isa: str) -> None:
    rng = np.random.default_rng(0)
    for semiring in (MIN_PLUS, MAX_MIN):
        for dtype in ("float32", "int64", "uint8"):
            a, b = (elements(semiring, (np.dtype(dtype),), shape, rng) for shape in ((60, 1100), (1100, 70)))
            assert_engines_agree(semiring, a, b, isa, witness=True)


@isas
def test_logarithms_on_every_instruction_set(isa: str) -> None:
    rng = np.random.default_rng(0)
    a, b = (rng.normal(scale=300, size=shape) for shape in ((20, 600), (600, 30)))
    (found, _), (expected, _) = products(LOG, (a,), (b,), isa)
    assert_equal(found, expected, close=True)


@isas
def test_truth_values_beside_numbers(isa: str) -> None:
    reach = Semiring(
        "reach", lambda a, b: (a[0] or b[0], min(a[1], b[1])), lambda a, b: (a[0] and b[1] > 2, a[1] + b[1]), (False, INF), (True, 0)
    )
    rng = np.random.default_rng(0)
    for dtype in ("float64", "int32", "uint8"):
        a, b = ((rng.random(shape) < 0.2, rng.integers(0, 9, shape).astype(dtype)) for shape in ((20, 70), (70, 33)))
        assert_engines_agree(reach, a, b, isa)


@isas
def test_many_components(isa: str) -> None:
    """More than the registers hold, even one of each."""
    count = 8
    many = Semiring("many", lambda a, b: tuple(map(min, a, b)), lambda a, b: tuple(map(operator.add, a, b)), (INF,) * count, (0,) * count)
    rng = np.random.default_rng(0)
    a, b = (tuple(rng.integers(0, 99, shape).astype(float) for _ in range(count)) for shape in ((7, 40), (40, 11)))
    assert_engines_agree(many, a, b, isa)


@pytest.mark.parametrize("device", ["cpu", "reference", pytest.param("cuda", marks=pytest.mark.gpu)])
@pytest.mark.parametrize(("add", "zero"), [(min, INF), (max, -INF)])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_quotient_without_a_value_never_wins(device: str, add: Any, zero: float, dtype: str) -> None:
    """0/0 where no sample finds it is what it is to Python's min and max: nothing that beats a number."""
    ratio = Semiring("ratio", add, lambda a, b: (a * 4 - 17) / (b * 4 - 17), zero, 1)
    a = np.array([[4.25, 5.0], [4.25, 4.25]], dtype)
    b = np.array([[4.25, 6.0], [4.25, 4.25]], dtype)
    best = np.where(np.isnan(quotients := _quotients(a, b)), zero, quotients)
    assert matmul(a, b, ratio, device=device).tolist() == (best.min(1) if add is min else best.max(1)).tolist()


def _quotients(a: Any, b: Any) -> Any:
    with np.errstate(all="ignore"):
        return (a[:, :, None] * 4 - 17) / (b[None, :, :] * 4 - 17)
