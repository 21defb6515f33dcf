"""The Python examples of the README and of the documentation say what Python answers; each page is one session from first to last."""

import doctest
import os
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
WRITTEN_HERE = ["README.md", *("docs/" + page for page in ("*.md", "howto/*.md", "how-it-works/*.md", "reference/*.md"))]
PAGES = {page.relative_to(ROOT).as_posix(): page for pattern in WRITTEN_HERE for page in sorted(ROOT.glob(pattern))}
EXAMPLES = {name: page for name, page in PAGES.items() if ">>> " in page.read_text(encoding="utf-8")}


@pytest.mark.parametrize("name", EXAMPLES)
def test_python_examples(name: str) -> None:
    for library in ("jax", "torch"):
        if f">>> import {library}\n" in EXAMPLES[name].read_text(encoding="utf-8"):
            pytest.importorskip(library)
    lines, inside = [], False
    for line in EXAMPLES[name].read_text(encoding="utf-8").splitlines():
        fence = line.startswith("```")
        if fence:
            inside = line == "```python"
        lines.append(line if inside and not fence else "")  # blank, so that a failure names the page's own line

    session = doctest.DocTestParser().get_doctest("\n".join(lines) + "\n", {}, name, str(EXAMPLES[name]), 0)
    output: list[str] = []
    result = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(session, out=output.append)
    assert result.attempted
    assert not result.failed, "".join(output)


LINKED = [*PAGES, "CONTRIBUTING.md", "SECURITY.md", "CODE_OF_CONDUCT.md", "CHANGELOG.md", "benchmarks/README.md", "benchmarks/RESULTS.md"]


@pytest.mark.parametrize("name", LINKED)
def test_links_lead_somewhere(name: str) -> None:
    links = re.findall(r"\]\(([^)#\s]+)", (ROOT / name).read_text(encoding="utf-8"))
    targets = [os.path.normpath(Path(name).parent / link) for link in links if "://" not in link]
    # docs/conf.py copies notebooks/ and benchmarks/ into docs/.
    assert not [target for target in targets if not ((ROOT / target).exists() or (ROOT / target.removeprefix(f"docs{os.sep}")).exists())]


def test_the_reference_has_every_public_name() -> None:
    import semiring

    pages = [page for page in sorted((ROOT / "docs/reference").glob("*.md")) if page.stem != "csgraph"]
    listed = [name for page in pages for name in re.findall(r"^   (\w+)$", page.read_text(encoding="utf-8"), re.MULTILINE)]
    assert sorted(listed) == sorted(semiring.__all__)  # each of them on one page


@pytest.mark.parametrize("name", LINKED)
def test_what_pages_say_of_the_code_is_there(name: str) -> None:
    """Files that a page names by their path, and modules and their members by their dotted name."""
    if name in ("CHANGELOG.md", "benchmarks/RESULTS.md"):
        pytest.skip("it tells of the past")
    text = (ROOT / name).read_text(encoding="utf-8")
    paths = set(re.findall(r"`((?:semiring|kernels|algorithms|tests|benchmarks|docs)/[\w./-]*)`", text))
    assert not [path for path in paths if not ((ROOT / path).exists() or (ROOT / "semiring" / path).exists())]
    names = set(re.findall(r"`(semiring(?:\.\w+)+)(?:\(\))?`", text))
    assert not [dotted for dotted in names if not exists(dotted)]


def exists(dotted: str) -> bool:
    """Whether a dotted name is a module, or leads from one to something that it has."""
    import importlib

    module, _, rest = dotted.partition(".")
    found: object = importlib.import_module(module)
    for part in rest.split("."):
        module = f"{module}.{part}"
        try:
            found = getattr(found, part) if hasattr(found, part) else importlib.import_module(module)
        except ImportError:
            return False
    return True


def test_none_of_the_ten_tasks_takes_more_than_three_lines() -> None:
    _, *tasks = (ROOT / "docs/howto/ten-tasks.md").read_text(encoding="utf-8").split("\n## ")
    assert len(tasks) == 10
    for task in tasks:
        assert 1 <= sum(line.startswith((">>> ", "... ")) for line in task.splitlines()) <= 3, task
