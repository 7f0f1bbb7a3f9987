"""Compiling ahead: after `warm_up()`, the first call needs no kernel that is not there; and compiling is announced."""

from __future__ import annotations

import errno
import gc
import io
import os
from collections.abc import Iterator
from typing import Any

import pytest

import lols
from lols import CostSensitiveClassifier, Parser, Pipeline, Tagger
from lols.datasets.worlds import tagging_data, tagging_space
from lols.engine.drivers.fused import FusedDriver
from lols.kernels import kernel as kernels
from lols.kernels.kernel import DISABLED, Kernel
from lols.policies import LinearPolicy
from tests.bandit.small_bandit import bandit, request, run
from tests.engine.random_space import VARIANTS, random_data
from tests.tasks.fourth_task import Spacer

pytestmark = pytest.mark.skipif(DISABLED, reason="nothing is compiled")


class Asked(list[str]):
    """The kernels that were not there when they were called."""

    def since(self) -> list[str]:
        names = [*self]
        self.clear()
        return names


def all_kernels() -> list[Kernel]:
    gc.unfreeze()  # commands that ran in this process have hidden what was there
    return [each for each in gc.get_objects() if issubclass(type(each), Kernel)]  # isinstance asks weak references, too


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Iterator[Asked]:
    """As in a new process: no kernel is loaded yet."""
    names, prepare = Asked(), Kernel.prepare

    def noted(kernel: Kernel, layout: Any) -> Any:
        if not kernel.has(layout):
            names.append(kernel.plain.__name__)
        return prepare(kernel, layout)

    for each in all_kernels():
        monkeypatch.setattr(each, "_loaded", {})
    monkeypatch.setattr(Kernel, "prepare", noted)
    yield names


WORDS = [[f"{letter}{n}" for n in range(3 + k % 9)] for k, letter in enumerate("abcdefghijklmnopqrstuvwxyz" * 20)]
WORDS += [[f"rare{k}" for k in range(3000)]]  # more strings and features than there is room for at first
TAGS = [[f"T{k % 3}" for k, _ in enumerate(sentence)] for sentence in WORDS]
SPANS = [["BO"[k % 2] + "-x" * (k % 2 == 0) for k, _ in enumerate(sentence)] for sentence in WORDS]
TREES = [[(k, "next" if k else "root") for k, _ in enumerate(sentence)] for sentence in WORDS]


@pytest.mark.parametrize("tags", [TAGS, SPANS], ids=["tags", "spans"])
def test_a_tagger(asked: Asked, tags: list[list[str]]) -> None:
    made = Tagger(passes=1, templates=["word", "upos"])
    assert made.warm_up() is made and not hasattr(made, "task_") and asked.since() != []
    data = [[{"word": word, "upos": "x"} for word in sentence] for sentence in WORDS]
    made.fit(data, tags, dev=(data[:9], tags[:9])).predict(data)
    made.evaluate(data, tags)
    assert asked.since() == []


def test_a_parser(asked: Asked) -> None:
    made = Parser(passes=1, threads=2).warm_up()
    asked.clear()
    made.fit(WORDS[:40], TREES[:40], dev=(WORDS[:9], TREES[:9])).predict(WORDS[:60])
    assert asked.since() == []


def test_a_pipeline(asked: Asked) -> None:
    made = Pipeline(folds=2, tagger=Tagger(passes=1), parser=Parser(passes=1)).warm_up()
    asked.clear()
    data = [[{"word": word, "upos": tag} for word, tag in zip(*pair, strict=True)] for pair in zip(WORDS, TAGS)][:20]
    made.fit(data, TREES[:20]).predict(WORDS[:20])
    assert asked.since() == []


def test_a_classifier(asked: Asked) -> None:
    costs = [[0, 1, 2], [1, 0, 1], [1, 1, 0]]
    made = CostSensitiveClassifier(classes=list("pqr"), cost_matrix=costs, tree=["p", ["q", "r"]], passes=1).warm_up()
    asked.clear()
    X, y = [[k, f"c{k % 90}"] for k in range(900)], [*"pqr"] * 300
    made.fit(X, y, dev=(X, y)).predict(X)
    made.predict_costs(X[:3])
    assert asked.since() == []


def test_a_model_that_was_read_from_a_file(asked: Asked, tmp_path: Any) -> None:
    Tagger(passes=1).fit(WORDS[:40], TAGS[:40]).save(tmp_path / "m.lols")
    for each in all_kernels():
        each._loaded.clear()
    loaded = lols.load(tmp_path / "m.lols").warm_up()
    asked.clear()
    loaded.predict(WORDS)
    assert asked.since() == []


def test_a_task_of_ones_own(asked: Asked) -> None:
    made = Spacer(passes=1).warm_up()
    asked.clear()
    objects = [chr(k % 256 + 33) + chr(k // 256 + 33) for k in range(9000)]
    made.fit(objects, dev=objects[:20]).predict(objects)
    assert asked.since() == []


@pytest.mark.parametrize("own", [False, True], ids=["linear", "policy"])
def test_a_space_of_ones_own(asked: Asked, own: bool) -> None:
    variant = VARIANTS["pictured"]  # whose kernels the tests of both drivers need, too
    space, teacher, data = variant.space, variant.reference, random_data(3, variant, count=90)
    policy = LinearPolicy(space) if own else None
    trainer = lols.Trainer(space, teacher, passes=1, policy=policy).warm_up(data[:2])
    asked.clear()
    model = trainer.fit(data)
    assert asked.since() == []
    assert model.warm_up(data[:1]) is model
    asked.clear()
    model.predict(data)
    assert asked.since() == []


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"guard": True, "exploit": "last"},
        {"randomise": "steps", "estimator": "dr", "learner": "hinge"},
        {"exploration": "bag", "bag": 2, "exploit": "drawn", "advice": 0.0},
    ],
    ids=["", "guard", "steps", "bag"],
)
def test_a_bandit(asked: Asked, options: dict[str, Any]) -> None:
    made, plain = bandit(**options), bandit(**options)
    before = made.report()
    assert made.warm_up(request(3)) is made and made.report() == before and made.log.decisions() == 0
    asked.clear()
    made.decide(request(0))
    assert asked.since() == []
    made = bandit(**options).warm_up(request(3))
    asked.clear()
    assert run(made, 40) == run(plain, 40) and asked.since() == []


# --- announcing -------------------------------------------------------------------------------------------------------


def layouts() -> tuple[Any, Any]:
    from lols.contract.examples import Examples

    space = tagging_space(labels=3)
    driver = FusedDriver(space, Examples(space, tagging_data(1, labels=3)))
    return Kernel.layout_of(driver.bound, 1), Kernel.layout_of(1)


def test_compiling_is_announced_on_any_output_once_for_each_space(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("LOLS_ANNOUNCE")
    monkeypatch.setattr(kernels, "_ANNOUNCED", set())
    space, other = layouts()
    for layout in (space, space, other, other):
        kernels._announce(layout)
    printed = capsys.readouterr()
    first, second = printed.err.splitlines()
    assert first.startswith(
        "lols: compiling the search space lols.worlds:tagging (about 10 s, first run only; warm_up()"
    )
    assert second.startswith("lols: compiling kernels of lols (a few seconds") and printed.out == ""


class Full(io.StringIO):
    """A log on a full disk."""

    def write(self, text: str) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_an_announcement_can_be_switched_off_and_stops_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(kernels, "_ANNOUNCED", set())
    assert os.environ["LOLS_ANNOUNCE"] == "0"
    kernels._announce(layouts()[0])
    assert capsys.readouterr().err == ""
    monkeypatch.delenv("LOLS_ANNOUNCE")
    for stream in (Full(), None):
        monkeypatch.setattr(kernels.sys, "stderr", stream)
        kernels._announce(layouts()[0])
