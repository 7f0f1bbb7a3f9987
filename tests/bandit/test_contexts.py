"""The objects of a log: as they were given, or, where they are not JSON, the features of their states."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lols.bandit import MemoryLog, StructuredBandit
from lols.bandit.log import Decision
from lols.bandit.one import OneByOne
from lols.bandit.retrace import Retracer
from lols.contract.examples import Examples
from lols.errors import LolsError
from tests.bandit.killed_bandits import KINDS
from tests.bandit.log_entries import assert_same
from tests.bandit.log_entries import same as same_bits
from tests.bandit.small_bandit import RULES, SPACE, bandit, loss, request, run, same


def as_array(obj: Any) -> Any:
    return {"words": [int(word) for word in obj["words"]]}


OTHER = replace(SPACE, encode=lambda obj: SPACE.encode(as_array(obj)))


def alike(one: StructuredBandit, other: StructuredBandit) -> None:
    """The same, but for the agreement with the rules, which needs objects."""
    reports = [{**made.report(), "agreement": None} for made in (one, other)]
    assert one.policy().digest() == other.policy().digest() and reports[0] == reports[1]


@pytest.mark.parametrize("kind", ["default", "steps", "bag"])
def test_objects_that_are_not_json_are_learned_from_alike(tmp_path: Path, kind: str) -> None:
    """The log has features in their place, from which the same policy is rebuilt."""
    options = {"epsilon": 0.6, "seed": 4, "compiled": False, **KINDS[kind]}
    path = tmp_path / "shown.log"
    with StructuredBandit(OTHER, RULES, log=path, **options) as made:
        plain = StructuredBandit(OTHER, RULES, **options)
        for k in range(40):
            shown, other = made.decide({"words": np.array(request(k)["words"])}), plain.decide(request(k))
            assert shown == other
            for one in (made, plain):
                one.learn(shown.id, loss(k, shown.output))
        alike(made, plain)
        entries = [entry for entry in made.log.replay() if isinstance(entry, Decision)]
        others = [entry for entry in plain.log.replay() if isinstance(entry, Decision)]
        retracer = Retracer(plain.space, compiled=False)
        for entry, other_entry in zip(entries, others, strict=True):
            assert entry.context is None and other_entry.object == request(entry.number)
            assert entry.seen is not None or not entry.explored
            if entry.seen is not None:
                assert same_bits(retracer(entry), retracer(other_entry))
    with StructuredBandit(OTHER, RULES, log=path, **options) as again:
        alike(again, plain)


def test_an_object_that_is_changed_after_the_decision_is_logged_as_it_was() -> None:
    made, plain = (bandit(compiled=False, epsilon=1.0, log=MemoryLog()) for _ in range(2))
    for k in range(10):
        obj = request(k)
        shown = made.decide(obj)
        obj["words"][:] = [0] * len(obj["words"])
        plain.decide(request(k))
        for one in (made, plain):
            one.learn(shown.id, 0.5)
    assert_same(list(made.log.replay()), list(plain.log.replay()))
    same(made, plain)


def test_the_same_id_gives_the_same_answer(tmp_path: Path) -> None:
    with bandit(compiled=False, log=tmp_path / "shown.log") as made:
        first = [made.decide(request(k), f"event-{k}") for k in range(8)]
        run_before = made.report()
        for k in (3, 0, 7):
            made.learn(f"event-{k}", 0.25)
        again = [made.decide(request(k), f"event-{k}") for k in range(8)]
        assert first == again and made.report()["decisions"] == run_before["decisions"] == 8
        with pytest.raises(LolsError, match="decision 'event-3': its id was used for another object"):
            made.decide(request(5), "event-3")
        assert made.decide(request(1)).id == "8"
        assert made.decide(request(1), "10").id == "10"
        assert made.decide(request(2)).id == "10'"  # the number is the id of another event
        assert made.learn("10'", 0.5) == "accepted"
    with bandit(compiled=False, log=tmp_path / "shown.log") as made:
        assert [made.decide(request(k), f"event-{k}") for k in range(8)] == first


def test_an_answer_follows_from_policy_object_and_id() -> None:
    """Not from the decisions before it."""
    one, other = bandit(compiled=False), bandit(compiled=False)
    run(one, 1)
    run(other, 1)
    for k in range(1, 30):
        other.decide(request(k))
    assert one.decide(request(3), "a visit")[1:] == other.decide(request(3), "a visit")[1:]


def test_memory_that_is_used_again_does_not_mix_objects() -> None:
    """Objects of the same sizes, and of others, one after the other."""
    encode = OneByOne(SPACE)
    for k in (3, 7, 0, 3, 2, 11, 1, 3):
        quick, slow = encode(request(k)), Examples(SPACE, [request(k)], truth=False)
        assert quick.example(0)[0].words.tolist() == slow.example(0)[0].words.tolist() == request(k)["words"]
        assert (quick.states, quick.steps) == (slow.states, slow.steps) and quick.most_actions == slow.most_actions
