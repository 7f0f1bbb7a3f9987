"""Small model files that ask for much: none takes more memory or time than a file of its size may, or it is refused."""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lols
from lols.errors import ConfigurationError, ModelFileError
from lols.io import room
from lols.io.model_file import read_tensors, write_tensors
from lols.io.room import LEAST, TIMES
from lols.io.strings import texts_of
from tests.models_0_1.own_task import DATA, Tagging

FILES = Path(__file__).parents[1] / "models_0_1"
SECONDS = 30.0  # generous: tracing memory makes Python several times slower
Header, Tensors = dict[str, Any], dict[str, np.ndarray]
Change = Callable[[Header, Tensors], None]


def rewritten(name: str, change: Change, folder: Path) -> Path:
    """A model file with another header or other arrays, by the project's own writer."""
    header, tensors = read_tensors(FILES / f"{name}.lols", "model")
    change(header, tensors)
    write_tensors(folder / "hostile.lols", "model", {k: v for k, v in header.items() if k != "kind"}, tensors)
    return folder / "hostile.lols"


def cost(path: Path, what: Callable[[Path], Any] = lols.load) -> Any:
    """Do something with a file, and check what it takes; the result, or the error that refused the file."""
    size, began = path.stat().st_size, time.perf_counter()
    tracemalloc.start()
    try:
        result = what(path)
    except ModelFileError as error:
        assert str(path) in str(error) and "\n" not in str(error)
        result = error
    finally:
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert peak < 1.25 * LEAST + 2 * TIMES * size, f"{size:,} bytes took {peak:,}"
    assert time.perf_counter() - began < SECONDS
    return result


def resident() -> int:
    """The memory that this process takes, in bytes."""
    text = Path("/proc/self/status").read_text()
    return int(text.partition("VmRSS:")[2].split()[0]) << 10


def labels(header: Header, names: list[str], **task: Any) -> None:
    """Other labels of a tagger, all else as it must be for them."""
    header["task"].update(labels=names, **task)
    header["space"].update(actions=len(names), settings={})


def rows(tensors: Tensors, count: int) -> None:
    """Features without any weight."""
    for name, array in {
        "features": np.arange(count),
        "counts": np.zeros((1, count), np.int32),
        "columns": np.zeros(0, np.int32),
        "values": np.zeros(0, np.float32),
    }.items():
        tensors[f"shared.{name}"] = array


# --- taggers and parsers ----------------------------------------------------------------------------------------------


def many_types(header: Header, tensors: Tensors) -> None:
    names = ["O", *(f"{p}-{k}" for p in "BI" for k in range(20_000))]
    labels(header, names, scheme="bio", inner_scheme="bio")


def code_of_many(header: Header, tensors: Tensors) -> None:
    labels(header, [f"{k:05}" for k in range(40_001)])
    header["thresholds"] = 1


def overlapping_words(header: Header, tensors: Tensors) -> None:
    tensors["task.vocabulary"] = np.full(1 << 20, 97, np.uint8)
    tensors["task.vocabulary_end"] = np.tile(np.array([(1 << 63) - 1, 1 << 20]), 5000)


def repeated_relations(header: Header, tensors: Tensors) -> None:
    header["task"]["right"] = [0] * 100_000


def many_columns(header: Header, tensors: Tensors) -> None:
    header["task"].update(columns=["word", *(f"c{k}" for k in range(50_000))])
    header["task"].update(templates=[f"c{k}" for k in range(4000)])
    header["space"]["settings"] = {}


def large_setting(header: Header, tensors: Tensors) -> None:
    names = ["O", *(f"{p}-{k}" for p in "BI" for k in range(1400))]
    labels(header, names, scheme="bio", inner_scheme="bio")
    header["space"]["settings"] = {"following": 0}


def many_policies(header: Header, tensors: Tensors) -> None:
    beside = [o for o in range(-9, 10) if o]
    lines = [f"S{i}{child}[{o:+}].word" for i in range(9) for child in ("", "l", "l2", "r", "r2") for o in beside]
    header["task"]["templates"] = lines
    header["space"]["settings"] = {}
    rows(tensors, 0)
    for name in ("shared", "single"):
        tensors[f"{name}.counts"] = np.zeros((1_000_000, 0), np.int32)
    tensors["chances"] = np.arange(1, 1_000_001) / 1_000_000


def templates(*lines: str) -> Change:
    return lambda header, tensors: header["task"].update(templates=list(lines))


def long_option(header: Header, tensors: Tensors) -> None:
    header["task"]["options"]["learner"] = "a" * 3000


def no_policy(header: Header, tensors: Tensors) -> None:
    header["task"]["options"]["policy"] = "neural "


SENTENCES: dict[str, tuple[str, Change, str]] = {
    "a long option": ("tagger", long_option, "option 'learner' is 'aaa"),
    "a policy of no kind": ("tagger", no_policy, "the policy is 'neural '"),
    "40,001 labels of spans": ("tagger", many_types, "types of spans"),
    "a code of 40,001 labels": ("tagger", code_of_many, "GB of memory"),
    "words that overlap": ("tagger", overlapping_words, "vocabulary"),
    "100,000 templates": ("tagger", templates(*(f"suffix{k}" for k in range(1, 100_001))), "4096 templates"),
    "100,000 templates of a parser": ("parser", templates(*(f"S0.suffix{k + 1}" for k in range(100_000))), "4096"),
    "a long range": ("tagger", templates("suffix1..20000000"), "the range 1..20000000"),
    "a long range of a parser": ("parser", templates("S0.suffix1..20000000"), "the range 1..20000000"),
    "a number of many digits": ("parser", templates("S0.suffix" + "9" * 5000), "there is no attribute"),
    "a range of many digits": ("tagger", templates("word[" + "9" * 5000 + "]"), "is not an atom"),
    "50,000 columns": ("tagger", many_columns, ""),
    "a setting to compare with": ("tagger", large_setting, "trained with another following"),
    "a wide beam": ("parser", lambda h, t: h["task"]["options"].update(beam=10**9), "beam is 1000000000"),
    "a relation many times": ("parser", repeated_relations, "named twice"),
    "a million policies": ("parser", many_policies, "GB of memory"),
    "a code without end": ("tagger", lambda h, t: h.update(thresholds=1 << 40), "GB of memory"),
}


@pytest.mark.parametrize("what", SENTENCES)
def test_taggers_and_parsers(what: str, tmp_path: Path) -> None:
    name, change, message = SENTENCES[what]
    error = cost(rewritten(name, change, tmp_path))
    assert isinstance(error, ModelFileError) == bool(message) and message in str(error)


def test_parts_of_a_pipeline_share_what_the_file_may_take(tmp_path: Path) -> None:
    def many_parts(header: Header, tensors: Tensors) -> None:
        own = {k.partition("/")[2]: v for k, v in tensors.items() if k.startswith("upos/")}
        names = [f"tag{k}" for k in range(16)]
        header["task"]["tags"], part = names, header["parts"].pop("upos")
        labels(part, [f"{k:04}" for k in range(2000)])
        part["thresholds"] = 1  # a code of 2047 subsets of 2000 labels takes 30 MB
        for name in names:
            header["parts"][name] = part
            tensors |= {f"{name}/{k}": v for k, v in own.items()}

    assert "GB of memory" in str(cost(rewritten("pipeline", many_parts, tmp_path)))


def test_a_part_of_a_pipeline_is_read_once(tmp_path: Path) -> None:
    path = rewritten("pipeline", lambda h, t: h["task"].update(tags=["upos"] * 10_000), tmp_path)
    assert "its parts are not those it names" in str(cost(path))


# --- classifiers ------------------------------------------------------------------------------------------------------


def overlapping_texts(header: Header, tensors: Tensors) -> None:
    count = 10_000
    tensors["task.table.texts"] = np.full(1 << 20, 97, np.uint8)
    tensors["task.table.begin"] = np.arange(count)
    tensors["task.table.end"] = np.full(count, 1 << 20)
    tensors["task.table.categories"] = np.array([0, 0, count])


def classes(header: Header, names: list[str], tree: Any) -> None:
    header["task"].update(classes=names, tree=tree)


def wide_tree(header: Header, tensors: Tensors) -> None:
    names, half = [f"{k}" for k in range(40_000)], 20_000
    classes(header, names, [*range(half), *([k] for k in range(half, 2 * half))])


def thin_tree(header: Header, tensors: Tensors) -> None:
    def below(label: int, depth: int) -> Any:
        return [below(label, depth - 1)] if depth else label

    classes(header, [f"{k}" for k in range(100)], [below(k, 300) for k in range(100)])
    tensors["task.costs"] = 1.0 - np.eye(100)


def many_pairs(header: Header, tensors: Tensors) -> None:
    edges, table = np.arange(1000.0), header["task"]["table"]
    table["columns"] = [c | {"kind": "number", "background": 0} for c in table["columns"]]
    names = [c["name"] for c in table["columns"]]
    table["interactions"] = [names] * 2000
    tensors |= {f"task.table.{name}": array for name, array in zip(("texts", "begin", "end"), texts_of([]))}
    tensors["task.table.edges"] = np.concatenate([edges, edges])
    tensors["task.table.bins"] = np.array([0, 1000, 2000])
    tensors["task.table.categories"] = np.zeros(3, np.int64)


def one_long_name(header: Header, tensors: Tensors) -> None:
    count = 20_000
    classes(header, ["a" * count, *(f"{k}" for k in range(1, count))], list(range(count)))


TABLES: dict[str, tuple[Change, str]] = {
    "texts that overlap": (overlapping_texts, "do not lie one after the other"),
    "16 million columns": (lambda h, t: h["task"].update(features=1 << 24), "the columns are too many"),
    "a wide tree": (wide_tree, "which are too many"),
    "a tree of nodes with one child": (thin_tree, "which are too many"),
    "2,000 million pairs of values": (many_pairs, "more than four million pairs"),
    "one long name": (one_long_name, "differ too much in length"),
    "many missing values": (lambda h, t: h["task"]["table"].update(missing=["x"] * 100_000), "too many"),
}


@pytest.mark.parametrize("what", TABLES)
def test_classifiers(what: str, tmp_path: Path) -> None:
    change, message = TABLES[what]
    assert message in str(cost(rewritten("classifier", change, tmp_path)))


# --- weights ----------------------------------------------------------------------------------------------------------


def own(path: Path) -> Any:
    return lols.load(path, Tagging, compiled=False)


def hashed(bits: int, count: int = 0) -> Change:
    """Weights in a table of 2**bits rows: those of the model, and one in each of further rows."""

    def change(header: Header, tensors: Tensors) -> None:
        header["shared_bits"] = header["single_bits"] = bits
        tensors["shared.features"] = np.arange(tensors["shared.features"].size)
        if count:
            tensors["shared.features"] = np.arange(count) * ((1 << bits) // count)
            tensors["shared.counts"] = np.ones((1, count), np.int32)
            tensors["shared.columns"] = np.zeros(count, np.uint8)
            tensors["shared.values"] = np.ones(count, np.float32)

    return change


def test_actions_are_compared_before_anything_is_made_of_them(tmp_path: Path) -> None:
    def change(header: Header, tensors: Tensors) -> None:
        header["space"]["actions"], header["thresholds"] = 40_001, 4

    assert "trained for 40001 actions; this space has 3" in str(cost(rewritten("own", change, tmp_path), own))


@pytest.mark.parametrize(("bits", "count"), [(24, 0), (26, 0), (26, 20_000), (30, 0), (30, 20_000)])
def test_tables_of_which_most_is_empty_take_little(bits: int, count: int, tmp_path: Path) -> None:
    path = rewritten("own", hashed(bits, count), tmp_path)
    before = resident()
    model = cost(path, own)
    if isinstance(model, ModelFileError):  # a machine without so many addresses
        assert bits == 30
        return
    model.predict(DATA[:3])
    assert resident() - before < LEAST + TIMES * path.stat().st_size
    assert model.policy.stack.shape == (1, 1 << bits, 3) and np.count_nonzero(model.policy.stack[0, :100]) > 0


def test_rows_without_weights_take_nothing(tmp_path: Path) -> None:
    def change(header: Header, tensors: Tensors) -> None:
        labels(header, [f"{k:05}" for k in range(30_000)])
        rows(tensors, 60_000)

    before, path = resident(), rewritten("tagger", change, tmp_path)
    tagger = cost(path)
    assert tagger.model_.policy.stack.shape == (1, 60_000, 30_000)  # 7.2 GB
    assert resident() - before < LEAST


def test_weights_that_take_too_much_are_refused_unless_allowed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def change(header: Header, tensors: Tensors) -> None:  # each weight on a page of its own
        labels(header, [f"{k:05}" for k in range(1 << 14)])
        rows(tensors, 1000)
        tensors["shared.counts"][:] = 16
        tensors["shared.columns"] = np.tile(np.arange(16, dtype=np.int32) * 1024, 1000)
        tensors["shared.values"] = np.ones(16_000, np.float32)

    monkeypatch.setattr(room, "LEAST", 1 << 20)
    path = rewritten("tagger", change, tmp_path)
    error = cost(path)
    assert "its weights take 0.1 GB of memory" in str(error) and "set LOLS_MODEL_GB=0.1" in str(error)
    monkeypatch.setenv("LOLS_MODEL_GB", "0.1")
    assert lols.load(path).model_.policy.stack.shape == (1, 1000, 1 << 14)
    monkeypatch.setenv("LOLS_MODEL_GB", "much")
    with pytest.raises(ConfigurationError, match="LOLS_MODEL_GB is 'much': give a number of gigabytes"):
        lols.load(path)
