"""Features of tokens: the columns that the engine reads, against a list made token by token as the documents say."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lols.contract.features import feature
from lols.errors import LolsError
from lols.io.strings import Interner, intern, texts_of
from lols.kernels.hashing import mix
from lols.tasks.tokens.attributes import attribute_text, hash_text
from lols.tasks.tokens.corpus import Corpus, backward, corpus_of
from lols.tasks.tokens.encoding import Encoded, Encoder, Extra, TemplateLayout
from lols.tasks.tokens.templates import Template, parse_templates

COLUMNS = ("word", "pos", "cluster")
PLACES = ["", "[-2]", "[-1]", "[+1]", "[+9]"]
KINDS = ["word", "lower", "prefix2", "suffix3", "shape", "class", "length", "digits"]
Sentence = list[dict[str, str]]


def encode(layout: TemplateLayout, *given: Any) -> Encoded:
    """Encode sentences at once."""
    return Encoder(layout).encode(*given)


# --- the twin ---------------------------------------------------------------------------------------------------------


def base_of(template: Template, sentence: Sentence, place: int) -> int:
    """A template's hash at a place of a sentence; 0 where it has nothing to look at."""
    made = mix(hash_text(template.text), len(template.atoms))
    for column, which, offset in template.atoms:
        if which is None:  # bias
            continue
        at = place + offset
        value = 1  # outside
        if 0 <= at < len(sentence):
            text = attribute_text(which, sentence[at][column])
            value = 0 if text is None else hash_text(text)
        if value == 0:
            return 0
        made = mix(made, value)
    return made


def features_of(templates: list[Template], sentence: Sentence, place: int) -> Counter[tuple[int, float]]:
    """The features of a token that need no tags: one per template that has something to look at."""
    made: Counter[tuple[int, float]] = Counter()
    for template in templates:
        if template.tags:
            continue
        if all(a.attribute is None for a in template.atoms):
            made[mix(hash_text("bias"), 0), 1.0] += 1
        elif base := base_of(template, sentence, place):
            made[base, 1.0] += 1
    return made


def expanded(encoded: Encoded, token: int) -> Counter[tuple[int, float]]:
    """The features of a token through its item's parts."""
    items = encoded.items
    made: Counter[tuple[int, float]] = Counter()
    for kind in items.types[token * items.parts : (token + 1) * items.parts]:
        at = slice(items.start[kind], items.start[kind + 1])
        made.update(zip(items.ids[at].tolist(), items.values[at].tolist(), strict=True))
    return made


def columns_of(sentences: list[Sentence], names: tuple[str, ...]) -> Corpus:
    offsets = np.cumsum([0, *map(len, sentences)]).astype(np.int64)
    tokens = [token for sentence in sentences for token in sentence]
    return Corpus({name: intern(texts_of([t[name] for t in tokens])) for name in names}, offsets)


# --- random inputs ----------------------------------------------------------------------------------------------------

WORDS = st.one_of(st.text(st.sampled_from("aB1-é文😀"), max_size=4), st.sampled_from(["the", "The", "dog"]))


@st.composite
def atoms(draw: st.DrawFn, columns: tuple[str, ...]) -> str:
    place = draw(st.sampled_from(PLACES))
    column = draw(st.sampled_from(columns))
    kind = draw(st.sampled_from(KINDS))
    if column == "word":
        return draw(st.sampled_from([kind, f"word.{kind}"])) + place
    return draw(st.sampled_from([column, f"{column}.{kind}"])) + place


@st.composite
def tasks(draw: st.DrawFn) -> tuple[list[Sentence], tuple[str, ...], list[str]]:
    columns = COLUMNS[: draw(st.integers(1, 3))]
    token = st.fixed_dictionaries({name: WORDS for name in columns})
    sentences = draw(st.lists(st.lists(token, max_size=5), min_size=1, max_size=4))
    sentences.append([draw(token)])
    parts = st.lists(atoms(columns), min_size=1, max_size=3)
    tags = st.lists(st.sampled_from(["tag[-1]", "tag[-2]", "tag[-3]"]), min_size=1, max_size=2, unique=True)
    plain = parts.map(" & ".join)
    history = st.tuples(st.one_of(parts, st.just([])), tags).map(lambda both: " & ".join(both[0] + both[1]))
    lines = draw(st.lists(st.one_of(plain, plain, history, st.just("bias")), min_size=1, max_size=7))
    return sentences, columns, lines


@pytest.mark.uncompiled
@settings(max_examples=120)
@given(tasks())
def test_every_token_has_the_features_that_its_templates_say(task: Any) -> None:
    sentences, columns, lines = task
    templates = parse_templates(lines, columns)
    layout, corpus = TemplateLayout.of(templates), columns_of(sentences, columns)
    encoded = encode(layout, corpus.columns, corpus.offsets)
    history = [t for t in templates if t.tags]
    assert encoded.items.first.tolist() == corpus.offsets.tolist()
    bases = encoded.bases.reshape(corpus.tokens, len(history))
    token = 0
    for sentence in sentences:
        for place in range(len(sentence)):
            assert expanded(encoded, token) == features_of(templates, sentence, place)
            assert bases[token].tolist() == [base_of(t, sentence, place) for t in history]
            token += 1


@pytest.mark.uncompiled
@settings(max_examples=80)
@given(st.data())
def test_pieces_have_the_features_that_they_have_alone(data: st.DataObject) -> None:
    sentences, columns, lines = data.draw(tasks())
    layout = TemplateLayout.of(parse_templates(lines, columns))
    encoder, names = Encoder(layout), {name: Interner() for name in columns}
    lasting = 0
    for _ in range(3):
        piece = data.draw(st.lists(st.sampled_from(sentences), min_size=1))
        alone = columns_of(piece, columns)
        if alone.tokens == 0:
            continue
        tokens = [token for sentence in piece for token in sentence]
        going_on = {name: names[name].number(texts_of([t[name] for t in tokens])) for name in columns}
        extra = None
        if data.draw(st.booleans()):  # a value of its own for each token
            extra = Extra(np.arange(len(tokens) + 1), np.arange(len(tokens)), np.full(len(tokens), 0.5, np.float32))
        one = encoder.encode(going_on, alone.offsets, extra)
        other = encode(layout, alone.columns, alone.offsets, extra)
        assert [expanded(one, k) for k in range(len(tokens))] == [expanded(other, k) for k in range(len(tokens))]
        assert one.bases.tobytes() == other.bases.tobytes()
        assert one.items.lasting >= max(lasting, other.items.lasting)
        lasting = one.items.lasting


@pytest.mark.uncompiled
@settings(max_examples=60)
@given(tasks(), st.data())
def test_features_of_the_user_come_on_top(task: Any, data: st.DataObject) -> None:
    sentences, columns, lines = task
    corpus = columns_of(sentences, columns)
    values = st.floats(-9, 9, width=32)
    own = [data.draw(st.lists(st.tuples(st.integers(-99, 99), values), max_size=3)) for _ in range(corpus.tokens)]
    first = np.cumsum([0, *map(len, own)]).astype(np.int64)
    flat = [pair for pairs in own for pair in pairs]
    extra = Extra(first, np.array([i for i, _ in flat], np.int64), np.array([v for _, v in flat], np.float32))
    layout = TemplateLayout.of(parse_templates(lines, columns))
    plain, made = (encode(layout, corpus.columns, corpus.offsets, e) for e in (None, extra))
    for token in range(corpus.tokens):
        assert expanded(made, token) == expanded(plain, token) + Counter(own[token])
    assert made.bases.tobytes() == plain.bases.tobytes()


@pytest.mark.uncompiled
@given(tasks())
def test_types_of_one_token_each_are_told_from_those_that_last(task: Any) -> None:
    sentences, columns, lines = task
    corpus = columns_of(sentences, columns)
    layout = TemplateLayout.of(parse_templates(lines, columns))
    items = encode(layout, corpus.columns, corpus.offsets).items
    if not (layout.views or layout.joint or layout.bias):  # all tokens are of one type, without features
        assert items.ids.size == 0 and set(items.types.tolist()) == {0}
        return
    single = items.types[items.types >= items.lasting]
    assert np.unique(single).size == single.size
    distinct = [corpus.columns[name].texts.begin.size + 1 for _, name in layout.views]
    assert items.lasting == sum(distinct)
    assert items.start.size == sum(distinct) + single.size + 1
    assert items.start[0] == 0 and items.start[-1] == items.ids.size == items.values.size


@pytest.mark.uncompiled
def test_templates_of_history_only_leave_items_without_features() -> None:
    corpus = corpus_of([["a", "b"], ["c"]])
    encoded = encode(TemplateLayout.of(parse_templates(["tag[-1]"])), corpus.columns, corpus.offsets)
    assert encoded.items.types.size == corpus.tokens * encoded.items.parts
    assert encoded.items.widest() == 0 and encoded.bases.size == 3
    assert [expanded(encoded, k) for k in range(3)] == [Counter()] * 3


@pytest.mark.uncompiled
@given(st.lists(st.text(st.sampled_from("abc"), max_size=3), min_size=1, max_size=6))
def test_a_word_has_the_same_features_wherever_it_stands(words: list[str]) -> None:
    layout = TemplateLayout.of(parse_templates(["word", "lower", "suffix2"]))
    together, apart = corpus_of([words]), corpus_of([[w] for w in reversed(words)])
    one, other = (encode(layout, c.columns, c.offsets) for c in (together, apart))
    for k in range(len(words)):
        assert expanded(one, k) == expanded(other, len(words) - 1 - k)


@pytest.mark.uncompiled
def test_templates_and_places_make_different_features_of_one_word() -> None:
    lines = ["word", "lower", "word.word", "word[-1]", "word[+1]", "word & word[-1]", "word[-1] & word", "prefix1"]
    corpus = corpus_of([["a", "a", "a"]])
    encoded = encode(TemplateLayout.of(parse_templates(lines)), corpus.columns, corpus.offsets)
    assert len(expanded(encoded, 1)) == len(lines)


# --- sentences of Python ----------------------------------------------------------------------------------------------


@pytest.mark.uncompiled
def test_dictionaries_become_columns_and_features() -> None:
    made = corpus_of([[{"word": "a", "n": 2, "b": True}, {"pos": "X", "b": False}], [], [{"word": "a", "n": 0.5}]])
    assert list(made.columns) == ["word", "pos"] and made.offsets.tolist() == [0, 2, 2, 3]
    assert made.columns["word"].texts.strings() == ["a", ""] and made.columns["word"].numbers.tolist() == [0, 1, 0]
    assert made.columns["pos"].texts.strings() == ["", "X"]
    n, b = feature(hash_text("n")), feature(hash_text("b"))
    assert made.extra.first.tolist() == [0, 2, 2, 3]  # what is 0 or False is not there
    assert made.extra.ids.tolist() == [n, b, n] and made.extra.values.tolist() == [2.0, 1.0, 0.5]


@pytest.mark.uncompiled
def test_numbers_of_numpy_are_numbers() -> None:
    made = corpus_of([[{"word": "a", "i": np.int32(3), "f": np.float32(0.5), "b": np.uint8(200)}]])
    assert made.extra.values.tolist() == [3.0, 0.5, 200.0]


@pytest.mark.uncompiled
def test_truths_of_numpy_are_bools() -> None:
    assert corpus_of([[{"word": "a", "t": np.True_, "f": np.False_}]]).extra.values.tolist() == [1.0]


@pytest.mark.uncompiled
def test_strings_of_numpy_are_strings() -> None:
    made = corpus_of([np.array(["a", "b"]), np.array(["a"])])
    assert made.columns["word"].numbers.tolist() == [0, 1, 0]


@pytest.mark.uncompiled
@pytest.mark.parametrize("value", [10**50, 10**400, 1e39, -1e300], ids=["10**50", "10**400", "1e39", "-1e300"])
def test_a_number_beyond_single_precision_is_refused(value: float) -> None:
    with pytest.raises(LolsError, match="sentence 0, word 0: feature 'n' is"):
        corpus_of([[{"word": "a", "n": value}]])


@pytest.mark.uncompiled
@pytest.mark.parametrize(
    ("sentences", "place"),
    [([["a", 3]], "sentence 0, word 1"), ([["a"], [None]], "sentence 1, word 0"), ([["a", {"b": 1}]], "sentence 0")],
)
def test_among_strings_what_is_no_string_is_named(sentences: Any, place: str) -> None:
    with pytest.raises(LolsError) as caught:
        corpus_of(sentences)
    assert str(caught.value).startswith(place) and "this one is str" not in str(caught.value)


@pytest.mark.uncompiled
@pytest.mark.parametrize(
    ("sentences", "says"),
    [
        ([[3]], "sentence 0, word 0: words are all strings, or all dictionaries of features; this one is int"),
        (
            [[], [{}, None]],
            "sentence 1, word 1: words are all strings, or all dictionaries of features; this one is Non",
        ),
        (
            [[], [{"n": float("nan")}]],
            "sentence 1, word 0: feature 'n' is nan; give a string, a bool or a finite number",
        ),
        ([[{"n": float("inf")}]], "sentence 0, word 0: feature 'n' is inf; give a string, a bool or a finite number"),
        ([[{"n": None}]], "sentence 0, word 0: feature 'n' is None; give a string, a bool or a finite number"),
        ([[{"n": [1]}]], "sentence 0, word 0: feature 'n' is [1]; give a string, a bool or a finite number"),
        ([["a", "\ud800"]], "sentence 0, word 1: the string holds half of a surrogate pair, which is not text"),
        ([[{"word": "a"}, {"word": "\udfff"}]], "sentence 0, word 1: the string holds half of a surrogate pair"),
    ],
)
def test_what_is_no_word_is_named(sentences: Any, says: str) -> None:
    with pytest.raises(LolsError) as caught:
        corpus_of(sentences)
    assert str(caught.value).startswith(says) and "\n" not in str(caught.value)


# --- backwards --------------------------------------------------------------------------------------------------------


@pytest.mark.uncompiled
@given(st.lists(st.lists(st.tuples(WORDS, st.integers(0, 3)), max_size=4), min_size=1, max_size=4))
def test_backward_turns_every_sentence_round(drawn: list[list[tuple[str, int]]]) -> None:
    sentences: list[list[Any]] = [[{"word": w, "n": n, "m": n // 2} for w, n in s] for s in drawn]
    made, turned = corpus_of(sentences).backward(), corpus_of([s[::-1] for s in sentences])
    assert made.offsets.tolist() == turned.offsets.tolist()
    for name, column in turned.columns.items():
        mine = made.columns[name]
        assert [mine.texts.strings()[n] for n in mine.numbers] == [column.texts.strings()[n] for n in column.numbers]
    if turned.extra is not None:
        for a, b in zip(made.extra, turned.extra, strict=True):
            assert a.tolist() == b.tolist()
    order = backward(made.offsets)
    assert order[order].tolist() == list(range(order.size))


@pytest.mark.uncompiled
def test_the_fingerprint_changes_with_anything() -> None:
    plain = corpus_of([["a", "b"], ["c"]])
    others = [
        corpus_of([["a", "b", "c"]]),
        corpus_of([["a", "b"], ["d"]]),
        corpus_of([["b", "a"], ["c"]]),
        Corpus({"pos": plain.columns["word"]}, plain.offsets),
    ]
    prints = [c.fingerprint() for c in [plain, *others]] + [plain.fingerprint(np.array([1, 2, 3]))]
    assert len(set(prints)) == len(prints)
    assert plain.fingerprint() == corpus_of([["a", "b"], ["c"]]).fingerprint() and len(prints[0]) == 16
