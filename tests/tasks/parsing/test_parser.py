"""lols.Parser: scikit-learn's habits, what it is given, what it gives, and that one seed gives one result."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import lols
from lols import Parser
from lols.errors import ConfigurationError, LolsError, ModelFileError
from lols.io.model_file import read_tensors, write_tensors

DETS, ADJS, NOUNS, VERBS = ("the", "a"), ("old", "big"), ("dog", "cat", "man"), ("sees", "likes", "hears")
TAGS = dict.fromkeys(DETS, "DET") | dict.fromkeys(ADJS, "ADJ") | dict.fromkeys(NOUNS, "NOUN")
TAGS |= dict.fromkeys(VERBS, "VERB") | {"here": "ADV", ".": "PUNCT"}
QUIET: dict[str, Any] = {"passes": 2, "progress": False}


def grammar(count: int, seed: int = 0, noise: float = 0.0) -> tuple[list[list[str]], list[list[tuple[int, str]]]]:
    """Sentences like `the old dog sees a cat here .`, and their trees; with noise, heads that are not right."""
    random = np.random.default_rng(seed)
    sentences, trees = [], []
    for _ in range(count):
        words: list[str] = []
        arcs: dict[int, tuple[int, str]] = {}

        def phrase(words: list[str] = words, arcs: dict[int, tuple[int, str]] = arcs) -> int:
            first = len(words) + 1
            words += [str(random.choice(DETS))] * (random.random() < 0.7)
            words += [str(random.choice(ADJS))] * (random.random() < 0.4) + [str(random.choice(NOUNS))]
            for k in range(first, len(words)):
                arcs[k] = (len(words), "det" if words[k - 1] in DETS else "amod")
            return len(words)

        subject = phrase()
        words.append(str(random.choice(VERBS)))
        verb = len(words)
        arcs |= {subject: (verb, "nsubj"), verb: (0, "root")}
        if random.random() < 0.6:
            arcs[phrase()] = (verb, "obj")
        for word, relation in (("here", "advmod"), (".", "punct")):
            if random.random() < 0.5:
                words.append(word)
                arcs[len(words)] = (verb, relation)
        for k in range(1, len(words) + 1):
            if random.random() < noise and k != verb:
                arcs[k] = (verb, str(random.choice(["det", "obj", "amod"])))
        sentences.append(words)
        trees.append([arcs[k + 1] for k in range(len(words))])
    return sentences, trees


def tagged(sentences: list[list[str]]) -> list[list[dict[str, str]]]:
    return [[{"word": word, "upos": TAGS[word]} for word in sentence] for sentence in sentences]


# The last word belongs to the first, across the root.
CROSSED = [["dog", "sees", "here", "old"], ["cat", "hears", "here", "big"], ["man", "likes", "old"]]
CROSSED_TREES = [
    [(2, "nsubj"), (0, "root"), (2, "advmod"), (1, "acl")],
    [(2, "nsubj"), (0, "root"), (2, "advmod"), (1, "acl")],
    [(2, "nsubj"), (0, "root"), (1, "acl")],
]
SEVERAL = [["dog", "sees"], ["cat", "here", "hears"]]  # several roots
SEVERAL_TREES = [[(0, "root"), (0, "root")], [(0, "root"), (3, "advmod"), (0, "root")]]
WORDS, GOLD = grammar(40)
UNSEEN, UNSEEN_GOLD = grammar(25, seed=1)


def parser(**options: Any) -> Parser:
    return Parser(**(QUIET | options))


def test_trees_must_be_given() -> None:
    made = parser().fit(WORDS, GOLD)
    for verb in (parser().fit, parser().partial_fit, made.partial_fit, made.evaluate, made.calibrate_with):
        with pytest.raises(LolsError, match="there are no trees to learn from, or to compare with: give one for each"):
            verb(WORDS)
    assert made.partial_fit([], []) is made and made._stream is None


def tensors(made: Parser) -> dict[str, Any]:
    return {name: (t.dtype.str, t.shape, t.tobytes()) for name, t in made.contents()[1].items()}


def assert_trees(found: list[list[tuple[int, str]]], *, many: bool = False) -> None:
    """Every word leads to a root, and there is one root unless there may be many."""
    for tree in found:
        roots = [k for k, (head, _) in enumerate(tree, 1) if head == 0]
        assert not tree or (roots if many else len(roots) == 1)
        for k in range(1, len(tree) + 1):
            for _ in tree:
                k = tree[k - 1][0] if k else 0
            assert k == 0


@pytest.fixture(scope="module")
def fitted() -> Parser:
    return parser().fit(WORDS, GOLD)


# --- scikit-learn's habits --------------------------------------------------------------------------------------------


def test_parameters_can_be_read_changed_and_cloned(fitted: Parser) -> None:
    made = Parser(passes=3, seed=7, labelling="second")
    params = made.get_params()
    assert params["passes"] == 3 and params["seed"] == 7 and params["rate"] is None and params["beam"] == 1
    assert clone(made).get_params() == params and made.set_params(passes=4) is made and made.passes == 4
    assert fitted.get_params() == parser().get_params() and "passes=2" in repr(fitted)
    with pytest.raises(NotFittedError):
        clone(fitted).predict(WORDS)


def test_a_parser_that_knows_nothing_says_so(tmp_path: Path) -> None:
    made = parser()
    calls: list[Any] = [
        made.predict,
        lambda x: made.predict_one(x[0]),
        lambda x: made.score(x, GOLD),
        lambda x: made.relations_,
    ]
    for call in (*calls, lambda x: made.save(tmp_path / "m.lols")):
        with pytest.raises(NotFittedError, match="this Parser is not trained yet: call fit first"):
            call(WORDS)
    assert not list(tmp_path.iterdir())


# --- fit, predict, score ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("view", [lambda s: s, tagged], ids=["strings", "dictionaries"])
def test_it_learns_a_grammar(view: Any) -> None:
    made = parser(passes=4).fit(view(WORDS), GOLD)
    assert made.predict(view(UNSEEN)) == UNSEEN_GOLD
    found = made.evaluate(view(UNSEEN), UNSEEN_GOLD)
    assert made.score(view(UNSEEN), UNSEEN_GOLD) == found.las == found.uas == found.clas == found.exact == 1.0
    assert found.words == sum(map(len, UNSEEN)) and found.sentences == len(UNSEEN)
    assert made.predict_one(view(UNSEEN[:1])[0]) == UNSEEN_GOLD[0]
    assert made.relations_ == sorted({r for tree in GOLD for _, r in tree})
    assert not any(made.prepared_.values())


def test_heads_alone_are_enough() -> None:
    heads = [[head for head, _ in tree] for tree in GOLD]
    made = parser(passes=4).fit(WORDS, heads)
    assert made.task_.labelling == "none" and set(made.relations_) == {"dep", "root"}
    wanted = [[(head, "dep" if head else "root") for head, _ in tree] for tree in UNSEEN_GOLD]
    assert made.predict(UNSEEN) == wanted
    assert made.score(UNSEEN, UNSEEN_GOLD) == made.evaluate(UNSEEN, UNSEEN_GOLD).uas == 1.0
    again = parser(passes=4).fit(WORDS, [np.array(tree) for tree in heads])
    assert tensors(again) == tensors(made)


def test_columns_that_are_missing_are_empty() -> None:
    """As in a tagger."""
    made = parser().fit(tagged(WORDS), GOLD, dev=(UNSEEN, UNSEEN_GOLD))
    assert_trees(made.predict(UNSEEN))
    bare = [[{"word": word, "upos": ""} for word in sentence] for sentence in UNSEEN]
    assert made.predict(UNSEEN) == made.predict(bare)


@pytest.mark.parametrize("beam", [1, 4])
def test_short_and_long_sentences(fitted: Parser, beam: int) -> None:
    made = copy.copy(fitted).set_params(beam=beam)
    assert made.predict([]) == [] and made.predict([[]]) == [[]] and made.predict_one([]) == []
    assert made.predict_one(["dog"]) == [(0, "root")]
    long = [*(["the", "old", "dog"] * 50), "sees", *(["a", "cat"] * 75)][:300]
    found = made.predict([[], long, ["never-seen"], [], UNSEEN[0]])
    assert [len(tree) for tree in found] == [0, 300, 1, 0, len(UNSEEN[0])]
    assert_trees(found)
    assert found[4] == made.predict_one(UNSEEN[0])


def test_one_word_to_learn_from() -> None:
    made = parser().fit([["go"]], [[(0, "root")]])
    assert made.predict_one(["go"]) == [(0, "root")] and made.predict_one(["a", "b"]) == [(0, "root"), (1, "dep")]


def test_beams(fitted: Parser) -> None:
    greedy = fitted.predict(UNSEEN)
    wide = copy.copy(fitted)
    for beam in (1, 4):
        found = wide.set_params(beam=beam).predict(UNSEEN)
        assert_trees(found)
        assert found == greedy or beam > 1
    for beam in (0, -1):
        with pytest.raises(LolsError):
            wide.set_params(beam=beam).predict(UNSEEN)
    with pytest.raises(ConfigurationError):
        parser(algorithm="searn", beam=4).fit(WORDS, GOLD).predict(UNSEEN)


@pytest.mark.uncompiled
@settings(max_examples=15)
@given(
    st.lists(st.lists(st.sampled_from([*TAGS, "new"]), max_size=9), min_size=1, max_size=5),
    st.sampled_from(["one", "many"]),
    st.sampled_from(["joint", "second", "none"]),
    st.integers(0, 2**32),
)
def test_whatever_it_learned_it_gives_trees(data: Any, roots: str, labelling: str, seed: int) -> None:
    random = np.random.default_rng(seed)
    words = [list(map(str, random.choice([*TAGS], random.integers(1, 7)))) for _ in range(4)]
    trees = [random_tree(random, len(sentence)) for sentence in words]
    made = parser(passes=1, roots=roots, labelling=labelling, batch_size=1).fit(words, trees)
    assert_trees(made.predict(data), many=roots == "many")
    assert_trees(made.predict(words), many=roots == "many")


def random_tree(random: Any, length: int) -> list[tuple[int, str]]:
    """Any tree: each word hangs on one that came before it in some order, or on the root."""
    order = random.permutation(length)
    made = [(0, "root")] * length
    for k in range(1, length):
        if random.random() < 0.9:
            made[order[k]] = (int(order[random.integers(0, k)]) + 1, str(random.choice(["x", "y", "root"])))
    return made


# --- roots, relations, punctuation, crossing arcs ---------------------------------------------------------------------


def test_several_roots() -> None:
    words, trees = SEVERAL * 8, SEVERAL_TREES * 8
    for roots in ("many", "auto"):
        made = parser(roots=roots, passes=6).fit(words, trees)
        assert made.task_.roots == "many" and made.predict(SEVERAL) == SEVERAL_TREES
        assert made.prepared_["mended"] == 0
    made = parser(roots="one").fit(words, trees)
    assert_trees(made.predict(SEVERAL))
    assert made.task_.roots == "one" and made.prepared_["mended"] == 16 and made.mended_.tolist() == list(range(16))
    few = parser(roots="auto").fit(SEVERAL[:1] + WORDS * 3, SEVERAL_TREES[:1] + GOLD * 3)
    assert few.task_.roots == "one" and few.prepared_["mended"] == 1 and few.mended_.tolist() == [0]
    assert parser(roots="auto").fit(SEVERAL[:1] + WORDS, SEVERAL_TREES[:1] + GOLD).task_.roots == "many"


@pytest.mark.parametrize("labelling", ["joint", "second"])
def test_crossing_arcs_are_lifted_and_restored(labelling: str) -> None:
    made = parser(passes=8, labelling=labelling).fit(CROSSED * 5, CROSSED_TREES * 5)
    assert [made.prepared_[name] for name in ("nonprojective", "lifted", "mended")] == [15, 15, 0]
    assert "acl↑nsubj" in made.task_.relations and made.relations_ == ["acl", "advmod", "nsubj", "root"]
    assert made.predict(CROSSED) == CROSSED_TREES and made.score(CROSSED, CROSSED_TREES) == 1.0
    bare = parser(passes=8, labelling="none").fit(CROSSED * 5, CROSSED_TREES * 5)
    assert [[head for head, _ in tree] for tree in bare.predict(CROSSED)] == [[2, 0, 2, 2], [2, 0, 2, 2], [2, 0, 2]]


def test_one_relation_needs_no_choice() -> None:
    words, trees = [["a", "b"], ["b", "c"]], [[(2, "x"), (0, "Pred")], [(2, "x"), (0, "ExD")]]
    made = parser(passes=3).fit(words * 4, trees * 4)
    assert made.task_.labelling == "none" and made.predict(words) == [[(2, "x"), (0, "Pred")]] * 2


@pytest.mark.parametrize("labelling", ["joint", "second", "none", "auto"])
def test_labelling(labelling: str) -> None:
    made = parser(labelling=labelling, passes=4).fit(WORDS, GOLD)
    assert made.task_.labelling == ("joint" if labelling == "auto" else labelling)
    assert made.score(UNSEEN, UNSEEN_GOLD) > 0.97
    if labelling == "none":
        assert {r for tree in made.predict(UNSEEN) for _, r in tree} == {"dep", "root"}
        assert made.evaluate(UNSEEN, UNSEEN_GOLD).las < 0.5


def test_punctuation_counts_unless_told_otherwise(fitted: Parser) -> None:
    made = parser(punctuation=False, passes=4).fit(WORDS, GOLD)
    assert tensors(made) != tensors(parser(passes=4).fit(WORDS, GOLD))
    found = made.evaluate(UNSEEN, UNSEEN_GOLD, punctuation=False)
    assert found.las == 1.0 and found.words == sum(w != "." for s in UNSEEN for w in s)
    assert fitted.evaluate(UNSEEN, UNSEEN_GOLD).words == sum(map(len, UNSEEN))


# --- algorithms and teachers ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("reference", ["optimal", "suboptimal", "bad"])
@pytest.mark.parametrize("algorithm", ["lols", "aggrevate", "dagger", "cloning", "searn"])
def test_every_algorithm_learns_from_every_teacher(algorithm: str, reference: str) -> None:
    made = parser(algorithm=algorithm, reference=reference).fit(WORDS[:20], GOLD[:20])
    assert made.model_.about["algorithm"]["name"] == algorithm
    assert_trees(made.predict(UNSEEN))
    assert reference != "optimal" or made.score(UNSEEN, UNSEEN_GOLD) > 0.7


@pytest.mark.parametrize(
    ("options", "wanted"),
    [
        ({}, "aggrevate"),
        ({"reference": "suboptimal"}, "lols"),
        ({"reference": "bad"}, "lols"),
        ({"roll_out": "learned"}, "lols"),
        ({"beta": 0.3}, "lols"),
        ({"mix": "expected"}, "lols"),
        ({"prune": None}, "lols"),
        ({"learner": "csoaa"}, "aggrevate"),
    ],
)
def test_auto(options: dict[str, Any], wanted: str) -> None:
    made = parser(passes=1, **options).fit(WORDS[:5], GOLD[:5])
    chosen = made.model_.about["algorithm"]
    assert made.algorithm == "auto" and chosen["name"].startswith(wanted)
    assert (chosen["beta"] == "auto") == (options == {"reference": options.get("reference")} and wanted == "lols")
    assert chosen["prune"] == (2 if wanted == "lols" and not {"reference", "prune"} & {*options} else None)


# --- one seed, one result ---------------------------------------------------------------------------------------------


def test_one_seed_gives_one_file_on_any_number_of_threads(tmp_path: Path) -> None:
    made = [parser(seed=3, threads=threads, batch_size=8).fit(WORDS, GOLD) for threads in (1, 1, 2)]
    for k in (0, 1):
        made[k].save(tmp_path / f"{k}.lols")
    assert (tmp_path / "0.lols").read_bytes() == (tmp_path / "1.lols").read_bytes()
    assert tensors(made[0]) == tensors(made[2]) and made[0].predict(UNSEEN) == made[2].predict(UNSEEN)
    assert tensors(made[0]) != tensors(parser(seed=4, batch_size=8).fit(WORDS, GOLD))


def test_the_best_pass_is_kept() -> None:
    data, dev = grammar(25, seed=6, noise=0.5), grammar(15, seed=7, noise=0.3)
    made = parser(passes=8).fit(*data, dev=dev)
    history = made.model_.report["dev"]
    scores = [entry["las"] for entry in history]
    best = int(np.argmax(scores))
    assert len(history) == 8 and best < 7 and scores[best] > scores[-1], scores
    assert made.model_.about["best_pass"] == best + 1
    found = made.evaluate(*dev)
    assert found.las == scores[best] and found.uas == history[best]["uas"]
    assert tensors(parser(passes=8).fit(*data)) != tensors(made)
    patient = parser(passes=8, patience=1).fit(*data, dev=dev)
    stop = next(k for k in range(1, 8) if scores[k] <= max(scores[:k])) + 1
    assert [entry["las"] for entry in patient.model_.report["dev"]] == scores[:stop] and stop < 8


# --- model files ------------------------------------------------------------------------------------------------------


def test_a_model_file_holds_all_of_it(fitted: Parser, tmp_path: Path) -> None:
    fitted.save(tmp_path / "m.lols")
    for made in (Parser.load(tmp_path / "m.lols"), lols.load(tmp_path / "m.lols", threads=2)):
        assert isinstance(made, Parser) and made.predict(UNSEEN) == fitted.predict(UNSEEN)
        assert tensors(made) == tensors(fitted) and made.relations_ == fitted.relations_
        assert made.vocabulary_ == fitted.vocabulary_ and made.prepared_ == fitted.prepared_
        assert made.passes == 2 and made.seed == 0
    crossed = parser(passes=8).fit(CROSSED * 5, CROSSED_TREES * 5)
    crossed.save(tmp_path / "m.lols")
    assert Parser.load(tmp_path / "m.lols").predict(CROSSED) == CROSSED_TREES


def test_damaged_files_are_told_in_one_line(fitted: Parser, tmp_path: Path) -> None:
    path = tmp_path / "m.lols"
    fitted.save(path)
    whole = path.read_bytes()
    for size in (0, 5, 100, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:size])
        with pytest.raises(ModelFileError, match=r"m\.lols") as found:
            Parser.load(path)
        assert "\n" not in str(found.value)
    path.write_bytes(whole[: len(whole) // 2] + bytes([whole[len(whole) // 2] ^ 1]) + whole[len(whole) // 2 + 1 :])
    with pytest.raises(ModelFileError):
        Parser.load(path)
    lols.Tagger(**QUIET).fit([["a", "b"]], [["A", "B"]]).save(path)
    with pytest.raises(ModelFileError, match="not a parser"):
        Parser.load(path)


FILES = {"word": "form", "head": "head", "relation": "deprel", "use": {}, "format": None, "header": None}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *((name, value) for name in ("relations", "right", "left", "root", "templates", "columns", "labelling", "roots",
                                     "treebank") for value in (None, 7, "?", [None], [[1]], {"a": []})),
        ("options", None), ("options", 7), ("options", "?"), ("options", [[1]]),
        *((name, [number]) for name in ("right", "left") for number in (-1, 99, 2**70, True)),
        ("root", -1), ("root", 99), ("root", True), ("right", []), ("templates", ["word"]),
        ("options", {"beam": "x"}), ("options", {"beam": 0}), ("options", {"passes": "x"}),
        ("treebank", {"lifted": "x"}), ("files", 7), ("files", []), ("files", {"x": 1}),
        *(("files", FILES | {"use": value}) for value in ([1], "x", True, {"upos": 1})),
        ("files", FILES | {"word": 1}), ("files", FILES | {"header": "x"}), ("files", FILES | {"format": 3}),
        *((name, ...) for name in ("relations", "right", "root", "templates", "columns", "files", "fingerprint")),
    ],
)  # fmt: skip
def test_hostile_headers_are_told_in_one_line(fitted: Parser, tmp_path: Path, name: str, value: Any) -> None:
    fitted.save(tmp_path / "m.lols")
    header, arrays = read_tensors(tmp_path / "m.lols", "model")
    header["task"][name] = value
    if value is ...:
        del header["task"][name]
    write_tensors(tmp_path / "m.lols", header.pop("kind"), header, arrays)
    with pytest.raises(ModelFileError, match=r"m\.lols: ") as found:
        lols.load(tmp_path / "m.lols").predict(UNSEEN)
    assert "\n" not in str(found.value)
