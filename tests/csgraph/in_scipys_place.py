"""A plugin of pytest that puts `semiring.csgraph` in the place of `scipy.sparse.csgraph` before SciPy's tests import it, and counts."""

from __future__ import annotations

import functools
import importlib
import inspect
import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from scipy.sparse import csgraph as scipys

from semiring import csgraph as ours
from semiring.csgraph import solving
from semiring.planning import planner

PRIVATE = ("_shortest_path", "_tools")
"""SciPy's modules that define what is replaced."""

calls: Counter[str] = Counter()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--compute-on", default="auto", help="the device= of every call")
    parser.addoption("--counts", required=True, help="where to write how often what was called")


def pytest_configure(config: pytest.Config) -> None:
    device = str(config.getoption("--compute-on"))
    for name in scipys.__all__:
        replacement = getattr(ours, name)
        if replacement is getattr(scipys, name):
            continue  # SciPy's own
        if inspect.isfunction(replacement):
            replacement = _counted(name, replacement, device)
        for module in (scipys, *(importlib.import_module(f"{scipys.__name__}.{private}") for private in PRIVATE)):
            if hasattr(module, name):
                setattr(module, name, replacement)
    if device != "auto":
        planner.__dict__["closure_seconds"] = lambda *_: 0.0  # by the closure wherever there is one, small as SciPy's graphs are
        solving.__dict__["FEW_STEPS"] = 0
    for kind in ("by_closure", "by_scipy"):
        setattr(solving, kind, _counted(kind, getattr(solving, kind)))


def _counted(name: str, function: Callable[..., Any], device: str | None = None) -> Callable[..., Any]:
    chosen = {"device": device} if device is not None and "device" in inspect.signature(function).parameters else {}

    @functools.wraps(function)
    def counted(*args: Any, **kwargs: Any) -> Any:
        calls[name] += 1
        return function(*args, **kwargs, **chosen)

    return counted


def pytest_unconfigure(config: pytest.Config) -> None:
    Path(str(config.getoption("--counts"))).write_text(json.dumps(calls))
