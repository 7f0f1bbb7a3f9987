"""Estimators whose workers read their own files: the same weights as if the driver had read all of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lols
from lols.engines import InProcess, Processes
from tests.engines.small_problems import DATA

SHARDS = InProcess(sync="pass", shards=3)


def tokens(part: list[Any]) -> str:
    """Sentences of generated words, with tags, and trees that hang on the first word."""
    lines = []
    for words, tags in part:
        for k, (word, tag) in enumerate(zip(words, tags, strict=True)):
            relation = "root" if k == 0 else f"r{tag}"
            lines.append(f"{k + 1}\tw{word}\t_\tT{tag}\t_\t_\t{min(k, 1)}\t{relation}\t_\t_\n")
        lines.append("\n")
    return "".join(lines)


def written(folder: Path, write: Any, suffix: str, data: list[Any]) -> tuple[str, list[str]]:
    """All data in one file, and in three, as shards would have them."""
    whole = folder / f"whole{suffix}"
    whole.write_text(write(data))
    parts = [folder / f"part-{k}{suffix}" for k in range(3)]
    for k, path in enumerate(parts):
        path.write_text(write(data[k::3]))
    return str(whole), [str(path) for path in parts]


def same_weights(one: Any, other: Any) -> bool:
    a, b = one.model_.policy, other.model_.policy
    return np.array_equal(a.stack, b.stack) and np.array_equal(a.shared.entries, b.shared.entries)


@pytest.mark.parametrize("kind", [lols.Tagger, lols.Parser])
def test_weights_are_those_of_the_driver(kind: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = [(each["words"], each["tags"]) for each in DATA]
    whole, parts = written(tmp_path, tokens, ".conllu", data)
    plain = kind(passes=2, engine=SHARDS).fit_files([whole])
    own = kind(passes=2, engine=SHARDS).fit_files(parts)
    assert same_weights(plain, own)
    assert set(own.vocabulary_) == set(plain.vocabulary_) and own.column_values_.keys() == plain.column_values_.keys()
    assert own.model_.about["examples"] == len(data)
    own.save(tmp_path / "model.lols")
    loaded = lols.load(tmp_path / "model.lols")
    assert loaded.evaluate_file(whole).as_dict() == plain.evaluate_file(whole).as_dict()


def test_a_column_may_be_empty_in_the_first_file(tmp_path: Path) -> None:
    _, parts = written(tmp_path, tokens, ".conllu", [(each["words"], each["tags"]) for each in DATA])
    first = Path(parts[0])
    first.write_text(
        "".join(
            "\t".join("_" if cell.startswith("T") else cell for cell in line.split("\t"))
            for line in first.read_text().splitlines(keepends=True)
        )
    )
    own = lols.Parser(passes=1, engine=SHARDS).fit_files(parts)
    assert set(own.column_values_["upos"]) >= {f"T{tag}" for each in DATA for tag in each["tags"]}


def table(part: list[Any]) -> str:
    """Rows of a number, a category, a column of numbers in some files, and a class."""
    rows = [f"{k},c{k % 7},{'x' if k == 31 else k % 4},{'yes' if k % 3 else 'no'}\n" for k in part]
    return "number,category,either,class\n" + "".join(rows)


def test_a_classifier_agrees_on_columns_and_classes(tmp_path: Path) -> None:
    whole, parts = written(tmp_path, table, ".csv", list(range(90)))
    settings: Any = {"numeric": "bins", "tree": "order", "passes": 2, "batch_size": 8, "shuffle": False, "bins": 8}
    plain = lols.CostSensitiveClassifier(**settings, engine=SHARDS).fit_files([whole])
    own = lols.CostSensitiveClassifier(**settings, engine=SHARDS).fit_files(parts)
    assert own.table_["classes"] == plain.table_["classes"] and own.table_["categories"] == 2
    assert same_weights(plain, own)
    with_workers = Processes(workers=2, sync="pass", shards=3)
    assert same_weights(own, lols.CostSensitiveClassifier(**settings, engine=with_workers).fit_files(parts))


def test_what_workers_cannot_hold_out_is_refused(tmp_path: Path) -> None:
    _, parts = written(tmp_path, table, ".csv", list(range(9)))
    with pytest.raises(lols.LolsError, match=r"calibrate needs dev data \(--dev\) where workers read their own files"):
        lols.CostSensitiveClassifier(calibrate=True, engine=SHARDS).fit_files(parts)
