"""Taggers and parsers learn from files that are larger than memory, read again in every pass, part by part."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lols
from lols import Parser, Tagger
from lols.errors import ConfigurationError, LolsError
from lols.tasks.format import TIMES, is_larger
from tests.cli.command_line import error_line, run
from tests.cli.interrupting import interrupted
from tests.tasks.parsing.test_parser import CROSSED, CROSSED_TREES, SEVERAL, SEVERAL_TREES, TAGS, grammar
from tests.tasks.tagging.tagger_data import spans

QUIET: dict[str, Any] = {"passes": 1, "shuffle": False, "progress": False, "calibrate": False}
SIZES = (1, 300, 20_000)  # of memory: a sentence in each part, a few, and some parts


def conllu(words: Any, trees: Any) -> str:
    lines = []
    for sentence, tree in zip(words, trees, strict=True):
        for k, (word, (head, relation)) in enumerate(zip(sentence, tree, strict=True), 1):
            lines.append(f"{k}\t{word}\t_\t{TAGS[word]}\t_\t_\t{head}\t{relation}\t_\t_\n")
        lines.append("\n")
    return "".join(lines)


@pytest.fixture(scope="module")
def treebanks(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Treebanks; in the second one, some trees are not projective, and some sentences have several roots."""
    folder, paths = tmp_path_factory.mktemp("large"), []
    for k in range(3):
        words, trees = grammar(20, seed=k, noise=0.1)
        if k == 1:
            words, trees = words + CROSSED + SEVERAL, trees + CROSSED_TREES + SEVERAL_TREES
        path = folder / f"{k}.conllu"
        path.write_text(conllu(words, trees))
        paths.append(str(path))
    return paths


def weights(estimator: Any) -> dict[str, bytes]:
    _, tensors = estimator.contents()
    return {name: np.ascontiguousarray(each).tobytes() for name, each in tensors.items()}


@pytest.mark.parametrize("kind", [Tagger, Parser])
def test_weights_do_not_depend_on_how_files_are_cut(kind: Any, treebanks: list[str], tmp_path: Path) -> None:
    whole = kind(**QUIET).fit_files(treebanks)
    assert sum(len(Path(path).read_bytes()) for path in treebanks) * TIMES > max(SIZES)
    for memory in SIZES:
        lines: list[str] = []
        parts = kind(**QUIET).fit_files(treebanks, memory=memory, say=lines.append)
        assert weights(parts) == weights(whole)
        assert lines[1] == "larger than --memory: the files are read again in every pass"
        assert parts.model_.about["tokens"] == whole.model_.about["tokens"]
        assert parts.model_.about["examples"] == whole.model_.about["examples"]
    assert kind(**QUIET).fit_files(treebanks, memory=1 << 30).fingerprint_ == whole.fingerprint_
    several = [kind(**QUIET | {"passes": 3}).fit_files(treebanks, memory=memory) for memory in SIZES]
    assert weights(several[0]) == weights(several[1]) == weights(several[2])
    assert parts.columns_ == whole.columns_


def test_what_had_to_be_changed_in_trees_is_counted_over_all_parts(treebanks: list[str]) -> None:
    for roots in ("one", "many"):
        whole, parts = (Parser(**QUIET, roots=roots).fit_files(treebanks, memory=memory) for memory in (None, 1))
        assert parts.prepared_ == whole.prepared_ and parts.mended_.tolist() == whole.mended_.tolist()
        assert weights(parts) == weights(whole)


@pytest.mark.parametrize("first", ["B", "I"])
def test_the_scheme_of_spans_is_that_of_all_parts(first: str, tmp_path: Path) -> None:
    words, tags = spans(30)
    text = "".join(
        "".join(f"{w} {t.replace('B-', first + '-')}\n" for w, t in zip(*each, strict=True)) + "\n"
        for each in zip(words, tags, strict=True)
    )
    path = tmp_path / "spans.txt"
    path.write_text("so O\n\n" + text + "so O\n\n")
    whole, parts = (Tagger(**QUIET).fit_files(str(path), memory=memory) for memory in (None, 1))
    assert parts.task_.scheme == whole.task_.scheme == {"B": "bio", "I": "iob1"}[first]
    assert parts.task_.loss == whole.task_.loss and weights(parts) == weights(whole)


def test_dev_data_choose_and_calibrate(treebanks: list[str], tmp_path: Path) -> None:
    options = {"passes": 2, "progress": False}
    made = Parser(**options).fit_files(treebanks, dev=treebanks[0], memory=300)
    assert len(made.model_.report["dev"]) == 2 and made.model_.calibration is not None
    assert made.evaluate_file(treebanks[0]).scores.reliability
    made.save(tmp_path / "model.lols")
    assert lols.load(tmp_path / "model.lols").predict([["the", "dog"]]) == made.predict([["the", "dog"]])


def test_what_needs_all_data_at_once_is_refused(treebanks: list[str], tmp_path: Path) -> None:
    tagger = Tagger(**QUIET).fit_files(treebanks)
    tagger.set_params(warm_start=True)
    with pytest.raises(ConfigurationError, match=r"0\.conllu: .* a model goes on only with data in memory"):
        tagger.fit_files(treebanks, memory=300)
    with pytest.raises(ConfigurationError, match="and workers learn from such data only with sync='pass'"):
        Tagger(engine="processes").fit_files(treebanks, memory=300)
    with pytest.raises(ConfigurationError, match="a network learns only from data in memory"):
        Tagger(policy="neural").fit_files(treebanks, memory=300)
    with pytest.raises(ConfigurationError, match=r"calibrate needs dev data \(--dev\), or more --memory"):
        Parser(**QUIET | {"calibrate": True}).fit_files(treebanks, memory=300)
    with pytest.raises(LolsError, match="standard input: --memory needs files"):
        Parser(**QUIET).fit_files("-", memory=300)
    empty = tmp_path / "empty.conllu"
    empty.write_text("\n" * 400)
    with pytest.raises(LolsError, match=r"empty\.conllu: there is no token in it"):
        Parser(**QUIET).fit_files(str(empty), memory=300)


def test_an_interrupted_training_goes_on(treebanks: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    options = ("tagger", *treebanks, "--memory", "300", "--passes", 3, "--batch-size", 8, "-o")
    whole, resumed = tmp_path / "whole.lols", tmp_path / "resumed.lols"
    assert run("train", *options, whole).exit_code == 0
    interrupted(monkeypatch, 13, *options, resumed)
    assert not resumed.exists() and run("train", *options, resumed, "--resume").exit_code == 0
    assert weights(lols.load(resumed)) == weights(lols.load(whole))


def test_text_is_measured_uncompressed(tmp_path: Path) -> None:
    import gzip

    path = tmp_path / "a.txt.gz"
    path.write_bytes(gzip.compress(b"a\n" * 5000))
    assert is_larger([path], 9_999) and not is_larger([path], 10_000) and is_larger([path, path], 19_999)


def test_the_command_line_has_it(treebanks: list[str], tmp_path: Path, monkeypatch: Any, capsys: Any) -> None:
    made = run("train", "tagger", *treebanks, "--memory", "2kB", "--passes", 1, "-o", tmp_path / "tagger.lols")
    assert made.exit_code == 0 and "larger than --memory" in made.stderr + made.stdout
    wrong = error_line(
        monkeypatch, capsys, "train", "parser", *treebanks, "--memory", "much", "-o", tmp_path / "parser.lols"
    )
    assert "--memory is 'much': give a number of bytes, such as 512MB or 2GB" in wrong
