"""`--engine` and what goes with it, on the command line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import lols
from lols.cli.workers import engine_of
from tests.cli.command_line import run
from tests.cli.option_files import write_files


@pytest.mark.parametrize(
    ("typed", "line"),
    [
        ({"workers": 3}, "--workers has no effect without --engine"),
        ({"engine": "processes", "address": "auto"}, "--address has no effect with --engine processes"),
        ({"engine": "this", "workers": 2}, "--workers has no effect with --engine this"),
        ({"engine": "spark"}, "unknown engine 'spark'"),
    ],
)
def test_contradictions_are_refused(typed: dict[str, Any], line: str) -> None:
    with pytest.raises(lols.LolsError, match=line):
        engine_of(typed)


def test_a_tagger_is_the_same_with_processes(tmp_path: Path) -> None:
    folder = write_files(tmp_path)
    data, models = folder / "data.conllu", [folder / "one.lols", folder / "two.lols", folder / "three.lols"]
    options = ((), ("--engine", "processes", "--workers", "2"), ("--engine", "this", "--sync", "pass", "--shards", "2"))
    for model, typed in zip(models, options, strict=True):
        assert run("train", "tagger", data, "-o", model, "--passes", "2", *typed).exit_code == 0
    one, two, three = (model.read_bytes() for model in models)
    assert one == two != three
