"""Saved files that somebody has changed: every method of what is loaded ends, with an answer or with an error of this library."""

from __future__ import annotations

import contextlib
import io
import signal
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import semiring as sr

INF = np.inf
POOLS: dict[str, list[Any]] = {
    "min-plus": [0.0, 1.0, 2.0, -1.0, 1e300, -1e300, INF],
    "max-min": [0.0, 1.0, 2.0, INF, -INF],
    "max-times": [0.0, 0.25, 1.0, 2.0],
    "boolean": [False, True],
}
"""Elements that a changed array gets."""


@contextlib.contextmanager
def a_limit(seconds: float) -> Iterator[None]:
    """An error where the body takes longer."""

    def stop(*_: object) -> None:
        raise TimeoutError(f"still busy after {seconds} seconds")

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def rewritten(path: Path, change: Callable[[str, np.ndarray], np.ndarray]) -> None:
    """Other arrays in an archive, whose checksums are right."""
    with zipfile.ZipFile(path) as old:
        members = {name: old.read(name) for name in old.namelist()}
    with zipfile.ZipFile(path, "w") as new:
        for name, content in members.items():
            if name.endswith(".npy"):
                buffer = io.BytesIO()
                np.save(buffer, change(name.removesuffix(".npy"), np.load(io.BytesIO(content))))
                content = buffer.getvalue()
            new.writestr(name, content)


def asked(*questions: Callable[[], Any]) -> None:
    """Each question is answered, or refused by an error of this library."""
    for question in questions:
        with a_limit(10), contextlib.suppress(sr.SemiringError):
            question()


def ask_paths(paths: sr.Paths) -> None:
    """Every method of paths."""
    asked(
        *(getattr(paths, name) for name in ("predecessors", "next_hops", "center", "to_scipy", "to_networkx", "__repr__", "_repr_html_")),
        lambda: paths.farthest(3),
        lambda: paths.to_frame(paths=True),
        *(lambda v=v: paths.paths_from(v) for v in paths.nodes),
    )


def ask_factor(factor: sr.Factor, weights: Any) -> None:
    """Every method of a factor."""
    n = len(factor.nodes)
    ones = np.full(n, factor.semiring.one, factor.dtypes[0])
    asked(*(getattr(factor, name) for name in ("rows", "columns", "closure", "statistics", "__repr__", "_repr_html_")))
    asked(lambda: factor[0, n - 1], lambda: list(factor.blocks()), lambda: factor.solve(ones), lambda: factor.update(weights))
    for ends in ((), (0,), (None, 0), (0, n - 1)):
        with contextlib.suppress(sr.SemiringError):
            ask_paths(factor.paths(*ends))


@st.composite
def matrices(draw: st.DrawFn) -> tuple[str, np.ndarray, list[Any]]:
    """A semiring, a matrix over it, and elements to put into files."""
    name = draw(st.sampled_from(sorted(POOLS)))
    n = draw(st.integers(1, 7))
    zero, _ = sr.semirings()[name].identities((np.dtype(type(POOLS[name][0])),))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    edge = np.array([e for e in POOLS[name] if 0 <= e <= 2 and (name != "max-times" or e <= 1)])
    matrix = np.where(rng.random((n, n)) < draw(st.sampled_from([0.3, 0.7])), rng.choice(edge, (n, n)), zero[0])
    if name == "min-plus" and draw(st.booleans()):
        matrix = np.where(np.triu(np.ones((n, n)), 1) > 0, matrix - 1, INF)  # the input is kept in the file
    return name, matrix, POOLS[name]


def spoiler(data: st.DataObject, n: int, pool: list[Any], vertices: tuple[str, ...], kept: tuple[str, ...]) -> Callable[..., Any]:
    """Changes some entries of some arrays: `vertices` get numbers of these, `kept` stay as they are, and the others get elements."""
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    share = data.draw(st.sampled_from([0.1, 0.5, 1.0]))

    def change(name: str, array: np.ndarray) -> np.ndarray:
        if name in kept or rng.random() < 0.3:
            return array
        new = rng.integers(-1 if name == "via" else 0, n, array.shape) if name in vertices else rng.choice(pool, array.shape)
        return np.where(rng.random(array.shape) < share, new, array).astype(array.dtype)

    return change


relaxed = settings(max_examples=24, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@pytest.mark.filterwarnings("ignore::semiring.NonEdgeWarning")
@relaxed
@given(drawn=matrices(), data=st.data())
def test_changed_paths_are_answered_or_refused(drawn: Any, data: st.DataObject, tmp_path_factory: pytest.TempPathFactory) -> None:
    name, matrix, pool = drawn
    path = tmp_path_factory.mktemp("changed") / "p.npz"
    sr.closure(matrix, name, paths=True).save(path)
    rewritten(path, spoiler(data, len(matrix), pool, ("via",), ()))
    with contextlib.suppress(sr.SemiringError):
        ask_paths(sr.Paths.load(path, mmap=data.draw(st.booleans())))


@pytest.mark.exhaustive
@pytest.mark.filterwarnings("ignore::semiring.NonEdgeWarning")
@relaxed
@given(drawn=matrices(), data=st.data())
def test_changed_factors_are_answered_or_refused(drawn: Any, data: st.DataObject, tmp_path_factory: pytest.TempPathFactory) -> None:
    name, matrix, pool = drawn
    path = tmp_path_factory.mktemp("changed") / "f.npz"
    sr.factor(matrix, name).save(path)
    rewritten(path, spoiler(data, len(matrix), pool, ("source", "target"), ("tail", "head", "order")))
    with contextlib.suppress(sr.SemiringError):
        ask_factor(sr.Factor.load(path), matrix)


@pytest.mark.parametrize("method", ["predecessors", "next_hops"])
def test_elements_that_contradict_the_construction_matrix(method: str, tmp_path: Path) -> None:
    path = tmp_path / "p.npz"
    sr.apsp([[0, 1, INF], [INF, 0, 1], [1, INF, 0]], paths=True).save(path)
    place = (0, 1) if method == "predecessors" else (1, 2)

    def change(name: str, array: np.ndarray) -> np.ndarray:
        if name == "value0":
            array[place] = INF
        return array

    rewritten(path, change)
    with (
        a_limit(10),
        pytest.raises(sr.GraphError, match=r"contradict each other: the path between vertices \d and \d leads over a vertex without one"),
    ):
        getattr(sr.Paths.load(path), method)()


@pytest.mark.parametrize("construction", ["random", "circle"])
def test_construction_matrices_that_never_end_are_refused_soon(construction: str, tmp_path: Path) -> None:
    n, rng = 120, np.random.default_rng(3)
    path = tmp_path / "p.npz"
    sr.apsp(rng.random((n, n)), paths=True).save(path)
    following = np.broadcast_to(np.minimum(np.arange(n)[:, None] + 1, n - 1), (n, n))
    via = {"random": rng.integers(0, n, (n, n)), "circle": following}[construction]
    rewritten(path, lambda name, array: via.astype(np.int32) if name == "via" else array)
    with a_limit(60), pytest.raises(sr.GraphError, match="circle"):  # minutes, where walks are followed as long as the longest may take
        sr.Paths.load(path).to_frame(paths=True)
