"""Files are unmapped and closed with the last use of a result, and with the end of an error: Windows deletes no file that is open."""

from __future__ import annotations

import gc
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import semiring as sr
from semiring.streaming import closure

MAPS = Path("/proc/self/maps")
pytestmark = pytest.mark.skipif(not MAPS.exists(), reason="no list of mapped files")
INF = np.inf


class Interrupted(Exception):
    """What a caller's function of progress raises."""


@pytest.fixture(autouse=True)
def no_collections(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.delenv("SEMIRING_TRACEBACK", raising=False)  # frames of full tracebacks have their errors, and so live until a collection
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def left_open(folder: Path) -> set[str]:
    """The files in a folder that this process has mapped or open."""
    places = [line.split(maxsplit=5)[-1].strip() for line in MAPS.read_text().splitlines()]
    for descriptor in Path("/proc/self/fd").iterdir():
        if descriptor.is_symlink():  # the one of this listing is closed by now
            places.append(os.readlink(descriptor))
    return {place for place in places if place.startswith(str(folder))}


def weights(n: int = 40) -> Any:
    rng = np.random.default_rng(0)
    return np.where(rng.random((n, n)) < 0.2, rng.random((n, n)), INF)


def mapped(folder: Path, array: Any) -> Any:
    np.save(folder / "given.npy", array)
    return np.load(folder / "given.npy", mmap_mode="r+")


def saved(a: Any, folder: Path) -> sr.Paths:
    sr.apsp(a, paths=True).save(folder / "p.npz")
    return sr.Paths.load(folder / "p.npz", mmap=True)


WAYS: dict[str, Callable[[Any, Path], Any]] = {
    "in memory": lambda a, _: sr.apsp(a, paths=True).path(0, 1),
    "a product": lambda a, _: sr.matmul(a, a, sr.MIN_PLUS),
    "rows": lambda a, _: sr.closure(a, sr.MIN_PLUS, sources=[1, 2]),
    "a statistic": lambda a, _: sr.diameter(a),
    "factor": lambda a, _: sr.factor(a).solve(np.zeros(len(a))),
    "a checkpoint": lambda a, folder: sr.apsp(a, checkpoint=folder / "state", paths=True, block=8).path(0, 1),
    "an overwritten matrix": lambda a, folder: sr.apsp(a, checkpoint=folder / "state", overwrite=True, block=8),
    "a file of paths": lambda a, folder: saved(a, folder).path(0, 1),
}


@pytest.mark.parametrize("way", WAYS)
def test_results(way: str, tmp_path: Path) -> None:
    WAYS[way](mapped(tmp_path, weights()), tmp_path)
    assert not left_open(tmp_path)


@pytest.mark.parametrize("overwrite", [False, True])
@pytest.mark.parametrize("what", ["interrupted", "negative cycle", "NaN", "another input", "damaged", "cut off"])
def test_errors(what: str, overwrite: bool, tmp_path: Path) -> None:
    given, state, calls = weights(), tmp_path / "state", list[Any]()
    if what == "negative cycle":
        given[:5, :5] = -1
    elif what == "NaN":
        given[3, 3] = np.nan
    elif what == "another input":
        sr.apsp(weights() + 1, checkpoint=state)
    elif what == "damaged":
        sr.apsp(weights(), checkpoint=state, paths=True)
        (state / "via.npy").write_bytes(b"")

    def progress(report: Any) -> None:
        calls.append(report)
        if what == "interrupted" and len(calls) > 2:
            raise Interrupted

    matrix = mapped(tmp_path, given)
    if what == "cut off":
        os.truncate(tmp_path / "given.npy", 10_000)
    try:
        sr.apsp(matrix, checkpoint=state, paths=True, block=8, overwrite=overwrite, progress=progress)
    except (sr.SemiringError, Interrupted, EOFError):
        pass
    else:
        pytest.fail("no error")
    del matrix
    assert not left_open(tmp_path)


@pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="no signals for threads")
def test_a_keyboard_interrupt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    a, before, work = mapped(tmp_path, weights()), signal.signal(signal.SIGINT, signal.default_int_handler), closure._Worker.run

    def interrupting(worker: Any) -> None:
        time.sleep(0.2)  # until the main thread waits for this one
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
        time.sleep(0.2)
        work(worker)

    monkeypatch.setattr(closure._Worker, "run", interrupting)
    try:
        sr.apsp(a, checkpoint=tmp_path / "state", block=8)
    except KeyboardInterrupt:
        pass
    else:
        pytest.fail("no interrupt")
    finally:
        signal.signal(signal.SIGINT, before)
    del a
    assert not left_open(tmp_path)
