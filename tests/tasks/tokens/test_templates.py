"""The template language: what it reads, in which order, and every way to misspell it."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lols.errors import ConfigurationError
from lols.tasks.tagging.task import default_templates
from lols.tasks.tokens.attributes import attribute
from lols.tasks.tokens.encoding import TemplateLayout
from lols.tasks.tokens.templates import Atom, parse_templates

COLUMNS = ("word", "pos", "cluster")


def texts(lines: str | list[str], columns: tuple[str, ...] = COLUMNS) -> list[str]:
    return [t.text for t in parse_templates(lines, columns)]


def atoms(line: str, columns: tuple[str, ...] = COLUMNS) -> tuple[Atom, ...]:
    (made,) = parse_templates([line], columns)
    return made.atoms


# --- what is read -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ("word", [("word", "word", 0)]),
        ("suffix3[-1]", [("word", "suffix3", -1)]),
        ("lower[+2]", [("word", "lower", 2)]),
        ("lower[2]", [("word", "lower", 2)]),
        ("pos", [("pos", "word", 0)]),
        ("pos[1]", [("pos", "word", 1)]),
        ("cluster.prefix4", [("cluster", "prefix4", 0)]),
        ("cluster.prefix4[-9]", [("cluster", "prefix4", -9)]),
        ("word.suffix12", [("word", "suffix12", 0)]),
        ("word & pos[-1]", [("word", "word", 0), ("pos", "word", -1)]),
        ("word&pos", [("word", "word", 0), ("pos", "word", 0)]),
    ],
)
def test_an_atom_is_a_column_an_attribute_and_a_place(line: str, wanted: list[tuple[str, str, int]]) -> None:
    assert atoms(line) == tuple(Atom(column, attribute(name), offset) for column, name, offset in wanted)


@pytest.mark.parametrize(
    ("line", "tags", "count"),
    [
        ("tag[-1]", (1,), 0),
        ("tag[-3]", (3,), 0),
        ("tag[-1] & tag[-2]", (1, 2), 0),
        ("tag[-3] & word & tag[-1]", (1, 3), 1),
    ],
)
def test_tags_are_kept_apart_nearest_first(line: str, tags: tuple[int, ...], count: int) -> None:
    (made,) = parse_templates([line])
    assert made.tags == tags and len(made.atoms) == count and made.text == line


def test_bias_looks_at_nothing() -> None:
    (made,) = parse_templates(["bias"])
    assert made.tags == () and [a.attribute for a in made.atoms] == [None]
    assert TemplateLayout.of([made]).bias


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ("suffix1..3", ["suffix1", "suffix2", "suffix3"]),
        ("word[-1..1]", ["word[-1]", "word", "word[+1]"]),
        ("word[-1..+1]", ["word[-1]", "word", "word[+1]"]),
        ("suffix2..3[-1]", ["suffix2[-1]", "suffix3[-1]"]),
        ("cluster.prefix2..3", ["cluster.prefix2", "cluster.prefix3"]),
        ("pos[0..1] & tag[-1]", ["pos & tag[-1]", "pos[+1] & tag[-1]"]),
        ("tag[-2..-1] & word", ["tag[-2] & word", "tag[-1] & word"]),
        ("suffix2..2", ["suffix2"]),
        ("word[0..0]", ["word"]),
    ],
)
def test_ranges_are_written_out(line: str, wanted: list[str]) -> None:
    assert texts(line) == wanted


@pytest.mark.parametrize(
    ("line", "canonical"),
    [
        ("  word  ", "word"),
        ("word[0]", "word"),
        ("word[+0]", "word"),
        ("word[2]", "word[+2]"),
        ("word[-0]", "word"),
        ("lower[-1]&lower", "lower[-1] & lower"),
        ("lower[-1]  &\tlower   # both", "lower[-1] & lower"),
        ("suffix03", "suffix3"),
    ],
)
def test_a_template_has_one_text_however_it_is_written(line: str, canonical: str) -> None:
    made = parse_templates([line])
    assert [t.text for t in made] == [canonical] and made == parse_templates([canonical])


def test_lines_comments_and_strings_are_the_same() -> None:
    text = "word # itself\n\n# nothing\nlower[-1]\r\n   \ntag[-1]"
    assert texts(text) == texts(text.splitlines()) == texts(iter(["word", "lower[-1]", "tag[-1]"])) == [
        "word", "lower[-1]", "tag[-1]",
    ]  # fmt: skip


def test_the_order_is_that_of_first_mention_and_nothing_comes_twice() -> None:
    assert texts(["shape", "word[1]", "word[-1..1]", "shape"]) == ["shape", "word[+1]", "word[-1]", "word"]


@given(st.lists(st.sampled_from(["word", "lower[-1]", "pos & word", "tag[-1]", "suffix1..2", "bias"]), min_size=1))
def test_reading_the_texts_again_changes_nothing(lines: list[str]) -> None:
    made = parse_templates(lines, COLUMNS)
    assert parse_templates([t.text for t in made], COLUMNS) == made


@given(st.integers(-9, 9), st.integers(1, 12), st.sampled_from(["prefix", "suffix", "cluster.prefix", "word.suffix"]))
def test_the_text_says_what_is_looked_at(offset: int, size: int, name: str) -> None:
    (made,) = parse_templates([f"{name}{size}[{offset}]"], COLUMNS)
    column, _, rest = made.text.rpartition(".")
    kind, at = re.fullmatch(r"(\w+?\d+)(?:\[([+-]\d)\])?", rest).groups()
    assert made.atoms == (Atom(column or "word", attribute(kind), int(at or 0)),)


# --- columns that are called like attributes --------------------------------------------------------------------------


def test_a_column_shadows_the_attribute_of_its_name() -> None:
    columns = ("word", "lower", "shape")
    assert atoms("lower", columns) == (Atom("lower", attribute("word")),)
    assert atoms("lower") == (Atom("word", attribute("lower")),)
    assert atoms("word.lower", columns) == (Atom("word", attribute("lower")),)
    assert atoms("shape.suffix2[-1]", columns) == (Atom("shape", attribute("suffix2"), -1),)
    assert atoms("word", columns) == (Atom("word", attribute("word")),)


def test_names_of_columns_may_have_digits_hyphens_and_letters_of_any_script() -> None:
    columns = ("word", "column2", "ner-tag", "größe", "suffix3")
    assert atoms("column2", columns) == (Atom("column2", attribute("word")),)
    assert atoms("ner-tag[-1]", columns) == (Atom("ner-tag", attribute("word"), -1),)
    assert atoms("größe.lower", columns) == (Atom("größe", attribute("lower")),)
    assert atoms("suffix3", columns) == (Atom("suffix3", attribute("word")),)
    assert atoms("column2.prefix1", columns) == (Atom("column2", attribute("prefix1")),)


def test_default_templates_can_be_read_for_any_columns() -> None:
    for columns in (["word"], ["word", "pos"], ["pos"], ["word", "cluster"], ["word", "feats_Case", "column3"], []):
        made = parse_templates(default_templates(columns), columns or ["word"])
        assert len(made) >= 3
        named = {a.column for t in made for a in t.atoms if a.attribute is not None}
        assert named == set(columns)


# --- mistakes ---------------------------------------------------------------------------------------------------------

NO_COLUMN = (
    "columns: cluster, pos, word; attributes: word, lower, prefixN, suffixN, shape, class, length, digits; "
    "also tag[-1], bias"
)


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("sufix3", f"template 'sufix3': there is no attribute or column 'sufix3'; {NO_COLUMN}"),
        ("word & posn", f"template 'word & posn': there is no attribute or column 'posn'; {NO_COLUMN}"),
        ("po.suffix2", f"template 'po.suffix2': there is no attribute or column 'po'; {NO_COLUMN}"),
        ("pos.tense", f"template 'pos.tense': there is no attribute or column 'tense'; {NO_COLUMN}"),
        ("prefix", f"template 'prefix': there is no attribute or column 'prefix'; {NO_COLUMN}"),
        ("suffix0", f"template 'suffix0': there is no attribute or column 'suffix0'; {NO_COLUMN}"),
        ("pos.tag[-1]", f"template 'pos.tag[-1]': there is no attribute or column 'tag'; {NO_COLUMN}"),
        ("bias[1]", f"template 'bias[1]': there is no attribute or column 'bias'; {NO_COLUMN}"),
        ("word & ", "template 'word &': '' is not an atom; atoms look like word, suffix3[-1], pos[+1] or tag[-1]"),
        ("word[", "template 'word[': 'word[' is not an atom; atoms look like"),
        ("word[a]", "template 'word[a]': 'word[a]' is not an atom; atoms look like"),
        ("3word", "template '3word': '3word' is not an atom; atoms look like"),
        ("word, pos", "template 'word, pos': 'word, pos' is not an atom; atoms look like"),
        ("a.b.c", "template 'a.b.c': 'a.b.c' is not an atom; atoms look like"),
        ("tag", "template 'tag': tags are known for tag[-1] to tag[-3] only"),
        ("tag[0]", "template 'tag[0]': tags are known for tag[-1] to tag[-3] only"),
        ("tag[+1]", "template 'tag[+1]': tags are known for tag[-1] to tag[-3] only"),
        ("tag[-4]", "template 'tag[-4]': tags are known for tag[-1] to tag[-3] only"),
        ("tag[-1..1]", "template 'tag[-1..1]': tags are known for tag[-1] to tag[-3] only"),
        ("tag[-1] & tag[-1]", "template 'tag[-1] & tag[-1]': names a tag twice"),
        ("word[10]", "template 'word[10]': 10 is too far away; at most 9 places"),
        ("word[-10]", "template 'word[-10]': -10 is too far away; at most 9 places"),
        ("suffix3..1", "template 'suffix3..1': the range 3..1 does not go upwards, or too far"),
        ("word[1..-1]", "template 'word[1..-1]': the range 1..-1 does not go upwards, or too far"),
        ("suffix1..99", "template 'suffix1..99': the range 1..99 does not go upwards, or too far"),
        ("suffix1..2[-1..1]", "template 'suffix1..2[-1..1]': only one atom may have a range"),
        ("suffix1..2 & word[-1..1]", "template 'suffix1..2 & word[-1..1]': only one atom may have a range"),
    ],
)
def test_a_mistake_is_one_line_that_names_it(line: str, says: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        parse_templates(["word", line], COLUMNS)
    assert str(caught.value).startswith(says) and "\n" not in str(caught.value)


@pytest.mark.parametrize("lines", ["", "\n \n", "# only a comment", [], ["", "  # "]])
def test_no_templates_at_all_is_a_mistake(lines: str | list[str]) -> None:
    with pytest.raises(ConfigurationError, match="there are no templates: give at least one, such as 'word'"):
        parse_templates(lines)


# --- groups -----------------------------------------------------------------------------------------------------------


def test_templates_are_sorted_by_what_they_look_at() -> None:
    lines = ["bias", "word", "suffix2", "suffix1 & shape", "word[-1]", "pos", "pos & word", "word[-1] & word"]
    lines += ["tag[-1]", "tag[-3] & word[+1]", "bias & tag[-1]", "bias & pos"]
    layout = TemplateLayout.of(parse_templates(lines, COLUMNS))
    views = {place: [t.text for t in made] for place, made in layout.views.items()}
    assert views == {
        (0, "word"): ["word", "suffix2", "suffix1 & shape"],
        (-1, "word"): ["word[-1]"],
        (0, "pos"): ["pos", "bias & pos"],
    }
    assert [t.text for t in layout.joint] == ["pos & word", "word[-1] & word"]
    assert [t.text for t in layout.history] == ["tag[-1]", "tag[-3] & word[+1]", "bias & tag[-1]"]
    assert layout.bias and layout.order == 3 and layout.masks().tolist() == [1, 4, 1]
    assert layout.columns == ("word", "pos")
    assert len(set(layout.attributes["word"])) == len(layout.attributes["word"])
