"""Confidence of taggers, parsers, pipelines and classifiers, in Python and in files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lols
from lols.errors import ConfigurationError, LolsError
from lols.io import conll
from tests.cli.command_line import run

RNG = np.random.default_rng(0)
NOUNS, VERBS = ["dog", "cat", "fish", "man"], ["barks", "sleeps", "swims"]
TAGS = ["DET", "NOUN", "VERB"]


def sentences(count: int, seed: int) -> tuple[list[list[str]], list[list[str]], list[list[tuple[int, str]]]]:
    """Three words each; a tenth of the tags and of the heads of the first word are drawn."""
    rng = np.random.default_rng(seed)
    words = [["the", str(rng.choice(NOUNS)), str(rng.choice(VERBS))] for _ in range(count)]
    tags = [[tag if rng.random() < 0.9 else str(rng.choice(TAGS)) for tag in TAGS] for _ in range(count)]
    trees = [[(2 if rng.random() < 0.9 else 3, "det"), (3, "nsubj"), (0, "root")] for _ in range(count)]
    return words, tags, trees


GIVEN: Any = {"numeric": "curve", "tree": None, "passes": 10}  # settings of a classifier, so that none is chosen
TRAIN, HELD, TEST = sentences(150, 1), sentences(150, 2), sentences(200, 3)


def tables(count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(count, 3))
    return X, np.where(X[:, 0] + 0.7 * rng.normal(size=count) > 0.3, "yes", np.where(X[:, 1] > 1, "ask", "no"))


def with_tags(words: Any, tags: Any) -> list[list[dict[str, str]]]:
    return [[{"word": w, "upos": t} for w, t in zip(a, b, strict=True)] for a, b in zip(words, tags, strict=True)]


@pytest.fixture(scope="module")
def tagger() -> lols.Tagger:
    return lols.Tagger(passes=2, calibrate=True).fit(*TRAIN[:2])


@pytest.fixture(scope="module")
def parser() -> lols.Parser:
    return lols.Parser(passes=2).fit(TRAIN[0], TRAIN[2], dev=(HELD[0], HELD[2]))


@pytest.fixture(scope="module")
def pipeline() -> lols.Pipeline:
    held = (with_tags(*HELD[:2]), HELD[2])
    return lols.Pipeline(folds=2).fit(with_tags(*TRAIN[:2]), TRAIN[2], dev=held)


@pytest.fixture(scope="module")
def classifier() -> lols.CostSensitiveClassifier:
    return lols.CostSensitiveClassifier(calibrate=True, **GIVEN).fit(*tables(600, 0))


# --- sentences --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("direction", ["forward", "backward"])
def test_the_confidence_of_a_tagger(direction: str) -> None:
    made = lols.Tagger(passes=2, direction=direction).fit(*TRAIN[:2], dev=HELD[:2])
    tags, sure = made.predict(TEST[0], confidence=True)
    assert tags == made.predict(TEST[0]) and [len(s) for s in sure] == [len(t) for t in tags]
    assert [s.tolist() for s in made.predict_confidence(TEST[0])] == [s.tolist() for s in sure]
    scores = made.evaluate(*TEST[:2])
    assert scores.reliability is not None and scores.reliability.error < 0.03
    assert scores.as_dict()["calibration_error"] == scores.reliability.error
    probabilities = made.scores(TEST[0][:1])[0].probabilities
    assert np.allclose(probabilities.max(axis=1)[:: -1 if direction == "backward" else 1], sure[0])


def test_calibration_changes_no_weights() -> None:
    def weights(made: Any) -> dict[str, bytes]:
        return {name: array.tobytes() for name, array in made.contents()[1].items()}

    plain = lols.Tagger(passes=2).fit(*TRAIN[:2])
    assert plain.model_.calibration is None
    assert weights(plain) == weights(lols.Tagger(passes=2, calibrate=True).fit(*TRAIN[:2]))
    chosen = lols.Tagger(passes=2).fit(*TRAIN[:2], dev=HELD[:2])
    never = lols.Tagger(passes=2, calibrate=False).fit(*TRAIN[:2], dev=HELD[:2])
    assert weights(chosen) == weights(never) and never.model_.calibration is None


def test_it_is_fitted_to_what_training_did_not_see(tagger: lols.Tagger) -> None:
    facts = tagger.model_.calibration
    assert facts is not None and facts.source == "held-out data" and facts.decisions == 3 * len(TRAIN[0])
    again = lols.Tagger(passes=2, calibrate=True, threads=2).fit(*TRAIN[:2])
    assert again.model_.calibration.describe() == facts.describe()  # type: ignore[union-attr]


def test_later_data_calibrate_as_well() -> None:
    made = lols.Tagger(passes=2).fit(*TRAIN[:2])
    with pytest.raises(ConfigurationError, match="calibrate_with"):
        made.predict(TEST[0], confidence=True)
    made.calibrate_with(*HELD[:2])
    assert made.evaluate(*TEST[:2]).reliability.error < 0.03  # type: ignore[union-attr]


def test_too_few_examples_to_hold_some_out() -> None:
    with pytest.raises(ConfigurationError, match="calibrate needs dev data"):
        lols.Tagger(calibrate=True).fit([["a", "b"]] * 3, [["X", "Y"]] * 3)


def test_the_confidence_of_a_parser(parser: lols.Parser) -> None:
    trees, sure = parser.predict(TEST[0], confidence=True)
    assert trees == parser.predict(TEST[0])
    scores = parser.evaluate(TEST[0], TEST[2])
    assert scores.reliability is not None and scores.reliability.error < 0.03
    right = np.array([[h == g for (h, _), (g, _) in zip(a, b, strict=True)] for a, b in zip(trees, TEST[2])])
    assert np.concatenate(sure).mean() == pytest.approx(right.mean(), abs=0.03)
    wide = lols.Parser(passes=1, beam=2).fit(TRAIN[0], TRAIN[2], dev=(HELD[0], HELD[2]))
    with pytest.raises(ConfigurationError, match="greedy"):
        wide.predict(TEST[0], confidence=True)


@pytest.mark.parametrize("labelling", ["joint", "second", "none"])
def test_every_head_has_the_step_that_decides_on_it(labelling: str) -> None:
    made = lols.Parser(passes=1, labelling=labelling).fit(TRAIN[0], TRAIN[2])
    corpus = made._corpus(TEST[0][:20])
    run = made.model_.run(made.task_.examples(corpus))
    actions, task = run.all_actions(), made.task_
    found = task.replay(actions, corpus.offsets)[1]
    heads = task.trees(actions, corpus.offsets).heads
    steps = task.steps_of(np.diff(corpus.offsets))
    for k, low in enumerate(corpus.offsets[:-1].tolist()):
        begin, stack, front = int(steps[:k].sum()), [], 0
        for at in range(begin, begin + int(steps[k])):
            kind = task.actions[actions[at]][0]
            if kind == 0:
                stack.append(front)
                front += 1
            elif labelling != "second" or kind != 3:
                assert found[low + stack[-1]] == at
            if kind == 3 or (kind != 0 and labelling != "second"):
                stack.pop()
        for word in stack:
            assert heads[low + word] == -1 and found[low + word] == begin + int(steps[k]) - 1


def test_a_pipeline_is_calibrated_without_dev_data() -> None:
    parts: Any = {"tagger": lols.Tagger(passes=1, calibrate=True), "parser": lols.Parser(passes=1, calibrate=True)}
    made = lols.Pipeline(folds=2, **parts).fit(with_tags(TRAIN[0][:20], TRAIN[1][:20]), TRAIN[2][:20])
    assert set(made.predict(TEST[0][:1], confidence=True)[1][0]) == {"upos", "head"}


def test_the_confidence_of_a_pipeline(pipeline: lols.Pipeline, tmp_path: Path) -> None:
    words, sure = pipeline.predict(TEST[0], confidence=True)
    assert words == pipeline.predict(TEST[0]) and set(sure[0]) == {"upos", "head"}
    scores = pipeline.evaluate(with_tags(*TEST[:2]), TEST[2])
    assert scores.reliability["upos"].error < 0.03 and scores.trees.reliability.error < 0.03  # type: ignore[union-attr]
    pipeline.save(tmp_path / "pipeline.lols")
    loaded = lols.load(tmp_path / "pipeline.lols")
    assert (loaded.predict(TEST[0][:1], confidence=True)[1][0]["head"] == sure[0]["head"]).all()
    plain = lols.Pipeline(folds=1).fit(with_tags(*TRAIN[:2]), TRAIN[2])
    with pytest.raises(ConfigurationError, match="pipeline is not calibrated"):
        plain.predict(TEST[0], confidence=True)


# --- rows -------------------------------------------------------------------------------------------------------------


def test_probabilities_of_classes(classifier: lols.CostSensitiveClassifier) -> None:
    X, y = tables(2000, 1)
    chances = classifier.predict_proba(X)
    assert chances.shape == (2000, 3) and np.allclose(chances.sum(axis=1), 1.0) and (chances >= 0.0).all()
    assert (classifier.classes_[chances.argmax(axis=1)] == classifier.predict(X)).all()
    labels, sure = classifier.predict(X, confidence=True)
    assert (labels == classifier.predict(X)).all() and np.allclose(sure, chances.max(axis=1))
    scores = classifier.evaluate(X, y)
    assert scores.reliability is not None and scores.reliability.error < 0.06


def test_there_are_none_without_calibration() -> None:
    never = lols.CostSensitiveClassifier(calibrate=False, **GIVEN)
    assert not hasattr(never, "predict_proba")  # as other tools ask before it fits
    plain = never.fit(*tables(100, 0))
    assert not hasattr(plain, "predict_proba")
    with pytest.raises(AttributeError, match="calibrate=True"):
        plain.predict_proba(tables(1, 0)[0])
    with pytest.raises(ConfigurationError, match="calibrate=True"):
        plain.predict(tables(1, 0)[0], confidence=True)
    assert hasattr(plain.calibrate_with(*tables(100, 2)), "predict_proba")


def test_probabilities_are_those_of_classes_whatever_mistakes_cost() -> None:
    X, y = tables(3000, 5)
    costs = [[0, 1, 1], [6, 0, 1], [6, 1, 0]]  # ask, no, yes
    made = lols.CostSensitiveClassifier(calibrate=True, cost_matrix=costs, **GIVEN).fit(X[:1500], y[:1500])
    chances = made.predict_proba(X[1500:])
    true = np.array([(y[1500:] == name).mean() for name in made.classes_])
    assert np.allclose(chances.sum(axis=1), 1.0) and np.allclose(chances.mean(axis=0), true, atol=0.04)
    assert made.evaluate(X[1500:], y[1500:]).reliability.error < 0.05  # type: ignore[union-attr]


def test_scikit_learn_takes_them(classifier: lols.CostSensitiveClassifier) -> None:
    from sklearn.metrics import get_scorer

    X, y = tables(500, 1)
    assert get_scorer("neg_log_loss")(classifier, X, y) > -0.8


# --- files ------------------------------------------------------------------------------------------------------------


CONLLU = "# a\n1\tthe\t_\tX\t_\t_\t0\t_\t_\tSpaceAfter=No\n2\tdog\t_\tX\t_\t_\t1\t_\t_\t_\n\n"


def written(model: Any, folder: Path, content: str, *options: str, name: str = "in.conllu") -> str:
    """What `lols predict` writes."""
    model.save(folder / "model.lols")
    (folder / name).write_bytes(content.encode())
    made = run("predict", folder / "model.lols", folder / name, "-o", folder / f"out-{name}", *options)
    if made.exception is not None:
        raise made.exception
    return (folder / f"out-{name}").read_bytes().decode()


def test_conllu_has_it_in_misc(tagger: lols.Tagger, parser: lols.Parser, tmp_path: Path) -> None:
    sure = tagger.predict([["the", "dog"]], confidence=True)[1][0]
    lines = written(tagger, tmp_path, CONLLU, "--confidence").splitlines()
    assert lines[1].endswith(f"\tSpaceAfter=No|UposConfidence={sure[0]:.4f}")
    assert lines[2].endswith(f"\tUposConfidence={sure[1]:.4f}")
    both = written(parser, tmp_path, "\n".join(lines) + "\n\n", "--confidence")
    assert both.count("|HeadConfidence=") == 2 and both.count("UposConfidence=") == 2
    plain = written(tagger, tmp_path, CONLLU)
    assert plain == CONLLU.replace("\tX\t", "\tDET\t", 1).replace("\tX\t", "\tNOUN\t", 1)


def test_a_pipeline_says_it_of_all_columns(pipeline: lols.Pipeline, tmp_path: Path) -> None:
    first = written(pipeline, tmp_path, "the\ndog\nbarks\n", "--confidence", name="words.txt").splitlines()[0]
    keys = [item.partition("=")[0] for item in first.split("\t")[9].split("|")]
    assert keys == ["UposConfidence", "HeadConfidence"]


def test_plain_columns_get_one_more(tagger: lols.Tagger, tmp_path: Path) -> None:
    sure = tagger.predict([["the", "dog"]], confidence=True)[1][0]
    text = "the X\r\ndog\tX\r\n\r\n"
    made = written(tagger, tmp_path, text, "--confidence", "--column", "2", name="a.txt")
    assert made == f"the DET {sure[0]:.4f}\r\ndog\tNOUN\t{sure[1]:.4f}\r\n\r\n"


def test_the_header_of_a_table_of_words_names_it() -> None:
    data = b"form\ttag\nthe\tX\n\ndog\tX"
    sentences = conll.parse(data, ["form"], format="tsv", header=True)
    made = conll.add_confidence(data, sentences, {"tag": np.array([0.5, 1.0])})
    assert made == b"form\ttag\tTagConfidence\nthe\tX\t0.5000\n\ndog\tX\t1.0000"


def test_conllx_has_no_place_for_it(tagger: lols.Tagger, tmp_path: Path) -> None:
    with pytest.raises(LolsError, match="CoNLL-X has no place"):
        written(tagger, tmp_path, CONLLU.replace("# a\n", ""), "--confidence", "--format", "conllx")


def test_tables_get_a_column(tmp_path: Path) -> None:
    import pyarrow as pa

    X, y = tables(300, 0)
    rows = [f"{a:.3f},{b:.3f},{c:.3f},{label}" for (a, b, c), label in zip(X, y, strict=True)]
    (tmp_path / "train.csv").write_text("\n".join(["a,b,c,label", *rows]) + "\n")
    made = lols.CostSensitiveClassifier(calibrate=True, **GIVEN).fit_files(str(tmp_path / "train.csv"))
    content = "\n".join(["a,b,c,label", *rows[:3]]) + "\n"
    lines = written(made, tmp_path, content, "--confidence", name="in.csv").splitlines()
    assert lines[0] == "a,b,c,label,confidence"
    cells = {name: np.round(X[:3, k], 3) for k, name in enumerate("abc")}
    labels, sure = made.predict(pa.table(cells), confidence=True)
    assert [line.split(",")[3:] for line in lines[1:]] == [[n, f"{s:.4f}"] for n, s in zip(labels, sure, strict=True)]
    only = written(made, tmp_path, content, "--confidence", "--labels-only", name="in.csv").splitlines()
    assert only[1] == f"{labels[0]}\t{sure[0]:.4f}"
    with pytest.raises(ConfigurationError, match="column 'confidence' already"):
        written(made, tmp_path, "a,b,c,confidence\n1,2,3,4\n", "--confidence", name="in.csv")


def test_arrow_tables_get_a_column(classifier: lols.CostSensitiveClassifier, tmp_path: Path) -> None:
    import pyarrow as pa
    from pyarrow import parquet

    X, y = tables(300, 0)
    table = pa.table({"a": X[:, 0], "b": X[:, 1], "c": X[:, 2], "label": y.tolist()})
    parquet.write_table(table, tmp_path / "in.parquet")
    made = lols.CostSensitiveClassifier(calibrate=True, **GIVEN).fit_files(str(tmp_path / "in.parquet"))
    made.save(tmp_path / "model.lols")
    done = run(
        "predict", tmp_path / "model.lols", tmp_path / "in.parquet", "-o", tmp_path / "o.parquet", "--confidence"
    )
    assert done.exit_code == 0, done.output
    sure = parquet.read_table(tmp_path / "o.parquet")["confidence"].to_numpy()
    assert np.allclose(sure, made.predict(table.select(["a", "b", "c"]), confidence=True)[1])


def test_a_model_without_it_says_so(tmp_path: Path) -> None:
    plain = lols.Tagger(passes=1).fit(*TRAIN[:2])
    with pytest.raises(ConfigurationError, match=r"model\.lols is not calibrated.*--calibrate"):
        written(plain, tmp_path, CONLLU, "--confidence")


def test_evaluate_has_the_error_and_draws_it(tagger: lols.Tagger, tmp_path: Path) -> None:
    tagger.save(tmp_path / "model.lols")
    lines = [f"{w}\t{t}" for words, tags in zip(*TEST[:2]) for w, t in zip([*words, ""], [*tags, ""])]
    (tmp_path / "test.tsv").write_text("\n".join(line.strip() for line in lines) + "\n")
    drawn = tmp_path / "reliability.svg"
    made = run(
        "evaluate", tmp_path / "model.lols", tmp_path / "test.tsv", "--column", "2", "--plot", drawn, "--json"
    )  # fmt: skip
    assert made.exit_code == 0, made.exception
    found = json.loads(made.stdout)
    assert found["calibration_error"] < 0.04 and found["reliability_plot"] == str(drawn) and drawn.exists()
    assert sum(row["count"] for row in found["reliability"]) == found["tokens"]
