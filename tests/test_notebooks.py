"""Every notebook runs from top to bottom in a fresh kernel."""

import json
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

NOTEBOOKS = sorted((Path(__file__).parents[1] / "notebooks").glob("*.ipynb"))


def cells_of(path: Path) -> list[dict[str, Any]]:
    """The cells of a notebook, the source of each as one text."""
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return [cell | {"source": "".join(cell["source"])} for cell in cells]


def code_of(path: Path) -> list[dict[str, Any]]:
    return [cell for cell in cells_of(path) if cell["cell_type"] == "code"]


def test_there_are_notebooks() -> None:
    assert NOTEBOOKS


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_it_is_stored_as_it_ran_from_top_to_bottom(path: Path) -> None:
    cells = code_of(path)
    assert [cell["execution_count"] for cell in cells] == list(range(1, len(cells) + 1))
    outputs = [output for cell in cells for output in cell["outputs"]]
    assert any("image/png" in output.get("data", {}) for output in outputs)
    assert not [output for output in outputs if output["output_type"] == "error" or output.get("name") == "stderr"]
    # Widgets need a kernel; what is stored beside them needs none.
    assert not [output for output in outputs if any("widget" in kind for kind in output.get("data", {}))]


def test_the_first_picture_of_the_algorithms_is_on_the_first_screen() -> None:
    title, picture, *_ = cells_of(next(path for path in NOTEBOOKS if path.stem.startswith("03")))
    assert len(title["source"].splitlines()) <= 3
    assert len(picture["source"].splitlines()) <= 10
    assert "<svg" in "".join(picture["outputs"][0]["data"]["text/html"])


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_the_code_of_pictures_is_folded_on_the_site(path: Path) -> None:
    cells = code_of(path)
    drawing = [cell for cell in cells if any("image/png" in output.get("data", {}) for output in cell["outputs"])]
    assert not [c["source"] for c in drawing if "hide-input" not in c["metadata"].get("tags", ()) and c["source"].count("\n") > 3]


@pytest.mark.exhaustive
@pytest.mark.notebook
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_runs(path: Path) -> None:
    import nbformat  # whose import takes seconds
    from nbclient import NotebookClient

    notebook = nbformat.read(path, as_version=4)
    piped = any("import wntr" in cell.source for cell in notebook.cells)
    if piped and find_spec("wntr") is None:  # an import that fails is no reason to leave it out
        pytest.skip("wntr has no wheel for this Python")
    NotebookClient(notebook, timeout=300, kernel_name="python3", resources={"metadata": {"path": str(path.parent)}}).execute()
