"""Docstrings as people read them in `help` and in Jupyter: examples before parameters, every parameter once, and nothing too long."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import pydoc
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import semiring as sr
from semiring.common.docstrings import described_by

ROOT = Path(__file__).parents[1]

SECTIONS = [
    "Examples", "Parameters", "Attributes", "Returns", "Yields", "Other Parameters", "Raises", "Warns", "Notes", "References"
]  # fmt: skip
"""In the order in which they stand."""

PUBLIC = ["semiring", "semiring.algebra.ops", "semiring.csgraph", "semiring.kernels", "semiring.testing"]

ONE_LINE_SAYS_IT = {
    "semiring.CycleMean.facts": "for Jupyter",
    "semiring.EdgeList.edge_name": "for messages",
    "semiring.Factor.facts": "for Jupyter",
    "semiring.Plan.engine": "for executors",
    "semiring.Plan.facts": "for Jupyter",
    "semiring.Progress.facts": "for Jupyter",
    "semiring.Nearest.facts": "for Jupyter",
    "semiring.Reachability.facts": "for Jupyter",
    "semiring.Semiring.narrowed": "for closures",
    "semiring.Semiring.running": "for engines",
    "semiring.Statistics.facts": "for Jupyter",
    "semiring.kernels.Block.at": "a view, as block[rows, columns] is",
}
"""What has no example, and why. Nor have errors and properties, nor functions of `semiring.ops`, whose module has some, nor the protocol
`semiring.kernels.Engine`, an object of which is in the example of `engine_for`."""


def sections(text: str) -> dict[str, str]:
    """The sections of a docstring, by their names."""
    parts = re.split(r"^([A-Z][A-Za-z ]+)\n-{3,}\n", text, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def described(text: str) -> list[str]:
    """The parameters that a docstring describes, in its order."""
    found = sections(text)
    lines = (found.get("Parameters", "") + "\n" + found.get("Other Parameters", "")).splitlines()
    heads = [line.split(" : ")[0] for line in lines if line and not line.startswith(" ")]
    return [name.strip("*") for head in heads for name in head.split(", ")]


def public() -> Iterator[tuple[str, Any]]:
    """Functions, classes and methods that users call, by their names; semirings are no functions, and SciPy's functions are SciPy's."""
    for module in map(importlib.import_module, PUBLIC):
        for name in module.__all__:
            found = getattr(module, name)
            if not callable(found) or not str(getattr(found, "__module__", "")).startswith("semiring"):
                continue
            yield f"{module.__name__}.{name}", found
            if inspect.isclass(found) and not issubclass(found, Exception | tuple):
                own = {m: v for base in reversed(found.__mro__) if base.__module__.startswith("semiring") for m, v in vars(base).items()}
                for member, value in own.items():
                    if not member.startswith("_") and callable(getattr(found, member)) and not isinstance(value, type):
                        yield f"{module.__name__}.{name}.{member}", getattr(found, member)


EVERYTHING = dict(public())
FUNCTIONS = {name: found for name, found in EVERYTHING.items() if not inspect.isclass(found)}


@pytest.mark.parametrize("name", EVERYTHING)
def test_a_first_line_and_an_example(name: str) -> None:
    found = EVERYTHING[name]
    text = inspect.getdoc(found)
    assert text, f"{name} has no docstring"
    first, _, rest = text.partition("\n")
    assert first.endswith((".", "?")), f"{name} begins with a line that is no sentence: {first}"
    assert not rest or rest.startswith("\n"), f"{name} has no line of its own at its head"
    excused = (
        name in ONE_LINE_SAYS_IT
        or name.startswith(("semiring.algebra.ops.", "semiring.kernels.Engine"))
        or (inspect.isclass(found) and issubclass(found, Exception))
    )
    assert excused or ">>> " in sections(text).get("Examples", ""), f"{name} has no example"


def test_nothing_is_excused_that_is_not_there() -> None:
    assert not ONE_LINE_SAYS_IT.keys() - EVERYTHING.keys()


@pytest.mark.parametrize("module", ["semiring.ops", "semiring.testing"])
def test_modules_begin_with_examples(module: str) -> None:
    assert ">>> " in (importlib.import_module(module).__doc__ or "")


def modules() -> list[str]:
    """All of the library's."""
    found = pkgutil.walk_packages(sr.__path__, "semiring.")
    return [module.name for module in found if not module.name.endswith("__main__")]


@pytest.mark.parametrize("module", modules())
def test_sections_stand_in_their_order(module: str) -> None:
    """Also of what only this library calls."""
    file = Path(importlib.import_module(module).__file__ or "")
    for heads in re.findall(r'"""(.*?)"""', file.read_text(encoding="utf-8"), re.DOTALL):
        found = [name for name in re.findall(r"^ *([A-Z][A-Za-z ]+)\n *-{3,}$", heads, re.MULTILINE) if name in SECTIONS]
        assert found == sorted(found, key=SECTIONS.index), f"{module}: {heads.splitlines()[0]}"


@pytest.mark.parametrize("name", [name for name, found in FUNCTIONS.items() if "Parameters" in sections(inspect.getdoc(found) or "")])
def test_every_parameter_is_described_once(name: str) -> None:
    function = FUNCTIONS[name]
    names = [parameter for parameter in inspect.signature(function).parameters if parameter != "self"]
    assert sorted(described(inspect.getdoc(function) or "")) == sorted(names)
    assert "As for `" not in sections(inspect.getdoc(function) or "")["Parameters"]


@pytest.mark.parametrize("name", ["apsp", "closure", "transitive_closure", "statistics", "explain"])
def test_options_stand_in_the_order_of_the_signature(name: str) -> None:
    function = getattr(sr, name)
    order = list(inspect.signature(function).parameters)
    names = described(inspect.getdoc(function) or "")
    assert names == [name for name in order if name in names]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_help_is_short(name: str) -> None:
    assert len(pydoc.render_doc(FUNCTIONS[name], renderer=pydoc.plaintext).split()) <= 500  # type: ignore[attr-defined]


def test_help_of_apsp_shows_examples_on_its_first_screen() -> None:
    screen = (inspect.getdoc(sr.apsp) or "").splitlines()[:20]  # above it stands the signature, in as many lines as Python likes
    assert any("paths=True" in line for line in screen if line.strip().startswith(">>>"))


@pytest.mark.parametrize("name", EVERYTHING)
def test_what_docstrings_name_in_words_are_pages(name: str) -> None:
    """Those that the site links to, see docs/conf.py."""
    folders = {"How-to": "howto", "How it works": "how-it-works", "Reference": "reference"}
    for folder, page in re.findall(rf"\b({'|'.join(folders)}), ([A-Z][a-z]+(?: from SciPy)?)\b", inspect.getdoc(EVERYTHING[name]) or ""):
        assert (ROOT / "docs" / folders[folder] / f"{page.lower().replace(' ', '-')}.md").exists()


def test_the_site_keeps_that_order() -> None:
    """Numpydoc's own template has examples last."""
    template = (ROOT / "docs/templates/numpydoc_docstring.rst").read_text(encoding="utf-8")
    shown = [name.replace("_", " ").title() for name in re.findall(r"{{(\w+)}}", template)]
    assert [name for name in shown if name in SECTIONS] == SECTIONS


def test_descriptions_are_taken_from_another_function() -> None:
    def given(one: int, two: int, three: int) -> None:
        """Say it.

        Parameters
        ----------
        one, two : int
            The first
            and the second.

        Other Parameters
        ----------------
        three : float
            The third.
        """

    @described_by(given)
    def taking(two: int, three: int, four: int, one: int) -> None:
        """Take it.

        Parameters
        ----------
        two, three
            As for `given`. It is more.
        four : str

        Other Parameters
        ----------------
        one
            As for `given`.
        """

    assert inspect.getdoc(taking) == (
        "Take it.\n\nParameters\n----------\n"
        "two : int\n    The first\n    and the second.\n    It is more.\n"
        "three : float\n    The third.\n    It is more.\n"
        "four : str\n\n"
        "Other Parameters\n----------------\none\n    As for `given`."
    )


def test_descriptions_of_functions_without_docstrings() -> None:
    """As with python -OO."""

    def given(one: int) -> None: ...

    @described_by(given)
    def taking(one: int) -> None: ...

    assert taking.__doc__ is None
