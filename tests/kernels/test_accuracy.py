"""Every formula of the catalogue against exact numbers: ⊕, ⊗ and star over the whole range of every dtype, on every engine.

Exact is what mpmath gives with so many digits that the sum of the largest and the smallest float loses none.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import mpmath
import numpy as np
import pytest

from semiring.algebra import ops
from semiring.algebra.catalogue import GF2, LOG, PLUS_TIMES
from semiring.algebra.definition import Semiring
from semiring.algebra.expression import ARITHMETIC
from semiring.common.errors import DivergentPivot
from semiring.kernels.cpu.engine import CpuEngine
from semiring.kernels.engine import Block
from semiring.kernels.reference import ReferenceEngine
from tests.kernels.samples import CASES, ISAS, DTypes, Values, name, scalars

INF = math.inf
BITS = 2200
FLOATS = [np.dtype(d) for d in ("float32", "float64")]
CUDA = pytest.param("cuda", marks=pytest.mark.gpu)
ENGINES = ["reference", *ISAS, CUDA]

Exact = tuple[Any, ...]
"""The components of an element: multiple-precision floats, integers or truth values."""


@pytest.fixture(autouse=True)
def _digits() -> Any:
    with mpmath.workprec(BITS):
        yield


def computed(engine: str, semiring: Semiring, method: str, result: Values, *operands: Values) -> Values:
    """What an engine leaves in `result`."""
    dtypes = tuple(v.dtype for v in result)
    if engine == "cuda":
        import cupy

        from semiring.kernels.cuda.engine import CudaEngine

        on_gpu = CudaEngine(semiring, dtypes)
        on_gpu.signed = dtypes[0].kind == "i"
        there = tuple(map(cupy.asarray, result))
        block = on_gpu.load(there)
        getattr(on_gpu, method)(*(on_gpu.load(tuple(map(cupy.asarray, x)), owned=False) for x in operands), block)
        on_gpu.store(block, there)
        on_gpu.verify()
        return tuple(v.get() for v in there)
    on_host = ReferenceEngine(semiring, dtypes) if engine == "reference" else CpuEngine(semiring, dtypes, 1, engine)
    on_host.signed = dtypes[0].kind == "i"
    block = Block(tuple(v.copy() for v in result))
    with np.errstate(all="ignore"):
        getattr(on_host, method)(*map(Block, operands), block)
    return block.values


def outer(engine: str, semiring: Semiring, columns: Sequence[Values], rows: Sequence[Values]) -> Values:
    """⊕ over k of columns[k] ⊗ rows[k], each with each, flat."""
    a = tuple(np.stack(part, axis=1) for part in zip(*columns, strict=True))
    b = tuple(np.stack(part, axis=0) for part in zip(*rows, strict=True))
    result = tuple(np.zeros((len(x), y.shape[1]), x.dtype) for x, y in zip(a, b, strict=True))
    return tuple(v.ravel() for v in computed(engine, semiring, "multiply", result, a, b))


def stars(engine: str, semiring: Semiring, pivots: Values) -> Values:
    """The stars of elements that have one."""
    return tuple(v.ravel() for v in computed(engine, semiring, "eliminate", tuple(v.reshape(-1, 1, 1) for v in pivots)))


# Elements.


def floats(dtype: np.dtype[Any]) -> list[float]:
    """Both signs, every order of magnitude, and what lies near where a formula changes."""
    rng, info = np.random.default_rng(0), np.finfo(dtype)
    least, most = float(info.smallest_subnormal), float(info.max)
    sizes = [0, least, 3 * least, float(info.smallest_normal), most, most / 2, math.sqrt(most), math.sqrt(least)]
    sizes += [math.log(most), -math.log(least), 1, 2, 0.5, math.log(2), *(1 + rng.normal(size=4) * 1e-6), *rng.uniform(0, 40, 6)]
    sizes += [*2.0 ** rng.uniform(math.log2(least), math.log2(most) - 1, 12)]
    return [*np.unique(np.array([*sizes, *(-s for s in sizes), -INF, INF], dtype)).tolist()]


def integers(semiring: Semiring, dtype: np.dtype[Any]) -> list[int]:
    """As large as neither ⊕ nor ⊗ leaves the dtype, and what stands for 0 and 1."""
    info, operations = np.iinfo(dtype), semiring.program.operations
    most = math.isqrt(info.max // 4) if "mul" in operations else info.max // 8 if operations & ARITHMETIC else info.max
    sizes = [0, 1, 2, 3, most // 2, most - 1, most]
    ends = [] if operations & ARITHMETIC else [info.min, info.max]
    return sorted({*sizes, *(-s for s in sizes if dtype.kind == "i"), *ends})


@functools.cache
def sample(semiring: Semiring, dtypes: DTypes) -> Values:
    """Elements of the carrier, one array a component."""
    pools: list[list[Any]] = []
    for dtype, zero in zip(dtypes, semiring.identities(dtypes)[0], strict=True):
        pool: list[Any] = [False, True] if dtype.kind == "b" else floats(dtype) if dtype.kind == "f" else [*integers(semiring, dtype), zero]
        pools.append(pool if len(dtypes) == 1 else pool[:: len(pool) // 7])
    kept = []
    for element in itertools.product(*pools):
        arrays = tuple(np.array([[v]], d) for v, d in zip(element, dtypes, strict=True))
        if semiring.carrier.contains(scalars(semiring, arrays)[0][0]):
            kept.append(element)
    return tuple(np.array(part, d) for part, d in zip(zip(*kept, strict=True), dtypes, strict=True))


def exactly(semiring: Semiring, values: Values) -> list[Exact]:
    rows = scalars(semiring, tuple(v[None, :] for v in values))[0]
    elements = rows if semiring.components > 1 else [(v,) for v in rows]
    return [tuple(mpmath.mpf(v) if isinstance(v, float) else v for v in element) for element in elements]


def log_add(x: Any, y: Any) -> Any:
    high, low = max(x, y), min(x, y)
    with mpmath.workprec(200):
        return high if low == -INF else high + mpmath.log1p(mpmath.exp(low - high))


EXACT: dict[tuple[Semiring, str], Callable[..., Any]] = {
    (LOG, "add"): log_add,
    (LOG, "star"): lambda a: -mpmath.log1p(-mpmath.exp(a)),
}
"""What needs more than + − × ÷ and comparisons, which numbers of any kind have."""


def applied(semiring: Semiring, operation: str, *elements: Exact) -> Exact:
    function = EXACT.get((semiring, operation)) or getattr(semiring, operation)
    result = function(*(e if semiring.components > 1 else e[0] for e in elements))
    return result if isinstance(result, tuple) else (result,)


@functools.cache
def pairs(semiring: Semiring, dtypes: DTypes, operation: str) -> list[Exact]:
    """The results for each element of the sample with each."""
    elements = exactly(semiring, sample(semiring, dtypes))
    return [applied(semiring, operation, x, y) for x in elements for y in elements]


# Comparison.


def assert_accurate(semiring: Semiring, found: Values, exact: Sequence[Exact], *, roundings: float, least: float = 0.0) -> None:
    """Within so many ε·max(least, |r|), but for what is lost below the smallest float; ∞ beyond the largest one; integers are equal."""
    components = zip(*exactly(semiring, found), strict=True), zip(*exact, strict=True)
    for part, values, results in zip(found, *components, strict=True):
        if part.dtype.kind != "f":
            assert values == results
            continue
        info = np.finfo(part.dtype)
        epsilon, most, lost = (mpmath.mpf(float(v)) for v in (info.eps, info.max, info.smallest_subnormal))
        for value, result in zip(values, results, strict=True):
            if abs(result) <= most:
                right = abs(value - result) <= roundings * epsilon * max(least, abs(result)) + lost
            else:
                right = value in ((result,) if mpmath.isinf(result) else (mpmath.sign(result) * most, mpmath.sign(result) * mpmath.inf))
            assert right, f"{float(value)} for {mpmath.nstr(result, 20)}"


def on_engines(cases: Sequence[tuple[Semiring, DTypes]]) -> list[Any]:
    """Floats on every instruction set, and others on one: there is little about them that it could change."""
    return [
        pytest.param(engine, *case, marks=[pytest.mark.gpu] if engine == "cuda" else [], id=f"{name(case[0])}-{name(case[1])}-{engine}")
        for case in cases
        for engine in ("reference", *(ISAS if case[1][0].kind == "f" else ISAS[:1]), "cuda")
    ]


@pytest.mark.sampled(17)
@pytest.mark.parametrize(("engine", "semiring", "dtypes"), on_engines(CASES))
def test_sums_and_products(engine: str, semiring: Semiring, dtypes: DTypes) -> None:
    elements = sample(semiring, dtypes)
    count = len(elements[0])
    ones = tuple(np.full(count, one, d) for one, d in zip(semiring.identities(dtypes)[1], dtypes, strict=True))
    products = outer(engine, semiring, [elements], [elements])
    assert_accurate(semiring, products, pairs(semiring, dtypes, "mul"), roundings=0.5)
    sums = outer(engine, semiring, [elements, ones], [ones, elements])
    assert_accurate(semiring, sums, pairs(semiring, dtypes, "add"), roundings=4 if semiring is LOG else 0.5, least=float(semiring is LOG))


@pytest.mark.sampled(7)
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("semiring", [PLUS_TIMES, LOG], ids=name)
def test_stars(semiring: Semiring, dtype: np.dtype[Any], engine: str) -> None:
    """Relative to themselves, however near a pivot is to where its star ceases to exist."""
    info = np.finfo(dtype)
    near = 2.0 ** -np.arange(0, 1 - math.log2(float(info.smallest_subnormal)), 3)
    pivots = [*-near] if semiring is LOG else [*(1 - near), *(1 + near)]
    values = np.unique(np.array([*pivots, *floats(dtype)], dtype))
    values = values[(values < 0) if semiring is LOG else (values != 1) & np.isfinite(values)]
    assert_accurate(semiring, stars(engine, semiring, (values,)), exact_stars(semiring, tuple(values.tolist())), roundings=4)


@functools.cache
def exact_stars(semiring: Semiring, values: tuple[float, ...]) -> list[Exact]:
    return [applied(semiring, "star", (mpmath.mpf(v),)) for v in values]


@pytest.mark.sampled(9)
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("semiring", "dtype", "values"),
    [(PLUS_TIMES, "float32", [1]), (PLUS_TIMES, "float64", [1]), (LOG, "float32", [0, 1e-45, 3e38]), (LOG, "float64", [0, 5e-324, 1e308]),
     (GF2, "bool", [True])],
)  # fmt: skip
def test_stars_that_do_not_exist(semiring: Semiring, dtype: str, values: list[Any], engine: str) -> None:
    for value in values:
        with pytest.raises(DivergentPivot):
            stars(engine, semiring, (np.array([value], dtype),))


FUNCTIONS: dict[str, tuple[Callable[[Any], Any], float]] = {
    "exp": (mpmath.exp, -INF), "expm1": (mpmath.expm1, -INF), "log": (mpmath.log, 0), "log1p": (mpmath.log1p, -1), "sqrt": (mpmath.sqrt, 0),
}  # fmt: skip
"""The functions of `ops`, and from where on they are defined."""


@pytest.mark.sampled(17)
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("function", FUNCTIONS)
def test_functions(function: str, dtype: np.dtype[Any], engine: str) -> None:
    """As a kernel has them, in a product that does nothing else."""
    start = FUNCTIONS[function][1]
    alone = Semiring(f"only-{function}", max, lambda a, b: max(getattr(ops, function)(a), b), -INF, INF)
    x = np.array([v for v in floats(dtype) if v >= start], dtype)
    (found,) = outer(engine, alone, [(x,)], [(np.array([-INF], dtype),)])
    assert_accurate(alone, (found,), exact_values(function, tuple(x.tolist())), roundings=4)


@functools.cache
def exact_values(function: str, x: tuple[float, ...]) -> list[Exact]:
    limited = [min(v, 1e5) if v < INF and "exp" in function else v for v in x]  # e^(10^308) is more than mpmath should write down
    return [(FUNCTIONS[function][0](mpmath.mpf(v)),) for v in limited]
