"""The command line, called as a test calls it."""

from __future__ import annotations

import sys

import pytest
from typer.testing import CliRunner

from lols.cli import app, main


def run(*arguments):
    return CliRunner().invoke(app, list(map(str, arguments)), env={"LOLS_ANNOUNCE": "0", "COLUMNS": "100"})


def error_line(monkeypatch, capsys, *arguments) -> str:
    """The one line that a mistake gives."""
    monkeypatch.setattr(sys, "argv", ["lols", *map(str, arguments)])
    with pytest.raises(SystemExit) as left:
        main()
    printed = capsys.readouterr()
    assert left.value.code == 2
    assert printed.out == ""
    assert printed.err.count("\n") == 1
    return printed.err
