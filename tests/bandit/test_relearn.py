"""The log of a bandit on the command line: audited, learned from again with other features, and as a table."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from lols.bandit import SqliteLog, deviations
from tests.bandit.small_bandit import bandit, request, run
from tests.cli.calling import run as lols

BEFORE = """
from dataclasses import replace
import lols
from lols.bandit import StructuredBandit
from tests.bandit.small_bandit import RULES, SPACE

def bandit(log, **options):
    return StructuredBandit(SPACE, RULES, **{"epsilon": 0.6, "seed": 4, "log": log, "compiled": False, **options})

def drawn(log):
    return bandit(log, randomise="steps")

def features(x, s, out):
    SPACE.features(x, s, out)
    lols.emit(out, lols.feature(77, x.words[s[0]] % 2))

def richer(log):
    space = replace(SPACE, features=features, sizes=replace(SPACE.sizes, features=SPACE.sizes.features + 1))
    return StructuredBandit(space, RULES, randomise="steps", epsilon=0.6, log=log, compiled=False)

def ignoring(log):
    return bandit(None)

def nothing(log):
    return None
"""


@pytest.fixture
def logged(tmp_path: Path) -> Path:
    (tmp_path / "shop.py").write_text(BEFORE)
    with bandit(log=tmp_path / "shown.log", compiled=False, randomise="steps", snapshot_every=40) as made:
        run(made, 60)
    return tmp_path / "shown.log"


def test_an_audit_finds_the_same_policies(logged: Path) -> None:
    done = lols("bandit", "audit", logged, "--bandit", f"{logged.parent}/shop.py:drawn", "--json")
    assert done.code == 0 and done.json["same"] and done.json["entries"] == 120
    assert [each["place"] for each in done.json["policies"]] == [40, 80, 120]
    with bandit(log=logged, compiled=False, randomise="steps", snapshot_every=0) as made:  # while it is in use
        text = lols("bandit", "audit", logged, "--bandit", f"{logged.parent}/shop.py:drawn").out.decode()
        assert "120 entries, the same policies" in text and made.report()["decisions"] == 60


def test_an_audit_finds_a_policy_that_is_not_the_same(logged: Path) -> None:
    with sqlite3.connect(logged) as connection:
        connection.execute("UPDATE snapshots SET digest = 'ab' WHERE place = 40")
    connection.close()
    done = lols("bandit", "audit", logged, "--bandit", f"{logged.parent}/shop.py:drawn", "--json")
    assert done.code == 1 and [each["same"] for each in done.json["policies"]] == [False, True, True]


def test_with_other_features_a_log_is_learned_from_again(logged: Path) -> None:
    shop, new = f"{logged.parent}/shop.py:richer", logged.parent / "new.log"
    before = logged.read_bytes()
    refused = lols("bandit", "audit", logged, "--bandit", shop)
    assert refused.code == 2 and "its functions have changed" in refused.err and "lols bandit relearn" in refused.err
    done = lols("bandit", "relearn", logged, "--bandit", shop, "-o", new, "--held-out", 0.5, "--json")
    assert done.code == 0, done.err
    assert (done.json["decisions"], done.json["losses"], done.json["left_out"]) == (60, 60, 0)
    assert done.json["kind"] == "whole" and done.json["evaluated"]["rounds"] == 30
    assert lols("bandit", "audit", new, "--bandit", shop).code == 0
    assert logged.read_bytes() == before
    assert {file.name for file in logged.parent.iterdir()} >= {"new.log", "shown.log"}
    assert not list(logged.parent.glob("*.part*"))
    with SqliteLog(logged, identity=None) as old, SqliteLog(new, identity=None) as log:
        assert [entry.id for entry in old.replay() if hasattr(entry, "id")] == [
            entry.id for entry in log.replay() if hasattr(entry, "id")
        ]
        assert log.snapshots()[-1].digest == done.json["digest"]


def test_the_same_bandit_learns_the_same_again(logged: Path) -> None:
    new = logged.parent / "new.log"
    done = lols("bandit", "relearn", logged, "--bandit", f"{logged.parent}/shop.py:drawn", "-o", new, "--json")
    with SqliteLog(logged, identity=None) as log, bandit(log=log, compiled=False, randomise="steps") as made:
        assert done.json["digest"] == made.policy().digest()


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--bandit", "{}/none.py", "-o", "{}/new.log"], "none.py: there is no such file"),
        (["--bandit", "{}/shop.py:other", "-o", "{}/new.log"], "has no function `other.log.`"),
        (["--bandit", "{}/shop.py:nothing", "-o", "{}/new.log"], "returns a NoneType, not a bandit"),
        (["--bandit", "{}/shop.py:drawn", "-o", "{}/shown.log"], "exists already"),
        (["--bandit", "{}/shop.py", "-o", "{}/new.log", "--held-out", "1"], "held_out is 1.0"),
    ],
)
def test_relearning_refuses(logged: Path, arguments: list[str], says: str) -> None:
    import re

    done = lols("bandit", "relearn", logged, *(each.format(logged.parent) for each in arguments))
    assert done.code == 2 and re.search(says, done.err) and done.err.count("\n") == 1
    assert sorted(file.name for file in logged.parent.glob("*.log*")) == ["shown.log"]


@pytest.mark.parametrize("ending", ["parquet", "jsonl"])
def test_decisions_as_a_table(logged: Path, ending: str) -> None:
    path = logged.parent / f"shown.{ending}"
    assert lols("bandit", "export", logged, "-o", path, "--json").json["rows"] == 60
    rows: list[dict[str, Any]]
    if ending == "parquet":
        rows = pytest.importorskip("pyarrow.parquet").read_table(path).to_pylist()
    else:
        rows = [json.loads(line) for line in path.read_text().splitlines()]
    assert [row["id"] for row in rows] == [str(k) for k in range(60)]
    for k, row in enumerate(rows):
        assert json.loads(row["context"]) == request(k) and len(row["actions"]) == len(request(k)["words"])
        assert 0 <= row["loss"] <= 1 and len(row["chances"]) == len(row["actions"]) and row["losses"] is None


def test_a_log_is_evaluated_straight_from_the_file(logged: Path) -> None:
    with bandit(log=logged, compiled=False, randomise="steps") as made:
        policy, space = made.policy(), made.space
        found = deviations(made.log, policy, compiled=False)
    with SqliteLog(logged, identity=None) as log:
        assert deviations(log, policy, space=space, compiled=False) == found
    assert lols("bandit", "export", logged, "-o", logged.parent / "shown.csv").code == 2
