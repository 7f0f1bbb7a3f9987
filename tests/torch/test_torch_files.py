"""Neural policies in files: saved, loaded, killed and resumed, averaged, copied."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import lols
from lols.io.model_file import read_tensors
from lols.torch import FeatureNetwork, TorchPolicy, warm_up_and_decay
from tests.torch.small_networks import LABELS, SPACE, UNSEEN, SmallTagger, make_policy, train

WAYS: dict[str, dict[str, Any]] = {
    "plain": {},
    "ahead": {"steps": 2, "ahead": True, "noisy": True},
    "everything": {
        "steps": 2,
        "replay": 2,
        "replay_decay": 0.5,
        "average": 0.9,
        "schedule": warm_up_and_decay(total=18, warm_up=4),
    },
}


class Killed(Exception):
    """Stands for the end of a process."""


def same(one: dict[str, np.ndarray], other: dict[str, np.ndarray]) -> bool:
    return one.keys() == other.keys() and all(np.array_equal(one[name], other[name]) for name in one)


def test_a_model_is_loaded_as_it_was_saved(tmp_path: Path) -> None:
    model = train(make_policy())
    model.save(tmp_path / "m.lols")
    loaded = lols.load(tmp_path / "m.lols", SPACE, policy=make_policy(), compiled=False)
    assert loaded.predict(UNSEEN) == model.predict(UNSEEN)
    assert not any("optimizer" in name for name in read_tensors(tmp_path / "m.lols", "model")[1])
    assert pickle.loads(pickle.dumps(model.policy)).state().keys() == model.policy.state().keys()
    with pytest.raises(lols.LolsError, match="create the network with the settings of training"):
        lols.load(tmp_path / "m.lols", SPACE, policy=make_policy(FeatureNetwork(LABELS, columns=8)), compiled=False)


@pytest.mark.parametrize("way", WAYS)
def test_a_killed_run_resumes_to_the_same_weights(way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def policy() -> TorchPolicy:
        return make_policy(SmallTagger(dropout=0.3), **WAYS[way])

    whole = policy()
    expected = train(whole)
    update, seen = TorchPolicy.update, []

    def killed(self: TorchPolicy, *lesson: Any) -> None:
        seen.append(1)
        if len(seen) == 5:
            raise Killed
        update(self, *lesson)

    with monkeypatch.context() as patched:
        patched.setattr(TorchPolicy, "update", killed)
        with pytest.raises(Killed):
            train(policy(), checkpoint=tmp_path / "c", checkpoint_every=0.0)
    resumed = policy()
    model = train(resumed, checkpoint=tmp_path / "c", resume=True)
    assert resumed.learner is not None and resumed.learner.updates == 9 and len(seen) == 5
    assert same(resumed.state(), whole.state())
    assert same(model.policy.state(), expected.policy.state())


def test_one_seed_gives_one_result() -> None:
    first, second = (make_policy(SmallTagger(dropout=0.3), steps=2, seed=4) for _ in range(2))
    torch.manual_seed(0)
    train(first)
    torch.manual_seed(1)  # which is the user's own, and stays as it is
    drawn = torch.rand(1)
    torch.manual_seed(1)
    train(second)
    assert same(first.state(), second.state()) and torch.equal(torch.rand(1), drawn)
    other = make_policy(SmallTagger(dropout=0.3), steps=2, seed=5)
    train(other)
    assert not same(first.state(), other.state())


def test_the_average_is_returned_and_follows_the_weights() -> None:
    policy = make_policy(average=0.9)
    model = train(policy, passes=1)  # three steps
    assert policy.learner is not None and policy.learner.average is not None
    average = dict(policy.learner.average.module.named_parameters())
    current = dict(policy.network.named_parameters())
    returned = model.policy.state()
    for name, value in average.items():
        assert np.array_equal(returned[f"network.{name}"], value.detach().numpy())
    assert not all(torch.equal(average[name], current[name]) for name in current)


def test_copies_learn_by_themselves_or_not_at_all() -> None:
    policy = make_policy(average=0.9)
    train(policy, passes=1)
    twin, frozen = copy.deepcopy(policy), policy.frozen()
    before = policy.state()
    train(twin, passes=1)
    assert same(policy.state(), before) and not same(twin.state(), before)
    with pytest.raises(lols.LolsError, match="this policy is a copy for prediction"):
        train(frozen, passes=1)


def test_replay_learns_again_from_batches_of_a_certain_age(monkeypatch: pytest.MonkeyPatch) -> None:
    policy = make_policy(replay=2)
    assert policy.learner is not None
    sizes: list[int] = []
    step = type(policy.learner)._step

    def counted(self: Any, lessons: Any, losses: Any) -> None:
        sizes.append(lessons.rounds().size - 1)
        step(self, lessons, losses)

    monkeypatch.setattr(type(policy.learner), "_step", counted)
    train(policy, passes=2, shuffle=False)
    assert sizes == [8, 16, 16, 16, 16, 16] and len(policy.learner.replay.kept) == 2


def test_mixed_precision_learns_too() -> None:
    assert train(make_policy(precision="bfloat16", steps=4), passes=6).evaluate(UNSEEN) < 2.0
