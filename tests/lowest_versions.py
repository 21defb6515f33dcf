"""The oldest version that pyproject.toml admits of every dependency, as constraints for pip.

python tests/lowest_versions.py > lowest.txt && pip install -e ".[test]" --constraint lowest.txt
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

PYPROJECT = Path(__file__).parents[1] / "pyproject.toml"


def requirements() -> Iterator[str]:
    """Every requirement of the package and of its extras, but for those on extras of its own."""
    project = tomllib.loads(PYPROJECT.read_text(encoding="utf-8"))["project"]
    for extra in (project["dependencies"], *project["optional-dependencies"].values()):
        yield from (requirement for requirement in extra if not requirement.startswith(project["name"]))


def constraints() -> Iterator[tuple[str, str]]:
    """Each dependency and the lower bound of its versions; one that has none, or is pinned, is left out."""
    for requirement in requirements():
        if bound := re.match(r"([\w-]+)(?:\[[\w,]+\])?>=([\w.]+)", requirement):
            yield bound[1], bound[2]


if __name__ == "__main__":
    print("\n".join(sorted({f"{name}=={version}" for name, version in constraints()})))
