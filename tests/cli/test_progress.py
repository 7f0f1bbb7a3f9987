"""What long work says while it goes on: a bar on terminals, lines elsewhere, and nothing where it is not wanted."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from lols.training import progress
from lols.training.progress import Progress
from tests.cli.calling import fine, run
from tests.cli.interrupting import interrupted
from tests.cli.option_files import write_files


class Clock:
    """A clock that a test moves."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch):
        self.now = 100.0
        monkeypatch.setattr(progress.time, "perf_counter", lambda: self.now)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_files(tmp_path)


@pytest.fixture
def every_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lines of passes that take no time."""
    monkeypatch.setattr(progress, "SELDOM", 0.0)


def test_a_line_a_pass_says_how_much_time_is_left(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    clock = Clock(monkeypatch)
    with Progress(True, 300, "training", passes=3) as shown:
        clock.now += 20.0
        shown.advance(100, loss=2.0)
        shown.say("dev LAS 71.00")
        shown.end_pass(1, loss=2.0)
        clock.now += 31.0
        shown.advance(150, loss=1.5)  # nothing was said for long
        clock.now += 9.0
        shown.advance(300, loss=1.0)
        shown.end_pass(3, loss=1.0)
    assert capsys.readouterr().err.splitlines() == [
        "lols: training, pass 1 of 3: loss 2, dev LAS 71.00; 20.0 s, about 40.0 s left",
        "lols: training, 50 % done: loss 1.5; 51.0 s, about 51.0 s left",
        "lols: training, pass 3 of 3: loss 1, dev LAS 71.00; 1 min 0 s, done",
    ]


def test_passes_that_follow_each_other_at_once_are_not_all_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    clock = Clock(monkeypatch)
    with Progress(True, 40, "training", passes=40) as shown:
        for number in range(1, 41):
            clock.now += 0.1
            shown.advance(number, loss=1.0)
            shown.end_pass(number, loss=1.0)
    assert 2 <= len(capsys.readouterr().err.splitlines()) <= 4


def test_nothing_is_said_unless_it_is_wanted(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture) -> None:
    clock = Clock(monkeypatch)
    for wanted in (None, False):
        with Progress(wanted, 10, "training") as shown:
            clock.now += 100.0
            shown.advance(5, loss=1.0)
            shown.end_pass(1, loss=1.0)
            shown.tell("something")
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(("name", "file"), [("tagger", "data.conllu"), ("classifier", "data.csv")])
def test_training_from_files_says_each_pass(folder: Path, every_pass: None, name: str, file: str) -> None:
    options = ["--tree", "order"] if name == "classifier" else []
    trained = run("train", name, folder / file, "-o", folder / "m.lols", "--passes", 3, *options)
    said = [line for line in trained.err.splitlines() if "training, pass" in line]
    assert trained.code == 0
    assert [line.split(":")[1].strip() for line in said] == [f"training, pass {k} of 3" for k in (1, 2, 3)]
    as_json = run("train", name, folder / file, "-o", folder / "m.lols", "--passes", 3, "--json", *options)
    assert as_json.err == ""


def test_a_line_comes_when_its_pass_has_ended(folder: Path) -> None:
    """And not at the end of the training, when whoever waits has given up."""
    long = [sys.executable, "-c", "from lols.cli import main; main()", "train", "tagger", str(folder / "data.conllu")]
    with subprocess.Popen(
        [*long, "-o", str(folder / "m.lols"), "--passes", "1000000"],
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
    ) as training:  # fmt: skip
        try:
            lines = (line for line in training.stderr if "pass" in line)
            assert re.search(r"pass \d+ of 1000000: loss .* left", next(lines))
            assert training.poll() is None
        finally:
            training.kill()


def test_resuming_says_from_which_pass(folder: Path, monkeypatch: pytest.MonkeyPatch, every_pass: None) -> None:
    arguments = ["tagger", folder / "data.conllu", "-o", folder / "m.lols", "--passes", 4]
    nothing = run("train", *arguments, "--passes", 1, "--resume")
    assert b"there is no checkpoint" in nothing.out and b"begins anew" in nothing.out
    interrupted(monkeypatch, 2, *arguments)  # a pass is one batch
    resumed = run("train", *arguments, "--resume")
    assert "lols: training goes on in pass 3 of 4" in resumed.err
    assert "pass 2 of 4:" not in resumed.err and "pass 4 of 4:" in resumed.err


def test_going_on_after_the_last_pass_says_so(capsys: pytest.CaptureFixture) -> None:
    Progress(True, 40, "training", passes=4).go_on(40, 4)
    assert capsys.readouterr().err == "lols: training goes on after its last pass\n"


def test_training_ends_with_what_to_type_next(folder: Path) -> None:
    model = folder / "a model.lols"
    trained = fine("train", "tagger", folder / "data.conllu", "-o", model, "--passes", 1)
    last = trained.out.decode().splitlines()[-1]
    assert last.startswith("next: ") and f"lols evaluate '{model}' FILE" in last


def on_terminal(*arguments: str, columns: int = 120) -> str:
    """What a command writes to a terminal."""
    child, terminal = pty.fork()
    if child == 0:
        os.environ["TERM"] = "xterm-256color"
        os.execv(sys.executable, [sys.executable, "-c", "from lols.cli import main; main()", *arguments])
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    written, until = b"", time.monotonic() + 300.0
    try:
        while time.monotonic() < until:
            more = os.read(terminal, 1 << 16)
            if not more:
                break
            written += more
    except OSError:  # the other end is closed
        pass
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    os.close(terminal)
    return written.decode()


def screen(written: str) -> Iterator[str]:
    """The lines that are left on a terminal that knows how to go up, to the line's begin, and to erase a line."""
    lines, row, column = [""], 0, 0
    for part in re.findall(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b.|[\r\n]|[^\x1b\r\n]+", written):
        if part == "\r":
            column = 0
        elif part == "\n":
            row, column = row + 1, 0
            lines += [""] * (row + 1 - len(lines))
        elif re.fullmatch(r"\x1b\[\d*A", part):
            row = max(row - int(part[2:-1] or 1), 0)
        elif part == "\x1b[2K":
            lines[row] = ""
        elif not part.startswith("\x1b"):
            lines[row] = lines[row][:column].ljust(column) + part + lines[row][column + len(part) :]
            column += len(part)
    return (line.rstrip() for line in lines)


@pytest.mark.slow
def test_the_story_is_one_bar_and_then_a_story() -> None:
    written = on_terminal("reproduce", "story", "--quick")
    assert "━" in written, "there is a bar while it works"
    assert "optimistic" not in written and "training" not in written
    lines = [line for line in screen(written) if line]
    assert lines[0] == "A policy overtakes its teacher" and lines[-1].startswith("Done in"), lines
    assert not any("━" in line or line.startswith("lols:") for line in lines)


def test_standard_output_in_a_file_stays_there_beside_a_bar(tmp_path: Path) -> None:
    """Rich would print it above the bar, on the terminal."""
    code = (
        "import sys\nfrom lols.training.progress import Progress\n"
        f"sys.stdout = open({str(tmp_path / 'out')!r}, 'w')\n"
        "with Progress(None, 10, 'training'):\n    print('a result', flush=True)\n"
    )
    child, terminal = pty.fork()
    if child == 0:
        os.execv(sys.executable, [sys.executable, "-c", code])
    try:
        while os.read(terminal, 1 << 16):
            pass
    except OSError:
        pass
    assert os.waitpid(child, 0)[1] == 0
    assert (tmp_path / "out").read_text() == "a result\n"
