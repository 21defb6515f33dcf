"""The pages on the house and on contributing say where things stand; class names are unique; prose keeps the rules of the house."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "semiring"
HOUSE = (ROOT / "docs/how-it-works/house.md").read_text(encoding="utf-8")
FILES = sorted(PACKAGE.rglob("*.py"))
TREES = {path: ast.parse(path.read_text(encoding="utf-8")) for path in FILES}

ENGINES = {"kernels/cpu", "kernels/cuda"}
"""Folders of classes that do the same job on different engines, and share their names."""

SCIPYS = {"NegativeCycleError"}
"""Names that SciPy's functions raise too."""

OPENERS = (
    "what", "whether", "where", "how", "which", "those", "that", "of", "as", "all", "and", "or", "then", "it", "they", "these", "there",
    "once", "else", "both", "whoever", "whatever",
)  # fmt: skip
"""Words that begin a relative clause or refer back, where a docstring should begin with a verb or a noun."""

IDIOMS = re.compile(
    r"\b(of which|in the place of|whoever|those that|that there (is|are)|there (is|are) not|com(es|e) by|came by|tells of|told of|"
    r"(is|are) told|lies? alike|but for|of (its|their) own|of ours|at the door|what (is there|there is)|besides? (it|them)|for its part)\b",
    re.IGNORECASE,
)
"""Phrases that readers outside of the project read twice."""


def symbols(path: Path) -> set[str]:
    """Names that a module defines at its top."""
    found = set()
    for statement in TREES[path].body:
        if isinstance(statement, ast.FunctionDef | ast.ClassDef):
            found.add(statement.name)
        elif isinstance(statement, ast.Assign | ast.AnnAssign):
            targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
            found |= {name.id for target in targets for name in ast.walk(target) if isinstance(name, ast.Name)}
    return found


@pytest.mark.parametrize("place", sorted(set(re.findall(r"`([\w/]+\.py(?::\w+)?)`", HOUSE))))
def test_places_of_the_house_exist(place: str) -> None:
    path, _, symbol = place.partition(":")
    file = next((base / path for base in (PACKAGE, ROOT) if (base / path).is_file()), None)
    if "/" not in path:
        assert file is not None or list(PACKAGE.rglob(path)), place
        return
    assert file is not None, place
    assert not symbol or symbol in symbols(file), place


def test_every_folder_is_a_room() -> None:
    rooms = set(re.findall(r"`(\w+)/`", HOUSE.partition("## Where a call goes")[0]))
    assert {path.parent.name for path in PACKAGE.glob("*/__init__.py")} <= rooms


def test_a_class_name_stands_in_one_file() -> None:
    places = defaultdict(set)
    for path, tree in TREES.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                places[node.name].add(path.parent.relative_to(PACKAGE).as_posix())
    twice = {name: sorted(folders) for name, folders in places.items() if len(folders) > 1 and name not in SCIPYS}
    assert {name: folders for name, folders in twice.items() if not set(folders) <= ENGINES} == {}


def docstrings(path: Path) -> Iterator[tuple[str, str]]:
    """Docstrings of a module, with the place of each."""
    for node in ast.walk(TREES[path]):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and (text := ast.get_docstring(node)):
            yield f"{path.relative_to(ROOT)}:{node.body[0].lineno}", text


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_docstrings_begin_with_a_verb_or_a_noun(path: Path) -> None:
    wrong = [f"{place} {text.splitlines()[0]}" for place, text in docstrings(path) if text.split()[0].lower().strip(",.:") in OPENERS]
    assert wrong == []


def prose(path: Path) -> Iterator[tuple[str, str]]:
    """Docstrings and comments of a module."""
    yield from docstrings(path)
    for token in tokenize.generate_tokens(io.StringIO(path.read_text(encoding="utf-8")).readline):
        if token.type == tokenize.COMMENT:
            yield f"{path.relative_to(ROOT)}:{token.start[0]}", token.string


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_prose_has_no_private_idioms(path: Path) -> None:
    assert [f"{place} {found[0]!r}" for place, text in prose(path) if (found := IDIOMS.search(" ".join(text.split())))] == []


ROOT_PAGES = ("README.md", "CONTRIBUTING.md", "SECURITY.md", "CODE_OF_CONDUCT.md")
PAGES = [*(ROOT / name for name in ROOT_PAGES), *sorted((ROOT / "docs").rglob("*.md"))]
WRITTEN = [page for page in PAGES if not {"benchmarks", "notebooks", "generated"} & set(page.relative_to(ROOT).parts)]


@pytest.mark.parametrize("page", WRITTEN, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_pages_have_no_private_idioms(page: Path) -> None:
    text = re.sub(r"```.*?```|`[^`]*`", " ", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    assert [found[0] for found in IDIOMS.finditer(" ".join(text.split()))] == []
