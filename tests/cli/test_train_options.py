"""Every option of `lols train` changes something, or is refused with a reason."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lols.cli.train import train_command
from lols.cli.workers import EngineOptions
from lols.errors import LolsError
from lols.io.model_file import read_tensors
from lols.tasks.options import options_of, types_of
from lols.tasks.registry import ESTIMATORS, estimator
from tests.cli.command_line import run
from tests.cli.option_files import write_files

# For each option another value than the default, and the options that must come with it.
CHANGED: dict[str, Any] = {
    "algorithm": "dagger",
    "roll_in": "reference",
    "roll_out": ("learned", "--algorithm", "lols"),
    "beta": ("0.9", "--algorithm", "lols"),
    "mix": ("rollout", "--algorithm", "lols"),
    "prune": ("1", "--algorithm", "lols", "--roll-out", "learned"),
    "reference": "bad",
    "learner": "csoaa",
    "update": "gd",
    "rate": "0.9",
    "passes": "1",
    "batch_size": "7",
    "shuffle": "--no-shuffle",
    "seed": "7",
    "threads": "7",  # more than are chosen by default
    "dev": "DATA",
    "calibrate": "--calibrate",
    "patience": ("1", "--dev", "DATA", "--passes", "9"),
    "templates": "TEMPLATES",
    "more_templates": "TEMPLATE",
    "clusters": "CLUSTERS",
    "scheme": "bio",
    "inner_scheme": ("bilou", "--column", "misc:NER"),
    "direction": "backward",
    "loss": ("f1", "--column", "misc:NER"),
    "labelling": "none",
    "roots": "many",
    "punctuation": "--no-punctuation",
    "word": "lemma",
    "label": "xpos",
    "use": "xpos",
    "head": "4",
    "relation": "upos",
    "format": "columns",
    "header": "--header",  # which CoNLL-U files do not have
    "tags": "upos",
    "folds": "2",
    "tree": "flat",
    "cost_matrix": "COSTS",
    "label_map": "MAP",
    "categorical": "number",
    "numerical": "colour",
    "ignore": "colour",
    "numeric": "scaled",
    "bins": "2",
    "interactions": "age*colour",
    "missing": "red",
    "skill": ("0.9", "--reference", "suboptimal"),
    "margin": ("unit", "--cost-matrix", "COSTS"),
    "separator": ";",
    "memory": "1kB",
    "class_weight": "yes=9",
    "weight": "number",
    "cost_columns": "num",
    "text": "colour",
    "policy": "other",  # networks are trained in tests/torch
    "device": "cpu",
    "precision": "bfloat16",
    "width": "8",
    "layers": "1",
    "vectors": "CLUSTERS",
    "encoder": "nowhere",
    "dropout": "0.2",
    "steps": "2",
    "keep_state": "--keep-state",
    "engine": "other",  # those that there are do not change the result: tests/engines
    "workers": "2",
    "address": "auto",
    "sync": "pass",
    "shards": "2",
    "legs": "2",
}
# One decision would need no roll-outs, settings that are left open are chosen by trials, and five folds take long.
SETTLED = {"classifier": ("--tree", "order", "--numeric", "bins", "--passes", "3"), "pipeline": ("--folds", "3")}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_files(tmp_path_factory.mktemp("options"))


def trained(folder: Path, name: str, *options: str) -> tuple[Any, Any]:
    """What training prints and writes, without times and without the options themselves; or the error."""
    data, model = folder / ("data.csv" if name == "classifier" else "data.conllu"), folder / f"{name}.lols"
    replaced = {
        "DATA": str(data),
        "TEMPLATES": str(folder / ("templates" if name == "tagger" else "parser-templates")),
        "TEMPLATE": "word[-2] & word" if name == "tagger" else "S0.word & N1.word",
        "CLUSTERS": str(folder / "clusters"),
        "COSTS": str(folder / "costs.csv"),
        "MAP": str(folder / "map.csv"),
    }
    given = (replaced.get(each, each) for each in options)
    made = run("train", name, data, "-o", model, "--json", *SETTLED.get(name, ()), *given)
    if made.exit_code != 0:
        assert isinstance(made.exception, LolsError), made.exception
        return "refused", str(made.exception)
    facts = {key: value for key, value in json.loads(made.stdout).items() if "second" not in key}
    header, tensors = read_tensors(model, "model")
    task = {key: value for key, value in header["task"].items() if key not in ("options", "files", "parts")}
    fitted = [each.get("calibration") for each in (header, *header.get("parts", {}).values())]
    return facts, (task, fitted, {key: array.tobytes() for key, array in tensors.items()})


def parts_of(name: str) -> list[type]:
    """The dataclasses whose fields are the options of `lols train NAME`."""
    kind = estimator(name)
    return [kind.VERBS.files, kind, *kind.PARTS, *([kind.TRAINING] if kind.TRAINING else []), EngineOptions]


FLAGS = {
    (name, option.name): option.opts[0]
    for name in ESTIMATORS
    for option in train_command(name).params
    if option.param_type_name == "option"
}
# Where the model goes, how what happened is printed, and going on (test_train_from.py), have tests of their own.
OTHERS = ("output", "as_json", "help_all", "resume", "old", "replay")  # have tests of their own
OPTIONS = [(name, option) for name, option in FLAGS if option not in OTHERS]


def test_every_option_has_a_type_that_can_be_read_from_a_word() -> None:
    for name in ESTIMATORS:
        kinds = {o: f.kind or types_of(p)[o] for p in parts_of(name) for o, _, f in options_of(p) if f.cli}
        assert Any not in kinds.values(), (name, kinds)  # which only some versions of typer read as text


@pytest.fixture(scope="module")
def without() -> dict[tuple[str, ...], Any]:
    """What came out without the option."""
    return {}


@pytest.mark.parametrize(("name", "option"), OPTIONS)
def test_every_option_has_an_effect_or_is_refused(
    folder: Path, without: dict[tuple[str, ...], Any], name: str, option: str
) -> None:
    value, *more = [CHANGED[option]] if isinstance(CHANGED[option], str) else CHANGED[option]
    flag = FLAGS[name, option]
    if (name, *more) not in without:
        without[name, *more] = trained(folder, name, *more)
    assert without[name, *more][0] != "refused"
    value = "--no-header" if (name, option) == ("classifier", "header") else value
    changed = trained(folder, name, *([value] if value.startswith("--") else [flag, value]), *more)
    assert changed != without[name, *more], f"{flag} changes nothing"
