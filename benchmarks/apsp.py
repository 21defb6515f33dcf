"""All-pairs shortest paths, end to end, against the peers of `benchmarks.peers` in the same run.

    python -m benchmarks.apsp
    python -m benchmarks.apsp --sizes 512 1024 --peers scipy numba

Every peer runs in alternation with `semiring.apsp` on the same graph, and every result is compared with SciPy's.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

import semiring as sr
from benchmarks.limits import LIMITS
from benchmarks.measure import Timings, alternate, cores, machine, print_table, version
from benchmarks.peers import PEERS, Graph

_SECONDS = 3.0
"""A peer that takes longer runs only once."""

_REFERENCE = {None: "scipy floyd_warshall", 20: "scipy dijkstra, degree 20"}
"""Whose distances are right, by the degree of the graph."""

_TARGETS = {("scipy floyd_warshall", 1024): 30.0, ("scipy floyd_warshall", 4096): 80.0}
"""How many times faster to be; than all other peers, just faster."""


def close(found: Any, expected: Any) -> None:
    """Compare distances as far as float32 goes."""
    np.testing.assert_allclose(found, expected, rtol=2e-5)


def given(graph: Graph) -> Any:
    """What a user would pass: the matrix of a complete graph, SciPy's sparse array of another one."""
    return graph.dense if graph.degree is None else graph.sparse


def measure_own(sizes: Sequence[int], repeats: int) -> None:
    """Distances, and distances with paths, against the limit of the instructions."""
    rows, others, loop = [], 0.0, LIMITS["f32 min-plus, add as FMA"].loop()
    for n in sizes:
        for degree in (None, 20):
            graph = Graph(n, degree)
            a = given(graph)
            works: dict[str, Callable[[], object]] = {
                "limit": partial(loop.run, cores()),
                "distances": partial(sr.apsp, a, dtype=np.float32),
                "paths": partial(sr.apsp, a, dtype=np.float32, paths=True),
            }
            timings = alternate(works, repeats)
            others = max(others, timings.others)
            limit, rate, ratio = (
                timings.rate("limit", loop.steps(cores())),
                timings.rate("distances", n**3),
                timings.ratio("paths", "distances"),
            )
            milliseconds = (f"{1e3 * timings.median(x):.1f}" for x in ("distances", "paths"))
            kind = "complete" if degree is None else f"degree {degree}"
            rows.append(
                (f"{n}, {kind}", *milliseconds, f"{ratio:.2f}", "yes" if ratio <= 1.5 else "no", f"{rate:.1f}", f"{rate / limit:.0%}")
            )
    print_table(("n, graph", "distances, ms", "with paths, ms", "ratio", "≤ 1.5", "G steps/s", "of the limit"), rows, others)


def measure_peers(sizes: Sequence[int], names: Sequence[str]) -> None:
    """Every peer against `apsp`."""
    rows: list[Sequence[str]] = []
    expected: dict[tuple[int, int | None], Any] = {}
    # SciPy's results are what the others are compared with.
    for name in sorted(names, key=lambda name: name not in _REFERENCE.values()):
        peer, degree = PEERS[name], None if PEERS[name].dense else 20
        if version(peer.package) == "-":
            print(f"{name}: {peer.package} is not installed, skipped")
            continue
        peer.prepare(Graph(64, degree))()
        for n in (s for s in sizes if s <= peer.largest):
            graph = Graph(n, degree)
            ours = partial(sr.apsp, given(graph), dtype=np.float32)
            own = ours()
            timings, found = _duel(ours, peer.prepare(graph))
            if (n, degree) not in expected:
                expected[n, degree] = found if name == _REFERENCE[degree] else PEERS[_REFERENCE[degree]].prepare(graph)()
            close(own, expected[n, degree])
            close(found, expected[n, degree])
            factor, target = timings.ratio("theirs", "ours"), _TARGETS.get((name, n), 1.0)
            milliseconds = (f"{1e3 * timings.median(x):.1f}" for x in ("ours", "theirs"))
            row = (f"{factor:.1f} ×", f"≥ {target:g} ×", "yes" if factor >= target else "no", f"{timings.others:.2f}")
            rows.append((name, str(n), *milliseconds, *row, version(peer.package)))
            print(" ".join(rows[-1]), flush=True)
    header = "peer", "n", "apsp, ms", "peer, ms", "apsp is faster", "target", "met", "others, cores", "version"
    print_table(header, rows, keys=2)


def _duel(ours: Callable[[], Any], theirs: Callable[[], Any]) -> tuple[Timings, Any]:
    """Timings of both, and what the peer found."""
    found: list[Any] = []

    def work() -> None:
        found[:] = [theirs()]

    works: dict[str, Callable[[], object]] = {"ours": ours, "theirs": work}
    timings = alternate(works, 1, patience=1, warm=True)
    if timings.median("theirs") < _SECONDS:
        timings = alternate(works, 5, patience=2, warm=True)
    return timings, found[0]


def main() -> None:
    parser = argparse.ArgumentParser(description="All-pairs shortest paths against the peers")
    parser.add_argument("--sizes", type=int, nargs="+", default=[512, 1024, 2048, 4096])
    parser.add_argument("--peers", nargs="*", default=[""], help="only those that have one of these in their names")
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    print(machine())
    measure_own(options.sizes, options.repeats)
    names = [name for name in PEERS if any(x.lower() in name.lower() for x in options.peers)]
    if names:
        measure_peers(options.sizes, names)


if __name__ == "__main__":
    main()
