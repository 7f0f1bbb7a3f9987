"""`lols train ... --from`: a model goes on with new data, from its state or from its weights alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lols
from lols.io.model_file import read_tensors
from tests.cli.calling import fine, mistake
from tests.cli.option_files import write_files

KINDS = ("tagger", "parser", "classifier", "pipeline")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_files(tmp_path_factory.mktemp("from"))


def data(folder: Path, name: str) -> Path:
    return folder / ("data.csv" if name == "classifier" else "data.conllu")


def policy(path: Path) -> dict[str, Any]:
    return {k: v.tobytes() for k, v in read_tensors(path, "model")[1].items() if "learning." not in k}


@pytest.mark.parametrize("name", ["tagger", "parser", "classifier"])
def test_another_pass_over_the_same_file_is_training_in_one_go(folder: Path, tmp_path: Path, name: str) -> None:
    file = data(folder, name)
    fine("train", name, file, "-o", tmp_path / "three.lols", "--passes", 3)
    fine("train", name, file, "-o", tmp_path / "two.lols", "--passes", 2, "--keep-state")
    fine("train", name, file, "-o", tmp_path / "on.lols", "--from", tmp_path / "two.lols", "--passes", 1)
    assert policy(tmp_path / "on.lols") == policy(tmp_path / "three.lols")


@pytest.mark.parametrize("name", KINDS)
def test_without_state_it_starts_from_the_weights_and_says_so(folder: Path, tmp_path: Path, name: str) -> None:
    file = data(folder, name)
    fine("train", name, file, "-o", tmp_path / "m.lols", "--passes", 1)
    said = fine("train", name, file, "-o", tmp_path / "n.lols", "--from", tmp_path / "m.lols", "--passes", 1)
    says = "m.lols has no learner's state: learning starts from its weights alone"
    assert says in " ".join(said.out.decode().split())
    assert policy(tmp_path / "n.lols") != policy(tmp_path / "m.lols")
    replayed = fine(
        "train", name, file, "-o", tmp_path / "r.lols", "--from", tmp_path / "m.lols", "--passes", 1, "--replay",
        f"{file}:0.5",
    )  # fmt: skip
    assert replayed and policy(tmp_path / "r.lols") != policy(tmp_path / "n.lols")
    lols.load(tmp_path / "r.lols")


def test_new_labels_are_learned_and_old_ones_keep_their_numbers(folder: Path, tmp_path: Path) -> None:
    new = tmp_path / "new.conllu"
    line = "1\toh\t_\tINTJ\t_\t_\t2\tdiscourse\t_\t_\n2\tdog{}\t_\tNOUN\t_\t_\t0\troot\t_\t_\n\n"
    new.write_text("".join(line.format(k) for k in range(40)))
    for name, label in (("tagger", "INTJ"), ("parser", "discourse")):
        old, made = tmp_path / f"{name}.lols", tmp_path / f"{name}-on.lols"
        fine("train", name, data(folder, name), "-o", old, "--keep-state")
        fine("train", name, new, "-o", made, "--from", old, "--replay", f"{data(folder, name)}:1")
        before, after = lols.load(old), lols.load(made)
        names = [(model.task_.labels if name == "tagger" else model.relations_) for model in (before, after)]
        assert label not in names[0] and names[1][: len(names[0])] == names[0] and label in names[1]
        found = after.predict([[{"word": "oh"}, {"word": "dog3"}]])[0]
        assert label in (found if name == "tagger" else [relation for _, relation in found])
        assert "oh" in after.vocabulary_ and set(before.vocabulary_) <= set(after.vocabulary_)
        fine("inspect", made)


def test_mistakes(folder: Path, tmp_path: Path) -> None:
    file, old, out = data(folder, "tagger"), tmp_path / "old.lols", tmp_path / "out.lols"
    fine("train", "tagger", file, "-o", old, "--passes", 1)
    head = ("train", "tagger", file, "-o", out)
    mistake(*head, "--replay", f"{file}:0.5", says="--replay has no effect without --from")
    mistake(*head, "--from", old, "--replay", str(file), says="write a file and a share of it, such as old.conllu:0.3")
    mistake(*head, "--from", old, "--replay", f"{file}:1.5", says="write a file and a share of it")
    mistake(*head, "--from", old, "--direction", "backward", says="--direction has no effect: with --from it stays")
    mistake(*head, "--from", tmp_path / "none.lols", says="none.lols: there is no such file")
    mistake("train", "parser", file, "-o", out, "--from", old, says="old.lols: not a parser, which is what is trained")
    fine("train", "tagger", file, "-o", old, "--passes", 2, "--algorithm", "searn")
    mistake(*head, "--from", old, "--algorithm", "lols", says="the policy is a mixture of several")


def test_a_state_that_was_forged_is_refused(folder: Path, tmp_path: Path) -> None:
    from lols.io.model_file import write_tensors

    file, old = data(folder, "tagger"), tmp_path / "old.lols"
    fine("train", "tagger", file, "-o", old, "--passes", 1, "--keep-state")
    header, tensors = read_tensors(old, "model")
    for change in (
        {"learning.shared.features": np.zeros(3, np.int64)},
        {"learning.shared.weights.rows": np.full(1, 1 << 60, np.int64)},
        {"learning.shared.squares.columns": tensors["learning.shared.squares.columns"] + np.uint8(200)},
        {"learning.counters": np.full(6, -1.0)},
        {"learning.shared.squares.values": -tensors["learning.shared.squares.values"]},
    ):
        write_tensors(old, "model", header, tensors | change)
        says = "the learner's state in the model file is damaged|weights"
        with pytest.raises(lols.LolsError, match=says):
            lols.load(old).set_params(warm_start=True).fit([["a"]], [["X"]])
    for wrong in ({"passes": -1}, {"settings": {"bits": 30}}, {"rivalry": {"count": "many"}}, {"averaged": 0}):
        write_tensors(old, "model", header | {"learning": header["learning"] | wrong}, tensors)
        with pytest.raises(lols.LolsError):
            lols.load(old).set_params(warm_start=True).fit([["a"]], [["X"]])


def test_old_tables_are_checked_like_new_ones(folder: Path, tmp_path: Path) -> None:
    file, old, other = data(folder, "classifier"), tmp_path / "m.lols", tmp_path / "old.csv"
    fine("train", "classifier", file, "-o", old, "--passes", 1)
    again = ("train", "classifier", file, "-o", tmp_path / "n.lols", "--from", old, "--replay", f"{other}:1")
    other.write_text(file.read_text().replace("colour", "farbe"))
    mistake(*again, says="old.csv: there is no column 'colour', which the model looks at")
    other.write_text(file.read_text().replace("\n21,", "\nx,", 1))
    mistake(*again, says="old.csv, line 4, column 'age': 'x' is not a number")
