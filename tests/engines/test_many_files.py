"""Many files, and pieces of one: the same bytes as file after file, in order, in bounded memory."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

import lols
from lols.engines import InProcess, Processes
from lols.tasks import many_files
from lols.tasks.many_files import Predictor, evaluate_many, expanded, predict_many, sentences
from tests.cli.command_line import run

WORDS, TAGS = ["the", "dog", "barks"], ["DET", "NOUN", "VERB"]


def conllu(count: int, first: int = 0) -> str:
    """Sentences of three words, with a comment before each."""
    rows = [
        f"# {first + n}\n" + "".join(f"{k + 1}\t{w}\t_\tX\t_\t_\t0\t_\t_\t_\n" for k, w in enumerate(WORDS)) + "\n"
        for n in range(count)
    ]
    return "".join(rows)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made: Path = tmp_path_factory.mktemp("files")
    lols.Tagger(passes=1).fit([WORDS] * 4, [TAGS] * 4).save(made / "pos.lols")
    (made / "part-1.conllu").write_text(conllu(30))
    with gzip.open(made / "part-2.conllu.gz", "wt") as file:
        file.write(conllu(5, 100))
    return made


def alone(folder: Path, name: str) -> bytes:
    out = folder / f"alone-{name.removesuffix('.gz')}"
    assert run("predict", folder / "pos.lols", folder / name, "-o", out).exit_code == 0
    return out.read_bytes()


def test_pieces_are_whole_sentences(folder: Path) -> None:
    pieces = list(sentences(str(folder / "part-1.conllu"), 300))
    assert b"".join(data for _, data in pieces).decode() == conllu(30)
    assert len(pieces) > 5 and all(data.endswith(b"\n\n") and data.startswith(b"#") for _, data in pieces)
    assert [line for line, _ in pieces[:2]] == [1, 1 + pieces[0][1].count(b"\n")]


@pytest.mark.parametrize("engine", [InProcess(), Processes(workers=2)], ids=["this", "processes"])
def test_many_files_are_predicted_as_each_alone(
    folder: Path, engine: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(many_files, "PIECE", 300)
    files = expanded([str(folder / "part-*")])
    facts = predict_many(str(folder / "pos.lols"), files, str(tmp_path), engine)
    assert facts["files"] == 2 and facts["count"] == 3 * 35
    assert (tmp_path / "part-1.conllu").read_bytes() == alone(folder, "part-1.conllu")
    assert gzip.decompress((tmp_path / "part-2.conllu.gz").read_bytes()) == alone(folder, "part-2.conllu.gz")


def labelled(folder: Path, name: str, count: int, wrong: str) -> str:
    """A file of tagged sentences, some tags of which are others than a tagger would give."""
    text = conllu(count)
    for k, tag in enumerate(TAGS):
        text = text.replace(f"{WORDS[k]}\t_\tX", f"{WORDS[k]}\t_\t{tag}")
    path = folder / name
    path.write_text(text.replace("DET", wrong, 2).replace("barks", "sleeps", 1))
    return str(path)


def test_scores_of_pieces_are_those_of_the_whole(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(many_files, "PIECE", 300)
    files = [labelled(tmp_path, "a.conllu", 12, "NOUN"), labelled(tmp_path, "b.conllu", 7, "INTJ")]
    both = tmp_path / "both.conllu"
    both.write_text("".join(Path(file).read_text() for file in files))
    model = str(folder / "pos.lols")
    whole = lols.load(model).evaluate_file(str(both), unseen="wrong")
    made = evaluate_many(model, files, InProcess(), unseen="wrong")
    assert made.as_dict() == whole.as_dict() and made.count == whole.count == 3 * 19
    pattern = run("evaluate", model, tmp_path / "[ab].conllu", "--engine", "this", "--unseen", "wrong", "--json")
    assert json.loads(pattern.stdout)["accuracy"] == whole.as_dict()["accuracy"] < 1.0


def test_tables_are_scored_as_one(tmp_path: Path) -> None:
    rows = [f"{'red' if k % 2 else 'blue'},{k % 2}" for k in range(40)]
    for name, colour in (("a", "green"), ("b", "red"), ("c", "green")):
        (tmp_path / f"{name}.csv").write_text("\n".join(["colour,y", *rows, f"{colour},1"]) + "\n")
    (tmp_path / "train.csv").write_text("\n".join(["colour,y", *rows]) + "\n")
    classifier = lols.CostSensitiveClassifier(numeric="bins", tree=None, passes=2)
    classifier.fit_files(str(tmp_path / "train.csv")).save(str(tmp_path / "m.lols"))
    files = [str(tmp_path / f"{name}.csv") for name in "abc"]
    made = evaluate_many(str(tmp_path / "m.lols"), files, InProcess()).as_dict()
    assert made["unknown"] == {"colour": 2} and made["rows"] == 123


def test_the_command_line_takes_a_pattern(folder: Path, tmp_path: Path) -> None:
    options = ("-o", tmp_path / "out", "--engine", "this", "--json")
    made = run("predict", folder / "pos.lols", folder / "part-*", *options)
    assert made.exit_code == 0 and json.loads(made.stdout)["files"] == 2
    assert (tmp_path / "out" / "part-1.conllu").exists()
    refused = run("predict", folder / "pos.lols", folder / "part-1.conllu", folder / "part-2.conllu.gz")
    assert "name one with -o" in str(refused.exception)


def test_a_mistake_names_the_file_and_leaves_nothing(folder: Path, tmp_path: Path) -> None:
    bad = folder / "bad.conllu"
    bad.write_text(conllu(3) + "1\tno columns\n\n")
    with pytest.raises(lols.LolsError, match=r"bad\.conllu \(counted from line 1 on\)"):
        predict_many(str(folder / "pos.lols"), [str(bad)], str(tmp_path), InProcess())
    assert list(tmp_path.iterdir()) == []


def test_a_dataset_gets_a_column(folder: Path) -> None:
    made = Predictor(str(folder / "pos.lols"), "words")({"words": [WORDS, WORDS[:2]], "id": [1, 2]})
    assert made["id"] == [1, 2] and made["predicted"].tolist() == [TAGS, TAGS[:2]]
