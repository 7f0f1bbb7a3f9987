"""`lols inspect` says how many passes there were, not how many were planned."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import lols
from lols.tasks.inspect import passes_text
from tests.certificates.test_certify_cli import trees
from tests.cli.calling import fine
from tests.heuristics.small_shop import Shop, shops
from tests.tasks.fourth_task import LINES, Spacer, Spacing
from tests.tasks.tagging.tagger_data import sentences

PLANNED = 40
MAKERS: dict[str, tuple[Any, Any]] = {
    "tagger": (lols.Tagger, lambda: sentences(12)),
    "parser": (lols.Parser, lambda: trees(12)),
    "classifier": (lols.CostSensitiveClassifier, lambda: ([[float(k)] for k in range(24)], ["no", "yes"] * 12)),
    "lines": (Spacer, lambda: (LINES[:8],)),
}


def said_of(path: Path) -> str:
    """The line on training."""
    lines = fine("inspect", path).out.decode().splitlines()
    at = next(k for k, line in enumerate(lines) if line.startswith("  training"))
    return " ".join(" ".join(lines[at : at + 2]).split())


@pytest.mark.parametrize("kind", MAKERS)
def test_of_an_estimator_whose_patience_ends(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if kind == "lines":
        from lols.tasks.registry import ESTIMATORS, Entry

        monkeypatch.setitem(ESTIMATORS, "spacer", Entry("tests.tasks.fourth_task:Spacer"))
    maker, make_data = MAKERS[kind]
    data = make_data()
    made = maker(passes=PLANNED, patience=1, threads=1).fit(*data, dev=data if len(data) > 1 else data[0])
    done, best = len(made.model_.report["dev"]), made.model_.about["best_pass"]
    assert best < done < PLANNED
    made.save(tmp_path / "m.lols")
    assert f"training {done} of {PLANNED} passes, the best on held-out data kept: pass {best}" in said_of(
        tmp_path / "m.lols"
    )


def test_of_a_task_of_ones_own(tmp_path: Path) -> None:
    options: dict[str, Any] = {"passes": 9, "compiled": False, "progress": False}
    lols.train(Spacing, LINES[:4], **options, after_pass=lambda number, model: number == 2).save(tmp_path / "m.lols")
    assert "training 3 of 9 passes, batches" in said_of(tmp_path / "m.lols")
    lols.train(Spacing, LINES[:4], **options).save(tmp_path / "m.lols")
    assert "training 9 passes, batches" in said_of(tmp_path / "m.lols")


def test_of_what_was_learned_from_a_heuristic(tmp_path: Path) -> None:
    found = lols.optimise(Shop, shops(40), minutes=0.01, best_of=1, threads=1)
    found.model.save(tmp_path / "m.lols")
    done, best = (found.model.about[name] for name in ("passes_done", "best_pass"))
    assert best <= done and done in {attempt.passes for attempt in found.report.attempts}
    assert f"training {done} of 50 passes, the best on held-out data kept: pass {best}" in said_of(tmp_path / "m.lols")


def test_of_older_files() -> None:
    assert passes_text({"passes": 50, "best_pass": 4}).startswith("at most 50 passes, ")
    assert passes_text({"passes": 5, "best_pass": None}) == "5 passes"
