"""Every option of the commands on models changes something, or is refused with a reason, whatever the model is."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import typer

from lols.cli import app
from lols.cli.verb import parameter_name
from lols.errors import LolsError
from lols.tasks.registry import ESTIMATORS
from tests.cli.command_line import run
from tests.cli.option_files import write_files

VERBS = {
    "predict": True,
    "evaluate": True,
    "calibrate": True,
    "explain": True,
    "certify": True,
    "inspect": False,
}  # whether it reads a file
# Another value for each option, and the options that must come with it.
CHANGED: dict[str, Any] = {
    "beam": "8",
    "labels_only": "--labels-only",
    "confidence": "--confidence",
    "word": "lemma",
    "column": "xpos",
    "use": "pos=xpos",
    "format": "columns",
    "header": "--header",
    "head": "9",
    "relation": "upos",
    "label": "colour",
    "separator": ";",
    "cost_columns": "cost",
    "unseen": ("wrong", "--column", "misc:Alt"),
    "punctuation": "--no-punctuation",
    "plot": "PLOT",
    "top": "1",
    "sentence": "2",
    "row": "2",
    "reference": "suboptimal",
    "html": "PAGE",
    "roll_out": "reference",
    "beta": ("0.9", "--roll-out", "mixture"),
    "against": "--against",
    "part": "upos",
    "node": "1",
    "limit": "13",
    "seed": ("5", "--limit", "12"),
    "roll_in": "reference",
    "mix": "rollout",
    "ties": "random",
    "returned": "last",
}
POOR = {"tagger": "suffix1\n", "parser": "S0.length\n"}  # templates
NOT_MINE = {"header": "--no-header"}  # of a classifier, whose table has names
# What is printed and where, threads and engines, which do not change the result, have tests of their own.
OTHERS = ("--json", "--all", "--output", "--threads", "--engine", "--workers", "--address")
GROUP: Any = typer.main.get_command(app)
OPTIONS = [
    (verb, name, option.opts[0])
    for verb in VERBS
    for name in ESTIMATORS
    for option in GROUP.get_command(None, verb).params
    if option.param_type_name == "option" and option.opts[0] not in OTHERS
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = write_files(tmp_path_factory.mktemp("verbs"))
    for name in reversed(ESTIMATORS):  # beside test_train_options, which compiles them in the other order
        data = made / ("data.csv" if name == "classifier" else "data.conllu")
        options = ["--algorithm", "lols", "--passes", 2]
        if name == "classifier":  # more than one decision
            options += ["--tree", "order", "--numeric", "bins"]
        if name == "pipeline":
            options += ["--folds", 2]
        if name in ("parser", "pipeline"):  # with few features, so that words and beams make a difference
            options += ["--templates", made / "parser-templates"]
        # For certificates a model that errs, since its teacher does, and since it sees little.
        poor = ["--reference", "bad", "--roll-out", "reference"]
        if name in POOR:
            (made / f"{name}.poor").write_text(POOR[name])
            poor += ["--templates", made / f"{name}.poor"]
        for ending, more in ("lols", ["--dev", data]), ("certify", poor):
            trained = run("train", name, data, "-o", made / f"{name}.{ending}", "--json", *options, *more)
            assert trained.exit_code == 0, trained.output
    return made


def answer(folder: Path, verb: str, name: str, *options: str) -> Any:
    """What a command prints and writes, without times; or the error."""
    data = folder / ("data.csv" if name == "classifier" else "data.conllu")
    out, plot, page = folder / "out", folder / "plot.svg", folder / "page.html"
    for path in (out, plot, page):
        path.unlink(missing_ok=True)
    typed = [str(plot) if each == "PLOT" else str(page) if each == "PAGE" else each for each in options]
    model = folder / f"{name}.{'certify' if verb == 'certify' else 'lols'}"
    made = run(
        verb, model, *([data] if VERBS[verb] else []), *(["-o", out] if verb in ("predict", "calibrate") else []),
        "--json", *typed,
    )  # fmt: skip
    if made.exit_code != 0:
        assert isinstance(made.exception, LolsError), (made.exception, made.output)
        return str(made.exception)
    values = {key: value for key, value in json.loads(made.stdout).items() if "second" not in key}
    return values, *(path.read_bytes() if path.exists() else None for path in (out, page)), plot.exists()


@pytest.fixture(scope="module")
def answers() -> dict[tuple[str, ...], Any]:
    """What was answered without the option."""
    return {}


@pytest.mark.parametrize(("verb", "name", "flag"), OPTIONS)
def test_every_option_has_an_effect_or_is_refused(
    folder: Path, answers: dict[tuple[str, ...], Any], verb: str, name: str, flag: str
) -> None:
    option = parameter_name(flag)
    value, *more = [CHANGED[option]] if isinstance(CHANGED[option], str) else CHANGED[option]
    value = NOT_MINE.get(option, value) if name == "classifier" else value
    typed = [value] if value.startswith("--") else [flag, value]
    if (verb, name, *more) not in answers:
        answers[verb, name, *more] = answer(folder, verb, name, *more)
    without, changed = answers[verb, name, *more], answer(folder, verb, name, *typed, *more)
    assert changed != without or isinstance(without, str), f"lols {verb} {' '.join(typed)} changes nothing"
    if isinstance(without, str) and isinstance(changed, str):  # such as a pipeline, whose search cannot be explained
        assert "has no effect" in changed or without == changed
