"""Every notebook runs from top to bottom in a fresh kernel."""

from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

NOTEBOOKS = sorted((Path(__file__).parents[1] / "notebooks").glob("*.ipynb"))


def test_there_are_notebooks() -> None:
    assert NOTEBOOKS


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_it_is_stored_as_it_ran_from_top_to_bottom(path: Path) -> None:
    cells = [cell for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1))
    outputs = [output for cell in cells for output in cell.outputs]
    assert any("image/png" in output.get("data", {}) for output in outputs)
    assert not [output for output in outputs if output.output_type == "error" or output.get("name") == "stderr"]
    # Widgets need a kernel; what is stored beside them needs none.
    assert not [output for output in outputs if any("widget" in kind for kind in output.get("data", {}))]


def test_the_first_picture_of_the_algorithms_is_on_the_first_screen() -> None:
    cells = nbformat.read(next(path for path in NOTEBOOKS if path.stem.startswith("03")), as_version=4).cells
    title, picture = cells[:2]
    assert len(title.source.splitlines()) <= 3
    assert len(picture.source.splitlines()) <= 10
    assert "<svg" in picture.outputs[0].data["text/html"]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_the_code_of_pictures_is_folded_on_the_site(path: Path) -> None:
    cells = [cell for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "code"]
    drawing = [cell for cell in cells if any("image/png" in output.get("data", {}) for output in cell.outputs)]
    assert not [cell.source for cell in drawing if "hide-input" not in cell.metadata.get("tags", ()) and cell.source.count("\n") > 3]


@pytest.mark.exhaustive
@pytest.mark.notebook
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_runs(path: Path) -> None:
    notebook = nbformat.read(path, as_version=4)
    if any("import wntr" in cell.source for cell in notebook.cells):
        pytest.importorskip("wntr", reason="which has no wheel for this Python")
    NotebookClient(notebook, timeout=300, kernel_name="python3", resources={"metadata": {"path": str(path.parent)}}).execute()
