"""Networks of the user's own: in taggers and parsers by `Neural(network=...)`, and in `lols.train`."""

from __future__ import annotations

import pickle
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import lols
from lols.errors import ConfigurationError, ModelFileError
from lols.policies import Neural
from lols.torch import ExampleBatch, StateBatch
from tests.torch.small_networks import DATA, SPACE, TEACHERS, UNSEEN, SmallTagger, train
from tests.torch.test_neural_estimators import TAGS, TREES, WORDS

HERE = __name__


class Bag(nn.Module):
    """Scores by the word alone, and the tags before it; without a method `inputs`."""

    def __init__(self, *, sizes: Any, actions: int, before: int, **others: Any):
        super().__init__()
        self.columns = sizes.columns
        self.word = nn.Embedding(sizes.words, sizes.width)
        self.tags = nn.Embedding(actions + 1, sizes.width)
        self.out = nn.Linear(sizes.width * (1 + before), actions)

    def encode(self, examples: ExampleBatch) -> torch.Tensor:
        found: torch.Tensor = self.word(examples.padded("network").unflatten(1, (-1, self.columns))[:, :, 1])
        return found

    def forward(self, memory: torch.Tensor, states: StateBatch) -> torch.Tensor:
        words, tags = memory[states.row, states.inputs[:, 0]], self.tags(states.inputs[:, 1:])
        scores: torch.Tensor = self.out(torch.cat([words[:, None], tags], 1).flatten(1).relu())
        return scores


class Arcs(nn.Module):
    """Scores by the words at the places, without labels."""

    def __init__(self, *, sizes: Any, actions: int, labels: int, places: int, **others: Any):
        super().__init__()
        self.columns = sizes.columns
        self.word = nn.Embedding(sizes.words, sizes.width)
        self.out = nn.Linear(places * sizes.width, actions)
        self.relation = nn.Linear(2 * sizes.width, max(labels, 1))

    def encode(self, examples: ExampleBatch) -> tuple[torch.Tensor, np.ndarray]:
        rows = examples.flat("network").view(-1, self.columns)
        lengths = examples.lengths("network") // self.columns
        return self.word(rows[:, 1]), np.cumsum(lengths) - lengths

    def forward(self, memory: Any, states: StateBatch) -> torch.Tensor:
        words, begins = memory
        first = torch.from_numpy(begins[states.rows]).to(words.device)
        seen = words[(states.inputs + first[:, None]).clamp(0, len(words) - 1)] * (states.inputs >= 0)[:, :, None]
        scores: torch.Tensor = self.out(seen.flatten(1))
        return scores


class LabelledArcs(Arcs):
    """The same; the label of an arc follows from both words."""

    def _scores(self, memory: Any, heads: np.ndarray, lengths: np.ndarray) -> tuple[np.ndarray, torch.Tensor]:
        words, begins = memory
        dependent = np.flatnonzero(heads >= 0)
        head = heads[dependent] + np.repeat(begins, lengths)[dependent]
        return dependent, self.relation(torch.cat([words[dependent], words[head]], 1))

    def own_loss(self, examples: ExampleBatch, memory: Any) -> torch.Tensor:
        dependent, scores = self._scores(memory, examples.array("y.heads"), examples.lengths("y.heads"))
        loss: torch.Tensor = nn.functional.cross_entropy(scores, examples.flat("y.relations")[dependent])
        return loss

    @torch.inference_mode()
    def label(self, memory: Any, heads: np.ndarray) -> np.ndarray:
        lengths = np.diff(np.append(memory[1], heads.size))
        dependent, scores = self._scores(memory, heads, lengths)
        found = np.zeros(heads.size, np.int64)
        found[dependent] = scores.argmax(1).numpy()
        return found


def tagger(network: Any = Bag, **options: Any) -> lols.Tagger:
    policy = Neural(network=network, width=8, device="cpu", rate=0.03)
    return lols.Tagger(policy=policy, **{"passes": 6, "batch_size": 8} | options)


@pytest.fixture(scope="module")
def trained() -> lols.Tagger:
    return tagger().fit(WORDS, TAGS, dev=(WORDS[::4], TAGS[::4]))


def test_a_network_of_ones_own_learns_and_is_calibrated(trained: lols.Tagger) -> None:
    assert isinstance(trained.model_.policy.network, Bag)
    assert trained.score(WORDS, TAGS) > 0.95
    tags, sure = trained.predict(WORDS[:3], confidence=True)
    assert tags == trained.predict(WORDS[:3]) and all(0.0 < share <= 1.0 for share in np.concatenate(sure))
    again = tagger().fit(WORDS, TAGS, dev=(WORDS[::4], TAGS[::4]))  # the seed is that of its weights as well
    for one, other in zip(trained.model_.policy.state().values(), again.model_.policy.state().values(), strict=True):
        assert np.array_equal(one, other)


def test_its_file_names_the_class_which_must_be_given(trained: lols.Tagger, tmp_path: Path) -> None:
    path = str(tmp_path / "t.lols")
    trained.save(path)
    task = trained.contents()[0]["task"]
    assert task["network"] == f"{HERE}:Bag" and task["options"]["policy"] == "neural" and task["options"]["width"] == 8
    given = Neural(network=Bag, device="cpu")
    for loaded in (lols.load(path, policy=given), lols.Tagger.load(path, policy=given)):
        assert loaded.predict(WORDS) == trained.predict(WORDS)
        assert repr(loaded.policy) == "Neural(network=Bag, width=8, device='cpu', rate=0.03)" and loaded.width == 400
    assert pickle.loads(pickle.dumps(trained)).predict(WORDS) == trained.predict(WORDS)
    for load in (lols.load, lols.Tagger.load):
        with pytest.raises(ModelFileError) as raised:
            load(path)
        assert str(raised.value) == (
            f"{path}: its network is of a class of your own, '{HERE}:Bag': give it, lols.load(path, "
            "policy=lols.policies.Neural(network=Bag))"
        )
    with pytest.raises(ModelFileError, match=r"has shape .* and this network has"):
        lols.load(path, policy=Neural(network=Bag, width=9))


@pytest.mark.filterwarnings("ignore:this tagger goes on from its weights")
def test_it_goes_on_and_grows(trained: lols.Tagger) -> None:
    going_on = pickle.loads(pickle.dumps(trained))
    going_on.set_params(warm_start=True, passes=2).fit([*WORDS, ["zounds", "zounds"]], [*TAGS, ["X", "X"]])
    assert going_on.classes_[-1] == "X" and going_on.score(WORDS, TAGS) > 0.9
    for _ in range(3):
        going_on.partial_fit(WORDS, TAGS)
    assert going_on.score(WORDS, TAGS) > 0.95
    going_on.set_params(policy__network=None)
    for learn in (going_on.fit, going_on.partial_fit):
        with pytest.raises(ConfigurationError, match=f"network=None cannot go on from network='{HERE}:Bag'"):
            learn(WORDS, TAGS)


def test_what_is_not_in_a_file_or_not_its_own_is_refused(tmp_path: Path) -> None:
    lols.Tagger(passes=1).fit(WORDS[:8], TAGS[:8]).save(tmp_path / "linear.lols")
    with pytest.raises(ModelFileError, match="policy has no effect: the file has everything"):
        lols.load(tmp_path / "linear.lols", policy=Neural(network=Bag))
    small = lols.Tagger(policy=Neural(width=4, layers=1, device="cpu"), passes=1).fit(WORDS[:8], TAGS[:8])
    small.save(tmp_path / "neural.lols")
    assert lols.load(tmp_path / "neural.lols").policy == "neural"
    with pytest.raises(ModelFileError, match="its network is not of a class of your own: leave network out"):
        lols.load(tmp_path / "neural.lols", policy=Neural(network=Bag))
    with pytest.raises(ModelFileError, match="the file has a network: policy is Bag, give Neural"):
        lols.load(tmp_path / "neural.lols", policy=Bag.__new__(Bag))


def narrow(sizes: Any, actions: int) -> nn.Module:
    return nn.Linear(sizes.width, actions)


@pytest.mark.parametrize(
    ("network", "says"),
    [
        (narrow, "network=narrow cannot be called with sizes, actions, before, positions, seed, folder as keyword"),
        (nn.Linear(2, 2), "network is an object of Linear: give the class, or a function that makes one"),
        (lambda **_: 3, "network=<lambda> made int: it must make a torch.nn.Module"),
    ],
)
def test_mistakes_of_networks_are_told_in_one_line(network: Any, says: str) -> None:
    with pytest.raises(ConfigurationError) as raised:
        tagger(network, passes=1).fit(WORDS[:8], TAGS[:8])
    assert str(raised.value).startswith(says) and "\n" not in str(raised.value)


def test_vectors_need_an_encoder_that_takes_them(tmp_path: Path) -> None:
    (tmp_path / "v.txt").write_text("dog 1 2\ncat 3 4\n")
    with pytest.raises(ConfigurationError, match="vectors has no effect: Bag has no `encoder`"):
        tagger().set_params(policy__vectors=str(tmp_path / "v.txt")).fit(WORDS[:8], TAGS[:8])


def parser(network: Any, **options: Any) -> lols.Parser:
    policy = Neural(network=network, width=12, device="cpu", rate=0.03)
    return lols.Parser(policy=policy, **{"passes": 8, "batch_size": 8} | options)


def test_a_parser_learns_arcs_and_labels_with_a_network_of_ones_own(tmp_path: Path) -> None:
    made = parser(partial(LabelledArcs)).fit(WORDS, TREES)
    scores = made.evaluate(WORDS, TREES)
    assert scores.uas > 0.8 and scores.las > 0.8
    made.save(tmp_path / "p.lols")
    loaded = lols.load(tmp_path / "p.lols", policy=Neural(network=LabelledArcs, device="cpu"))
    assert loaded.predict(WORDS) == made.predict(WORDS)


def test_a_parser_needs_labels_unless_there_are_none() -> None:
    with pytest.raises(ConfigurationError, match=r"Arcs has no method label\(memory, heads\): .* labelling='none'"):
        parser(Arcs).fit(WORDS, TREES)
    assert parser(Arcs, labelling="none").fit(WORDS, TREES).score(WORDS, TREES) > 0.8


def test_a_pipeline_refuses_a_network_that_its_file_could_not_name() -> None:
    tagged = [[{"word": w, "upos": t} for w, t in zip(*both, strict=True)] for both in zip(WORDS, TAGS, strict=True)]
    with pytest.raises(ConfigurationError, match="has no place for a network of your own"):
        lols.Pipeline(parser=parser(Arcs), folds=2).fit(tagged, TREES)


# --- lols.train -------------------------------------------------------------------------------------------------------


def test_lols_train_takes_a_neural_policy(tmp_path: Path) -> None:
    model = train(Neural(network=SmallTagger(), device="cpu", rate=0.02, steps=2))
    model.save(tmp_path / "m.lols")
    loaded = lols.load(tmp_path / "m.lols", SPACE, policy=Neural(network=SmallTagger(), device="cpu"))
    assert loaded.predict(UNSEEN) == model.predict(UNSEEN)
    assert loaded.partial_fit(DATA, reference=TEACHERS["bad"]).policy.network is not model.policy.network


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({}, "Neural without a network is for taggers and parsers: give network=, a module"),
        ({"network": SmallTagger(), "width": 3}, "width has no effect: the network is given as it is"),
        ({"network": SmallTagger}, "network is SmallTagger: give an object of a subclass of torch.nn.Module"),
    ],
)
def test_lols_train_needs_a_network_as_it_is(options: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigurationError, match=says):
        train(Neural(**options))
