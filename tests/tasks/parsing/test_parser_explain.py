"""What `lols explain` and `lols inspect` say of parsers: costs are those of deviations by hand, names hash to ids."""

from __future__ import annotations

import json
from xml.etree import ElementTree

import numpy as np
import pytest

from lols import Parser
from lols.contract.features import feature_buffer, item_buffer
from lols.engine.table import features_by_row
from lols.errors import ConfigurationError, LolsError
from lols.kernels.hashing import mix
from lols.tasks.parsing.explain import explain_parse
from lols.tasks.parsing.inspect import find_parser_names
from lols.tasks.parsing.space import DISTANCE, FARTHEST, MOST_CHILDREN, PENDING, cell, dynamic_field, on_stack, word_at
from lols.tasks.parsing.treebank import Trees
from lols.tasks.registry import read_model
from lols.tasks.tokens.attributes import attribute_text
from lols.tasks.tokens.corpus import corpus_of
from tests.cli.command_line import error_line, run

TEMPLATES = [
    "S0.word", "S1.word", "N0.word", "N1.suffix2", "S0l.word", "S0.upos", "N0.upos", "S0.word & S0.upos",
    "S0.word & N0.upos", "S1.upos & S0.upos & N0.upos", "S0l.relation", "N0.left-set & N0.word", "S1.right-set",
    "distance(S0,N0) & S0.lefts", "S1.rights", "S0[+1].upos & S0.word",
]  # fmt: skip
WORDS = [
    *("the old dog barks", "a cat sleeps here", "dogs bark"),
    *("she sees the cat and a dog", "barks the dog", "he sees"),
]
TAGS = {"the": "D", "a": "D", "old": "A", "here": "R", "and": "C", "she": "P", "he": "P"}
TAGS |= dict.fromkeys(["barks", "sleeps", "bark", "sees"], "V")
TREES = [
    [(3, "det"), (3, "amod"), (4, "nsubj"), (0, "root")],
    [(2, "det"), (3, "nsubj"), (0, "root"), (3, "advmod")],
    [(2, "nsubj"), (0, "root")],
    [(2, "nsubj"), (0, "root"), (4, "det"), (2, "obj"), (7, "cc"), (7, "det"), (4, "conj")],
    [(0, "root"), (3, "det"), (1, "nsubj")],
    [(2, "nsubj"), (0, "root")],
]
# What a parser is asked after training, with a tree that it gets wrong in part, and a relation that it does not know.
ASKED = ["the", "cat", "and", "old", "dog", "bark"]
TREE = [(2, "det"), (6, "nsubj"), (5, "cc"), (5, "advmod"), (2, "conj"), (0, "root")]
UNSEEN = [(2, "det"), (6, "nsubj:pass"), (5, "cc"), (5, "amod"), (2, "conj"), (0, "root")]
CROSSED = [(2, "det"), (6, "nsubj"), (6, "cc"), (6, "advmod"), (2, "conj"), (0, "root")]
CASES = [("joint", "one", "optimal"), ("joint", "many", "optimal"), ("second", "one", "optimal")]
CASES += [("none", "one", "suboptimal"), ("second", "many", "suboptimal"), ("joint", "one", "bad")]


def sentence(words: list[str]) -> list[dict[str, str]]:
    return [{"word": w, "upos": TAGS.get(w, "N")} for w in words]


@pytest.fixture(scope="module")
def parsers():
    made = {}

    def parser(labelling: str = "joint", roots: str = "one", reference: str = "optimal", **options) -> Parser:
        name = (labelling, roots, reference, *options.items())
        if name not in made:
            whole = {"passes": 2, "templates": TEMPLATES, "progress": False} | options
            made[name] = Parser(labelling=labelling, roots=roots, reference=reference, **whole)
            made[name].fit([sentence(line.split()) for line in WORDS], TREES)
        return made[name]

    return parser


# --- deviations by hand -----------------------------------------------------------------------------------------------


class ByHand:
    """A parser's search of one sentence in plain Python: any actions first, then learner or teacher to the end."""

    def __init__(self, parser: Parser, words: list[str], tree: list[tuple[int, str]]):
        self.task, policy = parser.task_, parser.model_.policy
        heads, known = np.array([h - 1 for h, _ in tree]), self.task.relations
        relations = np.array([known.index(r) if r in known else -1 for _, r in tree])
        if self.task.labelling == "none":
            relations = (heads < 0).astype(np.int64)
        self.space, self.reference = self.task.space, self.task.reference(parser.reference)
        self.examples = self.task.examples(corpus_of([sentence(words)]), Trees(heads, relations))
        self.x, self.y = self.examples.example(0)
        ids = features_by_row(policy.shared, policy.stack.shape[1])
        self.weights = {int(i): policy.stack[0, row].astype(float) for row, i in enumerate(ids)}

    def legal(self, state) -> list[int]:
        allowed = np.zeros(len(self.task.actions), bool)
        self.space.actions(self.x, state, allowed)
        return np.flatnonzero(allowed).tolist()

    def features(self, state) -> list[int]:
        own, looks = feature_buffer(self.space.sizes.features), item_buffer(self.space.sizes.items)
        self.space.features(self.x, state, own)
        self.space.items(self.x, state, looks)
        ids, items = own.ids[: own.size[0]].tolist(), self.examples.items
        for item, role in zip(looks.items[: looks.size[0]], looks.roles[: looks.size[0]], strict=True):
            kind = items.types[item]
            for i in items.ids[items.start[kind] : items.start[kind + 1]].tolist():
                ids.append(mix(i, int(role)) if role else i)
        return ids

    def costs(self, state) -> np.ndarray:
        """What the model predicts."""
        return sum(
            (self.weights[i] for i in self.features(state) if i in self.weights), np.zeros(len(self.task.actions))
        )

    def taught(self, state) -> list[int]:
        """What the teacher likes."""
        if self.reference.action is not None:
            return [int(self.reference.action(self.x, self.y, state))]
        out = np.full(len(self.task.actions), np.inf)
        self.reference.costs(self.x, self.y, state, out)
        least = min(out[a] for a in self.legal(state))
        return [a for a in self.legal(state) if out[a] == least]

    def state(self, actions) -> np.ndarray:
        state = np.zeros(int(self.examples.states[0]), np.int64)
        self.space.start(self.x, state)
        for action in actions:
            self.space.step(self.x, state, action)
        return state

    def path(self, actions, who: str) -> list[int]:
        """All actions when `who` goes on after these."""
        state, made = self.state(actions), list(actions)
        while self.legal(state):
            costs = self.costs(state)
            liked = min(self.legal(state), key=lambda a, costs=costs: (round(costs[a], 5), a))
            made.append(liked if who == "learned" else self.taught(state)[0])
            self.space.step(self.x, state, made[-1])
        return made

    def loss(self, actions, who: str) -> float:
        return float(self.space.loss(self.x, self.y, self.state(self.path(actions, who))))


@pytest.mark.thinned(5)
@pytest.mark.parametrize("roll_out", ["learned", "reference", "mixture"])
@pytest.mark.parametrize("case", CASES)
def test_losses_are_those_of_deviations_by_hand(parsers, case, roll_out):
    parser = parsers(*case)
    tree = UNSEEN if case[0] == "joint" else TREE
    hand, names = ByHand(parser, ASKED, tree), inspected_names(parser)
    share = {"learned": 0.0, "reference": 1.0, "mixture": 0.25}[roll_out]
    made = explain_parse(parser, sentence(ASKED), tree, roll_out=roll_out, beta=0.25 if roll_out == "mixture" else None)
    path = hand.path([], "learned")
    assert [s.taken.action for s in made.decisions] == [names[a] for a in path]
    assert made.loss == hand.loss(path, "learned") and made.loss > 0
    for t, step in enumerate(made.decisions):
        state = hand.state(path[:t])
        losses = {
            names[a]: share * hand.loss([*path[:t], a], "reference")
            + (1 - share) * hand.loss([*path[:t], a], "learned")
            for a in hand.legal(state)
        }
        assert {m.action: m.loss for m in step.actions} == pytest.approx(losses)
        least = min(losses.values())
        assert {m.action: m.cost for m in step.actions} == pytest.approx(
            {a: loss - least for a, loss in losses.items()}
        )
        assert {m.action for m in step.actions if m.right} == {names[a] for a in hand.taught(state)}
        predicted = {names[a]: hand.costs(state)[a] for a in hand.legal(state)}
        assert {m.action: m.predicted for m in step.actions} == pytest.approx(predicted, abs=1e-4)
        assert step.state["stack"] == list(int(on_stack(state, k)) + 1 for k in range(int(state[1]) - 1, -1, -1))
        assert step.state["front"] == state[0] + 1


def inspected_names(parser: Parser) -> list[str]:
    kinds, labels = (
        ["Shift", "Right", "Left", "Label"],
        {"joint": (1, 2), "second": (3,)}.get(parser.task_.labelling, ()),
    )
    return [kinds[k] + (f" {parser.task_.relations[r]}" if k in labels else "") for k, r, _ in parser.task_.actions]


def test_plain_python_says_the_same(parsers):
    for case in (CASES[0], CASES[2]):
        compiled, plain = (
            explain_parse(parsers(*case), sentence(ASKED), TREE, roll_out="mixture", compiled=c) for c in (True, False)
        )
        assert compiled == plain


@pytest.mark.parametrize("case", CASES)
def test_arcs_add_up_to_the_tree_that_is_predicted(parsers, case):
    parser = parsers(*case)
    for tree in (None, TREE):
        made = explain_parse(parser, sentence(ASKED), tree)
        arcs = [step.state["arc"] for step in made.decisions if step.state["arc"]]
        arcs = {arc["dependent"]: (arc["head"], arc["relation"]) for arc in arcs}
        found = [(w.head, w.relation) for w in made.words]
        assert found == parser.predict_one(sentence(ASKED))
        assert all(arcs.get(k, (0, "root")) == pair for k, pair in enumerate(found, 1))
    right = [
        w.head == h and (w.head == 0 or case[0] == "none" or w.relation == r) for w, (h, r) in zip(made.words, TREE)
    ]
    assert [w.wrong for w in made.words] == [not r for r in right]
    assert made.loss == right.count(False)


def test_what_the_optimal_teacher_likes_costs_nothing_when_it_goes_on(parsers):
    made = explain_parse(parsers(), sentence(ASKED), TREE, roll_out="reference")
    assert all((m.cost == 0) == m.right for step in made.decisions for m in step.actions)
    assert any(step.wrong for step in made.decisions)


def test_crossing_arcs_unknown_relations_and_several_roots_are_told(parsers):
    def notes(tree, *case):
        return " ".join(explain_parse(parsers(*case), sentence(ASKED), tree).notes)

    assert notes(TREE) == "" and "not projective" in notes(CROSSED) and "1 word lifted" in notes(CROSSED)
    assert "always wrong: nsubj:pass" in notes(UNSEEN) and notes(UNSEEN, "none") == ""
    two = [(2, "det"), (0, "root"), (5, "cc"), (5, "amod"), (6, "nsubj"), (0, "root")]
    assert "several roots" in notes(two) and notes(two, "joint", "many") == ""


def test_by_itself_the_roll_out_is_that_of_training(parsers):
    options = [{"algorithm": "lols"}, {"algorithm": "aggrevate"}, {"algorithm": "dagger"}, {"roll_out": "learned"}]
    made = [explain_parse(parsers(**o), sentence(ASKED), TREE) for o in options]
    assert [m.roll_out for m in made] == ["mixture", "reference", "none", "learned"]
    assert [m.beta for m in made] == [0.5, None, None, None]
    assert all(m.loss is None and m.cost in (0.0, 1.0) for step in made[2].decisions for m in step.actions)
    searn = explain_parse(parsers(algorithm="searn"), sentence(ASKED), TREE)
    assert searn.roll_out is None and searn.loss is None and "Searn" in searn.notes[-1]


def test_shown_are_the_best_liked_and_the_teachers(parsers):
    made = explain_parse(parsers(), sentence(ASKED), TREE)
    for step in made.decisions:
        shown = step.shown(1)
        assert shown[0] == step.actions[0] and step.taken in shown and any(m.right for m in shown) and len(shown) <= 2
        assert step.others(1) == [m for m in step.actions if m not in shown]


def test_mistakes_in_python_are_named(parsers):
    with pytest.raises(LolsError, match="no words"):
        explain_parse(parsers(), [])
    with pytest.raises(LolsError, match="the column 'upos'"):
        explain_parse(parsers(), ["a", "dog"])
    with pytest.raises(LolsError, match="has 1 words, but its tree has 2"):
        explain_parse(parsers(), sentence(["a"]), [(0, "root"), (1, "x")])
    with pytest.raises(ConfigurationError, match="roll_out is 'all'"):
        explain_parse(parsers(), sentence(ASKED), TREE, roll_out="all")


# --- names of features ------------------------------------------------------------------------------------------------


def slow_names(hand: ByHand, words: list[str], state) -> dict[int, str]:
    """The names of a state's features, by looking at the words, in the order in which the space emits the features."""
    task, tokens, made = hand.task, sentence(words), []
    waits = f" ({['', 'Right', 'Left'][state[PENDING]]} waits)" if state[PENDING] else ""
    places = {tuple(place): k for k, place in enumerate(hand.x.places.tolist())}

    def at(place) -> int:
        return int(word_at(hand.x, state, places[tuple(place)]))

    def value(atom) -> str | None:
        word = at(atom.place)
        if word < 0:
            return None
        if atom.attribute is not None:
            return attribute_text(atom.attribute, tokens[word][atom.column])
        if atom.dynamic == DISTANCE:
            far = abs(at(atom.other) - word)
            return None if at(atom.other) < 0 else "10+" if far >= FARTHEST else str(far)
        held = int(state[cell(word, dynamic_field(atom.dynamic))])
        if atom.dynamic == -1:
            return task.relations[held]
        if atom.dynamic in (-2, -3):
            return f"{held}+" if held == MOST_CHILDREN else str(held)
        return "{" + ", ".join(task.relations[b] for b in range(31) if held >> b & 1) + "}"

    def name(template) -> list[str]:
        values = [value(a) for a in template.atoms]
        pairs = zip(template.text.split(" & "), values, strict=True)
        return [] if None in values else [" & ".join(f"{p} = {v}" for p, v in pairs) + waits]

    for template in task.search:
        made += name(template)
    for place, group in task.viewed.items():
        if at(place) < 0:
            made.append(f"{group[0].text.partition('.')[0]}: no word{waits}")
        for template in group:
            made += name(template)
    return dict(zip(hand.features(state), made, strict=True))


@pytest.mark.parametrize("labelling", ["joint", "second", "none"])
def test_every_feature_has_its_name(parsers, labelling):
    parser, expected = parsers(labelling), {}
    for words, tree in [(line.split(), tree) for line, tree in zip(WORDS, TREES, strict=True)] + [(ASKED, TREE)]:
        hand = ByHand(parser, words, tree)
        for who in ("learned", "reference"):
            path = hand.path([], who)
            for t in range(len(path)):
                expected |= slow_names(hand, words, hand.state(path[:t]))
    strings = {"word": [*dict.fromkeys(" ".join(WORDS).split())], "upos": [*dict.fromkeys([*TAGS.values(), "N"])]}
    found = find_parser_names(parser.task_, strings, np.array(list(expected)))
    assert found.unnamed == [] and found.by_id == expected
    parts = {name.partition(" =")[0] for name in expected.values()}
    assert len(expected) > 100 and {t.partition(" &")[0] for t in TEMPLATES} <= parts
    without = find_parser_names(parser.task_, {"word": strings["word"]}, np.array(list(expected)))
    assert "S0.word & N0.upos" in without.unnamed and set(without.by_id.items()) < set(expected.items())


def test_a_model_file_is_inspected(parsers, tmp_path):
    parsers().save(tmp_path / "p.lols")
    found = json.loads(run("inspect", tmp_path / "p.lols", "--json", "--top", 3, "--label", "det").stdout)
    assert (found["kind"], found["labelling"], found["roots"], found["tokens"]) == ("parser", "joint", "one", 22)
    assert found["relations"] == sorted({r for tree in TREES for _, r in tree})
    assert found["templates"] == TEMPLATES and len(found["fingerprint"]) == 16
    assert found["treebank"] == {"lifted": 0, "mended": 0, "nonprojective": 0, "rare": 0}
    assert list(found["features_of"]) == ["Left det"] and found["actions"] == len(found["action_names"])
    assert found["features_of"]["Left det"]["for"][0]["weight"] < 0
    printed = " ".join(run("inspect", tmp_path / "p.lols", "--against").stdout.split())  # however wide the terminal is
    for words in ("a parser", "det nsubj", "one root of a sentence", "S0.word & N0.upos", "0 sentences not projective",
                  "6 sentences, 22 tokens", "for Shift", "against Shift", "S0.word = "):  # fmt: skip
        assert words in printed
    assert "features_of" not in read_model(tmp_path / "p.lols").inspect(top=0).as_dict()


# --- the command line -------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def files(tmp_path_factory, parsers):
    folder = tmp_path_factory.mktemp("explain")
    parsers().save(folder / "p.lols")

    def block(words, heads):
        rows = zip(sentence(words), heads, strict=True)
        return "".join(
            f"{k}\t{t['word']}\t_\t{t['upos']}\t_\t_\t{h}\t{r}\t_\t_\n" for k, (t, (h, r)) in enumerate(rows, 1)
        )

    blocks = [block(ASKED, TREE), block(["a[b]", "<&"], [(0, "root"), (1, "det")])]
    blocks += [block(ASKED, [("_", "_")] * 6), block(ASKED, [(0, "_")] * 6), block(["a", "b"], [(2, "x"), (1, "y")])]
    (folder / "f.conllu").write_text("\n".join(blocks) + "\n", encoding="utf-8")
    return folder / "p.lols", folder / "f.conllu", "--use", "upos=upos"


def test_text_shows_tree_stack_buffer_and_costs_on_a_hundred_columns(files):
    printed = run("explain", *files, "--roll-out", "learned", "--top", 2).stdout
    assert "Sentence 1 of 5" in printed and "6 words" in printed and "by the learned policy" in printed
    assert "│ the cat and old d…" in printed and "→  Shift ✓" in printed and "more" in printed
    assert max(map(len, printed.splitlines()[3:])) <= 110 and max(map(len, printed.splitlines()[3:-6])) <= 100
    assert "a[b]" in run("explain", *files, "--sentence", 2).stdout


def test_json_has_the_same_numbers(files, parsers):
    found = json.loads(run("explain", *files, "--json", "--top", 99, "--reference", "bad").stdout)
    parser = Parser(**parsers().get_params() | {"reference": "bad"})
    parser.task_, parser.model_ = parsers().task_, parsers().model_
    made = explain_parse(parser, sentence(ASKED), TREE)
    assert found["sentences"] == 5 and found["loss"] == made.loss and found["reference"] == "bad"
    assert found["words"] == json.loads(json.dumps([vars(w) for w in made.words]))
    assert found["decisions"] == json.loads(json.dumps([step.as_dict(None) for step in made.decisions]))
    for step, own in zip(found["steps"], made.decisions, strict=True):  # until 0.4
        assert [move["action"] for move in step["moves"]] == [m.action for m in own.actions]
        assert [move["liked"] for move in step["moves"]] == [m.right for m in own.actions]
        assert (step["teacher"], step["front"], step["more_moves"]) == (own.reference, own.state["front"], 0)
    arcs = [step["state"]["arc"] for step in found["decisions"] if step["state"]["arc"]]
    assert len(arcs) == 5 and set(arcs[0]) == {"head", "dependent", "relation"}


@pytest.mark.parametrize("number", [3, 4])
def test_without_a_tree_there_are_predictions_only(files, parsers, number):
    found = json.loads(run("explain", *files, "--sentence", number, "--json").stdout)
    assert found["loss"] is None and all(w["true_head"] is None and not w["wrong"] for w in found["words"])
    assert all(m["cost"] is None and not m["right"] for step in found["decisions"] for m in step["actions"])
    printed = run("explain", *files, "--sentence", number).stdout
    assert "costs need one: predictions only" in printed and "cost:" not in printed and "✓" not in printed


def test_the_page_is_written(files, tmp_path):
    assert "p.html written" in run("explain", *files, "--sentence", 2, "--html", tmp_path / "p.html").stdout
    text = (tmp_path / "p.html").read_text(encoding="utf-8")
    assert "&lt;&amp;</text>" in text and "Sentence 2 of 5" in text
    ElementTree.fromstring(text.partition("\n")[2])


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["--sentence", "6"], "there is no sentence 6; it has 5"),
        (["--sentence", "0"], "there is no sentence 0"),
        (["--sentence", "5"], "is on a cycle"),
        (["--reference", "best"], "unknown reference 'best'"),
        (["--column", "upos"], "--column has no effect"),
    ],
)
def test_a_mistake_is_one_line(files, monkeypatch, capsys, arguments, line):
    assert line in error_line(monkeypatch, capsys, "explain", *files, *arguments)


def test_mistakes_of_inspection_are_one_line(files, monkeypatch, capsys):
    assert "no action or relation 'XX'" in error_line(monkeypatch, capsys, "inspect", files[0], "--label", "XX")
    assert "--top is -1" in error_line(monkeypatch, capsys, "inspect", files[0], "--top", -1)
