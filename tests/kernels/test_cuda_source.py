"""The CUDA kernels compile, without a GPU, for every architecture and every row of the table of steps."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from semiring.algebra.catalogue import (
    BITSET,
    BOOLEAN,
    DISTANCE_COUNT,
    DISTANCE_HOPS,
    LOG,
    MAX_MIN,
    MAX_TIMES,
    MIN_PLUS,
    PLUS_TIMES,
    modular,
)
from semiring.algebra.definition import Semiring
from semiring.algebra.derivatives import derivatives
from semiring.algebra.expression import const, node, var
from semiring.algebra.laws import is_idempotent, is_selective
from semiring.algorithms.metrics import METRICS, finished, summed
from semiring.common.errors import DTypeError, SemiringError
from semiring.kernels import source
from semiring.kernels.cuda import boolean, compiler, exponential, small_integers
from semiring.kernels.cuda.elements import elements_source
from semiring.kernels.cuda.fronts import fronts_source, sweep_source
from semiring.kernels.cuda.gradients import exponentials_source, gradients_source
from semiring.kernels.cuda.kernels import (
    GROUP,
    SHALLOW,
    SHALLOW_STACK,
    SHALLOW_TILES,
    SMALL_PIVOT,
    STACK_SIDES,
    STACKS,
    THIN,
    THIN_SIDES,
    VECTORS,
    bounds_of,
    kernel_source,
    pivot_sides,
    problem_for,
    reads_vectors,
    stack_side,
    step_for,
)
from semiring.kernels.cuda.paths import trees_source, walks_source
from semiring.kernels.cuda.representation import STEPS, hoisted, represent
from semiring.kernels.cuda.scan import ScanForm, fits, scan_source, scan_tile
from semiring.kernels.cuda.selection import SelectionForm, selection_source
from semiring.kernels.cuda.source import function
from semiring.kernels.cuda.sparse import sparse_form, sparse_source
from semiring.kernels.cuda.statistics import statistics_source
from semiring.kernels.cuda.tile import COLUMNS, ROWS, Tile, TileProblem, candidate_tiles, choose_tile, looks_up_in_shared, split_k
from semiring.kernels.hardware import H200, Device
from semiring.kernels.limits import FINITE, HIGHEST, LOWEST, SafeRange

nvrtc = pytest.importorskip("cupy").cuda.nvrtc

LUKASIEWICZ = Semiring("lukasiewicz", add=max, mul=lambda a, b: max(a + b - 1, 0), zero=0, one=1, domain=(0, 1))
CASES = [
    (MIN_PLUS, "float32", True), (MIN_PLUS, "float32", False), (MIN_PLUS, "float64", True), (MIN_PLUS, "int32", True),
    (MIN_PLUS, "int16", True), (MIN_PLUS, "uint16", True), (MIN_PLUS, "uint32", True), (MIN_PLUS, "int64", True),
    (MAX_MIN, "float32", True), (MAX_MIN, "int32", True), (MAX_MIN, "uint32", True), (LUKASIEWICZ, "float32", True),
    (PLUS_TIMES, "float32", True), (PLUS_TIMES, "float64", True), (LOG, "float32", True), (BOOLEAN, "bool", True),
    (BITSET, "uint8", True), (DISTANCE_COUNT, "float64", True), (DISTANCE_HOPS, "int32", True),
]  # fmt: skip
ARCHITECTURES = (75, 80, 86, 90, 100)
ON_TWO = [(*case, 90) for case in CASES if case[1] not in ("uint16", "uint32") and case[0] is not MAX_MIN]
ON_TWO += [(*CASES[i], 75) for i in (4, 13)]
"""Cases for kernels in many forms: those whose elements differ, and not only the row of the table, and two on the oldest architecture."""

_SOME = {75: (0, 4, 13, 17), 80: (0, 4), 86: (4,), 100: (0, 12)}
ON_ALL = [(*case, 90) for case in CASES] + [(*CASES[i], arch) for arch, some in _SOME.items() for i in some]
"""All cases on one architecture, and on each of the others those for which it has instructions of its own, or not those of the first."""

WHOLE = [case for case in ON_TWO if case[3] == 90] + [next(case for case in ON_ALL if case[3] == arch) for arch in (75, 100)]
"""Cases with all kernels: the others have products of their own, and are otherwise as one of these."""

ALLOWED = 16 if nvrtc.getVersion() >= (13, 1) else 256
"""Bytes of a product's registers that may be in memory: a few numbers around the loop, for more blocks on a multiprocessor."""


def compile_and_report(source: str, arch: int) -> tuple[int, int]:
    """Registers of a kernel, and bytes of registers that had to go to memory."""
    names, contents = ([part.encode() for part in parts] for parts in (compiler.headers(), compiler.headers().values()))
    program = nvrtc.createProgram(source, "semiring.cu", contents, names)
    try:
        # What a driver has kept comes without a report.
        nvrtc.compileProgram(program, [*compiler.options_for(arch), "--no-cache", "--ptxas-options=-v"])
    except nvrtc.NVRTCError:
        raise AssertionError(nvrtc.getProgramLog(program)) from None
    log = nvrtc.getProgramLog(program)
    registers = max(map(int, re.findall(r"Used (\d+) registers", log)))
    spilled = re.findall(r"(\d+) bytes spill stores", log)
    return registers, sum(map(int, spilled))


def test_lambdas_have_types() -> None:
    """NVRTC up to 13.0 takes a lambda with `auto` among its parameters for a host function, which newer ones do not."""
    assert not [text for text in compiler.headers().values() if re.search(r"\[[&=]?\]\([^)]*\bauto\b", text)]


@pytest.mark.sampled(1)
@pytest.mark.parametrize(("semiring", "dtype", "ordered", "arch"), ON_ALL, ids=str)
def test_every_kernel_compiles(semiring: Semiring, dtype: str, ordered: bool, arch: int, record_property: Any) -> None:
    dtypes = (np.dtype(dtype),) * semiring.components
    r = represent(semiring, dtypes)
    names, whole = ["product", *["product_witness"] * is_selective(semiring, dtypes)], (semiring, dtype, ordered, arch) in WHOLE
    if whole:
        names += ["add_parts", "add_identity", "test_loops", *["close"] * is_idempotent(semiring, dtypes)]
        names += ["product_shared_witness", "close_witness"] * is_selective(semiring, dtypes) + ["eliminate"] * (r.star is not None)
    for name in names:
        step = step_for(r, arch, ordered_bits=ordered, pairs=name == "product")
        vectors = reads_vectors(r, step)
        how = {"witness": name.endswith("_witness"), "shared_lookup": name == "product_shared_witness"}
        problem = problem_for(r, step, (1, 1, 1, 1), light=vectors, **how)
        product = {"tile": candidate_tiles(problem)[0], "access": ("vectors", "vectors") if vectors else ("rows", "columns")}
        sides = (SMALL_PIVOT, pivot_sides(r)[-1]) if name in ("close", "close_witness", "eliminate") else (SMALL_PIVOT,)
        variants: list[dict[str, Any]] = [{"side": side} for side in sides]
        if name.startswith("product"):
            variants = [product, {**product, "count": GROUP}][: 1 + (whole and name == "product")]
        for variant in variants:
            registers, spilled = compile_and_report(kernel_source(r, step, name, **variant), arch)
            record_property(f"{name}: registers", registers)
            allowed = ALLOWED if name.startswith("product") else 80
            assert spilled <= allowed, f"{name} {variant} keeps {spilled} bytes in memory instead of registers"


def test_long_inverses_compile_outside_of_the_loop() -> None:
    """Inverses modulo p are chains of unsigned remainders: NVRTC took more than 5 minutes for one within the loop over pivots."""
    r = represent(modular(2**31 - 19), (np.dtype(np.uint64),))
    text = kernel_source(r, None, "eliminate")
    assert "__noinline__ Element star" in text
    compile_and_report(text, 90)


@pytest.mark.exhaustive
@pytest.mark.parametrize(("semiring", "dtype", "ordered", "arch"), ON_TWO, ids=str)
def test_kernels_of_stacks_and_vectors_compile(semiring: Semiring, dtype: str, ordered: bool, arch: int) -> None:
    dtypes = (np.dtype(dtype),) * semiring.components
    r = represent(semiring, dtypes)
    side = max(side for side in STACK_SIDES if stack_side(r, side) == side)
    for name in STACKS[: 1 + is_selective(semiring, dtypes)]:
        # Of 32 × 32 wide numbers and their winners a lane has 32 each; what is in memory are addresses, used once at the end.
        assert compile_and_report(kernel_source(r, None, name, side=side), arch)[1] <= 192
    for name in THIN[: 1 + is_selective(semiring, dtypes)]:
        for short, rows in ((THIN_SIDES[0], False), (THIN_SIDES[-1], True)):
            assert compile_and_report(kernel_source(r, None, name, side=short, short_rows=rows), arch)[1] <= 64
    access = "vectors" if reads_vectors(r, None) and r.same_registers else "rows"
    for name in VECTORS:
        assert compile_and_report(kernel_source(r, None, name, None, (access, access)), arch)[1] == 0
    if r.same_registers and r.size == 4 and not r.has_series:
        step, small, (first, second) = step_for(r, arch, ordered_bits=ordered), SHALLOW_STACK, SHALLOW_TILES[:2]
        for how, tile, checked in (("vectors", small, False), ("rows", small, True), ("vectors", first, True), ("rows", second, False)):
            signless = checked and ordered and r.keeps_bits_ordered
            source = kernel_source(r, step, SHALLOW, None, (how, how), checked=checked, signless=signless, shallow=tile)
            # Of rows that are read one by one addresses are kept there from tile to tile, and otherwise one or two.
            assert compile_and_report(source, arch)[1] <= (64 if how == "rows" else 16)
    if r.dtypes == dtypes and len(dtypes) == 1 and not r.clamped:
        for name in (STACKS[0], THIN[0], *VECTORS):
            assert compile_and_report(kernel_source(r, None, name, None, (access, access), side=side, checked=True), arch)[1] <= 192


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("arch", "semiring", "dtype"),
    [
        (90, MIN_PLUS, "float32"),
        (90, MAX_MIN, "int16"),
        *((arch, s, d) for arch in ARCHITECTURES for s, d in ((BOOLEAN, "bool"), (DISTANCE_HOPS, "float64"))),
    ],
)
def test_kernels_of_trees_compile(arch: int, semiring: Semiring, dtype: str) -> None:
    for backward, shared in ((False, True), (True, False)):
        source = trees_source(semiring, (np.dtype(dtype),) * semiring.components, backward=backward, shared=shared)
        # A thread has 64 registers; what the compiler keeps in memory nonetheless is no more than a few addresses.
        assert compile_and_report(source, arch)[1] <= 64


@pytest.mark.exhaustive
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    ("arch", "name"),
    [*((90, name) for name in ("cityblock", "euclidean", "braycurtis", "intersection")), (75, "braycurtis"), (100, "cityblock")],
)
def test_kernels_of_selections_compile(arch: int, name: str, dtype: str) -> None:
    semiring, count = summed(METRICS[name], name, False)
    dtypes = (np.dtype(dtype),) * semiring.components
    form = SelectionForm(semiring, dtypes, finished(METRICS[name], count), METRICS[name].largest)
    for vectors in (True, False)[count > 1 :]:
        # Addresses are kept in memory while a tile is computed.
        assert compile_and_report(selection_source(form, vectors), arch)[1] <= 64


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_kernels_of_gradients_compile(arch: int, dtype: str) -> None:
    assert compile_and_report(exponentials_source(np.dtype(dtype)), arch)[1] == 0
    for semiring in (MIN_PLUS, MAX_MIN, MAX_TIMES):
        (weights,) = derivatives(semiring.program.mul, [var(0), var(1)])
        for columns in (False, True):
            assert compile_and_report(gradients_source(weights[columns], np.dtype(dtype), columns), arch)[1] == 0


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_kernels_of_walks_compile(arch: int) -> None:
    assert compile_and_report(walks_source(), arch)[1] == 0


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_kernels_of_levels_compile(arch: int) -> None:
    assert compile_and_report(boolean.levels_source(np.dtype("int16")), arch)[1] == 0


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("arch", "dtype"),
    [
        *((90, dtype) for dtype in ("float32", "float64", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")),
        *((arch, dtype) for arch in ARCHITECTURES if arch != 90 for dtype in ("float64", "uint16")),
    ],
)
def test_value_statistics_compile(arch: int, dtype: str) -> None:
    assert compile_and_report(statistics_source(np.dtype(dtype)), arch)[1] == 0


@pytest.mark.sampled(1)
@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_kernels_of_exponentials_compile(arch: int) -> None:
    for dtype in ("float32", "float64"):
        for name in exponential.KERNELS:
            assert compile_and_report(exponential.exponential_source(name, np.dtype(dtype)), arch)[1] <= 16


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("semiring", "dtype", "ordered", "arch"), ON_TWO, ids=str)
def test_kernels_of_scans_compile(semiring: Semiring, dtype: str, ordered: bool, arch: int) -> None:
    """A matrix in registers and one that is read at each step, with every way that sums are added up."""
    dtypes = (np.dtype(dtype),) * semiring.components
    size, witness = represent(semiring, dtypes).size, is_selective(semiring, dtypes)
    for states, backward in ((64, False), (300, True)):
        tile = scan_tile(size, states, constant=states == 64)
        weighted, last = not ordered or states == 64, states == 300
        form = ScanForm(tile.parts, tile.terms, tile.held, tile.bound, backward, weighted, witness and last, added=not witness or not last)
        assert compile_and_report(scan_source(semiring, dtypes, form, arch), arch)[1] <= 16


@pytest.mark.sampled(1)
@pytest.mark.parametrize(("semiring", "dtype", "ordered", "arch"), ON_TWO, ids=str)
def test_kernels_of_sparse_products_compile(semiring: Semiring, dtype: str, ordered: bool, arch: int) -> None:
    """With a vector and with a matrix, and with every way that sums are added up."""
    dtypes = (np.dtype(dtype),) * semiring.components
    witness, width = is_selective(semiring, dtypes), 16 // dtypes[0].itemsize if len(dtypes) == 1 and dtypes[0].itemsize >= 4 else 1
    for n in (1, 64):
        options = {"wide": n == 1, "swapped": ordered, "witness": witness and not ordered, "checked": len(dtypes) == 1}
        form = sparse_form(1000, 27_000, n, width=width if n > 1 else 1, size=represent(semiring, dtypes).size, **options)
        # What joins rows may spill, and what stands around the loop of a form with 32 registers.
        assert compile_and_report(sparse_source(semiring, dtypes, form), arch)[1] <= (64 if n > 1 else 16)


@pytest.mark.parametrize("width", [1, 2, 4])
def test_every_number_of_columns_is_taken_in_few_slices(width: int) -> None:
    """Whole cache lines, or about as many lanes as there are vectors, so that no slice is for a few columns that are left over."""
    for n in range(max(2, width), 1000, width):
        form = sparse_form(1000, 27_000, n, width=width, size=16 // width if width > 1 else 4, wide=False, swapped=False, witness=False)
        slices = -(-n // (form.lanes * form.columns))
        lines = width > 1 and n % (8 * width) == 0
        assert form.columns % width == 0
        assert form.lanes <= 32
        assert slices == -(-n // (8 * width if lines else {1: 192, 2: 128, 4: 256}[width]))
        assert slices * form.lanes * form.columns - n < max(3 * slices * width, n / 2)


@pytest.mark.sampled(1)
@pytest.mark.parametrize(("semiring", "dtype", "ordered", "arch"), ON_TWO, ids=str)
def test_kernels_of_sweeps_compile(semiring: Semiring, dtype: str, ordered: bool, arch: int) -> None:
    assert compile_and_report(sweep_source(semiring, (np.dtype(dtype),) * semiring.components, backward=ordered), arch)[1] == 0


@pytest.mark.sampled(1)
@pytest.mark.parametrize(("semiring", "dtype", "ordered", "arch"), ON_TWO, ids=str)
def test_kernels_of_fronts_compile(semiring: Semiring, dtype: str, ordered: bool, arch: int) -> None:
    source = fronts_source(semiring, (np.dtype(dtype),) * semiring.components, arch, by_star=not ordered)
    assert compile_and_report(source, arch)[1] == 0


@pytest.mark.parametrize("size", [4, 8, 16, 32])
@pytest.mark.parametrize("constant", [False, True])
def test_a_thread_block_has_room_for_every_number_of_states(size: int, constant: bool) -> None:
    for states in range(1, 1025):
        tile, width = scan_tile(size, states, constant=constant), max(1, 16 // size)
        assert tile.parts * tile.length >= states > (tile.parts - 1) * (tile.length - tile.terms - width)
        assert 32 % tile.parts == tile.length % tile.terms == tile.terms % width == 0
        assert states * tile.parts <= tile.threads <= tile.bound <= 1024
        assert constant or not tile.held
        assert tile.length == tile.terms or not tile.held
        assert states < 1024 or tile.vector_bytes <= 2 * (states + width) * size
    assert fits(MIN_PLUS, (np.dtype("f8"),), 1024)
    assert not fits(MIN_PLUS, (np.dtype("f4"),), 1025)
    assert fits(DISTANCE_COUNT, (np.dtype("f8"),) * 2, 1024)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_kernels_of_elements_compile(arch: int) -> None:
    for body, names, dtypes, numbers in (
        ("y = x > half ? half : x", "xy", ("int16", "int16"), ("half",)),
        ("if (x >= threshold) x = infinity, v = -1", "xv", ("uint64", "int32"), ("threshold", "infinity")),
        ("if (x < 0) *reinterpret_cast<int*>(flag) = 1", "x", ("int32",), ("flag",)),
    ):
        arrays = tuple(zip(names, map(np.dtype, dtypes), strict=True))
        assert compile_and_report(elements_source(body, arrays, numbers), arch)[1] == 0


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("dtype", "side"),
    [
        (dtype, -1 if dtype.startswith("u") else 1)
        for dtype in ("int16", "uint16", "int32", "uint32", "int64", "uint64", "float32", "float64")
    ]
    + [("float32", -1)],
)
def test_kernels_of_small_integers_compile(dtype: str, side: int) -> None:
    for g in small_integers.REACH:
        for rows, vectors in ((ROWS, True), (COLUMNS, False)):
            source = small_integers.powers_source("write_powers", np.dtype(dtype), side, g, rows, vectors)
            assert compile_and_report(source, 90)[1] == 0
        assert compile_and_report(small_integers.powers_source("multiply_powers", np.dtype(dtype), side, g), 90)[1] == 0


@pytest.mark.sampled(1)
@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_every_kernel_on_bits_compiles(arch: int, record_property: Any) -> None:
    kernels: list[tuple[Any, ...]] = [(name, None, 0) for name in ("transpose", "pack", "unpack", "add_identity")]
    kernels += [("close", None, words) for words in boolean.PIVOT_WORDS]
    kernels += [("close", None, boolean.PIVOT_WORDS[-1], True)] * (arch >= 90)
    tiles = boolean.candidate_bit_tiles(arch)
    kernels += [("product", tile, 0) for tile in tiles]
    kernels += [(name, tile, 0) for tile in tiles if tile.blocked for name in ("transpose", "arrange")]
    for kernel in kernels:
        registers, spilled = compile_and_report(boolean.bits_source(*kernel), arch)
        record_property(f"{kernel}: registers", registers)
        assert spilled == 0, f"{kernel} keeps {spilled} bytes in memory instead of registers"


def test_bounds_of_what_needs_no_closer_look() -> None:
    for dtype, kind, safe, expected in (
        ("float32", "f8", SafeRange(-2.0, 4.0, FINITE | HIGHEST), [-2, 4, -2, math.inf]),
        ("int16", "i8", SafeRange(-5, 7, FINITE | LOWEST), [-5, 7, -(2**15), 7]),
        ("uint64", "u8", SafeRange(0, 2**63, FINITE), [0, 2**63, 0, 2**63]),
    ):
        bounds = bounds_of(safe, np.dtype(dtype), 7)
        assert np.array(bounds[:4]).view(kind).tolist() == expected
        assert bounds.beyond == 7


def test_a_tile_of_bits_for_every_architecture() -> None:
    for arch, shared in ((75, 65536), (80, 166912), (86, 101376), (90, 232448), (100, 232448)):
        large, small = (boolean.choose_bit_tile(n, n, n, 1, Device(arch, 100, shared, shared)) for n in (32768, 512))
        assert large.rows >= small.rows
        assert large.tensor == (arch in (80, 86, 90))
        assert large.blocked == (arch == 90)
        core = "multiply_blocked_bits<" if large.blocked else "TensorCore<" if large.tensor else "Logic<"
        assert core in source(BOOLEAN, bool, arch=arch)


def test_bits_go_into_blocks_where_the_product_is_worth_the_copies() -> None:
    for m, n, k, batch, blocked in (
        (2048, 2048, 2048, 1, True),
        (1000, 1000, 1000, 100, True),
        (256, 32768, 32768, 1, True),
        (1024, 1024, 1024, 1, False),  # fewer tiles than multiprocessors
        (32768, 128, 32768, 1, False),  # copying A takes longer than multiplying it
        (129, 129, 129, 10_000, False),  # in blocks, an operand would have eight times as many bytes
        (5, 5, 0, 1, False),
    ):
        assert boolean.choose_bit_tile(m, n, k, batch, H200).blocked == blocked, (m, n, k, batch)


def test_every_row_of_the_table_is_used() -> None:
    used = set()
    for semiring, dtype, ordered in CASES:
        step = step_for(represent(semiring, (np.dtype(dtype),) * semiring.components), 90, ordered_bits=ordered, pairs=True)
        used.add(step.name if step else None)
    assert used == {None, *(row.name for row in STEPS)}


def test_what_waits_for_the_end_of_a_sum() -> None:
    a, b = var(0), var(1)
    total, least, most = node("add", a, b), node("min", a, b), node("max", a, b)
    for add, mul, zero, expected in (
        (most, node("max", node("sub", total, const(1)), const(0)), 0, (total, node("max", node("sub", a, const(1)), const(0)))),
        (
            least,
            node("add", const(1), node("mul", const(0.5), total)),
            math.inf,
            (total, node("add", const(1), node("mul", const(0.5), a))),
        ),
        (least, node("div", total, const(3)), math.inf, (total, node("div", a, const(3)))),
        # Decreasing, better than 0 at 0, no longer a number at infinity, and no extremum.
        (most, node("sub", const(1), total), 0, None),
        (most, node("mul", total, const(-1)), 0, None),
        (least, node("div", const(1), total), math.inf, None),
        (most, node("add", total, const(1)), 0, None),
        (least, node("mul", total, const(0)), math.inf, None),
        (least, node("add", total, const(-math.inf)), math.inf, None),
        (total, node("sub", total, const(1)), 0, None),
        (least, total, math.inf, None),
    ):
        assert hoisted(add, mul, zero, np.dtype("float64")) == (expected or (mul, a)), mul


def test_what_waits_depends_on_the_dtype() -> None:
    a, b = var(0), var(1)
    total, least, most = node("add", a, b), node("min", a, b), node("max", a, b)

    def cycle(x: Any) -> Any:
        """x, but for rounding: 0 becomes −1.1e-16 in float64, and 6e-8 in float32, which is better than 0."""
        return node("sub", node("add", node("add", x, const(0.3)), const(0.6)), const(0.9))

    for add, mul, zero, dtype, expected in (
        (most, cycle(total), 0, "float64", (total, cycle(a))),
        (most, cycle(total), 0, "float32", (cycle(total), a)),
        (least, node("mul", total, const(1e-50)), math.inf, "float64", (total, node("mul", a, const(1e-50)))),
        (least, node("mul", total, const(1e-50)), math.inf, "float32", (node("mul", total, const(1e-50)), a)),
        # Of integers, and where f(0) is better than 0, only what ⊕ makes superfluous goes.
        (most, node("max", node("sub", total, const(1)), const(0)), 0, "int32", (node("sub", total, const(1)), a)),
        (most, node("max", node("add", total, const(1)), const(0)), 0, "float32", (node("add", total, const(1)), a)),
    ):
        assert hoisted(add, mul, zero, np.dtype(dtype)) == expected, (mul, dtype)


def test_pairs_are_for_tropical_products_on_recent_architectures() -> None:
    for semiring, dtype, arch, pairs in (
        (MIN_PLUS, "int16", 90, True), (MIN_PLUS, "uint16", 100, True), (MIN_PLUS, "int16", 80, False), (MIN_PLUS, "uint8", 90, False),
        (MAX_MIN, "int16", 90, False), (MIN_PLUS, "int32", 90, False),
    ):  # fmt: skip
        r = represent(semiring, (np.dtype(dtype),))
        step = step_for(r, arch, ordered_bits=False, pairs=True)
        assert (step is not None and step.pairs) == pairs
        widened = step_for(r, arch, ordered_bits=False)
        assert widened is None or not widened.pairs


def test_witnesses_are_looked_up_in_shared_memory_where_all_slices_have_room() -> None:
    gpu, small = (Device(arch, 100, shared, shared) for arch, shared in ((90, 232448), (75, 65536)))
    for size in (4, 8, 16):
        for light in (False, True):
            assert looks_up_in_shared(TileProblem(100, 100, 64, 1, size, True, light), gpu)
            assert not looks_up_in_shared(TileProblem(100, 100, 65, 1, size, True, light), gpu)
            assert not looks_up_in_shared(TileProblem(100, 100, 64, 1, size, False, light), gpu)
            assert looks_up_in_shared(TileProblem(100, 100, 64, 1, size, True, light), small) == (size < 16)
            tile = choose_tile(TileProblem(64, 500, 64, 1, size, True, light, side=64, shared_lookup=True), gpu)
            assert tile.rows == (64 if size < 16 else 32)


def test_what_does_not_fill_the_gpu_is_split_along_k() -> None:
    gpu = Device(arch=90, multiprocessors=132, shared_bytes=233472, block_shared_bytes=232448)
    tile = Tile(64, 128, 16, 8, 8, 3, 4)
    for n in (1, 1000, 1024, 2049, 2176, 4096, 8192, 10007):
        problem = TileProblem(n, n, n, 1, 4, splittable=True)
        assert split_k(replace(problem, splittable=False), tile, gpu) is None
        found = split_k(problem, tile, gpu)
        if found is None:
            continue
        assert found.rows % tile.rows == 0 <= found.rows < n
        assert found.parts > 1
        assert (found.parts - 1) * found.depth < n <= found.parts * found.depth
        # No more is split than the blocks that run at once and a row of tiles.
        assert tile.count(n - found.rows, n) < 4 * gpu.multiprocessors + tile.count(1, n)
        assert found.parts * (n - found.rows) * n * 4 <= 48 << 20
    assert split_k(TileProblem(8192, 8192, 256, 1, 4, splittable=True), tile, gpu) is None
    filled = TileProblem(64 * 132, 128 * 4, 8192, 1, 4, splittable=True)
    assert split_k(filled, tile, gpu) is None


def test_small_products_have_small_tiles() -> None:
    gpu = Device(arch=90, multiprocessors=132, shared_bytes=233472, block_shared_bytes=232448)
    for witness in (False, True):
        areas = [tile.rows * tile.columns for n in (256, 1024, 8192) for tile in [choose_tile(TileProblem(n, n, n, 1, 4, witness), gpu)]]
        assert areas == sorted(areas)
        assert areas[0] < areas[-1]
    assert choose_tile(TileProblem(64, 512, 64, 1, 4, side=64), gpu).rows == 64


def test_floats_have_no_double_constants() -> None:
    source = kernel_source(represent(LUKASIEWICZ, (np.dtype(np.float32),)), None, "close")
    assert "float32(0x1.0000000000000p+0)" in source
    assert "float64" not in source.split("struct Semiring")[1]


def test_a_constant_that_does_not_fit_is_refused() -> None:
    """Where components have several dtypes only the code tells which constant meets which."""
    masked = Semiring(
        "masked", lambda a, b: (min(a[0], b[0]), a[1] | b[1]), lambda a, b: (a[0] + b[0], (a[1] | b[1]) & 300), (math.inf, 0), (0, 0)
    )
    with pytest.raises(DTypeError, match="300 does not fit uint8"):
        kernel_source(represent(masked, (np.dtype(np.float64), np.dtype(np.uint8))), None, "close")


def test_older_architectures_have_no_three_way_minimum() -> None:
    r = represent(MIN_PLUS, (np.dtype(np.float32),))
    assert step_for(r, 80, ordered_bits=True) is None
    step = step_for(r, 90, ordered_bits=True)
    assert step is not None
    assert step.count == 2


def test_truth_values_beside_numbers() -> None:
    dtypes = [np.dtype(float), np.dtype(bool)]
    flag = node("or", node("invert", var(0, 1)), var(1, 1))
    lines, results = function([node("min", var(0, 0), var(1, 0)), flag], ["a0", "a1"], ["b0", "b1"], dtypes)
    assert lines == ["const float64 t0 = minimum<float64>(a0, b0);", "const bool t1 = !a1;", "const bool t2 = bool(t1 | b1);"]
    assert results == ["t0", "t2"]


def test_elements_too_large_for_a_tile_are_told() -> None:
    device = Device(arch=75, multiprocessors=40, shared_bytes=65536, block_shared_bytes=65536)
    with pytest.raises(SemiringError, match="elements of 1024 bytes are too large"):
        choose_tile(TileProblem(64, 64, 64, 1, 1024, light=False), device)
