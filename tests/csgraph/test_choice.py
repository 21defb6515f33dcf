"""Who computes a call."""

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import semiring as sr
from semiring import csgraph
from semiring.csgraph import choice
from semiring.csgraph.choice import Size, choose

FLOAT64 = np.dtype(np.float64)


@pytest.fixture(autouse=True)
def two_threads_and_no_gpu(monkeypatch):
    monkeypatch.setattr(choice, "thread_count", lambda: 2)
    monkeypatch.setattr(choice, "faster_on_gpu", lambda *size: False)


def size(n, degree, sources=None, **rest):
    options = {"paths": False, "negative": False, "dtype": FLOAT64, **rest}
    return Size(n, n * degree, n if sources is None else sources, **options)


@pytest.mark.parametrize(
    ("call", "engine", "algorithm"),
    [
        (size(2000, 1999), "semiring", "closure"),
        (size(2000, 1999, 1), "scipy", "dijkstra"),
        (size(2000, 1999, 1, negative=True), "semiring", "closure"),  # Johnson's n rounds come first
        (size(2000, 4), "semiring", "closure"),
        (size(20000, 2), "scipy", "dijkstra"),
        (size(20000, 2, negative=True), "scipy", "johnson"),
        (size(10, 3), "scipy", "dijkstra"),
        (size(0, 0), "scipy", "dijkstra"),
    ],
    ids=str,
)
def test_the_faster_one_computes(call, engine, algorithm):
    found = choose(call, "auto")
    assert (found.engine, found.algorithm) == (engine, algorithm)
    assert (found.closure_seconds < found.search_seconds) == (engine == "semiring")


def test_a_device_that_is_named_computes_but_for_a_single_search():
    for device in ("cpu", "cuda", "cuda:1", ["cuda:0", "cuda:1"]):
        found = choose(size(20000, 2), device)
        assert (found.engine, found.device) == ("semiring", device)
        assert choose(size(20000, 2, 1), device, one_search=True).engine == "scipy"


def test_what_does_not_fit_is_searched(monkeypatch):
    assert choose(size(5000, 4999), "auto").engine == "semiring"
    monkeypatch.setattr(choice, "fits", lambda needed, device: needed <= 10**8)
    found = choose(size(5000, 4999), "auto")
    assert found.engine == "scipy"
    assert "does not fit" in found.reason


def test_a_gpu_is_taken_where_it_is_faster(monkeypatch):
    monkeypatch.setattr(choice, "faster_on_gpu", lambda *size: True)
    found = choose(size(20000, 19999), "auto")
    assert (found.engine, found.device) == ("semiring", "cuda:0")


def test_time_grows_with_what_there_is_to_do():
    small = size(1000, 10)
    assert size(2000, 10).closure_seconds("cpu") > 7 * small.closure_seconds("cpu")
    assert size(1000, 10, paths=True).closure_seconds("cpu") > small.closure_seconds("cpu")
    assert size(1000, 10, dtype=np.dtype(np.float32)).closure_seconds("cpu") < small.closure_seconds("cpu")
    assert size(1000, 40).search_seconds() > small.search_seconds() > size(1000, 10, 10).search_seconds()
    assert size(1000, 10, negative=True).search_seconds() > small.search_seconds()


def test_searches_that_find_little_are_quick():
    assert size(1000, 2, reach=0.01).search_seconds() < 0.2 * size(1000, 2).search_seconds()
    n = 600
    scattered = sp.random_array((n, n), density=0.5 / n, rng=0)  # every search ends soon
    road = sp.csr_array(np.eye(n, k=1) + np.eye(n, k=-1))
    assert csgraph.explain(scattered).engine == "scipy"
    assert csgraph.explain(road).search_seconds > 5 * csgraph.explain(scattered).search_seconds


def test_explain_says_it():
    complete, sparse = np.ones((1500, 1500)), sp.random_array((4000, 4000), density=1e-4, rng=0)
    text = str(csgraph.explain(complete))
    assert text.startswith("semiring: closure on cpu, because the closure is predicted to be faster for 1,500 vertices, 2,250,000 edges")
    assert "(predicted: closure " in text
    assert str(csgraph.explain(sparse)).startswith("SciPy: dijkstra, because searches are predicted to be faster")
    assert csgraph.explain(-complete).algorithm == "closure"
    assert csgraph.explain(-sparse, indices=[0, 1]).algorithm == "johnson"
    assert csgraph.explain(-sparse, indices=[0, 1], unweighted=True).algorithm == "dijkstra"
    assert csgraph.explain(complete, "D", indices=0).engine == "scipy"
    assert csgraph.explain(complete, min_only=True, device="cpu").engine == "scipy"
    assert csgraph.explain(sparse, device="cpu").engine == "semiring"
    with pytest.raises(ValueError, match="Cannot specify indices"):
        csgraph.explain(complete, "FW", indices=0)


def test_what_explain_says_is_what_happens(monkeypatch):
    from semiring.csgraph import by_closure, by_search, solving

    ran = []

    def noting(engine, function):
        def noted(*args):
            ran.append(engine)
            return function(*args)

        return noted

    monkeypatch.setattr(solving, "closed", noting("semiring", by_closure.closed))
    monkeypatch.setattr(solving, "searched", noting("scipy", by_search.searched))
    rng = np.random.default_rng(0)
    for n in (5, 80, 300):
        graph = sp.random_array((n, n), density=4 / n, rng=rng)
        several: list[dict[str, Any]] = [{}, {"indices": 0}, {"return_predecessors": True}, {"device": "cpu"}, {"unweighted": True}]
        for options in several:
            csgraph.shortest_path(graph, **options)
            assert ran.pop() == csgraph.explain(graph, **options).engine
    assert not ran


@pytest.mark.gpu
def test_an_array_on_a_gpu_stays_there():
    import cupy

    found = csgraph.explain(cupy.ones((50, 50)))
    assert (found.engine, found.device) == ("semiring", "cuda:0")
    with pytest.raises(sr.SemiringError):
        csgraph.shortest_path(cupy.ones((50, 50)), device="cpu")
