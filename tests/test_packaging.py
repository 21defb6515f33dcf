"""What is installed: every subpackage, under one name, and nothing heavy at import."""

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from semiring.config import EXTRAS
from tests.lowest_versions import constraints, requirements

ROOT = Path(__file__).parents[1]

PYPROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def test_every_folder_with_modules_is_a_package() -> None:
    """Setuptools' discovery leaves out folders without an ``__init__.py``."""
    folders = {module.parent for module in (ROOT / "semiring").rglob("*.py")}
    assert [folder for folder in folders if not (folder / "__init__.py").is_file()] == []
    assert PYPROJECT["tool"]["setuptools"]["packages"] == {"find": {"include": ["semiring*"]}}


@pytest.mark.skipif((ROOT / "PKG-INFO").is_file(), reason="a source distribution has no links")
@pytest.mark.skipif(sys.platform == "win32", reason="git makes files of links there, and nothing needs them")
@pytest.mark.parametrize("name", ["kernels", "algorithms"])
def test_links_at_the_top_lead_into_the_package(name: str) -> None:
    link = ROOT / name
    assert link.is_symlink()
    assert link.resolve() == ROOT / "semiring" / name


def test_the_oldest_python_is_the_same_everywhere() -> None:
    oldest = PYPROJECT["project"]["requires-python"].removeprefix(">=")
    tools = PYPROJECT["tool"]
    assert tools["mypy"]["python_version"] == tools["pyright"]["pythonVersion"] == oldest
    assert tools["ruff"]["target-version"] == f"py{oldest.replace('.', '')}"
    named = re.findall(r"Python :: (3\.\d+)", "\n".join(PYPROJECT["project"]["classifiers"]))
    first = int(oldest.removeprefix("3."))
    assert named == [f"3.{minor}" for minor in range(first, first + len(named))]
    for page in ("README.md", "CONTRIBUTING.md", "docs/tutorial.md"):
        assert f"Python {oldest} or later" in (ROOT / page).read_text(encoding="utf-8")


def test_every_dependency_has_one_lower_bound() -> None:
    bounds = set(constraints())
    bounded = [name for name, _ in bounds]
    assert sorted(bounded) == sorted(set(bounded)), "two extras, two bounds"
    for requirement in requirements():
        name = re.split(r"[\[>=]", requirement)[0]
        assert name in bounded or "==" in requirement, f"{requirement} admits versions that nobody has tried"
    backend = (ROOT / "semiring/networkx_backend/interface.py").read_text(encoding="utf-8")
    assert re.search(r'_NEEDED = "([\d.]+)"', backend)[1] == dict(bounds)["networkx"]  # type: ignore[index]  # it is there


def test_extras_are_told_where_they_are_looked_for() -> None:
    extras = PYPROJECT["project"]["optional-dependencies"]
    installing = (ROOT / "README.md").read_text(encoding="utf-8").partition("## Installing")[2]
    assert {extra for extra in extras if f"`{extra}`" not in installing} == set()
    for extra, packages in EXTRAS.items():
        assert all(any(requirement.startswith(package) for requirement in extras[extra]) for package in packages)


def test_the_library_is_installed_from_a_clone() -> None:
    """No page, docstring or message has pip look for a package of this name that nobody has published."""
    folders = ("semiring", "benchmarks", "docs", "notebooks")
    files = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(path for folder in folders for path in (ROOT / folder).rglob("*.*"))]
    texts = {path: path.read_text(encoding="utf-8") for path in files if path.suffix in (".py", ".md", ".ipynb")}
    texts.pop(ROOT / "docs/releasing.md", None)  # which publishes it
    assert [path for path, text in texts.items() if re.search(r"""pip install (-\w+ )*[`'"\\]*semiring\b|'semiring\[""", text)] == []
    extras = PYPROJECT["project"]["optional-dependencies"].keys()
    named = {extra for text in texts.values() for extra in re.findall(r"install_of\(['\"](\w+)", text)}
    assert named <= extras
    assert {"cuda13", "graphs", "progress", "sparse", "demo"} <= named


MEASURE = """
import json, sys, time
start = time.process_time()
import semiring
print(json.dumps([time.process_time() - start, [*sys.modules]]))
"""


def test_import_is_light() -> None:
    runs = [json.loads(subprocess.check_output([sys.executable, "-c", MEASURE], cwd=ROOT, text=True)) for _ in range(3)]
    loaded = {module.partition(".")[0] for _, modules in runs for module in modules}
    heavy = {"bokeh_sampledata", "cupy", "llvmlite", "matplotlib", "networkx", "pandas", "scipy", "sympy"}
    assert not loaded & heavy
    assert min(seconds for seconds, _ in runs) < 0.25
