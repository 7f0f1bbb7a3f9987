"""`lols calibrate` and `calibrate_with`: a trained model gets other confidence, and nothing else changes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lols
from lols.io.model_file import read_tensors
from lols.training.calibration import Judged, UnfitSample, refitted
from tests.cli.command_line import error_line, run

NOUNS, VERBS, TAGS = ["dog", "cat", "fish", "man"], ["barks", "sleeps", "swims"], ["DET", "NOUN", "VERB"]
KINDS = ["tagger", "parser", "pipeline", "classifier"]


def treebank(count: int, seed: int, wrong: float) -> str:
    """Sentences of three words in CoNLL-U, of whose tags and first heads a part is drawn."""
    rng, lines = np.random.default_rng(seed), []
    for _ in range(count):
        words = ["the", str(rng.choice(NOUNS)), str(rng.choice(VERBS))]
        tags = [tag if rng.random() >= wrong else str(rng.choice(TAGS)) for tag in TAGS]
        heads = [2 if rng.random() >= wrong else 3, 3, 0]
        cells = zip(words, tags, heads, ("det", "nsubj", "root"), strict=True)
        lines += [f"{k}\t{w}\t_\t{t}\t_\t_\t{h}\t{r}\t_\t_" for k, (w, t, h, r) in enumerate(cells, 1)] + [""]
    return "\n".join(lines) + "\n"


def table(count: int, seed: int, wrong: float) -> str:
    """Rows of a CSV file, of whose labels a part is drawn."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(count, 3)).round(3)
    y = np.where(X[:, 0] > 0.3, "yes", np.where(X[:, 1] > 0.5, "ask", "no"))
    y = np.where(rng.random(count) < wrong, rng.choice(["yes", "ask", "no"], count), y)
    return "\n".join(["a,b,c,label", *(f"{a},{b},{c},{label}" for (a, b, c), label in zip(X, y, strict=True))]) + "\n"


def ending(kind: str) -> str:
    return "csv" if kind == "classifier" else "conllu"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A model of each kind, calibrated on clean data, and data where four tenths are drawn."""
    made = tmp_path_factory.mktemp("calibrate")
    for kind, write in (("csv", table), ("conllu", treebank)):
        size = 1200 if kind == "csv" else 150
        for seed, (name, wrong) in enumerate((("train", 0.05), ("dev", 0.05), ("sample", 0.4), ("rest", 0.4))):
            (made / f"{name}.{kind}").write_text(write(size, seed, wrong))
    for kind in KINDS:
        more = ["--numeric", "curve", "--passes", 5] if kind == "classifier" else ["--passes", 2]
        more += ["--folds", 2] if kind == "pipeline" else []
        data = (made / f"{name}.{ending(kind)}" for name in ("train", "dev"))
        done = run("train", kind, next(data), "--dev", next(data), "-o", made / f"{kind}.lols", *more)
        assert done.exit_code == 0, done.exception
    yield made


def outputs(model: Any, folder: Path, kind: str) -> tuple[Any, Any]:
    """Predictions for the rest, and confidence in them."""
    if kind == "classifier":
        import pyarrow.csv as csv

        made, sure = model.predict(csv.read_csv(folder / "rest.csv").drop(["label"]), confidence=True)
        return made.tolist(), sure.tolist()
    X, _, _ = sentences(folder / "rest.conllu", kind)
    made, sure = model.predict(X, confidence=True)
    return made, [({k: v.tolist() for k, v in s.items()} if kind == "pipeline" else s.tolist()) for s in sure]


def sentences(path: Path, kind: str) -> tuple[Any, Any, Any]:
    """Words (with tags, but for a tagger), tags and trees."""
    read = lols.io.read_conllu(path)
    return (
        [each.words if kind == "tagger" else each for each in read],
        [each.tags("upos") for each in read],
        [each.tree for each in read],
    )


def parts_of(header: dict[str, Any]) -> list[dict[str, Any]]:
    """The headers of the models in a file."""
    return list(header["parts"].values()) if "parts" in header else [header]


def errors(found: Any) -> dict[str, float]:
    """The calibration errors that `lols evaluate --json` prints."""
    return found.get("calibration_errors", {"": found["calibration_error"]})


def printed(*arguments: Any) -> Any:
    done = run(*arguments, "--json")
    assert done.exit_code == 0, done.exception
    return json.loads(done.stdout)


@pytest.mark.parametrize("kind", KINDS)
def test_confidence_is_that_of_the_sample_and_nothing_else_changes(folder: Path, kind: str, tmp_path: Path) -> None:
    old, new = folder / f"{kind}.lols", tmp_path / "new.lols"
    sample, rest = (folder / f"{name}.{ending(kind)}" for name in ("sample", "rest"))
    found = printed("calibrate", old, sample, "-o", new)["confidence"]
    for name, before in errors(printed("evaluate", old, sample)).items():
        (seen,) = found.values() if not name else [found[name]]
        assert seen["decisions"] in (450, 1200) and 0.5 < seen["accuracy"] < 0.9
        assert seen["calibration_error_before"] == pytest.approx(before, rel=0.05) and before > 0.1
    after = errors(printed("evaluate", new, rest))
    assert all(0.0 < error < 0.07 for error in after.values()), after
    one, other = lols.load(old), lols.load(new)
    (made, sure), (same, surer) = outputs(one, folder, kind), outputs(other, folder, kind)
    assert made == same and sure != surer
    (header, tensors), (wanted, arrays) = read_tensors(new, "model"), read_tensors(old, "model")
    assert all((tensors[name] == arrays[name]).all() for name in arrays) and tensors.keys() == arrays.keys()
    for made_part, old_part in zip(parts_of(header), parts_of(wanted), strict=True):
        assert made_part.pop("calibration") != old_part.pop("calibration")
        for part in (made_part, old_part):
            part["task"].pop("temperature", None)  # of a tagger's calibration, for older versions
    assert header == wanted


@pytest.mark.parametrize("kind", KINDS)
def test_files_and_objects_give_the_same(folder: Path, kind: str, tmp_path: Path) -> None:
    by_file, by_hand = lols.load(folder / f"{kind}.lols"), lols.load(folder / f"{kind}.lols")
    by_file.calibrate_file(str(folder / f"sample.{ending(kind)}"))
    if kind == "classifier":
        import pyarrow.csv as csv

        read = csv.read_csv(folder / "sample.csv")
        given: Any = (read.drop(["label"]), read["label"].to_pylist())
    else:
        words, tags, trees = sentences(folder / "sample.conllu", kind)
        given = (words, tags if kind == "tagger" else trees)
    assert by_hand.calibrate_with(*given) is by_hand
    assert outputs(by_file, folder, kind) == outputs(by_hand, folder, kind)
    by_hand.save(tmp_path / "saved.lols")
    assert outputs(lols.load(tmp_path / "saved.lols"), folder, kind) == outputs(by_hand, folder, kind)


@pytest.mark.parametrize("kind", KINDS)
def test_a_model_without_confidence_gets_it(folder: Path, kind: str, tmp_path: Path) -> None:
    model, sample = lols.load(folder / f"{kind}.lols"), folder / f"sample.{ending(kind)}"
    for each in model.models():
        each.calibration = None
    model.save(tmp_path / "plain.lols")
    assert run("predict", tmp_path / "plain.lols", sample, "--confidence").exit_code != 0
    made = run("calibrate", tmp_path / "plain.lols", sample, "-o", tmp_path / "plain.lols")
    assert made.exit_code == 0 and " decisions, " in made.stdout and "calibration error was" not in made.stdout
    assert "plain.lols written" in made.stdout
    assert run("predict", tmp_path / "plain.lols", sample, "--confidence").exit_code == 0


def test_the_state_of_the_learner_stays(folder: Path, tmp_path: Path) -> None:
    state, sample = tmp_path / "state.lols", folder / "sample.conllu"
    assert run("train", "tagger", folder / "train.conllu", "-o", state, "--passes", 1, "--keep-state").exit_code == 0
    size = state.stat().st_size
    assert run("calibrate", state, sample, "-o", state).exit_code == 0
    assert 0 < state.stat().st_size - size < 4000
    assert lols.load(state).starts_from_weights() is None
    assert "that of the learner, so that training can go on exactly" in run("inspect", state).stdout


def test_inspect_says_what_confidence_is_of(folder: Path, tmp_path: Path) -> None:
    for kind in KINDS:
        old, new = folder / f"{kind}.lols", tmp_path / f"{kind}.lols"
        assert run("calibrate", old, folder / f"sample.{ending(kind)}", "-o", new).exit_code == 0
        count = 1200 if kind == "classifier" else 450
        assert f"fitted to {count:,} decisions on dev data" in run("inspect", old).stdout
        assert f"fitted to {count:,} decisions on given data" in run("inspect", new).stdout
        assert printed("inspect", new)["confidence"] == {"source": "given data", "decisions": count}
        assert not printed("inspect", new)["learner_state"]


def test_labels_alone_calibrate_a_model_that_learned_from_costs(folder: Path, tmp_path: Path) -> None:
    header, *rows = (folder / "train.csv").read_text().splitlines()
    fear = {"ask": "0,1,1", "no": "6,0,1", "yes": "6,1,0"}  # what is cheapest need not be likeliest
    costly = [f"{row},{fear[row.rpartition(',')[2]]}" for row in rows]
    (tmp_path / "costs.csv").write_text("\n".join([f"{header},cost_ask,cost_no,cost_yes", *costly]) + "\n")
    model, given = tmp_path / "m.lols", ("--cost-columns", "cost_", "--label", "label")
    assert run("train", "classifier", tmp_path / "costs.csv", "-o", model, "--passes", 3, *given).exit_code == 0
    assert run("calibrate", model, folder / "sample.csv", "-o", model).exit_code == 0
    assert lols.load(model).model_.calibration.bias.size == 3
    assert printed("evaluate", model, folder / "rest.csv")["calibration_error"] < 0.06


# --- mistakes ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_a_sample_without_labels_or_with_few_is_refused(
    folder: Path, kind: str, tmp_path: Path, monkeypatch: Any, capsys: Any
) -> None:
    few, bare, out = (tmp_path / f"{name}.{ending(kind)}" for name in ("few", "bare", "out"))
    if kind == "classifier":
        few.write_text(table(9, 0, 0.0))
        bare.write_text("\n".join(line.rpartition(",")[0] for line in table(90, 0, 0.0).splitlines()) + "\n")
    else:
        few.write_text(treebank(3, 0, 0.0))
        rows = [line.split("\t") for line in treebank(90, 0, 0.0).splitlines()]
        empty = {"tagger": (3,), "parser": (6, 7), "pipeline": (3,)}[kind]
        bare.write_text("".join("\t".join("_" if k in empty else c for k, c in enumerate(r)) + "\n" for r in rows))
    model = folder / f"{kind}.lols"
    line = error_line(monkeypatch, capsys, "calibrate", model, few, "-o", out)
    assert f"{few}: there are only 9 decisions to calibrate with: give at least 30" in line
    line = error_line(monkeypatch, capsys, "calibrate", model, bare, "-o", out)
    wanted = {
        "tagger": "there are no labels in column 'upos'",
        "parser": "line 1: ",
        "pipeline": f"{bare}: sentence 1, word 1: there is no tag in column 'upos'; fill it in",
        "classifier": "there is no column 'label' for the labels",
    }
    assert str(bare) in line and wanted[kind] in line
    assert not out.exists()


def test_unknown_labels_are_refused_or_wrong(folder: Path, tmp_path: Path, monkeypatch: Any, capsys: Any) -> None:
    strange, out = tmp_path / "strange.csv", tmp_path / "out.lols"
    strange.write_text((folder / "sample.csv").read_text() + "0.5,0.5,0.5,perhaps\n")
    line = error_line(monkeypatch, capsys, "calibrate", folder / "classifier.lols", strange, "-o", out)
    assert f"{strange}, line 1202, column 'label': label 'perhaps' is none of the classes ask, no, yes" in line
    strange = tmp_path / "strange.conllu"
    strange.write_text((folder / "sample.conllu").read_text() + treebank(50, 9, 0.0).replace("DET", "NEW"))
    line = error_line(monkeypatch, capsys, "calibrate", folder / "tagger.lols", strange, "-o", out)
    assert f"{strange}, line 601: label 'NEW' was never seen in training" in line and "--unseen wrong" in line
    assert not out.exists()
    before = printed("calibrate", folder / "tagger.lols", folder / "sample.conllu", "-o", out)
    after = printed("calibrate", folder / "tagger.lols", strange, "-o", out, "--unseen", "wrong")
    right = [found["confidence"]["tags"]["accuracy"] * n for found, n in ((before, 450), (after, 600))]
    assert right[1] == pytest.approx(right[0] + 100)


def test_other_mistakes_are_one_line(folder: Path, tmp_path: Path, monkeypatch: Any, capsys: Any) -> None:
    model, sample = folder / "tagger.lols", folder / "sample.conllu"

    def wrong(*arguments: Any) -> str:
        return error_line(monkeypatch, capsys, "calibrate", *arguments)

    assert "there is no folder" in wrong(model, sample, "-o", tmp_path / "no" / "m.lols")
    assert "--label has no effect: the model is a tagger; it takes --column" in wrong(
        model, sample, "-o", tmp_path / "m.lols", "--label", "x"
    )
    assert "no.conllu" in wrong(model, tmp_path / "no.conllu", "-o", tmp_path / "m.lols")
    assert not (tmp_path / "m.lols").exists()
    content = sample.read_bytes()
    assert "is one of the files that are read; give the output another name" in wrong(model, sample, "-o", sample)
    assert sample.read_bytes() == content


def test_a_pipeline_does_not_take_missing_tags_for_wrong_ones(
    folder: Path, tmp_path: Path, monkeypatch: Any, capsys: Any
) -> None:
    half, out = tmp_path / "half.conllu", tmp_path / "out.lols"
    lines = (folder / "sample.conllu").read_text().splitlines()
    lines[5] = lines[5].replace("\tNOUN\t", "\t_\t").replace("\tDET\t", "\t_\t").replace("\tVERB\t", "\t_\t")
    half.write_text("\n".join(lines) + "\n")
    line = error_line(monkeypatch, capsys, "calibrate", folder / "pipeline.lols", half, "-o", out)
    assert f"{half}: sentence 2, word 2: there is no tag in column 'upos'; fill it in" in line
    assert not out.exists()


def test_training_does_not_overwrite_its_data(folder: Path, tmp_path: Path, monkeypatch: Any, capsys: Any) -> None:
    data, dev = tmp_path / "train.csv", tmp_path / "dev.csv"
    for file in (data, dev):
        file.write_text((folder / "train.csv").read_text())
    for output in (data, dev):
        line = error_line(monkeypatch, capsys, "train", "classifier", data, "--dev", dev, "-o", output)
        assert f"{output}: is one of the files that are read" in line
        assert output.read_text() == (folder / "train.csv").read_text()


def test_a_sample_that_contradicts_everything_is_refused() -> None:
    judged = Judged(np.ones((40, 2)), np.zeros(40, np.int64), np.zeros(40, np.bool_))
    with pytest.raises(UnfitSample, match="none of the 40 decisions agrees"):
        refitted(judged, None)
    with pytest.raises(UnfitSample, match="only 29 decisions"):
        refitted(Judged(*(each[:29] for each in judged[:3])), None)  # type: ignore[misc]


def test_python_says_it_as_well(folder: Path) -> None:
    with pytest.raises(lols.LolsError, match="there are no decisions to calibrate with"):
        lols.load(folder / "tagger.lols").calibrate_with([], [])
    with pytest.raises(lols.LolsError, match="only 2 decisions"):
        lols.load(folder / "classifier.lols").calibrate_with([[1, 2, 3]] * 2, ["no", "yes"])
