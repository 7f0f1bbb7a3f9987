"""What `lols inspect` says of model files: features get the names that hash to their ids, and nothing else."""

from __future__ import annotations

import json
from itertools import product

import numpy as np
import pytest

import lols
from lols import Tagger
from lols.contract.features import feature
from lols.datasets.worlds import tagging_data, tagging_references, tagging_space
from lols.engine.table import features_by_row
from lols.front import train
from lols.kernels.hashing import mix
from lols.tasks.registry import read_model
from lols.tasks.tagging.inspect import find_names, speaking_features
from lols.tasks.tokens import feature_names
from lols.tasks.tokens.attributes import NOTHING, OUTSIDE, attribute_text, hash_text
from lols.tasks.tokens.encoding import key
from lols.tasks.tokens.templates import parse_templates
from tests.cli.command_line import error_line, run

TEMPLATES = [
    "bias", "word", "lower[-1]", "prefix2[+1]", "suffix1..3", "shape", "class", "length", "digits[-1]",
    "lower[-1] & lower", "lower[-1] & lower & lower[+1]", "suffix2 & shape", "bias & word",
    "tag[-1]", "tag[-1] & tag[-2]", "tag[-1] & lower", "suffix1 & tag[-3] & tag[-1]", "bias & tag[-2]",
    "lower & lower[+1] & tag[-1]", "pos", "pos[-1] & pos & tag[-1]", "pos & word", "cluster.prefix2", "cluster[+1]",
]  # fmt: skip
WORDS = [
    ["He", "was", "singing", "?"],
    ["They", "sing", "12", "old-time", "songs"],
    ["Was", "singing", "a", "song", "."],
]
TAGS = [["P", "V", "G", "."], ["P", "V", "D", "A", "N"], ["V", "G", "D", "N", "."]]
POS = [
    ["PRON", "AUX", "VERB", "PUNCT"],
    ["PRON", "VERB", "NUM", "ADJ", "NOUN"],
    ["AUX", "VERB", "DET", "NOUN", "PUNCT"],
]
CLUSTERS = {"singing": "0010", "sing": "0011", "song": "110"}


def sentences():
    return [[{"word": w, "pos": p} for w, p in zip(*pair, strict=True)] for pair in zip(WORDS, POS, strict=True)]


def slow_names(tagger) -> dict[int, str]:
    """Names of all features that these sentences can have: computed word by word, with every history of tags."""
    task, made = tagger.task_, {mix(hash_text("bias"), 0): "bias"}
    names = ["(start)" if task.direction == "forward" else "(end)", *task.inner_labels]
    columns = {"word": WORDS, "pos": POS, "cluster": [[CLUSTERS.get(w, "") for w in s] for s in WORDS]}
    for template in parse_templates(task.templates, task.columns):
        for k, sentence in enumerate(WORDS):
            for t, history in product(range(len(sentence)), product(range(len(names)), repeat=len(template.tags))):
                identity, atoms, tags, parts = (
                    key(template),
                    iter(template.atoms),
                    dict(zip(template.tags, history)),
                    [],
                )
                for part in template.text.split(" & "):
                    if part.startswith("tag["):
                        parts.append(f"{part} = {names[tags[-int(part[4:-1])]]}")
                        continue
                    atom = next(atoms)
                    if atom.attribute is None:
                        parts.append(part)
                        continue
                    at = t + atom.offset * (1 if task.direction == "forward" else -1)
                    if 0 <= at < len(sentence):
                        text = attribute_text(atom.attribute, columns[atom.column][k][at])
                        value = NOTHING if text is None else hash_text(text)
                        shown = f'"{text}"' if text in ("", "?") else text
                    else:
                        value, shown = OUTSIDE, "(start)" if at < 0 else "(end)"
                    identity = NOTHING if NOTHING in (identity, value) else mix(identity, value)
                    parts.append(f"{part} = {shown}")
                code = 0
                for number in history:
                    code = code * len(names) + number
                if identity != NOTHING:
                    made[mix(identity, code) if template.tags else identity] = " & ".join(parts)
    return made


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    path = tmp_path_factory.mktemp("inspect") / "small.lols"
    tagger = Tagger(templates=TEMPLATES, clusters=CLUSTERS, passes=3, seed=7, rate=0.5).fit(sentences(), TAGS)
    tagger.save(path)
    return path


@pytest.mark.parametrize("direction", ["forward", "backward"])
def test_every_feature_of_every_kind_of_template_has_its_name(tmp_path, direction):
    tagger = Tagger(templates=TEMPLATES, clusters=CLUSTERS, direction=direction, slack=None).fit(sentences(), TAGS)
    tagger.save(tmp_path / "m.lols")
    found = read_model(tmp_path / "m.lols").inspect(top=10**6, against=True).as_dict()
    entries = [e for sides in found["features_of"].values() for side in sides.values() for e in side]
    names = slow_names(tagger)
    wrong = [(e["feature"], names.get(int(e["id"]))) for e in entries if names.get(int(e["id"])) != e["feature"]]
    assert wrong == []
    policy = tagger.model_.policy
    weighty = features_by_row(policy.shared, policy.stack.shape[1])[policy.stack[0].any(axis=1)]
    assert {int(e["id"]) for e in entries} == set(weighty.tolist())
    seen = {name.partition(" =")[0] for name in (e["feature"] for e in entries)}
    assert {"bias", "word", "lower[-1]", "tag[-1]", "pos", "cluster.prefix2", "cluster[+1]"} <= seen
    assert found["unnamed_templates"] == []


def test_the_ending_is_what_speaks_for_a_gerund(tmp_path):
    words = [["keep", verb] for verb in ("singing", "walking", "talking", "reading")] + [["keep", "calm"]] * 4
    tagger = Tagger(templates=["suffix3", "word", "lower[-1]"]).fit(words, [["V", "G"]] * 4 + [["V", "A"]] * 4)
    tagger.save(tmp_path / "m.lols")
    strongest = read_model(tmp_path / "m.lols").inspect(top=1).as_dict()["features_of"]["G"]["for"]
    assert [e["feature"] for e in strongest] == ["suffix3 = ing"]
    assert int(strongest[0]["id"]) == mix(key(parse_templates("suffix3")[0]), hash_text("ing"))
    assert strongest[0]["weight"] < 0


def test_weights_are_sorted_and_their_signs_say_for_or_against(small):
    found = read_model(small).inspect(top=8, against=True).as_dict()["features_of"]
    assert set(found) == {".", "A", "D", "G", "N", "P", "V"}
    for sides in found.values():
        speaking, objecting = ([e["weight"] for e in sides[side]] for side in ("for", "against"))
        assert speaking == sorted(speaking) and all(w < 0 for w in speaking) and len(speaking) <= 8
        assert objecting == sorted(objecting, reverse=True) and all(w > 0 for w in objecting)


def test_what_cannot_be_looked_through_has_a_question_mark(small, monkeypatch):
    monkeypatch.setattr(feature_names, "MOST_STEPS", 1000)
    monkeypatch.setattr(feature_names, "MOST_CHAINS", 100)
    found = read_model(small).inspect(top=1000, against=True).as_dict()
    assert "lower & lower[+1] & tag[-1]" in found["unnamed_templates"]
    names = {e["feature"] for sides in found["features_of"].values() for e in sides["for"]}
    assert "?" in names and "suffix3 = ing" in names


def test_the_only_template_left_is_named_with_a_question_mark():
    assert feature_names.Names({1: "word = a"}, ["word & pos"]).of(2) == "word & pos = ?"
    assert feature_names.Names({1: "word = a"}, ["word & pos"]).of(1) == "word = a"


def test_numbers_of_the_users_own_are_unknown_features(tmp_path):
    tokens = [[{"word": "a", "length": 3.0}, {"word": "b", "length": 1.0}]] * 3
    Tagger(templates=["word"]).fit(tokens, [["X", "Y"]] * 3).save(tmp_path / "m.lols")
    found = read_model(tmp_path / "m.lols").inspect(against=True).as_dict()
    unknown = {
        int(e["id"]) for s in found["features_of"].values() for side in s.values() for e in side if e["feature"] == "?"
    }
    assert unknown == {feature(hash_text("length"))}
    assert "? is a feature" in run("inspect", tmp_path / "m.lols").stdout


def test_values_of_other_columns_are_named_where_they_are_known():
    tokens = [[{"word": "a", "kind": "blue"}, {"word": "a", "kind": "DET"}]] * 3
    tagger = Tagger(templates=["kind"]).fit(tokens, [["X", "Y"]] * 3)
    tagger.column_values_ = {}
    assert {e["feature"] for e in speaking_features(tagger, ["X"], 5)[0]["X"]["for"]} == {"?"}
    tagger.column_values_ = {"kind": ["blue", "DET"]}
    sides = speaking_features(tagger, ["X"], 5, against=True)[0]["X"]
    assert [[e["feature"] for e in sides[side]] for side in sides] == [["kind = blue"], ["kind = DET"]]


def test_large_vocabularies_are_searched_from_both_ends():
    words = [f"w{k}" for k in range(20_000)]
    task = lols.tasks.tagging.estimator.TaggingTask(
        ["A", "B"], templates=["word[-1] & word", "word & word[+1] & tag[-1]"]
    )
    pair, triple = parse_templates(task.templates)

    def chain(template, *values):
        made = key(template)
        for value in values:
            made = mix(made, value)
        return made

    ids = {
        chain(pair, hash_text("w7"), hash_text("w19999")): "word[-1] = w7 & word = w19999",
        chain(triple, hash_text("w3"), OUTSIDE, 2): "word = w3 & word[+1] = (end) & tag[-1] = B",
        chain(pair, hash_text("never"), hash_text("w1")): None,
    }
    found = find_names(task, {"word": words}, np.array(list(ids))).by_id
    assert found == {identity: name for identity, name in ids.items() if name is not None}


# --- the command line -------------------------------------------------------------------------------------------------


def test_json_has_all_that_the_file_says(small):
    found = json.loads(run("inspect", small, "--json", "--top", 2, "--label", "G", "--label", "V").stdout)
    assert found["kind"] == "tagger" and found["version"] == lols.__version__
    assert found["labels"] == [".", "A", "D", "G", "N", "P", "V"] and found["scheme"] is None
    assert (found["loss"], found["direction"], found["seed"], found["passes"]) == ("hamming", "forward", 7, 3)
    assert (found["examples"], found["tokens"], found["vocabulary"], found["clusters"]) == (3, 14, 13, 3)
    assert found["templates"] == TEMPLATES and found["columns"] == ["word", "pos", "cluster"]
    assert found["learner"]["reduction"] == "hinge" and found["bytes"] == small.stat().st_size
    assert len(found["fingerprint"]) == 16
    assert list(found["features_of"]) == ["G", "V"] and len(found["features_of"]["G"]["for"]) == 2


def test_text_says_the_same_in_words(small):
    printed = run("inspect", small, "--top", 3, "--against").stdout
    for words in ("a tagger", "7: . A D G N P V", "plain tags", "3 sentences, 14 tokens", "13 words", "of 3 words",
                  "hinge, adagrad, rate 0.5", "3 passes", "seed 7", "for G", "against G", "Algorithm 1"):  # fmt: skip
        assert words in printed
    assert "for G" not in run("inspect", small, "--top", 0).stdout
    assert max(map(len, printed.splitlines())) <= 130


def test_span_models_say_scheme_and_direction(tmp_path):
    tags = [["O", "B-X", "I-X"], ["B-X", "O", "O"]]
    Tagger(loss="f1").fit([["a", "b", "c"], ["c", "a", "a"]], tags).save(tmp_path / "m.lols")
    printed = run("inspect", tmp_path / "m.lols").stdout
    assert "bio" in printed and "backward" in printed and "f1" in printed and "for B-X" in printed


def test_searn_and_secoc_are_inspected_too(tmp_path):
    words, tags = [["a", "b"], ["b", "a"]], [["X", "Y"], ["Y", "X"]]
    Tagger(algorithm="searn", passes=2, templates=["word"]).fit(words, tags).save(tmp_path / "searn.lols")
    found = read_model(tmp_path / "searn.lols").inspect().as_dict()
    assert found["policies"] == 2 and found["features_of"]["X"]["for"][0]["feature"] == "word = a"
    Tagger(learner="secoc").fit(words, tags).save(tmp_path / "secoc.lols")
    assert "sets of labels" in run("inspect", tmp_path / "secoc.lols").stdout


def test_models_of_other_spaces_have_the_general_part(tmp_path):
    space, data, teacher = tagging_space(labels=4), tagging_data(4, labels=4), tagging_references()["optimal"]
    train(space, data, teacher, passes=1, progress=False).save(tmp_path / "own.lols")
    found = json.loads(run("inspect", tmp_path / "own.lols", "--json").stdout)
    assert (found["kind"], found["actions"], found["examples"], found["tokens"]) == ("model", 4, 4, None)
    assert "features_of" not in found
    printed = run("inspect", tmp_path / "own.lols").stdout
    assert "a search space of your own" in printed and "4 actions" in printed and "Algorithm 1" in printed


def test_mistakes_are_one_line(small, tmp_path, monkeypatch, capsys):
    assert "no such file" in error_line(monkeypatch, capsys, "inspect", tmp_path / "none.lols")
    assert "there is no label 'XX'" in error_line(monkeypatch, capsys, "inspect", small, "--label", "XX")
    assert "--top is -1" in error_line(monkeypatch, capsys, "inspect", small, "--top", -1)
    (tmp_path / "text").write_text("nothing")
    assert "not a readable lols file" in error_line(monkeypatch, capsys, "inspect", tmp_path / "text")
    space, data, teacher = tagging_space(labels=4), tagging_data(4, labels=4), tagging_references()["optimal"]
    train(space, data, teacher, passes=1, progress=False, checkpoint=tmp_path / "c", checkpoint_every=0.0)
    assert "holds a checkpoint, not a model" in error_line(monkeypatch, capsys, "inspect", tmp_path / "c")
