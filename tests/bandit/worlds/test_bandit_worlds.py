"""Tagging and parsing as worlds for a bandit: contracts, rules, losses, and what is known of a sentence."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lols
from lols.bandit import StructuredBandit
from lols.bandit.one import OneByOne
from lols.bandit.worlds.parsing_world import parsing_world
from lols.bandit.worlds.registry import generated_sentences, load_world, read_sentences
from lols.bandit.worlds.sentences import distinct, in_passes
from lols.bandit.worlds.tagging_world import SEEN, TagLexicon, tagging_world
from lols.bandit.worlds.world import World
from lols.datasets.grammar import generate, write_conllu
from lols.errors import LolsError

pytestmark = pytest.mark.slow  # the reproduction of the paper, and long runs

MADE: list[dict[str, Any]] = [{"forms": s.forms, "tags": s.upos, "heads": s.heads} for s in generate(260, seed=11)]
TRAIN, HELD_OUT = MADE[:200], MADE[200:]
ODD: dict[str, Any] = {
    "forms": ["Qx-7", "THE", "the"],
    "tags": ["X", "DET", "NOUN"],
    "heads": [3, 3, 0],
}  # with a tag never seen
ALONE: dict[str, Any] = {"forms": ["Go"], "tags": ["VERB"], "heads": [0]}
WORLDS = {"tagging": tagging_world(TRAIN, HELD_OUT), "parsing": parsing_world(TRAIN, HELD_OUT)}
BOTH = pytest.mark.parametrize("world", WORLDS.values(), ids=WORLDS.keys())


def short(world: World, count: int = 8) -> list[Any]:
    """Some short sentences that arrive, and one that is new."""
    return [*sorted(world.arrivals(100, 0), key=lambda obj: len(obj["forms"]))[5 : 5 + count], ODD, ALONE]


def walked(world: World, obj: Any, draws: Iterator[float]) -> tuple[Any, float, float]:
    """Output, loss and sum of costs after legal actions drawn at random; the rule is asked in every state."""
    x, y = lols.Examples(world.space, [obj]).example(0)
    space, sizes, rule = world.space, world.space.sizes, world.reference.action
    assert callable(sizes.state) and space.cost is not None and rule is not None
    s, costs = np.zeros(sizes.state(x), np.int32), 0.0
    space.start(x, s)
    while True:
        legal = np.zeros(sizes.actions, bool)
        space.actions(x, s, legal)
        if not legal.any():
            return space.output(x, s), float(space.loss(x, y, s)), costs
        assert legal[rule(x, None, s)]  # and it does not look at the truth
        able = np.flatnonzero(legal)
        a = int(able[int(next(draws) * able.size)])
        costs += space.cost(x, y, s, a)
        space.step(x, s, a)


def by_rule(world: World, obj: Any) -> Any:
    return StructuredBandit(world.space, world.reference, compiled=False).show_reference(obj)


def bare(obj: Any) -> Any:
    return {name: value for name, value in obj.items() if name in ("forms", "tags", "lexicon")}


# --- the contract -----------------------------------------------------------------------------------------------------


@BOTH
def test_spaces_keep_the_contract(world: World) -> None:
    objects = short(world)
    assert lols.checks.check_space(world.space, objects, world.reference, rollouts=6) == []
    assert not world.reference.needs_truth


@BOTH
@given(which=st.integers(0, 9), seed=st.integers(0, 2**32 - 1))
def test_the_rule_is_legal_everywhere_and_losses_are_those_of_the_world(world: World, which: int, seed: int) -> None:
    obj = short(world)[which]
    output, loss, costs = walked(world, obj, iter(np.random.default_rng(seed).random(1000)))
    truth = obj["tags"] if world.name == "tagging" else obj["heads"]
    wrong = sum(a != b for a, b in zip(truth, output, strict=True))
    assert loss == pytest.approx(wrong / len(truth)) == world.loss(obj, output) == world.feedback(obj, output, seed)
    assert costs == pytest.approx(loss) and 0 <= loss <= 1


@BOTH
def test_objects_are_encoded_without_truth_and_at_once(world: World) -> None:
    one = OneByOne(world.space)
    for obj in short(world):
        hidden = bare(obj)
        if world.name == "tagging":
            hidden.pop("tags")
        with_truth, without = world.space.encode(obj), world.space.encode(hidden)
        assert with_truth.y is not None and without.y is None
        assert {k: np.asarray(v).tolist() for k, v in with_truth.x.items()} == {
            k: np.asarray(v).tolist() for k, v in without.x.items()
        }
        assert one._quick(hidden) is not None  # what needs a closer look would take much longer


@pytest.mark.parametrize("name", WORLDS)
def test_compiled_or_not_the_decisions_are_the_same(name: str) -> None:
    world = WORLDS[name]
    options: dict[str, Any] = {"epsilon": 0.5, "advice": 0.1, "seed": 3}
    made = []
    for compiled in (True, False):
        bandit = StructuredBandit(world.space, world.reference, compiled=compiled, **options)
        outputs = []
        for obj in short(world) * 2:
            shown = bandit.decide(obj)
            bandit.learn(shown.id, world.feedback(obj, shown.output, 0))
            outputs.append((shown.output, shown.explored))
        made.append((outputs, bandit.predict(HELD_OUT[0])))
    assert made[0] == made[1]


# --- rules, chance, and full information ------------------------------------------------------------------------------


def test_the_parsing_rule_attaches_to_the_right_neighbour() -> None:
    for obj in short(WORLDS["parsing"]):
        assert by_rule(WORLDS["parsing"], obj) == [*range(2, len(obj["forms"]) + 1), 0]
    right = mean(WORLDS["parsing"].loss(obj, [*range(2, len(obj["heads"]) + 1), 0]) for obj in MADE)
    left = mean(WORLDS["parsing"].loss(obj, [*range(len(obj["heads"]))]) for obj in MADE)
    assert right < left - 0.1


def test_the_tagging_rule_gives_the_most_frequent_tag_of_other_sentences() -> None:
    world, lexicon = WORLDS["tagging"], TagLexicon.of(TRAIN)
    once = _tags_of_words_seen_once(TRAIN)
    default = min(set(once), key=lambda tag: (-once.count(tag), tag))
    arriving = {tuple(obj["forms"]): obj for obj in world.arrivals(200, 0)}
    for place in (0, 17, 42):
        others = TRAIN[:place] + TRAIN[place + 1 :]
        for given_, pool in ((arriving[tuple(TRAIN[place]["forms"])], others), (HELD_OUT[place], TRAIN)):
            expected, seen = [], []
            for form in given_["forms"]:
                counts = Counter(t for obj in pool for f, t in zip(obj["forms"], obj["tags"], strict=True) if f == form)
                expected.append(min(counts, key=lambda tag: (-counts[tag], tag)) if counts else default)
                seen.append(sum(counts.total() >= least for least in SEEN))
            assert by_rule(world, given_) == expected
            entries = given_.get("lexicon") or lexicon.look_up(given_["forms"])
            assert entries.seen.tolist() == seen


def _tags_of_words_seen_once(objects: list[Any]) -> list[str]:
    pairs = [pair for obj in objects for pair in zip(obj["forms"], obj["tags"], strict=True)]
    counts = Counter(form for form, _ in pairs)
    return [tag for form, tag in pairs if counts[form] == 1]


@BOTH
def test_chance_is_legal_repeatable_and_worse_than_the_rule(world: World) -> None:
    objects = [*short(world), *HELD_OUT[:20]]
    for obj in objects:
        made = world.at_random(obj, 5)
        assert made == world.at_random(obj, 5) and len(made) == len(obj["forms"])
        if world.name == "parsing":
            assert made.count(0) == 1
            lols.tasks.parsing.trees.check_heads(np.array(made) - 1, np.array([0, len(made)]))
            assert lols.tasks.parsing.trees.check_trees(
                np.array(made) - 1, np.array([0, len(made)])
            ).cycles.tolist() == [-1]
    chance = mean(world.loss(obj, world.at_random(obj, k)) for obj in HELD_OUT for k in range(3))
    assert mean(world.loss(obj, by_rule(world, obj)) for obj in HELD_OUT) < chance


@pytest.mark.parametrize("name", WORLDS)
def test_full_information_is_much_better_than_the_rule(name: str) -> None:
    world = WORLDS[name]
    predict = world.full_information(world.arrivals(600, 1), 1)
    learned = mean(world.loss(obj, out) for obj, out in zip(HELD_OUT, predict(HELD_OUT), strict=True))
    assert learned < 0.75 * mean(world.loss(obj, by_rule(world, obj)) for obj in HELD_OUT)


def test_a_crossing_tree_can_be_learned_from() -> None:
    crossing = {"forms": list("abcd"), "tags": ["X"] * 4, "heads": [0, 4, 1, 1]}
    world = parsing_world([crossing, *TRAIN[:5]], [crossing])
    assert len(world.full_information([crossing, *TRAIN[:5]], 0)([crossing])[0]) == 4
    assert world.loss(crossing, [0, 4, 1, 1]) == 0.0


# --- arrivals and words -----------------------------------------------------------------------------------------------


def test_arrivals_come_in_passes() -> None:
    made = in_passes(list(range(7)), 17, 3)
    assert sorted(made[:7]) == sorted(made[7:14]) == list(range(7)) and made[:7] != made[7:14]
    assert in_passes(list(range(7)), 10, 3) == made[:10] != in_passes(list(range(7)), 10, 4) and len(made) == 17
    objects: list[dict[str, Any]] = [{}, {}, {}]
    once, passes = distinct([*objects, *objects[:2]])
    assert len(once) == 3 and passes == 2 and distinct(objects[:1]) == ([{}], 1)


# --- by name ----------------------------------------------------------------------------------------------------------


def test_worlds_are_loaded_by_name(tmp_path: Path) -> None:
    files = [tmp_path / "ewt-train.conllu", tmp_path / "ewt-test.conllu"]
    for path, seed in zip(files, (1, 2), strict=True):
        write_conllu(path, generate(10, seed))
    for name in WORLDS:
        world = load_world(name, files)
        assert world.name == name and world.held_out == read_sentences(files[1]) and len(world.arrivals(25, 0)) == 25
    assert load_world("layout").name == "layout"
    train, held_out = generated_sentences()
    assert load_world("parsing").held_out == held_out and len(train) == 4 * len(held_out) == 4000


def test_what_is_wrong_is_said_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "ewt-train.conllu.gz").write_bytes(b"")
    (tmp_path / "no-tags.conllu").write_text("1\tGo\t_\t_\t_\t_\t0\troot\t_\t_\n\n")
    cases: list[tuple[str, Any, str]] = [
        ("chess", None, "unknown world 'chess': choose layout, tagging, parsing"),
        ("layout", tmp_path, "generates its own data: leave the files out"),
        ("tagging", tmp_path / "nowhere", "is not a folder: give the one that holds ewt-train.conllu.gz and"),
        ("tagging", tmp_path, "there is no ewt-test.conllu.gz in .*: put it there, or give two CoNLL-U files"),
        ("parsing", [tmp_path], "there are 1 files: give two"),
        ("tagging", [tmp_path / "no-tags.conllu"] * 2, "line 1: there is no tag; give a file with UPOS filled in"),
        ("tagging", [tmp_path / "a.conllu"] * 2, "a.conllu"),
    ]
    for name, data, message in cases:
        with pytest.raises(LolsError, match=message) as caught:
            load_world(name, data)
        assert "\n" not in str(caught.value)
    for name, world in WORLDS.items():
        with pytest.raises(LolsError, match=r"a sentence has no words|0 words and 0 tags"):
            world.space.encode({"forms": [], "tags": []})
        with pytest.raises(LolsError, match="2 words and 1 tags: give one for each"):
            world.space.encode({"forms": ["a", "b"], "tags": ["X"]})
        with pytest.raises(LolsError, match="there is no tagged sentence"):
            (tagging_world if name == "tagging" else parsing_world)([], [])
    with pytest.raises(LolsError, match="1 words and 2 heads: give one for each"):
        WORLDS["parsing"].space.encode({"forms": ["a"], "tags": ["X"], "heads": [0, 1]})


@pytest.mark.data
@pytest.mark.skipif("LOLS_DATA" not in os.environ, reason="LOLS_DATA does not name the folder of data sets")
def test_rules_of_the_english_web_treebank() -> None:
    expected = {"tagging": (0.17, 0.18), "parsing": (0.65, 0.67)}
    for name, (least, most) in expected.items():
        world = load_world(name, os.environ["LOLS_DATA"])
        bandit = StructuredBandit(world.space, world.reference)
        assert len(world.held_out) == 2077
        assert least < mean(world.loss(obj, bandit.show_reference(obj)) for obj in world.held_out) < most
