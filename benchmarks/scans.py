"""Hidden Markov models by `semiring.scan`, beside hmmlearn on the same numbers, and inside probabilities of a grammar beside NumPy.

    python -m benchmarks.scans
    python -m benchmarks.scans --steps 2000 --states 4 64
    python -m benchmarks.scans --device cuda            # whole calls in float32 on arrays of CuPy, whose first results are the CPU's

hmmlearn's functions are those that its models call, `_hmmc`, on logarithms, one sequence a call. They get start and transitions as they
want them, and the logarithms of what was observed.
"""

from __future__ import annotations

import argparse
import importlib
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

import semiring as sr
from benchmarks.measure import alternate, hardware, machine, print_table, version

try:
    _hmmc: Any = importlib.import_module("hmmlearn._hmmc")
except ImportError:
    _hmmc = None

Array = np.ndarray[Any, Any]
Works = dict[str, Callable[[], Any]]


def model(states: int, *shape: int) -> tuple[Array, Array, Array]:
    """Start, transitions and the logarithms of observations."""
    rng = np.random.default_rng(states)
    return rng.dirichlet(np.ones(states)), rng.dirichlet(np.ones(states), states), np.log(rng.random((*shape, states)))


def ours(start: Array, transitions: Array, seen: Array) -> Works:
    """Forward and backward variables and the best states; the first observation weighs the start."""
    first, a = np.log(start) + seen[..., 0, :], np.log(transitions)
    rest = np.ascontiguousarray(seen[..., 1:, :])
    return {
        "forward": partial(sr.scan, a, sr.LOG, first, weights=rest),
        "backward": partial(sr.scan, a, sr.LOG, weights=rest, reverse=True),
        "Viterbi": lambda: sr.scan(a, sr.MAX_PLUS, first, weights=rest, witness=True).states,
    }


def theirs(start: Array, transitions: Array, seen: Array) -> Works:
    """The same by hmmlearn."""

    def each(work: Callable[[Array], Any]) -> Callable[[], Any]:
        return lambda: work(seen) if seen.ndim == 2 else np.stack([work(one) for one in seen])

    return {
        "forward": each(lambda one: _hmmc.forward_log(start, transitions, one)[1]),
        "backward": each(lambda one: _hmmc.backward_log(start, transitions, one)),
        "Viterbi": each(lambda one: _hmmc.viterbi(start, transitions, one)[1]),
    }


def compare(problems: Mapping[str, tuple[int, ...]]) -> None:
    """A table of whole calls, checked against each other."""
    rows, others = [], 0.0
    for name, (states, *shape) in problems.items():
        inputs = model(states, *shape)
        our, their = ours(*inputs), theirs(*inputs) if _hmmc is not None else {}
        for what in our:
            works = {"scan": our[what]} | ({"hmmlearn": their[what]} if their else {})
            if their:
                np.testing.assert_allclose(our[what](), their[what](), rtol=1e-9)
            timings = alternate(works, 7)
            others = max(others, timings.others)
            times = [f"{1e3 * timings.median(work):,.2f}" for work in works]
            rows.append((name, what, *times, *([f"{timings.ratio('scan', 'hmmlearn'):.2f}"] if their else ["", ""])))
    print_table(("sequences", "", "scan, ms", "hmmlearn, ms", "scan / hmmlearn"), rows, others, keys=2)


# A grammar's inside probabilities, by products of stacks.


def inside(rules: Array, words: Array, product: Callable[[Array, Array], Array]) -> Array:
    """log P(words i … j | symbol) for all spans, by their lengths: Baker's algorithm with log P(A → B C) and log P(word | A).

    `product` multiplies stacks of matrices of logarithms.
    """
    count, symbols = words.shape
    chart = np.full((count, count, symbols), -np.inf)  # the first word, the number of further ones, the symbol
    chart[:, 0] = words
    pairs = rules.reshape(symbols, -1).T
    for length in range(1, count):
        first = np.arange(count - length)[:, None]
        cut = np.arange(length)
        # ⊕ over the cuts of left_B ⊗ right_C, for all spans of this length; then ⊕ over the pairs of rule_ABC ⊗ that
        left, right = chart[first, cut], chart[first + cut + 1, length - cut - 1]
        both = product(left.transpose(0, 2, 1), right)
        chart[: count - length, length] = product(both.reshape(count - length, -1), pairs)
    return chart


def by_numpy(a: Array, b: Array) -> Array:
    """The product over LOG with the largest of each row and column taken out."""
    rows, columns = (np.where(np.isfinite(t), t, 0) for t in (a.max(axis=-1, keepdims=True), b.max(axis=-2, keepdims=True)))
    with np.errstate(divide="ignore"):
        found: Array = np.log(np.exp(a - rows) @ np.exp(b - columns)) + rows + columns
    return found


def parse(count: int, symbols: int) -> None:
    """Inside probabilities of a sentence."""
    rng = np.random.default_rng(0)
    rules = np.log(rng.dirichlet(np.ones(symbols**2), symbols) / 2).reshape(symbols, symbols, symbols)
    words = np.log(rng.random((count, symbols)) / 2)
    works: Works = {
        "semiring": partial(inside, rules, words, lambda a, b: sr.matmul(a, b, sr.LOG)),
        "NumPy": partial(inside, rules, words, by_numpy),
    }
    np.testing.assert_allclose(works["semiring"](), works["NumPy"](), rtol=1e-9)
    timings = alternate(works, 7)
    row = (
        f"{count} words × {symbols} symbols",
        *(f"{1e3 * timings.median(w):.1f}" for w in works),
        f"{timings.ratio('semiring', 'NumPy'):.2f}",
    )
    print_table(("inside probabilities", "semiring, ms", "NumPy, ms", "semiring / NumPy"), [row], timings.others)


# On a GPU: states, steps, sequences, and whether each step has a matrix of its own.

ON_GPU = (
    (64, 1_000_000, 1, False),
    (64, 20_000, 1, False),
    (16, 1_000_000, 1, False),
    (128, 100_000, 1, False),
    (256, 10_000, 1, False),
    (1024, 1_000, 1, False),
    (64, 100_000, 1, True),
    (64, 1_000, 132, True),
    (8, 1_000, 10_000, False),
    (64, 1_000, 1_000, False),
)


def on_gpu(problems: Sequence[tuple[int, int, int, bool]]) -> None:
    """A table of whole calls, each waited for."""
    import cupy

    rows = []
    for states, steps, count, changes in problems:
        rng: Any = cupy.random.default_rng(states)
        shape = (*(count,) * (count > 1), steps)
        matrices = cupy.log(rng.random((*shape, states, states) if changes else (states, states), dtype=np.float32))
        seen = cupy.log(rng.random((*shape, states), dtype=np.float32))
        works: Works = {
            "LOG": partial(sr.scan, matrices, sr.LOG, weights=seen),
            "MAX_PLUS": partial(sr.scan, matrices, sr.MAX_PLUS, weights=seen),
            "MAX_PLUS, witness": partial(sr.scan, matrices, sr.MAX_PLUS, weights=seen, witness=True),
        }

        def waited(work: Callable[[], Any]) -> Callable[[], None]:
            def call() -> None:
                work()
                cupy.cuda.get_current_stream().synchronize()

            return call

        first = (0,) * (count > 1)
        few = min(steps, 100)
        whole = matrices[(*first, slice(few))].get() if changes else matrices.get()
        for name, semiring in (("LOG", sr.LOG), ("MAX_PLUS", sr.MAX_PLUS)):
            expected = sr.scan(whole, semiring, weights=seen[(*first, slice(few))].get())
            np.testing.assert_allclose(works[name]()[(*first, slice(few + 1))].get(), expected, rtol=1e-4)
        found = alternate({name: waited(work) for name, work in works.items()}, 3).seconds
        what = f"{f'{count:,} of ' if count > 1 else ''}{steps:,} × {states}{', a matrix for each' if changes else ''}"
        rows += [(what, name, f"{1e3 * min(t):,.2f}", f"{1e6 * min(t) / steps:.3f}") for name, t in found.items()]
    print_table(("sequences", "", "ms", "µs a step"), rows, keys=2)


def main() -> None:
    parser = argparse.ArgumentParser(description="hidden Markov models beside hmmlearn")
    parser.add_argument("--steps", type=int, default=20_000)
    parser.add_argument("--states", type=int, nargs="+", default=[4, 16, 64])
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    options = parser.parse_args()
    if options.device == "cuda":
        print(hardware("cuda"))
        on_gpu(ON_GPU)
        return
    print(f"{machine()}, hmmlearn {version('hmmlearn')}")
    if _hmmc is None:
        print("hmmlearn is not installed: pip install hmmlearn")
    states: Sequence[int] = options.states
    problems = {f"{options.steps:,} × {s}": (s, options.steps) for s in states}
    compare(problems | {f"1,000 of 100 × {s}": (s, 1_000, 100) for s in states if s <= 16})
    parse(40, 20)


if __name__ == "__main__":
    main()
