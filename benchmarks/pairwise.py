"""Pairwise distances against SciPy's cdist and scikit-learn's pairwise_distances, in the same run.

    python -m benchmarks.pairwise                              10,000 × 10,000 rows of 64 features
    python -m benchmarks.pairwise --rows 4000 --features 16 --only l1
    python -m benchmarks.pairwise --device cuda --rows 1000000 --against 10000 --features 32        the times of a GPU

SciPy computes in float64 whatever the dtype. The peers take a share of the rows of x, and their time is scaled to all rows. The values of
a few rows are compared. The ratio is that of calls with `out=`, because pages of new memory take up to a second a GB on some machines.
`k=10` is the search for the ten nearest rows, in scikit-learn `NearestNeighbors(algorithm="brute")`.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from scipy.spatial import distance

import semiring as sr
from benchmarks.measure import alternate, hardware, installed, print_table

Array = np.ndarray[Any, Any]
cdist: Any = distance.cdist

METRICS = {"l1": "cityblock", "chebyshev": "chebyshev", "canberra": "canberra", "euclidean": "euclidean", "cosine": "cosine",
           "braycurtis": "braycurtis"}  # fmt: skip
"""Our names of metrics, and SciPy's."""

WANTED = {"l1": 4.0, "chebyshev": 4.0, "canberra": 4.0}
"""How many times as fast as SciPy's a metric should be."""

LEARNED = {"l1": "manhattan", "euclidean": "euclidean", "cosine": "cosine"}
"""Metrics for which scikit-learn has code of its own."""

NEAREST = 10


def works_for(name: str, x: Array, y: Array, share: int) -> dict[str, Callable[[], Any]]:
    """Our calls on all rows, and the peers' on a part of the rows of x."""
    part = x[: max(1, len(x) // share)]
    out = np.empty((len(x), len(y)), x.dtype)
    works: dict[str, Callable[[], Any]] = {
        "ours": partial(sr.pairwise, x, y, name, device="cpu"),
        "ours, out=": partial(sr.pairwise, x, y, name, device="cpu", out=out),
        "ours, k=10": partial(sr.pairwise, x, y, name, device="cpu", k=min(NEAREST, len(y))),
        "SciPy, out=": partial(cdist, part, y, METRICS[name], out=np.empty((len(part), len(y)))),
    }
    metrics, neighbors = installed("sklearn.metrics"), installed("sklearn.neighbors")
    if metrics is not None and name in LEARNED:
        works["sklearn"] = partial(metrics.pairwise_distances, part, y, LEARNED[name], n_jobs=-1)
        search = neighbors.NearestNeighbors(n_neighbors=NEAREST, algorithm="brute", metric=LEARNED[name], n_jobs=-1).fit(y)
        works["sklearn, k=10"] = partial(search.kneighbors, part)
    return works


def confirm(name: str, x: Array, y: Array) -> None:
    """Compare some rows with SciPy's values."""
    expected = cdist(x[:8], y, METRICS[name])
    tolerance = 1e-5 if x.dtype == np.float32 else 1e-12
    np.testing.assert_allclose(sr.pairwise(x[:8], y, name), expected, rtol=tolerance, atol=tolerance)


def measure(names: Sequence[str], rows: int, features: int, share: int, repeats: int) -> None:
    """Seconds of our calls and of the peers', and how many times as fast ours are."""
    lines, others = [], 0.0
    random = np.random.default_rng(0)
    wide = random.normal(size=(rows, features)), random.normal(size=(rows, features))
    for name in names:
        for dtype in ("float64", "float32"):
            x, y = (v.astype(dtype) for v in wide)
            works = works_for(name, x, y, share)
            timings = alternate(works, repeats)
            confirm(name, x, y)
            others = max(others, timings.others)
            scale: dict[str, int] = dict.fromkeys(("SciPy, out=", "sklearn", "sklearn, k=10"), share)
            seconds = {work: timings.median(work) * scale.get(work, 1) for work in works}
            ratio, wanted = seconds["SciPy, out="] / seconds["ours, out="], WANTED.get(name)
            lines.append((
                name, dtype, *(f"{seconds[work]:.2f}" if work in seconds else "" for work in COLUMNS), f"{ratio:.1f}",
                "" if wanted is None else f"≥ {wanted:g}", "" if wanted is None else "yes" if ratio >= wanted else "no",
            ))  # fmt: skip
    header = ("metric", "dtype", *(f"{work}, s" for work in COLUMNS), "SciPy / ours, out=", "target", "met")
    print_table(header, lines, others, keys=2)


COLUMNS = ("ours", "ours, out=", "ours, k=10", "SciPy, out=", "sklearn", "sklearn, k=10")


def measure_gpu(names: Sequence[str], shape: tuple[int, int], features: int) -> None:
    """Milliseconds of whole calls on the GPU, of the matrix with `out=` and of the k nearest."""
    cupy: Any = installed("cupy")
    benchmark = installed("cupyx.profiler").benchmark
    lines = []
    for name in names:
        for dtype in ("float64", "float32"):
            x, y = (cupy.random.default_rng(seed).standard_normal((n, features)).astype(dtype) for seed, n in enumerate(shape))
            found = []
            for k in (None, 1, NEAREST, 100):
                out = cupy.empty(shape, dtype) if k is None else None
                timed = benchmark(partial(sr.pairwise, x, y, name, k=k, out=out), n_repeat=3, n_warmup=1)
                found.append(f"{1e3 * timed.gpu_times.mean():.2f}")
            lines.append((name, dtype, *found))
    print_table(("metric", "dtype", "matrix, out=, ms", "k=1, ms", f"k={NEAREST}, ms", "k=100, ms"), lines, keys=2)


def main() -> None:
    parser = argparse.ArgumentParser(description="Pairwise distances against SciPy and scikit-learn")
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--against", type=int, help="rows of y on a GPU; by default those of x")
    parser.add_argument("--features", type=int, default=64)
    parser.add_argument("--share", type=int, default=5, help="the peers take one of so many rows of x")
    parser.add_argument("--only", default="", help="only metrics with this in their name")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    options = parser.parse_args()
    print(hardware(options.device))
    names = [name for name in METRICS if options.only in name]
    if options.device == "cuda":
        measure_gpu(names, (options.rows, options.against or options.rows), options.features)
    else:
        measure(names, options.rows, options.features, options.share, options.repeats)


if __name__ == "__main__":
    main()
