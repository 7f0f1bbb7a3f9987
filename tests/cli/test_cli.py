"""The command line: what it prints, how it fails, and that it starts at once."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time

import pytest
from typer.testing import CliRunner

import lols
from lols.cli import app, main
from lols.training import algorithms
from tests.cli.command_line import error_line


def run(*arguments: str):
    return CliRunner().invoke(app, arguments, env={"LOLS_ANNOUNCE": "0"})


def python(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)


def call_main(monkeypatch, *arguments: str) -> int:
    """The exit code of the installed command."""
    monkeypatch.setattr(sys, "argv", ["lols", *arguments])
    with pytest.raises(SystemExit) as left:
        main()
    return int(left.value.code or 0)


def test_version_is_the_packages():
    assert run("--version").stdout == f"lols {lols.__version__}\n"


def test_explain_prints_what_the_library_says():
    printed = run("explain", "lols", "--beta", "auto", "--roll-in", "reference", "--mix", "rollout").stdout
    assert printed == lols.explain("lols", beta="auto", roll_in="reference", mix="rollout") + "\n"


def test_explain_with_options_only_is_about_lols():
    assert run("explain", "--returned", "last", "--ties", "random").stdout.startswith("lols (Chang et al. 2015")


def test_explain_without_anything_lists_all_presets():
    printed = run("explain").stdout
    for name, preset in algorithms.PRESETS.items():
        assert f"\n{name} " in printed
        assert preset.cites in printed


def test_help_of_explain_names_every_choice():
    printed = " ".join(run("explain", "--help").stdout.replace("│", " ").split())
    for choices in (algorithms.PRESETS, algorithms.ROLL_INS, algorithms.ROLL_OUTS, algorithms.MIXES):
        assert all(choice in printed for choice in choices)


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["nothing"], "lols: unknown algorithm 'nothing': choose one of "),
        (["aggrevate", "--beta", "0.2"], "lols: beta has no effect: "),
        (["--mix", "often"], "lols: mix is 'often': choose one of "),
        (["--beta", "much"], "lols: cannot read beta 'much': "),
        (["--returned", ""], "lols: returned is '': choose one of "),
    ],
)
def test_a_mistake_is_one_line_on_stderr_and_exit_code_2(monkeypatch, capsys, arguments, line):
    assert call_main(monkeypatch, "explain", *arguments) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith(line)
    assert printed.err.count("\n") == 1


def test_unknown_commands_and_options_exit_with_2(monkeypatch):
    assert call_main(monkeypatch, "nothing") == 2
    assert call_main(monkeypatch, "explain", "--nothing") == 2


@pytest.mark.parametrize(
    ("typed", "found"),
    [("lols tr", ["train"]), ("lols train tagger --pa", ["--passes", "--patience"]), ("lols new", ["new-task"])],
)
def test_shells_complete_commands_and_options(typed, found):
    asked = {"_LOLS_COMPLETE": "complete_bash", "COMP_WORDS": typed, "COMP_CWORD": str(typed.count(" "))}
    done = subprocess.run([sys.executable, "-c", COMPLETE], env=os.environ | asked, capture_output=True, text=True)
    assert done.stdout.split() == found, done.stderr


COMPLETE = "import sys; sys.argv = ['lols']; from lols.cli import main; main()"


@pytest.mark.slow
def test_warmup_compiles_once():
    first, second = run("warmup", "--json"), run("warmup", "--json")
    assert first.exit_code == second.exit_code == 0
    made, again = json.loads(first.stdout), json.loads(second.stdout)
    assert made["seconds_total"] >= made["seconds_compiling"]
    assert [step["name"] for step in made["steps"]] == [step["name"] for step in again["steps"]]
    assert again["cached"] is True
    assert again["seconds_compiling"] == 0.0
    assert "Everything was cached already" in run("warmup").stdout


def test_importing_lols_is_quick():
    def best_seconds(code: str) -> float:
        seconds = []
        for _ in range(3):
            began = time.perf_counter()
            assert python(code).returncode == 0
            seconds.append(time.perf_counter() - began)
        return min(seconds)

    assert best_seconds("import lols") - best_seconds("pass") < 0.3


HELP = """
import sys
from lols.cli import main
sys.argv = ["lols", "--help"]
try:
    main()
except SystemExit:
    pass
"""


@pytest.mark.parametrize("code", ["import lols", "import lols; lols.explain(); lols.SearchSpace; lols.checks", HELP])
def test_numba_is_not_imported_before_it_is_needed(code):
    finished = python(f"{code}\nimport sys; assert 'numba' not in sys.modules")
    assert finished.returncode == 0, finished.stderr
    assert ("warmup" in finished.stdout) == (code == HELP)


@pytest.mark.parametrize(
    ("typed", "says"),
    [
        ("train tager x", "'lols train tager': did you mean tagger?"),
        ("predct x", "'lols predct': did you mean predict?"),
        ("bandit simulat layout", "'lols bandit simulat': did you mean simulate?"),
        ("train xyz", "'lols train xyz': choose tagger, parser, pipeline, classifier"),
    ],
)
def test_a_command_that_is_not_there(typed, says, monkeypatch, capsys):
    assert error_line(monkeypatch, capsys, *typed.split()) == f"lols: there is no command {says}\n"
