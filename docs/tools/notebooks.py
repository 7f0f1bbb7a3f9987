"""Run the notebooks of the documentation and store their outputs in them.

    python docs/tools/notebooks.py [NAME...]

Needs what `pip install 'lols[test]'` installs. Nothing of the machine is stored: no times, paths or versions.
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[1] / "notebooks"
METADATA = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
METADATA["language_info"] = {"name": "python"}
LONGEST = 2000  # characters of text beside HTML; a longer one says nothing to anybody
ADDRESS = re.compile(r" at 0x[0-9a-f]+")


def run(path: Path) -> Any:
    """A notebook with the outputs of a new run, in an empty folder."""
    import nbformat
    from nbclient import NotebookClient

    notebook = nbformat.read(path, as_version=4)
    with tempfile.TemporaryDirectory() as folder:
        client = NotebookClient(
            notebook, timeout=300, kernel_name="python3", record_timing=False, coalesce_streams=True,
            resources={"metadata": {"path": folder}},
        )  # fmt: skip
        client.execute(env=os.environ | {"LOLS_ANNOUNCE": "0", "PYTHONWARNINGS": "error::FutureWarning"})
    return cleaned(notebook)


def cleaned(notebook: Any) -> Any:
    """The notebook without what differs from machine to machine."""
    notebook.metadata = METADATA
    for number, cell in enumerate(notebook.cells, start=1):
        cell.id, cell.metadata = f"cell-{number:02}", {}
        for output in cell.get("outputs", ()):
            output.get("metadata", {}).clear()
            for kind, text in output.get("data", {}).items():
                if kind.startswith("text/"):
                    output.data[kind] = ADDRESS.sub("", text)
            if "text/html" in output.get("data", {}) and len(output.data["text/plain"]) > LONGEST:
                output.data["text/plain"] = output.data["text/plain"].partition("(")[0] + "(...)"
    return notebook


def outputs(notebook: Any) -> list[Any]:
    """What the cells of a notebook print and show; of pictures, that there is one."""
    found: list[Any] = []
    for cell in notebook.cells:
        for output in cell.get("outputs", ()):
            if output.output_type == "stream":
                found.append((output.name, output.text))
            elif "image/png" in output.data:
                found.append(("picture", len(output.data["image/png"]) > 5000))
            else:
                found.append(("value", dict(output.data)))
    return found


def main(names: list[str]) -> None:
    """Run all notebooks, or those named."""
    import nbformat

    for path in sorted(FOLDER.glob("*.ipynb")):
        if not names or path.stem in names:
            print(path.name, flush=True)
            nbformat.write(run(path), path)


if __name__ == "__main__":
    main(sys.argv[1:])
