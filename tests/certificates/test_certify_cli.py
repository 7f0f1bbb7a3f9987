"""`lols certify` and `lols.certify` for taggers, parsers and classifiers: the numbers are those of `evaluate`."""

from __future__ import annotations

import csv
import json
from itertools import pairwise

import numpy as np
import pytest

import lols
from lols.certificates.certificate import beside_reference
from lols.contract.choosing import drawn
from lols.plots.certificates import regret_figure
from lols.tasks.parsing.case import parser_examples
from tests.cli.command_line import error_line, run
from tests.tasks.tagging.tagger_data import conllu, sentences, spans

WORDS, TAGS = sentences(60, noise=0.1)
SEEN, SEEN_TAGS = sentences(20, seed=1)
KEYS = {
    "loss",
    "teacher_loss",
    "regret_to_teacher",
    "deviation_regret_hindsight",
    "deviation_regret_in_class",
    "by_step",
    "by_decision",
    "verdict",
    "advice",
}


def trees(count, seed=0):
    """Sentences of a subject with or without an article and a verb, some of which have an object."""
    rng = np.random.default_rng(seed)
    words, made = [], []
    for _ in range(count):
        sentence, tree = [], []
        if rng.random() < 0.6:
            sentence, tree = ["the"], [(2, "det")]
        verb = len(sentence) + 2
        sentence += [str(rng.choice(["dog", "cat"])), str(rng.choice(["sees", "barks"]))]
        tree += [(verb, "nsubj"), (0, "root")]
        if sentence[-1] == "sees":
            sentence.append(str(rng.choice(["dog", "now"])))
            tree.append((verb, "obj" if sentence[-1] == "dog" and rng.random() < 0.9 else "advmod"))
        words.append(sentence)
        made.append(tree)
    return words, made


def treebank(words, made):
    lines = []
    for sentence, tree in zip(words, made, strict=True):
        lines += [
            f"{k}\t{w}\t_\tX\t_\t_\t{h}\t{r}\t_\t_" for k, (w, (h, r)) in enumerate(zip(sentence, tree, strict=True), 1)
        ]
        lines.append("")
    return "\n".join(lines) + "\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with a model of each kind, and labelled files."""
    made = tmp_path_factory.mktemp("certify")
    (made / "tags.conllu").write_text(conllu(WORDS, TAGS))
    lols.Tagger(passes=2).fit(SEEN, SEEN_TAGS).save(made / "tagger.lols")
    (made / "trees.conllu").write_text(treebank(*trees(40, seed=1)))
    lols.Parser(passes=2).fit(*trees(30)).save(made / "parser.lols")
    rng = np.random.default_rng(0)
    rows = [[int(a), str(c)] for a, c in zip(rng.integers(0, 80, 90), rng.choice(["red", "blue"], 90), strict=True)]
    labels = ["no" if a < 40 else "yes" if c == "red" else "ask" for a, c in rows]
    with open(made / "rows.csv", "w") as file:
        csv.writer(file).writerows([["age", "colour", "label"], *([*r, w] for r, w in zip(rows, labels, strict=True))])
    classifier = lols.CostSensitiveClassifier(
        passes=1, tree="order", numeric="bins", cost_matrix=[[0, 1, 2], [1, 0, 1], [4, 1, 0]]
    )
    classifier.fit_files(str(made / "rows.csv")).save(made / "classifier.lols")
    return made


def certificate(folder, kind, *options):
    file = {"tagger": "tags.conllu", "parser": "trees.conllu", "classifier": "rows.csv"}[kind]
    made = run("certify", folder / f"{kind}.lols", folder / file, "--json", *options)
    assert made.exit_code == 0, made.output
    found = json.loads(made.output)
    assert set(found) >= KEYS
    return found


def test_a_tagger_loses_what_evaluate_says(folder):
    made = certificate(folder, "tagger")
    scores = lols.load(folder / "tagger.lols").evaluate(WORDS, TAGS)
    assert made["loss"]["value"] == pytest.approx((1 - scores.accuracy) * sum(map(len, WORDS)) / 60)
    assert made["teacher_loss"]["value"] == 0.0
    assert (made["examples"], made["examples_given"], made["decisions"]) == (60, 60, sum(map(len, WORDS)))
    assert {row["taken"] for row in made["by_decision"]} <= {"ADJ", "DET", "NOUN", "VERB"}
    assert made["reference"] == "optimal"
    bad = certificate(folder, "tagger", "--reference", "bad")
    assert bad["teacher_loss"]["value"] == pytest.approx(np.mean([sum(t != "ADJ" for t in own) for own in TAGS]))
    assert bad["loss"] == made["loss"]
    whose = (
        "The model was taught by the optimal teacher. Teacher's loss, regret to the teacher, Theorem 3 and advice are"
    )
    assert made["notes"] == [] and bad["notes"] == [f"{whose} for the bad teacher, as if that had taught it."]
    shown = run("certify", folder / "tagger.lols", folder / "tags.conllu", "--reference", "bad").output
    assert whose in " ".join(shown.split())


def test_a_model_whose_training_is_not_known_is_certified_with_a_note(folder):
    made = lols.load(folder / "tagger.lols")
    made.model_.about["learner"]["rate"] = -1.0
    (note,) = lols.certify(made, (WORDS, TAGS), limit=12).notes
    assert note.startswith("What the model records of its training cannot be used (ConfigurationError: ")
    assert note.endswith("are as if it had been trained by lols with the default learner.")


def test_a_parser_loses_heads_and_relations(folder):
    made = certificate(folder, "parser", "--limit", 30)
    words, gold = trees(40, seed=1)
    chosen = drawn(40, 30, 0)
    scores = lols.load(folder / "parser.lols").evaluate([words[k] for k in chosen], [gold[k] for k in chosen])
    assert (made["examples"], made["examples_given"]) == (30, 40)
    wrong = (1 - scores.las) * scores.words / 30
    assert wrong * 0.5 <= made["loss"]["value"] <= wrong + 1e-9
    assert all(row["better"].split()[0] in ("Shift", "Left", "Right") for row in made["by_decision"])


def test_a_classifier_pays_what_evaluate_says(folder):
    made = certificate(folder, "classifier")
    found = json.loads(run("evaluate", folder / "classifier.lols", folder / "rows.csv", "--json").output)
    assert made["loss"]["value"] == pytest.approx(found["cost"])
    assert [row["step"] for row in made["by_step"]] == ["1", "2"]
    pairs = {(row["taken"], row["better"]) for row in made["by_decision"]}
    assert pairs <= {(a, b) for a in _children() for b in _children()}
    assert sum(row["share"] for row in made["by_decision"]) == pytest.approx(1.0)
    few = certificate(folder, "classifier", "--limit", 20)
    assert (few["examples"], few["examples_given"]) == (20, 90)


def _children():
    return {"ask | no", "ask", "no | yes", "no", "yes"}


def test_from_python_an_estimator_is_certified_on_inputs_and_truths(folder):
    tagger = lols.load(folder / "tagger.lols")
    made = lols.certify(tagger, (WORDS, TAGS), threads=2).as_dict()
    told = certificate(folder, "tagger")
    assert {k: told[k] for k in made} == made
    parser = lols.load(folder / "parser.lols")
    made = lols.certify(parser, trees(40, seed=1)).as_dict()
    told = certificate(folder, "parser")
    assert {k: told[k] for k in made} == made
    X, y = [[1.0 * k] for k in range(40)], ["low" if k < 20 else "high" for k in range(40)]
    classifier = lols.CostSensitiveClassifier(passes=8).fit(X, y)
    assert lols.certify(classifier, (X, y), "bad").teacher_loss.value == 0.5


def test_spans_are_certified_too():
    words, chunks = spans(30)
    made = lols.certify(lols.Tagger(passes=2).fit(words[:10], chunks[:10]), (words, chunks))
    assert made.notes == ("Steps are counted from the last word to the first, as the tagger goes.",)


def test_trees_are_judged_as_they_are_taught(folder):
    parser = lols.load(folder / "parser.lols")
    words = [["dog", "sees", "the", "cat"], ["dog", "barks", "cat", "barks"]]
    gold = [[(2, "nsubj"), (0, "root"), (1, "odd"), (2, "obj")], [(2, "nsubj"), (0, "root"), (4, "nsubj"), (0, "root")]]
    from lols.tasks.parsing.input import checked_trees

    examples, notes = parser_examples(parser, parser._corpus(words), *checked_trees(words, gold))
    assert len(examples) == 2
    assert [note.split(":")[0] for note in notes] == [
        "Sentences with several roots",
        "Words lifted to make trees projective",
        "Never seen in training, and so always wrong",
    ]
    assert "dep, odd" in notes[2]


def test_what_is_shown_names_numbers_places_and_the_advice(folder):
    made = run("certify", folder / "tagger.lols", folder / "tags.conllu", "--limit", 40, "--plot", folder / "a.svg")
    assert made.exit_code == 0, made.output
    lines = made.output.splitlines()
    assert lines[0].startswith("40 sentences, drawn from 60 by the seed, ")
    order = ["loss ", "teacher's loss", "regret to the teacher", "to deviations, hindsight", "to deviations, in class"]
    at = [next(k for k, line in enumerate(lines) if line.startswith(name)) for name in order]
    assert all(a < b for a, b in pairwise(at))
    assert "Theorem 3, left side" in made.output
    assert "where in the trajectory" in made.output
    assert "on which decisions:" in made.output
    assert lines[-1].endswith("a.svg written")
    assert (folder / "a.svg").read_text().startswith("<?xml")


def test_mistakes_are_one_line(folder, tmp_path, monkeypatch, capsys):
    def wrong(*arguments):
        return error_line(monkeypatch, capsys, "certify", *arguments)

    tagger, tags = folder / "tagger.lols", folder / "tags.conllu"
    assert "--limit is -1: give 0 or more" in wrong(tagger, tags, "--limit", -1)
    assert "limit is 5: a certificate needs at least 12 examples" in wrong(tagger, tags, "--limit", 5)
    assert "unknown reference 'best'" in wrong(tagger, tags, "--reference", "best")
    assert "a drawing is .png, .svg or .pdf" in wrong(tagger, tags, "--plot", "a.txt")
    assert "--label has no effect: the model is a tagger; it takes --column" in wrong(tagger, tags, "--label", "x")
    assert "--column has no effect" in wrong(folder / "classifier.lols", folder / "rows.csv", "--column", "x")
    (tmp_path / "new.conllu").write_text(conllu([["dog"]], [["NEW"]]))
    assert "line 4: label 'NEW' was never seen in training" in wrong(tagger, tmp_path / "new.conllu")
    (tmp_path / "few.conllu").write_text(conllu([["the", "dog"]], [["DET", "NOUN"]]))
    assert "there are 1 examples: a certificate needs at least 12" in wrong(tagger, tmp_path / "few.conllu")
    assert "there is no column 'colour'" in wrong(folder / "classifier.lols", _table(tmp_path))
    words, gold = trees(6)
    tagged = [[{"word": w, "upos": w[0].upper()} for w in sentence] for sentence in words]
    lols.Pipeline(folds=2, progress=False).fit(tagged, gold).save(tmp_path / "pipeline.lols")
    assert "is a pipeline: certify one policy at a time" in wrong(tmp_path / "pipeline.lols", folder / "trees.conllu")
    with pytest.raises(lols.LolsError, match="never seen in training"):
        lols.certify(lols.load(tagger), ([["dog"]], [["NEW"]]))
    with pytest.raises(lols.LolsError, match="certified on a pair"):
        lols.certify(lols.load(tagger), WORDS)
    with pytest.raises(lols.LolsError, match="name one of its teachers"):
        lols.certify(lols.load(tagger), (WORDS, TAGS), names=["a"])


def _table(folder):
    (folder / "other.csv").write_text("age,label\n3,no\n")
    return folder / "other.csv"


def test_the_regret_to_the_teacher_is_put_into_words(folder):
    worse = run("certify", folder / "tagger.lols", folder / "tags.conllu").output
    assert "worse than its teacher" in worse and "better than its teacher" not in worse
    better = run("certify", folder / "tagger.lols", folder / "tags.conllu", "--reference", "bad").output
    assert "better than its teacher" in better and "worse than its teacher" not in better
    assert beside_reference({"value": 0.0, "low": 0.0, "high": 0.0}) == "exactly as good"
    assert beside_reference({"value": 0.1, "low": 0.0, "high": 0.2}) == "neither is clearly better"


def test_bars_are_drawn_at_the_height_of_their_names(folder):
    figure = regret_figure(certificate(folder, "tagger"))
    for axes in figure.axes:
        names = [tick for tick, label in zip(axes.get_yticks(), axes.get_yticklabels(), strict=True) if label]
        middles = [bar.get_y() + bar.get_height() / 2 for bar in axes.patches]
        assert len(middles) == 2 * len(names) and middles == pytest.approx([*names, *names])
