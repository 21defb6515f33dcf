"""What is installed: every subpackage, under one name, and nothing heavy at import."""

import json
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FOLDERS = {"semiring": "semiring", "semiring.kernels": "kernels", "semiring.algorithms": "algorithms"}


def test_every_subpackage_is_listed() -> None:
    setuptools = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["setuptools"]
    found = set()
    for package, folder in FOLDERS.items():
        for module in (ROOT / folder).rglob("*.py"):  # rglob does not follow the two links
            parts = module.parent.relative_to(ROOT / folder).parts
            found.add(".".join((package, *parts)))
            assert (module.parent / "__init__.py").is_file(), f"{module.parent} is no package"
    assert sorted(setuptools["packages"]) == sorted(found)
    assert {"semiring": "semiring", **setuptools["package-dir"]} == FOLDERS


@pytest.mark.skipif((ROOT / "PKG-INFO").is_file(), reason="a source distribution has no links")
@pytest.mark.parametrize("name", ["kernels", "algorithms"])
def test_links_show_the_installed_layout(name: str) -> None:
    link = ROOT / "semiring" / name
    assert link.is_symlink()
    assert link.resolve() == ROOT / name


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
