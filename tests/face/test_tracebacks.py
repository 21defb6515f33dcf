"""Errors of users end at the user's line, in Python and in IPython; bugs, interruptions and what a caller's own code raises do not."""

from __future__ import annotations

import ast
import inspect
import os
import pickle
import re
import subprocess
import sys
import traceback
import types
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import semiring as sr
from semiring import csgraph, kernels, solve, testing
from semiring.common import errors

GRAPH = sr.edges([("Bern", "Basel", 1.0), ("Basel", "Genf", 2.0)])
PATHS = sr.apsp(GRAPH, paths=True)
MATRIX = np.array([[0.0, np.nan], [1.0, 0.0]])
WRONG = sr.Semiring("wrong", max, min, 0, 5)

MISTAKES: dict[str, Callable[[], Any]] = {
    "a vertex": lambda: PATHS.path("Bern", "Gnef"),
    "a distance": lambda: PATHS.distance("Bern", "Gnef"),
    "an index": lambda: PATHS[3],
    "a length": lambda: len(PATHS),
    "distances of widths": lambda: sr.closure(GRAPH, sr.MAX_MIN, paths=True).distances,
    "a file": lambda: PATHS.save("paths.txt"),
    "a file that is not there": lambda: sr.read_edges("nowhere.csv"),
    "paths that are not there": lambda: sr.Paths.load("nowhere.npz"),
    "a folder that is not there": lambda: PATHS.save("nowhere/paths.npz"),
    "a source": lambda: sr.apsp(GRAPH, sources=["Gnef"]),
    "NaN": lambda: sr.apsp(MATRIX),
    "another keyword": lambda: sr.apsp(MATRIX, sorces=1),  # type: ignore[call-arg]
    "an argument that is missing": lambda: sr.closure(MATRIX),  # type: ignore[call-arg]
    "no semiring": lambda: sr.closure(GRAPH, "nope"),
    "a semiring without its laws": lambda: sr.closure(GRAPH, WRONG),
    "a zero": lambda: sr.Semiring("x", min, max, (1, 2), 3),
    "a witness": lambda: sr.PLUS_TIMES.with_witness(),
    "laws": lambda: sr.check(WRONG).raise_if_refuted(),
    "a law": lambda: sr.check(WRONG)["x"],
    "edges": lambda: sr.edges([1, 2]),
    "shapes": lambda: sr.matmul(np.ones((2, 3)), np.ones((2, 3)), sr.MIN_PLUS),
    "a power": lambda: sr.power(np.ones((2, 2)), -1, sr.MIN_PLUS),
    "a cycle": lambda: sr.apsp([[0, -1], [-1, 0]]),
    "a plan": lambda: sr.explain(-1),
    "statistics": lambda: sr.statistics(GRAPH, bins=0),
    "reachability": lambda: sr.transitive_closure([[0.5]]),
    "source code": lambda: kernels.source("nope", "float32"),
    "a test": lambda: testing.elements("nope"),
    "SciPy's": lambda: csgraph.shortest_path(np.ones((2, 2)), method="x"),
    "SciPy's cycle": lambda: csgraph.shortest_path(np.array([[0, -1], [-1, 0]])),
}  # fmt: skip


@pytest.fixture(autouse=True)
def as_for_users(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SEMIRING_TRACEBACK")


def raised(call: Callable[[], Any]) -> BaseException:
    """What a call raises."""
    try:
        call()
    except BaseException as error:
        return error
    pytest.fail("nothing was raised")


def files(error: BaseException) -> list[str]:
    """Where the frames of a traceback run."""
    return [frame.filename for frame in traceback.extract_tb(error.__traceback__)]


@pytest.mark.parametrize("mistake", MISTAKES.values(), ids=MISTAKES.keys())
def test_the_last_frame_is_the_users(mistake: Callable[[], Any]) -> None:
    assert files(raised(mistake)) == [__file__, __file__]  # in `raised`, and the line of the mistake


def test_a_folder_that_is_not_there_is_named_as_the_user_did() -> None:
    assert str(raised(MISTAKES["a folder that is not there"])) == f"there is no folder {Path('nowhere').resolve()}"


def test_notes_and_causes_stay() -> None:
    error = raised(MISTAKES["NaN"])
    assert error.__notes__ == ["in the closure of 2 × 2 elements (float64) over min-plus"]
    assert error.__context__ is None

    error = raised(lambda: sr.apsp(np.array([[0, -2], [1, 0]]), dtype=np.float32))
    assert error.__notes__ == ["in the closure of 2 × 2 elements (float32) over min-plus"]  # the dtype of the computation

    def neither(a: Any) -> bool:
        raise KeyError(a)

    error = raised(lambda: sr.Semiring("x", min, max, 0, 1, domain=neither))
    assert isinstance(error.__cause__, KeyError)
    assert files(error.__cause__)[-1] == __file__


@pytest.mark.parametrize(
    "error", [AttributeError("x"), ValueError("x"), ZeroDivisionError(), AssertionError(), KeyboardInterrupt()], ids=repr
)
def test_what_others_raise_keeps_its_traceback(error: BaseException, monkeypatch: pytest.MonkeyPatch) -> None:
    def raises(*_: Any, **__: Any) -> None:
        raise error

    monkeypatch.setattr(solve, "solve", raises)
    assert len(files(raised(lambda: sr.apsp(MATRIX)))) == 6  # two of this file, the decorator's, two of apsp, and this file again


@pytest.mark.parametrize("bug", ["None.x", "{}['x']", "int('x')", "len()", "1 / 0"])
def test_bugs_of_this_library_keep_their_traceback(bug: str) -> None:
    scope: dict[str, Any] = {"__name__": "semiring.somewhere"}
    exec(f"def wrong(): return {bug}", scope)
    assert len(files(raised(errors.raised_here(scope["wrong"])))) == 3
    exec("def right(): raise ValueError", scope)
    assert len(files(raised(errors.raised_here(scope["right"])))) == 1


def test_nothing_is_left_out_for_those_who_work_on_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEMIRING_TRACEBACK", "full")
    assert files(raised(MISTAKES["a vertex"]))[-1].endswith("store.py")


CELLS = [
    'paths.path("Bern", "Gnef")', 'sr.apsp(graph, sources=["Gnef"])', "sr.apsp([[0, float('nan')], [1, 0]])", "sr.closure(graph, wrong)",
    "paths[3]", "sr.apsp(graph, sorces=1)",
]  # fmt: skip

SESSION = f"""
import contextlib, io
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance()
shell.run_cell("import semiring as sr; graph = sr.edges([('Bern', 'Basel')]); paths = sr.apsp(graph, paths=True)")
shell.run_cell("wrong = sr.Semiring('wrong', max, min, 0, 5)")
for cell in {CELLS}:
    with contextlib.redirect_stdout(io.StringIO()) as shown:
        shell.run_cell(cell)
    print(ascii(shown.getvalue()))
"""


def test_ipython_shows_a_few_lines(tmp_path: Path) -> None:
    pytest.importorskip("IPython")
    environment = os.environ | {"IPYTHONDIR": str(tmp_path), "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", SESSION], env=environment, capture_output=True, text=True, check=True)
    for cell, shown in zip(CELLS, done.stdout.splitlines(), strict=True):
        lines = re.sub(r"\x1b\[[\d;]*m", "", ast.literal_eval(shown)).strip().splitlines()
        assert len(lines) <= 8, lines
        assert lines[2].startswith("Cell In[")
        assert lines[3] == f"----> 1 {cell}"
        assert lines[4] == ""  # no frame after the user's line
        assert re.match(r"\w+Error: ", lines[5])


PUBLIC = {
    f"{owner.__name__}.{name}": member
    for owner in (sr, csgraph, kernels, testing, sr.Paths)
    for name in (getattr(owner, "__all__", None) or [name for name in vars(owner) if not name.startswith("_")])
    if isinstance(member := inspect.getattr_static(owner, name, None) or getattr(owner, name), types.FunctionType | staticmethod)
    if inspect.unwrap(getattr(member, "__func__", member)).__module__.startswith("semiring")
}


NOT_WRAPPED = {"semiring.semirings", "semiring.show_config", "semiring.kernels.engine_for"}
"""Calls about which nothing can be wrong, and what is for those who write algorithms."""

WRAPPER = errors.raised_here(len).__code__


@pytest.mark.parametrize("name", sorted(PUBLIC.keys() - NOT_WRAPPED))
def test_every_public_function_raises_at_the_call(name: str) -> None:
    function: Any = PUBLIC[name]
    assert getattr(function, "__func__", function).__code__ is WRAPPER, "decorate it with semiring.common.errors.raised_here"


def test_functions_are_what_they_were() -> None:
    for function in (sr.apsp, sr.closure, sr.matmul, sr.check, sr.edges, sr.statistics, csgraph.dijkstra):
        assert pickle.loads(pickle.dumps(function)) is function
        assert function.__doc__
        assert "args" not in inspect.signature(function).parameters
    assert [*inspect.signature(sr.Semiring).parameters][:5] == ["name", "add", "mul", "zero", "one"]
    assert inspect.signature(sr.Paths.path).parameters.keys() == {"self", "source", "target"}


def test_warnings_point_at_the_line_of_the_call() -> None:
    dense = np.array([[0.0, 0.0], [1.0, 0.0]])
    negative = np.array([[0.0, 2.0, 0.0], [0.0, 0.0, -1.0], [0.0, 0.0, 0.0]])
    calls: list[Callable[[], Any]] = [lambda: sr.apsp(dense), lambda: csgraph.dijkstra(negative)]
    for call in calls:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            call()
        assert [warning.filename for warning in caught] == [__file__]
