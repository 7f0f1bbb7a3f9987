"""Messages repeat what the user gave, but never more of it than anybody reads."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lols.bandit.entries import check_loss
from lols.contract.texts import Labels
from lols.contract.whole_numbers import check_whole
from lols.errors import LONGEST, OF_FILE, LolsError, ModelFileError, short, shown
from lols.io import conll
from lols.tasks.parsing.templates import parse_parsing_templates
from lols.tasks.tables.cells import NoNumber
from lols.tasks.tokens.input import check_options
from tests.cli.calling import run

HUGE = "x" * (1 << 20)


def test_texts_are_cut() -> None:
    assert short("a" * 80) == "a" * 80 and short("a" * 81) == "a" * 77 + "..."
    assert shown("a'b") == repr("a'b") and shown(12) == "12" and len(shown(HUGE)) == 82
    assert len(shown([HUGE])) == 80
    assert shown(10**5000) == "a value of type int"  # Python does not write so many digits
    assert shown(np.zeros((2, 1))) == "array([[0.], [0.]])"


@pytest.mark.parametrize("kind", [LolsError, ModelFileError])
def test_a_message_keeps_its_place_and_its_fix(kind: type[LolsError]) -> None:
    line = str(kind(f"file.csv, line 7: '{HUGE}' is wrong; correct it"))
    assert (
        len(line) <= LONGEST
        and line.startswith("file.csv, line 7: 'xxx")
        and line.endswith("xxx' is wrong; correct it")
    )
    assert str(kind("short")) == "short"


def test_what_a_model_file_holds_is_repeated_in_one_line() -> None:
    assert str(ModelFileError("m.lols: a model of 'par\nser'")) == "m.lols: a model of 'par ser'"
    assert len(str(ModelFileError(f"m.lols: unknown direction '{HUGE[:3000]}'"))) <= OF_FILE


def test_a_huge_cell_is_not_repeated(tmp_path: Path) -> None:
    assert len(str(NoNumber(HUGE, HUGE, "file.csv, line 2"))) < 400
    for name, content, options in (
        ("cell.csv", f"a,y\n1,p\n{HUGE},q\n", ["--numerical", "a"]),
        ("label.csv", f"a,y\n1,p\n2,{HUGE}\n", ["--label-map", "{map}"]),
        ("names.csv", f"{HUGE},{HUGE}1,y\n1,2,p\n3,4,q\n", ["--label", "z"]),
        ("row.csv", f"a,y\n1,p\n{HUGE},q,2\n", []),
    ):
        path, maps = tmp_path / name, tmp_path / "map.csv"
        path.write_text(content)
        maps.write_text("p,p\n")
        given = [maps if option == "{map}" else option for option in options]
        said = run("train", "classifier", path, "-o", tmp_path / "m.lols", *given)
        assert said.code == 2 and str(path) in said.err and len(said.err) < 600, said.err
    with pytest.raises(LolsError) as caught:
        conll.parse(f"{HUGE[:9000]} {HUGE[:9000]}\n".encode(), ["1"], format="tsv")
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize(
    "call",
    [
        lambda: check_loss(HUGE),  # type: ignore[arg-type]
        lambda: check_loss([10**5000]),  # type: ignore[arg-type]
        lambda: check_whole("passes", HUGE),
        lambda: check_options({"clusters": HUGE}),
        lambda: parse_parsing_templates(f"distance({HUGE},N0)", ["word"]),
        lambda: Labels(["a", "b"]).number(HUGE),
        lambda: Labels([HUGE, "b"]).number("c"),
    ],
)
def test_a_huge_value_is_not_repeated(call: Callable[[], Any]) -> None:
    with pytest.raises(ValueError) as caught:
        call()
    assert len(str(caught.value)) < 300 and "Exceeds the limit" not in str(caught.value)
