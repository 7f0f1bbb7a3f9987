"""`lols new-task`: what it writes runs as it is, passes its own tests, and nothing is written over unasked."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from lols.cli import app
from lols.cli.new_task import class_name
from lols.errors import ConfigurationError


def new_task(*arguments: str) -> str:
    done = CliRunner().invoke(app, ["new-task", *arguments], catch_exceptions=False)
    assert done.exit_code == 0
    return done.output


@pytest.mark.slow
def test_what_is_written_runs_and_its_tests_pass(tmp_path: Path) -> None:
    said = new_task("spelling", "--folder", str(tmp_path / "mine"))
    assert "class SpellingTask" in said and f"pytest {tmp_path / 'mine' / 'test_spelling.py'}" in said
    folder = tmp_path / "mine"
    run = subprocess.run([sys.executable, "spelling.py", "--plain"], cwd=folder, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    rows = {line[:28].strip(): line[28:] for line in run.stdout.splitlines()[1:4]}
    teacher, cloned, learned = (float(rows[k]) for k in ("teacher", "learned, reference rolls", "learned, LOLS"))
    assert learned < cloned < teacher and learned < 0.5 * teacher
    assert (folder / "spelling.lols").is_file()
    checks = [sys.executable, "-m", "pytest", "-q", "test_spelling.py", "-p", "no:cacheprovider", "-k", "not compiled"]
    done = subprocess.run(checks, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0 and "3 passed, 1 deselected" in done.stdout, done.stdout + done.stderr


def test_the_templates_keep_the_projects_style(tmp_path: Path) -> None:
    new_task("word_order", "--folder", str(tmp_path))
    ruff = Path(sys.executable).with_name("ruff")
    if not ruff.exists():
        pytest.skip("ruff is not installed")
    settings = ["--config", str(Path(__file__).parents[2] / "pyproject.toml")]
    for command in (["check", "--ignore", "I001"], ["format", "--check"]):
        done = subprocess.run([ruff, *command, *settings, str(tmp_path)], capture_output=True, text=True)
        assert done.returncode == 0, done.stdout


def test_files_are_written_over_only_when_forced(tmp_path: Path) -> None:
    (tmp_path / "spelling.py").write_text("mine")
    with pytest.raises(ConfigurationError, match=r"there already: .*spelling.py; choose another name, or give --force"):
        new_task("spelling", "--folder", str(tmp_path))
    assert (tmp_path / "spelling.py").read_text() == "mine" and not (tmp_path / "test_spelling.py").exists()
    new_task("spelling", "--folder", str(tmp_path), "--force")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["spelling.py", "test_spelling.py"]
    text = (tmp_path / "spelling.py").read_text()
    assert "class SpellingTask(lols.Task)" in text and "NAME" not in text and "TASK" not in text


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("word-order", "'word-order' cannot name a Python file that is imported: 'word_order' would do"),
        ("word_order.py", "cannot name a Python file that is imported: 'word_order' would do"),
        ("3d", "cannot name a Python file that is imported: use letters and _"),
        ("", "cannot name a Python file"),
        ("../x", "cannot name a Python file"),
        ("class", "'class' is a word of Python itself"),
        ("random", "'random' is a module already, which random.py would hide"),
        ("lols", "'lols' is a module already"),
    ],
)
def test_names_that_cannot_be_are_refused(name: str, says: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        class_name(name)
    assert says in str(caught.value)


def test_the_exit_code_of_a_mistake_is_two(tmp_path: Path) -> None:
    command = [sys.executable, "-c", "from lols.cli import main; main()", "new-task", "random"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 2 and done.stderr.startswith("lols: 'random' is a module") and not done.stdout


def test_a_folder_that_cannot_be_made_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigurationError, match="cannot write there"):
        new_task("spelling", "--folder", str(tmp_path / "file" / "below"))
