"""Networks that learn on: by `warm_start`, from streams, and with words and labels that come later."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import lols
from lols.errors import ConfigurationError
from lols.policies import OwnPolicy
from tests.torch.small_networks import DATA, SPACE, TEACHERS, UNSEEN, make_policy, train
from tests.torch.test_neural_estimators import SMALL, TAGGED, TAGS, TREES, WORDS

NEW = [["Zounds", "zounds"]] * 8, [["INTJ", "INTJ"]] * 8


def test_training_goes_on_with_new_words_and_labels(tmp_path: Path) -> None:
    small, path = SMALL | {"passes": 1}, str(tmp_path / "tagger.lols")
    lols.Tagger(**small).fit(WORDS[:16], TAGS[:16]).save(path)
    tagger = lols.Tagger.load(path).set_params(warm_start=True, rate=1e-9)
    old = tagger.model_.policy.network.state_dict()
    for name, value in (("policy", "linear"), ("width", 8), ("layers", 2)):
        as_it_was = getattr(tagger, name)
        with pytest.raises(ConfigurationError, match=f"{name}={value!r} cannot go on from {name}={as_it_was!r}: leave"):
            tagger.set_params(**{name: value}).fit(WORDS, TAGS)
        tagger.set_params(**{name: as_it_was})
    tagger.calibrate_with(WORDS[16:], TAGS[16:])
    kept = tagger.model_.calibration
    with pytest.warns(UserWarning, match="goes on from its weights, with a new optimiser"):
        tagger.fit([[w.upper() for w in words] for words in WORDS[:16]], TAGS[:16])
    assert tagger.model_.calibration is kept is not None  # there were new words, but no new labels
    linear = lols.Tagger(passes=1).fit(WORDS[:16], TAGS[:16]).set_params(warm_start=True, policy="neural")
    with pytest.raises(ConfigurationError, match="policy='neural' cannot go on from policy='linear'"):
        linear.fit(WORDS, TAGS)
    with pytest.warns(UserWarning, match="goes on from its weights, with a new optimiser"):
        tagger.fit([*WORDS[:16], *[["Zounds", "zounds"]] * 8], [*TAGS[:16], *[["INTJ", "INTJ"]] * 8])
    new = tagger.model_.policy.network.state_dict()
    assert tagger.model_.calibration is None
    assert "zounds" in tagger.task_.vocabulary.words and tagger.classes_[-1] == "INTJ"
    for name, tensor in old.items():  # at such a rate, nothing that was there changes
        assert torch.allclose(new[name][tuple(slice(n) for n in tensor.shape)], tensor, atol=1e-5), name
    tagger.save(path)
    assert lols.Tagger.load(path).predict(WORDS[:3]) == tagger.predict(WORDS[:3])


def weights(policy: Any) -> list[bytes]:
    return [tensor.cpu().numpy().tobytes() for tensor in policy.network.state_dict().values()]


@pytest.mark.parametrize("option", ["vectors", "encoder"])
def test_what_was_learned_elsewhere_is_not_exchanged_in_silence(option: str, tmp_path: Path) -> None:
    for name in ("one.txt", "two.txt"):
        (tmp_path / name).write_text("dog 1 2\ncat 3 4\n")
    one, two = str(tmp_path / "one.txt"), str(tmp_path / "two.txt")
    tagger = lols.Tagger(**SMALL | {"passes": 1}, vectors=one).fit(WORDS[:16], TAGS[:16])
    tagger.save(tmp_path / "t.lols")
    before = one if option == "vectors" else None
    for going_on in (tagger, lols.Tagger.load(tmp_path / "t.lols")):
        going_on.set_params(**{option: two}, warm_start=True)
        line = f"{option}={two!r} cannot go on from {option}={before!r}: leave it as it was, or train anew"
        for learn in (going_on.fit, going_on.partial_fit):
            with pytest.raises(ConfigurationError) as raised:
                learn(WORDS, TAGS)
            assert str(raised.value).startswith(line)


# --- streams ----------------------------------------------------------------------------------------------------------


def test_a_tagger_learns_from_a_stream(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="the first call of partial_fit needs classes"):
        lols.Tagger(**SMALL).partial_fit(WORDS, TAGS)
    tagger = lols.Tagger(**SMALL).partial_fit(WORDS, TAGS, classes=["DET", "NOUN", "VERB", "X"])
    first = tagger.score(WORDS, TAGS)
    for _ in range(5):
        tagger.partial_fit(WORDS, TAGS)
    assert tagger.score(WORDS, TAGS) > max(first, 0.95)
    assert tagger.model_.about["examples"] == 6 * len(WORDS)
    tagger.save(tmp_path / "t.lols")
    loaded = lols.Tagger.load(tmp_path / "t.lols")
    assert loaded.predict(WORDS) == tagger.predict(WORDS)
    old = weights(loaded.model_.policy)
    with pytest.warns(UserWarning, match="goes on from its weights, with a new optimiser"):
        loaded.learn_one(WORDS[0], TAGS[0])
    assert weights(loaded._fitted.policy) != old
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # it is said once
        loaded.learn_one(WORDS[1], TAGS[1])
    assert loaded.stop_learning().predict(WORDS) == loaded.predict(WORDS)


def test_a_stream_brings_new_words_and_labels() -> None:
    tagger = lols.Tagger(**SMALL).fit(WORDS, TAGS)
    with pytest.raises(lols.LolsError, match="INTJ"):
        tagger.partial_fit(*NEW)
    assert tagger._stream is None
    with pytest.warns(UserWarning, match="goes on from its weights"):
        tagger.partial_fit(*NEW, classes=["INTJ"])
    stream = tagger._stream
    for _ in range(8):  # with old data, since a network forgets
        tagger.partial_fit([*WORDS, *NEW[0]], [*TAGS, *NEW[1]])
    assert tagger._stream is stream
    assert "zounds" in tagger.task_.vocabulary.words and tagger.classes_.tolist() == ["DET", "NOUN", "VERB", "INTJ"]
    assert tagger.predict_one(["zounds", "zounds"]) == ["INTJ", "INTJ"]
    assert tagger.score(WORDS, TAGS) > 0.8


def test_a_network_that_grows_keeps_its_optimiser_and_its_average() -> None:
    tagger = lols.Tagger(**SMALL).partial_fit(WORDS, TAGS, classes=["DET", "NOUN", "VERB"])
    before = tagger._stream.policy
    moments = before.learner.optimizer.state_dict()["state"]
    old = {k: {name: torch.as_tensor(value).clone() for name, value in parts.items()} for k, parts in moments.items()}
    average = {name: tensor.clone() for name, tensor in before.learner.average.state_dict().items()}
    tagger.partial_fit([], [], classes=["INTJ"])
    after = tagger._stream.policy
    assert after is not before and after.learner.steps == before.learner.steps > 0
    new = after.learner.optimizer.state_dict()["state"]
    grown = 0
    for k, parts in old.items():
        for name, value in parts.items():
            found = torch.as_tensor(new[k][name])
            assert torch.equal(found[tuple(slice(n) for n in value.shape)], value)
            assert found.sum() == pytest.approx(float(value.sum()), rel=1e-4, abs=1e-6)  # the rest is zero
            grown += found.shape != value.shape
    assert grown > 0
    for name, tensor in average.items():
        found = after.learner.average.state_dict()[name]
        assert torch.equal(found[tuple(slice(n) for n in tensor.shape)], tensor)


def test_a_parser_learns_from_a_stream() -> None:
    parser = lols.Parser(**SMALL).partial_fit(TAGGED, TREES)
    with pytest.warns(UserWarning, match="goes on from its weights"):
        parser.partial_fit(TAGGED, TREES)
    for _ in range(6):
        parser.partial_fit(TAGGED, TREES)
    assert parser.score(TAGGED, TREES) > 0.9
    strange = [[{"word": w, "upos": "X"} for w in ("oh", "oh")]] * 8, [[(0, "root"), (1, "strange")]] * 8
    for _ in range(25):
        parser.partial_fit(*strange)
    assert parser.predict_one(strange[0][0]) == strange[1][0]
    assert "strange" in parser.relations_ and lols.certify(parser, (TAGGED, TREES), resamples=5).decisions > 100


def test_a_pipeline_learns_from_a_stream() -> None:
    parts: dict[str, Any] = {"tagger": lols.Tagger(**SMALL), "parser": lols.Parser(**SMALL)}
    pipeline = lols.Pipeline(tags=["upos"], folds=2, **parts).fit(TAGGED, TREES)
    tagger, parser = pipeline.taggers_["upos"], pipeline.parser_
    old = weights(tagger.model_.policy), weights(parser.model_.policy)
    with pytest.warns(UserWarning, match="goes on from its weights"):
        pipeline.learn_one(TAGGED[0], TREES[0])
    assert weights(tagger._fitted.policy) != old[0] and weights(parser._fitted.policy) != old[1]
    assert [word["upos"] for word in pipeline.predict(WORDS[:1])[0]] == TAGS[0]


def test_a_model_of_ones_own_learns_on(tmp_path: Path) -> None:
    model = train(make_policy(steps=2), passes=1)
    model.save(tmp_path / "m.lols")
    before = model.evaluate(UNSEEN)
    old = weights(model.policy)
    went_on = lols.train(SPACE, DATA, TEACHERS["bad"], start=model, passes=6, batch_size=8, compiled=False)
    assert weights(model.policy) == old and went_on.evaluate(UNSEEN) < before / 2
    for _ in range(6):
        model.partial_fit(DATA, *([TEACHERS["bad"]] if model._going_on is None else []))
    assert model.evaluate(UNSEEN) < before / 2
    assert model.about["examples"] == 6 * len(DATA)
    loaded = lols.load(tmp_path / "m.lols", SPACE, policy=make_policy(steps=2), compiled=False)
    loaded.learn_one(DATA[0], TEACHERS["bad"])
    assert weights(loaded.policy) != old
    assert loaded.stop_learning().evaluate(UNSEEN) >= 0.0
    with pytest.raises(ConfigurationError, match="start has no effect: policy is given"):
        lols.train(SPACE, DATA, TEACHERS["bad"], start=model, policy=make_policy(), compiled=False)


def test_a_stream_is_a_plain_loop_of_search_and_update() -> None:
    """`partial_fit` against the updates of a training in the same order, with the same rounds."""
    model = train(make_policy(steps=2), passes=1)
    model.partial_fit(DATA, TEACHERS["bad"])
    twin = train(make_policy(steps=2), passes=1).policy.onward()
    train(twin, passes=1, shuffle=False)
    for one, other in zip(model.policy.state().values(), twin.frozen().state().values(), strict=True):
        assert np.array_equal(one, other)


def test_a_policy_without_onward_says_what_it_lacks() -> None:
    class Fixed:
        def costs(self, states: Any) -> np.ndarray:
            return np.zeros((len(states), states.actions))

        def update(self, states: Any, costs: np.ndarray, weights: np.ndarray) -> None:
            pass

    fixed: OwnPolicy = Fixed()
    model = train(fixed, passes=1)
    with pytest.raises(ConfigurationError, match="a Fixed cannot learn on: give it a method `onward`"):
        model.partial_fit(DATA, TEACHERS["bad"])
