"""Treebanks: trees as they are given, as parsers are trained on them, and back; and the columns that hold them."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.exceptions import NotFittedError

from lols import Parser
from lols.errors import ConfigurationError, LolsError
from lols.io import conll
from lols.tasks.parsing.data import Treebank
from lols.tasks.parsing.input import checked_trees, punctuation
from lols.tasks.parsing.projective import crossing
from lols.tasks.parsing.treebank import Prepared, Relations, Trees, taught_as
from lols.tasks.parsing.trees import check_trees, single_root
from lols.tasks.tokens.corpus import Corpus, corpus_of
from tests.tasks.parsing.test_parser import GOLD, WORDS, parser

NAMES = ["a", "b", "b:sub", "root"]


@pytest.fixture(scope="module")
def fitted() -> Parser:
    return parser().fit(WORDS, GOLD)


@st.composite
def treebank(draw: st.DrawFn, *, several: bool = False, distinct: bool = False) -> tuple[Any, ...]:
    """Heads, numbers of relations, their names, and where sentences begin."""
    heads: list[int] = []
    lengths = draw(st.lists(st.integers(1, 8), min_size=1, max_size=5))
    for length in lengths:
        order = draw(st.permutations(range(length)))
        own = [-1] * length
        for k in range(1, length):
            own[order[k]] = draw(st.sampled_from([*order[:k], -1] if several else order[:k]))
        heads += own
    names = [f"r{k}" for k in range(len(heads))] if distinct else NAMES
    numbers = list(range(len(heads))) if distinct else [draw(st.integers(0, len(NAMES) - 1)) for _ in heads]
    return np.array(heads), np.array(numbers), names, np.cumsum([0, *lengths])


class Learned(Prepared):
    """What a parser is trained to build, with the trees."""

    trees: Trees


def prepare(heads: np.ndarray, numbers: np.ndarray, names: list[str], offsets: np.ndarray, roots: str) -> Learned:
    """A treebank as a parser is trained on it."""
    data = Treebank(Corpus({}, offsets), heads, numbers, names, roots)
    made = Learned(*data.scan().prepared)
    made.trees = taught_as(made.names, "joint", data.projected(made.roots)).trees
    return made


def restored(made: Any, offsets: np.ndarray) -> tuple[Trees, list[str]]:
    known = Relations(made.names)
    return known.restore(made.trees, offsets), known.plain


# --- from the treebank to the parser, and back ------------------------------------------------------------------------


@pytest.mark.uncompiled
@given(treebank(several=True), st.sampled_from(["one", "many", "auto"]))
def test_what_the_parser_is_trained_on_is_projective_and_says_what_was_there(data: Any, roots: str) -> None:
    heads, numbers, names, offsets = data
    made = prepare(*data, roots)
    counts = check_trees(heads, offsets).roots
    share = float((counts > 1).mean())
    assert made.roots == (("many" if share > 0.01 else "one") if roots == "auto" else roots)
    assert made.mended.tolist() == (np.flatnonzero(counts > 1).tolist() if made.roots == "one" else [])
    assert not crossing(made.trees.heads, offsets).any()
    own = np.arange(heads.size) - np.repeat(offsets[:-1], np.diff(offsets))
    for side, where in ((made.right, made.trees.heads < own), (made.left, made.trees.heads > own)):
        found = set(made.trees.relations[where & (made.trees.heads >= 0)].tolist())
        assert found <= set(side) and (found == set(side) or side is made.right)
    assert made.names == sorted(made.names) and made.right
    trees, plain = restored(made, offsets)
    expected = [names[n] for n in numbers]
    if made.mended.size:  # a second root is no root any more
        second = (single_root(heads, offsets)[0] >= 0) & (heads == -1)
        expected = ["dep" if again else name for again, name in zip(second.tolist(), expected, strict=True)]
    assert [plain[r] for r in trees.relations] == expected
    found = check_trees(trees.heads, offsets)
    assert (found.cycles < 0).all() and (made.roots == "many" or (found.roots == 1).all())
    if not made.lifted and not made.mended.size:
        assert np.array_equal(trees.heads, heads) and made.nonprojective == 0
    assert made.lifted == int((made.trees.heads != heads).sum()) or made.mended.size


@pytest.mark.uncompiled
@given(treebank(distinct=True))
def test_one_lifted_word_finds_back_where_relations_are_distinct(data: Any) -> None:
    made = prepare(*data, "one")
    trees, plain = restored(made, data[3])
    assert [plain[r] for r in trees.relations] == data[2]
    for a, b in zip(data[3], data[3][1:]):
        if (made.trees.heads != data[0])[a:b].sum() <= 1:
            assert trees.heads[a:b].tolist() == data[0][a:b].tolist()


@pytest.mark.uncompiled
def test_by_hand() -> None:
    heads, names = np.array([1, -1, 1, 0]), ["nsubj", "root", "advmod", "acl"]
    made = prepare(heads, np.arange(4), names, np.array([0, 4]), "auto")
    assert made.names == ["acl↑nsubj", "advmod", "nsubj", "root"] and made.trees.heads.tolist() == [1, -1, 1, 1]
    assert (made.root, made.right, made.left, made.roots) == (3, [0, 1], [2], "one")
    assert (made.nonprojective, made.lifted, made.mended.tolist()) == (1, 1, [])
    trees, plain = restored(made, np.array([0, 4]))
    assert trees.heads.tolist() == heads.tolist() and [plain[r] for r in trees.relations] == names
    many = prepare(np.array([-1, -1]), np.array([0, 1]), ["root", "other"], np.array([0, 2]), "one")
    assert many.trees.heads.tolist() == [-1, 0] and many.mended.tolist() == [0]


@pytest.mark.uncompiled
def test_relations_that_a_model_made_up() -> None:
    """An arrow to a relation that there is not, or to none below: the word stays."""
    known = Relations(["a", "a↑zz", "a↑b", "b"])
    assert known.plain == ["a", "b"]
    for relation in (1, 2):
        made = known.restore(Trees(np.array([-1, 0]), np.array([0, relation])), np.array([0, 2]))
        assert made.heads.tolist() == [-1, 0] and made.relations.tolist() == [0, 0]


# --- trees that users give --------------------------------------------------------------------------------------------


@pytest.mark.uncompiled
def test_trees_become_columns() -> None:
    words = [["a", "b"], [], ["c"]]
    heads, numbers, names = checked_trees(words, [[(2, "x"), (0, None)], [], [np.int32(0)]])
    assert heads.tolist() == [1, -1, -1] and [names[n] for n in numbers] == ["x", "root", "root"]
    corpus = corpus_of([["a", ".", "...", "«", "a.", "$", "-", "١"]])
    assert punctuation(corpus).tolist() == [False, True, True, True, False, False, True, False]


@pytest.mark.parametrize(
    ("tree", "says"),
    [
        ([2, 0, 1], "sentence 1 has 2 words, but its tree has 3"),
        ([2, 1], "sentence 1: word 0 is on a cycle of heads; give trees"),
        ([3, 0], "sentence 1, word 0: its head is 3; give another word, counted from 1 to 2, or 0 for the root"),
        ([0, -1], "sentence 1, word 1: its head is -1"),
        ([0, 2], "sentence 1, word 1: its head is 2"),
        ([(2, ""), (0, "root")], "sentence 1, word 0: its relation is empty; name it"),
        ([(2, 5), (0, "root")], r"sentence 1, word 0: \(2, 5\) is neither a head nor a pair of head and relation"),
        ([0, True], "sentence 1, word 1: True is neither"),
        ([0, "1"], "sentence 1, word 1: '1' is neither"),
        ([0, 1.0], "sentence 1, word 1: 1.0 is neither"),
        ([0, (1, "a", "b")], "sentence 1, word 1: .* is neither"),
        (np.array([[0, 1], [1, 1]]), "sentence 1, word 0: .* is neither"),
        ([(2, "a↑b"), (0, "root")], "sentence 1, word 0: the relation 'a↑b' holds an arrow"),
        ([(2, "\ud800"), (0, "root")], "sentence 1, word 0: .*surrogate"),
        (7, "trees are lists, one for each sentence"),
        ("ab", "trees are lists, one for each sentence"),
    ],
)  # fmt: skip
def test_trees_that_are_none(fitted: Parser, tree: Any, says: str) -> None:
    words, trees = [["dog"], ["a", "dog"]], [[0], tree]
    for call in (parser().fit, *([] if "arrow" in says else [fitted.evaluate])):
        with pytest.raises(LolsError, match=says) as found:
            call(words, trees)
        assert "\n" not in str(found.value)


def test_data_that_does_not_fit(fitted: Parser) -> None:
    for X, y, says in [
        ([["a"]], [], "there are 1 sentences, but 0 trees"),
        ([], [], "there are no sentences to learn from"),
        ([["a"], []], [[0], []], "sentence 1 is empty"),
        (["a"], [[0]], "sentences are lists of words"),
        ([[1]], [[0]], "sentence 0, word 0: words are all strings"),
    ]:
        with pytest.raises(LolsError, match=says):
            parser().fit(X, y)
    with pytest.raises(LolsError, match="there are no dev sentences"):
        parser().fit(WORDS, GOLD, dev=([], []))
    with pytest.raises(LolsError, match="there are no words to evaluate on"):
        fitted.score([], [])
    assert isinstance(fitted.predict_columns(corpus_of([])), Trees)


@pytest.mark.parametrize(
    "wrong",
    [
        {"roots": "two"}, {"labelling": "?"}, {"algorithm": "?"}, {"reference": "?"}, {"learner": "?"},
        {"update": "?"}, {"roll_in": "?"}, {"roll_out": "?"}, {"beta": "?"}, {"mix": "?"}, {"prune": -1},
        {"passes": 0}, {"batch_size": 0}, {"threads": 0}, {"templates": ["S0.nothing"]}, {"templates": "word"},
        {"rate": -1}, {"patience": 0},
    ],
    ids=str,
)  # fmt: skip
def test_options_that_there_are_not(wrong: dict[str, Any]) -> None:
    made = parser(**wrong)
    with pytest.raises(ConfigurationError):
        made.fit(WORDS[:2], GOLD[:2], dev=(WORDS[:2], GOLD[:2]))
    with pytest.raises(NotFittedError):
        made.predict(WORDS)


# --- several columns at once ------------------------------------------------------------------------------------------

CELL = st.text(
    st.characters(codec="utf-8", exclude_characters="\t\n\r\0 \x0b\x0c\x1c\x1d\x1e\x1f\x85\u2028\u2029|#="), min_size=1
)


@st.composite
def file(draw: st.DrawFn) -> tuple[str, str, int]:
    """The text of a file, its format, and how many tokens it has."""
    kind = draw(st.sampled_from(["conllu", "tsv", "columns"]))
    ending, between = draw(st.sampled_from(["\n", "\r\n"])), {"columns": ["  ", "\t", " "]}.get(kind, ["\t"])
    lines, tokens = [], 0
    for _ in range(draw(st.integers(1, 3))):
        if kind == "conllu":
            lines.append("# " + draw(CELL))
        for k in range(1, draw(st.integers(1, 4)) + 1):
            cells = [draw(CELL) for _ in range(9 if kind == "conllu" else 4)]
            if kind == "conllu":
                cells.insert(0, str(k))
                lines += ["\t".join([extra, *cells[1:]]) for extra in (f"{k}-{k + 1}",) if draw(st.booleans())]
            row = cells[0]
            for cell in cells[1:]:
                row += draw(st.sampled_from(between)) + cell
            lines.append(row)
            lines += [f"{k}.1" + "\t_" * 9] if kind == "conllu" and draw(st.booleans()) else []
            tokens += 1
        lines.append("")
    return ending.join(lines) + ending, kind, tokens


def slowly(text: str, kind: str, changes: dict[int, list[str]]) -> str:
    """The same with cells replaced, line by line."""
    made, token = [], 0
    for line in text.split("\n"):
        parts = re.split(r"([ \t]+|\r$)", line)
        if len(parts) > 1 and line.strip() and (kind != "conllu" or parts[0].isdigit()):
            for column, values in changes.items():
                parts[2 * column] = values[token]
            token += 1
        made.append("".join(parts))
    return "\n".join(made)


@pytest.mark.uncompiled
@given(file(), st.data())
def test_columns_are_replaced_as_slowly_by_hand(data: tuple[str, str, int], draw: st.DataObject) -> None:
    text, kind, tokens = data
    columns = draw.draw(st.lists(st.integers(1, 9 if kind == "conllu" else 3), unique=True, max_size=4))
    labels = {c: draw.draw(st.lists(CELL, min_size=1, max_size=3)) for c in columns}
    chosen = {c: [draw.draw(st.integers(0, len(labels[c]) - 1)) for _ in range(tokens)] for c in columns}
    asked = [str(c + 1) for c in columns if draw.draw(st.booleans())]
    sentences = conll.parse(text.encode(), ["1", *asked], format=kind, header=False if kind == "tsv" else None)
    made = conll.replace_columns(sentences, {str(c + 1): (labels[c], np.array(chosen[c])) for c in columns})
    wanted = slowly(text, kind, {c: [labels[c][n] for n in chosen[c]] for c in columns})
    assert made.decode() == wanted


@pytest.mark.uncompiled
def test_columns_that_cannot_be_replaced() -> None:
    two = conll.parse(b"a b\nc d\n", ["1"], path="f.txt")
    for changes, says in [
        ({"3": (["x"], [0, 0])}, "f.txt: there is no column '3' to be replaced; add it first"),
        ({"2": (["x"], [0])}, "f.txt: 2 tokens, but 1 labels for them"),
        ({"2": (["x"], [0, 1])}, "f.txt: a label has a number that is not between 0 and 0"),
        ({"2": (["x y"], [0, 0])}, "f.txt: the label 'x y' cannot be a cell of plain columns"),
        ({"9": (["x"], [0, 0])}, "there is no column 9"),
    ]:
        with pytest.raises(LolsError, match=says):
            conll.replace_columns(two, {name: (labels, np.array(own)) for name, (labels, own) in changes.items()})
    assert conll.replace_columns(two, {}) == b"a b\nc d\n"
