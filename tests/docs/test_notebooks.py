"""The notebooks of the documentation run, give what is stored in them, and store nothing of a machine."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.docs.test_docs import LINK, anchors, tool

FOLDER = Path(__file__).parents[2] / "docs" / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
OF_A_MACHINE = re.compile(
    r"(?:/home|/root|/tmp|/Users|/usr|C:\\\\)|site-packages|iopub|0x[0-9a-f]{6,}|\d+(?:\.\d+)? ?ms\b"
)


def names(path):
    return path.stem


def test_there_are_four():
    assert len(NOTEBOOKS) == 4


@pytest.mark.parametrize("path", NOTEBOOKS, ids=names)
def test_a_notebook_is_stored_with_outputs_and_without_what_is_of_a_machine(path):
    nbformat = pytest.importorskip("nbformat")
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in code] == list(range(1, len(code) + 1))
    assert sum(bool(cell.outputs) for cell in code) >= 0.7 * len(code)
    kinds = {output.output_type for cell in code for output in cell.outputs}
    assert kinds <= {"stream", "execute_result", "display_data"}
    assert all(output.get("name") != "stderr" for cell in code for output in cell.outputs)
    for cell in notebook.cells:
        for output in cell.get("outputs", ()):
            output.get("data", {}).pop("image/png", None)
    assert OF_A_MACHINE.findall(json.dumps(notebook)) == []


@pytest.mark.parametrize("path", NOTEBOOKS, ids=names)
def test_links_of_a_notebook_lead_somewhere(path):
    cells = json.loads(path.read_text("utf-8"))["cells"]
    text = "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")
    for target, anchor in LINK.findall(text):
        file = path.parent / target
        assert file.exists(), f"{path.name} links to {target}, which is not there"
        assert not anchor or anchor in anchors(file)


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=names)
def test_a_notebook_runs_and_gives_what_is_stored(path):
    nbformat = pytest.importorskip("nbformat")
    pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    notebooks = tool("notebooks")
    stored = notebooks.outputs(nbformat.read(path, as_version=4))
    assert notebooks.outputs(notebooks.run(path)) == stored, f"run python docs/tools/notebooks.py {path.stem}"
