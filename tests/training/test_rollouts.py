"""`lols.rollout_costs` against a plain loop, and what it refuses."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import lols
from lols.datasets.worlds import tagging_data, tagging_references, tagging_space
from lols.errors import ConfigurationError
from lols.policies import States

LABELS = 3
SPACE, TEACHERS, DATA = tagging_space(labels=LABELS), tagging_references(), tagging_data(5, labels=LABELS, words=9)


class ByHand:
    """Prefers the label after the last one, or one that the place says."""

    def update(self, *_: Any) -> None:
        raise AssertionError("nothing is learned")

    def costs(self, states: States) -> np.ndarray:
        return np.array([self.plain(int(v[0]), int(v[1])) for v in states.vectors])

    @staticmethod
    def plain(place: int, last: int) -> list[float]:
        return [float((a - last - 1) % LABELS + (a == place % 2)) for a in range(LABELS)]


def completed(begun: list[int], length: int) -> list[int]:
    tags = list(begun)
    while len(tags) < length:
        tags.append(int(np.argmin(ByHand.plain(len(tags), tags[-1] if tags else -1))))
    return tags


@pytest.mark.parametrize("beta", [0.0, 1.0])
def test_costs_are_those_of_a_plain_loop(beta: float) -> None:
    found = lols.rollout_costs(ByHand(), SPACE, DATA, TEACHERS["bad"], beta=beta, batch_size=2, compiled=False)
    assert len(found) == sum(len(d["tags"]) for d in DATA)
    for i in range(len(found)):
        truth, t = np.array(DATA[found.example[i]]["tags"]), found.step[i]
        way = completed([], truth.size)
        assert found.taken[i] == way[t]
        for a in range(LABELS):
            rest = completed([*way[:t], a], truth.size)[t:]
            if beta == 1.0:  # the teacher gives label 0
                rest = [a] + [0] * (truth.size - t - 1)
            assert found.costs[i, a] == (truth[t:] != rest).sum()
        assert np.array_equal(found.advantages[i], found.costs[i, way[t]] - found.costs[i])
    assert not found.errors.any()


def test_roll_outs_of_a_mixture_are_averaged() -> None:
    options: dict[str, Any] = {"reference": TEACHERS["bad"], "compiled": False}
    teacher, learner = (lols.rollout_costs(ByHand(), SPACE, DATA, beta=b, **options).costs for b in (1.0, 0.0))
    one = lols.rollout_costs(ByHand(), SPACE, DATA, beta=0.5, **options)
    by_teacher = (one.costs == teacher).all(1)
    assert (by_teacher | (one.costs == learner).all(1)).all() and 0 < by_teacher.sum() < len(one)
    many = lols.rollout_costs(ByHand(), SPACE, DATA, beta=0.5, k=16, **options)
    share = (many.costs - learner)[teacher != learner] / (teacher - learner)[teacher != learner]
    assert np.allclose(share * 16, np.round(share * 16)) and 0.3 < share.mean() < 0.7
    assert (many.errors[teacher != learner] > 0.0).mean() > 0.9
    again = lols.rollout_costs(ByHand(), SPACE, DATA, beta=0.5, k=16, seed=1, **options)
    assert not np.array_equal(many.costs, again.costs)


def test_a_linear_model_and_states_of_the_reference() -> None:
    model = lols.train(SPACE, DATA, TEACHERS["optimal"], passes=2, compiled=False)
    found = lols.rollout_costs(model, SPACE, DATA, TEACHERS["optimal"], states="reference", beta=1.0, compiled=False)
    tags = np.concatenate([d["tags"] for d in DATA])
    assert np.array_equal(found.taken, tags)
    assert np.array_equal(found.costs, 1.0 - np.eye(LABELS)[tags])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"states": "all"}, "unknown states 'all': choose learned or reference"),
        ({"k": 0}, "k is 0; it must be at least 1"),
        ({"beta": 1.5}, "beta is 1.5: give a number between 0 and 1"),
        ({"states": "reference", "k": 2}, "k roll-outs need the same states, and these are drawn at random"),
    ],
)
def test_bad_options_of_roll_outs(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        lols.rollout_costs(ByHand(), SPACE, DATA, TEACHERS["suboptimal"], compiled=False, **options)
