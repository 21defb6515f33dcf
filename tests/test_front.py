"""The files at the root that services and strangers read agree with the library, and with each other."""

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from semiring import __version__

ROOT = Path(__file__).parents[1]
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]

needs_bash = pytest.mark.skipif(sys.platform == "win32" or shutil.which("bash") is None, reason="a script of bash")


def text(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def test_each_mark_of_the_owners_is_listed() -> None:
    folders = (".ci", ".github", "recipe", "semiring", "benchmarks", "examples", "notebooks")
    paths = [path for path in ROOT.iterdir() if path.is_file()] + [path for folder in folders for path in (ROOT / folder).rglob("*")]
    found = set()
    for path in paths:
        if path.is_file() and path.suffix in (".cff", ".in", ".ipynb", ".md", ".py", ".toml", ".yaml", ".yml"):
            marks = re.findall(r"OWNERS-[A-Z]+", path.read_text(encoding="utf-8"))
            found |= {(mark, path.relative_to(ROOT).as_posix()) for mark in marks}
    rows = re.findall(r"^\| `(OWNERS-[A-Z]+)` \|.*\|(.*)\|$", text("docs/releasing.md"), re.MULTILINE)
    assert found == {(mark, name) for mark, names in rows for name in re.findall(r"`(.*?)`", names)}
    assert found


def test_hosted_ci_runs_every_python() -> None:
    named = re.findall(r"Python :: (3\.\d+)", "\n".join(PROJECT["classifiers"]))
    few, every = (re.findall(r"3\.\d+", found) for found in re.findall(r"'\[(.*?)\]'", text(".github/workflows/ci.yml")))
    assert every == named
    assert few == [named[0], named[-1]]


def test_the_recipe_has_the_requirements_of_the_wheel() -> None:
    recipe = text("recipe/recipe.yaml")
    listed = set(re.findall(r"^    - ([\w-]+ >=[\d.]+)$", recipe, re.MULTILINE))
    build = tomllib.loads(text("pyproject.toml"))["build-system"]["requires"]
    assert listed == {requirement.replace(">=", " >=") for requirement in (*PROJECT["dependencies"], *build)}
    assert f'  version: "{__version__}"\n  python_min: "{PROJECT["requires-python"].removeprefix(">=")}"\n' in recipe
    assert all(f"- {name} = {target}\n" in recipe for name, target in PROJECT["scripts"].items())
    assert f"  summary: {PROJECT['description']}\n" in recipe


def test_the_citation_has_the_papers() -> None:
    citation = text("CITATION.cff")
    cited = [title.strip('"').lower() for title in re.findall(r"^    title: (.*)$", citation, re.MULTILINE)]
    sources = text("docs/how-it-works/papers.md").partition("## Sources")[2]
    assert sorted(cited) == sorted(title.lower() for title in re.findall(r"\*(.*?)\*", sources))
    names = re.findall(r"family-names: (\w+)", citation)
    assert [name for name in names if name not in sources] == []
    assert f"license: {PROJECT['license']}\n" in citation
    assert f"name: {PROJECT['authors'][0]['name']}\n" in citation


@needs_bash
@pytest.mark.parametrize("name", ["demo", "test"])
def test_windows_runs_the_commands_of_the_readme(name: str) -> None:
    def printed(system: str) -> str:
        environment = os.environ | {"OSTYPE": system}
        return subprocess.check_output(["bash", ".ci/readme", name], cwd=ROOT, env=environment, text=True)

    assert f"```sh\n{printed('linux-gnu')}```" in text("README.md")
    assert printed("msys") == printed("linux-gnu").replace("/bin/", "/Scripts/").replace("python3 ", "python ")


@needs_bash
def test_the_notes_of_a_release_are_a_section_of_the_changelog(tmp_path: Path) -> None:
    (tmp_path / ".ci").mkdir()
    shutil.copy(ROOT / ".ci/notes", tmp_path / ".ci")
    changes = "# Changelog\n\n## 0.2.0 (unreleased)\n\n- New.\n\n## 0.1.0 (2027-01-31)\n\n### Added\n\n- All.\n\n## 0.0.1\n"
    (tmp_path / "CHANGELOG.md").write_text(changes, encoding="utf-8")

    def notes(version: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(["bash", tmp_path / ".ci/notes", version], capture_output=True, text=True, check=False)

    found = notes("0.1.0")
    assert (found.returncode, found.stdout.strip()) == (0, "### Added\n\n- All.")
    for version in ("0.2.0", "0.0.1", "0.1", "1.0.0"):
        assert notes(version).returncode == 1
        assert version in notes(version).stderr


def test_a_source_distribution_has_the_files_at_the_root() -> None:
    named = set(re.findall(r"^include (.*)$", text("MANIFEST.in"), re.MULTILINE)[0].split())
    assert {path.name for path in ROOT.iterdir() if path.suffix in (".md", ".cff")} - {"README.md"} <= named
