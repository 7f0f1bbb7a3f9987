"""Networks as policies: each loss, gradients, one encoding for each batch, the same as a plain loop."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

import lols
from lols.contract.examples import Examples
from lols.engine.drivers.lock_step import LockStepDriver
from lols.errors import ConfigurationError, LolsError
from lols.torch import LOSSES, FeatureNetwork, PointerNetwork, TorchPolicy
from lols.torch.batches import Bags, ExampleBatch, StateBatch
from lols.torch.learning import move_average
from lols.torch.losses import kl_loss
from lols.torch.replay import KeptLessons
from tests.torch.small_networks import DATA, LABELS, SPACE, TEACHERS, UNSEEN, SmallTagger, make_policy, train


def plain_scores(network: Any, words: list[int], place: int, last: int) -> np.ndarray:
    """The network's scores of one state, without batches."""
    with torch.no_grad():
        hidden = network.lstm(network.word(torch.tensor([words])))[0][0, place]
        seen = torch.cat([hidden, network.tag(torch.tensor(last + 1))])
        return network.out(torch.tanh(seen)).numpy()


def plain_tags(network: Any, words: list[int], begun: list[int]) -> list[int]:
    """The greedy completion of tags that were begun."""
    tags = list(begun)
    while len(tags) < len(words):
        tags.append(int(plain_scores(network, words, len(tags), tags[-1] if tags else -1).argmax()))
    return tags


@pytest.mark.parametrize("loss", LOSSES)
def test_each_loss_learns_more_than_a_bad_teacher_knows(loss: str) -> None:
    model = train(make_policy(loss=loss, steps=4), passes=8)
    assert model.evaluate(UNSEEN) < 0.3 * model.reference_losses(UNSEEN, TEACHERS["bad"]).mean()


def test_predictions_and_roll_outs_in_lock_step_are_those_of_a_plain_loop() -> None:
    policy = make_policy(steps=2)
    model = train(policy, passes=1)
    network = model.policy.network
    assert model.predict(UNSEEN) == [plain_tags(network, d["words"], []) for d in UNSEEN]
    found = lols.rollout_costs(model, SPACE, UNSEEN[:3], TEACHERS["optimal"], compiled=False)
    for i in range(len(found)):
        example = UNSEEN[found.example[i]]
        begun = plain_tags(network, example["words"], [])[: found.step[i]]
        for a in range(LABELS):
            tags = plain_tags(network, example["words"], [*begun, a])
            wrong = np.not_equal(tags, example["tags"])[found.step[i] :].sum()
            assert found.costs[i, a] == wrong


def test_threads_share_a_level_but_not_the_memory_of_its_features(monkeypatch: pytest.MonkeyPatch) -> None:
    class Views(SmallTagger):
        """Reads features where the driver keeps them."""

        def inputs(self, states: Any) -> Bags:
            return Bags(states.start, states.ids, states.values)

        def forward(self, memory: Any, states: Any) -> torch.Tensor:
            number = torch.repeat_interleave(torch.arange(len(states)), states.inputs.start.diff())
            sums = torch.zeros(len(states)).index_add(0, number, (states.inputs.ids % 97).float())
            return torch.stack([torch.sin(sums * k) for k in (1, 2, 3)], 1)

    monkeypatch.setattr("lols.engine.drivers.lock_step.FEW", 2)
    examples, policy = Examples(SPACE, DATA), make_policy(Views())
    found = []
    for threads in (1, 3):
        with LockStepDriver(SPACE, examples, threads=threads) as driver:
            found.append(driver.predict(policy, lols.Trainer(SPACE, TEACHERS["optimal"]).plan).taken)
    assert np.array_equal(*found)


def test_examples_are_encoded_once_for_a_search_and_once_for_each_step() -> None:
    policy = make_policy(steps=2)
    train(policy, passes=1, roll_in="mixture", beta=0.5)
    assert policy.network.encoded == 3 * (1 + 2)
    train(policy, passes=1, algorithm="aggrevate", roll_in="reference")  # which asks for no costs
    assert policy.network.encoded == 6 * (1 + 2)


class Bits(lols.Task):
    """Bits to be copied; a state has as many cells as there are bits, and one more."""

    sizes = lols.Sizes(state=lambda x: 1 + x.n, actions=2, steps=lambda x: x.n, features=0)

    def encode(bits):
        return lols.Example({"n": len(bits)}, {"wanted": bits})

    def actions(x, s, legal):
        legal[:] = s[0] < x.n

    def step(x, s, a):
        s[0] += 1
        s[s[0]] = 7 + a

    def features(x, s, out):
        pass

    def loss(x, y, s):
        return lols.hamming(s[1:], y.wanted)

    def output(x, s):
        return s[1:].tolist()

    def reference(x, y, s):
        return y.wanted[s[0]]


class LiveBits(Bits):
    """The same; roll-outs have the first cell only."""

    sizes = lols.Sizes(state=lambda x: 1 + x.n, actions=2, steps=lambda x: x.n, features=0, live=1)

    def cost(x, y, s, a):
        return float(a != y.wanted[s[0]])


@pytest.mark.parametrize("task", [Bits, LiveBits])
def test_a_network_sees_zeros_behind_the_cells_of_small_states(task: Any) -> None:
    seen = []

    class Watching(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.out = nn.Linear(1, 2)

        def forward(self, memory: Any, states: Any) -> torch.Tensor:
            seen.append(states.given)
            return self.out(states.inputs[:, :1].float())

    bits = [[0] * n for n in (9, 2, 7, 1, 8, 3)]  # rows that were of long ones become those of short ones
    policy = TorchPolicy(Watching(), device="cpu", replay=1, steps=1)
    lols.train(task, bits, policy=policy, batch_size=1, passes=2, shuffle=False, progress=False, compiled=False)
    assert sum(given.shape[0] for given in seen) > 100
    for given in seen:
        assert given.shape[1] == 10
        for s in given:
            known = s[0] if task is Bits else 0
            assert not s[1 + known :].any() and (s[1 : 1 + known] >= 7).all()


def lessons_of(policy: TorchPolicy) -> tuple[Examples, KeptLessons]:
    """The lessons of the first examples."""
    examples, indices = Examples(SPACE, DATA, truth=True), np.arange(6)
    trainer = lols.Trainer(SPACE, TEACHERS["bad"], policy=policy, compiled=False)
    driver = LockStepDriver(SPACE, examples, TEACHERS["bad"], compiled=False)
    half = np.full(6, 0.5)
    states, costs, weights = driver.lesson(driver.make_lessons(indices, indices, policy, trainer.plan, half, half))
    return examples, KeptLessons(states.example, states.vectors, states.legal, costs, weights)


@pytest.mark.parametrize("loss", LOSSES)
def test_gradients_are_those_of_finite_differences_through_encoder_and_all_states(loss: str) -> None:
    policy = make_policy(loss=loss)
    examples, lessons = lessons_of(policy)
    parameters = list(policy.network.parameters())
    total = policy._losses(examples, lessons)[0]
    gradients = torch.autograd.grad(total, parameters)
    generator = torch.Generator().manual_seed(3)
    for parameter, gradient in zip(parameters, gradients, strict=True):
        direction = gradient / gradient.norm() + 0.3 * torch.randn(parameter.shape, generator=generator)
        direction /= direction.norm()
        values = []
        for sign in (1.0, -1.0):
            with torch.no_grad():
                parameter += sign * 1e-2 * direction
                values.append(float(policy._losses(examples, lessons)[0]))
                parameter -= sign * 1e-2 * direction
        slope = float((gradient * direction).sum())
        assert (values[0] - values[1]) / 2e-2 == pytest.approx(slope, rel=0.02, abs=2e-2)


def test_losses_of_a_state_by_hand() -> None:
    scores, costs = torch.tensor([[1.0, 2.0, 0.0, 9.0]]), torch.tensor([[0.0, 1.0, 0.0, 0.0]])
    known = torch.tensor([[True, True, True, False]])
    shares = np.exp([1.0, 2.0, 0.0]) / np.exp([1.0, 2.0, 0.0]).sum()
    wanted = np.exp([0.0, -8.0, 0.0]) / np.exp([0.0, -8.0, 0.0]).sum()
    expected = {
        "log": -np.log(shares[0] + shares[2]),
        "kl": (wanted * np.log(wanted / shares)).sum(),
        "hinge": (2.0 + 1.0) - 1.0,
        "regression": (1.0**2 + 3.0**2 + 0.0) / 3,
    }
    assert {name: float(loss(scores, costs, known)) for name, loss in LOSSES.items()} == pytest.approx(expected)


def test_gradients_in_parts_are_the_same() -> None:
    whole, parts = make_policy(), make_policy(accumulate=3)
    train(whole, passes=1)
    train(parts, passes=1)
    for (name, one), other in zip(whole.state().items(), parts.state().values(), strict=True):
        assert np.allclose(one, other, atol=1e-4), name


@pytest.mark.parametrize("algorithm", ["lols", "aggrevate", "dagger", "cloning"])
def test_algorithms_and_adaptive_beta(algorithm: str) -> None:
    options = {"beta": "auto"} if algorithm == "lols" else {}
    model = train(make_policy(steps=4), "optimal", algorithm=algorithm, passes=6, **options)
    assert model.evaluate(UNSEEN) < 2.0


def test_a_network_on_features_of_actions_decides_among_any_number() -> None:
    class Nearest(lols.Task):
        """Visit all places, the nearest first; an action is a place."""

        sizes = lols.Sizes(
            state=lambda x: 1 + len(x.places), actions=lambda x: len(x.places), features=0, action_features=1,
            steps=lambda x: len(x.places),
        )  # fmt: skip
        columns = lols.Columns(x="places", y="order")

        def actions(x, s, legal):
            for a in range(len(x.places)):
                legal[a] = True
            for i in range(s[0]):
                legal[s[1 + i]] = False

        def step(x, s, a):
            s[1 + s[0]] = a
            s[0] += 1

        def action_features(x, s, a, out):
            lols.emit(out, lols.feature(x.places[a]))

        def loss(x, y, s):
            wrong = 0.0
            for i in range(len(x.places)):
                wrong += s[1 + i] != y.order[i]
            return wrong

        def output(x, s):
            return s[1:].tolist()

        def reference(x, y, s):
            for i in range(len(x.places)):
                visited = False
                for k in range(s[0]):
                    visited = visited or s[1 + k] == y.order[i]
                if not visited:
                    return y.order[i]
            return 0

    random = np.random.default_rng(1)
    lists = [random.permutation(8)[: random.integers(2, 5)] for _ in range(40)]
    data = [{"places": places, "order": np.argsort(places)} for places in lists]
    policy = make_policy(PointerNetwork(columns=64, width=16), steps=4)
    model = lols.train(Nearest, data, policy=policy, passes=12, batch_size=20, compiled=False)
    assert model.evaluate(data) < 0.3
    assert len(model.predict_one({"places": np.arange(7)})) == 7


# --- bad use ----------------------------------------------------------------------------------------------------------


class Wrong(nn.Module):
    """A network that gives what it is told to."""

    def __init__(self, give: Any):
        super().__init__()
        self.weight, self.give = nn.Parameter(torch.ones(1)), give

    def forward(self, memory: Any, states: StateBatch) -> Any:
        return self.give(states, self.weight)


@pytest.mark.parametrize(
    ("give", "message"),
    [
        (lambda s, w: torch.zeros(len(s), 2) * w, r"`forward` of Wrong gave \(8, 2\) for 8 states with 3 actions"),
        (lambda s, w: None, "`forward` of Wrong gave NoneType for 8 states"),
        (lambda s, w: torch.full((len(s), 3), torch.nan) * w, "NaN or infinity for a legal action: has it diverged"),
        (lambda s, w: (torch.zeros(len(s), 3) * w).to("meta"), "gave scores on meta: keep them on `states.device`"),
        (lambda s, w: s.inputs[:, :1].to("meta") * w, "mixes tensors of two devices: create them with device="),
        (lambda s, w: torch.zeros(len(s), 3), "the loss of Wrong has no gradient: compute scores without no_grad"),
    ],
    ids=["shape", "nothing", "nan", "device of scores", "two devices", "gradient"],
)
def test_a_network_that_does_not_fit_is_named_with_the_fix(give: Any, message: str) -> None:
    with pytest.raises(LolsError, match=message) as raised:
        train(make_policy(Wrong(give)))
    assert "\n" not in str(raised.value)


def test_a_loss_that_overflows_is_named_before_the_weights_change() -> None:
    policy = make_policy(loss=lambda scores, costs, known: scores.sum(1) * torch.inf)
    before = policy.state()["network.out.weight"]
    with pytest.raises(LolsError, match=r"the loss of SmallTagger is .* after 0 steps: lower the learning rate"):
        train(policy)
    assert np.array_equal(before, policy.state()["network.out.weight"])


@pytest.mark.parametrize(
    ("give", "shape"), [(lambda s, c, k: (s * c).sum(), r"\(\)"), (lambda s, c, k: s * c, r"\(\d+, 3\)")]
)
def test_a_loss_must_be_one_for_each_state(give: Any, shape: str) -> None:
    with pytest.raises(LolsError, match=rf"gave {shape} for \d+ states: it must give one loss for each"):
        train(make_policy(loss=give))


@pytest.mark.parametrize("scale", [1.0, 8.0])
def test_what_kl_wants_of_many_actions_with_costs_of_0_and_1(scale: float) -> None:
    """With a scale of 1, all actions are to be nearly equally probable; so little is learned from each state."""
    costs = torch.ones(1, 26)
    costs[0, 3] = 0.0
    known = torch.ones(1, 26, dtype=torch.bool)
    wanted = torch.softmax(-scale * costs, 1)
    assert LOSSES["kl"] is kl_loss and float(kl_loss(wanted.log(), costs, known, scale)) == pytest.approx(0.0, abs=1e-6)
    assert float(wanted[0, 3]) == pytest.approx({1.0: 0.098, 8.0: 0.992}[scale], abs=1e-3)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"network": nn.Module()}, "Module has no `forward`: give it forward"),
        ({"network": SmallTagger}, "network is SmallTagger: give an object"),
        ({"loss": "quadratic"}, "unknown loss 'quadratic': choose log, kl, hinge, regression"),
        ({"device": "cuda"}, "there is no GPU that PyTorch can use: give device='cpu'"),
        ({"device": "abacus"}, "unknown device 'abacus': give auto, cpu or cuda"),
        ({"precision": "float8"}, "unknown precision 'float8': choose float32 or bfloat16"),
        ({"optimizer": torch.optim.Adam([torch.zeros(1)])}, "optimizer is Adam: give a function that makes it"),
        ({"steps": 0}, "steps is 0; it must be at least 1"),
        ({"average": 1.5}, "average is 1.5: give a decay between 0 and 1"),
        ({"clip": 0.0}, "clip is 0.0: give the largest norm"),
        ({"replay_decay": 0.5}, "replay_decay has no effect: replay keeps no batches"),
    ],
)
def test_bad_options(options: dict[str, Any], message: str) -> None:
    if options.get("device") == "cuda" and torch.cuda.is_available():
        pytest.skip("there is a GPU")
    with pytest.raises(ConfigurationError, match=message):
        TorchPolicy(**({"network": SmallTagger(), "device": "cpu"} | options))


def test_columns_that_are_not_there_are_named() -> None:
    batch = ExampleBatch(Examples(SPACE, DATA[:3], truth=True), np.arange(2), torch.device("cpu"))
    assert batch.flat("y.tags").tolist() == [tag for d in DATA[:2] for tag in d["tags"]]
    assert batch.padded("words", fill=-1)[0].tolist()[: len(DATA[0]["words"])] == DATA[0]["words"]
    with pytest.raises(LolsError, match="the examples have no column 'letters': there are words, tags"):
        batch.padded("letters")


def test_features_of_actions_must_be_there() -> None:
    with pytest.raises(LolsError, match="the space has no features of actions"):
        train(make_policy(PointerNetwork(columns=16)))
    assert train(make_policy(FeatureNetwork(LABELS, columns=256), steps=4), passes=6).evaluate(UNSEEN) < 2.0


def test_the_average_is_that_of_pytorch() -> None:
    """Without asking the device for the number of steps."""
    network = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4))
    own = AveragedModel(network)

    def slowly(average: Any, current: Any, steps: Any) -> None:
        get_ema_multi_avg_fn(min(0.9, float(steps) / (float(steps) + 10.0)))(average, current, steps)

    usual = AveragedModel(network, multi_avg_fn=slowly)
    for seed in range(4):
        torch.manual_seed(seed)
        for tensor in (*network.parameters(), network[1].running_mean):  # type: ignore[operator]
            tensor.data.normal_()
        usual.update_parameters(network)
        move_average(own, network, seed, 0.9)
    for name, tensor in usual.state_dict().items():
        assert torch.equal(own.state_dict()[name], tensor), name
