"""`lols.train`: its signature has every option of the trainer, the algorithm and the training run."""

from __future__ import annotations

import dataclasses
import inspect
import re

import lols


def keywords(function: object) -> dict[str, object]:
    found = inspect.signature(function).parameters.values()  # type: ignore[arg-type]
    return {each.name: each.default for each in found if each.kind is each.KEYWORD_ONLY}


def test_train_takes_what_trainer_algorithm_and_fit_take_and_says_so() -> None:
    choices = {field.name: None for field in dataclasses.fields(lols.Algorithm)}
    wanted = {name: None for name in choices if name not in ("name", "cites")}
    wanted |= keywords(lols.Trainer) | keywords(lols.Trainer.fit)
    assert keywords(lols.train) == wanted | {"held_out": None}
    documented = re.findall(r"^([a-z_, ]+)$", inspect.getdoc(lols.train) or "", re.MULTILINE)
    names = {name for line in documented for name in line.split(", ")}
    assert set(inspect.signature(lols.train).parameters) <= names
