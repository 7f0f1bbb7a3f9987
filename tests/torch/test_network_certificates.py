"""Certificates of networks: regrets beside plain roll-outs, ready-made estimators, and the command line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lols
from lols.datasets.grammar import write_conllu
from lols.datasets.worlds import tagging_data
from tests.cli.command_line import run
from tests.torch.small_networks import LABELS, SPACE, TEACHERS, WORDS, make_policy, train
from tests.torch.test_neural_estimators import SMALL, TAGGED, TAGS, TREEBANK, TREES
from tests.torch.test_neural_estimators import WORDS as SENTENCES

JUDGED = tagging_data(16, labels=LABELS, words=WORDS, seed=5)
POOR = SMALL | {"passes": 1, "reference": "bad"}  # with few steps, so that there is regret


def test_regrets_are_those_of_plain_roll_outs() -> None:
    model = train(make_policy(steps=2), passes=1)
    made = lols.certify(model, JUDGED, TEACHERS["bad"], resamples=10)
    assert made.loss.value == pytest.approx(model.evaluate(JUDGED))
    assert made.teacher_loss.value == pytest.approx(model.reference_losses(JUDGED, TEACHERS["bad"]).mean())
    regrets = []
    for beta in (0.0, 1.0):
        found = lols.rollout_costs(model, SPACE, JUDGED, TEACHERS["bad"], beta=beta, compiled=False)
        least = np.where(np.isfinite(found.costs), found.costs, np.inf).min(axis=1)
        regrets.append((found.costs[np.arange(len(found)), found.taken] - least).sum() / len(JUDGED))
    assert made.hindsight.value == pytest.approx(regrets[0], abs=1e-5) and regrets[0] > 0.0
    assert made.theorem is not None
    assert made.theorem.right.value == pytest.approx(0.5 * (regrets[0] + regrets[1]), abs=1e-5)
    assert made.theorem.left.value <= made.theorem.right.value
    assert made.fitted == ("onward", "onward") and 0.0 < made.in_class.value <= made.hindsight.value
    assert made.verdict == "more passes would help"


def test_a_certificate_leaves_the_policy_as_it_is_and_is_made_again() -> None:
    model = train(make_policy(steps=2, noisy=True, average=0.9), passes=1)
    before = {name: array.copy() for name, array in model.policy.state().items()}
    one, other = (lols.certify(model, JUDGED, TEACHERS["bad"], resamples=10, threads=n) for n in (1, 2))
    assert one.as_dict() == other.as_dict()
    assert all(np.array_equal(array, model.policy.state()[name]) for name, array in before.items())


@pytest.mark.parametrize(
    ("kind", "rate", "data"),
    [(lols.Tagger, 0.002, (SENTENCES, TAGS)), (lols.Parser, 0.007, (TAGGED[12:], TREES[12:]))],
    ids=["tagger", "parser"],
)
def test_ready_made_estimators_have_certificates(kind: Any, rate: float, data: Any, tmp_path: Path) -> None:
    made = kind(**POOR | {"rate": rate}).fit(*data)
    found = lols.certify(made, data, resamples=10)
    assert found.teacher_loss.value > found.loss.value > 0.0 and found.hindsight.value > 0.0
    assert found.in_class.value > 0.0 and "onward" in found.fitted
    assert (kind is lols.Parser) == any("Losses count heads" in note for note in found.notes)
    made.save(tmp_path / "m.lols")
    again = lols.certify(lols.load(tmp_path / "m.lols"), data, resamples=10)
    assert again.as_dict() == found.as_dict()


def test_labels_that_training_never_saw_are_no_labels_of_the_network() -> None:
    parser = lols.Parser(**POOR | {"rate": 0.005, "reference": "optimal"}).fit(TAGGED[:24], TREES[:24])
    strange = [[(head, {"det": "strange"}.get(relation, relation)) for head, relation in tree] for tree in TREES]
    found = lols.certify(parser, (TAGGED, strange), resamples=5)
    assert found.in_class.value > 0.0 and any("Never seen in training" in note for note in found.notes)


def test_the_command_line(tmp_path: Path) -> None:
    train_file, model = tmp_path / "train.conllu", tmp_path / "p.lols"
    write_conllu(train_file, TREEBANK)
    lols.Parser(**POOR | {"rate": 0.007}).fit(TAGGED[12:], TREES[12:]).save(model)
    certified = run("certify", model, train_file, "--limit", 30, "--json")
    assert certified.exit_code == 0, certified.output
    found = json.loads(certified.stdout)
    assert found["examples"] == 30 and found["deviation_regret_hindsight"]["value"] > 0.0
    assert found["by_decision"][0]["taken"] != found["by_decision"][0]["better"]
    shown = run("certify", model, train_file, "--limit", 30)
    assert shown.exit_code == 0 and found["advice"] in " ".join(shown.output.split())
