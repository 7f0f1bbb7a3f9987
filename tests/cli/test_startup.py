"""What a command imports: counted, since seconds depend on the machine."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import lols
from lols.kernels.store import folder

HEAVY = ("torch", "numba", "sklearn", "scipy", "pandas", "pyarrow", "matplotlib")
SENTENCE = "1\tthe\t_\tDET\t_\t_\t0\t_\t_\t_\n2\tdog\t_\tNOUN\t_\t_\t0\t_\t_\t_\n\n"
SOURCES = Path(lols.__file__).parent

# The command line, and at the end the packages that were imported, on standard error.
RUN = """
import json, sys
from lols.cli import main
try:
    main()
finally:
    print(json.dumps(sorted({name.partition(".")[0] for name in sys.modules})), file=sys.stderr)
"""


def imported_by(*arguments: object) -> set[str]:
    """The packages that a command imports."""
    command = [sys.executable, "-c", RUN, *map(str, arguments)]
    finished = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert finished.returncode == 0, finished.stderr
    return set(json.loads(finished.stderr.splitlines()[-1]))


def test_help_imports_nothing_that_computes() -> None:
    assert not imported_by("--help") & {*HEAVY, "numpy", "llvmlite"}
    assert not imported_by("predict", "--help") & {*HEAVY, "numpy", "llvmlite"}
    assert not imported_by("--version") & {*HEAVY, "numpy", "llvmlite"}


@pytest.mark.skipif(folder() is None, reason="there is no place where kernels can be kept")
@pytest.mark.parametrize("kind", ["tagger", "parser"])
def test_a_second_prediction_needs_no_compiler_and_no_scikit_learn(kind: str, tmp_path: Path) -> None:
    model, file = tmp_path / "model.lols", tmp_path / "one.conllu"
    file.write_text(SENTENCE)
    words, tags, trees = [["the", "dog"]] * 3, [["DET", "NOUN"]] * 3, [[(2, "det"), (0, "root")]] * 3
    if kind == "tagger":
        lols.Tagger(passes=1).fit(words, tags, dev=(words * 100, tags * 100)).save(model)
    else:
        lols.Parser(passes=1).fit(words, trees, dev=(words * 100, trees * 100)).save(model)
    imported_by("predict", model, file, "--confidence")
    assert not imported_by("predict", model, file, "--confidence") & {*HEAVY, "rich"}
    assert not imported_by("predict", model, file) & {*HEAVY, "rich"}


def test_the_package_runs_as_a_module() -> None:
    command = [sys.executable, "-m", "lols", "--version"]
    finished = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert finished.stdout == f"lols {lols.__version__}\n"
