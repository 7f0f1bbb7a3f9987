"""The templates of parsing: what they read, what they see of a state, and that compiled code sees the same."""

from __future__ import annotations

import re
from collections import defaultdict
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lols.contract.examples import Examples
from lols.contract.features import feature_buffer, item_buffer
from lols.engine.calls import actions as legal_of
from lols.engine.calls import cost as cost_of
from lols.engine.calls import features_of
from lols.engine.calls import items as items_of
from lols.engine.calls import key as key_of
from lols.engine.calls import step as step_of
from lols.engine.policy import in_role
from lols.errors import ConfigurationError
from lols.kernels.dual import bind
from lols.kernels.kernel import Kernel
from lols.kernels.layout import row as row_of
from lols.tasks.parsing.defaults import default_parsing_templates
from lols.tasks.parsing.space import LABEL, LEFT, RIGHT, SHIFT
from lols.tasks.parsing.task import LABELLINGS, ROOTS, ParsingTask
from lols.tasks.parsing.templates import SearchAtom, TemplatePlace, parse_parsing_templates
from lols.tasks.parsing.treebank import Trees
from lols.tasks.tokens.attributes import attribute, attribute_text
from lols.tasks.tokens.corpus import corpus_of

COLUMNS = ("word", "upos", "lemma")
RELATIONS = ["a", "b", "root", *(f"r{k}" for k in range(40))]
WORDS = ["The", "old", "dog", "B-52s", "on", "a", "Walking", "", "1984", ","]
TAGS = ["DET", "NOUN", "VERB", "X"]


# --- the language -----------------------------------------------------------------------------------------------------


def texts(lines: str | list[str], columns: tuple[str, ...] = COLUMNS) -> list[str]:
    return [t.text for t in parse_parsing_templates(lines, columns)]


def atoms(line: str, columns: tuple[str, ...] = COLUMNS) -> tuple[SearchAtom, ...]:
    (made,) = parse_parsing_templates([line], columns)
    return made.atoms


STACK_PLACES = {"S0": (0, 0), "S3": (0, 3), "N0": (1, 0), "N2": (1, 2)}


@pytest.mark.uncompiled
@pytest.mark.parametrize("child", ["", "l", "l2", "r", "r2"])
@pytest.mark.parametrize("name", STACK_PLACES)
def test_places_are_all_different(name: str, child: str) -> None:
    made = [atoms(f"{name}{child}{offset}.word")[0].place for offset in ("", "[+1]", "[-2]")]
    side, index = STACK_PLACES[name]
    assert [(p[0], p[1], p[3]) for p in made] == [(side, index, 0), (side, index, 1), (side, index, -2)]
    others = {atoms(f"{name}{c}.word")[0].place for c in ("", "l", "l2", "r", "r2")}
    assert len(others) == 5 and made[0] in others


@pytest.mark.uncompiled
@pytest.mark.parametrize(
    ("line", "column", "name"),
    [
        ("S0.word", "word", "word"),
        ("S0.lower", "word", "lower"),
        ("N1.suffix3", "word", "suffix3"),
        ("S0l.upos", "upos", "word"),
        ("S0[+1].lemma.prefix2", "lemma", "prefix2"),
        ("S0.word.shape", "word", "shape"),
    ],
)
def test_an_atom_asks_a_place_for_an_attribute_of_a_column(line: str, column: str, name: str) -> None:
    (atom,) = atoms(line)
    assert (atom.column, atom.attribute, atom.dynamic, atom.other) == (column, attribute(name), 0, None)


@pytest.mark.uncompiled
def test_what_only_the_search_knows() -> None:
    known = ["S0l.relation", "S0.lefts", "S0.rights", "S0.left-set", "S0.right-set", "distance(S0,N0)"]
    made = [atoms(line)[0] for line in known]
    assert all(a.attribute is None for a in made) and 0 not in {a.dynamic for a in made}
    assert len({a.dynamic for a in made}) == len(known)
    assert (made[-1].place, made[-1].other) == (TemplatePlace(0, 0), TemplatePlace(1, 0))
    assert atoms("distance(S1r2,N0[-1])")[0].other == TemplatePlace(1, 0, 0, -1)
    assert texts("distance( S0 , N0 )") == ["distance(S0,N0)"]


@pytest.mark.uncompiled
def test_a_column_shadows_what_has_its_name() -> None:
    columns = ("word", "relation", "lower")
    assert atoms("S0.relation", columns)[0].column == "relation"
    assert atoms("S0.lower", columns) == (SearchAtom(TemplatePlace(0, 0), "lower", attribute("word")),)
    assert atoms("S0.word.lower", columns)[0].column == "word"


@pytest.mark.uncompiled
@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ("S0..2.word", ["S0.word", "S1.word", "S2.word"]),
        ("N1..2.suffix2..3", ["N1.suffix2", "N1.suffix3", "N2.suffix2", "N2.suffix3"]),
        ("S0..1l.upos", ["S0l.upos", "S1l.upos"]),
        ("S0..1[-1].upos", ["S0[-1].upos", "S1[-1].upos"]),
        ("S0.word & N0..1.lemma.prefix1", ["S0.word & N0.lemma.prefix1", "S0.word & N1.lemma.prefix1"]),
        ("S0..1.upos & distance(S0,N0)", ["S0.upos & distance(S0,N0)", "S1.upos & distance(S0,N0)"]),
        ("S1..1.word", ["S1.word"]),
        ("  S0.word&N0.word # pair", ["S0.word & N0.word"]),
        ("# nothing\n\nS0.word\n N0.word", ["S0.word", "N0.word"]),
        ("N0.upos\nS0..1.upos\nS0.upos", ["N0.upos", "S0.upos", "S1.upos"]),
    ],
)
def test_ranges_are_written_out_and_nothing_comes_twice(line: str, wanted: list[str]) -> None:
    assert texts(line) == texts(line.splitlines()) == wanted
    assert texts(wanted) == wanted


@pytest.mark.uncompiled
@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("word", "template 'word': 'word' is not an atom; atoms look like S0.word, N1.upos, S0l.relation, S0[+1]"),
        ("S0", "template 'S0': 'S0' is not an atom"),
        ("B0.word", "template 'B0.word': 'B0.word' is not an atom"),
        ("S10.word", "template 'S10.word': 'S10.word' is not an atom"),
        ("S0x.word", "template 'S0x.word': 'S0x.word' is not an atom"),
        ("S0l3.word", "template 'S0l3.word': 'S0l3.word' is not an atom"),
        ("S0[1].word", "template 'S0[1].word': 'S0[1].word' is not an atom"),
        ("S0.word &", "template 'S0.word &': '' is not an atom"),
        ("S0.word & tag[-1]", "template 'S0.word & tag[-1]': 'tag[-1]' is not an atom"),
        ("S0.wrd", "template 'S0.wrd': there is no attribute or column 'wrd'; columns: lemma, upos, word; attributes:"),
        ("S0.pos.suffix2", "template 'S0.pos.suffix2': there is no attribute or column 'pos'; columns:"),
        ("S0.upos.tense", "template 'S0.upos.tense': there is no attribute or column 'tense'; columns:"),
        ("S0.suffix", "template 'S0.suffix': there is no attribute or column 'suffix'"),
        ("S2..1.word", "template 'S2..1.word': the range 2..1 does not go upwards"),
        ("S0.suffix3..2", "template 'S0.suffix3..2': the range 3..2 does not go upwards"),
        ("S0..1.word & N0..1.word", "template 'S0..1.word & N0..1.word': only one atom may have a range"),
        ("distance(S0)", "template 'distance(S0)': 'distance(S0)' is not an atom"),
        ("distance(S0,X0)", "template 'distance(S0,X0)': 'X0' is not a place; places look like S0, N1, S0l or N0[-1]"),
        ("distance(S0..1,N0)", "template 'distance(S0..1,N0)': 'S0..1' is not a place"),
        ("# nothing", "there are no templates: give at least one, such as 'S0.word'"),
    ],
)
def test_mistakes_are_named(line: str, says: str) -> None:
    with pytest.raises(ConfigurationError, match=f"^{re.escape(says)}") as caught:
        parse_parsing_templates(line, COLUMNS)
    assert "\n" not in str(caught.value)


@pytest.mark.uncompiled
def test_defaults_fit_the_columns() -> None:
    for columns in (("word",), ("word", "upos"), ("word", "lemma"), ("word", "upos", "xpos")):
        made = parse_parsing_templates(default_parsing_templates(columns), columns)
        used = {a.column for t in made for a in t.atoms if a.column}
        assert used <= set(columns) and ({"upos", "xpos"} & used or not {"upos", "xpos"} & set(columns))
        assert parse_parsing_templates([t.text for t in made], columns) == made


# --- what is seen, the slow way ---------------------------------------------------------------------------------------


class Parse:
    """Stack, buffer and dependents, kept in lists."""

    def __init__(self, words: list[dict[str, str]]):
        self.words, self.stack, self.front, self.pending = words, [], 0, 0
        self.lefts: dict[int, list[int]] = defaultdict(list)  # nearest first
        self.rights: dict[int, list[int]] = defaultdict(list)
        self.relation: dict[int, int] = {}

    def take(self, kind: int, relation: int, later: bool) -> None:
        if kind == SHIFT:
            self.stack.append(self.front)
            self.front += 1
        elif later and kind != LABEL:
            self.pending = kind
        else:
            arc, self.pending = self.pending or kind, 0
            word = self.stack.pop()
            self.relation[word] = relation
            if arc == RIGHT:
                self.rights[self.stack[-1]].append(word)
            elif self.front < len(self.words):
                self.lefts[self.front].append(word)

    def place(self, text: str) -> int | None:
        """The word at a place such as S0l2[+1]."""
        side, index, child, offset = re.fullmatch(r"(.)(\d)(\D\d?)?(?:\[(.*)\])?", text).groups()
        word = self.front + int(index)
        if side == "S":
            word = self.stack[-1 - int(index)] if int(index) < len(self.stack) else len(self.words)
        if word >= len(self.words):
            return None
        if child:
            some = self.lefts[word] if child[0] == "l" else self.rights[word]
            nth = int(child[1:] or 1)
            if len(some) < nth:
                return None
            word = some[-nth]
        word += int(offset or 0)
        return word if 0 <= word < len(self.words) else None

    def value(self, atom: str) -> Any:
        if atom.startswith("distance"):
            one, other = (self.place(p) for p in atom[len("distance(") : -1].split(","))
            return None if one is None or other is None else min(abs(one - other), 10)
        place, name = atom.split(".", 1)
        word = self.place(place)
        if word is None:
            return None
        sides = {"left": self.lefts[word], "right": self.rights[word]}
        if name == "relation":
            return self.relation[word]
        if name in ("lefts", "rights"):
            return min(len(sides[name[:-1]]), 4)
        if name.endswith("-set"):
            return frozenset(self.relation[w] % 31 for w in sides[name[:-4]])
        column, _, kind = name.rpartition(".")
        if not column:
            column, kind = (name, "word") if name in COLUMNS else ("word", name)
        return attribute_text(attribute(kind), self.words[word][column])

    def features(self, templates: list[str]) -> tuple[list[Any], list[Any]]:
        """The features of the search and those of the items, in words."""
        search, roles = [], {}
        for text in templates:
            parts = text.split(" & ")
            places = {p.split(".")[0] for p in parts}
            dynamic = "distance" in text or any(re.search(r"\.(relation|lefts|rights|\w+-set)$", p) for p in parts)
            if len(places) == 1 and not dynamic:
                roles.setdefault(places.pop(), []).append(text)
            else:
                search.append(self.feature(text))
        items = []
        for place, own in roles.items():
            here = self.place(place) is not None
            items += [self.feature(text) for text in own] if here else [(self.pending, f"nothing at {place}")]
        return [f for f in search if f is not None], [f for f in items if f is not None]

    def feature(self, text: str) -> tuple[Any, ...] | None:
        """What a template sees; None if a part of it is missing."""
        values = [self.value(part) for part in text.split(" & ")]
        return None if None in values else (self.pending, text, *values)


# --- what the space shows ---------------------------------------------------------------------------------------------


def _watch(space, xs, ys, path, s, features, items, legal, seen):
    """Walk along a path; what every function says at each state goes into a row."""
    x, y = row_of(xs, 0), row_of(ys, 0)
    for t in range(path.size):
        features.size[0] = items.size[0] = 0
        features_of(space, x, s, features)
        items_of(space, x, s, items)
        for a in range(legal.size):
            legal[a] = False
        legal_of(space, x, s, legal)
        seen[t, 0], seen[t, 1], seen[t, 2] = features.size[0], items.size[0], key_of(space, x, s)
        seen[t, 3] = np.int64(2.0 * cost_of(space, x, y, s, path[t]))
        n = 4
        for k in range(features.size[0]):
            seen[t, n + k] = features.ids[k]
        n += features.size[0]
        for k in range(items.size[0]):
            seen[t, n + 2 * k], seen[t, n + 2 * k + 1] = items.items[k], items.roles[k]
        n += 2 * items.size[0]
        for a in range(legal.size):
            seen[t, n + a] = legal[a]
        step_of(space, x, s, path[t])


watch = Kernel(_watch)


def watched(task: ParsingTask, examples: Examples, path: list[int], compiled: bool) -> tuple[np.ndarray, np.ndarray]:
    sizes, s = task.space.sizes, np.zeros(examples.states[0], np.int32)
    seen = np.zeros((len(path), 4 + sizes.features + 2 * sizes.items + sizes.actions), np.int64)
    buffers = feature_buffer(sizes.features), item_buffer(sizes.items), np.zeros(sizes.actions, np.bool_)
    space = bind("Space", task.space.functions())
    watch(compiled, space, examples.x, examples.y, np.array(path, np.int64), s, *buffers, seen)
    return seen, s


@st.composite
def places(draw: st.DrawFn) -> str:
    place = (
        draw(st.sampled_from("SN")) + str(draw(st.integers(0, 3))) + draw(st.sampled_from(["", "l", "l2", "r", "r2"]))
    )
    return place + draw(st.sampled_from(["", "", "", "[+1]", "[-1]", "[-3]"]))


@st.composite
def random_atoms(draw: st.DrawFn) -> str:
    kind = draw(st.integers(0, 5))
    if kind == 0:
        return f"distance({draw(places())},{draw(places())})"
    if kind == 1:
        return f"{draw(st.sampled_from(['S0', 'S1', 'N0']))}{draw(st.sampled_from(['l', 'l2', 'r', 'r2']))}.relation"
    if kind == 2:
        names = ["lefts", "rights", "left-set", "right-set"]
        return f"{draw(st.sampled_from(['S0', 'S1', 'S2', 'N0']))}.{draw(st.sampled_from(names))}"
    names = ["word", "lower", "suffix2", "prefix3", "shape", "upos", "lemma.suffix1", "upos.prefix1", "word.class"]
    return f"{draw(places())}.{draw(st.sampled_from(names))}"


random_templates = st.lists(st.lists(random_atoms(), min_size=1, max_size=3).map(" & ".join), min_size=1, max_size=12)


def path_and_examples(task: ParsingTask, seed: int, length: int) -> tuple[list[int], Examples, list[dict[str, str]]]:
    """A sentence at random, and actions at random that parse it."""
    generator = np.random.default_rng(seed)
    drawn = zip(generator.choice(WORDS, length), generator.choice(TAGS, length), strict=True)
    words = [{"word": str(w), "upos": str(t), "lemma": str(w).lower()} for w, t in drawn]
    heads = np.arange(length) - 1
    relations = generator.integers(0, len(RELATIONS), length)
    examples = task.examples(corpus_of([words]), Trees(heads, relations), generator.integers(0, 2, length))
    x, s, path = examples.example(0)[0], np.zeros(examples.states[0], np.int32), []
    while True:
        legal = np.zeros(len(task.actions), np.bool_)
        task.space.actions(x, s, legal)
        if not legal.any():
            return path, examples, words
        kinds = np.array([kind for kind, _, _ in task.actions])
        if len(path) % 8 == 0:  # the same kind of action for a while, so that words get many dependents
            liked = generator.random(4)
            liked[(SHIFT, LEFT, SHIFT, RIGHT)[len(path) // 8 % 4]] += seed % 2
        kind = max(np.unique(kinds[legal]), key=liked.__getitem__)
        path.append(int(generator.choice(np.flatnonzero(legal & (kinds == kind)))))
        task.space.step(x, s, path[-1])


def check_sight(templates: list[str] | None, labelling: str, roots: str, seed: int, length: int) -> None:
    """On the way, each feature has a number of its own, and always the same; compiled code gives the same numbers."""
    some = range(len(RELATIONS))
    task = ParsingTask(RELATIONS, some, some, 2, columns=COLUMNS, templates=templates, labelling=labelling, roots=roots)
    path, examples, words = path_and_examples(task, seed, length)
    seen, end = watched(task, examples, path, compiled=False)
    again, compiled_end = watched(task, examples, path, compiled=True)
    assert np.array_equal(seen, again) and np.array_equal(end, compiled_end)
    of, twin = examples.items, Parse(words)
    in_words: dict[int, Any] = {}
    as_number: dict[Any, int] = {}
    lines = texts(default_parsing_templates(COLUMNS, labelling != "none") if templates is None else templates)
    for t, a in enumerate(path):
        count, looks = seen[t, :2].tolist()
        shown = seen[t, 4 : 4 + count].tolist()
        for item, role in seen[t, 4 + count : 4 + count + 2 * looks].reshape(-1, 2).tolist():
            kind = of.types[of.first[0] + item]
            shown += [in_role(identity, role) for identity in of.ids[of.start[kind] : of.start[kind + 1]].tolist()]
        search, items = twin.features(lines)
        assert len(search) == count
        for identity, feature in zip(shown, [*search, *items], strict=True):
            assert in_words.setdefault(identity, feature) == feature
            assert as_number.setdefault(feature, identity) == identity
        twin.take(*task.actions[a][:2], later=labelling == "second")


@pytest.mark.uncompiled
@settings(max_examples=40)
@given(random_templates, st.sampled_from(LABELLINGS), st.sampled_from(ROOTS), st.integers(0, 10**6), st.integers(1, 20))
def test_templates_see_what_they_say(templates: list[str], labelling: str, roots: str, seed: int, length: int) -> None:
    check_sight(templates, labelling, roots, seed, length)


@pytest.mark.uncompiled
@pytest.mark.parametrize("roots", ROOTS)
@pytest.mark.parametrize("labelling", LABELLINGS)
def test_default_templates_see_what_they_say(labelling: str, roots: str) -> None:
    for seed, length in enumerate([1, 2, 16, 16, 16, 16]):
        check_sight(None, labelling, roots, seed, length)
