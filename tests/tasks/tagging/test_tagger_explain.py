"""What `lols explain MODEL FILE` says: the engine's costs are those of deviations made by hand."""

from __future__ import annotations

import json
from xml.etree import ElementTree

import numpy as np
import pytest

from lols import Tagger
from lols.contract.features import feature_buffer
from lols.engine.table import features_by_row
from lols.errors import ConfigurationError, LolsError
from lols.tasks.explain import page
from lols.tasks.tagging.explain import explain_sentence
from lols.tasks.tokens.corpus import corpus_of
from tests.cli.command_line import error_line, run
from tests.tasks.tokens.loaded import assert_loads_nothing

PLAIN = (
    [["the", "dog", "barks"], ["a", "cat", "sleeps"], ["dogs", "bark"], ["the", "cat", "and", "the", "dog", "sleep"]],
    [["D", "N", "V"], ["D", "N", "V"], ["N", "V"], ["D", "N", "C", "D", "N", "V"]],
)
SPANS = (
    [["John", "Smith", "saw", "New", "York"], ["York", "saw", "Mary"], ["Mary", "Ann", "and", "John"]],
    [["B-P", "I-P", "O", "B-L", "I-L"], ["B-L", "O", "B-P"], ["B-P", "I-P", "O", "B-P"]],
)
# What a tagger is asked after training, with labels that it gets wrong in part.
ASKED = {
    "plain": (["the", "bark", "sleeps", "and", "a", "dogs"], ["D", "N", "V", "C", "N", "V"]),
    "spans": (["Mary", "York", "saw", "John", "Ann", "Smith"], ["B-L", "I-L", "O", "B-P", "B-P", "I-P"]),
}


# --- deviations by hand -----------------------------------------------------------------------------------------------


class ByHand:
    """A tagger's search of one sentence in plain Python: any actions first, then learner or teacher to the end."""

    def __init__(self, tagger: Tagger, words: list[str], labels: list[str]):
        self.task, policy = tagger.task_, tagger.model_.policy
        corpus = corpus_of([words])
        self.examples = self.task.examples(corpus, self.task.number(labels))
        self.x, self.y = self.examples.example(0)
        self.teacher = self.task.reference("optimal")
        ids = features_by_row(policy.shared, policy.stack.shape[1])
        self.weights = {int(i): policy.stack[0, row].astype(float) for row, i in enumerate(ids)}

    def legal(self, state) -> list[int]:
        allowed = np.zeros(len(self.task.inner_labels), bool)
        self.task.space.actions(self.x, state, allowed)
        return np.flatnonzero(allowed).tolist()

    def liked(self, state) -> int:
        """The legal action of least predicted cost."""
        items, at = self.examples.items, int(state[0])
        ids = []
        for kind in items.types[at * items.parts : (at + 1) * items.parts]:
            ids += items.ids[items.start[kind] : items.start[kind + 1]].tolist()
        buffer = feature_buffer(self.task.space.sizes.features)
        self.task.space.features(self.x, state, buffer)
        ids += buffer.ids[: buffer.size[0]].tolist()
        costs = sum((self.weights[i] for i in ids if i in self.weights), np.zeros(len(self.task.inner_labels)))
        return min(self.legal(state), key=lambda a: (round(costs[a], 5), a))

    def state(self, actions) -> np.ndarray:
        state = np.zeros(int(self.examples.states[0]), np.int64)
        self.task.space.start(self.x, state)
        for action in actions:
            self.task.space.step(self.x, state, action)
        return state

    def path(self, actions, who: str) -> list[int]:
        """All actions when `who` goes on after these."""
        state, made = self.state(actions), list(actions)
        while self.legal(state):
            made.append(self.liked(state) if who == "learned" else int(self.teacher.action(self.x, self.y, state)))
            self.task.space.step(self.x, state, made[-1])
        return made

    def loss(self, actions, who: str) -> float:
        return float(self.task.space.loss(self.x, self.y, self.state(self.path(actions, who))))


CASES = [("plain", {}), ("plain", {"direction": "backward"}), ("spans", {}), ("spans", {"direction": "forward"})]
CASES += [("spans", {"loss": "f1"}), ("spans", {"inner_scheme": "bilou"})]


@pytest.fixture(scope="module")
def taggers():
    made = {}

    def tagger(kind: str, options: dict) -> Tagger:
        name = (kind, *options.items())
        if name not in made:
            made[name] = Tagger(passes=2, **options).fit(*(PLAIN if kind == "plain" else SPANS))
        return made[name]

    return tagger


@pytest.mark.thinned(4)
@pytest.mark.parametrize("roll_out", ["learned", "reference", "mixture"])
@pytest.mark.parametrize(("kind", "options"), CASES)
def test_losses_are_those_of_deviations_by_hand(taggers, kind, options, roll_out):
    tagger = taggers(kind, options)
    words, labels = ASKED[kind]
    hand = ByHand(tagger, words, labels)
    names = tagger.task_.inner_labels
    made = explain_sentence(tagger, words, labels, roll_out=roll_out, beta=0.25 if roll_out == "mixture" else None)
    path = hand.path([], "learned")
    assert [names.index(d.taken.action) for d in made.decisions] == path
    assert made.loss == pytest.approx(hand.loss(path, "learned"))
    for t, decision in enumerate(made.decisions):
        legal = hand.legal(hand.state(path[:t]))
        assert {a.action for a in decision.actions} == {names[a] for a in legal}
        weights = {"learned": 0.0, "reference": 1.0, "mixture": 0.25}
        share = weights[roll_out]
        losses = {}
        for a in legal:
            actions = [*path[:t], a]
            losses[names[a]] = share * hand.loss(actions, "reference") + (1 - share) * hand.loss(actions, "learned")
        assert {a.action: a.loss for a in decision.actions} == pytest.approx(losses, abs=1e-6)
        least = min(losses.values())
        assert {a.action: a.cost for a in decision.actions} == pytest.approx(
            {label: loss - least for label, loss in losses.items()}, abs=1e-6
        )


def test_plain_python_says_the_same(taggers):
    tagger = taggers("spans", {})
    compiled, plain = (explain_sentence(tagger, *ASKED["spans"], compiled=c) for c in (True, False))
    assert compiled == plain


def test_by_itself_the_roll_out_is_that_of_training():
    taggers = [
        Tagger(passes=1, algorithm=name, **options).fit(*PLAIN)
        for name, options in (
            ("lols", {}), ("aggrevate", {}), ("dagger", {}), ("searn", {}), ("lols", {"roll_out": "learned"}),
            ("lols", {"beta": "linear:1:0"}), ("lols", {"beta": "auto"}),
        )
    ]  # fmt: skip
    made = [explain_sentence(tagger, *ASKED["plain"]) for tagger in taggers]
    assert [m.roll_out for m in made] == ["mixture", "reference", "none", "learned", "learned", "mixture", "mixture"]
    assert [m.beta for m in made[:-1]] == [0.5, None, None, None, None, 0.0]
    assert made[-1].beta == taggers[-1].model_.about["beta"]  # as it was adapted
    assert all(a.loss is None and a.cost in (0.0, 1.0) for a in made[2].decisions[0].actions)


def test_searns_mixture_has_predictions_only():
    made = explain_sentence(Tagger(passes=2, algorithm="searn").fit(*PLAIN), *ASKED["plain"])
    assert made.roll_out is None and made.loss is None and "Searn" in made.notes[0]
    assert all(a.cost is None for decision in made.decisions for a in decision.actions)


def test_the_random_teacher_and_the_f1_loss_are_explained():
    made = explain_sentence(
        Tagger(reference="suboptimal", loss="f1", passes=1).fit(*SPANS), *ASKED["spans"], roll_out="reference"
    )
    losses = [a.loss for decision in made.decisions for a in decision.actions]
    assert losses == [k / 2 for k in map(round, np.array(losses) * 2)]  # a wrong span costs 1/2, a missed one 3/2


def test_predicted_costs_are_those_of_the_tagger(taggers):
    for kind, options in (("plain", {}), ("spans", {"direction": "forward"})):
        tagger = taggers(kind, options)
        words, labels = ASKED[kind]
        costs = tagger.predict_costs([words])[0]
        for made in (explain_sentence(tagger, words), explain_sentence(tagger, words, labels)):
            assert sorted(d.number for d in made.decisions) == list(range(1, len(words) + 1))
            for decision in made.decisions:
                assert decision.state["word"] == words[decision.number - 1]
                row = costs[decision.number - 1]
                liked = [float(v) for v in np.sort(row[np.isfinite(row)])]
                assert [a.predicted for a in decision.actions] == liked
                assert decision.actions[0].taken or liked.count(liked[0]) > 1


def test_shown_are_the_best_liked_and_the_true_label(taggers):
    made = explain_sentence(taggers("plain", {}), *ASKED["plain"])
    for decision in made.decisions:
        shown = decision.shown(1)
        assert shown[0].taken and len(shown) == (2 if decision.wrong else 1)
        assert [a.action for a in shown if a.right] == [decision.reference]
    assert explain_sentence(taggers("plain", {}), ASKED["plain"][0]).decisions[0].reference is None


def test_mistakes_in_python_are_named(taggers):
    tagger = taggers("plain", {})
    with pytest.raises(LolsError, match="'X' was never seen"):
        explain_sentence(tagger, ["a"], ["X"])
    with pytest.raises(LolsError, match="no words"):
        explain_sentence(tagger, [])
    with pytest.raises(ConfigurationError, match="roll_out is 'all'"):
        explain_sentence(tagger, ["a"], ["D"], roll_out="all")
    with pytest.raises(ConfigurationError, match="beta has no effect"):
        explain_sentence(tagger, ["a"], ["D"], roll_out="learned", beta=0.1)


# --- the page ---------------------------------------------------------------------------------------------------------


STRANGE = ["<b>&amp;", "A&B", '"quoted"', "日本語", "café", "--></style>"]


@pytest.mark.parametrize("direction", ["forward", "backward"])
@pytest.mark.parametrize("labelled", [True, False])
def test_the_page_is_well_formed_complete_and_escaped(direction, labelled):
    tags = ["<X>", "&", "<X>", "Y", "Y", "Y"]
    tagger = Tagger(passes=1, direction=direction).fit([STRANGE], [tags])
    made = explain_sentence(tagger, STRANGE * 6, (tags[::-1] * 6) if labelled else None)
    text = page(made, heading="Sentence <1> & more", about=["a < b"])
    tree = ElementTree.fromstring(text.partition("\n")[2])  # HTML that is XML, too
    rows = [element for element in tree.iter("div") if element.get("class", "").split()[:1] == ["row"]]
    words = [row.find("div/div/span/span").text for row in rows[:-1]]
    shown = STRANGE * 6 if direction == "forward" else STRANGE[::-1] * 6
    assert [word.removesuffix(" ✗") for word in words] == shown
    drawn = [each.text for each in tree.iter("span") if each.get("class", "").split()[:1] == ["token"]]
    assert drawn == STRANGE * 6
    assert tree.find(".//h1").text == "Sentence <1> & more"
    assert_loads_nothing(text)
    assert ("loss " in "".join(rows[-1].itertext())) == labelled


def test_what_is_better_than_the_path_is_marked(taggers):
    made = explain_sentence(taggers("plain", {}), *ASKED["plain"], roll_out="learned")
    tree = ElementTree.fromstring(page(made, heading="h", top=9).partition("\n")[2])
    rows = [element for element in tree.iter("div") if element.get("class", "").split()[:1] == ["row"]]
    better = 0
    for row, decision in zip(rows, made.decisions, strict=False):
        marks = [e.get("class").split()[1:] for e in row.iter("span") if e.get("class", "").split()[:1] == ["move"]]
        less = [a.loss < decision.taken.loss for a in decision.actions]
        more = [a.loss > decision.taken.loss for a in decision.actions]
        assert [mark == ["better"] for mark in marks] == less and [mark == ["worse"] for mark in marks] == more
        assert [mark[:1] == ["taken"] for mark in marks] == [a.taken for a in decision.actions]
        better += sum(less)
    assert better > 0


OLD = ("predicted", "loss", "cost", "taken")


# --- the command line -------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def files(tmp_path_factory, taggers):
    folder = tmp_path_factory.mktemp("explain")
    taggers("plain", {}).save(folder / "m.lols")
    rows = [(w, t) for w, t in zip(*ASKED["plain"], strict=True)]
    lines = [f"{k}\t{w}\t_\t{t}\t_\t_\t0\t_\t_\t_" for k, (w, t) in enumerate(rows, 1)]
    strange = "1\ta[b]\t_\tD\t_\t_\t0\t_\t_\t_\n2\t<&\t_\tN\t_\t_\t0\t_\t_\t_"
    unlabelled = "1\ta\t_\t_\t_\t_\t0\t_\t_\t_"
    unknown = "1\ta\t_\tZZ\t_\t_\t0\t_\t_\t_"
    blocks = ["\n".join(lines), strange, unlabelled, unknown]
    (folder / "f.conllu").write_text("\n\n".join(blocks) + "\n\n", encoding="utf-8")
    return folder / "m.lols", folder / "f.conllu"


def test_text_shows_words_labels_losses_and_costs(files):
    printed = run("explain", *files, "--sentence", 1, "--roll-out", "learned", "--top", 2).stdout
    assert "Sentence 1 of 4" in printed and "6 words" in printed and "by the learned policy" in printed
    for word, label in zip(*ASKED["plain"], strict=True):
        assert f" {word} " in printed and f"{label} ✓" in printed
    assert max(map(len, printed.splitlines()[3:])) <= 100
    assert "a[b]" in run("explain", *files, "--sentence", 2).stdout


def test_json_has_the_same_numbers(files, taggers):
    found = json.loads(run("explain", *files, "--json", "--top", 9).stdout)
    made = explain_sentence(taggers("plain", {}), *ASKED["plain"])
    assert found["sentences"] == 4 and found["sentence"] == 1 and found["loss"] == made.loss
    assert [w["word"] for w in found["words"]] == ASKED["plain"][0]
    assert found["decisions"][1] == made.decisions[1].as_dict(None)
    assert [d["state"]["word"] for d in found["decisions"]] == ASKED["plain"][0]
    old = [
        {"label": a.action, "true": a.right, **{name: getattr(a, name) for name in OLD}}
        for a in made.decisions[1].actions
    ]
    assert found["words"][1]["deviations"] == old and found["loss_name"] == "hamming"  # until 0.4


def test_without_labels_there_are_predictions_only(files):
    found = json.loads(run("explain", *files, "--sentence", 3, "--json").stdout)
    assert found["loss"] is None and found["decisions"][0]["reference"] is None
    assert all(a["cost"] is None and a["loss"] is None for a in found["decisions"][0]["actions"])
    printed = run("explain", *files, "--sentence", 3).stdout
    assert "no labels" in printed and "cost:" not in printed
    assert json.loads(run("explain", *files, "--column", "misc:None", "--json").stdout)["loss"] is None


def test_the_page_is_written(files, tmp_path):
    printed = run("explain", *files, "--sentence", 2, "--html", tmp_path / "p.html").stdout
    assert "p.html written" in printed
    text = (tmp_path / "p.html").read_text(encoding="utf-8")
    assert "&lt;&amp; ✗</span>" in text and "Sentence 2 of 4" in text
    ElementTree.fromstring(text.partition("\n")[2])


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["{model}"], "name a file of sentences"),
        (["none.lols", "{file}"], "none.lols: there is no such file"),
        (["{model}", "none.conllu"], "none.conllu: there is no such file"),
        (["{model}", "{file}", "--sentence", "5"], "there is no sentence 5; it has 4"),
        (["{model}", "{file}", "--sentence", "0"], "there is no sentence 0"),
        (["{model}", "{file}", "--sentence", "4"], "label 'ZZ' was never seen in training"),
        (["{model}", "{file}", "--top", "0"], "--top is 0"),
        (["{model}", "{file}", "--roll-out", "never"], "roll_out is 'never': choose one of"),
        (["{model}", "{file}", "--roll-out", "learned", "--beta", "0.5"], "beta has no effect"),
        (["{model}", "{file}", "--roll-in", "reference"], "--roll-in has no effect: a model is explained"),
        (["{model}", "{file}", "--html", "/no/such/folder/p.html"], "cannot be written"),
        (["{file}", "{file}"], "not a readable lols file"),
        (["lols", "--sentence", "2"], "--sentence has no effect: no model is given"),
        (["lols", "--json"], "--json has no effect: no model is given"),
        (["nothing.lols"], "unknown algorithm 'nothing.lols'"),
    ],
)
def test_a_mistake_is_one_line(files, monkeypatch, capsys, arguments, line):
    model, file = files
    assert line in error_line(monkeypatch, capsys, "explain", *(a.format(model=model, file=file) for a in arguments))


def test_a_preset_is_a_preset_though_a_file_has_its_name(tmp_path, monkeypatch):
    (tmp_path / "dagger").write_text("a file")
    monkeypatch.chdir(tmp_path)
    assert run("explain", "dagger").stdout.startswith("dagger (Ross")
