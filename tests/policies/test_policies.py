"""Policies of one's own: trained, saved, resumed; and what is wrong with them in one line."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lols
from lols.errors import ConfigurationError, LolsError, ModelFileError, SpaceError
from lols.io.model_file import read_tensors, write_tensors
from lols.policies import LinearPolicy, OwnPolicy, States
from lols.training import trainer
from lols.training.learning_state import LearningState
from lols.training.stream import Stream
from tests.engine.random_space import ACTIONS, VARIANTS, random_data

VARIANT = VARIANTS["full"]
SPACE, TEACHER = VARIANT.space, VARIANT.reference
DATA = random_data(31, VARIANT, count=12, depth=5, nodes=12)
OPTIONS: dict[str, Any] = {"passes": 3, "batch_size": 4, "seed": 3, "compiled": False}


class Plain:
    """Least squares by gradient descent, on features hashed to 64 columns."""

    def __init__(self) -> None:
        self.weights, self.updates = np.zeros((64, ACTIONS)), 0

    def costs(self, states: States) -> np.ndarray:
        return np.asarray(states.matrix(64) @ self.weights)

    def update(self, states: States, costs: np.ndarray, weights: np.ndarray) -> None:
        assert costs.shape == (len(states), ACTIONS) and weights.shape == (len(states),)
        assert (costs.min(axis=1) == 0.0).all() and np.isinf(costs[~states.legal]).all()
        wrong = np.where(np.isfinite(costs), self.costs(states) - costs, 0.0) * weights[:, np.newaxis]
        self.weights -= 0.1 / len(states) * (states.matrix(64).T @ wrong)
        self.updates += 1


class Looking(Plain):
    """Looks at the state vectors in all ways."""

    def costs(self, states: States) -> np.ndarray:
        assert np.array_equal(states.memory[states.rows], states.vectors)
        assert np.array_equal(states.cells([1, 0]), states.vectors[:, [1, 0]])
        assert len(np.unique(states.rows)) == len(states)
        return super().costs(states)


class Kept(Plain):
    """With arrays to be saved."""

    def state(self) -> dict[str, np.ndarray]:
        return {"weights": self.weights, "updates": np.array([self.updates])}

    def load(self, state: Mapping[str, np.ndarray]) -> None:
        self.weights[:] = state["weights"]
        self.updates = int(state["updates"][0])


class Copied(Kept):
    """With copies and an average."""

    def __init__(self) -> None:
        super().__init__()
        self.sum = np.zeros_like(self.weights)

    def update(self, states: States, costs: np.ndarray, weights: np.ndarray) -> None:
        super().update(states, costs, weights)
        self.sum += self.weights

    def frozen(self) -> Plain:
        made = Kept()
        made.weights, made.updates = self.weights.copy(), self.updates
        return made

    def averaged(self) -> Plain:
        made = Kept()
        made.weights, made.updates = self.sum / self.updates, -1
        return made


def train(policy: Any, **options: Any) -> lols.Model:
    return lols.train(SPACE, DATA, TEACHER, policy=policy, **(OPTIONS | options))


# --- training ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("threads", [1, 3])
def test_states_are_read_where_they_are(threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lols.engine.drivers.lock_step.FEW", 2)
    options = OPTIONS | {"threads": threads, "roll_in": "mixture", "beta": 0.5}
    found = [lols.train(SPACE, DATA, TEACHER, policy=kind(), **options) for kind in (Plain, Looking)]
    assert np.array_equal(found[0].policy.weights, found[1].policy.weights)


def test_a_policy_of_ones_own_learns_and_is_followed() -> None:
    assert isinstance(Plain(), OwnPolicy)
    untrained, found = Plain(), []
    model = train(Plain(), passes=10, after_pass=lambda number, model: found.append(model.evaluate(DATA)))
    assert model.policy.updates == 10 * 3 and model.report["rounds"] == 120
    assert model.evaluate(DATA) == found[-1] < lols.Model(SPACE, untrained, model.plan, compiled=False).evaluate(DATA)
    assert model.predict(DATA) == [model.predict_one(obj) for obj in DATA]
    examples = lols.Examples(SPACE, DATA)
    assert model.follower().run(examples).taken.tolist() == model.run(examples).taken.tolist()
    assert (model.reference_losses(DATA, TEACHER) >= 0.0).all()
    assert model.about["learner"] == {"policy": f"{__name__}:Plain"}
    assert model.about["algorithm"]["returned"] == "last"


@pytest.mark.parametrize("algorithm", ["lols", "aggrevate", "dagger", "cloning"])
def test_one_seed_gives_one_result(algorithm: str) -> None:
    one, other = (train(Plain(), algorithm=algorithm).policy.weights for _ in range(2))
    assert np.array_equal(one, other) and one.any()


def test_what_is_returned() -> None:
    policy = Copied()
    assert train(policy).policy.updates == -1
    policy = Copied()
    last = train(policy, returned="last").policy
    assert last is not policy and np.array_equal(last.weights, policy.weights)
    policy = Copied()
    drawn = train(policy, returned="drawn").policy
    assert 0 < drawn.updates <= policy.updates
    assert train(Plain(), returned="last").policy.updates == 9


# --- files ------------------------------------------------------------------------------------------------------------


def test_a_saved_model_predicts_the_same(tmp_path: Path) -> None:
    model = train(Kept())
    model.save(tmp_path / "own.lols")
    loaded = lols.load(tmp_path / "own.lols", SPACE, policy=Kept(), compiled=False)
    assert np.array_equal(loaded.policy.weights, model.policy.weights)
    assert loaded.predict(DATA) == model.predict(DATA) and loaded.about == model.about


def test_what_is_wrong_with_a_file_is_told(tmp_path: Path) -> None:
    path, linear = tmp_path / "own.lols", tmp_path / "linear.lols"
    with pytest.raises(ConfigurationError, match="a model file needs the policy's arrays: give Plain a method `state`"):
        train(Plain()).save(path)
    train(Kept()).save(path)
    train(LinearPolicy(SPACE, compiled=False)).save(linear)
    for where, policy, message in (
        (path, None, f"holds a policy of class {__name__}:Kept: give load"),
        (path, Plain(), "needs the policy's arrays: give Plain a method `state`"),
        (path, Copied(), f"holds a policy of class {__name__}:Kept, not {__name__}:Copied"),
        (linear, Kept(), "holds a linear policy: load it without policy"),
    ):
        with pytest.raises(LolsError, match=message) as caught:
            lols.load(where, SPACE, policy=policy)
        assert "\n" not in str(caught.value)
    header, tensors = read_tensors(path, "model")
    del header["kind"], header["format"]
    write_tensors(path, "model", header, tensors | {"policy.weights": np.zeros((3, 3))})
    with pytest.raises(ModelFileError, match=f"`load` of {__name__}:Kept failed with ValueError.*other settings"):
        lols.load(path, SPACE, policy=Kept())


class Interrupted(Exception):
    """Stands for a kill."""


@pytest.mark.parametrize("make", [Kept, lambda: LinearPolicy(SPACE, compiled=False)])
def test_a_run_that_was_interrupted_resumes_bit_for_bit(make: Any, tmp_path: Path) -> None:
    options: dict[str, Any] = {"beta": "auto"}
    expected = train(make(), **options)
    files: dict[str, Any] = {"checkpoint": tmp_path / "run.checkpoint", "checkpoint_every": 0, "resume": True}
    save = trainer.write_checkpoint
    for stop in (2, 3, 1):

        def counted(*arguments: Any, left: list[int] = [stop]) -> None:  # noqa: B006
            save(*arguments)
            left[0] -= 1
            if left[0] == 0:
                raise Interrupted

        with pytest.MonkeyPatch.context() as patch, pytest.raises(Interrupted):
            patch.setattr(trainer, "write_checkpoint", counted)
            train(make(), **options, **files)
    resumed = train(make(), **options, **files)
    one, other = (model.contents()[1] for model in (expected, resumed))
    assert one.keys() == other.keys() and all(np.array_equal(one[name], other[name]) for name in one)
    assert resumed.report["states"] == expected.report["states"]
    with pytest.raises(ModelFileError, match="made with another learner"):
        lols.train(
            SPACE, DATA, TEACHER, returned=expected.about["algorithm"]["returned"], **OPTIONS, **options, **files
        )


# --- what is wrong ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("policy", "options", "message"),
    [
        (Plain(), {"learner": "hinge"}, "learner has no effect: the given policy has its own way to learn"),
        (Plain(), {"update": "nag"}, "update has no effect"),
        (Plain(), {"algorithm": "searn"}, "searn trains a new learner in every pass"),
        (Plain(), {"returned": "average"}, "give Plain a method `averaged`, or choose 'last'"),
        (Plain(), {"returned": "drawn"}, "give Plain a method `frozen`, or choose 'last'"),
        (Plain(), {"checkpoint": "x"}, "a checkpoint needs the policy's arrays: give Plain a method `state`"),
        (Copied(), {"checkpoint": "x", "returned": "drawn"}, "returned='drawn' has no checkpoints with Copied"),
        (Plain, {}, r"policy is the class Plain: give an object, Plain\(...\)"),
        ("mlp", {}, "policy is a str without `costs` and `update`"),
    ],
)
def test_contradictions_are_told(policy: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message) as caught:
        train(policy, **options)
    assert "\n" not in str(caught.value)


def test_linear_learners_things_are_refused() -> None:
    trainer = lols.Trainer(SPACE, TEACHER, policy=Plain(), batch_size=2)
    with pytest.raises(ConfigurationError, match="only the linear learner goes on from a state"):
        Stream(trainer, LearningState(lols.Trainer(SPACE, TEACHER).new_learner()))
    with pytest.raises(ConfigurationError, match="slack needs the fused driver"):
        LinearPolicy(SPACE, lols.LearnerSettings(slack=0.0))
    weights = LinearPolicy(SPACE, compiled=False).frozen()
    with pytest.raises(ConfigurationError, match="fixed weights"):
        train(LinearPolicy(SPACE, weights=weights, compiled=False))


def test_costs_that_cannot_be_used_are_told() -> None:
    class Strange(Plain):
        def __init__(self, made: Any):
            super().__init__()
            self.made = made

        def costs(self, states: States) -> np.ndarray:
            return self.made(states)

    for made, message in (
        (lambda states: np.zeros(len(states)), r"gave an array of shape \(12,\) for 12 states with 4 actions: it must"),
        (lambda states: np.full((len(states), ACTIONS), np.nan), "gave NaN or infinity for a legal action"),
    ):
        with pytest.raises(LolsError, match=message) as caught:
            train(Strange(made), batch_size=12)
        assert "\n" not in str(caught.value) and "Strange" in str(caught.value)
    fine = train(Strange(lambda states: np.where(states.legal, -0.0, np.nan)), passes=1)
    zero = train(Strange(lambda states: np.zeros((len(states), ACTIONS), np.int64)), passes=1)
    assert fine.predict(DATA) == zero.predict(DATA)


def test_errors_of_the_space_are_told_as_ever() -> None:
    def failing(x, s, out):
        raise ZeroDivisionError("no reason")

    def wide(x, s, out):
        for k in range(9):
            lols.emit(out, k)

    def wrong(x, y, s):
        return 7

    for space, teacher, message in (
        (
            replace(SPACE, features=failing),
            TEACHER,
            r"example \d+.*`features` failed with ZeroDivisionError: no",
        ),
        (replace(SPACE, features=wide), TEACHER, r"example \d+, step 0: `features` or `action_features` emits more"),
        (replace(SPACE, key=lambda x, s: 1 // 0), TEACHER, r"example \d+, step 0: `key` failed with ZeroDivision"),
        (replace(SPACE, cost=lambda x, y, s, a: np.nan), TEACHER, r"example \d+.*`cost` gives NaN"),
        (SPACE, lols.Reference(action=wrong), r"example \d+, step \d+: the reference takes action 7"),
        (replace(SPACE, sizes=replace(SPACE.sizes, steps=1)), TEACHER, "Sizes.steps is too small"),
    ):
        with pytest.raises(SpaceError, match=message) as caught:
            lols.train(space, DATA, teacher, policy=Plain(), roll_out="mixture", beta=1.0, **OPTIONS)
        assert "\n" not in str(caught.value)


def test_roll_outs_in_a_circle_are_an_error() -> None:
    def actions(x, s, legal):
        legal[0] = legal[1] = s[1] == 0 or s[2] > 0

    def step(x, s, a):
        s[2] = 1 + (s[2] % 2) if s[1] or a else 0
        s[1] = 1

    circle = lols.SearchSpace(
        start=lambda x, s: None, actions=actions, step=step, features=lambda x, s, out: lols.emit(out, 1),
        loss=lambda x, y, s: 0.0, key=lambda x, s: s[1] * 8 + s[2], output=lambda x, s: 0,
        encode=lambda obj: lols.Example({"n": obj}, {"n": obj}),
        sizes=lols.Sizes(state=3, actions=2, features=1, steps=9),
    )  # fmt: skip
    teacher = lols.Reference(action=lambda x, y, s: 0)
    for policy in (None, LinearPolicy(circle, compiled=False)):
        with pytest.raises(SpaceError, match="`step` never reaches an end state"):
            lols.train(circle, [1, 2], teacher, policy=policy, roll_out="reference", compiled=False)
