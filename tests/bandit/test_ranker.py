"""Any dictionaries as context and candidates: features, slots, excluded candidates, and bad use."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lols.bandit import BanditPolicy, Decider, Ranker, deviations, evaluate_policy
from lols.bandit.log import Decision
from lols.bandit.ranking import encoded, hashed
from lols.errors import ConfigurationError, LolsError

TOPICS = ("music", "sport", "politics", "art")


def visit(rng: random.Random, fewest: int = 0) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """A context, and any number of candidates."""
    context = {"segment": rng.choice(["young", "old"]), "device": {"kind": rng.choice(["phone", "desk"])}}
    candidates = [
        {"id": f"item {k}", "topic": rng.choice(TOPICS), "price": rng.random()} for k in range(rng.randrange(fewest, 8))
    ]
    return context, candidates


def liked(context: dict[str, Any], candidate: dict[str, Any]) -> bool:
    return bool(candidate["topic"] == ("music" if context["segment"] == "young" else "politics"))


def serve(ranker: Ranker, rounds: int, seed: int = 1, fewest: int = 0) -> list[float]:
    rng, missed = random.Random(seed), []
    for k in range(rounds):
        context, candidates = visit(rng, fewest)
        shown = ranker.rank(context, candidates, f"visit {seed}.{k}", excluded=[c["id"] for c in candidates[6:]])
        by_id = {candidate["id"]: candidate for candidate in candidates}
        assert len(shown.output) == len(set(shown.output)) == min(2, len(candidates), 6)
        assert len(shown.chances) in (0, len(shown.output))
        assert not {candidate["id"] for candidate in candidates[6:]} & set(shown.output)
        losses = [1.0 - liked(context, by_id[name]) for name in shown.output]
        if losses:
            assert ranker.learn(shown.id, losses=losses) == "accepted"
            missed.append(losses[0])
    return missed


def test_it_learns_what_readers_like_from_any_number_of_candidates(tmp_path: Path) -> None:
    options: dict[str, Any] = {"seed": 2, "compiled": False}
    path = tmp_path / "shown.log"
    with Ranker(2, log=path, **options) as ranker:
        serve(ranker, 300)
        policy, rng, right = ranker.policy(), random.Random(7), []
        decider = Decider(ranker.bandit.space, ranker.bandit.reference, compiled=False)
        for _ in range(100):
            context, candidates = visit(rng, 1)
            best = ranker.bandit.predict({"context": context, "candidates": candidates})[0]
            right.append(liked(context, candidates[best]) or not any(liked(context, c) for c in candidates))
        assert np.mean(right) > 0.8
        assert [each.same for each in ranker.bandit.audit()] == [True]
        for evaluate in (evaluate_policy, deviations):
            found = evaluate(ranker.bandit.log, policy, since=200, compiled=False)
            assert found.dr.low < found.logged.value and found.rounds > 50
        policy.save(tmp_path / "policy.safetensors")
        request = {"context": context, "candidates": candidates}
        elsewhere, _ = decider.decide(request, BanditPolicy.load(tmp_path / "policy.safetensors"), "a visit")
        assert elsewhere == ranker.bandit.decide(request, "a visit")
        digest = ranker.policy().digest()
    with Ranker(2, log=path, **options) as again:
        assert again.policy().digest() == digest


@pytest.mark.slow
def test_compiled_or_not() -> None:
    rankers = [Ranker(2, seed=3, compiled=compiled) for compiled in (True, False)]
    assert serve(rankers[0], 40) == serve(rankers[1], 40)
    assert rankers[0].report() == rankers[1].report()


def test_an_empty_catalogue_is_answered_by_nothing(tmp_path: Path) -> None:
    with Ranker(3, log=tmp_path / "shown.log", compiled=False) as ranker:
        for candidates, excluded in (([], []), ([{"id": "a", "topic": "art"}], ["a"])):
            shown = ranker.rank({}, candidates, excluded=excluded)
            assert shown.output == [] and shown.chances == ()
            assert ranker.rank({}, candidates, shown.id, excluded=excluded) == shown
            assert ranker.learn(shown.id, 0.5) == "accepted"
        decisions = [entry for entry in ranker.bandit.log.replay() if isinstance(entry, Decision)]
        assert all(entry.baseline is not None and entry.baseline.size == 0 for entry in decisions)
    with Ranker(3, log=tmp_path / "shown.log", compiled=False) as ranker:
        assert ranker.report()["losses"] == 2


def test_candidates_in_their_order_are_the_rules() -> None:
    ranker = Ranker(2, pace="safe", seed=1, compiled=False)
    assert ranker.rank({}, {"b": {"x": 1}, "a": {"x": 2}, "c": {"x": 3}}, excluded=["b"]).output == ["a", "c"]
    assert ranker.rank({"hour": 7}, [{"x": "a"}, {"x": "b"}, {"x": "c"}]).output == [0, 1]


def test_features_are_hashed_as_everybody_expects() -> None:
    told = {"colour": "red", "new": True, "price": 2.5, "tags": ["a", "b"], "shop": {"city": "Ulm"}, "none": None}
    found = hashed(told, "a candidate")
    assert sorted(found.values()) == [1.0, 1.0, 1.0, 1.0, 1.0, 2.5]
    assert hashed({"price": 3, "colour": "red"}, "").keys() <= found.keys()  # another value of the same feature
    assert not hashed({"colour": "blue", "price": "2.5", "new": False}, "").keys() & found.keys()
    assert hashed({"shop.city": "Ulm"}, "").keys() <= found.keys()
    columns = encoded({"context": {"a": 1}, "candidates": [{"id": 7, "x": 1}, {"x": 1, "y": 2}]}, 100).x
    assert columns["first"] == [0, 1, 3] and columns["features"][0] == columns["features"][1]


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ({"candidates": [{"id": "a"}]}, "candidate 0 has no features"),
        ({"candidates": [{"x": 1}, {}]}, "candidate 1 has no features"),
        ({"candidates": [{"x": 1}, 7]}, "candidate 1 is 7: give a dictionary of features|no attribute"),
        ({"candidates": {"a": 7}}, "candidate 'a' is not a dictionary"),
        ({"candidates": [{"x": float("nan")}]}, "candidate 0: x is nan: give a finite number"),
        ({"candidates": [{"x": 10**400}]}, "give a finite number"),
        ({"candidates": [{"x": object()}]}, "give texts, numbers, lists of texts or dictionaries"),
        ({"candidates": [{"x": 1}], "context": [1]}, "the context is"),
        ({"candidates": [{"x": 1}], "excluded": "a"}, "excluded|no candidate is called"),
        ({"candidates": [{"x": 1}], "excluded": ["b"]}, "excluded has 'b', which no candidate is called"),
        ({"candidates": [{f"x{k}": 1 for k in range(300)}]}, "more than most_features=512: give a larger number"),
    ],
)
def test_bad_requests(asked: dict[str, Any], says: str) -> None:
    ranker = Ranker(2, compiled=False)
    with pytest.raises(LolsError, match=says) as caught:
        ranker.rank(**{"context": {}, **asked})
    assert "\n" not in str(caught.value) and ranker.report()["decisions"] == 0


def test_bad_options() -> None:
    for options, says in (
        ({"slots": 0}, "slots"),
        ({"most_features": 0}, "most_features"),
        ({"space": None}, "space is no option"),
        ({"epsilon": "theory:10:2:3"}, "needs one number of actions"),
    ):
        with pytest.raises(ConfigurationError, match=says):
            Ranker(**options)
