"""The glossary of the documentation says where each of the field's words lives, and the code has none of the words that it replaces."""

import ast
import importlib
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs/how-it-works/glossary.md").read_text(encoding="utf-8")
ROWS = [[cell.strip() for cell in line.strip("| ").split(" | ")] for line in PAGE.splitlines() if line.startswith("| **")]
INSTEAD = re.findall(r"^\| `(\w+)` \|", PAGE, re.MULTILINE)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_each_word_lives_where_the_glossary_says(row: list[str]) -> None:
    word, meaning, places = row
    assert meaning
    found = re.findall(r"`([^`]+)`", places)
    assert found, f"{word} lives nowhere"
    for place in found:
        path, _, name = place.partition(":")
        file = ROOT / "semiring" / path.removeprefix("semiring/")
        assert file.exists(), place
        if path.endswith(".py") and name:
            owner: object = importlib.import_module(".".join(file.relative_to(ROOT).with_suffix("").parts))
            for part in name.split("."):
                assert part in getattr(owner, "__annotations__", ()) or hasattr(owner, part), place
                owner = getattr(owner, part, None)
        elif name:
            assert re.search(rf"\b{name}\b", file.read_text(encoding="utf-8")), place


def identifiers() -> Iterator[tuple[str, str]]:
    """Every name that the library's code gives to anything, with where it stands."""
    for path in sorted((ROOT / "semiring").rglob("*.py")):
        yield path.stem, str(path)
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                yield node.name, f"{path}:{node.lineno}"
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                yield node.id, f"{path}:{node.lineno}"
            elif isinstance(node, ast.arg):
                yield node.arg, f"{path}:{node.lineno}"


def test_words_that_have_a_standard_one_name_nothing() -> None:
    assert INSTEAD
    words = set(INSTEAD)
    found = {}
    for name, where in identifiers():
        for part in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", name):
            if part.lower() in words:
                found[name] = where
    assert not found
