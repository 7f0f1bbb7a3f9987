"""A batch is searched while the network learns from the one before: by a thread or not, with the same result."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest
import torch

from lols.errors import LolsError
from lols.torch import TorchPolicy
from lols.torch.background import Background
from lols.torch.learning import NetworkLearner
from tests.torch.small_networks import SmallTagger, make_policy, train

CPU = torch.device("cpu")


def numbers_of(network: Any) -> bytes:
    return b"".join(tensor.numpy().tobytes() for tensor in network.state_dict().values())


def ahead(threaded: bool, **options: Any) -> TorchPolicy:
    """A policy whose network learns beside the search, by a thread or in turn with it."""
    policy = make_policy(SmallTagger(dropout=0.3), ahead=True, noisy=True, steps=2, **options)
    policy._background = Background(CPU, threaded)
    return policy


def test_a_thread_gives_what_one_after_the_other_gives() -> None:
    found = []
    for threaded in (False, True):
        policy = ahead(threaded, average=0.9)
        model = train(policy)
        found.append((policy.state(), model.policy.state()))
    for one, other in zip(*found, strict=True):
        assert one.keys() == other.keys()
        assert all(np.array_equal(one[name], other[name]) for name in one)


@pytest.mark.parametrize("threaded", [False, True])
def test_a_batch_is_searched_with_the_weights_from_before_the_last_one(
    threaded: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    policy = ahead(threaded)
    learned, searched, threads = [numbers_of(policy.network)], [], set()
    learn, begin = NetworkLearner.learn, TorchPolicy.begin

    def watched_learn(self: Any, *arguments: Any) -> None:
        learn(self, *arguments)
        threads.add(threading.current_thread())
        learned.append(numbers_of(self.network))

    def watched_begin(self: Any, *arguments: Any) -> Any:
        if self is policy:
            searched.append(numbers_of(self._searching))
        return begin(self, *arguments)

    monkeypatch.setattr(NetworkLearner, "learn", watched_learn)
    monkeypatch.setattr(TorchPolicy, "begin", watched_begin)
    train(policy, passes=2)  # of three batches
    assert len(learned) == 7 and len({*learned}) == 7
    assert searched == [learned[0], *learned[:5]]
    assert (threads == {threading.main_thread()}) != threaded


def test_what_goes_wrong_in_the_thread_is_said() -> None:
    policy = make_policy(loss=lambda scores, costs, known: scores.sum(1) * torch.inf, ahead=True)
    policy._background = Background(CPU, threaded=True)
    with pytest.raises(LolsError, match=r"the loss of SmallTagger is .* after 0 steps: lower the learning rate"):
        train(policy)


def test_work_is_done_once_and_in_order() -> None:
    done: list[int] = []
    work = Background(CPU, threaded=True)
    for k in range(5):
        work.put_off(lambda k=k: done.append(k))  # type: ignore[misc]
        assert work.is_due and len(done) == k
        work.begin(at_once=k == 3)
        assert not work.is_due
        work.wait()
    work.put_off(lambda: done.append(5))
    work.finish()
    work.finish()
    assert done == [0, 1, 2, 3, 4, 5]
