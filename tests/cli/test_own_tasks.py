"""The verbs on models of the user's own tasks, whose Python file is named by `--task`."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest

import lols
from lols.cli.task_file import run_file
from tests.cli.calling import fine, mistake, run
from tests.heuristics import small_shop

READ_LINE = """

def read_line(line):
    import json

    machine, time = json.loads(line)
    return np.array(machine), np.array(time, float)
"""
PROGRAM = """
import lols


def run(search, x):
    tags = []
    for i, word in enumerate(x["words"]):
        truth = x["tags"][i] if search.truth else None
        tag = search.predict([("w", word)], reference=truth)
        search.loss(tag != truth)
        tags.append(tag)
    return tags


tagging = lols.Program(run, labels=["DET", "NOUN"])
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory):
    made = tmp_path_factory.mktemp("own")
    modules, path = set(sys.modules), list(sys.path)
    (made / "own_shop.py").write_text(Path(small_shop.__file__).read_text() + READ_LINE)
    task = run_file(made / "own_shop.py").Shop
    shops = small_shop.shops(24)
    lines = [json.dumps([machine.tolist(), time.tolist()]) for machine, time in shops]
    (made / "shops.jsonl").write_text("\n".join(lines) + "\n")
    lols.train(task, shops, passes=1, seed=1, progress=False, threads=1).save(made / "shop.lols")
    (made / "own_program.py").write_text(PROGRAM)
    (made / "words.jsonl").write_text(json.dumps({"words": ["the", "cat"], "tags": ["DET", "NOUN"]}) + "\n")
    program = run_file(made / "own_program.py").tagging
    words = [json.loads((made / "words.jsonl").read_text())] * 4
    lols.train(program, words, passes=2, progress=False).save(made / "program.lols")
    yield made
    sys.path[:] = path
    for name in set(sys.modules) - modules:
        if name.startswith("own_"):
            del sys.modules[name]


@pytest.fixture
def shop(folder: Path) -> tuple[object, ...]:
    """Model, file and task."""
    return folder / "shop.lols", folder / "shops.jsonl", "--task", f"{folder / 'own_shop.py'}:Shop"


def test_predictions_are_lines_of_json(folder: Path, shop: tuple[object, ...], tmp_path: Path) -> None:
    model = lols.load(folder / "shop.lols", small_shop.Shop)
    wanted = model.predict(small_shop.shops(24))
    assert [json.loads(line) for line in fine("predict", *shop).out.splitlines()] == wanted
    facts = fine("predict", *shop, "-o", tmp_path / "out", "--best-of", 8, "--json").json
    assert facts["examples"] == 24 and facts["examples_per_second"] > 0
    plans = [json.loads(line) for line in (tmp_path / "out").read_text().splitlines()]
    assert plans == model.predict(small_shop.shops(24), best_of=8)
    lines = (folder / "shops.jsonl").read_bytes()
    assert fine("predict", shop[0], "-", *shop[2:], stdin=lines).out == fine("predict", *shop).out


def test_the_loss_is_given_beside_the_teachers(folder: Path, shop: tuple[object, ...]) -> None:
    model = lols.load(folder / "shop.lols", small_shop.Shop)
    found = fine("evaluate", *shop, "--json").json
    assert found["loss"] == pytest.approx(model.evaluate(small_shop.shops(24))) and found["examples"] == 24
    assert found["teacher_loss"] == pytest.approx(model.reference_losses(small_shop.shops(24)).mean())
    printed = fine("evaluate", *shop).out.decode()
    assert printed == (
        f"loss {found['loss']:.4f} per example on 24 examples\nthe teacher: {found['teacher_loss']:.4f}\n"
    )
    assert fine("evaluate", *shop, "--best-of", 8, "--json").json["loss"] < found["loss"]


def test_they_are_explained_certified_and_inspected(folder: Path, shop: tuple[object, ...]) -> None:
    said = fine("explain", *shop, "--example", 2).out.decode()
    assert said.startswith(f"Example 2 of 24 in {shop[1]}") and "Deviations are completed" in said
    certificate = fine("certify", *shop, "--json").json
    assert certificate["loss"]["value"] == pytest.approx(fine("evaluate", *shop, "--json").json["loss"])
    assert certificate["reference"].endswith("Shop") and certificate["notes"] == []
    assert "as many actions as an example has" in fine("inspect", shop[0]).out.decode()
    assert "Shop: as in training" in " ".join(fine("inspect", shop[0], *shop[2:]).out.decode().split())


def test_confidence_is_fitted_and_written(shop: tuple[object, ...], tmp_path: Path) -> None:
    mistake("predict", *shop, "--confidence", says="calibrat")
    fine("calibrate", *shop, "-o", tmp_path / "m.lols")
    lines = fine("predict", tmp_path / "m.lols", *shop[1:], "--confidence").out.splitlines()
    assert all(len(json.loads(line)["confidence"]) == 15 for line in lines) and len(lines) == 24


def test_a_task_that_has_changed_is_told(folder: Path, shop: tuple[object, ...]) -> None:
    text = (folder / "own_shop.py").read_text()
    (folder / "own_other.py").write_text(text.replace("100.0 * last", "101.0 * last"))
    ran = run("evaluate", *shop[:2], "--task", folder / "own_other.py")
    assert ran.code == 0 and "has changed since" in ran.err
    said = fine("inspect", shop[0], "--task", folder / "own_other.py").out.decode()
    assert "own_other.py:Shop: has changed since" in " ".join(said.split())


def test_programs_are_predicted_with_and_evaluated(folder: Path) -> None:
    program = folder / "program.lols", folder / "words.jsonl", "--task", folder / "own_program.py"
    assert fine("predict", *program).out == b'["DET", "NOUN"]\n'
    assert fine("evaluate", *program, "--json").json["teacher_loss"] == 0.0
    for verb in ("explain", "certify"):
        mistake(verb, *program, says="the model of a program, which is plain Python")
    mistake("predict", *program, "--confidence", says="--confidence has no effect")


def test_mistakes_are_one_line(folder: Path, shop: tuple[object, ...], tmp_path: Path) -> None:
    model, data = shop[:2]
    mistake("predict", model, data, says="on the command line name its Python file: --task FILE.py")
    mistake("explain", model, says="name a file of examples, and with --task the file of its task, after it")
    mistake("predict", model, data, "--task", folder / "own_shop.py:Shp", says="has no task 'Shp': it has Shop")
    mistake("predict", model, data, "--task", folder / "nowhere.py", says="nowhere.py: there is no such file")
    mistake("predict", *shop, "--column", "x", says="--column has no effect: the model is of a task of your own")
    mistake("predict", model, data, data, *shop[2:], "-o", tmp_path, says="--task has no effect with several files")
    mistake("explain", "lols", "--task", "x.py", says="--task has no effect: no model is given")
    words = folder / "program.lols", tmp_path / "bad", "--task", folder / "own_program.py"
    (tmp_path / "bad").write_text('{"words": []}\nthe cat\n')
    mistake("predict", *words, says="bad, line 2: this is not JSON (Expecting value")
    (tmp_path / "bad").write_text("")
    mistake("evaluate", *words, says="bad: there are no examples in it")
    (tmp_path / "bad").write_text("[1]\n")
    mistake("predict", model, tmp_path / "bad", *shop[2:], says="bad, line 1: read_line fails with ValueError")
    tagger = lols.Tagger(passes=1).fit([["a", "dog"]] * 2, [["D", "N"]] * 2)
    tagger.save(tmp_path / "tagger.lols")
    mistake("evaluate", tmp_path / "tagger.lols", data, *shop[2:], says="--task has no effect: the model is a tagger")
    mistake("optimise", folder / "nowhere.py", says="nowhere.py: there is no such file")


def test_what_json_does_not_have_is_a_text() -> None:
    from lols.tasks.own import json_line

    assert json_line((np.int64(1), "é", None)) == '[1, "é", null]\n'
    assert json.loads(json_line({(1, 2): 3})) == "{(1, 2): 3}"
