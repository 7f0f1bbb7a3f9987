"""Searn: a mixture over passes whose weights, draws and files are exact."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lols
from lols.datasets.worlds import tagging_data, tagging_references, tagging_space
from lols.io.model_file import read_tensors
from lols.io.sparse import unpack
from lols.learners.learner import Learner
from lols.policies.mixture import PolicyMixture
from lols.training.algorithms import algorithm, searn_alpha

SPACE = tagging_space(labels=4)
TEACHER = tagging_references()["optimal"]
DATA = tagging_data(60, labels=4, words=40)
UNSEEN = [{"words": d["words"]} for d in tagging_data(50, labels=4, words=40, seed=1)]
COUNT = len(DATA)


def searn(**options: Any) -> lols.Model:
    return lols.train(SPACE, DATA, TEACHER, algorithm="searn", **({"passes": 4} | options))


@pytest.fixture(scope="module")
def model() -> lols.Model:
    return searn()


def after_passes(passes: int, **options: Any) -> PolicyMixture:
    """The mixture's weights alone, without any training."""
    mixture = PolicyMixture(searn_alpha(algorithm("searn", **options), passes * COUNT))
    learner = Learner(lols.LearnerSettings(), 4, compiled=False)
    for _ in range(passes):
        mixture.begin(learner)
        mixture.end(learner, COUNT)
    return mixture


# --- weights ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("alpha", [1e-5, 0.003, 0.2])
def test_after_t_rounds_the_learned_part_weighs_one_less_one_less_alpha_to_the_t(alpha: float) -> None:
    for passes in (1, 2, 5):
        mixture = after_passes(passes, alpha=alpha)
        assert mixture.weights.sum() == pytest.approx(1 - (1 - alpha) ** (passes * COUNT), rel=1e-9)
        assert mixture.reference_weight == pytest.approx((1 - alpha) ** (passes * COUNT), rel=1e-9)


def test_the_weight_of_a_pass_is_what_it_took_over_times_what_later_passes_left() -> None:
    kept = (1 - 0.003) ** COUNT
    expected = [(1 - kept) * kept**later for later in (2, 1, 0)]
    assert after_passes(3, alpha=0.003).weights == pytest.approx(expected)


def test_the_reference_weighs_one_half_midway_by_default() -> None:
    mixture = PolicyMixture(searn_alpha(algorithm("searn"), 4 * COUNT))
    learner, weights = Learner(lols.LearnerSettings(), 4, compiled=False), []
    for _ in range(4):
        mixture.begin(learner)
        mixture.end(learner, COUNT)
        weights.append(mixture.reference_weight)
    assert weights == pytest.approx([0.5**0.5, 0.5, 0.5**1.5, 0.25])


def test_a_tiny_alpha_is_honoured_and_the_learner_still_learns() -> None:
    model = searn(alpha=1e-5, passes=3)
    assert model.about["algorithm"]["alpha"] == 1e-5
    kept = (1 - 1e-5) ** COUNT
    weights = np.array([(1 - kept) * kept**later for later in (2, 1, 0)])
    assert model.policy.chances == pytest.approx(np.cumsum(weights / weights.sum()), rel=1e-6)
    untrained = np.mean([len(d["tags"]) - d["tags"].count(0) for d in DATA])
    assert model.evaluate(DATA) < 0.5 * untrained


def test_the_first_pass_rolls_in_and_out_with_the_reference_only() -> None:
    # The reference is the truth, so nothing is lost on the way in; later passes draw the learner's actions, too.
    losses = searn(passes=3).report["progressive_loss"]
    assert losses[0] == 0.0 and min(losses[1:]) > 0.0


def test_the_policy_is_the_mixture_without_the_reference(model: lols.Model) -> None:
    assert model.policy.chances.size == model.policy.stack.shape[0] == 4
    assert model.policy.chances[-1] == 1.0
    # An optimal reference would have no loss; the learned part has some.
    assert model.evaluate(tagging_data(50, labels=4, words=40, seed=1)) > 0.0


# --- learners ---------------------------------------------------------------------------------------------------------


def test_each_pass_trains_from_scratch(monkeypatch: pytest.MonkeyPatch) -> None:
    begin, end = PolicyMixture.begin, PolicyMixture.end
    rounds: list[int] = []

    def watched_begin(mixture: PolicyMixture, learner: Learner) -> None:
        begin(mixture, learner)
        for name, array in learner.state().items():
            assert name.endswith("features") or not array.any()

    def watched_end(mixture: PolicyMixture, learner: Learner, count: int) -> None:
        rounds.append(learner.report()["rounds"])
        end(mixture, learner, count)

    monkeypatch.setattr(PolicyMixture, "begin", watched_begin)
    monkeypatch.setattr(PolicyMixture, "end", watched_end)
    searn(passes=3)
    assert rounds == [COUNT] * 3


def test_a_pass_does_not_know_how_many_follow() -> None:
    short, long = searn(passes=2, alpha=0.01), searn(passes=3, alpha=0.01)
    assert [learned(short, c) for c in range(2)] == [learned(long, c) for c in range(2)]


def learned(model: lols.Model, component: int) -> dict[int, bytes]:
    """The weights of one component by feature, as its file has them."""
    with tempfile.TemporaryDirectory() as folder:
        model.save(f"{folder}/model.lols")
        _, tensors = read_tensors(f"{folder}/model.lols", "model")
    packed = {part: tensors[f"shared.{part}"] for part in ("counts", "columns", "values")}
    stack = unpack(packed, model.policy.stack.shape[2])
    rows = zip(tensors["shared.features"].tolist(), stack[component], strict=True)
    return {feature: weights.tobytes() for feature, weights in rows if weights.any()}


def test_passes_differ_since_each_rolls_in_with_another_mixture(model: lols.Model) -> None:
    assert len({tuple(sorted(learned(model, c).items())) for c in range(4)}) == 4


@pytest.mark.parametrize("options", [{"learner": "csoaa"}, {"learner": "secoc"}, {"batch_size": 1}])
def test_searn_takes_any_learner_and_batch_size(options: dict[str, Any]) -> None:
    untrained = np.mean([len(d["tags"]) - d["tags"].count(0) for d in DATA])
    assert searn(**options).evaluate(DATA) < 0.5 * untrained


def test_searn_takes_a_fixed_table() -> None:
    model = searn(learner=lols.LearnerSettings(bits=12))
    assert model.policy.stack.shape == (4, 1 << 12, 4)
    assert model.evaluate(DATA) < searn(passes=1, learner=lols.LearnerSettings(bits=4)).evaluate(DATA)


def test_plain_python_gives_the_same_mixture() -> None:
    compiled, plain = (
        lols.train(SPACE, DATA[:12], TEACHER, algorithm="searn", passes=2, compiled=c) for c in (True, False)
    )
    assert [learned(plain, c) for c in range(2)] == [learned(compiled, c) for c in range(2)]
    assert plain.predict(UNSEEN[:10]) == compiled.predict(UNSEEN[:10])


def test_threads_are_not_part_of_the_result(model: lols.Model) -> None:
    assert searn(threads=2).policy.stack.tobytes() == model.policy.stack.tobytes()


# --- prediction -------------------------------------------------------------------------------------------------------


def test_a_loaded_model_predicts_as_the_saved_one(model: lols.Model, tmp_path: Path) -> None:
    model.save(tmp_path / "searn.lols")
    loaded = lols.load(tmp_path / "searn.lols", SPACE)
    assert loaded.predict(UNSEEN) == model.predict(UNSEEN)
    assert loaded.policy.chances.tobytes() == model.policy.chances.tobytes()
    loaded.save(tmp_path / "again.lols")
    assert (tmp_path / "again.lols").read_bytes() == (tmp_path / "searn.lols").read_bytes()


def test_predictions_do_not_depend_on_the_order_or_the_company_of_the_inputs(model: lols.Model) -> None:
    together = model.predict(UNSEEN)
    assert [model.predict_one(obj) for obj in UNSEEN] == together
    assert model.predict(UNSEEN[::-1])[::-1] == together
    assert model.predict(UNSEEN[7:20]) == together[7:20]
    model.threads = 2
    assert model.predict(UNSEEN) == together
    model.threads = 1


def test_prediction_draws_from_all_components(model: lols.Model) -> None:
    # Alone, no component gives the mixture's predictions: they are drawn at every state.
    alone = [_only(model, c).predict(UNSEEN) for c in range(4)]
    assert model.predict(UNSEEN) not in alone


def _only(model: lols.Model, component: int) -> lols.Model:
    policy = model.policy._replace(
        stack=model.policy.stack[component : component + 1].copy(),
        single_stack=model.policy.single_stack[component : component + 1].copy(),
        chances=np.ones(1),
    )
    return lols.Model(SPACE, policy, model.plan)
