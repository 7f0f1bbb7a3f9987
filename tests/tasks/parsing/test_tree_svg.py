"""Drawings of trees, and pages with them: well-formed, complete, escaped, and nothing lies on anything else."""

from __future__ import annotations

from itertools import combinations
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lols import Parser
from lols.tasks.explain import page as page_of
from lols.tasks.parsing.explain import explain_parse
from lols.tasks.parsing.tree_svg import _width, tree_svg
from tests.tasks.tokens.loaded import assert_loads_nothing

SVG = "{http://www.w3.org/2000/svg}"
STRANGE = ["<b>&amp;", "A&B", '"quoted"', "日本語", "café", "--></style>"]
CHAIN = [(2, "<x>"), (3, "a&b"), (0, "root"), (3, "nsubj:pass↑obj"), (4, "y"), (3, "punct")]


@st.composite
def trees(draw) -> list[tuple[int, str]]:
    """Any tree, projective or not: words hang on words that were there before them, in any order."""
    order = draw(st.permutations(range(1, draw(st.integers(1, 12)) + 1)))
    heads = {order[0]: 0} | {word: draw(st.sampled_from(order[:k])) for k, word in enumerate(order) if k}
    names = st.sampled_from(["det", "nsubj:pass", "acl:relcl", "x", "compound:prt↑nsubj"])
    return [(heads[k], draw(names)) for k in range(1, len(order) + 1)]


def read(drawing: str) -> ElementTree.Element:
    return ElementTree.fromstring(drawing)


def texts(drawing: str, kind: str) -> list[ElementTree.Element]:
    return [t for t in read(drawing).iter(f"{SVG}text") if t.get("class", "").split()[0] == kind]


def arcs(drawing: str, *kinds: str) -> list[ElementTree.Element]:
    return [g for g in read(drawing).iter(f"{SVG}g") if g.get("class", "").split()[1:] == list(kinds)]


def peak(arc: ElementTree.Element) -> float:
    """The height at which an arc runs: its relation is there."""
    return float(arc.find(f"{SVG}text").get("y"))


def test_every_word_tag_and_relation_is_there_as_it_is():
    drawing = tree_svg(STRANGE, CHAIN, tags=["T<", "&", "", "N", "N", "P"])
    assert [t.text for t in texts(drawing, "token")] == STRANGE
    assert [t.text for t in texts(drawing, "tag")] == ["T<", "&", "N", "N", "P"]
    assert sorted(t.text for t in texts(drawing, "relation")) == sorted(relation for _, relation in CHAIN)
    assert len(arcs(drawing)) == len(STRANGE)
    titles = {arc.find(f"{SVG}title").text for arc in arcs(drawing)}
    assert "--></style>" in STRANGE and '"quoted" → --></style>: punct' in titles and 'root → "quoted": root' in titles
    assert "script" not in drawing and "href" not in drawing and "url(" not in drawing


def test_wrong_arcs_have_a_colour_and_true_ones_hang_dashed_below():
    tree = [(2, "det"), (3, "nsubj"), (0, "root"), (3, "obl")]
    true = [(2, "det"), (3, "obj"), (0, "root"), (2, "obl")]
    drawing = tree_svg(["the", "dog", "barks", "now"], tree, true)
    assert [len(arcs(drawing, *kinds)) for kinds in ((), ("wrong",), ("true",))] == [2, 2, 2]
    assert [a.find(f"{SVG}text").text for a in sorted(arcs(drawing, "true"), key=peak)] == ["obj", "obl"]
    words = float(texts(drawing, "token")[0].get("y"))
    assert all(peak(arc) > words for arc in arcs(drawing, "true"))
    assert all(peak(arc) < words for kinds in ((), ("wrong",)) for arc in arcs(drawing, *kinds))
    assert all(a.find(f"{SVG}path").get("stroke-dasharray") for a in arcs(drawing, "true"))
    assert [t.get("class") for t in texts(drawing, "token")] == ["token", "token wrong", "token", "token wrong"]
    assert arcs(tree_svg(["a"], [(0, "root")], [(0, "root")]), "wrong") == []


def test_an_arc_is_as_high_as_those_below_it_need():
    drawing = tree_svg(list("abcd"), [(0, "root"), (1, "near"), (4, "other"), (1, "far")])
    height = {arc.find(f"{SVG}text").text: peak(arc) for arc in arcs(drawing)}
    assert height["near"] == height["other"] > height["far"] > height["root"]


@given(trees(), st.data())
def test_nothing_lies_on_anything_else_and_all_is_inside(tree, data):
    words = [data.draw(st.sampled_from(["a", "the", "Commonwealth", "日本", "mmm"])) for _ in tree]
    true = data.draw(st.one_of(st.none(), st.just([(0 if k == 0 else 1, "other") for k in range(len(tree))])))
    drawing = tree_svg(words, tree, true, tags=["PROPN"] * len(words))
    root = read(drawing)
    width, height = float(root.get("width")), float(root.get("height"))
    boxes = []
    for text in root.iter(f"{SVG}text"):
        half, size = _width(text.text, float(text.get("font-size"))) / 2, float(text.get("font-size"))
        x, y = float(text.get("x")), float(text.get("y"))
        boxes.append((x - half, y - 0.75 * size, x + half, y + 0.2 * size))
    for a in boxes:
        assert a[0] >= 0 and a[1] >= 0 and a[2] <= width and a[3] <= height
    for a, b in combinations(boxes, 2):
        assert a[2] <= b[0] or b[2] <= a[0] or a[3] <= b[1] or b[3] <= a[1]


@pytest.mark.parametrize("length", [1, 30])
def test_long_and_short_sentences_are_drawn(length):
    tree = [(0, "root")] + [(k, "conj") for k in range(1, length)]
    drawing = tree_svg(["word"] * length, tree)
    assert len(texts(drawing, "token")) == length and float(read(drawing).get("height")) < 200


# --- the page ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("labelling", ["joint", "second"])
@pytest.mark.parametrize("known", [True, False])
def test_the_page_is_well_formed_complete_and_escaped(labelling, known):
    words, tree = STRANGE[:4], [(2, "<x>"), (0, "root"), (2, "a&b"), (3, "<x>")]
    parser = Parser(passes=1, labelling=labelling).fit([words], [tree])
    made = explain_parse(parser, words, [(2, "a&b"), (0, "root"), (2, "a&b"), (2, "a&b")] if known else None)
    text = page_of(made, heading="Sentence <1> & more", about=["a < b"])
    page = ElementTree.fromstring(text.partition("\n")[2])  # HTML that is XML, too
    assert [t.text for t in page.iter(f"{SVG}text") if t.get("class").startswith("token")] == words
    assert page.find(".//h1").text == "Sentence <1> & more"
    rows = [e for e in page.iter("div") if e.get("class", "").split()[:1] == ["row"]]
    assert len(rows) == len(made.decisions) + 1 and ("loss " in "".join(rows[-1].itertext())) == known
    assert_loads_nothing(text)
