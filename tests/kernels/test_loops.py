"""Compiled loops beside the same loops run as Python: every kind of statement and expression, and what is refused."""

from __future__ import annotations

import importlib
import math
import os
import pkgutil
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Annotated, Any, NamedTuple, cast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import semiring.algorithms
from semiring.kernels.cpu.loops import (
    Element,
    Elements,
    Floats,
    Ints,
    Loop,
    Rows,
    ShortInts,
    ShortRows,
    Words,
    fill,
    interpreted,
    loop,
    popcount,
    prefetch,
    select,
    trailing_zeros,
)

POINT = np.dtype([("x", np.float64), ("mark", np.int32), ("next", np.int64)])
Points = Annotated[Any, POINT]

FEW = 3


class Graph(NamedTuple):
    """A graph in compressed rows."""

    n: int
    starts: Ints
    heads: ShortInts


@loop
def divided(x: int, y: int) -> tuple[int, int, int, int, int]:
    return x // y, x % y, x // 8, x % 8, -x // FEW


@loop
def compared(x: int, y: float, z: int) -> tuple[bool, bool, bool, int]:
    inside = -5 <= x < 5 and not z > 3
    return inside, x != z or y < 0.5, y > float(x), (1 if inside else 2) + (x > z)


@loop
def extremes(x: int, y: int, a: float, b: float) -> tuple[int, int, float, float, int, float]:
    return min(x, y, 3), max(x, y), min(a, b), max(a, -b, 0.0), abs(x), abs(a)


@loop
def words(x: int, bits: Words) -> tuple[int, int, int]:
    bits[0] |= 1 << (x & 63)
    bits[1] = bits[0] & ~bits[2] ^ (bits[2] >> 3)
    return popcount(bits[0]), trailing_zeros(bits[0]), x << 2 | x >> 1


@loop
def first_at_least(values: Ints, n: int, least: int) -> int:
    for i in range(n):
        if values[i] >= least:
            return i
    return -1


@loop
def skips(values: Ints, n: int, least: int) -> tuple[int, int, int]:
    total, seen = 0, 0
    i = first_at_least(values, n, least)
    for k in range(n - 1, -1, -2):
        if values[k] < 0:
            continue
        seen += 1
        if values[k] > 100:
            break
        total += values[k] if k != i else -values[k]
    while True:
        i -= 1
        if i < 0 or values[i] == 7:
            break
    else_ = i
    return total, seen, else_


@loop
def guarded(values: Ints, n: int, at: int) -> bool:
    """Return True if an entry exists and is positive."""
    return 0 <= at < n and values[at] > 0 and (at == 0 or values[at - 1] != values[at])


@loop
def marks(points: Points, n: int) -> float:
    total = 0.0
    for i in range(n):
        prefetch(points.x, i)
        points.mark[i] = points.mark[i] + 1
        points.next[i] = i + 1 if i + 1 < n else -1
        total += points.x[i] * 2 / 3 - 1
    return total


@loop
def degrees(graph: Graph, found: ShortRows, more: Floats | None) -> None:
    for v in range(graph.n):
        row = found[v]
        for e in range(graph.starts[v], graph.starts[v + 1]):
            row[graph.heads[e]] += 1
            found[graph.heads[e], v] = found[graph.heads[e], v] + 2
        if more is not None:
            more[v] = float(graph.starts[v + 1] - graph.starts[v])


@loop
def less(x: Element, y: Element) -> bool:
    return bool(x[0] < y[0] or (x[0] == y[0] and x[1] < y[1]))


@loop
def best(items: Elements, n: int, out: Rows, *, before: Loop[Any, bool], twice: bool) -> int:
    """Find the first of all items, and write it once or twice."""
    found, at = items[0], 0
    for i in range(1, n):
        item = items[i]
        nearer = before(item, found)
        found = select(nearer, item, found)
        at = i if nearer else at
    out[0][0] = found
    if twice:
        out[1, 0] = (found[0], found[1])
    return at


@loop
def filled(n: int, values: ShortInts, items: Elements) -> None:
    fill(values, n, 7)
    fill(items, n - 1, items[n - 1])


@pytest.mark.parametrize("n", [1, 2, 7, 8, 9, 64, 65])
def test_fill(n: int) -> None:
    both(filled, n, np.zeros(70, np.int32), (np.arange(70.0), np.arange(70).astype(np.int16)))


def both(made: Loop[..., Any], *args: Any, **constants: Any) -> Any:
    """Run a loop compiled and as Python, compare results and arrays, and return the result."""
    copies = [copied(a) for a in args]
    found = made(*args, **constants)
    with interpreted():
        expected = made(*copies, **constants)
    assert repr(found) == repr(expected)
    for new, old in zip(args, copies, strict=True):
        for one, other in zip(*(x if isinstance(x, tuple) else (x,) for x in (new, old)), strict=True):
            if isinstance(one, np.ndarray):
                assert one.tobytes() == other.tobytes()
    return found


def copied(value: Any) -> Any:
    if isinstance(value, tuple):
        parts: Any = map(copied, value)
        return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
    return value.copy() if isinstance(value, np.ndarray) else value


ints = st.integers(-(2**40), 2**40) | st.integers(-9, 9)
floats = st.floats(-1e9, 1e9) | st.sampled_from([0.0, -0.0, math.inf, -math.inf])


@given(ints, ints.filter(bool))
def test_quotients_are_rounded_down(x: int, y: int) -> None:
    both(divided, x, y)


@given(ints, floats, ints)
def test_comparisons(x: int, y: float, z: int) -> None:
    both(compared, x, y, z)


@given(ints, ints, floats, floats)
def test_extremes(x: int, y: int, a: float, b: float) -> None:
    both(extremes, x, y, a, b)


def test_nan_is_not_smaller() -> None:
    both(extremes, 1, 2, math.nan, 1.0)
    both(extremes, 1, 2, 1.0, math.nan)
    both(compared, 1, math.nan, 2)


@given(st.integers(0, 2**40), st.lists(st.integers(0, 2**64 - 1), min_size=3, max_size=3))
def test_bits(x: int, bits: list[int]) -> None:
    both(words, x, np.array(bits, np.uint64))


@given(st.lists(st.integers(-9, 120), max_size=12), st.integers(-9, 130))
def test_breaks_continues_and_returns(values: list[int], least: int) -> None:
    both(skips, np.array(values, np.int64), len(values), least)


@given(st.lists(st.integers(-2, 2), max_size=5), st.integers(-3, 8))
def test_entries_are_read_only_where_python_reads_them(values: list[int], at: int) -> None:
    both(guarded, np.array(values, np.int64), len(values), at)


def test_records_and_named_tuples() -> None:
    points = np.zeros(5, POINT)
    points["x"] = np.arange(5) / 7
    both(marks, points, 5)
    assert points["next"].tolist() == [1, 2, 3, 4, -1]
    graph = Graph(3, np.array([0, 2, 2, 3]), np.array([1, 2, 0], np.int32))
    for more in (None, np.zeros(3)):
        both(degrees, graph, np.zeros((3, 5), np.int32)[:, :3], more)


@pytest.mark.parametrize("dtypes", [(np.float64, np.int64), (np.int16, np.float32)])
@pytest.mark.parametrize("twice", [False, True])
def test_elements_and_constants(dtypes: tuple[Any, Any], twice: bool) -> None:
    rng = np.random.default_rng(0)
    items = tuple(rng.integers(0, 3, 20).astype(d) for d in dtypes)
    both(best, items, 20, tuple(np.zeros((2, 3), d) for d in dtypes), before=less, twice=twice)


def test_a_bound_loop_takes_other_arguments() -> None:
    values = np.array([1, 5, 9])
    bound = first_at_least.bind(values, 3, 4)
    assert (bound(), bound(least=9), bound(n=1), bound(values=np.array([7, 7, 7]))) == (1, 2, -1, 0)
    with interpreted():
        assert (bound(), bound(least=9)) == (1, 2)


def test_wrong_arrays() -> None:
    with pytest.raises(AssertionError, match="float64, not int64"):
        first_at_least(np.zeros(3), 3, 4)  # type: ignore[arg-type]  # refused
    with pytest.raises(AssertionError, match="contiguous"):
        first_at_least(np.zeros(6, np.int64)[::2], 3, 4)
    with interpreted(), pytest.raises(IndexError, match="negative"):
        before(np.zeros(3, np.int64), 0)
    with interpreted(), pytest.raises(IndexError):
        first_at_least(np.zeros(3, np.int64), 5, 1)


@loop
def before(values: Ints, i: int) -> int:
    return int(values[i - 1])


def test_many_threads_compile_and_run() -> None:
    found: list[int] = []

    def work() -> None:
        found.append(first_at_least(np.arange(100), 100, 50))

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [50] * 8


def test_loops_of_the_library_have_nothing_else() -> None:
    """Users do not wait for the checks of the library's own loops; this test makes them."""
    modules = [importlib.import_module(f"semiring.algorithms.{m.name}") for m in pkgutil.iter_modules(semiring.algorithms.__path__)]
    found = {value.name: value for module in modules for value in vars(module).values() if isinstance(value, Loop)}
    assert len(found) > 30
    for made in found.values():
        made.check()


def test_what_a_loop_may_not_have() -> None:
    def comprehension(n: int) -> int:
        return len([i * i for i in range(n)])

    def untyped(n):
        return n

    def over_entries(values: Ints) -> int:
        for v in values:
            return int(v)
        return 0

    def otherwise(n: int) -> int:
        while n > 0:
            n -= 1
        else:  # refused
            n = 1
        return n

    def power(n: int) -> int:
        return n**2

    def tries(n: int) -> int:
        try:
            return n
        finally:
            pass

    def itself(n: int) -> int:
        return itself(n - 1)

    def defaults(n: int = 1) -> int:
        return n

    cases: dict[Any, str] = {
        comprehension: "ListComp",
        untyped: "annotation",
        over_entries: "range",
        otherwise: "else",
        power: "Pow",
        tries: "Try",
        itself: "itself",
        defaults: "default",
    }
    for function, reason in cases.items():
        with pytest.raises(SyntaxError, match=reason) as caught:
            loop(cast("Callable[..., Any]", function))
        assert caught.value.filename == __file__
        assert caught.value.lineno is not None
        lines = range(function.__code__.co_firstlineno, function.__code__.co_firstlineno + 6)
        assert caught.value.lineno in lines


def test_what_is_refused_when_it_is_compiled() -> None:
    @loop
    def mixes(n: int, x: float) -> float:
        return n + x

    @loop
    def unknown(n: int) -> int:
        return n + int(elsewhere)  # type: ignore[name-defined]  # noqa: F821  # it is refused

    @loop
    def changes(n: int) -> float:
        x = n
        x = 0.5  # type: ignore[assignment]  # refused
        return x

    @loop
    def calls(n: int) -> int:
        return len(str(n))

    for made, args, reason in (
        (mixes, (1, 2.0), "float"),
        (unknown, (1,), "elsewhere"),
        (changes, (1,), "float"),
        (calls, (1,), "len has no value"),
    ):
        with pytest.raises(SyntaxError, match=reason):
            cast("Callable[..., Any]", made)(*args)


def test_the_key_of_machine_code_is_the_same_in_each_process() -> None:
    code = "from semiring.algorithms.search import search_pair; print(search_pair.identity)"
    command = [sys.executable, "-c", code]
    found = {
        subprocess.run(command, capture_output=True, text=True, check=True, env={**os.environ, "PYTHONHASHSEED": seed}).stdout
        for seed in ("1", "2")
    }
    assert len(found) == 1
    assert " at 0x" not in found.pop()
