"""Options of estimators that would have no effect are refused in training, in Python as on the command line."""

from __future__ import annotations

from typing import Any

import pytest

import lols
from lols.errors import ConfigurationError

WORDS, TAGS = [["the", "dog"], ["a", "cat"]] * 4, [["DET", "NOUN"]] * 8
TAGGED = [[{"word": w, "upos": t} for w, t in zip(*both, strict=True)] for both in zip(WORDS, TAGS, strict=True)]
TREES = [[(2, "det"), (0, "root")]] * 8
ROWS, LABELS = [[k, k % 3] for k in range(30)], ["yes" if k > 9 else "no" for k in range(30)]
DATA = {
    "Tagger": (WORDS, TAGS),
    "Parser": (TAGGED, TREES),
    "Pipeline": (TAGGED, TREES),
    "CostSensitiveClassifier": (ROWS, LABELS),
}


@pytest.mark.parametrize(
    ("name", "options", "says"),
    [
        ("Tagger", {"inner_scheme": "bilou"}, "inner_scheme has no effect: these are plain tags"),
        ("Tagger", {"patience": 2}, "patience has no effect: there are no dev data"),
        ("Tagger", {"update": "perceptron", "rate": 0.5}, "rate has no effect: every step of a perceptron"),
        ("Tagger", {"learner": "csoaa", "slack": 0.5}, "slack has no effect: csoaa learns from all states"),
        ("Tagger", {"algorithm": "searn", "slack": 0.5}, "slack has no effect: searn learns from all states"),
        ("Parser", {"patience": 2}, "patience has no effect: there are no dev data"),
        ("Pipeline", {"tagger": lols.Tagger(patience=2)}, "patience has no effect: there are no dev data"),
        (
            "Pipeline",
            {"tagger": lols.Tagger(seed=2)},
            "seed of the tagger has no effect: the pipeline's seed is for all",
        ),
        ("CostSensitiveClassifier", {"patience": 2}, "patience has no effect: there are no dev data"),
        ("CostSensitiveClassifier", {"skill": 0.9}, "skill has no effect: it is that of the suboptimal reference"),
        (
            "CostSensitiveClassifier",
            {"learner": "csoaa", "margin": "cost"},
            "margin has no effect: csoaa has no margin",
        ),
        ("CostSensitiveClassifier", {"numeric": "scaled", "bins": 4}, "bins has no effect: numbers are scaled"),
    ],
)
def test_what_has_no_effect_is_refused(name: str, options: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        getattr(lols, name)(**options).fit(*DATA[name])
    assert says in str(caught.value) and "\n" not in str(caught.value)


def test_what_has_an_effect_is_not() -> None:
    lols.CostSensitiveClassifier(shuffle=False, passes=1).fit(ROWS, LABELS)
    lols.CostSensitiveClassifier(reference="suboptimal", skill=0.9, numeric="both", bins=4, passes=1).fit(ROWS, LABELS)
    lols.Pipeline(folds=2, tagger=lols.Tagger(patience=1), parser=lols.Parser(patience=1)).fit(
        TAGGED, TREES, dev=(TAGGED, TREES)
    )
